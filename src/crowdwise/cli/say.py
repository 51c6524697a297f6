"""Output for people and programs; control characters are escaped."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ..errors import for_shell

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(value: object) -> str:
    """Return text with control characters escaped."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(value)).replace("\n", "\\n").replace("\t", " ")


def words(*lines: str) -> None:
    """Print messages on stderr."""
    for line in lines:
        with suppress(OSError):  # stderr is full or closed: there is no other place to say it
            print(clean(for_shell(line)).replace("\u202f", " "), file=sys.stderr)  # terminals show narrow spaces badly


def error(text: str) -> None:
    words(f"error: {text}")


def say_json(value: Any) -> None:
    """Print plain values as JSON, in ASCII unless stdout is UTF-8."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    print(json.dumps(value, indent=2, default=str, ensure_ascii=plain))


def table(header: Sequence[str], rows: Sequence[Sequence[object]], digits: int = 4) -> None:
    """Print a table with aligned columns; numbers are aligned right."""
    cells = [[_cell(value, digits) for value in row] for row in rows]
    head = [clean(name)[:60] for name in header]
    width = [max(len(r[c]) for r in [head, *cells]) for c in range(len(head))]
    right = [all(isinstance(row[c], (int, float)) or row[c] is None for row in rows) for c in range(len(header))]
    for line in [head, *cells]:
        text = "  ".join(v.rjust(w) if r else v.ljust(w) for v, w, r in zip(line, width, right, strict=True))
        print(text.rstrip())


def _cell(value: object, digits: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.{digits}f}" if isinstance(value, float) else clean(value)[:60]


@contextmanager
def progress(name: str) -> Iterator[Any]:
    """Show progress on stderr; yield a function that updates it, or None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    what, state = (TextColumn(each, markup=False) for each in ("{task.description}", "{task.fields[state]}"))
    columns = (what, BarColumn(), state, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task(clean(name), total=None, state="starting (the first large fit compiles for some seconds)")
        began: dict[str, float] = {}

        def update(step: Any) -> None:
            spent = time.monotonic() - began.setdefault(step.stage, time.monotonic())
            left = spent / max(step.iteration - 1, 1) * (step.max_iter - step.iteration)
            most = "" if step.objective is None else "at most "
            soon = f", {most}{duration(left)} left" if spent > 1 else ""
            bar.update(line, state=f"{step}{soon}")

        yield update


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
