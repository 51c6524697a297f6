"""The study of groups (Mena and Nanculef, `Revisiting Machine Learning from Crowds: a Mixture Model for Grouping
Annotations`, 2019), measured again.

Setup (1) is simulated. Setup (2) uses features of CIFAR-10 images, or the images themselves. Tables 3 and 4 need
LabelMe.
"""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable, Sequence
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
from .cifar10 import Cifar10, read_cifar10
from .labelme import figures, required_files, tables
from .methods import METHODS, QUICK_EPOCHS, Dataset, compared, fit_method, measure_method
from .study import (
    Layer,
    Measurement,
    MeasurementCache,
    Part,
    Study,
    StudyOptions,
    draw,
    mean,
    read_labelled,
    require_files,
)

WORKERS = (100, 500, 1500, 3500, 6000, 10000)
QUICK_WORKERS = (100, 1500)
PAPER = {  # test accuracy by number of workers, Setups (1) and (2); None: out of memory
    "softMV": ((69.34, 66.21, 66.87, 68.48, 67.00, 66.49), (63.35, 65.90, 63.59, 60.07, 63.21, 64.20)),
    "hardMV": ((79.57, 82.49, 80.51, 81.57, 74.30, 79.07), (71.09, 69.50, 68.48, 69.09, 70.08, 66.01)),
    "DL-DS": ((94.66, 93.89, 92.28, 90.00, 89.69, 85.13), (71.33, 68.49, 68.08, 66.86, None, None)),
    "DL-EM": ((93.97, 93.99, 92.18, 88.27, 76.47, 67.01), (81.38, 80.42, 77.81, 69.81, None, None)),
    "CMM": ((90.53, 91.07, 91.66, 90.45, 90.26, 90.46), (78.83, 78.36, 79.35, 77.92, 78.45, 78.96)),
    "Ideal": ((94.75,) * 6, (83.77,) * 6),
}
NOISE = (0.1, 0.5, 0.8, 3.0)  # turns a network into experts, inexperts, highly inexperts and spammers
IMAGE_NOISE = (0.1, 0.2, 0.3, 3.0)  # the same for a convolutional network
QUICK_ERRORS = (0.1, 0.3, 0.5, 1.0)  # of the levels in a quick study of images: shares of random labels
TEST_POINTS = 8190  # ten times as many as in the paper, to reduce sampling noise
IMAGES = {"cifar10n": "features.npz", "cifar10h_counts": "features_hog.npz"}
IMAGE_WORKERS = (100, 1500, 10000)  # of Setup (2) with images
NOT_FOR_IMAGES = ("CMM, to the end", "CMM, one group", "pooled")  # methods left out of Setup (2) with images
SHARES = (0.20, 0.45, 0.15, 0.20)  # of the levels of ability in Setup (2)
COMPARED = ("DL-EM", "CMM", "tied", "groups")  # in Figure 3
Measurements = dict[tuple[str, int], list[Measurement]]  # by method and number of workers, one entry per seed


def groups(options: StudyOptions) -> Study:
    """Tables 2, 3 and 4 and Figure 3; `data` is the folder that holds cifar10n, cifar10h_counts and labelme."""
    data, out, seed, _, quick, *_ = options
    if data is not None:
        needed = [f"{folder}/{each}" for folder, file in IMAGES.items() for each in (file, "truth.parquet")]
        hint = f". {option('data')} must be the folder that holds cifar10n, cifar10h_counts and labelme"
        require_files(data, (*needed, *required_files()), hint)
    pixels = None if options.images is None else read_cifar10(options.images)
    cache = options.cache("groups")
    parts = _first_setup(seed, quick, cache)
    if data is not None:
        parts += [_second_setup(data, seed, quick, cache), *tables(data, seed, quick, cache)]
    if pixels is not None:
        parts.append(_image_setup(pixels, seed, quick, cache))
    costs, scaling = _figure(seed, quick, cache)
    files = [] if out is None else _files(out, seed, scaling)
    if data is not None and out is not None:
        files += figures(data, out, seed, quick)
    return Study("groups", (*parts, costs), tuple(files), cache.seconds)


