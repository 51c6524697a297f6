"""Files as they come: plain, gz, zip, pipes and standard input, with limits on what a compressed file may expand to."""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ..answers.arguments import check_path
from ..errors import FileError, option
from ..forks import refuse_lost_threads
from .formats.base import STDIN_NAME

MAX_COLUMNAR_RATIO = 1000  # the same of Parquet, Arrow and npz files, which hold a value that is repeated once
MAX_RATIO = 100  # expanded size of a compressed file, compared with its own, where the caller sets no limit
FREE_BYTES = 16_000_000  # expanded size up to which the ratio does not matter
MAX_EXPANDED_BYTES = 50_000_000_000  # expanded size at most, where the caller sets no limit
MAX_MEMBERS = 100_000  # files in a zip
COPY_BYTES = 1 << 20
MAX_DISK_SHARE = 0.8  # of the free space, that a copy of a pipe may take
UNREAD = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls). Save it as xlsx or CSV", b"BZh": "compressed by bzip2. Unpack it",
    b"\xfd7zXZ\x00": "compressed by xz. Unpack it", b"\x28\xb5\x2f\xfd": "compressed by zstd. Unpack it",
    b"PK\x05\x06": "an empty zip. Export again",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive. Unpack it", b"Rar!": "a rar archive. Unpack it",
    b"\x04\x22\x4d\x18": "compressed by lz4. Unpack it", b"%PDF": "a PDF. Export a table",
    b"SQLite format 3": "a SQLite database. Export a table", b"\x80\x04": "a pickle, which can run code. Save a table",
    b"\x80\x05": "a pickle, which can run code. Save a table",
    b"\x93NUMPY": "a NumPy array without ids. Save it with ids as npz, or as a table",
}  # fmt: skip
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
# Endings of files in a zip that are read; others, such as images, are left alone.
DATA_ENDINGS = (
    ".csv", ".tsv", ".tab", ".txt", ".json", ".jsonl", ".ndjson", ".manifest", ".xml", ".parquet", ".pq", ".arrow",
)  # fmt: skip
NO_FILE = (None, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)  # of errors for absent or damaged files
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError, ValueError)


def expanded_limit(compressed: int, allowed: int | None, ratio: int = MAX_RATIO) -> int:
    """Return how many bytes a compressed file of this size may expand to; `allowed` is the caller's limit."""
    return allowed or min(max(ratio * compressed, FREE_BYTES), MAX_EXPANDED_BYTES)


def too_expanded(name: str, limit: int, packed: bool = True) -> FileError:
    """Return the error for a compressed file that expands to more than the limit; `packed`: it can be unpacked."""
    return FileError(
        f"{name} expands to more than {limit / 1e6:,.0f} MB, which may be an attack. If it is not, "
        f"{'unpack it, or ' * packed}allow more: {option('max_expanded', '20GB')}"
    )


class Gunzipped(io.RawIOBase):
    """The content of a gzip file, read as a stream; more bytes than the limit raise FileError."""

    def __init__(self, raw: IO[bytes], name: str, compressed: int, allowed: int | None) -> None:
        self.raw, self.file = raw, gzip.GzipFile(fileobj=raw)
        self.name, self.limit, self.total = name, expanded_limit(compressed, allowed), 0

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(COPY_BYTES), b""))
        try:
            data = self.file.read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise not_gzip(self.name, error) from error
        self.total += len(data)
        if self.total > self.limit:
            raise too_expanded(self.name, self.limit)
        return data

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.file.close()
        self.raw.close()
        super().close()


def not_gzip(name: str, error: Exception) -> FileError:
    """Return the error for a damaged gzip file."""
    return FileError(f"{name} is not a complete gzip file: {error}. Write or download it again")


def gunzipped(data: bytes, name: str, allowed: int | None) -> bytes:
    """Return the content of the bytes of a gzip file."""
    return Gunzipped(io.BytesIO(data), name, len(data), allowed).read()


