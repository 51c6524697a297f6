"""Faces by pose: Figure 3 of the study of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..errors import option
from ..kernels.layout import Floats, Ints
from ..pairs import BayesScdc, GaussianItems, Itml, KMeansItems, Mmc, PairMixture
from ..pairs.model import PairsModel
from ..simulate import answers_about
from .digits import scored
from .study import Asked, Figures, Layer, Ledger, Part, draw, labelled, mean, reading

Faces = tuple[list[str], Floats, Ints]  # names of images, features (624, 20) and poses
SKILLS = (0.95, 0.9, 0.85, 0.8, 0.75)  # of the five workers on faces
WEIGHTS = [f"weight {w + 1}" for w in range(len(SKILLS))]
FACES: dict[str, PairsModel] = {  # those that are told how many poses there are are told four
    "pair-mixture": PairMixture(),
    "bayes-scdc": BayesScdc(),
    "k-means": KMeansItems(clusters=4),
    "gaussian-mixture": GaussianItems(clusters=4),
    "itml": Itml(clusters=4),
    "mmc": Mmc(clusters=4),
}


def read_faces(folder: Path) -> Faces:
    """The faces of cmu_faces, by their 20 main directions."""
    hint = f". {option('data')} names the folder that holds cmu_faces, mnist, mnist_pairs and product_er"
    with reading("cmu_faces", folder, hint):
        names, X, pose = labelled(folder / "cmu_faces", "features.npz", "x", "image", "pose")
    flat = X.reshape(len(X), -1) / 255.0
    middle = flat - flat.mean(0)
    main = np.linalg.svd(middle, full_matrices=False)[2][:20]
    return names, middle @ main.T, np.unique(pose, return_inverse=True)[1]


def _posed(faces: Faces, method: str, each: int, all_: bool, seed: int) -> Figures:
    """Scores of a method by answers about all images or 100, and the weights of workers."""
    names, X, pose = faces
    rng = np.random.default_rng([2, seed])
    some = np.arange(len(names)) if all_ else np.sort(rng.choice(len(names), 100, replace=False))
    pairs, _ = answers_about(pose, some, 5, each, SKILLS, None, rng, balanced=True, names=names, source="faces")
    truth = pl.DataFrame({"item": names, "label": pose})
    result, figures = scored(FACES[method], pairs, (names, X), truth, seed)
    return figures | dict(zip(WEIGHTS, result.workers.sort("worker")["weight"].to_list(), strict=True))


def _measured(asked: Asked, ledger: Ledger, faces: Faces, method: str, each: int, all_: bool) -> list[Figures]:
    key = f"faces {'all' if all_ else '100'} {method} {each}"
    return ledger.runs(key, asked.seeds(2, 10), _posed, faces, method, each, all_)


def face_part(asked: Asked, ledger: Ledger, faces: Faces, all_: bool) -> Part:
    """NMI of every method, by answers a worker."""
    rows = []
    for method in FACES:
        row: dict[str, Any] = {"method": method}
        for each in (200, 2000) if asked.quick else (200, 500, 1000, 2000):
            values = np.array([found["nmi"] for found in _measured(asked, ledger, faces, method, each, all_)])
            row |= {f"{each}": float(values.mean()), f"{each} sd": float(values.std())}
        rows.append(row)
    letter, what = ("a", "all images") if all_ else ("b", "100 images")
    says = (
        f"NMI, mean and standard deviation over {len(asked.seeds(2, 10))} runs, by answers a worker; 624 images by "
        f"pose, 20 main directions, five workers right with {', '.join(map(str, SKILLS))}, half of the pairs the same.",
        "All but the first two are told that there are four poses.",
    )
    return Part.of(f"Faces, answers about {what} (Fig. 3{letter})", rows, says, 3)


def weight_part(asked: Asked, ledger: Ledger, faces: Faces) -> Part:
    """Weights of workers by the most answers, and the true ones."""
    heads = ["method", *(f"w{w + 1}" for w in range(len(SKILLS))), "runs in the true order"]
    rows: list[Any] = [("true", *(2 * float(np.log(a / (1 - a))) for a in SKILLS), None)]
    for method in ("pair-mixture", "bayes-scdc"):
        found = _measured(asked, ledger, faces, method, 2000, True)
        own = [[each[name] or 0.0 for name in WEIGHTS] for each in found]
        right = sum(bool((np.diff(weights) < 0).all()) for weights in own)
        rows.append((method, *(mean(found, name) for name in WEIGHTS), f"{right} of {len(found)}"))
    says = ("ln a/(1-a) + ln b/(1-b) of each worker, 2000 answers each; means over runs.",)
    return Part.of("Weights of workers (Fig. 3c)", rows, says, 2, heads)


def figure3(out: Path, parts: list[Part]) -> list[Path]:
    """NMI by answers a worker, and the weights of workers."""
    nmi = "NMI of faces by answers a worker"
    return [
        _lines(out, "a", nmi, "answers a worker", "NMI", parts[1]),
        _lines(out, "b", nmi, "answers a worker", "NMI", parts[3]),
        _lines(out, "c", "weights of workers", "worker", "weight", parts[2], height=300),
    ]


def _lines(out: Path, letter: str, title: str, x: str, y: str, part: Part, **size: int) -> Path:
    """A line a method through the columns whose names hold a number."""
    columns = {name: float(name.lstrip("w")) for name in part.rows.columns if name.lstrip("w").isdigit()}
    layers = [
        Layer(row["method"], np.array([[at, row[name]] for name, at in columns.items()]), k)
        for k, row in enumerate(part.rows.to_dicts())
    ]
    return draw(out / f"figure3{letter}.svg", f"Figure 3 ({letter}): {title}", x, y, layers, **size)
