"""Which column is what: by name, given or guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ..errors import ColumnError, ParameterError, nearest

# Common names, best first. Compared without case, blanks and punctuation.
NAMES: dict[str, tuple[str, ...]] = {
    "task": (
        "task", "taskid", "item", "itemid", "unit", "unitid", "question", "questionid", "hitid", "example",
        "exampleid", "instance", "instanceid", "document", "docid", "image", "imageid", "subject", "subjectid",
        "subjectids", "object", "objectid", "record", "recordid", "sample", "sampleid", "id",
    ),
    "worker": (
        "worker", "workerid", "annotator", "annotatorid", "user", "userid", "username", "rater", "raterid", "coder",
        "coderid", "judge", "judgeid", "labeler", "labeller", "labelerid", "performer", "participant",
        "participantid", "completedby", "expert", "reviewer", "source", "model",
    ),
    "label": (
        "label", "answer", "response", "annotation", "vote", "class", "category", "choice", "judgment", "judgement",
        "rating", "value", "output", "outputresult",
    ),
    "gold": ("gold", "goldlabel", "golden", "truth", "truelabel", "groundtruth"),
    "seconds": ("seconds", "worktimeinseconds", "leadtime", "duration", "timespent"),
    "timestamp": ("timestamp", "time", "submittedat", "submittime", "createdat", "updatedat", "date", "datetime"),
    "started": ("started", "startedat", "starttime", "accepttime", "start"),
    "is_check": ("ischeck", "isgold", "isattncheck", "attentioncheck", "attncheck", "check"),
    "weight": ("weight", "weights"),
}  # fmt: skip

REQUIRED = ("task", "worker", "label")

# The same for a table of clicks.
POINT_NAMES: dict[str, tuple[str, ...]] = {
    "image": ("image", "imageid", "imagename", "subject", "subjectid", "subjectids", "file", "filename", "frame",
              "task", "taskid", "item", "itemid", "picture", "photo"),
    "worker": NAMES["worker"],
    "x": ("x", "xcoordinate", "coordx", "posx", "px", "column", "xpixel", "clickx", "left"),
    "y": ("y", "ycoordinate", "coordy", "posy", "py", "row", "ypixel", "clicky", "top"),
    "z": ("z", "zcoordinate", "coordz", "posz", "slice", "depth"),
    "seconds": NAMES["seconds"],
    "order": ("order", "clickorder", "sequence", "clicknumber"),
}  # fmt: skip


# And for a table of pairs.
PAIR_NAMES: dict[str, tuple[str, ...]] = {
    "left": ("left", "leftid", "leftitem", "item1", "itema", "first", "firstitem", "a", "i", "id1", "ida", "record1",
             "image1", "object1", "lid"),
    "right": ("right", "rightid", "rightitem", "item2", "itemb", "second", "seconditem", "b", "j", "id2", "idb",
              "record2", "image2", "object2", "rid"),
    "worker": NAMES["worker"],
    "answer": ("answer", "same", "issame", "match", "ismatch", "label", "link", "judgment", "judgement", "response",
               "vote", "value"),
    "hit": ("hit", "hitid", "job", "jobid", "assignment", "assignmentid"),
}  # fmt: skip


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def guess(
    role: str, columns: Sequence[str], taken: set[str], names: Mapping[str, tuple[str, ...]] = NAMES
) -> str | None:
    """The column whose name is the best known one for this role."""
    plain = {_plain(column): column for column in reversed(columns) if column not in taken}
    return next((plain[name] for name in names[role] if name in plain), None)


def find(
    columns: Sequence[str],
    given: Mapping[str, str | None],
    source: str,
    names: Mapping[str, tuple[str, ...]] = NAMES,
    required: Sequence[str] = REQUIRED,
) -> tuple[dict[str, str], bool]:
    """Role -> column for a long table, and whether any was guessed; an error names what is missing."""
    found = {role: name for role, name in given.items() if name is not None}
    for role, name in found.items():
        if name not in columns:
            raise missing(role, name, columns, source, clicks=names is not NAMES)
    guessed = False
    for role in names:
        likely = None if role in found else guess(role, columns, set(found.values()), names)
        if likely is not None:
            found[role] = likely
            guessed = True
    for role in required:
        if role not in found:
            raise missing(role, role, columns, source, clicks=names is not NAMES)
    return found, guessed


def missing(role: str, name: str, columns: Sequence[str], source: str, clicks: bool = False) -> ColumnError:
    hint = nearest(name, columns)
    close = hint.split("'")[1] if hint else "COLUMN"
    wide = ", or --wide if each worker has a column" if not hint and role in ("worker", "label") else ""
    if role in ("task", "label") and {"x", "y"} <= set(columns):
        wide += ". Clicks? Then it is crowdwise points (in Python crowdwise.Points)"
    if role in ("x", "y"):
        return ColumnError(
            f"no column {name!r} in {source}; columns are {', '.join(map(str, columns))}.{hint} Say --axes with the "
            "columns of the coordinates, for instance --axes left,top (in Python axes=['left', 'top'])"
        )
    if clicks:
        wide = ""
    elif role == "worker":
        wide += "; where nobody knows who answered, --anonymous each (anonymous='each')"
    return ColumnError(
        f"no column {name!r} in {source}; columns are {', '.join(map(str, columns))}.{hint}"
        f" Say --{role} {close} (in Python {role}={close!r}){wide}"
    )


def looks_wide(frame: pl.DataFrame, given: Mapping[str, str | None]) -> bool:
    """A column a worker: no worker and label columns by name, and the first column names each row once."""
    columns = frame.columns
    if any(given.get(role) for role in ("worker", "label")) or len(columns) < 3 or frame.is_empty():
        return False
    if guess("worker", columns, set()) or guess("label", columns, set()):
        return False
    if any(nearest(role, columns) for role in ("worker", "label")):  # a misspelt long table, not a worker
        return False
    return frame[:, 0].null_count() == 0 and frame[:, 0].n_unique() == frame.height


class Long(NamedTuple):
    """A table with a row an answer, and what was understood of it."""

    frame: pl.DataFrame
    columns: dict[str, str]  # role -> column of `frame`
    shown: dict[str, str]  # the same, as the user's table has it
    guessed: bool
    gold: pl.DataFrame | None  # task and label, where a wide table brought them
    note: str  # "" for a table that was long already

    @property
    def was_wide(self) -> bool:
        return bool(self.note)


def as_long(frame: pl.DataFrame, given: Mapping[str, str | None], wide: bool | None, source: str) -> Long:
    """A table as rows of answers, with its columns found."""
    if not (looks_wide(frame, given) if wide is None else wide):
        columns, guessed = find(frame.columns, given, source)
        return Long(frame, columns, columns, guessed, None, "")
    for role in ("worker", "label"):
        if given.get(role):
            raise ParameterError(f"{role}={given[role]!r} names a column, but in a wide table columns are workers")
        if wide and guess("worker", frame.columns, set()) and guess("label", frame.columns, set()):
            raise ColumnError(f"{source} has columns for worker and label, so it is a long table. Leave --wide away")
    key = given.get("task") or frame.columns[0]
    truth = given.get("gold") or guess("gold", frame.columns, {key})
    for role, name in (("task", key), ("gold", truth)):
        if name is not None and name not in frame.columns:
            raise missing(role, name, frame.columns, source)
    people = [name for name in frame.columns if name not in (key, truth)]
    tasks = frame.select(pl.col(key).alias("task"))
    parts = [tasks.with_columns(pl.lit(name).alias("worker"), frame[name].alias("label")) for name in people]
    melted = pl.concat(parts, how="vertical_relaxed")
    gold = None if truth is None else frame.select(pl.col(key).alias("task"), pl.col(truth).alias("label"))
    shown = {"task": key, "worker": f"the other {len(people)} columns"} | ({"gold": truth} if truth else {})
    note = f"wide table: {key!r} names the task, {len(people)} columns are workers, empty cells are no answers"
    return Long(melted, {role: role for role in REQUIRED}, shown, False, gold, note)
