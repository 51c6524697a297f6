"""Pairs: who called which two items the same or different; checked, coded as numbers, read-only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from ..errors import ColumnError, DuplicateError, EmptyDataError, FeatureError, ParameterError
from ..kernels.layout import Bools, Floats, Ints
from .coding import as_text, code, look_alikes, settle
from .columns import PAIR_NAMES, find
from .filled import Filled
from .frames import to_frame
from .intake import Dropped, Intake, quoted

Where = Callable[[int], str]
SAME = frozenset({"1", "true", "t", "yes", "y", "same", "match", "matching", "must-link", "ml", "duplicate", "equal"})
DIFFERENT = frozenset(
    {"0", "false", "f", "no", "n", "different", "differ", "no match", "nonmatch", "non-match", "cannot-link", "cl",
     "not same", "distinct", "unequal"}
)  # fmt: skip
CONTRADICTIONS = ("drop", "each", "error")


def check_rule(contradictions: str) -> None:
    """Refuse a rule that is not known, before anything is read."""
    if contradictions not in CONTRADICTIONS:
        known = ", ".join(map(repr, CONTRADICTIONS))
        raise ParameterError(f"contradictions is {contradictions!r}; it can be {known}")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Pairs(Filled):
    """Answers of the kind "these two are the same, these are not", from a frame with a row an answer.

    The order of the two items does not matter; an item is not compared with itself. A worker's repeated answer counts
    once; where a worker contradicts himself, `contradictions` says what to do: "drop" both, count "each", or "error".
    `same` are the values that mean the same, all others meaning different, where they are not told by common words.
    `hit` names the job in which an answer was given: answers of one job are not independent, and count less.

    >>> import crowdwise as cw
    >>> cw.Pairs({"left": ["a", "a", "b"], "right": ["b", "c", "c"], "worker": ["w", "w", "v"], "answer": [1, 0, 0]})
    Pairs(3 answers on 3 pairs of 3 items, 2 workers)
    """

    items: pl.Series  # sorted ids, or those of the features
    workers: pl.Series
    left: Ints  # (A,) the item of the smaller number; answers by left, right, worker
    right: Ints
    worker: Ints  # (A,)
    same: Bools  # (A,)
    hit: Ints  # (A,) number of the job; -1 without one
    weight: Floats  # (A,) how much an answer counts
    intake: Intake

    def __init__(
        self,
        data: Any,
        *,
        left: str | None = None,
        right: str | None = None,
        worker: str | None = None,
        answer: str | None = None,
        hit: str | None = None,
        same: Sequence[Any] | None = None,
        contradictions: Literal["drop", "each", "error"] = "drop",
        source: str = "table",
        notes: Sequence[str] = (),
        where: Where | None = None,
        options: Sequence[str] = (),
    ) -> None:
        check_rule(contradictions)
        frame, place = to_frame(data), where or (lambda row: f"row {row + 1}")
        if frame.height == 0:
            raise EmptyDataError(f"no answers in {source}: it has {frame.width} column(s) and no rows")
        given = {"left": left, "right": right, "worker": worker, "answer": answer, "hit": hit}
        columns, guessed = find(frame.columns, given, source, PAIR_NAMES, ("left", "right", "worker", "answer"))
        rows = _Rows(frame, columns, same, source, place)
        hits, jobs = rows.jobs
        keep, dropped = _settled(rows, jobs, contradictions)
        told = {**given, "contradictions": None if contradictions == "drop" else contradictions}
        words = [word for name, value in told.items() if value is not None for word in (f"--{name}", value)]
        words += [word for value in same or () for word in ("--same", str(value))]
        fields = {name: getattr(rows, name)[keep] for name in ("left", "right", "worker", "same")} | {"hit": jobs[keep]}
        order = np.lexsort((fields["hit"], fields["same"], fields["worker"], fields["right"], fields["left"]))
        fields = {name: np.ascontiguousarray(values[order]) for name, values in fields.items()}
        weight = weights(**fields)
        if hits and weight.min(initial=1.0) < 1:
            notes = (
                *notes,
                f"{hits} jobs by {columns['hit']!r}: the {len(weight)} answers count as {weight.sum():.0f}, because "
                "those of one job hang together",
            )
        self._fill(
            items=rows.items,
            workers=rows.workers,
            **fields,
            weight=weight,
            intake=Intake(
                source=source,
                shape="pairs",
                columns=columns,
                guessed=guessed,
                extras=tuple(name for name in frame.columns if name not in columns.values()),
                rows_read=frame.height,
                rows_used=len(weight),
                dropped=(*rows.dropped, *dropped),
                notes=tuple(notes),
                warnings=(*rows.warnings, *look_alikes(rows.items, "item"), *look_alikes(rows.workers, "worker")),
                options=(*words, *options),
            ),
        )

    @classmethod
    def none(cls, ids: Any) -> Pairs:
        """No answers about items: what models make of the features alone."""
        gap, names = np.empty(0, np.int32), pl.Series("item", ids)
        intake = Intake("no answers", "pairs", {}, False, (), 0, 0)
        return cls.of(
            items=names, workers=pl.Series("worker", [], dtype=pl.String), left=gap, right=gap.copy(),
            worker=gap.copy(), same=np.empty(0, bool), hit=gap.copy(), weight=np.empty(0), intake=intake,
        )  # fmt: skip

    def __repr__(self) -> str:
        counts = {
            "answer": self.n_answers, "pair": len(self.edges[0]), "item": self.n_items, "worker": self.n_workers,
        }  # fmt: skip
        said = [f"{n} {name}{'s' * (n != 1)}" for name, n in counts.items()]
        return f"Pairs({said[0]} on {said[1]} of {said[2]}, {said[3]})"

    def __len__(self) -> int:
        return self.n_answers

    @property
    def n_answers(self) -> int:
        return len(self.left)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def n_workers(self) -> int:
        return len(self.workers)

    @property
    def edges(self) -> tuple[Ints, Ints, Ints]:
        """Left and right item of every pair asked, each once, and (A,) the pair of each answer."""
        new = np.ones(self.n_answers, bool)
        new[1:] = (self.left[1:] != self.left[:-1]) | (self.right[1:] != self.right[:-1])
        return self.left[new], self.right[new], (np.cumsum(new) - 1).astype(np.int64)

    def on(self, ids: Any, unknown: Literal["error", "drop"] = "error") -> Pairs:
        """The same answers about items that are numbered as in `ids`, of which many may be in no pair.

        Pairs that name other items are an error, or dropped.
        """
        if unknown not in ("error", "drop"):
            raise ParameterError(f"unknown is {unknown!r}; it can be 'error' or 'drop'")
        names = pl.Series("item", ids)
        own = self.items
        if not len(names):
            raise FeatureError("there are no features: no rows. Give a row an item")
        if names.null_count():
            raise FeatureError(f"{names.null_count()} row(s) of the features have no item. Name the item of every row")
        if names.n_unique() < len(names):
            twice = names.filter(names.is_duplicated())[0]
            raise FeatureError(f"item {twice!r} has more than one row of features. Keep one row an item")
        if own.dtype != names.dtype:
            own, text = in_words(own), in_words(names)
            place = {name: k for k, name in enumerate(text.to_list())}
        else:
            place = {name: k for k, name in enumerate(names.to_list())}
        at = np.array([place.get(name, -1) for name in own.to_list()], np.int32)
        strange = np.flatnonzero(at < 0)
        if len(strange) and unknown == "error":
            shown = ", ".join(repr(self.items[int(k)]) for k in strange[:3])
            raise FeatureError(
                f"{len(strange)} of {self.n_items} items in pairs have no features, for instance {shown}; the features "
                f"name items like {names[0]!r}. Add their rows, or drop these pairs: --unknown drop (in Python "
                "pairs.on(ids, 'drop'))"
            )
        left, right = at[self.left], at[self.right]
        keep = (left >= 0) & (right >= 0)
        low, high = np.minimum(left, right)[keep], np.maximum(left, right)[keep]
        order = np.lexsort((self.worker[keep], high, low))
        fields = {name: getattr(self, name)[keep][order] for name in ("worker", "same", "hit", "weight")}
        intake = self.intake
        if not keep.all():
            gone = Dropped("an item without features", int((~keep).sum()), ())
            intake = replace(intake, dropped=(*intake.dropped, gone), rows_used=int(keep.sum()))
        fields |= {"left": low[order], "right": high[order], "items": names, "workers": self.workers, "intake": intake}
        return Pairs.of(**fields)

    def frame(self) -> pl.DataFrame:
        """The answers as a table again: left, right, worker, answer (1: the same), and hit where there is one."""
        table: dict[str, Any] = {
            "left": self.items[self.left], "right": self.items[self.right], "worker": self.workers[self.worker],
            "answer": self.same.astype(np.int64),
        }  # fmt: skip
        if (self.hit >= 0).any():
            table["hit"] = pl.Series(self.hit).set(pl.Series(self.hit < 0), None)
        return pl.DataFrame(table)


class _Rows:
    """The columns of a table of pairs, found and checked; rows that say nothing are left out."""

    def __init__(
        self, frame: pl.DataFrame, columns: dict[str, str], same: Sequence[Any] | None, source: str, where: Where
    ) -> None:
        self.frame, self.columns, self.where, self.source = frame, columns, where, source
        self.dropped: list[Dropped] = []
        self.warnings: list[str] = []
        ids = {}
        for role in ("left", "right", "worker"):
            ids[role], said = settle(frame[columns[role]], role, source)
            self.warnings += said
        if all(ids[role].dtype.is_integer() for role in ("left", "right")) and ids["left"].dtype != ids["right"].dtype:
            ids |= {role: ids[role].cast(pl.Int64) for role in ("left", "right")}
        if ids["left"].dtype != ids["right"].dtype:
            self.warnings.append(
                f"columns {columns['left']!r} and {columns['right']!r} hold {ids['left'].dtype} and "
                f"{ids['right'].dtype}: items are taken as text"
            )
            ids |= {role: in_words(ids[role]) for role in ("left", "right")}
        self.answer = said_same(frame[columns["answer"]], same, source, where)
        bad = np.zeros(frame.height, bool)
        for reason, mask in (
            ("no item", (ids["left"].is_null() | ids["right"].is_null()).to_numpy()),
            ("no answer", self.answer < 0),
            ("an item with itself", (ids["left"] == ids["right"]).fill_null(False).to_numpy()),
        ):
            bad |= self._drop(reason, mask & ~bad)
        nobody = ids["worker"].is_null().to_numpy() & ~bad
        if nobody.any():
            raise ColumnError(
                f"{int(nobody.sum())} answer(s) in {source} have no worker, the first at "
                f"{where(int(np.argmax(nobody)))}. Name who answered (one name for all, if nobody knows)"
            )
        if bad.all():
            raise EmptyDataError(f"no answers in {source}: {frame.height} row(s), none about two items")
        good = pl.Series(~bad)
        both = pl.concat([ids[role].filter(good).alias("item") for role in ("left", "right")])
        self.items, codes = code(both)
        first, second = codes[: len(both) // 2], codes[len(both) // 2 :]
        self.left, self.right = np.minimum(first, second), np.maximum(first, second)
        self.workers, self.worker = code(ids["worker"].filter(good).alias("worker"))
        self.same = self.answer[~bad] == 1
        self.rows = np.flatnonzero(~bad)

    def _drop(self, reason: str, mask: Bools) -> Bools:
        if mask.any():
            rows = np.flatnonzero(mask)
            self.dropped.append(Dropped(reason, len(rows), self.shown(rows)))
        return mask

    def shown(self, rows: Ints) -> tuple[str, ...]:
        """A few rows as they stand in the table."""
        names = [self.columns[role] for role in ("left", "right", "worker", "answer")]
        return quoted(self.frame, names, rows, self.where)

    @property
    def jobs(self) -> tuple[int, Ints]:
        """How many jobs there are, and (rows,) the number of each row's; -1 without one."""
        name = self.columns.get("hit")
        if name is None:
            return 0, np.full(len(self.left), -1, np.int32)
        column, _ = settle(self.frame[name], "hit", self.source)
        names, number = code(column[self.rows])
        return len(names), number


