"""Reading files: tables of answers, gold and features, and saved results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from ..answers import KINDS, Answers, Pairs, Points, candidates, recognise
from ..answers.arguments import check_arguments, checked
from ..answers.columns import LABEL_ROLES
from ..answers.frames import Handed, to_frame
from ..answers.reading import given
from ..errors import ColumnError, CrowdwiseError, DataError, FileError, ParameterError, option
from ..limits import enough_memory
from .chunks import Source, too_large
from .content import Content, read_content
from .exported import answers_of, read_files, read_frame
from .features import Features, read_features
from .formats.base import Format, Head
from .json_files import HEAD_RECORDS
from .judgements import Export, Wanted, check_kept
from .opening import Unchanged, opened
from .options import ExportOptions
from .parts import head_of
from .personal import PERSONAL, protected
from .tables import Reading, file_name, files_of, read_table, read_tables, size_of

if TYPE_CHECKING:
    from ..engine import Progress
    from .conversion import Converted
    from .returned import Returned


FILE_COLUMN = "file"  # as `worker`: the name of the file that a row is from
# Options of `read` that are recorded with the answers, and all that are not options of a class of answers.
RECORDED = (
    "format", "delimiter", "encoding", "sheet", "max_expanded", "question", "keep", "sets", "pseudonymise",
)  # fmt: skip
OWN = ("kind", *RECORDED, "memory", "scratch", "watch")
OF_EXPORTS = ("task", "image", "worker", "label")  # options that name fields of an export, whatever the kind


@checked
def read(
    path: Any,
    *,
    kind: str | Sequence[str] | None = None,
    format: str | None = None,
    question: str | None = None,
    keep: Collection[str] | str | None = None,
    sets: str | None = None,
    pseudonymise: str | Path | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    max_expanded: str | float | None = None,
    memory: str | float | None = None,
    scratch: str | Path | None = None,
    watch: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Any:
    """Read answers from a file: an export of an annotation platform (see `crowdwise.formats()`), or a table: CSV, TSV
    or any delimiter, JSON, JSONL, Parquet, Arrow, Excel, and gz of these. `path` may also be a zip, all files of a
    folder, all that match a pattern ("answers/*.csv"), or a frame of pandas, polars, arrow, DuckDB or Spark.

    Of an Excel workbook, `sheet` names the sheet; by default, it is the first that has rows. With `worker="file"`, the
    worker is the name of the file, where a folder has one for each.

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
    call = _call(
        kind=kind, format=format, question=question, keep=keep, sets=sets, pseudonymise=pseudonymise,
        delimiter=delimiter, encoding=encoding, sheet=sheet, max_expanded=max_expanded, memory=memory, scratch=scratch,
        watch=watch,
        **options,
    )  # fmt: skip
    if not isinstance(path, (str, Path)):
        with enough_memory("reading"):
            return _read_frame(to_frame(path), call)
    with enough_memory(f"reading {path}"), opened(path, call.how.max_expanded) as place:
        return _read_files(place, str(path), call)


@checked
def is_export(path: str | Path, **options: Any) -> bool:
    """Return whether a file is an export of a platform; options are those of `read`."""
    call = _call(**options)
    with opened(path, call.how.max_expanded) as place:
        return _format_of(files_of(place), call)[1] is not None


class _Call(NamedTuple):
    """The arguments of `read`."""

    options: dict[str, Any]  # of the class of answers
    among: list[str]  # kinds of answers that the table may hold
    among_questions: list[str]  # kinds of answers that the question of an export may have
    recorded: dict[str, Any]
    how: Reading
    exports: ExportOptions
    limits: dict[str, Any]

    def wanted(self, whole: bool) -> tuple[Wanted, dict[str, Any]]:
        """Return what is wanted of an export, and the options of the class of answers."""
        wanted, options = self.exports.wanted(self.options)
        return wanted._replace(whole=whole), options


def _call(**options: Any) -> _Call:
    """Check all arguments of `read` before a file is read."""
    own = {name: options.pop(name, None) for name in OWN}
    check_arguments({name: f"{each} | None" for name, each in read.__annotations__.items()}, own)
    named = {name: value for name, value in options.items() if value is not None}
    among = candidates(named, own["kind"])
    unnamed = {name: value for name, value in named.items() if name not in OF_EXPORTS}
    memory, expanded = (size_of(name, own[name]) for name in ("memory", "max_expanded"))
    limits = {"memory": memory, "scratch": own["scratch"], "watch": own["watch"]}
    exports = ExportOptions(own["question"], check_kept(own["keep"]), own["sets"], own["pseudonymise"])
    how = Reading(own["format"], own["delimiter"], own["encoding"], expanded, own["sheet"])
    exports.check(how)
    recorded = given({}, **{name: own[name] for name in RECORDED} | {"keep": list(exports.keep) or None})
    return _Call(named, among, candidates(unnamed, own["kind"]), recorded, how, exports, limits)


class _Found(NamedTuple):
    """An export that was recognised, and how it is read."""

    read: Callable[[], Export]
    wanted: Wanted
    options: dict[str, Any]  # of the class of answers


