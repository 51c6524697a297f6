"""Reading files: tables of answers, gold and features, and saved results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..answers import KINDS, Answers, Pairs, Points, candidates, recognise
from ..answers.frames import to_frame
from ..answers.reading import given
from .chunks import Source, too_large
from .content import Content, read_content
from .features import Features, read_features
from .tables import file_name, files_of, read_table, read_tables

if TYPE_CHECKING:
    from ..engine import Progress


def read(
    path: Any,
    *,
    kind: str | Sequence[str] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    memory: str | float | None = None,
    scratch: str | Path | None = None,
    watch: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Any:
    """Read answers from a file: CSV, TSV or any delimiter, JSON, JSONL, Parquet, and gz of these; or from all files of
    a folder, all that match a pattern ("answers/*.csv"), or a frame of pandas, polars, arrow, DuckDB or Spark.

    The kind of answers is recognised by the columns: task, worker, label are `Labels`; image, worker, x, y are
    `Points`; left, right, worker, answer are `Pairs`. `kind` sets it explicitly ("labels", "points" or "pairs"). The
    other options are those of the class: `task`, `worker`, `label` name columns; `gold`, `jobs` and `box` can be files.

    Labels that need more than `memory` ("2GB"; by default what this process may use) are kept on disk in parts, in the
    folder `scratch` or a temporary one; they are fitted part by part. `watch` is called with the progress of that.

    >>> import crowdwise as cw, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "answers.csv").write_text("task,worker,label\\n001,ann,NA\\n001,bob,NA\\n")
    >>> cw.read(folder / "answers.csv").frame().rows()
    [('001', 'ann', 'NA'), ('001', 'bob', 'NA')]
    >>> _ = (folder / "clicks.csv").write_text("image,worker,x,y\\na,ann,3,4\\na,bob,3.5,4\\n")
    >>> cw.read(folder / "clicks.csv", box=(0, 0, 10, 10))
    Points(2 clicks, 1 image, 2 workers, 2 jobs)
    """
    given_options = {name: value for name, value in options.items() if value is not None}
    among = candidates(given_options, kind)  # raises an error for invalid options before the file is read
    limit = None if memory is None else _bytes(memory)
    recorded = given({}, format=format, delimiter=delimiter, encoding=encoding)
    if not isinstance(path, (str, Path)):
        frame = to_frame(path)
        return KINDS[recognise(frame.columns, given_options, among)](frame, **given_options)  # type: ignore[call-arg]
    if "labels" in among and str(path) != "-" and format in (None, "csv", "jsonl", "parquet", "cifar10h"):
        source = Source(files_of(path), format, delimiter, encoding)
        if too_large(source, limit):
            found = KINDS[recognise(source.columns(), given_options, among)]
            _read_tables(found, given_options, recorded, source.columns())
            if found.kind == "labels":
                from .large import split_labels
                from .stored import PARTS

                about = {"path": str(path), "options": recorded}
                place = None if scratch is None else Path(scratch) / PARTS
                return split_labels(source, limit, place, given_options, watch, about)
    table = read_tables(path, format, delimiter, encoding)
    found = KINDS[recognise(table.frame.columns, given_options, among)]
    _read_tables(found, given_options, recorded, table.frame.columns)
    read_as: dict[str, Any] = {"source": table.name, "notes": table.notes, "where": table.where, "options": recorded}
    answers = found(table.frame, **read_as, **given_options)  # type: ignore[call-arg]
    return answers.replaced(intake=replace(answers.intake, path=str(path)))


def _bytes(memory: str | float) -> int:
    from ..engine.resources import memory_size

    return memory_size(memory)


def _read_tables(kind: type[Answers], options: dict[str, Any], recorded: dict[str, Any], columns: list[str]) -> None:
    """Replace options that name a file, such as gold, by its table, and record the name."""
    for name in kind.tables:
        value = options.get(name)
        if isinstance(value, Path) or (isinstance(value, str) and value not in columns):
            recorded[name] = str(value)
            options[name] = read_table(value, None, None, None).frame


def read_points(path: str | Path, **options: Any) -> Points:
    """Read clicks on images: `read` with kind="points".

    >>> import crowdwise as cw, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "clicks.csv"
    >>> _ = file.write_text("image,worker,x,y\\na,ann,3,4\\na,bob,3.5,4\\n")
    >>> cw.read_points(file, box=(0, 0, 10, 10))
    Points(2 clicks, 1 image, 2 workers, 2 jobs)
    """
    return read(path, kind="points", **options)  # type: ignore[no-any-return]


def read_pairs(path: str | Path, **options: Any) -> Pairs:
    """Read same/different answers about pairs of items: `read` with kind="pairs".

    >>> import crowdwise as cw, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("left,right,worker,answer\\na,b,ann,same\\nb,a,bob,different\\n")
    >>> cw.read_pairs(file)
    Pairs(2 answers on 1 pair of 2 items, 2 workers)
    """
    return read(path, kind="pairs", **options)  # type: ignore[no-any-return]


def load(path: str | Path) -> Any:
    """Load a result of any kind that was saved by `save` or by the command line."""
    from ..aggregation import model_class
    from ..result.store import read as stored

    return stored(file_name(path), model_class)


__all__ = [
    "Content", "Features", "load", "read", "read_content", "read_features", "read_pairs", "read_points", "read_table",
]  # fmt: skip
