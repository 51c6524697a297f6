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

from ..answers import Labels
from ..comparison import score
from ..errors import FileError
from ..io import read
from ..kernels.layout import Floats
from ..labels import aggregate
from ..reliability import rank_correlation
from ..result import Result
from ..result.files import write_whole
from ..simulate import spoken, who_answers
from .study import Asked, Part, Study

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ALIKE = {0: (2, 8), 1: (9,), 2: (0, 4, 6), 3: (5,), 4: (7, 2), 5: (3, 7), 6: (2, 3), 7: (4, 5), 8: (0,), 9: (1,)}
WORKERS, IMAGES, ASKED, CHECKS, CHECK_IMAGES = 2571, 10_000, 190, 10, 100
CARELESS = 0.006  # part of workers who do not look; the lecture saw 16 of 2,571 below 0.8 on checks
LOW = 0.8  # the lecture's line for attention checks
RANKINGS = ("check_score", "spam_score", "trace", "seconds")
REAL_CHECKS = 0.2  # part of the real set's images whose truth is taken as known: 5 of a worker's 25


def lecture(asked: Asked) -> Study:
    """The four rankings side by side, on the simulated crowd and on the real set; it is quick in any case."""
    data, out, seed, watch, _, _ = asked
    watch("the simulated crowd")
    real = None if data is None else cifar10s(data, seed)
    answers, truth, skill = simulated(seed)
    parts, files = _measured("simulated CIFAR-10H", answers, truth, out, skill)
    if real is not None:
        watch("the real set")
        more, further = _measured("cifar10s", *real, out, None)
        parts, files = parts + more, files + further
    return Study("lecture", tuple(parts), tuple(files))


def simulated(seed: int) -> tuple[Labels, Any, Floats]:
    """Answers of the made-up crowd, the class of every task, and each worker's true chance of a right answer."""
    rng = np.random.default_rng(seed)
    matrices, careless = _matrices(rng)
    worker, image = who_answers(WORKERS, IMAGES, ASKED, rng=rng)
    check_worker, check = who_answers(WORKERS, CHECK_IMAGES, CHECKS, rng=rng)
    truth = rng.permutation(np.arange(IMAGES + CHECK_IMAGES) % len(CLASSES))
    easy = np.where(careless[:, None, None], matrices, 0.8 * np.eye(len(CLASSES)) + 0.2 * matrices)  # obvious images
    told = np.concatenate(
        [spoken(truth, image, worker, matrices, rng), spoken(truth, IMAGES + check, check_worker, easy, rng)]
    )
    task, who = np.concatenate([image, IMAGES + check]), np.concatenate([worker, check_worker])
    pace = np.where(careless, np.log(0.5), rng.normal(np.log(1.9), 0.3, WORKERS))
    known = np.arange(IMAGES + CHECK_IMAGES) >= IMAGES
    names = pl.Series([f"image-{i:05d}" for i in range(IMAGES)] + [f"check-{i:03d}" for i in range(CHECK_IMAGES)])
    classes = pl.Series(CLASSES)
    table = pl.DataFrame(
        {
            "task": names[task],
            "worker": pl.Series([f"{j:04d}" for j in range(WORKERS)])[who],
            "label": classes[told],
            "seconds": np.exp(pace[who] + rng.normal(0, 0.5, len(who))),
            "is_check": task >= IMAGES,
        }
    )
    gold = {"task": names.filter(pl.Series(known)), "label": classes[truth[known]]}
    answers = Labels(table, gold=pl.DataFrame(gold), source="simulated CIFAR-10H")
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
    careless = rng.random(WORKERS) < CARELESS
    habit = rng.dirichlet(np.full(K, 0.5), WORKERS)
    looks = rng.uniform(0.0, 0.5, WORKERS)[:, None, None]
    matrices[careless] = (looks * matrices + (1 - looks) * habit[:, None, :])[careless]
    return matrices / matrices.sum(2, keepdims=True), careless


