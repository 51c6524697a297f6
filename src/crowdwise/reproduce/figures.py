"""Histograms of workers' scores and heat maps of confusion matrices, as SVG without a plotting library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..kernels.layout import Bools, Floats, Ints
from ..report.thumbnails import uri
from .study import BOTTOM, COLOURS, LEFT, RIGHT, TOP, WIDTH, axes, legend_entry, ticks, write_svg

HEIGHT = 420
MAX_BINS = 21
MAX_LINEAR_COUNT = 200  # with a higher bar, bars of single workers would not be visible on a linear scale
SPACE_ABOVE = 1.1  # the axis of counts ends this factor above the highest bar
TITLE_CHARACTER = 7.5  # pixels of a character of a title
CELL = 22  # pixels of a cell of a matrix
GAP = 24  # pixels between matrices
NAMES = 98  # pixels for the names of classes beside and below the matrices
COLUMNS = 4  # matrices side by side
DARK = 0.55  # share from which on the number in a cell is white
LOW_COLOUR, HIGH_COLOUR = np.array([247, 251, 255]), np.array([8, 64, 129])  # of the shares 0 and 1


class Histogram(NamedTuple):
    """Scores of workers, some of whom are drawn in another colour."""

    title: str
    axis: str  # title of the axis of scores
    scores: Floats  # (W,)
    marked: Bools  # (W,)
    name: str  # of the marked workers, in the legend
    threshold: float | None = None  # drawn as a line


def draw_histogram(path: Path, shown: Histogram) -> Path:
    """Write a histogram with the count above each bar as SVG, and return its path.

    If there are very high bars, the counts are on a logarithmic scale that starts at 0: log(1 + count).
    """
    start, width, place = bins_of(shown.scores, shown.threshold)
    below = 0 if shown.threshold is None else round((shown.threshold - start) / width)
    total = np.bincount(place, minlength=below)  # the axis reaches a threshold above all scores
    marked = np.bincount(place[shown.marked], minlength=len(total))
    logarithmic = total.max() > MAX_LINEAR_COUNT
    scale: Callable[[float], float] = np.log1p if logarithmic else float
    right, bottom, most = WIDTH - RIGHT, HEIGHT - BOTTOM, SPACE_ABOVE * scale(total.max())

    def column(score: float) -> float:
        return LEFT + (score - start) / (width * len(total)) * (right - LEFT)

    def row(count: float) -> float:
        return bottom - scale(count) / most * (bottom - TOP)

    counts = _log_ticks(total.max()) if logarithmic else [each for each in ticks(0, total.max()) if each % 1 == 0]
    at_scores = {score: column(score) for score in ticks(start, start + width * len(total))}
    parts = axes(at_scores, {count: row(count) for count in counts}, shown.axis, _count_axis(logarithmic), HEIGHT)
    for bar in np.flatnonzero(total):
        edges = column(start + bar * width), column(start + (bar + 1) * width)
        levels = row(0), row(marked[bar]), row(total[bar])
        parts += [_bar(edges, levels[0:2], 1), _bar(edges, levels[1:3], 0)]
        middle = f'x="{sum(edges) / 2:.1f}" y="{levels[2] - 4:.1f}"'
        parts.append(f'<text {middle} text-anchor="middle" font-size="8">{total[bar]}</text>')
    for entry, (name, size, colour) in enumerate(
        ((shown.name, marked.sum(), 1), ("others", (total - marked).sum(), 0))
    ):
        shape = f'<rect x="-6" y="-6" width="12" height="12" fill="{COLOURS[colour]}"/>'
        parts += legend_entry(entry, shape, f"{name}: {size}")
    if shown.threshold is not None:
        stroke = 'stroke="#222222" stroke-width="1.5" stroke-dasharray="5 3"'
        parts.append(f'<path class="threshold" d="M{column(shown.threshold):.1f},{TOP}V{bottom}" {stroke}/>')
        parts += legend_entry(2, f'<path d="M-8,0H8" {stroke}/>', f"threshold: {shown.threshold:.3g}")
    return write_svg(path, shown.title, parts, WIDTH, HEIGHT)


def bins_of(scores: Floats, threshold: float | None) -> tuple[float, float, Ints]:
    """Return where the first bin of a histogram starts, the width of the bins, and the bin of every score.

    The threshold is an edge of a bin, so that every bar is on one side of it. There are at most `MAX_BINS` bins.
    """
    low, high = float(scores.min()), float(scores.max())
    edge = 0.0 if threshold is None else threshold
    low, high = (low, high) if threshold is None else (min(low, edge), max(high, edge))
    rough = max(high - low, 0.1 * abs(high), 1e-9) / (MAX_BINS - 1)
    power = 10.0 ** np.floor(np.log10(rough))
    width = float(next(k * power for k in (1, 2, 5, 10) if k * power >= rough * (1 - 1e-9)))
    number = np.floor((scores - edge) / width + 1e-9).astype(np.int64)  # a score on an edge is in the bin above it
    if high > edge:  # but the highest score on an edge is in the bin below it
        number = np.minimum(number, int(np.ceil((high - edge) / width - 1e-9)) - 1)
    first = int(number.min()) if threshold is None else min(int(number.min()), -1)
    return edge + first * width, width, number - first


def _count_axis(logarithmic: bool) -> str:
    return "workers (logarithmic scale)" if logarithmic else "workers"


def _log_ticks(most: float) -> list[float]:
    return [0.0, *(10.0**power for power in range(int(np.log10(most)) + 1))]


def _bar(edges: tuple[float, float], levels: tuple[float, ...], colour: int) -> str:
    (left, right), (low, high) = edges, levels
    if low - high < 1e-9:
        return ""
    size = f'width="{right - left - 1:.1f}" height="{low - high:.1f}"'
    return f'<rect x="{left + 0.5:.1f}" y="{high:.1f}" {size} fill="{COLOURS[colour]}"/>'


def draw_matrices(
    path: Path, title: str, classes: Sequence[str], matrices: dict[str, Floats], rows_are: str = "estimated true class"
) -> Path:
    """Write heat maps of confusion matrices (K, K) as SVG, with their names above them, and return its path.

    Cells hold the share of the row in percent; shares below 0.5 % are left empty.
    """
    names = [printable(name, 12) for name in classes]
    reading = f"Rows: {rows_are}. Columns: label given by the worker. Cells: share of the row in percent."
    side = CELL * len(names)
    rows = -(-(len(matrices) + 1) // COLUMNS)  # one place is for the colour scale
    left, top = LEFT + NAMES - 40, TOP + 42
    width = left + COLUMNS * (side + GAP)
    height = top + rows * (side + GAP + 24) + NAMES - 30
    parts = [f'<text x="{LEFT}" y="40" fill="#555555">{escape(reading)}</text>']
    for number, (name, matrix) in enumerate(matrices.items()):
        x, y = left + number % COLUMNS * (side + GAP), top + number // COLUMNS * (side + GAP + 24)
        parts += [
            f'<g transform="translate({x},{y})">',
            f'<text y="-6" font-size="11">{escape(printable(name, 44))}</text>',
        ]
        parts += _cells(matrix)
        if number % COLUMNS == 0:
            parts += _row_names(names, side)
        if number + COLUMNS >= len(matrices):
            parts += _column_names(names, side)
        parts.append("</g>")
    x, y = left + (COLUMNS - 1) * (side + GAP), top + (rows - 1) * (side + GAP + 24) + side - 40
    parts += [f'<g transform="translate({x},{y})">', *_colour_scale(side), "</g>"]
    return write_svg(path, title, parts, width, height)


def printable(text: object, longest: int) -> str:
    """Return a text without characters that XML or a viewer would not show, cut to `longest` characters."""
    shown = "".join(each if each.isprintable() else "\ufffd" for each in str(text)[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _cells(matrix: Floats) -> list[str]:
    parts = []
    for (k, j), share in np.ndenumerate(matrix):
        x, y = CELL * j, CELL * k
        parts.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="{_colour(float(share))}"/>')
        if share >= 0.005:
            ink = "white" if share > DARK else "#222222"
            place = f'x="{x + CELL / 2:g}" y="{y + CELL / 2 + 3:g}" text-anchor="middle" font-size="9"'
            parts.append(f'<text {place} fill="{ink}">{100 * share:.0f}</text>')
    side = CELL * len(matrix)
    return [*parts, f'<rect width="{side}" height="{side}" fill="none" stroke="#888"/>']


def _row_names(names: list[str], side: int) -> list[str]:
    middle = f'transform="translate({6 - NAMES},{side / 2:g}) rotate(-90)"'
    return [
        *(
            f'<text x="-5" y="{CELL * (k + 0.5) + 4:g}" text-anchor="end">{escape(n)}</text>'
            for k, n in enumerate(names)
        ),
        f'<text {middle} text-anchor="middle">true class</text>',
    ]


def _column_names(names: list[str], side: int) -> list[str]:
    places = [f"translate({CELL * (j + 0.5) + 4:g},{side + 6}) rotate(-90)" for j in range(len(names))]
    return [
        *(f'<text transform="{at}" text-anchor="end">{escape(n)}</text>' for at, n in zip(places, names, strict=True)),
        f'<text x="{side / 2:g}" y="{side + NAMES}" text-anchor="middle">label given</text>',
    ]


def _colour_scale(side: int) -> list[str]:
    steps, bar = 50, 14
    step = side / steps
    parts = [
        f'<rect x="{step * n:.2f}" width="{step + 0.2:.2f}" height="{bar}" fill="{_colour((n + 0.5) / steps)}"/>'
        for n in range(steps)
    ]
    texts = [
        f'<text x="{side * share:g}" y="{bar + 14}" text-anchor="middle">{100 * share:.0f}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    return [*parts, *texts, '<text y="-6">percent of the row</text>']


def _colour(share: float) -> str:
    return "#{:02x}{:02x}{:02x}".format(*np.round(LOW_COLOUR + share * (HIGH_COLOUR - LOW_COLOUR)).astype(int))


def draw_pictures(path: Path, title: str, rows: dict[str, Any], scale: float = 1.0) -> Path:
    """Write rows of pictures, arrays (height, width) or (height, width, 3) from 0 to 255, as SVG, with their names."""
    parts, top = [], float(TOP)
    widest = max(each.shape[1] for each in rows.values())
    for name, pixels in rows.items():
        height, width = (scale * size for size in pixels.shape[:2])
        picture = uri(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))
        parts += [
            f'<text x="{LEFT + 20}" y="{top + height / 2 + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<image x="{LEFT + 28}" y="{top:.1f}" width="{width:g}" height="{height:g}" href="{picture}"/>',
        ]
        top += height + 4
    width = max(40 + scale * widest, TITLE_CHARACTER * len(title))
    return write_svg(path, title, parts, round(LEFT + width), round(top + 10))
