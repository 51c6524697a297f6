"""The command line: entry points only, no arithmetic. Data go to stdout or files, messages to stderr."""

from __future__ import annotations

import sys
from typing import Any


class Terminated(BaseException):
    """Raised on SIGTERM, so that temporary files are removed on the way out."""


def _terminated(number: int, frame: object) -> None:
    raise Terminated


def main() -> None:
    """Run `crowdwise`; exit status 0 success, 1 bad data, 2 usage error, 3 not converged, 130 or 143 interrupted."""
    import signal

    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also if started by a script in the background
    for stream in (sys.stdout, sys.stderr):  # a label that the terminal cannot show must not end the run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run()
        if status == 130:  # how typer reports Ctrl-C
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        status = _stopped("interrupted", 130)
        exec("")  # an interrupt within an `exec` would end Python by SIGINT, unless another `exec` ends well
    except Terminated:
        status = _stopped("terminated", 143)
    except BrokenPipeError:  # the reader of the output has closed the pipe
        sys.stderr.close()
        status = 0
    sys.exit(status if isinstance(status, int) else 0)


def _stopped(how: str, status: int) -> int:
    from .say import error

    error(f"{how}; no incomplete files are left")
    return status


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
        show = getattr(problem, "show", None)
        show() if show else error(problem.format_message())
        return problem.exit_code
    except typer.Exit as leaving:
        return leaving.exit_code
    except typer.Abort:
        return 130
