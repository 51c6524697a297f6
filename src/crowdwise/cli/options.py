"""Groups of options that commands share, and the answers or results that they read, load or fit."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from typer.core import TyperCommand

from ..limits import refuse_small_limits

LABELS, CLICKS, PAIRS = "Reading labels", "Reading clicks", "Reading pairs"  # groups of options in --help
READING, FITTING = "Reading the file", "Fitting"
GROUPS = ("Arguments", "Options", FITTING, READING, LABELS, CLICKS, PAIRS)
FILE_HELP = (
    "Answers: an export of a platform (see `crowdwise formats`), CSV, TSV, JSON, JSONL, Parquet or xlsx, also .gz or "
    ".zip; a folder or pattern of files; - is stdin"
)


class GroupedCommand(TyperCommand):
    """A command whose --help lists options in groups, as plain text."""

    def invoke(self, ctx: Any) -> Any:
        refuse_small_limits()
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            default = "Arguments" if each.param_type_name == "argument" else "Options"
            if record is not None:
                groups.setdefault(getattr(each, "rich_help_panel", None) or default, []).append(record)
        for title in sorted(groups, key=GROUPS.index):
            with formatter.section(title):
                formatter.write_dl(groups[title])


def completed_models(incomplete: str) -> list[str]:
    """Return the names of models that start with `incomplete`, for shell completion."""
    from ..aggregation import models

    return [name for name in models()["name"].to_list() if name.startswith(incomplete)]


def completed_formats(incomplete: str) -> list[str]:
    """Return the names of formats that start with `incomplete`, for shell completion."""
    from ..io.formats import all_formats

    return [name for name in all_formats() if name.startswith(incomplete)]


def completed(*choices: str) -> Callable[[str], list[str]]:
    """Return a function that completes one of the choices."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def _option(metavar: str, help: str, group: str | None = None, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=group, **more)


