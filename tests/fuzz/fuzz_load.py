"""Saved results of every kind, damaged or crafted: with right checksums, since anyone can make those.

What loads must work: every table, summary, page and question of a result that was loaded, with the compiled kernels as
well, gives an answer or an error of Crowdwise.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import io
import json
import random
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from fuzzing import CASES, Fuzzer, in_time, kept_files, outcome
from safetensors.numpy import load as arrays_of
from safetensors.numpy import save as bytes_of

import crowdwise as cw
from crowdwise import kernels
from crowdwise.engine.run import Checkpoint
from crowdwise.errors import CrowdwiseError, Interrupted
from crowdwise.learn import load as load_classifier
from crowdwise.result.store import read_checkpoint, write_checkpoint

WRONG = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, 10**40, -1e308, 0.5, 1e-300, "", "x", "pooled", "1e9", "\udc80",
    [], ["x"], [[]], {}, {"pairs": 1}, {"pairs": [[1, 2]]}, float("nan"), float("inf"), "</script>", "\x1b[2J",
    "a\x00b",
)  # fmt: skip
CELLS = (-1, -2, 0, 1, 2, 5, 127, 2**31 - 1, -(2**31), 1e-300, 1e300, 0.5, 1.5, float("nan"), float("inf"))
TYPES = ("int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64", "bool")
ENDINGS = ("result.crowdwise", "stream.crowdwise", "classifier.crowdwise", "checkpoint.crowdwise")


class Saved(NamedTuple):
    """What was saved, as files by their paths in the folder."""

    files: dict[str, bytes]

    @classmethod
    def by(cls, save: Callable[[Path], object]) -> Saved:
        """Return what a function saves to a folder."""
        with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")
            patch.setattr("time.perf_counter", lambda: 0.0)  # the same seed makes the same bytes
            patch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
            folder = Path(name)
            save(folder)
            found = (path for path in folder.rglob("*") if path.is_file())
            return cls({path.relative_to(folder).as_posix(): path.read_bytes() for path in found})


# What is saved


@functools.cache
def answers() -> cw.Labels:
    sim = cw.simulate.crowd("confusion", tasks=14, workers=5, classes=3, per_task=4, seed=3)
    frame = sim.answers.frame().with_columns(
        start=pl.Series([f"2026-01-01T10:{n % 60:02d}:00Z" for n in range(len(sim.answers))]),
        seconds=pl.Series(np.arange(len(sim.answers)) % 9 + 1.0),
        is_check=pl.Series([n % 5 == 0 for n in range(len(sim.answers))]),
    )
    gold = sim.truth[:4]
    return cw.Labels(frame, gold=gold)


@functools.cache
def points() -> cw.Points:
    rng = np.random.default_rng(0)
    rows = [(image, f"w{w}", *(rng.normal(spot, 0.1))) for image in "ab" for w in range(5) for spot in ((2, 2), (6, 7))]
    return cw.Points(pl.DataFrame(rows, ["image", "worker", "x", "y"], orient="row"), box=(0, 0, 10, 10))


@functools.cache
def classifier() -> tuple[Any, cw.Labels]:
    plain = cw.Labels(answers().frame().select("task", "worker", "label"))
    return np.random.default_rng(0).normal(size=(plain.n_tasks, 2)), plain


def save_classifier(folder: Path, **settings: Any) -> None:
    X, labels = classifier()
    cw.CrowdClassifier(**settings).fit(X, labels, labels.tasks.to_list()).save(folder)


def save_pairs(folder: Path, model: str | None) -> None:
    sim = cw.simulate.pinwheel(clusters=3, per_cluster=8, asked=15, workers=4, each=20, seed=1)
    features = None if model is None else sim.features
    cw.aggregate(sim.pairs, model or "pair-mixture", features=features).save(folder)


def save_stream(folder: Path, model: str | None = None) -> None:
    frame = answers().frame().select("task", "worker", "label", "seconds")
    stream = cw.LabelStream(model).update(frame[:30]).update({"task": ["later"], "gold": ["c1"]})
    stream.update(frame[25:]).save(folder)


def save_clicks(folder: Path) -> None:
    stream = cw.ClickStream()
    for part in points().shards(3):
        stream.update(part)
    stream.decide(points().images[0])
    stream.save(folder)


def save_checkpoint(folder: Path, data: Any, model: str) -> None:
    left = iter(range(3))
    try:
        cw.aggregate(data, model, run=cw.Run(stop=lambda: next(left, None) is None))
    except Interrupted as broken:
        write_checkpoint(folder / "checkpoint.crowdwise", broken.checkpoint)


def save_in_parts(folder: Path) -> None:
    from crowdwise.io.stored import Folder, StoredLabels, write_part

    with tempfile.TemporaryDirectory() as name:
        home = Folder(Path(name))
        parts = list(answers().shards(2))
        for number, part in enumerate(parts):
            write_part(home.part(number), cw.Labels(part.frame().select("task", "worker", "label")))
        cw.aggregate(StoredLabels.join(home, len(parts)), "dawid-skene").save(folder)


LABELS = ("pooled", "dawid-skene", "one-coin", "glad", "mace", "groups", "majority-vote", "weighted-vote")
SAVES: dict[str, dict[str, Callable[[Path], object]]] = {
    "labels": {name: lambda to, name=name: cw.aggregate(answers(), name).save(to) for name in LABELS},
    "points": {
        "click-mixture": lambda to: cw.aggregate(points()).save(to),
        "k-means": lambda to: cw.aggregate(points(), "k-means", objects=2).save(to),
    },
    "pairs": {
        "mcvc": lambda to: save_pairs(to, "mcvc"),
        "gaussian": lambda to: save_pairs(to, "gaussian-mixture"),
        "alone": lambda to: save_pairs(to, None),
    },
    "classifier": {
        "confusion": lambda to: save_classifier(to),
        "pooled": lambda to: save_classifier(to, workers="pooled"),
        "cmm": lambda to: save_classifier(to, workers="cmm"),
    },
    "stream": {"pooled": save_stream, "one-coin": lambda to: save_stream(to, "one-coin"), "clicks": save_clicks},
    "checkpoint": {
        **{name: lambda to, name=name: save_checkpoint(to, answers(), name) for name in ("pooled", "glad")},
        "clicks": lambda to: save_checkpoint(to, points(), "click-mixture"),
    },
    "parts": {"dawid-skene": save_in_parts},
}


@functools.cache
def saved(kind: str, name: str) -> Saved:
    return Saved.by(SAVES[kind][name])


# How it is damaged


def crafted(rng: random.Random, data: bytes) -> bytes:
    """Return a saved file with some values changed, and right checksums."""
    head, parts = opened(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        what = rng.random()
        if what < 0.45:
            damage_plain(rng, head)
        elif what < 0.85:
            name = rng.choice([name for name in parts if name.endswith("safetensors")])
            parts[name] = damage_arrays(rng, parts[name])
        else:
            name = rng.choice(list(parts))
            parts[name] = damage_table(rng, parts[name]) if name.endswith("parquet") else damage_bytes(rng, parts[name])
            return packed(rng, head, parts)  # what is damaged once may not be read again
    return packed(rng, head, parts)


def opened(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(parts.pop("result.json")), parts


def packed(rng: random.Random, head: dict[str, Any], parts: dict[str, bytes]) -> bytes:
    if "sha256" in head and rng.random() < 0.98:
        head["sha256"] = {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}
    text = json.dumps(head).encode()
    how = zipfile.ZIP_DEFLATED if rng.random() < 0.02 else zipfile.ZIP_STORED
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", how) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, part in {"result.json": text, **parts}.items():
            archive.writestr(name, part)
        if rng.random() < 0.02:
            archive.writestr(rng.choice(["result.json", "more.parquet", *parts]), b"")
    return out.getvalue()


def damage_plain(rng: random.Random, head: dict[str, Any]) -> None:
    """Replace, remove or add a value of the JSON."""
    places = [place for place in walk(head) if place[1] not in ("format", "holds", "sha256")]
    holder, key = rng.choice(places)
    what = rng.random()
    if what < 0.7:
        holder[key] = copy.deepcopy(rng.choice(WRONG))
    elif what < 0.8:
        del holder[key]
    elif what < 0.9:
        other, name = rng.choice(places)
        holder[key] = copy.deepcopy(other[name])
    elif isinstance(holder, dict):
        holder[rng.choice(("x", "", "answers.tasks", "params"))] = copy.deepcopy(rng.choice(WRONG))
    else:
        holder.append(copy.deepcopy(rng.choice(WRONG)))


def walk(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a JSON value: what holds it, and its key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from walk(value[key])


def damage_arrays(rng: random.Random, data: bytes) -> bytes:
    """Change one array: its values, type or shape, or remove it."""
    arrays = {name: np.array(array) for name, array in sorted(arrays_of(data).items())}  # read in any order
    if not arrays:
        return data
    name = rng.choice(list(arrays))
    array, what = arrays[name], rng.random()
    with np.errstate(all="ignore"):
        if what < 0.5 and array.size:
            flat = array.reshape(-1)
            for _ in range(rng.choice((1, 1, 3, array.size))):
                flat[rng.randrange(array.size)] = np.float64(rng.choice(CELLS)).astype(array.dtype)
        elif what < 0.6:
            array = array.astype(rng.choice(TYPES))
        elif what < 0.7:
            array = array[: rng.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
        elif what < 0.75:
            array = np.concatenate([array, array[:1]]) if array.ndim else np.zeros((2, 2))
        elif what < 0.8:
            array = rng.choice((array.T, array[None], array.ravel(), np.zeros(0, array.dtype)))
        elif what < 0.9 and array.ndim:
            array = array[np.random.default_rng(rng.getrandbits(32)).permutation(len(array))]
        elif what < 0.95:
            array = np.full_like(array, np.float64(rng.choice(CELLS)).astype(array.dtype))
        else:
            array = arrays[rng.choice(list(arrays))]
    arrays[name] = np.ascontiguousarray(array)
    if rng.random() < 0.03:
        del arrays[name]
    return bytes(bytes_of(arrays))


def damage_table(rng: random.Random, data: bytes) -> bytes:
    """Change the rows, the columns or the types of a table."""
    if rng.random() < 0.3:
        return damage_bytes(rng, data)
    table = pl.read_parquet(data)
    name, what = rng.choice(table.columns or [""]), rng.random()
    if not table.width:
        table = pl.DataFrame({"x": [1, 2]})
    elif what < 0.3:
        table = table.head(rng.randrange(table.height + 1)) if what < 0.2 else pl.concat([table, table])
    elif what < 0.45:
        table = table.drop(name) if what < 0.4 else table.rename({name: "x"})
    elif what < 0.6:
        table = table.with_columns(pl.lit(rng.choice((None, 0, -1.5, "", "x", b"x", [1]))).alias(name))
    elif what < 0.7:
        table = table.with_columns(table[name].gather(np.random.default_rng(1).permutation(table.height)))
    elif what < 0.9:
        kind: Any = rng.choice((pl.Int8, pl.Float64, pl.String, pl.Categorical, pl.Date, pl.Binary, pl.Boolean))
        with suppress(pl.exceptions.PolarsError):  # there are no such numbers of days, or no such cast
            table = table.with_columns(pl.col(name).cast(kind, strict=False))
    else:
        table = table.with_columns(pl.struct(name).alias(name), x=1)
    out = io.BytesIO()
    table.write_parquet(out)
    return out.getvalue()


def damage_bytes(rng: random.Random, data: bytes) -> bytes:
    """Change some bits, or cut off the end."""
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data) + 1)]
    changed = bytearray(data or b"x")
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def damaged(kind: str) -> Callable[[random.Random, Path], Path]:
    """Return what writes a damaged result of a kind to a folder."""

    def make(rng: random.Random, folder: Path) -> Path:
        chosen = rng.choice(list(SAVES[kind]))
        warm(kind, chosen)
        files = dict(saved(kind, chosen).files)
        name = rng.choice(list(files)) if rng.random() < 0.2 else next(name for name in files if name in ENDINGS)
        whole = name not in ENDINGS or rng.random() < 0.15
        files[name] = (damage_bytes if whole else crafted)(rng, files[name])
        return written(files, folder, rng.choice(("fast", "plain")))

    return make


def written(files: dict[str, bytes], folder: Path, chosen: str) -> Path:
    """Write files to a folder, and the name of the kernels to use."""
    (folder / chosen).touch()
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


# What is asked of what was loaded


@contextmanager
def chosen_kernels(folder: Path) -> Iterator[None]:
    """Use the kernels that the input names."""
    before = kernels.MAX_PLAIN_CELLS, kernels.MAX_PLAIN_CLICKS
    if (folder / "fast").exists():
        kernels.MAX_PLAIN_CELLS = kernels.MAX_PLAIN_CLICKS = -1
    try:
        yield
    finally:
        kernels.MAX_PLAIN_CELLS, kernels.MAX_PLAIN_CLICKS = before


Use = Callable[[Any, Path], Iterator[Callable[[], object]]]  # what is asked of what was loaded


def loads(load: Callable[[Path], Any], use: Use) -> Callable[[Path], str]:
    """Return the check of a folder: it is refused, or everything works."""

    def check(folder: Path) -> str:
        def used(found: Any) -> None:
            for ask in use(found, folder):
                outcome(ask)

        with chosen_kernels(folder):
            return outcome(lambda: load(folder), used)

    return check


def questions(result: Any, folder: Path) -> Iterator[Callable[[], object]]:
    """Yield everything that can be asked of a result."""
    yield lambda: repr(result)
    yield lambda: result.warnings
    yield lambda: {name: getattr(table, "collect", lambda t=table: t)() for name, table in result.tables().items()}
    yield lambda: "\n".join(result.summary().lines())
    yield lambda: json.dumps(result.summary().as_dict(), allow_nan=False).encode()
    yield lambda: result._repr_html_().encode()
    yield lambda: result.report(folder / "page.html")
    yield lambda: again(result, folder / "again")
    yield lambda: cw.next_answers(result, budget=4)
    yield lambda: cw.review(result, top=3)
    if result.kind == "labels":
        yield from of_labels(result)
    elif result.kind == "points":
        yield lambda: result.of(result.answers.images[0])
    else:
        yield lambda: result.of(1)
        yield lambda: result.assign(np.zeros((2, 2)))
        yield lambda: result.probability_same(result.answers.items[:2], result.answers.items[1:3])


def of_labels(result: Any) -> Iterator[Callable[[], object]]:
    new = {"task": [1, 1, 2], "worker": ["w1", "new", "w2"], "label": ["c1", "c2", "c1"]}
    yield result.confusion
    yield lambda: result.confusion(result.answers.workers[0])
    yield lambda: result.predict(new)
    yield lambda: result.assign(new)
    yield lambda: result.members
    yield lambda: cw.cost_curve(result)
    yield lambda: cw.expected_accuracy(result)
    if not result.in_parts:
        yield lambda: [str(result.explain(task)) for task in result.answers.tasks.head(3).to_list()]
        yield lambda: cw.agreement(result.answers)
        yield lambda: list(result.answers.shards(2))
        yield lambda: cw.rate(result)
        yield lambda: cw.aggregate(result.answers, "dawid-skene", max_iter=3)


def again(result: Any, folder: Path) -> None:
    """Save a result and load it: what was loaded once is sound, so it is loaded again."""
    result.save(folder)
    try:
        cw.load(folder)
    except CrowdwiseError as error:
        raise AssertionError(f"what was loaded is refused when it was saved again: {error}") from error


def of_classifier(model: Any, folder: Path) -> Iterator[Callable[[], object]]:
    X, _ = classifier()
    yield lambda: model.predict(X)
    yield lambda: model.predict_proba(X[:2])
    yield lambda: model.save(folder / "again")
    yield lambda: load_classifier(folder / "again").predict(X)
    yield lambda: model.report(folder / "model.html")
    yield from questions(model.result_, folder)


def load_stream(folder: Path) -> Any:
    """Load a stream of the kind that the file names, or of another."""
    try:
        return cw.LabelStream.load(folder)
    except CrowdwiseError:
        return cw.ClickStream.load(folder)


def of_stream(stream: Any, folder: Path) -> Iterator[Callable[[], object]]:
    item = stream._images if isinstance(stream, cw.ClickStream) else stream._held.tasks.values
    yield lambda: repr(stream)
    yield lambda: [stream.decide(name) for name in list(item)[:3]]
    yield lambda: stream.workers
    yield lambda: stream.objects if isinstance(stream, cw.ClickStream) else stream.labels
    yield lambda: stream.save(folder / "again")
    yield lambda: type(stream).load(folder / "again")
    if isinstance(stream, cw.ClickStream):
        clicks = {"image": ["a", "c"], "worker": ["w1", "w9"], "x": [2.0, 6.0], "y": [2.0, 7.0]}
        yield lambda: stream.update(cw.Points(clicks, box=(0, 0, 10, 10)))
        yield lambda: stream.remove({"image": ["a"], "worker": ["w2"]})
    else:
        new = {"task": ["t1", "later"], "worker": ["w1", "w9"], "label": ["c1", "c2"], "seconds": [1.0, 2.0]}
        yield lambda: stream.update(new)
        yield lambda: stream.remove({"task": ["t1"], "worker": ["w1"]})
        yield lambda: stream.probabilities(stream._held.tasks.values[0])
    yield lambda: stream.result().tables()


def load_checkpoint(folder: Path) -> tuple[Checkpoint, bool]:
    found = Checkpoint(*read_checkpoint(folder / "checkpoint.crowdwise"))
    return found, any(name.startswith(("found", "images", "merge")) for name in found.stages)


def of_checkpoint(found: Any, folder: Path) -> Iterator[Callable[[], object]]:
    checkpoint, _ = found
    for data, model in ((answers(), "pooled"), (answers(), "glad"), (points(), "click-mixture")):
        yield lambda data=data, model=model: cw.aggregate(data, model, run=cw.Run(resume=checkpoint)).tables()


def kept_cases(kind: str) -> Callable[[Path], Iterator[tuple[str, Path]]]:
    """Return the cases of a kind, if there are some."""
    name = f"load-{kind}"
    return kept_files(name) if (CASES / name).exists() else lambda _: iter(())


@functools.cache
def warm(kind: str, name: str) -> None:
    """Load and use what is not damaged, once in a process, by the compiled kernels: compiling takes its time."""
    with in_time(300), tempfile.TemporaryDirectory() as folder:
        written(saved(kind, name).files, Path(folder), "fast")
        assert CHECKS[kind](Path(folder)) == "answered", name


CHECKS = {
    "labels": loads(cw.load, questions),
    "points": loads(cw.load, questions),
    "pairs": loads(cw.load, questions),
    "parts": loads(cw.load, questions),
    "classifier": loads(load_classifier, of_classifier),
    "stream": loads(load_stream, of_stream),
    "checkpoint": loads(load_checkpoint, of_checkpoint),
}
FUZZERS = [Fuzzer(f"load-{kind}", damaged(kind), check, kept_cases(kind), slice=4) for kind, check in CHECKS.items()]
