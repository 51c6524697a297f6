"""Results and checkpoints on disk: one file with JSON, Parquet and safetensors parts, all with checksums. No pickle.

The file is an uncompressed zip, so that one rename replaces it atomically. `result.json` lists every other part with
its SHA-256; the zip stores a CRC of `result.json` itself. Any dataclass of arrays, ids, tables and plain values can be
stored, so a new kind of answers needs no code here.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import secrets
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..answers import Intake
from ..answers.base import Answers
from ..errors import ChecksumError, FileError
from ..forks import refuse_lost_threads
from .base import BaseResult
from .files import shown, write_whole
from .outputs import settle
from .split import TASK_TABLES, SavedTables, SplitResult, SummaryOfLabels

if TYPE_CHECKING:
    from ..engine import Checkpoint, Model

FORMAT = 2
NAME = "result.crowdwise"
TABLES = "tables"  # folder of the tables of a result in parts
NOT_STORED = ("answers", "model", "task_tables")
ENDING = ".crowdwise"
BROKEN = (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError, OSError)
Find = Callable[[str, str], type["Model[Any, Any]"]]  # name and kind of a model -> its class


def place(path: Path, name: str = NAME) -> Path:
    """Return the file of a result: `path` itself if it ends in .crowdwise, else a file in that folder."""
    return path if path.suffix == ENDING else path / name


class Parts:
    """The stored parts of one object: plain values, arrays and tables."""

    def __init__(self) -> None:
        self.plain: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}
        self.tables: dict[str, pl.DataFrame] = {}

    def add(self, name: str, value: Any) -> None:
        """Add a value by its type. Named tuples and mappings of arrays are added field by field."""
        if isinstance(value, np.ndarray):
            self.arrays[name] = value
        elif isinstance(value, pl.Series):
            self.tables[name] = pl.DataFrame({"values": value})
        elif isinstance(value, pl.DataFrame):
            self.tables[name] = value
        elif isinstance(value, Intake):
            self.plain[name] = value.as_dict()
        elif hasattr(value, "_asdict") or (isinstance(value, Mapping) and _holds_arrays(value)):
            items = value._asdict() if hasattr(value, "_asdict") else value
            self.plain[name] = list(items)
            for key, each in items.items():
                self.add(f"{name}.{key}", each)
        else:
            self.plain[name] = value

    def files(self) -> dict[str, bytes]:
        from safetensors.numpy import save

        tensors = {name: np.asarray(array, order="C") for name, array in self.arrays.items()}
        return {"arrays.safetensors": save(tensors)} | {f"{n}.parquet": _parquet(t) for n, t in self.tables.items()}


def _holds_arrays(value: Mapping[str, Any]) -> bool:
    return all(isinstance(each, np.ndarray) for each in value.values())


class Stored:
    """The parts read from a file."""

    def __init__(self, head: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        from safetensors.numpy import load

        self.plain, self.arrays = head["values"], dict(load(files["arrays.safetensors"]))
        self.tables = {name.removesuffix(".parquet"): data for name, data in files.items() if name.endswith(".parquet")}

    def get(self, name: str, kind: Any) -> Any:
        """Return a value; `kind` is the type that its class declares."""
        if name in self.arrays:
            return self.arrays[name]
        if name in self.tables:
            table = pl.read_parquet(io.BytesIO(self.tables[name]))
            return table["values"] if kind is pl.Series else table
        value = self.plain[name]
        if kind is Intake:
            return Intake.from_dict(value)
        if isinstance(value, list) and f"{name}.{value[0] if value else ''}" in {*self.arrays, *self.plain}:
            hints = kinds_of(kind) if hasattr(kind, "_fields") else {}
            items = {key: self.get(f"{name}.{key}", hints.get(key)) for key in value}
            return kind(**items) if hasattr(kind, "_fields") else items
        if isinstance(value, list) and (kind is dict or getattr(kind, "__origin__", None) is dict):
            return {}
        return tuple(value) if isinstance(value, list) else value


def write(result: BaseResult, path: Path) -> Path:
    """Save a result, and return the path of the file."""
    return pack(place(path), "result", *parts_of(result))


def write_split(result: SplitResult, folder: Path) -> Path:
    """Save a result in parts to a folder. The tables of tasks come first, under names of their own, so that an earlier
    result in the folder stays whole until its file is replaced."""
    if folder.suffix == ENDING:
        raise FileError(f"a result in parts is saved to a folder, not to one file ({folder}). Name a folder")
    settle(folder)
    stamp = f"{TABLES}-{secrets.token_hex(4)}"
    new = folder / stamp
    try:
        new.mkdir(parents=True)
        for name in TASK_TABLES:
            result.task_tables.write(name, new)
    except OSError as error:
        shutil.rmtree(new, ignore_errors=True)
        raise FileError(
            f"cannot write {shown(new)}: {error.strerror or error}; an existing result was not changed"
        ) from error
    head, parts = parts_of(result)
    saved = pack(place(folder), "result", head | {"tables": stamp}, parts)
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
    result: BaseResult = result_of(*unpack(place(path), "result"), find, place(path).parent)
    return result


def result_of(head: Mapping[str, Any], files: Mapping[str, bytes], find: Find, folder: Path | None = None) -> Any:
    """Return a result from the output of `parts_of`; `folder` has the tables of a result in parts."""
    refuse_lost_threads()
    stored, about = Stored(head, files), head["model"]
    model = find(about["name"], about["kind"])
    made_by = model(**read_settings(about["settings"]))
    answers_type, result_type, more = model.answers_type, model.result_type, dict[str, Any]()
    if "tables" in head and folder is not None:
        answers_type, result_type = SummaryOfLabels, SplitResult
        more["task_tables"] = SavedTables(folder / head["tables"])
    kinds = kinds_of(result_type) | {"params": model.params_type}
    values = {
        field.name: stored.get(field.name, kinds.get(field.name))
        for field in fields(result_type)
        if field.name not in NOT_STORED
    }
    return result_type(answers=_filled(stored, answers_type), model=made_by, **values, **more)


def _filled(stored: Stored, kind: type[Answers]) -> Answers:
    kinds = kinds_of(kind)
    return kind.of(**{name: stored.get(f"answers.{name}", kinds.get(name)) for name in field_names(kind)})


def field_names(answers: Any) -> list[str]:
    return [field.name for field in fields(answers)]


def kinds_of(cls: type) -> dict[str, Any]:
    """Return the types that a class declares for its fields; None for names imported only for type checking."""
    kinds: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        for name, text in inspect.get_annotations(each).items():
            try:
                kinds[name] = eval(text, vars(sys.modules[each.__module__])) if isinstance(text, str) else text
            except NameError:
                kinds[name] = None
    return kinds


def pack(path: Path, holds: str, about: Mapping[str, Any], parts: Mapping[str, bytes]) -> Path:
    """Write the header and the parts as one file with checksums."""
    settle(path.parent)
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}
    head = {"format": FORMAT, "holds": holds, "sha256": sums, **about}

    def fill(file: Any) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in {"result.json": json.dumps(head, ensure_ascii=False).encode(), **parts}.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)

    return write_whole(path, fill)


def unpack(path: Path, holds: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read a file written by `pack`, or raise an error that says what is wrong with it."""
    settle(path.parent)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(
            f"no saved {holds} at {path}: {error.strerror}. Give the folder or file of a saved {holds}"
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            head = json.loads(archive.read("result.json"))
            _check_head(head, holds, path)
            parts = {name: archive.read(name) for name in head["sha256"]}
        for name, wanted in head["sha256"].items():
            if hashlib.sha256(parts[name]).hexdigest() != wanted:
                raise ChecksumError(f"{path}: the checksum of part {name} differs from the one that was written")
    except BROKEN as error:
        raise ChecksumError(
            f"{path} is not a complete saved {holds}: {error}. It was truncated or changed, or is another file. Save "
            f"the {holds} again"
        ) from error
    return head, parts


def _check_head(head: Any, holds: str, path: Path) -> None:
    if not isinstance(head, dict):
        raise ChecksumError(f"{path} does not contain a saved {holds}")
    if head.get("format") != FORMAT:
        raise ChecksumError(
            f"{path} has format {head.get('format')!r}; this version of crowdwise reads format {FORMAT}. A result "
            "saved by another version must be fitted and saved again"
        )
    if head.get("holds") != holds:
        raise ChecksumError(f"{path} contains {head.get('holds')!r}, not a saved {holds}")


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


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
    return pack(path, "checkpoint", about, {"arrays.safetensors": save(arrays)})


def read_checkpoint(path: Path) -> tuple[dict[str, dict[str, Any]], str, float]:
    """Return the fields of an `engine.Checkpoint`: its stages, the mark of the fit that it belongs to, and seconds."""
    from safetensors.numpy import load

    head, parts = unpack(path, "checkpoint")
    stages: dict[str, dict[str, Any]] = {stage: {} for stage in head["stages"]}
    for key, array in load(parts["arrays.safetensors"]).items():
        number, name = key.split(".", 1)
        stages[head["stages"][int(number)]][name] = array
    return stages, head["mark"], head.get("seconds", 0.0)


def fingerprint(*values: Any) -> str:
    """Return a digest of answers (without their intake), arrays, ids and plain values."""
    digest = hashlib.sha256()
    for value in values:
        for part in value.identity() if isinstance(value, Answers) else [value]:
            _digest(digest, part)
    return digest.hexdigest()


def _digest(digest: Any, value: Any) -> None:
    if isinstance(value, pl.Series | pl.DataFrame):
        digest.update(_parquet(pl.DataFrame(value)))
        return
    for part in value if isinstance(value, tuple) else (value,):
        array = np.asarray(part)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(repr(array.tolist()).encode() if array.dtype.kind in "OUS" else np.ascontiguousarray(array).data)
