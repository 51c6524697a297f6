"""Objects from clicks by variational Bayes, from many components downwards: docs/maths/clicks.md.

A component j is Normal-Wishart: counts n[j] (expected clicks) and b[j] (the same, by precision of their workers), the
mean, and V[j], the inverse scale. What all share is a `prior`: nu0, b0, a0, the middle m0, and the shape S, the inverse
of the expected precision, which may be learnt.
"""

from __future__ import annotations

import math

import numpy as np

from .blocks import jit
from .clicks import CUT, grid, sweep
from .dirichlet import _lgamma
from .dirichlet import _psi as _digamma

TAU = 2.0 * math.pi
LEAST = 1.0  # clicks that a component needs to stay
DROP = 25.0  # nats below the best at which merging ends
CLOSE = 64  # components below which each level is climbed to the end, and all pairs are looked at
SHORT, LONG = 6, 150  # sweeps a level, above and below that
MATES = 12  # pairs looked at for a component, above
TOL = 1e-6


@jit
def _root(V, R):
    """R lower with R' R = V^-1; returns log |V|."""
    D = len(V)
    L = np.zeros((D, D))
    total = 0.0
    for i in range(D):
        for j in range(i + 1):
            s = V[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            L[i, j] = math.sqrt(max(s, 1e-300)) if i == j else s / L[j, j]
        total += 2.0 * math.log(L[i, i])
    for j in range(D):
        for i in range(D):
            R[i, j] = 0.0
        R[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, D):
            s = 0.0
            for k in range(j, i):
                s -= L[i, k] * R[k, j]
            R[i, j] = s / L[i, i]
    return total


@jit
def _wishart(nu, D):
    """Sum of log-gammas of a Wishart of nu degrees, and of digammas."""
    gammas, psis = 0.25 * D * (D - 1) * math.log(math.pi), 0.0
    for d in range(D):
        gammas += _lgamma(0.5 * (nu - d))
        psis += _digamma(0.5 * (nu - d))
    return gammas, psis


@jit
def expect(mean, V, n, b, nu0, b0, a0, m0, S, widest):
    """What a sweep needs of components: weight, slack, root, reach; and by how much each is off the prior (nats), and
    their shares together."""
    M, D = mean.shape
    weight, slack, off = np.empty(M), np.empty(M), np.empty(M)
    root, reach, scratch = np.empty((M, D, D)), np.empty((M, 2)), np.empty((D, D))
    log_prior = _root(nu0 * S, scratch)
    gammas0, _ = _wishart(nu0, D)
    all_clicks = 0.0
    for j in range(M):
        all_clicks += n[j]
    share_total = _digamma(M * a0 + all_clicks)
    shares = _lgamma(M * a0 + all_clicks) - _lgamma(M * a0)
    for j in range(M):
        nu, beta = nu0 + n[j], b0 + b[j]
        log_v = _root(V[j], root[j])
        gammas, psis = _wishart(nu, D)
        log_precision = psis + D * math.log(2.0) - log_v
        log_share = _digamma(a0 + n[j]) - share_total
        weight[j] = log_share + 0.5 * log_precision - 0.5 * D * math.log(TAU)
        slack[j] = D / beta
        shares += n[j] * log_share - _lgamma(a0 + n[j]) + _lgamma(a0)
        trace, from_middle = 0.0, 0.0
        for d in range(D):
            t = 0.0
            for e in range(d + 1):
                t += root[j, d, e] * (mean[j, e] - m0[e])
            from_middle += t * t
            for e in range(d + 1):
                for f in range(d + 1):
                    trace += root[j, d, e] * S[e, f] * root[j, d, f]
        off[j] = 0.5 * (D * b0 / beta + b0 * nu * from_middle - D - D * math.log(b0 / beta))
        off[j] += 0.5 * nu * log_v - 0.5 * nu0 * log_prior - gammas + gammas0
        off[j] += 0.5 * (nu - nu0) * (log_precision - D * math.log(2.0)) + 0.5 * nu * (nu0 * trace - D)
        for d in range(D):
            for e in range(D):
                root[j, d, e] *= math.sqrt(nu)
        for c in range(2):
            d = min(c, D - 1)
            reach[j, c] = math.sqrt(CUT * V[j, d, d] / nu) * widest
    return weight, slack, root, reach, off, shares


@jit
def improve(mean, V, n, b, sums, nu0, b0, m0, S):
    """Components from the sums of a sweep, in place."""
    M, D = mean.shape
    move, middle = np.empty(D), np.empty(D)
    for j in range(M):
        n[j], b[j] = sums[j, 0], sums[j, 1]
        beta = b0 + b[j]
        for d in range(D):
            middle[d] = m0[d] - mean[j, d]
            move[d] = (b0 * middle[d] + sums[j, 3 + d]) / beta
        for d in range(D):
            for e in range(d + 1):
                v = nu0 * S[d, e] + sums[j, 3 + D + d * D + e] + b0 * middle[d] * middle[e] - beta * move[d] * move[e]
                V[j, d, e] = v
                V[j, e, d] = v
        for d in range(D):
            mean[j, d] += move[d]


@jit
def precisions(V, n, nu0, total):
    """Adds the expected precisions of components to total (D, D): what their shared shape is learnt from."""
    M, D = V.shape[0], V.shape[1]
    R = np.empty((D, D))
    for j in range(M):
        _root(V[j], R)
        for d in range(D):
            for e in range(D):
                for f in range(D):
                    total[e, f] += (nu0 + n[j]) * R[d, e] * R[d, f]


@jit
def inverse(A):
    """Of a positive definite matrix."""
    D = len(A)
    R, out = np.empty((D, D)), np.zeros((D, D))
    _root(A, R)
    for d in range(D):
        for e in range(D):
            for f in range(D):
                out[e, f] += R[d, e] * R[d, f]
    return out


@jit
def seeds(X, u):
    """Clicks far from each other, by k-means++: u (M,) are uniform draws. Fewer where all others stand on one."""
    N, D = X.shape
    M = len(u)
    chosen = np.empty((M, D))
    away = np.full(N, np.inf)
    pick, count = min(N - 1, int(u[0] * N)), 0
    while True:
        chosen[count] = X[pick]
        count += 1
        if count == M:
            break
        total = 0.0
        for i in range(N):
            q = 0.0
            for d in range(D):
                q += (X[i, d] - X[pick, d]) ** 2
            away[i] = min(away[i], q)
            total += away[i]
        if total <= 0:
            break
        goal, pick = u[count] * total, N - 1
        for i in range(N):
            goal -= away[i]
            if goal < 0 and away[i] > 0:
                pick = i
                break
    return chosen[:count]


@jit
def betas(A, B, a, b):
    """Expected log-odds of Beta(A, B), expected log of one minus it, and how far it is off Beta(a, b) (nats, summed)."""
    odds, miss, off = np.empty(len(A)), np.empty(len(A)), 0.0
    for w in range(len(A)):
        both = _digamma(A[w] + B[w])
        hit, miss[w] = _digamma(A[w]) - both, _digamma(B[w]) - both
        odds[w] = hit - miss[w]
        off += _lgamma(A[w] + B[w]) - _lgamma(A[w]) - _lgamma(B[w])
        off += _lgamma(a[w]) + _lgamma(b[w]) - _lgamma(a[w] + b[w])
        off += (A[w] - a[w]) * hit + (B[w] - b[w]) * miss[w]
    return odds, miss, off


@jit
def evidence(n, off, gain, weight, a0):
    """(M,) nats that are lost when a component goes and its clicks are on no object."""
    M = len(n)
    total, out = 0.0, np.empty(M)
    for j in range(M):
        total += n[j]
    share_total = _digamma(M * a0 + total)
    for j in range(M):
        alone = gain[j] - n[j] * (_digamma(a0 + n[j]) - share_total)
        left = total - n[j]
        shares = _lgamma(M * a0) - _lgamma(M * a0 + total) + _lgamma(a0 + n[j]) - _lgamma(a0)
        if M > 1:
            shares -= _lgamma((M - 1) * a0) - _lgamma((M - 1) * a0 + left)
        out[j] = alone - off[j] + shares + math.log(M)
    return out


@jit
def _near(mean, reach, i, M, cellar, out):
    """Components whose reach holds the middle of i, into out; how many."""
    count = 0
    if M <= CLOSE:
        for j in range(M):
            if j != i:
                out[count] = j
                count += 1
        return count
    low, size, cells, pointer, inside = cellar
    D = mean.shape[1]
    x = min(max(int((mean[i, 0] - low[0]) / size[0]), 0), cells[0] - 1)
    y = min(max(int((mean[i, min(1, D - 1)] - low[1]) / size[1]), 0), cells[1] - 1)
    cell = x * cells[1] + y
    for at in range(pointer[cell], pointer[cell + 1]):
        if inside[at] != i and count < len(out):
            out[count] = inside[at]
            count += 1
    return count


@jit
def _supporters(held, used, M):
    """held (used, 3) by object: pointers, jobs, shares; jobs ascend."""
    pointer = np.zeros(M + 1, np.int64)
    for k in range(used):
        pointer[int(held[k, 0]) + 1] += 1
    for j in range(M):
        pointer[j + 1] += pointer[j]
    at, job, share = pointer[:-1].copy(), np.empty(used, np.int64), np.empty(used)
    for k in range(used):
        j = int(held[k, 0])
        job[at[j]], share[at[j]] = int(held[k, 1]), held[k, 2]
        at[j] += 1
    return pointer, job, share


@jit
def _both(pointer, job, share, i, j):
    """Expected number of jobs that hold both i and j."""
    a, b, total = pointer[i], pointer[j], 0.0
    while a < pointer[i + 1] and b < pointer[j + 1]:
        if job[a] < job[b]:
            a += 1
        elif job[a] > job[b]:
            b += 1
        else:
            total += share[a] * share[b]
            a += 1
            b += 1
    return total


@jit
def _joined(C, mean, n, i, j, out):
    """Covariance of two components as one, into out; returns its log-determinant."""
    D = mean.shape[1]
    t = n[i] + n[j]
    f = n[i] * n[j] / (t * t)
    for d in range(D):
        for e in range(D):
            out[d, e] = (n[i] * C[i, d, e] + n[j] * C[j, d, e]) / t
            out[d, e] += f * (mean[i, d] - mean[j, d]) * (mean[i, e] - mean[j, e])
    return _root(out, np.empty((D, D)))


@jit
def step_down(mean, V, n, b, off, gain, reach, cellar, held, used, once, nu0, b0, least):
    """Fewer components: all that hold less than a click go; else the cheapest merges or removals, several at once
    where components are many and they cost less than they save. Returns the kept ones, and how many changes."""
    M, D = mean.shape
    dead, touched = np.zeros(M, np.bool_), np.zeros(M, np.bool_)
    changes = 0
    for j in range(M):
        if n[j] < LEAST and M - changes > least:
            dead[j] = True
            changes += 1
    if changes == 0:
        C, log_c = np.empty_like(V), np.empty(M)
        scratch, mates = np.empty((D, D)), np.empty(CLOSE * MATES, np.int64)
        for j in range(M):
            C[j] = V[j] / (nu0 + n[j])
            log_c[j] = _root(C[j], scratch)
        pointer, job, share = _supporters(held, used, M)
        cost, mate = np.empty(M), np.empty(M, np.int64)
        for i in range(M):
            cost[i], mate[i] = gain[i], -1
            for k in range(_near(mean, reach, i, M, cellar, mates)):
                j = mates[k]
                worth = (gain[i] + gain[j]) / (n[i] + n[j])
                price = -0.5 * n[i] * log_c[i] - 0.5 * n[j] * log_c[j]
                price += 0.5 * (n[i] + n[j]) * _joined(C, mean, n, i, j, scratch)
                if once and price < cost[i]:
                    price += worth * _both(pointer, job, share, i, j)
                if price < cost[i]:
                    cost[i], mate[i] = price, j
        most = 1 if M <= CLOSE else max(1, M // 8)
        for i in np.argsort(cost):
            if changes and (changes >= most or M - changes <= least or cost[i] > off[i]):
                break
            j = mate[i]
            if touched[i] or (j >= 0 and touched[j]):
                continue
            changes += 1
            touched[i] = True
            if j < 0:
                dead[i] = True
                continue
            touched[j], dead[j] = True, True
            _joined(C, mean, n, i, j, V[i])
            t = n[i] + n[j]
            for d in range(D):
                mean[i, d] = (n[i] * mean[i, d] + n[j] * mean[j, d]) / t
            n[i] = t
            b[i] += b[j]
            V[i] *= nu0 + t
    return np.flatnonzero(~dead), changes


@jit
def descend(X, worker, job_ptr, log_box, once, mean, S, learn, kappa, nu0, b0, a0, m0, pa, pb, least, given, trace):
    """One image from many components to the number that the evidence favours (or to `least`, if that is `given`).

    trace (rows, 2) receives the evidence and the number of components after every sweep. Returns the best: mean, V, n,
    evidence in all and of each component, shape S, Beta posteriors of workers, and how many rows of trace are used.
    """
    N, D = X.shape
    jobs = len(job_ptr) - 1
    M = len(mean)
    mean, S0 = mean.copy(), S.copy()
    n, b = np.full(M, N / M), np.full(M, N / M)
    V = np.empty((M, D, D))
    for j in range(M):
        V[j] = S * (nu0 + n[j])
    sent = np.bincount(worker, minlength=len(pa)).astype(np.float64)
    A, B = pa + 0.8 * sent, pb + 0.2 * sent
    precision, alpha = np.ones(len(pa)), np.empty((N, 2))
    held, best = np.empty((2 * N, 3)), np.empty((0, 2))
    rows, top, last_sweeps = 0, -np.inf, False
    kept_mean, kept_V, kept_n, kept_S, kept_A, kept_B = mean.copy(), V.copy(), n.copy(), S.copy(), A.copy(), B.copy()
    while True:
        M, before = len(mean), -np.inf
        sweeps = LONG if M <= CLOSE or last_sweeps else SHORT
        for turn in range(sweeps):
            odds, miss, off_workers = betas(A, B, pa, pb)
            weight, slack, root, reach, off, off_shares = expect(mean, V, n, b, nu0, b0, a0, m0, S, 1.0)
            cellar = grid(mean, reach)
            sums = np.zeros((M, 3 + D + D * D))
            now, used = sweep(
                X, worker, job_ptr, 0, jobs, cellar, weight, slack, mean, root, odds - log_box, precision, once, sums,
                alpha, held, best,
            )  # fmt: skip
            now += (miss * sent).sum() + N * log_box + _lgamma(M + 1.0) - off.sum() - off_shares - off_workers
            if learn:
                now += kappa * _shape_prior(S, S0, nu0)
            if rows < len(trace):
                trace[rows, 0], trace[rows, 1] = now, M
                rows += 1
            settled = abs(now - before) < TOL * abs(now)
            before = now
            smallest = sums[:, 0].min()
            if now > top and smallest >= LEAST and (M == least or not given):
                top = now
                kept_mean, kept_V, kept_n = mean.copy(), V.copy(), n.copy()
                kept_S, kept_A, kept_B = S.copy(), A.copy(), B.copy()
            improve(mean, V, n, b, sums, nu0, b0, m0, S)
            on = np.zeros(len(pa))
            for i in range(N):
                on[worker[i]] += alpha[i, 0]
            A, B = pa + on, pb + sent - on
            if learn:
                total = kappa * inverse(S0)
                precisions(V, n, nu0, total)
                S = inverse(total / (kappa + M))
            if settled:
                break
        if last_sweeps:
            break
        poor = smallest < LEAST and M > least
        if M <= least or (not poor and not given and before < top - DROP):
            if top == -np.inf:
                kept_mean, kept_V, kept_n, kept_S, kept_A, kept_B = mean, V, n, S, A, B
            mean, V, n, S, A, B = kept_mean.copy(), kept_V.copy(), kept_n.copy(), kept_S.copy(), kept_A, kept_B
            b = n.copy()
            top, last_sweeps = -np.inf, True
            continue
        keep, changes = step_down(
            mean, V, n, b, off, sums[:, 2].copy(), reach, cellar, held, used, once, nu0, b0, least
        )  # fmt: skip
        if changes == 0 or len(keep) == 0:
            least = M
            continue
        mean, V, n, b = mean[keep], V[keep], n[keep], b[keep]
    each = evidence(sums[:, 0].copy(), off, sums[:, 2].copy(), weight, a0)
    return mean, V, n, b, before, each, S, A, B, rows


@jit
def _shape_prior(S, S0, nu0):
    """What one object of the shape first guessed says of the shape learnt (nats)."""
    D = len(S)
    scratch, trace = np.empty((D, D)), 0.0
    log_s = _root(S, scratch)
    back = inverse(S0)
    for d in range(D):
        for e in range(D):
            trace += S[d, e] * back[e, d]
    return 0.5 * nu0 * (log_s - trace)
