"""The roles of columns in each kind of answers: given by the caller, or recognised by common names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..errors import ColumnError, nearest, option, phrase

NONE_GIVEN: Mapping[str, object] = MappingProxyType({})
COORDINATES = ("x", "y", "z")


@dataclass(frozen=True)
class Roles:
    """The roles of the columns of one kind of answers."""

    names: Mapping[str, str]  # role -> common names, best first; in lower case, without blanks and punctuation
    required: tuple[str, ...]
    may_be_wide: bool = False  # whether a table may have one column per worker

    def guess(self, role: str, columns: Sequence[str], taken: Collection[str] = ()) -> str | None:
        """Return the column with the most common name for this role; None without one."""
        plain = {_plain(column): column for column in reversed(columns) if column not in taken}
        return next((plain[name] for name in self.names[role].split() if name in plain), None)

    def complete(self, columns: Sequence[str], given: Mapping[str, object] = NONE_GIVEN) -> bool:
        """Whether every required role has a column, given or recognised by its name.

        Names of one letter are ignored unless they are coordinates: `a` and `b` do not identify a kind of answers.
        """
        distinctive = [column for column in columns if len(_plain(column)) > 1 or _plain(column) in COORDINATES]
        return all(given.get(role) or self.guess(role, distinctive) for role in self.required)

    def find(
        self, columns: Sequence[str], given: Mapping[str, str | None], source: str, required: Sequence[str] = ()
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return role -> column and the roles that were guessed. A missing required column raises ColumnError."""
        found = {role: name for role, name in given.items() if name is not None}
        for role, name in found.items():
            if name not in columns:
                raise self.missing(role, name, columns, source)
            other = next(each for each in found if found[each] == name)
            if other != role:
                raise self._taken(role, name, other, columns, source)
        guessed = []
        for role in self.names:
            likely = None if role in found else self.guess(role, columns, set(found.values()))
            if likely is not None:
                found[role] = likely
                guessed.append(role)
        for role in required or self.required:
            if role not in found:
                named = self.guess(role, columns)
                first = next((other for other in found if found[other] == named), None)
                if first is not None:
                    raise self._taken(role, str(named), first, columns, source)
                raise self.missing(role, role, columns, source, given)
        return found, tuple(guessed)

    def proposal(self, columns: Sequence[str], given: Mapping[str, object]) -> str:
        """Return the options that name all required columns, if for each there is exactly one that it can be."""
        found = {role: str(name) for role, name in given.items() if name is not None}
        for role in self.required:
            likely_ones = likely(role, columns, found.values())
            usual = found.get(role) or self.guess(role, columns, found.values())
            if usual is None and len(likely_ones) != 1:
                return ""
            found[role] = usual or likely_ones[0]
        new = [option(role, found[role]) for role in self.required if found[role] != self.guess(role, columns)]
        first, *others = self.required
        what = ", ".join([f"{found[first]!r} may be the {first}", *(f"{found[role]!r} the {role}" for role in others)])
        return f"{what}: use {phrase(', ', ' ').join(new)}" if new else ""

    def _taken(self, role: str, name: str, first: str, columns: Sequence[str], source: str) -> ColumnError:
        """Return the error for a role whose column already has another role."""
        return ColumnError(
            f"the column {name!r} of {source} cannot be both the {first} and the {role}; columns are "
            f"{', '.join(map(str, columns))}. Give another column for one of them, for instance "
            f"{option(role, 'COLUMN')}"
        )

    def missing(
        self, role: str, name: str, columns: Sequence[str], source: str, given: Mapping[str, object] = NONE_GIVEN
    ) -> ColumnError:
        """Return the error for a missing column."""
        proposal = "" if given.get(role) else self.proposal(columns, given)
        if proposal:
            return ColumnError(
                f"no column {name!r} in {source}; columns are {', '.join(map(str, columns))}. {proposal}"
            )
        hint = nearest(name, columns)
        found = f"no column {name!r} in {source}; columns are {', '.join(map(str, columns))}.{hint}"
        if role in ("x", "y"):
            axes = option("axes", "left", "top")
            return ColumnError(f"{found} Name the columns of the coordinates, for instance {axes}")
        advice = f" Use {option(role, hint.split(chr(39))[1] if hint else 'COLUMN')}"
        if self.may_be_wide and role in ("worker", "label") and not hint:
            advice += f", or {option('wide', True)} if each worker has a column"
        if self.may_be_wide and role in ("task", "label") and {"x", "y"} <= set(columns):
            advice += f". If these are clicks, use {option('kind', 'points')}"
        if self.may_be_wide and role == "worker":
            advice += f"; if the workers are unknown, use {option('anonymous', 'each')}"
        return ColumnError(found + advice)


