"""Tables 3 and 4 of the study of groups: LabelMe with worker ids (Individual) and without (Global)."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from ..answers import Labels
from ..kernels.special import divergence as js_divergence
from ..learn import Network
from ..learn.cmm import MAX_TRIED_GROUPS
from ..result.groups import group_table
from .figures import draw_matrices
from .methods import METHODS, QUICK_EPOCHS, Dataset, compared, count_confusions, fit_method, measure_method
from .study import Measurement, MeasurementCache, Part, mean, read_labelled

# Train and test accuracy, I-JS and G-JS; then train, test and G-JS without worker ids.
PAPER: dict[str, tuple[float | None, ...]] = {
    "softMV": (83.32, 81.69, 0.216, 0.024, 83.32, 81.69, 0.024),
    "hardMV": (80.34, 79.95, 0.225, 0.035, 80.34, 79.95, 0.035),
    "DL-DS": (84.30, 83.57, 0.153, 0.036, 12.63, 14.08, 0.473),
    "DL-EM": (85.18, 83.07, 0.295, 0.259, 78.02, 75.92, 0.467),
    "CMM": (84.58, 83.10, 0.234, 0.054, 84.58, 83.10, 0.054),
    "Ideal": (97.90, 92.09, None, None, None, None, None),
}
TABLE_4 = ((0.99, 0.91, 0.48), (0.01, 0.02, 2.08), (0.00, 0.03, 2.08))  # share, similarity, entropy in nats
CROWDS = ("Individual", "Global")
MIN_SHOWN_ANSWERS = 30  # of a worker in Figure 2
GLOBAL = ("DL-DS", "DL-EM", "tied", "CMM")
COLUMNS = ("train", "test", "I-JS", "G-JS", "iterations", "seconds")


def required_files() -> tuple[str, ...]:
    """Files that the data folder must hold."""
    return tuple(f"labelme/{name}" for name in ("answers.parquet", "features.npz", "truth.parquet"))


def network(quick: bool = False) -> Network:
    """The paper's network, without scaling of the features."""
    return Network(
        hidden=128, dropout=0.5, epochs=QUICK_EPOCHS if quick else 50, weight_decay=0.0, holdout=0.0, scale=False
    )


def n_starts(quick: bool) -> int:
    """Random starts of a method that has several."""
    return 1 if quick else 10


def datasets(data: Path) -> tuple[Dataset, Dataset]:
    """LabelMe with its worker ids, and as if every answer came from a different worker."""
    folder = data / "labelme"
    tasks, X, label = read_labelled(folder, "features.npz", "vgg16_avg")
    split = dict(pl.read_parquet(folder / "truth.parquet").select("task", "split").rows())
    part = np.array([split[task] for task in tasks])
    names, number = np.unique(label, return_inverse=True)
    train, test = np.flatnonzero(part == "train"), np.flatnonzero(part == "test")
    row_of = {tasks[row]: n for n, row in enumerate(train)}
    answers = pl.read_parquet(folder / "answers.parquet").filter(pl.col("task").is_in(list(row_of)))
    rows = np.array([row_of[task] for task in answers["task"].to_list()])
    X = X.astype(np.float32)
    with_ids, without_ids = (
        Dataset(X[train], Labels(rows, workers, answers["label"]), number[train], X[test], number[test])
        for workers in (answers["worker"], np.arange(len(rows)))
    )
    assert with_ids.answers.classes.to_list() == names.tolist()
    return with_ids, without_ids


def tables(data: Path, seed: int, quick: bool, cache: MeasurementCache) -> list[Part]:
    """Tables 3 and 4."""
    with_ids, without_ids = datasets(data)
    seeds, restarts = 1 if quick else 3, n_starts(quick)
    measurements: dict[tuple[str, str], list[Measurement]] = {}
    for s, name, title in product(range(seeds), compared(quick), CROWDS):
        if title == "Global" and name not in GLOBAL:
            continue
        dataset = with_ids if title == "Individual" else without_ids
        settings = {"start": "random"} if name.startswith("CMM") else {}
        key = f"LabelMe, {title}, seed {seed}.{s}, {restarts} starts: {name}"
        found = cache.measure(key, measure_method, name, dataset, network(quick), restarts, seed + s, **settings)
        measurements.setdefault((name, title), []).append(found)
    notes = (
        "Individual: with worker ids. Global: without, as if every answer came from a different worker.",
        "Stopping DL-EM as early as the paper did costs no accuracy here.",
        f"CMM starts from random group weights, as in the authors' code. DL-EM, CMM and CMM with one group have "
        f"{restarts} start(s), the other rows one.",
        "CMM and tied need no worker ids: they have the same accuracy with and without.",
    )
    title = f"Table 3: LabelMe, means of {seeds} seed(s)"
    order = [(name, crowd) for crowd, name in product(CROWDS, METHODS)]
    rows = [_row(*key, measurements[key]) for key in order if key in measurements]
    table = Part.of(title, rows, notes, 3)
    return [table, _groups(with_ids, quick, seed, cache), _by_groups(with_ids, quick, seed, cache)]


