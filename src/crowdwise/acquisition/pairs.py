"""Which pairs are most worth asking next."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..kernels.layout import Floats, Ints
from ..result import PairsResult
from ..result.base import result_of
from .tasks import check_budget

DOUBTFUL = 2000  # items that are looked at, the most doubtful
USUAL = 0.9  # chance of a right answer where nobody has answered yet
SURE = 50  # items of a cluster that a doubtful one may be compared with, the surest


def next_pairs(result: PairsResult, budget: int = 100, *, batch: int | None = None) -> pl.DataFrame:
    """The pairs whose answer would bring most information: left, right, probability (that both are the same), gain
    (bits that an answer of an average worker is expected to bring), and about (the item in doubt).

    A doubtful item is compared with a sure one of a cluster that it may be in. Pairs asked already come only where
    nothing is left that was not.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.pinwheel(seed=1)
    >>> cw.next_pairs(cw.aggregate(sim.pairs, features=sim.features), 5).columns
    ['left', 'right', 'probability', 'gain', 'about']
    """
    check_budget(budget, batch)
    budget = budget if batch is None else min(batch, budget)
    result = result_of(result, "pairs", "next_pairs")
    p, items = result.params, result.answers.items
    doubtful = np.argsort(-result.entropy, kind="stable")[: min(DOUBTFUL, 4 * budget)]
    item, other = _candidates(result, doubtful)
    same = result.same_chance(item, other)
    gain = _gain(same, _average(p.alpha), _average(p.beta))
    asked = _asked(result, item, other)
    left, right = np.minimum(item, other), np.maximum(item, other)
    order = np.lexsort((right, left, -gain, asked))
    _, first = np.unique(left[order].astype(np.int64) * len(items) + right[order], return_index=True)
    chosen = order[np.sort(first)][:budget]
    return pl.DataFrame(
        [
            items[left[chosen]].alias("left"),
            items[right[chosen]].alias("right"),
            pl.Series("probability", same[chosen], dtype=pl.Float64),
            pl.Series("gain", gain[chosen], dtype=pl.Float64),
            items[item[chosen]].alias("about"),
        ]
    )


def review_items(result: PairsResult, top: int | None = None) -> pl.DataFrame:
    """The items whose cluster is least certain; `review` lists the columns."""
    result = result_of(result, "pairs", "review")
    return result.clusters[np.argsort(-result.entropy, kind="stable")[:top]]


def _candidates(result: PairsResult, doubtful: Ints) -> tuple[Ints, Ints]:
    """Each doubtful item with a sure one of each of its two likeliest clusters, taken in turn."""
    p = result.params
    chance = np.where(result.entropy > 0, p.chances[:, 0], 1.0)
    order = np.lexsort((-chance, result.cluster))
    starts = np.searchsorted(result.cluster[order], np.arange(result.n_clusters + 1))
    size = np.minimum(np.diff(starts), SURE)
    item, other = [], []
    for rank in range(min(2, p.choices.shape[1])):
        cluster = np.minimum(p.choices[doubtful, rank], result.n_clusters - 1)
        turn = np.arange(len(doubtful)) % np.maximum(size[cluster], 1)
        here = order[starts[cluster] + turn]
        again = order[starts[cluster] + (turn + 1) % np.maximum(size[cluster], 1)]  # no item is compared with itself
        item.append(doubtful)
        other.append(np.where(here == doubtful, again, here))
    both = np.concatenate(item), np.concatenate(other)
    apart = both[0] != both[1]
    return both[0][apart], both[1][apart]


def _average(beta: Floats) -> float:
    return float(beta[:, 0].sum() / beta.sum()) if len(beta) else USUAL


def _gain(same: Floats, alpha: float, beta: float) -> Floats:
    """Mutual information of an answer and of whether both are the same, in bits."""

    def entropy(p: Floats) -> Floats:
        p = np.clip(p, 1e-12, 1 - 1e-12)
        return np.asarray(-p * np.log2(p) - (1 - p) * np.log2(1 - p))

    said = same * alpha + (1 - same) * (1 - beta)
    known = same * entropy(np.array(alpha)) + (1 - same) * entropy(np.array(beta))
    return np.asarray(np.maximum(entropy(said) - known, 0.0))


def _asked(result: PairsResult, item: Ints, other: Ints) -> Ints:
    """Whether pairs have an answer."""
    left, right, _ = result.answers.edges
    N = result.answers.n_items
    known = left.astype(np.int64) * N + right
    return np.asarray(np.isin(np.minimum(item, other).astype(np.int64) * N + np.maximum(item, other), known))
