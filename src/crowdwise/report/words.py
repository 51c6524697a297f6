"""Words of the page: the glossary, and names cut to what can be shown."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

LONGEST = 120  # characters of a name that are shown
NOT_KNOWN = "not known"
SENTENCE = 300  # characters of a warning or note
GLOSSARY = [
    ("answer", "What one worker said of one task: a label."),
    ("posterior", "How probable each class is for a task, given all answers and what is known of the workers."),
    ("expected accuracy", "The mean probability of the labels. Crowds err together, so the truth is often lower."),
    ("skill", "A worker's chance of a right answer, told from posteriors that have not seen the answer."),
    ("interval", "Of skill, checks and agreement: the range that holds the true value 95 times in 100."),
    ("spam score", "0: answers whatever the truth is; 1: answers that give the truth away (Raykar and Yu, 2011)."),
    ("trace", "Mean of the diagonal of a worker's confusion matrix: the chance to be right, all classes alike."),
    ("confusion matrix", "How often a worker says each label (column) when the truth is each class (row)."),
    ("group", "Workers who err alike, so that they share one confusion matrix."),
    ("similarity to the identity", "Of a confusion matrix: 1 if it is always right, towards 0 the more it errs."),
    (
        "entropy of a row",
        "How spread answers are where one class is true, in bits: 0 if the label is always the same.",
    ),
    ("divergence", "How far two confusion matrices are from each other, in bits: 0 the same, 1 nothing in common."),
    ("iteration", "One pass over all answers while a model is fitted."),
    ("checks", "Attention checks: answers to tasks whose truth is known."),
    ("agreement", "The share of the others' answers to the same tasks that say the same."),
    ("at chance", "A flag: the worker's answers tell next to nothing of the truth."),
    ("one label", "A flag: nearly all answers say the same, though the tasks differ."),
    ("inverted", "A flag: right less often than by chance, as if labels were swapped."),
    ("copies", "A flag: two workers share answers that nobody else would give."),
    ("too fast", "A flag: far faster than the typical worker."),
    ("entropy", "Doubt in bits: 0 for none, 1 for a toss-up between two classes."),
    ("Krippendorff's alpha", "Agreement beyond chance: 1 is full agreement, 0 is what chance gives."),
    ("ROC curve", "Of all tasks of a class, the share found, against the share of other tasks taken for it."),
    ("AUC", "Area under a ROC curve: the chance that a task of the class is put before another."),
    ("difficulty", "How hard a task is: where the model has it, from what its features or answers tell."),
    ("gain", "What a further answer is expected to add to the chance that a task's label is right."),
    ("gold", "Truth that was known beforehand."),
]


def short(value: object, longest: int) -> str:
    """Text of a name, cut with an ellipsis."""
    text = str(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def count(number: int) -> str:
    """1 234: thousands set apart by a narrow blank."""
    return f"{number:,}".replace(",", "\u202f")


def many(number: int, word: str) -> str:
    """1 object, 2 objects."""
    return f"{count(number)} {word}{'' if number == 1 else 's'}"


def percent(share: float, digits: int = 1) -> str:
    """12.3 %, with a narrow blank."""
    return f"{100 * share:.{digits}f}\u202f%"


def quoted(name: object) -> str:
    """A label inside a sentence."""
    return f"\u201c{short(name, 40)}\u201d"


def known(value: Any, digits: int = 4) -> Any:
    """A number as the page keeps it; what is not known, or no number, is null."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def numbers(*names: str) -> pl.Expr:
    """Columns whose values are known numbers or null, whatever they were."""
    return pl.col(*names).cast(pl.Float64).fill_nan(None)


def column(values: pl.Series, digits: int) -> list[Any]:
    told = values.cast(pl.Float64)
    told = told.set(~told.is_finite(), None)
    return told.round(digits).to_list()


def digits_of(extent: float) -> int:
    """Digits behind the point that tell places apart in a picture of this extent."""
    return min(12, max(0, 4 - math.floor(math.log10(extent)))) if extent > 0 else 4
