"""The table of clusters, and the members of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....result import PairsResult
from ...registry import section
from ...tables import Cell, Fold, Folds, Table, Thumb
from ...text import MAX_NAME_CHARS, count, many, percent, rounded, short
from ...thumbnails import strip
from ._shown import Shown, members, most_certain, shown

MAX_CLUSTERS_SHOWN = 100
MAX_SAMPLES_SHOWN = 8  # generated items of a cluster


@section(
    "pairs", "clusters", order=20, title="Clusters",
    intro="The largest cluster first. A low mean probability means that a cluster is hard to separate from others.",
    terms=("cluster", "item"),
)  # fmt: skip
def clusters(result: PairsResult, *, pictures: Any = None, content: Any = None) -> Table | None:
    if not result.n_clusters:
        return None
    about = shown(result, pictures, content)
    samples = result.params.samples if result.params.samples.ndim > 2 else result.params.samples[:0]
    strips = {c: strip(samples[c, :MAX_SAMPLES_SHOWN]) for c in range(min(len(samples), MAX_CLUSTERS_SHOWN))}
    certain = most_certain(result) if about.pictures else {}
    heads = [("Cluster", False)]
    heads += [(title, True) for title in ("Items", "Share", "Items in pairs", "Mean probability")]
    heads += [("Generated items", False)] if any(strips.values()) else []
    heads += [("Most certain items", False)] if certain else []
    rows: list[list[str | Cell]] = []
    for c, (_, items, share, asked, p) in enumerate(result.sizes.head(MAX_CLUSTERS_SHOWN).rows()):
        sure = "" if rounded(p) is None else percent(p)
        cells: list[str | Cell] = [count(c + 1), count(items), percent(share), count(asked), sure]
        if any(strips.values()):
            src = strips.get(c)
            cells.append("" if src is None else Cell(thumbs=[Thumb(src, f"Generated items of cluster {c + 1}")]))
        if certain:
            cells.append(Cell(thumbs=_thumbs(result, certain.get(c, []), about)))
        rows.append(cells)
    return Table("Clusters, the largest first", heads, rows, _headline(result), folds=_members(result, about))


def _thumbs(result: PairsResult, items: list[int], about: Shown) -> list[Thumb]:
    names = result.answers.items
    return [thumb for n in items for thumb in about.thumbs(n, f"Item {short(names[n], MAX_NAME_CHARS)}")]


def _members(result: PairsResult, about: Shown) -> Folds:
    """Return a list of members for each cluster; clusters of one item share a list."""
    sizes, listed = result.sizes["items"].to_list(), members(result)
    folds = [
        Fold(
            f"Cluster {count(c + 1)}: {many(sizes[c], 'item')}",
            _rows(result, about, items),
            f"and {count(sizes[c] - len(items))} more; clusters.csv holds all." if len(items) < sizes[c] else "",
        )
        for c, items in listed.items()
        if sizes[c] > 1
    ]
    first = len(sizes) - sizes.count(1)  # the largest come first
    alone = [items[0] for c, items in listed.items() if sizes[c] == 1]
    if alone:
        title = f"Clusters {count(first + 1)} to {count(len(sizes))}: one item each"
        more = len(sizes) - first - len(alone)
        folds.append(
            Fold(
                title if len(sizes) - first > 1 else f"Cluster {count(first + 1)}: 1 item",
                _rows(result, about, alone),
                f"and {count(more)} more; clusters.csv holds all." if more else "",
            )
        )
    notes = list(about.notes)
    if len(listed) < first:
        notes.append(f"Members of the first {count(len(listed))} clusters are listed; clusters.csv holds all.")
    headline = "Open a cluster to see its items, the most certain first. Numbers: probability of being in it."
    return Folds("Members of the clusters", headline, "probability", notes, folds)


def _rows(result: PairsResult, about: Shown, items: list[int]) -> list[tuple[Cell, str]]:
    names, sure = result.answers.items, result.params.chances[:, 0]
    return [(about.cell(names[n], n), "" if rounded(sure[n]) is None else percent(sure[n])) for n in items]


def _headline(result: PairsResult) -> str:
    sizes = result.sizes["items"].to_numpy()
    cut = f". The table shows the first {MAX_CLUSTERS_SHOWN}" if len(sizes) > MAX_CLUSTERS_SHOWN else ""
    if sizes[0] == 1 and len(sizes) > 1:
        return f"Each of the {many(len(sizes), 'item')} is a cluster of its own{cut}."
    single = int((sizes == 1).sum())
    half = int(np.searchsorted(np.cumsum(sizes), 0.5 * sizes.sum())) + 1
    headline = f"{many(len(sizes), 'cluster')}; the largest holds {percent(sizes[0] / sizes.sum())} of the items"
    if half > 1:
        headline += f", and half of the items are in the {count(half)} largest"
    if single:
        headline += f". {count(single)} {'has' if single == 1 else 'have'} a single item"
    return f"{headline}{cut}."
