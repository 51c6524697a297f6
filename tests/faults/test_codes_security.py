"""Attacks by names, addresses and patterns: S1, S3, S8, S10, S12 and S17 of the fault list."""

from __future__ import annotations

import csv
import re
import signal
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from test_runs import crowdwise  # noqa: F401 - a fixture is used by its name

import crowdwise as cw
from crowdwise.io.large import split_labels

# ----------------------------------------------------------------------------------- S1: names in charts and notebooks

SCRIPT = "</title></desc><script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def named() -> dict[str, Any]:
    """A result of every kind, whose tasks, images, items, workers and labels are markup."""
    crowd = cw.simulate.crowd(tasks=20, workers=5, classes=2, seed=1).answers.frame()
    marked = [pl.format(f"{SCRIPT}{{}}{IMAGE}", pl.col(name)).alias(name) for name in ("task", "worker", "label")]
    clicks = cw.simulate.clicks("E", seed=4).points.frame().with_columns(
        worker=pl.format(f"{SCRIPT}{{}}", "worker"), image=pl.lit(IMAGE)
    )  # fmt: skip
    pairs = cw.simulate.pinwheel(per_cluster=8, asked=40).pairs.frame()
    pairs = pairs.with_columns(pl.format(f"{SCRIPT}{{}}", name).alias(name) for name in ("worker", "left", "right"))
    return {
        "labels": cw.aggregate(crowd.with_columns(marked)),
        "clicks": cw.aggregate(cw.Points(clicks)),
        "pairs": cw.aggregate(cw.Pairs(pairs), "pair-vote"),
    }


CHARTS = [
    ("labels", "workers", {}),
    ("labels", "confusion", {}),
    ("labels", "confusion", {"worker": f"{SCRIPT}w1{IMAGE}"}),
    ("labels", "classes", {}),
    ("labels", "tasks", {}),
    ("clicks", "image", {"image": IMAGE}),
    ("clicks", "workers", {}),
    ("pairs", "clusters", {}),
    ("pairs", "workers", {}),
]


@pytest.mark.parametrize(("kind", "chart", "options"), CHARTS, ids=lambda value: str(value)[:12])
def test_s1_markup_is_text_in_titles_and_descriptions_of_charts(
    kind: str, chart: str, options: Any, named: dict[str, Any], tmp_path: Path
) -> None:
    worker = options.get("worker")
    if worker is not None:
        options = {"worker": named[kind].workers["worker"][0]}
    drawn = named[kind].plot(chart, **options)
    svg = drawn.save(tmp_path / "chart.svg").read_text()
    elements = list(ElementTree.fromstring(svg).iter())
    assert not {element.tag.partition("}")[2] for element in elements} & {"script", "img", "a", "foreignObject"}
    links = [link for element in elements for name, link in element.attrib.items() if name.endswith("href")]
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert "<script" not in svg
    assert "<img" not in svg
    data, about = drawn._repr_mimebundle_()
    assert "<script" not in data["image/svg+xml"]
    assert all("\n" not in each["alt"] for each in about.values())


@pytest.mark.parametrize("kind", ["labels", "clicks", "pairs"])
def test_s1_markup_is_text_in_notebooks_and_pages_of_every_kind(
    kind: str, named: dict[str, Any], tmp_path: Path
) -> None:
    page = named[kind].report(tmp_path / "page.html").read_text()
    for html in (named[kind]._repr_html_(), page):
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "&lt;script&gt;" in html or "\\u003cscript\\u003e" in html


# ----------------------------------------------------------------------------------------- S3: formulas in spreadsheets

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"]


def formulas(folder: Path) -> Path:
    rows = [(f"{sign}{n}", f"{sign}{w}", sign) for sign in FORMULAS for n in range(2) for w in range(3)]
    path = folder / "answers.csv"
    pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row").write_csv(path)
    return path


