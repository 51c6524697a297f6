"""Spark sessions: what they need, and the calls of Spark that everything else in this package goes through."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..engine.resources import require
from ..errors import CrowdwiseError, DataError, FileError, MissingError, ParameterError

LOCAL = "local[*]"  # all cores of this machine


def check_spark() -> None:
    """Raise MissingError if pyspark or Java is not installed."""
    require(("spark",), "Spark")
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise MissingError(
            f"JAVA_HOME is {home}, and there is no bin/java in it. Set it to the folder of Java 17 or 21"
        )
    if not home and shutil.which("java") is None:
        raise MissingError(
            "Spark needs Java 17 or 21, which is not installed: there is no `java` on the PATH, and JAVA_HOME is not "
            "set. On Debian or Ubuntu run: apt-get install openjdk-17-jre-headless"
        )


def running() -> Any:
    """Return the session of this process, or None."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def start(master: str | None = None) -> Any:
    """Return the session of this process, or start one: on `master`, by default all cores of this machine."""
    check_spark()
    from pyspark.sql import SparkSession

    active = running()
    if active is not None:
        return active
    url = master or LOCAL
    builder = SparkSession.builder.appName("crowdwise").master(url)
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.maxResultSize": "0"}
    if url.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        if hasattr(socket, "AF_UNIX"):  # by TCP, every task waits 40 ms for a delayed acknowledgement
            settings["spark.python.unix.domain.socket.enabled"] = "true"
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _quiet():
            session = builder.getOrCreate()
    except Exception as error:
        raise ParameterError(f"Spark did not start with master {url!r}: {_first_line(error)}") from error
    session.sparkContext.setLogLevel("ERROR")
    return session


def session_of(frame: Any) -> Any:
    """Return the session of a Spark DataFrame."""
    from pyspark.sql.classic.dataframe import DataFrame

    if isinstance(frame, DataFrame):
        return frame.sparkSession
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        raise DataError(
            "this frame belongs to a Spark Connect session, which has no broadcast variables. Use a classic session: "
            "SparkSession.builder.master(...) without remote(...)"
        )
    raise DataError(
        f"crowdwise.spark.aggregate takes a Spark DataFrame or a path; got {type(frame).__name__}. For a frame in "
        "memory, use crowdwise.aggregate"
    )


def read(path: str, session: Any, format: str | None = None, delimiter: str | None = None) -> Any:
    """Return a table that Spark can read, by the ending of its name, or of a file in a folder: Parquet, CSV, TSV or
    JSON lines. Every column of a text file is text, as in `crowdwise.read`."""
    try:
        kind = format or _by_name(path) or _by_name(_first_file(path, session)) or "parquet"
        if kind in ("csv", "tsv"):
            separator = delimiter or ("\t" if kind == "tsv" else ",")
            options = {"header": True, "sep": separator, "escape": '"', "mode": "FAILFAST", "columnPruning": False}
            return session.read.options(**options).csv(path)
        if kind in ("json", "jsonl"):
            return session.read.options(mode="FAILFAST", primitivesAsString=True).json(path)
        if kind == "parquet":
            return session.read.parquet(path)
    except Exception as error:
        raise FileError(f"Spark cannot read {path}: {_first_line(error)}") from error
    raise ParameterError(f"format is {kind!r}; Spark reads 'parquet', 'csv', 'tsv' or 'jsonl'")


def _by_name(path: str) -> str | None:
    stem = path.lower().removesuffix(".gz").removesuffix(".bz2")
    return next((kind for ending, kind in ENDINGS.items() if stem.endswith(ending)), None)


def _first_file(path: str, session: Any) -> str:
    """Return a file in a folder or of a pattern, "" if there is none."""
    found = session.read.format("binaryFile").load(path).select("path").limit(1).collect()
    return str(found[0]["path"]) if found else ""


CAUSE = "Caused by: "
ENDINGS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


def map_in_arrow(frame: Any, work: Callable[[Iterator[Any]], Iterator[Any]], schema: Any) -> Any:
    """Return the frame that `work` makes of the Arrow batches of every partition."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        return work(batches)

    with _quiet():
        return frame.mapInArrow(run, schema)


def collect(frame: Any) -> Any:
    """Return a small frame as an Arrow table; errors that executors met are raised as errors of Crowdwise."""
    with job():
        return frame.toArrow()


@contextlib.contextmanager
def job() -> Iterator[None]:
    """Turn what Spark raises while a job runs into errors that say what to do."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with _quiet():
            yield
    except (PySparkException, Py4JError) as error:
        raise _explained(error) from error


def _explained(error: Exception) -> CrowdwiseError:
    text = str(error)
    if "No module named" in text:
        name = text.split("No module named", 1)[1].split("'")[1].split(".")[0]
        return MissingError(
            f"the executors of Spark have no module {name!r}. Install crowdwise with its dependencies in the Python of "
            "every machine, or ship an environment (spark.archives), and let PYSPARK_PYTHON name that Python; on one "
            f"machine it is {sys.executable}"
        )
    if "maxResultSize" in text:
        return DataError(
            "the statistics of an iteration are larger than spark.driver.maxResultSize. Set it to 0 (no limit), or use "
            "fewer partitions"
        )
    return DataError(f"Spark could not finish a job: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    """Return what Spark says first or, where that is only that a job was aborted, the cause of it all."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("An error occurred while calling")]  # what Java says follows
    if lines and "Job aborted due to stage failure" in lines[0]:
        lines = [line.removeprefix(CAUSE) for line in reversed(lines) if line.startswith(CAUSE)] or lines
    return lines[0][:300] if lines else type(error).__name__


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Leave out pyspark's warnings about versions of pandas, which is not used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*pandas.*")
        yield
