"""Sections by registry: one Python and one TypeScript file each, generated types, options, glossary, no fits."""

from __future__ import annotations

import html
import importlib
import importlib.util
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
from browsing import unfold
from test_bundle import page, run  # noqa: F401

import crowdwise as cw
from crowdwise import report as reporting
from crowdwise.engine import Model
from crowdwise.errors import ParameterError
from crowdwise.metrics import evaluate
from crowdwise.report import Table, registry, table_of
from crowdwise.report.glossary import GLOSSARY, explained
from crowdwise.report.page import page_of
from crowdwise.report.registry import SECTIONS, kinds, section, sections_of
from crowdwise.report.render import page_html
from crowdwise.report.sections.labels.curve import Curve, CurvePoint

ROOT = Path(__file__).resolve().parents[2]
PYTHON, SCRIPTS = Path(reporting.__file__).parent / "sections", ROOT / "page" / "src" / "sections"
KINDS = ["labels", "points", "pairs"]


@pytest.fixture(scope="session")
def generate() -> Any:
    """The module page/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "page" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def results() -> dict[str, Any]:
    """A result of each kind, and one of a model with groups of workers."""
    pinwheel = cw.simulate.pinwheel(clusters=3, per_cluster=12, asked=24, workers=4, each=20, seed=26)
    frame = cw.simulate.crowd("hammer-spammer", tasks=60, workers=12, classes=3, per_task=6, seed=3).answers.frame()
    return {
        "labels": cw.aggregate(cw.Labels(frame.with_columns(seconds=2.5))),
        "groups": cw.aggregate(cw.simulate.triangle(40, seed=1, fresh=0).answers, "groups"),
        "points": cw.aggregate(cw.simulate.clicks("E", seed=1).points),
        "pairs": cw.aggregate(pinwheel.pairs, features=pinwheel.features),
        "bare pairs": cw.aggregate(cw.Pairs(pinwheel.pairs.frame()), "pair-vote"),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_s15_every_page_has_the_notices_of_the_software_in_it(results: dict[str, Any], kind: str) -> None:
    made = page_html(page_of(results[kind], {}))
    notices = (Path(reporting.__file__).parent / "static" / "THIRD_PARTY_NOTICES.txt").read_text()
    (shown,) = re.findall(r"<summary>Licences of the software in this page</summary><pre>(.*?)</pre>", made, re.DOTALL)
    assert html.unescape(shown) == notices
    assert "Copyright 2020-2025 Observable, Inc." in shown


@pytest.fixture
def toy() -> Iterator[str]:
    """A kind of which nothing is registered yet."""
    yield "toy"
    SECTIONS.pop("toy", None)


# -------------------------------------------------------------------------------------------------- one file each


def test_a_module_registers_the_section_of_its_path_and_no_other() -> None:
    assert sorted(kinds()) == ["any", *sorted(KINDS)]
    for kind in kinds():
        sections_of(kind)
        modules = {path.stem for path in (PYTHON / kind).glob("*.py") if not path.stem.startswith("_")} - {"summary"}
        assert modules == set(SECTIONS[kind]), "one module per section"
        for each in SECTIONS[kind].values():
            assert (each.kind, each.build.__module__) == (kind, f"crowdwise.report.sections.{kind}.{each.id}")


def test_a_section_has_a_script_if_and_only_if_it_returns_no_tables(generate: Any) -> None:
    scripts = {f"{each.kind}/{each.id}" for each, _ in generate.scripted()}
    assert scripts == {f"{path.parent.name}/{path.stem}" for path in SCRIPTS.rglob("*.ts")}
    others = {f"{kind}/{id}" for kind, found in SECTIONS.items() for id in found if kind in kinds()} - scripts
    assert others == {"any/workers", "pairs/clusters", "pairs/doubts"}


@pytest.mark.parametrize("kind", KINDS)
def test_sections_have_an_order_a_title_and_an_intro(kind: str) -> None:
    found = sections_of(kind)
    assert len({each.order for each in found}) == len(found)
    assert all(each.title and each.nav and each.intro.endswith(".") for each in found)


# ---------------------------------------------------------------------------------------------------- generated types


def test_the_kept_types_are_those_of_the_dataclasses(generate: Any) -> None:
    assert generate.FILE.read_text() == generate.generated(), "run `make page`"


def test_a_field_that_is_renamed_changes_the_types(generate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_dataclass("Curve", [("headline", str), ("dots", list[CurvePoint])])

    def build(result: Any) -> Any: ...

    build.__annotations__ = {"return": other}
    monkeypatch.setitem(SECTIONS["labels"], "curve", replace(SECTIONS["labels"]["curve"], build=build))
    assert generate.FILE.read_text() != generate.generated()
    assert "  dots: CurvePoint[];" in generate.generated()


def test_a_script_that_reads_another_field_does_not_compile(page: Path) -> None:  # noqa: F811
    kept = (page / "src" / "generated.ts").read_text()
    (page / "src" / "generated.ts").write_text(kept.replace("  points: CurvePoint[];", "  dots: CurvePoint[];"))
    try:
        done = run("npm", "run", "check", cwd=page)
    finally:
        (page / "src" / "generated.ts").write_text(kept)
    assert re.findall(r"^(\S+)\(\d+,\d+\): error", done.stdout, re.MULTILINE)[0] == "src/sections/labels/curve.ts"


class Spot(NamedTuple):
    x: float
    y: float | None


@dataclass(frozen=True)
class Inner:
    spots: list[Spot]


@dataclass(frozen=True)
class Outer:
    inner: Inner | None
    names: dict[str, list[str | None]]
    pair: tuple[int, bool]
    status: Literal["ok", "known"]


def test_types_of_python_and_of_the_script(generate: Any) -> None:
    types = generate.Types()
    assert types.of(Outer) == "Outer"
    assert [text for _, text in types.declared.values()] == [
        "export interface Outer {\n  inner: Inner | null;\n  names: Record<string, (string | null)[]>;\n"
        '  pair: [number, boolean];\n  status: "ok" | "known";\n}\n',
        "export interface Inner {\n  spots: Spot[];\n}\n",
        "export type Spot = [x: number, y: number | null];\n",
    ]
    for wrong in (set[int], tuple[int, ...], dict[int, str], object):
        with pytest.raises(TypeError, match="no TypeScript for"):
            types.of(wrong)
    with pytest.raises(TypeError, match="two types are named Inner"):
        types.of(make_dataclass("Inner", ["x"]))


# ------------------------------------------------------------------------------------------------------------ options


def test_options_are_those_of_the_sections_and_others_are_refused(results: dict[str, Any]) -> None:
    wanted = {
        "labels": "content, coverage, cost, judged, scaling, comparison, command",
        "points": "pictures, content, truth, within, judged, command",
        "pairs": "pictures, content, command",
    }
    for kind, names in wanted.items():
        with pytest.raises(ParameterError, match=f"the report of {kind} has no option 'models'; it has {names}"):
            page_of(results[kind], {"models": ["mace"]})


def test_a_section_without_data_its_link_and_its_terms_do_not_appear(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = SECTIONS["labels"]["times"]
    monkeypatch.setitem(SECTIONS["labels"], "times", replace(entry, terms=("noise",)))
    full = page_of(results["labels"], {})
    monkeypatch.setitem(SECTIONS["labels"], "times", replace(entry, terms=("noise",), build=lambda result: None))
    empty = page_of(results["labels"], {})
    assert (full["times"] is not None, empty["times"]) == (True, None)
    assert "noise" in dict(full.glossary)
    assert "noise" not in dict(empty.glossary)
    assert 'href="#times"' in page_html(full)
    assert not re.search('(id="|href="#)times', page_html(empty))


def test_sections_of_any_kind_give_way_to_its_own(toy: str) -> None:
    assert [each.id for each in sections_of(toy)] == ["workers"]

    @section(toy, "workers", order=5, title="Own")
    def workers(result: Any, *, colour: str = "red") -> Table:
        return table_of(result.workers)

    [own] = sections_of(toy)
    assert (own.title, own.nav, own.options) == ("Own", "Own", ["colour"])


def test_no_report_without_a_summary(toy: str) -> None:
    with pytest.raises(ParameterError, match="no report is registered for results of the kind 'toy'"):
        registry.summary_of(toy)


# ------------------------------------------------------------------------------------------------------------ no fits


@pytest.mark.parametrize("name", ["labels", "groups", "points", "pairs"])
def test_a_page_fits_no_model(name: str, results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a model was fitted")

    monkeypatch.setattr(Model, "fit", refused)
    with pytest.raises(AssertionError, match="a model was fitted"):
        results[name].model.fit(results[name].answers)
    assert page_of(results[name], {}).sections


def test_comparison_and_cost_curve_are_those_passed_in(results: dict[str, Any]) -> None:
    result = results["labels"]
    curve = cw.cost_curve(result)
    frame = cw.compare(result.answers, ["majority-vote", "mace"], folds=0, against=result)
    made = page_of(result, {"cost": curve, "comparison": frame})
    assert made["curve"] == page_of(result, {})["curve"]
    assert "One more answer per task: about +" in made["curve"].headline
    assert isinstance(made["curve"], Curve)
    assert [row.model for row in made["models"].rows] == [result.model.name, "majority-vote", "mace"]
    assert [row.differs for row in made["models"].rows] == [0, *frame["differs"]]


# ----------------------------------------------------------------------------------------------------------- glossary


def sources() -> str:
    """Everything that may name a term: the report, and the flags of workers."""
    files = [*PYTHON.rglob("*.py"), PYTHON.parent / "page.py", *(PYTHON.parents[1] / "rating").glob("*.py")]
    return "".join(path.read_text() for path in files)


@pytest.mark.parametrize("kind", KINDS)
def test_terms_of_sections_are_in_the_glossary(kind: str) -> None:
    for each in sections_of(kind):
        assert len(explained(each.terms, kind)) == len(set(each.terms))


def test_every_word_of_the_glossary_may_be_used() -> None:
    text = sources()
    assert [term for term in GLOSSARY if f'"{term.split("/")[0]}"' not in text] == []
    assert all(sentence.endswith((".", ")")) and len(sentence) < 240 for sentence in GLOSSARY.values())


def test_a_flag_is_explained_where_a_worker_has_it(results: dict[str, Any]) -> None:
    flags = {flag for row in page_of(results["labels"], {})["workers"].rows for flag in row.flags}
    assert flags
    assert flags <= set(dict(page_of(results["labels"], {}).glossary))
    source = inspect.getsource(importlib.import_module("crowdwise.rating.workers"))
    assert set(re.findall(r'^        "([a-z ]+)": r\.', source, re.MULTILINE)) <= set(GLOSSARY)


@pytest.mark.parametrize("name", ["labels", "groups", "points", "pairs", "bare pairs"])
def test_every_term_of_the_glossary_occurs_on_the_page(
    name: str, results: dict[str, Any], visit: Any, tmp_path: Path
) -> None:
    result, options = results[name], {}
    if name == "groups":
        against = evaluate({"groups": result}, result.labels.select("task", "label"))
        votes = cw.compare(result.answers, ["majority-vote"], folds=0, against=result)
        options = {"judged": against, "comparison": votes}
    if name == "points":
        options = {"judged": [{"method": "m", "success": 0.5, "ase": [0.1, 0.2], "mae": 0.1}]}
    glossary = page_of(result, options).glossary
    opened = visit(result.report(tmp_path / "page.html", **options))
    unfold(opened)
    opened.locator("#glossary").evaluate("e => e.remove()")
    text = opened.locator("main").text_content().casefold()
    assert [term for term, _ in glossary if term.casefold() not in text] == []
    assert len(glossary) > 8
