"""Save and load built-in classifiers: the result and the weights in one file with a checksum."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from ..engine.registry import find
from ..errors import ParameterError
from ..result import store
from ..result.stored import UnsoundError, complete, conforms, load_arrays
from . import sides  # noqa: F401 - find knows models that have been imported
from .logistic import Logistic, LogisticLearner

if TYPE_CHECKING:
    from .estimator import CrowdClassifier

FILE_NAME = "classifier.crowdwise"
HEAD = {  # plain values of a file, and their types
    "classifier": str,
    "classifier_settings": dict[str, Any],
    "threshold": float,
    "n_features": int,
    "feature_names": list[str] | None,
}


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
    return store.pack(store.place(path, FILE_NAME), "classifier", about, parts, _restored)


def load(path: str | Path) -> CrowdClassifier:
    """Load a classifier that `CrowdClassifier.save` wrote."""
    file = store.place(Path(path), FILE_NAME)
    about, parts = store.unpack(file, "classifier")
    with complete(file, "classifier"):
        return _restored(about, parts)


def _restored(about: Mapping[str, Any], parts: Mapping[str, bytes]) -> CrowdClassifier:
    from .estimator import CrowdClassifier

    _check_head(about)
    arrays = load_arrays(parts["classifier.safetensors"])
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise UnsoundError(f"{name} has numbers that are not finite")
    result = store.result_of(about, parts, find)
    made: Any
    if about["classifier"] == "logistic":
        truth: Any = Logistic(**_settings(Logistic, about))
        made = LogisticLearner.of(arrays["mean"], arrays["scale"], arrays["weights"], truth.l2)
    else:
        from .network import Network, NetworkLearner

        truth = Network(**_settings(Network, about))
        made = NetworkLearner.of(truth, arrays)
    model = CrowdClassifier(truth, result.model, threshold=about["threshold"])
    model.result_, model.learner_, model.classes_ = result, made, result.classes.to_numpy()
    model.n_features_in_ = about["n_features"]
    if about["feature_names"] is not None:
        model.feature_names_in_ = np.array(about["feature_names"], object)
    logits = (
        made.logits(np.zeros((1, model.n_features_in_))) if made.mean.ndim < 3 else np.zeros((1, len(model.classes_)))
    )
    if logits.shape != (1, len(model.classes_)) or not np.isfinite(logits).all():
        raise UnsoundError("its weights are not those of its features and classes")
    return model


def _check_head(about: Mapping[str, Any]) -> None:
    for name, kind in HEAD.items():
        if not conforms(about[name], kind):
            raise UnsoundError(f"{name} is {about[name]!r:.80}")
    names, count = about["feature_names"], about["n_features"]
    if about["classifier"] not in ("logistic", "mlp") or not 0 <= about["threshold"] <= 1 or count < 1:
        raise UnsoundError("it does not say which classifier it is")
    if names is not None and len(names) != count:
        raise UnsoundError(f"it has {len(names)} names for {count} features")


def _settings(kind: type, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a classifier, which have the types that it declares."""
    kinds = get_type_hints(kind.__init__)  # type: ignore[misc]
    found = {name: tuple(v) if isinstance(v, list) else v for name, v in about["classifier_settings"].items()}
    for name, value in found.items():
        if name not in kinds or not conforms(value, kinds[name]):
            raise UnsoundError(f"{name} is {value!r:.80}")
    return found
