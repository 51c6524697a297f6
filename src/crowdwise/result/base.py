"""The base class of the results of all kinds of answers, and the trace of a fit."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import polars as pl

from ..answers.arguments import checked
from ..answers.base import Answers
from ..answers.rules import Table
from ..errors import DataError, MissingError, flags, for_python, model_setting, phrase
from ..forks import refuse_lost_threads
from ..limits import enough_memory

if TYPE_CHECKING:
    from ..engine import Model
    from ..plots import Chart

MAX_DROPPED = 0.01  # share of rows dropped for one reason above which there is a warning


def versions() -> dict[str, str]:
    """Return the versions of Python and of the main packages."""
    found = {"python": platform.python_version()}
    for package in ("crowdwise", "numpy", "numba", "polars"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BaseResult(ABC):
    """The result of a fit."""

    kind: ClassVar[str]
    table_names: ClassVar[tuple[str, ...]]  # of those that `tables` has whatever the model
    in_parts: ClassVar[bool] = False  # whether its tables of tasks are in parts that are not in memory together

    answers: Any
    model: Model[Any, Any]
    params: Any  # estimated parameters, as arrays
    # iteration, objective, and counts by name
    trace: Annotated[pl.DataFrame, Table("iterations", ("iteration", "objective"), numbers=True)]
    criterion: str  # name of the objective; empty for a model without iterations
    converged: bool
    seed: int
    seconds: float
    versions: dict[str, str] = field(default_factory=versions)

    def __repr__(self) -> str:
        state = "converged" if self.converged else "NOT CONVERGED"
        n = self.trace.height
        steps = f", {state} after {n} iteration{'s' * (n != 1)}" if n else ""
        return f"{type(self).__name__}({self.model.name}: {self.counted}{steps})"

    @property
    @abstractmethod
    def counted(self) -> str:
        """The numbers of tasks (or items, objects) and workers, as text."""

    @property
    @abstractmethod
    def workers(self) -> pl.DataFrame:
        """One row per worker; the first columns are those of `crowdwise.rating.WORKER_COLUMNS`."""

    @abstractmethod
    def tables(self) -> dict[str, pl.DataFrame]:
        """Return every table of this result by name, as written to files."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems to know about before using the result, the most serious first."""
        return tuple(map(for_python, self.cautions))

    @cached_property
    def cautions(self) -> tuple[str, ...]:
        """The warnings with options not yet formatted by `for_python` or `for_shell`."""
        intake = self.answers.intake
        warnings = [] if self.converged else [self.not_converged]
        many = [dropped for dropped in intake.dropped if dropped.count > MAX_DROPPED * intake.rows_read]
        warnings += [f"{each.count} of {intake.rows_read} rows were left out: {each.reason}" for each in many]
        return (*warnings, *self.own_warnings(), *intake.warnings)

    @property
    def not_converged(self) -> str:
        """The warning that the fit has not converged."""
        limit = self.trace.height or getattr(self.model, "max_iter", 1)  # a fit image by image has no trace
        more = model_setting("max_iter", 2 * limit)
        return f"not converged after {limit} iteration{'' if limit == 1 else 's'} (the maximum). Allow more: {more}"

    def own_warnings(self) -> list[str]:
        """Return the warnings specific to this kind of answers."""
        return []

    def summary(self) -> Any:
        """Return a short summary of the result: `lines()` is text, `as_dict()` is for programs."""
        from ..report import summarise

        return summarise(self)

    def to_pandas(self) -> dict[str, Any]:
        """Return every table as a pandas frame, by name. Whole numbers beyond 64 bits become text."""
        huge = pl.col(pl.Int128, pl.UInt128).cast(pl.String)
        try:
            return {name: table.with_columns(huge).to_pandas() for name, table in self.tables().items()}
        except ModuleNotFoundError as error:
            raise MissingError(
                f"pandas frames need pandas and pyarrow; {error.name} is not installed. Run: pip install "
                "'crowdwise[pandas]'"
            ) from error

    @checked
    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one self-contained HTML page about this result, and return its path. No model is fitted for it.

        Options of labels: `comparison`, the frame of `crowdwise.compare(answers, models, folds=0, against=result)`;
        `cost`, a `crowdwise.cost_curve(result)` (default: that of this result); `judged`, methods compared with the
        truth. Options of clicks: `pictures`, a folder of images; `truth`, a table of true objects (image, x, y), which
        objects found match at a distance of up to `within`. Options of pairs: `pictures`, an array (items, height,
        width). Options of all: `content`, the texts and pictures of tasks, images or items (see
        `crowdwise.read_content`); `command`, the line that makes the page again (default: a line of Python).
        """
        from ..report import write_report

        return write_report(self, path, **options)

    def plot(self, name: str, **options: Any) -> Chart:
        """A chart that shows itself in a notebook and saves as SVG, PNG or PDF: `result.plot("workers").save("w.svg")`.

        Every kind of answers has "workers" (`top=30`, or `workers=[...]`). Labels have "confusion" (`worker=`,
        `values=`), "classes", "tasks" and "cost" (`curve=`); clicks "tasks" (objects by probability) and "image"
        (`image=`, `picture=`); pairs "tasks" (items by probability) and "clusters". Needs the extra `plot`.
        """
        from ..plots import plot

        return plot(self, name, **options)

    def _repr_html_(self) -> str:
        """Return the HTML shown in notebooks: header, tiles and the best workers."""
        from ..report import notebook

        return notebook(self)

    @checked
    def save(self, path: str | Path) -> Path:
        """Write this result to a folder, or to a file ending in .crowdwise. The write is atomic."""
        from .store import write

        with enough_memory("saving"):
            return write(self, Path(path))


def any_result(value: Any, verb: str, argument: str = "") -> Any:
    """A result of any kind, or an error that says what `verb` takes."""
    refuse_lost_threads()
    if isinstance(value, BaseResult):
        return value
    got = "answers" if isinstance(value, Answers) else type(value).__name__
    call = (
        f"{verb}(..., {argument}=crowdwise.aggregate(answers))" if argument else f"{verb}(crowdwise.aggregate(answers))"
    )
    raise DataError(f"{verb} takes a result; got {got}. Fit the answers first: {call}")


def result_of(value: Any, kind: str, verb: str, *, in_parts: bool = False, argument: str = "") -> Any:
    """A result of one kind, in parts only if the verb takes that, or an error that says what it takes."""
    found = any_result(value, verb, argument)
    if found.kind != kind:
        raise DataError(f"{verb} takes a result of {kind}; this is a result of {found.kind} ({found!r})")
    if not in_parts:
        refuse_parts(found, verb)
    return found


def refuse_parts(subject: Answers | BaseResult, verb: str) -> None:
    """Raise DataError for answers or a result in parts."""
    if subject.in_parts:
        advice = phrase("use answers.load()", f"allow more with {flags(memory='SIZE')}")
        raise DataError(
            f"{verb} needs all answers in memory, but these are in parts ({subject!r}). If there is enough memory, "
            f"{advice}; otherwise take a sample of the tasks"
        )


class Trace:
    """The objective and named counts after every iteration."""

    def __init__(self, **columns: type) -> None:
        self.columns = columns  # types of the counts: int or float
        self.rows: list[tuple[float, ...]] = []

    def add(self, objective: float, counts: dict[str, float]) -> None:
        self.rows.append((float(objective), *(float(counts[name]) for name in self.columns)))

    @property
    def objectives(self) -> list[float]:
        return [row[0] for row in self.rows]

    def array(self) -> Any:
        return np.array(self.rows, np.float64).reshape(len(self.rows), 1 + len(self.columns))

    def set(self, rows: Any) -> None:
        self.rows = [tuple(map(float, row)) for row in rows]

    def frame(self) -> pl.DataFrame:
        """Return a table with iteration, objective, and the counts."""
        values = self.array()
        kinds = {int: pl.Int64, float: pl.Float64}
        counts = [
            pl.Series(name, values[:, n + 1]).cast(kinds[kind]) for n, (name, kind) in enumerate(self.columns.items())
        ]
        return pl.DataFrame(
            [pl.Series("iteration", np.arange(1, len(values) + 1)), pl.Series("objective", values[:, 0]), *counts]
        )
