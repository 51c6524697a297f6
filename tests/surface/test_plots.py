"""Charts of every kind: made, saved, the same each time, and with the numbers of the result; hostile names, refusals,
notebooks, and nothing of matplotlib touched."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import io
import os
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import EllipseCollection, PathCollection
from matplotlib.text import Text

import crowdwise as cw
from crowdwise.errors import FileError, MissingError, ParameterError, UnknownIdError
from crowdwise.plots import Chart, canvas, chart, charts, shown
from crowdwise.plots.registry import CHARTS
from crowdwise.plots.style import MAX_NAMED
from crowdwise.plots.text import FALLBACK_FONTS, LONGEST_NAME, count, families

ROOT = Path(__file__).resolve().parents[2]
START = {"svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}
NAMES = {
    "labels": ["classes", "confusion", "cost", "tasks", "workers"],
    "points": ["image", "tasks", "workers"],
    "pairs": ["clusters", "tasks", "workers"],
}
CASES = [(kind, name) for kind, names in NAMES.items() for name in names]


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """A result of each kind; among the workers of labels some are flagged."""
    crowd = cw.simulate.crowd("hammer-spammer", tasks=150, workers=35, classes=3, per_task=6, seed=2)
    wheel = cw.simulate.pinwheel(seed=1)
    return {
        "labels": cw.aggregate(crowd.answers),
        "points": cw.aggregate(cw.simulate.clicks("E", seed=1).points),
        "pairs": cw.aggregate(wheel.pairs, features=wheel.features),
    }


def texts(drawn: Chart) -> list[str]:
    return [text.get_text() for text in drawn.figure.findobj(Text)]


@contextlib.contextmanager
def no_warnings() -> Iterator[None]:
    """A warning is an error, but for those of an older matplotlib about a newer pyparsing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "'\\w+' deprecated - use")
        yield


def assert_inside(drawn: Chart) -> None:
    """Nothing reaches over the edge of the picture, by more than a hundredth of an inch."""
    box = drawn.figure.get_tightbbox(FigureCanvasAgg(drawn.figure).get_renderer())
    assert min(box.x0, box.y0) > -0.01
    assert box.x1 < drawn.figure.get_figwidth() + 0.01
    assert box.y1 < drawn.figure.get_figheight() + 0.01


def rendered(drawn: Chart, folder: Path, ending: str) -> bytes:
    return drawn.save(folder / f"chart.{ending}").read_bytes()


# ---------------------------------------------------------------------------------------------- every chart of a kind


@pytest.mark.parametrize("kind", NAMES)
def test_every_kind_has_its_charts(kind: str) -> None:
    assert sorted(charts(kind)) == NAMES[kind]
    assert all(build.__doc__ for build in charts(kind).values())


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_every_chart_is_saved_in_every_format_and_always_the_same(
    kind: str, name: str, results: dict[str, Any], tmp_path: Path
) -> None:
    with no_warnings():
        made, again = results[kind].plot(name), results[kind].plot(name)
        files = {ending: rendered(made, tmp_path, ending) for ending in START}
        twice = START if name == "tasks" else ("svg",)  # other formats take longer
        assert all(files[ending] == rendered(again, tmp_path, ending) for ending in twice)
        assert files["svg"] == rendered(made, tmp_path, "svg"), "saving leaves no trace in the figure"
    assert all(files[ending].startswith(start) for ending, start in START.items())
    assert made.data.height >= 1
    assert len(made.description) > len(made.title) > 10
    root = ET.fromstring(files["svg"])
    assert root.findtext("{http://www.w3.org/2000/svg}title") == made.title
    assert made.description in "".join(root.itertext())
    assert b"CreationDate" not in files["pdf"]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_nothing_is_drawn_outside_the_picture(kind: str, name: str, results: dict[str, Any]) -> None:
    assert_inside(results[kind].plot(name))


