"""Training of networks in the common iteration loop: each iteration is an epoch, and the state can be checkpointed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from ...engine import Problem, Run, Step, Trace
from ...engine.loop import Abandoned
from ...engine.run import Arrays, packed, rng_state, set_rng_state
from ...engine.torch_state import network_state, restore_network
from ...kernels.layout import Floats, Ints
from ..model import FeatureFit
from .networks import Space

T = TypeVar("T")

MAX_KEPT_EPOCHS = 50  # epochs whose mixing proportions are kept
MIN_EXPECTED_ITEMS = 5  # expected items from which the trace counts a component as a cluster


class Learner(NamedTuple):
    """Networks, their optimiser, and the random generator of the whole fit."""

    module: nn.Module
    optimiser: torch.optim.Optimizer
    rng: np.random.Generator

    def descend(self, loss: Tensor) -> None:
        """One gradient step."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()


class Training(Problem):
    """Epochs of gradient steps. If the run is stopped within an epoch, the state before the epoch is restored."""

    def __init__(self, name: str, epochs: int, learner: Learner, run: Run) -> None:
        self.name, self.max_iter, self.learner, self.run = name, epochs, learner, run

    @abstractmethod
    def epoch(self) -> Step:
        """Make one pass over the items; implementations iterate over their batches through `each`."""

    def each(self, batches: Iterable[T]) -> Iterator[T]:
        """Yield the batches of an epoch; the run may be stopped between two of them."""
        for n, batch in enumerate(batches):
            if n and self.run.stopped:
                raise Abandoned
            yield batch

    def step(self) -> Step:
        before = packed(self.state()) if self.run.stop is not None else {}
        try:
            return self.epoch()
        except Abandoned:
            self.restore(before)
            raise

    def state(self) -> Arrays:
        module, optimiser, rng = self.learner
        own = packed({"torch": torch.get_rng_state().numpy(), "rng": rng_state(rng)})
        return network_state(module, optimiser) | own

    def restore(self, state: Arrays) -> None:
        module, optimiser, rng = self.learner
        restore_network(module, optimiser, state)
        torch.set_rng_state(torch.tensor(state["torch"]))
        set_rng_state(rng, state["rng"])


class MixtureTraining(Training):
    """Training of a mixture that keeps the mixing proportions after evenly spaced epochs, including the last one."""

    def __init__(self, name: str, epochs: int, learner: Learner, run: Run, items: int) -> None:
        super().__init__(name, epochs, learner, run)
        self.items, self.done = items, 0
        self.epochs: Ints = np.unique(np.linspace(1, epochs, min(epochs, MAX_KEPT_EPOCHS)).round().astype(np.int64))
        self.kept: list[Floats] = []

    def record(self, bound: float, share: Tensor) -> Step:
        """Record the end of an epoch; return its bound and the number of components with enough expected items."""
        self.done += 1
        if self.done in self.epochs:
            self.kept.append(share.double().numpy().copy())
        return Step(bound, {"clusters": int((share * self.items >= MIN_EXPECTED_ITEMS).sum())})

    def found(
        self, posterior: Floats, alpha: Floats, beta: Floats, trace: Trace, bound: float, latent: Floats, space: Space
    ) -> FeatureFit:
        """Return the finished fit; `bound` is a better estimate of the last bound."""
        trace.rows[-1] = (bound, float(len(np.unique(posterior.argmax(1)))))
        return FeatureFit(posterior, alpha, beta, trace, space, True, latent, np.stack(self.kept), self.epochs)

    def state(self) -> Arrays:
        return super().state() | packed({"done": self.done, "kept": self.kept})

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.done, self.kept = int(state["done"]), list(state["kept"])
