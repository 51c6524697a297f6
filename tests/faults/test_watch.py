"""`crowdwise watch` with bad files, files in the making, kills and restarts."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw
from crowdwise.engine import Run, Stream
from crowdwise.errors import ChecksumError, ParameterError
from crowdwise.result.outputs import Outputs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("crowdwise.cli.watch.ONCE_PAUSE", 0.01)
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def once(folder: Path, command: Any) -> Callable[..., str]:
    """Run `crowdwise watch in --out out --once ...`, and return its messages."""

    def run(*words: object, status: int = 0) -> str:
        left, out, err = command("watch", "in", "--out", "out", "--once", *words)
        assert (left, out) == (status, ""), err
        return str(err)

    return run


def put(folder: Path, name: str, *rows: str, head: str = "task,worker,label") -> Path:
    path = folder / name
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


FIRST = ("1,ann,cat", "1,bob,cat", "2,ann,dog", "2,bob,cat")
SECOND = ("2,cid,dog", "1,cid,cat", "1,bob,", "3,ann,dog")  # bob's answer is taken back


def check_outputs(out: Path, *parts: tuple[str, ...]) -> None:
    """The outputs are those of all answers."""
    rows = {tuple(row.split(",")[:2]): row.split(",")[2] for part in parts for row in part}
    answers = pl.DataFrame(
        [(*key, label) for key, label in rows.items() if label], ["task", "worker", "label"], orient="row"
    )
    wanted = cw.aggregate(answers)
    for name in ("labels", "workers", "tasks"):
        expected = out / f"expected-{name}.csv"
        wanted.tables()[name].write_csv(expected)
        assert (out / f"{name}.csv").read_text() == expected.read_text()
        expected.unlink()
    assert cw.LabelStream.load(out).n_answers == answers.height


def test_a_folder_that_was_followed_is_not_read_as_answers(folder: Path, once: Any, command: Any) -> None:
    (folder / "votes.csv").write_text("task,worker,label\nt1,ann,x\n")
    once()
    said = "error: no saved result at out/result.crowdwise: No such file or directory. "
    advice = "In Python, load of crowdwise.LabelStream or crowdwise.ClickStream loads it"
    assert command("workers", "out")[::2] == (1, f"{said}The folder has a saved stream. {advice}\n")


def test_files_are_read_once_and_a_later_run_goes_on(folder: Path, once: Any) -> None:
    put(folder, "a.csv", *FIRST)
    assert "LabelsResult(pooled: 2 tasks, 2 workers" in once()
    check_outputs(Path("out"), FIRST)
    before = (Path("out") / "labels.csv").stat().st_mtime_ns
    assert "going on from out/stream.crowdwise: LabelStream(pooled: 4 answers" in once()
    assert (Path("out") / "labels.csv").stat().st_mtime_ns == before, "nothing new, nothing written"
    put(folder, "b.csv", *SECOND)
    assert "from 2 files" in once()
    check_outputs(Path("out"), FIRST, SECOND)
    put(folder, "a.csv", "1,ann,dog", *FIRST[1:])  # a file that changed is read again
    once()
    labels = cw.LabelStream.load("out").result().answers.frame()
    assert labels.filter(task="1", worker="ann")["label"].item() == "dog"


def test_bad_files_are_reported_skipped_and_tried_again_when_they_change(folder: Path, once: Any) -> None:
    put(folder, "a.csv", *FIRST)
    put(folder, "bad.csv", "1,2", head="colour,shape")
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    (folder / "empty.csv").write_text("")
    put(folder, ".hidden.csv", "9,ann,cat")
    put(folder, "half.csv.part", "9,ann,cat")
    put(folder, "half.csv.tmp", "9,ann,cat")
    said = once()
    assert "bad.csv was not used: no column 'task' in" in said
    assert "Use --task COLUMN" in said
    check_outputs(Path("out"), FIRST)
    listed = pl.read_csv(Path("out") / "problems.csv")
    assert listed["file"].sort().to_list() == ["bad.csv", "broken.parquet", "empty.csv"]
    assert "was not used" not in once(), "not tried again as it is"
    put(folder, "bad.csv", *SECOND)
    (folder / "broken.parquet").unlink()
    once()
    check_outputs(Path("out"), FIRST, SECOND)
    assert pl.read_csv(Path("out") / "problems.csv")["file"].sort().to_list() == ["broken.parquet", "empty.csv"]


def test_f6_a_file_refused_for_its_expanded_size_is_read_with_a_larger_limit(folder: Path, once: Any) -> None:
    put(folder, "a.csv", "t1,ann,x", "t1,bob,x")
    text = b"task,worker,label\nt2,ann,y\nt2,bob,y\n" + b"\n" * 200_000
    (folder / "b.csv.gz").write_bytes(gzip.compress(text))
    assert "b.csv.gz was not used: b.csv.gz expands to more than" in once("--max-expanded", "100KB")
    assert "b.csv.gz" not in once("--max-expanded", "100KB"), "nothing has changed"
    said = once("--max-expanded", "1MB")
    assert "2 tasks" in said
    assert "from 2 files" in said
    assert not Path("out/problems.csv").exists()
    assert "Give the same ones, or another --out" in once("--max-expanded", "1MB", "--missing", "NA", status=2)


def test_a_bad_first_file_does_not_decide_the_kind(folder: Path) -> None:
    from crowdwise.cli.options import WatchedFolder
    from crowdwise.cli.watch import Watch, Watcher

    watcher = Watcher(Watch(source=WatchedFolder(file=str(folder)), out=Path("out"), run=Run()), Outputs(Path("out")))
    path = put(folder, "a.csv", "1,2", head="colour,shape")
    watcher.look()
    watcher.take(path)
    assert watcher.stream is None
    assert list(watcher.refused) == ["a.csv"]


def test_a_file_is_taken_when_it_has_stopped_growing(folder: Path) -> None:
    from crowdwise.cli.options import WatchedFolder
    from crowdwise.cli.watch import Watch, Watcher

    watcher = Watcher(Watch(source=WatchedFolder(file=str(folder)), out=Path("out"), run=Run()), Outputs(Path("out")))
    path = put(folder, "a.csv", *FIRST[:2])
    assert watcher.look() == []
    put(folder, "a.csv", *FIRST)
    assert watcher.look() == [], "it has changed since the last look"
    assert watcher.look() == [path]
    watcher.take(path)
    assert watcher.look() == []
    os.utime(path, ns=(1, 1))
    assert [watcher.look(), watcher.look()] == [[], [path]]


def test_gold_and_columns_are_given_as_options(folder: Path, once: Any) -> None:
    put(folder, "a.csv", "1,ann,cat", "1,bob,cat", "2,ann,dog", head="item,rater,verdict")
    put(folder.parent, "gold.csv", "1,dog", "2,dog", head="task,label")
    once("--task", "item", "--worker", "rater", "--label", "verdict", "--gold", "gold.csv", "--model", "one-coin")
    assert pl.read_csv("out/labels.csv")["label"].to_list() == ["dog", "dog"]
    said = once("--task", "item", "--worker", "rater", "--label", "answer", status=2)
    assert "out/stream.crowdwise was begun with the model one-coin and the options" in said
    assert "Give the same ones, or another --out" in said


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["--every", "0"], 2, "--every is 0.0; it must be a number of seconds above 0"),
        (["--kind", "pairs"], 2, "--kind is 'pairs'; watch takes labels or points"),
        (["--model", "pair-vote"], 2, "pair-vote is a model of pairs; watch takes labels or points"),
        (["--model", "glad"], 2, "glad cannot learn from a stream"),
        (["--kind", "labels", "--duplicates", "each"], 2, "duplicates is 'each'; it can be 'last', 'first' or 'error'"),
        (["--anonymous", "each"], 2, "--anonymous does not apply"),
        (["--gold", "nowhere.csv"], 1, "--gold nowhere.csv: there is no such file"),
        (["--out", "in"], 2, "--out is the watched folder itself"),
        (["--out", "file"], 1, "--out file is a file; name a folder"),
    ],
)
def test_wrong_usage_is_refused(folder: Path, command: Any, words: list[str], status: int, text: str) -> None:
    Path("file").write_text("")
    put(folder, "a.csv", *FIRST)
    left, _, err = command("watch", "in", "--once", *([] if "--out" in words else ["--out", "out"]), *words)
    assert (left, text in err) == (status, True), err


def test_a_truncated_or_foreign_stream_file_is_not_overwritten(folder: Path, once: Any) -> None:
    put(folder, "a.csv", *FIRST)
    once()
    path = Path("out/stream.crowdwise")
    data = path.read_bytes()
    path.write_bytes(data[:-100])
    assert "is not a complete saved stream" in once(status=1)
    assert path.read_bytes() == data[:-100]
    cw.LabelStream().update({"task": [1], "worker": ["a"], "label": ["x"]}).save("out")
    assert "was not written by crowdwise watch, so it is not changed" in once(status=1)


def test_all_answers_may_be_deleted(folder: Path, once: Any) -> None:
    put(folder, "a.csv", "1,ann,cat")
    once()
    put(folder, "b.csv", "1,ann,")
    assert "no results: the stream holds no answers" in once()
    assert cw.LabelStream.load("out").n_answers == 0


def test_clicks_are_followed_too(folder: Path, once: Any) -> None:
    points = cw.simulate.clicks("E", seed=1).points
    frame, workers = points.frame(), points.workers.to_list()
    for n, some in enumerate((workers[:8], workers[8:])):
        frame.filter(pl.col("worker").is_in(some)).select("image", "worker", "x", "y").write_csv(folder / f"{n}.csv")
        once("--box", "1,0,4,5")
    assert pl.read_csv("out/objects.csv").height == 10
    assert "ClickStream" in repr(cw.ClickStream.load("out"))


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "crowdwise", "watch", "in", "--out", "out", "--every", "0.1", *words]
    return subprocess.Popen(line, cwd=folder.parent, stderr=subprocess.PIPE, text=True)


def wait_for(path: Path, text: str = "") -> None:
    end = time.monotonic() + 60
    while not (path.exists() and text in path.read_text(errors="replace")):
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.05)


def test_a_killed_watch_goes_on_and_a_signal_ends_it_cleanly(folder: Path) -> None:
    put(folder, "a.csv", *FIRST)
    process = started(folder)
    wait_for(Path("out/labels.csv"))
    process.kill()  # it may be writing the stream
    process.communicate()
    put(folder, "b.csv", *SECOND)
    process = started(folder)
    try:
        wait_for(Path("out/tasks.csv"), "\n3,")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "stopped; all files that were read are in the results" in said
    check_outputs(Path("out"), FIRST, SECOND)
    assert not [path.name for path in Path("out").iterdir() if path.name.startswith(".")]


def test_a_stream_of_another_kind_is_refused(folder: Path) -> None:
    path = cw.LabelStream().update({"task": [1], "worker": ["a"], "label": ["x"]}).save("here")
    if issubclass(cw.ClickStream, Stream):
        with pytest.raises(ChecksumError, match=r"contains a LabelStream; load it with crowdwise.LabelStream"):
            cw.ClickStream.load(path)
    with pytest.raises(ParameterError, match="model is"):
        cw.LabelStream(cw.ClickMixture())
