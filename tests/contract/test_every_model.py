"""The contract of every registered model of every kind of answers: one body, all models, all executors.

A kind brings a `Case`: a small table, features where it has some, and settings that keep its fits short. `numbers_kind`
is a kind that nothing in src/ knows; it is registered from outside and must keep the same contract. Models of labels
keep it in memory, in shards, and in parts on disk; test_spark.py has the fits on Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numbers_kind
import numpy as np
import polars as pl
import pytest
from learning import GRADIENT
from splitting import frame_in_parts

import crowdwise as cw
from crowdwise.engine import Step, Trace, iterate
from crowdwise.engine.registry import DEFAULTS, MODELS, make
from crowdwise.errors import CrowdwiseError, DataError, Interrupted, ParameterError
from crowdwise.kernels.layout import plus
from crowdwise.rating import WORKER_COLUMNS

cw.models()  # registers all
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SHARDS, PARTS = 7, 3
EPOCHS = 20  # of networks


@dataclass(frozen=True)
class Case:
    """Test data for the models of one kind."""

    kind: str
    frame: pl.DataFrame  # one row per answer
    ids: tuple[str, ...]  # columns of names, all texts
    right: Callable[[Any], float]  # how much of the known truth a result finds, from 0 to 1
    least: float  # and how much is expected of every model
    features: Any = None  # ids and rows
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # by model

    def model(self, name: str, **more: Any) -> Any:
        return MODELS[self.kind][name](**self.settings.get(name, {}), **more)

    def fit(
        self, name: str, frame: pl.DataFrame | None = None, run: cw.Run | None = None, on: str = "memory", **more: Any
    ) -> Any:
        frame = self.frame if frame is None else frame
        model = self.model(name, **({"max_iter": EPOCHS} if name in GRADIENT else {}) | more)
        if on == "shards":
            run = replace(run or cw.Run(), shards=SHARDS)
        if on == "disk":
            with tempfile.TemporaryDirectory() as folder:
                return model.fit(frame_in_parts(frame, Path(folder), PARTS), run=run)
        if self.kind == "learn":
            ids, X = self.features
            classifier = "mlp" if name in GRADIENT else "logistic"
            return cw.CrowdClassifier(classifier, model, random_state=3).fit(X, frame, tasks=ids, run=run).result_
        return model.fit(frame, features=self.features if model.features != "none" else None, run=run)


def labels_found(truth: pl.DataFrame) -> Callable[[Any], float]:
    return lambda result: float(
        result.labels.lazy()
        .collect()
        .join(truth.rename({"label": "true"}), on="task")
        .select(pl.col("label") == pl.col("true"))
        .mean()
        .item()
    )


@cache
def cases() -> dict[str, Case]:
    crowd = cw.simulate.crowd("confusion", tasks=60, workers=12, classes=3, per_task=6, accuracy=0.7, seed=11)
    clicks = cw.simulate.clicks("E", seed=4)
    wheel = cw.simulate.pinwheel(per_cluster=16, asked=50, workers=6, seed=2)
    experts = cw.simulate.experts(tasks=80, seed=3)
    rng = np.random.default_rng(5)
    task, worker = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    truth, bias = rng.normal(0, 3, 40), rng.normal(0, 1, 5)
    value = truth[task] + bias[worker] + rng.normal(0, 0.3, 200) * (1 + worker)
    numbers = pl.DataFrame({"task": task, "worker": worker, "value": value}).cast(
        {"task": pl.String, "worker": pl.String}
    )
    order = numbers["task"].unique().sort().cast(pl.Int64).to_numpy()
    few = {"clusters": 5}
    deep = {"epochs": 4, "hidden": (8,), "parts": 6}
    found = [
        Case("labels", crowd.answers.frame(), ("task", "worker", "label"), labels_found(crowd.truth), 0.7),
        Case("points", clicks.points.frame(), ("image", "worker"), _objects_found(clicks.objects), 0.5,
             settings={"dbscan": {"distance": 0.2, "at_least": 10}, "hdbscan": {"at_least": 8}}),
        Case("pairs", wheel.pairs.frame(), ("left", "right", "worker"), _clusters_found(wheel.truth), 0.2,
             features=wheel.features,
             settings={"k-means-items": few, "gaussian-mixture": few, "itml": few, "mmc": {**few, "projections": 50},
                       "mpck-means": {**few, "restarts": 2}, "cspa": few, "semi-crowd": few,
                       "mcvc": {**few, "restarts": 2},
                       "pair-mixture": {"restarts": 2}, "bayes-scdc": {**deep, "restarts": 2}, "scdc": deep}),
        Case("learn", experts.answers.frame(), ("task", "worker", "label"), labels_found(experts.truth), 0.6,
             features=(experts.truth["task"], experts.features)),
        Case("numbers", numbers, ("task", "worker"),
             lambda result: float(np.corrcoef(result.params.truth, truth[order])[0, 1]), 0.95),
    ]  # fmt: skip
    return {case.kind: case for case in found}


def _objects_found(truth: pl.DataFrame) -> Callable[[Any], float]:
    return lambda result: float(cw.match_objects(result, truth, within=0.3)["f1"].mean())  # type: ignore[arg-type]


def _clusters_found(truth: pl.DataFrame) -> Callable[[Any], float]:
    return lambda result: cw.match_clusters(result, truth)["accuracy"]


NO_TRUTH = {("learn", "ideal")}  # is taught known labels, of which this table has none
EVERY = [(kind, name) for kind in MODELS for name in MODELS[kind] if (kind, name) not in NO_TRUTH]
STOCHASTIC = {"scdc", "bayes-scdc"}  # the bound is estimated again in every epoch
every_model = pytest.mark.parametrize(("kind", "name"), EVERY)
EXECUTORS = {"labels": ("memory", "shards", "disk")}
every_executor = pytest.mark.parametrize(
    ("kind", "name", "on"), [(kind, name, on) for kind, name in EVERY for on in EXECUTORS.get(kind, ("memory",))]
)


@cache
def fitted(kind: str, name: str, on: str = "memory") -> Any:
    """One fit per model and executor, shared by all tests that do not change it."""
    return cases()[kind].fit(name, on=on)


def same_bits(one: Any, two: Any) -> None:
    """Compare everything in two results except the time they took."""
    assert one.trace.equals(two.trace)
    assert one.converged == two.converged
    for before, after in zip(one.params, two.params, strict=True):
        assert np.asarray(before).tobytes() == np.asarray(after).tobytes()
    for name, table in one.tables().items():
        assert table.lazy().collect().equals(two.tables()[name].lazy().collect()), name


def test_every_kind_has_a_case_and_a_default() -> None:
    assert set(MODELS) == set(cases())
    assert set(DEFAULTS) == set(MODELS) - {"learn"}
    assert {kind for kind, _ in EVERY} == {"labels", "points", "pairs", "learn", "numbers"}


@every_executor
def test_the_objective_never_decreases(kind: str, name: str, on: str) -> None:
    objective = fitted(kind, name, on).trace["objective"].to_numpy()
    if name in STOCHASTIC or name == "click-mixture":  # levels of a search are compared within a level
        assert np.isfinite(objective).all()
        return
    assert np.diff(objective).min(initial=0.0) >= -1e-9 * abs(objective[-1:]).max(initial=1.0)


@pytest.mark.parametrize("settings", [{"method": "merge"}, {"method": "paper", "objects": 10}], ids=["merge", "paper"])
def test_the_objective_of_clicks_never_decreases_while_objects_stay(settings: dict[str, Any]) -> None:
    trace = cases()["points"].fit("click-mixture", **settings).trace
    rise, same = np.diff(trace["objective"].to_numpy()), np.diff(trace["objects"].to_numpy()) == 0
    assert same.sum() > 5
    assert rise[same].min() >= -1e-9 * abs(trace["objective"][-1])


@every_executor
def test_the_known_truth_is_found(kind: str, name: str, on: str) -> None:
    if (kind, name) in {("pairs", "scdc"), ("pairs", "bayes-scdc")}:
        return  # four epochs find nothing; tests/contract/test_pairs_deep.py has their recovery
    assert cases()[kind].right(fitted(kind, name, on)) >= cases()[kind].least


@every_executor
def test_the_order_of_rows_does_not_matter(kind: str, name: str, on: str) -> None:
    case = cases()[kind]
    shuffled = case.frame.sample(fraction=1.0, shuffle=True, seed=8)
    same_bits(fitted(kind, name, on), case.fit(name, shuffled, on=on))


@every_executor
def test_new_names_in_the_same_order_change_names_only(kind: str, name: str, on: str) -> None:
    case, before = cases()[kind], fitted(kind, name, on)
    renamed = case.frame.with_columns(pl.concat_str(pl.lit("x-"), pl.col("worker")).alias("worker"))
    after = case.fit(name, renamed, on=on)
    assert after.workers["worker"].to_list() == [f"x-{worker}" for worker in before.workers["worker"]]
    assert after.trace.equals(before.trace)
    for left, right in zip(before.params, after.params, strict=True):
        assert np.asarray(left).tobytes() == np.asarray(right).tobytes()


@every_executor
def test_the_same_seed_gives_the_same_bits(kind: str, name: str, on: str) -> None:
    same_bits(fitted(kind, name, on), cases()[kind].fit(name, run=cw.Run(threads=1), on=on))


@every_executor
def test_save_and_load(kind: str, name: str, on: str, tmp_path: Any) -> None:
    one = fitted(kind, name, on)
    two = cw.load(one.save(tmp_path / ("fit" if on == "disk" else "fit.crowdwise")))
    same_bits(one, two)
    assert type(two) is type(one)
    assert two.model == one.model
    assert (two.seed, two.seconds, two.versions, two.criterion) == (one.seed, one.seconds, one.versions, one.criterion)
    assert two.warnings == one.warnings
    assert two.answers.intake == one.answers.intake


class StopAfter:
    """Return True after more than `calls` calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@every_executor
