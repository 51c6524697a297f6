"""Initial clusters from pair answers: micro-clusters of the latent means, joined by the answers."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from sklearn.cluster import KMeans

from ...kernels.layout import Bools, Floats, Ints
from ..merge import answers_between, join_components
from ..model import PairAnswers

START_ACCURACY = 0.9  # sensitivity and specificity of every worker at the start
MIN_ACCURACY = 0.6  # lower limit of their estimates while clusters are joined
MICRO_CLUSTER_COUNTS = (20, 40, 80, 160, 300)  # candidate numbers of micro-clusters
MAX_DISSOLVED_SHARE = 0.1  # share of all items that may be in dissolved clusters


def default_start(answers: PairAnswers, items: int, raw: bool) -> Literal["random", "pairs"]:
    """Return "pairs" if the items are raw images or have at least one answer each on average, else "random"."""
    return "pairs" if raw or len(answers.left) >= items else "random"


def micro_clusters(points: Floats, count: int, rng: np.random.Generator) -> Ints:
    """(n,) many small clusters of the points, by k-means."""
    model = KMeans(min(count, len(points)), n_init=3, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns about equal points
        return np.asarray(model.fit_predict(points), dtype=np.int64)


def join_by_answers(labels: Ints, answers: PairAnswers, rounds: int = 4) -> Ints:
    """Join clusters by the answers, and repeat with sensitivity and specificity estimated on the joined clusters."""
    hit = miss = START_ACCURACY
    found = labels
    for _ in range(rounds):
        found = join_components(*_tables(labels, answers, hit, miss))[labels]
        together = found[answers.left] == found[answers.right]
        hit = max(_share(answers.same, together, answers.weight), MIN_ACCURACY)
        miss = max(_share(~answers.same, ~together, answers.weight), MIN_ACCURACY)
    return found


def _share(event: Bools, where: Bools, weight: Floats) -> float:
    """Weighted share of an event among the answers with a condition, smoothed away from 0 and 1."""
    return float((weight[event & where].sum() + 0.5) / (weight[where].sum() + 1))


def _tables(labels: Ints, answers: PairAnswers, hit: float, miss: float) -> tuple[Floats, Floats]:
    """Sums of the log-odds of same against different, and of the weights of answers, between every two clusters."""
    log_odds = np.where(answers.same, np.log(hit / (1 - miss)), np.log((1 - hit) / miss)) * answers.weight
    number = int(labels.max()) + 1
    return answers_between(answers.left, answers.right, np.asarray(log_odds), answers.weight, labels, number)


def partition(points: Floats, answers: PairAnswers, most: int, rng: np.random.Generator) -> Ints:
    """(n,) at most `most` initial clusters: micro-clusters joined by the answers.

    The number of micro-clusters is the candidate that predicts held-out answers best.
    """
    if not len(answers.left):
        return merge_small(micro_clusters(points, most, rng), points, most)
    held = rng.random(len(answers.left)) < 0.2
    learn, test = (_subset(answers, keep) for keep in (~held, held))
    ladder = [count for count in MICRO_CLUSTER_COUNTS if count <= len(points) // 2] or [max(1, len(points) // 2)]
    tried = [micro_clusters(points, count, rng) for count in ladder]
    scores = [held_out_score(join_by_answers(labels, learn), learn, test) for labels in tried]
    labels = join_by_answers(tried[int(np.argmax(scores))], answers)
    return merge_small(dissolve(labels, points, answers), points, most)


def _subset(answers: PairAnswers, keep: Bools) -> PairAnswers:
    """Answers selected by a mask."""
    parts = {name: getattr(answers, name)[keep] for name in ("left", "right", "worker", "same", "weight")}
    return answers._replace(**parts)


def held_out_score(labels: Ints, learn: PairAnswers, test: PairAnswers) -> float:
    """Log-likelihood of the held-out answers `test`, given clusters and error rates estimated from `learn`."""
    together = labels[learn.left] == labels[learn.right]
    hit = _share(learn.same, together, learn.weight)
    miss = _share(~learn.same, ~together, learn.weight)
    same = np.where(labels[test.left] == labels[test.right], hit, 1 - miss)
    return float((test.weight * np.log(np.where(test.same, same, 1 - same))).sum())


def dissolve(labels: Ints, points: Floats, answers: PairAnswers) -> Ints:
    """Merge small clusters into the nearest one, if the answers do not separate them from a larger cluster."""
    labels = merge_small(labels, points, len(labels))
    size = int(labels.max()) + 1
    together = labels[answers.left] == labels[answers.right]
    hit, miss = _share(answers.same, together, answers.weight), _share(~answers.same, ~together, answers.weight)
    odds, _ = _tables(labels, answers, hit, miss)
    sizes = np.bincount(labels)
    kept = size
    while kept > 1 and odds[kept - 1, : kept - 1].max() > -np.log(len(labels)):
        if sizes[kept - 1 :].sum() > MAX_DISSOLVED_SHARE * len(labels):
            break
        kept -= 1
    return merge_small(labels, points, kept)


def merge_small(labels: Ints, points: Floats, most: int) -> Ints:
    """Number clusters from 0 in descending size; merge those beyond `most` into the nearest of the others."""
    _, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    new = np.argsort(np.argsort(-sizes, kind="stable"))[place.ravel()]
    if len(sizes) > most:
        centres = np.stack([points[new == k].mean(0) for k in range(len(sizes))])
        gaps = ((centres[:, None] - centres[None, :most]) ** 2).sum(2)
        new = np.where(new < most, new, gaps.argmin(1)[new])
    return np.asarray(new, dtype=np.int64)
