"""Streams of labels: what they hold, what they learn, when they ask for more, and their files."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.engine import Checkpoint
from crowdwise.errors import (
    ChecksumError,
    ColumnError,
    DataError,
    DuplicateError,
    EmptyDataError,
    FileError,
    ParameterError,
    UnknownIdError,
)
from crowdwise.labels.em import Local
from crowdwise.labels.shard import Shard

MODELS = ("dawid-skene", "groups", "mace", "one-coin", "pooled", "tied")


def rows(*answers: tuple[Any, ...], names: tuple[str, ...] = ("task", "worker", "label")) -> pl.DataFrame:
    return pl.DataFrame(list(answers), schema=names, orient="row")


def streamed(frame: pl.DataFrame, model: Any = None, seed: int = 0, most: int = 500) -> cw.LabelStream:
    """Give answers to a stream in random order and in batches of random sizes."""
    rng, stream, at = np.random.default_rng(seed), cw.LabelStream(model), 0
    mixed = frame[rng.permutation(frame.height)]
    while at < mixed.height:
        size = int(rng.integers(1, most))
        stream.update(mixed[at : at + size])
        at += size
    return stream


def agreement(first: pl.DataFrame, second: pl.DataFrame) -> float:
    both = first.select("task", "label").join(second.select("task", other="label"), on="task")
    assert both.height == first.height == second.height
    return float((both["label"] == both["other"]).mean())  # type: ignore[arg-type]


def skill_difference(first: pl.DataFrame, second: pl.DataFrame) -> float:
    both = first.select("worker", "skill").join(second.select("worker", other="skill"), on="worker")
    assert both.height == first.height == second.height
    return float((both["skill"] - both["other"]).abs().mean())  # type: ignore[arg-type]


def held(stream: cw.LabelStream) -> dict[tuple[Any, Any], Any]:
    return (
        {}
        if not stream.n_answers
        else {(t, w): k for t, w, k in stream._held.ordered().answers.frame()[:, :3].iter_rows()}
    )


def difference_of_statistics(stream: cw.LabelStream) -> float:
    """The largest difference between the statistics held and those of all answers and posteriors held."""
    known, (answers, tasks, workers, _) = stream._known, stream._held.ordered()
    assert known is not None
    shard, params = Shard.of(answers, cw.Run(precision="double")), stream._narrowed(answers, workers)
    Z = stream._Z[tasks]
    wanted = stream.em.statistics(shard, Local(Z), shard.shares(Z), params)
    got = stream.em.renewed(known.stats, known.params)
    at = workers[answers.layout.row_worker] * len(stream._held.classes) + answers.layout.row_label
    place = known.rows.row_worker.astype(np.int64) * len(stream._held.classes) + known.rows.row_label
    found = [each if len(each) != len(place) else each[np.searchsorted(place, at)] for each in got]
    assert np.array_equal(known.rows.answers[np.searchsorted(place, at)], answers.layout.rows.answers)
    assert known.rows.answers.sum() == answers.n_answers
    return max(float(np.abs(a - b).max()) for a, b in zip(found, wanted, strict=True))


@pytest.fixture(scope="module")
def sim() -> cw.simulate.Crowd:
    return cw.simulate.crowd("confusion", tasks=400, workers=20, classes=3, per_task=6, accuracy=0.7, seed=2)


@pytest.mark.parametrize("model", MODELS)
def test_a_stream_learns_what_a_fit_of_all_answers_learns(
    model: str, sim: cw.simulate.Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crowdwise.streams.labels.GROWTH_SMALL", 1.1)
    if model == "groups":  # otherwise their number depends on a few answers
        sim = cw.simulate.crowd("groups", tasks=400, workers=20, classes=3, per_task=6, seed=2)
    frame = sim.answers.frame()
    batch = cw.aggregate(sim.answers, model)
    stream = streamed(frame[:2250], model).update(frame[2250:2300]).update(frame[2300:2400])
    assert stream._fitted < 2300, "the last answers were learned without a new fit"
    assert difference_of_statistics(stream) < 1e-9
    assert agreement(stream.labels, batch.labels) >= 0.99
    assert skill_difference(stream.workers, batch.workers) < 0.01
    result = stream.result()
    assert result.labels.equals(batch.labels)
    np.testing.assert_allclose(result.posterior, batch.posterior, atol=1e-12)
    np.testing.assert_allclose(result.workers["skill"], batch.workers["skill"], atol=1e-12)
    assert result.explain(frame["task"][0]).task == frame["task"][0]
    assert cw.next_tasks(result, 5)["ask"].sum() == 5


def test_a_fit_from_the_start_is_due_when_answers_have_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.streams.labels.SMALL", 100)
    sim = cw.simulate.crowd("one-coin", tasks=100, workers=10, classes=2, per_task=6, seed=5)
    frame = sim.answers.frame()
    waits, fits = cw.LabelStream("one-coin", refit=False), cw.LabelStream("one-coin")
    for stream, fitted in ((waits, 300), (fits, 380)):
        for start, stop in ((0, 300), (300, 370), (370, 380), (380, 400)):
            stream.update(frame[start:stop])
            assert stream.due == (stream is waits and stop >= 380)
        assert stream._fitted == fitted
    assert waits.result().labels.equals(fits.result().labels)
    assert not waits.due


def test_compiled_kernels_hold_the_same_statistics(compiled: Any, sim: cw.simulate.Crowd) -> None:
    stream = streamed(sim.answers.frame(), "pooled", most=600)
    assert difference_of_statistics(stream) < 1e-9
    assert agreement(stream.labels, cw.aggregate(sim.answers).labels) >= 0.99


@pytest.mark.parametrize("name", ["bluebirds", "dogs"])
def test_labelled_sets(name: str, shared_data: Path) -> None:
    answers = cw.read(shared_data / name / "answers.parquet", kind="labels", duplicates="last")
    frame = answers.frame().select("task", "worker", "label")
    for model in ("pooled", "one-coin"):
        stream, batch = streamed(frame, model, most=frame.height // 3), cw.aggregate(answers, model)
        assert agreement(stream.labels, batch.labels) >= 0.99
        assert skill_difference(stream.workers, batch.workers) < 0.01
        assert stream.result().labels.equals(batch.labels)


def test_answers_are_held_by_task_and_worker() -> None:
    stream = cw.LabelStream().update(rows((1, "a", "x"), (1, "b", "y"), (2, "a", "x")))
    stream.update(rows((1, "b", "x"), (2, "b", "y")))  # one replaced, one new
    assert held(stream) == {(1, "a"): "x", (1, "b"): "x", (2, "a"): "x", (2, "b"): "y"}
    stream.update(rows((2, "a", None), (9, "z", None)))
    assert held(stream) == {(1, "a"): "x", (1, "b"): "x", (2, "b"): "y"}
    assert stream.ignored == 1
    assert stream.remove({"task": [1, 1, 5], "worker": ["a", "nobody", "a"]}) == 2
    assert held(stream) == {(1, "b"): "x", (2, "b"): "y"}
    assert repr(stream) == "LabelStream(pooled: 2 answers, 2 tasks, 1 workers, 2 classes)"


def test_the_same_answers_again_change_nothing(sim: cw.simulate.Crowd) -> None:
    stream = streamed(sim.answers.frame())
    before, Z = stream._known, stream._Z.copy()
    stream.update(sim.answers).update(sim.answers.frame()[::-1])
    assert stream._known is before
    assert np.array_equal(stream._Z, Z)


def test_of_repeated_rows_the_last_counts() -> None:
    twice = rows((1, "a", "x"), (1, "b", "x"), (1, "a", "y"))
    assert held(cw.LabelStream().update(twice)) == {(1, "a"): "y", (1, "b"): "x"}
    assert held(cw.LabelStream(duplicates="first").update(twice)) == {(1, "a"): "x", (1, "b"): "x"}
    timed = twice.with_columns(timestamp=pl.Series([3, 2, 1]))
    assert held(cw.LabelStream().update(timed)) == {(1, "a"): "x", (1, "b"): "x"}
    deleted = rows((1, "b", "x"), (1, "a", "x"), (1, "a", None))
    assert held(cw.LabelStream().update(deleted)) == {(1, "b"): "x"}
    with pytest.raises(DuplicateError, match="row 1 and row 3"):
        cw.LabelStream(duplicates="error").update(twice)


def test_gold_is_obeyed_and_may_come_before_or_after_the_answers() -> None:
    stream = cw.LabelStream("one-coin").update(rows((1, "a", "x"), (1, "b", "x"), (2, "a", "x"), (2, "b", "y")))
    stream.update({"task": [1, 3], "gold": ["y", "y"]})
    assert stream.probabilities(1) == {"x": 0.0, "y": 1.0}
    assert stream.decide(3).status == "settled"
    decision = stream.decide(1)
    assert (decision.status, decision.reason) == ("settled", "The label 'y' is known (gold).")
    stream.update(rows((3, "a", "x")))  # its gold was waiting
    assert stream.probabilities(3) == {"x": 0.0, "y": 1.0}
    stream.update(rows((3, "a", None))).update(rows((3, "b", "x")))  # without answers it waits again
    assert stream.probabilities(3)["y"] == 1.0
    batch = cw.aggregate(stream._held.ordered().answers.frame(), "one-coin", gold={1: "y", 3: "y"})
    np.testing.assert_allclose(stream.result().posterior, batch.posterior, atol=1e-12)
    with pytest.raises(DataError, match="two different labels for task 1"):
        stream.update({"task": [1, 1], "gold": ["x", "y"]})


def test_new_classes_may_appear_and_disappear() -> None:
    stream = cw.LabelStream().update(rows((1, "a", "m"), (1, "b", "m"), (2, "a", "z"), (2, "b", "z")))
    stream.update(rows((3, "a", "c"), (3, "b", "c")))
    assert list(stream.probabilities(3)) == ["c", "m", "z"]
    stream.update(rows((2, "a", None), (2, "b", None)))
    result = stream.result()
    assert result.classes.to_list() == ["c", "m"]
    assert result.answers.tasks.to_list() == [1, 3]
    assert list(stream.probabilities(3)) == ["c", "m"]


@pytest.mark.parametrize(
    "ids", [[1, 2], ["1", "2"], [1.5, 2.5], [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], [False, True]]
)
def test_ids_come_back_as_they_went_in(ids: list[Any], tmp_path: Path) -> None:
    stream = cw.LabelStream()
    for n in (0, 1):
        stream.update({"task": [ids[n]] * 2, "worker": ids, "label": [ids[n]] * 2})
    stream.save(tmp_path)
    for each in (stream, cw.LabelStream.load(tmp_path)):
        assert each.result().labels.select("task", "label").rows() == [(i, i) for i in sorted(ids)]


def test_ids_of_another_type_are_refused_and_nothing_changes() -> None:
    stream = cw.LabelStream().update(rows((1, "a", "x"), (2, "a", "y")))
    before = held(stream)
    for bad, text in (
        (rows(("3", "a", "x")), r"the task ids of this update are String, for instance '3'.* Int64, for instance 1"),
        (rows((3, 7, "x")), "the worker ids of this update are Int64"),
        (rows((3, "a", 5)), "the class ids of this update are Int64"),
    ):
        with pytest.raises(DataError, match=text):
            stream.update(bad)
    stream.update(rows((3, "a", "x")).cast({"task": pl.Int8}))  # whole numbers are one type
    assert held(stream) == before | {(3, "a"): "x"}


def test_what_cannot_be_learned_is_refused() -> None:
    for name in ("glad", "majority-vote"):
        with pytest.raises(ParameterError, match=f"{name} cannot learn from a stream"):
            cw.LabelStream(name)
    with pytest.raises(ParameterError, match="give the name, class or instance of a model: pooled, "):
        cw.LabelStream(3)
    with pytest.raises(ParameterError, match="duplicates is 'each'"):
        cw.LabelStream(duplicates="each")  # type: ignore[arg-type]
    stream = cw.LabelStream(cw.DawidSkene(smoothing=0.1))
    with pytest.raises(EmptyDataError, match="the stream holds no answers"):
        stream.result()
    with pytest.raises(ColumnError, match=r"1 answer\(s\) in this update have no worker, the first at row 2"):
        stream.update(rows((1, "a", "x"), (1, None, "x")))
    with pytest.raises(DataError, match="these answers have weights"):
        stream.update(rows((1, "a", "x", 2.0), names=("task", "worker", "label", "weight")))
    with pytest.raises(ParameterError, match="a stream has no checkpoints"):
        stream.result(run=cw.Run(resume=Checkpoint({})))
    assert stream.update(rows().cast(pl.String)).update([]).n_answers == 0


def test_other_columns_are_kept_with_the_answers() -> None:
    names = ("task", "worker", "label", "seconds")
    stream = cw.LabelStream().update(rows((2, "b", "y", 5.0), (1, "a", "x", 3.0), names=names))
    stream.update(rows((1, "b", "x"))).update(rows((3, "a", "y", 9), names=names))
    frame = stream.result().answers.frame()
    assert frame.select("task", "worker", "seconds").rows() == [
        (1, "a", 3.0), (1, "b", None), (2, "b", 5.0), (3, "a", 9.0),
    ]  # fmt: skip


def test_decisions(sim: cw.simulate.Crowd) -> None:
    stream = streamed(sim.answers.frame(), "dawid-skene")
    best = stream.workers.sort("skill", descending=True)["worker"].to_list()
    agreed = rows(*(("new", worker, "c1") for worker in best[:3]))
    stream.update(agreed)
    settled = stream.decide("new")
    assert (settled.status, settled.ask, settled.of, settled.answers) == ("settled", 0, (), 3)
    assert "3 answers, and 'c1' has a probability of" in settled.reason
    with pytest.raises(UnknownIdError, match="no task 'nwe' in the stream"):
        stream.decide("nwe")
    stream.update(rows(("split", best[0], "c1"), ("split", best[1], "c2")))
    ask = stream.decide("split", probability=0.9)
    assert ask.status == "ask"
    assert not {best[0], best[1]} & set(ask.of)
    assert len(ask.of) > 3
    assert stream.decide("split", probability=0.99).ask >= ask.ask >= 1
    assert stream.decide("split", max=2).status == "contested"
    assert stream.decide("split") == stream.decide("split")
    with pytest.raises(ParameterError, match="min is 9 and max is 7"):
        stream.decide("split", min=9)
    with pytest.raises(DataError, match="not the id of a task"):
        stream.decide(["split"])


def test_the_best_workers_are_asked_first() -> None:
    sim = cw.simulate.crowd("one-coin", tasks=300, workers=12, classes=2, per_task=5, seed=4)
    stream = cw.LabelStream("one-coin").update(sim.answers)
    stream.update(rows(("new", "w01", "c1")))
    named = stream.decide("new").of
    skill = dict(stream.workers.select("worker", "skill").iter_rows())
    found = [skill[worker] for worker in named]
    assert "w01" not in named
    assert found[0] == max(value for worker, value in skill.items() if worker != "w01")
    assert min(found) > 0.5


@pytest.mark.parametrize("model", MODELS)
def test_a_stream_is_saved_and_goes_on(model: str, sim: cw.simulate.Crowd, tmp_path: Path) -> None:
    frame = sim.answers.frame()
    one = streamed(frame[:1500], model)
    one.update({"task": ["later"], "gold": ["c1"]})
    path = one.save(tmp_path / "s.crowdwise")
    two = cw.LabelStream.load(path)
    assert held(two) == held(one)
    assert two.model == one.model
    for stream in (one, two):
        stream.update(frame[1500:1600]).update(rows(("later", "w01", "c2"), ("later", "w02", "c2")))
    assert difference_of_statistics(two) < 1e-9
    np.testing.assert_allclose(two._Z[: len(two._held.tasks)], one._Z[: len(one._held.tasks)], atol=1e-9)
    assert two.probabilities("later")["c1"] == 1.0
    assert two.decide(frame["task"][0]) == one.decide(frame["task"][0])


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    stream = cw.LabelStream().update(rows((1, "a", "x"), (2, "a", "y")))
    path = stream.save(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ChecksumError, match="not a complete saved stream"):
        cw.LabelStream.load(tmp_path)
    stream.result().save(tmp_path / "r.crowdwise")
    with pytest.raises(ChecksumError, match="contains a saved result, not a saved stream"):
        cw.LabelStream.load(tmp_path / "r.crowdwise")
    with pytest.raises(FileError, match="no saved stream"):
        cw.LabelStream.load(tmp_path / "nowhere")


def test_an_interrupted_fit_is_made_up_for(sim: cw.simulate.Crowd) -> None:
    from crowdwise.errors import Interrupted

    stream = cw.LabelStream()
    with pytest.raises(Interrupted):
        stream.update(sim.answers, run=cw.Run(stop=lambda: True))
    assert stream.n_answers == sim.answers.n_answers
    assert stream.probabilities(sim.answers.tasks[0])
    assert stream.result().labels.equals(cw.aggregate(sim.answers).labels)
