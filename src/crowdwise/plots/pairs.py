"""Charts of pairs: workers, sizes of clusters, and items by probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from ..result import PairsResult
from .chart import Chart
from .options import check_top
from .probabilities import Words, probability_chart
from .registry import chart
from .style import BLUE, HATCHED, canvas, legend, nothing_to_show, whole_numbers, write_counts
from .text import count, many
from .workers import TOP, skill_chart

WRITTEN_BARS = 25  # that have their number above them
MAX_BARS = 40  # clusters that get a bar each unless asked otherwise; of more, sizes are counted


@chart("pairs", "workers")
def workers_chart(result: PairsResult, *, top: int = TOP, workers: Any = None) -> Chart:
    """Skill with its 95 % interval, best first; `top` workers, or those of a list `workers`."""
    axis = "skill: mean of sensitivity and specificity"
    return skill_chart(result, top, workers, word="skill", axis=axis, guessing=0.5)


@chart("pairs", "tasks")
def tasks_chart(result: PairsResult) -> Chart:
    """How probable the clusters of items are, and how many items are expected to be in a wrong one."""
    p = result.clusters["probability"].to_numpy().astype(np.float64)
    right, wrong = "expected in the right cluster", "expected in a wrong cluster"
    words = Words("items", "probability of the item's cluster", right, wrong, "are expected to be in a wrong cluster")
    note = "Expected: one less the probability, added up. It is right if the model's doubts are."
    return probability_chart(p, words, note)


@chart("pairs", "clusters")
def clusters_chart(result: PairsResult, *, top: int | None = None) -> Chart:
    """How large the clusters are: a bar for each of the `top` largest; without `top`, and of more than 40 clusters, how
    many clusters there are of each size."""
    sizes = result.sizes
    if top is None and sizes.height > MAX_BARS:
        return _counted(result)
    data = sizes.head(sizes.height if top is None else check_top(top)).select("cluster", "items", "asked")
    some = f" of {count(sizes.height)}" if data.height < sizes.height else ""
    title = f"Items in {count(data.height)}{some} clusters, the largest first"
    figure, axes = canvas(3.7, title)
    if data.is_empty():
        nothing_to_show(axes, "There are no items, and so no clusters.")
        return Chart(title, f"{title}. There are none.", data, figure)
    x, items, asked = (data[name].to_numpy() for name in ("cluster", "items", "asked"))
    axes.bar(x, asked, 0.8, color=BLUE, label="items that answers are about")
    if (items > asked).any():
        axes.bar(x, items - asked, 0.8, bottom=asked, label="items placed by their features alone", **HATCHED)
        legend(axes)
    _axes(axes, "cluster", "items")
    if data.height <= WRITTEN_BARS:
        axes.set_xticks(x)
        write_counts(axes, x, items)
    said = f"The largest holds {many(int(items[0]), 'item')}, the smallest shown {many(int(items[-1]), 'item')}."
    return Chart(title, f"{title}. {said}", data, figure)


def _counted(result: PairsResult) -> Chart:
    """How many clusters there are of each size."""
    counts = np.bincount(result.sizes["items"].to_numpy())
    size = np.flatnonzero(counts)
    data = pl.DataFrame({"items": size, "clusters": counts[size]})
    title = f"{many(result.n_clusters, 'cluster')} of {many(result.answers.n_items, 'item')}, by size"
    figure, axes = canvas(3.7, title, "The scale of clusters is logarithmic. top=30 draws the 30 largest instead.")
    axes.bar(size, counts[size], 0.8, color=BLUE)
    axes.set_yscale("log")
    axes.set_ylim(0.7, 2.2 * counts.max())
    axes.yaxis.set_major_formatter(lambda value, _: count(round(value)) if value >= 1 else "")
    if len(size) <= WRITTEN_BARS:
        write_counts(axes, size, counts[size])
    _axes(axes, "items in the cluster", "clusters")
    alone, largest = int(counts[1]) if len(counts) > 1 else 0, int(size[-1])
    said = f"{count(alone)} of one item only; the largest holds {many(largest, 'item')}."
    return Chart(title, f"{title}. {said}", data, figure)


def _axes(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    whole_numbers(axes.xaxis)
    if axes.get_yscale() == "linear":
        whole_numbers(axes.yaxis)
        axes.margins(y=0.1)
    axes.grid(axis="y")
