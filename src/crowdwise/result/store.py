"""Results and checkpoints on disk: one file of JSON, Parquet and safetensors, every part checksummed. No pickle.

The file is an uncompressed zip, so there is one thing to write, and one rename makes it whole. `result.json` names
every other part with its SHA-256; the zip keeps a CRC of `result.json` itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ..answers import Intake, Labels, Pairs, Points
from ..errors import ChecksumError, FileError
from ..kernels.layout import Layout
from .files import write_whole

if TYPE_CHECKING:
    from .pairs import PairsResult
    from .points import PointsResult
    from .result import Result

FORMAT = 1
NAME = "result.crowdwise"
ENDING = ".crowdwise"
PAIRS_ARRAYS = ("left", "right", "worker", "same", "hit", "weight")
POINTS_ARRAYS = ("X", "worker", "job_image", "job_worker", "job_ptr", "image_ptr", "box")


def place(path: Path, name: str = NAME) -> Path:
    """The file a result is kept in: `path` itself if it ends in .crowdwise, else inside that folder."""
    return path if path.suffix == ENDING else path / name


def write(result: Result, path: Path) -> Path:
    """Save a result; returns the file written."""
    return pack(place(path), "result", *parts_of(result))


def parts_of(result: Result) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What is said about a result, and its parts."""
    from safetensors.numpy import save

    answers = result.answers
    arrays = {f"layout.{name}": array for name, array in answers.layout._asdict().items() if name != "n_classes"}
    arrays |= {f"params.{name}": np.asarray(array) for name, array in result.params._asdict().items()}
    arrays |= {"posterior": result.posterior, "prevalence": result.prevalence, "right": result.right}
    arrays |= {"sure": result.sure, "gold": answers.gold}
    parts = {"arrays.safetensors": save({name: np.asarray(array, order="C") for name, array in arrays.items()})}
    for name in ("tasks", "workers", "classes"):
        parts[f"{name}.parquet"] = _parquet(pl.DataFrame({name: getattr(answers, name)}))
    if answers.extras.width:
        parts["extras.parquet"] = _parquet(answers.extras)
    about = {
        "model": result.model.name,
        "needs_features": result.model.needs_features,
        "settings": _plain(result.model.settings()),
        "trace": list(result.trace),
        "converged": result.converged,
        "seed": result.seed,
        "seconds": result.seconds,
        "versions": result.versions,
        "intake": answers.intake.as_dict(),
    }
    return about, parts


def read(path: Path, model: Callable[..., Any]) -> Result:
    """Load a result; `model(name, needs_features, settings)` brings back the model."""
    return result_of(*unpack(place(path), "result"), model)


def result_of(about: Mapping[str, Any], parts: Mapping[str, bytes], model: Callable[..., Any]) -> Result:
    """A result from what `parts_of` made of it."""
    from .result import Result

    arrays = _arrays(parts["arrays.safetensors"])
    columns = {name: _table(parts[f"{name}.parquet"])[name] for name in ("tasks", "workers", "classes")}
    layout = Layout(n_classes=len(columns["classes"]), **_under(arrays, "layout."))
    answers = Labels.of(
        **columns,
        layout=layout,
        gold=arrays["gold"],
        extras=_table(parts["extras.parquet"]) if "extras.parquet" in parts else pl.DataFrame(),
        intake=Intake.from_dict(about["intake"]),
    )
    made_by = model(about["model"], about.get("needs_features", False), _mappings(about["settings"]))
    return Result(
        answers=answers,
        model=made_by,
        params=made_by.params_type(**_under(arrays, "params.")),
        posterior=arrays["posterior"],
        prevalence=arrays["prevalence"],
        right=arrays["right"],
        sure=arrays["sure"],
        trace=tuple(about["trace"]),
        converged=about["converged"],
        seed=about["seed"],
        seconds=about["seconds"],
        versions=about["versions"],
    )


