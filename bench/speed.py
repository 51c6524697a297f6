"""Speed and memory compared with crowd-kit, peerannot and cleanlab: ratios, measured in turns on this machine.

python bench/speed.py [--only iteration,fit,...] [--small | --full] [--json FILE]

Times on one machine mean little, so each figure is peer time / our time, printed with its target. Both sides get the
same answers and the same number of iterations, and take turns in one process. An iteration costs (time of n + m
iterations - time of n) / m, so that the set-up cancels; it is processor time, because the machine may be busy. We use
one thread, except in the sections threads, file and start. Answers come in random order, as in a log, with pandas'
default 64-bit ids; crowd-kit is faster on 32-bit ids in task order, so that is measured as well.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

import crowdwise as cw

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Fit: TypeAlias = Callable[[int], int]  # iterations asked for -> iterations done
Job: TypeAlias = Callable[[], float]  # -> seconds
Clock: TypeAlias = Callable[[], float]
CACHE_LINE = 64  # bytes
MAX_SECONDS = 3600  # of another process
PER_TASK, PER_WORKER = 5, 100  # answers
FILE_ITERATIONS, FIT_ITERATIONS = 10, 20
NOT_CONVERGED = 3  # exit status of the command when it reaches --max-iter, which is intended here
COMMAND = (sys.executable, "-m", "crowdwise")  # the code measured here, not another installed version


# Installed packages have compiled modules; where Python may not write them, each start would compile all of ours again.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Target(NamedTuple):
    sign: Literal[">=", "<="]
    bound: float

    def met(self, value: float) -> bool:
        return value >= self.bound if self.sign == ">=" else value <= self.bound


class Figure(NamedTuple):
    """One measured number with its target and the numbers behind it."""

    section: str
    what: str
    value: float
    unit: str
    target: Target | None = None
    details: Mapping[str, float | str] = MappingProxyType({})

    def __str__(self) -> str:
        target = f"{self.target.sign} {self.target.bound:g} {self.unit}" if self.target else ""
        verdict = "" if self.target is None else "met" if self.target.met(self.value) else "MISSED"
        details = ", ".join(f"{k} {v}" if isinstance(v, str) else f"{k} {v:.3g}" for k, v in self.details.items())
        return f"{self.section:10}{self.what:44}{self.value:>9.3g} {self.unit:3}{target:>10} {verdict:7}{details}"


class Scale(NamedTuple):
    """How many answers each section gets."""

    sizes: tuple[int, ...]  # Dawid-Skene per iteration
    hundred: int  # largest size on which crowd-kit is measured at K = 100
    whole: int  # whole fit, and pooled
    models: int  # glad, mace, one-coin
    large: int  # memory, threads, file, crowd of workers with one answer each
    starts: int  # runs of the command from the shell


SMALL = Scale((10_000,), 10_000, 20_000, 5_000, 150_000, 3)
MODERATE = Scale((10_000, 100_000, 1_000_000), 100_000, 1_000_000, 100_000, 1_000_000, 7)
FULL = Scale((10_000, 100_000, 1_000_000, 10_000_000), 1_000_000, 1_000_000, 100_000, 10_000_000, 7)
MAX_PEER_MEMORY_ANSWERS = 1_000_000  # answers on which crowd-kit's memory is measured
MAX_PEERANNOT_ANSWERS = 10_000  # limited by its dense array of tasks x workers x classes
MAX_CLEANLAB_ANSWERS = 100_000  # limited by its dense table of tasks x workers
CROWDKIT = {"one-coin": ("OneCoinDawidSkene", {}), "mace": ("MACE", {"n_restarts": 1}), "glad": ("GLAD", {})}


# --------------------------------------------------------------------------------------------------------- answers


class Answers(NamedTuple):
    """Coded answers."""

    task: Ints
    worker: Ints
    label: Ints

    def labels(self) -> cw.Labels:
        return cw.Labels(*self)

    def pandas(self) -> Any:
        import pandas as pd

        return pd.DataFrame(self._asdict())

    def tidy(self) -> Any:
        """A pandas frame on which crowd-kit is fastest: 32-bit ids, in task order."""
        return self.pandas().sort_values("task", ignore_index=True).astype(np.int32)

    def strings(self) -> Any:
        """A polars frame of names like those in exports of platforms."""
        import polars as pl

        names = {"task": "task_{:08d}", "worker": "worker_{:07d}", "label": "class_{:03d}"}
        columns = {}
        for column, codes in self._asdict().items():
            known = pl.Series([names[column].format(code) for code in range(int(codes.max()) + 1)])
            columns[column] = known[codes]
        return pl.DataFrame(columns)


def simulate(n_answers: int, n_classes: int, seed: int = 0) -> Answers:
    """Simulate answers in random order: even classes and errors, skills from Beta(6, 2), no worker twice per task."""
    rng = np.random.default_rng(seed)
    n_tasks, n_workers = n_answers // PER_TASK, max(n_answers // PER_WORKER, 10)
    truth, skill = rng.integers(n_classes, size=n_tasks), rng.beta(6, 2, size=n_workers)
    first = rng.integers(n_workers, size=(n_tasks, 1))
    step = rng.integers(1, max(n_workers // PER_TASK, 2), size=(n_tasks, 1))
    worker = (first + step * np.arange(PER_TASK)) % n_workers
    error = np.where(rng.random(worker.shape) < skill[worker], 0, rng.integers(1, n_classes, size=worker.shape))
    label = (truth[:, None] + error) % n_classes
    order = rng.permutation(worker.size)
    return Answers(np.repeat(np.arange(n_tasks), PER_TASK)[order], worker.ravel()[order], label.ravel()[order])


def short(count: int) -> str:
    return f"{count // 1_000_000}M" if count >= 1_000_000 else f"{count // 1000}k"


# ---------------------------------------------------------------------------------------------------------- timing


def seconds(work: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    gc.collect()
    began = clock()
    work()
    return clock() - began


def interleaved(repeats: int, *jobs: Job) -> list[float]:
    """Median time of each job; jobs take turns, and the first runs once more at the end."""
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(repeats):
        for job, seen in zip(jobs, times, strict=True):
            seen.append(job())
    times[0].append(jobs[0]())
    return [statistics.median(seen) for seen in times]


class Plan(NamedTuple):
    """Fits of `few` and of `few + more` iterations, repeated `repeats` times."""

    few: int
    more: int
    repeats: int


def plan_for(cells: int) -> Plan:
    """Plan by answers x classes, such that crowd-kit takes about half a minute up to 10 million."""
    for most, plan in ((200_000, Plan(2, 20, 7)), (1_000_000, Plan(2, 10, 5)), (10_000_000, Plan(2, 5, 3))):
        if cells <= most:
            return plan
    return Plan(1, 2, 1)


def per_iteration(fit: Fit, plan: Plan, clock: Clock = time.process_time) -> Job:
    """Return a job that measures seconds per iteration; processor time is less affected by other load."""

    def job() -> float:
        done: list[int] = []
        few = seconds(lambda: done.append(fit(plan.few)), clock)
        many = seconds(lambda: done.append(fit(plan.few + plan.more)), clock)
        return (many - few) / (done[1] - done[0]) if done[1] > done[0] else math.nan

    return job


# ----------------------------------------------------------------------------------------------- fits to compare


def our_fit(name: str, answers: cw.Labels, threads: int = 1) -> Fit:
    def fit(iterations: int) -> int:
        result = cw.model(name, max_iter=iterations, tol=0.0).fit(answers, run=cw.Run(threads=threads))
        return int(result.trace.height)

    return fit


def crowdkit_fit(name: str, frame: Any, **settings: Any) -> Fit:
    """Fit with crowd-kit, which stops when its objective rises by less than `tol`: minus infinity disables that."""
    import crowdkit.aggregation

    kind = getattr(crowdkit.aggregation, name)
    endless = {} if name == "MACE" else {"tol": -math.inf}  # MACE never stops early

    def fit(iterations: int) -> int:
        fitted = kind(n_iter=iterations, **endless, **settings).fit(frame)
        return len(fitted.loss_history_) if endless else iterations

    return fit


def peerannot_fit(answers: Answers, n_classes: int) -> Fit:
    from peerannot.models import DawidSkene

    table: dict[int, dict[int, int]] = {}
    for task, worker, label in zip(*(codes.tolist() for codes in answers), strict=True):
        table.setdefault(task, {})[worker] = label
    model = DawidSkene(table, n_workers=int(answers.worker.max()) + 1, n_classes=n_classes)

    def fit(iterations: int) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return int(model.run(epsilon=0.0, maxiter=iterations)[1])

    return fit


@cache
def bandwidth() -> float:
    """Bytes per second that one thread reads from memory in a stream, at best."""
    import numba

    @numba.njit(fastmath=True)
    def add(values):  # type: ignore[no-untyped-def]
        total = 0.0
        for n in range(len(values)):  # by index, else numba does not vectorise it
            total += values[n]
        return total

    values = np.ones(1 << 26)
    add(values)
    return values.nbytes / min(seconds(lambda: add(values), time.process_time) for _ in range(7))


def milliseconds(ours: float, theirs: float) -> dict[str, float | str]:
    return {"ours ms": 1e3 * ours, "theirs ms": 1e3 * theirs}


def least_bytes(n_classes: int, item: int) -> int:
    """Bytes that an answer touches in an iteration: a row of P and a row of Z in whole cache lines, and two indices."""
    return 2 * CACHE_LINE * math.ceil(n_classes * item / CACHE_LINE) + 8


def bound_details(spent: float, n_answers: int, n_classes: int, item: int) -> dict[str, float | str]:
    each = spent / n_answers
    share = least_bytes(n_classes, item) / bandwidth() / each
    return {"ns/answer": 1e9 * each, "% of memory bound": 100 * share}


def beside(section: str, what: str, ours: Fit, theirs: Fit, plan: Plan, target: Target | None = None) -> Figure:
    """Ratio of their time per iteration to ours."""
    ours(2)  # compiles
    spent, peer = interleaved(plan.repeats, per_iteration(ours, plan), per_iteration(theirs, plan))
    return Figure(section, what, peer / spent, "x", target, milliseconds(spent, peer))


# --------------------------------------------------------------------------------------------------- the sections


def iteration(scale: Scale) -> Iterator[Figure]:
    """One iteration of Dawid-Skene."""
    for n_answers in scale.sizes:
        for n_classes in (2, 10, 100):
            if n_classes < 100 or n_answers <= scale.hundred or scale is FULL:
                with_peer = n_classes < 100 or n_answers <= scale.hundred
                yield _iteration(simulate(n_answers, n_classes), n_classes, with_peer)
    for n_classes in (2, 10):
        yield _against_tidy(min(1_000_000, scale.sizes[-1]), n_classes)
        for against, most in ((_against_peerannot, MAX_PEERANNOT_ANSWERS), (_against_cleanlab, MAX_CLEANLAB_ANSWERS)):
            try:
                yield against(min(most, scale.sizes[-1]), n_classes)
            except ImportError as error:
                yield Figure("iteration", f"skipped: {error}", math.nan, "x")


def _iteration(answers: Answers, n_classes: int, with_peer: bool) -> Figure:
    n_answers, what = len(answers.task), f"dawid-skene, N = {short(len(answers.task))}, K = {n_classes}"
    labels, plan = answers.labels(), plan_for(len(answers.task) * n_classes)
    ours = our_fit("dawid-skene", labels)
    try:
        ours(1)  # compiles
    except cw.errors.MemoryNeedError as error:
        return Figure("iteration", what, math.nan, "x", None, {"skipped:": str(error)})
    item = labels.kernels.STORAGE.itemsize
    if not with_peer:
        spent = interleaved(plan.repeats, per_iteration(ours, plan))[0]
        return Figure("iteration", what, spent, "s", None, bound_details(spent, n_answers, n_classes, item))
    theirs = crowdkit_fit("DawidSkene", answers.pandas())
    try:
        own = plan._replace(more=max(plan.more, 8))  # with one or two iterations, ours would be mostly noise
        spent, peer = interleaved(plan.repeats, per_iteration(ours, own), per_iteration(theirs, plan))
    except MemoryError as error:
        return Figure("iteration", what, math.nan, "x", None, {"skipped:": f"crowd-kit needs too much memory {error}"})
    target = iteration_target(n_answers, n_classes)
    details = bound_details(spent, n_answers, n_classes, item) | {"theirs ns/answer": 1e9 * peer / n_answers}
    return Figure("iteration", what, peer / spent, "x", target, details)


def iteration_target(n_answers: int, n_classes: int) -> Target | None:
    if n_classes == 100:
        return Target(">=", 30) if n_answers >= 100_000 else None
    return Target(">=", 60) if n_answers >= 1_000_000 else Target(">=", 25) if n_answers <= 10_000 else None


def _against_tidy(n_answers: int, n_classes: int) -> Figure:
    answers = simulate(n_answers, n_classes)
    ours, theirs = our_fit("dawid-skene", answers.labels()), crowdkit_fit("DawidSkene", answers.tidy())
    what = f"their best input, N = {short(n_answers)}, K = {n_classes}"
    return beside("iteration", what, ours, theirs, Plan(2, 5, 2))


def _against_peerannot(n_answers: int, n_classes: int) -> Figure:
    answers = simulate(n_answers, n_classes)
    ours, theirs = our_fit("dawid-skene", answers.labels()), peerannot_fit(answers, n_classes)
    what = f"dawid-skene / peerannot, N = {short(n_answers)}, K = {n_classes}"
    return beside("iteration", what, ours, theirs, Plan(1, 3, 3))


def _against_cleanlab(n_answers: int, n_classes: int) -> Figure:
    """Majority vote only: cleanlab has no Dawid-Skene. Making its wide table is not timed."""
    from cleanlab.multiannotator import get_majority_vote_label

    answers = simulate(n_answers, n_classes)
    labels, wide = answers.labels(), answers.pandas().pivot(index="task", columns="worker", values="label")
    spent, peer = interleaved(
        3,
        lambda: seconds(lambda: cw.MajorityVote().fit(labels)),
        lambda: seconds(lambda: get_majority_vote_label(wide, verbose=False)),
    )
    what = f"majority-vote / cleanlab, N = {short(n_answers)}, K = {n_classes}"
    return Figure("iteration", what, peer / spent, "x", None, milliseconds(spent, peer))


def fit(scale: Scale) -> Iterator[Figure]:
    """A whole fit of Dawid-Skene, from a frame to the labels."""
    answers = simulate(scale.whole, 10)
    text = answers.strings().to_pandas()

    def ours(make: Callable[[], cw.Labels]) -> Job:
        return lambda: seconds(lambda: our_fit("dawid-skene", make())(FIT_ITERATIONS))

    def theirs(frame: Any) -> Job:
        return lambda: seconds(lambda: crowdkit_fit("DawidSkene", frame)(FIT_ITERATIONS))

    our_fit("dawid-skene", answers.labels())(1)
    codes, peer_codes, strings, peer_strings = interleaved(
        1, ours(answers.labels), theirs(answers.pandas()), ours(lambda: cw.Labels(text)), theirs(text)
    )
    size = f"{FIT_ITERATIONS} iterations, N = {short(scale.whole)}, K = 10"
    details = {"ours s": codes, "theirs s": peer_codes, "theirs on strings x": peer_strings / codes}
    yield Figure("fit", f"from codes, {size}", peer_codes / codes, "x", Target(">=", 40), details)
    details = {"ours s": strings, "theirs s": peer_strings}
    yield Figure("fit", f"from strings, {size}", peer_strings / strings, "x", Target(">=", 15), details)


def models(scale: Scale) -> Iterator[Figure]:
    """One iteration of the other models."""
    labels, plan = simulate(scale.whole, 10).labels(), Plan(2, 5, 3)
    fits = [our_fit(name, labels) for name in ("dawid-skene", "pooled")]
    for run in fits:
        run(2)  # compiles; the second iteration is the first to pool
    plain, pooled = interleaved(plan.repeats, *(per_iteration(run, plan) for run in fits))
    size = f"N = {short(scale.whole)}, K = 10"
    yield Figure("models", f"pooled over dawid-skene, {size}", pooled / plain, "x", Target("<=", 3))
    for n_classes in (2, 10):
        yield from _against_crowdkit(scale.models, n_classes, with_glad=n_classes == 2)


def _against_crowdkit(n_answers: int, n_classes: int, with_glad: bool) -> Iterator[Figure]:
    """crowd-kit's GLAD takes minutes per iteration beyond two classes."""
    answers = simulate(n_answers, n_classes)
    labels, frame = answers.labels(), answers.pandas()
    for name, (peer, settings) in CROWDKIT.items():
        if name == "glad" and not with_glad:
            continue
        ours, theirs = our_fit(name, labels), crowdkit_fit(peer, frame, **settings)
        plan = Plan(1, 2, 1) if name == "glad" else Plan(2, 5, 3)
        yield beside("models", f"{name}, N = {short(n_answers)}, K = {n_classes}", ours, theirs, plan, Target(">=", 20))


