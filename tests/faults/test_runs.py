"""Faults while running: what the codes R1, R3, R4, R9 and R11 of the fault list must get.

Commands run in processes of their own. Most of them are forked off one process that has imported everything
(`crowdwise`), which takes a tenth of the time of starting Python anew.
"""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.cli import main
from crowdwise.engine import Checkpoint
from crowdwise.engine.run import Journal
from crowdwise.errors import FileError, Interrupted
from crowdwise.result.store import read_checkpoint, write_checkpoint

TABLES = ["labels.csv", "workers.csv", "tasks.csv"]
WRITTEN = [*TABLES, "crowdwise.json", "report.html", "result.crowdwise"]
ITERATIVE = [name for name in cw.models("labels")["name"] if "max_iter" in cw.model(name).settings()]

SERVER = """
import contextlib, importlib, io, json, os, pkgutil, signal, sys
import jinja2, numpy.ma, safetensors.numpy
import crowdwise.cli, crowdwise.learn.sides
with contextlib.suppress(ImportError):
    import pydantic  # which newer libraries import
for room in ("answers", "cli", "io", "labels", "pairs", "points", "rating", "report", "result"):
    for info in pkgutil.iter_modules(importlib.import_module(f"crowdwise.{room}").__path__):
        if (room, info.name) not in (("cli", "learn"), ("pairs", "deep")):
            importlib.import_module(f"crowdwise.{room}.{info.name}")
sys.argv = ["crowdwise", "aggregate", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    crowdwise.cli.main()  # which loads the rest; polars must not work before a fork


def child(job, out, err):
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8", buffering=1)
    signal.alarm(120)
    status = 9
    try:
        sys.argv = ["crowdwise", *job["words"]]
        exec(job["before"], {"sys": sys})
        crowdwise.cli.main()
    except SystemExit as left:
        status = left.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(status)


for line in sys.stdin:
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    number = os.fork()
    if number == 0:
        child(json.loads(line), out_end, err_end)
    os.close(out_end)
    os.close(err_end)
    given = [open(end, "rb").read().decode(errors="replace") for end in (out, err)]
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), *given]), flush=True)
"""


@pytest.fixture(scope="module")
def crowdwise():
    """Run the command in a process of its own, after some Python code `before` it: status, stdout, stderr."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(*words, before=""):
        print(json.dumps({"words": [*map(str, words)], "before": before}), file=server.stdin, flush=True)
        status, out, err = json.loads(server.stdout.readline())
        return SimpleNamespace(status=status, stdout=out, stderr=err)

    yield run
    server.stdin.close()
    server.wait(10)
    server.stdout.close()


def started(*words, env=None):
    """Run the command in a Python that is started for it, in another environment."""
    start = [sys.executable, "-m", "crowdwise", *map(str, words)]
    return subprocess.run(start, capture_output=True, timeout=300, env={**os.environ, **(env or {})})


def strays(folder):
    return sorted(path.name for path in Path(folder).rglob("*.tmp"))


def contents(folder, names=TABLES):
    return {name: (Path(folder) / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A small simulated file of answers."""
    folder = tmp_path_factory.mktemp("crowd")
    cw.simulate.crowd("confusion", tasks=60, workers=10, classes=3, per_task=4, seed=2).save(folder)
    return folder / "answers.csv"


@pytest.fixture(scope="module")
def old(answers, crowdwise, tmp_path_factory):
    """What a former run has written."""
    folder = tmp_path_factory.mktemp("old") / "out"
    assert crowdwise("aggregate", answers, "--out", folder, "--model", "majority-vote").status == 0
    return folder


@pytest.fixture(scope="module")
def new(answers, crowdwise, tmp_path_factory):
    """What a run with another model writes, where it is left in peace."""
    folder = tmp_path_factory.mktemp("new") / "out"
    assert crowdwise("aggregate", answers, "--out", folder, "--model", "soft-vote").status == 0
    return folder


# --------------------------------------------------------------------------------------------- R1: killed while writing


def test_r1_what_dead_processes_left_is_removed_and_what_live_ones_write_is_not(tmp_path):
    result = cw.aggregate(cw.Labels([1, 1, 2], ["a", "b", "a"], ["x", "x", "y"]))
    gone = subprocess.Popen(["true"])
    gone.wait()
    dead, alive = (tmp_path / f".crowdwise-result.crowdwise.{pid}.tmp" for pid in (gone.pid, os.getppid()))
    other = tmp_path / f".labels.csv.{gone.pid}.tmp"  # of another program
    for file in (dead, alive, other):
        file.write_text("half")
    result.save(tmp_path)
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()
    assert cw.load(tmp_path).labels.equals(result.labels)


