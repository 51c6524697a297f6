"""From a table to coded pairs, in the order of its rows: words for same and different, repeats, contradictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..errors import ColumnError, DuplicateError, EmptyDataError, ParameterError, option
from ..kernels.layout import Bools, Ints
from .base import Dropped, Where
from .coding import as_text, code, settle, to_text
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
    """Coded pairs before repeats and contradictions are settled."""

    reading: Reading
    items: pl.Series
    workers: pl.Series
    left: Ints  # (N,) the item of the smaller number
    right: Ints
    worker: Ints
    same: Bools
    hit: Ints  # (N,) number of the job; -1 without one
    hits: int  # how many jobs there are

    def left_out(self, reason: str, answers: Ints) -> Dropped:
        """Answers that are not used, although their rows are whole."""
        return self.reading.left_out(reason, self.reading.rows[answers], _quoted(self.reading))


def _quoted(reading: Reading) -> list[str]:
    return [reading.columns[role] for role in PAIR_ROLES.required]


def read_pairs(reading: Reading, same: Sequence[Any] | None) -> PairRows:
    """The pairs of a table whose columns are found; rows without two items or an answer are left out."""
    left, right = _alike(reading, reading.ids("left"), reading.ids("right"))
    worker = reading.ids("worker")
    answer = said_same(reading.frame[reading.columns["answer"]], same, reading.source, reading.where)
    for reason, mask in (
        ("no item", (left.is_null() | right.is_null()).to_numpy()),
        ("no answer", answer < 0),
        ("an item with itself", (left == right).fill_null(False).to_numpy()),
    ):
        reading.drop(reason, mask, _quoted(reading))
    reading.check(worker, "Name who answered (one name for all, if nobody knows)", "about two items")
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
    """Both columns of items in one type, else as text."""
    if left.dtype == right.dtype:
        return left, right
    if left.dtype.is_integer() and right.dtype.is_integer():
        return left.cast(pl.Int64), right.cast(pl.Int64)
    reading.warnings.append(
        f"columns {reading.columns['left']!r} and {reading.columns['right']!r} hold {left.dtype} and {right.dtype}: "
        "items are taken as text"
    )
    return to_text(left), to_text(right)


def _jobs(reading: Reading) -> tuple[int, Ints]:
    """How many jobs there are, and (N,) the number of each answer's; -1 without one."""
    name = reading.columns.get("hit")
    if name is None:
        return 0, np.full(len(reading.rows), -1, np.int32)
    column, _ = settle(reading.frame[name], "hit", reading.source)
    names, number = code(reading.kept(column))
    return len(names), number


def said_same(column: pl.Series, same: Sequence[Any] | None, source: str, where: Where | None = None) -> Ints:
    """(rows,) 1 for the same, 0 for different, -1 for no answer."""
    plain = to_text(column.cast(pl.Int64) if column.dtype == pl.Boolean and same is None else column)
    text = plain.str.strip_chars().str.to_lowercase()
    gap = (text.is_null() | (text == "")).to_numpy()
    if same is not None:
        if isinstance(same, str) or not isinstance(same, Sequence) or not len(same):
            raise ParameterError(f"same is {same!r}; give the values that mean the same, as a list")
        wanted = {str(as_text(value)).strip().lower() for value in same}
        found = text.is_in(sorted(wanted)).fill_null(False).to_numpy()
        if not found.any():
            have = ", ".join(map(repr, text.drop_nulls().unique().sort().head(5).to_list()))
            raise ColumnError(f"no answer in {source} is {' or '.join(map(repr, same))}; there are {have}")
        return np.where(gap, -1, found.astype(np.int64))
    yes = text.is_in(sorted(SAME)).fill_null(False).to_numpy()
    no = text.is_in(sorted(DIFFERENT)).fill_null(False).to_numpy()
    strange = ~(yes | no | gap)
    if strange.any():
        row, place = int(np.argmax(strange)), where or (lambda row: f"row {row + 1}")
        raise ColumnError(
            f"answer column {column.name!r} of {source} has {column[row]!r} at {place(row)}, which is neither the same "
            f"nor different. Say which values mean the same: {option('same')}"
        )
    return np.where(gap, -1, yes.astype(np.int64))


def settle_contradictions(rows: PairRows, contradictions: str) -> tuple[Ints, list[Dropped]]:
    """Answers that count: of equal ones of a worker to a pair the first; of contradictory ones by the rule."""
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
        dropped.append(rows.left_out("the same answer again", order[repeats]))
    keep = first
    if clash.any():
        said = rows.left_out("contradicts the worker's own other answer", order[first[clash]])
        if contradictions == "error":
            raise DuplicateError(
                f"{said.count} answers in {rows.reading.source} contradict another of the same worker on the same "
                f"pair, for instance {'; '.join(said.examples[:2])}. Say {option('contradictions', 'drop')} or each"
            )
        if contradictions == "drop":
            keep = first[~clash]
            dropped.append(said)
    if not len(keep):
        raise EmptyDataError(
            f"no answers in {rows.reading.source}: every worker gave contradictory answers to every pair"
        )
    return order[keep], dropped
