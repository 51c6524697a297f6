"""Local states of shards on executors.

Spark has no mutable state. A local state follows from its shard and from the updates so far, so an executor keeps it as
a file of its machine only to save time: where the file is missing (the executor was lost, or the shard moved), the
updates are run again. Files are written under another name and renamed, so that two attempts of one task do no harm:
both write the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..kernels.layout import narrow


class Update(NamedTuple):
    """A function that has changed the local states of all shards, with its arguments as broadcast variables."""

    version: int
    work: Callable[..., tuple[Any, Any]]
    args: Any
    each: Any  # one more argument for each shard, or None

    def __call__(self, number: int, shard: Any, local: Any) -> tuple[Any, Any]:
        own = () if self.each is None else (self.each.value[number],)
        return self.work(shard, local, *narrow(self.args.value, shard.subset), *own)


class States:
    """The files of one fit on this machine."""

    def __init__(self, fit: str) -> None:
        self.folder = _home() / f"crowdwise-{fit}"

    def rebuild(self, updates: Sequence[Update], number: int, shard: Any) -> Any:
        """Return the local state after these updates: the latest one on file, and the updates since then."""
        local, since = None, 0
        for at in reversed(range(len(updates))):
            local = self._read(number, updates[at].version)
            if local is not None:
                since = at + 1
                break
        for update in updates[since:]:
            local, _ = update(number, shard, local)
        if since < len(updates):
            self.write(number, updates[-1].version, local)
        return local

    def write(self, number: int, version: int, local: Any) -> None:
        """Keep a state. It is not an error if the disk is full: the updates can be run again."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            new = self.folder / f"{uuid.uuid4().hex}.new"
            try:
                with new.open("wb") as file:
                    pickle.dump(local, file, protocol=5)
                new.replace(self._file(number, version))
            finally:
                new.unlink(missing_ok=True)

    def forget(self, number: int, before: int) -> None:
        """Remove the states of a shard that are older than a version."""
        for file in self.folder.glob(f"{number}-*.state"):
            if int(file.stem.split("-")[1]) < before:
                file.unlink(missing_ok=True)

    def _read(self, number: int, version: int) -> Any:
        with contextlib.suppress(OSError), self._file(number, version).open("rb") as file:
            return pickle.load(file)
        return None

    def _file(self, number: int, version: int) -> Path:
        return self.folder / f"{number}-{version}.state"


def remove(fits: Iterable[str]) -> None:
    """Remove the files of fits that have ended."""
    for fit in fits:
        shutil.rmtree(_home() / f"crowdwise-{fit}", ignore_errors=True)


def _home() -> Path:
    """The folder in which Spark keeps its own files on this machine, which it removes when the session ends."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
