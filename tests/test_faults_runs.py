"""Faults while running: what the codes R1, R3, R4, R9 and R11 of the fault list must get."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.engine import Checkpoint
from crowdwise.errors import FileError, Interrupted
from crowdwise.result.store import fingerprint, read_checkpoint, write_checkpoint

CROWDWISE = [sys.executable, "-m", "crowdwise"]
TABLES = ["labels.csv", "workers.csv", "tasks.csv"]
CLIMBERS = [name for name in sorted(cw.MODELS) if "max_iter" in cw.model(name).settings()]


def crowdwise(*words, **options):
    """Run the command in a process of its own."""
    return subprocess.run([*CROWDWISE, *map(str, words)], capture_output=True, text=True, timeout=300, **options)


def strays(folder):
    return sorted(path.name for path in Path(folder).rglob("*.tmp"))


def contents(folder, names=TABLES):
    return {name: (Path(folder) / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A small simulated file of answers."""
    folder = tmp_path_factory.mktemp("crowd")
    cw.simulate.crowd("confusion", tasks=400, workers=20, classes=3, per_task=4, seed=2).save(folder)
    return folder / "answers.csv"


@pytest.fixture(scope="module")
def large():
    """Enough answers for the compiled kernels."""
    data = cw.simulate.crowd("confusion", tasks=90_000, workers=200, classes=3, per_task=4, seed=6).answers
    assert data.kernels.__name__.endswith("fast")
    return data


# --------------------------------------------------------------------------------------------- R1: killed while writing

KILLER = '''
"""Fork a run of the command that kills itself at the n-th point of writing, for every n; tell what was left."""
import io, json, os, shutil, signal, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import crowdwise as cw
import crowdwise.cli.app, crowdwise.cli.run, crowdwise.cli.show, crowdwise.io, crowdwise.labels, safetensors.numpy
from crowdwise.cli import main

file, old, new, out = map(Path, sys.argv[1:])
TABLES = ["labels.csv", "workers.csv", "tasks.csv"]


def strike_at(number):
    """Replace what writes by doubles that count, and kill this process at the given point."""
    seen = 0

    def point(first=lambda: None):
        nonlocal seen
        seen += 1
        if seen == number:
            first()
            os.kill(os.getpid(), signal.SIGKILL)

    class Torn:
        def __init__(self, file):
            self.file = file

        def write(self, data):
            data = bytes(data)
            point(lambda: (self.file.write(data[: len(data) // 2]), self.file.flush()))  # half of it is on the disk
            return self.file.write(data)

        def __enter__(self):
            return self

        def __exit__(self, *why):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

    def opened(path, mode="r", *more, open=io.open, **named):
        file = open(path, mode, *more, **named)
        if "w" not in mode:
            return file
        point()
        return Torn(file)

    def struck(real):
        def double(*given, **named):
            point()
            return real(*given, **named)

        return double

    io.open = opened
    os.fsync, os.replace, os.open = struck(os.fsync), struck(os.replace), struck(os.open)


def forked(work):
    """The exit status of `work` in a child, negative for a signal."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 9
        try:
            status = work() or 0
        except SystemExit as left:
            status = left.code
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(number):
    strike_at(number)
    sys.argv = ["crowdwise", "aggregate", str(file), "--out", str(out), "--model", "soft-vote"]
    main()


def which():
    """1: the saved result is the old one, 2: the new one; anything else is a failure."""
    return {"majority-vote": 1, "soft-vote": 2}[cw.load(out).model.name]


told = {"points": 0, "bad": [], "old": 0, "new": 0, "strays": 0}
before = {name: (old / name).read_bytes() for name in TABLES}
after = {name: (new / name).read_bytes() for name in TABLES}
shutil.copytree(old, out)
while True:
    for name in [*TABLES, "result.crowdwise"]:
        shutil.copy(old / name, out / name)
    status = forked(lambda: run(told["points"] + 1))
    if status >= 0:
        break
    told["points"] += 1
    saved = 1 if (out / "result.crowdwise").read_bytes() == (old / "result.crowdwise").read_bytes() else forked(which)
    if status != -signal.SIGKILL or saved not in (1, 2):
        told["bad"].append([told["points"], status, saved])
    for name in TABLES:
        now = (out / name).read_bytes()
        if now not in (before[name], after[name]):
            told["bad"].append([told["points"], name, len(now)])
        told["old"] += now == before[name]
        told["new"] += now == after[name]
    if not (out / "report.html").read_text().rstrip().endswith("</html>"):
        told["bad"].append([told["points"], "report.html"])
    told["strays"] = max(told["strays"], len(list(out.glob(".*.tmp"))))
told["status"] = status
told["left"] = [path.name for path in out.iterdir()]
told["whole"] = all((out / name).read_bytes() == after[name] for name in TABLES) and forked(which) == 2
print(json.dumps(told))
'''


