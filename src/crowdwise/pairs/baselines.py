"""Baselines: votes on pairs with transitive closure, clusters of features alone, and metrics learnt from pairs.

k-means and the Gaussian mixture are scikit-learn's, ITML and MMC metric-learn's. None of them finds the number of
clusters; all but the vote need it as a setting.
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
from ..engine.resources import load, one_thread
from ..errors import DataError, FeatureError
from ..kernels.layout import Floats, Ints
from ..kernels.special import softmax
from ..result import Clusters
from ..result.pairs import by_size
from .gaussians import near
from .model import Coins, Found, PairAnswers, PairsModel, new_trace

FLAT = np.ones(2)  # Beta parameters of workers
METRIC_ITERATIONS = 100  # of metric learners


def _seen(answers: PairAnswers, label: Ints) -> Coins:
    """Workers, compared with clusters as if these were right."""
    return Coins.seen(answers, (label[answers.left] == label[answers.right]).astype(np.float64), FLAT)


def _found(posterior: Floats, answers: PairAnswers, view: Floats, space: dict[str, Any]) -> Found:
    """What was found without iterations of ours."""
    coins = _seen(answers, posterior.argmax(1))
    return Found(posterior, coins.alpha, coins.beta, new_trace(), space, True, view)


@register("pair-vote", "a majority of each pair's answers; items connected by pairs called the same form a cluster")
@dataclass(frozen=True, kw_only=True)
class PairVote(PairsModel):
    """A majority of each pair's answers, a tie counting as different; items that a chain of "the same" connects are a
    cluster."""

    features = "none"

    def _fit_answers(self, pairs: Pairs, run: Run) -> tuple[Clusters, Trace, bool]:
        left, right, edge = pairs.edges
        share = np.bincount(edge, pairs.same, minlength=len(left)) / np.bincount(edge, minlength=len(left))
        yes = share > 0.5
        label = by_size(components(left[yes], right[yes], pairs.n_items))
        coins = _seen(PairAnswers.of(pairs), label)
        sure = np.ones((len(label), 1))
        return Clusters.without_features(label[:, None], sure, coins.alpha, coins.beta, share), new_trace(), True


@dataclass(frozen=True, kw_only=True)
class _ByCentres(PairsModel):
    """Clusters of features by centres, their number given."""

    extras = ("learn",)

    clusters: int = setting(10, COUNT, "number of clusters")

    def turned(self, X: Floats, answers: PairAnswers, seed: int) -> Floats:
        """(D, d) what features are multiplied by before they are clustered."""
        return np.eye(X.shape[1])

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> Found:
        X, seed = np.asarray(X, np.float64), int(run.rng().integers(2**31))
        K = min(self.clusters, len(np.unique(X, axis=0)))
        with one_thread():
            turn = self.turned(X, answers, seed)
            cluster = load("sklearn.cluster", "learn", self.name).KMeans(K, n_init=5, random_state=seed).fit(X @ turn)
        return _found(np.eye(K)[cluster.labels_], answers, X, {"turn": turn, "centres": cluster.cluster_centers_})

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        which, _ = near(np.asarray(X @ space["turn"]), space["centres"])
        return np.asarray(np.eye(len(space["centres"]))[which])


@register("k-means-items", "k-means on features, the number of clusters given; no answers, no workers")
@dataclass(frozen=True, kw_only=True)
class KMeansItems(_ByCentres):
    """k-means on the features; the answers do not count."""


@register("gaussian-mixture", "a Gaussian mixture on features, the number of clusters given; no answers, no workers")
@dataclass(frozen=True, kw_only=True)
class GaussianItems(_ByCentres):
    """A Gaussian mixture on the features; the answers do not count."""

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> Found:
        X, seed = np.asarray(X, np.float64), int(run.rng().integers(2**31))
        K = min(self.clusters, len(np.unique(X, axis=0)))
        mixture = load("sklearn.mixture", "learn", self.name)
        with one_thread(), warnings.catch_warnings(), _refused(self.name):
            warnings.simplefilter("ignore")
            made = mixture.GaussianMixture(K, n_init=5, reg_covar=1e-4 * X.var() + 1e-9, random_state=seed).fit(X)
            P = made.predict_proba(X)
        space = {"weights": made.weights_, "means": made.means_, "half": made.precisions_cholesky_}
        return _found(P, answers, X, space)

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        parts = zip(space["weights"], space["means"], space["half"], strict=True)
        logs = np.column_stack(
            [np.log(w) + np.log(np.diag(half)).sum() - 0.5 * (((X - m) @ half) ** 2).sum(1) for w, m, half in parts]
        )
        return softmax(logs)


@dataclass(frozen=True, kw_only=True)
class _Metric(_ByCentres):
    """k-means after a metric was learnt from a majority of each pair's answers; workers do not count."""

    extras = ("metric-learn",)
    learner: ClassVar[str]

    def options(self) -> dict[str, int]:
        """More settings of metric-learn."""
        return {"max_iter": METRIC_ITERATIONS}

    def turned(self, X: Floats, answers: PairAnswers, seed: int) -> Floats:
        module = _metric_learn()
        left, right, y = _votes(answers)
        if len(np.unique(y)) < 2:
            raise DataError(f"{self.name} needs pairs that are the same and pairs that are not. Take pair-mixture")
        Z = (X - X.mean(0)) / max(float(X.std()), 1e-12)
        with warnings.catch_warnings(), _refused(self.name):
            warnings.simplefilter("ignore")
            model = getattr(module, self.learner)(preprocessor=Z, random_state=seed, **self.options())
            return np.asarray(model.fit(np.column_stack([left, right]), y).components_.T)


@register("itml", "metric-learn's ITML on voted pairs, then k-means, the number of clusters given")
@dataclass(frozen=True, kw_only=True)
class Itml(_Metric):
    """Information-theoretic metric learning (Davis et al. 2007), then k-means."""

    learner = "ITML"


@register("mmc", "metric-learn's MMC on voted pairs, then k-means, the number of clusters given")
@dataclass(frozen=True, kw_only=True)
class Mmc(_Metric):
    """Metric learning with side information (Xing et al. 2003), then k-means."""

    learner = "MMC"

    projections: int = setting(10_000, COUNT, "projections at most in an iteration of the metric learner")

    def options(self) -> dict[str, int]:
        return {"max_iter": METRIC_ITERATIONS, "max_proj": self.projections}


@contextlib.contextmanager
def _refused(name: str) -> Iterator[None]:
    """What a library cannot do with these features, as an error of ours."""
    try:
        yield
    except (ValueError, np.linalg.LinAlgError) as error:
        reason = str(error).rstrip(".")
        raise FeatureError(
            f"{name} cannot use these features, of which many may be equal ({reason}). Take pair-mixture"
        ) from error


def _votes(answers: PairAnswers) -> tuple[Ints, Ints, Ints]:
    """Pairs, each once, and 1 or -1 by a majority of answers; ties are left out."""
    key = answers.left.astype(np.int64) * answers.n_items + answers.right
    pairs, edge = np.unique(key, return_inverse=True)
    score = np.bincount(edge, np.where(answers.same, 1.0, -1.0))
    clear = score != 0
    return pairs[clear] // answers.n_items, pairs[clear] % answers.n_items, np.sign(score[clear]).astype(np.int64)


@functools.cache
def _metric_learn() -> Any:
    """metric-learn, whose last release calls a parameter of scikit-learn by the name it had before 1.6."""
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
