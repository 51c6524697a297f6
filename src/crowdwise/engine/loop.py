"""The one loop: every iterative model of every kind runs on it.

A `Problem` is one thing to be improved: it performs an iteration, says whether it has converged, and can give and take
back its state. The loop owns the iterations, their limit, the trace, progress, interruption and resumption. Searches
above it (restarts, merging, the number of components) are plain functions that call it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..errors import Interrupted, ParameterError, option
from ..result.base import Trace
from .run import Arrays, Progress, Run, packed, under, unpacked

T = TypeVar("T")


class Step(NamedTuple):
    """What one iteration comes to."""

    objective: float
    counts: dict[str, float]  # by name, as in the trace


class Abandoned(Exception):  # noqa: N818 - nothing is wrong
    """Raised by a problem that was asked to stop within an iteration and has gone back to where the iteration began."""


class Problem(ABC):
    """Something that is improved iteration by iteration."""

    name: str
    max_iter: int

    @abstractmethod
    def step(self) -> Step:
        """One iteration."""

    def improve(self) -> None:  # noqa: B027 - many problems do all in one step
        """What prepares the next iteration; not called after the last."""

    def converged(self, objectives: Sequence[float]) -> bool:
        """Whether to stop, by the objectives of this loop so far and by what the step has seen."""
        return False

    @abstractmethod
    def state(self) -> Arrays:
        """Everything that the next iteration depends on."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Go to where `state` was taken."""


def iterate(problem: Problem, run: Run, trace: Trace, stage: str = "iteration") -> bool:
    """Improve a problem until it has converged or `max_iter` is reached; whether it has converged. Iterations are added
    to the trace. A run that was interrupted in this stage is continued where it was."""
    first, ended, last = _resumed(problem, run, trace, stage)
    done = len(trace.rows) - first

    def kept() -> Arrays:
        state = packed({"loop": {"first": first, "done": done, "trace": trace.array(), "ended": ended, "last": last}})
        return state | packed({"state": problem.state()})

    run.journal.keep(stage, kept)
    while not ended and done < problem.max_iter:
        if run.stopped:
            raise interrupted(problem.name, run, len(trace.rows))
        try:
            objective, counts = problem.step()
        except Abandoned:
            raise interrupted(problem.name, run, len(trace.rows)) from None
        trace.add(objective, counts)
        done += 1
        run.report(Progress(stage, done, problem.max_iter, objective, counts))
        last = problem.converged(trace.objectives[first:])
        ended = last or done == problem.max_iter
        if not ended:
            problem.improve()
    run.journal.forget(stage)
    return last


def _resumed(problem: Problem, run: Run, trace: Trace, stage: str) -> tuple[int, bool, bool]:
    """Where the loop begins in the trace, whether it has ended already, and whether it has converged."""
    saved = run.journal.saved(stage)
    if saved is None:
        return len(trace.rows), False, False
    loop = unpacked(saved, "loop.")
    trace.set(loop["trace"])
    problem.restore(under(saved, "state."))
    return int(loop["first"]), bool(loop["ended"]), bool(loop["last"])


def interrupted(name: str, run: Run, iterations: int) -> Interrupted:
    """The error of a fit that was asked to stop; it carries what has been reached."""
    return Interrupted(f"{name} was interrupted after {iterations} iteration(s)", run.journal.checkpoint())


def resumable(run: Run, mark: Callable[[], str], fit: Callable[[Run], T]) -> T:
    """Run a fit with a journal of its own. `mark` identifies the fit: a checkpoint of another one is refused."""
    if run.resume is not None and run.resume.mark != mark():
        raise ParameterError(
            "the checkpoint belongs to another fit: other answers or features, another model or classifier, other "
            f"settings or another seed. Omit {option('resume')} to start from the beginning"
        )
    try:
        return fit(run.begin())
    except Interrupted as broken:
        broken.checkpoint = broken.checkpoint._replace(mark=mark())
        raise


def best_of(
    count: int,
    fit: Callable[[int], T],
    score: Callable[[T], float],
    run: Run,
    *,
    pack: Callable[[T], Arrays],
    unpack: Callable[[Arrays], T],
    before: Callable[[], Arrays] = dict,
    rewind: Callable[[Arrays], None] = lambda state: None,
) -> T:
    """The best of some starts, the first of equals. `before` and `rewind` keep and set what the starts share, such as
    the state of a generator; `pack` and `unpack` turn a finished start to arrays and back."""
    saved = run.journal.saved("restarts")
    begin, best = 0, None
    if saved is not None:
        begin = int(saved["begin"])
        kept = under(saved, "best.")
        best = unpack(kept) if kept else None
        rewind(under(saved, "shared."))
    for start in range(begin, count):
        shared, so_far = before(), best

        def kept_now(start: int = start, shared: Arrays = shared, so_far: Any = so_far) -> Arrays:
            return packed({"begin": start, "shared": shared, "best": {} if so_far is None else pack(so_far)})

        run.journal.keep("restarts", kept_now)
        found = fit(start)
        if best is None or score(found) > score(best):
            best = found
    run.journal.forget("restarts")
    if best is None:
        raise ValueError(f"count is {count}; at least one start is needed")
    return best
