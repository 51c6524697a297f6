"""What can be seen from outside: layers, light imports, public names, commands, pages, examples, exit statuses."""

from __future__ import annotations

import ast
import csv
import doctest
import importlib
import io
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crowdwise as cw
from crowdwise.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(cw.__file__).parent
# Lowest first; a room imports only itself and what stands on an earlier line.
ROOMS = [
    ("errors",), ("kernels",), ("answers",), ("rating",), ("result",), ("engine",), ("labels",), ("points",),
    ("pairs",), ("learn",),
    ("simulate", "comparison", "reliability", "scoring", "asking", "compat", "aggregation", "matching", "pairing"),
    ("io",),
    ("report",), ("reproduce",), ("cli",), ("__main__",),
]  # fmt: skip
# Reports of results and of classifiers open the only doors upwards, when called; decision 0008 says why.
DOORS = {
    ("result/result.py", "report"), ("result/points.py", "report"), ("result/pairs.py", "report"),
    ("learn/estimator.py", "report"), ("learn/estimator.py", "scoring"),
}  # fmt: skip
RANK = {room: rank for rank, rooms in enumerate(ROOMS) for room in rooms}
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__")
COMMANDS = sorted(command.name or command.callback.__name__ for command in app.registered_commands)
HEAVY = (
    "jinja2", "numpy", "polars", "numba", "rich", "typer", "scipy", "pandas", "safetensors", "sklearn", "torch",
)  # fmt: skip


