"""How all charts look: fonts, colours, sizes. Nothing here changes the settings of matplotlib for anybody else."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .text import NARROW_BLANK, count, families

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue and orange differ for every kind of colour vision; marks and hatches differ, too, for print in black and white.
BLUE, ORANGE, INK, MUTED, FAINT = "#2a6db4", "#c2570c", "#1a222d", "#556171", "#e2e6eb"
PALE, PALE_BLUE, PALE_ORANGE = "#c3cad3", "#a9c8e8", "#f3c9a5"
HATCHED: dict[str, Any] = {"facecolor": PALE_ORANGE, "edgecolor": ORANGE, "hatch": "////", "linewidth": 0.8}
DIAMONDS: dict[str, Any] = {"facecolor": "white", "edgecolor": ORANGE, "marker": "D", "linewidth": 1.5}
WIDTH = 7.0  # inches
ROW = 0.24  # inches of height per row that has a name
MAX_NAMED = 80  # rows that can have names; more are drawn close together, without
MAX_HEIGHT = 9.0  # inches of a chart whose rows have no names
SETTINGS: dict[str, Any] = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "figure.facecolor": "white",
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "font.size": 9,
    "grid.color": FAINT,
    "hatch.linewidth": 0.8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,  # a name may hold $
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "svg.hashsalt": "crowdwise",  # the same chart has the same bytes
    "svg.fonttype": "path",  # looks the same on machines without the fonts
    "pdf.fonttype": 42,
}


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """The style of all charts, whatever the caller has set; what was set comes back."""
    import matplotlib.style

    with matplotlib.style.context(["default", SETTINGS | {"font.family": families()}]):
        yield


def canvas(height: float, title: str, note: str = "", width: float = WIDTH) -> tuple[Figure, Axes]:
    """A figure of some inches with one pair of axes, a title, and a note below that says how to read it. It belongs to
    no window and no backend."""
    figure, (axes,) = panels(height, title, note, width, 1)
    return figure, axes


def panels(height: float, title: str, note: str, width: float, columns: int) -> tuple[Figure, list[Axes]]:
    """The same with several pairs of axes side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle("\n".join(textwrap.wrap(title, int(9 * width))), x=0.012, ha="left")
    if note:
        lines = "\n".join(textwrap.wrap(note, int(17 * width)))
        figure.supxlabel(lines, x=0.012, ha="left", fontsize=8, color=MUTED)
    axes: list[Axes] = figure.subplots(1, columns, squeeze=False)[0].tolist()
    return figure, axes


def lay_out(figure: Figure) -> None:
    """Find the place of everything once. Otherwise each save would start from where the last one ended, and differ."""
    for _ in range(2):  # the second pass sees the sizes that the first one gave
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def room_for(names: Iterable[str], inches: float = 0.09) -> float:
    """Inches that the longest of some names takes about, at the size of tick labels."""
    return inches * max(map(len, names), default=0)


def percent_axis(axis: Any) -> None:
    """Shares on an axis are written as percentages."""
    axis.set_major_formatter(lambda share, _: f"{round(100 * share, 6):g}{NARROW_BLANK}%")


def whole_numbers(axis: Any, ticks: int = 8) -> None:
    """Counts on an axis have ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(ticks, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: count(round(value)))


def write_counts(axes: Axes, x: Any, heights: Any) -> None:
    """Numbers above bars, where there are any."""
    for at, height in zip(x, heights, strict=True):
        if height:
            axes.annotate(count(int(height)), (at, height), (0, 3), textcoords="offset points", ha="center", fontsize=8)


def rows_height(rows: int) -> float:
    """Inches for so many rows with a name each, or for as many as there are without."""
    return 1.7 + ROW * max(rows, 3) if rows <= MAX_NAMED else MAX_HEIGHT


def legend(axes: Axes, above: float = 0.3, columns: int = 4) -> None:
    """The legend between title and axes, some heights of letters above them."""
    spaced = {"handletextpad": 0.5, "columnspacing": 1.4, "borderaxespad": above}
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, **spaced)


def nothing_to_show(axes: Axes, why: str) -> None:
    """A chart without data says so."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", color=MUTED, transform=axes.transAxes)
