"""PairsResult: the result of a fit of same/different answers, the same for every model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..answers import Pairs
from ..answers.arguments import check_list, is_whole
from ..answers.rules import Table
from ..errors import FeatureError, ParameterError, UnknownIdError, nearest
from ..kernels import TINY
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.rules import Real, Whole
from ..kernels.special import digamma
from ..rating.skills import wilson
from ..rating.table import flagged, share_correct, worker_table
from .base import BaseResult
from .tables import bits

if TYPE_CHECKING:
    from ..pairs.model import PairsModel

MAX_CHOICES = 4  # most probable clusters stored per item
NEAR_CHANCE = 0.6  # a worker is flagged as at chance if the upper end of their skill is below this
MIN_SKILL = 0.55  # workers with less skill are counted in a warning


class Clusters(NamedTuple):
    """Estimated parameters, as arrays. Clusters are numbered from 0, the largest first."""

    choices: Annotated[Ints, Whole("N C", below="N")]  # most probable clusters of each item; the first is its cluster
    chances: Annotated[Floats, Real("N C", 0, 1)]  # their probabilities
    alpha: Annotated[Floats, Real("W 2", TINY)]  # Beta parameters of the sensitivity: P(answer "same" | same)
    beta: Annotated[Floats, Real("W 2", TINY)]  # Beta parameters of the specificity: P(answer "different" | different)
    same: Annotated[Floats, Real("E", 0, 1)]  # probability that the two items of each pair asked are the same
    view: Annotated[Floats, Real("N 2", optional=True)]  # projection of the items for plots; (0, 2) without features
    shares: Annotated[Floats, Real("S Q", 0, 1, optional=True)]  # of the components, or none
    epochs: Annotated[Ints, Whole("S", dtype="int64")]  # iterations at which the shares were recorded
    samples: NDArray[np.uint8]  # (C, n, ...) simulated observations of each cluster; (0,) without images

    @classmethod
    def without_features(cls, choices: Ints, chances: Floats, alpha: Floats, beta: Floats, same: Floats) -> Clusters:
        """Return the parameters of a fit to answers alone, which has no projection and no components."""
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
    table_names = ("clusters", "sizes", "workers", "asked")

    answers: Pairs
    model: PairsModel
    params: Clusters
    trace: Annotated[pl.DataFrame, Table("iterations", ("iteration", "objective", "clusters"), numbers=True)]
    space: dict[str, Any]  # arrays of the model that assign new items to clusters; empty without features

    @property
    def counted(self) -> str:
        N, C, W = self.answers.n_items, self.n_clusters, self.answers.n_workers
        return f"{N} item{'s' * (N != 1)} in {C} cluster{'s' * (C != 1)}, {W} worker{'s' * (W != 1)}"

    @property
    def flaw(self) -> str:
        """What contradicts itself in a result that was read from a file, or ""."""
        p, C = self.params, self.n_clusters
        if not p.choices.shape[1] or p.choices.max(initial=-1) >= C:
            return "has items in clusters that there are not"
        if len(p.same) != len(self.answers.edges[0]):
            return "has probabilities of other pairs than those that were asked"
        odd = p.samples.dtype != np.uint8 or (p.samples.size and (len(p.samples) != C or p.samples.ndim < 3))
        if odd:
            return "has samples that are no images of its clusters"
        flaw = self.model.space_flaw(self.space, C) if self.space else ""
        return f"cannot assign new items: space.{flaw}" if flaw else ""

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables clusters, sizes, workers and asked (the pairs that were asked)."""
        return {"clusters": self.clusters, "sizes": self.sizes, "workers": self.workers, "asked": self.asked}

    @property
    def cluster(self) -> Ints:
        """Cluster of each item (N,), numbered from 0."""
        return np.asarray(self.params.choices[:, 0])

    @cached_property
    def n_clusters(self) -> int:
        return int(self.cluster.max(initial=-1)) + 1

    @cached_property
    def answers_of(self) -> Ints:
        """Number of answers about each item (N,)."""
        both = np.concatenate([self.answers.left, self.answers.right])
        return np.bincount(both, minlength=self.answers.n_items)

    @cached_property
    def clusters(self) -> pl.DataFrame:
        """One row per item: item, cluster (from 1, the largest first), probability, second (the next most probable
        cluster), second_probability, entropy of the item's cluster (bits), and answers about the item."""
        p = self.params
        several = p.choices.shape[1] > 1
        second = p.choices[:, 1] + 1 if several else np.zeros(len(p.choices), np.int64)
        second_probability = p.chances[:, 1] if several else np.zeros(len(p.choices))
        missing = pl.Series(second_probability <= 0)
        return pl.DataFrame(
            [
                self.answers.items.alias("item"),
                pl.Series("cluster", self.cluster + 1, dtype=pl.Int64),
                pl.Series("probability", p.chances[:, 0], dtype=pl.Float64),
                pl.Series("second", second, dtype=pl.Int64).set(missing, None),
                pl.Series("second_probability", second_probability, dtype=pl.Float64).set(missing, None),
                pl.Series("entropy", self.entropy),
                pl.Series("answers", self.answers_of, dtype=pl.Int64),
            ]
        )

    @cached_property
    def entropy(self) -> Floats:
        """Entropy of the cluster of each item (N,), in bits; clusters that are not stored count as one."""
        p = np.maximum(self.params.chances.astype(np.float64), 0.0)
        rest = np.maximum(1.0 - p.sum(1), 0.0)
        whole = np.column_stack([p, rest])
        return bits(whole)

    @cached_property
    def sizes(self) -> pl.DataFrame:
        """One row per cluster: cluster, items, share of all items, asked (items with answers), mean probability of its
        items."""
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
        """One row per worker.

        The columns are worker, answers, skill (probability of a correct answer: the mean of sensitivity and
        specificity) with its 95 % interval low to high, rank, flags and reasons; sensitivity (probability of "same" for
        items that are the same) and specificity ("different" for items that differ), each with its interval; weight
        (expected log-odds between an answer "same" and an answer "different"); and counted (effective number of
        answers, smaller than answers if those of one job depend on each other).
        """
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
            return share_correct(skill[j], low[j], high[j], 0.5)

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
        """One row per pair asked: left, right, answers, said_same (number of answers "same"), probability that the
        items are the same, and together (whether they are in one cluster)."""
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
        """Return the items of one cluster, the most probable first."""
        if not is_whole(cluster) or not 1 <= cluster <= self.n_clusters:
            raise UnknownIdError(f"no cluster {cluster!r}; clusters are numbered from 1 to {self.n_clusters}")
        return self.clusters.filter(pl.col("cluster") == cluster).sort("probability", descending=True)

    def assign(self, X: Any, items: Any = None) -> pl.DataFrame:
        """Assign new items to clusters by their features, without a new fit: item, cluster, probability."""
        if not self.space:
            raise FeatureError(
                f"{self.model.name} was fitted without features, so new items cannot be assigned. Fit with features"
            )
        names, P = self.model.place_items(self.space, X, items)
        top = P.argmax(1)
        return pl.DataFrame(
            [names, pl.Series("cluster", top + 1, dtype=pl.Int64), pl.Series("probability", P[np.arange(len(P)), top])]
        )

    def probability_same(self, left: Any, right: Any) -> Floats:
        """Return the probability that left[e] and right[e] are the same, for any pairs of items of the fit."""
        numbers = {name: k for k, name in enumerate(self.answers.items.to_list())}
        ends = []
        for side, names in (("left", left), ("right", right)):
            ids = check_list(side, names, "a list of items")
            unknown = [name for name in ids if not isinstance(name, Hashable) or name not in numbers]
            if unknown:
                raise UnknownIdError(
                    f"no item {unknown[0]!r} in this result.{nearest(unknown[0], list(numbers)[:10_000])}"
                )
            ends.append(np.array([numbers[name] for name in ids], np.int64))
        if len(ends[0]) != len(ends[1]):
            raise ParameterError(
                f"left has {len(ends[0])} items and right {len(ends[1])}; give one of each for every pair"
            )
        return self.same_chance(ends[0], ends[1])

    def same_chance(self, left: Ints, right: Ints) -> Floats:
        """Return the same by item numbers. Without features, pairs that were asked use their own answers."""
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
        pairs, warnings = self.answers, []
        if pairs.n_answers and (pairs.same.all() or not pairs.same.any()):
            word = "the same" if pairs.same.all() else "different"
            warnings.append(f"every answer is {word!r}, so the skill of workers cannot be estimated")
        poor = int((self.workers["skill"] < MIN_SKILL).sum())
        if poor:
            warnings.append(
                f"{poor} of {pairs.n_workers} workers are hardly better than chance; their answers have little weight"
            )
        return warnings


