"""The study of groups (Mena and Nanculef, `Revisiting Machine Learning from Crowds: a Mixture Model for Grouping
Annotations`, 2019): its tables and figures, measured anew.

Setup (1) is made from seeds. Setup (2) wants CIFAR-10, for which features of its images stand in, and Tables 3 and 4
want LabelMe. Every figure is kept as it is measured, so that a run that was broken off can go on.
"""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import FileError
from ..learn import Network
from ..report import Cost, Scaling
from ..result.files import write_whole
from ..simulate import levels, perturbed, triangle
from .ledger import Figures, Ledger, mean
from .methods import METHODS, Lot, fitted, measured
from .study import Asked, Part, Study

WORKERS = (100, 500, 1500, 3500, 6000, 10000)
PAPER = {  # test accuracy by workers, Setup (1) and (2); None where it ran out of memory
    "softMV": ((69.34, 66.21, 66.87, 68.48, 67.00, 66.49), (63.35, 65.90, 63.59, 60.07, 63.21, 64.20)),
    "hardMV": ((79.57, 82.49, 80.51, 81.57, 74.30, 79.07), (71.09, 69.50, 68.48, 69.09, 70.08, 66.01)),
    "DL-DS": ((94.66, 93.89, 92.28, 90.00, 89.69, 85.13), (71.33, 68.49, 68.08, 66.86, None, None)),
    "DL-EM": ((93.97, 93.99, 92.18, 88.27, 76.47, 67.01), (81.38, 80.42, 77.81, 69.81, None, None)),
    "CMM": ((90.53, 91.07, 91.66, 90.45, 90.26, 90.46), (78.83, 78.36, 79.35, 77.92, 78.45, 78.96)),
    "Ideal": ((94.75,) * 6, (83.77,) * 6),
}
NOISE = (0.1, 0.5, 0.8, 3.0)  # that makes experts, inexperts, highly inexperts and spammers of a network
OF_IMAGES = (0.20, 0.45, 0.15, 0.20)  # their shares
FRESH = 8190  # points to be told, ten times the paper's: their own chance should not count


Found = dict[tuple[str, int], list[Figures]]  # by method and workers, an entry a seed


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    methods: tuple[str, ...]
    workers: tuple[int, ...]
    seeds: int
    restarts: int
    images: int  # to learn from
    image_workers: tuple[int, ...]
    image_seeds: int
    image_restarts: int
    labelme_seeds: int
    labelme_restarts: int


FULL = Effort(tuple(METHODS), WORKERS, 5, 10, 50_000, WORKERS, 1, 1, 3, 10)
FEWER = tuple(name for name in METHODS if name not in ("DL-EM, to the end", "CMM, one group"))
QUICK = Effort(FEWER, (100, 10000), 1, 2, 3_000, (100, 10000), 1, 1, 1, 1)


def groups(asked: Asked) -> Study:
    """Tables 2, 3 and 4 and Figure 3; `data` is the folder of cifar10n, cifar10h_counts and labelme."""
    data, out, seed, watch, quick, _ = asked
    effort = QUICK if quick else FULL
    if data is not None:
        from .labelme import needed

        _needed(data, *IMAGES, *needed())
    ledger = Ledger(None if out is None else out / "groups-measured.json", watch)
    parts = _first_setup(effort, seed, ledger)
    if data is not None:
        from .labelme import tables

        parts.append(_second_setup(effort, seed, ledger, data))
        parts += tables(data, effort, seed, ledger)
    costs, scaling = _figure(effort, seed, ledger)
    parts.append(costs)
    return Study("groups", tuple(parts), tuple(_files(out, seed, scaling)))


def small_network() -> Network:
    """That of Setup (1)."""
    return Network(hidden=16, dropout=0.2, epochs=50, weight_decay=0.0, holdout=0.0)


def points(workers: int, seed: Any, fresh: int = FRESH) -> Lot:
    """Setup (1): three Gaussians, labelled by a crowd of three levels."""
    return _lot(triangle(workers, fresh=fresh, seed=seed), fresh)


def _lot(sim: Any, fresh: int) -> Lot:
    names = sorted(set(sim.truth["label"].to_list()))
    truth = np.searchsorted(names, sim.truth["label"].to_numpy())
    old = len(truth) - fresh
    who = dict(sim.workers.select("worker", "group").rows())
    return Lot(sim.features[:old], sim.answers, truth[:old], sim.features[old:], truth[old:], sim.confusions, who)


