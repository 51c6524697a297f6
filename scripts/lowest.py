"""Print the lowest versions that pyproject.toml allows, as constraints for pip: `jinja2>=3.1` becomes `jinja2==3.1`.

They are those of the package and of its extras for users. `lowest.py tools` prints what the tests need besides, in the
versions of constraints.txt. Run by `make lowest`; nothing is kept in a file, which could fall behind pyproject.toml.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("learn", "deep", "pandas", "plot", "spark")
TOOLS = (
    *("crowd-kit", "duckdb", "hypothesis", "krippendorff", "metric-learn", "packaging", "playwright", "psutil"),
    *("pytest", "pytest-xdist", "pyyaml", "statsmodels"),
)


def lowest(pyproject: Path) -> list[str]:
    """`name==version` for every `name>=version`; a requirement without a lower bound is an error."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(each for extra in EXTRAS for each in project["optional-dependencies"][extra])]
    pins = []
    for requirement in wanted:
        if requirement.startswith(f"{project['name']}["):  # an extra of our own
            continue
        found = re.match(r"([\w.-]+)>=([\d.]+)", requirement)
        if found is None:
            raise SystemExit(f"{requirement!r} in pyproject.toml has no lower bound: write it as name>=version")
        pins.append(f"{found[1]}=={found[2]}")
    return list(dict.fromkeys(pins))


def tools(lock: Path) -> list[str]:
    """The lines of the lock for the tools of the tests."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0] in TOOLS]


if __name__ == "__main__":
    asked = sys.argv[1:] == ["tools"]
    print("\n".join(tools(ROOT / "constraints.txt") if asked else lowest(ROOT / "pyproject.toml")))
