"""How the merging of components starts: how many there are, which shape, and whether workers click an object once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..answers import Points
from ..engine import Run
from ..engine.loop import interrupted
from ..kernels.layout import Floats, Ints
from .descent import Descent, ImageFit

if TYPE_CHECKING:
    from .mixture import ClickMixture

FIRST_START = 20  # components that the first try starts from; each further one starts from twice as many
SAMPLE_IMAGES = 3  # that the start is chosen on
MAX_CLICKS = 6_000  # of an image, above which the start is chosen on a part of them
ENOUGH_CLICKS = 30  # per object in that part, from which its objects are taken as those of the image
NEIGHBOUR_CLICKS = 2000  # of an image, whose neighbours show whether workers click an object once
SAME_SHARE = 0.5  # of the own clicks that chance would put near a click: fewer, and a worker clicks once
ENOUGH_PAIRS = 50.0  # expected by chance, from which on that share decides
MAX_CHANCE = 1e-3  # of so few own clicks, below which fewer pairs are enough, too


class Start(NamedTuple):
    """What the fits of all images start from."""

    once: bool  # whether workers click an object at most once
    ratio: float  # components per click
    shape: Floats  # (D, D)


def choose_start(model: ClickMixture, points: Points, run: Run) -> tuple[Start, dict[int, ImageFit]]:
    """Chosen on a few images; returned too are those that are fitted already, by number."""
    parts = []
    for i in sample(points).tolist():
        rng = np.random.default_rng([run.seed, i, 1])
        parts.append((part_of(points, i, rng), 0) if points.clicks_per_image[i] > MAX_CLICKS else (points, i))
    once = clicks_once(parts, np.random.default_rng([run.seed, 2])) if model.once is None else model.once
    largest = max(int(part.clicks_per_image[i]) for part, i in parts)
    start = min(FIRST_START, max(1, largest // 2)) if model.start is None else model.start
    if once is None:
        both = {way: best_start(model, parts, run, way, start) for way in (True, False)}
        scores = {way: sum(each.score for each in fits) for way, (fits, _) in both.items()}
        once = bool(scores[True] + clashes(parts, both[True][0]) > scores[False])
        fits, start = both[once]
    else:
        fits, start = best_start(model, parts, run, once, start)
    inverse = [each.n_objects * np.linalg.inv(each.S) for each in fits]
    shape = np.linalg.inv(np.sum(inverse, axis=0) / sum(each.n_objects for each in fits))
    done = {}
    for (part, i), each in zip(parts, fits, strict=True):
        whole = part is points
        if whole and points.n_images <= SAMPLE_IMAGES:
            done[i] = each
        elif not whole and len(part.X) / max(1, each.n_objects) >= ENOUGH_CLICKS:
            image = int(np.flatnonzero((points.images == part.images[0]).to_numpy())[0])
            done[image] = scaled_up(each, points.clicks_per_image[image] / len(part.X), model.freedom)
    return Start(once, start / largest, shape), done


def best_start(
    model: ClickMixture, parts: list[tuple[Points, int]], run: Run, once: bool, start: int
) -> tuple[list[ImageFit], int]:
    """Fits of a few images from ever more components, until more do not help: the best ones, and from how many
    components (for the largest image) they started."""
    clicks = [int(points.clicks_per_image[i]) for points, i in parts]
    best: list[ImageFit] = []
    total, best_from = -np.inf, start
    while True:
        fits = []
        for (points, i), n in zip(parts, clicks, strict=True):
            if run.stopped:
                raise interrupted(model.name, run, 0)
            fits.append(Descent(model, points, i, once, components(model, n, start / max(clicks)), None, run).fit())
        score = sum(each.score for each in fits)
        if score <= total + 1.0:
            return best, best_from
        best, total, best_from = fits, score, start
        if 2 * start > max(clicks) // 2 or model.start is not None:
            return best, best_from
        start *= 2


def components(model: ClickMixture, clicks: int, ratio: float) -> int:
    """How many components an image of so many clicks starts from."""
    least = model.objects if model.objects is not None else model.at_least
    if model.start is not None:
        return max(1, min(model.start, clicks))
    return max(1, min(clicks, max(2 * least, min(FIRST_START, clicks // 2), round(clicks * ratio))))


def sample(points: Points) -> Ints:
    """A few images with many, but not only the most, clicks."""
    clicks = points.clicks_per_image
    some = np.flatnonzero(clicks > 0)
    order = some[np.argsort(clicks[some], kind="stable")]
    picks = np.unique(np.linspace(len(order) // 2, len(order) - 1, min(SAMPLE_IMAGES, len(order))).astype(int))
    return np.sort(order[picks])


def part_of(points: Points, image: int, rng: np.random.Generator) -> Points:
    """Whole jobs of an image with about MAX_CLICKS clicks in all; of jobs that are longer, as many of their clicks."""
    own = points.only(np.array([image]))
    order = rng.permutation(own.n_jobs)
    enough = int(np.searchsorted(np.cumsum(np.diff(own.job_ptr)[order]), MAX_CLICKS)) + 1
    chosen = np.isin(np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr)), order[:enough])
    clicks = np.flatnonzero(chosen)
    if len(clicks) > 2 * MAX_CLICKS:
        clicks = np.sort(rng.choice(clicks, MAX_CLICKS, replace=False))
    job = np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr))[clicks]
    ptr = np.searchsorted(job, np.arange(own.n_jobs + 1)).astype(np.int64)
    return own.replaced(X=own.X[clicks], worker=own.worker[clicks], job_ptr=ptr)


def scaled_up(fit: ImageFit, times: float, nu: float) -> ImageFit:
    """As if there had been so many times the clicks; workers and iterations, which were of a part, are not kept."""
    prior, none = nu * fit.S, np.empty(0)
    V = prior + times * (fit.V - prior)
    return fit._replace(n=times * fit.n, V=V, A=none, B=none, trace=np.empty((0, 2)))


def clicks_once(parts: list[tuple[Points, int]], rng: np.random.Generator) -> bool | None:
    """Whether workers click on an object at most once; None where there are too few clicks to decide. Near a click of
    others, a worker who clicks as often as they like has as many clicks as their share of all clicks predicts; a worker
    who clicks once has none."""
    own, chance = 0.0, 0.0
    for points, i in parts:
        at = points.clicks_of(i)
        X, worker = points.X[at], points.worker[at]
        worker = np.unique(worker, return_inverse=True)[1]
        clicks = np.bincount(worker)
        chosen = np.sort(rng.choice(len(X), min(len(X), NEIGHBOUR_CLICKS), replace=False))
        radius = None
        for some in np.array_split(chosen, max(1, len(chosen) // 200)):
            same = worker[some][:, None] == worker[None]
            away = np.sqrt(((X[some][:, None] - X[None]) ** 2).sum(2))
            if radius is None:  # the distance of the first clicks to a few of others
                few = min(max(3, len(clicks) // 6), len(X)) - 1
                radius = float(np.median(np.partition(np.where(same, np.inf, away), few, axis=1)[:, few]))
            close = away <= radius if np.isfinite(radius) else np.zeros_like(same)
            sent = clicks[worker[some]]
            own += float((close & same & (away > 0)).sum())
            chance += float(((close & ~same).sum(1) * (sent - 1) / np.maximum(len(X) - sent, 1)).sum())
    if float(chance) >= ENOUGH_PAIRS:
        return own < SAME_SHARE * chance
    own, chance = own / 2, chance / 2  # every pair was counted from both ends
    below = sum(math.exp(k * math.log(max(chance, 1e-300)) - chance - math.lgamma(k + 1)) for k in range(int(own) + 1))
    return True if below < MAX_CHANCE else None


def clashes(parts: list[tuple[Points, int]], fits: list[ImageFit]) -> float:
    """Pairs of clicks by one worker on one object that chance would make: about minus the log of the chance that there
    are none, which the sum over matchings lacks against that over all ways."""
    total = 0.0
    for (points, i), each in zip(parts, fits, strict=True):
        sent = np.bincount(points.worker[points.clicks_of(i)]).astype(np.float64)
        part = each.n / sent.sum()  # of all clicks, on each object
        total += float(0.5 * (sent * np.maximum(sent - 1, 0)).sum() * (part**2).sum())
    return total
