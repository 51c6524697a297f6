"""XML of CVAT, read one image at a time. Entities, which can expand without limit or name other files, are refused."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import FileError
from .opening import first_bytes, open_bytes

SHAPES = ("points", "box", "tag", "polygon", "polyline", "ellipse", "mask", "cuboid", "skeleton")
HEAD_BYTES = 1 << 16
MAX_ELEMENTS = 500_000  # in one image or track
Element = Any


def xml_root(path: Path, allowed: int | None = None) -> str | None:
    """Return the name of the first element; None if the file is not XML."""
    from defusedxml.ElementTree import iterparse

    try:
        events = iterparse(io.BytesIO(first_bytes(path, HEAD_BYTES, allowed)), events=("start",), forbid_dtd=True)
        return next((str(element.tag) for _, element in events), None)
    except (SyntaxError, LookupError):  # an unknown encoding is a LookupError
        return None
    except ValueError:  # a document type or an entity: reading the file refuses it
        return "annotations"


def cvat_records(path: Path, allowed: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield one record per image, or per frame of the tracks of a video; damage raises FileError."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    with open_bytes(path, allowed) as file:
        try:
            yield from _records(iterparse(file, events=("start", "end"), forbid_dtd=True))
        except DefusedXmlException as error:
            raise FileError(
                f"{path.name} declares a document type or entities ({type(error).__name__}), which may be an attack. "
                "It was not read"
            ) from error
        except SyntaxError as error:
            raise FileError(f"{path.name}: invalid XML: {error}. Write or download it again") from error
        except (TypeError, ValueError, LookupError) as error:
            raise FileError(f"{path.name} is not as CVAT writes it: {error}. Export it again") from error


def _records(events: Any) -> Iterator[dict[str, Any]]:
    root: Element = None
    about: dict[str, Any] = {}
    frames: dict[int, list[dict[str, Any]]] = {}
    depth = count = 0
    for event, element in events:
        depth += 1 if event == "start" else -1
        count += 1
        if count > 2 * MAX_ELEMENTS:
            raise ValueError(f"one image or track has more than {MAX_ELEMENTS:,} elements")
        if root is None:
            root = element
        if event == "start" or depth != 1:
            continue
        if element.tag == "meta":
            about = _meta(element)
        elif element.tag == "image":
            number = int(element.get("id") or 0)
            shapes = [_shape(each) for each in element if each.tag in SHAPES]
            yield _record(about, number, shapes, element.attrib, element.get("name"))
        elif element.tag == "track":
            for place in element:
                if place.get("keyframe", "1") == "1" and place.get("outside", "0") == "0" and place.tag in SHAPES:
                    frames.setdefault(int(place.get("frame")), []).append(_shape(place) | {**element.attrib})
        root.clear()  # what has been read
        count = 0
    for number, shapes in sorted(frames.items()):
        yield _record(about, number, shapes, about["size"], f"{about['name'] or 'frame'}#{number}")


def _shape(element: Element) -> dict[str, Any]:
    """Return the fields of a shape; of a tag, also the names and values of its attributes."""
    shape = dict(element.attrib) | {"shape": element.tag}
    if element.tag == "tag":
        found = element.iterfind("attribute")
        shape["attributes"] = [(each.get("name"), (each.text or "").strip()) for each in found]
    return shape


def _record(
    about: Mapping[str, Any], number: int, shapes: list[dict[str, Any]], size: Mapping[str, Any], name: str | None
) -> dict[str, Any]:
    segments = about.get("segments", ())
    segment = next((each for start, stop, each in segments if start <= number <= stop), None)
    people = {name: about.get(name) for name in ("owner", "assignee")}
    return {
        "task": name,
        "width": size.get("width"),
        "height": size.get("height"),
        "shapes": shapes,
        "segment": segment,
    } | people


def _meta(meta: Element) -> dict[str, Any]:
    """Return the name of the task, its people, its segments and the size of its frames."""
    segments = [
        (int(each.findtext("start") or 0), int(each.findtext("stop") or 0), f"segment {each.findtext('id')}")
        for each in meta.iter("segment")
    ]
    size = next(iter(meta.iter("original_size")), None)
    found = {} if size is None else {name: size.findtext(name) for name in ("width", "height")}
    people = {
        name: next((each.findtext("username") for each in meta.iter(name)), None) for name in ("owner", "assignee")
    }
    names = (next((each.text for each in meta.iter(name) if each.text), None) for name in ("source", "name"))
    return {"segments": segments, "size": found, "name": next((name for name in names if name), None)} | people
