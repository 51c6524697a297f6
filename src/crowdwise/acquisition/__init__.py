"""Which answers to ask for next: tasks, workers, pairs, and what they would bring."""

from .cost import EVERY, CostCurve, cost_curve
from .pairs import next_pairs
from .tasks import check_budget, expected, next_tasks, review, worth

__all__ = [
    "EVERY", "CostCurve", "check_budget", "cost_curve", "expected", "next_pairs", "next_tasks", "review", "worth",
]  # fmt: skip
