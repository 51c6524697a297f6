"""The study of groups (Mena and Nanculef, `Revisiting Machine Learning from Crowds: a Mixture Model for Grouping
Annotations`, 2019), measured anew: Setup (1) is made from seeds; features of images of CIFAR-10 stand in for the images
of Setup (2); Tables 3 and 4 want LabelMe.
"""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import option
from ..learn import Network
from ..metrics import evaluate
from ..report import Cost, Scaling, write_report
from ..result.files import write_whole
from ..simulate import levels, perturbed, triangle
from .labelme import needed, tables
from .methods import METHODS, Lot, compared, fitted, measured
from .study import Asked, Figures, Ledger, Part, Study, labelled, mean, require_files

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
FRESH = 8190  # points to be told, ten times the paper's: their own chance should not count
IMAGES = {"cifar10n": "features.npz", "cifar10h_counts": "features_hog.npz"}
COMPARED = ("DL-EM", "CMM", "tied", "groups")
Found = dict[tuple[str, int], list[Figures]]  # by method and workers, an entry a seed


def groups(asked: Asked) -> Study:
    """Tables 2, 3 and 4 and Figure 3; `data` is the folder of cifar10n, cifar10h_counts and labelme."""
    data, out, seed, _, quick, _ = asked
    if data is not None:
        files = [f"{folder}/{each}" for folder, file in IMAGES.items() for each in (file, "truth.parquet")]
        hint = f": {option('data')} is the folder of cifar10n, cifar10h_counts and labelme"
        require_files(data, (*files, *needed()), hint)
    ledger = asked.ledger("groups-measured.json")
    parts = _first_setup(seed, quick, ledger)
    if data is not None:
        parts += [_second_setup(data, seed, quick, ledger), *tables(data, seed, quick, ledger)]
    costs, scaling = _figure(seed, quick, ledger)
    return Study("groups", (*parts, costs), () if out is None else _files(out, seed, scaling))


def _workers(quick: bool) -> tuple[int, ...]:
    return (WORKERS[0], WORKERS[-1]) if quick else WORKERS


def small_network() -> Network:
    """That of Setup (1)."""
    return Network(hidden=16, dropout=0.2, epochs=50, weight_decay=0.0, holdout=0.0)


def points(workers: int, seed: Any, fresh: int = FRESH) -> Lot:
    """Setup (1): three Gaussians, labelled by a crowd of three levels."""
    return Lot.of(triangle(workers, fresh=fresh, seed=seed), fresh)


def _measure(
    title: str, quick: bool, seeds: int, restarts: int, network: Network, lots: Callable[..., Lot], ledger: Ledger
) -> Found:
    """All methods on `lots` of each number of workers and seed, which are made where something is not yet known."""
    lots = functools.lru_cache(1)(lots)
    found: Found = {}
    for s, workers, name in product(range(seeds), _workers(quick), compared(quick)):
        key = f"{title}, {workers} workers, seed {s}, {restarts} starts: {name}"
        told = ledger.of(key, lambda n=name, w=workers, s=s: measured(n, lots(w, s), network, restarts, s))
        found.setdefault((name, workers), []).append(told)
    return found


def _first_setup(seed: int, quick: bool, ledger: Ledger) -> list[Part]:
    title, (seeds, restarts) = f"Setup (1) from {seed}", (1, 2) if quick else (5, 10)
    found = _measure(title, quick, seeds, restarts, small_network(), lambda w, s: points(w, [5 + seed, w, s]), ledger)
    says = (
        "tied, groups and pooled are not in the paper. They give each task one truth for all its answers, and reach "
        "what true labels reach, however few answers a worker gave; tied needs no worker ids.",
        "DL-EM falls with many workers, whether it stops early or not: a few answers do not make a matrix.",
        f"Means of {seeds} seed(s): new points, crowd and networks each; {restarts} starts for DL-EM and "
        "CMM, the one of the highest objective kept.",
    )
    told = (
        "I-JS: how far workers' matrices are from the true ones (0 to 1); ARI: how well groups are found (1: all).",
        "CMM does not find the groups it was made for: the data know its matrices by their sum alone.",
    )
    shown = functools.partial(_by_workers, found)
    return [
        Part.of("Table 2, Setup (1): test accuracy (percent) by the number of workers", shown("test", 0), says, 2),
        Part.of("Setup (1): I-JS", shown("I-JS"), told[:1]),
        Part.of("Setup (1): adjusted Rand index of groups", shown("ARI"), told[1:], 2),
        Part.of("Setup (1): seconds of one core for a fit with all its starts", shown("seconds"), (), 1),
    ]


def _by_workers(found: Found, figure: str, setup: int | None = None) -> list[dict[str, Any]]:
    """A row a method with a column a number of workers, and, of a setup of the paper, its own figures below."""
    rows: list[dict[str, Any]] = []
    workers = list(dict.fromkeys(count for _, count in found))
    for name in METHODS:
        cells = {str(w): mean(found.get((name, w), []), figure) for w in workers}
        if all(value is None for value in cells.values()):
            continue
        rows.append({"method": name, **cells})
        if setup is not None and name in PAPER:
            theirs = dict(zip(WORKERS, PAPER[name][setup], strict=True))
            rows.append({"method": f"{name} in the paper", **{str(w): theirs[w] for w in workers}})
    return rows


