"""A few inputs of every fuzzer, the same ones at every run, and every input that failed once."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import fuzzers, in_time, one

FUZZERS = fuzzers()


@pytest.mark.parametrize("name", FUZZERS)
def test_inputs_of_a_fuzzer(name: str, tmp_path: Path) -> None:
    for number in range(FUZZERS[name].slice):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            one(FUZZERS[name], f"slice.{number}", folder)
        except BaseException as error:
            error.add_note(f"{name}, input {number}")
            raise


@pytest.mark.parametrize("name", FUZZERS)
def test_inputs_that_failed_once(name: str, tmp_path: Path) -> None:
    for case, made in FUZZERS[name].kept(tmp_path):
        try:
            with in_time():
                FUZZERS[name].check(made)
        except BaseException as error:
            error.add_note(f"{name}, {case}")
            raise
