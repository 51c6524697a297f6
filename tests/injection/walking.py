"""Walk through all system calls of all commands with all faults, and count what was survived.

python tests/injection/walking.py --jobs 2 --only aggregate --fault kill
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter

from cases import CASES
from injecting import FAULTS, Server, lacking


class Walk:
    """All calls of some commands with some faults, by several servers at once, and what came of them."""

    def __init__(self, work: list[tuple[str, str]], step: int) -> None:
        self.work, self.step, self.lock, self.begun = work, step, threading.Lock(), set[str]()
        self.unfinished = {*work}  # what is left of it if a server breaks
        self.tried, self.survived = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        self.outcomes = Counter[str]()

    def next(self, own: set[str]) -> tuple[str, str] | None:
        """Return a command and a fault: one that a server has begun, or else one that none has, as preparing it takes
        time."""
        with self.lock:
            if not self.work:
                return None
            pair = min(self.work, key=lambda pair: (pair[0] not in own, pair[0] in self.begun))
            self.work.remove(pair)
            own.add(pair[0])
            self.begun.add(pair[0])
            return pair

    def serve(self) -> None:
        """Walk, with a server, as long as there is work."""
        server, own = Server(), set[str]()
        while (pair := self.next(own)) is not None:
            for point in server.walk(*pair, self.step):
                with self.lock:
                    self.tried[pair] += 1
                    self.survived[pair] += not point.problem
                    self.outcomes[point.outcome] += 1
                    if point.problem:
                        print(point.problem[:2000], flush=True)
            self.unfinished.discard(pair)
            print(f"{pair[0]}, {pair[1]}: {self.tried[pair]} tried, {self.survived[pair]} survived", flush=True)
        server.close()

    def run(self, jobs: int) -> None:
        threads = [threading.Thread(target=self.serve) for _ in range(jobs)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    def report(self) -> None:
        """Print a row per command: points tried, by fault, and those survived."""
        faults = [each for each in FAULTS if any(fault == each for _, fault in self.tried)]
        print("| command | " + " | ".join(faults) + " | tried | survived |")
        print("|---" * (len(faults) + 3) + "|")
        for case in [*sorted({case for case, _ in self.tried}), "all"]:
            among = [pair for pair in self.tried if case in (pair[0], "all")]
            cells = [str(sum(self.tried[pair] for pair in among if pair[1] == fault)) for fault in faults]
            sums = [str(sum(counts[pair] for pair in among)) for counts in (self.tried, self.survived)]
            print(f"| {case} | " + " | ".join([*cells, *sums]) + " |")
        print(", ".join(f"{count} {outcome or 'neither'}" for outcome, count in sorted(self.outcomes.items())))


def main() -> int:
    """Walk through all calls of all commands, and print how many were tried and survived."""
    parser = argparse.ArgumentParser(description="Let every system call of every command fail.")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--step", type=int, default=1, help="walk in steps of so many calls")
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("--fault", action="append", choices=FAULTS)
    options = parser.parse_args()
    if lacking():
        print(lacking())
        return 1
    walk = Walk([(case, fault) for case in options.only or CASES for fault in options.fault or FAULTS], options.step)
    began = time.monotonic()
    walk.run(options.jobs)
    walk.report()
    print(f"{time.monotonic() - began:.0f} s")
    for case, fault in sorted(walk.unfinished):
        print(f"not walked to the end: {case}, {fault}")
    walked = not walk.unfinished and walk.tried.total() > 0
    return int(not walked or walk.tried != walk.survived)


if __name__ == "__main__":
    sys.exit(main())
