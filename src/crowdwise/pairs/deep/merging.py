"""Merge moves of the Bayesian mixture: two components become one if that raises the evidence lower bound.

With q(x) and the workers fixed and the posteriors of the components at their optimum, the bound depends on components a
and b through
    (1)  log Z(eta_a) + log Z(eta_b)              Normal-inverse-Wishart partition functions
    (2)  log Gamma(c_a) + log Gamma(c_b)          Dirichlet parameters
    (3)  -sum_i (z_ia log z_ia + z_ib log z_ib)   entropy of q(z)
    (4)  sum over answers of odds (z_ia z_ja + z_ib z_jb)
Natural parameters add, so the merged component has eta_a + eta_b - eta_0, the other returns to the prior eta_0, and the
change of (1) to (4) is exact without another pass over the items.
"""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from torch import Tensor

from .posteriors import Globals, log_partitions

OF_COMPONENTS = ("counts", "first", "second", "kappa", "nu")
MIN_GAIN = 1e-6  # nats


def merge_components(now: Globals, prior: Globals, z: Tensor, related: Tensor) -> tuple[Globals, Tensor, float]:
    """Merge the two components with the largest gain until no merge raises the bound.

    z (N, K) is q(z), and related (K, K) holds the sums of (4) for every two components: the odds of the answers times
    z_ia z_jb. Returns the posteriors, q(z) and the gain in nats.
    """
    now = Globals(*(getattr(now, f.name).clone() for f in fields(now)))
    z, related, total = z.clone(), related.double().clone(), 0.0
    gains = _gains(now, prior, related)
    while True:
        a, b, gain = _best(gains, z)
        if gain <= MIN_GAIN:
            return now, z, total
        total += gain
        _join(now, prior, a, b)
        z[:, a] += z[:, b]
        z[:, b] = 0.0
        for table in (related, related.T):
            table[a] += table[b]
            table[b] = 0.0
        changed = _gains(now, prior, related, rows=torch.tensor([a]))[0]
        gains[a], gains[:, a] = changed, changed
        gains[b], gains[:, b] = -torch.inf, -torch.inf


def _join(now: Globals, prior: Globals, a: int, b: int) -> None:
    for name in OF_COMPONENTS:
        own, start = getattr(now, name), getattr(prior, name)
        own[a] += own[b] - start[b]
        own[b] = start[b]


def _gains(now: Globals, prior: Globals, related: Tensor, rows: Tensor | None = None) -> Tensor:
    """(R, K) change of (1), (2) and (4) if each of `rows` (default all) is merged with each component.

    The change of (3) is never positive, so these are upper limits. Components without items are not merged.
    """
    K = len(now.counts)
    rows = torch.arange(K) if rows is None else rows
    a, b = (each.ravel() for each in torch.meshgrid(rows, torch.arange(K), indexing="ij"))
    merged = {name: getattr(now, name)[a] + getattr(now, name)[b] - getattr(prior, name)[b] for name in OF_COMPONENTS}
    alone, joint, empty = log_partitions(now), log_partitions(replace(now, **merged)), log_partitions(prior)
    counts = torch.lgamma(now.counts)
    gain = joint + empty[b] - alone[a] - alone[b]
    gain += torch.lgamma(merged["counts"]) + torch.lgamma(prior.counts[b]) - counts[a] - counts[b]
    gain += related[a, b]
    used = now.counts - prior.counts > 1e-3
    return gain.masked_fill((a == b) | ~used[a] | ~used[b] | ~gain.isfinite(), -torch.inf).reshape(len(rows), K)


def _best(gains: Tensor, z: Tensor) -> tuple[int, int, float]:
    """The two components with the largest gain, including the change of (3); candidates in the order of `gains`."""
    K, best = len(gains), (0, 0, -torch.inf)
    order = torch.argsort(gains.ravel(), descending=True)
    for at in order.tolist():
        limit = float(gains.ravel()[at])
        if limit <= max(best[2], 0.0):
            break
        a, b = divmod(at, K)
        if a < b:
            exact = limit + float(_entropy(z[:, a] + z[:, b]) - _entropy(z[:, a]) - _entropy(z[:, b]))
            best = max(best, (a, b, exact), key=lambda found: found[2])
    return best


def _entropy(z: Tensor) -> Tensor:
    total: Tensor = torch.special.entr(z.double()).sum()
    return total
