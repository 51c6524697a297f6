"""Agreement of a crowd: against other libraries, published numbers, slow reference code, bootstraps and simulation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

import crowdwise as cw
from crowdwise.inter_rater import labels as inter_rater
from crowdwise.kernels import fast, plain

ALPHA, FLEISS, COHEN, GWET, PERCENT = inter_rater.MEASURES
pytestmark = pytest.mark.filterwarnings("error")
by_counts = pytest.mark.parametrize("measure", [m for m in inter_rater.MEASURES if m != COHEN])


def answered(tasks: int, workers: int, per_task: int, classes: int = 3, seed: int = 1) -> cw.Labels:
    kind = {"classes": classes, "per_task": per_task, "accuracy": 0.7, "seed": seed}
    return cw.simulate.crowd("confusion", tasks=tasks, workers=workers, **kind).answers


def uneven(seed: int = 1) -> cw.Labels:
    """80 tasks with one to nine answers."""
    frame = answered(80, 9, 9, 4, seed).frame()
    kept = np.random.default_rng(seed).random(frame.height) < np.repeat(np.linspace(0.15, 1, 80), 9)
    return cw.Labels(frame.filter(pl.Series(kept)))


def grid(answers: cw.Labels) -> Any:
    """Label numbers (W, T), NaN where there is no answer."""
    table = np.full((answers.n_workers, answers.n_tasks), np.nan)
    task, worker, label = answers.codes()
    table[worker, task] = label
    return table


def values(answers: Any) -> dict[str, float | None]:
    return dict(cw.agreement(answers).select("measure", "value").rows())


def row(answers: Any, measure: str) -> dict[str, Any]:
    return cw.agreement(answers).row(list(inter_rater.MEASURES).index(measure), named=True)


def by_task(answers: cw.Labels) -> list[list[int]]:
    task, _, label = answers.codes()
    return [label[task == i].tolist() for i in range(answers.n_tasks)]


# ------------------------------------------------------------------------------------------------ what others compute


@pytest.mark.parametrize("seed", [1, 2])
def test_alpha_is_that_of_krippendorff(seed: int, kernels: Any) -> None:
    for answers in (answered(60, 5, 5, seed=seed), answered(60, 12, 3, seed=seed), uneven(seed)):
        theirs = krippendorff.alpha(grid(answers), level_of_measurement="nominal")
        assert np.isclose(values(answers)[ALPHA], theirs, rtol=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_fleiss_is_that_of_statsmodels(seed: int, kernels: Any) -> None:
    answers = answered(60, 5, 5, 4, seed)
    theirs = fleiss_kappa(aggregate_raters(grid(answers).T.astype(int))[0])
    assert np.isclose(values(answers)[FLEISS], theirs, rtol=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_cohen_is_the_mean_of_scikit_learn_over_pairs(seed: int, kernels: Any) -> None:
    answers = answered(60, 5, 5, 4, seed)
    theirs = [cohen_kappa_score(a, b) for a, b in combinations(grid(answers), 2)]
    assert np.isclose(values(answers)[COHEN], np.mean(theirs), rtol=1e-12)


def test_cohen_weighs_pairs_by_the_tasks_they_share(kernels: Any) -> None:
    answers = uneven()
    total, weight = 0.0, 0
    for a, b in combinations(grid(answers), 2):
        both = ~np.isnan(a + b)
        if both.sum() >= inter_rater.MIN_SHARED_TASKS:
            total += cohen_kappa_score(a[both], b[both]) * both.sum()
            weight += both.sum()
    assert np.isclose(values(answers)[COHEN], total / weight, rtol=1e-12)


@pytest.mark.parametrize("answers", [answered(60, 5, 5, 4), answered(60, 12, 3), uneven()])
def test_fleiss_weighs_tasks_equally(answers: cw.Labels, kernels: Any) -> None:
    tasks = [labels for labels in by_task(answers) if len(labels) > 1]
    agree = np.mean([np.mean([a == b for a, b in combinations(labels, 2)]) for labels in tasks])
    share = np.mean([[labels.count(k) / len(labels) for k in range(answers.n_classes)] for labels in tasks], axis=0)
    chance = (share**2).sum()
    assert np.isclose(values(answers)[FLEISS], (agree - chance) / (1 - chance), rtol=1e-12)


@pytest.mark.parametrize("answers", [answered(60, 5, 5, 4), answered(60, 12, 3), uneven()])
def test_gwet_and_percent_by_their_formulas(answers: cw.Labels, kernels: Any) -> None:
    K, tasks = answers.n_classes, by_task(answers)
    agree = [np.mean([a == b for a, b in combinations(labels, 2)]) for labels in tasks if len(labels) > 1]
    share = np.mean([[labels.count(k) / len(labels) for k in range(K)] for labels in tasks if labels], axis=0)
    chance = sum(p * (1 - p) for p in share) / (K - 1)
    assert np.isclose(values(answers)[PERCENT], np.mean(agree), rtol=1e-12)
    assert np.isclose(values(answers)[GWET], (np.mean(agree) - chance) / (1 - chance), rtol=1e-12)


def test_gwets_own_table() -> None:
    """Two abstractors, 100 charts: cont3x3abstractors of Gwet's package irrCAC, values and errors in its vignette."""
    cells = {("E", "E"): 13, ("A", "A"): 20, ("A", "N"): 7, ("N", "A"): 4, ("N", "N"): 56}
    pairs = [pair for pair, count in cells.items() for _ in range(count)]
    frame = {"task": np.repeat(np.arange(100), 2), "worker": ["a", "b"] * 100, "label": [x for p in pairs for x in p]}
    expected = {ALPHA: 0.7972585, FLEISS: 0.7962397, COHEN: 0.7964094, GWET: 0.8493305, PERCENT: 0.89}
    error = {ALPHA: 0.05905473, FLEISS: 0.05905473, COHEN: 0.05891072, GWET: 0.04321747, PERCENT: 0.03128898}
    for measure, value, low, high, _ in cw.agreement(frame).rows():
        assert np.isclose(value, expected[measure], atol=5e-8)
        assert np.isclose((high - low) / 2 / stats.t.ppf(0.975, 99), error[measure], rtol=0.01)


