"""A kind of answers that nothing in src/ knows: numbers, with a bias and a noise per worker.

    (1)  truth[i] ~ Normal(m, 100 s^2)        (2)  value ~ Normal(truth[i] + bias[j], noise[j]^2)
Coordinate ascent on the log-posterior; bias[j] ~ Normal(0, s^2), and noise[j]^2 is drawn to s^2 by one answer.
Answers, model, result and report stand in this one file; the registry gives the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crowdwise.answers import Answers, Intake
from crowdwise.answers.coding import code
from crowdwise.answers.columns import Roles
from crowdwise.answers.reading import Reading, given
from crowdwise.engine import Model, Problem, Run, Step, Trace, iterate, register
from crowdwise.engine.model import COUNT, setting
from crowdwise.engine.run import packed
from crowdwise.kernels.layout import Floats, Ints
from crowdwise.rating.table import worker_table
from crowdwise.report import BaseSummary, Table, Tile, section, summary, table_of
from crowdwise.result import BaseResult

ROLES = Roles({"task": "task item", "worker": "worker rater", "value": "value score"}, ("task", "worker", "value"))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Numbers(Answers):
    """Answers that are numbers, from a frame with one row per answer."""

    kind = "numbers"

    tasks: pl.Series
    workers: pl.Series
    task: Ints  # (N,)
    worker: Ints
    value: Floats
    intake: Intake

    def __init__(self, data: Any, *, task: Any = None, worker: Any = None, value: Any = None) -> None:
        reading, columns = Reading(data, "table", (), None), {"task": task, "worker": worker, "value": value}
        reading.find(ROLES, columns)
        ids = {role: reading.ids(role) for role in ("task", "worker")}
        numbers = reading.frame[reading.columns["value"]].cast(pl.Float64)
        names = list(reading.columns.values())
        reading.drop("no task", ids["task"].is_null().to_numpy(), names)
        reading.drop("no value", numbers.is_null().to_numpy(), names)
        reading.check(ids["worker"], "Name who answered", "with a task and a value")
        (tasks, i), (workers, j) = (code(reading.kept(ids[role])) for role in ("task", "worker"))
        y = reading.kept(numbers).to_numpy()
        order = np.lexsort((y, j, i))
        intake = reading.intake("long", len(y), extras=(), dropped=(), options=given({}, **columns))
        self._fill(tasks=tasks, workers=workers, task=i[order], worker=j[order], value=y[order], intake=intake)


class Params(NamedTuple):
    truth: Floats  # (T,)
    sd: Floats  # (T,) of its posterior
    bias: Floats  # (W,)
    noise: Floats  # (W,)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NumbersResult(BaseResult):
    """Numbers, workers and doubts of one fit."""

    kind = "numbers"
    answers: Numbers
    params: Params

    @property
    def counted(self) -> str:
        return f"{len(self.answers.tasks)} tasks, {self.answers.n_workers} workers"

    @property
    def numbers(self) -> pl.DataFrame:
        """task, value, and the standard deviation of its posterior."""
        return pl.DataFrame({"task": self.answers.tasks, "value": self.params.truth, "sd": self.params.sd})

    @property
    def workers(self) -> pl.DataFrame:
        skill, n = 1 / (1 + self.params.noise), np.bincount(self.answers.worker, minlength=self.answers.n_workers)
        low, high = skill / (1 + 1 / np.sqrt(n)), np.minimum(skill * (1 + 1 / np.sqrt(n)), 1)
        return worker_table(self.answers.workers, n, skill, low, high, bias=self.params.bias, noise=self.params.noise)

    def tables(self) -> dict[str, pl.DataFrame]:
        return {"numbers": self.numbers, "workers": self.workers}


@register("bias-and-noise", "a bias and a noise per worker, by coordinate ascent", default=True)
@dataclass(frozen=True, kw_only=True)
class BiasAndNoise(Model[Numbers, NumbersResult]):
    """A normal truth per task, seen through a bias and a noise per worker."""

    kind, answers_type, result_type, params_type = "numbers", Numbers, NumbersResult, Params
    max_iter: int = setting(200, COUNT, "Iterations at most.")

    def _fit(self, answers: Numbers, features: Any, run: Run) -> NumbersResult:
        fit, trace = Ascent(self, answers), Trace()
        converged = iterate(fit, run, trace)
        return self.make_result(answers, run, trace, "log-posterior", params=fit.params, converged=converged)


class Ascent(Problem):
    def __init__(self, model: BiasAndNoise, answers: Numbers) -> None:
        self.name, self.max_iter, self.a = model.name, model.max_iter, answers
        self.mean, self.s2 = float(answers.value.mean()), float(answers.value.var()) + 1e-9
        W = answers.n_workers
        self.params = Params(np.empty(0), np.empty(0), np.zeros(W), np.full(W, np.sqrt(self.s2)))

    def step(self) -> Step:
        a, (_, _, bias, noise), W, T = self.a, self.params, self.a.n_workers, len(self.a.tasks)
        weight = (1 / noise**2)[a.worker]
        below = np.bincount(a.task, weight, T) + 0.01 / self.s2
        truth = (np.bincount(a.task, weight * (a.value - bias[a.worker]), T) + 0.01 * self.mean / self.s2) / below
        bias = np.bincount(a.worker, a.value - truth[a.task], W) / (np.bincount(a.worker, None, W) + noise**2 / self.s2)
        left = a.value - truth[a.task] - bias[a.worker]
        square = (np.bincount(a.worker, left**2, W) + self.s2) / (np.bincount(a.worker, None, W) + 1)
        self.params = Params(truth, np.sqrt(1 / below), bias, np.sqrt(square))
        own = -0.5 * (bias**2 / self.s2 + np.log(square) + self.s2 / square).sum()
        fit = -0.5 * (np.log(square)[a.worker] + left**2 / square[a.worker]).sum()
        return Step(float(fit + own - 0.005 * ((truth - self.mean) ** 2).sum() / self.s2), {})

    def converged(self, objectives: Any) -> bool:
        return len(objectives) > 1 and objectives[-1] - objectives[-2] < 1e-9 * abs(objectives[-1])

    def state(self) -> dict[str, Any]:
        return packed(self.params._asdict())

    def restore(self, state: dict[str, Any]) -> None:
        self.params = Params(**state)


@summary("numbers")
def summarise(result: NumbersResult, language: Any) -> BaseSummary:
    doubt = f"{result.params.sd.mean():.2f}"
    tiles = [Tile("Mean doubt", doubt, "one standard deviation", "How far a value may be off.")]
    return BaseSummary.of(result, language, counted=result.counted, tiles=tiles)


@section("numbers", "numbers", order=10, title="Numbers", intro="One value per task.")
def numbers(result: NumbersResult) -> Table:
    return table_of(result.numbers.head(50))
