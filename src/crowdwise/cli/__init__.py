"""The command line: entry points only, no arithmetic. Data go to stdout or files, messages to stderr."""

from __future__ import annotations

import sys


class Terminated(BaseException):
    """Raised on SIGTERM, so that temporary files are removed on the way out."""


def _terminated(number: int, frame: object) -> None:
    raise Terminated


def main() -> None:
    """Run `crowdwise`; exit status 0 success, 1 bad data, 2 usage error, 3 not converged, 130 or 143 interrupted."""
    import signal

    import typer

    from ..errors import CrowdwiseError
    from .app import app
    from .say import error

    for stream in (sys.stdout, sys.stderr):  # a label that the terminal cannot show must not end the run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
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
    except BrokenPipeError:  # the reader of the output has closed the pipe
        sys.stderr.close()
        status = 0
    except OSError as problem:  # a failure at a place where no command expects one
        name = problem.filename or "a file"
        error(f"cannot use {name}: {problem.strerror or problem}. Check the disk, the name and the permissions")
        status = 1
    sys.exit(status if isinstance(status, int) else 0)