def test_krippendorffs_own_table() -> None:
    """Krippendorff (2011), Computing Krippendorff's alpha-reliability, C: 12 units, 4 observers, gaps; alpha .743."""
    units = ["1.11", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", ".555", "..11", "..3."]
    cells = [
        (unit, place, label) for unit, line in enumerate(units) for place, label in enumerate(line) if label != "."
    ]
    found = values(pl.DataFrame(cells, schema=["task", "worker", "label"], orient="row"))
    assert round(found[ALPHA] or 0, 3) == 0.743


# ---------------------------------------------------------------------------------------------------- pairs of workers


def pair_doubles(answers: cw.Labels, place: Any, size: int) -> tuple[Any, Any, list[tuple[int, ...]]]:
    same, by_label = np.zeros((size, size), int), np.zeros((size, answers.n_classes, size), int)
    met = []
    task, worker, label = answers.codes()
    for a, b in combinations(range(answers.n_answers), 2):
        p, r = place[worker[a]], place[worker[b]]
        if task[a] == task[b] and p >= 0 and r >= 0 and p != r:
            same[p, r] += label[a] == label[b]
            same[r, p] += label[a] == label[b]
            by_label[p, label[a], r] += 1
            by_label[r, label[b], p] += 1
            met.append((task[a], p, label[a], r, label[b]))
    return same, by_label, met


@pytest.fixture(params=["even", "uneven", "crowded", "twice"])
def paired(request: pytest.FixtureRequest) -> cw.Labels:
    """With tasks that have more answers than the compiled kernel first allocates for, and with repeated answers."""
    if request.param == "twice":
        frame = answered(20, 6, 4).frame()
        return cw.Labels(pl.concat([frame, frame.head(30).with_columns(label=pl.lit("c2"))]), duplicates="each")
    return {"even": answered(30, 8, 4), "uneven": uneven(), "crowded": answered(6, 40, 40)}[request.param]


@pytest.mark.parametrize("twin", [plain, fast])
@pytest.mark.parametrize("chosen", [1.0, 0.5])
def test_pair_counts_by_a_double_loop(twin: Any, chosen: float, paired: cw.Labels) -> None:
    place = np.full(paired.n_workers, -1, np.int32)
    some = np.random.default_rng(1).permutation(paired.n_workers)[: int(chosen * paired.n_workers)]
    place[some] = np.arange(len(some))
    same, by_label = twin.pair_counts(paired.layout, place, len(some))
    slow_same, slow_by_label, _ = pair_doubles(paired, place, len(some))
    assert np.array_equal(same, slow_same)
    assert np.array_equal(by_label, slow_by_label)


@pytest.mark.parametrize("twin", [plain, fast])
def test_pair_influence_by_a_double_loop(twin: Any, paired: cw.Labels) -> None:
    rng, W = np.random.default_rng(2), paired.n_workers
    place = np.where(np.arange(W) % 4 == 3, -1, np.cumsum(np.arange(W) % 4 != 3) - 1).astype(np.int32)
    size = int(place.max()) + 1
    _, by_label, met = pair_doubles(paired, place, size)
    of_same, of_pair, of_chance = (x + x.T for x in rng.normal(size=(3, size, size)))
    slow = np.zeros(paired.n_tasks)
    for i, p, a, r, b in met:
        slow[i] += of_pair[p, r] + of_same[p, r] * (a == b) + of_chance[p, r] * (by_label[r, a, p] + by_label[p, b, r])
    assert np.allclose(
        twin.pair_influence(paired.layout, place, by_label, of_same, of_pair, of_chance), slow, atol=1e-9
    )


@pytest.mark.parametrize("answers", [answered(60, 5, 5), answered(60, 12, 3), uneven()])
def test_numpy_and_compiled_agree(answers: cw.Labels, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = []
    for small in (0, 10**9):
        monkeypatch.setattr("crowdwise.kernels.MAX_PLAIN_CELLS", small)
        tables.append(cw.agreement(answers).select("value", "low", "high").to_numpy())
    assert np.allclose(*tables, rtol=1e-12, equal_nan=True)


# ----------------------------------------------------------------------------------------------------------- intervals


@by_counts
def test_slopes_are_derivatives(measure: str) -> None:
    sums = inter_rater._sums(uneven())
    _, slopes = inter_rater._BY_COUNTS[measure](sums)
    for name, slope in slopes._asdict().items():
        at = np.atleast_1d(np.asarray(getattr(sums, name), float))
        for k, derivative in enumerate(np.zeros(len(at)) if slope is None else np.atleast_1d(slope)):
            step = np.eye(len(at))[k] * 1e-5 * max(1.0, abs(at[k]))
            ends = [(at + s * step) if at.size > 1 else float((at + s * step)[0]) for s in (1, -1)]
            up, down = (inter_rater._BY_COUNTS[measure](sums._replace(**{name: end}))[0] for end in ends)
            assert np.isclose((up - down) / (2 * step[k]), derivative, rtol=1e-5, atol=1e-9), name


def again(answers: cw.Labels, rng: np.random.Generator) -> cw.Labels:
    """The same number of tasks, drawn with replacement."""
    _, worker, label = answers.codes()
    start = answers.layout.task_ptr
    drawn = rng.integers(0, answers.n_tasks, answers.n_tasks)
    rows = np.concatenate([np.arange(start[i], start[i + 1]) for i in drawn])
    new = np.repeat(np.arange(len(drawn)), np.diff(start)[drawn])
    return cw.Labels(new, worker[rows], label[rows])


@pytest.mark.parametrize("answers", [answered(150, 8, 8, 3), answered(200, 10, 5, 4)], ids=["complete", "sparse"])
def test_standard_errors_are_those_of_a_bootstrap_over_tasks(answers: cw.Labels) -> None:
    rng = np.random.default_rng(5)
    drawn = pl.concat([cw.agreement(again(answers, rng)) for _ in range(250)])
    spread = dict(drawn.group_by("measure").agg(pl.col("value").std()).rows())
    for measure, _, low, high, _ in cw.agreement(answers).rows():
        error = (high - low) / 2 / stats.t.ppf(0.975, answers.n_tasks - 1)
        assert np.isclose(error, spread[measure], rtol=0.15), measure


@pytest.mark.parametrize(("tasks", "per_task", "classes"), [(40, 4, 2), (100, 3, 3)])
def test_intervals_cover_the_value_over_many_tasks(tasks: int, per_task: int, classes: int) -> None:
    whole = answered(12_000, 10, per_task, classes, seed=5)
    truth, (task, worker, label) = values(whole), whole.codes()
    tables = []
    for draw in range(120):
        part = (task >= draw * tasks) & (task < (draw + 1) * tasks)
        tables.append(cw.agreement(cw.Labels(task[part], worker[part], label[part])))
    drawn = pl.concat(tables).with_columns(truth=pl.col("measure").replace_strict(truth, return_dtype=pl.Float64))
    held = drawn.filter(pl.col("measure") != COHEN).group_by("measure")
    for measure, share in held.agg(pl.col("truth").is_between("low", "high").mean()).rows():
        assert 0.88 <= share <= 0.99, measure


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 30, 1000])
def test_students_t_is_that_of_scipy(freedom: int) -> None:
    assert np.isclose(inter_rater.student(freedom), stats.t.ppf(0.975, freedom), rtol=0.01)


