"""What every registered model keeps to, whatever it is: one body, all models, both twins of the arithmetic."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise import rating
from crowdwise.engine import ClimbingModel, Work

MODELS = sorted(cw.MODELS)
CLIMBING = [name for name in MODELS if issubclass(cw.MODELS[name], ClimbingModel)]
VOTES = [name for name in MODELS if name not in CLIMBING]
DOUBLE = cw.Run(precision="double")
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
BARE = {"pooled": {"hedge": 0.0}}  # the posterior of the likelihood alone

pytestmark = pytest.mark.filterwarnings("error")


def fit(name: str, answers: cw.Labels, run: cw.Run = DOUBLE, **settings: Any) -> cw.Result:
    return cw.aggregate(answers, name, run=run, **settings)


def steady(name: str, sweeps: int = 40) -> dict[str, Any]:
    """A fixed number of sweeps, so that two fits stop at the same place."""
    return {"max_iter": sweeps, "tol": 0.0} if name in CLIMBING else {}


def accuracy(result: cw.Result, truth: pl.DataFrame, among: Any = None) -> float:
    both = result.labels.join(truth, on="task", maintain_order="left")
    right = (both["label_right"] == both["label"]).to_numpy()
    return float(right.mean() if among is None else right[among].mean())


# ------------------------------------------------------------------------------------------------------ the climb


@pytest.mark.parametrize("kind", ["confusion", "hammer-spammer", "groups"])
@pytest.mark.parametrize("name", CLIMBING)
def test_objective_never_falls(name: str, kind: str, kernels: Any) -> None:
    answers = cw.simulate.crowd(kind, tasks=80, workers=12, classes=4, per_task=4, load="skewed", seed=5).answers
    trace = np.array(fit(name, answers, **steady(name, 150)).trace)
    assert len(trace) > 5
    assert trace[-1] > trace[0]
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


@pytest.mark.parametrize("name", CLIMBING)
def test_objective_falls_by_rounding_only_in_single_precision(name: str, kernels: Any, crowd: Any) -> None:
    trace = np.array(fit(name, crowd.answers, cw.Run(precision="single"), **steady(name, 150)).trace)
    assert np.diff(trace).min() >= -1e-6 * abs(trace[-1])  # a float32 keeps 1.2e-7 of a value


@pytest.mark.parametrize("name", CLIMBING)
def test_objective_never_falls_with_gold(name: str, kernels: Any, crowd: Any) -> None:
    answers = with_gold(crowd, every=3)
    trace = np.array(fit(name, answers, **steady(name, 100)).trace)
    assert np.diff(trace).min() >= -1e-9 * abs(trace[-1])


@pytest.mark.parametrize("name", CLIMBING)
def test_rest_is_reported_only_when_nothing_moves(name: str, kernels: Any, crowd: Any) -> None:
    assert not fit(name, crowd.answers, max_iter=3).converged
    rested = fit(name, crowd.answers)
    further = fit(name, crowd.answers, max_iter=len(rested.trace) + 20, tol=0.0)
    assert rested.converged
    assert rested.labels["label"].equals(further.labels["label"])
    assert np.abs(rested.workers["skill"] - further.workers["skill"]).max() < 0.02


# ------------------------------------------------------------------------------------------------------- recovery


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ALIKE])
def test_recovers_its_own_crowd_better_than_a_vote(name: str, kernels: Any) -> None:
    kind, settings = OWN.get(name, ("confusion", {}))
    sim = cw.simulate.crowd(kind, tasks=400, workers=25, classes=3, per_task=7, seed=2, **settings)
    result, vote = fit(name, sim.answers), fit("majority-vote", sim.answers)
    assert accuracy(result, sim.truth) > accuracy(vote, sim.truth) + 0.02
    assert np.corrcoef(result.workers["skill"], sim.workers["skill"])[0, 1] > 0.9


@pytest.mark.parametrize("name", ALIKE)
def test_a_vote_is_better_than_its_voters(name: str, kernels: Any) -> None:
    sim = cw.simulate.crowd("hammer-spammer", tasks=400, workers=25, classes=3, per_task=7, seed=2, spammers=0.4)
    result = fit(name, sim.answers)
    assert accuracy(result, sim.truth) > sim.workers["skill"].mean() + 0.1
    assert np.corrcoef(result.workers["skill"], sim.workers["skill"])[0, 1] > 0.9


@pytest.mark.parametrize("name", MODELS)
def test_intervals_hold_the_true_skill(name: str, kernels: Any) -> None:
    """95 % are meant; a model that does not fit this crowd may miss some."""
    sim = cw.simulate.crowd("one-coin", tasks=300, workers=60, classes=3, per_task=7, seed=3)
    table, truth = fit(name, sim.answers).workers, sim.workers["skill"]
    assert ((table["low"] <= truth) & (truth <= table["high"])).mean() >= 0.85
    assert (table["high"] - table["low"]).mean() < 0.5


def test_glad_finds_which_tasks_are_hard(kernels: Any) -> None:
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
def test_order_of_rows_does_not_matter(name: str, kernels: Any, crowd: Any) -> None:
    mixed = cw.Labels(crowd.answers.frame().sample(fraction=1.0, shuffle=True, seed=8))
    one, two = fit(name, crowd.answers), fit(name, mixed)
    assert np.array_equal(one.posterior, two.posterior)
    assert one.trace == two.trace
    assert one.labels.equals(two.labels)
    assert one.workers.equals(two.workers)


@pytest.mark.parametrize("name", MODELS)
def test_renaming_permutes_the_result(name: str, kernels: Any, crowd: Any) -> None:  # D16
    rng, old = np.random.default_rng(3), crowd.answers
    turn = [rng.permutation(n) for n in (old.n_tasks, old.n_workers, old.n_classes)]
    new = cw.Labels(*(place[codes] for place, codes in zip(turn, old.codes(), strict=True)))
    one, two = fit(name, old, **steady(name)), fit(name, new, **steady(name))
    assert np.allclose(one.posterior, two.posterior[turn[0]][:, turn[2]], atol=1e-9)
    assert np.allclose(one.prevalence, two.prevalence[turn[2]], atol=1e-9)
    assert np.allclose(one.workers["skill"], two.workers["skill"].to_numpy()[turn[1]], atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("name", CLIMBING)
def test_statistics_add_over_shards(name: str, count: int, kernels: Any, crowd: Any) -> None:
    model, answers = cw.model(name), with_gold(crowd, every=5)
    params = fit(name, answers, **steady(name, 5)).params
    whole, evidence = statistics(model, answers, params, 0)
    parts = list(answers.shards(count))
    starts = np.cumsum([0, *(part.n_tasks for part in parts)])
    pieces = [statistics(model, part, params, start) for part, start in zip(parts, starts, strict=False)]
    total = pieces[0][0]
    for stats, _ in pieces[1:]:
        total = model.add(total, stats)
    assert all(np.allclose(a, b, rtol=1e-10) for a, b in zip(whole, total, strict=True))
    assert np.isclose(evidence, sum(piece[1] for piece in pieces))


def statistics(model: Any, answers: cw.Labels, params: Any, start: int) -> tuple[Any, float]:
    """One sweep over a shard that begins at task `start`: its statistics and its evidence."""
    if hasattr(params, "ease"):  # the one parameter that lies with the tasks
        params = params._replace(ease=params.ease[start : start + answers.n_tasks])
    work = Work.on(answers, DOUBLE)
    Z = work.vote_shares()
    swept = model.posterior(work, params, Z)
    return model.statistics(work, Z, swept.shares, params), swept.evidence


def test_shards_hold_every_answer_once(crowd: Any) -> None:
    parts = list(crowd.answers.shards(7))
    assert pl.concat([part.frame() for part in parts]).equals(crowd.answers.frame())
    assert {part.layout.n_rows for part in parts} == {crowd.answers.layout.n_rows}
    for part in parts:
        rows = np.repeat(np.arange(part.layout.n_rows), np.diff(part.layout.row_ptr))
        by_task = np.repeat(np.arange(part.n_tasks), part.answers_per_task)
        assert sorted(zip(part.layout.task, rows, strict=True)) == list(zip(by_task, part.layout.pair, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_same_seed_same_bits(name: str, kernels: Any, crowd: Any) -> None:
    one, two = (fit(name, crowd.answers, cw.Run(seed=3)) for _ in range(2))
    assert one.posterior.tobytes() == two.posterior.tobytes()
    assert one.trace == two.trace
    assert one.seed == 3


@pytest.mark.parametrize("name", MODELS)
def test_threads_do_not_change_a_bit(name: str, compiled: Any, crowd: Any) -> None:
    assert len(compiled.blocks.by_answers(crowd.answers.layout.task_ptr)) > 10
    fits = [fit(name, crowd.answers, cw.Run(threads=threads), **steady(name)) for threads in (1, 2, 8)]
    assert len({result.posterior.tobytes() for result in fits}) == 1
    assert len({result.trace for result in fits}) == 1


@pytest.mark.parametrize("name", MODELS)
def test_twins_agree(name: str, monkeypatch: pytest.MonkeyPatch, crowd: Any) -> None:
    one = fit(name, crowd.answers, **steady(name))
    monkeypatch.setattr("crowdwise.kernels.SMALL", 0)
    two = fit(name, crowd.answers, **steady(name))
    assert two.answers.kernels.__name__.endswith("fast")
    assert np.allclose(one.posterior, two.posterior, atol=1e-8)
    assert np.allclose(one.trace, two.trace, rtol=1e-9)
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


@pytest.mark.parametrize("name", [*CLIMBING, "weighted-vote"])
def test_gold_helps_the_other_tasks(name: str, kernels: Any) -> None:
    rest, gain, closer = np.arange(600) % 2 == 1, [], []
    told = {"learn_from": "gold"} if name == "weighted-vote" else {}
    for seed in (6, 7, 8):
        sim = cw.simulate.crowd("hammer-spammer", tasks=600, workers=40, classes=2, per_task=5, spammers=0.8, seed=seed)
        fits = fit(name, sim.answers), fit(name, with_gold(sim, every=2), **told)
        gain.append(accuracy(fits[1], sim.truth, rest) - accuracy(fits[0], sim.truth, rest))
        errors = [np.abs(each.workers["skill"] - sim.workers["skill"]).mean() for each in fits]
        closer.append(errors[1] < errors[0])
    assert np.mean(gain) > 0.01
    assert all(closer)


# -------------------------------------------------------------------------------------------------- save and load


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load(name: str, kernels: Any, crowd: Any, tmp_path: Any) -> None:
    one = fit(name, with_gold(crowd, every=9), cw.Run(seed=5))
    one.save(tmp_path)
    two = cw.load(tmp_path)
    for table in ("labels", "workers", "tasks"):
        assert getattr(one, table).equals(getattr(two, table))
    assert np.array_equal(one.posterior, two.posterior)
    assert two.posterior.dtype == one.posterior.dtype
    assert (one.trace, one.converged, one.seed, one.model) == (two.trace, two.converged, two.seed, two.model)
    assert one.warnings == two.warnings


@pytest.mark.parametrize("name", MODELS)
def test_parameters_come_back_as_they_went(name: str, kernels: Any, crowd: Any, tmp_path: Any) -> None:
    one = fit(name, crowd.answers, cw.Run())
    two = cw.load(one.save(tmp_path / "fit.crowdwise"))
    assert type(two.params) is type(one.params)
    for field, before, after in zip(one.params._fields, one.params, two.params, strict=True):
        assert np.shape(after) == np.shape(before), field
        assert np.asarray(after).dtype == np.asarray(before).dtype, field
        assert np.array_equal(after, before), field


@pytest.mark.parametrize("name", MODELS)
def test_loaded_results_predict_and_explain_the_same(name: str, crowd: Any, tmp_path: Any) -> None:
    one = fit(name, crowd.answers)
    two = cw.load(one.save(tmp_path))
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
    "tasks": ["task", "answers", "entropy", "vote_entropy", "disagreement", "difficulty"],
}


@pytest.mark.parametrize("table", COLUMNS)
def test_same_columns_and_types_for_all(table: str, crowd: Any) -> None:
    schemas = {name: getattr(fit(name, crowd.answers), table).schema for name in MODELS}
    assert list(schemas["pooled"]) == COLUMNS[table]
    assert {name for name in MODELS if schemas[name] != schemas["pooled"]} == set()


@pytest.mark.parametrize("name", MODELS)
def test_tables_say_what_was_answered(name: str, kernels: Any, crowd: Any) -> None:
    result, frame = fit(name, crowd.answers), crowd.answers.frame()
    most = frame.group_by("task", "label").len().group_by("task").agg(pl.col("len").max()).sort("task")
    assert result.labels["task"].equals(result.tasks["task"])
    assert result.tasks["answers"].to_list() == [6] * 120
    assert np.allclose(result.tasks["disagreement"], 1 - most["len"] / 6)
    assert result.workers["answers"].to_list() == frame.group_by("worker").len().sort("worker")["len"].to_list()
    Z = np.maximum(result.posterior, 1e-300)
    assert np.allclose(result.tasks["entropy"], -(Z * np.log2(Z)).sum(1), atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_emissions_are_probabilities(name: str, kernels: Any) -> None:
    # w1 answers all, w2 never says c, w3 gives one answer; nobody says d, which only gold names
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


@pytest.mark.parametrize("name", [n for n in CLIMBING if n not in ("glad", "tied")])  # glad's is for a task of ease 1
def test_confusion_of_a_worker_is_near_the_simulated_one(name: str, kernels: Any) -> None:
    sim = cw.simulate.crowd("one-coin", tasks=600, workers=10, classes=3, per_task=8, seed=1)
    result = fit(name, sim.answers)
    for worker, true in zip(sim.workers["worker"], sim.confusions, strict=True):
        shown = result.confusion(worker).select(result.classes.to_list()).to_numpy()
        assert np.allclose(shown.sum(1), 1)
        assert np.abs(shown - true).max() < 0.1


@pytest.mark.parametrize("name", MODELS)
def test_the_average_worker_is_more_right_than_wrong(name: str, kernels: Any, crowd: Any) -> None:
    table = fit(name, crowd.answers).confusion()
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
def test_predicting_the_training_answers_gives_the_labels_of_the_fit(name: str, kernels: Any, crowd: Any) -> None:
    result = fit(name, crowd.answers)
    predicted = result.predict(crowd.answers)
    assert predicted.labels.columns == COLUMNS["labels"]
    assert (predicted.labels["label"] == result.labels["label"]).mean() >= 0.97
    assert (predicted.unknown_workers, predicted.ignored_answers) == (0, 0)
    if name in ("dawid-skene", "one-coin", *ALIKE):  # whose parameters are points, not distributions
        assert np.allclose(predicted.posterior, result.posterior, atol=1e-5)


@pytest.mark.parametrize("name", CLIMBING)
def test_a_stranger_is_taken_as_an_average_worker(name: str, kernels: Any, crowd: Any) -> None:
    result, nobody = fit(name, crowd.answers, **BARE.get(name, {})), np.array([-1], np.int32)
    for k, label in enumerate(result.classes):
        predicted = result.predict(cw.Labels(["new"], ["stranger"], [label]))
        factor = result.model.emission(result.params, crowd.answers.layout, nobody, np.array([k], np.int32))[0]
        odds = np.exp(factor) * result.model.class_prior(result.params, 3)
        assert np.allclose(predicted.posterior[0], odds / odds.sum(), atol=1e-6)
        assert predicted.unknown_workers == 1


@pytest.mark.parametrize("name", MODELS)
def test_a_prediction_does_not_depend_on_its_company(name: str, kernels: Any, crowd: Any) -> None:
    result, frame = fit(name, crowd.answers), crowd.answers.frame()
    together = result.predict(frame).posterior
    for i, task in enumerate(crowd.answers.tasks[:10]):
        alone = result.predict(frame.filter(pl.col("task") == task)).posterior
        assert np.allclose(alone[0], together[i], atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_labels_never_met_are_ignored_and_counted(name: str, crowd: Any) -> None:
    result = fit(name, crowd.answers)
    predicted = result.predict(cw.Labels(["a", "a", "b"], ["w01", "w02", "w01"], ["c1", "new", "new"]))
    assert predicted.ignored_answers == 2
    assert predicted.labels["votes"].to_list() == [1, 0]
    assert predicted.labels["status"].to_list()[1] == "no answers"
    assert predicted.labels["label"].to_list()[1] is None


# -------------------------------------------------------------------------------------------------------- explain


@pytest.mark.parametrize("name", CLIMBING)
def test_explanations_add_up_to_the_posterior(name: str, kernels: Any, crowd: Any) -> None:
    result = fit(name, crowd.answers, **BARE.get(name, {}))
    names = result.classes.to_list()
    for i, task in enumerate(crowd.answers.tasks):
        why = result.explain(task)
        q = result.posterior[i, names.index(why.label)], result.posterior[i, names.index(why.rival)]
        assert np.isclose(why.prior + why.answers["log_odds"].sum(), np.log(q[0] / q[1]), atol=1e-6)
        assert np.isclose(why.total, np.log(q[0] / q[1]), atol=1e-6)
        assert q[1] == np.delete(result.posterior[i], names.index(why.label)).max()


def spoken(result: cw.Result, i: int) -> tuple[Any, Any]:
    """Workers and labels of a task's answers, as numbers."""
    task, worker, label = result.answers.codes()
    return worker[task == i], label[task == i]


