"""Semi-crowdsourced deep clustering, fully Bayesian: natural gradients, message passing and amortised networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ...engine import Run, Step, Trace, iterate
from ...engine.run import Arrays
from ...kernels.layout import Floats
from ..model import Found, PairAnswers, new_trace
from . import networks, posteriors
from .networks import Networks, Scaling, Space
from .posteriors import Expected, Globals, Placed
from .relations import Batch, Relations
from .starts import default_start, partition
from .training import Learner, MixtureTraining, Training

if TYPE_CHECKING:
    from ..scdc import BayesScdc

CHUNK = 2000
DRAWS = 5
PASSES = 5  # of messages in a step
WARM_UP, ANEW = 20, 4  # of raw images: epochs before the mixture, and times that it is started from pairs again
NARROW = 0.02
SHARP = 10.0


class _Model:
    """Everything that changes while a start is fitted."""

    def __init__(self, o: Tensor, nets: Networks, relations: Relations, settings: BayesScdc) -> None:
        self.o, self.nets, self.relations, self.settings = o, nets, relations, settings
        components = settings.parts or 1
        self.items, latent = len(o), nets.encoder.linear.shape[0]
        width = settings.width or (NARROW if settings.scale and nets.observation == "gaussian" else 1.0)
        self.prior = posteriors.prior(components, latent, relations.n_workers, width)
        self.now = posteriors.scattered(components, latent, relations.n_workers, width)
        self.table = torch.full((self.items, components), 1 / components)
        small = settings.batch is not None and settings.batch < self.items
        self.step, self.epochs = settings.step or (0.02 if small else 0.1), settings.epochs or 0
        self.optimiser = torch.optim.Adam(nets.parameters(), settings.rate or (1e-3 if small else 3e-3))

    def messages(self, e: Expected, batch: Batch) -> Tensor:
        """What the answers say about the component of every item of the batch, last term of eq. (14)."""
        sent = torch.zeros(len(batch.items), self.table.shape[1])
        if len(batch.row):
            sent.index_add_(0, batch.row, self.odds(e, batch)[:, None] * self.table[batch.other])
        return sent

    def odds(self, e: Expected, batch: Batch) -> Tensor:
        """Weighted expected log-odds of equal against different of every answer of the batch."""
        same = batch.same.long()
        return batch.weight * (e.same[batch.worker, same] - e.different[batch.worker, same])

    def settle(self, e: Expected, precision: Tensor, pull: Tensor, batch: Batch, times: int = 1) -> Tensor:
        """Alternate eqs. (12) and (14) from the potentials on, with damping; keeps and gives q(z)."""
        z = posteriors.first_guess(e, precision, pull)
        self.table[batch.items] = z
        for _ in range(times * PASSES):
            x = posteriors.place(e, precision, pull, z)
            logits = e.log_share + posteriors.densities(e, x.mean, x.second) + self.messages(e, batch)
            z = 0.5 * (z + torch.softmax(logits, 1))
            self.table[batch.items] = z
        return z

    def improve(self, batch: Batch) -> float:
        """One step of networks and of global posteriors; returns the bound per item."""
        e = posteriors.expected(self.now)
        precision, pull = self.nets.potential(self.o[batch.items])
        with torch.no_grad():
            z = self.settle(e, precision, pull, batch)
            sent = self.messages(e, batch)
        x = posteriors.place(e, precision, pull, z)
        z = torch.softmax(e.log_share + posteriors.densities(e, x.mean, x.second) + sent, 1)
        x = posteriors.place(e, precision, pull, z)
        likelihood = self.nets.likelihood(self.o[batch.items], posteriors.drawn(x))
        local = (batch.scale * (likelihood + posteriors.local_bound(e, z, x))).sum()
        loss = -(local + (batch.scale[:, None] * sent * z).sum()) / self.items
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        with torch.no_grad():
            z = z.detach()
            self.table[batch.items] = z
            bound = float(local.detach()) + self.related(e, z, batch)
            bound -= posteriors.divergence(self.now, self.prior)
            self.follow(z, Placed(*(t.detach() for t in x)), batch)
        return bound / self.items

    def related(self, e: Expected, z: Tensor, batch: Batch) -> float:
        """Expected log-likelihood of the answers."""
        same = batch.same.long()
        together = (z[batch.row] * self.table[batch.other]).sum(1)
        flat = batch.weight * e.different[batch.worker, same]
        return float((batch.share * (self.odds(e, batch) * together + flat)).sum())

    def follow(self, z: Tensor, x: Placed, batch: Batch, step: float | None = None) -> None:
        """Natural-gradient step of the global posteriors, first term of eq. (17)."""
        p, rho = self.prior, self.step if step is None else step
        count, first, second = posteriors.item_statistics(z, x, batch.scale)
        together = (z[batch.row] * self.table[batch.other]).sum(1)
        weight = batch.weight * batch.share
        equal, unequal = posteriors.worker_statistics(together, batch.same, batch.worker, weight, len(p.alpha))
        target = Globals(
            p.counts + count, p.first + first, p.second + second, p.kappa + count, p.nu + count, p.alpha + equal,
            p.beta + unequal,
        )  # fmt: skip
        self.now = self.now.plus(target, 1 - rho, rho)

    def potentials(self) -> tuple[Tensor, Tensor]:
        """Potentials of all items."""
        parts = [self.nets.potential(o) for o in torch.split(self.o, CHUNK)]
        return torch.cat([p for p, _ in parts]), torch.cat([h for _, h in parts])


class _WarmUp(Training):
    """The networks as a variational autoencoder with a standard normal prior."""

    def __init__(self, model: _Model, epochs: int, rng: np.random.Generator, run: Run) -> None:
        super().__init__("bayes-scdc", epochs, Learner(model.nets, model.optimiser, rng), run)
        self.model = model

    def epoch(self) -> Step:
        model, total = self.model, 0.0
        for rows in self.each(torch.split(torch.randperm(model.items), model.settings.batch or model.items)):
            o = model.o[rows]
            precision, pull = model.nets.potential(o)
            sharp = precision + 1
            mean = pull / sharp
            x = mean + torch.randn_like(mean) / sharp.sqrt()
            gap = 0.5 * (mean**2 + 1 / sharp - 1 + sharp.log()).sum(1)
            loss = (gap - model.nets.likelihood(o, x)).mean()
            self.learner.descend(loss)
            total -= float(loss.detach()) * len(rows) / model.items
        return Step(total, {})


class _Epochs(MixtureTraining):
    """Networks by gradients and global posteriors by natural gradients; at some epochs the mixture is started anew."""

    def __init__(self, model: _Model, answers: PairAnswers, anew: set[int], rng: np.random.Generator, run: Run) -> None:
        learner = Learner(model.nets, model.optimiser, rng)
        super().__init__("bayes-scdc", model.epochs, learner, run, model.items)
        self.model, self.answers, self.anew = model, answers, anew

    def epoch(self) -> Step:
        model, s = self.model, self.model.settings
        if self.done in self.anew:
            _start_from_pairs(model, self.answers, self.learner.rng)
        bounds = [model.improve(batch) for batch in self.each(model.relations.batches(s.batch, s.relations))]
        return self.recorded(float(np.mean(bounds)), model.now.counts / model.now.counts.sum())

    def state(self) -> Arrays:
        return super().state() | posteriors.pack_globals(self.model.now) | {"table": self.model.table.numpy()}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.model.now, self.model.table = posteriors.unpack_globals(state), torch.tensor(state["table"])


def _start_from_pairs(model: _Model, answers: PairAnswers, rng: np.random.Generator) -> None:
    """Let the components begin at joined micro-clusters of the latent means."""
    components = model.table.shape[1]
    with torch.no_grad():
        precision, pull = model.potentials()
        mean = pull / precision
        points = mean.double().numpy()
        labels = partition(points, answers, components, rng)
        z = torch.nn.functional.one_hot(torch.as_tensor(labels), components).float()
        model.table = z.clone()
        second = torch.diag_embed(1 / precision) + mean[:, :, None] * mean[:, None, :]
        whole = model.relations.everything()
        workers = model.now.alpha, model.now.beta
        model.follow(z, Placed(mean, second, second), whole, step=1.0)
        model.now.alpha, model.now.beta = workers


def _sharpen(model: _Model) -> None:
    """Let untrained potentials be narrow, so that the clusters of a start are not blurred into one."""
    assert model.nets.encoder.spread is not None
    with torch.no_grad():
        model.nets.encoder.spread.bias.add_(SHARP)


def _times(epochs: int, count: int) -> set[int]:
    """Epochs at which the mixture is started from pairs: the first, and some spread over the first half."""
    return {0, *(round(epochs * share) for share in np.linspace(0.1, 0.5, count))}


def bayes_scdc(X: Floats, answers: PairAnswers, settings: BayesScdc, rng: np.random.Generator, run: Run) -> Found:
    """Fit from one start."""
    with networks.seeded(rng):
        scaling, o, shape = networks.prepared(X, settings)
        nets = networks.build_networks(o, shape, scaling.observation)
        model = _Model(o, nets, Relations(answers, len(X)), settings)
        raw = scaling.observation == "bernoulli"
        by_pairs = (settings.start or default_start(answers, len(X), raw)) == "pairs"
        if not run.journal.resumes("epoch"):
            iterate(_WarmUp(model, WARM_UP * raw, rng, run), run, Trace(), "warm-up")
            if by_pairs and not raw:
                _sharpen(model)
        times = _times(model.epochs, ANEW * (raw and len(answers.left) > 0)) if by_pairs else set()
        training, trace = _Epochs(model, answers, times, rng, run), new_trace()
        iterate(training, run, trace, "epoch")
        return _finished(training, scaling, trace)


def _finished(training: _Epochs, scaling: Scaling, trace: Trace) -> Found:
    """Settle all items at once, estimate the last bound with less noise, and pack."""
    model = training.model
    with torch.no_grad():
        e, whole = posteriors.expected(model.now), model.relations.everything()
        precision, pull = model.potentials()
        z = model.settle(e, precision, pull, whole, times=4)
        x = posteriors.place(e, precision, pull, z)
        seen = torch.zeros(model.items)
        for rows in torch.split(torch.arange(model.items), CHUNK):
            part = Placed(*(t[rows] for t in x))
            draws = [model.nets.likelihood(model.o[rows], posteriors.drawn(part)) for _ in range(DRAWS)]
            seen[rows] = torch.stack(draws).mean(0)
        total = float((seen + posteriors.local_bound(e, z, x)).double().sum()) + model.related(e, z, whole)
        bound = (total - posteriors.divergence(model.now, model.prior)) / model.items
        space = networks.pack_scaling(scaling) | posteriors.pack_globals(model.now)
        space |= networks.pack(model.nets.encoder, "encoder") | networks.pack(model.nets.decoder, "decoder")
        alpha, beta = model.now.alpha.numpy().copy(), model.now.beta.numpy().copy()
        return training.found(z.double().numpy(), alpha, beta, trace, bound, x.mean.double().numpy(), space)


def _unpacked(space: Space) -> tuple[Networks, Scaling, Globals]:
    """Networks, scaling and posteriors from packed arrays."""
    scaling = networks.unpack_scaling(space)
    encoder, decoder = (networks.unpack_heads(space, name, scaling.observation) for name in ("encoder", "decoder"))
    return Networks(encoder, decoder, scaling.observation), scaling, posteriors.unpack_globals(space)


def assign(space: Space, X: Floats, passes: int = 5) -> Floats:
    """Posterior of the component of new items, from features alone."""
    nets, scaling, g = _unpacked(space)
    e = posteriors.expected(g)
    parts = []
    with torch.no_grad():
        for o in torch.split(scaling.apply(X), CHUNK):
            precision, pull = nets.potential(o)
            z = posteriors.first_guess(e, precision, pull)
            for _ in range(passes):
                x = posteriors.place(e, precision, pull, z)
                z = 0.5 * (z + torch.softmax(e.log_share + posteriors.densities(e, x.mean, x.second), 1))
            parts.append(z)
    return torch.cat(parts).double().numpy()


def draw(space: Space, count: int, rng: np.random.Generator) -> Floats:
    """Generated observations of every component in the units of the features; probabilities where Bernoulli."""
    nets, scaling, g = _unpacked(space)
    m, S = g.centre()
    with networks.seeded(rng), torch.no_grad():
        root = torch.linalg.cholesky(S / g.nu[:, None, None])
        noise = torch.randn(len(m), count, m.shape[1], dtype=torch.float64)
        x = m[:, None] + noise @ root.mT
        return scaling.undo(networks.generated(nets.decoder, scaling.observation, x.float()))
