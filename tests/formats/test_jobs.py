"""Who looked at which image in golden files of points: with one class chosen, and with all together."""

from __future__ import annotations

from typing import Any

import pytest
from golden_exports import CASES, Case, empty_jobs_of, named

POINTS = tuple(case for case in CASES if case.kind == "points")
every_points = pytest.mark.parametrize("case", POINTS, ids=named(POINTS))


def jobs_of(answers: Any) -> list[tuple[str, str]]:
    """Return who looked at which image, sorted."""
    images, workers = answers.images[answers.job_image], answers.workers[answers.job_worker]
    return sorted(zip(images.to_list(), workers.to_list(), strict=True))


def looked(case: Case) -> list[tuple[str, str]]:
    """Return who looked at which image, from what was written down by hand: who clicked, and who saw nothing."""
    return sorted({(row[0], row[1]) for row in (*case.expected["votes"], *case.expected["empty_jobs"])})


@every_points
def test_f9_whoever_clicked_or_saw_nothing_has_a_job(case: Case) -> None:
    assert jobs_of(case.read()) == looked(case)


@every_points
def test_f9_with_one_class_chosen_the_jobs_are_the_same(case: Case) -> None:
    """Whoever marked only objects of other classes looked, and saw none of this class."""
    for label in sorted({row[-1] for row in case.expected["classes"]}):
        only = case.read(question=f"{case.question}/{label}")
        clicked = {tuple(row[:2]) for row in case.expected["classes"] if row[-1] == label}
        assert jobs_of(only) == looked(case)
        assert empty_jobs_of(only) == sorted([*job] for job in looked(case) if job not in clicked)
        assert only.images.to_list() == case.read().images.to_list()
