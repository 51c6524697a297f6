"""Ratings of workers: against simple reference code, other libraries, and crowds with known skills and spammers."""

from __future__ import annotations

import datetime
import re
import tracemalloc
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

import crowdwise as cw
from crowdwise.errors import EmptyDataError, ParameterError, UnknownIdError, for_shell
from crowdwise.kernels.layout import WorkerRows
from crowdwise.rating import COLUMNS, WORKER_COLUMNS, habits, spam, wilson, workers
from crowdwise.rating.checks import drop_below
from crowdwise.rating.copies import COPY_RATE, _Lists
from crowdwise.rating.pieces import pieces_of
from crowdwise.rating.times import times
from crowdwise.report.command import python_line

DOUBLE = cw.Run(precision="double")
pytestmark = pytest.mark.filterwarnings("error")
NUMBERS = [
    "skill", "low", "high", "spam_score", "spam_distance", "trace", "check_score", "check_low", "check_high", "seconds",
    "agreement", "overuse",
]  # fmt: skip


def honest(classes: int = 3, tasks: int = 400, seed: int = 1, workers: int = 20, per_task: int = 6) -> pl.DataFrame:
    """Answers of 20 workers who are right about 80 % of the time, as a table."""
    kind = {"tasks": tasks, "workers": workers, "classes": classes, "per_task": per_task, "a": 12, "b": 3}
    return cw.simulate.crowd("one-coin", seed=seed, **kind).answers.frame()


def turned(frame: pl.DataFrame, worker: str, label: Any) -> pl.DataFrame:
    """With other labels of one worker."""
    return frame.with_columns(label=pl.when(pl.col("worker") == worker).then(label).otherwise(pl.col("label")))


def guessed(frame: pl.DataFrame, worker: str) -> pl.DataFrame:
    classes = frame["label"].unique().sort().to_numpy()
    return turned(frame, worker, pl.Series(np.random.default_rng(1).choice(classes, frame.height)))


def of(table: pl.DataFrame, worker: Any) -> dict[str, Any]:
    return table.row(by_predicate=pl.col("worker") == worker, named=True)


def small(**further: Any) -> cw.Labels:
    """10 tasks, 6 workers 0 to 5 who all answer all of them in this order, 2 classes."""
    said = np.random.default_rng(0).integers(0, 2, 60)
    table = {"task": np.repeat(np.arange(10), 6), "worker": np.tile(np.arange(6), 10), "label": said}
    gold = further.pop("gold", None)
    return cw.Labels(pl.DataFrame({**table, **further}), gold=gold)


def rated(answers: Any, model: str = "majority-vote") -> pl.DataFrame:
    return cw.aggregate(answers, model).workers


def test_the_table_has_the_columns_that_are_described(crowd: cw.simulate.Crowd) -> None:
    result = cw.aggregate(crowd.answers)
    assert result.workers.columns == list(COLUMNS)
    assert result.workers.columns[: len(WORKER_COLUMNS)] == list(WORKER_COLUMNS)
    assert result.workers.equals(cw.rate(result))
    assert result.workers.equals(cw.rate(result, crowd.answers))
    assert result.workers["worker"].equals(crowd.answers.workers)
    assert result.workers["answers"].to_list() == crowd.answers.answers_per_worker.tolist()


# ---------------------------------------------------------------------------------------------------- spammer score


@pytest.mark.parametrize("model", ["pooled", "dawid-skene", "one-coin"])
def test_spam_distance_is_that_to_the_nearest_matrix_of_equal_rows(model: str, crowd: cw.simulate.Crowd) -> None:
    result = cw.aggregate(crowd.answers, model)
    for worker, score, distance, trace in result.workers.select(
        "worker", "spam_score", "spam_distance", "trace"
    ).rows():
        pi = result.confusion(worker).drop("truth").to_numpy()
        v = np.linalg.lstsq(np.ones((3, 1)), pi)[0]
        assert np.isclose(distance, ((pi - np.ones((3, 1)) @ v) ** 2).sum(), atol=1e-12)
        assert np.isclose(score, distance / 2, atol=1e-12)
        assert np.isclose(trace, np.trace(pi) / 3, atol=1e-12)


@pytest.mark.parametrize("K", [2, 3, 7])
def test_the_ends_of_the_spammer_score(K: int) -> None:
    rows = np.random.default_rng(K).dirichlet(np.ones(K), 5)
    distance, trace = spam.of_matrices(np.concatenate([np.eye(K)[None], np.repeat(rows[:, None], K, axis=1)]))
    assert np.isclose(distance[0], K - 1)
    assert np.isclose(trace[0], 1)
    assert np.allclose(distance[1:], 0, atol=1e-15)
    assert np.allclose(trace[1:], 1 / K)


def test_the_always_right_score_one_and_the_always_same_nothing() -> None:
    truth = np.arange(30) % 3
    labels = np.stack([truth, truth, truth, truth, np.zeros(30, int)], axis=1).ravel()
    answers = cw.Labels(np.repeat(np.arange(30), 5), np.tile(list("abcdz"), 30), labels)
    table = cw.DawidSkene(smoothing=0).fit(answers, run=DOUBLE).workers
    assert np.allclose(table["spam_score"], [1, 1, 1, 1, 0])
    assert np.allclose(table["spam_distance"], [2, 2, 2, 2, 0])
    assert np.allclose(table["trace"], [1, 1, 1, 1, 1 / 3])


@pytest.mark.parametrize("model", ["majority-vote", "soft-vote"])
def test_a_vote_estimates_no_skill_per_worker(model: str, crowd: cw.simulate.Crowd) -> None:
    table = rated(crowd.answers, model)
    for column in ("spam_score", "spam_distance", "trace"):
        assert table[column].null_count() == table.height
    assert table["skill"].null_count() == 0


def test_spammers_score_less_than_hammers() -> None:
    kind = {"tasks": 400, "workers": 20, "classes": 3, "per_task": 6, "spammers": 0.4}
    sim = cw.simulate.crowd("hammer-spammer", seed=3, **kind)
    table, spammer = rated(sim.answers, "pooled"), sim.workers["skill"] < 0.5
    assert table["spam_score"].filter(spammer).max() < table["spam_score"].filter(~spammer).min()  # type: ignore
    assert table["trace"].filter(spammer).max() < table["trace"].filter(~spammer).min()  # type: ignore


