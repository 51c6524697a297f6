"""Encoder and decoder networks, scaling of features, observation likelihoods, and packing of weights into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ...engine.run import unpacked
from ...errors import FeatureError, model_setting
from ...kernels.layout import Floats
from ..scdc import CHANNELS

if TYPE_CHECKING:
    from ..scdc import DeepModel

Space = dict[str, NDArray[Any]]
Observation = Literal["gaussian", "bernoulli"]

MAX_GAUSSIAN_FEATURES = 50  # with more, bounded features are Bernoulli by default


class Scaling(NamedTuple):
    """Scaling (x - shift) / width of the features, and their distribution."""

    shift: Floats
    width: Floats
    observation: Observation

    def apply(self, X: NDArray[Any]) -> Tensor:
        """Scale features to inputs of the networks."""
        return torch.as_tensor((np.asarray(X, dtype=np.float64) - self.shift) / self.width, dtype=torch.float32)

    def undo(self, o: Tensor) -> Floats:
        """Convert observations back to the units of the features."""
        return o.double().numpy() * self.width + self.shift


class Shape(NamedTuple):
    """Sizes of the networks."""

    latent: int
    hidden: tuple[int, ...]
    image: tuple[int, ...] = ()  # height, width and channels of convolutional networks


class PerOutput(nn.Module):
    """A factor and a bias for every output."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(outputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.bias


class TwoHeads(nn.Module):
    """A network with a location head, to which a linear map of the input is added, and an optional spread head.

    With `image`, a network begins with convolutions, or ends with transposed ones if it is a `decoder`.
    """

    def __init__(
        self,
        linear: Tensor,
        hidden: Sequence[int],
        activation: type[nn.Module],
        spread: bool,
        image: tuple[int, ...] = (),
        decoder: bool = False,
    ) -> None:
        super().__init__()
        outputs, inputs = linear.shape
        to_image = bool(image) and decoder
        layers: list[nn.Module] = []
        if image and not decoder:
            layers, inputs = _convolutions(image, activation)
        width = inputs
        for size in hidden:
            layers += [nn.Linear(width, size), activation()]
            width = size
        if to_image:
            layers += _deconvolutions(width, image, activation)
        self.trunk = nn.Sequential(*layers)
        self.location = PerOutput(outputs) if to_image else nn.Linear(width, outputs)
        self.spread = (PerOutput(outputs) if to_image else nn.Linear(width, outputs)) if spread else None
        self.linear = nn.Parameter(linear.clone())
        with torch.no_grad():
            self.location.weight.mul_(0.1)
            self.location.bias.zero_()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the location, and the unbounded spread or None."""
        h = self.trunk(x.flatten(0, -2)).unflatten(0, x.shape[:-1]) if x.ndim > 2 else self.trunk(x)
        location = functional.linear(x, self.linear) + self.location(h)
        return location, None if self.spread is None else self.spread(h)


def _convolutions(image: tuple[int, ...], activation: type[nn.Module]) -> tuple[list[nn.Module], int]:
    """Two convolutions that halve height and width, from flat images; and the number of their outputs."""
    height, width, channels = image
    layers = [
        Channels(image), nn.Conv2d(channels, CHANNELS, 4, 2, 1), activation(),
        nn.Conv2d(CHANNELS, 2 * CHANNELS, 4, 2, 1), activation(), nn.Flatten(),
    ]  # fmt: skip
    return layers, 2 * CHANNELS * (height // 4) * (width // 4)


def _deconvolutions(inputs: int, image: tuple[int, ...], activation: type[nn.Module]) -> list[nn.Module]:
    """A linear layer and two transposed convolutions that double height and width, to flat images."""
    height, width, channels = image
    small = 2 * CHANNELS, height // 4, width // 4
    return [
        nn.Linear(inputs, int(np.prod(small))), activation(), nn.Unflatten(1, small),
        nn.ConvTranspose2d(2 * CHANNELS, CHANNELS, 4, 2, 1), activation(),
        nn.ConvTranspose2d(CHANNELS, channels, 4, 2, 1), Pixels(),
    ]  # fmt: skip


class Channels(nn.Module):
    """Flat images, (n, height * width * channels), to (n, channels, height, width)."""

    def __init__(self, image: tuple[int, ...]) -> None:
        super().__init__()
        self.image = image

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1, *self.image).permute(0, 3, 1, 2)


class Pixels(nn.Module):
    """Images (n, channels, height, width) to flat ones."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).flatten(1)


