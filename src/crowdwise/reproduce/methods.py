"""The methods of the study of groups, and what is measured of each."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..kernels.layout import Floats, Ints
from ..kernels.special import divergence as distance
from ..learn import CMM, DLEM, CrowdClassifier, JointGroups, JointPooled, JointTied
from ..learn.sides import by_name
from ..metrics import divergence, rand_index
from ..result import LabelsResult
from .study import Figures

SWEEPS = 50  # at most, as the paper has it
# Our name of a row, what is fitted, and whether it is started many times, as the paper does.
METHODS: dict[str, tuple[Any, bool]] = {
    "softMV": ("softMV", False),
    "hardMV": ("hardMV", False),
    "DL-DS": ("DL-DS", False),
    "DL-EM": ("DL-EM", True),
    "DL-EM, to the end": (DLEM(max_iter=SWEEPS), False),
    "CMM": ("CMM", True),
    "CMM, one group": (CMM(early=0.03, max_iter=SWEEPS), True),
    "tied": (JointTied(max_iter=SWEEPS), False),
    "groups": (JointGroups(max_iter=SWEEPS), False),
    "pooled": (JointPooled(max_iter=SWEEPS), False),
    "Ideal": ("Ideal", False),
}


def compared(quick: bool) -> list[str]:
    """Methods to measure."""
    return [name for name in METHODS if not quick or name not in ("DL-EM, to the end", "CMM, one group")]


class Lot(NamedTuple):
    """Rows to learn from, answers to them, and rows to be told."""

    X: Floats
    answers: Labels  # a task a row, in their order
    truth: Ints
    new: Floats
    new_truth: Ints
    confusions: Floats | None = None  # (W, K, K) true ones, where they are known; else they are counted
    groups: dict[Any, int] | None = None  # of workers, the same way

    @classmethod
    def of(cls, sim: Any, fresh: int) -> Lot:
        """A simulated crowd, whose last `fresh` tasks are to be told."""
        truth = np.unique(sim.truth["label"].to_numpy(), return_inverse=True)[1]
        old, who = len(truth) - fresh, dict(sim.workers.select("worker", "group").rows())
        return cls(sim.features[:old], sim.answers, truth[:old], sim.features[old:], truth[old:], sim.confusions, who)

    @property
    def labels(self) -> dict[Any, Any]:
        """The true label of each task."""
        return dict(zip(self.answers.tasks.to_list(), self.answers.classes[self.truth].to_list(), strict=True))


def fitted(name: str, lot: Lot, network: Any, restarts: int, seed: int, **settings: Any) -> CrowdClassifier:
    """One of METHODS on a lot."""
    workers, many = METHODS[name]
    if settings:
        workers = replace(workers, **settings) if not isinstance(workers, str) else by_name(workers, **settings)
    model = CrowdClassifier(network, workers, restarts=restarts if many else 1, random_state=seed)
    answers = lot.answers.with_gold(lot.truth) if name == "Ideal" else lot.answers
    return model.fit(lot.X, answers, tasks=lot.answers.tasks)


def measured(name: str, lot: Lot, network: Any, restarts: int, seed: int, **settings: Any) -> Figures:
    """Accuracy (percent) on new rows and on those learnt from, divergence of matrices, and what it took."""
    began = time.process_time()
    model = fitted(name, lot, network, restarts, seed, **settings)
    seconds = time.process_time() - began
    result = model.result_
    apart = _apart(result, lot, name)
    grouped = result.model.grouping(result.params)
    return {
        "test": 100 * float((model.predict_proba(lot.new).argmax(1) == lot.new_truth).mean()),
        "train": 100 * float((model.predict_proba(lot.X).argmax(1) == lot.truth).mean()),
        "I-JS": apart[0],
        "G-JS": apart[1],
        "ARI": None if grouped is None or lot.groups is None else rand_index(result, lot.groups),
        "groups": None if grouped is None else float(len(grouped.share)),
        "iterations": float(result.trace.height) if result.trace.height else None,
        "seconds": seconds,
    }


def _apart(result: LabelsResult, lot: Lot, name: str) -> tuple[float | None, float | None]:
    """I-JS and G-JS. Votes have no matrices of their own: all workers are given the one that their shares count."""
    if name == "Ideal":
        return None, None
    if name not in ("softMV", "hardMV"):
        truth = lot.labels if lot.confusions is None else None
        return tuple(divergence(result, truth, confusions=lot.confusions))  # type: ignore[return-value]
    known = np.eye(result.answers.n_classes)[lot.truth]
    true = counted(result.answers, known) if lot.confusions is None else lot.confusions
    crowd, own = (counted(result.answers, Z, together=True)[0] for Z in (known, result.posterior))
    return float(distance(true, own).mean()), float(distance(crowd, own))


def counted(answers: Labels, Z: Floats, together: bool = False) -> Floats:
    """(W, K, K) confusion matrices counted by a posterior (T, K), of all workers `together` (1, K, K); a row without
    answers is even."""
    layout, K = answers.layout, answers.n_classes
    rows = answers.kernels.confusion_counts(layout, Z, 1)
    if together:
        counts = answers.kernels.group_counts(layout, rows, np.ones((answers.n_workers, 1)), 1)
    else:
        counts = np.zeros((answers.n_workers, K, K))
        counts[layout.row_worker, :, layout.row_label] = rows
    total = counts.sum(2, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1e-12), 1 / K))
