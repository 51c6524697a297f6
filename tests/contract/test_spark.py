"""Fits on Spark: the same numbers as in memory, for every model and number of partitions, also if executors are lost.

All tests share one session on this machine, so they are in one file; the test of a lost executor starts a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crowdwise as cw
from crowdwise.errors import (
    ColumnError,
    DataError,
    DuplicateError,
    EmptyDataError,
    Interrupted,
    MissingError,
    ParameterError,
)  # fmt: skip
from crowdwise.labels.shard import ShardOfPart

pytest.importorskip("pyspark", reason="pyspark is not installed; to run these tests: pip install 'crowdwise[spark]'")
if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
    pytest.skip(
        "Java is not installed; to run these tests: apt-get install openjdk-17-jre-headless", allow_module_level=True
    )

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for processes that live for seconds
DOUBLE = cw.Run(precision="double", threads=1)
REAL = ("anesthesia", "dogs", "snow_wsd")
ITERATIVE = ("dawid-skene", "glad", "groups", "mace", "one-coin", "pooled", "tied")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark keeps its files."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[Any]:
    """A session with two cores, as small as it can be."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "2", "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": QUICK_JAVA, "spark.python.unix.domain.socket.enabled": "true",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def crowd() -> cw.simulate.Crowd:
    return cw.simulate.crowd("confusion", tasks=150, workers=20, classes=3, per_task=5, accuracy=0.6, seed=7)


def table_of(spark: Any, frame: pl.DataFrame) -> Any:
    return spark.createDataFrame(frame.to_arrow()).repartition(3)


def collected(frame: Any) -> pl.DataFrame:
    found = pl.from_arrow(frame.toArrow())
    assert isinstance(found, pl.DataFrame)
    return found.sort("task")


def same(on_spark: Any, in_memory: cw.LabelsResult) -> None:
    """Both results agree to 1e-9."""
    labels, tasks = collected(on_spark.labels), collected(on_spark.tasks)
    for found, wanted in ((labels, in_memory.labels), (tasks, in_memory.tasks), (on_spark.workers, in_memory.workers)):
        assert found.columns == wanted.columns
        for name in wanted.columns:
            if wanted[name].dtype.is_float():
                np.testing.assert_allclose(found[name].to_numpy(), wanted[name].to_numpy(), rtol=0, atol=1e-9)
            else:
                assert found[name].to_list() == wanted[name].to_list(), name
    if "labels_changed" in in_memory.trace.columns:
        assert on_spark.trace["labels_changed"].to_list() == in_memory.trace["labels_changed"].to_list()
    assert on_spark.converged == in_memory.converged


# -------------------------------------------------------------------------------------------------------- same numbers


PARTITIONS = dict(zip(sorted(cw.models("labels")["name"]), (8, 3, 2, 4, 24, 1, 7, 2, 3, 6), strict=True))


@pytest.mark.parametrize(("model", "partitions"), list(PARTITIONS.items()))
def test_r8_every_model_agrees_with_the_fit_in_memory(
    spark: Any, crowd: cw.simulate.Crowd, model: str, partitions: int
) -> None:
    settings = {"max_iter": 2} if model in ITERATIVE else {}
    found = cw.spark.aggregate(
        table_of(spark, crowd.answers.frame()), model, partitions=partitions, run=DOUBLE, **settings
    )
    same(found, cw.aggregate(crowd.answers, model, run=DOUBLE, **settings))


