"""From a result to the plain values of the page. All that is shown is cut to the top of each list, with totals."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ..asking import EVERY, CostCurve, cost_curve, expected, worth
from ..comparison import chosen_models, compare
from ..engine import Run
from ..kernels.layout import Floats, Ints
from ..reliability import rank_correlation
from ..result import Result
from .page import (
    LONGEST,
    Bin,
    Cells,
    ClassShare,
    Curve,
    CurvePoint,
    Histogram,
    LogEntry,
    Matrix,
    MixUp,
    MixUps,
    ModelRow,
    Models,
    Page,
    Pictures,
    Surprise,
    TaskRow,
    Tasks,
    Times,
    Vote,
    WorkerRow,
    Workers,
)  # fmt: skip
from .summary import Summary, doubtful, summarise
from .words import count, percent, quoted, short

WORKERS, TASKS, VOTES, CELLS, SURPRISES, DOTS = 400, 250, 40, 225, 5, 800
CLASSES = 1000  # up to which classes are set against each other
ODD = 0.3  # probability of a label below which giving it is a surprise
SMALL = 50_000  # answers up to which all models are compared unasked
SENTENCE = 300  # characters of a warning or note


def build(result: Result, models: Sequence[str] | None = None, check: bool | None = None) -> Page:
    """The page of a result. `models` are those to compare with (default: all, for small tables), `check` says whether
    the cost curve is checked by fitting again with fewer answers (default: for tables that are not large)."""
    counts = _class_counts(result)
    return Page(
        summary=_shortened(summarise(result)),
        classes=[short(name, LONGEST) for name in result.classes.to_list()],
        prevalence_says=_prevalence_says(result),
        prevalence=_prevalence(result),
        workers=_workers(result),
        tasks=_tasks(result),
        mixups=_mixups(counts, result),
        curve=_curve(cost_curve(result, check=check)),
        times=_times(result),
        pictures=_pictures(result, counts),
        models=_models(result, models),
        log=[
            LogEntry(short(d.reason, SENTENCE), d.count, [short(row, SENTENCE) for row in d.examples])
            for d in result.answers.intake.dropped
        ],
        notes=[short(note, SENTENCE) for note in result.answers.intake.notes],
        command=command(result),
    )


def command(result: Result) -> str:
    """The line that makes this result again."""
    model, parts = result.model, ["crowdwise", "aggregate", short(result.answers.intake.source, SENTENCE)]
    parts += [short(word, SENTENCE) for word in result.answers.intake.options]
    parts += ["--model", model.name, "--seed", str(result.seed)]
    usual = type(model)().settings()
    for name, value in model.settings().items():
        if value != usual[name] and isinstance(value, (int, float, str)):
            parts += ["--set", f"{name}={value}"]
    return shlex.join([*parts, "--out", "results"])


def _shortened(summary: Summary) -> Summary:
    cut = {
        name: [short(text, SENTENCE) for text in getattr(summary, name)] for name in ("warnings", "notes", "classes")
    }
    return replace(
        summary, source=short(summary.source, LONGEST), classes=cut["classes"], warnings=cut["warnings"],
        notes=cut["notes"],
        dropped={short(reason, SENTENCE): n for reason, n in summary.dropped.items()},
        settings={name: short(value, LONGEST) for name, value in summary.settings.items()},
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------- classes


def _votes_by_class(result: Result) -> Floats:
    layout = result.answers.layout
    votes = np.bincount(layout.row_label, np.diff(layout.row_ptr), minlength=layout.n_classes)
    return np.asarray(votes / max(votes.sum(), 1))


def _prevalence(result: Result) -> list[ClassShare]:
    votes = _votes_by_class(result)
    order = np.argsort(-result.prevalence, kind="stable")
    rows = [ClassShare(int(k), _round(votes[k]), _round(result.prevalence[k])) for k in order[:100].tolist()]
    return rows


def _prevalence_says(result: Result) -> str:
    votes, names = _votes_by_class(result), result.classes
    gap = votes - result.prevalence
    if len(names) < 2:
        return "There is one class only."
    over, under = int(gap.argmax()), int(gap.argmin())
    if gap[over] < 0.005:
        return "Every class is told about as often as it seems true."
    return (
        f"{quoted(names[over])} is told more often than it seems true ({percent(votes[over])} against "
        f"{percent(result.prevalence[over])}), {quoted(names[under])} less often ({percent(votes[under])} against "
        f"{percent(result.prevalence[under])})."
    )


def _class_counts(result: Result) -> Floats | None:
    """(K, K) expected answers by true class and label told; None with very many classes."""
    layout, K = result.answers.layout, result.answers.n_classes
    if K > CLASSES:
        return None
    counts = result.answers.kernels.confusion_counts(layout, result.posterior, 1)
    return np.stack([np.bincount(layout.row_label, counts[:, k], minlength=K) for k in range(K)])


def _mixups(counts: Floats | None, result: Result) -> MixUps:
    if counts is None:
        return MixUps(f"There are too many classes ({result.answers.n_classes}) to set against each other.", [])
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    total = counts.sum(1)
    pairs = np.argsort(-wrong, axis=None, kind="stable")[:15]
    rows = [
        MixUp(int(k), int(told), _round(wrong[k, told], 1), _round(wrong[k, told] / max(total[k], 1e-9)))
        for k, told in zip(*np.unravel_index(pairs, wrong.shape), strict=True)
        if wrong[k, told] >= 0.5
    ]
    if not rows:
        return MixUps("Hardly any class is told in place of another.", [])
    first, names = rows[0], result.classes
    said, truth = quoted(names[first.said]), quoted(names[first.truth])
    says = (
        f"Most often {said} is told where the truth seems to be {truth}: "
        f"about {first.answers:.0f} answers, {percent(first.share, 0)} of those to such tasks."
    )
    return MixUps(says, rows)


# ------------------------------------------------------------------------------------------------------- workers


def _workers(result: Result) -> Workers:
    table = result.workers.with_row_index("number").sort("rank", nulls_last=True)
    shown = _shown(table)
    label = {name: k for k, name in enumerate(result.classes.to_list())}
    rows = [_worker_row(result, row, label) for row in shown.iter_rows(named=True)]
    flagged = int((table["flags"] != "").sum())
    says = f"{count(table.height)} workers, {count(flagged)} of them flagged"
    if shown.height < table.height:
        says += f"; shown are {shown.height}: the flagged, the best and the worst"
    return Workers(says + ".", table.height, rows)


def _shown(table: pl.DataFrame) -> pl.DataFrame:
    """All workers, or the flagged, the best and the worst of many, in the order of ranks."""
    if table.height <= WORKERS:
        return table
    third = WORKERS // 4
    flagged = table.filter(pl.col("flags") != "").head(WORKERS - 2 * third)
    return pl.concat([table.head(third), flagged, table.tail(third)]).unique("number").sort("rank", nulls_last=True)


def _worker_row(result: Result, row: dict[str, Any], label: dict[Any, int]) -> WorkerRow:
    j = row["number"]
    kept = {name: _round(row[name]) for name in ("skill", "low", "high", "spam_score", "trace", "agreement", "overuse")}
    flags = row["flags"].split("; ") if row["flags"] else []
    return WorkerRow(
        worker=short(row["worker"], LONGEST),
        rank=row["rank"],
        answers=row["answers"],
        check_score=_round(row["check_score"]),
        checks=row["checks"],
        seconds=_round(row["seconds"], 2),
        overuses=None if row["overuses"] is None else label[row["overuses"]],
        flags=flags,
        reasons=row["reasons"].split("; ") if flags else [],
        status=row["status"],
        confusion=_worker_cells(result, j),
        surprises=_surprises(result, j),
        **kept,
    )


def _worker_cells(result: Result, j: int) -> Cells:
    """Expected answers of a worker by true class and label told."""
    layout = result.answers.layout
    cells: Cells = []
    for r in range(int(layout.worker_ptr[j]), int(layout.worker_ptr[j + 1])):
        tasks = layout.task[layout.row_ptr[r] : layout.row_ptr[r + 1]]
        by_class = result.posterior[tasks].sum(0, dtype=np.float64)
        told = int(layout.row_label[r])
        cells += [(int(k), told, round(float(by_class[k]), 1)) for k in np.flatnonzero(by_class >= 0.05)]
    return sorted(cells, key=lambda cell: -cell[2])[:CELLS]


def _surprises(result: Result, j: int) -> list[Surprise]:
    """The worker's answers that the posterior makes least probable."""
    layout = result.answers.layout
    rows = slice(int(layout.worker_ptr[j]), int(layout.worker_ptr[j + 1]))
    inside = slice(int(layout.row_ptr[rows.start]), int(layout.row_ptr[rows.stop]))
    tasks = layout.task[inside]
    told = np.repeat(layout.row_label[rows], np.diff(layout.row_ptr[rows.start : rows.stop + 1]))
    own = result.posterior[tasks, told]
    odd = np.lexsort((tasks, own))[:SURPRISES]
    found = result.found
    return [
        Surprise(
            short(result.answers.tasks[int(tasks[n])], LONGEST), int(told[n]), int(found[tasks[n]]),
            _round(result.posterior[tasks[n], found[tasks[n]]]),
        )
        for n in odd
        if own[n] < ODD
    ]  # fmt: skip


