"""The wheel is whole: built, installed into an empty environment with its dependencies, and its demonstration run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import crowdwise as cw

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "crowdwise"


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that knows nothing of the environment of the tests."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the sources as they are."""
    folder = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment that holds the wheel and its dependencies, in their locked versions."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "--quiet")
    lock = ("--constraint", ROOT / "constraints.txt", "--no-compile")
    done = run(*pip, "install", *lock, wheel, cwd=folder)
    if done.returncode:
        other = run(*pip, "download", "--no-deps", "--no-cache-dir", "--dest", folder / "other", "typer", cwd=folder)
        if other.returncode and not os.environ.get("CI"):
            pytest.skip("there is no package index here: pip cannot even download typer")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bin"


def test_everything_that_the_package_needs_is_in_the_wheel(wheel: Path) -> None:
    assert wheel.name == f"crowdwise-{cw.__version__}-py3-none-any.whl"
    inside = set(zipfile.ZipFile(wheel).namelist())
    sources = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    wanted = {
        f"crowdwise/{path.relative_to(PACKAGE).as_posix()}" for path in sources if path.suffix not in (".nbi", ".nbc")
    }
    info = f"crowdwise-{cw.__version__}.dist-info"
    assert {name for name in inside if not name.startswith(info)} == wanted
    assert {f"{info}/licenses/LICENSE", f"{info}/entry_points.txt", f"{info}/METADATA"} <= inside
    assert f"{info}/licenses/src/crowdwise/report/static/THIRD_PARTY_NOTICES.txt" in inside, "S15"
    assert f"{info}/sboms/crowdwise.cdx.json" in inside, "S15, where PEP 770 wants it"
    assert "crowdwise/py.typed" in wanted
    for folder, ending in (("templates", "html"), ("static", "js"), ("static", "css")):
        assert any(re.fullmatch(rf"crowdwise/report/{folder}/.*\.{ending}", name) for name in inside), folder


def test_s15_the_same_sources_give_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    shutil.copytree(PACKAGE, other / "src" / "crowdwise", ignore=shutil.ignore_patterns("__pycache__", "*.nb[ic]"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "crowdwise.cdx.json", ".gitignore"):
        shutil.copy(ROOT / name, other)
    for path in (path for path in other.rglob("*") if path.is_file()):
        path.chmod(0o600)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    done = run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path, cwd=other)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_installed_wheel_is_all_that_is_needed(empty: Path, tmp_path: Path) -> None:
    listed = {path.name.split("-")[0] for path in empty.parent.glob("lib/python*/site-packages/*.dist-info")}
    assert listed >= {"crowdwise", "numpy", "polars"}
    assert not listed & {"torch", "scikit_learn", "pandas", "pytest"}, "extras stay out"
    helped = run(empty / "crowdwise", "--help", cwd=tmp_path)
    assert helped.returncode == 0, helped.stderr
    assert "Start with: crowdwise demo" in helped.stdout
    shown = run(empty / "crowdwise", "demo", "--out", "demo", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"accuracy of crowdwise .*: 8\d", shown.stdout)
    page = (tmp_path / "demo" / "report.html").read_text()
    assert (PACKAGE / "report" / "static" / "page.js").read_text() in page