def test_r1_a_kill_at_any_point_of_writing_leaves_old_or_new_whole(answers, tmp_path):
    assert crowdwise("aggregate", answers, "--out", tmp_path / "old", "--model", "majority-vote").returncode == 0
    assert crowdwise("aggregate", answers, "--out", tmp_path / "new", "--model", "soft-vote").returncode == 0
    assert contents(tmp_path / "old") != contents(tmp_path / "new")
    folders = [tmp_path / name for name in ("old", "new", "out")]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, answers, *folders], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["bad"] == []
    assert told["points"] >= 5 * 6  # five files: opened, written, synced, renamed, the folder opened and synced
    assert min(told["old"], told["new"], told["strays"]) > 0  # kills did fall before, between and after
    assert (told["status"], told["whole"]) == (0, True)
    assert sorted(told["left"]) == ["labels.csv", "report.html", "result.crowdwise", "tasks.csv", "workers.csv"]


def test_r1_what_dead_processes_left_is_swept_and_what_live_ones_write_is_not(tmp_path):
    result = cw.aggregate(cw.Labels([1, 1, 2], ["a", "b", "a"], ["x", "x", "y"]))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead, alive = (tmp_path / f".result.crowdwise.{pid}.tmp" for pid in (gone.pid, os.getppid()))
    other = tmp_path / f".labels.csv.{gone.pid}.tmp"
    for file in (dead, alive, other):
        file.write_text("half")
    result.save(tmp_path)
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()  # of another file: swept when that one is written
    assert cw.load(tmp_path).labels.equals(result.labels)


def test_r1_a_failure_while_writing_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch):
    cw.aggregate(cw.Labels([1, 1], ["a", "b"], ["x", "x"])).save(tmp_path)
    before = (tmp_path / "result.crowdwise").read_bytes()

    def broken(*_):
        raise OSError(5, "Input/output error")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, broken)
            with pytest.raises(FileError, match="Input/output error; what stood there before is kept"):
                cw.aggregate(cw.Labels([1, 1], ["a", "b"], ["y", "y"])).save(tmp_path)
        assert (tmp_path / "result.crowdwise").read_bytes() == before
        assert strays(tmp_path) == []


# --------------------------------------------------------------------------------------------- R3: signals


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A file, settings under which a fit takes some seconds, and what an unbroken run gives."""
    folder = tmp_path_factory.mktemp("slow")
    cw.simulate.crowd("confusion", tasks=20_000, workers=100, classes=3, per_task=5, seed=3).save(folder)
    words = ["aggregate", folder / "answers.csv", "--tol", "0", "--max-iter", "120"]
    done = crowdwise(*words, "--out", folder / "unbroken")
    assert done.returncode in (0, 3), done.stderr
    return words, folder / "unbroken", done.returncode


class Watched:
    """The command on a terminal of its own, so that it tells its sweeps."""

    def __init__(self, *words):
        self.terminal, other = pty.openpty()
        self.process = subprocess.Popen(
            [*CROWDWISE, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=other,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        )
        os.close(other)
        self.said = b""

    def listen(self, until=None, seconds=120.0):
        """Read until a pattern has been said, or all of it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and re.search(until, self.said)):
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self.terminal, 65536)
                except OSError:  # the other side is closed
                    return
        assert until is None or re.search(until, self.said), self.said

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_r3_a_signal_leaves_a_checkpoint_and_resume_is_bit_identical(number, status, slow, tmp_path):
    words, unbroken, well = slow
    watched = Watched(*words, "--out", tmp_path / "out")
    try:
        watched.listen(until=rb"sweep [1-9]")
        watched.process.send_signal(number)
        watched.listen()
        assert watched.process.wait(60) == status, watched.said
    finally:
        watched.close()
    assert b"say --resume to go on" in watched.said
    assert watched.said.rfind(b"\x1b[?25h") > watched.said.rfind(b"\x1b[?25l"), "the cursor is shown again"
    with pytest.raises(ProcessLookupError):
        os.killpg(watched.process.pid, 0)  # no child is left
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["checkpoint.crowdwise"]
    done = crowdwise(*words, "--out", tmp_path / "out", "--resume")
    assert done.returncode == well, done.stderr
    assert contents(tmp_path / "out") == contents(unbroken)
    one, two = cw.load(tmp_path / "out"), cw.load(unbroken)
    assert np.array_equal(one.posterior, two.posterior)
    assert one.trace == two.trace
    assert 0 < int(re.search(r"going on after sweep (\d+)", done.stderr)[1]) < len(two.trace)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        [*TABLES, "report.html", "result.crowdwise"]
    )


