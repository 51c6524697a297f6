"""Write crowdwise.cdx.json, the software bill of materials (SBOM) that the wheel carries, as CycloneDX 1.6.

Run by `make sbom`. The Python packages are those that Crowdwise and its extras for users need, with their licences, as
cyclonedx-py finds them in the environment. The packages of the report page are those of its notices, with the versions
and hashes of page/package-lock.json. Nothing of the day or the machine goes in: the same lock gives the same bytes.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
SBOM = ROOT / "crowdwise.cdx.json"
NOTICES = ROOT / "src" / "crowdwise" / "report" / "static" / "THIRD_PARTY_NOTICES.txt"
EXTRAS = ("learn", "deep", "pandas", "plot", "spark")  # those for users
KEPT = ("type", "name", "version", "licenses")

Component = dict[str, Any]


def environment() -> dict[str, Component]:
    """The packages of this environment by name, with their licences."""
    tool = (Path(sys.executable).with_name("cyclonedx-py"), "environment", "--output-reproducible", sys.executable)
    found = json.loads(subprocess.run(list(map(str, tool)), check=True, capture_output=True, text=True).stdout)
    return {canonicalize_name(each["name"]): each for each in found["components"]}


def declared(project: dict[str, Any], extras: Iterable[str]) -> list[Requirement]:
    """What pyproject.toml asks for, for the core and for these extras."""
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [each for each in map(Requirement, lines) if each.name != project["name"]]


def needed(name: str, extras: Iterable[str]) -> list[Requirement]:
    """What an installed package asks for here. cyclonedx-py would add whatever its unused extras ask for."""
    lines = map(Requirement, importlib.metadata.requires(name) or ())
    asked = ["", *extras]
    return [each for each in lines if not each.marker or any(each.marker.evaluate({"extra": one}) for one in asked)]


def closure(wanted: Iterable[Requirement]) -> dict[str, list[str]]:
    """Everything that these requirements need, and what each of it needs."""
    every: dict[str, list[str]] = {}
    left = list(wanted)
    while left:
        asked = left.pop()
        others = needed(asked.name, asked.extras)
        every[canonicalize_name(asked.name)] = sorted({canonicalize_name(each.name) for each in others})
        left += [each for each in others if each.extras or canonicalize_name(each.name) not in every]
    return every


def described(found: Component, scope: str) -> Component:
    """A Python package. The version has no mark of its build, such as +cpu, which the lock has not either."""
    version = found["version"].split("+")[0]
    ref = f"pkg:pypi/{canonicalize_name(found['name'])}@{version}"
    kept = {key: found[key] for key in KEPT if key in found}
    return {**kept, "version": version, "bom-ref": ref, "purl": ref, "scope": scope}


def bundled() -> Iterator[Component]:
    """The npm packages in the script of the report page, which is in the wheel."""
    locked = json.loads((ROOT / "page" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    for name in re.findall(r"^(\S+) \S+ \([^)]+\): Copyright", NOTICES.read_text(encoding="utf-8"), re.MULTILINE):
        entry = locked[f"node_modules/{name}"]
        ref = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
        digest = base64.b64decode(entry["integrity"].removeprefix("sha512-")).hex()
        yield {
            **{"type": "library", "name": name, "version": entry["version"], "bom-ref": ref, "purl": ref},
            **{"scope": "required", "hashes": [{"alg": "SHA-512", "content": digest}]},
            **{"licenses": [{"license": {"id": entry["license"], "acknowledgement": "declared"}}]},
            **{"properties": [{"name": "crowdwise:in-wheel", "value": "true"}]},
        }


def bill(version: str) -> dict[str, Any]:
    """The whole document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted, found = declared(project, EXTRAS), environment()
    core, needs = closure(declared(project, ())), closure(wanted)
    packages = {name: described(found[name], "required" if name in core else "optional") for name in sorted(needs)}
    direct = sorted({canonicalize_name(each.name) for each in wanted})
    refs, page = {name: each["bom-ref"] for name, each in packages.items()}, list(bundled())
    root = f"pkg:pypi/{project['name']}@{version}"
    own = {"type": "library", "name": project["name"], "version": version, "bom-ref": root, "purl": root}
    own["licenses"] = [{"license": {"id": project["license"], "acknowledgement": "declared"}}]
    edges = [(root, [*(refs[name] for name in direct), *(each["bom-ref"] for each in page)])]
    edges += [(refs[name], [refs[other] for other in needs[name]]) for name in packages]
    return {
        **{
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
        },
        **{"version": 1, "metadata": {"component": own}, "components": [*packages.values(), *page]},
        "dependencies": [{"ref": ref, "dependsOn": others} if others else {"ref": ref} for ref, others in edges],
    }


def main() -> None:
    version = re.search(
        r'__version__ = "(.+)"', (ROOT / "src" / "crowdwise" / "__init__.py").read_text(encoding="utf-8")
    )
    assert version is not None
    text = json.dumps(bill(version[1]), indent=1, ensure_ascii=False) + "\n"
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"not a valid CycloneDX document: {problem}")
    SBOM.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
