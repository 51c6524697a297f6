"""Fuzzers of exports of annotation platforms: damaged copies of the golden ones are read, converted, and are the
originals that estimates are written back into. What is written is whole, or nothing is."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import shutil
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unittest import mock

from fuzz_readers import check_answers
from fuzz_text import written
from fuzzing import Fuzzer
from golden_exports import FIRST, GOLDEN, Case, empty_jobs_of, gold_of, rows_of
from mutations import mutant

import crowdwise as cw
from crowdwise.errors import CrowdwiseError
from crowdwise.io import returned
from crowdwise.io.conversion import targets
from crowdwise.io.formats import all_formats
from crowdwise.result.outputs import LISTED

T = TypeVar("T")
OLD = b"what was there before\n"
TABLES = ("csv", "jsonl", "parquet")
RETURNED = {name: each for name, each in all_formats().items() if each.returned}
FOLDERS = [case for case in FIRST if (GOLDEN / case.file).is_dir()]
ORIGINALS = [
    (case, to)
    for case in FIRST
    for to in RETURNED
    if (GOLDEN / case.file).is_file() and to.startswith(case.expected["format"])
]


class Damaged(NamedTuple):
    """A damaged copy of a golden export, and what is done with it."""

    path: Path
    case: Case
    to: str = ""  # the platform that it is written for
    options: Any = None  # of reading it


def damaged(case: Case, rng: random.Random, folder: Path, **options: Any) -> Damaged:
    """Make a damaged copy of a golden export, a file or a folder, in which one file is changed."""
    place = folder / "damaged" / case.file
    place.parent.mkdir()
    if (GOLDEN / case.file).is_dir():
        shutil.copytree(GOLDEN / case.file, place)
    else:
        shutil.copy(GOLDEN / case.file, place)
    file = rng.choice(sorted(place.rglob("*.jsonl"))) if place.is_dir() else place
    written(file, mutant(file.name, file.read_bytes(), rng.randrange(10**9)))
    return Damaged(place, case, **options)


def to_read(rng: random.Random, folder: Path) -> Damaged:
    """Make an export to read; one in ten is a folder."""
    case = rng.choice(FOLDERS if rng.random() < 0.1 else FIRST)
    asked = {name: value for name, value in case.options.items() if name == "question"}
    several = {"sets": "split", "keep": ["test", "rejected", "prediction", "draft"]}
    more: dict[str, Any] = rng.choice(({}, {"sets": "joined", "anonymous": "each"}, several))
    return damaged(case, rng, folder, options=asked | more)


def to_convert(rng: random.Random, folder: Path) -> Damaged:
    return damaged(rng.choice(FIRST), rng, folder, to=rng.choice(targets()))


def original(rng: random.Random, folder: Path) -> Damaged:
    case, to = rng.choice(ORIGINALS)
    return damaged(case, rng, folder, to=to)


def tried(call: Callable[[], T]) -> T | None:
    """Return what a call returns; None if it raises an error of Crowdwise. A warning is a failure."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return call()
    except CrowdwiseError:
        return None


def check_read(given: Damaged) -> str:
    answers = tried(partial(cw.read, given.path, **given.options))
    if answers is None:
        return "refused"
    check_answers(answers)
    return "answered"


def votes(answers: Any) -> tuple[Any, ...]:
    """Return what must be the same in a file and in the table that it is converted to."""
    return answers.kind, rows_of(answers), gold_of(answers) if answers.kind == "labels" else empty_jobs_of(answers)


def check_converted(given: Damaged) -> str:
    """The new file holds what the export holds, or the old file is as it was."""
    ending = given.to if given.to in TABLES else "other"
    out = given.path.parent.parent / "out" / f"converted.{ending}"
    out.parent.mkdir()
    written(out, OLD)
    done = tried(partial(cw.convert, given.path, out, given.to, keep="personal"))
    assert list(out.parent.iterdir()) == [out]
    assert (out.read_bytes() == OLD) == (done is None)
    if done is not None and given.to in TABLES:
        options = {"question": given.case.question, "sets": "joined", "keep": "personal"}
        before = tried(partial(cw.read, given.path, **options))
        after = tried(partial(cw.read, out, **options))
        if before is not None:
            assert after is not None
            assert votes(after) == votes(before)
    return "refused" if done is None else "answered"


@cache
def fitted(file: str) -> tuple[Any, Any]:
    """Return the fit of the answers in a golden file, and what is doubtful in it: both take long."""
    case = next(case for case in FIRST if case.file == file)
    result = cw.aggregate(case.read(), "click-mixture" if case.kind == "points" else "majority-vote")
    return result, returned.doubts(result, 0.9)


def check_original(given: Damaged) -> str:
    """The files of estimates are all there and whole, or there is none."""
    out, (result, doubtful) = given.path.parent.parent / "out", fitted(given.case.file)
    with mock.patch.object(returned, "doubts", return_value=doubtful), mock.patch.object(os, "fsync"):
        done = tried(partial(cw.export, result, given.to, out, original=given.path))
    if done is None:
        assert not out.exists() or not list(out.iterdir())
        return "refused"
    ending = RETURNED[given.to].returned
    main = out / f"{given.to}{'.json' if ending == '.object' else ending}"
    assert {*out.iterdir()} == {each for each in (main, done.relabel, done.gold, out / LISTED) if each is not None}
    assert done.estimates == main
    check_whole(main)
    return "answered"


def check_whole(file: Path) -> None:
    """Assert that a file is valid JSON, JSON lines or CSV."""
    text = file.read_text("utf-8")
    if file.suffix == ".csv":
        assert len({len(row) for row in csv.reader(io.StringIO(text, newline=""))}) == 1
        return
    for part in text.splitlines() if file.suffix == ".jsonl" else [text]:
        assert json.loads(part)


FUZZERS = [
    Fuzzer("exports", to_read, check_read, slice=300),
    Fuzzer("converted", to_convert, check_converted, slice=80),
    Fuzzer("originals", original, check_original, slice=50),
]
