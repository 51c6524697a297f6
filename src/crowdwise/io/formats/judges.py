"""Logs of language models as judges: one record per item and judge, with a verdict, and perhaps probabilities; and the
two logs of MT-bench, with scores and with comparisons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...answers.columns import LABEL_ROLES
from . import register
from .base import LABELS, MODEL, OK, Answer, Head, Origin, RecordFormat, Settings, as_label, number, parsed

JUDGES = ("judge", "judge_model", "judge_id", "grader")
JUDGED = "model"  # what was judged; the judge, where no other field names one
ITEMS = (
    "item", "item_id", "task_id", "question_id", "example_id", "custom_id", "sample_id", "doc_id", "input_id",
    "record_id", "row_id", "task", "id", "prompt_id", "index", "prompt",
)  # fmt: skip
PROBABILITIES = ("probabilities", "probs", "label_probs")
USERS = ("user", "user_id", "username")  # beside a judge, those who wrote the prompt
NO_SCORE, NO_WINNER = "-1", "error"  # of MT-bench, where the text of the judge has no verdict


@register
class Judges(RecordFormat):
    """Verdicts of judges. The score and the probabilities are kept beside the verdict."""

    name = "judges"
    title = "Logs of language models as judges"
    files = "JSONL, JSON, CSV, Parquet: item, judge, verdict"
    containers = ("records", "table")
    takes_worker = True
    kept = ("value", "probabilities")
    statuses = {"skipped": "no verdict"}
    fields = {"task": "item", "worker": "judge", "label": "verdict"}
    specific = False

    def recognise(self, head: Head) -> bool:
        judges = {*head.columns} & {*JUDGES}
        others = (*JUDGES, JUDGED, "source", *(USERS if judges else ()))
        return self.insisted(head) and LABEL_ROLES.guess("worker", head.columns, others) is None

    def insisted(self, head: Head) -> bool:
        names = {*head.columns}
        return "verdict" in names and bool(names & {*JUDGES, JUDGED}) and bool(names & {*ITEMS})

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        worker = settings.worker or next((name for name in JUDGES if name in record), JUDGED)
        item = settings.task or next((name for name in ITEMS if name in record), ITEMS[0])
        judged = record.get(JUDGED) if JUDGED not in (worker, item) else None
        chances = next((record[name] for name in PROBABILITIES if record.get(name)), None)
        if isinstance(chances, str):
            chances = parsed(chances)
        label = as_label(record["verdict"])
        yield Answer(
            task=_joined(record[item], judged), worker=_judge(record[worker]), worker_kind=MODEL, question="verdict",
            kind=LABELS, label=label, value=number(record.get("score")),
            probabilities=json.dumps(chances, ensure_ascii=False, default=float) if chances else None,
            submitted_at=as_label(record.get("timestamp", record.get("created_at"))),
            status=OK if label is not None else "skipped",
        )  # fmt: skip


class _MtBench(RecordFormat):
    """What both logs of MT-bench share."""

    containers = ("records", "table")
    takes_worker = True

    def about(self, record: Mapping[str, Any], settings: Settings, *models: Any) -> Answer:
        """Return who judged what: a turn of a question, as these models answered it."""
        asked = record[settings.task] if settings.task else record["question_id"]
        turn = None if settings.task else record.get("turn")
        return Answer(
            task=_joined(asked, turn, *models), worker=_judge(record[settings.worker or "judge"]), worker_kind=MODEL,
            kind=LABELS, submitted_at=as_label(record.get("tstamp")),
        )  # fmt: skip


@register
class MtBenchScores(_MtBench):
    """Scores of single answers."""

    name = "judges-mt-bench"
    title = "MT-bench (scores)"
    files = "model_judgment JSONL: question_id, model, judge, judgment, score"
    kept = ("value",)
    statuses = {"skipped": "score -1"}
    fields = {"task": "question_id, turn, model", "worker": "judge", "label": "score"}

    def recognise(self, head: Head) -> bool:
        return head.has("question_id", "model", "judge", "judgment", "score") and "verdict" not in head.columns

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        label = as_label(record["score"])
        about = self.about(record, settings, record["model"])._replace(question="score")
        if label in (None, NO_SCORE):
            yield about._replace(status="skipped")
        else:
            yield about._replace(label=label, value=number(record["score"]))


@register
class MtBenchPairs(_MtBench):
    """Comparisons of two answers, each in two games: in the second, the two change places."""

    name = "judges-mt-bench-pairs"
    title = "MT-bench (comparisons)"
    files = "model_judgment JSONL: question_id, model_1, model_2, judge, g1_winner, g2_winner"
    statuses = {"skipped": "error"}
    fields = {"task": "question_id, turn, the two models as shown", "worker": "judge", "label": "which one won"}

    def recognise(self, head: Head) -> bool:
        return head.has("question_id", "model_1", "model_2", "judge", "g1_winner", "g2_winner")

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        for game, shown in (("g1_winner", ("model_1", "model_2")), ("g2_winner", ("model_2", "model_1"))):
            left, right = (as_label(record[name]) for name in shown)
            won = as_label(record[game])
            about = self.about(record, settings, left, right)._replace(question="winner", left=left, right=right)
            if won in (None, NO_WINNER):
                yield about._replace(status="skipped")
            else:
                places = dict(zip(shown, ("model_a", "model_b"), strict=True))
                winner = as_label(record[won]) if won in places else won
                yield about._replace(label=places.get(str(won), won), winner=winner)


def _joined(*parts: Any) -> str | None:
    """Return an id of several parts, of which the first must be there."""
    texts = [as_label(part) for part in parts]
    return None if texts[0] is None else " | ".join(text for text in texts if text is not None)


def _judge(value: Any) -> str | None:
    """Return the name of a judge; MT-bench writes a list of the model and its prompt."""
    return " / ".join(map(str, value)) if isinstance(value, list) else as_label(value)
