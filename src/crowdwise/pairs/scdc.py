"""scdc and bayes-scdc: deep generative mixtures whose clusters explain the answers about pairs, too.

docs/maths/scdc.md has the mathematics; `deep` the networks, in torch.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..engine import Run, register
from ..engine.model import COUNT, SOME_COUNT, SOME_POSITIVE, YES_NO, Rule, one_of, setting
from ..engine.resources import load, one_thread
from ..errors import FeatureError, ParameterError
from ..kernels.layout import Floats
from .model import Found, PairAnswers, PairsModel, best_found

MAX_FULL_BATCH = 2000  # items up to which all are taken at once
BATCH_SIZE = 256
MAX_FEW_FEATURES = 50  # features beyond which they are taken for raw
BATCH, STEP = Rule(int, low=2, may_be_none=True), Rule((int, float), above=0.0, high=1.0, may_be_none=True)
SAMPLES = 6  # simulated observations of a cluster


@dataclass(frozen=True, kw_only=True)
class DeepModel(PairsModel):
    """What both have in common."""

    extras = ("deep",)
    criterion = "evidence lower bound per item"
    full_epochs: ClassVar[int]
    module: ClassVar[str]  # of `deep`

    parts: int | None = setting(None, SOME_COUNT, "clusters at most; None: 15, or 50 of more than 50 features")
    latent: int | None = setting(None, SOME_COUNT, "dimensions of the latent space; None: as features, at most 10")
    hidden: tuple[int, ...] | None = setting(
        None, None, "sizes of hidden layers; None: (40, 40), or (500, 500) of images"
    )
    observation: str | None = setting(
        None, one_of(None, "gaussian", "bernoulli"), "how features are distributed; None: by the features"
    )
    epochs: int | None = setting(None, SOME_COUNT, "passes over the items; None: by the number of items")
    batch: int | None = setting(None, BATCH, "items per gradient step; None: all up to 2,000 items, else 256")
    rate: float | None = setting(None, SOME_POSITIVE, "learning rate; None: 0.003, or 0.001 in batches")
    start: str | None = setting(
        None, one_of(None, "random", "pairs"), "'pairs' starts clusters by features and answers; None: by the data"
    )
    restarts: int = setting(1, COUNT, "fits from different starts; the best by the evidence lower bound is kept")
    scale: bool = setting(True, YES_NO, "scale 'gaussian' features to unit variance")

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes: Any = (self.hidden,) if isinstance(self.hidden, int) else self.hidden
        whole = isinstance(sizes, tuple) and len(sizes) > 0 and all(_is_size(n) for n in sizes)
        if whole:
            object.__setattr__(self, "hidden", tuple(int(n) for n in sizes))
        elif sizes is not None:
            raise ParameterError(
                f"{self.name}: hidden is {sizes!r}; it must be a tuple of sizes, for instance (40, 40)"
            )

    def planned(self, X: Floats, start: str | None) -> Self:
        """The same model with the settings that were left open, which depend on the data."""
        batch = self.batch or (None if len(X) <= MAX_FULL_BATCH else BATCH_SIZE)
        small = batch is not None and batch < len(X)
        parts = min(self.parts or (15 if X.shape[1] <= MAX_FEW_FEATURES else 50), len(X))
        epochs = self.epochs or (30 if small else self.full_epochs)
        return replace(self, parts=parts, epochs=epochs, batch=batch, start=start)

    @abstractmethod
    def _fit_start(self, X: Floats, answers: PairAnswers, start: int, rng: np.random.Generator, run: Run) -> Found:
        """One start, fitted."""

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> Found:
        """The best of some starts, by the bound."""
        own = {name: getattr(answers, name).astype(np.int64) for name in ("left", "right", "worker")}
        own |= {"same": answers.same.copy(), "weight": answers.weight.copy()}  # torch takes no read-only arrays
        mine, rng = answers._replace(**own), run.rng()
        try:
            with one_thread():
                return best_found(self.restarts, lambda start: self._fit_start(X, mine, start, rng, run), run, rng)
        except RuntimeError as error:  # of torch
            if "linalg" not in str(error) and "cholesky" not in str(error):
                raise
            raise FeatureError(
                f"{self.name}: numerical failure in the Cholesky decomposition ({error}). Scale the features"
            ) from error

    def samples(self, space: dict[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint8]:
        made = np.asarray(self._network().draw(space, SAMPLES, rng))[space["used"]]
        if float(space["scaling.bernoulli"]):
            low, high = 0.0, float(space["scaling.width"].max())
        else:
            low, high = float(made.min()), float(made.max())
        grey = (made - low) / max(high - low, 1e-12) * 255.0
        return np.asarray(np.clip(grey, 0, 255).astype(np.uint8).reshape(len(made), SAMPLES, *shape))

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        with one_thread():
            return np.asarray(self._network().assign(space, X))

    def _network(self) -> Any:
        """The module in `deep` that does the work."""
        return load(f"{__package__}.deep.{self.module}", "deep", self.name)


@register("bayes-scdc", "a Bayesian deep generative mixture with pairs; finds the number of clusters (torch)")
@dataclass(frozen=True, kw_only=True)
class BayesScdc(DeepModel):
    """Clusters by a Bayesian deep generative mixture that finds their number by itself.

    A network predicts from each item where it lies in a latent space, in which Gaussian components are the clusters;
    another predicts features from there. Of several restarts every other one starts at random.
    """

    full_epochs = 250
    module = "bayes"

    step: float | None = setting(None, STEP, "step of the natural gradient; None: 0.1, or 0.02 in batches")
    relations: str = setting("all", one_of("all", "sampled"), "answers in a batch: all about its items, or a sample")
    width: float | None = setting(None, SOME_POSITIVE, "prior variance of a cluster in latent space; None: by features")

    def _fit_start(self, X: Floats, answers: PairAnswers, start: int, rng: np.random.Generator, run: Run) -> Found:
        from .deep.bayes import bayes_scdc

        kind = self.start or (None if start % 2 == 0 else "random")
        return bayes_scdc(X, answers, self.planned(X, kind), rng, run)


@register("scdc", "a deep generative mixture with pairs, inference by networks alone (torch)")
@dataclass(frozen=True, kw_only=True)
class Scdc(DeepModel):
    """Clusters by a deep generative mixture with amortised inference and point estimates.

    As `bayes-scdc`, but a network also predicts the cluster of an item, and all else is found by gradients; slower, for
    each item passes the networks once per component. The number of clusters is that of components that keep items.
    """

    full_epochs = 600
    module = "amortised"

    def _fit_start(self, X: Floats, answers: PairAnswers, start: int, rng: np.random.Generator, run: Run) -> Found:
        from .deep.amortised import scdc

        return scdc(X, answers, self.planned(X, self.start or "random"), rng, run)


def _is_size(n: Any) -> bool:
    return not isinstance(n, bool) and isinstance(n, (int, float)) and n >= 1 and float(n).is_integer()
