"""A torch network as the truth side: the gradient of the objective by its logits is propagated back through it.

An iteration is an epoch of Adam on mini-batches (several epochs for few rows), followed by an update of the workers'
parameters. An epoch that decreases the objective is undone, and the learning rate is halved. Some tasks are held out:
when the likelihood of their answers has not increased for HELD_OUT_PATIENCE iterations, the network is no longer
trained.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn

from ..engine.model import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, YES_NO, Rule, check
from ..engine.resources import one_thread
from ..engine.run import Arrays, packed, rng_state, set_rng_state, under
from ..engine.torch_state import network_state, restore_network
from ..errors import FeatureError, ParameterError
from ..kernels.layout import Floats
from .objective import SHARPENING, Evidence, Objective, improve_workers, log_score, softmax

HELD_OUT_PATIENCE = 5  # iterations without an increase of the held-out likelihood before training stops
MIN_RATE_SHARE = 1 / 16  # the network has converged when the learning rate falls below this share of its first value
RULES = {
    "hidden": COUNT, "epochs": COUNT, "batch_size": COUNT, "rate": POSITIVE, "weight_decay": NOT_NEGATIVE,
    "dropout": SHARE, "scale": YES_NO, "holdout": Rule((int, float), low=0.0, high=0.9),
}  # fmt: skip
PREDICT_BATCH_ROWS = 1024
MIN_ADAM_STEPS = 50  # per iteration; with few rows an iteration has several epochs


class Network(BaseEstimator):  # type: ignore[misc]
    """A torch `module` with one logit per class, or by default a perceptron with one layer of `hidden` units.

    Features are scaled to mean 0 and variance 1 (images per channel) if `scale` is true. Training on fixed targets
    makes at most `epochs` epochs. `batch_size` is the number of rows in a mini-batch, `rate` the learning rate.
    `weight_decay` and `dropout` (of the perceptron) limit overfitting. `holdout` is the share of tasks that are held
    out. `device` is a torch device ("cpu", "cuda", "mps", ...), or "auto" for the fastest one available.
    """

    def __init__(
        self,
        module: Any = None,
        *,
        hidden: int = 64,
        dropout: float = 0.3,
        epochs: int = 20,
        batch_size: int = 64,
        rate: float = 1e-3,
        weight_decay: float = 1e-2,
        holdout: float = 0.1,
        scale: bool = True,
        device: str = "cpu",
    ) -> None:
        self.module = module
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.rate = rate
        self.weight_decay = weight_decay
        self.holdout = holdout
        self.scale = scale
        self.device = device

    def learner(self, X: Floats, n_classes: int, rng: np.random.Generator) -> NetworkLearner:
        check(RULES, self)
        return NetworkLearner(X, n_classes, self, rng)

    def torch_device(self) -> torch.device:
        """Return the torch device, or raise an error if it is not available."""
        fastest = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        try:
            found = (fastest or torch.device("cpu")) if self.device == "auto" else torch.device(self.device)
            torch.zeros(1, device=found).cpu()
        except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
            raise ParameterError(
                f"device is {self.device!r}, which torch cannot use here ({str(error).splitlines()[0]}). "
                "Use 'cpu', or 'auto' for the fastest device available"
            ) from error
        return found

    def build(self, n_features: int, n_classes: int) -> nn.Module:
        """Return an untrained perceptron."""
        layers = nn.Linear(n_features, self.hidden), nn.ReLU(), nn.Dropout(self.dropout)
        return nn.Sequential(*layers, nn.Linear(self.hidden, n_classes))


class NetworkLearner:
    """A network being trained on given rows."""

    log_prior = 0.0  # weight decay is part of the optimiser, not of the objective

    def __init__(self, X: Floats, n_classes: int, plan: Network, rng: np.random.Generator) -> None:
        self.plan, self.rng, self.n_classes, self.device = plan, rng, n_classes, plan.torch_device()
        self.rate, self.converged, self.waited, self.best = plan.rate, False, 0, -np.inf
        axes = 0 if X.ndim == 2 else tuple(a for a in range(X.ndim) if a != 1)  # images: a mean per channel
        self.mean = X.mean(axes, keepdims=True).astype(np.float32)
        self.scale = X.std(axes, keepdims=True).astype(np.float32)
        self.scale[self.scale <= 1e-6 * np.maximum(np.abs(self.mean), 1e-30)] = 1.0
        if not plan.scale:
            self.mean, self.scale = np.zeros_like(self.mean), np.ones_like(self.scale)
        self.rows = self._scaled(X)
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**31)))
            own = plan.module is None
            self.module = plan.build(self.rows[0].numel(), n_classes) if own else copy.deepcopy(plan.module)
        self.module.to(self.device)
        self._check_output()
        self._reset_training()
        order = rng.permutation(len(X))
        held = int(len(X) * plan.holdout) if len(X) >= 20 else 0
        self.held, self.seen = np.sort(order[:held]), np.sort(order[held:])
        self.on_rows = self._predicted(self.rows)

    @classmethod
    def of(cls, plan: Network, arrays: dict[str, Floats]) -> NetworkLearner:
        """Rebuild a trained network, without its training rows."""
        new = cls.__new__(cls)
        new.plan, new.mean, new.scale = plan, arrays["mean"], arrays["scale"]
        try:
            new.device = plan.torch_device()
        except ParameterError:  # trained on a device that is not available here
            plan.device, new.device = "cpu", torch.device("cpu")
        state = {name: torch.from_numpy(array) for name, array in under(arrays, "module.").items()}
        new.module = plan.build(state["0.weight"].shape[1], state["3.weight"].shape[0])
        new.module.load_state_dict(state)
        new.module.to(new.device)
        return new

    def _optimiser(self) -> torch.optim.Optimizer:
        fused = self.device.type in ("cpu", "cuda")
        return torch.optim.AdamW(
            self.module.parameters(), lr=self.rate, weight_decay=self.plan.weight_decay, fused=fused
        )

    def _scaled(self, X: Floats) -> torch.Tensor:
        rows = torch.from_numpy((np.asarray(X, np.float32) - self.mean) / self.scale).to(self.device)
        return rows.flatten(1) if self.plan.module is None else rows

    def _check_output(self) -> None:
        with torch.no_grad():
            try:
                shape = tuple(self.module.eval()(self.rows[:2]).shape)
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise FeatureError(
                    f"the network fails on features of shape {tuple(self.rows.shape)}: {error}"
                ) from error
        if shape != (len(self.rows[:2]), self.n_classes):
            raise FeatureError(
                f"the network returns an output of shape {shape} for two rows; it must be {(2, self.n_classes)}, one "
                "logit per class"
            )

    def _predicted(self, rows: torch.Tensor) -> Floats:
        self.module.eval()
        with one_thread(), torch.no_grad():
            parts = [
                self.module(rows[start : start + PREDICT_BATCH_ROWS])
                for start in range(0, len(rows), PREDICT_BATCH_ROWS)
            ]
        return torch.cat(parts).cpu().double().numpy()

    def disturbed(self, size: float, rng: np.random.Generator) -> Floats:
        """(T, K) logits of the training rows, after noise of `size` standard deviations is added to the weights."""
        kept = copy.deepcopy(self.module.state_dict())
        with torch.no_grad():
            for weight in self.module.parameters():
                noise = torch.from_numpy(rng.normal(size=tuple(weight.shape)).astype(np.float32)).to(self.device)
                weight += size * weight.std(correction=0) * noise
        logits = self._predicted(self.rows)
        self.module.load_state_dict(kept)
        return logits

    def logits(self, X: Floats | None = None) -> Floats:
        return self.on_rows if X is None else self._predicted(self._scaled(X))

    def imitate(self, Z: Floats) -> None:
        """Train on soft targets for `epochs` epochs, or until the predictions of held-out rows stop improving."""
        targets, waited, best = torch.from_numpy(np.asarray(Z, np.float32)).to(self.device), 0, -np.inf
        for _ in range(self.plan.epochs):
            self._epoch(lambda rows, logits: torch.softmax(logits, 1) - targets[rows])
            self.on_rows = self._predicted(self.rows)
            score = log_score(Z[self.held], self.on_rows[self.held])
            waited, best = (0, score) if score > best or not len(self.held) else (waited + 1, best)
            if waited == HELD_OUT_PATIENCE:
                break

    def follow(self, targets: Floats) -> None:
        """Make one epoch towards targets (T, K) that may still change; rows may sum to more than 1.

        If it makes the predictions worse, undo it and halve the learning rate.
        """
        if self.converged:
            return
        before, value = copy.deepcopy(self.module.state_dict()), log_score(targets, self.on_rows)
        soft = torch.from_numpy(np.asarray(targets, np.float32)).to(self.device)
        weight, on_rows = soft.sum(1, keepdim=True), self.on_rows
        self._epoch(lambda rows, logits: torch.softmax(logits, 1) * weight[rows] - soft[rows])
        self.on_rows = self._predicted(self.rows)
        if log_score(targets, self.on_rows) < value:
            self._undo(before, on_rows)
        elif len(self.held):
            self._check_patience(log_score(targets[self.held], self.on_rows[self.held]))

    def _undo(self, state: Any, on_rows: Floats) -> None:
        """Restore the weights from before the iteration and halve the learning rate; stop if it becomes too small."""
        self.module.load_state_dict(state)
        self.on_rows, self.rate = on_rows, self.rate / 2
        self.converged, self.optimiser = self.rate < MIN_RATE_SHARE * self.plan.rate, self._optimiser()

    def _check_patience(self, score: float) -> None:
        """Stop training when the held-out score has not increased for HELD_OUT_PATIENCE iterations."""
        self.waited, self.best = (0, score) if score > self.best else (self.waited + 1, self.best)
        self.converged = self.waited == HELD_OUT_PATIENCE

    def begin(self, Z: Floats, objective: Objective, theta: Floats) -> None:
        self.imitate(Z)
        self.imitate(softmax(SHARPENING * self.on_rows))

    def warm(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        """Make a first iteration with equally easy tasks, then reset learning rate and patience."""
        theta = self.improve(objective, theta, Z)
        self._reset_training()
        return theta

    def _reset_training(self) -> None:
        self.rate, self.converged, self.waited, self.best = self.plan.rate, False, 0, -np.inf
        self.optimiser = self._optimiser()

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        if self.converged:
            return improve_workers(objective, self.on_rows, theta, Z)
        before = copy.deepcopy(self.module.state_dict()), self.on_rows
        value = objective(self.on_rows, theta).total
        odds, relation = objective.unpack(theta)

        def descent(rows: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
            slope = objective.batch_evidence(
                rows.cpu().numpy(), logits.detach().cpu().double().numpy(), odds, relation
            )[1]
            return torch.from_numpy(-slope).float().to(self.device)

        for _ in range(-(-MIN_ADAM_STEPS // max(1, len(self.seen) // self.plan.batch_size))):
            self._epoch(descent)
        self.on_rows = self._predicted(self.rows)
        best = improve_workers(objective, self.on_rows, theta, Z)
        if objective(self.on_rows, best).total < value:
            self._undo(*before)
            return improve_workers(objective, self.on_rows, theta, Z)
        if len(self.held):
            self._check_patience(
                objective.batch_evidence(self.held, self.on_rows[self.held], *objective.unpack(best))[0]
            )
        return best

    def evidence(self, objective: Objective, theta: Floats) -> Evidence:
        """Return the log-likelihood of the answers to held-out tasks, in proportion to all tasks."""
        if not len(self.held):
            return Evidence(objective(self.on_rows, theta).total)
        held = objective.batch_evidence(self.held, self.on_rows[self.held], *objective.unpack(theta))[0]
        return Evidence(held * len(self.on_rows) / len(self.held))

    def state(self) -> Arrays:
        names = ("on_rows", "rate", "waited", "best")
        own = {name: getattr(self, name) for name in names} | {"settled": self.converged, "rng": rng_state(self.rng)}
        return network_state(self.module, self.optimiser) | packed(own)

    def restore(self, state: Arrays) -> None:
        self.rate, self.best = float(state["rate"]), float(state["best"])
        self.converged, self.waited = bool(state["settled"]), int(state["waited"])
        self.on_rows, self.optimiser = state["on_rows"], self._optimiser()
        restore_network(self.module, self.optimiser, state)
        set_rng_state(self.rng, state["rng"])

    def _epoch(self, slope: Any) -> None:
        """Make one pass over the rows in random order; `slope` returns the gradient by the logits of a mini-batch."""
        self.module.train()
        order = torch.from_numpy(self.rng.permutation(self.seen)).to(self.device)
        size = self.plan.batch_size
        starts = range(0, len(order) - (1 if len(order) > 1 else 0), size)  # batch normalisation fails on a single row
        with one_thread(), torch.random.fork_rng():
            torch.manual_seed(int(self.rng.integers(2**31)))
            for start in starts:
                rows = order[start : start + size]
                logits = self.module(self.rows[rows])
                self.optimiser.zero_grad()
                with torch.no_grad():
                    gradient = slope(rows, logits) / len(rows)
                logits.backward(gradient)
                self.optimiser.step()
