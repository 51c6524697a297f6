"""Converting exports to tables and to files of other platforms, and giving results back: what was written is read."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw
from crowdwise.io.formats.base import COLUMNS

GOLDEN = Path(__file__).parent / "golden"
# File, and the question that is read where there are several.
LABELS = {
    "label-studio-json.json": "sent", "label-studio-min.json": "sent", "mturk-one.csv": None,
    "mturk-items.csv": "label",
    "toloka.tsv": None, "appen.csv": None, "zooniverse-questions.csv": "T0", "prodigy-choice.jsonl": None,
    "argilla-flat.json": "sent", "argilla-nested.json": "sent", "judges.jsonl": None, "arena.jsonl": None,
    "peerannot.json": None, "potato-csv.csv": None, "doccano.zip": None, "sagemaker-text.manifest": None,
}  # fmt: skip
POINTS = {
    "label-studio-points.json": "kp", "cvat-points.xml": None, "cvat-boxes.xml": "boxes", "zooniverse-points.csv": None,
    "mturk-keypoints.csv": None,
}  # fmt: skip
TABLES = ("csv", "jsonl", "parquet")


def first_question(file: Path, wanted: str | None) -> str | None:
    """Return the question to read: the one wanted or, if there are several, the first that the error names."""
    try:
        cw.read(file, question=wanted)
    except cw.errors.DataError as error:
        return str(error).split("question='")[-1].split("'")[0]
    return wanted


def votes(answers: Any) -> list[tuple[Any, ...]]:
    frame = answers.frame()
    names = [name for name in ("task", "image", "worker", "label", "x", "y", "class") if name in frame.columns]
    return sorted(frame.select(names).rows(), key=str)


def jobs(answers: Any) -> list[tuple[str, str]]:
    images, workers = answers.images.to_list(), answers.workers.to_list()
    return sorted((images[i], workers[w]) for i, w in zip(answers.job_image, answers.job_worker, strict=True))


@pytest.mark.parametrize("to", TABLES)
@pytest.mark.parametrize("name", LABELS)
def test_a_converted_table_has_the_same_votes(name: str, to: str, tmp_path: Path) -> None:
    asked = first_question(GOLDEN / name, LABELS[name])
    before = cw.read(GOLDEN / name, question=asked)
    done = cw.convert(GOLDEN / name, tmp_path / f"table.{to}")
    after = cw.read(done.path, question=asked)
    assert votes(after) == votes(before)
    assert after.intake.rows_used == before.intake.rows_used
    assert [each.count for each in after.intake.dropped] == [each.count for each in before.intake.dropped]


@pytest.mark.parametrize("name", POINTS)
def test_a_converted_table_has_the_same_places_and_jobs(name: str, tmp_path: Path) -> None:
    asked = first_question(GOLDEN / name, POINTS[name])
    before = cw.read(GOLDEN / name, question=asked)
    after = cw.read(cw.convert(GOLDEN / name, tmp_path / "table.parquet").path, question=asked)
    assert votes(after) == votes(before)
    assert jobs(after) == jobs(before)
    assert after.box.tolist() == before.box.tolist()


def test_the_table_keeps_every_question_and_every_status(tmp_path: Path) -> None:
    path = cw.convert(GOLDEN / "label-studio-json.json", tmp_path / "all.parquet").path
    table = pl.read_parquet(path)
    assert [name for name in COLUMNS if name in table.columns] == table.columns
    assert {"sent", "stars"} <= {*table["question"].drop_nulls()}
    assert {"ok", "skipped", "gold", "draft", "prediction"} <= {*table["status"].cast(pl.String)}
    only = cw.convert(GOLDEN / "label-studio-json.json", tmp_path / "one.parquet", question="sent").path
    assert {*pl.read_parquet(only)["question"].drop_nulls()} == {"sent"}


def test_what_a_platform_cannot_hold_is_counted(tmp_path: Path) -> None:
    done = cw.convert(GOLDEN / "toloka.tsv", tmp_path / "tasks.json", "label-studio")
    table = cw.convert(GOLDEN / "toloka.tsv", tmp_path / "all.csv")
    assert done.left_out
    assert all("no such status in label-studio" in reason for reason in done.left_out)
    assert done.rows + sum(done.left_out.values()) == table.rows


def test_statuses_that_a_platform_knows_are_kept(tmp_path: Path) -> None:
    file = GOLDEN / "label-studio-json.json"
    after = cw.convert(file, tmp_path / "again.json", "label-studio", question="sent").path
    for keep in ("skipped", "draft", "prediction"):
        assert votes(cw.read(after, keep=keep)) == votes(cw.read(file, question="sent", keep=keep))
    again = cw.read(after)
    assert again.n_gold == cw.read(file, question="sent").n_gold > 0


def test_places_become_percent_and_come_back(tmp_path: Path) -> None:
    file = GOLDEN / "label-studio-points.json"
    after = cw.convert(file, tmp_path / "again.json", "label-studio", question="box").path
    again, before = votes(cw.read(after, question="box")), votes(cw.read(file, question="box"))
    assert [row[:2] for row in again] == [row[:2] for row in before]
    assert [row[2:4] for row in again] == [pytest.approx(row[2:4]) for row in before]


def test_places_without_sizes_are_not_percent(tmp_path: Path) -> None:
    clicks = {"image": ["a"], "worker": ["ann"], "x": [3.0], "y": [4.0]}
    with pytest.raises(cw.errors.DataError, match="task 'a' has places in pixels and no size"):
        cw.convert(clicks, tmp_path / "tasks.json", "label-studio")
    assert not (tmp_path / "tasks.json").exists()


def test_a_file_is_not_replaced_by_what_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,comment\nt1,ann,x,why\n")
    (tmp_path / "link.csv").symlink_to(path)
    for out in ("votes.csv", "link.csv"):
        with pytest.raises(
            cw.errors.FileError, match=rf"{out} is read, and the output would replace it. Name another file"
        ):
            cw.convert(path, tmp_path / out)
    with pytest.raises(cw.errors.FileError, match="is read, and the output would replace it"):
        cw.convert(tmp_path, path)
    assert path.read_text().endswith("why\n")


def test_tables_of_labels_and_clicks_are_converted(tmp_path: Path) -> None:
    answers = cw.Labels({"task": ["1", "1", "2"], "worker": ["ann", "bob", "ann"], "label": ["a", "b", "a"]}, gold=None)
    known = answers.with_gold(pl.Series([0, -1]).to_numpy())
    assert known.n_gold == 1
    frame = {
        "task": ["1", "1", "2"],
        "worker": ["ann", "bob", "ann"],
        "label": ["a", "b", "a"],
        "gold": ["a", "a", None],
    }
    again = cw.read(cw.convert(frame, tmp_path / "t.csv").path)
    assert votes(again) == votes(cw.Labels(frame))
    assert again.n_gold == 1
    clicks = {"image": ["a", "a"], "worker": ["ann", "bob"], "x": [3.0, 4.0], "y": [4.0, 5.0]}
    seen = {"image": ["a", "b"], "worker": ["ann", "bob"]}
    pl.DataFrame(seen).write_csv(tmp_path / "jobs.csv")
    points = cw.read(clicks, jobs=seen, box=(0, 0, 10, 20))
    back = cw.read(cw.convert(clicks, tmp_path / "c.csv", jobs=seen, box=(0, 0, 10, 20)).path)
    assert votes(back) == votes(points)
    assert jobs(back) == jobs(points)
    assert back.box.tolist() == points.box.tolist()


@pytest.mark.parametrize("to", TABLES)
def test_pairs_and_their_jobs_come_back(to: str, tmp_path: Path) -> None:
    pairs = {
        "left": ["a", "a", "c", "c"], "right": ["b", "c", "b", "d"], "worker": ["ann", "ann", "ann", "bob"],
        "answer": [1, 0, 0, 1], "hit": ["h1", "h1", "h1", None],
    }  # fmt: skip
    before, done = cw.Pairs(pairs, hit="hit"), cw.convert(pairs, tmp_path / f"t.{to}", hit="hit")
    after = cw.read(done.path)
    assert done.rows == 4
    assert after.frame().equals(before.frame())
    assert after.weight.tolist() == before.weight.tolist() != [1.0] * 4
    with pytest.raises(cw.errors.DataError, match="answers of the kind pairs, not labels"):
        cw.read(done.path, kind="labels", question="same")


def test_platforms_without_pairs_say_so(tmp_path: Path) -> None:
    pairs = {"left": ["a"], "right": ["b"], "worker": ["ann"], "answer": ["same"]}
    with pytest.raises(cw.errors.EmptyDataError, match="none of the 1 judgements can be written as label-studio"):
        cw.convert(pairs, tmp_path / "t.json", "label-studio")


def test_what_to_write_must_be_known(tmp_path: Path) -> None:
    frame = {"task": ["1"], "worker": ["ann"], "label": ["a"]}
    with pytest.raises(cw.errors.ParameterError, match=r"what is .*tasks.json to be"):
        cw.convert(frame, tmp_path / "tasks.json")
    with pytest.raises(cw.errors.ParameterError, match="Did you mean 'label-studio'"):
        cw.convert(frame, tmp_path / "tasks.json", "labelstudio")
    with pytest.raises(cw.errors.ParameterError, match="Did you mean 'prodigy'"):
        cw.export(cw.aggregate(frame, "majority-vote"), "prodgy", tmp_path)


def test_the_command_writes_to_a_file_or_to_stdout(command: Any, tmp_path: Path) -> None:
    file = str(GOLDEN / "mturk-one.csv")
    code, out, err = command("convert", file, "--to", "crowd-kit")
    assert code == 0
    assert out.splitlines()[0] == "task,worker,label"
    assert "1 rejected (no such status" in err
    code, out, err = command("convert", file, "--out", str(tmp_path / "t.jsonl"))
    assert code == 0
    assert f"judgements to {tmp_path / 't.jsonl'}" in err
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == int(err.split()[1])
    code, out, err = command("convert", file)
    assert code != 0
    assert "--to" in err
    code, out, err = command("convert", file, "--to", "csv", "--drop-below", "0.5")
    assert code != 0
    assert "--drop-below is for fits" in err


def test_cells_are_safe_for_spreadsheets(tmp_path: Path) -> None:
    frame = {"task": ["=1+1", "2"], "worker": ["ann", "bob"], "label": ["@a", "b"]}
    table = cw.convert(frame, tmp_path / "t.csv", excel_safe=True).path.read_text()
    assert "'=1+1" in table
    assert "'@a" in table
    files = cw.export(cw.aggregate(frame, "majority-vote"), "zooniverse", tmp_path, excel_safe=True)
    assert "'=1+1" in files.estimates.read_text()
    assert "'=1+1" in files.relabel.read_text()


# Giving results back


@pytest.fixture(scope="module")
def crowd() -> Any:
    return cw.aggregate(cw.simulate.crowd(tasks=60, workers=10, per_task=5, classes=3, seed=4).answers)


def records(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        return list(csv.DictReader(path.open()))
    return json.loads(path.read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("to", ["label-studio", "argilla", "argilla-flat"])
def test_estimates_are_predictions_of_a_model(to: str, crowd: Any, tmp_path: Path) -> None:
    """Read again, with predictions kept, they are the labels of the result, by one worker that is a model."""
    files = cw.export(crowd, to, tmp_path)
    again = cw.read(files.estimates, keep="prediction")
    assert again.workers.to_list() == [f"model:crowdwise-pooled-{cw.__version__}"]
    labels = crowd.labels
    assert sorted(votes(again)) == sorted((t, again.workers[0], c) for t, c in labels.select("task", "label").rows())
    assert files.tasks == labels.height


def test_probabilities_go_with_the_labels(crowd: Any, tmp_path: Path) -> None:
    chance = dict(crowd.labels.select("task", "probability").rows())
    for to, read in (
        ("label-studio", lambda each: (each["data"]["task"], each["predictions"][0]["score"])),
        ("argilla", lambda each: (each["id"], each["suggestions"]["label"]["score"])),
        ("prodigy", lambda each: (each["text"], each["meta"]["score"])),
        ("zooniverse", lambda each: (each["subject_id"], float(each["#probability"]))),
    ):
        assert dict(map(read, records(cw.export(crowd, to, tmp_path).estimates))) == chance
    tags = records(cw.export(crowd, "coco", tmp_path).estimates)
    names = {each["id"]: each["file_name"] for each in tags["images"]}  # type: ignore[call-overload]
    assert {names[each["image_id"]]: each["score"] for each in tags["annotations"]} == chance  # type: ignore[call-overload]
    for to in TABLES:
        cw.export(crowd, to, tmp_path)
    assert pl.read_parquet(tmp_path / "estimates.parquet").equals(crowd.labels)
    assert pl.read_csv(tmp_path / "estimates.csv")["task"].to_list() == crowd.labels["task"].to_list()


@pytest.mark.parametrize(
    ("name", "question", "to", "data"),
    [
        ("label-studio-json.json", "sent", "label-studio", ("data", "text")),
        ("argilla-nested.json", "sent", "argilla", ("fields", "text")),
        ("prodigy-choice.jsonl", None, "prodigy", ("text",)),
    ],
)
def test_the_data_of_the_export_are_kept(
    name: str, question: str | None, to: str, data: tuple[str, ...], tmp_path: Path
) -> None:
    """The file that was fitted is found by itself; another file is named."""
    result = cw.aggregate(cw.read(GOLDEN / name, question=question))
    files = cw.export(result, to, tmp_path)
    shown = json.dumps(records(GOLDEN / name), sort_keys=True)
    for each in records(files.estimates):
        value = each
        for key in data:
            value = value[key]
        assert json.dumps(value) in shown
    assert "annotations" not in files.estimates.read_text()
    assert "_annotator_id" not in files.estimates.read_text()
    named = cw.export(result, to, tmp_path / "named", original=GOLDEN / name)
    assert named.estimates.read_bytes() == files.estimates.read_bytes()


def test_predictions_name_the_control_of_the_question(tmp_path: Path) -> None:
    result = cw.aggregate(cw.read(GOLDEN / "label-studio-json.json", question="stars"))
    made = [each["predictions"] for each in records(cw.export(result, "label-studio", tmp_path).estimates)]
    found = [answer for predictions in made for prediction in predictions for answer in prediction["result"]]
    assert {(each["from_name"], each["to_name"], each["type"]) for each in found} == {("stars", "text", "rating")}
    assert all(isinstance(each["value"]["rating"], int) for each in found)


def test_sets_of_labels_are_joined_again(tmp_path: Path) -> None:
    result = cw.aggregate(cw.read(GOLDEN / "label-studio-sets.json", sets="split"), "majority-vote")
    made = records(cw.export(result, "label-studio", tmp_path).estimates)
    yes = result.labels.filter(label="yes").with_columns(pl.col("task").str.split_exact(" / ", 1).struct.unnest())
    wanted: dict[str, set[str]] = {}
    for task, label in yes.select("field_0", "field_1").rows():
        wanted.setdefault(task, set()).add(label)
    found = {str(e["id"]): {*e["predictions"][0]["result"][0]["value"]["choices"]} for e in made if e["predictions"]}
    assert found == wanted


def test_objects_are_keypoints(tmp_path: Path) -> None:
    result = cw.aggregate(cw.read(GOLDEN / "label-studio-points.json", question="kp"))
    made = records(cw.export(result, "label-studio", tmp_path).estimates)
    assert [each["data"]["img"] for each in made] == ["/data/upload/a.jpg", "/data/upload/b.jpg"]
    again = cw.read(tmp_path / "label-studio.json", keep="prediction", kind="points")
    assert votes(again)[0][2:] == pytest.approx(result.objects.select("x", "y").row(0))
    coco: Any = records(cw.export(result, "coco", tmp_path).estimates)
    assert [tuple(each["keypoints"][:2]) for each in coco["annotations"]] == result.objects.select("x", "y").rows()
    assert [(each["width"], each["height"]) for each in coco["images"]] == [(800, 600), (1000, 400)]


def test_rectangles_are_not_estimated(tmp_path: Path) -> None:
    result = cw.aggregate(cw.read(GOLDEN / "label-studio-points.json", question="box"))
    with pytest.raises(cw.errors.DataError, match="asks for rectanglelabels, of which only the centres are estimated"):
        cw.export(result, "label-studio", tmp_path)
    assert not (tmp_path / "label-studio.json").exists()


def test_a_file_of_other_tasks_is_refused(crowd: Any, tmp_path: Path) -> None:
    with pytest.raises(cw.errors.DataError, match=r"the export has no question 'label'\. Name the export"):
        cw.export(crowd, "label-studio", tmp_path, original=GOLDEN / "label-studio-json.json")
    answers = cw.Labels({"task": ["x", "y"], "worker": ["ann", "bob"], "sent": ["a", "b"]}, label="sent")
    same_question = cw.aggregate(answers, "majority-vote")
    with pytest.raises(cw.errors.FileError, match=r"none of the 2 tasks of the result is in"):
        cw.export(same_question, "label-studio", tmp_path, original=GOLDEN / "label-studio-json.json")
    with pytest.raises(cw.errors.FileError, match=r"none of the 60 tasks of the result is in"):
        cw.export(crowd, "argilla", tmp_path, original=GOLDEN / "argilla-nested.json")
    with pytest.raises(cw.errors.FileError, match=r"mturk-one.csv is not Label Studio"):
        cw.export(crowd, "label-studio", tmp_path, original=GOLDEN / "mturk-one.csv")
    assert not list(tmp_path.iterdir())


def test_what_to_label_again_has_reasons(tmp_path: Path) -> None:
    answers = {
        "task": ["1", "1", "1", "2", "3", "3", *["4"] * 4],
        "worker": ["a", "b", "c", "a", "a", "b", *"abcd"],
        "label": ["x", "x", "x", "y", "x", "y", *"xxxx"],
    }
    files = cw.export(cw.aggregate(answers, "majority-vote"), "csv", tmp_path, least=0.8)
    table = pl.read_csv(files.relabel, schema_overrides={"task": pl.String})
    reasons = dict(table.select("task", "reason").rows())
    assert "labels are tied" in reasons["3"]
    assert "the probability of the label is 50%" in reasons["3"]
    assert "there is only one answer" in reasons["2"]
    assert not {"1", "4"} & {*reasons}
    assert files.doubtful == len(reasons)


def test_gold_candidates_are_sure_and_not_known_yet(tmp_path: Path) -> None:
    sim = cw.simulate.crowd(tasks=100, workers=12, per_task=6, classes=3, seed=6)
    known = {"task": [f"t{n:03d}" for n in range(1, 6)], "label": sim.truth["label"].to_list()[:5]}
    result = cw.aggregate(cw.Labels(sim.answers.frame(), gold=known))
    files = cw.export(result, "csv", tmp_path)
    assert files.gold is not None
    table = pl.read_csv(files.gold)
    assert 0 < table.height == files.candidates < 100
    assert not {*table["task"]} & {*known["task"]}
    assert (table["probability"] >= 0.99).all()
    assert (table["agreement"] >= 0.8).all()
    classes = table["label"].n_unique()
    assert table["label"].head(classes).n_unique() == classes  # the first rows have every label


def test_the_command_gives_a_result_back(command: Any, tmp_path: Path) -> None:
    file = str(GOLDEN / "label-studio-json.json")
    assert command("aggregate", file, "--question", "sent", "--out", str(tmp_path / "r"), "--no-page")[0] == 0
    code, _, err = command("export", str(tmp_path / "r"), "--to", "label-studio", "--out", str(tmp_path / "back"))
    assert code == 0
    assert {each.name for each in (tmp_path / "back").iterdir()} == {
        "crowdwise.json", "label-studio.json", "relabel.csv", "gold_candidates.csv",
    }  # fmt: skip
    assert "estimates" in err
    assert "to label again, with reasons" in err
    code, _, err = command("export", str(tmp_path / "r"), "--to", "labelstudio", "--out", str(tmp_path / "back"))
    assert code != 0
    assert "Did you mean 'label-studio'" in err
    code, _, err = command("export", str(tmp_path / "r"), "--to", "csv", "--out", str(tmp_path), "--least", "2")
    assert code != 0
    assert "--least 2.0 is not between 0 and 1" in err


def test_clusters_are_given_back(tmp_path: Path) -> None:
    pairs = cw.simulate.pinwheel(clusters=2, per_cluster=6, asked=12, workers=4, each=20, seed=1).pairs
    result = cw.aggregate(pairs)
    made = records(cw.export(result, "label-studio", tmp_path).estimates)
    assert len(made) == 12
    assert all(each["predictions"][0]["result"] for each in made)


def test_formats_are_listed(command: Any) -> None:
    table = cw.formats()
    assert {"label-studio", "mturk", "coco"} <= {*table["name"]}
    assert table.filter(name="coco").select("convert", "export").row(0) == (False, True)
    code, out, _ = command("formats")
    assert code == 0
    assert all(name in out.splitlines() for name in table["name"])
    code, out, _ = command("formats", "--json")
    assert [each["name"] for each in json.loads(out)] == table["name"].to_list()


def test_an_error_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    """The first of the records can be written, the second cannot."""
    folder = tmp_path / "out"
    rows = {"image": ["a", "b"], "worker": ["ann", "ann"], "x": [3.0, 4.0], "y": [4.0, 5.0]}
    table = cw.convert(rows, folder / "clicks.csv", box=(0, 0, 10, 10)).path
    lines = table.read_text().splitlines()
    table.write_text("\n".join([*lines[:2], lines[2].replace("10.0", "")]) + "\n")
    (folder / "tasks.json").write_bytes(b"before")
    with pytest.raises(cw.errors.CrowdwiseError, match="task 'b' has places in pixels and no size"):
        cw.convert(table, folder / "tasks.json", "label-studio")
    assert (folder / "tasks.json").read_bytes() == b"before"
    assert {file.name for file in folder.iterdir()} == {"clicks.csv", "tasks.json"}
