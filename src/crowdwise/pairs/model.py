"""Base class of the models of pairs, their answers as arrays, and Beta posteriors of the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..answers import Pairs
from ..answers.coding import normalise_ids
from ..answers.frames import FOREIGN, to_series
from ..engine import Model, Run, Trace, best_of
from ..engine.resources import refuse_if_too_large
from ..engine.run import Arrays, packed, rng_state, set_rng_state, unpacked
from ..errors import EmptyDataError, FeatureError, flags, option, phrase
from ..kernels.layout import Bools, Floats, Ints
from ..kernels.rules import Real, Sizes, Whole
from ..kernels.special import digamma, dirichlet_kl
from ..result import Clusters, PairsResult
from ..result.pairs import chances_of, picture, ranked
from ..result.stored import flaw_by

FEATURE_COPIES, BYTES_PER_ANSWER = 4, 270  # memory of a fit
MAX_FEATURE_FLOAT64 = 1e100  # squares of features above this, or all below its inverse, leave the range of float64


class PairAnswers(NamedTuple):
    """Answers about pairs of items, as arrays of length A."""

    left: Ints  # (A,) item
    right: Ints
    worker: Ints
    same: Bools
    weight: Floats
    n_items: int
    n_workers: int

    @classmethod
    def of(cls, pairs: Pairs) -> PairAnswers:
        """Arrays of the answers in `pairs`."""
        parts = (pairs.left, pairs.right, pairs.worker, pairs.same, pairs.weight)
        return cls(*parts, pairs.n_items, pairs.n_workers)


class FeatureFit(NamedTuple):
    """Outcome of a fit with features."""

    posterior: Floats  # (N, K) probability of each component or cluster, for each item
    alpha: Floats  # (W, 2) see Coins
    beta: Floats  # (W, 2)
    trace: Trace  # objective and number of clusters after each iteration
    space: dict[str, Any]  # what `components` needs to place new items
    converged: bool
    view: Floats = np.empty((0, 0))  # (N, d) coordinates that the map of items is made from
    shares: Floats = np.empty((0, 0))  # (epochs kept, K) mixing proportions of deep models
    epochs: Ints = np.empty(0, np.int64)  # (epochs kept,)

    def pack(self) -> Arrays:
        """Return all fields as arrays, for a checkpoint."""
        return packed(self._asdict() | {"trace": self.trace.array()})

    @classmethod
    def unpack(cls, arrays: Arrays) -> FeatureFit:
        """Rebuild a fit from the arrays of `pack`."""
        fields: dict[str, Any] = {name: array for name, array in arrays.items() if name in cls._fields}
        space = {name: np.asarray(value) for name, value in unpacked(arrays, "space.").items()}
        trace = new_trace(arrays["trace"])
        return cls(**fields | {"space": space, "trace": trace, "converged": bool(arrays["converged"])})


def best_fit(
    restarts: int, fit: Callable[[int], FeatureFit], run: Run, rng: np.random.Generator | None = None,
    min_gain: float = 0.0,
) -> FeatureFit:  # fmt: skip
    """Return the restart with the highest final objective; `rng` is the generator shared by the restarts.

    With `min_gain`, a restart with more clusters must have an objective that is higher by this for each of them.
    """

    def score(found: FeatureFit) -> float:
        return found.trace.objectives[-1] - min_gain * len(np.unique(found.posterior.argmax(1)))

    return best_of(
        restarts, fit, score, run, pack=FeatureFit.pack, unpack=FeatureFit.unpack,
        before=lambda: {} if rng is None else {"rng": rng_state(rng)},
        rewind=lambda state: None if rng is None else set_rng_state(rng, state["rng"]),
    )  # fmt: skip


def new_trace(rows: Any = ()) -> Trace:
    """Trace of the objective and the number of clusters after each iteration."""
    trace = Trace(clusters=int)
    trace.set(rows)
    return trace


class Items(NamedTuple):
    """Checked features of items."""

    ids: pl.Series
    X: Floats  # (N, D)
    shape: tuple[int, ...]  # shape of one item's features before they were flattened


def finite(axes: str) -> Real:
    """Return the rule of finite numbers of any size, in units of the features."""
    most = float(np.finfo(np.float64).max)
    return Real(axes, -most, most)


@dataclass(frozen=True, kw_only=True)
class PairsModel(Model[Pairs, PairsResult]):
    """Base class of models that cluster items by same/different answers, by features, or by both."""

    kind = "pairs"
    answers_type = Pairs
    result_type = PairsResult
    params_type = Clusters
    features: ClassVar[Literal["none", "optional", "required"]] = "required"
    without_features = f"Give {phrase('features=(ids, X)', flags(features='FILE'))}, or use pair-mixture"
    with_features = f"Omit {option('features')}, or use pair-mixture"
    criterion: ClassVar[str] = "evidence lower bound"
    bytes_per_item: ClassVar[int] = 500  # memory of a fit, besides the features

    def _fit(self, answers: Pairs, features: Any, run: Run) -> PairsResult:
        space: dict[str, Any] = {}
        if features is None:
            if not answers.n_answers:
                raise EmptyDataError(
                    f"{self.name}: there are no answers and no features. Give answers, or {option('features')}"
                )
            params, trace, converged = self._fit_answers(answers, run)
        else:
            items = items_of(features)
            size = f" and {items.X.shape[1]} features of {len(items.X)} items"
            self._refuse(answers, self.need(answers, items), size)
            answers = answers.on(items.ids)
            found = self._fit_features(items.X, PairAnswers.of(answers), run)
            params, space = self._summarised(found, answers, items, run)
            trace, converged = found.trace, found.converged
        return self.make_result(answers, run, trace, self.criterion, params=params, space=space, converged=converged)

    def need(self, pairs: Pairs, items: Items | None = None) -> int:
        """Return the memory of a fit in bytes, without the answers and the features."""
        own = 0 if items is None else FEATURE_COPIES * 8 * items.X.size + self.bytes_per_item * len(items.X)
        return BYTES_PER_ANSWER * pairs.n_answers + own

    def check_memory(self, answers: Pairs) -> None:
        self._refuse(answers, self.need(answers))

    def _refuse(self, pairs: Pairs, need: int, more: str = "") -> None:
        refuse_if_too_large(
            need, self.name, f"{pairs.n_answers} answers about {pairs.n_items} items{more}",
            "Allow it more, or fit a sample of the items",
        )  # fmt: skip

    def _summarised(self, found: FeatureFit, pairs: Pairs, items: Items, run: Run) -> tuple[Clusters, dict[str, Any]]:
        """Return the parameters of the result, and the arrays that place new items."""
        choices, chances, used = ranked(found.posterior)
        left, right, _ = pairs.edges
        space = found.space | {"used": used, "width": np.array(items.X.shape[1])} if found.space else {}
        images = len(items.shape) == 2 and space
        params = Clusters(
            choices=choices, chances=chances, alpha=found.alpha, beta=found.beta,
            same=chances_of(left, right, lambda rows: found.posterior[rows]),
            view=picture(found.view), shares=found.shares, epochs=found.epochs,
            samples=self.samples(space, items.shape, run.rng()) if images else np.empty(0, np.uint8),
        )  # fmt: skip
        return params, space

    def _fit_answers(self, pairs: Pairs, run: Run) -> tuple[Clusters, Trace, bool]:
        """Fit answers without features; return parameters, trace, and whether the fit has converged."""
        raise NotImplementedError

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        """Fit features (N, D) and answers."""
        raise NotImplementedError

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        """Rules of the arrays of `FeatureFit.space`, for K components of D features."""
        raise NotImplementedError

    def space_flaw(self, space: dict[str, Any], n_clusters: int) -> str:
        """Return what is wrong with the arrays that place new items, or ""; they may come from a file."""
        sizes = Sizes(C=n_clusters)
        own = {"used": Whole("C", below="K", dtype="int64"), "width": Whole("", 1, dtype="int64")}
        flaw = flaw_by(own | self.space_rules(space), {name: np.asarray(each) for name, each in space.items()}, sizes)
        return flaw or (
            "" if int(space["width"]) == sizes["D"] else f"width is {space['width']}; it must be {sizes['D']}"
        )

    def place(self, space: dict[str, Any], X: Floats) -> Floats:
        """(n, C) cluster probabilities of new items."""
        return np.asarray(self.components(space, X)[:, space["used"]])

    def place_items(self, space: dict[str, Any], X: Any, ids: Any = None) -> tuple[pl.Series, Floats]:
        """Return the ids of new items (row numbers if `ids` is None) and their cluster probabilities (n, C)."""
        new, width = items_of((ids, X)), int(space["width"])
        if new.X.shape[1] != width:
            raise FeatureError(
                f"X has {new.X.shape[1]} features per item, but the model was fitted on {width}. Give the same features"
            )
        return new.ids, self.place(space, new.X.astype(np.float64)) if len(new.X) else np.empty((0, len(space["used"])))

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        """(n, K) probabilities of new items, in the columns of `FeatureFit.posterior`."""
        raise NotImplementedError

    def samples(self, space: dict[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint8]:
        """(C, n, *shape) simulated images of each cluster, as bytes; empty for models that cannot simulate."""
        return np.empty(0, np.uint8)


def items_of(features: Any) -> Items:
    """Check features given as a tuple (ids, X) and return them as arrays."""
    try:
        ids, X = features
    except FOREIGN:
        raise FeatureError(
            f"features are of type {type(features).__name__}; give a tuple (ids, X), or the result of "
            "crowdwise.read_features"
        ) from None
    try:
        rows = np.asarray(X)
    except FOREIGN as error:
        raise FeatureError(
            f"X is not a table of numbers ({error}). Give one row per item, all of the same length"
        ) from None
    if rows.ndim < 2 or rows.dtype.kind not in "fiub":
        raise FeatureError(f"X is {rows.dtype} of shape {rows.shape}; it must hold numbers, one row per item")
    names, _ = normalise_ids(to_series("item", np.arange(len(rows)) if ids is None else ids), "item", "the features")
    if len(rows) != len(names):
        raise FeatureError(f"X has {len(rows)} rows, but there are {len(names)} ids. Give one id per row")
    shape = rows.shape[1:]
    flat = rows.reshape(len(rows), int(np.prod(shape)))
    if not flat.shape[1]:
        raise FeatureError("X has no columns")
    if flat.dtype.kind == "f":
        bad = ~np.isfinite(flat)
        if bad.any():
            row, column = (int(v) for v in np.argwhere(bad)[0])
            raise FeatureError(
                f"{int(bad.any(1).sum())} item(s) have features that are not finite, the first {names[row]!r} in "
                f"column {column + 1}. Fill these values, or omit these items"
            )
        largest = float(np.abs(flat).max(initial=0.0))
        if largest > MAX_FEATURE_FLOAT64 or 0 < largest < 1 / MAX_FEATURE_FLOAT64:
            raise FeatureError(
                f"the largest feature is {largest:g}: its square is outside the range of float64. Scale the features"
            )
    flat = np.ascontiguousarray(flat, np.uint8 if flat.dtype == np.uint8 else np.float64)
    return Items(names.alias("item"), flat, shape)


class Coins(NamedTuple):
    """Beta posteriors of each worker's sensitivity (on pairs that are the same) and specificity (on other pairs)."""

    alpha: Floats  # (W, 2) pseudo-counts of "same" and "different" on pairs that are the same
    beta: Floats  # (W, 2) pseudo-counts of "different" and "same" on pairs that are different
    prior: Floats  # (2,) Beta parameters of the prior: right, wrong

    @classmethod
    def from_answers(cls, answers: PairAnswers, same: Floats, prior: Floats) -> Coins:
        """Posterior given the answers; `same` (A,) is the probability that the pair of each answer is the same."""
        W, w = answers.n_workers, answers.weight
        yes, no = np.where(answers.same, w, 0.0), np.where(answers.same, 0.0, w)

        def by_worker(a: Floats, b: Floats) -> Floats:
            counts = [np.bincount(answers.worker, each, minlength=W) for each in (a, b)]
            return np.asarray(np.column_stack(counts) + prior)

        return cls(by_worker(yes * same, no * same), by_worker(no * (1 - same), yes * (1 - same)), prior)

    def logs(self, answers: PairAnswers) -> tuple[Floats, Floats]:
        """(A,) weighted expected log-probability of each answer if the pair is the same, and if it is different."""
        a, b = (digamma(each) - digamma(each.sum(1))[:, None] for each in (self.alpha, self.beta))
        w, s = answers.worker, answers.same
        return (
            answers.weight * np.where(s, a[w, 0], a[w, 1]),
            answers.weight * np.where(s, b[w, 1], b[w, 0]),
        )

    def divergence(self) -> float:
        """Kullback-Leibler divergence from the prior, summed over workers."""
        return dirichlet_kl(self.alpha - self.prior, self.prior) + dirichlet_kl(self.beta - self.prior, self.prior)


def first_odds(answers: PairAnswers, right: float = 0.9) -> Floats:
    """(A,) log-odds of "same" from each answer, if every worker answers correctly with probability `right`."""
    return np.asarray(answers.weight * np.log(right / (1 - right)) * np.where(answers.same, 1.0, -1.0))
