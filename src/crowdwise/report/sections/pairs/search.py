"""How the number of clusters was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....result import PairsResult
from ...parts import MAX_ITERATIONS_SHOWN, Search, search_rows, spread
from ...registry import section
from ...text import MAX_NAME_CHARS, count, many, percent, short

MAX_COMPONENTS_SHOWN = 50
MAX_SNAPSHOTS_SHOWN = 40
MIN_SHARE = 0.005  # of the items, from which a component counts as used


@dataclass(frozen=True)
class Shares:
    """The share of the items in each component during the fit."""

    headline: str
    epochs: list[int]
    components: list[int]  # their numbers from 1, the largest at the end first
    rows: list[list[float]]  # one row per epoch, one column per component
    total: int  # components


@dataclass(frozen=True)
class Training:
    search: Search | None
    shares: Shares | None

    @property
    def headline(self) -> str:
        return " ".join(part.headline for part in (self.shares, self.search) if part)

    @property
    def terms(self) -> Sequence[str]:
        return ("component",) if self.shares else ()


@section(
    "pairs", "search", order=40, nav="Number of clusters", title="How the number of clusters was found",
    intro="The state of the fit after each iteration.",
    terms=("iteration",),
)  # fmt: skip
def search(result: PairsResult) -> Training | None:
    found, shares = _search(result), _shares(result)
    return Training(found, shares) if found or shares else None


def _search(result: PairsResult) -> Search | None:
    rows = search_rows(result.trace, "clusters")
    if not rows:
        return None
    first, last = (int(result.trace["clusters"][end]) for end in (0, -1))
    headline = f"The fit took {many(len(rows), 'iteration')}"
    headline += (
        f", from {many(first, 'cluster')} to {count(last)}" if first != last else f", with {many(last, 'cluster')}"
    )
    rows = [rows[n] for n in spread(len(rows), MAX_ITERATIONS_SHOWN)]
    return Search(f"{headline}.", short(result.criterion, MAX_NAME_CHARS), None, rows)


def _shares(result: PairsResult) -> Shares | None:
    shares = np.nan_to_num(np.asarray(result.params.shares, np.float64))
    if not shares.size:
        return None
    order = np.argsort(-shares[-1], kind="stable")
    used = [int((row >= MIN_SHARE).sum()) for row in (shares[0], shares[-1])]
    headline = f"At the start {count(used[0])} of {many(shares.shape[1], 'component')} held at least "
    headline += f"{percent(MIN_SHARE)} of the items, at the end {count(used[1])}."
    if len(order) > MAX_COMPONENTS_SHOWN:
        headline += f" The chart shows the {MAX_COMPONENTS_SHOWN} largest at the end."
    kept = spread(len(shares), MAX_SNAPSHOTS_SHOWN)
    return Shares(
        headline=headline,
        epochs=[int(result.params.epochs[n]) for n in kept],
        components=(order[:MAX_COMPONENTS_SHOWN] + 1).tolist(),
        rows=shares[kept][:, order[:MAX_COMPONENTS_SHOWN]].round(4).tolist(),
        total=shares.shape[1],
    )
