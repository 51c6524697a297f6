"""The study of clicks (clustering of crowdsourced clicks with unreliable annotators), measured anew, and real clicks.

The paper does not list the centres of its ten Gaussians, so three layouts that were found beforehand stand in (E, P1,
P2), and five that are harder (H1 to H5), fixed by a seed before anything was tuned.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Points
from ..engine import Run
from ..errors import option
from ..inter_rater import rank_correlation
from ..kernels.layout import Floats
from ..metrics import match_objects
from ..points import ClickMixture, Dbscan, FuzzyCMeans, Hdbscan
from ..points.model import PointsModel
from ..report import write_report
from ..result import PointsResult
from ..simulate import HARD_LAYOUTS, LAYOUTS
from ..simulate import clicks as simulated
from .study import Asked, Figures, Layer, Ledger, Part, Study, draw, mean, reading

METHODS: dict[str, PointsModel] = {
    "merge": ClickMixture(),
    "paper": ClickMixture(method="paper", spread=(0.15, 0.25)),  # the paper's start variances
    "fuzzy-c-means": FuzzyCMeans(objects=10),
}
PUBLISHED = {"paper": 94.0, "fuzzy-c-means": 47.0}  # per cent of realisations, on the paper's own layout
SETS = ("fish_spots", "smfish_cells", "beads")
WITHIN = 4.0
SCORES = {"P": "precision", "R": "recall", "F1": "f1"}
REAL_METHODS: dict[str, PointsModel] = {
    "click-mixture": ClickMixture(),
    "without own noise": ClickMixture(noise=False),
    "an object any number of times": ClickMixture(once=False),
    "dbscan 2 px, 4": Dbscan(distance=2.0, at_least=4),
    "dbscan 2 px, 6": Dbscan(distance=2.0, at_least=6),
    "dbscan 3 px, 6": Dbscan(distance=3.0, at_least=6),
    "dbscan 3 px, 9": Dbscan(distance=3.0, at_least=9),
    "hdbscan 5": Hdbscan(at_least=5),
    "hdbscan 8, 4": Hdbscan(at_least=8, samples=4),
}
Real = tuple[Points, pl.DataFrame]  # clicks, and where the objects truly are
Measured = dict[tuple[str, str], list[Figures]]  # by layout and method, an entry a seed


def clicks(asked: Asked) -> Study:
    """Success, errors and reliabilities by layout; figures 1 to 3; and, with data, real clicks."""
    ledger, seeds = asked.ledger(), asked.seeds(10, 100)
    real = {} if asked.data is None else {name: _real(asked.data, name) for name in SETS}
    measured = {
        (layout, method): ledger.runs(f"{layout} {method}", seeds, _measured, layout, method)
        for layout in [*LAYOUTS, *([] if asked.quick else HARD_LAYOUTS)]
        for method in METHODS
    }
    parts = [_table(measured, len(seeds)), _distribution(measured)]
    files = [] if asked.out is None else _pictures(asked.out, asked.seed, measured)
    if real:
        parts += [_real_part(real, ledger), _ranks_part(real, ledger)]
    return Study("clicks", tuple(parts), tuple(files))


def _measured(layout: str, method: str, seed: int) -> Figures:
    """One realisation: success 1 or 0, average square error of centres if so, mean error of reliabilities."""
    sim = simulated(layout, seed=seed)
    found = METHODS[method].fit(sim.points, run=Run(seed=seed)).params
    ase = _ase(found.mean, sim.centres)
    wrong = None
    if method != "fuzzy-c-means":
        wrong = float(np.abs(found.reliability - sim.workers["reliability"].to_numpy()).mean())
    return {"success": float(ase is not None), "ase": ase, "reliability": wrong, "objects": len(found.mean)}


def _ase(found: Floats, true: Floats) -> float | None:
    """The average square error of centres; None unless each found one is nearest to another true one."""
    away = ((found[:, None] - true[None]) ** 2).sum(2)
    if len(found) != len(true) or len(np.unique(away.argmin(1))) != len(true):
        return None
    return float(away.min(1).mean())


def _errors(figures: list[Figures]) -> Any:
    """Average square errors of the successful realisations."""
    return np.array([each["ase"] for each in figures if each["ase"] is not None])


def _table(measured: Measured, seeds: int) -> Part:
    rows = []
    for (layout, method), figures in measured.items():
        errors = 1e3 * _errors(figures)
        row = {
            "layout": layout, "method": method,
            "success %": 100 * (mean(figures, "success") or 0.0),
            "paper's %": PUBLISHED.get(method),
            "median ASE e-3": float(np.median(errors)) if len(errors) else None,
            "p95 ASE e-3": float(np.quantile(errors, 0.95)) if len(errors) else None,
            "reliability error": mean(figures, "reliability"),
        }  # fmt: skip
        rows.append(row)
    says = (
        f"{seeds} realisations a layout. Success: ten objects, each nearest to another true centre. fuzzy-c-means is "
        "told that there are ten.",
        "The paper's figures are of a layout that it does not list, so they are no target for these.",
    )
    return Part.of("Simulated clicks (Sec. 4)", rows, says, 3)


def _distribution(measured: Measured) -> Part:
    rows = []
    for method in METHODS:
        errors = 1e3 * _errors(measured["E", method])
        shares = {f"below {limit}e-3": float(np.mean(errors < limit)) for limit in (2, 3, 4, 5, 6, 8)}
        rows.append({"method": method, "realisations": len(errors), **shares} if len(errors) else {"method": method})
    says = ("Share of the successful realisations of layout E whose error is below; the paper has all below 6e-3.",)
    return Part.of("Distribution of the average square error (Fig. 2)", rows, says, 2)


def _pictures(out: Path, seed: int, measured: Measured) -> list[Path]:
    """Figures 1, 2 and 3 as SVG, and the pages of one realisation by both methods."""
    sim = simulated("E", seed=seed)
    found = {name: model.fit(sim.points, run=Run(seed=seed)) for name, model in METHODS.items()}
    centres = {name: result.params.mean for name, result in found.items()}
    layers = [
        Layer("clicks", sim.points.X, 4, "plus"),
        Layer("true centres", sim.centres, 4, "diamond", filled=True),
        Layer("fuzzy c-means", centres["fuzzy-c-means"], 2, "cross"),
        Layer("paper's EM", centres["paper"], 1, "small diamond", filled=True),
        Layer("merge", centres["merge"], 0, "ring"),
    ]
    files = [draw(out / "figure1.svg", "Figure 1: one realisation of layout E", "x", "y", layers, 560)]
    figures = {method: measured["E", method] for method in METHODS}
    files += _figure2(out, figures) + _figure3(out, found["paper"])
    judged = [
        {"method": m, "success": mean(f, "success"), "ase": _errors(f).tolist(), "mae": mean(f, "reliability")}
        for m, f in figures.items()
    ]
    return files + [write_report(found[name], out / f"{name}.html", judged=judged) for name in ("merge", "paper")]


def _figure2(out: Path, figures: dict[str, list[Figures]]) -> list[Path]:
    layers = []
    for ink, (method, each) in enumerate(figures.items()):
        errors = 1e3 * np.sort(_errors(each))
        if len(errors):
            layers.append(Layer(method, np.column_stack([errors, np.arange(1, len(errors) + 1) / len(errors)]), ink))
    words = ("Figure 2: distribution of the average square error", "average square error, e-3", "share below")
    return [draw(out / "figure2.svg", *words, layers)] if layers else []


def _figure3(out: Path, result: PointsResult) -> list[Path]:
    files, best = [], (result.best or 1) - 1
    for name, column, letter in (("BIC", "objective", "a"), ("objects", "objects", "b")):
        line = result.trace.select("iteration", column).cast(pl.Float64).to_numpy()
        layers = [Layer(name, line), Layer("the best", line[[best]], 1, "ring")]
        title = f"Figure 3 ({letter}): {name} against iterations"
        files.append(draw(out / f"figure3{letter}.svg", title, "iteration", name, layers, 300))
    return files


def _real(folder: Path, name: str) -> Real:
    """A set of real clicks."""
    with reading(name, folder, f". {option('data')} names the folder that holds {', '.join(SETS)}") as data:
        parts = ("points", "jobs", "points_truth")
        points, jobs, truth = (pl.read_parquet(data / name / f"{part}.parquet") for part in parts)
    return Points(points, jobs=jobs, source=name), truth


def _real_part(real: dict[str, Real], ledger: Ledger) -> Part:
    rows = []
    for name, method in REAL_METHODS.items():
        row: dict[str, Any] = {"method": name}
        for data in real:
            figures = ledger.of(f"{data} {name}", _scores, real[data], method)
            row |= {f"{data} {short}": figures[score] for short, score in SCORES.items()}
        rows.append(row)
    says = (
        f"Means over images of precision, recall and F1 within {WITHIN:g} px, one to one; the first line is the "
        "default, one setting for all.",
    )
    return Part.of("Real clicks", rows, says, 3)


def _scores(real: Real, method: PointsModel) -> Figures:
    matched = match_objects(method.fit(real[0]), real[1], within=WITHIN)
    return {name: float(matched[name].mean()) for name in SCORES.values()}  # type: ignore[arg-type]


def _ranks_part(real: dict[str, Real], ledger: Ledger) -> Part:
    found = ledger.of("fish_spots ranks", _ranks, *real["fish_spots"])
    rows = [
        {"estimated": name, "true hit rate": found[f"{name} hits"], "true precision": found[f"{name} precision"]}
        for name in ("skill", "hit_rate")
    ]
    says = ("Rank correlations over the workers of fish_spots; a true hit is a click matched to a true spot.",)
    return Part.of("Ranking of workers", rows, says, 3)


def _ranks(points: Points, truth: pl.DataFrame) -> Figures:
    """Spearman's correlations of what is estimated of workers with what they truly did."""
    workers, frame = ClickMixture().fit(points).workers, points.frame()
    hits, there = np.zeros(points.n_workers), np.zeros(points.n_workers)
    for w, name in enumerate(points.workers.to_list()):
        looked = points.images[points.job_image[points.job_worker == w]].to_list()
        seen = truth.filter(pl.col("image").is_in(looked))
        matched = match_objects(frame.filter(pl.col("worker") == name), seen, within=WITHIN)
        hits[w], there[w] = matched["matched"].sum(), seen.height
    sent = workers["answers"].to_numpy()
    some = sent > 0
    out: Figures = {}
    for name in ("skill", "hit_rate"):
        told = workers[name].to_numpy()[some]
        out[f"{name} hits"] = rank_correlation(told, hits[some] / there[some])
        out[f"{name} precision"] = rank_correlation(told, hits[some] / sent[some])
    return out
