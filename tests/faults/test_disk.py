"""F10, R4: files that change while they are read, and disks that fail while they are. `tests/injection` walks through
all calls; these are the failures that it found."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.cli import demo
from crowdwise.engine import Run
from crowdwise.errors import FileError
from crowdwise.io import large, opening, stored, tables
from crowdwise.result.outputs import LISTED, Outputs

ROWS = "task,worker,label\n" + "".join(f"t{n % 9},w{n % 4},{'ab'[n % 2]}\n" for n in range(36))


def meanwhile(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, change: Any) -> None:
    """Let something happen after a function has done its work."""
    real = getattr(place, name)

    def changed(*given: Any, **named: Any) -> Any:
        found = real(*given, **named)
        change()
        return found

    monkeypatch.setattr(place, name, changed)


@pytest.mark.parametrize("how", ["grows", "is replaced"])
@pytest.mark.parametrize("role", ["gold", "features"])
def test_f10_a_table_besides_the_answers_that_changes_is_refused(
    role: str, how: str, table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = table("task,label\nt1,a\n", "more.csv")

    def change() -> None:
        if how == "grows":
            with file.open("a") as more:
                more.write("t2,b\n")
        else:
            (tmp_path / "other").write_text("task,label\nt1,b\nt2,a\n")
            os.replace(tmp_path / "other", file)

    meanwhile(monkeypatch, tables, "_bytes", change)
    with pytest.raises(FileError, match=r"more\.csv was changed while it was read\. Read it again when it is complete"):
        cw.read(table(ROWS), gold=file) if role == "gold" else cw.read_features(file)


def test_f10_a_table_that_is_split_into_parts_and_grows_is_refused(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = table(ROWS)

    def grow() -> None:
        with file.open("a") as more:
            more.write("t9,w1,a\n")

    monkeypatch.setattr("crowdwise.io.too_large", lambda *_: True)
    meanwhile(monkeypatch, large, "_planned", grow)
    with pytest.raises(FileError, match=r"answers\.csv was changed while it was read"):
        cw.read(file, memory="500MB", scratch=tmp_path / "out")
    assert not (tmp_path / "out" / stored.PARTS).exists()


def test_f10_a_pipe_has_no_time_of_change(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    seen = opening.Unchanged([tmp_path / "pipe", tmp_path / "absent"])
    os.utime(tmp_path / "pipe", ns=(1, 1))
    seen.check()


def fail(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EIO, "Input/output error")


def test_r4_an_export_whose_beginning_cannot_be_read_is_not_taken_for_a_table(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cw.convert(table(ROWS), tmp_path / "tasks.json", "label-studio")
    real, calls = opening.open_bytes, list[int]()

    def once(*given: Any) -> Any:
        calls.append(1)
        return fail() if len(calls) == 1 else real(*given)

    monkeypatch.setattr(opening, "open_bytes", once)
    with pytest.raises(FileError, match=r"cannot read .*tasks\.json: Input/output error\. Check the name"):
        cw.read(tmp_path / "tasks.json")
    assert cw.read(tmp_path / "tasks.json").n_answers == 36


def test_r4_a_full_disk_is_noticed_when_arrays_are_kept(tmp_path: Path) -> None:
    """The head of the file fits, the array does not; numpy would see that when it closes the file, and not say it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150, before[1]))
    try:
        with pytest.raises(FileError, match=r"cannot write .*: File too large\. Check .* disk is not full"):
            stored.save_array(tmp_path / "array.npy", np.arange(9))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "array.npy").exists()


def test_r4_parts_that_the_disk_does_not_give_are_named(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdwise.io.too_large", lambda *_: True)
    answers = cw.read(table(ROWS), memory="500MB")
    real = np.load
    for mode in ("r", "r+"):
        monkeypatch.setattr(
            np, "load", lambda *_, mode=mode, **how: (fail if how.get("mmap_mode") == mode else real)(*_, **how)
        )
        with pytest.raises(FileError, match=r"cannot read .*part-00000: Input/output error\. Check the name"):
            cw.aggregate(answers, "dawid-skene")


def test_r4_a_list_of_outputs_that_cannot_be_read_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str) -> None:
        with Outputs(tmp_path) as outputs:
            (outputs.new / name).write_text("x")
            outputs.publish()

    run("old.csv")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        with pytest.raises(FileError, match=r"cannot write .*: Input/output error"):
            run("new.csv")
    assert sorted(each.name for each in tmp_path.iterdir()) == [LISTED, "old.csv"]
    run("new.csv")
    assert sorted(each.name for each in tmp_path.iterdir()) == [LISTED, "new.csv"]


def test_r4_watch_reads_a_file_again_that_the_disk_did_not_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from crowdwise.cli.options import WatchedFolder
    from crowdwise.cli.watch import Watch, Watcher

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(ROWS)
    watch = Watch(source=WatchedFolder(file=str(tmp_path / "in")), out=tmp_path / "out", run=Run())
    watcher = Watcher(watch, Outputs(watch.out))
    watcher.look()
    with monkeypatch.context() as patch:
        patch.setattr(tables, "_bytes", fail)
        assert [watcher.take(path) for path in watcher.look()] == [True]
        assert "a.csv was not used: cannot read" in capsys.readouterr().err
        assert [watcher.take(path) for path in watcher.look()] == [False], "the same again is not reported again"
        assert capsys.readouterr().err == ""
    assert [watcher.take(path) for path in watcher.look()] == [True]
    assert (watcher.refused, watcher.look()) == ({}, [])


def test_r4_a_failure_that_no_command_expects_is_a_sentence(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", fail)
    status, _, err = command("aggregate", "answers.csv", "--out", "out")
    assert status == 1
    assert err == "error: cannot use a file: Input/output error. Check the disk, the name and the permissions\n"


def test_r4_the_demonstration_is_one_set_of_outputs(tmp_path: Path, command: Any, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(demo, "aggregate", fail)
        assert command("demo", "--out", tmp_path / "out")[0] == 1
    assert not (tmp_path / "out").exists()
    assert command("demo", "--out", tmp_path / "out")[0] == 0
    words = ["aggregate", tmp_path / "out" / "answers.csv", "--no-page", "--out", tmp_path / "out"]
    assert command(*words)[0] == 0
    assert {"answers.csv", "truth.csv"} <= {each.name for each in (tmp_path / "out").iterdir()}
    assert cw.load(tmp_path / "out").answers.intake.path == str(tmp_path / "out" / "answers.csv")
