"""The table of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....result import PairsResult
from ...registry import section
from ...tables import Cell, Table, Thumb
from ...text import MAX_NAME_CHARS, count, many, percent, rounded, short
from ...thumbnails import strip
from ._shown import most_certain, pictures_of

MAX_CLUSTERS_SHOWN = 100
MAX_SAMPLES_SHOWN = 8  # generated items of a cluster


@section(
    "pairs", "clusters", order=20, title="Clusters",
    intro="The largest cluster first. A low mean probability means that a cluster is hard to separate from others.",
    terms=("cluster", "item"),
)  # fmt: skip
def clusters(result: PairsResult, *, pictures: Any = None) -> Table | None:
    if not result.n_clusters:
        return None
    found = pictures_of(result, pictures)
    samples = result.params.samples if result.params.samples.ndim > 2 else result.params.samples[:0]
    strips = {c: strip(samples[c, :MAX_SAMPLES_SHOWN]) for c in range(min(len(samples), MAX_CLUSTERS_SHOWN))}
    certain = most_certain(result) if found else {}
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
            cells.append(Cell(thumbs=_thumbs(result, certain.get(c, []), found)))
        rows.append(cells)
    return Table("Clusters, the largest first", heads, rows, _headline(result))


def _thumbs(result: PairsResult, items: list[int], found: dict[int, str]) -> list[Thumb]:
    names = result.answers.items
    return [Thumb(found[n], f"Item {short(names[n], MAX_NAME_CHARS)}", n) for n in items if n in found]


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
