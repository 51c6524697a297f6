"""The command line: entry points only, no arithmetic. Data go to stdout or files, messages to stderr."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Any

NO_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF)  # why standard output cannot be written


class Terminated(BaseException):
    """Raised on SIGTERM, so that temporary files are removed on the way out."""


def _terminated(number: int, frame: object) -> None:
    raise Terminated


def main() -> None:
    """Run `crowdwise`; exit status 0 success, 1 bad data, 2 usage error, 3 not converged, 130 or 143 interrupted."""
    import signal

    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also if started by a script in the background
    _open_streams()
    try:
        status = _run()
        if status == 130:  # how typer reports Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _ended("interrupted; no incomplete files are left", 130)
        exec("")  # an interrupt within an `exec` would end Python by SIGINT, unless another `exec` ends well
    except Terminated:
        status = _ended("terminated; no incomplete files are left", 143)
    except (BrokenPipeError, SystemExit) as problem:
        if not _is_broken_pipe(problem):
            raise
        _discard_output()
        status = 0
    except OSError as problem:  # a failure at a place where no command expects one
        status = _ended(_cause(problem), 1)
        _discard_output()
    sys.exit(status if isinstance(status, int) else 0)


def _run() -> Any:
    """Run the command line and return its exit status."""
    import typer

    from ..errors import CrowdwiseError
    from ..limits import enough_memory
    from .app import app
    from .say import error

    try:
        with enough_memory("the command"):
            return app(prog_name="crowdwise", standalone_mode=False)
    except CrowdwiseError as problem:
        error(str(problem.args[0]) if problem.args else "")
        return problem.exit_status
    except typer.TyperException as problem:
        with contextlib.suppress(OSError):  # stderr is full
            show = getattr(problem, "show", None)
            show() if show else error(problem.format_message())
        return problem.exit_code
    except typer.Exit as leaving:
        return leaving.exit_code
    except typer.Abort:
        return 130


def _ended(why: str, status: int) -> int:
    from .say import error

    error(why)
    return status


def _cause(problem: OSError) -> str:
    """Describe an error of the file system, or of standard output: commands name the files that they cannot write."""
    if problem.filename is None and problem.errno in NO_OUTPUT:
        why = "it is closed" if problem.errno == errno.EBADF else problem.strerror
        return f"cannot write to standard output: {why}. Write to another place"
    name = problem.filename or "a file"
    return f"cannot use {name}: {problem.strerror or problem}. Check the disk, the name and the permissions"


def _is_broken_pipe(problem: BaseException) -> bool:
    """Whether the reader of the output has closed the pipe; typer then exits."""
    cause = problem.__context__ if isinstance(problem, SystemExit) else problem
    return isinstance(cause, OSError) and cause.errno == errno.EPIPE


def _open_streams() -> None:
    """Have standard streams, also where the caller closed them, that can show every text. What is written to a closed
    standard output is an error."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a label that the terminal cannot show must not end the run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let what is left of the output go nowhere, so that the interpreter does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