class Networks(nn.Module):
    """Encoder o -> Gaussian potential of x, and decoder x -> distribution of o."""

    def __init__(self, encoder: TwoHeads, decoder: TwoHeads, observation: Observation) -> None:
        super().__init__()
        self.encoder, self.decoder, self.observation = encoder, decoder, observation

    def potential(self, o: Tensor) -> tuple[Tensor, Tensor]:
        """(n, d) precision, and precision times mean, of the Gaussian potential of every row."""
        mean, spread = self.encoder(o)
        precision = functional.softplus(spread) + 1e-4
        return precision, precision * mean

    def likelihood(self, o: Tensor, x: Tensor) -> Tensor:
        """(n,) log p(o | x) of every row."""
        return log_likelihood(self.decoder, self.observation, o, x)


def log_likelihood(decoder: nn.Module, observation: Observation, o: Tensor, x: Tensor) -> Tensor:
    """Log p(o | x); leading dimensions of o and x are broadcast."""
    location, spread = decoder(x)
    total: Tensor
    if observation == "bernoulli":
        total = (location * o - functional.softplus(location)).sum(-1)
    else:
        variance = functional.softplus(spread) + 1e-4
        total = -0.5 * ((o - location) ** 2 / variance + variance.log() + float(np.log(2 * np.pi))).sum(-1)
    return total


def generate(decoder: nn.Module, observation: Observation, x: Tensor) -> Tensor:
    """Simulate observations of latent points: samples if Gaussian, probabilities if Bernoulli."""
    location, spread = decoder(x)
    if observation == "bernoulli":
        return torch.sigmoid(location)
    width: Tensor = (functional.softplus(spread) + 1e-4).sqrt()
    samples: Tensor = location + width * torch.randn_like(location)
    return samples


def fit_scaling(X: NDArray[Any], observation: str | None, scale: str) -> Scaling:
    """Choose the distribution of the features, if it is not given, and their scaling."""
    low, high = float(X.min()), float(X.max())
    whole = bool(np.issubdtype(X.dtype, np.integer)) or (high > 1 and bool(np.all(np.round(X) == X)))
    bounded = low >= 0 and (high <= 1 or (whole and high <= 255))
    kind: Any = observation or ("bernoulli" if X.shape[1] > MAX_GAUSSIAN_FEATURES and bounded else "gaussian")
    columns = X.shape[1]
    if kind == "bernoulli":
        if not bounded:
            raise FeatureError(
                f"features are from {low:g} to {high:g}; 'bernoulli' features must be from 0 to 1, or whole numbers up "
                f"to 255. Scale them, or give {model_setting('observation', 'gaussian')}"
            )
        return Scaling(np.zeros(columns), np.full(columns, 255.0 if high > 1 else 1.0), kind)
    if scale == "none":
        return Scaling(np.zeros(columns), np.ones(columns), kind)
    width = X.std(0, dtype=np.float64)
    if scale == "whole":
        width = np.full(columns, np.sqrt((width**2).mean()))
    return Scaling(X.mean(0, dtype=np.float64), np.where(width > 0, width, 1.0), kind)


def prepare(X: NDArray[Any], s: DeepModel) -> tuple[Scaling, Tensor, Shape]:
    """Return the scaling of the features, the inputs of the networks, and the sizes of the networks."""
    scaling = fit_scaling(X, s.observation, s.scale)
    hidden = s.hidden or ((500, 500) if scaling.observation == "bernoulli" else (40, 40))
    if s.image is not None and int(np.prod(s.image)) != X.shape[1]:
        raise FeatureError(
            f"items have {X.shape[1]} features, which is not {' x '.join(map(str, s.image))}. Give the height, width "
            f"and channels of the images, for instance {model_setting('image', (28, 28, 1))}"
        )
    return scaling, scaling.apply(X), Shape(s.latent or min(X.shape[1], 10), hidden, s.image or ())


