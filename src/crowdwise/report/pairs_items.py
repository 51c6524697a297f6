"""The picture of the items, and the table of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..kernels.layout import Ints
from .frame import spread
from .pairs_pictures import strip
from .plain import Cell, Section, Table, Thumb
from .words import LONGEST, column, count, digits_of, known, many, percent, short

if TYPE_CHECKING:
    from ..result.pairs import PairsResult

DOTS, DOUBTS = 4000, 1000  # items drawn at most, and the most doubtful among them
CLUSTERS, SAMPLES = 100, 8  # shown at most: rows, and made-up items in each
SUREST, WITH_PICTURES = 4, 15  # pictures of a cluster's surest items, and clusters that have some
DOUBTFUL = 0.8  # probability below which the cluster of an item is worth a look
UNKNOWN = "\u2013"


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


def drawn(result: PairsResult) -> Ints:
    """Numbers of the items in the picture, the most doubtful first: all, or the most doubtful of many and an even part
    of every cluster."""
    sure = result.params.chances[:, 0]
    some = np.flatnonzero(np.isfinite(result.params.view).all(1))
    some = some[np.argsort(sure[some], kind="stable")]
    if len(some) <= DOTS:
        return some
    doubts = min(int((sure[some] < DOUBTFUL).sum()), DOUBTS)
    first, rest = some[:doubts], some[doubts:]
    rest = rest[np.argsort(result.cluster[rest], kind="stable")]
    chosen = np.concatenate([first, rest[spread(len(rest), DOTS - doubts)]])
    return np.asarray(chosen[np.argsort(sure[chosen], kind="stable")])


def map_section(result: PairsResult, numbers: Ints, pool: Mapping[int, str], pictured: bool) -> ItemMap | None:
    """The picture of these items; `pool` are pictures that no table has, and `pictured` says whether any has."""
    view = result.params.view
    if not len(view):
        return None
    finite = view[np.isfinite(view).all(1)]
    low, high = (finite.min(0), finite.max(0)) if len(finite) else (np.zeros(2), np.ones(2))
    digits = digits_of(float((high - low).max()))
    table = result.clusters[numbers]
    x, y = view[numbers].T.round(digits).tolist() if len(numbers) else ([], [])
    dots = Dots(
        item=[short(name, LONGEST) for name in table["item"].to_list()],
        x=x,
        y=y,
        cluster=table["cluster"].to_list(),
        probability=column(table["probability"], 4),
        second=table["second"].to_list(),
        second_probability=column(table["second_probability"], 4),
        answers=table["answers"].to_list(),
        number=numbers.tolist() if pictured else [],
    )
    left, bottom, right, top = (round(float(end), digits) for end in (*low, *high))
    return ItemMap(
        says=_map_says(result),
        notes=_left_out(result, len(finite), len(numbers), pictured),
        total=len(view),
        doubtful=DOUBTFUL,
        box=(left, -top, right, -bottom),
        clusters=result.sizes["items"].to_list(),
        dots=dots,
        pictures={str(item): src for item, src in pool.items()},
    )


def _map_says(result: PairsResult) -> str:
    doubtful = int((result.params.chances[:, 0] < DOUBTFUL).sum())
    told = f"{many(result.answers.n_items, 'item')} in {many(result.n_clusters, 'cluster')}"
    return f"{told}; {count(doubtful) if doubtful else 'none'} {'is' if doubtful == 1 else 'are'} doubtful."


def _left_out(result: PairsResult, finite: int, shown: int, pictured: bool) -> list[str]:
    notes = []
    if shown < finite:
        notes.append(
            f"{count(shown)} of {count(finite)} items are drawn: the most doubtful, and of every cluster as many "
            "as its size asks for. clusters.csv holds all."
        )
    if finite < len(result.params.view):
        notes.append(f"{many(len(result.params.view) - finite, 'item')} without a place in the picture.")
    if pictured:
        notes.append("Some items show their picture: the most doubtful, and those that the tables name.")
    return notes


def surest(result: PairsResult) -> dict[int, list[int]]:
    """Numbers of the surest items of the first clusters; clusters from 0."""
    order = np.argsort(-result.params.chances[:, 0], kind="stable")
    mine = result.cluster[order]
    return {c: order[mine == c][:SUREST].tolist() for c in range(min(result.n_clusters, WITH_PICTURES))}


def clusters_section(result: PairsResult, album: Mapping[int, str]) -> Section:
    sizes = result.sizes
    samples = result.params.samples if result.params.samples.ndim > 2 else result.params.samples[:0]
    strips = {c: strip(samples[c, :SAMPLES]) for c in range(min(len(samples), CLUSTERS))}
    some = surest(result) if album else {}
    heads = [("Cluster", False)]
    heads += [(title, True) for title in ("Items", "Share", "Asked about", "Mean probability")]
    heads += [("Made-up items", False)] if any(strips.values()) else []
    heads += [("Surest items", False)] if some else []
    rows: list[list[str | Cell]] = []
    for c, (_, items, share, asked, p) in enumerate(sizes.head(CLUSTERS).rows()):
        cells: list[str | Cell] = [count(c + 1), count(items), percent(share), count(asked), _sure(p)]
        if any(strips.values()):
            cells.append(_made_up(strips.get(c), c))
        if some:
            cells.append(Cell(thumbs=_thumbs(result, some.get(c, []), album)))
        rows.append(cells)
    table = Table("Clusters, the largest first", heads, rows) if rows else None
    return Section("", _clusters_say(result), table)


def _made_up(src: str | None, cluster: int) -> str | Cell:
    return "" if src is None else Cell(thumbs=[Thumb(src, f"Made-up items of cluster {cluster + 1}")])


def _thumbs(result: PairsResult, items: list[int], album: Mapping[int, str]) -> list[Thumb]:
    names = result.answers.items
    return [Thumb(album[n], f"Item {short(names[n], LONGEST)}", n) for n in items if n in album]


def _sure(p: float) -> str:
    return "" if known(p, 4) is None else percent(p)


def _clusters_say(result: PairsResult) -> str:
    sizes = result.sizes["items"].to_numpy()
    if not len(sizes):
        return "There are no items, and so no clusters."
    if sizes[0] == 1 and len(sizes) > 1:
        return f"Every one of the {many(len(sizes), 'item')} is a cluster of its own{_shown(len(sizes))}."
    alone = int((sizes == 1).sum())
    half = int(np.searchsorted(np.cumsum(sizes), 0.5 * sizes.sum())) + 1
    says = f"{many(len(sizes), 'cluster')}; the largest holds {percent(sizes[0] / sizes.sum())} of the items"
    if half > 1:
        says += f", and half of the items are in the {count(half)} largest"
    if alone:
        says += f". {count(alone)} {'is' if alone == 1 else 'are'} of one item only"
    return f"{says}{_shown(len(sizes))}."


def _shown(clusters: int) -> str:
    return f". Shown are the first {CLUSTERS}" if clusters > CLUSTERS else ""
