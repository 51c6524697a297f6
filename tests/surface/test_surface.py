"""What can be seen from outside: layers, light imports, public names, commands, pages, examples, exit statuses."""

from __future__ import annotations

import ast
import contextlib
import csv
import doctest
import importlib
import inspect
import io
import json
import pkgutil
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.cli.app import app
from crowdwise.engine.registry import MODELS
from crowdwise.engine.resources import EXTRAS, NAMES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(cw.__file__).parent
# Lowest first; a package imports only itself and what stands before it.
ORDER = (
    "errors", "discovery", "forks", "limits", "kernels", "answers", "rating", "result", "engine", "labels", "points",
    "pairs", "learn", "streams", "aggregation", "inspection", "inter_rater", "metrics", "comparison", "acquisition",
    "simulate", "compat", "io", "spark", "report", "plots", "reproduce", "cli", "__main__",
)  # fmt: skip
# Reports and charts of results, and reports of classifiers, are the only imports upwards, made when called:
# decision 0008 says why.
DOORS = {
    ("result/base.py", "report"),
    ("result/base.py", "plots"),
    ("learn/estimator.py", "report"),
    ("learn/estimator.py", "metrics"),
}
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__")
COMMANDS = sorted(command.name or command.callback.__name__ for command in app.registered_commands)
HEAVY = (
    "jinja2", "numpy", "polars", "numba", "rich", "typer", "scipy", "pandas", "safetensors", "sklearn", "torch",
    "matplotlib", "pyspark", "pyarrow",
)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- layers


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def named(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def imports(path: Path) -> set[tuple[str, ...]]:
    """Every module that a file imports anywhere, with relative names made whole: ('crowdwise', 'kernels', 'layout').
    What only type checkers import is left out."""
    package = ("crowdwise", *path.relative_to(SOURCE).parts[:-1])
    found, tree = set(), ast.parse(path.read_text())
    tree.body = [node for node in tree.body if not _for_type_checkers(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            found |= {(*module, alias.name) for alias in node.names} if module == ("crowdwise",) else {module}
    return found


def _for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_a_package_imports_only_what_stands_before_it() -> None:
    upwards = set()
    for path in FILES:
        used = {name[1] for name in imports(path) if name[0] == "crowdwise" and name[1] != "__version__"}
        assert used <= set(ORDER), f"{named(path)} imports a package that CONTRIBUTING.md does not name"
        rank = ORDER.index(room_of(path))
        upwards |= {(named(path), other) for other in used if ORDER.index(other) > rank}
    assert upwards == DOORS


def test_every_package_is_in_the_plan() -> None:
    assert {room_of(path) for path in FILES} == set(ORDER)
    assert any(name[:2] == ("crowdwise", "errors") for name in imports(SOURCE / "answers" / "labels.py"))


def test_the_plan_is_that_of_contributing() -> None:
    """Packages stand in the table of CONTRIBUTING.md in this order."""
    table = [line.split("|")[1] for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line[:3] == "| `"]
    rooms = [name.rstrip("/") for cell in table for name in re.findall(r"`(\w+)/?`", cell)]
    assert [room for room in rooms if room in ORDER] == list(ORDER[:-1])


@pytest.mark.parametrize(
    ("room", "stranger"),
    [
        ("kernels", "polars"),
        ("labels", "polars"),
        ("engine", "polars"),
        *(("report", f"crowdwise.{room}") for room in ("engine", "labels", "points", "pairs", "learn", "aggregation")),
        ("report", "crowdwise.comparison"),
        ("cli", "numpy"),
    ],
)
def test_packages_do_not_know(room: str, stranger: str) -> None:
    """Kernels know no answers; models know no files or frames; the report fits no models; doors hold no arithmetic."""
    name = tuple(stranger.split("."))
    knows = [path for path in FILES if room_of(path) == room and any(i[: len(name)] == name for i in imports(path))]
    assert [named(path) for path in knows] == []


def test_kinds_of_answers_are_told_apart_by_answers_alone() -> None:
    kinds = re.compile(r"isinstance\(.*(Points|Pairs|Labels)")
    assert [named(path) for path in FILES if room_of(path) != "answers" and kinds.search(path.read_text())] == []


def test_functions_are_short() -> None:
    """60 lines at most without the docstring; kernels are exempt."""
    long = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())) if room_of(path) != "kernels" else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body and (body[-1].end_lineno or 0) - body[0].lineno + 1 > 60:
                    long.append(f"{named(path)}: {node.name}")
    assert long == []


def test_only_the_command_line_knows_flags() -> None:
    found = []
    for path in FILES:
        if room_of(path) == "cli" or path.name == "errors.py":  # which explains `option`
            continue
        texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        found += [(named(path), t) for t in texts if isinstance(t, str) and re.search(r"(^|[\s(`])--[a-z]", t)]
    assert found == []


def test_types_are_shipped() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/crowdwise"], "sbom-files": ["crowdwise.cdx.json"]}, (
        "whole, with nothing left out"
    )
    assert (ROOT / "src" / "crowdwise" / "py.typed").exists()
    assert not any("py.typed" in line for line in (ROOT / ".gitignore").read_text().splitlines())


