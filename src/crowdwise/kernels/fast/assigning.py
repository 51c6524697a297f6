"""Assignment of clicks to objects, job by job, and the sums that update the objects.

The score of an object for a click is weight + log N(click; mean, precision), where root' root is the precision. A click
on no object has score 0, so all scores are log-odds against it. Only objects whose squared distance from a click is at
most `cut` are considered, in standard deviations; a grid over the first two coordinates finds them. `reach` (M, 2) is
that distance along these coordinates, for a worker of average noise.

With `once`, a worker clicks an object at most once, so the clicks of a job are matched to objects. The sum over all
matchings is approximated by belief propagation. Its fixed point is the minimum of the Bethe free energy, which is
convex here, and its value is never above the true log of the sum: see docs/maths/click_mixture.md.
"""

from __future__ import annotations

import math

import numpy as np

from ..clicks import EDGE_SD, MAX_ROUNDS, MESSAGE_TOL, MIN_HELD_SHARE, MIN_LOG_ODDS
from ..layout import HEAD
from .blocks import jit

MIN_GRID_OBJECTS = 12  # up to this many objects, no grid is used
MAX_GRID_CELLS = 256  # cells of a grid in each direction
MAX_USUAL_NOISE = 1.3  # clicks of workers with more noise use a grid of their own, whose cells hold more objects


@jit
def grid(mean, reach):
    """Return a grid and the objects that reach into each cell: low, cell size, number of cells, pointers, objects."""
    M, D = mean.shape
    low, size = np.empty(2), np.ones(2)
    cells = np.ones(2, np.int64)
    for c in range(2):
        d = min(c, D - 1)
        high, total = -np.inf, 0.0
        low[c] = np.inf
        for j in range(M):
            low[c] = min(low[c], mean[j, d] - reach[j, c])
            high = max(high, mean[j, d] + reach[j, c])
            total += reach[j, c]
        wide = high - low[c]
        if M > MIN_GRID_OBJECTS and total > 0 and wide > 0:
            cells[c] = int(min(MAX_GRID_CELLS, max(1.0, wide * M / total)))
        size[c] = max(wide, 1e-300) / cells[c]
    pointer = np.zeros(cells[0] * cells[1] + 1, np.int64)
    for fill in range(2):
        if fill == 1:
            for k in range(1, len(pointer)):
                pointer[k] += pointer[k - 1]
            inside = np.empty(pointer[-1], np.int64)
        for j in range(M - 1, -1, -1):
            a0 = max(0, int((mean[j, 0] - reach[j, 0] - low[0]) / size[0]))
            b0 = min(cells[0] - 1, int((mean[j, 0] + reach[j, 0] - low[0]) / size[0]))
            e = min(1, D - 1)
            a1 = max(0, int((mean[j, e] - reach[j, 1] - low[1]) / size[1]))
            b1 = min(cells[1] - 1, int((mean[j, e] + reach[j, 1] - low[1]) / size[1]))
            for x in range(a0, b0 + 1):
                for y in range(a1, b1 + 1):
                    k = x * cells[1] + y
                    if fill == 0:
                        pointer[k] += 1
                    else:
                        pointer[k] -= 1
                        inside[pointer[k]] = j
    return low, size, cells, pointer, inside


@jit
def _cell(X, i, low, size, cells):
    """Return the cell of a click, or -1 outside the grid."""
    a = (X[i, 0] - low[0]) / size[0]
    b = (X[i, min(1, X.shape[1] - 1)] - low[1]) / size[1]
    if not (0 <= a <= cells[0] and 0 <= b <= cells[1]):
        return -1
    return min(int(a), cells[0] - 1) * cells[1] + min(int(b), cells[1] - 1)


@jit
def _match(ptr, click, n, comp, odds, out, back, share, total):
    """Match the clicks click[:n] to objects that take at most one each; return the log of the sum over matchings.

    ptr[i]:ptr[i+1] are the candidate objects of click i, with their odds against no object. `share` receives the
    marginals; total (M,) must be zero, and is zero again on return.
    """
    for c in range(n):
        for e in range(ptr[click[c]], ptr[click[c] + 1]):
            out[e], back[e] = 0.0, 1.0
    for _ in range(MAX_ROUNDS):
        moved = 0.0
        for c in range(n):
            first, last = ptr[click[c]], ptr[click[c] + 1]
            s = 1.0
            for e in range(first, last):
                now = 1.0 / (1.0 + max(0.0, total[comp[e]] - out[e]))
                moved = max(moved, abs(now - back[e]) / now)
                back[e] = now
                s += odds[e] * now
            for e in range(first, last):
                now = odds[e] / max(1.0, s - odds[e] * back[e])
                total[comp[e]] += now - out[e]
                out[e] = now
        for c in range(n):  # sum again: differences of large messages have rounding errors
            for e in range(ptr[click[c]], ptr[click[c] + 1]):
                total[comp[e]] = 0.0
        if moved < MESSAGE_TOL:
            break
        for c in range(n):
            for e in range(ptr[click[c]], ptr[click[c] + 1]):
                total[comp[e]] += out[e]
    log_sum = 0.0
    for c in range(n):
        s = 1.0
        for e in range(ptr[click[c]], ptr[click[c] + 1]):
            s += odds[e] * back[e]
        log_sum += math.log(s)
        for e in range(ptr[click[c]], ptr[click[c] + 1]):
            share[e] = odds[e] * back[e] / s
            total[comp[e]] += out[e]
            log_sum -= math.log1p(out[e] * back[e])
    for c in range(n):
        for e in range(ptr[click[c]], ptr[click[c] + 1]):
            if total[comp[e]] > 0:
                log_sum += math.log1p(total[comp[e]])
                total[comp[e]] = 0.0
    return log_sum


