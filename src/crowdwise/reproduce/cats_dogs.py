"""Tables 2 and 3 and Figures 4 and 5 of the study of difficulty: networks on images of cats and dogs.

The paper's 25,000 images are not available, so the 12,000 cats and dogs of CIFAR-10 replace them. A judge, a larger
network that is trained on the true labels of other images, determines how hard an image is. Experts are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import option
from ..kernels.layout import Floats, Ints
from ..kernels.special import classes_of
from ..learn import CrowdClassifier
from ..learn.sides import by_name
from ..metrics import auc, expertise, roc
from ..result.files import write_whole
from ..simulate import SENSITIVITY, SPECIFICITY
from .methods import Dataset, as_labels
from .study import Layer, Measurement, MeasurementCache, Part, StudyOptions, draw, mean, reading

# By worker side: its name in the paper, and the paper's accuracies in Tables 2 and 3 with their standard deviations.
METHODS: dict[str, tuple[str, tuple[float, float] | None, tuple[float, float] | None]] = {
    "majority-vote": ("Majority Voting", (50.0, 0.0), (50.0, 0.0)),
    "soft-vote": ("-", None, None),
    "two-coin": ("Original EM", (60.2, 9.1), (50.6, 0.6)),
    "adaptive": ("Adaptive Difficulty EM", (70.4, 0.9), (76.7, 0.8)),
    "fixed": ("Fixed Difficulty EM", (74.3, 1.7), (78.2, 0.3)),
    "true labels": ("-", None, None),
}
TABLES = {"structural": "Table 2", "non-structural": "Table 3"}
COLOUR_OF = {"adaptive": 0, "two-coin": 1, "fixed": 2, "soft-vote": 3, "majority-vote": 3, "true": 4}  # in all figures
CURVES = ("majority-vote", "two-coin", "adaptive", "fixed")  # in Figures 4 and 5
RATES = tuple(np.linspace(0, 1, 41).round(3).tolist())  # false positive rates at which ROC curves are kept
SKILLS = np.column_stack([SPECIFICITY, SENSITIVITY])  # (5, 2) of the experts on the easiest image
FOLDS, JUDGE_EPOCHS = 3, 20
QUICK_IMAGES, QUICK_TEST_IMAGES = 200, 500
Images = tuple[Floats, Ints, Floats, Ints]  # train and test: pixels from 0 to 1, channels first; class 0 cat, 1 dog


def image_parts(options: StudyOptions, cache: MeasurementCache) -> tuple[list[Part], list[Path]]:
    """Tables 2 and 3, the accuracy of the judge, and with `out` Figures 4 and 5."""
    images, seeds = read_images(options), options.seeds(1, 3)
    ease, judge = _judged(images, options, cache)
    parts = [judge]
    found: dict[tuple[str, str], list[Measurement]] = {}
    for kind in TABLES:
        for seed in seeds:
            dataset = label_images(images, ease, kind, seed)
            for name in METHODS:
                judged = f"cats and dogs, {len(dataset.truth)} images, judge {options.seed}"
                key = f"{judged}, {kind} labels, seed {seed}: {name}"
                measured = cache.measure(key, measure_images, name, dataset, seed, options.quick)
                found.setdefault((kind, name), []).append(measured)
        parts.append(_table(kind, {name: found[kind, name] for name in METHODS}, len(seeds), images, options.quick))
    files = [] if options.out is None else _figures(options.out, {name: found["structural", name] for name in CURVES})
    return parts, files


def read_images(options: StudyOptions) -> Images:
    """Cats and dogs of CIFAR-10; some of the images in a quick study."""
    hint = f". {option('data')} must be the folder that holds cats_dogs"
    with reading("cats_dogs", options.data, hint) as data, np.load(data / "cats_dogs" / "images.npz") as file:
        arrays = [file[name] for name in ("x_train", "y_train", "x_test", "y_test")]
    X, truth, X_test, test_truth = (
        each.transpose(0, 3, 1, 2).astype(np.float32) / 255 if each.ndim == 4 else each.astype(np.int64)
        for each in arrays
    )
    if options.quick:
        return X[:QUICK_IMAGES], truth[:QUICK_IMAGES], X_test[:QUICK_TEST_IMAGES], test_truth[:QUICK_TEST_IMAGES]
    return X, truth, X_test, test_truth


def label_images(images: Images, ease: Floats, kind: str, seed: int) -> Dataset:
    """Simulate the answers of five experts.

    With structural labels, the ease of an image (n,) determines how often each expert errs, by eq (1) of the paper.
    Otherwise an expert errs with probability 1 / (3 + k), with k drawn from 0 to 5 for every answer.
    """
    X, truth, X_test, test_truth = images
    rng = np.random.default_rng([3, list(TABLES).index(kind), seed])
    if kind == "structural":
        correct = expert_accuracy(truth, ease)
    else:
        correct = 1 - 1 / (3 + rng.integers(0, 6, (len(truth), len(SKILLS))))
    label = np.where(rng.random(correct.shape) < correct, truth[:, None], 1 - truth[:, None])
    return Dataset(X, as_labels(label), truth, X_test, test_truth)


def expert_accuracy(truth: Ints, ease: Floats) -> Floats:
    """Probability that each of the five experts is right on each task, (n, 5), by eq (1)."""
    skill = SKILLS.T[truth]
    return np.asarray(1 / (1 + np.exp(-np.log(skill / (1 - skill)) * ease[:, None])))


def measure_images(name: str, dataset: Dataset, seed: int, quick: bool) -> Measurement:
    """Test accuracy (%), AUC and accuracy (%) of the estimated truth, a ROC curve and the skills of the experts."""
    network = four_layers(seed, 2, holdout=0.0) if quick else four_layers(seed)
    model = CrowdClassifier(network, "soft-vote", random_state=seed)
    if name == "true labels":
        model.fit(dataset.X, dataset.truth)
        return {"test": 100 * float((model.predict(dataset.X_test) == dataset.test_truth).mean())}
    settings = {"max_iter": 1} if quick and name in ("two-coin", "adaptive", "fixed") else {}
    model.set_params(workers=by_name(name, **settings))
    result = model.fit(dataset.X, dataset.answers, tasks=dataset.answers.tasks).result_
    predicted = model.predict_proba(dataset.X_test).argmax(1)
    estimated = classes_of(result.posterior, result.prevalence, result.answers.gold)
    curve = roc(result, dataset.labels)
    skills = expertise(result)["easiest"].to_numpy().reshape(-1, 2)
    return {
        "test": 100 * float((predicted == dataset.test_truth).mean()),
        "auc": auc(result, dataset.labels),
        "truth": 100 * float((estimated == dataset.truth).mean()),
        "skills": float(np.abs(skills - SKILLS).mean()),
        "iterations": float(result.trace.height),
        "seconds": result.seconds,
        **{f"rate {x:g}": float(np.interp(x, curve["false_positive"], curve["true_positive"])) for x in RATES},
        **{f"skill {j} {k}": float(skills[j, k]) for j in range(len(skills)) for k in range(2)},
    }


def _table(kind: str, found: dict[str, list[Measurement]], seeds: int, images: Images, quick: bool) -> Part:
    rows = []
    for name, measured in found.items():
        label, *papers = METHODS[name]
        paper, tests = papers[list(TABLES).index(kind)], [each["test"] or 0.0 for each in measured]
        row = {
            "workers": name, "in the paper": label, "paper's accuracy": None if paper is None else paper[0],
            "paper's spread": None if paper is None else paper[1], "test accuracy": float(np.mean(tests)),
            "spread": float(np.std(tests, ddof=1)) if len(tests) > 1 else None, "AUC of truth": _mean(measured, "auc"),
            "accuracy of truth": _mean(measured, "truth"), "error of skills": _mean(measured, "skills"),
        }  # fmt: skip
        rows.append(row)
    kept = "" if quick else " and keep the epoch that predicts held-out answers best"
    notes = (
        f"{len(images[1])} training images of 32 x 32 pixels (the paper has 12,500 larger ones), {len(images[3]):,} "
        "test images. Means and standard deviations over seeds. The last row, a network trained on the true labels, "
        "shows what can be reached.",
        f"All methods start from soft votes{kept}. The paper's 50.0 with a spread of 0.0 is the accuracy of a constant "
        "prediction in every run: that training failed.",
    )
    return Part.of(f"{TABLES[kind]}: cats and dogs, {kind} labels ({seeds} seeds)", rows, notes, 3)


def _mean(measured: list[Measurement], name: str) -> float | None:
    return mean(measured, name) if name in measured[0] else None


def _judged(images: Images, options: StudyOptions, cache: MeasurementCache) -> tuple[Floats, Part]:
    """(n,) ease of each training image by the judge, and how good the judge is."""
    X, truth, _, _ = images
    path = None if options.out is None else options.out / f"judge-{len(truth)}-{options.seed}.npz"
    key = f"judge of {len(truth)} images, seed {options.seed}"
    judged: Floats = np.empty(0)

    def train() -> Measurement:
        nonlocal judged
        judged = judge_images(X, truth, options.seed, 2 if options.quick else JUDGE_EPOCHS, options.watch)
        if path is not None:
            write_whole(path, lambda file: np.savez(file, p=judged))
        return {"accuracy": float(((judged > 0.5) == truth).mean()), "ease": float(_ease(judged).mean())}

    if path is None or not path.exists():
        cache.forget(key)
    measured = cache.measure(key, train)
    if not len(judged):
        with reading("the judge", options.out), np.load(path, allow_pickle=False) as file:  # type: ignore[arg-type]
            judged = file["p"]
    notes = (
        f"A network with four convolutions of 32 to 128 channels, trained in {FOLDS} folds on the true labels of the "
        "other folds, with mirrored and shifted images. Ease: 4 (p - 1/2)^2 for its probability p.",
    )
    row = {"images": len(truth), "accuracy of the judge": measured["accuracy"], "mean ease": measured["ease"]}
    return _ease(judged), Part.of("The judge of the difficulty of images", [row], notes, 3)


def _ease(p: Floats) -> Floats:
    return np.asarray(4 * (p - 0.5) ** 2)


def judge_images(X: Floats, truth: Ints, seed: int, epochs: int, watch: Callable[[str], None]) -> Floats:
    """(n,) probability that each image is a dog, by networks trained on the true labels of other images."""
    fold = np.random.default_rng([7, seed]).permutation(len(truth)) % FOLDS
    p = np.empty(len(truth))
    for k in range(FOLDS):
        watch(f"judge of the difficulty of images: fold {k + 1} of {FOLDS}")
        model = CrowdClassifier(_judge(seed, epochs), "soft-vote", random_state=seed)
        model.fit(X[fold != k], truth[fold != k])
        p[fold == k] = model.predict_proba(X[fold == k])[:, 1]
    return p


def _judge(seed: int, epochs: int) -> Any:
    """An untrained network with batch normalisation, four times as large as that of the paper."""
    from torch import nn

    def build() -> nn.Module:
        layers: list[nn.Module] = []
        for wide, wider in ((3, 32), (32, 64), (64, 128), (128, 128)):
            layers += [nn.Conv2d(wide, wider, 3, padding=1, bias=False), nn.BatchNorm2d(wider), nn.ReLU()]
            layers.append(nn.MaxPool2d(2))
        head = nn.Flatten(), nn.Dropout(0.3), nn.Linear(512, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 2)
        return nn.Sequential(*layers, *head)

    return _network(build, seed, epochs=epochs, augment=3, averaging=0.99)


def four_layers(seed: int, epochs: int = 30, **settings: Any) -> Any:
    """The untrained network of the paper's appendix, scaled to 32 x 32 pixels."""
    from torch import nn

    def build() -> nn.Module:
        layers: list[nn.Module] = []
        for wide, wider in ((3, 16), (16, 32), (32, 64), (64, 64)):
            layers += [nn.Conv2d(wide, wider, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        head = nn.Flatten(), nn.BatchNorm1d(256), nn.Linear(256, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2)
        return nn.Sequential(*layers, *head)

    return _network(build, seed, epochs=epochs, **settings)


def _network(build: Callable[[], Any], seed: int, **settings: Any) -> Any:
    """A network whose initial weights are drawn from the seed."""
    import torch

    from ..learn import Network

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Network(build(), batch_size=128, precision="bfloat16", threads=1, **settings)


def _figures(out: Path, found: dict[str, list[Measurement]]) -> list[Path]:
    """Figures 4 and 5: ROC curves of the estimated truth, and skills of the experts, of the first seed."""
    curves = [
        Layer(short_name(name), np.array([[x, each[0][f"rate {x:g}"]] for x in RATES]), COLOUR_OF[name])
        for name, each in found.items()
    ]
    title = "Figure 4: ROC of the estimated truth, cats and dogs"
    files = [draw(out / "difficulty-figure4.svg", title, "false positive rate", "true positive rate", curves)]
    skills = {"true": SKILLS[:, ::-1]}
    for name, each in found.items():
        if name != "majority-vote":
            skills[name] = np.array([[each[0][f"skill {j} {k}"] for k in (1, 0)] for j in range(5)], float)
    title = "Figure 5: skills of the five experts, cats and dogs"
    return [*files, draw_skills(out / "difficulty-figure5.svg", title, skills)]


def short_name(name: str) -> str:
    """Name of a worker side in the paper, or its own if it is not in the paper, for a legend."""
    return METHODS.get(name, ("-",))[0].replace(" Difficulty", "").replace("-", name)


def draw_skills(path: Path, title: str, skills: dict[str, Floats]) -> Path:
    """Draw the sensitivity and specificity (n, 2) of the numbered experts by each method, first the true ones."""
    marks = ("diamond", "cross", "ring", "plus", "small diamond")
    layers = []
    for k, (name, points) in enumerate(skills.items()):
        numbers = tuple(str(j + 1) for j in range(len(points)))
        xy = np.asarray(points, np.float64)
        layers.append(Layer(short_name(name), xy, COLOUR_OF[name], marks[k], k == 0, numbers))
    return draw(path, title, "sensitivity", "specificity", layers)