def principal_maps(o: Tensor, latent: int, kind: Observation) -> tuple[Tensor, Tensor]:
    """Linear maps to and from the latent space: the identity if sizes agree, else principal components."""
    columns = o.shape[1]
    if latent == columns:
        return torch.eye(columns), torch.eye(columns)
    centred, count = (o - o.mean(0)).double(), min(latent, columns)
    if count < len(o) < columns:  # fewer items than features: the products of items have the same eigenvalues
        values, vectors = torch.linalg.eigh(centred @ centred.T / len(o))
        vectors = centred.T @ vectors[:, -count:]
        vectors = vectors / vectors.norm(dim=0).clamp_min(1e-12)
    else:
        values, vectors = torch.linalg.eigh(centred.T @ centred / max(len(o), 1))
    top = vectors[:, -count:].flip(1)
    sd = values[-count:].flip(0).clamp_min(1e-9).sqrt()
    if latent > columns:
        top = functional.pad(top, (0, latent - columns))
        sd = functional.pad(sd, (0, latent - columns), value=1.0)
    inward = (top / sd).T if kind == "bernoulli" else top.T
    outward = top * sd * 4 if kind == "bernoulli" else top
    return inward.float(), outward.float()


def build_networks(o: Tensor, shape: Shape, kind: Observation) -> Networks:
    """Build networks whose linear parts start at principal components and whose nonlinear parts start small."""
    inward, outward = principal_maps(o, shape.latent, kind)
    inward = inward + 0.05 * torch.randn_like(inward) / (1 if kind == "gaussian" else np.sqrt(o.shape[1]))
    outward = outward + 0.05 * torch.randn_like(outward)
    unit = nn.ReLU if kind == "bernoulli" else nn.Tanh
    encoder = TwoHeads(inward, shape.hidden, unit, spread=True, image=shape.image)
    decoder = TwoHeads(outward, shape.hidden[::-1], unit, spread=kind == "gaussian", image=shape.image, decoder=True)
    with torch.no_grad():
        middle = o.mean(0)
        encoder.location.bias.copy_(-inward @ middle)
        share = middle.clamp(0.01, 0.99)
        decoder.location.bias.copy_(torch.log(share / (1 - share)) if kind == "bernoulli" else middle)
    return Networks(encoder, decoder, kind)


def pack(module: nn.Module, prefix: str) -> Space:
    """Pack the weights of a module into arrays under a prefix."""
    return {f"{prefix}.{name}": value.detach().numpy().copy() for name, value in module.state_dict().items()}


def unpack_heads(space: Space, prefix: str, kind: Observation) -> TwoHeads:
    """Rebuild a TwoHeads network from packed arrays."""
    weights = {name: torch.as_tensor(value) for name, value in unpacked(space, f"{prefix}.").items()}
    image = tuple(int(size) for size in space.get("scaling.image", ()))
    names = [name for name, value in weights.items() if name.startswith("trunk") and name.endswith("weight")]
    dense = sorted((name for name in names if weights[name].ndim == 2), key=lambda name: int(name.split(".")[1]))
    decoder = prefix.endswith("decoder")
    if image and decoder:
        dense = dense[:-1]  # the last linear layer belongs to the transposed convolutions
    hidden = [len(weights[name]) for name in dense]
    unit = nn.ReLU if kind == "bernoulli" else nn.Tanh
    heads = TwoHeads(weights["linear"], hidden, unit, spread="spread.weight" in weights, image=image, decoder=decoder)
    heads.load_state_dict(weights)
    return heads


def pack_scaling(scaling: Scaling, image: tuple[int, ...] | None = None) -> Space:
    """Pack a scaling into arrays, with the sizes of the images of convolutional networks."""
    return {
        "scaling.image": np.array(image or (), dtype=np.int64),
        "scaling.shift": scaling.shift,
        "scaling.width": scaling.width,
        "scaling.bernoulli": np.array(scaling.observation == "bernoulli", dtype=np.float64),
    }


def unpack_scaling(space: Space) -> Scaling:
    """Rebuild a scaling from packed arrays."""
    kind: Observation = "bernoulli" if float(space["scaling.bernoulli"]) else "gaussian"
    return Scaling(space["scaling.shift"], space["scaling.width"], kind)


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Seed torch from the generator within the block, and restore its random state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**62)))
        yield
