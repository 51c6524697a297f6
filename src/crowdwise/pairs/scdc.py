"""scdc and bayes-scdc: deep generative mixtures of features and same/different answers.

The derivation is in docs/maths/scdc.md; the networks are in `deep` and use torch.
"""

from __future__ import annotations

import math
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
from ..kernels import TINY
from ..kernels.layout import Floats
from ..kernels.rules import Real, Whole
from .model import FeatureFit, PairAnswers, PairsModel, best_fit, finite

MAX_FULL_BATCH_ITEMS = 2000  # up to this many items, a gradient step uses all items
BATCH_SIZE = 256  # items per gradient step above that
MAX_TABULAR_FEATURES = 50  # with more features, the default is 50 components
BATCH_RULE, STEP_RULE = Rule(int, low=2, may_be_none=True), Rule((int, float), above=0.0, high=1.0, may_be_none=True)
SAMPLES_PER_CLUSTER = 6  # simulated images
WIDTHS = (0.02, 1.0)  # prior variances of a cluster that restarts of bayes-scdc try on scaled Gaussian features
MIN_GAIN = 0.02  # per item, that each further cluster of images without answers must add to the bound of a restart
START_SHARES = (1.0, 0.5, 0.25, 0.125)  # of `parts`, that restarts of bayes-scdc without answers begin with
CHANNELS = 32  # of the first convolution; the second has twice as many


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

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        scaling = {"image": Whole("A", 1, dtype="int64"), "shift": finite("D"), "width": finite("D")}
        return {f"scaling.{name}": rule for name, rule in scaling.items()} | {"scaling.bernoulli": Real("", 0, 1)}

    def space_flaw(self, space: dict[str, Any], n_clusters: int) -> str:
        image = tuple(int(size) for size in np.ravel(space.get("scaling.image", ())))
        if image and (len(image) != 3 or math.prod(image) != int(np.ravel(space["width"])[0])):
            return f"scaling.image is {image}; these are not the height, width and channels of its items"
        flaw, rules = super().space_flaw(space, n_clusters), self.space_rules(space)
        networks = tuple(name.removesuffix("linear") for name in rules if name.endswith(".linear"))
        odd = [name for name in space if name.startswith(networks) and name not in rules]
        return flaw or (f"{odd[0]} belongs to no layer" if odd else "")

    def _network_rules(self, space: dict[str, Any], name: str, inputs: str, outputs: str, kind: str) -> dict[str, Any]:
        """Rules of the weights of an encoder, a decoder or a classifier."""
        image = tuple(int(size) for size in np.ravel(space.get("scaling.image", ())))
        spread = kind == "encoder" or (kind == "decoder" and not float(space.get("scaling.bernoulli", 0)))
        layers = layer_shapes(inputs, outputs, len(self.hidden or (0, 0)), image, spread, kind == "decoder")
        return {f"{name}.{layer}": Real(axes.replace("H", f"{name}.H")) for layer, axes in layers.items()}

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        with limit_threads():
            return np.asarray(self._network().assign(space, X))

    def _network(self) -> Any:
        """Load the module of `deep` that implements the model."""
        return load(f"{__package__}.deep.{self.module}", "deep", self.name)


def layer_shapes(
    inputs: str, outputs: str, hidden: int, image: tuple[int, ...], spread: bool, decoder: bool
) -> dict[str, str]:
    """Return the axes of the weights of a `deep.networks.TwoHeads` by name; hidden layers have the sizes H0, H1, ..."""
    shapes, at, width = {"linear": f"{outputs} {inputs}"}, 0, inputs

    def layer(name: str, weight: str, bias: str) -> None:
        shapes.update({f"{name}.weight": weight, f"{name}.bias": bias})

    small, channels = str(2 * CHANNELS * math.prod(size // 4 for size in image[:2])), "".join(map(str, image[2:]))
    if image and not decoder:
        layer("trunk.1", f"{CHANNELS} {channels} 4 4", f"{CHANNELS}")
        layer("trunk.3", f"{2 * CHANNELS} {CHANNELS} 4 4", f"{2 * CHANNELS}")
        at, width = 6, small
    for number in range(hidden):
        layer(f"trunk.{at}", f"H{number} {width}", f"H{number}")
        at, width = at + 2, f"H{number}"
    if image and decoder:
        layer(f"trunk.{at}", f"{small} {width}", small)
        layer(f"trunk.{at + 3}", f"{2 * CHANNELS} {CHANNELS} 4 4", f"{CHANNELS}")
        layer(f"trunk.{at + 5}", f"{CHANNELS} {channels} 4 4", channels)
    for head in ("location", "spread") if spread else ("location",):
        layer(head, outputs if image and decoder else f"{outputs} {width}", outputs)
    return shapes


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

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        encoder = self._network_rules(space, "encoder", "D", "L", "encoder")
        decoder = self._network_rules(space, "decoder", "L", "D", "decoder")
        above = {"counts": Real("K", TINY), "kappa": Real("K", TINY), "nu": Real("K", TINY)}
        workers = {"alpha": Real("W 2", TINY), "beta": Real("W 2", TINY)}
        own = above | workers | {"first": Real("K L"), "second": Real("K L L")}
        return super().space_rules(space) | encoder | decoder | {f"posterior.{name}": own[name] for name in own}

    def space_flaw(self, space: dict[str, Any], n_clusters: int) -> str:
        flaw = super().space_flaw(space, n_clusters)
        if flaw:
            return flaw
        first, second, kappa, nu = (space[f"posterior.{name}"] for name in ("first", "second", "kappa", "nu"))
        S = second - first[:, :, None] * first[:, None, :] / kappa[:, None, None]
        definite = np.linalg.eigvalsh(0.5 * (S + S.swapaxes(1, 2))).min(initial=1.0) > 0
        return "" if definite and (nu > first.shape[1] - 1).all() else "posterior has components without a covariance"

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

    def space_rules(self, space: dict[str, Any]) -> dict[str, Any]:
        classifier = self._network_rules(space, "model.classifier", "D", "K", "classifier")
        decoder = self._network_rules(space, "model.decoder", "L", "D", "decoder")
        components = {"mean": Real("K L"), "log_root": Real("K L"), "low_root": Real("K L L")}
        own = {f"model.{name}": rule for name, rule in components.items()}
        return super().space_rules(space) | classifier | decoder | own

    def _fit_start(self, X: Floats, answers: PairAnswers, start: int, rng: np.random.Generator, run: Run) -> FeatureFit:
        from .deep.amortised import scdc

        kind = self.start or ("pairs" if start % 2 and len(answers.left) else "random")
        return scdc(X, answers, self.with_defaults(X, kind), rng, run)


def _is_size(n: Any) -> bool:
    return not isinstance(n, bool) and is_number(n) and n >= 1 and float(n).is_integer()
