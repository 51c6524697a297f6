"""Any scikit-learn classifier as the truth side: it is fitted anew to the posterior in every iteration.

A flexible classifier would repeat on its own rows what it was taught, and the workers would then be judged by an echo.
So a row is predicted by a fit that has not seen it (`folds`). A fit that would lower the objective is not taken, and
ends the learning: the objective never decreases.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _num_samples, has_fit_parameter

from ..engine.model import Rule, check
from ..engine.run import Arrays, packed
from ..errors import ParameterError
from ..kernels import TINY
from ..kernels.layout import Floats, Ints
from .objective import SHARPENING, Objective, improve_workers, log_score, softmax

MIN_TAUGHT = 1e-3  # a class less probable than this is not taught


class Refit(BaseEstimator):  # type: ignore[misc]
    """`estimator` is a scikit-learn classifier that takes `sample_weight`, or a regressor of soft targets; `folds` says
    in how many parts rows are predicted by fits that have not seen them (0: by the fit itself)."""

    def __init__(self, estimator: Any = None, folds: int = 5) -> None:
        self.estimator = estimator
        self.folds = folds

    def learner(self, X: Any, n_classes: int, rng: np.random.Generator) -> RefitLearner:
        check({"folds": Rule(int, choices=(0, *range(2, 101)))}, self)
        if not hasattr(self.estimator, "fit"):
            raise ParameterError(f"estimator is {self.estimator!r}; give a scikit-learn classifier")
        return RefitLearner(X, n_classes, self.estimator, self.folds, int(rng.integers(2**31)))


class RefitLearner:
    """A classifier on some rows."""

    log_prior = 0.0  # whatever holds the classifier back is its own affair

    def __init__(self, X: Any, n_classes: int, estimator: Any, folds: int, seed: int) -> None:
        self.X, self.n_classes, self.settled = X, n_classes, n_classes < 2
        self.estimator, self.weight, self.seed = estimator, _weight_name(estimator), seed
        n = _num_samples(X)
        split = KFold(folds, shuffle=True, random_state=seed) if 2 <= folds <= n else None
        self.parts = [] if split is None else list(split.split(np.arange(n)))
        self.fitted: Any = None
        self.targets: Floats | None = None  # (T, K) that it was fitted to
        self.on_rows = np.zeros((n, n_classes))

    def logits(self, X: Any = None) -> Floats:
        return self.on_rows if X is None else self._logits(self.fitted, X)

    def imitate(self, Z: Floats) -> None:
        if self.n_classes < 2:
            return
        self.fitted, self.targets = self._fit(np.arange(len(Z)), Z), Z.copy()
        if not self.parts:
            self.on_rows = self._logits(self.fitted, self.X)
            return
        self.on_rows = np.empty_like(self.on_rows)
        for seen, unseen in self.parts:
            self.on_rows[unseen] = self._logits(self._fit(seen, Z), _safe_indexing(self.X, unseen))

    def begin(self, Z: Floats) -> None:
        self.imitate(Z)
        self.imitate(softmax(SHARPENING * self.on_rows))

    def warm(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        """A first iteration as if all tasks were alike: such a classifier gains nothing by it."""
        return theta

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        """A new fit, and workers to go with it, are taken unless they come out lower than where the iteration began."""
        if not self.settled:
            before, value = self._reached, objective(self.on_rows, theta).total
            self.imitate(Z)
            best = improve_workers(objective, self.on_rows, theta, Z)
            if objective(self.on_rows, best).total >= value:
                return best
            (self.fitted, self.targets, self.on_rows), self.settled = before, True
        return improve_workers(objective, self.on_rows, theta, Z)

    def follow(self, targets: Floats) -> None:
        """A new fit is taken unless it predicts the targets worse than the last; then it was the last."""
        if self.settled:
            return
        before, value = self._reached, log_score(targets, self.on_rows)
        self.imitate(targets / np.maximum(targets.sum(1, keepdims=True), TINY))
        if before[0] is not None and log_score(targets, self.on_rows) < value:
            (self.fitted, self.targets, self.on_rows), self.settled = before, True

    @property
    def _reached(self) -> tuple[Any, Floats | None, Floats]:
        return self.fitted, self.targets, self.on_rows

    def state(self) -> Arrays:
        """No estimator is kept: the same one comes from the same targets and seed."""
        kept = {"targets": self.targets, "on_rows": self.on_rows, "settled": self.settled, "seed": self.seed}
        return packed(kept)

    def restore(self, state: Arrays) -> None:
        self.on_rows, self.settled, self.seed = state["on_rows"], bool(state["settled"]), int(state["seed"])
        self.targets = state.get("targets")
        self.fitted = None if self.targets is None else self._fit(np.arange(len(self.targets)), self.targets)

    def _fit(self, rows: Ints, Z: Floats) -> Any:
        made, soft = _seeded(clone(self.estimator), self.seed), Z[rows].astype(np.float64)
        if is_regressor(made):
            made = made if get_tags(made).target_tags.multi_output else MultiOutputRegressor(made)
            return made.fit(_safe_indexing(self.X, rows), soft)
        soft = np.where(soft < MIN_TAUGHT, 0.0, soft)
        soft /= soft.sum(1, keepdims=True)
        at, label = np.nonzero(soft)
        if (label == label[0]).all():
            return DummyClassifier().fit(np.zeros((len(at), 1)), label)  # one class is left: nothing to distinguish
        return made.fit(_safe_indexing(self.X, rows[at]), label, **{self.weight: soft[at, label]})

    def _logits(self, fitted: Any, X: Any) -> Floats:
        if self.n_classes < 2:
            return np.zeros((_num_samples(X), self.n_classes))
        p = np.zeros((_num_samples(X), self.n_classes))
        if is_regressor(fitted):
            p += np.clip(fitted.predict(X), 0, 1)
        else:
            p[:, fitted.classes_] = fitted.predict_proba(X)
        p = np.maximum(p, MIN_TAUGHT / self.n_classes)  # no classifier is that sure
        return np.asarray(np.log(np.maximum(p / p.sum(1, keepdims=True), TINY)))


def _seeded(estimator: Any, seed: int) -> Any:
    """The same estimator; whatever in it is random and has no seed of its own gets this one."""
    open_ = {n: seed for n, v in estimator.get_params().items() if v is None and n.split("__")[-1] == "random_state"}
    return estimator.set_params(**open_)


def _weight_name(estimator: Any) -> str:
    """What `fit` calls the weights of rows."""
    last, name = estimator, "sample_weight"
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        name = f"{step}__{name}"
    kind = type(last).__name__
    if not is_regressor(last):
        if not has_fit_parameter(last, "sample_weight"):
            raise ParameterError(
                f"{kind} takes no sample_weight, so that it cannot learn from soft labels. Take a classifier that does "
                "(a tree, a forest, boosting, a linear model, an SVM), or a regressor of soft targets"
            )
        if not hasattr(last, "predict_proba"):
            raise ParameterError(
                f"{kind} gives no probabilities. Wrap it: sklearn.calibration.CalibratedClassifierCV({kind}())"
            )
    return name
