"""A stream of clicks after any updates, corrections, removals, repeated deliveries, saves and loads."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import crowdwise as cw
from crowdwise.points.held import COUNTS, Sums

ONE = cw.Run(threads=1)
IMAGES, WORKERS = 5, 6
Held = dict[tuple[str, str], list[tuple[float, float]]]  # clicks by image and worker
jobs = st.tuples(st.integers(0, IMAGES), st.integers(0, WORKERS), st.integers(0, 9))  # image, worker, version


def clicks(image: int, worker: int, version: int) -> list[tuple[float, float]]:
    """Clicks on most objects of an image, and sometimes a stray click; version 0 has no clicks."""
    rng = np.random.default_rng([image, worker, version])
    centres = np.array([(15.0 + 5 * image, 20.0), (80.0, 25.0 + 4 * image), (30.0, 75.0), (75.0, 80.0)])
    seen = centres[rng.random(len(centres)) < 0.9]
    X = np.concatenate([seen + rng.normal(size=seen.shape), 100 * rng.random((int(rng.random() < 0.3), 2))])
    return [(x, y) for x, y in X.tolist()] if version else []


def some(chosen: list[tuple[int, int, int]]) -> Held:
    return {(f"i{image}", f"w{worker}"): clicks(image, worker, version) for image, worker, version in chosen}


def points(held: Held) -> cw.Points:
    rows = [(image, worker, x, y) for (image, worker), own in held.items() for x, y in own]
    schema = {"image": pl.String, "worker": pl.String, "x": pl.Float64, "y": pl.Float64}
    listed = dict(zip(("image", "worker"), map(list, zip(*held, strict=True)), strict=True))
    return cw.Points(pl.DataFrame(rows, schema, orient="row"), jobs=listed, box=(0, 0, 100, 100))


FIRST = some([(image, worker, 1) for image in range(IMAGES) for worker in range(WORKERS)])


@functools.cache
def first_stream() -> cw.ClickStream:
    return cw.ClickStream().update(points(FIRST), run=ONE)


def reloaded(stream: cw.ClickStream) -> cw.ClickStream:
    with tempfile.TemporaryDirectory() as folder:
        return cw.ClickStream.load(stream.save(Path(folder)))


def sums_from_scratch(stream: cw.ClickStream) -> Sums:
    zero = Sums(np.zeros((len(COUNTS), len(stream._workers))), np.zeros((2, 2)), 0)
    return zero.plus(image.learned for image in stream._images.values())


class Machine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.stream, self.held = reloaded(first_stream()), dict(FIRST)

    @rule(chosen=st.lists(jobs, min_size=1, max_size=4, unique_by=lambda job: job[:2]))
    def update(self, chosen: list[tuple[int, int, int]]) -> None:
        self.stream.update(points(some(chosen)), run=ONE)
        self.held |= some(chosen)

    @rule(data=st.data())
    def deliver_again(self, data: Any) -> None:
        known = data.draw(st.lists(st.sampled_from(sorted(self.held)), min_size=1, max_size=5, unique=True))
        before = repr(self.stream), self.stream.objects, self.stream.workers
        self.stream.update(points({key: self.held[key][::-1] for key in known}), run=ONE)
        assert repr(self.stream) == before[0]
        assert self.stream.objects.equals(before[1])
        assert self.stream.workers.equals(before[2])

    @rule(chosen=st.lists(jobs, min_size=1, max_size=4))
    def remove(self, chosen: list[tuple[int, int, int]]) -> None:
        keys = set(some(chosen))
        table = [{"image": image, "worker": worker} for image, worker in keys]
        assert self.stream.remove(table, run=ONE) == len(keys - self.held.keys())
        self.held = {key: own for key, own in self.held.items() if key not in keys}

    @rule()
    def save_and_load(self) -> None:
        self.stream = reloaded(self.stream)

    @invariant()
    def holds_the_clicks(self) -> None:
        found = self.stream.points
        rows = found.frame().select("image", "worker", "x", "y").sort(pl.all()).rows()
        assert rows == sorted((i, w, x, y) for (i, w), own in self.held.items() for x, y in own)
        names = found.images.to_list(), found.workers.to_list()
        listed = zip(found.job_image.tolist(), found.job_worker.tolist(), strict=True)
        assert {(names[0][i], names[1][w]) for i, w in listed} == set(self.held)
        assert f"({len(rows)} clicks, {found.n_images} images" in repr(self.stream)

    @invariant()
    def counts_are_those_from_scratch(self) -> None:
        for one, two in zip(self.stream._sums, sums_from_scratch(self.stream), strict=True):
            assert np.allclose(one, two, rtol=1e-9, atol=1e-9)

    def teardown(self) -> None:
        at_once = cw.ClickStream().update(points(self.held), run=ONE)
        one, two = self.stream.result(run=ONE), at_once.result(run=ONE)
        sure = [each.objects.filter(pl.col("probability") > 0.9).select("image", "x", "y") for each in (one, two)]
        for found, wanted in (sure[0], two.objects), (sure[1], one.objects):
            matched = cw.match_objects(found, wanted.select("image", "x", "y"), within=1)
            assert matched["matched"].sum() == found.height
        assert one.workers["worker"].equals(two.workers["worker"])
        assert (one.workers["skill"] - two.workers["skill"]).abs().max() < 0.03


def test_r14_clicks_added_corrected_and_removed_are_those_of_one_update() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=12, stateful_step_count=8))
