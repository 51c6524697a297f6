"""LabelStream: labels that keep coming, learned by incremental EM."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

import numpy as np
import polars as pl

from ..answers import Labels
from ..answers.arguments import checked, items
from ..answers.changes import REPEATS, Changes, Repeats, read_changes, read_removals
from ..answers.coding import to_numbers
from ..engine import Decision, Executor, Run, Standing, Stream, Trace
from ..engine.stream import check_bounds
from ..errors import DataError, EmptyDataError, ParameterError, UnknownIdError, check_choice
from ..kernels.layout import Floats, Ints, Subset, WorkerRows, find_rows, narrow
from ..labels.em import EMModel, Local
from ..labels.incremental import Computing, Learned, learn_change
from ..labels.model import Learnt
from ..labels.shard import Shard
from ..result import LabelsResult
from ..result.stored import Parts, Stored, UnsoundError
from .asking import Asking, TaskView
from .held import grown
from .held_labels import HeldLabels
from .models import Streamable, streamable
from .plan import Plan, joined, planned
from .saved import SAVED_STREAM, contradiction, relearned, restore, store

SMALL = 10_000  # answers up to which a fit takes a fraction of a second
GROWTH_SMALL, GROWTH = 1.02, 1.25  # a fit from the start is due at so many times the answers of the last one
MIN_REFRESHED_TASKS = 200  # other tasks whose posterior an update computes again, at least


class LabelStream(Stream[Labels, LabelsResult]):
    """Learn from labels that keep coming, without fitting everything again.

    `model` is a name, a class or an instance of a model that is fitted by EM or variational Bayes; by default it is
    that of `cw.aggregate`. `task`, `worker`, `label` and `gold` name columns of the tables, `missing` lists labels that
    mean no answer, and `wide` says whether each worker has a column. If a table has several rows for one worker and
    task, `duplicates` says which is used: "last" (by time, if every row has a time), "first" or "error".

    An update costs in proportion to its own answers, but when all answers have become 1.25 times those of the last fit,
    the update that reaches this fits them from the start, since what was learned from few answers may mislead. So does
    an update with a label that was never seen. With `refit=False`, more than 10,000 answers are not fitted by updates
    for their growth: `due` says that it is time to call `result`, which does it.

    >>> import crowdwise as cw
    >>> stream = cw.LabelStream()
    >>> stream = stream.update({"task": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "cat", "dog"]})
    >>> stream = stream.update({"task": [2], "worker": ["bob"], "label": ["dog"]})
    >>> stream
    LabelStream(pooled: 4 answers, 2 tasks, 2 workers, 2 classes)
    >>> stream.decide(2, min=3).ask
    5
    >>> stream.result().labels["label"].to_list()
    ['cat', 'dog']
    """

    models = Streamable()

    @checked
    def __init__(
        self,
        model: Any = None,
        *,
        task: str | None = None,
        worker: str | None = None,
        label: str | None = None,
        gold: str | None = None,
        missing: Collection[str] = (),
        wide: bool | None = None,
        duplicates: Repeats = "last",
        refit: bool = True,
    ) -> None:
        super().__init__(streamable(model))
        check_choice("duplicates", duplicates, REPEATS)
        self._columns = {"task": task, "worker": worker, "label": label, "gold": gold}
        self._reading: dict[str, Any] = {"missing": items(missing), "wide": wide, "repeats": duplicates}
        self._refit = refit
        self.ignored = 0  # rows that changed nothing: without a task or worker, or deletions of unknown answers
        self._held = HeldLabels()
        self._Z: Floats = np.zeros((0, 0))  # (T, K) with spare capacity
        self._known: Learned | None = None
        self._fitted = self._turn = 0  # answers of the last fit from the start; the next task to refresh
        self._view: LabelsResult | None = None

    @property
    def em(self) -> EMModel[Any, Any]:
        return self.model  # type: ignore[return-value]

    @property
    def n_answers(self) -> int:
        """The number of answers held."""
        return self._held.pool.count

    def __repr__(self) -> str:
        tasks = int((self._held.pool.size > 0).sum())
        workers = 0 if self._known is None else int((self._known.rows.per_worker > 0).sum())
        return (
            f"LabelStream({self.model.name}: {self.n_answers} answers, {tasks} tasks, {workers} workers, "
            f"{len(self._held.classes)} classes)"
        )

    @checked
    def update(self, answers: Any, *, run: Run | None = None) -> Self:
        """Learn from a table with task, worker and label, or from `Labels`.

        An answer that is held already changes nothing, another label of the same worker for the same task replaces it,
        and a row without a label deletes it. A column `gold` has known labels of tasks; a table with task and gold only
        adds them. If a table is refused, nothing is changed.
        """
        kind = self._held.classes.type
        changes = read_changes(answers, self._columns, **self._reading, label_type=kind, source="this update")
        if changes is not None:
            self._refuse_weights(changes.extras)
            self._change(changes, run or Run())
        return self

    def remove(self, answers: Any) -> int:
        """Delete the answers listed in a table with task and worker; return how many of them are not held."""
        task, worker = read_removals(answers, self._columns, "this table")
        held = self._held
        rows = pl.DataFrame({"task": held.tasks.accepted(task), "worker": held.workers.accepted(worker)})
        rows = rows.drop_nulls().unique(maintain_order=True)
        before = self.ignored
        label = pl.Series("label", [None] * rows.height, dtype=held.classes.type or pl.String)
        changes = read_changes(rows.with_columns(label), {}, label_type=held.classes.type)
        if changes is not None:
            self._change(changes, Run())
        unknown, self.ignored = self.ignored - before, before
        return unknown

    @checked
    def result(self, *, run: Run | None = None) -> LabelsResult:
        """Return the result of all answers held. They are fitted from the start, so it does not depend on the order in
        which they came. The stream then goes on from this fit."""
        if run is not None and run.resume is not None:
            raise ParameterError("a stream has no checkpoints: call result() again without resume")
        if not self.n_answers:
            raise EmptyDataError("the stream holds no answers. Give it some with update")
        run = (run or Run()).begin()
        return self.em.built(*self._fit(run), run)

    @property
    def labels(self) -> pl.DataFrame:
        """The table `labels` of a result, by what was learned so far, without further iterations."""
        return self._present().labels

    @property
    def workers(self) -> pl.DataFrame:
        """The table `workers` of a result, by what was learned so far, without further iterations."""
        return self._present().workers

    def probabilities(self, task: Any) -> dict[Any, float]:
        """Return the probability of each class for a task, by what was learned so far."""
        posterior = self._asked(task)[1].posterior
        return dict(zip(self._held.classes.values, posterior.tolist(), strict=True))

    def decide(self, item: Any, probability: float = 0.95, min: int = 2, max: int = 7) -> Decision:
        """Return whether a task is settled: its label is gold, or it has at least `min` answers and the probability
        asked is reached. A task that is not settled by `max` answers is contested; otherwise, ask for more answers."""
        check_bounds(probability, min, max)
        gold = self._held.gold_of(item)
        if gold is None:
            return super().decide(item, probability, min, max)
        answers = self._held.count_of(item)
        return Decision(item, "settled", 0, (), 1.0, answers, f"The label {gold!r} is known (gold).")

    # Changes

    def _refuse_weights(self, extras: pl.DataFrame) -> None:
        if "weight" in extras.columns and not (to_numbers(extras["weight"]) == 1).all():
            raise DataError(
                f"these answers have weights (column 'weight'), which {self.model.name} does not use. Drop the column"
            )

    def _change(self, changes: Changes, run: Run) -> None:
        plan = planned(self._held, changes)
        self.ignored += plan.ignored
        if not len(plan.tasks):
            plan.keep_gold(self._held)
            return
        n = self.n_answers + plan.growth
        may = self._refit or n <= SMALL or n >= 2 * self.n_answers
        if self._known is None or plan.numbering[2].new or (may and self._is_due(n)):
            self._commit(plan)
            self._known = None
            if n:
                self._fit(run.begin())
            return
        held, K, W = self._held, len(self._held.classes), len(plan.numbering[1])
        others = self._in_turn(max(MIN_REFRESHED_TASKS, plan.n_changes), plan.tasks)
        changed = joined(plan.changed, held.pool.of(others), held.gold[others], len(plan.tasks))
        Z = np.concatenate([self._posterior_of(plan.tasks, K), self._Z[others]])
        how = Computing(K, n, run.threads, int(run.seed))
        known, Z = learn_change(self.em, self._known, changed._replace(Z=Z), W, how)
        self._commit(plan)
        self._known = known
        self._Z[np.concatenate([plan.tasks, others])] = Z

    def _commit(self, plan: Plan) -> None:
        plan.commit(self._held)
        self._Z = grown(self._Z, len(self._held.tasks))
        self._view = None

    def _is_due(self, n_answers: int) -> bool:
        return n_answers >= (GROWTH_SMALL if n_answers <= SMALL else GROWTH) * self._fitted

    @property
    def due(self) -> bool:
        """Whether a fit from the start is due: there are many more answers than at the last one."""
        return self.n_answers > 0 and self._is_due(self.n_answers)

    def _posterior_of(self, tasks: Ints, K: int) -> Floats:
        Z = np.zeros((len(tasks), K))
        old = tasks < len(self._held.tasks)
        Z[old] = self._Z[tasks[old]]
        return Z

    def _in_turn(self, count: int, but: Ints) -> Ints:
        """Return the next tasks to refresh, without those given."""
        total = len(self._held.tasks)
        found = (self._turn + np.arange(min(count, total))) % max(total, 1)
        self._turn = (self._turn + count) % max(total, 1)
        return np.setdiff1d(found, but)

    # Fits of all answers

    def _fit(self, run: Run) -> tuple[Labels, Any, Executor[Shard], Learnt]:
        """Fit all answers from the start, and go on from there: with ids in order, and without tasks, workers and
        classes that have no answers."""
        answers = self._held.ordered().answers
        crowd, shards = self.em.prepared(answers, run)
        learnt = self.em.learn(answers, crowd, shards, run)
        Z = np.concatenate(list(shards.each(_posterior))).astype(np.float64)
        self._adopt(answers, self.em.finish(crowd, learnt.params, shards), Z, run)
        return answers, crowd, shards, learnt

    def _narrowed(self, answers: Labels, workers: Ints) -> Any:
        """Return the parameters of the rows and workers of the answers held; `workers` are their numbers here."""
        assert self._known is not None
        rows, layout = self._known.rows, answers.layout
        number, _ = find_rows(rows, workers[layout.row_worker], layout.row_label)
        return narrow(self._known.params, Subset(number, workers, rows.n_rows, rows.n_workers))

    def _adopt(self, answers: Labels, params: Any, Z: Floats, run: Run) -> None:
        """Go on from a fit of all answers."""
        params = _in_double(params)
        shard = Shard.of(answers, Run(threads=run.threads, precision="double"))
        stats = self.em.statistics(shard, Local(Z), shard.shares(Z), params)
        self._held.adopt(answers)
        self._Z, self._known = Z, Learned(answers.layout.rows, stats, params)
        self._turn, self._view = 0, None
        self._fitted = answers.n_answers

    def _ready(self) -> Learned:
        """Return what is known; an interrupted fit is made up for."""
        if self._known is None and self.n_answers:
            self._fit(Run().begin())
        assert self._known is not None
        return self._known

    def _present(self) -> LabelsResult:
        """Return a result by what was learned so far."""
        if not self.n_answers:
            raise EmptyDataError("the stream holds no answers. Give it some with update")
        if self._view is None:
            self._ready()
            run = Run().begin()
            answers, tasks, workers, same_classes = self._held.ordered()
            if not same_classes:
                return self.result()
            params = self._narrowed(answers, workers)
            crowd, shards = self.em.prepared(answers, run)
            self.em.place(shards, self._Z[tasks])
            learnt = Learnt(params, self.em.prevalence(params), Trace(labels_changed=int), True)
            self._view = self.em.built(answers, crowd, shards, learnt, run)
        return self._view

    # Single tasks

    def _asked(self, task: Any) -> tuple[Asking, TaskView]:
        """Return a task that has answers, by what was learned so far, and what can be asked of it."""
        if self._held.number(task) < 0:
            raise UnknownIdError(f"task {task!r} has gold and no answers, so it has no probabilities yet")
        asking = Asking(self.em, self._ready())
        number = np.array([self._held.number(task)])  # a fit may have changed it
        answers, gold = self._held.pool.of(number), self._held.gold[number]
        return asking, asking.view(answers, gold, self._Z[number], self.n_answers)

    def _standing(self, item: Any) -> Standing:
        _, task = self._asked(item)
        count = len(task.answers.at)
        text = f"{count} answer{'' if count == 1 else 's'}"
        words = f"{text}, and {self._held.classes.values[task.label]!r} has a probability of"
        return Standing(count, float(task.posterior.max()), words)

    def _missing(self, item: Any, probability: float, most: int) -> int:
        asking, task = self._asked(item)
        return asking.missing(task, probability, most)

    def _worth_asking(self, item: Any) -> tuple[Any, ...]:
        asking, task = self._asked(item)
        return tuple(self._held.workers.values[j] for j in asking.worth_asking(task).tolist())

    # Files

    def _parts(self) -> Parts:
        parts = Parts()
        columns = {name: value for name, value in self._columns.items() if value is not None}
        parts.plain |= {"columns": columns, "reading": self._reading, "ignored": self.ignored, "fitted": self._fitted}
        parts.plain |= {"refit": self._refit, "turn": self._turn, "known": self._known is not None}
        store(parts, self._held)
        parts.add("Z", self._Z[: len(self._held.tasks)])
        if self._known is not None:
            parts.add("rows", self._known.rows)
            parts.add("params", self._known.params)
        return parts

    def _restore(self, stored: Stored) -> None:
        kinds = SAVED_STREAM | {"params": self.model.params_type, "rows": WorkerRows}
        if not stored.plain["known"]:
            del kinds["params"], kinds["rows"]
        values = {name: stored.get(name, kind) for name, kind in kinds.items()}
        stored.settle()
        flaw = contradiction(values, {*self._columns}, {*self._reading})
        if flaw:
            raise UnsoundError(flaw)
        self._fill(values)

    def _fill(self, values: dict[str, Any]) -> None:
        """Hold what was read from a file."""
        self._columns |= values["columns"]
        self._reading = values["reading"]
        self.ignored, self._fitted, self._refit, self._turn = (
            values[name] for name in ("ignored", "fitted", "refit", "turn")
        )
        self._held, self._Z = restore(values), values["Z"]
        if values["known"]:
            self._known = relearned(self.em, self._held, self._Z, values["rows"], values["params"])


def _in_double(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_in_double, value))
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


def _posterior(shard: Shard, local: Local) -> Floats:
    return local.Z