def test_r1_a_failure_while_writing_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch):
    cw.aggregate(cw.Labels([1, 1], ["a", "b"], ["x", "x"])).save(tmp_path)
    before = (tmp_path / "result.crowdwise").read_bytes()

    def broken(*_):
        raise OSError(5, "Input/output error")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, broken)
            with pytest.raises(FileError, match="Input/output error; an existing file was not changed"):
                cw.aggregate(cw.Labels([1, 1], ["a", "b"], ["y", "y"])).save(tmp_path)
        assert (tmp_path / "result.crowdwise").read_bytes() == before
        assert strays(tmp_path) == []


# --------------------------------------------------------------------------------------------- R3: signals

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
# Send this process a signal after some iteration, as if from outside; or say which iterations there are.
AFTER = """
import os, sys
from crowdwise.engine.run import Run
seen = []


def report(self, progress, real=Run.report):
    real(self, progress)
    seen.append(progress)
    print(progress.stage, progress.iteration, file=sys.stderr)
    if len(seen) == {iteration}:
        os.kill(os.getpid(), {number})


Run.report = report
"""


def on_a_terminal(code, *words):
    """Python code with arguments, on a terminal of its own: status, what it has shown, and the process group."""
    terminal, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=other,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(other)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(terminal)
    return process.wait(60), shown, process.pid


