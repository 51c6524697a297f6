"""Metrics of objects and clusters: the estimated ones are matched one to one with the true ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers.arguments import brief, is_number
from ..answers.coding import normalise_ids, to_numbers, to_text
from ..answers.columns import POINT_ROLES
from ..answers.frames import to_frame
from ..answers.pair_rows import parse_same
from ..engine.resources import require
from ..errors import DataError, ParameterError
from ..kernels.layout import Floats, Ints
from ..result import BaseResult, LabelsResult, PairsResult, SplitResult
from ..result.base import result_of
from .labels import one_label_each


def match_objects(found: Any, truth: Any, *, within: float) -> pl.DataFrame:
    """Match estimated with true objects in every image: one to one, as many as possible within the distance `within`.

    `found` is a result, or a table of image and coordinates like `truth`. The returned table has one row per image that
    occurs in either: image, found, true, matched, precision, recall, f1 and error (root mean square distance of the
    matches).

    >>> import crowdwise as cw
    >>> sim = cw.simulate.clicks("E", seed=1)
    >>> cw.match_objects(cw.aggregate(sim.points), sim.objects, within=0.3).select("found", "matched", "f1").rows()
    [(10, 10, 1.0)]
    """
    matched = match_images(found, truth, within=within)
    counts = dict.fromkeys(("found", "true", "matched"), pl.Int64)
    shares = dict.fromkeys(("precision", "recall", "f1", "error"), pl.Float64)
    table = pl.DataFrame([_scores(each) for each in matched.values()], schema={**counts, **shares}, orient="row")
    return table.insert_column(0, pl.Series("image", list(matched)))


class Matching(NamedTuple):
    """Estimated and true objects of an image, and which match: `found[rows[n]]` is `true[columns[n]]`."""

    found: Floats  # (F, D)
    true: Floats  # (T, D)
    rows: Ints  # (P,)
    columns: Ints  # (P,)


def match_images(found: Any, truth: Any, *, within: float) -> dict[Any, Matching]:
    """The one-to-one matching of every image; arguments are those of `match_objects`."""
    if not is_number(within) or not 0 < within < np.inf:
        raise ParameterError(f"within is {brief(within)}; it must be a distance above 0")
    within = float(within)
    require(("learn",), "match_objects")
    fitted = isinstance(found, BaseResult)
    if fitted:
        found = result_of(found, "points", "match_objects")
    axes = found.answers.axes if fitted else None
    objects = found.objects if fitted else to_frame(found)
    estimated, true = _by_image(objects, axes, "the objects found"), _by_image(to_frame(truth), axes, "the truth")
    types = {type(name) for name in (*estimated, *true)}
    if len(types) > 1:
        listed = " and ".join(sorted(kind.__name__ for kind in types))
        raise DataError(f"image names are {listed} in the two tables; nothing would match. Use one type in both")
    names = list(true) + [name for name in estimated if name not in true]
    if fitted:
        names += [name for name in found.answers.images.to_list() if name not in estimated and name not in true]
    none = np.empty((0, 0))
    return {name: _match(estimated.get(name, none), true.get(name, none), within) for name in names}


def _by_image(table: pl.DataFrame, axes: tuple[str, ...] | None, source: str) -> dict[Any, Floats]:
    """Coordinates (M, D) of the objects of every image."""
    required = ("image", "x", "y") if axes is None else ("image",)
    columns, _ = POINT_ROLES.find(table.columns, {}, source, required)
    names = axes or tuple(columns[role] for role in ("x", "y", "z") if role in columns)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(f"{source} has no column {missing[0]!r}; columns are {', '.join(table.columns)}")
    image, _ = normalise_ids(table[columns["image"]], "image", source)
    table = table.select(names).with_columns(image.alias("image"))
    parts = table.partition_by("image", as_dict=True, maintain_order=True)
    by_image = {}
    for key, part in parts.items():
        coordinates = pl.DataFrame([to_numbers(part[name]) for name in names])
        if (
            key[0] is None
            or not coordinates.select(pl.all_horizontal(pl.all().is_finite())).to_series().fill_null(value=False).all()
        ):
            raise DataError(f"{source} has a row without an image, or with a {' or '.join(names)} that is not a number")
        by_image[key[0]] = coordinates.to_numpy()
    return by_image


def _match(estimated: Floats, true: Floats, within: float) -> Matching:
    if not len(estimated) or not len(true):
        return Matching(estimated, true, np.empty(0, np.int64), np.empty(0, np.int64))
    if estimated.shape[1] != true.shape[1]:
        raise DataError(f"objects have {estimated.shape[1]} coordinates, the truth has {true.shape[1]}")
    from scipy.optimize import linear_sum_assignment

    distances = np.sqrt(((estimated[:, None] - true[None]) ** 2).sum(2))
    rows, columns = linear_sum_assignment(np.where(distances <= within, distances / within - 1e4, 0.0))
    close = distances[rows, columns] <= within
    return Matching(estimated, true, rows[close], columns[close])


def _scores(matching: Matching) -> tuple[int, int, int, float, float, float, float | None]:
    """Numbers of estimated, true and matched objects, precision, recall, F1 and error."""
    found, true, rows, columns = matching
    n, m, matches = len(found), len(true), len(rows)
    error = float(np.sqrt(((found[rows] - true[columns]) ** 2).sum(1).mean())) if matches else None
    precision, recall = matches / n if n else float(m == 0), matches / m if m else float(n == 0)
    return n, m, matches, precision, recall, 2 * matches / (n + m) if n + m else 1.0, error


def match_labels(result: LabelsResult | SplitResult, truth: Any) -> dict[str, float]:
    """Compare estimated with true labels (a table of task and label): tasks with a known label, and accuracy. Tasks and
    labels are compared as text, so that tables of other types match.

    >>> import crowdwise as cw
    >>> sim = cw.simulate.crowd(tasks=50, seed=1)
    >>> cw.match_labels(cw.aggregate(sim.answers), sim.truth)["tasks"]
    50
    """
    result, table = result_of(result, "labels", "match_labels", in_parts=True), to_frame(truth)
    if not {"task", "label"} <= set(table.columns):
        raise DataError(f"truth has columns {', '.join(table.columns)}; it needs task and label")
    true = one_label_each(to_text(table["task"]), to_text(table["label"])).rename({"label": "true"})
    found = [pl.col(name).map_batches(to_text, pl.String, is_elementwise=True) for name in ("task", "label")]
    labels = result.labels if hasattr(result.labels, "lazy") else to_frame(result.labels.select("task", "label"))
    both = labels.lazy().select(found).join(true.lazy(), on="task").collect(engine="streaming")
    if both.is_empty():
        raise DataError("the truth and this result have no task in common: nothing can be scored. Check the task ids")
    right = int((both["label"] == both["true"]).fill_null(value=False).sum())
    return {"tasks": both.height, "accuracy": right / both.height}


def match_clusters(result: PairsResult, truth: Any) -> dict[str, float]:
    """Score estimated clusters against the truth of items (item and label) or of pairs (left, right and answer).

    For items: items (with known truth), clusters, true (number of true clusters), accuracy (under the best one-to-one
    matching of clusters), nmi and ami (normalised and adjusted mutual information). For pairs: pairs (with known
    truth), and precision, recall and f1 of "same".

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
            f"truth has columns {', '.join(table.columns)}; it needs item and label, or left, right and answer"
        )
    clusters = result.clusters.select("item", "cluster")
    true = table.select(pl.col(item).alias("item"), pl.col("label").alias("true"))
    clusters, true = _with_common_type(clusters, true, "item")
    both = clusters.join(true, on="item").drop_nulls()
    if both["item"].n_unique() < both.height:
        repeated = both["item"].filter(both["item"].is_duplicated())[0]
        raise DataError(f"the truth has item {repeated!r} more than once. Keep one label per item")
    if both.is_empty():
        raise DataError("the truth and this result have no item in common: nothing can be scored. Check the item ids")
    found = both["cluster"].rank("dense").to_numpy().astype(np.int64) - 1
    return cluster_scores(found, both["true"].rank("dense").to_numpy().astype(np.int64) - 1)