def test_an_interrupted_fit_is_resumed_bit_for_bit(kind: str, name: str, on: str) -> None:
    case, whole = cases()[kind], fitted(kind, name, on)
    for calls in (0, 2, 9) if on == "memory" else (2,):
        try:
            case.fit(name, run=cw.Run(stop=StopAfter(calls)), on=on)
        except Interrupted as broken:
            resumed = case.fit(name, run=cw.Run(resume=broken.checkpoint), on=on)
            same_bits(whole, resumed)
        else:
            assert whole.trace.height <= max(calls, 1)  # it was over before anybody asked


@pytest.mark.parametrize("kind", ["labels", "points", "pairs", "learn", "numbers"])
def test_a_checkpoint_of_another_fit_is_refused(kind: str) -> None:
    case, name = cases()[kind], DEFAULTS.get(kind, "learned")
    with pytest.raises(Interrupted) as broken:
        case.fit(name, run=cw.Run(stop=StopAfter(2)))
    checkpoint = broken.value.checkpoint
    others = [replace(case, frame=case.frame.head(-1)), replace(case, settings={name: {"max_iter": 7}})]
    if case.features is not None:
        others.append(replace(case, features=(case.features[0], case.features[1] + 0.01)))
    tries = [(other, cw.Run(resume=checkpoint)) for other in others]
    tries.append((case, cw.Run(shards=2, resume=checkpoint)))
    if kind != "learn":  # whose seed is `random_state`
        tries.append((case, cw.Run(seed=1, resume=checkpoint)))
    for other, run in tries:
        with pytest.raises(ParameterError, match="belongs to a different fit"):
            other.fit(name, run=run)
    same_bits(fitted(kind, name), case.fit(name, run=cw.Run(resume=checkpoint)))


