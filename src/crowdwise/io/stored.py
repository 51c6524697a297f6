"""Labels on disk: parts as files of arrays that are mapped into memory one at a time, and the executor over them.

While one part is processed, the system already reads the next. Local states, mainly posteriors, are files as well, so
the memory of a fit is that of the workers' parameters and of two parts.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import polars as pl

from ..answers import Intake, Labels, SplitLabels
from ..answers.gold import GoldCounts
from ..answers.parts import Merged, PartIndex, Place
from ..answers.rules import Ids
from ..engine.executor import InTurn
from ..errors import FileError
from ..kernels.layout import Layout, Subset, WorkerRows, spread_out
from ..kernels.rules import Sizes, Whole
from ..result.files import unwritable
from ..result.locks import Lock
from ..result.split import SavedTables
from ..result.stored import conforms, flaw_of
from .opening import disk_error, reading, unreadable

T = TypeVar("T")

MOST_ROWS = 0.5  # share of the rows of a table above which a part has all of them
PARTS = "parts.crowdwise"  # folder of parts within a folder that the user names
TEMPORARY, LOCK = "crowdwise-", "lock"
LOCKS: weakref.WeakValueDictionary[Path, Lock] = weakref.WeakValueDictionary()  # of this process, by folder
GOLD = Whole("T", -1, below="K")  # the rule of known classes
KEPT_COLUMNS = ("weight", "is_check")  # other columns that ratings and votes use; times are not kept


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the file system into errors that name the folder."""
    try:
        yield
    except (OSError, pl.exceptions.ComputeError) as error:
        raise unwritable(folder, error) from error


class _Writer:
    """A file that numpy writes to by calling Python. Its own writing loses errors that come when a file is closed, as
    that of a full disk, and would leave a part of an array."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


def _write_array(path: Path, array: Any) -> None:
    with path.open("wb") as file:
        np.save(_Writer(file), array)


def save_array(path: Path, array: Any) -> None:
    """Write an array to a new file, which then replaces an old one: the old one may still be mapped into memory."""
    with disk_errors(path.parent):
        new = path.with_suffix(".new")
        _write_array(new, array)
        new.replace(path)


class Folder:
    """A folder of parts. Without a path it is temporary, and removed when nothing uses it any more. With a path it is
    locked against other processes, and what a killed process left in it is removed, except for the parts."""

    def __init__(self, path: Path | None = None, parent: Path | None = None) -> None:
        self.shared = False
        with disk_errors(path or parent or Path(tempfile.gettempdir())):
            if path is None:
                path = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=parent))
                weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
            else:
                path.mkdir(parents=True, exist_ok=True)
                path = path.resolve()
                self.shared = path in LOCKS
                self.lock = LOCKS[path] if self.shared else Lock(path, LOCK)
                LOCKS[path] = self.lock
        self.path = path
        if not self.shared:
            for left in path.glob(f"{TEMPORARY}*"):
                shutil.rmtree(left, ignore_errors=True)

    def part(self, number: int) -> Path:
        return self.path / f"part-{number:05d}"

    def clear(self) -> None:
        """Remove everything from the folder."""
        if self.shared:
            raise FileError(
                f"{self.path} has the parts of other answers, which are in use in this process. Name another folder"
            )
        for left in self.path.iterdir():
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            elif left.name != LOCK:
                left.unlink()

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


def write_part(folder: Path, part: Labels) -> None:
    """Write a part with ids of its own."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {**part.layout._asdict(), "gold": part.gold}
        del arrays["n_classes"]
        for name, array in arrays.items():
            _write_array(folder / f"{name}.npy", array)
        part.tasks.to_frame("task").write_ipc(folder / "tasks.arrow")
        part.workers.to_frame("worker").write_ipc(folder / "workers.arrow")
        part.classes.to_frame("label").write_ipc(folder / "classes.arrow")
        kept = part.extras.select(name for name in KEPT_COLUMNS if name in part.extras.columns)
        if kept.width:
            kept.write_ipc(folder / "extras.arrow")
        about = {
            "n_tasks": part.n_tasks, "n_gold": int((part.gold >= 0).sum()), "weighted": part.weighted,
            "digest": digest_of(arrays, folder), "intake": replace(part.intake, extras=tuple(kept.columns)).as_dict(),
        }  # fmt: skip
        (folder / "part.json").write_text(json.dumps(about), encoding="utf-8")


def read_arrow(path: Path) -> pl.DataFrame:
    """Read an Arrow file of a part; a folder may be called like a pattern."""
    return pl.scan_ipc(path, glob=False).collect()