def open_bytes(path: Path, allowed: int | None = None) -> Any:
    """Open a file, which may be a gzip file, as a stream of bytes."""
    try:
        raw = path.open("rb")
        zipped = raw.read(2) == GZIP
        raw.seek(0)
    except OSError as error:
        raise unreadable(path, error) from error
    return Gunzipped(raw, path.name, path.stat().st_size, allowed) if zipped else raw


def unreadable(path: Any, error: OSError) -> FileError:
    """Return the error for a file that cannot be opened or read."""
    return FileError(f"cannot read {path}: {error.strerror or error}. Check the name and the permissions")


@contextlib.contextmanager
def reading(path: Any) -> Iterator[None]:
    """Turn errors of the file system into errors that name the file."""
    try:
        yield
    except OSError as error:
        raise unreadable(error.filename or path, error) from error


def disk_error(error: BaseException) -> OSError | None:
    """Return the error of the file system behind an error, unless it says that a file is absent or damaged."""
    causes = (error, error.__cause__, error.__context__)
    return next((each for each in causes if isinstance(each, OSError) and each.errno not in NO_FILE), None)


def first_bytes(path: Path, count: int, allowed: int | None = None) -> bytes:
    """Return the beginning of the content of a file; nothing if it is absent or damaged, which reading it reports."""
    try:
        with open_bytes(path, allowed) as file:
            return bytes(file.read(count))
    except (FileError, OSError) as error:
        if disk_error(error):
            raise
        return b""


@contextlib.contextmanager
def opened(path: Any, allowed: int | None = None) -> Iterator[Path]:
    """Yield a path on disk that can be read more than once: pipes, standard input and the files of a zip are copied to
    a temporary place."""
    refuse_lost_threads()
    _check_address(str(path))
    check_device(check_path("path", path))
    with reading(path):
        Path(path).exists()
        _check_kind(Path(path))
        zips = zips_of(path)
        if str(path) != "-" and not _is_pipe(Path(path)) and not zips and _wide_json(Path(path)) is None:
            yield Path(path)
            return
        with tempfile.TemporaryDirectory(prefix="crowdwise-") as folder:
            place = Path(path)
            if str(path) == "-":
                place = _copied(sys.stdin.buffer, Path(folder) / STDIN_NAME, allowed)
            elif _is_pipe(place):
                with place.open("rb") as pipe:
                    place = _copied(pipe, Path(folder) / place.name, allowed)
            wide = _wide_json(place)
            if wide is not None:
                place = _in_utf8(place, wide, Path(folder) / "utf-8" / place.absolute().parent.name / place.name)
            zips = zips or ([place] if is_zip(place) else [])
            stems = [each.stem for each in zips]  # the names of workers, where a zip holds the work of one
            named = stems if len({*stems}) == len(stems) else [each.absolute().parent.name for each in zips]
            found = [
                unpacked(each, Path(folder) / "content" / str(n) / name, allowed)
                for n, (each, name) in enumerate(zip(zips, named, strict=True))
            ]
            yield place if not found else found[0] if len(found) == 1 else Path(folder) / "content"


def zips_of(path: Any) -> list[Path]:
    """Return the zips that a path names: the file, or all files of a folder or that match a pattern if all are zips."""
    place = Path(path)
    if place.is_dir():
        files = [file for file in sorted(place.iterdir()) if file.suffix.lower() in (".zip", *DATA_ENDINGS, ".gz")]
    elif any(letter in str(path) for letter in "*?[") and not place.exists():
        base = Path(place.anchor) if place.is_absolute() else Path()
        files = sorted(file for file in base.glob(str(place.relative_to(base))) if file.is_file())
    else:
        files = [place]
    return files if files and all(file.is_file() and is_zip(file) for file in files) else []


