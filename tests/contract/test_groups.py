"""Groups of workers with similar errors: the model on simulated crowds, and the simulation itself."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.labels import groups as model_of_groups
from crowdwise.learn import Network
from crowdwise.reproduce.study import MeasurementCache, mean

pytestmark = pytest.mark.filterwarnings("error")
DOUBLE = cw.Run(precision="double", threads=1)


# ------------------------------------------------------------------------------------------------------------ groups

KINDS = {"tasks": 400, "workers": 40, "classes": 3, "per_task": 6}


@pytest.fixture(scope="module")
def third() -> tuple[cw.simulate.Crowd, cw.LabelsResult]:
    sim = cw.simulate.crowd("groups", **KINDS, seed=3)
    return sim, cw.aggregate(sim.answers, "groups")


@pytest.mark.parametrize("seed", range(3))
def test_groups_and_their_number_are_found(seed: int) -> None:
    sim = cw.simulate.crowd("groups", **KINDS, seed=seed)
    result = cw.aggregate(sim.answers, "groups", run=cw.Run(seed=seed))
    assert cw.rand_index(result, sim.workers) == 1.0
    true, table = dict(sim.workers.select("worker", "group").rows()), result.groups
    assert table.columns == ["group", "share", "workers", "similarity", "entropy"]
    assert table["group"].to_list() == [1, 2, 3]
    assert table["workers"].is_sorted(descending=True)
    assert np.isclose(table["share"].sum(), 1)
    assert np.isclose(table["workers"].sum(), 40)
    for worker, group, probability in result.members.rows():
        kind = sim.confusions[sim.workers["worker"].to_list().index(worker)]
        shown = result.group_confusion(group)
        assert shown.columns == ["truth", "c1", "c2", "c3"]
        assert np.abs(shown.select("c1", "c2", "c3").to_numpy() - kind).max() < 0.1, true[worker]
        assert probability > 0.9
    assert cw.divergence(result, confusions=sim.confusions).individual < 0.005


def test_the_number_of_groups_has_the_highest_bound() -> None:
    """groups=None chooses the number of groups with the highest bound."""
    for shares, count in (((1.0,), 1), ((0.6, 0.4), 2)):
        answers = cw.simulate.crowd("groups", **KINDS, shares=shares, seed=4).answers
        free = cw.aggregate(answers, "groups", run=DOUBLE)
        bounds = {}
        for M in range(1, 5):
            fixed = cw.aggregate(answers, "groups", groups=M, run=DOUBLE)
            assert fixed.groups.height == M
            bounds[M] = fixed.trace["objective"][-1]
        assert free.groups.height == count == max(bounds, key=lambda M: bounds[M])
        assert np.isclose(free.trace["objective"][-1], bounds[count])


def test_all_workers_find_their_group_by_the_busiest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are parted by some of them: groups of the others follow."""
    monkeypatch.setattr(model_of_groups, "MAX_SAMPLE_WORKERS", 15)
    sim = cw.simulate.crowd("groups", **KINDS, load="skewed", seed=1)
    layout = sim.answers.layout.rows
    some = model_of_groups._most_active(layout, 15)
    busy = sim.answers.answers_per_worker
    assert busy[some].min() >= np.delete(busy, some).max()
    few, rows = model_of_groups._of_workers(layout, some)
    assert few.n_workers == 15
    owners = [(some[j], label) for j, label in zip(few.row_worker, few.row_label, strict=True)]
    assert owners == [(layout.row_worker[r], layout.row_label[r]) for r in rows]
    assert sorted(rows) == np.flatnonzero(np.isin(layout.row_worker, some)).tolist()
    assert cw.rand_index(cw.aggregate(sim.answers, "groups"), sim.workers) == 1.0
    assert cw.aggregate(sim.answers, "groups", groups=17, max_iter=2).groups.height == 17


