"""Semi-crowdsourced deep clustering with amortised inference: point estimates, summed over all components."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ...kernels.layout import Floats, Ints
from ..model import Answers
from .networks import (
    Climbed,
    Observation,
    Record,
    Scaling,
    Shape,
    Space,
    TwoHeads,
    build_networks,
    default_shape,
    fit_scaling,
    generated,
    log_likelihood,
    pack,
    pack_scaling,
    seeded,
    unpack_heads,
    unpack_scaling,
)
from .starts import partition

BELIEVED = 0.9
CHUNK = 500
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class ScdcSettings:
    """Sizes and rates of a start; None leaves the choice to the data."""

    components: int = 15
    latent: int | None = None
    hidden: tuple[int, ...] | None = None
    observation: Observation | None = None
    epochs: int = 600
    batch: int | None = None
    rate: float | None = None
    start: Literal["random", "pairs"] = "random"
    lead: int = 100
    scale: bool = True


class _Model(nn.Module):
    """Networks q(z | o), q(x | z, o), p(o | x) and point estimates of mixture and workers."""

    def __init__(self, o: Tensor, shape: Shape, kind: Observation, components: int, workers: int) -> None:
        super().__init__()
        self.kind = kind
        nets = build_networks(o, shape, kind)
        unit = nn.ReLU if kind == "bernoulli" else nn.Tanh
        self.encoder, self.decoder = nets.encoder, nets.decoder
        self.classifier = TwoHeads(torch.zeros(components, o.shape[1]), shape.hidden, unit, spread=False)
        width = shape.hidden[-1]
        self.tag = nn.Parameter(0.1 * torch.randn(components, width))
        self.share = nn.Parameter(torch.zeros(components))
        self.mean = nn.Parameter(1.5 * torch.randn(components, shape.latent))
        self.log_root = nn.Parameter(torch.zeros(components, shape.latent))
        self.low_root = nn.Parameter(torch.zeros(components, shape.latent, shape.latent))
        good = float(np.log(BELIEVED / (1 - BELIEVED)))
        self.alpha = nn.Parameter(torch.full((workers,), good))
        self.beta = nn.Parameter(torch.full((workers,), good))

    def log_z(self, o: Tensor) -> Tensor:
        """Log q(z | o)."""
        return torch.log_softmax(self.classifier(o)[0], 1)

    def place(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of q(x | z, o) for every item and component."""
        encoder = self.encoder
        last = encoder.trunk[-2]
        h = encoder.trunk[-1](last(encoder.trunk[:-2](o))[:, None] + self.tag)
        mean = functional.linear(o, encoder.linear)[:, None] + encoder.location(h)
        assert encoder.spread is not None
        return mean, 1 / (functional.softplus(encoder.spread(h)) + 1e-4)

    def root(self) -> Tensor:
        """Lower triangular roots of the precisions of the components."""
        return torch.diag_embed(self.log_root.clamp(-5, 5).exp()) + torch.tril(self.low_root, -1)

    def bounds(self, o: Tensor) -> Tensor:
        """The bound of every item without its answers, summed over components."""
        log_z = self.log_z(o)
        mean, variance = self.place(o)
        x = mean + variance.sqrt() * torch.randn_like(mean)
        root = self.root()
        gaps = torch.einsum("nki,kij->nkj", mean - self.mean, root)
        spread = torch.einsum("nki,ki->nk", variance, (root**2).sum(2))
        match = self.log_root.clamp(-5, 5).sum(1) - 0.5 * ((gaps**2).sum(2) + spread)
        entropy = 0.5 * (1 + variance.log()).sum(2)
        seen = log_likelihood(self.decoder, self.kind, o[:, None], x)
        return (log_z.exp() * (torch.log_softmax(self.share, 0) + match + entropy + seen - log_z)).sum(1)


