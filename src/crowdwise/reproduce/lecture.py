"""The lecture's use case: workers of CIFAR-10H sorted by attention checks, spammer score, trace and time.

The raw answers of CIFAR-10H are not public any more, so a crowd of the same shape is made up: 2,571 workers with 200
images each, 10 of them attention checks, about 50 answers an image; a few workers do not look. Beside it stands a real
set of the same images, cifar10s, where its folder is given.
Salmon, Supervised learning by crowdsourcing; Peterson et al. 2019; Raykar & Yu 2011.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..aggregation import aggregate
from ..answers import Labels
from ..comparison import score
from ..errors import option
from ..inter_rater import rank_correlation
from ..io import read
from ..kernels.layout import Floats
from ..result import LabelsResult
from ..result.files import write_whole
from ..simulate import assign_workers, draw_labels
from .study import Asked, Part, Study, require_files

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ALIKE = {0: (2, 8), 1: (9,), 2: (0, 4, 6), 3: (5,), 4: (7, 2), 5: (3, 7), 6: (2, 3), 7: (4, 5), 8: (0,), 9: (1,)}
WORKERS, IMAGES, CHECK_IMAGES = 2571, 10_000, 100
LOW = 0.8  # the lecture's line for attention checks


def lecture(asked: Asked) -> Study:
    """The four rankings side by side, on the simulated crowd and on the real set; it is quick in any case."""
    data, out, seed, watch, _, _ = asked
    watch("the simulated crowd")
    real = None if data is None else cifar10s(data, seed)
    parts, files = _measured("simulated CIFAR-10H", out, *simulated(seed))
    if real is not None:
        watch("the real set")
        more, further = _measured("cifar10s", out, *real)
        parts, files = parts + more, files + further
    return Study("lecture", tuple(parts), tuple(files))


def simulated(seed: int) -> tuple[Labels, Any, Floats]:
    """Answers of the simulated crowd, the class of every task, and each worker's true chance of a right answer."""
    rng = np.random.default_rng(seed)
    matrices, careless = _matrices(rng)
    worker, image = assign_workers(WORKERS, IMAGES, 190, rng=rng)
    check_worker, check = assign_workers(WORKERS, CHECK_IMAGES, 10, rng=rng)
    truth = rng.permutation(np.arange(IMAGES + CHECK_IMAGES) % len(CLASSES))
    easy = np.where(careless[:, None, None], matrices, 0.8 * np.eye(len(CLASSES)) + 0.2 * matrices)  # obvious images
    told = draw_labels(truth, image, worker, matrices, rng), draw_labels(truth, IMAGES + check, check_worker, easy, rng)
    task, who = np.concatenate([image, IMAGES + check]), np.concatenate([worker, check_worker])
    pace = np.where(careless, np.log(0.5), rng.normal(np.log(1.9), 0.3, WORKERS))
    names = pl.Series([f"image-{i:05d}" for i in range(IMAGES)] + [f"check-{i:03d}" for i in range(CHECK_IMAGES)])
    classes = pl.Series(CLASSES)
    table = pl.DataFrame(
        {
            "task": names[task],
            "worker": pl.Series([f"{j:04d}" for j in range(WORKERS)])[who],
            "label": classes[np.concatenate(told)],
            "seconds": np.exp(pace[who] + rng.normal(0, 0.5, len(who))),
            "is_check": task >= IMAGES,
        }
    )
    gold = pl.DataFrame({"task": names[IMAGES:], "label": classes[truth[IMAGES:]]})
    answers = Labels(table, gold=gold, source="simulated CIFAR-10H")
    order = np.argsort(names.to_numpy())  # tasks are kept by name
    codes = np.array([answers.classes.to_list().index(name) for name in CLASSES])
    return answers, codes[truth[order]], np.einsum("jkk->j", matrices) / len(CLASSES)


