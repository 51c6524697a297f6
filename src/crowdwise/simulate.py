"""Crowds made up from one seed: workers of known skill, tasks of known truth, and who answers what.

Every simulator is `crowd` with other confusion matrices; later models build theirs the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .answers import Labels
from .errors import ParameterError, nearest
from .kernels.layout import Floats
from .learn.objective import ease_of, softmax
from .result.files import write_whole

Load = Literal["even", "skewed"]
Whole = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class Crowd:
    """Simulated answers with everything that is usually hidden."""

    answers: Labels
    truth: pl.DataFrame  # task, label
    workers: pl.DataFrame  # worker, skill (chance of a right answer), group
    confusions: Floats  # (W, K, K); of structural experts, on the easiest task
    features: Floats | None = None  # (tasks, features), in the order of `truth`
    ease: Floats | None = None  # (tasks,) from 0 to 1, the same way

    def __repr__(self) -> str:
        return f"Crowd({self.answers!r})"

    def save(self, folder: str | Path) -> list[Path]:
        """Write answers.csv, truth.csv and workers.csv, and features.parquet where there are any."""
        tables = {"answers": self.answers.frame(), "truth": self.truth, "workers": self.workers}
        files = [write_whole(Path(folder) / f"{name}.csv", table.write_csv) for name, table in tables.items()]
        if self.features is None:
            return files
        columns = {f"x{d}": self.features[:, d] for d in range(self.features.shape[1])}
        table = pl.DataFrame([self.truth["task"]]).with_columns(**columns)
        return [*files, write_whole(Path(folder) / "features.parquet", table.write_parquet)]


def confusion(
    workers: int, classes: int, *, accuracy: float = 0.75, concentration: float = 10.0, rng: np.random.Generator
) -> Floats:
    """(W, K, K) matrices whose rows are Dirichlet around `accuracy` on the diagonal."""
    mean = np.full((classes, classes), (1 - accuracy) / max(classes - 1, 1))
    np.fill_diagonal(mean, accuracy if classes > 1 else 1.0)
    draws = rng.standard_gamma(np.maximum(concentration * mean, 1e-3), size=(workers, classes, classes))
    return np.asarray(draws / draws.sum(2, keepdims=True))


def one_coin(workers: int, classes: int, *, a: float = 6.0, b: float = 2.0, rng: np.random.Generator) -> Floats:
    """(W, K, K) matrices of workers who are right with a Beta(a, b) chance and err evenly."""
    return _coins(rng.beta(a, b, workers), classes)


def hammer_spammer(
    workers: int, classes: int, *, spammers: float = 0.3, accuracy: float = 0.9, rng: np.random.Generator
) -> Floats:
    """(W, K, K): hammers are right with chance `accuracy`, spammers answer at random."""
    spam = rng.random(workers) < spammers
    return _coins(np.where(spam, 1 / classes, accuracy), classes)


def groups(
    workers: int, classes: int, *, shares: tuple[float, ...] = (0.5, 0.3, 0.2), rng: np.random.Generator
) -> tuple[Floats, Whole]:
    """(W, K, K) matrices, and the group of each worker: good ones, confusers of neighbours, givers of one label."""
    kinds = np.stack([_coins(np.array([0.85]), classes)[0], _neighbours(classes, 0.55), _one_label(classes)])
    if not 1 <= len(shares) <= len(kinds) or min(shares) < 0 or sum(shares) <= 0:
        raise ParameterError(f"shares is {shares!r}; give 1 to {len(kinds)} numbers of at least 0")
    member = rng.choice(len(shares), workers, p=np.array(shares) / sum(shares))
    return kinds[member], member


def _coins(hit: Floats, classes: int) -> Floats:
    matrices = np.repeat(((1 - hit) / max(classes - 1, 1))[:, None, None], classes, 1).repeat(classes, 2)
    matrices[:, np.arange(classes), np.arange(classes)] = hit[:, None] if classes > 1 else 1.0
    return matrices


def _neighbours(classes: int, accuracy: float) -> Floats:
    return accuracy * np.eye(classes) + (1 - accuracy) * np.roll(np.eye(classes), 1, axis=1)


def _one_label(classes: int) -> Floats:
    matrix = np.full((classes, classes), 0.05 / max(classes - 1, 1))
    matrix[:, 0] = 0.95 if classes > 1 else 1.0
    return matrix


def who_answers(
    tasks: int, workers: int, per_task: int, *, load: Load = "even", rng: np.random.Generator
) -> tuple[Whole, Whole]:
    """(task, worker) of every answer: `per_task` workers a task, all alike or a few doing most of the work."""
    if not 1 <= per_task <= workers:
        raise ParameterError(f"answers a task is {per_task}; it must be from 1 to the number of workers, {workers}")
    weight = np.ones(workers) if load == "even" else 1 / np.arange(1, workers + 1)
    chosen = _dense(tasks, weight, per_task, rng) if 3 * per_task > workers else _sparse(tasks, weight, per_task, rng)
    return np.repeat(np.arange(tasks), per_task), chosen.ravel()


def _dense(tasks: int, weight: Floats, per_task: int, rng: np.random.Generator) -> Whole:
    """Weighted draws without replacement: the largest of log(weight) plus Gumbel noise."""
    if per_task == len(weight):
        return np.tile(np.arange(per_task), (tasks, 1))
    rows = max(1, 10_000_000 // len(weight))
    parts = []
    for start in range(0, tasks, rows):
        keys = np.log(weight) + rng.gumbel(size=(min(rows, tasks - start), len(weight)))
        parts.append(np.argpartition(-keys, per_task - 1, axis=1)[:, :per_task])
    return np.concatenate(parts)


def _sparse(tasks: int, weight: Floats, per_task: int, rng: np.random.Generator) -> Whole:
    """Draw with replacement, and again those tasks that got a worker twice."""
    edges = np.cumsum(weight / weight.sum())
    chosen = np.empty((tasks, per_task), np.int64)
    left = np.arange(tasks)
    for _ in range(200):
        drawn = np.searchsorted(edges, rng.random((len(left), per_task))).clip(max=len(weight) - 1)
        chosen[left] = drawn
        ordered = np.sort(drawn, axis=1)
        left = left[(ordered[:, 1:] == ordered[:, :-1]).any(1)]
        if not len(left):
            return chosen
    chosen[left] = _dense(len(left), weight, per_task, rng)
    return chosen


def spoken(truth: Whole, task: Whole, worker: Whole, confusions: Floats, rng: np.random.Generator) -> Whole:
    """(N,) labels drawn from the workers' confusion rows."""
    said = np.empty(len(task), np.int64)
    for start in range(0, len(task), 1_000_000):
        part = slice(start, start + 1_000_000)
        said[part] = _drawn(confusions[worker[part], truth[task[part]]], rng)
    return said