def computed(path: Path) -> list[str]:
    """Cells that a spreadsheet would compute."""
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    return [c for c in cells if c.startswith(("=", "+", "-", "@", "\t", "\r")) and not re.fullmatch(r"-\d\.\d+", c)]


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "{file}", "--out", "{out}/a.csv"],
        ["convert", "{file}", "--to", "crowd-kit", "--out", "{out}/a.csv"],
        ["watch", "{folder}", "--once", "--model", "one-coin", "--out", "{out}"],
        ["aggregate", "{file}", "--no-page", "--out", "{out}"],
    ],
    ids=lambda words: " ".join(words[:1] + words[2:4]),
)
def test_s3_every_command_that_writes_tables_can_quote_formulas(words: list[str], tmp_path: Path, command: Any) -> None:
    (tmp_path / "in").mkdir()
    file = formulas(tmp_path / "in")
    for out, more in (("raw", []), ("safe", ["--excel-safe"])):
        (tmp_path / out).mkdir()
        given = [word.format(file=file, folder=file.parent, out=tmp_path / out) for word in words]
        status, _, err = command(*given, *more)
        assert status in (0, 3), err
    found = {
        out: [c for each in sorted((tmp_path / out).glob("*.csv")) for c in computed(each)] for out in ("raw", "safe")
    }
    assert set(FORMULAS) & set(found["raw"])
    assert found["safe"] == []


# --------------------------------------------------------------------------------------------- S10: no network, at all

