"""Constants of the default that were chosen with the real datasets in view, chosen again without each dataset.

python bench/constants.py [--page FILE]

For each constant and each dataset, the value with the lowest log-loss on the other datasets is used on this one. The
means show what choosing on the same data is worth. The gain of more answers and the range of expected accuracy are
checked in the same way. --page replaces the section "Chosen constants" of that file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from quality import SETS, Crowd, load, score

import crowdwise as cw
from crowdwise.acquisition.cost import GAIN, with_each
from crowdwise.labels import calibration, dependence
from crowdwise.labels.pooled import SHARED_SHIFT

CUTS = (0, 3)
SEVERAL = 5.9  # answers per task from which a dataset shows what more answers bring
SEEDS = (11, 12, 13)  # of cuts
SHIFTS = (0.0, 0.1, 0.2, 0.3, 0.4)
HEADING = "## Chosen constants"


class Constant(NamedTuple):
    module: ModuleType
    name: str
    what: str
    values: tuple[float, ...]


CONSTANTS = (
    Constant(
        dependence, "EXCESS_SCALE", "excess agreement that counts as fully shared errors", (0.02, 0.03, 0.04, 0.06)
    ),
    Constant(dependence, "MAX_ANCHOR", "largest weight of the vote in the fit", (0.2, 0.3, 0.4, 0.5)),
    Constant(calibration, "MAX_CORRELATION", "largest correlation of errors in tempering", (0.1, 0.15, 0.2, 0.3)),
    Constant(calibration, "MAX_VOTE", "largest weight of the vote in probabilities", (0.05, 0.1, 0.15)),
)


@contextmanager
def replaced(constant: Constant, value: float) -> Iterator[None]:
    before = getattr(constant.module, constant.name)
    setattr(constant.module, constant.name, value)
    try:
        yield
    finally:
        setattr(constant.module, constant.name, before)


def measured(crowds: list[Crowd]) -> Any:
    """(datasets, 3) accuracy, log-loss and calibration error of the default."""
    return np.array([score(cw.aggregate(crowd.answers).posterior, crowd.gold) for crowd in crowds])


def left_out(constant: Constant, crowds: list[Crowd]) -> tuple[list[float], Any, Any]:
    """The values chosen without each dataset, and mean scores with the present value and with these."""
    now = getattr(constant.module, constant.name)
    tables = []
    for value in constant.values:
        with replaced(constant, value):
            tables.append(measured(crowds))
    scores = np.array(tables)  # (values, datasets, 3)
    loss = scores[:, :, 1]
    best = [int((loss.sum(1) - loss[:, n]).argmin()) for n in range(loss.shape[1])]
    held_out = np.array([scores[v, n] for n, v in enumerate(best)]).mean(0)
    present = scores[constant.values.index(now)].mean(0)
    return sorted({constant.values[v] for v in best}), present, held_out


def levels(cut: int) -> dict[str, Any]:
    """Per dataset with more answers, over three cuts (3, 3): accuracy, mean probability, and evidence for shared errors
    if expected accuracy uses it."""
    found: dict[str, Any] = {}
    for name in SETS:
        whole = load(name).answers
        if whole.n_answers / whole.n_tasks < SEVERAL:
            continue
        rows = []
        for seed in SEEDS:
            crowd = load(name, cut, seed)
            result = cw.aggregate(crowd.answers)
            per_task = crowd.answers.n_answers / crowd.answers.n_tasks
            x = result.model.level_shift(result.params, per_task) / SHARED_SHIFT
            rows.append((score(result.posterior, crowd.gold).accuracy / 100, result.labels["probability"].mean(), x))
        found[name] = np.array(rows)
    return found


def gains() -> list[tuple[str, float, float]]:
    """Per dataset: the gain of accuracy from three answers to all, and U times the mean of 1 / n - 1 / then."""
    found = []
    for name in SETS:
        few, whole = load(name, 3), load(name)
        then = whole.answers.answers_per_task
        if then.mean() < SEVERAL:
            continue
        result, more = cw.aggregate(few.answers), cw.aggregate(whole.answers)
        gain = (score(more.posterior, whole.gold).accuracy - score(result.posterior, few.gold).accuracy) / 100
        n = few.answers.answers_per_task.astype(float)
        used = n > 0
        x = with_each(n[used], float(then.mean()))
        found.append((name, gain, float(cw.cost_curve(result).disagreement or 0) * x))
    return found


def section() -> str:
    """The section of the page."""
    parts = [
        HEADING,
        "",
        "Each constant is chosen again without each dataset, by the log-loss of the others, and measured on the "
        "dataset that was left out (`python bench/constants.py --page docs/quality.md`).",
        "",
        "| constant | answers per task | values chosen | present value: accuracy / log-loss / calibration error | left "
        "out |",
        "| --- | --- | --- | --- | --- |",
    ]
    for cut in CUTS:
        crowds = [load(name, cut) for name in SETS]
        for constant in CONSTANTS:
            values, present, held_out = left_out(constant, crowds)
            shown = [f"{a:.1f} / {b:.3f} / {c:.1f}" for a, b, c in (present, held_out)]
            now = getattr(constant.module, constant.name)
            chosen = ", ".join(f"{value:g}" for value in values)
            parts.append(f"| {constant.what}, {now:g} | {cut or 'all'} | {chosen} | {shown[0]} | {shown[1]} |")
            print(parts[-1], flush=True)
    parts += ["", *_level_lines(), "", _gain_line(), ""]
    return "\n".join(parts)


def _level_lines() -> list[str]:
    lines = []
    for cut in (3, 5):
        found = list(levels(cut).values())

        def errors(shift: float, found: list[Any] = found) -> tuple[Any, Any]:
            """Errors in points and in log-odds (datasets,), with this shift for shared errors."""
            points, logs = [], []
            for right, p, x in (rows.T for rows in found):
                odds = _odds(p) + shift * x
                points.append(np.abs(right - 1 / (1 + np.exp(-odds))).mean())
                logs.append(np.abs(_odds(right) - odds).mean())
            return 100 * np.array(points), np.array(logs)

        table = np.array([errors(-shift) for shift in SHIFTS])  # (shifts, 2, datasets)
        best = [int(np.delete(table[:, 0], n, 1).mean(1).argmin()) for n in range(len(found))]
        points, odds = (np.array([table[v, of, n] for n, v in enumerate(best)]) for of in (0, 1))
        covered = [odds[n] <= 1.75 * np.sqrt(np.mean(np.delete(odds, n) ** 2)) for n in range(len(odds))]
        chosen = ", ".join(f"{SHIFTS[v]:g}" for v in sorted(set(best)))
        lines.append(
            f"- Expected accuracy with {cut} answers per task, {len(found)} datasets with six or more, three cuts: "
            f"off by {errors(SHARED_SHIFT)[0].mean():.1f} points with the present shift {-SHARED_SHIFT:g} for shared "
            f"errors, {points.mean():.1f} if it is chosen without the dataset ({chosen}). A range of 1.75 standard "
            f"deviations of the other datasets' errors, in log-odds, covers {100 * np.mean(covered):.0f} %; the range "
            f"that is reported, 1.05, covers {100 * np.mean(odds <= 1.05):.0f} %."
        )
        print(lines[-1], flush=True)
    return lines


def _odds(p: Any) -> Any:
    p = np.clip(p, 1e-3, 1 - 1e-3)
    return np.log(p / (1 - p))


def _gain_line() -> str:
    found = gains()
    gain, x = (np.array([each[place] for each in found]) for place in (1, 2))
    slopes = [
        float((np.delete(gain, n) @ np.delete(x, n)) / (np.delete(x, n) @ np.delete(x, n))) for n in range(len(x))
    ]
    error = gain - np.array(slopes) * x
    present = gain - GAIN * x
    line = (
        f"- Gain from three answers to all, {len(found)} datasets: with {GAIN} off by "
        f"{100 * np.abs(present).mean():.1f} points, bias {-100 * present.mean():+.1f}; with the constant fitted to "
        f"the other datasets ({min(slopes):.2f} to {max(slopes):.2f}) off by {100 * np.abs(error).mean():.1f}, bias "
        f"{-100 * error.mean():+.1f}."
    )
    print(line, flush=True)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="a page whose section is replaced")
    page = parser.parse_args().page
    made = section()
    if page is not None:
        head, _, tail = page.read_text().partition(HEADING)
        rest = tail.partition("\n## ")[2]
        page.write_text(f"{head.rstrip()}\n\n{made}" + (f"\n## {rest}" if rest else ""))


if __name__ == "__main__":
    main()
