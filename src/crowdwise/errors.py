"""The exceptions of Crowdwise.

    CrowdwiseError
    +-- DataError              the answers or a file cannot be used                    exit status 1
    |   +-- EmptyDataError     there are no answers
    |   +-- ColumnError        a column is missing, duplicated or of an unusable type
    |   +-- DuplicateError     a worker answered a task more than once, and no rule was given
    |   +-- FileError          a file cannot be read: missing, truncated or in an unknown encoding
    |   +-- ChecksumError      a saved result differs from what was written
    |   +-- MemoryNeedError    the fit would need more memory than is available
    |   +-- UnknownIdError     no such task or worker in this result
    |   +-- QuestionError      an export has several questions, and none is chosen
    |   +-- FeatureError       features cannot be used, or do not match the answers (also a ValueError)
    |   |   +-- FeatureTypeError   features are of a type that holds no numbers (also a TypeError)
    +-- ParameterError         a parameter has an invalid value (also a ValueError)    exit status 2
    |   +-- CheckpointError    a checkpoint belongs to a different fit
    +-- MissingError           an optional library is not installed (an ImportError)   exit status 2
    +-- ForkError              a forked process cannot use tables                      exit status 1
    +-- Interrupted            a signal stopped the fit; it has a checkpoint           exit status 130 or 143

Each message says what is wrong, where, what was found and what to do. Options in messages are written with `option`,
so that a Python user reads `label='verdict'` and a shell user `--label verdict`.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

_OPTION = re.compile("\x02([^\x03]*)\x03([^\x03]*)\x03")  # control characters that occur in no message


def option(name: str, *values: object) -> str:
    """Return an option for use in a message; the message shows it as a Python argument or as a shell option.

    >>> str(ParameterError(f"Use {option('duplicates', 'last')}"))
    "Use duplicates='last'"
    >>> for_shell(f"Use {option('duplicates', 'last')}")
    'Use --duplicates last'
    """
    python = f"{name}={', '.join(map(repr, values))}" if len(values) < 2 else f"{name}={list(values)!r}"
    shell = f"--{name.replace('_', '-')}"
    if values and values[0] is not True:
        shell += " " + shlex.quote(",".join(map(as_words, values)))
    return f"\x02{python if values else f'{name}='}\x03{shell}\x03"


def as_words(value: object, form: Callable[[object], str] = str) -> str:
    """Return a value of the caller's as text, by `str` or `repr`, whatever it is."""
    try:
        return form(value)
    except Exception:
        return f"a {type(value).__name__}"


def model_setting(name: str, value: object) -> str:
    """Return a hyperparameter for use in a message: an argument in Python, `--set` on the command line."""
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"\x02{name}={value!r}\x03--set {shlex.quote(f'{name}={text}')}\x03"


def phrase(python: str, shell: str) -> str:
    """Text inside a message that differs between Python and the command line.

    >>> advice = phrase("features=(ids, X)", flags(features="FILE"))
    >>> for_python(f"Give {advice}"), for_shell(f"Give {advice}")
    ('Give features=(ids, X)', 'Give --features FILE')
    """
    return f"\x02{python}\x03{shell}\x03"


def flags(**options: object) -> str:
    """Return options as they are typed on the command line.

    >>> flags(workers="adaptive", gold_column="truth")
    '--workers adaptive --gold-column truth'
    """
    return " ".join(for_shell(option(name, value)) for name, value in options.items())


def for_python(message: str) -> str:
    """Return the message with options as Python arguments."""
    return _OPTION.sub(lambda found: found[1], message)


def for_shell(message: str) -> str:
    """Return the message with options as command-line options."""
    return _OPTION.sub(lambda found: found[2], message)


class CrowdwiseError(Exception):
    """The base class of all exceptions of Crowdwise."""

    exit_status = 1

    def __str__(self) -> str:
        return for_python(str(self.args[0])) if self.args else ""


class DataError(CrowdwiseError):
    """The answers or a file cannot be used."""


class EmptyDataError(DataError):
    """There are no answers."""


class ColumnError(DataError):
    """A column is missing, duplicated or of an unusable type."""


class DuplicateError(DataError):
    """A worker answered a task more than once, and no rule was given."""


class FileError(DataError):
    """A file cannot be read."""


class ChecksumError(DataError):
    """A saved result differs from what was written."""


class MemoryNeedError(DataError):
    """The fit would need more memory than is available."""


class QuestionError(DataError):
    """An export has several questions, or points of several classes, and none is chosen. `questions` is their table."""

    questions: Any = None


class UnknownIdError(DataError, KeyError):
    """There is no such task or worker."""

    __str__ = CrowdwiseError.__str__  # a KeyError would quote the message


class FeatureError(DataError, ValueError):
    """Features cannot be used, or do not match the answers."""


class FeatureTypeError(FeatureError, TypeError):
    """Features are of a type that holds no numbers, which is a TypeError to scikit-learn."""


class ParameterError(CrowdwiseError, ValueError):
    """A parameter has an invalid value."""

    exit_status = 2


class CheckpointError(ParameterError):
    """A checkpoint belongs to a different fit."""


class MissingError(CrowdwiseError, ImportError):
    """An optional library is not installed."""

    exit_status = 2


class ForkError(CrowdwiseError):
    """A forked process cannot use tables, because polars cannot work in it."""


class Interrupted(CrowdwiseError):  # noqa: N818 - not an error in the data
    """A signal stopped the fit. To continue it, pass `checkpoint` as `Run(resume=...)`."""

    exit_status = 130

    def __init__(self, message: str, checkpoint: Any = None) -> None:
        super().__init__(message)
        self.checkpoint = checkpoint


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise ParameterError if the value is not one of the choices.

    >>> check_choice("outside", "keep", ("drop", "error"))
    Traceback (most recent call last):
    crowdwise.errors.ParameterError: outside is 'keep'; it can be 'drop' or 'error'
    """
    known = list(choices)
    if not any(isinstance(value, type(choice)) and value == choice for choice in known):
        *first, last = (repr(choice) for choice in known if choice is not None)
        raise ParameterError(f"{name} is {value!r}; it can be {', '.join(first)} or {last}")


def nearest(word: object, among: Iterable[object]) -> str:
    """Return " Did you mean 'label'?" if one of `among` is close to `word`, else "".

    >>> nearest("lable", ["task", "label"])
    " Did you mean 'label'?"
    """
    names = {str(name).casefold(): str(name) for name in among}
    close = difflib.get_close_matches(as_words(word).casefold(), names, n=1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""
