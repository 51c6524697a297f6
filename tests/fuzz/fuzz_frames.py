"""Random tables of pandas, polars, arrow, numpy and lists, with odd columns: read, fitted, or refused in words.

Of what is read, the counts are checked: every row is an answer, or is dropped with a reason; and plain ids and labels
come back as they went in.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import odd
import pandas as pd
import polars as pl
import pyarrow as pa
import sklearn.cluster  # noqa: F401 - now, not when the first input is timed
from fuzzing import Fuzzer, outcome

import crowdwise as cw
from crowdwise.answers import Answers
from crowdwise.answers.arguments import brief

KINDS = {
    "labels": ("task", "worker", "label"), "points": ("image", "worker", "x", "y"),
    "pairs": ("left", "right", "worker", "answer"),
}  # fmt: skip
OTHERS = ("gold", "seconds", "timestamp", "weight", "hit", "order", "extra", "is_check", "started")
MODELS = {"labels": ("majority-vote", "dawid-skene", "pooled"), "points": ("dbscan",), "pairs": ("pair-vote",)}
TEXTS = (
    "a",
    "b",
    "A",
    "a ",
    "",
    "NA",
    "1",
    "01",
    "1.0",
    "\u0430",
    "e\u0301",
    "\xe9",
    "nan",
    "\ud800",
    "x\0y",
    "\U0001f431",
)
OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "labels": {
        "duplicates": ("last", "first", "each", "error"), "anonymous": ("each", "refuse"),
        "missing": (["a"], ["-1", 1], "NA"),
        "wide": (True, False), "ignore": (["extra"], "extra"),
        "gold": ({"a": "b"}, {1: 1, 2: None}, {"task": ["a"], "label": [1.5]}, "gold", pd.Series({"a": "b"})),
    },
    "points": {
        "box": ((0, 0, 9, 9), {"a": (0, 0, 9, 9)}), "unit": ("percent", "pixels", "fraction"),
        "outside": ("drop", "error"),
        "duplicates": ("first", "each", "error"), "axes": (["x", "y"], ["x"], ["y", "order"]),
        "jobs": ({"image": ["a", "b"], "worker": ["a", "1"]}, {"image": [1, 2], "worker": [1, 2]}),
    },
    "pairs": {"same": ([1], ["a"], [True, "yes"]), "contradictions": ("drop", "each", "error")},
}  # fmt: skip


class Given(NamedTuple):
    """A table, the kind of answers it is read as, and what was put in."""

    kind: str
    table: Any
    options: dict[str, Any]
    columns: dict[str, list[Any]]  # those of plain values, as they went in; empty if the table has another shape
    model: str | None

    def __repr__(self) -> str:
        return f"{self.kind} {brief(self.table)} {brief(self.options)} {self.model}"


def make(rng: random.Random, folder: Path) -> Given:
    """A table of some library, most of whose columns are plain."""
    kind = rng.choice(list(KINDS))
    rows = odd.N if rng.random() < 0.7 else rng.choice([0, 1, 2, 30])
    names = [*KINDS[kind], *rng.sample(OTHERS, rng.choice([0, 0, 1, 2]))]
    plain = {name: _plain(rng, name, rows) for name in names}
    columns: dict[str, Any] = dict(plain)
    for name in rng.sample(names, rng.choice([0, 0, 1, 1, 2]) if rows == odd.N or rng.random() < 0.1 else 0):
        columns[name] = rng.choice(list(odd.columns()))[1]
        plain.pop(name)
    if rng.random() < 0.05:
        columns.pop(rng.choice(names))
        plain = {}
    names = list(OPTIONS[kind])
    chosen = {name: rng.choice(OPTIONS[kind][name]) for name in rng.sample(names, rng.choice([0, 0, 0, 1, 2]))}
    if not chosen and rng.random() < 0.7:  # few ids are often repeated
        chosen = {"contradictions" if kind == "pairs" else "duplicates": "each"}
    model = rng.choice(MODELS[kind]) if rng.random() < 0.3 else None
    return Given(kind, _table(rng, columns), chosen, plain if len(plain) == len(columns) else {}, model)


def _plain(rng: random.Random, name: str, rows: int) -> list[Any]:
    """A column of plain values of one type, with a gap now and then."""
    if name in ("x", "y", "seconds", "weight", "order"):
        return [round(rng.uniform(0, 10), 3) for _ in range(rows)]
    if name == "answer":
        return [rng.choice((0, 1)) for _ in range(rows)]
    texts = [text for text in TEXTS if text.isprintable()] if rng.random() < 0.9 else list(TEXTS)
    values = rng.choice(([1, 2, 3], [-5, 2**62, 7], [0.5, 1.0, 2.25], list(TEXTS[:4]), texts, [True, False]))
    gaps = 0.1 if rng.random() < 0.1 else 0.0
    return [None if rng.random() < gaps else rng.choice(values) for _ in range(rows)]


def _table(rng: random.Random, columns: dict[str, Any]) -> Any:
    """The columns as a table of some library; as a mapping where that library does not take them."""
    try:
        match rng.randrange(8):
            case 0:
                return pd.DataFrame(columns)
            case 1:
                return pl.DataFrame(columns, strict=False)
            case 2:
                return pa.table(columns)
            case 3:
                return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
            case 4:
                return {name: np.asarray(values) for name, values in columns.items()}
            case 5:
                return pl.DataFrame(columns, strict=False).lazy()
            case 6:
                return pa.table(columns).to_reader(max_chunksize=2)
    except BaseException:  # the library refuses them, or panics
        return columns
    return columns


def check(given: Given) -> str:
    """Read the table, and do with the answers what users do."""
    return outcome(lambda: _read(given), lambda answers: _checked(given, answers))


def _read(given: Given) -> Answers:
    kinds: dict[str, Any] = {"labels": cw.Labels, "points": cw.Points, "pairs": cw.Pairs}
    answers: Answers = kinds[given.kind](given.table, **given.options)
    return answers


def _checked(given: Given, answers: Any) -> None:
    intake = answers.intake
    left_out = sum(each.count for each in intake.dropped)
    assert intake.rows_used + left_out == intake.rows_read, (
        f"{intake.rows_used} + {left_out} of {intake.rows_read} rows"
    )
    assert answers.frame().height == intake.rows_used
    assert cw.inspect(answers).as_dict()["rows_read"] == intake.rows_read
    if given.columns and list(given.options.values()) in ([], ["each"]) and intake.shape != "wide":
        assert intake.rows_read == len(next(iter(given.columns.values())))
        _same_values(given, answers)
    outcome(lambda: _used(given, answers))


def _same_values(given: Given, answers: Any) -> None:
    """Check that the values of a table without odd columns are those that went in: as text, as types may become one."""
    frame = answers.frame()
    for name in [name for name in KINDS[given.kind] if name not in ("x", "y", "answer", "left", "right")]:
        if {*map(type, given.columns[name])} in ({str}, {int}, {str, type(None)}):  # pandas has no gaps in integers
            went_in, came_back = ({*map(str, values)} for values in (given.columns[name], frame[name].to_list()))
            assert came_back <= went_in, f"{name}: {came_back - went_in} were not in the table"
    if given.kind == "labels" and not answers.intake.dropped:
        rows = Counter(zip(*(map(str, given.columns[name]) for name in KINDS["labels"]), strict=True))
        if all({*map(type, given.columns[name])} <= {str, int} for name in KINDS["labels"]):
            assert Counter(tuple(map(str, row)) for row in frame.select(KINDS["labels"]).rows()) == rows


def _used(given: Given, answers: Any) -> None:
    cw.agreement(answers)
    if given.model is not None:
        result = cw.aggregate(answers, given.model)
        result.summary().lines()
        for table in result.tables().values():
            table.write_csv()
        cw.review(result, 3)
        if given.kind == "labels":
            cw.LabelStream("dawid-skene").update(answers).result()


def kept(folder: Path) -> Iterator[tuple[str, Given]]:
    """Yield tables that failed once: every odd column, as the labels, the workers and the times of a plain table."""
    for name, _ in odd.columns():
        for role in ("label", "worker", "timestamp"):
            columns = {"task": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), "label": list("xyxxyy")}
            values = next(values for other, values in odd.columns() if other == name)
            yield f"{role}: {name}", Given("labels", columns | {role: values}, {}, {}, "majority-vote")


FUZZERS = [Fuzzer("frames", make, check, kept, slice=40)]
