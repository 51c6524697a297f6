"""What all studies share: options, a cache of measurements, tables, and figures as SVG."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from ..engine import Run
from ..engine.run import Checkpoint
from ..errors import CheckpointError, ChecksumError, FileError, option
from ..kernels.layout import Floats
from ..result.files import unwritable, write_whole
from ..result.store import read_checkpoint, write_checkpoint

T = TypeVar("T")
MAX_SHOWN_SEEDS = 20  # of a measurement with more seeds, every n-th is announced
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 640, 64, 150, 30, 46
COLOURS = ("#1f6f8b", "#c8553d", "#6a4c93", "#4b8b3b", "#444444", "#c9a227")
DASHES = ("", ' stroke-dasharray="6 3"', ' stroke-dasharray="2 2"')  # of lines, when the colours are used up
MARKS = {
    "plus": "M-3,0H3M0,-3V3",
    "diamond": "M0,-7L7,0L0,7L-7,0Z",
    "small diamond": "M0,-4L4,0L0,4L-4,0Z",
    "ring": "M6,0A6,6 0 1 1 -6,0A6,6 0 1 1 6,0Z",
    "cross": "M-4,-4L4,4M-4,4L4,-4",
}


class StudyOptions(NamedTuple):
    """Options of a study."""

    data: Path | None  # folder of the real data sets
    out: Path | None  # folder for the files that the study writes
    seed: int
    watch: Callable[[str], None]  # called with the name of each step
    quick: bool  # measure less
    full: bool = False  # measure more
    images: Path | None = None  # folder of all images of CIFAR-10
    drop_below: float | None = None  # leave out workers below this score on attention checks

    def seeds(self, quick: int, usual: int) -> range:
        """The seeds to measure with: `quick` of them for a quick study, else `usual`."""
        return range(self.seed, self.seed + (quick if self.quick else usual))

    def fit(self, key: str, seed: int, fit: Callable[[Run], T]) -> T:
        """Make a long fit. With `out`, it keeps a checkpoint there every minute, and the same command continues from
        it, unless it is damaged or the settings have changed."""
        if self.out is None:
            return fit(Run(seed=seed))
        path = self.out / f"{re.sub('[^a-z0-9]+', '-', key.lower())}-{seed}.checkpoint"

        def keep(checkpoint: Checkpoint) -> None:
            write_checkpoint(path, checkpoint)

        run, found = Run(seed=seed, keep=keep), None
        if path.exists():
            try:
                found = fit(replace(run, resume=Checkpoint(*read_checkpoint(path))))
            except (CheckpointError, ChecksumError):
                self.watch(f"{path} is damaged or belongs to other settings; the fit starts from the beginning")
        found = fit(run) if found is None else found
        path.unlink(missing_ok=True)
        return found

    def cache(self, study: str) -> MeasurementCache:
        """Earlier measurements of a study, kept in a file in `out`; without `out`, a cache in memory."""
        return MeasurementCache(None if self.out is None else self.out / f"{study}-measured.jsonl", self.watch)


@dataclass(frozen=True)
class Part:
    """One table of a study, with notes on how to read it."""

    title: str
    rows: pl.DataFrame
    notes: tuple[str, ...] = ()
    digits: int = 4  # decimals in the printed table

    @classmethod
    def of(cls, title: str, rows: Any, notes: tuple[str, ...] = (), digits: int = 4, heads: Any = None) -> Part:
        """Build a table from rows: dicts, or tuples with the column names `heads`."""
        return cls(title, pl.DataFrame(rows, schema=heads, orient="row", infer_schema_length=None), notes, digits)


@dataclass(frozen=True)
class Study:
    """The tables of a study in order, the files it wrote, and what it took."""

    name: str
    parts: tuple[Part, ...]
    files: tuple[Path, ...] = ()
    seconds: float = 0.0  # processor time, with that of measurements which an earlier run made

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        parts = [{"title": p.title, "rows": p.rows.to_dicts(), "notes": list(p.notes)} for p in self.parts]
        files = [str(file) for file in self.files]
        return {"study": self.name, "parts": parts, "files": files, "seconds": self.seconds}


def require_files(folder: Path, files: tuple[str, ...], hint: str) -> None:
    """Raise FileError if one of the files is missing from the folder."""
    for file in files:
        if not (folder / file).exists():
            raise FileError(f"no {file} in {folder}{hint}")


@contextlib.contextmanager
def reading(what: str, folder: Path | None, hint: str = "") -> Iterator[Path]:
    """Yield the folder of data; an error while reading is raised as a FileError that names the data set."""
    assert folder is not None
    try:
        yield folder
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise FileError(f"cannot read {what} in {folder}: {error}{hint}") from error


def read_labelled(
    folder: Path, file: str, array: str, task: str = "task", label: str = "label"
) -> tuple[Any, Any, Any]:
    """Read the tasks and one array of a file of features, and the true class of each row from truth.parquet."""
    known = dict(pl.read_parquet(folder / "truth.parquet").select(task, label).rows())
    with np.load(folder / file, allow_pickle=False) as arrays:
        tasks = arrays[task].tolist()
        return tasks, arrays[array], np.array([known[name] for name in tasks])


class Layer(NamedTuple):
    """One series of a figure: markers, or a line through the points in their order."""

    name: str
    xy: Floats  # (n, 2)
    colour: int = 0  # index into COLOURS; beyond them, lines have the same colours again and are dashed
    mark: str = "line"  # or a key of MARKS
    filled: bool = False
    labels: tuple[str, ...] = ()  # text beside each marker


def draw(
    path: Path, title: str, x: str, y: str, layers: Sequence[Layer], height: int = 420, *, from_zero: bool = False
) -> Path:
    """Write a figure with axes and a legend as SVG, and return its path. With `from_zero`, the y axis begins at 0."""
    points = np.concatenate([layer.xy for layer in layers])
    low, high = points.min(0), points.max(0)
    high = np.where(high > low, high, low + 1)
    pad = 0.03 * (high - low)
    low, high = low - pad, high + pad
    if from_zero:
        low[1] = 0.0
    size = WIDTH - LEFT - RIGHT, -(height - TOP - BOTTOM)

    def to_pixels(xy: Floats) -> Floats:
        return np.asarray((LEFT, height - BOTTOM) + (xy - low) / (high - low) * size)

    parts = _axes(low, high, to_pixels, x, y, height)
    for row, layer in enumerate(layers):
        again, number = divmod(layer.colour, len(COLOURS))
        colour, dash, pixels = COLOURS[number], DASHES[again % len(DASHES)], to_pixels(layer.xy)
        if layer.mark == "line":
            path_data = "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in pixels)
            parts.append(f'<path d="{path_data}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>')
            shape = f'<path d="M-8,0H8" stroke="{colour}" stroke-width="2"{dash}/>'
        else:
            fill = colour if layer.filled else "none"
            shape = f'<path d="{MARKS[layer.mark]}" fill="{fill}" stroke="{colour}"/>'
            parts += [f'<g transform="translate({a:.1f},{b:.1f})">{shape}</g>' for a, b in pixels]
            parts += [
                f'<text x="{a + 8:.1f}" y="{b - 4:.1f}" font-size="10" fill="{colour}">{escape(text)}</text>'
                for (a, b), text in zip(pixels, layer.labels, strict=False)
            ]
        parts += legend_entry(row, shape, layer.name)
    return write_svg(path, title, parts, WIDTH, height)


def write_svg(path: Path, title: str, parts: Iterable[str], width: int, height: int) -> Path:
    """Write a figure of these elements with its title as SVG, and return its path."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-size="14">{escape(title)}</text>',
    ]
    text = "\n".join([*head, *parts, "</svg>", ""])
    return write_whole(path, lambda file: file.write(text.encode()))


