"""Fault injection: commands are run again and again, and each time another system call on their files fails.

For every call of a command to which a fault applies, the command runs once, with old outputs in its folder: its n-th
call fails, for all n until a run succeeds. After each run, what the next command finds must be the outputs of before
or the new ones, whole, and nothing else; inputs are as they were; the exit status and the message are right.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import importlib
import json
import mmap
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FAULTS = {  # as numbered in faults.c
    "no space": 0,  # ENOSPC once
    "full": 1,  # ENOSPC from then on
    "error": 2,  # EIO once
    "broken": 3,  # EIO from then on
    "interrupted": 4,  # EINTR
    "short": 5,  # half of a read or write
    "kill": 6,  # kill -9
}
REASONS = {
    "no space": "No space left on device", "full": "No space left on device",
    "error": "Input/output error", "broken": "Input/output error",
    "mmap": "Cannot allocate memory", "interrupted": "failed to fill whole buffer",
}  # fmt: skip
SURVIVED = ("interrupted", "short")  # faults in spite of which a command does its work
NOT_REPEATED = ("pread64",)  # calls that polars does not repeat when they are interrupted: it fails, with a message
MAX_SECONDS = 60  # for one run
Tree = dict[str, str]  # digests of files by path


class State(ctypes.Structure):
    """What faults.c shares with the process that watches."""

    _fields_ = (
        ("counts", ctypes.c_int64 * len(FAULTS)),
        ("at", ctypes.c_int64),
        ("hit", ctypes.c_int64),
        ("call", ctypes.c_char * 24),
        ("path", ctypes.c_char * 240),
    )


class Point(NamedTuple):
    """One run with a fault, and what is wrong with it."""

    problem: str  # empty if all is well
    hit: bool  # whether the fault came to pass
    counts: dict[str, int]  # calls to which each fault applies
    outcome: str  # "old", "new"


def lacking() -> str:
    """Why faults cannot be injected here; empty if they can."""
    if not sys.platform.startswith("linux"):
        return "system calls are made to fail on Linux only"
    if platform.machine() not in ("x86_64", "aarch64"):
        return "system calls are made to fail on x86-64 and 64-bit ARM only"
    if "Seccomp:" not in Path("/proc/self/status").read_text():
        return "this kernel has no filter of system calls (seccomp)"
    if shutil.which("cc") is None:
        return "there is no C compiler (cc) to build tests/injection/faults.c"
    return ""


def built(folder: Path) -> Path:
    """Compile faults.c."""
    library = folder / "faults.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "faults.c")], check=True)
    return library


def modules(work: Callable[[], None], file: Path) -> None:
    """Do some work, and write the names of all modules that are imported then."""
    try:
        work()
    finally:
        file.write_text("\n".join(sys.modules))


def imported(names: Sequence[str]) -> None:
    """Import modules. Polars must not work before a fork."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def tree(folder: Path) -> Tree:
    """Return the digests of all files below a folder."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in files:
            path = Path(place, name)
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
        if not folders and not files:
            found[str(Path(place).relative_to(folder)) + "/"] = ""
    return found


class Done(NamedTuple):
    """How a process ended."""

    status: int
    out: str
    err: str


class Stand:
    """A command on its files: `run` is the folder it works in, `base` what is there before."""

    def __init__(self, case: Any, folder: Path, library: Path | None = None) -> None:
        self.case, self.folder, self.library = case, folder, library
        self.base, self.run = folder / "base", folder / "run"
        self.memory = mmap.mmap(-1, ctypes.sizeof(State))
        self.state = State.from_buffer(self.memory)
        self.run.mkdir(parents=True)
        self.forked(case.before)
        shutil.copytree(self.run, self.base)
        self.old = tree(self.base)
        self.done = self.forked(lambda: modules(case.command, folder / "modules"))
        imported((folder / "modules").read_text().split())
        self.settled()
        self.new = tree(self.run)
        self.restore()
        problem = self.judged(self.forked(case.command), "", "")[0]
        if self.done.status not in (0, 3) or problem or (self.new == self.old) != (not case.folders):
            raise RuntimeError(f"{case.name} is not as expected: {self.done}; {problem}")

    def forked(self, work: Callable[[], None], fault: str | None = None, at: int = 0) -> Done:
        """Do some work in a process of its own, in the folder; with a fault, if one is named."""
        ctypes.memset(ctypes.byref(self.state), 0, ctypes.sizeof(State))
        self.state.at = at
        return self.ended(self.started(work, fault))

    def started(self, work: Callable[[], None], fault: str | None = None, name: str = "") -> tuple[int, list[Path]]:
        """Start a process that does some work; return its number, and the files of its output."""
        files = [self.folder / f"{end}{name}" for end in ("out", "err")]
        for file in files:
            file.write_bytes(b"")
        number = os.fork()
        if number == 0:
            self._child(work, fault, files)
        return number, files

    def ended(self, process: tuple[int, list[Path]]) -> Done:
        """Wait for the end of a process."""
        status = os.waitstatus_to_exitcode(os.waitpid(process[0], 0)[1])
        return Done(status, *(file.read_text(errors="replace") for file in process[1]))

    def _child(self, work: Callable[[], None], fault: str | None, files: Sequence[Path]) -> None:
        status = 9
        try:
            for number, file in enumerate(files, 1):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w", 1, encoding="utf-8")
            signal.alarm(MAX_SECONDS)
            os.chdir(self.run)
            time.perf_counter = lambda: 0.0  # results hold the seconds of their fit
            if fault is not None:
                arm = ctypes.CDLL(str(self.library)).arm
                problem = arm(ctypes.byref(self.state), FAULTS[fault], str(self.run).encode())
                if problem:
                    raise OSError(problem, os.strerror(problem))
            work()
            status = 0
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                atexit._run_exitfuncs()  # which remove temporary folders
            os._exit(status)

    def settled(self) -> None:
        """Let the folder be used by the next command."""
        from crowdwise.result.outputs import settle

        for name in self.case.folders:
            settle(self.run / name)

    def restore(self) -> None:
        """Bring back what was there before."""
        if tree(self.run) != self.old:
            shutil.rmtree(self.run)
            shutil.copytree(self.base, self.run)

    def strike(self, fault: str, at: int) -> Point:
        """Run the command with a fault at a call."""
        self.restore()
        done = self.forked(self.case.command, fault, at)
        hit, counts = bool(self.state.hit), dict(zip(FAULTS, self.state.counts, strict=True))
        call, path = self.state.call.decode(), self.state.path.decode(errors="replace")
        problem, outcome = self.judged(done, fault if hit else "", call)
        if problem:
            problem = f"{self.case.name}, {fault} {at} ({call} on {path}): {problem}"
        return Point(problem, hit, counts, outcome)

    def judged(self, done: Done, fault: str, call: str) -> tuple[str, str]:
        """Say what is wrong after a run, and which outputs are there."""
        try:
            self.settled()
        except Exception as error:
            return f"the next command fails: {error!r}; {done}", ""
        now = tree(self.run)
        seen, old, new = (self.case.kept(each) for each in (now, self.old, self.new))
        outcome = "new" if seen == new else "old" if seen == old else "partly" if self.case.problems in now else ""
        if not outcome:
            changed = {name for name in {*now, *self.old} if now.get(name) != self.old.get(name)}
            absent = {name for name in {*now, *self.new} if now.get(name) != self.new.get(name)}
            return f"neither old (differs in {sorted(changed)}) nor new (differs in {sorted(absent)}); {done}", ""
        problem = self.said(done, fault, call, outcome)
        if not problem and self.case.again and outcome != "new":
            repeated = self.forked(self.case.command)
            if tree(self.run) != self.new or repeated.status != self.done.status:
                found = tree(self.run)
                differ = [name for name in {*found, *self.new} if found.get(name) != self.new.get(name)]
                problem = f"not new after another run (differs in {differ}): {done}; {repeated}"
        return problem, outcome

    def said(self, done: Done, fault: str, call: str, outcome: str) -> str:
        """Say what is wrong with the status and the messages of a run."""
        if fault == "kill":
            return "" if done.status == -signal.SIGKILL else f"not killed: {done}"
        if "Traceback" in done.err or "panicked" in done.err:
            return f"a traceback: {done}"
        if done.status == self.done.status:
            if outcome == "old" and self.new != self.old:
                return f"nothing new, in spite of the status {done.status}: {done}"
            return "" if done.out == self.done.out or outcome == "partly" else f"another output: {done}"
        if not fault or (fault in SURVIVED and call not in NOT_REPEATED):
            return f"not survived: {done}"
        if done.status != 1 or not any(word in done.err for word in (REASONS.get(call), REASONS[fault]) if word):
            return f"not the right status and message: {done}"
        return ""


def serve(folder: Path) -> None:
    """Answer on stdout what comes of the faults that are named on stdin."""
    from cases import CARELESS, CASES

    cases = {**CASES, CARELESS.name: CARELESS}
    imported(["crowdwise.cli.app", "crowdwise.io", "crowdwise.report"])
    library, stands = built(folder), dict[str, Stand]()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        name, fault, at = json.loads(line)
        try:
            if name not in stands:
                stands[name] = Stand(cases[name], folder / name, library)
            answer = stands[name].strike(fault, at)
        except Exception as error:
            answer = Point(f"{name}, {fault} {at}: {error!r}", False, {}, "")
        print(json.dumps(answer), file=answers, flush=True)


class Server:
    """A process that has imported everything, and forks a process for each run."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="injection-")
        words = [sys.executable, str(HERE / "injecting.py"), self.folder.name]
        # a thread of polars: so the calls of a run are always the same
        environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def strike(self, case: str, fault: str, at: int) -> Point:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([case, fault, at]), file=self.process.stdin, flush=True)
        return Point(*json.loads(self.process.stdout.readline()))

    def walk(self, case: str, fault: str, step: int = 1) -> Iterator[Point]:
        """Let the n-th call fail for all n until a run succeeds."""
        at = 1
        while (point := self.strike(case, fault, at)).hit:
            yield point
            at += step
        if point.problem:
            yield point

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.folder.cleanup()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
