"""Write constraints.txt: one version of every package of the extras `dev` and `bench`, for Python 3.11 to 3.13.

Run by `make lock`. Versions that constraints.txt has are kept where they can be; `--upgrade` takes the newest of all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "constraints.txt"
HEADER = """\
# Every package of the extras dev and bench, for Python 3.11 to 3.13. Written by `make lock`; do not edit.
# An unpinned torch pulls gigabytes of CUDA libraries: keep the CPU build. Its version is set in pyproject.toml.
# The lines cuda, nvidia and triton matter only where pip finds no CPU build.
"""


def main() -> None:
    compile_ = [
        *(Path(sys.executable).with_name("uv"), "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
        *("--extra", "dev", "--extra", "bench", "--no-header", "--no-annotate", "--output-file", LOCK, *sys.argv[1:]),
        "pyproject.toml",
    ]
    subprocess.run(list(map(str, compile_)), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    LOCK.write_text(HEADER + LOCK.read_text(encoding="utf-8"), encoding="utf-8")


if __name__ == "__main__":
    main()