def _measure(
    title: str,
    methods: tuple[str, ...],
    workers: tuple[int, ...],
    seeds: int,
    restarts: int,
    network: Network,
    lots: Callable[[int, int], Lot],
    ledger: Ledger,
) -> Found:
    """All methods on `lots` of each number of workers and seed, which are made where something is not yet known."""
    found: Found = {}
    for s in range(seeds):
        for count in workers:
            lot = functools.cache(functools.partial(lots, count, s))
            for name in methods:
                key = f"{title}, {count} workers, seed {s}, {restarts} starts: {name}"
                told = ledger.of(key, lambda n=name, lot=lot, s=s: measured(n, lot(), network, restarts, s))  # type: ignore[misc]
                found.setdefault((name, count), []).append(told)
    return found


def _first_setup(effort: Effort, seed: int, ledger: Ledger) -> list[Part]:
    found = _measure(
        f"Setup (1) from {seed}", effort.methods, effort.workers, effort.seeds, effort.restarts, small_network(),
        lambda workers, s: points(workers, [5 + seed, workers, s]), ledger,
    )  # fmt: skip
    says = (
        "tied, groups and pooled are not in the paper. They give each task one truth for all its answers, and reach "
        "what true labels reach, however few answers a worker gave; tied needs no worker ids.",
        "DL-EM falls with many workers, whether it stops early or not: a few answers do not make a matrix.",
        f"Means of {effort.seeds} seed(s): new points, crowd and networks each; {effort.restarts} starts for DL-EM and "
        "CMM, the one of the highest objective kept.",
    )
    told = (
        "I-JS: how far workers' matrices are from the true ones (0 to 1); ARI: how well groups are found (1: all).",
        "CMM does not find the groups it was made for: the data know its matrices by their sum alone.",
    )
    shown = functools.partial(_by_workers, found, effort.workers)
    return [
        Part("Table 2, Setup (1): test accuracy (percent) by the number of workers", shown("test", 0), says, 2),
        Part("Setup (1): I-JS", shown("I-JS"), told[:1]),
        Part("Setup (1): adjusted Rand index of groups", shown("ARI"), told[1:], 2),
        Part("Setup (1): seconds of one core for a fit with all its starts", shown("seconds"), (), 1),
    ]


def _by_workers(found: Found, workers: tuple[int, ...], figure: str, setup: int | None = None) -> pl.DataFrame:
    """A row a method with a column a number of workers, and, of a setup of the paper, its own figures below."""
    rows: list[dict[str, Any]] = []
    for name in METHODS:
        cells = {str(w): mean(found.get((name, w), []), figure) for w in workers}
        if all(value is None for value in cells.values()):
            continue
        rows.append({"method": name, **cells})
        if setup is not None and name in PAPER:
            theirs = dict(zip(WORKERS, PAPER[name][setup], strict=True))
            rows.append({"method": f"{name} in the paper", **{str(w): theirs[w] for w in workers}})
    return pl.DataFrame(rows, infer_schema_length=None)


IMAGES = (
    "cifar10n/features.npz",
    "cifar10n/truth.parquet",
    "cifar10h_counts/features_hog.npz",
    "cifar10h_counts/truth.parquet",
)


def _needed(data: Path, *files: str) -> None:
    for file in files:
        if not (data / file).exists():
            raise FileError(f"no {file} in {data}: --data is the folder of cifar10n, cifar10h_counts and labelme")


def image_network() -> Network:
    """That of Setup (2)."""
    return Network(hidden=128, dropout=0.5, epochs=50, batch_size=256, weight_decay=0.0, holdout=0.0)


def images(data: Path, count: int) -> tuple[Any, Any, Any, Any]:
    """Features and classes of `count` images to learn from, and of those to be told."""
    found = []
    for folder, file in (("cifar10n", "features.npz"), ("cifar10h_counts", "features_hog.npz")):
        arrays = np.load(data / folder / file)
        label = dict(pl.read_parquet(data / folder / "truth.parquet").select("task", "label").rows())
        names = np.array([label[task] for task in arrays["task"].tolist()])
        found += [arrays["hog_pca"].astype(np.float32), np.unique(names, return_inverse=True)[1]]
    X, truth, new, new_truth = found
    return X[:count], truth[:count], new, new_truth


