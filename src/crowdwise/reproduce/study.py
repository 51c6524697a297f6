"""What a study is asked for, what it has measured so far, and what it comes to: tables, and pictures as SVG."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..errors import FileError, option
from ..kernels.layout import Floats
from ..result.files import write_whole

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 640, 64, 150, 30, 46
INK = ("#1f6f8b", "#c8553d", "#6a4c93", "#4b8b3b", "#444444", "#c9a227")
MARKS = {
    "plus": "M-3,0H3M0,-3V3",
    "diamond": "M0,-7L7,0L0,7L-7,0Z",
    "small diamond": "M0,-4L4,0L0,4L-4,0Z",
    "ring": "M6,0A6,6 0 1 1 -6,0A6,6 0 1 1 6,0Z",
    "cross": "M-4,-4L4,4M-4,4L4,-4",
}


class Asked(NamedTuple):
    """What a study is asked for."""

    data: Path | None  # the folder of its real sets
    out: Path | None  # the folder for its files
    seed: int
    watch: Callable[[str], None]  # told of each step
    quick: bool  # measure less
    full: bool = False  # measure more

    def seeds(self, few: int, many: int) -> range:
        """Seeds to measure by: `few` of them where the study is to be quick."""
        return range(self.seed, self.seed + (few if self.quick else many))

    def ledger(self, name: str = "measured.json") -> Ledger:
        """What was measured before, in a file of `out`, where there is one."""
        return Ledger(None if self.out is None else self.out / name, self.watch)


@dataclass(frozen=True)
class Part:
    """One table of a study."""

    title: str
    rows: pl.DataFrame
    says: tuple[str, ...] = ()
    digits: int = 4  # of its numbers, where it is printed

    @classmethod
    def of(cls, title: str, rows: Any, says: tuple[str, ...] = (), digits: int = 4, heads: Any = None) -> Part:
        """A table of rows: dicts, or tuples under `heads`."""
        return cls(title, pl.DataFrame(rows, schema=heads, orient="row", infer_schema_length=None), says, digits)


@dataclass(frozen=True)
class Study:
    """The tables of a study in order, and the files it wrote."""

    name: str
    parts: tuple[Part, ...]
    files: tuple[Path, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        parts = [{"title": p.title, "rows": p.rows.to_dicts(), "says": list(p.says)} for p in self.parts]
        return {"study": self.name, "parts": parts, "files": [str(file) for file in self.files]}


def require_files(folder: Path, files: tuple[str, ...], hint: str) -> None:
    """Refuse a folder that lacks one of the files."""
    for file in files:
        if not (folder / file).exists():
            raise FileError(f"no {file} in {folder}{hint}")


@contextlib.contextmanager
def reading(what: str, folder: Path | None, hint: str = "") -> Iterator[Path]:
    """The folder of data; the set is named where something in it cannot be read."""
    assert folder is not None
    try:
        yield folder
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise FileError(f"cannot read {what} in {folder}: {error}{hint}") from error


def labelled(folder: Path, file: str, array: str, task: str = "task", label: str = "label") -> tuple[Any, Any, Any]:
    """Tasks of a file of features, one of its arrays, and the true class of each row by truth.parquet."""
    known = dict(pl.read_parquet(folder / "truth.parquet").select(task, label).rows())
    with np.load(folder / file, allow_pickle=False) as arrays:
        tasks = arrays[task].tolist()
        return tasks, arrays[array], np.array([known[name] for name in tasks])


class Layer(NamedTuple):
    """Points of one kind, or a line through them in their order."""

    name: str
    xy: Floats  # (n, 2)
    ink: int = 0
    mark: str = "line"  # or one of MARKS
    filled: bool = False


def draw(path: Path, title: str, x: str, y: str, layers: Sequence[Layer], height: int = 420) -> Path:
    """Write one picture with axes and a key."""
    every = np.concatenate([layer.xy for layer in layers])
    low, high = every.min(0), every.max(0)
    high = np.where(high > low, high, low + 1)
    pad = 0.03 * (high - low)
    low, high = low - pad, high + pad
    size = WIDTH - LEFT - RIGHT, -(height - TOP - BOTTOM)

    def at(xy: Floats) -> Floats:
        return np.asarray((LEFT, height - BOTTOM) + (xy - low) / (high - low) * size)

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
        if layer.mark == "line":
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


def _axes(low: Floats, high: Floats, at: Callable[[Floats], Floats], x: str, y: str, height: int) -> list[str]:
    parts = [
        f'<path d="M{LEFT},{TOP}V{height - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 10}" text-anchor="middle">{escape(x)}</text>',
        f'<text transform="translate(14,{height / 2}) rotate(-90)" text-anchor="middle">{escape(y)}</text>',
    ]
    for value in _ticks(low[0], high[0]):
        place = at(np.array([value, low[1]]))
        parts.append(f'<text x="{place[0]:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    for value in _ticks(low[1], high[1]):
        place = at(np.array([low[0], value]))
        parts.append(f'<text x="{LEFT - 6}" y="{place[1] + 4:.1f}" text-anchor="end">{value:g}</text>')
    return parts


def _ticks(low: float, high: float) -> list[float]:
    step = 10 ** np.floor(np.log10((high - low) / 4))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= 6)
    first = np.ceil(low / step)
    return [float(f"{k * step:.10g}") + 0.0 for k in np.arange(first, np.floor(high / step) + 1)]


Figures = dict[str, float | None]


class Ledger:
    """Figures by what they are of. With a file, it is written anew, whole, after every entry."""

    def __init__(self, path: Path | None, watch: Callable[[str], None]) -> None:
        self.path, self.watch = path, watch
        self.known: dict[str, Figures] = {}
        if path is not None and path.exists():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
                if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
                    raise ValueError("no table of tables")
            except (ValueError, OSError) as error:
                raise FileError(
                    f"{path} is not what a study wrote ({error}). Remove it to measure anew, or give another "
                    f"{option('out')}"
                ) from error
            self.known = found
            watch(f"{len(self.known)} measurements were there already: {path}")

    def of(self, key: str, measure: Callable[..., Figures], *given: Any, **settings: Any) -> Figures:
        """What is known of `key`; measured, with what is given, where nothing is."""
        if key not in self.known:
            self.watch(key)
            self.known[key] = measure(*given, **settings)
            if self.path is not None:
                text = json.dumps(self.known, indent=1)
                write_whole(self.path, lambda file: file.write(text.encode()))
        return self.known[key]

    def runs(self, key: str, seeds: Iterable[int], measure: Callable[..., Figures], *given: Any) -> list[Figures]:
        """The same by each seed, which is given last."""
        return [self.of(f"{key} seed {seed}", measure, *given, seed) for seed in seeds]


def mean(entries: list[Figures], name: str) -> float | None:
    """Of one figure over entries, those left out that do not have it."""
    there = [value for each in entries if (value := each[name]) is not None]
    return sum(there) / len(there) if there else None
