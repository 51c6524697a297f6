"""Choice of the next tasks and their expected gain: against enumeration, other strategies and simulation."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import crowdwise as cw
from crowdwise.acquisition import cost, tasks
from crowdwise.acquisition.cost import EVERY, WORST, CostCurve
from crowdwise.acquisition.known import left_out
from crowdwise.kernels.special import classes_of

DOUBLE = cw.Run(precision="double")
pytestmark = pytest.mark.filterwarnings("error")


def one_coin(seed: int, classes: int = 3, **kind: Any) -> cw.simulate.Crowd:
    kind = {"tasks": 200, "workers": 20, "per_task": 4, **kind}
    return cw.simulate.crowd("one-coin", classes=classes, seed=seed, **kind)


@pytest.fixture(scope="module")
def result() -> cw.LabelsResult:
    """200 tasks, 3 classes, 4 answers per task; every tenth task has a known label."""
    sim = one_coin(3)
    known = dict(sim.truth.gather_every(10).rows())
    return cw.aggregate(cw.Labels(sim.answers.frame(), gold=known), run=DOUBLE)


def without_vote(fit: cw.LabelsResult) -> tuple[Any, Any]:
    """The posterior before any hedge, and how much it counts."""
    return fit.model.all_without_vote(fit.params, fit.answers, fit.posterior)


def found(fit: cw.LabelsResult) -> Any:
    return classes_of(fit.posterior, fit.prevalence, fit.answers.gold)


# ------------------------------------------------------------------------------------------- what answers would bring


@pytest.mark.parametrize("model", ["pooled", "dawid-skene", "one-coin"])
def test_two_classes_by_all_sequences_of_answers(model: str) -> None:
    fit = cw.aggregate(one_coin(1, 2, tasks=40, workers=8, per_task=3).answers, model, run=DOUBLE)
    V, pi = tasks.expected(fit, 4), fit.average_confusion
    for m in range(5):
        paths = [np.prod(pi[:, list(said)], axis=1) for said in product(range(2), repeat=m)]
        Z, own = without_vote(fit)
        best = sum((Z * path).max(1) for path in paths)
        assert np.allclose(V[:, m], fit.posterior.max(1) + own * (best - Z.max(1)), atol=1e-9)


def test_more_classes_by_all_sequences_of_label_rival_and_others() -> None:
    fit = cw.aggregate(one_coin(2, 4, tasks=15).answers, run=DOUBLE)
    V, pi = tasks.expected(fit, 3), fit.average_confusion
    Z, own = without_vote(fit)
    for i, q in enumerate(Z):
        k, r = np.argsort(-q)[:2]
        says = np.array([[pi[t, k], pi[t, r], 1 - pi[t, k] - pi[t, r]] for t in (k, r)])
        paths = [np.prod(says[:, list(said)], axis=1) for said in product(range(3), repeat=3)]
        gain = sum(max(q[k] * a, q[r] * b) for a, b in paths) - q[k]
        assert np.isclose(V[i, 3], fit.posterior[i, k] + own[i] * gain, atol=1e-9)


def test_label_and_rival_are_the_two_likeliest(result: cw.LabelsResult) -> None:
    two = tasks.rivals(result)
    order = np.sort(without_vote(result)[0], axis=1)[:, ::-1]
    assert np.allclose(np.sort(two.q, axis=1)[:, ::-1], order[:, :2])
    assert (two.label == found(result)).all()
    assert (two.label != two.rival).all()


@given(st.integers(0, 50), st.sampled_from(["pooled", "majority-vote", "one-coin"]))
@settings(max_examples=25)
def test_more_answers_never_harm(seed: int, model: str) -> None:
    kind = {"tasks": 12, "workers": 5, "per_task": 3, "classes": 2 + seed % 3}
    fit = cw.aggregate(cw.simulate.crowd(seed=seed, **kind).answers, model)
    V = tasks.expected(fit)
    assert (np.diff(V, axis=1) >= 0).all()
    assert np.allclose(V[:, 0], fit.posterior[np.arange(12), found(fit)])
    assert (V <= 1 + 1e-9).all()


def test_a_known_task_stays_right(result: cw.LabelsResult) -> None:
    V = tasks.expected(result)
    assert (V[result.answers.gold >= 0] == 1).all()
    assert (V[result.answers.gold < 0, 0] < 1).all()


def test_some_tasks_alone_are_worth_the_same(result: cw.LabelsResult) -> None:
    some = np.array([5, 3, 199, 0])
    assert np.array_equal(tasks.expected(result, tasks=some), tasks.expected(result)[some])


curves = arrays.arrays(np.float64, (3, 6), elements=st.floats(0, 1, width=32)).map(lambda V: np.sort(V, axis=1))


@given(curves)
def test_worth_is_the_slope_of_the_upper_hull(V: Any) -> None:
    worth = tasks.hull_slopes(V)
    for n in range(6):
        ends = [(a, b) for a in range(n + 1) for b in range(n, 6)]
        hull = [V[:, a] + (n - a) * (V[:, b] - V[:, a]) / max(b - a, 1) for a, b in ends]
        assert np.allclose(V[:, 0] + worth[:, :n].sum(1), np.max(hull, axis=0), atol=1e-9)
    assert (np.diff(worth, axis=1) <= 1e-9).all()
    assert (worth >= 0).all()


# ---------------------------------------------------------------------------------------------------- what to ask next


@pytest.mark.parametrize(("budget", "batch"), [(1, None), (37, None), (37, 5), (5, 37), (10_000, None), (10_000, 40)])
def test_budget_and_batch_are_obeyed(result: cw.LabelsResult, budget: int, batch: int | None) -> None:
    table = cw.next_tasks(result, budget, batch=batch)
    room = tasks.MAX_AHEAD * int((result.answers.gold < 0).sum())
    assert table["ask"].sum() == min(budget, batch or budget, room)
    assert table["ask"].is_between(1, tasks.MAX_AHEAD).all()
    assert table["task"].n_unique() == table.height


def test_known_tasks_are_never_asked(result: cw.LabelsResult) -> None:
    known = result.answers.tasks.filter(pl.Series(result.answers.gold >= 0))
    assert len(known) == 20
    asked = cw.next_tasks(result, 10_000)["task"]
    assert not set(asked) & set(known)
    assert len(asked) == 180


@pytest.mark.parametrize("budget", [1, 3, 60, 61, 400])
def test_answers_go_where_each_is_worth_most(result: cw.LabelsResult, budget: int) -> None:
    worth = tasks.hull_slopes(tasks.expected(result))
    worth[result.answers.gold >= 0] = -1
    table = cw.next_tasks(result, budget)
    assert np.isclose((table["per_answer"] * table["ask"]).sum(), np.sort(worth.ravel())[-budget:].sum())
    assert (table["per_answer"].diff().drop_nulls() <= 1e-12).all()


@pytest.mark.parametrize("budget", [1, 3, 60, 61, 400])
def test_gain_is_that_of_the_answers_asked_for(result: cw.LabelsResult, budget: int) -> None:
    """The gain is that of the answers asked for; it is at most `per_answer` times their number."""
    V, table = tasks.expected(result), cw.next_tasks(result, budget)
    at = [result.answers.task_number(task) for task in table["task"]]
    assert np.allclose(table["gain"], V[at, table["ask"]] - V[at, 0])
    assert (table["gain"] <= table["per_answer"] * table["ask"] + 1e-12).all()


def test_next_tasks_describes_the_task(result: cw.LabelsResult) -> None:
    two, classes = tasks.rivals(result), result.classes
    labels = dict(zip(result.labels["task"], result.labels["label"], strict=True))
    table = cw.next_tasks(result, 30)
    assert table.columns == ["task", "ask", "label", "probability", "rival", "gain", "per_answer", "workers"]
    for task, label, probability, rival in table.select("task", "label", "probability", "rival").rows():
        i = result.answers.task_number(task)
        assert (label, rival) == (labels[task], classes[int(two.rival[i])])
        assert np.isclose(probability, result.posterior[i].max())


def test_d2_a_task_without_answers_can_be_asked() -> None:
    frame = one_coin(4).answers.frame()
    blank = pl.DataFrame({"task": ["new"], "worker": ["w01"], "label": [None]}).cast(frame.schema)
    table = cw.next_tasks(cw.aggregate(pl.concat([frame, blank])), 30)
    row = table.row(by_predicate=pl.col("task") == "new", named=True)
    assert row["label"] is None
    assert row["gain"] > 0


def named(result: cw.LabelsResult, budget: int = 150) -> list[tuple[str, int, list[str]]]:
    rows = cw.next_tasks(result, budget).select("task", "ask", "workers").rows()
    return [(task, ask, names.split("; ")) for task, ask, names in rows if names]


@pytest.fixture(scope="module")
def mixed() -> cw.LabelsResult:
    """A third of the workers guess."""
    kind = {"tasks": 400, "workers": 24, "classes": 3, "per_task": 5, "spammers": 0.33, "accuracy": 0.8}
    return cw.aggregate(cw.simulate.crowd("hammer-spammer", seed=2, **kind).answers)


def test_those_named_have_not_answered_the_task(mixed: cw.LabelsResult) -> None:
    met = set(mixed.answers.frame().select("task", "worker").rows())
    assert len(named(mixed)) > 10
    for task, ask, names in named(mixed):
        assert len(set(names)) == len(names) <= ask
        assert not {(task, name) for name in names} & met


def test_those_named_are_not_flagged(mixed: cw.LabelsResult) -> None:
    flagged = set(mixed.workers.filter(pl.col("flags") != "")["worker"])
    assert len(flagged) >= 3
    assert not flagged & {name for _, _, names in named(mixed) for name in names}


def test_d32_inverted_workers_are_not_named() -> None:
    kind = {"tasks": 400, "workers": 20, "classes": 2, "per_task": 5, "spammers": 0, "accuracy": 0.7}
    frame = cw.simulate.crowd("hammer-spammer", seed=3, **kind).answers.frame().sort("task", "worker")
    wrong = dict(frame.group_by("task").agg(pl.col("label").mode().sort().first()).rows())
    swapped = pl.col("task").replace_strict(wrong).replace({"c1": "c2", "c2": "c1"})
    frame = frame.with_columns(label=pl.when(pl.col("worker") == "w07").then(swapped).otherwise(pl.col("label")))
    fit = cw.aggregate(frame)
    assert fit.workers.row(by_predicate=pl.col("worker") == "w07", named=True)["flags"] == "inverted"
    assert "w07" not in {name for _, _, names in named(fit) for name in names}


def test_no_worker_is_named_for_more_than_a_double_share(mixed: cw.LabelsResult) -> None:
    named_of = pl.Series([name for _, _, names in named(mixed, 150) for name in names])
    able = mixed.workers.filter(pl.col("flags") == "").height
    assert int(named_of.value_counts()["count"].max() or 0) <= np.ceil(2 * 150 / able)


def test_named_workers_separate_label_and_rival_better_than_the_crowd(mixed: cw.LabelsResult) -> None:
    skill = dict(mixed.workers.select("worker", "skill").rows())
    chosen = [skill[name] for _, _, names in named(mixed) for name in names]
    assert np.mean(chosen) > np.mean(list(skill.values())) + 0.05


def test_a_model_that_knows_no_workers_names_none(mixed: cw.LabelsResult) -> None:
    table = cw.next_tasks(cw.aggregate(mixed.answers, "majority-vote"), 20)
    assert table["workers"].null_count() == table.height
    assert table["ask"].sum() == 20
    table = cw.next_tasks(mixed, 20, whom=False)
    assert table["workers"].null_count() == table.height


@pytest.mark.parametrize("value", [0, -7, 2.5, True, "3"])
@pytest.mark.parametrize("name", ["budget", "batch"])
def test_nothing_to_ask_for_is_refused(result: cw.LabelsResult, name: str, value: Any) -> None:
    with pytest.raises(cw.errors.ParameterError, match=f"{name} is {value!r}; it must be a whole number of at least 1"):
        cw.next_tasks(result, **{name: value})


def test_numbers_of_numpy_are_numbers(result: cw.LabelsResult) -> None:
    assert cw.next_tasks(result, np.int64(7), batch=np.int32(5))["ask"].sum() == 5  # type: ignore[arg-type]


MARKETS: list[tuple[str, int, dict[str, float]]] = [
    ("one-coin", 2, {}),
    ("one-coin", 5, {}),
    ("confusion", 4, {"accuracy": 0.65}),
    ("hammer-spammer", 3, {"spammers": 0.33, "accuracy": 0.8}),
]


def bought(strategy: str, kind: str, classes: int, seed: int, **crowd: float) -> float:
    """Share of correct labels after three answers per task and 1.5 more, bought in three rounds."""
    T, W, batch = 150, 20, 75
    sim = cw.simulate.crowd(kind, tasks=T, workers=W, classes=classes, per_task=W, seed=seed, **crowd)
    label, rng = sim.answers.codes()[2].reshape(T, W), np.random.default_rng(seed)
    turn = rng.permuted(np.tile(np.arange(W), (T, 1)), axis=1)  # who answers a task first, second, ...
    have = np.full(T, 3)

    def fit() -> cw.LabelsResult:
        task = np.repeat(np.arange(T), have)
        worker = np.concatenate([turn[i, :n] for i, n in enumerate(have)])
        return cw.aggregate(cw.Labels(task, worker, label[task, worker]))

    for _ in range(3):
        if strategy == "random":
            have += np.bincount(rng.integers(0, T, batch), minlength=T)
        elif strategy == "fewest":
            have[np.lexsort((rng.random(T), have))[:batch]] += 1
        else:
            advice = cw.next_tasks(fit(), batch, whom=False)
            have[advice["task"].to_numpy()] += advice["ask"].to_numpy()
    assert have.sum() == 4.5 * T
    truth = sim.truth["label"].replace_strict(dict(zip(sim.answers.classes, range(classes), strict=True)))
    return float((fit().labels["label"] == truth).mean())  # type: ignore[arg-type]


def test_asking_by_advice_beats_chance_and_evenness_at_one_budget() -> None:
    random, fewest, advised = (
        np.mean([bought(strategy, kind, K, seed, **crowd) for kind, K, crowd in MARKETS for seed in range(2)])
        for strategy in ("random", "fewest", "advice")
    )
    assert advised > fewest + 0.01
    assert advised > random + 0.01


# ----------------------------------------------------------------------------------------------------- the cost curve


@pytest.fixture(scope="module")
def curve(result: cw.LabelsResult) -> CostCurve:
    return cw.cost_curve(result)


def test_accuracy_never_falls_along_a_plan(curve: CostCurve) -> None:
    for plan in (EVERY, WORST):
        points = curve.points.filter(pl.col("plan") == plan)
        assert points["answers"].is_sorted()
        assert points["accuracy"].is_sorted()
        assert points["answers"][0] == 0


def test_both_plans_start_from_the_current_expectation(curve: CostCurve, result: cw.LabelsResult) -> None:
    now = cw.expected_accuracy(result)
    assert [tuple(row) for row in curve.points.filter(answers=0)["accuracy", "low", "high"].rows()] == [now, now]
    assert curve.points["plan"].unique(maintain_order=True).to_list() == [EVERY, WORST]
    assert curve.points.filter(plan=EVERY)["answers"].to_list() == [180 * m for m in range(6)]
    assert curve.gold == 20


def test_the_most_uncertain_tasks_bring_at_least_as_much(curve: CostCurve) -> None:
    every, worst = (
        dict(curve.points.filter(plan=plan).select("answers", "accuracy").rows()) for plan in (EVERY, WORST)
    )
    both = set(every) & set(worst)
    assert len(both) >= 4
    assert all(worst[n] >= every[n] - 1e-12 for n in both)


def test_the_band_holds_the_value(curve: CostCurve) -> None:
    points = curve.points
    assert (points["low"] <= points["accuracy"]).all()
    assert (points["accuracy"] <= points["high"]).all()
    assert (points["low"] >= 0).all()
    assert (points["high"] <= 1).all()


def test_gains_follow_the_law_of_real_sets() -> None:
    frame = one_coin(5, 3, tasks=50, workers=9, per_task=4).answers.frame()
    fit = cw.aggregate(cw.Labels(frame[:-3]))  # one task has a single answer
    given = [part["label"].to_list() for part in frame[:-3].partition_by("task", maintain_order=True)]
    pairs = [[x != y for n, x in enumerate(own) for y in own[n + 1 :]] for own in given if len(own) > 1]
    U = np.mean([np.mean(each) for each in pairs])
    points = cw.cost_curve(fit).points
    mean, x = float(fit.labels["probability"].mean()), fit.params.found[1]  # type: ignore[arg-type]
    now = 1 / (1 + (1 - mean) / mean * np.exp(0.2 * x))  # shared errors lower the log-odds
    assert x > 0.1
    assert np.isclose(cw.cost_curve(fit).disagreement, U)
    for m, row in enumerate(points.filter(plan=EVERY).iter_rows(named=True)):
        x = np.mean([1 / len(own) - 1 / (len(own) + m) for own in given])
        assert np.isclose(row["accuracy"], now + 0.65 * U * x)
    five = points.filter(plan=EVERY)["accuracy"][-1] - now
    for answers, accuracy in points.filter(plan=WORST).select("answers", "accuracy").rows():
        assert np.isclose(accuracy, now + five * (1 - (1 - answers / 5 / 50) ** 4))


def test_known_labels_correct_the_accuracy_and_narrow_its_range() -> None:
    sim = one_coin(3, 2, tasks=600, workers=30, per_task=3)
    bare, known = cw.aggregate(sim.answers), dict(sim.truth.gather_every(4).rows())
    checked = cw.aggregate(cw.Labels(sim.answers.frame(), gold=known))
    truth = share_right(bare, sim)
    one, two = cw.expected_accuracy(bare), cw.expected_accuracy(checked)
    assert one is not None
    assert two is not None
    assert abs(two.value - truth) < abs(one.value - truth)
    assert two.high - two.low < 0.5 * (one.high - one.low)
    assert two.low < truth < two.high


def test_the_correction_is_the_most_probable_shift(result: cw.LabelsResult) -> None:
    known = left_out(result)
    right = known.right
    odds, open_ = (
        cost._odds(known.probability),
        cost._odds(result.posterior[result.answers.gold < 0].max(1).astype(float)),
    )
    shifts, middle = np.linspace(-3, 3, 60_001), -0.2 * result.params.found[1]  # shared errors lower the prior
    logs = [
        np.log(1 / (1 + np.exp(-np.where(right, 1, -1) * (odds + d)))).sum() - (d - middle) ** 2 / (2 * 0.6**2)
        for d in shifts
    ]
    best = shifts[int(np.argmax(logs))]
    found = cw.expected_accuracy(result)
    assert found is not None
    assert np.isclose(found.value, (1 / (1 + np.exp(-open_ - best))).mean(), atol=1e-4)


@cache
def before_and_after(seed: int, classes: int) -> tuple[cw.simulate.Crowd, cw.Labels]:
    """A crowd with three answers per task, and the same with a fourth answer to every task."""
    sim, rng = one_coin(seed, classes, tasks=300, per_task=3), np.random.default_rng(seed)
    answers = sim.answers
    names = {name: k for k, name in enumerate(answers.classes)}
    task, worker, _ = answers.codes()
    rows = []
    for i, true in enumerate(sim.truth["label"]):
        j = int(rng.choice(np.setdiff1d(np.arange(answers.n_workers), worker[task == i])))
        said = rng.choice(answers.n_classes, p=sim.confusions[j, names[true]])
        rows.append((answers.tasks[i], answers.workers[j], answers.classes[int(said)]))
    more = pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row")
    return sim, cw.Labels(pl.concat([answers.frame(), more]))


def share_right(fit: cw.LabelsResult, sim: cw.simulate.Crowd) -> float:
    both = fit.labels.join(sim.truth, on="task", suffix="_true")
    return float((both["label"] == both["label_true"]).mean())  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [2, 4])
def test_the_default_predicts_no_more_than_is_observed(classes: int) -> None:
    """The prediction is conservative: it is below the true gain of a fourth answer in a simulated crowd."""
    predicted, observed = [], []
    for seed in range(4):
        sim, more = before_and_after(seed, classes)
        fit = cw.aggregate(sim.answers)
        points = cw.cost_curve(fit).points.filter(plan=EVERY)["accuracy"]
        predicted.append(points[1] - points[0])
        observed.append(share_right(cw.aggregate(more), sim) - share_right(fit, sim))
    assert 0.005 < np.mean(predicted) < np.mean(observed)


def test_the_curve_is_the_same_every_time(result: cw.LabelsResult) -> None:
    assert cw.cost_curve(result).points.equals(cw.cost_curve(result).points)
    assert cw.next_tasks(result, 50).equals(cw.next_tasks(result, 50))


# --------------------------------------------------------------------------------------------------------------- edges


def test_d7_one_class_leaves_nothing_to_ask() -> None:
    fit = cw.aggregate({"task": [0, 0, 1], "worker": [0, 1, 0], "label": ["x"] * 3})
    table, curve = cw.next_tasks(fit, 3), cw.cost_curve(fit)
    assert (tasks.expected(fit) == 1).all()
    assert table["ask"].sum() == 3
    assert table["gain"].to_list() == [0.0] * table.height
    assert table["rival"].null_count() == table["workers"].null_count() == table.height
    assert curve.points["accuracy"].to_list() == [1.0] * curve.points.height


def test_a_known_task_is_not_asked_even_where_nothing_is_gained() -> None:
    fit = cw.aggregate(cw.Labels(["a", "b", "b", "c", "c"], [1, 1, 2, 1, 2], ["x"] * 5, gold={"a": "x"}))
    table = cw.next_tasks(fit, 100)
    assert table.sort("task").select("task", "ask").rows() == [("b", 5), ("c", 5)]


def test_where_all_is_known_there_is_nothing_to_ask() -> None:
    gold = {"a": "x", "b": "y"}
    fit = cw.aggregate(cw.Labels(["a", "a", "b", "b"], [1, 2] * 2, ["x", "y", "y", "y"], gold=gold))
    table, curve = cw.next_tasks(fit, 3), cw.cost_curve(fit)
    assert table.height == 0
    assert table.columns[:3] == ["task", "ask", "label"]
    assert curve.points.height == 0


def test_d6_one_worker_and_one_answer_a_task_can_be_asked() -> None:
    fit = cw.aggregate({"task": [0, 1, 2], "worker": ["w"] * 3, "label": ["x", "y", "x"]})
    assert cw.next_tasks(fit, 4)["ask"].sum() == 4
    assert cw.expected_accuracy(fit) is None  # nothing shows how often workers agree
    assert cw.cost_curve(fit).points.is_empty()


@pytest.mark.parametrize("model", cw.models("labels")["name"].to_list())
def test_every_model_supports_next_tasks(model: str, crowd: cw.simulate.Crowd) -> None:
    fit = cw.aggregate(crowd.answers, model)
    assert cw.next_tasks(fit, 25)["ask"].sum() == 25
    points = cw.cost_curve(fit).points
    assert points.select("accuracy", "low", "high").null_count().sum_horizontal().item() == 0
    assert points["accuracy"].is_finite().all()


def test_ids_come_back_as_they_went_in() -> None:
    frame = pl.DataFrame({"task": [7, 7, 9, 9], "worker": [1, 2, 1, 2], "label": [10, 20, 10, 10]})
    table = cw.next_tasks(cw.aggregate(frame), 4)
    assert table.schema["task"] == table.schema["label"] == table.schema["rival"] == pl.Int64
    assert set(table["task"]) <= {7, 9}
