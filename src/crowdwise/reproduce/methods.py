"""The methods of the study of groups, and the measurements of each."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..answers import Labels
from ..kernels.layout import Floats, Ints
from ..kernels.special import divergence as js_divergence
from ..learn import CMM, DLEM, CrowdClassifier, JointGroups, JointPooled, JointTied
from ..learn.sides import by_name
from ..metrics import divergence, rand_index
from ..result import LabelsResult
from .study import Measurement

MAX_ITERATIONS = 50  # as in the paper
QUICK_EPOCHS = 10  # of networks trained on fixed labels in a quick study, instead of 50


class Method(NamedTuple):
    """A row of the tables."""

    workers: Any  # worker side
    several: bool = False  # several random starts, as in the paper
    quick: bool = False  # measured in a quick study, too


METHODS = {
    "softMV": Method("softMV", quick=True),
    "hardMV": Method("hardMV"),
    "DL-DS": Method("DL-DS", quick=True),
    "DL-EM": Method("DL-EM", several=True),
    "DL-EM, to the end": Method(DLEM(max_iter=MAX_ITERATIONS)),
    "CMM": Method("CMM", several=True, quick=True),
    "CMM, to the end": Method(CMM(groups=3, max_iter=MAX_ITERATIONS)),
    "CMM, one group": Method(CMM(early=0.03, max_iter=MAX_ITERATIONS), several=True),
    "tied": Method(JointTied(max_iter=MAX_ITERATIONS), quick=True),
    "groups": Method(JointGroups(max_iter=MAX_ITERATIONS)),
    "pooled": Method(JointPooled(max_iter=MAX_ITERATIONS)),
    "Ideal": Method("Ideal", quick=True),
}


def compared(quick: bool) -> list[str]:
    """Names of the methods to measure."""
    return [name for name, method in METHODS.items() if method.quick or not quick]


class Dataset(NamedTuple):
    """Training rows with their answers, and test rows."""

    X: Floats
    answers: Labels  # one task per row of X, in the same order
    truth: Ints
    X_test: Floats
    test_truth: Ints
    confusions: Floats | None = None  # (W, K, K) true confusion matrices; counted with the truth if None
    groups: dict[Any, int] | None = None  # true group of each worker, if known

    @classmethod
    def from_crowd(cls, sim: Any, fresh: int) -> Dataset:
        """Build a dataset from a simulated crowd; its last `fresh` tasks are the test rows."""
        truth = np.unique(sim.truth["label"].to_numpy(), return_inverse=True)[1]
        n, groups = len(truth) - fresh, dict(sim.workers.select("worker", "group").rows())
        return cls(sim.features[:n], sim.answers, truth[:n], sim.features[n:], truth[n:], sim.confusions, groups)

    @property
    def labels(self) -> dict[Any, Any]:
        """True label of each training task."""
        return dict(zip(self.answers.tasks.to_list(), self.answers.classes[self.truth].to_list(), strict=True))


def as_labels(label: Ints) -> Labels:
    """Convert a dense (n, W) array, with the label of every worker for every task, to answers."""
    n, W = label.shape
    return Labels(np.repeat(np.arange(n), W), np.tile(np.arange(W), n), label.ravel(), source="simulation")


def fit_method(name: str, dataset: Dataset, network: Any, restarts: int, seed: int, **settings: Any) -> CrowdClassifier:
    """Fit one of METHODS to a dataset."""
    workers, several, _ = METHODS[name]
    if settings:
        workers = replace(workers, **settings) if not isinstance(workers, str) else by_name(workers, **settings)
    model = CrowdClassifier(network, workers, restarts=restarts if several else 1, random_state=seed)
    answers = dataset.answers.with_gold(dataset.truth) if name == "Ideal" else dataset.answers
    return model.fit(dataset.X, answers, tasks=dataset.answers.tasks)


def measure_method(name: str, dataset: Dataset, network: Any, restarts: int, seed: int, **settings: Any) -> Measurement:
    """Accuracy (percent) on test and training rows, divergence of confusion matrices, iterations and seconds."""
    began = time.process_time()
    model = fit_method(name, dataset, network, restarts, seed, **settings)
    seconds = time.process_time() - began
    result = model.result_
    individual, crowd = _divergences(result, dataset, name)
    grouping = result.model.grouping(result.params)
    return {
        "test": 100 * float((model.predict_proba(dataset.X_test).argmax(1) == dataset.test_truth).mean()),
        "train": 100 * float((model.predict_proba(dataset.X).argmax(1) == dataset.truth).mean()),
        "I-JS": individual,
        "G-JS": crowd,
        "ARI": None if grouping is None or dataset.groups is None else rand_index(result, dataset.groups),
        "groups": None if grouping is None else float(len(grouping.share)),
        "iterations": float(result.trace.height) if result.trace.height else None,
        "seconds": seconds,
    }


def _divergences(result: LabelsResult, dataset: Dataset, name: str) -> tuple[float | None, float | None]:
    """I-JS and G-JS. Votes estimate no matrices, so all workers get the one counted with the vote's posterior."""
    if name == "Ideal":
        return None, None
    if name not in ("softMV", "hardMV"):
        truth = dataset.labels if dataset.confusions is None else None
        return tuple(divergence(result, truth, confusions=dataset.confusions))  # type: ignore[return-value]
    known = np.eye(result.answers.n_classes)[dataset.truth]
    true = count_confusions(result.answers, known) if dataset.confusions is None else dataset.confusions
    crowd, estimated = (count_confusions(result.answers, Z, pooled=True)[0] for Z in (known, result.posterior))
    return float(js_divergence(true, estimated).mean()), float(js_divergence(crowd, estimated))


def count_confusions(answers: Labels, Z: Floats, pooled: bool = False) -> Floats:
    """Confusion matrices counted with a posterior (T, K): (W, K, K), or (1, K, K) if workers are `pooled`.

    A row without answers is uniform.
    """
    layout, K = answers.layout, answers.n_classes
    rows = answers.kernels.confusion_counts(layout, Z, 1)
    if pooled:
        counts = answers.kernels.group_counts(layout, rows, np.ones((answers.n_workers, 1)), 1)
    else:
        counts = np.zeros((answers.n_workers, K, K))
        counts[layout.row_worker, :, layout.row_label] = rows
    total = counts.sum(2, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1e-12), 1 / K))