def write_points(result: PointsResult, path: Path) -> Path:
    """Save a result of clicks; returns the file written."""
    from safetensors.numpy import save

    points = result.points
    arrays = {f"points.{name}": getattr(points, name) for name in POINTS_ARRAYS}
    arrays |= {f"params.{name}": array for name, array in result.params._asdict().items()}
    arrays["sweeps"] = result.sweeps
    parts = {"arrays.safetensors": save({name: np.asarray(array, order="C") for name, array in arrays.items()})}
    for name in ("images", "workers"):
        parts[f"{name}.parquet"] = _parquet(pl.DataFrame({name: getattr(points, name)}))
    if points.extras.width:
        parts["extras.parquet"] = _parquet(points.extras)
    about = {
        "model": result.model.name, "settings": _plain(result.model.settings()), "axes": list(points.axes),
        "box_from": points.box_from, "criterion": result.criterion, "best": result.best,
        "converged": result.converged, "seed": result.seed, "seconds": result.seconds, "versions": result.versions,
        "intake": points.intake.as_dict(),
    }  # fmt: skip
    return pack(place(path), "points", about, parts)


def read_points(path: Path, model: Callable[..., Any]) -> PointsResult:
    """Load a result of clicks; `model(name, settings)` brings back the model."""
    from .points import Objects, PointsResult

    about, parts = unpack(place(path), "points")
    arrays = _arrays(parts["arrays.safetensors"])
    points = Points.of(
        **{name: _table(parts[f"{name}.parquet"])[name] for name in ("images", "workers")},
        **_under(arrays, "points."),
        axes=tuple(about["axes"]),
        box_from=about["box_from"],
        extras=_table(parts["extras.parquet"]) if "extras.parquet" in parts else pl.DataFrame(),
        intake=Intake.from_dict(about["intake"]),
    )
    return PointsResult(
        points=points,
        model=model(about["model"], _tuples(about["settings"])),
        params=Objects(**_under(arrays, "params.")),
        sweeps=arrays["sweeps"],
        criterion=about["criterion"],
        best=about["best"],
        converged=about["converged"],
        seed=about["seed"],
        seconds=about["seconds"],
        versions=about["versions"],
    )


def write_pairs(result: PairsResult, path: Path) -> Path:
    """Save a result of pairs; returns the file written."""
    from safetensors.numpy import save

    pairs = result.pairs
    arrays = {f"pairs.{name}": getattr(pairs, name) for name in PAIRS_ARRAYS}
    arrays |= {f"params.{name}": array for name, array in result.params._asdict().items()}
    arrays |= {f"space.{name}": np.asarray(array) for name, array in result.space.items()} | {"sweeps": result.sweeps}
    parts = {"arrays.safetensors": save({name: np.asarray(array, order="C") for name, array in arrays.items()})}
    for name in ("items", "workers"):
        parts[f"{name}.parquet"] = _parquet(pl.DataFrame({name: getattr(pairs, name)}))
    about = {
        "model": result.model.name, "settings": _plain(result.model.settings()), "criterion": result.criterion,
        "converged": result.converged, "seed": result.seed, "seconds": result.seconds, "versions": result.versions,
        "intake": pairs.intake.as_dict(),
    }  # fmt: skip
    return pack(place(path), "pairs", about, parts)


def read_pairs(path: Path, model: Callable[..., Any]) -> PairsResult:
    """Load a result of pairs; `model(name, settings)` brings back the model."""
    from .pairs import Clusters, PairsResult

    about, parts = unpack(place(path), "pairs")
    arrays = _arrays(parts["arrays.safetensors"])
    return PairsResult(
        pairs=Pairs.of(
            **{name: _table(parts[f"{name}.parquet"])[name] for name in ("items", "workers")},
            **_under(arrays, "pairs."),
            intake=Intake.from_dict(about["intake"]),
        ),
        model=model(about["model"], _tuples(about["settings"])),
        params=Clusters(**_under(arrays, "params.")),
        space=_under(arrays, "space."),
        sweeps=arrays["sweeps"],
        **{name: about[name] for name in ("criterion", "converged", "seed", "seconds", "versions")},
    )


def _tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they were: JSON knows no tuples."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in _mappings(settings).items()}


def kind_of(path: Path) -> str:
    """What a saved file holds: "result", "points" or "pairs"; "result" where that cannot be told: reading says why."""
    try:
        with zipfile.ZipFile(place(path)) as archive:
            return str(json.loads(archive.read("result.json")).get("kind", "result"))
    except (OSError, zipfile.BadZipFile, zlib.error, KeyError, ValueError, AttributeError, EOFError):
        return "result"


