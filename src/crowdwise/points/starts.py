"""Where descents start from: how many components, which shape, and whether workers click an object once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..answers import Points
from ..engine import Run, Step
from ..kernels.layout import Floats, Ints
from .descent import Found, descend

if TYPE_CHECKING:
    from .mixture import ClickMixture

FIRST = 20  # components that the first try starts from; each further one from twice as many
SAMPLE = 3  # images that the start is chosen on
LARGE = 6_000  # clicks of an image above which the start is chosen on a part of them
ENOUGH = 30  # clicks an object in that part, from which it is enough to find the objects on, too
NEAR = 2000  # clicks of an image whose neighbours tell whether workers click an object once
SAME = 0.5  # of the own clicks that chance would put near a click: fewer, and a worker clicks once
MANY = 50.0  # of those expected, from which that is enough to tell
RARE = 1e-3  # chance of so few own clicks, below which fewer are enough, too


def begun(model: ClickMixture, points: Points, run: Run) -> tuple[bool, float, Floats, dict[int, Found]]:
    """Whether workers click an object once, components a click to start from, the shape, and what is done already."""
    parts = []
    for i in sample(points).tolist():
        rng = np.random.default_rng([run.seed, i, 1])
        parts.append((part_of(points, i, rng), 0) if points.clicks_per_image[i] > LARGE else (points, i))
    once = clicks_once(parts, np.random.default_rng([run.seed, 2])) if model.once is None else model.once
    ladder = Ladder(model, parts, run)
    start = min(FIRST, max(1, ladder.largest // 2)) if model.start is None else model.start
    if once is None:
        both = {way: ladder.climb(way, start) for way in (True, False)}
        scores = {way: sum(each.score for each in found) for way, (found, _) in both.items()}
        once = scores[True] + clashes(parts, both[True][0]) > scores[False]
        found, start = both[once]
    else:
        found, start = ladder.climb(once, start)
    inverse = [len(each.mean) * np.linalg.inv(each.S) for each in found]
    shape = np.linalg.inv(np.sum(inverse, axis=0) / sum(len(each.mean) for each in found))
    done = {}
    for (part, i), each in zip(parts, found, strict=True):
        whole = part is points
        if whole and points.n_images <= SAMPLE:
            done[i] = each
        elif not whole and len(part.X) / max(1, len(each.mean)) >= ENOUGH:
            image = int(np.flatnonzero((points.images == part.images[0]).to_numpy())[0])
            done[image] = grown(each, points.clicks_per_image[image] / len(part.X), model.freedom)
    return once, start / ladder.largest, shape, done


def descents(
    model: ClickMixture, points: Points, run: Run, once: bool, ratio: float, shape: Floats, done: dict[int, Found]
) -> list[Found | None]:
    """Every image for itself, in threads; None for one without clicks. Who watches is told of each."""
    from ..kernels.fast.blocks import run as in_threads

    found: list[Found | None] = [done.get(i) for i in range(points.n_images)]
    clicks = points.clicks_per_image.tolist()

    def one(i: int, _start: int, _stop: int) -> None:
        if found[i] is None and not (run.stop is not None and run.stop()):
            found[i] = descend(model, points, i, once, starts(model, clicks[i], ratio), shape, run)
            if run.watch is not None:
                so_far = [len(each.mean) for each in found if each is not None]
                run.watch(Step(len(so_far), points.n_images, math.nan, sum(so_far), 0.0))

    in_threads(one, np.arange(points.n_images + 1), run.threads)
    return found


def starts(model: ClickMixture, clicks: int, ratio: float) -> int:
    """How many components an image of so many clicks starts from."""
    least = model.objects if model.objects is not None else model.at_least
    if model.start is not None:
        return max(1, min(model.start, clicks))
    return max(1, min(clicks, max(2 * least, min(FIRST, clicks // 2), round(clicks * ratio))))


def sample(points: Points) -> Ints:
    """A few images with many, but not only the most, clicks."""
    clicks = points.clicks_per_image
    some = np.flatnonzero(clicks > 0)
    order = some[np.argsort(clicks[some], kind="stable")]
    picks = np.unique(np.linspace(len(order) // 2, len(order) - 1, min(SAMPLE, len(order))).astype(int))
    return np.sort(order[picks])


def part_of(points: Points, image: int, rng: np.random.Generator) -> Points:
    """Whole jobs of an image with about LARGE clicks in all; of jobs that are longer, as many of their clicks."""
    own = points.only(np.array([image]))
    order = rng.permutation(own.n_jobs)
    enough = int(np.searchsorted(np.cumsum(np.diff(own.job_ptr)[order]), LARGE)) + 1
    chosen = np.isin(np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr)), order[:enough])
    clicks = np.flatnonzero(chosen)
    if len(clicks) > 2 * LARGE:
        clicks = np.sort(rng.choice(clicks, LARGE, replace=False))
    job = np.repeat(np.arange(own.n_jobs), np.diff(own.job_ptr))[clicks]
    ptr = np.searchsorted(job, np.arange(own.n_jobs + 1)).astype(np.int64)
    fields = {name: getattr(own, name) for name in own.__dataclass_fields__}
    return Points.of(**{**fields, "X": own.X[clicks], "worker": own.worker[clicks], "job_ptr": ptr})


def grown(found: Found, times: float, nu: float) -> Found:
    """As if there had been so many times the clicks; of workers and sweeps, which were of a part, nothing is kept."""
    prior, none = nu * found.S, np.empty(0)
    V = prior + times * (found.V - prior)
    return found._replace(n=times * found.n, V=V, A=none, B=none, trace=np.empty((0, 2)))


class Ladder:
    """Descents of a few images from ever more components, until more do not help."""

    def __init__(self, model: ClickMixture, parts: list[tuple[Points, int]], run: Run) -> None:
        self.model, self.parts, self.run = model, parts, run
        self.clicks = [int(points.clicks_per_image[i]) for points, i in parts]
        self.largest = max(self.clicks)

    def climb(self, once: bool, start: int) -> tuple[list[Found], int]:
        """The best descents, and from how many components (for the largest image) they started."""
        best: list[Found] = []
        total, from_ = -np.inf, start
        while True:
            found = [
                descend(self.model, points, i, once, starts(self.model, n, start / self.largest), None, self.run)
                for (points, i), n in zip(self.parts, self.clicks, strict=True)
            ]
            kept = [each for each in found if each is not None]
            score = sum(each.score for each in kept)
            if score <= total + 1.0:
                return best, from_
            best, total, from_ = kept, score, start
            if 2 * start > self.largest // 2 or self.model.start is not None:
                return best, from_
            start *= 2


def clicks_once(parts: list[tuple[Points, int]], rng: np.random.Generator) -> bool | None:
    """Whether workers click on an object at most once; None where so few clicks cannot tell. Near a click of others, a
    worker who clicks as often as they like has as many of their own as their share of clicks says; one who clicks once
    has none."""
    own, chance = 0.0, 0.0
    for points, i in parts:
        at = points.clicks_of(i)
        X, worker = points.X[at], points.worker[at]
        worker = np.unique(worker, return_inverse=True)[1]
        clicks = np.bincount(worker)
        chosen = np.sort(rng.choice(len(X), min(len(X), NEAR), replace=False))
        radius = None
        for some in np.array_split(chosen, max(1, len(chosen) // 200)):
            same = worker[some][:, None] == worker[None]
            away = np.sqrt(((X[some][:, None] - X[None]) ** 2).sum(2))
            if radius is None:  # the first clicks tell how far off a few of the others' are
                few = min(max(3, len(clicks) // 6), len(X)) - 1
                radius = float(np.median(np.partition(np.where(same, np.inf, away), few, axis=1)[:, few]))
            close = away <= radius if np.isfinite(radius) else np.zeros_like(same)
            sent = clicks[worker[some]]
            own += float((close & same & (away > 0)).sum())
            chance += float(((close & ~same).sum(1) * (sent - 1) / np.maximum(len(X) - sent, 1)).sum())
    if float(chance) >= MANY:
        return own < SAME * chance
    own, chance = own / 2, chance / 2  # every pair was counted from both ends
    below = sum(math.exp(k * math.log(max(chance, 1e-300)) - chance - math.lgamma(k + 1)) for k in range(int(own) + 1))
    return True if below < RARE else None


def clashes(parts: list[tuple[Points, int]], found: list[Found]) -> float:
    """Pairs of clicks by one worker on one object that chance would make: about minus the log of the chance that there
    are none, which the sum over matchings lacks against that over all ways."""
    total = 0.0
    for (points, i), each in zip(parts, found, strict=True):
        sent = np.bincount(points.worker[points.clicks_of(i)]).astype(np.float64)
        part = each.n / sent.sum()  # of all clicks, on each object
        total += float(0.5 * (sent * np.maximum(sent - 1, 0)).sum() * (part**2).sum())
    return total
