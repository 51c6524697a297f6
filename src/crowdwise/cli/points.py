"""Objects from clicks, from the command line: progress, signals, files."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..answers import Points
from ..engine import Run, Step
from ..errors import FileError, Interrupted, ParameterError
from ..io import read_points, read_table
from ..matching import match_objects
from ..points import PointsModel, point_model
from ..report import summarise_points, write_points_report
from ..result import PointsResult
from .run import write_csv
from .say import progress, say_json, table, words
from .signals import stoppable


@dataclass(frozen=True)
class Hunt:
    """What to look for and where to put it; wrong settings are refused before any file is read."""

    file: str
    reading: dict[str, Any]  # options of `read_points`
    name: str
    settings: dict[str, Any]
    out: Path
    pictures: Path | None
    truth: Path | None
    within: float
    seed: int
    threads: int
    page: bool
    excel_safe: bool

    def __post_init__(self) -> None:
        self.model()
        self.run()
        if self.truth is not None and not self.within > 0:
            raise ParameterError(f"--within is {self.within}; it must be a distance above 0")
        if self.pictures is not None and not self.pictures.is_dir():
            raise FileError(f"--pictures {self.pictures} is no folder. Name the folder that holds the images")

    def model(self) -> PointsModel:
        return point_model(self.name, **self.settings)

    def run(self, **more: Any) -> Run:
        return Run(seed=self.seed, threads=self.threads, **more)

    def points(self) -> Points:
        return read_points(self.file, **self.reading)


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


def hunt(asked: Hunt, as_json: bool) -> bool:
    """Fit, write everything, say what came of it; whether it converged."""
    model, points = asked.model(), asked.points()
    truth = None if asked.truth is None else read_table(asked.truth, None, None, None).frame
    with stoppable() as stop, progress(f"{model.name} on {points.n_clicks} clicks", _told) as watch:
        try:
            result = model.fit(points, asked.run(watch=watch, stop=stop))
        except Interrupted as broken:
            broken.exit_status = stop.exit_status
            raise
    files = write_points(result, asked.out, asked.page, asked.excel_safe, asked.pictures)
    summary = summarise_points(result)
    matched = None if truth is None else match_objects(result, truth, within=asked.within)
    if matched is not None:
        files.append(write_csv(matched, asked.out / "matched.csv", asked.excel_safe))
    else:
        (asked.out / "matched.csv").unlink(missing_ok=True)  # of a former run
    if as_json:
        about = asdict(summary) | {"images": result.images.to_dicts(), "out": str(asked.out)}
        say_json(about if matched is None else about | {"matched": matched.to_dicts()})
        return result.converged
    words(*summary.lines())
    if matched is not None:
        shown = matched.select("image", "found", "true", "matched", "precision", "recall", "f1")
        table(shown.columns, shown.head(20).rows(), 3)
        means = [float(matched[name].mean()) for name in ("precision", "recall", "f1")]  # type: ignore[arg-type]
        words("means over images: precision {:.3f}, recall {:.3f}, F1 {:.3f}".format(*means))
    words(f"results are in {asked.out}: {', '.join(sorted(path.name for path in files))}")
    return result.converged


def _told(step: Step) -> str:
    """A step for a person: images one by one first, then sweeps over all."""
    if math.isnan(step.objective):
        return f"image {step.iteration} of {step.max_iter}, {step.flips} objects so far"
    return f"sweep {step.iteration}, {step.flips} objects"


def write_points(
    result: PointsResult, out: Path, page: bool = True, excel_safe: bool = False, pictures: Path | None = None
) -> list[Path]:
    """objects.csv, workers.csv, clicks.csv, images.csv, report.html and the saved result."""
    tables = {"objects": result.objects, "workers": result.workers, "clicks": result.clicks, "images": result.images}
    files = [write_csv(rows, out / f"{name}.csv", excel_safe) for name, rows in tables.items()]
    if page:
        files.append(write_points_report(result, out / "report.html", pictures=pictures))
    return [*files, result.save(out)]
