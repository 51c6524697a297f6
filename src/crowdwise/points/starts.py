"""Start of the merging: number of components, shared covariance, and whether workers click an object at most once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Run
from ..engine.loop import interrupted
from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real
from ..kernels.threads import run as in_threads
from .image_fit import FIRST_COMPONENTS, ImageFit, ImageFitter, start_components

if TYPE_CHECKING:
    from .mixture import ClickMixture

BUSY = 0.9  # quantile of the number of clicks of a job
ENOUGH = 1.1  # components at the start per object found; with more, they are not doubled again
SAME_SHAPE = 1.2  # change of the variance of objects up to which a trial is not repeated
SAMPLE_IMAGES = 3  # images on which the start is chosen
MAX_SAMPLE_CLICKS = 6_000  # larger images are subsampled to about this many clicks
MIN_CLICKS_PER_OBJECT = 30  # with this many clicks per object, the fit of a subsample is used for the whole image
MAX_NEIGHBOUR_CLICKS = 500  # clicks per image whose neighbours are counted to estimate `once`
MAX_PAIR_RATIO = 0.5  # observed over expected close pairs by one worker; below, workers click an object at most once
MIN_EXPECTED_PAIRS = 50.0  # the ratio decides if at least this many close pairs are expected
MAX_P_VALUE = 1e-3  # with fewer expected pairs, a Poisson p-value below this decides


class Start(NamedTuple):
    """Start of the fits of all images."""

    once: bool  # whether workers click an object at most once
    shape: Annotated[Floats, Real("D D")]  # shared covariance


def choose_start(model: ClickMixture, points: Points, run: Run) -> tuple[Start, dict[int, ImageFit]]:
    """Choose the start on a few images; also return the fits of those images, by image number."""
    parts = []
    for i in sample_images(points.clicks_per_image).tolist():
        rng = np.random.default_rng([run.seed, i, 1])
        parts.append((subsample(points, i, rng), 0) if points.clicks_per_image[i] > MAX_SAMPLE_CLICKS else (points, i))
    once = clicks_once(parts, np.random.default_rng([run.seed, 2])) if model.once is None else model.once
    largest = max(int(part.clicks_per_image[i]) for part, i in parts)
    start = min(FIRST_COMPONENTS, max(1, largest // 2)) if model.start is None else model.start
    if once and model.start is None:
        start = _first_rung(parts, start, largest)
    if once is None:
        both = {way: best_start(model, parts, run, way, start) for way in (True, False)}
        scores = {way: sum(each.score for each in fits) for way, fits in both.items()}
        once = bool(scores[True] + expected_repeats(parts, both[True]) > scores[False])
        fits = both[once]
    else:
        fits = best_start(model, parts, run, once, start)
    done = {}
    for (part, i), each in zip(parts, fits, strict=True):
        whole = part is points
        if whole and points.n_images <= SAMPLE_IMAGES:
            done[i] = each
        elif not whole and len(part.X) / max(1, each.n_objects) >= MIN_CLICKS_PER_OBJECT:
            image = int(np.flatnonzero((points.images == part.images[0]).to_numpy())[0])
            done[image] = scaled_up(each, points.clicks_per_image[image] / len(part.X), model.freedom)
    return Start(once, common_shape(fits)), done


def _first_rung(parts: list[tuple[Points, int]], start: int, largest: int) -> int:
    """Number of components of the first trial, if workers click an object at most once.

    An image has at least as many objects as its busiest workers click.
    """
    points, i = max(parts, key=lambda part: part[0].clicks_per_image[part[1]])
    sizes = np.diff(points.job_ptr[points.image_ptr[i] : points.image_ptr[i + 1] + 1])
    while start < np.quantile(sizes, BUSY) and 2 * start <= largest // 2:
        start *= 2
    return start


def best_start(
    model: ClickMixture, parts: list[tuple[Points, int]], run: Run, once: bool, start: int
) -> list[ImageFit]:
    """Fit a few images, first from `start` components of the largest image, as long as the score increases.

    If most components remain, their number is doubled; otherwise the next trial starts at the peaks of the density of
    clicks, on the scale of the objects found.
    """
    clicks = [int(points.clicks_per_image[i]) for points, i in parts]
    best: list[ImageFit] = []
    total, shape = -np.inf, None
    while True:
        if run.stopped:
            raise interrupted(model.name, run, 0)
        counts = [start_components(model, n, start / max(clicks)) for n in clicks]
        fits = _fit_parts(model, parts, run, once, counts, shape)
        score = sum(each.score for each in fits)
        if score <= total + 1.0:
            return best
        best, total = fits, score
        if model.start is not None:
            return best
        enough = all(count >= ENOUGH * each.n_objects for count, each in zip(counts, fits, strict=True))
        start *= 2
        if shape is not None or enough or start > max(clicks) // 2:
            before, shape = shape, common_shape(fits)
            if before is not None and shape_change(before, shape) <= SAME_SHAPE:
                return best


def common_shape(fits: list[ImageFit]) -> Floats:
    """(D, D) covariance of the objects of several images: the inverse of their mean precision."""
    inverse = [each.n_objects * np.linalg.inv(each.S) for each in fits]
    return np.asarray(np.linalg.inv(np.sum(inverse, axis=0) / sum(each.n_objects for each in fits)))


def shape_change(before: Floats, after: Floats) -> float:
    """Factor by which the variance changes most, in any direction."""
    ratio = np.linalg.eigvals(np.linalg.solve(before, after)).real
    return float(max(ratio.max(), 1 / ratio.min()))


def _fit_parts(
    model: ClickMixture, parts: list[tuple[Points, int]], run: Run, once: bool, counts: list[int], S: Floats | None
) -> list[ImageFit]:
    """Fit a few images, in threads, with `counts` components at the start or from peaks on the scale of S."""
    fits: dict[int, ImageFit] = {}

    def fit(k: int, _start: int, _stop: int) -> None:
        fits[k] = ImageFitter(model, *parts[k], once, run, S=S, learn=True, count=counts[k]).fit()

    in_threads(fit, np.arange(len(parts) + 1), run.threads)
    return [fits[k] for k in range(len(parts))]


def sample_images(clicks: Ints) -> Ints:
    """Numbers of up to SAMPLE_IMAGES images, evenly spaced from the median to the maximum number of clicks (I,)."""
    clicked = np.flatnonzero(clicks > 0)
    order = clicked[np.argsort(clicks[clicked], kind="stable")]
    picks = np.unique(np.linspace(len(order) // 2, len(order) - 1, min(SAMPLE_IMAGES, len(order))).astype(int))
    return np.sort(order[picks])


def subsample(points: Points, image: int, rng: np.random.Generator) -> Points:
    """Sample whole jobs of an image with about MAX_SAMPLE_CLICKS clicks; if jobs are longer, sample their clicks."""
    own = points.only(np.array([image]))
    order = rng.permutation(own.n_jobs)
    enough = int(np.searchsorted(np.cumsum(np.diff(own.job_ptr)[order]), MAX_SAMPLE_CLICKS)) + 1
    chosen = np.isin(np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr)), order[:enough])
    clicks = np.flatnonzero(chosen)
    if len(clicks) > 2 * MAX_SAMPLE_CLICKS:
        clicks = np.sort(rng.choice(clicks, MAX_SAMPLE_CLICKS, replace=False))
    job = np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr))[clicks]
    ptr = np.searchsorted(job, np.arange(own.n_jobs + 1)).astype(np.int64)
    return own.replaced(X=own.X[clicks], worker=own.worker[clicks], job_ptr=ptr)


def scaled_up(fit: ImageFit, times: float, nu: float) -> ImageFit:
    """Scale the fit of a subsample to `times` as many clicks; drop its workers and its trace."""
    prior, none = nu * fit.S, np.empty(0)
    V = prior + times * (fit.V - prior)
    return fit._replace(n=times * fit.n, V=V, A=none, B=none, trace=np.empty((0, 2)))


def clicks_once(parts: list[tuple[Points, int]], rng: np.random.Generator) -> bool | None:
    """Whether workers click an object at most once; None if there are too few clicks to decide.

    The test counts pairs of close clicks by one worker. If workers click an object any number of times, their share of
    all clicks predicts this count; if they click it at most once, the count is near 0.
    """
    own, chance = 0.0, 0.0
    for points, i in parts:
        at = points.clicks_of(i)
        X, worker = points.X[at], points.worker[at]
        worker = np.unique(worker, return_inverse=True)[1]
        clicks = np.bincount(worker)
        chosen = np.sort(rng.choice(len(X), min(len(X), MAX_NEIGHBOUR_CLICKS), replace=False))
        radius = None
        for some in np.array_split(chosen, max(1, len(chosen) // 200)):
            same = worker[some][:, None] == worker[None]
            away = np.sqrt(((X[some][:, None] - X[None]) ** 2).sum(2))
            if radius is None:  # typical distance of a click to its nearest clicks by other workers
                few = min(max(3, len(clicks) // 6), len(X)) - 1
                radius = float(np.median(np.partition(np.where(same, np.inf, away), few, axis=1)[:, few]))
            close = away <= radius if np.isfinite(radius) else np.zeros_like(same)
            sent = clicks[worker[some]]
            own += float((close & same & (away > 0)).sum())
            chance += float(((close & ~same).sum(1) * (sent - 1) / np.maximum(len(X) - sent, 1)).sum())
    if float(chance) >= MIN_EXPECTED_PAIRS:
        return own < MAX_PAIR_RATIO * chance
    own, chance = own / 2, chance / 2  # each pair was counted twice
    below = sum(math.exp(k * math.log(max(chance, 1e-300)) - chance - math.lgamma(k + 1)) for k in range(int(own) + 1))
    return True if below < MAX_P_VALUE else None


def expected_repeats(parts: list[tuple[Points, int]], fits: list[ImageFit]) -> float:
    """Expected number of pairs of clicks by one worker on one object, if workers clicked independently.

    It approximates minus the log-probability that there is no such pair. The score with `once` lacks this term, because
    it sums over matchings instead of all assignments.
    """
    total = 0.0
    for (points, i), each in zip(parts, fits, strict=True):
        sent = np.bincount(points.worker[points.clicks_of(i)]).astype(np.float64)
        part = each.n / sent.sum()  # share of all clicks on each object
        total += float(0.5 * (sent * np.maximum(sent - 1, 0)).sum() * (part**2).sum())
    return total
