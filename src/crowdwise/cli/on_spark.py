"""`crowdwise aggregate --engine spark`: read, fit and write with Spark."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from ..aggregation import kind_of
from ..errors import ParameterError
from ..io import read_table
from ..io.tables import Reading, size_of
from ..io.writing import write_csv
from ..result.outputs import Outputs
from ..result.split import TASK_TABLES
from ..spark.labels import read_labels
from ..spark.session import check_spark, read, running, start
from .fits import PageOptions
from .job import CHECKPOINT, Job
from .options import LabelOptions, RepeatOptions
from .say import progress, words

TEXT_OPTIONS = ("format", "delimiter")  # of the file, besides those of labels
READING = ("worker", *(each.name for kind in (LabelOptions, RepeatOptions) for each in fields(kind)))


def fit_on_spark(job: Job, page: PageOptions, master: str | None) -> None:
    """Fit labels on Spark: the executors write the tables of tasks, this process everything else."""
    options = _checked(job, page)
    with job.outputs() as outputs:
        assert outputs is not None
        _fit(job, outputs, options, master)


def _fit(job: Job, outputs: Outputs, options: dict[str, Any], master: str | None) -> None:
    check_spark()
    if running() is None:
        words(f"starting Spark on {master or 'all cores of this machine'}")
    own, session = running() is None, start(master)
    try:
        about = {name: options.pop(name, None) for name in TEXT_OPTIONS}
        frame = read(job.source.file, session, **about)
        kind = kind_of(frame.columns, options) if job.name is None else "labels"
        if kind not in job.models or kind != "labels":
            raise ParameterError(f"{job.source.file} holds answers of the kind {kind!r}; --engine spark takes labels")
        with progress(f"reading {job.source.file}"):
            answers = read_labels(frame, options, source=job.source.file)
        words(f"{job.source.file}: {answers!r} in {len(answers.subsets)} parts")
        result = job.fit(job.models["labels"], answers)
        job.close(result, _write(result, job, outputs), {})
    finally:
        if own:
            session.stop()


def _checked(job: Job, page: PageOptions) -> dict[str, Any]:
    """Return the options for reading the table; refuse those that do not apply, before anything starts."""
    if job.out is None:
        raise ParameterError("--engine spark needs --out, the folder for the results")
    if "labels" not in job.models:
        raise ParameterError(f"--engine spark fits models of labels; {job.name} is not one. Omit --engine")
    options = job.source.given()
    how = Reading(max_expanded=size_of("max_expanded", options.pop("max_expanded", None)))  # of the file of gold
    wrong = [name for name in options if name not in (*READING, *TEXT_OPTIONS)]
    named = [each.name for each in fields(page) if each.name != "max_expanded"]
    wrong += [name for name in named if getattr(page, name) is not None]
    wrong += ["features"] * (job.features.features is not None)
    if wrong:
        raise ParameterError(f"--{wrong[0].replace('_', '-')} does not apply with --engine spark. Omit it")
    if "gold" in options:
        options["gold"] = read_table(options["gold"], how).frame
    if "gold_column" in options:
        options["gold"] = options.pop("gold_column")
    return options


def _write(result: Any, job: Job, outputs: Outputs) -> list[Path]:
    """Save the result, with its tables of tasks as Parquet files, and write the other tables as CSV."""
    for name, table in result.tables().items():
        if name not in TASK_TABLES:
            write_csv(table, outputs.new / f"{name}.csv", job.options.excel_safe)
    result.save(outputs.new)
    return outputs.publish(without=[CHECKPOINT])
