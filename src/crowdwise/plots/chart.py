"""Chart: a drawn chart that shows itself in notebooks and saves to a file."""

from __future__ import annotations

import base64
import io
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..answers.arguments import is_whole
from ..errors import ParameterError
from ..result.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
DPI = 200  # pixels per inch of a file
NOTEBOOK_DPI = 110
MAX_DPI = 1200


@dataclass(frozen=True, eq=False, repr=False)
class Chart:
    """A chart of a result.

    `figure` is a matplotlib figure to change as you like; `data` are the numbers that are drawn, as a frame;
    `description` says in words what the chart shows, and goes into files and notebooks for readers who cannot see it.

    >>> import crowdwise as cw
    >>> result = cw.aggregate(cw.simulate.crowd(tasks=50, workers=8, seed=1).answers)
    >>> result.plot("workers")
    Chart('Skill of 8 workers, best first': 8 rows of worker, answers, skill, low, high, flags)
    """

    title: str
    description: str
    data: pl.DataFrame
    figure: Figure

    def __repr__(self) -> str:
        return f"Chart({self.title!r}: {self.data.height} rows of {', '.join(self.data.columns)})"

    def save(self, path: str | Path, *, dpi: int = DPI) -> Path:
        """Write the chart to a file, whole or not at all, as SVG, PNG or PDF by its ending; `dpi` is the resolution of
        a PNG. The same chart gives the same bytes."""
        path = Path(path)
        ending = path.suffix.lower().removeprefix(".")
        if ending not in FORMATS:
            found = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
            raise ParameterError(f"a chart is saved as .svg, .png or .pdf; {path.name!r} {found}")
        if not is_whole(dpi) or not 10 <= dpi <= MAX_DPI:
            raise ParameterError(f"dpi is {dpi!r}; wanted is a whole number from 10 to {MAX_DPI}")
        data = self._bytes(ending, dpi)
        return write_whole(path, lambda file: file.write(data))

    def _bytes(self, ending: str, dpi: int) -> bytes:
        from .style import house_style

        about: dict[str, dict[str, Any]] = {
            "svg": {"Title": self.title, "Description": self.description, "Date": None},
            "png": {"Title": self.title, "Description": self.description},
            "pdf": {"Title": self.title, "Subject": self.description, "CreationDate": None},
        }
        file = io.BytesIO()
        with house_style():
            self.figure.savefig(file, format=ending, dpi=dpi, metadata=about[ending])
        return file.getvalue()

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        """What a notebook shows: SVG, or PNG where it takes no SVG, with the description as alternative text."""
        made = {
            "text/plain": lambda: repr(self),
            "image/svg+xml": lambda: self._bytes("svg", NOTEBOOK_DPI).decode(),
            "image/png": lambda: base64.b64encode(self._bytes("png", NOTEBOOK_DPI)).decode(),
        }
        wanted = [kind for kind in made if (not include or kind in include) and kind not in (exclude or ())]
        alt = {kind: {"alt": self.description} for kind in wanted if kind.startswith("image/")}
        return {kind: made[kind]() for kind in wanted}, alt
