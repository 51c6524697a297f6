"""The study of pairs (semi-crowdsourced clustering with deep generative models), measured again.

Pinwheel, faces and MNIST are those of the paper. Entity resolution is added. The paper's answers about CIFAR-10 are not
available, so these are simulated.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..aggregation import aggregate
from ..answers import Labels, Pairs
from ..engine import Run
from ..engine.resources import limit_threads
from ..errors import FileError, option
from ..kernels.layout import Floats, Ints
from ..metrics import match_clusters
from ..pairs import (
    BayesScdc,
    Cspa,
    GaussianItems,
    Itml,
    KMeansItems,
    Mcvc,
    Mmc,
    MpckMeans,
    PairMixture,
    PairVote,
    Scdc,
    SemiCrowd,
)
from ..pairs.model import PairsModel
from ..simulate import answers_about, pinwheel, sorting_jobs
from .cifar10 import read_cifar10
from .clusters_of_images import image_part
from .digits import SUBSET_IMAGES, fit_and_score, job_part, mnist_part
from .study import (
    Layer,
    Measurement,
    MeasurementCache,
    Part,
    Study,
    StudyOptions,
    draw,
    mean,
    read_labelled,
    reading,
    require_files,
)

FILES = (
    "cmu_faces/features.npz", "cmu_faces/truth.parquet", "mnist/features.npz", "mnist_pairs/pairs.parquet",
    "product_er/pairs.parquet", "product_er/pairs_truth.parquet",
)  # fmt: skip
PINWHEEL: dict[str, tuple[PairsModel, bool]] = {  # model, and whether answers are used
    "pair-mixture": (PairMixture(), True),
    "bayes-scdc": (BayesScdc(), True),
    "bayes-scdc, answers drawn in batches": (BayesScdc(batch=100, relations="sampled", epochs=150), True),
    "bayes-scdc, both terms of (17)": (BayesScdc(second_term=True), True),
    "scdc": (Scdc(restarts=2, start="random"), True),
    "bayes-scdc, no answers, scale of the paper": (BayesScdc(scale="none"), False),
    "bayes-scdc, no answers": (BayesScdc(restarts=3), False),
}
QUICK_PINWHEEL, QUICK_FACES = ("pair-mixture", "bayes-scdc"), ("pair-mixture", "k-means", "itml")
QUICK_EPOCHS, QUICK_CIFAR = 20, 250  # epochs of bayes-scdc on the pinwheel, and images of CIFAR-10
ANSWERS, QUICK_ANSWERS = (200, 500, 1000, 2000), (200, 500)  # per worker on faces
PAPER_PINWHEEL = {"bayes-scdc": (0.966, 0.94, 6), "bayes-scdc, no answers, scale of the paper": (0.956, 0.91, 8)}
RESOLVERS: dict[str, str | PairsModel] = {  # a model of labels, with one task per pair, or a model of pairs
    "majority vote of each pair": "majority-vote",
    "Dawid-Skene of each pair": "dawid-skene",
    "pair-vote: majority and transitive closure": PairVote(),
    "pair-mixture, without features": PairMixture(),
}
CLUSTERERS: dict[str, PairsModel] = {"pair-mixture": PairMixture(), "k-means": KMeansItems(clusters=10)}
SKILLS = (0.95, 0.9, 0.85, 0.8, 0.75)  # accuracies of the five workers on faces
DRAWN_STARTS = 5  # without answers, in Figure 2
WEIGHTS = [f"weight {w + 1}" for w in range(len(SKILLS))]
FACES: dict[str, PairsModel] = {  # the first two estimate the number of clusters
    "pair-mixture": PairMixture(),
    "bayes-scdc": BayesScdc(),
    "k-means": KMeansItems(clusters=4),
    "gaussian-mixture": GaussianItems(clusters=4),
    "itml": Itml(clusters=4),
    "mmc": Mmc(clusters=4),
    "mpck-means": MpckMeans(clusters=4),
    "cspa": Cspa(clusters=4),
    "semi-crowd": SemiCrowd(clusters=4),
    "mcvc": Mcvc(clusters=4),
}


def pairs(options: StudyOptions) -> Study:
    """Figures 2 to 4 and Table 1; all but the pinwheel need `data`."""
    if options.data is not None:
        hint = f". {option('data')} must be the folder that holds cmu_faces, mnist, mnist_pairs and product_er"
        require_files(options.data, FILES, hint)
    pixels = None if options.images is None else read_cifar10(options.images)
    cache = options.cache("pairs")
    parts = [_pinwheel_part(options, cache)]
    files = [] if options.out is None else _figure2(options.out, options.seed, options.quick)
    if options.data is not None:
        faces = read_faces(options.data)
        parts += [face_part(options, cache, faces, True), weight_part(options, cache, faces)]
        parts.append(face_part(options, cache, faces, False))
        if options.out is not None:
            files += figure3(options.out, parts)
        parts += [part(options, cache) for part in (mnist_part, job_part, entity_part, cifar_part)]
    if pixels is not None:
        parts.append(image_part(options, cache, pixels))
    if options.out is not None:
        drawn = [options.out / f"pairs-figure{name}.svg" for name in ("4a", "4b", "4b-without")]
        files += [path for path in drawn if path.exists()]
    return Study("pairs", tuple(parts), tuple(files), cache.seconds)


def _pinwheel_part(options: StudyOptions, cache: MeasurementCache) -> Part:
    seeds = options.seeds(1, 5)
    rows = []
    for name in QUICK_PINWHEEL if options.quick else PINWHEEL:
        quick = options.quick and isinstance(PINWHEEL[name][0], BayesScdc)
        key = f"pinwheel {name}{f', {QUICK_EPOCHS} epochs' if quick else ''}"
        found = cache.measure_seeds(key, seeds, _measure_pinwheel, name, quick)
        accuracy = [float(each["accuracy"] or 0.0) for each in found]
        paper = PAPER_PINWHEEL.get(name, (None, None, None))
        row = {
            "method": name, "accuracy": mean(found, "accuracy"), "minimum": min(accuracy),
            "median": float(np.median(accuracy)), "paper's accuracy": paper[0], "nmi": mean(found, "nmi"),
            "paper's nmi": paper[1], "clusters": mean(found, "clusters"), "paper's clusters": paper[2],
            "seconds": mean(found, "seconds"),
        }  # fmt: skip
        rows.append(row)
    notes = (
        f"{len(seeds)} seeds. 500 items in 5 clusters; each of 20 workers compares 49 pairs among 100 items and is "
        "right with probability 0.9. Clusters below 5 items are not counted. The start with the highest bound counts.",
        "Without answers, the paper reports an accuracy of 0.756 (NMI 0.806) from a bad start.",
    )
    return Part.of("Pinwheel (Sec. 5.1, Fig. 2)", rows, notes, 3)


def _measure_pinwheel(name: str, quick: bool, seed: int) -> Measurement:
    sim, (model, with_answers) = pinwheel(seed=seed), PINWHEEL[name]
    if quick:
        model = replace(model, epochs=QUICK_EPOCHS)  # type: ignore[call-arg]
    answers = sim.pairs if with_answers else Pairs.none(sim.features[0])
    return fit_and_score(model, answers, sim.features, sim.truth, Run(seed=seed))[1]


def _figure2(out: Path, seed: int, quick: bool) -> list[Path]:
    """Draw the true clusters, those found without answers from a good and a bad start, by the bound, and those found
    with answers; and write a page of the last."""
    sim, count = pinwheel(seed=seed), 2 if quick else DRAWN_STARTS
    unaided, aided = (
        replace(PINWHEEL[name][0], epochs=QUICK_EPOCHS if quick else None)  # type: ignore[call-arg]
        for name in ("bayes-scdc, no answers, scale of the paper", "bayes-scdc")
    )
    ids, X = sim.features
    none = Pairs.none(ids)
    starts = [unaided.fit(none, features=sim.features, run=Run(seed=seed + n)) for n in range(count)]
    starts.sort(key=lambda found: found.trace["objective"][-1])
    result = aided.fit(sim.pairs, features=sim.features, run=Run(seed=seed))
    files = [
        _draw_clusters(out, "a", "true clusters of the pinwheel", X, sim.truth["label"].to_numpy()),
        _draw_clusters(out, "b", f"without answers, the best of {count} starts", X, starts[-1].cluster),
        _draw_clusters(out, "c", f"without answers, the worst of {count} starts", X, starts[0].cluster),
        _draw_clusters(out, "d", "clusters with answers", X, result.cluster),
    ]
    return [*files, result.report(out / "pinwheel.html")]


def _draw_clusters(out: Path, letter: str, title: str, X: Floats, cluster: Ints) -> Path:
    shapes = ("plus", "cross", "small diamond", "ring")
    layers = [
        Layer(f"cluster {k + 1}", X[cluster == k], k % 5, shapes[k // 5 % 4]) for k in range(int(cluster.max()) + 1)
    ]
    return draw(out / f"pairs-figure2{letter}.svg", f"Figure 2 ({letter}): {title}", "x", "y", layers, 520)


def entity_part(options: StudyOptions, cache: MeasurementCache) -> Part:
    """Precision, recall and F1 of pairs of products that are the same."""
    rows = [
        {"method": name, **cache.measure(f"entities {name} seed {options.seed}", _measure_entities, options, model)}
        for name, model in RESOLVERS.items()
    ]
    notes = ("product_er: 8,315 pairs of products; precision, recall and F1 of pairs that are the same product.",)
    return Part.of("Entity resolution without features (product_er)", rows, notes)


def _measure_entities(options: StudyOptions, model: str | PairsModel) -> Measurement:
    with reading("product_er", options.data) as data:
        files = ("pairs", "pairs_truth")
        table, truth = (pl.read_parquet(data / "product_er" / f"{name}.parquet") for name in files)
    if not isinstance(model, str):
        scores = match_clusters(model.fit(Pairs(table, source="product_er"), run=Run(seed=options.seed)), truth)
        return {name: float(scores[name]) for name in ("precision", "recall", "f1")}
    key = pl.concat_str("left", "right", separator=" ").alias("task")
    answers = Labels(table.select(key, "worker", label="answer"))
    estimated = aggregate(answers, model, run=Run(seed=options.seed)).labels.select("task", "label")
    both = truth.select(key, true="answer").join(estimated, on="task")
    same, true = both["label"].cast(pl.Int64).to_numpy() == 1, both["true"].to_numpy() == 1
    hits = float((same & true).sum())
    return {"precision": hits / same.sum(), "recall": hits / true.sum(), "f1": 2 * hits / (same.sum() + true.sum())}


def cifar_part(options: StudyOptions, cache: MeasurementCache) -> Part:
    """Clusters of CIFAR-10 images with simulated answers; an empty table if `data` does not hold CIFAR-10."""
    rows, size = [], QUICK_CIFAR if options.quick else SUBSET_IMAGES
    for name, model in CLUSTERERS.items():
        try:
            key = f"cifar {size} {name} seed {options.seed}"
            found = cache.measure(key, _measure_cifar, options, model, size)
        except FileError:
            break
        rows.append({"method": name, **found})
    notes = (
        f"The paper's answers about CIFAR-10 are not available, so these are simulated: 32 workers sort 36 of "
        f"{2 * size // 5} of the {size} images into piles in each of {240 * size // SUBSET_IMAGES} jobs, and put each "
        "image on the right pile with probability 0.9. Features are principal components of histograms of oriented "
        "gradients.",
        "The paper reports accuracies of 0.501 (NMI 0.555) with its answers and 0.142 (0.042) without, with networks "
        "on pixels; these are not directly comparable.",
    )
    return Part.of("CIFAR-10 with simulated answers", rows, notes, 3)


def _measure_cifar(options: StudyOptions, model: PairsModel, size: int) -> Measurement:
    with reading("cifar10n", options.data) as data:
        names, X, kind = read_labelled(data / "cifar10n", "features.npz", "hog_pca")
    ids, label = names[:size], np.unique(kind[:size], return_inverse=True)[1]
    rng = np.random.default_rng([4, options.seed])
    some = np.sort(rng.choice(size, 2 * size // 5, replace=False))
    answers = sorting_jobs(label, some, 240 * size // SUBSET_IMAGES, 36, 0.9, 32, rng, names=ids)
    truth = pl.DataFrame({"item": ids, "label": label})
    result, scores = fit_and_score(model, answers, (ids, X[:size].astype(np.float64)), truth, Run(seed=options.seed))
    answered = match_clusters(result, truth.filter(pl.Series(result.answers_of > 0)))
    return scores | {"accuracy of images asked about": float(answered["accuracy"])}


Faces = tuple[list[str], Floats, Ints]  # names of images, features (624, 20) and poses


def read_faces(folder: Path) -> Faces:
    """Read the faces of cmu_faces, and project them on their first 20 principal components."""
    with reading("cmu_faces", folder):
        names, X, pose = read_labelled(folder / "cmu_faces", "features.npz", "x", "image", "pose")
    flat = X.reshape(len(X), -1) / 255.0
    centred = flat - flat.mean(0)
    with limit_threads():  # threads make this decomposition slower, and other processes wait
        components = np.linalg.svd(centred, full_matrices=False)[2][:20]
    return names, centred @ components.T, np.unique(pose, return_inverse=True)[1]


def _measure_faces_once(faces: Faces, method: str, each: int, all_: bool, seed: int) -> Measurement:
    """Scores of a method with `each` answers per worker about all images or 100, and the weights of the workers."""
    names, X, pose = faces
    rng = np.random.default_rng([2, seed])
    some = np.arange(len(names)) if all_ else np.sort(rng.choice(len(names), 100, replace=False))
    pairs, _ = answers_about(pose, some, 5, each, SKILLS, None, rng, balanced=True, names=names, source="faces")
    truth = pl.DataFrame({"item": names, "label": pose})
    result, scores = fit_and_score(FACES[method], pairs, (names, X), truth, Run(seed=seed))
    return scores | dict(zip(WEIGHTS, result.workers.sort("worker")["weight"].to_list(), strict=True))


def _measure_faces(
    options: StudyOptions, cache: MeasurementCache, faces: Faces, method: str, each: int, all_: bool
) -> list[Measurement]:
    key = f"faces {'all' if all_ else '100'} {method} {each}"
    return cache.measure_seeds(key, options.seeds(1, 10), _measure_faces_once, faces, method, each, all_)


def face_part(options: StudyOptions, cache: MeasurementCache, faces: Faces, all_: bool) -> Part:
    """NMI of every method, by answers per worker."""
    rows = []
    for method in QUICK_FACES if options.quick else FACES:
        row: dict[str, Any] = {"method": method}
        for each in QUICK_ANSWERS if options.quick else ANSWERS:
            values = np.array([found["nmi"] for found in _measure_faces(options, cache, faces, method, each, all_)])
            row |= {f"{each}": float(values.mean()), f"{each} sd": float(values.std())}
        rows.append(row)
    letter, which = ("a", "all images") if all_ else ("b", "100 images")
    notes = (
        f"NMI by answers per worker: mean and standard deviation over {len(options.seeds(1, 10))} runs. 624 images are "
        f"clustered by pose, from 20 principal components. Five workers have accuracies {', '.join(map(str, SKILLS))}; "
        "half of the pairs are the same.",
        "pair-mixture and bayes-scdc estimate the number of clusters; the other methods are given the true one, four.",
    )
    return Part.of(f"Faces, answers about {which} (Fig. 3{letter})", rows, notes, 3)


def weight_part(options: StudyOptions, cache: MeasurementCache, faces: Faces) -> Part:
    """Estimated and true weights of the workers, with most answers."""
    most = (QUICK_ANSWERS if options.quick else ANSWERS)[-1]
    heads = ["method", *(f"w{w + 1}" for w in range(len(SKILLS))), "runs in the true order"]
    rows: list[Any] = [("true", *(2 * float(np.log(a / (1 - a))) for a in SKILLS), None)]
    for method in ("pair-mixture",) if options.quick else ("pair-mixture", "bayes-scdc"):
        found = _measure_faces(options, cache, faces, method, most, True)
        weights = [[each[name] or 0.0 for name in WEIGHTS] for each in found]
        ordered = sum(bool((np.diff(row) < 0).all()) for row in weights)
        rows.append((method, *(mean(found, name) for name in WEIGHTS), f"{ordered} of {len(found)}"))
    notes = (
        f"Weight of each worker: ln a/(1-a) + ln b/(1-b), with a the sensitivity and b the specificity. {most} answers "
        "per worker; means over runs.",
    )
    return Part.of("Weights of workers (Fig. 3c)", rows, notes, 2, heads)


def figure3(out: Path, parts: list[Part]) -> list[Path]:
    """Draw NMI by answers per worker, and the weights of workers."""
    nmi = "NMI of faces by answers per worker"
    return [
        _draw_lines(out, "a", nmi, "answers per worker", "NMI", parts[1]),
        _draw_lines(out, "b", nmi, "answers per worker", "NMI", parts[3]),
        _draw_lines(out, "c", "weights of workers", "worker", "weight", parts[2], height=300),
    ]


def _draw_lines(out: Path, letter: str, title: str, x: str, y: str, part: Part, height: int = 420) -> Path:
    """Draw one line per method through the columns whose names are numbers, like 200 or w1."""
    columns = {name: float(name.lstrip("w")) for name in part.rows.columns if name.lstrip("w").isdigit()}
    layers = [
        Layer(row["method"], np.array([[at, row[name]] for name, at in columns.items()]), k)
        for k, row in enumerate(part.rows.to_dicts())
    ]
    return draw(out / f"pairs-figure3{letter}.svg", f"Figure 3 ({letter}): {title}", x, y, layers, height)
