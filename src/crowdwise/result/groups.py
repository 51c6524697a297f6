"""Groups of workers with the same confusion matrix: tables, and the assignment of new answers to groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels import TINY
from ..kernels.layout import Floats, Ints, weighted_counts
from ..kernels.special import entropy, similarity, softmax

if TYPE_CHECKING:
    from .labels import FittedLabels

MIN_SHARE = 1e-9  # groups with a smaller share count as empty
CHUNK_CELLS = 1 << 22  # elements of the temporary tables for a chunk of answers


class Grouping(NamedTuple):
    """The groups that a model found, the largest first."""

    share: Floats  # (M,)       share of the crowd
    matrices: Floats  # (M, K, K)  confusion matrices
    member: Floats  # (W, M)     probability of each group for each worker


class Assignment(NamedTuple):
    """Groups of new answers and of their workers."""

    answers: pl.DataFrame  # task, worker, label, group, probability
    workers: pl.DataFrame  # worker, group, probability
    ignored_answers: int  # answers with a label that does not occur in the fit


def group_table(found: Grouping) -> pl.DataFrame:
    """Return a table with group (from 1), share, expected number of workers, similarity of the confusion matrix to the
    identity, and mean entropy of its rows (bits)."""
    return pl.DataFrame(
        {
            "group": np.arange(1, len(found.share) + 1),
            "share": np.where(found.share < MIN_SHARE, 0.0, found.share),
            "workers": np.where(found.share < MIN_SHARE, 0.0, found.member.sum(0)),
            "similarity": similarity(found.matrices),
            "entropy": entropy(found.matrices),
        }
    )


def member_table(workers: pl.Series, member: Floats) -> pl.DataFrame:
    """Return a table with worker, most probable group (from 1) and its probability."""
    best = member.argmax(1)
    return pl.DataFrame({"worker": workers, "group": best + 1, "probability": member[np.arange(len(best)), best]})


def assigned(result: FittedLabels, new: Labels, prior: Floats, before: Floats) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the tables of new answers and of their workers, with their groups.

    The posterior of group g of an answer is p(g) times its likelihood sum_k p[k] beta[g, k, label], where p (K,) is the
    distribution of the task's class without this answer. `new` has the classes of the fit, `prior` (T, K) is the prior
    of its tasks, and `before` (W, M) are the current group probabilities of its workers. If every answer has its own
    truth, p is the prior; otherwise p also uses the other answers to the task.
    """
    found = result.grouping
    task, worker, label = new.codes()
    K, size = new.n_classes, max(1, CHUNK_CELLS // (new.n_classes * len(found.share)))
    parts = [slice(start, start + size) for start in range(0, len(task), size)]
    known = np.flatnonzero(new.gold >= 0)
    prior = prior.astype(np.float64)
    prior[known] = np.eye(K)[new.gold[known]]
    log_posterior = np.log(np.maximum(prior, TINY))
    shared = result.model.shares_truth

    def log_factors(j: Ints, given: Ints) -> Floats:
        """Return the log-probability (N, K) of the labels given, by the current groups of the workers."""
        return np.asarray(np.log(np.maximum(mixture(before[j], found.matrices, given), TINY)))

    for part in parts if shared else []:
        logs = log_factors(worker[part], label[part])
        for k in range(K):
            log_posterior[:, k] += weighted_counts(task[part], logs[:, k], new.n_tasks)
    of_answer, of_worker = np.empty((len(task), len(found.share))), np.log(np.maximum(before, TINY))
    for part in parts:
        i, j, given = task[part], worker[part], label[part]
        logs = log_posterior[i] - (log_factors(j, given) if shared else 0)
        likelihood = np.einsum("nk,mkn->nm", softmax(logs), found.matrices[:, :, given])
        logs = np.log(np.maximum(likelihood, TINY))
        of_answer[part] = softmax(np.log(np.maximum(before[j], TINY)) + logs)
        for m in range(logs.shape[1]):
            of_worker[:, m] += weighted_counts(j, logs[:, m], len(before))
    best = of_answer.argmax(1)
    answers = pl.DataFrame({"task": new.tasks[task], "worker": new.workers[worker], "label": new.classes[label]})
    probability = of_answer[np.arange(len(best)), best]
    answers = answers.with_columns(group=pl.Series(best + 1), probability=pl.Series(probability))
    return answers, member_table(new.workers, softmax(of_worker))


def mixture(member: Floats, matrices: Floats, label: Ints) -> Floats:
    """Return the column of each label (N,) in the mixture of matrices (M, K, K) with weights `member` (N, M); shape
    (N, K)."""
    return np.asarray(np.einsum("nm,mkn->nk", member, matrices[:, :, label]))


def group_probabilities(found: Grouping, places: Ints) -> Floats:
    """Return group probabilities (W, M) of workers by their numbers in the fit; unknown workers (-1) have the shares of
    the crowd."""
    return np.where((places >= 0)[:, None], found.member[places], found.share)
