"""Too little memory: what the code R5 of the fault list must get, under real limits of the system."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import polars as pl
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
NO_ROOM = r"error: only \d+ MB of memory may be used for answers.csv; at least 150 MB are needed to read it in parts\n"
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
        if more <= 0:
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
    ("crowdwise.acquisition.cost.disagreement", "cost_curve", lambda result: cw.cost_curve(result)),
    ("crowdwise.result.store.read", "loading", lambda result: cw.load("saved")),
    ("crowdwise.io.conversion.table_of_answers", "convert", lambda result: cw.convert("a.csv", "b.csv")),
    ("crowdwise.io.returned.give_back", "export", lambda result: cw.export(result, "csv", "given")),
    ("crowdwise.io.features.read_table", "reading features", lambda result: cw.read_features("a.csv")),
    ("crowdwise.simulate.build_crowd", "the simulation", lambda result: cw.simulate.crowd()),
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


RNG = np.random.default_rng(3)


def clicks_of(count):
    image, at = RNG.integers(0, 20, count), RNG.integers(0, 6, count)
    x, y = 100 * at + RNG.normal(0, 8, count), 50.0 * (at % 3) + RNG.normal(0, 8, count)
    return cw.Points({"image": image, "worker": RNG.integers(0, 40, count), "x": x, "y": y})


def pairs_of(count, items, width=20):
    left, right = RNG.integers(0, items // 2, count), RNG.integers(items // 2, items, count)
    same, worker = (left % 5 == right % 5) ^ (RNG.random(count) < 0.1), np.arange(count) % 30
    X = RNG.normal(size=(items, width)) + 4 * RNG.normal(size=(5, width))[np.arange(items) % 5]
    rows = pl.DataFrame({"left": left, "right": right, "worker": worker, "same": same})
    return cw.Pairs(rows.unique(["left", "right", "worker"], maintain_order=True)), (np.arange(items), X)


def rows_of(count, width=40):
    truth, task = RNG.integers(0, 3, count), np.repeat(np.arange(count), 4)
    label = np.where(RNG.random(4 * count) < 0.8, truth[task], RNG.integers(0, 3, 4 * count))
    labels = cw.Labels(task, np.tile([1, 2, 3, 4], count), label)
    return RNG.normal(size=(count, width)) + truth[:, None], labels, np.arange(count)


@pytest.fixture
def estimates(monkeypatch):
    """The estimates of all fits, in bytes."""
    found = []
    for module in ("points.model", "pairs.model", "learn.estimator"):
        monkeypatch.setattr(f"crowdwise.{module}.refuse_if_too_large", lambda need, *_: found.append(need))
    return found


def peak(work):
    """Most bytes that are allocated at once, when all libraries are loaded."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [5_000, 20_000])
def test_r5_estimates_are_about_what_fits_of_clicks_take(size, estimates):
    clicks = clicks_of(size)
    for model in (cw.Dbscan(distance=3.0), cw.FuzzyCMeans(objects=6, max_iter=3)):
        taken = peak(lambda model=model: model.fit(clicks))
        assert 0.2 * estimates[-1] < taken < 1.5 * estimates[-1] + 1e6, model


