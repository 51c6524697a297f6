"""Any scikit-learn classifier as the truth side: it is fitted to the posterior again in every iteration.

A flexible classifier reproduces its training targets, so its in-sample predictions would only repeat the labels that
they should check. Therefore each row is predicted out of fold (`folds`). A fit that would decrease the objective is
rejected and ends the training, so the objective never decreases.
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
from ..errors import FeatureError, ParameterError
from ..kernels import TINY
from ..kernels.layout import Floats, Ints
from .objective import SHARPENING, Evidence, Objective, improve_workers, log_score, softmax

MIN_TARGET = 1e-3  # smaller target probabilities are set to 0


class Refit(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator as classifier.

    `estimator` is a classifier that accepts `sample_weight`, or a regressor that is trained on soft targets. `folds` is
    the number of folds of the out-of-fold predictions (0: in-sample predictions).
    """

    def __init__(self, estimator: Any = None, folds: int = 5) -> None:
        self.estimator = estimator
        self.folds = folds

    def learner(self, X: Any, n_classes: int, rng: np.random.Generator) -> RefitLearner:
        check({"folds": Rule(int, choices=(0, *range(2, 101)))}, self)
        if not hasattr(self.estimator, "fit"):
            raise ParameterError(f"estimator is {self.estimator!r}; give a scikit-learn classifier")
        return RefitLearner(X, n_classes, self.estimator, self.folds, int(rng.integers(2**31)))


