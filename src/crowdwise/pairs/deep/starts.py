"""A start from pair answers: small clusters of the latent means, joined where the answers say so."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from sklearn.cluster import KMeans

from ...kernels.layout import Bools, Floats, Ints
from ..merge import between, joined
from ..model import PairAnswers

BELIEVED = 0.9
DOUBTED = 0.6
LADDER = (20, 40, 80, 160, 300)
MOVED = 0.1


def default_start(answers: PairAnswers, items: int, raw: bool) -> Literal["random", "pairs"]:
    """From pairs where there are as many answers as items or where the items are raw images, else random."""
    return "pairs" if raw or len(answers.left) >= items else "random"


def micro_clusters(points: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Many small clusters of the points."""
    model = KMeans(min(count, len(points)), n_init=3, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of equal points
        return np.asarray(model.fit_predict(points), dtype=np.int64)


def join_by_answers(labels: Ints, answers: PairAnswers, rounds: int = 4) -> Ints:
    """Join clusters by the answers, and again by how right the answers were on the clusters joined before."""
    hit = miss = BELIEVED
    found = labels
    for _ in range(rounds):
        found = joined(*_tables(labels, answers, hit, miss))[labels]
        together = found[answers.left] == found[answers.right]
        hit = max(_share(answers.same, together, answers.weight), DOUBTED)
        miss = max(_share(~answers.same, ~together, answers.weight), DOUBTED)
    return found


def _share(event: Bools, where: Bools, weight: Floats) -> float:
    """Weighted share of an event where a condition holds, kept off 0 and 1."""
    return float((weight[event & where].sum() + 0.5) / (weight[where].sum() + 1))


def _tables(labels: Ints, answers: PairAnswers, hit: float, miss: float) -> tuple[Floats, Floats]:
    """Log-odds of equal against different, and weight of answers, between every two clusters."""
    voice = np.where(answers.same, np.log(hit / (1 - miss)), np.log((1 - hit) / miss)) * answers.weight
    number = int(labels.max()) + 1
    return between(answers.left, answers.right, np.asarray(voice), answers.weight, labels, number)


def partition(points: Floats, answers: PairAnswers, most: int, rng: np.random.Generator) -> Ints:
    """Clusters for a start: micro-clusters, as many as predict held-out answers best, joined by the answers."""
    if not len(answers.left):
        return fold(micro_clusters(points, most, rng), points, most)
    held = rng.random(len(answers.left)) < 0.2
    learn, test = (_chosen(answers, keep) for keep in (~held, held))
    ladder = [count for count in LADDER if count <= len(points) // 2] or [max(1, len(points) // 2)]
    tried = [micro_clusters(points, count, rng) for count in ladder]
    scores = [predicted(join_by_answers(labels, learn), learn, test) for labels in tried]
    labels = join_by_answers(tried[int(np.argmax(scores))], answers)
    return fold(dissolve(labels, points, answers), points, most)


def _chosen(answers: PairAnswers, keep: Bools) -> PairAnswers:
    """Some of the answers."""
    parts = {name: getattr(answers, name)[keep] for name in ("left", "right", "worker", "same", "weight")}
    return answers._replace(**parts)


def predicted(labels: Ints, learn: PairAnswers, test: PairAnswers) -> float:
    """Log-likelihood of held-out answers under clusters and error rates learnt from the others."""
    together = labels[learn.left] == labels[learn.right]
    hit = _share(learn.same, together, learn.weight)
    miss = _share(~learn.same, ~together, learn.weight)
    same = np.where(labels[test.left] == labels[test.right], hit, 1 - miss)
    return float((test.weight * np.log(np.where(test.same, same, 1 - same))).sum())


def dissolve(labels: Ints, points: Floats, answers: PairAnswers) -> Ints:
    """Give small clusters that no answers hold apart from a larger one to the nearest centre."""
    labels = fold(labels, points, len(labels))
    size = int(labels.max()) + 1
    together = labels[answers.left] == labels[answers.right]
    hit, miss = _share(answers.same, together, answers.weight), _share(~answers.same, ~together, answers.weight)
    odds, _ = _tables(labels, answers, hit, miss)
    sizes = np.bincount(labels)
    kept = size
    while kept > 1 and odds[kept - 1, : kept - 1].max() > -np.log(len(labels)):
        if sizes[kept - 1 :].sum() > MOVED * len(labels):
            break
        kept -= 1
    return fold(labels, points, kept)


def fold(labels: Ints, points: Floats, most: int) -> Ints:
    """Number clusters from 0 by size; those beyond `most` go to the nearest centre of the others."""
    _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    new = np.argsort(np.argsort(-sizes, kind="stable"))[place.ravel()]
    if len(sizes) > most:
        centres = np.stack([points[new == k].mean(0) for k in range(len(sizes))])
        gaps = ((centres[:, None] - centres[None, :most]) ** 2).sum(2)
        new = np.where(new < most, new, gaps.argmin(1)[new])
    return np.asarray(new, dtype=np.int64)
