"""The iteration loop of all iterative models.

A `Problem` performs one iteration, reports whether it has converged, and can save and restore its state. The loop
controls the iterations, their limit, the trace, progress, interruption and resumption. Searches over several fits
(restarts, merging, the number of components) are plain functions that call it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..errors import CheckpointError, CrowdwiseError, Interrupted
from ..kernels.rules import Real
from ..limits import lacks_memory
from ..result.base import BaseResult, Trace
from ..result.stored import flaw_of
from .run import WITHOUT_IT, Arrays, Progress, Run, packed, sound, under, unpacked

T = TypeVar("T")


class Step(NamedTuple):
    """The outcome of one iteration."""

    objective: float
    counts: dict[str, float]  # by name, as in the trace


class Abandoned(Exception):  # noqa: N818 - not an error
    """Raised by a problem that was asked to stop within an iteration, after restoring the state at its start."""


class Problem(ABC):
    """A problem that is solved iteratively."""

    name: str
    max_iter: int

    @abstractmethod
    def step(self) -> Step:
        """Run one iteration."""

    def improve(self) -> None:  # noqa: B027 - many problems do everything in `step`
        """Prepare the next iteration, such as the M-step of EM; not called after the last iteration."""

    def converged(self, objectives: Sequence[float]) -> bool:
        """Return whether to stop, given the objectives of this loop so far."""
        return False

    @abstractmethod
    def state(self) -> Arrays:
        """Return everything that the next iteration depends on."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Restore a state returned by `state`."""


def iterate(problem: Problem, run: Run, trace: Trace, stage: str = "iteration") -> bool:
    """Iterate until the problem has converged or `max_iter` is reached, and return whether it has converged.

    Iterations are added to the trace. A run that was interrupted in this stage continues where it stopped.
    """
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
            run.save()
    run.journal.forget(stage)
    return last


def _resumed(problem: Problem, run: Run, trace: Trace, stage: str) -> tuple[int, bool, bool]:
    """Return the position in the trace where the loop begins, whether it has ended, and whether it has converged."""
    saved = run.journal.saved(stage)
    if saved is None:
        return len(trace.rows), False, False
    loop = unpacked(saved, "loop.")
    trace.set(sound(saved, "loop.trace", Real("iterations columns"), columns=1 + len(trace.columns)))
    problem.restore(under(saved, "state."))
    first, done = int(loop["first"]), int(loop["done"])
    if not (first >= 0 and done >= 0 and first + done == len(trace.rows)):
        raise CheckpointError(f"the checkpoint is damaged: it has {len(trace.rows)} iterations. {WITHOUT_IT}")
    return first, bool(loop["ended"]), bool(loop["last"])


def interrupted(name: str, run: Run, iterations: int) -> Interrupted:
    """Return the exception of a fit that was asked to stop, with a checkpoint."""
    return Interrupted(f"{name} was interrupted after {iterations} iteration(s)", run.journal.checkpoint())


def resumable(run: Run, mark: Callable[[], str], fit: Callable[[Run], T]) -> T:
    """Run a fit with its own journal. `mark` identifies the fit: a checkpoint of a different fit is refused."""
    if run.resume is not None and run.resume.mark != mark():
        raise CheckpointError(
            "the checkpoint belongs to a different fit: the answers, features, model, classifier, settings or seed "
            f"differ. {WITHOUT_IT}"
        )
    try:
        found = fit(run.begin(mark))
        if run.resume is not None:
            _check_found(found)
        return found
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        if run.resume is None or isinstance(error, CrowdwiseError) or lacks_memory(error):
            raise
        why = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"the fit cannot be continued from the checkpoint ({why}). {WITHOUT_IT}") from error


def _check_found(found: Any) -> None:
    """Raise ValueError if a resumed fit found what is no result: what it began with was no state of a fit."""
    result = found[0] if type(found) is tuple else found  # a classifier returns its learner, too
    if isinstance(result, BaseResult):
        parts = {"": result, "params.": result.params, "left_out.": getattr(result, "left_out", None)}
        flaws = {name: flaw_of(value, {}) for name, value in parts.items()}
        said = next((f"{name}{flaw}" for name, flaw in flaws.items() if flaw), None)
        if said is not None:
            raise ValueError(said)


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
    """Run `count` starts and return the one with the highest score, the first if several are equal.

    `before` and `rewind` save and restore the state that starts share, such as a random generator. `pack` and `unpack`
    convert a finished start to arrays and back.
    """
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
            return packed(
                {
                    "begin": start,
                    "shared": shared,
                    "best": {} if so_far is None else pack(so_far),
                }
            )

        run.journal.keep("restarts", kept_now)
        found = fit(start)
        if best is None or score(found) > score(best):
            best = found
    run.journal.forget("restarts")
    if best is None:
        raise ValueError(f"count is {count}; at least one start is needed")
    return best
