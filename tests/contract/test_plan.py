"""How many answers per task a target accuracy needs: against enumeration, the notes' figures and the cost curve."""

from __future__ import annotations

from itertools import product
from math import gamma

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.acquisition.planning import MAX_ANSWERS, vote_accuracy


def enumerated(s: float, classes: int, rho: float, n: int) -> float:
    """The accuracy of n votes by summing over all outcomes of a Dirichlet-multinomial."""
    c = (1 - rho) / rho
    shape = [c * s] + [c * (1 - s) / (classes - 1)] * (classes - 1)
    total = 0.0
    for votes in product(range(n + 1), repeat=classes):
        if sum(votes) != n:
            continue
        p = gamma(c) * gamma(n + 1) / gamma(n + c)
        for count, a in zip(votes, shape, strict=True):
            p *= gamma(count + a) / (gamma(a) * gamma(count + 1))
        if votes[0] == max(votes):
            total += p / votes.count(max(votes))
    return total


@pytest.mark.parametrize(("s", "classes", "rho"), [(0.7, 2, 0.15), (0.8, 3, 0.3), (0.55, 4, 0.05)])
def test_votes_are_as_accurate_as_enumeration_says(s: float, classes: int, rho: float) -> None:
    found = vote_accuracy(s, classes, rho, 6, seed=3)
    wanted = [enumerated(s, classes, rho, n) for n in range(1, 7)]
    assert np.allclose(found, wanted, atol=0.008)  # 50,000 simulated tasks
    assert found[0] == s


@pytest.mark.parametrize(("s", "classes", "rho"), [(0.99, 100, 0.3), (0.95, 200, 0.3), (0.6, 2, 0.05)])
def test_more_answers_never_make_a_vote_much_worse(s: float, classes: int, rho: float) -> None:
    found = vote_accuracy(s, classes, rho, seed=1)
    assert found[1] == s  # a second answer decides nothing
    assert (np.diff(found) > -0.004).all()


def test_the_number_is_the_smallest_that_reaches_the_target() -> None:
    plan = cw.plan(0.9, accuracy=0.8)
    for count, column in ((plan.answers, "accuracy"), (plan.at_best, "high"), (plan.at_worst, "low")):
        reached = plan.points.filter(plan.points[column] >= 0.9)["answers"]
        assert count == (reached[0] if len(reached) else None)
    assert plan.at_worst is None  # errors that workers share do not go away
    assert plan.points["answers"].to_list() == list(range(1, MAX_ANSWERS + 1))
    assert ((plan.points["low"] <= plan.points["accuracy"]) & (plan.points["accuracy"] <= plan.points["high"])).all()
    assert cw.plan(0.9, accuracy=0.8).points.equals(plan.points)
    assert not plan.pilot
    assert plan.as_dict()["points"][2]["answers"] == 3


def test_more_classes_and_better_workers_need_fewer_answers() -> None:
    def needed(**given: float) -> int:
        found = cw.plan(0.85, **given).answers  # type: ignore[arg-type]
        assert found is not None
        return found

    assert needed(accuracy=0.9) < needed(accuracy=0.8)
    assert needed(accuracy=0.7, classes=4) < (cw.plan(0.85, accuracy=0.7, classes=2).answers or 99)
    assert needed(accuracy=0.86) == 1


def test_a_pilot_replaces_the_assumptions() -> None:
    sim = cw.simulate.crowd(tasks=80, workers=15, per_task=3, seed=2)
    result = cw.aggregate(sim.answers)
    now = cw.expected_accuracy(result)
    assert now is not None
    plan = cw.plan(now.value + 0.03, pilot=result)
    assert plan.pilot
    assert plan.points.row(0) == (3, *now)
    curve = cw.cost_curve(result).points.filter(plan="every task")
    assert np.allclose(plan.points["accuracy"][:6], curve["accuracy"])  # one more answer each, and so on
    assert np.allclose(plan.points["low"][:6], curve["low"])
    assert np.allclose(plan.points["high"][:6], curve["high"])
    assert plan.answers is not None
    assert plan.answers > 3
    assert cw.plan(0.2, pilot=result).answers == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give accuracy=, the probability that one answer is right"),
        ({"accuracy": 0.5}, "accuracy=0.5 is what random answers to 2 classes reach"),
        ({"accuracy": 80}, "accuracy=80 is not a number above 0 and below 1. For 80 percent, write 0.8"),
        ({"accuracy": 0.8, "classes": 1}, "classes=1 is not a whole number from 2"),
        ({"accuracy": 0.8, "classes": 2.5}, "classes=2.5 is not"),
    ],
)
def test_assumptions_that_make_no_sense_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(cw.errors.ParameterError, match=message):
        cw.plan(0.9, **given)  # type: ignore[arg-type]


def test_a_target_is_a_share() -> None:
    for wrong in (0, 1, 95, float("nan"), True, "0.9"):
        with pytest.raises(cw.errors.ParameterError, match="target="):
            cw.plan(wrong, accuracy=0.8)  # type: ignore[arg-type]


def test_a_pilot_must_show_agreement() -> None:
    alone = cw.aggregate({"task": [1, 2, 3], "worker": ["a", "b", "c"], "label": ["x", "y", "x"]})
    with pytest.raises(cw.errors.ParameterError, match="does not show how often workers agree"):
        cw.plan(0.9, pilot=alone)
    with pytest.raises(cw.errors.ParameterError, match="accuracy= is for a study without a pilot"):
        cw.plan(0.9, accuracy=0.8, pilot=alone)
    with pytest.raises(cw.errors.DataError, match=r"plan\(..., pilot=crowdwise.aggregate\(answers\)\)"):
        cw.plan(0.9, pilot=alone.answers)  # type: ignore[arg-type]
    with pytest.raises(cw.errors.ParameterError, match="seed is -1; it must be a whole number of at least 0"):
        cw.plan(0.9, accuracy=0.8, seed=-1)