def test_a_workers_matrix_is_the_mixture_of_their_groups() -> None:
    sim = cw.simulate.triangle(60, tasks=150, fresh=0, seed=1)
    result = cw.aggregate(sim.answers, "groups", groups=3)
    found = result.grouping
    assert (found.member.max(1) < 0.9).any(), "someone is between groups"
    for j, worker in enumerate(sim.answers.workers):
        mixed = sum(found.member[j, m] * found.matrices[m] for m in range(3))
        assert np.allclose(result.confusion(worker).select("c1", "c2", "c3").to_numpy(), mixed)
    crowd = np.einsum("m,mkl->kl", found.share, found.matrices)
    assert np.allclose(result.confusion().select("c1", "c2", "c3").to_numpy(), crowd)


def slow_assign(prior: Any, found: Any, before: Any, codes: Any, shared: bool) -> tuple[Any, Any]:
    """Group posteriors of answers (N, M) and of workers (W, M), answer by answer (the paper's Sec. 3.4).

    If answers share a truth, the other answers to the task are evidence about it.
    """
    said = list(zip(*(code.tolist() for code in codes), strict=True))
    of_answer, of_worker = [], before.copy()
    for n, (i, j, label) in enumerate(said):
        p = prior[i].copy()
        for other, (task, who, word) in enumerate(said):
            if shared and task == i and other != n:
                p *= sum(before[who, m] * found.matrices[m][:, word] for m in range(len(found.share)))
        chance = np.array([(p / p.sum()) @ matrix[:, label] for matrix in found.matrices])
        of_answer.append(before[j] * chance)
        of_worker[j] *= chance
    of_answer = np.array(of_answer)
    return of_answer / of_answer.sum(1, keepdims=True), of_worker / of_worker.sum(1, keepdims=True)


def held_to_slow(given: Any, answers: cw.Labels, slow: tuple[Any, Any]) -> None:
    for table, wanted in ((given.answers, slow[0]), (given.workers, slow[1])):
        assert table["group"].to_list() == (wanted.argmax(1) + 1).tolist()
        assert np.allclose(table["probability"], wanted.max(1), atol=1e-9)
    assert given.workers["worker"].to_list() == answers.workers.to_list()
    assert given.answers.select("task", "worker", "label").equals(answers.frame().select("task", "worker", "label"))


def before_of(result: cw.LabelsResult, answers: cw.Labels) -> Any:
    place = {worker: j for j, worker in enumerate(result.answers.workers)}
    found = result.grouping
    return np.array([found.member[place[w]] if w in place else found.share for w in answers.workers])


def test_new_answers_are_put_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = cw.simulate.crowd("groups", **KINDS, seed=3)
    frame = sim.answers.frame()
    known = cw.Labels(frame.filter(pl.col("worker") > "w10"))
    result = cw.aggregate(known, "groups", groups=3)
    new = cw.Labels(frame.filter(pl.col("task") <= "t060"))  # ten workers are new, thirty not
    prior = np.tile(result.model.class_prior(result.params, 3), (60, 1))
    slow = slow_assign(prior, result.grouping, before_of(result, new), new.codes(), shared=True)
    held_to_slow(result.assign(new), new, slow)
    monkeypatch.setattr("crowdwise.result.groups.CHUNK_CELLS", 100)  # a few answers at a time
    held_to_slow(result.assign(new), new, slow)
    found = dict(result.assign(sim.answers).workers.select("worker", "group").rows())
    true = dict(sim.workers.select("worker", "group").rows())
    kinds = dict(zip(result.members["group"], (true[w] for w in result.members["worker"]), strict=True))
    assert {w: kinds[g] for w, g in found.items() if w <= "w10"} == {w: true[w] for w in true if w <= "w10"}