def cifar10s(folder: Path, seed: int) -> tuple[Labels, Any]:
    """The real answers, with the truth of a few images taken as known, for attention checks; and the whole truth."""
    for name in ("answers.parquet", "truth.parquet"):
        if not (folder / name).exists():
            raise FileError(f"no {name} in {folder}. Give the folder of cifar10s with --data")
    truth = pl.read_parquet(folder / "truth.parquet").select("task", "label")
    checks = truth.sort("task").sample(fraction=REAL_CHECKS, seed=seed)
    answers = read(folder / "answers.parquet", gold=checks, duplicates="last")
    return answers, read(folder / "answers.parquet", gold=truth, duplicates="last").gold


def _measured(
    title: str, answers: Labels, truth: Any, out: Path | None, skill: Floats | None
) -> tuple[list[Part], list[Path]]:
    result = aggregate(answers, "dawid-skene")
    parts = [
        _labels(title, answers, truth, result),
        _correlations(title, result, skill),
        _checks(title, result),
        *_confusions(title, result),
    ]
    return parts, _files(title, result, out)


def _labels(title: str, answers: Labels, truth: Any, result: Result) -> Part:
    open_ = np.where(answers.gold < 0, truth, -1)
    fits = {"majority-vote": aggregate(answers, "majority-vote"), "dawid-skene": result, "pooled": aggregate(answers)}
    rows = [(name, *score(fit.posterior, open_)) for name, fit in fits.items()]
    table = pl.DataFrame(rows, schema=["model", "accuracy", "log_loss"], orient="row")
    sizes = f"{answers.n_workers} workers, {answers.n_tasks} tasks, {answers.n_answers} answers"
    return Part(f"{title}: labels ({sizes})", table)


def _correlations(title: str, result: Result, skill: Floats | None) -> Part:
    """Spearman's between the rankings; time with its sign as it is."""
    table = result.workers
    columns = {name: table[name].to_numpy() for name in (*RANKINGS, "skill")}
    if skill is not None:
        columns["true skill"] = skill
    rows = []
    for name, values in columns.items():
        links = []
        for other in columns.values():
            both = np.isfinite(values) & np.isfinite(other)
            links.append(rank_correlation(values[both], other[both]))
        rows.append((name, *links))
    schema = ["ranking", *columns]
    says = ("check_score is coarse: few checks a worker give many ties.",)
    return Part(f"{title}: rank correlations", pl.DataFrame(rows, schema=schema, orient="row"), says)


def _checks(title: str, result: Result) -> Part:
    table = result.workers.filter(pl.col("checks") > 0)
    low = table.filter(pl.col("check_score") < LOW)
    flags, answered = result.workers.filter(pl.col("flags") != ""), result.answers.n_workers
    rows = pl.DataFrame(
        {
            "workers with checks": [table.height],
            f"below {LOW} on checks": [low.height],
            "flagged": [flags.height],
            "below and flagged": [low.filter(pl.col("flags") != "").height],
        }
    )
    said = f"the lecture found 16 of {WORKERS} below {LOW} on CIFAR-10H"
    return Part(f"{title}: attention checks", rows, (f"{said}.",) if answered == WORKERS else ())


def _confusions(title: str, result: Result) -> list[Part]:
    """Best and worst workers by trace, and the average one."""
    ranked = result.workers.filter(pl.col("answers") >= 20).sort("trace", descending=True)
    chosen = [("best", ranked[0, "worker"]), ("worst", ranked[-1, "worker"])] if ranked.height else []
    parts = []
    for word, worker in [*chosen, ("average", None)]:
        matrix = result.confusion(worker)
        who = f"{word} worker {worker}" if worker is not None else "average worker"
        parts.append(Part(f"{title}: confusion matrix of the {who} (rows: truth)", matrix, digits=2))
    return parts


def _files(title: str, result: Result, out: Path | None) -> list[Path]:
    if out is None:
        return []
    stem = title.split()[0].lower()
    ratings = result.workers.sort("rank", nulls_last=True)
    page = result.report(out / f"{stem}.html", models=("majority-vote",), check=False)
    return [write_whole(out / f"{stem}-workers.csv", ratings.write_csv), page]
