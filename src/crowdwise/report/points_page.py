"""What the page of points shows, section by section, as plain values; `points` fills it, `render` turns it into HTML.

`page/src/points-data.ts` mirrors it. Names of images and workers are text here, cut to `LONGEST` characters. Long lists
of clicks are kept as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .frame import BasePage, CountedSummary, Search, plain
from .points_words import GLOSSARY, GLOSSARY_TRUTH


@dataclass(frozen=True)
class PointsSummary(CountedSummary):
    rows_are, heads = "clicks", ("Clicks", "Reliability")

    clicks: int


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


@dataclass(frozen=True, kw_only=True)
class PointsPage(BasePage):
    """Everything on the page."""

    template, words = "points.html", GLOSSARY

    kind: str  # "points"
    summary: PointsSummary
    images: Images
    workers: PointsWorkers
    search: Search
    methods: Methods | None  # where the truth is known

    @property
    def glossary(self) -> Sequence[tuple[str, str]]:
        return GLOSSARY + (GLOSSARY_TRUTH if self.methods else [])

    def as_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = plain(self)
        return told