def _matrices(rng: np.random.Generator) -> tuple[Floats, Any]:
    """(W, K, K) confusion matrices of people who mix up what looks alike, and who does not look at all."""
    K = len(CLASSES)
    accuracy = 1 - rng.beta(2, 38, WORKERS)
    matrices = np.repeat(((1 - accuracy) * 0.3 / (K - 1))[:, None, None], K, 1).repeat(K, 2)
    for k, near in ALIKE.items():
        matrices[:, k, list(near)] += ((1 - accuracy) * 0.7 / len(near))[:, None]
        matrices[:, k, k] = accuracy
    careless = rng.random(WORKERS) < 0.006  # they do not look; the lecture saw 16 of 2,571 below 0.8 on checks
    habit = rng.dirichlet(np.full(K, 0.5), WORKERS)
    looks = rng.uniform(0.0, 0.5, WORKERS)[:, None, None]
    matrices[careless] = (looks * matrices + (1 - looks) * habit[:, None, :])[careless]
    return matrices / matrices.sum(2, keepdims=True), careless


def cifar10s(folder: Path, seed: int) -> tuple[Labels, Any]:
    """The real answers, with the truth of a few images (5 of a worker's 25) taken as known, for attention checks; and
    the whole truth."""
    hint = f". Give the folder of cifar10s with {option('data')}"
    require_files(folder, ("answers.parquet", "truth.parquet"), hint)
    truth = pl.read_parquet(folder / "truth.parquet").select("task", "label")
    checks = truth.sort("task").sample(fraction=0.2, seed=seed)
    answers, whole = (read(folder / "answers.parquet", gold=gold, duplicates="last") for gold in (checks, truth))
    return answers, whole.gold


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
    page = result.report(out / f"{stem}.html", models=("majority-vote",), check=False)
    return parts, [write_whole(out / f"{stem}-workers.csv", ratings.write_csv), page]


def _labels(title: str, truth: Any, result: LabelsResult) -> Part:
    answers = result.answers
    open_ = np.where(answers.gold < 0, truth, -1)
    fits = {"majority-vote": aggregate(answers, "majority-vote"), "dawid-skene": result, "pooled": aggregate(answers)}
    rows = [(name, *score(fit.posterior, open_)) for name, fit in fits.items()]
    sizes = f"{answers.n_workers} workers, {answers.n_tasks} tasks, {answers.n_answers} answers"
    return Part.of(f"{title}: labels ({sizes})", rows, heads=["model", "accuracy", "log_loss"])


def _correlations(title: str, result: LabelsResult, skill: Floats | None) -> Part:
    """Spearman's between the rankings; time with its sign as it is."""
    rankings = ("check_score", "spam_score", "trace", "seconds", "skill")
    columns = {name: result.workers[name].to_numpy() for name in rankings}
    if skill is not None:
        columns["true skill"] = skill

    def link(one: Floats, other: Floats) -> float:
        both = np.isfinite(one) & np.isfinite(other)
        return rank_correlation(one[both], other[both])

    rows = [(name, *(link(values, other) for other in columns.values())) for name, values in columns.items()]
    says = ("check_score is coarse: few checks a worker give many ties.",)
    return Part.of(f"{title}: rank correlations", rows, says, heads=["ranking", *columns])


def _checks(title: str, result: LabelsResult) -> Part:
    checked = result.workers.filter(pl.col("checks") > 0)
    low, flagged = pl.col("check_score") < LOW, pl.col("flags") != ""
    row = {
        "workers with checks": checked.height,
        f"below {LOW} on checks": checked.filter(low).height,
        "flagged": result.workers.filter(flagged).height,
        "below and flagged": checked.filter(low & flagged).height,
    }
    says = (f"the lecture found 16 of {WORKERS} below {LOW} on CIFAR-10H.",)
    return Part.of(f"{title}: attention checks", [row], says if result.answers.n_workers == WORKERS else ())


def _confusions(title: str, result: LabelsResult) -> list[Part]:
    """Best and worst workers by trace, and the average one."""
    ranked = result.workers.filter(pl.col("answers") >= 20).sort("trace", descending=True)["worker"].to_list()
    chosen = {f"best worker {ranked[0]}": ranked[0], f"worst worker {ranked[-1]}": ranked[-1]} if ranked else {}
    return [
        Part(f"{title}: confusion matrix of the {who} (rows: truth)", result.confusion(worker), digits=2)
        for who, worker in {**chosen, "average worker": None}.items()
    ]