@every_model
def test_shards_do_not_change_the_numbers(kind: str, name: str) -> None:
    case = cases()[kind]
    more = {"method": "paper"} if name == "click-mixture" else {}
    one, *others = (case.fit(name, run=cw.Run(shards=count, precision="double"), **more) for count in (1, 7, 64))
    for other in others:
        assert other.trace.height == one.trace.height
        assert np.allclose(other.trace["objective"], one.trace["objective"], rtol=1e-12, atol=0)
        assert np.allclose(other.workers["skill"], one.workers["skill"], rtol=0, atol=1e-12)
        for field_, before, after in zip(one.params._fields, one.params, other.params, strict=True):
            if field_ in ("outlier", "chance", "low", "high", "probability"):  # near 0 and 1 these cancel
                assert np.allclose(before, after, rtol=0, atol=1e-9), field_
            else:
                assert np.allclose(before, after, rtol=1e-9, atol=1e-12), field_
    if hasattr(one, "posterior"):
        assert max(np.abs(one.posterior - other.posterior).max() for other in others) < 1e-12


@every_executor
def test_attributes_of_a_result(kind: str, name: str, on: str) -> None:
    result = fitted(kind, name, on)
    assert result.trace.columns[:2] == ["iteration", "objective"]
    assert result.workers.columns[: len(WORKER_COLUMNS)] == list(WORKER_COLUMNS)
    assert result.workers["answers"].sum() == len(result.answers) if hasattr(result.answers, "__len__") else True
    known = result.workers.drop_nulls("skill")
    assert ((known["low"] <= known["skill"]) & (known["skill"] <= known["high"])).all()
    assert sorted(result.workers["rank"].drop_nulls()) == list(range(1, known.height + 1))
    tables = result.tables()
    assert "workers" in tables
    if on == "disk":
        assert {name for name, table in tables.items() if isinstance(table, pl.LazyFrame)} == {"labels", "tasks"}
    else:
        assert all(isinstance(table, pl.DataFrame) for table in tables.values())
        shapes = {name: table.shape for name, table in tables.items()}
        assert {name: frame.shape for name, frame in result.to_pandas().items()} == shapes
    assert result.model.name in repr(result)
    assert any(result.model.name in line for line in result.summary().lines())
    assert (result.criterion == "") == (result.trace.height == 0)


