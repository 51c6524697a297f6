"""Accuracy, log-loss and calibration error of every model on real crowds, one row per data set.

python bench/quality.py [--sets a,b] [--models x,y] [--cut 3,5] [--peers] [--json FILE] [--page FILE]

With --cut, every task is also cut to that many answers, drawn at random with a fixed seed: the same answers for all
methods. --page writes the means as a page of the docs, docs/quality.md.
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
CUT_SEED = 1
VOTE = "soft-vote"  # the method with which others are compared
MAX_GLAD_CELLS = 10_000  # answers x classes; beyond it crowd-kit's GLAD takes minutes

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.floating[Any]]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]


class Crowd(NamedTuple):
    """One data set: the answers that models see, and the truth that only the score uses."""

    name: str
    cut: int  # answers per task at most; 0: all
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
    cut: int
    method: str
    score: Score
    converged: bool | None
    seconds: float


Method: TypeAlias = Callable[[cw.Labels], Fitted | None]  # None: too slow on this set


def load(name: str, cut: int = 0, seed: int = CUT_SEED) -> Crowd:
    answers = pl.read_parquet(DATA / name / "answers.parquet").select("task", "worker", "label")
    truth = pl.read_parquet(DATA / name / "truth.parquet").select("task", "label")
    if cut:
        shuffled = answers.sample(fraction=1.0, shuffle=True, seed=seed)
        answers = shuffled.group_by("task", maintain_order=True).head(cut)
    known = cw.Labels(answers, gold=truth, duplicates="each")
    return Crowd(name, cut, known.with_gold(None), known.gold)


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


def run(names: Iterable[str], cuts: Iterable[int], methods: dict[str, Method]) -> list[Row]:
    rows = []
    for name, cut in ((name, cut) for cut in cuts for name in names):
        crowd = load(name, cut)
        for method, fit in methods.items():
            began = time.perf_counter()
            fitted = fit(crowd.answers)
            seconds = time.perf_counter() - began
            if fitted is not None:
                rows.append(Row(name, cut, method, score(fitted.posterior, crowd.gold), fitted.converged, seconds))
        print(f"{name}{f', {cut} answers' * bool(cut)} done", file=sys.stderr)
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


def worst(rows: list[Row], method: str) -> tuple[float, str]:
    """The smallest difference of accuracy to the vote, and its set."""
    vote = {row.crowd: row.score.accuracy for row in rows if row.method == VOTE}
    own = [(row.score.accuracy - vote[row.crowd], row.crowd) for row in rows if row.method == method]
    return min(own)


def means(rows: list[Row]) -> list[tuple[str, float, float, float, float, str, float]]:
    """Per method that was measured on all sets: accuracy, log-loss, calibration error, worst set, seconds."""
    sets, found = {row.crowd for row in rows}, []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        if len(own) == len(sets):
            scores = np.array([row.score for row in own]).mean(0).tolist()
            found.append((method, *scores, *worst(rows, method), sum(row.seconds for row in own)))
    return sorted(found, key=lambda each: -each[1])


def page(rows: list[Row]) -> str:
    """The means as a page of the docs."""
    parts = [PAGE_HEAD]
    for cut in dict.fromkeys(row.cut for row in rows):
        some = [row for row in rows if row.cut == cut]
        parts.append(f"## {f'Cut to {cut} answers per task' if cut else 'All answers'}\n")
        parts.append("| method | accuracy % | log-loss | calibration error % | worst set against the vote | seconds |")
        parts.append("| --- | --- | --- | --- | --- | --- |")
        for method, accuracy, loss, error, least, name, seconds in means(some):
            worst_set = "-" if method in (VOTE, "majority-vote", "ck:MajorityVote") else f"{least:+.1f} ({name})"
            parts.append(f"| `{method}` | {accuracy:.1f} | {loss:.3f} | {error:.1f} | {worst_set} | {seconds:.1f} |")
        parts.append("")
    return "\n".join(parts)


PAGE_HEAD = """# Quality on real data

Eighteen datasets with known truth (text, images, music, search results; 2 to 10 classes; 2 to 40 answers per task).
The truth enters no fit. Means over datasets: accuracy (ties count fractionally), log-loss clipped at 1e-5, calibration
error over ten bins, the dataset that loses most against the vote, and seconds for all datasets on two cores. `ck:`
marks crowd-kit 1.4.2, measured in the same run. Seconds are those of a machine with other work, and include compiling
for the first model. This page is written by `python bench/quality.py --cut 3,5 --peers --page docs/quality.md`.

Constants of the default were chosen with these datasets in view: [below](#chosen-constants) they are chosen again
without each dataset. [Decision 0027](decisions/0027-anchored-default.md) says how many variants were tried.
"""


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
    parser.add_argument("--cut", default="", help="also cut tasks to these numbers of answers, such as 3,5")
    parser.add_argument("--page", type=Path, help="write the means to this file, as Markdown")
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
    cuts = [0, *(int(cut) for cut in given.cut.split(",") if cut)]
    rows = run(chosen(given.sets, SETS, "set"), cuts, methods)
    for cut in cuts:
        some = [row for row in rows if row.cut == cut]
        print(f"{f'cut to {cut} answers per task' if cut else 'all answers'}\n")
        print(table(some, "accuracy %", lambda r: r.score.accuracy, 1), end="\n\n")
        print(table(some, "log-loss", lambda r: r.score.log_loss, 3), end="\n\n")
        print(table(some, "calibration error %", lambda r: r.score.calibration, 1), end="\n\n")
        if any(row.method == VOTE for row in some):
            for method in dict.fromkeys(row.method for row in some):
                print("{:24}{:+6.1f} {}".format(method, *worst(some, method)))
        print(f"\n{summary(some)}\n")
    if given.page:
        given.page.write_text(page(rows))
    if given.json:
        given.json.write_text(as_json(rows))


if __name__ == "__main__":
    main()
