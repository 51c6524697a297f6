"""CrowdClassifier: a scikit-learn estimator that learns a classifier from crowd labels."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from ..answers import Answers, Labels
from ..answers.arguments import check_list, checked
from ..answers.frames import to_series
from ..answers.rows import Rows
from ..engine import Run, best_of
from ..engine.loop import resumable
from ..engine.model import COUNT, SHARE, Rule, check
from ..engine.resources import refuse_if_too_large
from ..engine.run import Arrays, packed, rng_state, set_rng_state, under
from ..errors import FeatureError, FeatureTypeError, ParameterError, nearest, phrase
from ..kernels.layout import Floats
from ..labels.model import LabelModel
from ..result import Assignment, LabelsResult, LeftOut
from .base import WorkerSide
from .difficulty import VoteLearner
from .logistic import Logistic
from .objective import softmax
from .refit import Refit
from .rows import as_rows, predict_with_answers
from .sides import by_name

FEATURE_COPIES, BYTES_PER_CLASS, BYTES_PER_ANSWER = 3, 32, 30  # memory of a fit: classes of each task
MAX_FEATURE_FLOAT32 = 1e18  # its square does not overflow float32
RIVALS = "a list of fitted classifiers"
Fitted: TypeAlias = tuple[LabelsResult, Any]  # result of the worker side, and the trained Learner


class CrowdClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn a classifier of features together with the skill of the workers who labelled the tasks.

    `classifier` is one of:

    - "logistic" or "mlp",
    - a scikit-learn classifier that accepts `sample_weight`, or a torch module,
    - `crowdwise.learn.Logistic`, `Network` or `Refit` with hyperparameters.

    `workers` is one of:

    - a worker side that is fitted together with the classifier ("confusion", "adaptive", "learned", "groups", "tied",
      "pooled", ...),
    - a model of labels ("majority-vote", "soft-vote", "glad", ...; `crowdwise models` lists them) that is fitted first;
      the classifier is then trained on its posterior. "groups", "tied" and "pooled" name worker sides; for the model
      of labels give an instance, such as `crowdwise.Groups()`,
    - a published method by its name in the paper ("softMV", "hardMV", "DL-DS", "DL-EM", "CMM", "Ideal").

    With two classes, `predict` returns the second one if its probability is above `threshold`. Of `restarts` fits with
    different random weights, the one with the highest objective is kept. `random_state` is the seed, and `n_jobs` the
    number of threads (None: all cores).

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

    @checked
    def fit(self, X: Any, answers: Any, tasks: Any = None, *, run: Run | None = None) -> CrowdClassifier:
        """Learn from the rows of X and the answers to their tasks.

        Give `answers` as a `Labels` (or anything that `Labels` accepts) with `tasks`, the task id of every row; or as
        `Labels.by_row(ids)`; or as an array with one row per row of X and one column per worker (None, NaN or "" for a
        missing answer). Rows without answers are not used for training. Answers to tasks without a row are dropped with
        a warning. To continue a fit that `run.stop` interrupted, pass `Run(resume=error.checkpoint)`.
        """
        check({"threshold": SHARE, "restarts": COUNT, "n_jobs": Rule(int, low=-1, may_be_none=True)}, self)
        truth, side = truth_side(self.classifier), worker_side(self.workers)
        X = self._features(X, truth, reset=True)
        rows = as_rows(X, answers, tasks)
        labels = rows.labels()
        self._warn_unused(rows)
        at = rows.in_order()
        run = replace(run or Run(threads=max(self.n_jobs or 0, 0)), seed=_seed(self.random_state))
        _refuse_if_too_large(side.name, getattr(X, "nbytes", 0) * len(at) // max(len(rows), 1), labels)
        known = _safe_indexing(X, at)
        self.result_, self.learner_ = resumable(
            run,
            lambda: side.mark(labels, run, joblib.hash(known), _describe(truth), self.restarts),
            lambda begun: self._best(truth, side, known, labels, begun),
        )
        self.classes_ = labels.classes.to_numpy()
        warning = getattr(self.learner_, "warning", None)
        if warning is not None:
            warnings.warn(warning, stacklevel=2)
        return self

    def _best(self, truth: Any, side: LabelModel, X: Any, labels: Labels, run: Run) -> Fitted:
        """Return the fit with the highest score among `restarts` fits with different random weights of each candidate
        of the worker side."""
        rng = run.rng()
        joint = isinstance(side, WorkerSide) and side.asks_classifier
        sides = side.candidates(labels) if isinstance(side, WorkerSide) else (side,)

        def fit(start: int) -> Fitted:
            learner = truth.learner(X, labels.n_classes, rng)
            return _fit_sides(sides[start % len(sides)], learner, labels, run), learner

        def score(found: Fitted) -> float:
            return side.score(found[0]) if isinstance(side, WorkerSide) else 0.0

        def unpack(state: Arrays) -> Fitted:
            chosen = sides[int(state["side"])]
            result, learner = _result_of(state, chosen, labels, run), truth.learner(X, labels.n_classes, rng)
            with threadpool_limits(1, user_api="blas"):
                learner.restore(under(state, "learner."))
            return result, learner

        return best_of(
            len(sides) * (self.restarts if joint else 1), fit, score, run,
            pack=lambda found: _pack(found, sides.index(found[0].model)), unpack=unpack,
            before=lambda: {"rng": rng_state(rng)}, rewind=lambda state: set_rng_state(rng, state["rng"]),
        )  # fmt: skip

    def predict_proba(self, X: Any, answers: Any = None, tasks: Any = None) -> Floats:
        """(n, K) probability of each class, from features alone or from features and answers (given as in `fit`)."""
        check_is_fitted(self)
        X = self._features(X, truth_side(self.classifier), reset=False)
        logits = self.learner_.logits(X)
        if answers is None:
            return softmax(logits)
        return predict_with_answers(self.result_, logits, as_rows(X, answers, tasks))[0]

    def predict(self, X: Any) -> Any:
        """Predict the most probable class of every row; with two classes, `threshold` decides."""
        p = self.predict_proba(X)
        if len(self.classes_) == 2:
            return self.classes_[(p[:, 1] > self.threshold).astype(int)]
        return self.classes_[p.argmax(1)]

    def predictions(self, X: Any, tasks: Any) -> pl.DataFrame:
        """Table of task, label and probability for every row, predicted from its features alone."""
        p, label = self.predict_proba(X), self.predict(X)
        ids = to_series("task", tasks)
        if len(ids) != len(p):
            raise FeatureError(f"X has {len(p)} rows, but there are {len(ids)} tasks. Give one task per row")
        probability = p[np.arange(len(p)), np.searchsorted(self.classes_, label)]
        return pl.DataFrame({"task": ids, "label": label, "probability": probability})

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, tasks: Any = None) -> float:
        """Accuracy on labels y (one per row), or the mean log-likelihood of answers y (given as in `fit`) given X.

        The latter selects hyperparameters when no true labels are known.
        """
        if not isinstance(y, (Rows, Answers)) and np.ndim(y) < 2 and tasks is None:
            return float(super().score(X, np.asarray(y), sample_weight))
        check_is_fitted(self)
        X = self._features(X, truth_side(self.classifier), reset=False)
        return predict_with_answers(self.result_, self.learner_.logits(X), as_rows(X, y, tasks), blind=True)[1]

    def assign(self, X: Any, answers: Any, tasks: Any = None) -> Assignment:
        """Assign new answers (given as in `fit`) and their workers to the groups of the fit.

        The result has a table `answers`, with the group of each answer and its probability, and a table `workers`, with
        the group of each worker.
        """
        check_is_fitted(self)
        X = self._features(X, truth_side(self.classifier), reset=False)
        rows = as_rows(X, answers, tasks)
        return self.result_.assign(rows.labels(), prior=softmax(self.learner_.logits(X))[rows.in_order()])

    @checked
    def save(self, path: str | Path) -> Path:
        """Save a built-in classifier with its result to a folder, or to a file ending in .crowdwise, without pickle.

        `crowdwise.learn.load` loads it again.
        """
        from .store import write

        check_is_fitted(self)
        return write(self, Path(path))

    @checked
    def report(self, path: str | Path, *, truth: Any = None, rivals: Any = (), **options: Any) -> Path:
        """Write the page of `result_`.

        With `truth` (a table of task and label) it also shows ROC curves and the errors of the estimated skills, for
        this model and for `rivals` (other fitted classifiers). `options` are those of `result_.report`.
        """
        from ..metrics import evaluate
        from ..report import write_report

        check_is_fitted(self)
        shown: dict[str, LabelsResult] = {}
        others = [rivals] if isinstance(rivals, CrowdClassifier) else check_list("rivals", rivals, RIVALS)
        if not all(isinstance(each, CrowdClassifier) for each in others):
            raise ParameterError(f"rivals is {rivals!r:.200}; give {RIVALS}")
        for each in (self, *others):
            check_is_fitted(each)
            name = each.result_.model.name
            again = sum(other.split(" (")[0] == name for other in shown)
            shown[f"{name} ({again + 1})" if again else name] = each.result_
        return write_report(self.result_, path, judged=evaluate(shown, truth), **options)

    def _features(self, X: Any, truth: Any, *, reset: bool) -> Any:
        """Check X: it must hold finite numbers, unless the user gave a classifier that checks its own input."""
        if isinstance(X, (Answers, Rows)):
            raise FeatureError("X is a table of answers. Give features first: fit(X, answers, tasks=ids)")
        kind = np.float64 if isinstance(truth, Logistic) else np.float32
        try:
            if isinstance(truth, Refit):
                validate_data(self, X, reset=reset, skip_check_array=True)
                return X
            X = validate_data(self, X, reset=reset, dtype=kind, allow_nd=True, ensure_all_finite=False)
        except (TypeError, ValueError) as error:  # whose words users of scikit-learn know
            raise (FeatureTypeError if isinstance(error, TypeError) else FeatureError)(str(error)) from error
        if X.ndim > 2 and isinstance(truth, Logistic):
            raise FeatureError(
                f"X has shape {X.shape}; 'logistic' needs one row of numbers per task. Give X.reshape(len(X), -1)"
            )
        with np.errstate(invalid="ignore"):
            valid = np.abs(X) < MAX_FEATURE_FLOAT32
        if not valid.all():
            bad = ~valid.reshape(len(X), -1)
            row, column = (int(place[0]) for place in np.nonzero(bad))
            raise FeatureError(
                f"Input X contains NaN, infinity or a value too large: {int(bad.any(1).sum())} row(s) in "
                f"{int(bad.any(0).sum())} column(s), first in row {row}, column {column}. Fill these values, omit the "
                "rows, or " + phrase("", "in Python ") + "use a classifier that accepts NaN, such as "
                "HistGradientBoostingClassifier()"
            )
        return X

    def _warn_unused(self, rows: Rows) -> None:
        missing = rows.answers.n_tasks - len(set(rows.number[rows.number >= 0].tolist()))
        if missing and len(rows) and rows.whole:
            warnings.warn(
                f"{missing} of {rows.answers.n_tasks} tasks have answers but no features; their answers are not used",
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        truth = truth_side(self.classifier)
        estimator = getattr(truth, "estimator", None)
        tags.input_tags.allow_nan = hasattr(estimator, "fit") and get_tags(estimator).input_tags.allow_nan
        return tags


def _refuse_if_too_large(name: str, size: int, labels: Labels) -> None:
    """Raise MemoryNeedError if the copies of the features of rows with answers, of `size` bytes, and what there is of
    each row need more memory than is available; the model of the workers has its own estimate."""
    own = BYTES_PER_CLASS * labels.n_tasks * labels.n_classes + BYTES_PER_ANSWER * labels.n_answers
    refuse_if_too_large(
        FEATURE_COPIES * size + own, name, f"{size / 1e9:.1f} GB of features and {labels.n_answers} answers",
        "Allow it more, give fewer features, or train on a sample of the tasks",
    )  # fmt: skip


def _fit_sides(side: LabelModel, learner: Any, labels: Labels, run: Run) -> LabelsResult:
    """Fit both sides together, or the model of labels first and the classifier on its posterior.

    BLAS uses one thread: the thread pools of numpy and scipy would block each other, and results would depend on the
    number of threads.
    """
    with threadpool_limits(1, user_api="blas"):
        if isinstance(side, WorkerSide) and side.asks_classifier:
            return side._fit(labels, learner, run)
        result = side._fit(labels, VoteLearner(labels) if isinstance(side, WorkerSide) else None, run)
        learner.imitate(result.posterior.astype(np.float64))
    return result


def _pack(found: Fitted, side: int) -> Arrays:
    """Pack a finished restart into arrays; `side` is the number of its worker side among the candidates."""
    result, learner = found
    names = ("params", "posterior", "prevalence", "left_out", "converged", "seconds")
    trace = {f"{n} {column.name}": column.to_numpy() for n, column in enumerate(result.trace)}
    more = {"trace": trace, "learner": learner.state(), "side": side}
    return packed({name: getattr(result, name) for name in names} | more)


def _result_of(state: Arrays, side: LabelModel, labels: Labels, run: Run) -> LabelsResult:
    """Rebuild the result of a restart from the arrays of `_pack`."""
    trace = {key.split()[1]: column for key, column in sorted(under(state, "trace.").items())}
    return LabelsResult(
        answers=labels, model=side, params=side.params_type(**under(state, "params.")), posterior=state["posterior"],
        prevalence=state["prevalence"], left_out=LeftOut(**under(state, "left_out.")),
        trace=pl.DataFrame(trace), criterion=side.criterion, converged=bool(state["converged"]),
        seed=int(run.seed), seconds=float(state["seconds"]),
    )  # fmt: skip


def _describe(truth: Any) -> str:
    """Text with all hyperparameters of a classifier, the same in every process."""
    text = truth.__repr__(N_CHAR_MAX=10**9) if isinstance(truth, BaseEstimator) else repr(truth)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _seed(random_state: Any) -> int:
    """Seed from a `random_state`: an integer as it is, or a number drawn from a generator."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return int(random_state or 0)
    return int(check_random_state(random_state).randint(2**31))