def marked(head: bytes) -> str | None:
    """Return UTF-16 or UTF-32 if a file begins with the byte order mark of one."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def _check_address(path: str) -> None:
    """Raise FileError for an address on the internet."""
    if "://" in path[:12]:
        raise FileError(f"{path} is an address, not a file, and nothing is fetched. Download it, and give the file")


def _check_kind(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            check_start(file.read(512), path.name)


def check_start(start: bytes, name: str) -> None:
    """Raise FileError for files that are known and not read: they get their name, and what to do."""
    what = next((name for sign, name in UNREAD.items() if start.startswith(sign)), None)
    if start.startswith(ZIP) and b"opendocument.spreadsheet" in start[:512]:
        what = "an OpenDocument spreadsheet. Save it as xlsx or CSV"
    elif start[257:262] == b"ustar":
        what = "a tar archive. Unpack it"
    elif start.removeprefix(codecs.BOM_UTF8).lstrip().lower().startswith((b"<!doctype html", b"<html")):
        what = "a web page, perhaps one that asks you to log in. Download the table"
    if what is not None:
        raise FileError(f"{name} is {what}, and give that")


def _is_pipe(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def _wide_json(path: Path) -> str | None:
    """Return UTF-16 or UTF-32 for JSON with the byte order mark of one, as some shells write what a program prints."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(64)
    wide = marked(start)
    return wide if wide is not None and start.decode(wide, errors="replace").lstrip()[:1] in ("[", "{") else None


def _in_utf8(path: Path, encoding: str, place: Path) -> Path:
    """Write a copy of a file in another encoding in UTF-8."""
    place.parent.mkdir(parents=True)
    try:
        with path.open(encoding=encoding, newline="") as source, place.open("w", encoding="utf-8", newline="") as file:
            shutil.copyfileobj(source, file, COPY_BYTES)
    except UnicodeDecodeError as error:
        raise FileError(f"{path.name} starts as {encoding.upper()} but is invalid at byte {error.start}") from error
    return place


def check_device(path: Path) -> Path:
    """Return a path. One of a device, which may have no end, raises FileError, unless it is standard input."""
    with contextlib.suppress(OSError):
        about = path.stat()
        device = stat.S_ISCHR(about.st_mode) or stat.S_ISBLK(about.st_mode)
        if device and not os.path.samestat(about, os.fstat(0)):
            raise FileError(f"{path} is a device, not a file. Give a file, a pipe, or - for standard input")
    return path


def pieces(source: IO[bytes], name: str, allowed: int | None, room: float, where: str) -> Iterator[bytes]:
    """Yield what comes through a pipe, which may have no end. More than the limit, or than there is room for at a
    place, raises FileError."""
    limit, total = min(allowed or MAX_EXPANDED_BYTES, room), 0
    while data := source.read(COPY_BYTES):
        total += len(data)
        if total > limit:
            size, advice = f"{limit / 1e6:,.0f} MB", "Write it to a file, and give that"
            if limit == room:
                raise FileError(f"{name} gives more than the {size} that may be used of {where}. {advice}")
            more = f"or allow more: {option('max_expanded', '20GB')}"
            raise FileError(f"{name} gives more than {size} and has not ended. {advice}, {more}")
        yield data


def _copied(source: IO[bytes], place: Path, allowed: int | None) -> Path:
    room = MAX_DISK_SHARE * shutil.disk_usage(place.parent).free
    with place.open("wb") as file:
        for data in pieces(source, place.name, allowed, room, f"the disk of {place.parent.parent}"):
            file.write(data)
    return place


def is_zip(path: Path) -> bool:
    """Return whether a file is a zip of files; an xlsx file is not."""
    try:
        with path.open("rb") as file:
            return file.read(4) == ZIP and not is_workbook(path)
    except OSError as error:
        if disk_error(error):
            raise
        return False