def _second_setup(effort: Effort, seed: int, ledger: Ledger, data: Path) -> Part:
    X, truth, new, new_truth = images(data, effort.images)

    @functools.cache
    def matrices() -> Any:
        settings = {**image_network().get_params(), "dropout": 0.0, "epochs": 30}
        return perturbed(X, truth, NOISE, seed=seed, **settings)

    def lots(workers: int, s: int) -> Lot:
        drawn = [6 + seed, workers, s]
        sim = levels(truth, matrices(), OF_IMAGES, workers=workers, per_task=3, features=X, seed=drawn)
        who = dict(sim.workers.select("worker", "group").rows())
        return Lot(X, sim.answers, truth, new, new_truth, sim.confusions, who)

    title = f"Setup (2) from {seed}, {effort.images} images"
    some = effort.image_workers
    found = _measure(
        title, effort.methods, some, effort.image_seeds, effort.image_restarts, image_network(), lots, ledger
    )
    noise = ", ".join(f"{size:g}" for size in NOISE)
    says = (
        f"Ours: gradients and colours of {effort.images} images, a network of one layer; the paper's: a deep network "
        "on the images. So Ideal is what could be reached here.",
        f"Levels of ability are those of a network taught the truth, its weights disturbed by noise of {noise} "
        "standard deviations; the paper does not tell its own.",
    )
    shown = _by_workers(found, some, "test", 1)
    return Part("Table 2, Setup (2): test accuracy (percent) by the number of workers", shown, says, 2)


COMPARED = ("DL-EM", "CMM", "tied", "groups")
FEW, MORE = 3, 12  # sweeps


def _figure(effort: Effort, seed: int, ledger: Ledger) -> tuple[Part, Scaling]:
    """Figure 3: what a sweep takes, by the number of workers."""
    rows = []
    for name in COMPARED:
        for workers in effort.workers:
            cost = ledger.of(
                f"Figure 3 from {seed}, {workers} workers: {name}", functools.partial(_cost, name, workers, seed)
            )
            if cost["seconds"] is not None and cost["megabytes"] is not None:
                rows.append(Cost(name, workers, cost["seconds"], cost["megabytes"]))
    heads = ["method", "workers", "seconds a sweep", "MB"]
    table = pl.DataFrame([tuple(vars(cost).values()) for cost in rows], schema=heads, orient="row")
    per = {name: [c.megabytes for c in rows if c.method == name] for name in COMPARED}
    growth = {name: values[-1] / max(values[0], 1e-9) for name, values in per.items()}
    words = ", ".join(f"{name} {factor:.1f}" for name, factor in growth.items())
    says = (
        f"Memory grew, from {effort.workers[0]} workers to {effort.workers[-1]}, by factors of {words}: ours keeps "
        "what workers did and no table of workers x classes^2, so that DL-EM does not die as the paper's did at 16 GB."
    )
    part = Part(
        "Figure 3: time of a sweep, and memory of a fit above its data, by the number of workers", table, (says,), 3
    )
    return part, Scaling(says, list(COMPARED), rows)


def _cost(name: str, workers: int, seed: int) -> Figures:
    """Seconds of a sweep, by two fits that differ in their number, so that what is done once does not count; and the
    peak of what the second took."""
    lot = points(workers, [5 + seed, workers, 0], fresh=3)
    short, long = ({"max_iter": n, "early": 0.0, "tol": 0.0} for n in (FEW, FEW + MORE))
    fitted(name, lot, small_network(), 1, 0, **short)  # what is loaded once
    took = [min(measured(name, lot, small_network(), 1, 0, **n)["seconds"] or 0.0 for _ in "ab") for n in (short, long)]
    tracemalloc.start()
    try:
        fitted(name, lot, small_network(), 1, 0, **short)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"seconds": max(took[1] - took[0], 0.0) / MORE, "megabytes": peak / 1e6}


def _files(out: Path | None, seed: int, scaling: Scaling) -> list[Path]:
    """A page of Setup (1) by `groups`: matrices of groups and of single workers beside the true ones, and Figure 3."""
    if out is None:
        return []
    from ..report import write_report
    from ..scoring import judged

    lot = points(WORKERS[0], [5 + seed, WORKERS[0], 0], fresh=3)
    result = fitted("groups", lot, small_network(), 1, 0).result_
    names = result.classes[lot.truth]
    truth = pl.DataFrame({"task": result.answers.tasks, "label": names})
    page = write_report(
        result, out / "groups.html", models=(), check=False, judged=judged({"groups": result}, truth), scaling=scaling
    )
    costs = pl.DataFrame([vars(cost) for cost in scaling.rows])
    return [page, write_whole(out / "groups-scaling.csv", costs.write_csv)]
