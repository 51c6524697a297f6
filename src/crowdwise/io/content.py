"""What tasks, items and images are about: their text, and files of pictures in one folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import polars as pl

from ..answers.arguments import checked
from ..answers.coding import as_text, to_text
from ..answers.columns import CONTENT_ROLES
from ..answers.frames import to_frame
from ..errors import ColumnError, DataError, FileError, nearest, option
from ..limits import enough_memory
from .opening import reading
from .tables import Reading, read_table, size_of

MAX_TEXT_CHARS = 2_000  # kept of the text of a task


@dataclass(frozen=True)
class Content:
    """Text and pictures by the id of a task, an item or an image, as text."""

    texts: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] | None = None  # file in the folder; None: files are named like the ids
    folder: Path | None = None  # of the pictures
    source: str = "the content"

    @classmethod
    def _from_table(cls, frame: pl.DataFrame, folder: Path | None, source: str) -> Self:
        columns = _columns(frame.columns, folder, source)
        table = frame.select(to_text(frame[name]).alias(role) for role, name in columns.items())
        table = table.filter(pl.col("task").is_not_null()).unique(maintain_order=True)
        twice = table["task"].filter(table["task"].is_duplicated())
        if len(twice):
            raise DataError(f"{source} has different rows for task {twice[0]!r}. Keep one row per task")
        found = {
            role: dict(table.select("task", role).filter(pl.col(role).str.strip_chars() != "").iter_rows())
            for role in ("text", "image")
            if role in columns
        }
        texts = {task: _cut(text) for task, text in found.get("text", {}).items()}
        return cls(texts, found.get("image"), folder, source)

    @property
    def ids(self) -> set[str]:
        """The ids that a table names; none if there is only a folder."""
        return {*self.texts, *(self.images or {})}

    def text(self, id: object) -> str | None:
        """Return the text of a task, or None."""
        return self.texts.get(_id(id))

    def image(self, id: object) -> str | None:
        """Return the name of the file with its picture, or None."""
        return _id(id) if self.images is None else self.images.get(_id(id))

    def check(self, ids: Iterable[object], noun: str) -> None:
        """Refuse a table that names none of these ids."""
        if not self.ids:
            return
        known = [_id(each) for each in ids]
        if self.ids.isdisjoint(known):
            named, wanted = (", ".join(repr(each[:80]) for each in some[:2]) for some in (sorted(self.ids), known))
            raise DataError(
                f"0 of {len(known)} {noun}s are in {self.source}, which has {named}; the answers are about {wanted}. "
                f"Check its column of {noun}s"
            )


@enough_memory("reading content")
@checked
def read_content(
    file: Any = None, pictures: str | Path | None = None, *, max_expanded: str | float | None = None
) -> Content:
    """Read what tasks, items or images are about, for the page: `result.report(path, content=read_content(...))`.

    `file` is a table, or the name of a file with one: a column task (or item), and text, image or both. `image` names a
    file in the folder `pictures`; without it, pictures are files named like the tasks. Ids are compared as text. A
    mapping of tasks to texts does as well. `max_expanded` ("2GB") allows a compressed file to expand to more than 100
    times its size.

    >>> content = read_content({1: "a cat", 2: "a dog"})
    >>> content.text(1)
    'a cat'
    """
    folder = None if pictures is None else Path(pictures)
    with reading(folder):
        lost = folder is not None and not folder.is_dir()
    if lost:
        raise FileError(f"no folder {folder} to take pictures from. Name the folder that holds the images")
    if file is None:
        return Content(folder=folder)
    if isinstance(file, Content):
        return file
    if isinstance(file, (str, Path)):
        table = read_table(file, Reading(max_expanded=size_of("max_expanded", max_expanded)))
        return Content._from_table(table.frame, folder, table.name)
    if isinstance(file, Mapping) and all(isinstance(text, str) for text in file.values()):
        file = {"task": list(file), "text": list(file.values())}
    return Content._from_table(to_frame(file), folder, "the content")


def _columns(columns: list[str], folder: Path | None, source: str) -> dict[str, str]:
    """Return the columns by role: task, and text, image or both."""
    found = dict[str, str]()
    for role in CONTENT_ROLES.names:
        name = CONTENT_ROLES.guess(role, columns, set(found.values()))
        if name is not None:
            found[role] = name
    listed = ", ".join(columns)
    if "task" not in found:
        raise ColumnError(
            f"no column 'task' or 'item' in {source}; columns are {listed}.{nearest('task', columns)} Call the column "
            "of the ids 'task'"
        )
    if len(found) == 1:
        raise ColumnError(
            f"{source} has neither a column 'text' nor a column 'image'; columns are {listed}. Call the text 'text', "
            "or the name of the file with the picture 'image'"
        )
    if "image" in found and folder is None:
        raise ColumnError(
            f"{source} names files of pictures in its column {found['image']!r}, but not the folder that holds them. "
            f"Give the folder: {option('pictures', 'DIR')}"
        )
    return found


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "\u2026"


def _id(value: object) -> str:
    return as_text(value) or ""
