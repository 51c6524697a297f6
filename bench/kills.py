"""Kill commands at random moments, and let two of them write into one folder: what is found must be whole.

    python bench/kills.py --kills 500 --rounds 50 --seed 0

Each command runs with old outputs in its folder, in a process forked off this one. After a kill (`kill -9`), the folder
is what the next command finds: the old outputs or the new ones. Exit status 1 if it ever is anything else.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "injection"))

from cases import CASES, FIT, VOTE, command
from injecting import Stand, Tree, imported, tree

KILLED = ("aggregate", "learn", "report", "watch")
MAX_SECONDS = 1800  # for all kills


def kills(stand: Stand, count: int, rng: random.Random, end: float) -> Counter[str]:
    """Kill a command at random moments, and count what is found."""
    found: Counter[str] = Counter()
    length = min(taken(stand) for _ in range(3))
    while found["kills"] < count and time.monotonic() < end:
        stand.restore()
        process = stand.started(stand.case.command)
        time.sleep(rng.uniform(0, length))
        os.kill(process[0], signal.SIGKILL)  # it has not been waited for, so the number is its own
        done = stand.ended(process)
        killed = done.status == -signal.SIGKILL
        problem, outcome = stand.judged(done, "kill" if killed else "", "")
        found["kills" if killed else "ended before"] += 1
        found[outcome or "neither"] += 1
        found["leftovers"] += any(Path(name).name.startswith(".") for name in tree(stand.run))
        if problem:
            print(f"{stand.case.name}: {problem}", flush=True)
            found["failed"] += 1
    return found


def taken(stand: Stand) -> float:
    """Seconds that a command takes."""
    stand.restore()
    began = time.monotonic()
    stand.forked(stand.case.command)
    return time.monotonic() - began


def after(stand: Stand, words: str) -> Tree:
    """What a command leaves that is alone."""
    stand.restore()
    stand.forked(command(words))
    return tree(stand.run)


def rounds(stand: Stand, count: int, rng: random.Random) -> Counter[str]:
    """Start two commands with one folder at the same time, and count what is found."""
    both = [VOTE, FIT]
    alone, found = [after(stand, words) for words in both], Counter[str]()
    for _ in range(count):
        stand.restore()
        processes = []
        for words in both:
            processes.append(stand.started(command(words), name=str(len(processes))))
            time.sleep(rng.uniform(0, 0.05))
        ends = [stand.ended(process) for process in processes]
        found["rounds"] += 1
        found["refused"] += sum(each.status == 1 for each in ends)
        found["mixtures"] += tree(stand.run) not in alone
        for each, other in zip(ends, reversed(processes), strict=True):
            named = re.search(r"is in use by another run \(process (\d+)\)", each.err)
            wrong = each.status not in (0, 1) or (each.status == 1 and (named is None or int(named[1]) != other[0]))
            found["wrong messages"] += wrong
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill commands at random moments.")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, total, end = random.Random(options.seed), Counter[str](), time.monotonic() + MAX_SECONDS
    imported(["crowdwise.cli.app", "crowdwise.io", "crowdwise.report"])
    names = ("kills", "ended before", "old", "new", "partly", "neither", "leftovers", "failed")
    print("| command | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
    folder = tempfile.mkdtemp(prefix="kills-")  # which the processes must not remove when they end
    try:
        for case in KILLED:
            stand = Stand(CASES[case], Path(folder, case))
            found = kills(stand, options.kills // len(KILLED), rng, end)
            total += found
            print(f"| {case} | " + " | ".join(str(found[name]) for name in names) + " |", flush=True)
        print("| all | " + " | ".join(str(total[name]) for name in names) + " |")
        pairs = rounds(Stand(CASES["resume"], Path(folder, "two")), options.rounds, rng)
    finally:
        shutil.rmtree(folder)
    print("two commands, one folder: " + ", ".join(f"{pairs[name]} {name}" for name in pairs))
    return int(bool(total["failed"] + total["leftovers"] + pairs["mixtures"] + pairs["wrong messages"]))


if __name__ == "__main__":
    sys.exit(main())
