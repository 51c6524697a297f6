"""The commands. Everything heavy is imported inside them, so that `--help` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .say import say_json

if TYPE_CHECKING:
    from ..answers import Labels

app = typer.Typer(
    name="crowdwise",
    help="Learning from crowds: the truth behind many answers, who is good, what is hard, and how sure it is.",
    epilog="Start with: crowdwise demo",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Answers: CSV, TSV, JSON, JSONL or Parquet, also .gz; - is stdin")
]
Task = Annotated[str | None, typer.Option(metavar="COL", help="Column of the task")]
Worker = Annotated[str | None, typer.Option(metavar="COL", help="Column of the worker")]
Label = Annotated[str | None, typer.Option(metavar="COL", help="Column of the label")]
Gold = Annotated[str | None, typer.Option(metavar="FILE", help="Known labels: a table with task and label")]
GoldColumn = Annotated[str | None, typer.Option(metavar="COL", help="Known labels: a column of FILE")]
Duplicates = Annotated[
    str | None, typer.Option(metavar="RULE", help="A worker's second answer to a task: last, first, error or each")
]
Anonymous = Annotated[
    str, typer.Option(metavar="RULE", help="Answers without a worker: refuse, or each (a person apiece)")
]
Missing = Annotated[
    list[str] | None, typer.Option(metavar="TEXT", help="A label that means no answer, e.g. -1; may be repeated")
]
Wide = Annotated[bool | None, typer.Option("--wide/--long", help="A column a worker, or a row an answer; else guessed")]
Format = Annotated[
    str | None, typer.Option(metavar="NAME", help="csv, json, jsonl or parquet; else by the file's ending")
]
Delimiter = Annotated[str | None, typer.Option(metavar="CHAR", help="What separates fields; else found")]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="For instance latin-1; else UTF-8, or UTF-16 by its mark")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs")]
Seed = Annotated[int, typer.Option(help="The one seed of everything random")]
Threads = Annotated[int, typer.Option(help="Threads; 0 is all cores. The result does not depend on it")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the results")]


def _example(text: str) -> str:
    return f"Example: {text}"


def _read(file: str, gold: str | None = None, gold_column: str | None = None, **options: Any) -> Labels:
    from ..errors import FileError, ParameterError
    from ..io import read

    if options.get("anonymous") not in ("refuse", "each"):
        raise ParameterError(f"--anonymous is {options.get('anonymous')!r}; it can be refuse or each")
    if gold is not None and not Path(gold).exists():
        raise FileError(f"no gold file {gold}. Give a table with task and label, or name a column with --gold-column")
    options["missing"] = options.get("missing") or ()
    if options.get("delimiter"):
        options["delimiter"] = options["delimiter"].replace("\\t", "\t")
    return read(file, gold=Path(gold) if gold else gold_column, **options)


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Say the version and leave")] = False) -> None:
    if version:
        from .. import __version__

        print(f"crowdwise {__version__}")
        raise typer.Exit


@app.command(epilog=_example("crowdwise inspect answers.csv --label verdict"))
def inspect(
    file: File, task: Task = None, worker: Worker = None, label: Label = None, gold: Gold = None,
    gold_column: GoldColumn = None, duplicates: Duplicates = None, anonymous: Anonymous = "refuse",
    missing: Missing = None, wide: Wide = None, format: Format = None, delimiter: Delimiter = None,
    encoding: Encoding = None, as_json: Json = False,
) -> None:  # fmt: skip
    """Say what was understood of a file: rows, tasks, workers, labels, what was dropped and why."""
    from ..report import inspect as inspection
    from .show import inspected

    answers = _read(
        file, gold, gold_column, task=task, worker=worker, label=label, duplicates=duplicates, anonymous=anonymous,
        missing=missing, wide=wide, format=format, delimiter=delimiter, encoding=encoding,
    )  # fmt: skip
    if as_json:
        say_json(inspection(answers).as_dict())
    else:
        inspected(answers)


@app.command(epilog=_example("crowdwise aggregate answers.csv --out results --gold known.csv --model dawid-skene"))
def aggregate(
    file: File, out: Out = None, task: Task = None, worker: Worker = None, label: Label = None, gold: Gold = None,
    gold_column: GoldColumn = None, duplicates: Duplicates = None, anonymous: Anonymous = "refuse",
    missing: Missing = None, wide: Wide = None, format: Format = None, delimiter: Delimiter = None,
    encoding: Encoding = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="See `crowdwise models`")] = "pooled",
    max_iter: Annotated[int | None, typer.Option(help="Sweeps at most")] = None,
    tol: Annotated[float | None, typer.Option(help="Largest move of a skill that counts as rest")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be repeated")
    ] = None,
    precision: Annotated[str, typer.Option(help="Storage of large tables: auto, single or double")] = "auto",
    resume: Annotated[bool, typer.Option(help="Go on where an interrupted run stopped (needs --out)")] = False,
    seed: Seed = 0, threads: Threads = 0, as_json: Json = False,
) -> None:  # fmt: skip
    """Find the truth behind answers. Writes labels.csv, workers.csv, tasks.csv and the saved result to --out; without
    --out, labels go to stdout as CSV."""
    from .run import Job, settings_of, work

    settings = settings_of(setting or [], max_iter=max_iter, tol=tol)
    job = Job(model, settings, out, seed, threads, precision, resume)
    answers = _read(
        file, gold, gold_column, task=task, worker=worker, label=label, duplicates=duplicates, anonymous=anonymous,
        missing=missing, wide=wide, format=format, delimiter=delimiter, encoding=encoding,
    )  # fmt: skip
    result = work(job, answers)
    from .show import aggregated

    aggregated(result, out, as_json)
    if not result.converged:
        raise typer.Exit(3)


@app.command(epilog=_example("crowdwise compare answers.csv --gold known.csv --folds 10"))
def compare(
    file: File, task: Task = None, worker: Worker = None, label: Label = None, gold: Gold = None,
    gold_column: GoldColumn = None, duplicates: Duplicates = None, anonymous: Anonymous = "refuse",
    missing: Missing = None, wide: Wide = None, format: Format = None, delimiter: Delimiter = None,
    encoding: Encoding = None,
    model: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only these models; may be repeated")] = None,
    folds: Annotated[int, typer.Option(help="Parts the answers are hidden in; 0 for no held-out score")] = 5,
    seed: Seed = 0, threads: Threads = 0, as_json: Json = False,
) -> None:  # fmt: skip
    """Every model side by side: labels that differ from the default's, likelihood of hidden answers, and, where gold is
    given, accuracy and log-loss. Gold is not shown to the models."""
    from ..comparison import chosen_models
    from ..comparison import compare as side_by_side
    from ..engine import Run
    from .show import compared

    models, run = chosen_models(model, folds), Run(seed=seed, threads=threads)
    answers = _read(
        file, gold, gold_column, task=task, worker=worker, label=label, duplicates=duplicates, anonymous=anonymous,
        missing=missing, wide=wide, format=format, delimiter=delimiter, encoding=encoding,
    )  # fmt: skip
    rows = side_by_side(answers, models, folds=folds, run=run, watch=_watch_models())
    if as_json:
        say_json(rows.to_dicts())
    else:
        compared(rows, answers)


def _watch_models() -> Any:
    import sys

    from .say import words

    return (lambda name: words(f"fitting {name}")) if sys.stderr.isatty() else None


@app.command(epilog=_example("crowdwise simulate hammer-spammer --tasks 500 --workers 40 --out crowd"))
def simulate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="confusion, one-coin, hammer-spammer or groups")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for answers.csv, truth.csv and workers.csv")],
    tasks: Annotated[int, typer.Option(help="How many tasks")] = 1000,
    workers: Annotated[int, typer.Option(help="How many workers")] = 50,
    classes: Annotated[int, typer.Option(help="How many classes")] = 3,
    per_task: Annotated[int, typer.Option(help="Answers a task")] = 5,
    load: Annotated[str, typer.Option(help="Work of workers: even, or skewed (a few do most)")] = "even",
    seed: Seed = 0, as_json: Json = False,
) -> None:  # fmt: skip
    """Make up a crowd whose truth and skills are known."""
    from ..errors import ParameterError
    from ..simulate import crowd
    from .say import words

    if load not in ("even", "skewed"):
        raise ParameterError(f"--load is {load!r}; it can be even or skewed")
    made = crowd(name, tasks=tasks, workers=workers, classes=classes, per_task=per_task, load=load, seed=seed)  # type: ignore[arg-type]
    files = [str(path) for path in made.save(out)]
    if as_json:
        say_json({"files": files, "answers": made.answers.n_answers, "seed": seed})
    else:
        words(f"{made.answers.n_answers} answers of {workers} workers on {tasks} tasks", *files)


@app.command(epilog=_example("crowdwise models --json"))
def models(as_json: Json = False) -> None:
    """List the models and their settings."""
    from ..labels import DEFAULT, MODELS

    if as_json:
        say_json({name: {"about": kind.about, "settings": kind().settings()} for name, kind in sorted(MODELS.items())})
        return
    for name, kind in sorted(MODELS.items()):
        settings = ", ".join(f"{key}={value}" for key, value in kind().settings().items())
        print(f"{name}{' (the default)' if name == DEFAULT else ''}\n    {kind.about}\n    {settings}".rstrip())


@app.command(epilog=_example("crowdwise demo --out demo"))
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for everything it writes")] = Path("demo"),
    seed: Seed = 7,
) -> None:
    """Simulate a crowd, find the truth behind its answers, and say what came of it."""
    from .demo import run

    run(out, seed)
