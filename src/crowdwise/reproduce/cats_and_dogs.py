"""Tables 2 and 3 of the study of difficulty: a four-layer network on small cats and dogs, and made-up experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import torch
from sklearn.model_selection import KFold
from torch import nn

from ..kernels.layout import Floats
from ..learn import CrowdClassifier, Network
from .difficulty import METHODS, SKILLS, Images, Lot, score, table
from .study import Part

SEEDS, FEW = 3, 2
WHY = {
    1: "A network that is often wrong even when taught the truth is a poor judge of what is hard for experts.",
    2: "These labels are made without difficulty, so that to look for it can only cost.",
}
TOLD = ("majority-vote", "soft-vote", "two-coin", "adaptive", "fixed")


def network() -> nn.Module:
    """The network of the appendix, scaled to 32 x 32."""
    layers: list[nn.Module] = []
    for wide, wider in ((3, 16), (16, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(wide, wider, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    head = nn.Flatten(), nn.BatchNorm1d(256), nn.Linear(256, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2)
    return nn.Sequential(*layers, *head)


def fresh_network(seed: int) -> Network:
    """A truth side with untaught weights by the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Network(network(), batch_size=128)


def tables(images: Images, seed: int, quick: bool, watch: Callable[[str], None]) -> list[Part]:
    """Both tables, means over seeds."""
    count = FEW if quick else SEEDS
    watch("how easy each image is")
    ease = _ease(images, seed)
    return [
        _part("Table 2: cats and dogs, structural labels", images, 1, seed, count, ease, watch),
        _part("Table 3: cats and dogs, non-structural labels", images, 2, seed, count, None, watch),
    ]


def _ease(images: Images, seed: int) -> Floats:
    """(n,) by a network that was taught true labels and has not seen the image."""
    p = np.empty(len(images.truth))
    for taught, told in KFold(5, shuffle=True, random_state=seed).split(images.X):
        model = CrowdClassifier(fresh_network(seed), "soft-vote", random_state=seed)
        model.fit(images.X[taught], images.truth[taught])
        p[told] = model.predict_proba(images.X[told])[:, 1]
    return 4 * (p - 0.5) ** 2


def said(images: Images, ease: Floats | None, rng: np.random.Generator) -> Any:
    """(n, 5) answers: by eqs (1) and (2), or, without ease, wrong with probability 1 / (3 + n), n from 0 to 5."""
    chance = SKILLS.T[images.truth]
    if ease is None:
        right = 1 - 1 / (3 + rng.integers(0, 6, chance.shape))
    else:
        right = 1 / (1 + np.exp(-np.log(chance / (1 - chance)) * ease[:, None]))
    return np.where(rng.random(chance.shape) < right, images.truth[:, None], 1 - images.truth[:, None])


def _part(
    title: str, images: Images, column: int, seed: int, count: int, ease: Floats | None, watch: Callable[[str], None]
) -> Part:
    found: dict[str, list[list[float]]] = {name: [] for name in (*TOLD, "true labels")}
    for s in range(count):
        answers = table(said(images, ease, np.random.default_rng([3 + seed, column, s])))
        lot = Lot(images.X, answers, images.truth, images.new, images.new_truth)
        for name in TOLD:
            watch(f"{title}: {name}, seed {s}")
            found[name].append(score(name, lot, fresh_network(s), s)[0])
        model = CrowdClassifier(fresh_network(s), "soft-vote", random_state=s).fit(images.X, images.truth)
        found["true labels"].append([100 * float((model.predict(images.new) == images.new_truth).mean())])
    rows = []
    for name, scores in found.items():
        theirs, *accuracy = METHODS.get(name, ("-", None, None, None))
        each = np.array([figures[:3] for figures in scores])
        means = [*each.mean(0).tolist(), None, None][:3]
        rows.append((name, theirs, accuracy[column], means[0], float(each[:, 0].std(ddof=1)), *means[1:]))
    schema = [
        "workers",
        "in the paper",
        "paper's accuracy",
        "test accuracy",
        "spread",
        "AUC of truth",
        "accuracy of truth",
    ]
    says = (
        f"Ours: {len(images.truth)} images to learn from, of 32 x 32 points; the paper's: 12,500, larger. So the last "
        "row, a network taught true labels, is what could be reached here.",
        "No method falls to 50 % here: all start from soft votes, and stop by answers held out.",
        WHY[column],
    )
    return Part(f"{title} ({count} seeds)", pl.DataFrame(rows, schema=schema, orient="row"), says)
