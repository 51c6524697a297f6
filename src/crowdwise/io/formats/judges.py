"""Logs of language models as judges: one record per item and judge, with a verdict, and perhaps probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from . import register
from .base import LABELS, MODEL, Answer, Head, Origin, RecordFormat, Settings, as_label, number, parsed

JUDGES = ("judge", "judge_model", "judge_id", "model", "grader")
ITEMS = ("item", "item_id", "task", "task_id", "question_id", "example_id", "id", "prompt_id", "prompt")
PROBABILITIES = ("probabilities", "probs", "label_probs")


@register
class Judges(RecordFormat):
    """Verdicts of judges. The score and the probabilities are kept beside the verdict."""

    name = "judges"
    title = "Logs of language models as judges"
    files = "JSONL, JSON, CSV, Parquet: item, judge, verdict"
    containers = ("records", "table")
    kept = ("value", "probabilities")
    statuses = {"skipped": "no verdict"}
    fields = {"task": "item", "worker": "judge", "label": "verdict"}

    def recognise(self, head: Head) -> bool:
        names = {*head.columns}
        return "verdict" in names and bool(names & {*JUDGES}) and bool(names & {*ITEMS})

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        verdict = record["verdict"]
        chances = next((record[name] for name in PROBABILITIES if record.get(name)), None)
        if isinstance(chances, str):
            chances = parsed(chances)
        label = as_label(verdict)
        yield Answer(
            task=as_label(_named(record, settings.task, ITEMS)),
            worker=as_label(_named(record, settings.worker, JUDGES)),
            worker_kind=MODEL, question="verdict", kind=LABELS, label=label, value=number(record.get("score")),
            probabilities=json.dumps(chances, ensure_ascii=False, default=float) if chances else None,
            submitted_at=as_label(record.get("timestamp", record.get("created_at"))),
            status="ok" if label is not None else "skipped",
        )  # fmt: skip


def _named(record: Mapping[str, Any], given: str | None, usual: tuple[str, ...]) -> Any:
    return record[given or next((name for name in usual if name in record), usual[0])]
