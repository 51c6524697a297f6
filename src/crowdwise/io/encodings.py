"""Encodings of text files: UTF-8, what a byte order mark says, or what the caller says. Nothing else is guessed."""

from __future__ import annotations

import codecs
import contextlib

from ..errors import FileError, ParameterError, option
from .opening import GZIP, check_start, marked

UTF8_NOTE = "UTF-8 with a byte order mark"
HEAD_BYTES = 2000  # of the first line, in which a NUL is a sign of UTF-16 or UTF-32


def check_encoding(encoding: object) -> None:
    """Raise ParameterError for an encoding that is not one of text."""
    try:
        if not isinstance(encoding, str):
            raise LookupError
        with contextlib.suppress(UnicodeDecodeError):  # one byte may be too few
            b"a".decode(encoding)
        codecs.getincrementaldecoder(encoding)
    except (LookupError, ValueError):  # ValueError: a NUL in the name, or a codec that decodes nothing
        raise ParameterError(
            f"encoding is {encoding!r}, which Python does not know as an encoding of text; try utf-8 or latin-1"
        ) from None


def mark_note(encoding: str) -> str:
    """Return the note about an encoding that was recognised."""
    return f"{encoding.upper()}, recognised by its byte order mark"


def decode(data: bytes, name: str, encoding: str | None) -> tuple[bytes, tuple[str, ...]]:
    """Return the data in UTF-8, and notes. Other encodings are given, or recognised by a byte order mark."""
    wide = marked(data) if encoding is None else None
    if encoding is not None or wide is not None:
        try:
            text = data.decode(encoding or wide or "").removeprefix("\ufeff").encode()
        except UnicodeError as error:
            raise undecodable(error, name, encoding, wide) from error
        return text, (f"encoding {encoding}" if wide is None else mark_note(wide),)
    if data.startswith(codecs.BOM_UTF8):
        return data[3:], (UTF8_NOTE,)
    if data.startswith(GZIP):
        raise FileError(f"{name} holds another compressed file. Unpack it once, and give that")
    check_start(data[:512], name)
    _check_nul(data[: data.find(b"\n") + 1 or len(data)][:HEAD_BYTES], name)
    return data, ()


def _check_nul(head: bytes, name: str) -> None:
    """Raise FileError if the header has a NUL, which no header has; labels may."""
    if 0 not in head:
        return
    at = head.index(0)
    wide = "utf-32" if b"\0\0\0" in head[:4] else "utf-16"
    raise FileError(
        f"{name} looks like {wide.upper()} without a byte order mark (byte 0 at {at}). Convert the file to "
        f"UTF-8, or use {option('encoding', f'{wide}-le' if at % 2 else f'{wide}-be')}"
    )


def undecodable(
    error: UnicodeError, name: str, encoding: str | None, wide: str | None = None, before: int = 0
) -> FileError:
    """Return the error for a file that is not in the encoding given, or recognised by its mark (`wide`); `before` is
    the number of bytes before the data."""
    if not isinstance(error, UnicodeDecodeError):
        return FileError(f"{name} cannot be read as {encoding or wide}: {error}. Give another encoding")
    at = error.start + before
    if encoding is None:
        return FileError(f"{name} starts as {(wide or 'utf-16').upper()} but is invalid at byte {at}")
    byte = error.object[error.start]
    return FileError(f"{name} cannot be read as {encoding}: byte 0x{byte:02X} at offset {at}: {error.reason}")


def not_utf8(data: bytes, name: str, skipped: int = 0, before: int = 0) -> FileError | None:
    """Return an error for the first byte that is not UTF-8, or None; `skipped` bytes were removed before the data, and
    `before` lines are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1 + before
        return FileError(
            f"{name}:{line}: byte 0x{data[error.start]:02X} at offset {error.start + skipped} is not UTF-8. "
            f"Use {option('encoding', 'latin-1')} (or the right encoding), or convert the file"
        )
    return None
