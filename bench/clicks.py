"""Objects from clicks: time and memory, compared with scikit-learn's GaussianMixture and HDBSCAN in the same run.

python bench/clicks.py [--only million|images|peers|real|intervals|calibration|streams|digits|first]

real         the sets of ../shared/data: seconds, F1 within 4 pixels, and seconds of HDBSCAN
intervals    how many of the 95 % intervals of reliabilities cover the truth, on simulated layouts
calibration  whether probabilities of objects are right, and the factor that left-out workers suggest
streams      objects of a stream whose jobs come in random order, against those of a batch fit
digits       images of digits, some of them spoilt by their workers, clustered in an embedding
first        seconds of the first fit of an installation: a small table needs no compiler, a larger one does
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import json
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crowdwise as cw

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def simulate(images: int, clicks: int, objects: int, workers: int, seed: int = 0) -> cw.Points:
    """Simulate clicks in boxes of 1,000 pixels: standard deviation 3 pixels, 10 % outliers, one click per object."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(20, 980, (images, objects, 2))
    image = np.repeat(np.arange(images), clicks)
    n = images * clicks
    on = np.tile(np.arange(clicks) % objects, images)
    worker = np.tile(np.arange(clicks) // objects % workers, images)
    X = centres[image, on] + 3 * rng.standard_normal((n, 2))
    out = rng.random(n) < 0.1
    X[out] = rng.uniform(0, 1000, (int(out.sum()), 2))
    frame = {"image": image, "worker": worker, "x": np.clip(X[:, 0], 0, 1000), "y": np.clip(X[:, 1], 0, 1000)}
    return cw.Points(frame, box=(0, 0, 1000, 1000), duplicates="each", unit="pixels")


def memory(name: str) -> float:
    """Memory of this process in bytes: VmRSS (now) or VmHWM (peak since `reset_peak`)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def reset_peak() -> float:
    """Return freed memory to the system and reset the peak; returns the memory held now, in bytes."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def warm_up() -> None:
    """Compile the kernels before anything is timed."""
    cw.aggregate(simulate(2, 200, 5, 20), once=True)
    cw.aggregate(cw.simulate.clicks("E").points)


def million() -> dict[str, Any]:
    """1 million clicks on 100 objects in one image, 1,000 workers."""
    warm_up()
    points = simulate(1, 1_000_000, 100, 1000)
    before, begun = reset_peak(), time.perf_counter()
    result = cw.aggregate(points)
    whole = time.perf_counter() - begun
    return {
        "what": "1 million clicks, 100 objects, one image", "objects": len(result.params.mean), "seconds": whole,
        "iterations": result.trace.height, "seconds per iteration": iteration(points, result),
        "bytes per click beyond the clicks themselves": (memory("VmHWM") - before) / points.n_clicks,
        "bytes per click of Points": (points.X.nbytes + points.worker.nbytes) / points.n_clicks,
    }  # fmt: skip


def iteration(points: cw.Points, result: cw.PointsResult, times: int = 5) -> float:
    """Seconds of one EM iteration over all clicks with the objects found: the best of several."""
    from crowdwise.points.em import Mixture, Priors, assign, in_shards, maximise

    p, run = result.params, cw.Run()
    shards = in_shards(points, run)
    mixture = Mixture(p.ptr, p.mean, p.cov, p.share, p.reliability, p.noise)
    best = np.inf
    for _ in range(times):
        begun = time.perf_counter()
        stats = assign(shards, mixture, bool(p.once), run.threads)
        maximise(stats, mixture, Priors(), points.sides)
        best = min(best, time.perf_counter() - begun)
    return best


def images() -> dict[str, Any]:
    """1,000 images of 1,000 clicks on 50 objects."""
    warm_up()
    points = simulate(1000, 1000, 50, 40)
    before, begun = reset_peak(), time.perf_counter()
    result = cw.aggregate(points)
    return {
        "what": "1,000 images of 1,000 clicks, 50 objects each", "objects": len(result.params.mean),
        "seconds": time.perf_counter() - begun,
        "bytes per click beyond the clicks themselves": (memory("VmHWM") - before) / points.n_clicks,
    }  # fmt: skip


def peers() -> dict[str, Any]:
    """20,000 clicks on 100 objects in one image, in turns with scikit-learn."""
    from sklearn.cluster import HDBSCAN
    from sklearn.mixture import GaussianMixture

    warm_up()
    points = simulate(1, 20_000, 100, 400)
    X = np.asarray(points.X)
    rows: dict[str, list[float]] = {"crowdwise": [], "crowdwise iteration": [], "gaussian iteration": [], "hdbscan": []}
    for turn in range(3):
        begun = time.perf_counter()
        result = cw.aggregate(points)
        rows["crowdwise"].append(time.perf_counter() - begun)
        rows["crowdwise iteration"].append(iteration(points, result, 3))
        times = []
        for steps in (2, 12):
            model = GaussianMixture(100, max_iter=steps, tol=0.0, init_params="random_from_data", random_state=turn)
            begun = time.perf_counter()
            model.fit(X)
            times.append(time.perf_counter() - begun)
        rows["gaussian iteration"].append((times[1] - times[0]) / 10)
        begun = time.perf_counter()
        HDBSCAN(min_cluster_size=10, copy=True).fit(X)
        rows["hdbscan"].append(time.perf_counter() - begun)
    best = {name: min(values) for name, values in rows.items()}
    return {
        "what": "20,000 clicks, 100 objects, one image", "seconds": best,
        "iteration, times faster than GaussianMixture": best["gaussian iteration"] / best["crowdwise iteration"],
        "in all, times faster than HDBSCAN": best["hdbscan"] / best["crowdwise"],
    }  # fmt: skip


def real() -> dict[str, Any]:
    """Seconds (best of two) and mean F1 on real clicks, and seconds of HDBSCAN, image by image, in the same run."""
    from sklearn.cluster import HDBSCAN

    if not DATA.is_dir():
        return {"skipped": "no folder ../shared/data beside the project"}
    warm_up()
    out: dict[str, Any] = {}
    for name in ("fish_spots", "smfish_cells", "beads"):
        points = cw.read(DATA / name / "points.parquet", jobs=DATA / name / "jobs.parquet")
        seconds, peer = [], []
        for _ in range(2):
            begun = time.perf_counter()
            result = cw.aggregate(points)
            seconds.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            for i in range(points.n_images):
                HDBSCAN(min_cluster_size=5, copy=True).fit(np.asarray(points.X[points.clicks_of(i)]))
            peer.append(time.perf_counter() - begun)
        match = cw.match_objects(result, pl.read_parquet(DATA / name / "points_truth.parquet"), within=4)
        out[name] = {"seconds": min(seconds), "hdbscan": min(peer), "F1": match["f1"].mean()}
    return out


def random_layouts() -> dict[str, np.ndarray]:
    """Five layouts of ten random centres, at least 0.7 apart and 0.3 from the edges."""
    out: dict[str, np.ndarray] = {}
    for number in range(1, 6):
        rng, centres = np.random.default_rng([19, number]), np.empty((0, 2))
        while len(centres) < 10:
            place = rng.uniform((1.3, 0.3), (3.7, 4.7))
            if not len(centres) or np.sqrt(((centres - place) ** 2).sum(1)).min() > 0.7:
                centres = np.vstack([centres, place])
        out[f"R{number}"] = centres
    return out


def intervals(seeds: int = 40) -> dict[str, Any]:
    """Share of the intervals of reliabilities that cover the truth, its standard error, and the mean error of
    reliabilities. Constants were chosen with other seeds, and none on the random layouts."""
    named = {name: name for name in ("E", "P1", "P2", "H1", "H2", "H3", "H4", "H5")}
    out = {}
    for name, layout in {**named, **random_layouts()}.items():
        inside, error = [], []
        for seed in range(3000, 3000 + seeds):
            sim = cw.simulate.clicks(layout, seed=seed)
            p, true = cw.aggregate(sim.points).params, sim.workers["reliability"].to_numpy()
            inside.append(((p.low <= true) & (true <= p.high)).mean())
            error.append((p.reliability - true).mean())
        out[name] = {
            "covered": round(float(np.mean(inside)), 4), "standard error": float(np.std(inside) / np.sqrt(seeds)),
            "mean error": float(np.mean(error)),
        }  # fmt: skip
    return out


SETS = ("fish_spots", "smfish_cells", "beads")


def clicks_and_truth(name: str) -> tuple[cw.Points, pl.DataFrame]:
    points = cw.read(DATA / name / "points.parquet", jobs=DATA / name / "jobs.parquet")
    return points, pl.read_parquet(DATA / name / "points_truth.parquet")


def correct(result: cw.PointsResult, truth: pl.DataFrame, within: float) -> np.ndarray:
    """Whether each object has a true one within some pixels, matched one to one."""
    from scipy.optimize import linear_sum_assignment

    found = []
    for image in result.answers.images.to_list():
        own, true = (t.filter(pl.col("image") == image).select("x", "y").to_numpy() for t in (result.objects, truth))
        away = np.sqrt(((own[:, None] - true[None]) ** 2).sum(2))
        i, j = linear_sum_assignment(np.where(away <= within, away - 1000, 0))
        right = np.zeros(len(own), bool)
        right[i[away[i, j] <= within]] = True
        found.append(right)
    return np.concatenate(found)


def shift_removed(result: cw.PointsResult, truth: pl.DataFrame) -> pl.DataFrame:
    """The true points of each image, moved by the median difference from the objects that match them within 8 px."""
    from crowdwise.metrics.matching import match_images

    moved = []
    for image, match in match_images(result, truth.select("image", "x", "y"), within=8).items():
        x, y = np.median(match.found[match.rows] - match.true[match.columns], axis=0)
        moved.append(truth.filter(pl.col("image") == image).with_columns(pl.col("x") + x, pl.col("y") + y))
    return pl.concat(moved)


def error_of(p: np.ndarray, right: np.ndarray) -> float:
    """Calibration error in points: ten bins, weighted by their size."""
    cell = np.minimum((10 * p).astype(int), 9)
    size, claimed, true = (np.bincount(cell, w, minlength=10) for w in (np.ones(len(p)), p, right))
    return float(100 * np.abs(claimed - true).sum() / size.sum())


def left_out_hits(name: str, split: int) -> np.ndarray:
    """Objects found by half of the jobs, as rows: log-odds, workers of the other half who click on it, how many of them
    looked, and the share of them who click at a random place of the background."""
    from scipy.spatial import cKDTree

    rng, (points, _) = np.random.default_rng(split), clicks_and_truth(name)
    frame, jobs = points.frame(), pl.read_parquet(DATA / name / "jobs.parquet").select("image", "worker").unique()
    jobs = jobs.sort("image", "worker")
    half = pl.Series(rng.random(jobs.height) < 0.5)
    one, other = jobs.filter(half), jobs.filter(~half)
    seen, unseen = (frame.join(each, on=["image", "worker"], how="semi") for each in (one, other))
    result = cw.aggregate(cw.Points(seen.select("image", "worker", "x", "y"), jobs=one, unit="pixels"))
    radius = 2.5 * np.sqrt(np.sqrt(np.linalg.det(result.params.cov))).mean()
    rows = []
    for i, image in enumerate(result.answers.images.to_list()):
        objects, clicks = (t.filter(pl.col("image") == image) for t in (result.objects, unseen))
        looked, tree = other.filter(pl.col("image") == image).height, cKDTree(clicks.select("x", "y").to_numpy())
        worker, place = clicks["worker"].to_numpy(), objects.select("x", "y").to_numpy()
        low, high = result.answers.box[i]
        anywhere = rng.uniform(low + radius, high - radius, (2000, 2))
        background = anywhere[cKDTree(place).query(anywhere)[0] > 2.2 * radius]
        hits, chance = ([len(set(worker[k])) for k in tree.query_ball_point(at, radius)] for at in (place, background))
        p = np.clip(objects["probability"].to_numpy(), 1e-6, 1 - 1e-6)
        rate = np.mean(chance) / max(looked, 1)
        rows += [(2 * np.log(q / (1 - q)), k, looked, rate) for q, k in zip(p, hits, strict=True)]
    return np.array(rows)


def line_by_left_out_workers(sets: list[np.ndarray]) -> tuple[float, float]:
    """Intercept and slope of the log-odds that predict best which objects workers of the other half click on."""
    from scipy.optimize import minimize
    from scipy.special import betaln, expit, gammaln

    def beta_binomial(k: Any, n: Any, a: Any, b: Any) -> Any:
        return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + betaln(k + a, n - k + b) - betaln(a, b)

    def loss(theta: Any) -> float:
        total = theta[0] ** 2 / 18 + theta[1] ** 2 / 2
        for number, rows in enumerate(sets):
            odds, k, n, rate = rows.T
            mean, strength = expit(theta[2 + 2 * number]), np.exp(min(theta[3 + 2 * number], 5))
            chance = np.clip(4 * rate, 1e-3, 0.6)  # some decoys attract more clicks than the background
            q = np.clip(expit(theta[0] + np.exp(theta[1]) * odds), 1e-9, 1 - 1e-9)
            real = np.log(q) + beta_binomial(k, n, mean * strength, (1 - mean) * strength)
            decoy = np.log1p(-q) + beta_binomial(k, n, 8 * chance, 8 * (1 - chance))
            total -= np.logaddexp(real, decoy).sum() * 500 / len(rows)
        return float(total)

    starts = ([a, -0.3, *[0, 1.0] * len(sets)] for a in (0, -2))
    options = {"maxiter": 9000, "maxfev": 9000}
    best = min((minimize(loss, x, method="Nelder-Mead", options=options) for x in starts), key=lambda f: float(f.fun))
    return float(best.x[0]), float(np.exp(best.x[1]))


def calibration() -> dict[str, Any]:
    """Calibration of the probabilities of objects, and of a line through their log-odds from the other two sets."""
    if not DATA.is_dir():
        return {"skipped": "no folder ../shared/data beside the project"}
    hits = {name: np.concatenate([left_out_hits(name, split) for split in range(2)]) for name in SETS}
    out: dict[str, Any] = {"line from all sets (intercept, slope)": line_by_left_out_workers(list(hits.values()))}
    for name in SETS:
        points, truth = clicks_and_truth(name)
        result = cw.aggregate(points)
        p = result.objects["probability"].to_numpy()
        odds = 2 * np.log(p / (1 - p))
        a, b = line_by_left_out_workers([hits[other] for other in SETS if other != name])
        truths = {"4 px": (truth, 4)}
        if name == "smfish_cells":  # whose true points are shifted, and not exact
            still = shift_removed(result, truth)
            truths |= {"8 px": (truth, 8), "shift removed, 4 px": (still, 4), "shift removed, 6 px": (still, 6)}
        for how, (points_of, within) in truths.items():
            right = correct(result, points_of, within)
            edges = (0.0, 0.8, 0.9, 0.95, 0.99, 1.0)
            bins = {
                f"{low} to {high}": (int(m.sum()), round(float(right[m].mean()), 3))
                for low, high in itertools.pairwise(edges)
                if (m := (p >= low) & ((p < high) | (high == 1))).any()
            }
            out[f"{name}, {how}"] = {
                "error in points": error_of(p, right), "with the line of the other sets": (a, b),
                "its error": error_of(1 / (1 + np.exp(-a - b * odds)), right), "objects and share right": bins,
            }  # fmt: skip
    return out


def streams(batches: int = 8) -> dict[str, Any]:
    """Objects and skills of a stream whose jobs come in random batches, against a batch fit: F1 of objects within 4 px
    and the mean difference of skill, for two orders; and F1 between two orders, and between two seeds of batch fits."""
    if not DATA.is_dir():
        return {"skipped": "no folder ../shared/data beside the project"}

    def f1(one: Any, other: Any) -> float:
        return round(float(cw.match_objects(one, other.select("image", "x", "y"), within=4)["f1"].mean()), 4)

    out: dict[str, Any] = {}
    for name in SETS:
        points, _ = clicks_and_truth(name)
        whole, seeded = (cw.aggregate(points, run=cw.Run(seed=seed)) for seed in (0, 1))
        skill = whole.workers.select("worker", "skill")
        results, row = [], {"seeds of the batch fit": f1(seeded.objects.select("image", "x", "y"), whole.objects)}
        for order in range(2):
            part = np.random.default_rng(order).permutation(points.n_jobs) % batches
            stream = cw.ClickStream()
            for batch in range(batches):
                stream.update(points.replaced(**points._select_jobs(np.flatnonzero(part == batch))))
            before, result = stream.objects, stream.result()
            results.append(result)
            both = skill.join(result.workers.select("worker", "skill"), on="worker")
            learned = skill.join(stream.workers.select("worker", "skill"), on="worker")
            row[f"order {order}"] = {
                "F1": f1(result.objects.select("image", "x", "y"), whole.objects),
                "skill": float((both["skill"] - both["skill_right"]).abs().mean()),
                "F1 before result()": f1(before.select("image", "x", "y"), whole.objects),
                "skill before result()": float((learned["skill"] - learned["skill_right"]).abs().mean()),
            }  # fmt: skip
        row["orders"] = f1(results[0].objects.select("image", "x", "y"), results[1].objects)
        out[name] = row
    return out


def digits(seeds: int = 5) -> dict[str, Any]:
    """Images of digits from twenty workers; in those that a worker spoils, half of the pixels are noise."""
    from sklearn.datasets import load_digits

    data, rows = load_digits(), []
    reliability = np.array([0.95] * 15 + [0.75] * 3 + [0.25] * 2)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        worker = rng.integers(20, size=len(data.data))
        spoilt = rng.random(len(worker)) > reliability[worker]
        noise = spoilt[:, None] & (rng.random(data.data.shape) < 0.5)
        X = np.where(noise, rng.uniform(0, 16, data.data.shape), data.data)
        begun = time.perf_counter()
        result = cw.aggregate(cw.embed_points(X, worker))
        seconds, row = time.perf_counter() - begun, result.clicks["row"].to_numpy()
        p, digit, bad = result.params, data.target[row], spoilt[row]
        pure = sum(np.bincount(digit[p.object == m]).max() for m in np.unique(p.object) if m >= 0)
        rows.append({
            "clusters": len(p.mean), "purity": pure / (p.object >= 0).sum(),
            "AUC of spoilt images": (p.outlier[bad][:, None] > p.outlier[~bad][None]).mean(),
            "error of reliabilities": np.abs(p.reliability - reliability).mean(),
            "correlation of reliabilities": np.corrcoef(p.reliability, reliability)[0, 1], "seconds": seconds,
        })  # fmt: skip
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def first() -> dict[str, Any]:
    """Seconds of the first fit with an empty cache of compiled kernels, and of the second, for a small table, which
    numpy serves, and for a larger one, which compiles; then the same in a new process."""
    import os
    import subprocess
    import sys
    import tempfile

    code = (
        "import sys, time, crowdwise as cw\n"
        "points = cw.simulate.clicks('E', total=int(sys.argv[1]), seed=1).points\n"
        "for _ in range(2):\n"
        "    begun = time.perf_counter(); cw.aggregate(points); print(time.perf_counter() - begun)"
    )
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for clicks in (850, 1700):
            for process in ("first", "second"):
                run = subprocess.run(
                    [sys.executable, "-c", code, str(clicks)], env=os.environ | {"NUMBA_CACHE_DIR": folder},
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                seconds = map(float, run.stdout.split())
                out[f"{clicks} clicks, {process} process"] = dict(zip(("first", "second"), seconds, strict=True))
    return out


PARTS = {
    "million": million, "images": images, "peers": peers, "real": real, "intervals": intervals,
    "calibration": calibration, "streams": streams, "digits": digits, "first": first,
}  # fmt: skip

if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*PARTS])
    only = parser.parse_args().only
    for name in [only] if only else PARTS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # so that memory is measured separately
            print(json.dumps(pool.submit(PARTS[name]).result(), indent=1), flush=True)