def in_words(column: pl.Series) -> pl.Series:
    """Ids as text: 1, 1.0 and "1" are "1"."""
    if column.dtype == pl.String:
        return column
    return pl.Series(column.name, [as_text(value) for value in column.to_list()], dtype=pl.String)


def said_same(column: pl.Series, same: Sequence[Any] | None, source: str, where: Where | None = None) -> Ints:
    """(rows,) 1 for the same, 0 for different, -1 for no answer."""
    plain = in_words(column.cast(pl.Int64) if column.dtype == pl.Boolean and same is None else column)
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
            "nor different. Say which values mean the same: --same VALUE (in Python same=['VALUE'])"
        )
    return np.where(gap, -1, yes.astype(np.int64))


def _settled(rows: _Rows, jobs: Ints, contradictions: str) -> tuple[Ints, list[Dropped]]:
    """Rows that count: of equal answers of a worker to a pair the first; of contradictory ones by the rule."""
    order = np.lexsort((jobs, rows.same, rows.worker, rows.right, rows.left))
    sorted_ = {name: getattr(rows, name)[order] for name in ("left", "right", "worker", "same")}
    again = np.zeros(len(order), bool)
    again[1:] = np.logical_and.reduce([sorted_[name][1:] == sorted_[name][:-1] for name in ("left", "right", "worker")])
    repeats = again & np.append(False, sorted_["same"][1:] == sorted_["same"][:-1])
    first = np.flatnonzero(~repeats)
    clash = np.append(False, again[first][1:])
    clash = clash | np.append(clash[1:], False)
    dropped = []
    if repeats.any():
        where = rows.rows[order[repeats]]
        dropped.append(Dropped("the same answer again", int(repeats.sum()), rows.shown(np.sort(where))))
    keep = first
    if clash.any():
        where = np.sort(rows.rows[order[first[clash]]])
        if contradictions == "error":
            raise DuplicateError(
                f"{len(where)} answers in {rows.source} contradict another of the same worker on the same pair, for "
                f"instance {'; '.join(rows.shown(where)[:2])}. Say --contradictions drop or each"
            )
        if contradictions == "drop":
            keep = first[~clash]
            dropped.append(Dropped("contradicts the worker's own other answer", len(where), rows.shown(where)))
    if not len(keep):
        raise EmptyDataError(f"no answers in {rows.source}: every worker contradicts himself on every pair")
    return order[keep], dropped


