"""The contract of every registered model of labels: one body, all models, numpy and compiled kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise import rating
from crowdwise.engine.registry import MODELS as REGISTERED
from crowdwise.labels.em import _EM, GAIN, PATIENCE, EMModel
from crowdwise.labels.shard import spread

MODELS = cw.models("labels")["name"].to_list()
ITERATIVE = [name for name in MODELS if issubclass(REGISTERED["labels"][name], EMModel)]
VOTES = [name for name in MODELS if name not in ITERATIVE]
DOUBLE = cw.Run(precision="double", threads=1)
# The crowd that a model is made for: its own simulator, hard enough that a plain vote errs.
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "dawid-skene": ("groups", {"shares": (0.4, 0.4, 0.2)}),
    "pooled": ("groups", {"shares": (0.4, 0.4, 0.2)}),
    "groups": ("groups", {"shares": (0.4, 0.4, 0.2)}),
    "tied": ("groups", {"shares": (0.2, 0.8)}),
    "one-coin": ("one-coin", {"a": 2.0, "b": 2.0}),
    "weighted-vote": ("one-coin", {"a": 2.0, "b": 2.0}),
    "glad": ("hammer-spammer", {"spammers": 0.6}),
    "mace": ("hammer-spammer", {"spammers": 0.6}),
}
ALIKE = ("majority-vote", "soft-vote")  # count every vote the same
BARE = {"pooled": {"calibrate": False}}  # the posterior of the likelihood alone

pytestmark = pytest.mark.filterwarnings("error")


def fit(name: str, answers: cw.Labels, run: cw.Run = DOUBLE, **settings: Any) -> cw.LabelsResult:
    return cw.aggregate(answers, name, run=run, **settings)


def steady(name: str, iterations: int = 25) -> dict[str, Any]:
    """A fixed number of iterations, so that two fits stop at the same place."""
    return {"max_iter": iterations, "tol": 0.0} if name in ITERATIVE else {}


def objective(result: cw.LabelsResult) -> Any:
    return result.trace["objective"].to_numpy()


Fitted = Callable[..., cw.LabelsResult]


@pytest.fixture(scope="module")
def kept_fits() -> dict[Any, cw.LabelsResult]:
    return {}


@pytest.fixture
def fitted(crowd: Any, kept_fits: dict[Any, cw.LabelsResult]) -> Fitted:
    """Cached fits of the shared crowd in double precision, for tests that do not change them."""

    def of(name: str, **settings: Any) -> cw.LabelsResult:
        key = crowd.answers.kernels.__name__, name, str(settings)
        if key not in kept_fits:
            kept_fits[key] = fit(name, crowd.answers, **settings)
        return kept_fits[key]

    return of


def accuracy(result: cw.LabelsResult, truth: pl.DataFrame, among: Any = None) -> float:
    both = result.labels.join(truth, on="task", maintain_order="left")
    right = (both["label_right"] == both["label"]).to_numpy()
    return float(right.mean() if among is None else right[among].mean())


# ------------------------------------------------------------------------------------------------------- the fit


@pytest.mark.parametrize("kind", ["confusion", "hammer-spammer", "groups"])
@pytest.mark.parametrize("name", ITERATIVE)
def test_objective_never_decreases(name: str, kind: str, kernels: Any) -> None:
    answers = cw.simulate.crowd(kind, tasks=80, workers=12, classes=4, per_task=4, load="skewed", seed=5).answers
    values = objective(fit(name, answers, **steady(name, 60)))
    assert len(values) > 5
    assert values[-1] > values[0]
    assert np.diff(values).min() >= -1e-9 * abs(values[-1])


@pytest.mark.parametrize("name", ITERATIVE)
def test_objective_decreases_by_rounding_only_in_single_precision(name: str, kernels: Any, crowd: Any) -> None:
    values = objective(fit(name, crowd.answers, cw.Run(precision="single"), **steady(name, 60)))
    assert np.diff(values).min() >= -1e-6 * abs(values[-1])  # a float32 keeps 1.2e-7 of a value


@pytest.mark.parametrize("name", ITERATIVE)
def test_objective_never_decreases_with_gold(name: str, kernels: Any, crowd: Any) -> None:
    values = objective(fit(name, with_gold(crowd, every=3), **steady(name, 60)))
    assert np.diff(values).min() >= -1e-9 * abs(values[-1])


@pytest.mark.parametrize("name", ITERATIVE)
def test_converged_is_reported_only_when_nothing_moves(name: str, kernels: Any, crowd: Any, fitted: Fitted) -> None:
    assert not fit(name, crowd.answers, max_iter=3).converged
    ended = fitted(name)
    further = fit(name, crowd.answers, max_iter=ended.trace.height + 20, tol=0.0)
    assert ended.converged
    assert ended.labels["label"].equals(further.labels["label"])
    assert np.abs(ended.workers["skill"] - further.workers["skill"]).max() < 0.02


def test_a_fit_converges_when_labels_skills_and_objective_stop_changing(crowd: Any) -> None:
    """Each of the three criteria alone keeps the fit going."""
    model = cw.OneCoin(tol=1e-4)
    fitting = _EM(model, *spread(crowd.answers, DOUBLE), DOUBLE)
    least = GAIN * model.tol * PATIENCE * crowd.answers.n_answers  # what the objective may rise in that many iterations
    flat, rising = [-700.0] * 20, [-700.0 - 1.01 * least] * 15 + [-700.0] * PATIENCE

    def converged(unchanged: int = PATIENCE, moved: float = 0.0, objectives: Any = flat) -> bool:
        fitting.unchanged, fitting.moved = unchanged, moved
        return fitting.converged(objectives)

    assert converged()
    assert converged(PATIENCE + 7, moved=model.tol, objectives=[-700.0 - 0.99 * least, *flat[:PATIENCE]])
    assert [converged(unchanged) for unchanged in range(PATIENCE)] == [False] * PATIENCE
    assert not converged(moved=1.01 * model.tol)
    assert not converged(objectives=rising)
    assert not converged(objectives=flat[:PATIENCE])  # too soon to say


@dataclass(frozen=True, kw_only=True)
class Restless(cw.OneCoin):
    """One-coin in which one label appears to change in each of the first iterations, as it may in a long fit."""

    until: int = 0

    def posterior(self, shard: Any, params: Any, local: Any) -> Any:
        swept = super().posterior(shard, params, local)
        local.own["done"] = local.own.get("done", np.zeros(1)) + 1
        return swept._replace(flips=int(local.own["done"][0] <= self.until))


def test_a_fit_continues_while_labels_change(fitted: Fitted, crowd: Any) -> None:
    plain, until = fitted("one-coin"), fitted("one-coin").trace.height + 20
    result = Restless(until=until).fit(crowd.answers, run=DOUBLE)
    assert result.trace["labels_changed"].to_list() == [1] * until + [0] * PATIENCE
    assert result.converged
    rested = result.trace[plain.trace.height : until]
    assert rested["skill_change"].max() <= 1e-4
    assert np.diff(rested["objective"]).max() <= GAIN * 1e-4 * crowd.answers.n_answers
    assert not Restless(until=10**6, max_iter=until).fit(crowd.answers, run=DOUBLE).converged


# ------------------- recovery with numpy only; test_numpy_and_compiled_agree covers the compiled kernels


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ALIKE])
def test_recovers_its_own_crowd_better_than_a_vote(name: str) -> None:
    kind, settings = OWN.get(name, ("confusion", {}))
    sim = cw.simulate.crowd(kind, tasks=400, workers=25, classes=3, per_task=7, seed=2, **settings)
    result, vote = fit(name, sim.answers), fit("majority-vote", sim.answers)
    assert accuracy(result, sim.truth) > accuracy(vote, sim.truth) + 0.02
    assert np.corrcoef(result.workers["skill"], sim.workers["skill"])[0, 1] > 0.9


@pytest.mark.parametrize("name", ALIKE)
def test_a_vote_is_better_than_its_voters(name: str) -> None:
    sim = cw.simulate.crowd("hammer-spammer", tasks=400, workers=25, classes=3, per_task=7, seed=2, spammers=0.4)
    result = fit(name, sim.answers)
    assert accuracy(result, sim.truth) > sim.workers["skill"].mean() + 0.1
    assert np.corrcoef(result.workers["skill"], sim.workers["skill"])[0, 1] > 0.9


@pytest.mark.parametrize("name", MODELS)
def test_intervals_cover_the_true_skill(name: str) -> None:
    """Nominal coverage is 95 %; a model that does not fit this crowd may miss some."""
    sim = cw.simulate.crowd("one-coin", tasks=300, workers=60, classes=3, per_task=7, seed=3)
    table, truth = fit(name, sim.answers).workers, sim.workers["skill"]
    assert ((table["low"] <= truth) & (truth <= table["high"])).mean() >= 0.85
    assert (table["high"] - table["low"]).mean() < 0.5


def test_glad_finds_which_tasks_are_hard() -> None:
    rng = np.random.default_rng(4)
    ability, ease, truth = rng.normal(1.5, 1, 40), np.exp(rng.normal(0, 1, 300)), rng.integers(0, 2, 300)
    task, worker = np.repeat(np.arange(300), 20), np.concatenate([rng.permutation(40)[:20] for _ in range(300)])
    right = rng.random(6000) < 1 / (1 + np.exp(-ability[worker] * ease[task]))
    result = fit("glad", cw.Labels(task, worker, np.where(right, truth[task], 1 - truth[task])))
    rank = np.argsort(np.argsort(result.tasks["difficulty"])), np.argsort(np.argsort(1 / ease))
    assert np.corrcoef(*rank)[0, 1] > 0.6
    assert (result.labels["label"] == pl.Series(truth)).mean() > 0.93


# ------------------------------------------------------------------------------------- order, names, shards, bits


@pytest.mark.parametrize("name", MODELS)
def test_order_of_rows_does_not_matter(name: str, kernels: Any, crowd: Any, fitted: Fitted) -> None:
    mixed = cw.Labels(crowd.answers.frame().sample(fraction=1.0, shuffle=True, seed=8))
    one, two = fitted(name), fit(name, mixed)
    assert np.array_equal(one.posterior, two.posterior)
    assert one.trace.equals(two.trace)
    assert one.labels.equals(two.labels)
    assert one.workers.equals(two.workers)


@pytest.mark.parametrize("name", MODELS)
def test_d16_renaming_permutes_the_result(name: str, kernels: Any, crowd: Any, fitted: Fitted) -> None:
    rng, old = np.random.default_rng(3), crowd.answers
    turn = [rng.permutation(n) for n in (old.n_tasks, old.n_workers, old.n_classes)]
    new = cw.Labels(*(place[codes] for place, codes in zip(turn, old.codes(), strict=True)))
    one, two = fitted(name, **steady(name)), fit(name, new, **steady(name))
    assert np.allclose(one.posterior, two.posterior[turn[0]][:, turn[2]], atol=1e-9)
    assert np.allclose(one.prevalence, two.prevalence[turn[2]], atol=1e-9)
    assert np.allclose(one.workers["skill"], two.workers["skill"].to_numpy()[turn[1]], atol=1e-9)


@pytest.mark.parametrize("name", ITERATIVE)
def test_statistics_add_over_shards(name: str, kernels: Any, crowd: Any) -> None:
    model, answers = cw.model(name), with_gold(crowd, every=5)
    params = fit(name, answers, **steady(name, 5)).params
    crowd, _ = spread(answers, cw.Run(precision="double"))
    whole, parts = (summed(model, answers, params, shards) for shards in (1, 7))
    after = [model.maximise(crowd, each.stats, params) for each in (whole, parts)]
    assert all(np.allclose(a, b, rtol=1e-10) for a, b in zip(*after, strict=True))
    assert np.allclose(*(model.hits(crowd, each.stats) for each in (whole, parts)), rtol=1e-10)
    assert np.isclose(whole.evidence, parts.evidence)
    assert whole.changed == parts.changed


def summed(model: Any, answers: cw.Labels, params: Any, shards: int) -> Any:
    """The second iteration with these parameters, from where a fit starts: evidence, changed labels, statistics."""
    crowd, executor = spread(answers, cw.Run(precision="double", shards=shards))
    assert len(executor.shards) == shards
    model.begin(crowd, executor)
    executor.update(model.e_step, params)
    return executor.update(model.e_step, params)


@pytest.mark.parametrize("count", [1, 7])
def test_shards_contain_every_answer_once(count: int, crowd: Any) -> None:
    parts = list(crowd.answers.shards(count))
    assert len(parts) == count
    assert pl.concat([part.frame() for part in parts]).equals(crowd.answers.frame())
    assert {part.layout.n_rows for part in parts} == {crowd.answers.layout.n_rows}
    for part in parts:
        rows = np.repeat(np.arange(part.layout.n_rows), np.diff(part.layout.row_ptr))
        by_task = np.repeat(np.arange(part.n_tasks), part.answers_per_task)
        assert sorted(zip(part.layout.task, rows, strict=True)) == list(zip(by_task, part.layout.pair, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_same_seed_same_bits(name: str, kernels: Any, crowd: Any) -> None:
    one, two = (fit(name, crowd.answers, cw.Run(seed=3), **steady(name)) for _ in range(2))
    assert one.posterior.tobytes() == two.posterior.tobytes()
    assert one.trace.equals(two.trace)
    assert one.seed == 3


@pytest.mark.parametrize("name", MODELS)
def test_threads_do_not_change_a_bit(name: str, compiled: Any, crowd: Any) -> None:
    assert len(compiled.blocks.by_answers(crowd.answers.layout.task_ptr)) > 10
    fits = [fit(name, crowd.answers, cw.Run(threads=threads), **steady(name)) for threads in (1, 2, 8)]
    assert len({result.posterior.tobytes() for result in fits}) == 1
    assert all(result.trace.equals(fits[0].trace) for result in fits)


@pytest.mark.parametrize("name", MODELS)
def test_numpy_and_compiled_agree(name: str, monkeypatch: pytest.MonkeyPatch, fitted: Fitted) -> None:
    one = fitted(name, **steady(name))
    monkeypatch.setattr("crowdwise.kernels.MAX_PLAIN_CELLS", 0)
    two = fitted(name, **steady(name))
    assert one is not two
    assert two.answers.kernels.__name__.endswith("fast")
    assert np.allclose(one.posterior, two.posterior, atol=1e-8)
    assert np.allclose(objective(one), objective(two), rtol=1e-9)
    assert np.allclose(one.workers["skill"], two.workers["skill"], atol=1e-8)


# ----------------------------------------------------------------------------------------------------------- gold


def with_gold(crowd: Any, every: int) -> cw.Labels:
    return cw.Labels(crowd.answers.frame(), gold=crowd.truth.gather_every(every))


@pytest.mark.parametrize("name", MODELS)
def test_gold_is_obeyed_even_against_all_votes(name: str, kernels: Any, crowd: Any) -> None:
    votes = fit("soft-vote", crowd.answers).posterior
    least = crowd.answers.classes[votes.argmin(1)].to_list()[::4]
    tasks = crowd.answers.tasks.to_list()[::4]
    table = fit(name, cw.Labels(crowd.answers.frame(), gold=dict(zip(tasks, least, strict=True)))).labels
    assert table["label"].to_list()[::4] == least
    assert set(table["probability"].to_list()[::4]) == {1.0}
    assert set(table["status"].to_list()[::4]) == {"known"}
    assert "known" not in table["status"].to_list()[1::4]


@pytest.mark.parametrize("name", [*ITERATIVE, "weighted-vote"])
def test_gold_helps_the_other_tasks(name: str) -> None:
    rest, gain, closer = np.arange(600) % 2 == 1, [], []
    settings = {"learn_from": "gold"} if name == "weighted-vote" else {}
    for seed in (6, 7, 8):
        sim = cw.simulate.crowd("hammer-spammer", tasks=600, workers=40, classes=2, per_task=5, spammers=0.8, seed=seed)
        fits = fit(name, sim.answers), fit(name, with_gold(sim, every=2), **settings)
        gain.append(accuracy(fits[1], sim.truth, rest) - accuracy(fits[0], sim.truth, rest))
        errors = [np.abs(each.workers["skill"] - sim.workers["skill"]).mean() for each in fits]
        closer.append(errors[1] < errors[0])
    assert np.mean(gain) > 0.01
    assert all(closer)


# -------------------------------------------------------------------------------------------------- save and load


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load(name: str, kernels: Any, crowd: Any, tmp_path: Any) -> None:
    """Tables, posterior and parameters, in the precision that the kernels store."""
    one = fit(name, with_gold(crowd, every=9), cw.Run(seed=5), **steady(name))
    one.save(tmp_path)
    two = cw.load(tmp_path)
    for table in ("labels", "workers", "tasks"):
        assert getattr(one, table).equals(getattr(two, table))
    assert np.array_equal(one.posterior, two.posterior)
    assert two.posterior.dtype == one.posterior.dtype
    assert one.trace.equals(two.trace)
    assert (one.converged, one.seed, one.model) == (two.converged, two.seed, two.model)
    assert one.warnings == two.warnings
    assert type(two.params) is type(one.params)
    for field, before, after in zip(one.params._fields, one.params, two.params, strict=True):
        assert np.shape(after) == np.shape(before), field
        assert np.asarray(after).dtype == np.asarray(before).dtype, field
        assert np.array_equal(after, before), field


@pytest.mark.parametrize("name", MODELS)
def test_loaded_results_predict_and_explain_the_same(name: str, fitted: Fitted, tmp_path: Any) -> None:
    one = fitted(name)
    two = cw.load(one.save(tmp_path / "fit.crowdwise"))
    assert str(one.explain("t007")) == str(two.explain("t007"))
    assert one.confusion("w03").equals(two.confusion("w03"))
    new = cw.simulate.crowd(tasks=40, workers=20, seed=12).answers
    assert np.array_equal(one.predict(new).posterior, two.predict(new).posterior)


@pytest.mark.parametrize("name", MODELS)
def test_ids_keep_their_type(name: str, tmp_path: Any) -> None:
    tasks = pl.Series([7, 7, 7, -3, -3, -3, 500, 500, 500], dtype=pl.Int16)
    labels = pl.Series([True, True, False, False, False, True, True, True, True])
    result = fit(name, cw.Labels(tasks, ["001", "1", "1e0"] * 3, labels))
    for each in (result, cw.load(result.save(tmp_path))):
        assert each.labels.schema["task"] == pl.Int16
        assert each.labels["label"].to_list() == [False, True, True]
        assert each.labels["task"].to_list() == [-3, 7, 500]
        assert each.workers["worker"].to_list() == ["001", "1", "1e0"]


def test_given_weights_keep_the_type_of_workers(tmp_path: Any) -> None:
    model = cw.WeightedVote(given={1: 0.5, 2: 2.0, 3: 1.0})
    result = model.fit(cw.Labels(["a", "a", "a"], [1, 2, 3], ["x", "y", "x"]))
    assert result.labels["label"].to_list() == ["y"]
    assert cw.load(result.save(tmp_path)).model == model


# --------------------------------------------------------------------------------------------- tables and questions

COLUMNS = {
    "labels": ["task", "label", "probability", "votes", "tie", "status"],
    "workers": list(rating.COLUMNS),
    "tasks": ["task", "answers", "entropy", "vote_entropy", "disagreement", "difficulty", "effective_votes"],
}


@pytest.mark.parametrize("table", COLUMNS)
def test_same_columns_and_types_for_all(table: str, fitted: Fitted) -> None:
    schemas = {name: getattr(fitted(name), table).schema for name in MODELS}
    assert list(schemas["pooled"]) == COLUMNS[table]
    assert {name for name in MODELS if schemas[name] != schemas["pooled"]} == set()


@pytest.mark.parametrize("name", MODELS)
def test_tables_agree_with_the_answers(name: str, crowd: Any, fitted: Fitted) -> None:
    result, frame = fitted(name), crowd.answers.frame()
    most = frame.group_by("task", "label").len().group_by("task").agg(pl.col("len").max()).sort("task")
    assert result.labels["task"].equals(result.tasks["task"])
    assert result.tasks["answers"].to_list() == [6] * 120
    assert np.allclose(result.tasks["disagreement"], 1 - most["len"] / 6)
    assert result.workers["answers"].to_list() == frame.group_by("worker").len().sort("worker")["len"].to_list()
    Z = np.maximum(result.posterior, 1e-300)
    assert np.allclose(result.tasks["entropy"], -(Z * np.log2(Z)).sum(1), atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_emissions_are_probabilities(name: str, kernels: Any) -> None:
    # w1 answers all, w2 never gives c, w3 gives one answer; no worker gives d, which only gold has
    frame = {
        "task": [1, 2, 3, 4, 1, 2, 3, 4, 1], "worker": ["w1"] * 4 + ["w2"] * 4 + ["w3"],
        "label": ["a", "b", "c", "a", "a", "b", "b", "a", "b"],
    }  # fmt: skip
    result = fit(name, cw.Labels(frame, gold={4: "d"}))
    layout, K = result.answers.layout, 4
    for worker in (-1, 0, 1, 2):
        who, said = np.full(K, worker, np.int32), np.arange(K, dtype=np.int32)
        logs = result.model.emission(result.params, layout, who, said)
        assert logs.shape == (K, K)
        assert np.allclose(np.exp(logs).sum(0), 1, atol=1e-6), worker


@pytest.mark.parametrize("name", [n for n in ITERATIVE if n not in ("glad", "tied")])  # glad's is for a task of ease 1
def test_confusion_of_a_worker_is_near_the_simulated_one(name: str) -> None:
    sim = cw.simulate.crowd("one-coin", tasks=600, workers=10, classes=3, per_task=8, seed=1)
    result = fit(name, sim.answers)
    for worker, true in zip(sim.workers["worker"], sim.confusions, strict=True):
        shown = result.confusion(worker).select(result.classes.to_list()).to_numpy()
        assert np.allclose(shown.sum(1), 1)
        assert np.abs(shown - true).max() < 0.1


@pytest.mark.parametrize("name", MODELS)
def test_the_average_worker_is_more_right_than_wrong(name: str, kernels: Any, fitted: Fitted) -> None:
    table = fitted(name).confusion()
    assert table.columns == ["truth", "c1", "c2", "c3"]
    matrix = table.select("c1", "c2", "c3").to_numpy()
    assert np.allclose(matrix.sum(1), 1)
    assert matrix.argmax(1).tolist() == [0, 1, 2]


@pytest.mark.parametrize("label", ["truth", "truth_", "label", "worker"])
def test_any_label_may_stand_in_a_confusion_matrix(label: str) -> None:
    result = fit("pooled", cw.Labels([1, 1, 2, 2], ["a", "b"] * 2, [label, "x", "x", "x"]))
    table = result.confusion("a")
    assert table.shape == (2, 3)
    assert label in table.columns[1:]


@pytest.mark.parametrize("name", MODELS)
def test_predicting_the_training_answers_gives_the_labels_of_the_fit(
    name: str, kernels: Any, crowd: Any, fitted: Fitted
) -> None:
    result = fitted(name)
    predicted = result.predict(crowd.answers)
    assert predicted.labels.columns == COLUMNS["labels"]
    assert (predicted.labels["label"] == result.labels["label"]).mean() >= 0.97
    assert (predicted.unknown_workers, predicted.ignored_answers) == (0, 0)
    if name in ("dawid-skene", "one-coin", *ALIKE):  # whose parameters are points, not distributions
        assert np.allclose(predicted.posterior, result.posterior, atol=1e-5)


@pytest.mark.parametrize("name", ITERATIVE)
def test_an_unknown_worker_is_treated_as_an_average_worker(name: str, kernels: Any, crowd: Any, fitted: Fitted) -> None:
    result, nobody = fitted(name, **BARE.get(name, {})), np.array([-1], np.int32)
    for k, label in enumerate(result.classes):
        predicted = result.predict(cw.Labels(["new"], ["stranger"], [label]))
        factor = result.model.emission(result.params, crowd.answers.layout, nobody, np.array([k], np.int32))[0]
        odds = np.exp(factor) * result.model.class_prior(result.params, 3)
        assert np.allclose(predicted.posterior[0], odds / odds.sum(), atol=1e-6)
        assert predicted.unknown_workers == 1


@pytest.mark.parametrize("name", MODELS)
def test_a_prediction_does_not_depend_on_its_company(name: str, kernels: Any, crowd: Any, fitted: Fitted) -> None:
    result, frame = fitted(name), crowd.answers.frame()
    together = result.predict(frame).posterior
    for i, task in enumerate(crowd.answers.tasks[:5]):
        alone = result.predict(frame.filter(pl.col("task") == task)).posterior
        assert np.allclose(alone[0], together[i], atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_unknown_labels_are_ignored_and_counted(name: str, fitted: Fitted) -> None:
    result = fitted(name)
    predicted = result.predict(cw.Labels(["a", "a", "b"], ["w01", "w02", "w01"], ["c1", "new", "new"]))
    assert predicted.ignored_answers == 2
    assert predicted.labels["votes"].to_list() == [1, 0]
    assert predicted.labels["status"].to_list()[1] == "no answers"
    assert predicted.labels["label"].to_list()[1] is None


# -------------------------------------------------------------------------------------------------------- explain


@pytest.mark.parametrize("name", ITERATIVE)
def test_explanations_add_up_to_the_posterior(name: str, crowd: Any, fitted: Fitted) -> None:
    result = fitted(name, **BARE.get(name, {}))
    names = result.classes.to_list()
    for i, task in enumerate(crowd.answers.tasks[:40]):
        why = result.explain(task)
        q = result.posterior[i, names.index(why.label)], result.posterior[i, names.index(why.rival)]
        assert np.isclose(why.prior + why.answers["log_odds"].sum(), np.log(q[0] / q[1]), atol=1e-6)
        assert np.isclose(why.total, np.log(q[0] / q[1]), atol=1e-6)
        assert q[1] == np.delete(result.posterior[i], names.index(why.label)).max()


def spoken(result: cw.LabelsResult, i: int) -> tuple[Any, Any]:
    """Workers and labels of a task's answers, as numbers."""
    task, worker, label = result.answers.codes()
    return worker[task == i], label[task == i]


