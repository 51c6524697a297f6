"""Objects from clicks: time and memory, compared with scikit-learn's GaussianMixture and HDBSCAN in the same run.

python bench/clicks.py [--only million|images|peers|real|intervals]

real       the sets of ../shared/data: seconds, F1 within 4 pixels, and seconds of HDBSCAN
intervals  how many of the 95 % intervals of reliabilities cover the truth, on simulated layouts
"""

from __future__ import annotations

import argparse
import ctypes
import gc
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


def intervals(seeds: int = 10) -> dict[str, Any]:
    """Share of the intervals of reliabilities that cover the truth, and the mean error of reliabilities."""
    out = {}
    for layout in ("E", "P1", "P2", "H1", "H2", "H3", "H4", "H5"):
        inside, error = [], []
        for seed in range(seeds):
            sim = cw.simulate.clicks(layout, seed=seed)
            p, true = cw.aggregate(sim.points).params, sim.workers["reliability"].to_numpy()
            inside.append(((p.low <= true) & (true <= p.high)).mean())
            error.append((p.reliability - true).mean())
        out[layout] = {"covered": float(np.mean(inside)), "mean error": float(np.mean(error))}
    return out


PARTS = {"million": million, "images": images, "peers": peers, "real": real, "intervals": intervals}

if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[*PARTS])
    only = parser.parse_args().only
    for name in [only] if only else PARTS:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # so that memory is measured separately
            print(json.dumps(pool.submit(PARTS[name]).result(), indent=1), flush=True)
