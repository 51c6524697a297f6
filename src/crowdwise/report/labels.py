"""The page of labels: from a result to the plain values that are shown, each list cut to its top, with totals.

A section is a dataclass and the function that fills it, in one module; `page/src/data.ts` mirrors the dataclasses.
Names are text, cut to `LONGEST` characters; classes are numbers in `Page.classes`. `says` is the sentence of a section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..acquisition import cost_curve
from ..comparison import chosen_models, compare
from ..engine import Run
from ..metrics import Evaluation
from ..result import LabelsResult
from .classes import ClassShare, MixUps, Pictures, class_counts, mixups, pictures_section, prevalence, prevalence_says
from .doubts import Curve, Tasks, curve_section, tasks_section
from .frame import BasePage, reports
from .judged import Expertise, Groups, Roc, expertise_section, groups_section, roc_section
from .people import Times, Workers, times_section, workers_section
from .summary import Summary, summarise_labels
from .words import GLOSSARY, LONGEST, SENTENCE, count, known, short

SMALL = 50_000  # answers up to which all models are compared unasked


@dataclass(frozen=True)
class ModelRow:
    model: str
    differs: int  # labels unlike those of this result
    accuracy: float | None
    log_loss: float | None
    iterations: int
    converged: bool
    seconds: float


@dataclass(frozen=True)
class Models:
    says: str
    rows: list[ModelRow]


@dataclass(frozen=True)
class Cost:
    """What a fit took."""

    method: str
    workers: int
    seconds: float  # per iteration
    megabytes: float  # at its peak, above the data


@dataclass(frozen=True)
class Scaling:
    """Time and memory against the number of workers."""

    says: str
    methods: list[str]  # in the order to show
    rows: list[Cost]


@dataclass(frozen=True, kw_only=True)
class Page(BasePage):
    """Everything on the page of labels."""

    template, words = "page.html", GLOSSARY

    summary: Summary
    classes: list[str]
    prevalence_says: str
    prevalence: list[ClassShare]
    workers: Workers
    tasks: Tasks
    mixups: MixUps
    curve: Curve
    times: Times | None
    pictures: Pictures
    models: Models | None
    roc: Roc | None  # where the truth is known
    expertise: Expertise | None  # of workers who are told apart class by class, where asked for
    groups: Groups | None  # of workers, where the model has them
    scaling: Scaling | None  # where it was measured


@reports("labels", summary=summarise_labels)
def labels_page(
    result: LabelsResult,
    *,
    models: Sequence[str] | None = None,
    check: bool | None = None,
    judged: Evaluation | None = None,
    scaling: Scaling | None = None,
    command: str | None = None,
) -> Page:
    """The page of a result. `models` are those to compare with (default: all, for small tables), `check` says whether
    the cost curve is checked by fitting again with fewer answers (default: for tables that are not large); `judged` are
    methods compared with the truth, `scaling` what fits took. `command` is the line that makes the result again
    (default: a line of Python)."""
    counts = class_counts(result)
    return Page.of(
        result,
        command,
        classes=[short(name, LONGEST) for name in result.classes.to_list()],
        prevalence_says=prevalence_says(result),
        prevalence=prevalence(result),
        workers=workers_section(result),
        tasks=tasks_section(result),
        mixups=mixups(counts, result),
        curve=curve_section(cost_curve(result, check=check)),
        times=times_section(result),
        pictures=pictures_section(result, counts),
        models=models_section(result, models),
        roc=roc_section(result, judged),
        expertise=expertise_section(result, judged),
        groups=groups_section(result, judged),
        scaling=None if scaling is None else _named(scaling),
    )


def _named(scaling: Scaling) -> Scaling:
    rows = [replace(row, method=short(row.method, LONGEST)) for row in scaling.rows]
    return Scaling(short(scaling.says, 2 * SENTENCE), [short(name, LONGEST) for name in scaling.methods], rows)


def models_section(result: LabelsResult, models: Sequence[str] | None) -> Models | None:
    if (models is None and result.answers.n_answers > SMALL) or (models is not None and not models):
        return None
    names = [model.name for model in chosen_models(models, 0) if model.name != result.model.name]
    if not names:
        return None
    table = compare(result.answers, names, folds=0, run=Run(seed=result.seed), against=result)
    others = [
        ModelRow(
            row["model"], row["differs"], known(row["accuracy"]), known(row["log_loss"]), row["iterations"],
            row["converged"], known(row["seconds"], 3),
        )
        for row in table.iter_rows(named=True)
    ]  # fmt: skip
    seconds = known(result.seconds, 3)
    own = ModelRow(result.model.name, 0, None, None, result.trace.height, result.converged, seconds)
    rows = [own, *others]
    most = max(others, key=lambda row: row.differs)
    n = result.answers.n_tasks
    says = f"{most.model} gives other labels to {count(most.differs)} of {count(n)} tasks"
    says += ", the others to fewer or as many." if len(others) > 1 else "."
    if (result.answers.gold >= 0).any():
        says += " The others did not see the known labels; they are scored on them."
    return Models(says, rows)
