"""crowd-kit's class names and `fit_predict`, with Crowdwise's models. Change one import:

    from crowdwise.compat.crowdkit import DawidSkene      # was: from crowdkit.aggregation import DawidSkene

The input is a frame with the columns task, worker, label; the output is pandas, indexed by task. Three things differ:
if a worker answered a task more than once, only the last answer counts; a missing label is never a class; and ties do
not depend on the order of rows.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..aggregation import model
from ..answers import Labels
from ..engine.resources import load
from ..labels.model import LabelModel
from ..result import LabelsResult


class _Aggregator:
    """Methods fit, fit_predict and fit_predict_proba; after a fit, labels_, probas_, skills_ and result_."""

    _model: LabelModel
    result_: LabelsResult

    def fit(self, data: Any, true_labels: Any = None) -> Any:
        answers = Labels(data, gold=None if true_labels is None else dict(true_labels), duplicates="last")
        self.result_ = self._model.fit(answers)
        return self

    def fit_predict(self, data: Any, true_labels: Any = None) -> Any:
        return self.fit(data, true_labels).labels_

    def fit_predict_proba(self, data: Any, true_labels: Any = None) -> Any:
        return self.fit(data, true_labels).probas_

    @property
    def labels_(self) -> Any:
        table = self.result_.labels
        return _pandas().Series(table["label"].to_list(), index=self._index("task", table["task"]), name="agg_label")

    @property
    def probas_(self) -> Any:
        classes = self._index("label", self.result_.classes)
        return _pandas().DataFrame(
            self.result_.posterior, index=self._index("task", self.result_.answers.tasks), columns=classes
        )

    @property
    def skills_(self) -> Any:
        table = self.result_.workers
        return _pandas().Series(table["skill"].to_list(), index=self._index("worker", table["worker"]), name="skill")

    def _index(self, name: str, values: Any) -> Any:
        return _pandas().Index(values.to_list(), name=name)


class MajorityVote(_Aggregator):
    def __init__(self) -> None:
        self._model = model("majority-vote")


class Wawa(_Aggregator):
    """Votes weighted by agreement with the other workers."""

    def __init__(self) -> None:
        self._model = model("weighted-vote")


class _Iterative(_Aggregator):
    _name: ClassVar[str]

    def __init__(self, n_iter: int = 100, tol: float = 1e-4) -> None:
        self._model = model(self._name, max_iter=n_iter, tol=tol)


class DawidSkene(_Iterative):
    _name = "dawid-skene"


class OneCoinDawidSkene(_Iterative):
    _name = "one-coin"


class GLAD(_Iterative):
    _name = "glad"


class MACE(_Iterative):
    _name = "mace"


def _pandas() -> Any:
    return load("pandas", "pandas", "crowdwise.compat.crowdkit")


__all__ = ["GLAD", "MACE", "DawidSkene", "MajorityVote", "OneCoinDawidSkene", "Wawa"]
