"""What the page of points shows, section by section, as plain values; `points` fills it, `render` turns it into HTML.

`page/src/points-data.ts` mirrors it. Names of images and workers are text here, cut to `LONGEST` characters. Long lists
of clicks are kept as columns.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from .page import LogEntry
from .summary import Tile


@dataclass(frozen=True)
class PointsSummary:
    """What stands on top."""

    source: str
    rows_read: int
    rows_used: int
    dropped: dict[str, int]
    counted: str  # clicks, images, workers and objects, in words
    clicks: int
    model: str
    converged: bool
    sweeps: int
    seed: int
    versions: dict[str, str]
    warnings: list[str]
    tiles: list[Tile]

    def lines(self) -> list[str]:
        """The summary for a person, warnings first."""
        dropped = "".join(f"; {count} left out: {reason}" for reason, count in self.dropped.items())
        state = "converged" if self.converged else "NOT converged"
        return [
            *(f"warning: {text}" for text in self.warnings),
            f"{self.source}: {self.rows_read} clicks read, {self.rows_used} used{dropped}",
            self.counted,
            f"{self.model}: {state} after {self.sweeps} sweeps" if self.sweeps else f"{self.model}: clustered",
            *(f"{tile.name}: {tile.value}{f' ({tile.detail})' if tile.detail else ''}" for tile in self.tiles[2:]),
        ]


@dataclass(frozen=True)
class ObjectRow:
    """An object of an image."""

    object: int
    x: float
    y: float
    probability: float | None  # that it is real
    doubtful: bool
    clicks: float | None  # expected number
    supporters: int | None  # workers who clicked it
    share: float | None  # of the workers who looked at the image
    spread: float | None
    ellipse: tuple[float, float, float] | None  # two sigma: both half axes, and the angle of the first in degrees


@dataclass(frozen=True)
class Clicks:
    """The clicks on an image, as columns."""

    worker: list[int]  # number in Images.workers
    x: list[float]
    y: list[float]
    object: list[int]  # 0: none
    probability: list[float | None]  # of that object
    outlier: list[float | None]  # probability that the click is on no object


@dataclass(frozen=True)
class ImageRow:
    """An image that can be looked at."""

    image: str
    jobs: int  # workers who looked at it
    box: tuple[float, float, float, float]  # left, top, right, bottom
    total: int  # clicks, of which some may be left out below
    off: int  # clicks on no object
    clicks: Clicks
    objects: list[ObjectRow]
    picture: str | None  # data URI


@dataclass(frozen=True)
class Images:
    says: str
    notes: list[str]  # what is not shown, and why
    total: int
    measured: bool  # boxes are known; otherwise they are those of the clicks
    workers: list[str]  # those whose clicks are shown
    reliability: list[float | None]  # of these
    rows: list[ImageRow]  # most doubtful objects first


@dataclass(frozen=True)
class PointsWorker:
    """A worker, as in `PointsResult.workers`."""

    worker: str
    rank: int | None  # by reliability
    images: int
    clicks: int
    reliability: float | None  # share of the clicks that are on objects
    low: float | None
    high: float | None
    hit_rate: float | None  # share of the objects that were clicked
    hit_low: float | None
    hit_high: float | None
    spread: float | None  # of the clicks around objects, against that of others: 1 is ordinary


@dataclass(frozen=True)
class PointsWorkers:
    says: str
    total: int
    rows: list[PointsWorker]


@dataclass(frozen=True)
class Search:
    """How the number of objects was found."""

    says: str
    criterion: str
    best: float | None  # sweep at which the answer was taken
    rows: list[tuple[float, float | None, float | None]]  # sweep, objective, objects


@dataclass(frozen=True)
class Method:
    """A method held against the truth, over many runs."""

    method: str
    success: float | None  # share of the runs that found every object, and no other
    mae: float | None  # mean absolute error of reliabilities
    runs: int  # with an error
    median: float | None  # of the errors
    curve: list[tuple[float, float]]  # error, and the share of runs with at most that


@dataclass(frozen=True)
class Methods:
    says: str
    rows: list[Method]


@dataclass(frozen=True)
class PointsPage:
    """Everything on the page."""

    kind: str  # "points"
    summary: PointsSummary
    images: Images
    workers: PointsWorkers
    search: Search
    methods: Methods | None  # where the truth is known
    log: list[LogEntry]
    notes: list[str]
    command: str

    def as_dict(self) -> dict[str, Any]:
        """As `asdict`, but long columns are not copied number by number."""
        told: dict[str, Any] = _plain(self)
        return told


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, list) and value and is_dataclass(value[0]) else value
