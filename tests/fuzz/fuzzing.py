"""Standing fuzzers: random inputs, by a seed, to what reads files, saved results, frames and arguments.

A fuzzer makes an input from a random generator and checks it: whatever the input is, the public functions return a
result or raise an error of Crowdwise, in time. A module `fuzz_*.py` in this folder declares its fuzzers. `make fuzz`
runs all of them for some minutes in processes of their own, so that a crash or a hang is one failure among others;
`test_fuzzers.py` runs a few inputs of each, and every input that ever failed (`kept`).

    python tests/fuzz/fuzzing.py --seconds 900 --seed 7 --only delimited --out fuzz-failures
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import multiprocessing
import os
import random
import resource
import secrets
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from crowdwise.errors import CrowdwiseError

HERE = Path(__file__).parent
CASES = HERE / "cases"  # inputs that failed once: a folder per fuzzer
MAX_SECONDS = 60  # for one input; a busy machine may have to compile kernels for it
MAX_SILENCE = 180.0  # seconds after which a process that does not come back from compiled code is ended
MAX_MEMORY = 6 << 30  # bytes of address space of a process: the input is small, so what needs more is a bomb
EVENTS = 500  # of a process before the other has its turn
TURN = 2.0  # seconds of one fuzzer before the next has its turn


@dataclass(frozen=True)
class Fuzzer:
    """How inputs of one sort are made and checked."""

    name: str
    make: Callable[[random.Random, Path], Any]  # an input; files go to the folder, which is empty
    check: Callable[[Any], object]  # raises AssertionError, or what must not be raised; returns the outcome, in a word
    kept: Callable[[Path], Iterable[tuple[str, Any]]] = lambda _: ()  # names and inputs that failed once
    slice: int = 20  # inputs in the ordinary tests


def kept_files(name: str) -> Callable[[Path], Iterator[tuple[str, Path]]]:
    """Return what yields a copy of every file (or folder) in the folder of cases of a fuzzer."""

    def each(folder: Path) -> Iterator[tuple[str, Path]]:
        for case in sorted((CASES / name).iterdir()):
            place = folder / case.name
            shutil.copytree(case, place) if case.is_dir() else shutil.copy(case, place)
            yield case.name, place

    return each


def outcome(call: Callable[[], object], check: Callable[[Any], object] | None = None) -> str:
    """Call a public function: "answered" if it returns what `check` accepts, "refused" if it raises an error of
    Crowdwise. Any other exception is left to be seen."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call()
    except CrowdwiseError as error:
        said = str(error).strip()
    else:
        if check is not None:
            check(found)
        return "answered"
    assert said, "the error has a message"
    return "refused"


def fuzzers() -> dict[str, Fuzzer]:
    """Return all fuzzers, by name."""
    sys.path[:0] = [str(HERE), str(HERE.parent / "formats")]
    found = [each for file in sorted(HERE.glob("fuzz_*.py")) for each in importlib.import_module(file.stem).FUZZERS]
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


@contextmanager
def in_time(seconds: float = MAX_SECONDS) -> Iterator[None]:
    """Raise TimeoutError if the body takes too long."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def rng_of(fuzzer: str, seed: str) -> random.Random:
    return random.Random(f"{fuzzer} {seed}")


def one(fuzzer: Fuzzer, seed: str, folder: Path) -> str:
    """Make one input in an empty folder, and check it."""
    with in_time():
        return str(fuzzer.check(fuzzer.make(rng_of(fuzzer.name, seed), folder)))


class Failure(NamedTuple):
    """An input that failed."""

    fuzzer: str
    seed: str
    what: str  # the same for failures of the same cause: the exception and the innermost line of Crowdwise
    text: str  # the whole traceback


def cause(error: BaseException) -> str:
    """Describe an exception, so that those of the same cause are the same."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if "/crowdwise/" in each.filename] or frames[-1:]
    place = f"{own[-1].filename.rpartition('/crowdwise/')[2]}:{own[-1].name}" if own else ""
    return f"{type(error).__name__} in {place}"


