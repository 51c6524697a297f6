"""The models of labels that can learn from a stream."""

from __future__ import annotations

from typing import Any

from ..engine import Model, registry
from ..errors import ParameterError
from ..labels.em import EMModel
from ..labels.model import LabelModel

PACKAGE = "crowdwise.labels"  # where the models are


class Streamable:
    """An attribute of a stream: the models that it can use."""

    def __get__(self, stream: Any, owner: type) -> tuple[type[Model[Any, Any]], ...]:
        return _models()


def _models() -> tuple[type[Model[Any, Any]], ...]:
    """Return the registered models that can be streamed, the default first."""
    registry.discover(PACKAGE)
    known = registry.MODELS["labels"]
    found = [each for each in known.values() if issubclass(each, EMModel) and each.can_stream]
    return tuple(sorted(found, key=lambda each: each.name != registry.DEFAULTS["labels"]))


def streamable(model: Any) -> EMModel[Any, Any]:
    """Return the model by name, class or instance; one that cannot be streamed is refused."""
    if model is None or isinstance(model, str):
        registry.discover(PACKAGE)
        model = registry.find(model or registry.DEFAULTS["labels"], "labels")
    made = model() if isinstance(model, type) and issubclass(model, Model) else model
    if not isinstance(made, EMModel) or not made.can_stream:
        names = ", ".join(each.name for each in _models())
        if isinstance(made, LabelModel):
            raise ParameterError(
                f"{made.name} cannot learn from a stream, as it has no statistics from which single answers can be "
                f"taken away. Use {names}; or fit all answers with crowdwise.aggregate"
            )
        raise ParameterError(f"model is {model!r}; give the name, class or instance of a model: {names}")
    return made
