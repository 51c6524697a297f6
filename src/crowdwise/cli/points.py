"""Objects from clicks, from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..engine.extras import require
from ..errors import FileError, ParameterError, for_shell
from ..io import read_points, read_table
from ..metrics import match_objects
from ..report import summarise
from .run import Job, write_csv
from .say import say_json, table, words


@dataclass(frozen=True, kw_only=True)
class PointsJob(Job):
    """Which clicks to fit."""

    kind = "points"

    file: str
    reading: dict[str, Any]  # options of `read_points`
    pictures: Path | None
    truth: Path | None
    within: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.truth is not None:
            require(("learn",), "--truth")
            if not self.within > 0:
                raise ParameterError(f"--within is {self.within}; it must be a distance above 0")
        if self.pictures is not None and not self.pictures.is_dir():
            raise FileError(f"--pictures {self.pictures} is no folder. Name the folder that holds the images")


def box_of(text: str | None) -> Any:
    """Four numbers, or the name of a table of boxes."""
    if text is None or Path(text).exists():
        return text
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ParameterError(
            f"--box is {text!r}, which is neither a file nor numbers; write x0,y0,x1,y1, for instance --box 0,0,300,300"
        ) from None


def run_points(job: PointsJob, as_json: bool) -> bool:
    """Fit, write everything, say what came of it; whether it converged."""
    model, points = job.model(), read_points(job.file, **job.reading)
    truth = None if job.truth is None else read_table(job.truth, None, None, None).frame
    result = job.fit(lambda run: model.fit(points, run=run), f"{points.n_clicks} clicks", points)
    files, out = job.write(result, pictures=job.pictures), job.out or Path()
    summary = summarise(result, for_shell)
    matched = None if truth is None else match_objects(result, truth, within=job.within)
    if matched is not None:
        files.append(write_csv(matched, out / "matched.csv", job.excel_safe))
    else:
        (out / "matched.csv").unlink(missing_ok=True)  # of a former run
    if as_json:
        about = summary.as_dict() | {"images": result.images.to_dicts(), "out": str(out)}
        say_json(about if matched is None else about | {"matched": matched.to_dicts()})
        return bool(result.converged)
    words(*summary.lines())
    if matched is not None:
        shown = matched.select("image", "found", "true", "matched", "precision", "recall", "f1")
        table(shown.columns, shown.head(20).rows(), 3)
        means = [float(matched[name].mean()) for name in ("precision", "recall", "f1")]  # type: ignore[arg-type]
        words("means over images: precision {:.3f}, recall {:.3f}, F1 {:.3f}".format(*means))
    words(f"results are in {out}: {', '.join(sorted(path.name for path in files))}")
    return bool(result.converged)