def is_workbook(path: Path) -> bool:
    """Return whether a file is an xlsx file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (OSError, *DAMAGED) as error:
        if failure := disk_error(error):
            raise failure from None
        return False


def member_sizes(path: Path, limit: int) -> None:
    """Raise FileError if the files in a zip expand to more than the limit, or to another size than the zip says."""
    with zipfile.ZipFile(path) as archive:
        left = limit
        for member in archive.infolist():
            if member.compress_type == zipfile.ZIP_STORED and member.file_size == member.compress_size:
                continue
            said, member.file_size = member.file_size, left + 1  # so that reading ends where the data do
            left -= said
            if left < 0:
                raise too_expanded(path.name, limit, packed=False)
            size = 0
            with archive.open(member) as file:
                while data := file.read(COPY_BYTES):
                    size += len(data)
                    if size > said:
                        raise zipfile.BadZipFile(f"{member.filename!r} is larger than the archive says")


def unpacked(path: Path, folder: Path, allowed: int | None) -> Path:
    """Write the files of a zip that may be tables below a folder, and return it, or the file if there is only one."""
    limit = expanded_limit(path.stat().st_size, allowed)
    try:
        with zipfile.ZipFile(path) as archive:
            members = _checked(archive.infolist(), path.name, limit)
            left = limit
            for member in members:
                place = folder / PurePosixPath(member.filename)
                place.parent.mkdir(parents=True, exist_ok=True)
                left -= _extracted(archive, member, place, left, path.name, limit)
    except OSError as error:
        raise FileError(f"{path.name} cannot be unpacked: {error.strerror or error}") from error
    except DAMAGED as error:
        if failure := disk_error(error):
            raise unreadable(path, failure) from error
        raise FileError(f"{path.name} is not a complete zip file: {error}. Write or download it again") from error
    return folder / members[0].filename if len(members) == 1 else folder


def _checked(members: Sequence[zipfile.ZipInfo], name: str, limit: int) -> list[zipfile.ZipInfo]:
    """Return the files of a zip that are read. Names that lead out of it, links and nested archives raise FileError."""
    if len(members) > MAX_MEMBERS:
        raise FileError(
            f"{name} has {len(members)} files; at most {MAX_MEMBERS} are read. Unpack it, and give a folder"
        )
    found: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        inside = PurePosixPath(member.filename)
        if inside.is_absolute() or ".." in inside.parts or "\\" in member.filename or ":" in member.filename[:3]:
            raise FileError(f"{name} holds {member.filename!r}, which leads out of it. It was not unpacked")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise FileError(f"{name} holds the link {member.filename!r}. It was not unpacked")
        if member.flag_bits & 1:
            raise FileError(f"{name} is encrypted. Unpack it with its password, and give the folder")
        if inside.suffix.lower() in (".zip", ".gz", ".xlsx"):
            raise FileError(f"{name} holds the archive {member.filename!r}. Unpack it, and give the files")
        hidden = any(part.startswith((".", "__MACOSX")) for part in inside.parts)
        if hidden or inside.suffix.lower() not in DATA_ENDINGS or member.is_dir():  # which fails without a name
            continue
        if str(inside) in found:
            raise FileError(f"{name} holds {member.filename!r} twice. It was not unpacked")
        found[str(inside)] = member
    if sum(member.file_size for member in found.values()) > limit:
        raise too_expanded(name, limit)
    if not found:
        shown = ", ".join(repr(member.filename) for member in members[:5])
        raise FileError(f"{name} holds no file of answers ({', '.join(DATA_ENDINGS)}); it holds {shown or 'nothing'}")
    return list(found.values())


def _extracted(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path, left: int, name: str, limit: int) -> int:
    """Write one file of a zip, and return its size."""
    total = 0
    with archive.open(member) as source, place.open("wb") as file:
        while data := source.read(COPY_BYTES):
            total += len(data)
            if total > left:
                raise too_expanded(name, limit)
            if total == len(data) and data.startswith(ZIP):
                raise FileError(f"{name} holds the archive {member.filename!r}. Unpack it, and give the files")
            file.write(data)
    return total


class Unchanged:
    """The size and time of files, to notice that one is changed while it is read."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.seen = {file: _mark(file) for file in files}

    def check(self) -> None:
        """Raise FileError if a file has changed."""
        for file, before in self.seen.items():
            if _mark(file) != before:
                raise FileError(f"{file} was changed while it was read. Read it again when it is complete")


def _mark(file: Path) -> tuple[int, int] | None:
    """Return the size and time of a file; None for a pipe, and if there is none."""
    try:
        about = os.stat(file)
    except FileNotFoundError:
        return None
    return (about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else None
