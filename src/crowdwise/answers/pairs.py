"""Pairs: answers whether two items are the same or different; validated, coded as integers, read-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from ..errors import FeatureError, check_choice, option
from ..kernels.layout import Bools, Floats, Ints
from ..kernels.rules import Bits, Real, Whole
from .alike import look_alikes
from .arguments import checked
from .base import NO_OPTIONS, Answers, Dropped, Intake, Where, check_options
from .coding import normalise_ids, places, to_text
from .columns import PAIR_ROLES, Roles
from .frames import to_series
from .pair_rows import CONTRADICTIONS, read_pairs, resolve_contradictions
from .reading import Reading, given
from .rules import Ids


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Pairs(Answers):
    """Answers "same" or "different" about pairs of items, from a frame with one row per answer.

    The order of the two items does not matter; a pair of an item with itself is dropped. A repeated answer of a worker
    counts once. `contradictions` is the rule for contradictory answers of a worker to one pair: "drop" both, count
    "each", or "error". `same` lists the values that mean same, all others meaning different; it is not needed for
    common values such as yes/no or 1/0. `hit` is the column of the job in which an answer was given: answers of one job
    are not independent, and count less.

    >>> import crowdwise as cw
    >>> cw.Pairs({"left": ["a", "a", "b"], "right": ["b", "c", "c"], "worker": ["w", "w", "v"], "answer": [1, 0, 0]})
    Pairs(3 answers on 3 pairs of 3 items, 2 workers)
    """

    kind: ClassVar[str] = "pairs"
    title: ClassVar[str] = "same/different answers about pairs of items"
    roles: ClassVar[Roles] = PAIR_ROLES
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {"contradictions": CONTRADICTIONS}

    items: Annotated[pl.Series, Ids("N")]  # sorted ids, or the ids of the features
    workers: Annotated[pl.Series, Ids("W")]
    left: Annotated[Ints, Whole("A", below="N")]  # the smaller index; sorted by left, right, worker
    right: Annotated[Ints, Whole("A", below="N")]
    worker: Annotated[Ints, Whole("A", below="W")]
    same: Annotated[Bools, Bits("A")]
    hit: Annotated[Ints, Whole("A", -1)]  # index of the job, or -1
    weight: Annotated[Floats, Real("A", 0, 1)]  # weight of each answer
    intake: Intake

    @checked
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
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> None:
        check_options(type(self), {"contradictions": contradictions})
        reading = Reading(data, source, notes, where)
        names = {"left": left, "right": right, "worker": worker, "answer": answer, "hit": hit}
        reading.find(PAIR_ROLES, names)
        rows = read_pairs(reading, same)
        keep, dropped = resolve_contradictions(rows, contradictions)
        fields = {name: getattr(rows, name)[keep] for name in ("left", "right", "worker", "same", "hit")}
        order = np.lexsort([fields[name] for name in ("hit", "same", "worker", "right", "left")])
        fields = {name: np.ascontiguousarray(values[order]) for name, values in fields.items()}
        weight = weights(**fields)
        if rows.hits and weight.min(initial=1.0) < 1:
            reading.notes.append(
                f"{rows.hits} jobs by {reading.columns['hit']!r}: the {len(weight)} answers count as "
                f"{weight.sum():.0f}, because answers of one job depend on each other"
            )
        reading.warnings += [*look_alikes(rows.items, "item"), *look_alikes(rows.workers, "worker")]
        recorded = given(
            {"contradictions": "drop"}, **names, contradictions=contradictions, same=list(same or ()) or None
        )
        extras = reading.other_columns(reading.columns.values())
        self._fill(
            items=rows.items,
            workers=rows.workers,
            **fields,
            weight=weight,
            intake=reading.intake(
                "pairs", len(weight), extras=extras, dropped=dropped, options={**recorded, **options}
            ),
        )

    @classmethod
    def none(cls, ids: Any) -> Pairs:
        """Return an empty table of answers about these items, to fit models to the features alone."""
        gap, names = np.empty(0, np.int32), _items(ids)
        intake = Intake("no answers", "pairs", {}, (), (), 0, 0)
        return cls.of(
            items=names, workers=pl.Series("worker", [], dtype=pl.String), left=gap, right=gap.copy(),
            worker=gap.copy(), same=np.empty(0, bool), hit=gap.copy(), weight=np.empty(0), intake=intake,
        )  # fmt: skip

    @property
    def flaw(self) -> str:
        """What contradicts itself in answers that were read from a file, or ""."""
        pair = self.left.astype(np.int64) * self.n_items + self.right
        sound = (self.left < self.right).all() and (np.diff(pair) >= 0).all()
        return "" if sound else "has pairs that are not in their order"

    def __repr__(self) -> str:
        counts = {
            "answer": self.n_answers, "pair": len(self.edges[0]), "item": self.n_items, "worker": self.n_workers,
        }  # fmt: skip
        sizes = [f"{n} {name}{'s' * (n != 1)}" for name, n in counts.items()]
        return f"Pairs({sizes[0]} on {sizes[1]} of {sizes[2]}, {sizes[3]})"

    @property
    def n_answers(self) -> int:
        return len(self.left)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def edges(self) -> tuple[Ints, Ints, Ints]:
        """Left and right item of every distinct pair, and the index (A,) of the pair of each answer."""
        new = np.ones(self.n_answers, bool)
        new[1:] = (self.left[1:] != self.left[:-1]) | (self.right[1:] != self.right[:-1])
        return self.left[new], self.right[new], (np.cumsum(new) - 1).astype(np.int64)

    @checked
    def on(self, ids: Any, unknown: Literal["error", "drop"] = "error") -> Pairs:
        """Return the same answers with items indexed as in `ids`, which may include items without answers.

        Pairs with items that are not in `ids` raise FeatureError, or are dropped if `unknown` is "drop".
        """
        check_choice("unknown", unknown, ("error", "drop"))
        names = _items(ids)
        if not len(names):
            raise FeatureError("the features have no rows. Give one row per item")
        if names.null_count():
            raise FeatureError(f"{names.null_count()} row(s) of the features have no item. Give the item of every row")
        if names.n_unique() < len(names):
            twice = names.filter(names.is_duplicated())[0]
            raise FeatureError(f"item {twice!r} has more than one row of features. Keep one row per item")
        alike = self.items.dtype == names.dtype
        at = places(names, self.items) if alike else places(to_text(names), to_text(self.items))
        strange = np.flatnonzero(at < 0)
        if len(strange) and unknown == "error":
            shown = ", ".join(repr(self.items[int(k)]) for k in strange[:3])
            raise FeatureError(
                f"{len(strange)} of {self.n_items} items in pairs have no features, for instance {shown}; the features "
                f"name items like {names[0]!r}. Add their rows, or drop these pairs: {option('unknown', 'drop')}"
            )
        left, right = at[self.left], at[self.right]
        keep = (left >= 0) & (right >= 0)
        low, high = np.minimum(left, right)[keep], np.maximum(left, right)[keep]
        order = np.lexsort((self.worker[keep], high, low))
        fields = {name: getattr(self, name)[keep][order] for name in ("worker", "same", "hit", "weight")}
        intake = self.intake
        if not keep.all():
            without = Dropped("item without features", int((~keep).sum()), ())
            intake = replace(intake, dropped=(*intake.dropped, without), rows_used=int(keep.sum()))
        return self.replaced(**fields, left=low[order], right=high[order], items=names, intake=intake)

    def take(self, keep: Bools) -> Pairs:
        """Return the answers marked; all items and workers are kept."""
        fields = ("left", "right", "worker", "same", "hit", "weight")
        return self.replaced(**{name: getattr(self, name)[keep] for name in fields})

    def frame(self) -> pl.DataFrame:
        """Return the answers as a table: left, right, worker, answer (1 for same), and hit if there are jobs."""
        table: dict[str, Any] = {
            "left": self.items[self.left], "right": self.items[self.right], "worker": self.workers[self.worker],
            "answer": self.same.astype(np.int64),
        }  # fmt: skip
        if (self.hit >= 0).any():
            table["hit"] = pl.Series(self.hit).set(pl.Series(self.hit < 0), None)
        return pl.DataFrame(table)


def _items(ids: Any) -> pl.Series:
    return normalise_ids(to_series("item", ids), "item", "the features")[0]


def weights(left: Ints, right: Ints, worker: Ints, same: Bools, hit: Ints) -> Floats:
    """(A,) weight of each answer; 1 for answers without a job.

    A worker who sorts items into piles decides item by item: "not in this pile" is one decision, although it appears in
    many pairs. The piles of a worker in a job are the groups of items connected by answers "same". If an item has n
    answers with items of another pile, and the other item has m answers with items of the first one's pile, the answer
    between them counts 1 / sqrt(n m).

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
    joined = same[inside]
    pile = components(a[joined], b[joined], len(nodes))
    towards = np.concatenate([a * len(nodes) + pile[b], b * len(nodes) + pile[a]])
    _, which, count = np.unique(towards, return_inverse=True, return_counts=True)
    n = count[which]
    out[inside] = 1 / np.sqrt(n[: len(inside)] * n[len(inside) :])
    return out


def components(a: Ints, b: Ints, n: int) -> Ints:
    """(n,) smallest node in the connected component of each of n nodes, with edges a[e], b[e]."""
    group = np.arange(n)
    while True:
        low = np.minimum(group[a], group[b])
        before = group.copy()
        np.minimum.at(group, a, low)
        np.minimum.at(group, b, low)
        group = group[group]
        if np.array_equal(group, before):
            return group
