"""Same/different answers between items: messages along them, and clusters from them alone.

Links are kept twice, once at either end: those of item i stand from ptr[i] to ptr[i+1], `other` being the far end.
"""

from __future__ import annotations

import math

from .blocks import jit


@jit
def pass_messages(ptr, other, weight, U, R, M, own):
    """One round over items in their order: each hears all its neighbours' clusters R (n, C), weighs them with what its
    features say, U (n, C), and speaks at once. M gets the messages, `own` (n,) what an item's terms of the bound come
    to; returns how many items changed their likeliest cluster."""
    n, C = R.shape
    flips = 0
    for i in range(n):
        for c in range(C):
            M[i, c] = 0.0
        for a in range(ptr[i], ptr[i + 1]):
            j, w = other[a], weight[a]
            for c in range(C):
                M[i, c] += w * R[j, c]
        top, was, best = -math.inf, 0, 0
        for c in range(C):
            top = max(top, M[i, c] + U[i, c])
            if R[i, c] > R[i, was]:
                was = c
        total, heard = 0.0, 0.0
        for c in range(C):
            R[i, c] = math.exp(M[i, c] + U[i, c] - top)
            total += R[i, c]
        for c in range(C):
            R[i, c] /= total
            heard += R[i, c] * M[i, c]
            if R[i, c] > R[i, best]:
                best = c
        own[i] = top + math.log(total) - heard
        flips += best != was
    return flips


@jit(inline="always")
def find(parent, i):
    """The cluster that i is in, paths halved on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@jit
def join(order, left, right, ptr, other, weight, parent, follow, last, size):
    """Go through links by their order; two clusters are joined where all links between them together say the same."""
    for e in order:
        a, b = find(parent, left[e]), find(parent, right[e])
        if a == b:
            continue
        if size[a] > size[b]:
            a, b = b, a
        total, i = 0.0, a
        while i >= 0:
            for k in range(ptr[i], ptr[i + 1]):
                if find(parent, other[k]) == b:
                    total += weight[k]
            i = follow[i]
        if total > 0:
            parent[a] = b
            follow[last[b]] = a
            last[b] = last[a]
            size[b] += size[a]
    for i in range(len(parent)):
        parent[i] = find(parent, i)


@jit(inline="always")
def _scores(i, ptr, other, weight, label, score, seen):
    """Sums of the links of an item by the cluster at their far end; returns how many clusters that are."""
    count = 0
    for k in range(ptr[i], ptr[i + 1]):
        c = label[other[k]]
        new = True
        for s in range(count):
            if seen[s] == c:
                score[s] += weight[k]
                new = False
                break
        if new:
            seen[count] = c
            score[count] = weight[k]
            count += 1
    return count


@jit
def move(ptr, other, weight, label, members, score, seen, free, n_free):
    """Every item once to where its links say most, alone if all say no; returns how many moved and the free names."""
    moved = 0
    for i in range(len(label)):
        count = _scores(i, ptr, other, weight, label, score, seen)
        here, best, to = 0.0, 1e-12, -1
        for s in range(count):
            if seen[s] == label[i]:
                here = score[s]
        for s in range(count):
            if score[s] > best:
                best, to = score[s], seen[s]
        if to < 0 and members[label[i]] == 1:
            to = label[i]
        if to == label[i] or (best <= here + 1e-12 and here > 0):
            continue
        n_free = _leave(i, label, members, free, n_free)
        if to < 0:
            n_free -= 1
            to = free[n_free]
        label[i] = to
        members[to] += 1
        moved += 1
    return moved, n_free


@jit(inline="always")
def _leave(i, label, members, free, n_free):
    """Take an item out of its cluster, whose name becomes free if nobody is left."""
    members[label[i]] -= 1
    if members[label[i]] == 0:
        free[n_free] = label[i]
        n_free += 1
    return n_free


@jit(inline="always")
def _holds(i, ptr, other, label, members, mark, stack):
    """Whether the cluster of an item falls apart without it; `mark` holds who was reached by whose question."""
    left, depth, reached = members[label[i]] - 1, 0, 0
    mark[i] = i
    for k in range(ptr[i], ptr[i + 1]):
        j = other[k]
        if label[j] == label[i]:
            mark[j] = i
            stack[0], depth, reached = j, 1, 1
            break
    while depth > 0:
        depth -= 1
        at = stack[depth]
        for k in range(ptr[at], ptr[at + 1]):
            j = other[k]
            if label[j] == label[i] and mark[j] != i:
                mark[j] = i
                stack[depth] = j
                depth += 1
                reached += 1
    return reached < left


@jit
def draw(ptr, other, weight, label, members, score, seen, free, n_free, uniform, alone, mark, stack):
    """One round of Gibbs sampling over clusterings whose clusters are connected by links: the cluster of every item is
    drawn given all others, unless its own would fall apart without it; counts who is left alone."""
    for i in range(len(mark)):
        mark[i] = -1
    for i in range(len(label)):
        if _holds(i, ptr, other, label, members, mark, stack):
            continue
        n_free = _leave(i, label, members, free, n_free)
        label[i] = -1
        count = _scores(i, ptr, other, weight, label, score, seen)
        top = 0.0
        for s in range(count):
            top = max(top, score[s])
        total = math.exp(-top)
        for s in range(count):
            score[s] = math.exp(score[s] - top)
            total += score[s]
        left, to = uniform[i] * total, -1
        for s in range(count):
            left -= score[s]
            if left < 0 and to < 0:
                to = seen[s]
        if to < 0:
            n_free -= 1
            to = free[n_free]
            alone[i] += 1
        label[i] = to
        members[to] += 1
    return n_free
