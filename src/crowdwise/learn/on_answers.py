"""Training of a torch network together with a module of the workers, on answers one by one: see `by_gradient`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import nn

from ..engine.resources import limit_threads
from ..engine.run import Arrays, packed, under
from ..engine.torch_state import network_state, restore_network
from ..kernels.layout import Floats, Layout
from .objective import answers_to

if TYPE_CHECKING:
    from .network import NetworkLearner

MIN_BATCH_ANSWERS = 16  # a last mini-batch with fewer answers is skipped
MIN_ANSWER_STEPS = 10  # per epoch; with few tasks it has several passes


class AnswerFit(NamedTuple):
    """A network and its workers after an epoch."""

    objective: float  # log-likelihood of the answers, or of the answers to held-out tasks in proportion to all
    logits: Floats  # (T, K)
    log_matrices: Floats  # (W, K, K)


class AnswerTraining:
    """A network and a module of workers, trained for `epochs` epochs. The learning rate follows a cosine to 0, from
    that of the network's plan, and from `rate` for the workers; None: the same."""

    def __init__(
        self, learner: NetworkLearner, build: Callable[[], nn.Module], epochs: int, rate: float | None
    ) -> None:
        self.learner, self.epoch, self.epochs, self.best = learner, 0, epochs, -np.inf
        self.kept: dict[str, torch.Tensor] = {}  # weights of the best epoch
        self.rates = learner.plan.rate, rate or learner.plan.rate
        with torch.random.fork_rng():
            torch.manual_seed(int(learner.rng.integers(2**31)))
            self.workers = build().to(learner.device)
        self.optimiser = torch.optim.RAdam(
            [
                {"params": list(learner.module.parameters()), "weight_decay": learner.plan.weight_decay},
                {"params": list(self.workers.parameters()), "weight_decay": 0.0},
            ],
            lr=learner.plan.rate,
        )

    def step(self, layout: Layout, mixup: float, *, first: bool) -> AnswerFit:
        """Make an epoch on the answers of tasks that are not held out; return the fit. `first` makes none."""
        learner = self.learner
        task = np.repeat(np.arange(layout.n_tasks), np.diff(layout.task_ptr))
        worker, label = (
            torch.from_numpy(each[layout.pair].astype(np.int64)).to(learner.device)
            for each in (layout.row_worker, layout.row_label)
        )
        if not first:
            for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
                group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * self.epoch / self.epochs))
            self.epoch += 1
            for _ in range(-(-MIN_ANSWER_STEPS // max(1, len(learner.seen) // learner.plan.batch_size))):
                self._epoch(layout, torch.from_numpy(task).to(learner.device), worker, label, mixup)
        logits = learner.predicted(learner.rows)
        self.workers.eval()
        with limit_threads(), torch.no_grad():
            log_p = torch.log_softmax(torch.from_numpy(logits), 1).float().to(learner.device)[task]
            logs = self.workers(log_p, worker, worker, torch.ones(len(worker), device=learner.device))
            each = logs[torch.arange(len(label)), label].double().cpu().numpy()
            matrices = self.workers.log_matrices().double().cpu().numpy()  # type: ignore[operator]
        judged = np.isin(task, learner.held) if len(learner.held) else np.ones(len(task), bool)
        objective = float(each[judged].sum() * len(each) / max(judged.sum(), 1))
        if objective > self.best:
            self.best, self.kept = objective, copy.deepcopy(learner.predictor.state_dict())
            learner.on_rows = logits
        return AnswerFit(objective, logits, matrices)

    def _epoch(
        self, layout: Layout, task: torch.Tensor, worker: torch.Tensor, label: torch.Tensor, mixup: float
    ) -> None:
        """Make one pass over the tasks in random order; a mini-batch holds all answers to some tasks."""
        learner = self.learner
        learner.module.train()
        self.workers.train()
        order = learner.rng.permutation(learner.seen[np.diff(layout.task_ptr)[learner.seen] > 0])
        with limit_threads(learner.threads), torch.random.fork_rng():
            torch.manual_seed(int(learner.rng.integers(2**31)))
            for start in range(0, len(order), learner.plan.batch_size):
                _, at = answers_to(layout, order[start : start + learner.plan.batch_size])
                if len(at) < MIN_BATCH_ANSWERS and start:  # too few for batch normalisation
                    break
                one, other = (torch.from_numpy(each).to(learner.device) for each in (at, learner.rng.permutation(at)))
                inputs, part = learner.mixed(task[one], task[other], mixup)
                log_p = torch.log_softmax(learner.output(learner.module, inputs), 1)
                logs = self.workers(log_p, worker[one], worker[other], part)
                rows = torch.arange(len(at), device=learner.device)
                loss = -(part * logs[rows, label[one]] + (1 - part) * logs[rows, label[other]]).mean()
                self.optimiser.zero_grad()
                loss.backward()
                self.optimiser.step()
                learner.update_average()

    def keep_best(self, logits: Floats) -> None:
        """Return to the weights of the best epoch, whose logits are given."""
        if self.kept:
            self.learner.predictor.load_state_dict(self.kept)
            self.learner.on_rows = logits

    def state(self) -> Arrays:
        modules = {"workers": self.workers.state_dict(), "kept": self.kept}
        own = {name: {key: value.cpu().numpy() for key, value in each.items()} for name, each in modules.items()}
        network = network_state(self.learner.module, self.optimiser)
        return packed({"epoch": self.epoch, "best": self.best, **own, "network": network})

    def restore(self, state: Arrays) -> None:
        self.epoch, self.best, self.kept = int(state["epoch"]), float(state["best"]), tensors(state, "kept.")
        self.workers.load_state_dict(tensors(state, "workers."))
        restore_network(self.learner.module, self.optimiser, under(state, "network."))


def tensors(state: Arrays, prefix: str) -> dict[str, torch.Tensor]:
    """Return the arrays whose names begin with a prefix as tensors, without it."""
    return {name: torch.tensor(array) for name, array in under(state, prefix).items()}