def weights(left: Ints, right: Ints, worker: Ints, same: Bools, hit: Ints) -> Floats:
    """(A,) how much each answer counts; without a job, 1.

    Who sorts items into piles decides item by item: "not like this pile" is one decision, however many pairs spell it
    out. The piles of a worker in a job are what the answers "the same" tie together; where an item has n answers to one
    pile, and the far end m to the item's own, each of them counts 1 / sqrt(n m).

    >>> one, same = np.zeros(3, np.int64), np.array([True, False, False])
    >>> weights(np.array([0, 0, 1]), np.array([1, 2, 2]), one, same, one).round(2).tolist()  # {0, 1} is one pile
    [1.0, 0.71, 0.71]
    """
    out = np.ones(len(left))
    inside = np.flatnonzero(hit >= 0)
    if not len(inside):
        return out
    _, job = np.unique(hit[inside].astype(np.int64) * (int(worker.max()) + 1) + worker[inside], return_inverse=True)
    ends = np.concatenate([left[inside], right[inside]]).astype(np.int64)
    nodes, node = np.unique(np.concatenate([job, job]) * (int(right.max()) + 1) + ends, return_inverse=True)
    a, b = node[: len(inside)], node[len(inside) :]
    tied = same[inside]
    pile = components(a[tied], b[tied], len(nodes))
    towards = np.concatenate([a * len(nodes) + pile[b], b * len(nodes) + pile[a]])
    _, which, count = np.unique(towards, return_inverse=True, return_counts=True)
    n = count[which]
    out[inside] = 1 / np.sqrt(n[: len(inside)] * n[len(inside) :])
    return out


def components(a: Ints, b: Ints, n: int) -> Ints:
    """(n,) the smallest node of the connected group that each of n nodes is in."""
    group = np.arange(n)
    while True:
        low = np.minimum(group[a], group[b])
        before = group.copy()
        np.minimum.at(group, a, low)
        np.minimum.at(group, b, low)
        group = group[group]
        if np.array_equal(group, before):
            return group
