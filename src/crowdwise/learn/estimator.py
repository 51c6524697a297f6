"""CrowdClassifier: a classifier learnt from answers of unknown skill, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from ..answers import Labels
from ..answers.rows import Rows
from ..engine import LabelModel, Run
from ..engine.model import COUNT, SHARE, Rule, check
from ..errors import FeatureError, ParameterError, nearest
from ..kernels.layout import Floats
from ..labels import MODELS
from ..result import Assignment, Result
from .beside import Beside
from .eased import VoteLearner
from .logistic import Logistic
from .objective import softmax
from .refit import Refit
from .rows import as_rows
from .sides import PUBLISHED, SIDES, by_name
from .told import told_by_answers

LARGEST = 1e18  # of a feature: its square is still a number in single precision


class CrowdClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of features, and the skill of the people who labelled them, learnt together.

    `classifier` is "logistic", "mlp", any scikit-learn classifier that takes `sample_weight`, a torch module, or one of
    `crowdwise.learn.Logistic`, `Network` and `Refit` with settings. `workers` is a worker side that is fitted together
    with it ("confusion", "adaptive", "learned", "groups", "tied", "pooled", ...), a model of answers alone (any name of
    `crowdwise models`: "majority-vote", "soft-vote", "glad", ...) whose labels are then taught to it, or a published
    method by the name of its paper ("softMV", "hardMV", "DL-DS", "DL-EM", "CMM", "Ideal"). Where a side and a model of
    answers alone have one name ("groups", "tied", "pooled"), it is the side; the model is `crowdwise.Groups()`.
    `threshold`: of two classes, the second is predicted above this probability. `restarts`: of that many fits, which
    differ in what is drawn for a network, the one of the highest objective is kept.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.experts(tasks=200, seed=1)
    >>> model = cw.CrowdClassifier(workers="adaptive").fit(sim.features, sim.answers, tasks=sim.truth["task"])
    >>> model.result_.workers.height, float(model.score(sim.features, sim.truth["label"])) > 0.85
    (5, True)
    """

    def __init__(
        self,
        classifier: Any = "logistic",
        workers: Any = "learned",
        *,
        threshold: float = 0.5,
        restarts: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.workers = workers
        self.threshold = threshold
        self.restarts = restarts
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, answers: Any, tasks: Any = None, *, run: Run | None = None) -> CrowdClassifier:
        """Learn from rows X and the answers to their tasks.

        `answers` is a `Labels` or anything `Labels` takes, and `tasks` the id of every row; or `Labels.by_row(ids)`; or
        an array with a row a row of X, and a column a worker (None, NaN or "" where there is no answer). Rows without
        answers teach nothing and are told by `predict`; answers to tasks without a row are left out, with a warning.
        """
        check(
            {"threshold": SHARE, "restarts": COUNT} | ({} if self.n_jobs is None else {"n_jobs": Rule(int, low=-1)}),
            self,
        )
        truth, side = truth_side(self.classifier), worker_side(self.workers)
        X = self._features(X, truth, reset=True)
        rows = as_rows(X, answers, tasks)
        labels = rows.labels()
        self._say_unused(rows)
        at = rows.in_order()
        run = replace(run or Run(threads=max(self.n_jobs or 0, 0)), seed=_seed(self.random_state))
        self.result_, self.learner_ = self._best(truth, side, _safe_indexing(X, at), labels, run)
        self.classes_ = labels.classes.to_numpy()
        return self

    def _best(self, truth: Any, side: LabelModel, X: Any, labels: Labels, run: Run) -> tuple[Result, Any]:
        """Of `restarts` fits that differ in what is drawn for the classifier, the one of the highest objective."""
        rng, best = run.rng(), None
        joint = isinstance(side, Beside) and side.asks_classifier
        for _ in range(self.restarts if joint else 1):
            learner = truth.learner(X, labels.n_classes, rng)
            result = self._fitted(side, learner, labels, run)
            if best is None or result.trace[-1] > best[0].trace[-1]:
                best = result, learner
        assert best is not None
        return best

    def _fitted(self, side: LabelModel, learner: Any, labels: Labels, run: Run) -> Result:
        """Both sides, or the classifier after the labels. BLAS has one thread: pools of numpy and scipy would wait for
        each other, and bits would depend on their number."""
        with threadpool_limits(1, user_api="blas"):
            return self._sides_fitted(side, learner, labels, run)

    def _sides_fitted(self, side: LabelModel, learner: Any, labels: Labels, run: Run) -> Result:
        if isinstance(side, Beside):
            beside = learner if side.asks_classifier else VoteLearner(labels)
            result = side.with_learner(beside).fit(labels, run)
            result = replace(result, model=side)
            if side.asks_classifier:
                return result
        else:
            result = side.fit(labels, run)
        learner.imitate(result.posterior.astype(np.float64))
        return result

    def predict_proba(self, X: Any, answers: Any = None, tasks: Any = None) -> Floats:
        """(n, K) probability of each class; with answers (as in `fit`), by features and answers together."""
        check_is_fitted(self)
        X = self._features(X, truth_side(self.classifier), reset=False)
        logits = self.learner_.logits(X)
        if answers is None:
            return softmax(logits)
        return told_by_answers(self.result_, logits, as_rows(X, answers, tasks))[0]

    def predict(self, X: Any) -> Any:
        """The most probable class of every row; of two, the second where its probability is above `threshold`."""
        p = self.predict_proba(X)
        if len(self.classes_) == 2:
            return self.classes_[(p[:, 1] > self.threshold).astype(int)]
        return self.classes_[p.argmax(1)]

    def predictions(self, X: Any, tasks: Any) -> pl.DataFrame:
        """task, label and probability of every row, by its features alone."""
        p, label = self.predict_proba(X), self.predict(X)
        told = p[np.arange(len(p)), np.searchsorted(self.classes_, label)]
        return pl.DataFrame({"task": tasks, "label": label, "probability": told})

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, tasks: Any = None) -> float:
        """Accuracy against labels y, one a row; against answers (given as in `fit`), their mean log-likelihood given X:
        what to choose settings by where no truth is known."""
        if not isinstance(y, (Rows, Labels)) and np.ndim(y) < 2 and tasks is None:
            return float(super().score(X, np.asarray(y), sample_weight))
        check_is_fitted(self)
        X = self._features(X, truth_side(self.classifier), reset=False)
        return told_by_answers(self.result_, self.learner_.logits(X), as_rows(X, y, tasks), blind=True)[1]

    def assign(self, X: Any, answers: Any, tasks: Any = None) -> Assignment:
        """Groups of answers that the fit has not seen (given as in `fit`), and of their workers: `answers` with a group
        and its probability for each answer, `workers` for each worker by all his answers."""
        check_is_fitted(self)
        X = self._features(X, truth_side(self.classifier), reset=False)
        rows = as_rows(X, answers, tasks)
        return self.result_.assign(rows.labels(), prior=softmax(self.learner_.logits(X))[rows.in_order()])

    def save(self, path: str | Path) -> Path:
        """Write a classifier that is built in, with its crowd, to a folder (or a file ending in .crowdwise); no
        pickle. `crowdwise.learn.load` brings it back."""
        from .store import write

        check_is_fitted(self)
        return write(self, Path(path))

    def report(self, path: str | Path, *, truth: Any = None, rivals: Any = ()) -> Path:
        """Write the page of `result_`; with `truth` (a table of task and label), also ROC curves and how well skills
        were told, of this model and of `rivals` (further fitted classifiers)."""
        from ..report import write_report
        from ..scoring import judged

        check_is_fitted(self)
        shown: dict[str, Result] = {}
        for each in (self, *([rivals] if isinstance(rivals, CrowdClassifier) else rivals)):
            check_is_fitted(each)
            name = each.result_.model.name
            again = sum(other.split(" (")[0] == name for other in shown)
            shown[f"{name} ({again + 1})" if again else name] = each.result_
        return write_report(self.result_, path, judged=judged(shown, truth))

    def _features(self, X: Any, truth: Any, *, reset: bool) -> Any:
        """X as the truth side takes it: numbers, or, for a classifier that was brought, whatever it likes."""
        if isinstance(truth, Refit):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        kind = np.float64 if isinstance(truth, Logistic) else np.float32
        X = validate_data(self, X, reset=reset, dtype=kind, allow_nd=True, ensure_all_finite=False)
        if X.ndim > 2 and isinstance(truth, Logistic):
            raise FeatureError(f"X has shape {X.shape}; 'logistic' takes a row of numbers: X.reshape(len(X), -1)")
        with np.errstate(invalid="ignore"):
            sound = np.abs(X) < LARGEST
        if not sound.all():
            bad = ~sound.reshape(len(X), -1)
            row, column = (int(place[0]) for place in np.nonzero(bad))
            raise FeatureError(
                f"Input X contains NaN, infinity or a value too large: {int(bad.any(1).sum())} row(s) in "
                f"{int(bad.any(0).sum())} column(s), first in row {row}, column {column}. Fill these values or leave "
                "the rows out, or take a classifier that knows NaN, such as HistGradientBoostingClassifier()"
            )
        return X

    def _say_unused(self, rows: Rows) -> None:
        missing = rows.answers.n_tasks - len(set(rows.number[rows.number >= 0].tolist()))
        if missing and len(rows) and rows.whole:
            warnings.warn(
                f"{missing} of {rows.answers.n_tasks} tasks have answers and no features: they are left out",
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        truth = truth_side(self.classifier)
        brought = getattr(truth, "estimator", None)
        tags.input_tags.allow_nan = hasattr(brought, "fit") and get_tags(brought).input_tags.allow_nan
        return tags


def _seed(random_state: Any) -> int:
    """A whole number as it is; of a generator, the next one."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(2**31))


def truth_side(classifier: Any) -> Any:
    """What stands behind `classifier`."""
    if isinstance(classifier, str):
        if classifier == "logistic":
            return Logistic()
        if classifier == "mlp":
            from .network import Network

            return Network()
        hint = nearest(classifier, ["logistic", "mlp"])
        raise ParameterError(f"classifier is {classifier!r}; it can be 'logistic', 'mlp' or an estimator.{hint}")
    if isinstance(classifier, type):
        raise ParameterError(f"classifier is the class {classifier.__name__}; give one of it: {classifier.__name__}()")
    if callable(getattr(classifier, "learner", None)):
        return classifier
    if any(kind.__module__.startswith("torch.nn") for kind in type(classifier).__mro__):
        from .network import Network

        return Network(classifier)
    if hasattr(classifier, "fit") and hasattr(classifier, "get_params"):
        return Refit(classifier)
    raise ParameterError(
        f"classifier is {classifier!r}; give 'logistic', 'mlp', a scikit-learn classifier or a torch module"
    )


def worker_side(workers: Any) -> LabelModel:
    """What stands behind `workers`."""
    if isinstance(workers, LabelModel):
        return workers
    if isinstance(workers, type):
        raise ParameterError(f"workers is the class {workers.__name__}; give one of it: {workers.__name__}()")
    kinds = {**MODELS, **SIDES, **PUBLISHED}
    if not isinstance(workers, str) or workers not in kinds:
        alone = ", ".join(sorted(set(MODELS) - set(SIDES)))
        names = f"{', '.join(SIDES)}, of answers alone {alone}, or as published {', '.join(PUBLISHED)}"
        raise ParameterError(f"workers is {workers!r}; it can be {names}.{nearest(str(workers), kinds)}")
    return by_name(workers)
