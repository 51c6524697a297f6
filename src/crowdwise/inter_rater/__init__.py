"""How much workers agree, by kind of answers."""

from __future__ import annotations

from typing import Any

import polars as pl

from ..answers import Labels, Pairs, as_answers
from ..answers.arguments import checked
from ..engine.verbs import perform, verb
from ..result.base import BaseResult
from .labels import label_agreement, measured, rank_correlation, student
from .points import click_agreement, click_distance

verb("agreement", "labels")(label_agreement)
verb("agreement", "points")(click_agreement)


@checked
def agreement(answers: Any, *, within: float | None = None) -> pl.DataFrame:
    """One row per measure: measure, value, low and high (95 % interval), note.

    Labels: Krippendorff's alpha, Fleiss' kappa, Cohen's kappa, Gwet's AC1 and percent agreement. Clicks: F1 between
    annotators, for clicks at most `within` apart. Pairs: the measures of labels, on pairs with several answers.

    >>> import crowdwise as cw
    >>> answers = cw.Labels([1, 1, 2, 2, 3, 3], ["a", "b"] * 3, ["x", "x", "y", "y", "x", "y"])
    >>> cw.agreement(answers).filter(measure="percent")["value"].round(3).to_list()
    [0.667]
    """
    data = answers.answers if isinstance(answers, BaseResult) else answers
    return perform("agreement", as_answers(data), within=within)  # type: ignore[no-any-return]


@verb("agreement", "pairs")
def pair_agreement(pairs: Pairs) -> pl.DataFrame:
    """The measures of labels, with every pair of items as a task and "same" and "different" as labels."""
    _, _, edge = pairs.edges
    return label_agreement(Labels(edge, pairs.worker, pairs.same.astype(int), duplicates="each"))


__all__ = ["agreement", "click_distance", "measured", "rank_correlation", "student"]
