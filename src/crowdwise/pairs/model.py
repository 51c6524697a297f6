"""What a model of pairs is: answers, workers with two chances each, a fit with or without features, and new items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..answers import Pairs
from ..engine import Model, Run, Trace, best_of
from ..engine.run import Arrays, packed, rng_state, set_rng_state, unpacked
from ..errors import EmptyDataError, FeatureError
from ..kernels.layout import Bools, Floats, Ints
from ..kernels.special import digamma, dirichlet_kl
from ..result import Clusters, PairsResult
from ..result.pairs import chances_of, picture, ranked

MAX_FEATURE = 1e100  # beyond, and below its inverse, squares leave the range of float64


class PairAnswers(NamedTuple):
    """Answers about pairs of items, as arrays."""

    left: Ints  # (A,)
    right: Ints
    worker: Ints
    same: Bools
    weight: Floats  # how much each counts
    n_items: int
    n_workers: int

    @classmethod
    def of(cls, pairs: Pairs) -> PairAnswers:
        """The arrays of some pairs."""
        parts = (pairs.left, pairs.right, pairs.worker, pairs.same, pairs.weight)
        return cls(*parts, pairs.n_items, pairs.n_workers)


class Found(NamedTuple):
    """What a fit with features comes to."""

    posterior: Floats  # (N, K) probabilities of the components or clusters of each item
    alpha: Floats  # (W, 2)
    beta: Floats
    trace: Trace  # objective and clusters after every iteration
    space: dict[str, Any]
    converged: bool
    view: Floats = np.empty((0, 0))  # (N, d) what the picture is made of
    shares: Floats = np.empty((0, 0))
    epochs: Ints = np.empty(0, np.int64)

    def pack(self) -> Arrays:
        """Everything as arrays, for a checkpoint."""
        return packed(self._asdict() | {"trace": self.trace.array()})

    @classmethod
    def unpack(cls, arrays: Arrays) -> Found:
        """What `pack` made arrays of."""
        fields: dict[str, Any] = {name: array for name, array in arrays.items() if name in cls._fields}
        space = {name: np.asarray(value) for name, value in unpacked(arrays, "space.").items()}
        trace = new_trace(arrays["trace"])
        return cls(**fields | {"space": space, "trace": trace, "converged": bool(arrays["converged"])})


def best_found(restarts: int, fit: Callable[[int], Found], run: Run, rng: np.random.Generator | None = None) -> Found:
    """The best of some starts by the last objective; `rng` is what they share."""
    return best_of(
        restarts, fit, lambda found: found.trace.objectives[-1], run, pack=Found.pack, unpack=Found.unpack,
        before=lambda: {} if rng is None else {"rng": rng_state(rng)},
        rewind=lambda state: None if rng is None else set_rng_state(rng, state["rng"]),
    )  # fmt: skip


def new_trace(rows: Any = ()) -> Trace:
    """The objective and the number of clusters after every iteration."""
    trace = Trace(clusters=int)
    trace.set(rows)
    return trace


class Items(NamedTuple):
    """Features of items, checked."""

    ids: pl.Series
    X: Floats  # (N, D)
    shape: tuple[int, ...]  # of one item


@dataclass(frozen=True, kw_only=True)
class PairsModel(Model[Pairs, PairsResult]):
    """Finds clusters of items in same/different answers, in features, or in both."""

    kind = "pairs"
    answers_type = Pairs
    result_type = PairsResult
    params_type = Clusters
    features: ClassVar[Literal["none", "optional", "required"]] = "required"
    without_features = "Give features=(ids, X), or use pair-mixture"
    with_features = "Omit features=, or use pair-mixture"
    criterion: ClassVar[str] = "evidence lower bound"

    def _fit(self, answers: Pairs, features: Any, run: Run) -> PairsResult:
        space: dict[str, Any] = {}
        if features is None:
            if not answers.n_answers:
                raise EmptyDataError(f"{self.name}: there are no answers, and no features. Give some of either")
            params, trace, converged = self._fit_answers(answers, run)
        else:
            items = items_of(features)
            answers = answers.on(items.ids)
            found = self._fit_features(items.X, PairAnswers.of(answers), run)
            params, space = self._summarised(found, answers, items, run)
            trace, converged = found.trace, found.converged
        return self.make_result(answers, run, trace, self.criterion, params=params, space=space, converged=converged)

    def _summarised(self, found: Found, pairs: Pairs, items: Items, run: Run) -> tuple[Clusters, dict[str, Any]]:
        """What the result keeps of a fit, and where new items go."""
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
        """Learn from answers alone: parameters, trace, and whether the fit has converged."""
        raise NotImplementedError

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> Found:
        """Learn from features (N, D) and answers."""
        raise NotImplementedError

    def place(self, space: dict[str, Any], X: Floats) -> Floats:
        """(n, C) probabilities of the clusters of new items."""
        return np.asarray(self.components(space, X)[:, space["used"]])

    def placed(self, space: dict[str, Any], X: Any, ids: Any = None) -> tuple[pl.Series, Floats]:
        """New items, by number where no ids are given, and (n, C) the probabilities of their clusters."""
        count = len(X) if hasattr(X, "__len__") else 0
        new, width = items_of((np.arange(count) if ids is None else ids, X)), int(space["width"])
        if new.X.shape[1] != width:
            raise FeatureError(f"X has {new.X.shape[1]} features per item; the fit had {width}. Give the same ones")
        return new.ids, self.place(space, new.X.astype(np.float64)) if len(new.X) else np.empty((0, len(space["used"])))

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        """(n, K) probabilities of the columns of `Found.posterior`, of new items."""
        raise NotImplementedError

    def samples(self, space: dict[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint8]:
        """(C, n, *shape) simulated images of each cluster as bytes; none for models that simulate none."""
        return np.empty(0, np.uint8)


def items_of(features: Any) -> Items:
    """Ids and rows of numbers, however they are given; what cannot be used is refused."""
    try:
        ids, X = features
    except (TypeError, ValueError):
        raise FeatureError(
            f"features are {type(features).__name__}; give a tuple of ids and rows, (ids, X), or what "
            "crowdwise.read_features reads"
        ) from None
    names = ids if isinstance(ids, pl.Series) else pl.Series("item", np.asarray(ids).tolist(), strict=False)
    try:
        rows = np.asarray(X)
    except ValueError as error:
        raise FeatureError(
            f"X is no table of numbers ({error}). Give one row per item, all of the same length"
        ) from None
    if rows.ndim < 2 or rows.dtype.kind not in "fiub":
        raise FeatureError(f"X is {rows.dtype} of shape {rows.shape}; wanted are numbers, one row per item")
    if len(rows) != len(names):
        raise FeatureError(f"X has {len(rows)} rows and there are {len(names)} ids; name the item of every row")
    shape = rows.shape[1:]
    flat = rows.reshape(len(rows), int(np.prod(shape)))
    if not flat.shape[1]:
        raise FeatureError("X has no columns")
    if flat.dtype.kind == "f":
        bad = ~np.isfinite(flat)
        if bad.any():
            row, column = (int(v) for v in np.argwhere(bad)[0])
            raise FeatureError(
                f"{int(bad.any(1).sum())} item(s) have features that are no finite numbers, the first {names[row]!r} "
                f"in column {column + 1}. Fill them, or omit these items"
            )
        most = float(np.abs(flat).max(initial=0.0))
        if most > MAX_FEATURE or 0 < most < 1 / MAX_FEATURE:
            raise FeatureError(f"features are as large as {most:g}: squaring them overflows float64. Scale them")
    flat = np.ascontiguousarray(flat, np.uint8 if flat.dtype == np.uint8 else np.float64)
    return Items(names.alias("item"), flat, shape)


class Coins(NamedTuple):
    """Beta posteriors of sensitivity and specificity."""

    alpha: Floats  # (W, 2) called the same, called different, of pairs that are the same
    beta: Floats  # (W, 2) called different, called the same, of pairs that are not
    prior: Floats  # (2,) Beta parameters before any answer

    @classmethod
    def seen(cls, answers: PairAnswers, same: Floats, prior: Floats) -> Coins:
        """What answers say of workers where each pair is the same with a chance `same` (A,)."""
        W, w = answers.n_workers, answers.weight
        yes, no = np.where(answers.same, w, 0.0), np.where(answers.same, 0.0, w)

        def by_worker(a: Floats, b: Floats) -> Floats:
            counts = [np.bincount(answers.worker, each, minlength=W) for each in (a, b)]
            return np.asarray(np.column_stack(counts) + prior)

        return cls(by_worker(yes * same, no * same), by_worker(no * (1 - same), yes * (1 - same)), prior)

    def logs(self, answers: PairAnswers) -> tuple[Floats, Floats]:
        """(A,) weighted expected log-chances of each answer if the pair is the same, and if it is not."""
        a, b = (digamma(each) - digamma(each.sum(1))[:, None] for each in (self.alpha, self.beta))
        w, s = answers.worker, answers.same
        return (
            answers.weight * np.where(s, a[w, 0], a[w, 1]),
            answers.weight * np.where(s, b[w, 1], b[w, 0]),
        )

    def divergence(self) -> float:
        """How far the posteriors are from the prior: what they cost in the bound."""
        return dirichlet_kl(self.alpha - self.prior, self.prior) + dirichlet_kl(self.beta - self.prior, self.prior)


def first_odds(answers: PairAnswers, right: float = 0.9) -> Floats:
    """(A,) log-odds of the same by each answer, of workers who are all as good."""
    return np.asarray(answers.weight * np.log(right / (1 - right)) * np.where(answers.same, 1.0, -1.0))
