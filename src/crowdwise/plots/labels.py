"""Charts of labels: workers, the confusion matrix, classes, tasks, and what more answers would bring."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.patches import Rectangle

from ..acquisition import CostCurve, cost_curve
from ..errors import ParameterError, check_choice
from ..kernels.layout import Floats, Ints
from ..result import LabelsResult
from .chart import Chart
from .options import check_top, places_of
from .probabilities import Words, probability_chart
from .registry import chart
from .style import (
    BLUE,
    DIAMONDS,
    FAINT,
    INK,
    MAX_NAMED,
    MUTED,
    ORANGE,
    PALE_BLUE,
    PALE_ORANGE,
    WIDTH,
    canvas,
    legend,
    nothing_to_show,
    panels,
    percent_axis,
    room_for,
    rows_height,
    whole_numbers,
)
from .text import NARROW_BLANK, count, many, percent, shown
from .workers import TOP, skill_chart

WRITTEN_CELLS = 16  # classes up to which numbers are written into the cells of a matrix
DARK = 0.55  # share from which on a cell is so dark that its number is white
MIN_SPAN = 0.04  # of accuracy, shown at least
LOOKS = ((BLUE, PALE_BLUE, "o", "-"), (ORANGE, PALE_ORANGE, "D", "--"))  # of plans: line, band, mark, dash


@chart("labels", "workers")
def workers_chart(result: LabelsResult, *, top: int = TOP, workers: Any = None) -> Chart:
    """Skill with its 95 % interval, best first; `top` workers, or those of a list `workers`."""
    guessing = 1 / result.answers.n_classes if result.answers.n_classes > 1 else None
    axis = "skill: chance that an answer is right"
    return skill_chart(result, top, workers, word="skill", axis=axis, guessing=guessing)


# --------------------------------------------------------------------------------------------------------- confusion


@chart("labels", "confusion")
def confusion_chart(
    result: LabelsResult, *, worker: Any = None, values: Literal["shares", "counts"] = "shares", top: int = TOP
) -> Chart:
    """Labels given (columns) by estimated true class (rows), of one `worker` or of all together. Cells hold `values`:
    shares of the row, or counts of answers; of very many classes the `top` most frequent are drawn."""
    check_choice("values", values, ("shares", "counts"))
    number = None if worker is None else places_of(result.answers.workers, [worker], "worker")[0]
    classes = _frequent(result, check_top(top))
    counts, total = answer_counts(result, number, classes)
    shares = np.divide(counts, total[:, None], out=np.zeros_like(counts), where=total[:, None] > 0)
    names = [shown(name) for name in result.classes[classes].to_list()]
    who = "all workers together" if worker is None else f"worker {shown(worker)}"
    title, C = f"Confusion matrix of {who}", len(names)
    note = "Rows: estimated true class (n: expected answers to its tasks). Columns: label given. "
    note += "The outlined diagonal is agreement with the estimate."
    if len(result.classes) > C:
        note += f" Shown are the {C} most frequent of {count(len(result.classes))} classes; shares are of all answers."
    side = min(max(0.42 * C, 2.2), 9.0)
    room = room_for(names) if C <= MAX_NAMED else 0.0
    figure, axes = canvas(side + 1.9 + 0.5 * room, title, note, width=max(side + 2.4 + room, 6.0))
    # without numbers in the cells, small shares must be seen by their colour
    scale = Normalize(0, 1) if C <= WRITTEN_CELLS else PowerNorm(0.5, 0, 1)
    image = axes.imshow(shares, cmap="Blues", norm=scale, aspect="equal", interpolation="nearest")
    _ticks(axes, names, total)
    _cells(axes, shares, counts, total, values)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.02)
    bar.set_label("share of the row")
    bar.outline.set_visible(False)
    percent_axis(bar.ax.yaxis)
    right = float(np.trace(counts) / max(total.sum(), 1e-12))
    said = f"{title}: about {percent(right, 0)} of {count(round(float(total.sum())))} answers agree with the estimate"
    data = _long(result.classes[classes], counts, shares)
    return Chart(title, f"{said}. {_worst(names, counts, shares)}", data, figure)


def answer_counts(result: LabelsResult, worker: int | None, classes: Ints) -> tuple[Floats, Floats]:
    """(C, C) expected answers of a worker, or of all, by true class and label given, of some classes; and (C,) all
    answers by true class."""
    layout = result.answers.layout
    rows = slice(None) if worker is None else slice(*layout.worker_ptr[worker : worker + 2].tolist())
    sums = result.answers.kernels.confusion_counts(layout, result.posterior, 1)[rows][:, classes]  # (rows, C)
    place = np.full(len(result.classes), len(classes))  # labels that are not drawn come last, and are cut off
    place[classes] = np.arange(len(classes))
    label = place[layout.row_label[rows]]
    table = [np.bincount(label, sums[:, k], minlength=len(classes) + 1) for k in range(len(classes))]
    counts = np.asarray(table, np.float64).reshape(len(classes), len(classes) + 1)
    return counts[:, :-1], counts.sum(1)


def _votes(result: LabelsResult) -> Floats:
    """(K,) share of the answers that give each label."""
    layout = result.answers.layout
    votes = np.bincount(layout.row_label, np.diff(layout.row_ptr), minlength=layout.n_classes)
    return np.asarray(votes / max(votes.sum(), 1))


def _frequent(result: LabelsResult, top: int) -> Ints:
    """Numbers of the most frequent classes, in the order of classes."""
    order = np.argsort(-(_votes(result) + result.prevalence), kind="stable")
    return np.sort(order[:top])


def _ticks(axes: Axes, names: list[str], total: Floats) -> None:
    axes.set_xlabel("label given")
    axes.set_ylabel("estimated true class")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if len(names) > MAX_NAMED:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    rows = [f"{name}  (n {count(round(float(n)))})" for name, n in zip(names, total, strict=True)]
    axes.set_yticks(range(len(names)), rows)
    longest = max(map(len, names), default=0)
    slanted = longest * len(names) > 50 or longest > 12
    turn: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axes.set_xticks(range(len(names)), names, **turn)


def _cells(axes: Axes, shares: Floats, counts: Floats, total: Floats, values: str) -> None:
    C = len(total)
    for k in range(C):
        width = 1.2 if C <= MAX_NAMED else 0.3
        axes.add_patch(Rectangle((k - 0.5, k - 0.5), 1, 1, fill=False, ec=INK, lw=width, clip_on=False))
    if C > WRITTEN_CELLS:
        return
    size = 9.5 if C <= 6 else 7.5
    for k, j in np.ndindex(C, C):
        text = f"{100 * shares[k, j]:.0f}" if values == "shares" else count(round(float(counts[k, j])))
        if text == "0":
            text = "" if counts[k, j] < 0.05 else "<1"
        if text and values == "shares" and C <= 6:
            text += f"{NARROW_BLANK}%"
        axes.text(
            j, k, text if total[k] > 0 else "–", ha="center", va="center", fontsize=size,
            color="white" if shares[k, j] > DARK else INK,
        )  # fmt: skip


def _long(names: pl.Series, counts: Floats, shares: Floats) -> pl.DataFrame:
    """One row per cell."""
    C = len(names)
    truth, given = np.repeat(np.arange(C), C), np.tile(np.arange(C), C)
    return pl.DataFrame(
        [
            names[truth].alias("truth"),
            names[given].alias("label"),
            pl.Series("answers", counts.ravel()),
            pl.Series("share", shares.ravel()),
        ]
    )


def _worst(names: list[str], counts: Floats, shares: Floats) -> str:
    """The most frequent mistake in words."""
    off = counts.copy()
    np.fill_diagonal(off, 0)
    if off.max(initial=0.0) < 0.5:
        return "Hardly any answer does not."
    k, j = np.unravel_index(int(off.argmax()), off.shape)
    share = percent(float(shares[k, j]), 0)
    return f"Most often {names[j]} is given where the estimate is {names[k]} ({share} of the row)."


# ----------------------------------------------------------------------------------------------------------- classes


@chart("labels", "classes")
def classes_chart(result: LabelsResult, *, top: int = TOP) -> Chart:
    """The share of answers that give each label, against the estimated share of tasks of that class; of very many
    classes the `top` most frequent are drawn."""
    votes, truth = _votes(result), result.prevalence
    order = np.argsort(-truth, kind="stable")[: check_top(top)]
    K, C = len(truth), len(order)
    data = pl.DataFrame(
        [
            result.classes[order].alias("label"),
            pl.Series("votes", votes[order]),
            pl.Series("estimated", truth[order], dtype=pl.Float64),
        ]
    )
    title = f"Labels given, against the estimated share of {f'{C} of {count(K)}' if C < K else count(C)} classes"
    note = "Where the marks are apart, workers give a label more often, or less often, than it is estimated to be true."
    names = [shown(name) for name in data["label"].to_list()]
    figure, axes = canvas(rows_height(C), title, note, width=max(WIDTH, 5.4 + room_for(names[:MAX_NAMED])))
    y, given, estimated = np.arange(C), data["votes"].to_numpy(), data["estimated"].to_numpy()
    axes.hlines(y, given, estimated, color=MUTED, lw=1.5, zorder=2)
    axes.scatter(estimated, y, s=46, color=BLUE, zorder=3, label="estimated share of the tasks")
    axes.scatter(given, y, s=30, zorder=4, label="share of the answers", **DIAMONDS)
    axes.set_ylim(C - 0.4, -0.6)
    axes.set_xlim(0, 1.08 * max(float(given.max(initial=0)), float(estimated.max(initial=0)), 0.01))
    axes.grid(axis="x")
    percent_axis(axes.xaxis)
    axes.set_xlabel("share")
    if C <= MAX_NAMED:
        axes.set_yticks(y, names)
    else:
        axes.set_yticks([])
        axes.set_ylabel("classes, most frequent first")
    axes.tick_params(axis="y", length=0)
    legend(axes)
    gap = int(np.abs(given - estimated).argmax())
    said = f"{percent(given[gap], 1)} of the answers, {percent(estimated[gap], 1)} of the tasks by the estimate"
    return Chart(title, f"{title}. The largest gap is that of {shown(data['label'][gap])}: {said}.", data, figure)


# ------------------------------------------------------------------------------------------------------ tasks, costs


@chart("labels", "tasks")
def tasks_chart(result: LabelsResult) -> Chart:
    """How probable the labels are, and how many of them are expected to be wrong."""
    open_ = result.labels["status"].is_in(["ok", "unvoted"])
    p = result.labels["probability"].filter(open_).to_numpy().astype(np.float64)
    words = Words("labels", "probability of the label", "expected right", "expected wrong", "are expected to be wrong")
    note = "One label per task. Expected wrong: the sum of one less the probability; right if the model's doubts are."
    rest = result.answers.n_tasks - len(p)
    if rest:
        note += f" {many(rest, 'task')} with a known label, or without any answer, not shown."
    return probability_chart(p, words, note)


@chart("labels", "cost")
def cost_chart(result: LabelsResult, *, curve: CostCurve | None = None) -> Chart:
    """Expected accuracy for more answers, with its range; `curve` is one that `cw.cost_curve` has made."""
    if curve is not None and not isinstance(curve, CostCurve):
        raise ParameterError(f"curve is of type {type(curve).__name__}; wanted is what crowdwise.cost_curve returns")
    found = cost_curve(result) if curve is None else curve
    data, title = found.points, "Expected accuracy of the labels with more answers"
    note = "Gains are those of real datasets with as much disagreement. Errors that workers share stay."
    figure, (near, far) = panels(3.8, title, note, WIDTH, 2)
    if data.is_empty():
        far.set_axis_off()
        nothing_to_show(near, "Nothing is left to ask.")
        return Chart(title, f"{title}. Nothing is left to ask.", data, figure)
    for number, ((plan,), part) in enumerate(data.partition_by("plan", as_dict=True).items()):
        looks = LOOKS[number % len(LOOKS)]
        _line(near, str(plan), part, looks)
        _line(far, str(plan), part, looks)
        far.fill_between(part["answers"], part["low"], part["high"], color=looks[1], alpha=0.35, lw=0)
    near.set_ylim(*_close(data["accuracy"].to_numpy()))
    near.set_ylabel("expected accuracy")
    far.set_title("the same with the range to expect", loc="left", fontsize=9, color=MUTED)
    for axes in (near, far):
        axes.set_xlabel(f"answers added ({_per_task(result)})")
        axes.grid(color=FAINT)
        percent_axis(axes.yaxis)
        whole_numbers(axes.xaxis, ticks=5)
    legend(near, columns=1)
    return Chart(title, _cost_description(title, data), data, figure)


def _line(axes: Axes, plan: str, part: pl.DataFrame, looks: tuple[str, str, str, str]) -> None:
    line, _, mark, dash = looks
    fill = "white" if mark == "D" else line
    axes.plot(part["answers"], part["accuracy"], color=line, marker=mark, ls=dash, ms=4, mfc=fill, label=f"to {plan}")


def _close(accuracy: Floats) -> tuple[float, float]:
    """Limits close around the lines, but never so close that a small gain looks large."""
    low, high = float(accuracy.min()), float(accuracy.max())
    spare = max(0.1 * (high - low), (MIN_SPAN - (high - low)) / 2)
    return low - spare, high + spare


def _per_task(result: LabelsResult) -> str:
    open_ = int(((result.answers.gold < 0) & (result.answers.answers_per_task > 0)).sum())
    return f"{count(open_)}: one more per task"


def _cost_description(title: str, data: pl.DataFrame) -> str:
    said = []
    for (plan,), part in data.partition_by("plan", as_dict=True).items():
        first, last = part.row(0, named=True), part.row(-1, named=True)
        more = many(last["answers"], "more answer")
        said.append(f"{percent(first['accuracy'], 1)} now, {percent(last['accuracy'], 1)} with {more} to {plan}")
    return f"{title}: {'; '.join(said)}."
