"""PairsResult: everything that a fit of same/different answers has learnt, whatever the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..answers import Pairs
from ..errors import FeatureError, ParameterError, UnknownIdError, nearest
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.special import digamma
from ..rating.skills import wilson
from ..rating.table import flagged, worker_table
from .base import BaseResult
from .tables import bits

if TYPE_CHECKING:
    from ..pairs.model import PairsModel

CHOICES = 4  # most likely clusters of an item that are kept
NEAR_CHANCE = 0.6  # upper end of skill below which a worker is flagged as at chance


class Clusters(NamedTuple):
    """What was learnt, as arrays. Clusters are numbered from 0, the largest first."""

    choices: Ints  # (N, at most CHOICES) most likely clusters of each item, the first its own
    chances: Floats  # and their probabilities
    alpha: Floats  # (W, 2) Beta parameters of the chance to call the same what is the same
    beta: Floats  # (W, 2) and to call different what is different
    same: Floats  # (E,) probability that the two items of each pair asked are the same
    view: Floats  # (N, 2) a picture of the items; (0, 2) without features
    shares: Floats  # (S, K) shares of the components during the fit; (0, 0) where none were kept
    epochs: Ints  # (S,) after which iterations
    samples: NDArray[np.uint8]  # (C, n, ...) simulated observations of each cluster; (0,) without images

    @classmethod
    def without_features(cls, choices: Ints, chances: Floats, alpha: Floats, beta: Floats, same: Floats) -> Clusters:
        """Of answers alone: there is no picture, and no components."""
        return cls(
            choices.astype(np.int32), chances, alpha, beta, same, view=np.empty((0, 2)), shares=np.empty((0, 0)),
            epochs=np.empty(0, np.int64), samples=np.empty(0, np.uint8),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairsResult(BaseResult):
    """Clusters, workers and pairs of one fit.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.pinwheel(seed=1)
    >>> result = cw.aggregate(sim.pairs, features=sim.features)
    >>> result.counted
    '500 items in 5 clusters, 20 workers'
    >>> result.clusters.columns[:3]
    ['item', 'cluster', 'probability']
    """

    kind = "pairs"

    answers: Pairs
    model: PairsModel
    params: Clusters
    space: dict[str, Any]  # where new items are placed: arrays of the model; empty without features

    @property
    def counted(self) -> str:
        N, C, W = self.answers.n_items, self.n_clusters, self.answers.n_workers
        return f"{N} item{'s' * (N != 1)} in {C} cluster{'s' * (C != 1)}, {W} worker{'s' * (W != 1)}"

    def tables(self) -> dict[str, pl.DataFrame]:
        """clusters, sizes, workers and asked (the pairs that were asked)."""
        return {"clusters": self.clusters, "sizes": self.sizes, "workers": self.workers, "asked": self.asked}

    @property
    def cluster(self) -> Ints:
        """(N,) the cluster of each item, by number from 0."""
        return np.asarray(self.params.choices[:, 0])

    @cached_property
    def n_clusters(self) -> int:
        return int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def answers_of(self) -> Ints:
        """(N,) answers about each item."""
        both = np.concatenate([self.answers.left, self.answers.right])
        return np.bincount(both, minlength=self.answers.n_items)

    @cached_property
    def clusters(self) -> pl.DataFrame:
        """item, cluster (from 1, the largest first), probability, second (the next likely cluster) and its probability,
        entropy of the item's clusters in bits, and answers about it."""
        p = self.params
        some = p.choices.shape[1] > 1
        second = p.choices[:, 1] + 1 if some else np.zeros(len(p.choices), np.int64)
        other = p.chances[:, 1] if some else np.zeros(len(p.choices))
        gap = pl.Series(other <= 0)
        return pl.DataFrame(
            [
                self.answers.items.alias("item"),
                pl.Series("cluster", self.cluster + 1, dtype=pl.Int64),
                pl.Series("probability", p.chances[:, 0], dtype=pl.Float64),
                pl.Series("second", second, dtype=pl.Int64).set(gap, None),
                pl.Series("second_probability", other, dtype=pl.Float64).set(gap, None),
                pl.Series("entropy", self.entropy),
                pl.Series("answers", self.answers_of, dtype=pl.Int64),
            ]
        )

    @cached_property
    def entropy(self) -> Floats:
        """(N,) entropy of the cluster of each item, in bits; what is beyond its likeliest clusters counts as one."""
        p = np.maximum(self.params.chances.astype(np.float64), 0.0)
        rest = np.maximum(1.0 - p.sum(1), 0.0)
        whole = np.column_stack([p, rest])
        return bits(whole)

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """cluster, items, share of all items, asked (items that answers are about), mean probability of its items."""
        C, chance = self.n_clusters, self.params.chances[:, 0].astype(np.float64)
        items = np.bincount(self.cluster, minlength=C)
        asked = weighted_counts(self.cluster, self.answers_of > 0, C)
        return pl.DataFrame(
            {
                "cluster": np.arange(1, C + 1),
                "items": items,
                "share": items / max(self.answers.n_items, 1),
                "asked": asked.astype(np.int64),
                "probability": weighted_counts(self.cluster, chance, C) / np.maximum(items, 1),
            }
        )

    @cached_property
    def workers(self) -> pl.DataFrame:
        """worker, answers, skill (chance of a right answer: the mean of sensitivity and specificity) with its 95 %
        interval low to high, rank, flags and reasons, sensitivity (chance to call the same what is the same) and
        specificity (different what is different) with theirs, weight (log-odds by which an answer of this worker
        separates the same from different), and counted (what the answers count for where those of one job depend on
        each other)."""
        pairs, p = self.answers, self.params
        ends = {}
        for name, beta in (("sensitivity", p.alpha), ("specificity", p.beta)):
            n = beta.sum(1)
            mean = beta[:, 0] / n
            ends[name] = (mean, *wilson(mean, n))
        skill = 0.5 * (ends["sensitivity"][0] + ends["specificity"][0])
        below, above = (
            0.5 * np.sqrt(sum((ends[name][end] - ends[name][0]) ** 2 for name in ends)) for end in (1, 2)
        )  # fmt: skip
        low, high = np.maximum(skill - below, 0.0), np.minimum(skill + above, 1.0)
        own: dict[str, Any] = {}
        for name, (mean, start, end) in ends.items():
            own |= {name: mean, f"{name}_low": start, f"{name}_high": end}

        def reason(j: int) -> str:
            return f"right {skill[j]:.0%} of the time ({low[j]:.0%} to {high[j]:.0%}), where guessing gives 50%"

        return worker_table(
            pairs.workers,
            np.bincount(pairs.worker, minlength=pairs.n_workers),
            skill,
            low,
            high,
            **flagged(
                {
                    "at chance": ((high < NEAR_CHANCE) & (high >= 0.5), reason),
                    "inverted": (high < 0.5, lambda j: f"{reason(j)}: the answers may be swapped"),
                }
            ),
            **own,
            weight=worker_weights(p.alpha, p.beta),
            counted=weighted_counts(pairs.worker, pairs.weight, pairs.n_workers),
        )

    @cached_property
    def asked(self) -> pl.DataFrame:
        """Every pair asked: left, right, answers, said_same (how many of them), probability that both are the same, and
        together (whether they are in one cluster)."""
        pairs = self.answers
        left, right, edge = pairs.edges
        return pl.DataFrame(
            [
                pairs.items[left].alias("left"),
                pairs.items[right].alias("right"),
                pl.Series("answers", np.bincount(edge, minlength=len(left)), dtype=pl.Int64),
                pl.Series("said_same", weighted_counts(edge, pairs.same, len(left)), dtype=pl.Int64),
                pl.Series("probability", self.params.same, dtype=pl.Float64),
                pl.Series("together", self.cluster[left] == self.cluster[right]),
            ]
        )

    def of(self, cluster: int) -> pl.DataFrame:
        """The items of one cluster, the surest first."""
        if not 1 <= cluster <= self.n_clusters:
            raise UnknownIdError(f"no cluster {cluster!r}; they are numbered from 1 to {self.n_clusters}")
        return self.clusters.filter(pl.col("cluster") == cluster).sort("probability", descending=True)

    def assign(self, X: Any, items: Any = None) -> pl.DataFrame:
        """The clusters of new items by their features, without a new fit: item, cluster, probability."""
        if not self.space:
            raise FeatureError(
                f"{self.model.name} knows no features, so that new items cannot be placed. Fit with some"
            )
        names, P = self.model.place_items(self.space, X, items)
        top = P.argmax(1)
        return pl.DataFrame(
            [names, pl.Series("cluster", top + 1, dtype=pl.Int64), pl.Series("probability", P[np.arange(len(P)), top])]
        )

    def probability_same(self, left: Any, right: Any) -> Floats:
        """The chance that items are the same, pair by pair, whether they were asked or not."""
        place = {name: k for k, name in enumerate(self.answers.items.to_list())}
        at = []
        for names in (left, right):
            lost = [name for name in names if name not in place]
            if lost:
                raise UnknownIdError(
                    f"no item {lost[0]!r} in this result.{nearest(str(lost[0]), list(place)[:10_000])}"
                )
            at.append(np.array([place[name] for name in names], np.int64))
        if len(at[0]) != len(at[1]):
            raise ParameterError(f"left names {len(at[0])} items and right {len(at[1])}; give them pair by pair")
        return self.same_chance(at[0], at[1])

    def same_chance(self, left: Ints, right: Ints) -> Floats:
        """The same by numbers of items: what the answers to that very pair say where it was asked."""
        p = self.params
        equal = p.choices[left][:, :, None] == p.choices[right][:, None, :]
        chance = np.asarray(
            (equal * p.chances[left][:, :, None] * p.chances[right][:, None, :]).sum((1, 2)), np.float64
        )
        a, b, _ = self.answers.edges
        if len(a) and not len(p.view):
            N = self.answers.n_items
            known, wanted = a.astype(np.int64) * N + b, np.minimum(left, right) * N + np.maximum(left, right)
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            chance = np.where(known[at] == wanted, p.same[at], chance)
        return np.where(left == right, 1.0, chance)

    def own_warnings(self) -> list[str]:
        pairs, said = self.answers, []
        if pairs.n_answers and (pairs.same.all() or not pairs.same.any()):
            word = "the same" if pairs.same.all() else "different"
            said.append(f"every answer is {word!r}: workers cannot be compared by that")
        poor = int((self.workers["skill"] < 0.55).sum())
        if poor:
            said.append(f"{poor} of {pairs.n_workers} workers are hardly better than chance, and hardly count")
        return said