# ---------------------------------------------------------------------------------------------------- attention checks


def checks_by_hand(answers: cw.Labels, gold: dict[int, int], marked: Any) -> list[tuple[int, float | None]]:
    found = []
    for worker in range(6):
        rows = zip(*answers.frame().select("task", "worker", "label"), marked, strict=True)
        right = [gold[i] == said for i, j, said, mark in rows if j == worker and mark and i in gold]
        found.append((len(right), float(np.mean(right)) if right else None))
    return found


GOLD = {0: 1, 3: 0, 4: 0, 8: 1}


def test_checks_are_answers_to_known_tasks() -> None:
    answers = small(gold=GOLD)
    table = rated(answers)
    assert table.select("checks", "check_score").rows() == checks_by_hand(answers, GOLD, [True] * 60)


MARKS: dict[str, Callable[[Any], list[Any]]] = {
    "booleans": lambda mark: mark.tolist(),
    "numbers": lambda mark: mark.astype(int).tolist(),
    "0 and 1": lambda mark: [str(int(x)) for x in mark],
    "true and false": lambda mark: ["true" if x else "false" for x in mark],
    "TRUE and nothing": lambda mark: [" TRUE " if x else None for x in mark],
    "yes and no": lambda mark: ["Yes" if x else "no" for x in mark],
}


@pytest.mark.parametrize("kind", MARKS)
def test_a_column_marks_the_checks(kind: str) -> None:
    mark = np.random.default_rng(2).random(60) < 0.6
    mark[np.arange(60) % 6 == 5] = False
    answers = small(gold=GOLD, is_check=MARKS[kind](mark))
    table = rated(answers)
    assert table.select("checks", "check_score").rows() == checks_by_hand(answers, GOLD, mark)
    assert table.select("checks", "check_score", "check_low", "check_high").row(5) == (0, None, None, None)


def test_without_known_tasks_there_are_no_checks() -> None:
    for answers in (small(), small(is_check=[True] * 60)):
        table = rated(answers)
        assert table["checks"].to_list() == [0] * 6
        for column in ("check_score", "check_low", "check_high"):
            assert table[column].null_count() == 6


def test_workers_below_a_score_are_dropped_and_counted() -> None:
    answers = small(gold=GOLD, seconds=np.arange(60.0))
    scores = [score for _, score in checks_by_hand(answers, GOLD, [True] * 60)]
    low = [worker for worker, score in enumerate(scores) if score is not None and score < 0.5]
    assert 0 < len(low) < 6
    assert 0.5 in scores, "a worker at the threshold is kept"
    kept = drop_below(answers, 0.5)
    expected = answers.frame().filter(~pl.col("worker").is_in(low))
    assert kept.frame().equals(expected)
    assert kept.workers.to_list() == [worker for worker in range(6) if worker not in low]
    assert (kept.tasks.to_list(), kept.gold.tolist()) == (answers.tasks.to_list(), answers.gold.tolist())
    [dropped] = kept.intake.dropped
    gone = "1 worker" if len(low) == 1 else f"{len(low)} workers"
    assert dropped.reason == f"answers of {gone} below 0.5 on attention checks"
    assert (dropped.count, dropped.examples) == (10 * len(low), tuple(map(str, low[:3])))
    assert (kept.intake.rows_read, kept.intake.rows_used) == (60, 60 - 10 * len(low))
    fitted, again = cw.aggregate(kept, "dawid-skene"), cw.aggregate(cw.Labels(expected, gold=GOLD), "dawid-skene")
    assert np.array_equal(fitted.posterior, again.posterior)
    assert drop_below(answers, 0.0).n_workers == 6


def test_workers_without_checks_are_kept_and_noted() -> None:
    answers = small(gold=GOLD, is_check=np.arange(60) % 6 != 5)
    kept = drop_below(answers, 0.5)
    assert 5 in kept.workers.to_list()
    assert "kept although without attention checks: 1 of 6 workers" in kept.intake.notes


@pytest.mark.parametrize("threshold", [-0.1, 1.01, float("nan")])
def test_a_threshold_is_a_share(threshold: float) -> None:
    with pytest.raises(ParameterError, match=r"drop_below=.*: the threshold is a share .* from 0 to 1"):
        drop_below(small(gold=GOLD), threshold)


def test_dropping_needs_checks_and_leaves_someone() -> None:
    with pytest.raises(
        ParameterError, match=r"needs attention checks: .*Give the known labels with gold=\.\.\."
    ) as none:
        drop_below(small(), 0.5)
    assert "--gold FILE or --gold-column COL" in for_shell(none.value.args[0])
    with pytest.raises(EmptyDataError, match=r"all 6 workers are below 0.5 .*Give a lower threshold"):
        drop_below(cw.Labels(small().frame(), gold=dict.fromkeys(GOLD, 2)), 0.5)


def test_answers_without_some_workers() -> None:
    answers = small(gold=GOLD)
    assert answers.without([]) is answers
    assert answers.without([3, 1, 1]).frame().equals(answers.frame().filter(~pl.col("worker").is_in([1, 3])))
    assert answers.without(pl.Series([0]), "left early").intake.dropped[0].reason == "left early"
    with pytest.raises(UnknownIdError, match="no worker 7 in these answers"):
        answers.without([7])
    with pytest.raises(EmptyDataError, match="no answers are left without these 6 workers"):
        answers.without(range(6))
    with pytest.raises(ParameterError, match=r"takes a list of workers; got the text 'ann'. Write \['ann'\]"):
        answers.without("ann")


def test_a_page_without_some_workers_does_not_claim_to_come_from_the_file(table: Any) -> None:
    path = table("task,worker,label\n" + "".join(f"{i},{j},{i % 2}\n" for i in range(4) for j in "abc"))
    answers = cw.read(path)
    assert "answers.csv" in python_line(cw.aggregate(answers))
    assert "answers.csv" not in python_line(cw.aggregate(answers.without(["a"])))


