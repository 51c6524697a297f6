"""MNIST with real answers of sorting jobs: Table 1 of the study of pairs, and what jobs matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Pairs
from ..engine import Run
from ..errors import FileError
from ..kernels.layout import Ints
from ..matching import match_clusters
from ..pairs import BayesScdc, PairMixture, PairsModel, Scdc
from .clustered import FEW, SUBSET, scored
from .ledger import Figures, Ledger, mean
from .study import Asked, Part

TABLE1 = {
    ("scdc", False): (0.6592, 0.6953, 177.3), ("scdc", True): (0.8187, 0.7657, 201.7),
    ("bayes-scdc", False): (0.7764, 0.7944, 11.2), ("bayes-scdc", True): (0.8424, 0.812, 16.4),
}  # fmt: skip


class Digits(NamedTuple):
    """Images of digits, and real answers about some."""

    ids: Ints
    X: Any  # (N, 28, 28) bytes
    label: Ints
    pairs: Pairs

    @property
    def truth(self) -> pl.DataFrame:
        return pl.DataFrame({"item": self.ids, "label": self.label})


def _digits(asked: Asked, hits: bool = True, count: int | None = None) -> Digits:
    """All images that answers are about, and others at random."""
    assert asked.data is not None
    try:
        with np.load(asked.data / "mnist" / "features.npz", allow_pickle=False) as file:
            images, label = file["x_train"], file["y_train"].astype(np.int64)
        table = pl.read_parquet(asked.data / "mnist_pairs" / "pairs.parquet")
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise FileError(f"cannot read mnist and mnist_pairs in {asked.data}: {error}") from error
    table = table.with_columns(pl.col("left", "right").cast(pl.Int64))
    told = np.unique(np.concatenate([table["left"].to_numpy(), table["right"].to_numpy()]))
    rng = np.random.default_rng([3, asked.seed])
    size = count or (len(label) if asked.full else FEW if asked.quick else SUBSET)
    rest = np.setdiff1d(np.arange(len(label)), told)
    some = told if len(told) <= size else np.sort(rng.choice(told, size // 2, replace=False))
    ids = np.sort(np.concatenate([some, rng.choice(rest, size - len(some), replace=False)]))
    pairs = Pairs(table if hits else table.drop("hit"), source="mnist_pairs").on(ids, "drop")
    return Digits(ids, images[ids], label[ids], pairs)


def mnist_part(asked: Asked, ledger: Ledger) -> Part:
    size = "all" if asked.full else FEW if asked.quick else SUBSET
    runs = 1 if asked.quick or asked.full else 3
    epochs = {"bayes-scdc": 5 if asked.quick else 30, "scdc": 1 if asked.quick else 5}
    models: dict[str, Callable[[], PairsModel]] = {
        "bayes-scdc": lambda: BayesScdc(epochs=epochs["bayes-scdc"]),
        "scdc": lambda: Scdc(epochs=epochs["scdc"]),
        "pair-mixture": lambda: PairMixture(space="graph"),
    }
    rows = []
    for name, model in models.items():
        for told in (True, False) if name != "pair-mixture" else (True,):
            count = 1 if name == "scdc" else runs
            found = [
                ledger.of(
                    f"mnist {size} {name}{'' if told else ', no answers'} seed {seed}",
                    lambda m=model, t=told, s=seed: _read_digits(asked, m(), t, s),  # type: ignore[misc]
                )
                for seed in range(asked.seed, asked.seed + count)
            ]
            paper = TABLE1.get((name, told), (None, None, None))
            each = None if name == "pair-mixture" else (mean(found, "seconds") or 0.0) / epochs[name]
            rows.append(
                {
                    "method": name, "answers": "real" if told else "none", "accuracy": mean(found, "accuracy"),
                    "paper's": paper[0], "nmi": mean(found, "nmi"), "paper's nmi": paper[1], "ami": mean(found, "ami"),
                    "clusters": mean(found, "clusters"), "seconds": mean(found, "seconds"), "an epoch": each,
                    "paper's epoch": paper[2], "runs": len(found),
                }
            )  # fmt: skip
    says = (
        f"{size} images; answers of 48 workers about 2,759 of them. The paper has 60,000 images, 200 epochs and the "
        "best of ten starts; here one start, 30 epochs of bayes-scdc after 20 of warming up, 5 of scdc.",
        "What the paper calls NMI is adjusted mutual information in its code: see ami. pair-mixture works on a graph "
        "embedding of the pixels.",
    )
    return Part("MNIST (Table 1)", pl.DataFrame(rows, infer_schema_length=None), says, 3)


def _read_digits(asked: Asked, model: PairsModel, told: bool, seed: int) -> Figures:
    digits = _digits(asked._replace(seed=seed))
    features = digits.ids, digits.X
    result, figures = scored(model, digits.pairs if told else Pairs.none(digits.ids), features, digits.truth, seed)
    if asked.out is not None and told and seed == asked.seed:
        result.report(asked.out / f"mnist-{model.name}.html", pictures=digits.X)
    return figures


def job_part(asked: Asked, ledger: Ledger) -> Part:
    """The same answers, taken as independent and as those of sorting jobs."""
    rows = []
    for hits in (True, False):
        name = "jobs known" if hits else "taken as independent"
        found = ledger.of(f"mnist jobs {hits} seed {asked.seed}", lambda h=hits: _sorted(asked, h))  # type: ignore[misc]
        rows.append({"answers": name, **found})
    says = (
        "pair-mixture on the graph embedding. counted: what the 57,329 answers count for. asked: accuracy on images "
        "that answers are about; rest: on the others. sure: mean probability of the cluster of the images asked about. "
        "cover: share of workers whose own true sensitivity, specificity lie in their intervals.",
    )
    return Part("Answers of sorting jobs (mnist_pairs)", pl.DataFrame(rows), says, 3)


def _sorted(asked: Asked, hits: bool) -> Figures:
    digits = _digits(asked, hits)
    result = PairMixture(space="graph").fit(digits.pairs, (digits.ids, digits.X), Run(seed=asked.seed))
    told = result.answers_of > 0
    out: Figures = {"counted": float(digits.pairs.weight.sum())}
    for name, rows in (("asked", told), ("rest", ~told)):
        part = pl.DataFrame({"item": digits.ids[rows], "label": digits.label[rows]})
        out[name] = float(match_clusters(result, part)["accuracy"])
    out["sure"] = float(result.params.chances[told, 0].mean())
    pairs, workers = digits.pairs, result.workers
    same = digits.label[pairs.left] == digits.label[pairs.right]
    for name, rows in (("sensitivity", same), ("specificity", ~same)):
        n = np.bincount(pairs.worker[rows], minlength=pairs.n_workers)
        right = np.bincount(pairs.worker[rows], (pairs.same == same)[rows], minlength=pairs.n_workers)
        true = right / np.maximum(n, 1)
        inside = (workers[f"{name}_low"].to_numpy() <= true) & (true <= workers[f"{name}_high"].to_numpy())
        out[f"cover {name}"] = float(inside[n > 0].mean())
    return out