def test_what_is_known_of_tasks_counts_and_labels_not_met_do_not(third: Any) -> None:
    sim, result = third
    frame = sim.answers.frame().head(60)
    strangers = frame.with_columns(worker="new " + pl.col("worker"))
    new = cw.Labels(strangers, gold=sim.truth)
    prior = np.eye(3)[np.searchsorted(["c1", "c2", "c3"], sim.truth["label"].to_numpy()[: new.n_tasks])]
    slow = slow_assign(prior, result.grouping, before_of(result, new), new.codes(), shared=True)
    held_to_slow(result.assign(new), new, slow)
    strange = pl.DataFrame({"task": ["t001", "x"], "worker": ["new", "new"], "label": ["c9", "c8"]})
    more = result.assign(pl.concat([frame.select("task", "worker", "label"), strange]))
    alone = result.assign(frame)
    assert (more.ignored_answers, alone.ignored_answers) == (2, 0)
    assert more.answers.equals(alone.answers)
    of_new = more.workers.filter(pl.col("worker") == "new")
    assert np.isclose(of_new["probability"].item(), result.grouping.share.max(), rtol=1e-12), (
        "nothing is known of who said nothing known"
    )


def test_a_prior_that_does_not_fit_the_tasks_is_refused(third: Any) -> None:
    _, result = third
    new = {"task": [1, 2], "worker": ["a", "a"], "label": ["c1", "c2"]}
    for shape in ((1, 3), (2, 2), (5, 3)):
        with pytest.raises(cw.errors.ParameterError, match=r"prior .*\(2, 3\)"):
            result.assign(new, prior=np.full(shape, 1 / shape[1]))


def test_weights_of_new_answers_are_refused(third: Any) -> None:
    _, result = third
    new = {"task": [1, 2], "worker": ["a", "a"], "label": ["c1", "c2"], "weight": [1.0, 2.0]}
    with pytest.raises(cw.errors.DataError, match=r"weights .*groups does not use"):
        result.assign(new)


def test_one_matrix_for_all_needs_no_ids(kernels: Any) -> None:
    sim = cw.simulate.triangle(50, tasks=200, fresh=0, seed=6)
    frame = sim.answers.frame()
    everyone = frame.with_columns(worker=pl.int_range(pl.len()))
    nobody = frame.with_columns(worker=pl.lit("x"))
    tables = [cw.Labels(each, duplicates="each") for each in (frame, everyone, nobody)]
    tables.append(cw.Labels(frame.select("task", "label"), anonymous="each"))
    found = [cw.aggregate(each, "tied", max_iter=30, tol=0.0, run=DOUBLE) for each in tables]
    assert all(np.allclose(found[0].posterior, each.posterior, atol=1e-9) for each in found)
    assert all(found[0].labels["label"].equals(each.labels["label"]) for each in found)
    one = cw.aggregate(sim.answers, "groups", groups=1, max_iter=30, tol=0.0, run=DOUBLE)
    assert np.array_equal(one.posterior, found[0].posterior)
    assert found[0].matrices(np.array([0])) is None, "it tells no workers apart"
    with pytest.raises(cw.errors.ParameterError, match="tied: groups is 2; it must be a whole number from 1 to 1"):
        cw.model("tied", groups=2)


def test_memory_does_not_grow_with_workers_times_classes_squared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_of_groups, "MAX_START_STEPS", 2)
    monkeypatch.setattr(model_of_groups, "STARTS", 1)
    rng, W, K = np.random.default_rng(0), 4000, 150
    answers = cw.Labels(np.arange(8000) % 2000, np.arange(8000) % W, rng.integers(0, K, 8000), duplicates="each")
    assert 8 * answers.n_workers * K**2 > 700e6
    for name, settings in (("groups", {"groups": 2}), ("tied", {})):
        cw.aggregate(answers, name, max_iter=1, **settings)  # what is loaded once
        tracemalloc.start()
        try:
            cw.aggregate(answers, name, max_iter=2, **settings)
            assert tracemalloc.get_traced_memory()[1] < 200e6, name
        finally:
            tracemalloc.stop()