Model = Annotated[
    str | None,
    _option(
        "NAME",
        "See `crowdwise models`; default pooled (labels), click-mixture (clicks) or pair-mixture (pairs)",
        autocompletion=completed_models,
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers", rich_help_panel=FITTING)]
Threads = Annotated[
    int, typer.Option(help="Threads; 0 for all cores. Results do not depend on it", rich_help_panel=FITTING)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs")]
Out = Annotated[Path | None, _option("DIR", "Folder for the results")]
OutDir = Annotated[Path, _option("DIR", "Folder for the results")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME", help="Only these models; may be repeated", autocompletion=completed_models),
]
Within = Annotated[
    float | None, typer.Option(help="Clicks: maximum distance between two places that match, for --truth by default 4")
]
Pictures = Annotated[
    Path | None, _option("DIR", "Folder of pictures for the page, named like the images, tasks or items")
]
Content = Annotated[
    Path | None,
    _option("FILE", "Table shown on the page: task (or item), text and/or image (a file name in --pictures)"),
]
Truth = Annotated[
    Path | None,
    _option(
        "FILE",
        "True labels (task, label), objects (image, x, y) or clusters (item, label), to score the result; the model "
        "does not see them",
    ),
]


Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A setting of the model; may be repeated", rich_help_panel=FITTING
    ),
]
ExcelSafe = Annotated[bool, typer.Option("--excel-safe", help="Quote cells that a spreadsheet would take for formulas")]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of a fit and of its output."""

    setting: Setting = None
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run (needs --out)", rich_help_panel=FITTING)] = (
        False
    )
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints in --out; 0 for none", rich_help_panel=FITTING)
    ] = 60.0
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether to write report.html")] = True
    excel_safe: ExcelSafe = False
    seed: Seed = 0
    threads: Threads = 0
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """Options for printing and writing a table."""

    top: Annotated[int, typer.Option(min=1, help="Rows shown")] = 20
    out: Annotated[Path | None, _option("FILE", "Write the whole table as CSV")] = None
    raw: Annotated[
        bool, typer.Option("--raw", help="Do not quote cells that a spreadsheet would take for formulas")
    ] = False
    as_json: Json = False

    def write(self, table: Any) -> None:
        """Write the table to --out, if given, and print the file name."""
        if self.out is not None:
            from ..io.writing import write_csv
            from .say import words

            words(f"wrote {write_csv(table, self.out, excel_safe=not self.raw)}")


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """Features of the items of pairs."""

    features: Annotated[
        Path | None, _option("FILE", "Features: a table with a column item, or npz with arrays x and item", PAIRS)
    ] = None
    array: Annotated[str | None, _option("NAME", "Name of the array in an npz file, default x", PAIRS)] = None
    unknown: Annotated[
        str | None, _option("RULE", "Pairs whose items have no features: error (default) or drop", PAIRS)
    ] = None

    def joined(self, answers: Any, max_expanded: str | None) -> tuple[Any, Any]:
        """Return the answers with items indexed as in the features, and the features; None without a file."""
        if self.features is None:
            return answers, None
        if answers.kind != "pairs":
            from ..errors import ParameterError, option

            raise ParameterError(
                f"{option('features')} is for pairs, and these are answers of kind {answers.kind!r}. Omit it; "
                "`crowdwise learn` learns labels from features"
            )
        from ..io import read_features

        found = read_features(self.features, answers.items, array=self.array, max_expanded=max_expanded)
        return answers.on(found.tasks, self.unknown or "error"), found


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """A file of answers, and how its text is read."""

    insisted: ClassVar[str | None] = None  # the kind of answers, for commands of one kind

    file: Annotated[str, typer.Argument(metavar="FILE", help=FILE_HELP)]
    worker: Annotated[str | None, _option("COL", "Column of the worker; file: the name of the file", READING)] = None
    format: Annotated[
        str | None,
        _option(
            "NAME",
            "A format of `crowdwise formats`, or csv, json, jsonl, parquet, cifar10h; recognised by default",
            READING,
            autocompletion=completed_formats,
        ),
    ] = None
    question: Annotated[
        str | None, _option("NAME", "Exports: the question to answer, if there are several", READING)
    ] = None
    keep: Annotated[
        str | None,
        _option(
            "STATUS",
            "Exports: also count rows that are skipped, rejected, draft, expired, test, gold or prediction; personal "
            "keeps e-mail addresses of workers. Several with commas",
            READING,
        ),
    ] = None
    sets: Annotated[
        str | None,
        _option(
            "RULE",
            "Exports: several labels in one answer: refuse (default), split (each label is a yes/no task) or joined",
            READING,
        ),
    ] = None
    pseudonymise: Annotated[
        Path | None,
        _option("KEYFILE", "Replace workers by digests with this secret key, made if not there", READING),
    ] = None
    max_expanded: Annotated[
        str | None, _option("SIZE", "Size to which a compressed file may expand, e.g. 20GB", READING)
    ] = None
    delimiter: Annotated[str | None, _option("CHAR", "Separator of fields; recognised by default", READING)] = None
    sheet: Annotated[
        str | None, _option("NAME", "Sheet of an Excel workbook; default: the first with rows", READING)
    ] = None
    encoding: Annotated[
        str | None,
        _option("NAME", "For instance latin-1; default UTF-8, or UTF-16 if the file has a byte order mark", READING),
    ] = None

    memory: Annotated[
        str | None,
        _option(
            "SIZE",
            "Memory to use, for instance 2GB: labels that need more are kept on disk in parts; default: what is free",
            READING,
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given, as arguments of `crowdwise.read`."""
        names = [each.name for each in fields(self) if each.name not in ("file", "kind", *NOT_READING)]
        return {name: value for name in names if (value := getattr(self, name)) not in (None, [], ())}

    def reading(self) -> dict[str, Any]:
        """Return the options that were given, as values of `crowdwise.read`."""
        options = self.given()
        for name, convert in (("delimiter", _delimiter), ("axes", _axes), ("box", _box), ("gold", _gold)):
            if name in options:
                options[name] = convert(options[name])
        if "gold_column" in options:
            options["gold"] = options.pop("gold_column")
        return options

    def answers(self, among: Sequence[str] | None = None, **more: Any) -> Any:
        """Read the file; `among` are the kinds of answers that it may hold, `more` further options of `read`."""
        return self.read(self.file, self.insisted or getattr(self, "kind", None) or among, **more)

    def read(self, file: str | Path, kind: str | Sequence[str] | None, **more: Any) -> Any:
        """Read a file of this kind of answers, or of one of several kinds, by the options given."""
        from ..io import read

        options = self.reading()
        threshold = options.pop("drop_below", None)
        if threshold is None:
            return read(file, kind=kind, **options, **more)
        from ..rating.checks import check_threshold

        check_threshold(threshold)
        return _dropped(read(file, kind=kind, **options, **more), threshold)


NOT_READING = ("model", "seed", "threads", "features", "array", "unknown")  # options for fitting


def _dropped(answers: Any, threshold: float) -> Any:
    """Return the answers without workers below the threshold on attention checks."""
    from ..errors import ParameterError
    from ..rating.checks import drop_below
    from ..result.base import refuse_parts

    if answers.kind != "labels":
        raise ParameterError(f"--drop-below applies to labels; {answers.intake.source} holds {answers.title}. Omit it")
    refuse_parts(answers, "--drop-below")
    return drop_below(answers, threshold)


def _delimiter(text: str) -> str:
    return text.replace("\\t", "\t")


def _axes(text: str) -> list[str]:
    return text.split(",")


def _gold(name: str) -> Path:
    from ..answers.arguments import check_path
    from ..errors import FileError

    if not check_path("--gold", name).exists():
        raise FileError(f"no gold file {name}. Give a table with task and label, or name a column with --gold-column")
    return Path(name)


def _box(text: str) -> Any:
    """Return the numbers of a box, or the path of a table of boxes."""
    from ..answers.arguments import is_path
    from ..errors import ParameterError

    if is_path(text) and Path(text).exists():
        return Path(text)
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"--box is {text!r}, which is neither a file nor numbers; write x0,y0,x1,y1, for instance --box 0,0,300,300"
        ) from None


