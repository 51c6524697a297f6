"""Which pairs to ask about next."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..kernels.layout import Floats, Ints
from ..result import PairsResult
from ..result.base import result_of
from .tasks import check_budget

MAX_DOUBTFUL_ITEMS = 2000  # most uncertain items that are considered
DEFAULT_ACCURACY = 0.9  # of workers, if there are no answers yet
MAX_CERTAIN_ITEMS = 50  # most certain items of a cluster, with which uncertain items are compared


def next_pairs(result: PairsResult, budget: int = 100, *, batch: int | None = None) -> pl.DataFrame:
    """Return the pairs whose answers are expected to bring most information: left, right, probability (that both are
    the same), gain (expected information in bits of an answer of an average worker), and about (the uncertain item).

    An uncertain item is compared with a certain item of a cluster that it may belong to. Pairs that have answers
    already come last.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.pinwheel(seed=1)
    >>> cw.next_pairs(cw.aggregate(sim.pairs, features=sim.features), 5).columns
    ['left', 'right', 'probability', 'gain', 'about']
    """
    check_budget(budget, batch)
    budget = budget if batch is None else min(batch, budget)
    result = result_of(result, "pairs", "next_pairs")
    p, items = result.params, result.answers.items
    doubtful = np.argsort(-result.entropy, kind="stable")[: min(MAX_DOUBTFUL_ITEMS, 4 * budget)]
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
    """Return the items whose cluster is most uncertain; `review` lists the columns."""
    result = result_of(result, "pairs", "review")
    return result.clusters[np.argsort(-result.entropy, kind="stable")[:top]]


def _candidates(result: PairsResult, doubtful: Ints) -> tuple[Ints, Ints]:
    """Pair each uncertain item with a certain item of each of its two most probable clusters, taken in turn."""
    p = result.params
    chance = np.where(result.entropy > 0, p.chances[:, 0], 1.0)
    order = np.lexsort((-chance, result.cluster))
    starts = np.searchsorted(result.cluster[order], np.arange(result.n_clusters + 1))
    size = np.minimum(np.diff(starts), MAX_CERTAIN_ITEMS)
    item, other = [], []
    for rank in range(min(2, p.choices.shape[1])):
        cluster = np.minimum(p.choices[doubtful, rank], result.n_clusters - 1)
        turn = np.arange(len(doubtful)) % np.maximum(size[cluster], 1)
        here = order[starts[cluster] + turn]
        again = order[starts[cluster] + (turn + 1) % np.maximum(size[cluster], 1)]  # no item is compared with itself
        item.append(doubtful)
        other.append(np.where(here == doubtful, again, here))
    both = np.concatenate(item), np.concatenate(other)
    different = both[0] != both[1]
    return both[0][different], both[1][different]


def _average(beta: Floats) -> float:
    return float(beta[:, 0].sum() / beta.sum()) if len(beta) else DEFAULT_ACCURACY


def _gain(same: Floats, alpha: float, beta: float) -> Floats:
    """Mutual information, in bits, of an answer and of whether both items are the same."""

    def entropy(p: Floats) -> Floats:
        p = np.clip(p, 1e-12, 1 - 1e-12)
        return np.asarray(-p * np.log2(p) - (1 - p) * np.log2(1 - p))

    answer_same = same * alpha + (1 - same) * (1 - beta)
    known = same * entropy(np.array(alpha)) + (1 - same) * entropy(np.array(beta))
    return np.asarray(np.maximum(entropy(answer_same) - known, 0.0))


def _asked(result: PairsResult, item: Ints, other: Ints) -> Ints:
    """Return a mask of the pairs that have an answer."""
    left, right, _ = result.answers.edges
    N = result.answers.n_items
    known = left.astype(np.int64) * N + right
    return np.asarray(np.isin(np.minimum(item, other).astype(np.int64) * N + np.maximum(item, other), known))