def cluster_scores(found: Ints, true: Ints) -> dict[str, float]:
    """Scores of estimated clusters (N,) against true ones (N,), both numbered from 0."""
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
    """Precision, recall and F1 of "same" over the pairs of the truth."""
    name = next((name for name in ("answer", "same", "label") if name in table.columns), None)
    if name is None:
        raise DataError(f"truth has columns {', '.join(table.columns)}; it needs left, right and answer")
    both = table.with_columns(pl.Series("same", parse_same(table[name], None, "the truth")))
    for side in ("left", "right"):
        clusters = result.clusters.select(pl.col("item").alias(side), pl.col("cluster").alias(f"{side}_cluster"))
        clusters, both = _with_common_type(clusters, both, side)
        both = both.join(clusters, on=side)
    both = both.filter(pl.col("same") >= 0)
    if both.is_empty():
        raise DataError("the truth and this result have no pair in common: nothing can be scored. Check the item ids")
    estimated = (both["left_cluster"] == both["right_cluster"]).to_numpy()
    same = both["same"].to_numpy() == 1
    hits = int((estimated & same).sum())
    precision, recall = hits / max(int(estimated.sum()), 1), hits / max(int(same.sum()), 1)
    return {
        "pairs": len(same),
        "precision": precision,
        "recall": recall,
        "f1": 2 * hits / max(int(estimated.sum() + same.sum()), 1),
    }


def _with_common_type(one: pl.DataFrame, other: pl.DataFrame, column: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return both tables with the ids of a column in one type: as text, if the types differ."""
    if one[column].dtype == other[column].dtype:
        return one, other
    as_text = [frame.with_columns(to_text(frame[column])) for frame in (one, other)]
    return as_text[0], as_text[1]
