"""A model costs one file: it is dropped into a copy of the package, nothing else is edited, and everything finds it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crowdwise as cw
from crowdwise.discovery import PACKAGES, model_homes
from crowdwise.engine.registry import MODELS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(cw.__file__).parent
MODEL = Path(__file__).with_name("one_file") / "shared_coin.py"
# One model of each other kind: a new name for one that is there, since its arithmetic is not what is tested.
OTHERS = {
    "points": ("baselines", "KMeansClicks"),
    "pairs": ("baselines", "PairVote"),
    "learn": ("difficulty", "Adaptive"),
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, to which one file per kind is added, and with answers."""
    folder = tmp_path_factory.mktemp("one_file")
    shutil.copytree(SOURCE, folder / "crowdwise", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MODEL, folder / "crowdwise" / "labels")
    for kind, (module, base) in OTHERS.items():
        (folder / "crowdwise" / kind / "another.py").write_text(
            f'"""Another."""\nfrom ..engine import register\nfrom .{module} import {base}\n\n\n'
            f'@register("another-{kind}", "another")\nclass Another{kind.title()}({base}):\n    """Another."""\n'
        )
    cw.simulate.crowd(tasks=60, workers=10, classes=3, per_task=5, seed=1).save(folder)
    return folder


def python(folder: Path, *words: object, cwd: Path | None = None) -> str:
    """What Python prints when it imports the copy."""
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd or folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_model_is_short() -> None:
    assert len(MODEL.read_text().splitlines()) <= 70
    assert "SharedCoin" not in (SOURCE / "__init__.py").read_text()


def test_python_finds_it(package: Path) -> None:
    code = """
import crowdwise as cw
assert "SharedCoin" in dir(cw) and "SharedCoin" in cw.__all__
import sys
assert "numpy" not in sys.modules, "names are listed without loading anything"
from crowdwise import *
answers = cw.read("answers.csv", gold="truth.csv")
assert cw.aggregate(answers, "shared-coin").model == cw.SharedCoin() == SharedCoin()
assert cw.aggregate(answers, "shared-coin", right=5.0).model.right == 5.0
assert "right" in cw.SharedCoin.__doc__
assert "shared-coin" in cw.models("labels")["name"]
cw.aggregate(answers, SharedCoin).save("saved")
assert cw.load("saved").model == SharedCoin()
print(cw.compare(answers, folds=2)["model"].to_list())
"""
    assert "shared-coin" in python(package, "-c", code)


def test_commands_find_it(package: Path) -> None:
    run = ("-m", "crowdwise")
    models = {row["name"]: row for row in json.loads(python(package, *run, "models", "--json"))}
    assert models["shared-coin"]["settings"].keys() >= {"right", "max_iter", "tol"}
    labels = python(package, *run, "aggregate", "answers.csv", "--model", "shared-coin", "--set", "right=5")
    assert labels.startswith("task,label,probability")
    rows = json.loads(python(package, *run, "compare", "answers.csv", "--folds", "0", "--json"))
    assert "shared-coin" in [row["model"] for row in rows]


def test_contract_tests_run_on_it(package: Path) -> None:
    tests = ROOT / "tests" / "contract" / "test_every_model.py"
    said = python(package, "-m", "pytest", "-p", "no:xdist", "-k", "labels-shared-coin", tests, cwd=ROOT)
    per_model, per_executor = (
        len(re.findall(f"^@every_{each}", tests.read_text(), re.MULTILINE)) for each in ("model", "executor")
    )
    every = per_model + 3 * per_executor
    assert every > 20
    assert re.search(rf"\b{every} passed", said), said


@pytest.mark.parametrize("kind", OTHERS)
def test_models_of_other_kinds_are_found_as_well(kind: str, package: Path) -> None:
    public = "cw.learn" if kind == "learn" else "cw"
    code = f"""
import crowdwise as cw
assert {public}.Another{kind.title()}.name == "another-{kind}"
assert "Another{kind.title()}" in {public}.__all__
assert "another-{kind}" in cw.models({kind!r})["name"]
if {kind!r} == "learn":
    from crowdwise.learn.sides import by_name
    assert by_name("another-learn") == cw.learn.AnotherLearn()
import sys
assert not {{"torch", "sklearn", "scipy"}} & set(sys.modules), "libraries are loaded by a fit, not by a list"
"""
    python(package, "-c", code)


def test_what_is_read_from_files_is_what_registers() -> None:
    listed = {(module, name) for package in PACKAGES for name, module in model_homes(f"crowdwise.{package}").items()}
    cw.models()
    classes: list[Any] = [model for models in MODELS.values() for model in models.values()]
    assert listed == {(c.__module__, c.__name__) for c in classes if c.__module__.startswith("crowdwise.")}
