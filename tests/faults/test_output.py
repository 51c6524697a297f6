"""Standard streams that are full, closed or read in part: a sentence and exit status 1, or silence; no traceback."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = f"{shlex.quote(sys.executable)} -m crowdwise"
FULL = "error: cannot write to standard output: No space left on device. Write to another place\n"

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")


def shell(line: str, folder: Path) -> tuple[int, str]:
    """Run a line in which `crowdwise` is the command; return its exit status and stderr."""
    (folder / "answers.csv").write_text("task,worker,label\nt1,ann,x\nt1,bob,x\nt2,ann,y\nt2,bob,x\n")
    words = ["bash", "-o", "pipefail", "-c", line.replace("crowdwise", COMMAND, 1)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "words", ["--version", "workers answers.csv", "aggregate answers.csv", "inspect answers.csv --json"]
)
def test_r4_a_full_standard_output_is_a_sentence(words: str, tmp_path: Path) -> None:
    status, said = shell(f"crowdwise {words} > /dev/full", tmp_path)
    assert status == 1
    assert said.endswith(FULL)
    assert "Traceback" not in said


@pytest.mark.parametrize("words", ["models", "aggregate answers.csv"])
def test_r4_a_reader_that_stops_early_is_no_error(words: str, tmp_path: Path) -> None:
    status, said = shell(f"crowdwise {words} | true", tmp_path)
    assert status == 0
    assert not {"Traceback", "BrokenPipe", "Exception"} & {*said.replace(":", " ").split()}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("crowdwise aggregate answers.csv --out out --no-page >&-", 0), ("crowdwise workers answers.csv 2>&-", 0),
        ("crowdwise workers answers.csv 2> /dev/full", 0), ("crowdwise workers none.csv 2> /dev/full", 1),
        ("crowdwise workers --none 2> /dev/full", 2), ("crowdwise inspect - <&-", 1),
    ],
)  # fmt: skip
def test_r4_closed_and_full_streams_do_not_change_the_exit_status(line: str, status: int, tmp_path: Path) -> None:
    found, said = shell(line, tmp_path)
    assert found == status
    assert "Traceback" not in said


@pytest.mark.parametrize("words", ["--version", "--help", "workers answers.csv", "aggregate answers.csv", "models"])
def test_r4_a_closed_standard_output_is_a_sentence(words: str, tmp_path: Path) -> None:
    status, said = shell(f"crowdwise {words} >&-", tmp_path)
    assert status == 1
    assert said.endswith("error: cannot write to standard output: it is closed. Write to another place\n")
    assert "Traceback" not in said


EXITS = """
import sys, crowdwise.cli.app
from crowdwise.cli import main
def leaving(**_):
    print("some output")
    sys.exit({})
crowdwise.cli.app.app = leaving
main()
"""


@pytest.mark.parametrize(("left", "status", "said"), [("5", 5, ""), ("'why'", 1, "why\n"), ("", 0, "")])
def test_r4_only_a_broken_pipe_is_taken_for_one(left: str, status: int, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", EXITS.format(left)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (status, "some output\n", said)


def test_r4_messages_do_not_go_to_standard_output_when_stderr_is_closed(tmp_path: Path) -> None:
    shell("crowdwise aggregate answers.csv 2>&- > out.csv", tmp_path)
    assert (tmp_path / "out.csv").read_text().startswith("task,label,probability")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
