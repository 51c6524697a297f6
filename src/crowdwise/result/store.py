"""Results and checkpoints on disk: one file with JSON, Parquet and safetensors parts, all with checksums. No pickle.

The file is an uncompressed zip, so that one rename replaces it atomically. `result.json` lists every other part with
its SHA-256; the zip stores a CRC of `result.json` itself. Any dataclass of arrays, ids, tables and plain values can be
stored, so a new kind of answers needs no code here.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import secrets
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..answers.base import Answers
from ..errors import ChecksumError, DataError, FileError, ParameterError, option
from ..forks import refuse_lost_threads
from .base import BaseResult
from .files import unwritable, write_whole
from .outputs import settle
from .split import TASK_TABLES, SavedTables, SplitResult, SummaryOfLabels, TaskTables, saved_tables, table_sums
from .stored import (
    ARRAYS,
    Parts,
    Stored,
    UnsoundError,
    as_json,
    as_parquet,
    complete,
    conforms,
    load_arrays,
    loadable,
)

if TYPE_CHECKING:
    from ..engine import Checkpoint, Model

FORMAT = 2
NAME = "result.crowdwise"
TABLES = "tables"  # folder of the tables of a result in parts
LOADERS = {  # by what a file holds: what to do with it
    "result": "In Python, crowdwise.load loads it",
    "classifier": "In Python, crowdwise.learn.load loads it",
    "stream": "In Python, load of crowdwise.LabelStream or crowdwise.ClickStream loads it",
    "checkpoint": f"Continue the fit with {option('resume')}",
}
NOT_STORED = ("answers", "model", "task_tables")
ENDING = ".crowdwise"
Find = Callable[[str, str], type["Model[Any, Any]"]]  # name and kind of a model -> its class
Read = Callable[[Mapping[str, Any], Mapping[str, bytes]], object]  # loads a header and parts


def place(path: Path, name: str = NAME) -> Path:
    """Return the file of a result: `path` itself if it ends in .crowdwise, else a file in that folder."""
    return path if path.suffix == ENDING else path / name


def write(result: BaseResult, path: Path) -> Path:
    """Save a result, and return the path of the file."""
    return pack(place(path), "result", *parts_of(result), as_saved(result))


def write_split(result: SplitResult, folder: Path) -> Path:
    """Save a result in parts to a folder. The tables of tasks come first, under names of their own, so that an earlier
    result in the folder stays whole until its file is replaced."""
    if folder.suffix == ENDING:
        raise FileError(f"a result in parts is saved to a folder, not to one file ({folder}). Name a folder")
    head, parts = parts_of(result)
    settle(folder)
    stamp = f"{TABLES}-{secrets.token_hex(4)}"
    new = folder / stamp
    try:
        new.mkdir(parents=True)
        for name in TASK_TABLES:
            result.task_tables.write(name, new)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise unwritable(new, error, "; an existing result was not changed") from error
    head |= {"tables": stamp, "table_sums": table_sums(new)}
    try:
        saved = pack(place(folder), "result", head, parts, as_saved(result))
    except DataError:
        shutil.rmtree(new, ignore_errors=True)
        raise
    for old in folder.glob(f"{TABLES}-*"):
        if old != new:
            shutil.rmtree(old, ignore_errors=True)
    return saved


def parts_of(result: BaseResult) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the header and the parts of a result."""
    refuse_lost_threads()
    parts = Parts()
    answers_type = SummaryOfLabels if result.in_parts else result.answers
    for field in fields(answers_type):
        parts.add(f"answers.{field.name}", getattr(result.answers, field.name))
    for field in fields(result):
        if field.name not in NOT_STORED:
            parts.add(field.name, getattr(result, field.name))
    model = {"kind": result.model.kind, "name": result.model.name, "settings": plain_settings(result.model.settings())}
    return {"model": model, "values": parts.plain}, parts.files()


def read(path: Path, find: Find) -> BaseResult:
    """Load a result; `find(name, kind)` returns the class of a model."""
    file = place(path)
    head, files = unpack(file, "result")
    with complete(file, "result"):
        result: BaseResult = result_of(head, files, find, partial(_tables_in, file.parent))
    return result


