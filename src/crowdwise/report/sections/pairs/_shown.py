"""The items that the sections of a page about pairs show. The sections share pictures, so that each is kept once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from ....acquisition import next_pairs
from ....kernels.layout import Ints
from ....result import PairsResult
from ...glossary import DOUBTFUL_ITEM
from ...parts import spread
from ...registry import once_per_result
from ...tables import Cell, Thumb
from ...text import MAX_NAME_CHARS, short
from ...thumbnails import album, checked

MAX_ITEMS_DRAWN = 4000
MAX_DOUBTFUL_DRAWN = 1000  # of these
MAX_CLUSTERS_PICTURED = 15
ITEMS_PER_CLUSTER = 4  # pictures of the most certain items of a cluster
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


def in_tables(result: PairsResult) -> list[int]:
    """Return the numbers of the items that tables show."""
    doubts = doubts_of(result)
    ends = (frame[end].to_list() for frame in (doubts.next, doubts.disputed) for end in ("from_", "to"))
    return [*doubts.items.tolist(), *chain.from_iterable(most_certain(result).values()), *chain.from_iterable(ends)]


def pictures_of(result: PairsResult, pictures: Any) -> dict[int, str]:
    """Return pictures as data URIs by the number of the item, for the items of tables and then for those of the map.
    `pictures` (items, height, width) are in the order of `result.clusters`."""
    images = checked(pictures, result.answers.n_items)
    return {} if images is None else album(images, chain(in_tables(result), drawn(result).tolist()))


def named(name: object, number: int, found: dict[int, str]) -> Cell:
    """Return a cell with the name of an item and its picture."""
    return Cell(short(name, MAX_NAME_CHARS), [Thumb(found[number], "", number)] if number in found else [])