# ----------------------------------------------------------------------------------------------------- edges and words


def test_full_agreement_on_several_classes_is_one(kernels: Any) -> None:
    table = cw.agreement({"task": np.repeat(np.arange(12), 3), "worker": [1, 2, 3] * 12, "label": list("aaabbb") * 6})
    assert table["value"].to_list() == [1.0] * 5
    assert table["low"].to_list() == table["high"].to_list() == [1.0] * 5
    assert table["note"].to_list() == [""] * 5


def test_d7_one_class_has_no_alpha_and_says_why(kernels: Any) -> None:
    table = cw.agreement({"task": [0, 0, 1, 1], "worker": [0, 1] * 2, "label": ["x"] * 4})
    for measure, value, low, high, note in table.filter(~pl.col("measure").is_in([PERCENT, COHEN])).rows():
        assert (value, low, high) == (None, None, None), measure
        said = "all answers that can be compared are the same, so agreement beyond chance is not defined"
        assert note == f"{said}; percent agreement is 1"
    assert row({"task": [0, 0, 1, 1], "worker": [0, 1] * 2, "label": ["x"] * 4}, PERCENT)["value"] == 1


def test_d7_one_class_has_no_cohen_and_says_why() -> None:
    alike = {"task": np.repeat(np.arange(12), 2), "worker": [0, 1] * 12, "label": ["x"] * 24}
    found = row(alike, COHEN)
    assert found["value"] is None
    assert found["note"] == "every pair of workers gave a single label only"