# ------------------------------------------------------------------------------------------------------------- edges


def test_more_groups_than_workers_are_refused() -> None:
    answers = cw.Labels([1, 1, 2, 2], ["a", "b"] * 2, ["x", "x", "y", "x"])
    with pytest.raises(cw.errors.DataError, match=r"groups is 3, but there are 2 workers\. Give at most 2, or None"):
        cw.aggregate(answers, "groups", groups=3)
    assert cw.aggregate(answers, "groups", groups=2).groups.height == 2
    with pytest.raises(cw.errors.ParameterError, match=r"pooled has no groups of workers\. Fit the model 'groups'"):
        _ = cw.aggregate(answers, "pooled").groups
    with pytest.raises(cw.errors.ParameterError, match="no group 3; groups are numbered from 1 to 2"):
        cw.aggregate(answers, "groups", groups=2).group_confusion(3)


def sound(result: cw.LabelsResult) -> None:
    found, objective = result.grouping, result.trace["objective"].to_numpy()
    assert np.isfinite(objective).all()
    assert np.diff(objective).min(initial=0) >= -1e-9 * abs(objective[-1])
    assert np.allclose(result.posterior.sum(1), 1, atol=1e-6)
    assert np.allclose(found.member.sum(1), 1)
    assert np.allclose(found.matrices.sum(2), 1)
    assert np.isclose(found.share.sum(), 1)
    assert np.isfinite(result.groups.select("similarity", "entropy").to_numpy()).all()


def test_a_group_that_dies_leaves_sound_numbers(kernels: Any) -> None:
    """Six groups requested for workers who are all alike."""
    sim = cw.simulate.crowd("groups", tasks=150, workers=20, classes=3, shares=(1.0,), seed=0)
    result = cw.aggregate(sim.answers, "groups", groups=6, run=DOUBLE)
    sound(result)
    assert result.groups.height == 6
    assert result.groups["workers"][-1] < 0.5
    assert (result.labels["label"] == sim.truth["label"]).mean() > 0.95


@pytest.mark.parametrize("groups", [None, 1, 2])
def test_one_class_one_worker_one_answer(groups: int | None, kernels: Any) -> None:
    for answers in (
        cw.Labels(np.repeat(np.arange(9), 2), ["a", "b"] * 9, ["x"] * 18),
        cw.Labels(np.arange(6), ["a"] * 6, list("xyxyxy")),
        cw.Labels([1], ["a"], ["x"]),
    ):
        if groups is None or groups <= answers.n_workers:
            result = cw.aggregate(answers, "groups", groups=groups, run=DOUBLE)
            sound(result)
            assert result.groups.height == (groups or 1), "nothing asks for more"
            assert result.labels["label"].to_list() == cw.aggregate(answers, "majority-vote").labels["label"].to_list()


def test_labels_that_some_tasks_lack_and_tasks_without_answers() -> None:
    """Only three tasks have label c3; two tasks have no answers, one of them with a known label."""
    sim = cw.simulate.crowd("groups", tasks=80, workers=12, classes=2, per_task=5, seed=1)
    rare = pl.DataFrame({"task": ["t01", "t02", "t03"], "worker": ["w01"] * 3, "label": ["c3"] * 3})
    frame = pl.concat([sim.answers.frame().select("task", "worker", "label"), rare])
    answers = cw.Labels(frame, gold={"t04": "c3"}, duplicates="each")
    for name in ("groups", "tied"):
        result = cw.aggregate(answers, name, run=DOUBLE)
        sound(result)
        assert result.labels.filter(pl.col("task") == "t04")["label"].item() == "c3"
        predicted = result.predict({"task": ["new", "none"], "worker": ["w02", "w03"], "label": ["c1", "never"]})
        assert predicted.labels["status"].to_list()[1] == "no answers"
        assert np.allclose(predicted.posterior.sum(1), 1)