def command(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does, in a process of its own."""
    start = [sys.executable, "-m", "crowdwise", *words]
    return subprocess.run(start, capture_output=True, text=True, timeout=120, **options)


# ---------------------------------------------------------------------------------------------------------- layers


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[tuple[str, ...]]:
    """Every module that a file imports anywhere, with relative names made whole: ('crowdwise', 'kernels', 'layout')."""
    package = ("crowdwise", *path.relative_to(SOURCE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            found |= {(*module, alias.name) for alias in node.names} if module == ("crowdwise",) else {module}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_what_stands_above_it(path: Path) -> None:
    room = room_of(path)
    used = {name[1] for name in imports(path) if name[0] == "crowdwise" and name[1] != "__version__"}
    assert used <= set(RANK), "a room that design.md does not name"
    above = {other for other in used if other != room and RANK[other] >= RANK[room]}
    assert above == {door for file, door in DOORS if file == str(path.relative_to(SOURCE))}


def test_every_room_is_in_the_plan() -> None:
    assert {room_of(path) for path in FILES} == set(RANK)
    assert any(name[:2] == ("crowdwise", "errors") for name in imports(SOURCE / "answers" / "labels.py"))


@pytest.mark.parametrize(
    ("room", "stranger"),
    [
        ("kernels", "polars"),
        ("labels", "polars"),
        ("engine", "polars"),
        ("report", "crowdwise.labels"),
        ("cli", "numpy"),
    ],
)
def test_rooms_do_not_know(room: str, stranger: str) -> None:
    """Kernels know no answers; models know no files or frames; the report knows no models; doors hold no arithmetic."""
    name = tuple(stranger.split("."))
    knows = [path for path in FILES if room_of(path) == room and any(i[: len(name)] == name for i in imports(path))]
    assert [str(path.relative_to(SOURCE)) for path in knows] == []


def modules_after(code: str) -> set[str]:
    code = f"import sys\n{code}\nprint(' '.join(name.split('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_import_is_light() -> None:
    loaded = modules_after("import crowdwise; crowdwise.__version__; dir(crowdwise)")
    assert "crowdwise" in loaded
    assert loaded & set(HEAVY) == set()


@pytest.mark.parametrize("words", [["--help"], ["aggregate", "--help"], ["--version"]])
def test_help_is_light(words: list[str]) -> None:
    code = f"sys.argv = ['crowdwise', *{words}]\nfrom crowdwise.cli import main\ntry: main()\nexcept SystemExit: pass"
    loaded = modules_after(code)
    assert "typer" in loaded
    assert loaded & {"numpy", "polars", "numba"} == set()


def test_small_tables_do_not_load_the_compiler() -> None:
    table = {"task": [1, 1], "worker": [1, 2], "label": [1, 1]}
    loaded = modules_after(f"import crowdwise as cw; cw.aggregate({table}).labels")
    assert "numpy" in loaded
    assert loaded & {"numba", "scipy", "pandas"} == set()


# ---------------------------------------------------------------------------------------------------- public names


@pytest.mark.parametrize("name", cw.__all__)
def test_public_names_resolve_and_are_told(name: str) -> None:
    value = getattr(cw, name)
    assert name == "__version__" or not name.startswith("_")
    if name not in ("__version__", "MODELS"):
        assert value.__doc__
        assert len(value.__doc__.split()) > 3
        assert not value.__doc__.startswith(f"{name}("), "the signature that a dataclass makes is no docstring"


def test_nothing_else_is_public() -> None:
    assert dir(cw) == sorted(cw.__all__)
    spread: dict[str, Any] = {}
    exec("from crowdwise import *", spread)
    assert set(spread) - {"__builtins__"} == set(cw.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cw.nothing


def test_every_model_is_public_and_found_by_name() -> None:
    for name, kind in cw.MODELS.items():
        assert getattr(cw, kind.__name__) is kind
        assert isinstance(cw.model(name), kind)
        assert kind.about
        assert kind.__doc__
    with pytest.raises(cw.errors.ParameterError, match=r"no model 'dawid-sken'.* Did you mean 'dawid-skene'\?"):
        cw.model("dawid-sken")


def test_the_error_tree_names_every_class() -> None:
    parents, path = {}, [cw.errors.CrowdwiseError.__name__]
    for line in (cw.errors.__doc__ or "").splitlines():
        if found := re.match(r"^([ |]*)\+-- (\w+)", line):
            depth = len(found[1]) // 4
            path = [*path[:depth], found[2]]
            parents[found[2]] = path[depth - 1]
    root = cw.errors.CrowdwiseError
    kinds = [kind for kind in vars(cw.errors).values() if isinstance(kind, type) and issubclass(kind, root)]
    real = {kind.__name__: kind.__bases__[0].__name__ for kind in kinds if kind is not root}
    assert parents == real


MODULES = [info.name for info in pkgutil.walk_packages(cw.__path__, "crowdwise.") if "__main__" not in info.name]


def test_examples_in_docstrings_run() -> None:
    results = {name: doctest.testmod(importlib.import_module(name), verbose=False) for name in MODULES}
    assert {name: result.failed for name, result in results.items() if result.failed} == {}
    assert sum(result.attempted for result in results.values()) > 15


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    assert importlib.import_module(name).__doc__


# ---------------------------------------------------------------------------------------------------- pages, examples


@pytest.mark.parametrize("name", sorted(cw.MODELS))
def test_every_model_has_its_page_of_maths(name: str) -> None:
    module = cw.MODELS[name].__module__.split(".")[-1]
    page = ROOT / "docs" / "maths" / f"{module}.md"
    assert page.exists()
    assert f"docs/maths/{module}.md" in (importlib.import_module(cw.MODELS[name].__module__).__doc__ or "")


def test_pages_name_every_model_and_command() -> None:
    pages = [page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if page.exists()]
    text = "\n".join(pages)
    assert [name for name in cw.MODELS if name not in text] == []
    if (ROOT / "README.md").read_text().strip():
        assert [name for name in COMMANDS if f"crowdwise {name}" not in text] == []


def test_links_between_pages_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link and not link.startswith("mailto:"):
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_files_of_examples_run(tmp_path: Path) -> None:
    for example in sorted((ROOT / "examples").glob("*.py")):
        done = subprocess.run([sys.executable, example], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{example.name}: {done.stderr}"


# ----------------------------------------------------------------------------------------------------- command line


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    cw.simulate.crowd(tasks=60, workers=10, classes=3, per_task=5, seed=1).save(folder)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = command(name, "--help")
    assert done.returncode == 0
    assert f"Example: crowdwise {name}" in " ".join(done.stdout.split())
    assert re.match(rf"Usage: .*crowdwise {name} \[OPTIONS\]", done.stdout)
    assert done.stderr == ""


def test_help_names_every_command_and_demo_first() -> None:
    done = command("--help")
    assert all(re.search(rf"^\s+{name}\s+\w", done.stdout, re.MULTILINE) for name in COMMANDS)
    assert "Start with: crowdwise demo" in done.stdout
    assert command("--version").stdout == f"crowdwise {cw.__version__}\n"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, ["aggregate", "answers.csv"]),
        (0, ["inspect", "answers.csv"]),
        (1, ["aggregate", "no-such-file.csv"]),
        (1, ["aggregate", "answers.csv", "--label", "verdict"]),
        (1, ["inspect", "answers.csv", "--gold", "no-such-file.csv"]),
        (2, ["aggregate", "answers.csv", "--model", "dawid"]),
        (2, ["aggregate", "answers.csv", "--max-iter", "0"]),
        (2, ["aggregate", "answers.csv", "--set", "smoothing"]),
        (2, ["aggregate", "answers.csv", "--no-such-option"]),
        (2, ["aggregate"]),
        (2, ["no-such-command"]),
        (2, ["compare", "answers.csv", "--folds", "1"]),
        (2, ["simulate", "no-such-crowd", "--out", "x"]),
        (3, ["aggregate", "answers.csv", "--max-iter", "2"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_exit_statuses(files: Path, status: int, words: list[str]) -> None:
    done = command(*words, cwd=files)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout == "") == (status in (1, 2))
    assert status in (0, 3) or done.stderr.strip()


def test_labels_go_to_stdout_and_words_to_stderr(files: Path) -> None:
    done = command("aggregate", "answers.csv", "--model", "one-coin", cwd=files)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    table = cw.aggregate(cw.read(files / "answers.csv"), "one-coin").labels
    assert [(row["task"], row["label"]) for row in rows] == table.select("task", "label").rows()
    assert "one-coin: converged after" in done.stderr


def test_aggregate_writes_its_tables_and_a_result(files: Path, tmp_path: Path) -> None:
    done = command("aggregate", "answers.csv", "--gold", "truth.csv", "--out", str(tmp_path / "out"), cwd=files)
    assert (done.returncode, done.stdout) == (0, "")
    heads = {"labels": "task,label,probability", "workers": "worker,answers,skill,low,high", "tasks": "task,"}
    for name, head in heads.items():
        assert (tmp_path / "out" / f"{name}.csv").read_text().startswith(head)
    loaded = cw.load(tmp_path / "out")
    assert loaded.labels["status"].unique().to_list() == ["known"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "labels.csv", "report.html", "result.crowdwise", "tasks.csv", "workers.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["inspect", "answers.csv"], {"answers", "tasks", "workers", "labels", "dropped", "warnings"}),
        (["aggregate", "answers.csv"], {"model", "converged", "sweeps", "prevalence", "warnings", "seed", "versions"}),
        (["aggregate", "answers.csv", "--out", "there"], {"out", "model"}),
        (["simulate", "one-coin", "--tasks", "20", "--out", "made"], {"files", "answers", "seed"}),
        (["models"], set(cw.MODELS)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_json_parses_and_holds_what_programs_need(files: Path, words: list[str], keys: set[str]) -> None:
    done = command(*words, "--json", cwd=files)
    assert done.returncode == 0
    assert keys <= set(json.loads(done.stdout))


def test_compare_in_json_has_a_row_a_model(files: Path) -> None:
    done = command("compare", "answers.csv", "--gold", "truth.csv", "--folds", "2", "--json", cwd=files)
    rows = {row["model"]: row for row in json.loads(done.stdout)}
    assert set(rows) == set(cw.MODELS)
    assert all(0.5 < row["accuracy"] <= 1 and row["held_out"] < 0 for row in rows.values())
    assert rows["pooled"]["differs"] == 0


def test_simulated_files_read_back(files: Path) -> None:
    made = cw.simulate.crowd(tasks=60, workers=10, classes=3, per_task=5, seed=1)
    answers = cw.read(files / "answers.csv", gold=files / "truth.csv")
    assert answers.frame().equals(made.answers.frame())
    assert answers.classes[answers.gold].to_list() == made.truth["label"].to_list()


def test_the_demo_works(tmp_path: Path) -> None:
    done = command("demo", "--out", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    vote, ours = (float(share) for share in re.findall(r"labels right, .*: ([\d.]+)%", done.stdout))
    assert ours > vote
    assert {"answers.csv", "truth.csv", "labels.csv", "workers.csv", "tasks.csv", "result.crowdwise"} <= {
        path.name for path in (tmp_path / "demo").iterdir()
    }
    assert done.stdout == command("demo", "--out", "demo", cwd=tmp_path).stdout


def test_standard_input_is_read(files: Path) -> None:
    text = (files / "answers.csv").read_text()
    piped = command("aggregate", "-", cwd=files, input=text)
    assert piped.stdout == command("aggregate", "answers.csv", cwd=files).stdout


def test_what_the_readme_shows_is_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = command("demo", cwd=tmp_path).stdout
    text = (ROOT / "README.md").read_text()
    shown = [line.strip() for line in text.splitlines() if line.startswith(("    A made-up", "      labels right"))]
    assert len(shown) == 3
    assert all(line in said for line in shown)
    example = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, "README.md", None, None)
    assert len(example.examples) >= 6
    assert doctest.DocTestRunner().run(example).failed == 0
