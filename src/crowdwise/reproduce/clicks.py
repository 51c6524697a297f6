"""The study of clicks (clustering of crowdsourced clicks with unreliable annotators), measured again, and real clicks.

The paper does not list the centres of its ten Gaussians. Three layouts chosen beforehand replace them (E, P1, P2), and
five harder ones (H1 to H5) were drawn from a seed before anything was tuned.
"""

from __future__ import annotations

import time
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
from .study import Layer, Measurement, MeasurementCache, Part, Study, StudyOptions, draw, mean, reading

METHODS: dict[str, PointsModel] = {
    "merge": ClickMixture(),
    # the paper's initial variances; its search stops at six components
    "paper": ClickMixture(method="paper", spread=(0.15, 0.25), at_least=6),
    "fuzzy-c-means": FuzzyCMeans(objects=10),
}
PAPER_SUCCESS = {"paper": 94.0, "fuzzy-c-means": 47.0}  # percent of realisations, on the paper's own layout
SETS = ("fish_spots", "smfish_cells", "beads")
MATCH_DISTANCE = 4.0  # pixels
SCORES = {"P": "precision", "R": "recall", "F1": "f1"}
REAL_METHODS: dict[str, PointsModel] = {
    "click-mixture": ClickMixture(),
    "no noise per worker": ClickMixture(noise=False),
    "several clicks per object": ClickMixture(once=False),
    "dbscan 2 px, 4": Dbscan(distance=2.0, at_least=4),
    "dbscan 2 px, 6": Dbscan(distance=2.0, at_least=6),
    "dbscan 3 px, 6": Dbscan(distance=3.0, at_least=6),
    "dbscan 3 px, 9": Dbscan(distance=3.0, at_least=9),
    "hdbscan 5": Hdbscan(at_least=5),
    "hdbscan 8, 4": Hdbscan(at_least=8, samples=4),
}
QUICK_REAL_METHODS = ("click-mixture", "dbscan 3 px, 6", "hdbscan 5")
RealClicks = tuple[Points, pl.DataFrame]  # clicks, and the true objects
Measurements = dict[tuple[str, str], list[Measurement]]  # by layout and method, one entry per seed


def clicks(options: StudyOptions) -> Study:
    """Success rates and errors by layout, figures 1 to 3, and real clicks if `data` is given."""
    cache, seeds = options.cache("clicks"), options.seeds(1, 500)
    real = {} if options.data is None else {name: _read_real(options.data, name) for name in SETS}
    measurements = {
        (layout, method): cache.measure_seeds(f"{layout} {method}", seeds, _measure, layout, method)
        for layout in [*LAYOUTS, *([] if options.quick else HARD_LAYOUTS)]
        for method in METHODS
    }
    parts = [_success_part(measurements, len(seeds)), _distribution_part(measurements)]
    files = [] if options.out is None else _write_figures(options.out, options.seed, measurements)
    if real:
        parts += [_real_part(real, cache, options.quick), _ranks_part(real, cache)]
    return Study("clicks", tuple(parts), tuple(files), cache.seconds)


def _measure(layout: str, method: str, seed: int) -> Measurement:
    """One realisation: success (1 or 0), average square error of centres on success, mean error of reliabilities, and
    processor time of the fit."""
    sim = simulated(layout, seed=seed)
    began = time.process_time()
    params = METHODS[method].fit(sim.points, run=Run(seed=seed)).params
    seconds = time.process_time() - began
    ase = _average_square_error(params.mean, sim.centres)
    error = None
    if method != "fuzzy-c-means":
        error = float(np.abs(params.reliability - sim.workers["reliability"].to_numpy()).mean())
    objects = float(len(params.mean))
    return {
        "success": float(ase is not None), "ase": ase, "reliability": error, "objects": objects, "seconds": seconds,
    }  # fmt: skip