def memory(scale: Scale) -> Iterator[Figure]:
    """Bytes per answer that a fit takes above its input."""
    ours = child("memory", "crowdwise", scale.large, 10)["bytes"]
    few = min(scale.large, MAX_PEER_MEMORY_ANSWERS)
    theirs = child("memory", "crowdkit", few, 10)["bytes"]
    yield Figure("memory", f"ours, N = {short(scale.large)}, K = 10", ours, "B", Target("<=", 32))
    yield Figure("memory", f"crowd-kit, N = {short(few)}, K = 10", theirs, "B", None, {"over ours x": theirs / ours})


def threads(scale: Scale) -> Iterator[Figure]:
    """Two threads against one."""
    labels = simulate(scale.large, 10).labels()
    plan = Plan(1, 5, 3) if scale is FULL else Plan(2, 20, 5)
    jobs = [per_iteration(our_fit("dawid-skene", labels, count), plan, time.perf_counter) for count in (2, 1)]
    our_fit("dawid-skene", labels)(1)
    two, one = interleaved(plan.repeats, *jobs)
    what = f"two over one, N = {short(scale.large)}, K = 10"
    details = {"one ms": 1e3 * one, "two ms": 1e3 * two, "load": os.getloadavg()[0]}
    yield Figure("threads", what, one / two, "x", Target(">=", 1.6), details)