# -------------------------------------------------------------------------------------------------------- simulated


def test_levels_are_drawn_and_labels_follow_their_matrix() -> None:
    truth, shares = np.arange(6000) % 3, np.array(cw.simulate.SHARES)
    sim = cw.simulate.levels(truth, workers=400, per_task=5, fresh=1000, seed=1)
    tasks = sim.truth["task"].to_list()
    drawn = sim.workers["group"].value_counts().sort("group")["count"].to_numpy() / sim.workers.height
    assert np.abs(drawn - shares).max() < 4 * np.sqrt(0.25 / 400)
    matrices = np.array(cw.simulate.LEVELS)
    matrices /= matrices.sum(2, keepdims=True)
    assert np.allclose(sim.confusions, matrices[sim.workers["group"].to_numpy()])
    joined = sim.answers.frame().join(sim.truth, on="task", suffix="_true").join(sim.workers, on="worker")
    for level in range(3):
        for k in range(3):
            said = joined.filter((pl.col("group") == level) & (pl.col("label_true") == f"c{k + 1}"))["label"]
            share = np.array([(said == f"c{m + 1}").mean() for m in range(3)])
            assert np.abs(share - matrices[level, k]).max() < 4 * np.sqrt(0.25 / len(said))
    assert set(sim.answers.tasks) == set(tasks[:5000]), "every task has a label, those kept fresh none"
    counts = sim.answers.answers_per_task
    assert counts.min() >= 1
    assert abs(counts.mean() - 5) < 0.1
    assert abs(counts.var() - 5) < 0.5, "each pair of task and worker is drawn by itself"
    assert not joined.select("task", "worker").is_duplicated().any()


def test_hardly_any_answers_and_workers_left_out() -> None:
    sim = cw.simulate.levels(np.arange(50) % 3, workers=1000, per_task=0.1, seed=2)
    assert sim.answers.answers_per_task.min() >= 1
    assert sim.workers.height == sim.answers.n_workers == len(sim.confusions) < 100
    assert sim.workers["worker"].to_list() == sim.answers.workers.to_list()
    matrices = np.array(cw.simulate.LEVELS)[sim.workers["group"].to_numpy()]
    assert np.allclose(sim.confusions, matrices / matrices.sum(2, keepdims=True))


def test_triangles_are_setup_one() -> None:
    sim = cw.simulate.triangle(60, tasks=3000, fresh=600, seed=3)
    assert sim.features.shape == (3600, 2)
    assert sim.answers.n_tasks == 3000
    label = sim.truth["label"].to_numpy()
    for name, centre in zip(("c1", "c2", "c3"), ((0, 1), (0, -1), (1, 0)), strict=True):
        mine = sim.features[label == name]
        assert len(mine) == 1200
        assert np.abs(mine.mean(0) - centre).max() < 0.05
        assert np.abs(mine.std(0) - 0.4).max() < 0.03
        assert (label[3000:] == name).sum() == 200
    again, other = (cw.simulate.triangle(60, tasks=3000, fresh=600, seed=seed) for seed in (3, 4))
    assert again.answers.frame().equals(sim.answers.frame())
    assert np.array_equal(again.features, sim.features)
    assert not other.answers.frame().equals(sim.answers.frame())
    by_name = cw.simulate.crowd("triangle", workers=60, tasks=3000, fresh=600, seed=3)
    assert by_name.answers.frame().equals(sim.answers.frame())