def _average_square_error(found: Floats, true: Floats) -> float | None:
    """Average square error of centres; None unless each found centre is nearest to a different true centre."""
    distances = ((found[:, None] - true[None]) ** 2).sum(2)
    if len(found) != len(true) or len(np.unique(distances.argmin(1))) != len(true):
        return None
    return float(distances.min(1).mean())


def _errors(measurements: list[Measurement]) -> Any:
    """Average square errors of the successful realisations."""
    return np.array([each["ase"] for each in measurements if each["ase"] is not None])


def _success_part(measurements: Measurements, seeds: int) -> Part:
    rows = []
    for (layout, method), found in measurements.items():
        errors = 1e3 * _errors(found)
        row = {
            "layout": layout, "method": method,
            "success %": 100 * (mean(found, "success") or 0.0),
            "paper's success %": PAPER_SUCCESS.get(method),
            "median ASE e-3": float(np.median(errors)) if len(errors) else None,
            "p95 ASE e-3": float(np.quantile(errors, 0.95)) if len(errors) else None,
            "reliability error": mean(found, "reliability"),
            "median seconds": float(np.median([each["seconds"] for each in found])),  # the first may compile
        }  # fmt: skip
        rows.append(row)
    notes = (
        f"{seeds} realisations per layout. Success means that ten objects are found, each nearest to a different true "
        "centre. fuzzy-c-means is given the number of objects.",
        "ASE: average square error of the centres in successful realisations. Reliability error: mean absolute error.",
        "The paper does not list its layout, so its numbers are not directly comparable.",
    )
    return Part.of("Simulated clicks (Sec. 4)", rows, notes, 3)


def _distribution_part(measurements: Measurements) -> Part:
    rows = []
    for method in METHODS:
        errors = 1e3 * _errors(measurements["E", method])
        shares = {f"below {limit}e-3 %": 100 * float(np.mean(errors < limit)) for limit in (2, 3, 4, 5, 6, 8)}
        rows.append({"method": method, "realisations": len(errors), **shares} if len(errors) else {"method": method})
    notes = (
        "Percent of the successful realisations of layout E with an error below each limit. In the paper all are "
        "below 6e-3.",
    )
    return Part.of("Distribution of the average square error (Fig. 2)", rows, notes, 1)


def _write_figures(out: Path, seed: int, measurements: Measurements) -> list[Path]:
    """Write figures 1, 2 and 3 as SVG, and the pages of one realisation for merge and paper."""
    sim = simulated("E", seed=seed)
    results = {name: model.fit(sim.points, run=Run(seed=seed)) for name, model in METHODS.items()}
    centres = {name: result.params.mean for name, result in results.items()}
    layers = [
        Layer("clicks", sim.points.X, 4, "plus"),
        Layer("true centres", sim.centres, 4, "diamond", filled=True),
        Layer("fuzzy c-means", centres["fuzzy-c-means"], 2, "cross"),
        Layer("paper's EM", centres["paper"], 1, "small diamond", filled=True),
        Layer("merge", centres["merge"], 0, "ring"),
    ]
    files = [draw(out / "clicks-figure1.svg", "Figure 1: one realisation of layout E", "x", "y", layers, 560)]
    by_method = {method: measurements["E", method] for method in METHODS}
    files += _figure2(out, by_method) + _figure3(out, results["paper"])
    judged = [
        {"method": m, "success": mean(f, "success"), "ase": _errors(f).tolist(), "mae": mean(f, "reliability")}
        for m, f in by_method.items()
    ]
    return files + [write_report(results[name], out / f"{name}.html", judged=judged) for name in ("merge", "paper")]


def _figure2(out: Path, by_method: dict[str, list[Measurement]]) -> list[Path]:
    layers = []
    for colour, (method, found) in enumerate(by_method.items()):
        errors = 1e3 * np.sort(_errors(found))
        if len(errors):
            layers.append(Layer(method, np.column_stack([errors, np.arange(1, len(errors) + 1) / len(errors)]), colour))
    texts = ("Figure 2: distribution of the average square error", "average square error, e-3", "share below")
    return [draw(out / "clicks-figure2.svg", *texts, layers)] if layers else []


