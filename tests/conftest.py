"""Fixtures shared by all tests: real data, simulated and hostile crowds, both versions of the kernels, a browser."""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import crowdwise as cw
from crowdwise.cli import main

settings.register_profile(
    "crowdwise",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("crowdwise")


# Libraries that an environment may lack, because it is small or because there is no build for its Python.
LACKING = {
    module: f"{name} is not installed; to run this test: pip install '{package}'"
    for module, name, package in (
        ("torch", "torch", "crowdwise[deep]"),
        ("metric_learn", "metric-learn", "metric-learn"),
    )
    if importlib.util.find_spec(module) is None
}


def _lacks(problem: BaseException | None) -> str | None:
    """The reason to skip a test that failed for want of a library; None if it failed otherwise."""
    while problem is not None:
        for module, reason in LACKING.items():
            if f"No module named '{module}" in str(problem) or f"needs {reason.split()[0]}, which is" in str(problem):
                return reason
        problem = problem.__cause__ or problem.__context__
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Skip a test that needs a library which this environment lacks."""
    try:
        return (yield)
    except Exception as problem:
        if reason := _lacks(problem):
            pytest.skip(reason)
        raise


pytest_runtest_setup = pytest_runtest_call  # for fixtures that need it


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module of tests that imports a library which this environment lacks."""
    report = yield
    if report.failed and (reason := _lacks(Exception(report.longreprtext))):
        report.outcome, report.longrepr = "skipped", (str(report.nodeid), 0, f"Skipped: {reason}")
    return report


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the labelled data sets, beside the project; tests that need it are skipped without it."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the labelled sets are not here: no folder ../shared/data beside the project")
    return folder


@pytest.fixture(scope="session")
def crowd() -> cw.simulate.Crowd:
    """A simulated crowd: 720 answers, 3 classes, confusion matrices with about 65 % on the diagonal."""
    return cw.simulate.crowd("confusion", tasks=120, workers=15, classes=3, per_task=6, accuracy=0.65, seed=11)


HOSTILE = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a; b", "'\"><svg/onload=alert(1)>",
    "{{7*7}}", "javascript:alert(1)", "<!--<script>", "]]>", "&lt;b&gt;", "turned\u202egnorw", "nul\0nul",
    "line\u2028line", "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07", "\x1b[2Jgone", "over\rwritten", "\x9b2J",
    "=1+1", "+1", "-1", "@x", "M" * 1_000_000,
)  # fmt: skip


@pytest.fixture(scope="session")
def hostile() -> cw.Labels:
    """Names that mean something to browsers, terminals, spreadsheets, templates: of tasks, workers, labels, the file.

    The second worker always gives the first label, the fourth copies the third, so that reasons name them, too.
    """
    rng = random.Random(5)
    *short, longest = HOSTILE
    rows = []
    for n, name in enumerate(short * 3):
        said = [name if rng.random() < 0.6 else rng.choice(short) for _ in short]
        said[1], said[3] = short[0], said[2]
        task = name if n < len(short) else f"{name} {n}"
        rows += [(task, worker, label, rng.uniform(1, 9)) for worker, label in zip(short, said, strict=True)]
    rows += [(task, longest, longest, 2.0) for task in HOSTILE] + [(longest, short[5], longest, 2.0)]
    columns = dict(zip(("task", "worker", "label", "seconds"), map(list, zip(*rows, strict=True)), strict=True))
    return cw.Labels(columns, source="</title><script>alert(1)</script>\x1b[2J.csv")


@pytest.fixture(scope="session")
def hostile_result(hostile: cw.Labels) -> cw.LabelsResult:
    """A result of the hostile answers."""
    return cw.aggregate(hostile)


@pytest.fixture(scope="session")
def hostile_page(hostile_result: cw.LabelsResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of its page, with another model beside it."""
    votes = cw.compare(hostile_result.answers, ["majority-vote"], folds=0, against=hostile_result)
    return hostile_result.report(tmp_path_factory.mktemp("hostile") / "report.html", comparison=votes)


@pytest.fixture(params=["plain", "fast"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One twin of the arithmetic for tables of any size: numpy, then compiled."""
    monkeypatch.setattr("crowdwise.kernels.MAX_PLAIN_CELLS", sys.maxsize if request.param == "plain" else 0)
    return importlib.import_module(f"crowdwise.kernels.{request.param}")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The compiled kernels, with blocks so small that even small tables have many."""
    from crowdwise.kernels import fast

    monkeypatch.setattr("crowdwise.kernels.MAX_PLAIN_CELLS", 0)
    monkeypatch.setattr("crowdwise.kernels.fast.blocks.BLOCK_ANSWERS", 64)
    return fast


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, shared by all page tests: Playwright allows only one."""
    from browsing import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def tabs(browser: Any) -> Any:
    """Browser tabs shared by all page tests."""
    from browsing import Tabs

    return Tabs(browser)


@pytest.fixture
def visit(tabs: Any) -> Iterator[Any]:
    """Open a page; at the end of the test, assert that there was no error and no network request."""
    yield tabs.visit
    assert tabs.noticed() == []


@pytest.fixture
def look(tabs: Any) -> Iterator[Any]:
    """Like `visit`, for tests that do not change the page."""
    yield tabs.look
    assert tabs.noticed() == []


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `crowdwise ...` in this process: exit status, stdout, stderr."""

    def run(*words: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["crowdwise", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return left.value.code, said.out, said.err

    return run


@pytest.fixture
def table(tmp_path: Path) -> Any:
    """Write a table of answers and return its path."""

    def write(text: str | bytes, name: str = "answers.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture(params=["numpy", "compiled"])
def click_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Clicks by one version of the kernels, whatever the size of the table."""
    limit = 10**9 if request.param == "numpy" else -1
    monkeypatch.setattr("crowdwise.kernels.MAX_PLAIN_CLICKS", limit)
    return str(request.param)