def _times(result: Result) -> Times | None:
    table = result.workers.filter(pl.col("seconds").is_not_null() & pl.col("skill").is_not_null())
    if table.is_empty():
        return None
    flagged = (table["flags"] != "").to_numpy()
    shown = table.with_columns(pl.Series("flagged", flagged)).sort("flagged", "answers", descending=True).head(DOTS)
    rows = [
        (short(w, LONGEST), _round(s, 2), _round(k), f)
        for w, s, k, f in shown.select("worker", "seconds", "skill", "flagged").rows()
    ]
    if table.height < 3:
        return Times("Too few workers have times to compare them.", rows)
    link = rank_correlation(table["seconds"].to_numpy(), table["skill"].to_numpy())
    word = "slower workers tend to be better" if link > 0.2 else "faster workers tend to be better"
    if abs(link) <= 0.2:
        word = "time says little of skill"
    middle = float(np.median(table["seconds"].to_numpy()))
    return Times(f"The typical worker takes {middle:.3g} s a task; {word} (rank correlation {link:+.2f}).", rows)


# --------------------------------------------------------------------------------------------------------- tasks


def _tasks(result: Result) -> Tasks:
    open_ = result.labels["status"].is_in(["ok", "unvoted"]).to_numpy()
    p = result.labels["probability"].fill_null(1.0).to_numpy().astype(np.float64)
    order = np.lexsort((np.arange(len(p)), p, ~open_))[: min(TASKS, int(open_.sum()))]
    gain = worth(expected(result, tasks=order))[:, 0]
    rows = [_task_row(result, int(i), float(g)) for i, g in zip(order, gain, strict=True)]
    wrong, review = doubtful(p[open_])
    says = (
        f"About {wrong:.0f} of {count(len(p))} labels are expected to be wrong, half of them on {count(review)} tasks"
    )
    if len(rows) < open_.sum():
        says += f"; shown are the {len(rows)} most uncertain tasks"
    return Tasks(says + ".", result.answers.n_tasks, review, rows)