def test_a_disturbed_network_errs_the_more_the_more_it_is_disturbed() -> None:
    sim = cw.simulate.triangle(20, tasks=150, fresh=0, seed=0)
    truth = np.searchsorted(["c1", "c2", "c3"], sim.truth["label"].to_numpy())
    net = {"hidden": 8, "dropout": 0.0, "epochs": 20, "rate": 0.05, "holdout": 0.0}
    made = cw.simulate.perturbed(sim.features, truth, (0.0, 0.5, 5.0), seed=1, **net)
    assert made.shape == (3, 3, 3)
    assert np.allclose(made.sum(2), 1)
    right = made[:, range(3), range(3)].mean(1)
    assert right[0] > 0.9
    assert right[0] > right[1] > right[2]
    learner = Network(**net).learner(sim.features.astype(np.float32), 3, np.random.default_rng(1))
    learner.imitate(np.eye(3)[truth])
    predicted = learner.logits().argmax(1)
    counts = np.array([[np.sum((truth == k) & (predicted == m)) for m in range(3)] for k in range(3)]) + 1e-3
    assert np.allclose(made[0], counts / counts.sum(1, keepdims=True)), "without noise it is the network itself"
    learner.disturbed(5.0, np.random.default_rng(0))
    assert np.array_equal(learner.logits(sim.features).argmax(1), predicted), "what was disturbed is put back"
    assert np.array_equal(made, cw.simulate.perturbed(sim.features, truth, (0.0, 0.5, 5.0), seed=1, **net))
    crowd = cw.simulate.levels(truth, made, (0.5, 0.3, 0.2), workers=30, seed=1)
    assert np.allclose(crowd.confusions, made[crowd.workers["group"].to_numpy()])


EVEN = np.full((2, 3, 3), 1 / 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"truth": []}, "give the class of every task, as an integer from 0"),
        ({"truth": [0, 1, 3]}, "classes from 0 to 2"),
        ({"truth": [0, -1]}, "give the class of every task, as an integer from 0"),
        ({"truth": ["a", "b"]}, "give the class of every task, as an integer from 0"),
        ({"fresh": 3}, "at least one more than fresh"),
        ({"fresh": -1}, "fresh"),
        ({"shares": (1, 1)}, "give 3 numbers of at least 0"),
        ({"shares": (1, -1, 1)}, "give 3 numbers of at least 0"),
        ({"shares": (0, 0, 0)}, "give 3 numbers of at least 0"),
        ({"shares": (np.nan, 1, 1)}, "give 3 numbers of at least 0"),
        ({"matrices": EVEN[:, :2]}, r"shape \(2, 2, 3\)"),
        ({"matrices": EVEN * np.nan, "shares": (1, 1)}, "confusion matrices"),
        ({"matrices": EVEN * 0, "shares": (1, 1)}, "confusion matrices"),
        ({"per_task": 0}, "above 0 and at most 100"),
        ({"per_task": 101}, "above 0 and at most 100"),
        ({"workers": 0}, "at most 0"),
    ],
)
def test_invalid_levels_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(cw.errors.ParameterError, match=words):
        cw.simulate.levels(**{"truth": [0, 1, 2], **wrong})


def test_invalid_triangles_and_noise_are_refused() -> None:
    for wrong in ({"tasks": 2}, {"fresh": -1}):
        with pytest.raises(cw.errors.ParameterError, match="must be at least 3 and 0"):
            cw.simulate.triangle(10, **wrong)
    with pytest.raises(cw.errors.ParameterError, match="triangle always has three equally frequent classes"):
        cw.simulate.crowd("triangle", classes=4)
    X, truth = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    for bad in ((X, truth[:20], [1.0]), (X, truth, [np.nan]), (X, truth - 1, [1.0])):
        with pytest.raises(cw.errors.ParameterError):
            cw.simulate.perturbed(*bad, epochs=1)


# ----------------------------------------------------------------------------------------------------------- cache