def small_network(quick: bool = False) -> Network:
    """The network of Setup (1)."""
    return Network(hidden=16, dropout=0.2, epochs=QUICK_EPOCHS if quick else 50, weight_decay=0.0, holdout=0.0)


def simulated_points(workers: int, seed: Any, fresh: int = TEST_POINTS) -> Dataset:
    """Setup (1): three Gaussians, labelled by a crowd of three levels of ability."""
    return Dataset.from_crowd(triangle(workers, fresh=fresh, seed=seed), fresh)


def _measure_all(
    title: str,
    sizes: tuple[int, ...],
    names: Sequence[str],
    seeds: int,
    restarts: int,
    network: Network,
    make_dataset: Callable[..., Dataset],
    cache: MeasurementCache,
    same_points: bool = False,
) -> Measurements:
    """Measure all methods for each seed and number of workers; datasets are made only if a measurement is missing.

    With `same_points`, only the answers depend on the number of workers, not the points.
    """
    make_dataset = functools.lru_cache(1)(make_dataset)
    measurements: Measurements = {}
    for s, workers, name in product(range(seeds), sizes, names):
        asked = sizes[0] if same_points and name == "Ideal" else workers  # it does not depend on the answers
        key = f"{title}, {asked} workers, seed {s}, {restarts} starts: {name}"
        found = cache.measure(
            key, lambda n=name, w=asked, s=s: measure_method(n, make_dataset(w, s), network, restarts, s)
        )
        measurements.setdefault((name, workers), []).append(found)
    return measurements


def _first_setup(seed: int, quick: bool, cache: MeasurementCache) -> list[Part]:
    title, (seeds, restarts) = f"Setup (1) from {seed}", (1, 1) if quick else (5, 10)

    def make_dataset(workers: int, s: int) -> Dataset:
        return simulated_points(workers, [5 + seed, workers, s])

    sizes, names = QUICK_WORKERS[-1:] if quick else WORKERS, compared(quick)
    found = _measure_all(title, sizes, names, seeds, restarts, small_network(quick), make_dataset, cache)
    notes = (
        "tied, groups and pooled are not in the paper. They assume one true class per task for all its answers, and "
        "reach the accuracy of true labels (Ideal) even with few answers per worker; tied needs no worker ids.",
        "DL-EM loses accuracy with many workers, with or without early stopping: a few answers are not enough to "
        "estimate a confusion matrix.",
        f"Means over {seeds} seed(s), each with new points, crowd and networks. DL-EM and CMM are started {restarts} "
        "times; the start with the highest objective counts.",
    )
    measures = (
        "I-JS: Jensen-Shannon divergence (bits) between the estimated and true confusion matrices, mean over workers; "
        "0 is best, 1 is worst.",
        "Adjusted Rand index: 1 if all groups are recovered, 0 by chance. CMM does not recover its groups: the data "
        "identify only the weighted sum of its matrices.",
    )
    table = functools.partial(_by_workers, found)
    return [
        Part.of("Table 2, Setup (1): test accuracy (percent) by number of workers", table("test", 0), notes, 2),
        Part.of("Setup (1): I-JS by number of workers", table("I-JS"), measures[:1]),
        Part.of("Setup (1): adjusted Rand index of groups by number of workers", table("ARI"), measures[1:], 2),
        Part.of("Setup (1): seconds of a fit with all its starts, one core", table("seconds"), (), 1),
    ]


def _by_workers(found: Measurements, column: str, setup: int | None = None) -> list[dict[str, Any]]:
    """One row per method and one column per number of workers; with `setup`, the paper's numbers follow each method."""
    rows: list[dict[str, Any]] = []
    workers = list(dict.fromkeys(count for _, count in found))
    for name in METHODS:
        cells = {str(w): mean(found.get((name, w), []), column) for w in workers}
        if all(value is None for value in cells.values()):
            continue
        rows.append({"method": name, **cells})
        if setup is not None and name in PAPER:
            paper = dict(zip(WORKERS, PAPER[name][setup], strict=True))
            rows.append({"method": f"{name} in the paper", **{str(w): paper[w] for w in workers}})
    return rows