# --------------------------------------------------------------------------------------------------- light imports


def modules_after(code: str) -> set[str]:
    code = f"import sys\n{code}\nprint(' '.join(name.split('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_import_is_light() -> None:
    loaded = modules_after("import crowdwise; crowdwise.__version__; dir(crowdwise)")
    assert "crowdwise" in loaded
    assert loaded & set(HEAVY) == set()
    own = "import crowdwise\nassert {n for n in sys.modules if n.startswith('crowdwise.')} == {'crowdwise.forks'}"
    assert "crowdwise" in modules_after(own)


@pytest.mark.parametrize("words", [["--help"], ["aggregate", "--help"], ["--version"]])
def test_help_is_light(words: list[str]) -> None:
    code = f"sys.argv = ['crowdwise', *{words}]\nfrom crowdwise.cli import main\ntry: main()\nexcept SystemExit: pass"
    loaded = modules_after(code)
    assert "typer" in loaded
    assert loaded & {"numpy", "polars", "numba"} == set()


def test_reading_needs_no_results() -> None:
    assert "crowdwise" in modules_after("import crowdwise.io\nassert 'crowdwise.result' not in sys.modules")


def test_small_tables_do_not_load_the_compiler() -> None:
    table = {"task": [1, 1], "worker": [1, 2], "label": [1, 1]}
    loaded = modules_after(f"import crowdwise as cw; cw.aggregate({table}).labels")
    assert "numpy" in loaded
    assert loaded & {"numba", "scipy", "pandas"} == set()


# ---------------------------------------------------------------------------------------------------- public names


@pytest.mark.parametrize("name", cw.__all__)
def test_public_names_resolve_and_are_described(name: str) -> None:
    value = getattr(cw, name)
    assert name == "__version__" or not name.startswith("_")
    if name != "__version__":
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
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cw.learn.nothing


def own_models() -> list[tuple[str, str, Any]]:
    """Kind, name and class of all models of the package: tests of others register a kind from outside."""
    found = [(kind, *item) for kind in cw.models()["kind"].unique() for item in MODELS[kind].items()]
    return [each for each in found if each[2].__module__.startswith("crowdwise.")]


def test_every_model_is_public_and_found_by_name() -> None:
    for kind, name, model in own_models():
        public = cw.learn if kind == "learn" else cw
        assert getattr(public, model.__name__) is model
        assert model.__name__ in public.__all__
        assert model.description
        if kind != "learn":
            assert isinstance(cw.model(name), model)
    with pytest.raises(cw.errors.ParameterError, match=r"no model 'dawid-sken'.* Did you mean 'dawid-skene'\?"):
        cw.model("dawid-sken")


def test_every_hyperparameter_is_described_where_users_meet_it() -> None:
    """In the docstring that help(cw.DawidSkene) shows: of models, and of classifiers."""
    missing = []
    for model in (
        *(model for *_, model in own_models()),
        cw.CrowdClassifier,
        cw.learn.Logistic,
        cw.learn.Network,
        cw.learn.Refit,
    ):
        text = inspect.getdoc(model) or ""
        names = [name for name in inspect.signature(model.__init__).parameters if name != "self"]
        missing += [f"{model.__name__}: {name}" for name in names if not re.search(rf"\b{name}\b", text)]
    assert missing == []


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


def test_modules_say_what_they_are_and_examples_in_docstrings_run() -> None:
    attempted = 0
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__, name
        result = doctest.testmod(module, verbose=False)
        assert result.failed == 0, name
        attempted += result.attempted
    assert attempted > 15


