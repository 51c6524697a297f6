"""Every verb with every kind of answers: the table in docs/guide/command-line.md, cell by cell, from a file and from a
saved result."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crowdwise as cw
import crowdwise.io.conversion  # which registers a verb
from crowdwise.engine.verbs import VERBS
from crowdwise.metrics import match_labels
from crowdwise.report.sections.labels.curve import DIGITS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "command-line.md"
KINDS = ("labels", "points", "pairs")
# verb -> kind -> words that the output must have; a text that begins with a bracket is part of a refusal
CELLS: dict[str, dict[str, tuple[str, ...]]] = {
    "inspect": {
        "labels": ("kind: labels", "answers per task", "nothing was dropped"),
        "points": ("kind: points", "clicks per image", "workers per image"),
        "pairs": ("kind: pairs", "answers per pair", "different"),
    },
    "aggregate": {
        "labels": ("labels.csv", "Expected accuracy of the labels"),
        "points": ("objects.csv", "Objects found"),
        "pairs": ("clusters.csv", "Clusters found"),
    },
    "workers": {
        "labels": ("rank", "skill", "spam_score", "flags"),
        "points": ("rank", "skill", "hit_rate", "flags"),
        "pairs": ("rank", "skill", "sensitivity", "weight"),
    },
    "tasks": {
        "labels": ("task", "votes", "gain"),
        "points": ("image", "object", "supporters", "gain"),
        "pairs": ("item", "cluster", "second", "entropy"),
    },
    "agreement": {
        "labels": ("krippendorff-alpha", "gwet-ac1"),
        "points": ("f1", "f1-beyond-chance", "apart match"),
        "pairs": ("krippendorff-alpha", "percent"),
    },
    "next": {
        "labels": ("task", "ask", "per_answer"),
        "points": ("image", "ask", "per_answer"),
        "pairs": ("left", "right", "gain"),
    },
    "compare": {
        "labels": ("model", "differs", "held_out", "pooled"),
        "points": ("model", "differs", "objects", "click-mixture"),
        "pairs": ("model", "differs", "clusters", "held_out", "pair-mixture"),
    },
    "convert": {
        "labels": ("task,worker,question,kind,label", ",labels,"),
        "points": (",x,y,", ",points,"),
        "pairs": (",left,right,", ",pairs,same,", ",pairs,different,"),
    },
    "report": dict.fromkeys(KINDS, ("wrote", "report.html")),
    "--resume": dict.fromkeys(KINDS, ("continuing from",)),
    "learn": {
        "labels": ("predictions.csv", "classifier.crowdwise"),
        "points": ("(no column 'label'",),
        "pairs": ("(no column 'task'",),
    },
}
FILES = {"labels": "answers.csv", "points": "clicks.csv", "pairs": "pairs.csv"}
QUICK = {"compare": ("--folds", 2), "next": ("--budget", 5), "convert": ("--to", "csv")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of answers of every kind, and a saved result of each in `saved-<kind>`."""
    place = tmp_path_factory.mktemp("verbs")
    cw.simulate.crowd("experts", tasks=80, workers=6, classes=2, per_task=4, seed=3, fresh=5).save(place)
    cw.simulate.clicks("E", seed=2).save(place / "clicks")
    cw.simulate.pinwheel(per_cluster=8, asked=40, seed=2).save(place / "pairs")
    (place / "clicks" / "clicks.csv").rename(place / "clicks.csv")
    (place / "pairs" / "pairs.csv").rename(place / "pairs.csv")
    for kind in KINDS:
        cw.aggregate(cw.read(place / FILES[kind])).save(place / f"saved-{kind}")
    return place


def ask(command: Any, verb: str, kind: str, source: Path, folder: Path, tmp_path: Path) -> tuple[int, str]:
    """Run one cell of the table: exit status, and everything printed."""
    more: tuple[object, ...] = () if (verb, kind) == ("compare", "points") else QUICK.get(verb, ())
    if verb == "report":
        more = ("--out", tmp_path / "report.html")
    if verb == "aggregate":
        more = ("--out", tmp_path / "out")
    if verb == "learn":
        more = ("--features", folder / "features.parquet", "--out", tmp_path / "learnt", "--set", "max_iter=30")
    status, out, err = command(verb, source, *more)
    return status, out + err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", [verb for verb in CELLS if verb != "--resume"])
