"""Crafted saved clusters: the arrays that place new items follow the rules of their model."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as arrays_of
from safetensors.numpy import save as bytes_of

import crowdwise as cw
from crowdwise.errors import ChecksumError, CrowdwiseError

ARRAYS, NAME = "arrays.safetensors", "result.crowdwise"
SIM = cw.simulate.pinwheel(clusters=3, per_cluster=8, asked=15, workers=4, each=20, seed=1)
FAST = {"scdc": {"epochs": 2, "restarts": 1}, "bayes-scdc": {"epochs": 2, "restarts": 1}, "mcvc": {"restarts": 1}}
MODELS = [name for name in cw.models("pairs")["name"] if cw.model(name).features != "none"]
MADE = {name: (name, FAST.get(name, {})) for name in MODELS} | {
    "graph": ("pair-mixture", {"space": "graph"}),
    "images": ("scdc", {"epochs": 2, "restarts": 1, "image": (8, 8, 1), "hidden": (6,)}),
    "bernoulli": ("bayes-scdc", {"epochs": 2, "restarts": 1, "image": (8, 8, 1), "observation": "bernoulli"}),
}


@cache
def fitted(made: str) -> cw.PairsResult:
    name, settings = MADE[made]
    for extra in cw.model(name).extras:
        pytest.importorskip({"deep": "torch", "learn": "sklearn", "metric-learn": "metric_learn"}[extra])
    ids, X = SIM.features
    if "image" in settings:
        X = np.random.default_rng(0).random((len(X), 64))
    return cw.aggregate(SIM.pairs, name, features=(ids, X), **settings)


@cache
def opened(made: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(fitted(made).save(Path(folder))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(parts.pop("result.json")), parts


def written(made: str, arrays: dict[str, Any], folder: Path) -> Path:
    """Write a saved result with other arrays, and right checksums."""
    head, parts = opened(made)
    parts = parts | {ARRAYS: bytes_of({name: np.asarray(each, order="C") for name, each in arrays.items()})}
    head = head | {"sha256": {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()}}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, part in {"result.json": json.dumps(head).encode(), **parts}.items():
            archive.writestr(name, part)
    (folder / NAME).write_bytes(out.getvalue())
    return folder


@pytest.mark.parametrize("made", MADE)
def test_s4_saved_clusters_place_new_items_as_the_fit_does(made: str, tmp_path: Path) -> None:
    result = fitted(made)
    X = np.random.default_rng(1).random((3, int(result.space["width"])))
    assert cw.load(result.save(tmp_path)).assign(X).equals(result.assign(X))


@pytest.mark.parametrize("made", MADE)
def test_s4_every_array_that_places_new_items_is_checked(made: str, tmp_path: Path) -> None:
    """Whatever is cut, of another type or not finite is refused when it is loaded, or does not matter."""
    arrays = arrays_of(opened(made)[1][ARRAYS])
    width, refused, tried = int(fitted(made).space["width"]), 0, 0
    for name in (each for each in arrays if each.startswith("space.")):
        array = arrays[name]
        for other in (array[:-1] if array.ndim else array[None], array[None], array.astype(np.int8), array * np.nan):
            tried += 1
            try:
                loaded = cw.load(written(made, arrays | {name: other}, tmp_path))
            except ChecksumError:
                refused += 1
                continue
            try:
                loaded.assign(np.zeros((2, width)))
            except CrowdwiseError as error:
                raise AssertionError(f"{name} is refused only when it is used: {error}") from error
    assert refused >= tried // 2


SAID = {
    "centres": (
        "k-means-items",
        "space.centres",
        lambda v: v[:, :1],
        r"space.turn has the shape|space.centres has the",
    ),
    "used": ("mcvc", "space.used", lambda v: v + 99, "cannot assign new items: space.used has the value"),
    "width": ("mcvc", "space.width", lambda v: v + 1, "cannot assign new items: space.width is 3; it must be 2"),
    "rows": ("cspa", "space.embedding", lambda v: v[:-1], r"space.embedding has \d+ rows; it must have \d+"),
    "phi": ("pair-mixture", "space.coefficients", lambda v: v[:-1], "space.coefficients has 5 rows; it must have 6"),
    "sum": ("gaussian-mixture", "space.weights", lambda v: v / 2, "space.weights has probabilities that do not sum to"),
    "layer": ("scdc", "space.model.classifier.trunk.2.weight", lambda v: v[:-1], r"trunk.2.\w+ has the shape"),
    "image": ("images", "space.scaling.image", lambda v: v * 2, r"space.scaling.image is \(16, 16, 2\); these are no"),
    "definite": ("bayes-scdc", "space.posterior.second", lambda v: -v, "posterior has components without a covariance"),
}


@pytest.mark.parametrize("name", SAID)
def test_s4_what_is_wrong_with_saved_clusters_is_said(name: str, tmp_path: Path) -> None:
    made, array, edit, said = SAID[name]
    fitted(made)
    arrays = arrays_of(opened(made)[1][ARRAYS])
    with pytest.raises(ChecksumError, match=said):
        cw.load(written(made, arrays | {array: edit(arrays[array])}, tmp_path))


def test_s4_an_array_of_no_layer_is_refused(tmp_path: Path) -> None:
    fitted("scdc")
    arrays = arrays_of(opened("scdc")[1][ARRAYS])
    head, _ = opened("scdc")
    head["values"]["space"].append("model.classifier.more")
    with pytest.raises(ChecksumError, match=r"space.model.classifier.more belongs to no layer"):
        cw.load(written("scdc", arrays | {"space.model.classifier.more": np.zeros(1)}, tmp_path))


def test_s4_clusters_without_items_are_shown_as_empty(tmp_path: Path) -> None:
    good = fitted("k-means-items")
    choices = good.params.choices.copy()
    choices[0, 0] = good.n_clusters + 2  # two clusters in between have no items
    odd = replace(good, params=good.params._replace(choices=choices), space={})
    assert odd.sizes["items"].to_list()[-3:] == [0, 0, 1]
    odd.save(tmp_path)
    page = cw.load(tmp_path).report(tmp_path / "page.html").read_text()
    assert "Members of the clusters" in page
