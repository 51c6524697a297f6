"""Crafted saved results: checksums are in the file, so anyone makes them right. Every message is asserted here; random
damage is in tests/fuzz/fuzz_load.py."""

from __future__ import annotations

import hashlib
import io
import json
import typing
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load as arrays_of
from safetensors.numpy import save as bytes_of

import crowdwise as cw
from crowdwise.aggregation import model_class
from crowdwise.engine.run import Checkpoint
from crowdwise.errors import CheckpointError, ChecksumError, FileError, Interrupted, MemoryNeedError, ParameterError
from crowdwise.io.chunks import Source
from crowdwise.io.large import split_labels
from crowdwise.io.stored import Folder, StoredLabels, is_sound, write_part
from crowdwise.kernels.layout import Layout
from crowdwise.result import parquet
from crowdwise.result.store import read_checkpoint, write_checkpoint
from crowdwise.result.stored import complete, kinds_of

ARRAYS, NAME = "arrays.safetensors", "result.crowdwise"
SIM = cw.simulate.crowd("confusion", tasks=20, workers=5, classes=3, per_task=3, seed=1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    cw.aggregate(SIM.answers, "dawid-skene").save(folder)
    return folder


def change(file: Path, to: Path, edit: Callable[[dict[str, Any], dict[str, bytes]], object], **how: Any) -> Path:
    """Write a saved file again with changes, and with right checksums."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    head = json.loads(parts.pop("result.json"))
    edit(head, parts)
    head["sha256"] = {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}
    with zipfile.ZipFile(to / file.name, "w", **how) as archive:
        for name, part in {"result.json": json.dumps(head).encode(), **parts}.items():
            archive.writestr(name, part)
    return to


def array(name: str, edit: Callable[[Any], Any]) -> Callable[[dict[str, Any], dict[str, bytes]], object]:
    """Return an edit of one array."""

    def one(head: Any, parts: dict[str, bytes]) -> None:
        arrays = {key: np.array(value) for key, value in arrays_of(parts[ARRAYS]).items()}
        arrays[name] = np.asarray(edit(arrays[name]), order="C")
        parts[ARRAYS] = bytes_of(arrays)

    return one


def put(at: int, value: float) -> Callable[[Any], Any]:
    """Return a function that replaces a number of an array."""

    def one(values: Any) -> Any:
        values.flat[at] = value
        return values

    return one


CRAFTED = {
    "code": ("answers.layout.pair", put(0, 10**6), "answers.layout.pair has the value 1000000; it must be from 0 to"),
    "pointer": ("answers.layout.task_ptr", put(1, 4), "answers.layout has answers by task that are not its answers by"),
    "falling": ("answers.layout.row_ptr", put(1, 10**6), "answers.layout.row_ptr does not ascend from 0 to 60"),
    "last": ("answers.layout.worker_ptr", put(-1, 99), "answers.layout.worker_ptr does not ascend from 0 to 15"),
    "order": ("answers.layout.row_label", lambda v: v[::-1], "has rows that are not in the order of worker and label"),
    "gold": ("answers.gold", put(0, 3), "answers.gold has the value 3; it must be from -1 to 2"),
    "dtype": ("answers.layout.pair", lambda v: v.astype(np.int64), "answers.layout.pair holds int64; it must be int32"),
    "shape": ("params.rows", lambda v: v[:-1], r"params.rows has the shape \(14, 3\); it must be \(15, 3\)"),
    "axes": ("params.rho", lambda v: v[None], "params.rho has 2 axes; it must have 1"),
    "nan": ("posterior", put(0, np.nan), "posterior has numbers that are not finite"),
    "inf": ("params.totals", put(0, np.inf), "params.totals has numbers that are not finite"),
    "chance": ("params.rho", put(0, -0.5), "params.rho has the value -0.5; it must be from 0 to 1"),
    "sum": ("posterior", lambda v: v / 2, "posterior has probabilities that do not sum to 1"),
    "floats": ("posterior", lambda v: v.astype(np.float16), "posterior holds float16; it must be float32 or float64"),
    "later": ("params.crowd", lambda v: v[:0, :0], r"params.crowd has the shape \(0, 0\); it must be \(3, 3\)"),
}


@pytest.mark.parametrize(("name", "edit", "said"), CRAFTED.values(), ids=CRAFTED)
def test_s4_arrays_are_checked_before_compiled_code_sees_them(name, edit, said, saved, tmp_path):
    change(saved / NAME, tmp_path, array(name, edit))
    with pytest.raises(ChecksumError, match=said):
        cw.load(tmp_path)


@pytest.mark.parametrize(("at", "value"), [(1, np.inf), (4, np.nan), (4, -np.inf)])
def test_s4_only_one_number_about_dependence_may_be_infinite(at, value, tmp_path):
    cw.aggregate(SIM.answers, "pooled").save(tmp_path)
    change(tmp_path / NAME, tmp_path, array("params.found", put(4, np.inf)))
    assert json.dumps(cw.load(tmp_path).summary().as_dict(), allow_nan=False)
    change(tmp_path / NAME, tmp_path, array("params.found", put(at, value)))
    with pytest.raises(ChecksumError, match=r"params\.found has (numbers that are not finite|the value -?(inf|nan))"):
        cw.load(tmp_path)


def test_s4_axes_of_clicks_have_names(tmp_path):
    clicks = cw.Points({"image": ["a"] * 4, "worker": list("vwvw"), "x": [1, 1, 5, 5], "y": [1, 1, 5, 5]})
    cw.aggregate(clicks, "k-means", objects=2).save(tmp_path)
    change(tmp_path / NAME, tmp_path, lambda head, parts: head["values"].update({"answers.axes": ["x", ""]}))
    with pytest.raises(ChecksumError, match="answers has the columns"):
        cw.load(tmp_path)


PLAIN = {
    "converged": ("yes", "converged is 'yes', which is no bool"),
    "seed": (True, "seed is True, which is no int"),
    "seconds": ("1.5", "seconds is '1.5', which is no float"),
    "versions": ({"python": 3}, "versions is {'python': 3}, which is no dict"),
    "params": (["rho"], "params must have rho, rows, totals, log_prior, crowd"),
    "criterion": ("\ud800", "surrogates not allowed"),
    "answers.layout.n_classes": (4, "answers.layout.n_classes is 4; it must be 3"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_s4_plain_values_have_the_types_that_are_declared(name, saved, tmp_path):
    value, said = PLAIN[name]
    change(saved / NAME, tmp_path, lambda head, parts: head["values"].update({name: value}))
    with pytest.raises(ChecksumError, match=said):
        cw.load(tmp_path)


def without(name: str) -> Callable[[dict[str, Any], dict[str, bytes]], object]:
    return lambda head, parts: head["values"].pop(name)


def as_table(name: str, table: pl.DataFrame) -> Callable[[dict[str, Any], dict[str, bytes]], object]:
    """Return an edit of one table."""
    out = io.BytesIO()
    table.write_parquet(out)
    return lambda head, parts: parts.update({f"{name}.parquet": out.getvalue()})


HEADS = {
    "missing": (without("seed"), "it has no 'seed'"),
    "setting": (lambda head, _: head["model"]["settings"].update(max_iter=-1), "dawid-skene: max_iter is -1; it must"),
    "unknown": (lambda head, _: head["model"]["settings"].update(more=1), "unexpected keyword argument 'more'"),
    "model": (lambda head, _: head["model"].update(name=7), "its model has no name"),
    "part": (lambda _, parts: parts.pop("trace.parquet"), "trace is missing"),
    "values": (lambda head, _: head.update(values=[]), "its values have no names"),
    "rows": (without("answers.intake"), "it has no 'answers.intake'"),
    "infinite": (lambda head, _: head["values"].update(seconds=float("nan")), "Out of range float values"),
    "record": (lambda head, _: head["values"]["answers.intake"].update(rows_read=-1), "a negative number of rows"),
    "twice": (as_table("answers.workers", pl.DataFrame({"values": ["a"] * 5})), "answers.workers has an id twice"),
    "null": (as_table("answers.classes", pl.DataFrame({"values": ["a", "b", None]})), "has an id that is missing"),
    "nested": (as_table("answers.workers", pl.DataFrame({"values": [["a"]] * 5})), "each id must be one plain value"),
    "columns": (as_table("answers.tasks", pl.DataFrame({"x": ["a"]})), "it must have one column, values"),
    "height": (as_table("answers.extras", pl.DataFrame({"x": [1]})), r"answers.extras has the shape \(1,\)"),
    "trace": (as_table("trace", pl.DataFrame({"x": [1]})), r"it must begin with \['iteration', 'objective'\]"),
    "text": (
        as_table("trace", pl.DataFrame({"iteration": [1], "objective": ["x"]})),
        "trace has String in the column 'objective'; it must hold numbers",
    ),
    "gap": (
        as_table("trace", pl.DataFrame({"iteration": [1], "objective": [float("inf")]})),
        "trace has numbers that are missing or not finite",
    ),
}


@pytest.mark.parametrize(("edit", "said"), HEADS.values(), ids=HEADS)
def test_s4_headers_and_tables_are_checked(edit, said, saved, tmp_path):
    change(saved / NAME, tmp_path, edit)
    with pytest.raises(ChecksumError, match=said):
        cw.load(tmp_path)


def test_f6_compressed_parts_are_refused(saved, tmp_path):
    change(saved / NAME, tmp_path, lambda *_: None, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ChecksumError, match="a part of it is compressed"):
        cw.load(tmp_path)


def test_f6_parts_twice_and_parts_that_are_not_listed_are_refused(saved, tmp_path):
    change(saved / NAME, tmp_path, lambda *_: None)
    with zipfile.ZipFile(tmp_path / NAME, "a") as archive:
        archive.writestr("more.parquet", b"")
    with pytest.raises(ChecksumError, match="its parts are not those that it lists"):
        cw.load(tmp_path)
    with zipfile.ZipFile(tmp_path / NAME, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("more.parquet", b"")
    with pytest.raises(ChecksumError, match="it has a part twice"):
        cw.load(tmp_path)


def as_bytes(table: pl.DataFrame, **how: Any) -> bytes:
    out = io.BytesIO()
    table.write_parquet(out, **how)
    return out.getvalue()


def test_f6_a_table_of_billions_of_rows_in_few_bytes_is_refused(saved, tmp_path):
    data = as_bytes(pl.DataFrame({"values": pl.Series(["a"]).new_from_index(0, 1_000_000)}))
    assert len(data) < 3000
    change(saved / NAME, tmp_path, lambda _, parts: parts.update({"answers.tasks.parquet": data}))
    with pytest.raises(ChecksumError, match="cannot be read: it claims 1,000,000 rows, more than there can be"):
        cw.load(tmp_path)


def test_f6_pages_that_unpack_to_much_more_are_refused(monkeypatch):
    data = as_bytes(pl.DataFrame({"values": ["a" * 3_000_000]}), compression="zstd")
    assert parquet.claims(data).rows == 1
    assert parquet.claims(data).unpacked > 3_000_000
    monkeypatch.setattr(parquet, "MAX_UNPACKED", 1 << 20)
    with pytest.raises(ValueError, match=r"its [\d,]+ bytes unpack to 3,0"):
        parquet.check(data, 10)


def test_f6_headers_of_a_table_are_not_believed():
    data = as_bytes(pl.DataFrame({"x": [1, 2, 3], "y": ["a", "b", None]}))
    assert parquet.claims(data).rows == 3
    for damaged, said in (
        (b"", "no Parquet file"),
        (data[:-8] + b"\xff\xff\xff\x7fPAR1", "its footer is larger than the file"),
        (data[:4] + b"\x00" * (len(data) - 12) + data[-8:], "its headers are damaged"),
    ):
        with pytest.raises(ValueError, match=said):
            parquet.claims(damaged)


def test_s4_rules_are_declared_for_the_arrays_of_every_model():
    for name, kind in cw.models().select("name", "kind").rows():
        model = model_class(name, kind)
        if not model.__module__.startswith("crowdwise."):  # of another test
            continue
        kinds = kinds_of(model.params_type)
        bare = [
            field
            for field, each in kinds.items()
            if not any(hasattr(rule, "shape_flaw") for rule in typing.get_args(each)[1:]) and field != "samples"
        ]
        assert not bare, (name, bare)
    assert all(typing.get_args(each)[1:] for each in kinds_of(Layout).values())


def test_s4_a_result_in_parts_has_the_tables_that_were_written(tmp_path):
    home = Folder(tmp_path / "parts")
    parts = [cw.Labels(part.frame()) for part in SIM.answers.shards(2)]
    for number, part in enumerate(parts):
        write_part(home.part(number), part)
    out = tmp_path / "out"
    cw.aggregate(StoredLabels.join(home, 2), "dawid-skene").save(out)
    assert cw.load(out).labels.collect().height == 20
    sums = json.loads(zipfile.ZipFile(out / NAME).read("result.json"))["table_sums"]
    change(out / NAME, out, lambda head, _: head.pop("table_sums"))  # as in format 2 before these checksums
    with pytest.raises(
        ChecksumError, match=r"crowdwise [\d.]+ saved, before tables had checksums\. Fit the answers and"
    ):
        cw.load(out)
    change(out / NAME, out, lambda head, _: head.update(table_sums=sums))
    change(out / NAME, out, lambda head, _: head.update(tables="../parts"))
    with pytest.raises(ChecksumError, match=r"its tables are in '\.\./parts'"):
        cw.load(out)
    (tables,) = out.glob("tables-*")
    change(out / NAME, out, lambda head, _: head.update(tables=tables.name))
    file = next((tables / "labels").iterdir())
    pl.read_parquet(file).drop("tie").write_parquet(file)
    with pytest.raises(ChecksumError, match=f"the tables of tasks in {tables.name} are not those that were written"):
        cw.load(out)
    sums = {f"labels/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest()}
    change(out / NAME, out, lambda head, _: head["table_sums"].update(sums))
    with pytest.raises(ChecksumError, match="of the table labels has other columns than task, label"):
        cw.load(out)


def test_r12_a_result_that_was_saved_before_loading_had_rules_still_loads():
    """The file was saved by commit ceeaeab, which wrote format 2 as well."""
    loaded = cw.load(Path(__file__).parent / "saved-in-format-2.crowdwise")
    assert loaded.labels["label"].to_list() == ["x", "y"]
    assert loaded.answers.tasks.to_list() == ["a", "b"]


def test_s4_parts_on_disk_are_used_again_only_if_they_are_sound(tmp_path):
    home = Folder(tmp_path)
    write_part(home.part(0), SIM.answers)
    assert is_sound(home.part(0))
    file = home.part(0) / "pair.npy"
    pairs = np.load(file)
    for bad in (pairs[:-1], pairs.astype(np.int64), np.full_like(pairs, 10**6), pairs[::-1]):
        np.save(file, bad)
        assert not is_sound(home.part(0))
    np.save(file, pairs)
    assert is_sound(home.part(0))
    ids = home.part(0) / "tasks.arrow"
    good = ids.read_bytes()
    pl.read_ipc(good).select(pl.col("task").reverse()).write_ipc(ids)  # sound ids of other tasks
    assert not is_sound(home.part(0))
    ids.write_bytes(good)
    assert is_sound(home.part(0))
    (home.part(0) / "part.json").write_text("[")
    assert not is_sound(home.part(0))


def test_s4_the_answers_of_a_part_are_counted_only_if_their_numbers_are_right(monkeypatch, tmp_path):
    """Counting 2**31 - 1 different pairs would take 16 GB."""
    home = Folder(tmp_path)
    write_part(home.part(0), SIM.answers)
    file = home.part(0) / "pair.npy"
    np.save(file, np.full_like(np.load(file), 2**31 - 1))
    monkeypatch.setattr(Layout, "flaw", property(lambda layout: pytest.fail("it was counted")))
    assert not is_sound(home.part(0))


@pytest.mark.parametrize("gold", [[], [1], [1, 2, 3], "x"], ids=str)
def test_s4_parts_with_other_counts_of_gold_are_made_again(gold, tmp_path):
    SIM.answers.frame().write_csv(tmp_path / "answers.csv")

    def read() -> int:
        source = Source((tmp_path / "answers.csv",), "csv", None, None, None)
        return split_labels(source, None, tmp_path / "parts", {}, parts=2).n_answers

    assert read() == len(SIM.answers)
    file = tmp_path / "parts" / "parts.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"gold": gold}))
    assert read() == len(SIM.answers)
    assert json.loads(file.read_text())["gold"] is None


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    left = iter(range(3))
    with pytest.raises(Interrupted) as broken:
        cw.aggregate(SIM.answers, "dawid-skene", run=cw.Run(stop=lambda: next(left, None) is None))
    return write_checkpoint(tmp_path / "checkpoint.crowdwise", broken.value.checkpoint)


RESUMED = {
    "params": ("0.state.params.rows", lambda v: v[:-1], r"params.rows has the shape \(14, 3\); it must be \(15, 3\)"),
    "hits": ("0.state.hits", lambda v: v[None], "hits has 2 axes; it must have 1"),
    "trace": ("0.loop.trace", lambda v: v[:, :1], r"loop.trace has the shape"),
    "done": ("0.loop.done", lambda v: v + 7, "it has 3 iterations"),
}


@pytest.mark.parametrize(("name", "edit", "said"), RESUMED.values(), ids=RESUMED)
def test_s4_a_crafted_checkpoint_is_refused(name, edit, said, checkpoint, tmp_path):
    change(checkpoint, tmp_path, array(name, edit))
    crafted = Checkpoint(*read_checkpoint(checkpoint))
    with pytest.raises(CheckpointError, match=f"the checkpoint is damaged: .*{said}.*Omit resume= to start from the"):
        cw.aggregate(SIM.answers, "dawid-skene", run=cw.Run(resume=crafted))


def test_s4_what_a_checkpoint_lacks_is_said(checkpoint):
    stages, mark, seconds = read_checkpoint(checkpoint)
    del stages["iteration"]["state.unchanged"]
    with pytest.raises(CheckpointError, match=r"from the checkpoint \(KeyError: 'unchanged'\)\. Omit"):
        cw.aggregate(SIM.answers, "dawid-skene", run=cw.Run(resume=Checkpoint(stages, mark, seconds)))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_s4_a_checkpoint_that_leads_to_no_result_is_refused():
    left = iter(range(3))
    with pytest.raises(Interrupted) as broken:
        cw.aggregate(SIM.answers, "pooled", run=cw.Run(stop=lambda: next(left, None) is None))
    checkpoint = broken.value.checkpoint
    checkpoint.stages["iteration"]["state.params.found"][1:4] = 1e100  # which the rules allow
    with pytest.raises(CheckpointError, match=r"from the checkpoint \(ValueError: posterior has the value .*\)\. Omit"):
        cw.aggregate(SIM.answers, "pooled", run=cw.Run(resume=checkpoint))


def test_s4_a_checkpoint_of_other_types_is_refused(checkpoint, tmp_path):
    change(checkpoint, tmp_path, lambda head, _: head.update(seconds="1"))
    with pytest.raises(ChecksumError, match="is not a complete saved checkpoint: seconds is '1'"):
        read_checkpoint(checkpoint)


def test_r5_too_little_memory_to_load_is_said(tmp_path):
    with pytest.raises(MemoryNeedError, match="there is not enough memory to load here"), complete("here", "result"):
        raise MemoryError


def test_s4_streams_are_checked(tmp_path):
    cw.LabelStream().update(SIM.answers.frame()).save(tmp_path)
    file = tmp_path / "stream.crowdwise"
    good = file.read_bytes()
    for name, edit, said in (
        ("answers", put(0, 77), "its answers are by workers, or of classes, that there are not"),
        ("size", put(0, 999), "its tasks have other answers than there are"),
        ("answers", lambda v: v[::-1], "its answers are not in the order of their workers"),
        ("rows.answers", put(0, 99), "what was learned does not belong to its answers"),
        ("Z", put(0, 7), "Z has the value 7; it must be from 0 to 1"),
    ):
        file.write_bytes(good)
        change(file, tmp_path, array(name, edit))
        with pytest.raises(ChecksumError, match=said):
            cw.LabelStream.load(tmp_path)
    file.write_bytes(good)
    change(file, tmp_path, lambda head, _: head["values"]["reading"].update(repeats="x"))
    with pytest.raises(ChecksumError, match="it does not say how tables are read"):
        cw.LabelStream.load(tmp_path)
    file.write_bytes(good)
    change(file, tmp_path, lambda head, _: head.update(notes=[]))
    with pytest.raises(ChecksumError, match="its notes have no names"):
        cw.LabelStream.load(tmp_path)


COMMANDS = dict.fromkeys(("report", "workers", "tasks", "next", "inspect", "agreement"), ()) | {
    "plan": ("--target", 0.9),
    "export": ("--to", "argilla", "--out", "records.json"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_s4_commands_refuse_a_crafted_result(name, saved, command, tmp_path):
    change(saved / NAME, tmp_path, array("answers.layout.pair", put(0, 10**6)))
    status, _, err = command(name, tmp_path, *COMMANDS[name])
    assert status == 1, err
    assert "answers.layout.pair has the value 1000000; it must be from 0 to 14" in " ".join(err.split())


def test_s4_resume_refuses_a_crafted_checkpoint(command, table, checkpoint, tmp_path):
    frame = SIM.answers.frame()
    answers = table(frame.write_csv())
    out = checkpoint.parent
    change(checkpoint, out, lambda head, _: head.update(mark=[]))
    status, _, err = command("aggregate", answers, "--model", "dawid-skene", "--out", out, "--resume")
    assert status == 1
    assert "is not a complete saved checkpoint: mark is []" in " ".join(err.split())


def test_s4_watch_refuses_notes_that_it_did_not_write(command, tmp_path):
    answers, out = tmp_path / "answers", tmp_path / "out"
    answers.mkdir()
    SIM.answers.frame().write_csv(answers / "one.csv")
    words = ["watch", answers, "--out", out, "--once"]
    status, _, err = command(*words)
    assert status == 0, err
    change(out / "stream.crowdwise", out, lambda head, _: head["notes"].update(taken={"one.csv": "x"}))
    status, _, err = command(*words)
    assert status == 1
    assert "stream.crowdwise does not say which files were read. Give another --out" in " ".join(err.split())


def test_s4_curves_beside_a_result_are_checked(command, tmp_path):
    cw.aggregate(SIM.answers, "dawid-skene").save(tmp_path)
    pl.DataFrame(
        {"method": ["a"], "auc": [7.0], "threshold": [0.5], "false_positive": [0.0], "true_positive": [1.0]}
    ).write_csv(tmp_path / "roc.csv")
    sums = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("roc.csv", NAME)}
    (tmp_path / "crowdwise.json").write_text(json.dumps({"files": sums}))
    status, _, err = command("report", tmp_path)
    assert status == 1
    assert "roc.csv is not a complete saved table of ROC curves: it has shares that cannot be" in " ".join(err.split())


@pytest.mark.parametrize("size", [1e-320, 1e-101, 1e13, 1e308])
def test_d30_settings_with_which_nothing_is_finite_are_refused(size: float) -> None:
    with pytest.raises(ParameterError, match=r"must not be above 1e\+12 or closer to 0 than 1e-100"):
        cw.aggregate(cw.Labels(["t"], ["w"], ["x"]), "mace", honesty=size)
    with pytest.raises(ParameterError, match=r"fuzziness is 101.0; it must be a number above 1 and at most 100"):
        cw.FuzzyCMeans(fuzziness=101.0)


@pytest.mark.parametrize("size", [1e-100, 1e12])
@pytest.mark.parametrize("name", cw.models("labels")["name"].to_list())
def test_d30_results_with_the_most_extreme_settings_load(name: str, size: float, tmp_path: Path) -> None:
    votes = cw.Labels(list("aabbccdd"), list("uvuvuvuv"), list("xyxxyyxy"))
    for each in fields(cw.model(name)):
        if isinstance(each.default, float):
            try:
                result = cw.aggregate(votes, name, **{each.name: size})
            except ParameterError:
                continue
            assert cw.load(result.save(tmp_path / each.name)).labels.equals(result.labels)


def saved_of_every_sort(folder: Path) -> dict[str, tuple[Path, Callable[[Path], object], str]]:
    """Return what is saved, what loads it, and how this is said."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    fitted = cw.CrowdClassifier().fit(X, SIM.answers, SIM.answers.tasks.to_list())
    for name in ("result", "classifier", "stream"):
        (folder / name).mkdir()
    cw.aggregate(SIM.answers, "majority-vote").save(folder / "result")
    fitted.save(folder / "classifier")
    cw.LabelStream().save(folder / "stream")
    return {
        "result": (folder / "result", cw.load, "In Python, crowdwise.load loads it"),
        "classifier": (folder / "classifier", cw.learn.load, "In Python, crowdwise.learn.load loads it"),
        "stream": (
            folder / "stream",
            cw.LabelStream.load,
            "In Python, load of crowdwise.LabelStream or crowdwise.ClickStream loads it",
        ),
    }


def test_r12_a_file_or_folder_of_another_sort_says_what_loads_it(tmp_path):
    sorts = saved_of_every_sort(tmp_path)
    for held, (folder, _, advice) in sorts.items():
        for wanted, (_, load, _) in sorts.items():
            if wanted == held:
                assert load(folder) is not None
                continue
            with pytest.raises(ChecksumError) as of_file:
                load(folder / f"{held}.crowdwise")
            assert f"contains a saved {held}, not a saved {wanted}. {advice}" in str(of_file.value)
            with pytest.raises(FileError) as of_folder:
                load(folder)
            assert f"No such file or directory. The folder has a saved {held}. {advice}" in str(of_folder.value)


def test_r12_a_file_that_holds_what_no_version_saves_is_refused(saved, checkpoint, tmp_path):
    with pytest.raises(
        ChecksumError, match=r"contains a saved checkpoint, not a saved result\. Continue the fit with res"
    ):
        cw.load(checkpoint)
    for odd in ("poem", ["result"], None):
        change(saved / NAME, tmp_path, lambda head, _, odd=odd: head.update(holds=odd))
        with pytest.raises(ChecksumError) as caught:
            cw.load(tmp_path)
        assert f"contains {odd!r}, not a saved result" in str(caught.value)
