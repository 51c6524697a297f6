"""What surrounds the code: the lock, lowest versions, workflows, hooks, the citation, and names for type checkers."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import crowdwise as cw

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PYTHONS = [each.split()[-1] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", each)]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def wanted() -> list[Requirement]:
    """Every requirement of the package and of its extras, but for its own extras."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    every = [Requirement(each) for group in groups for each in group]
    return [each for each in every if each.name != PROJECT["name"]]


def locked(python: str) -> dict[str, str]:
    """Name -> version of constraints.txt for a version of Python on Linux."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    here = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux",
            "platform_machine": "x86_64", "implementation_name": "cpython"}  # fmt: skip
    pins = [Requirement(line) for line in lines]
    kept = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(here)]
    assert len(kept) == len({canonicalize_name(pin.name) for pin in kept}), "one version of each package"
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in kept}


# ------------------------------------------------------------------------------------------------------- the lock


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_pins_every_requirement_to_a_version_that_is_allowed(python: str) -> None:
    lock = locked(python)
    assert len(lock) > len(wanted())
    bad = [str(each) for each in wanted() if not each.specifier.contains(lock.get(canonicalize_name(each.name), "0"))]
    assert bad == [], "run `make lock`"


def test_the_lock_keeps_one_torch_and_names_no_host() -> None:
    assert PYPROJECT["tool"]["uv"]["constraint-dependencies"] == [f"torch=={locked('3.11')['torch']}"]
    assert "://" not in (ROOT / "constraints.txt").read_text()


def test_lowest_versions_are_the_lower_bounds(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("lowest", ROOT / "scripts" / "lowest.py")
    assert spec is not None
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)  # type: ignore[union-attr]
    pins = {pin.name: pin for pin in map(Requirement, script.lowest(ROOT / "pyproject.toml"))}
    ours = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in script.EXTRAS)]
    bounds = {each.name: each for each in (Requirement(line) for group in ours for line in group)}
    bounds.pop("crowdwise")
    assert {name: str(each.specifier).removeprefix(">=") for name, each in bounds.items()} == {
        name: str(pin.specifier).removeprefix("==") for name, pin in pins.items()
    }
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "crowdwise"\ndependencies = ["numpy"]\n'
        "[project.optional-dependencies]\nlearn = []\ndeep = []\npandas = []\nplot = []\nspark = []\n"
    )
    with pytest.raises(SystemExit, match=r"'numpy' in pyproject.toml has no lower bound"):
        script.lowest(tmp_path / "pyproject.toml")


def test_tests_of_the_lowest_versions_find_their_tools_in_the_lock() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "lowest.py", "tools"], capture_output=True, text=True)
    found = {canonicalize_name(pin.name): str(pin.specifier) for pin in map(Requirement, done.stdout.splitlines())}
    assert found.keys() >= {"pytest", "hypothesis", "psutil", "crowd-kit"}
    assert found == {name: f"=={locked('3.11')[name]}" for name in found}


# ----------------------------------------------------------------------------------------------- workflows and hooks


def steps() -> list[dict[str, Any]]:
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    return [step for job in jobs for step in job["steps"]]


def test_workflows_test_every_python_that_is_supported() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    assert set(jobs) == {"tests", "lowest", "wheel", "docs"}
    assert jobs["tests"]["strategy"]["matrix"]["python"] == PYTHONS
    weekly = yaml.safe_load((ROOT / ".github" / "workflows" / "weekly.yml").read_text())["jobs"]
    assert set(weekly) >= {"fuzz", "faults", "boundscheck", "audit"}
    assert all("timeout-minutes" in job for job in [*jobs.values(), *weekly.values()])


def test_what_workflows_run_is_shell_and_calls_targets_that_exist() -> None:
    scripts = [step["run"] for step in steps() if "run" in step]
    assert len(scripts) > 5
    for script in scripts:
        done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), script
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {name for script in scripts for name in re.findall(r"\bmake ([a-z]+)", script)}
    assert called >= {"test", "lowest", "docs", "fuzz", "faults", "boundscheck", "audit"}
    assert called <= targets
    phony = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == targets


def test_a_mistake_in_a_workflow_is_noticed(tmp_path: Path) -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    assert "--builtin-schema" in (ROOT / "Makefile").read_text()
    text = WORKFLOWS[0].read_text()
    for name, given, status in (("right", text, 0), ("wrong", text.replace("runs-on:", "run-on:", 1), 1)):
        path = tmp_path / f"{name}.yml"
        path.write_text(given)
        assert subprocess.run([*check, str(path)], capture_output=True).returncode == status, name


def test_hooks_call_tools_that_the_project_has() -> None:
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repo["repo"] == "local", "so that nothing is fetched"
    assert {hook["id"] for hook in repo["hooks"]} == {"ruff", "ruff-format", "mypy", "page"}
    tools = {canonicalize_name(each.name) for each in wanted()} | {"python"}
    for hook in repo["hooks"]:
        program, *words = hook["entry"].split()
        assert hook["language"] == "system"
        assert program.removeprefix(".venv/bin/") in tools
        assert all((ROOT / word).exists() for word in words if "/" in word)


def test_templates_of_issues_ask_for_what_is_needed() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    assert {path.stem for path in folder.iterdir()} == {"bug", "feature", "question", "config"}
    bug = {part.get("id"): part for part in yaml.safe_load((folder / "bug.yml").read_text())["body"]}
    assert all(bug[part]["validations"]["required"] for part in ("version", "inspect", "what"))
    assert (ROOT / ".github" / "pull_request_template.md").exists()


# ------------------------------------------------------------------------------------------------ citation and types


def test_the_citation_is_of_this_version_and_names_the_five_sources() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cited["version"], cited["license"]) == (cw.__version__, PROJECT["license"])
    first = [reference["authors"][0]["family-names"] for reference in cited["references"]]
    assert first == ["Salmon", "Xu", "Mena", "Pagès-Zamora", "Luo"]
    docs = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert all(reference["doi"] in docs for reference in cited["references"] if "doi" in reference)


def test_type_checkers_see_every_public_name() -> None:
    """`import name as name` exports it, also to `mypy --strict`; models may be missing, and are Any."""
    (block,) = [
        node for node in ast.parse(Path(cw.__file__).read_text()).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]  # fmt: skip
    names = [alias for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert [alias.name for alias in names if alias.asname != alias.name] == []
    seen = {alias.name for alias in names}
    assert set(cw._HOME) <= seen
    assert seen <= set(cw.__all__)
