"""Faults while running, in rarer places: R3, R7, R8 and R9 of the fault list."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_runs import WRITTEN, crowdwise  # noqa: F401 - a fixture is used by its name

import crowdwise as cw

DOUBLE = {"precision": "double", "threads": 1}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small simulated file of answers."""
    folder = tmp_path_factory.mktemp("crowd")
    cw.simulate.crowd("confusion", tasks=60, workers=10, classes=3, per_task=4, seed=2).save(folder)
    return folder / "answers.csv"


# ------------------------------------------------------------------------------------------- R3: signals while writing

SYNCED = """
import os
real, seen = os.fsync, []
def struck(handle):
    seen.append(handle)
    if len(seen) == {at}:
        os.kill(os.getpid(), {number})
    return real(handle)
os.fsync = struck
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, 4, 8])
def test_r3_a_signal_while_outputs_are_written_leaves_all_the_old_or_all_the_new(
    number: signal.Signals,
    at: int,
    answers: Path,
    crowdwise: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    folders = {}
    for model in ("majority-vote", "soft-vote"):
        folders[model] = tmp_path / model
        done = crowdwise("aggregate", answers, "--model", model, "--no-page", "--out", folders[model])
        assert done.status == 0, done.stderr
    old, new = ((folder / "labels.csv").read_bytes() for folder in folders.values())
    assert old != new
    out = folders["majority-vote"]
    words = ["aggregate", answers, "--model", "soft-vote", "--no-page", "--out", out]
    done = crowdwise(*words, before=SYNCED.format(at=at, number=number.value))
    assert done.status in (128 + number, -number), done.stderr
    assert "Traceback" not in done.stderr
    written = (out / "labels.csv").read_bytes()
    assert written in (old, new)
    assert cw.load(out).model.name == ("majority-vote" if written == old else "soft-vote")
    assert sorted(path.name for path in out.iterdir()) == sorted({*WRITTEN} - {"report.html"})


# ---------------------------------------------------------------------------------------- R7: two attempts of one task


def test_r7_two_attempts_of_a_task_of_spark_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A speculative twin, or a task that is tried again after its work was done: both give the same statistics, and
    leave the same state."""
    pa = pytest.importorskip("pyarrow")
    state = pytest.importorskip("crowdwise.spark.state")
    executor = pytest.importorskip("crowdwise.spark.executor")
    monkeypatch.setattr(state, "_home", lambda: tmp_path)

    def work(shard: Any, local: Any) -> tuple[Any, Any]:
        total = shard.values + (0 if local is None else local)
        return total, total.sum()

    part = SimpleNamespace(values=np.arange(4), subset=None)
    columns = {"number": pa.array([0], pa.int32()), "shard": pa.array([pickle.dumps((part, None))], pa.binary())}
    nothing = SimpleNamespace(value=())
    updates: tuple[Any, ...] = ()
    for version in (1, 2, 3):
        update = state.Update(version, work, nothing, None)
        call = executor.Updating(None, "key", lambda part, subset: part, "fit", updates, (), update)
        attempts = [
            pickle.loads(batch["found"][0].as_buffer())
            for _ in range(2)
            for batch in call(iter([pa.RecordBatch.from_pydict(columns)]))
        ]
        assert attempts == [(6 * version, False)] * 2
        updates = (*updates, update)


# ------------------------------------------------------------------------------------------------- R8: any partitions


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin", "majority-vote"])
def test_r8_any_number_of_partitions_from_1_to_200_gives_the_same(name: str) -> None:
    answers = cw.simulate.crowd("confusion", tasks=210, workers=12, classes=3, per_task=4, seed=3).answers
    model = cw.model(name, **({"max_iter": 3} if name != "majority-vote" else {}))
    whole = model.fit(answers, run=cw.Run(**DOUBLE))
    for shards in (1, 2, 3, 7, 16, 50, 99, 128, 199, 200):
        found = model.fit(answers, run=cw.Run(**DOUBLE, shards=shards))
        np.testing.assert_allclose(found.posterior, whole.posterior, rtol=0, atol=1e-9)
        assert found.labels["label"].equals(whole.labels["label"])
        assert found.labels["tie"].equals(whole.labels["tie"])


# ------------------------------------------------------------------------------------------------------- R9: the clock

JUMPING = """
import datetime, itertools, time
jumps = itertools.cycle([0, -10**6, 5 * 10**8, -(10**9), 1])
real_time, real_ns = time.time, time.time_ns
time.time = lambda: max(0.0, real_time() + next(jumps))
time.time_ns = lambda: max(0, real_ns() + next(jumps) * 10**9)
"""


@pytest.mark.parametrize("more", [[], ["--checkpoint-every", "0.001"]], ids=["", "checkpoints"])
def test_r9_a_clock_that_jumps_changes_no_output(
    more: list[str],
    answers: Path,
    crowdwise: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    for out, before in (("steady", ""), ("jumping", JUMPING)):
        done = crowdwise("aggregate", answers, "--out", tmp_path / out, "--no-page", *more, before=before)
        assert done.status == 0, done.stderr
    for name in ("labels.csv", "workers.csv", "tasks.csv"):
        assert (tmp_path / "jumping" / name).read_bytes() == (tmp_path / "steady" / name).read_bytes()
    assert cw.load(tmp_path / "jumping").trace.equals(cw.load(tmp_path / "steady").trace)


def test_r9_a_file_from_the_future_is_read(answers: Path, tmp_path: Path, command: Any) -> None:
    place = tmp_path / "answers.csv"
    place.write_bytes(answers.read_bytes())
    for when in (0, 2**32 + 5):
        os.utime(place, (when, when))
        assert command("aggregate", place, "--model", "majority-vote")[0] == 0
