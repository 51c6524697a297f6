"""The formats of annotation platforms: one file per format, found by itself; `FORMATS` has all of them by name.

To add a format, add one file with a class under `@register`, and a golden file to its test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import TypeVar

import polars as pl

from ...answers.columns import LABEL_ROLES, NONE_GIVEN
from .base import Format, Head

FORMATS: dict[str, Format] = {}
T = TypeVar("T", bound=type[Format])


def register(kind: T) -> T:
    """Add a format to the registry."""
    FORMATS[kind.name] = kind()
    return kind


def all_formats() -> dict[str, Format]:
    """Return every format by name, sorted by title."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(FORMATS.items(), key=lambda item: item[1].title.casefold()))


def find(head: Head, options: Mapping[str, object] = NONE_GIVEN) -> Format | None:
    """Return the format of a file that begins like this; None for a plain table, or for no known file. If
    the caller names the column of labels, a file whose fields are not those of one platform alone is a plain table."""
    if not head.columns:
        return None
    table = options.get("label") in head.columns and LABEL_ROLES.complete(head.columns, options)
    formats = [each for each in all_formats().values() if each.specific or not table]
    return next((each for each in formats if head.container in each.containers and each.recognise(head)), None)


def formats() -> pl.DataFrame:
    """Return the formats of platforms that are read and written: name, title, files, kinds of answers, statuses that
    are distinguished, unit of points, and whether `convert` and `export` write the format.

    >>> import crowdwise as cw
    >>> cw.formats().filter(name="prodigy").select("title", "kinds", "convert", "export").row(0)
    ('Prodigy', 'labels, points', True, True)
    """
    rows = [
        {
            "name": each.name, "title": each.title, "files": each.files, "kinds": ", ".join(each.kinds),
            "statuses": ", ".join(each.statuses), "unit": each.unit, "convert": bool(each.converted),
            "export": bool(each.returned),
        }
        for each in all_formats().values()
    ]  # fmt: skip
    return pl.DataFrame(rows)
