"""Clusters from pairs: time and memory of pair-mixture, compared with scikit-learn's GaussianMixture in the same run.

python bench/pairs.py [--only million|peer]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import numpy as np
import polars as pl
from clicks import memory, reset_peak

import crowdwise as cw


def simulate(items: int, pairs: int, dims: int, clusters: int, seed: int = 0) -> tuple[cw.Pairs, tuple[Any, Any], Any]:
    """Simulate Gaussian clusters, and answers of 1,000 workers with accuracy 0.9; returns pairs, features and truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(clusters, size=items)
    X = 3.0 * rng.standard_normal((clusters, dims))[truth] + rng.standard_normal((items, dims))
    left, right = rng.integers(items, size=pairs), rng.integers(items, size=pairs)
    half = pairs // 2  # half of the pairs are the same; at random few would be
    order = np.argsort(truth, kind="stable")
    start = np.searchsorted(truth[order], np.arange(clusters + 1))
    size = np.diff(start)[truth[left[:half]]]
    right[:half] = order[start[truth[left[:half]]] + rng.integers(0, size)]
    same = truth[left] == truth[right]
    answer = same == (rng.random(pairs) < 0.9)
    frame = pl.DataFrame({"left": left, "right": right, "worker": rng.integers(1000, size=pairs), "answer": answer})
    ids = np.arange(items)
    return cw.Pairs(frame).on(ids), (pl.Series("item", ids), X), truth


def timed_fit(pairs: cw.Pairs, features: Any, **settings: Any) -> tuple[float, Any]:
    """Seconds of a fit, and its result."""
    begun = time.perf_counter()
    result = cw.aggregate(pairs, features=features, restarts=1, **settings)
    return time.perf_counter() - begun, result


def million(items: int = 1_000_000) -> dict[str, Any]:
    """1 million items in 16 dimensions, 1 million pairs, 50 components."""
    timed_fit(*simulate(2000, 2000, 16, 10)[:2], parts=10)
    pairs, features, truth = simulate(items, items, 16, 20)
    before = reset_peak()
    short, _ = timed_fit(pairs, features, parts=50, max_iter=2)
    peak = memory("VmHWM") - before
    long, result = timed_fit(pairs, features, parts=50, max_iter=12)
    scores = cw.match_clusters(result, pl.DataFrame({"item": features[0], "label": truth}))
    return {
        "items": items,
        "answers": pairs.n_answers,
        "seconds per iteration": (long - short) / max(result.trace.height - 2, 1),
        "target, seconds per iteration": 5.0,
        "seconds of a fit of 12": long,
        "GB beyond the features": peak / 1e9,
        "target, GB": 2.0,
        "accuracy": scores["accuracy"],
        "clusters": scores["clusters"],
    }


def peer(items: int = 200_000) -> dict[str, Any]:
    """Seconds per iteration with full covariances, 50 components, 16 dimensions; scikit-learn uses no answers."""
    from sklearn.mixture import GaussianMixture

    pairs, (ids, X), _ = simulate(items, items, 16, 20)
    timed_fit(*simulate(2000, 2000, 16, 10)[:2], parts=10)
    ours, theirs = [], []
    start = X[np.random.default_rng(1).choice(len(X), 50, replace=False)]
    for _ in range(3):
        short, _r = timed_fit(pairs, (ids, X), parts=50, max_iter=2)
        long, result = timed_fit(pairs, (ids, X), parts=50, max_iter=8)
        ours.append((long - short) / max(result.trace.height - 2, 1))
        times = []
        for rounds in (2, 8):
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                GaussianMixture(50, max_iter=rounds, tol=0.0, means_init=start, init_params="random").fit(X)
            times.append(time.perf_counter() - begun)
        theirs.append((times[1] - times[0]) / 6)
    return {
        "items": items,
        "ours": float(np.median(ours)),
        "GaussianMixture": float(np.median(theirs)),
        "times faster": float(np.median(theirs) / np.median(ours)),
    }


def main() -> None:
    sections = {"million": million, "peer": peer}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sections)
    only = parser.parse_args().only
    for name, section in sections.items():
        if only in (None, name):
            print(name, json.dumps(section(), indent=1))


if __name__ == "__main__":
    main()
