"""Training of networks on the one loop: an iteration is an epoch, and all that it changes can be kept and put back."""

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
from ..model import Found
from .networks import Space

T = TypeVar("T")

MAX_KEPT = 50  # epochs whose mixing proportions are kept
MIN_ITEMS = 5  # expected items of a component that counts as a cluster


class Learner(NamedTuple):
    """What is trained, and by what: the networks, their optimiser, and the generator of the whole fit."""

    module: nn.Module
    optimiser: torch.optim.Optimizer
    rng: np.random.Generator

    def descend(self, loss: Tensor) -> None:
        """One gradient step."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()


class Training(Problem):
    """Epochs of gradient steps. A run that is stopped within an epoch goes back to where the epoch began."""

    def __init__(self, name: str, epochs: int, learner: Learner, run: Run) -> None:
        self.name, self.max_iter, self.learner, self.run = name, epochs, learner, run

    @abstractmethod
    def epoch(self) -> Step:
        """One pass over the items; its batches are taken through `each`."""

    def each(self, batches: Iterable[T]) -> Iterator[T]:
        """The batches of an epoch; between two of them the run may be stopped."""
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
    """Training that ends with a mixture: shares of its components after evenly spaced epochs, the last among them."""

    def __init__(self, name: str, epochs: int, learner: Learner, run: Run, items: int) -> None:
        super().__init__(name, epochs, learner, run)
        self.items, self.done = items, 0
        self.epochs: Ints = np.unique(np.linspace(1, epochs, min(epochs, MAX_KEPT)).round().astype(np.int64))
        self.kept: list[Floats] = []

    def recorded(self, bound: float, share: Tensor) -> Step:
        """The end of an epoch: its bound, and how many components are expected to hold enough items."""
        self.done += 1
        if self.done in self.epochs:
            self.kept.append(share.double().numpy().copy())
        return Step(bound, {"clusters": int((share * self.items >= MIN_ITEMS).sum())})

    def found(
        self, posterior: Floats, alpha: Floats, beta: Floats, trace: Trace, bound: float, latent: Floats, space: Space
    ) -> Found:
        """The end of the training, with a better estimate of the last bound."""
        trace.rows[-1] = (bound, float(len(np.unique(posterior.argmax(1)))))
        return Found(posterior, alpha, beta, trace, space, True, latent, np.stack(self.kept), self.epochs)

    def state(self) -> Arrays:
        return super().state() | packed({"done": self.done, "kept": self.kept})

    def restore(self, state: Arrays) -> None:
        super().restore(state)
        self.done, self.kept = int(state["done"]), list(state["kept"])
