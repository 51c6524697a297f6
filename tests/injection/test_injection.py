"""R1, R2, R4: some of the points that `make faults` walks through, the same ones at every run."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from injecting import FAULTS, Server, lacking

SLICE = 9  # points of a command

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.mark.parametrize("case", ["aggregate", "learn", "watch", "report", "export", "parts"])
def test_r1_r4_a_call_that_fails_leaves_the_old_or_the_new_outputs(case: str, server: Server) -> None:
    rng = random.Random(f"slice {case}")
    counts = server.strike(case, "error", 0).counts
    assert all(counts.values())
    for number in range(SLICE):
        fault = [*FAULTS][number % len(FAULTS)]
        point = server.strike(case, fault, rng.randint(1, counts[fault]))
        assert point.hit
        assert not point.problem


@pytest.mark.parametrize("case", ["read csv", "read zip", "read label-studio", "load"])
def test_r4_a_read_that_fails_is_reported(case: str, server: Server) -> None:
    count = server.strike(case, "error", 0).counts["error"]
    for at in random.Random(f"slice {case}").sample(range(1, count + 1), min(count, 5)):
        point = server.strike(case, "error", at)
        assert point.hit
        assert not point.problem


def test_r2_a_resumed_fit_that_is_killed_goes_on_to_the_same_result(server: Server) -> None:
    """After the kill, the command is run again, and must bring the bytes of an unbroken run."""
    count = server.strike("checkpoints", "kill", 0).counts["kill"]
    for at in random.Random("slice").sample(range(1, count + 1), 6):
        point = server.strike("checkpoints", "kill", at)
        assert (point.hit, point.problem) == (True, "")


def test_the_walk_sees_what_is_wrong(server: Server) -> None:
    """A command that writes its files one by one is caught."""
    found = [server.strike("careless", fault, at) for fault in ("kill", "error") for at in (3, 4, 5)]
    assert any("neither old" in point.problem for point in found)
    assert any("a traceback" in point.problem for point in found)