def _task_row(result: Result, i: int, gain: float) -> TaskRow:
    label, task = result.labels.row(i, named=True), result.tasks.row(i, named=True)
    q = result.posterior[i]
    top = np.argsort(-q, kind="stable")[:10]
    layout = result.answers.layout
    answered = layout.pair[layout.task_ptr[i] : layout.task_ptr[i + 1]]
    votes = [
        Vote(short(w, LONGEST), int(told), _round(s))
        for w, told, s in zip(
            result.answers.workers[layout.row_worker[answered]].to_list(), layout.row_label[answered].tolist(),
            result.workers["skill"][layout.row_worker[answered]].to_list(), strict=True,
        )
    ]  # fmt: skip
    votes.sort(key=lambda vote: (-float(q[vote.label]), vote.label, -(vote.skill or 0.0)))
    return TaskRow(
        task=short(label["task"], LONGEST),
        label=int(result.found[i]),
        probability=_round(label["probability"]),
        status=label["status"],
        tie=label["tie"],
        answers=task["answers"],
        entropy=_round(task["entropy"], 3),
        vote_entropy=_round(task["vote_entropy"], 3),
        disagreement=_round(task["disagreement"], 3),
        difficulty=_round(task["difficulty"], 3),
        gain=_round(gain),
        posterior=[(int(k), _round(q[k])) for k in top if q[k] >= 0.001],
        votes=votes[:VOTES],
        more_votes=max(len(votes) - VOTES, 0),
    )


def _curve(found: CostCurve) -> Curve:
    points = [
        CurvePoint(plan, n, _round(a), _round(low), _round(high)) for plan, n, a, low, high in found.points.rows()
    ]
    if not points:
        return Curve("Nothing is left to ask.", [])
    every = [point for point in points if point.plan == EVERY]
    says = (
        f"One more answer to every task would raise expected accuracy from {percent(every[0].accuracy)} to "
        f"{percent(every[1].accuracy)}; as many given to the most uncertain tasks only, to "
        f"{percent(_at(points, every[1]))}."
    )
    if found.check is None:
        return Curve(f"{says} The curve was not checked on this table.", points)
    says += (
        f" Checked on {count(found.check.tasks)} tasks with an answer taken away: foretold "
        f"{percent(found.check.foretold)}, came {percent(found.check.came)}."
    )
    return Curve(says, points)


