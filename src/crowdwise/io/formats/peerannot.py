"""peerannot: answers.json ({task: {worker: label}}), and answers.txt with a row per task and a column per worker."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import register
from .base import EMPTY, LABELS, Answer, Head, Origin, RecordFormat, Settings, as_label

MISSING = "-1"


@register
class PeerannotJson(RecordFormat):
    """One entry per task."""

    name = "peerannot"
    title = "peerannot (answers.json)"
    files = "answers.json"
    containers = ("object",)
    fields = {"task": "outer key", "worker": "inner key", "label": "value"}
    named_files = r"answers\.json$"

    def recognise(self, head: Head) -> bool:
        values = [value for row in head.rows for value in row.values()]
        plain = (str, int, float)
        return bool(values) and all(
            isinstance(value, Mapping) and all(each is None or isinstance(each, plain) for each in value.values())
            for value in values
        )

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        for task, answers in record.items():
            for worker, label in answers.items():
                text = as_label(label)
                yield Answer(
                    task=task, worker=worker, question="label", kind=LABELS, label=text, status="ok" if text else EMPTY
                )
            if not answers:
                yield Answer(task=task, status=EMPTY)


@register
class PeerannotMatrix(RecordFormat):
    """One line per task; the task and the worker are the numbers of the row and of the column, from 0."""

    name = "peerannot-matrix"
    title = "peerannot (answers.txt)"
    files = "answers.txt"
    containers = ("lines",)
    fields = {"task": "number of the row", "worker": "number of the column", "label": "cell"}

    def recognise(self, head: Head) -> bool:
        return self.insisted(head) and any(MISSING in str(row["line"]).split() for row in head.rows)

    def insisted(self, head: Head) -> bool:
        lines = [str(row["line"]) for row in head.rows]
        cells = {len(line.split()) for line in lines}
        whole = all(re.fullmatch(r"\s*-?\d+(\s+-?\d+)+\s*", line) for line in lines)
        return whole and len(cells) == 1

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        cells = record["line"].split()
        if record["width"] != len(cells):
            raise ValueError(f"it has {len(cells)} cells, the first line {record['width']}")
        found = False
        for worker, cell in enumerate(cells):
            if cell != MISSING:
                found = True
                yield Answer(task=str(record["number"]), worker=str(worker), question="label", kind=LABELS, label=cell)
        if not found:
            yield Answer(task=str(record["number"]), status=EMPTY)