def work(names: Sequence[str], seed: int, number: int, step: int, pipe: Any, noise: Path, out: Path) -> None:
    """Check inputs without end; say which one is next, and what came of it. Files of inputs that failed go to `out`,
    one of each cause. What goes to stderr goes to the file `noise`: compiled code writes of panics that are caught, and
    Python of errors that it ignores."""
    os.dup2(os.open(noise, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    known, causes = fuzzers(), set[tuple[str, str]]()
    while True:
        for name in names:
            end = time.monotonic() + TURN
            while time.monotonic() < end:
                text = f"{seed}.{number}"
                os.ftruncate(2, 0)
                pipe.send(("begin", name, text))
                with tempfile.TemporaryDirectory(prefix="crowdwise-fuzz-") as folder:
                    try:
                        pipe.send(("end", name, one(known[name], text, Path(folder))))
                    except BaseException as error:  # the panics of polars are no Exception
                        whole = "".join(traceback.format_exception(error)) + noise.read_text(errors="replace")
                        if (name, cause(error)) not in causes:
                            causes.add((name, cause(error)))
                            shutil.copytree(folder, out / f"{name}-{text}", dirs_exist_ok=True)
                        pipe.send(("failed", name, cause(error), whole))
                number += step


@dataclass
class Process:
    """A process that checks inputs, started again when one ends it."""

    names: Sequence[str]
    seed: int
    number: int
    step: int
    out: Path
    now: tuple[str, str] = ("", "")
    heard: float = field(default_factory=time.monotonic)
    noise: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)

    @property
    def stderr(self) -> Path:
        return Path(self.noise.name, "stderr")

    def start(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(
            target=work,
            args=(self.names, self.seed, self.number, self.step, theirs, self.stderr, self.out),
            daemon=True,
        )
        self.process.start()
        theirs.close()
        self.heard = time.monotonic()

    def events(self) -> Iterator[tuple[Any, ...]]:
        """Yield what the process has said; how it died, if it did."""
        try:
            for _ in range(EVENTS):
                if not self.pipe.poll(0.05):
                    break
                said = self.pipe.recv()
                self.heard = time.monotonic()
                if said[0] == "begin":
                    self.now, self.number = said[1:], int(said[2].partition(".")[2]) + self.step
                else:
                    yield (said[0], said[1], self.now[1], *said[2:])
            if time.monotonic() - self.heard < MAX_SILENCE:
                return
            why = f"hang: more than {MAX_SILENCE:.0f} s"
        except EOFError:
            self.process.join()
            why = f"the process ended with status {self.process.exitcode}"
        self.end()
        yield ("failed", *self.now, why, f"{why}\n{self.stderr.read_text(errors='replace')}")
        self.start()

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def campaign(
    names: Sequence[str], seconds: float, seed: int, jobs: int, out: Path
) -> tuple[Counter[tuple[str, str]], dict[tuple[str, str], Failure]]:
    """Run fuzzers in processes: inputs by fuzzer and outcome, and one failure of each fuzzer and cause, which is kept
    in the folder `out` as soon as it is found."""
    counts: Counter[tuple[str, str]] = Counter()
    failures: dict[tuple[str, str], Failure] = {}
    processes = [Process(names, seed, number, jobs, out) for number in range(jobs)]
    for each in processes:
        each.start()
    end, told = time.monotonic() + seconds, time.monotonic()
    try:
        while time.monotonic() < end:
            for each in processes:
                for kind, name, number, what, *text in each.events():
                    counts[name, what if kind == "end" else "failed"] += 1
                    if kind == "failed" and (name, what) not in failures:
                        print(f"FAILED {name} {number}: {what}", flush=True)
                        failures[name, what] = Failure(name, number, what, *text)
                        keep(failures[name, what], out)
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{sum(counts.values()):,} inputs, {len(failures)} distinct failures", flush=True)
    finally:
        for each in processes:
            each.end()
    return counts, failures


def keep(failure: Failure, out: Path) -> None:
    """Write the traceback of a failure, and its input if the process that had it could not."""
    folder = out / f"{failure.fuzzer}-{failure.seed}"
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) if folder.is_dir() else folder
        place.mkdir(parents=True, exist_ok=True)
        try:
            made = fuzzers()[failure.fuzzer].make(rng_of(failure.fuzzer, failure.seed), place)
        except Exception as error:
            made = error
    folder.mkdir(exist_ok=True)
    (folder / "failure.txt").write_text(f"{failure.text}\n{made!r:.2000}\n", errors="backslashreplace")


def main() -> int:
    """Run the fuzzers; exit status 1 if an input failed."""
    parser = argparse.ArgumentParser(description="Run the fuzzers for some time.")
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures"))
    parser.add_argument("--json", type=Path, default=None, metavar="FILE")
    asked = parser.parse_args()
    known = fuzzers()
    seed = secrets.randbits(32) if asked.seed is None else asked.seed
    names = asked.only or list(known)
    print(f"{len(names)} fuzzers, {asked.seconds:g} s, --seed {seed}", flush=True)
    counts, failures = campaign(names, asked.seconds, seed, asked.jobs, asked.out)
    for name in names:
        parts = {what: count for (of, what), count in counts.items() if of == name}
        print(f"{name:16} {sum(parts.values()):9,}  {', '.join(f'{n:,} {what}' for what, n in sorted(parts.items()))}")
    print(f"{sum(counts.values()):,} inputs, {len(failures)} distinct failures; --seed {seed}")
    if asked.json is not None:
        about = {"seed": seed, "inputs": sum(counts.values()), "failures": sorted(map(list, failures))}
        asked.json.write_text(json.dumps(about))
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
