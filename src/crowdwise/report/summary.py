"""The summary of a result: plain values that text, JSON, notebooks and the page share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from ..acquisition import expected
from ..inter_rater import agreement
from ..kernels.layout import Floats
from ..rating.skills import Z95
from ..result import LabelsResult
from .frame import Language, Tile
from .words import NOT_KNOWN, count, percent

HALF = 0.5  # part of the labels expected to be wrong that the tasks to review hold


@dataclass(frozen=True)
class Summary:
    """One fit in a few plain values."""

    source: str
    model: str
    settings: dict[str, Any]
    answers: int
    tasks: int
    workers: int
    classes: list[Any]
    prevalence: list[float]
    expected_accuracy: float | None  # mean probability of the labels given
    expected_low: float | None  # range that held the share of right labels on 17 of 18 real sets
    expected_high: float | None
    alpha: float | None  # Krippendorff's
    alpha_low: float | None
    alpha_high: float | None
    alpha_note: str  # why there is none, or ""
    expected_wrong: float  # labels
    to_review: int  # the most uncertain tasks, which hold half of them
    flagged: int  # workers with a flag
    gain: float | None  # in expected accuracy, by one more answer to every task
    ties: int
    converged: bool
    iterations: int
    objective: float | None
    seconds: float
    seed: int
    versions: dict[str, str]
    warnings: list[str]
    rows_read: int
    rows_used: int
    dropped: dict[str, int]
    notes: list[str]  # how the table was read

    heads: ClassVar[tuple[str, str]] = ("Answers", "Skill")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def tiles(self) -> list[Tile]:
        """The five figures on top of every rendering."""
        return [
            Tile(
                "Expected accuracy of the labels",
                _percent(self.expected_accuracy),
                _range(self.expected_low, self.expected_high, _percent),
                "The mean probability of the labels. The range is how far such an expectation of this model was off on "
                "17 of 18 real sets whose truth is known.",
            ),
            Tile(
                "Agreement (Krippendorff's alpha)",
                NOT_KNOWN if self.alpha is None else f"{self.alpha:.2f}",
                self.alpha_note or _range(self.alpha_low, self.alpha_high, "{:.2f}".format),
                "1 is full agreement, 0 is what chance would give.",
            ),
            Tile(
                "Tasks to review",
                count(self.to_review),
                f"of {count(self.tasks)}: they hold half of the {self.expected_wrong:.0f} labels expected to be wrong",
                "The most uncertain tasks: a look by an expert, or another answer, helps here most.",
            ),
            Tile(
                "Workers flagged",
                count(self.flagged),
                f"of {count(self.workers)}",
                "At chance, one label only, inverted, a copy of another, or too fast. A flag is a reason to look.",
            ),
            Tile(
                "Gain from one more answer a task",
                NOT_KNOWN if self.gain is None else f"+{100 * self.gain:.1f}",
                "points of expected accuracy" if self.gain is not None else "",
                "What the labels would gain if every task got one more answer by an average worker.",
            ),
        ]

    def lines(self) -> list[str]:
        """The summary for a person, warnings first."""
        said = [f"warning: {text}" for text in self.warnings]
        dropped = "".join(f"; {count} {reason}" for reason, count in self.dropped.items())
        said.append(f"{self.source}: {self.rows_read} rows read, {self.rows_used} used{dropped}")
        said += self.notes
        said.append(f"{self.tasks} tasks, {self.workers} workers, {len(self.classes)} classes, {self.answers} answers")
        state = "converged" if self.converged else "NOT converged"
        said.append(f"{self.model}: {state} after {self.iterations} iterations" if self.iterations else self.model)
        if self.expected_accuracy is not None:
            said[-1] += f"; expected accuracy of the labels {self.expected_accuracy:.1%} by the model's own doubt"
        said.append("; ".join(self._figures()))
        return said

    def _figures(self) -> list[str]:
        alpha = self.alpha_note if self.alpha is None else f"{self.alpha:.3f}"
        said = [f"Krippendorff's alpha: {alpha}", f"{self.to_review} tasks to review"]
        said.append(f"{self.flagged} of {self.workers} workers flagged")
        if self.gain is not None:
            said.append(f"one more answer a task would gain {100 * self.gain:.1f} points")
        return said


def _percent(share: float | None) -> str:
    return NOT_KNOWN if share is None else percent(share)


def _range(low: float | None, high: float | None, told: Any) -> str:
    return "" if low is None or high is None else f"{told(low)} to {told(high)}"


def summarise_labels(result: LabelsResult, language: Language) -> Summary:
    """The summary of a result; options in its warnings are written as Python arguments, or `for_shell` as flags."""
    answers, intake = result.answers, result.answers.intake
    open_ = result.labels["status"].is_in(["ok", "unvoted"]).to_numpy()  # what gold says needs no model
    right = expected(result, 1)[open_]
    mean, low, high = _accuracy(right[:, 0], result.model.off)
    wrong, review = doubtful(right[:, 0])
    alpha = agreement(answers).row(0, named=True)
    return Summary(
        source=intake.source,
        model=result.model.name,
        settings={k: dict(v) if hasattr(v, "items") else v for k, v in result.model.settings().items()},
        answers=answers.n_answers,
        tasks=answers.n_tasks,
        workers=answers.n_workers,
        classes=answers.classes.to_list(),
        prevalence=[float(share) for share in result.prevalence],
        expected_accuracy=mean,
        expected_low=low,
        expected_high=high,
        alpha=alpha["value"],
        alpha_low=alpha["low"],
        alpha_high=alpha["high"],
        alpha_note=alpha["note"],
        expected_wrong=wrong,
        to_review=review,
        flagged=int((result.workers["flags"] != "").sum()),
        gain=float((right[:, 1] - right[:, 0]).mean()) if len(right) else None,
        ties=int(result.labels["tie"].sum()),
        converged=result.converged,
        iterations=result.trace.height,
        objective=float(result.trace["objective"][-1]) if result.trace.height else None,
        seconds=result.seconds,
        seed=result.seed,
        versions=result.versions,
        warnings=[language(text) for text in result.cautions],
        rows_read=intake.rows_read,
        rows_used=intake.rows_used,
        dropped={d.reason: d.count for d in intake.dropped},
        notes=list(intake.notes),
    )


def doubtful(p: Floats) -> tuple[float, int]:
    """How many labels of these probabilities are expected to be wrong, and how many of the least probable hold half of
    them."""
    wrong = np.sort(1 - p)[::-1]
    total = float(wrong.sum())
    return total, int(np.searchsorted(np.cumsum(wrong), HALF * total)) + 1 if total >= HALF else 0


def _accuracy(p: Floats, off: tuple[float, float]) -> tuple[float | None, float | None, float | None]:
    """Mean of probabilities, and its range: by how much the model was off on real sets (log-odds), and by chance."""
    if not len(p):
        return None, None, None
    mean, chance = float(p.mean()), float(Z95 * np.sqrt((p * (1 - p)).sum()) / len(p))
    odds = np.log(max(mean, 1e-9)) - np.log(max(1 - mean, 1e-9))
    low, high = (float(1 / (1 + np.exp(-(odds + shift)))) for shift in off)
    below, above = np.hypot(mean - low, chance), np.hypot(high - mean, chance)
    return mean, max(mean - float(below), 0.0), min(mean + float(above), 1.0)