@pytest.mark.parametrize("size", [5_000, 20_000])
def test_r5_estimates_are_about_what_fits_of_pairs_take(size, estimates):
    pairs, _ = pairs_of(size, size // 5)
    taken = peak(lambda: cw.aggregate(pairs, "pair-vote"))
    assert 0.2 * estimates[-1] < taken < 1.5 * estimates[-1] + 1e6
    pairs, features = pairs_of(500, size // 5, 100)
    taken = peak(lambda: cw.aggregate(pairs, "k-means-items", features=features))
    assert 0.2 * estimates[-1] < taken < 1.5 * estimates[-1] + 1e6


@pytest.mark.parametrize("size", [2_000, 10_000])
def test_r5_estimates_are_about_what_classifiers_take(size, estimates):
    X, labels, tasks = rows_of(size)
    taken = peak(lambda: cw.CrowdClassifier(workers="majority-vote").fit(X, labels, tasks=tasks))
    assert 0.2 * estimates[0] < taken < 1.5 * estimates[0] + 1e6


def test_r5_estimates_count_no_more_than_there_can_be(estimates):
    X, labels, _ = rows_of(1_000)
    more = np.zeros((20_000, X.shape[1]))  # without answers
    model = cw.CrowdClassifier(workers="majority-vote")
    model.fit(np.vstack([X, more]), labels, tasks=np.arange(len(X) + len(more)))
    assert estimates[0] < more.nbytes / 2
    one_place = {"image": ["i"] * 400, "worker": np.arange(400), "x": np.ones(400), "y": np.ones(400)}
    for fit, pairs_of_clicks in ((cw.Dbscan(), 1), (cw.FuzzyCMeans(objects=10**9, max_iter=2), 6)):
        fit.fit(cw.Points(one_place))
        assert estimates[-1] < 1.1 * 8 * 400**2 * pairs_of_clicks, fit


TOO_LARGE = r"{} needs about 0\.\d GB for {}, but 0\.0 GB may be used\. Allow it more, {}"
IMAGES = TOO_LARGE.format("click-mixture", r"5000 clicks on 20 images", "or fit the images in several parts")
ANSWERS = TOO_LARGE.format("pair-mixture", r"\d+ answers about \d+ items", "or fit a sample of the items")
ITEMS = TOO_LARGE.format(
    "k-means-items", r"\d+ answers about \d+ items and 20 features of 300 items", "or fit a sample of the items"
)
CLASSES = TOO_LARGE.format(
    "majority-vote", r"0\.0 GB of features and 4000 answers", "give fewer features, or train on a sample of the tasks"
)


@pytest.fixture
def little(monkeypatch):
    """Almost no memory may be used."""
    monkeypatch.setattr("crowdwise.engine.resources.available", lambda: 10_000)


def test_r5_fits_are_refused_in_words_before_they_start(little):
    seen, (pairs, features), (X, labels, tasks) = [], pairs_of(900, 300), rows_of(1000)
    run = cw.Run(watch=seen.append)
    with pytest.raises(MemoryNeedError, match=IMAGES):
        cw.aggregate(clicks_of(5_000), run=run)
    with pytest.raises(MemoryNeedError, match=ANSWERS):
        cw.aggregate(pairs, run=run)
    with pytest.raises(MemoryNeedError, match="pair-mixture needs"):
        cw.aggregate(pairs, features=features, run=run)
    with pytest.raises(MemoryNeedError, match=CLASSES):
        cw.CrowdClassifier(workers="majority-vote").fit(X, labels, tasks=tasks, run=run)
    assert seen == []


def test_r5_features_of_items_count(monkeypatch):
    pairs, features = pairs_of(900, 300)
    monkeypatch.setattr("crowdwise.engine.resources.available", lambda: 400_000)
    with pytest.raises(MemoryNeedError, match=ITEMS):
        cw.aggregate(pairs, "k-means-items", features=features)


@pytest.mark.parametrize(("verb", "said"), [("points", IMAGES), ("pairs", ANSWERS), ("learn", CLASSES)])
def test_r5_commands_refuse_fits_in_words_and_write_nothing(verb, said, command, little, tmp_path):
    X, labels, tasks = rows_of(1000)
    tables = {"points": clicks_of(5_000), "pairs": pairs_of(900, 300)[0], "learn": labels}
    tables[verb].frame().write_csv(tmp_path / "a.csv")
    np.savez(tmp_path / "x.npz", task=tasks, x=X)
    more = ["--features", tmp_path / "x.npz", "--workers", "majority-vote"] if verb == "learn" else []
    status, out, err = command(verb, tmp_path / "a.csv", "--out", tmp_path / "out", *more)
    assert (status, out) == (1, "")
    assert re.search("error: " + said, err), err
    assert not (tmp_path / "out").exists()


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
