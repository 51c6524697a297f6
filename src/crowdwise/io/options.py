"""The options of `read` that apply to exports of annotation platforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ParameterError, option
from .formats.base import Format, Head, Settings
from .judgements import Wanted
from .parts import check_format, format_for
from .personal import PERSONAL, read_key
from .tables import Reading, check_text_options


class ExportOptions(NamedTuple):
    """What the caller says about an export."""

    question: str | None = None
    keep: tuple[str, ...] = ()
    sets: str | None = None
    pseudonymise: str | Path | None = None

    def check(self, how: Reading) -> None:
        """Raise ParameterError for values that are not allowed."""
        check_format(how.format)
        check_text_options(how.delimiter, how.encoding)
        Wanted(keep=self.keep, sets=self.sets or "refuse").check()

    def format_of(self, heads: Sequence[Head], given: str | None, options: Mapping[str, Any]) -> Format | None:
        """Return the format of files that begin like these; None for plain tables, for which options of exports raise
        ParameterError."""
        found = None if options.get("wide") and given is None else format_for(heads, given, options)
        if found is None:
            for name, value in (("question", self.question), ("sets", self.sets), ("keep", {*self.keep} - {PERSONAL})):
                if value:
                    raise ParameterError(
                        f"{option(name)} is for exports of annotation platforms; {heads[0].name} is not one of a known "
                        f"format. Omit it, or give the format with {option('format')}"
                    )
        return found

    def key(self) -> bytes | None:
        """Return the key for digests of workers; None without one."""
        return None if self.pseudonymise is None else read_key(self.pseudonymise)

    def wanted(self, options: Mapping[str, Any]) -> tuple[Wanted, dict[str, Any]]:
        """Return what is wanted of an export, and the options that are left for the class of answers."""
        left = dict(options)
        question = self.question or left.pop("label", None)
        left.pop("label", None)
        settings = Settings(
            left.pop("task", left.pop("image", None)), left.pop("worker", None), left.get("anonymous") == "each"
        )
        left.pop("wide", None)
        left.setdefault("duplicates", None)
        wanted = Wanted(question, self.keep, self.sets or "refuse", self.key(), settings)
        return wanted, {name: value for name, value in left.items() if value is not None}
