"""What the tests share: the folder of real data, small made-up crowds, and both twins of the arithmetic."""

from __future__ import annotations

import importlib
import sys
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


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The labelled sets, which lie beside the project and are no part of it."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the labelled sets are not here: no folder ../shared/data beside the project")
    return folder


@pytest.fixture(scope="session")
def crowd() -> cw.simulate.Crowd:
    """720 answers, 3 classes, workers with confusion matrices around 65 % right."""
    return cw.simulate.crowd("confusion", tasks=120, workers=15, classes=3, per_task=6, accuracy=0.65, seed=11)


@pytest.fixture(params=["plain", "fast"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One twin of the arithmetic for tables of any size: numpy, then compiled."""
    monkeypatch.setattr("crowdwise.kernels.SMALL", sys.maxsize if request.param == "plain" else 0)
    return importlib.import_module(f"crowdwise.kernels.{request.param}")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The compiled twin, with blocks so small that even little tables fall into many."""
    from crowdwise.kernels import fast

    monkeypatch.setattr("crowdwise.kernels.SMALL", 0)
    monkeypatch.setattr("crowdwise.kernels.fast.blocks.BLOCK", 64)
    return fast


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
    """Write a table of answers and give its path."""

    def write(text: str | bytes, name: str = "answers.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
