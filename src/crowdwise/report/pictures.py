"""Pictures from a folder, as data URIs.

Names of images come from the data, and the folder from the person who makes the page. A name leads only to files inside
the folder, and the first bytes of a file decide whether it is a picture, not its name.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from ..errors import FileError
from ..io import Content

ENDINGS = ("", ".png", ".jpg", ".jpeg", ".webp", ".gif")
MAX_CHARS = 20_000_000  # of all pictures in a page
NOT_NAMED = "No file is named"
MISSING = "No file of that name in the folder"
TOO_LARGE = f"Omitted, as the pictures of a page may take {MAX_CHARS // 1_000_000} MB"
NOT_A_PICTURE = "Not a PNG, JPEG, WebP or GIF"


def pictures_of(
    names: Sequence[str | None],
    folder: Path,
    room: int = MAX_CHARS,
    noun: str = "image",
    copies: Sequence[int] | None = None,
) -> tuple[list[str | None], list[str]]:
    """Return the picture of each name as a data URI while there is room, and notes on those without one. `copies` says
    how many times a page holds each (default: once)."""
    if not folder.is_dir():
        raise FileError(f"no folder {folder} to take pictures from. Name the folder that holds the images")
    pictures: list[str | None] = []
    problems: Counter[str] = Counter()
    for name, times in zip(names, copies or [1] * len(names), strict=True):
        found = NOT_NAMED if name is None else _picture(name, folder.resolve(), room // times)
        if found in (NOT_NAMED, MISSING, TOO_LARGE, NOT_A_PICTURE):
            problems[found] += 1
            pictures.append(None)
        else:
            room -= len(found) * times
            pictures.append(found)
    if not problems:
        return pictures, []
    reasons = " ".join(f"{reason}: {count}." for reason, count in problems.items())
    shown = f"{len(names) - problems.total()} of {len(names)} {noun}s"
    return pictures, [f"{shown} are shown with their picture. {reasons}"]


def _picture(name: str, folder: Path, room: int) -> str:
    """Return the data URI, or the reason why there is none."""
    path = _file(name, folder)
    if path is None:
        return MISSING
    try:
        if 4 * path.stat().st_size // 3 > room:
            return TOO_LARGE
        data = path.read_bytes()
    except OSError:
        return MISSING
    kind = _kind(data)
    return NOT_A_PICTURE if kind is None else f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _file(name: str, folder: Path) -> Path | None:
    """Return the file of this name in the folder, with or without an ending. Links must stay in the folder."""
    ways = (PurePosixPath(name), PureWindowsPath(name))
    if not name.strip() or any(way.anchor or ".." in way.parts for way in ways):
        return None
    for ending in ENDINGS:
        try:
            path = (folder / f"{name}{ending}").resolve()
            if path.is_relative_to(folder) and path.is_file():
                return path
        except (OSError, ValueError, RuntimeError):  # too long, a zero byte, a loop of links
            continue
    return None


def _kind(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def content_pictures(content: Content | None, ids: Sequence[object], noun: str) -> tuple[list[str | None], list[str]]:
    """Return the pictures that the content of tasks has, as `pictures_of` does."""
    if content is None or content.folder is None:
        return [None] * len(ids), []
    return pictures_of([content.image(each) for each in ids], content.folder, noun=noun)