class RefitLearner:
    """A scikit-learn estimator being trained on given rows."""

    log_prior = 0.0  # regularisation of the estimator is not part of the objective

    def __init__(self, X: Any, n_classes: int, estimator: Any, folds: int, seed: int) -> None:
        self.X, self.n_classes, self.converged = X, n_classes, n_classes < 2
        self.estimator, self.weight, self.seed = estimator, _weight_name(estimator), seed
        n = _num_samples(X)
        split = KFold(folds, shuffle=True, random_state=seed) if 2 <= folds <= n else None
        self.parts = [] if split is None else list(split.split(np.arange(n)))
        self.fitted: Any = None
        self.targets: Floats | None = None  # (T, K) targets of `fitted`
        self.on_rows = np.zeros((n, n_classes))
        self.accepted = 0  # refits that did not decrease the objective

    @property
    def warning(self) -> str | None:
        """What a user should know about the training, if anything."""
        if not self.converged or self.accepted or self.n_classes < 2:
            return None
        return (
            f"{type(self.estimator).__name__} was not refitted: a fit to the estimated labels predicts rows that it "
            "has not seen worse than the fit to the votes, which is kept. A more regularised classifier may learn more"
        )

    def logits(self, X: Any = None) -> Floats:
        return self.on_rows if X is None else self._logits(self.fitted, X)

    def inputs(self) -> Floats:
        try:
            rows = np.asarray(self.X, np.float64).reshape(_num_samples(self.X), -1)
        except (TypeError, ValueError) as error:
            raise FeatureError(f"gating needs features that are numbers: {error}. Give gating=False") from error
        if not np.isfinite(rows).all():
            raise FeatureError("gating needs features without missing values. Fill them, or give gating=False")
        return rows

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

    def begin(self, Z: Floats, objective: Objective, theta: Floats) -> None:
        self.imitate(Z)
        self.imitate(softmax(SHARPENING * self.on_rows))

    def warm(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        """Return theta unchanged: this classifier does not gain from a first iteration with equally easy tasks."""
        return theta

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        """Fit again and update the workers; reject both if the objective would decrease."""
        if not self.converged:
            before, value = self._present_fit, objective(self.on_rows, theta).total
            self.imitate(Z)
            best = improve_workers(objective, self.on_rows, theta, Z)
            if objective(self.on_rows, best).total >= value:
                self.accepted += 1
                return best
            (self.fitted, self.targets, self.on_rows), self.converged = before, True
        return improve_workers(objective, self.on_rows, theta, Z)

    def evidence(self, objective: Objective, theta: Floats) -> Evidence:
        """Return the objective, which is computed from out-of-fold predictions."""
        return Evidence(objective(self.on_rows, theta).total)

    def follow(self, targets: Floats) -> None:
        """Fit again; if the new fit predicts the targets worse, keep the previous one and stop training."""
        if self.converged:
            return
        before, value = self._present_fit, log_score(targets, self.on_rows)
        self.imitate(targets / np.maximum(targets.sum(1, keepdims=True), TINY))
        if before[0] is not None and log_score(targets, self.on_rows) < value:
            (self.fitted, self.targets, self.on_rows), self.converged = before, True
        elif before[0] is not None:
            self.accepted += 1

    @property
    def _present_fit(self) -> tuple[Any, Floats | None, Floats]:
        return self.fitted, self.targets, self.on_rows

    def state(self) -> Arrays:
        """State without the estimator, which is fitted again from the same targets and seed."""
        kept = {"targets": self.targets, "on_rows": self.on_rows, "settled": self.converged, "seed": self.seed}
        return packed(kept | {"accepted": self.accepted})

    def restore(self, state: Arrays) -> None:
        self.on_rows, self.converged, self.seed = state["on_rows"], bool(state["settled"]), int(state["seed"])
        self.targets, self.accepted = state.get("targets"), int(state["accepted"])
        self.fitted = None if self.targets is None else self._fit(np.arange(len(self.targets)), self.targets)

    def _fit(self, rows: Ints, Z: Floats) -> Any:
        made, soft = _seeded(clone(self.estimator), self.seed), Z[rows].astype(np.float64)
        if is_regressor(made):
            made = made if get_tags(made).target_tags.multi_output else MultiOutputRegressor(made)
            return made.fit(_safe_indexing(self.X, rows), soft)
        soft = np.where(soft < MIN_TARGET, 0.0, soft)
        soft /= soft.sum(1, keepdims=True)
        at, label = np.nonzero(soft)
        if (label == label[0]).all():
            return DummyClassifier().fit(np.zeros((len(at), 1)), label)  # only one class is left
        return made.fit(_safe_indexing(self.X, rows[at]), label, **{self.weight: soft[at, label]})

    def _logits(self, fitted: Any, X: Any) -> Floats:
        if self.n_classes < 2:
            return np.zeros((_num_samples(X), self.n_classes))
        p = np.zeros((_num_samples(X), self.n_classes))
        if is_regressor(fitted):
            p += np.clip(fitted.predict(X), 0, 1)
        else:
            p[:, fitted.classes_] = fitted.predict_proba(X)
        p = np.maximum(p, MIN_TARGET / self.n_classes)  # limits overconfident predictions
        return np.asarray(np.log(np.maximum(p / p.sum(1, keepdims=True), TINY)))


def _seeded(estimator: Any, seed: int) -> Any:
    """Set `random_state` to `seed` wherever it is None in the estimator."""
    unseeded = {n: seed for n, v in estimator.get_params().items() if v is None and n.split("__")[-1] == "random_state"}
    return estimator.set_params(**unseeded)


def _weight_name(estimator: Any) -> str:
    """Name of the argument of `fit` that takes sample weights."""
    last, name = estimator, "sample_weight"
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        name = f"{step}__{name}"
    kind = type(last).__name__
    if not is_regressor(last):
        if not has_fit_parameter(last, "sample_weight"):
            raise ParameterError(
                f"{kind} does not accept sample_weight, so it cannot learn from soft labels. Use a classifier that "
                "does (a tree, a forest, boosting, a linear model, an SVM), or a regressor"
            )
        if not hasattr(last, "predict_proba"):
            raise ParameterError(
                f"{kind} has no predict_proba. Wrap it: sklearn.calibration.CalibratedClassifierCV({kind}())"
            )
    return name
