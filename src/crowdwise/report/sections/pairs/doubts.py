"""Items and pairs to review: doubtful items, informative pairs, and pairs where clusters contradict most answers."""

from __future__ import annotations

from typing import Any

from ....result import PairsResult
from ...glossary import DOUBTFUL_ITEM
from ...registry import section
from ...tables import Cell, Table
from ...text import DASH, MAX_NAME_CHARS, count, many, percent, short
from ._shown import Doubts, Shown, doubts_of, shown


@section(
    "pairs", "doubts", order=50, nav="Doubts", title="Items and pairs to review",
    intro="Doubtful items, the most informative pairs to ask about, and pairs where clusters contradict most answers.",
)  # fmt: skip
def doubts(result: PairsResult, *, pictures: Any = None, content: Any = None) -> list[Table] | None:
    found, pictured = doubts_of(result), shown(result, pictures, content)
    tables = [_items(result, found, pictured), _next(found, pictured), _disputed(found, pictured)]
    return [table for table in tables if table.rows] or None


def _items(result: PairsResult, doubts: Doubts, pictured: Shown) -> Table:
    doubtful = int((result.params.chances[:, 0] < DOUBTFUL_ITEM).sum())
    headline = f"{count(doubtful)} of {many(result.answers.n_items, 'item')} {'has' if doubtful == 1 else 'have'} a "
    headline += f"probability below {percent(DOUBTFUL_ITEM, 0)}. An expert, or another answer, helps most here."
    heads = [("Item", False)]
    heads += [(name, True) for name in ("Cluster", "Probability", "Second", "Its probability", "Answers")]
    names = ["item", "cluster", "probability", "second", "second_probability", "answers"]
    rows: list[list[str | Cell]] = [
        [
            pictured.cell(item, number),
            count(cluster),
            percent(p),
            DASH if second is None else count(second),
            DASH if other is None else percent(other),
            count(answers),
        ]
        for number, (item, cluster, p, second, other, answers) in zip(
            doubts.items.tolist(), result.clusters[doubts.items].select(names).rows(), strict=True
        )
    ]
    return _titled("Most doubtful items", heads, rows, headline, "doubtful", "second")


def _next(doubts: Doubts, pictured: Shown) -> Table:
    heads = [("Item", False), ("With", False), ("Probability", True), ("Gain in bits", True), ("To place", False)]
    names = ["left", "right", "probability", "gain", "about", "from_", "to"]
    rows: list[list[str | Cell]] = [
        [
            pictured.cell(left, from_),
            pictured.cell(right, to),
            percent(p),
            f"{gain:.3f}",
            DASH if about is None else Cell(short(about, MAX_NAME_CHARS)),
        ]
        for left, right, p, gain, about, from_, to in doubts.next.select(names).rows()
    ]
    headline = "Answers to these pairs are expected to be most informative. Probability: that both items are the same."
    return _titled("Pairs to ask about next", heads, rows, headline, "gain", "bit")


def _disputed(doubts: Doubts, pictured: Shown) -> Table:
    heads = [
        ("Item", False),
        ("With", False),
        ("Answers: same", True),
        ("Probability", True),
        ("In one cluster", False),
    ]
    names = ["left", "right", "said_same", "answers", "probability", "together", "from_", "to"]
    rows: list[list[str | Cell]] = [
        [
            pictured.cell(left, from_),
            pictured.cell(right, to),
            f"{count(same)} of {count(answers)}",
            percent(p),
            "yes" if together else "no",
        ]
        for left, right, same, answers, p, together, from_, to in doubts.disputed.select(names).rows()
    ]
    headline = (
        f"{many(doubts.n_disputed, 'pair')}, the clearest majority first. Probability: that both items are the same."
    )
    headline += f" The table shows {count(len(rows))}." if len(rows) < doubts.n_disputed else ""
    return _titled("Clusters against most answers", heads, rows, headline)


def _titled(
    title: str, heads: list[tuple[str, bool]], rows: list[list[str | Cell]], headline: str, *terms: str
) -> Table:
    return Table(title, heads, rows, headline, title, terms)
