"""scdc and bayes-scdc: deep generative mixtures whose clusters answer for the pairs, too.

docs/maths/scdc.md has the mathematics; `deep` the networks, in torch.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..engine import Run
from ..engine.model import COUNT, Rule, rules
from ..engine.threads import one_thread
from ..errors import FeatureError, Interrupted, MissingError, ParameterError
from ..kernels.layout import Floats
from .model import Answers, Found, PairsModel, tell

FULL = 2000  # items up to which all are taken at once
BATCH = 256
WIDE = 50  # features from which they are taken for raw
DRAWN = 6  # made-up observations of a cluster


@dataclass(frozen=True, kw_only=True)
class _Deep(PairsModel):
    """What both have in common."""

    needs_features: ClassVar[bool] = True
    full_epochs: ClassVar[int]
    module: ClassVar[str]  # of `deep`
    criterion: ClassVar[str] = "evidence lower bound an item"

    parts: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))
    latent: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))
    hidden: tuple[int, ...] | None = None
    observation: str | None = field(
        default=None, metadata=rules(Rule(str, choices=(None, "gaussian", "bernoulli"), may_be_none=True))
    )
    epochs: int | None = field(default=None, metadata=rules(Rule(int, low=1, may_be_none=True)))
    batch: int | None = field(default=None, metadata=rules(Rule(int, low=2, may_be_none=True)))
    rate: float | None = field(default=None, metadata=rules(Rule((int, float), above=0.0, may_be_none=True)))
    start: str | None = field(
        default=None, metadata=rules(Rule(str, choices=(None, "random", "pairs"), may_be_none=True))
    )
    restarts: int = field(default=1, metadata=rules(COUNT))
    scale: bool = field(default=True, metadata=rules(Rule(bool, choices=(True, False))))

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

    def plan(self, X: Floats) -> dict[str, Any]:
        """The settings of one start, where they were left open by the data."""
        batch = self.batch or (None if len(X) <= FULL else BATCH)
        small = batch is not None and batch < len(X)
        return {
            "components": min(self.parts or (15 if X.shape[1] <= WIDE else 50), len(X)),
            "latent": self.latent,
            "hidden": self.hidden,
            "observation": self.observation,
            "epochs": self.epochs or (30 if small else self.full_epochs),
            "batch": batch,
            "rate": self.rate,
            "scale": self.scale,
        }

    @abstractmethod
    def one(self, X: Floats, answers: Answers, start: int, rng: np.random.Generator, watch: Any, stop: Any) -> Any:
        """One start, climbed."""

    def climb(self, X: Floats, answers: Answers, run: Run) -> Found:
        """The best of some starts, by the bound."""
        torch_or_refuse()
        own = {name: getattr(answers, name).astype(np.int64) for name in ("left", "right", "worker")}
        own |= {"same": answers.same.copy(), "weight": answers.weight.copy()}  # torch takes no read-only arrays
        answers, rng, best = answers._replace(**own), run.rng(), None
        most = self.plan(X)["epochs"]
        with one_thread():
            for start in range(self.restarts):
                trace: list[tuple[float, int]] = []

                def heard(epoch: int, objective: float, clusters: int, trace: list[tuple[float, int]] = trace) -> None:
                    trace.append((objective, clusters))
                    tell(run, epoch, most, objective, clusters)

                found = self._tried(X, answers, start, rng, heard, run)
                if best is None or found.bound[-1] > best[0].bound[-1]:
                    best = found, trace
        assert best is not None
        found, trace = best
        trace[-1] = (found.bound[-1], len(np.unique(found.posterior.argmax(1))))
        return Found(
            found.posterior, found.alpha, found.beta, trace, found.latent, found.space, True, found.shares, found.epochs
        )

    def _tried(self, X: Floats, answers: Answers, start: int, rng: np.random.Generator, heard: Any, run: Run) -> Any:
        """One start; what torch says of it, as errors of ours."""
        try:
            return self.one(X, answers, start, rng, heard, run.stop or (lambda: False))
        except RuntimeError as error:
            if "linalg" not in str(error) and "cholesky" not in str(error):
                raise
            raise FeatureError(f"{self.name} lost its way in these features ({error}). Scale them") from error
        except KeyboardInterrupt:
            raise Interrupted("stopped before the clusters were found; nothing was written") from None

    def drawn(self, space: dict[str, Any], shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        made = self.made_up(space, DRAWN, rng)[space["used"]]
        if float(space["scaling.bernoulli"]):
            low, high = 0.0, float(space["scaling.width"].max())
        else:
            low, high = float(made.min()), float(made.max())
        grey = (made - low) / max(high - low, 1e-12) * 255.0
        return np.asarray(np.clip(grey, 0, 255).astype(np.uint8).reshape(len(made), DRAWN, *shape))

    def components(self, space: dict[str, Any], X: Floats) -> Floats:
        with one_thread():
            return np.asarray(self._network().assign(space, X))

    def made_up(self, space: dict[str, Any], count: int, rng: np.random.Generator) -> Floats:
        """(K, count, D) observations drawn from every component."""
        return np.asarray(self._network().draw(space, count, rng))

    def _network(self) -> Any:
        """The module in `deep` that does the work."""
        torch_or_refuse()
        return importlib.import_module(f".deep.{self.module}", __package__)


@dataclass(frozen=True, kw_only=True)
class BayesScdc(_Deep):
    """Clusters by a Bayesian deep generative mixture that finds their number by itself.

    A network tells from each item where it may lie in a space of `latent` dimensions, in which up to `parts` Gaussians
    (None: 15, or 50 of more than 50 features) are the clusters; another tells features from there. `hidden` are the
    sizes of layers. Features are `observation` "gaussian" (scaled, unless `scale` is false) or "bernoulli" (None: by
    the features). All items at once, or in mini-batches of `batch` with all their answers, or, `relations` "sampled",
    with as many answers drawn at random. `start` "pairs" lets the clusters begin where features and answers together
    say, "random" anywhere (None: "pairs" of images, and where there are as many answers as items; of `restarts` every
    other one "random"). The best start by the bound is kept. `step` is that of the natural gradient, `width` that of
    the clusters believed beforehand, in variances of the latent space.
    """

    name: ClassVar[str] = "bayes-scdc"
    about: ClassVar[str] = "a Bayesian deep generative mixture with pairs; finds the number of clusters (torch)"
    full_epochs: ClassVar[int] = 250
    module: ClassVar[str] = "bayes"

    step: float | None = field(default=None, metadata=rules(Rule((int, float), above=0.0, high=1.0, may_be_none=True)))
    relations: str = field(default="all", metadata=rules(Rule(str, choices=("all", "sampled"))))
    width: float | None = field(default=None, metadata=rules(Rule((int, float), above=0.0, may_be_none=True)))

    def one(self, X: Floats, answers: Answers, start: int, rng: np.random.Generator, watch: Any, stop: Any) -> Any:
        from .deep.bayes import BayesSettings, bayes_scdc

        turn = self.start or (None if start % 2 == 0 else "random")
        more: dict[str, Any] = {
            "step": self.step,
            "relations": self.relations,
            "width": self.width,
            "start": turn,
        }
        return bayes_scdc(X, answers, BayesSettings(**self.plan(X), **more), rng, watch, stop)


@dataclass(frozen=True, kw_only=True)
class Scdc(_Deep):
    """Clusters by a deep generative mixture with amortised inference and point estimates.

    As `bayes-scdc`, but networks tell the cluster of an item, too, and all else is found by gradients; slower, for each
    item passes the networks once a component. The number of clusters is that of components that keep items.
    """

    name: ClassVar[str] = "scdc"
    about: ClassVar[str] = "a deep generative mixture with pairs, inference by networks alone (torch)"
    full_epochs: ClassVar[int] = 600
    module: ClassVar[str] = "amortised"

    def one(self, X: Floats, answers: Answers, start: int, rng: np.random.Generator, watch: Any, stop: Any) -> Any:
        from .deep.amortised import ScdcSettings, scdc

        settings = ScdcSettings(**self.plan(X), start=self.start or "random")  # type: ignore[arg-type]
        return scdc(X, answers, settings, rng, watch, stop)


def _is_size(n: Any) -> bool:
    return not isinstance(n, bool) and isinstance(n, (int, float)) and n >= 1 and float(n).is_integer()


def torch_or_refuse() -> None:
    """Refuse where torch is not installed."""
    try:
        import sklearn  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingError(f"{error.name} is not installed. Say: pip install 'crowdwise[deep]'") from None
