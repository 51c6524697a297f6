"""Random words after `crowdwise`: the exit status is one of those documented, and what goes wrong is a sentence."""

from __future__ import annotations

import functools
import io
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from fuzzing import Fuzzer

from crowdwise.cli import main
from crowdwise.cli.app import app

STATUSES = {0, 1, 2, 3}
FILES = {
    "labels.csv": "task,worker,label,seconds\n1,a,x,3\n1,b,x,4\n2,a,y,5\n2,b,x,3\n3,a,y,9\n3,b,y,2\n",
    "clicks.csv": "image,worker,x,y\na,u,1,2\na,v,1.5,2\nb,u,5,5\nb,v,5,5.5\n",
    "pairs.csv": "left,right,worker,answer\na,b,u,1\nb,c,u,0\na,b,v,1\na,c,v,0\n",
    "gold.csv": "task,label\n1,x\n3,y\n",
    "features.csv": "task,x0,x1\n1,0.5,2\n2,1,3\n3,9,1\n",
    "empty.csv": "",
    "broken.csv": 'task,worker,label\n1,"a,x\n',
}
WORDS = (
    "", " ", "-", "--", "-1", "0", "1", "2", "1.5", "-0.0", "1e400", "nan", "inf", "-inf", str(2**63), str(2**70),
    "9" * 400, "0x10", "1_000", "many", "x", "task", "worker", "label", "labels", "points", "pairs", "csv", "json",
    "label-studio", "majority-vote", "dawid-skene", "pooled", "dbscan", "pair-vote", "click-mixture", "groups",
    "last", "first", "each", "error", "a,b", "0,0,9,9", "9,9,0,0", "0,0,nan,9", ",", "smoothing=0.1", "smoothing=",
    "max_iter=" + str(2**70), "tol=nan", "=", "a=b=c", "2GB", "-1GB", "infGB", "1e99TB", "\udcff", "\u202e",
    "\x1b[2J", "caf\u00e9", "\u0410nn", "y" * 5000, "~", "*", "[", "a\nb", "/dev/null", "/proc/self/mem",
    "no/such/folder/x.csv", ".", "..", "saved", "folder", "http://127.0.0.1/x.csv", "utf-8", "hex", "latin-1",
    "\\t", ";;", "NA",
)  # fmt: skip
LABELS, CLICKS, PAIRS = "labels.csv", "clicks.csv", "pairs.csv"
ANY = [(LABELS,), (CLICKS,), (PAIRS,)]
# Files, and the options that a command cannot do without.
ANSWERED: dict[str, list[tuple[str, ...]]] = {
    "inspect": ANY, "workers": ANY, "tasks": ANY, "agreement": ANY, "next": ANY,
    "compare": [(LABELS, "--folds", "0", "--model", "majority-vote"), (PAIRS, "--folds", "2", "--model", "pair-vote")],
    "aggregate": [(LABELS,), (LABELS, "--out", "new"), (LABELS, "--model", "majority-vote", "--out", "new")],
    "points": [(CLICKS,), (CLICKS, "--out", "new")], "pairs": [(PAIRS,), (PAIRS, "--out", "new")],
    "learn": [(LABELS, "--features", "features.csv", "--out", "new")],
    "watch": [("folder", "--out", "new")],
    "plan": [(LABELS, "--target", "0.9"), ("", "--target", "0.9", "--accuracy", "0.8", "--classes", "3")],
    "report": [(file, "--out", "new.html") for (file,) in ANY],
    "simulate": [
        (kind, "--out", "new", "--tasks", "9", "--workers", "4", "--classes", "2") for kind in ("one-coin", "confusion")
    ] + [("pinwheel", "--out", "new"), ("clicks", "--out", "new")],
    "convert": [(file, "--out", f"new.{ending}") for file in (LABELS, CLICKS) for ending in ("csv", "jsonl")],
    "export": [(LABELS, "--to", to, "--out", "new") for to in ("csv", "jsonl", "parquet")],
    "formats": [("",)], "models": [("",)],
}  # fmt: skip
# Values with which most commands are answered.
USUAL: dict[str, tuple[str, ...]] = {
    "--seed": ("0", "7"), "--threads": ("1", "2"), "--top": ("2",), "--max-iter": ("3", "50"), "--tol": ("0.01",),
    "--gold": ("gold.csv",), "--truth": ("gold.csv",), "--budget": ("1", "5"), "--batch": ("2",), "--folds": ("0", "2"),
    "--duplicates": ("first", "last", "each"), "--worker": ("worker",), "--task": ("task",), "--label": ("label",),
    "--image": ("image",), "--left": ("left",), "--right": ("right",), "--answer": ("answer",), "--format": ("csv",),
    "--delimiter": (",",), "--encoding": ("utf-8",), "--memory": ("2GB",), "--max-expanded": ("1GB",),
    "--missing": ("NA", "x,NA"), "--precision": ("single", "double"), "--within": ("0.5", "2"), "--axes": ("x,y",),
    "--box": ("0,0,9,9",), "--outside": ("drop", "keep"), "--ignore": ("seconds",), "--least": ("0.5",),
    "--accuracy": ("0.8",), "--price": ("0.05",), "--coverage": ("0.5",), "--drop-below": ("0.1",),
    "--per-task": ("2",), "--content": ("gold.csv",), "--restarts": ("1",), "--threshold": ("0.5",),
    "--original": (LABELS,), "--contradictions": ("drop",), "--unit": ("pixel",), "--kind": ("labels",),
}  # fmt: skip
OF_KIND = {
    LABELS: {"--task", "--label", "--gold", "--truth", "--missing", "--content", "--kind", "--ignore", "--duplicates"},
    CLICKS: {"--image", "--axes", "--box", "--outside", "--within", "--unit"},
    PAIRS: {"--left", "--right", "--answer", "--contradictions"},
}
# Options with which a run would not end soon, or would use other machines.
NEVER = {"--master", "--engine", "--install-completion", "--show-completion"}
LONG = {"reproduce", "demo"}  # commands that fit studies


