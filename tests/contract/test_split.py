"""Fits of labels in shards and in parts on disk give the numbers of a fit in memory, for every model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from splitting import assert_same_results, assert_same_tables, frame_in_parts, read_in_parts

import crowdwise as cw
from crowdwise.errors import DataError, FileError, Interrupted, ParameterError
from crowdwise.io.stored import StoredLabels

MODELS = cw.models("labels")["name"].to_list()
ITERATIVE = [name for name in MODELS if "max_iter" in cw.model(name).settings()]
VOTES = [name for name in MODELS if cw.model(name).uses_weights]
SHARDS, PARTS = (2, 7, 64), (1, 3, 17)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def random_table(seed: int, tasks: int | None = None) -> pl.DataFrame:
    """A random table with gold, tasks without answers and workers with few; some have one class or disjoint crowds."""
    rng = np.random.default_rng(seed)
    T, W, K = tasks or int(rng.integers(2, 70)), int(rng.integers(1, 14)), int(rng.integers(1, 6))
    per_task = rng.integers(0, W + 1, T)
    task = np.repeat(np.arange(T), per_task)
    worker = np.concatenate([rng.permutation(W)[:n] for n in per_task]).astype(int)
    if seed % 5 == 0:
        worker += W * (task % 2)  # two crowds that share no task
    truth = rng.integers(0, K, T)
    right = rng.random(len(task)) < rng.beta(4, 2, 2 * W)[worker]
    label = np.where(right, truth[task], rng.integers(0, K, len(task)))
    gold = np.where(rng.random(T) < 0.1, truth, -1)
    frame = pl.DataFrame({"task": task, "worker": worker, "label": label, "gold": gold[task]})
    silent = pl.DataFrame({"task": np.arange(T)}).with_columns(worker=pl.lit(0), label=pl.lit(None), gold=pl.lit(-1))
    every = pl.concat([frame, silent], how="vertical_relaxed").sample(fraction=1.0, shuffle=True, seed=seed)
    names = pl.format("t{}", "task").alias("task"), pl.format("w{}", "worker").alias("worker")
    known = pl.when(pl.col("gold") >= 0).then(pl.format("c{}", "gold")).alias("gold")
    return every.with_columns(*names, pl.format("c{}", "label").alias("label"), known)


def seeds(count: int, tasks: int | None = None) -> list[int]:
    """Seeds of tables that have answers."""
    return [seed for seed in range(count) if random_table(seed, tasks)["label"].count()]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    random_table(4, 60).write_parquet(folder / "answers.parquet")
    return folder / "answers.parquet"


@pytest.fixture(scope="module")
def splits(table: Path) -> dict[int, StoredLabels]:
    return {parts: read_in_parts(table, parts) for parts in PARTS}


@pytest.fixture(scope="module")
def split(splits: dict[int, StoredLabels]) -> StoredLabels:
    return splits[3]


@pytest.mark.parametrize("kernels", ["plain", "compiled"])
@pytest.mark.parametrize("name", MODELS)
def test_r8_every_model_gives_the_same_in_shards_and_in_parts(
    name: str, kernels: str, request: pytest.FixtureRequest, table: Path, splits: dict[int, StoredLabels]
) -> None:
    if kernels == "compiled":
        request.getfixturevalue("compiled")
    answers, model = cw.read(table), cw.model(name, **({"max_iter": 5} if name in ITERATIVE else {}))
    one = model.fit(answers)
    for shards in SHARDS if kernels == "plain" else SHARDS[1:2]:
        assert_same_results(one, model.fit(answers, run=cw.Run(shards=shards)))
    for parts in PARTS if kernels == "plain" else PARTS[1:2]:
        split = model.fit(splits[parts])
        assert_same_results(one, split)
        assert split.states == dict(
            zip(split.states, [one.labels["status"].eq(s).sum() for s in split.states], strict=True)
        )
        assert split.ties == one.labels["tie"].sum()


@pytest.mark.parametrize("seed", seeds(22))
def test_r8_random_tables_give_the_same(seed: int, tmp_path: Path) -> None:
    frame = random_table(seed)
    answers, split = cw.Labels(frame), frame_in_parts(frame, tmp_path, PARTS[seed % 3])
    for number, name in enumerate(("dawid-skene", "pooled")):
        model = cw.model(name, max_iter=(30, 9, 3)[seed % 3])
        one = model.fit(answers)
        assert_same_results(one, model.fit(split))
        if seed % 2 == number:
            assert_same_results(one, model.fit(answers, run=cw.Run(shards=SHARDS[seed % 3])))


@pytest.mark.parametrize("tasks", [9_300, 9_450])
def test_both_sides_of_the_switch_between_kernels(tasks: int, tmp_path: Path) -> None:
    """The kernels are those of the whole table, however small its parts are."""
    crowd = cw.simulate.crowd("confusion", tasks=tasks, workers=150, classes=4, per_task=4, seed=6)
    split = frame_in_parts(crowd.answers.frame(), tmp_path, 3)
    assert split.kernels is crowd.answers.kernels
    assert split.kernels.__name__.endswith("plain" if tasks == 9_300 else "fast")
    for name in ("dawid-skene", "pooled"):
        model = cw.model(name, max_iter=4)
        one = model.fit(crowd.answers)
        assert_same_results(one, model.fit(split))
        assert_same_results(one, model.fit(crowd.answers, run=cw.Run(shards=7)))


@pytest.mark.parametrize("name", VOTES)
def test_weighted_votes_give_the_same(name: str, tmp_path: Path) -> None:
    frame = random_table(8, 40)
    frame = frame.with_columns(weight=pl.Series(np.random.default_rng(1).integers(0, 4, frame.height) / 2))
    answers, split = cw.Labels(frame), frame_in_parts(frame, tmp_path, 3)
    assert split.weighted
    one = cw.aggregate(answers, name)
    assert_same_results(one, cw.aggregate(answers, name, run=cw.Run(shards=7)))
    assert_same_results(one, cw.aggregate(split, name))
    with pytest.raises(DataError, match="these answers have weights"):
        cw.aggregate(split, "dawid-skene")


def test_attention_checks_give_the_same(tmp_path: Path) -> None:
    frame = random_table(8, 40)
    marked = frame.with_columns(is_check=pl.Series(np.arange(frame.height) % 3 == 0))
    for table in (marked, marked.drop("gold")):
        assert_same_results(cw.aggregate(cw.Labels(table)), cw.aggregate(frame_in_parts(table, tmp_path, 5)))


REAL = (
    "labelme", "music_genre", "face_sentiment", "cifar10s", "snow_rte", "snow_temporal", "snow_wsd", "bluebirds",
    "ducks", "dogs", "trec", "product_er", "sentiment_polarity", "sentiment_polarity_amt", "weather_cf", "weather_amt",
    "zencrowd_us", "zencrowd_in", "anesthesia", "caries", "cifar10n",
)  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_real_sets_give_the_same(name: str, shared_data: Path, tmp_path: Path) -> None:
    file, worker = ("labels", "slot") if name == "cifar10n" else ("answers", "worker")
    frame = pl.read_parquet(shared_data / name / f"{file}.parquet").select(
        "task", pl.col(worker).alias("worker"), "label"
    )
    answers, split = cw.Labels(frame, duplicates="each"), frame_in_parts(frame, tmp_path, 3, duplicates="each")
    for chosen in ("dawid-skene", "pooled"):
        model = cw.model(chosen, max_iter=6 if len(answers) < 10_000 else 2)
        assert_same_results(model.fit(answers, run=cw.Run(shards=7)), model.fit(split))


# ------------------------------------------------------------------------------------------------ the contract


def same_bits(one: Any, two: Any) -> None:
    assert one.trace.equals(two.trace)
    assert one.converged == two.converged
    for name, found in one.tables().items():
        assert found.lazy().collect().equals(two.tables()[name].lazy().collect()), name


@pytest.mark.parametrize("name", ["dawid-skene", "glad"])
def test_a_fit_in_parts_is_resumed_bit_for_bit(name: str, split: StoredLabels, table: Path) -> None:
    model, asked, kept = cw.model(name, max_iter=6, tol=0), [], []
    whole = model.fit(split, run=cw.Run(keep=kept.append, keep_every=0.0))
    assert len(kept) >= 1
    with pytest.raises(Interrupted) as broken:
        model.fit(split, run=cw.Run(stop=lambda: asked.append(None) or len(asked) > 2))
    for checkpoint in (broken.value.checkpoint, kept[-1]):
        again = read_in_parts(table, 3)  # the same answers, read once more
        same_bits(whole, model.fit(again, run=cw.Run(resume=checkpoint)))
    if name == "dawid-skene":
        other = read_in_parts(table, 5)
        for answers, run in (
            (other, cw.Run(resume=kept[-1])),
            (split, cw.Run(seed=1, resume=kept[-1])),
            (split.load(), cw.Run(resume=kept[-1])),
        ):
            with pytest.raises(ParameterError, match="belongs to a different fit"):
                model.fit(answers, run=run)


@pytest.mark.parametrize("name", ["pooled", "weighted-vote"])
def test_save_and_load(name: str, split: StoredLabels, tmp_path: Path) -> None:
    one = cw.aggregate(split, name)
    two = cw.load(one.save(tmp_path / "out"))
    same_bits(one, two)
    assert type(two) is type(one)
    assert (two.model, two.warnings, two.answers.intake) == (one.model, one.warnings, one.answers.intake)
    assert two.confusion().equals(one.confusion())
    with pytest.raises(DataError, match="the answers of this saved result are not saved with it"):
        cw.aggregate(two.answers)
    first = sorted(path.name for path in (tmp_path / "out").iterdir())
    one.save(tmp_path / "out")
    after = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(first) == len(after) == 2
    same_bits(one, cw.load(tmp_path / "out"))


def test_a_summary_in_parts_is_that_of_the_whole(split: StoredLabels) -> None:
    """Agreement and the gain of more answers are not known, since all answers would have to be in memory; doubtful
    tasks are counted by classes of probability."""
    one, two = (cw.aggregate(answers).summary().as_dict() for answers in (split.load(), split))
    assert one.pop("prevalence") == pytest.approx(two.pop("prevalence"), abs=1e-9)
    tiles = [[tile for tile in each.pop("tiles") if "not known" not in tile["value"]] for each in (one, two)]
    assert all(tile in tiles[0] for tile in tiles[1])
    for name in one.keys() - {"seconds"}:
        if isinstance(one[name], float) and two[name] is not None:
            assert one[name] == pytest.approx(two[name], rel=1e-3), name
        elif two[name] is not None:
            assert one[name] == two[name], name
    assert {name for name in one if two[name] is None and one[name] is not None} == {
        "alpha", "alpha_low", "alpha_high", "gain", "known", "effective_votes"
    }  # fmt: skip


def test_a_summary_in_parts_counts_confident_tasks_as_the_whole(tmp_path: Path) -> None:
    """Most labels are nearly certain, so that a few doubtful ones hold most of the expected errors."""
    crowd = cw.simulate.crowd("confusion", tasks=3000, workers=40, classes=4, per_task=9, accuracy=0.8, seed=6)
    split = frame_in_parts(crowd.answers.frame(), tmp_path, 3)
    for model in ("dawid-skene", "pooled"):
        one, two = (cw.aggregate(each, model).summary().as_dict() for each in (crowd.answers, split))
        assert one["expected_wrong"] == pytest.approx(two["expected_wrong"], rel=1e-9)
        assert one["to_review"] == pytest.approx(two["to_review"], abs=2)


@pytest.mark.parametrize("numbers", [False, True])
def test_parts_are_inspected_and_scored_as_the_whole(numbers: bool, tmp_path: Path) -> None:
    frame = random_table(4, 60)
    if numbers:  # ids of tasks are numbers, those of the truth are texts
        frame = frame.with_columns(pl.col("task").str.slice(1).cast(pl.Int64))
    split = frame_in_parts(frame, tmp_path, 3)
    one, two = (cw.inspect(answers).as_dict() for answers in (cw.Labels(frame), split))
    assert {name for name in one if one[name] != two[name]} == {"source", "path", "extras"}
    truth = frame.select(pl.col("task").cast(pl.String).alias("task"), label=pl.lit("c1")).unique()
    scores = [cw.match_labels(cw.aggregate(answers), truth) for answers in (cw.Labels(frame), split)]
    assert scores[0] == scores[1]
    assert 0 < scores[0]["accuracy"] < 1


def test_a_result_in_parts_says_what_it_cannot_do(split: StoredLabels, tmp_path: Path) -> None:
    result = cw.aggregate(split)
    with pytest.raises(DataError, match="there is no page for a result in parts"):
        result.report(tmp_path / "page.html")
    with pytest.raises(FileError, match="saved to a folder, not to one file"):
        result.save(tmp_path / "fit.crowdwise")
    with pytest.raises(DataError, match=r"If there is enough memory, use answers\.load\(\)"):
        cw.Labels.from_any(split)
    assert repr(split).startswith("StoredLabels(")
    assert "pooled" in repr(result)


def test_temporary_folders_go_with_the_objects(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    split = read_in_parts(table, 3)
    result = cw.aggregate(split)
    labels = result.labels.collect()
    assert len(list(tmp_path.iterdir())) == 1
    del split, result
    assert list(tmp_path.iterdir()) == []
    assert labels.height == 60


def test_parts_in_a_folder_are_used_again(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are those of the same files, unchanged, read with the same options; what a killed run left is removed."""
    frame, file = pl.read_parquet(table), tmp_path / "answers.csv"
    frame.write_csv(file)
    parts = tmp_path / "scratch" / "parts.crowdwise"

    def read(**options: Any) -> tuple[bool, StoredLabels]:
        before = {path: path.stat().st_mtime_ns for path in parts.glob("part-*/task.npy")}
        found = read_in_parts(file, 3, scratch=tmp_path / "scratch", **options)
        return before == {path: path.stat().st_mtime_ns for path in parts.glob("part-*/task.npy")}, found

    assert not read()[0]
    (parts / "crowdwise-killed").mkdir()
    again, split = read()
    assert again
    assert not (parts / "crowdwise-killed").exists()
    with pytest.raises(FileError, match="has the parts of other answers, which are in use in this process"):
        read(missing=["c1"])
    one = cw.aggregate(split)
    assert read()[0]  # also while they are in use
    del split, one
    assert not read(missing=["c1"])[0]
    assert read(missing=["c1"])[0]
    assert not read()[0]
    frame.head(-1).write_csv(file)
    fresh, split = read()
    assert not fresh
    assert split.intake.rows_read == frame.height - 1
    del split
    monkeypatch.setattr("splitting.MEMORY", 1_400_000_000)
    assert read()[0]  # parts for less memory do for more
    (parts / "parts.json").write_text('{"mark": "')  # written half by a killed run
    assert not read()[0]


def test_weights_of_former_parts_do_not_stay(table: Path, tmp_path: Path) -> None:
    frame = pl.read_parquet(table)
    frame.with_columns(weight=pl.lit(2.0)).write_csv(tmp_path / "answers.csv")
    assert read_in_parts(tmp_path / "answers.csv", scratch=tmp_path).weighted
    frame.write_csv(tmp_path / "answers.csv")
    split = read_in_parts(tmp_path / "answers.csv", scratch=tmp_path)
    assert not split.weighted
    assert split.load().extras.columns == []


def test_tables_of_tasks_are_lazy(split: StoredLabels) -> None:
    result = cw.aggregate(split)
    assert isinstance(result.labels, pl.LazyFrame)
    assert_same_tables(result.labels, cw.aggregate(split.load()).labels, "labels")
    assert result.labels.select("task").collect().height == split.n_tasks
