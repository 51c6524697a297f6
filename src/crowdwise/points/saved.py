"""What a file has of a stream of clicks, apart from its images, and whether it can be true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from ..answers.rules import Ids
from .asking import HitRates
from .held import Image, Sums, is_definite
from .starts import Start
from .summary import HIT_RATE_GRID

SUMS_ROUNDING = 1e-3  # by which sums over images, which are added and subtracted, may be off
SAVED_STREAM = {
    "axes": tuple[str, ...],
    "clicks": int,
    "workers": Annotated[pl.Series, Ids("W")],
    "sums": Sums,
    "start": Start | None,
    "start_clicks": int | None,
    "rates": HitRates | None,
}


def contradiction(values: Mapping[str, Any], images: Mapping[Any, Image]) -> str:
    """What contradicts itself in a stream that was read from a file, or ""."""
    sums, start, rates = values["sums"], values["start"], values["rates"]
    if len({*values["axes"], "image", "worker"}) != len(sums.precision) + 2:
        return f"it has the coordinates {values['axes']}"
    empty = Sums(np.zeros_like(sums.counts), np.zeros_like(sums.precision), 0)
    total = empty.plus(image.learned for image in images.values())
    alike = all(np.allclose(np.asarray(a), np.asarray(b), atol=SUMS_ROUNDING) for a, b in zip(total, sums, strict=True))
    if not alike or values["clicks"] != sum(image.jobs.n_clicks for image in images.values()):
        return "its sums are not those of its images"
    if start is None:
        return "" if not values["clicks"] else "it has clicks, but no start of searches"
    if rates is not None and (rates.weight.shape != HIT_RATE_GRID or not np.isclose(rates.weight.sum(), 1)):
        return "its hit rates are none"
    definite = is_definite(start.shape) and isinstance(values["start_clicks"], int)
    return "" if definite else "its start of searches is none"
