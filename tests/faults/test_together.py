"""The outputs of a run appear together or not at all: R1, R4 and R6 of the fault list."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import FileError
from crowdwise.result import outputs as module
from crowdwise.result.outputs import LISTED, LOCK, READY, Outputs, settle, together
from crowdwise.simulate import labels as simulated

OLD = {"labels.csv": "old labels", "groups.csv": "old groups", "tables-1/labels/part.parquet": "old part"}
NEW = {"labels.csv": "new labels", "workers.csv": "new workers", "tables-2/labels/part.parquet": "new part"}
OWN = {"notes.txt": "of the user", "data/more.txt": "of the user, too"}


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def seen(folder: Path) -> dict[str, str]:
    """The files in a folder, without the list of outputs."""
    files = {str(each.relative_to(folder)): each for each in folder.rglob("*") if each.is_file()}
    return {name: each.read_text() for name, each in files.items() if name != LISTED}


def published(folder: Path, files: dict[str, str], **options: Any) -> list[Path]:
    with Outputs(folder) as outputs:
        put(outputs.new, files)
        return outputs.publish(**options)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder with the outputs of a run, and files of the user."""
    put(tmp_path / "out", OWN)
    published(tmp_path / "out", OLD)
    assert seen(tmp_path / "out") == OLD | OWN
    return tmp_path / "out"


def test_r1_a_run_replaces_the_outputs_of_the_last_one_and_nothing_else(out: Path) -> None:
    (out / "checkpoint.crowdwise").write_text("of this run")
    files = published(out, NEW, without=["checkpoint.crowdwise", "never.csv"])
    assert files == [out / "labels.csv", out / "tables-2", out / "workers.csv"]
    assert seen(out) == NEW | OWN
    assert sorted(json.loads((out / LISTED).read_text())["files"]) == sorted(NEW)
    assert not (out / "tables-1").exists()