# ------------------------------------------------------------------------------------------- what users try at first


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    made = cw.simulate.crowd(tasks=30, workers=6, classes=3, per_task=4, seed=1)
    return made.answers.frame()


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_frames_are_fitted_as_they_are(kind: str, frame: pl.DataFrame) -> None:
    given = frame.to_pandas() if kind == "pandas" else frame
    wanted = cw.aggregate(cw.Labels(frame), "dawid-skene").labels
    assert cw.DawidSkene().fit(given).labels.equals(wanted)
    assert cw.aggregate(given, cw.DawidSkene).labels.equals(wanted)
    assert cw.aggregate(given, cw.DawidSkene()).labels.equals(wanted)
    verdicts = given.rename(columns={"label": "verdict"}) if kind == "pandas" else given.rename({"label": "verdict"})
    assert cw.aggregate(verdicts, cw.DawidSkene, label="verdict").labels.equals(wanted)
    with pytest.raises(cw.errors.ColumnError, match=r"no column 'label' in table; columns are .*verdict"):
        cw.aggregate(verdicts)


@pytest.fixture(scope="module")
def strangers(frame: pl.DataFrame) -> dict[str, Any]:
    """What verbs of labels are given by mistake."""
    clicks, pairs = cw.simulate.clicks("E", seed=4).points, cw.simulate.pinwheel(per_cluster=4, asked=20).pairs
    return {
        "a frame": frame,
        "a pandas frame": frame.to_pandas(),
        "answers": cw.Labels(frame),
        "clicks": clicks,
        "objects": cw.aggregate(clicks, "fuzzy-c-means", objects=2),
        "clusters": cw.aggregate(pairs, "pair-vote"),
        "nothing": None,
        "a file": "answers.csv",
    }