class _Told:
    """Answers as tensors."""

    def __init__(self, answers: Answers) -> None:
        self.left, self.right, self.worker = (
            torch.as_tensor(np.asarray(a, dtype=np.int64)) for a in (answers.left, answers.right, answers.worker)
        )
        self.sign = torch.as_tensor(np.where(answers.same, 1.0, -1.0), dtype=torch.float32)
        self.weight = torch.as_tensor(np.asarray(answers.weight, dtype=np.float32))

    def bound(self, model: _Model, z_left: Tensor, z_right: Tensor, at: Tensor) -> Tensor:
        """Expected log-likelihood of some answers."""
        together = (z_left * z_right).sum(1)
        sign, worker = self.sign[at], self.worker[at]
        equal = functional.logsigmoid(sign * model.alpha[worker])
        unequal = functional.logsigmoid(-sign * model.beta[worker])
        return (self.weight[at] * (together * equal + (1 - together) * unequal)).sum()

    def pseudo_counts(self, model: _Model, z: Tensor) -> tuple[Floats, Floats]:
        """Beta parameters of every worker: the point estimates, with the expected numbers of pairs behind them."""
        together = (z[self.left] * z[self.right]).sum(1)
        found = []
        for estimate, expected in ((model.alpha, together), (model.beta, 1 - together)):
            number = torch.bincount(self.worker, (expected * self.weight).double(), len(estimate))
            right = torch.sigmoid(estimate.detach()).double()
            found.append((1 + torch.stack([right * number, (1 - right) * number], 1)).numpy())
        return found[0], found[1]


def _whole(model: _Model, o: Tensor, told: _Told) -> Tensor:
    """The bound per item of all items and answers."""
    z, everything = model.log_z(o).exp(), torch.arange(len(told.left))
    related = told.bound(model, z[told.left], z[told.right], everything)
    return (model.bounds(o).sum() + related) / len(o)


def _part(model: _Model, o: Tensor, told: _Told, rows: Tensor, pairs: int) -> Tensor:
    """The bound per item estimated from some items and as many answers as asked for."""
    total = model.bounds(o[rows]).mean()
    if not len(told.left):
        return total
    at = torch.randint(len(told.left), (pairs,))
    z_left, z_right = model.log_z(torch.cat([o[told.left[at]], o[told.right[at]]])).exp().chunk(2)
    return total + told.bound(model, z_left, z_right, at) * (len(told.left) / pairs / len(o))


def _start_from_pairs(model: _Model, o: Tensor, answers: Answers, s: ScdcSettings, rng: np.random.Generator) -> None:
    """Let the components begin at joined micro-clusters of the latent means, and teach q(z | o) to tell them."""
    with torch.no_grad():
        points = _points(model, o)
    labels = partition(points, answers, s.components, rng)
    _set_mixture(model, points, labels)
    target = torch.as_tensor(labels)
    teacher = torch.optim.Adam(model.classifier.parameters(), s.rate or 3e-3)
    for _ in range(s.lead):
        for rows in torch.split(torch.randperm(len(o)), s.batch or len(o)):
            loss = functional.cross_entropy(model.classifier(o[rows])[0], target[rows])
            teacher.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            teacher.step()


def _points(model: _Model, o: Tensor) -> Floats:
    """Latent means, averaged over components, of all items."""
    return torch.cat([model.place(part)[0].mean(1) for part in torch.split(o, CHUNK)]).double().numpy()


def _set_mixture(model: _Model, points: Floats, labels: Ints) -> None:
    """Shares, means and precisions of the components from a partition."""
    d = points.shape[1]
    with torch.no_grad():
        for k in range(len(model.share)):
            mine = points[labels == k]
            model.share[k] = float(np.log(len(mine) + 0.5))
            if len(mine):
                spread = ((mine - mine.mean(0)).T @ (mine - mine.mean(0)) + 0.1 * np.eye(d)) / (len(mine) + 1)
                root = np.linalg.cholesky(np.linalg.inv(spread))
                model.mean[k] = torch.as_tensor(mine.mean(0))
                model.log_root[k] = torch.as_tensor(np.log(np.diag(root)))
                model.low_root[k] = torch.as_tensor(np.tril(root, -1))