def test_r1_a_block_without_outputs_leaves_no_trace(out: Path, tmp_path: Path) -> None:
    def broken() -> None:
        with Outputs(out) as outputs:
            put(outputs.new, NEW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert seen(out) == OLD | OWN
    with Outputs(tmp_path / "never" / "made"):
        pass
    assert not (tmp_path / "never").exists()


class Killed(BaseException):
    """Stands for a signal that ends the process at once."""


STEPS = [(os, "replace"), (os, "rmdir"), (os, "unlink"), (os, "fsync"), (module, "_write_json"), (module, "_discard")]


def strike(monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException, times: int = 1) -> list[str]:
    """Let the step of a number fail, before it is done; return the list of steps."""
    steps: list[str] = []

    def double(name: str, real: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            steps.append(name)
            if at < len(steps) <= at + times:
                raise error
            return real(*given, **named)

        return step

    for place, name in STEPS:
        monkeypatch.setattr(place, name, double(name, getattr(place, name)))
    return steps


def test_r1_a_kill_at_any_step_leaves_the_old_or_the_new_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for at in range(1000):
        folder = tmp_path / str(at)
        put(folder, OWN)
        published(folder, OLD)
        outputs = Outputs(folder).__enter__()
        put(outputs.new, NEW)
        with monkeypatch.context() as patch:
            steps = strike(patch, at, Killed())
            try:
                outputs.publish()
            except Killed:
                pass
            else:
                break
        committed = (folder / READY).exists() or seen(folder).get("labels.csv") == "new labels"
        outputs.lock.file.close()  # the end of the process
        assert (folder / LOCK).exists()
        settle(folder)
        assert seen(folder) == (NEW if committed else OLD) | OWN, steps[at]
        assert together(folder, *(NEW if committed else OLD))
        assert not [each for each in folder.iterdir() if each.name.startswith(".")]
        found.append(committed)
    assert found == sorted(found)
    assert True in found
    assert False in found
    assert len(found) == len(steps)


def test_r1_an_interruption_while_outputs_are_put_in_place_finishes_them(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def replace(old: Any, new: Any) -> None:
        real(old, new)
        if Path(new).name == "labels.csv":
            monkeypatch.setattr(os, "replace", real)
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        published(out, NEW)
    assert seen(out) == NEW | OWN


@pytest.mark.parametrize("times", [1, 10**6], ids=["once", "from then on"])
def test_r4_an_error_at_any_step_leaves_the_old_or_the_new_set(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = 0
    for at in range(1000):
        folder = tmp_path / str(at)
        put(folder, OWN)
        published(folder, OLD)
        with monkeypatch.context() as patch:
            steps = strike(patch, at, OSError(5, "Input/output error"), times)
            problem = ""
            try:
                published(folder, NEW)
            except FileError as error:
                problem = str(error)
        assert problem == "" or problem.startswith(f"cannot write {folder}: Input/output error")
        if times > 1:
            settle(folder)  # while nothing works, nothing can be removed
        now = seen(folder)
        assert now == (NEW | OWN if "new labels" in now.values() else OLD | OWN), (at, steps[at])
        assert not [each for each in folder.iterdir() if each.name.startswith(".")], (at, steps[at])
        complete += "new labels" in now.values()
        if at >= len(steps):
            assert problem == ""
            break
    assert 1 < complete < at


def test_r6_a_second_run_is_refused_and_told_who_is_at_work(out: Path) -> None:
    with Outputs(out) as outputs:
        put(outputs.new, NEW)
        with pytest.raises(FileError, match=rf"out is in use by another run \(process {os.getpid()}\)\. Wait until"):
            published(out, NEW)
        settle(out)  # as readers do; it leaves the run alone
        outputs.publish()
    assert seen(out) == NEW | OWN


def test_r6_the_lock_of_a_dead_process_is_no_obstacle(out: Path) -> None:
    code = """if 1:
        import os, sys
        from pathlib import Path
        from crowdwise.result.outputs import Outputs
        outputs = Outputs(Path(sys.argv[1])).__enter__()
        (outputs.new / "labels.csv").write_text("half")
        os._exit(9)
    """
    assert subprocess.run([sys.executable, "-c", code, str(out)], timeout=60).returncode == 9
    assert len([each for each in out.iterdir() if each.name.startswith(".")]) == 2
    published(out, NEW)
    assert seen(out) == NEW | OWN


def test_r6_two_commands_into_one_folder_do_not_mix(tmp_path: Path, command: Any) -> None:
    cw.simulate.crowd(tasks=20, workers=5, seed=1).save(tmp_path)
    words = ["aggregate", tmp_path / "answers.csv", "--model", "majority-vote", "--no-page", "--out", tmp_path / "out"]
    with Outputs(tmp_path / "out"):
        status, _, err = command(*words)
        assert (status, f"out is in use by another run (process {os.getpid()})" in err) == (1, True)
        assert not (tmp_path / "out" / "labels.csv").exists()
    assert command(*words)[0] == 0
    assert together(tmp_path / "out", "labels.csv", "workers.csv", "tasks.csv", "result.crowdwise")


def test_r1_loading_finishes_what_a_killed_run_has_left(tmp_path: Path) -> None:
    old, new = (cw.aggregate(cw.Labels(["t", "t"], ["a", "b"], [label] * 2), "majority-vote") for label in "xy")
    old.save(tmp_path)
    new.save(tmp_path / READY)
    assert cw.load(tmp_path).labels["label"].to_list() == ["y"]
    assert [each.name for each in tmp_path.iterdir()] == ["result.crowdwise"]


def test_r1_loading_removes_what_killed_processes_left_half_written(tmp_path: Path) -> None:
    result = cw.aggregate(cw.Labels(["t", "t"], ["a", "b"], ["x", "x"]), "majority-vote")
    result.save(tmp_path)
    gone = subprocess.Popen(["true"])
    gone.wait()
    dead, alive = (tmp_path / f".crowdwise-a.csv.{pid}.tmp" for pid in (gone.pid, os.getpid()))
    others = [tmp_path / name for name in (f".a.csv.{gone.pid}.tmp", ".crowdwise-a.tmp", f".crowdwise-a.{10**30}.tmp")]
    for each in (dead, alive, *others):
        each.write_text("half")
    cw.load(tmp_path)
    assert not dead.exists()
    assert all(each.exists() for each in (alive, *others))


def test_r1_saving_does_not_lose_to_a_run_that_was_killed_before(tmp_path: Path) -> None:
    old, new = (cw.aggregate(cw.Labels(["t", "t"], ["a", "b"], [label] * 2), "majority-vote") for label in "xy")
    old.save(tmp_path / READY)
    new.save(tmp_path)
    assert cw.load(tmp_path).labels["label"].to_list() == ["y"]


def test_s8_a_list_that_a_stranger_made_leads_nowhere(out: Path, tmp_path: Path) -> None:
    put(tmp_path, {"precious": "x", "out/.crowdwise-ready/labels.csv": "new labels"})
    names = ["../precious", "/", str(tmp_path / "precious"), "..", ".", "", 3, None, "a\0b", "groups.csv"]
    (out / READY / ".removed").write_text(json.dumps(names))
    settle(out)
    assert (tmp_path / "precious").exists()
    assert seen(out)["labels.csv"] == "new labels"
    assert "groups.csv" not in seen(out)
    for files in ({"../precious": "0"}, {"/": "0", "..": "0"}, [], None, 3):
        (out / LISTED).write_text(json.dumps({"files": files}))
        with pytest.raises(FileError, match=r"labels\.csv is not an output of a run in this folder"):
            published(out, {"labels.csv": "newer labels"})
    assert (tmp_path / "precious").exists()
    assert {**OWN, "labels.csv": "new labels"}.items() <= seen(out).items()


def test_files_that_belong_together(out: Path) -> None:
    assert together(out, "labels.csv", "groups.csv")
    assert not together(out, "labels.csv", "notes.txt")
    (out / "groups.csv").write_text("changed")
    assert not together(out, "labels.csv", "groups.csv")
    assert together(out, "labels.csv")
    (out / LISTED).unlink()
    assert not together(out, "labels.csv")


def test_an_output_never_replaces_what_was_read(tmp_path: Path, command: Any) -> None:
    cw.simulate.crowd(tasks=20, workers=5, seed=1).save(tmp_path)
    file = (tmp_path / "answers.csv").rename(tmp_path / "labels.csv")
    before = file.read_bytes()
    status, _, err = command("aggregate", file, "--model", "majority-vote", "--no-page", "--out", tmp_path)
    assert status == 1
    assert f"{file} was read, and the outputs would replace it. Name another folder" in err
    assert file.read_bytes() == before
    assert not (tmp_path / "tasks.csv").exists()


def test_a_folder_in_the_place_of_an_output_is_refused_before_anything_changes(out: Path) -> None:
    (out / "workers.csv").mkdir()
    with pytest.raises(FileError, match=r"workers\.csv is in the way of an output\. Move it, or name another folder"):
        published(out, NEW)
    assert seen(out) == OLD | OWN


def test_tables_of_a_simulated_crowd_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = cw.simulate.crowd(tasks=20, workers=5, seed=1)
    real, written = simulated.write_whole, list[str]()

    def failing(path: Path, write: Any) -> Path:
        written.append(path.name)
        if len(written) == 3:
            raise FileError("the disk is full")
        return real(path, write)

    monkeypatch.setattr(simulated, "write_whole", failing)
    with pytest.raises(FileError, match="the disk is full"):
        crowd.save(tmp_path / "crowd")
    assert not (tmp_path / "crowd").exists()
    crowd.save(tmp_path / "crowd")
    names = ["answers.csv", "crowdwise.json", "truth.csv", "workers.csv"]
    assert sorted(each.name for each in (tmp_path / "crowd").iterdir()) == names
    crowd.save(tmp_path / "crowd")  # its own files are replaced
    (tmp_path / "crowd" / "features.parquet").write_text("of the user")
    with pytest.raises(FileError, match=r"features\.parquet is not an output of a run in this folder"):
        cw.simulate.experts(40, seed=3).save(tmp_path / "crowd")
    assert (tmp_path / "crowd" / "features.parquet").read_text() == "of the user"


NOT_OURS = (
    r"{} is not an output of a run in this folder, and the outputs would replace it\. Move it away, or name another "
    "folder"
)


@pytest.mark.parametrize("name", ["labels.csv", "tasks.csv", "report.html"])
def test_r4_files_of_the_user_are_never_replaced(
    name: str, tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cw.simulate.crowd(tasks=20, workers=5, seed=1).answers.frame().write_csv(tmp_path / "a.csv")
    out = tmp_path / "out"
    put(out, {name: "of the user", "notes.txt": "more"})
    fit = ["aggregate", tmp_path / "a.csv", "--model", "majority-vote", "--out", out]
    with monkeypatch.context() as patched:  # before the fit
        patched.setattr(cw.MajorityVote, "fit", lambda *_, **__: pytest.fail("it was fitted"))
        status, printed, err = command(*fit)
    assert (status, printed) == (1, "")
    assert re.search(NOT_OURS.format(re.escape(str(out / name))), err)
    assert seen(out) == {name: "of the user", "notes.txt": "more"}
    (out / name).unlink()
    for _ in range(2):  # what a run wrote is replaced by the next one
        assert command(*fit)[0] == 0
    assert (out / "notes.txt").read_text() == "more"


def test_r4_a_page_of_the_user_stays_if_there_is_no_new_one(tmp_path: Path, command: Any) -> None:
    cw.simulate.crowd(tasks=20, workers=5, seed=1).answers.frame().write_csv(tmp_path / "a.csv")
    put(tmp_path / "out", {"report.html": "<title>of the user</title>"})
    fit = ["aggregate", tmp_path / "a.csv", "--model", "majority-vote", "--no-page", "--out", tmp_path / "out"]
    assert command(*fit)[0] == 0
    assert (tmp_path / "out" / "report.html").read_text() == "<title>of the user</title>"


def test_r12_outputs_of_versions_without_a_list_are_replaced(tmp_path: Path, command: Any) -> None:
    cw.simulate.crowd(tasks=20, workers=5, seed=1).answers.frame().write_csv(tmp_path / "a.csv")
    fit = ["aggregate", tmp_path / "a.csv", "--model", "majority-vote", "--no-page", "--out", tmp_path / "out"]
    assert command(*fit)[0] == 0
    (tmp_path / "out" / LISTED).unlink()
    (tmp_path / "out" / "labels.csv").write_text("old")
    assert command(*fit)[0] == 0
    assert (tmp_path / "out" / "labels.csv").read_text() != "old"


def test_tables_of_results_are_those_that_are_checked_before_a_fit() -> None:
    labels = cw.simulate.crowd(tasks=20, workers=6, seed=1).answers
    pairs = cw.Pairs({"left": ["a", "a"], "right": ["b", "c"], "worker": ["x", "y"], "answer": ["same", "different"]})
    for answers, model in ((labels, "groups"), (cw.simulate.clicks(seed=1).points, None), (pairs, None)):
        result = cw.aggregate(answers, model)
        assert set(result.tables()) == set(result.model.table_names)


@pytest.mark.parametrize("name", ["groups.csv", "members.csv", "sets.csv", "next.csv"])
def test_r4_files_of_the_user_that_no_output_replaces_do_not_matter(name: str, tmp_path: Path, command: Any) -> None:
    labels = cw.simulate.crowd(tasks=20, workers=5, seed=1).answers.frame()
    labels.write_csv(tmp_path / "a.csv")
    labels.with_columns(gold=pl.lit("class1")).write_csv(tmp_path / "gold.csv")
    put(tmp_path / "out", {name: "of the user"})
    to_out = ["--no-page", "--out", tmp_path / "out"]
    assert command("aggregate", tmp_path / "a.csv", "--model", "majority-vote", *to_out)[0] == 0
    assert (tmp_path / "out" / name).read_text() == "of the user"
    replaced = name in ("groups.csv", "members.csv", "sets.csv")
    status, _, err = command("aggregate", tmp_path / "gold.csv", "--model", "tied", *to_out)
    assert (status == 1) is bool(re.search(NOT_OURS.format(re.escape(str(tmp_path / "out" / name))), err)) is replaced
    assert (tmp_path / "out" / name).read_text() == "of the user"


@pytest.mark.parametrize("verb", ["workers", "tasks", "next", "report"])
def test_r4_a_table_or_page_never_replaces_what_was_read(verb: str, tmp_path: Path, command: Any) -> None:
    answers = tmp_path / "a.csv"
    cw.simulate.crowd(tasks=20, workers=5, seed=1).answers.frame().write_csv(answers)
    (tmp_path / "gold.csv").write_text("task,label\nt01,class1\n")
    saved = cw.aggregate(cw.read(answers), "majority-vote").save(tmp_path / "saved")
    given = [answers, "--model", "majority-vote", "--gold", tmp_path / "gold.csv"]
    for arguments, out in ((given, answers), (given, tmp_path / "gold.csv"), ([tmp_path / "saved"], saved)):
        before = out.read_bytes()
        status, _, err = command(verb, *arguments, "--out", out)
        assert (status, err) == (1, f"error: {out} is read, and the output would replace it. Name another file\n")
        assert out.read_bytes() == before
    for _ in range(2):
        assert command(verb, *given, "--out", tmp_path / "new")[0] == 0


def test_r4_a_list_that_next_wrote_is_not_called_a_file_of_others(tmp_path: Path, command: Any) -> None:
    cw.simulate.pinwheel(workers=3, each=20).pairs.frame().write_csv(tmp_path / "p.csv")
    (tmp_path / "out").mkdir()
    assert command("next", tmp_path / "p.csv", "--model", "pair-vote", "--out", tmp_path / "out" / "next.csv")[0] == 0
    status, _, err = command("pairs", tmp_path / "p.csv", "--model", "pair-vote", "--out", tmp_path / "out")
    assert status == 1
    assert re.search(NOT_OURS.format("next.csv"), err)


def test_files_of_export_and_watch_never_replace_those_of_the_user(tmp_path: Path, command: Any) -> None:
    answers = cw.simulate.crowd(tasks=20, workers=5, seed=1).answers
    put(tmp_path / "given", {"relabel.csv": "of the user"})
    with pytest.raises(FileError, match=NOT_OURS.format(".*relabel.csv")):
        cw.export(cw.aggregate(answers, "majority-vote"), "csv", tmp_path / "given")
    assert seen(tmp_path / "given") == {"relabel.csv": "of the user"}
    (tmp_path / "in").mkdir()
    answers.frame().write_csv(tmp_path / "in" / "a.csv")
    put(tmp_path / "out", {"workers.csv": "of the user"})
    status, _, err = command("watch", tmp_path / "in", "--once", "--out", tmp_path / "out")
    assert status == 1
    assert re.search(NOT_OURS.format(".*workers.csv"), err)
    assert seen(tmp_path / "out") == {"workers.csv": "of the user"}


def test_a_fit_and_a_stream_do_not_share_a_folder(tmp_path: Path, command: Any) -> None:
    answers = cw.simulate.crowd(tasks=20, workers=5, seed=1).answers.frame()
    (tmp_path / "in").mkdir()
    answers.write_csv(tmp_path / "in" / "answers.csv")
    fit = ["aggregate", tmp_path / "in" / "answers.csv", "--model", "majority-vote", "--no-page", "--out"]
    watch = ["watch", tmp_path / "in", "--once", "--out"]
    assert command(*watch, tmp_path / "stream")[0] == 0
    assert command(*fit, tmp_path / "fit")[0] == 0
    status, _, err = command(*fit, tmp_path / "stream")
    assert (status, "belongs to crowdwise watch. Name another folder" in err) == (1, True)
    status, _, err = command(*watch, tmp_path / "fit")
    assert (status, "has the results of another command. Name another folder" in err) == (1, True)


def test_outputs_of_an_earlier_command_do_not_stay_beside_later_ones(tmp_path: Path, command: Any) -> None:
    crowd = cw.simulate.experts(40, seed=3)
    crowd.save(tmp_path)
    gold = tmp_path / "gold.csv"
    crowd.truth.write_csv(gold)
    learn = ["learn", tmp_path / "answers.csv", "--features", tmp_path / "features.parquet", "--gold", gold]
    out = tmp_path / "out"
    assert command(*learn, "--set", "max_iter=3", "--no-page", "--out", out)[0] in (0, 3)
    assert {"roc.csv", "predictions.csv", "classifier.crowdwise"} <= {each.name for each in out.iterdir()}
    assert together(out, "roc.csv", "result.crowdwise")
    assert command("report", out)[0] == 0
    assert '"roc"' in (out / "report.html").read_text()
    result = cw.aggregate(pl.read_csv(tmp_path / "answers.csv"), "majority-vote")
    result.save(out)
    assert command("report", out)[0] == 0
    assert '"roc"' not in (out / "report.html").read_text(), "the curves are of another result"
    words = ["aggregate", tmp_path / "answers.csv", "--model", "majority-vote", "--no-page", "--out", out]
    assert command(*words)[0] == 0
    names = ["crowdwise.json", "labels.csv", "result.crowdwise", "tasks.csv", "workers.csv"]
    assert sorted(each.name for each in out.iterdir()) == names
