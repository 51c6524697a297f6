"""Words and numbers of the page of points."""

from __future__ import annotations

import polars as pl

from .words import numbers, percent

DOUBTFUL = 0.9  # probability below which an object is worth a look
GLOSSARY = [
    ("click", "A point that one worker set in one image."),
    ("worker", "An annotator: whoever looked at images and clicked."),
    ("object", "What clicks gather around: where several reliable workers click, something seems to be."),
    ("probability of an object", "How sure it is that the object is real, given all clicks and the workers behind."),
    ("doubtful", f"An object whose probability is below {percent(DOUBTFUL, 0)}: worth a look."),
    ("supporters", "Workers with a click that belongs to the object."),
    ("spread", "How far clicks lie around their object: one standard deviation, in units of the coordinates."),
    ("noise", "How far a worker's clicks lie around objects, against those of others: 1 is ordinary, 2 twice as far."),
    ("two-sigma ellipse", "Where about 86 of 100 clicks on the object fall."),
    ("on no object", "A click that more probably belongs to no object than to any: an outlier."),
    ("reliability", "The share of a worker's clicks that are on objects."),
    ("hit rate", "Of the objects in the images that a worker looked at, the share that the worker clicked."),
    ("interval", "The range that holds the true value 95 times in 100."),
    ("iteration", "One pass over all clicks while objects and reliabilities are found."),
    ("criterion", "What tells how many objects there are: how well they fit the clicks, less a price for each object."),
]
GLOSSARY_TRUTH = [
    ("success", "A run that finds as many objects as there are, each nearest to another true one."),
    ("ASE", "Average square error: of the centres found, in runs that are a success."),
    ("MAE", "Mean absolute error of the reliabilities."),
]


def is_doubtful() -> pl.Expr:
    """Of objects: whether they are worth a look."""
    return (numbers("probability") < DOUBTFUL).fill_null(True)