def worker_weights(alpha: Floats, beta: Floats) -> Floats:
    """Return the expected ln a/(1-a) + ln b/(1-b) of each worker (W,): the log-odds between an answer "same" and an
    answer "different"."""
    return np.asarray(
        digamma(alpha[:, 0]) - digamma(alpha[:, 1]) + digamma(beta[:, 0]) - digamma(beta[:, 1]), np.float64
    )


def ranked(posterior: Floats) -> tuple[Ints, Floats, Ints]:
    """Return the most probable clusters of items from a posterior (N, K), their probabilities, and the columns (C,) of
    the clusters, sorted by size. Cluster 0 has the most items."""
    K = posterior.shape[1]
    top = posterior.argmax(1)
    items = np.bincount(top, minlength=K)
    order = np.lexsort((np.arange(K), -items))
    used = order[: max(int((items > 0).sum()), 1)]
    P = posterior[:, used]
    m = min(MAX_CHOICES, len(used))
    choices = np.argsort(-P, axis=1, kind="stable")[:, :m].astype(np.int32)
    return choices, np.take_along_axis(P, choices, 1).astype(np.float64), used


def by_size(label: Ints) -> Ints:
    """Renumber clusters (N,) from 0, the largest first."""
    _, code = np.unique(label, return_inverse=True)
    size = np.bincount(code)
    rank = np.empty(len(size), np.int64)
    rank[np.lexsort((np.arange(len(size)), -size))] = np.arange(len(size))
    return np.asarray(rank[code])


def picture(X: Floats) -> Floats:
    """Return the projection (N, 2) of the rows on their first two principal components."""
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
    """Return the probability (E,) that the two items of each pair are in one cluster; `posterior` maps item numbers to
    their posteriors and is called on chunks of pairs."""
    out = np.empty(len(left))
    for start in range(0, len(left), 65536):
        cut = slice(start, start + 65536)
        out[cut] = (posterior(left[cut]) * posterior(right[cut])).sum(1)
    return out
