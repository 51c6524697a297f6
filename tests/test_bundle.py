"""The built script and styles of the page are what its sources give, from pinned packages, on any machine (S15)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE, STATIC = ROOT / "page", ROOT / "src" / "crowdwise" / "report" / "static"


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of page/ with its packages, installed from the lock only."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.fail(f"there is no {tool}; run `make test`, which installs it")
    folder = tmp_path_factory.mktemp("bundle") / "page"
    shutil.copytree(PAGE, folder, ignore=shutil.ignore_patterns("node_modules"))
    run("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
    return folder


def test_the_kept_bundle_is_what_the_sources_give(page: Path, tmp_path: Path) -> None:
    run("node", "build.mjs", tmp_path / "out", cwd=page)
    built = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    kept = {file.name: file.read_bytes() for file in STATIC.iterdir()}
    assert built.keys() == kept.keys() == {"page.js", "page.css", "plot.css"}
    assert [name for name in kept if built[name] != kept[name]] == [], "run `make page`"


def test_nothing_of_the_machine_is_in_the_bundle() -> None:
    for file in STATIC.iterdir():
        text = file.read_text()
        assert str(ROOT) not in text
        assert "sourceMappingURL" not in text


def test_types_hold(page: Path) -> None:
    run("npm", "run", "check", cwd=page)


def test_a_wrong_type_is_noticed(page: Path) -> None:
    (page / "src" / "wrong.ts").write_text("export const wrong: number = 'text';\n")
    try:
        done = subprocess.run(["npm", "run", "check"], cwd=page, capture_output=True, text=True, timeout=300)
    finally:
        (page / "src" / "wrong.ts").unlink()
    assert done.returncode != 0
    assert "wrong.ts" in done.stdout


def test_versions_are_exact_and_locked() -> None:
    package, lock = (json.loads((PAGE / name).read_text()) for name in ("package.json", "package-lock.json"))
    wanted = package["devDependencies"]
    assert [version for version in wanted.values() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    assert not {"dependencies", "optionalDependencies", "peerDependencies"} & set(package)
    assert {name: lock["packages"][f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_the_lock_names_no_host_and_pins_every_package() -> None:
    text = (PAGE / "package-lock.json").read_text()
    packages = {name: each for name, each in json.loads(text)["packages"].items() if name}
    assert "://" not in text
    assert [name for name, each in packages.items() if not each["integrity"].startswith("sha512-")] == []


def test_no_package_runs_a_script_when_it_is_installed_but_the_builder() -> None:
    packages = json.loads((PAGE / "package-lock.json").read_text())["packages"]
    assert [name for name, each in packages.items() if each.get("hasInstallScript")] == ["node_modules/esbuild"]