def _export_of_frame(frame: pl.DataFrame, call: _Call, whole: bool = False) -> _Found | None:
    """Return the export in a frame; None for a plain table."""
    head = Head("table", "table", "frame", tuple(frame.columns), tuple(frame.head(HEAD_RECORDS).to_dicts()))
    format = call.exports.format_of([head], call.how.format, call.options)
    if format is None:
        return None
    wanted, options = call.wanted(whole)
    return _Found(lambda: read_frame(frame, head, format, wanted), wanted, options)


def _export_of_files(files: Sequence[Path], call: _Call, whole: bool = False) -> _Found | None:
    """Return the export in files; None for plain tables."""
    heads = [head_of(file, call.how) for file in files]
    try:
        format = call.exports.format_of(heads, call.how.format, call.options)
    except CrowdwiseError:
        if not any(head.columns for head in heads):  # an empty or damaged file: reading it says what is wrong
            read_table(files[0], call.how._replace(format=None))
        raise
    if format is None:
        return None
    wanted, options = call.wanted(whole)
    return _Found(lambda: read_files(files, heads, format, call.how, wanted), wanted, options)


def _format_of(files: Sequence[Path], call: _Call) -> tuple[list[Head], Format | None]:
    heads = [head_of(file, call.how) for file in files]
    return heads, call.exports.format_of(heads, call.how.format, call.options)


def _read_frame(frame: pl.DataFrame, call: _Call) -> Any:
    found = _export_of_frame(frame, call)
    if found is not None:
        return answers_of(*found, among=call.among_questions, recorded=call.recorded, path="")
    kind = KINDS[recognise(frame.columns, call.options, call.among)]
    if call.exports.pseudonymise is not None:  # columns of a frame are the caller's own: all of them are kept
        frame, _ = protected(frame, kind.roles, call.options, [PERSONAL], call.exports.key())
    return kind(frame, **call.options)  # type: ignore[call-arg]


def _read_files(place: Path, path: str, call: _Call) -> Any:
    """Read files on disk: an export, labels that are larger than memory, or a table."""
    how, files = call.how, files_of(place)
    export = _export_of_files(files, call)
    if export is not None:
        _read_tables([KINDS[kind] for kind in call.among_questions], call, export.options, [])
        return answers_of(*export, among=call.among_questions, recorded=call.recorded, path=path)
    if "labels" in call.among and how.format in (None, "csv", "jsonl", "parquet", "cifar10h"):
        source = Source(files, how.format, how.delimiter, how.encoding, how.max_expanded)
        if too_large(source, call.limits["memory"]):
            found = KINDS[recognise(source.columns(), call.options, call.among)]
            _read_tables([found], call, call.options, source.columns())
            if found.kind == "labels":
                if call.exports.pseudonymise is not None:
                    raise ParameterError(f"{option('pseudonymise')} is for files that fit in memory; omit it")
                from .large import split_labels
                from .stored import PARTS

                about = {"path": path, "options": call.recorded}
                scratch = call.limits["scratch"]
                parts = None if scratch is None else Path(scratch) / PARTS
                return split_labels(source, call.limits["memory"], parts, call.options, call.limits["watch"], about)
    return _read_table(place, files, path, call)


def _read_table(place: Path, files: Sequence[Path], path: str, call: _Call) -> Any:
    """Read a table in files that fit in memory."""
    seen = Unchanged(files)
    table = read_tables(place, call.how, FILE_COLUMN if call.options.get("worker") == FILE_COLUMN else None)
    seen.check()
    columns, notes = table.frame.columns, table.notes
    found = KINDS[recognise(columns, call.options, call.among)]
    _read_tables([found], call, call.options, columns)
    frame, personal = protected(table.frame, found.roles, call.options, call.exports.keep, call.exports.key())
    read_as: dict[str, Any] = {
        "source": table.name, "notes": (*notes, *personal), "where": table.where, "options": call.recorded,
    }  # fmt: skip
    handed = Handed(frame)
    del table, frame  # a large table is freed as soon as it is coded
    try:
        answers: Answers = found(handed, **read_as, **call.options)  # type: ignore[call-arg]
    except ColumnError as error:
        without = not {"worker", "anonymous", "wide"} & {*call.options} and LABEL_ROLES.guess("worker", columns) is None
        if len(files) > 1 and found.kind == "labels" and without:
            each = option("worker", FILE_COLUMN)
            raise ColumnError(f"{error.args[0]}. If each file is the work of one worker, use {each}") from error
        if any(note.startswith("sheet ") for note in notes):
            raise ColumnError(f"{error.args[0]}. This is {'; '.join(notes)}") from error
        raise
    return answers.replaced(intake=replace(answers.intake, path=path))