def test_pairs_that_only_gave_one_label_are_left_out_and_counted() -> None:
    rng = np.random.default_rng(3)
    frame = {"task": np.repeat(np.arange(30), 4), "worker": [0, 1, 2, 3] * 30, "label": rng.integers(0, 2, 120)}
    frame["label"][np.isin(frame["worker"], [0, 1])] = 1
    found = row(frame, COHEN)
    assert found["note"] == "1 pair(s) of workers who gave a single label only are omitted"
    assert np.isfinite(found["value"])


def test_no_task_with_two_answers_has_nothing_to_agree_on(kernels: Any) -> None:
    table = cw.agreement({"task": [0, 1, 2], "worker": [0, 1, 0], "label": ["x", "y", "x"]})
    assert table["value"].to_list() == [None] * 5
    notes = set(table.filter(pl.col("measure") != COHEN)["note"])
    assert notes == {"no task has two answers, so there is nothing to agree on"}
    assert row({"task": [0], "worker": [0], "label": ["x"]}, COHEN)["note"] == "no two workers share 10 tasks"


def test_one_task_has_values_but_no_interval() -> None:
    table = cw.agreement({"task": [0, 0, 0], "worker": [0, 1, 2], "label": ["x", "y", "x"]})
    for _, value, low, high, note in table.filter(pl.col("measure") != COHEN).rows():
        assert np.isfinite(value)
        assert (low, high, note) == (None, None, "only one to compare, so no interval")


