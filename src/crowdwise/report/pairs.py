"""The page of clusters found from pairs: from a result to the plain values that are shown. Totals are of everything."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import for_python, for_shell
from .frame import Language, Tile, frame_of, reports, summary_fields
from .pairs_doubts import doubts_of, doubts_section
from .pairs_items import clusters_section, drawn, map_section, surest
from .pairs_page import PairsPage, PairsSummary
from .pairs_people import workers_section, workers_table
from .pairs_pictures import album, checked
from .pairs_training import training_section
from .pairs_words import DOUBTFUL
from .words import NOT_KNOWN, count, many, percent

if TYPE_CHECKING:
    from ..result.pairs import PairsResult


def summarise_pairs(result: PairsResult, language: Language) -> PairsSummary:
    """The summary of a result of pairs."""
    pairs = result.answers
    said = [many(pairs.n_items, "item"), many(pairs.n_workers, "worker"), many(result.n_clusters, "cluster")]
    return PairsSummary(
        **summary_fields(result, language),
        counted=f"{many(pairs.n_answers, 'answer')} on {many(len(pairs.edges[0]), 'pair')}: {', '.join(said)}",
        answers=pairs.n_answers,
        tiles=_tiles(result),
    )


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
            "Answers of one job hang together: who sorts items into piles decides once that an item is not like a "
            "pile, however many pairs say so.",
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
    return f"{on}; they count for {count(worth)}, as those of one job hang together" if worth < len(pairs) else on


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
    return PairsPage(
        **frame_of(result, command),
        kind="pairs",
        summary=summarise_pairs(result, for_python if command is None else for_shell),
        map=map_section(result, dots, pool, bool(found)),
        clusters=clusters_section(result, found),
        workers=workers,
        workers_table=workers_table(workers),
        training=training_section(result),
        doubts=doubts_section(result, doubts, found),
    )
