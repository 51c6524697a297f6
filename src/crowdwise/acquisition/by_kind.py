"""`review` and `next_answers` for every kind of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ..answers.arguments import check_whole
from ..engine.verbs import perform, verb
from ..result.base import any_result
from .images import next_images, review_objects
from .pairs import next_pairs, review_items
from .tasks import check_budget, next_tasks, review_tasks

verb("review", "labels")(review_tasks)
verb("review", "points")(review_objects)
verb("review", "pairs")(review_items)
verb("next", "labels")(next_tasks)
verb("next", "points")(next_images)
verb("next", "pairs")(next_pairs)


def review(result: Any, top: int | None = None, *, models: Sequence[str] | None = None) -> pl.DataFrame:
    """Return what to review, the most useful first: tasks (labels), objects (clicks) or items (pairs); all or `top`.

    - Labels: task, label, probability, status, tie, answers, votes ("cat 3, dog 2"), entropy and vote_entropy,
      disagreement, difficulty, gain, models_disagree and others (labels of other models that differ; `models` names
      these models).
    - Points: image, object, its coordinates, probability that it is real, supporters, jobs, clicks, spread and gain.
    - Pairs: item, cluster, probability, second (the next likely cluster), its probability, entropy and answers.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, workers=8, per_task=3, seed=2)
    >>> cw.review(cw.aggregate(sim.answers), 3).columns[:4]
    ['task', 'label', 'probability', 'status']
    """
    if top is not None:
        check_whole("top", top, 1)
    return perform("review", any_result(result, "review"), top, models=models)  # type: ignore[no-any-return]


def next_answers(result: Any, budget: int = 100, *, batch: int | None = None) -> pl.DataFrame:
    """Return what to ask next, best first: `next_tasks` for labels, `next_images` for clicks, `next_pairs` for pairs.

    `budget` is the number of answers that can be paid for, `batch` the number of them to ask for now.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=100, workers=10, per_task=3, seed=1)
    >>> cw.next_answers(cw.aggregate(sim.answers), budget=5)["ask"].sum()
    5
    """
    check_budget(budget, batch)
    return perform("next", any_result(result, "next"), budget, batch=batch)  # type: ignore[no-any-return]
