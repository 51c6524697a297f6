"""Tables 3 and 4 of the study of groups: LabelMe, with its workers known (Individual) and not (Global)."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from ..answers import Labels
from ..learn import Network
from ..result.groups import group_table
from .methods import METHODS, Lot, compared, fitted, measured
from .study import Figures, Ledger, Part, labelled, mean

# Train and test accuracy, I-JS and G-JS; then train, test and G-JS where workers are not known.
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
GLOBAL = ("DL-DS", "DL-EM", "tied", "CMM")
SHOWN = ("train", "test", "I-JS", "G-JS", "iterations")


def needed() -> tuple[str, ...]:
    """Files in the folder of data."""
    return tuple(f"labelme/{name}" for name in ("answers.parquet", "features.npz", "truth.parquet"))


def network() -> Network:
    """The paper's: features as they are."""
    return Network(hidden=128, dropout=0.5, epochs=50, weight_decay=0.0, holdout=0.0, scale=False)


def lots(data: Path) -> tuple[Lot, Lot]:
    """LabelMe with its workers, and as if every answer came from another."""
    folder = data / "labelme"
    tasks, X, label = labelled(folder, "features.npz", "vgg16_avg")
    split = dict(pl.read_parquet(folder / "truth.parquet").select("task", "split").rows())
    part = np.array([split[task] for task in tasks])
    names, number = np.unique(label, return_inverse=True)
    train, test = np.flatnonzero(part == "train"), np.flatnonzero(part == "test")
    place = {tasks[row]: n for n, row in enumerate(train)}
    answers = pl.read_parquet(folder / "answers.parquet").filter(pl.col("task").is_in(list(place)))
    at = np.array([place[task] for task in answers["task"].to_list()])
    X = X.astype(np.float32)
    known, unknown = (
        Lot(X[train], Labels(at, who, answers["label"]), number[train], X[test], number[test])
        for who in (answers["worker"], np.arange(len(at)))
    )
    assert known.answers.classes.to_list() == names.tolist()
    return known, unknown


def tables(data: Path, seed: int, quick: bool, ledger: Ledger) -> list[Part]:
    """Tables 3 and 4."""
    known, unknown = lots(data)
    seeds, restarts = (1, 1) if quick else (3, 10)
    found: dict[tuple[str, str], list[Figures]] = {}
    for s, name, title in product(range(seeds), compared(quick), CROWDS):
        if title == "Global" and name not in GLOBAL:
            continue
        lot = known if title == "Individual" else unknown
        settings = {"start": "random"} if name == "CMM" else {}
        key = f"LabelMe, {title}, seed {seed}.{s}, {restarts} starts: {name}"
        told = ledger.of(key, measured, name, lot, network(), restarts, seed + s, **settings)
        found.setdefault((name, title), []).append(told)
    says = (
        "To stop as early as the paper did is no loss to DL-EM here.",
        "CMM is started as its authors did here, by weights drawn for its groups.",
        "Without workers, CMM is as with them; so is tied, whose single truth a task needs no worker ids.",
    )
    title = f"Table 3: LabelMe, means of {seeds} seed(s)"
    order = [(name, crowd) for crowd, name in product(CROWDS, METHODS)]
    rows = [_row(*key, found[key]) for key in order if key in found]
    return [Part.of(title, rows, says, 3), _groups(known, restarts, seed, ledger)]


def _row(name: str, title: str, figures: list[Figures]) -> dict[str, float | str | None]:
    cells = {each: mean(figures, each) for each in SHOWN}
    train, test, single, whole, *of_unknown = PAPER.get(name, (None,) * 7)
    if title == "Global":
        cells["I-JS"], single = None, None
        train, test, whole = of_unknown
    paper = {"paper's train": train, "paper's test": test, "paper's I-JS": single, "paper's G-JS": whole}
    return {"workers": title, "method": name, **cells, **paper}


def _groups(lot: Lot, restarts: int, seed: int, ledger: Ledger) -> Part:
    """Table 4: the matrices that CMM parts the crowd's into."""

    def measure(start: str) -> Figures:
        result = fitted("CMM", lot, network(), restarts, seed, start=start).result_
        found = result.model.grouping(result.params)
        assert found is not None
        rows = (
            group_table(found).select("share", "similarity", pl.col("entropy") * np.log(2)).rows()
        )  # as in the paper: nats
        return {f"{m} {what}": value for m, row in enumerate(rows) for what, value in zip("abc", row, strict=True)}

    rows = []
    for start in ("k-means", "random"):
        told = ledger.of(f"Table 4, seed {seed}, {restarts} starts: CMM started by {start}", measure, start)
        for m, theirs in enumerate(TABLE_4):
            ours = [told[f"{m} {what}"] for what in "abc"]
            rows.append((start, m + 1, *(each for pair in zip(ours, theirs, strict=True) for each in pair)))
    heads = ["start", "group", "share", "paper's", "similarity", "paper's similarity", "entropy", "paper's entropy"]
    says = (
        "How the crowd's matrix falls into three is the start's doing: the data know the sum of the parts alone.",
        "Similarity is 1 minus the Jensen-Shannon divergence from the identity in bits; by it an even matrix of eight "
        "classes has 0.28, not the 0.02 of the paper, whose scale is not told.",
    )
    return Part.of("Table 4: groups of CMM on LabelMe", rows, says, 2, heads)
