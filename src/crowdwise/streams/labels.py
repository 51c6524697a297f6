"""LabelStream: labels that keep coming, learned by incremental EM."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import polars as pl

from ..answers import Intake, Labels, rules
from ..answers.arguments import checked, items
from ..answers.changes import REPEATS, Changes, Repeats, read_changes, read_removals
from ..answers.coding import sought, to_numbers
from ..answers.frames import FOREIGN
from ..engine import Decision, Executor, Model, Run, Standing, Stream, Trace, registry
from ..engine.stream import check_bounds
from ..errors import DataError, EmptyDataError, ParameterError, UnknownIdError, check_choice, nearest
from ..kernels import choose
from ..kernels.ahead import expected_right, information, with_other
from ..kernels.layout import Floats, Ints, Subset, WorkerRows, add_shard, find_rows, narrow, sort_answers
from ..kernels.rules import Real, Whole, ascends
from ..kernels.special import decide as most_probable
from ..labels.em import EMModel, Local
from ..labels.incremental import Changed, Computing, Learned, TaskAnswers, learn_change, small_shard
from ..labels.model import LabelModel, Learnt
from ..labels.shard import Crowd, Shard
from ..result import LabelsResult
from ..result.stored import Parts, Stored, UnsoundError, conforms
from .held import Extras, Ids, Numbering, Pool, grown

PACKAGE = "crowdwise.labels"  # where the models are
SMALL = 10_000  # answers up to which a fit takes a fraction of a second
GROWTH_SMALL, GROWTH = 1.02, 1.25  # a fit from the start is due at so many times the answers of the last one
MIN_REFRESHED_TASKS = 200  # other tasks whose posterior an update computes again, at least
MAX_CANDIDATES = 2_000  # workers with the most correct answers, who are compared for a task
MAX_WORKERS_NAMED = 20  # workers worth asking who are named
MIN_INFORMATION_RATIO = 0.5  # a worker is worth asking if their information is this many times the average worker's


class _Streamed:
    """The registered models that can be streamed, the default first."""

    def __get__(self, stream: Any, owner: type) -> tuple[type[Model[Any, Any]], ...]:
        registry.discover(PACKAGE)
        known = registry.MODELS["labels"]
        found = [each for each in known.values() if issubclass(each, EMModel) and each.can_stream]
        return tuple(sorted(found, key=lambda each: each.name != registry.DEFAULTS["labels"]))


class _Plan(NamedTuple):
    """A change of answers, before anything is changed."""

    tasks: Ints  # (T,) numbers of the tasks that change
    changed: Changed  # their answers and gold; Z is empty
    numbering: tuple[Numbering, Numbering, Numbering]  # of tasks, workers and classes
    extras: pl.DataFrame  # of the answers that are new
    waiting: dict[Any, Any]  # gold of tasks that have no answers after the change; None: no longer waiting
    n_changes: int

    @property
    def growth(self) -> int:
        return len(self.changed.after.at) - len(self.changed.before.at)


SAVED_STREAM = {  # what a file has of a stream, apart from what was learned
    "columns": dict[str, str | None],
    "reading": dict[str, Any],
    "ignored": int,
    "fitted": int,
    "refit": bool,
    "turn": int,
    "known": bool,
    "task": Annotated[pl.Series, rules.Ids("T")],
    "worker": Annotated[pl.Series, rules.Ids("W")],
    "class": Annotated[pl.Series, rules.Ids("K")],
    "size": Annotated[Ints, Whole("T", dtype="int64")],
    "answers": Annotated[Ints, Whole("N 3", -1)],
    "waiting": Annotated[pl.DataFrame, rules.Table("waiting", ("task", "gold"))],
    "extras": Annotated[pl.DataFrame, rules.Table("extras", optional=True)],
    "gold": Annotated[Ints, Whole("T", -1, below="K")],
    "Z": Annotated[Floats, Real("T K", 0, 1)],
}


class LabelStream(Stream[Labels, LabelsResult]):
    """Learn from labels that keep coming, without fitting everything again.

    `model` is a name, a class or an instance of a model that is fitted by EM or variational Bayes; by default it is
    that of `cw.aggregate`. `task`, `worker`, `label` and `gold` name columns of the tables, `missing` lists labels that
    mean no answer, and `wide` says whether each worker has a column. If a table has several rows for one worker and
    task, `duplicates` says which is used: "last" (by time, if every row has a time), "first" or "error".

    An update costs in proportion to its own answers, but when all answers have become 1.25 times those of the last fit,
    the update that reaches this fits them from the start, since what was learned from few answers may mislead. So does
    an update with a label that was never seen. With `refit=False`, more than 10,000 answers are not fitted by updates
    for their growth: `due` says that it is time to call `result`, which does it.

    >>> import crowdwise as cw
    >>> stream = cw.LabelStream()
    >>> stream = stream.update({"task": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "cat", "dog"]})
    >>> stream = stream.update({"task": [2], "worker": ["bob"], "label": ["dog"]})
    >>> stream
    LabelStream(pooled: 4 answers, 2 tasks, 2 workers, 2 classes)
    >>> stream.decide(2, min=3).ask
    5
    >>> stream.result().labels["label"].to_list()
    ['cat', 'dog']
    """

    models = _Streamed()

    @checked
    def __init__(
        self,
        model: Any = None,
        *,
        task: str | None = None,
        worker: str | None = None,
        label: str | None = None,
        gold: str | None = None,
        missing: Collection[str] = (),
        wide: bool | None = None,
        duplicates: Repeats = "last",
        refit: bool = True,
    ) -> None:
        super().__init__(_model(model))
        check_choice("duplicates", duplicates, REPEATS)
        self._columns = {"task": task, "worker": worker, "label": label, "gold": gold}
        self._reading: dict[str, Any] = {
            "missing": items(missing),
            "wide": wide,
            "repeats": duplicates,
        }
        self._refit = refit
        self.ignored = 0  # rows that changed nothing: without a task or worker, or deletions of unknown answers
        self._waiting: dict[Any, Any] = {}  # gold of tasks that have no answers
        self._clear()

    def _clear(self) -> None:
        """Hold no answers; types of ids are kept."""
        self._tasks, self._workers, self._classes = Ids("task"), Ids("worker"), Ids("class")
        self._pool, self._extras = Pool(), Extras()
        self._gold: Ints = np.zeros(0, np.int32)  # (T,) with spare capacity
        self._Z: Floats = np.zeros((0, 0))  # (T, K) with spare capacity
        self._known: Learned | None = None
        self._fitted = self._turn = 0  # answers of the last fit from the start; the next task to refresh
        self._view: LabelsResult | None = None

    @property
    def em(self) -> EMModel[Any, Any]:
        return self.model  # type: ignore[return-value]

    @property
    def n_answers(self) -> int:
        """The number of answers held."""
        return self._pool.count

    def __repr__(self) -> str:
        tasks = int((self._pool.size > 0).sum())
        workers = 0 if self._known is None else int((self._known.rows.per_worker > 0).sum())
        return (
            f"LabelStream({self.model.name}: {self.n_answers} answers, {tasks} tasks, {workers} workers, "
            f"{len(self._classes)} classes)"
        )

    @checked
    def update(self, answers: Any, *, run: Run | None = None) -> Self:
        """Learn from a table with task, worker and label, or from `Labels`.

        An answer that is held already changes nothing, another label of the same worker for the same task replaces it,
        and a row without a label deletes it. A column `gold` has known labels of tasks; a table with task and gold only
        adds them. If a table is refused, nothing is changed.
        """
        changes = read_changes(
            answers, self._columns, **self._reading, label_type=self._classes.type, source="this update"
        )
        if changes is not None:
            self._refuse_weights(changes.extras)
            self._change(changes, run or Run())
        return self

    def remove(self, answers: Any) -> int:
        """Delete the answers listed in a table with task and worker; return how many of them are not held."""
        task, worker = read_removals(answers, self._columns, "this table")
        rows = pl.DataFrame({"task": self._tasks.accepted(task), "worker": self._workers.accepted(worker)})
        rows = rows.drop_nulls().unique(maintain_order=True)
        before = self.ignored
        label = pl.Series("label", [None] * rows.height, dtype=self._classes.type or pl.String)
        changes = read_changes(rows.with_columns(label), {}, label_type=self._classes.type)
        if changes is not None:
            self._change(changes, Run())
        unknown, self.ignored = self.ignored - before, before
        return unknown

    @checked
    def result(self, *, run: Run | None = None) -> LabelsResult:
        """Return the result of all answers held. They are fitted from the start, so it does not depend on the order in
        which they came. The stream then goes on from this fit."""
        if run is not None and run.resume is not None:
            raise ParameterError("a stream has no checkpoints: call result() again without resume")
        if not self.n_answers:
            raise EmptyDataError("the stream holds no answers. Give it some with update")
        run = (run or Run()).begin()
        return self.em.built(*self._fit(run), run)

    @property
    def labels(self) -> pl.DataFrame:
        """The table `labels` of a result, by what was learned so far, without further iterations."""
        return self._present().labels

    @property
    def workers(self) -> pl.DataFrame:
        """The table `workers` of a result, by what was learned so far, without further iterations."""
        return self._present().workers

    def probabilities(self, task: Any) -> dict[Any, float]:
        """Return the probability of each class for a task, by what was learned so far."""
        posterior, *_ = self._task(task)
        return dict(zip(self._classes.values, posterior.tolist(), strict=True))

    def decide(self, item: Any, probability: float = 0.95, min: int = 2, max: int = 7) -> Decision:
        """Return whether a task is settled: its label is gold, or it has at least `min` answers and the probability
        asked is reached. A task that is not settled by `max` answers is contested; otherwise, ask for more answers."""
        check_bounds(probability, min, max)
        number = self._number(item)
        gold = self._waiting.get(item)
        if number >= 0 and self._gold[number] >= 0:
            gold = self._classes.values[self._gold[number]]
        if gold is None:
            return super().decide(item, probability, min, max)
        answers = int(self._pool.sizes(np.array([number]))[0]) if number >= 0 else 0
        return Decision(item, "settled", 0, (), 1.0, answers, f"The label {gold!r} is known (gold).")

    # Changes

    def _refuse_weights(self, extras: pl.DataFrame) -> None:
        if "weight" in extras.columns and not (to_numbers(extras["weight"]) == 1).all():
            raise DataError(
                f"these answers have weights (column 'weight'), which {self.model.name} does not use. Drop the column"
            )

    def _change(self, changes: Changes, run: Run) -> None:
        plan = self._planned(changes)
        if plan is None:
            return
        n = self.n_answers + plan.growth
        may = self._refit or n <= SMALL or n >= 2 * self.n_answers
        if self._known is None or plan.numbering[2].new or (may and self._is_due(n)):
            self._commit(plan)
            self._known = None
            if n:
                self._fit(run.begin())
            return
        K, W = len(self._classes), len(plan.numbering[1])
        others = self._in_turn(max(MIN_REFRESHED_TASKS, plan.n_changes), plan.tasks)
        changed = _joined(plan.changed, self._pool.of(others), self._gold[others], len(plan.tasks))
        Z = np.concatenate([self._posterior_of(plan.tasks, K), self._Z[others]])
        how = Computing(K, n, run.threads, int(run.seed))
        known, Z = learn_change(self.em, self._known, changed._replace(Z=Z), W, how)
        self._commit(plan)
        self._known = known
        self._Z[np.concatenate([plan.tasks, others])] = Z

    def _is_due(self, n_answers: int) -> bool:
        return n_answers >= (GROWTH_SMALL if n_answers <= SMALL else GROWTH) * self._fitted

    @property
    def due(self) -> bool:
        """Whether a fit from the start is due: there are many more answers than at the last one."""
        return self.n_answers > 0 and self._is_due(self.n_answers)

    def _posterior_of(self, tasks: Ints, K: int) -> Floats:
        Z = np.zeros((len(tasks), K))
        old = tasks < len(self._tasks)
        Z[old] = self._Z[tasks[old]]
        return Z

    def _in_turn(self, count: int, but: Ints) -> Ints:
        """Return the next tasks to refresh, without those given."""
        total = len(self._tasks)
        found = (self._turn + np.arange(min(count, total))) % max(total, 1)
        self._turn = (self._turn + count) % max(total, 1)
        return np.setdiff1d(found, but)

    def _planned(self, changes: Changes) -> _Plan | None:
        """Return what changes, or None if nothing does. Ids of another type are refused."""
        roles = (self._tasks, self._workers, self._classes)
        names = [role.accepted(ids).to_list() for role, ids in zip(roles, changes[:3], strict=True)]
        held, effective = self._effective(changes, names)
        self.ignored += changes.ignored + int(((changes.label < 0) & (held < 0)).sum())
        kinds = [ids.dtype for ids in changes[:3]]
        numbering = tuple(Numbering(role, kind) for role, kind in zip(roles, kinds, strict=True))
        answered = np.unique(changes.task[effective])
        chosen = np.union1d(answered, np.flatnonzero(changes.gold >= 0))  # of the tasks in `changes`
        tasks = self._tasks.find([names[0][c] for c in chosen])
        new = np.flatnonzero((tasks < 0) & np.isin(chosen, answered))
        tasks[new] = numbering[0].of([names[0][c] for c in chosen[new]])
        before = self._pool.of(np.where(tasks < 0, len(self._pool.size), tasks))
        after = self._merged(changes, effective, chosen, before, names, numbering)
        answers = np.bincount(after.at, minlength=len(chosen))
        was, gold, waiting = self._new_gold(changes, chosen, tasks, answers > 0, names, numbering[2])
        keep = np.flatnonzero(np.isin(chosen, answered) | (gold != was))
        if not len(keep):
            if waiting:
                self._tasks.set_type(kinds[0])
                self._classes.set_type(kinds[2])
            self._wait_for_answers(waiting)
            return None
        changed = Changed(
            _only(before, keep, len(chosen)), _only(after, keep, len(chosen)), was[keep], gold[keep], np.zeros(0)
        )
        extras = changes.extras.filter(pl.Series(effective)) if changes.extras.width else changes.extras
        return _Plan(tasks[keep], changed, numbering, extras, waiting, int(effective.sum()) + len(keep))  # type: ignore[arg-type]

    def _effective(self, changes: Changes, names: Sequence[list[Any]]) -> tuple[Ints, Any]:
        """Return the label held (N,) for each row of the changes, or -1, and which rows change something."""
        number = [ids.find(each) for ids, each in zip((self._tasks, self._workers, self._classes), names, strict=True)]
        task, worker = number[0][changes.task], number[1][changes.worker]
        some = np.unique(task[task >= 0])
        answers, W = self._pool.of(some), max(len(self._workers), 1)
        keys = answers.at * W + answers.worker
        order = np.argsort(keys)
        wanted = np.where((task >= 0) & (worker >= 0), np.searchsorted(some, task) * W + worker, -1)
        at = np.searchsorted(keys[order], wanted)
        same = np.append(keys[order], -2)[at] == wanted
        held = np.where(same, np.append(answers.label[order], -1)[at], -1)
        label = np.append(number[2], -1)[changes.label]  # -1: deleted, or a new class
        delete = changes.label < 0
        return held, np.where(delete, held >= 0, (label < 0) | (label != held))

    def _merged(
        self, changes: Changes, effective: Any, chosen: Ints, before: TaskAnswers, names: Any, numbering: Any
    ) -> TaskAnswers:
        """Return the answers of the chosen tasks after the change."""
        rows = np.flatnonzero(effective)
        at = np.searchsorted(chosen, changes.task[rows])
        used, which = np.unique(changes.worker[rows], return_inverse=True)
        worker = numbering[1].of([names[1][n] for n in used])[which]
        used, which = np.unique(changes.label[rows], return_inverse=True)
        given = used[used >= 0]
        classes = numbering[2].of([names[2][n] for n in given])
        label = np.append(np.full(len(used) - len(given), -1), classes)[which]
        extra = self._extras.numbers(changes.extras, len(rows))
        both = [np.concatenate(pair) for pair in zip(before, (at, worker, label, extra), strict=True)]
        order = np.lexsort((both[1], both[0]))  # stable: of two answers of a worker, the new one is the second
        at, worker, label, extra = (each[order] for each in both)
        last = np.append((np.diff(at) != 0) | (np.diff(worker) != 0), True)[: len(at)] & (label >= 0)
        return TaskAnswers(at[last], worker[last], label[last], extra[last])

    def _new_gold(
        self, changes: Changes, chosen: Ints, tasks: Ints, answered: Any, names: Any, classes: Numbering
    ) -> tuple[Ints, Ints, dict[Any, Any]]:
        """Return the gold of the chosen tasks before and after the change, and gold that waits for answers."""
        old = (tasks >= 0) & (tasks < len(self._tasks))
        was = np.full(len(chosen), -1)
        was[old] = self._gold[tasks[old]]
        values = [names[2][k] if k >= 0 else None for k in changes.gold[chosen].tolist()]
        gold, waiting = was.copy(), dict[Any, Any]()
        if self._waiting or any(value is not None for value in values) or not answered.all():
            for n, (c, value) in enumerate(zip(chosen.tolist(), values, strict=True)):
                name = names[0][c]
                if value is None:
                    value = self._classes.values[was[n]] if was[n] >= 0 else self._waiting.get(name)
                if value is not None:
                    gold[n] = classes.of([value])[0] if answered[n] else -1
                    waiting[name] = None if answered[n] else value
        return was, gold, waiting

    def _commit(self, plan: _Plan) -> None:
        """Change the answers."""
        for each in plan.numbering:
            each.commit()
        self._extras.add(plan.extras)
        self._pool.put(plan.tasks, plan.changed.after)
        self._gold = grown(self._gold, len(self._tasks), -1)
        self._gold[plan.tasks] = plan.changed.gold
        if len(self._tasks) > len(self._Z):
            self._Z = grown(self._Z, len(self._tasks))
        self._wait_for_answers(plan.waiting)
        self._view = None

    def _wait_for_answers(self, gold: dict[Any, Any]) -> None:
        """Keep gold of tasks without answers; None removes it."""
        for task, label in gold.items():
            if label is None:
                self._waiting.pop(task, None)
            else:
                self._waiting[task] = label

    # Fits of all answers

    def _fit(self, run: Run) -> tuple[Labels, Any, Executor[Shard], Learnt]:
        """Fit all answers from the start, and go on from there: with ids in order, and without tasks, workers and
        classes that have no answers."""
        answers, _, _, _ = self._labels()
        crowd, shards = self.em.prepared(answers, run)
        learnt = self.em.learn(answers, crowd, shards, run)
        Z = np.concatenate(list(shards.each(_posterior))).astype(np.float64)
        self._adopt(answers, self.em.finish(crowd, learnt.params, shards), Z, run)
        return answers, crowd, shards, learnt

    def _narrowed(self, answers: Labels, workers: Ints) -> Any:
        """Return the parameters of the rows and workers of the answers held; `workers` are their numbers here."""
        assert self._known is not None
        rows, layout = self._known.rows, answers.layout
        number, _ = find_rows(rows, workers[layout.row_worker], layout.row_label)
        return narrow(self._known.params, Subset(number, workers, rows.n_rows, rows.n_workers))

    def _labels(self) -> tuple[Labels, Ints, Ints, bool]:
        """Return the answers held, the numbers here of their tasks and workers, and whether they have all classes."""
        T, W, K = len(self._tasks), len(self._workers), len(self._classes)
        held = self._pool.of(np.arange(T))
        gold = self._gold[:T]
        live = [
            np.bincount(held.at, minlength=T) > 0,
            np.bincount(held.worker, minlength=W) > 0,
            np.bincount(np.append(held.label, gold[gold >= 0]), minlength=K) > 0,
        ]
        series, order, place = [], [], []
        for ids, some in zip((self._tasks, self._workers, self._classes), live, strict=True):
            values, number = ids.series(), np.flatnonzero(some)
            number = number[values.filter(pl.Series(some)).arg_sort().to_numpy()]
            at = np.full(len(ids) + 1, -1, np.int32)  # the last entry is for unknown gold
            at[number] = np.arange(len(number))
            series.append(values[number])
            order.append(number)
            place.append(at)
        shape = (len(order[0]), len(order[1]), len(order[2]))
        task, worker, label = (at[each] for at, each in zip(place, held[:3], strict=True))
        layout, rank = sort_answers(choose(len(task), shape[2]), task, worker, label, shape)
        extras = self._extras.rows(held.extra[rank])
        answers = Labels.of(
            tasks=series[0], workers=series[1], classes=series[2], layout=layout, gold=place[2][gold[order[0]]],
            extras=extras, intake=self._intake(len(held.at), extras.columns),
        )  # fmt: skip
        return answers, order[0], order[1], np.array_equal(order[2], np.arange(K))

    def _intake(self, n: int, extras: Sequence[str]) -> Intake:
        columns = {role: role for role in ("task", "worker", "label")}
        return Intake("stream", "long", columns, (), tuple(extras), n, n)

    def _adopt(self, answers: Labels, params: Any, Z: Floats, run: Run) -> None:
        """Go on from a fit of all answers."""
        layout = answers.layout
        params = _in_double(params)
        shard = Shard.of(answers, Run(threads=run.threads, precision="double"))
        stats = self.em.statistics(shard, Local(Z), shard.shares(Z), params)
        self._tasks, self._workers = Ids("task", answers.tasks), Ids("worker", answers.workers)
        self._classes = Ids("class", answers.classes)
        _, worker, label = answers.codes()
        numbers = np.arange(len(worker)) if answers.extras.width else np.full(len(worker), -1)
        self._pool = Pool.filled(answers.answers_per_task, worker, label, numbers)
        self._extras, self._gold, self._Z = Extras(answers.extras), answers.gold.copy(), Z
        self._known, self._turn, self._view = Learned(layout.rows, stats, params), 0, None
        self._fitted = answers.n_answers

    def _ready(self) -> Learned:
        """Return what is known; an interrupted fit is made up for."""
        if self._known is None and self.n_answers:
            self._fit(Run().begin())
        assert self._known is not None
        return self._known

    def _present(self) -> LabelsResult:
        """Return a result by what was learned so far."""
        if not self.n_answers:
            raise EmptyDataError("the stream holds no answers. Give it some with update")
        if self._view is None:
            self._ready()
            run = Run().begin()
            answers, tasks, workers, same_classes = self._labels()
            if not same_classes:
                return self.result()
            params = self._narrowed(answers, workers)
            crowd, shards = self.em.prepared(answers, run)
            self.em.place(shards, self._Z[tasks])
            learnt = Learnt(params, self.em.prevalence(params), Trace(labels_changed=int), True)
            self._view = self.em.built(answers, crowd, shards, learnt, run)
        return self._view

    # Single tasks

    def _number(self, task: Any) -> int:
        """Return the number of a task; -1 if its gold is known, but no answer."""
        task = sought(task)
        try:
            number, waits = self._tasks.number.get(task, -1), task in self._waiting
        except FOREIGN:
            raise DataError(f"{task!r} is not the id of a task; give one plain value") from None
        if number < 0 and not waits:
            raise UnknownIdError(f"no task {task!r} in the stream.{nearest(task, self._tasks.values[:10_000])}")
        return number

    def _task(self, task: Any) -> tuple[Floats, Floats, float, TaskAnswers]:
        """Return the reported posterior (K,) of a task, that without the vote and its weight, and the answers."""
        if self._number(task) < 0:
            raise UnknownIdError(f"task {task!r} has gold and no answers, so it has no probabilities yet")
        known = self._ready()  # a fit may change the number
        number = np.array([self._number(task)])
        answers, how = self._pool.of(number), Computing(len(self._classes), self.n_answers, 1, 0)
        shard, Z = small_shard(answers, self._gold[number], known.rows, how), self._Z[number]
        params = narrow(known.params, shard.subset)
        posterior = self.em.reported(shard, params, Z.copy())
        votes = next(self.em.weighted(shard, params).votes_by_part())[1]
        own, weight = self.em.without_vote(params, posterior, votes)
        return posterior[0], own[0], float(weight[0]), answers

    def _standing(self, item: Any) -> Standing:
        posterior, _, _, answers = self._task(item)
        count = len(answers.at)
        text = f"{count} answer{'' if count == 1 else 's'}"
        label, top, _ = most_probable(posterior[None], self._prevalence())
        return Standing(count, float(top[0]), f"{text}, and {self._classes.values[label[0]]!r} has a probability of")

    def _prevalence(self) -> Floats:
        return self.em.prevalence(self._ready().params)

    def _rivals(self, item: Any) -> tuple[int, int, Floats, tuple[float, float], TaskAnswers]:
        """Return the label of a task and the most probable other class, their probabilities without the vote (2,), the
        reported probability of the label and the weight of the former in it, and the answers."""
        posterior, own, weight, answers = self._task(item)
        label = int(most_probable(posterior[None], self._prevalence())[0][0])
        others = own.copy()
        others[label] = -1
        rival = int(others.argmax())
        return label, rival, np.maximum([own[label], others[rival]], 0), (float(posterior[label]), weight), answers

    def _missing(self, item: Any, probability: float, most: int) -> int:
        """Return the smallest number of answers of average workers after which the expected probability is reached."""
        if len(self._classes) < 2:
            return most
        label, rival, q, (now, weight), _ = self._rivals(item)
        pair = np.array([label, rival], np.int32)
        known = self._ready()
        given = np.exp(self.em.emission(known.params, known.rows, np.array([-1, -1], np.int32), pair))[:, pair]
        V = expected_right(q[None], with_other(given[0], given[1])[None], most)[0]
        reached = np.flatnonzero(now + weight * (V - V[0]) >= probability)
        return int(reached[0]) if len(reached) else most

    def _worth_asking(self, item: Any) -> tuple[Any, ...]:
        """Return the workers who best tell the label from its rival, if the model distinguishes workers."""
        if len(self._classes) < 2 or not self.em.distinguishes_workers:
            return ()
        known = self._ready()
        label, rival, _, _, answers = self._rivals(item)
        hits, total = self.em.hits(_rows_only(known), known.stats), known.rows.per_worker
        score = np.where(total > 0, (hits + 1) / (total + 2), -1.0)
        score[answers.worker] = -1
        best = np.argsort(-score, kind="stable")[:MAX_CANDIDATES]
        best = best[score[best] >= 0]
        pair = np.array([label, rival], np.int32)
        own = self._information(known, best, pair)
        crowd = self._information(known, np.array([-1]), pair)[0]
        order = np.argsort(-own, kind="stable")
        order = order[own[order] > MIN_INFORMATION_RATIO * crowd][:MAX_WORKERS_NAMED]
        return tuple(self._workers.values[j] for j in best[order].tolist())

    def _information(self, known: Learned, worker: Ints, pair: Ints) -> Floats:
        """Return how well workers tell two classes apart by giving one, the other or a third label."""
        by_label = [
            np.exp(
                self.em.emission(known.params, known.rows, worker.astype(np.int32), np.full(len(worker), k, np.int32))
            )
            for k in pair
        ]
        first, second = (with_other(by_label[0][:, k], by_label[1][:, k]) for k in pair)
        return information(first, second)

    # Files

    def _parts(self) -> Parts:
        parts = Parts()
        T = len(self._tasks)
        held = self._pool.of(np.arange(T))
        columns = {name: value for name, value in self._columns.items() if value is not None}
        parts.plain |= {"columns": columns, "reading": self._reading, "ignored": self.ignored}
        parts.plain |= {
            "fitted": self._fitted,
            "refit": self._refit,
            "turn": self._turn,
            "known": self._known is not None,
        }
        for ids in (self._tasks, self._workers, self._classes):
            parts.add(ids.role, ids.series())
        for name, each in (("size", self._pool.sizes(np.arange(T))), ("answers", np.stack(held[1:], axis=1))):
            parts.add(name, np.ascontiguousarray(each))
        kinds = {"task": self._tasks.type or pl.Null, "gold": self._classes.type or pl.Null}
        waiting = {"task": list(self._waiting), "gold": list(self._waiting.values())}
        parts.add("waiting", pl.DataFrame(waiting, schema=kinds))
        parts.add("extras", self._extras.rows(np.arange(self._extras.height)))
        parts.add("gold", self._gold[:T])
        parts.add("Z", self._Z[:T])
        if self._known is not None:
            parts.add("rows", self._known.rows)
            parts.add("params", self._known.params)
        return parts

    def _restore(self, stored: Stored) -> None:
        kinds = SAVED_STREAM | {"params": self.model.params_type, "rows": WorkerRows}
        if not stored.plain["known"]:
            del kinds["params"], kinds["rows"]
        values = {name: stored.get(name, kind) for name, kind in kinds.items()}
        stored.settle()
        flaw = self._flaw(values)
        if flaw:
            raise UnsoundError(flaw)
        self._fill(values)

    def _flaw(self, values: dict[str, Any]) -> str:
        """What contradicts itself in a stream that was read from a file, or ""."""
        size, (worker, label, extra) = values["size"], values["answers"].T
        if size.max(initial=0) > len(worker) or size.sum() != len(worker):
            return "its tasks have other answers than there are"
        sizes = (worker, len(values["worker"])), (label, len(values["class"])), (extra, Extras(values["extras"]).height)
        if (
            any(each.max(initial=-1) >= count for each, count in sizes)
            or min(worker.min(initial=0), label.min(initial=0)) < 0
        ):
            return "its answers are by workers, or of classes, that there are not"
        types = [values[name].dtype for name in ("task", "class")]
        if values["waiting"].dtypes != types or None in [each for row in values["waiting"].iter_rows() for each in row]:
            return "its gold that waits for answers is of other types than its tasks and classes"
        if not ascends(worker, np.append(0, np.cumsum(size)), strictly=True):
            return "its answers are not in the order of their workers"
        if values["known"]:
            rows = values["rows"]
            number, found = find_rows(rows, worker, label)
            if not found.all() or not np.array_equal(np.bincount(number, minlength=rows.n_rows), rows.answers):
                return "what was learned does not belong to its answers"
        if not {*values["columns"]} <= {*self._columns} or {*values["reading"]} != {*self._reading}:
            return "it does not say how tables are read"
        kinds = conforms(tuple(values["reading"].values()), tuple[list[str] | bool | str | None, ...])
        counts = min(values[name] for name in ("turn", "fitted", "ignored")) >= 0
        return (
            ""
            if kinds and counts and values["reading"]["repeats"] in REPEATS
            else "it does not say how tables are read"
        )

    def _fill(self, values: dict[str, Any]) -> None:
        """Hold what was read from a file."""
        self._columns |= values["columns"]
        self._reading = values["reading"]
        self.ignored, self._fitted, self._refit, self._turn = (
            values[name] for name in ("ignored", "fitted", "refit", "turn")
        )
        self._tasks, self._workers, self._classes = (Ids(role, values[role]) for role in ("task", "worker", "class"))
        self._waiting, self._extras = dict(values["waiting"].iter_rows()), Extras(values["extras"])
        self._pool = Pool.filled(values["size"], *values["answers"].T)
        self._gold, self._Z = values["gold"], values["Z"]
        if values["known"]:
            rows, params = values["rows"], values["params"]
            how = Computing(len(self._classes), self.n_answers, Run().threads, 0)
            shard = small_shard(self._pool.of(np.arange(len(self._tasks))), self._gold, rows, how)
            part = self.em.statistics(shard, Local(self._Z), shard.shares(self._Z), narrow(params, shard.subset))
            self._known = Learned(rows, add_shard(None, part, shard.subset), params)


def _model(model: Any) -> EMModel[Any, Any]:
    """Return the model by name, class or instance."""
    if model is None or isinstance(model, str):
        registry.discover(PACKAGE)
        model = registry.find(model or registry.DEFAULTS["labels"], "labels")
    made = model() if isinstance(model, type) and issubclass(model, Model) else model
    if not isinstance(made, EMModel) or not made.can_stream:
        names = ", ".join(each.name for each in LabelStream.models)
        if isinstance(made, LabelModel):
            raise ParameterError(
                f"{made.name} cannot learn from a stream, as it has no statistics from which single answers can be "
                f"taken away. Use {names}; or fit all answers with crowdwise.aggregate"
            )
        raise ParameterError(f"model is {model!r}; give the name, class or instance of a model: {names}")
    return made


def _only(answers: TaskAnswers, keep: Ints, count: int) -> TaskAnswers:
    """Return the answers of some of `count` tasks, given by ascending position."""
    place = np.full(count, -1)
    place[keep] = np.arange(len(keep))
    some = place[answers.at] >= 0
    return TaskAnswers(place[answers.at[some]], *(each[some] for each in answers[1:]))


def _joined(changed: Changed, others: TaskAnswers, gold: Ints, count: int) -> Changed:
    """Return a change of `count` tasks together with other tasks that do not change."""
    moved = others._replace(at=others.at + count)
    before, after = (
        TaskAnswers(*(np.concatenate(pair) for pair in zip(each, moved, strict=True)))
        for each in (changed.before, changed.after)
    )
    return Changed(before, after, np.append(changed.gold_before, gold), np.append(changed.gold, gold), changed.Z)


def _in_double(value: Any) -> Any:
    if isinstance(value, tuple):
        return type(value)(*map(_in_double, value))
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


def _rows_only(known: Learned) -> Any:
    """Return a crowd of which only the rows are used."""
    return Crowd(choose(0, 1), known.rows, 1, np.dtype(np.float64), 0, None)


def _posterior(shard: Shard, local: Local) -> Floats:
    return local.Z
