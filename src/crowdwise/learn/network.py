"""A torch network as the truth side: the gradient of the objective by its logits is propagated back through it.

An iteration is an epoch of Adam on mini-batches (several epochs for few rows), followed by an update of the workers'
parameters. An epoch that decreases the objective is undone, and the learning rate is halved. Some tasks are held out:
an iteration makes further epochs until the likelihood of their answers increases. If HELD_OUT_PATIENCE of them do not
increase it, they are undone and the network is no longer trained, so it always has the weights of its best epoch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from ..engine.model import COUNT, NOT_NEGATIVE, POSITIVE, SHARE, YES_NO, Rule, check, one_of
from ..engine.resources import limit_threads
from ..engine.run import Arrays, packed, rng_state, set_rng_state, under
from ..engine.torch_state import network_state, restore_network
from ..errors import FeatureError, ParameterError
from ..kernels.layout import Floats
from .objective import SHARPENING, Evidence, Objective, improve_workers, log_score, softmax
from .on_answers import AnswerTraining, tensors

HELD_OUT_PATIENCE = 5  # epochs without an increase of the held-out likelihood before training stops
MIN_RATE_SHARE = 1 / 16  # the network has converged when the learning rate falls below this share of its first value
RULES = {
    "batch_norm": YES_NO, "mixup": NOT_NEGATIVE, "averaging": Rule((int, float), low=0.0, high=0.9999),
    "epochs": COUNT, "batch_size": COUNT, "rate": POSITIVE, "weight_decay": NOT_NEGATIVE,
    "dropout": SHARE, "scale": YES_NO, "holdout": Rule((int, float), low=0.0, high=0.9),
    "augment": Rule(int, low=0), "threads": COUNT, "precision": one_of("single", "bfloat16"),
}  # fmt: skip
PREDICT_BATCH_ROWS = 1024
MIN_ADAM_STEPS = 50  # per iteration; with few rows an iteration has several epochs


class Network(BaseEstimator):  # type: ignore[misc]
    """A torch `module` with one logit per class, or by default a perceptron with one layer of `hidden` units.

    `hidden` may also be a tuple with the units of several layers; `batch_norm` adds batch normalisation to each.
    Features are scaled to mean 0 and variance 1 (images per channel) if `scale` is true. Training on fixed targets
    makes at most `epochs` epochs. `batch_size` is the number of rows in a mini-batch, `rate` the learning rate.
    `weight_decay` and `dropout` (of the perceptron) limit overfitting, and so does `mixup`: training on random mixtures
    of two rows, whose weights have the distribution Beta(mixup, mixup); 0 turns it off. `averaging` is the decay of a
    moving average of the weights, for instance 0.99, which then makes the predictions; 0 turns it off. `augment` trains
    on images that are mirrored at random and shifted by up to that many pixels; 0 turns it off. `holdout` is the share
    of tasks that are held out to choose the best epoch. `device` is a torch device ("cpu", "cuda", "mps", ...), or
    "auto" for the fastest one available. `precision="bfloat16"` computes in 16 bits, with weights in 32 bits: about
    twice as fast for images on processors that support it. `threads` is the number of threads for images; results
    depend on it.
    """

    def __init__(
        self,
        module: Any = None,
        *,
        hidden: int | tuple[int, ...] = 64,
        batch_norm: bool = False,
        dropout: float = 0.3,
        epochs: int = 20,
        batch_size: int = 64,
        rate: float = 1e-3,
        weight_decay: float = 1e-2,
        mixup: float = 0.0,
        averaging: float = 0.0,
        augment: int = 0,
        holdout: float = 0.1,
        scale: bool = True,
        device: str = "cpu",
        precision: str = "single",
        threads: int = 2,
    ) -> None:
        self.module = module
        self.hidden = hidden
        self.batch_norm = batch_norm
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.rate = rate
        self.weight_decay = weight_decay
        self.mixup = mixup
        self.averaging = averaging
        self.augment = augment
        self.holdout = holdout
        self.scale = scale
        self.device = device
        self.precision = precision
        self.threads = threads

    def learner(self, X: Floats, n_classes: int, rng: np.random.Generator) -> NetworkLearner:
        check(RULES, self)
        if not self.layers or not all(COUNT.holds(units) for units in self.layers):
            raise ParameterError(
                f"hidden is {self.hidden!r}; it must be a number of units of at least 1, or a tuple of such numbers"
            )
        if self.augment and (X.ndim != 4 or self.module is None):
            raise FeatureError(
                f"augment is {self.augment}, but the features have shape {X.shape}"
                f"{' and there is no module' if self.module is None else ''}. It needs images (rows, channels, height, "
                "width) and a module for them; give augment=0"
            )
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

    @property
    def layers(self) -> tuple[Any, ...]:
        """Units of each layer."""
        return tuple(self.hidden) if isinstance(self.hidden, (tuple, list)) else (self.hidden,)

    def build(self, n_features: int, n_classes: int) -> nn.Module:
        """Return an untrained perceptron."""
        parts: list[nn.Module] = []
        for units in self.layers:
            parts.append(nn.Linear(n_features, units))
            if self.batch_norm:
                parts.append(nn.BatchNorm1d(units))
            parts += [nn.ReLU(), nn.Dropout(self.dropout)]
            n_features = units
        return nn.Sequential(*parts, nn.Linear(n_features, n_classes))


class NetworkLearner:
    """A network being trained on given rows."""

    log_prior = 0.0  # weight decay is part of the optimiser, not of the objective

    def __init__(self, X: Floats, n_classes: int, plan: Network, rng: np.random.Generator) -> None:
        self.plan, self.rng, self.n_classes, self.device = plan, rng, n_classes, plan.torch_device()
        self.rate, self.converged = plan.rate, False
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
        if self.rows.ndim == 4:
            self._order_channels_last()
        self.threads = plan.threads if self.rows.ndim > 2 else 1
        self.answers: AnswerTraining | None = None  # of worker sides that are trained together with the network
        self.pending: Arrays = {}  # its state in a checkpoint
        self._check_output()
        self._average()
        self._reset_training()
        order = rng.permutation(len(X))
        held = int(len(X) * plan.holdout) if len(X) >= 20 else 0
        self.held, self.seen = np.sort(order[:held]), np.sort(order[held:])
        self.on_rows = self.predicted(self.rows)

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
        names = sorted((name for name, value in state.items() if value.ndim == 2), key=lambda n: int(n.split(".")[0]))
        linear = [state[name] for name in names]
        if tuple(len(each) for each in linear[:-1]) != plan.layers:  # which are as large as the settings say
            raise ValueError(f"its layers have other sizes than {plan.layers}")
        new.module = plan.build(linear[0].shape[1], linear[-1].shape[0])
        new.module.load_state_dict(state)
        new.module.to(new.device)
        new.averaged, new.threads = None, 1
        return new

    def _average(self) -> None:
        """Start the moving average of the weights, if there is one."""
        self.averaged: AveragedModel | None = None
        if self.plan.averaging:
            decay = get_ema_multi_avg_fn(self.plan.averaging)  # type: ignore[no-untyped-call]
            self.averaged = AveragedModel(self.module, multi_avg_fn=decay, use_buffers=True)

    def update_average(self) -> None:
        """Add the present weights to their moving average, if there is one."""
        if self.averaged is not None:
            self.averaged.update_parameters(self.module)

    @property
    def predictor(self) -> nn.Module:
        """The network that makes predictions: the average of its weights, if there is one."""
        return self.module if self.averaged is None else self.averaged.module

    def _optimiser(self) -> torch.optim.Optimizer:
        fused = self.device.type in ("cpu", "cuda")
        return torch.optim.AdamW(
            self.module.parameters(), lr=self.rate, weight_decay=self.plan.weight_decay, fused=fused
        )

    def _scaled(self, X: Floats) -> torch.Tensor:
        rows = torch.from_numpy((np.asarray(X, np.float32) - self.mean) / self.scale).to(self.device)
        return rows.flatten(1) if self.plan.module is None else rows

    def _order_channels_last(self) -> None:
        """Store images with channels last, the faster layout, unless the module fails on it (as `view` does)."""
        last = torch.channels_last
        probe = copy.deepcopy(self.module).to(memory_format=last)  # type: ignore[call-overload]
        try:
            with torch.no_grad():
                probe.eval()(self.rows[:2].contiguous(memory_format=last))
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
            return  # an error that has another cause is reported by `_check_output`
        self.rows = self.rows.contiguous(memory_format=last)
        self.module.to(memory_format=last)  # type: ignore[call-overload]

    def _check_output(self) -> None:
        with torch.no_grad():
            try:
                shape = tuple(self.output(self.module.eval(), self.rows[:2]).shape)
            except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise FeatureError(
                    f"the network fails on features of shape {tuple(self.rows.shape)}: {error}"
                ) from error
        if shape != (len(self.rows[:2]), self.n_classes):
            raise FeatureError(
                f"the network returns an output of shape {shape} for two rows; it must be {(2, self.n_classes)}, one "
                "logit per class"
            )

    def output(self, module: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        """(n, K) output of a module, computed in the precision of the plan and returned in single precision."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.plan.precision == "bfloat16"):
            logits: torch.Tensor = module(inputs)
        return logits.float()

    def predicted(self, rows: torch.Tensor) -> Floats:
        module = self.predictor.eval()
        with limit_threads(self.threads), torch.no_grad():
            starts = range(0, len(rows), PREDICT_BATCH_ROWS)
            parts = [self.output(module, rows[start : start + PREDICT_BATCH_ROWS]) for start in starts]
        return torch.cat(parts).cpu().double().numpy()

    def disturbed(self, size: float, rng: np.random.Generator) -> Floats:
        """(T, K) logits of the training rows, after noise of `size` standard deviations is added to the weights."""
        kept = copy.deepcopy(self.predictor.state_dict())
        with torch.no_grad():
            for weight in self.predictor.parameters():
                noise = torch.from_numpy(rng.normal(size=tuple(weight.shape)).astype(np.float32)).to(self.device)
                weight.add_(size * weight.std(correction=0) * noise)
        logits = self.predicted(self.rows)
        self.predictor.load_state_dict(kept)
        return logits

    def logits(self, X: Floats | None = None) -> Floats:
        return self.on_rows if X is None else self.predicted(self._scaled(X))

    def inputs(self) -> Floats:
        return self.rows.flatten(1).cpu().double().numpy()

    def imitate(self, Z: Floats) -> None:
        """Train on soft targets for `epochs` epochs, or until the predictions of held-out rows stop improving; keep the
        weights of the epoch with the best ones."""
        targets, waited, best = torch.from_numpy(np.asarray(Z, np.float32)).to(self.device), 0, -np.inf
        kept = self._weights()
        for _ in range(self.plan.epochs):
            self._epoch(lambda rows, logits: torch.softmax(logits, 1) - targets[rows])
            self.on_rows = self.predicted(self.rows)
            score = log_score(Z[self.held], self.on_rows[self.held])
            if score > best or not len(self.held):
                waited, best, kept = 0, score, self._weights()
            else:
                waited += 1
            if waited == HELD_OUT_PATIENCE:
                break
        self._load(kept)

    def follow(self, targets: Floats) -> None:
        """Make one epoch towards targets (T, K) that may still change; rows may sum to more than 1."""
        if self.converged:
            return
        soft = torch.from_numpy(np.asarray(targets, np.float32)).to(self.device)
        weight = soft.sum(1, keepdim=True)
        self._train(
            1,
            lambda rows, logits: torch.softmax(logits, 1) * weight[rows] - soft[rows],
            lambda: log_score(targets, self.on_rows),
            lambda: log_score(targets[self.held], self.on_rows[self.held]),
        )

    def _train(self, epochs: int, slope: Any, objective: Callable[[], float], held_out: Callable[[], float]) -> None:
        """Train for some epochs, and again until the held-out score increases.

        If HELD_OUT_PATIENCE repetitions do not increase it, undo them and stop training. If the objective decreases,
        undo the epochs and halve the learning rate.
        """
        before, value = self._weights(), objective()
        score = held_out() if len(self.held) else -np.inf
        for _ in range(HELD_OUT_PATIENCE):
            for _ in range(epochs):
                self._epoch(slope)
            self.on_rows = self.predicted(self.rows)
            if not len(self.held) or held_out() > score:
                break
        else:
            self._load(before)
            self.converged = True
        if objective() < value:
            self._load(before)
            self.rate /= 2
            self.converged, self.optimiser = self.rate < MIN_RATE_SHARE * self.plan.rate, self._optimiser()

    def _weights(self) -> tuple[Any, ...]:
        """Return copies of the weights, with the predictions that they make."""
        average = None if self.averaged is None else copy.deepcopy(self.averaged.state_dict())
        return copy.deepcopy(self.module.state_dict()), average, self.on_rows

    def _load(self, weights: tuple[Any, ...]) -> None:
        """Return to the weights of `_weights`."""
        module, average, self.on_rows = weights
        self.module.load_state_dict(module)
        if self.averaged is not None:
            self.averaged.load_state_dict(average)

    def begin(self, Z: Floats, objective: Objective, theta: Floats) -> None:
        self.imitate(Z)
        self.imitate(softmax(SHARPENING * self.on_rows))

    def warm(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        """Make a first iteration with equally easy tasks, then reset the learning rate."""
        theta = self.improve(objective, theta, Z)
        self._reset_training()
        return theta

    def _reset_training(self) -> None:
        self.rate, self.converged = self.plan.rate, False
        self.optimiser = self._optimiser()

    def improve(self, objective: Objective, theta: Floats, Z: Floats) -> Floats:
        if self.converged:
            return improve_workers(objective, self.on_rows, theta, Z)
        odds, relation = objective.unpack(theta)

        def descent(rows: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
            slope = objective.batch_evidence(
                rows.cpu().numpy(), logits.detach().cpu().double().numpy(), odds, relation
            )[1]
            return torch.from_numpy(-slope).float().to(self.device)

        self._train(
            -(-MIN_ADAM_STEPS // max(1, len(self.seen) // self.plan.batch_size)),
            descent,
            lambda: objective(self.on_rows, theta).total,
            lambda: objective.batch_evidence(self.held, self.on_rows[self.held], odds, relation)[0],
        )
        return improve_workers(objective, self.on_rows, theta, Z)

    def evidence(self, objective: Objective, theta: Floats) -> Evidence:
        """Return the log-likelihood of the answers to held-out tasks, in proportion to all tasks."""
        if not len(self.held):
            return Evidence(objective(self.on_rows, theta).total)
        held = objective.batch_evidence(self.held, self.on_rows[self.held], *objective.unpack(theta))[0]
        return Evidence(held * len(self.on_rows) / len(self.held))

    def mixed(self, one: torch.Tensor, other: torch.Tensor, mixup: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Return random mixtures of rows, and the share (n,) of the first in each; without mixup, the first rows."""
        inputs = self._augmented(one)
        if not mixup:
            return inputs, torch.ones(len(one), device=self.device)
        part = torch.from_numpy(self.rng.beta(mixup, mixup, len(one)).astype(np.float32)).to(self.device)
        wide = part.reshape(-1, *[1] * (inputs.ndim - 1))
        return wide * inputs + (1 - wide) * self._augmented(other), part

    def _augmented(self, rows: torch.Tensor) -> torch.Tensor:
        """The inputs of some rows; with `augment`, images are mirrored and shifted at random."""
        inputs, most = self.rows[rows], self.plan.augment
        if not most:
            return inputs
        n, _, height, width = inputs.shape
        down, across = (torch.from_numpy(self.rng.integers(0, 2 * most + 1, n)).to(self.device) for _ in range(2))
        mirrored = torch.from_numpy(self.rng.random(n) < 0.5).to(self.device)[:, None]
        y = down[:, None] + torch.arange(height, device=self.device)
        x = torch.arange(width, device=self.device).expand(n, -1)
        x = across[:, None] + torch.where(mirrored, width - 1 - x, x)
        padded = nn.functional.pad(inputs, (most,) * 4).permute(0, 2, 3, 1)
        each = torch.arange(n, device=self.device)[:, None, None]
        return padded[each, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)

    def on_answers(self, build: Callable[[], nn.Module], epochs: int, rate: float | None) -> AnswerTraining:
        """Return the training on answers, with a module of the workers, begun or continued from a checkpoint."""
        if self.answers is None:
            rng = rng_state(self.rng)
            self.answers = AnswerTraining(self, build, epochs, rate)
            if self.pending:
                set_rng_state(self.rng, rng)
                self.answers.restore(self.pending)
                self.pending = {}
        return self.answers

    def state(self) -> Arrays:
        own: dict[str, Any] = {"on_rows": self.on_rows, "rate": self.rate}
        own |= {"settled": self.converged, "rng": rng_state(self.rng)}
        if self.averaged is not None:
            own["average"] = {name: value.cpu().numpy() for name, value in self.averaged.state_dict().items()}
        own["answers"] = self.pending if self.answers is None else self.answers.state()
        return network_state(self.module, self.optimiser) | packed(own)

    def restore(self, state: Arrays) -> None:
        self.rate, self.converged, self.on_rows = float(state["rate"]), bool(state["settled"]), state["on_rows"]
        self.optimiser = self._optimiser()
        restore_network(self.module, self.optimiser, state)
        if self.averaged is not None:
            self.averaged.load_state_dict(tensors(state, "average."))
        if self.answers is None:
            self.pending = under(state, "answers.")
        else:
            self.answers.restore(under(state, "answers."))
        set_rng_state(self.rng, state["rng"])

    def _epoch(self, slope: Any) -> None:
        """Make one pass over the rows in random order; `slope` returns the gradient by the logits of a mini-batch.

        With mixup, the gradient for a mixture of two rows is the mixture of their gradients at its logits.
        """
        self.module.train()
        order = torch.from_numpy(self.rng.permutation(self.seen)).to(self.device)
        size, mixup = self.plan.batch_size, self.plan.mixup
        starts = range(0, len(order) - (1 if len(order) > 1 else 0), size)  # batch normalisation fails on a single row
        with limit_threads(self.threads), torch.random.fork_rng():
            torch.manual_seed(int(self.rng.integers(2**31)))
            for start in starts:
                rows = other = order[start : start + size]
                if mixup:
                    other = torch.from_numpy(self.rng.permutation(rows.cpu().numpy())).to(self.device)
                inputs, part = self.mixed(rows, other, mixup)
                logits = self.output(self.module, inputs)
                self.optimiser.zero_grad()
                with torch.no_grad():
                    gradient = slope(rows, logits)
                    if mixup:
                        gradient = part[:, None] * gradient + (1 - part[:, None]) * slope(other, logits)
                logits.backward(gradient / len(rows))  # type: ignore[no-untyped-call]
                self.optimiser.step()
                self.update_average()