def images(data: Path, count: int) -> tuple[Any, Any, Any, Any]:
    """Features and classes of `count` training images, and of all test images."""
    arrays = []
    for folder, file in IMAGES.items():
        _, X, names = read_labelled(data / folder, file, "hog_pca")
        arrays += [X.astype(np.float32), np.unique(names, return_inverse=True)[1]]
    X, truth, X_test, test_truth = arrays
    return X[:count], truth[:count], X_test, test_truth


def _labelled(
    X: Any, truth: Any, X_test: Any, test_truth: Any, matrices: Callable[[], Any], seed: int
) -> Callable[[int, int], Dataset]:
    """Return a function that labels the training rows by a crowd of a size, from a seed; `matrices` are its levels."""

    def make_dataset(workers: int, s: int) -> Dataset:
        sim = levels(truth, matrices(), SHARES, workers=workers, per_task=3, features=X, seed=[6 + seed, workers, s])
        return Dataset.from_crowd(sim, 0)._replace(X_test=X_test, test_truth=test_truth)

    return make_dataset


def _second_setup(data: Path, seed: int, quick: bool, cache: MeasurementCache) -> Part:
    count, epochs = (500, QUICK_EPOCHS) if quick else (50_000, 50)
    X, truth, X_test, test_truth = images(data, count)
    network = Network(hidden=128, dropout=0.5, epochs=epochs, batch_size=256, weight_decay=0.0, holdout=0.0)

    @functools.cache
    def matrices() -> Any:
        return perturbed(X, truth, NOISE, seed=seed, **{**network.get_params(), "dropout": 0.0, "epochs": 30})

    make_dataset = _labelled(X, truth, X_test, test_truth, matrices, seed)
    title = f"Setup (2) from {seed}, {count} images"
    sizes = QUICK_WORKERS[-1:] if quick else WORKERS
    found = _measure_all(title, sizes, compared(quick), 1, 1, network, make_dataset, cache, same_points=True)
    noise = ", ".join(f"{size:g}" for size in NOISE)
    notes = (
        f"Here a network with one hidden layer learns from gradients and colours of {count} images; the paper trains a "
        "deep network on the images. The row Ideal shows what can be reached here.",
        "The levels of ability come from a network trained on the truth, with noise added to its weights "
        f"({noise} standard deviations); the paper does not give its own noise.",
    )
    title = "Table 2, Setup (2): test accuracy (percent) by number of workers"
    return Part.of(title, _by_workers(found, "test", 1), notes, 2)


def _image_setup(pixels: Cifar10, seed: int, quick: bool, cache: MeasurementCache) -> Part:
    """Setup (2) with a convolutional network on the images."""
    count, epochs = (300, 1) if quick else (10_000, 20)
    X, X_test = (each.transpose(0, 3, 1, 2).astype(np.float32) / 255 for each in (pixels.X[:count], pixels.X_test))
    X_test, test_truth = (X_test[:500], pixels.test_truth[:500]) if quick else (X_test, pixels.test_truth)
    truth, network = pixels.truth[:count], convolutional_network(seed, epochs)

    @functools.cache
    def matrices() -> Any:
        if quick:  # a network of one epoch would give only some of the labels
            return np.stack([(1 - share) * np.eye(10) + share / 10 for share in QUICK_ERRORS])
        return perturbed(X, truth, IMAGE_NOISE, seed=seed, **network.get_params())

    make_dataset = _labelled(X, truth, X_test, test_truth, matrices, seed)
    title = f"Setup (2) from {seed}, {count} images by a convolutional network"
    sizes = IMAGE_WORKERS[:1] if quick else IMAGE_WORKERS
    names = [name for name in compared(quick) if name not in NOT_FOR_IMAGES]
    found = _measure_all(title, sizes, names, 1, 1, network, make_dataset, cache, same_points=True)
    noise = ", ".join(f"{size:g}" for size in IMAGE_NOISE)
    notes = (
        f"A network with four convolutions learns from {count} images; in the paper there are 50,000. One seed and one "
        f"start. Networks trained on fixed labels have {epochs} epochs; others have one in each iteration.",
        "The levels of ability err at random." if quick else
        "The levels of ability come from the same network trained on the truth, with noise added to its weights "
        f"({noise} standard deviations).",
    )  # fmt: skip
    title = "Table 2, Setup (2) with a convolutional network: test accuracy (percent) by number of workers"
    return Part.of(title, _by_workers(found, "test", 1), notes, 2)


