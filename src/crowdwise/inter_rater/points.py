"""Agreement of clicks: F1 between annotators.

Two workers who looked at the same image agree on as many objects as clicks of one can be matched one to one with clicks
of the other within a distance. With c[p] clicks of both workers in a shared image p (a pair of jobs) and m[p] matches,
    (1)  F1 = 2 sum_p m[p] / sum_p c[p]        (2)  beyond chance  (F1 - E) / (1 - E)
where E is (1) after one of the two sets of clicks is replaced by places drawn uniformly in the box of the image. Clicks
are matched by increasing distance. The interval treats images as a random sample: (1) is a ratio of sums over images,
so the spread of the influence of an image gives its standard error. The default distance is RADIUS_FACTOR times the
lower quartile of the distances from a click to the nearest click of another worker in the same image. If both workers
click an object with noise of standard deviation s, that quartile is 1.07 s and the distance 4.3 s; the quartile, unlike
the median, is hardly affected by objects that only one of them clicked.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ..answers import Points
from ..answers.arguments import is_number
from ..errors import ParameterError
from ..kernels.layout import Bools, Floats, Ints
from .labels import Row, interval_row, measure_table

RADIUS_FACTOR = 4.0  # of the lower quartile of distances
MAX_PAIRS = 200_000  # pairs of jobs that are compared, evenly spread over all pairs
MAX_PAIRS_FOR_RADIUS = 2_000  # pairs of jobs from which the distance is estimated
NO_SHARED_IMAGE = "no image has clicks of two workers, so there is nothing to compare"


def click_agreement(points: Points, *, within: float | None = None, seed: int = 0) -> pl.DataFrame:
    """Return the measures f1 and f1-beyond-chance; their notes give the distance."""
    if within is not None and not (is_number(within) and 0 < within < np.inf):
        raise ParameterError(f"within is {within!r}; it must be a distance above 0")
    first, second = _job_pairs(points)
    if not len(first):
        return measure_table([(name, None, None, None, NO_SHARED_IMAGE) for name in ("f1", "f1-beyond-chance")])
    found = within is None
    radius = _radius(points, first, second) if within is None else float(within)
    clicks = np.diff(points.job_ptr)[first] + np.diff(points.job_ptr)[second]
    matched, by_chance = (_matches(points, X, first, second, radius) for X in (points.X, _random_clicks(points, seed)))
    image = points.job_image[first]
    value, spread, images = _f1(matched, clicks, image)
    expected, _, _ = _f1(by_chance, clicks, image)
    note = f"clicks at most {radius:.4g} apart match"
    note += " (estimated from the clicks; `within` sets another distance)" if found else ""
    rows: list[Row] = [interval_row("f1", value, spread, images, note, floor=0.0)]
    if expected < 1:
        scale = 1 / (1 - expected)
        beyond = f"{note}; random clicks would give an F1 of {expected:.3f}"
        rows.append(interval_row("f1-beyond-chance", (value - expected) * scale, spread * scale**2, images, beyond))
    else:
        rows.append(("f1-beyond-chance", None, None, None, f"{note}; random clicks would match just as well"))
    return measure_table(rows)


def _job_pairs(points: Points) -> tuple[Ints, Ints]:
    """Return pairs of jobs on the same image, at least one with a click; at most MAX_PAIRS, evenly spread."""
    size = np.diff(points.image_ptr)
    per_image = size * (size - 1) // 2
    ends = np.concatenate([[0], np.cumsum(per_image)]).astype(np.int64)
    chosen = np.unique(np.linspace(0, max(int(ends[-1]) - 1, 0), min(int(ends[-1]), MAX_PAIRS)).astype(np.int64))
    image = np.searchsorted(ends, chosen, side="right") - 1
    within_image = chosen - ends[image]
    # pair number k of n jobs in the order (0,1), (0,2), (1,2), (0,3), ...: the later job is the triangular root of k
    later = ((1 + np.sqrt(8.0 * within_image + 1)) / 2).astype(np.int64)
    later -= (later * (later - 1) // 2 > within_image).astype(np.int64)
    earlier = within_image - later * (later - 1) // 2
    first, second = points.image_ptr[image] + earlier, points.image_ptr[image] + later
    clicks = np.diff(points.job_ptr)
    some: Bools = clicks[first] + clicks[second] > 0
    return first[some], second[some]


def click_distance(points: Points) -> float:
    """Return the distance within which clicks of two workers match, estimated from the clicks."""
    first, second = _job_pairs(points)
    return _radius(points, first, second) if len(first) else float(points.sides.max(initial=1.0)) / 100


def _radius(points: Points, first: Ints, second: Ints) -> float:
    """RADIUS_FACTOR times the lower quartile of the distances to the nearest click of another worker."""
    from ..kernels.fast.distances import nearest_distances

    some = np.unique(np.linspace(0, len(first) - 1, min(len(first), MAX_PAIRS_FOR_RADIUS)).astype(np.int64))
    distance = nearest_distances(points.X, points.job_ptr, first[some], second[some])
    typical = float(np.quantile(distance, 0.25)) if len(distance) else 0.0
    return RADIUS_FACTOR * typical or 1e-9  # workers whose clicks coincide agree at any distance


def _matches(points: Points, X: Floats, first: Ints, second: Ints, radius: float) -> Floats:
    """(P,) matches of each pair of jobs, with the clicks of the second job at `X`."""
    from ..kernels.fast.distances import matches

    return matches(points.X, X, points.job_ptr, first, second, radius)


def _random_clicks(points: Points, seed: int) -> Floats:
    """(N, D) positions drawn uniformly in the box of the image of each click."""
    low, high = points.box[points.image, 0], points.box[points.image, 1]
    return np.asarray(low + np.random.default_rng(seed).random(points.X.shape) * (high - low))


def _f1(matched: Floats, clicks: Ints, image: Ints) -> tuple[float, float, int]:
    """Eq (1), its variance times the number of images over that number less one, and the number of images."""
    total = float(clicks.sum())
    value = 2 * float(matched.sum()) / total
    influence = np.bincount(image, (2 * matched - value * clicks) / total)
    return value, float((influence**2).sum()), len(np.unique(image))
