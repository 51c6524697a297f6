"""Time and memory against the number of workers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ....result import LabelsResult
from ...registry import section
from ...text import MAX_NAME_CHARS, MAX_SENTENCE_CHARS, short


@dataclass(frozen=True)
class Cost:
    """The time and memory of a fit."""

    method: str
    workers: int
    seconds: float  # per iteration
    megabytes: float  # peak, beyond the data


@dataclass(frozen=True)
class Scaling:
    headline: str
    methods: list[str]  # in the order to show
    rows: list[Cost]


@section(
    "labels", "scaling", order=100, title="Time and memory",
    intro="Seconds per iteration, and peak memory beyond the data, as the number of workers grows.",
    terms=("iteration",),
)  # fmt: skip
def scaling(result: LabelsResult, *, scaling: Scaling | None = None) -> Scaling | None:
    if scaling is None or not scaling.rows:
        return None
    rows = [replace(row, method=short(row.method, MAX_NAME_CHARS)) for row in scaling.rows]
    methods = [short(name, MAX_NAME_CHARS) for name in scaling.methods]
    return Scaling(short(scaling.headline, 2 * MAX_SENTENCE_CHARS), methods, rows)
