"""Objects from clicks by variational Bayes, merging from many components to few: docs/maths/click_mixture.md.

A component j is Normal-Wishart, with counts n[j] (expected clicks) and b[j] (expected clicks times the precision of
their workers), the mean, and V[j], the inverse scale. All components share the prior: nu0, b0, a0, the centre m0, and
the shape S, the inverse of the expected precision, which may be learnt.
"""

from __future__ import annotations

import math

import numpy as np

from ..clicks import JOINT_CUT, KAPPA, MAX_ALL_PAIRS, SEARCH_CUT, SIMILAR_COST, TOL
from ..layout import HEAD, Bools, Floats
from .assigning import _cell, assign_clicks, grid
from .blocks import jit
from .dirichlet import _lgamma
from .dirichlet import _psi as _digamma

TAU = 2.0 * math.pi
MAX_CANDIDATES = 768  # candidates per component if there are more components


@jit
def _root(V, R):
    """Compute the lower triangular R with R' R = V^-1, and return log |V|."""
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
def thicken(S, thin):
    """Raise the conditional variance of each axis of S, given the axes before it, to at least thin (D,), in place."""
    D = len(S)
    L = np.zeros((D, D))
    for i in range(D):
        for j in range(i + 1):
            s = S[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                if s < thin[i]:
                    S[i, i] += thin[i] - s
                    s = thin[i]
                L[i, i] = math.sqrt(s)
            else:
                L[i, j] = s / L[j, j]


@jit
def _wishart(nu, D):
    """Return the multivariate log-gamma and the sum of digammas of a Wishart with nu degrees of freedom."""
    gammas, psis = 0.25 * D * (D - 1) * math.log(math.pi), 0.0
    for d in range(D):
        gammas += _lgamma(0.5 * (nu - d))
        psis += _digamma(0.5 * (nu - d))
    return gammas, psis


@jit
def expect(mean, V, n, b, nu0, b0, a0, m0, S, cut, weight, slack, root, reach, off):
    """Compute weight, slack, root and reach of components for `assign_clicks`, and their KL divergences `off` from the
    prior (nats), in the arrays given. Return the KL divergence of the shares minus the log of the number of orders of
    the components."""
    M, D = mean.shape
    scratch = np.empty((D, D))
    log_prior = _root(S, scratch) + D * math.log(nu0)
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
            reach[j, c] = math.sqrt(cut * V[j, d, d] / nu)
    return shares - _lgamma(M + 1.0)


@jit
def improve(mean, V, n, b, sums, nu0, b0, m0, S):
    """Update the components from the sums of `assign_clicks`, in place."""
    M, D = mean.shape
    move, middle = np.empty(D), np.empty(D)
    for j in range(M):
        n[j], b[j] = sums[j, 0], sums[j, 1]
        beta = b0 + b[j]
        for d in range(D):
            middle[d] = m0[d] - mean[j, d]
            move[d] = (b0 * middle[d] + sums[j, HEAD + d]) / beta
        for d in range(D):
            for e in range(d + 1):
                v = (
                    nu0 * S[d, e]
                    + sums[j, HEAD + D + d * D + e]
                    + b0 * middle[d] * middle[e]
                    - beta * move[d] * move[e]
                )
                V[j, d, e] = v
                V[j, e, d] = v
        for d in range(D):
            mean[j, d] += move[d]


@jit
def precisions(V, n, nu0, total):
    """Add the expected precisions of components to total (D, D), from which the shared shape is learnt."""
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
    """Return the inverse of a positive definite matrix."""
    D = len(A)
    R, out = np.empty((D, D)), np.zeros((D, D))
    _root(A, R)
    for d in range(D):
        for e in range(D):
            for f in range(D):
                out[e, f] += R[d, e] * R[d, f]
    return out


@jit
def _squared_distance(X, i, j, root):
    """Return the squared distance of two clicks in standard deviations; root' root is the precision."""
    D, q = X.shape[1], 0.0
    for d in range(D):
        t = 0.0
        for e in range(d + 1):
            t += root[d, e] * (X[i, e] - X[j, e])
        q += t * t
    return q


def peaks(X: Floats, root: Floats, radius: float, least: float) -> Bools:
    """Mark the clicks (N,) with the most other clicks around them, `radius` standard deviations apart.

    A peak needs clicks of a weight of `least` within the radius, as computed by `densities`. root' root is the
    precision.
    """
    X = np.array(X)  # writable as the means of components, so that `grid` compiles only once
    S = np.linalg.inv(root.T @ root)
    reach = radius * np.sqrt(np.diagonal(S)[[0, min(1, len(S) - 1)]])
    cells_of = grid(X, np.repeat(reach[None], len(X), axis=0))
    density, mark = np.empty(len(X)), np.zeros(len(X), np.int8)
    densities(X, root, radius, cells_of, density)
    order = np.argsort(-density, kind="stable")
    thin_out(X, root, radius, cells_of, order[density[order] >= least], mark)
    return np.asarray(mark == 1)


@jit
def densities(X, root, radius, cells_of, out):
    """Write the weight of the clicks within `radius` standard deviations of each click to out (N,): 1 for the click
    itself, less for others, 0 at the radius. `cells_of` is the grid of clicks that reach so far."""
    low, size, cells, pointer, inside = cells_of
    for i in range(len(X)):
        cell, out[i] = _cell(X, i, low, size, cells), 0.0
        for at in range(pointer[cell], pointer[cell + 1]):
            out[i] += max(0.0, 1.0 - _squared_distance(X, i, inside[at], root) / (radius * radius))


@jit
def thin_out(X, root, radius, cells_of, order, out):
    """Mark the clicks, taken in this order, that are further than `radius` standard deviations from all marked before
    them in out (N,), which holds zeros."""
    low, size, cells, pointer, inside = cells_of
    for i in order:
        if out[i] == 0:
            cell = _cell(X, i, low, size, cells)
            for at in range(pointer[cell], pointer[cell + 1]):
                if out[inside[at]] == 0 and _squared_distance(X, i, inside[at], root) < radius * radius:
                    out[inside[at]] = -1
            out[i] = 1


@jit
def betas(A, B, a, b):
    """Return the expected log-odds of Beta(A, B), the expected log of one minus the variable, and the sum of the KL
    divergences from Beta(a, b) (nats)."""
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
def _near(mean, reach, i, M, cells_of, out):
    """Write the components whose reach includes the mean of i to out, and return their number."""
    count = 0
    if M <= MAX_ALL_PAIRS:
        for j in range(M):
            if j != i:
                out[count] = j
                count += 1
        return count
    low, size, cells, pointer, inside = cells_of
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
    """Sort held (used, 3) by object; return pointers, jobs in ascending order, and shares."""
    pointer = np.zeros(M + 1, np.int64)
    for k in range(used):
        pointer[int(held[k, 0]) + 1] += 1
    for j in range(M):
        pointer[j + 1] += pointer[j]
    at, job, share = np.empty(M, np.int64), np.empty(used, np.int64), np.empty(used)
    for j in range(M):
        at[j] = pointer[j]
    for k in range(used):
        j = int(held[k, 0])
        job[at[j]], share[at[j]] = int(held[k, 1]), held[k, 2]
        at[j] += 1
    return pointer, job, share


@jit
def _both(pointer, job, share, i, j):
    """Return the expected number of jobs that hold both i and j."""
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
    """Write the covariance of two merged components to out, and return its log-determinant."""
    D = mean.shape[1]
    t = n[i] + n[j]
    f = n[i] * n[j] / (t * t)
    for d in range(D):
        for e in range(D):
            out[d, e] = (n[i] * C[i, d, e] + n[j] * C[j, d, e]) / t
            out[d, e] += f * (mean[i, d] - mean[j, d]) * (mean[i, e] - mean[j, e])
    return _root(out, np.empty((D, D)))


@jit
def prices(mean, V, n, gain, reach, held, used, once, nu0):
    """Return the cost of removing each component (nats), and the component to merge it with, or -1 to drop it."""
    M, D = mean.shape
    cells_of = grid(mean, reach)
    C, log_c = np.empty_like(V), np.empty(M)
    scratch, candidates = np.empty((D, D)), np.empty(MAX_CANDIDATES, np.int64)
    for j in range(M):
        for d in range(D):
            for e in range(D):
                C[j, d, e] = V[j, d, e] / (nu0 + n[j])
        log_c[j] = _root(C[j], scratch)
    pointer, job, share = _supporters(held, used, M)
    cost, mate = np.empty(M), np.empty(M, np.int64)
    for i in range(M):
        cost[i], mate[i] = gain[i], -1
        for k in range(_near(mean, reach, i, M, cells_of, candidates)):
            j = candidates[k]
            price = (
                0.5 * (n[i] + n[j]) * _joined(C, mean, n, i, j, scratch) - 0.5 * n[i] * log_c[i] - 0.5 * n[j] * log_c[j]
            )
            if once and price < cost[i]:
                price += (gain[i] + gain[j]) / (n[i] + n[j]) * _both(pointer, job, share, i, j)
            if price < cost[i]:
                cost[i], mate[i] = price, j
    return cost, mate


@jit
def apply_merges(order, cost, mate, mean, V, n, b, off, nu0, most, few, least, dead):
    """Apply the cheapest merges and removals in this order, as long as more than `least` components remain: the first
    one, up to `most` that cost less than they save, and up to `few` that cost little more than the first. Mark removed
    components in `dead`; return the number of changes."""
    M, D = mean.shape
    touched, C = np.zeros(M, np.bool_), np.empty((2, D, D))
    two, pair, both = np.empty((2, D)), np.empty(2), np.empty((D, D))
    changes, dearest = 0, cost[order[0]] + SIMILAR_COST
    for i in order:
        worthwhile = changes < most and cost[i] <= off[i]
        if changes and not worthwhile and (changes >= few or cost[i] > dearest):
            break
        if M - changes <= least:
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
        t = n[i] + n[j]
        for k, which in enumerate((i, j)):
            pair[k] = n[which]
            for d in range(D):
                two[k, d] = mean[which, d]
                for e in range(D):
                    C[k, d, e] = V[which, d, e] / (nu0 + n[which])
        _joined(C, two, pair, 0, 1, both)
        for d in range(D):
            mean[i, d] = (pair[0] * two[0, d] + pair[1] * two[1, d]) / t
            for e in range(D):
                V[i, d, e] = both[d, e] * (nu0 + t)
        n[i] = t
        b[i] += b[j]
    return changes


@jit
def fit_components(
    X, worker, job_ptr, log_box, once, mean, V, n, b, S, S0, thin, learn, nu0, b0, a0, m0, A, B, pa, pb, sent, max_iter,
    alpha, held, trace,
):  # fmt: skip
    """Iterate with a fixed number of components until the evidence converges; `mean` to `S`, `A` and `B` are updated in
    place.

    If `learn`, the shape is learnt, with conditional variances of at least `thin` (D,). trace receives the evidence,
    with the log-prior of the shape in its second column. Return the number of iterations, rows of `held` used, sums of
    `assign_clicks`, KL divergences from the prior, reaches, and whether it converged.
    """
    N, D = X.shape
    M, jobs, W = len(mean), len(job_ptr) - 1, len(pa)
    cut = SEARCH_CUT if D <= 2 else JOINT_CUT
    precision, best = np.ones(W), np.empty((0, 3))
    before, rows, converged = -np.inf, 0, False
    sums = np.zeros((M, HEAD + D + D * D))
    weight, slack, off, root, reach = np.empty(M), np.empty(M), np.empty(M), np.empty((M, D, D)), np.empty((M, 2))
    while True:
        odds, miss, off_workers = betas(A, B, pa, pb)
        off_shares = expect(mean, V, n, b, nu0, b0, a0, m0, S, cut, weight, slack, root, reach, off)
        for j in range(M):
            for k in range(HEAD + D + D * D):
                sums[j, k] = 0.0
        now, used = assign_clicks(
            X, worker, job_ptr, np.int64(0), jobs, weight, slack, mean, root, reach, odds, -log_box, precision,
            cut, once, sums, alpha, held, best,
        )  # fmt: skip
        now += N * log_box - off_shares - off_workers
        for j in range(M):
            now -= off[j]
        for w in range(W):
            now += miss[w] * sent[w]
        trace[rows, 1] = KAPPA * _shape_prior(S, S0, nu0) if learn else 0.0
        now += trace[rows, 1]
        trace[rows, 0] = now
        rows += 1
        converged = abs(now - before) < TOL * abs(now)
        if converged or rows == max_iter:
            break
        before = now
        improve(mean, V, n, b, sums, nu0, b0, m0, S)
        for w in range(W):
            A[w], B[w] = pa[w], pb[w] + sent[w]
        for i in range(N):
            A[worker[i]] += alpha[i, 0]
            B[worker[i]] -= alpha[i, 0]
        if learn:
            total = inverse(S0)
            for d in range(D):
                for e in range(D):
                    total[d, e] *= KAPPA
            precisions(V, n, nu0, total)
            back = inverse(total)
            for d in range(D):
                for e in range(D):
                    S[d, e] = back[d, e] * (KAPPA + M)
            thicken(S, thin)
    return rows, used, sums, off, reach, converged


@jit
def _shape_prior(S, S0, nu0):
    """Return the log-prior of the learnt shape: the weight of one object with the initial shape (nats)."""
    D = len(S)
    scratch, trace = np.empty((D, D)), 0.0
    log_s = _root(S, scratch)
    back = inverse(S0)
    for d in range(D):
        for e in range(D):
            trace += S[d, e] * back[e, d]
    return 0.5 * nu0 * (log_s - trace)