@pytest.mark.parametrize("name", CLIMBERS)
@pytest.mark.parametrize("kind", ["small", "large", "resting"])
def test_r3_every_model_goes_on_from_its_checkpoint_bit_by_bit(name, kind, large, tmp_path):
    data = large if kind == "large" else cw.simulate.crowd(tasks=60, workers=8, accuracy=0.9, seed=4).answers
    # a resting climb ends as soon as no label has moved for some sweeps, so those before the break must count
    chosen, asked = cw.model(name, max_iter=6, tol=0) if kind != "resting" else cw.model(name, tol=1.0), []

    def fourth():
        asked.append(None)
        return len(asked) == 4

    unbroken = chosen.fit(data)
    with pytest.raises(Interrupted) as broken:
        chosen.fit(data, cw.Run(stop=fourth))
    assert len(broken.value.checkpoint.trace) == 3
    file, mark = tmp_path / "checkpoint.crowdwise", fingerprint(data)
    write_checkpoint(file, name, chosen.settings(), mark, broken.value.checkpoint)
    saved = Checkpoint(**read_checkpoint(file, name, chosen.settings(), mark))
    resumed = chosen.fit(data, cw.Run(resume=saved))
    assert resumed.trace == unbroken.trace
    assert np.array_equal(resumed.posterior, unbroken.posterior)
    assert resumed.labels.equals(unbroken.labels)
    assert resumed.workers.equals(unbroken.workers)
    assert resumed.converged == unbroken.converged


