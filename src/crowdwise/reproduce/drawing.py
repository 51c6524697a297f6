"""Small pictures for studies, as SVG: points, lines and axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from ..kernels.layout import Floats
from ..result.files import write_whole

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 420, 64, 150, 30, 46
INK = ("#1f6f8b", "#c8553d", "#6a4c93", "#4b8b3b", "#444444", "#c9a227")
MARKS = {
    "plus": "M-3,0H3M0,-3V3",
    "diamond": "M0,-7L7,0L0,7L-7,0Z",
    "small diamond": "M0,-4L4,0L0,4L-4,0Z",
    "ring": "M6,0A6,6 0 1 1 -6,0A6,6 0 1 1 6,0Z",
    "cross": "M-4,-4L4,4M-4,4L4,-4",
}


@dataclass(frozen=True)
class Marks:
    """Points of one kind."""

    name: str
    xy: Floats  # (n, 2)
    mark: str
    ink: int = 4
    filled: bool = False


@dataclass(frozen=True)
class Line:
    """A line through points, in their order."""

    name: str
    xy: Floats
    ink: int = 0


def draw(path: Path, title: str, x: str, y: str, layers: Sequence[Marks | Line], height: int = HEIGHT) -> Path:
    """Write one picture with axes and a key."""
    every = np.concatenate([layer.xy for layer in layers])
    low, high = every.min(0), every.max(0)
    high = np.where(high > low, high, low + 1)
    pad = 0.03 * (high - low)
    low, high = low - pad, high + pad

    def at(xy: Floats) -> Floats:
        share = (xy - low) / (high - low)
        return np.column_stack(
            [LEFT + share[:, 0] * (WIDTH - LEFT - RIGHT), height - BOTTOM - share[:, 1] * (height - TOP - BOTTOM)]
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>',
        *_axes(low, high, at, x, y, height),
    ]
    for row, layer in enumerate(layers):
        ink, places = INK[layer.ink], at(layer.xy)
        if isinstance(layer, Line):
            path_data = "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in places)
            parts.append(f'<path d="{path_data}" fill="none" stroke="{ink}" stroke-width="1.5"/>')
            shape = f'<path d="M-8,0H8" stroke="{ink}" stroke-width="2"/>'
        else:
            fill = ink if layer.filled else "none"
            shape = f'<path d="{MARKS[layer.mark]}" fill="{fill}" stroke="{ink}"/>'
            parts += [f'<g transform="translate({a:.1f},{b:.1f})">{shape}</g>' for a, b in places]
        top = TOP + 12 + 20 * row
        parts.append(f'<g transform="translate({WIDTH - RIGHT + 18},{top})">{shape}</g>')
        parts.append(f'<text x="{WIDTH - RIGHT + 32}" y="{top + 4}">{escape(layer.name)}</text>')
    text = "\n".join([*parts, "</svg>", ""])
    return write_whole(path, lambda file: file.write(text.encode()))


def _axes(low: Floats, high: Floats, at: object, x: str, y: str, height: int) -> list[str]:
    parts = [
        f'<path d="M{LEFT},{TOP}V{height - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 10}" text-anchor="middle">{escape(x)}</text>',
        f'<text transform="translate(14,{height / 2}) rotate(-90)" text-anchor="middle">{escape(y)}</text>',
    ]
    for value in _ticks(low[0], high[0]):
        place = at(np.array([[value, low[1]]]))[0]  # type: ignore[operator]
        parts.append(f'<text x="{place[0]:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    for value in _ticks(low[1], high[1]):
        place = at(np.array([[low[0], value]]))[0]  # type: ignore[operator]
        parts.append(f'<text x="{LEFT - 6}" y="{place[1] + 4:.1f}" text-anchor="end">{value:g}</text>')
    return parts


def _ticks(low: float, high: float) -> list[float]:
    step = 10 ** np.floor(np.log10((high - low) / 4))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= 6)
    first = np.ceil(low / step)
    return [float(f"{k * step:.10g}") + 0.0 for k in np.arange(first, np.floor(high / step) + 1)]
