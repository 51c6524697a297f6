"""What others do: votes on pairs with transitive closure, clusters of features alone, and metrics learnt from pairs.

k-means and the Gaussian mixture are scikit-learn's, ITML and MMC metric-learn's. None of them finds the number of
clusters; all but the vote are told it.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..answers import Pairs
from ..answers.pairs import components
from ..engine import Run
from ..engine.model import COUNT, rules
from ..engine.threads import one_thread
from ..errors import DataError, FeatureError, MissingError
from ..kernels.layout import Floats, Ints
from ..result import Clusters, PairsResult
from ..result.pairs import by_size
from .gaussians import near
from .model import Answers, Found, PairsModel
from .workers import Coins

FLAT = np.ones(2)  # Beta parameters of workers
ROUNDS = 100  # of metric learners


def _seen(answers: Answers, label: Ints) -> Coins:
    """Workers, held against clusters as if these were right."""
    return Coins.seen(answers, (label[answers.left] == label[answers.right]).astype(np.float64), FLAT)


@dataclass(frozen=True, kw_only=True)
class PairVote(PairsModel):
    """A majority of each pair's answers, a tie being no; items that a chain of the same ties together are a cluster."""

    name: ClassVar[str] = "pair-vote"
    about: ClassVar[str] = "a majority of each pair's answers, and all that hangs together is a cluster"
    needs_features: ClassVar[bool] = False

    def climb(self, X: Floats, answers: Answers, run: Run) -> Found:
        raise DataError("pair-vote takes no features. Leave them away, or take pair-mixture")

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        raise DataError("pair-vote knows no features")

    def _alone(self, pairs: Pairs, run: Run, begun: float) -> PairsResult:
        left, right, edge = pairs.edges
        answers = Answers.of(pairs)
        share = np.bincount(edge, pairs.same, minlength=len(left)) / np.bincount(edge, minlength=len(left))
        yes = share > 0.5
        label = by_size(components(left[yes], right[yes], pairs.n_items))
        coins = _seen(answers, label)
        sure = np.ones((len(label), 1))
        params = Clusters.without_features(label[:, None], sure, coins.alpha, coins.beta, share)
        found = Found(np.empty((0, 0)), coins.alpha, coins.beta, [], params.view, {}, True)
        return self.result(pairs, params, {}, found, run, begun)


@dataclass(frozen=True, kw_only=True)
class _ToldHowMany(PairsModel):
    """Clusters of features by centres, their number given."""

    clusters: int = field(default=10, metadata=rules(COUNT))

    def turned(self, X: Floats, answers: Answers, seed: int) -> Floats:
        """(D, d) what features are turned by before they are clustered."""
        return np.eye(X.shape[1])

    def climb(self, X: Floats, answers: Answers, run: Run) -> Found:
        X, seed = np.asarray(X, np.float64), int(run.rng().integers(2**31))
        K = min(self.clusters, len(np.unique(X, axis=0)))
        with one_thread():
            turn = self.turned(X, answers, seed)
            cluster = _sklearn("cluster").KMeans(K, n_init=5, random_state=seed).fit(X @ turn)
        P = np.eye(K)[cluster.labels_]
        coins = _seen(answers, cluster.labels_)
        space = {"turn": turn, "centres": cluster.cluster_centers_}
        return Found(P, coins.alpha, coins.beta, [], X, space, True)

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        which, _ = near(np.asarray(X @ space["turn"]), space["centres"])
        return np.asarray(np.eye(len(space["centres"]))[which])


@dataclass(frozen=True, kw_only=True)
class KMeansItems(_ToldHowMany):
    """k-means on the features; the answers do not count."""

    name: ClassVar[str] = "k-means-items"
    about: ClassVar[str] = "k-means on features, the number of clusters given; no answers, no workers"