def test_answers_that_stand_alone_do_count_as_answers() -> None:
    """Tasks with one answer do not enter alpha, but if they hold a second class, not every answer is the same."""
    alone = {"task": [0, 0, 1, 1, 2], "worker": [0, 1, 0, 1, 0], "label": ["x", "x", "x", "x", "y"]}
    assert values(alone)[ALPHA] is None
    assert "every answer says the same" not in row(alone, ALPHA)["note"]
    assert values(alone)[GWET] == 1


@st.composite
def tables(draw: Any) -> pl.DataFrame:
    """Answers of up to 7 workers on up to 12 tasks with up to 3 labels."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 6)), min_size=1, max_size=60, unique=True))
    labels = draw(st.lists(st.integers(0, 2), min_size=len(pairs), max_size=len(pairs)))
    return pl.DataFrame({"task": [i for i, _ in pairs], "worker": [j for _, j in pairs], "label": labels})


@given(tables())
def test_values_are_null_or_within_bounds(frame: pl.DataFrame) -> None:
    for measure, value, low, high, note in cw.agreement(frame).rows():
        assert value is not None or note, measure
        assert value is None or -1 <= value <= 1, measure
        assert low is None or (-1 <= low <= value <= high <= 1), measure
        assert (low is None) == (high is None)


def test_a_few_disputed_tasks_beside_a_busy_one_stay_within_bounds() -> None:
    """If tasks weighed equally in observed agreement, and votes in expected agreement, kappa would be -1.08."""
    frame = {
        "task": [0, 0, 1, 1, 2, 2, 2, 2, 2, 2],
        "worker": [0, 1, 0, 1, 0, 1, 2, 3, 4, 5],
        "label": list("abab" + 6 * "a"),
    }
    found = row(frame, FLEISS)
    assert -1 <= found["low"] <= found["value"] <= found["high"] <= 1


@given(tables(), st.randoms(use_true_random=False))
def test_d1_d15_order_and_missing_labels_change_nothing(frame: pl.DataFrame, random: Any) -> None:
    order = list(range(frame.height))
    random.shuffle(order)
    silent = frame.with_columns(worker=pl.lit(99, pl.Int64), label=pl.lit(None, pl.Int64))
    table = cw.agreement(frame)
    assert table.equals(cw.agreement(frame[order]))
    assert table.equals(cw.agreement(pl.concat([frame, silent])))


@given(tables(), st.integers(0, 99))
def test_d16_names_do_not_matter(frame: pl.DataFrame, seed: int) -> None:
    rng = np.random.default_rng(seed)
    new = [pl.Series(rng.permutation(20)[frame[name].to_numpy()]).alias(name) for name in ("task", "worker", "label")]
    numbers = ("value", "low", "high")
    one, two = (cw.agreement(table).select(numbers).to_numpy() for table in (frame, pl.DataFrame(new)))
    assert np.allclose(one.astype(float), two.astype(float), atol=1e-9, equal_nan=True)


def test_cohen_uses_the_busiest_workers_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inter_rater, "MAX_WORKERS", 4)
    answers = uneven()
    busiest = np.argsort(-answers.answers_per_worker, kind="stable")[:4]
    found = row(answers, COHEN)
    only = answers.frame().filter(pl.col("worker").is_in(answers.workers[np.sort(busiest)].implode()))
    assert found["note"] == "pairs among the 4 busiest workers"
    assert np.isclose(found["value"], row(only, COHEN)["value"])


def test_every_measure_has_its_row_and_order() -> None:
    table = cw.agreement(answered(30, 4, 4))
    assert table["measure"].to_list() == ["krippendorff-alpha", "fleiss-kappa", "cohen-kappa", "gwet-ac1", "percent"]
    assert table.columns == ["measure", "value", "low", "high", "note"]


def test_the_interval_of_percent_is_that_of_a_mean_over_tasks() -> None:
    answers = cw.Labels(np.repeat(np.arange(5), 3), [1, 2, 3] * 5, list("aaabbbaababbbab"))
    row = cw.agreement(answers).row(by_predicate=pl.col("measure") == "percent", named=True)
    half = stats.t.ppf(0.975, 4) * stats.sem([1, 1, 1 / 3, 1 / 3, 1 / 3])
    assert row["value"] == pytest.approx(0.6)
    assert row["value"] - row["low"] == pytest.approx(half)
