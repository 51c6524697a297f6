"""What the page shows, section by section, as plain values; `build` fills it, `render` turns it into HTML.

Names of tasks, workers and labels are text here, cut to `LONGEST` characters; classes are told by their number in
`Page.classes`. A section that cannot be had is None (or empty), and `says` tells why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .frame import BasePage, plain
from .summary import Summary
from .words import GLOSSARY

TRUTH = "truth"  # the method that is no estimate

# A matrix in sparse form: (true class, label told, expected answers), only where there are any.
Cells = list[tuple[int, int, float]]


@dataclass(frozen=True)
class ClassShare:
    """How often a class is told, and how often it seems true."""

    label: int
    votes: float
    truth: float


@dataclass(frozen=True)
class Surprise:
    """An answer of a worker that the others make improbable."""

    task: str
    said: int
    label: int  # what the task seems to be
    probability: float  # of that


@dataclass(frozen=True)
class WorkerRow:
    """A worker, as in `LabelsResult.workers`, with what is shown when that worker is chosen."""

    worker: str
    rank: int | None
    answers: int
    skill: float | None
    low: float | None
    high: float | None
    spam_score: float | None
    trace: float | None
    agreement: float | None
    check_score: float | None
    checks: int
    seconds: float | None
    overuses: int | None  # class
    overuse: float | None  # share of the answers told, less the share that seems true
    flags: list[str]
    reasons: list[str]  # one for each flag
    status: str
    confusion: Cells
    surprises: list[Surprise]


@dataclass(frozen=True)
class Workers:
    """The workers shown: all of them, or the flagged, the best and the worst of many."""

    says: str
    total: int
    rows: list[WorkerRow]


@dataclass(frozen=True)
class Vote:
    """The answer of one worker to a task."""

    worker: str
    label: int
    skill: float | None


@dataclass(frozen=True)
class TaskRow:
    """A task worth another look."""

    task: str
    label: int | None
    probability: float | None
    status: str  # ok, unvoted, no answers, known
    tie: bool
    answers: int
    entropy: float | None  # bits
    vote_entropy: float | None
    disagreement: float | None
    difficulty: float | None
    gain: float | None  # in the chance of being right, by one more answer
    posterior: list[tuple[int, float]]  # class and probability, most probable first
    votes: list[Vote]
    more_votes: int  # that are not listed


@dataclass(frozen=True)
class Tasks:
    """The tasks shown, most uncertain first."""

    says: str
    total: int
    to_review: int
    rows: list[TaskRow]


@dataclass(frozen=True)
class MixUp:
    """A class told in place of another."""

    truth: int
    said: int
    answers: float  # expected
    share: float  # of the answers to tasks of this truth


@dataclass(frozen=True)
class MixUps:
    says: str
    rows: list[MixUp]


@dataclass(frozen=True)
class CurvePoint:
    """Expected accuracy after some more answers."""

    plan: str  # "every task", "the most uncertain tasks"
    answers: int  # added
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    says: str
    points: list[CurvePoint]


@dataclass(frozen=True)
class Times:
    """Seconds against skill, a dot a worker; None where answers carry no times."""

    says: str
    rows: list[tuple[str, float, float, bool]]  # worker, median seconds, skill, flagged


@dataclass(frozen=True)
class Bin:
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Histogram:
    title: str
    unit: str
    says: str
    whole: bool  # whole numbers: a bin holds those from `low` to below `high`
    bins: list[Bin]


@dataclass(frozen=True)
class Matrix:
    title: str
    worker: str | None
    cells: Cells


@dataclass(frozen=True)
class Pictures:
    histograms: list[Histogram]  # answers a task, answers a worker, entropy of the soft votes
    says: str
    matrices: list[Matrix]  # best workers, worst workers, the average


@dataclass(frozen=True)
class ModelRow:
    model: str
    differs: int  # labels unlike those of this result
    accuracy: float | None
    log_loss: float | None
    iterations: int
    converged: bool
    seconds: float


@dataclass(frozen=True)
class Models:
    says: str
    rows: list[ModelRow]


@dataclass(frozen=True)
class RocCurve:
    """How many of one class are found, against how many others are taken for it, as the threshold falls."""

    method: str
    auc: float
    points: list[tuple[float, float]]  # (false positive rate, true positive rate), from (0, 0) to (1, 1)


@dataclass(frozen=True)
class Roc:
    """A curve a method, the method of this result first."""

    says: str
    positive: int | None  # the class that is sought; None: every class against the others, together
    curves: list[RocCurve]


@dataclass(frozen=True)
class Expert:
    """How often a worker names a class where it is true."""

    worker: str
    label: int
    method: str  # who says so: a method, or TRUTH
    share: float


@dataclass(frozen=True)
class Expertise:
    """What methods say of workers, beside the truth where it is known."""

    says: str
    methods: list[str]  # in the order to show; TRUTH comes first where it is known
    rows: list[Expert]


@dataclass(frozen=True)
class Group:
    """Workers who err alike."""

    share: float  # of the crowd
    workers: float  # expected number
    similarity: float  # of its matrix to the identity, from 0 to 1
    entropy: float  # of a row of its matrix, in nats
    cells: Cells  # of its matrix: (true class, class told, probability from 0 to 1)


@dataclass(frozen=True)
class Compared:
    """A worker's confusion matrix as it was, and as it was estimated."""

    title: str  # "Told best", "Told worst", "All answers together"
    worker: str | None
    divergence: float  # of the two, in bits from 0 to 1
    truth: Cells  # probabilities, as in Group
    estimated: Cells


@dataclass(frozen=True)
class Groups:
    says: str
    note: str  # what a reader must know of how far groups can be told apart; may be empty
    groups: list[Group]  # the largest first
    compared_says: str
    compared: list[Compared]  # where the truth is known


@dataclass(frozen=True)
class Cost:
    """What a fit took."""

    method: str
    workers: int
    seconds: float  # per iteration
    megabytes: float  # at its peak, above the data


@dataclass(frozen=True)
class Scaling:
    """Time and memory against the number of workers."""

    says: str
    methods: list[str]  # in the order to show
    rows: list[Cost]


@dataclass(frozen=True, kw_only=True)
class Page(BasePage):
    """Everything on the page of labels."""

    template, words = "page.html", GLOSSARY

    summary: Summary
    classes: list[str]
    prevalence_says: str
    prevalence: list[ClassShare]
    workers: Workers
    tasks: Tasks
    mixups: MixUps
    curve: Curve
    times: Times | None
    pictures: Pictures
    models: Models | None
    roc: Roc | None  # where the truth is known
    expertise: Expertise | None  # of workers who are told apart class by class, where asked for
    groups: Groups | None  # of workers, where the model has them
    scaling: Scaling | None  # where it was measured

    def as_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = plain(self)
        return data