def believed(result: cw.Result, i: int, worker: Any, label: Any) -> Any:
    """The posterior of task i if these had been its answers, the parameters being what they are."""
    return result.model.task_posterior(result.params, result.answers.layout, worker, label, i)


@pytest.mark.parametrize("name", MODELS)
def test_what_explanations_recompute_is_the_posterior(name: str, kernels: Any, crowd: Any) -> None:
    result = fit(name, crowd.answers)
    again = [believed(result, i, *spoken(result, i)) for i in range(result.answers.n_tasks)]
    assert np.allclose(again, result.posterior, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_removals_are_the_fewest_that_flip(name: str, classes: int) -> None:
    sim = cw.simulate.crowd("confusion", tasks=60, workers=9, classes=classes, per_task=6, accuracy=0.6, seed=3)
    result = fit(name, sim.answers)
    for i, task in enumerate(sim.answers.tasks):
        worker, label = spoken(result, i)
        flips = (
            6 - size
            for size in range(5, 0, -1)
            for kept in map(list, combinations(range(6), size))
            if believed(result, i, worker[kept], label[kept]).argmax() != believed(result, i, worker, label).argmax()
        )
        gone, fewest = result.explain(task).removals, next(flips, None)
        assert (None if gone is None else len(gone)) == fewest, task


@pytest.mark.parametrize("name", MODELS)
def test_additions_flip_and_one_less_does_not(name: str, crowd: Any) -> None:
    result, names = fit(name, crowd.answers), crowd.answers.classes.to_list()
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
def test_removing_the_named_answers_flips_the_label(name: str, kernels: Any, crowd: Any) -> None:
    """As the words have it: "without the answer(s) of w01, w05 the label would be another"."""
    result, frame = fit(name, crowd.answers), crowd.answers.frame()
    seen = 0
    for task in crowd.answers.tasks[:40]:
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
def test_adding_average_answers_flips_the_label(name: str, kernels: Any, crowd: Any) -> None:
    result, frame = fit(name, crowd.answers), crowd.answers.frame()
    for task in crowd.answers.tasks[:20]:
        why, own = result.explain(task), frame.filter(pl.col("task") == task)
        assert why.additions is not None
        for count, flipped in ((why.additions, True), (why.additions - 1, False)):
            more = {"task": [task] * count, "worker": [f"new{n}" for n in range(count)], "label": [why.rival] * count}
            both = pl.concat([own, pl.DataFrame(more, schema=own.schema)])
            assert (result.predict(both).labels["label"][0] == why.rival) == flipped


def test_an_explanation_reads_as_a_sum(crowd: Any) -> None:
    why = fit("dawid-skene", crowd.answers).explain("t001")
    lines = str(why).splitlines()
    assert lines[0] == f"task t001: {why.label}, probability {why.probability:.4f}"
    shown = [float(line.split()[-1]) for line in lines[2:-2]]
    assert abs(sum(shown) - float(lines[-2].split()[-1])) < 0.1
    assert f"without the answer(s) of {', '.join(why.removals)} the label" in lines[-1]
    assert f"{why.additions} more answer(s) {why.rival}" in why.flip


# ------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("name", MODELS)
def test_settings_rebuild_the_model(name: str) -> None:
    model = cw.model(name)
    assert cw.model(name, **model.settings()) == model
    assert model.name == name
    with pytest.raises(AttributeError):
        model.max_iter = 3


RULED = [(n, f.name, f.metadata["rule"]) for n in MODELS for f in fields(cw.MODELS[n]) if "rule" in f.metadata]


@pytest.mark.parametrize(("name", "field", "rule"), RULED, ids=[f"{name}-{field}" for name, field, _ in RULED])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "many", True, None])
def test_settings_out_of_range_are_refused(name: str, field: str, rule: Any, value: Any) -> None:  # D30
    if value is not True and value == 0 == rule.low:
        assert getattr(cw.model(name, **{field: value}), field) == 0
    elif value is None and rule.may_be_none:
        assert getattr(cw.model(name, **{field: value}), field) is None
    else:
        with pytest.raises(cw.errors.ParameterError, match=f"{name}: {field} is .* must be"):
            cw.model(name, **{field: value})
