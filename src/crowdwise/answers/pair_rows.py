"""Read pairs from a table: values that mean same and different, repeated and contradictory answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, DuplicateError, EmptyDataError, ParameterError, option
from ..kernels.layout import Bools, Ints
from .base import Dropped, Where
from .coding import as_text, code, normalise_ids, to_text
from .columns import PAIR_ROLES
from .reading import Reading

SAME = frozenset({"1", "true", "t", "yes", "y", "same", "match", "matching", "must-link", "ml", "duplicate", "equal"})
DIFFERENT = frozenset(
    {"0", "false", "f", "no", "n", "different", "differ", "no match", "nonmatch", "non-match", "cannot-link", "cl",
     "not same", "distinct", "unequal"}
)  # fmt: skip
CONTRADICTIONS = ("drop", "each", "error")


@dataclass(frozen=True)
class PairRows:
    """Coded pairs in the order of the rows, before repeats and contradictions are resolved."""

    reading: Reading
    items: pl.Series
    workers: pl.Series
    left: Ints  # (N,) the item with the smaller index
    right: Ints
    worker: Ints
    same: Bools
    hit: Ints  # (N,) index of the job, or -1
    hits: int  # number of jobs

    def dropped_answers(self, reason: str, answers: Ints) -> Dropped:
        """Count and quote answers that are dropped for `reason`."""
        return self.reading.dropped_rows(reason, self.reading.rows[answers], _quoted(self.reading))


def _quoted(reading: Reading) -> list[str]:
    return [reading.columns[role] for role in PAIR_ROLES.required]


def read_pairs(reading: Reading, same: Sequence[Any] | None) -> PairRows:
    """Read the pairs of a table; rows without two different items or without an answer are dropped."""
    left, right = _alike(reading, reading.ids("left"), reading.ids("right"))
    worker = reading.ids("worker")
    answer = parse_same(reading.frame[reading.columns["answer"]], same, reading.source, reading.where)
    reading.drop_set_aside(_quoted(reading))
    for reason, mask in (
        ("no item", (left.is_null() | right.is_null()).to_numpy()),
        ("no answer", answer < 0),
        ("both items are the same", (left == right).fill_null(False).to_numpy()),
    ):
        reading.drop(reason, mask, _quoted(reading))
    advice = "Name the worker of every answer; if the workers are unknown, use one name for all"
    reading.check(worker, advice, "about two items")
    both = pl.concat([reading.kept(column).alias("item") for column in (left, right)])
    items, codes = code(both)
    first, second = codes[: len(both) // 2], codes[len(both) // 2 :]
    workers, number = code(reading.kept(worker).alias("worker"))
    hits, hit = _jobs(reading)
    return PairRows(
        reading, items, workers, np.minimum(first, second), np.maximum(first, second), number,
        answer[reading.used] == 1, hit, hits,
    )  # fmt: skip


def _alike(reading: Reading, left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return both columns of items in one type; as text if their types differ."""
    if left.dtype == right.dtype:
        return left, right
    if left.dtype.is_integer() and right.dtype.is_integer():
        wide = {left.dtype, right.dtype} & {pl.UInt64(), pl.Int128(), pl.UInt128()}
        kind = pl.Int128 if wide else pl.Int64
        return left.cast(kind), right.cast(kind)
    reading.warnings.append(
        f"columns {reading.columns['left']!r} and {reading.columns['right']!r} hold {left.dtype} and {right.dtype}: "
        "items were converted to text"
    )
    return to_text(left), to_text(right)


def _jobs(reading: Reading) -> tuple[int, Ints]:
    """Return the number of jobs, and the index (N,) of the job of each answer, or -1."""
    name = reading.columns.get("hit")
    if name is None:
        return 0, np.full(len(reading.rows), -1, np.int32)
    column, _ = normalise_ids(reading.frame[name], "hit", reading.source)
    names, number = code(reading.kept(column))
    return len(names), number


def parse_same(column: pl.Series, same: Sequence[Any] | None, source: str, where: Where | None = None) -> Ints:
    """Convert a column of answers to 1 (same), 0 (different) or -1 (no answer)."""
    plain = to_text(column.cast(pl.Int64) if column.dtype == pl.Boolean and same is None else column)
    text = plain.str.strip_chars().str.to_lowercase()
    gap = (text.is_null() | (text == "")).to_numpy()
    if same is not None:
        if isinstance(same, str) or not isinstance(same, Sequence) or not len(same):
            raise ParameterError(f"same is {same!r}; give a list of the values that mean same")
        wanted = {str(as_text(value)).strip().lower() for value in same}
        found = text.is_in(sorted(wanted)).fill_null(False).to_numpy()
        if not found.any():
            have = ", ".join(map(repr, text.drop_nulls().unique().sort().head(5).to_list()))
            raise ColumnError(f"no answer in {source} is {' or '.join(map(repr, same))}; answers are {have}")
        return np.where(gap, -1, found.astype(np.int64))
    yes = text.is_in(sorted(SAME)).fill_null(False).to_numpy()
    no = text.is_in(sorted(DIFFERENT)).fill_null(False).to_numpy()
    strange = ~(yes | no | gap)
    if strange.any():
        row, place = int(np.argmax(strange)), where or (lambda row: f"row {row + 1}")
        raise ColumnError(
            f"answer column {column.name!r} of {source} has {column[row]!r} at {place(row)}, which means neither same "
            f"nor different. List the values that mean same with {option('same')}"
        )
    return np.where(gap, -1, yes.astype(np.int64))


def resolve_contradictions(rows: PairRows, contradictions: str) -> tuple[Ints, list[Dropped]]:
    """Return the answers to use, and those dropped. Repeats count once; `contradictions` is the rule for the others."""
    order = np.lexsort((rows.hit, rows.same, rows.worker, rows.right, rows.left))
    columns = [column[order] for column in (rows.left, rows.right, rows.worker)]
    same = rows.same[order]
    again = np.zeros(len(order), bool)
    again[1:] = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    repeats = again & np.append(False, same[1:] == same[:-1])
    first = np.flatnonzero(~repeats)
    clash = np.append(False, again[first][1:])
    clash = clash | np.append(clash[1:], False)
    dropped = []
    if repeats.any():
        dropped.append(rows.dropped_answers("same answer again by the same worker (kept once)", order[repeats]))
    keep = first
    if clash.any():
        found = rows.dropped_answers("contradicts another answer of the same worker", order[first[clash]])
        if contradictions == "error":
            raise DuplicateError(
                f"{found.count} answers in {rows.reading.source} contradict another answer of the same worker about "
                f"the same pair, for instance {'; '.join(found.examples[:2])}. Use "
                f"{option('contradictions', 'drop')} or each"
            )
        if contradictions == "drop":
            keep = first[~clash]
            dropped.append(found)
    if not len(keep):
        raise EmptyDataError(
            f"no answers in {rows.reading.source}: every worker gave contradictory answers to every pair"
        )
    return order[keep], dropped
