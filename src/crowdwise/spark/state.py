"""Files of executors: local states of shards, and the shards themselves.

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
    """A function that has changed the local states of all shards; its arguments are broadcast variables or files."""

    version: int
    work: Callable[..., tuple[Any, Any]]
    args: Any
    each: Any  # one more argument for each shard, or None

    def __call__(self, number: int, shard: Any, local: Any) -> tuple[Any, Any]:
        own = () if self.each is None else (self.each.value[number],)
        return self.work(shard, local, *narrow(self.args.value, shard.subset), *own)

    def broadcast(self, context: Any) -> Update:
        """Return this update with broadcast variables, which last as long as any frame uses them."""
        args, each = (None if one is None else context.broadcast(one.value) for one in (self.args, self.each))
        return self._replace(args=args, each=each)

    def destroy(self) -> None:
        for shared in (self.args, self.each):
            if shared is not None:
                shared.destroy()


class Shared(NamedTuple):
    """A value in a file that driver and executors see: quicker than a broadcast variable if they are one machine."""

    path: str

    @classmethod
    def of(cls, value: Any, folder: str) -> Shared:
        path = Path(folder) / uuid.uuid4().hex
        with path.open("wb") as file:
            pickle.dump(value, file, protocol=5)
        return cls(str(path))

    @property
    def value(self) -> Any:
        return pickle.loads(Path(self.path).read_bytes())

    def destroy(self) -> None:
        Path(self.path).unlink(missing_ok=True)


class Files:
    """Files of this machine under one key. They only save time: it is not an error if they are lost, or if the disk is
    full."""

    def __init__(self, key: str) -> None:
        self.folder = _home() / f"crowdwise-{key}"

    def write(self, name: str, data: Any) -> None:
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            new = self.folder / f"{uuid.uuid4().hex}.new"
            try:
                new.write_bytes(data)
                new.replace(self.folder / name)
            finally:
                new.unlink(missing_ok=True)

    def read(self, name: str) -> bytes | None:
        with contextlib.suppress(OSError):
            return (self.folder / name).read_bytes()
        return None


class States(Files):
    """The local states of one fit on this machine."""

    def rebuild(self, updates: Sequence[Update], number: int, shard: Any) -> Any:
        """Return the local state after these updates: the latest one on file, and the updates since then."""
        local, since = None, 0
        for at in reversed(range(len(updates))):
            held = self.read(f"{number}-{updates[at].version}")
            if held is not None:
                local, since = pickle.loads(held), at + 1
                break
        for update in updates[since:]:
            local, _ = update(number, shard, local)
        if since < len(updates):
            self.keep(number, updates[-1].version, local)
        return local

    def keep(self, number: int, version: int, local: Any) -> None:
        """Keep a state of a shard."""
        self.write(f"{number}-{version}", pickle.dumps(local, protocol=5))

    def forget(self, number: int, before: int) -> None:
        """Remove the states of a shard that are older than a version."""
        for file in self.folder.glob(f"{number}-*"):
            if int(file.name.split("-")[1]) < before:
                file.unlink(missing_ok=True)


def remove(keys: Iterable[str]) -> None:
    """Remove files that are not needed any more."""
    for key in keys:
        shutil.rmtree(Files(key).folder, ignore_errors=True)


def _home() -> Path:
    """The folder in which Spark keeps its own files on this machine, which it removes when the session ends."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
