"""Accuracy, log-loss and calibration error of every model on real crowds, one row per data set.

python bench/quality.py [--sets a,b] [--models x,y] [--peers] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl

import crowdwise as cw

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = (
    "labelme",
    "music_genre",
    "face_sentiment",
    "cifar10s",
    "snow_rte",
    "snow_temporal",
    "snow_wsd",
    "bluebirds",
    "ducks",
    "dogs",
    "trec",
    "product_er",
    "sentiment_polarity",
    "sentiment_polarity_amt",
    "weather_cf",
    "weather_amt",
    "zencrowd_us",
    "zencrowd_in",
)
TIE_TOLERANCE = 1e-6  # classes whose probabilities are this close to the highest are tied
MIN_PROBABILITY = 1e-5  # probabilities are clipped to this in the log-loss
BINS = 10
MAX_GLAD_CELLS = 10_000  # answers x classes; beyond it crowd-kit's GLAD takes minutes

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.floating[Any]]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]


class Crowd(NamedTuple):
    """One data set: the answers that models see, and the truth that only the score uses."""

    name: str
    answers: cw.Labels
    gold: Ints  # (T,) true class, or -1


class Score(NamedTuple):
    accuracy: float  # %
    log_loss: float
    calibration: float  # %, expected calibration error


class Fitted(NamedTuple):
    posterior: Floats  # (T, K)
    converged: bool | None  # None: not reported


class Row(NamedTuple):
    """One method on one set."""

    crowd: str
    method: str
    score: Score
    converged: bool | None
    seconds: float


Method: TypeAlias = Callable[[cw.Labels], Fitted | None]  # None: too slow on this set


def load(name: str) -> Crowd:
    answers = pl.read_parquet(DATA / name / "answers.parquet").select("task", "worker", "label")
    truth = pl.read_parquet(DATA / name / "truth.parquet").select("task", "label")
    known = cw.Labels(answers, gold=truth, duplicates="each")
    return Crowd(name, known.with_gold(None), known.gold)


def score(posterior: Floats, gold: Ints) -> Score:
    """Scores over tasks of known truth; a tie between c classes counts 1/c."""
    known = gold >= 0
    Z, truth = posterior[known].astype(np.float64), gold[known]
    top = Z.max(1)
    tied = top[:, None] - Z <= TIE_TOLERANCE
    rows = np.arange(len(truth))
    correct = tied[rows, truth] / tied.sum(1)
    log_loss = -np.log(np.clip(Z[rows, truth], MIN_PROBABILITY, 1)).mean()
    return Score(100 * float(correct.mean()), float(log_loss), 100 * calibration_error(top, correct))


def calibration_error(confidence: Floats, correct: Floats) -> float:
    """Expected calibration error: mean gap between confidence and accuracy over bins, weighted by their tasks."""
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, confidence - correct, minlength=BINS)
    return float(np.abs(gaps).sum() / len(correct))


def ours(name: str) -> Method:
    def fit(answers: cw.Labels) -> Fitted:
        result = cw.aggregate(answers, name)
        return Fitted(result.posterior, result.converged)

    return fit


def peers() -> dict[str, Method]:
    """crowd-kit's models. Its GLAD is skipped on sets where it would take minutes."""
    from crowdkit.aggregation import GLAD, MACE, DawidSkene, MajorityVote, OneCoinDawidSkene

    def of(make: Callable[[], Any], cells: float = math.inf) -> Method:
        def fit(answers: cw.Labels) -> Fitted | None:
            if answers.n_answers * answers.n_classes > cells:
                return None
            probabilities = make().fit_predict_proba(answers.frame().to_pandas())
            order = {"index": answers.tasks.to_list(), "columns": answers.classes.to_list()}
            return Fitted(probabilities.reindex(**order).fillna(0.0).to_numpy(), None)

        return fit

    return {
        "ck:MajorityVote": of(MajorityVote),
        "ck:DawidSkene": of(lambda: DawidSkene(n_iter=100)),
        "ck:OneCoin": of(lambda: OneCoinDawidSkene(n_iter=100)),
        "ck:MACE": of(MACE),
        "ck:GLAD": of(GLAD, MAX_GLAD_CELLS),
    }


