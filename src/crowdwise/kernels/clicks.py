"""Objects from clicks in numpy, for small tables: numba takes seconds to load, and longer to compile.

`fast.clicks` has the same functions, compiled; they find near objects by a grid where these compare all clicks with all
objects. docs/maths/click_mixture.md has the equations. The functions at the end serve tables of all sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .layout import HEAD, Bools, Floats, Ints
from .special import digamma, gammaln

MIN_LOG_ODDS = -34.0  # objects with lower log-odds against no object are ignored
MAX_ROUNDS = 400  # rounds of messages between the clicks of a job and the objects
MESSAGE_TOL = 1e-4  # messages have converged when none changes by more than this, relative to its value
MIN_HELD_SHARE = 1.0 / 3.0  # an object is held by a job if its share of a click is above this: at most two per click
EDGE_SD = 6.0  # an object is truncated if an edge of the box is within this many standard deviations of its mean
MAX_ALL_PAIRS = 64  # components up to which all pairs are candidates for merging
SIMILAR_COST = 3.0  # nats by which the costs of merges made together may differ
TOL = 1e-6  # relative change of the evidence at convergence
KAPPA = 1.0  # weight of the initial shape, in objects
JOINT_CUT = 40.0  # squared distance in standard deviations beyond which a component ignores clicks, in the joint fit
SEARCH_CUT = 28.0  # the same in the search, with up to two coordinates

_erf: Callable[[Floats], Floats] = np.vectorize(math.erf, otypes=[np.float64])


def assign_clicks(
    X: Floats, worker: Ints, job_ptr: Ints, start: int, stop: int, weight: Floats, slack: Floats, mean: Floats,
    root: Floats, reach: Floats, odds: Floats, base: float, precision: Floats, cut: float, once: bool, sums: Floats,
    alpha: Floats, held: Floats, best: Floats,
) -> tuple[float, int]:  # fmt: skip
    """Assign the clicks of jobs start:stop of one image to objects. `odds` (W,) plus `base` are the log-odds that a
    worker's click is on some object, against a uniform click. Return the log of the sum over all assignments, relative
    to no click being on an object, and the number of rows of `held` used.

    The compiled version describes the arrays that are written: sums, alpha, held and best.
    """
    M, D = mean.shape
    at, job = slice(int(job_ptr[start]), int(job_ptr[stop])), np.arange(start, stop)
    x, by = X[at], worker[at]
    N, narrow = len(x), precision[by]
    q = (np.matmul(root, x.T[None] - mean[:, :, None]) ** 2).sum(1)  # (M, N)
    chance = weight[:, None] + (odds[by] + base) - 0.5 * (q + slack[:, None]) * narrow
    click, comp = np.nonzero(((q * narrow <= cut) & (chance >= MIN_LOG_ODDS)).T)
    psi, far = np.exp(np.minimum(chance[comp, click], 600.0)), q[comp, click] + slack[comp]
    job = np.repeat(job, np.diff(job_ptr[start : stop + 1]))[click]
    share, log_sum = match(job, click, comp, psi) if once else _independent(click, psi, N)
    on = np.bincount(click, share, N)
    alpha[at, 0], alpha[at, 1] = on, np.bincount(click, share * far, N)
    scaled, delta = share * narrow[click], x[click] - mean[comp]
    for column, values in ((0, share), (1, scaled), (2, -np.log1p(-np.minimum(share, 1 - 1e-12)))):
        sums[:, column] += np.bincount(comp, values, M)
    for d in range(D):
        sums[:, HEAD + d] += np.bincount(comp, scaled * delta[:, d], M)
        for c in range(d + 1):
            sums[:, HEAD + D + d * D + c] += np.bincount(comp, scaled * delta[:, d] * delta[:, c], M)
    used = 0
    if len(held):
        sure = np.flatnonzero(share > MIN_HELD_SHARE)
        used = len(sure)
        held[:used] = np.stack([comp[sure], job[sure], share[sure]], axis=1)
    if len(best):
        none = np.maximum(1.0 - on, 1e-300)
        entropy = np.bincount(click, -share * np.log(np.maximum(share, 1e-300)), N) - none * np.log(none)
        best[at, 0], best[at, 1], best[at, 2] = -1.0, 0.0, entropy
        order = np.lexsort((-comp, share))  # the last object written is the first one with the highest share
        best[at.start + click[order], 0], best[at.start + click[order], 1] = comp[order], share[order]
    return log_sum, used


def _independent(click: Ints, psi: Floats, N: int) -> tuple[Floats, float]:
    """Return the probability of each candidate, and the log of the sum, if clicks do not exclude each other."""
    s = 1.0 + np.bincount(click, psi, N)
    return psi / s[click], float(np.log(s).sum())


def match(job: Ints, click: Ints, comp: Ints, psi: Floats) -> tuple[Floats, float]:
    """Match clicks to objects that each job clicks at most once; return the marginals of the candidates, and the log of
    the sum over matchings.

    A candidate has a job, a click, an object and its odds `psi` against no object.
    """
    if not len(click):
        return np.empty(0), 0.0
    pair = np.unique(job.astype(np.int64) * (int(comp.max()) + 1) + comp, return_inverse=True)[1]
    P, N = int(pair.max()) + 1, int(click.max()) + 1
    share, log_sum = _independent(click, psi, N)
    rival = np.bincount(click, np.bincount(pair)[pair] > 1, N) > 0  # clicks that share a candidate with another one
    among = rival[click]
    if not among.any():
        return share, log_sum
    click, pair, odds = click[among], pair[among], psi[among]
    log_sum -= float(np.log1p(np.bincount(click, odds, N)).sum())
    back = np.ones(len(click))
    for _ in range(MAX_ROUNDS):
        s = 1.0 + np.bincount(click, odds * back, N)
        out = odds / np.maximum(1.0, s[click] - odds * back)
        now = 1.0 / (1.0 + np.maximum(0.0, np.bincount(pair, out, P)[pair] - out))
        converged = bool((np.abs(now - back) <= MESSAGE_TOL * now).all())
        back = now
        if converged:
            break
    s = 1.0 + np.bincount(click, odds * back, N)
    share[among] = odds * back / s[click]
    total = np.bincount(pair, out, P)
    return share, log_sum + float(np.log(s).sum() - np.log1p(out * back).sum() + np.log1p(total).sum())


def truncate(
    mean: Floats, cov: Floats, low: Floats, high: Floats, nodes: Floats, weights: Floats, mass: Floats, first: Floats,
    second: Floats,
) -> None:  # fmt: skip
    """Write the probability that a Gaussian (one or two coordinates) lies between low and high, and its moments there.

    mass (M,), first (M, D) and second (M, D, D) hold the values without truncation, which stay for a Gaussian that is
    far from all edges. The moments are about the mean.
    """
    sd = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    m = np.flatnonzero(((mean - EDGE_SD * sd < low) | (mean + EDGE_SD * sd > high)).any(1))
    if not len(m):
        return
    mean, cov, sd, low, high = mean[m], cov[m], sd[m], low[m] - mean[m], high[m] - mean[m]
    x, w, slope, tau = np.zeros((len(m), 1)), np.ones((len(m), 1)), np.zeros((len(m), 1)), sd[:, -1:]
    if mean.shape[1] == 2:
        near = EDGE_SD * sd[:, 0]
        a, b = np.maximum(low[:, 0], np.minimum(high[:, 0], -near)), np.minimum(high[:, 0], np.maximum(low[:, 0], near))
        middle, half = 0.5 * (a + b)[:, None], 0.5 * (b - a)[:, None]
        slope = (cov[:, 1, 0] / cov[:, 0, 0])[:, None]
        tau = np.sqrt(np.maximum(cov[:, 1, 1] - slope[:, 0] * cov[:, 1, 0], 1e-300))[:, None]
        x = middle + half * nodes
        w = half * weights * math.sqrt(0.5 / math.pi) / sd[:, :1] * np.exp(-0.5 * (x / sd[:, :1]) ** 2)
    c = slope * x
    lo, hi = (low[:, -1:] - c) / tau, (high[:, -1:] - c) / tau
    at_lo, at_hi = (math.sqrt(0.5 / math.pi) * np.exp(-0.5 * z * z) for z in (lo, hi))
    p = 0.5 * (_erf(hi * math.sqrt(0.5)) - _erf(lo * math.sqrt(0.5)))
    q, r = tau * (at_lo - at_hi), tau * tau * (p + lo * at_lo - hi * at_hi)
    z = (w * p).sum(1)
    some = z >= 1e-12
    m, z, w, x, c, p, q, r = m[some], z[some], w[some], x[some], c[some], p[some], q[some], r[some]
    mass[m] = z
    first[m, -1] = (w * (c * p + q)).sum(1) / z
    second[m, -1, -1] = (w * (c * c * p + 2 * c * q + r)).sum(1) / z
    if mean.shape[1] == 2:
        first[m, 0], second[m, 0, 0] = (w * x * p).sum(1) / z, (w * x * x * p).sum(1) / z
        second[m, 0, 1] = second[m, 1, 0] = (w * x * (c * p + q)).sum(1) / z


def reliability_scores(alpha: Floats, ptr: Ints, p: Floats, grid: Floats, logs: Floats) -> None:
    """Write the log-likelihood of each worker's clicks to logs (W, G), for every reliability of the grid (G,).

    alpha are the probabilities of clicks, sorted by worker, computed with the reliabilities p.
    """
    for w in range(len(ptr) - 1):
        own = alpha[ptr[w] : ptr[w + 1]]
        ratio = np.minimum(own / np.maximum(1.0 - own, 1e-15) / (p[w] / (1.0 - p[w])), 1e15)[:, None]
        logs[w] = np.log((grid * ratio + 1.0 - grid) / (1.0 + ratio)).sum(0)


def peaks(X: Floats, root: Floats, radius: float, least: float) -> Bools:
    """Mark the clicks (N,) with the most other clicks around them, `radius` standard deviations apart.

    A peak needs clicks of a weight of `least` within the radius: 1 for the click itself, less for others, 0 at the
    radius. root' root is the precision.
    """
    z = X @ root.T
    q = ((z[:, None] - z[None]) ** 2).sum(2) / (radius * radius)
    density = np.maximum(0.0, 1.0 - q).sum(1)
    free, peak = np.ones(len(X), np.bool_), np.zeros(len(X), np.bool_)
    for i in np.argsort(-density, kind="stable"):
        if density[i] < least:
            break
        if free[i]:
            peak[i] = True
            free &= q[i] >= 1.0
    return peak


def betas(A: Floats, B: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, float]:
    """Return the expected log-odds of Beta(A, B), the expected log of one minus the variable, and the sum of the KL
    divergences from Beta(a, b) (nats)."""
    hit, miss = digamma(np.stack([A, B])) - digamma(A + B)
    gamma = gammaln(np.stack([A + B, a + b, A, B, a, b]))
    off = gamma[0] - gamma[1] - gamma[2] - gamma[3] + gamma[4] + gamma[5] + (A - a) * hit + (B - b) * miss
    return hit - miss, miss, float(off.sum())


def _wishart(nu: Floats, D: int) -> tuple[Floats, Floats]:
    """Return the multivariate log-gamma and the sum of digammas of Wisharts with nu degrees of freedom."""
    half = 0.5 * (np.asarray(nu)[..., None] - np.arange(D))
    return 0.25 * D * (D - 1) * math.log(math.pi) + gammaln(half).sum(-1), digamma(half).sum(-1)


def expect(
    mean: Floats, V: Floats, n: Floats, b: Floats, nu0: float, b0: float, a0: float, m0: Floats, S: Floats, cut: float,
    weight: Floats, slack: Floats, root: Floats, reach: Floats, off: Floats,
) -> float:  # fmt: skip
    """Compute weight, slack, root and reach of components for `assign_clicks`, and their KL divergences `off` from the
    prior (nats), in the arrays given. Return the KL divergence of the shares minus the log of the number of orders of
    the components."""
    M, D = mean.shape
    L = np.linalg.cholesky(V)
    R = np.linalg.inv(L)
    log_v = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(1)
    log_prior = float(np.linalg.slogdet(S)[1]) + D * math.log(nu0)
    nu, beta, all_clicks = nu0 + n, b0 + b, float(n.sum())
    gammas, psis = _wishart(np.append(nu, nu0), D)
    gammas, gammas0, log_precision = gammas[:-1], gammas[-1], psis[:-1] + D * math.log(2.0) - log_v
    share_psi, share_gamma = digamma(np.append(a0 + n, M * a0 + all_clicks)), gammaln(np.append(a0 + n, a0))
    log_share = share_psi[:-1] - share_psi[-1]
    weight[:] = log_share + 0.5 * log_precision - 0.5 * D * math.log(2.0 * math.pi)
    slack[:] = D / beta
    from_middle = (np.matmul(R, (mean - m0)[:, :, None])[:, :, 0] ** 2).sum(1)
    trace = (np.matmul(R, S) * R).sum((1, 2))
    off[:] = 0.5 * (D * b0 / beta + b0 * nu * from_middle - D - D * np.log(b0 / beta))
    off += 0.5 * nu * log_v - 0.5 * nu0 * log_prior - gammas + gammas0
    off += 0.5 * n * (log_precision - D * math.log(2.0)) + 0.5 * nu * (nu0 * trace - D)
    root[:] = R * np.sqrt(nu)[:, None, None]
    reach[:] = np.sqrt(cut * np.diagonal(V, axis1=1, axis2=2)[:, [0, min(1, D - 1)]] / nu[:, None])
    shares = math.lgamma(M * a0 + all_clicks) - math.lgamma(M * a0) + M * share_gamma[-1] - math.lgamma(M + 1.0)
    return float(shares + (n * log_share - share_gamma[:-1]).sum())


def improve(
    mean: Floats, V: Floats, n: Floats, b: Floats, sums: Floats, nu0: float, b0: float, m0: Floats, S: Floats
) -> None:
    """Update the components from the sums of `assign_clicks`, in place."""
    D = mean.shape[1]
    n[:], b[:] = sums[:, 0], sums[:, 1]
    beta, middle = (b0 + b)[:, None], m0 - mean
    move = (b0 * middle + sums[:, HEAD : HEAD + D]) / beta
    lower = np.tril(sums[:, HEAD + D :].reshape(-1, D, D))
    V[:] = nu0 * S + lower + np.tril(lower, -1).transpose(0, 2, 1) + b0 * middle[:, :, None] * middle[:, None, :]
    V -= beta[:, :, None] * move[:, :, None] * move[:, None, :]
    mean += move


def prices(
    mean: Floats, V: Floats, n: Floats, gain: Floats, reach: Floats, held: Floats, used: int, once: bool, nu0: float
) -> tuple[Floats, Ints]:
    """Return the cost of removing each component (nats), and the component to merge it with, or -1 to drop it."""
    M, away = len(mean), np.abs(mean[:, None] - mean[None])
    near = ~np.eye(M, dtype=bool)
    if M > MAX_ALL_PAIRS:
        near &= (away[:, :, [0, min(1, mean.shape[1] - 1)]] <= reach[None]).all(2)  # compiled: cells of a grid
    i, j = np.nonzero(near)
    C = V / (nu0 + n)[:, None, None]
    log_c = n * np.linalg.slogdet(C)[1]
    both = n[i] + n[j]
    price = np.full((M, M), np.inf)
    price[i, j] = 0.5 * (both * np.linalg.slogdet(_joined(C, mean, n, i, j))[1] - log_c[i] - log_c[j])
    if once and used:
        object_, job = held[:used, 0].astype(np.int64), held[:used, 1].astype(np.int64)
        share = np.zeros((int(job.max()) + 1, M))
        np.add.at(share, (job, object_), held[:used, 2])
        price[i, j] += (gain[i] + gain[j]) / both * (share.T @ share)[i, j]
    best = price.argmin(1)
    lowest = price[np.arange(M), best]
    merge = lowest < gain
    return np.where(merge, lowest, gain), np.where(merge, best, -1)


def _joined(C: Floats, mean: Floats, n: Floats, i: Ints, j: Ints) -> Floats:
    """Return the covariances of merged components i and j."""
    t, apart = (n[i] + n[j])[:, None, None], mean[i] - mean[j]
    a, b = n[i][:, None, None], n[j][:, None, None]
    return np.asarray((a * C[i] + b * C[j]) / t + a * b / (t * t) * apart[:, :, None] * apart[:, None, :])


def apply_merges(
    order: Ints, cost: Floats, mate: Ints, mean: Floats, V: Floats, n: Floats, b: Floats, off: Floats, nu0: float,
    most: int, few: int, least: int, dead: Bools,
) -> int:  # fmt: skip
    """Apply the cheapest merges and removals in this order, as long as more than `least` components remain: the first
    one, up to `most` that cost less than they save, and up to `few` that cost little more than the first. Mark removed
    components in `dead`; return the number of changes."""
    touched, changes, pairs = np.zeros(len(mean), np.bool_), 0, []
    for i in order.tolist():
        worthwhile = changes < most and cost[i] <= off[i]
        if changes and not worthwhile and (changes >= few or cost[i] > cost[order[0]] + SIMILAR_COST):
            break
        if len(mean) - changes <= least:
            break
        j = int(mate[i])
        if touched[i] or (j >= 0 and touched[j]):
            continue
        changes += 1
        touched[i] = True
        if j >= 0:
            touched[j] = True
            pairs.append((i, j))
        dead[j if j >= 0 else i] = True
    if pairs:
        i, j = np.array(pairs).T
        t = n[i] + n[j]
        V[i] = _joined(V / (nu0 + n)[:, None, None], mean, n, i, j) * (nu0 + t)[:, None, None]
        mean[i] = (n[i][:, None] * mean[i] + n[j][:, None] * mean[j]) / t[:, None]
        n[i], b[i] = t, b[i] + b[j]
    return changes


def fit_components(
    X: Floats, worker: Ints, job_ptr: Ints, log_box: float, once: bool, mean: Floats, V: Floats, n: Floats, b: Floats,
    S: Floats, S0: Floats, thin: Floats, learn: bool, nu0: float, b0: float, a0: float, m0: Floats, A: Floats,
    B: Floats, pa: Floats, pb: Floats, sent: Floats, max_iter: int, alpha: Floats, held: Floats, trace: Floats,
) -> tuple[int, int, Floats, Floats, Floats, bool]:  # fmt: skip
    """Iterate with a fixed number of components until the evidence converges; `mean` to `S`, `A` and `B` are updated in
    place. The compiled version describes the rest."""
    N, D = X.shape
    M, W, cut = len(mean), len(pa), SEARCH_CUT if D <= 2 else JOINT_CUT
    precision, best = np.ones(W), np.empty((0, 3))
    weight, slack, off, root, reach = np.empty(M), np.empty(M), np.empty(M), np.empty((M, D, D)), np.empty((M, 2))
    before = -np.inf
    for row in range(max_iter):
        odds, miss, off_workers = betas(A, B, pa, pb)
        off_shares = expect(mean, V, n, b, nu0, b0, a0, m0, S, cut, weight, slack, root, reach, off)
        sums = np.zeros((M, HEAD + D + D * D))
        now, used = assign_clicks(
            X, worker, job_ptr, 0, len(job_ptr) - 1, weight, slack, mean, root, reach, odds, -log_box, precision,
            cut, once, sums, alpha, held, best,
        )  # fmt: skip
        now += N * log_box - off_shares - off_workers - float(off.sum()) + float(miss @ sent)
        trace[row, 1] = KAPPA * shape_prior(S, S0, nu0) if learn else 0.0
        trace[row, 0] = now = now + trace[row, 1]
        converged = abs(now - before) < TOL * abs(now)
        if converged or row + 1 == max_iter:
            break
        before = now
        improve(mean, V, n, b, sums, nu0, b0, m0, S)
        on = np.bincount(worker, alpha[:, 0], W)
        A[:], B[:] = pa + on, pb + sent - on
        if learn:
            S[:] = np.linalg.inv((KAPPA * np.linalg.inv(S0) + precisions(V, n, nu0)) / (KAPPA + M))
            thicken(S, thin)
    return row + 1, used, sums, off, reach, converged


def shape_prior(S: Floats, S0: Floats, nu0: float) -> float:
    """Return the log-prior of the learnt shape: the weight of one object with the initial shape (nats)."""
    return float(0.5 * nu0 * (np.linalg.slogdet(S)[1] - np.trace(S @ np.linalg.inv(S0))))


def precisions(V: Floats, n: Floats, nu0: float) -> Floats:
    """Return the sum (D, D) of the expected precisions of components, from which the shared shape is learnt."""
    return np.asarray(((nu0 + n)[:, None, None] * np.linalg.inv(V)).sum(0))


def thicken(S: Floats, thin: Floats) -> None:
    """Raise the conditional variance of each axis of S, given the axes before it, to at least thin (D,), in place."""
    for d in range(len(S)):
        explained = S[d, :d] @ np.linalg.solve(S[:d, :d], S[:d, d]) if d else 0.0
        S[d, d] = max(S[d, d], thin[d] + explained)


def evidence(image: Ints, n: Floats, off: Floats, gain: Floats, a0: float) -> Floats:
    """Return the loss of evidence (M,) in nats if a component is removed and its clicks are on no object. `image` (M,)
    is the image of each component."""
    M, total = np.bincount(image)[image], np.bincount(image, n)[image]
    alone = gain - n * (digamma(a0 + n) - digamma(M * a0 + total))
    shares = gammaln(M * a0) - gammaln(M * a0 + total) + gammaln(a0 + n) - gammaln(np.array(a0))
    rest = np.maximum(M - 1, 1) * a0
    shares -= np.where(M > 1, gammaln(rest) - gammaln(rest + total - n), 0.0)
    return np.asarray(alone - off + shares + np.log(M))


def seeds(X: Floats, u: Floats) -> Floats:
    """Choose up to M distinct clicks far from each other by k-means++, with uniform draws u (M,)."""
    pick, chosen, away = min(len(X) - 1, int(u[0] * len(X))), [], np.full(len(X), np.inf)
    for draw in u[1:]:
        chosen.append(pick)
        away = np.minimum(away, ((X - X[pick]) ** 2).sum(1))
        below = np.cumsum(away)
        if below[-1] <= 0:
            return np.asarray(X[chosen])
        pick = int(np.searchsorted(below, draw * below[-1], side="right"))
        pick = min(pick, int(np.flatnonzero(away > 0)[-1]))
    return np.asarray(X[[*chosen, pick]])
