"""Beyond the paper of pairs: products that may be the same, and CIFAR-10 with simulated sorting jobs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from ..answers import Labels, Pairs
from ..engine import Run
from ..errors import FileError
from ..labels import aggregate as of_labels
from ..matching import match_clusters
from ..pairs import KMeansItems, PairMixture, PairsModel, PairVote
from ..simulate import sorting_jobs
from .clustered import FEW, SUBSET, scored
from .ledger import Figures, Ledger
from .study import Asked, Part


def entity_part(asked: Asked, ledger: Ledger) -> Part:
    methods: dict[str, Callable[[], Figures]] = {
        "majority vote of each pair": lambda: _by_labels(asked, "majority-vote"),
        "Dawid-Skene of each pair": lambda: _by_labels(asked, "dawid-skene"),
        "pair-vote: a majority, and closure": lambda: _resolved(asked, PairVote()),
        "pair-mixture, without features": lambda: _resolved(asked, PairMixture()),
    }
    rows = [{"method": name, **ledger.of(f"entities {name}", measure)} for name, measure in methods.items()]
    says = ("product_er: 8,315 pairs of products; precision, recall and F1 of pairs that are the same.",)
    return Part("Entity resolution without features", pl.DataFrame(rows, infer_schema_length=None), says, 4)


def _products(asked: Asked) -> tuple[pl.DataFrame, pl.DataFrame]:
    assert asked.data is not None
    try:
        tables = [pl.read_parquet(asked.data / "product_er" / f"{name}.parquet") for name in ("pairs", "pairs_truth")]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"cannot read product_er in {asked.data}: {error}") from error
    return tables[0], tables[1]


def _resolved(asked: Asked, model: PairsModel) -> Figures:
    table, truth = _products(asked)
    result = model.fit(Pairs(table, source="product_er"), None, Run(seed=asked.seed))
    return {name: float(match_clusters(result, truth)[name]) for name in ("precision", "recall", "f1")}


def _by_labels(asked: Asked, name: str) -> Figures:
    """Each pair as a task of its own."""
    table, truth = _products(asked)
    key = pl.concat_str("left", "right", separator=" ").alias("task")
    answers = Labels(table.select(key, "worker", label="answer"))
    said = of_labels(answers, name, run=Run(seed=asked.seed)).labels.select("task", "label")
    both = truth.select(key, true="answer").join(said, on="task")
    mine, true = both["label"].cast(pl.Int64).to_numpy() == 1, both["true"].to_numpy() == 1
    hit = float((mine & true).sum())
    return {"precision": hit / mine.sum(), "recall": hit / true.sum(), "f1": 2 * hit / (mine.sum() + true.sum())}


def cifar_part(asked: Asked, ledger: Ledger) -> Part:
    rows = []
    for name in ("pair-mixture", "k-means"):
        try:
            found = ledger.of(f"cifar {FEW if asked.quick else SUBSET} {name}", lambda n=name: _piled(asked, n))  # type: ignore[misc]
        except FileError:
            break
        rows.append({"method": name, **found})
    says = (
        "The paper's answers about CIFAR-10 are not to be had, so these are simulated: 240 jobs of 36 images out of "
        "4,000, 32 workers, each image on the right pile with 0.9; features are main directions of oriented gradients.",
        "The paper has 0.501 (NMI 0.555) with its answers, 0.142 (0.042) without, by networks on pixels: no like for "
        "like.",
    )
    return Part("CIFAR-10 with simulated answers", pl.DataFrame(rows, infer_schema_length=None), says, 3)


def _piled(asked: Asked, name: str) -> Figures:
    assert asked.data is not None
    try:
        with np.load(asked.data / "cifar10n" / "features.npz", allow_pickle=False) as file:
            names, X = file["task"], file["hog_pca"]
        truth = pl.read_parquet(asked.data / "cifar10n" / "truth.parquet")
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise FileError(f"cannot read cifar10n in {asked.data}: {error}") from error
    told = dict(zip(truth["task"].to_list(), truth["label"].to_list(), strict=True))
    size = FEW if asked.quick else SUBSET
    ids = names[:size].tolist()
    label = np.unique([str(told[name]) for name in ids], return_inverse=True)[1]
    rng = np.random.default_rng([4, asked.seed])
    some = np.sort(rng.choice(size, 2 * size // 5, replace=False))
    answers = sorting_jobs(label, some, 240 * size // SUBSET, 36, 0.9, 32, rng, names=ids)
    model: PairsModel = PairMixture() if name == "pair-mixture" else KMeansItems(clusters=10)
    features = (ids, X[:size].astype(np.float64))
    result, figures = scored(model, answers, features, pl.DataFrame({"item": ids, "label": label}), asked.seed)
    asked_ = result.answers_of > 0
    part = pl.DataFrame({"item": ids, "label": label}).filter(pl.Series(asked_))
    return figures | {"accuracy of images asked about": float(match_clusters(result, part)["accuracy"])}
