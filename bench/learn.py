"""Classifiers from crowds: time, memory and accuracy.

python bench/learn.py [--only fit,peer,classes,mixes,noise,cats,real,networks] [--mlp] [--json FILE]

fit      100,000 tasks x 20 features, 500,000 answers of 500 workers, logistic: seconds and peak memory of each side
peer     scikit-activeml's AnnotatorLogisticRegression (Raykar et al.) against `two-coin`, on a size that it can handle
classes  four classes, 20 experts, 3 answers per task: what modelling difficulty adds to `confusion`, 10 seeds
mixes    the default against the better of `confusion` and a vote: simulated features and answers of several qualities,
         errors unrelated to the features, two and four classes, ten seeds
noise    the same with 500 features, one of them informative, 400 tasks and a class of 10 %, twenty seeds
cats     the same with cats and dogs (../shared/data): histograms of gradients, 4,000 tasks, errors unrelated to the
         images, three seeds
real     music_genre and labelme from ../shared/data: accuracy on the test split of the vote baselines, of models
         without features, and of every worker side, five seeds (each drops another tenth of the training tasks); --mlp
         adds the perceptron (slow)
networks the networks of annot-mix (Herde et al. 2024) on the same sets, all training tasks, five seeds: accuracy on the
         test split of the crowd layer, annot-mix, `confusion` and a vote
"""

from __future__ import annotations

import argparse
import functools
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


Split = tuple[Any, cw.Labels, Any, Any, Any]  # features and answers, truth; features and truth of new tasks


def mix(seed: int, K: int, separation: float, accuracy: float, tasks: int = 1000, features: int = 20) -> Split:
    """Gaussian classes at a given distance from their centre, 20 workers whose errors do not depend on the features."""
    rng = np.random.default_rng([seed, K, int(100 * separation), int(100 * accuracy)])
    means = rng.normal(size=(K, features))
    means -= means.mean(0)
    means *= separation / np.linalg.norm(means, axis=1).mean()
    y = rng.integers(0, K, 2 * tasks)
    X = rng.normal(size=(2 * tasks, features)) + means[y]
    task, worker = cw.simulate.assign_workers(tasks, 20, 5 if K == 2 else 3, rng=rng)
    right = rng.random(len(task)) < np.clip(rng.normal(accuracy, 0.1, 20), 1 / K, 0.98)[worker]
    label = np.where(right, y[task], (y[task] + rng.integers(1, K, len(task))) % K)
    return X[:tasks], cw.Labels(task, worker, label), y[:tasks], X[tasks:], y[tasks:]


def noisy(seed: int) -> Split:
    rng = np.random.default_rng([7, seed])
    y, X = (rng.random(800) < 0.1).astype(int), rng.normal(size=(800, 500))
    X[:, 0] += y
    task, worker = cw.simulate.assign_workers(400, 10, 5, rng=rng)
    answers = cw.Labels(task, worker, np.where(rng.random(len(task)) < 0.8, y[task], 1 - y[task]))
    return X[:400], answers, y[:400], X[400:], y[400:]


def gradients(images: Any, cell: int = 8, bins: int = 9) -> Any:
    """Histograms of oriented gradients (Dalal & Triggs 2005): cells of 8 pixels, blocks of 2 x 2 cells."""
    grey = images.astype(float).mean(3) / 255
    by_row, by_column = np.gradient(grey, axis=1), np.gradient(grey, axis=2)
    size, angle = np.hypot(by_row, by_column), np.arctan2(by_row, by_column) % np.pi / np.pi * bins
    n = grey.shape[1] // cell
    cells = np.empty((len(grey), n, n, bins))
    for b in range(bins):  # each gradient is shared by its two nearest directions
        away = np.abs((angle - b + bins / 2) % bins - bins / 2)
        cells[..., b] = (size * np.maximum(1 - away, 0)).reshape(len(grey), n, cell, n, cell).sum((2, 4))
    blocks = [cells[:, i : i + 2, j : j + 2].reshape(len(grey), -1) for i in range(n - 1) for j in range(n - 1)]
    return np.concatenate([b / np.sqrt((b**2).sum(1, keepdims=True) + 1e-3) for b in blocks], axis=1)


def cats_and_dogs() -> Any:
    """Return a function from a seed to the split, with five workers who err with probability 1 / (3 + n)."""
    held = np.load(DATA / "cats_dogs" / "images.npz")
    X, new = gradients(held["x_train"]), gradients(held["x_test"])
    truth, new_truth = held["y_train"].astype(int), held["y_test"].astype(int)

    def split(seed: int, tasks: int = 4000) -> Split:
        rng = np.random.default_rng(seed)
        at = rng.permutation(len(X))[:tasks]
        y = truth[at]
        err = 1 / (3 + rng.integers(0, 6, (tasks, 5)))
        said = np.where(rng.random((tasks, 5)) < err, 1 - y[:, None], y[:, None])
        task, worker = (each.ravel() for each in np.indices(said.shape))
        return X[at], cw.Labels(task, worker, said.ravel()), y, new, new_truth

    return split


