"""Links between items from same/different answers: message passing, and clusters from links alone.

Each link is stored at both of its items: the links of item i are ptr[i]:ptr[i+1], and `other` is the other item.
"""

from __future__ import annotations

import math

from .blocks import jit


@jit
def pass_messages(ptr, other, weight, U, R, M, own):
    """Update the cluster probabilities R (n, C) of all items in order, from the messages of their neighbours and the
    log-scores of their features U (n, C). Later items use the updated values. M receives the messages, and `own` (n,)
    each item's terms of the bound. Return how many items changed their most probable cluster."""
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
        total, from_messages = 0.0, 0.0
        for c in range(C):
            R[i, c] = math.exp(M[i, c] + U[i, c] - top)
            total += R[i, c]
        for c in range(C):
            R[i, c] /= total
            from_messages += R[i, c] * M[i, c]
            if R[i, c] > R[i, best]:
                best = c
        own[i] = top + math.log(total) - from_messages
        flips += best != was
    return flips


@jit(inline="always")
def find(parent, i):
    """Return the root of the cluster of i (union-find with path halving)."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@jit
def join(order, left, right, ptr, other, weight, parent, follow, last, size):
    """Visit links in the given order, and join the clusters of their items if the links between the two clusters have a
    positive sum."""
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
    """Sum the links of an item by the cluster of the other item; return the number of these clusters."""
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
    """Move every item once to the cluster with the largest sum of links, or to its own cluster if no sum is positive.
    Return how many items moved, and the number of free cluster numbers."""
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
    """Remove an item from its cluster, whose number becomes free if it is empty."""
    members[label[i]] -= 1
    if members[label[i]] == 0:
        free[n_free] = label[i]
        n_free += 1
    return n_free


@jit(inline="always")
def _is_bridge(i, ptr, other, label, members, mark, stack):
    """Return whether the cluster of an item is disconnected without it; mark[j] is the last item i whose search reached
    j."""
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
    """Run one pass of Gibbs sampling over clusterings with clusters connected by links. The cluster of each item is
    drawn given all others, unless its cluster would be disconnected without it; `alone` counts how often an item gets
    its own cluster."""
    for i in range(len(mark)):
        mark[i] = -1
    for i in range(len(label)):
        if _is_bridge(i, ptr, other, label, members, mark, stack):
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


@jit
def assign_in_order(order, ptr, other, edge, cost, base, label, total):
    """Assign the items of `order`, one after the other, to the cluster of least cost: `base` (n, K), and `cost` (E, K)
    of every link to an item in that cluster. `total` (K,) is for intermediate values."""
    K = len(total)
    for i in order:
        for k in range(K):
            total[k] = base[i, k]
        for a in range(ptr[i], ptr[i + 1]):
            k = label[other[a]]
            total[k] += cost[edge[a], k]
        best = 0
        for k in range(1, K):
            if total[k] < total[best]:
                best = k
        label[i] = best