def test_check_intervals_are_wilsons(crowd: cw.simulate.Crowd) -> None:
    known = dict(crowd.truth.head(50).rows())
    table = rated(cw.Labels(crowd.answers.frame(), gold=known))
    for n, score, low, high in table.select("checks", "check_score", "check_low", "check_high").rows():
        assert np.allclose((low, high), proportion_confint(round(n * score), n, method="wilson"), atol=1e-12)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_is_that_of_statsmodels(right: int, n: int) -> None:
    right = min(right, n)
    low, high = wilson(np.array([right / n]), np.array([float(n)]))
    theirs = proportion_confint(right, n, method="wilson")
    assert np.allclose((low[0], high[0]), theirs, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------ seconds


def test_seconds_are_the_median_of_a_worker() -> None:
    taken = np.random.default_rng(3).gamma(2, 5, 60)
    table = rated(small(seconds=taken))
    assert np.allclose(table["seconds"], np.median(taken.reshape(10, 6), axis=0))


@pytest.mark.parametrize("bad", [-4.0, 0.0, float("nan"), float("inf"), -float("inf"), None])
def test_d27_impossible_times_are_ignored(bad: float | None) -> None:
    taken: list[Any] = [float(3 + n % 6) for n in range(60)]
    taken[:30] = [bad] * 30
    taken[5::6] = [bad] * 10
    assert rated(small(seconds=taken))["seconds"].to_list() == [3.0, 4.0, 5.0, 6.0, 7.0, None]


def test_times_in_words_are_ignored() -> None:
    taken = ["soon", "", "-3", "NaN", "inf", "2.5"] * 10
    assert rated(small(seconds=taken))["seconds"].to_list() == [None] * 5 + [2.5]
    assert rated(small())["seconds"].null_count() == 6


DAY = datetime.datetime(2024, 2, 28, 23, 59, 58)
LATER = DAY + datetime.timedelta(seconds=7)
SPANS: dict[str, tuple[Any, Any]] = {
    "numbers": (1_700_000_000, 1_700_000_007),
    "datetimes": (DAY, LATER),
    "text": (str(DAY), str(LATER)),
    "with a T and a Z": ("2024-02-28T23:59:58Z", "2024-02-29T00:00:05Z"),
    "two zones": ("2024-02-28T23:59:58+00:00", "2024-02-29T02:00:05+02:00"),
    "with parts of seconds": ("2024-02-28 23:59:58.250", "2024-02-29 00:00:05.250"),
}


@pytest.mark.parametrize("kind", SPANS)
def test_d27_seconds_lie_between_start_and_end(kind: str) -> None:
    start, end = SPANS[kind]
    assert rated(small(started=[start] * 60, timestamp=[end] * 60))["seconds"].to_list() == [7.0] * 6
    assert rated(small(started=[end] * 60, timestamp=[start] * 60))["seconds"].null_count() == 6  # D27


def test_seconds_win_over_start_and_end() -> None:
    table = rated(small(seconds=[3.0] * 60, started=[DAY] * 60, timestamp=[LATER] * 60))
    assert table["seconds"].to_list() == [3.0] * 6


def test_times_that_cannot_be_read_are_no_times() -> None:
    table = rated(small(started=["long ago"] * 60, timestamp=["late"] * 60))
    assert table["seconds"].null_count() == 6
    assert (table["flags"] == "").all()


def test_seconds_since_1970_in_a_file_are_times(table: Any) -> None:
    lines = [f"t{i},w{j},{'xy'[(i + j) % 2]},1700000000,{1700000003 + j}" for i in range(6) for j in range(5)]
    answers = cw.read(table("task,worker,label,started,timestamp\n" + "\n".join(lines) + "\n"))
    assert rated(answers)["seconds"].to_list() == [3.0, 4.0, 5.0, 6.0, 7.0]


def test_durations_are_given_in_seconds() -> None:
    taken = [datetime.timedelta(seconds=7)] * 60
    assert rated(small(seconds=taken))["seconds"].to_list() == [7.0] * 6


def timed(seed: int, between: float, workers: int = 40, tasks: int = 20) -> pl.DataFrame:
    """Log-normal times: workers differ by `between`, answers of one worker by 0.6. All answers are right."""
    rng, worker = np.random.default_rng(seed), np.tile(np.arange(workers), tasks)
    taken = np.exp(rng.normal(2.5, between, workers)[worker] + rng.normal(0, 0.6, len(worker)))
    task = np.repeat(np.arange(tasks), workers)
    return pl.DataFrame({"task": task, "worker": worker, "label": task % 2, "seconds": taken})


def too_fast(frame: pl.DataFrame) -> list[int]:
    table = rated(frame)
    return table.filter(pl.col("flags").str.contains("too fast"))["worker"].to_list()


@pytest.mark.parametrize(("between", "most"), [(0.25, 0.0), (0.6, 0.005)])
def test_d31_no_worker_is_too_fast_among_usual_times(between: float, most: float) -> None:
    assert sum(len(too_fast(timed(seed, between))) for seed in range(10, 35)) <= most * 25 * 40


@pytest.mark.parametrize("seed", range(3))
def test_workers_ten_times_faster_are_too_fast(seed: int) -> None:
    quick = pl.when(pl.col("worker") == 7).then(pl.col("seconds") / 10).otherwise(pl.col("seconds"))
    frame = timed(seed, 0.25).with_columns(seconds=quick)
    assert too_fast(frame) == [7]
    row = of(rated(frame), 7)
    typical = frame.group_by("worker").agg(pl.col("seconds").median())["seconds"].log().median()
    reason = f"takes {row['seconds']:.3g} s per answer, while the typical worker takes {np.exp(typical):.3g} s"
    assert row["reasons"] == reason


def test_few_timed_answers_flag_no_worker_as_too_fast() -> None:
    quick = pl.when(pl.col("worker") == 7).then(pl.col("seconds") / 100).otherwise(pl.col("seconds"))
    assert too_fast(timed(1, 0.25, tasks=4).with_columns(seconds=quick)) == []
    assert too_fast(timed(1, 0.25, workers=4).with_columns(seconds=pl.Series([10.0, 9.0, 11.0, 0.01] * 20))) == []


# -------------------------------------------------------------------------------------------------- honest intervals


def test_intervals_of_skill_cover_the_truth_in_95_of_100() -> None:
    """42 crowds of 48 workers; kinds of crowd, classes and answers per worker in equal parts."""
    held: list[bool] = []
    kinds, sizes = ("one-coin", "confusion", "hammer-spammer"), (5, 10, 25, 50, 100, 250, 500)
    for kind, K, n in product(kinds, (2, 5), sizes):
        sim = cw.simulate.crowd(kind, tasks=48 * n // 5, workers=48, classes=K, per_task=5, seed=n)
        table = cw.aggregate(sim.answers).workers.join(sim.workers.rename({"skill": "true"}), on="worker")
        held += ((table["low"] <= table["true"] + 1e-9) & (table["true"] <= table["high"] + 1e-9)).to_list()
    assert len(held) > 2000
    assert 0.92 <= np.mean(held) <= 0.98


def test_intervals_cover_the_truth_in_hard_crowds() -> None:
    """Three answers per task, 65 % right: forty such answers are worth only a few with known truth."""
    held: list[bool] = []
    for seed in range(4):
        kind = {"tasks": 400, "workers": 30, "classes": 2, "per_task": 3, "spammers": 0, "accuracy": 0.65}
        table = rated(cw.simulate.crowd("hammer-spammer", seed=seed, **kind).answers, "one-coin")
        held += ((table["low"] <= 0.65) & (table["high"] >= 0.65)).to_list()
    assert np.mean(held) >= 0.92


def test_more_answers_make_intervals_narrower() -> None:
    widths = []
    for n in (5, 50, 500):
        table = rated(cw.simulate.crowd("one-coin", tasks=4 * n, workers=20, per_task=5, seed=n).answers, "pooled")
        widths.append(float((table["high"] - table["low"]).mean()))  # type: ignore[arg-type]
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


# ------------------------------------------------------------------------------------------------- spammers and others

CLEAN: dict[str, tuple[str, dict[str, float]]] = {
    "one-coin": ("one-coin", {"a": 12, "b": 3}),
    "all .65": ("hammer-spammer", {"spammers": 0, "accuracy": 0.65}),
    "all .7": ("hammer-spammer", {"spammers": 0, "accuracy": 0.7}),
    "all .8": ("hammer-spammer", {"spammers": 0, "accuracy": 0.8}),
}


@pytest.mark.parametrize("name", CLEAN)
def test_d31_of_honest_workers_one_in_a_hundred_is_flagged_at_most(name: str) -> None:
    """Two classes with 65 % accuracy are the hardest, as the estimated truth may be wrong, so they occur thrice."""
    kind, settings = CLEAN[name]
    flags: list[str] = []
    for K, (tasks, crowd, per_task) in product((2, 3, 5), ((100, 20, 5), (200, 60, 3), (300, 40, 5))):
        size = {"tasks": tasks, "workers": crowd, "per_task": per_task, "classes": K}
        for seed in range(3 if (name, K) == ("all .65", 2) else 1):
            sim = cw.simulate.crowd(kind, seed=seed, **size, **settings)
            flags += rated(sim.answers, "pooled")["flags"].to_list()
    assert len(flags) == (600 if name == "all .65" else 360)
    assert sum(flag != "" for flag in flags) <= 0.01 * len(flags)


def flagged(K: int, spammers: float, seeds: Iterable[int]) -> tuple[float, float]:
    """Share of spammers and of hammers with a flag, at 120 answers per worker."""
    size = {"tasks": 600, "workers": 30, "classes": K, "per_task": 6, "spammers": spammers, "accuracy": 0.8}
    spam, hammers = [], []
    for seed in seeds:
        sim = cw.simulate.crowd("hammer-spammer", seed=seed, **size)
        found, at_chance = cw.aggregate(sim.answers).workers["flags"] != "", sim.workers["skill"] < 0.79
        spam += found.filter(at_chance).to_list()
        hammers += found.filter(~at_chance).to_list()
    return float(np.mean(spam)), float(np.mean(hammers))


def test_d32_spammers_are_found() -> None:
    spam, hammers = flagged(3, 0.3, range(5))
    assert spam >= 0.8
    assert hammers <= 0.01


@pytest.mark.parametrize("K", [2, 3, 5])
def test_d32_where_most_are_spammers_the_honest_are_not_called_so(K: int) -> None:
    spam, hammers = flagged(K, 0.6, (0, 3, 4))
    assert hammers <= 0.01
    assert spam >= 0.8 or K == 2


@pytest.mark.parametrize("K", [2, 4])
def test_d31_in_pure_noise_no_worker_is_rated_with_certainty(K: int) -> None:
    flags: list[str] = []
    for seed in (2, 3):
        sim = cw.simulate.crowd("hammer-spammer", tasks=100, workers=20, classes=K, per_task=5, spammers=1, seed=seed)
        flags += rated(sim.answers, "pooled")["flags"].to_list()
    assert not [flag for flag in flags if "inverted" in flag or "copies" in flag or "one label" in flag]


@pytest.mark.parametrize("seed", [1, 2])
def test_guessing_workers_are_at_chance(seed: int) -> None:
    table = rated(guessed(honest(3, 600, seed), "w03"), "pooled")
    row = of(table, "w03")
    assert row["flags"] == "at chance"
    skill, low, high = (f"{100 * row[name]:.0f}" for name in ("skill", "low", "high"))
    said = f"{skill} % correct (95 % interval {low} to {high} %), while random answers would be 3"
    assert re.fullmatch(re.escape(said) + r"\d % correct", row["reasons"])
    assert table.filter(pl.col("flags") != "").height == 1


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("K", [2, 3])
def test_workers_who_give_one_label_are_flagged(K: int, seed: int) -> None:
    frame = turned(honest(K, 400, seed), "w03", pl.lit("c1"))
    result = cw.aggregate(frame)
    row = of(result.workers, "w03")
    mine = [result.answers.task_number(task) for task in frame.filter(worker="w03")["task"]]
    wrong = 1 - result.posterior[mine, 0].mean()
    assert "one label" in row["flags"].split("; ")
    assert (
        f"nearly all of {len(mine)} answers are “c1”, and an estimated {100 * wrong:.0f} % of them are wrong"
        in row["reasons"]
    )
    assert result.workers.filter(pl.col("flags") != "").height == 1


def test_one_label_is_fine_where_nothing_else_is_true() -> None:
    kind = {"tasks": 200, "workers": 10, "classes": 2, "per_task": 5, "a": 30, "b": 1}
    table = rated(cw.simulate.crowd("one-coin", prevalence=[0.98, 0.02], seed=1, **kind).answers, "pooled")
    assert (table["flags"] == "").all()


@pytest.mark.parametrize("seed", [1, 2])
def test_d32_workers_who_swap_labels_are_inverted(seed: int) -> None:
    kind = {"tasks": 400, "workers": 20, "classes": 2, "per_task": 6, "spammers": 0, "accuracy": 0.8}
    frame = cw.simulate.crowd("hammer-spammer", seed=seed, **kind).answers.frame()
    table = rated(turned(frame, "w03", pl.col("label").replace({"c1": "c2", "c2": "c1"})), "pooled")
    row = of(table, "w03")
    assert row["flags"] == "inverted"
    skill, low, high = (f"{100 * row[name]:.0f}" for name in ("skill", "low", "high"))
    assert row["reasons"].startswith(f"{skill} % correct (95 % interval {low} to {high} %), while ")
    assert row["reasons"].endswith(" % correct: the labels may be swapped")
    assert table.filter(pl.col("flags") != "").height == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_d32_copies_name_each_other(seed: int) -> None:
    frame = honest(3, 400, seed)
    own = frame.filter(worker="w03")
    table = rated(pl.concat([frame, own.with_columns(worker=pl.lit("twin"))]), "pooled")
    for worker, other in (("w03", "twin"), ("twin", "w03")):
        assert of(table, worker)["flags"] == "copies"
        same = f"{own.height} of {own.height} answers are the same as those of {other}, "
        assert of(table, worker)["reasons"].startswith(same)
    assert table.filter(pl.col("flags") != "").height == 2


def test_good_workers_who_agree_do_not_copy() -> None:
    for accuracy in (0.8, 0.95, 0.99):
        kind = {"tasks": 300, "workers": 20, "classes": 3, "per_task": 8, "spammers": 0, "accuracy": accuracy}
        table = rated(cw.simulate.crowd("hammer-spammer", seed=2, **kind).answers, "pooled")
        assert (table["flags"] == "").all()


def nearly_copied(name: str) -> pl.DataFrame:
    """With a worker who copies the answers of w03, except for about one in sixteen."""
    frame, rng = honest(3, 300, 1, workers=12), np.random.default_rng(0)
    own = frame.filter(worker="w03")
    other = pl.Series(np.where(rng.random(own.height) > 0.94, rng.choice(["c1", "c2", "c3"], own.height), own["label"]))
    return pl.concat([frame, own.with_columns(worker=pl.lit(name), label=other)])


def test_d16_d32_copies_are_found_in_either_order_of_names() -> None:
    copied = [
        set(rated(nearly_copied(name), "pooled").filter(pl.col("flags").str.contains("copies"))["worker"])
        for name in ("aa", "zz")
    ]
    assert copied[0] - {"aa"} == copied[1] - {"zz"}
    assert ("aa" in copied[0]) == ("zz" in copied[1])


def test_d16_a_pair_weighs_the_same_from_both_sides() -> None:
    result = cw.aggregate(nearly_copied("zz"))
    one, two = (result.answers.worker_number(name) for name in ("w03", "zz"))
    lists = _Lists(pieces_of(result.answers, result.posterior))
    assert np.allclose(lists.compare(one, two), lists.compare(two, one))
    assert lists.compare(one, two)[0] == result.answers.answers_per_worker[one] > 50


def test_reasons_can_be_taken_apart_whatever_the_names() -> None:
    frame = turned(honest(), "w03", pl.lit("c1")).with_columns(pl.col("label").replace({"c1": "a; b"}))
    row = of(rated(frame, "dawid-skene"), "w03")
    assert len(row["reasons"].split("; ")) == len(row["flags"].split("; ")) == 2


def test_long_names_are_cut_in_reasons() -> None:
    frame = honest()
    twin = frame.filter(worker="w03").with_columns(worker=pl.lit("x" * 5000))
    reasons = of(rated(pl.concat([frame, twin]), "pooled"), "w03")["reasons"]
    assert "x" * 40 + "..." in reasons
    assert len(reasons) < 300


# ------------------------------------------------------------------------------------------------ answering at random


def test_the_mix_of_classes_of_few_answers_is_drawn_to_the_crowds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance accuracy of a worker: the worker's shares of labels times the shares of true classes in the worker's
    tasks, the latter shrunk to the crowd's shares with the weight of ten answers."""
    # worker 0 gives label 0 twice, worker 1 both labels once, worker 2 label 1 ninety times, worker 3 nothing
    rows = WorkerRows(2, *(np.array(column) for column in ([0, 1, 1, 2], [0, 0, 1, 1], [0, 1, 3, 4, 4], [2, 1, 1, 90])))
    totals, prevalence = np.array([[1.5, 0.5], [2.0, 0.0], [9.0, 81.0], [0.0, 0.0]]), np.array([0.2, 0.8])
    expected = [
        (1.5 + 10 * 0.2) / 12,  # not (1.5 + 0.2) / 3
        0.5 * (2.0 + 10 * 0.2) / 12 + 0.5 * (0.0 + 10 * 0.8) / 12,
        (81.0 + 10 * 0.8) / 100,
        0.0,
    ]
    assert np.allclose(workers._at_random(rows, totals, prevalence), expected, rtol=1e-12)
    assert np.allclose(expected, [0.29166667, 0.5, 0.89, 0.0])
    monkeypatch.setattr(workers, "CLASS_PRIOR_ANSWERS", 1.0)
    assert np.allclose(workers._at_random(rows, totals, prevalence), [1.7 / 3, 0.5, 81.8 / 91, 0.0])


def test_a_reason_names_what_answering_at_random_gives() -> None:
    """A worker gives c2 on two of three tasks that all seem to be c1: by hand from labels, posterior and shares."""
    frame = honest(2, 600).sort("task", "worker")
    seem_c1 = frame.group_by("task").agg(pl.col("label").mode().sort().first()).filter(label="c1")["task"]
    some = frame.filter((pl.col("worker") == "w03") & pl.col("task").is_in(seem_c1.implode()))["task"].head(60)
    frame = frame.filter((pl.col("worker") != "w03") | pl.col("task").is_in(some.implode()))
    said = pl.when(pl.col("task").is_in(some.gather_every(3).implode())).then(pl.lit("c1")).otherwise(pl.lit("c2"))
    result = cw.aggregate(turned(frame, "w03", said), "one-coin", run=DOUBLE)
    seem = result.posterior[[result.answers.task_number(task) for task in some]].sum(0)
    given = np.array([1, 2]) / 3
    chance = given @ (seem + 10 * result.prevalence) / 70
    assert f"while random answers would be {100 * chance:.0f} % correct" in of(result.workers, "w03")["reasons"]
    assert f"{chance:.0%}" != f"{given @ seem / 60:.0%}", "the crowd's mix counts"


# ------------------------------------------------------------------------------------------------------------- habits


def test_agreement_is_the_share_of_equal_answers(crowd: cw.simulate.Crowd) -> None:
    frame = crowd.answers.frame().filter(pl.int_range(pl.len()) % 5 > 0)
    table = rated(frame, "one-coin")
    rows = frame.rows()
    for worker, shown in table.select("worker", "agreement").rows():
        shares = []
        for task, _, label in (r for r in rows if r[1] == worker):
            others = [said for i, j, said in rows if i == task and j != worker]
            shares += [others.count(label) / len(others)] if others else []
        assert np.isclose(shown, np.mean(shares))


def overused_by_hand(result: cw.LabelsResult, worker: str) -> tuple[Any, float | None]:
    frame, best = result.answers.frame().filter(worker=worker), (-np.inf, None, None)
    seen = result.posterior[[result.answers.task_number(task) for task in frame["task"]]].sum(0)
    for k, label in enumerate(result.classes):
        said, n = (frame["label"] == label).sum(), frame.height
        share = min(seen[k] / n, 1)
        z = (said - seen[k]) / np.sqrt(n * share * (1 - share) + 1)
        if said and z > best[0]:
            best = (z, label, (said - seen[k]) / n)
    return best[1:] if best[0] > 3 and best[2] > 0.05 else (None, None)


def test_overused_labels_stand_out() -> None:
    frame = turned(honest(4), "w05", pl.lit("c2"))
    frame = turned(frame, "w07", pl.when(pl.col("task").hash(1) % 3 == 0).then(pl.lit("c4")).otherwise(pl.col("label")))
    result = cw.aggregate(frame, run=DOUBLE)
    for worker, label, excess in result.workers.select("worker", "overuses", "overuse").rows():
        expected, by = overused_by_hand(result, worker)
        assert label == expected
        assert excess is by is None or np.isclose(excess, by)
    assert [of(result.workers, w)["overuses"] for w in ("w01", "w05", "w07")] == [None, "c2", "c4"]


def test_ranks_follow_the_lower_end(crowd: cw.simulate.Crowd) -> None:
    frame = crowd.answers.frame()
    alone = pl.DataFrame({"task": ["own"], "worker": ["zz"], "label": ["c1"]})
    table = rated(pl.concat([frame, alone]), "pooled")
    assert table.filter(pl.col("rank").is_null())["worker"].to_list() == ["zz"]
    ranked = table.drop_nulls("rank").sort("rank")
    assert ranked["rank"].to_list() == list(range(1, 16))
    assert ranked["low"].is_sorted(descending=True)


# ------------------------------------------------------------------------------------------- order, names, edges, size


@pytest.mark.parametrize("seed", range(2))
def test_d15_the_order_of_rows_does_not_matter(seed: int) -> None:
    frame = small(seconds=np.arange(60.0), is_check=np.arange(60) % 2 == 0).frame()
    order = np.random.default_rng(seed).permutation(60)
    one, two = (rated(cw.Labels(rows, gold=GOLD), "pooled") for rows in (frame, frame[order]))
    assert one.equals(two)


@pytest.mark.parametrize("model", ["pooled", "one-coin", "majority-vote"])
def test_d16_renaming_permutes_the_table(model: str) -> None:
    rng = np.random.default_rng(4)
    frame = guessed(turned(honest(3, 400), "w05", pl.lit("c2")), "w03").with_columns(seconds=rng.gamma(3, 4, 2400))
    gold = dict(frame.select("task", "label").unique("task").sort("task").head(60).rows())
    names = {
        c: dict(zip(v := frame[c].unique().sort(), rng.permutation(len(v)).tolist(), strict=True))
        for c in frame.columns[:3]
    }
    renamed = frame.with_columns(pl.col(c).replace_strict(names[c]) for c in names)
    new_gold = {names["task"][task]: names["label"][label] for task, label in gold.items()}
    old = cw.aggregate(cw.Labels(frame, gold=gold), model, run=DOUBLE).workers
    new = cw.aggregate(cw.Labels(renamed, gold=new_gold), model, run=DOUBLE).workers
    new = new[[names["worker"][worker] for worker in old["worker"]]]
    assert np.allclose(old.select(NUMBERS).to_numpy(), new.select(NUMBERS).to_numpy(), atol=1e-6, equal_nan=True)
    assert old.select("answers", "status", "checks", "flags").equals(new.select("answers", "status", "checks", "flags"))
    assert [names["label"].get(label) for label in old["overuses"]] == new["overuses"].to_list()
    assert (old["flags"] != "").sum() >= 1


def test_d6_one_worker_is_not_rated() -> None:
    table = rated({"task": [1, 2, 3], "worker": ["w"] * 3, "label": ["x", "y", "x"]}, "pooled")
    row = table.row(0, named=True)
    assert row["status"] == "not identifiable"
    nothing = ("skill", "low", "high", "rank", "agreement", "check_score", "seconds", "overuses", "overuse")
    assert {row[name] for name in nothing} == {None}
    assert (row["answers"], row["flags"], row["reasons"]) == (3, "", "")


def test_d6_one_worker_with_checks_is_rated() -> None:
    answers = cw.Labels([1, 2, 3], ["w"] * 3, ["x", "y", "x"], gold={1: "x", 2: "x"})
    row = rated(answers, "pooled").row(0, named=True)
    assert (row["status"], row["rank"], row["checks"], row["check_score"]) == ("ok", 1, 2, 0.5)
    assert row["low"] < row["skill"] < row["high"]


@pytest.mark.parametrize("model", cw.models("labels")["name"].to_list())
def test_d7_one_class_is_rated_without_flags(model: str) -> None:
    table = rated({"task": np.repeat(np.arange(20), 3), "worker": [1, 2, 3] * 20, "label": ["x"] * 60}, model)
    assert table["spam_score"].null_count() == table["spam_distance"].null_count() == 3
    assert table["overuses"].null_count() == 3
    assert table["agreement"].to_list() == [1.0] * 3
    assert table["flags"].to_list() == [""] * 3


@pytest.mark.parametrize("model", ["pooled", "one-coin", "majority-vote"])
def test_workers_who_share_no_task_are_not_rated(model: str, crowd: cw.simulate.Crowd) -> None:
    own = {"task": [f"own{n}" for n in range(30)], "worker": ["alone"] * 30, "label": ["c1"] * 30}
    table = rated(pl.concat([crowd.answers.frame(), pl.DataFrame(own)]), model)
    row = of(table, "alone")
    assert row["status"] == "not identifiable"
    assert {row[name] for name in ("skill", "low", "high", "rank", "agreement")} == {None}
    assert row["flags"] == ""
    assert table["rank"].null_count() == 1


@st.composite
def tables(draw: Any) -> pl.DataFrame:
    pairs = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), min_size=1, max_size=40, unique=True))
    labels = draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    taken = draw(st.lists(st.floats(-1, 100), min_size=len(pairs), max_size=len(pairs)))
    columns = {"task": [i for i, _ in pairs], "worker": [j for _, j in pairs], "label": labels, "seconds": taken}
    return pl.DataFrame(columns)


