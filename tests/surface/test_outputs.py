"""What the commands give: the same from a file and a saved result, JSON, exit statuses, cells that no spreadsheet
computes (S3), words that no terminal obeys (S16), the published CIFAR-10H table, and the lecture's study."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.cli import main
from crowdwise.cli.say import clean, progress
from crowdwise.io.writing import spreadsheet_safe
from crowdwise.reproduce import STUDIES, study

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "guide" / "reproducing.md"
LECTURE = importlib.import_module("crowdwise.reproduce.lecture")
FORMULA = tuple("=+-@\t\r")
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
RATING = ("workers", "tasks", "agreement", "next")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """answers.csv and truth.csv, and a result of the same answers in `saved`."""
    folder = tmp_path_factory.mktemp("files")
    cw.simulate.crowd("hammer-spammer", tasks=150, workers=12, classes=3, per_task=5, seed=3).save(folder)
    cw.aggregate(cw.read(folder / "answers.csv")).save(folder / "saved")
    return folder


# ------------------------------------------------------------------------------------------------------ commands


@pytest.mark.parametrize("name", RATING)
def test_a_file_and_its_saved_result_say_the_same(name: str, files: Path, command: Any) -> None:
    said = command(name, files / "answers.csv")
    assert said[0] == 0
    assert said[1].count("\n") > 5
    assert said == command(name, files / "saved")
    assert said == command(name, files / "saved" / "result.crowdwise")


@pytest.mark.parametrize("name", RATING)
def test_json_of_a_file_and_of_its_saved_result_is_the_same(name: str, files: Path, command: Any) -> None:
    status, out, _ = command(name, files / "answers.csv", "--json")
    assert status == 0
    assert json.loads(out) == json.loads(command(name, files / "saved", "--json")[1])


def test_json_holds_the_tables(files: Path, command: Any) -> None:
    result = cw.load(files / "saved")
    rows = json.loads(command("workers", files / "saved", "--json")[1])
    assert rows == result.workers.sort("rank").to_dicts()
    flagged = json.loads(command("workers", files / "saved", "--json", "--flagged")[1])
    assert flagged == [row for row in rows if row["flags"]] != []
    assert len(json.loads(command("tasks", files / "saved", "--json", "--top", 7)[1])) == result.answers.n_tasks
    said = json.loads(command("next", files / "saved", "--json", "--budget", 30, "--batch", 10)[1])
    assert (said["asked"], said["left"]) == (10, 20)
    assert sum(row["ask"] for row in said["tasks"]) == 10
    assert {row["measure"] for row in json.loads(command("agreement", files / "saved", "--json")[1])} > {"percent"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        *((1, (name, "no-such-file.csv")) for name in (*RATING, "report")),
        *((1, (name, ".")) for name in (*RATING, "report")),  # a folder without a result
        *((2, (name, "saved", "--label", "verdict")) for name in (*RATING, "report")),
        *((2, (name, "saved", "--gold", "truth.csv")) for name in (*RATING, "report")),
        *((2, (name, "saved", "--model", "mace")) for name in ("workers", "tasks", "next", "report")),
        *((2, (name, "saved", "--model", "no-such-model")) for name in ("workers", "tasks", "next", "report")),
        *((2, (name, "answers.csv", "--model", "no-such-model")) for name in ("workers", "tasks", "next", "report")),
        (2, ("next", "answers.csv", "--budget", 0)),
        (2, ("next", "answers.csv", "--budget", -5)),
        (2, ("next", "answers.csv", "--budget", 5, "--batch", 0)),
        (2, ("next", "answers.csv", "--budget", "many")),
        (2, ("workers", "answers.csv", "--top", 0)),
        (2, ("report", "answers.csv", "--compare-with", "no-such-model")),
        (2, ("reproduce", "no-such-study")),
        (1, ("reproduce", "lecture", "--data", "no-such-folder")),
        (2, ("reproduce", "lecture", "--drop-below", 1.5)),
        *((2, ("reproduce", name, "--drop-below", 0.75)) for name in STUDIES if name != "lecture"),
        (2, ("aggregate", "answers.csv", "--drop-below", 0.5)),  # no known labels
        (2, ("aggregate", "answers.csv", "--gold", "truth.csv", "--drop-below", -1)),
        (1, ("aggregate", "answers.csv", "--gold", "truth.csv", "--drop-below", 1)),  # nobody is left
        (2, ("workers", "saved", "--drop-below", 0.5)),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else str(value),
)
def test_refusals_have_their_status_and_write_nothing(
    status: int, words: tuple[object, ...], files: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    before = sorted(files.rglob("*"))
    if words[0] == "reproduce":  # the crowd need not be simulated to be refused
        monkeypatch.setattr(LECTURE, "_measured", lambda *_: ([], []))
    found, out, err = command(*words)
    assert (found, out) == (status, "")
    assert "rror: " in err
    assert sorted(files.rglob("*")) == before


def test_workers_who_fail_checks_are_left_out_on_request(files: Path, command: Any, tmp_path: Path) -> None:
    words = (files / "answers.csv", "--gold", files / "truth.csv", "--drop-below", 0.6)
    everyone = {row["worker"]: row for row in json.loads(command("workers", *words[:3], "--json")[1])}
    low = {name for name, row in everyone.items() if row["check_score"] < 0.6}
    lost = sum(everyone[name]["answers"] for name in low)
    assert 1 < len(low) < 12
    reason = f"answers of {len(low)} workers below 0.6 on attention checks"
    status, _, err = command("aggregate", *words, "--out", tmp_path)
    assert status == 0
    assert f"750 rows read, {750 - lost} used; {lost} left out: {reason}" in err
    assert {*pl.read_csv(tmp_path / "workers.csv")["worker"]} == {*everyone} - low
    assert pl.read_csv(tmp_path / "labels.csv").height == 150
    assert reason in (tmp_path / "report.html").read_text()
    assert f"dropped {lost}: {reason}" in command("inspect", *words)[1]
    assert {row["worker"] for row in json.loads(command("workers", *words, "--json")[1])} == {*everyone} - low


def test_dropping_by_checks_is_for_labels_in_memory(files: Path, command: Any, table: Any) -> None:
    clicks = table("image,worker,x,y\na,ann,3,4\na,bob,3.5,4\n", "clicks.csv")
    status, _, err = command("aggregate", clicks, "--drop-below", 0.5)
    assert (status, err.split("error: ")[1]) == (
        2, "--drop-below applies to labels; clicks.csv holds clicks on images. Omit it\n",
    )  # fmt: skip
    words = ("aggregate", files / "answers.csv", "--drop-below", 0.5, "--engine", "spark", "--out", files / "spark")
    assert "--drop-below does not apply with --engine spark" in command(*words)[2]
    assert "--drop-below applies to the study lecture, not to pairs" in command(
        "reproduce", "pairs", "--drop-below", 0.5
    )[2]  # fmt: skip


# -------------------------------------------------------------------------------------------------------- the page


def test_warnings_name_options_in_the_language_of_the_caller(files: Path, command: Any, tmp_path: Path) -> None:
    fit = cw.aggregate(cw.read(files / "answers.csv"), "dawid-skene", max_iter=1)
    assert "max_iter=2" in fit.warnings[0]
    assert "max_iter=2" in fit.report(tmp_path / "page.html").read_text()
    words = ("aggregate", files / "answers.csv", "--model", "dawid-skene", "--max-iter", 1, "--out", tmp_path / "out")
    status, _, err = command(*words)
    assert status == 3
    assert "--set max_iter=2" in err
    assert "--set max_iter=2" in (tmp_path / "out" / "report.html").read_text()


def test_report_of_a_saved_result_goes_into_its_folder(files: Path, tmp_path: Path, command: Any) -> None:
    folder = cw.load(files / "saved").save(tmp_path / "saved").parent
    status, out, err = command("report", folder)
    assert (status, out) == (0, "")
    assert err == f"wrote {folder / 'report.html'}\n"
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_report_of_a_saved_file_goes_beside_it(
    files: Path, tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    saved = cw.load(files / "saved").save(tmp_path / "saved")
    assert command("report", saved)[0] == 0
    assert saved.with_name("report.html").exists()


def test_report_of_answers_goes_where_it_is_told(
    files: Path, tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("report", files / "answers.csv", "--compare-with", "mace")
    assert command(*words, "--out", "deep/page.html", "--model", "one-coin")[0] == 0
    assert command(*words)[0] == 0
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.html")) == [
        "deep/page.html", "report.html",
    ]  # fmt: skip
    text = Path("deep/page.html").read_text()
    assert '"model":"one-coin"' in text
    assert '"model":"mace","differs"' in text
    assert '"model":"glad"' not in text


def test_aggregate_writes_the_page_unless_told_not_to(files: Path, tmp_path: Path, command: Any) -> None:
    tables = {"labels.csv", "workers.csv", "tasks.csv", "result.crowdwise", "crowdwise.json"}
    assert command("aggregate", files / "answers.csv", "--out", tmp_path / "with")[0] == 0
    assert command("aggregate", files / "answers.csv", "--out", tmp_path / "without", "--no-page")[0] == 0
    assert {file.name for file in (tmp_path / "with").iterdir()} == {*tables, "report.html"}
    assert {file.name for file in (tmp_path / "without").iterdir()} == tables


# ------------------------------------------------------------------------------------------------- spreadsheets (S3)


@pytest.fixture(scope="module")
def formulas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose tasks, workers and labels are formulas."""
    made = cw.simulate.crowd("hammer-spammer", tasks=40, workers=8, classes=3, per_task=5, seed=3).answers.frame()
    labels = dict(zip(sorted(made["label"].unique()), ("=1+1", "+x", "@SUM(A1)"), strict=True))
    path = tmp_path_factory.mktemp("formulas") / "answers.csv"
    names = {"task": "=" + pl.col("task"), "worker": "-" + pl.col("worker"), "label": pl.col("label").replace(labels)}
    made.with_columns(**names).write_csv(path)
    return path