def as_saved(result: BaseResult) -> Read:
    """Return what loads a result that is about to be saved; the tables of tasks of one in parts are checked as they are
    loaded."""

    def again(head: Mapping[str, Any], files: Mapping[str, bytes]) -> Any:
        tables = (lambda head, n_tasks: result.task_tables) if isinstance(result, SplitResult) else None
        return result_of(head, files, lambda name, kind: type(result.model), tables)

    return again


def _tables_in(folder: Path, head: Mapping[str, Any], n_tasks: int) -> SavedTables:
    """Return the tables of a result in parts."""
    if "table_sums" not in head:  # as in files of format 2 that were saved before these checksums
        by = head["values"]["versions"]["crowdwise"]
        raise ChecksumError(
            f"{folder} has a result in parts that crowdwise {by} saved, before tables had checksums. Fit the answers "
            "and save the result again"
        )
    stamp = head["tables"]
    if not (isinstance(stamp, str) and re.fullmatch(TABLES + "-[0-9a-f]{8}", stamp)):
        raise UnsoundError(f"its tables are in {stamp!r:.80}")
    return saved_tables(folder / stamp, head["table_sums"], n_tasks)


def result_of(
    head: Mapping[str, Any],
    files: Mapping[str, bytes],
    find: Find,
    tables: Callable[[Mapping[str, Any], int], TaskTables] | None = None,
) -> Any:
    """Return a result from the output of `parts_of`; `tables` returns those of tasks, of a result in parts."""
    refuse_lost_threads()
    stored = Stored(head, files)
    made_by = model_of(head["model"], find)
    answers_type, result_type, more = made_by.answers_type, made_by.result_type, dict[str, Any]()
    if tables is not None and "tables" in head and made_by.kind == "labels":
        answers_type, result_type = SummaryOfLabels, SplitResult
        more["task_tables"] = tables(head, stored.get("answers.n_tasks", int))
    answers = answers_type.of(**stored.fields(answers_type, "answers."))
    values = stored.fields(result_type, but=NOT_STORED, params=made_by.params_type)
    result = result_type(answers=stored.made("answers", answers), model=made_by, **values, **more)
    stored.made("the result", result)
    stored.settle()
    return result


def model_of(about: Any, find: Find) -> Model[Any, Any]:
    """Return a model from its kind, name and settings."""
    if not (isinstance(about, dict) and conforms((about["name"], about["kind"]), tuple[str, ...])):
        raise UnsoundError("its model has no name")
    model = find(about["name"], about["kind"])
    try:
        return model(**read_settings(about["settings"]))
    except ParameterError as error:
        raise UnsoundError(str(error)) from error


def pack(path: Path, holds: str, about: Mapping[str, Any], parts: Mapping[str, bytes], read: Read) -> Path:
    """Write the header and the parts as one file with checksums. `read` is what loads them, by the declared rules: what
    it would refuse is not written."""
    with loadable(path, holds):
        text = as_json(about)
        read(json.loads(text), parts)
    settle(path.parent)
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}
    head = as_json({"format": FORMAT, "holds": holds, "sha256": sums, **about})

    def fill(file: Any) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in {"result.json": head, **parts}.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)

    return write_whole(path, fill)


