"""The commands that fit: one path for every kind of answers, and what each kind adds to the files and the report."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from ..engine import Run
from ..engine.resources import require
from ..errors import CrowdwiseError, ParameterError
from ..io import Content, read_content, read_features, read_table
from ..io.tables import Reading, size_of
from ..io.writing import spreadsheet_safe
from ..result.base import refuse_parts
from ..result.outputs import Outputs, together
from ..result.store import NAME
from ..result.stored import complete
from .job import Job, check_file, check_folder
from .say import table, words
from .show import watch_models

MAX_ROWS_SHOWN = 20
MAX_ANSWERS_COMPARED = 50_000  # up to which `report` compares all models by default
ROC_FILE = "roc.csv"  # as written by `learn`
ROC_COLUMNS = {
    "method": pl.String, "auc": pl.Float64, "threshold": pl.Float64, "false_positive": pl.Float64,
    "true_positive": pl.Float64,
}  # fmt: skip
WITHIN = 4.0  # distance at which an object found matches a true one


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """What the page and the report of a fit need besides the result."""

    pictures: Path | None = None
    content: Path | None = None
    truth: Path | None = None
    within: float | None = None
    ask: int | None = None  # pairs worth asking next that are written
    coverage: float | None = None  # of label sets
    max_expanded: str | None = None  # size of the files of content and truth, if they are compressed

    def __post_init__(self) -> None:
        check_folder(self.pictures, "--pictures")
        check_file(self.content, "--content")
        check_file(self.truth, "--truth")
        if self.truth is not None:
            require(("learn",), "--truth")
        if self.within is not None and not self.within > 0:
            raise ParameterError(f"--within is {self.within}; it must be a distance above 0")
        if self.ask is not None and self.ask < 1:
            raise ParameterError(f"--ask is {self.ask}; it must be at least 1")

    @cached_property
    def truth_table(self) -> pl.DataFrame | None:
        """The true labels, objects or clusters."""
        how = Reading(max_expanded=size_of("max_expanded", self.max_expanded))
        return None if self.truth is None else read_table(self.truth, how).frame

    @cached_property
    def about(self) -> Content | None:
        """Text and pictures of tasks, images or items."""
        if self.content is self.pictures is None:
            return None
        return read_content(self.content, self.pictures, max_expanded=self.max_expanded)

    def check(self, answers: Any) -> None:
        """Refuse, before the fit, what these answers have no use for."""
        flag = next((flag for flag, value in self._given().items() if value is not None), None)
        if flag is not None and answers.kind not in SCORERS:
            raise ParameterError(f"{flag} does not apply to {answers.title}. Omit it")
        if self.coverage is not None:
            self._check_coverage(answers)
        shown = next((flag for flag in ("--content", "--pictures") if self._given()[flag] is not None), None)
        if shown is not None:
            refuse_parts(answers, shown)
        if self.about is not None:
            self.about.check(getattr(answers, f"{ABOUT[answers.kind]}s").to_list(), ABOUT[answers.kind])

    def _check_coverage(self, answers: Any) -> None:
        from ..acquisition.known import check_coverage

        if answers.kind != "labels":
            raise ParameterError(f"--coverage does not apply to {answers.title}. Omit it")
        refuse_parts(answers, "--coverage")
        check_coverage(float(self.coverage or 0), answers)

    def further(self, answers: Any) -> list[str]:
        """Names of the tables that there may be besides those of the result."""
        asked = {
            "sets": answers.kind == "labels" and (self.coverage is not None or answers.n_gold > 0),
            "next": answers.kind == "pairs",
            "matched": answers.kind == "points" and self.truth is not None,
        }
        return [name for name in asked if asked[name]]

    def sets(self, result: Any) -> pl.DataFrame | None:
        """Label sets: if their coverage is given, or if enough labels are known and the table is not large."""
        from ..acquisition.known import COVERAGE, MAX_QUICK_ANSWERS, known_needed, label_sets, n_known

        if self.coverage is not None:
            return label_sets(result, self.coverage)
        if result.in_parts or not (result.answers.gold < 0).any() or result.answers.n_answers > MAX_QUICK_ANSWERS:
            return None
        return label_sets(result) if n_known(result) >= known_needed(COVERAGE) else None

    def _given(self) -> dict[str, Path | None]:
        return {"--truth": self.truth, "--content": self.content, "--pictures": self.pictures}

    def page(self, result: Any, features: Any = None) -> dict[str, Any]:
        """The options of the page of a result that follow from these."""
        found: dict[str, Any] = {"content": self.about, "coverage": self.coverage}
        if result.kind == "pairs" and features is not None and _are_images(features.x.shape):
            found["pictures"] = features.x
        if result.kind == "points" and self.truth is not None:
            found |= {"truth": self.truth_table, "within": self.within or WITHIN}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Scores:
    """A result compared with the truth: a table for people, values for JSON, and a file."""

    line: str
    values: Any
    name: str = "scores"
    shown: pl.DataFrame | None = None
    file: pl.DataFrame | None = None


def score_labels(result: Any, truth: pl.DataFrame, within: float) -> Scores:
    """Labels compared with true ones."""
    from ..metrics import match_labels

    values = match_labels(result, truth)
    return Scores(f"accuracy {values['accuracy']:.4g} on {values['tasks']} tasks", values)


def score_points(result: Any, truth: pl.DataFrame, within: float) -> Scores:
    """Objects matched with true ones, image by image."""
    from ..metrics import match_objects

    matched = match_objects(result, truth, within=within)
    names = ("precision", "recall", "f1")
    means = matched.select(names).mean().row(0)
    shown = matched.select("image", "found", "true", "matched", *names)
    line = "means over images: precision {:.3f}, recall {:.3f}, F1 {:.3f}".format(*means)
    return Scores(line, matched.to_dicts(), "matched", shown, matched)


def score_pairs(result: Any, truth: pl.DataFrame, within: float) -> Scores:
    """Clusters compared with true ones."""
    from ..metrics import match_clusters

    values = match_clusters(result, truth)
    return Scores(", ".join(f"{name} {value:.4g}" for name, value in values.items()), values)


SCORERS = {"labels": score_labels, "points": score_points, "pairs": score_pairs}
ABOUT = {"labels": "task", "points": "image", "pairs": "item"}  # by kind: what text and pictures are about
SHOWN = {"points": "images", "pairs": "sizes"}  # by kind: the table that JSON has, and people of pairs see


def fit(job: Job, page: PageOptions) -> None:
    """Read, fit, write and report. Without a folder, the first table of the result goes to stdout."""
    with job.outputs() as outputs:
        _fit(job, page, outputs)


def _fit(job: Job, page: PageOptions, outputs: Outputs | None) -> None:
    answers, features = job.read()
    if not job.source.insisted and not getattr(job.source, "kind", None):
        words(f"{answers.intake.source}: {answers.title}, recognised by the columns {_columns(answers)}")
    page.check(answers)
    inputs = page.truth, page.content
    job.refuse_others(outputs, answers.kind, page.further(answers), inputs)
    truth = page.truth_table
    result = job.fit(job.models[answers.kind], answers, features)
    files: list[Path] = []
    scores, problem = None, None
    try:
        scores = None if truth is None else SCORERS[answers.kind](result, truth, page.within or WITHIN)
    except CrowdwiseError as error:  # a truth that does not fit costs the scores, not the results
        problem, page = error, replace(page, truth=None)
    if outputs is not None:
        further: dict[str, pl.DataFrame | None] = {}
        if answers.kind == "pairs":
            from ..acquisition import next_pairs

            further = {"next": next_pairs(result, page.ask or 100)}
        if answers.kind == "labels":
            further = {"sets": page.sets(result)}
        if scores is not None and scores.file is not None:
            further[scores.name] = scores.file
        pages = quick_page(result, job) | page.page(result, features)
        files = job.write(outputs, result, further, inputs=inputs, **pages)
    if problem is not None:
        raise problem
    main, first = next(iter(result.tables().items()))

    def show() -> None:
        if answers.kind == "pairs":
            table(result.sizes.columns, result.sizes.head(MAX_ROWS_SHOWN).rows(), 3)
        if scores is not None and scores.shown is not None:
            table(scores.shown.columns, scores.shown.head(MAX_ROWS_SHOWN).rows(), 3)
        if scores is not None:
            words(f"compared with the truth: {scores.line}")
        if job.out is None:
            safe = spreadsheet_safe(first) if job.options.excel_safe else first
            if isinstance(safe, pl.LazyFrame):
                safe.sink_csv(sys.stdout.buffer)
            else:
                sys.stdout.buffer.write(safe.write_csv().encode())
            sys.stdout.flush()

    about: dict[str, Any] = {}
    if job.options.as_json and not job.out:
        about[main] = (first.collect() if isinstance(first, pl.LazyFrame) else first).to_dicts()
    if answers.kind in SHOWN:
        about[SHOWN[answers.kind]] = result.tables()[SHOWN[answers.kind]].to_dicts()
    job.close(result, files, about | ({} if scores is None else {scores.name: scores.values}), show)


def _columns(answers: Any) -> str:
    return ", ".join(dict.fromkeys(answers.intake.columns.get(role, role) for role in answers.roles.required))


def quick_page(result: Any, job: Job | None = None) -> dict[str, Any]:
    """Options of the page that a fit writes: a comparison with the vote only."""
    if result.kind != "labels" or result.in_parts or (job is not None and not job.options.page):
        return {}
    return compared_page(result, ["majority-vote"])


def compared_page(result: Any, models: list[str] | None) -> dict[str, Any]:
    """The comparison on a page of labels; without `models`, all models if the table is small."""
    from ..comparison import chosen_models, compare

    options: dict[str, Any] = {}
    if models is None and result.answers.n_answers > MAX_ANSWERS_COMPARED:
        return options
    others = [each for each in chosen_models(models, None) if each.name != result.model.name]
    if others:
        run = Run(seed=result.seed)
        options["comparison"] = compare(result.answers, others, folds=0, run=run, against=result)
    return options


def report_options(
    result: Any, page: PageOptions, models: list[str] | None, folder: Path | None = None
) -> dict[str, Any]:
    """Options of the page that `crowdwise report` writes; `folder` is that of a saved result."""
    if page.truth is not None and result.kind != "points":
        raise ParameterError(f"--truth of a page applies to clicks; this is a result of {result.kind}. Omit it")
    if result.kind == "labels":
        return compared_page(result, models) | page.page(result) | _saved_curves(result, folder)
    if models is not None:
        raise ParameterError(f"--compare-with applies to labels; this is a result of {result.kind}. Omit it")
    return page.page(result)


def _saved_curves(result: Any, folder: Path | None) -> dict[str, Any]:
    """The ROC curves that `crowdwise learn` wrote together with a result, if there are any."""
    from ..metrics import Evaluation, evaluate

    if folder is None or not together(folder, ROC_FILE, NAME):
        return {}
    with complete(folder / ROC_FILE, "table of ROC curves"):
        table = pl.read_csv(folder / ROC_FILE, schema=ROC_COLUMNS, glob=False)  # a folder may be called like a pattern
        shares = table.select("auc", "false_positive", "true_positive").to_numpy()
        if table["method"].null_count() or not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("it has shares that cannot be")
    return {"judged": Evaluation.from_table(table, evaluate({result.model.name: result}).skills)}


@dataclass(frozen=True, kw_only=True)
class Learner:
    """The classifier of `crowdwise learn`."""

    features: Path
    array: str | None = None
    classifier: str = "logistic"
    threshold: float = 0.5
    restarts: int = 1

    def __post_init__(self) -> None:
        check_file(self.features, "--features")
        if self.restarts < 1:
            raise ParameterError(f"--restarts is {self.restarts}; it must be at least 1")


def fit_classifier(job: Job, learner: Learner, page: PageOptions) -> None:
    """Fit a classifier, predict rows without answers and, where gold is given, compare other worker sides."""
    with job.outputs() as outputs:
        assert outputs is not None
        _fit_classifier(job, learner, page, outputs)


def _fit_classifier(job: Job, learner: Learner, page: PageOptions, outputs: Outputs) -> None:
    from ..learn import CrowdClassifier
    from ..learn.sides import BASELINES, rivals
    from ..metrics import evaluate

    side = job.models["labels"]
    model = CrowdClassifier(
        learner.classifier, side, random_state=job.options.seed, threshold=learner.threshold, restarts=learner.restarts
    )
    answers = job.source.answers()
    refuse_parts(answers, "learn")
    page.check(answers)
    job.refuse_others(outputs, "labels", ("predictions", "roc"), (learner.features, page.content))
    expanded = job.source.max_expanded
    found = read_features(learner.features, answers.tasks, array=learner.array, max_expanded=expanded)
    x, rows = found.x.reshape(len(found.x), -1), answers.by_row(found.tasks)
    with warnings.catch_warnings(record=True) as raised:
        job.fit(side, answers, fit=lambda run: model.fit(x, rows, run=run))
    result, known = model.result_, len(set(answers.gold.tolist()) - {-1}) > 1
    run = job.run()
    shown = rivals(model, x, rows, BASELINES, run=run, watch=watch_models()) if known else {side.name: result}
    against = evaluate(shown, _gold_table(answers) if known else None)
    curves = against.table() if known else None
    predicted = model.predictions(x, found.tasks).filter(pl.Series(~rows.answered))
    files = job.write(
        outputs,
        result,
        {"predictions": predicted, "roc": curves},
        saved=[model],
        inputs=(learner.features, page.content),
        **quick_page(result, job),
        judged=against,
        **page.page(result),
    )
    areas = {} if curves is None else dict(curves.select("method", "auc").unique(maintain_order=True).rows())

    def show() -> None:
        words(*(f"warning: {each.message}" for each in raised))
        words(f"predictions.csv holds predictions for {predicted.height} rows without answers")
        for name, area in areas.items():
            words(f"AUC of {name}, fitted without the known labels: {area:.4f}")

    about = {"classifier": learner.classifier, "features": x.shape[1], "predicted": predicted.height, "auc": areas}
    job.close(result, files, about, show)


def _gold_table(answers: Any) -> pl.DataFrame:
    known = answers.gold >= 0
    return pl.DataFrame({"task": answers.tasks.filter(pl.Series(known)), "label": answers.classes[answers.gold[known]]})


def _are_images(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
