"""The study of clicks (clustering of crowdsourced clicks with unreliable annotators): its simulations and figures,
measured anew, and real clicks beside them.

The paper does not list the centres of its ten Gaussians, so three layouts that were found beforehand stand in (E, P1,
P2), and five that are harder (H1 to H5), fixed by a seed before anything was tuned.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from ..answers import Points
from ..engine import Run
from ..errors import FileError
from ..kernels.layout import Floats
from ..matching import match_objects
from ..points import ClickMixture, Dbscan, FuzzyCMeans, Hdbscan, PointsModel
from ..report import write_points_report
from ..result import PointsResult
from ..simulate import LAYOUTS, ClickCrowd, hard_layouts
from ..simulate import clicks as simulated
from .drawing import Line, Marks, draw
from .ledger import Figures, Ledger, mean
from .study import Asked, Part, Study

SEEDS, FEW = 100, 10
SPREAD = (0.15, 0.25)  # the paper's start variances
METHODS: dict[str, PointsModel] = {
    "merge": ClickMixture(),
    "paper": ClickMixture(method="paper", spread=SPREAD),
    "fuzzy-c-means": FuzzyCMeans(objects=10),
}
PUBLISHED = {"paper": 94.0, "fuzzy-c-means": 47.0}  # per cent of realisations, on the paper's own layout
SETS = ("fish_spots", "smfish_cells", "beads")
WITHIN = 4.0
SHORT = {"P": "precision", "R": "recall", "F1": "f1"}
OTHERS: dict[str, PointsModel] = {
    "dbscan 2 px, 4": Dbscan(distance=2.0, at_least=4),
    "dbscan 2 px, 6": Dbscan(distance=2.0, at_least=6),
    "dbscan 3 px, 6": Dbscan(distance=3.0, at_least=6),
    "dbscan 3 px, 9": Dbscan(distance=3.0, at_least=9),
    "hdbscan 5": Hdbscan(at_least=5),
    "hdbscan 8, 4": Hdbscan(at_least=8, samples=4),
}


class Real(NamedTuple):
    """Real clicks and where the objects truly are."""

    points: Points
    truth: pl.DataFrame


def clicks(asked: Asked) -> Study:
    """Success, errors and reliabilities by layout; figures 1 to 3; and, with data, real clicks."""
    ledger = Ledger(None if asked.out is None else asked.out / "measured.json", asked.watch)
    real = {} if asked.data is None else {name: _real(asked.data, name) for name in SETS}
    names = [*LAYOUTS] if asked.quick else [*LAYOUTS, *hard_layouts()]
    seeds = range(asked.seed, asked.seed + (FEW if asked.quick else SEEDS))
    measured = {
        (layout, method): [
            ledger.of(f"{layout} {method} seed {seed}", lambda a=layout, m=method, s=seed: _measured(a, m, s))  # type: ignore[misc]
            for seed in seeds
        ]
        for layout in names
        for method in METHODS
    }
    parts = [_table(measured, len(seeds)), _distribution(measured)]
    files = [] if asked.out is None else _pictures(asked, measured)
    if real:
        parts += [_real_part(real, ledger), _ranks_part(real, ledger)]
    return Study("clicks", tuple(parts), tuple(files))


def _measured(layout: str, method: str, seed: int) -> Figures:
    """One realisation: success 1 or 0, average square error of centres if so, mean error of reliabilities."""
    sim = simulated(layout, seed=seed)
    result = METHODS[method].fit(sim.points, Run(seed=seed))
    ase = _ase(result.params.mean, sim.centres)
    wrong = None
    if method in ("merge", "paper"):
        wrong = float(np.abs(result.params.reliability - sim.workers["reliability"].to_numpy()).mean())
    return {"success": float(ase is not None), "ase": ase, "reliability": wrong, "objects": len(result.params.mean)}


def _ase(found: Floats, true: Floats) -> float | None:
    """The average square error of centres; None unless each found one is nearest to another true one."""
    away = ((found[:, None] - true[None]) ** 2).sum(2)
    if len(found) != len(true) or len(np.unique(away.argmin(1))) != len(true):
        return None
    return float(away.min(1).mean())


def _table(measured: dict[tuple[str, str], list[Figures]], seeds: int) -> Part:
    rows = []
    for (layout, method), figures in measured.items():
        errors = [1e3 * each["ase"] for each in figures if each["ase"] is not None]
        rows.append(
            {
                "layout": layout, "method": method,
                "success %": 100 * (mean(figures, "success") or 0.0),
                "paper's %": PUBLISHED.get(method),
                "median ASE e-3": float(np.median(errors)) if errors else None,
                "p95 ASE e-3": float(np.quantile(errors, 0.95)) if errors else None,
                "reliability error": mean(figures, "reliability"),
            }
        )  # fmt: skip
    says = (
        f"{seeds} realisations a layout. Success: ten objects, each nearest to another true centre. fuzzy-c-means is "
        "told that there are ten.",
        "The paper's figures are of a layout that it does not list, so they are no target for these.",
    )
    return Part("Simulated clicks (Sec. 4)", pl.DataFrame(rows, infer_schema_length=None), says, 3)


def _distribution(measured: dict[tuple[str, str], list[Figures]]) -> Part:
    rows = []
    for method in METHODS:
        errors = [1e3 * each["ase"] for each in measured["E", method] if each["ase"] is not None]
        shares = {f"below {limit}e-3": float(np.mean(np.array(errors) < limit)) for limit in (2, 3, 4, 5, 6, 8)}
        rows.append({"method": method, "realisations": len(errors), **shares} if errors else {"method": method})
    says = ("Share of the successful realisations of layout E whose error is below; the paper has all below 6e-3.",)
    return Part(
        "Distribution of the average square error (Fig. 2)", pl.DataFrame(rows, infer_schema_length=None), says, 2
    )


def _pictures(asked: Asked, measured: dict[tuple[str, str], list[Figures]]) -> list[Path]:
    """Figures 1, 2 and 3 as SVG, and the pages of one realisation by both methods."""
    assert asked.out is not None
    sim = simulated("E", seed=asked.seed)
    found = {name: model.fit(sim.points, Run(seed=asked.seed)) for name, model in METHODS.items()}
    files = [_figure1(asked.out / "figure1.svg", sim, found)]
    lines = []
    for ink, method in enumerate(METHODS):
        errors = np.sort([1e3 * each["ase"] for each in measured["E", method] if each["ase"] is not None])
        if len(errors):
            lines.append(Line(method, np.column_stack([errors, np.arange(1, len(errors) + 1) / len(errors)]), ink))
    if lines:
        words = ("Figure 2: distribution of the average square error", "average square error, e-3", "share below")
        files.append(draw(asked.out / "figure2.svg", *words, lines))
    trace = found["paper"].trace
    steps = trace["sweep"].to_numpy().astype(float)
    for name, column, letter in (("BIC", "objective", "a"), ("objects", "objects", "b")):
        line = np.column_stack([steps, trace[column].to_numpy().astype(float)])
        at = line[[(found["paper"].best or 1) - 1]]
        layers: list[Marks | Line] = [Line(name, line), Marks("the best", at, "ring", 1)]
        title = f"Figure 3 ({letter}): {name} against iterations"
        files.append(draw(asked.out / f"figure3{letter}.svg", title, "iteration", name, layers, 300))
    judged = [
        {
            "method": method,
            "success": mean(measured["E", method], "success"),
            "ase": [each["ase"] for each in measured["E", method] if each["ase"] is not None],
            "mae": mean(measured["E", method], "reliability"),
        }
        for method in METHODS
    ]
    pages = ("merge", "paper")
    return files + [write_points_report(found[name], asked.out / f"{name}.html", judged=judged) for name in pages]


def _figure1(path: Path, sim: ClickCrowd, found: dict[str, PointsResult]) -> Path:
    layers: list[Marks | Line] = [
        Marks("clicks", sim.points.X, "plus"),
        Marks("true centres", sim.centres, "diamond", 4, filled=True),
        Marks("fuzzy c-means", found["fuzzy-c-means"].params.mean, "cross", 2),
        Marks("paper's EM", found["paper"].params.mean, "small diamond", 1, filled=True),
        Marks("merge", found["merge"].params.mean, "ring", 0),
    ]
    return draw(path, "Figure 1: one realisation of layout E", "x", "y", layers, 560)


def _real(folder: Path, name: str) -> Real:
    """A set of real clicks."""
    place = folder / name
    try:
        tables = [pl.read_parquet(place / f"{part}.parquet") for part in ("points", "jobs", "points_truth")]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(
            f"cannot read {name} in {folder}: {error}. --data names the folder that holds {', '.join(SETS)}"
        ) from error
    return Real(Points(tables[0], jobs=tables[1], source=name), tables[2])


def _real_part(real: dict[str, Real], ledger: Ledger) -> Part:
    methods: dict[str, PointsModel] = {
        "click-mixture": ClickMixture(),
        "without own noise": ClickMixture(noise=False),
        "an object any number of times": ClickMixture(once=False),
        **OTHERS,
    }
    rows = []
    for name, method in methods.items():
        row: dict[str, float | str | None] = {"method": name}
        for data in real:
            figures = ledger.of(f"{data} {name}", lambda d=data, m=method: _scores(real[d], m))  # type: ignore[misc]
            row |= {f"{data} {short}": figures[key] for short, key in SHORT.items()}
        rows.append(row)
    says = (
        f"Means over images of precision, recall and F1 within {WITHIN:g} px, one to one; the first line is the "
        "default, one setting for all.",
    )
    return Part("Real clicks", pl.DataFrame(rows, infer_schema_length=None), says, 3)


def _scores(real: Real, method: PointsModel) -> Figures:
    matched = match_objects(method.fit(real.points), real.truth, within=WITHIN)
    return {name: float(matched[name].mean()) for name in ("precision", "recall", "f1")}  # type: ignore[arg-type]


def _ranks_part(real: dict[str, Real], ledger: Ledger) -> Part:
    found = ledger.of("fish_spots ranks", lambda: _ranks(real["fish_spots"]))
    rows = [
        {"estimated": name, "true hit rate": found[f"{name} hits"], "true precision": found[f"{name} precision"]}
        for name in ("reliability", "hit_rate")
    ]
    says = ("Rank correlations over the workers of fish_spots; a true hit is a click matched to a true spot.",)
    return Part("Ranking of workers", pl.DataFrame(rows), says, 3)


def _ranks(real: Real) -> Figures:
    """Spearman's correlations of what is estimated of workers with what they truly did."""
    points, workers = real.points, ClickMixture().fit(real.points).workers
    hits, there = np.zeros(points.n_workers), np.zeros(points.n_workers)
    frame = points.frame()
    for w, name in enumerate(points.workers.to_list()):
        looked = points.images[points.job_image[points.job_worker == w]].to_list()
        truth = real.truth.filter(pl.col("image").is_in(looked))
        matched = match_objects(frame.filter(pl.col("worker") == name), truth, within=WITHIN)
        hits[w], there[w] = matched["matched"].sum(), truth.height
    sent = workers["clicks"].to_numpy()
    some = sent > 0
    out: Figures = {}
    for name in ("reliability", "hit_rate"):
        told = workers[name].to_numpy()[some]
        out[f"{name} hits"] = _spearman(told, hits[some] / there[some])
        out[f"{name} precision"] = _spearman(told, hits[some] / sent[some])
    return out


def _spearman(a: Floats, b: Floats) -> float:
    ranks = [pl.Series(values).rank().to_numpy() for values in (a, b)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