# From here on, the system kills this process when it asks for a socket of the internet, in whatever language.
CLOSED = """
import ctypes, platform, struct
number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 4, number), (0x20, 0, 0, 16), (0x15, 1, 0, 2), (0x15, 0, 1, 10),
         (6, 0, 0, 0x80000000), (6, 0, 0, 0x7FFF0000)]  # socket(AF_INET or AF_INET6, ...): kill the process
program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, header, 0, 0) == 0
"""
ADDRESS = "http://127.0.0.1:9/a.png"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all kinds, in which tasks, labels and texts are addresses."""
    folder = tmp_path_factory.mktemp("inputs")
    crowd = cw.simulate.crowd(tasks=20, workers=5, classes=2, seed=1)
    frame = crowd.answers.frame().with_columns(
        task=pl.format(f"{ADDRESS}?{{}}", "task"), label=pl.format("s3://bucket/{}", "label")
    )
    frame.write_csv(folder / "answers.csv")
    frame.select("task", "label").unique("task").write_csv(folder / "truth.csv")
    about = frame.select("task").unique().with_columns(text=pl.lit(ADDRESS), image=pl.lit(ADDRESS))
    about.write_csv(folder / "content.csv")
    experts = cw.simulate.experts(40, seed=3)
    (folder / "experts").mkdir()
    experts.save(folder / "experts")
    cw.simulate.clicks("E", seed=4).points.frame().with_columns(image=pl.lit(ADDRESS)).write_csv(folder / "clicks.csv")
    cw.simulate.pinwheel(per_cluster=8, asked=40).pairs.frame().write_csv(folder / "pairs.csv")
    (folder / "pictures").mkdir()
    (folder / "arriving").mkdir()
    frame.write_csv(folder / "arriving" / "answers.csv")
    return folder


ABOUT = "--content {in}/content.csv --pictures {in}/pictures"
COMMANDS = {
    "inspect": "{in}/answers.csv",
    "aggregate": "{in}/answers.csv {about} --truth {in}/truth.csv --out {out}",
    "points": "{in}/clicks.csv --set max_iter=2 --out {out}",
    "pairs": "{in}/pairs.csv --model pair-vote --out {out}",
    "learn": "{in}/experts/answers.csv --features {in}/experts/features.parquet --set max_iter=2 --out {out}",
    "watch": "{in}/arriving --once --out {out}",
    "workers": "{in}/answers.csv",
    "tasks": "{in}/answers.csv",
    "agreement": "{in}/answers.csv",
    "next": "{in}/answers.csv",
    "plan": "{in}/answers.csv --target 0.9",
    "compare": "{in}/answers.csv --model majority-vote --folds 0 --truth {in}/truth.csv",
    "report": "{in}/answers.csv {about} --out {out}/page.html",
    "simulate": "one-coin --out {out}",
    "convert": "{in}/answers.csv --to label-studio --out {out}/a.json",
    "export": "{in}/answers.csv --to csv --out {out}",
    "reproduce": "lecture --quick --out {out}",
    "formats": "",
    "models": "",
    "demo": "--out {out}",
}


def words(line: str, folder: Path, out: Path) -> list[str]:
    return [
        word.replace("{in}", str(folder)).replace("{out}", str(out)) for word in line.replace("{about}", ABOUT).split()
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_s10_no_command_opens_a_socket(name: str, inputs: Path, crowdwise: Any, tmp_path: Path) -> None:  # noqa: F811
    done = crowdwise(name, *words(COMMANDS[name], inputs, tmp_path), before=CLOSED)
    assert done.status in (0, 3), done.stderr


def test_s10_every_command_is_tried(command: Any) -> None:
    listed = re.findall(r"^  ([a-z]+) ", command("--help")[1].partition("Commands:")[2], re.MULTILINE)
    assert set(listed) == set(COMMANDS)


@pytest.mark.parametrize(
    "asks",
    ["import socket; socket.socket()", f"import polars; polars.read_csv({ADDRESS!r})",
     "import polars; polars.scan_parquet('https://127.0.0.1:9/a.parquet').collect()"],
)  # fmt: skip
def test_s10_a_process_that_asks_for_a_socket_is_killed(asks: str, crowdwise: Any) -> None:  # noqa: F811
    """Otherwise the tests before this one could not fail."""
    assert crowdwise("models", before=CLOSED + asks).status == -signal.SIGSYS


# ------------------------------------------------------------------------------- S12: addresses and patterns for files

TAKES_FILES = {
    "a file of answers": "aggregate {address}",
    "a saved result": "report {address}/",
    "known labels": "aggregate {in}/answers.csv --gold {address}",
    "a truth": "aggregate {in}/answers.csv --truth {address} --out {out}",
    "content": "aggregate {in}/answers.csv --content {address} --out {out}",
    "pictures": "aggregate {in}/answers.csv --content {in}/content.csv --pictures {address} --out {out}",
    "a key": "aggregate {in}/answers.csv --pseudonymise {address}",
    "jobs": "points {in}/clicks.csv --jobs {address} --out {out}",
    "boxes": "points {in}/clicks.csv --box {address} --out {out}",
    "features": "learn {in}/experts/answers.csv --features {address} --out {out}",
    "features of items": "pairs {in}/pairs.csv --features {address} --out {out}",
    "a folder that is watched": "watch {address} --once --out {out}",
    "an original": "export {in}/answers.csv --to label-studio --original {address} --out {out}",
    "a pilot": "plan {address} --target 0.9",
}


ADDRESSES = ["http://127.0.0.1:9/a.csv", "s3://bucket/a.parquet", "file:///etc/passwd", "hf://datasets/a/b.csv"]
TRIED = [
    *(("a file of answers", each) for each in ADDRESSES),
    *((what, ADDRESSES[0]) for what in list(TAKES_FILES)[1:]),
]


@pytest.mark.parametrize(("what", "address"), TRIED)
def test_s12_an_address_for_a_file_is_refused_and_nothing_is_fetched(
    what: str,
    address: str,
    inputs: Path,
    crowdwise: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    line = TAKES_FILES[what].replace("{address}", address)
    done = crowdwise(*words(line, inputs, tmp_path / "out"), before=f"import os; os.chdir({str(tmp_path)!r})\n{CLOSED}")
    assert done.status in (1, 2), done.stderr
    assert done.stderr.startswith(("error: ", "Usage: "))
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.csv"))


PATTERNS = ["a[1].csv", "a[1].parquet", "a[1].jsonl", "a[1].arrow", "a*.csv", "a?.parquet"]


def write(frame: pl.DataFrame, path: Path) -> None:
    kinds = {".csv": frame.write_csv, ".parquet": frame.write_parquet, ".jsonl": frame.write_ndjson}
    kinds.get(path.suffix, frame.write_ipc)(path)


@pytest.mark.parametrize("name", PATTERNS)
def test_s12_a_file_that_is_called_like_a_pattern_is_that_file(name: str, tmp_path: Path) -> None:
    """In all places where tables are read; the other file is the one that the pattern would match."""
    frame = pl.DataFrame(
        {"task": ["t1", "t2"], "worker": ["ann", "ann"], "label": ["right", "right"], "size": [1.0, 2.0]}
    )
    path = tmp_path / name
    write(
        frame.with_columns(label=pl.lit("wrong"), size=pl.lit(9.0)),
        tmp_path / name.replace("[1]", "1").replace("*", "1").replace("?", "1"),
    )
    write(frame, path)
    assert cw.read(path).classes.to_list() == ["right"]
    assert cw.read(path, memory="2GB").classes.to_list() == ["right"]
    if path.suffix in (".csv", ".parquet"):
        write(frame.select("task", "size"), path)
        assert cw.read_features(path).x.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("folder", ["run[1]", "run*", "run?"])
def test_s12_a_folder_that_is_called_like_a_pattern_is_that_folder(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts on disk, which are read by name, are not those of another run."""
    monkeypatch.setattr("crowdwise.io.too_large", lambda *_: True)
    monkeypatch.setattr("crowdwise.io.large.split_labels", partial(split_labels, parts=2))
    crowds = [cw.simulate.crowd(tasks=20, workers=5, seed=seed).answers.frame() for seed in range(2)]
    results = []
    for place, frame in zip(("run1", folder), crowds, strict=True):
        (tmp_path / place).mkdir()
        own = frame.with_columns(pl.format(f"{place}{{}}", name).alias(name) for name in ("task", "worker"))
        own.write_csv(tmp_path / place / "answers.csv")
        answers = cw.read(tmp_path / place / "answers.csv", scratch=tmp_path / place / "parts")
        results.append((own, cw.aggregate(answers, "majority-vote")))
    for own, result in results:
        assert set(result.workers["worker"]) == set(own["worker"])
        assert result.labels.collect().sort("task")["task"].to_list() == sorted(own["task"].unique())


