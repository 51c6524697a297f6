"""Files in: tables of answers and gold, and saved results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ..answers import Labels, Pairs, Points
from ..answers.label_rows import POLICIES
from ..answers.pair_rows import CONTRADICTIONS
from ..answers.reading import given
from ..errors import check_choice
from .features import Features, read_features
from .tables import file_name, read_table


def read(
    path: str | Path,
    *,
    gold: Any = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> Labels:
    """Answers from a file: CSV, TSV or any delimiter, JSON, JSONL, Parquet, and gz of these.

    `gold` is another file, a table, a mapping, or the name of a column. Further options are those of `Labels`: `task`,
    `worker`, `label` name the columns, `duplicates` says what to do when a worker answers a task twice.

    >>> import crowdwise as cw, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = file.write_text("task,worker,label\\n001,ann,NA\\n001,bob,NA\\n")
    >>> cw.read(file).frame().rows()
    [('001', 'ann', 'NA'), ('001', 'bob', 'NA')]
    """
    check_choice("duplicates", options.get("duplicates"), POLICIES)  # before anything is read
    frame, about = _opened(path, format, delimiter, encoding)
    if isinstance(gold, Path) or (isinstance(gold, str) and gold not in frame.columns):
        gold = _also(gold, "gold", about)
    return Labels(frame, gold=gold, **about, **options)


def read_points(
    path: str | Path,
    *,
    jobs: Any = None,
    box: Any = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> Points:
    """Clicks from a file of any kind that `read` takes. `jobs` and `box` are files, too, or what `Points` takes; other
    options are those of `Points`.

    >>> import crowdwise as cw, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "clicks.csv"
    >>> _ = file.write_text("image,worker,x,y\\na,ann,3,4\\na,bob,3.5,4\\n")
    >>> cw.read_points(file, box=(0, 0, 10, 10))
    Points(2 clicks, 1 image, 2 workers, 2 jobs)
    """
    frame, about = _opened(path, format, delimiter, encoding)
    box, jobs = (
        _also(each, name, about) if isinstance(each, (str, Path)) else each
        for name, each in (("box", box), ("jobs", jobs))
    )
    return Points(frame, jobs=jobs, box=box, **about, **options)


def read_pairs(
    path: str | Path,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> Pairs:
    """Same/different answers from a file of any kind that `read` takes; other options are those of `Pairs`.

    >>> import crowdwise as cw, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("left,right,worker,answer\\na,b,ann,same\\nb,a,bob,different\\n")
    >>> cw.read_pairs(file)
    Pairs(2 answers on 1 pair of 2 items, 2 workers)
    """
    check_choice("contradictions", options.get("contradictions", "drop"), CONTRADICTIONS)
    frame, about = _opened(path, format, delimiter, encoding)
    return Pairs(frame, **about, **options)


def _opened(
    path: str | Path, format: str | None, delimiter: str | None, encoding: str | None
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """A table, and what answers are to record of where it comes from."""
    table = read_table(path, format, delimiter, encoding)
    options = given({}, format=format, delimiter=delimiter, encoding=encoding)
    return table.frame, {"source": table.name, "notes": table.notes, "where": table.where, "options": options}


def _also(path: str | Path, name: str, about: dict[str, Any]) -> pl.DataFrame:
    """A further table, which is recorded as an option."""
    about["options"][name] = Path(path).name
    return read_table(path, None, None, None).frame


def load(path: str | Path) -> Any:
    """A result of any kind that was saved, by `save` or from the command line."""
    from ..aggregation import model_class
    from ..result.store import read as stored

    return stored(file_name(path), model_class)


__all__ = ["Features", "load", "read", "read_features", "read_pairs", "read_points", "read_table"]
