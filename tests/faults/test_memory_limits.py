"""Too little memory: what the code R5 of the fault list must get, under real limits of the system."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

import crowdwise as cw
from crowdwise import limits
from crowdwise.engine import resources
from crowdwise.errors import Interrupted, MemoryNeedError
from crowdwise.labels.dawid_skene import DawidSkene

TOO_SMALL = (
    r"error: this process may reserve \d\.\d GB of {} \(ulimit -\w\), but the libraries need \d\.\d GB before any "
    r"answer is read\. Raise the limit; what is really used is limited better by a control group "
    r"\(systemd-run -p MemoryMax=2G\)\n"
)
NO_ROOM = r"error: only \d+ MB of memory may be used for answers.csv; at least 400 MB are needed to read it in parts\n"
WORDS = {"RLIMIT_AS": "address space", "RLIMIT_DATA": "data"}
LEAST = {each.status: each.reserved() for each in limits.LIMITS}
# Bytes more than the libraries need: refused at once, refused for this table, enough.
STEPS = [-1_990_000_000, -1_500_000_000, -900_000_000, -300_000_000, -1, 0, 100_000_000, 600_000_000]


def limited(kind, size, *words):
    """Run Python with a limit of the system."""
    which = getattr(resource, kind)
    return subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=200,
        preexec_fn=lambda: resource.setrlimit(which, (size, size)),
    )  # fmt: skip


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A file that is large enough for its size to count, and for compiled kernels."""
    folder = tmp_path_factory.mktemp("crowd")
    cw.simulate.crowd("confusion", tasks=15_000, workers=100, classes=3, per_task=5, seed=6).save(folder)
    return folder / "answers.csv"


