"""The lecture's use case: workers of CIFAR-10H ranked by attention checks, spammer score, trace and time.

The raw answers of CIFAR-10H are no longer public, so a crowd of the same shape is simulated: 2,571 workers with 200
images each, 10 of them attention checks, about 50 answers per image, and a few workers who do not look. If its folder
is given, the same is measured on cifar10s, real answers about the same images.
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
from ..kernels.layout import Floats
from ..result import LabelsResult
from ..result.files import write_whole
from ..simulate import assign_workers, draw_labels
from .study import Part, Study, StudyOptions, require_files

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
LOOK_ALIKES = {0: (2, 8), 1: (9,), 2: (0, 4, 6), 3: (5,), 4: (7, 2), 5: (3, 7), 6: (2, 3), 7: (4, 5), 8: (0,), 9: (1,)}
WORKERS, IMAGES, CHECK_IMAGES = 2571, 10_000, 100
MIN_CHECK_SCORE = 0.8  # the lecture's threshold for attention checks


def lecture(options: StudyOptions) -> Study:
    """Compare the four rankings on the simulated crowd, and on the real set; `quick` changes nothing."""
    data, out, seed, watch, _, _ = options
    watch("the simulated crowd")
    real = None if data is None else cifar10s(data, seed)
    parts, files = _measured("simulated CIFAR-10H", out, *simulated(seed))
    if real is not None:
        watch("the real set")
        real_parts, real_files = _measured("cifar10s", out, *real)
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
    hint = f". Give the folder of cifar10s with {option('data')}"
    require_files(folder, ("answers.parquet", "truth.parquet"), hint)
    truth = pl.read_parquet(folder / "truth.parquet").select("task", "label")
    checks = truth.sort("task").sample(fraction=0.2, seed=seed)
    answers, with_truth = (read(folder / "answers.parquet", gold=gold, duplicates="last") for gold in (checks, truth))
    return answers, with_truth.gold


def _measured(
    title: str, out: Path | None, answers: Labels, truth: Any, skill: Floats | None = None
) -> tuple[list[Part], list[Path]]:
    result = aggregate(answers, "dawid-skene")
    parts = [_labels(title, truth, result), _correlations(title, result, skill), _checks(title, result)]
    parts += _confusions(title, result)
    if out is None:
        return parts, []
    stem = title.split()[0].lower()
    ratings = result.workers.sort("rank", nulls_last=True)
    votes = compare(result.answers, ["majority-vote"], folds=0, run=Run(seed=result.seed), against=result)
    page = result.report(out / f"{stem}.html", comparison=votes)
    return parts, [write_whole(out / f"{stem}-workers.csv", ratings.write_csv), page]


def _labels(title: str, truth: Any, result: LabelsResult) -> Part:
    answers = result.answers
    without_gold = np.where(answers.gold < 0, truth, -1)  # models know the gold labels, so they do not count
    fits = {"majority-vote": aggregate(answers, "majority-vote"), "dawid-skene": result, "pooled": aggregate(answers)}
    rows = [(name, *score(fit.posterior, without_gold)) for name, fit in fits.items()]
    sizes = f"{answers.n_workers} workers, {answers.n_tasks} tasks, {answers.n_answers} answers"
    return Part.of(f"{title}: labels ({sizes})", rows, heads=["model", "accuracy", "log_loss"])


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
        "flagged": result.workers.filter(flagged).height,
        "below and flagged": checked.filter(low & flagged).height,
    }
    notes = (f"In the lecture, 16 of the {WORKERS} workers of CIFAR-10H were below {MIN_CHECK_SCORE}.",)
    return Part.of(f"{title}: attention checks", [row], notes if result.answers.n_workers == WORKERS else ())


def _confusions(title: str, result: LabelsResult) -> list[Part]:
    """Confusion matrices of the best and the worst worker by trace, and of the average worker."""
    ranked = result.workers.filter(pl.col("answers") >= 20).sort("trace", descending=True)["worker"].to_list()
    chosen = {f"best worker {ranked[0]}": ranked[0], f"worst worker {ranked[-1]}": ranked[-1]} if ranked else {}
    return [
        Part(f"{title}: confusion matrix of the {name} (rows: true class)", result.confusion(worker), digits=2)
        for name, worker in {**chosen, "average worker": None}.items()
    ]