def legend_entry(row: int, shape: str, name: str) -> list[str]:
    """One row of the legend to the right of the axes: a shape drawn around the origin, and its name."""
    top = TOP + 12 + 20 * row
    return [
        f'<g transform="translate({WIDTH - RIGHT + 18},{top})">{shape}</g>',
        f'<text x="{WIDTH - RIGHT + 32}" y="{top + 4}">{escape(name)}</text>',
    ]


def _axes(low: Floats, high: Floats, to_pixels: Callable[[Floats], Floats], x: str, y: str, height: int) -> list[str]:
    columns = {value: to_pixels(np.array([value, low[1]]))[0] for value in ticks(low[0], high[0])}
    rows = {value: to_pixels(np.array([low[0], value]))[1] for value in ticks(low[1], high[1])}
    return axes(columns, rows, x, y, height)


def axes(columns: dict[float, float], rows: dict[float, float], x: str, y: str, height: int) -> list[str]:
    """The axes of a figure, with their titles; `columns` and `rows` are the places of the ticks in pixels."""
    bottom, middle = height - BOTTOM, 'text-anchor="middle"'
    return [
        f'<path d="M{LEFT},{TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{height - 10}" {middle}>{escape(x)}</text>',
        f'<text transform="translate(14,{height / 2}) rotate(-90)" {middle}>{escape(y)}</text>',
        *(
            f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>'
            for value, at in columns.items()
        ),
        *(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>' for value, at in rows.items()),
    ]


def ticks(low: float, high: float) -> list[float]:
    """Round values from `low` to `high`, at most seven."""
    step = 10 ** np.floor(np.log10((high - low) / 4))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (k * step) <= 6)
    first = np.ceil(low / step)
    return [float(f"{k * step:.10g}") + 0.0 for k in np.arange(first, np.floor(high / step) + 1)]