@pytest.fixture(scope="module")
def old(answers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("old") / "out"
    start = [sys.executable, "-m", "crowdwise", "aggregate", answers, "--out", folder, "--model", "majority-vote"]
    subprocess.run(start, check=True, capture_output=True)
    return contents(folder)


@pytest.mark.parametrize(("kind", "status", "steps"), [
    ("RLIMIT_AS", "VmSize", STEPS), ("RLIMIT_DATA", "VmData", [-400_000_000, -1, 50_000_000]),
])  # fmt: skip
def test_r5_a_command_under_any_limit_succeeds_or_says_a_sentence(kind, status, steps, answers, old, tmp_path):
    for more in steps:
        out = tmp_path / str(more)
        out.mkdir()
        for name, data in old.items():
            (out / name).write_bytes(data)
        words = ("-m", "crowdwise", "aggregate", answers, "--out", out, "--max-iter", 2)
        done = limited(kind, LEAST[status] + more, *words)
        if more < 300_000_000:
            said = TOO_SMALL.format(WORDS[kind]) if more < 0 else NO_ROOM
            assert (done.returncode, done.stdout) == (1, ""), (more, done.stderr)
            assert re.fullmatch(said, done.stderr), (more, done.stderr)
            assert contents(out) == old, more
        else:
            assert done.returncode in (0, 3), (more, done.stderr)
            assert contents(out).keys() == old.keys()


IN_PYTHON = """
import crowdwise as cw
try:
    cw.aggregate
except cw.errors.MemoryNeedError as error:
    print(error)
"""


def test_r5_python_says_the_same_before_it_loads_the_libraries():
    done = limited("RLIMIT_AS", 500_000_000, "-c", IN_PYTHON)
    assert done.stdout.startswith("this process may reserve 0.5 GB of address space (ulimit -v), but"), done.stderr


def test_r5_help_needs_no_libraries():
    done = limited("RLIMIT_AS", 200_000_000, "-m", "crowdwise", "aggregate", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_r5_torch_needs_more(monkeypatch):
    least = limits.LIMITS[0].reserved()
    monkeypatch.setattr(resource, "getrlimit", lambda number: (least, least))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(MemoryNeedError, match=r"may reserve \d\.\d GB of address space .* the libraries need"):
        resources.require(("deep",), "scdc")


LATER = """
import resource
import numpy as np
import crowdwise as cw
rng = np.random.default_rng(1)
def crowd(classes):
    rows = rng.integers(0, 300, 40_000), rng.integers(0, 200, 40_000), rng.integers(0, classes, 40_000)
    return cw.Labels(*rows, duplicates="first")
few, many = crowd(5), crowd(3_000)
before = cw.aggregate(few, max_iter=3)
reserved = max(int(open("/proc/self/statm").read().split()[0]) * 4096, 2_200_000_000)
resource.setrlimit(resource.RLIMIT_AS, (reserved + 400_000_000,) * 2)
try:
    cw.aggregate(many, "dawid-skene")
except cw.errors.MemoryNeedError as error:
    print(error)
print((cw.aggregate(few, max_iter=3).posterior == before.posterior).all())
"""


def test_r5_a_fit_is_refused_before_it_starts_and_later_fits_work():
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, timeout=100)
    refused, same = done.stdout.splitlines()
    assert re.match(r"dawid-skene needs about \d+\.\d GB for 300 tasks, 200 workers and 3000 classes, but 0\.", refused)
    assert same == "True"


def endless(*_args, **_options):
    return np.empty(1 << 60, np.uint8)


RAN_OUT = (
    r"{} ran out of memory \(Unable to allocate .*\)\. Allow it more, or give it fewer answers, for instance a sample "
    r"of the tasks"
)


def test_r5_a_fit_that_runs_out_of_memory_breaks_nothing(crowd, monkeypatch):
    before = cw.aggregate(crowd.answers)
    with monkeypatch.context() as patched:
        patched.setattr(DawidSkene, "maximise", endless)
        with pytest.raises(MemoryNeedError, match=RAN_OUT.format("dawid-skene")):
            cw.DawidSkene().fit(crowd.answers)
    assert (cw.aggregate(crowd.answers).posterior == before.posterior).all()


@pytest.mark.parametrize(("place", "what", "call"), [
    ("crowdwise.io._read_files", "reading a.csv", lambda result: cw.read("a.csv")),
    ("crowdwise.io._read_frame", "reading", lambda result: cw.read({"task": [1], "worker": [1], "label": [1]})),
    ("crowdwise.report.page_of", "the report", lambda result: result.report("page.html")),
    ("crowdwise.result.store.parts_of", "saving", lambda result: result.save("saved")),
    ("crowdwise.acquisition.tasks._other_labels", "review", lambda result: cw.review(result)),
])  # fmt: skip
def test_r5_every_large_step_says_that_it_ran_out_of_memory(place, what, call, crowd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("task,worker,label\n1,1,1\n")
    result = cw.aggregate(crowd.answers)
    monkeypatch.setattr(place, endless)
    with pytest.raises(MemoryNeedError, match=RAN_OUT.format(what)):
        call(result)
    assert os.listdir(tmp_path) == ["a.csv"]


def test_r5_the_command_line_says_it_and_leaves_what_was_there(command, monkeypatch, tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\n1,1,1\n1,2,1\n2,1,0\n")
    out = tmp_path / "out"
    assert command("aggregate", tmp_path / "a.csv", "--out", out)[0] == 0
    before = contents(out)
    monkeypatch.setattr("crowdwise.report.page_of", endless)
    status, printed, said = command("aggregate", tmp_path / "a.csv", "--out", out, "--model", "soft-vote")
    assert (status, printed) == (1, "")
    assert re.search("error: " + RAN_OUT.format("the report"), said)
    assert contents(out) == before


TORCH = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8",
    "CUDA out of memory. Tried to allocate 2.00 GiB",
)


@pytest.mark.parametrize("said", TORCH)
def test_r5_too_little_memory_in_a_resumed_fit_is_not_called_a_damaged_checkpoint(said, monkeypatch):
    answers, left = cw.simulate.crowd("confusion", tasks=20, workers=5, seed=1).answers, iter(range(3))
    with pytest.raises(Interrupted) as broken:
        cw.aggregate(answers, "dawid-skene", run=cw.Run(stop=lambda: next(left, None) is None))

    def full(*_: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr("crowdwise.labels.em._EM.step", full)
    with pytest.raises(MemoryNeedError, match="dawid-skene ran out of memory"):
        cw.aggregate(answers, "dawid-skene", run=cw.Run(resume=broken.value.checkpoint))
    with pytest.raises(MemoryNeedError, match="dawid-skene ran out of memory"):
        cw.aggregate(answers, "dawid-skene")
