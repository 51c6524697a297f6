"""S13: personal data of golden files, and names of files that are names of workers, appear in nothing that is written:
converted and exported files, saved results with their pages, and what `inspect` prints."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from golden_exports import FILES, FIRST, GOLDEN, Case

import crowdwise as cw
from crowdwise.cli import main
from crowdwise.io import returned
from crowdwise.io.conversion import targets
from crowdwise.io.formats import all_formats

ADDRESS = re.compile(rb"[\w.+-]+@[\w-]+\.[\w.-]+|\b\d{1,3}(?:\.\d{1,3}){3}\b")
BOB, ANN = "secret.bob@example.org", "secret.ann@example.org"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Input(NamedTuple):
    """A file whose personal data must not be written, and where they are in it."""

    file: str
    place: str  # "content", "name" (of the file), "folder" (of the file), "members" (of a zip or a folder)
    workers: tuple[str, ...] = (BOB, ANN)  # names of files

    def __str__(self) -> str:
        return f"{self.file}-{self.place}"

    @property
    def case(self) -> Case:
        return next(case for case in FIRST if case.file == self.file)

    def path(self, folder: Path) -> Path:
        """Write the file, and return what is given to Crowdwise."""
        golden = GOLDEN / self.file
        if self.place == "content":
            return Path(shutil.copy(golden, folder))
        if self.place == "name":
            return Path(shutil.copy(golden, folder / f"{self.workers[0]}{golden.suffix}"))
        if self.place == "folder":
            (folder / self.workers[0]).mkdir()
            return Path(shutil.copy(golden, folder / self.workers[0] / "annotations.xml"))
        if golden.suffix == ".zip":
            with zipfile.ZipFile(golden) as old, zipfile.ZipFile(folder / "export.zip", "w") as new:
                for worker, name in zip(self.workers, old.namelist(), strict=True):
                    new.writestr(f"{worker}.jsonl", old.read(name))
            return folder / "export.zip"
        (folder / "jobs").mkdir()
        for worker in self.workers:
            shutil.copy(golden, folder / "jobs" / f"{worker}{golden.suffix}")
        return folder / "jobs"


NAMED = ("cvat-points.xml", "cvat-boxes.xml", "cvat-tags.xml", "cvat-tagsets.xml", "cvat-video.xml")
NAMED += ("doccano-user.jsonl", "doccano-csv.csv")
HELD = tuple(name for name in FILES if (GOLDEN / name).is_file() and ADDRESS.search((GOLDEN / name).read_bytes()))
CONTENT = tuple(Input(name, "content") for name in HELD if name not in NAMED)  # those are read under other names
MEMBERS = tuple(Input(name, "members") for name in ("doccano.zip", "doccano-bbox.zip", "cvat-points.xml"))
WORKERS = (*(Input(name, "name") for name in NAMED), Input("cvat-points.xml", "folder"))
PLAIN = ("secretbob", "secretann")  # names that are no addresses, of which only a key makes digests


def keyed(inputs: Iterable[Input]) -> list[tuple[Input, bool]]:
    """Return inputs without and with a key."""
    return [each for given in inputs for each in ((given, False), (given._replace(workers=PLAIN), True))]


def content(path: Path) -> bytes:
    """Return what can be read in a file, also if it is compressed."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:2] == b"PK":
        with zipfile.ZipFile(path) as archive:
            return b"\n".join(name.encode() + b"\n" + within(archive.read(name)) for name in archive.namelist())
    return within(data)


def within(data: bytes) -> bytes:
    """Return the content of a part of a saved result, or of a file: tables as text."""
    if data[:4] != b"PAR1":
        return data
    return json.dumps(pl.read_parquet(io.BytesIO(data)).to_dict(as_series=False), default=str).encode()


