"""The items that the sections of a page about pairs show, with their pictures and texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

import numpy as np
import polars as pl

from ....acquisition import next_pairs
from ....io import read_content
from ....kernels.layout import Ints
from ....result import PairsResult
from ...glossary import DOUBTFUL_ITEM
from ...parts import spread
from ...pictures import pictures_of
from ...registry import once_per_result
from ...tables import Cell, Thumb
from ...text import MAX_NAME_CHARS, MAX_SENTENCE_CHARS, short
from ...thumbnails import album, checked

MAX_ITEMS_DRAWN = 4000
MAX_DOUBTFUL_DRAWN = 1000  # of these
MAX_CLUSTERS_PICTURED = 15
ITEMS_PER_CLUSTER = 4  # pictures of the most certain items of a cluster
MAX_MEMBERS_LISTED = 3000  # items in the lists of all clusters
MAX_MEMBERS_PER_CLUSTER = 60
MAX_ITEMS_LISTED, MAX_NEXT_LISTED, MAX_DISPUTED_LISTED = 30, 30, 20
MIN_CERTAIN = 0.995  # probability from which an item is not listed as doubtful


@dataclass(frozen=True)
class Doubts:
    """What the section on doubts lists; in frames, `from_` and `to` are the numbers of the items."""

    items: Ints  # numbers, the most doubtful first
    next: pl.DataFrame  # the most informative pairs
    disputed: pl.DataFrame  # pairs where clusters contradict most answers
    n_disputed: int


@once_per_result
def doubts_of(result: PairsResult) -> Doubts:
    sure = result.params.chances[:, 0]
    order = np.argsort(sure, kind="stable")[:MAX_ITEMS_LISTED]
    disputed = _disputed(result)
    return Doubts(order[sure[order] < MIN_CERTAIN], _next(result), disputed.head(MAX_DISPUTED_LISTED), disputed.height)


def _next(result: PairsResult) -> pl.DataFrame:
    items = result.answers.items
    name, number = items.dtype, pl.Float64
    none = pl.DataFrame(schema={"left": name, "right": name, "probability": number, "gain": number, "about": name})
    frame = next_pairs(result, MAX_NEXT_LISTED) if len(items) > 1 else none
    frame = frame.filter(pl.col("gain") > 0)
    place = {name: k for k, name in enumerate(items.to_list())}
    ends = {new: [place[name] for name in frame[old].to_list()] for new, old in (("from_", "left"), ("to", "right"))}
    return frame.with_columns(pl.Series(new, numbers, dtype=pl.Int64) for new, numbers in ends.items())


def _disputed(result: PairsResult) -> pl.DataFrame:
    """Return the pairs where the clusters contradict most answers, the clearest majority first."""
    left, right, _ = result.answers.edges
    margin = 2 * pl.col("said_same") - pl.col("answers")
    same = pl.col("probability")
    frame = result.asked.with_columns(
        pl.Series("from_", left.astype(np.int64)),
        pl.Series("to", right.astype(np.int64)),
        margin=margin,
        against=pl.when(margin > 0).then(1 - same).otherwise(same),
    )
    other = frame.filter((pl.col("margin") != 0) & ((pl.col("margin") > 0) != pl.col("together")))
    return other.sort(pl.col("margin").abs(), "against", descending=True, maintain_order=True)


def most_certain(result: PairsResult) -> dict[int, list[int]]:
    """Return the numbers of the most certain items of the first clusters; clusters from 0."""
    order = np.argsort(-result.params.chances[:, 0], kind="stable")
    cluster = result.cluster[order]
    shown = range(min(result.n_clusters, MAX_CLUSTERS_PICTURED))
    return {c: order[cluster == c][:ITEMS_PER_CLUSTER].tolist() for c in shown}


def drawn(result: PairsResult) -> Ints:
    """Return the numbers of the items in the map, the most doubtful first: all, or the most doubtful and an even sample
    of every cluster."""
    sure = result.params.chances[:, 0]
    placed = np.flatnonzero(np.isfinite(result.params.view).all(1))
    placed = placed[np.argsort(sure[placed], kind="stable")]
    if len(placed) <= MAX_ITEMS_DRAWN:
        return placed
    doubts = min(int((sure[placed] < DOUBTFUL_ITEM).sum()), MAX_DOUBTFUL_DRAWN)
    first, others = placed[:doubts], placed[doubts:]
    others = others[np.argsort(result.cluster[others], kind="stable")]
    chosen = np.concatenate([first, others[spread(len(others), MAX_ITEMS_DRAWN - doubts)]])
    return np.asarray(chosen[np.argsort(sure[chosen], kind="stable")])


@once_per_result
def members(result: PairsResult) -> dict[int, list[int]]:
    """Return the numbers of the items that are listed of each cluster, the most certain first; clusters from 0."""
    order = np.argsort(-result.params.chances[:, 0], kind="stable")
    order = order[np.argsort(result.cluster[order], kind="stable")]
    starts = np.searchsorted(result.cluster[order], np.arange(result.n_clusters + 1))
    found, room = dict[int, list[int]](), MAX_MEMBERS_LISTED
    for c in range(result.n_clusters):
        listed = order[starts[c] : starts[c + 1]][: min(MAX_MEMBERS_PER_CLUSTER, room)]
        if not room:
            break
        found[c] = listed.tolist()
        room -= len(listed)
    return found


def in_tables(result: PairsResult) -> list[int]:
    """Return the numbers of the items that tables and lists show, as often as they do: doubtful ones first, then one
    member of every cluster after the other."""
    doubts = doubts_of(result)
    ends = (frame[end].to_list() for frame in (doubts.next, doubts.disputed) for end in ("from_", "to"))
    by_rank = chain.from_iterable(zip_longest(*members(result).values()))
    return [
        *doubts.items.tolist(),
        *chain.from_iterable(most_certain(result).values()),
        *chain.from_iterable(ends),
        *(number for number in by_rank if number is not None),
    ]


@dataclass(frozen=True)
class Shown:
    """Pictures and texts of items, by the number of the item."""

    pictures: dict[int, str] = field(default_factory=dict)  # data URIs
    photos: bool = False  # pictures are files, not small pictures from an array
    texts: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # on items without a picture

    def thumbs(self, number: int, alt: str = "") -> list[Thumb]:
        """Return the picture of an item, if it has one."""
        return [Thumb(self.pictures[number], alt, number, self.photos)] if number in self.pictures else []

    def cell(self, name: object, number: int) -> Cell:
        """Return a cell with the name of an item, its picture and its text."""
        return Cell(short(name, MAX_NAME_CHARS), self.thumbs(number), self.texts.get(number, ""))


def shown(result: PairsResult, pictures: Any, content: Any) -> Shown:
    """Return pictures and texts for the items of tables and then for those of the map. Pictures are those of `content`
    (see `crowdwise.read_content`), else `pictures` (items, height, width) in the order of `result.clusters`."""
    about, items = read_content(content), result.answers.items.to_list()
    about.check(items, "item")
    images = checked(pictures, len(items))
    listed = Counter(in_tables(result))  # keeps the order
    wanted = list(dict.fromkeys([*listed, *drawn(result).tolist()]))
    texts = {n: short(text, MAX_SENTENCE_CHARS) for n in wanted if (text := about.text(items[n])) is not None}
    if about.folder is None:
        return Shown({} if images is None else album(images, wanted), False, texts)
    names, copies = [about.image(items[n]) for n in wanted], [max(listed[n], 1) for n in wanted]
    found, notes = pictures_of(names, about.folder, noun="item", copies=copies)
    return Shown({n: src for n, src in zip(wanted, found, strict=True) if src is not None}, True, texts, notes)
