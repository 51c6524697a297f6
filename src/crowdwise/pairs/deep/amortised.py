"""Semi-crowdsourced deep clustering with amortised inference and point estimates; z is summed out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ...engine import Run, Step, Trace, iterate
from ...engine.run import Arrays
from ...kernels.layout import Floats, Ints
from ..model import FeatureFit, PairAnswers, new_trace
from . import networks
from .networks import Observation, Scaling, Shape, Space, TwoHeads
from .starts import START_ACCURACY, partition
from .training import Learner, MixtureTraining, Training

if TYPE_CHECKING:
    from ..scdc import Scdc

START_EPOCHS = 100  # epochs in which q(z | o) learns the initial clusters
CHUNK_ITEMS = 500  # items that pass through the networks at a time
MAX_EXACT_COMPONENTS = 20  # up to this many components, every item passes through the networks with all of them
EXACT_SHARE = 0.2  # with more, a component with a smaller q(z | o) is left out at random, as often as it is smaller


class _Model(nn.Module):
    """Networks q(z | o), q(x | z, o) and p(o | x), and point estimates of the mixture and the workers."""

    def __init__(self, o: Tensor, shape: Shape, kind: Observation, components: int, workers: int) -> None:
        super().__init__()
        self.kind = kind
        nets = networks.build_networks(o, shape, kind)
        unit = nn.ReLU if kind == "bernoulli" else nn.Tanh
        self.encoder, self.decoder = nets.encoder, nets.decoder
        zero = torch.zeros(components, o.shape[1])
        self.classifier = TwoHeads(zero, shape.hidden, unit, spread=False, image=shape.image)
        width = shape.hidden[-1]
        self.tag = nn.Parameter(0.1 * torch.randn(components, width))
        self.share = nn.Parameter(torch.zeros(components))
        self.mean = nn.Parameter(1.5 * torch.randn(components, shape.latent))
        self.log_root = nn.Parameter(torch.zeros(components, shape.latent))
        self.low_root = nn.Parameter(torch.zeros(components, shape.latent, shape.latent))
        start = float(np.log(START_ACCURACY / (1 - START_ACCURACY)))
        self.alpha = nn.Parameter(torch.full((workers,), start))
        self.beta = nn.Parameter(torch.full((workers,), start))

    def log_z(self, o: Tensor) -> Tensor:
        """(n, K) log q(z | o)."""
        return torch.log_softmax(self.classifier(o)[0], 1)

    def place(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """(n, K, d) mean and variance of q(x | z, o) for every item and component."""
        row, k = (each.ravel() for each in torch.meshgrid(*map(torch.arange, (len(o), len(self.tag))), indexing="ij"))
        mean, variance = self.place_pairs(o, row, k)
        return tuple(each.reshape(len(o), len(self.tag), -1) for each in (mean, variance))  # type: ignore[return-value]

    def place_pairs(self, o: Tensor, row: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """(m, d) mean and variance of q(x | z, o), for pairs of a row of `o` and a component."""
        encoder = self.encoder
        inner, linear = encoder.trunk[-2](encoder.trunk[:-2](o)), functional.linear(o, encoder.linear)
        h = encoder.trunk[-1](inner[row] + self.tag[k])
        assert encoder.spread is not None
        return linear[row] + encoder.location(h), 1 / (functional.softplus(encoder.spread(h)) + 1e-4)

    def root(self) -> Tensor:
        """(K, d, d) lower triangular roots of the precisions of the components."""
        return torch.diag_embed(self.log_root.clamp(-5, 5).exp()) + torch.tril(self.low_root, -1)

    def bounds(self, o: Tensor) -> Tensor:
        """(n,) bound of every item without its answers, summed over components.

        With many components the sum is estimated without bias from pairs of items and components that are drawn with
        probabilities `chance`. The most probable component is always drawn, and its term is subtracted from the
        others, which keeps the variance small.
        """
        log_z, own = self.log_z(o), torch.arange(len(o))
        z, top = log_z.exp(), log_z.argmax(1)
        chance = torch.ones_like(z)
        if z.shape[1] > MAX_EXACT_COMPONENTS:
            chance = (z.detach() / EXACT_SHARE).clamp(max=1)
            chance[own, top] = 1.0
        row, k = torch.nonzero(torch.rand_like(chance) < chance, as_tuple=True)
        terms = self._terms(o, row, k)
        level = torch.zeros(len(o)).index_put((row[k == top[row]],), terms.detach()[k == top[row]])
        rest = z[row, k] / chance[row, k] * (terms - level[row])
        exact = (z * (torch.log_softmax(self.share, 0) - log_z)).sum(1)
        return exact + level + torch.zeros(len(o)).index_add(0, row, rest)

    def _terms(self, o: Tensor, row: Tensor, k: Tensor) -> Tensor:
        """(m,) log p(x | z) + log p(o | x) + entropy of q(x | z, o), for pairs of a row and a component."""
        mean, variance = self.place_pairs(o, row, k)
        x = mean + variance.sqrt() * torch.randn_like(mean)
        root, scale = self.root(), self.log_root.clamp(-5, 5).sum(1)
        gaps = torch.einsum("mi,mij->mj", mean - self.mean[k], root[k])
        match = scale[k] - 0.5 * ((gaps**2).sum(1) + (variance * (root**2).sum(2)[k]).sum(1))
        entropy = 0.5 * (1 + variance.log()).sum(1)
        return match + entropy + networks.log_likelihood(self.decoder, self.kind, o[row], x)


class _Answers:
    """Answers as tensors."""

    def __init__(self, answers: PairAnswers) -> None:
        self.left, self.right, self.worker = (
            torch.as_tensor(np.asarray(a, dtype=np.int64)) for a in (answers.left, answers.right, answers.worker)
        )
        self.sign = torch.as_tensor(np.where(answers.same, 1.0, -1.0), dtype=torch.float32)
        self.weight = torch.as_tensor(np.asarray(answers.weight, dtype=np.float32))

    def bound(self, model: _Model, z_left: Tensor, z_right: Tensor, at: Tensor) -> Tensor:
        """Expected log-likelihood of the answers `at`."""
        together = (z_left * z_right).sum(1)
        sign, worker = self.sign[at], self.worker[at]
        equal = functional.logsigmoid(sign * model.alpha[worker])
        unequal = functional.logsigmoid(-sign * model.beta[worker])
        return (self.weight[at] * (together * equal + (1 - together) * unequal)).sum()

    def pseudo_counts(self, model: _Model, z: Tensor) -> tuple[Floats, Floats]:
        """(W, 2) Beta parameters of every worker: point estimates weighted by the expected numbers of pairs."""
        together = (z[self.left] * z[self.right]).sum(1)
        found = []
        for estimate, expected in ((model.alpha, together), (model.beta, 1 - together)):
            number = torch.bincount(self.worker, (expected * self.weight).double(), len(estimate))
            right = torch.sigmoid(estimate.detach()).double()
            found.append((1 + torch.stack([right * number, (1 - right) * number], 1)).numpy())
        return found[0], found[1]


class _Epochs(MixtureTraining):
    """Training of all parameters by gradients of the bound per item."""

    def __init__(self, model: _Model, o: Tensor, answers: _Answers, s: Scdc, rng: np.random.Generator, run: Run):
        small = s.batch is not None and s.batch < len(o)
        optimiser = torch.optim.Adam(model.parameters(), s.rate or (1e-3 if small else 3e-3))
        super().__init__("scdc", s.epochs or 0, Learner(model, optimiser, rng), run, len(o))
        self.model, self.o, self.answers, self.batch, self.settings = model, o, answers, s.batch or len(o), s

    def epoch(self) -> Step:
        total = 0.0
        for rows in self.each(torch.split(torch.randperm(self.items), self.batch)):
            bound = self._whole() if len(rows) == self.items else self._part(rows)
            self.learner.descend(-bound)
            total += float(bound.detach()) * len(rows) / self.items
        return self.record(total, torch.softmax(self.model.share.detach(), 0))

    def _whole(self) -> Tensor:
        """Bound per item, from all items and answers."""
        answers = self.answers
        z, everything = self.model.log_z(self.o).exp(), torch.arange(len(answers.left))
        related = answers.bound(self.model, z[answers.left], z[answers.right], everything)
        return (self.model.bounds(self.o).sum() + related) / self.items

    def _part(self, rows: Tensor) -> Tensor:
        """Estimate of the bound per item, from the items `rows` and as many random answers."""
        answers, pairs = self.answers, len(rows)
        total = self.model.bounds(self.o[rows]).mean()
        if not len(answers.left):
            return total
        at = torch.randint(len(answers.left), (pairs,))
        ends = torch.cat([self.o[answers.left[at]], self.o[answers.right[at]]])
        z_left, z_right = self.model.log_z(ends).exp().chunk(2)
        return total + answers.bound(self.model, z_left, z_right, at) * (len(answers.left) / pairs / self.items)


class _StartTraining(Training):
    """Training of q(z | o) on the initial components of the items."""

    target: Tensor  # (N,)

    def __init__(self, model: _Model, o: Tensor, s: Scdc, rng: np.random.Generator, run: Run) -> None:
        optimiser = torch.optim.Adam(model.classifier.parameters(), s.rate or 3e-3)
        super().__init__("scdc", START_EPOCHS, Learner(model, optimiser, rng), run)
        self.classifier, self.o, self.batch = model.classifier, o, s.batch or len(o)

    def epoch(self) -> Step:
        total = 0.0
        for rows in self.each(torch.split(torch.randperm(len(self.o)), self.batch)):
            loss = functional.cross_entropy(self.classifier(self.o[rows])[0], self.target[rows])
            self.learner.descend(loss)
            total -= float(loss.detach()) * len(rows) / len(self.o)
        return Step(total, {})

    def state(self) -> Arrays:
        return super().state() | {"target": self.target.numpy()}

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.target = torch.tensor(state["target"])


def _start_from_pairs(
    model: _Model, o: Tensor, answers: PairAnswers, s: Scdc, rng: np.random.Generator, run: Run
) -> None:
    """Initialise the components at joined micro-clusters of the latent means, and train q(z | o) on them."""
    training = _StartTraining(model, o, s, rng, run)
    if not run.journal.resumes("start"):
        with torch.no_grad():
            points = _points(model, o)
        labels = partition(points, answers, s.parts or 1, rng)
        _set_mixture(model, points, labels)
        training.target = torch.as_tensor(labels)
    iterate(training, run, Trace(), "start")


def _points(model: _Model, o: Tensor) -> Floats:
    """(N, d) latent means of all items, averaged over components."""
    return torch.cat([model.place(part)[0].mean(1) for part in torch.split(o, CHUNK_ITEMS)]).double().numpy()


def _set_mixture(model: _Model, points: Floats, labels: Ints) -> None:
    """Set shares, means and precisions of the components from a partition."""
    d = points.shape[1]
    with torch.no_grad():
        for k in range(len(model.share)):
            members = points[labels == k]
            model.share[k] = float(np.log(len(members) + 0.5))
            if len(members):
                spread = ((members - members.mean(0)).T @ (members - members.mean(0)) + 0.1 * np.eye(d)) / (
                    len(members) + 1
                )
                root = np.linalg.cholesky(np.linalg.inv(spread))
                model.mean[k] = torch.as_tensor(members.mean(0))
                model.log_root[k] = torch.as_tensor(np.log(np.diag(root)))
                model.low_root[k] = torch.as_tensor(np.tril(root, -1))


def scdc(X: Floats, answers: PairAnswers, settings: Scdc, rng: np.random.Generator, run: Run) -> FeatureFit:
    """Fit one restart."""
    with networks.seeded(rng):
        scaling, o, shape = networks.prepare(X, settings)
        model = _Model(o, shape, scaling.observation, settings.parts or 1, answers.n_workers)
        if settings.start == "pairs" and not run.journal.resumes("epoch"):
            _start_from_pairs(model, o, answers, settings, rng, run)
        training, trace = _Epochs(model, o, _Answers(answers), settings, rng, run), new_trace()
        iterate(training, run, trace, "epoch")
        return _finish(training, scaling, trace)


def _finish(training: _Epochs, scaling: Scaling, trace: Trace) -> FeatureFit:
    """Compute q(z) of all items, estimate the final bound with less noise, and return the fit."""
    model, o, answers = training.model, training.o, training.answers
    with torch.no_grad():
        z = torch.cat([model.log_z(part).exp() for part in torch.split(o, CHUNK_ITEMS)])
        latent = torch.cat(
            [(model.place(p)[0] * model.log_z(p).exp()[:, :, None]).sum(1) for p in torch.split(o, CHUNK_ITEMS)]
        )
        related = float(answers.bound(model, z[answers.left], z[answers.right], torch.arange(len(answers.left))))
        draws = [float(model.bounds(part).double().sum()) for _ in range(3) for part in torch.split(o, CHUNK_ITEMS)]
        bound = (sum(draws) / 3 + related) / len(o)
        alpha, beta = answers.pseudo_counts(model, z)
        space = networks.pack_scaling(scaling, training.settings.image) | networks.pack(model, "model")
        return training.found(z.double().numpy(), alpha, beta, trace, bound, latent.double().numpy(), space)


def assign(space: Space, X: Floats) -> Floats:
    """(n, K) posterior of the component of new items, from features alone."""
    scaling = networks.unpack_scaling(space)
    classifier = networks.unpack_heads(space, "model.classifier", scaling.observation)
    with torch.no_grad():
        parts = [torch.softmax(classifier(part)[0], 1) for part in torch.split(scaling.apply(X), CHUNK_ITEMS)]
        return torch.cat(parts).double().numpy()


def draw(space: Space, count: int, rng: np.random.Generator) -> Floats:
    """(K, count, D) simulated observations of every component, in units of the features; probabilities if Bernoulli."""
    scaling = networks.unpack_scaling(space)
    decoder = networks.unpack_heads(space, "model.decoder", scaling.observation)
    mean, diagonal, low = (torch.as_tensor(space[f"model.{name}"]) for name in ("mean", "log_root", "low_root"))
    with networks.seeded(rng), torch.no_grad():
        root = torch.diag_embed(diagonal.clamp(-5, 5).exp()) + torch.tril(low, -1)
        noise = torch.randn(len(mean), mean.shape[1], count)
        x = mean[:, None] + torch.linalg.solve_triangular(root.mT, noise, upper=True).mT
        return scaling.undo(networks.generate(decoder, scaling.observation, x))
