"""Everything that Crowdwise raises on purpose.

    CrowdwiseError
    +-- DataError              the answers or a file cannot be used as they are        exit status 1
    |   +-- EmptyDataError     no answers
    |   +-- ColumnError        a column is missing, doubled or of a kind that cannot be used
    |   +-- DuplicateError     a worker answered a task more than once, and no rule was given
    |   +-- FileError          a file cannot be read: absent, torn, in an unknown encoding
    |   +-- ChecksumError      a saved result is not what was written
    |   +-- MemoryNeedError    the fit would need more memory than there is
    |   +-- UnknownIdError     no such task or worker in this result
    |   +-- FeatureError       features cannot be used, or do not go with the answers (also a ValueError)
    +-- ParameterError         a parameter has a wrong value (also a ValueError)       exit status 2
    +-- MissingError           a library of an extra is not installed (an ImportError) exit status 2
    +-- Interrupted            a signal stopped the fit; carries what was reached      exit status 130 or 143

Each message says what, where, what was got and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class CrowdwiseError(Exception):
    """The root of all errors raised on purpose."""

    exit_status = 1


class DataError(CrowdwiseError):
    """The answers or a file cannot be used as they are."""


class EmptyDataError(DataError):
    """There are no answers."""


class ColumnError(DataError):
    """A column is missing, doubled or of a kind that cannot be used."""


class DuplicateError(DataError):
    """A worker answered a task more than once and no rule was given."""


class FileError(DataError):
    """A file cannot be read."""


class ChecksumError(DataError):
    """A saved result is not what was written."""


class MemoryNeedError(DataError):
    """The fit would need more memory than there is."""


class UnknownIdError(DataError, KeyError):
    """No such task or worker."""

    def __str__(self) -> str:
        return str(self.args[0])


class FeatureError(DataError, ValueError):
    """Features cannot be used, or do not go with the answers."""


class ParameterError(CrowdwiseError, ValueError):
    """A parameter has a wrong value."""

    exit_status = 2


class MissingError(CrowdwiseError, ImportError):
    """A library that an extra brings is not installed."""

    exit_status = 2


class Interrupted(CrowdwiseError):  # noqa: N818 - nothing is wrong with the data
    """A signal stopped the fit; `checkpoint` holds what was reached."""

    exit_status = 130

    def __init__(self, message: str, checkpoint: Any = None) -> None:
        super().__init__(message)
        self.checkpoint = checkpoint


def nearest(word: str, among: Iterable[object]) -> str:
    """' Did you mean 'label'?' when some of `among` is close to `word`, else ''.

    >>> nearest("lable", ["task", "label"])
    " Did you mean 'label'?"
    """
    names = {str(name).casefold(): str(name) for name in among}
    close = difflib.get_close_matches(word.casefold(), names, n=1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""
