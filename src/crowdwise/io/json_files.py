"""JSON files read one record at a time, so that memory is bounded by the largest record."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import FileError
from .opening import first_bytes, open_bytes

HEAD_BYTES = 1 << 22  # of a file that is looked at to recognise its format
HEAD_RECORDS = 20
MAX_RECORD_BYTES = 1 << 28  # of one record
MAX_OBJECT_BYTES = 1 << 28  # of a file with one object, which is read as a whole
BETWEEN = re.compile(r"\s*[\[,]\s*")  # records of a list
MAX_DIGITS = 4300  # of a whole number; Python converts no more, at which ijson's parser in C ends the process
LONG_NUMBER = re.compile(rb"[\s:,\[-]\d{%d}" % MAX_DIGITS)
MAX_DEPTH = 500  # of lists and objects in one another


class _Noting(dict[str, Any]):
    """An object of JSON that notes a key which occurs twice. It raises no exception: ijson's parser in C fills it."""

    any_twice = False  # whether any object has one

    def __setitem__(self, key: str, value: Any) -> None:
        if key in self:
            self.twice = key
            type(self).any_twice = True
        super().__setitem__(key, value)


class NotJsonError(ValueError):
    """JSON that Python could read, but that is not valid; `advice` is what to write instead."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.advice = advice


def _twice(key: str) -> NotJsonError:
    return NotJsonError(f"the key {key!r} occurs twice in one object", "Remove one of the two, or rename it")


def _check_unique(value: Any) -> None:
    """Raise NotJsonError if a key occurs twice in one object."""
    if hasattr(value, "twice"):
        raise _twice(value.twice)
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        _check_unique(each)


class _Counted:
    """A file that counts what is read since the last record, and skips a byte order mark."""

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name, self.since, self.begun = file, name, 0, False
        self.end = b""  # of what was read

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.file.read(size)
        if not self.begun and size != 0:
            self.begun, data = True, data.removeprefix(codecs.BOM_UTF8) or self.file.read(size)
        self.since += len(data)
        self.end += data
        if LONG_NUMBER.search(self.end):
            raise FileError(f"{self.name} has a number of more than {MAX_DIGITS} digits. Write it as text, in quotes")
        self.end = self.end[-MAX_DIGITS - 1 :]
        if self.since > MAX_RECORD_BYTES:
            raise FileError(f"{self.name} has a record of more than {MAX_RECORD_BYTES // 10**6} MB, which is not read")
        return data


def json_head(path: Path, allowed: int | None = None) -> Any:
    """Return the beginning of the value in a JSON file: the first records of a list, or an object with its first
    entries; None if it is not JSON."""
    import ijson
    from ijson.common import ObjectBuilder

    data = first_bytes(path, HEAD_BYTES, allowed).removeprefix(codecs.BOM_UTF8)
    if LONG_NUMBER.search(data):
        return None
    builder, depth, records = ObjectBuilder(), 0, 0
    try:
        for event, value in ijson.basic_parse(_Bytes(data)):
            depth += (event in ("start_map", "start_array")) - (event in ("end_map", "end_array"))
            if depth > MAX_DEPTH:
                return None
            builder.event(event, value)
            records += depth == 1 and event in ("end_map", "end_array")
            if records >= HEAD_RECORDS:
                break
    except (ijson.JSONError, ValueError, OverflowError, UnicodeDecodeError):
        pass  # the end of what was read, or of what is valid
    return getattr(builder, "value", None)


class _Bytes:
    """Bytes as a file; ijson would take them for the name of something else."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def read(self, size: int = -1) -> bytes:
        size = len(self.data) if size < 0 else min(size, 1 << 16)
        piece = self.data[self.at : self.at + size]
        self.at += len(piece)
        return piece


def json_records(path: Path, allowed: int | None = None) -> Iterator[Any]:
    """Yield the records of a JSON list; damage raises FileError."""
    import ijson

    count = 0
    object_type: Any = type("Noting", (_Noting,), {})  # of this file
    with open_bytes(path, allowed) as file:
        counted = _Counted(file, path.name)
        try:
            for record in ijson.items(counted, "item", map_type=object_type):
                if object_type.any_twice:
                    _check_unique(record)
                count, counted.since = count + 1, 0
                yield record
        except FileError:
            raise
        except (ijson.JSONError, ValueError, OverflowError, UnicodeDecodeError, RecursionError) as error:
            raise invalid(path.name, f"after record {count}", error) from error
        except OSError as error:
            raise FileError(f"{path.name} cannot be read to its end: {error.strerror or error}") from error


def json_object(path: Path, allowed: int | None = None) -> Any:
    """Return the value of a JSON file that is read as a whole."""
    with open_bytes(path, allowed) as file:
        data = file.read(MAX_OBJECT_BYTES + 1)
    if len(data) > MAX_OBJECT_BYTES:
        raise FileError(
            f"{path.name} holds one JSON object of more than {MAX_OBJECT_BYTES // 10**6} MB, which is not read. Write "
            "a list of records, or one record per line"
        )
    try:
        return decoded(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise invalid(path.name, "", error) from error


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a key that occurs twice raises NotJsonError."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _twice(twice)
    return found


def _no_constant(name: str) -> Any:
    raise NotJsonError(f"{name} is not JSON", "Write null instead, or leave the key out")


DECODER = json.JSONDecoder(object_pairs_hook=unique, parse_constant=_no_constant)


def decoded(text: str) -> Any:
    """Return the value of JSON; what is not valid, or not Unicode, raises ValueError."""
    value = DECODER.decode(text)
    if "\\u" in text:
        _check_unicode(value)
    return value


def _check_unicode(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        lone = error.object[error.start : error.start + 1]
        raise NotJsonError(f"the lone surrogate {lone!a} is no character", "Correct the text") from None


def refused_line(data: bytes) -> int | None:
    """Return the line on which the record of a list begins that is no valid JSON; None if there is none."""
    text, at = data.decode("utf-8-sig", errors="replace"), 0
    while (found := BETWEEN.match(text, at)) is not None:
        at = found.end()
        try:
            value, at = DECODER.raw_decode(text, at)
            _check_unicode(value)
        except json.JSONDecodeError:
            return None
        except (ValueError, RecursionError):
            return text.count("\n", 0, found.end()) + 1
    return None


def invalid(name: str, where: str, error: Exception) -> FileError:
    """Return the error for JSON that cannot be read."""
    return FileError(f"{name}: invalid JSON{' ' if where else ''}{where}: {explained(error)}")


def explained(error: Exception, advice: str = "Write or download it again") -> str:
    """Return why JSON cannot be read, and what to do: what the error says itself, or the advice."""
    return f"{reason(error)}. {getattr(error, 'advice', advice)}"


def reason(error: Exception) -> str:
    """Return why JSON cannot be read."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    first = error.args[0] if error.args else ""
    text = first.decode(errors="replace") if isinstance(first, bytes) else str(first)
    first_line = text.partition("\n")[0]  # further lines quote the file, which may hold personal data
    return " ".join(first_line.split())[:200].rstrip(".")
