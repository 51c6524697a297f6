"""CIFAR-10 in the study of pairs: clusters of raw images with simulated answers, and Figure 4 (b)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Pairs
from ..kernels.layout import Floats
from ..metrics.matching import cluster_scores
from ..pairs import BayesScdc, Scdc
from ..pairs.model import PairsModel
from ..simulate import sorting_jobs
from .cifar10 import Cifar10
from .digits import SUBSET_IMAGES, fit_and_score
from .figures import draw_pictures
from .study import Measurement, MeasurementCache, Part, StudyOptions

QUICK_IMAGES, TEST_IMAGES = 200, 2000
SHOWN_IMAGES = 10  # of each cluster in Figure 4 (b)
PAPER = {("scdc", True): (0.5009, 0.5549), ("scdc", False): (0.1423, 0.0424)}  # accuracy and NMI


def image_part(options: StudyOptions, cache: MeasurementCache, pixels: Cifar10) -> Part:
    """Clusters of images by convolutional networks, with simulated answers and without."""
    size = min(QUICK_IMAGES if options.quick else SUBSET_IMAGES, len(pixels.X))
    bayes, plain = (1, 1) if options.quick else (30, 20)
    networks: dict[str, Any] = {"image": (32, 32, 3), "hidden": (256,), "restarts": 1}
    models: list[PairsModel] = [BayesScdc(epochs=bayes, **networks), Scdc(epochs=plain, **networks)]
    rows = []
    for model in models:
        for with_answers in (True, False):
            key = f"images of cifar {size} {model.name}{'' if with_answers else ', no answers'} seed {options.seed}"
            found = cache.measure(key, _measure, options, pixels, model, with_answers, size, key)
            paper = PAPER.get((model.name, with_answers), (None, None))
            row = {
                "method": model.name, "answers": "simulated" if with_answers else "none",
                "accuracy": found["accuracy"], "paper's accuracy": paper[0], "nmi": found["nmi"],
                "paper's nmi": paper[1], "clusters": found["clusters"], "test accuracy": found["test"],
                "seconds": found["seconds"],
            }  # fmt: skip
            rows.append(row)
    notes = (
        f"{size} images of CIFAR-10, convolutional encoder and decoder. The answers are simulated: 32 workers sort 36 "
        f"of {2 * size // 5} images into piles in each of {240 * size // SUBSET_IMAGES} jobs, and put each on the "
        "right pile with probability 0.9. The paper has 60,000 images and answers of its own, which are not available.",
        f"Test accuracy: of {TEST_IMAGES} other images, placed by their pixels alone.",
    )
    return Part.of("CIFAR-10, raw images (Fig. 4b)", rows, notes, 3)


def _measure(
    options: StudyOptions, pixels: Cifar10, model: PairsModel, with_answers: bool, size: int, key: str
) -> Measurement:
    X, label = pixels.X[:size], pixels.truth[:size]
    rng, ids = np.random.default_rng([4, options.seed]), np.arange(size)
    some = np.sort(rng.choice(size, 2 * size // 5, replace=False))
    answers = sorting_jobs(label, some, max(1, 240 * size // SUBSET_IMAGES), 36, 0.9, 32, rng, names=ids)
    truth = pl.DataFrame({"item": ids, "label": label})
    used = answers if with_answers else Pairs.none(ids)
    result, scores = options.fit(key, options.seed, lambda run: fit_and_score(model, used, (ids, X), truth, run))
    test, test_truth = pixels.X_test[:TEST_IMAGES], pixels.test_truth[:TEST_IMAGES]
    placed = model.place_items(result.space, test)[1]
    scores["test"] = cluster_scores(placed.argmax(1), test_truth)["accuracy"]
    if options.out is not None and isinstance(model, BayesScdc):
        title = "with answers" if with_answers else "without answers"
        _figure4b(options.out / f"pairs-figure4b{'' if with_answers else '-without'}.svg", title, placed, test)
    return scores


def _figure4b(path: Path, title: str, placed: Floats, images: Any) -> None:
    """Draw the test images with the largest probability of each of the ten largest clusters."""
    size = np.bincount(placed.argmax(1), minlength=placed.shape[1])
    rows = {}
    for n, k in enumerate(np.argsort(-size, kind="stable")[:10]):
        best = np.argsort(-placed[:, k], kind="stable")[:SHOWN_IMAGES]
        rows[f"cluster {n + 1}"] = np.concatenate([np.pad(images[i], ((1, 1), (1, 1), (0, 0))) for i in best], axis=1)
    draw_pictures(path, f"Figure 4 (b): test images of each cluster, {title}", rows)
