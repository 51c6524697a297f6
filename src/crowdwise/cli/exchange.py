"""Commands that exchange files with platforms: `convert`, `export` and `formats`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..io import convert, export
from ..io.formats import all_formats, formats
from ..io.returned import check_target
from .options import FittedSource, Source
from .say import say_json, words


def converted(source: Source, to: str | None, out: Path | None, excel_safe: bool) -> None:
    """Write the judgements in a file as another file, or to stdout."""
    options = source.reading()
    if "drop_below" in options:
        raise ParameterError("--drop-below is for fits; omit it")
    options["kind"] = source.kind
    if out is not None:
        _told(convert(source.file, out, to, excel_safe=excel_safe, **options), to or out.suffix[1:])
        return
    if to is None:
        raise ParameterError("name what to write, with --to or by the ending of --out")
    if to == "parquet" and sys.stdout.isatty():
        raise ParameterError("Parquet is not text: name a file with --out")
    with tempfile.TemporaryDirectory(prefix="crowdwise-") as folder:
        done = convert(source.file, Path(folder) / "converted", to, excel_safe=excel_safe, **options)
        with done.path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        _told(done, to, named=False)


def _told(done: Any, to: str, named: bool = True) -> None:
    if named:
        words(f"wrote {done.rows} judgement{'s' * (done.rows != 1)} to {done.path}")
    if done.left_out:
        reasons = ", ".join(f"{count} {reason}" for reason, count in done.left_out.items())
        words(f"left out, because {to} cannot hold them: {reasons}")


def exported(source: FittedSource, to: str, out: Path, original: Path | None, least: float, excel_safe: bool) -> None:
    """Write estimates for a platform, what to label again, and candidates for gold."""
    check_target(to)
    done = export(source.result(), to, out, original=original, least=least, excel_safe=excel_safe)
    words(f"wrote {done.estimates}: {done.tasks} estimates")
    if done.absent:
        words(f"left out: {done.absent} task(s) that are not in {done.original}")
    if done.original is None and to in all_formats():
        title = all_formats()[to].title
        words(
            f"the file has the ids of the tasks, and no other data of them; --original FILE names an export of {title}"
        )
    words(f"wrote {done.relabel}: {done.doubtful} to label again, with reasons")
    if done.gold is not None:
        words(f"wrote {done.gold}: {done.candidates} candidates for known labels; check them before you use them")


def listed_formats(as_json: bool) -> None:
    """Print the formats."""
    rows = formats().to_dicts()
    if as_json:
        say_json(rows)
        return
    for row in rows:
        more = [name for name in ("convert", "export") if row[name]]
        written = f"; written by {' and '.join(more)}" if more else ""
        kinds = f": {row['kinds']}" if row["kinds"] else ""
        print(f"{row['name']}\n    {row['title']}, {row['files']}{kinds}{written}")