@jit
def assign_clicks(
    X, worker, job_ptr, start, stop, weight, slack, mean, root, reach, odds, base, precision, cut, once, sums,
    alpha, held, best,
):  # fmt: skip
    """Assign the clicks of jobs start:stop of one image to objects. `odds` (W,) plus `base` are the log-odds that a
    worker's click is on some object, against a uniform click. Return the log of the sum over all assignments, relative
    to no click being on an object, and the number of rows of `held` used.

    sums (M, HEAD + D + D D) receives expected clicks, expected clicks times precision, the cost of removing the object
    (nats), and first and second moments about `mean` times precision. alpha (clicks, 2) receives the probability of
    being on an object, and the expected squared distance times that probability. If they have rows, held
    (2 clicks, 3) receives the objects held by each job (object, job, share), and best (clicks, 3) the most probable
    object of a click, -1 for none, its share, and the entropy of the assignment.
    """
    M, D = mean.shape
    longest, widest = np.int64(0), 1.0
    for job in range(start, stop):
        longest = max(longest, job_ptr[job + 1] - job_ptr[job])
        if job_ptr[job + 1] > job_ptr[job]:
            widest = max(widest, 1.0 / math.sqrt(precision[worker[job_ptr[job]]]))
    usual = min(widest, MAX_USUAL_NOISE)
    narrow_grid = grid(mean, usual * reach)
    wide_grid = grid(mean, widest * reach) if widest > usual else narrow_grid
    room = np.int64(0)
    ptr, cell_of = np.empty(longest + 1, np.int64), np.empty(longest, np.int64)
    comp, psi, far = np.empty(room, np.int64), np.empty(room), np.empty(room)
    out, back, share = np.empty(room), np.empty(room), np.empty(room)
    total, seen, click = np.zeros(M), np.zeros(M, np.int64), np.empty(longest, np.int64)
    log_sum, used, delta = 0.0, 0, np.empty(D)
    for job in range(start, stop):
        a, b = job_ptr[job], job_ptr[job + 1]
        if a == b:
            continue
        own_grid = narrow_grid if precision[worker[a]] * usual * usual >= 1.0 else wide_grid
        low, size, cells, pointer, inside = own_grid
        needed = np.int64(0)
        for i in range(a, b):
            cell = _cell(X, i, low, size, cells)
            cell_of[i - a] = cell
            if cell >= 0:
                needed += pointer[cell + 1] - pointer[cell]
        if needed > room:
            room = 2 * needed
            comp, psi, far = np.empty(room, np.int64), np.empty(room), np.empty(room)
            out, back, share = np.empty(room), np.empty(room), np.empty(room)
        k = np.int64(0)
        for i in range(a, b):
            ptr[i - a] = k
            cell = cell_of[i - a]
            if cell < 0:
                continue
            own, narrow = odds[worker[i]] + base, precision[worker[i]]
            for at in range(pointer[cell], pointer[cell + 1]):
                j = inside[at]
                q = 0.0
                for d in range(D):
                    t = 0.0
                    for e in range(d + 1):
                        t += root[j, d, e] * (X[i, e] - mean[j, e])
                    q += t * t
                if q * narrow > cut:
                    continue
                chance = weight[j] + own - 0.5 * (q + slack[j]) * narrow
                if chance < MIN_LOG_ODDS:
                    continue
                comp[k], far[k] = j, q + slack[j]
                psi[k] = math.exp(min(600.0, chance))
                if once:
                    seen[j] += 1
                k += 1
        ptr[b - a] = k
        # Clicks that share a candidate object with another click are matched, the others are assigned independently.
        rivals = np.int64(0)
        for i in range(b - a):
            s, alone = 1.0, True
            for e in range(ptr[i], ptr[i + 1]):
                s += psi[e]
                alone = alone and seen[comp[e]] <= 1
            if alone:
                log_sum += math.log(s)
                for e in range(ptr[i], ptr[i + 1]):
                    share[e] = psi[e] / s
            else:
                click[rivals] = i
                rivals += 1
        if once:
            for e in range(k):
                seen[comp[e]] = 0
        if rivals:
            log_sum += _match(ptr, click, rivals, comp, psi, out, back, share, total)
        for i in range(a, b):
            narrow = precision[worker[i]]
            alpha[i, 0], alpha[i, 1], top = 0.0, 0.0, 0.0
            if len(best):
                best[i, 0], best[i, 1], best[i, 2] = -1, 0.0, 0.0
            for e in range(ptr[i - a], ptr[i - a + 1]):
                j, r = comp[e], share[e]
                alpha[i, 0] += r
                alpha[i, 1] += r * far[e]
                if len(best):
                    best[i, 2] -= r * math.log(max(r, 1e-300))
                    if r > top:
                        best[i, 0], best[i, 1], top = j, r, r
                sums[j, 0] += r
                sums[j, 1] += r * narrow
                sums[j, 2] -= math.log1p(-min(r, 1 - 1e-12))
                for d in range(D):
                    delta[d] = X[i, d] - mean[j, d]
                for d in range(D):
                    sums[j, HEAD + d] += r * narrow * delta[d]
                    for c in range(d + 1):
                        sums[j, HEAD + D + d * D + c] += r * narrow * delta[d] * delta[c]
                if r > MIN_HELD_SHARE and len(held):
                    held[used, 0], held[used, 1], held[used, 2] = j, job, r
                    used += 1
            if len(best):
                none = max(1.0 - alpha[i, 0], 1e-300)
                best[i, 2] -= none * math.log(none)
    return log_sum, used