def read_index(folder: Path) -> PartIndex:
    """Read what the whole table needs to know of a part."""
    about = json.loads((folder / "part.json").read_text(encoding="utf-8"))
    return PartIndex(
        workers=read_arrow(folder / "workers.arrow").to_series(),
        classes=read_arrow(folder / "classes.arrow").to_series(),
        row_worker=np.load(folder / "row_worker.npy"),
        row_label=np.load(folder / "row_label.npy"),
        answers=np.diff(np.load(folder / "row_ptr.npy")).astype(np.int64),
        n_tasks=about["n_tasks"],
        n_gold=about["n_gold"],
        weighted=about["weighted"],
        intake=Intake.from_dict(about["intake"]),
    )


def is_sound(folder: Path) -> bool:
    """Whether a part that an earlier process wrote is what was written, and what compiled code may be given."""
    try:
        index, about = read_index(folder), json.loads((folder / "part.json").read_text(encoding="utf-8"))
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in (*Layout._fields[1:], "gold")}
        layout = Layout(len(index.classes), *(arrays[name] for name in Layout._fields[1:]))
        sizes = Sizes(T=index.n_tasks, W=len(index.workers), K=len(index.classes))
        tasks = read_arrow(folder / "tasks.arrow").to_series()
        extras = folder / "extras.arrow"
        heights = {read_arrow(extras).height} if extras.exists() else {layout.n_answers}
        flaws = flaw_of(layout, sizes) or layout.flaw, *(
            rule.shape_flaw(value, sizes) or rule.flaw(value, sizes)
            for rule, value in (
                (GOLD, arrays["gold"]), (Ids("T"), tasks), (Ids("W"), index.workers), (Ids("K"), index.classes),
            )
        )  # fmt: skip
        plain = conforms((index.n_tasks, index.n_gold), tuple[int, ...]) and conforms(index.weighted, bool)
        whole = conforms(index.intake, Intake) and heights == {layout.n_answers}
        return plain and whole and not any(flaws) and about["digest"] == digest_of(arrays, folder)
    except MemoryError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # files may hold anything
        problem = disk_error(error)
        if problem is not None:
            raise unreadable(folder, problem) from error
        return False


def digest_of(arrays: Mapping[str, Any], folder: Path) -> str:
    """Return a digest of the arrays of a part and of its Arrow files: ids and other columns."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays.values():
        digest.update(np.ascontiguousarray(array).data)
    for path in sorted(folder.glob("*.arrow")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Indexes(Sequence[PartIndex]):
    """The indexes of all parts in a folder, read one at a time."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders

    def __len__(self) -> int:
        return len(self.folders)

    def __getitem__(self, number: Any) -> Any:
        return read_index(self.folders[number])


def write_place(folder: Path, place: Place, whole: WorkerRows) -> None:
    """Write where a part stands in the whole table. A part with most rows of the table gets all of them, since finding
    and adding up some of them would take longer."""
    rows = np.asarray(place.subset.rows)
    save_array(folder / "place_label.npy", place.label)
    for name, array in (("rows", rows), ("workers", place.subset.workers)):
        path = folder / f"place_{name}.npy"
        path.unlink(missing_ok=True)
        if len(rows) <= MOST_ROWS * whole.n_rows:
            save_array(path, array)
    if len(rows) > MOST_ROWS * whole.n_rows:
        layout = Layout(whole.n_classes, *(np.load(folder / f"{name}.npy") for name in Layout._fields[1:]))
        for name in ("pair", "row_ptr"):
            save_array(folder / f"whole_{name}.npy", getattr(spread_out(layout, place.subset, whole), name))


@dataclass(frozen=True, init=False, eq=False, repr=False)
class PartLabels(Labels, listed=False):
    """A part of labels on disk; ids of tasks and other columns are read when they are used."""

    folder: Path

    @cached_property  # type: ignore[misc]
    def tasks(self) -> pl.Series:
        return read_arrow(self.folder / "tasks.arrow").to_series()

    @cached_property  # type: ignore[misc]
    def extras(self) -> pl.DataFrame:
        file = self.folder / "extras.arrow"
        return read_arrow(file) if file.exists() else pl.DataFrame()


