"""Which images to show to more workers, and which objects to review.

An object found in the clicks is real with probability p. The next worker who looks at its image clicks it with chance h
if it is real, and with chance f if it is not. Both are estimated from the workers who have looked already:
    (1)  h = sum_m p_m s_m / sum_m p_m n_m        f = sum_m (1 - p_m) s_m / sum_m (1 - p_m) n_m
where n_m workers looked at the image of object m and s_m of them clicked it. After k more looks, c of them with a
click, the object is classified as real or not, whichever is more probable. The expected probability of being right is
    (2)  V[k] = sum_c max(p Binomial(c; k, h), (1 - p) Binomial(c; k, f)).
A look shows all objects of an image, so the value of looks at an image is the sum of (2) over its objects. Objects that
no worker has clicked yet are unknown to the fit and do not count.
"""

from __future__ import annotations

from math import comb

import numpy as np
import polars as pl

from ..kernels.layout import Floats, weighted_counts
from ..result import PointsResult
from ..result.base import result_of
from .tasks import MAX_AHEAD, check_budget, hull_slopes, ranked_asks

MIN_GAIN = 1e-12  # smaller gains are 0
MIN_CHANCE = 1e-3  # h and f are kept at least this far from 0 and 1


def next_images(result: PointsResult, budget: int = 100, *, batch: int | None = None) -> pl.DataFrame:
    """Return the images to show to more workers, best first: image, ask (number of workers to ask now), objects, jobs
    (workers who have looked), gain (expected number of additional objects classified correctly) and per_answer.

    `budget` is the number of looks (one worker at one image) that can be paid for, `batch` the number to ask for now.

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.clicks(seed=1).points)
    >>> cw.next_images(result, budget=3)["ask"].sum()
    3
    """
    check_budget(budget, batch)
    result = result_of(result, "points", "next_images")
    V = sum_by_image(result, _values(result))
    chosen, asked, each = ranked_asks(hull_slopes(V), budget, batch, np.diff(result.answers.image_ptr))
    return pl.DataFrame(
        {
            "image": result.answers.images[chosen],
            "ask": asked[chosen],
            "objects": np.diff(result.params.ptr)[chosen],
            "jobs": np.diff(result.answers.image_ptr)[chosen],
            "gain": V[chosen, asked[chosen]] - V[chosen, 0],
            "per_answer": each[chosen],
        }
    )


def review_objects(result: PointsResult, top: int | None = None) -> pl.DataFrame:
    """Return the objects to review, the most useful first: image, object, its coordinates, probability, supporters,
    jobs, clicks, spread and gain (expected increase, by one more worker, of the probability of classifying it
    correctly)."""
    result = result_of(result, "points", "review")
    V = _values(result)
    gain, p = hull_slopes(V)[:, 0], result.params.probability
    gain = np.where(gain > MIN_GAIN, gain, 0.0)  # rounding errors do not decide about the order
    order = np.lexsort((np.arange(len(p)), np.abs(p - 0.5), -gain))[:top]
    columns = ["image", "object", *result.answers.axes, "probability", "supporters", "jobs", "clicks", "spread"]
    return result.objects[order].select(columns).with_columns(pl.Series("gain", gain[order]))


def _values(result: PointsResult) -> Floats:
    """(M, MAX_AHEAD + 1) eq (2) for every object."""
    p, supporters, looked = (
        result.objects[name].cast(pl.Float64).to_numpy() for name in ("probability", "supporters", "jobs")
    )
    h, f = _click_chance(p, supporters, looked), _click_chance(1 - p, supporters, looked)
    V = np.zeros((len(p), MAX_AHEAD + 1))
    for k in range(MAX_AHEAD + 1):
        for c in range(k + 1):
            if_real, if_not = (comb(k, c) * chance**c * (1 - chance) ** (k - c) for chance in (h, f))
            V[:, k] += np.maximum(p * if_real, (1 - p) * if_not)
    return np.maximum.accumulate(V, axis=1)  # up to rounding, more looks never lower the value


def _click_chance(weight: Floats, supporters: Floats, looked: Floats) -> float:
    """Eq (1) with half a click in one look added, so that few objects do not give certainty."""
    chance = (float((weight * supporters).sum()) + 0.5) / (float((weight * looked).sum()) + 1.0)
    return float(np.clip(chance, MIN_CHANCE, 1 - MIN_CHANCE))


def sum_by_image(result: PointsResult, values: Floats) -> Floats:
    """(I, k) sums of the rows of `values` (M, k) over the objects of each image."""
    sums = [weighted_counts(result.image_of, column, result.answers.n_images) for column in values.T]
    return np.stack(sums, axis=1)