@pytest.mark.parametrize(("number", "status"), SIGNALS)
def test_r3_a_signal_leaves_a_checkpoint_and_resume_is_bit_identical(number, status, answers, crowdwise, tmp_path):
    out, words = tmp_path / "out", ["aggregate", answers, "--model", "dawid-skene", "--tol", 0, "--max-iter", 20]
    assert crowdwise(*words, "--out", tmp_path / "unbroken").status == 3
    code = AFTER.format(iteration=7, number=number.value) + "from crowdwise.cli import main\nmain()"
    left, shown, group = on_a_terminal(code, *words, "--out", out)
    assert left == status, shown
    assert b"say --resume to continue from" in shown
    assert shown.rfind(b"\x1b[?25h") > shown.rfind(b"\x1b[?25l") >= 0, "the cursor is shown again"
    with pytest.raises(ProcessLookupError):
        os.killpg(group, 0)  # no child is left
    assert [path.name for path in out.iterdir()] == ["checkpoint.crowdwise"]
    done = crowdwise(*words, "--out", out, "--resume", before=AFTER.format(iteration=0, number=0))
    assert done.status == 3, done.stderr
    assert "continuing from" in done.stderr
    assert next(line for line in done.stderr.splitlines() if line.startswith("iteration")) == "iteration 8"
    assert contents(out) == contents(tmp_path / "unbroken")
    one, two = cw.load(out), cw.load(tmp_path / "unbroken")
    assert np.array_equal(one.posterior, two.posterior)
    assert one.trace.equals(two.trace)
    assert sorted(path.name for path in out.iterdir()) == sorted(WRITTEN)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Words that fit a small file of every other kind, without pages."""
    folder = tmp_path_factory.mktemp("kinds")
    experts, clicks, wheel = (
        cw.simulate.experts(60, seed=3), cw.simulate.clicks("E", seed=4), cw.simulate.pinwheel(per_cluster=8, asked=40)
    )  # fmt: skip
    experts.save(folder)
    clicks.points.frame().write_csv(folder / "clicks.csv")
    wheel.pairs.frame().write_csv(folder / "pairs.csv")
    return {
        "points": ["points", folder / "clicks.csv", "--set", "max_iter=20"],
        "pairs": ["pairs", folder / "pairs.csv"],
        "learn": ["learn", folder / "answers.csv", "--features", folder / "features.parquet", "--set", "max_iter=5"],
    }


@pytest.mark.parametrize("kind", ["points", "pairs", "learn"])
def test_r3_commands_of_every_kind_are_resumed(kind, kinds, command, monkeypatch, tmp_path):
    words, seen = [*kinds[kind], "--no-page", "--out"], []
    unbroken, _, err = command(*words, tmp_path / "unbroken")
    assert unbroken in (0, 3), err

    def signalled(self, progress):
        seen.append(progress)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(cw.Run, "report", signalled)
        assert command(*words, tmp_path / "out")[:2] == (130, "")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["checkpoint.crowdwise"]
    resumed, _, err = command(*words, tmp_path / "out", "--resume")
    assert resumed == unbroken, err
    assert "continuing from" in err
    names = [path.name for path in (tmp_path / "unbroken").glob("*.csv")]
    assert contents(tmp_path / "out", names) == contents(tmp_path / "unbroken", names)
    assert cw.load(tmp_path / "out").trace.equals(cw.load(tmp_path / "unbroken").trace)
    assert not (tmp_path / "out" / "checkpoint.crowdwise").exists()


@pytest.mark.parametrize("name", ITERATIVE)
@pytest.mark.parametrize("kind", ["plain", "compiled", "converging"])
def test_r3_every_model_continues_from_the_file_of_its_checkpoint(name, kind, request, tmp_path):
    if kind == "compiled":
        request.getfixturevalue("compiled")
    data = cw.simulate.crowd(tasks=60, workers=8, accuracy=0.9, seed=4).answers
    # a converging fit ends as soon as no label has changed for some iterations, so those before the break must count
    chosen, asked = cw.model(name, max_iter=6, tol=0) if kind != "converging" else cw.model(name, tol=1.0), []

    def fourth():
        asked.append(None)
        return len(asked) == 4

    unbroken = chosen.fit(data)
    with pytest.raises(Interrupted, match=f"{name} was interrupted after 3 iteration") as broken:
        chosen.fit(data, run=cw.Run(stop=fourth))
    file = write_checkpoint(tmp_path / "checkpoint.crowdwise", broken.value.checkpoint._replace(seconds=1000.0))
    resumed = chosen.fit(data, run=cw.Run(resume=Checkpoint(*read_checkpoint(file))))
    assert resumed.seconds > 1000
    assert resumed.trace.equals(unbroken.trace)
    assert np.array_equal(resumed.posterior, unbroken.posterior)
    assert resumed.labels.equals(unbroken.labels)
    assert resumed.workers.equals(unbroken.workers)
    assert resumed.converged == unbroken.converged


def test_r3_a_checkpoint_of_other_settings_answers_or_bytes_is_refused(answers, command, tmp_path):
    data, chosen = cw.read(answers), cw.model("pooled", max_iter=50)
    with pytest.raises(Interrupted) as broken:
        chosen.fit(data, run=cw.Run(stop=lambda: True))
    file = tmp_path / "out" / "checkpoint.crowdwise"
    write_checkpoint(file, broken.value.checkpoint)
    whole = file.read_bytes()
    fewer = tmp_path / "fewer.csv"
    fewer.write_text("".join(answers.read_text().splitlines(keepends=True)[:-1]))
    for words in (
        [answers, "--max-iter", 51],
        [answers, "--max-iter", 50, "--model", "mace"],
        [fewer, "--max-iter", 50],
        [answers, "--max-iter", 50, "--seed", 1],
    ):
        status, _, err = command("aggregate", *words, "--out", tmp_path / "out", "--resume")
        assert status == 2
        assert "belongs to a different fit: the answers, features" in err
        assert "Omit --resume to start from the beginning" in err
    words = ["aggregate", answers, "--max-iter", 50, "--out", tmp_path / "out", "--resume"]
    file.write_bytes(whole[: len(whole) // 2])  # F5: a torn checkpoint
    status, _, err = command(*words)
    assert status == 1
    assert "is not a complete saved checkpoint" in err
    file.write_bytes(whole)
    assert command(*words)[0] == 0
    assert not file.exists()


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


@pytest.mark.parametrize(("number", "status"), SIGNALS)
@pytest.mark.parametrize("at", [1, 3, 7])
def test_r3_a_signal_while_writing_leaves_no_half_file(number, status, at, answers, crowdwise, tmp_path):
    words = ["aggregate", answers, "--out", tmp_path / "out"]
    done = crowdwise(*words, before=SYNCED.format(at=at, number=number.value))
    assert done.status in (status, -number), done.stderr
    assert "Traceback" not in done.stderr
    assert strays(tmp_path) == []


# --------------------------------------------------------------------------------------------- R4: no place to write


def test_r4_an_out_that_is_a_file_is_refused_and_kept(answers, crowdwise, tmp_path):
    place = tmp_path / "out"
    place.write_text("mine")
    for out in (place, place / "deeper"):
        done = crowdwise("aggregate", answers, "--out", out)
        assert done.status == 1
        assert ("is a file; name a folder" if out == place else "cannot write") in done.stderr
        assert "Traceback" not in done.stderr
    assert place.read_text() == "mine"


LESSER = """
import os, sys
from crowdwise.cli import main
words = sys.argv
sys.argv = [*words[:-1], {first!r}]
try:
    main()  # so that everything is imported while that is allowed