def test_r3_a_checkpoint_of_other_settings_answers_or_bytes_is_refused(answers, tmp_path):
    data, chosen = cw.read(answers), cw.model("pooled", max_iter=50)
    with pytest.raises(Interrupted) as broken:
        chosen.fit(data, cw.Run(stop=lambda: True))
    file = tmp_path / "out" / "checkpoint.crowdwise"
    write_checkpoint(file, "pooled", chosen.settings(), fingerprint(data), broken.value.checkpoint)
    whole = file.read_bytes()
    words = ["aggregate", answers, "--out", tmp_path / "out", "--resume", "--max-iter"]
    other = crowdwise(*words, "51")
    assert other.returncode == 1
    assert "belongs to another run" in other.stderr
    file.write_bytes(whole[: len(whole) // 2])  # F5: a torn checkpoint
    torn = crowdwise(*words, "50")
    assert torn.returncode == 1
    assert "is not a whole saved checkpoint" in torn.stderr
    file.write_bytes(whole)
    assert crowdwise(*words, "50").returncode == 0
    assert not file.exists()


STRUCK = """
import os, signal, sys
from crowdwise.cli import main
number, at = int(sys.argv.pop(1)), int(sys.argv.pop(1))
real, seen = os.fsync, 0
def struck(handle):
    global seen
    seen += 1
    if seen == at:
        os.kill(os.getpid(), number)
    return real(handle)
os.fsync = struck
main()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("at", [1, 3, 7])
def test_r3_a_signal_while_writing_leaves_no_half_file(number, status, at, answers, tmp_path):
    words = [sys.executable, "-c", STRUCK, number.value, at, "aggregate", answers, "--out", tmp_path / "out"]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (status, -number), done.stderr
    assert "Traceback" not in done.stderr
    assert strays(tmp_path) == []


# --------------------------------------------------------------------------------------------- R4: no place to write


def test_r4_an_out_that_is_a_file_is_refused_and_kept(answers, tmp_path):
    place = tmp_path / "out"
    place.write_text("mine")
    for out in (place, place / "deeper"):
        done = crowdwise("aggregate", answers, "--out", out)
        assert done.returncode == 1
        assert "cannot write" in done.stderr
        assert "Traceback" not in done.stderr
    assert place.read_text() == "mine"


LESSER = """
import os, sys
from crowdwise.cli import main
wanted, first = sys.argv, sys.argv.pop(1)
sys.argv = [*wanted[:-1], first]
try:
    main()  # so that everything is imported while that is allowed
except SystemExit as left:
    assert left.code == 0
if os.geteuid() == 0:  # rights do not bind root
    os.setegid(65534)
    os.seteuid(65534)
sys.argv = wanted
main()
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


def test_r4_a_folder_that_cannot_be_written_is_refused_and_its_files_are_kept(answers, common):
    shutil.copy(answers, common / "answers.csv")
    (common / "answers.csv").chmod(0o644)
    out = common / "out"
    assert crowdwise("aggregate", answers, "--out", out, "--model", "majority-vote").returncode == 0
    before = contents(out, [*TABLES, "result.crowdwise"])
    out.chmod(0o555)
    words = [sys.executable, "-c", LESSER, common / "first", "aggregate", common / "answers.csv", "--out"]
    for place in (out, out / "deeper"):
        done = subprocess.run([*map(str, words), str(place)], capture_output=True, text=True, cwd=common, timeout=60)
        assert done.returncode == 1, done.stderr
        assert "cannot write" in done.stderr
        assert "Permission denied" in done.stderr
        assert "Traceback" not in done.stderr
    assert contents(out, before) == before
    assert strays(out) == []


@pytest.mark.parametrize("room", ["none", "half of the labels", "all but the result"])
def test_r4_a_full_disk_is_told_and_the_old_output_is_kept(room, answers, tmp_path):
    """A limit on the size of files fails in the midst of writing, as a full disk does."""
    out, later = tmp_path / "out", tmp_path / "later"
    assert crowdwise("aggregate", answers, "--out", out, "--model", "majority-vote").returncode == 0
    assert crowdwise("aggregate", answers, "--out", later).returncode == 0
    before, after = contents(out, [*TABLES, "result.crowdwise"]), contents(later)
    sizes = [len(after[name]) for name in TABLES]
    limit = {"none": 0, "half of the labels": sizes[0] // 2, "all but the result": max(sizes) + 1}[room]
    assert limit < (later / "result.crowdwise").stat().st_size
    done = crowdwise(
        "aggregate", answers, "--out", out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    )
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert strays(out) == []
    assert (out / "result.crowdwise").read_bytes() == before["result.crowdwise"]
    assert contents(out) == (after if room == "all but the result" else {name: before[name] for name in TABLES})


# --------------------------------------------------------------------------------------------- R9: the same everywhere

PLACES = {
    "zone west": {"TZ": "America/New_York"},
    "zone east": {"TZ": "Asia/Kathmandu"},
    "turkish": {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
    "german": {"LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"},
    "no locale": {"LC_ALL": "C"},
    "hash 0": {"PYTHONHASHSEED": "0"},
    "hash 1": {"PYTHONHASHSEED": "1"},
    "hash random": {"PYTHONHASHSEED": "random"},
    "one thread": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
    "four threads": {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4", "POLARS_MAX_THREADS": "4"},
}


@pytest.fixture(scope="module")
def worldly(tmp_path_factory):
    """Answers with times round a change of the clocks, a second answer here and there, and labels of many scripts."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("worldly")
    names = ["İstanbul", "ISTANBUL", "ısı", "größe", "дом", "\U0001f431"]
    lines = ["task,worker,label,timestamp"]
    for n in range(1500):
        told = names[(n + rng.integers(2)) % 6] if rng.random() < 0.7 else names[rng.integers(6)]
        when = f"2024-03-31T0{rng.integers(4)}:{n // 60 % 60:02d}:{n % 60:02d}+0{rng.integers(3)}:00"
        lines.append(f"I{n % 120},w{rng.integers(15)},{told},{when}")
    (folder / "answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = crowdwise("aggregate", folder / "answers.csv", "--out", folder / "here", "--seed", 1)
    assert done.returncode == 0, done.stderr
    assert "kept the last by time" in done.stderr
    return folder / "answers.csv", contents(folder / "here")


@pytest.mark.parametrize("place", PLACES)
def test_r9_the_output_does_not_depend_on_the_place(place, worldly, tmp_path):
    file, here = worldly
    done = crowdwise("aggregate", file, "--out", tmp_path, "--seed", 1, env={**os.environ, **PLACES[place]})
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path) == here


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1254"])
@pytest.mark.parametrize(
    "words", [["aggregate"], ["aggregate", "--json"], ["inspect"], ["inspect", "--json"]], ids=" ".join
)
def test_r9_a_terminal_that_cannot_show_a_label_does_not_break_the_run(encoding, words, worldly):
    file, _ = worldly
    done = subprocess.run(
        [*CROWDWISE, words[0], file, *words[1:]], capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}
    )
    assert done.returncode == 0, done.stderr
    if "--json" in words:
        told = json.loads(done.stdout)
        shown = told["classes"] if words[0] == "aggregate" else [row["label"] for row in told["labels"]]
        assert "\U0001f431" in shown


@pytest.mark.parametrize("name", CLIMBERS)
def test_r9_threads_do_not_change_a_bit(name, large):
    chosen = cw.model(name, max_iter=4)
    fits = [chosen.fit(large, cw.Run(threads=threads)) for threads in (1, 2, 3, 4)]
    for fit in fits[1:]:
        assert fit.trace == fits[0].trace
        assert np.array_equal(fit.posterior, fits[0].posterior)
        assert fit.workers.equals(fits[0].workers)


def test_r9_threads_of_the_command_line_give_the_same_bytes(large, tmp_path):
    large.frame().write_csv(tmp_path / "answers.csv")
    for threads in (1, 4):
        out, env = tmp_path / f"out{threads}", {**os.environ, "OMP_NUM_THREADS": str(threads)}
        words = ["--out", out, "--threads", threads, "--max-iter", 6]
        assert crowdwise("aggregate", tmp_path / "answers.csv", *words, env=env).returncode == 3
    assert contents(tmp_path / "out1") == contents(tmp_path / "out4")


# --------------------------------------------------------------------------------------------- R11: not converged


def test_r11_a_fit_that_has_not_converged_says_so_everywhere(answers, tmp_path):
    words = ["aggregate", answers, "--max-iter", 2]
    done = crowdwise(*words, "--out", tmp_path)
    assert done.returncode == 3
    assert "warning: not converged after 2 sweeps" in done.stderr
    assert "NOT converged" in done.stderr
    saved = cw.load(tmp_path)
    assert saved.converged is False
    assert "NOT CONVERGED" in repr(saved)
    assert saved.warnings[0].startswith("not converged after 2 sweeps")
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 401  # what was reached is still given
    told = crowdwise(*words, "--json")
    assert told.returncode == 3
    summary = json.loads(told.stdout)
    assert (summary["converged"], summary["sweeps"]) == (False, 2)
    assert any(text.startswith("not converged") for text in summary["warnings"])


def test_r11_a_fit_that_has_converged_does_not(answers, tmp_path):
    done = crowdwise("aggregate", answers, "--out", tmp_path, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["converged"] is True
    assert cw.load(tmp_path).converged is True
    assert not any("converged" in text for text in cw.load(tmp_path).warnings)


@pytest.mark.parametrize("name", CLIMBERS)
def test_r11_every_climbing_model_flags_it(name, answers):
    result = cw.aggregate(cw.read(answers), name, max_iter=1)
    assert not result.converged
    assert result.warnings[0].startswith("not converged after 1 sweeps")