def worker_weights(alpha: Floats, beta: Floats) -> Floats:
    """(W,) expected ln a/(1-a) + ln b/(1-b): what an answer of "the same" counts against one of "different"."""
    return np.asarray(
        digamma(alpha[:, 0]) - digamma(alpha[:, 1]) + digamma(beta[:, 0]) - digamma(beta[:, 1]), np.float64
    )


def ranked(posterior: Floats) -> tuple[Ints, Floats, Ints]:
    """Likeliest clusters of items from a posterior (N, K), with their chances, and (C,) which columns are clusters: the
    one with most items is 0."""
    K = posterior.shape[1]
    top = posterior.argmax(1)
    items = np.bincount(top, minlength=K)
    order = np.lexsort((np.arange(K), -items))
    used = order[: max(int((items > 0).sum()), 1)]
    P = posterior[:, used]
    m = min(CHOICES, len(used))
    choices = np.argsort(-P, axis=1, kind="stable")[:, :m].astype(np.int32)
    return choices, np.take_along_axis(P, choices, 1).astype(np.float64), used


def by_size(label: Ints) -> Ints:
    """(N,) clusters numbered from 0, the largest first."""
    _, code = np.unique(label, return_inverse=True)
    size = np.bincount(code)
    rank = np.empty(len(size), np.int64)
    rank[np.lexsort((np.arange(len(size)), -size))] = np.arange(len(size))
    return np.asarray(rank[code])


def picture(X: Floats) -> Floats:
    """(N, 2) the two directions in which rows differ most."""
    rows = np.asarray(X, np.float64)
    if rows.shape[1] < 2:
        rows = np.column_stack([rows, np.zeros(len(rows))])
    middle = rows - rows.mean(0)
    if rows.shape[1] == 2:
        return np.asarray(middle)
    values, vectors = np.linalg.eigh(middle.T @ middle)
    two = vectors[:, np.argsort(-values)[:2]]
    two = two * np.sign(two[np.abs(two).argmax(0), [0, 1]])
    return np.asarray(middle @ two)


def chances_of(left: Ints, right: Ints, posterior: Callable[[Ints], Floats]) -> Floats:
    """(E,) chance of the two items of pairs to be in one cluster, by posteriors of some items at a time."""
    out = np.empty(len(left))
    for start in range(0, len(left), 65536):
        cut = slice(start, start + 65536)
        out[cut] = (posterior(left[cut]) * posterior(right[cut])).sum(1)
    return out
