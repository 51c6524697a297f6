"""Streams: learn from answers that keep coming, without fitting everything again.

A stream holds the answers themselves, so that they can be corrected and removed. `Stream` has what all kinds of answers
share: the model, the decision whether an item needs more answers, and the file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from ..answers.arguments import checked
from ..answers.base import Answers
from ..errors import ChecksumError, ParameterError
from ..result.base import BaseResult
from ..result.store import model_of, pack, place, plain_settings, unpack
from ..result.stored import Parts, Stored, UnsoundError, complete
from .model import COUNT, Model, Rule
from .run import Run

A = TypeVar("A", bound=Answers)
R = TypeVar("R", bound=BaseResult)

NAME = "stream.crowdwise"
PROBABILITY = Rule((int, float), low=0.5, high=1.0)


class Decision(NamedTuple):
    """Whether an item needs more answers."""

    item: Any
    status: Literal["settled", "ask", "contested"]
    ask: int  # how many more answers to ask for; 0 unless the status is "ask"
    of: tuple[Any, ...]  # workers worth asking who have not answered the item, best first; may be empty
    probability: float  # what was reached
    answers: int  # how many there are
    reason: str  # a sentence


class Standing(NamedTuple):
    """What a stream knows about an item."""

    answers: int
    probability: float
    words: str  # "3 answers, and 'cat' has a probability of"; the probability follows


class Stream(ABC, Generic[A, R]):
    """Answers that keep coming, and what was learned from them. A subclass names the models that it can use."""

    models: ClassVar[tuple[type[Model[Any, Any]], ...]]  # the default first

    def __init__(self, model: Model[A, R] | None = None) -> None:
        self.model: Model[A, R] = self.models[0]() if model is None else model
        if not isinstance(self.model, self.models):
            names = " or ".join(each.__name__ for each in self.models)
            raise ParameterError(f"model is {model!r}; {type(self).__name__} needs {names}")
        self.notes: dict[str, Any] = {}  # plain values that are kept in the file, such as what was read

    @abstractmethod
    def update(self, answers: Any, *, run: Run | None = None) -> Self:
        """Learn from answers. They replace earlier answers of the same worker to the same item, so the same answers
        again change nothing."""

    @abstractmethod
    def remove(self, answers: Any) -> int:
        """Delete the answers listed in a table with the columns of item and worker; return how many were unknown."""

    @abstractmethod
    def result(self, *, run: Run | None = None) -> R:
        """Return the result of all answers held."""

    def decide(self, item: Any, probability: float = 0.95, min: int = 2, max: int = 7) -> Decision:
        """Return whether an item is settled: it has at least `min` answers, and the probability asked is reached. An
        item that is not settled by `max` answers is contested; otherwise, ask for more answers."""
        check_bounds(probability, min, max)
        known = self._standing(item)
        reached, wanted = _percentages(known.probability, probability)
        sure = known.probability >= probability
        side = "below" if not sure else "above" if known.probability > probability else "not below"
        reason = f"{known.words} {reached}, {side} {wanted}"
        if known.answers < min:
            reason += f", but at least {min} are needed."
        elif known.answers >= max and not sure:
            reason += f", and no more than {max} are to be asked for."
        else:
            reason += "."
        if known.answers >= (min if sure else max):
            status: Literal["settled", "contested"] = "settled" if sure else "contested"
            return Decision(item, status, 0, (), known.probability, known.answers, reason)
        missing = 1 if sure else self._missing(item, probability, max - known.answers)
        ask = missing if known.answers + missing >= min else min - known.answers
        return Decision(item, "ask", ask, self._worth_asking(item), known.probability, known.answers, reason)

    @abstractmethod
    def _standing(self, item: Any) -> Standing:
        """Return the number of answers and the probability of an item."""

    @abstractmethod
    def _missing(self, item: Any, probability: float, most: int) -> int:
        """Return how many more answers an item probably needs to reach the probability, from 1 to `most`."""

    @abstractmethod
    def _worth_asking(self, item: Any) -> tuple[Any, ...]:
        """Return the workers who have not answered an item, the best first."""

    @checked
    def save(self, path: str | Path) -> Path:
        """Save the stream as one file, written whole or not at all; return its path."""
        parts = self._parts()
        model = {"name": self.model.name, "settings": plain_settings(self.model.settings())}
        about = {"stream": type(self).__name__, "model": model, "values": parts.plain, "notes": self.notes}
        return pack(place(Path(path), NAME), "stream", about, parts.files(), self._of)

    @classmethod
    @checked
    def load(cls, path: str | Path) -> Self:
        """Load a stream that was saved; a file that was changed, truncated or holds something else is refused."""
        file = place(Path(path), NAME)
        head, files = unpack(file, "stream")
        if head.get("stream") != cls.__name__:
            raise ChecksumError(f"{file} contains a {head.get('stream')}; load it with crowdwise.{head.get('stream')}")
        with complete(file, "stream"):
            return cls._of(head, files)

    @classmethod
    def _of(cls, head: Mapping[str, Any], files: Mapping[str, bytes]) -> Self:
        """Return the stream with this header and these parts."""
        classes = {each.name: each for each in cls.models}
        stream = cls(model_of({"kind": ""} | head["model"], lambda name, _: classes[name]))
        if not isinstance(head["notes"], dict):
            raise UnsoundError("its notes have no names")
        stream.notes = head["notes"]
        stream._restore(Stored(head, files))
        return stream

    @abstractmethod
    def _parts(self) -> Parts:
        """Return everything that `_restore` needs, apart from the model."""

    @abstractmethod
    def _restore(self, stored: Stored) -> None:
        """Fill a new stream from a file; nothing may be used before `stored.settle()`."""


def check_bounds(probability: float, least: int, most: int) -> None:
    """Raise ParameterError if an argument of `decide` is invalid."""
    for name, value, rule in (("probability", probability, PROBABILITY), ("min", least, COUNT), ("max", most, COUNT)):
        if not rule.holds(value):
            raise ParameterError(f"{name} is {value!r}; it must be {rule.text}")
    if least > most:
        raise ParameterError(f"min is {least} and max is {most}; min must not exceed max")


def _percentages(reached: float, wanted: float) -> tuple[str, str]:
    """Return two probabilities as percentages; the first has as many digits, up to six, as it takes to be on the same
    side of the second and of 100 %.

    >>> _percentages(0.9496, 0.95), _percentages(0.998, 0.95)
    (('94.96 %', '95 %'), ('99.8 %', '95 %'))
    """
    for digits in range(7):
        text = f"{100 * reached:.{digits}f}"
        shown = float(text) / 100
        if reached in (wanted, 1.0) or ((shown > wanted) == (reached > wanted) and shown not in (wanted, 1.0)):
            break
    return f"{text} %", f"{100 * wanted:g} %"
