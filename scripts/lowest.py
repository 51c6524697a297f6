"""Print the lowest versions that pyproject.toml allows, as constraints for pip: `jinja2>=3.1` becomes `jinja2==3.1`.

They are those of the package and of its extras `learn`, `deep` and `pandas`. Run by `make lowest`; nothing is kept in a
file, which could fall behind pyproject.toml.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("learn", "deep", "pandas")


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
    return pins


if __name__ == "__main__":
    print("\n".join(lowest(Path(__file__).resolve().parents[1] / "pyproject.toml")))
