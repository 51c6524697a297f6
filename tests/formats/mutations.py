"""Damaged copies of the golden exports: bytes, JSON values, cells and XML are changed at random, by a seed."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

DEEP: list[Any] = [[[[[[[[]]]]]]]]
# Values of other types than a reader expects, and texts that mean something to parsers.
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 1e308, -1e308, 10**30, 2**63, "", " ", "x", "NaN", "null", "1e400", "-1",
    "2026-13-45T99:99:99Z", "\ud800", "\x00", "a\nb", "🙂", [], {}, [[]], [{}], [None], [0], ["x", "y"], {"x": None},
    {"labels": []}, {"x": 1, "y": "z"}, {"label": {}}, "{", "[{]", '[{"a": 1}]', DEEP, "x" * 5_000,
)  # fmt: skip
ODD_BYTES = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"\n", b"\r", b",", b"\t", b"{", b"}", b"[", b"]", b"<", b"&")


def mutant(name: str, data: bytes, seed: int) -> bytes:
    """Return a damaged copy of a file."""
    rng = random.Random(f"{name} {seed}")
    ending = name.rpartition(".")[2]
    if ending == "zip":
        return _zip(data, rng) if rng.random() < 0.8 else _bytes(data, rng)
    change = CHANGES.get(ending, _bytes)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = (_bytes if rng.random() < 0.3 else change)(data, rng)
    return data


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, delete, duplicate, move or insert bytes."""
    if not data:
        return data
    at = rng.randrange(len(data))
    chunk = slice(at, at + rng.choice((1, 4, 30, 300)))
    kind = rng.randrange(6)
    if kind == 0:
        flipped = bytearray(data)
        for _ in range(rng.choice((1, 1, 8))):
            flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if kind == 1:
        return data[: chunk.start] + data[chunk.stop :]
    if kind == 2:
        return data[: chunk.stop] + data[chunk] + data[chunk.stop :]
    if kind == 3:
        to = rng.randrange(len(data))
        return data[:to] + data[chunk] + data[to:]
    if kind == 4:
        return data[:at] + rng.choice(ODD_BYTES) + data[at:]
    return data[:at]


def _value(value: Any, rng: random.Random) -> Any:
    """Change one place in a JSON value."""
    nested = isinstance(value, (dict, list)) and bool(value)
    if not nested or rng.random() < 0.1:
        return rng.choice(ODD_VALUES)
    if isinstance(value, list):
        at, kind = rng.randrange(len(value)), rng.random()
        if kind < 0.1:
            return value[:at] + value[at + 1 :]
        if kind < 0.2:
            return [*value, value[at]]
        return [*value[:at], _value(value[at], rng), *value[at + 1 :]]
    key, kind = rng.choice(list(value)), rng.random()
    if kind < 0.1:
        return {name: each for name, each in value.items() if name != key}
    if kind < 0.15:
        return {("odd" if name == key else name): each for name, each in value.items()}
    return {name: _value(each, rng) if name == key else each for name, each in value.items()}


def _json(data: bytes, rng: random.Random) -> bytes:
    try:
        value = json.loads(data)
    except ValueError:
        return _bytes(data, rng)
    return _written(_value(value, rng), rng)


def _written(value: Any, rng: random.Random) -> bytes:
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")


def _json_lines(data: bytes, rng: random.Random) -> bytes:
    lines = [line for line in data.split(b"\n") if line.strip()]
    if not lines:
        return data
    at = rng.randrange(len(lines))
    kind = rng.random()
    if kind < 0.1:
        lines.insert(at, rng.choice(lines))
    elif kind < 0.2:
        del lines[at]
    else:
        lines[at] = _json(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def _table(data: bytes, rng: random.Random) -> bytes:
    """Change a cell, a row or a column of a delimited file."""
    text = data.decode(errors="replace").replace("\0", "")
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    rows = [row for row in rows if row]
    if len(rows) < 2:
        return _bytes(data, rng)
    at, column, kind = rng.randrange(len(rows)), rng.randrange(len(rows[0])), rng.randrange(9)
    if kind < 4:
        row = rows[rng.randrange(1, len(rows))]
        place = rng.randrange(len(row))
        row[place] = _cell(row[place], rng)
    elif kind == 4:
        rows = [row[:column] + row[column + 1 :] for row in rows]
    elif kind == 5:
        rows[0][column] = rng.choice(("odd", "", rows[0][-1], "worker"))
    elif kind == 6:
        rows.append(list(rows[at]))
    elif kind == 7:
        del rows[at]
    else:
        del rows[at][min(column, len(rows[at]) - 1) :]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode(errors="replace")


def _cell(cell: str, rng: random.Random) -> str:
    try:
        value = json.loads(cell) if cell[:1] in "[{" and cell and rng.random() < 0.9 else None
    except ValueError:
        value = None
    if value is not None:
        return json.dumps(_value(value, rng))
    odd = rng.choice(ODD_VALUES)
    return odd if isinstance(odd, str) else json.dumps(odd)


def _xml(data: bytes, rng: random.Random) -> bytes:
    """Change, remove or repeat an attribute, an element or a text."""
    text = data.decode(errors="replace")
    places = list(re.finditer(rng.choice((r' \w+="[^"]*"', r"<[^>]+>", r'"[^"]*"', r">[^<]+<")), text))
    if not places:
        return _bytes(data, rng)
    place = rng.choice(places)
    old = place[0]
    odd = rng.choice(("", "-1", "x", "1e400", "nan", "1,2;3", ";", ",", "0.5", "🙂", "&amp;", "999999999999999999999"))
    new = {'"': f'"{odd}"', ">": f">{odd}<"}.get(old[0], rng.choice(("", old * 2)))
    return (text[: place.start()] + new + text[place.end() :]).encode()


def _zip(data: bytes, rng: random.Random) -> bytes:
    """Change one of the files in a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, mutant(name, part, rng.randrange(10**9)) if name == chosen else part)
    return buffer.getvalue()


CHANGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "json": _json, "jsonl": _json_lines, "manifest": _json_lines, "csv": _table, "tsv": _table, "xml": _xml,
}  # fmt: skip
