"""Files in: tables of answers and gold, and saved results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..answers import Labels, Pairs, Points
from ..answers.pairs import check_rule
from ..answers.repeats import check_policy
from ..result import PairsResult, PointsResult, Result, store
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
    words = _told(format, delimiter, encoding)
    if isinstance(gold, Path) or (isinstance(gold, str) and gold not in table.frame.columns):
        words += ["--gold", Path(gold).name]
        gold = read_table(gold, None, None, None).frame
    return Labels(
        table.frame, gold=gold, source=table.name, notes=table.notes, where=table.where, options=words, **options
    )


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
    table = read_table(path, format, delimiter, encoding)
    words = _told(format, delimiter, encoding)
    if isinstance(box, (str, Path)):
        words += ["--box", Path(box).name]
        box = read_table(box, None, None, None).frame
    elif isinstance(box, (tuple, list)):
        words += ["--box", ",".join(f"{float(v):g}" for v in box)]
    if isinstance(jobs, (str, Path)):
        words += ["--jobs", Path(jobs).name]
        jobs = read_table(jobs, None, None, None).frame
    return Points(
        table.frame,
        jobs=jobs,
        box=box,
        source=table.name,
        notes=table.notes,
        where=table.where,
        options=words,
        **options,
    )


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
    check_rule(options.get("contradictions", "drop"))
    table = read_table(path, format, delimiter, encoding)
    words = _told(format, delimiter, encoding)
    return Pairs(table.frame, source=table.name, notes=table.notes, where=table.where, options=words, **options)


def _told(format: str | None, delimiter: str | None, encoding: str | None) -> list[str]:
    told = {"format": format, "delimiter": delimiter, "encoding": encoding}
    return [word for name, value in told.items() if value is not None for word in (f"--{name}", value)]


def load(path: str | Path) -> Result | PointsResult | PairsResult:
    """A result that `save`, `crowdwise aggregate`, `crowdwise learn`, `crowdwise points` or `crowdwise pairs` wrote."""
    kind = store.kind_of(Path(path))
    if kind == "pairs":
        from ..pairs import pair_model

        return store.read_pairs(Path(path), lambda name, settings: pair_model(name, **settings))
    if kind == "points":
        from ..points import point_model

        return store.read_points(Path(path), lambda name, settings: point_model(name, **settings))
    return store.read(Path(path), _model)


def _model(name: str, beside: bool, settings: dict[str, Any]) -> Any:
    """The model of a result, also one that goes with a classifier."""
    from ..labels import MODELS, model

    if name in MODELS and not beside:
        return model(name, **settings)
    from ..learn.sides import revived

    return revived(name, beside, settings)


__all__ = ["Features", "load", "read", "read_features", "read_pairs", "read_points", "read_table"]
