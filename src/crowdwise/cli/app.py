"""The commands. Everything heavy is imported inside them, so that `--help` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as opt
from .options import expanded
from .say import say_json

app = typer.Typer(
    name="crowdwise",
    help="Learning from crowds: the truth behind many answers, who is good, what is hard, and how sure it is.",
    epilog="Start with: crowdwise demo",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _example(text: str) -> str:
    return f"Example: {text}"


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Say the version and leave")] = False) -> None:
    if version:
        from .. import __version__

        print(f"crowdwise {__version__}")
        raise typer.Exit


@app.command(epilog=_example("crowdwise inspect answers.csv --label verdict"))
@expanded
def inspect(source: opt.LabelsSource, as_json: opt.Json = False) -> None:
    """Say what was understood of a file: rows, tasks, workers, labels, what was dropped and why."""
    from ..report import inspect as inspection
    from .show import inspected

    answers = source.answers()
    if as_json:
        say_json(inspection(answers).as_dict())
    else:
        inspected(answers)


@app.command(epilog=_example("crowdwise aggregate answers.csv --out results --gold known.csv --model dawid-skene"))
@expanded
def aggregate(
    source: opt.LabelsSource,
    options: opt.FitOptions,
    out: opt.Out = None,
    model: opt.Model = "pooled",
    max_iter: Annotated[int | None, typer.Option(help="Iterations at most")] = None,
    tol: Annotated[float | None, typer.Option(help="Convergence tolerance on worker skill")] = None,
    precision: Annotated[str, typer.Option(help="Storage of large tables: auto, single or double")] = "auto",
) -> None:
    """Find the truth behind answers. Writes labels.csv, workers.csv, tasks.csv, report.html and the saved result to
    --out; without --out, labels go to stdout as CSV."""
    from .fits import fit_labels
    from .run import Job

    settings = {"max_iter": max_iter, "tol": tol}
    fit_labels(Job(name=model, out=out, options=options, settings=settings, precision=precision), source)


@app.command(epilog=_example("crowdwise workers answers.csv --top 30; crowdwise workers results --flagged"))
@expanded
def workers(
    source: opt.FittedSource,
    options: opt.ListOptions,
    flagged: Annotated[bool, typer.Option("--flagged", help="Only workers with a flag")] = False,
) -> None:
    """Rate workers: skill with its interval, spammer score, trace, attention checks, time, and flags with reasons."""
    from .show import rated

    rated(source.result(), flagged, options)


@app.command(epilog=_example("crowdwise tasks answers.csv --top 50 --out review.csv"))
@expanded
def tasks(
    source: opt.FittedSource,
    options: opt.ListOptions,
) -> None:
    """The queue of tasks most worth another look: votes, doubt, disagreement, and whether other models disagree."""
    from ..acquisition import review
    from .show import queued

    result = source.result()
    queued(review(result, None if options.out or options.as_json else options.top), result, options)


@app.command(epilog=_example("crowdwise agreement answers.csv --json"))
@expanded
def agreement(source: opt.LabelsOrResult, as_json: opt.Json = False) -> None:
    """How much workers agree beyond chance: Krippendorff, Fleiss, Cohen, Gwet, percent; each with its interval."""
    from ..inter_rater import agreement as measured
    from .show import agreed

    answers = source.loaded().answers if source.saved else source.answers()
    table = measured(answers)
    if as_json:
        say_json(table.to_dicts())
    else:
        agreed(table, answers)


@app.command("next", epilog=_example("crowdwise next answers.csv --budget 500 --batch 100 --out ask.csv"))
@expanded
def next_(
    source: opt.FittedSource,
    options: opt.ListOptions,
    budget: Annotated[int, typer.Option(help="Answers that can be paid for")] = 100,
    batch: Annotated[int | None, typer.Option(help="How many of them to ask for now; else all")] = None,
) -> None:
    """Which tasks to ask again, and of whom where it matters, by what an answer is expected to gain."""
    from ..acquisition import check_budget, next_tasks
    from .show import asked

    check_budget(budget, batch)
    asked(next_tasks(source.result(), budget, batch=batch), budget, options)


@app.command(epilog=_example("crowdwise report results; crowdwise report answers.csv --out report.html"))
@expanded
def report(
    source: opt.FittedSource,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page; else report.html in the folder of the result")
    ] = None,
    compare_with: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Models to compare with; may be repeated; else all, for small tables"),
    ] = None,
    check: Annotated[
        bool | None, typer.Option("--check/--no-check", help="Check the cost curve by one more fit; else if not large")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Of a saved result of clicks: folder of the images")
    ] = None,
) -> None:
    """Write one self-contained HTML page about a result."""
    from ..comparison import chosen_models
    from ..errors import ParameterError
    from .run import command_line, labels_page, verb_of
    from .say import words

    chosen_models(compare_with, 0)
    given: dict[str, Any] = {"models": compare_with, "check": check, "pictures": pictures}
    if source.saved:
        result = source.any_loaded()
    elif pictures is not None:
        raise ParameterError("--pictures goes with a saved result of clicks, the folder of `crowdwise points`")
    else:
        result = source.result()
    options = {name: value for name, value in given.items() if value is not None}
    if result.kind == "labels":
        options |= labels_page(result, options.pop("models", None), options.pop("check", None))
    place = out or (source.folder or Path()) / "report.html"
    words(f"wrote {result.report(place, command=command_line(verb_of(result), result), **options)}")


@app.command(
    epilog=_example("crowdwise learn answers.csv --features features.parquet --workers adaptive --out results")
)
@expanded
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
    array: opt.NpzArray = None,
    threshold: Annotated[float, typer.Option(help="Of two classes, the second is predicted above this")] = 0.5,
    restarts: Annotated[int, typer.Option(help="Fits of a network, the best of which is kept")] = 1,
) -> None:
    """Learn a classifier of features from answers. Writes labels.csv, workers.csv, tasks.csv, report.html, groups.csv
    and members.csv where workers have groups, predictions.csv of rows without answers, roc.csv where gold is given, the
    saved result and the saved classifier."""
    from ..engine.resources import require
    from ..errors import check_choice

    check_choice("--classifier", classifier, ("logistic", "mlp"))
    require(("learn",), "crowdwise learn")
    require(("deep",) if classifier == "mlp" else (), f"--classifier {classifier}")
    from .fits import fit_classifier
    from .run import Job

    job = Job(kind="learn", name=workers, out=out, options=options)
    fit_classifier(job, source, features, array, classifier, threshold, restarts)


@app.command(epilog=_example("crowdwise points clicks.csv --jobs jobs.csv --box 0,0,300,300 --out results"))
@expanded
def points(
    source: opt.PointsSource,
    options: opt.FitOptions,
    out: opt.OutDir,
    model: opt.Model = "click-mixture",
    method: Annotated[str | None, typer.Option(metavar="NAME", help="Of click-mixture: merge or paper")] = None,
    objects: Annotated[int | None, typer.Option(help="Objects in every image; else found")] = None,
    pictures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the images, shown under the clicks")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True objects (image, x, y), to be matched one to one")
    ] = None,
    within: Annotated[float, typer.Option(help="Distance within which an object is a true one")] = 4.0,
) -> None:
    """Find objects in the clicks of many workers. Writes objects.csv, workers.csv, clicks.csv, images.csv, report.html,
    the saved result, and matched.csv where the truth is given."""
    from .fits import fit_points
    from .run import Job

    settings = {"method": method, "objects": objects}
    job = Job(kind="points", name=model, out=out, options=options, settings=settings)
    fit_points(job, source, pictures, truth, within)


@app.command(epilog=_example("crowdwise pairs pairs.csv --features features.npz --out results"))
@expanded
def pairs(
    source: opt.PairsSource,
    options: opt.FitOptions,
    out: opt.OutDir,
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table with a column item, or npz with arrays x and item")
    ] = None,
    array: opt.NpzArray = None,
    unknown: Annotated[
        str, typer.Option(metavar="RULE", help="Pairs whose items have no features: error or drop")
    ] = "error",
    model: opt.Model = "pair-mixture",
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True clusters: item, label; or pairs: left, right, answer")
    ] = None,
    ask: Annotated[int, typer.Option(help="Pairs worth asking next that are written")] = 100,
) -> None:
    """Find clusters of items in same/different answers, with or without features. Writes clusters.csv, sizes.csv,
    workers.csv, asked.csv, next.csv, report.html and the saved result."""
    from .fits import fit_pairs
    from .run import Job

    job = Job(kind="pairs", name=model, out=out, options=options)
    fit_pairs(job, source, features, array, unknown, truth, ask)


@app.command(epilog=_example("crowdwise compare answers.csv --gold known.csv --folds 10"))
@expanded
def compare(
    source: opt.LabelsSource,
    model: opt.Models = None,
    folds: Annotated[int, typer.Option(help="Parts the answers are hidden in; 0 for no held-out score")] = 5,
    seed: opt.Seed = 0,
    threads: opt.Threads = 0,
    as_json: opt.Json = False,
) -> None:
    """Every model side by side: labels that differ from the default's, likelihood of hidden answers, and, where gold is
    given, accuracy and log-loss. Gold is not shown to the models."""
    from ..comparison import chosen_models
    from ..comparison import compare as side_by_side
    from ..engine import Run
    from .show import compared, watch_models

    models, run = chosen_models(model, folds), Run(seed=seed, threads=threads)
    answers = source.answers()
    rows = side_by_side(answers, models, folds=folds, run=run, watch=watch_models())
    if as_json:
        say_json(rows.to_dicts())
    else:
        compared(rows, answers)


@app.command(epilog=_example("crowdwise reproduce lecture --out lecture"))
def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="lecture, difficulty, groups, clicks or pairs")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of real data: for lecture cifar10s itself; else the folder that holds cifar10n, "
            "cifar10h_counts and, for groups, labelme; for clicks fish_spots, smfish_cells and beads; for pairs "
            "cmu_faces, mnist, mnist_pairs and product_er",
        ),
    ] = None,
    out: opt.Out = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure less: fewer seeds, starts and images")] = False,
    full: Annotated[bool, typer.Option("--full", help="Measure more: of pairs, all 60,000 images")] = False,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Measure a published study anew, beside its figures. A long one that was broken off goes on by the same --out."""
    from ..reproduce import study
    from .say import words
    from .show import reproduced

    reproduced(study(name, data=data, out=out, seed=seed, watch=words, quick=quick, full=full), as_json)


