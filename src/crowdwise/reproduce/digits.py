"""MNIST with real answers of sorting jobs: Table 1 of the study of pairs, and what jobs matter; scores of clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Pairs
from ..engine import Run
from ..kernels.layout import Ints
from ..metrics import match_clusters
from ..pairs import BayesScdc, PairMixture, Scdc
from ..pairs.model import PairsModel
from ..result import PairsResult
from .study import Asked, Figures, Ledger, Part, mean, reading

SUBSET, FEW = 10_000, 2_000  # images of MNIST and CIFAR-10, unless all are asked for; and those of a quick study
TABLE1 = {  # accuracy, NMI and seconds an epoch, by method and whether there are answers
    ("scdc", False): (0.6592, 0.6953, 177.3), ("scdc", True): (0.8187, 0.7657, 201.7),
    ("bayes-scdc", False): (0.7764, 0.7944, 11.2), ("bayes-scdc", True): (0.8424, 0.812, 16.4),
}  # fmt: skip


class Digits(NamedTuple):
    """Images of digits, and real answers about some."""

    ids: Ints
    X: Any  # (N, 28, 28) bytes
    truth: pl.DataFrame  # item, label
    pairs: Pairs


def scored(model: PairsModel, pairs: Pairs, features: Any, truth: Any, seed: int) -> tuple[PairsResult, Figures]:
    """A fit, and its scores; clusters of five items or more are counted."""
    result = model.fit(pairs, features=features, run=Run(seed=seed))
    scores = match_clusters(result, truth)
    kept: Figures = {name: float(scores[name]) for name in ("accuracy", "nmi", "ami")}
    return result, kept | {"clusters": float((result.sizes["items"] >= 5).sum()), "seconds": result.seconds}


def _digits(asked: Asked, hits: bool = True) -> Digits:
    """All images that answers are about, and others at random."""
    with reading("mnist and mnist_pairs", asked.data) as data:
        with np.load(data / "mnist" / "features.npz", allow_pickle=False) as file:
            images, label = file["x_train"], file["y_train"].astype(np.int64)
        table = pl.read_parquet(data / "mnist_pairs" / "pairs.parquet")
    table = table.with_columns(pl.col("left", "right").cast(pl.Int64))
    told = np.unique(np.concatenate([table["left"].to_numpy(), table["right"].to_numpy()]))
    rng = np.random.default_rng([3, asked.seed])
    size = len(label) if asked.full else FEW if asked.quick else SUBSET
    rest = np.setdiff1d(np.arange(len(label)), told)
    some = told if len(told) <= size else np.sort(rng.choice(told, size // 2, replace=False))
    ids = np.sort(np.concatenate([some, rng.choice(rest, size - len(some), replace=False)]))
    pairs = Pairs(table if hits else table.drop("hit"), source="mnist_pairs").on(ids, "drop")
    return Digits(ids, images[ids], pl.DataFrame({"item": ids, "label": label[ids]}), pairs)


def mnist_part(asked: Asked, ledger: Ledger) -> Part:
    """Table 1, with our method beside it."""
    size = "all" if asked.full else FEW if asked.quick else SUBSET
    runs = 1 if asked.full else len(asked.seeds(1, 3))
    bayes, plain = (5, 1) if asked.quick else (30, 5)
    methods: list[tuple[PairsModel, bool, int, int | None]] = [  # whether there are answers, runs, epochs
        (BayesScdc(epochs=bayes), True, runs, bayes),
        (BayesScdc(epochs=bayes), False, runs, bayes),
        (Scdc(epochs=plain), True, 1, plain),
        (Scdc(epochs=plain), False, 1, plain),
        (PairMixture(space="graph"), True, runs, None),
    ]
    rows = []
    for model, told, count, epochs in methods:
        key = f"mnist {size} {model.name}{'' if told else ', no answers'}"
        found = ledger.runs(key, range(asked.seed, asked.seed + count), _read_digits, asked, model, told)
        paper = TABLE1.get((model.name, told), (None, None, None))
        row = {
            "method": model.name, "answers": "real" if told else "none", "accuracy": mean(found, "accuracy"),
            "paper's": paper[0], "nmi": mean(found, "nmi"), "paper's nmi": paper[1], "ami": mean(found, "ami"),
            "clusters": mean(found, "clusters"), "seconds": mean(found, "seconds"),
            "an epoch": None if epochs is None else (mean(found, "seconds") or 0.0) / epochs,
            "paper's epoch": paper[2], "runs": len(found),
        }  # fmt: skip
        rows.append(row)
    says = (
        f"{size} images; answers of 48 workers about 2,759 of them. The paper has 60,000 images, 200 epochs and the "
        "best of ten starts; here one start, 30 epochs of bayes-scdc after 20 of warming up, 5 of scdc.",
        "What the paper calls NMI is adjusted mutual information in its code: see ami. pair-mixture works on a graph "
        "embedding of the pixels.",
    )
    return Part.of("MNIST (Table 1)", rows, says, 3)


def _read_digits(asked: Asked, model: PairsModel, told: bool, seed: int) -> Figures:
    digits = _digits(asked._replace(seed=seed))
    pairs = digits.pairs if told else Pairs.none(digits.ids)
    result, figures = scored(model, pairs, (digits.ids, digits.X), digits.truth, seed)
    if asked.out is not None and told and seed == asked.seed:
        result.report(asked.out / f"mnist-{model.name}.html", pictures=digits.X)
    return figures


def job_part(asked: Asked, ledger: Ledger) -> Part:
    """The same answers, taken as independent and as those of sorting jobs."""
    rows = [
        {"answers": name, **ledger.of(f"mnist jobs {hits} seed {asked.seed}", _sorted, asked, hits)}
        for name, hits in (("jobs known", True), ("taken as independent", False))
    ]
    says = (
        "pair-mixture on the graph embedding. counted: what the 57,329 answers count for. asked: accuracy on images "
        "that answers are about; rest: on the others. sure: mean probability of the cluster of the images asked about. "
        "cover: share of workers whose own true sensitivity, specificity lie in their intervals.",
    )
    return Part.of("Answers of sorting jobs (mnist_pairs)", rows, says, 3)


def _sorted(asked: Asked, hits: bool) -> Figures:
    digits = _digits(asked, hits)
    result = PairMixture(space="graph").fit(digits.pairs, features=(digits.ids, digits.X), run=Run(seed=asked.seed))
    told = result.answers_of > 0
    out: Figures = {"counted": float(digits.pairs.weight.sum())}
    for name, rows in (("asked", told), ("rest", ~told)):
        out[name] = float(match_clusters(result, digits.truth.filter(pl.Series(rows)))["accuracy"])
    out["sure"] = float(result.params.chances[told, 0].mean())
    pairs, workers, label = digits.pairs, result.workers, digits.truth["label"].to_numpy()
    same = label[pairs.left] == label[pairs.right]
    for name, rows in (("sensitivity", same), ("specificity", ~same)):
        n = np.bincount(pairs.worker[rows], minlength=pairs.n_workers)
        right = np.bincount(pairs.worker[rows], (pairs.same == same)[rows], minlength=pairs.n_workers)
        low, high = (workers[f"{name}_{end}"].to_numpy() for end in ("low", "high"))
        true = right / np.maximum(n, 1)
        out[f"cover {name}"] = float(((low <= true) & (true <= high))[n > 0].mean())
    return out