except SystemExit as left:
    assert left.code == 0
if os.geteuid() == 0:  # rights do not bind root
    os.setegid(65534)
    os.seteuid(65534)
sys.argv = words
"""


@pytest.fixture
def common():
    """A folder that another user can look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in folder.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_r4_a_folder_that_cannot_be_written_is_refused_and_its_files_are_kept(answers, old, crowdwise, common):
    shutil.copy(answers, common / "answers.csv")
    (common / "answers.csv").chmod(0o644)
    out = shutil.copytree(old, common / "out")
    before = contents(out, WRITTEN)
    out.chmod(0o555)
    for place in (out, out / "deeper"):
        words = ["aggregate", common / "answers.csv", "--out", place]
        done = crowdwise(*words, before=LESSER.format(first=str(common / "first")))
        assert done.status == 1, done.stderr
        assert "cannot write" in done.stderr
        assert "Permission denied" in done.stderr
        assert "Traceback" not in done.stderr
    assert contents(out, before) == before
    assert strays(out) == []


@pytest.mark.parametrize("room", ["none", "half of the labels", "all but the result"])
def test_r4_a_full_disk_is_reported_and_the_old_output_is_kept(room, answers, old, new, crowdwise, tmp_path):
    """A limit on the size of files fails in the midst of writing, as a full disk does."""
    out = shutil.copytree(old, tmp_path / "out")
    before, after = contents(out, WRITTEN), contents(new)
    sizes = [len(after[name]) for name in TABLES]
    limit = {"none": 0, "half of the labels": sizes[0] // 2, "all but the result": max(sizes) + 1}[room]
    assert limit < (new / "result.crowdwise").stat().st_size
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    done = crowdwise("aggregate", answers, "--out", out, "--model", "soft-vote", before=limited)
    assert done.status == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert strays(out) == []
    assert contents(out, before) == before
    assert sorted(each.name for each in out.iterdir()) == sorted(WRITTEN)


# --------------------------------------------------------------------------------------------- R9: the same everywhere

# Zones, locales, seeds of hashes and numbers of threads; none of them may matter, so some are changed together.
PLACES = {
    "west": {"TZ": "America/New_York", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "0",
             "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
    "east": {"TZ": "Asia/Kathmandu", "LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8", "PYTHONHASHSEED": "1",
             "OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "POLARS_MAX_THREADS": "4"},
    "nowhere": {"LC_ALL": "C", "PYTHONHASHSEED": "random", "PYTHONIOENCODING": "ascii"},
}  # fmt: skip


@pytest.fixture(scope="module")
def worldly(crowdwise, tmp_path_factory):
    """Answers with times round a change of the clocks, a second answer here and there, and labels of many scripts."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("worldly")
    names = ["İstanbul", "ISTANBUL", "ısı", "größe", "дом", "\U0001f431"]
    lines = ["task,worker,label,timestamp"]
    for n in range(1500):
        label = names[(n + rng.integers(2)) % 6] if rng.random() < 0.7 else names[rng.integers(6)]
        when = f"2024-03-31T0{rng.integers(4)}:{n // 60 % 60:02d}:{n % 60:02d}+0{rng.integers(3)}:00"
        lines.append(f"I{n % 120},w{rng.integers(15)},{label},{when}")
    (folder / "answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = crowdwise("aggregate", folder / "answers.csv", "--out", folder / "here", "--seed", 1)
    assert done.status == 0, done.stderr
    assert "kept the last by time" in done.stderr
    return folder / "answers.csv", contents(folder / "here")


@pytest.mark.parametrize("place", PLACES)
def test_r9_the_output_does_not_depend_on_the_place(place, worldly, tmp_path):
    file, here = worldly
    done = started("aggregate", file, "--out", tmp_path, "--seed", 1, env=PLACES[place])
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path) == here


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1254"])
@pytest.mark.parametrize(
    "words", [["aggregate"], ["aggregate", "--json"], ["inspect"], ["inspect", "--json"]], ids=" ".join
)
def test_r9_a_terminal_that_cannot_show_a_label_does_not_break_the_run(encoding, words, worldly, monkeypatch):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2))
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setattr("sys.argv", ["crowdwise", words[0], str(worldly[0]), *words[1:]])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0, err.buffer.getvalue()
    if "--json" in words:
        told = json.loads(out.buffer.getvalue())
        shown = told["classes"] if words[0] == "aggregate" else [row["label"] for row in told["labels"]]
        assert "\U0001f431" in shown


@pytest.mark.parametrize("name", ITERATIVE)
def test_r9_threads_do_not_change_a_bit(name, compiled):
    data = cw.simulate.crowd("confusion", tasks=500, workers=20, classes=3, per_task=4, seed=6).answers
    assert data.kernels is compiled
    chosen = cw.model(name, max_iter=4)
    fits = [chosen.fit(data, run=cw.Run(threads=threads)) for threads in (1, 2, 3, 4)]
    for fit in fits[1:]:
        assert fit.trace.equals(fits[0].trace)
        assert np.array_equal(fit.posterior, fits[0].posterior)
        assert fit.workers.equals(fits[0].workers)


def test_r9_threads_of_the_command_line_give_the_same_bytes(tmp_path):
    large = cw.simulate.crowd("confusion", tasks=35_000, workers=100, classes=3, per_task=4, seed=6).answers
    assert large.kernels.__name__.endswith("fast")  # and in several blocks
    large.frame().write_csv(tmp_path / "answers.csv")
    for threads in (1, 4):
        words = ["--out", tmp_path / f"out{threads}", "--threads", threads, "--max-iter", 4, "--no-page"]
        done = started("aggregate", tmp_path / "answers.csv", *words, env={"OMP_NUM_THREADS": str(threads)})
        assert done.returncode == 3, done.stderr
    assert contents(tmp_path / "out1") == contents(tmp_path / "out4")


# --------------------------------------------------------------------------------------------- R11: not converged


def test_r11_a_fit_that_has_not_converged_says_so_everywhere(answers, command, tmp_path):
    words = ["aggregate", answers, "--max-iter", 2]
    status, _, err = command(*words, "--out", tmp_path)
    assert status == 3
    assert "warning: not converged after 2 iterations" in err
    assert "NOT converged" in err
    saved = cw.load(tmp_path)
    assert saved.converged is False
    assert "NOT CONVERGED" in repr(saved)
    assert saved.warnings[0].startswith("not converged after 2 iterations")
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 61  # what was reached is still given
    status, out, _ = command(*words, "--json")
    assert status == 3
    summary = json.loads(out)
    assert (summary["converged"], summary["iterations"]) == (False, 2)
    assert any(text.startswith("not converged") for text in summary["warnings"])


def test_r11_a_fit_that_has_converged_does_not(answers, command, tmp_path):
    status, out, _ = command("aggregate", answers, "--out", tmp_path, "--json")
    assert status == 0
    assert json.loads(out)["converged"] is True
    assert cw.load(tmp_path).converged is True
    assert not any("converged" in text for text in cw.load(tmp_path).warnings)


@pytest.mark.parametrize("name", ITERATIVE)
def test_r11_every_iterative_model_flags_it(name, answers):
    result = cw.aggregate(cw.read(answers), name, max_iter=1)
    assert not result.converged
    assert result.warnings[0].startswith("not converged after 1 iteration")


INTERRUPTED_IN_EXEC = """
import crowdwise.cli, crowdwise.cli.app
crowdwise.cli.app.app = lambda **_: exec("raise KeyboardInterrupt")  # as dataclasses run their code
crowdwise.cli.main()
"""


def test_r3_the_status_of_an_interrupted_command_does_not_depend_on_the_moment(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED_IN_EXEC)
    start = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(start, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "error: interrupted; no incomplete files are left\n")


def test_r3_a_second_interruption_keeps_what_was_not_reached_again() -> None:
    late, early = {"x": np.ones(2)}, {"y": np.zeros(1)}
    journal = Journal(Checkpoint({"late": late}))
    journal.keep("early", lambda: early)
    assert journal.checkpoint().stages == {"late": late, "early": early}
    assert journal.saved("late") is late
    assert journal.checkpoint().stages == {"early": early}