_WORKER = (
    "worker workerid annotator annotatorid user userid username rater raterid coder coderid judge judgeid labeler "
    "labeller labelerid performer participant participantid completedby expert reviewer source model"
)
_SECONDS = "seconds worktimeinseconds leadtime duration timespent"

LABEL_ROLES = Roles(
    {
        "task": "task taskid item itemid unit unitid question questionid hitid example exampleid instance instanceid "
        "document docid image imageid subject subjectid subjectids object objectid record recordid sample sampleid id",
        "worker": _WORKER,
        "label": "label answer response annotation vote class category choice judgment judgement rating value output "
        "outputresult",
        "gold": "gold goldlabel golden truth truelabel groundtruth",
        "seconds": _SECONDS,
        "timestamp": "timestamp time submittedat submittime createdat updatedat date datetime",
        "started": "started startedat starttime accepttime start",
        "is_check": "ischeck isgold isattncheck attentioncheck attncheck check",
        "weight": "weight weights",
    },
    required=("task", "worker", "label"),
    may_be_wide=True,
)
POINT_ROLES = Roles(
    {
        "image": "image imageid imagename subject subjectid subjectids file filename frame task taskid item itemid "
        "picture photo",
        "worker": _WORKER,
        "x": "x xcoordinate coordx posx px column xpixel clickx left",
        "y": "y ycoordinate coordy posy py row ypixel clicky top",
        "z": "z zcoordinate coordz posz slice depth",
        "seconds": _SECONDS,
        "order": "order clickorder sequence clicknumber",
    },
    required=("image", "worker", "x", "y"),
)
PAIR_ROLES = Roles(
    {
        "left": "left leftid leftitem item1 itema first firstitem a i id1 ida record1 image1 object1 lid",
        "right": "right rightid rightitem item2 itemb second seconditem b j id2 idb record2 image2 object2 rid",
        "worker": _WORKER,
        "answer": "answer same issame match ismatch label link judgment judgement response vote value",
        "hit": "hit hitid job jobid assignment assignmentid",
    },
    required=("left", "right", "worker", "answer"),
)
# Words in the names of columns that may have a role, where no common name is there: "Answer.category", "Turk ID".
LIKELY = {
    "label": "answers? labels? outputs? responses? annotations? choices? category verdicts? ratings? judge?ments?",
    "worker": "workers? annotators? turk(er)? users? raters? coders? judges? participants? labell?ers?",
    "task": "tasks? items? hit units? questions? examples? documents? subjects? images? urls? texts?",
}
UNLIKELY = "confidence gold golden time times date count number correct score trust at on ip email seconds status"


def likely(role: str, columns: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return the columns that may have a role, by the words in their names.

    >>> likely("label", ["HITId", "WorkerId", "Answer.category", "Answer.category.confidence"])
    ['Answer.category']
    """
    if role not in LIKELY:
        return []
    found = []
    for column in columns:
        words = {word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", column)}
        wanted = any(re.fullmatch(pattern, word) for pattern in LIKELY[role].split() for word in words)
        if wanted and column not in taken and not words & {*UNLIKELY.split()}:
            found.append(column)
    return found


CONTENT_ROLES = Roles(
    {
        "task": "task taskid item itemid id unit unitid questionid hitid example exampleid instance instanceid docid "
        "subject subjectid subjectids object objectid record recordid sample sampleid imageid question document image",
        "text": "text sentence content body title name description document question",
        "image": "image imagefile imagename file filename picture photo",
    },
    required=("task",),
)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())