def _figure3(out: Path, result: PointsResult) -> list[Path]:
    files, best = [], (result.best or 1) - 1
    for name, column, letter in (("BIC", "objective", "a"), ("objects", "objects", "b")):
        line = result.trace.select("iteration", column).cast(pl.Float64).to_numpy()
        layers = [Layer(name, line), Layer("best", line[[best]], 1, "ring")]
        title = f"Figure 3 ({letter}): {name} by iteration"
        files.append(draw(out / f"clicks-figure3{letter}.svg", title, "iteration", name, layers, 300))
    return files


def _read_real(folder: Path, name: str) -> RealClicks:
    """Read a data set of real clicks."""
    with reading(name, folder, f". {option('data')} must be the folder that holds {', '.join(SETS)}") as data:
        parts = ("points", "jobs", "points_truth")
        points, jobs, truth = (pl.read_parquet(data / name / f"{part}.parquet") for part in parts)
    return Points(points, jobs=jobs, source=name), truth


def _real_part(real: dict[str, RealClicks], cache: MeasurementCache, quick: bool) -> Part:
    rows = []
    for name in QUICK_REAL_METHODS if quick else REAL_METHODS:
        method = REAL_METHODS[name]
        row: dict[str, Any] = {"method": name}
        for data in real:
            found = cache.measure(f"{data} {name}", _scores, real[data], method)
            row |= {f"{data} {short}": found[score] for short, score in SCORES.items()}
        rows.append(row)
    notes = (
        "Precision (P), recall (R) and F1, means over images. Estimated and true objects are matched one to one within "
        f"{MATCH_DISTANCE:g} px. The first row is the default model with the same settings for all sets; rows without "
        "the name of a method change one of its settings.",
    )
    return Part.of("Real clicks", rows, notes, 3)


def _scores(real: RealClicks, method: PointsModel) -> Measurement:
    matched = match_objects(method.fit(real[0]), real[1], within=MATCH_DISTANCE)
    return {name: float(matched[name].mean()) for name in SCORES.values()}  # type: ignore[arg-type]


def _ranks_part(real: dict[str, RealClicks], cache: MeasurementCache) -> Part:
    found = cache.measure("fish_spots ranks", _ranks, *real["fish_spots"])
    rows = [
        {"estimated": name, "true hit rate": found[f"{name} hits"], "true precision": found[f"{name} precision"]}
        for name in ("skill", "hit_rate")
    ]
    notes = (
        "Spearman's rank correlations over the workers of fish_spots, between estimates (rows) and true values "
        "(columns). A true hit is a click matched to a true spot.",
    )
    return Part.of("Ranking of workers", rows, notes, 3)


def _ranks(points: Points, truth: pl.DataFrame) -> Measurement:
    """Spearman's correlations of estimated skills and hit rates with the workers' true hit rates and precisions."""
    workers, frame = ClickMixture().fit(points).workers, points.frame()
    hits, objects = np.zeros(points.n_workers), np.zeros(points.n_workers)
    for w, name in enumerate(points.workers.to_list()):
        images = points.images[points.job_image[points.job_worker == w]].to_list()
        own_truth = truth.filter(pl.col("image").is_in(images))
        matched = match_objects(frame.filter(pl.col("worker") == name), own_truth, within=MATCH_DISTANCE)
        hits[w], objects[w] = matched["matched"].sum(), own_truth.height
    n_clicks = workers["answers"].to_numpy()
    active = n_clicks > 0
    out: Measurement = {}
    for name in ("skill", "hit_rate"):
        estimated = workers[name].to_numpy()[active]
        out[f"{name} hits"] = rank_correlation(estimated, hits[active] / objects[active])
        out[f"{name} precision"] = rank_correlation(estimated, hits[active] / n_clicks[active])
    return out
