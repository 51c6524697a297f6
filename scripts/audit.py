"""Ask for known vulnerabilities in what is locked: Python packages by pip-audit, packages of the page by npm audit.

Run by `make audit`. Exit status: 0 if none is known, 1 if at least one is, 3 if none was found but not everything was
checked. Both programs need the network. pip-audit succeeds even if the index knows nothing of a package, so what it
skipped is counted here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PIP_AUDIT = (
    "--requirement",
    "constraints.txt",
    "--no-deps",
    "--disable-pip",
    "--progress-spinner=off",
    "--format=json",
)
NPM_AUDIT = ("npm", "audit", "--json", "--package-lock-only")
NOT_CHECKED = 3
MAX_NAMES = 5

Run = Callable[[tuple[str, ...], Path], subprocess.CompletedProcess[str]]


@dataclass(frozen=True)
class Audit:
    """What one of the programs answered."""

    of: str
    checked: int
    found: list[str]
    unchecked: str = ""  # what could not be checked, and why


def run(words: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder."""
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def answered(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON that a program wrote; empty if it wrote none."""
    try:
        values = json.loads(done.stdout)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def reason(text: str) -> str:
    """The last line of an error that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it gave no reason"


def python(run: Run = run) -> Audit:
    """Ask pip-audit about every package of constraints.txt."""
    of = "Python packages of constraints.txt"
    done = run((str(Path(sys.executable).with_name("pip-audit")), *PIP_AUDIT), ROOT)
    packages = answered(done).get("dependencies")
    if packages is None:
        return Audit(of, 0, [], f"pip-audit had no data: {reason(done.stderr)}")
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    found = [f"{each['name']} {each['version']}: {one['id']}" for each in packages for one in each.get("vulns", ())]
    more = ", ..." if len(skipped) > MAX_NAMES else ""
    why = (
        f"the index has no data on {len(skipped)} packages ({', '.join(skipped[:MAX_NAMES])}{more})" if skipped else ""
    )
    return Audit(of, len(packages) - len(skipped), found, why)


def page(run: Run = run) -> Audit:
    """Ask npm audit about every package of page/package-lock.json."""
    of = "packages of page/package-lock.json"
    done = run(NPM_AUDIT, ROOT / "page")
    answer = answered(done)
    if "vulnerabilities" not in answer:
        return Audit(of, 0, [], f"npm audit had no data: {answer.get('message') or reason(done.stderr)}")
    found = [f"{name}: {each['severity']}" for name, each in answer["vulnerabilities"].items()]
    return Audit(of, answer["metadata"]["dependencies"]["total"], found)


def report(audits: list[Audit]) -> tuple[int, list[str]]:
    """The exit status, and what to print."""
    lines = [f"{each.of}: {each.checked} checked, {len(each.found)} known vulnerabilities" for each in audits]
    lines += [f"  VULNERABLE {text}" for each in audits for text in each.found]
    lines += [f"  NOT CHECKED: {each.unchecked}" for each in audits if each.unchecked]
    if any(each.found for each in audits):
        return 1, [*lines, "Update what is listed: `make lock UPGRADE=--upgrade`, or `npm update` in page/."]
    if any(each.unchecked for each in audits):
        return NOT_CHECKED, [
            *lines,
            "This is no finding, and no all-clear: run `make audit` where the network is open.",
        ]
    return 0, lines


if __name__ == "__main__":
    status, lines = report([python(), page()])
    print("\n".join(lines))
    raise SystemExit(status)
