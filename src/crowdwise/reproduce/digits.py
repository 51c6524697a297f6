"""MNIST with real answers from sorting jobs: Table 1 of the study of pairs, and the effect of modelling the jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Pairs
from ..engine import Run
from ..kernels.layout import Ints
from ..metrics import match_clusters
from ..pairs import BayesScdc, PairMixture, Scdc
from ..pairs.model import PairsModel
from ..pairs.scdc import MIN_GAIN, START_SHARES
from ..result import PairsResult
from .figures import draw_pictures
from .study import Measurement, MeasurementCache, Part, StudyOptions, mean, reading

SUBSET_IMAGES, QUICK_IMAGES = 10_000, 300  # images of MNIST and CIFAR-10; of MNIST in a quick study
SCDC_EPOCHS = 100
WARM_UP_EPOCHS = 20  # of bayes-scdc on images
MIN_DRAWN_SHARE = 1e-3  # components that never have this share are not drawn
MIN_CLUSTER_ITEMS = 5  # smaller clusters are not counted
TABLE1 = {  # accuracy, NMI and seconds per epoch, by method and whether answers are used
    ("scdc", False): (0.6592, 0.6953, 177.3), ("scdc", True): (0.8187, 0.7657, 201.7),
    ("bayes-scdc", False): (0.7764, 0.7944, 11.2), ("bayes-scdc", True): (0.8424, 0.812, 16.4),
}  # fmt: skip


JOB_COLUMNS = {  # names in the cache, and in the table
    "counted": "effective answers",
    "asked": "accuracy, images with answers",
    "rest": "accuracy, other images",
    "sure": "mean probability",
    "cover sensitivity": "coverage of sensitivity",
    "cover specificity": "coverage of specificity",
}


class Digits(NamedTuple):
    """Images of digits, and real answers about some of them."""

    ids: Ints
    X: Any  # (N, 28, 28) bytes
    truth: pl.DataFrame  # item, label
    pairs: Pairs


def fit_and_score(
    model: PairsModel, pairs: Pairs, features: Any, truth: Any, run: Run
) -> tuple[PairsResult, Measurement]:
    """Fit a model; returns the result and its scores."""
    result = model.fit(pairs, features=features, run=run)
    scores = match_clusters(result, truth)
    kept: Measurement = {name: float(scores[name]) for name in ("accuracy", "nmi", "ami")}
    clusters = float((result.sizes["items"] >= MIN_CLUSTER_ITEMS).sum())
    return result, kept | {"clusters": clusters, "seconds": result.seconds}


def _size(options: StudyOptions) -> int | None:
    """Number of images; None: all."""
    return None if options.full else QUICK_IMAGES if options.quick else SUBSET_IMAGES


def _read_digits(options: StudyOptions, hits: bool = True) -> Digits:
    """Read all images with answers, and random other images; `hits` keeps the jobs of the answers."""
    with reading("mnist and mnist_pairs", options.data) as data:
        with np.load(data / "mnist" / "features.npz", allow_pickle=False) as file:
            images, label = file["x_train"], file["y_train"].astype(np.int64)
        table = pl.read_parquet(data / "mnist_pairs" / "pairs.parquet")
    table = table.with_columns(pl.col("left", "right").cast(pl.Int64))
    answered = np.unique(np.concatenate([table["left"].to_numpy(), table["right"].to_numpy()]))
    rng = np.random.default_rng([3, options.seed])
    size = _size(options) or len(label)
    others = np.setdiff1d(np.arange(len(label)), answered)
    kept = answered if len(answered) <= size else np.sort(rng.choice(answered, size // 2, replace=False))
    ids = np.sort(np.concatenate([kept, rng.choice(others, size - len(kept), replace=False)]))
    pairs = Pairs(table if hits else table.drop("hit"), source="mnist_pairs").on(ids, "drop")
    return Digits(ids, images[ids], pl.DataFrame({"item": ids, "label": label[ids]}), pairs)


def mnist_part(options: StudyOptions, cache: MeasurementCache) -> Part:
    """Table 1, together with pair-mixture."""
    size = _size(options) or "all"
    runs = 1 if options.full else len(options.seeds(1, 3))
    bayes, plain, starts = (2, 1, 1) if options.quick else (30, SCDC_EPOCHS, 2)
    methods: list[tuple[PairsModel, bool, int, int | None]] = [  # model, whether answers are used, runs, epochs
        (BayesScdc(epochs=bayes), True, runs, bayes + WARM_UP_EPOCHS),
        (BayesScdc(epochs=bayes, restarts=1 if options.quick else None), False, runs, bayes + WARM_UP_EPOCHS),
        (Scdc(epochs=plain, restarts=starts), True, 1, plain),
        (Scdc(epochs=plain, restarts=starts), False, 1, plain),
        (PairMixture(space="graph"), True, runs, None),
    ]
    rows = []
    for model, with_answers, count, epochs in methods:
        key = f"mnist {size} {model.name}{'' if with_answers else ', no answers'}"
        if epochs is not None:
            key += f", {epochs} epochs, {getattr(model, 'restarts', None) or 'usual'} starts"
        seeds = range(options.seed, options.seed + count)
        found = cache.measure_seeds(key, seeds, _measure_digits, options, model, with_answers, key)
        paper, seconds = TABLE1.get((model.name, with_answers), (None, None, None)), mean(found, "seconds") or 0.0
        row = {
            "method": model.name, "answers": "real" if with_answers else "none", "accuracy": mean(found, "accuracy"),
            "paper's accuracy": paper[0], "nmi": mean(found, "nmi"), "paper's nmi": paper[1],
            "ami": mean(found, "ami"), "clusters": mean(found, "clusters"), "seconds": seconds,
            "seconds per epoch": None if epochs is None else seconds / (epochs * (found[0].get("starts") or 1)),
            "paper's seconds per epoch": paper[2], "runs": len(found),
        }  # fmt: skip
        rows.append(row)
    asked = QUICK_IMAGES // 2 if options.quick else "2,759"
    notes = (
        f"{size} images; 48 workers gave answers about {asked} of them. The paper has 60,000 images, 200 epochs and "
        f"the best of ten starts. Here bayes-scdc has {bayes} epochs after {WARM_UP_EPOCHS} of warm-up, one start with "
        f"answers and {1 if options.quick else len(START_SHARES)} without; scdc has {plain} epochs and {starts} "
        "start(s). The start with the highest bound counts; without answers, each further cluster of bayes-scdc must "
        f"add {MIN_GAIN} to the bound per image. Seconds per epoch are those of one start.",
        "The NMI of the paper is adjusted mutual information in its code: compare it with ami. pair-mixture uses a "
        "graph embedding of the pixels.",
    )
    return Part.of("MNIST (Table 1)", rows, notes, 3)


def _measure_digits(options: StudyOptions, model: PairsModel, with_answers: bool, key: str, seed: int) -> Measurement:
    digits = _read_digits(options._replace(seed=seed))
    pairs = digits.pairs if with_answers else Pairs.none(digits.ids)
    drawn = options.out is not None and with_answers and seed == options.seed
    result, scores = options.fit(
        key, seed, lambda run: fit_and_score(model, pairs, (digits.ids, digits.X), digits.truth, run)
    )
    scores["starts"] = float(getattr(model, "restarts", 1) or (1 if with_answers else len(START_SHARES)))
    scores["bound"] = float(result.trace["objective"][-1])
    if drawn:
        assert options.out is not None
        result.report(options.out / f"mnist-{model.name}.html", pictures=digits.X)
        if "history.centres" in result.space:
            _figure4a(options.out / "pairs-figure4a.svg", result)
    return scores


def _figure4a(path: Path, result: PairsResult) -> None:
    """Draw the centres of the components during training, in the order of their final shares, without empty ones."""
    space, shares = result.space, dict(zip(result.params.epochs.tolist(), result.params.shares, strict=True))
    pairs = zip(space["history.epochs"].tolist(), space["history.centres"], strict=True)
    drawn = [(epoch, centres) for epoch, centres in pairs if epoch in shares]
    largest = np.max([shares[epoch] for epoch, _ in drawn], axis=0)
    order, rows = np.argsort(-shares[drawn[-1][0]], kind="stable"), {}
    order = order[largest[order] >= MIN_DRAWN_SHARE]
    for epoch, centres in drawn:
        light = np.sqrt(shares[epoch][order] / shares[epoch].max())
        pictures = centres[order].reshape(-1, 28, 28) * light[:, None, None]
        rows[f"epoch {epoch}"] = np.concatenate([np.pad(each, 1, constant_values=90) for each in pictures], axis=1)
    draw_pictures(path, "Figure 4 (a): components of bayes-scdc during training, brighter for larger shares", rows)


def job_part(options: StudyOptions, cache: MeasurementCache) -> Part:
    """The same answers, with and without knowledge of the sorting jobs they come from."""
    rows = []
    for name, hits in (("with jobs", True), ("as independent answers", False)):
        key = f"mnist {_size(options) or 'all'} jobs {hits} seed {options.seed}"
        found = cache.measure(key, _measure_jobs, options, hits)
        rows.append({"answers": name} | {JOB_COLUMNS[key]: value for key, value in found.items()})
    notes = (
        "pair-mixture on the graph embedding. Effective answers: the sum of the weights of the answers. Mean "
        "probability: of the assigned cluster, over images with answers. Coverage: share of workers whose true "
        "sensitivity or specificity lies in its interval.",
    )
    return Part.of("Answers from sorting jobs (mnist_pairs)", rows, notes, 3)


def _measure_jobs(options: StudyOptions, hits: bool) -> Measurement:
    digits = _read_digits(options, hits)
    result = PairMixture(space="graph").fit(digits.pairs, features=(digits.ids, digits.X), run=Run(seed=options.seed))
    answered = result.answers_of > 0
    out: Measurement = {"counted": float(digits.pairs.weight.sum())}
    for name, rows in (("asked", answered), ("rest", ~answered)):
        out[name] = float(match_clusters(result, digits.truth.filter(pl.Series(rows)))["accuracy"])
    out["sure"] = float(result.params.chances[answered, 0].mean())
    pairs, workers, label = digits.pairs, result.workers, digits.truth["label"].to_numpy()
    same = label[pairs.left] == label[pairs.right]
    for name, rows in (("sensitivity", same), ("specificity", ~same)):
        n = np.bincount(pairs.worker[rows], minlength=pairs.n_workers)
        right = np.bincount(pairs.worker[rows], (pairs.same == same)[rows], minlength=pairs.n_workers)
        low, high = (workers[f"{name}_{end}"].to_numpy() for end in ("low", "high"))
        true = right / np.maximum(n, 1)
        out[f"cover {name}"] = float(((low <= true) & (true <= high))[n > 0].mean())
    return out