def images(data: Path, count: int) -> tuple[Any, Any, Any, Any]:
    """Features and classes of `count` images to learn from, and of those to be told."""
    found = []
    for folder, file in IMAGES.items():
        _, X, names = labelled(data / folder, file, "hog_pca")
        found += [X.astype(np.float32), np.unique(names, return_inverse=True)[1]]
    X, truth, new, new_truth = found
    return X[:count], truth[:count], new, new_truth


def _second_setup(data: Path, seed: int, quick: bool, ledger: Ledger) -> Part:
    count = 3_000 if quick else 50_000
    X, truth, new, new_truth = images(data, count)
    network = Network(hidden=128, dropout=0.5, epochs=50, batch_size=256, weight_decay=0.0, holdout=0.0)

    @functools.cache
    def matrices() -> Any:
        return perturbed(X, truth, NOISE, seed=seed, **{**network.get_params(), "dropout": 0.0, "epochs": 30})

    def lots(workers: int, s: int) -> Lot:
        shares, drawn = (0.20, 0.45, 0.15, 0.20), [6 + seed, workers, s]
        sim = levels(truth, matrices(), shares, workers=workers, per_task=3, features=X, seed=drawn)
        return Lot.of(sim, 0)._replace(new=new, new_truth=new_truth)

    title = f"Setup (2) from {seed}, {count} images"
    found = _measure(title, quick, 1, 1, network, lots, ledger)
    noise = ", ".join(f"{size:g}" for size in NOISE)
    says = (
        f"Ours: gradients and colours of {count} images, a network of one layer; the paper's: a deep network "
        "on the images. So Ideal is what could be reached here.",
        f"Levels of ability are those of a network taught the truth, its weights disturbed by noise of {noise} "
        "standard deviations; the paper does not tell its own.",
    )
    title = "Table 2, Setup (2): test accuracy (percent) by the number of workers"
    return Part.of(title, _by_workers(found, "test", 1), says, 2)


def _figure(seed: int, quick: bool, ledger: Ledger) -> tuple[Part, Scaling]:
    """Figure 3: what a sweep takes, by the number of workers."""
    rows, growth = [], []
    for name in COMPARED:
        for workers in _workers(quick):
            cost = ledger.of(f"Figure 3 from {seed}, {workers} workers: {name}", _cost, name, workers, seed)
            rows.append(Cost(name, workers, cost["seconds"] or 0.0, cost["megabytes"] or 0.0))
        own = [row.megabytes for row in rows if row.method == name]
        growth.append(f"{name} {own[-1] / max(own[0], 1e-9):.1f}")
    says = (
        f"Memory grew, from {WORKERS[0]} workers to {WORKERS[-1]}, by factors of {', '.join(growth)}: "
        "ours keeps what workers did and no table of workers x classes^2, so that DL-EM does not die as the paper's "
        "did at 16 GB."
    )
    title = "Figure 3: time of a sweep, and memory of a fit above its data, by the number of workers"
    heads = ["method", "workers", "seconds a sweep", "MB"]
    part = Part.of(title, [tuple(vars(cost).values()) for cost in rows], (says,), 3, heads)
    return part, Scaling(says, list(COMPARED), rows)


def _cost(name: str, workers: int, seed: int) -> Figures:
    """Seconds of a sweep, by two fits that differ in their number, so that what is done once does not count; and the
    peak of what the short one takes."""
    few, more = 3, 12  # sweeps
    lot = points(workers, [5 + seed, workers, 0], fresh=3)
    short, long = ({"max_iter": n, "early": 0.0, "tol": 0.0} for n in (few, few + more))
    fitted(name, lot, small_network(), 1, 0, **short)  # what is loaded once
    took = [min(measured(name, lot, small_network(), 1, 0, **n)["seconds"] or 0.0 for _ in "ab") for n in (short, long)]
    tracemalloc.start()
    try:
        fitted(name, lot, small_network(), 1, 0, **short)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"seconds": max(took[1] - took[0], 0.0) / more, "megabytes": peak / 1e6}


def _files(out: Path, seed: int, scaling: Scaling) -> tuple[Path, Path]:
    """A page of Setup (1) by `groups`: matrices of groups and of single workers beside the true ones, and Figure 3."""
    lot = points(WORKERS[0], [5 + seed, WORKERS[0], 0], fresh=3)
    result = fitted("groups", lot, small_network(), 1, 0).result_
    against = evaluate({"groups": result}, lot.labels)
    page = write_report(result, out / "groups.html", models=(), check=False, judged=against, scaling=scaling)
    return page, write_whole(out / "groups-scaling.csv", pl.DataFrame([vars(cost) for cost in scaling.rows]).write_csv)