def compared(name: str, split: Any, seeds: int) -> dict[str, Any]:
    """Accuracy of the truth and on new tasks, in percent; and the difference to the better of vote and confusion."""
    found: dict[str, list[Any]] = {side: [] for side in ("majority-vote", "confusion", "learned")}
    for seed in range(seeds):
        X, answers, y, new, new_y = split(seed)
        for side, scores in found.items():
            model = cw.CrowdClassifier(workers=side).fit(X, answers, tasks=np.arange(len(X)))
            truth = model.result_.labels["label"].to_numpy() == y
            scores.append((100 * truth.mean(), 100 * model.score(new, new_y)))
    means = {side: np.mean(scores, 0) for side, scores in found.items()}
    row: dict[str, Any] = {"mix": name}
    for k, what in enumerate(("truth", "new")):
        row |= {f"{what} {side}": round(float(means[side][k]), 1) for side in found}
        best = max(means["majority-vote"][k], means["confusion"][k])
        row[f"{what} gain"] = round(float(means["learned"][k] - best), 1)
    print(row, flush=True)
    return row


def mixes() -> list[dict[str, Any]]:
    rows = []
    for K, separations, accuracies in ((2, (0.25, 0.5, 1.0, 2.0), (0.65, 0.85)), (4, (0.4, 0.8, 1.6, 3.0), (0.5, 0.8))):
        for separation in separations:
            for accuracy in accuracies:
                name = f"{K} classes, features {separation}, answers {accuracy}"
                rows.append(compared(name, functools.partial(mix, K=K, separation=separation, accuracy=accuracy), 10))
    return rows


def noise() -> list[dict[str, Any]]:
    return [compared("500 features", noisy, 20)]


def cats() -> list[dict[str, Any]]:
    if not (DATA / "cats_dogs").is_dir():
        print("skipped: no folder ../shared/data/cats_dogs beside the project")
        return []
    return [compared("cats and dogs", cats_and_dogs(), 3)]


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
                scores, right = [], []
                for seed in range(5):
                    kept = np.random.default_rng(seed).permutation(train)[: int(0.9 * len(train))]
                    model = cw.CrowdClassifier(classifier, side, random_state=seed).fit(found.x[kept], by_row[kept])
                    scores.append(model.score(found.x[test], y[test]))
                    labels = model.result_.labels
                    right.append(np.mean([label[task] == each for task, each in labels["task", "label"].rows()]))
                rows.append(
                    {"set": name, "classifier": classifier, "side": side, "truth": statistics.mean(right),
                     "test": statistics.mean(scores), "spread": statistics.stdev(scores)}
                )  # fmt: skip
                print(rows[-1], flush=True)
    return rows


def networks(seeds: int = 5) -> list[dict[str, Any]]:
    """Networks as published: batch normalisation, dropout 0.5, 50 epochs with a rate of 0.01, the last epoch."""
    from crowdwise.learn import Network
    from crowdwise.learn.by_gradient import CrowdLayer

    if not DATA.is_dir():
        print("skipped: no folder ../shared/data with the labelled sets beside the project")
        return []
    published = {"batch_norm": True, "dropout": 0.5, "rate": 1e-2, "epochs": 50, "holdout": 0.0}
    best = {"holdout": 0.1, "mixup": 1.0, "averaging": 0.99}
    rows = []
    for name in ("music_genre", "labelme"):
        with np.load(DATA / name / "features.npz", allow_pickle=False) as file:
            arrays = dict(file)
        truth = dict(pl.read_parquet(DATA / name / "truth.parquet").select("task", "label").rows())
        y, train, test = (
            np.array([truth[t] for t in arrays["task"]]),
            arrays["split"] == "train",
            arrays["split"] == "test",
        )
        if name == "music_genre":
            X, own = arrays["x"], published | {"hidden": (256, 128), "weight_decay": 0.0}
            slow = own
        else:  # both poolings, each row of length 1, centred
            poolings = [arrays[each].astype(np.float32) for each in ("vgg16_avg", "vgg16_max")]
            X = np.concatenate([x / np.linalg.norm(x, axis=1, keepdims=True) for x in poolings], 1)
            X = X - X[train].mean(0)
            X /= np.sqrt((X[train] ** 2).mean())
            own = published | {"hidden": 128, "weight_decay": 1e-4, "scale": False}
            slow = own | {"rate": 1e-3, "weight_decay": 1e-2}
        answers = cw.Labels(pl.read_parquet(DATA / name / "answers.parquet"))
        sides = {
            "majority-vote": (own, "majority-vote"), "crowd-layer": (own, "crowd-layer"),
            "annot-mix": (own, "annot-mix"), "crowd-layer, rate 0.05": (slow, CrowdLayer(rate=0.05)),
            "confusion": (slow | {"holdout": 0.1}, "confusion"),
            "confusion, mixup and averaging": (slow | best, "confusion"),
            "pooled": (slow | {"holdout": 0.1}, "pooled"), "pooled, mixup and averaging": (slow | best, "pooled"),
        }  # fmt: skip
        for called, (settings, side) in sides.items():
            scores, right = [], []
            for seed in range(seeds):
                model = cw.CrowdClassifier(Network(**settings), side, random_state=seed)
                model.fit(X[train], answers, tasks=arrays["task"][train])
                scores.append(float(np.mean(model.predict(X[test]) == y[test])))
                labels = model.result_.labels
                right.append(np.mean([truth[task] == each for task, each in labels["task", "label"].rows()]))
            rows.append(
                {"set": name, "side": called, "truth": statistics.mean(right), "test": statistics.mean(scores),
                 "spread": statistics.stdev(scores)}
            )  # fmt: skip
            print(rows[-1], flush=True)
    return rows


SECTIONS = {
    "fit": fit, "peer": peer, "classes": classes, "mixes": mixes, "noise": noise, "cats": cats, "real": real,
    "networks": networks,
}  # fmt: skip


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
