"""Rate workers: skill, attention checks, spammer score, time, and flags with reasons."""

from pathlib import Path

import numpy as np
import polars as pl

import crowdwise as cw

crowd = cw.simulate.crowd("one-coin", tasks=300, workers=12, classes=3, per_task=6, a=16, b=4, seed=5)
frame, rng = crowd.answers.frame(), np.random.default_rng(5)

# w01 guesses, w02 always gives c1, w03 is too fast, and w13 copies w04
who, n = pl.col("worker"), frame.height
guess = pl.Series(rng.choice(["c1", "c2", "c3"], n))
frame = frame.with_columns(
    label=pl.when(who == "w01").then(guess).when(who == "w02").then(pl.lit("c1")).otherwise("label"),
    seconds=pl.Series(rng.lognormal(2, 0.4, n)) * pl.when(who == "w03").then(0.05).otherwise(1.0),
)
copied = frame.filter(who == "w04").with_columns(worker=pl.lit("w13"))
frame = pl.concat([frame, copied]).sort("task", "worker").with_columns(pl.col("seconds").round(2))
known = crowd.truth.head(60)

folder = Path("rated")
folder.mkdir(exist_ok=True)
frame.write_csv(folder / "answers.csv")
known.write_csv(folder / "known.csv")

answers = cw.read(folder / "answers.csv", gold=folder / "known.csv")
result = cw.aggregate(answers)
table = result.workers.sort("rank", nulls_last=True)
print(table.select("rank", "worker", "skill", "low", "high", "spam_score", "trace", "check_score", "seconds"))
for worker, flags, reasons in table.filter(pl.col("flags") != "").select("worker", "flags", "reasons").rows():
    print(f"{worker} [{flags}] {reasons}")

# drop the worker who copies
without_copy = cw.aggregate(answers.without(["w13"]))
print(f"labels that change without w13: {(without_copy.labels['label'] != result.labels['label']).sum()}")