def believed(result: cw.LabelsResult, i: int, worker: Any, label: Any) -> Any:
    """Posterior of task i if these were its answers, with the same parameters."""
    return result.model.task_posterior(result.params, result.answers.layout, worker, label, i)


@pytest.mark.parametrize("name", MODELS)
def test_explanations_recompute_the_posterior(name: str, kernels: Any, fitted: Fitted) -> None:
    result = fitted(name)
    again = [believed(result, i, *spoken(result, i)) for i in range(result.answers.n_tasks)]
    assert np.allclose(again, result.posterior, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_explanations_of_calibrated_probabilities_add_up(name: str, fitted: Fitted) -> None:
    result = fitted(name, calibrate=True)
    again = [believed(result, i, *spoken(result, i)) for i in range(result.answers.n_tasks)]
    assert np.allclose(again, result.posterior, atol=2e-6)
    for task in result.answers.tasks[:20]:
        why = result.explain(task)
        parts = why.mixture
        assert parts is not None
        made = parts.model_weight * parts.model_probability + parts.vote_weight * parts.vote_share
        assert np.isclose(made + parts.chance_weight * parts.chance, why.probability, atol=2e-6)
        assert f"{parts.vote_weight:.2f} x {parts.vote_share:.4f} (vote)" in str(why)


def test_a_known_label_is_explained_as_known(crowd: Any) -> None:
    task, label = crowd.truth.row(0)
    wrong = next(name for name in crowd.answers.classes if name != label)
    why = cw.aggregate(cw.Labels(crowd.answers.frame(), gold={task: wrong})).explain(task)
    assert (why.known, why.mixture) == (True, None)
    assert str(why).endswith("the label is known (gold), whatever the answers say")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_removals_are_the_fewest_that_flip(name: str, classes: int) -> None:
    sim = cw.simulate.crowd("confusion", tasks=60, workers=9, classes=classes, per_task=6, accuracy=0.6, seed=3)
    result, seen = fit(name, sim.answers), set()
    for i, task in enumerate(sim.answers.tasks[:20]):
        worker, label = spoken(result, i)
        now = believed(result, i, worker, label).argmax()
        flips = (
            6 - size
            for size in range(5, 0, -1)
            for kept in map(list, combinations(range(6), size))
            if believed(result, i, worker[kept], label[kept]).argmax() != now
        )
        gone, fewest = result.explain(task).removals, next(flips, None)
        assert (None if gone is None else len(gone)) == fewest, task
        seen.add(fewest)
    assert len(seen) > 2


@pytest.mark.parametrize("name", MODELS)
def test_additions_flip_and_one_less_does_not(name: str, crowd: Any, fitted: Fitted) -> None:
    result, names = fitted(name), crowd.answers.classes.to_list()
    for i, task in enumerate(crowd.answers.tasks[:30]):
        if result.labels["tie"][i]:
            continue
        why, (worker, label) = result.explain(task), spoken(result, i)
        rival = names.index(why.rival)
        for count in (why.additions, why.additions - 1):
            more = np.append(worker, np.full(count, -1)), np.append(label, np.full(count, rival))
            flipped = believed(result, i, *(np.asarray(codes, np.int32) for codes in more)).argmax() == rival
            assert flipped == (count == why.additions), task


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin"])
def test_removing_the_named_answers_flips_the_label(name: str, crowd: Any, fitted: Fitted) -> None:
    """As the words have it: "without the answers of w01, w05 the label would be different"."""
    result, frame = fitted(name), crowd.answers.frame()
    seen = 0
    for task in crowd.answers.tasks[:20]:
        why, own = result.explain(task), frame.filter(pl.col("task") == task)
        if why.removals is None:
            continue
        left = own.filter(~pl.col("worker").is_in(why.removals))
        kept = own.filter(~pl.col("worker").is_in(why.removals[1:]))
        assert result.predict(left).labels["label"][0] != why.label
        assert result.predict(kept).labels["label"][0] == why.label
        seen += 1
    assert seen > 10


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin"])
def test_adding_average_answers_flips_the_label(name: str, crowd: Any, fitted: Fitted) -> None:
    result, frame = fitted(name), crowd.answers.frame()
    for task in crowd.answers.tasks[:12]:
        why, own = result.explain(task), frame.filter(pl.col("task") == task)
        assert why.additions is not None
        for count, flipped in ((why.additions, True), (why.additions - 1, False)):
            more = {"task": [task] * count, "worker": [f"new{n}" for n in range(count)], "label": [why.rival] * count}
            both = pl.concat([own, pl.DataFrame(more, schema=own.schema)])
            assert (result.predict(both).labels["label"][0] == why.rival) == flipped


def test_an_explanation_reads_as_a_sum(fitted: Fitted) -> None:
    why = fitted("dawid-skene").explain("t001")
    lines = str(why).splitlines()
    assert lines[0] == f"task t001: {why.label}, probability {why.probability:.4f}"
    shown = [float(line.split()[-1]) for line in lines[2:-2]]
    assert abs(sum(shown) - float(lines[-2].split()[-1])) < 0.1
    assert f"of {', '.join(why.removals)} the label would be different" in lines[-1]
    assert re.search(rf"{why.additions} more answers? {why.rival!r} from average workers would change it", why.flip)


# -------------------------------------------------------------------------------------------------------- weights

WEIGHING = [
    ("majority-vote", {}),
    ("soft-vote", {}),
    ("weighted-vote", {"learn_from": "column"}),
    ("weighted-vote", {"given": {f"w{j:02}": 0.5 + j % 4 for j in range(1, 16)}}),
]


def weighted(crowd: Any) -> pl.DataFrame:
    """The answers of the crowd with weights 1, 2 and 3."""
    return crowd.answers.frame().with_columns(weight=1 + (pl.int_range(pl.len()) * 7 + 2) % 11 % 3)


def repeated(frame: pl.DataFrame) -> cw.Labels:
    """The same answers, each repeated as often as its weight, with weight 1."""
    times = frame["weight"].to_numpy()
    again = frame[np.repeat(np.arange(frame.height), times)]
    assert again.height == times.sum() > 1.5 * frame.height
    return cw.Labels(again.with_columns(weight=1), duplicates="each")


@pytest.mark.parametrize(("name", "settings"), WEIGHING)
def test_a_weight_counts_like_repeated_answers(name: str, settings: Any, kernels: Any, crowd: Any) -> None:
    frame = weighted(crowd)
    one, two, bare = (
        fit(name, answers, **settings)
        for answers in (cw.Labels(frame), repeated(frame), cw.Labels(frame.with_columns(weight=1)))
    )
    assert np.allclose(one.posterior, two.posterior, atol=1e-12)
    assert np.allclose(one.prevalence, two.prevalence, atol=1e-12)
    columns = ["task", "label", "tie", "status"]
    assert one.labels.select(columns).equals(two.labels.select(columns))
    assert not one.labels["label"].equals(bare.labels["label"]), "weights do count"


@pytest.mark.parametrize("learn_from", ["agreement", "gold"])
def test_weights_multiply_those_that_are_learnt(learn_from: str, kernels: Any, crowd: Any) -> None:
    """Weights of workers are estimated without the column; each answer then counts by its own weight as well."""
    frame, gold = weighted(crowd), dict(crowd.truth.gather_every(3).rows()) if learn_from == "gold" else None
    one, bare = (
        fit("weighted-vote", cw.Labels(table, gold=gold), learn_from=learn_from)
        for table in (frame, frame.drop("weight"))
    )
    assert np.array_equal(one.params.weight, bare.params.weight)
    assert np.ptp(one.params.weight) > 0.2
    votes = np.zeros((120, 3))
    places = zip(*crowd.answers.codes(), frame["weight"], strict=True)
    for i, j, said, weight in places:
        votes[i, said] += weight * one.params.weight[j]
    known = one.answers.gold >= 0
    assert np.allclose(one.posterior[~known], (votes / votes.sum(1, keepdims=True))[~known], atol=1e-12)
    assert np.array_equal(one.posterior[known], np.eye(3)[one.answers.gold[known]])


@pytest.mark.parametrize("name", ITERATIVE)
def test_weights_are_refused_by_models_that_do_not_use_them(name: str, crowd: Any) -> None:
    said = rf"have weights \(column 'weight'\), which {name} does not use\. Use 'majority-vote', 'soft-vote' or"
    with pytest.raises(cw.errors.DataError, match=said):
        fit(name, cw.Labels(weighted(crowd)))


@pytest.mark.parametrize("name", ITERATIVE)
def test_weights_of_new_answers_are_refused_by_models_that_do_not_use_them(
    name: str, crowd: Any, fitted: Fitted
) -> None:
    with pytest.raises(cw.errors.DataError, match=f"weights .*{name} does not use"):
        fitted(name).predict(weighted(crowd))


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_one_change_nothing(name: str, crowd: Any, fitted: Fitted) -> None:
    one = fitted(name)
    two = fit(name, cw.Labels(crowd.answers.frame().with_columns(weight=pl.lit(1.0))))
    assert one.posterior.tobytes() == two.posterior.tobytes()
    assert one.trace.equals(two.trace)
    assert all(one.tables()[table].equals(two.tables()[table]) for table in one.tables())
    assert str(one.explain("t007")) == str(two.explain("t007"))


@pytest.mark.parametrize("name", VOTES)
def test_weights_count_in_new_answers(name: str, fitted: Fitted) -> None:
    new = {"task": ["n"] * 3, "worker": ["x", "y", "z"], "label": ["c1", "c2", "c2"]}
    assert fitted(name).predict(new).labels["label"].item() == "c2"
    assert fitted(name).predict({**new, "weight": [2.5, 1, 1]}).labels["label"].item() == "c1"


def test_an_explanation_refuses_weights(crowd: Any) -> None:
    with pytest.raises(cw.errors.DataError, match="explain does not support answers with weights"):
        fit("soft-vote", cw.Labels(weighted(crowd))).explain("t007")


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize(("name", "settings"), [*WEIGHING, ("weighted-vote", {})])
def test_invalid_weights_are_refused(name: str, settings: Any, weight: float, crowd: Any) -> None:
    one = pl.int_range(pl.len()) == 5
    frame = crowd.answers.frame().with_columns(weight=pl.when(one).then(weight).otherwise(1.0))
    said = f"worker {frame['worker'][5]!r} has the weight {weight}; weights must be finite and at least 0"
    with pytest.raises(cw.errors.CrowdwiseError, match=said):
        fit(name, cw.Labels(frame), **settings)


@pytest.mark.parametrize("name", MODELS)
def test_weights_that_are_no_numbers_are_refused(name: str, crowd: Any) -> None:
    frame = crowd.answers.frame().with_columns(weight=pl.lit("much"))
    with pytest.raises(cw.errors.ColumnError, match=r"column 'weight' has 720 value\(s\) that are not numbers"):
        fit(name, cw.Labels(frame))


# ------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("name", MODELS)
def test_settings_rebuild_the_model(name: str) -> None:
    model = cw.model(name)
    assert cw.model(name, **model.settings()) == model
    assert model.name == name
    with pytest.raises(AttributeError):
        model.max_iter = 3


RULED = [
    (n, f.name, f.metadata["rule"]) for n in MODELS for f in fields(REGISTERED["labels"][n]) if "rule" in f.metadata
]


@pytest.mark.parametrize(("name", "field", "rule"), RULED, ids=[f"{name}-{field}" for name, field, _ in RULED])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "many", True, None])
def test_d30_settings_out_of_range_are_refused(name: str, field: str, rule: Any, value: Any) -> None:
    if value is not True and value == 0 == rule.low:
        assert getattr(cw.model(name, **{field: value}), field) == 0
    elif value is True and True in rule.choices:
        assert getattr(cw.model(name, **{field: value}), field) is True
    elif value is None and rule.may_be_none:
        assert getattr(cw.model(name, **{field: value}), field) is None
    else:
        with pytest.raises(cw.errors.ParameterError, match=f"{name}: {field} is .* must be"):
            cw.model(name, **{field: value})
