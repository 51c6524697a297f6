"""Tables 3 and 4 of the study of groups: LabelMe, with its workers known (Individual) and not (Global)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..answers import Labels
from ..learn import Network
from ..result.groups import group_table
from .ledger import Figures, Ledger, mean
from .methods import METHODS, Lot, fitted, measured
from .study import Part

if TYPE_CHECKING:
    from .groups import Effort

# Train and test accuracy, I-JS and G-JS; then train, test and G-JS where workers are not known.
PAPER: dict[str, tuple[float | None, ...]] = {
    "softMV": (83.32, 81.69, 0.216, 0.024, 83.32, 81.69, 0.024),
    "hardMV": (80.34, 79.95, 0.225, 0.035, 80.34, 79.95, 0.035),
    "DL-DS": (84.30, 83.57, 0.153, 0.036, 12.63, 14.08, 0.473),
    "DL-EM": (85.18, 83.07, 0.295, 0.259, 78.02, 75.92, 0.467),
    "CMM": (84.58, 83.10, 0.234, 0.054, 84.58, 83.10, 0.054),
    "Ideal": (97.90, 92.09, None, None, None, None, None),
}
TABLE_4 = ((0.99, 0.91, 0.48), (0.01, 0.02, 2.08), (0.00, 0.03, 2.08))  # share, similarity, entropy
GLOBAL = ("DL-DS", "DL-EM", "tied", "CMM")
SHOWN = ("train", "test", "I-JS", "G-JS", "sweeps")


def needed() -> tuple[str, ...]:
    return tuple(f"labelme/{name}" for name in ("answers.parquet", "features.npz", "truth.parquet"))


def network() -> Network:
    """The paper's: features as they are."""
    return Network(hidden=128, dropout=0.5, epochs=50, weight_decay=0.0, holdout=0.0, scale=False)


def lots(data: Path) -> tuple[Lot, Lot]:
    """LabelMe with its workers, and as if every answer came from another."""
    folder = data / "labelme"
    truth = pl.read_parquet(folder / "truth.parquet")
    label, split = (dict(truth.select("task", each).rows()) for each in ("label", "split"))
    arrays = np.load(folder / "features.npz")
    tasks = arrays["task"].tolist()
    part = np.array([split[task] for task in tasks])
    names, number = np.unique([label[task] for task in tasks], return_inverse=True)
    train, test = np.flatnonzero(part == "train"), np.flatnonzero(part == "test")
    place = {tasks[row]: n for n, row in enumerate(train)}
    answers = pl.read_parquet(folder / "answers.parquet").filter(pl.col("task").is_in(list(place)))
    at = np.array([place[task] for task in answers["task"].to_list()])
    X = arrays["vgg16_avg"].astype(np.float32)
    made = [
        Lot(X[train], Labels(at, who, answers["label"]), number[train], X[test], number[test])
        for who in (answers["worker"], np.arange(len(at)))
    ]
    assert made[0].answers.classes.to_list() == names.tolist()
    return made[0], made[1]


def tables(data: Path, effort: Effort, seed: int, ledger: Ledger) -> list[Part]:
    known, unknown = lots(data)
    found: dict[tuple[str, str], list[Figures]] = {}
    for s in range(effort.labelme_seeds):
        for name in effort.methods:
            for title, lot in (("Individual", known), ("Global", unknown)):
                if title == "Global" and name not in GLOBAL:
                    continue
                settings = {"start": "random"} if name == "CMM" else {}
                key = f"LabelMe, {title}, seed {seed}.{s}, {effort.labelme_restarts} starts: {name}"

                def measure(name: str = name, lot: Lot = lot, s: int = s, settings: Any = settings) -> Figures:
                    return measured(name, lot, network(), effort.labelme_restarts, seed + s, **settings)

                found.setdefault((name, title), []).append(ledger.of(key, measure))
    says = (
        "To stop as early as the paper did is no loss to DL-EM here.",
        "CMM is started as its authors did here, by weights drawn for its groups.",
        "Without workers, CMM is as with them; so is tied, whose single truth a task needs no worker ids.",
    )
    title = f"Table 3: LabelMe, means of {effort.labelme_seeds} seed(s)"
    return [Part(title, _table(found), says, 3), _groups(known, effort, seed, ledger)]


def _table(found: dict[tuple[str, str], list[Figures]]) -> pl.DataFrame:
    rows = []
    for (name, title), figures in found.items():
        cells = {each: mean(figures, each) for each in SHOWN}
        if title == "Global":
            cells["I-JS"] = None
        theirs = PAPER.get(name, (None,) * 7)
        paper = theirs[:4] if title == "Individual" else (theirs[4], theirs[5], None, theirs[6])
        beside = dict(zip(("paper's train", "paper's test", "paper's I-JS", "paper's G-JS"), paper, strict=True))
        rows.append({"workers": title, "method": name, **cells, **beside})
    order = {name: n for n, name in enumerate(METHODS)}
    rows.sort(key=lambda row: (row["workers"] == "Global", order[str(row["method"])]))
    return pl.DataFrame(rows, infer_schema_length=None)


def _groups(lot: Lot, effort: Effort, seed: int, ledger: Ledger) -> Part:
    """Table 4: the matrices that CMM parts the crowd's into."""

    def measure(start: str) -> Figures:
        result = fitted("CMM", lot, network(), effort.labelme_restarts, seed, start=start).result_
        found = result.model.grouping(result.params)
        assert found is not None
        rows = group_table(found).select("share", "similarity", "entropy").rows()
        return {f"{m} {what}": value for m, row in enumerate(rows) for what, value in zip("abc", row, strict=True)}

    rows = []
    for start in ("k-means", "random"):
        key = f"Table 4, seed {seed}, {effort.labelme_restarts} starts: CMM started by {start}"
        told = ledger.of(key, lambda start=start: measure(start))  # type: ignore[misc]
        for m, theirs in enumerate(TABLE_4):
            ours = [told[f"{m} {what}"] for what in "abc"]
            rows.append((start, m + 1, *(each for pair in zip(ours, theirs, strict=True) for each in pair)))
    heads = ["start", "group", "share", "paper's", "similarity", "paper's similarity", "entropy", "paper's entropy"]
    says = (
        "How the crowd's matrix falls into three is the start's doing: the data know the sum of the parts alone.",
        "Similarity is 1 minus the Jensen-Shannon divergence from the identity in bits; by it an even matrix of eight "
        "classes has 0.28, not the 0.02 of the paper, whose scale is not told.",
    )
    return Part("Table 4: groups of CMM on LabelMe", pl.DataFrame(rows, schema=heads, orient="row"), says, 2)
