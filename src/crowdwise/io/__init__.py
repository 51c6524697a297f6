"""Reading files: tables of answers, gold and features, and saved results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from ..answers import KINDS, Answers, Pairs, Points, candidates, recognise
from ..answers.frames import to_frame
from ..answers.reading import given
from .chunks import Source, too_large
from .content import Content, read_content
from .exported import answers_of, read_files, read_frame
from .features import Features, read_features
from .formats.base import Head
from .json_files import HEAD_RECORDS
from .judgements import check_kept
from .opening import Unchanged, opened
from .options import ExportOptions
from .parts import Reading, head_of
from .tables import file_name, files_of, read_table, read_tables

if TYPE_CHECKING:
    from ..engine import Progress


def read(
    path: Any,
    *,
    kind: str | Sequence[str] | None = None,
    format: str | None = None,
    question: str | None = None,
    keep: Sequence[str] | str | None = None,
    sets: str | None = None,
    pseudonymise: str | Path | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    max_expanded: str | float | None = None,
    memory: str | float | None = None,
    scratch: str | Path | None = None,
    watch: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Any:
    """Read answers from a file: an export of an annotation platform (see `crowdwise.formats()`), or a table: CSV, TSV
    or any delimiter, JSON, JSONL, Parquet, Arrow, Excel, and gz of these. `path` may also be a zip, all files of a
    folder, all that match a pattern ("answers/*.csv"), or a frame of pandas, polars, arrow, DuckDB or Spark.

    The kind of answers is recognised by the columns: task, worker, label are `Labels`; image, worker, x, y are
    `Points`; left, right, worker, answer are `Pairs`. `kind` sets it explicitly ("labels", "points" or "pairs"). The
    other options are those of the class: `task`, `worker`, `label` name columns; `gold`, `jobs` and `box` can be files.

    Exports are recognised by their content; `format` sets the format. If an export has several questions, `question`
    chooses one. Rows that are not votes (skipped, rejected, draft, expired, test, gold, prediction) are left out and
    counted by reason, unless they are listed in `keep`. `sets` says what to do with several labels in one answer:
    "split" makes each label a yes/no task, "joined" counts the set as one label. E-mail addresses of workers are
    replaced by digests, unless `keep` has "personal"; `pseudonymise` names a file with a key, which is made if it is
    not there, and replaces all ids of workers by digests with that key.

    Labels that need more than `memory` ("2GB"; by default what this process may use) are kept on disk in parts, in the
    folder `scratch` or a temporary one; they are fitted part by part. `watch` is called with the progress of that.
    `max_expanded` allows compressed files to expand to more than 100 times their size.

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
    limits = {"memory": None if memory is None else _bytes(memory), "scratch": scratch, "watch": watch}
    exports = ExportOptions(question, check_kept(keep), sets, pseudonymise)
    how = Reading(format, delimiter, encoding, None if max_expanded is None else _bytes(max_expanded))
    exports.check(how)
    recorded = given(
        {}, format=format, delimiter=delimiter, encoding=encoding, max_expanded=max_expanded, question=question,
        keep=list(exports.keep) or None, sets=sets, pseudonymise=pseudonymise,
    )  # fmt: skip
    call = _Call(given_options, among, recorded, how, exports, limits)
    if not isinstance(path, (str, Path)):
        return _read_frame(to_frame(path), call)
    with opened(path, how.max_expanded) as place:
        answers = _read_files(place, str(path), call)
    return answers.replaced(intake=replace(answers.intake, path=str(path)))


class _Call(NamedTuple):
    """The arguments of `read`."""

    options: dict[str, Any]  # of the class of answers
    among: list[str]  # kinds of answers that the table may hold
    recorded: dict[str, Any]
    how: Reading
    exports: ExportOptions
    limits: dict[str, Any]


def _read_frame(frame: pl.DataFrame, call: _Call) -> Any:
    head = Head("table", "table", "frame", tuple(frame.columns), tuple(frame.head(HEAD_RECORDS).to_dicts()))
    format = call.exports.format_of([head], call.how.format, call.options)
    if format is not None:
        wanted, options = call.exports.wanted(call.options)
        return answers_of(lambda: read_frame(frame, head, format, wanted), wanted, call.among, options, call.recorded)
    return KINDS[recognise(frame.columns, call.options, call.among)](frame, **call.options)  # type: ignore[call-arg]


def _read_files(place: Path, path: str, call: _Call) -> Any:
    """Read files on disk: an export, labels that are larger than memory, or a table."""
    how, files = call.how, files_of(place)
    heads = [head_of(file, how) for file in files]
    format = call.exports.format_of(heads, how.format, call.options)
    if format is not None:
        wanted, options = call.exports.wanted(call.options)
        _read_tables([KINDS[kind] for kind in call.among], options, call.recorded, [])
        return answers_of(
            lambda: read_files(files, heads, format, how, wanted), wanted, call.among, options, call.recorded
        )
    as_table = (how.format, how.delimiter, how.encoding)
    if "labels" in call.among and how.format in (None, "csv", "jsonl", "parquet", "cifar10h"):
        source = Source(files, *as_table, how.max_expanded)
        if too_large(source, call.limits["memory"]):
            found = KINDS[recognise(source.columns(), call.options, call.among)]
            _read_tables([found], call.options, call.recorded, source.columns())
            if found.kind == "labels":
                from .large import split_labels
                from .stored import PARTS

                about = {"path": path, "options": call.recorded}
                scratch = call.limits["scratch"]
                parts = None if scratch is None else Path(scratch) / PARTS
                return split_labels(source, call.limits["memory"], parts, call.options, call.limits["watch"], about)
    seen = Unchanged(files)
    table = read_tables(place, *as_table, how.max_expanded)
    seen.check()
    found = KINDS[recognise(table.frame.columns, call.options, call.among)]
    _read_tables([found], call.options, call.recorded, table.frame.columns)
    read_as: dict[str, Any] = {
        "source": table.name, "notes": table.notes, "where": table.where, "options": call.recorded,
    }  # fmt: skip
    return found(table.frame, **read_as, **call.options)  # type: ignore[call-arg]


def _bytes(memory: str | float) -> int:
    from ..engine.resources import memory_size

    return memory_size(memory)


def _read_tables(
    kinds: Sequence[type[Answers]], options: dict[str, Any], recorded: dict[str, Any], columns: list[str]
) -> None:
    """Replace options that name a file, such as gold, by its table, and record the name."""
    for name in dict.fromkeys(name for kind in kinds for name in kind.tables):
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