def pack(path: Path, kind: str, about: Mapping[str, Any], parts: Mapping[str, bytes]) -> Path:
    """Write parts and what is said about them as one checksummed file."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()}
    head = {"format": FORMAT, "kind": kind, "sha256": sums, **about}

    def fill(file: Any) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in {"result.json": json.dumps(head, ensure_ascii=False).encode(), **parts}.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)

    return write_whole(path, fill)


def unpack(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `pack` wrote, or an error that says what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(
            f"no saved {kind} at {path}: {error.strerror}. "
            f"`crowdwise {'learn' if kind == 'classifier' else 'aggregate'} --out` writes one"
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            head = json.loads(archive.read("result.json"))
            _check_head(head, kind, path)
            parts = {name: archive.read(name) for name in head["sha256"]}
        for name, wanted in head["sha256"].items():
            if hashlib.sha256(parts[name]).hexdigest() != wanted:
                raise ChecksumError(f"{path}: part {name} is not what was written (its checksum differs)")
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        OSError,
    ) as error:
        raise ChecksumError(
            f"{path} is not a whole saved {kind}: {error}. It was cut, changed or is something else; make it again"
        ) from error
    return head, parts


def _check_head(head: Any, kind: str, path: Path) -> None:
    if not isinstance(head, dict) or head.get("kind") != kind:
        found = head.get("kind") if isinstance(head, dict) else None
        raise ChecksumError(f"{path} holds {found!r}, not a saved {kind}")
    if head.get("format") != FORMAT:
        raise ChecksumError(
            f"{path} has format {head.get('format')!r}; this version of crowdwise reads format {FORMAT}"
        )


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _table(data: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(data))


def _arrays(data: bytes) -> dict[str, Any]:
    from safetensors.numpy import load

    return dict(load(data))


def _under(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON; a mapping becomes pairs, so that ids keep their type."""
    return {key: {"pairs": list(map(list, v.items()))} if isinstance(v, Mapping) else v for key, v in settings.items()}


def _mappings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: {pair[0]: pair[1] for pair in v["pairs"]} if isinstance(v, dict) else v for key, v in settings.items()}


def write_checkpoint(path: Path, model: str, settings: Mapping[str, Any], mark: str, reached: Any) -> Path:
    """Keep where a climb was broken off; `mark` tells the answers it belongs to."""
    from safetensors.numpy import save

    arrays = {f"params.{name}": np.asarray(array, order="C") for name, array in reached.params.items()}
    arrays |= {"hits": np.ascontiguousarray(reached.hits), "labels": np.ascontiguousarray(reached.labels)}
    about = {
        "model": model, "settings": _plain(settings), "mark": mark, "trace": reached.trace, "still": reached.still,
    }  # fmt: skip
    return pack(path, "checkpoint", about, {"arrays.safetensors": save(arrays)})


def read_checkpoint(path: Path, model: str, settings: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """The fields of a checkpoint, if it belongs to this model and these answers."""
    about, parts = unpack(path, "checkpoint")
    if (about["model"], about["settings"], about["mark"]) != (model, json.loads(json.dumps(_plain(settings))), mark):
        raise FileError(
            f"{path} belongs to another run: other answers, another model or other settings. Remove it to start anew"
        )
    arrays = _arrays(parts["arrays.safetensors"])
    return {
        "params": _under(arrays, "params."),
        "trace": about["trace"],
        "still": about["still"],
        "hits": arrays["hits"],
        "labels": arrays["labels"],
    }


def fingerprint(answers: Labels) -> str:
    """A digest of coded answers, ids and gold."""
    digest = hashlib.sha256()
    for array in (
        answers.layout.task_ptr,
        answers.layout.pair,
        answers.layout.row_worker,
        answers.layout.row_label,
        answers.gold,
    ):
        digest.update(np.ascontiguousarray(array).tobytes())
    for ids in (answers.tasks, answers.workers, answers.classes):
        digest.update(_parquet(pl.DataFrame({"id": ids})))
    return digest.hexdigest()
