"""What a model of pairs is: hyperparameters, a fit, and where new items go."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ..answers import Pairs
from ..engine import Run, Step
from ..engine.model import check
from ..errors import DataError, EmptyDataError, FeatureError, Interrupted
from ..kernels.layout import Bools, Floats, Ints
from ..result import Clusters, PairsResult
from ..result.pairs import chances_of, picture, ranked

HUGE = 1e100  # features beyond cannot be squared


class Answers(NamedTuple):
    """Answers about pairs of items, as arrays."""

    left: Ints  # (A,)
    right: Ints
    worker: Ints
    same: Bools
    weight: Floats  # how much each counts
    n_items: int
    n_workers: int

    @classmethod
    def of(cls, pairs: Pairs) -> Answers:
        """The arrays of some pairs."""
        parts = (pairs.left, pairs.right, pairs.worker, pairs.same, pairs.weight)
        return cls(*parts, pairs.n_items, pairs.n_workers)


class Found(NamedTuple):
    """What a climb comes to."""

    posterior: Floats  # (N, K) chances of the components or clusters of each item
    alpha: Floats  # (W, 2)
    beta: Floats
    bound: list[tuple[float, int]]  # objective and clusters after every sweep
    view: Floats  # (N, d) what the picture is made of
    space: dict[str, Any]
    converged: bool
    shares: Floats = np.empty((0, 0))
    epochs: Ints = np.empty(0, np.int64)


class Items(NamedTuple):
    """Features of items, checked."""

    ids: pl.Series
    X: Floats  # (N, D)
    shape: tuple[int, ...]  # of one item


@dataclass(frozen=True, kw_only=True)
class PairsModel(ABC):
    """Finds clusters of items in same/different answers, in features, or in both."""

    name: ClassVar[str]
    about: ClassVar[str]  # one line for `crowdwise models`
    needs_features: ClassVar[bool] = True
    criterion: ClassVar[str] = "evidence lower bound"

    def __post_init__(self) -> None:
        check({f.name: f.metadata["rule"] for f in fields(self) if "rule" in f.metadata}, self, f"{self.name}: ")

    def settings(self) -> dict[str, Any]:
        """The hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def fit(self, pairs: Pairs, features: Any = None, run: Run | None = None) -> PairsResult:
        """Learn from answers and features (a tuple of ids and rows); everything found is in the PairsResult."""
        run, begun = run or Run(), time.perf_counter()
        if not isinstance(pairs, Pairs):
            raise DataError(
                f"{self.name} finds clusters in same/different answers; got {type(pairs).__name__}. "
                "Give crowdwise.Pairs"
            )
        if features is None:
            if not pairs.n_answers and not self.needs_features:
                raise EmptyDataError(f"{self.name}: there are no answers, and no features. Give some of either")
            return self._alone(pairs, run, begun)
        items = items_of(features)
        return self._told(pairs.on(items.ids), items, run, begun)

    def _told(self, pairs: Pairs, items: Items, run: Run, begun: float) -> PairsResult:
        found = self.climb(items.X, Answers.of(pairs), run)
        choices, chances, used = ranked(found.posterior)
        left, right, _ = pairs.edges
        P = found.posterior
        space = found.space | {"used": used, "width": np.array(items.X.shape[1])} if found.space else {}
        samples = np.empty(0, np.uint8)
        if len(items.shape) == 2 and space:
            samples = self.drawn(space, items.shape, run.rng())
        params = Clusters(
            choices=choices,
            chances=chances,
            alpha=found.alpha,
            beta=found.beta,
            same=chances_of(left, right, lambda rows: P[rows]),
            view=picture(found.view),
            shares=found.shares,
            epochs=found.epochs,
            samples=samples,
        )
        return self.result(pairs, params, space, found, run, begun)

    def result(
        self, pairs: Pairs, params: Clusters, space: dict[str, Any], found: Found, run: Run, begun: float
    ) -> PairsResult:
        """The result of what was found."""
        return PairsResult(
            pairs=pairs,
            model=self,
            params=params,
            space=space,
            sweeps=np.array(found.bound, np.float64).reshape(-1, 2),
            criterion=self.criterion if found.bound else "",
            converged=found.converged,
            seed=int(run.seed),
            seconds=time.perf_counter() - begun,
        )

    def _alone(self, pairs: Pairs, run: Run, begun: float) -> PairsResult:
        """Learn from answers alone; models that cannot say so."""
        raise FeatureError(f"{self.name} needs features of the items. Give features=(ids, X), or take pair-mixture")

    @abstractmethod
    def climb(self, X: Floats, answers: Answers, run: Run) -> Found:
        """Learn from features (N, D) and answers."""

    def place(self, space: dict[str, Any], X: Floats) -> Floats:
        """(n, C) chances of the clusters of new items."""
        return np.asarray(self.components(space, X)[:, space["used"]])

    @abstractmethod
    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        """(n, K) chances of what `climb` calls a component, of new items."""

    def drawn(self, space: dict[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """(C, n, *shape) made-up images of each cluster as bytes; none for models that make none up."""
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
        raise FeatureError(f"X is no table of numbers ({error}). Give a row of as many numbers an item") from None
    if rows.ndim < 2 or rows.dtype.kind not in "fiub":
        raise FeatureError(f"X is {rows.dtype} of shape {rows.shape}; wanted are numbers, a row an item")
    if len(rows) != len(names):
        raise FeatureError(f"X has {len(rows)} rows and there are {len(names)} ids; name the item of every row")
    shape = rows.shape[1:]
    flat = rows.reshape(len(rows), -1)
    if not flat.shape[1]:
        raise FeatureError("X has no columns")
    if flat.dtype.kind == "f":
        bad = ~np.isfinite(flat)
        if bad.any():
            row, column = (int(v) for v in np.argwhere(bad)[0])
            raise FeatureError(
                f"{int(bad.any(1).sum())} item(s) have features that are no finite numbers, the first {names[row]!r} "
                f"in column {column + 1}. Fill them, or leave these items out"
            )
        most = float(np.abs(flat).max(initial=0.0))
        if most > HUGE or 0 < most < 1 / HUGE:
            raise FeatureError(f"features are as large as {most:g}: their squares are no numbers. Scale them")
    flat = np.ascontiguousarray(flat, np.uint8 if flat.dtype == np.uint8 else np.float64)
    return Items(names.alias("item"), flat, shape)


def tell(run: Run, sweep: int, most: int, objective: float, clusters: int) -> None:
    """Break off where that was asked for, and tell who watches."""
    if run.stop is not None and run.stop():
        raise Interrupted("stopped before the clusters were found; nothing was written")
    if run.watch is not None:
        run.watch(Step(sweep, most, objective, clusters, 0.0))
