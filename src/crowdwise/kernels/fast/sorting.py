"""Sorting of answers by task and by row, numbering of ids, and connected components of workers, compiled."""

from __future__ import annotations

import numpy as np

from ..layout import Ints, Layout, SortedAnswers
from .blocks import PREFETCH_AHEAD, jit, prefetch


@jit
def _cursors(keys, size):
    """Return where the answers with each key start; element [size] is the end."""
    start = np.zeros(size + 1, np.int32)
    for n in range(len(keys)):
        start[keys[n] + 1] += 1
    for k in range(size):
        start[k + 1] += start[k]
    return start


@jit
def _by_task(task, worker, label, task_ptr, order, worker_at, label_at):
    """Scatter answers into task order."""
    at = task_ptr.copy()
    for n in range(len(task)):
        here = at[task[n]]
        at[task[n]] = here + 1
        order[here] = n
        worker_at[here] = worker[n]
        label_at[here] = label[n]


@jit
def _by_worker(task_ptr, worker_at, label_at, worker_start, where, task, label):
    """Scatter answers from task order into worker order, so that a worker's tasks ascend."""
    at = worker_start.copy()
    for i in range(len(task_ptr) - 1):
        for n in range(task_ptr[i], task_ptr[i + 1]):
            here = at[worker_at[n]]
            at[worker_at[n]] = here + 1
            where[here] = n
            task[here] = i
            label[here] = label_at[n]


@jit
def _rows(worker_start, where, task, label, n_classes, pair, row_task, row_ptr, row_worker, row_label):
    """Group each worker's answers by label; each group is a row. Return the number of rows."""
    found = 0
    count = np.zeros(n_classes + 1, np.int32)
    for j in range(len(worker_start) - 1):
        first, last = worker_start[j], worker_start[j + 1]
        size = last - first
        if n_classes <= 64 or n_classes <= 4 * size:
            count[:] = 0
            for n in range(first, last):
                count[label[n] + 1] += 1
            for k in range(n_classes):
                count[k + 1] += count[k]
            ranked = np.empty(size, np.int64)
            for n in range(first, last):
                ranked[count[label[n]]] = n
                count[label[n]] += 1
        else:
            ranked = first + np.argsort(label[first:last], kind="mergesort")
        before = -1
        for m in range(size):
            n = ranked[m]
            if label[n] != before:
                before = label[n]
                row_worker[found], row_label[found], row_ptr[found] = j, before, first + m
                found += 1
            pair[where[n]] = found - 1
            row_task[first + m] = task[n]
    row_ptr[found] = len(task)
    return found


@jit
def _within_tasks(task_ptr, pair, order):
    """Sort the rows within each task, and `order` with them."""
    for i in range(len(task_ptr) - 1):
        first, last = task_ptr[i], task_ptr[i + 1]
        if last - first > 64:
            ranked = np.argsort(pair[first:last], kind="mergesort")
            pair[first:last] = pair[first:last][ranked]
            order[first:last] = order[first:last][ranked]
            continue
        for n in range(first + 1, last):
            row, answer, m = pair[n], order[n], n - 1
            while m >= first and pair[m] > row:
                pair[m + 1], order[m + 1] = pair[m], order[m]
                m -= 1
            pair[m + 1], order[m + 1] = row, answer


def build_layout(task: Ints, worker: Ints, label: Ints, shape: tuple[int, int, int]) -> SortedAnswers:
    n = len(task)
    task_ptr, worker_start = _cursors(task, shape[0]), _cursors(worker, shape[1])
    order, worker_at, label_at = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    _by_task(task, worker, label, task_ptr, order, worker_at, label_at)
    where, task_of, label_of = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    _by_worker(task_ptr, worker_at, label_at, worker_start, where, task_of, label_of)
    pair, row_task = worker_at, label_at  # reuse the memory of arrays no longer needed
    row_ptr, row_worker, row_label = np.empty(n + 1, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    parts = (pair, row_task, row_ptr, row_worker, row_label)
    rows = _rows(worker_start, where, task_of, label_of, shape[2], *parts)
    _within_tasks(task_ptr, pair, order)
    ends = row_ptr[: rows + 1].copy(), row_worker[:rows].copy(), row_label[:rows].copy()
    return SortedAnswers(task_ptr, pair, *ends, row_task, order)


@jit
def _number(first, second, table, codes, starts):
    """Number pairs of hashes in order of appearance; a row of the table holds a pair and its number + 1."""
    mask = np.uint64(len(table) - 1)
    found, last = 0, len(first) - 1
    for n in range(len(first)):
        prefetch(table, np.int64(first[min(n + PREFETCH_AHEAD, last)] & mask), 0)
        at = first[n] & mask
        while table[at, 2] != 0 and (table[at, 0] != first[n] or table[at, 1] != second[n]):
            at = (at + np.uint64(1)) & mask
        if table[at, 2] == 0:
            if found == len(starts):
                return -1
            starts[found] = n
            found += 1
            table[at, 0], table[at, 1], table[at, 2] = first[n], second[n], found
        codes[n] = table[at, 2] - 1
    return found


def number(first: Ints, second: Ints, likely: int) -> tuple[Ints, Ints, Ints]:
    """Number distinct values, each given by two 64-bit hashes, in order of appearance. Return the number of each value,
    the position of the first occurrence of each number, and the hash table.

    `likely` is the expected number of distinct values; if there are more, a larger table is used.
    """
    codes = np.empty(len(first), np.int32)
    for limit in (likely, len(first)):
        table = np.zeros((1 << int(2 * limit + 2).bit_length(), 4), np.uint64)
        starts = np.empty(limit, np.int32)
        found = _number(first, second, table, codes, starts)
        if found >= 0:
            break
    return codes, starts[:found], table


@jit
def numbers_of(first, second, table):
    """Return the numbers of values that are in the table."""
    mask = np.uint64(len(table) - 1)
    codes = np.empty(len(first), np.int32)
    for n in range(len(first)):
        at = first[n] & mask
        while table[at, 0] != first[n] or table[at, 1] != second[n] or table[at, 2] == 0:
            at = (at + np.uint64(1)) & mask
        codes[n] = table[at, 2] - 1
    return codes


@jit
def _join(ptr, pair, row_worker, parent):
    """Give workers who share a task a common root (union-find with path halving)."""
    for i in range(len(ptr) - 1):
        if ptr[i] == ptr[i + 1]:
            continue
        a = row_worker[pair[ptr[i]]]
        for n in range(ptr[i], ptr[i + 1]):
            b = row_worker[pair[n]]
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            if a < b:
                parent[b] = a
            else:
                parent[a] = b
                a = b
    for j in range(len(parent)):  # roots have the smallest number of their component, so one ordered pass is enough
        parent[j] = parent[parent[j]]


def components(layout: Layout) -> Ints:
    parent = np.arange(layout.n_workers, dtype=np.int32)
    _join(layout.task_ptr, layout.pair, layout.row_worker, parent)
    root = parent == np.arange(len(parent))
    return (np.cumsum(root, dtype=np.int32) - np.int32(1))[parent]
