"""Groups of workers who err alike, where a model has found some."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels import TINY
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.special import entropy, similarity, softmax

if TYPE_CHECKING:
    from .labels import LabelsResult

NONE = 1e-9  # shares below are of groups that have died
CELLS = 1 << 22  # numbers in the tables of answers handled at a time


class Grouping(NamedTuple):
    """The groups that a model found, the largest first."""

    share: Floats  # (M,)       of the crowd
    matrices: Floats  # (M, K, K)  confusion matrix of each
    member: Floats  # (W, M)     chance of each worker to be of each group


class Assignment(NamedTuple):
    """Groups of answers that the fit has not seen, and of those who gave them."""

    answers: pl.DataFrame  # task, worker, label, group, probability
    workers: pl.DataFrame  # worker, group, probability
    ignored_answers: int  # gave a label that the fit did not know


def group_table(found: Grouping) -> pl.DataFrame:
    """group (from 1), share, workers (expected), similarity to the identity, entropy of a row (bits)."""
    return pl.DataFrame(
        {
            "group": np.arange(1, len(found.share) + 1),
            "share": np.where(found.share < NONE, 0.0, found.share),
            "workers": np.where(found.share < NONE, 0.0, found.member.sum(0)),
            "similarity": similarity(found.matrices),
            "entropy": entropy(found.matrices),
        }
    )


def member_table(workers: pl.Series, member: Floats) -> pl.DataFrame:
    """worker, group (from 1), probability."""
    best = member.argmax(1)
    return pl.DataFrame({"worker": workers, "group": best + 1, "probability": member[np.arange(len(best)), best]})


def assigned(result: LabelsResult, new: Labels, prior: Floats, before: Floats) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The groups of new answers, in the classes of the fit: p(g) times how well the matrix of g tells the answer,
    sum_k p[k] beta[g, k, label], with what is known of the task without the answer, p (K,).

    `prior` (T, K) is what is known of tasks before their answers; `before` (W, M) the groups of the workers of `new` so
    far. Where every answer has a truth of its own, p is the prior; else the other answers to the task count, too.
    """
    found = result.grouping
    task, worker, label = new.codes()
    K, size = new.n_classes, max(1, CELLS // (new.n_classes * len(found.share)))
    parts = [slice(start, start + size) for start in range(0, len(task), size)]
    known = np.flatnonzero(new.gold >= 0)
    prior = prior.astype(np.float64)
    prior[known] = np.eye(K)[new.gold[known]]
    together = np.log(np.maximum(prior, TINY))
    shared = result.model.shares_truth

    def own(j: Ints, said: Ints) -> Floats:
        """(N, K) log-probability of what a worker said, by the groups of the worker so far."""
        return np.asarray(np.log(np.maximum(mixture(before[j], found.matrices, said), TINY)))

    for part in parts if shared else []:
        told = own(worker[part], label[part])
        for k in range(K):
            together[:, k] += weighted_counts(task[part], told[:, k], new.n_tasks)
    of_answer, of_worker = np.empty((len(task), len(found.share))), np.log(np.maximum(before, TINY))
    for part in parts:
        i, j, said = task[part], worker[part], label[part]
        logs = together[i] - (own(j, said) if shared else 0)
        told = np.einsum("nk,mkn->nm", softmax(logs), found.matrices[:, :, said])
        logs = np.log(np.maximum(told, TINY))
        of_answer[part] = softmax(np.log(np.maximum(before[j], TINY)) + logs)
        for m in range(logs.shape[1]):
            of_worker[:, m] += weighted_counts(j, logs[:, m], len(before))
    best = of_answer.argmax(1)
    answers = pl.DataFrame({"task": new.tasks[task], "worker": new.workers[worker], "label": new.classes[label]})
    chance = of_answer[np.arange(len(best)), best]
    answers = answers.with_columns(group=pl.Series(best + 1), probability=pl.Series(chance))
    return answers, member_table(new.workers, softmax(of_worker))


def mixture(member: Floats, matrices: Floats, label: Ints) -> Floats:
    """(N, K) what matrices (M, K, K), mixed by the chances (N, M) of each, have for each label (N,) told."""
    return np.asarray(np.einsum("nm,mkn->nk", member, matrices[:, :, label]))


def group_probabilities(found: Grouping, places: Ints) -> Floats:
    """(W, M) groups of workers by their places in the fit; those not met (-1) have the shares of the crowd."""
    return np.where((places >= 0)[:, None], found.member[places], found.share)
