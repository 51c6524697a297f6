"""Results of label models fitted to answers in parts: everything is summed over shards, or made shard by shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import SplitLabels
from ..engine import Executor
from ..kernels.layout import Floats, Ints
from ..kernels.special import classes_of
from ..rating.checks import marked_checks
from ..rating.copies import Copies, copies
from ..rating.pieces import Piece
from ..rating.skills import vote_left_out, vote_odds
from ..rating.times import no_times
from ..rating.workers import Sums, rating_sums, rating_table, ratings
from ..result import LeftOut
from ..result.labels import confusion_matrices
from ..result.split import count_doubts
from ..result.tables import STATES, decided, label_table, task_table
from .sampled import chosen_tasks, joined, task_sample
from .shard import Crowd, Shard

if TYPE_CHECKING:
    from .model import LabelModel, Learnt

MAX_SAMPLE_ANSWERS = 2_000_000  # answers among which copies are looked for


class Totals(NamedTuple):
    """Sums over all tasks."""

    left_out: LeftOut
    sums: Sums
    states: Ints  # (4,) tasks in each of STATES
    ties: int
    checks: Ints  # (2,) as in `marked_checks`
    expected: Floats  # (2,) of the labels estimated: sum of probabilities p, sum of p (1 - p)
    doubts: Floats  # (2, BINS) labels estimated by probability of error, see `count_doubts`


class Sample(NamedTuple):
    """Some tasks of a shard with their answers; workers are those of the whole table."""

    task: Ints  # (N,) numbered from 0
    worker: Ints
    label: Ints
    gold: Ints  # (T,)
    posterior: Floats  # (T, K)


def split_fields(
    model: LabelModel, answers: Any, crowd: Crowd, shards: Executor[Shard], learnt: Learnt
) -> dict[str, Any]:
    """Return the fields of a `SplitResult` of `SplitLabels` that do not come from the fit itself."""
    params, prevalence = learnt.params, learnt.prevalence
    total: Totals = shards.total(_totals, model, params, prevalence)
    votes = shards.total(_votes, vote_odds(total.sums.agree, answers.n_classes))
    step = -(-answers.n_answers // MAX_SAMPLE_ANSWERS)
    sample = list(shards.each(_sample, model, params, step))
    behind = ratings(
        crowd.rows,
        prevalence,
        sums=total.sums,
        left_out=total.left_out,
        votes=votes,
        times=no_times(answers.n_workers),
        copies=_copies(answers, sample, prevalence),
        clusters=model.clusters(params, answers.n_workers),
    )
    finished = model.finish(crowd, params, shards)

    def matrices(workers: Ints) -> Floats | None:
        return confusion_matrices(model, finished, crowd.rows, workers) if model.distinguishes_workers else None

    own: dict[str, Any] = {
        "params": finished,
        "prevalence": prevalence,
        "converged": learnt.converged,
        "left_out": total.left_out,
    }
    own["rated"] = rating_table(answers, behind, matrices)
    own["components"] = _components(answers.n_workers, shards)
    own["states"] = dict(zip(STATES, total.states.tolist(), strict=True))
    own |= {"ties": int(total.ties), "checks": total.checks, "expected": total.expected, "doubts": total.doubts}
    own["task_tables"] = answers.task_tables(shards, _task_tables, model, params, prevalence)
    return own


def _reported(shard: Shard, local: Any, model: LabelModel, params: Any) -> Floats:
    return model.reported(shard, params, local.Z.copy())


def _piece(shard: Shard, posterior: Floats) -> Piece:
    return Piece(shard.answers, posterior, 0, shard.kernels, shard.threads)


def _totals(shard: Shard, local: Any, model: LabelModel, params: Any, prevalence: Floats) -> Totals:
    left_out = model._left_out(shard, local, params)
    posterior = _reported(shard, local, model, params)
    found = decided(shard.answers, posterior, prevalence)
    states = np.bincount(found.state, minlength=len(STATES))
    p = found.probability[found.state < STATES.index("no answers")].astype(np.float64)
    sums = rating_sums(_piece(shard, posterior))
    expected, checks = np.array([p.sum(), (p * (1 - p)).sum()]), marked_checks(shard.answers)
    return Totals(left_out, sums, states, int(found.tie.sum()), checks, expected, count_doubts(1 - p))


def _votes(shard: Shard, local: Any, odds: float) -> LeftOut:
    return LeftOut(*vote_left_out(_piece(shard, local.Z), odds))


def _task_tables(shard: Shard, local: Any, model: LabelModel, params: Any, prevalence: Floats) -> dict[str, Any]:
    posterior = _reported(shard, local, model, params)
    difficulty = model.difficulty(model.with_tasks(params, [local]))
    return {
        "labels": label_table(shard.answers, posterior, prevalence),
        "tasks": task_table(shard.answers, posterior, difficulty, model.effective_votes(shard, params)),
    }


def _sample(shard: Shard, local: Any, model: LabelModel, params: Any, step: int) -> Sample:
    """Return about one in `step` tasks of a shard."""
    posterior = _reported(shard, local, model, params)
    return Sample(*task_sample(shard, local, step), posterior[chosen_tasks(shard.answers, step)])


def _copies(answers: SplitLabels, parts: list[Sample], prevalence: Floats) -> Copies:
    """Look for copies in a sample of tasks."""
    posterior = np.concatenate([part.posterior for part in parts])
    sample = joined(answers, parts)
    piece = Piece(sample, posterior, 0, answers.kernels)
    return copies([piece], [classes_of(posterior, prevalence, sample.gold)])


def _components(n_workers: int, shards: Executor[Shard]) -> int:
    """Return how many sets of workers share no task."""
    root = np.arange(n_workers)
    for worker, part in shards.each(_shard_components):
        while True:  # all workers of a component of the shard get the smallest root among them
            lowest = np.full(len(worker), n_workers)
            np.minimum.at(lowest, part, root[worker])
            if np.array_equal(lowest[part], root[worker]):
                break
            target = np.arange(n_workers)
            np.minimum.at(target, root[worker], lowest[part])
            root = target[root]
    return len(np.unique(root))


def _shard_components(shard: Shard, local: Any) -> tuple[Ints, Ints]:
    return shard.whole_workers(), shard.kernels.components(shard.layout)
