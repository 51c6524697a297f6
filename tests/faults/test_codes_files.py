"""Bad files in rarer places: F4, F8, F10, F11 and R12 of the fault list."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import ChecksumError, FileError, Interrupted
from crowdwise.io import opening, read_table, tables
from crowdwise.result.store import write_checkpoint

# ----------------------------------------------------------------------------------------------------------- F4: types


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "tsv"])
def test_f4_ids_of_another_look_far_down_change_no_id_before_them(ending: str, tmp_path: Path) -> None:
    rows = [{"task": str(n // 2), "worker": str(n % 2), "label": "1"} for n in range(20_000)]
    rows += [{"task": "007", "worker": "0x1", "label": "NA"}, {"task": "1e5", "worker": "1", "label": "cat"}]
    path, frame = tmp_path / f"answers.{ending}", pl.DataFrame(rows)
    if ending == "json":
        path.write_text(json.dumps(rows))
    elif ending == "jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, separator="\t" if ending == "tsv" else ",")
    answers = cw.read(path)
    assert answers.intake.warnings == ()
    assert answers.frame().sort("task", "worker").equals(frame.sort("task", "worker"))


# ----------------------------------------------------------------------------------------------- F8: XML in a workbook


def test_f8_entities_in_a_workbook_are_refused(tmp_path: Path) -> None:
    """A workbook is a zip of XML files; the text of this cell would be a gigabyte."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    cells = "".join(f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in ("task", "worker", "label"))
    bomb = "".join(f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in ("t", "w", "&e9;"))
    parts = {
        "_rels/.rels": f'<Relationships xmlns="{package}">'
        f'<Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">'
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<!DOCTYPE w [<!ENTITY e0 "ha">{entities}]><worksheet xmlns="{main}">'
        f"<sheetData><row>{cells}</row><row>{bomb}</row></sheetData></worksheet>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    path = tmp_path / "bomb.xlsx"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(FileError, match=r"bomb\.xlsx is not a complete Excel file: .*entity"):
        cw.read(path)


# ------------------------------------------------------------------------------------- F10: files that are not at rest


def test_f10_a_plain_table_may_come_through_a_pipe(tmp_path: Path, command: Any) -> None:
    text = "task,worker,label\n" + "".join(f"t{n},w{n % 3},x\n" for n in range(20_000))  # more than a pipe holds
    place = tmp_path / "answers.csv"
    os.mkfifo(place)
    writer = threading.Thread(target=place.write_text, args=(text,))
    writer.start()
    status, out, err = command("aggregate", place, "--json")
    writer.join()
    assert status == 0, err
    assert json.loads(out)["answers"] == 20_000


def test_f10_dev_stdin_is_standard_input(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("task,worker,label\nt1,ann,x\nt1,bob,x\n")
    for name in ("/dev/stdin", "-"):
        with (tmp_path / "answers.csv").open() as given:
            words = [sys.executable, "-m", "crowdwise", "inspect", name, "--json"]
            done = subprocess.run(words, stdin=given, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rows_used"] == 2


DEVICES: dict[str, Callable[[Path], Any]] = {
    "answers": cw.read,
    "table": read_table,
    "features": cw.read_features,
    "content": cw.read_content,
    "saved result": cw.load,
    "questions": cw.questions,
}


@pytest.mark.parametrize("name", ["zero", "full", "urandom"])
@pytest.mark.parametrize("reader", DEVICES)
def test_f10_a_device_is_refused(reader: str, name: str) -> None:
    with pytest.raises(FileError, match=rf"/dev/{name} is a device, not a file\. Give a file, a pipe, or - for"):
        DEVICES[reader](Path("/dev") / name)


ENDLESS = """
import os, sys
with open(sys.argv[1], "wb") as pipe:
    while True:
        pipe.write(b"task,worker,label\\n" * 1000)
"""


@pytest.mark.parametrize("reader", ["answers", "table", "features"])
def test_f10_a_pipe_without_an_end_is_refused_at_a_limit(reader: str, tmp_path: Path) -> None:
    def through(message: str, read: Callable[[Path], Any]) -> None:
        writer = subprocess.Popen([sys.executable, "-c", ENDLESS, str(place)], stderr=subprocess.DEVNULL)
        try:
            with pytest.raises(FileError, match=message):
                read(place)
        finally:
            writer.kill()
            writer.wait()

    place = tmp_path / "answers.csv"
    os.mkfifo(place)
    limit = r"answers\.csv gives more than 2 MB and has not ended\. Write it to a file, and give that, or allow"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "MAX_EXPANDED_BYTES", 2_000_000)
        through(limit + r" more: max_expanded='20GB'", DEVICES[reader])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "MAX_DISK_SHARE", 1e-9)
        patch.setattr(tables, "MAX_MEMORY_SHARE", 1e-9)
        where = f"the disk of {tempfile.gettempdir()}" if reader == "answers" else "the memory"
        through(
            rf"gives more than the 0 MB that may be used of {where}\. Write it to a file, and give that$",
            DEVICES[reader],
        )


def test_f10_standard_input_without_an_end_is_refused_at_a_limit() -> None:
    with Path("/dev/zero").open() as given:
        words = [sys.executable, "-m", "crowdwise", "inspect", "/dev/stdin", "--max-expanded", "3MB"]
        done = subprocess.run(words, stdin=given, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert "stdin gives more than 3 MB and has not ended" in done.stderr
    assert "or allow more: --max-expanded 20GB" in done.stderr


READERS: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "answers": (cw.read, ["csv", "parquet", "json", "csv.gz", "zip", "xlsx", "arrow"]),
    "saved result": (cw.load, ["crowdwise"]),
    "content": (cw.read_content, ["csv", "json"]),
    "features": (lambda path: cw.read_features(path, ["t1"]), ["csv", "npz", "parquet"]),
}
UNREADABLE = [(read, ending) for read, endings in READERS.values() for ending in endings]


@pytest.mark.parametrize(("read", "ending"), UNREADABLE)
def test_f10_a_file_that_may_not_be_read_is_refused(
    read: Callable[[Path], Any], ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user would find it; the superuser, who may run the tests, may read every file."""
    path = tmp_path / f"answers.{ending}"
    path.write_text("task,worker,label\nt1,ann,x\n")
    real = io.open

    def forbidden(file: Any, *more: Any, **named: Any) -> Any:
        if str(file) == str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real(file, *more, **named)

    monkeypatch.setattr(io, "open", forbidden)  # as `pathlib` does
    monkeypatch.setattr("builtins.open", forbidden)
    with pytest.raises(FileError, match=r"answers\..*Permission denied"):
        read(path)


# ------------------------------------------------------------------------------------------- F11: larger than memory

MEMORY = 450_000_000  # bytes that the command may use
PEAK = """
import atexit, re, sys
from pathlib import Path
from crowdwise.cli import main
status = Path("/proc/self/status")
atexit.register(lambda: print("peak, in kB:", re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1], file=sys.stderr))
main()
"""


def test_f11_a_table_larger_than_the_memory_is_read_within_it(tmp_path: Path) -> None:
    """A table of 540 MB of long ids, in any order, which take no time to fit."""
    path, out, answers = tmp_path / "answers.csv", tmp_path / "out", 300_000
    pad = "x" * 1800
    with path.open("w") as file:
        file.write("task,worker,label\n")
        for n in range(answers):
            file.write(f"{n * 7919 % answers // 4:05d}{pad},w{n % 23},{'abc'[n // 4 % 3]}\n")
    assert path.stat().st_size > 1.1 * MEMORY
    given = [
        "aggregate",
        path,
        "--model",
        "majority-vote",
        "--duplicates",
        "last",
        "--memory",
        str(MEMORY),
        "--out",
        out,
    ]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, given), "--no-page", "--threads", "1"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"},
    )
    path.unlink()
    assert done.returncode == 0, done.stderr
    assert "are on disk in parts" in done.stderr
    assert 1024 * int(done.stderr.split()[-1]) < MEMORY
    assert pl.scan_csv(out / "labels.csv").select(pl.len()).collect().item() == answers // 4
    shutil.rmtree(out)


# --------------------------------------------------------------------------------- R12: files of other versions by name


def checkpoint(folder: Path) -> Path:
    answers = cw.simulate.crowd(tasks=20, workers=5, seed=1).answers
    with pytest.raises(Interrupted) as broken:
        cw.aggregate(answers, run=cw.Run(stop=lambda: True))
    return write_checkpoint(folder / "checkpoint.crowdwise", broken.value.checkpoint)


def label_stream(folder: Path) -> Path:
    return cw.LabelStream("one-coin").update(cw.simulate.crowd(tasks=20, workers=5, seed=1).answers).save(folder)


def click_stream(folder: Path) -> Path:
    return cw.ClickStream().update(cw.simulate.clicks("E", seed=4).points).save(folder)


def result(folder: Path) -> Path:
    return cw.aggregate(cw.simulate.crowd(tasks=20, workers=5, seed=1).answers).save(folder)


def pairs(folder: Path) -> Path:
    return cw.aggregate(cw.simulate.pinwheel(per_cluster=8, asked=40).pairs, "pair-vote").save(folder)


def classifier(folder: Path) -> Path:
    crowd = cw.simulate.experts(40, seed=3)
    model = cw.learn.CrowdClassifier().fit(crowd.features, crowd.answers, crowd.truth["task"])
    return Path(model.save(folder))


LOADERS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], Any]]] = {
    "result": (result, cw.load),
    "result of pairs": (pairs, cw.load),
    "classifier": (classifier, cw.learn.load),
    "stream of labels": (label_stream, cw.LabelStream.load),
    "stream of clicks": (click_stream, cw.ClickStream.load),
}


@pytest.fixture(scope="module", params=LOADERS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    make, load = LOADERS[request.param]
    return make(tmp_path_factory.mktemp("saved")), load


def renumbered(path: Path, number: object) -> Path:
    """Write a copy of a saved file that says that it has a format of this number."""
    other = path.with_name("other.crowdwise")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, json.dumps(json.loads(data) | {"format": number}) if name == "result.json" else data)
    return other


@pytest.mark.parametrize("number", [1, 3, 99, "2", None, [2]], ids=str)
def test_r12_a_file_of_another_version_is_refused_by_its_number(number: object, saved: tuple[Path, Any]) -> None:
    path, load = saved
    with pytest.raises(ChecksumError) as caught:
        load(renumbered(path, number))
    assert f"other.crowdwise has format {number!r}; this version of crowdwise reads format 2" in str(caught.value)
    load(renumbered(path, 2))


def test_r12_a_checkpoint_of_another_version_is_refused_and_kept(tmp_path: Path, command: Any) -> None:
    cw.simulate.crowd(tasks=20, workers=5, seed=1).save(tmp_path)
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "checkpoint.crowdwise"
    renumbered(checkpoint(tmp_path), 3).replace(file)
    before = file.read_bytes()
    words = ["aggregate", tmp_path / "answers.csv", "--no-page", "--out", tmp_path / "out"]
    status, _, err = command(*words, "--resume")
    assert status == 1
    assert "checkpoint.crowdwise has format 3; this version of crowdwise reads format 2" in err
    assert file.read_bytes() == before
    assert command(*words)[0] == 0
