"""Histograms and heat maps that studies write: bins, colours, counts, and files that every viewer reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise.reproduce.figures import (
    CELL,
    MAX_BINS,
    Histogram,
    bins_of,
    draw_histogram,
    draw_matrices,
    draw_pictures,
    printable,
)
from crowdwise.reproduce.study import COLOURS

OTHER, MARKED = COLOURS[:2]
SVG = "{http://www.w3.org/2000/svg}"


def texts(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def bars(root: ElementTree.Element, colour: str) -> list[dict[str, float]]:
    """Places of the bars of a colour; the squares of the legend have no place of their own."""
    found = [each.attrib for each in root.iter(f"{SVG}rect") if each.get("fill") == colour and each.get("x") != "-6"]
    return [{name: float(each[name]) for name in ("x", "y", "width", "height")} for each in found]


def drawn(path: Path, scores: Any, marked: Any, threshold: float | None = None) -> ElementTree.Element:
    shown = Histogram("Title", "score", np.asarray(scores, float), np.asarray(marked), "marked", threshold)
    return ElementTree.parse(draw_histogram(path / "figure.svg", shown)).getroot()


# ---------------------------------------------------------------------------------------------------------- histograms

SCORES = st.lists(st.floats(0, 100), min_size=1, max_size=60)


@given(SCORES, st.one_of(st.none(), st.floats(0.01, 100)))
def test_bins_hold_their_scores_and_the_threshold_is_an_edge(scores: list[float], threshold: float | None) -> None:
    values = np.array(scores)
    start, width, place = bins_of(values, threshold)
    spare = 1e-6 * (width + abs(values).max())
    assert (place >= 0).all()
    assert place.max() <= MAX_BINS
    assert (start + place * width <= values + spare).all()
    assert (values <= start + (place + 1) * width + spare).all()
    if threshold is not None:
        edge = (threshold - start) / width
        assert edge == pytest.approx(round(edge), abs=1e-6)
        assert round(edge) >= 1, "the line does not lie on the axis"
        clear = abs(values - threshold) > spare
        assert np.array_equal((values < threshold)[clear], (place < round(edge))[clear])


def test_a_score_at_the_threshold_is_not_below_it() -> None:
    for checks in (5, 10, 20):
        scores = np.arange(checks + 1) / checks
        start, width, place = bins_of(scores, 0.8)
        assert np.array_equal(place >= round((0.8 - start) / width), scores >= 0.8)
        assert start + width * (place.max() + 1) == pytest.approx(1), "no bin above a score of 1"


def test_scores_on_edges_are_not_lost_to_rounding() -> None:
    scores = np.arange(20) / 10  # 0.3 / 0.1 is below 3 in floating point
    start, width, place = bins_of(scores, None)
    assert (start, width) == (0, 0.1)
    assert place.tolist() == [*range(19), 18]


def test_bars_have_heights_counts_and_colours(tmp_path: Path) -> None:
    scores = [0.1] * 3 + [0.5] * 12 + [0.9] * 6
    root = drawn(tmp_path, scores, np.array(scores) < 0.3, 0.3)
    [low], [middle, high] = bars(root, MARKED), bars(root, OTHER)
    assert middle["height"] / low["height"] == pytest.approx(4, rel=0.02)
    assert high["height"] / low["height"] == pytest.approx(2, rel=0.02)
    assert [each.text for each in root.iter(f"{SVG}text") if each.get("font-size") == "8"] == ["3", "12", "6"]
    assert {"marked: 3", "others: 18", "threshold: 0.3", "score", "workers"} <= set(texts(root))
    [line] = [each for each in root.iter(f"{SVG}path") if each.get("class") == "threshold"]
    x = float(line.attrib["d"].removeprefix("M").split(",")[0])
    assert low["x"] + low["width"] < x < middle["x"] < high["x"]


def test_marked_workers_are_stacked_below_others(tmp_path: Path) -> None:
    root = drawn(tmp_path, [1.0, 1.0, 1.0, 2.0], [True, False, False, False])
    [marked], [others, _] = bars(root, MARKED), bars(root, OTHER)
    assert marked["x"] == others["x"]
    assert others["y"] + others["height"] == pytest.approx(marked["y"], abs=0.2)
    assert others["height"] == pytest.approx(2 * marked["height"], rel=0.02)
    assert not any(each.get("class") == "threshold" for each in root.iter())


def test_single_workers_are_visible_beside_thousands(tmp_path: Path) -> None:
    root = drawn(tmp_path, [0.2] + [0.9] * 2500, np.arange(2501) == 0)
    [low], [high] = bars(root, MARKED), bars(root, OTHER)
    assert low["height"] > 20
    assert low["height"] / high["height"] == pytest.approx(np.log(2) / np.log(2501), rel=0.02)
    assert "workers (logarithmic scale)" in texts(root)


def test_equal_scores_make_one_bar(tmp_path: Path) -> None:
    for score in (0.0, 1.0, 5000.0):
        root = drawn(tmp_path, [score] * 7, np.zeros(7, bool))
        assert len(bars(root, OTHER)) == 1


# ----------------------------------------------------------------------------------------------------------- heat maps


def heat_maps(path: Path, classes: list[str], matrices: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.parse(draw_matrices(path / "figure.svg", "Title", classes, matrices)).getroot()


def test_heat_maps_show_the_shares(tmp_path: Path) -> None:
    matrices = {"ann": np.array([[1.0, 0.0], [0.25, 0.75]]), "bob": np.array([[0.004, 0.996], [0.5, 0.5]])}
    root = heat_maps(tmp_path, ["cat", "dog"], matrices)
    cells = [each for each in root.iter(f"{SVG}rect") if each.get("width") == each.get("height") == str(CELL)]
    assert len(cells) == 8
    fill = [each.attrib["fill"] for each in cells]
    assert fill[0] == "#084081"
    assert fill[1] == "#f7fbff"
    assert fill[6] == fill[7] not in fill[:6]
    shown = texts(root)
    first = shown[shown.index("ann") : shown.index("bob")]
    assert first[:4] == ["ann", "100", "25", "75"], "a share of 0 is left empty"
    assert shown[shown.index("bob") + 1 :][:3] == ["100", "50", "50"]
    assert {"cat", "dog", "true class", "label given"} <= set(shown)


@pytest.mark.parametrize("number", range(1, 10))
def test_heat_maps_and_their_scale_do_not_overlap(number: int, tmp_path: Path) -> None:
    root = heat_maps(tmp_path, list("abc"), {f"worker {n}": np.eye(3) for n in range(number)})
    places = [each.attrib["transform"] for each in root.iter(f"{SVG}g")]
    assert len(places) == number + 1
    corners = [tuple(map(float, place.removeprefix("translate(").removesuffix(")").split(","))) for place in places]
    *boxes, scale = corners
    assert len({*boxes}) == number
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert all(x + 3 * CELL <= width and y + 3 * CELL <= height for x, y in boxes)
    assert not any(x == scale[0] and abs(y - scale[1]) < 3 * CELL for x, y in boxes)


def test_names_of_strangers_do_not_break_a_figure(tmp_path: Path) -> None:
    names = ["</svg><script>", "\x1b[2Jgone", "turned\u202egnorw", "nul\0nul", "M" * 10_000, "\ud800", "<b>&"]
    root = heat_maps(tmp_path, names, {name: np.eye(len(names)) for name in names})
    assert not list(root.iter(f"{SVG}script"))
    assert max(map(len, texts(root))) < 200
    assert printable("nul\0nul", 20) == "nul\ufffdnul"
    assert printable("M" * 30, 12) == "M" * 11 + "…"


def test_a_title_fits_beside_few_pictures_and_many_pictures_fit_too(tmp_path: Path) -> None:
    for title, wide in (("T" * 80, 30), ("T", 900)):
        rows = {"a": np.zeros((20, wide)), "b": np.full((20, 10, 3), 255)}
        root = ElementTree.parse(draw_pictures(tmp_path / "pictures.svg", title, rows)).getroot()
        width = float(root.attrib["viewBox"].split()[2])
        images = [each.attrib for each in root.iter() if each.tag.endswith("image")]
        assert all(float(each["x"]) + float(each["width"]) <= width for each in images)
        assert width >= 64 + 7 * len(title)