class Words(NamedTuple):
    """The words of a command, and the folder in which it is run."""

    words: list[str]
    folder: Path


@functools.cache
def commands() -> dict[str, Any]:
    found = {each.name or each.callback.__name__: each.callback for each in app.registered_commands}  # type: ignore[union-attr]
    return {name: callback.build() for name, callback in found.items() if name not in LONG}  # type: ignore[attr-defined]


def make(rng: random.Random, folder: Path) -> Words:
    """A command that is answered, with a few more options, of which some have values of any sort."""
    folder = folder / "here"  # so that ".." is a folder of this input, too
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "folder").mkdir()
    (folder / "folder" / LABELS).write_text(FILES[LABELS])
    name = rng.choice(list(commands()))
    file, *needed = rng.choice(ANSWERED[name])
    odd = rng.choice((0, 0, 0, 1, 1, 2))  # options with values of any sort
    options = [each for each in commands()[name].params if each.opts[0].startswith("--") and each.opts[0] not in NEVER]
    words = [name, *([file] if file else []), *needed]
    for each in rng.sample(options, min(len(options), rng.randint(0, 3))):
        if getattr(each, "is_flag", False):
            words.append(str(rng.choice([*each.opts, *each.secondary_opts])))
        elif each.opts[0] in USUAL and each.opts[0] not in needed and fits(each.opts[0], file):
            words += [str(each.opts[0]), rng.choice(USUAL[each.opts[0]])]
    for each in rng.sample(options, min(len(options), odd)):
        words += _option(rng, each)
    if rng.random() < 0.1:
        words[rng.randrange(len(words))] = _word(rng)
    return Words([*words, *(["--once"] if name == "watch" else [])], folder)


def fits(option: str, file: str) -> bool:
    """Whether an option is one of the kind of answers in a file."""
    return option in OF_KIND.get(file, ()) or all(option not in each for each in OF_KIND.values())


def _option(rng: random.Random, option: Any) -> list[str]:
    flag = rng.choice([*option.opts, *option.secondary_opts])
    if getattr(option, "is_flag", False):
        return [str(flag)]
    return [f"{flag}={_word(rng)}"] if rng.random() < 0.3 else [flag, _word(rng)]


def _word(rng: random.Random) -> str:
    return rng.choice(list(FILES)) if rng.random() < 0.1 else rng.choice(WORDS)


def check(given: Words) -> str:
    """Run the command in this process: it ends with a status, and says what is wrong."""
    status, said = run(given)
    assert status in STATUSES, f"status {status}: {said[-500:]}"
    assert "Traceback" not in said, said
    assert status in (0, 3) or said.strip(), "an error is said"
    return {0: "answered", 3: "not converged"}.get(status, "refused")


def run(given: Words) -> tuple[int, str]:
    """Return the exit status, and what went to stderr."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before = Path.cwd()
    os.chdir(given.folder)
    try:
        with mock.patch.multiple(
            sys, stdout=out, stderr=err, stdin=io.TextIOWrapper(io.BytesIO()), argv=["crowdwise", *given.words]
        ):
            try:
                main()
            except SystemExit as left:
                status = left.code
    finally:
        os.chdir(before)
    return status, err.buffer.getvalue().decode("utf-8", "backslashreplace")  # type: ignore[return-value]


KEPT: dict[str, list[str]] = {
    "a name that is too long": ["next", "labels.csv", "--gold=" + "y" * 5000],
    "a file whose name is too long": ["inspect", "y" * 300],
    "a size beyond all numbers": ["pairs", "pairs.csv", "--max-expanded", "9" * 400],
    "features with labels": ["compare", "labels.csv", "--features", "features.csv"],
    "a crowd beyond all memory": ["simulate", "confusion", "--tasks", "9" * 15, "--out", "x"],
}


def kept(folder: Path) -> Iterator[tuple[str, Words]]:
    """Yield the commands that failed once."""
    for number, (name, words) in enumerate(KEPT.items()):
        place = folder / str(number)
        place.mkdir()
        made = make(random.Random(0), place)
        yield name, made._replace(words=words)


FUZZERS = [Fuzzer("arguments", make, check, kept, slice=15)]
