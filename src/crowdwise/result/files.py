"""Atomic file writes: write a temporary file in the same folder, sync it, and rename it over the old file."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from ..errors import FileError

HIDDEN = ".crowdwise-"  # beginning of the names of temporary files, and of hidden folders, see `outputs`
TEMPORARY = ".tmp"  # ending of the names of temporary files
ATTEMPTS = 3  # at steps that may be repeated


def digest_of(path: Path) -> str:
    """Return the SHA-256 of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` only if the block succeeds."""
    try:
        if not path.name:
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{HIDDEN}*{TEMPORARY}"):
            remove_leftover(left)
        temporary = path.with_name(f"{HIDDEN}{path.name}.{os.getpid()}{TEMPORARY}")
        file = temporary.open("wb")
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise unwritable(path, error, "; an existing file was not changed") from error
        raise
    with contextlib.suppress(OSError):  # the new file is there, and its content is on the disk
        sync(path.parent)


def unwritable(path: Path, error: Exception, more: str = "") -> FileError:
    """Return the error for a file or folder that cannot be written; `more` says what was kept."""
    why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    return FileError(
        f"cannot write {shown(path)}: {why}{more}. Check that you may write there and that the disk is not full, or "
        "name another place"
    )


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Call `write` on a temporary file, which then replaces `path`."""
    with whole(path) as file:
        write(file)
    return path


def sync(path: Path) -> None:
    """Have a file or the entries of a folder written to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def shown(path: Path) -> Path:
    """Return the place that a file in a hidden folder is meant for."""
    return Path(*(part for part in path.parts if not part.startswith(HIDDEN)))


def remove_leftover(path: Path) -> None:
    """Remove a temporary file, `.crowdwise-NAME.PROCESS.tmp`, if its process was killed."""
    number = path.name.removesuffix(TEMPORARY).rpartition(".")[2]
    if number.isdecimal() and not _alive(int(number)):
        with contextlib.suppress(OSError):  # a folder that cannot be written
            path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def repeated(step: Callable[[], object]) -> None:
    """Do what may be done again; an error that passes does not count."""
    for attempt in range(ATTEMPTS):
        try:
            step()
            return
        except OSError:
            if attempt == ATTEMPTS - 1:
                raise
