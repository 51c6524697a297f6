"""Whether an object is real, by who clicked on it and who looked and did not: docs/maths/click_mixture.md."""

from __future__ import annotations

import numpy as np

from ..answers import Points
from ..kernels.layout import Floats, Ints
from ..kernels.special import gammaln

DECOY = (1.5, 8.5)  # Beta of the share of workers who take something else for an object
DECOYS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)  # shares of them among all objects, with smaller ones more likely
MEANS = np.linspace(0.05, 0.98, 32)  # of the share of workers who click on a real object
STRENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # how alike real objects are in that
EAGER = 0.75  # quantile of hit rates that counts as having looked at everything


def real(points: Points, image_of: Ints, worker: Ints, object_: Ints) -> Floats:
    """(M,) probability that an object is real and no decoy. `worker` and `object_` are pairs, by number: who clicked on
    what. `image_of` (M,) are the images of objects.

    Real objects are clicked by shares of workers from one Beta distribution, decoys by shares from a low one. Which
    real ones, how alike and how many decoys is weighed over a grid by what all objects of all images say together. A
    worker who clicks on few objects of any kind counts as having looked at as few.
    """
    M = len(image_of)
    if not M:
        return np.empty(0)
    k = np.bincount(object_, minlength=M).astype(np.float64)
    looks = _looks(points, image_of, worker)
    shown = np.bincount(points.job_image, looks[points.job_worker], minlength=points.n_images)[image_of]
    pairs, which = np.unique(np.stack([k, np.maximum(shown, k).round(2)], axis=1), axis=0, return_inverse=True)
    count = np.bincount(which.ravel(), minlength=len(pairs))
    decoy = _chance(pairs, *DECOY)
    rows, scores = [], []
    for strength in STRENGTHS:
        genuine = np.stack([_chance(pairs, m * strength, (1 - m) * strength) for m in MEANS])
        for share in DECOYS:
            both = np.logaddexp(np.log1p(-share) + genuine, np.log(share) + decoy)
            scores.append(both @ count - np.log(share))
            rows.append(np.exp(np.log1p(-share) + genuine - both))
    score = np.stack(scores)
    weight = np.exp(score - score.max())
    mean = np.einsum("gm,gmk->k", weight, np.stack(rows)) / weight.sum()
    return np.asarray(mean[which.ravel()])


def _looks(points: Points, image_of: Ints, worker: Ints) -> Floats:
    """(W,) how much of an image a worker looks at: the share of objects clicked on, against that of eager workers."""
    there = np.bincount(image_of, minlength=points.n_images).astype(np.float64)
    shown = np.bincount(points.job_worker, there[points.job_image], minlength=points.n_workers)
    rate = (np.bincount(worker, minlength=points.n_workers) + 1.0) / (shown + 2.0)
    return np.asarray(np.minimum(rate / np.quantile(rate[points.job_worker], EAGER), 1.0))


def _chance(pairs: Floats, a: float, b: float) -> Floats:
    """(pairs,) log-chance of k clicks on an object that n workers looked at, as often as Beta(a, b) says."""
    k, n = pairs[:, 0], pairs[:, 1]
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    parts = gammaln(k + a) + gammaln(n - k + b) - gammaln(n + a + b)
    whole = gammaln(np.array([a, b, a + b]))
    return np.asarray(ways + parts - (whole[0] + whole[1] - whole[2]))
