"""Faces by pose: Figure 3 of the study of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers import Pairs
from ..errors import FileError
from ..kernels.layout import Floats, Ints
from ..pairs import BayesScdc, GaussianItems, Itml, KMeansItems, Mmc, PairMixture, PairsModel
from ..simulate import answers_about
from .clustered import scored
from .drawing import Line, draw
from .ledger import Figures, Ledger, mean
from .study import Asked, Part

SKILLS = (0.95, 0.9, 0.85, 0.8, 0.75)  # of the five workers on faces
POSES = 4
FACES: dict[str, PairsModel] = {
    "pair-mixture": PairMixture(),
    "bayes-scdc": BayesScdc(),
    "k-means": KMeansItems(clusters=POSES),
    "gaussian-mixture": GaussianItems(clusters=POSES),
    "itml": Itml(clusters=POSES),
    "mmc": Mmc(clusters=POSES),
}


class Faces(NamedTuple):
    names: list[str]
    X: Floats  # (624, 20)
    pose: Ints


def read_faces(folder: Path) -> Faces:
    try:
        with np.load(folder / "cmu_faces" / "features.npz", allow_pickle=False) as file:
            names, X = file["image"].tolist(), file["x"]
        truth = pl.read_parquet(folder / "cmu_faces" / "truth.parquet")
    except (OSError, KeyError, ValueError, pl.exceptions.PolarsError) as error:
        raise FileError(
            f"cannot read cmu_faces in {folder}: {error}. --data names the folder that holds cmu_faces, mnist, "
            "mnist_pairs and product_er"
        ) from error
    flat = X.reshape(len(X), -1) / 255.0
    middle = flat - flat.mean(0)
    main = np.linalg.svd(middle, full_matrices=False)[2][:20]
    told = dict(zip(truth["image"].to_list(), truth["pose"].to_list(), strict=True))
    pose = np.unique([told[name] for name in names], return_inverse=True)[1]
    return Faces(names, middle @ main.T, pose)


def _asked_faces(faces: Faces, each: int, all_: bool, seed: int) -> Pairs:
    rng = np.random.default_rng([2, seed])
    some = np.arange(len(faces.names)) if all_ else np.sort(rng.choice(len(faces.names), 100, replace=False))
    return answers_about(
        faces.pose, some, len(SKILLS), each, SKILLS, None, rng, balanced=True, names=faces.names, source="faces"
    )[0]


def _posed(faces: Faces, method: str, each: int, all_: bool, seed: int) -> Figures:
    truth = pl.DataFrame({"item": faces.names, "label": faces.pose})
    result, figures = scored(FACES[method], _asked_faces(faces, each, all_, seed), (faces.names, faces.X), truth, seed)
    weights = result.workers.sort("worker")["weight"].to_list()
    return figures | {f"weight {w + 1}": weight for w, weight in enumerate(weights)}


def _counts(asked: Asked) -> tuple[int, ...]:
    return (200, 2000) if asked.quick else (200, 500, 1000, 2000)


def _faces_measured(asked: Asked, ledger: Ledger, faces: Faces, all_: bool) -> dict[tuple[str, int], list[Figures]]:
    seeds = range(asked.seed, asked.seed + (2 if asked.quick else 10))
    what = "all" if all_ else "100"
    return {
        (method, each): [
            ledger.of(
                f"faces {what} {method} {each} seed {seed}",
                lambda m=method, e=each, s=seed: _posed(faces, m, e, all_, s),  # type: ignore[misc]
            )
            for seed in seeds
        ]
        for method in FACES
        for each in _counts(asked)
    }


def face_part(asked: Asked, ledger: Ledger, faces: Faces, all_: bool) -> Part:
    measured = _faces_measured(asked, ledger, faces, all_)
    rows = []
    for method in FACES:
        row: dict[str, Any] = {"method": method}
        for each in _counts(asked):
            values = np.array([figure["nmi"] for figure in measured[method, each]])
            row |= {f"{each}": float(values.mean()), f"{each} sd": float(values.std())}
        rows.append(row)
    letter, what = ("a", "all images") if all_ else ("b", "100 images")
    says = (
        f"NMI, mean and standard deviation over {len(measured['itml', 200])} runs, by answers a worker; 624 images by "
        f"pose, 20 main directions, five workers right with {', '.join(map(str, SKILLS))}, half of the pairs the same.",
        "All but the first two are told that there are four poses.",
    )
    return Part(f"Faces, answers about {what} (Fig. 3{letter})", pl.DataFrame(rows), says, 3)


def weight_part(asked: Asked, ledger: Ledger, faces: Faces) -> Part:
    measured, most = _faces_measured(asked, ledger, faces, True), _counts(asked)[-1]
    rows: list[dict[str, Any]] = [
        {"method": "true", **{f"w{w + 1}": 2 * float(np.log(a / (1 - a))) for w, a in enumerate(SKILLS)}}
    ]
    for method in ("pair-mixture", "bayes-scdc"):
        found = measured[method, most]
        right = [all(f[f"weight {w}"] > f[f"weight {w + 1}"] for w in range(1, 5)) for f in found]  # type: ignore[operator]
        row: dict[str, Any] = {"method": method}
        row |= {f"w{w + 1}": mean(found, f"weight {w + 1}") for w in range(len(SKILLS))}
        rows.append(row | {"runs in the true order": f"{sum(right)} of {len(right)}"})
    says = (f"ln a/(1-a) + ln b/(1-b) of each worker, {most} answers each; means over runs.",)
    return Part("Weights of workers (Fig. 3c)", pl.DataFrame(rows, infer_schema_length=None), says, 2)


def figure3(out: Path, parts: list[Part]) -> list[Path]:
    """NMI by answers a worker, and the weights of workers."""
    files = []
    for part, letter in ((parts[1], "a"), (parts[3], "b")):
        counts = [name for name in part.rows.columns if name.isdigit()]
        lines = [
            Line(row["method"], np.array([[float(n), row[n]] for n in counts]), k)
            for k, row in enumerate(part.rows.to_dicts())
        ]
        title = f"Figure 3 ({letter}): NMI of faces by answers a worker"
        files.append(draw(out / f"figure3{letter}.svg", title, "answers a worker", "NMI", lines))
    kept = [name for name in parts[2].rows.columns if name.startswith("w")]
    lines = [
        Line(row["method"], np.array([[w + 1.0, row[name]] for w, name in enumerate(kept)]), k)
        for k, row in enumerate(parts[2].rows.to_dicts())
    ]
    files.append(draw(out / "figure3c.svg", "Figure 3 (c): weights of workers", "worker", "weight", lines, 300))
    return files
