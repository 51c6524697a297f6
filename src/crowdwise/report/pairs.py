"""The page of clusters found from pairs: from a result to the plain values that are shown. Totals are of everything.

`page/src/pairs-data.ts` mirrors what the script draws; plain tables are in the page without it. Items are numbered as
in the result, clusters from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from . import frame
from .frame import BasePage, BaseSummary, Language, Search, Tile, reports
from .pairs_doubts import doubts_of, doubts_section
from .pairs_items import DOUBTFUL, UNKNOWN, ItemMap, clusters_section, drawn, map_section, surest
from .pairs_pictures import album, checked
from .plain import Cell, Section, Table
from .words import LONGEST, NOT_KNOWN, count, known, many, numbers, percent, short

if TYPE_CHECKING:
    from ..result.pairs import PairsResult

PLAIN = 60  # workers shown at most without the script
SHARES = (
    "skill", "low", "high",
    "sensitivity", "sensitivity_low", "sensitivity_high",
    "specificity", "specificity_low", "specificity_high",
)  # fmt: skip
COMPONENTS, SNAPSHOTS = 50, 40  # shown at most
SOME = 0.005  # share from which a component counts as one that holds items
GLOSSARY = [
    ("item", "What is put into clusters: a picture, a record, a text."),
    ("pair", "Two items that some worker was asked about: are they the same?"),
    ("answer", "What one worker said of one pair: the same, or different."),
    ("cluster", "Items that seem to be the same. The largest has the number 1."),
    ("probability of an item", "How sure it is that the item is in its cluster, given all answers and features."),
    ("doubtful", f"An item whose probability is below {percent(DOUBTFUL, 0)}: worth a look."),
    ("second", "The next likely cluster of an item."),
    ("placed by features", "An item that nobody was asked about: it is where its features put it."),
    ("sensitivity", "A worker's chance to call the same what is the same."),
    ("specificity", "A worker's chance to call different what is different."),
    ("skill", "The mean of sensitivity and specificity: one half is as good as guessing."),
    ("weight", "Log-odds by which an answer of the worker separates the same from different: 0 says nothing; below 0, "
               "the opposite of what was said is to be believed."),
    ("counted", "What a worker's answers count for. Answers of one job depend on each other: a worker who sorts items "
                "into piles decides once that an item does not belong to a pile, however many pairs say so."),
    ("interval", "The range that holds the true value 95 times in 100."),
    ("iteration", "One pass over all answers and items while clusters and workers are found."),
    ("component", "A group that the search begins with. There are more than are needed; those that do not pay get a "
                  "share of nothing."),
    ("gain", "What an answer about a pair is expected to bring, in bits."),
    ("bit", "A unit of information: one bit decides between two equally likely things."),
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PairsSummary(BaseSummary):
    rows_are = "answers"

    answers: int


@dataclass(frozen=True)
class PairsWorker:
    """A worker, as in `PairsResult.workers`."""

    worker: str
    rank: int  # by the lower end of skill
    answers: int
    counted: float | None  # what the answers count for; None where that is their number, for all workers
    weight: float | None
    skill: float | None
    low: float | None
    high: float | None
    sensitivity: float | None
    sensitivity_low: float | None
    sensitivity_high: float | None
    specificity: float | None
    specificity_low: float | None
    specificity_high: float | None


@dataclass(frozen=True)
class PairsWorkers:
    says: str
    total: int
    rows: list[PairsWorker]


@dataclass(frozen=True)
class Shares:
    """How the components shared the items during the fit."""

    says: str
    epochs: list[int]
    components: list[int]  # their numbers from 1, the largest at the end first
    rows: list[list[float]]  # a row an epoch, a column a component
    total: int  # components


@dataclass(frozen=True)
class Training:
    search: Search | None
    shares: Shares | None


@dataclass(frozen=True, kw_only=True)
class PairsPage(BasePage):
    """Everything on the page."""

    template, words = "pairs.html", GLOSSARY

    map: ItemMap | None  # where items have features
    clusters: Section
    workers: PairsWorkers
    workers_table: Table  # the first of them, where there is no script
    training: Training | None
    doubts: list[Section]

    def as_dict(self) -> dict[str, Any]:
        """What the script draws; the rest stands in the page."""
        drawn = ("kind", "map", "workers", "training")
        return {name: frame.plain(getattr(self, name)) for name in drawn}


def summarise_pairs(result: PairsResult, language: Language) -> PairsSummary:
    """The summary of a result of pairs."""
    pairs = result.answers
    said = [many(pairs.n_items, "item"), many(pairs.n_workers, "worker"), many(result.n_clusters, "cluster")]
    counted = f"{many(pairs.n_answers, 'answer')} on {many(len(pairs.edges[0]), 'pair')}: {', '.join(said)}"
    return PairsSummary.of(result, language, counted=counted, tiles=_tiles(result), answers=pairs.n_answers)


def _tiles(result: PairsResult) -> list[Tile]:
    pairs, sizes, sure = result.answers, result.sizes["items"].to_list(), result.params.chances[:, 0]
    asked = int((result.answers_of > 0).sum())
    skills = result.workers["skill"].fill_nan(None).drop_nulls().to_numpy()
    return [
        Tile(
            "Clusters found",
            count(result.n_clusters),
            _extent(sizes),
            "Items that seem to be the same, by the answers, and by features where there are some.",
        ),
        Tile(
            "Items",
            count(pairs.n_items),
            f"{count(asked)} in some pair, {count(pairs.n_items - asked)} placed by features alone"
            if asked < pairs.n_items
            else "all in some pair",
            "What was put into clusters.",
        ),
        Tile(
            "Doubtful items to review",
            count(int((sure < DOUBTFUL).sum())),
            f"probability below {percent(DOUBTFUL, 0)}; about {many(round(float((1 - sure).sum())), 'item')} in all "
            "may be elsewhere",
            "A look by an expert, or another answer, helps here most.",
        ),
        Tile(
            "Median skill",
            percent(float(np.median(skills))) if len(skills) else NOT_KNOWN,
            f"of {many(pairs.n_workers, 'worker')}",
            "Half of the workers are better, half are worse. Skill is the mean of the chances to call the same what is "
            "the same, and different what is different: 50 % is guessing.",
        ),
        Tile(
            "Answers",
            count(pairs.n_answers),
            _counting(result),
            "Answers of one job depend on each other: a worker who sorts items into piles decides once that an item "
            "does not belong to a pile, however many pairs say so.",
        ),
    ]  # fmt: skip


def _extent(sizes: list[int]) -> str:
    """How large clusters are, the largest first."""
    if len(sizes) < 2:
        return ""
    each = f"of {many(sizes[0], 'item')} each"
    return each if sizes[0] == sizes[-1] else f"of {count(sizes[-1])} to {many(sizes[0], 'item')}"


def _counting(result: PairsResult) -> str:
    pairs = result.answers
    on = f"on {many(len(pairs.edges[0]), 'pair')}"
    worth = round(float(pairs.weight.sum()))
    return (
        f"{on}; they count for {count(worth)}, as answers of one job depend on each other" if worth < len(pairs) else on
    )


@reports("pairs", summary=summarise_pairs)
def pairs_page(result: PairsResult, *, pictures: Any = None, command: str | None = None) -> PairsPage:
    """The page of clusters found from pairs. `pictures` (items, height, width) are bytes, in the order of the items;
    some of them are shown, scaled down. `command` is the line that makes the result again (default: a line of
    Python)."""
    images = checked(pictures, result.answers.n_items)
    doubts, dots, workers = doubts_of(result), drawn(result), workers_section(result.workers)
    in_tables = [*doubts.items.tolist(), *chain.from_iterable(surest(result).values()), *doubts.named()]
    found = album(images, chain(in_tables, dots.tolist()))
    pool = {item: src for item, src in found.items() if item not in set(in_tables)}
    return PairsPage.of(
        result,
        command,
        map=map_section(result, dots, pool, bool(found)),
        clusters=clusters_section(result, found),
        workers=workers,
        workers_table=workers_table(workers),
        training=training_section(result),
        doubts=doubts_section(result, doubts, found),
    )


def workers_section(table: pl.DataFrame) -> PairsWorkers:
    shown, which = frame.workers_shown(table, ("weight", "counted", *SHARES))
    depend = bool((table["counted"] < table["answers"] - 1e-6).any())
    rows = [
        PairsWorker(
            worker=short(row["worker"], LONGEST),
            rank=row["rank"],
            answers=row["answers"],
            counted=known(row["counted"], 1) if depend else None,
            weight=known(row["weight"], 3),
            **{name: known(row[name], 4) for name in SHARES},
        )
        for row in shown.iter_rows(named=True)
    ]
    return PairsWorkers(f"{_workers_say(table)}{which}.", table.height, rows)


def _workers_say(table: pl.DataFrame) -> str:
    weight, workers = table.select(numbers("weight")).to_series().drop_nulls(), many(table.height, "worker")
    if weight.is_empty():
        return f"{workers}; the weight of none is known"
    low, middle, high = (f"{float(end or 0.0):.1f}" for end in (weight.min(), weight.median(), weight.max()))  # type: ignore[arg-type]
    if table.height == 1:
        return f"There is one worker, whose answers have a weight of {low}".replace("-", "\u2212")
    says = f"Answers of {workers} have weights (log-odds) from {low} to {high}, with a median of {middle}"
    idle = int((weight < 0.5).sum())
    says += f"; those of {count(idle)} say next to nothing, or the contrary" if idle else ""
    return says.replace(" -", " \u2212")


def workers_table(workers: PairsWorkers) -> Table:
    """The first workers, for who has no script."""
    heads = [("Worker", False), *((title, True) for title in ("Answers", "Weight", "Sensitivity", "Specificity"))]
    rows: list[list[str | Cell]] = [
        [
            Cell(row.worker),
            count(row.answers),
            UNKNOWN if row.weight is None else f"{row.weight:.2f}".replace("-", "\u2212"),
            _ranged(row.sensitivity, row.sensitivity_low, row.sensitivity_high),
            _ranged(row.specificity, row.specificity_low, row.specificity_high),
        ]
        for row in workers.rows[:PLAIN]
    ]
    some = f"the first {PLAIN} of {count(workers.total)}" if workers.total > PLAIN else "the best first"
    return Table(f"Workers, {some}", heads, rows)


def _ranged(share: Any, low: Any, high: Any) -> str:
    if share is None:
        return UNKNOWN
    ends = "" if low is None or high is None else f" ({100 * low:.1f}\u2013{percent(high)})"
    return f"{percent(share)}{ends}"


def training_section(result: PairsResult) -> Training | None:
    search, shares = _search(result), _shares(result)
    return Training(search, shares) if search or shares else None


def _search(result: PairsResult) -> Search | None:
    rows = frame.search_rows(result.trace, "clusters")
    if not rows:
        return None
    first, last = (int(result.trace["clusters"][end]) for end in (0, -1))
    says = f"The fit took {many(len(rows), 'iteration')}"
    says += f", from {many(first, 'cluster')} to {count(last)}" if first != last else f", with {many(last, 'cluster')}"
    rows = [rows[n] for n in frame.spread(len(rows), frame.ITERATIONS)]
    return Search(f"{says}.", short(result.criterion, LONGEST), None, rows)


def _shares(result: PairsResult) -> Shares | None:
    shares = np.nan_to_num(np.asarray(result.params.shares, np.float64))
    if not shares.size:
        return None
    order = np.argsort(-shares[-1], kind="stable")
    used = [int((row >= SOME).sum()) for row in (shares[0], shares[-1])]
    says = f"Of {many(shares.shape[1], 'component')}, {count(used[0])} held at least {percent(SOME)} of the items at "
    says += f"first, and {count(used[1])} at the end."
    if len(order) > COMPONENTS:
        says += f" Shown are the {COMPONENTS} that ended largest."
    kept = frame.spread(len(shares), SNAPSHOTS)
    return Shares(
        says=says,
        epochs=[int(result.params.epochs[n]) for n in kept],
        components=(order[:COMPONENTS] + 1).tolist(),
        rows=shares[kept][:, order[:COMPONENTS]].round(4).tolist(),
        total=shares.shape[1],
    )
