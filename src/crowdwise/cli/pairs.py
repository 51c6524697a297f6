"""Clusters from same/different answers, from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..acquisition import next_pairs
from ..answers import Pairs
from ..answers.reading import given
from ..engine.extras import require
from ..errors import ParameterError, for_shell
from ..io import Features, read_features, read_pairs, read_table
from ..metrics import match_clusters
from ..report import summarise
from .run import Job
from .say import say_json, table, words


@dataclass(frozen=True, kw_only=True)
class PairsJob(Job):
    """Which pairs to cluster, and with which features."""

    kind = "pairs"

    file: str
    reading: dict[str, Any]  # options of `read_pairs`
    features: Path | None
    array: str | None
    unknown: str
    truth: Path | None
    ask: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unknown not in ("error", "drop"):
            raise ParameterError(f"--unknown is {self.unknown!r}; it can be error or drop")
        if self.model().features == "required" and self.features is None:
            raise ParameterError(f"{self.name} needs features. Say --features FILE, or take --model pair-mixture")
        if self.ask < 1:
            raise ParameterError(f"--ask is {self.ask}; it must be at least 1")
        if self.truth is not None:
            require(("learn",), "--truth")

    def read(self) -> tuple[Pairs, Features | None]:
        """Answers, and features of the items where a file was given."""
        features = None if self.features is None else self.features.name
        recorded = given({"unknown": "error"}, features=features, array=self.array, unknown=self.unknown)
        pairs = read_pairs(self.file, **self.reading).with_options(**recorded)
        if self.features is None:
            return pairs, None
        found = read_features(self.features, pairs.items, array=self.array)
        return pairs.on(found.tasks, self.unknown), found  # type: ignore[arg-type]


def run_pairs(job: PairsJob, as_json: bool) -> bool:
    """Fit, write everything, say what came of it; whether it converged."""
    model, (pairs, features) = job.model(), job.read()
    truth = None if job.truth is None else read_table(job.truth, None, None, None).frame
    inputs = (pairs,) if features is None else (pairs, features.x)
    result = job.fit(lambda run: model.fit(pairs, features=features, run=run), f"{pairs.n_answers} answers", *inputs)
    pictures = features.x if features is not None and _are_images(features.x.shape) else None
    files = job.write(result, {"next": next_pairs(result, job.ask)}, pictures=pictures)
    summary = summarise(result, for_shell)
    scores = None if truth is None else match_clusters(result, truth)
    if as_json:
        about = summary.as_dict() | {"sizes": result.sizes.to_dicts(), "out": str(job.out)}
        say_json(about if scores is None else about | {"scores": scores})
        return bool(result.converged)
    words(*summary.lines())
    shown = result.sizes.head(20)
    table(shown.columns, shown.rows(), 3)
    if scores is not None:
        words("compared with the truth: " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items()))
    words(f"results are in {job.out}: {', '.join(sorted(path.name for path in files))}")
    return bool(result.converged)


def _are_images(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)
