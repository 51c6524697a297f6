"""The built script and styles of the page are what its sources give, from pinned packages, on any machine (S15)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE, STATIC = ROOT / "page", ROOT / "src" / "crowdwise" / "report" / "static"
NOTICES = STATIC / "THIRD_PARTY_NOTICES.txt"


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=300)


def locked() -> dict[str, dict[str, object]]:
    """What the lock says of each package."""
    packages = json.loads((PAGE / "package-lock.json").read_text())["packages"]
    return {name: each for name, each in packages.items() if name}


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of page/ beside the packages that are installed, all of which are those of the lock."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.fail(f"there is no {tool}; run `make test`, which installs it")
    if not (PAGE / "node_modules").is_dir():
        pytest.fail("the packages are not installed; run `make test`, which does `npm ci` in page/")
    installed = json.loads((PAGE / "node_modules" / ".package-lock.json").read_text())["packages"]
    assert installed == {name: each for name, each in locked().items() if name in installed}
    assert [name for name, each in locked().items() if name not in installed and not each.get("optional")] == []
    folder = tmp_path_factory.mktemp("bundle") / "page"
    shutil.copytree(PAGE, folder, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(PAGE / "node_modules")
    return folder


def test_s15_the_kept_bundle_is_what_the_sources_give(page: Path, tmp_path: Path) -> None:
    done = run("node", "build.mjs", tmp_path / "out", cwd=page)
    assert done.returncode == 0, done.stdout + done.stderr
    built = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    kept = {file.name: file.read_bytes() for file in STATIC.iterdir()}
    assert built.keys() == kept.keys() == {"page.js", "page.css", "plot.css", NOTICES.name}
    assert [name for name in kept if built[name] != kept[name]] == [], "run `make page`"


def one_line(text: str) -> str:
    return " ".join(text.split())


def noticed() -> dict[str, str]:
    """The packages of the notices, with their versions."""
    return dict(re.findall(r"^(\S+) (\S+) \([^)]+\): Copyright", NOTICES.read_text(), re.MULTILINE))


def test_s15_every_package_in_the_script_has_its_notice(page: Path, tmp_path: Path) -> None:
    options = ("--bundle", "--format=iife", "--minify", f"--metafile={tmp_path / 'meta.json'}")
    done = run("node_modules/.bin/esbuild", "src/main.ts", *options, f"--outfile={tmp_path / 'page.js'}", cwd=page)
    assert done.returncode == 0, done.stderr
    (output,) = json.loads((tmp_path / "meta.json").read_text())["outputs"].values()
    kept = {
        re.sub(r".*node_modules/((?:@[^/]+/)?[^/]+)/.*", r"\1", file) for file in output["inputs"] if "_mod" in file
    }
    assert {"@observablehq/plot", "d3-array", "d3-scale"} <= kept
    assert kept | {"internmap"} == noticed().keys(), "d3-array has internmap inside its own file"
    assert noticed() == {name: locked()[f"node_modules/{name}"]["version"] for name in noticed()}


def test_s15_the_notices_are_the_licences_word_for_word() -> None:
    notices, licences = one_line(NOTICES.read_text()), {}
    for name in noticed():
        licences[name] = (PAGE / "node_modules" / name / "LICENSE").read_text()
        owner, text = licences[name].strip().split("\n", 1)
        assert one_line(owner) in notices, name
        assert one_line(text) in notices, name
    assert "GeographicLib" in licences["d3-geo"]
    assert "ISC license, Copyright 2018 Vladimir Agafonkin." in notices, "the notice of quickselect, inside d3-array"
    assert len(NOTICES.read_text()) < 8000, "a text for every page: a licence stands there once for all its packages"


def test_nothing_of_the_machine_is_in_the_bundle() -> None:
    for file in STATIC.iterdir():
        text = file.read_text()
        assert str(ROOT) not in text
        assert "sourceMappingURL" not in text


def test_types_hold_and_a_wrong_one_is_noticed(page: Path) -> None:
    (page / "src" / "wrong.ts").write_text("export const wrong: number = 'text';\n")
    try:
        done = run("npm", "run", "check", cwd=page)
    finally:
        (page / "src" / "wrong.ts").unlink()
    assert done.returncode != 0
    assert re.findall(r"^(\S+)\(\d+,\d+\): error", done.stdout, re.MULTILINE) == ["src/wrong.ts"], done.stdout
    assert done.stdout.count("error") == 1, done.stdout


def test_s15_versions_are_exact_and_locked() -> None:
    package = json.loads((PAGE / "package.json").read_text())
    wanted = package["devDependencies"]
    assert [version for version in wanted.values() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    assert not {"dependencies", "optionalDependencies", "peerDependencies"} & set(package)
    assert {name: locked()[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_s15_the_lock_names_no_host_and_pins_every_package() -> None:
    assert "://" not in (PAGE / "package-lock.json").read_text()
    assert [name for name, each in locked().items() if not str(each["integrity"]).startswith("sha512-")] == []


def test_s15_no_package_runs_a_script_when_it_is_installed_but_the_builder() -> None:
    assert [name for name, each in locked().items() if each.get("hasInstallScript")] == ["node_modules/esbuild"]
