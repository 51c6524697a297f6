"""Atomic file writes: write a temporary file in the same folder, sync it, and rename it over the old file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from ..errors import FileError


@contextlib.contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` only if the block succeeds."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        file = temporary.open("wb")
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}. Give another path") from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise FileError(
                f"cannot write {path}: {error.strerror or error}; an existing file was not changed"
            ) from error
        raise


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> Path:
    """Call `write` on a temporary file, which then replaces `path`."""
    with whole(path) as file:
        write(file)
    return path


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files for this path that killed processes left behind."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        pid = left.name.split(".")[-2]
        if pid.isdigit() and not _alive(int(pid)):
            left.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
