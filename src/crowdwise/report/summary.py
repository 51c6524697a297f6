"""The summary of a result: plain values that text, JSON and pages share."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..result import Result


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
    ties: int
    converged: bool
    sweeps: int
    objective: float | None
    seconds: float
    seed: int
    versions: dict[str, str]
    warnings: list[str]
    rows_read: int
    rows_used: int
    dropped: dict[str, int]
    notes: list[str]  # how the table was read

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The summary for a person, warnings first."""
        said = [f"warning: {text}" for text in self.warnings]
        dropped = "".join(f"; {count} {reason}" for reason, count in self.dropped.items())
        said.append(f"{self.source}: {self.rows_read} rows read, {self.rows_used} used{dropped}")
        said += self.notes
        said.append(f"{self.tasks} tasks, {self.workers} workers, {len(self.classes)} classes, {self.answers} answers")
        state = "converged" if self.converged else "NOT converged"
        said.append(f"{self.model}: {state} after {self.sweeps} sweeps" if self.sweeps else f"{self.model}: counted")
        if self.expected_accuracy is not None:
            said[-1] += f"; expected accuracy of the labels {self.expected_accuracy:.1%} by the model's own doubt"
        return said


def summarise(result: Result) -> Summary:
    """The summary of a result."""
    answers, intake = result.answers, result.answers.intake
    open_tasks = result.labels.filter(result.labels["status"] != "known")  # what gold says needs no model
    probability = open_tasks["probability"].drop_nulls()
    return Summary(
        source=intake.source,
        model=result.model.name,
        settings={k: dict(v) if hasattr(v, "items") else v for k, v in result.model.settings().items()},
        answers=answers.n_answers,
        tasks=answers.n_tasks,
        workers=answers.n_workers,
        classes=answers.classes.to_list(),
        prevalence=[float(share) for share in result.prevalence],
        expected_accuracy=float(np.mean(probability.to_numpy())) if len(probability) else None,
        ties=int(result.labels["tie"].sum()),
        converged=result.converged,
        sweeps=len(result.trace),
        objective=result.trace[-1] if result.trace else None,
        seconds=result.seconds,
        seed=result.seed,
        versions=result.versions,
        warnings=list(result.warnings),
        rows_read=intake.rows_read,
        rows_used=intake.rows_used,
        dropped={d.reason: d.count for d in intake.dropped},
        notes=list(intake.notes),
    )
