"""`crowdwise.spark.aggregate`: the verb for Spark frames."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..aggregation import chosen_model, kind_of
from ..answers.arguments import check_whole
from ..engine import Model, Run
from ..errors import ParameterError
from .images import OverImages
from .labels import read_labels
from .session import check_spark, collect, read, session_of, start


def aggregate(
    frame: Any,
    model: str | type[Model[Any, Any]] | Model[Any, Any] | None = None,
    /,
    *,
    out: str | Path | None = None,
    partitions: int | None = None,
    scratch: str | Path | None = None,
    run: Run | None = None,
    **options: Any,
) -> Any:
    """Estimate the truth from answers in a Spark DataFrame, or in files at a path that Spark can read.

    `model` and `options` are those of `crowdwise.aggregate`; `gold` is a table or a mapping. The answers are spread
    over `partitions` by task (default: as many as Spark runs at once, more for large tables), read once, and cached
    by Spark or, with `scratch`, written there as Parquet: a folder that all machines see. The result is a
    `SplitResult`: `workers` is a polars frame; `labels` and `tasks` are Spark DataFrames, which the executors
    compute. `out` writes them as Parquet, and saves the result.

    Clicks are read by the driver, and their images are fitted by the executors; the result is a `PointsResult`.
    """
    check_spark()
    if partitions is not None:
        check_whole("partitions", partitions, 1)
    source = str(frame) if isinstance(frame, (str, Path)) else "frame"
    if isinstance(frame, (str, Path)):
        frame = read(str(frame), start())
    session = session_of(frame)
    kind = kind_of(frame.columns, options) if model is None else None
    chosen, reading = chosen_model(kind, model, options)
    chosen.check_needs(features=False)
    if chosen.kind not in ("labels", "points"):
        raise ParameterError(
            f"{chosen.name} is a model of {chosen.kind}; Spark fits labels and clicks. For a frame that fits into "
            "memory, use crowdwise.aggregate(frame.toArrow())"
        )
    run = run or Run()
    answers: Any
    if chosen.kind == "labels":
        place = None if scratch is None else str(scratch)
        answers = read_labels(frame, reading, source=source, partitions=partitions, scratch=place)
    else:
        answers = chosen.answers_type(collect(frame), source=source, **reading)  # type: ignore[call-arg]
        run = replace(run, spread=OverImages(session, partitions))
    result = chosen.fit(answers, run=run)
    if out is not None:
        result.save(out)
    return result
