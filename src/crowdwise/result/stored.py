"""Values as they are stored in a file, and read from it: every value is checked by what its class declares.

A class declares the type of each field, and for arrays and tables a rule (`crowdwise.kernels.rules`). What rules of
single fields cannot say is in the property `flaw` of a class: what contradicts itself, or "". Anyone can write a file
with right checksums, and compiled code trusts its arrays, so nothing is used before all of it was checked.
"""

from __future__ import annotations

import inspect
import io
import json
import math
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Union, get_args, get_origin

import numpy as np
import polars as pl

from ..answers import Intake
from ..errors import ChecksumError, CrowdwiseError, DataError, MemoryNeedError
from ..kernels.rules import Numbers, Size, Sizes
from . import parquet

ARRAYS = "arrays.safetensors"
ENDS = -(2**63), 2**63 - 1  # of whole numbers


class UnsoundError(ValueError):
    """A value is not what its class declares."""


@contextmanager
def complete(place: object, holds: str) -> Iterator[None]:
    """Turn whatever goes wrong with the content of a file into an error that names the file."""
    try:
        yield
    except CrowdwiseError:
        raise
    except MemoryError as error:
        raise MemoryNeedError(f"there is not enough memory to load {place}") from error
    except (Exception, pl.exceptions.PanicException) as error:  # a file may hold anything
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise ChecksumError(
            f"{place} is not a complete saved {holds}: {why}. It was truncated or changed, or is another file. Save "
            f"the {holds} again"
        ) from error


@contextmanager
def loadable(place: object, holds: str) -> Iterator[None]:
    """Turn what would be refused when it is loaded into an error before anything is written. Only what the rules say is
    caught."""
    try:
        yield
    except UnsoundError as error:
        raise DataError(
            f"the {holds} cannot be saved: {error}. It would be refused when it is loaded, so nothing was written to "
            f"{place}. Change it, or fit again with settings and answers that are less extreme"
        ) from error


def as_json(values: Mapping[str, Any]) -> bytes:
    """Return plain values as JSON; UnsoundError names one that is no text, number, list or mapping of them."""
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        inner = values.get("values")
        named = (inner if isinstance(inner, dict) else {}) | dict(values)
        odd = next(name for name, value in named.items() if not _is_json(value))
        raise UnsoundError(f"{odd} cannot be stored as JSON: {error}") from error


def _is_json(value: Any) -> bool:
    try:
        return bool(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError):
        return False


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
        return {ARRAYS: save(tensors)} | {f"{name}.parquet": as_parquet(t) for name, t in self.tables.items()}


def _holds_arrays(value: Mapping[str, Any]) -> bool:
    return all(isinstance(each, np.ndarray) for each in value.values())


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Return a table as a Parquet file that can be loaded: not compressed, if it would unpack to too much."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    if parquet.claims(buffer.getbuffer()).unpacked > parquet.most_unpacked(buffer.getbuffer()):
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression="uncompressed")
    return buffer.getvalue()


def load_arrays(data: bytes) -> dict[str, Any]:
    """Return the arrays of a part; they must be numbers."""
    from safetensors.numpy import load

    arrays: dict[str, Any] = dict(load(data))
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise UnsoundError(f"{name} holds {array.dtype}; it must hold numbers")
    return arrays