def unpack(path: Path, holds: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read a file written by `pack`, or raise an error that says what is wrong with it."""
    settle(path.parent)
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        advice = _beside(path, holds) or f"Give the folder or file of a saved {holds}"
        raise FileError(f"no saved {holds} at {path}: {why}. {advice}") from error
    with complete(path, holds):
        parts = _members(data)
        head = json.loads(parts.pop("result.json"))
        _check_head(head, holds, path)
        sums = {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}
        if not isinstance(head["sha256"], dict) or head["sha256"].keys() != sums.keys():
            raise UnsoundError("its parts are not those that it lists")
        for name, wanted in head["sha256"].items():
            if sums[name] != wanted:
                raise ChecksumError(f"{path}: the checksum of part {name} differs from the one that was written")
    return head, parts


def _beside(path: Path, holds: str) -> str:
    """Return what else is saved where a file is missing, and what loads it, or ""."""
    others = (other for other in LOADERS if other != holds and (path.parent / f"{other}{ENDING}").is_file())
    return next((f"The folder has a saved {other}. {LOADERS[other]}" for other in others), "")


def _members(data: bytes) -> dict[str, bytes]:
    """Return the members of a zip that is not compressed, by name; they take no more memory than the zip."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED or each.file_size != each.compress_size for each in members):
            raise UnsoundError("a part of it is compressed")
        if sum(each.file_size for each in members) > len(data):
            raise UnsoundError("its parts are larger than the file")
        if len({each.filename for each in members}) < len(members):
            raise UnsoundError("it has a part twice")
        return {each.filename: archive.read(each) for each in members}


def _check_head(head: Any, holds: str, path: Path) -> None:
    if not isinstance(head, dict):
        raise ChecksumError(f"{path} does not contain a saved {holds}")
    as_json(head)
    if head.get("format") != FORMAT:
        raise ChecksumError(
            f"{path} has format {head.get('format')!r}; this version of crowdwise reads format {FORMAT}. A result "
            "saved by another version must be fitted and saved again"
        )
    found = head.get("holds")
    if found != holds:
        advice = LOADERS.get(str(found), "")
        what = f"a saved {found}" if advice else repr(found)
        raise ChecksumError(f"{path} contains {what}, not a saved {holds}. {advice}".removesuffix(". "))


def plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as JSON values; a mapping becomes a list of pairs, so that ids keep their type."""
    return {key: {"pairs": list(map(list, v.items()))} if isinstance(v, Mapping) else v for key, v in settings.items()}


def read_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Invert `plain_settings`: lists of pairs become mappings, other lists tuples."""

    def one(value: Any) -> Any:
        if isinstance(value, dict):
            return {pair[0]: pair[1] for pair in value["pairs"]}
        return tuple(value) if isinstance(value, list) else value

    return {key: one(value) for key, value in settings.items()}


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> Path:
    """Save the checkpoint of an interrupted fit."""
    from safetensors.numpy import save

    stages, mark, seconds = checkpoint
    arrays = {
        f"{number}.{name}": np.asarray(array, order="C")
        for number, stage in enumerate(stages.values())
        for name, array in stage.items()
    }
    about = {"mark": mark, "stages": list(stages), "seconds": seconds}
    return pack(path, "checkpoint", about, {ARRAYS: save(arrays)}, _checkpoint_of)


def read_checkpoint(path: Path) -> tuple[dict[str, dict[str, Any]], str, float]:
    """Return the fields of an `engine.Checkpoint`: its stages, the mark of the fit that it belongs to, and seconds."""
    head, parts = unpack(path, "checkpoint")
    with complete(path, "checkpoint"):
        return _checkpoint_of(head, parts)


def _checkpoint_of(head: Mapping[str, Any], parts: Mapping[str, bytes]) -> tuple[dict[str, dict[str, Any]], str, float]:
    for name, kind in {"stages": list[str], "mark": str, "seconds": float}.items():
        if not conforms(head[name], kind):
            raise UnsoundError(f"{name} is {head[name]!r:.80}")
    stages: dict[str, dict[str, Any]] = {stage: {} for stage in head["stages"]}
    for key, array in load_arrays(parts[ARRAYS]).items():
        number, name = key.split(".", 1)
        stages[head["stages"][int(number)]][name] = array
    return stages, head["mark"], float(head["seconds"])


def fingerprint(*values: Any) -> str:
    """Return a digest of answers (without their intake), arrays, ids and plain values."""
    digest = hashlib.sha256()
    for value in values:
        for part in value.identity() if isinstance(value, Answers) else [value]:
            _digest(digest, part)
    return digest.hexdigest()


def _digest(digest: Any, value: Any) -> None:
    if isinstance(value, pl.Series | pl.DataFrame):
        digest.update(as_parquet(pl.DataFrame(value)))
        return
    for part in value if isinstance(value, tuple) else (value,):
        array = np.asarray(part)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(repr(array.tolist()).encode() if array.dtype.kind in "OUS" else np.ascontiguousarray(array).data)