@jit
def truncate(mean, cov, low, high, nodes, weights, mass, first, second):
    """Write the probability that a Gaussian (one or two coordinates) lies between low and high, and its moments there.

    mass (M,), first (M, D) and second (M, D, D) hold the values without truncation, which stay for a Gaussian that is
    far from all edges. The moments are about the mean. The integral over the last coordinate is exact, that over the
    first of two uses Gauss-Legendre nodes.
    """
    M, D = mean.shape
    root, flat = math.sqrt(0.5), math.sqrt(0.5 / math.pi)
    for m in range(M):
        near = False
        for d in range(D):
            sd = math.sqrt(cov[m, d, d])
            near = near or mean[m, d] - EDGE_SD * sd < low[m, d] or mean[m, d] + EDGE_SD * sd > high[m, d]
        if not near:
            continue
        e = D - 1  # last coordinate
        slope, tau, sd, middle, half = 0.0, math.sqrt(cov[m, e, e]), 1.0, 0.0, 0.0
        if D == 2:
            sd = math.sqrt(cov[m, 0, 0])
            slope = cov[m, 1, 0] / cov[m, 0, 0]
            tau = math.sqrt(max(cov[m, 1, 1] - slope * cov[m, 1, 0], 1e-300))
            a = max(low[m, 0], min(high[m, 0], mean[m, 0] - EDGE_SD * sd)) - mean[m, 0]
            b = min(high[m, 0], max(low[m, 0], mean[m, 0] + EDGE_SD * sd)) - mean[m, 0]
            middle, half = 0.5 * (a + b), 0.5 * (b - a)
        z, x1, y1, x2, xy, y2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(len(nodes) if D == 2 else 1):
            x, w = 0.0, 1.0
            if D == 2:
                x = middle + half * nodes[k]
                w = half * weights[k] * flat / sd * math.exp(-0.5 * (x / sd) ** 2)
            c = slope * x
            lo, hi = (low[m, e] - mean[m, e] - c) / tau, (high[m, e] - mean[m, e] - c) / tau
            at_lo, at_hi = flat * math.exp(-0.5 * lo * lo), flat * math.exp(-0.5 * hi * hi)
            p = 0.5 * (math.erf(hi * root) - math.erf(lo * root))
            q = tau * (at_lo - at_hi)  # of the deviation from c
            r = tau * tau * (p + lo * at_lo - hi * at_hi)
            z += w * p
            x1 += w * x * p
            y1 += w * (c * p + q)
            x2 += w * x * x * p
            xy += w * x * (c * p + q)
            y2 += w * (c * c * p + 2 * c * q + r)
        if z < 1e-12:
            continue
        mass[m] = z
        first[m, e], second[m, e, e] = y1 / z, y2 / z
        if D == 2:
            first[m, 0], second[m, 0, 0] = x1 / z, x2 / z
            second[m, 0, 1] = second[m, 1, 0] = xy / z


@jit
def reliability_scores(alpha, ptr, p, grid, logs):
    """Write the log-likelihood of each worker's clicks to logs (W, G), for every reliability of the grid (G,).

    alpha are the probabilities of clicks, sorted by worker, computed with the reliabilities p. The likelihood ratio of
    a click is its odds divided by those of p.
    """
    G = len(grid)
    product = np.empty(G)
    for w in range(len(ptr) - 1):
        odds = p[w] / (1.0 - p[w])
        for g in range(G):
            logs[w, g], product[g] = 0.0, 1.0
        for i in range(ptr[w], ptr[w + 1]):
            ratio = min(alpha[i] / max(1.0 - alpha[i], 1e-15) / odds, 1e15)
            scale = 1.0 / (1.0 + ratio)
            for g in range(G):
                product[g] *= (grid[g] * ratio + 1.0 - grid[g]) * scale
            if (i - ptr[w]) % 16 == 15 or i + 1 == ptr[w + 1]:
                for g in range(G):
                    logs[w, g] += math.log(max(product[g], 1e-300))
                    product[g] = 1.0
