"""Personal data: columns of addresses are left out, and ids of workers are replaced by digests, with a key if one is
given."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ..answers.coding import to_text
from ..answers.columns import Roles
from ..errors import FileError, ParameterError, option

PERSONAL = "personal"  # of `keep`: addresses as they are

# Names of columns, in lower case and without punctuation, that hold addresses of people.
PERSONAL_COLUMNS = (
    "ip", "userip", "ipaddress", "workerip", "remoteaddr", "clientip", "email", "emailaddress", "mail", "useremail",
    "workeremail", "annotatoremail",
)  # fmt: skip
EMAIL = r"^[^@\s/]+@[^@\s/]+\.[^@\s/.]+$"
KEY_BYTES, MIN_KEY_BYTES, DIGEST_BYTES = 32, 16, 6
PREFIX = "worker-"


def is_personal(column: str) -> bool:
    """Return whether a column holds IP or e-mail addresses, by its name.

    >>> is_personal("user_ip"), is_personal("_ip"), is_personal("E-mail"), is_personal("script")
    (True, True, True, False)
    """
    return re.sub(r"[\W_]+", "", column.casefold()) in PERSONAL_COLUMNS


def is_address(text: str) -> bool:
    """Return whether a text is an e-mail address."""
    return re.match(EMAIL, text) is not None


def personal_columns(columns: Sequence[str], used: Sequence[str]) -> list[str]:
    """Return the columns of addresses that have no other use."""
    return [name for name in columns if is_personal(name) and name not in used]


def protected(
    frame: pl.DataFrame, roles: Roles | None, options: Mapping[str, Any], keep: Sequence[str], key: bytes | None
) -> tuple[pl.DataFrame, list[str]]:
    """Return a table without columns of addresses, with digests in place of the workers if there is a key, and notes
    about that."""
    if roles is None or not roles.complete(frame.columns, options):
        if key is not None:
            raise ParameterError(
                f"{option('pseudonymise')} needs a column of workers; columns are {', '.join(frame.columns[:12])}. "
                f"Name it with {option('worker', 'COLUMN')}"
            )
        return frame, []
    worker = options.get("worker") or roles.guess("worker", frame.columns)
    dropped = [] if PERSONAL in keep else personal_columns(frame.columns, [*map(str, options.values()), str(worker)])
    notes = []
    if dropped:
        shown = ", ".join(map(repr, dropped))
        notes.append(f"left out columns of personal data: {shown} (kept if the option keep has {PERSONAL!r})")
    if key is not None and worker is not None:
        frame = frame.with_columns(pseudonyms(to_text(frame[worker]), key).alias(worker))
    return frame.drop(dropped), notes


def read_key(path: str | Path) -> bytes:
    """Return the secret key in a file. If there is no file, one is made with a random key, for its owner only."""
    place = Path(path)
    try:
        if not place.exists():
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(KEY_BYTES) + "\n")
        key = place.read_bytes().strip()
    except OSError as error:
        raise FileError(
            f"the key {place} cannot be read or made: {error.strerror or error}. Name another file"
        ) from error
    if len(key) < MIN_KEY_BYTES:
        raise FileError(
            f"the key in {place} has {len(key)} bytes; at least {MIN_KEY_BYTES} are needed. Name a file that is not "
            f"there, and it is made: {option('pseudonymise', 'key.txt')}"
        )
    return key


def pseudonyms(workers: pl.Series, key: bytes | None) -> pl.Series:
    """Return ids of workers with digests in their place: of all with a key, else of those that are e-mail addresses.

    The same id and key give the same digest in every file. Without a key, who guesses an address can check it.
    """
    known = workers.drop_nulls().unique()
    known = known if key is not None else known.filter(known.str.contains(EMAIL))
    if not len(known):
        return workers
    new = [PREFIX + _digest(worker, key or b"") for worker in known.to_list()]
    return workers.replace(known, pl.Series(new, dtype=pl.String))


def _digest(worker: str, key: bytes) -> str:
    hashed = hashlib.blake2b(worker.encode(), digest_size=DIGEST_BYTES, key=hashlib.sha256(key).digest())
    return hashed.hexdigest()
