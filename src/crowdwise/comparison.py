"""Every model on the same answers, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from .aggregation import model, model_class
from .answers import Labels
from .engine import Run
from .engine.registry import DEFAULTS, MODELS
from .errors import ParameterError
from .kernels.layout import Bools, Floats, Ints
from .kernels.special import TIE
from .labels.model import LabelModel
from .result import LabelsResult

CHUNK = 1_000_000  # hidden answers scored at a time


def compare(
    answers: Any,
    models: Sequence[str | LabelModel] | None = None,
    *,
    folds: int = 5,
    run: Run | None = None,
    watch: Callable[[str], None] | None = None,
    against: LabelsResult | None = None,
) -> pl.DataFrame:
    """One row per model: model, differs (labels unlike those of `against`, or of the default model), held_out (mean
    log-likelihood of hidden answers), accuracy and log_loss (where gold is known; gold is not shown to the models),
    iterations, converged, seconds.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=10, seed=3)
    >>> cw.compare(sim.answers, ["majority-vote", "pooled"], folds=2)["model"].to_list()
    ['majority-vote', 'pooled']
    """
    chosen = chosen_models(models, folds)
    run = run or Run()
    data = Labels.from_any(answers)
    gold, data = data.gold, data.with_gold(None)
    chosen = [each for each in chosen if each.uses_weights or not data.weighted]
    usual = DEFAULTS["labels"] if not data.weighted else "weighted-vote"
    base = (model(usual).fit(data, run=run) if against is None else against).labels["label"]
    rows = []
    for each in chosen:
        if watch is not None:
            watch(each.name)
        began = time.perf_counter()
        result = each.fit(data, run=run)
        seconds = time.perf_counter() - began
        accuracy, log_loss = score(result.posterior, gold)
        rows.append(
            {
                "model": each.name,
                "differs": int((result.labels["label"] != base).sum()),
                "held_out": held_out(each, data, folds, run) if folds else None,
                "accuracy": accuracy,
                "log_loss": log_loss,
                "iterations": result.trace.height,
                "converged": result.converged,
                "seconds": seconds,
            }
        )
    kinds = {"model": pl.String, "held_out": pl.Float64, "accuracy": pl.Float64, "log_loss": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=kinds)


def chosen_models(models: Sequence[str | LabelModel] | None, folds: int) -> list[LabelModel]:
    """The models to compare, all without a choice; wrong names and numbers are refused."""
    if folds < 2 and folds != 0:
        raise ParameterError(f"folds is {folds}; it must be at least 2, or 0 for no held-out score")
    wanted = [models] if isinstance(models, str) else models or sorted(MODELS["labels"])
    return [model_class(m, "labels")() if isinstance(m, str) else m for m in wanted]  # type: ignore[misc]


def score(posterior: Floats, gold: Ints) -> tuple[float | None, float | None]:
    """Accuracy (a tie counts its share) and log-loss (clipped at 1e-5) over tasks with gold; None without any."""
    known = np.flatnonzero(gold >= 0)
    if not len(known):
        return None, None
    Z = posterior[known].astype(np.float64)
    right = np.arange(len(known)), gold[known]
    tied = Z.max(1, keepdims=True) - TIE <= Z
    accuracy = (tied[right] / tied.sum(1)).mean()
    return float(accuracy), float(-np.log(np.clip(Z[right], 1e-5, 1)).mean()) + 0.0


def held_out(each: LabelModel, data: Labels, folds: int, run: Run) -> float | None:
    """Mean log-probability of answers that the fit did not see: every answer is hidden once. None: no fold to hide."""
    fold = run.rng().permutation(np.arange(data.n_answers) % folds)
    total, scored = 0.0, 0
    for f in range(folds):
        hidden = fold == f
        if hidden.any() and not hidden.all():
            total += hidden_likelihood(each.fit(data.take(~hidden), run=run), data, hidden)
            scored += int(hidden.sum())
    return total / scored if scored else None


def hidden_likelihood(result: LabelsResult, data: Labels, hidden: Bools) -> float:
    """Sum over hidden answers of log sum_k q[i, k] P(label | truth k, worker)."""
    task, worker, label = (codes[hidden] for codes in data.codes())
    total = 0.0
    for start in range(0, len(task), CHUNK):
        part = slice(start, start + CHUNK)
        logs = result.model.emission(result.params, result.answers.layout, worker[part], label[part], task[part])
        total += float(np.log((np.exp(logs) * result.posterior[task[part]]).sum(1).clip(1e-300)).sum())
    return total
