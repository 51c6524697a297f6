"""What a result gives back: estimates as a platform reads them, what to label again and why, and gold candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ..acquisition import review
from ..errors import CrowdwiseError, DataError, FileError, ParameterError, nearest, option
from ..result.base import any_result, refuse_parts
from ..result.files import shown, write_whole
from ..result.outputs import WAIT, Outputs
from .estimates import Estimate, estimates_of
from .formats import all_formats, find
from .formats.base import ODD, Format, Original, what
from .opening import opened
from .parts import head_of, parts_of, platform, wrong_format
from .tables import Reading, files_of, size_of
from .writing import TABLES, record_writer, table_writer, write_csv

RELABEL, GOLD = "relabel.csv", "gold_candidates.csv"  # tables besides the estimates
SURE = 0.99  # probability from which a label is a candidate for gold
MIN_AGREEING, MIN_SHARE = 3, 0.8  # answers, and share of the answers, that agree with a candidate for gold


class Returned(NamedTuple):
    """The files that were written."""

    estimates: Path
    relabel: Path
    gold: Path | None  # there are no candidates among clicks and pairs
    tasks: int  # with an estimate
    doubtful: int
    candidates: int
    absent: int = 0  # tasks with an estimate that are not in the export whose data are kept
    original: Path | None = None  # the export whose data are kept


def returnable() -> list[str]:
    """Return the names that `export` takes."""
    return [*(ending[1:] for ending in TABLES), *(name for name, each in all_formats().items() if each.returned)]


def give_back(
    result: Any, to: str, folder: str | Path, original: str | Path | None, least: float, excel_safe: bool
) -> Returned:
    """Write the files."""
    result = any_result(result, "export")
    refuse_parts(result, "export")
    if not 0 <= least <= 1:
        raise ParameterError(f"{option('least', least)} is not between 0 and 1")
    check_target(to)
    with Outputs(Path(folder), WAIT) as outputs:
        new = outputs.new
        if f".{to}" in TABLES:
            main = next(iter(result.tables().values()))
            estimates = write_whole(new / f"estimates.{to}", table_writer(main, f".{to}", excel_safe))
            tasks, absent, source = main.height, 0, None
        else:
            estimates, tasks, absent, source = _for_platform(result, all_formats()[to], new, original, excel_safe)
        doubtful, sure = doubts(result, least), gold_candidates(result)
        write_csv(doubtful, new / RELABEL, excel_safe)
        if sure is not None:
            write_csv(sure, new / GOLD, excel_safe)
        candidates = 0 if sure is None else sure.height
        outputs.publish(listed=False, without=[GOLD] if sure is None else [], inputs=[source])
    gold = None if sure is None else Path(folder) / GOLD
    relabel = Path(folder) / RELABEL
    return Returned(shown(estimates), relabel, gold, tasks, doubtful.height, candidates, absent, source)


def check_target(to: str) -> None:
    """Raise ParameterError for a name that `export` does not take."""
    if to not in returnable():
        known = returnable()
        raise ParameterError(f"{option('to', to)} is not known; it can be {', '.join(known)}.{nearest(to, known)}")


def _for_platform(
    result: Any, format: Format, out: Path, original: str | Path | None, excel_safe: bool
) -> tuple[Path, int, int, Path | None]:
    """Write the estimates as records of a platform, with the data of the original export if there is one. Return the
    file, the numbers of tasks in it and of those that the export does not have, and the export."""
    found = estimates_of(result)
    asked = _Asked(found.tasks)
    found = found._replace(tasks=asked)
    if found.kind not in format.written_kinds:
        raise DataError(f"{format.title} cannot hold objects in images as estimates. Write csv, jsonl, parquet or coco")
    ending = ".json" if format.returned == ".object" else format.returned
    place = out / f"{format.name}{ending}"
    source = Path(original) if original is not None else _source(result, format)
    count = [0]

    def counted(records: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        try:
            for record in records:
                count[0] += 1
                yield record
        except CrowdwiseError:
            raise
        except ODD as error:
            raise FileError(
                f"{source}: a record after the first {count[0]} that are used is not as {format.title} writes it: "
                f"{what(error)}. Export it again"
            ) from error
        if source is not None and not count[0]:
            raise FileError(
                f"none of the {len(found.tasks)} tasks of the result is in {source}. Name the export that the answers "
                f"were read from with {option('original', 'FILE')}"
            )

    if source is None:
        write_whole(place, record_writer(counted(format.give_back(found, None)), format.returned, excel_safe))
    else:
        how = _how(result)
        with opened(source, how.max_expanded) as path:
            records = counted(format.give_back(found, _original(path, format, how)))
            write_whole(place, record_writer(records, format.returned, excel_safe))
    if format.returned in (".object", ".csv"):  # records are not tasks
        return place, len(found.tasks), 0, source
    absent = 0 if source is None else len({*found.estimated} - asked.names)
    return place, count[0], absent, source


class _Asked(dict[str, Estimate]):
    """The estimates by task, and the tasks of an export that were looked up."""

    def __init__(self, tasks: Mapping[str, Estimate]) -> None:
        super().__init__(tasks)
        self.names = set[str]()

    def __getitem__(self, task: str) -> Estimate:
        self.names.add(task)
        return super().__getitem__(task)

    def get(self, task: str, default: Any = None) -> Any:
        self.names.add(task)
        return super().get(task, default)


def _source(result: Any, format: Format) -> Path | None:
    """Return the file that the answers were read from, if it is still there and has the data of the tasks."""
    path = result.answers.intake.path
    if not path or path == "-":
        return None
    how = _how(result)
    try:
        with opened(path, how.max_expanded) as place:
            own = [find(head_of(file, how)) for file in files_of(place)]
    except FileError:
        return None
    return Path(path) if all(each in _originals(format) for each in own) else None


def _how(result: Any) -> Reading:
    """Return how an export is read: if it is compressed, it may expand as far as the answers might."""
    return Reading(max_expanded=size_of("max_expanded", result.answers.intake.options.get("max_expanded")))


def _originals(format: Format) -> list[Format]:
    """Return the formats whose data can be kept: those of the platform that are written, or this one."""
    return [each for each in platform(format) if each is format or (each.returned and format.returned)]


def _original(path: Path, format: Format, how: Reading) -> Original:
    """Return a function that reads the records of an export from the beginning."""
    files = files_of(path)
    heads = [head_of(file, how) for file in files]
    for head in heads:
        if not any(head.container in each.containers and each.recognise(head) for each in _originals(format)):
            raise FileError(wrong_format(head, format, find(head), insisted=False))

    def records() -> Iterator[Mapping[str, Any]]:
        for file, head in zip(files, heads, strict=True):
            for part in parts_of(file, head, how):
                content = part.content
                yield from content.iter_rows(named=True) if isinstance(content, pl.DataFrame) else content

    return records


def doubts(result: Any, least: float) -> pl.DataFrame:
    """Return what to label again, the most useful first, with the reason."""
    table = review(result)
    unsure = pl.col("probability") < least
    percent = (pl.col("probability") * 100).round(0).cast(pl.Int64, strict=False).cast(pl.String)
    noun = {"points": "that the object is real", "pairs": "of the cluster"}.get(result.kind, "of the label")
    reasons = [pl.when(unsure).then(pl.format("the probability {} is {}%", pl.lit(noun), percent))]
    if "tie" in table.columns:
        reasons.append(pl.when(pl.col("tie")).then(pl.lit("labels are tied")))
    if "answers" in table.columns and result.kind == "labels":
        reasons.append(pl.when(pl.col("answers") == 0).then(pl.lit("there are no answers")))
        reasons.append(pl.when(pl.col("answers") == 1).then(pl.lit("there is only one answer")))
    if "others" in table.columns:
        reasons.append(
            pl.when(pl.col("models_disagree").cast(pl.Boolean)).then(pl.format("other models differ: {}", "others"))
        )
    reason = pl.concat_str(reasons, separator="; ", ignore_nulls=True)
    named = table.with_columns(reason.alias("reason")).filter(pl.col("reason") != "")
    first = [name for name in ("task", "image", "object", "item", "label", "cluster") if name in named.columns]
    shown = [*first, "probability", "reason", *(name for name in ("answers", "votes", "gain") if name in named.columns)]
    if result.kind == "points":
        shown[len(first) : len(first)] = [*result.answers.axes]
    return named.select(shown)


def gold_candidates(result: Any) -> pl.DataFrame | None:
    """Return tasks whose labels are all but certain, as candidates for known labels: task, label, probability, answers
    and agreement. The first rows have every label; None for answers that are not labels."""
    if result.kind != "labels":
        return None
    labels = result.labels.select("task", "label", "probability", "votes")
    answers = result.tasks.select("task", "answers", agreement=1 - pl.col("disagreement"))
    known = pl.Series(result.answers.gold >= 0)
    table = labels.join(answers, on="task", how="left", maintain_order="left").filter(~known)
    agreeing = (pl.col("agreement") * pl.col("answers")).round() >= MIN_AGREEING
    sure = (pl.col("probability") >= SURE) & agreeing & (pl.col("agreement") >= MIN_SHARE)
    chosen = table.filter(sure).sort("probability", "answers", "task", descending=[True, True, False])
    turn = pl.int_range(pl.len()).over("label")
    ordered = chosen.with_columns(turn=turn).sort("turn", "label", maintain_order=True)
    found: pl.DataFrame = ordered.select("task", "label", "probability", "answers", "agreement")
    return found
