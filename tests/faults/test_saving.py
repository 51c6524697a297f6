"""What would be refused when it is loaded is not saved: saving follows the rules of loading before it writes.
How crafted files are refused is in test_saved.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.engine.run import Checkpoint
from crowdwise.errors import DataError
from crowdwise.io.stored import Folder, StoredLabels, write_part
from crowdwise.result import parquet
from crowdwise.result.store import write_checkpoint
from crowdwise.result.stored import Parts, as_json

SIM = cw.simulate.crowd("confusion", tasks=20, workers=5, classes=3, per_task=3, seed=1)
ADVICE = r"\. It would be refused when it is loaded, so nothing was written to .*Change it, or fit again with "


def refused(holds: str, said: str, save: Callable[[Path], object], folder: Path) -> None:
    """Check that saving is refused in words, and that what is in the folder stays as it is."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(DataError, match=f"the {holds} cannot be saved: {said}{ADVICE}"):
        save(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def results() -> dict[str, tuple[dict[str, Any], str]]:
    good = cw.aggregate(SIM.answers, "dawid-skene")
    rows, bad = good.params.rows.copy(), good.posterior.copy()
    rows[0, 0], bad[0] = np.nan, 0.2
    return {
        "array": ({"params": good.params._replace(rows=rows)}, "params.rows has numbers that are not finite"),
        "sum": ({"posterior": bad}, "posterior has probabilities that do not sum to 1"),
        "plain": ({"seconds": float("inf")}, "seconds cannot be stored as JSON: Out of range float values.*"),
        "text": ({"criterion": "\udc80"}, "criterion cannot be stored as JSON: .*surrogates not allowed"),
        "type": ({"converged": "yes"}, "converged is 'yes', which is no bool"),
        "trace": ({"trace": good.trace.with_columns(objective=np.inf)}, "trace has numbers that are missing.*"),
    }


@pytest.mark.parametrize("name", results())
def test_s4_a_result_that_would_not_load_is_not_saved(name: str, tmp_path: Path) -> None:
    good = cw.aggregate(SIM.answers, "dawid-skene")
    good.save(tmp_path)
    change, said = results()[name]
    refused("result", said, replace(good, **change).save, tmp_path)


def test_s4_r1_a_result_in_parts_that_would_not_load_leaves_the_old_one_whole(tmp_path: Path) -> None:
    home, out = Folder(tmp_path / "parts"), tmp_path / "out"
    for number, part in enumerate(SIM.answers.shards(2)):
        write_part(home.part(number), cw.Labels(part.frame()))
    good = cw.aggregate(StoredLabels.join(home, 2), "dawid-skene")
    good.save(out)
    rho = good.params.rho.copy()
    rho[0] = 7.0
    bad = replace(good, params=good.params._replace(rho=rho))
    refused("result", r"params.rho has the value 7; it must be from 0 to 1", bad.save, out)
    assert cw.load(out).labels.collect().height == 20


@pytest.mark.parametrize("wrong", [1e-100, 1e-20])
def test_s4_d22_a_prior_that_knows_no_errors_gives_finite_odds_which_are_saved(wrong: float, tmp_path: Path) -> None:
    good = cw.aggregate(SIM.answers.frame().filter(pl.col("worker") == "w1"), "one-coin", wrong=wrong)
    assert good.answers.n_tasks > 5
    assert np.isfinite(good.posterior).all()
    assert good.trace["objective"].is_finite().all()
    good.save(tmp_path)
    assert np.array_equal(cw.load(tmp_path).posterior, good.posterior)


@pytest.mark.parametrize("kind", [cw.LabelStream, cw.ClickStream])
def test_s4_a_stream_that_would_not_load_is_not_saved(kind: Any, tmp_path: Path) -> None:
    stream = kind()
    stream.save(tmp_path)
    stream.notes = {"when": float("nan")}
    refused("stream", "notes cannot be stored as JSON: Out of range.*", stream.save, tmp_path)
    stream.notes = []
    refused("stream", "its notes have no names", stream.save, tmp_path)


def test_s4_what_a_stream_learned_is_checked_before_it_is_saved(tmp_path: Path) -> None:
    stream = cw.LabelStream().update(SIM.answers.frame())
    stream.save(tmp_path)
    stream._Z[0] = 7.0
    refused("stream", "Z has the value 7; it must be from 0 to 1", stream.save, tmp_path)


def test_s4_a_classifier_that_would_not_load_is_not_saved(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = cw.CrowdClassifier().fit(X, SIM.answers, SIM.answers.tasks.to_list())
    model.save(tmp_path)
    model.threshold = 2.0
    refused("classifier", "it does not say which classifier it is", model.save, tmp_path)
    model.threshold = 0.5
    model.learner_.mean[0] = np.inf
    refused("classifier", "mean has numbers that are not finite", model.save, tmp_path)


def test_s4_a_checkpoint_that_would_not_load_is_not_saved(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.crowdwise"
    for checkpoint, said in (
        (Checkpoint({}, "", float("nan")), "seconds cannot be stored as JSON: .*"),
        (Checkpoint({"one": {"x": np.zeros(2, np.complex64)}}), "0.x holds complex64; it must hold numbers"),
    ):
        refused("checkpoint", said, lambda _, each=checkpoint: write_checkpoint(file, each), tmp_path)


def test_s4_other_errors_of_saving_are_not_called_unsound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    good = cw.aggregate(SIM.answers, "dawid-skene")
    monkeypatch.setattr("crowdwise.result.store.model_of", broken)
    with pytest.raises(KeyError):
        good.save(tmp_path)


def test_f6_a_table_that_is_compressed_too_well_to_be_loaded_is_saved_larger(monkeypatch, tmp_path) -> None:
    long = [chr(97 + n) * 30_000 for n in range(20)] * 3
    frame = SIM.answers.frame().with_columns(more=pl.Series(long))
    monkeypatch.setattr(parquet, "MAX_UNPACKED", 1 << 16)
    result = cw.aggregate(cw.Labels(frame), "dawid-skene")
    loaded = cw.load(result.save(tmp_path))
    assert loaded.answers.extras.equals(result.answers.extras)


def test_s4_a_plain_value_that_json_has_not_is_named() -> None:
    parts = Parts()
    parts.add("notes", {"x": object()})
    with pytest.raises(ValueError, match=r"notes cannot be stored as JSON: Object of type object is not"):
        as_json({"values": parts.plain})
    assert json.loads(as_json({"values": {"x": 1}})) == {"values": {"x": 1}}