class Stored:
    """The parts read from a file. After `get`, `settle` must be called before anything is used."""

    def __init__(self, head: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        self.plain, self.arrays = head["values"], load_arrays(files[ARRAYS])
        if not isinstance(self.plain, dict):
            raise UnsoundError("its values have no names")
        self.tables = {name.removesuffix(".parquet"): data for name, data in files.items() if name.endswith(".parquet")}
        self.most_rows = sum(map(len, files.values()))  # an answer, a task or a worker takes some bytes at least
        self.sizes = Sizes()
        self._open: list[tuple[str, Any, Any]] = []  # names, values and the rules of their content
        self._made: list[tuple[str, Any]] = []  # objects that may contradict themselves

    def fields(self, cls: type, prefix: str = "", but: Collection[str] = (), **kinds: Any) -> dict[str, Any]:
        """Return the values of the fields of a dataclass, but for some; `kinds` replace the types that it declares."""
        declared = kinds_of(cls) | kinds
        names = [field.name for field in fields(cls) if field.name not in but]
        return {name: self.get(f"{prefix}{name}", declared.get(name)) for name in names}

    def get(self, name: str, kind: Any = None) -> Any:
        """Return a value; `kind` is the type that its class declares, with its rules."""
        kind, rule = _declared(kind)
        if name in self.arrays:
            return self._array(name, kind, rule or Numbers())
        if name in self.tables:
            return self._table(name, kind, rule)
        if _is_stored_apart(kind):
            raise UnsoundError(f"{name} is missing")
        value = self.plain[name]
        if get_origin(kind) in (Union, UnionType):  # one type, or None
            kind = NoneType if value is None else next(each for each in get_args(kind) if each is not NoneType)
        if kind is Intake:
            value = self.made(name, Intake.from_dict(value))
        elif hasattr(kind, "_fields"):
            return self._tuple(name, kind)
        elif isinstance(value, list) and (kind is None or kind is dict or get_origin(kind) is dict):
            return {str(key): self.get(f"{name}.{key}") for key in value}
        found = tuple(value) if isinstance(value, list) else value
        if not conforms(found, kind):
            raise UnsoundError(f"{name} is {value!r:.80}, which is no {getattr(kind, '__name__', kind)}")
        if rule is not None:
            self._ruled(name, found if isinstance(rule, Size) else np.asarray(found), rule)
        return found

    def _tuple(self, name: str, kind: Any) -> Any:
        if self.plain[name] != list(kind._fields):
            raise UnsoundError(f"{name} must have {', '.join(kind._fields)}")
        kinds = kinds_of(kind)
        return self.made(name, kind(*(self.get(f"{name}.{key}", kinds.get(key)) for key in kind._fields)))

    def _array(self, name: str, kind: Any, rule: Any) -> Any:
        if kind is not None and get_origin(kind) is not np.ndarray:
            raise UnsoundError(f"{name} is an array; it must be {getattr(kind, '__name__', kind)}")
        return self._ruled(name, self.arrays[name], rule)

    def _table(self, name: str, kind: Any, rule: Any) -> Any:
        try:
            parquet.check(self.tables[name], self.most_rows)
        except ValueError as error:
            raise UnsoundError(f"{name} cannot be read: {error}") from error
        table = pl.read_parquet(self.tables[name])
        if kind is pl.Series and table.columns != ["values"]:
            raise UnsoundError(f"{name} has the columns {table.columns}; it must have one column, values")
        if kind not in (None, pl.Series, pl.DataFrame):
            raise UnsoundError(f"{name} is a table; it must be {getattr(kind, '__name__', kind)}")
        found = table["values"] if kind is pl.Series else table
        return found if rule is None else self._ruled(name, found, rule)

    def _ruled(self, name: str, value: Any, rule: Any) -> Any:
        """Check the type and the shape; numbers are checked in `settle`, when all sizes are known."""
        flaw = rule.shape_flaw(value, self.sizes)
        if flaw:
            raise UnsoundError(f"{name} {flaw}")
        self._open.append((name, value, rule))
        return value

    def made(self, name: str, value: Any) -> Any:
        """Return an object; what contradicts itself in it is found in `settle`."""
        self._made.append((name, value))
        return value

    def settle(self) -> None:
        """Check the content of everything that was read."""
        for name, value, rule in self._open:
            flaw = rule.flaw(value, self.sizes)
            if flaw:
                raise UnsoundError(f"{name} {flaw}")
        for name, value in self._made:
            flaw = getattr(value, "flaw", "")
            if flaw:
                raise UnsoundError(f"{name} {flaw}")
        self._open, self._made = [], []


def flaw_of(value: Any, known: Mapping[str, int], *, unfinished: bool = False) -> str:
    """Return what is wrong with the arrays and tables of an object by the rules of its fields, or ""; some sizes are
    known."""
    sizes = Sizes(known)
    sizes.unfinished = unfinished
    rules = {name: rule for name, kind in kinds_of(type(value)).items() if (rule := _declared(kind)[1]) is not None}
    held = {name: getattr(value, name) for name in rules}
    return flaw_by(
        rules, {name: v if isinstance(v, pl.DataFrame) else np.asarray(v) for name, v in held.items()}, sizes
    )


def flaw_by(rules: Mapping[str, Any], arrays: Mapping[str, Any], sizes: Sizes) -> str:
    """Return what is wrong with arrays by their rules, or ""; there may be others."""
    missing = [name for name in rules if name not in arrays]
    if missing:
        return f"{missing[0]} is missing"
    for check in ("shape_flaw", "flaw"):  # the content depends on all sizes
        for name, rule in rules.items():
            flaw = getattr(rule, check)(arrays[name], sizes)
            if flaw:
                return f"{name} {flaw}"
    return ""


def _declared(kind: Any) -> tuple[Any, Any]:
    """Return a type and its rule, if it has one."""
    if get_origin(kind) is not Annotated:
        return (None if kind is Any else kind), None
    base, *more = get_args(kind)
    return (None if base is Any else base), next((each for each in more if hasattr(each, "shape_flaw")), None)


def base_of(kind: Any) -> Any:
    """Return a type without its rule."""
    return _declared(kind)[0]


def _is_stored_apart(kind: Any) -> bool:
    return kind in (pl.Series, pl.DataFrame) or get_origin(kind) is np.ndarray


def conforms(value: Any, kind: Any) -> bool:
    """Whether a plain value is of a type.

    >>> conforms(1.5, float), conforms(True, int), conforms(("a", 1), tuple[str, ...]), conforms(None, int | None)
    (True, False, False, True)
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind in (None, Any):
        return True
    if origin in (Union, UnionType):
        return any(conforms(value, each) for each in args)
    if origin is Annotated:
        return conforms(value, args[0])
    if origin in (tuple, list):
        return isinstance(value, (tuple, list)) and all(conforms(each, args[0]) for each in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            conforms(key, args[0]) and conforms(each, args[1]) for key, each in value.items()
        )
    if kind in (int, float):
        number = isinstance(value, (int, kind)) and not isinstance(value, bool)
        return number and ENDS[0] <= value <= ENDS[1] and math.isfinite(value)
    if is_dataclass(kind):
        kinds = kinds_of(kind)  # type: ignore[arg-type]
        return type(value) is kind and all(
            conforms(getattr(value, each.name), kinds[each.name]) for each in fields(kind)
        )
    return isinstance(value, kind)


def kinds_of(cls: type) -> dict[str, Any]:
    """Return the types that a class declares for its fields; None for names imported only for type checking."""
    kinds: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        for name, kind in inspect.get_annotations(each).items():
            text = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
            try:
                kinds[name] = eval(text, vars(sys.modules[each.__module__])) if isinstance(text, str) else kind
            except NameError:
                kinds[name] = None
    return kinds
