"""The parts of a simulated crowd: confusion matrices of workers, assignment of tasks to workers, and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..answers import Labels
from ..answers.arguments import check_array, checked
from ..engine.resources import available
from ..errors import MemoryNeedError, ParameterError
from ..kernels.layout import Floats
from ..result.files import write_whole
from ..result.outputs import WAIT, Outputs

BYTES_PER_NUMBER = 64  # while a crowd is made
Load = Literal["even", "skewed"]
Codes = NDArray[np.int64]
Rng = np.random.Generator


@dataclass(frozen=True, repr=False)
class Crowd:
    """Simulated labels together with their hidden truth."""

    answers: Labels
    truth: pl.DataFrame  # task, label
    workers: pl.DataFrame  # worker, skill (probability of a correct answer), group
    confusions: Floats  # (W, K, K); for structural experts, the matrices on the easiest task
    features: Floats | None = None  # (tasks, features), in the order of `truth`
    ease: Floats | None = None  # (tasks,) from 0 to 1, in the order of `truth`

    def __repr__(self) -> str:
        return f"Crowd({self.answers!r})"

    @checked
    def save(self, folder: str | Path) -> list[Path]:
        """Write answers.csv, truth.csv and workers.csv, and features.parquet if the crowd has features."""
        table = None
        if self.features is not None:
            columns = {f"x{d}": self.features[:, d] for d in range(self.features.shape[1])}
            table = pl.DataFrame([self.truth["task"]]).with_columns(**columns)
        tables = {"answers": self.answers.frame(), "truth": self.truth, "workers": self.workers}
        return write_tables(folder, tables, features=table)


def write_tables(
    folder: str | Path, tables: Mapping[str, pl.DataFrame], features: pl.DataFrame | None = None
) -> list[Path]:
    """Write each table to a CSV file with its name, and features as Parquet; return the paths. All files are written,
    or none."""
    with Outputs(Path(folder), WAIT) as outputs:
        for name, table in tables.items():
            write_whole(outputs.new / f"{name}.csv", table.write_csv)
        if features is not None:
            write_whole(outputs.new / "features.parquet", features.write_parquet)
        return outputs.publish(listed=False)


@checked
def confusion(workers: int, classes: int, *, accuracy: float = 0.75, concentration: float = 10.0, rng: Rng) -> Floats:
    """Confusion matrices (W, K, K) with Dirichlet rows whose mean has `accuracy` on the diagonal."""
    _check_share("accuracy", accuracy)
    if not 0 < concentration < np.inf:
        raise ParameterError(f"concentration is {concentration}; it must be above 0")
    mean = _one_coin_matrices(np.array([float(accuracy)]), classes)
    draws = rng.standard_gamma(np.maximum(float(concentration) * mean, 1e-3), size=(workers, classes, classes))
    return np.asarray(draws / draws.sum(2, keepdims=True))


@checked
def one_coin(workers: int, classes: int, *, a: float = 6.0, b: float = 2.0, rng: Rng) -> Floats:
    """Confusion matrices (W, K, K): accuracies are drawn from Beta(a, b), and all errors are equally likely."""
    for name, value in (("a", a), ("b", b)):
        if not 0 < value < np.inf:
            raise ParameterError(f"{name} is {value}; it must be above 0")
    return _one_coin_matrices(rng.beta(a, b, workers), classes)


@checked
def hammer_spammer(workers: int, classes: int, *, spammers: float = 0.3, accuracy: float = 0.9, rng: Rng) -> Floats:
    """Confusion matrices (W, K, K): hammers are right with probability `accuracy`, spammers answer at random."""
    _check_share("accuracy", accuracy)
    _check_share("spammers", spammers)
    return _one_coin_matrices(np.where(rng.random(workers) < spammers, 1 / classes, accuracy), classes)


@checked
def groups(
    workers: int, classes: int, *, shares: tuple[float, ...] = (0.5, 0.3, 0.2), rng: Rng
) -> tuple[Floats, Codes]:
    """Confusion matrices (W, K, K) and the group of each worker, (W,).

    Group 0 is accurate, group 1 confuses neighbouring classes, and group 2 nearly always gives the first label.
    """
    same = np.eye(classes)
    neighbours = 0.55 * same + (1 - 0.55) * np.roll(same, 1, axis=1)
    one_label = np.full((classes, classes), 0.05 / max(classes - 1, 1))
    one_label[:, 0] = 0.95 if classes > 1 else 1.0
    weight = check_array("shares", shares, "1 to 3 numbers of at least 0")
    kinds = np.stack([_one_coin_matrices(np.array([0.85]), classes)[0], neighbours, one_label])
    if weight.ndim != 1 or not 1 <= len(weight) <= len(kinds) or not weight.min() >= 0 or not 0 < weight.sum() < np.inf:
        raise ParameterError(f"shares is {shares!r}; give 1 to {len(kinds)} numbers of at least 0")
    member = rng.choice(len(weight), workers, p=weight / weight.sum())
    return kinds[member], member


def check_size(**counts: int) -> None:
    """Raise MemoryNeedError if so many numbers do not fit in memory; each count is named by what it counts."""
    for name, count in counts.items():
        need = BYTES_PER_NUMBER * count
        if need > available():
            raise MemoryNeedError(
                f"{count:,} {name.replace('_', ' ')} need about {need / 1e9:,.1f} GB, but {available() / 1e9:,.1f} GB "
                "are free. Simulate a smaller crowd"
            )


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ParameterError(f"{name} is {value}; it must be from 0 to 1")


def _one_coin_matrices(accuracy: Floats, classes: int) -> Floats:
    """Confusion matrices (W, K, K) of workers with accuracies (W,) whose errors are equally likely."""
    matrices = np.repeat(((1 - accuracy) / max(classes - 1, 1))[:, None, None], classes, 1).repeat(classes, 2)
    matrices[:, np.arange(classes), np.arange(classes)] = accuracy[:, None] if classes > 1 else 1.0
    return matrices


@checked
def assign_workers(tasks: int, workers: int, per_task: int, *, load: Load = "even", rng: Rng) -> tuple[Codes, Codes]:
    """Return the task and the worker of every answer, with `per_task` different workers per task.

    With an even load all workers are equally likely; with a skewed load a few workers give most of the answers.
    """
    if not 1 <= per_task <= workers:
        raise ParameterError(f"per_task is {per_task}; it must be from 1 to the number of workers, {workers}")
    weight = np.ones(workers) if load == "even" else 1 / np.arange(1, workers + 1)
    chosen = _dense(tasks, weight, per_task, rng) if 3 * per_task > workers else _sparse(tasks, weight, per_task, rng)
    return np.repeat(np.arange(tasks), per_task), chosen.ravel()


def _dense(tasks: int, weight: Floats, per_task: int, rng: Rng) -> Codes:
    """Draw workers without replacement, (tasks, per_task): those with the largest log(weight) plus Gumbel noise."""
    if per_task == len(weight):
        return np.tile(np.arange(per_task), (tasks, 1))
    rows = max(1, 10_000_000 // len(weight))
    parts = []
    for start in range(0, tasks, rows):
        keys = np.log(weight) + rng.gumbel(size=(min(rows, tasks - start), len(weight)))
        parts.append(np.argpartition(-keys, per_task - 1, axis=1)[:, :per_task])
    return np.concatenate(parts)


def _sparse(tasks: int, weight: Floats, per_task: int, rng: Rng) -> Codes:
    """Draw workers with replacement, (tasks, per_task), and draw again for tasks that got one worker twice."""
    edges = np.cumsum(weight / weight.sum())
    chosen = np.empty((tasks, per_task), np.int64)
    pending = np.arange(tasks)
    for _ in range(200):
        drawn = np.searchsorted(edges, rng.random((len(pending), per_task))).clip(max=len(weight) - 1)
        chosen[pending] = drawn
        ordered = np.sort(drawn, axis=1)
        pending = pending[(ordered[:, 1:] == ordered[:, :-1]).any(1)]
        if not len(pending):
            return chosen
    chosen[pending] = _dense(len(pending), weight, per_task, rng)
    return chosen


def draw_labels(truth: Codes, task: Codes, worker: Codes, confusions: Floats, rng: Rng) -> Codes:
    """Draw the label of each answer, (N,), from the worker's row of confusions for the true class."""
    label = np.empty(len(task), np.int64)
    for start in range(0, len(task), 1_000_000):
        part = slice(start, start + 1_000_000)
        label[part] = draw_classes(confusions[worker[part], truth[task[part]]], rng)
    return label


