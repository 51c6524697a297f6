"""Worker sides that are trained by gradient steps together with a torch network, on answers one by one.

    (1)  objective = sum over answers n of log P(label_n | x of task_n, worker_n)
Every answer has its own true class here, so (1) is not the likelihood of the other sides, whose answers to a task share
it. An iteration is an epoch; the learning rate follows a cosine from its initial value to 0. With mixup, two answers
are mixed: features, workers and labels. The weights with the highest objective so far are reported; if there are
held-out tasks, it is that of their answers.

(1) determines only the product of network and matrices well, so the workers' matrices are estimated again at the end,
given the network, with one true class per task. These are reported, and the true classes are inferred with them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from ..answers import Labels
from ..engine import Executor, Run, register
from ..engine.model import COUNT, NOT_NEGATIVE, SOME_POSITIVE, Rule, setting
from ..errors import ParameterError, option
from ..kernels.layout import Floats
from ..kernels.rules import Real
from ..labels.em import Local
from ..labels.model import Learnt
from ..labels.shard import Crowd, Shard
from ..result import LabelsResult
from .difficulty import Confusion, OddsSide, Params, Stats, compiled, vote_ease
from .joint import with_fields
from .objective import improve_workers

EPOCHS = 50
REFIT_STEPS = 2  # runs of L-BFGS in which the workers' matrices are estimated again


@dataclass(frozen=True, kw_only=True)
class ByGradient(OddsSide):
    """Base class of worker sides that are a module trained together with a network."""

    criterion = "log-likelihood of the answers"
    extras = ("deep",)
    params_type = with_fields(Params, objective=Annotated[Floats, Real("")])
    max_iter: int = setting(EPOCHS, COUNT, "Number of epochs.")
    mixup: float = setting(0.0, NOT_NEGATIVE, "Parameter of the Beta distribution of mixup; 0: answers are not mixed.")
    rate: float | None = setting(
        None, SOME_POSITIVE, "Initial learning rate of the workers' parameters; None: that of the network."
    )

    @abstractmethod
    def module(self, workers: int, classes: int) -> Any:
        """Return the untrained torch module of the workers."""

    def _fit(self, answers: Labels, features: Any, run: Run) -> LabelsResult:
        if not hasattr(features, "on_answers"):
            raise ParameterError(
                f"{self.name} is trained together with a torch network. Use {option('classifier', 'mlp')}"
            )
        return super()._fit(answers, features, run)

    def need(self, answers: Labels, dtype: np.dtype[Any]) -> int:
        K = answers.n_classes
        return 64 * answers.n_workers * K * K + 32 * answers.n_tasks * K + 8 * answers.n_answers

    def finished(self, iterations: int) -> bool:
        return iterations >= self.max_iter

    def total_objective(self, evidence: float, params: Any) -> float:
        return float(params.objective)

    def maximise(self, crowd: Crowd, stats: Stats, params: Any) -> Any:
        shard, W, K = stats.shard, stats.shard.layout.n_workers, stats.shard.layout.n_classes
        fit = self._training(crowd, W, K).step(shard.layout, self.mixup, first=params is None)
        shares = stats.shares / max(stats.shares.sum(), 1)
        if params is not None and fit.objective <= float(params.objective):
            return params._replace(shares=shares)
        logs, every = fit.log_matrices, np.arange(K)
        odds = logs[:, every, every][:, :, None] - logs
        zero, votes = np.zeros(()), vote_ease(shard) if params is None else params.votes
        return self.params_type(
            fit.logits, np.ones(len(fit.logits)), odds, zero, np.ones(()), zero, shares, votes, odds[:0],
            np.asarray(fit.objective),
        )  # fmt: skip

    def _training(self, crowd: Crowd, workers: int, classes: int) -> Any:
        return crowd.truth.on_answers(partial(self.module, workers, classes), self.max_iter, self.rate)

    def learn(self, answers: Labels, crowd: Crowd, shards: Executor[Shard], run: Run) -> Learnt:
        """Fit; then estimate the workers' matrices again, given the network, with one true class per task."""
        learnt = super().learn(answers, crowd, shards, run)
        params: Any = learnt.params
        self._training(crowd, answers.n_workers, answers.n_classes).keep_best(np.asarray(params.logits))
        params = params._replace(odds=next(iter(shards.each(self._refitted, params))))
        shards.update(self.e_step, params)
        return learnt._replace(params=params)

    def _refitted(self, shard: Shard, local: Local, params: Any) -> Floats:
        """(W, K, K) log-odds of the workers with the highest joint likelihood of all answers, given the network."""
        shard = compiled(shard)
        objective = Confusion().equal_ease(shard)
        theta = np.clip(objective.pack(params.odds, objective.relation), *objective.bounds)
        for _ in range(REFIT_STEPS):
            theta = improve_workers(objective, params.logits, theta, local.Z)
        return objective.unpack(theta)[0]


@register("crowd-layer", "a matrix per worker after the softmax of a network (Rodrigues & Pereira 2018)")
@dataclass(frozen=True, kw_only=True)
class CrowdLayer(ByGradient):
    """The crowd layer: the network's probabilities times a matrix per worker, then a second softmax."""

    def module(self, workers: int, classes: int) -> Any:
        from .annotators import CrowdLayerModule

        return CrowdLayerModule(workers, classes)


@register(
    "annot-mix", "confusion matrix per worker by a network, with mixup of answers and workers (Herde et al. 2024)"
)
@dataclass(frozen=True, kw_only=True)
class AnnotMix(ByGradient):
    """annot-mix with confusion matrices that do not depend on the features of the task."""

    mixup: float = setting(1.0, NOT_NEGATIVE, "Parameter of the Beta distribution of mixup; 0: answers are not mixed.")
    eta: float = setting(0.9, Rule(float, low=0.01, high=0.99), "Initial accuracy.")

    def module(self, workers: int, classes: int) -> Any:
        from .annotators import AnnotMixModule

        return AnnotMixModule(workers, classes, self.eta)