def formula_cells(path: Path) -> list[str]:
    """Cells that a spreadsheet would compute; numbers are none."""
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row if cell.startswith(FORMULA)]
    return [cell for cell in cells if not re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)]


@pytest.mark.parametrize("name", ["workers", "tasks", "next"])
def test_s3_tables_for_people_are_safe_unless_raw(name: str, formulas: Path, tmp_path: Path, command: Any) -> None:
    for file, more in (("safe.csv", ()), ("raw.csv", ("--raw",))):
        assert command(name, formulas, "--out", tmp_path / file, *more)[0] == 0
    safe, raw = (list(csv.reader((tmp_path / file).open(newline=""))) for file in ("safe.csv", "raw.csv"))
    assert len(safe) > 2
    assert formula_cells(tmp_path / "safe.csv") == []
    assert formula_cells(tmp_path / "raw.csv") != []
    assert [[cell.removeprefix("'") for cell in row] for row in safe] == raw


def test_s3_tables_for_programs_are_as_they_are_unless_asked(formulas: Path, tmp_path: Path, command: Any) -> None:
    assert command("aggregate", formulas, "--no-page", "--out", tmp_path / "raw")[0] == 0
    assert command("aggregate", formulas, "--no-page", "--out", tmp_path / "safe", "--excel-safe")[0] == 0
    for name in ("labels", "workers", "tasks"):
        assert formula_cells(tmp_path / "raw" / f"{name}.csv") != []
        assert formula_cells(tmp_path / "safe" / f"{name}.csv") == []
    labels = cw.load(tmp_path / "safe").labels
    assert labels.equals(cw.load(tmp_path / "raw").labels), "the saved result is for programs either way"
    assert pl.read_csv(tmp_path / "raw" / "labels.csv")["task"].to_list() == labels["task"].to_list()