def _at(points: list[CurvePoint], every: CurvePoint) -> float:
    near = [p.accuracy for p in points if p.plan != EVERY and p.answers <= every.answers]
    return max(near, default=every.accuracy)


# ------------------------------------------------------------------------------------------------------ pictures


def _pictures(result: Result, counts: Floats | None) -> Pictures:
    answers = result.answers
    entropy = result.tasks["vote_entropy"].drop_nulls().to_numpy()
    per_task, per_worker = answers.answers_per_task, answers.answers_per_worker
    alike = float((entropy < 1e-6).mean()) if len(entropy) else 0.0
    histograms = [
        _histogram("Answers a task", "answers", per_task, f"The typical task has {np.median(per_task):g} answers."),
        _histogram(
            "Answers a worker", "answers", per_worker, f"The typical worker gave {np.median(per_worker):g} answers; "
            f"the busiest {count(int(per_worker.max()))}.",
        ),
        _histogram("Entropy of the votes", "bits", entropy, f"On {percent(alike, 0)} of the tasks all answers agree."),
    ]  # fmt: skip
    ranked = result.workers.with_row_index("number").filter(pl.col("skill").is_not_null())
    best = ranked.sort("low", "worker", descending=[True, False]).head(3)
    worst = ranked.filter(~pl.col("number").is_in(best["number"].implode())).sort("high", "worker").head(3)
    matrices = [
        Matrix(f"{title} worker {n}", short(row["worker"], LONGEST), _worker_cells(result, row["number"]))
        for title, table in (("Best", best), ("Worst", worst))
        for n, row in enumerate(table.iter_rows(named=True), 1)
    ]
    if counts is not None:
        cells = [
            (int(k), int(told), round(float(counts[k, told]), 1))
            for k, told in zip(*np.nonzero(counts >= 0.5), strict=True)
        ]
        matrices.append(Matrix("All workers together", None, sorted(cells, key=lambda cell: -cell[2])[: 10 * CELLS]))
    says = "Rows are the truth as it seems, columns what was told; numbers are expected answers."
    return Pictures([h for h in histograms if h.bins], says, matrices)


def _histogram(title: str, unit: str, values: Ints | Floats, says: str) -> Histogram:
    """At most 24 bins; whole numbers get whole bins."""
    whole = bool(np.issubdtype(values.dtype, np.integer))
    if not len(values):
        return Histogram(title, unit, says, whole, [])
    low, high = float(values.min()), float(values.max())
    if whole:
        width = max(1, int(np.ceil((high - low + 1) / 24)))
        edges = low + width * np.arange(int((high - low) // width) + 2)
    else:
        edges = np.linspace(0, max(high, 1e-9), 25)
    counts, edges = np.histogram(values, edges)
    pairs = zip(edges[:-1], edges[1:], counts, strict=True)
    return Histogram(title, unit, says, whole, [Bin(_round(a), _round(b), int(n)) for a, b, n in pairs])


# -------------------------------------------------------------------------------------------------------- models


def _models(result: Result, models: Sequence[str] | None) -> Models | None:
    if (models is None and result.answers.n_answers > SMALL) or (models is not None and not models):
        return None
    names = [model.name for model in chosen_models(models, 0) if model.name != result.model.name]
    if not names:
        return None
    table = compare(result.answers, names, folds=0, run=Run(seed=result.seed), against=result)
    others = [
        ModelRow(
            row["model"], row["differs"], _round(row["accuracy"]), _round(row["log_loss"]), row["sweeps"],
            row["converged"], _round(row["seconds"], 3),
        )
        for row in table.iter_rows(named=True)
    ]  # fmt: skip
    seconds = _round(result.seconds, 3)
    own = ModelRow(result.model.name, 0, None, None, len(result.trace), result.converged, seconds)
    rows = [own, *others]
    most = max(others, key=lambda row: row.differs)
    n = result.answers.n_tasks
    says = f"{most.model} gives other labels to {count(most.differs)} of {count(n)} tasks"
    says += ", the others to fewer or as many." if len(others) > 1 else "."
    if (result.answers.gold >= 0).any():
        says += " The others did not see the known labels; they are scored on them."
    return Models(says, rows)


def _round(value: Any, digits: int = 4) -> Any:
    return None if value is None else round(float(value), digits)