@dataclass(frozen=True, kw_only=True)
class RepeatOptions:
    """What to do with repeated answers of one worker."""

    duplicates: Annotated[
        str | None,
        _option(
            "RULE",
            "Repeated answers of a worker to a task: last, first, each (keep all) or error; default: the last if the "
            "file has times, else error. Repeated clicks on one spot: first (default), each or error",
            READING,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """How labels are read."""

    task: Annotated[str | None, _option("COL", "Column of the task", LABELS)] = None
    label: Annotated[str | None, _option("COL", "Column of the label", LABELS)] = None
    gold: Annotated[
        str | None, _option("FILE", "Known labels, which the model uses: a table with task and label", LABELS)
    ] = None
    gold_column: Annotated[str | None, _option("COL", "Known labels: a column of FILE", LABELS)] = None
    anonymous: Annotated[
        str | None,
        _option(
            "RULE",
            "Answers without a worker: refuse (default), or each (every such answer is by a different worker)",
            LABELS,
        ),
    ] = None
    missing: Annotated[
        list[str] | None, _option("TEXT", "A label that means no answer, e.g. -1; may be repeated", LABELS)
    ] = None
    ignore: Annotated[list[str] | None, _option("COL", "A column that is not read; may be repeated", LABELS)] = None
    wide: Annotated[
        bool | None,
        typer.Option(
            "--wide/--long",
            help="One column per worker, or one row per answer; recognised by default",
            rich_help_panel=LABELS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Which workers are left out by their attention checks."""

    drop_below: Annotated[
        float | None,
        _option(
            "SCORE",
            "Leave out workers whose share of correct answers to tasks with known labels is below this, e.g. 0.75",
            LABELS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ClickOptions:
    """How clicks are read."""

    image: Annotated[str | None, _option("COL", "Column of the image", CLICKS)] = None
    axes: Annotated[str | None, _option("COLS", "Columns of the coordinates: x,y or x,y,z", CLICKS)] = None
    jobs: Annotated[
        Path | None,
        _option("FILE", "Table (image, worker) of all images shown to each worker, with or without clicks", CLICKS),
    ] = None
    box: Annotated[
        str | None, _option("BOX", "Extent of all images, x0,y0,x1,y1, or a table with one row per image", CLICKS)
    ] = None
    unit: Annotated[str | None, _option("NAME", "pixels, percent or fraction (of the box)", CLICKS)] = None
    outside: Annotated[str | None, _option("RULE", "Clicks outside the box: drop (default) or error", CLICKS)] = None


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """How pairs are read."""

    left: Annotated[str | None, _option("COL", "Column of one item", PAIRS)] = None
    right: Annotated[str | None, _option("COL", "Column of the other item", PAIRS)] = None
    answer: Annotated[str | None, _option("COL", "Column of the answer", PAIRS)] = None
    hit: Annotated[
        str | None,
        _option(
            "COL",
            "Column of the HIT or batch in which the pair was asked; answers of one batch are not independent",
            PAIRS,
        ),
    ] = None
    same: Annotated[
        list[str] | None, _option("VALUE", 'Value of the answer that means "same"; may be repeated', PAIRS)
    ] = None
    contradictions: Annotated[
        str | None,
        _option(
            "RULE", "Contradictory answers of a worker to one pair: drop (default), each (keep all) or error", PAIRS
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class KindOption:
    """The kind of answers, if it is not recognised by the columns."""

    kind: Annotated[
        str | None,
        _option(
            "NAME",
            "labels, points (clicks) or pairs; default: recognised from the columns",
            READING,
            autocompletion=completed("labels", "points", "pairs"),
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Source(PairOptions, ClickOptions, CheckOptions, LabelOptions, RepeatOptions, KindOption, FileOptions):
    """A file of answers of any kind."""


@dataclass(frozen=True, kw_only=True)
class WatchedFolder(ClickOptions, LabelOptions, RepeatOptions, KindOption, FileOptions):
    """A folder of files of answers, of a kind that can be streamed."""

    file: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder in which files of answers arrive: CSV, JSON, JSONL, Parquet")
    ]
    kind: Annotated[
        str | None,
        _option(
            "NAME",
            "labels or points (clicks); default: recognised from the columns",
            READING,
            autocompletion=completed("labels", "points"),
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LabelsSource(CheckOptions, LabelOptions, RepeatOptions, FileOptions):
    """A file of labels."""

    insisted = "labels"


@dataclass(frozen=True, kw_only=True)
class PointsSource(ClickOptions, RepeatOptions, FileOptions):
    """A file of clicks."""

    insisted = "points"


@dataclass(frozen=True, kw_only=True)
class PairsSource(PairOptions, FileOptions):
    """A file of same/different answers."""

    insisted = "pairs"


@dataclass(frozen=True, kw_only=True)
class AnswersOrResult(Source):
    """A file of answers, or a saved result."""

    file: Annotated[str, typer.Argument(metavar="FILE", help=f"{FILE_HELP}; or the folder of a saved result")]

    @property
    def saved(self) -> bool:
        """Whether this is a saved result, or a folder of one: a folder without tables of answers, or of a stream."""
        from ..engine.stream import NAME
        from ..io.tables import is_folder_of_tables
        from ..result.store import place

        path = Path(self.file)
        if path.is_dir():
            return place(path).exists() or (path / NAME).exists() or not is_folder_of_tables(path)
        return path.suffix == ".crowdwise"

    @property
    def folder(self) -> Path | None:
        """The folder of the saved result; None for a file of answers."""
        path = Path(self.file)
        return (path if path.is_dir() else path.parent) if self.saved else None

    def loaded(self) -> Any:
        """Load the saved result; options for reading or fitting answers raise ParameterError."""
        from ..errors import ParameterError
        from ..io import load

        default = type(self)(file=self.file)
        given = [each.name for each in fields(self) if getattr(self, each.name) != getattr(default, each.name)]
        given = [name for name in given if name not in ("threads", "max_expanded")]  # which other files need as well
        if given:
            raise ParameterError(
                f"{self.file} is a saved result, so --{given[0].replace('_', '-')} does not apply. "
                "Give the file of answers, or omit the option"
            )
        return load(self.file)


@dataclass(frozen=True, kw_only=True)
class FittedSource(FeatureOptions, AnswersOrResult):
    """A file of answers that is fitted, or a saved result."""

    model: Annotated[
        str | None, _option("NAME", "Model to fit: see `crowdwise models`", FITTING, autocompletion=completed_models)
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers", rich_help_panel=FITTING)] = None
    threads: Threads = 0

    def refuse_replacing(self, out: Path | None, *more: Path | None) -> None:
        """Refuse, before the work, an --out that would replace a file which is read, such as `more`."""
        if out is None or not out.exists():
            return
        from ..io import refuse_replacing
        from ..result.store import place

        file = place(Path(self.file)) if self.saved else self.file
        refuse_replacing(out, [Path(each) for each in (file, self.features, self.gold, *more) if each is not None])

    def result(self, check: Callable[[Any], None] = lambda answers: None) -> Any:
        """Return the saved result, or a fit of the answers, which `check` may refuse before the fit."""
        from .job import Job

        if self.saved:
            result = self.loaded()
            check(result.answers)
            return result
        features = FeatureOptions(features=self.features, array=self.array, unknown=self.unknown)
        options = FitOptions(seed=self.seed or 0, threads=self.threads)
        return Job(source=self, name=self.model, options=options, features=features).fitted(check)


@dataclass(frozen=True, kw_only=True)
class PilotSource(FittedSource):
    """The answers of a pilot, or its saved result; nothing before a study."""

    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="A pilot: its answers, or the folder of a saved result; omit it before one"
        ),
    ] = None  # type: ignore[assignment]

    def result(self, check: Callable[[Any], None] = lambda answers: None) -> Any:
        if self.file is not None:
            return super().result(check)
        from ..errors import ParameterError

        given = [each.name for each in fields(self) if getattr(self, each.name) != each.default]
        given = [name for name in given if name not in ("seed", "threads")]
        if given:
            raise ParameterError(
                f"--{given[0].replace('_', '-')} is for the answers of a pilot. Name their FILE, or omit it"
            )
        return None


def _check_paths(given: dict[str, Any]) -> None:
    """Raise ParameterError for a file or folder whose name no system has."""
    from ..answers.arguments import check_path

    for name, value in given.items():
        if isinstance(value, Path) or (name == "file" and value is not None):
            check_path("FILE" if name == "file" else f"--{name.replace('_', '-')}", value)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Replace every parameter of a command that is a group of options by one parameter per option: FILE first, then the
    command's own options, then those of the groups."""
    names = globals() | {"opt": sys.modules[__name__]}  # that annotations of commands use
    own, hints = inspect.signature(command).parameters, get_type_hints(command, localns=names, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        each.replace(annotation=hints[name], kind=keyword) for name, each in own.items() if name not in groups
    ]
    for kind in reversed(groups.values()):
        known = _hints(kind)
        for each in fields(kind):
            first = each.name == "file"
            default = inspect.Parameter.empty if each.default is MISSING else each.default
            parameters.insert(
                0 if first else len(parameters),
                inspect.Parameter(each.name, keyword, annotation=known[each.name], default=default),
            )

    def run(**given: Any) -> None:
        _check_paths(given)
        made = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        command(**made, **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run