def run(names: Iterable[str], methods: dict[str, Method]) -> list[Row]:
    rows = []
    for name in names:
        crowd = load(name)
        for method, fit in methods.items():
            began = time.perf_counter()
            fitted = fit(crowd.answers)
            seconds = time.perf_counter() - began
            if fitted is not None:
                rows.append(Row(name, method, score(fitted.posterior, crowd.gold), fitted.converged, seconds))
        print(f"{name} done", file=sys.stderr)
    return rows


def table(rows: list[Row], title: str, value: Callable[[Row], float], digits: int) -> str:
    """One row per set, one column per method, mean last; '-' where a method was skipped."""
    sets, methods = (list(dict.fromkeys(column)) for column in ([r.crowd for r in rows], [r.method for r in rows]))
    cells = {(r.crowd, r.method): value(r) for r in rows}
    means = {m: sum(cells.get((s, m), math.nan) for s in sets) / len(sets) for m in methods}
    wide = [max(len(m), 6) for m in methods]

    def line(name: str, values: Iterable[float]) -> str:
        shown = ("-" if math.isnan(v) else f"{v:.{digits}f}" for v in values)
        return f"{name:24}" + " ".join(f"{v:>{w}}" for v, w in zip(shown, wide, strict=True))

    head = f"{title:24}" + " ".join(f"{m:>{w}}" for m, w in zip(methods, wide, strict=True))
    body = [line(s, (cells.get((s, m), math.nan) for m in methods)) for s in sets]
    return "\n".join([head, *body, line("mean", means.values())])


def summary(rows: list[Row]) -> str:
    """How many sets each method converged on, and its seconds over all."""
    lines = [f"{'method':24}{'sets':>5} {'converged':>10} {'seconds':>8}"]
    for method in dict.fromkeys(r.method for r in rows):
        own = [r for r in rows if r.method == method]
        known = [r.converged for r in own if r.converged is not None]
        converged = f"{sum(known)}/{len(known)}" if known else "unknown"
        lines.append(f"{method:24}{len(own):>5} {converged:>10} {sum(r.seconds for r in own):>8.2f}")
    return "\n".join(lines)


def as_json(rows: list[Row]) -> str:
    plain = [{**row._asdict(), "score": row.score._asdict()} for row in rows]
    return json.dumps({"version": cw.__version__, "rows": plain}, indent=1)


def chosen(text: str | None, known: Iterable[str], what: str) -> list[str]:
    names = list(known) if text is None else text.split(",")
    if unknown := set(names) - set(known):
        raise SystemExit(f"no {what} {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return names


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", help="names separated by commas (default: all)")
    parser.add_argument("--models", help="names separated by commas (default: all)")
    parser.add_argument("--peers", action="store_true", help="also measure crowd-kit's models")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    return parser.parse_args()


def main() -> None:
    given = options()
    if not DATA.is_dir():
        print(f"skipped: no folder {DATA} with the labelled sets")
        return
    methods = {name: ours(name) for name in chosen(given.models, cw.models("labels")["name"].to_list(), "model")}
    if given.peers:
        methods |= peers()
    rows = run(chosen(given.sets, SETS, "set"), methods)
    print(table(rows, "accuracy %", lambda r: r.score.accuracy, 1), end="\n\n")
    print(table(rows, "log-loss", lambda r: r.score.log_loss, 2), end="\n\n")
    print(table(rows, "calibration error %", lambda r: r.score.calibration, 1), end="\n\n")
    print(summary(rows))
    if given.json:
        given.json.write_text(as_json(rows))


if __name__ == "__main__":
    main()
