"""A change of the labels that a stream holds, planned in full before anything is changed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..answers.changes import Changes
from ..kernels.layout import Ints
from ..labels.incremental import Changed, TaskAnswers
from .held import Numbering, grown
from .held_labels import HeldLabels


class Plan(NamedTuple):
    """A change of answers, before anything is changed."""

    tasks: Ints  # (T,) numbers of the tasks that change; may be empty
    changed: Changed  # their answers and gold; Z is empty
    numbering: tuple[Numbering, Numbering, Numbering]  # of tasks, workers and classes
    extras: pl.DataFrame  # of the answers that are new
    waiting: dict[Any, Any]  # gold of tasks that have no answers after the change; None: no longer waiting
    n_changes: int
    ignored: int  # rows that change nothing

    @property
    def growth(self) -> int:
        return len(self.changed.after.at) - len(self.changed.before.at)

    def commit(self, held: HeldLabels) -> None:
        """Change the answers and gold held."""
        for each in self.numbering:
            each.commit()
        held.extras.add(self.extras)
        held.pool.put(self.tasks, self.changed.after)
        held.gold = grown(held.gold, len(held.tasks), -1)
        held.gold[self.tasks] = self.changed.gold
        held.wait_for_answers(self.waiting)

    def keep_gold(self, held: HeldLabels) -> None:
        """Keep the gold of tasks without answers, which is all that this plan has if it changes no task."""
        if self.waiting:
            held.tasks.set_type(self.numbering[0].kind)
            held.classes.set_type(self.numbering[2].kind)
        held.wait_for_answers(self.waiting)


def planned(held: HeldLabels, changes: Changes) -> Plan:
    """Return what changes. Ids of another type are refused."""
    return _Planning(held, changes).plan()


class _Planning:
    """Changes beside what is held: their ids, and the numbers that these have or will have."""

    def __init__(self, held: HeldLabels, changes: Changes) -> None:
        self.held, self.changes = held, changes
        self.names = [role.accepted(ids).to_list() for role, ids in zip(held.roles, changes[:3], strict=True)]
        self.tasks, self.workers, self.classes = (
            Numbering(role, ids.dtype) for role, ids in zip(held.roles, changes[:3], strict=True)
        )

    def plan(self) -> Plan:
        changes = self.changes
        label, effective = self._effective()
        ignored = changes.ignored + int(((changes.label < 0) & (label < 0)).sum())
        answered = np.unique(changes.task[effective])
        chosen = np.union1d(answered, np.flatnonzero(changes.gold >= 0))  # of the tasks in `changes`
        tasks = self._numbers(chosen, np.isin(chosen, answered))
        before = self.held.pool.of(np.where(tasks < 0, len(self.held.pool.size), tasks))
        after = self._merged(effective, chosen, before)
        answers = np.bincount(after.at, minlength=len(chosen))
        was, gold, waiting = self._new_gold(chosen, tasks, answers > 0)
        keep = np.flatnonzero(np.isin(chosen, answered) | (gold != was))
        changed = Changed(
            _only(before, keep, len(chosen)), _only(after, keep, len(chosen)), was[keep], gold[keep], np.zeros(0)
        )
        extras = changes.extras.filter(pl.Series(effective)) if changes.extras.width else changes.extras
        numbering, count = (self.tasks, self.workers, self.classes), int(effective.sum()) + len(keep)
        return Plan(tasks[keep], changed, numbering, extras, waiting, count, ignored)

    def _effective(self) -> tuple[Ints, Any]:
        """Return the label held (N,) for each row of the changes, or -1, and which rows change something."""
        changes, held = self.changes, self.held
        number = [ids.find(each) for ids, each in zip(held.roles, self.names, strict=True)]
        task, worker = number[0][changes.task], number[1][changes.worker]
        some = np.unique(task[task >= 0])
        answers, W = held.pool.of(some), max(len(held.workers), 1)
        keys = answers.at * W + answers.worker
        order = np.argsort(keys)
        wanted = np.where((task >= 0) & (worker >= 0), np.searchsorted(some, task) * W + worker, -1)
        at = np.searchsorted(keys[order], wanted)
        same = np.append(keys[order], -2)[at] == wanted
        before = np.where(same, np.append(answers.label[order], -1)[at], -1)
        label = np.append(number[2], -1)[changes.label]  # -1: deleted, or a new class
        delete = changes.label < 0
        return before, np.where(delete, before >= 0, (label < 0) | (label != before))

    def _numbers(self, chosen: Ints, answered: Any) -> Ints:
        """Return the numbers of the chosen tasks; those that are new get one if they are answered, others have -1."""
        names = [self.names[0][c] for c in chosen]
        tasks = self.held.tasks.find(names)
        new = np.flatnonzero((tasks < 0) & answered)
        tasks[new] = self.tasks.of([names[n] for n in new])
        return tasks

    def _merged(self, effective: Any, chosen: Ints, before: TaskAnswers) -> TaskAnswers:
        """Return the answers of the chosen tasks after the change."""
        changes, rows = self.changes, np.flatnonzero(effective)
        at = np.searchsorted(chosen, changes.task[rows])
        used, which = np.unique(changes.worker[rows], return_inverse=True)
        worker = self.workers.of([self.names[1][n] for n in used])[which]
        used, which = np.unique(changes.label[rows], return_inverse=True)
        given = used[used >= 0]
        classes = self.classes.of([self.names[2][n] for n in given])
        label = np.append(np.full(len(used) - len(given), -1), classes)[which]
        extra = self.held.extras.numbers(changes.extras, len(rows))
        both = [np.concatenate(pair) for pair in zip(before, (at, worker, label, extra), strict=True)]
        order = np.lexsort((both[1], both[0]))  # stable: of two answers of a worker, the new one is the second
        at, worker, label, extra = (each[order] for each in both)
        last = np.append((np.diff(at) != 0) | (np.diff(worker) != 0), True)[: len(at)] & (label >= 0)
        return TaskAnswers(at[last], worker[last], label[last], extra[last])

    def _new_gold(self, chosen: Ints, tasks: Ints, answered: Any) -> tuple[Ints, Ints, dict[Any, Any]]:
        """Return the gold of the chosen tasks before and after the change, and gold that waits for answers."""
        held = self.held
        old = (tasks >= 0) & (tasks < len(held.tasks))
        was = np.full(len(chosen), -1)
        was[old] = held.gold[tasks[old]]
        values = [self.names[2][k] if k >= 0 else None for k in self.changes.gold[chosen].tolist()]
        gold, waiting = was.copy(), dict[Any, Any]()
        if held.waiting or any(value is not None for value in values) or not answered.all():
            for n, (c, value) in enumerate(zip(chosen.tolist(), values, strict=True)):
                name = self.names[0][c]
                if value is None:
                    value = held.classes.values[was[n]] if was[n] >= 0 else held.waiting.get(name)
                if value is not None:
                    gold[n] = self.classes.of([value])[0] if answered[n] else -1
                    waiting[name] = None if answered[n] else value
        return was, gold, waiting


def _only(answers: TaskAnswers, keep: Ints, count: int) -> TaskAnswers:
    """Return the answers of some of `count` tasks, given by ascending position."""
    place = np.full(count, -1)
    place[keep] = np.arange(len(keep))
    some = place[answers.at] >= 0
    return TaskAnswers(place[answers.at[some]], *(each[some] for each in answers[1:]))


def joined(changed: Changed, others: TaskAnswers, gold: Ints, count: int) -> Changed:
    """Return a change of `count` tasks together with other tasks that do not change."""
    moved = others._replace(at=others.at + count)
    before, after = (
        TaskAnswers(*(np.concatenate(pair) for pair in zip(each, moved, strict=True)))
        for each in (changed.before, changed.after)
    )
    return Changed(before, after, np.append(changed.gold_before, gold), np.append(changed.gold, gold), changed.Z)