@given(tables(), st.sampled_from(cw.models("labels")["name"].to_list()))
def test_ratings_are_null_or_numbers_within_bounds(frame: pl.DataFrame, model: str) -> None:
    table = rated(frame, model)
    for name in NUMBERS:
        values = table[name].drop_nulls()
        assert values.is_finite().all(), name
        assert name in ("seconds", "spam_distance") or values.is_between(0, 1 + 1e-9).all(), name
    assert (table["seconds"].drop_nulls() > 0).all()
    assert ((table["flags"] == "") == (table["reasons"] == "")).all()


def test_other_answers_than_those_of_the_result_are_refused(crowd: cw.simulate.Crowd) -> None:
    result, frame = cw.aggregate(crowd.answers), crowd.answers.frame()
    said = r"these answers \(Labels\(.*\)\) are not those of the result \(Labels\(720 answers, 120 tasks, 15 workers, 3"
    fewer = frame.head(700)
    changed = frame.with_columns(label=pl.col("label").replace({"c1": "c2", "c2": "c1"}))
    renamed = frame.with_columns(worker=pl.col("worker") + "!")
    for other in (fewer, changed, renamed):
        with pytest.raises(cw.errors.DataError, match=said):
            cw.rate(result, cw.Labels(other))


def test_the_same_answers_can_bring_other_gold_times_and_marks(crowd: cw.simulate.Crowd) -> None:
    result, frame = cw.aggregate(crowd.answers), crowd.answers.frame()
    further = frame.with_columns(seconds=pl.lit(4.0), is_check=pl.col("task") < "t020")
    table = cw.rate(result, cw.Labels(further, gold=dict(crowd.truth.rows())))
    expected = frame.filter(pl.col("task") < "t020").group_by("worker").len().sort("worker")
    assert table["checks"].to_list() == expected["len"].to_list()
    assert set(table["seconds"]) == {4.0}
    assert table.select("skill", "spam_score").equals(result.workers.select("skill", "spam_score"))


