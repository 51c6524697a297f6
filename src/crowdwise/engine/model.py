"""The base class of models of all kinds of answers: hyperparameters with rules, requirements, and `fit`.

A model holds only hyperparameters. Estimated parameters are a NamedTuple of arrays that its methods take and return.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, Literal, TypeVar

from ..answers.arguments import checked, is_whole, plain
from ..answers.base import Answers
from ..errors import DataError, ParameterError, option
from ..limits import enough_memory
from ..result.base import BaseResult, Trace
from ..result.store import fingerprint
from .loop import resumable
from .resources import require
from .run import Run

A = TypeVar("A", bound=Answers)
R = TypeVar("R", bound=BaseResult)


@dataclass(frozen=True, kw_only=True)
class Model(ABC, Generic[A, R]):
    """A model of one kind of answers. `register` sets the name and description of a subclass."""

    name: ClassVar[str]
    description: ClassVar[str]  # one line
    kind: ClassVar[str]  # kind of answers
    answers_type: ClassVar[type[Answers]]
    result_type: ClassVar[type[BaseResult]]
    params_type: ClassVar[type]
    features: ClassVar[Literal["none", "optional", "required"]] = "none"
    extras: ClassVar[tuple[str, ...]] = ()  # optional dependencies that it needs

    def __post_init__(self) -> None:
        for name, value in self.settings().items():  # numbers of numpy are saved, compared and shown as those of Python
            object.__setattr__(self, name, _of_python(value))
        check({f.name: f.metadata["rule"] for f in fields(self) if "rule" in f.metadata}, self, f"{self.name}: ")

    @property
    def table_names(self) -> tuple[str, ...]:
        """Names of the tables of its results."""
        return self.result_type.table_names

    def settings(self) -> dict[str, Any]:
        """Return the hyperparameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @checked
    def fit(self, answers: Any, *, features: Any = None, run: Run | None = None) -> R:
        """Fit the model to answers, or to a frame of answers, and return the result."""
        self.check_needs(features is not None)
        with enough_memory(self.name):
            accepted, run = self.accept(answers), run or Run()
            self.check_memory(accepted)
            return resumable(
                run, lambda: self.mark(accepted, run, features), lambda begun: self._fit(accepted, features, begun)
            )

    def check_needs(self, features: bool) -> None:
        """Raise an error if a library is missing, or if features are given or missing against the model's need."""
        require(self.extras, self.name)
        if self.features == "required" and not features:
            raise ParameterError(f"{self.name} needs features. {self.without_features}")
        if self.features == "none" and features:
            raise ParameterError(f"{self.name} takes no features. {self.with_features}")

    def check_memory(self, answers: A) -> None:
        """Raise MemoryNeedError for answers that need more memory than is available, where that is known before."""

    def mark(self, answers: Answers, run: Run, *features: Any) -> str:
        """Return a digest that identifies a fit of this model."""
        return fingerprint(answers, repr((self.kind, self.name, self.settings(), run.seed, run.shards)), *features)

    without_features: ClassVar[str] = f"Give {option('features')}"
    with_features: ClassVar[str] = f"Omit {option('features')}"

    @abstractmethod
    def _fit(self, answers: A, features: Any, run: Run) -> R:
        """Run the fit; `run` has its own journal."""

    def make_result(
        self, answers: A, run: Run, trace: Trace, criterion: str, *, result_type: type[BaseResult] | None = None,
        **own: Any,
    ) -> R:  # fmt: skip
        """Return the result of a fit; `own` has `params`, `converged` and the fields of the kind of answers."""
        common: dict[str, Any] = {
            "answers": answers,
            "model": self,
            "trace": trace.frame(),
            "seed": int(run.seed),
            "seconds": run.journal.seconds,
        }
        kind: Any = result_type or self.result_type
        return kind(**common, criterion=criterion if trace.rows else "", **own)  # type: ignore[no-any-return]

    def accept(self, answers: Any) -> A:
        """Return answers of this model's kind. Frames are converted; answers of another kind are refused."""
        kind = self.answers_type
        if isinstance(answers, Answers | BaseResult) and answers.kind != kind.kind:
            raise DataError(
                f"{self.name} takes answers of kind {kind.kind!r} (crowdwise.{kind.__name__}); got "
                f"{type(answers).__name__}, of kind {answers.kind!r}"
            )
        return kind.from_any(answers)  # type: ignore[return-value]


def _of_python(value: Any) -> Any:
    """Return a hyperparameter with numbers of Python in place of those of numpy."""
    if isinstance(value, Mapping):
        return {plain(key): plain(each) for key, each in value.items()}
    return tuple(map(plain, value)) if isinstance(value, tuple) else plain(value)


MIN_SETTING, MAX_SETTING = 1e-100, 1e12  # size of a hyperparameter that is no whole number, unless it is 0


@dataclass(frozen=True)
class Rule:
    """The valid values of a hyperparameter."""

    kind: type | tuple[type, ...]
    low: float = -math.inf
    above: float = -math.inf
    high: float = math.inf
    choices: tuple[object, ...] = ()
    may_be_none: bool = False

    def holds(self, value: object) -> bool:
        value = plain(value)
        if self.may_be_none and value is None:
            return True
        if self.choices:
            return any(type(value) is type(choice) and value == choice for choice in self.choices)
        if not is_whole(value) and not (self.kind is not int and isinstance(value, float) and math.isfinite(value)):
            return False
        return self.low <= value <= self.high and value > self.above

    @property
    def text(self) -> str:
        if self.choices:
            return " or ".join(map(repr, self.choices))
        word = "a whole number" if self.kind is int else "a number"
        none = " or None" if self.may_be_none else ""
        if self.low > -math.inf:
            span = f" from {self.low:g} to {self.high:g}" if self.high < math.inf else f" of at least {self.low:g}"
            return word + span + none
        bound = f" above {self.above:g}" if self.above > -math.inf else ""
        return word + bound + (f" and at most {self.high:g}" if self.high < math.inf else "") + none


def _is_extreme(value: object) -> bool:
    """Return whether a number is so large or so close to 0 that sums and ratios of it are not finite."""
    return isinstance(value, float) and value != 0 and not MIN_SETTING <= abs(value) <= MAX_SETTING


COUNT = Rule(int, low=1)
SOME_COUNT = Rule(int, low=1, may_be_none=True)
POSITIVE = Rule((int, float), above=0.0)
SOME_POSITIVE = Rule((int, float), above=0.0, may_be_none=True)
NOT_NEGATIVE = Rule((int, float), low=0.0)
SHARE = Rule((int, float), low=0.0, high=1.0)
YES_NO = Rule(bool, choices=(True, False))


def one_of(*choices: object) -> Rule:
    """Return a rule that accepts the given values."""
    return Rule(object, choices=choices)


def setting(default: Any, rule: Rule | None, description: str) -> Any:
    """Declare a hyperparameter: its default, its valid values, and what it does."""
    metadata: dict[str, Any] = {"description": description}
    return field(default=default, metadata=metadata if rule is None else metadata | {"rule": rule})


def check(rules: Mapping[str, Rule], holder: object, prefix: str = "") -> None:
    """Raise ParameterError if an attribute of `holder` breaks its rule."""
    for name, rule in rules.items():
        value = getattr(holder, name)
        if not rule.holds(value):
            raise ParameterError(f"{prefix}{name} is {value!r}; it must be {rule.text}")
        if _is_extreme(value):
            raise ParameterError(
                f"{prefix}{name} is {value!r}; it must not be above {MAX_SETTING:g} or closer to 0 than {MIN_SETTING:g}"
            )
