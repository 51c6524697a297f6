"""The map of the items, by their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....result import PairsResult
from ...glossary import DOUBTFUL_ITEM
from ...parts import Box
from ...registry import section
from ...text import MAX_NAME_CHARS, count, decimals_for, many, rounded_column, short
from ._shown import drawn, in_tables, shown


@dataclass(frozen=True)
class Dots:
    """Items of the map, as columns, the most doubtful first."""

    item: list[str]
    x: list[float]
    y: list[float]
    cluster: list[int]
    probability: list[float | None]
    second: list[int | None]  # the second most likely cluster
    second_probability: list[float | None]
    answers: list[int]  # about it
    number: list[int]  # of the item in the result, by which its picture is found; empty without pictures
    text: list[str]  # what it is about; empty without texts


@dataclass(frozen=True)
class ItemMap:
    headline: str
    notes: list[str]  # what is not shown, and why
    total: int
    doubtful: float  # probability below which an item is doubtful
    box: Box  # with y downwards
    clusters: list[int]  # items of each
    dots: Dots
    pictures: dict[str, str]  # data URIs by the number of the item, of the items in no table

    @property
    def terms(self) -> Sequence[str]:
        return ("second",) if any(self.dots.second) else ()


@section(
    "pairs", "items", order=10, title="Items",
    intro="Each item, placed by its features, with the mark of its cluster. A ring marks a doubtful item.",
    terms=("item", "cluster", "doubtful", "probability"),
)  # fmt: skip
def items(result: PairsResult, *, pictures: Any = None, content: Any = None) -> ItemMap | None:
    view, numbers = result.params.view, drawn(result)
    if not len(numbers):
        return None
    about, tables = shown(result, pictures, content), set(in_tables(result))
    found = about.pictures
    finite = view[np.isfinite(view).all(1)]
    low, high = finite.min(0), finite.max(0)
    digits = decimals_for(float((high - low).max()))
    table = result.clusters[numbers]
    x, y = view[numbers].T.round(digits).tolist()
    dots = Dots(
        item=[short(name, MAX_NAME_CHARS) for name in table["item"].to_list()],
        x=x,
        y=y,
        cluster=table["cluster"].to_list(),
        probability=rounded_column(table["probability"], 4),
        second=table["second"].to_list(),
        second_probability=rounded_column(table["second_probability"], 4),
        answers=table["answers"].to_list(),
        number=numbers.tolist() if found else [],
        text=[about.texts.get(n, "") for n in numbers.tolist()] if about.texts else [],
    )
    left, bottom, right, top = (round(float(end), digits) for end in (*low, *high))
    doubtful = int((result.params.chances[:, 0] < DOUBTFUL_ITEM).sum())
    headline = f"{many(result.answers.n_items, 'item')} in {many(result.n_clusters, 'cluster')}; "
    headline += f"{count(doubtful) if doubtful else 'none'} {'is' if doubtful == 1 else 'are'} doubtful."
    return ItemMap(
        headline=headline,
        notes=_notes(len(view), len(finite), len(numbers), bool(found)),
        total=len(view),
        doubtful=DOUBTFUL_ITEM,
        box=Box(left, -top, right, -bottom),
        clusters=result.sizes["items"].to_list(),
        dots=dots,
        pictures={str(item): src for item, src in found.items() if item not in tables},
    )


def _notes(total: int, finite: int, shown: int, pictured: bool) -> list[str]:
    notes = []
    if shown < finite:
        notes.append(
            f"{count(shown)} of {count(finite)} items are drawn: the most doubtful, and a sample of every cluster in "
            "proportion to its size. clusters.csv holds all."
        )
    if finite < total:
        notes.append(f"{many(total - finite, 'item')} without a place in the map.")
    if pictured:
        notes.append("Some items show their picture: the most doubtful, and those in tables.")
    return notes