def test_d21_many_workers_with_one_answer_are_rated_without_a_table_of_pairs() -> None:
    W, rng = 10_000, np.random.default_rng(0)
    task = np.repeat(np.arange(W // 5), 5)
    label = np.where(rng.random(W) < 0.8, task % 3, rng.integers(0, 3, W))
    result = cw.aggregate(cw.Labels(task, np.arange(W), label))
    tracemalloc.start()
    try:
        table = result.workers
        assert tracemalloc.get_traced_memory()[1] < W**2 / 2  # not even a byte for each pair of workers
    finally:
        tracemalloc.stop()
    assert (table["flags"] == "").all()
    assert table["skill"].is_between(0.5, 0.95).all()
    assert (table["high"] - table["low"] > 0.4).all()


@pytest.mark.parametrize("ids", [[7, 2**60, -3], ["007", "7", "é"]])
def test_d12_d13_ids_come_back_as_they_went_in(ids: list[Any]) -> None:
    frame = {"task": np.repeat(np.arange(12), 3), "worker": ids * 12, "label": [5, 5, 9, 9, 5, 9] * 6}
    table = rated(frame, "one-coin")
    assert sorted(table["worker"]) == sorted(ids)
    assert table.schema["worker"] == (pl.Int64 if isinstance(ids[0], int) else pl.String)
    assert table.schema["overuses"] == pl.Int64


def test_a_saved_result_rates_the_same(tmp_path: Any, crowd: cw.simulate.Crowd) -> None:
    frame = crowd.answers.frame().with_columns(seconds=pl.lit(2.0))
    result = cw.aggregate(cw.Labels(frame, gold=dict(crowd.truth.head(9).rows())))
    assert cw.load(result.save(tmp_path / "saved")).workers.equals(result.workers)


# ------------------------------------------------------------------------------------------------ times and checks


def carrying(**columns: list[object]) -> cw.Labels:
    return cw.Labels({"task": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": ["x", "x", "y", "x"], **columns})


def test_the_limit_of_times_separates_workers_who_are_too_fast() -> None:
    frame = honest(3, 200, 1).with_columns(seconds=pl.lit(6.0) + pl.int_range(pl.len()) % 5)
    frame = frame.with_columns(seconds=pl.when(pl.col("worker") == "w03").then(0.4).otherwise(pl.col("seconds")))
    found = times([cw.Labels(frame)])
    assert found.too_fast.sum() == 1
    assert np.array_equal(found.median < found.limit, found.too_fast)
    assert found.limit == pytest.approx(found.typical / 3)  # the crowd hardly varies
    assert np.isnan(times([carrying(seconds=[1, 2, 3, 4])]).limit)


def test_times_as_mechanical_turk_writes_them_are_read() -> None:
    began = ["Mon Nov 16 01:52:15 PST 2026"] * 4
    ended = [f"Mon Nov 16 01:52:{15 + s} PST 2026" for s in (4, 6, 8, 10)]
    workers = cw.aggregate(carrying(AcceptTime=began, SubmitTime=ended)).workers
    assert workers["seconds"].to_list() == [6.0, 8.0]


@pytest.mark.parametrize("values", [["soon"] * 4, [[1], [2], [3], [4]], [{"s": 1}] * 4, [b"1"] * 4])
def test_d27_times_that_cannot_be_read_are_null_and_warned_of(values: list[object]) -> None:
    result = cw.aggregate(carrying(seconds=values))
    assert result.workers["seconds"].null_count() == 2
    assert any(text.startswith("the columns of times contain no readable time") for text in result.warnings)


def test_marks_without_truth_are_warned_of() -> None:
    result = cw.aggregate(carrying(is_check=["yes", "yes", "no", "no"]))
    assert result.workers["checks"].to_list() == [0, 0]
    assert any("marked as attention checks" in text for text in result.warnings)
    assert not any("marked" in text for text in cw.aggregate(carrying(is_check=[[1]] * 4)).warnings)


def test_what_a_workers_tasks_seem_to_be_adds_up_in_parts() -> None:
    result = cw.aggregate(honest(3, 60, 1))
    (whole,) = pieces_of(result.answers, result.posterior)
    task, worker, _ = result.answers.codes()
    double = np.zeros((result.answers.n_workers, 3))
    np.add.at(double, worker, result.posterior[task])
    assert np.allclose(habits.expected_class_counts(whole), double)
    pieces = pieces_of(result.answers, result.posterior, 7)
    assert np.allclose(sum(map(habits.expected_class_counts, pieces)), double)


def test_one_label_is_no_flag_for_workers_who_pass_the_checks() -> None:
    frame = turned(honest(2, 400, 1), "w03", pl.lit("c1"))
    mine = frame.filter(worker="w03")["task"].to_list()
    plain = cw.aggregate(frame)
    assert "one label" in of(plain.workers, "w03")["flags"]
    passed = cw.rate(plain, cw.Labels(frame, gold=dict.fromkeys(mine[:30], "c1")))
    assert of(passed, "w03")["check_low"] > 0.75
    assert "one label" not in of(passed, "w03")["flags"]


# ------------------------------------------------------------------------------------------------------------- pieces


def equal_tables(one: pl.DataFrame, two: pl.DataFrame) -> None:
    """The same rows; numbers to 1e-12."""
    assert one.schema == two.schema
    for name in one.columns:
        if one.schema[name].is_float():
            assert one[name].is_null().equals(two[name].is_null()), name
            assert np.allclose(one[name].fill_null(0), two[name].fill_null(0), rtol=0, atol=1e-12), name
        else:
            assert one[name].equals(two[name]), name


@pytest.fixture(scope="module")
def varied() -> cw.Labels:
    """A crowd with gold, checks and times: one worker guesses, one always gives c2, one is too fast, one copies."""
    rng = np.random.default_rng(6)
    frame = guessed(turned(honest(3, 400), "w05", pl.lit("c2")), "w07")
    copied = frame.filter(worker="w03").with_columns(worker=pl.lit("twin"))
    alone = pl.DataFrame({"task": ["own"], "worker": ["zz"], "label": ["c1"]})
    frame = pl.concat([frame, copied, alone])
    quick = pl.when(pl.col("worker") == "w09").then(0.1).otherwise(1.0)
    frame = frame.with_columns(seconds=pl.Series(rng.gamma(5, 3, frame.height)) * quick)
    frame = frame.with_columns(is_check=pl.Series(rng.random(frame.height) < 0.7))
    gold = dict(frame.filter(worker="w01").select("task", "label").head(40).rows())
    return cw.Labels(frame, gold=gold)


@pytest.mark.parametrize("model", ["pooled", "one-coin", "majority-vote"])
def test_ratings_do_not_depend_on_pieces(model: str, varied: cw.Labels) -> None:
    result = cw.aggregate(varied, model, run=DOUBLE)
    whole = cw.rate(result, pieces=1)
    assert whole.equals(result.workers)
    flags = {flag for flags in whole["flags"] for flag in flags.split("; ")}
    assert {"", "at chance", "one label", "copies", "too fast"} <= flags
    assert whole["checks"].sum() > 100
    assert whole["seconds"].null_count() == 0
    for pieces in (7, 64):
        equal_tables(cw.rate(result, pieces=pieces), whole)


def test_more_pieces_than_tasks_rate_the_same() -> None:
    answers = small(seconds=np.arange(60.0), is_check=np.arange(60) % 2 == 0, gold=GOLD)
    result = cw.aggregate(answers, "one-coin", run=DOUBLE)
    equal_tables(cw.rate(result, pieces=64), result.workers)


@pytest.mark.parametrize("pieces", [0, -3, 2.5, "3", None])
def test_invalid_pieces_are_refused(pieces: Any, crowd: cw.simulate.Crowd) -> None:
    said = f"pieces is {pieces!r}; it must be a whole number of at least 1"
    with pytest.raises(cw.errors.ParameterError, match=said):
        cw.rate(cw.aggregate(crowd.answers, "majority-vote"), pieces=pieces)


def test_answers_that_are_not_fitted_are_not_rated(crowd: cw.simulate.Crowd) -> None:
    with pytest.raises(cw.errors.DataError, match=r"rate takes a result of labels; got Labels\. Fit the answers first"):
        cw.rate(crowd.answers)


def test_odds_of_copying_against_hand_computed_values() -> None:
    """Two workers both give b on four of nine tasks where all others give a: each answer counts once."""
    label = ["a"] * 18 + (["b"] * 4 + ["a"] * 5) * 2
    answers = cw.Labels(np.tile(np.arange(9), 4), np.repeat(["w1", "w2", "x", "y"], 9), label)
    q = np.array([0.8] * 4 + [0.97] * 5)  # of a
    lists = _Lists(pieces_of(answers, np.column_stack([q, 1 - q])))
    alone = np.array([4 / 9] * 4 + [0.97] * 5)  # what they always say, or what the task seems to be
    assert lists.compare(2, 3) == (9, 9, pytest.approx(np.log(COPY_RATE / alone).sum()))
    differ = [np.log((1 - COPY_RATE) / (1 - each)) for each in (COPY_RATE, 4 / 9)]  # w1 never says anything but a
    assert lists.compare(0, 2) == (9, 5, pytest.approx(4 * np.mean(differ)))
