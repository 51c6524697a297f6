"""The commands that are run with faults: what is there before, and what is run."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from injecting import Tree


@dataclass(frozen=True)
class Case:
    """A command. Both functions work in the current folder."""

    name: str
    before: Callable[[], None]  # makes the inputs in `in`, and the outputs of an earlier run
    command: Callable[[], None]
    folders: tuple[str, ...] = ("out",)  # of outputs
    may_stay: tuple[str, ...] = ()  # beginnings of paths of files that serve to go on
    again: bool = False  # whether another run after the one with the fault must bring the new outputs
    problems: str = ""  # a list of inputs that could not be read, with which outputs are neither old nor new

    def kept(self, files: Tree) -> Tree:
        """Return the inputs and outputs among files."""
        return {name: digest for name, digest in files.items() if not name.startswith(self.may_stay or "\0")}


def command(words: str) -> Callable[[], None]:
    """Return a function that runs a command."""

    def run() -> None:
        from crowdwise.cli import main

        sys.argv = ["crowdwise", *words.split()]
        main()

    return run


def first(*steps: Callable[[], None]) -> Callable[[], None]:
    """Return a function that does several things, of which commands end by an exit."""

    def run() -> None:
        for step in steps:
            try:
                step()
            except SystemExit as left:
                if left.code not in (0, 3):
                    raise

    return run


def labels() -> None:
    """A table of labels."""
    import crowdwise as cw

    answers = cw.simulate.crowd("confusion", tasks=30, workers=6, classes=3, per_task=4, seed=2).answers
    Path("in").mkdir()
    answers.frame().write_csv("in/answers.csv")


def more() -> None:
    """An output of the last run that has no successor."""
    Path("out/more.csv").write_text("more")
    about = json.loads(Path("out/crowdwise.json").read_text())
    about["files"]["more.csv"] = hashlib.sha256(b"more").hexdigest()
    Path("out/crowdwise.json").write_text(json.dumps(about))


def clicks() -> None:
    import crowdwise as cw

    Path("in").mkdir()
    frame = cw.simulate.clicks("E", seed=4).points.frame()
    frame.filter(frame["worker"].rank("dense") <= 4, frame["x"] < 2.5).write_csv("in/clicks.csv")


def pairs() -> None:
    import crowdwise as cw

    Path("in").mkdir()
    cw.simulate.pinwheel(per_cluster=8, asked=40).pairs.frame().write_csv("in/pairs.csv")


def experts() -> None:
    import crowdwise as cw

    cw.simulate.experts(40, seed=3).save("in")


def arrivals() -> None:
    """A watched folder in which a second file arrives after a first one was taken; the pause is short."""
    labels()
    head, *rows = Path("in/answers.csv").read_text().splitlines()
    Path("in/answers.csv").unlink()
    Path("in/a.csv").write_text("\n".join([head, *rows[:80]]))
    first(watch)()
    Path("in/b.csv").write_text("\n".join([head, *rows[80:]]))


def watch() -> None:
    import crowdwise.cli.watch as module

    module.ONCE_PAUSE = 0.0
    command("watch in --out out --once")()


def in_parts() -> None:
    """Read labels in two parts, as if they were too large."""
    import secrets

    import crowdwise.io
    import crowdwise.io.large as large

    crowdwise.io.too_large = lambda *_: True  # type: ignore[attr-defined]
    large.split_labels = functools.partial(large.split_labels, parts=2)
    secrets.token_hex = lambda _: "1" if Path("out/tables-0").exists() else "0"  # type: ignore[assignment]
    command(f"{FIT} --memory 500MB --model soft-vote")()


def broken_off() -> None:
    """A fit that was interrupted after its third iteration."""
    import os

    from crowdwise.engine.run import Progress, Run

    def report(self: Run, progress: Progress, seen: list[int] = []) -> None:  # noqa: B006
        seen.append(1)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    Run.report = report  # type: ignore[method-assign]
    with contextlib.suppress(SystemExit):
        command(FIT)()


def careless() -> None:
    """Write two files, one by one, without care for errors."""
    number = int(Path("out/a.txt").read_text()) + 1 if Path("out/a.txt").exists() else 0
    Path("out").mkdir(exist_ok=True)
    for name in ("a.txt", "b.txt"):
        Path("out", name).write_text(str(number))


def save() -> None:
    """Load a result and save it elsewhere, with errors as those of commands."""
    import crowdwise as cw
    from crowdwise.errors import CrowdwiseError

    try:
        cw.load("in").save("out")
    except CrowdwiseError as error:
        print(error, file=sys.stderr)
        sys.exit(1)


def table(ending: str) -> Callable[[], None]:
    """Return a function that writes labels in some format."""

    def run() -> None:
        import gzip
        import zipfile

        import crowdwise as cw

        labels()
        if ending == "gz":
            Path("in/answers.csv.gz").write_bytes(gzip.compress(Path("in/answers.csv").read_bytes(), mtime=0))
        elif ending == "zip":
            with zipfile.ZipFile("in/answers.zip", "w") as archive:
                archive.write("in/answers.csv", "answers.csv")
        elif ending == "label-studio":
            cw.convert("in/answers.csv", "in/answers.json", "label-studio")
        else:
            cw.convert("in/answers.csv", f"in/answers.{ending}")

    return run


FIT = "aggregate in/answers.csv --no-page --out out"
VOTE = f"{FIT} --model majority-vote"
OLD_LABELS = first(labels, command(VOTE), more)
READ = {"csv": "csv", "gz": "csv.gz", "zip": "zip", "parquet": "parquet", "jsonl": "jsonl", "label-studio": "json"}
ALL = (
    Case("aggregate", first(labels, command(f"{VOTE} --page"), more), command(f"{FIT} --page")),
    Case(
        "points",
        first(clicks, command("points in/clicks.csv --model dbscan --out out --no-page")),
        command("points in/clicks.csv --objects 2 --set max_iter=3 --out out --no-page"),
    ),
    Case(
        "pairs",
        first(pairs, command("pairs in/pairs.csv --model pair-vote --out out --no-page")),
        command("pairs in/pairs.csv --out out --no-page"),
    ),
    Case(
        "learn",
        first(experts, command("aggregate in/answers.csv --out out --no-page")),
        command("learn in/answers.csv --features in/features.parquet --set max_iter=3 --out out --no-page"),
    ),
    Case("parts", OLD_LABELS, in_parts, may_stay=("out/parts.crowdwise/",), again=True),
    Case("resume", first(OLD_LABELS, broken_off), command(f"{FIT} --resume"), again=True),
    Case(
        "checkpoints",
        OLD_LABELS,
        command(f"{FIT} --model dawid-skene --max-iter 8 --resume --checkpoint-every 1e-9"),
        may_stay=("out/checkpoint.crowdwise",),
        again=True,
    ),
    Case("watch", arrivals, watch, again=True, problems="out/problems.csv"),
    Case("save", first(labels, command(VOTE), command("aggregate in/answers.csv --out in")), save),
    Case("report", first(labels, command(VOTE), command("report out --compare-with soft-vote")), command("report out")),
    Case(
        "export",
        first(table("label-studio"), command("export in/answers.json --to csv --out out")),
        command("export in/answers.json --to label-studio --out out"),
    ),
    Case("convert", first(labels, command("convert in/answers.csv --out out/all.parquet")),
         command("convert in/answers.csv --to label-studio --out out/all.parquet")),
    Case("next", first(labels, command(VOTE), command("tasks out --out out/ask.csv")),
         command("next out --budget 30 --out out/ask.csv")),
    Case("simulate", command("simulate confusion --tasks 20 --workers 5 --seed 1 --out out"),
         command("simulate confusion --tasks 20 --workers 5 --seed 2 --out out")),
    Case("demo", command("demo --seed 1 --out out"), command("demo --seed 2 --out out")),
    *(Case(f"read {ending}", table(ending), command(f"aggregate in/answers.{name}"), folders=())
      for ending, name in READ.items()),
    Case("load", first(labels, command("aggregate in/answers.csv --out in --no-page")), command("workers in"),
         folders=()),
)  # fmt: skip
CASES = {each.name: each for each in ALL}
CARELESS = Case("careless", careless, careless)
