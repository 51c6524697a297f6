"""Every public function, with odd values for every argument: it returns a result, or raises an error of Crowdwise."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import odd
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.answers import options_of
from crowdwise.errors import CrowdwiseError

LABELS = {"task": [1, 1, 2, 2, 3, 3], "worker": list("ababab"), "label": list("xyxxyy")}
CLICKS = {"image": list("aaabbb"), "worker": list("uvwuvw"), "x": [1.0, 2, 3, 4, 5, 6], "y": [1.0, 2, 3, 4, 5, 6]}
PAIRS = {"left": list("abcabc"), "right": list("bcabca"), "worker": list("uuuvvv"), "answer": [1, 0, 1, 0, 1, 0]}
TRUTH = {"task": [1, 2, 3], "label": list("xxy")}
IDS, X = list("abc"), np.arange(6.0).reshape(3, 2)
READERS = ("source", "notes", "where", "options", "part")  # arguments for readers of files, not for callers
# Public names that are no functions of values: modules, classes that fits make, tuples.
NOT_CALLED = {
    "__version__", "compat", "errors", "learn", "simulate", "spark", "LabelsResult", "PointsResult", "PairsResult",
    "Decision",
}  # fmt: skip
# Methods and functions that take arrays of numbers which Crowdwise itself made, and no values of a caller.
INTERNAL = {
    "of", "only", "take", "shards", "replaced", "with_gold", "identity", "from_any", "clicks_of", "same_chance",
    "codes",
    "confusions", "matrices", "own_warnings", "assign_workers", "build_crowd", "confusion", "draw_labels", "groups",
    "hammer_spammer", "one_coin", "perturbed", "answers_about", "sorting_jobs",
}  # fmt: skip


CALLED_BACK = {"watch", "stop", "keep", "spread", "where"}  # functions of the caller
FEW = ("None", "5", "nan", "2**70", "x", "NUL", "surrogate", "b'x'", "object", "2-d", "Broken")  # where fits are slow
REFUSED = {"questions labels", "Labels.numbers"}  # calls that need an export, or a column of numbers


class Call(NamedTuple):
    """A call of a public function that is answered, and the names of its arguments."""

    function: Callable[..., Any]
    good: dict[str, Any]
    names: list[str]
    by_sklearn: bool = False


@functools.cache
def labels() -> cw.LabelsResult:
    return cw.aggregate(cw.Labels(LABELS, gold={1: "x"}), "groups")


@functools.cache
def points() -> cw.PointsResult:
    return cw.aggregate(cw.Points(CLICKS, box=(0, 0, 9, 9)), "dbscan")


@functools.cache
def pairs() -> cw.PairsResult:
    return cw.aggregate(PAIRS, "k-means-items", clusters=2, features=(IDS, X))


def call(function: Callable[..., Any], options: dict[str, list[str]] | None = None, /, **good: Any) -> Call:
    """A call; `options` names what stands for the keyword arguments that are collected."""
    parameters = inspect.signature(function).parameters.values()
    named = [each.name for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    more = [name for names in (options or {}).values() for name in names]
    return Call(function, good, [name for name in dict.fromkeys([*named, *more]) if name not in READERS])


def reading(kind: str) -> dict[str, list[str]]:
    return {"options": list(options_of(kind))}


def settings(model: str) -> dict[str, list[str]]:
    return {"settings": [each.name for each in fields(type(cw.model(model)))]}


def aggregate(answers: Any, model: Any = None, **options: Any) -> Any:
    return cw.aggregate(answers, model, **options)


@functools.cache
def stream() -> cw.LabelStream:
    return cw.LabelStream("dawid-skene").update(LABELS)


@functools.cache
def clicks() -> cw.ClickStream:
    return cw.ClickStream().update(CLICKS)


def calls() -> Iterator[tuple[str, Call]]:
    """Yield a call of every public function and method that takes arguments."""
    yield "Labels", call(cw.Labels, data=LABELS)
    yield "Labels of arrays", call(cw.Labels, data=LABELS["task"], workers=LABELS["worker"], labels=LABELS["label"])
    yield "Points", call(cw.Points, data=CLICKS)
    yield "Pairs", call(cw.Pairs, data=PAIRS)
    for kind, table in (("labels", LABELS), ("points", CLICKS), ("pairs", PAIRS)):
        yield f"read {kind}", call(cw.read, reading(kind), path=table)
        yield f"convert {kind}", call(cw.convert, reading(kind), path=table, out="out.csv")
        yield f"inspect {kind}", call(cw.inspect, answers=table)
        yield f"agreement {kind}", call(cw.agreement, answers=table)
    yield "aggregate", call(aggregate, reading("labels"), answers=LABELS, model="majority-vote")
    yield "aggregate points", call(aggregate, reading("points"), answers=CLICKS, model="dbscan")
    yield (
        "aggregate pairs",
        call(aggregate, reading("pairs"), answers=PAIRS, model="k-means-items", clusters=2, features=(IDS, X)),
    )
    yield "compare", call(cw.compare, answers=LABELS, models=["majority-vote"], folds=0)
    yield "compare points", call(cw.compare, answers=CLICKS, models=["dbscan"], against=points())
    yield "compare pairs", call(cw.compare, answers=PAIRS, models=["pair-vote"], folds=0, against=pairs())
    yield "read_points", call(cw.read_points, path=CLICKS)
    yield "read_pairs", call(cw.read_pairs, path=PAIRS)
    yield "questions labels", call(cw.questions, path=LABELS)
    yield "read_content", call(cw.read_content, file={"task": [1], "text": ["a"]})
    yield "read_features", call(cw.read_features, path="features.csv")
    yield "load", call(cw.load, path="saved.crowdwise")
    yield "export", call(cw.export, result=labels(), to="csv", folder="exported")
    for number, of in enumerate((labels, points, pairs)):
        result, kind = of(), ("labels", "points", "pairs")[number]
        yield f"review {kind}", call(cw.review, result=result)
        yield f"next_answers {kind}", call(cw.next_answers, result=result, budget=3)
        yield f"save {kind}", call(result.save, path="saved.crowdwise")
        yield (
            f"report {kind}",
            call(
                result.report,
                {"options": ["comparison", "cost", "judged", "pictures", "truth", "within", "content", "command"]},
                path="report.html",
            ),
        )
        yield (
            f"plot {kind}",
            call(
                result.plot,
                {"options": ["top", "workers", "worker", "values", "curve", "image", "picture"]},
                name="tasks",
            ),
        )
    yield "next_tasks", call(cw.next_tasks, result=labels(), budget=3)
    yield "next_images", call(cw.next_images, result=points(), budget=3)
    yield "next_pairs", call(cw.next_pairs, result=pairs(), budget=3)
    yield "cost_curve", call(cw.cost_curve, result=labels())
    yield "expected_accuracy", call(cw.expected_accuracy, result=labels())
    yield "label_sets", call(cw.label_sets, result=labels(), coverage=0.5)
    yield "plan", call(cw.plan, target=0.9, accuracy=0.8)
    yield "rate", call(cw.rate, result=labels())
    for name in ("auc", "roc", "match_labels", "divergence", "expertise"):
        yield name, call(getattr(cw, name), result=labels(), truth=TRUTH)
    yield "rand_index", call(cw.rand_index, result=labels(), groups={"a": 1, "b": 2})
    yield "match_objects", call(cw.match_objects, found=points(), truth=CLICKS, within=2.0)
    yield "match_clusters", call(cw.match_clusters, result=pairs(), truth={"item": IDS, "label": [1, 1, 2]})
    yield "soft_assignments", call(cw.soft_assignments, result=cw.aggregate(CLICKS), image="a")
    yield "embed_points", call(cw.embed_points, X=np.arange(60.0).reshape(20, 3) ** 2, workers=list("ab" * 10), dims=2)
    yield "models", call(cw.models)
    yield "formats", call(cw.formats)
    for name in cw.models().filter(pl.col("kind") != "learn")["name"].to_list():
        yield f"model {name}", call(functools.partial(cw.model, name), settings(name))
    yield "model", call(lambda name: cw.model(name), name="pooled")
    yield "Run", call(cw.Run)
    yield (
        "run",
        call(
            lambda **run: cw.aggregate(LABELS, "dawid-skene", run=cw.Run(**run)),
            {"run": [each.name for each in fields(cw.Run) if each.name != "journal"]},
        ),
    )
    yield from _of_answers()
    yield from _of_streams()
    yield from _of_simulators()
    yield from _of_classifiers()


def _of_answers() -> Iterator[tuple[str, Call]]:
    answers = labels().answers
    for name, good in {
        "by_row": {"tasks": [1, 2]}, "numbers": {"column": "x"}, "task_number": {"task": 1},
        "worker_number": {"worker": "a"},
        "without": {"workers": ["a"]},
    }.items():  # fmt: skip
        yield f"Labels.{name}", call(getattr(answers, name), **good)
    yield "Pairs.none", call(cw.Pairs.none, ids=IDS)
    yield "Pairs.on", call(pairs().answers.on, ids=IDS)
    for name, good in {
        "confusion": {"worker": "a"}, "explain": {"task": 1}, "group_confusion": {"group": 1},
        "predict": {"answers": LABELS},
        "assign": {"answers": LABELS},
    }.items():  # fmt: skip
        yield f"LabelsResult.{name}", call(getattr(labels(), name), **good)
    yield "PointsResult.of", call(points().of, image="a")
    yield "PairsResult.of", call(pairs().of, cluster=1)
    yield "PairsResult.assign", call(pairs().assign, X=X)
    yield "PairsResult.probability_same", call(pairs().probability_same, left=["a"], right=["b"])


def _of_streams() -> Iterator[tuple[str, Call]]:
    for make, table in ((stream, LABELS), (clicks, CLICKS)):
        kind = type(make()).__name__
        yield kind, call(type(make()))
        for name, good in {
            "update": {"answers": table}, "remove": {"answers": table}, "result": {},
            "save": {"path": "stream.crowdwise"},
            "decide": {"item": next(iter(table.values()))[0]}, "load": {"path": "stream.crowdwise"},
        }.items():  # fmt: skip
            yield (
                f"{kind}.{name}",
                call(
                    functools.partial(_on, make, name),
                    {"": list(inspect.signature(getattr(make(), name)).parameters)},
                    **good,
                ),
            )
    yield "LabelStream.probabilities", call(stream().probabilities, task=1)


def _on(make: Callable[[], Any], name: str, **arguments: Any) -> Any:
    return getattr(copy.deepcopy(make()), name)(**arguments)


def _of_simulators() -> Iterator[tuple[str, Call]]:
    small = {"tasks": 5, "workers": 3, "per_task": 2}
    for kind in cw.simulate.SIMULATORS:
        own = inspect.signature(cw.simulate.SIMULATORS[kind]).parameters
        yield (
            f"crowd {kind}",
            call(cw.simulate.crowd, {"own": [name for name in own if name != "rng"]}, kind=kind, **small),
        )
    yield "experts", call(cw.simulate.experts, **small)
    yield "triangle", call(cw.simulate.triangle, **small)
    yield "levels", call(cw.simulate.levels, truth=[0, 1, 2] * 4, workers=3, per_task=2)
    yield "clicks", call(cw.simulate.clicks, workers=2, total=20)
    yield "pinwheel", call(cw.simulate.pinwheel, clusters=2, per_cluster=5, asked=6, workers=2, each=3)
    for made in (
        cw.simulate.crowd(**small),
        cw.simulate.clicks(workers=2, total=20),
        cw.simulate.pinwheel(per_cluster=5, asked=6, workers=2, each=3),
    ):
        yield f"{type(made).__name__}.save", call(made.save, folder="simulated")


def _of_classifiers() -> Iterator[tuple[str, Call]]:
    answers = cw.Labels({**LABELS, "task": list("aabbcc")})

    def fitted(**given: Any) -> Any:
        arguments = {"X": X, "answers": answers, "tasks": IDS} | {
            name: given.pop(name) for name in ("X", "answers", "tasks", "run") if name in given
        }
        return cw.CrowdClassifier(**given).fit(**arguments)

    def sk(function: Callable[..., Any], *options: Any, **good: Any) -> Call:
        return call(function, *options, **good)._replace(by_sklearn=True)

    yield (
        "CrowdClassifier",
        sk(fitted, {"": [*inspect.signature(cw.CrowdClassifier).parameters, "X", "answers", "tasks", "run"]}),
    )
    known = fitted()
    yield "predict", sk(known.predict, X=X)
    yield "predict_proba", sk(known.predict_proba, X=X)
    yield "predictions", sk(known.predictions, X=X, tasks=IDS)
    yield "score", sk(known.score, X=X, y=["x", "y", "y"])
    yield "CrowdClassifier.save", call(known.save, path="classifier.crowdwise")
    yield "CrowdClassifier.report", call(known.report, path="classifier.html")


def tried(name: str, made: Call) -> Iterator[tuple[str, BaseException]]:
    """Yield what must not be raised, for every argument and odd value."""
    for argument in made.names:
        for value in odd.VALUES if "points" not in name else FEW:
            try:
                made.function(**made.good | {argument: odd.VALUES[value]})
            except CrowdwiseError as error:
                if not str(error).strip():
                    yield f"{name}({argument}={value})", error
            except BaseException as error:
                if not _allowed(made, argument, odd.VALUES[value], error):
                    yield f"{name}({argument}={value})", error


def _allowed(made: Call, argument: str, value: object, error: BaseException) -> bool:
    """What a caller's own function raises is the caller's; data of classifiers are checked by scikit-learn, as its
    conventions want."""
    if argument in CALLED_BACK and callable(value):
        return True
    return made.by_sklearn and isinstance(error, (TypeError, ValueError, OverflowError, RuntimeError))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of its own, since "x" is a good name of a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("crowdwise.acquisition.planning.TASKS", 1000)
    (tmp_path / "features.csv").write_text("task,x0,x1\na,1,2\nb,3,4\nc,5,6\n")
    labels().save("saved.crowdwise")
    stream().save("stream.crowdwise")


@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore")
def test_odd_arguments_of_public_functions_are_answered_or_refused() -> None:
    wrong = [f"{where}: {error!r:.200}" for name, made in calls() for where, error in tried(name, made)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.usefixtures("folder")
@pytest.mark.filterwarnings("ignore")
def test_the_calls_are_answered_without_odd_values() -> None:
    for name, made in calls():
        if name not in REFUSED:
            made.function(**made.good)


def test_every_public_function_is_tried() -> None:
    tried = {name.split()[0].split("(")[0] for name, _ in calls()}
    classes = {name for name in cw.__all__ if inspect.isclass(getattr(cw, name))}
    models = {name for name in classes if hasattr(getattr(cw, name), "settings")}
    assert set(cw.__all__) - NOT_CALLED - models - tried - {"CrowdClassifier"} == set()
    for kind in (
        cw.Labels,
        cw.Points,
        cw.Pairs,
        cw.LabelsResult,
        cw.PointsResult,
        cw.PairsResult,
        cw.LabelStream,
        cw.ClickStream,
    ):
        methods = {name for name in dir(kind) if name[0] != "_" and callable(getattr(kind, name))}
        takes = {name for name in methods if len(inspect.signature(getattr(kind, name)).parameters) > 1}
        assert {
            name for name in takes - INTERNAL if f"{kind.__name__}.{name}" not in tried and name not in tried
        } == set()
