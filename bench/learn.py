"""Classifiers from crowds: time, memory and accuracy.

python bench/learn.py [--only fit,peer,classes,real] [--mlp] [--json FILE]

fit      100,000 tasks x 20 features, 500,000 answers of 500 workers, logistic: seconds and peak memory of each side
peer     scikit-activeml's AnnotatorLogisticRegression (Raykar et al.) against `two-coin`, on a size that it can handle
classes  four classes, 20 experts, 3 answers per task: what modelling difficulty adds to `confusion`, 10 seeds
real     music_genre and labelme from ../shared/data: accuracy on the test split of the vote baselines, of models
         without features, and of every worker side, five seeds (each drops another tenth of the training tasks); --mlp
         adds the perceptron (slow)
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import crowdwise as cw
from crowdwise.kernels.special import classes_of

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SIDES = ("confusion", "adaptive", "learned", "fixed")
VOTES = ("majority-vote", "soft-vote")


def crowd(tasks: int, features: int, workers: int, per_task: int, seed: int = 0) -> tuple[Any, cw.Labels, Any]:
    """Simulate two classes separated by a plane, and experts who err near it; returns features, answers and truth."""
    rng = np.random.default_rng(seed)
    plane, X = rng.normal(size=features), rng.normal(size=(tasks, features))
    p = 1 / (1 + np.exp(-3 * X @ plane / np.linalg.norm(plane)))
    truth = (rng.random(tasks) < p).astype(int)
    task, worker = cw.simulate.assign_workers(tasks, workers, per_task, rng=rng)
    skill = rng.uniform(0.55, 0.95, workers)
    right = 1 / (1 + np.exp(-np.log(skill / (1 - skill))[worker] * 4 * (p[task] - 0.5) ** 2))
    label = np.where(rng.random(len(task)) < right, truth[task], 1 - truth[task])
    return X, cw.Labels(task, worker, label), truth


def _fit_once(side: str, figures: Any) -> None:
    X, answers, truth = crowd(100_000, 20, 500, 5)
    small = crowd(2000, 20, 50, 5)
    cw.CrowdClassifier(workers=side).fit(small[0], small[1], tasks=np.arange(2000))  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    model = cw.CrowdClassifier(workers=side).fit(X, answers, tasks=np.arange(len(X)))
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    result = model.result_
    found = classes_of(result.posterior, result.prevalence, result.answers.gold)
    figures.put((seconds, peak, peak - before / 1e6, float((found == truth).mean())))


def fit() -> list[dict[str, Any]]:
    """Fit each side in a separate process, so that peak memory is measured for it alone."""
    rows = []
    for side in ("two-coin", "adaptive", "learned", "fixed"):
        figures: Any = multiprocessing.get_context("spawn").Queue()
        process = multiprocessing.get_context("spawn").Process(target=_fit_once, args=(side, figures))
        process.start()
        seconds, peak, above, right = figures.get()
        process.join()
        rows.append({"side": side, "seconds": seconds, "peak GB": peak, "GB above data": above, "truth": right})
    return rows


def peer() -> list[dict[str, Any]]:
    from skactiveml.classifier.multiannotator import AnnotatorLogisticRegression

    rows = []
    for tasks in (1000, 4000):
        X, answers, _ = crowd(tasks, 20, 10, 5, seed=1)
        new, _, new_truth = crowd(4000, 20, 10, 1, seed=1)
        dense = np.full((tasks, 10), np.nan)
        task, worker, label = answers.codes()
        dense[task, worker] = label
        ours, theirs, accuracy = [], [], (0.0, 0.0)
        for _ in range(3):
            began = time.perf_counter()
            model = cw.CrowdClassifier(workers="two-coin").fit(X, answers, tasks=np.arange(tasks))
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            other = AnnotatorLogisticRegression(classes=[0, 1], n_annotators=10, random_state=0).fit(X, dense)
            theirs.append(time.perf_counter() - began)
            accuracy = float((model.predict(new) == new_truth).mean()), float((other.predict(new) == new_truth).mean())
        seconds = statistics.median(ours), statistics.median(theirs)
        rows.append(
            {"tasks": tasks, "ours s": seconds[0], "theirs s": seconds[1], "ratio": seconds[1] / seconds[0],
             "our accuracy": accuracy[0], "their accuracy": accuracy[1]}
        )  # fmt: skip
    return rows


def classes() -> list[dict[str, Any]]:
    names = (*VOTES, *SIDES)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for seed in range(10):
        sim = cw.simulate.experts(1500, fresh=1500, classes=4, workers=20, per_task=3, seed=seed)
        label, ids = sim.truth["label"].to_numpy(), sim.truth["task"]
        for name in names:
            model = cw.CrowdClassifier(workers=name).fit(sim.features[:1500], sim.answers, tasks=ids[:1500])
            truth = model.result_.labels["label"].to_numpy() == label[:1500]
            found[name].append((float(truth.mean()), model.score(sim.features[1500:], label[1500:])))
    base = np.array(found["confusion"])
    rows = []
    for name, each in found.items():
        truth, test = np.mean(each, 0)
        over = (np.array(each) - base)[:, 0].mean()
        rows.append({"side": name, "truth": truth, "test": test, "truth over confusion": over})
    return rows


def real(classifiers: tuple[str, ...] = ("logistic",)) -> list[dict[str, Any]]:
    if not DATA.is_dir():
        print("skipped: no folder ../shared/data with the labelled sets beside the project")
        return []
    rows = []
    for name, array in (("music_genre", None), ("labelme", "vgg16_avg")):
        answers = cw.read(DATA / name / "answers.parquet")
        found = cw.read_features(DATA / name / "features.npz", answers.tasks, array=array)
        truth = pl.read_parquet(DATA / name / "truth.parquet")
        label = dict(truth.select("task", "label").rows())
        split = dict(truth.select("task", "split").rows())
        y = np.array([label[task] for task in found.tasks.to_list()])
        part = np.array([split[task] for task in found.tasks.to_list()])
        train, test = np.flatnonzero(part == "train"), np.flatnonzero(part == "test")
        by_row = answers.by_row(found.tasks)
        for classifier in classifiers:
            for side in (*VOTES, "dawid-skene", "pooled", *SIDES):
                scores = []
                for seed in range(5):
                    kept = np.random.default_rng(seed).permutation(train)[: int(0.9 * len(train))]
                    model = cw.CrowdClassifier(classifier, side, random_state=seed).fit(found.x[kept], by_row[kept])
                    scores.append(model.score(found.x[test], y[test]))
                rows.append(
                    {"set": name, "classifier": classifier, "side": side, "test": statistics.mean(scores),
                     "spread": statistics.stdev(scores)}
                )  # fmt: skip
                print(rows[-1], flush=True)
    return rows


SECTIONS = {"fit": fit, "peer": peer, "classes": classes, "real": real}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--mlp", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    out = {}
    for name in given.only.split(","):
        out[name] = real(("logistic", "mlp")) if name == "real" and given.mlp else SECTIONS[name]()
        print(name)
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
            print(pl.DataFrame(out[name]))
    if given.json:
        given.json.write_text(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