CODE = r"""
import sys
import warnings
warnings.simplefilter("error", UserWarning)
warnings.filterwarnings("ignore", "'\w+' deprecated - use")
import matplotlib
before = matplotlib.rcParams.copy()
import crowdwise as cw
result = cw.aggregate(cw.simulate.crowd("hammer-spammer", tasks=150, workers=35, classes=3, per_task=6, seed=2).answers)
result.plot("workers").save("other.svg")
result.plot("confusion").save("other.png")
assert "matplotlib.pyplot" not in sys.modules
names = set(before) - {"backend"}  # reading which would load pyplot
assert len(names) > 100
assert {name: matplotlib.rcParams[name] for name in names} == {name: before[name] for name in names}
"""


def test_another_process_draws_the_same_and_matplotlib_stays_as_it_was(results: dict[str, Any], tmp_path: Path) -> None:
    start = [sys.executable, "-c", CODE]
    done = subprocess.run(
        start, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONHASHSEED": "7"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "other.svg").read_bytes() == rendered(results["labels"].plot("workers"), tmp_path, "svg")
    assert (tmp_path / "other.png").read_bytes() == rendered(results["labels"].plot("confusion"), tmp_path, "png")


def test_settings_of_the_user_do_not_change_a_chart(results: dict[str, Any], tmp_path: Path) -> None:
    usual = rendered(results["labels"].plot("classes"), tmp_path, "svg")
    own = {"font.size": 30, "axes.facecolor": "black", "savefig.bbox": "tight", "svg.fonttype": "none"}
    with matplotlib.rc_context(own):
        assert rendered(results["labels"].plot("classes"), tmp_path, "svg") == usual
        assert matplotlib.rcParams["font.size"] == 30


# -------------------------------------------------------------------------------------------------- what they show


def test_workers_are_the_best_with_intervals_and_flags(results: dict[str, Any]) -> None:
    result = results["labels"]
    drawn = result.plot("workers", top=12)
    best = result.workers.sort("rank").head(12)
    assert drawn.data.equals(best.select(drawn.data.columns))
    assert drawn.title == "Skill of the best 12 of 35 workers, best first"
    axes = drawn.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == best["worker"].to_list()
    ends = sorted(tuple(path.vertices[:, 0]) for path in axes.collections[0].get_paths())
    assert np.allclose(ends, sorted(best.select("low", "high").rows()))


def test_flagged_workers_have_a_mark_and_their_flags_in_words(results: dict[str, Any]) -> None:
    result = results["labels"]
    flagged = result.workers.filter(pl.col("flags") != "").sort("rank")
    assert flagged.height >= 2
    drawn = result.plot("workers", workers=flagged["worker"])
    marks = [each for each in drawn.figure.axes[0].collections if isinstance(each, PathCollection)]
    assert {each.get_label(): len(each.get_offsets()) for each in marks}["flagged"] == flagged.height
    assert set(flagged["flags"]) <= set(texts(drawn))
    assert drawn.data["worker"].to_list() == flagged["worker"].to_list()
    one = result.plot("workers", workers=flagged["worker"][0])
    assert one.data.height == 1


def test_a_crowd_too_large_for_names_is_drawn_without(tmp_path: Path) -> None:
    crowd = cw.simulate.crowd(tasks=400, workers=MAX_NAMED + 40, per_task=6, seed=1)
    drawn = cw.aggregate(crowd.answers).plot("workers", top=1000)
    assert drawn.data.height > MAX_NAMED
    assert not set(drawn.data["worker"]) & set(texts(drawn))
    assert drawn.figure.get_figheight() < 10
    assert rendered(drawn, tmp_path, "png").startswith(START["png"])


@pytest.mark.parametrize("worker", [None, "w03"])
def test_confusion_counts_are_those_of_a_slow_count(worker: str | None, results: dict[str, Any]) -> None:
    result = results["labels"]
    drawn = result.plot("confusion", worker=worker, values="counts")
    task = {name: n for n, name in enumerate(result.answers.tasks.to_list())}
    place = {name: k for k, name in enumerate(result.classes.to_list())}
    slow = np.zeros((3, 3))
    for row in result.answers.frame().iter_rows(named=True):
        if worker in (None, row["worker"]):
            slow[:, place[row["label"]]] += result.posterior[task[row["task"]]]
    found = drawn.data["answers"].to_numpy().reshape(3, 3)
    assert np.allclose(found, slow, atol=1e-4)
    assert np.allclose(drawn.data["share"].to_numpy().reshape(3, 3), slow / slow.sum(1, keepdims=True), atol=1e-5)
    written = [text.get_text() for text in drawn.figure.axes[0].texts]
    assert [text for text, n in zip(written, slow.flat, strict=True) if n >= 0.5] == [
        count(round(float(n))) for n in slow.flat if n >= 0.5
    ]
    assert (worker or "all workers") in drawn.title


def test_of_many_classes_the_most_frequent_are_drawn_and_shares_are_of_all() -> None:
    crowd = cw.simulate.crowd("confusion", tasks=400, workers=20, classes=24, per_task=5, accuracy=0.6, seed=1)
    result = cw.aggregate(crowd.answers)
    whole, part = result.plot("confusion"), result.plot("confusion", top=5)
    assert whole.data.height == 24 * 24
    assert part.data.height == 25
    assert "5 most frequent of 24 classes" in " ".join(" ".join(texts(part)).split())
    joined = part.data.join(whole.data, on=["truth", "label"], suffix="_whole")
    assert np.allclose(joined["share"], joined["share_whole"])
    assert not whole.figure.axes[0].texts, "too many cells for numbers"
    assert len(part.figure.axes[0].texts) == 25
    assert result.plot("classes", top=5).data.height == 5


def test_classes_are_shares_of_answers_and_of_tasks(results: dict[str, Any]) -> None:
    result = results["labels"]
    data = result.plot("classes").data
    votes = result.answers.frame()["label"].value_counts(normalize=True)
    wanted = dict(votes.rows())
    assert data["estimated"].is_sorted(descending=True)
    assert np.allclose(data["votes"], [wanted[label] for label in data["label"]])
    assert dict(zip(data["label"], data["estimated"], strict=True)) == pytest.approx(
        dict(zip(result.classes, result.prevalence.tolist(), strict=True))
    )


def test_tasks_count_the_labels_and_those_expected_to_be_wrong(results: dict[str, Any]) -> None:
    result = results["labels"]
    drawn = result.plot("tasks")
    p = result.labels["probability"].to_numpy()
    assert drawn.data["labels"].sum() == len(p)
    assert drawn.data["wrong"].sum() == pytest.approx((1 - p).sum())
    first = drawn.data.filter(pl.col("labels") > 0).row(0, named=True)
    assert first["labels"] == ((p >= first["low"]) & (p < first["high"])).sum()
    assert drawn.title == f"About {round((1 - p).sum())} of {len(p)} labels are expected to be wrong"


def test_known_labels_are_not_counted_as_doubtful() -> None:
    crowd = cw.simulate.crowd(tasks=60, workers=8, per_task=4, seed=1)
    result = cw.aggregate(crowd.answers.with_gold(np.where(np.arange(60) < 20, 0, -1)))
    drawn = result.plot("tasks")
    assert drawn.data["labels"].sum() == 40
    assert any("20 tasks with a known label" in text.replace("\n", " ") for text in texts(drawn))


def test_all_labels_known_leaves_nothing_to_show(tmp_path: Path) -> None:
    crowd = cw.simulate.crowd(tasks=30, workers=6, per_task=4, seed=1)
    result = cw.aggregate(crowd.answers.with_gold(np.zeros(30, np.int32)))
    for name, said in (("tasks", "There are no labels to show."), ("cost", "Nothing is left to ask.")):
        drawn = result.plot(name)
        assert said in texts(drawn)
        assert rendered(drawn, tmp_path, "svg")


def test_one_worker_has_no_known_skill(tmp_path: Path) -> None:
    result = cw.aggregate({"task": [1, 2, 3], "worker": ["a"] * 3, "label": ["x", "y", "x"]})
    drawn = result.plot("workers")
    assert "The skill of none of these workers is known." in texts(drawn)
    assert rendered(result.plot("workers", workers=["a"]), tmp_path, "svg")


def test_cost_is_the_curve_that_was_given(results: dict[str, Any]) -> None:
    result = results["labels"]
    curve = cw.cost_curve(result)
    few = dataclasses.replace(curve, points=curve.points.head(3))
    assert result.plot("cost", curve=few).data.equals(few.points)
    assert result.plot("cost").data.equals(curve.points)
    assert any("Errors that workers share stay" in text for text in texts(result.plot("cost")))


def test_an_image_has_its_clicks_and_objects(results: dict[str, Any]) -> None:
    result = results["points"]
    drawn = result.plot("image", picture=np.zeros((50, 40)))
    marks = [each for each in drawn.figure.axes[0].collections if isinstance(each, PathCollection)]
    off = result.clicks["object"].null_count()
    assert [len(each.get_offsets()) for each in marks] == [result.clicks.height - off, off]
    ellipses = [each for each in drawn.figure.axes[0].collections if isinstance(each, EllipseCollection)]
    assert sum(len(each.get_offsets()) for each in ellipses) == result.objects.height
    assert drawn.data.equals(result.objects)
    top, bottom = reversed(drawn.figure.axes[0].get_ylim())
    assert top < bottom, "y goes down, as in images"


def test_an_ellipse_reaches_two_standard_deviations(results: dict[str, Any]) -> None:
    result = results["points"]
    axes = result.plot("image").figure.axes[0]
    (found,) = [each for each in axes.collections if isinstance(each, EllipseCollection)]
    for n, row in enumerate(result.objects.iter_rows(named=True)):
        values, vectors = np.linalg.eigh([[row["var_x"], row["cov_xy"]], [row["cov_xy"], row["var_y"]]])
        assert (found.get_heights()[n], found.get_widths()[n]) == pytest.approx(tuple(4 * np.sqrt(values)))
        turn = np.radians(found.get_angles()[n])
        assert abs(vectors[:, 1] @ [np.cos(turn), np.sin(turn)]) == pytest.approx(1)


def test_points_on_a_line_and_in_space_are_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [("a", f"w{j}", *(centre + rng.normal(0, 0.5, 3))) for j in range(6) for centre in (10, 30, 60)]
    clicks = pl.DataFrame(rows, schema=["image", "worker", "x", "y", "z"], orient="row")
    for axes, box in ((["x"], (0, 100)), (["x", "y", "z"], (0, 0, 0, 100, 100, 100))):
        points = cw.Points(clicks.select("image", "worker", *axes), axes=axes, box=box)
        drawn = cw.aggregate(points, "fuzzy-c-means", objects=3).plot("image")
        assert rendered(drawn, tmp_path, "svg")
        assert drawn.data.height == 3
    assert any("clicks have 3 coordinates" in text.replace("\n", " ") for text in texts(drawn))


def test_pictures_are_read_from_files_or_refused(results: dict[str, Any], tmp_path: Path) -> None:
    from matplotlib.image import imsave

    imsave(tmp_path / "picture.png", np.random.default_rng(0).random((20, 30)))
    result = results["points"]
    assert len(result.plot("image", picture=tmp_path / "picture.png").figure.axes[0].images) == 1
    (tmp_path / "broken.png").write_bytes(b"no picture")
    for name in ("broken.png", "missing.png"):
        with pytest.raises(FileError, match=f"cannot read a picture from .*{name}"):
            result.plot("image", picture=str(tmp_path / name))
    with pytest.raises(ParameterError, match=r"picture has shape \(3,\); wanted is \(height, width\)"):
        result.plot("image", picture=[1, 2, 3])


def test_clusters_have_a_bar_each_or_are_counted_by_size(results: dict[str, Any]) -> None:
    result = results["pairs"]
    assert result.plot("clusters").data.equals(result.sizes.select("cluster", "items", "asked"))
    assert result.plot("clusters", top=2).data.height == 2
    rows = [(f"a{n}", f"b{n}", f"w{j}", 1) for n in range(50) for j in range(4)]
    pairs = pl.DataFrame(rows, schema=["left", "right", "worker", "answer"], orient="row")
    many = cw.aggregate(cw.Pairs(pairs), "pair-vote")
    assert many.n_clusters == 50
    assert many.plot("clusters").data.rows() == [(2, 50)]
    assert many.plot("clusters", top=7).data["items"].to_list() == [2] * 7


# --------------------------------------------------------------------------------------------------- hostile names


@pytest.mark.parametrize("name", NAMES["labels"])
def test_s1_hostile_names_are_drawn_as_text(name: str, hostile_result: cw.LabelsResult, tmp_path: Path) -> None:
    with no_warnings():
        drawn = hostile_result.plot(name)
        svg = rendered(drawn, tmp_path, "svg")
        assert rendered(drawn, tmp_path, "pdf")
    tags = {element.tag.split("}")[-1] for element in ET.fromstring(svg).iter()}
    assert not tags & {"script", "img", "a", "foreignObject"}
    for element in ET.fromstring(svg).iter():
        for key, value in element.attrib.items():
            assert not key.lower().startswith("on")
            assert not key.endswith("href") or value.startswith(("#", "data:image/png;base64,"))
    lines = [line.replace("\u202f", " ") for text in texts(drawn) for line in text.split("\n")]
    assert all(len(line) < 200 and line.isprintable() for line in lines)
    assert_inside(drawn)


ODD = ["$x^2$", "$\\frac{$", "a$b$c", "50 % & <b>", "漢字かな", "\U0001f9ff", "שלום", "e\u0301", "_under_", "."]


def test_mathtext_and_strange_letters_are_names_like_others(tmp_path: Path) -> None:
    rows = [(i, worker, ODD[(i + j // 5) % len(ODD)]) for i in range(40) for j, worker in enumerate(ODD)]
    result = cw.aggregate(pl.DataFrame(rows, schema=["task", "worker", "label"], orient="row"))
    with no_warnings():
        for name in ("workers", "confusion", "classes"):
            drawn = result.plot(name)
            assert {"$x^2$", "$\\frac{$", "a$b$c"} <= {text.split("  (")[0] for text in texts(drawn)}
            assert not any(text.get_parse_math() for text in drawn.figure.findobj(Text))
            for ending in START if name == "classes" else ("svg",):
                assert rendered(drawn, tmp_path, ending).startswith(START[ending])
            drawn.figure.savefig(io.BytesIO(), format="svg")  # also without the style of charts
        assert "$x^2$" in result.plot("confusion", worker="$x^2$").title


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("w17", "w17"),
        (17, "17"),
        (None, "None"),
        ("", "(no name)"),
        ("\u202e\u200f", "(no name)"),
        ("turned\u202egnorw", "turnedgnorw"),
        ("nul\0nul\x1b[2J", "nul nul [2J"),
        ("two\nlines\u2028three", "two lines three"),
        ("\U0001f9ff ok", "\ufffd ok"),
        ("\ud800", "\ufffd"),
        ("a" * 100, "a" * 17 + "…" + "a" * 10),
    ],
)
def test_names_are_cut_and_cleaned(name: object, wanted: str) -> None:
    assert shown(name) == wanted
    assert len(shown(name)) <= LONGEST_NAME


def test_fonts_that_are_installed_help_out(monkeypatch: pytest.MonkeyPatch, results: dict[str, Any]) -> None:
    """STIX, which comes with matplotlib, has letters that the usual font lacks."""
    from crowdwise.plots import text

    letter = "\U0001d4d0"
    assert shown(letter) == "\ufffd"
    monkeypatch.setattr(text, "FALLBACK_FONTS", (*FALLBACK_FONTS, "STIXGeneral"))
    for cached in (text.families, text._fonts):
        monkeypatch.setattr(text, cached.__name__, cached.__wrapped__)
    monkeypatch.setattr("crowdwise.plots.style.families", text.families)
    assert text.families() == [*families(), "STIXGeneral"]
    assert shown(letter) == letter
    frame = results["labels"].answers.frame().with_columns(pl.col("worker").replace("w00", letter))
    with no_warnings():
        cw.aggregate(frame).plot("workers", top=100).figure.draw_without_rendering()


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("labels", "worker", "no chart 'worker' for results of labels. There are classes, confusion, cost, tasks, "
         "workers. Did you mean 'workers'?"),
        ("labels", "clusters", "no chart 'clusters' for results of labels; it is a chart of pairs. There are classes, "
         "confusion, cost, tasks, workers."),
        ("points", "confusion", "no chart 'confusion' for results of points; it is a chart of labels. There are image, "
         "tasks, workers."),
        ("pairs", "cost", "no chart 'cost' for results of pairs; it is a chart of labels. There are clusters, tasks, "
         "workers."),
        ("pairs", ["tasks"], "no chart ['tasks'] for results of pairs. There are clusters, tasks, workers. "
         "Did you mean 'tasks'?"),
        ("pairs", 3, "no chart 3 for results of pairs. There are clusters, tasks, workers."),
    ],
)  # fmt: skip
def test_an_unknown_chart_is_refused_with_those_of_the_kind(
    kind: str, name: Any, said: str, results: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError) as caught:
        results[kind].plot(name)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("kind", "name", "options", "said"),
    [
        ("labels", "workers", {"tops": 3}, "the chart 'workers' of labels has no option 'tops'; it has top, workers. "
         "Did you mean 'top'?"),
        ("labels", "tasks", {"top": 3}, "the chart 'tasks' of labels has no option 'top'; it has none."),
        ("labels", "workers", {"top": 0}, "top is 0; wanted is a whole number from 1: how many are drawn"),
        ("labels", "workers", {"top": True}, "top is True; wanted is a whole number from 1: how many are drawn"),
        ("labels", "workers", {"workers": []}, "workers is empty; name some, or omit it"),
        ("labels", "confusion", {"values": "both"}, "values is 'both'; it can be 'shares' or 'counts'"),
        ("labels", "cost", {"curve": 3}, "curve is of type int; wanted is what crowdwise.cost_curve returns"),
        ("pairs", "clusters", {"top": 2.5}, "top is 2.5; wanted is a whole number from 1: how many are drawn"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(
    kind: str, name: str, options: dict[str, Any], said: str, results: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError) as caught:
        results[kind].plot(name, **options)
    assert str(caught.value) == said


def test_names_that_do_not_exist_are_refused(results: dict[str, Any]) -> None:
    with pytest.raises(UnknownIdError, match=r"no worker 'w99' in this result\."):
        results["labels"].plot("workers", workers=["w01", "w99"])
    with pytest.raises(UnknownIdError, match=r"no worker 'w99' in this result\."):
        results["labels"].plot("confusion", worker="w99")
    with pytest.raises(UnknownIdError, match="no image 'b' in these clicks"):
        results["points"].plot("image", image="b")


def test_without_matplotlib_the_extra_is_named(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingError) as caught:
        results["labels"].plot("workers")
    assert str(caught.value) == "plot needs matplotlib, which is not installed. Run: pip install 'crowdwise[plot]'"


def test_charts_of_ones_own_can_be_registered_without_matplotlib() -> None:
    block = "import sys\nsys.modules['matplotlib'] = None\nfrom crowdwise.plots import Chart, canvas, chart, shown\n"
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("chart.gif", "a chart is saved as .svg, .png or .pdf; 'chart.gif' ends in '.gif'"),
        ("chart", "a chart is saved as .svg, .png or .pdf; 'chart' has no ending"),
    ],
)
def test_other_endings_are_refused(file: str, said: str, results: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        results["labels"].plot("classes").save(tmp_path / file)
    assert str(caught.value) == said
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_whole_or_not_at_all(
    results: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = results["labels"].plot("classes")
    path = tmp_path / "new" / "chart.SVG"
    assert drawn.save(str(path)) == path
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="dpi is 0; wanted is a whole number from 10 to 1200"):
        drawn.save(path, dpi=0)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(FileError, match=r"cannot write .*an existing file was not changed"):
        drawn.save(path)
    assert [each.read_bytes() for each in path.parent.iterdir()] == [before]


def test_resolution_is_that_of_dpi(results: dict[str, Any], tmp_path: Path) -> None:
    from matplotlib.image import imread

    drawn = results["labels"].plot("tasks")
    wide = {dpi: imread(drawn.save(tmp_path / f"{dpi}.png", dpi=dpi)).shape[1] for dpi in (50, 100)}
    assert wide == {50: 350, 100: 700}


# ------------------------------------------------------------------------------------------- notebooks, own charts


def test_a_notebook_shows_the_chart_with_alternative_text(results: dict[str, Any]) -> None:
    drawn = results["labels"].plot("confusion")
    shows, about = drawn._repr_mimebundle_()
    assert set(shows) == {"text/plain", "image/svg+xml", "image/png"}
    assert shows["text/plain"] == repr(drawn)
    assert shows["image/svg+xml"].lstrip().startswith("<?xml")
    assert base64.b64decode(shows["image/png"]).startswith(START["png"])
    assert about == {kind: {"alt": drawn.description} for kind in ("image/svg+xml", "image/png")}
    assert set(drawn._repr_mimebundle_(include=["image/png"])[0]) == {"image/png"}
    assert set(drawn._repr_mimebundle_(exclude={"image/png"})[0]) == {"text/plain", "image/svg+xml"}
    assert repr(drawn) == "Chart('Confusion matrix of all workers together': 9 rows of truth, label, answers, share)"


def test_a_chart_is_a_value(results: dict[str, Any]) -> None:
    drawn: Any = results["labels"].plot("classes")
    with pytest.raises(dataclasses.FrozenInstanceError):
        drawn.title = "another"


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OwnResult(cw.LabelsResult):
    """A result of a kind that plots does not know."""

    kind = "own"


def test_a_kind_of_ones_own_has_the_chart_of_workers_and_adds_others(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = results["labels"]
    own = OwnResult(**{field.name: getattr(labels, field.name) for field in dataclasses.fields(labels)})
    monkeypatch.setitem(CHARTS, "own", {})
    assert list(charts("own")) == ["workers"]
    assert own.plot("workers").title == "Skill of the best 30 of 35 workers, best first"

    @chart("own", "answers")
    def answers_chart(result: Any, *, bins: int = 5) -> Chart:
        data = result.workers.select("worker", "answers")
        figure, axes = canvas(3, "Answers per worker")
        axes.hist(data["answers"], bins)
        return Chart("Answers per worker", f"{data.height} workers.", data, figure)

    assert own.plot("answers", bins=7).data.height == 35
    assert "answers" not in charts("labels")
    with pytest.raises(ParameterError, match="no chart 'cost' for results of own; it is a chart of labels"):
        own.plot("cost")


def test_the_guide_names_every_chart() -> None:
    text = (ROOT / "docs" / "guide" / "plots.md").read_text()
    assert all(f'"{name}"' in text for listed in NAMES.values() for name in listed)
