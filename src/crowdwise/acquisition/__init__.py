"""Which answers to ask for next, what to review, and what more answers would add."""

from .by_kind import next_answers, review
from .cost import EVERY, Accuracy, CostCurve, cost_curve, expected_accuracy, one_more, open_tasks
from .images import next_images
from .known import label_sets
from .pairs import next_pairs
from .planning import AnswerPlan, plan
from .tasks import check_budget, expected, hull_slopes, next_tasks

__all__ = [
    "EVERY", "Accuracy", "AnswerPlan", "CostCurve", "check_budget", "cost_curve", "expected", "expected_accuracy",
    "hull_slopes", "label_sets", "next_answers", "next_images", "next_pairs", "next_tasks", "one_more", "open_tasks",
    "plan", "review",
]  # fmt: skip
