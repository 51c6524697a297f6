"""From a result to the plain values of the page. All that is shown is cut to the top of each list, with totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..acquisition import cost_curve
from ..comparison import chosen_models, compare
from ..engine import Run
from ..errors import for_python, for_shell
from ..metrics import Judged
from ..result import LabelsResult
from .classes import class_counts, mixups, prevalence, prevalence_says
from .doubts import curve_section, tasks_section
from .frame import frame_of, reports
from .groups import groups_section
from .judged import expertise_section, roc_section
from .page import ModelRow, Models, Page, Scaling
from .people import times_section, workers_section
from .pictures import pictures_section
from .summary import Summary, summarise_labels
from .words import LONGEST, SENTENCE, count, rounded, short

SMALL = 50_000  # answers up to which all models are compared unasked


@reports("labels", summary=summarise_labels)
def labels_page(
    result: LabelsResult,
    *,
    models: Sequence[str] | None = None,
    check: bool | None = None,
    judged: Judged | None = None,
    scaling: Scaling | None = None,
    command: str | None = None,
) -> Page:
    """The page of a result. `models` are those to compare with (default: all, for small tables), `check` says whether
    the cost curve is checked by fitting again with fewer answers (default: for tables that are not large); `judged` are
    methods compared with the truth, `scaling` what fits took. `command` is the line that makes the result again
    (default: a line of Python)."""
    counts = class_counts(result)
    return Page(
        **frame_of(result, command),
        summary=_shortened(summarise_labels(result, for_python if command is None else for_shell)),
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


def _shortened(summary: Summary) -> Summary:
    cut = {
        name: [short(text, SENTENCE) for text in getattr(summary, name)] for name in ("warnings", "notes", "classes")
    }
    return replace(
        summary, source=short(summary.source, LONGEST), classes=cut["classes"], warnings=cut["warnings"],
        notes=cut["notes"],
        dropped={short(reason, SENTENCE): n for reason, n in summary.dropped.items()},
        settings={name: short(value, LONGEST) for name, value in summary.settings.items()},
    )  # fmt: skip


def models_section(result: LabelsResult, models: Sequence[str] | None) -> Models | None:
    if (models is None and result.answers.n_answers > SMALL) or (models is not None and not models):
        return None
    names = [model.name for model in chosen_models(models, 0) if model.name != result.model.name]
    if not names:
        return None
    table = compare(result.answers, names, folds=0, run=Run(seed=result.seed), against=result)
    others = [
        ModelRow(
            row["model"], row["differs"], rounded(row["accuracy"]), rounded(row["log_loss"]), row["iterations"],
            row["converged"], rounded(row["seconds"], 3),
        )
        for row in table.iter_rows(named=True)
    ]  # fmt: skip
    seconds = rounded(result.seconds, 3)
    own = ModelRow(result.model.name, 0, None, None, result.trace.height, result.converged, seconds)
    rows = [own, *others]
    most = max(others, key=lambda row: row.differs)
    n = result.answers.n_tasks
    says = f"{most.model} gives other labels to {count(most.differs)} of {count(n)} tasks"
    says += ", the others to fewer or as many." if len(others) > 1 else "."
    if (result.answers.gold >= 0).any():
        says += " The others did not see the known labels; they are scored on them."
    return Models(says, rows)
