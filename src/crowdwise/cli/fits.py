"""Fits of every kind, from the command line: read, fit, write everything, report."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import polars as pl

from ..answers.reading import given
from ..engine.resources import require
from ..errors import FileError, ParameterError, check_choice
from ..io import read_features, read_table
from .options import LabelsSource, PairsSource, PointsSource
from .run import Job, quick_page, spreadsheet_safe, write_csv
from .say import table, words
from .show import watch_models

SHOWN = 20  # rows


def fit_labels(job: Job, source: LabelsSource) -> None:
    """Labels; without a folder they go to stdout."""
    result = job.fit(source.answers())
    files = [] if job.out is None else job.write(result, **quick_page(result))

    def show() -> None:
        if job.out is None:
            labels = spreadsheet_safe(result.labels) if job.options.excel_safe else result.labels
            sys.stdout.buffer.write(labels.write_csv().encode())
            sys.stdout.flush()

    job.close(result, files, {} if job.out else {"labels": result.labels.to_dicts()}, show)


def fit_points(job: Job, source: PointsSource, pictures: Path | None, truth: Path | None, within: float) -> None:
    """Objects, matched with true ones where they are known."""
    from ..metrics import match_objects

    true = _truth_table(truth)
    if truth is not None and not within > 0:
        raise ParameterError(f"--within is {within}; it must be a distance above 0")
    if pictures is not None and not pictures.is_dir():
        raise FileError(f"--pictures {pictures} is no folder. Name the folder that holds the images")
    result = job.fit(source.answers())
    files = job.write(result, {"matched": None}, pictures=pictures)  # whatever the truth is, the fit is kept
    matched = None if true is None else match_objects(result, true, within=within)
    if matched is not None and job.out is not None:
        files.append(write_csv(matched, job.out / "matched.csv", job.options.excel_safe))

    def show() -> None:
        if matched is not None:
            scores = ("precision", "recall", "f1")
            shown = matched.select("image", "found", "true", "matched", *scores)
            table(shown.columns, shown.head(SHOWN).rows(), 3)
            means = [float(matched[name].mean()) for name in scores]  # type: ignore[arg-type]
            words("means over images: precision {:.3f}, recall {:.3f}, F1 {:.3f}".format(*means))

    about = {"images": result.images.to_dicts()}
    job.close(result, files, about if matched is None else about | {"matched": matched.to_dicts()}, show)


def fit_pairs(
    job: Job, source: PairsSource, features: Path | None, array: str | None, unknown: str, truth: Path | None, ask: int
) -> None:
    """Clusters, and which pairs to ask next."""
    from ..acquisition import next_pairs
    from ..metrics import match_clusters

    check_choice("--unknown", unknown, ("error", "drop"))
    if job.model.features == "required" and features is None:
        raise ParameterError(f"{job.name} needs features. Say --features FILE, or take --model pair-mixture")
    if ask < 1:
        raise ParameterError(f"--ask is {ask}; it must be at least 1")
    true, found = _truth_table(truth), None
    usual = given({"unknown": "error"}, features=features and features.name, array=array, unknown=unknown)
    pairs = source.answers().with_options(**usual)
    if features is not None:
        found = read_features(features, pairs.items, array=array)
        pairs = pairs.on(found.tasks, unknown)  # type: ignore[arg-type]
    result = job.fit(pairs, found)
    pictures = found.x if found is not None and _are_images(found.x.shape) else None
    files = job.write(result, {"next": next_pairs(result, ask)}, pictures=pictures)
    scores = {} if true is None else match_clusters(result, true)

    def show() -> None:
        shown = result.sizes.head(SHOWN)
        table(shown.columns, shown.rows(), 3)
        if scores:
            words("compared with the truth: " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items()))

    about = {"sizes": result.sizes.to_dicts()}
    job.close(result, files, about | ({"scores": scores} if scores else {}), show)


def fit_classifier(
    job: Job, source: LabelsSource, features: Path, array: str | None, classifier: str, threshold: float, restarts: int
) -> None:
    """A classifier, its predictions, and, where gold is given, how other worker sides do."""
    from ..learn import CrowdClassifier
    from ..learn.sides import BASELINES, rivals
    from ..metrics import evaluate

    if restarts < 1:
        raise ParameterError(f"--restarts is {restarts}; it must be at least 1")
    asked = {"threshold": threshold, "restarts": restarts}
    usual = {"classifier": "logistic", "threshold": 0.5, "restarts": 1}
    recorded = given(usual, features=features.name, array=array, classifier=classifier, **asked)
    model = CrowdClassifier(classifier, job.model, random_state=job.options.seed, **asked)
    answers = source.answers()
    found = read_features(features, answers.tasks, array=array)
    x, rows = found.x.reshape(len(found.x), -1), answers.with_options(**recorded).by_row(found.tasks)
    with warnings.catch_warnings(record=True) as raised:
        job.fit(answers, fit=lambda run: model.fit(x, rows, run=run))
    result, known = model.result_, len(set(answers.gold.tolist()) - {-1}) > 1
    run = job.run()
    shown = rivals(model, x, rows, BASELINES, run=run, watch=watch_models()) if known else {job.name: result}
    against = evaluate(shown, _gold_table(answers) if known else None)
    curves = against.table() if known else None
    open_ = model.predictions(x, found.tasks).filter(pl.Series(~rows.answered))
    files = job.write(result, {"predictions": open_, "roc": curves}, **quick_page(result), judged=against)
    areas = {} if curves is None else dict(curves.select("method", "auc").unique(maintain_order=True).rows())

    def show() -> None:
        words(*(f"warning: {each.message}" for each in raised))
        words(f"{open_.height} rows without answers are predicted in predictions.csv")
        for name, area in areas.items():
            words(f"AUC of the truth by {name}, which did not see the known labels: {area:.4f}")

    about = {"classifier": classifier, "features": x.shape[1], "predicted": open_.height, "auc": areas}
    job.close(result, [*files, model.save(job.out or Path())], about, show)


def _truth_table(file: Path | None) -> pl.DataFrame | None:
    """What is truly there, to be compared with what was found."""
    if file is None:
        return None
    require(("learn",), "--truth")
    return read_table(file, None, None, None).frame


def _gold_table(answers: Any) -> pl.DataFrame:
    known = answers.gold >= 0
    return pl.DataFrame({"task": answers.tasks.filter(pl.Series(known)), "label": answers.classes[answers.gold[known]]})


def _are_images(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
