"""The pictures under the points: found in one folder by the names of images, and kept inside the page.

Names come from strangers, the folder from whoever makes the page. So a name leads to files of that folder and to no
others, whatever it holds; and what a file is, its first bytes say, not its name.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from ..errors import FileError

ENDINGS = ("", ".png", ".jpg", ".jpeg", ".webp", ".gif")
ROOM = 20_000_000  # characters of all pictures in a page
MISSING = "No file of that name in the folder"
LARGE = f"Left out, as pictures may take {ROOM // 1_000_000} MB in all"
STRANGE = "No PNG, JPEG, WebP or GIF"


def pictures_of(images: Sequence[str], folder: Path, room: int = ROOM) -> tuple[list[str | None], list[str]]:
    """The picture of each image as a data URI, first come first served, and what is to be said of those without."""
    if not folder.is_dir():
        raise FileError(f"no folder {folder} to take pictures from. Name the folder that holds the images")
    pictures: list[str | None] = []
    why: Counter[str] = Counter()
    for image in images:
        told = _picture(image, folder.resolve(), room)
        if told in (MISSING, LARGE, STRANGE):
            why[told] += 1
            pictures.append(None)
        else:
            room -= len(told)
            pictures.append(told)
    if not why:
        return pictures, []
    said = " ".join(f"{reason}: {count}." for reason, count in why.items())
    return pictures, [f"{len(images) - why.total()} of {len(images)} images lie over their picture. {said}"]


def _picture(image: str, folder: Path, room: int) -> str:
    """The data URI, or why there is none."""
    path = _file(image, folder)
    if path is None:
        return MISSING
    try:
        if 4 * path.stat().st_size // 3 > room:
            return LARGE
        data = path.read_bytes()
    except OSError:
        return MISSING
    kind = _kind(data)
    return STRANGE if kind is None else f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _file(name: str, folder: Path) -> Path | None:
    """A file of the folder by this name, with or without an ending; links that leave the folder lead nowhere."""
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