def file(scale: Scale) -> Iterator[Figure]:
    """From a CSV of names on disk to labels on disk, each side in its own process. We also write the tables of workers
    and tasks and the saved result, but no page: the other side has none."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "answers.csv", Path(folder) / "out"
        simulate(scale.large, 10).strings().write_csv(table)
        settings = ("--model", "dawid-skene", "--max-iter", FILE_ITERATIONS, "--tol", "0")
        details: dict[str, float | str] = {}
        if command_works():
            ours = lambda: shell(*COMMAND, "aggregate", table, "--out", out, "--no-page", *settings)  # noqa: E731
        else:
            details["no command:"] = "cw.Labels of a polars frame stands in"
            ours = lambda: shell(*_child("stand-in", table, out))  # noqa: E731
        ours()  # compiles, as the first run on a machine does
        spent, peer = interleaved(1, ours, lambda: shell(*_child("pandas", table, out)))
        size = f"CSV to labels, N = {short(scale.large)}, K = 10"
        yield Figure("file", size, peer / spent, "x", Target(">=", 10), {"ours s": spent, "theirs s": peer} | details)


def reading(scale: Scale) -> Iterator[Figure]:
    """Long rows of a CSV as answers, compared with reading the CSV by the table library and coding its columns: the
    rest is for checks of the text and places of rows. And the peak of reading an export that is streamed."""
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        table, export = Path(folder) / "answers.csv", Path(folder) / "export.json"
        simulate(scale.large, 10).strings().write_csv(table)
        ours, library = interleaved(
            3,
            lambda: seconds(lambda: cw.read(table, memory="100GB")),
            lambda: seconds(lambda: cw.Labels(pl.read_csv(table, infer_schema=False))),
        )
        what = f"cw.read over polars and coding, N = {short(scale.large)}"
        yield Figure("reading", what, ours / library, "x", Target("<=", 1.3), {"ours s": ours, "polars s": library})
        size = 2_000_000_000 if scale is FULL else 20_000_000 if scale is SMALL else 200_000_000
        tasks = write_export(export, size)
        seen = child("export", export)
        details = {"s": seen["seconds"], "tasks": tasks, "answers": seen["answers"], "MB of file": size / 1e6}
        peak = seen["gigabytes"] * 1000
        yield Figure("reading", "Label Studio export: peak", peak, "MB", Target("<=", 600), details)


def write_export(path: Path, size: int) -> int:
    """Write an export of Label Studio with three annotations per task until it has this size, and return the number of
    tasks."""
    rng = np.random.default_rng(0)
    words = ["".join(chr(97 + c) for c in rng.integers(26, size=rng.integers(2, 10))) for _ in range(3000)]
    tasks, written = 0, 0
    with path.open("w") as file:
        file.write("[")
        while written < size:
            tasks += 1
            text = " ".join(words[n] for n in rng.integers(3000, size=45))
            annotations = [
                _annotation(tasks, int(w), float(u))
                for w, u in zip(rng.integers(500, size=3), rng.random(3), strict=True)
            ]
            record = {
                "id": tasks, "annotations": annotations, "file_upload": "texts.csv", "drafts": [], "predictions": [],
                "data": {"text": text}, "meta": {}, "created_at": "2026-01-01T00:00:00.000000Z",
                "updated_at": "2026-01-03T00:00:00.000000Z", "inner_id": tasks, "total_annotations": 3,
                "cancelled_annotations": 0, "total_predictions": 0, "comment_count": 0, "project": 3, "updated_by": 1,
            }  # fmt: skip
            line = ("," if tasks > 1 else "") + json.dumps(record)
            written += len(line)
            file.write(line)
        file.write("]")
    return tasks


def _annotation(task: int, worker: int, share: float) -> dict[str, Any]:
    """An annotation with the fields that Label Studio writes."""
    at = f"2026-01-02T03:{int(60 * share):02d}:07.123456Z"
    choices = {"choices": [("Positive", "Negative", "Neutral")[int(3 * share)]]}
    result = {
        "value": choices,
        "id": f"r{task}w{worker}",
        "from_name": "sentiment",
        "to_name": "text",
        "type": "choices",
    }
    return {
        "id": 1000 * task + worker, "completed_by": {"id": worker, "email": f"user{worker}@example.org"},
        "result": [result | {"origin": "manual"}], "was_cancelled": share < 0.02, "ground_truth": False,
        "created_at": at, "updated_at": at, "draft_created_at": at, "lead_time": 30 * share, "prediction": {},
        "result_count": 1, "unique_id": f"{task:016x}-{worker:08x}", "import_id": None, "last_action": None,
        "bulk_created": False, "task": task, "project": 3, "updated_by": worker, "parent_prediction": None,
        "parent_annotation": None, "last_created_by": None,
    }  # fmt: skip


def crowd(scale: Scale) -> Iterator[Figure]:
    """A crowd in which every worker gives one answer."""
    seen = child("crowd", scale.large if scale is SMALL else 1_000_000)
    what = f"{short(int(seen['workers']))} workers, one answer each: peak"
    yield Figure("crowd", what, seen["gigabytes"], "GB", Target("<=", 2), {"s": seen["seconds"]})


def start(scale: Scale) -> Iterator[Figure]:
    """From the shell, in units of `python -c "import numpy"`."""
    if not command_works():
        yield Figure("start", "skipped: the command does not run", math.nan, "x")
        return
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "answers.csv", Path(folder) / "out"
        simulate(10_000, 2).strings().write_csv(table)
        numpy, helped, small = interleaved(
            scale.starts,
            lambda: shell(sys.executable, "-c", "import numpy"),
            lambda: shell(*COMMAND, "--help"),
            lambda: shell(*COMMAND, "aggregate", table, "--out", out),
        )
    details: dict[str, float | str] = {"import numpy ms": 1e3 * numpy}
    yield Figure("start", "crowdwise --help over import numpy", helped / numpy, "x", Target("<=", 2), details)
    yield Figure("start", "aggregate 10k rows over import numpy", small / numpy, "x", Target("<=", 6), details)


SECTIONS = (iteration, fit, models, memory, threads, file, reading, crowd, start)


# ------------------------------------------------------------------------------------------------ other processes


def shell(*words: object) -> float:
    """Seconds of a command, from start to end of its process."""
    began = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, env=ENVIRONMENT, timeout=MAX_SECONDS
    )
    spent = time.perf_counter() - began
    if done.returncode not in (0, NOT_CONVERGED):
        raise RuntimeError(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return spent


@cache
def command_works() -> bool:
    return subprocess.run([*COMMAND, "--help"], capture_output=True).returncode == 0


def _child(name: str, *values: object) -> list[object]:
    return [sys.executable, __file__, "--child", name, *values]


def child(name: str, *values: object) -> dict[str, float]:
    """Run one of CHILDREN in a fresh process and return its measurements."""
    words = [str(word) for word in _child(name, *values)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=MAX_SECONDS)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def status(field: str) -> int:
    """Memory of this process in bytes, as reported by Linux: VmRSS (now) or VmHWM (peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def peak_above(work: Callable[[], Any]) -> int:
    """Peak memory of `work` in bytes, above the memory held before."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # freed memory that is not returned would hide what `work` allocates
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = status("VmRSS")
    work()
    return status("VmHWM") - before


def child_memory(whose: str, n_answers: str, n_classes: str) -> dict[str, float]:
    warm, answers = simulate(110_000, int(n_classes)), simulate(int(n_answers), int(n_classes))
    make: Callable[[Answers], Fit]
    if whose == "crowdwise":
        make = lambda given: our_fit("dawid-skene", given.labels())  # noqa: E731
    else:
        make = lambda given: crowdkit_fit("DawidSkene", given.pandas())  # noqa: E731
    make(warm)(2)  # compiles, imports
    fit = make(answers)
    del warm
    return {"bytes": peak_above(lambda: fit(3)) / len(answers.task)}


def child_crowd(n_workers: str) -> dict[str, float]:
    count = int(n_workers)
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(count // PER_TASK), PER_TASK)
    truth = rng.integers(2, size=len(task) // PER_TASK).repeat(PER_TASK)
    label = np.where(rng.random(len(task)) < 0.75, truth, 1 - truth)

    def work() -> None:
        result = cw.aggregate(cw.Labels(task, np.arange(len(task)), label))
        _ = result.labels, result.workers, result.tasks

    spent = seconds(work)
    return {"seconds": spent, "gigabytes": status("VmHWM") / 1e9, "workers": len(task)}


def child_pandas(table: str, out: str) -> None:
    import pandas as pd

    frame = pd.read_csv(table, dtype=str)
    from crowdkit.aggregation import DawidSkene

    labels = DawidSkene(n_iter=FILE_ITERATIONS, tol=-math.inf).fit_predict(frame)
    Path(out).mkdir(exist_ok=True)
    labels.to_csv(Path(out) / "peer.csv")


def child_export(path: str) -> dict[str, float]:
    answers: list[cw.Labels] = []
    spent = seconds(lambda: answers.append(cw.read(path)))
    return {"seconds": spent, "gigabytes": status("VmHWM") / 1e9, "answers": answers[0].n_answers}


def child_stand_in(table: str, out: str) -> None:
    import polars as pl

    answers = cw.Labels(pl.read_csv(table, infer_schema=False))
    result = cw.DawidSkene(max_iter=FILE_ITERATIONS, tol=0.0).fit(answers)
    Path(out).mkdir(exist_ok=True)
    result.labels.write_csv(Path(out) / "labels.csv")


CHILDREN: dict[str, Callable[..., dict[str, float] | None]] = {
    "memory": child_memory,
    "crowd": child_crowd,
    "pandas": child_pandas,
    "stand-in": child_stand_in,
    "export": child_export,
}


# --------------------------------------------------------------------------------------------------- command line


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [section.__name__ for section in SECTIONS]
    parser.add_argument("--only", type=lambda text: text.split(","), default=names, help=", ".join(names))
    parser.add_argument("--full", action="store_true", help="all sizes, up to 10 million answers (about an hour)")
    parser.add_argument("--small", action="store_true", help="only check that the script runs; figures mean nothing")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.only) - set(names):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return given


def measure(given: argparse.Namespace) -> Iterator[Figure]:
    scale = FULL if given.full else SMALL if given.small else MODERATE
    for section in SECTIONS:
        if section.__name__ in given.only:
            try:
                yield from (f if scale is not SMALL else f._replace(target=None) for f in section(scale))
            except ImportError as error:
                yield Figure(section.__name__, f"skipped: {error}", math.nan, "x")
            except (MemoryError, RuntimeError, subprocess.SubprocessError, cw.errors.CrowdwiseError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                yield Figure(section.__name__, "failed", math.nan, "x", None, {"reason:": reason})


def as_json(figures: list[Figure]) -> str:
    plain = [
        {**f._asdict(), "target": f.target and f"{f.target.sign} {f.target.bound:g}", "details": dict(f.details)}
        for f in figures
    ]
    return json.dumps({"version": cw.__version__, "bandwidth": bandwidth(), "figures": plain}, indent=1)


def main() -> None:
    given = options()
    if given.child:
        print(json.dumps(CHILDREN[given.child[0]](*given.child[1:])))
        return
    os.environ["TQDM_DISABLE"] = "1"  # peerannot draws a progress bar for every fit
    figures = []
    for figure in measure(given):
        print(figure, flush=True)
        figures.append(figure)
    with_target = [f for f in figures if f.target]
    print(f"{sum(f.target.met(f.value) for f in with_target if f.target)} of {len(with_target)} targets met")
    if given.json:
        given.json.write_text(as_json(figures))


if __name__ == "__main__":
    main()
