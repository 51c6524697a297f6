"""scdc and bayes-scdc: deep generative mixtures of features and same/different answers.

The derivation is in docs/maths/scdc.md; the networks are in `deep` and use torch.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..answers.arguments import is_number
from ..engine import Run, register
from ..engine.model import SOME_COUNT, SOME_POSITIVE, YES_NO, Rule, one_of, setting
from ..engine.resources import limit_threads, load
from ..errors import FeatureError, ParameterError, model_setting
from ..kernels.layout import Floats
from .model import FeatureFit, PairAnswers, PairsModel, best_fit

MAX_FULL_BATCH_ITEMS = 2000  # up to this many items, a gradient step uses all items
BATCH_SIZE = 256  # items per gradient step above that
MAX_TABULAR_FEATURES = 50  # with more features, the default is 50 components
BATCH_RULE, STEP_RULE = Rule(int, low=2, may_be_none=True), Rule((int, float), above=0.0, high=1.0, may_be_none=True)
SAMPLES_PER_CLUSTER = 6  # simulated images
WIDTHS = (0.02, 1.0)  # prior variances of a cluster that restarts of bayes-scdc try on scaled Gaussian features
MIN_GAIN = 0.02  # per item, that each further cluster of images without answers must add to the bound of a restart
START_SHARES = (1.0, 0.5, 0.25, 0.125)  # of `parts`, that restarts of bayes-scdc without answers begin with


@dataclass(frozen=True, kw_only=True)
class DeepModel(PairsModel):
    """Base class of both models."""

    extras = ("deep",)
    criterion = "evidence lower bound per item"
    full_epochs: ClassVar[int]  # default number of epochs if a gradient step uses all items
    module: ClassVar[str]  # of `deep`

    parts: int | None = setting(
        None, SOME_COUNT, "maximum number of clusters; None: 15, or 50 with more than 50 features"
    )
    latent: int | None = setting(
        None, SOME_COUNT, "dimensions of the latent space; None: the number of features, at most 10"
    )
    hidden: tuple[int, ...] | None = setting(
        None, None, "sizes of the hidden layers; None: (40, 40), or (500, 500) for 'bernoulli' features"
    )
    image: tuple[int, ...] | None = setting(
        None, None, "height, width and channels of images, for convolutional networks; None: dense networks"
    )
    observation: str | None = setting(
        None,
        one_of(None, "gaussian", "bernoulli"),
        "distribution of the features; None: 'bernoulli' for more than 50 features from 0 to 1 (or whole numbers up to "
        "255), else 'gaussian'",
    )
    epochs: int | None = setting(None, SOME_COUNT, "passes over the items; None: fewer with mini-batches")
    batch: int | None = setting(
        None, BATCH_RULE, "items per gradient step; None: all items if there are at most 2,000, else 256"
    )
    rate: float | None = setting(None, SOME_POSITIVE, "learning rate; None: 0.003, or 0.001 with mini-batches")
    start: str | None = setting(
        None,
        one_of(None, "random", "pairs"),
        "initial clusters: 'random', or 'pairs' from features and answers; None: chosen by the model",
    )
    restarts: int | None = setting(
        None,
        SOME_COUNT,
        "number of restarts; the one with the highest evidence lower bound is kept (of 'bayes-scdc' on images without "
        f"answers, each further cluster must add {MIN_GAIN} per image); None: 1, but 'bayes-scdc' has 4 on images "
        "without answers and 2 on other features with answers",
    )
    scale: str = setting(
        "whole",
        one_of("whole", "columns", "none"),
        "scaling of 'gaussian' features: 'whole' by one factor for all, 'columns' to unit variance each, or 'none'",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes: Any = (self.hidden,) if isinstance(self.hidden, int) else self.hidden
        whole = isinstance(sizes, tuple) and len(sizes) > 0 and all(_is_size(n) for n in sizes)
        if whole:
            object.__setattr__(self, "hidden", tuple(int(n) for n in sizes))
        elif sizes is not None:
            raise ParameterError(
                f"{self.name}: hidden is {sizes!r}; it must be a tuple of layer sizes, for instance "
                f"{model_setting('hidden', (40, 40))}"
            )

        image: Any = self.image
        if image is not None:
            sizes = isinstance(image, tuple) and len(image) == 3 and all(_is_size(n) for n in image)
            if not sizes or image[0] % 4 or image[1] % 4:
                raise ParameterError(
                    f"{self.name}: image is {image!r}; it must be a tuple of height, width and channels, the first two "
                    f"multiples of 4, for instance {model_setting('image', (28, 28, 1))}"
                )
            object.__setattr__(self, "image", tuple(int(n) for n in image))

    def with_defaults(self, X: Floats, start: str | None) -> Self:
        """Return the model with data-dependent defaults in place of None."""
        batch = self.batch or (None if len(X) <= MAX_FULL_BATCH_ITEMS else BATCH_SIZE)
        small = batch is not None and batch < len(X)
        parts = min(self.parts or (15 if X.shape[1] <= MAX_TABULAR_FEATURES else 50), len(X))
        epochs = self.epochs or (30 if small else self.full_epochs)
        return replace(self, parts=parts, epochs=epochs, batch=batch, start=start)

    def default_restarts(self, X: Floats, answers: PairAnswers) -> int:
        """Return the number of restarts if none is given."""
        return 1

    def min_gain(self, X: Floats, answers: PairAnswers) -> float:
        """Return how much each further cluster of a restart must add to its bound."""
        return 0.0

    @abstractmethod
    def _fit_start(self, X: Floats, answers: PairAnswers, start: int, rng: np.random.Generator, run: Run) -> FeatureFit:
        """Fit one restart."""

    def _fit_features(self, X: Floats, answers: PairAnswers, run: Run) -> FeatureFit:
        """Return the restart with the highest bound."""
        own = {name: getattr(answers, name).astype(np.int64) for name in ("left", "right", "worker")}
        own |= {"same": answers.same.copy(), "weight": answers.weight.copy()}  # torch needs writable arrays
        writable, rng = answers._replace(**own), run.rng()
        try:
            with limit_threads():
                count, gain = self.restarts or self.default_restarts(X, answers), self.min_gain(X, answers)
                return best_fit(count, lambda start: self._fit_start(X, writable, start, rng, run), run, rng, gain)
        except RuntimeError as error:  # raised by torch
            if "linalg" not in str(error) and "cholesky" not in str(error):
                raise
            raise FeatureError(
                f"{self.name}: numerical failure in the Cholesky decomposition ({error}). Scale the features"
            ) from error

    def samples(self, space: dict[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.uint8]:
        made = np.asarray(self._network().draw(space, SAMPLES_PER_CLUSTER, rng))[space["used"]]
        if float(space["scaling.bernoulli"]):
            low, high = 0.0, float(space["scaling.width"].max())
        else:
            low, high = float(made.min()), float(made.max())
        grey = (made - low) / max(high - low, 1e-12) * 255.0
        return np.asarray(np.clip(grey, 0, 255).astype(np.uint8).reshape(len(made), SAMPLES_PER_CLUSTER, *shape))

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        with limit_threads():
            return np.asarray(self._network().assign(space, X))

    def _network(self) -> Any:
        """Load the module of `deep` that implements the model."""
        return load(f"{__package__}.deep.{self.module}", "deep", self.name)


@register("bayes-scdc", "Bayesian deep generative mixture; estimates the number of clusters (needs torch)")
@dataclass(frozen=True, kw_only=True)
class BayesScdc(DeepModel):
    """Cluster items by a Bayesian deep generative mixture that estimates the number of clusters.

    An encoder network maps each item to a latent space, in which the clusters are Gaussian components; a decoder
    network maps back to the features. Restarts try narrow and wide clusters, and other initial clusters; without
    answers, restarts from k-means begin with fewer and fewer clusters.
    """

    full_epochs = 250
    module = "bayes"

    step: float | None = setting(
        None, STEP_RULE, "step size of the natural gradient; None: 0.1, or 0.02 with mini-batches"
    )
    relations: str = setting(
        "all", one_of("all", "sampled"), "answers used in a mini-batch: 'all' about its items, or 'sampled' answers"
    )
    merge: bool = setting(
        True, YES_NO, "in the second half of the epochs, merge clusters if that raises the evidence lower bound"
    )
    second_term: bool = setting(False, YES_NO, "add the second term of the paper's eq. (17) to the natural gradient")
    width: float | None = setting(
        None,
        SOME_POSITIVE,
        "prior variance of a cluster in latent space; None: 1, but for scaled 'gaussian' features 0.02, and with "
        "answers 0.02 and 1 in turn, one per restart",
    )

    def _fit_start(self, X: Floats, answers: PairAnswers, start: int, rng: np.random.Generator, run: Run) -> FeatureFit:
        from .deep.bayes import bayes_scdc

        model, some = self.with_defaults(X, self.start), len(answers.left) > 0
        if self.width is None and self._has_scaled_columns(X):
            which, start = (start % len(WIDTHS), start // len(WIDTHS)) if some else (0, start)
            model = replace(model, width=WIDTHS[which])
        if not some:
            share = START_SHARES[start % len(START_SHARES)]
            most = model.parts or 1
            return bayes_scdc(X, answers, model, rng, run, min(most, max(2, round(share * most))))
        if self.start is None and start % 2:
            model = replace(model, start="random")
        return bayes_scdc(X, answers, model, rng, run)

    def _has_scaled_columns(self, X: Floats) -> bool:
        return self.scale != "none" and self._observed(X) == "gaussian"

    def min_gain(self, X: Floats, answers: PairAnswers) -> float:
        return MIN_GAIN if self._guesses_number(X, answers) else 0.0

    def _guesses_number(self, X: Floats, answers: PairAnswers) -> bool:
        """Whether restarts on images without answers begin with different numbers of clusters."""
        return not len(answers.left) and self._observed(X) == "bernoulli"

    def _observed(self, X: Floats) -> str:
        from .deep.networks import fit_scaling

        return fit_scaling(X, self.observation, self.scale).observation

    def default_restarts(self, X: Floats, answers: PairAnswers) -> int:
        if len(answers.left):
            return len(WIDTHS) if self.width is None and self._has_scaled_columns(X) else 1
        return len(START_SHARES) if self._guesses_number(X, answers) else 1


@register("scdc", "deep generative mixture with amortised inference and point estimates (needs torch)")
@dataclass(frozen=True, kw_only=True)
class Scdc(DeepModel):
    """Cluster items by a deep generative mixture with amortised inference and point estimates.

    Like `bayes-scdc`, but a network also predicts the cluster of an item, and all parameters are fitted by gradient
    descent. It is slower, because each item passes through the networks several times. The clusters are the components
    that keep items. With answers, every second restart starts from pairs.
    """

    full_epochs = 600
    module = "amortised"

    def _fit_start(self, X: Floats, answers: PairAnswers, start: int, rng: np.random.Generator, run: Run) -> FeatureFit:
        from .deep.amortised import scdc

        kind = self.start or ("pairs" if start % 2 and len(answers.left) else "random")
        return scdc(X, answers, self.with_defaults(X, kind), rng, run)


def _is_size(n: Any) -> bool:
    return not isinstance(n, bool) and is_number(n) and n >= 1 and float(n).is_integer()