def test_an_interrupted_study_continues(tmp_path: Path) -> None:
    file, measured, said = tmp_path / "out" / "measured.jsonl", [], []

    def study(broken: bool) -> list[Any]:
        cache = MeasurementCache(file, said.append)

        def measure(n: int) -> dict[str, float | None]:
            if broken and n == 3:
                raise KeyboardInterrupt
            measured.append(n)
            return {"test": n / 3, "ARI": None}

        return [cache.measure(f"{n} workers", lambda n=n: measure(n)) for n in range(5)]

    with pytest.raises(KeyboardInterrupt):
        study(broken=True)
    assert measured == [0, 1, 2]
    whole = study(broken=False)
    assert measured == [0, 1, 2, 3, 4], "nothing twice"
    assert whole == [{"test": n / 3, "ARI": None} for n in range(5)]
    assert f"3 measurements of earlier runs are in {file}; those needed again are used" in said
    assert study(broken=False) == whole
    assert measured == [0, 1, 2, 3, 4]
    assert [each.name for each in file.parent.iterdir()] == ["measured.jsonl"]
    assert np.isclose(mean(whole, "test") or 0, 2 / 3)
    assert mean(whole, "ARI") is None


ENTRY = '{"key": "a", "measured": {"test": 0.9}, "seconds": 2.5}\n'
DAMAGED = ['{"a": {"test": 0.9', "null", "3", "[1, 2]", '{"a": 3}', "\xff\xfe", f'{{"key": "b", "mea\n{ENTRY}', "\n"]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_cache_is_refused_by_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "measured.jsonl"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(cw.errors.FileError, match=r"measured\.jsonl was not written by a study .* Remove it"):
        MeasurementCache(file, lambda said: None)
    assert file.read_bytes() == text.encode("latin-1"), "it is left as it was"


@pytest.mark.parametrize("cut", [1, 7, 8, 22])
def test_a_measurement_that_was_cut_off_is_made_again(cut: int, tmp_path: Path) -> None:
    file, measured = tmp_path / "measured.jsonl", []
    file.write_text(ENTRY + ENTRY.replace('"a"', '"b"')[:cut])
    for _ in range(2):
        cache = MeasurementCache(file, lambda said: None)
        assert cache.measure("a", lambda: measured.append("a") or {"test": 0.0}) == {"test": 0.9}
        assert cache.measure("b", lambda: measured.append("b") or {"test": 0.5}) == {"test": 0.5}
    assert measured == ["b"]
    assert [line[:11] for line in file.read_text().splitlines()] == ['{"key": "a"', '{"key": "b"']


def test_processor_time_of_earlier_measurements_counts_once_and_only_if_used(tmp_path: Path) -> None:
    file = tmp_path / "measured.jsonl"
    file.write_text(ENTRY + ENTRY.replace('"a"', '"b"'))
    cache = MeasurementCache(file, lambda said: None)
    assert cache.seconds == 0
    for key in ("a", "a", "new"):
        cache.measure(key, lambda: {"test": 1.0})
    assert cache.seconds == 2.5


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = MeasurementCache(tmp_path / "file" / "measured.jsonl", lambda said: None)
    with pytest.raises(cw.errors.FileError, match=r"cannot write .*measured\.jsonl: .* name another place"):
        cache.measure("a", lambda: {"test": 1.0})


@pytest.mark.parametrize(("seeds", "shown"), [(3, 3), (20, 20), (500, 20)])
def test_measurements_of_many_seeds_are_announced_now_and_then(seeds: int, shown: int) -> None:
    said: list[str] = []
    cache = MeasurementCache(None, said.append)
    found = cache.measure_seeds("a", range(seeds), lambda k, seed: {"test": k * seed}, 2.0)
    assert [each["test"] for each in found] == [2.0 * seed for seed in range(seeds)]
    assert len(said) == shown
    assert said[0] == f"a seed 0 (1 of {seeds})"
    assert len(cache.measure_seeds("a", range(seeds), pytest.fail)) == seeds


def test_without_a_file_the_cache_remembers(tmp_path: Path) -> None:
    cache, measured = MeasurementCache(None, lambda said: None), []
    for _ in range(2):
        cache.measure("a", lambda: measured.append(1) or {"test": 1.0})
    assert measured == [1]
