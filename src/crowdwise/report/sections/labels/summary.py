"""The summary of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....acquisition import expected_accuracy, one_more
from ....acquisition.cost import MIN_GOLD, Accuracy, accuracy_from_sums, open_probabilities
from ....acquisition.known import n_known
from ....inter_rater import measured
from ....kernels.layout import Floats
from ....result import FittedLabels, LabelsResult, SplitResult
from ...page import BaseSummary, Language, Tile
from ...registry import summary
from ...text import NOT_KNOWN, count, many, percent

REVIEWED_SHARE = 0.5  # share of the labels expected to be wrong that the tasks to review hold
MIN_WRONG = 0.5  # labels expected to be wrong, below which there is nothing to review


@dataclass(frozen=True, kw_only=True)
class Summary(BaseSummary):
    answers: int
    tasks: int
    workers: int
    classes: list[Any]
    prevalence: list[float]
    expected_accuracy: float | None  # mean probability of the labels
    expected_low: float | None  # 90 % range, by how far such estimates were off on real sets
    expected_high: float | None
    alpha: float | None  # Krippendorff's
    alpha_low: float | None
    alpha_high: float | None
    expected_wrong: float  # labels
    to_review: int  # the most uncertain tasks, which hold half of them
    flagged: int  # workers with a flag
    gain: float | None  # in expected accuracy, by one more answer per task
    ties: int
    known: int | None  # tasks with gold and answers, by which expected accuracy is corrected
    effective_votes: float | None  # independent votes that the answers to a task are worth, on average
    shared_errors: float | None  # evidence for errors that many workers share, from 0 to 1
    copies: list[list[Any]]  # workers who copy each other, group by group
    agreeing: list[list[Any]]  # workers who agree beyond the crowd: shared errors, or better knowledge

    @property
    def title(self) -> str:
        return f"Labels estimated from {many(self.answers, 'answer')}"

    @property
    def terms(self) -> Sequence[str]:
        return (*super().terms, "expected accuracy", "Krippendorff's alpha", "gain", "points", "answer")


def _tiles(values: dict[str, Any], alpha_note: str) -> list[Tile]:
    """Return the five key figures; `alpha_note` says why there is no alpha."""
    alpha, gain = values["alpha"], values["gain"]
    return [
        Tile(
            "Expected accuracy of the labels",
            _percent(values["expected_accuracy"]),
            _range(values["expected_low"], values["expected_high"], _percent),
            _known_note(values["known"] if values["expected_accuracy"] is not None else None),
        ),
        Tile(
            "Agreement (Krippendorff's alpha)",
            NOT_KNOWN if alpha is None else f"{alpha:.2f}",
            alpha_note or _range(values["alpha_low"], values["alpha_high"], "{:.2f}".format),
            "1: full agreement. 0: the agreement of random answers.",
        ),
        Tile(
            "Tasks to review",
            count(values["to_review"]),
            _reviewed(values),
            "The most uncertain tasks. An expert, or another answer, helps most here.",
        ),
        Tile(
            "Workers flagged",
            count(values["flagged"]),
            f"of {count(values['workers'])}",
            "At chance, one label only, inverted, copying, or too fast. A flag is a reason to look, never a verdict.",
        ),
        Tile(
            "Gain from one more answer per task",
            NOT_KNOWN if gain is None else f"+{100 * gain:.1f}",
            "points of expected accuracy" if gain is not None else "",
            "What one more answer per task brought on real datasets with as much disagreement. Errors that workers "
            "share stay.",
        ),
    ]


def _known_note(known: int | None) -> str:
    if known is not None and known >= MIN_GOLD:
        return (
            f"How many of the labels that are not known are right, checked on {many(known, 'known task')} that were "
            "judged without their label."
        )
    return (
        "How many labels are right. The range is how far such estimates were off on 18 real datasets whose truth is "
        "known; 30 tasks with known labels would about halve it."
    )


def _reviewed(values: dict[str, Any]) -> str:
    """Return how many tasks there are, and how many labels are expected to be wrong."""
    wrong, all_tasks = round(values["expected_wrong"]), f"of {many(values['tasks'], 'task')}"
    if not values["to_review"]:
        return f"{all_tasks}; less than one label is expected to be wrong"
    if wrong <= 1:
        return f"{all_tasks}; about one label is expected to be wrong"
    return f"{all_tasks}; they contain half of the about {count(wrong)} wrong labels"


def _percent(share: float | None) -> str:
    return NOT_KNOWN if share is None else percent(share)


def _range(low: float | None, high: float | None, text: Any) -> str:
    return "" if low is None or high is None else f"{text(low)} to {text(high)}"


@summary("labels")
def summarise(result: LabelsResult, language: Language) -> Summary:
    """Return the summary of a result of labels."""
    if isinstance(result, SplitResult):
        return _of_parts(result, language)
    accuracy = expected_accuracy(result)
    wrong, review = doubtful(open_probabilities(result))
    effective, answered = result.tasks["effective_votes"], result.answers.answers_per_task > 0
    alpha = measured(result.answers, ["krippendorff-alpha"]).row(0, named=True)
    values = _common(result, accuracy) | {
        "known": n_known(result),
        "effective_votes": effective.filter(answered).mean(),
        "alpha": alpha["value"],
        "alpha_low": alpha["low"],
        "alpha_high": alpha["high"],
        "expected_wrong": wrong,
        "to_review": review,
        "gain": one_more(result),
        "ties": int(result.labels["tie"].sum()),
    }
    return Summary.of(result, language, counted=_counted(values), tiles=_tiles(values, alpha["note"]), **values)


def _common(result: FittedLabels, accuracy: Accuracy | None) -> dict[str, Any]:
    """Return the values that come from the workers and classes of a result, and the expected accuracy."""
    answers = result.answers
    mean, low, high = accuracy or (None, None, None)
    return {
        "answers": answers.n_answers,
        "tasks": answers.n_tasks,
        "workers": answers.n_workers,
        "classes": answers.classes.to_list(),
        "prevalence": [float(share) for share in result.prevalence],
        "expected_accuracy": mean,
        "expected_low": low,
        "expected_high": high,
        "flagged": int((result.workers["flags"] != "").sum()),
        **_dependence(result),
    }


def _dependence(result: FittedLabels) -> dict[str, Any]:
    """Return the evidence for shared errors, and groups of workers who copy each other or agree beyond the crowd."""
    found, names = result.model.dependence(result.params), result.answers.workers
    copies, agreeing = (
        [names.filter(np.asarray(each.of) == number).to_list() for number in range(len(each.rate))]
        for each in result.model.groups_found(result.params, len(names))
    )
    return {"shared_errors": None if found is None else found.shared, "copies": copies, "agreeing": agreeing}


def _counted(values: dict[str, Any]) -> str:
    parts = [many(int(values[name]), name.removesuffix("s")) for name in ("answers", "tasks", "workers")]
    classes = len(values["classes"])
    parts.append(f"{count(classes)} class{'es' * (classes != 1)}")
    return f"{parts[0]}: {', '.join(parts[1:])}"


def _of_parts(result: SplitResult, language: Language) -> Summary:
    """Return the summary of a result in parts, which has sums over tasks but not the tasks."""
    estimated = result.states["ok"] + result.states["unvoted"]
    wrong, review = _doubtful_bins(result.doubts)
    sums = (result.expected, estimated, result.answers.n_answers)
    accuracy = accuracy_from_sums(*sums, result.model, result.params)
    wrong = wrong if accuracy is None else (1 - accuracy.value) * estimated
    values = _common(result, accuracy) | {
        "alpha": None,
        "alpha_low": None,
        "alpha_high": None,
        "expected_wrong": wrong,
        "to_review": review,
        "gain": None,
        "ties": result.ties,
        "known": None,
        "effective_votes": None,
    }
    tiles = _tiles(values, "not measured for answers in parts")
    return Summary.of(result, language, counted=_counted(values), tiles=tiles, **values)


def _doubtful_bins(doubts: Floats) -> tuple[float, int]:
    """Return what `doubtful` does, from `count_doubts`."""
    number, wrong = doubts
    total, up_to = float(wrong.sum()), np.cumsum(wrong)
    if total < MIN_WRONG:
        return total, 0
    last = int(np.searchsorted(up_to, REVIEWED_SHARE * total))
    missing = REVIEWED_SHARE * total - (up_to[last - 1] if last else 0.0)
    return total, int(number[:last].sum() + np.ceil(missing / (wrong[last] / number[last])))


def doubtful(p: Floats) -> tuple[float, int]:
    """Return how many labels with these probabilities are expected to be wrong, and how many of the least probable
    labels hold half of them."""
    wrong = np.sort(1 - p)[::-1]
    total = float(wrong.sum())
    return total, int(np.searchsorted(np.cumsum(wrong), REVIEWED_SHARE * total)) + 1 if total >= MIN_WRONG else 0