@app.command(epilog=_example("crowdwise simulate hammer-spammer --tasks 500 --workers 40 --out crowd"))
def simulate(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="confusion, one-coin, hammer-spammer, groups, experts, triangle, clicks or pinwheel",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for answers.csv, truth.csv, workers.csv, features")],
    layout: Annotated[str, typer.Option(metavar="NAME", help="Of clicks: E, P1, P2, or H1 to H5")] = "P1",
    tasks: Annotated[int, typer.Option(help="How many tasks")] = 1000,
    workers: Annotated[int | None, typer.Option(help="How many workers; 50, of a pinwheel 20")] = None,
    classes: Annotated[int, typer.Option(help="How many classes")] = 3,
    per_task: Annotated[int, typer.Option(help="Answers per task")] = 5,
    load: Annotated[str, typer.Option(help="Work of workers: even, or skewed (a few do most)")] = "even",
    fresh: Annotated[int, typer.Option(help="Further tasks with features and no answers (experts, triangle)")] = 0,
    seed: opt.Seed = 0, as_json: opt.Json = False,
) -> None:  # fmt: skip
    """Simulate a crowd whose truth and skills are known."""
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


@app.command(epilog=_example("crowdwise models --json"))
def models(as_json: opt.Json = False) -> None:
    """List the models of every kind of answers and their settings."""
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


@app.command(epilog=_example("crowdwise demo --out demo"))
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for everything it writes")] = Path("demo"),
    seed: opt.Seed = 7,
) -> None:
    """Simulate a crowd, find the truth behind its answers, and say what came of it."""
    from .demo import run

    run(out, seed)
