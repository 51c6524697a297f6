"""The command line: entry points only, no arithmetic. Data go to stdout or files, messages to stderr."""

from __future__ import annotations

import contextlib
import os
import sys


class Terminated(BaseException):
    """Raised on SIGTERM, so that temporary files are removed on the way out."""


def _terminated(number: int, frame: object) -> None:
    raise Terminated


def main() -> None:
    """Run `crowdwise`; exit status 0 success, 1 bad data, 2 usage error, 3 not converged, 130 or 143 interrupted."""
    from .say import error

    _open_streams()
    try:
        status = _run()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the reader of the output has closed the pipe; typer then exits
        status = 0
        _discard_output()
    except OSError as problem:
        if problem.filename is not None:  # not an error of the streams of this process
            raise
        error(f"cannot write to standard output: {problem.strerror or problem}. Write to another place")
        status = 1
        _discard_output()
    sys.exit(status)


def _run() -> int:
    """Run the command, and say on stderr what went wrong; return the exit status."""
    import signal

    import typer

    from ..errors import CrowdwiseError
    from .app import app
    from .say import error

    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also if started by a script in the background
    try:
        status = app(prog_name="crowdwise", standalone_mode=False)
        if status == 130:  # how some versions of typer report Ctrl-C
            raise KeyboardInterrupt
    except CrowdwiseError as problem:
        error(str(problem.args[0]) if problem.args else "")
        status = problem.exit_status
    except typer.TyperException as problem:
        with contextlib.suppress(OSError):  # stderr is full
            show = getattr(problem, "show", None)
            show() if show else error(problem.format_message())
        status = problem.exit_code
    except typer.Exit as leaving:
        status = leaving.exit_code
        if status == 130:  # how typer reports Ctrl-C
            error("interrupted; no incomplete files are left")
    except (typer.Abort, KeyboardInterrupt):
        error("interrupted; no incomplete files are left")
        status = 130
    except Terminated:
        error("terminated; no incomplete files are left")
        status = 143
    return status if isinstance(status, int) else 0


def _open_streams() -> None:
    """Have standard streams, also where the caller closed them, that can show every text."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a label that the terminal cannot show must not end the run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Let what is left of the output go nowhere, so that the interpreter does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
