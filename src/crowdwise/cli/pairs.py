"""Clusters from same/different answers, from the command line: progress, signals, files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..answers import Pairs
from ..engine import Run, Step
from ..errors import Interrupted, ParameterError
from ..io import Features, read_features, read_pairs, read_table
from ..matching import match_clusters
from ..pairing import next_pairs
from ..pairs import PairsModel, pair_model
from ..report import summarise_pairs, write_pairs_report
from ..result import PairsResult
from .run import write_csv
from .say import progress, say_json, table, words
from .signals import stoppable


@dataclass(frozen=True)
class Sorting:
    """What to cluster and where to put it; wrong settings are refused before any file is read."""

    file: str
    reading: dict[str, Any]  # options of `read_pairs`
    features: Path | None
    array: str | None
    unknown: str
    name: str
    settings: dict[str, Any]
    out: Path
    truth: Path | None
    ask: int
    seed: int
    threads: int
    page: bool
    excel_safe: bool

    def __post_init__(self) -> None:
        model = self.model()
        self.run()
        if self.unknown not in ("error", "drop"):
            raise ParameterError(f"--unknown is {self.unknown!r}; it can be error or drop")
        if model.needs_features and self.features is None:
            raise ParameterError(f"{self.name} needs features. Say --features FILE, or take --model pair-mixture")
        if self.ask < 1:
            raise ParameterError(f"--ask is {self.ask}; it must be at least 1")

    def model(self) -> PairsModel:
        return pair_model(self.name, **self.settings)

    def run(self, **more: Any) -> Run:
        return Run(seed=self.seed, threads=self.threads, **more)

    def read(self) -> tuple[Pairs, Features | None]:
        """Answers, and features of the items where a file was given."""
        words_ = [] if self.features is None else ["--features", self.features.name]
        words_ += ["--unknown", "drop"] if self.unknown == "drop" else []
        pairs = read_pairs(self.file, **self.reading).with_options(*words_)
        if self.features is None:
            return pairs, None
        features = read_features(self.features, pairs.items, array=self.array)
        return pairs.on(features.tasks, self.unknown), features  # type: ignore[arg-type]


def sort_out(asked: Sorting, as_json: bool) -> bool:
    """Fit, write everything, say what came of it; whether it converged."""
    model, (pairs, features) = asked.model(), asked.read()
    truth = None if asked.truth is None else read_table(asked.truth, None, None, None).frame
    with stoppable() as stop, progress(f"{model.name} on {pairs.n_answers} answers", _told) as watch:
        try:
            result = model.fit(pairs, features, asked.run(watch=watch, stop=stop))
        except Interrupted as broken:
            broken.exit_status = stop.exit_status
            raise
    pictures = features.x if features is not None and _are_images(features.x.shape) else None
    files = write_pairs(result, asked.out, asked.ask, asked.page, asked.excel_safe, pictures)
    summary = summarise_pairs(result)
    scores = None if truth is None else match_clusters(result, truth)
    if as_json:
        about = asdict(summary) | {"sizes": result.sizes.to_dicts(), "out": str(asked.out)}
        say_json(about if scores is None else about | {"scores": scores})
        return result.converged
    words(*summary.lines())
    shown = result.sizes.head(20)
    table(shown.columns, shown.rows(), 3)
    if scores is not None:
        words("against the truth: " + ", ".join(f"{name} {value:.4g}" for name, value in scores.items()))
    words(f"results are in {asked.out}: {', '.join(sorted(path.name for path in files))}")
    return result.converged


def _are_images(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)


def _told(step: Step) -> str:
    """A step for a person."""
    found = f", {step.flips} clusters" if step.flips else ""
    return f"sweep {step.iteration} of at most {step.max_iter}{found}"


def write_pairs(
    result: PairsResult,
    out: Path,
    ask: int = 100,
    page: bool = True,
    excel_safe: bool = False,
    pictures: Any = None,
) -> list[Path]:
    """clusters.csv, sizes.csv, workers.csv, asked.csv, next.csv, report.html and the saved result."""
    tables = {
        "clusters": result.clusters, "sizes": result.sizes, "workers": result.workers, "asked": result.asked,
        "next": next_pairs(result, ask),
    }  # fmt: skip
    files = [write_csv(rows, out / f"{name}.csv", excel_safe) for name, rows in tables.items()]
    if page:
        files.append(write_pairs_report(result, out / "report.html", pictures=pictures))
    return [*files, result.save(out)]