def _row(name: str, title: str, measurements: list[Measurement]) -> dict[str, float | str | None]:
    cells = {column: mean(measurements, column) for column in COLUMNS}
    train, test, individual, crowd, *without_ids = PAPER.get(name, (None,) * 7)
    if title == "Global":
        cells["I-JS"], individual = None, None
        train, test, crowd = without_ids
    paper = {"paper's train": train, "paper's test": test, "paper's I-JS": individual, "paper's G-JS": crowd}
    return {"workers": title, "method": name, **cells, **paper}


def figures(data: Path, out: Path, seed: int, quick: bool) -> list[Path]:
    """Figures 1 and 2: the groups of CMM, and true and estimated confusion matrices of workers and of the crowd.

    CMM starts from k-means, which ends with shares like the paper's.
    """
    dataset = datasets(data)[0]
    result = fit_method("CMM", dataset, network(quick), n_starts(quick), seed, start="k-means").result_
    grouping = result.model.grouping(result.params)
    assert grouping is not None
    classes = [str(name) for name in result.answers.classes.to_list()]
    shares = enumerate(zip(grouping.share, grouping.matrices, strict=True), 1)
    groups = {f"group {m}, share {share:.2f}": matrix for m, (share, matrix) in shares}
    answers, known = result.answers, np.eye(len(classes))[dataset.truth]
    true, crowd = count_confusions(answers, known), count_confusions(answers, known, pooled=True)[0]
    estimated = np.einsum("wm,mkj->wkj", grouping.member, grouping.matrices)
    joint = np.einsum("m,mkj->kj", grouping.share, grouping.matrices)
    distance = js_divergence(true, estimated)
    often = np.flatnonzero(np.bincount(answers.codes()[1]) >= MIN_SHOWN_ANSWERS)
    best, worst = often[distance[often].argmin()], often[distance[often].argmax()]
    shown = {"best estimated worker": best, "worst estimated worker": worst}
    pairs = {
        f"{name}, {kind}": each[w] for name, w in shown.items() for kind, each in (("true", true), ("CMM", estimated))
    }
    return [
        draw_matrices(out / "groups-figure1.svg", "Figure 1: groups of CMM on LabelMe", classes, groups),
        draw_matrices(
            out / "groups-figure2.svg", "Figure 2: true and estimated confusion matrices on LabelMe", classes,
            {**pairs, "crowd, true": crowd, "crowd, CMM": joint}, "true class",
        ),
    ]  # fmt: skip


def _groups(dataset: Dataset, quick: bool, seed: int, cache: MeasurementCache) -> Part:
    """Table 4: the groups that CMM splits the crowd into."""
    restarts = n_starts(quick)

    def measure_groups(start: str) -> Measurement:
        result = fit_method("CMM", dataset, network(quick), restarts, seed, start=start).result_
        grouping = result.model.grouping(result.params)
        assert grouping is not None
        entropy = pl.col("entropy") * np.log(2)  # nats, as in the paper
        rows = group_table(grouping).select("share", "similarity", entropy).rows()
        return {f"{m} {letter}": value for m, row in enumerate(rows) for letter, value in zip("abc", row, strict=True)}

    rows = []
    for start in ("k-means", "random"):
        key = f"Table 4, seed {seed}, {restarts} starts: CMM started by {start}"
        found = cache.measure(key, measure_groups, start)
        for m, theirs in enumerate(TABLE_4):
            ours = [found[f"{m} {letter}"] for letter in "abc"]
            rows.append((start, m + 1, *(each for pair in zip(ours, theirs, strict=True) for each in pair)))
    heads = [
        "start", "group", "share", "paper's share", "similarity", "paper's similarity", "entropy", "paper's entropy",
    ]  # fmt: skip
    notes = (
        "How CMM splits the crowd's confusion matrix into three depends on the start: the data identify only their "
        "weighted sum.",
        "Similarity is 1 minus the Jensen-Shannon divergence (bits) from the identity matrix. A uniform matrix of "
        "eight classes has 0.28 on this scale; the paper has 0.02 and does not give its scale.",
    )
    return Part.of("Table 4: groups of CMM on LabelMe (entropy in nats)", rows, notes, 2, heads)


def _by_groups(dataset: Dataset, quick: bool, seed: int, cache: MeasurementCache) -> Part:
    """Choice of the number of groups by the log-likelihood, as in the paper."""
    restarts = n_starts(quick)

    def measure_likelihood(count: int) -> Measurement:
        result = fit_method("CMM", dataset, network(quick), restarts, seed, start="random", groups=count).result_
        likelihood = float(result.trace["objective"][-1]) - float(result.params.log_prior)
        return {"likelihood": likelihood, "largest": float(result.params.share.max())}

    rows = []
    for count in range(1, MAX_TRIED_GROUPS + 1):
        key = f"Groups by likelihood, seed {seed}, {restarts} starts: {count}"
        rows.append((count, *cache.measure(key, measure_likelihood, count).values()))
    notes = (
        "The paper chooses three groups, the number with the highest log-likelihood. The likelihood depends on the "
        "groups only through one matrix, so that these differences come from the starts and from early stopping.",
    )
    heads = ["groups", "log-likelihood", "share of the largest"]
    return Part.of("CMM on LabelMe: log-likelihood by number of groups", rows, notes, 2, heads)
