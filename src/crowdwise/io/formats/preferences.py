"""Preferences between two answers: arena votes, chosen and rejected, annotations of AlpacaEval, frames of crowd-kit.

A comparison is a task, and what won it is the label. Same/different answers about pairs are another thing: see `Pairs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...answers.columns import LABEL_ROLES
from . import register
from .base import EMPTY, LABELS, OK, Answer, Head, Origin, RecordFormat, Settings, as_label, number

FIRST, SECOND = "first", "second"
JUDGES = ("judge", "annotator_id", "annotator", "worker", "worker_id", "user_id", "rater")
WON = {"winner_model_a": "model_a", "winner_model_b": "model_b", "winner_tie": "tie"}  # columns of 1 and 0
YES, NO = ("1", "true"), ("0", "false", None)
DRAWN = (0.0, 1.5)  # of AlpacaEval: 1 is the first answer, 2 the second
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
    takes_worker = True
    fields = {"task": "the two that are compared", "worker": "judge or annotator", "label": "which one won"}


@register
class Arena(_Comparison):
    """Votes between two models about one prompt."""

    name = "arena"
    title = "Arena votes (model_a, model_b, winner)"
    files = "JSONL, JSON, CSV, Parquet"

    def recognise(self, head: Head) -> bool:
        return head.has("model_a", "model_b") and (head.has("winner") or head.has(*WON))

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        left, right = (as_label(record[name]) for name in ("model_a", "model_b"))
        winner = as_label(record["winner"]) if "winner" in record else _won(record)
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


def _won(record: Mapping[str, Any]) -> str | None:
    """Return the winner, where each result has a column: of these, one has a 1."""
    given = {result: as_label(record[name]) for name, result in WON.items()}
    found = [result for result, cell in given.items() if cell in YES]
    if len(found) > 1 or any(cell not in (*YES, *NO) for cell in given.values()):
        raise ValueError(f"{', '.join(WON)} are {', '.join(map(str, given.values()))}; one must be 1, the others 0")
    return found[0] if found else None


@register
class Chosen(_Comparison):
    """A chosen and a rejected answer to one prompt. Which one is called first follows from the two texts alone."""

    name = "preferences"
    title = "Preferences (prompt, chosen, rejected)"
    files = "JSONL, JSON, CSV, Parquet"
    specific = False

    def recognise(self, head: Head) -> bool:
        labelled = head.has("label") and LABEL_ROLES.complete(head.columns)
        return self.insisted(head) and not labelled

    def insisted(self, head: Head) -> bool:
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
class AlpacaEval(_Comparison):
    """Annotations of AlpacaEval: a number between 1, the first answer, and 2, the second. It is kept."""

    name = "preferences-alpaca-eval"
    title = "AlpacaEval (annotations)"
    files = "annotations JSON: instruction, output_1, output_2, annotator, preference"
    kept = ("value",)

    def recognise(self, head: Head) -> bool:
        return head.has("instruction", "output_1", "output_2", "preference")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        left, right = (
            _first(record, (f"generator_{side}",)) or _text(record[f"output_{side}"]) for side in (1, 2)
        )  # fmt: skip
        asked = _first(record, (settings.task or "instruction",))
        given = as_label(record["preference"])  # nothing, or NaN, where the text of the annotator has none
        value = number(given)
        if value is not None and value not in DRAWN and not 1 <= value <= 2:
            raise ValueError(f"preference is {value:g}; it can be 0 or 1 to 2")
        label = None if value is None else "tie" if value in DRAWN else "output_1" if value < 1.5 else "output_2"
        yield Answer(
            task=" | ".join(each for each in (asked, left, right) if each),
            worker=_first(record, (settings.worker,) if settings.worker else JUDGES), question="preference",
            kind=LABELS, label=label, value=value, left=left, right=right,
            winner={"output_1": left, "output_2": right}.get(str(label), label), status=OK if label else EMPTY,
        )  # fmt: skip


@register
class CrowdKitPairs(_Comparison):
    """crowd-kit's frame: worker (once performer), left, right, and the winner as the label."""

    name = "crowd-kit-pairs"
    title = "crowd-kit (comparisons)"
    files = "worker, left, right, label: CSV, JSONL, Parquet, pandas"
    specific = False

    def recognise(self, head: Head) -> bool:
        wins = [
            str(row.get("label")) in (str(row.get("left")), str(row.get("right")))
            for row in head.rows
            if head.has("left", "right", "label")
        ]
        return (head.has("worker") or head.has("performer")) and bool(wins) and all(wins)

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        left, right, winner = (as_label(record[name]) for name in ("left", "right", "label"))
        if winner is not None and winner not in (left, right):
            raise ValueError(f"label is {winner!r}, which is neither left nor right")
        yield Answer(
            task=f"{left} | {right}", worker=as_label(record["worker" if "worker" in record else "performer"]),
            question="winner", kind=LABELS,
            label=None if winner is None else "left" if winner == left else "right", left=left, right=right,
            winner=winner, status="ok" if winner else EMPTY,
        )  # fmt: skip
