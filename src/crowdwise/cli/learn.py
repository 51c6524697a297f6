"""A classifier from the command line: features beside answers, files out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..answers import Labels
from ..engine import Run
from ..errors import Interrupted, ParameterError
from ..io import read_features
from ..learn import CrowdClassifier
from ..learn.rivals import BASELINES, rivals
from ..learn.sides import by_name
from ..report import summarise
from ..scoring import judged
from .run import write_csv, write_tables
from .say import progress, say_json, words
from .show import watch_models
from .signals import stoppable


@dataclass(frozen=True)
class Lesson:
    """What to learn with, and where to put it; wrong settings are refused before any file is read."""

    features: Path
    array: str | None
    classifier: str
    workers: str
    settings: dict[str, Any]
    threshold: float
    restarts: int
    out: Path
    seed: int
    threads: int
    page: bool
    excel_safe: bool

    def model(self) -> CrowdClassifier:
        if self.classifier not in ("logistic", "mlp"):
            raise ParameterError(f"--classifier is {self.classifier!r}; it can be logistic or mlp")
        side = by_name(self.workers, **self.settings)
        if self.restarts < 1:
            raise ParameterError(f"--restarts is {self.restarts}; it must be at least 1")
        more = {"threshold": self.threshold, "restarts": self.restarts, "random_state": self.seed}
        return CrowdClassifier(self.classifier, side, **more)


def learn(lesson: Lesson, answers: Labels, as_json: bool) -> bool:
    """Fit, write everything, say what came of it; whether it converged."""
    model = lesson.model()
    found = read_features(lesson.features, answers.tasks, array=lesson.array)
    found = found._replace(x=found.x.reshape(len(found.x), -1))
    rows = _told(lesson, answers).by_row(found.tasks)
    with stoppable() as stop, progress(f"{lesson.workers} on {answers.n_answers} answers") as watch:
        try:
            with warnings.catch_warnings(record=True) as raised:
                model.fit(found.x, rows, run=Run(threads=lesson.threads, watch=watch, stop=stop))
        except Interrupted as broken:
            broken.exit_status = stop.exit_status
            raise
    result, known = model.result_, len(set(answers.gold.tolist()) - {-1}) > 1
    truth = _truth(answers) if known else None
    run = Run(threads=lesson.threads)
    shown = (
        rivals(model, found.x, rows, BASELINES, run=run, watch=watch_models()) if known else {lesson.workers: result}
    )
    against = judged(shown, truth)
    out = lesson.out
    files = write_tables(result, out, lesson.page, lesson.excel_safe, against)
    open_ = model.predictions(found.x, found.tasks).filter(pl.Series(~rows.answered))
    files.append(write_csv(open_, out / "predictions.csv", lesson.excel_safe))
    if known:
        files.append(write_csv(against.table(), out / "roc.csv", lesson.excel_safe))
    else:
        (out / "roc.csv").unlink(missing_ok=True)  # of a former run
    files.append(model.save(out))
    areas = dict(against.table().select("method", "auc").unique(maintain_order=True).rows()) if known else {}
    if as_json:
        about = {"classifier": lesson.classifier, "features": found.x.shape[1], "predicted": open_.height, "auc": areas}
        say_json({**summarise(result).as_dict(), **about, "out": str(out)})
        return bool(result.converged)
    words(*(f"warning: {each.message}" for each in raised), *summarise(result).lines())
    words(f"{open_.height} rows without answers are told in predictions.csv")
    for name, area in areas.items():
        words(f"AUC of the truth by {name}, which did not see the known labels: {area:.4f}")
    words(f"results are in {out}: {', '.join(sorted(path.name for path in files))}")
    return bool(result.converged)


def _told(lesson: Lesson, answers: Labels) -> Labels:
    """The same answers, with what the line that makes the result again must say besides."""
    said = ["--features", lesson.features.name]
    said += ["--array", lesson.array] if lesson.array else []
    said += ["--classifier", lesson.classifier] if lesson.classifier != "logistic" else []
    said += ["--threshold", str(lesson.threshold)] if lesson.threshold != 0.5 else []
    said += ["--restarts", str(lesson.restarts)] if lesson.restarts != 1 else []
    return answers.with_options(*said)


def _truth(answers: Labels) -> pl.DataFrame:
    known = answers.gold >= 0
    return pl.DataFrame({"task": answers.tasks.filter(pl.Series(known)), "label": answers.classes[answers.gold[known]]})