@dataclass(frozen=True, kw_only=True)
class GaussianItems(_ToldHowMany):
    """A Gaussian mixture on the features; the answers do not count."""

    name: ClassVar[str] = "gaussian-mixture"
    about: ClassVar[str] = "a Gaussian mixture on features, the number of clusters given; no answers, no workers"

    def climb(self, X: Floats, answers: Answers, run: Run) -> Found:
        X, seed = np.asarray(X, np.float64), int(run.rng().integers(2**31))
        K = min(self.clusters, len(np.unique(X, axis=0)))
        with one_thread(), warnings.catch_warnings(), _refused(self.name):
            warnings.simplefilter("ignore")
            made = (
                _sklearn("mixture")
                .GaussianMixture(K, n_init=5, reg_covar=1e-4 * X.var() + 1e-9, random_state=seed)
                .fit(X)
            )
            P = made.predict_proba(X)
        coins = _seen(answers, P.argmax(1))
        space = {"weights": made.weights_, "means": made.means_, "half": made.precisions_cholesky_}
        return Found(P, coins.alpha, coins.beta, [], X, space, True)

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        logs = np.stack(
            [
                np.log(w) + np.log(np.diag(half)).sum() - 0.5 * (((X - m) @ half) ** 2).sum(1)
                for w, m, half in zip(space["weights"], space["means"], space["half"], strict=True)
            ],
            axis=1,
        )
        P = np.exp(logs - logs.max(1, keepdims=True))
        return np.asarray(P / P.sum(1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class _Metric(_ToldHowMany):
    """k-means after a metric was learnt from a majority of each pair's answers; workers do not count."""

    learner: ClassVar[str]

    def options(self) -> dict[str, int]:
        """What metric-learn is told besides."""
        return {"max_iter": ROUNDS}

    def turned(self, X: Floats, answers: Answers, seed: int) -> Floats:
        module = _metric_learn()
        left, right, y = _votes(answers)
        if len(np.unique(y)) < 2:
            raise DataError(f"{self.name} needs pairs that are the same and pairs that are not. Take pair-mixture")
        Z = (X - X.mean(0)) / max(float(X.std()), 1e-12)
        with warnings.catch_warnings(), _refused(self.name):
            warnings.simplefilter("ignore")
            model = getattr(module, self.learner)(preprocessor=Z, random_state=seed, **self.options())
            return np.asarray(model.fit(np.column_stack([left, right]), y).components_.T)


@dataclass(frozen=True, kw_only=True)
class Itml(_Metric):
    """Information-theoretic metric learning (Davis et al. 2007), then k-means."""

    name: ClassVar[str] = "itml"
    about: ClassVar[str] = "metric-learn's ITML on voted pairs, then k-means, the number of clusters given"
    learner: ClassVar[str] = "ITML"


@dataclass(frozen=True, kw_only=True)
class Mmc(_Metric):
    """Metric learning with side information (Xing et al. 2003), then k-means; `projections` bounds its patience."""

    name: ClassVar[str] = "mmc"
    about: ClassVar[str] = "metric-learn's MMC on voted pairs, then k-means, the number of clusters given"
    learner: ClassVar[str] = "MMC"

    projections: int = field(default=10_000, metadata=rules(COUNT))

    def options(self) -> dict[str, int]:
        return {"max_iter": ROUNDS, "max_proj": self.projections}


@contextlib.contextmanager
def _refused(name: str) -> Iterator[None]:
    """What a library cannot do with these features, as an error of ours."""
    try:
        yield
    except (ValueError, np.linalg.LinAlgError) as error:
        told = str(error).rstrip(".")
        raise FeatureError(
            f"{name} cannot use these features, of which many may be equal ({told}). Take pair-mixture"
        ) from error


def _votes(answers: Answers) -> tuple[Ints, Ints, Ints]:
    """Pairs, each once, and 1 or -1 by a majority of answers; ties are left out."""
    key = answers.left.astype(np.int64) * answers.n_items + answers.right
    pairs, edge = np.unique(key, return_inverse=True)
    score = np.bincount(edge, np.where(answers.same, 1.0, -1.0))
    clear = score != 0
    return pairs[clear] // answers.n_items, pairs[clear] % answers.n_items, np.sign(score[clear]).astype(np.int64)


def _sklearn(part: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"sklearn.{part}")
    except ImportError:
        raise MissingError(
            "this model is scikit-learn's, which is not installed. pip install 'crowdwise[learn]'"
        ) from None


@functools.cache
def _metric_learn() -> Any:
    """metric-learn, whose last release calls a parameter of scikit-learn by the name it had before 1.6."""
    try:
        import metric_learn
        from metric_learn import _util
    except ImportError:
        raise MissingError("this model is metric-learn's, which is not installed. pip install metric-learn") from None

    def renamed(check: Any) -> Any:
        @functools.wraps(check)
        def checked(*arrays: Any, **options: Any) -> Any:
            if "force_all_finite" in options:
                options["ensure_all_finite"] = options.pop("force_all_finite")
            return check(*arrays, **options)

        return checked

    _util.check_array, _util.check_X_y = renamed(_util.check_array), renamed(_util.check_X_y)
    return metric_learn