def test_every_verb_takes_every_kind_or_says_what_it_takes(
    verb: str, kind: str, folder: Path, command: Any, tmp_path: Path
) -> None:
    wanted = CELLS[verb][kind]
    status, printed = ask(command, verb, kind, folder / FILES[kind], folder, tmp_path)
    refused = wanted[0].startswith("(")
    assert (status != 0) == refused, printed
    for words in wanted:
        assert words.removeprefix("(") in printed
    if verb == "aggregate":
        assert "recognised by the columns" in printed
        assert cw.load(tmp_path / "out").kind == kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["inspect", "workers", "tasks", "agreement", "next", "report"])
def test_a_saved_result_gives_the_same_as_its_file(
    verb: str, kind: str, folder: Path, command: Any, tmp_path: Path
) -> None:
    from_file, from_result = (
        ask(command, verb, kind, folder / name, folder, tmp_path) for name in (FILES[kind], f"saved-{kind}")
    )
    assert from_file == from_result


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_fit_of_every_kind_is_resumed(
    kind: str, folder: Path, command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`aggregate --resume` continues from a checkpoint, and gives the tables of an uninterrupted run."""
    from crowdwise.cli import job

    words = ("aggregate", folder / FILES[kind], "--no-page", "--out")
    assert command(*words, tmp_path / "whole")[0] == 0

    def stop_at_once(self: Any) -> bool:
        self.signal = signal.SIGINT
        return True

    with monkeypatch.context() as patch:
        patch.setattr(job.Stop, "__call__", stop_at_once)
        assert command(*words, tmp_path / "parts")[0] == 130
    assert (tmp_path / "parts" / "checkpoint.crowdwise").exists()
    status, _, err = command(*words, tmp_path / "parts", "--resume")
    assert status == 0
    assert CELLS["--resume"][kind][0] in err
    for table in (tmp_path / "whole").glob("*.csv"):
        assert (tmp_path / "parts" / table.name).read_bytes() == table.read_bytes(), table.name


def test_the_guide_has_this_table() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|(.+)\|(.+)\|(.+)\|$", GUIDE.read_text(), flags=re.MULTILINE)
    table = {verb: dict(zip(KINDS, cells, strict=True)) for verb, *cells in rows if verb in CELLS}
    assert list(table) == list(CELLS)
    for verb, cells in table.items():
        for kind, text in cells.items():
            refused = CELLS[verb][kind][0].startswith("(")
            assert (text.strip() == "–") == refused, (verb, kind)


def test_verbs_of_python_are_those_of_the_registry() -> None:
    assert all((cw.review, cw.next_answers, cw.agreement, cw.compare, cw.inspect))  # which are imported at first use
    assert set(VERBS) == {"review", "next", "agreement", "compare", "convert", "inspect"}
    assert all(set(KINDS) <= set(kinds) for kinds in VERBS.values())


# ---------------------------------------------------------------------------------------------- kinds are recognised


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ("task worker label", "labels"),
        ("item_id rater verdict answer", "labels"),
        ("image worker x y", "points"),
        ("Image User Click_X Click_Y", "points"),
        ("image worker x y label", "points"),  # clicks that name what was clicked
        ("left right worker answer", "pairs"),
        ("item_1 item_2 annotator same", "pairs"),
        ("left right worker answer id", "pairs"),
        ("task worker label a b", "labels"),  # letters are too common to decide
        ("task ann bob cem", "labels"),  # a wide table
    ],
)
def test_the_kind_is_recognised_by_the_columns(columns: str, kind: str) -> None:
    from crowdwise.answers import recognise

    assert recognise(columns.split(), {}, KINDS) == kind


def test_options_and_models_decide_where_columns_do_not(table: Any, command: Any) -> None:
    file = table("picture,who,across,down\na,ann,3,4\na,bob,3,5\nb,ann,1,1\nb,bob,1,2\n", "export.csv")
    points = cw.read(file, image="picture", worker="who", axes=["across", "down"])
    assert points.kind == "points"
    assert points.intake.guessed == ()
    status, _, err = command("aggregate", file, "--worker", "who", "--axes", "across,down", "--image", "picture")
    assert status == 0
    assert "clicks on images, recognised by the columns picture, who" in err
    pairs = table("a,b,worker,answer\n1,2,ann,1\n2,3,ann,0\n1,3,ann,0\n", "letters.csv")
    assert command("aggregate", pairs)[0] == 1  # taken for labels, which have a task
    assert command("aggregate", pairs, "--kind", "pairs")[0] == 0
    assert command("aggregate", pairs, "--model", "pair-vote")[0] == 0
    assert cw.read(pairs, kind="pairs").kind == "pairs"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gold-column", "gold", "--box", "0,0,1,1"), "--box is an option of points, --gold is an option of labels"),
        (("--kind", "clicks"), "--kind is 'clicks'; it can be 'labels', 'pairs'"),
        (("--kind", "pairs", "--task", "task"), "--task is not an option for reading answers of pairs"),
        (("--kind", "labels", "--model", "click-mixture"), "'click-mixture' is a model of points, not of labels"),
        (("--duplicates", "never"), "duplicates is 'never'"),
        (("--set", "no_such=1"), "pooled has no setting 'no_such'"),
        (("--model", "majority-vote", "--features", "x.csv"), "majority-vote takes no features"),
        (("--truth", "nowhere.csv"), "--truth nowhere.csv: there is no such file"),
        (("--content", "nowhere.csv"), "--content nowhere.csv: there is no such file"),
        (("--pictures", "nowhere"), "--pictures nowhere: there is no such folder"),
        (("--features", "nowhere.npz"), "--features nowhere.npz: there is no such file"),
        (("--resume",), "--resume needs --out"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_or_missing_is_said_before_anything_is_read(
    words: tuple[str, ...], said: str, command: Any, tmp_path: Path
) -> None:
    status, out, err = command("aggregate", tmp_path / "not-there.csv", *words)
    assert (status in (1, 2), out) == (True, "")
    assert said in err
    assert "not-there" not in err


def test_columns_that_were_named_are_not_reported_as_recognised(table: Any, command: Any) -> None:
    file = table("item,rater,verdict\n1,a,x\n1,b,x\n2,a,y\n")
    named = ("--task", "item", "--worker", "rater", "--label", "verdict")
    assert "recognised by name" not in command("inspect", file, *named)[1]
    assert "recognised by name: task, worker;" in command("inspect", file, "--label", "verdict")[1]


def test_python_users_read_arguments_and_shell_users_flags(table: Any, command: Any) -> None:
    file = table("task,worker,label\n1,a,x\n")
    with pytest.raises(cw.errors.ParameterError, match=r"box= is not an option for reading answers of labels"):
        cw.read(file, kind="labels", box=(0, 0, 1, 1))
    assert (
        "--box is not an option for reading answers"
        in command("aggregate", file, "--kind", "labels", "--box", "0,0,1,1")[2]
    )


def test_frames_of_every_kind_are_recognised() -> None:
    clicks, pairs = cw.simulate.clicks(seed=1).points, cw.simulate.pinwheel(per_cluster=4, asked=20).pairs
    assert cw.aggregate(clicks.frame(), box=(1, 0, 4, 5)).kind == "points"
    assert cw.aggregate(pairs.frame()).kind == "pairs"
    assert cw.agreement(clicks.frame())["measure"][0] == "f1"


def test_without_a_folder_the_main_table_goes_to_stdout(folder: Path, command: Any) -> None:
    for kind, columns in (("labels", "task,label,"), ("points", "image,object,x,y,"), ("pairs", "item,cluster,")):
        status, out, _ = command("aggregate", folder / FILES[kind])
        assert status == 0
        assert out.splitlines()[0 if kind != "pairs" else -41].startswith(columns)
        told = json.loads(command("aggregate", folder / FILES[kind], "--json")[1])
        assert len(told[{"labels": "labels", "points": "objects", "pairs": "clusters"}[kind]]) > 2


def test_labels_are_scored_against_a_truth_that_the_model_does_not_see(folder: Path, command: Any) -> None:
    told = json.loads(command("aggregate", folder / "answers.csv", "--truth", folder / "truth.csv", "--json")[1])
    truth = pl.read_csv(folder / "truth.csv", infer_schema=False)
    both = cw.aggregate(cw.read(folder / "answers.csv")).labels.join(truth, on="task")
    assert told["scores"]["accuracy"] == pytest.approx((both["label"] == both["label_right"]).mean())
    wrong = pl.DataFrame({"task": ["unknown"], "label": ["c1"]})
    with pytest.raises(cw.errors.DataError, match="have no task in common"):
        match_labels(cw.load(folder / "saved-labels"), wrong)
    with pytest.raises(cw.errors.DataError, match="truth has columns task; it needs task and label"):
        match_labels(cw.load(folder / "saved-labels"), wrong.select("task"))


def test_models_are_compared_with_a_truth_and_from_a_saved_result(folder: Path, command: Any) -> None:
    words = ("--folds", 0, "--model", "majority-vote", "--model", "pooled", "--json")
    by_truth = json.loads(command("compare", folder / "answers.csv", "--truth", folder / "truth.csv", *words)[1])
    by_gold = json.loads(command("compare", folder / "answers.csv", "--gold", folder / "truth.csv", *words)[1])
    assert [row["accuracy"] for row in by_truth] == [row["accuracy"] for row in by_gold]
    assert by_truth[0]["accuracy"] > 0.5
    saved = json.loads(command("compare", folder / "saved-labels", *words)[1])
    assert [row["differs"] for row in saved] == [row["differs"] for row in by_truth]


def test_completion_is_offered(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--install-completion" in command("--help")[1]
    monkeypatch.setenv("_CROWDWISE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "crowdwise aggregate x.csv --model pair-")
    monkeypatch.setenv("COMP_CWORD", "4")
    assert command()[1].split() == ["pair-mixture", "pair-vote"]


def test_options_of_a_command_are_listed_in_groups(command: Any) -> None:
    titles = re.findall(r"^(\w[\w ]+):$", command("aggregate", "--help")[1], flags=re.MULTILINE)
    assert titles == [
        "Arguments", "Options", "Fitting", "Reading the file", "Reading labels", "Reading clicks", "Reading pairs",
    ]  # fmt: skip
    assert "Reading labels" not in command("points", "--help")[1]


# ---------------------------------------------------------------------------------------------- one number, one range


def test_expected_accuracy_is_the_same_everywhere(folder: Path, command: Any, tmp_path: Path) -> None:
    """Tile, terminal, JSON, cost curve and page have one value and one interval."""
    result = cw.load(folder / "saved-labels")
    value, low, high = cw.expected_accuracy(result)  # type: ignore[misc]
    said = result.summary()
    assert (said.expected_accuracy, said.expected_low, said.expected_high) == (value, low, high)
    for plan in cw.cost_curve(result).points.filter(answers=0).rows():
        assert plan[2:] == pytest.approx((value, low, high, 0, 0, 0), abs=1e-12)
    text = f"{100 * value:.1f} % ({100 * low:.1f} % to {100 * high:.1f} %)"
    out = command("aggregate", folder / "answers.csv", "--json", "--out", tmp_path)[1]
    told = json.loads(out)
    assert (told["expected_accuracy"], told["expected_low"], told["expected_high"]) == pytest.approx((value, low, high))
    assert text in command("aggregate", folder / "answers.csv", "--out", tmp_path)[2]
    page = (tmp_path / "report.html").read_text().replace("\u202f", " ")
    assert f"{100 * value:.1f} %" in page
    assert f"{100 * low:.1f} % to {100 * high:.1f} %" in page
    rounded = [round(each, DIGITS) for each in (value, low, high)]
    point = '"answers":0,"accuracy":{},"low":{},"high":{}'.format(*rounded)
    assert point in page