VERBS: dict[str, Callable[[Any], Any]] = {
    "rate": cw.rate,
    "next_tasks": lambda given: cw.next_tasks(given, 10),
    "cost_curve": cw.cost_curve,
    "expertise": cw.expertise,
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_of_results_work_or_say_what_they_take(verb: str, strangers: dict[str, Any]) -> None:
    for what, given in strangers.items():
        with pytest.raises(cw.errors.DataError) as caught:
            VERBS[verb](given)
        assert re.match(rf"{verb} takes a result", str(caught.value)), what
    assert VERBS[verb](cw.aggregate(strangers["answers"])) is not None


@pytest.mark.parametrize("verb", ["agreement", "compare"])
def test_verbs_of_answers_take_frames_and_refuse_other_kinds_in_words(verb: str, strangers: dict[str, Any]) -> None:
    call = getattr(cw, verb)
    given = {"models": ["majority-vote", "soft-vote"]} if verb == "compare" else {}
    first = call(strangers["answers"], **given)
    for what in ("a frame", "a pandas frame"):
        table = call(strangers[what], **given)
        assert table.drop("seconds", strict=False).equals(first.drop("seconds", strict=False)), what
    for what in ("nothing", "a file"):
        with pytest.raises(cw.errors.DataError, match=r"answers|is a name, not a table"):
            call(strangers[what], **given)


@pytest.mark.parametrize("verb", ["review", "next_answers"])
def test_verbs_of_every_kind_of_result_refuse_answers_in_words(verb: str, strangers: dict[str, Any]) -> None:
    for what, given in strangers.items():
        if what in ("objects", "clusters"):
            assert getattr(cw, verb)(given, 3).height > 0
        else:
            with pytest.raises(cw.errors.DataError, match=r"takes a result; got .* Fit the answers first"):
                getattr(cw, verb)(given, 3)
    with pytest.raises(cw.errors.ParameterError, match="review of points has no option models="):
        cw.review(strangers["objects"], models=["majority-vote"])


@pytest.mark.parametrize("read", ["read_features", "load"])
def test_readers_of_files_refuse_tables_in_words(read: str, frame: pl.DataFrame) -> None:
    for given in (frame, pd.DataFrame({"task": [1]})):
        with pytest.raises(cw.errors.CrowdwiseError, match=type(given).__name__):
            getattr(cw, read)(given)


@pytest.mark.parametrize("read", ["read", "read_points", "read_pairs", "read_features", "load"])
def test_readers_refuse_what_is_neither_a_file_nor_a_table(read: str) -> None:
    for given in (None, 3):
        with pytest.raises(cw.errors.CrowdwiseError, match=type(given).__name__):
            getattr(cw, read)(given)


def test_frames_are_read_like_files(frame: pl.DataFrame) -> None:
    assert cw.read(frame).frame().equals(cw.Labels(frame).frame())


# ------------------------------------------------------------------------------------------------ missing libraries

NEED = [(kind, name) for kind, models in MODELS.items() for name, model in models.items() if model.extras]


@pytest.mark.parametrize(("kind", "name"), NEED, ids=lambda value: value)
def test_a_missing_library_is_reported_before_the_fit(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS[kind][name]
    for extra in model.extras:
        modules, package = EXTRAS[extra]
        for module in modules:
            importlib.import_module(module)  # so that none of them fails for want of another
        for module in modules:
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, module, None)
                with pytest.raises(cw.errors.MissingError) as caught:
                    model().fit("no answers at all", features="no features at all")
            missing = NAMES.get(module, module)
            assert str(caught.value) == (
                f"{name} needs {missing}, which is not installed. Run: pip install '{package}'"
            )


def test_models_that_need_a_library_for_some_settings_say_so_before_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = cw.simulate.pinwheel(per_cluster=4, asked=20)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(
        cw.errors.MissingError, match=r"pair-mixture with space='graph' needs scipy.*crowdwise\[learn\]"
    ):
        cw.PairMixture(space="graph").fit(wheel.pairs, features=wheel.features)
    with pytest.raises(cw.errors.MissingError, match=r"match_clusters needs scipy.*crowdwise\[learn\]"):
        cw.match_clusters(cw.aggregate(wheel.pairs, "pair-vote"), wheel.truth)


def test_extras_are_those_of_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, (modules, package) in EXTRAS.items():
        if extra not in extras:
            assert package == extra, "a library of its own, which no extra brings"
            continue
        assert package == f"crowdwise[{extra}]"
        brought = [re.split(r"[>=\[]", each)[0] for each in extras[extra]]
        brought += [re.split(r"[>=]", each)[0] for each in extras["learn"]] if "crowdwise" in brought else []
        assert {NAMES.get(module, module) for module in modules} == set(brought) - {"crowdwise"}


@pytest.mark.parametrize("gone", ["pandas", "pyarrow"])
def test_pandas_frames_without_their_library_are_refused_by_its_name(
    gone: str, frame: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = cw.aggregate(frame)
    assert list(result.to_pandas()) == ["labels", "workers", "tasks"]
    monkeypatch.setitem(sys.modules, gone, None)
    with pytest.raises(
        cw.errors.MissingError, match=rf"{gone} is not installed. Run: pip install 'crowdwise\[pandas\]'"
    ):
        result.to_pandas()


# ---------------------------------------------------------------------------------------------------- pages, examples


@pytest.mark.parametrize("name", cw.models("labels")["name"].to_list())
def test_every_model_has_its_page_of_maths(name: str) -> None:
    module = MODELS["labels"][name].__module__.split(".")[-1]
    page = ROOT / "docs" / "maths" / f"{module}.md"
    assert page.exists()
    assert f"docs/maths/{module}.md" in (importlib.import_module(MODELS["labels"][name].__module__).__doc__ or "")


def test_pages_name_every_model_and_command() -> None:
    pages = [page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if page.exists()]
    text = "\n".join(pages)
    assert [name for _, name, _ in own_models() if name not in text] == []
    if (ROOT / "README.md").read_text().strip():
        assert [name for name in COMMANDS if f"crowdwise {name}" not in text] == []


def test_links_between_pages_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link and not link.startswith("mailto:"):
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_files_of_examples_run(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(str(example), run_name="__main__")
    assert said.getvalue().strip()


# ----------------------------------------------------------------------------------------------------- command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """answers.csv and truth.csv."""
    made = tmp_path_factory.mktemp("files")
    cw.simulate.crowd(tasks=60, workers=10, classes=3, per_task=5, seed=1).save(made)
    return made


@pytest.fixture
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the folder where commands run."""
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, command: Any) -> None:
    status, out, err = command(name, "--help")
    assert (status, err) == (0, "")
    assert f"Example: crowdwise {name}" in " ".join(out.split())
    assert re.match(rf"Usage: .*crowdwise {name} \[OPTIONS\]", out)


def test_help_names_every_command_and_demo_first(command: Any) -> None:
    status, out, _ = command("--help")
    assert status == 0
    assert all(re.search(rf"^\s+{name}\s+\w", out, re.MULTILINE) for name in COMMANDS)
    assert "Start with: crowdwise demo" in out


def test_the_package_is_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "crowdwise", "--version"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"crowdwise {cw.__version__}\n")


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
@pytest.mark.usefixtures("files")
def test_exit_statuses(status: int, words: list[str], command: Any) -> None:
    found, out, err = command(*words)
    assert found == status, err
    assert "Traceback" not in err
    assert (out == "") == (status in (1, 2))
    assert status in (0, 3) or err.strip()


def test_labels_go_to_stdout_and_words_to_stderr(files: Path, command: Any) -> None:
    _, out, err = command("aggregate", "answers.csv", "--model", "one-coin")
    rows = list(csv.DictReader(io.StringIO(out)))
    table = cw.aggregate(cw.read(files / "answers.csv"), "one-coin").labels
    assert [(row["task"], row["label"]) for row in rows] == table.select("task", "label").rows()
    assert "one-coin: converged after" in err


@pytest.mark.usefixtures("files")
def test_aggregate_writes_its_tables_and_a_result(tmp_path: Path, command: Any) -> None:
    status, out, _ = command("aggregate", "answers.csv", "--gold", "truth.csv", "--out", tmp_path / "out")
    assert (status, out) == (0, "")
    heads = {"labels": "task,label,probability", "workers": "worker,answers,skill,low,high", "tasks": "task,"}
    for name, head in heads.items():
        assert (tmp_path / "out" / f"{name}.csv").read_text().startswith(head)
    loaded = cw.load(tmp_path / "out")
    assert loaded.labels["status"].unique().to_list() == ["known"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "crowdwise.json", "labels.csv", "report.html", "result.crowdwise", "tasks.csv", "workers.csv",
    ]  # fmt: skip


def test_known_labels_give_label_sets(files: Path, tmp_path: Path, command: Any) -> None:
    known = tmp_path / "known.csv"
    known.write_text("".join((files / "truth.csv").read_text().splitlines(keepends=True)[:21]))
    out = tmp_path / "out"
    assert command("aggregate", "answers.csv", "--gold", known, "--out", out)[0] == 0
    sets = pl.read_csv(out / "sets.csv")
    assert sets.columns == ["task", "label", "probability", "size"]
    assert sets.equals(cw.label_sets(cw.load(out)), null_equal=True)
    assert command("aggregate", "answers.csv", "--gold", known, "--out", out, "--coverage", "0.8")[0] == 0
    assert pl.read_csv(out / "sets.csv").height <= sets.height
    for words, message in (
        (("--coverage", "0.99"), "need at least 99 tasks with answers whose label is known; there are 20"),
        (("--coverage", "90"), "--coverage 90.0 is not a number above 0 and below 1"),
    ):
        status, _, told = command("aggregate", "answers.csv", "--gold", known, "--out", out, *words)
        assert (status, message in told) == (2, True)
    assert command("aggregate", "answers.csv", "--gold", known, "--coverage", "0.9")[2].startswith(
        "error: --coverage needs --out"
    )
    assert command("aggregate", "answers.csv", "--out", out)[0] == 0
    assert not (out / "sets.csv").exists()  # those of the earlier run are removed


def test_a_plan_says_how_many_answers(files: Path, command: Any) -> None:
    status, out, told = command("plan", "--target", "0.9", "--accuracy", "0.8", "--tasks", "1000", "--price", "0.05")
    assert status == 0
    plan = cw.plan(0.9, accuracy=0.8)
    assert f"For 90 % right labels, ask {plan.answers} answers per task: " in out
    assert f"{plan.answers * 1000:,} answers for 1,000 tasks, which cost {plan.answers * 50:.2f}" in out  # type: ignore[operator]
    assert f"{plan.at_best} answers if workers share few errors, more than 25 answers if they share many" in out
    assert "A pilot" in told
    found = json.loads(command("plan", "--target", "0.9", "--accuracy", "0.8", "--tasks", "10", "--json")[1])
    assert (found["answers"], found["total_answers"]) == (plan.answers, 10 * plan.answers)  # type: ignore[operator]
    found = json.loads(command("plan", "answers.csv", "--target", "0.8", "--json")[1])
    assert found == cw.plan(0.8, pilot=cw.aggregate(cw.read("answers.csv"))).as_dict()
    assert "90 % range" in command("plan", "answers.csv", "--target", "0.8")[2]
    assert "ask at most 5 answers per task" in command("plan", "answers.csv", "--target", "0.1")[1]
    found = json.loads(command("plan", "--target", "0.999", "--accuracy", "0.6", "--tasks", "10", "--json")[1])
    assert (found["answers"], found["total_answers"]) == (None, None)
    assert command("simulate", "clicks", "--out", "made")[0] == 0
    told = command("plan", "made/clicks.csv", "--target", "0.9")[2]
    assert "plan works on labels of tasks; clicks.csv holds clicks" in told
    for words, message in (
        (
            ("--target", "90", "--accuracy", "0.8"),
            "--target 90.0 is not a number above 0 and below 1. For 90 percent, write 0.9",
        ),
        (("--target", "0.9"), "give --accuracy, the probability that one answer is right"),
        (("--target", "1", "--accuracy", "0.8"), "--target 1.0 is not a number above 0 and below 1"),
        (("--target", "0.9", "--accuracy", "0.8", "--price", "1"), "--price needs --tasks"),
        (
            ("--target", "0.9", "--accuracy", "0.8", "--gold", "k.csv"),
            "--gold is for the answers of a pilot. Name their",
        ),
        (("answers.csv", "--target", "0.9", "--classes", "3"), "--classes is for a study without a pilot"),
    ):
        status, _, told = command("plan", *words)
        assert (status, message in told) == (2, True), told


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["inspect", "answers.csv"], {"answers", "tasks", "workers", "labels", "dropped", "warnings"}),
        (
            ["aggregate", "answers.csv"],
            {"model", "converged", "iterations", "prevalence", "warnings", "seed", "versions"},
        ),
        (["aggregate", "answers.csv", "--out", "there"], {"out", "model"}),
        (["simulate", "one-coin", "--tasks", "20", "--out", "made"], {"files", "answers", "seed"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("files")
def test_json_parses_and_holds_what_programs_need(words: list[str], keys: set[str], command: Any) -> None:
    status, out, _ = command(*words, "--json")
    assert status == 0
    assert keys <= set(json.loads(out))


def test_models_in_json_have_a_row_per_model(command: Any) -> None:
    rows = json.loads(command("models", "--json")[1])
    assert {(row["kind"], row["name"]) for row in rows} == set(cw.models().select("kind", "name").rows())
    assert all({"description", "settings", "features", "extras", "default"} <= set(row) for row in rows)


@pytest.mark.usefixtures("files")
def test_compare_in_json_has_a_row_per_model(command: Any) -> None:
    _, out, _ = command("compare", "answers.csv", "--gold", "truth.csv", "--folds", "2", "--json")
    rows = {row["model"]: row for row in json.loads(out)}
    assert set(rows) == set(MODELS["labels"])
    assert all(0.5 < row["accuracy"] <= 1 and row["held_out"] < 0 for row in rows.values())
    assert rows["pooled"]["differs"] == 0


def test_simulated_files_read_back(files: Path) -> None:
    made = cw.simulate.crowd(tasks=60, workers=10, classes=3, per_task=5, seed=1)
    answers = cw.read(files / "answers.csv", gold=files / "truth.csv")
    assert answers.frame().equals(made.answers.frame())
    assert answers.classes[answers.gold].to_list() == made.truth["label"].to_list()


def test_standard_input_is_read(files: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from_file = command("aggregate", "answers.csv")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((files / "answers.csv").read_bytes())))
    piped = command("aggregate", "-")
    assert piped[:2] == from_file[:2]
    assert piped[1].count("\n") == 61


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """What `crowdwise demo` has written and said, in a process of its own."""
    where = tmp_path_factory.mktemp("demo")
    start = [sys.executable, "-m", "crowdwise", "demo"]
    done = subprocess.run(start, cwd=where, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return where, done.stdout


def test_the_demo_works(demo: tuple[Path, str], tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    where, said = demo
    vote, ours = (float(share) for share in re.findall(r"accuracy of .*: ([\d.]+)%", said))
    assert ours > vote
    assert {
        "answers.csv",
        "truth.csv",
        "labels.csv",
        "workers.csv",
        "tasks.csv",
        "report.html",
        "result.crowdwise",
        "crowdwise.json",
    } == {path.name for path in (where / "demo").iterdir()}
    monkeypatch.chdir(tmp_path)
    assert command("demo")[1] == said


def test_what_the_readme_shows_is_what_comes_out(demo: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    where, said = demo
    monkeypatch.chdir(where)
    text = (ROOT / "README.md").read_text()
    shown = [line.strip() for line in text.splitlines() if line.startswith(("    A simulated", "      accuracy of"))]
    assert len(shown) == 3
    assert all(line in said for line in shown)
    example = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, "README.md", None, None)
    assert len(example.examples) >= 6
    assert doctest.DocTestRunner().run(example).failed == 0
