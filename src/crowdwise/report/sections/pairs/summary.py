"""The summary of clusters found from pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....result import PairsResult
from ...glossary import DOUBTFUL_ITEM
from ...page import BaseSummary, Language, Tile
from ...registry import summary
from ...text import NOT_KNOWN, count, many, percent


@dataclass(frozen=True, kw_only=True)
class PairsSummary(BaseSummary):
    rows_are = "answers"

    answers: int

    @property
    def title(self) -> str:
        return f"Clusters found from {many(self.answers, 'answer')}"

    @property
    def terms(self) -> Sequence[str]:
        placed = any("placed by features" in tile.detail for tile in self.tiles)
        terms = ("answer", "cluster", "doubtful", "guessing", "item", "pair", "skill")
        return (*super().terms, *terms, *(("placed by features",) if placed else ()))


@summary("pairs")
def summarise(result: PairsResult, language: Language) -> PairsSummary:
    """Return the summary of a result of pairs."""
    pairs = result.answers
    sizes = [many(pairs.n_items, "item"), many(pairs.n_workers, "worker"), many(result.n_clusters, "cluster")]
    counted = f"{many(pairs.n_answers, 'answer')} on {many(len(pairs.edges[0]), 'pair')}: {', '.join(sizes)}"
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
            "Items that are estimated to be the same, from the answers, and from features if given.",
        ),
        Tile(
            "Items",
            count(pairs.n_items),
            f"{count(asked)} in pairs, {count(pairs.n_items - asked)} placed by features alone"
            if asked < pairs.n_items
            else "all in pairs",
            "What is put into clusters.",
        ),
        Tile(
            "Doubtful items to review",
            count(int((sure < DOUBTFUL_ITEM).sum())),
            f"probability below {percent(DOUBTFUL_ITEM, 0)}; about {many(round(float((1 - sure).sum())), 'item')} "
            "may belong elsewhere",
            "An expert, or another answer, helps most here.",
        ),
        Tile(
            "Median skill",
            percent(float(np.median(skills))) if len(skills) else NOT_KNOWN,
            f"of {many(pairs.n_workers, 'worker')}",
            "Skill is the mean of the probabilities to recognise that two items are the same, and that they differ: "
            "guessing has a skill of 50 %. Half of the workers are above the median.",
        ),
        Tile(
            "Answers",
            count(pairs.n_answers),
            _counting(result),
            "Answers of one job depend on each other: a worker who sorts items into piles decides once that an item "
            "does not belong to a pile, not once per pair.",
        ),
    ]  # fmt: skip


def _extent(sizes: list[int]) -> str:
    """Return the sizes of clusters in words; the largest is first."""
    if len(sizes) < 2:
        return ""
    each = f"of {many(sizes[0], 'item')} each"
    return each if sizes[0] == sizes[-1] else f"of {count(sizes[-1])} to {many(sizes[0], 'item')}"


def _counting(result: PairsResult) -> str:
    pairs = result.answers
    on = f"on {many(len(pairs.edges[0]), 'pair')}"
    independent = round(float(pairs.weight.sum()))
    return f"{on}; worth {many(independent, 'independent answer')}" if independent < len(pairs) else on