@dataclass(frozen=True, init=False, eq=False, repr=False)
class StoredLabels(SplitLabels, listed=False):
    """Labels on disk, in parts of consecutive tasks."""

    home: Folder
    n_parts: int

    @classmethod
    def join(
        cls, home: Folder, n_parts: int, gold: GoldCounts | None = None, order: Callable[[str], Any] | None = None
    ) -> StoredLabels:
        """Join parts that were written to a folder; `gold` and `order` as in `Merged.of`."""
        folders = [home.part(number) for number in range(n_parts)]
        merged = Merged.of(Indexes(folders), gold, order)
        for folder in folders:
            write_place(folder, merged.place(read_index(folder)), merged.rows)
        return cls.from_merged(merged, home=home, n_parts=n_parts)

    def identity(self) -> list[Any]:
        abouts = [json.loads((self.home.part(n) / "part.json").read_text("utf-8")) for n in range(self.n_parts)]
        return [self.workers, self.classes, self.rows, "".join(about["digest"] for about in abouts)]

    def part(self, number: int) -> tuple[Labels, Subset]:
        """Map a part into memory, with the classes of the whole table."""
        folder = self.home.part(number)

        def load(name: str) -> Any:
            return np.load(folder / f"{name}.npy", mmap_mode="r")

        label_of = np.append(np.load(folder / "place_label.npy"), -1).astype(np.int32)  # the last: unknown gold, -1
        rows, workers, ids = None, None, self.workers
        if (folder / "place_rows.npy").exists():
            rows, workers = np.load(folder / "place_rows.npy"), np.load(folder / "place_workers.npy")
            ids = self.workers[workers]
            of_rows = (load("row_worker"), label_of[load("row_label")], load("worker_ptr"))
            pair, row_ptr = load("pair"), load("row_ptr")
        else:
            of_rows = (self.rows.row_worker, self.rows.row_label, self.rows.worker_ptr)
            pair, row_ptr = load("whole_pair"), load("whole_row_ptr")
        layout = Layout(self.n_classes, load("task_ptr"), pair, row_ptr, load("task"), *of_rows)
        fields = {"workers": ids, "classes": self.classes, "gold": label_of[load("gold")], "intake": self.intake}
        part = PartLabels.of(layout=layout, folder=folder, **fields)
        return part, Subset(rows, workers, self.rows.n_rows, self.n_workers)

    def parts(self) -> Iterator[tuple[Labels, Subset]]:
        return (self.part(number) for number in range(self.n_parts))

    def executor(self, make: Callable[[Labels, Subset], Any]) -> OnDisk[Any]:
        return OnDisk([_Opener(self, number, make) for number in range(self.n_parts)], self.home.path)

    def task_tables(self, executor: Any, work: Callable[..., dict[str, pl.DataFrame]], *args: Any) -> StoredTables:
        tables = StoredTables(Folder(parent=self.home.path))
        for number, frames in enumerate(executor.each(work, *args)):
            for name, frame in frames.items():
                path = tables.home.path / name
                with disk_errors(path):
                    path.mkdir(exist_ok=True)
                    frame.write_parquet(path / f"part-{number:05d}.parquet")
        return tables


class StoredTables(SavedTables):
    """Tables in a temporary folder, which goes when nothing uses them any more."""

    def __init__(self, home: Folder) -> None:
        super().__init__(home.path)
        self.home = home


@dataclass(frozen=True)
class _Opener:
    """Opens a part as a shard."""

    answers: StoredLabels
    number: int
    make: Callable[[Labels, Subset], Any]

    def __call__(self) -> Any:
        with reading(self.answers.home.part(self.number)):
            return self.make(*self.answers.part(self.number))


class OnDisk(InTurn[T]):
    """Shards on disk. While one is processed, the next is read."""

    def __init__(self, openers: Sequence[Callable[[], T]], folder: Path) -> None:
        self.openers = openers
        self.home = Folder(parent=folder)
        self.kinds: list[Any] = [None] * len(openers)  # class of each local state

    def walk(self) -> Iterator[tuple[int, T, Any]]:
        """Yield every shard with its local state, while the next is read in a thread."""
        with ThreadPoolExecutor(1, thread_name_prefix="crowdwise-read") as reader:
            ahead = reader.submit(self._open, 0)
            for number in range(len(self.openers)):
                shard, local = ahead.result()
                if number + 1 < len(self.openers):
                    ahead = reader.submit(self._open, number + 1)
                yield number, shard, local

    def _open(self, number: int) -> tuple[T, Any]:
        shard = self.openers[number]()
        kind, arrays = self.kinds[number], dict[str, Any]()
        if kind is not None:
            with reading(self.home.part(number)):
                arrays = {path.stem: np.load(path, mmap_mode="r+") for path in self._files(number)}
        for array in (*getattr(shard, "layout", ()), *arrays.values()):
            if isinstance(array, np.memmap) and array.size:
                array._mmap.madvise(mmap.MADV_WILLNEED)  # type: ignore[attr-defined]
        return shard, None if kind is None else kind.from_arrays(arrays)

    def _files(self, number: int) -> list[Path]:
        return sorted(self.home.part(number).glob("*.npy"))

    def keep(self, number: int, local: Any) -> None:
        """Write a local state; arrays that were changed in place are there already."""
        folder = self.home.part(number)
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
        for name, array in local.arrays().items():
            path = folder / f"{name}.npy"
            if not (isinstance(array, np.memmap) and str(array.filename) == str(path)):
                save_array(path, array)
        self.kinds[number] = type(local)
