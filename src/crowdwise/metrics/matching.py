"""Objects and clusters found held against true ones, matched one to one."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ..answers.coding import to_text
from ..answers.columns import POINT_ROLES
from ..answers.frames import to_frame
from ..answers.pair_rows import parse_same
from ..engine.resources import require
from ..errors import DataError, ParameterError
from ..kernels.layout import Floats, Ints
from ..result import BaseResult, PairsResult
from ..result.base import result_of


def match_objects(found: Any, truth: Any, *, within: float) -> pl.DataFrame:
    """How well objects were found in every image: as many pairs as can be within a distance, none in two pairs.

    `found` is a result, or a table of objects like `truth`: image and coordinates. Returns image, found, true, matched,
    precision, recall, f1, and error (root mean square distance of pairs). Images that only one of both has count, too.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.clicks("E", seed=1)
    >>> cw.match_objects(cw.aggregate(sim.points), sim.objects, within=0.3).select("found", "matched", "f1").rows()
    [(10, 10, 1.0)]
    """
    if isinstance(within, bool) or not isinstance(within, (int, float)) or not 0 < within < np.inf:
        raise ParameterError(f"within is {within!r}; it must be a distance above 0")
    require(("learn",), "match_objects")
    fitted = isinstance(found, BaseResult)
    if fitted:
        found = result_of(found, "points", "match_objects")
    axes = found.answers.axes if fitted else None
    mine = found.objects if fitted else to_frame(found)
    ours, theirs = _by_image(mine, axes, "the objects found"), _by_image(to_frame(truth), axes, "the truth")
    kinds = {type(name) for name in (*ours, *theirs)}
    if len(kinds) > 1:
        known = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(f"image names are {known} in the two tables; nothing would match. Give both alike")
    names = list(theirs) + [name for name in ours if name not in theirs]
    if fitted:
        names += [name for name in found.answers.images.to_list() if name not in ours and name not in theirs]
    rows = [(name, *_matched(ours.get(name), theirs.get(name), within)) for name in names]
    counts = dict.fromkeys(("found", "true", "matched"), pl.Int64)
    shares = dict.fromkeys(("precision", "recall", "f1", "error"), pl.Float64)
    table = pl.DataFrame([row[1:] for row in rows], schema={**counts, **shares}, orient="row")
    return table.insert_column(0, pl.Series("image", names))


def _by_image(table: pl.DataFrame, axes: tuple[str, ...] | None, source: str) -> dict[Any, Floats]:
    """(M, D) places of every image."""
    wanted = ("image", "x", "y") if axes is None else ("image",)
    columns, _ = POINT_ROLES.find(table.columns, {}, source, wanted)
    names = axes or tuple(columns[role] for role in ("x", "y", "z") if role in columns)
    lost = [name for name in names if name not in table.columns]
    if lost:
        raise DataError(f"{source} has no column {lost[0]!r}; columns are {', '.join(table.columns)}")
    parts = table.select(columns["image"], *names).partition_by(columns["image"], as_dict=True, maintain_order=True)
    found = {}
    for key, part in parts.items():
        places = part.select(pl.col(names).cast(pl.Float64, strict=False))
        if (
            key[0] is None
            or not places.select(pl.all_horizontal(pl.all().is_finite())).to_series().fill_null(value=False).all()
        ):
            raise DataError(f"{source} has a row without an image, or with {', '.join(names)} that are no numbers")
        found[key[0]] = places.to_numpy()
    return found


def _matched(
    mine: Floats | None, true: Floats | None, within: float
) -> tuple[int, int, int, float, float, float, float | None]:
    n, m = 0 if mine is None else len(mine), 0 if true is None else len(true)
    pairs, error = 0, None
    if mine is not None and true is not None and n and m:
        if mine.shape[1] != true.shape[1]:
            raise DataError(f"objects have {mine.shape[1]} coordinates, the truth has {true.shape[1]}")
        from scipy.optimize import linear_sum_assignment

        away = np.sqrt(((mine[:, None] - true[None]) ** 2).sum(2))
        rows, columns = linear_sum_assignment(np.where(away <= within, away / within - 1e4, 0.0))
        distance = away[rows, columns]
        good = distance <= within
        pairs = int(good.sum())
        error = float(np.sqrt((distance[good] ** 2).mean())) if pairs else None
    precision, recall = pairs / n if n else float(m == 0), pairs / m if m else float(n == 0)
    return n, m, pairs, precision, recall, 2 * pairs / (n + m) if n + m else 1.0, error


def match_clusters(result: PairsResult, truth: Any) -> dict[str, float]:
    """How well clusters were found: by items (`truth` has item and label) or by pairs (left, right and answer).

    By items: items known, clusters, true (clusters), accuracy (by the best matching of clusters one to one), nmi and
    ami (normalised and adjusted mutual information). By pairs: pairs known, precision, recall and f1 of "the same".

    >>> import crowdwise as cw
    >>> sim = cw.simulate.pinwheel(seed=1)
    >>> scores = cw.match_clusters(cw.aggregate(sim.pairs, features=sim.features), sim.truth)
    >>> scores["accuracy"] > 0.95, scores["clusters"]
    (True, 5)
    """
    require(("learn",), "match_clusters")
    result = result_of(result, "pairs", "match_clusters")
    table = to_frame(truth)
    if {"left", "right"} <= set(table.columns):
        return _by_pairs(result, table)
    item = next((name for name in ("item", "task", "image") if name in table.columns), None)
    if item is None or "label" not in table.columns:
        raise DataError(
            f"truth has columns {', '.join(table.columns)}; wanted are item and label, or left, right and answer"
        )
    mine = result.clusters.select("item", "cluster")
    mine, true = _alike(mine, table.select(pl.col(item).alias("item"), pl.col("label").alias("true")), "item")
    both = mine.join(true, on="item")
    both = both.drop_nulls()
    if both["item"].n_unique() < both.height:
        twice = both["item"].filter(both["item"].is_duplicated())[0]
        raise DataError(f"the truth names item {twice!r} more than once. Keep one label an item")
    if both.is_empty():
        raise DataError("the truth names no item of this result: nothing can be scored. Check its items")
    found = both["cluster"].rank("dense").to_numpy().astype(np.int64) - 1
    return scored(found, both["true"].rank("dense").to_numpy().astype(np.int64) - 1)


def scored(found: Ints, true: Ints) -> dict[str, float]:
    """Scores of clusters by number against true ones."""
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

    C, T = int(found.max()) + 1, int(true.max()) + 1
    table = np.bincount(found * T + true, minlength=C * T).reshape(C, T)
    rows, columns = linear_sum_assignment(-table)
    return {
        "items": len(found),
        "clusters": len(np.unique(found)),
        "true": len(np.unique(true)),
        "accuracy": float(table[rows, columns].sum() / len(found)),
        "nmi": float(normalized_mutual_info_score(true, found)),
        "ami": float(adjusted_mutual_info_score(true, found)),
    }


def _by_pairs(result: PairsResult, table: pl.DataFrame) -> dict[str, float]:
    name = next((name for name in ("answer", "same", "label") if name in table.columns), None)
    if name is None:
        raise DataError(f"truth has columns {', '.join(table.columns)}; wanted are left, right and answer")
    both = table.with_columns(pl.Series("same", parse_same(table[name], None, "the truth")))
    for side in ("left", "right"):
        place = result.clusters.select(pl.col("item").alias(side), pl.col("cluster").alias(f"{side}_cluster"))
        place, both = _alike(place, both, side)
        both = both.join(place, on=side)
    both = both.filter(pl.col("same") >= 0)
    if both.is_empty():
        raise DataError("the truth names no pair of this result: nothing can be scored. Check its items")
    together = (both["left_cluster"] == both["right_cluster"]).to_numpy()
    same = both["same"].to_numpy() == 1
    hit = int((together & same).sum())
    precision, recall = hit / max(int(together.sum()), 1), hit / max(int(same.sum()), 1)
    return {
        "pairs": len(same),
        "precision": precision,
        "recall": recall,
        "f1": 2 * hit / max(int(together.sum() + same.sum()), 1),
    }


def _alike(mine: pl.DataFrame, other: pl.DataFrame, column: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two tables whose ids in a column are of one type: text, where they were not."""
    if mine[column].dtype == other[column].dtype:
        return mine, other
    texts = [frame.with_columns(to_text(frame[column])) for frame in (mine, other)]
    return texts[0], texts[1]
