"""What a long study has measured so far: kept in a file, so that a run that was broken off goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import FileError, option
from ..result.files import write_whole

Figures = dict[str, float | None]


class Ledger:
    """Figures by what they are of. With a file, it is written anew, whole, after every entry."""

    def __init__(self, path: Path | None, watch: Callable[[str], None]) -> None:
        self.path, self.watch = path, watch
        self.known: dict[str, Figures] = {}
        if path is not None and path.exists():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
                if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
                    raise ValueError("no table of tables")
            except (ValueError, OSError) as error:
                raise FileError(
                    f"{path} is not what a study wrote ({error}). Remove it to measure anew, or give another "
                    f"{option('out')}"
                ) from error
            self.known = found
            watch(f"{len(self.known)} measurements were there already: {path}")

    def of(self, key: str, measure: Callable[..., Figures], *given: Any, **settings: Any) -> Figures:
        """What is known of `key`; measured, with what is given, where nothing is."""
        if key not in self.known:
            self.watch(key)
            self.known[key] = measure(*given, **settings)
            if self.path is not None:
                text = json.dumps(self.known, indent=1)
                write_whole(self.path, lambda file: file.write(text.encode()))
        return self.known[key]

    def runs(self, key: str, seeds: Iterable[int], measure: Callable[..., Figures], *given: Any) -> list[Figures]:
        """The same by each seed, which is given last."""
        return [self.of(f"{key} seed {seed}", measure, *given, seed) for seed in seeds]


def mean(entries: list[Figures], name: str) -> float | None:
    """Of one figure over entries, those left out that do not have it."""
    there = [value for each in entries if (value := each[name]) is not None]
    return sum(there) / len(there) if there else None
