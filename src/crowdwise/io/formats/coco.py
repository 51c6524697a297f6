"""COCO: one JSON object with images, categories and annotations. It is written; there are no annotators to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...errors import option
from . import register
from .base import LABELS, POINTS, Answer, Head, Origin, Original, RecordFormat, Settings, as_id

if TYPE_CHECKING:
    from ..estimates import Estimates

REACH = 2.0  # standard deviations of the clicks on an object, from its centre to the sides of its box
OBJECT = "object"  # category of objects without a class


@register
class Coco(RecordFormat):
    """Objects as annotations with one keypoint, labels as annotations of whole images."""

    name = "coco"
    title = "COCO"
    files = "written only"
    containers = ("object",)
    kinds = ()
    returned = ".object"
    written_kinds = (LABELS, POINTS)

    def recognise(self, head: Head) -> bool:
        return head.has("images", "annotations", "categories")

    def refuse(self, head: Head) -> str:
        return (
            f"{head.name} is a COCO file: one set of annotations, without annotators. Export the work of each "
            f"annotator as a file of its own, for instance as CVAT XML, and give the folder; {option('format', 'cvat')}"
        )

    def answers(self, record: Mapping[str, Any], origin: Origin, settings: Settings) -> Iterator[Answer]:
        raise ValueError("there are no annotators")

    def give_back(self, estimates: Estimates, original: Original | None) -> Iterator[Mapping[str, Any]]:
        names = estimates.classes or [OBJECT]
        numbers = {name: number for number, name in enumerate(names, 1)}
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for number, (task, each) in enumerate(estimates.tasks.items(), 1):
            size = {} if each.size is None else {"width": each.size[0], "height": each.size[1]}
            known = as_id(task)
            image = known if isinstance(known, int) else number
            images.append({"id": image, "file_name": task} | size)
            for place in each.places:
                reach = REACH * (place.spread or 0.0)
                box = [place.x - reach, place.y - reach, 2 * reach, 2 * reach]
                annotations.append(
                    {
                        "id": len(annotations) + 1, "image_id": image, "category_id": numbers[place.label or OBJECT],
                        "keypoints": [place.x, place.y, 2], "num_keypoints": 1, "bbox": box, "area": box[2] * box[3],
                        "segmentation": [], "iscrowd": 0, "score": place.probability,
                    }
                )  # fmt: skip
            annotations += [
                {
                    "id": len(annotations) + n, "image_id": image, "category_id": numbers[label],
                    "score": each.probability, "iscrowd": 0,
                }
                for n, label in enumerate(each.labels, 1)
            ]  # fmt: skip
        points = {"keypoints": ["centre"], "skeleton": []} if estimates.kind == POINTS else {}
        categories = [{"id": number, "name": name} | points for name, number in numbers.items()]
        info = {"description": f"estimates of {estimates.by}"}
        yield {"info": info, "images": images, "categories": categories, "annotations": annotations}
