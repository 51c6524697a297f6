"""A histogram of probabilities: how sure the answers make of labels, objects or items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..kernels.layout import Floats
from .chart import Chart
from .style import BLUE, HATCHED, canvas, legend, nothing_to_show, percent_axis, whole_numbers, write_counts
from .text import count, percent

BIN = 0.05  # width


@dataclass(frozen=True)
class Words:
    """What the probabilities are of."""

    many: str  # tasks
    probability: str  # probability of the label
    right: str  # expected right
    wrong: str  # expected wrong
    verdict: str  # are expected to be wrong


def probability_chart(p: Floats, words: Words, note: str) -> Chart:
    """How many there are of each probability, and how many of them are expected to be wrong: one less the mean."""
    data = _bins(p, words.many)
    wrong = float((1 - p).sum())
    some = f"About {count(round(wrong))}" if wrong >= 1 else "Fewer than 1"
    title = f"{some} of {count(len(p))} {words.many} {words.verdict}"
    title = title if len(p) else f"{words.many.capitalize()} by {words.probability}"
    figure, axes = canvas(3.7, title, note)
    if not len(p):
        why = f"There are no {words.many} to show."
        nothing_to_show(axes, why)
        return Chart(title, why, data, figure)
    middle, number, bad = data["low"].to_numpy() + BIN / 2, data[words.many].to_numpy(), data["wrong"].to_numpy()
    width = 0.92 * BIN
    axes.bar(middle, number - bad, width, color=BLUE, label=words.right)
    axes.bar(middle, bad, width, bottom=number - bad, label=words.wrong, **HATCHED)
    write_counts(axes, middle, number)
    axes.set_xlim(float(data["low"][0]) - 0.01, 1.01)
    axes.set_xlabel(words.probability)
    axes.set_ylabel(words.many)
    whole_numbers(axes.yaxis)
    axes.margins(y=0.1)
    axes.grid(axis="y")
    percent_axis(axes.xaxis)
    legend(axes)
    sure = int((p >= 1 - BIN).sum())
    said = f"{title}. {count(sure)} have a probability of {percent(1 - BIN, 0)} or more, {count(int((p < 0.5).sum()))}"
    return Chart(title, f"{said} one below 50\u202f%.", data, figure)


def _bins(p: Floats, what: str) -> pl.DataFrame:
    """low, high, how many, and how many of them are wrong by expectation; from the lowest that holds any."""
    bins = round(1 / BIN)
    at = np.minimum((p / BIN + 1e-9).astype(int), bins - 1)
    number, wrong = np.bincount(at, minlength=bins), np.bincount(at, 1 - p, minlength=bins)
    first = int(at.min(initial=bins - 1))
    low = np.arange(bins) / bins
    columns = {"low": low, "high": low + BIN, what: number, "wrong": wrong}
    return pl.DataFrame({name: values[first:] for name, values in columns.items()})
