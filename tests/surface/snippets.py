"""Run the Python blocks of a page in the folder where this is started: python snippets.py PAGE. For test_docs.py."""

import doctest
import re
import sys
from pathlib import Path
from types import ModuleType


def blocks(text: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    """The commands in running text that simulate the files of a page: `crowdwise simulate ... --out ...`."""
    found = re.findall(r"`crowdwise (simulate [^`]*--out [^`]*)`", text)
    return [each.split() for each in found]


def run(page: Path) -> int:
    """Run all blocks as one module; the number of examples that print something else than the page shows."""
    module = sys.modules["snippets_of_page"] = ModuleType("snippets_of_page")
    names, failed = module.__dict__, 0
    for block in blocks(page.read_text(encoding="utf-8")):
        if ">>>" not in block:  # what later blocks use
            exec(compile(block, page.name, "exec"), names)
            continue
        example = doctest.DocTestParser().get_doctest(block, names, page.name, None, None)
        failed += doctest.DocTestRunner(verbose=False).run(example, clear_globs=False).failed
        names.update(example.globs)
    return failed


if __name__ == "__main__":
    sys.exit(bool(run(Path(sys.argv[1]))))
