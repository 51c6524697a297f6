"""Who answers what, and what they say: what all simulated crowds are made of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..answers import Labels
from ..errors import ParameterError
from ..kernels.layout import Floats
from ..result.files import write_whole

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
        said[part] = drawn(confusions[worker[part], truth[task[part]]], rng)
    return said


def drawn(shares: Floats, rng: np.random.Generator) -> Whole:
    """(M,) a column drawn for every row of probabilities (M, K)."""
    edges = np.cumsum(shares, axis=1)
    return np.asarray((rng.random(len(edges))[:, None] > edges).sum(1).clip(max=shares.shape[1] - 1))


def named(truth: Whole, task: Whole, worker: Whole, label: Whole, matrices: Floats, group: Whole, rho: Floats) -> Crowd:
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
