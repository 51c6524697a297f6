"""Bayesian semi-crowdsourced deep clustering: natural gradients, message passing and amortised networks.

Equation numbers are those of the paper; see docs/maths/scdc.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...engine import Run, Step, Trace, iterate
from ...engine.run import Arrays, packed
from ...kernels.layout import Floats
from ..model import FeatureFit, PairAnswers, new_trace
from . import networks, posteriors
from .merging import merge_components
from .networks import Networks, Scaling, Space
from .posteriors import Expected, Globals, Placed
from .relations import Batch, Relations
from .starts import default_start, partition
from .training import Learner, MixtureTraining, Training

if TYPE_CHECKING:
    from ..scdc import BayesScdc

DRAWN_EPOCHS = 6  # after which the centres of images are decoded
CHUNK_ITEMS = 2000  # items that pass through the networks at a time
BOUND_DRAWS = 5  # samples of each item for the final estimate of the bound
MESSAGE_PASSES = 5  # rounds of message passing in a step
WARM_UP_EPOCHS = 20  # raw images: epochs before the mixture is trained
PAIR_RESTARTS = 4  # raw images: times that the mixture is initialised from pairs again
MERGE_FROM = 0.5  # share of the epochs before components are merged; earlier ones are far from their optimum
SHARP_BIAS = 10.0  # added to the spread head of the encoder


class _Model:
    """Networks, global posteriors and the table of q(z), which change during the fit of one restart."""

    def __init__(self, o: Tensor, nets: Networks, relations: Relations, settings: BayesScdc) -> None:
        self.o, self.nets, self.relations, self.settings = o, nets, relations, settings
        components = settings.parts or 1
        self.items, latent = len(o), nets.encoder.linear.shape[0]
        width = settings.width or 1.0
        self.prior = posteriors.prior(components, latent, relations.n_workers, width)
        self.now = posteriors.random_start(components, latent, relations.n_workers, width)
        self.table = torch.full((self.items, components), 1 / components)
        small = settings.batch is not None and settings.batch < self.items
        self.step, self.epochs = settings.step or (0.02 if small else 0.1), settings.epochs or 0
        self.optimiser = torch.optim.Adam(nets.parameters(), settings.rate or (1e-3 if small else 3e-3))

    def messages(self, e: Expected, batch: Batch) -> Tensor:
        """(B, K) messages of the answers to the component of every item of the batch, last term of eq. (14)."""
        total = torch.zeros(len(batch.items), self.table.shape[1])
        if len(batch.row):
            total.index_add_(0, batch.row, self.odds(e, batch)[:, None] * self.table[batch.other])
        return total

    def odds(self, e: Expected, batch: Batch) -> Tensor:
        """(E,) weighted expected log-odds of same against different, for every answer of the batch."""
        same = batch.same.long()
        return batch.weight * (e.same[batch.worker, same] - e.different[batch.worker, same])

    def pass_messages(self, e: Expected, precision: Tensor, pull: Tensor, batch: Batch, times: int = 1) -> Tensor:
        """Alternate eqs. (12) and (14) with damping, starting from the potentials; store and return q(z)."""
        z = posteriors.first_guess(e, precision, pull)
        self.table[batch.items] = z
        for _ in range(times * MESSAGE_PASSES):
            x = posteriors.place(e, precision, pull, z)
            logits = e.log_share + posteriors.densities(e, x.mean, x.second) + self.messages(e, batch)
            z = 0.5 * (z + torch.softmax(logits, 1))
            self.table[batch.items] = z
        return z

    def improve(self, batch: Batch) -> float:
        """Make one step of the networks and of the global posteriors; return the bound per item."""
        e = posteriors.expected(self.now)
        precision, pull = self.nets.potential(self.o[batch.items])
        with torch.no_grad():
            z = self.pass_messages(e, precision, pull, batch)
            messages = self.messages(e, batch)
        q = Expected(*(t.clone().requires_grad_() for t in e)) if self.settings.second_term else e
        x = posteriors.place(q, precision, pull, z)
        related = self.messages(q, batch) if self.settings.second_term else messages
        z = torch.softmax(q.log_share + posteriors.densities(q, x.mean, x.second) + related, 1)
        x = posteriors.place(q, precision, pull, z)
        likelihood = self.nets.likelihood(self.o[batch.items], posteriors.sample_x(x))
        local = (batch.scale * (likelihood + posteriors.local_bound(e, z, x))).sum()
        loss = -(local + (batch.scale[:, None] * messages * z).sum()) / self.items
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        with torch.no_grad():
            z = z.detach()
            self.table[batch.items] = z
            bound = float(local.detach()) + self.answer_bound(e, z, batch)
            bound -= posteriors.divergence(self.now, self.prior)
            path = posteriors.path_term(q, -float(self.items)) if self.settings.second_term else None
            self.update_globals(z, Placed(*(t.detach() for t in x)), batch, path=path)
        return bound / self.items

    def answer_bound(self, e: Expected, z: Tensor, batch: Batch) -> float:
        """Expected log-likelihood of the answers."""
        same = batch.same.long()
        together = (z[batch.row] * self.table[batch.other]).sum(1)
        flat = batch.weight * e.different[batch.worker, same]
        return float((batch.share * (self.odds(e, batch) * together + flat)).sum())

    def update_globals(
        self, z: Tensor, x: Placed, batch: Batch, step: float | None = None, path: Globals | None = None
    ) -> None:
        """Make a natural-gradient step of the global posteriors, first term of eq. (17), and its second term `path`."""
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
        if path is not None:
            self.now = posteriors.where_valid(self.now.plus(path, 1.0, rho), self.now)

    def merge(self) -> None:
        """Merge components, if that raises the bound."""
        whole, related = self.relations.full_batch(), torch.zeros(self.table.shape[1], self.table.shape[1])
        if len(whole.row):
            related = self.table.T @ self.messages(posteriors.expected(self.now), whole)
        self.now, self.table, _ = merge_components(self.now, self.prior, self.table, related)

    def potentials(self) -> tuple[Tensor, Tensor]:
        """Compute the potentials of all items."""
        parts = [self.nets.potential(o) for o in torch.split(self.o, CHUNK_ITEMS)]
        return torch.cat([p for p, _ in parts]), torch.cat([h for _, h in parts])


class _WarmUp(Training):
    """Training of the networks as a variational autoencoder with a standard normal prior."""

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
    """Training of networks by gradients and of global posteriors by natural gradients.

    Before each epoch in `restart_epochs`, the mixture is initialised from the pairs.
    """

    def __init__(
        self,
        model: _Model,
        answers: PairAnswers,
        restart_epochs: set[int],
        first: int,
        rng: np.random.Generator,
        run: Run,
    ) -> None:
        learner = Learner(model.nets, model.optimiser, rng)
        super().__init__("bayes-scdc", model.epochs, learner, run, model.items)
        self.model, self.answers, self.restart_epochs, self.first = model, answers, restart_epochs, first
        self.drawn = np.unique(np.linspace(1, model.epochs, min(model.epochs, DRAWN_EPOCHS)).round().astype(np.int64))
        self.frames: list[NDArray[np.uint8]] = []  # decoded centres after these epochs

    def epoch(self) -> Step:
        model, s = self.model, self.model.settings
        if self.done in self.restart_epochs:
            _start_from_pairs(model, self.answers, self.first, self.learner.rng)
        bounds = [model.improve(batch) for batch in self.each(model.relations.batches(s.batch, s.relations))]
        if s.merge and self.done >= MERGE_FROM * model.epochs:
            model.merge()
        step = self.record(float(np.mean(bounds)), model.now.counts / model.now.counts.sum())
        if model.nets.observation == "bernoulli" and self.done in self.drawn:
            with torch.no_grad():
                centres = networks.generate(model.nets.decoder, "bernoulli", model.now.centre()[0].float())
            self.frames.append((255 * centres).round().byte().numpy())
        return step

    def state(self) -> Arrays:
        own = {"table": self.model.table.numpy()} | packed({"frames": self.frames})
        return super().state() | posteriors.pack_globals(self.model.now) | own

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.model.now, self.model.table = posteriors.unpack_globals(state), torch.tensor(state["table"])
        self.frames = list(state["frames"])

    def history(self) -> Space:
        """Epochs (E,) and decoded centres (E, K, D), as bytes, of images during training."""
        return {"history.epochs": self.drawn, "history.centres": np.stack(self.frames)} if self.frames else {}


def _start_from_pairs(model: _Model, answers: PairAnswers, most: int, rng: np.random.Generator) -> None:
    """Initialise the components at `most` micro-clusters of the latent means or fewer, joined by the answers."""
    components = model.table.shape[1]
    with torch.no_grad():
        precision, pull = model.potentials()
        mean = pull / precision
        points = mean.double().numpy()
        labels = partition(points, answers, most, rng)
        z = torch.nn.functional.one_hot(torch.as_tensor(labels), components).float()
        model.table = z.clone()
        second = torch.diag_embed(1 / precision) + mean[:, :, None] * mean[:, None, :]
        whole = model.relations.full_batch()
        workers = model.now.alpha, model.now.beta
        model.update_globals(z, Placed(mean, second, second), whole, step=1.0)
        model.now.alpha, model.now.beta = workers


def _sharpen(model: _Model) -> None:
    """Make untrained potentials narrow, so that the initial clusters do not merge into one."""
    assert model.nets.encoder.spread is not None
    with torch.no_grad():
        model.nets.encoder.spread.bias.add_(SHARP_BIAS)


def _restart_epochs(epochs: int, count: int) -> set[int]:
    """Epochs at which the mixture is initialised from pairs: the first, and `count` more in the first half."""
    return {0, *(round(epochs * share) for share in np.linspace(0.1, 0.5, count))}


def bayes_scdc(
    X: Floats,
    answers: PairAnswers,
    settings: BayesScdc,
    rng: np.random.Generator,
    run: Run,
    first: int | None = None,
) -> FeatureFit:
    """Fit one restart; `first` is the number of clusters that a start from pairs has at most, by default `parts`."""
    with networks.seeded(rng):
        scaling, o, shape = networks.prepare(X, settings)
        nets = networks.build_networks(o, shape, scaling.observation)
        model = _Model(o, nets, Relations(answers, len(X)), settings)
        raw = scaling.observation == "bernoulli"
        by_pairs = (settings.start or default_start(answers, len(X), raw)) == "pairs"
        if not run.journal.resumes("epoch"):
            iterate(_WarmUp(model, WARM_UP_EPOCHS * raw, rng, run), run, Trace(), "warm-up")
            if by_pairs and not raw:
                _sharpen(model)
        times = _restart_epochs(model.epochs, PAIR_RESTARTS * (raw and len(answers.left) > 0)) if by_pairs else set()
        training, trace = _Epochs(model, answers, times, first or settings.parts or 1, rng, run), new_trace()
        iterate(training, run, trace, "epoch")
        return _finish(training, scaling, trace)


def _finish(training: _Epochs, scaling: Scaling, trace: Trace) -> FeatureFit:
    """Compute q(z) of all items, estimate the final bound with less noise, and return the fit."""
    model = training.model
    with torch.no_grad():
        e, whole = posteriors.expected(model.now), model.relations.full_batch()
        precision, pull = model.potentials()
        z = model.pass_messages(e, precision, pull, whole, times=4)
        x = posteriors.place(e, precision, pull, z)
        likelihood = torch.zeros(model.items)
        for rows in torch.split(torch.arange(model.items), CHUNK_ITEMS):
            part = Placed(*(t[rows] for t in x))
            draws = [model.nets.likelihood(model.o[rows], posteriors.sample_x(part)) for _ in range(BOUND_DRAWS)]
            likelihood[rows] = torch.stack(draws).mean(0)
        total = float((likelihood + posteriors.local_bound(e, z, x)).double().sum()) + model.answer_bound(e, z, whole)
        bound = (total - posteriors.divergence(model.now, model.prior)) / model.items
        space = networks.pack_scaling(scaling, model.settings.image) | posteriors.pack_globals(model.now)
        space |= networks.pack(model.nets.encoder, "encoder") | networks.pack(model.nets.decoder, "decoder")
        space |= training.history()
        alpha, beta = model.now.alpha.numpy().copy(), model.now.beta.numpy().copy()
        return training.found(z.double().numpy(), alpha, beta, trace, bound, x.mean.double().numpy(), space)


def _unpacked(space: Space) -> tuple[Networks, Scaling, Globals]:
    """Rebuild networks, scaling and posteriors from packed arrays."""
    scaling = networks.unpack_scaling(space)
    encoder, decoder = (networks.unpack_heads(space, name, scaling.observation) for name in ("encoder", "decoder"))
    return Networks(encoder, decoder, scaling.observation), scaling, posteriors.unpack_globals(space)


def assign(space: Space, X: Floats, passes: int = 5) -> Floats:
    """(n, K) posterior of the component of new items, from features alone."""
    nets, scaling, g = _unpacked(space)
    e = posteriors.expected(g)
    parts = []
    with torch.no_grad():
        for o in torch.split(scaling.apply(X), CHUNK_ITEMS):
            precision, pull = nets.potential(o)
            z = posteriors.first_guess(e, precision, pull)
            for _ in range(passes):
                x = posteriors.place(e, precision, pull, z)
                z = 0.5 * (z + torch.softmax(e.log_share + posteriors.densities(e, x.mean, x.second), 1))
            parts.append(z)
    return torch.cat(parts).double().numpy()


def draw(space: Space, count: int, rng: np.random.Generator) -> Floats:
    """(K, count, D) simulated observations of every component, in units of the features; probabilities if Bernoulli."""
    nets, scaling, g = _unpacked(space)
    m, S = g.centre()
    with networks.seeded(rng), torch.no_grad():
        root = torch.linalg.cholesky(S / g.nu[:, None, None])
        noise = torch.randn(len(m), count, m.shape[1], dtype=torch.float64)
        x = m[:, None] + noise @ root.mT
        return scaling.undo(networks.generate(nets.decoder, scaling.observation, x.float()))
