"""Files in: tables of answers and gold, and saved results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..answers import Labels
from ..answers.repeats import check_policy
from ..result import Result, store
from .features import Features, read_features
from .tables import read_table


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
    check_policy(options.get("duplicates"))
    table = read_table(path, format, delimiter, encoding)
    told = {"format": format, "delimiter": delimiter, "encoding": encoding}
    words = [word for name, value in told.items() if value is not None for word in (f"--{name}", value)]
    if isinstance(gold, Path) or (isinstance(gold, str) and gold not in table.frame.columns):
        words += ["--gold", Path(gold).name]
        gold = read_table(gold, None, None, None).frame
    return Labels(
        table.frame, gold=gold, source=table.name, notes=table.notes, where=table.where, options=words, **options
    )


def load(path: str | Path) -> Result:
    """A result that `Result.save`, `crowdwise aggregate` or `crowdwise learn` wrote."""
    return store.read(Path(path), _model)


def _model(name: str, beside: bool, settings: dict[str, Any]) -> Any:
    """The model of a result, also one that goes with a classifier."""
    from ..labels import MODELS, model

    if name in MODELS and not beside:
        return model(name, **settings)
    from ..learn.sides import revived

    return revived(name, beside, settings)


__all__ = ["Features", "load", "read", "read_features", "read_table"]
