"""The outputs of a run, which appear in their folder together or not at all.

A run writes its files into a hidden folder inside the folder of the results, and then renames the hidden folder: from
that moment the new outputs count. They are put in place one by one, and outputs of an earlier run that have no
successor are removed. A process that is killed before the moment leaves the old outputs; one that is killed after it
leaves a complete set, which the next process that reads or writes in the folder puts in place (`settle`).

`crowdwise.json` lists the files of the last run with their checksums, so that what reads several of them can see that
they belong together (`together`), and the names of other files that Crowdwise wrote. A file that it does not name is
never replaced or removed, unless an older version wrote it, which had no such list.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from ..errors import FileError
from .files import HIDDEN, TEMPORARY, digest_of, remove_leftover, repeated, sync, unwritable
from .locks import Lock

READY = f"{HIDDEN}ready"  # the folder of outputs that count, and are being put in place
LOCK = f"{HIDDEN}lock"
LISTED = "crowdwise.json"
OWN = ".crowdwise"  # ending of the names of files that only Crowdwise writes
WITHOUT_LIST = ({"result.crowdwise", "workers.csv"}, {"stream.crowdwise", "workers.csv"})  # what older versions wrote
JOURNAL = ".removed"  # in the hidden folder: names of files to remove from the folder
MADE_BY, HEAD = b'<meta name="generator" content="Crowdwise', 4096  # in pages, and bytes in which it is
WAIT = 10.0  # seconds to wait for another process that is putting its outputs in place


class Outputs:
    """The outputs of a run in a folder, which is locked for other runs within the block.

    Write them to `new`, and then call `publish`. What was not published when the block ends is removed.
    """

    def __init__(self, folder: Path, wait: float = 0.0) -> None:
        self.folder, self.wait = folder, wait

    def __enter__(self) -> Self:
        with _named(self.folder):
            self.made = [each for each in (self.folder, *self.folder.parents) if not each.exists()]
            self.folder.mkdir(parents=True, exist_ok=True)
            self.lock = Lock(self.folder, LOCK, self.wait)
        try:
            with _named(self.folder):
                _clear(self.folder)
        except BaseException:
            self.lock.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            with _named(self.folder):
                repeated(lambda: _discard(self._staged))
            if (self.folder / READY).exists():  # a signal came while outputs were put in place
                _put_in_place(self.folder)
        finally:
            self.lock.release()
        for folder in self.made:  # of which nothing has come
            with contextlib.suppress(OSError):
                folder.rmdir()

    @property
    def last(self) -> set[str]:
        """Names of the outputs of the last run."""
        with _named(self.folder):
            return {name.partition("/")[0] for name in _listed(self.folder)}

    def refuse_others(self, names: Iterable[str], inputs: Iterable[Path | None] = ()) -> None:
        """Raise FileError if a file of one of these names would be lost: Crowdwise did not write it, or it is one of
        the inputs of the run."""
        for name in sorted(names):
            path = self.folder / name
            if _among(path, inputs):
                raise FileError(f"{path} was read, and the outputs would replace it. Name another folder")
            if os.path.lexists(path) and not self._own(name):
                raise FileError(
                    f"{path} is not an output of a run in this folder, and the outputs would replace it. Move it away, "
                    "or name another folder"
                )

    def _own(self, name: str) -> bool:
        """Whether a file of this name in the folder was written by Crowdwise."""
        if name == LISTED or name.endswith(OWN):
            return True
        with _named(self.folder):
            if name.endswith(".html") and _is_page(self.folder / name):
                return True
            if (self.folder / LISTED).exists():
                return name in self.last or name in _others(self.folder)
        return any(all((self.folder / each).exists() for each in names) for names in WITHOUT_LIST)

    @property
    def _staged(self) -> Path:
        return self.folder / f"{HIDDEN}{os.getpid()}"

    @property
    def new(self) -> Path:
        """The folder to write outputs to."""
        with _named(self.folder):
            self._staged.mkdir(exist_ok=True)
        return self._staged

    def publish(
        self,
        *,
        without: Iterable[str] = (),
        listed: bool = True,
        unlisted: Collection[str] = (),
        inputs: Iterable[Path | None] = (),
    ) -> list[Path]:
        """Put the files in `new` in place, and return their paths.

        Files of the names in `without` are removed, and so are the outputs of the last run that this one did not write.
        Outputs that are not `listed` leave other files alone; they and those of the names in `unlisted` will be left
        alone by the next run. A run that would replace a file which Crowdwise did not write, or replace or remove one
        of its `inputs`, is refused.
        """
        staged, folder = self.new, self.folder
        with _named(folder):
            names = sorted(each.name for each in staged.iterdir())
            blocked = next((name for name in names if _blocks(folder / name, staged / name)), None)
            if blocked is not None:
                raise FileError(f"{folder / blocked} is in the way of an output. Move it, or name another folder")
            names = [name for name in names if name != LISTED]
            files, others = _listed(folder), _others(folder) | {*(unlisted if listed else names)}
            removed = {name for name in without if self._own(name)}
            if listed:
                removed |= self.last
                found = {each.relative_to(staged).as_posix(): each for each in _files(staged)}
                files = {name: digest_of(each) for name, each in found.items() if name not in {*unlisted, LISTED}}
            removed -= {*names, LISTED}
            self.refuse_others([*names, *removed], inputs)
            _write_json(staged / LISTED, {"files": files, "others": sorted(others - {*files} - removed)})
            _write_json(staged / JOURNAL, sorted(removed))
            for each in (*staged.rglob("*"), staged):
                sync(each)
            os.replace(staged, folder / READY)  # from now on, the new outputs count
        _put_in_place(folder)
        return [folder / name for name in names]


def settle(folder: Path) -> None:
    """Finish what a killed process left in a folder: put its outputs in place if they are complete, and remove them if
    they are not."""
    try:
        hidden = {each.name for each in os.scandir(folder) if each.name.startswith(HIDDEN)}
    except OSError:
        return
    for name in hidden:
        if name.endswith(TEMPORARY):
            remove_leftover(folder / name)
    ready = READY in hidden
    if not ready and LOCK not in hidden:
        return
    try:
        lock = Lock(folder, LOCK, WAIT if ready else 0.0)
    except (FileError, OSError) as error:
        if not (folder / READY).exists():  # a run that has not ended, or a folder that cannot be written
            return
        raise FileError(
            f"{folder} has the outputs of a run that was killed while they were put in place, and that cannot be "
            f"finished now: {error}"
        ) from error
    try:
        with _named(folder):
            _clear(folder)
    finally:
        lock.release()


def together(folder: Path, *names: str) -> bool:
    """Return whether files were written by the last run in the folder, and not changed since."""
    files = _listed(folder)
    return all((folder / name).is_file() and files.get(name) == digest_of(folder / name) for name in names)


def _clear(folder: Path) -> None:
    """Finish what other processes left; the lock says that none of them is at work."""
    if (folder / READY).exists():
        _put_in_place(folder)
    for left in folder.glob(f"{HIDDEN}*"):
        if left.name.endswith(TEMPORARY):  # of a process that writes one file, without the lock
            remove_leftover(left)
        elif left.name != LOCK:
            _discard(left)


def _put_in_place(folder: Path) -> None:
    """Rename outputs into their places, and remove what has no successor. Any step may have been done before."""
    ready = folder / READY

    def finish() -> None:
        outputs = sorted(each for each in ready.iterdir() if each.name not in (LISTED, JOURNAL))
        for each in outputs:
            os.replace(each, folder / each.name)
        removed = _read_json(ready / JOURNAL, [])
        for name in filter(_is_name, removed if isinstance(removed, list) else []):
            _discard(folder / name)
        if (ready / LISTED).exists():
            os.replace(ready / LISTED, folder / LISTED)
        (ready / JOURNAL).unlink(missing_ok=True)
        ready.rmdir()

    with _named(folder, "; the outputs are complete, and the next command that uses the folder puts them in place"):
        repeated(finish)
    with contextlib.suppress(OSError):  # the outputs are there, and their content is on the disk
        sync(folder)


def _discard(path: Path) -> None:
    """Remove a file, or a folder with everything in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _blocks(old: Path, new: Path) -> bool:
    """Whether an output cannot replace what has its name: folders are never replaced."""
    return old.is_dir() or (old.exists() and new.is_dir())


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def _listed(folder: Path) -> dict[str, str]:
    """Return the files of the last run, with their checksums; nothing if the list is not one that a run wrote."""
    found = _read_json(folder / LISTED, {})
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict):
        return {}
    return {name: digest for name, digest in files.items() if all(map(_is_name, name.split("/")))}


def _is_page(path: Path) -> bool:
    """Whether a file is a page that Crowdwise made, perhaps by itself: pages say so at their beginning."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return MADE_BY in file.read(HEAD)


def _others(folder: Path) -> set[str]:
    """Return the names of files that Crowdwise wrote, besides those of the last run."""
    found = _read_json(folder / LISTED, {})
    others = found.get("others") if isinstance(found, dict) else None
    return {*filter(_is_name, others)} if isinstance(others, list) else set()


def _is_name(name: object) -> bool:
    """Whether a name that was read from a file leads to a place in the folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and not {"/", "\0"} & {*name}


def _among(path: Path, inputs: Iterable[Path | None]) -> bool:
    return path.exists() and any(each is not None and each.exists() and path.samefile(each) for each in inputs)


def _read_json(path: Path, otherwise: Any) -> Any:
    """Return what a file holds; if there is none, or it is not JSON, something else. A file that is there and cannot
    be read raises OSError: without it, outputs of an earlier run would stay."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return otherwise


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _named(folder: Path, more: str = "") -> Iterator[None]:
    """Turn errors of the file system into errors that name the folder."""
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error, more) from error
