"""What all kinds of answers have in common: read-only fields, filled once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from .intake import Intake


class Filled:
    """A frozen dataclass whose fields come from elsewhere than its constructor."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    intake: Intake

    def _fill(self, **fields: Any) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """From fields that are right already: a saved result, a part, a simulator."""
        new = cls.__new__(cls)
        new._fill(**fields)
        return new

    def with_options(self, *words: str) -> Self:
        """The same answers, read with further options that a command would have to name."""
        return self.of(**{**self._fields(), "intake": replace(self.intake, options=(*self.intake.options, *words))})