def draw_classes(probabilities: Floats, rng: Rng) -> Codes:
    """Draw one class per row of probabilities (M, K); shape (M,)."""
    edges = np.cumsum(probabilities, axis=1)
    return np.asarray((rng.random(len(edges))[:, None] > edges).sum(1).clip(max=probabilities.shape[1] - 1))


def build_crowd(
    truth: Codes, task: Codes, worker: Codes, label: Codes, matrices: Floats, group: Codes, rho: Floats
) -> Crowd:
    """Build a crowd from coded answers, and name its tasks, workers and classes."""
    tasks, workers, classes = numbered("t", len(truth)), numbered("w", len(matrices)), numbered("c", len(rho))
    skill = np.einsum("k,jkk->j", rho, matrices)
    return Crowd(
        Labels(tasks[task], workers[worker], classes[label], source="simulation"),
        pl.DataFrame({"task": tasks, "label": classes[truth]}),
        pl.DataFrame({"worker": workers, "skill": skill, "group": group}),
        matrices,
    )


def numbered(letter: str, count: int) -> pl.Series:
    """Names t001, t002, ..., padded with zeros so that they sort in numeric order."""
    width = len(str(count))
    return pl.Series([f"{letter}{n:0{width}d}" for n in range(1, count + 1)], dtype=pl.String)
