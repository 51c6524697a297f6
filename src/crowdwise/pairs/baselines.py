"""Baselines: votes on pairs with transitive closure, clustering of features alone, and metric learning from pairs.

k-means and the Gaussian mixture come from scikit-learn, ITML and MMC from metric-learn. All but the vote need the
number of clusters as a hyperparameter. docs/maths/pair_baselines.md describes them.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..answers import Pairs
from ..answers.pairs import components
from ..engine import Run, Trace, register
from ..engine.model import COUNT, setting
from ..engine.resources import limit_threads, load
from ..errors import DataError, EmptyDataError, FeatureError
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real
from ..kernels.special import softmax
from ..result import Clusters
from ..result.pairs import by_size
from .gaussians import nearest_centres
from .model import Coins, FeatureFit, PairAnswers, PairsModel, finite, new_trace

FLAT_PRIOR = np.ones(2)  # Beta parameters of the workers' prior
MAX_METRIC_ITER = 100  # iterations of the metric learners


def worker_coins(answers: PairAnswers, label: Ints) -> Coins:
    """Posteriors of the workers if the clusters `label` (N,) were the truth."""
    return Coins.from_answers(answers, (label[answers.left] == label[answers.right]).astype(np.float64), FLAT_PRIOR)


def fit_of(posterior: Floats, answers: PairAnswers, view: Floats, space: dict[str, Any]) -> FeatureFit:
    """Fit of a model without a trace."""
    coins = worker_coins(answers, posterior.argmax(1))
    return FeatureFit(posterior, coins.alpha, coins.beta, new_trace(), space, True, view)


@register("pair-vote", "majority vote on each pair; connected components of the pairs voted the same are clusters")
@dataclass(frozen=True, kw_only=True)
class PairVote(PairsModel):
    """Majority vote on each pair (a tie counts as different), then transitive closure.

    Items connected by a chain of pairs voted the same form a cluster.
    """

    features = "none"

    def _fit_answers(self, pairs: Pairs, run: Run) -> tuple[Clusters, Trace, bool]:
        left, right, edge = pairs.edges
        share = np.bincount(edge, pairs.same, minlength=len(left)) / np.bincount(edge, minlength=len(left))
        yes = share > 0.5
        label = by_size(components(left[yes], right[yes], pairs.n_items))
        coins = worker_coins(PairAnswers.of(pairs), label)
        sure = np.ones((len(label), 1))
        return Clusters.without_features(label[:, None], sure, coins.alpha, coins.beta, share), new_trace(), True


@dataclass(frozen=True, kw_only=True)
class GivenClusters(PairsModel):
    """Base class of models that need the number of clusters."""

    clusters: int = setting(10, COUNT, "number of clusters")

    def n_clusters(self, X: Floats) -> int:
        """Number of clusters, at most the number of different rows of X."""
        return min(self.clusters, len(np.unique(X, axis=0)))

    def check_answers(self, answers: PairAnswers) -> None:
        """Raise an error if there are no answers."""
        if not len(answers.left):
            raise EmptyDataError(
                f"{self.name}: there are no answers about these items. Use k-means-items to cluster by features alone"
            )


@dataclass(frozen=True, kw_only=True)
class CentreModel(GivenClusters):
    """Base class of models that cluster features by k-means, after a linear map."""

    extras = ("learn",)

    def transform(self, X: Floats, answers: PairAnswers, seed: int) -> Floats:
        """(D, d) linear map applied to the features before clustering."""
        return np.eye(X.shape[1])

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        X, seed = np.asarray(X, np.float64), int(run.rng().integers(2**31))
        K = self.n_clusters(X)
        with limit_threads():
            turn = self.transform(X, answers, seed)
            cluster = load("sklearn.cluster", "learn", self.name).KMeans(K, n_init=5, random_state=seed).fit(X @ turn)
        return fit_of(np.eye(K)[cluster.labels_], answers, X, {"turn": turn, "centres": cluster.cluster_centers_})

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        return {"turn": finite("D E"), "centres": finite("K E")}

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        which, _ = nearest_centres(np.asarray(X @ space["turn"]), space["centres"])
        return np.asarray(np.eye(len(space["centres"]))[which])


@register("k-means-items", "k-means on features, number of clusters given; ignores answers and workers")
@dataclass(frozen=True, kw_only=True)
class KMeansItems(CentreModel):
    """k-means on the features; ignores the answers."""


@register("gaussian-mixture", "Gaussian mixture on features, number of clusters given; ignores answers and workers")
@dataclass(frozen=True, kw_only=True)
class GaussianItems(CentreModel):
    """Gaussian mixture on the features; ignores the answers."""

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        X, seed = np.asarray(X, np.float64), int(run.rng().integers(2**31))
        K = self.n_clusters(X)
        mixture = load("sklearn.mixture", "learn", self.name)
        with limit_threads(), warnings.catch_warnings(), _as_feature_error(self.name):
            warnings.simplefilter("ignore")
            made = mixture.GaussianMixture(K, n_init=5, reg_covar=1e-4 * X.var() + 1e-9, random_state=seed).fit(X)
            P = made.predict_proba(X)
        space = {"weights": made.weights_, "means": made.means_, "half": made.precisions_cholesky_}
        return fit_of(P, answers, X, space)

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        return {"weights": Real("K", 0, 1, sums=True), "means": finite("K D"), "half": finite("K D D")}

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        parts = zip(space["weights"], space["means"], space["half"], strict=True)
        logs = np.column_stack(
            [np.log(w) + np.log(np.diag(half)).sum() - 0.5 * (((X - m) @ half) ** 2).sum(1) for w, m, half in parts]
        )
        return softmax(logs)


@dataclass(frozen=True, kw_only=True)
class _Metric(CentreModel):
    """Base class: learn a metric from the majority vote on each pair, then run k-means; ignores workers."""

    extras = ("metric-learn",)
    learner: ClassVar[str]

    def options(self) -> dict[str, int]:
        """Arguments of the metric learner."""
        return {"max_iter": MAX_METRIC_ITER}

    def transform(self, X: Floats, answers: PairAnswers, seed: int) -> Floats:
        module = _metric_learn()
        left, right, y = votes(answers)
        if len(np.unique(y)) < 2:
            raise DataError(
                f"{self.name} needs pairs voted the same and pairs voted different, but there is only one kind. Use "
                "pair-mixture"
            )
        Z = (X - X.mean(0)) / max(float(X.std()), 1e-12)
        with warnings.catch_warnings(), _as_feature_error(self.name):
            warnings.simplefilter("ignore")
            model = getattr(module, self.learner)(preprocessor=Z, random_state=seed, **self.options())
            return np.asarray(model.fit(np.column_stack([left, right]), y).components_.T)


@register("itml", "metric learning by ITML on voted pairs, then k-means, number of clusters given")
@dataclass(frozen=True, kw_only=True)
class Itml(_Metric):
    """Information-theoretic metric learning (Davis et al. 2007), then k-means."""

    learner = "ITML"


@register("mmc", "metric learning by MMC on voted pairs, then k-means, number of clusters given")
@dataclass(frozen=True, kw_only=True)
class Mmc(_Metric):
    """Metric learning with side information (Xing et al. 2003), then k-means."""

    learner = "MMC"

    projections: int = setting(10_000, COUNT, "maximum number of projections per iteration of the metric learner")

    def options(self) -> dict[str, int]:
        return {"max_iter": MAX_METRIC_ITER, "max_proj": self.projections}


@contextlib.contextmanager
def _as_feature_error(name: str) -> Iterator[None]:
    """Turn numerical errors of a library into a FeatureError."""
    try:
        yield
    except (ValueError, np.linalg.LinAlgError) as error:
        reason = str(error).rstrip(".")
        raise FeatureError(
            f"{name} failed on these features ({reason}). Many items may have equal features. Use pair-mixture"
        ) from error


def votes(answers: PairAnswers) -> tuple[Ints, Ints, Ints]:
    """Left items, right items and votes (1 same, -1 different) of the distinct pairs; ties are dropped."""
    key = answers.left.astype(np.int64) * answers.n_items + answers.right
    pairs, edge = np.unique(key, return_inverse=True)
    score = np.bincount(edge, np.where(answers.same, 1.0, -1.0))
    clear = score != 0
    return pairs[clear] // answers.n_items, pairs[clear] % answers.n_items, np.sign(score[clear]).astype(np.int64)


@functools.cache
def _metric_learn() -> Any:
    """Load metric-learn, and rename an argument that it passes to scikit-learn under a name used before version 1.6."""
    module = load("metric_learn", "metric-learn", "metric learning")
    util = load("metric_learn._util", "metric-learn", "metric learning")

    def renamed(check: Any) -> Any:
        @functools.wraps(check)
        def checked(*arrays: Any, **options: Any) -> Any:
            if "force_all_finite" in options:
                options["ensure_all_finite"] = options.pop("force_all_finite")
            return check(*arrays, **options)

        return checked

    util.check_array, util.check_X_y = renamed(util.check_array), renamed(util.check_X_y)
    return module
