"""What the wheel is made of is written down, and known vulnerabilities are asked for, honestly (S15)."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_repository import PROJECT, locked

import crowdwise as cw

ROOT = Path(__file__).resolve().parents[2]
SBOM = json.loads((ROOT / "crowdwise.cdx.json").read_text())
FOR_USERS = ("learn", "deep", "pandas", "plot", "spark")


def components(kind: str) -> dict[str, dict[str, Any]]:
    """The components of the SBOM that come from PyPI (`pypi`) or npm, by name."""
    found = [each for each in SBOM["components"] if each["purl"].startswith(f"pkg:{kind}/")]
    return {canonicalize_name(each["name"]) if kind == "pypi" else each["name"]: each for each in found}


def named(*extras: str) -> set[str]:
    """The packages that pyproject.toml names, of the core or of extras."""
    groups = [PROJECT["optional-dependencies"][extra] for extra in extras] if extras else [PROJECT["dependencies"]]
    names = {canonicalize_name(Requirement(line).name) for group in groups for line in group}
    return names - {PROJECT["name"]}


# ------------------------------------------------------------------------------------------------------------ the SBOM


def test_s15_the_sbom_is_of_this_version_and_says_so_alone() -> None:
    own = SBOM["metadata"]["component"]
    assert (SBOM["bomFormat"], SBOM["specVersion"]) == ("CycloneDX", "1.6")
    assert (own["name"], own["version"]) == (PROJECT["name"], cw.__version__), "run `make sbom`"
    assert SBOM.keys() & {"serialNumber"} == set()
    assert SBOM["metadata"].keys() == {"component"}, "no time and no tool: the same lock gives the same bytes"


def test_s15_the_sbom_has_every_dependency_in_its_locked_version() -> None:
    found, lock = components("pypi"), locked("3.11")
    assert {name: each["version"] for name, each in found.items()} == {name: lock[name] for name in found}
    assert named() <= {name for name, each in found.items() if each["scope"] == "required"}, "run `make sbom`"
    assert named(*FOR_USERS) <= found.keys(), "run `make sbom`"
    assert not (named("dev") - named(*FOR_USERS) - named()) & (found.keys() - {"packaging"}), "tools are not in it"
    assert [name for name, each in found.items() if not each.get("licenses")] == []


def test_s15_the_sbom_has_the_npm_packages_of_the_notices() -> None:
    notices = (Path(cw.__file__).parent / "report" / "static" / "THIRD_PARTY_NOTICES.txt").read_text()
    noticed = dict(re.findall(r"^(\S+) (\S+) \([^)]+\): Copyright", notices, re.MULTILINE))
    found = components("npm")
    assert {name: each["version"] for name, each in found.items()} == noticed, "run `make sbom`"
    assert len(noticed) > 10
    assert {len(each["hashes"][0]["content"]) for each in found.values()} == {128}, "SHA-512, as in the lock"


def test_s15_what_depends_on_what_is_whole() -> None:
    refs = {each["bom-ref"] for each in [SBOM["metadata"]["component"], *SBOM["components"]]}
    edges = {each["ref"]: each.get("dependsOn", []) for each in SBOM["dependencies"]}
    assert {ref for others in edges.values() for ref in others} <= refs
    assert edges.keys() <= refs
    assert len(refs) == len(SBOM["components"]) + 1


# ----------------------------------------------------------------------------------------------- known vulnerabilities


@pytest.fixture(scope="module")
def audit() -> Any:
    """The module scripts/audit.py."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "audit.py")))


CLEAN = {"name": "rich", "version": "15.0.0", "vulns": []}
BAD = {"name": "jinja2", "version": "2.0", "vulns": [{"id": "CVE-2019-10906"}]}
SKIPPED = {"name": "numba", "skip_reason": "Dependency not found on PyPI"}
NPM_CLEAN = {"vulnerabilities": {}, "metadata": {"dependencies": {"total": 47}}}
NPM_BAD = {"vulnerabilities": {"d3-color": {"severity": "high"}}, "metadata": {"dependencies": {"total": 47}}}
CASES = {
    "nothing known": ([CLEAN], NPM_CLEAN, 0, ["constraints.txt: 1 checked, 0 known", "lock.json: 47 checked, 0 known"]),
    "one in Python": ([CLEAN, BAD], NPM_CLEAN, 1, ["2 checked, 1 known", "VULNERABLE jinja2 2.0: CVE-2019-10906"]),
    "one in the page": ([CLEAN], NPM_BAD, 1, ["47 checked, 1 known", "VULNERABLE d3-color: high", "npm update"]),
    "one, and one unknown": ([BAD, SKIPPED], NPM_CLEAN, 1, ["jinja2", "no data on 1 packages (numba)"]),
    "one unknown": ([CLEAN, SKIPPED], NPM_CLEAN, 3, ["no data on 1 packages (numba)", "no finding, and no all-clear"]),
    "no data for Python": ("", NPM_CLEAN, 3, ["pip-audit had no data: no route to host", "make audit"]),
    "no data for the page": ([CLEAN], {"message": "405 Not Allowed"}, 3, ["npm audit had no data: 405 Not Allowed"]),
    "no answer at all": ("", "", 3, ["pip-audit had no data", "npm audit had no data: no route to host"]),
}


@pytest.mark.parametrize("kind", CASES)
def test_s15_what_could_not_be_checked_is_neither_a_finding_nor_an_all_clear(kind: str, audit: Any) -> None:
    packages, page, status, texts = CASES[kind]

    def run(words: tuple[str, ...], _folder: Path) -> subprocess.CompletedProcess[str]:
        answer = page if words[0] == "npm" else packages and {"dependencies": packages}
        return subprocess.CompletedProcess(
            words, 1, json.dumps(answer) if answer else "", "trace\nno route to host\n\n"
        )

    got, lines = audit.report([audit.python(run), audit.page(run)])
    assert got == status
    assert [text for text in texts if text not in "\n".join(lines)] == []


def test_s15_both_audits_read_the_locks(audit: Any) -> None:
    asked = []

    def run(words: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
        asked.append(
            (Path(words[0]).name, *(word for word in words if "lock" in word or "constraints" in word), folder)
        )
        return subprocess.CompletedProcess(words, 0, "[]", "")

    for each in (audit.python, audit.page):
        assert each(run).unchecked.endswith("it gave no reason")
    assert asked == [("pip-audit", "constraints.txt", ROOT), ("npm", "--package-lock-only", ROOT / "page")]
