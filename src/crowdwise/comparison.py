"""Comparison of several models on the same answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from .aggregation import model, model_class, registered
from .answers import Labels, Pairs, Points, as_answers
from .answers.arguments import check_list, checked
from .engine import Model, Run
from .engine.registry import DEFAULTS
from .engine.resources import require
from .engine.verbs import perform, verb
from .errors import MissingError, ParameterError
from .inter_rater import click_distance
from .kernels.layout import Bools, Floats, Ints
from .kernels.special import TIE
from .labels.model import LabelModel
from .metrics import known_classes, match_clusters, match_objects
from .result import BaseResult, LabelsResult, PairsResult, PointsResult
from .result.base import result_of

MAX_BATCH_ANSWERS = 1_000_000  # held-out answers scored at a time
DEFAULT_FOLDS = 5
MIN_CERTAIN_PROBABILITY = 0.9  # objects below it are counted as doubtful
Watch: TypeAlias = Callable[[str], None] | None


@checked
def compare(
    answers: Any,
    models: Sequence[str | Model[Any, Any]] | None = None,
    *,
    folds: int | None = None,
    run: Run | None = None,
    watch: Callable[[str], None] | None = None,
    against: BaseResult | None = None,
    features: Any = None,
    truth: Any = None,
    within: float | None = None,
) -> pl.DataFrame:
    """Fit several models to the same answers: one row per model, with iterations, converged and seconds.

    - Labels: differs (labels that differ from those of `against`, or of the default model), held_out (mean
      log-likelihood of held-out answers, by cross-validation with `folds` parts, 5 by default), and, with gold or
      `truth` (task, label), accuracy and log_loss. Neither is shown to the models.
    - Points: objects, doubtful (those with a probability below 90 %), differs (objects of either result without a match
      in the other), and, with `truth` (image, x, y), precision, recall and f1: means over images. Objects match if they
      are at most `within` apart; the default is the distance at which clicks of two workers match.
    - Pairs: clusters, differs (pairs with answers that only one of the two results puts into one cluster), held_out,
      and, with `truth`, the scores of `match_clusters`. Models that need `features` are compared if these are given.

    By default, all models of the kind are compared, except networks and models whose libraries are not installed. A
    model that needs the number of objects or clusters gets the number that the default model finds.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=10, seed=3)
    >>> cw.compare(sim.answers, ["majority-vote", "pooled"], folds=2)["model"].to_list()
    ['majority-vote', 'pooled']
    """
    data = as_answers(answers)
    if against is not None:
        against = result_of(against, data.kind, "compare", argument="against")
    chosen = chosen_models(models, folds, data.kind, features is not None)
    given = {"folds": folds, "against": against, "features": features, "truth": truth, "within": within}
    return perform("compare", data, chosen, run or Run(), watch, **given)  # type: ignore[no-any-return]


def chosen_models(
    models: Sequence[str | Model[Any, Any]] | None, folds: int | None, kind: str = "labels", features: bool = False
) -> list[Any]:
    """Return the models to compare; by default those of the kind that can be fitted here. Unknown names and invalid
    `folds` raise ParameterError."""
    if folds is not None and folds < 2 and folds != 0:
        raise ParameterError(f"folds is {folds}; it must be at least 2, or 0 for no held-out score")
    if models is None:
        everything = (model_class(name, kind) for name in registered(kind))
        usable = [each for each in everything if _usable(each, features)]
        return [each() for each in usable]
    wanted = [models] if isinstance(models, str) else check_list("models", models, "a list of names or models")
    for each in wanted:
        if not isinstance(each, (str, Model)):
            raise ParameterError(f"models has {each!r}; give names or models")
    return [model_class(each, kind)() if isinstance(each, str) else each for each in wanted]


def check_models(models: Sequence[str] | None, folds: int | None) -> list[str] | None:
    """Raise ParameterError for unknown models or invalid folds; return the kinds of the models, None without any."""
    chosen_models([], folds)
    return sorted({model_class(name).kind for name in models}) if models else None


def _usable(model: type[Model[Any, Any]], features: bool) -> bool:
    if "deep" in model.extras or (model.features == "required" and not features):
        return False
    try:
        require(model.extras, model.name)
    except MissingError:
        return False
    return True


@verb("compare", "labels")
def compare_labels(
    answers: Labels,
    chosen: Sequence[LabelModel],
    run: Run,
    watch: Watch,
    *,
    folds: int = DEFAULT_FOLDS,
    against: LabelsResult | None = None,
    truth: Any = None,
) -> pl.DataFrame:
    """`compare` for labels."""
    gold, data = answers.gold if truth is None else known_classes(answers, truth), answers.with_gold(None)
    chosen = [each for each in chosen if each.uses_weights or not data.weighted]
    default = DEFAULTS["labels"] if not data.weighted else "weighted-vote"
    base = (model(default).fit(data, run=run) if against is None else against).labels["label"]

    def row(each: LabelModel, result: LabelsResult) -> dict[str, Any]:
        accuracy, log_loss = score(result.posterior, gold)
        return {
            "differs": int((result.labels["label"] != base).sum()),
            "held_out": held_out(each, data, folds, run) if folds else None,
            "accuracy": accuracy,
            "log_loss": log_loss,
        }

    table = _table(chosen, watch, lambda each: each.fit(data, run=run), row)
    kinds = {"held_out": pl.Float64, "accuracy": pl.Float64, "log_loss": pl.Float64}
    return table.cast({name: kind for name, kind in kinds.items() if name in table.columns})


@verb("compare", "points")
def compare_points(
    points: Points,
    chosen: Sequence[Model[Any, Any]],
    run: Run,
    watch: Watch,
    *,
    against: PointsResult | None = None,
    truth: Any = None,
    within: float | None = None,
) -> pl.DataFrame:
    """`compare` for clicks."""
    require(("learn",), "compare")
    base = model(DEFAULTS["points"]).fit(points, run=run) if against is None else against
    radius = click_distance(points) if within is None else within
    found = round(len(base.params.mean) / max(points.n_images, 1)) or 1

    def row(each: Model[Any, Any], result: PointsResult) -> dict[str, Any]:
        shared = match_objects(result, base.objects, within=radius)
        scores = None if truth is None else match_objects(result, truth, within=radius)
        return {
            "objects": result.objects.height,
            "doubtful": int((result.params.probability < MIN_CERTAIN_PROBABILITY).sum()),
            "differs": int((shared["found"] + shared["true"] - 2 * shared["matched"]).sum()),
            **({} if scores is None else scores.select("precision", "recall", "f1").mean().row(0, named=True)),
        }

    return _table(_numbered(chosen, "objects", found), watch, lambda each: each.fit(points, run=run), row)


@verb("compare", "pairs")
def compare_pairs(
    pairs: Pairs,
    chosen: Sequence[Model[Any, Any]],
    run: Run,
    watch: Watch,
    *,
    folds: int = DEFAULT_FOLDS,
    against: PairsResult | None = None,
    features: Any = None,
    truth: Any = None,
) -> pl.DataFrame:
    """`compare` for pairs."""

    def fit(each: Model[Any, Any], data: Pairs = pairs) -> PairsResult:
        return each.fit(data, features=features if each.features != "none" else None, run=run)  # type: ignore[no-any-return]

    base = fit(model(DEFAULTS["pairs"])) if against is None else against

    def row(each: Model[Any, Any], result: PairsResult) -> dict[str, Any]:
        return {
            "clusters": result.n_clusters,
            "differs": int((result.asked["together"] != base.asked["together"]).sum()),
            "held_out": _held_out_pairs(each, pairs, fit, folds, run) if folds else None,
            **({} if truth is None else match_clusters(result, truth)),
        }

    return _table(_numbered(chosen, "clusters", base.n_clusters), watch, fit, row)


def _table(
    chosen: Sequence[Any], watch: Watch, fit: Callable[[Any], Any], row: Callable[[Any, Any], Any]
) -> pl.DataFrame:
    """One row per model: its name, the values that `row` computes from its result, and the cost of the fit."""
    rows = []
    for each in chosen:
        if watch is not None:
            watch(each.name)
        began = time.perf_counter()
        result = fit(each)
        seconds = time.perf_counter() - began
        took = {"iterations": result.trace.height, "converged": result.converged, "seconds": seconds}
        rows.append({"model": each.name, **row(each, result), **took})
    return pl.DataFrame(rows, schema_overrides={"model": pl.String})


def _numbered(chosen: Sequence[Model[Any, Any]], setting: str, found: int) -> list[Model[Any, Any]]:
    """Return the models; those with a fixed default number of objects or clusters get the number found."""
    defaults = {each.name: {field.name: field.default for field in fields(each)} for each in chosen}
    return [
        replace(each, **{setting: found})
        if isinstance(defaults[each.name].get(setting), int) and getattr(each, setting) == defaults[each.name][setting]
        else each
        for each in chosen
    ]


def _held_out_pairs(
    each: Model[Any, Any], pairs: Pairs, fit: Callable[[Any, Pairs], PairsResult], folds: int, run: Run
) -> float | None:
    """Mean log-probability of held-out answers; every answer is held out once. None without answers to hold out."""
    fold, total, scored = run.rng().permutation(np.arange(pairs.n_answers) % folds), 0.0, 0
    for f in range(folds):
        hidden = fold == f
        if hidden.any() and not hidden.all():
            result = fit(each, pairs.take(~hidden))
            same = result.same_chance(pairs.left[hidden], pairs.right[hidden])
            a, b = (beta[:, 0] / beta.sum(1) for beta in (result.params.alpha, result.params.beta))
            worker = pairs.worker[hidden]
            answer_same = same * a[worker] + (1 - same) * (1 - b[worker])
            chance = np.where(pairs.same[hidden], answer_same, 1 - answer_same)
            total += float(np.log(np.clip(chance, 1e-300, 1)).sum())
            scored += int(hidden.sum())
    return total / scored if scored else None


def score(posterior: Floats, gold: Ints) -> tuple[float | None, float | None]:
    """Accuracy (ties count fractionally) and log-loss (clipped at 1e-5) over tasks with gold; None without gold."""
    known = np.flatnonzero(gold >= 0)
    if not len(known):
        return None, None
    Z = posterior[known].astype(np.float64)
    right = np.arange(len(known)), gold[known]
    tied = Z.max(1, keepdims=True) - TIE <= Z
    accuracy = (tied[right] / tied.sum(1)).mean()
    return float(accuracy), float(-np.log(np.clip(Z[right], 1e-5, 1)).mean()) + 0.0


def held_out(each: LabelModel, data: Labels, folds: int, run: Run) -> float | None:
    """Mean log-probability of held-out answers; every answer is held out once. None without answers to hold out."""
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
    for start in range(0, len(task), MAX_BATCH_ANSWERS):
        part = slice(start, start + MAX_BATCH_ANSWERS)
        logs = result.model.emission(result.params, result.answers.layout, worker[part], label[part], task[part])
        total += float(np.log((np.exp(logs) * result.posterior[task[part]]).sum(1).clip(1e-300)).sum())
    return total
