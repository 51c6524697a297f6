"""Types of the arguments of public functions, checked by their annotations before a function runs.

`checked` decorates a function or method: an argument annotated `int`, `float`, `bool`, `str`, `str | Path`, ... that is
something else raises ParameterError. Which values of a type are valid is checked by the function itself.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np

from ..errors import ParameterError, as_words
from ..kernels.layout import Floats

F = TypeVar("F", bound=Callable[..., Any])
MAX_PATH, MAX_NAME = 4096, 255  # bytes of a path, and of a name in it
MAX_WHOLE = 2**63 - 1  # of numpy and polars


class Kind(NamedTuple):
    """Values that an annotation allows."""

    holds: Callable[[Any], bool]
    words: str


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number, of Python or numpy, of at most 64 bits."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and abs(int(value)) <= MAX_WHOLE


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that a float can hold; not NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return float(value) == float(value)
    except OverflowError:
        return False


def is_path(value: object) -> bool:
    """Return whether a value is the name of a file that a system can have."""
    if not isinstance(value, (str, os.PathLike)) or value == "":  # which would be the folder here
        return False
    try:
        name = os.fsencode(Path(value))
    except (UnicodeEncodeError, TypeError):
        return False
    return b"\0" not in name and len(name) < MAX_PATH and all(len(part) <= MAX_NAME for part in name.split(b"/"))


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and _is_collection(value)


def _is_collection(value: object) -> bool:
    """Return whether a value has texts or numbers in any order: a list, a set, an array, a column."""
    return (
        isinstance(value, Collection)
        and not isinstance(value, (bytes, Mapping))
        and getattr(value, "ndim", 1) == 1
        and all(each is None or isinstance(each, (str, numbers.Real)) for each in value)
    )


def _is_run(value: object) -> bool:
    return any(each.__name__ == "Run" for each in type(value).__mro__)  # its package is above this one


KINDS: dict[str, Kind] = {
    "int": Kind(is_whole, "a whole number"),
    "float": Kind(is_number, "a number"),
    "bool": Kind(lambda value: isinstance(value, (bool, np.bool_)), "True or False"),
    "str": Kind(lambda value: isinstance(value, str), "text"),
    "Path": Kind(is_path, "the name of a file"),
    "Sequence[str]": Kind(_is_list, "a list of texts"),
    "Collection[str]": Kind(_is_collection, "a list of texts"),
    "Mapping[str, Any]": Kind(lambda value: isinstance(value, Mapping), "a mapping"),
    "Run": Kind(_is_run, "a crowdwise.Run"),
    "Checkpoint": Kind(lambda value: hasattr(value, "stages"), "the checkpoint of a fit"),
    "Callable": Kind(callable, "a function"),
}


def check_path(name: str, value: object) -> Path:
    """Return a path; what is none raises ParameterError."""
    _check(name, value, (KINDS["Path"],))
    return Path(value)  # type: ignore[arg-type]


def check_array(name: str, value: object, words: str) -> Floats:
    """Return an array of numbers; what is none raises ParameterError, which says in `words` what to give."""
    try:
        return np.asarray(value, np.float64)
    except Exception:  # of any class: the value may be any object
        raise ParameterError(f"{name} is {brief(value)}; give {words}") from None


def check_given(name: str, value: object, kind: type, words: str) -> None:
    """Raise ParameterError, which says in `words` what to give, for a value of another class; None is not given."""
    if value is not None and not isinstance(value, kind):
        raise ParameterError(f"{name} is {brief(value)}; give {words}")


def check_list(name: str, value: object, words: str) -> list[Any]:
    """Return a list; what is none raises ParameterError, which says in `words` what to give."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ParameterError(f"{name} is {brief(value)}; give {words}")
    try:
        return list(value)
    except Exception:
        raise ParameterError(f"{name} is {brief(value)}; give {words}") from None


def check_whole(name: str, value: object, least: int, more: str = "") -> None:
    """Raise ParameterError for what is no whole number of at least `least`; `more` ends the message."""
    if not is_whole(value) or value < least:
        raise ParameterError(f"{name} is {brief(value)}; it must be a whole number of at least {least}{more}")


def plain(value: Any) -> Any:
    """Return a number or text of numpy as one of Python; anything else as it is."""
    if not isinstance(value, np.generic):
        return value
    return float(value) if isinstance(value, np.longdouble) else value.item()


def items(value: Collection[Any]) -> list[Any]:
    """Return the items of a collection as values of Python; text is one item. Those of a set are sorted, as its own
    order changes from run to run."""
    if isinstance(value, str):
        return [value]
    found = list(map(plain, value))
    return sorted(found, key=str) if isinstance(value, Set) else found


def generator(seed: Any, *stream: int) -> np.random.Generator:
    """Return a generator of random numbers from a seed, or the generator that is given instead of one; anything else
    raises ParameterError. Functions with different numbers `stream` get different numbers from one seed."""
    if isinstance(seed, np.random.Generator):
        return seed
    parts = seed if isinstance(seed, (list, tuple)) and seed else [seed]
    if not all(is_whole(each) and each >= 0 for each in parts):
        raise ParameterError(
            f"seed is {brief(seed)}; it must be a whole number of at least 0 or a numpy.random.Generator"
        )
    return np.random.default_rng([*stream, *parts] if stream else seed)


def check_arguments(annotations: Mapping[str, object], values: Mapping[str, Any]) -> None:
    """Raise ParameterError for a value that is not of its annotated type; annotations that are not in `KINDS` allow
    anything."""
    for name, value in values.items():
        if name in annotations:
            _check(name, value, _kinds(str(annotations[name])))


def checked(function: F) -> F:
    """Check the types of the arguments of a function, by its annotations, before it runs."""
    rules = {name: _kinds(str(each)) for name, each in function.__annotations__.items() if name != "return"}
    rules = {name: kinds for name, kinds in rules.items() if kinds}
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        for name, value in (*zip(names, arguments, strict=False), *options.items()):
            if name in rules:
                _check(name, value, rules[name])
        return function(*arguments, **options)

    return call  # type: ignore[return-value]


@functools.cache
def _kinds(annotation: str) -> tuple[Kind, ...]:
    """Return what an annotation such as "str | Path | None" allows; nothing if it allows what is not in `KINDS`."""
    names = ["Callable" if each.startswith("Callable") else each for each in annotation.split(" | ")]
    if "Path" in names:
        names.remove("str")
    none = [NOTHING] if "None" in names else []
    known = [KINDS[each] for each in names if each in KINDS]
    return (*known, *none) if len(known) + len(none) == len(names) else ()


NOTHING = Kind(lambda value: value is None, "None")


def _check(name: str, value: object, kinds: Sequence[Kind]) -> None:
    if kinds and not any(each.holds(value) for each in kinds):
        wanted = " or ".join(each.words for each in kinds)
        raise ParameterError(f"{name} is {brief(value)}; it must be {wanted}")


def brief(value: object) -> str:
    """Return a value of the caller's for a message, whatever it is."""
    if isinstance(value, int) and abs(value) > MAX_WHOLE:
        return "a whole number beyond 64 bits"
    text = as_words(str(value) if isinstance(value, Path) else value, repr)
    return text if len(text) <= 200 else f"{text[:200]}..."
