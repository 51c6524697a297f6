"""Preferences between two answers: arena votes, chosen and rejected, and crowd-kit's frame of comparisons.

A comparison is a task, and what won it is the label. Same/different answers about pairs are another thing: see `Pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import register
from .base import EMPTY, LABELS, Answer, Head, Origin, RecordFormat, Settings, as_label

FIRST, SECOND = "first", "second"
JUDGES = ("judge", "annotator_id", "annotator", "worker", "worker_id", "user_id", "rater")
IDS = ("question_id", "prompt_id", "id", "prompt", "instruction", "question")


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these fields that is filled."""
    for name in names:
        value = record.get(name)
        if value is not None and value != "":
            return " / ".join(map(str, value)) if isinstance(value, list) else as_label(value)
    return None


class _Comparison(RecordFormat):
    """What all files of comparisons share."""

    containers = ("records", "table")
    fields = {"task": "the two that are compared", "worker": "judge or annotator", "label": "which one won"}


@register
class Arena(_Comparison):
    """Votes between two models about one prompt."""

    name = "arena"
    title = "Arena votes (model_a, model_b, winner)"
    files = "JSONL, JSON, CSV, Parquet"

    def recognise(self, head: Head) -> bool:
        return head.has("model_a", "model_b", "winner")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        left, right, winner = (as_label(record[name]) for name in ("model_a", "model_b", "winner"))
        about = (record.get("turn") if settings.task is None else None), f"{left} | {right}"
        asked = _first(record, (settings.task,) if settings.task else IDS)
        names = {"model_a": left, "model_b": right}
        yield Answer(
            task=" | ".join(str(each) for each in (asked, *about) if each is not None),
            worker=_first(record, (settings.worker,) if settings.worker else JUDGES),
            question="winner", kind=LABELS, label=winner, left=left, right=right,
            winner=names.get(str(winner), winner), submitted_at=as_label(record.get("tstamp")),
            status="ok" if winner else EMPTY,
        )  # fmt: skip


@register
class Chosen(_Comparison):
    """A chosen and a rejected answer to one prompt. Which one is called first follows from the two texts alone."""

    name = "preferences"
    title = "Preferences (prompt, chosen, rejected)"
    files = "JSONL, JSON, CSV, Parquet"

    def recognise(self, head: Head) -> bool:
        return head.has("chosen", "rejected")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        chosen, rejected = (_text(record[name]) for name in ("chosen", "rejected"))
        left, right = sorted((chosen, rejected))
        asked = _first(record, (settings.task,) if settings.task else IDS)
        yield Answer(
            task=" | ".join(each for each in (asked, left, right) if each),
            worker=_first(record, (settings.worker,) if settings.worker else JUDGES),
            question="preference", kind=LABELS, label=FIRST if chosen == left else SECOND, left=left, right=right,
            winner=chosen,
        )  # fmt: skip


def _text(value: Any) -> str:
    """Return an answer as text: of a conversation, the last message."""
    if isinstance(value, list) and value:
        value = value[-1].get("content") if isinstance(value[-1], Mapping) else value[-1]
    return as_label(value) or ""


@register
class CrowdKitPairs(_Comparison):
    """crowd-kit's frame: worker, left, right, and the winner as the label."""

    name = "crowd-kit-pairs"
    title = "crowd-kit (comparisons)"
    files = "worker, left, right, label: CSV, JSONL, Parquet, pandas"

    def recognise(self, head: Head) -> bool:
        wins = [
            str(row.get("label")) in (str(row.get("left")), str(row.get("right")))
            for row in head.rows
            if head.has("left", "right", "label")
        ]
        return {"worker", "left", "right", "label"} <= {*head.columns} and bool(wins) and all(wins)

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        left, right, winner = (as_label(record[name]) for name in ("left", "right", "label"))
        if winner is not None and winner not in (left, right):
            raise ValueError(f"label is {winner!r}, which is neither left nor right")
        yield Answer(
            task=f"{left} | {right}", worker=as_label(record["worker"]), question="winner", kind=LABELS,
            label=None if winner is None else "left" if winner == left else "right", left=left, right=right,
            winner=winner, status="ok" if winner else EMPTY,
        )  # fmt: skip