def scdc(
    X: Floats,
    answers: Answers,
    settings: ScdcSettings,
    rng: np.random.Generator,
    watch: Callable[[int, float, int], None],
    stop: Callable[[], bool],
) -> Climbed:
    """Fit from one start; `watch` hears of every epoch, and KeyboardInterrupt is raised once `stop` says so."""
    with seeded(rng):
        scaling = fit_scaling(X, settings.observation, settings.scale)
        o, told = scaling.apply(X), _Told(answers)
        shape = default_shape(X.shape[1], settings.latent, settings.hidden, scaling.observation)
        model = _Model(o, shape, scaling.observation, settings.components, answers.n_workers)
        small = settings.batch is not None and settings.batch < len(o)
        rate = settings.rate or (1e-3 if small else 3e-3)
        if settings.start == "pairs":
            _start_from_pairs(model, o, answers, settings, rng)
        optimiser = torch.optim.Adam(model.parameters(), rate)
        record = Record(settings.epochs, len(o), watch)
        for _ in range(settings.epochs):
            bound = _epoch(model, optimiser, o, told, settings.batch, stop)
            record.add(bound, torch.softmax(model.share.detach(), 0))
        return _finished(model, scaling, o, told, record)


def _epoch(
    model: _Model, optimiser: torch.optim.Optimizer, o: Tensor, told: _Told, size: int | None, stop: Callable[[], bool]
) -> float:
    """One pass over the items; returns the mean bound per item."""
    total = 0.0
    for rows in torch.split(torch.randperm(len(o)), size or len(o)):
        bound = _whole(model, o, told) if len(rows) == len(o) else _part(model, o, told, rows, len(rows))
        optimiser.zero_grad()
        (-bound).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        total += float(bound.detach()) * len(rows) / len(o)
        if stop():
            raise KeyboardInterrupt
    return total


def _finished(model: _Model, scaling: Scaling, o: Tensor, told: _Told, record: Record) -> Climbed:
    """Place all items, tell the last bound with less noise, and pack."""
    with torch.no_grad():
        z = torch.cat([model.log_z(part).exp() for part in torch.split(o, CHUNK)])
        latent = torch.cat(
            [(model.place(p)[0] * model.log_z(p).exp()[:, :, None]).sum(1) for p in torch.split(o, CHUNK)]
        )
        related = float(told.bound(model, z[told.left], z[told.right], torch.arange(len(told.left))))
        draws = [float(model.bounds(part).double().sum()) for _ in range(3) for part in torch.split(o, CHUNK)]
        record.bound[-1] = (sum(draws) / 3 + related) / len(o)
        alpha, beta = told.pseudo_counts(model, z)
        return Climbed(
            z.double().numpy(),
            latent.double().numpy(),
            alpha,
            beta,
            record.bound,
            record.shares(),
            record.epochs,
            pack_scaling(scaling) | pack(model, "model"),
        )


def assign(space: Space, X: Floats) -> Floats:
    """Posterior of the component of new items, from features alone."""
    scaling = unpack_scaling(space)
    classifier = unpack_heads(space, "model.classifier", scaling.observation)
    with torch.no_grad():
        parts = [torch.softmax(classifier(part)[0], 1) for part in torch.split(scaling.apply(X), CHUNK)]
        return torch.cat(parts).double().numpy()


def draw(space: Space, count: int, rng: np.random.Generator) -> Floats:
    """Generated observations of every component in the units of the features; probabilities where Bernoulli."""
    scaling = unpack_scaling(space)
    decoder = unpack_heads(space, "model.decoder", scaling.observation)
    mean, diagonal, low = (torch.as_tensor(space[f"model.{name}"]) for name in ("mean", "log_root", "low_root"))
    with seeded(rng), torch.no_grad():
        root = torch.diag_embed(diagonal.clamp(-5, 5).exp()) + torch.tril(low, -1)
        noise = torch.randn(len(mean), mean.shape[1], count)
        x = mean[:, None] + torch.linalg.solve_triangular(root.mT, noise, upper=True).mT
        return scaling.undo(generated(decoder, scaling.observation, x))
