"""The section on doubts: items, pairs worth asking, and pairs where the crowd and the clusters disagree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..kernels.layout import Ints
from .pairs_items import DOUBTFUL, UNKNOWN
from .plain import Cell, Section, Table, Thumb
from .words import LONGEST, count, many, percent, short

if TYPE_CHECKING:
    from ..result.pairs import PairsResult

ITEMS, NEXT, DISPUTED = 30, 30, 20  # shown at most
SURE = 0.995  # probability from which there is no doubt worth a line


@dataclass(frozen=True)
class Doubts:
    """What there is to look at."""

    items: Ints  # numbers, the most doubtful first
    next: pl.DataFrame  # pairs worth asking, with `from_` and `to` as the numbers of their items
    disputed: pl.DataFrame  # likewise
    n_disputed: int

    def named(self) -> list[int]:
        """Numbers of all items that the tables name."""
        ends = [frame[end].to_list() for frame in (self.next, self.disputed) for end in ("from_", "to")]
        return [*self.items.tolist(), *(item for numbers in ends for item in numbers)]


def doubts_of(result: PairsResult) -> Doubts:
    sure = result.params.chances[:, 0]
    order = np.argsort(sure, kind="stable")[:ITEMS]
    disputed = _disputed(result)
    return Doubts(order[sure[order] < SURE], _next(result), disputed.head(DISPUTED), disputed.height)


def _next(result: PairsResult) -> pl.DataFrame:
    from ..acquisition import next_pairs

    frame = next_pairs(result, NEXT) if result.answers.n_items > 1 else _none(result)
    frame = frame.filter(pl.col("gain") > 0)
    place = {name: k for k, name in enumerate(result.answers.items.to_list())}
    ends = {new: [place[name] for name in frame[old].to_list()] for new, old in (("from_", "left"), ("to", "right"))}
    return frame.with_columns(pl.Series(new, numbers, dtype=pl.Int64) for new, numbers in ends.items())


def _none(result: PairsResult) -> pl.DataFrame:
    kind = result.answers.items.dtype
    return pl.DataFrame(
        schema={"left": kind, "right": kind, "probability": pl.Float64, "gain": pl.Float64, "about": kind}
    )


def _disputed(result: PairsResult) -> pl.DataFrame:
    """Pairs of which most answers say the contrary of the clusters, the clearest first."""
    left, right, _ = result.answers.edges
    margin = 2 * pl.col("said_same") - pl.col("answers")
    same = pl.col("probability")
    frame = result.asked.with_columns(
        pl.Series("from_", left.astype(np.int64)),
        pl.Series("to", right.astype(np.int64)),
        margin=margin,
        against=pl.when(margin > 0).then(1 - same).otherwise(same),
    )
    other = frame.filter((pl.col("margin") != 0) & ((pl.col("margin") > 0) != pl.col("together")))
    return other.sort(pl.col("margin").abs(), "against", descending=True, maintain_order=True)


def doubts_section(result: PairsResult, doubts: Doubts, album: Mapping[int, str]) -> list[Section]:
    return [_items(result, doubts.items, album), _asking(doubts, album), _clashes(doubts, album)]


def _cell(name: object, number: int, album: Mapping[int, str]) -> Cell:
    thumbs = [Thumb(album[number], "", number)] if number in album else []
    return Cell(short(name, LONGEST), thumbs)


def _items(result: PairsResult, numbers: Ints, album: Mapping[int, str]) -> Section:
    title, all_ = "Most doubtful items", result.answers.n_items
    doubtful = int((result.params.chances[:, 0] < DOUBTFUL).sum())
    says = f"{count(doubtful)} of {many(all_, 'item')} {'has' if doubtful == 1 else 'have'} a probability below "
    says += f"{percent(DOUBTFUL, 0)}."
    if not len(numbers):
        return Section(title, "No item is in doubt.", None)
    heads = [("Item", False)]
    heads += [(name, True) for name in ("Cluster", "Probability", "Second", "Its probability", "Answers")]
    names = ["item", "cluster", "probability", "second", "second_probability", "answers"]
    rows: list[list[str | Cell]] = [
        [
            _cell(item, number, album),
            count(cluster),
            percent(p),
            UNKNOWN if second is None else count(second),
            UNKNOWN if other is None else percent(other),
            count(answers),
        ]
        for number, (item, cluster, p, second, other, answers) in zip(
            numbers.tolist(), result.clusters[numbers].select(names).rows(), strict=True
        )
    ]
    return Section(title, f"{says} An expert's look, or another answer, helps here most.", Table(title, heads, rows))


def _asking(doubts: Doubts, album: Mapping[int, str]) -> Section:
    title = "Pairs most worth asking next"
    if doubts.next.is_empty():
        return Section(title, "There is no pair whose answer would tell much.", None)
    heads = [
        ("Item", False),
        ("With", False),
        ("Probability", True),
        ("Gain in bits", True),
        ("To place", False),
    ]
    names = ["left", "right", "probability", "gain", "about", "from_", "to"]
    rows: list[list[str | Cell]] = [
        [
            _cell(left, from_, album),
            _cell(right, to, album),
            percent(p),
            f"{gain:.3f}",
            UNKNOWN if about is None else Cell(short(about, LONGEST)),
        ]
        for left, right, p, gain, about, from_, to in doubts.next.select(names).rows()
    ]
    says = "Their answers are expected to tell most; probability is that both items are the same, as it is now."
    return Section(title, says, Table(title, heads, rows))


def _clashes(doubts: Doubts, album: Mapping[int, str]) -> Section:
    title, total = "Where most answers and the clusters disagree", doubts.n_disputed
    if not total:
        return Section(title, "The clusters agree with most answers to every pair that was asked.", None)
    heads = [
        ("Item", False),
        ("With", False),
        ("Said the same", True),
        ("Probability", True),
        ("In one cluster", False),
    ]
    names = ["left", "right", "said_same", "answers", "probability", "together", "from_", "to"]
    rows: list[list[str | Cell]] = [
        [
            _cell(left, from_, album),
            _cell(right, to, album),
            f"{count(said)} of {count(answers)}",
            percent(p),
            "yes" if together else "no",
        ]
        for left, right, said, answers, p, together, from_, to in doubts.disputed.select(names).rows()
    ]
    says = f"{many(total, 'pair')}, those with the clearest majority first; probability is that both are the same"
    says += f". {count(len(rows))} of them are shown." if len(rows) < total else "."
    return Section(title, says, Table(title, heads, rows))