# ------------------------------------------------------------------------------------- S8: names that lead elsewhere

LEAVING = ["../../etc/passwd", "/etc/passwd", "..\\..\\boot.ini", "a/../../b", "~root", "nul\0.csv", "%2e%2e%2f", "."]


def test_s8_names_of_data_are_never_paths_of_outputs(tmp_path: Path, command: Any) -> None:
    """Tasks, workers, labels and images are named like places; every file has a name of our own, inside the folder."""
    rows = [(task, worker, label) for task in LEAVING for worker in LEAVING[:3] for label in [task]]
    frame = pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    frame.write_csv(tmp_path / "deep" / "er" / "answers.csv")
    before = set(tmp_path.rglob("*"))
    out = tmp_path / "deep" / "er" / "out"
    assert command("aggregate", out.parent / "answers.csv", "--model", "majority-vote", "--out", out)[0] == 0
    made = set(tmp_path.rglob("*")) - before
    assert {path.parent for path in made - {out}} == {out}
    names = ["crowdwise.json", "labels.csv", "report.html", "result.crowdwise", "tasks.csv", "workers.csv"]
    assert sorted(path.name for path in made - {out}) == names
    assert set(pl.read_csv(out / "labels.csv", infer_schema=False)["task"]) == set(LEAVING)


EXPORTED = {"label-studio": "label-studio.json", "csv": "estimates.csv", "jsonl": "estimates.jsonl"}


@pytest.mark.parametrize("kind", EXPORTED)
def test_s8_exports_write_no_file_by_a_name_of_the_data(kind: str, tmp_path: Path, command: Any) -> None:
    rows = [(task, worker, "x") for task in LEAVING for worker in ("ann", "bob")]
    file, out = tmp_path / "in" / "answers.csv", tmp_path / "in" / "out"
    file.parent.mkdir()
    pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row").write_csv(file)
    status, _, err = command("export", file, "--to", kind, "--out", out)
    assert status == 0, err
    written = {path.relative_to(out).as_posix() for path in set(tmp_path.rglob("*")) - {file.parent, file, out}}
    assert written == {EXPORTED[kind], "crowdwise.json", "relabel.csv", "gold_candidates.csv"}
    assert "etc/passwd" in (out / EXPORTED[kind]).read_text()