Measurement = dict[str, float | None]  # measured numbers by name


class MeasurementCache:
    """Measurements by key. With a path, each is appended to that file, as one line of JSON, as soon as it is made."""

    def __init__(self, path: Path | None, watch: Callable[[str], None]) -> None:
        self.path, self.watch = path, watch
        self.known: dict[str, Measurement] = {}
        self.seconds = 0.0  # processor time of the measurements that an earlier run made and this one has used
        self._unused: dict[str, float] = {}  # the same of those that this run has not used
        if path is not None and path.exists():
            self._read(path)
            watch(f"{len(self.known)} measurements of earlier runs are in {path}; those needed again are used")

    def _read(self, path: Path) -> None:
        """Read all lines; if the last one was cut off by an interruption, remove it."""
        try:
            lines, cut = path.read_bytes().splitlines(keepends=True), b""
            begin = b'{"key": '
            if lines and not lines[-1].endswith(b"\n") and lines[-1][: len(begin)] == begin[: len(lines[-1])]:
                cut = lines.pop()
            for line in lines:
                found = json.loads(line)
                self.known[found["key"]] = dict(found["measured"])
                self._unused[found["key"]] = float(found["seconds"])
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise FileError(
                f"{path} was not written by a study ({error}). Remove it to measure again, or give another "
                f"{option('out')}"
            ) from error
        if cut:
            write_whole(path, lambda file: file.writelines(lines))

    def measure(self, key: str, function: Callable[..., Measurement], *args: Any, **settings: Any) -> Measurement:
        """Return the measurement with this key; if there is none, call `function` and keep what it returns."""
        return self._measure(key, key, lambda: function(*args, **settings))

    def _measure(self, key: str, shown: str, measure: Callable[[], Measurement]) -> Measurement:
        """The same; `shown` is the text for people, if there is any."""
        if key not in self.known:
            if shown:
                self.watch(shown)
            began = time.process_time()
            self.known[key] = measure()
            self._keep({"key": key, "measured": self.known[key], "seconds": time.process_time() - began})
        self.seconds += self._unused.pop(key, 0.0)
        return self.known[key]

    def forget(self, key: str) -> None:
        """Measure this key again."""
        self.known.pop(key, None)
        self._unused.pop(key, None)

    def _keep(self, entry: dict[str, Any]) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(entry)}\n")
        except OSError as error:
            raise unwritable(self.path, error) from error

    def measure_seeds(
        self, key: str, seeds: Iterable[int], function: Callable[..., Measurement], *args: Any
    ) -> list[Measurement]:
        """Return one measurement per seed; the seed is the last argument of `function`."""
        found, seeds = [], list(seeds)
        step = max(1, len(seeds) // MAX_SHOWN_SEEDS)
        for n, seed in enumerate(seeds):
            shown = "" if n % step else f"{key} seed {seed} ({n + 1} of {len(seeds)})"
            found.append(self._measure(f"{key} seed {seed}", shown, partial(function, *args, seed)))
        return found


def mean(measurements: list[Measurement], name: str) -> float | None:
    """Mean of one number over the measurements that have it; None if none has."""
    values = [value for each in measurements if (value := each[name]) is not None]
    return sum(values) / len(values) if values else None
