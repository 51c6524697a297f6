"""What the page of pairs shows, section by section, as plain values; `pairs` fills it, `render` turns it into HTML.

`page/src/pairs-data.ts` mirrors what the script draws; plain tables are in the page without it. Names of items and
workers are text here, cut to `LONGEST` characters. Items are numbered as in the result, clusters from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .frame import BasePage, CountedSummary, Search, plain
from .pairs_words import GLOSSARY
from .plain import Section, Table


@dataclass(frozen=True)
class PairsSummary(CountedSummary):
    rows_are = "answers"

    answers: int


@dataclass(frozen=True)
class Dots:
    """Items of the picture, as columns, the most doubtful first."""

    item: list[str]
    x: list[float]
    y: list[float]
    cluster: list[int]
    probability: list[float | None]
    second: list[int | None]  # the next likely cluster
    second_probability: list[float | None]
    answers: list[int]  # about it
    number: list[int]  # of the item in the result, by which its picture is found; none without pictures


@dataclass(frozen=True)
class ItemMap:
    """The items where their features put them."""

    says: str
    notes: list[str]  # what is not shown, and why
    total: int
    doubtful: float  # probability below which an item is worth a look
    box: tuple[float, float, float, float]  # left, top, right, bottom, with y downwards
    clusters: list[int]  # items of each
    dots: Dots
    pictures: dict[str, str]  # data URIs by the number of the item, of those that no table has


@dataclass(frozen=True)
class PairsWorker:
    """A worker, as in `PairsResult.workers`."""

    worker: str
    rank: int  # by weight
    answers: int
    counted: float | None  # what the answers count for; None where that is their number, for all workers
    weight: float | None
    skill: float | None
    low: float | None
    high: float | None
    sensitivity: float | None
    sensitivity_low: float | None
    sensitivity_high: float | None
    specificity: float | None
    specificity_low: float | None
    specificity_high: float | None


@dataclass(frozen=True)
class PairsWorkers:
    says: str
    total: int
    rows: list[PairsWorker]


@dataclass(frozen=True)
class Shares:
    """How the components shared the items during the fit."""

    says: str
    epochs: list[int]
    components: list[int]  # their numbers from 1, the largest at the end first
    rows: list[list[float]]  # a row an epoch, a column a component
    total: int  # components


@dataclass(frozen=True)
class Training:
    search: Search | None
    shares: Shares | None


@dataclass(frozen=True, kw_only=True)
class PairsPage(BasePage):
    """Everything on the page."""

    template, words = "pairs.html", GLOSSARY

    kind: str  # "pairs"
    summary: PairsSummary
    map: ItemMap | None  # where items have features
    clusters: Section
    workers: PairsWorkers
    workers_table: Table  # the first of them, where there is no script
    training: Training | None
    doubts: list[Section]

    def as_dict(self) -> dict[str, Any]:
        """What the script draws; the rest stands in the page."""
        return {
            "kind": self.kind, "map": plain(self.map), "workers": plain(self.workers), "training": plain(self.training)
        }  # fmt: skip
