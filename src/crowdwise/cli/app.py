"""The commands. Everything heavy is imported inside them, so that `--help` is instant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .say import Sheet, say_json
from .source import FitModel, FitSeed, Model, Seed, Source, Threads, from_source, from_source_or_result

app = typer.Typer(
    name="crowdwise",
    help="Learning from crowds: the truth behind many answers, who is good, what is hard, and how sure it is.",
    epilog="Start with: crowdwise demo",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the results")]
Table = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the whole table as CSV")]
Top = Annotated[int, typer.Option(min=1, help="Rows shown")]
Raw = Annotated[bool, typer.Option("--raw", help="Leave cells as they are that a spreadsheet would take for formulas")]
ExcelSafe = Annotated[
    bool, typer.Option("--excel-safe", help="Make text of cells that a spreadsheet would take for formulas")
]
Page = Annotated[bool, typer.Option("--page/--no-page", help="Write report.html, too")]
Models = Annotated[list[str] | None, typer.Option("--model", metavar="NAME", help="Only these models; may be repeated")]
Format = Annotated[str | None, typer.Option(metavar="NAME", help="csv, json, jsonl or parquet; else found")]
Delimiter = Annotated[str | None, typer.Option(metavar="CHAR", help="What separates fields; else found")]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="For instance latin-1; else UTF-8")]
WorkerColumn = Annotated[str | None, typer.Option(metavar="COL", help="Column of the worker")]
OutDir = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results")]
Resume = Annotated[bool, typer.Option(help="Continue where an interrupted run stopped (needs --out)")]
NpzArray = Annotated[str | None, typer.Option(metavar="NAME", help="The array of an npz file, if not x")]
Setting = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model; may be repeated")
]


def _example(text: str) -> str:
    return f"Example: {text}"


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Say the version and leave")] = False) -> None:
    if version:
        from .. import __version__

        print(f"crowdwise {__version__}")
        raise typer.Exit


@app.command(epilog=_example("crowdwise inspect answers.csv --label verdict"))
@from_source
def inspect(source: Source, as_json: Json = False) -> None:
    """Say what was understood of a file: rows, tasks, workers, labels, what was dropped and why."""
    from ..report import inspect as inspection
    from .show import inspected

    answers = source.answers()
    if as_json:
        say_json(inspection(answers).as_dict())
    else:
        inspected(answers)


@app.command(epilog=_example("crowdwise aggregate answers.csv --out results --gold known.csv --model dawid-skene"))
@from_source
def aggregate(
    source: Source,
    out: Out = None,
    model: Model = "pooled",
    max_iter: Annotated[int | None, typer.Option(help="Iterations at most")] = None,
    tol: Annotated[float | None, typer.Option(help="Convergence tolerance on worker skill")] = None,
    setting: Setting = None,
    precision: Annotated[str, typer.Option(help="Storage of large tables: auto, single or double")] = "auto",
    resume: Resume = False,
    page: Page = True,
    excel_safe: ExcelSafe = False,
    seed: Seed = 0,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """Find the truth behind answers. Writes labels.csv, workers.csv, tasks.csv, report.html and the saved result to
    --out; without --out, labels go to stdout as CSV."""
    from .run import Job, settings_of, work

    settings = settings_of(setting or [], max_iter=max_iter, tol=tol)
    job = Job(
        name=model, settings=settings, out=out, seed=seed, threads=threads, precision=precision, resume=resume,
        page=page, excel_safe=excel_safe,
    )  # fmt: skip
    result = work(job, source.answers())
    from .show import aggregated

    aggregated(result, out, as_json, excel_safe)
    if not result.converged:
        raise typer.Exit(3)


@app.command(epilog=_example("crowdwise workers answers.csv --top 30; crowdwise workers results --flagged"))
@from_source_or_result
def workers(
    source: Source,
    top: Top = 20,
    flagged: Annotated[bool, typer.Option("--flagged", help="Only workers with a flag")] = False,
    out: Table = None,
    raw: Raw = False,
    model: FitModel = None,
    seed: FitSeed = None,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """Rate workers: skill with its interval, spammer score, trace, attention checks, time, and flags with reasons."""
    from .show import rated

    rated(source.result(model, seed, threads), top, flagged, Sheet(out, raw), as_json)


@app.command(epilog=_example("crowdwise tasks answers.csv --top 50 --out review.csv"))
@from_source_or_result
def tasks(
    source: Source,
    top: Top = 20,
    out: Table = None,
    raw: Raw = False,
    model: FitModel = None,
    seed: FitSeed = None,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """The queue of tasks most worth another look: votes, doubt, disagreement, and whether other models disagree."""
    from ..acquisition import review
    from .show import queued

    result = source.result(model, seed, threads)
    queued(review(result, None if out or as_json else top), top, result, Sheet(out, raw), as_json)


@app.command(epilog=_example("crowdwise agreement answers.csv --json"))
@from_source_or_result
def agreement(source: Source, as_json: Json = False) -> None:
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
@from_source_or_result
def next_(
    source: Source,
    budget: Annotated[int, typer.Option(help="Answers that can be paid for")] = 100,
    batch: Annotated[int | None, typer.Option(help="How many of them to ask for now; else all")] = None,
    top: Top = 20,
    out: Table = None,
    raw: Raw = False,
    model: FitModel = None,
    seed: FitSeed = None,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """Which tasks to ask again, and of whom where it matters, by what an answer is expected to gain."""
    from ..acquisition import check_budget, next_tasks
    from .show import asked

    check_budget(budget, batch)
    table = next_tasks(source.result(model, seed, threads), budget, batch=batch)
    asked(table, budget, top, Sheet(out, raw), as_json)


@app.command(epilog=_example("crowdwise report results; crowdwise report answers.csv --out report.html"))
@from_source_or_result
def report(
    source: Source,
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
    model: FitModel = None,
    seed: FitSeed = None,
    threads: Threads = 0,
) -> None:
    """Write one self-contained HTML page about a result."""
    from ..comparison import chosen_models
    from ..errors import ParameterError
    from .command import command_line, verb_of
    from .say import words

    chosen_models(compare_with, 0)
    given = {"models": compare_with, "check": check, "pictures": pictures}
    if source.saved:
        result = source.any_loaded(model=model, seed=seed)
    elif pictures is not None:
        raise ParameterError("--pictures goes with a saved result of clicks, the folder of `crowdwise points`")
    else:
        result = source.result(model, seed, threads)
    options = {name: value for name, value in given.items() if value is not None}
    place = out or (source.folder or Path()) / "report.html"
    words(f"wrote {result.report(place, command=command_line(verb_of(result), result), **options)}")


@app.command(
    epilog=_example("crowdwise learn answers.csv --features features.parquet --workers adaptive --out results")
)
@from_source
def learn(
    source: Source,
    features: Annotated[
        Path, typer.Option(metavar="FILE", help="A table with a column task, or npz with arrays x and task")
    ],
    out: OutDir,
    workers: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="learned, adaptive, confusion, groups, tied, pooled, ...: `crowdwise models`"
        ),
    ] = "learned",
    classifier: Annotated[str, typer.Option(metavar="NAME", help="logistic or mlp")] = "logistic",
    array: NpzArray = None,
    threshold: Annotated[float, typer.Option(help="Of two classes, the second is predicted above this")] = 0.5,
    restarts: Annotated[int, typer.Option(help="Fits of a network, the best of which is kept")] = 1,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the workers; may be repeated")
    ] = None,
    resume: Resume = False,
    page: Page = True,
    excel_safe: ExcelSafe = False,
    seed: Seed = 0,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """Learn a classifier of features from answers. Writes labels.csv, workers.csv, tasks.csv, report.html, groups.csv
    and members.csv where workers have groups, predictions.csv of rows without answers, roc.csv where gold is given, the
    saved result and the saved classifier."""
    from ..engine.extras import require

    require(("learn",), "crowdwise learn")
    from .learn import LearnJob
    from .learn import learn as learnt
    from .run import settings_of

    job = LearnJob(
        name=workers, settings=settings_of(setting or []), out=out, seed=seed, threads=threads, resume=resume,
        page=page, excel_safe=excel_safe, features=features, array=array, classifier=classifier, threshold=threshold,
        restarts=restarts,
    )  # fmt: skip
    if not learnt(job, source.answers(), as_json):
        raise typer.Exit(3)


@app.command(epilog=_example("crowdwise points clicks.csv --jobs jobs.csv --box 0,0,300,300 --out results"))
def points(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Clicks: CSV, TSV, JSON, JSONL or Parquet, also .gz; - is stdin")
    ],
    out: OutDir,
    jobs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who looked at what: image, worker; also without a click")
    ] = None,
    box: Annotated[
        str | None, typer.Option(metavar="BOX", help="x0,y0,x1,y1 of all images, or a table with a row an image")
    ] = None,
    image: Annotated[str | None, typer.Option(metavar="COL", help="Column of the image")] = None,
    worker: WorkerColumn = None,
    axes: Annotated[str | None, typer.Option(metavar="COLS", help="Columns of the coordinates: x,y or x,y,z")] = None,
    unit: Annotated[
        str | None, typer.Option(metavar="NAME", help="pixels; percent or fraction of the box; else as they are")
    ] = None,
    outside: Annotated[str, typer.Option(metavar="RULE", help="Clicks outside the box: drop or error")] = "drop",
    duplicates: Annotated[
        str, typer.Option(metavar="RULE", help="A worker's clicks on one very spot: first, each or error")
    ] = "first",
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="See `crowdwise models`")] = "click-mixture",
    method: Annotated[str | None, typer.Option(metavar="NAME", help="Of click-mixture: merge or paper")] = None,
    objects: Annotated[int | None, typer.Option(help="Objects in every image; else found")] = None,
    setting: Setting = None,
    pictures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the images, shown under the clicks")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True objects (image, x, y), to be matched one to one")
    ] = None,
    within: Annotated[float, typer.Option(help="Distance within which an object is a true one")] = 4.0,
    resume: Resume = False,
    page: Page = True,
    excel_safe: ExcelSafe = False,
    seed: Seed = 0,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """Find objects in the clicks of many workers. Writes objects.csv, workers.csv, clicks.csv, images.csv, report.html,
    the saved result, and matched.csv where the truth is given."""
    from .points import PointsJob, box_of, run_points
    from .run import settings_of

    reading = {
        "jobs": jobs, "box": box_of(box), "image": image, "worker": worker, "unit": unit, "outside": outside,
        "axes": None if axes is None else axes.split(","), "duplicates": duplicates, "format": format,
        "delimiter": delimiter.replace("\\t", "\t") if delimiter else None, "encoding": encoding,
    }  # fmt: skip
    settings = settings_of(setting or [], method=method, objects=objects)
    job = PointsJob(
        name=model, settings=settings, out=out, seed=seed, threads=threads, resume=resume, page=page,
        excel_safe=excel_safe, file=file, reading=reading, pictures=pictures, truth=truth, within=within,
    )  # fmt: skip
    if not run_points(job, as_json):
        raise typer.Exit(3)


@app.command(epilog=_example("crowdwise pairs pairs.csv --features features.npz --out results"))
def pairs(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Answers: CSV, TSV, JSON, JSONL or Parquet, also .gz; - is stdin")
    ],
    out: OutDir,
    features: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table with a column item, or npz with arrays x and item")
    ] = None,
    array: NpzArray = None,
    unknown: Annotated[
        str, typer.Option(metavar="RULE", help="Pairs whose items have no features: error or drop")
    ] = "error",
    left: Annotated[str | None, typer.Option(metavar="COL", help="Column of one item")] = None,
    right: Annotated[str | None, typer.Option(metavar="COL", help="Column of the other item")] = None,
    worker: WorkerColumn = None,
    answer: Annotated[str | None, typer.Option(metavar="COL", help="Column of the answer")] = None,
    hit: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the job, whose answers hang together")
    ] = None,
    same: Annotated[
        list[str] | None, typer.Option(metavar="VALUE", help="An answer that means the same; may be repeated")
    ] = None,
    contradictions: Annotated[
        str, typer.Option(metavar="RULE", help="Answers of a worker to a pair that contradict: drop, each or error")
    ] = "drop",
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="See `crowdwise models`")] = "pair-mixture",
    setting: Setting = None,
    truth: Annotated[
        Path | None, typer.Option(metavar="FILE", help="True clusters: item, label; or pairs: left, right, answer")
    ] = None,
    ask: Annotated[int, typer.Option(help="Pairs worth asking next that are written")] = 100,
    resume: Resume = False,
    page: Page = True,
    excel_safe: ExcelSafe = False,
    seed: Seed = 0,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """Find clusters of items in same/different answers, with or without features. Writes clusters.csv, sizes.csv,
    workers.csv, asked.csv, next.csv, report.html and the saved result."""
    from .pairs import PairsJob, run_pairs
    from .run import settings_of

    reading = {
        "left": left, "right": right, "worker": worker, "answer": answer, "hit": hit, "same": same or None,
        "contradictions": contradictions, "format": format, "encoding": encoding,
        "delimiter": delimiter.replace("\\t", "\t") if delimiter else None,
    }  # fmt: skip
    job = PairsJob(
        name=model, settings=settings_of(setting or []), out=out, seed=seed, threads=threads, resume=resume, page=page,
        excel_safe=excel_safe, file=file, reading=reading, features=features, array=array, unknown=unknown, truth=truth,
        ask=ask,
    )  # fmt: skip
    if not run_pairs(job, as_json):
        raise typer.Exit(3)


@app.command(epilog=_example("crowdwise compare answers.csv --gold known.csv --folds 10"))
@from_source
def compare(
    source: Source,
    model: Models = None,
    folds: Annotated[int, typer.Option(help="Parts the answers are hidden in; 0 for no held-out score")] = 5,
    seed: Seed = 0,
    threads: Threads = 0,
    as_json: Json = False,
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
    out: Out = None,
    quick: Annotated[bool, typer.Option("--quick", help="Measure less: fewer seeds, starts and images")] = False,
    full: Annotated[bool, typer.Option("--full", help="Measure more: of pairs, all 60,000 images")] = False,
    seed: Seed = 0,
    as_json: Json = False,
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
    per_task: Annotated[int, typer.Option(help="Answers a task")] = 5,
    load: Annotated[str, typer.Option(help="Work of workers: even, or skewed (a few do most)")] = "even",
    fresh: Annotated[int, typer.Option(help="Further tasks with features and no answers (experts, triangle)")] = 0,
    seed: Seed = 0, as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate a crowd whose truth and skills are known."""
    from ..errors import ParameterError
    from ..simulate import crowd
    from .say import words

    if name == "clicks":
        from ..simulate import clicks

        drawn = clicks(layout, seed=seed)
        files = [str(path) for path in drawn.save(out)]
        if as_json:
            say_json({"files": files, "clicks": drawn.points.n_clicks, "seed": seed})
        else:
            words(f"{drawn.points.n_clicks} clicks of {drawn.points.n_workers} workers on {len(drawn.centres)} objects")
            words("all in the box 1,0,4,5", *files)
        return
    if name == "pinwheel":
        from ..simulate import pinwheel

        spun = pinwheel(workers=20 if workers is None else workers, seed=seed)
        files = [str(path) for path in spun.save(out)]
        if as_json:
            say_json({"files": files, "answers": spun.pairs.n_answers, "seed": seed})
        else:
            words(
                f"{spun.pairs.n_answers} answers of {spun.pairs.n_workers} workers on {spun.truth.height} items", *files
            )
        return
    workers = 50 if workers is None else workers
    if load not in ("even", "skewed"):
        raise ParameterError(f"--load is {load!r}; it can be even or skewed")
    more = {"fresh": fresh} if fresh else {}
    made = crowd(name, tasks=tasks, workers=workers, classes=classes, per_task=per_task, load=load, seed=seed, **more)  # type: ignore[arg-type]
    files = [str(path) for path in made.save(out)]
    if as_json:
        say_json({"files": files, "answers": made.answers.n_answers, "seed": seed})
    else:
        words(f"{made.answers.n_answers} answers of {workers} workers on {tasks} tasks", *files)


@app.command(epilog=_example("crowdwise models --json"))
def models(as_json: Json = False) -> None:
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
    seed: Seed = 7,
) -> None:
    """Simulate a crowd, find the truth behind its answers, and say what came of it."""
    from .demo import run

    run(out, seed)
