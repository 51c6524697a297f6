"""Dirichlet, Normal-inverse-Wishart and Beta posteriors of a mixture with pairwise answers, and their expectations."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Dirichlet, kl_divergence

from .networks import Space

LOG_2PI = float(np.log(2 * np.pi))


@dataclass
class Globals:
    """Natural parameters of the global posteriors, in which natural-gradient steps are linear."""

    counts: Tensor  # (K,) Dirichlet
    first: Tensor  # (K, d) kappa m
    second: Tensor  # (K, d, d) S + kappa m m'
    kappa: Tensor  # (K,)
    nu: Tensor  # (K,)
    alpha: Tensor  # (W, 2) Beta, sensitivity
    beta: Tensor  # (W, 2) Beta, specificity

    def plus(self, other: Globals, here: float, there: float) -> Globals:
        """Return here * self + there * other, for all parameters."""
        return Globals(*(here * getattr(self, f.name) + there * getattr(other, f.name) for f in fields(self)))

    def centre(self) -> tuple[Tensor, Tensor]:
        """Return m and S of every component."""
        m = self.first / self.kappa[:, None]
        S = self.second - self.kappa[:, None, None] * m[:, :, None] * m[:, None, :]
        return m, 0.5 * (S + S.mT)


class Expected(NamedTuple):
    """Expectations under the global posteriors, in single precision."""

    log_share: Tensor  # (K,)
    precision: Tensor  # (K, d, d) E[Lambda]
    pull: Tensor  # (K, d) E[Lambda mu]
    offset: Tensor  # (K,) constant of the expected log-density
    same: Tensor  # (W, 2) log-probability of the answers "different" and "same" if the pair is the same
    different: Tensor  # (W, 2) the same if the pair is different


class Placed(NamedTuple):
    """q(x) of items: mean, second moment, lower Cholesky factor of the precision."""

    mean: Tensor
    second: Tensor
    root: Tensor


def prior(components: int, d: int, workers: int, width: float = 1.0, concentration: float = 0.05) -> Globals:
    """Weak prior, the same for every component and every worker."""
    eye = torch.eye(d, dtype=torch.float64)
    counts, kappa, nu = (
        torch.full((components,), value, dtype=torch.float64) for value in (concentration, 0.5, d + 0.5)
    )
    first, second = torch.zeros(components, d, dtype=torch.float64), ((d + 0.5) * width * eye).repeat(components, 1, 1)
    alpha, beta = (torch.ones(workers, 2, dtype=torch.float64) for _ in range(2))
    return Globals(counts, first, second, kappa, nu, alpha, beta)


def random_start(components: int, d: int, workers: int, width: float = 1.0) -> Globals:
    """Random start: widely spread means, and accurate workers."""
    eye = torch.eye(d, dtype=torch.float64)
    m = 3 * width**0.5 * torch.randn(components, d, dtype=torch.float64)
    good = torch.tensor([10.0, 1.0], dtype=torch.float64).repeat(workers, 1)
    counts, kappa = 1 + torch.rand(components, dtype=torch.float64), torch.ones(components, dtype=torch.float64)
    nu, second = torch.full_like(kappa, d + 1.0), (d + 1) * width * eye + m[:, :, None] * m[:, None, :]
    return Globals(counts, m, second, kappa, nu, good, good.clone())


def _moments(g: Globals) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """E[Lambda], E[Lambda mu], E[mu' Lambda mu], E log|Lambda| and log|S| of every component."""
    m, S = g.centre()
    d = m.shape[1]
    root = torch.linalg.cholesky(S)
    precision = g.nu[:, None, None] * torch.cholesky_inverse(root)
    pull = (precision @ m[:, :, None])[..., 0]
    log_det = 2 * root.diagonal(dim1=1, dim2=2).log().sum(1)
    steps = torch.arange(d, dtype=torch.float64)
    log_precision = torch.digamma(0.5 * (g.nu[:, None] - steps)).sum(1) + d * float(np.log(2)) - log_det
    return precision, pull, d / g.kappa + (pull * m).sum(1), log_precision, log_det


def expected(g: Globals) -> Expected:
    """Compute the expectations that the updates of items need."""
    precision, pull, quadratic, log_precision, _ = _moments(g)
    d = pull.shape[1]
    log_share = torch.digamma(g.counts) - torch.digamma(g.counts.sum())
    hit, miss = (torch.digamma(p) - torch.digamma(p.sum(1, keepdim=True)) for p in (g.alpha, g.beta))
    same = torch.stack([hit[:, 1], hit[:, 0]], 1)
    different = torch.stack([miss[:, 0], miss[:, 1]], 1)
    offset = 0.5 * (log_precision - d * LOG_2PI - quadratic)
    return Expected(*(t.float() for t in (log_share, precision, pull, offset, same, different)))


def divergence(g: Globals, p: Globals) -> float:
    """Kullback-Leibler divergence from prior p to posterior g, over all parameters."""
    precision, pull, quadratic, log_precision, log_det = _moments(g)
    linear = (
        ((g.first - p.first) * pull).sum()
        - 0.5 * ((g.second - p.second) * precision).sum()
        - 0.5 * ((g.kappa - p.kappa) * quadratic).sum()
        + 0.5 * ((g.nu - p.nu) * log_precision).sum()
    )
    wishart = linear - _log_partition(g, log_det).sum() + _log_partition(p, _moments(p)[4]).sum()
    total = wishart + kl_divergence(Dirichlet(g.counts), Dirichlet(p.counts))
    for q, before in ((g.alpha, p.alpha), (g.beta, p.beta)):
        if len(q):
            total = total + kl_divergence(Dirichlet(q), Dirichlet(before)).sum()
    return float(total)


def log_partitions(g: Globals) -> Tensor:
    """(K,) log normaliser of the Normal-inverse-Wishart of every component; -inf for parameters of no distribution."""
    root, failed = torch.linalg.cholesky_ex(g.centre()[1])
    log_det = 2 * root.diagonal(dim1=1, dim2=2).log().sum(1)
    return _log_partition(g, log_det).masked_fill(failed > 0, -torch.inf)


def _log_partition(g: Globals, log_det: Tensor) -> Tensor:
    """Log normaliser of the Normal-inverse-Wishart of every component."""
    d = g.first.shape[1]
    gammas = torch.mvlgamma(0.5 * g.nu, d)
    return 0.5 * g.nu * (d * float(np.log(2)) - log_det) + gammas + 0.5 * d * (LOG_2PI - g.kappa.log())


def place(e: Expected, precision: Tensor, pull: Tensor, z: Tensor) -> Placed:
    """Compute q(x) from the potential of the encoder and the expected component, eq. (12)."""
    n, d = precision.shape
    total = torch.diag_embed(precision) + (z @ e.precision.reshape(-1, d * d)).reshape(n, d, d)
    root = torch.linalg.cholesky(total)
    covariance = torch.cholesky_inverse(root)
    mean = (covariance @ (pull + z @ e.pull)[:, :, None])[..., 0]
    return Placed(mean, covariance + mean[:, :, None] * mean[:, None, :], root)


def densities(e: Expected, mean: Tensor, second: Tensor) -> Tensor:
    """(n, K) E log p(x | component) of items, from the first two moments of q(x)."""
    d2 = e.precision[0].numel()
    return e.offset + mean @ e.pull.T - 0.5 * second.reshape(-1, d2) @ e.precision.reshape(-1, d2).T


def first_guess(e: Expected, precision: Tensor, pull: Tensor) -> Tensor:
    """(n, K) q(z) from the potentials of the encoder alone."""
    mean = pull / precision
    second = torch.diag_embed(1 / precision) + mean[:, :, None] * mean[:, None, :]
    return torch.softmax(e.log_share + densities(e, mean, second), 1)


def sample_x(x: Placed) -> Tensor:
    """Draw one sample of every q(x), differentiable in its parameters."""
    noise = torch.randn_like(x.mean)[:, :, None]
    steps: Tensor = torch.linalg.solve_triangular(x.root.mT, noise, upper=True)
    return x.mean + steps[..., 0]


def local_bound(e: Expected, z: Tensor, x: Placed) -> Tensor:
    """(n,) terms of the bound of each item other than its likelihood: log p(z), log p(x | z) and entropies."""
    d = x.mean.shape[1]
    entropy = 0.5 * d * (1 + LOG_2PI) - x.root.diagonal(dim1=1, dim2=2).log().sum(1)
    logs = torch.log(z.clamp_min(1e-30))
    return (z * (e.log_share + densities(e, x.mean, x.second) - logs)).sum(1) + entropy


def item_statistics(z: Tensor, x: Placed, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Expected counts and moments of every component; items are weighted by `scale`."""
    d = x.mean.shape[1]
    zs = (z * scale[:, None]).double()
    second = (zs.T @ x.second.double().reshape(-1, d * d)).reshape(-1, d, d)
    return zs.sum(0), zs.T @ x.mean.double(), second


def worker_statistics(together: Tensor, same: Tensor, worker: Tensor, weight: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """(W, 2) expected right and wrong answers of every worker on pairs that are the same, and on pairs that differ."""
    cell = worker * 2 + (~same).long()
    equal = torch.bincount(cell, (together * weight).double(), 2 * n).reshape(n, 2)
    unequal = torch.bincount(cell, ((1 - together) * weight).double(), 2 * n).reshape(n, 2)
    return equal, unequal.flip(1)


def path_term(q: Expected, factor: float) -> Globals:
    """Second term of eq. (17): the gradient of the bound by the expectations `q` that determine q(z) and q(x).

    The bound is `factor` times the loss whose gradients the tensors of `q` hold. Natural parameters belong to log pi,
    Lambda mu, -Lambda / 2, -mu' Lambda mu / 2, log|Lambda| / 2, and the logarithms of sensitivity and specificity.
    """
    share, precision, pull, offset, same, different = (
        torch.zeros_like(t, dtype=torch.float64) if t.grad is None else factor * t.grad.double() for t in q
    )
    return Globals(share, pull, -(precision + precision.mT), offset, offset, same.flip(1), different)


def where_valid(new: Globals, old: Globals) -> Globals:
    """Return `new` for every component and worker whose parameters are those of a distribution, else `old`."""
    d = new.first.shape[1]
    positive = (new.counts > 1e-3) & (new.kappa > 1e-3) & (new.nu > d - 1 + 1e-3)
    m = new.first / new.kappa.clamp_min(1e-3)[:, None]
    S = new.second - new.kappa[:, None, None] * m[:, :, None] * m[:, None, :]
    least = torch.linalg.eigvalsh(0.5 * (S + S.mT))[:, 0]
    good = positive & (least > 1e-6)
    parts = [
        torch.where(good.reshape(-1, *[1] * (getattr(new, name).ndim - 1)), getattr(new, name), getattr(old, name))
        for name in ("counts", "first", "second", "kappa", "nu")
    ]
    workers = [
        torch.where((getattr(new, name) > 1e-3).all(1, keepdim=True), getattr(new, name), getattr(old, name))
        for name in ("alpha", "beta")
    ]
    return Globals(*parts, *workers)


def pack_globals(g: Globals) -> Space:
    """Pack posterior parameters into arrays."""
    return {f"posterior.{f.name}": getattr(g, f.name).numpy().copy() for f in fields(g)}


def unpack_globals(space: Space) -> Globals:
    """Rebuild posterior parameters from packed arrays."""
    return Globals(*(torch.as_tensor(space[f"posterior.{f.name}"]) for f in fields(Globals)))
