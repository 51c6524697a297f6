"""A classifier from the command line: features beside answers, files out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ..answers import Labels
from ..answers.reading import given
from ..engine import Run
from ..engine.extras import require
from ..errors import ParameterError, for_shell
from ..io import read_features
from ..labels.model import LabelModel
from ..learn import CrowdClassifier
from ..learn.rivals import BASELINES, rivals
from ..learn.sides import by_name
from ..metrics import judged
from ..report import summarise
from .run import Job, quick_page, write_csv
from .say import say_json, words
from .show import watch_models


@dataclass(frozen=True, kw_only=True)
class LearnJob(Job):
    """What to learn with."""

    kind = "learn"

    features: Path
    array: str | None
    classifier: str
    threshold: float
    restarts: int

    def __post_init__(self) -> None:
        if self.classifier not in ("logistic", "mlp"):
            raise ParameterError(f"--classifier is {self.classifier!r}; it can be logistic or mlp")
        require(("deep" if self.classifier == "mlp" else "learn",), f"--classifier {self.classifier}")
        if self.restarts < 1:
            raise ParameterError(f"--restarts is {self.restarts}; it must be at least 1")
        super().__post_init__()

    def model(self) -> LabelModel:
        return by_name(self.name, **self.settings)

    def estimator(self) -> CrowdClassifier:
        more = {"threshold": self.threshold, "restarts": self.restarts, "random_state": self.seed}
        return CrowdClassifier(self.classifier, self.model(), **more)


def learn(job: LearnJob, answers: Labels, as_json: bool) -> bool:
    """Fit, write everything, say what came of it; whether it converged."""
    model = job.estimator()
    found = read_features(job.features, answers.tasks, array=job.array)
    found = found._replace(x=found.x.reshape(len(found.x), -1))
    rows = _recorded(job, answers).by_row(found.tasks)
    with warnings.catch_warnings(record=True) as raised:
        job.fit(lambda run: model.fit(found.x, rows, run=run), f"{answers.n_answers} answers", answers, found.x)
    result, known = model.result_, len(set(answers.gold.tolist()) - {-1}) > 1
    truth = _truth(answers) if known else None
    run = Run(threads=job.threads)
    shown = rivals(model, found.x, rows, BASELINES, run=run, watch=watch_models()) if known else {job.name: result}
    against = judged(shown, truth)
    out = job.out or Path()
    files = job.write(result, **quick_page(result), judged=against)
    open_ = model.predictions(found.x, found.tasks).filter(pl.Series(~rows.answered))
    files.append(write_csv(open_, out / "predictions.csv", job.excel_safe))
    if known:
        files.append(write_csv(against.table(), out / "roc.csv", job.excel_safe))
    else:
        (out / "roc.csv").unlink(missing_ok=True)  # of a former run
    files.append(model.save(out))
    areas = dict(against.table().select("method", "auc").unique(maintain_order=True).rows()) if known else {}
    if as_json:
        about = {"classifier": job.classifier, "features": found.x.shape[1], "predicted": open_.height, "auc": areas}
        say_json({**summarise(result, for_shell).as_dict(), **about, "out": str(out)})
        return bool(result.converged)
    words(*(f"warning: {each.message}" for each in raised), *summarise(result, for_shell).lines())
    words(f"{open_.height} rows without answers are predicted in predictions.csv")
    for name, area in areas.items():
        words(f"AUC of the truth by {name}, which did not see the known labels: {area:.4f}")
    words(f"results are in {out}: {', '.join(sorted(path.name for path in files))}")
    return bool(result.converged)


def _recorded(job: LearnJob, answers: Labels) -> Labels:
    """The same answers, with what the line that makes the result again must say besides."""
    usual = {"classifier": "logistic", "threshold": 0.5, "restarts": 1}
    asked = {name: getattr(job, name) for name in ("array", *usual)}
    return answers.with_options(**given(usual, features=job.features.name, **asked))


def _truth(answers: Labels) -> pl.DataFrame:
    known = answers.gold >= 0
    return pl.DataFrame({"task": answers.tasks.filter(pl.Series(known)), "label": answers.classes[answers.gold[known]]})