def said(*words: object) -> bytes:
    """Return what `crowdwise ...` prints."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        patch.setattr(sys, "argv", ["crowdwise", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code in (0, 3), out.getvalue()  # 3: not converged
    return out.getvalue().encode()


@functools.cache
def written(given: Input, key: bool, folder: Path) -> dict[str, bytes]:
    """Return all that is written about a file, by where it is written."""
    folder.mkdir()
    path, options = given.path(folder), {k: v for k, v in given.case.options.items() if k in ("question", "sets")}
    options |= {"pseudonymise": folder / "key.txt"} if key else {}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    fast = [] if given.case.kind == "points" else ["--model", "majority-vote"]
    found = {"aggregate": said("aggregate", path, *words, *fast, "--out", folder / "saved")}
    for file in (folder / "saved").iterdir():
        found[f"saved {file.name}"] = content(file)
    for where, arguments in (("file", [path, *words]), ("result", [folder / "saved"])):
        found[f"inspect of the {where}"] = said("inspect", *arguments)
        found[f"inspect --json of the {where}"] = said("inspect", *arguments, "--json")
    found |= dict(converted(path, options, folder / "converted"))
    return found | dict(exported(folder / "saved", folder / "exported"))


def converted(path: Path, options: dict[str, Any], folder: Path) -> Iterator[tuple[str, bytes]]:
    options = {name: value for name, value in options.items() if name != "sets"}
    for to in targets():
        ending = all_formats()[to].converted if to in all_formats() else {"crowd-kit": ".csv"}.get(to, f".{to}")
        try:
            yield f"convert to {to}", content(cw.convert(path, folder / f"{to}{ending}", to, **options).path)
        except cw.errors.DataError as error:
            yield f"convert to {to}", str(error).encode()


def exported(saved: Path, folder: Path) -> Iterator[tuple[str, bytes]]:
    result = cw.load(saved)
    doubtful = returned.doubts(result, 0.9)  # which takes long, and is the same whatever is written
    for to in returned.returnable():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(returned, "doubts", lambda *_: doubtful)
            try:
                cw.export(result, to, folder / to)
            except cw.errors.DataError as error:
                yield f"export to {to}", str(error).encode()
        for file in (folder / to).glob("*"):
            yield f"export to {to}, {file.name}", content(file)


def leaks(given: Input, key: bool, factory: pytest.TempPathFactory) -> set[str]:
    """Return where personal data are written."""
    number = keyed((*CONTENT, *MEMBERS, *WORKERS)).index((given, key))
    folder = factory.getbasetemp() / f"personal-{number}"
    secrets = () if given.place == "content" else given.workers
    return {
        where
        for where, data in written(given, key, folder).items()
        if ADDRESS.search(data) or any(secret.encode() in data for secret in secrets)
    }


def ids(given: Any) -> str:
    return str(given) if isinstance(given, Input) else "key" if given else "no-key"


@pytest.mark.parametrize(("given", "key"), keyed((*CONTENT, *MEMBERS)), ids=ids)
def test_s13_addresses_and_workers_in_a_file_are_written_nowhere(
    given: Input, key: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert leaks(given, key, tmp_path_factory) == set()


PATHS = {"saved report.html", "saved result.crowdwise", "inspect --json of the file", "inspect --json of the result"}


@pytest.mark.parametrize(("given", "key"), keyed(WORKERS), ids=ids)
def test_s13_a_file_named_like_its_worker_is_not_named_in_tables_and_exports(
    given: Input, key: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert leaks(given, key, tmp_path_factory) - PATHS == set()


@pytest.mark.parametrize(("given", "key"), keyed(WORKERS), ids=ids)
def test_s13_a_file_named_like_its_worker_is_not_named_in_results(
    given: Input, key: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert leaks(given, key, tmp_path_factory) & PATHS == set()


def test_s13_what_is_written_is_looked_at(tmp_path_factory: pytest.TempPathFactory) -> None:
    """With addresses kept, they are found in every place that has workers."""
    folder = tmp_path_factory.mktemp("kept")
    path = GOLDEN / "label-studio-min.json"
    said("aggregate", path, "--question", "sent", "--keep", "personal", "--model", "majority-vote", "--out", folder)
    found = {file.name for file in folder.iterdir() if ADDRESS.search(content(file))}
    assert found == {"report.html", "result.crowdwise", "workers.csv"}
    kept = dict(converted(path, {"question": "sent", "keep": "personal"}, folder / "converted"))
    assert all(ADDRESS.search(data) for data in kept.values())
    assert len(kept) == len(targets())