def convolutional_network(seed: int, epochs: int) -> Network:
    """A small convolutional network for images of 32 x 32 pixels and ten classes, with weights drawn from the seed."""
    import torch
    from torch import nn

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for wide, wider in ((3, 32), (32, 48), (48, 64), (64, 64)):
            layers += [nn.Conv2d(wide, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU(), nn.MaxPool2d(2)]
        head = nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)
        module = nn.Sequential(*layers, *head)
    return Network(
        module, epochs=epochs, batch_size=128, weight_decay=0.0, holdout=0.0, precision="bfloat16", threads=1
    )


def _figure(seed: int, quick: bool, cache: MeasurementCache) -> tuple[Part, Scaling]:
    """Figure 3: time and memory by number of workers."""
    rows, growth = [], []
    names = [name for name in COMPARED if name in compared(quick)]
    for name in names:
        for workers in QUICK_WORKERS if quick else WORKERS:
            few, more = (2, 4) if quick else (3, 12)
            key = f"Figure 3 from {seed}, {workers} workers, {more} iterations: {name}"
            cost = cache.measure(key, _cost, name, workers, seed, few, more)
            rows.append(Cost(name, workers, cost["seconds"] or 0.0, cost["megabytes"] or 0.0))
        memory = [row.megabytes for row in rows if row.method == name]
        growth.append(f"{name} {memory[-1] / max(memory[0], 1e-9):.1f}")
    note = (
        f"From {rows[0].workers} to {rows[-1].workers} workers, memory grows by these factors: {', '.join(growth)}. "
        "Confusions are stored only for the labels that a worker gave, not as a dense array of workers x classes^2, so "
        "DL-EM does not run out of memory as it did in the paper (16 GB)."
    )
    title = "Figure 3: seconds per iteration, and memory of a fit beyond its data, by number of workers"
    heads = ["method", "workers", "seconds per iteration", "MB"]
    part = Part.of(title, [tuple(vars(cost).values()) for cost in rows], (note,), 3, heads)
    return part, Scaling(note, names, rows)


def _cost(name: str, workers: int, seed: int, few: int, more: int) -> Measurement:
    """Seconds per iteration and peak memory in megabytes.

    The time is the difference of a fit with `few` iterations and one with `more` in addition, so that the set-up
    cancels. Memory is that of the short fit.
    """
    dataset = simulated_points(workers, [5 + seed, workers, 0], fresh=3)
    short, long = ({"max_iter": n, "early": 0.0, "tol": 0.0} for n in (few, few + more))
    fit_method(name, dataset, small_network(), 1, 0, **short)  # imports and compiles
    seconds = [
        min(measure_method(name, dataset, small_network(), 1, 0, **settings)["seconds"] or 0.0 for _ in range(2))
        for settings in (short, long)
    ]
    tracemalloc.start()
    try:
        fit_method(name, dataset, small_network(), 1, 0, **short)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {"seconds": max(seconds[1] - seconds[0], 0.0) / more, "megabytes": peak / 1e6}


def _files(out: Path, seed: int, scaling: Scaling) -> list[Path]:
    """Write a page of `groups` on Setup (1), with true confusion matrices and Figure 3, and the figure alone."""
    dataset = simulated_points(WORKERS[0], [5 + seed, WORKERS[0], 0], fresh=3)
    result = fit_method("groups", dataset, small_network(), 1, 0).result_
    against = evaluate({"groups": result}, dataset.labels)
    page = write_report(result, out / "groups.html", judged=against, scaling=scaling)
    table = pl.DataFrame([vars(cost) for cost in scaling.rows])
    drawn = []
    for letter, column, unit in (("a", "seconds", "seconds per iteration"), ("b", "megabytes", "memory of a fit, MB")):
        layers = [
            Layer(name, table.filter(pl.col("method") == name).select("workers", column).to_numpy().astype(float), k)
            for k, name in enumerate(scaling.methods)
        ]
        title = f"Figure 3 ({letter}): {unit}, by number of annotators"
        drawn.append(draw(out / f"groups-figure3{letter}.svg", title, "annotators", unit, layers, 300, from_zero=True))
    return [page, write_whole(out / "groups-scaling.csv", table.write_csv), *drawn]