def _drawn(shares: Floats, rng: np.random.Generator) -> Whole:
    """(M,) a column drawn for every row of probabilities (M, K)."""
    edges = np.cumsum(shares, axis=1)
    return np.asarray((rng.random(len(edges))[:, None] > edges).sum(1).clip(max=shares.shape[1] - 1))


SENSITIVITY, SPECIFICITY = (0.8, 0.6, 0.6, 0.7, 0.6), (0.6, 0.7, 0.6, 0.7, 0.7)  # of the paper's five experts
BLUNT = 0.5  # how sharply experts see what could be seen: labels are drawn by sigma(x1 + x2), the best slope is 2


def experts(
    tasks: int = 1000,
    *,
    fresh: int = 0,
    classes: int = 2,
    features: int = 2,
    workers: int | None = None,
    per_task: int | None = None,
    load: Load = "even",
    structural: bool = True,
    seed: Any = 0,
) -> Crowd:
    """Points of Gaussians, one a class, labelled by experts who err more where classes meet.

    Structural labels: an expert says l of a point of class k with probability ~ exp(-h odds[k, l]), h the point's ease:
    for two classes sigma(lambda (p - 1/2)^2). Else an expert errs with probability 1 / (3 + n), n drawn from 0 to 5 for
    every answer anew. `fresh` are further points that nobody labelled. Without `workers`, two classes have the paper's
    five experts; else their chances on the easiest points are drawn from 0.5 to 0.9. Without `per_task`, all label all.

    >>> experts(tasks=20, fresh=5, seed=1).features.shape
    (25, 2)
    """
    for name, value, least in (
        ("tasks", tasks, 1),
        ("fresh", fresh, 0),
        ("classes", classes, 2),
        ("features", features, 2),
    ):
        if value < least:
            raise ParameterError(f"{name} is {value}; it must be at least {least}")
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, tasks + fresh)
    means = _around(classes, features)
    X = rng.normal(size=(len(truth), features)) + means[truth]
    ability = _abilities(workers, classes, rng)
    odds = np.log(ability / (1 - ability) * (classes - 1))[:, :, None] * (1 - np.eye(classes))
    task, worker = who_answers(tasks, len(ability), len(ability) if per_task is None else per_task, load=load, rng=rng)
    ease = ease_of(softmax(BLUNT * X @ means.T)) if structural else np.ones(len(X))
    right = _told(odds[worker, truth[task]], ease[task])
    if not structural:
        odds = np.full(odds.shape, np.log((1 / np.mean(1 / np.arange(3, 9)) - 1) * (classes - 1))) * (
            1 - np.eye(classes)
        )
        err = 1 / (3 + rng.integers(0, 6, len(task)))[:, None]
        right = np.where(np.arange(classes) == truth[task][:, None], 1 - err, err / (classes - 1))
    label = _drawn(right, rng)
    rho = np.full(classes, 1 / classes)
    made = _named(truth, task, worker, label, _told(odds, np.ones(len(odds))[:, None]), np.zeros(len(odds), int), rho)
    hit = np.bincount(worker, right[np.arange(len(task)), truth[task]], minlength=len(odds))
    skill = pl.Series(hit / np.maximum(np.bincount(worker, minlength=len(odds)), 1))
    return replace(made, workers=made.workers.with_columns(skill=skill), features=X, ease=ease)


