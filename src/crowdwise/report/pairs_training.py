"""How the clusters were found: the objective and their number, iteration by iteration, and the shares of components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .frame import ITERATIONS, Search, search_rows, spread
from .pairs_page import Shares, Training
from .words import LONGEST, count, many, percent, short

if TYPE_CHECKING:
    from ..result.pairs import PairsResult

COMPONENTS, SNAPSHOTS = 50, 40  # shown at most
SOME = 0.005  # share from which a component counts as one that holds items


def training_section(result: PairsResult) -> Training | None:
    search, shares = _search(result), _shares(result)
    return Training(search, shares) if search or shares else None


def _search(result: PairsResult) -> Search | None:
    rows = search_rows(result.trace, "clusters")
    if not rows:
        return None
    first, last = (int(result.trace["clusters"][end]) for end in (0, -1))
    says = f"The fit took {many(len(rows), 'iteration')}"
    says += f", from {many(first, 'cluster')} to {count(last)}" if first != last else f", with {many(last, 'cluster')}"
    rows = [rows[n] for n in spread(len(rows), ITERATIONS)]
    return Search(f"{says}.", short(result.criterion, LONGEST), None, rows)


def _shares(result: PairsResult) -> Shares | None:
    shares = np.nan_to_num(np.asarray(result.params.shares, np.float64))
    if not shares.size:
        return None
    order = np.argsort(-shares[-1], kind="stable")
    used = [int((row >= SOME).sum()) for row in (shares[0], shares[-1])]
    says = f"Of {many(shares.shape[1], 'component')}, {count(used[0])} held at least {percent(SOME)} of the items at "
    says += f"first, and {count(used[1])} at the end."
    if len(order) > COMPONENTS:
        says += f" Shown are the {COMPONENTS} that ended largest."
    kept = spread(len(shares), SNAPSHOTS)
    return Shares(
        says=says,
        epochs=[int(result.params.epochs[n]) for n in kept],
        components=(order[:COMPONENTS] + 1).tolist(),
        rows=shares[kept][:, order[:COMPONENTS]].round(4).tolist(),
        total=shares.shape[1],
    )
