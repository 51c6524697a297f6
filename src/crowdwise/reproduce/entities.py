"""Beyond the paper of pairs: products that may be the same, and CIFAR-10 with simulated sorting jobs."""

from __future__ import annotations

import numpy as np
import polars as pl

from ..aggregation import aggregate
from ..answers import Labels, Pairs
from ..engine import Run
from ..errors import FileError
from ..metrics import match_clusters
from ..pairs import KMeansItems, PairMixture, PairVote
from ..pairs.model import PairsModel
from ..simulate import sorting_jobs
from .digits import FEW, SUBSET, scored
from .ledger import Figures, Ledger
from .study import Asked, Part, labelled, reading

RESOLVERS: dict[str, str | PairsModel] = {  # a model of labels, each pair a task of its own, or one of pairs
    "majority vote of each pair": "majority-vote",
    "Dawid-Skene of each pair": "dawid-skene",
    "pair-vote: a majority, and closure": PairVote(),
    "pair-mixture, without features": PairMixture(),
}
CLUSTERERS: dict[str, PairsModel] = {"pair-mixture": PairMixture(), "k-means": KMeansItems(clusters=10)}


def entity_part(asked: Asked, ledger: Ledger) -> Part:
    """Precision, recall and F1 of products that are the same."""
    rows = [
        {"method": name, **ledger.of(f"entities {name}", _resolved, asked, model)} for name, model in RESOLVERS.items()
    ]
    says = ("product_er: 8,315 pairs of products; precision, recall and F1 of pairs that are the same.",)
    return Part.of("Entity resolution without features", rows, says)


def _resolved(asked: Asked, model: str | PairsModel) -> Figures:
    with reading("product_er", asked.data) as data:
        files = ("pairs", "pairs_truth")
        table, truth = (pl.read_parquet(data / "product_er" / f"{name}.parquet") for name in files)
    if not isinstance(model, str):
        scores = match_clusters(model.fit(Pairs(table, source="product_er"), run=Run(seed=asked.seed)), truth)
        return {name: float(scores[name]) for name in ("precision", "recall", "f1")}
    key = pl.concat_str("left", "right", separator=" ").alias("task")
    answers = Labels(table.select(key, "worker", label="answer"))
    said = aggregate(answers, model, run=Run(seed=asked.seed)).labels.select("task", "label")
    both = truth.select(key, true="answer").join(said, on="task")
    mine, true = both["label"].cast(pl.Int64).to_numpy() == 1, both["true"].to_numpy() == 1
    hit = float((mine & true).sum())
    return {"precision": hit / mine.sum(), "recall": hit / true.sum(), "f1": 2 * hit / (mine.sum() + true.sum())}


def cifar_part(asked: Asked, ledger: Ledger) -> Part:
    """Clusters of images by simulated answers; an empty table where CIFAR-10 is not there."""
    rows, size = [], FEW if asked.quick else SUBSET
    for name, model in CLUSTERERS.items():
        try:
            rows.append({"method": name, **ledger.of(f"cifar {size} {name}", _piled, asked, model, size)})
        except FileError:
            break
    says = (
        "The paper's answers about CIFAR-10 are not to be had, so these are simulated: 240 jobs of 36 images out of "
        "4,000, 32 workers, each image on the right pile with 0.9; features are main directions of oriented gradients.",
        "The paper has 0.501 (NMI 0.555) with its answers, 0.142 (0.042) without, by networks on pixels: no like for "
        "like.",
    )
    return Part.of("CIFAR-10 with simulated answers", rows, says, 3)


def _piled(asked: Asked, model: PairsModel, size: int) -> Figures:
    with reading("cifar10n", asked.data) as data:
        names, X, kind = labelled(data / "cifar10n", "features.npz", "hog_pca")
    ids, label = names[:size], np.unique(kind[:size], return_inverse=True)[1]
    rng = np.random.default_rng([4, asked.seed])
    some = np.sort(rng.choice(size, 2 * size // 5, replace=False))
    answers = sorting_jobs(label, some, 240 * size // SUBSET, 36, 0.9, 32, rng, names=ids)
    truth = pl.DataFrame({"item": ids, "label": label})
    result, figures = scored(model, answers, (ids, X[:size].astype(np.float64)), truth, asked.seed)
    met = match_clusters(result, truth.filter(pl.Series(result.answers_of > 0)))
    return figures | {"accuracy of images asked about": float(met["accuracy"])}
