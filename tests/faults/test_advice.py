"""Errors of models advise what the caller can type: arguments in Python, flags on the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdwise as cw
from crowdwise.errors import CrowdwiseError, EmptyDataError, FeatureError, ParameterError, for_python, for_shell, phrase
from crowdwise.learn import Adaptive

PAIRS = "left,right,worker,answer\na,b,w,1\nb,c,w,0\nc,d,w,1\n"
FEATURES = "item,x,y\na,1,-2\nb,2,-3\nc,8,1\nd,9,2\n"
CLICKS = "image,worker,x,y\ni,a,1,1\ni,b,1.1,1\n"
LABELS = "task,worker,label\n1,a,x\n1,b,y\n2,a,y\n2,b,y\n3,a,z\n3,b,z\n"
TASKS = "task,f\n1,0.5\n2,1.5\n3,2.5\n"


@pytest.fixture
def files(table: Any) -> dict[str, Path]:
    texts = {"PAIRS": PAIRS, "FEATURES": FEATURES, "CLICKS": CLICKS, "LABELS": LABELS, "TASKS": TASKS}
    return {name: table(text, f"{name.lower()}.csv") for name, text in texts.items()}


GRAPH = ("pairs", "PAIRS", "--features", "FEATURES", "--set", "space=graph")
DEEP = ("pairs", "PAIRS", "--features", "FEATURES", "--model", "bayes-scdc", "--set")
LEARN = ("learn", "LABELS", "--features", "TASKS", "--workers")


@pytest.mark.parametrize(("words", "advice"), [
    (GRAPH, "--set space=graph needs at least 20 items; there are 4. Use --set space=features"),
    ((*DEEP, "observation=bernoulli"), "Scale them, or give --set observation=gaussian"),
    ((*DEEP, "hidden=many"), "hidden is 'many'; it must be a tuple of layer sizes, for instance --set hidden=40,40"),
    (("pairs", "PAIRS", "--features", "FEATURES", "--model", "pair-vote"), "Omit --features, or use pair-mixture"),
    (("points", "CLICKS", "--set", "spread=0,1"), "one per axis, for instance --set spread=4.0,4.0"),
    (("aggregate", "LABELS", "--model", "adaptive"), "crowdwise learn FILE --features FILE --workers adaptive"),
    ((*LEARN, "adaptiv"), "workers is 'adaptiv'; it can be a worker side"),
    ((*LEARN, "two-coin"), "two-coin needs 2 classes, but these answers have 3. Use --workers confusion"),
    ((*LEARN, "ideal"), "Give all known labels (--gold FILE), or omit these tasks"),
    ((*LEARN, "cmm", "--set", "groups=9"), "Give at most --set groups=4"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_the_shell_is_advised_flags(
    words: tuple[str, ...], advice: str, files: dict[str, Path], command: Any, tmp_path: Path
) -> None:
    if words[0] == "pairs" and "bayes-scdc" in words:
        pytest.importorskip("torch")
    out = () if words[0] == "aggregate" else ("--out", tmp_path / "out")
    status, _, err = command(*(files.get(word, word) for word in words), *out)
    assert status in (1, 2)
    assert advice in err
    assert "Traceback" not in err


def test_a_missing_library_is_named_with_the_flag_that_needs_it(
    files: dict[str, Path], command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    status, _, err = command(*(files.get(word, word) for word in GRAPH), "--out", tmp_path / "out")
    assert status == 2
    assert "pair-mixture with --set space=graph needs scikit-learn" in err


def _refused(kind: type[CrowdwiseError], call: Any) -> str:
    with pytest.raises(kind) as refused:
        call()
    return str(refused.value.args[0])


def test_advice_that_only_python_meets_has_words_for_both() -> None:
    ids, answers = list("abcd"), cw.Labels([1, 2], ["a", "b"], ["x", "y"])
    nan = np.full((2, 1), np.nan)
    messages = [
        (_refused(ParameterError, lambda: cw.model("scdc").fit(cw.Pairs.none(ids))),
         "Give features=(ids, X), or", "Give --features FILE, or"),
        (_refused(EmptyDataError, lambda: cw.aggregate(cw.Pairs.none(ids))), "or features=", "or --features"),
        (_refused(ParameterError, lambda: Adaptive().fit(answers)),
         "crowdwise.CrowdClassifier(workers=...)", "crowdwise learn FILE --features FILE --workers NAME"),
        (_refused(FeatureError, lambda: cw.CrowdClassifier().fit(nan, answers, tasks=[1, 2])),
         "or use a classifier that accepts NaN", "or in Python use a classifier that accepts NaN"),
    ]  # fmt: skip
    for message, python, shell in messages:
        assert python in for_python(message)
        assert shell in for_shell(message)


def test_a_phrase_has_two_forms() -> None:
    text = f"Say {phrase('this', 'that')}."
    assert (for_python(text), for_shell(text)) == ("Say this.", "Say that.")