@enough_memory("convert")
@checked
def convert(
    path: Any, out: str | Path, to: str | None = None, *, excel_safe: bool = False, **options: Any
) -> Converted:
    """Write all judgements in an export or a table as another file: one table with a row per judgement (CSV, JSONL or
    Parquet, by the ending of `out`), or a file of the platform `to`; `crowdwise.formats()` says which can be written.

    The table keeps every question, and rows that are not votes with their status; `crowdwise.read` reads it again. A
    file of a platform holds what the platform knows; the rest is counted in `left_out` of what is returned. Options are
    those of `read`.

    >>> import crowdwise as cw, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> answers = {"task": ["1", "1"], "worker": ["ann", "bob"], "label": ["cat", "dog"]}
    >>> cw.convert(answers, folder / "tasks.json", "label-studio").rows
    2
    >>> cw.read(folder / "tasks.json").frame().rows()
    [('1', 'ann', 'cat'), ('1', 'bob', 'dog')]
    """
    from .conversion import table_of, table_of_answers, target, written

    place, name = Path(out), target(to, Path(out))
    call = _call(**options)

    def judgements(found: _Found | None, otherwise: Callable[[], Any]) -> pl.DataFrame:
        if found is None:
            return table_of_answers(otherwise())
        return table_of(found.read(), found.wanted.question)

    if not isinstance(path, (str, Path)):
        frame = to_frame(path)
        rows = judgements(_export_of_frame(frame, call, whole=True), lambda: _read_frame(frame, call))
    else:
        with opened(path, call.how.max_expanded) as source:
            files = files_of(source)
            refuse_replacing(place, (Path(path), *files))
            found = _export_of_files(files, call, whole=True)
            rows = judgements(found, lambda: _read_files(source, str(path), call))
    return written(rows, name, place, excel_safe)


def refuse_replacing(place: Path, inputs: Iterable[Path]) -> None:
    """Raise FileError if an output would replace a file that is read, which has more than the output."""
    if place.exists() and any(each.exists() and place.samefile(each) for each in inputs):
        raise FileError(f"{place} is read, and the output would replace it. Name another file")


@enough_memory("reading")
@checked
def questions(path: Any, **options: Any) -> pl.DataFrame:
    """Return the questions in an export of a platform: question, kind ("labels", "points", "pairs", or "text" for what
    cannot be aggregated), answers that count, how many of them are sets of several labels, and classes of points.
    Options are those of `read`. A plain table has none: it raises DataError.

    >>> import crowdwise as cw, polars as pl
    >>> rows = {"task": ["1", "1"], "worker": ["ann", "ann"], "question": ["sees", "mood"], "kind": ["labels"] * 2,
    ...         "label": ["cat", "calm"], "status": ["ok"] * 2, "source_row": [1, 2]}
    >>> cw.questions(pl.DataFrame(rows)).select("question", "kind", "answers").rows()
    [('mood', 'labels', 1), ('sees', 'labels', 1)]
    """
    from .asked import question_table

    call = _call(**options)
    if not isinstance(path, (str, Path)):
        found = _export_of_frame(to_frame(path), call)
        name, table = "this table", None if found is None else question_table(found.read())
    else:
        with opened(path, call.how.max_expanded) as source:
            found = _export_of_files(files_of(source), call)
            name, table = str(path), None if found is None else question_table(found.read())
    if table is None:
        raise DataError(
            f"{name} is not an export of a known platform, so it has no questions. Read it with crowdwise.read"
        )
    return table


@enough_memory("export")
@checked
def export(
    result: Any,
    to: str,
    folder: str | Path,
    *,
    original: str | Path | None = None,
    least: float = 0.9,
    excel_safe: bool = False,
) -> Returned:
    """Write what a result says of each task as the platform `to` reads it, labels with their probabilities as
    predictions, into a folder, with two tables: relabel.csv, what to label again and why, and gold_candidates.csv,
    labels that are all but certain.

    `to` is a platform (`crowdwise.formats()` says which) or "csv", "jsonl" or "parquet". `original` is the export of
    the platform, whose data are kept; by default the file that the answers were read from, if it is there. A
    probability below `least` is a reason to label again.

    >>> import crowdwise as cw, tempfile
    >>> sim = cw.simulate.crowd(tasks=50, workers=8, per_task=5, seed=2)
    >>> files = cw.export(cw.aggregate(sim.answers), "label-studio", tempfile.mkdtemp())
    >>> files.estimates.name, files.tasks
    ('label-studio.json', 50)
    """
    from .returned import give_back

    return give_back(result, to, folder, original, least, excel_safe)


def _read_tables(kinds: Sequence[type[Answers]], call: _Call, options: dict[str, Any], columns: list[str]) -> None:
    """Replace options that name a file, such as gold, by its table, and record the name."""
    for name in dict.fromkeys(name for kind in kinds for name in kind.tables):
        value = options.get(name)
        if isinstance(value, Path) or (isinstance(value, str) and value not in columns):
            call.recorded[name] = str(value)
            options[name] = read_table(value, Reading(max_expanded=call.how.max_expanded)).frame


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


@enough_memory("loading")
def load(path: str | Path) -> Any:
    """Load a result of any kind that was saved by `save` or by the command line."""
    from ..aggregation import model_class
    from ..result.store import read as stored

    return stored(file_name(path), model_class)


__all__ = [
    "Content", "Features", "convert", "export", "is_export", "load", "read", "read_content", "read_features",
    "read_pairs", "read_points", "read_table",
]  # fmt: skip