@pytest.mark.parametrize("seed", range(3))
def test_r8_random_tables_agree_with_gold_and_dropped_rows(spark: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 300
    frame = pl.DataFrame(
        {
            "item": rng.integers(0, 60, n),
            "who": [None if v == 0 else f"w{v}" for v in rng.integers(0, 9, n)],
            "verdict": [None if v == 4 else "abcd"[v] for v in rng.integers(0, 5, n)],
            "time": rng.permutation(n),
        }
    ).filter(pl.col("who").is_not_null() | (pl.col("item") % 7 == 0))
    options = {
        "task": "item", "worker": "who", "label": "verdict", "anonymous": "each",
        "gold": {3: "a", 10: "b", 11: "z", 999: "a"},
    }  # fmt: skip
    found = cw.spark.aggregate(
        table_of(spark, frame), "dawid-skene", partitions=1 + 4 * seed, run=DOUBLE, max_iter=3, **options
    )
    wanted = cw.aggregate(frame, "dawid-skene", run=DOUBLE, max_iter=3, **options)
    if seed:  # anonymous workers have names of their part
        labels = collected(found.labels)
        assert labels["label"].to_list() == wanted.labels["label"].to_list()
        np.testing.assert_allclose(labels["probability"], wanted.labels["probability"], rtol=0, atol=1e-9)
    before, after = wanted.answers.intake, found.answers.intake
    assert (after.rows_read, after.rows_used) == (before.rows_read, before.rows_used)
    assert {each.reason: each.count for each in after.dropped} == {each.reason: each.count for each in before.dropped}
    assert sorted(after.notes) == sorted(before.notes)
    assert sorted(after.warnings) == sorted(before.warnings)


def test_r8_real_sets_agree(spark: Any, shared_data: Path) -> None:
    """Some sets in one table, which saves jobs: they share names of classes, but no tasks and no workers."""
    frames = []
    for name in REAL:
        own = [pl.format(f"{name} {{}}", column).alias(column) for column in ("task", "worker")]
        frames.append(pl.read_parquet(shared_data / name / "answers.parquet").select(*own, pl.col("label").cast(str)))
    frame = pl.concat(frames)
    options = {"max_iter": 2, "duplicates": "each", "run": DOUBLE}
    found = cw.spark.aggregate(table_of(spark, frame), "pooled", partitions=3, **options)
    same(found, cw.aggregate(frame, "pooled", **options))


def test_a_task_uses_the_cores_that_spark_gives_it(
    spark: Any, crowd: cw.simulate.Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdwise.spark import labels

    assert labels.task_cores(spark) == 1
    monkeypatch.setattr(labels, "task_cores", lambda session: 2)
    answers = labels.read_labels(table_of(spark, crowd.answers.frame()), {})
    assert len(answers.subsets) == 1
    assert answers.executor(ShardOfPart(750, 3, "double", 1)).make.threads == 2


def test_weights_of_answers_are_used(spark: Any) -> None:
    frame = pl.DataFrame(
        {"task": [1, 1, 1, 2, 2], "worker": list("abcab"), "label": list("xyyxy"), "weight": [5.0, 1, 1, 1, 2]}
    )
    found = cw.spark.aggregate(table_of(spark, frame), "weighted-vote", learn_from="column", run=DOUBLE)
    same(found, cw.aggregate(frame, "weighted-vote", learn_from="column", run=DOUBLE))
    with pytest.raises(DataError, match="which dawid-skene does not use"):
        cw.spark.aggregate(table_of(spark, frame), "dawid-skene")


def test_weights_are_learnt_from_known_tasks(spark: Any, crowd: cw.simulate.Crowd) -> None:
    gold = dict(crowd.truth.head(40).select("task", "label").iter_rows())
    options = {"learn_from": "gold", "gold": gold, "run": DOUBLE}
    frame = crowd.answers.frame()
    found = cw.spark.aggregate(table_of(spark, frame), "weighted-vote", partitions=3, **options)
    wanted = cw.aggregate(frame, "weighted-vote", **options)
    same(found, wanted)
    assert cw.match_labels(found, crowd.truth) == cw.match_labels(wanted, crowd.truth)


def test_wide_tables_are_read_if_the_caller_says_so(spark: Any) -> None:
    frame = pl.DataFrame({"item": ["a", "b", "c"], "ann": ["x", "y", None], "bob": ["x", "x", "y"]})
    found = cw.spark.aggregate(table_of(spark, frame), "majority-vote", wide=True, run=DOUBLE)
    same(found, cw.aggregate(frame, "majority-vote", wide=True, run=DOUBLE))


def test_a_column_of_times_decides_between_repeated_answers(spark: Any) -> None:
    frame = pl.DataFrame(
        {"task": [1, 1, 1], "worker": ["a", "a", "b"], "label": ["x", "y", "y"], "timestamp": [5, 3, 1]}
    )
    last = cw.spark.aggregate(table_of(spark, frame), "majority-vote")
    first = cw.spark.aggregate(table_of(spark, frame), "majority-vote", duplicates="first")
    assert collected(last.labels)["tie"].to_list() == [True]
    assert collected(first.labels)["label"].to_list() == ["y"]
    with pytest.raises(ParameterError, match=r"duplicates='last' needs a column of times: rows of a Spark frame have"):
        cw.spark.aggregate(table_of(spark, frame.drop("timestamp")), "majority-vote", duplicates="last")
    with pytest.raises(
        DuplicateError, match=r"and rows of a Spark frame have no order. Add a column of times, or use dup"
    ):
        cw.spark.aggregate(table_of(spark, frame.drop("timestamp")), "majority-vote")


def test_parts_can_be_loaded_into_memory(spark: Any, crowd: cw.simulate.Crowd) -> None:
    found = cw.spark.aggregate(table_of(spark, crowd.answers.frame()), "majority-vote", partitions=3)
    assert found.answers.load().frame().equals(crowd.answers.frame())


@pytest.mark.parametrize("settings", [{}, {"method": "paper", "objects": 3}], ids=str)
def test_images_are_fitted_by_the_executors(spark: Any, settings: dict[str, Any]) -> None:
    clicks = [cw.simulate.clicks("E", seed=seed).points.frame() for seed in range(3)]
    frame = pl.concat([each.with_columns(image=pl.lit(f"image {n}")) for n, each in enumerate(clicks)])
    stages: list[Any] = []
    run = cw.Run(watch=stages.append)
    found = cw.spark.aggregate(table_of(spark, frame), "click-mixture", box=(1, 0, 4, 5), run=run, **settings)
    wanted = cw.aggregate(cw.Points(frame, box=(1, 0, 4, 5)), "click-mixture", **settings)
    for name, table in wanted.tables().items():
        assert found.tables()[name].equals(table), name
    assert any(each.stage == "image" for each in stages)
    with pytest.raises(ParameterError, match="pair-mixture is a model of pairs; Spark fits labels and clicks"):
        cw.spark.aggregate(table_of(spark, frame), "pair-mixture")


# --------------------------------------------------------------------------------------------- states, runs and files


def test_r7_lost_states_are_rebuilt_with_the_same_bits(spark: Any, crowd: cw.simulate.Crowd, folder: Path) -> None:
    lost = []

    def lose(progress: Any) -> None:
        if progress.iteration in (2, 3):
            states = list(folder.glob("blockmgr-*/crowdwise-*"))
            lost.extend(states)
            for each in states:
                shutil.rmtree(each)

    frame = table_of(spark, crowd.answers.frame())
    run = cw.Run(precision="double", threads=1, watch=lose)
    found = cw.spark.aggregate(frame, "glad", partitions=3, max_iter=5, run=run)
    wanted = cw.spark.aggregate(frame, "glad", partitions=3, max_iter=5, run=DOUBLE)
    assert lost
    assert found.trace.equals(wanted.trace)
    assert collected(found.labels).equals(collected(wanted.labels))


def test_only_the_states_of_the_last_updates_are_kept(spark: Any, crowd: cw.simulate.Crowd, folder: Path) -> None:
    for each in folder.glob("blockmgr-*/crowdwise-*"):
        shutil.rmtree(each)
    found = cw.spark.aggregate(table_of(spark, crowd.answers.frame()), "dawid-skene", partitions=2, max_iter=5)
    files = sorted(path.name for path in folder.glob("blockmgr-*/crowdwise-*/*"))
    assert files == ["0", "0-5", "0-6", "1", "1-5", "1-6"]
    assert len(found.task_tables.executor.updates) == 2


def test_r7_an_interrupted_fit_resumes_with_the_same_bits(spark: Any, crowd: cw.simulate.Crowd) -> None:
    frame, steps = table_of(spark, crowd.answers.frame()), []
    run = cw.Run(watch=steps.append, stop=lambda: len(steps) == 3)
    with pytest.raises(Interrupted) as broken:
        cw.spark.aggregate(frame, "glad", partitions=3, max_iter=4, run=run)
    resumed = cw.spark.aggregate(frame, "glad", partitions=3, max_iter=4, run=cw.Run(resume=broken.value.checkpoint))
    unbroken = cw.spark.aggregate(frame, "glad", partitions=3, max_iter=4)
    assert resumed.trace.equals(unbroken.trace)
    assert collected(resumed.labels).equals(collected(unbroken.labels))
    with pytest.raises(ParameterError, match="belongs to a different fit"):
        cw.spark.aggregate(frame, "glad", partitions=2, max_iter=4, run=cw.Run(resume=broken.value.checkpoint))


def test_out_and_scratch(spark: Any, crowd: cw.simulate.Crowd, tmp_path: Path) -> None:
    frame = table_of(spark, crowd.answers.frame())
    found = cw.spark.aggregate(frame, out=tmp_path / "out", scratch=tmp_path / "parts", partitions=3, max_iter=3)
    assert len(list((tmp_path / "parts").glob("*.parquet"))) == 3
    loaded = cw.load(tmp_path / "out")
    assert loaded.labels.collect().sort("task").equals(collected(found.labels))
    assert loaded.workers.equals(found.workers)


# ------------------------------------------------------------------------------------------------------------- errors


def test_bad_tables_are_refused_as_in_memory(spark: Any) -> None:
    frame = pl.DataFrame({"task": [1, 2], "worker": ["a", None], "lable": ["x", "y"]})
    with pytest.raises(ColumnError, match=r"no column 'label' in frame; columns are task, worker, lable. Did you mean"):
        cw.spark.aggregate(table_of(spark, frame), "pooled")
    with pytest.raises(ColumnError, match=r"at least 1 answer\(s\) in frame have no worker, one at partition"):
        cw.spark.aggregate(table_of(spark, frame), "pooled", label="lable")
    with pytest.raises(EmptyDataError, match="no answers in frame: it has no rows"):
        cw.spark.aggregate(table_of(spark, frame).where("task > 9"), "pooled", label="lable")
    with pytest.raises(ParameterError, match="partitions is 0; it must be a whole number of at least 1"):
        cw.spark.aggregate(table_of(spark, frame), partitions=0)
    with pytest.raises(DataError, match=r"takes a Spark DataFrame or a path; got DataFrame. For a frame in memory"):
        cw.spark.aggregate(frame)


def test_java_is_missed_before_spark_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingError, match=r"needs Java 17 or 21.* apt-get install openjdk-17-jre-headless"):
        cw.spark.aggregate("answers.parquet")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingError, match=r"JAVA_HOME is .*, and there is no bin/java in it"):
        cw.spark.aggregate("answers.parquet")


