"""The study of pairs (semi-crowdsourced clustering with deep generative models): pinwheel, faces and MNIST, measured
anew; entity resolution beside them, and CIFAR-10 with simulated answers, for the paper's own are not to be had.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..answers import Pairs
from ..engine import Run
from ..kernels.layout import Floats, Ints
from ..pairs import BayesScdc, PairMixture, Scdc
from ..pairs.model import PairsModel
from ..simulate import pinwheel
from .digits import job_part, mnist_part, scored
from .entities import cifar_part, entity_part
from .faces import face_part, figure3, read_faces, weight_part
from .ledger import Figures, Ledger, mean
from .study import Asked, Layer, Part, Study, draw

PINWHEEL: dict[str, tuple[PairsModel, bool]] = {  # and whether there are answers
    "pair-mixture": (PairMixture(), True),
    "bayes-scdc": (BayesScdc(), True),
    "scdc": (Scdc(restarts=2), True),
    "bayes-scdc, no answers, scale of the paper": (BayesScdc(scale=False), False),
    "bayes-scdc, no answers": (BayesScdc(restarts=3), False),
}
PAPER_PINWHEEL = {"bayes-scdc": (0.966, 0.94, 6), "bayes-scdc, no answers, scale of the paper": (0.956, 0.91, 8)}


def pairs(asked: Asked) -> Study:
    """Figures 2 to 4 and Table 1, as far as the data are there."""
    ledger = asked.ledger()
    parts = [_pinwheel(asked, ledger)]
    files = [] if asked.out is None else _figure2(asked.out, asked.seed)
    if asked.data is not None:
        faces = read_faces(asked.data)
        parts += [face_part(asked, ledger, faces, True), weight_part(asked, ledger, faces)]
        parts.append(face_part(asked, ledger, faces, False))
        if asked.out is not None:
            files += figure3(asked.out, parts)
        parts += [part(asked, ledger) for part in (mnist_part, job_part, entity_part, cifar_part)]
    return Study("pairs", tuple(parts), tuple(files))


def _pinwheel(asked: Asked, ledger: Ledger) -> Part:
    seeds = asked.seeds(2, 5)
    rows = []
    for name in PINWHEEL:
        found = ledger.runs(f"pinwheel {name}", seeds, _spun, name)
        accuracy = [float(each["accuracy"] or 0.0) for each in found]
        paper = PAPER_PINWHEEL.get(name, (None, None, None))
        row = {
            "method": name, "accuracy": mean(found, "accuracy"), "least": min(accuracy),
            "median": float(np.median(accuracy)), "paper's": paper[0], "nmi": mean(found, "nmi"),
            "paper's nmi": paper[1], "clusters": mean(found, "clusters"), "paper's K": paper[2],
            "seconds": mean(found, "seconds"),
        }  # fmt: skip
        rows.append(row)
    says = (
        f"{len(seeds)} seeds; 500 items of 5 clusters, 20 workers of 49 pairs among 100 items, right with 0.9; "
        "clusters with 5 items or more are counted. Starts are chosen by the bound.",
        "Without answers the paper has 0.756 (NMI 0.806) from a bad start.",
    )
    return Part.of("Pinwheel (Sec. 5.1, Fig. 2)", rows, says, 3)


def _spun(name: str, seed: int) -> Figures:
    sim, (model, told) = pinwheel(seed=seed), PINWHEEL[name]
    return scored(model, sim.pairs if told else Pairs.none(sim.features[0]), sim.features, sim.truth, seed)[1]


def _figure2(out: Path, seed: int) -> list[Path]:
    """The items by their true clusters, by features alone, and with answers; and the page of the last."""
    sim = pinwheel(seed=seed)
    ids, X = sim.features
    alone = PINWHEEL["bayes-scdc, no answers, scale of the paper"][0]
    without = alone.fit(Pairs.none(ids), features=sim.features, run=Run(seed=seed))
    result = PINWHEEL["bayes-scdc"][0].fit(sim.pairs, features=sim.features, run=Run(seed=seed))
    files = [
        _coloured(out, "a", "the pinwheel", X, sim.truth["label"].to_numpy()),
        _coloured(out, "b", "without answers", X, without.cluster),
        _coloured(out, "d", "with answers", X, result.cluster),
    ]
    return [*files, result.report(out / "pinwheel.html")]


def _coloured(out: Path, letter: str, title: str, X: Floats, cluster: Ints) -> Path:
    shapes = ("plus", "cross", "small diamond", "ring")
    layers = [
        Layer(f"cluster {k + 1}", X[cluster == k], k % 5, shapes[k // 5 % 4]) for k in range(int(cluster.max()) + 1)
    ]
    return draw(out / f"figure2{letter}.svg", f"Figure 2 ({letter}): {title}", "x", "y", layers, 520)