@pytest.mark.parametrize("kind", sorted(set(MODELS) - {"learn"}))
def test_a_page_and_a_notebook_of_every_kind(kind: str, tmp_path: Any) -> None:
    result = fitted(kind, DEFAULTS[kind])
    text = result.report(tmp_path / "page.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert str(result.workers["worker"][0]) in text
    assert result.model.name in result._repr_html_()
    with pytest.raises(ParameterError, match="has no option 'colour'"):
        result.report(tmp_path / "page.html", colour="red")


@pytest.mark.parametrize("kind", sorted(set(MODELS) - {"learn"}))
def test_aggregate_takes_answers_frames_names_classes_and_instances(kind: str) -> None:
    case, name = cases()[kind], DEFAULTS[kind]
    model, settings = MODELS[kind][name], case.settings.get(name, {})
    features = case.features if model.features != "none" else None
    answers = model.answers_type(case.frame)
    for given, chosen in ((case.frame, name), (case.frame, model), (answers, name), (answers, model)):
        same_bits(fitted(kind, name), cw.aggregate(given, chosen, features=features, **settings))
    same_bits(fitted(kind, name), cw.aggregate(case.frame, model(**settings), features=features))
    column = case.ids[-1]
    renamed = case.frame.rename({column: "somebody"})
    same_bits(fitted(kind, name), cw.aggregate(renamed, name, features=features, **{column: "somebody"}, **settings))


@every_model
def test_wrong_answers_are_refused_in_words(kind: str, name: str) -> None:
    model = cases()[kind].model(name)
    other = "points" if kind != "points" else "labels"
    wrong = MODELS[other][DEFAULTS[other]].answers_type(cases()[other].frame)
    features = cases()[kind].features if model.features == "required" else None
    with pytest.raises(DataError, match=f"takes answers of kind '{model.answers_type.kind}'.*of kind '{other}'"):
        model.fit(wrong, features=features)
    for nonsense in (None, 3, "answers.csv", object()):
        with pytest.raises(CrowdwiseError):
            model.fit(nonsense, features=features)
    with pytest.raises(CrowdwiseError):
        model.fit(cases()[kind].frame.clear(), features=features)


@every_model
def test_settings_are_described_and_checked(kind: str, name: str) -> None:
    model = MODELS[kind][name]
    for setting in model.__dataclass_fields__.values():
        if setting.name in model().settings():
            assert len(setting.metadata["description"]) > 8, setting.name
            assert setting.name in (model.__doc__ or "")
    with pytest.raises(ParameterError, match="has no setting 'colour'"):
        make(model, {"colour": "red"})


def test_a_misspelt_model_gets_a_suggestion_from_all_kinds() -> None:
    for wrong, right in (("david-skene", "dawid-skene"), ("click-mixtrue", "click-mixture"), ("pair-vot", "pair-vote")):
        with pytest.raises(ParameterError, match=f"Did you mean '{right}'"):
            cw.aggregate(cases()["labels"].frame, wrong)
    with pytest.raises(ParameterError, match="'dbscan' is a model of points, not of labels"):
        cw.aggregate(cw.Labels(cases()["labels"].frame), "dbscan")
    with pytest.raises(ParameterError, match=r"CrowdClassifier\(workers='adaptive'\)"):
        cw.aggregate(cases()["labels"].frame, "adaptive")
    with pytest.raises(ParameterError, match=r"no kind 'pair'.*Did you mean 'pairs'"):
        cw.models("pair")


def test_statistics_are_added_in_shard_order() -> None:
    assert plus((1, np.array([1.0])), (2, np.array([0.5])))[1].tolist() == [1.5]


def test_the_fourth_kind_is_small_and_outside() -> None:
    text = Path(numbers_kind.__file__).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert "numbers" in MODELS


def test_a_loop_converges_by_its_own_objectives() -> None:
    shown: list[int] = []
    idle: Any = SimpleNamespace(name="idle", max_iter=3, step=lambda: Step(1.0, {}), improve=lambda: None, state=dict)
    idle.converged = lambda objectives: shown.append(len(objectives)) is not None
    trace = Trace()
    for _ in range(2):
        assert not iterate(idle, cw.Run(), trace)
    assert shown == [1, 2, 3, 1, 2, 3]
    assert len(trace.rows) == 6
