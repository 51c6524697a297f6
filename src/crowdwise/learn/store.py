"""Save and load built-in classifiers: the result and the weights in one file with a checksum."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.registry import find
from ..errors import ParameterError
from ..result import store
from . import sides  # noqa: F401 - find knows models that have been imported
from .logistic import Logistic, LogisticLearner

if TYPE_CHECKING:
    from .estimator import CrowdClassifier

FILE_NAME = "classifier.crowdwise"


def write(model: CrowdClassifier, path: Path) -> Path:
    """Save a fitted classifier; return the file written."""
    from safetensors.numpy import save

    learner = model.learner_
    if isinstance(learner, LogisticLearner):
        kind, settings = "logistic", {"l2": learner.l2}
    elif hasattr(learner, "module") and learner.plan.module is None:
        kind, settings = "mlp", {k: v for k, v in learner.plan.get_params().items() if k != "module"}
    else:
        raise ParameterError(
            "only the built-in classifiers 'logistic' and 'mlp' can be saved. Save your classifier by its own means "
            "(for instance joblib), and the result with result_.save"
        )
    if kind == "mlp":
        weights = {f"module.{n}": value.cpu().numpy() for n, value in learner.predictor.state_dict().items()}
    else:
        weights = {"weights": learner.state()["weights"]}
    arrays = {"mean": learner.mean, "scale": learner.scale} | weights
    about, parts = store.parts_of(model.result_)
    parts["classifier.safetensors"] = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    names = getattr(model, "feature_names_in_", None)
    about |= {"classifier": kind, "classifier_settings": settings, "threshold": model.threshold}
    about |= {"n_features": model.n_features_in_, "feature_names": None if names is None else list(names)}
    return store.pack(store.place(path, FILE_NAME), "classifier", about, parts)


def load(path: str | Path) -> CrowdClassifier:
    """Load a classifier that `CrowdClassifier.save` wrote."""
    from safetensors.numpy import load as arrays_of

    from .estimator import CrowdClassifier

    about, parts = store.unpack(store.place(Path(path), FILE_NAME), "classifier")
    arrays = arrays_of(parts["classifier.safetensors"])
    result = store.result_of(about, parts, find)
    made: Any
    if about["classifier"] == "logistic":
        truth: Any = Logistic(**about["classifier_settings"])
        made = LogisticLearner.of(arrays["mean"], arrays["scale"], arrays["weights"], truth.l2)
    else:
        from .network import Network, NetworkLearner

        truth = Network(**about["classifier_settings"])
        made = NetworkLearner.of(truth, arrays)
    model = CrowdClassifier(truth, result.model, threshold=about["threshold"])
    model.result_, model.learner_, model.classes_ = result, made, result.classes.to_numpy()
    model.n_features_in_ = about["n_features"]
    if about["feature_names"] is not None:
        model.feature_names_in_ = np.array(about["feature_names"], object)
    return model
