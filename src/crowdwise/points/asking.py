"""One image of a stream: how sure is what was found in it, how many more looks it needs, and whom to ask."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from ..kernels.layout import Floats, Ints
from ..kernels.rules import Real
from ..kernels.special import expit
from ..result.points import HALF
from .em import RELIABILITY_MARGIN
from .held import JOBS, JUDGED, ON, Learned, Sums
from .mixture import ClickMixture
from .summary import (
    DECOY_BETA,
    HIT_RATE_MEANS,
    LOG_ODDS_WEIGHT,
    attention,
    calibrated,
    chance_real,
    eager_rate,
    hit_rate_weights,
)

MAX_WORKERS_TO_ASK = 100  # in a decision


class Doubt(NamedTuple):
    """The most doubtful part of an image."""

    probability: float  # of what is claimed
    words: str  # the claim; the probability follows
    per_look: float  # expected increase of its log-odds when another worker looks


class HitRates(NamedTuple):
    """How many workers click on objects, learned from all images."""

    eager: Annotated[float, Real("", 0, 1)]  # hit rate of eager workers
    weight: Annotated[Floats, Real("cells Q", 0, 1)]  # weights of `summary.hit_rate_weights`
    jobs: int  # jobs from which it was learned

    @classmethod
    def learned(cls, images: Sequence[Learned], sums: Sums) -> HitRates:
        """Learn from what was learned from all images, and the sums over them."""
        eager = eager_rate(sums.hit_rate[np.concatenate([each.worker for each in images])])
        return cls(eager, hit_rate_weights(*_support(images, sums, eager)), int(sums.counts[JOBS].sum()))

    @property
    def mean(self) -> float:
        """Mean chance that a worker who looks clicks on a real object."""
        return float(self.weight.sum(0) @ HIT_RATE_MEANS)


class Asking:
    """What is asked of images, by the sums over all of them and how many workers click on objects. The latter are
    learned when they are needed first."""

    def __init__(self, model: ClickMixture, sums: Sums, rates: Callable[[], HitRates]) -> None:
        self.model, self.sums, self.rates = model, sums, rates

    def probabilities(self, images: Sequence[Learned]) -> Floats:
        """(M,) probabilities that the objects of some images are real."""
        if not any(len(each.mean) for each in images):
            return np.empty(0)
        rates, evidence = self.rates(), np.concatenate([each.evidence for each in images])
        return calibrated(evidence, chance_real(*_support(images, self.sums, rates.eager), rates.weight))

    def missing(self, image: Learned, probability: float, most: int) -> int:
        """Return how many more looks are needed, if each adds as much to the log-odds as is expected (Wald)."""
        doubt = self.doubt(image)
        lacking = _log_odds(probability) - _log_odds(doubt.probability)
        return most if lacking >= most * doubt.per_look else max(1, math.ceil(lacking / doubt.per_look))

    def worth_asking(self, image: Learned) -> Ints:
        """Return the workers who have not looked at an image, best first: those whose clicks are mostly on objects, by
        the share of objects they click on."""
        on, _, sent, *_, jobs = self.sums.counts
        skill = reliability(self.model, on, sent)
        good = (jobs > 0) & (skill >= HALF)
        good[image.worker] = False
        order = np.flatnonzero(good)
        return order[np.argsort(-(skill * self.sums.hit_rate)[order], kind="stable")][:MAX_WORKERS_TO_ASK]

    def doubt(self, image: Learned) -> Doubt:
        """Return what is most doubtful in an image: whether an object is real, or whether a click on no object marks
        one that other workers have missed."""
        strays, p = self._stray_doubt(image), self.probabilities([image])
        if not len(p):
            return strays or Doubt(1.0, "none clicked, so there is no object, with a probability of", 1.0)
        sure, h, f = np.maximum(p, 1 - p), self.rates().mean, DECOY_BETA[0] / sum(DECOY_BETA)
        worst = int(np.argmin(sure))
        if strays is not None and strays.probability < sure[worst]:
            return strays
        which = "the only object" if len(p) == 1 else f"the most doubtful of {len(p)} objects"
        claim, look = ("is real", _divergence(h, f)) if p[worst] >= HALF else ("is not real", _divergence(f, h))
        return Doubt(float(sure[worst]), f"{which} {claim} with a probability of", LOG_ODDS_WEIGHT * look)

    def _stray_doubt(self, image: Learned) -> Doubt | None:
        """Return the doubt about clicks on no object; None if there are no such clicks.

        A click of a worker with reliability r, where none of n others clicked, marks an object that all of them missed
        with odds of r (1 - h)^n to 1 - r, where h is their hit rate. Clicks on images in which no object was found do
        not count towards r: they do not say whether the worker or the search has failed.
        """
        jobs = np.flatnonzero(image.strays)
        if not len(jobs):
            return None
        rates, worker = self.rates(), image.worker[jobs]
        r = reliability(self.model, self.sums.counts[ON, worker], self.sums.counts[JUDGED, worker])
        look = attention(self.sums.hit_rate[image.worker], rates.eager)
        miss = math.log1p(-rates.mean)
        odds = np.log(r) - np.log1p(-r) + miss * (look.sum() - look[jobs])
        least, n = float(expit(-odds.max())), len(image.mean)
        words = "a click far from all objects marks none" if n else "no object was found; clicks mark none"
        return Doubt(least, f"{words} with a probability of", -miss)


def reliability(model: ClickMixture, on: Floats, sent: Floats) -> Floats:
    """Return the reliability of workers by their expected clicks on objects and all clicks that they sent."""
    p = (on + model.hits - 1) / (sent + model.hits + model.misses - 2)
    return np.clip(p, RELIABILITY_MARGIN, 1 - RELIABILITY_MARGIN)


def _support(images: Sequence[Learned], sums: Sums, eager: float) -> tuple[Floats, Floats]:
    """Return how many workers clicked on each object of some images, and how many looked."""
    rate = sums.hit_rate
    looked = [np.full(len(each.mean), attention(rate[each.worker], eager).sum()) for each in images]
    return np.concatenate([each.supporters for each in images]), np.concatenate(looked)


def _log_odds(p: float) -> float:
    return math.copysign(math.inf, p - HALF) if p in (0, 1) else math.log(p) - math.log1p(-p)


def _divergence(p: float, q: float) -> float:
    """Expected log-likelihood ratio of a click with chance p against one with chance q (nats)."""
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
