"""How many judgements the golden exports hold, counted with the libraries of Python alone, by another way than the
readers: to see that no reader loses any."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree


def count(path: Path, format: str, question: str, kind: str) -> int:
    """Return how many judgements about a question a file holds: votes, and whatever is left out."""
    counters = POINTS if kind == "points" else LABELS
    return counters[format](path, question)


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a delimited file."""
    text = path.read_text("utf-8-sig")
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if path.suffix == ".tsv" else ",")
    return [row for row in rows if any(row.values())]


def lines(path: Path) -> list[Any]:
    """Return the records of a file, of a zip or of a folder of files with one JSON value per line."""
    if path.is_dir():
        return [record for file in sorted(path.rglob("*.jsonl")) for record in lines(file)]
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            text = "\n".join(archive.read(name).decode() for name in archive.namelist())
    else:
        text = path.read_text("utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def records(path: Path) -> Any:
    """Return the value in a JSON file."""
    return json.loads(path.read_text("utf-8"))


def of_rows(path: Path, question: str) -> int:
    return len(table(path))


def of_lines(path: Path, question: str) -> int:
    return len(lines(path))


def submissions(path: Path) -> Iterator[list[Any]]:
    """Yield the results of every annotation, draft and prediction in Label Studio's JSON; none of an empty task."""
    for task in records(path):
        lists = [task.get(name) or [] for name in ("annotations", "completions", "drafts", "predictions")]
        found = [each["result"] for several in lists for each in several]
        yield from found or [[]]


def of_label_studio(path: Path, question: str) -> int:
    return sum(
        not results or any(each.get("from_name") == question for each in results) for results in submissions(path)
    )


def of_items(path: Path, question: str) -> int:
    """Count the items of HITs: one column per item."""
    rows = table(path)
    items = [name for name in rows[0] if name.removeprefix(f"Answer.{question}").isdigit()]
    return len(rows) * max(len(items), 1)


def zooniverse_tasks(path: Path, question: str) -> Iterator[Any]:
    """Yield the values given to a task, one at least for each classification without any."""
    workflow, _, wanted = question.rpartition("/")
    for row in table(path):
        annotations = flat(json.loads(row["annotations"] or "[]"))
        if not annotations:
            yield []
        elif workflow in ("", row["workflow_id"]):
            yield from (each["value"] for each in annotations if each["task"] == wanted)


def flat(annotations: Iterable[Any]) -> list[Any]:
    """Return annotations with combined tasks taken apart."""
    found = []
    for each in annotations:
        value = each.get("value")
        combined = isinstance(value, list) and value and all(isinstance(v, dict) and "task" in v for v in value)
        found += flat(value) if combined else [each]
    return found


def of_zooniverse(path: Path, question: str) -> int:
    return sum(1 for _ in zooniverse_tasks(path, question))


def of_argilla(path: Path, question: str) -> int:
    found = 0
    for record in records(path):
        given = len((record.get("responses") or {}).get(question, []))
        guessed = question in (record.get("suggestions") or {})
        nothing = not any(record.get(name) for name in ("responses", "suggestions"))
        found += given + guessed + nothing
    return found


def of_argilla_flat(path: Path, question: str) -> int:
    found = 0
    for record in records(path):
        nothing = not any(name.endswith((".users", ".suggestion")) for name in record)
        found += len(record.get(f"{question}.responses.users", [])) + (f"{question}.suggestion" in record) + nothing
    return found


def of_argilla_v1(path: Path, question: str) -> int:
    """Count the responses in rows of the Hub or, in records of the API, those with an answer or without any."""
    found = 0
    for record in lines(path) if path.suffix == ".jsonl" else records(path):
        if "responses" in record:
            given = sum(not each["values"] or question in each["values"] for each in record["responses"])
            guessed = sum(each.get("question_name") == question for each in record["suggestions"])
            nothing = not record["responses"]
        else:
            given, guessed = len(record[question]), record[f"{question}-suggestion"] is not None
            nothing = not given and not guessed
        found += given + guessed + nothing
    return found


def of_manifest(path: Path, question: str) -> int:
    """Count the contents of workers that are empty or have the question, which is the job or one of its elements."""
    found = 0
    for record in lines(path):
        job = next(name.removesuffix("-metadata") for name in record if name.endswith("-metadata"))
        for each in record[job].get("annotatedResult", record[job])["annotationsFromAllWorkers"]:
            content = json.loads(each["annotationData"]["content"])
            found += not content or question == job or question in content
    return found


def of_responses(path: Path, question: str) -> int:
    return sum(question in each["answerContent"] for each in records(path)["answers"])


def of_consolidation(path: Path, question: str) -> int:
    """Count the contents of workers that are empty or have the question, and objects without workers."""
    found = 0
    for record in records(path):
        contents = [json.loads(each["annotationData"]["content"]) for each in record["annotations"]]
        found += sum(not content or question in content for content in contents) + (not contents)
    return found


def of_potato(path: Path, question: str) -> int:
    found = 0
    for record in lines(path):
        schemas = record.get("label_annotations", record.get("labels"))
        found += not schemas or question in schemas
    return found


def of_potato_state(path: Path, question: str) -> int:
    found = 0
    for schemas in records(path)["instance_id_to_label_to_value"].values():
        names = [each[0]["schema"] for each in schemas] if isinstance(schemas, list) else list(schemas)
        found += not names or question in names
    return found


def of_potato_table(path: Path, question: str) -> int:
    """Count the rows that have no answer at all, or one to the question, in one column or in one per option."""
    found = 0
    for row in table(path):
        given = {
            name for name, cell in row.items() if cell and not name.startswith(("instance_", "user_", "annotator_"))
        }
        found += not given or any(name == question or name.startswith(f"{question}.") for name in given)
    return found


def of_peerannot(path: Path, question: str) -> int:
    return sum(len(answers) for answers in records(path).values())


def of_matrix(path: Path, question: str) -> int:
    rows = [line.split() for line in path.read_text().splitlines()]
    return sum(max(1, sum(cell != "-1" for cell in row)) for row in rows)


def of_cvat_tags(path: Path, question: str) -> int:
    """Count the sets of tags of images, those by a program and those by a person, who may have given none."""
    found = 0
    for image in ElementTree.parse(path).getroot().iter("image"):
        automatic = {tag.get("source") == "auto" for tag in image.iter("tag")}
        found += 1 + (True in automatic)
    return found


def of_keypoints(path: Path, question: str) -> int:
    return sum(each.get("from_name") == question for results in submissions(path) for each in results)


def of_boxes(path: Path, question: str) -> int:
    forms = [form for row in table(path) for form in json.loads(row["Answer.taskAnswers"])]
    return sum(len(form[question].get(name, [])) for form in forms for name in ("boundingBoxes", "keypoints"))


def of_shapes(path: Path, question: str) -> int:
    """Count shapes in Zooniverse, and tasks that were skipped or not done; a list without shapes is a job."""
    done = [row for row in table(path) if flat(json.loads(row["annotations"] or "[]"))]
    values = [
        each["value"] for row in done for each in flat(json.loads(row["annotations"])) if each["task"] == question
    ]
    return sum(1 if value is None else len(value) for value in values) + len(table(path)) - len(done)


def of_spans(path: Path, question: str) -> int:
    return sum(1 if each["answer"] == "ignore" else len(each["spans"]) for each in lines(path))


def of_cvat_places(path: Path, question: str) -> int:
    """Count boxes, or the pairs of numbers of points; in videos those of key frames that are inside."""
    found = 0
    for shape in ElementTree.parse(path).getroot().iter("box" if question == "boxes" else "points"):
        if shape.get("outside", "0") == "0" and shape.get("keyframe", "1") == "1":
            found += 1 if question == "boxes" else len(str(shape.get("points")).split(";"))
    return found


def of_doccano(path: Path, question: str) -> int:
    """Count the examples of every annotator; of doccano 1.0, the users of every example."""
    if path.suffix == ".csv":
        return len(table(path))
    return sum(max(1, len({each["user"] for each in record.get("annotations", [])})) for record in lines(path))


def of_doccano_boxes(path: Path, question: str) -> int:
    return sum(max(1, len(each["bbox"])) for each in lines(path))


Counter = Callable[[Path, str], int]
LABELS: Mapping[str, Counter] = {
    "label-studio": of_label_studio,
    "label-studio-min": lambda path, _: len(records(path) if path.suffix == ".json" else table(path)),
    "mturk": of_items,
    "toloka": of_rows,
    "zooniverse": of_zooniverse,
    "prodigy": of_lines,
    "doccano": of_doccano,
    "appen": of_rows,
    "argilla": of_argilla,
    "argilla-flat": of_argilla_flat,
    "argilla-v1": of_argilla_v1,
    "sagemaker": of_manifest,
    "sagemaker-consolidation": of_consolidation,
    "sagemaker-responses": of_responses,
    "potato": of_potato,
    "potato-state": of_potato_state,
    "potato-table": of_potato_table,
    "peerannot": of_peerannot,
    "peerannot-matrix": of_matrix,
    "cvat": of_cvat_tags,
    "crowd-kit-pairs": of_rows,
    "judges": of_lines,
    "judges-mt-bench": of_lines,
    "judges-mt-bench-pairs": lambda path, _: 2 * len(lines(path)),
    "preferences": of_lines,
    "preferences-alpaca-eval": lambda path, _: len(records(path)),
    "arena": of_lines,
    "crowdwise": of_rows,
}
POINTS: Mapping[str, Counter] = {
    "label-studio": of_keypoints,
    "mturk": of_boxes,
    "zooniverse": of_shapes,
    "prodigy": of_spans,
    "cvat": of_cvat_places,
    "doccano": of_doccano_boxes,
}