def test_executors_without_crowdwise_are_explained(spark: Any) -> None:
    from crowdwise.spark.session import job, map_in_arrow

    def lacks(batches: Any) -> Any:
        raise ModuleNotFoundError("No module named 'crowdwise'")

    with pytest.raises(MissingError, match=r"the executors of Spark have no module 'crowdwise'. Install"), job():
        map_in_arrow(spark.range(1), lacks, "id long").count()


def test_importing_crowdwise_spark_does_not_import_pyspark() -> None:
    code = "import sys, crowdwise as cw; cw.spark.aggregate; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# ------------------------------------------------------------------------------------------------------- command line


def test_the_command_fits_on_spark(spark: Any, crowd: cw.simulate.Crowd, tmp_path: Path, command: Any) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    answers = folder / "answers.csv"
    crowd.answers.frame().write_csv(answers)
    status, _, said = command("aggregate", answers, "--engine", "spark", "--out", out, "--model", "one-coin")
    assert status == 0, said
    assert "Labels(750 answers, 150 tasks, 20 workers, 3 classes)" in said
    assert f"result.crowdwise, {next(out.glob('tables-*')).name}, workers.csv" in said
    loaded, wanted = cw.load(out), cw.aggregate(cw.read(answers), "one-coin")
    assert loaded.labels.collect().sort("task")["label"].to_list() == wanted.labels["label"].to_list()
    assert pl.read_csv(out / "workers.csv")["worker"].to_list() == wanted.workers["worker"].to_list()
    status, _, said = command(
        "aggregate", folder, "--engine", "spark", "--out", out, "--model", "glad", "--max-iter", 1
    )
    assert status == 3, said
    assert "Labels(750 answers, 150 tasks, 20 workers, 3 classes)" in said
    answers.rename(folder / "answers.parquet")
    status, _, said = command("aggregate", folder, "--engine", "spark", "--out", out)
    assert status == 1
    assert "error: Spark cannot read" in said
    assert "answers.parquet" in said.replace(str(folder), "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--engine", "spark"), "--engine spark needs --out"),
        (("--engine", "dask"), "--engine is 'dask'; it can be 'memory' or 'spark'"),
        (("--master", "local"), "--master needs --engine spark"),
        (("--engine", "spark", "--out", "o", "--memory", "2GB"), "--memory does not apply with --engine spark"),
        (("--engine", "spark", "--out", "o", "--within", "3"), "--within does not apply with --engine spark"),
        (
            ("--engine", "spark", "--out", "o", "--model", "click-mixture"),
            "fits models of labels; click-mixture is not",
        ),
    ],
)
def test_options_that_do_not_apply_are_refused_before_anything_starts(
    command: Any, words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, said = command("aggregate", "s3a://bucket/answers.parquet", *words)
    assert status == 2
    assert message in said
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------------ cluster


FIT_AND_KILL = """
    import os, signal, sys
    import psutil
    import crowdwise as cw
    from pyspark.sql import SparkSession

    master, answers, out, java, *workers = sys.argv[1:]
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.memory": "512m", "spark.executor.memory": "512m", "spark.executor.cores": "1",
                "spark.sql.codegen.wholeStage": "false", "spark.sql.adaptive.enabled": "false",
                "spark.sql.shuffle.partitions": "2", "spark.python.unix.domain.socket.enabled": "true",
                "spark.driver.extraJavaOptions": java, "spark.executor.extraJavaOptions": java}
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def kill(progress):
        if progress.iteration == 2:
            children = [each for worker in workers for each in psutil.Process(int(worker)).children()]
            own = [each for each in children if each.name() == "java"]
            assert len(own) == 2, children
            os.kill(own[0].pid, signal.SIGKILL)

    for name, watch in (("whole", None), ("killed", kill)):
        run = cw.Run(precision="double", threads=1, watch=watch)
        frame = spark.read.parquet(answers)
        cw.spark.aggregate(frame, "glad", partitions=4, max_iter=3, run=run, out=f"{out}/{name}")
    spark.stop()
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """A master and two workers on this machine: the address of the master, and the process numbers of the workers."""
    import socket

    import pyspark

    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master, own = f"spark://127.0.0.1:{port}", {
        "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
    }  # fmt: skip

    def started(name: str, *words: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log.txt").open("ab") as log:
            return subprocess.Popen(
                [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1",
                 "--webui-port", "0", *words], env=os.environ | own, stdout=log, stderr=log,
            )  # fmt: skip

    processes = [started("master.Master", "--port", str(port))]
    processes += [started("worker.Worker", "--cores", "1", "--memory", "600m", master) for _ in range(2)]
    yield master, [each.pid for each in processes[1:]]
    for each in reversed(processes):
        each.terminate()
    for each in processes:
        each.wait(60)


def test_r7_a_killed_executor_does_not_change_the_numbers(
    cluster: tuple[str, list[int]], crowd: cw.simulate.Crowd, tmp_path: Path
) -> None:
    """An executor is killed in the middle of a fit on a cluster."""
    master, workers = cluster
    answers, script = tmp_path / "answers.parquet", tmp_path / "fit.py"
    crowd.answers.frame().write_parquet(answers)
    script.write_text(textwrap.dedent(FIT_AND_KILL))
    line = [sys.executable, script, master, answers, tmp_path / "out", QUICK_JAVA, *map(str, workers)]
    ran = subprocess.run(
        line, env=os.environ | {"PYSPARK_PYTHON": sys.executable}, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    whole, found = (cw.load(tmp_path / "out" / name) for name in ("whole", "killed"))
    assert found.trace.equals(whole.trace)
    assert found.workers.equals(whole.workers)
    for name in ("labels", "tasks"):
        assert found.tables()[name].collect().sort("task").equals(whole.tables()[name].collect().sort("task"))
    in_memory = cw.aggregate(crowd.answers, "glad", max_iter=3, run=DOUBLE)
    np.testing.assert_allclose(
        found.labels.collect().sort("task")["probability"], in_memory.labels["probability"], rtol=0, atol=1e-9
    )
