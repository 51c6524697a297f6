"""The lecture's use case: workers of CIFAR-10H ranked by attention checks, spammer score, trace and time.

The lecture has the raw answers of CIFAR-10H. They are public (github.com/jcpeterson/cifar-10h, cifar10h-raw.zip), but
not part of this library, so a crowd of the same shape is simulated: 2,571 workers with 200 images each, 10 of them
attention checks, about 50 answers per image, and a few workers who do not look. If its folder is given, the same is
measured on cifar10s, real answers about the same images.
Salmon, Supervised learning by crowdsourcing; Peterson et al. 2019; Raykar & Yu 2011.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..aggregation import aggregate
from ..answers import Labels
from ..comparison import compare, score
from ..engine import Run
from ..errors import option
from ..inter_rater import rank_correlation
from ..io import read
from ..kernels.layout import Bools, Floats
from ..rating.checks import drop_below
from ..rating.times import times
from ..result import LabelsResult
from ..result.files import write_whole
from ..simulate import assign_workers, draw_labels
from .figures import Histogram, draw_histogram, draw_matrices, printable
from .study import Part, Study, StudyOptions, require_files

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
LOOK_ALIKES = {0: (2, 8), 1: (9,), 2: (0, 4, 6), 3: (5,), 4: (7, 2), 5: (3, 7), 6: (2, 3), 7: (4, 5), 8: (0,), 9: (1,)}
WORKERS, IMAGES, CHECK_IMAGES = 2571, 10_000, 100
MIN_CHECK_SCORE, AUTHORS_SCORE = 0.8, 0.75  # thresholds for attention checks of the lecture, and of CIFAR-10H
MODELS = ("majority-vote", "dawid-skene", "pooled")
RANKINGS = {"checks": "attention checks", "spam": "spammer score", "trace": "trace", "time": "median time"}
PLACES = ("", "second ", "third ")  # of the best and of the worst workers
MIN_ANSWERS = 20  # of a worker whose confusion matrix is shown


def lecture(options: StudyOptions) -> Study:
    """Compare the four rankings on the simulated crowd, and on the real set; `quick` changes nothing."""
    options.watch("the simulated crowd")
    real = None if options.data is None else cifar10s(options.data, options.seed)
    parts, files = _measured("simulated CIFAR-10H", options, *simulated(options.seed))
    if real is not None:
        options.watch("the real set")
        real_parts, real_files = _measured("cifar10s", options, *real)
        parts, files = parts + real_parts, files + real_files
    return Study("lecture", tuple(parts), tuple(files))


def simulated(seed: int) -> tuple[Labels, Any, Floats]:
    """Simulate the crowd; returns its answers, the class of every task, and the true accuracy of every worker."""
    rng = np.random.default_rng(seed)
    matrices, careless = _confusion_matrices(rng)
    worker, image = assign_workers(WORKERS, IMAGES, 190, rng=rng)
    check_worker, check = assign_workers(WORKERS, CHECK_IMAGES, 10, rng=rng)
    truth = rng.permutation(np.arange(IMAGES + CHECK_IMAGES) % len(CLASSES))
    easy = np.where(careless[:, None, None], matrices, 0.8 * np.eye(len(CLASSES)) + 0.2 * matrices)  # on obvious images
    labels = (
        draw_labels(truth, image, worker, matrices, rng),
        draw_labels(truth, IMAGES + check, check_worker, easy, rng),
    )
    task, worker = np.concatenate([image, IMAGES + check]), np.concatenate([worker, check_worker])
    log_seconds = np.where(careless, np.log(0.5), rng.normal(np.log(1.9), 0.3, WORKERS))
    names = pl.Series([f"image-{i:05d}" for i in range(IMAGES)] + [f"check-{i:03d}" for i in range(CHECK_IMAGES)])
    classes = pl.Series(CLASSES)
    table = pl.DataFrame(
        {
            "task": names[task],
            "worker": pl.Series([f"{j:04d}" for j in range(WORKERS)])[worker],
            "label": classes[np.concatenate(labels)],
            "seconds": np.exp(log_seconds[worker] + rng.normal(0, 0.5, len(worker))),
            "is_check": task >= IMAGES,
        }
    )
    gold = pl.DataFrame({"task": names[IMAGES:], "label": classes[truth[IMAGES:]]})
    answers = Labels(table, gold=gold, source="simulated CIFAR-10H")
    order = np.argsort(names.to_numpy())  # answers sort their tasks by name
    codes = np.array([answers.classes.to_list().index(name) for name in CLASSES])
    return answers, codes[truth[order]], np.einsum("jkk->j", matrices) / len(CLASSES)


def _confusion_matrices(rng: np.random.Generator) -> tuple[Floats, Any]:
    """Confusion matrices (W, K, K) of workers who mix up similar classes, and whether each worker is careless, (W,)."""
    K = len(CLASSES)
    accuracy = 1 - rng.beta(2, 38, WORKERS)
    matrices = np.repeat(((1 - accuracy) * 0.3 / (K - 1))[:, None, None], K, 1).repeat(K, 2)
    for k, similar in LOOK_ALIKES.items():
        matrices[:, k, list(similar)] += ((1 - accuracy) * 0.7 / len(similar))[:, None]
        matrices[:, k, k] = accuracy
    careless = rng.random(WORKERS) < 0.006  # in the lecture, 16 of 2,571 workers were below 0.8 on checks
    habit = rng.dirichlet(np.full(K, 0.5), WORKERS)
    attention = rng.uniform(0.0, 0.5, WORKERS)[:, None, None]
    matrices[careless] = (attention * matrices + (1 - attention) * habit[:, None, :])[careless]
    return matrices / matrices.sum(2, keepdims=True), careless


def cifar10s(folder: Path, seed: int) -> tuple[Labels, Any]:
    """Real answers, and the true class of every task.

    A fifth of the images (about 5 of a worker's 25) have known labels and serve as attention checks.
    """
    hint = f". {option('data')} must be the folder cifar10s, or the one that holds it"
    folder = folder / "cifar10s" if (folder / "cifar10s").is_dir() else folder
    require_files(folder, ("answers.parquet", "truth.parquet"), hint)
    truth = pl.read_parquet(folder / "truth.parquet").select("task", "label")
    checks = truth.sort("task").sample(fraction=0.2, seed=seed)
    answers, with_truth = (read(folder / "answers.parquet", gold=gold, duplicates="last") for gold in (checks, truth))
    return answers, with_truth.gold


def _measured(
    title: str, options: StudyOptions, answers: Labels, truth: Any, skill: Floats | None = None
) -> tuple[list[Part], list[Path]]:
    fits = {name: aggregate(answers, name) for name in MODELS}
    result = fits["dawid-skene"]
    parts = [_crowd(title, result), _labels(title, truth, fits), _correlations(title, result, skill)]
    parts.append(_checks(title, result))
    if options.drop_below is not None:
        parts.append(_dropped(title, truth, fits, options.drop_below))
    matrices = _confusions(result)
    parts += [
        Part(f"{title}: confusion matrix of the {name} (rows: true class)", result.confusion(worker), digits=2)
        for name, worker in matrices.items()
    ]
    return parts, [] if options.out is None else _write(title, options.out, result, matrices)


def _write(title: str, out: Path, result: LabelsResult, matrices: dict[str, Any]) -> list[Path]:
    """Write the ratings, the page and the figures of a crowd."""
    stem = title.split()[0].lower()
    ratings = result.workers.sort("rank", nulls_last=True)
    votes = compare(result.answers, ["majority-vote"], folds=0, run=Run(seed=result.seed), against=result)
    page = result.report(out / f"{stem}.html", comparison=votes)
    files = [write_whole(out / f"{stem}-workers.csv", ratings.write_csv), page]
    for name, shown in _rankings(title, result).items():
        files.append(draw_histogram(out / f"{stem}-ranking-{name}.svg", shown))
    return [*files, _draw_confusions(out / f"{stem}-confusion.svg", title, result, matrices)]


def _rankings(title: str, result: LabelsResult) -> dict[str, Histogram]:
    """The four rankings as histograms by name; those whose scores are unknown are omitted.

    Only checks and times have a threshold: workers at chance are flagged by a posterior probability, not by the spammer
    score or the trace, so the figures of these mark the workers who are flagged.
    """
    workers = result.workers
    chance = workers["flags"].str.contains("at chance").to_numpy()
    low = (workers["check_score"] < MIN_CHECK_SCORE).fill_null(value=False).to_numpy()
    fast = workers["flags"].str.contains("too fast").to_numpy()
    limit = times([result.answers]).limit
    limit_line = limit if np.isfinite(limit) else None
    under = f"below {MIN_CHECK_SCORE}"
    rankings: dict[str, tuple[str, str, Bools, str, float | None]] = {
        "checks": ("check_score", "share of attention checks answered correctly", low, under, MIN_CHECK_SCORE),
        "spam": ("spam_score", "spammer score (0: answers do not depend on the truth)", chance, "at chance", None),
        "trace": ("trace", "trace of the confusion matrix / number of classes", chance, "at chance", None),
        "time": ("seconds", "median time per answer in seconds", fast, "too fast", limit_line),
    }
    shown = {}
    for name, (column, axis, marked, legend, line) in rankings.items():
        known = workers[column].is_not_null().to_numpy()
        if known.any():
            scores = workers[column].filter(known).to_numpy()
            shown[name] = Histogram(f"{title}: workers by {RANKINGS[name]}", axis, scores, marked[known], legend, line)
    return shown


def _score(fits: dict[str, LabelsResult], truth: Any) -> dict[str, tuple[float | None, float | None]]:
    """Accuracy and log loss of every model; tasks with gold do not count, because the models know their labels."""
    return {name: score(fit.posterior, np.where(fit.answers.gold < 0, truth, -1)) for name, fit in fits.items()}


def _crowd(title: str, result: LabelsResult) -> Part:
    """How many workers and answers there are, and how long the median worker takes."""
    answers, seconds = result.answers, result.workers["seconds"].drop_nulls()
    per_task = np.bincount(answers.codes()[0], minlength=answers.n_tasks)
    checks, images = (per_task[known] for known in (answers.gold >= 0, answers.gold < 0))
    row = {
        "workers": answers.n_workers, "images": len(images), "answers about images": int(images.sum()),
        "attention checks": int(checks.sum()), "answers per image": float(images.mean()),
        "fewest": int(images.min()), "most": int(images.max()),
        "median seconds": None if seconds.is_empty() else float(np.median(seconds.to_numpy())),
    }  # fmt: skip
    return Part.of(f"{title}: the crowd", [row], digits=1)


def _labels(title: str, truth: Any, fits: dict[str, LabelsResult]) -> Part:
    answers = fits["dawid-skene"].answers
    rows = [(name, *scores) for name, scores in _score(fits, truth).items()]
    sizes = f"{answers.n_workers} workers, {answers.n_tasks} tasks, {answers.n_answers} answers"
    return Part.of(f"{title}: labels ({sizes})", rows, heads=["model", "accuracy", "log_loss"])


def _dropped(title: str, truth: Any, fits: dict[str, LabelsResult], threshold: float) -> Part:
    """The models fitted again without the workers below the threshold on attention checks."""
    answers = fits["dawid-skene"].answers
    kept = drop_below(answers, threshold)
    workers, lost = answers.n_workers - kept.n_workers, answers.n_answers - kept.n_answers
    again = _score({name: aggregate(kept, name) for name in fits}, truth)
    rows = [
        {
            "model": name,
            "accuracy": before[0],
            "accuracy without them": again[name][0],
            "log_loss": before[1],
            "log_loss without them": again[name][1],
        }
        for name, before in _score(fits, truth).items()
    ]
    share = f"{workers} of {answers.n_workers} workers, {lost} of {answers.n_answers} answers"
    notes = ("The authors of CIFAR-10H removed 14 workers below 0.75; the lecture could not reproduce that.",)
    heading = f"{title}: labels without workers below {threshold:g} on checks ({share} dropped)"
    return Part.of(heading, rows, notes if answers.n_workers == WORKERS else ())


def _correlations(title: str, result: LabelsResult, skill: Floats | None) -> Part:
    """Spearman's rank correlations between the columns; the sign of time is not changed."""
    rankings = ("check_score", "spam_score", "trace", "seconds", "skill")
    columns = {name: result.workers[name].to_numpy() for name in rankings}
    if skill is not None:
        columns["true skill"] = skill

    def correlation(one: Floats, other: Floats) -> float:
        both = np.isfinite(one) & np.isfinite(other)
        return rank_correlation(one[both], other[both])

    rows = [(name, *(correlation(values, other) for other in columns.values())) for name, values in columns.items()]
    notes = ("check_score is coarse: with few checks per worker, many workers tie.",)
    return Part.of(f"{title}: rank correlations", rows, notes, heads=["ranking", *columns])


def _checks(title: str, result: LabelsResult) -> Part:
    checked = result.workers.filter(pl.col("checks") > 0)
    low, flagged = pl.col("check_score") < MIN_CHECK_SCORE, pl.col("flags") != ""
    row = {
        "workers with checks": checked.height,
        f"below {MIN_CHECK_SCORE} on checks": checked.filter(low).height,
        f"below {AUTHORS_SCORE}": checked.filter(pl.col("check_score") < AUTHORS_SCORE).height,
        "flagged": result.workers.filter(flagged).height,
        "below and flagged": checked.filter(low & flagged).height,
    }
    notes = (f"In the lecture, 16 of the {WORKERS} workers of CIFAR-10H were below {MIN_CHECK_SCORE}.",)
    return Part.of(f"{title}: attention checks", [row], notes if result.answers.n_workers == WORKERS else ())


def _confusions(result: LabelsResult) -> dict[str, Any]:
    """The workers whose confusion matrices are shown, by their place: the best and worst by trace, and the average."""
    rated = result.workers.filter(pl.col("answers") >= MIN_ANSWERS).sort(["trace", "worker"], descending=[True, False])
    ranked = rated["worker"].to_list()
    best, worst = ranked[: len(PLACES)], ranked[len(PLACES) :][::-1]
    named = {f"{place}best worker {worker}": worker for place, worker in zip(PLACES, best, strict=False)}
    named |= {"average worker": None}
    return named | {f"{place}worst worker {worker}": worker for place, worker in zip(PLACES, worst, strict=False)}


def _draw_confusions(path: Path, title: str, result: LabelsResult, chosen: dict[str, Any]) -> Path:
    matrices = {}
    for name, worker in chosen.items():
        number = -1 if worker is None else result.answers.worker_number(worker)
        matrix = result.confusions(np.array([number], np.int32))[0]
        matrices[f"{printable(name, 28)}, trace {np.trace(matrix) / len(matrix):.2f}"] = matrix
    heading = f"{title}: confusion matrices of the best and worst workers by trace, and of the average worker"
    return draw_matrices(path, heading, [str(name) for name in result.classes.to_list()], matrices)
