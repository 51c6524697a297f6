"""The golden exports: what each file holds, written down by hand, and how a test reads and compares it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import crowdwise as cw

GOLDEN = Path(__file__).parent / "golden"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text("utf-8"))
EMAILS: list[str] = EXPECTED.pop("emails")  # files whose workers are e-mail addresses
FILES = tuple(EXPECTED)
TABLES = tuple(name for name in FILES if name.endswith((".csv", ".tsv")))
# Reasons why rows are dropped that are not the name of a status, and what they are called in expected.json.
REASONS = {"no label": "empty", "no answer": "empty", "another label": "another", "same label again": "again"}


class Case(NamedTuple):
    """A question of a golden file, and the answers to it."""

    file: str
    expected: dict[str, Any]

    @property
    def kind(self) -> str:
        return "points" if self.expected["kind"] == "points" else "labels"

    @property
    def question(self) -> str:
        name = self.expected["question"] or self.expected.get("question_name")
        return str(name)

    def __str__(self) -> str:
        return f"{self.file}-{self.question}"

    @property
    def options(self) -> dict[str, Any]:
        """The options that reading these answers takes."""
        several = len({row[-1] for row in self.expected.get("classes", [])}) > 1
        named = {"question": self.question} if several or self.expected["question"] is not None else {}
        joined = {"sets": "joined"} if self.expected["kind"] == "sets" else {}
        return named | joined | ({"keep": "personal"} if self.file in EMAILS else {})

    def read(self, path: Path | None = None, **options: Any) -> Any:
        """Read the answers, from the golden file or from a copy of it."""
        return cw.read(GOLDEN / self.file if path is None else path, **(self.options | options))

    @property
    def votes(self) -> list[tuple[Any, ...]]:
        """The answers that count, sorted; a set of labels is one label."""
        votes = [tuple(row) for row in self.expected["votes"]]
        if self.expected["kind"] == "sets":
            votes = [(task, worker, " | ".join(labels)) for task, worker, labels in votes]
        return sorted(votes)


CASES = tuple(Case(file, each) for file in FILES for each in (EXPECTED[file], *EXPECTED[file].get("also", [])))
FIRST = tuple(Case(file, EXPECTED[file]) for file in FILES)  # one question of every file


def named(cases: Iterable[Case]) -> list[str]:
    """Return the names of cases for the report of the tests."""
    return [str(case) for case in cases]


def rows_of(answers: Any) -> list[tuple[Any, ...]]:
    """Return the answers as rows, sorted."""
    columns = ("task", "worker", "label") if answers.kind == "labels" else ("image", "worker", "x", "y")
    return sorted(answers.frame().select(columns).rows())


def left_out(answers: Any) -> dict[str, int]:
    """Return how many rows were left out, by status."""
    found: Counter[str] = Counter()
    for dropped in answers.intake.dropped:
        known = next((name for reason, name in REASONS.items() if dropped.reason.startswith(reason)), None)
        found[known or dropped.reason.split(" (")[0]] += dropped.count
    return dict(found)


def gold_of(answers: Any) -> dict[str, str]:
    """Return the known label of each task that has one."""
    return {answers.tasks[n]: answers.classes[code] for n, code in enumerate(answers.gold.tolist()) if code >= 0}


def empty_jobs_of(answers: Any) -> list[list[str]]:
    """Return who looked at which image and clicked nothing."""
    jobs = zip(answers.job_image.tolist(), answers.job_worker.tolist(), strict=True)
    sizes = (answers.job_ptr[1:] - answers.job_ptr[:-1]).tolist()
    return sorted([answers.images[i], answers.workers[j]] for (i, j), size in zip(jobs, sizes, strict=True) if not size)


def same(one: Any, other: Any) -> bool:
    """Return whether two answers are equal, with the counts of what was left out."""
    return (
        one.frame().equals(other.frame())
        and left_out(one) == left_out(other)
        and (gold_of(one) == gold_of(other) if one.kind == "labels" else empty_jobs_of(one) == empty_jobs_of(other))
    )