def test_s3_json_for_programs_is_as_it_is(formulas: Path, command: Any) -> None:
    assert {row["worker"][0] for row in json.loads(command("workers", formulas, "--json")[1])} == {"-"}
    assert {row["task"][0] for row in json.loads(command("tasks", formulas, "--json")[1])} == {"="}


def test_s3_labels_on_stdout_follow_excel_safe(formulas: Path, command: Any) -> None:
    raw = list(csv.DictReader(command("aggregate", formulas)[1].splitlines()))
    safe = list(csv.DictReader(command("aggregate", formulas, "--excel-safe")[1].splitlines()))
    assert {row["task"][0] for row in raw} == {"="}
    assert [row["task"] for row in safe] == ["'" + row["task"] for row in raw]


def test_s3_spreadsheet_safe_leaves_all_but_formulas() -> None:
    text = ["=1", "+1", "-1", "@x", "\tx", "\rx", "a=1", "'=1", " x", "", None]
    table = pl.DataFrame({"=head": text, "n": range(-1, len(text) - 1), "x": [-1.5] * len(text)})
    safe = spreadsheet_safe(table)
    assert safe.columns == ["'=head", "n", "x"]
    assert safe.to_series(0).to_list() == ["'=1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "a=1", "'=1", " x", "", None]
    assert safe.select("n", "x").equals(table.select("n", "x"))
    assert spreadsheet_safe(table.select("n")).equals(table.select("n"))


# ----------------------------------------------------------------------------------------------------- terminals (S16)


@pytest.fixture(scope="module")
def hostile_file(hostile: cw.Labels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "gone\x1b[2J\u202e.csv"
    hostile.frame().with_columns(seconds=pl.Series(hostile.extras["seconds"])).write_csv(path)
    return path


@pytest.fixture(scope="module")
def hostile_folder(hostile_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved result of the same answers, in a folder of such a name."""
    return cw.aggregate(cw.read(hostile_file)).save(tmp_path_factory.mktemp("hostile") / "gone\x1b[2J\u202e").parent


def obeyed(*said: str) -> set[str]:
    """Characters that a terminal would obey."""
    return {found for text in said for found in CONTROL.findall(text)}


@pytest.mark.parametrize("name", [*RATING, "inspect"])
def test_s16_no_name_reaches_the_terminal_as_a_command(
    name: str, hostile_file: Path, hostile_folder: Path, command: Any
) -> None:
    status, out, err = command(name, hostile_file if name in ("workers", "inspect") else hostile_folder)
    assert status == 0
    assert obeyed(out, err) == set()
    assert name == "agreement" or "\\x1b[2Jgone" in out
    assert max(map(len, out.splitlines())) < 1000, "a name of a megabyte is cut"


def test_s16_no_flag_or_reason_reaches_the_terminal_as_a_command(hostile_folder: Path, command: Any) -> None:
    status, out, err = command("workers", hostile_folder, "--flagged", "--top", 100)
    assert status == 0
    assert "at chance; one label" in out
    assert obeyed(out, err) == set()


def test_s16_no_summary_reaches_the_terminal_as_a_command(hostile_file: Path, command: Any, tmp_path: Path) -> None:
    status, out, err = command("aggregate", hostile_file, "--no-page", "--out", tmp_path / "o\x1b[2J")
    assert (status, out, obeyed(err)) == (0, "", set())
    status, out, err = command("compare", hostile_file, "--folds", 0, "--model", "majority-vote")
    assert (status, obeyed(out, err)) == (0, set())


@pytest.mark.parametrize(
    "words",
    [
        ("workers", "no\x1b]8;;x\x07-such-file\r"),
        ("workers", "{file}", "--label", "no\x1b[2J"),
        ("workers", "{file}", "--model", "no\x1b[2J"),
        ("workers", "{file}", "--gold", "no\x1b[2J"),
        ("workers", "{file}", "--format", "no\x1b[2J"),
        ("workers", "{file}", "--top", "no\x1b[2J"),
        ("workers", "{file}", "--no\x1b[2J"),
        ("no\x1b[2J",),
        ("reproduce", "no\x1b[2J\u202e"),
        ("aggregate", "{file}", "--set", "no\x1b[2J=1"),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode(),
)
def test_s16_no_refusal_obeys_what_it_refuses(words: tuple[str, ...], hostile_file: Path, command: Any) -> None:
    status, out, err = command(*(word.replace("{file}", str(hostile_file)) for word in words))
    assert status in (1, 2)
    assert out == ""
    assert obeyed(err) == set()


class Terminal(io.StringIO):
    """A terminal in place of stderr; for anything else, typer leaves out what a terminal would obey."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("words", [("workers", "--no\x1b[2J"), ("no\x1b[2J",), ("workers", "x", "--seed", "\x1b[2J")])
def test_s16_no_wrong_usage_reaches_a_terminal_as_a_command(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["crowdwise", *words])
    with contextlib.redirect_stderr(Terminal()) as terminal, pytest.raises(SystemExit):
        main()
    assert "Usage: crowdwise" in terminal.getvalue()
    assert obeyed(terminal.getvalue()) == set()


@pytest.mark.parametrize("name", ["a\x1b[2Jb.csv", "[link=http://x]a[/link].csv", "[/].csv", "[red]a", "\x1b]8;;x\x07"])
def test_s16_a_name_in_a_progress_bar_is_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    with contextlib.redirect_stderr(Terminal()) as terminal, progress(f"reading {name}") as update:
        assert update is not None
    shown = re.sub(r"\x1b\[[\d;?]*[mhlAK]", "", terminal.getvalue())  # colours, and moves of the bar itself
    assert f"reading {clean(name)}" in shown
    assert obeyed(shown) <= {"\r"}


def test_s16_refusals_of_data_do_not_obey_its_names(table: Any, command: Any) -> None:
    twice = table(
        "task,worker,label\nt\x1b[2J,w\x1b]8;;x\x07,a\u202eb\nt\x1b[2J,w\x1b]8;;x\x07,\x9bm\n", "x\x1b[2J.csv"
    )
    status, _, err = command("aggregate", twice)
    assert (status, obeyed(err)) == (1, set())
    status, _, err = command("aggregate", table("ta\x1b[2Jsk,worker,label\n1,2,3\n"))
    assert (status, obeyed(err)) == (1, set())
    assert "\\x1b[2J" in err


# ------------------------------------------------------------------------------------------------------ CIFAR-10H

HEAD = (
    "annotator_id,trial_index,is_attn_check,true_category,chosen_category,true_label,chosen_label,correct_guess,"
    "cifar10_test_test_idx,image_filename,subcategory,reaction_time,time_elapsed"
)
TRIALS = """\
0,0,0,airplane,airplane,0,0,1,5,plane_5.png,jet,1500.0,2000
0,1,1,cat,cat,3,3,1,-99999,cat_check.png,tabby,900.5,4000
0,2,1,dog,cat,5,3,0,-99999,dog_check.png,pug,700,5000
0,3,0,ship,ship,8,8,1,7,ship_7.png,ferry,1100,6000
1,0,0,airplane,bird,0,2,0,5,plane_5.png,jet,2500.0,2000
1,1,1,cat,cat,3,3,1,-99999,cat_check.png,tabby,1000,3000
1,2,0,ship,ship,8,8,1,7,ship_7.png,ferry,,4000
"""


@pytest.fixture
def trials(table: Any) -> Path:
    path: Path = table(f"{HEAD}\n{TRIALS}", "cifar10h-raw.csv")
    return path


def test_raw_cifar10h_is_known_by_its_columns(trials: Path) -> None:
    answers = cw.read(trials)
    assert answers.tasks.to_list() == ["5", "7", "cat_check.png", "dog_check.png"]
    assert answers.workers.to_list() == ["0", "1"]
    assert answers.frame().sort("task", "worker")["label"].to_list() == [
        "airplane", "bird", "ship", "ship", "cat", "cat", "cat",
    ]  # fmt: skip
    assert "raw CIFAR-10H: attention checks are used as gold" in answers.intake.notes
    assert cw.read(trials, format="cifar10h").frame().equals(answers.frame())


def test_only_attention_checks_of_cifar10h_are_gold(trials: Path) -> None:
    answers = cw.read(trials)
    known = {task: answers.classes[k] for task, k in zip(answers.tasks, answers.gold.tolist(), strict=True) if k >= 0}
    assert known == {"cat_check.png": "cat", "dog_check.png": "dog"}


def test_milliseconds_of_cifar10h_become_seconds_and_checks_are_scored(trials: Path) -> None:
    rated = cw.aggregate(cw.read(trials)).workers
    assert rated["seconds"].to_list() == pytest.approx([(0.9005 + 1.1) / 2, 1.75])
    assert rated.select("checks", "check_score").rows() == [(2, 0.5), (1, 1.0)]


@pytest.mark.parametrize("column", ["annotator_id", "is_attn_check", "chosen_category", "reaction_time"])
def test_a_damaged_cifar10h_names_what_is_missing(column: str, table: Any, command: Any) -> None:
    path = table(f"{HEAD.replace(column, 'other')}\n{TRIALS}", "raw.csv")
    with pytest.raises(cw.errors.ColumnError, match=f"no column '{column}'; columns are .*other"):
        cw.read(path, format="cifar10h")
    status, out, err = command("workers", path, "--format", "cifar10h")
    assert (status, out) == (1, "")
    assert f"no column '{column}'" in err


def test_odd_cells_of_cifar10h_are_no_time_and_no_check(table: Any) -> None:
    trials = TRIALS.replace("1500.0", "soon").replace("0,2,1,dog", "0,2,,dog")
    answers = cw.read(table(f"{HEAD}\n{trials}", "raw.csv"))
    assert answers.extras["seconds"].null_count() == 2
    assert sum(gold >= 0 for gold in answers.gold) == 1


# ----------------------------------------------------------------------------------------------------- the lecture


@pytest.fixture(scope="module")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """`crowdwise reproduce lecture --quick`, once, and the seconds of processor time that it took."""
    folder, said = tmp_path_factory.mktemp("lecture"), io.StringIO()
    words = ["reproduce", "lecture", "--quick", "--json", "--out", str(folder), "--drop-below", "0.75"]
    began = time.process_time()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setattr(sys, "argv", ["crowdwise", *words])
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code == 0
    return json.loads(said.getvalue()) | {"seconds": time.process_time() - began}, folder


def part(of: dict[str, Any], title: str) -> list[dict[str, Any]]:
    [rows] = [part["rows"] for part in of["parts"] if title in part["title"]]
    return list(rows)


def figure(path: Path) -> ElementTree.Element:
    return ElementTree.parse(path).getroot()


def words_of(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]


CROWD_FILES = (
    "{}-workers.csv", "{}.html", "{}-ranking-checks.svg", "{}-ranking-spam.svg", "{}-ranking-trace.svg",
    "{}-ranking-time.svg", "{}-confusion.svg",
)  # fmt: skip


def test_the_lectures_crowd_has_the_shape_of_cifar10h(lecture: tuple[dict[str, Any], Path]) -> None:
    found, folder = lecture
    assert "2571 workers, 10100 tasks, 514200 answers" in found["parts"][1]["title"]
    assert 49 < 514200 / 10100 < 51
    rated = pl.read_csv(folder / "simulated-workers.csv")
    assert rated["checks"].to_list() == [10] * 2571
    assert rated["answers"].to_list() == [200] * 2571
    assert found["files"] == [str(folder / name.format("simulated")) for name in CROWD_FILES]
    assert (folder / "simulated.html").stat().st_size < 5_000_000


def test_the_lectures_rankings_agree_as_it_says(lecture: tuple[dict[str, Any], Path]) -> None:
    rows = {row["ranking"]: row for row in part(lecture[0], "rank correlations")}
    assert rows["trace"]["spam_score"] > 0.8
    assert rows["trace"]["true skill"] > 0.8
    assert rows["spam_score"]["true skill"] > 0.8
    assert 0 < rows["check_score"]["trace"] < rows["spam_score"]["trace"]
    assert abs(rows["seconds"]["trace"]) < 0.3
    assert all(rows[a][b] == pytest.approx(rows[b][a]) for a in rows for b in rows)


def test_the_lectures_careless_workers_are_found(lecture: tuple[dict[str, Any], Path]) -> None:
    skill = pl.Series("true", LECTURE.simulated(0)[2])
    rated = pl.read_csv(lecture[1] / "simulated-workers.csv").sort("worker").with_columns(skill)
    careless, flagged = rated["true"] < 0.6, rated["flags"].is_not_null() & (rated["flags"] != "")
    assert 5 <= careless.sum() <= 50
    assert (careless & flagged).sum() >= 0.9 * careless.sum()
    assert (flagged & ~careless).sum() <= 5
    [checks] = part(lecture[0], "attention checks")
    assert checks["workers with checks"] == 2571
    assert checks["below and flagged"] >= 0.9 * checks["below 0.8 on checks"] > 0


def test_the_lectures_labels_are_right(lecture: tuple[dict[str, Any], Path]) -> None:
    rows = {row["model"]: row for row in part(lecture[0], ": labels (")}
    assert set(rows) == {"majority-vote", "dawid-skene", "pooled"}
    assert min(row["accuracy"] for row in rows.values()) > 0.99


def test_the_guide_has_the_files_of_the_lecture(lecture: tuple[dict[str, Any], Path]) -> None:
    guide = GUIDE.read_text()
    assert all(Path(file).name.removeprefix("simulated") in guide for file in lecture[0]["files"])


def test_a_quick_lecture_takes_less_than_two_minutes(lecture: tuple[dict[str, Any], Path]) -> None:
    assert lecture[0]["seconds"] < 120


@pytest.mark.parametrize(
    ("name", "marked", "threshold"),
    [
        ("checks", "below 0.8", 0.8),
        ("spam", "at chance", None),
        ("trace", "at chance", None),
        ("time", "too fast", 0.639),
    ],
)
def test_the_lectures_rankings_are_drawn(
    name: str, marked: str, threshold: float | None, lecture: tuple[dict[str, Any], Path]
) -> None:
    rated = pl.read_csv(lecture[1] / "simulated-workers.csv").with_columns(pl.col("flags").fill_null(""))
    low = rated["check_score"] < 0.8 if name == "checks" else rated["flags"].str.contains(marked)
    assert 0 < low.sum() < 50
    root = figure(lecture[1] / f"simulated-ranking-{name}.svg")
    words = words_of(root)
    assert {f"{marked}: {low.sum()}", f"others: {2571 - low.sum()}"} <= set(words)
    assert ("threshold" in str(words)) == (threshold is not None)
    assert threshold is None or f"threshold: {threshold:g}" in words
    counts = [int(each.text or "") for each in root.iter() if each.get("font-size") == "8"]
    assert sum(counts) == 2571
    if name == "time":
        assert np.array_equal(rated["seconds"] < 0.639, low), "the threshold is that of the flag"


def test_the_lectures_best_and_worst_workers_are_drawn(lecture: tuple[dict[str, Any], Path]) -> None:
    shown = [part for part in lecture[0]["parts"] if "confusion matrix of the" in part["title"]]
    rated = pl.read_csv(lecture[1] / "simulated-workers.csv", schema_overrides={"worker": pl.String})
    ranked = rated.sort(["trace", "worker"], descending=[True, False])["worker"].to_list()
    names = [
        *(f"{place}best worker {ranked[n]}" for n, place in enumerate(("", "second ", "third "))),
        "average worker",
        *(f"{place}worst worker {ranked[-1 - n]}" for n, place in enumerate(("", "second ", "third "))),
    ]
    assert [part["title"].split(" of the ")[1].removesuffix(" (rows: true class)") for part in shown] == names
    words = words_of(figure(lecture[1] / "simulated-confusion.svg"))
    starts = [next(n for n, word in enumerate(words) if word.startswith(f"{name}, trace ")) for name in names]
    for part, name, start in zip(shown, names, starts, strict=True):
        shares = np.array([[value for key, value in row.items() if key != "truth"] for row in part["rows"]])
        assert words[start] == f"{name}, trace {np.trace(shares) / 10:.2f}"
        cells = [f"{100 * share:.0f}" for share in shares.ravel() if share >= 0.005]
        assert words[start + 1 : start + 1 + len(cells)] == cells


def test_the_lecture_measures_without_workers_who_fail_the_checks(lecture: tuple[dict[str, Any], Path]) -> None:
    rated = pl.read_csv(lecture[1] / "simulated-workers.csv")
    low = rated.filter(pl.col("check_score") < 0.75)
    gone = f"({low.height} of 2571 workers, {low['answers'].sum()} of 514200 answers dropped)"
    rows = part(lecture[0], f"labels without workers below 0.75 on checks {gone}")
    assert [row["model"] for row in rows] == ["majority-vote", "dawid-skene", "pooled"]
    before = {row["model"]: row for row in part(lecture[0], ": labels (")}
    for row in rows:
        assert (row["accuracy"], row["log_loss"]) == (
            before[row["model"]]["accuracy"],
            before[row["model"]]["log_loss"],
        )
        assert row["accuracy without them"] > 0.99
        assert row["log_loss without them"] < 0.05


@pytest.mark.usefixtures("small_lecture")
def test_a_small_lecture_is_fitted_again_without_the_workers_dropped() -> None:
    answers, truth, _ = LECTURE.simulated(0)
    scores = cw.aggregate(answers, "dawid-skene").workers
    threshold = float(scores["check_score"].median()) + 0.01
    low = scores.filter(pl.col("check_score") < threshold)["worker"]
    kept = answers.without(low)
    rows = part(study("lecture", drop_below=threshold).as_dict(), f"({len(low)} of 8 workers, ")
    for row in rows:
        posterior = cw.aggregate(kept, row["model"]).posterior
        own = LECTURE.score(posterior, np.where(answers.gold < 0, truth, -1))
        assert (row["accuracy without them"], row["log_loss without them"]) == own
    assert any(row["log_loss without them"] != row["log_loss"] for row in rows)


def test_the_lecture_is_that_of_the_guide(shared_data: Path, tmp_path: Path) -> None:
    found = study("lecture", data=shared_data / "cifar10s", out=tmp_path, drop_below=0.75)
    titles = [part.title for part in found.parts]
    assert sum(title.startswith("cifar10s") for title in titles) == len(titles) / 2
    assert [file.name for file in found.files] == [
        name.format(crowd) for crowd in ("simulated", "cifar10s") for name in CROWD_FILES
    ]
    assert all(figure(file) is not None for file in found.files if file.suffix == ".svg")
    documented = json.loads((DOCS / "measured" / "lecture.json").read_text())["parts"]
    rows = {each["title"]: each["rows"] for each in documented}
    assert rows.keys() == set(titles)
    for each in found.parts:
        for one, other in zip(each.rows.to_dicts(), rows[each.title], strict=True):
            assert one == {
                name: pytest.approx(value, rel=1e-4) if isinstance(value, float) else value
                for name, value in other.items()
            }
    real = {row["model"]: row for row in part(found.as_dict(), "cifar10s: labels (")}
    assert real["pooled"]["accuracy"] > real["dawid-skene"]["accuracy"]
    assert real["pooled"]["accuracy"] > 0.93


@pytest.fixture
def small_lecture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small crowd in place of the simulated one."""
    made = cw.simulate.crowd("one-coin", tasks=60, workers=8, classes=3, per_task=5, seed=1)
    frame = made.answers.frame().with_columns(seconds=1.0 + pl.int_range(pl.len()) % 5)
    truth = cw.Labels(frame, gold=made.truth).gold
    known = cw.Labels(frame, gold=made.truth.head(20))
    monkeypatch.setattr(LECTURE, "simulated", lambda seed: (known, truth, made.workers["skill"].to_numpy()))


@pytest.mark.usefixtures("small_lecture")
def test_real_answers_without_times_are_compared_by_what_they_have(tmp_path: Path, command: Any) -> None:
    made = cw.simulate.crowd("one-coin", tasks=60, workers=8, classes=3, per_task=5, seed=1)
    made.answers.frame().write_parquet(tmp_path / "answers.parquet")
    made.truth.write_parquet(tmp_path / "truth.parquet")
    status, out, _ = command("reproduce", "lecture", "--data", tmp_path, "--out", tmp_path / "out")
    assert status == 0
    assert "cifar10s: rank correlations" in out
    drawn = {file.name for file in (tmp_path / "out").glob("cifar10s-ranking-*.svg")}
    assert drawn == {f"cifar10s-ranking-{name}.svg" for name in ("checks", "spam", "trace")}, "there are no times"


@pytest.mark.usefixtures("small_lecture")
def test_names_of_real_classes_do_not_reach_the_terminal(tmp_path: Path, command: Any, hostile: cw.Labels) -> None:
    answers = hostile.frame().filter(pl.col("label").str.len_chars() < 99).with_columns(seconds=1.0)
    answers.write_parquet(tmp_path / "answers.parquet")
    truth = answers.group_by("task").agg(pl.col("label").mode().sort().first()).sort("task")
    truth.write_parquet(tmp_path / "truth.parquet")
    status, out, err = command("reproduce", "lecture", "--data", tmp_path, "--out", tmp_path / "out")
    assert status == 0
    assert "\\x1b[2Jgone" in out
    assert obeyed(out, err) == set()
    assert obeyed(*words_of(figure(tmp_path / "out" / "cifar10s-confusion.svg"))) == set()
