"""A stream of labels beside a plain dict: whatever is added, corrected, deleted, given again, saved and loaded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import crowdwise as cw
from crowdwise.labels.em import Local
from crowdwise.labels.shard import Shard
from crowdwise.streams import labels as streams

TASKS, WORKERS, CLASSES = st.integers(0, 7), st.sampled_from("abcde"), st.sampled_from("xyz")
ROWS = st.lists(st.tuples(TASKS, WORKERS, CLASSES), min_size=1, max_size=12)
MODELS = ("dawid-skene", "mace", "one-coin", "pooled", "tied")


def frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"task": pl.Int64, "worker": pl.String, "label": pl.String}, orient="row")


class StreamBesideDict(RuleBasedStateMachine):
    """The stream must hold what the dict holds."""

    def __init__(self) -> None:
        super().__init__()
        self.growth = streams.GROWTH_SMALL
        streams.GROWTH_SMALL = 8.0  # few fits from the start, so that most updates are learned by themselves
        self.answers: dict[tuple[int, str], str] = {}
        self.gold: dict[int, str] = {}
        self.stream = cw.LabelStream("one-coin")

    def teardown(self) -> None:
        streams.GROWTH_SMALL = self.growth

    @rule(model=st.sampled_from(MODELS))
    def begin(self, model: str) -> None:
        """Go on with another model, if nothing is held."""
        if not self.answers and not self.gold:
            self.stream = cw.LabelStream(model)

    @rule(rows=ROWS)
    def update(self, rows: list[tuple[int, str, str]]) -> None:
        self.answers.update({(task, worker): label for task, worker, label in rows})
        self.stream.update(frame(rows))

    @rule(rows=ROWS, deleted=st.lists(st.booleans(), min_size=12, max_size=12))
    def correct(self, rows: list[tuple[int, str, str]], deleted: list[bool]) -> None:
        """New labels and deletions in one table."""
        for (task, worker, label), gone in zip(rows, deleted, strict=False):
            if gone:
                self.answers.pop((task, worker), None)
            else:
                self.answers[task, worker] = label
        self.stream.update(frame([(t, w, None if gone else k) for (t, w, k), gone in zip(rows, deleted, strict=False)]))

    @rule(pairs=st.lists(st.tuples(TASKS, WORKERS), min_size=1, max_size=6, unique=True))
    def remove(self, pairs: list[tuple[int, str]]) -> None:
        unknown = sum(pair not in self.answers for pair in pairs)
        for pair in pairs:
            self.answers.pop(pair, None)
        table = pl.DataFrame(pairs, schema={"task": pl.Int64, "worker": pl.String}, orient="row")
        assert self.stream.remove(table) == unknown

    @rule()
    def deliver_again(self) -> None:
        before, known = self.stream._Z.copy(), self.stream._known
        self.stream.update(frame([(task, worker, label) for (task, worker), label in self.answers.items()]))
        assert np.array_equal(self.stream._Z, before)
        assert self.stream._known is known

    @rule(task=TASKS, label=CLASSES)
    def know(self, task: int, label: str) -> None:
        self.gold[task] = label
        self.stream.update({"task": [task], "gold": [label]})

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.stream.save(Path(folder))
            self.stream = cw.LabelStream.load(folder)

    @rule()
    def result_is_that_of_a_fit(self) -> None:
        if not self.answers:
            return
        rows = frame([(task, worker, label) for (task, worker), label in self.answers.items()])
        wanted = cw.aggregate(rows, self.stream.model, gold=self.gold) if self.gold else self.stream.model.fit(rows)
        got = self.stream.result()
        assert got.labels.equals(wanted.labels)
        np.testing.assert_allclose(got.posterior, wanted.posterior, atol=1e-9)

    @invariant()
    def holds_the_answers(self) -> None:
        assert self.stream.n_answers == len(self.answers)
        if self.answers:
            answers = self.stream._held.ordered().answers
            assert {(t, w): k for t, w, k in answers.frame().iter_rows()} == self.answers
            known = {
                task: answers.classes[int(k)] for task, k in zip(answers.tasks, answers.gold, strict=True) if k >= 0
            }
            assert known == {task: k for task, k in self.gold.items() if task in set(answers.tasks)}

    @invariant()
    def holds_the_statistics(self) -> None:
        if not self.answers:
            return
        stream, (answers, tasks, workers, same_classes) = self.stream, self.stream._held.ordered()
        learned = stream._known
        assert learned is not None
        if not same_classes:
            return
        shard, Z = Shard.of(answers, cw.Run(precision="double")), stream._Z[tasks]
        wanted = stream.em.statistics(shard, Local(Z), shard.shares(Z), stream._narrowed(answers, workers))
        keys = learned.rows.row_worker.astype(np.int64) * 100 + learned.rows.row_label
        at = np.searchsorted(keys, workers[answers.layout.row_worker] * 100 + answers.layout.row_label)
        for got, right in zip(stream.em.renewed(learned.stats, learned.params), wanted, strict=True):
            rows = got[at] if len(got) == len(keys) and got is not learned.stats.shares else got
            np.testing.assert_allclose(rows, right, atol=1e-9)
        assert learned.rows.answers.sum() == len(self.answers)


def test_r14_labels_added_corrected_and_removed_are_those_of_one_fit() -> None:
    run_state_machine_as_test(StreamBesideDict, settings=settings(max_examples=25, stateful_step_count=12))
