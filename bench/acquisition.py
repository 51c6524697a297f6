"""Is `next_tasks` worth it? Accuracy with answers bought by its advice, at random, or for the tasks with the fewest.

Every strategy starts from the same answers of a simulated crowd and buys the same number of further answers in rounds;
the default model is fitted again after each round. The script prints the share of correct labels at the start and at
the end, as means over seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
import polars as pl

import crowdwise as cw

START, BUDGET, ROUNDS = 3, 1.5, 10  # answers per task at the start, and to buy; number of rounds


class Market:
    """A simulated crowd from which further answers can be bought."""

    def __init__(self, kind: str, tasks: int, workers: int, classes: int, seed: int, **settings: float) -> None:
        self.sim = cw.simulate.crowd(
            kind, tasks=tasks, workers=workers, classes=classes, per_task=START, seed=seed, **settings
        )
        self.task, self.worker, self.label = (codes.astype(np.int64) for codes in self.sim.answers.codes())
        names = self.sim.answers.classes.to_list()
        self.truth = np.array([names.index(label) for label in self.sim.truth["label"].to_list()])
        self.rng = np.random.default_rng(seed + 1)

    def answers(self) -> cw.Labels:
        return cw.Labels(self.task, self.worker, self.label)

    def buy(self, task: int, wanted: list[int]) -> None:
        """Buy one more answer to a task from a wanted worker, or from any worker who has not answered it."""
        answered = set(self.worker[self.task == task].tolist())
        available = [w for w in (wanted or range(len(self.sim.confusions))) if w not in answered]
        if not available:
            available = [w for w in range(len(self.sim.confusions)) if w not in answered]
        if not available:
            return
        worker = wanted and available[0] if wanted else int(self.rng.choice(available))
        label = self.rng.choice(self.sim.confusions.shape[1], p=self.sim.confusions[worker, self.truth[task]])
        self.task, self.worker, self.label = (
            np.append(a, b) for a, b in ((self.task, task), (self.worker, worker), (self.label, label))
        )


def advise(market: Market, strategy: str, batch: int) -> list[tuple[int, list[int]]]:
    """Task and wanted workers of each of the next answers."""
    count = np.bincount(market.task, minlength=len(market.truth))
    if strategy == "random":
        return [(int(t), []) for t in market.rng.integers(0, len(count), batch)]
    if strategy == "fewest":
        picked = []
        for _ in range(batch):
            least = np.flatnonzero(count == count.min())
            picked.append(int(market.rng.choice(least)))
            count[picked[-1]] += 1
        return [(t, []) for t in picked]
    table = cw.next_tasks(cw.aggregate(market.answers()), batch, whom=strategy == "next, with workers")
    orders: list[tuple[int, list[int]]] = []
    for task, ask, names in table.select("task", "ask", "workers").rows():
        wanted = [int(name) for name in names.split("; ")] if names else []
        orders += [(int(task), wanted[n : n + 1]) for n in range(ask)]
    return orders


def accuracy(market: Market) -> float:
    labels = cw.aggregate(market.answers()).labels
    return float((labels["label"].to_numpy() == market.truth[labels["task"].to_numpy()]).mean())


CROWDS = {
    "one-coin, 2 classes": ("one-coin", 2, {}),
    "one-coin, 5 classes": ("one-coin", 5, {}),
    "confusion, 4 classes": ("confusion", 4, {"accuracy": 0.65}),
    "a third spammers, 3 classes": ("hammer-spammer", 3, {"spammers": 0.33, "accuracy": 0.8}),
}
STRATEGIES = ("random", "fewest", "next", "next, with workers")


def measure(tasks: int = 300, workers: int = 30, seeds: int = 5) -> pl.DataFrame:
    rows = []
    for name, (kind, classes, settings) in CROWDS.items():
        for seed in range(seeds):
            for strategy in STRATEGIES:
                market = Market(kind, tasks, workers, classes, seed, **settings)
                batch = int(BUDGET * tasks / ROUNDS)
                before = accuracy(market)
                for _ in range(ROUNDS):
                    for task, wanted in advise(market, strategy, batch):
                        market.buy(task, wanted)
                rows.append((name, strategy, seed, before, accuracy(market)))
    return pl.DataFrame(rows, schema=["crowd", "strategy", "seed", "before", "after"], orient="row")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--tasks", type=int, default=300)
    given = options.parse_args()
    found = measure(tasks=given.tasks, seeds=given.seeds)
    with pl.Config(tbl_rows=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
        print(found.group_by("crowd", "strategy", maintain_order=True).agg(pl.col("before", "after").mean().round(4)))
        print(found.group_by("strategy", maintain_order=True).agg(pl.col("before", "after").mean().round(4)))
