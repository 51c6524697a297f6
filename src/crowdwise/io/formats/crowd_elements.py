"""The answers of Amazon's crowd HTML elements, which Mechanical Turk and SageMaker Ground Truth have in common."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

import polars as pl

from .base import EMPTY, LABELS, OK, POINTS, TEXT, as_label, number, one_or_set

RADIO_GROUP = "crowd-radio-group"  # name of the question, which the answers of the element do not have
SEPARATOR = "\x1f"  # between a group, a button and its value, until all forms are known
ON = "on"  # value of a button or check box that has none of its own


def element_answers(
    content: Mapping[str, Any], group: str = RADIO_GROUP, alone: Container[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each element of a form, and the fields of its answers. Several elements with a single value of
    true or false may be the buttons of a group, which `with_radio_groups` tells when all forms are known; those whose
    names are in `alone` are none."""
    buttons = {name for name, value in content.items() if name not in alone and _is_switch(value)}
    for name, value in content.items():
        if len(buttons) > 1 and name in buttons:
            (own, on), *_ = value.items()
            yield SEPARATOR.join((group, name, own)), {"kind": LABELS, "label": as_label(on)}
        else:
            for fields in _fields(value):
                yield name, fields


def with_radio_groups(frame: pl.DataFrame) -> pl.DataFrame:
    """Return judgements in which the buttons of a group are one question. Buttons are a group if no form has two of
    them chosen; otherwise each is a question of its own. Elements that are chosen in every form, such as a consent, are
    left out of a group that has two chosen with them."""
    if "question" not in frame.columns or not _has(frame["question"], SEPARATOR):
        return frame
    name = pl.col("question").cast(pl.String)
    parts = name.str.split_exact(SEPARATOR, 2).struct.rename_fields(["group", "button", "own"])
    split = frame.with_row_index("order").with_columns(parts.alias("part")).unnest("part")
    switches = split.filter(pl.col("button").is_not_null())
    others = split.filter(pl.col("button").is_null()).with_columns(name)
    switches = switches.with_columns(pl.col("label").cast(pl.String) == "true")
    each = [_group(part) for part in switches.partition_by("group", maintain_order=True)]
    texts = pl.col("question", "label").cast(pl.String)
    whole = pl.concat([part.with_columns(texts) for part in (others, *each)], how="diagonal_relaxed").sort("order")
    kinds = {name: kind for name, kind in frame.schema.items() if name not in ("question", "label")}
    return whole.select(*(pl.col(name).cast(kind) for name, kind in kinds.items()), "question", "label")


def _has(names: pl.Series, mark: str) -> bool:
    return bool(names.unique().cast(pl.String).str.contains(mark, literal=True).any())


def _group(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the answers of the buttons that may be a group; `label` says whether a button is chosen."""
    about = ("order", "button", "own", "question", "label", "status")
    form = [name for name in rows.columns if name not in about]
    always = rows.group_by("button").agg(pl.col("label").all()).filter("label")["button"].to_list()
    for alone in ([], always):
        inside = pl.col("button").is_in(alone).not_()
        group = rows.filter(inside)
        if group["button"].n_unique() > 1 and group.group_by(form).agg(pl.col("label").sum())["label"].max() == 1:
            return pl.concat([_chosen(group, form), _single(rows.filter(~inside))])
    return _single(rows)


def _chosen(rows: pl.DataFrame, form: list[str]) -> pl.DataFrame:
    """Return one answer per form: the value of the chosen button, or its name if values do not tell buttons apart."""
    told = rows["own"].n_unique() == rows["button"].n_unique() and ON not in rows["own"]
    first = rows.sort("label", descending=True, maintain_order=True).unique(form, keep="first", maintain_order=True)
    return _answered(first, pl.col("own" if told else "button"), pl.col("group"), pl.col("label"))


def _single(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the answers of elements that are questions of their own."""
    switch = pl.col("own") == ON
    label = pl.when(switch).then(pl.col("label").cast(pl.String)).otherwise("own")
    return _answered(rows, label, pl.col("button"), pl.col("label") | switch)


def _answered(rows: pl.DataFrame, label: pl.Expr, question: pl.Expr, given: pl.Expr) -> pl.DataFrame:
    """Return rows with these labels where an answer is given; the others are empty."""
    status = pl.when(~given & (pl.col("status") == OK)).then(pl.lit(EMPTY)).otherwise(pl.col("status").cast(pl.String))
    return rows.with_columns(
        pl.when(given).then(label).alias("label"), status.alias("status"), question.alias("question")
    )


def _is_switch(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and isinstance(next(iter(value.values())), bool)


def _fields(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, (Mapping, list)):
        label = as_label(value)
        yield {"kind": LABELS, "label": label} if label is not None else {"kind": LABELS, "status": "empty"}
    elif isinstance(value, list):
        yield {"kind": TEXT} if any(isinstance(each, (Mapping, list)) for each in value) else one_or_set(value)
    elif "boundingBoxes" in value or "keypoints" in value:
        yield from _places(value)
    elif isinstance(value.get("labels"), list):
        yield one_or_set(value["labels"])
    elif "label" in value:
        yield one_or_set([value["label"]])
    elif set(value) == {"on"}:
        yield one_or_set([value["on"]])
    elif value and all(isinstance(ticked, bool) for ticked in value.values()):
        yield one_or_set(option for option, ticked in value.items() if ticked)
    else:
        yield {"kind": TEXT}


def _places(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the centres of boxes and the key points, in pixels; without any, that the worker saw nothing."""
    image = value.get("inputImageProperties") or {}
    size = {f"image_{name}": number(image.get(name)) for name in ("width", "height")}
    found = False
    for box in value.get("boundingBoxes") or []:
        width, height = float(box["width"]), float(box["height"])
        place = {"x": float(box["left"]) + width / 2, "y": float(box["top"]) + height / 2}
        yield {"kind": POINTS, "label": as_label(box.get("label")), "width": width, "height": height} | place | size
        found = True
    for point in value.get("keypoints") or []:
        place = {"x": float(point["x"]), "y": float(point["y"])}
        yield {"kind": POINTS, "label": as_label(point.get("label"))} | place | size
        found = True
    if not found:
        yield {"kind": POINTS} | size
