"""Locks on folders, which the system releases when the process that holds them ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from pathlib import Path
from typing import IO

from ..errors import FileError
from .files import repeated

PAUSE = 0.02  # seconds between attempts


class Lock:
    """A lock on a folder, held as long as this object lives, or until `release`. The file names the holder."""

    def __init__(self, folder: Path, name: str, wait: float = 0.0) -> None:
        """Take the lock. If another process holds it, try again for `wait` seconds, then raise FileError."""
        self.path, end = folder / name, time.monotonic() + wait
        while True:
            file = self.path.open("a+", encoding="utf-8")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = _holder(file)
                file.close()
                if time.monotonic() >= end:
                    raise FileError(
                        f"{folder} is in use by another run ({holder}). Wait until it has finished, or name another "
                        "folder"
                    ) from None
                time.sleep(PAUSE)
                continue
            except OSError:  # a file system without locks
                break
            if _same_file(file, self.path):
                break
            file.close()
            folder.mkdir(parents=True, exist_ok=True)  # the last holder has just removed it
        self.file = file
        try:
            repeated(lambda: file.truncate(0))
            file.write(f"{os.getpid()} {socket.gethostname()}")
            file.flush()
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        """Give the lock up, and remove its file."""
        with contextlib.suppress(OSError):
            repeated(lambda: self.path.unlink(missing_ok=True))
        with contextlib.suppress(OSError):
            self.file.close()


def _holder(file: IO[str]) -> str:
    file.seek(0)
    number, _, host = file.read().strip().partition(" ")
    return f"process {number or 'unknown'}" + (f" on {host}" if host not in ("", socket.gethostname()) else "")


def _same_file(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