def truth_side(classifier: Any) -> Any:
    """Return the truth side for the argument `classifier`."""
    if isinstance(classifier, str):
        if classifier == "logistic":
            return Logistic()
        if classifier == "mlp":
            from . import Network

            return Network()
        hint = nearest(classifier, ["logistic", "mlp"])
        raise ParameterError(f"classifier is {classifier!r}; it can be 'logistic', 'mlp' or an estimator.{hint}")
    if isinstance(classifier, type):
        raise ParameterError(
            f"classifier is the class {classifier.__name__}; give an instance: {classifier.__name__}()"
        )
    if callable(getattr(classifier, "learner", None)):
        return classifier
    if any(kind.__module__.startswith("torch.nn") for kind in type(classifier).__mro__):
        from . import Network

        return Network(classifier)
    if hasattr(classifier, "fit") and hasattr(classifier, "get_params"):
        return Refit(classifier)
    raise ParameterError(
        f"classifier is {classifier!r}; give 'logistic', 'mlp', a scikit-learn classifier or a torch module"
    )


def worker_side(workers: Any) -> LabelModel:
    """Return the model for the argument `workers`."""
    if isinstance(workers, LabelModel):
        return workers
    if isinstance(workers, type):
        raise ParameterError(f"workers is the class {workers.__name__}; give an instance: {workers.__name__}()")
    return by_name(workers)