def _around(classes: int, features: int) -> Floats:
    """(K, features) means on a circle; for two classes (-1, -1) and (1, 1)."""
    means = np.zeros((classes, features))
    angle = np.pi * (1.25 + 2 * np.arange(classes) / classes)
    means[:, :2] = (2**0.5 if classes == 2 else 1.8) * np.column_stack([np.cos(angle), np.sin(angle)])
    return means


def _abilities(workers: int | None, classes: int, rng: np.random.Generator) -> Floats:
    """(W, K) chance of a right answer on the easiest point of each class."""
    if workers is None and classes == 2:
        return np.column_stack([SPECIFICITY, SENSITIVITY])
    return rng.uniform(0.5, 0.9, (5 if workers is None else workers, classes))


def _told(odds: Floats, ease: Floats) -> Floats:
    """(..., K) probabilities ~ exp(-ease odds)."""
    logs = -ease[..., None] * odds
    p = np.exp(logs - logs.max(-1, keepdims=True))
    return np.asarray(p / p.sum(-1, keepdims=True))


MAKERS: dict[str, Callable[..., Any]] = {
    "confusion": confusion,
    "one-coin": one_coin,
    "hammer-spammer": hammer_spammer,
    "groups": groups,
    "experts": experts,
}


def crowd(
    kind: str = "confusion",
    *,
    tasks: int = 1000,
    workers: int = 50,
    classes: int = 3,
    per_task: int = 5,
    load: Load = "even",
    prevalence: Any = None,
    seed: int = 0,
    **settings: Any,
) -> Crowd:
    """A simulated crowd: `kind` is confusion, one-coin, hammer-spammer, groups or experts.

    >>> sim = crowd("hammer-spammer", tasks=20, workers=8, classes=2, per_task=3, seed=1)
    >>> sim.answers
    Labels(60 answers, 20 tasks, 8 workers, 2 classes)
    """
    if kind not in MAKERS:
        raise ParameterError(f"no simulator {kind!r}; there are {', '.join(MAKERS)}.{nearest(kind, MAKERS)}")
    for name, value in (("tasks", tasks), ("workers", workers), ("classes", classes)):
        if value < 1:
            raise ParameterError(f"{name} is {value}; it must be at least 1")
    maker = MAKERS[kind]
    mine = ("tasks", "workers", "classes", "per_task", "load", "seed", "rng")
    known = [name for name in inspect.signature(maker).parameters if name not in mine]
    for name in settings:
        if name not in known:
            raise ParameterError(f"{kind} has no setting {name!r}; it has {', '.join(known)}.{nearest(name, known)}")
    if kind == "experts":
        if prevalence is not None:
            raise ParameterError("experts has no prevalence: all classes are as frequent")
        shape = {"tasks": tasks, "workers": workers, "classes": classes, "per_task": per_task, "load": load}
        return experts(**shape, seed=seed, **settings)  # type: ignore[arg-type]
    rng = np.random.default_rng(seed)
    group = np.zeros(workers, np.int64)
    if kind == "groups":
        matrices, group = groups(workers, classes, rng=rng, **settings)
    else:
        matrices = maker(workers, classes, rng=rng, **settings)
    rho = np.full(classes, 1 / classes) if prevalence is None else np.asarray(prevalence, float) / np.sum(prevalence)
    truth = rng.choice(classes, tasks, p=rho)
    task, worker = who_answers(tasks, workers, per_task, load=load, rng=rng)
    label = spoken(truth, task, worker, matrices, rng)
    return _named(truth, task, worker, label, matrices, group, rho)


def _named(
    truth: Whole, task: Whole, worker: Whole, label: Whole, matrices: Floats, group: Whole, rho: Floats
) -> Crowd:
    tasks, workers, classes = _names("t", len(truth)), _names("w", len(matrices)), _names("c", len(rho))
    answers = Labels(tasks[task], workers[worker], classes[label], source="simulation")
    skill = np.einsum("k,jkk->j", rho, matrices)
    return Crowd(
        answers=answers,
        truth=pl.DataFrame({"task": tasks, "label": classes[truth]}),
        workers=pl.DataFrame({"worker": workers, "skill": skill, "group": group}),
        confusions=matrices,
    )


def _names(letter: str, count: int) -> pl.Series:
    """t001, t002, ...: as long as needed, so that they sort as they count."""
    width = len(str(count))
    return pl.Series([f"{letter}{n:0{width}d}" for n in range(1, count + 1)], dtype=pl.String)
