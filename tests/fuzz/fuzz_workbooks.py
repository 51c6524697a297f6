"""Fuzzer of what reads Excel workbooks. They are made from rows, so that what vanishes is seen."""

from __future__ import annotations

import random
import re
import zipfile
from html import escape
from pathlib import Path

from fuzz_text import File, cells, text_of
from fuzzing import Fuzzer, outcome
from mutations import mutant

from crowdwise.io import read_table

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
TEXTS = ("a", "b", "5", "é", "🙂", "&", "<", '"', ",", "nail", "  ", "\n")
PLACES = ("A1", "XFD1048576", "A1048576", "XFD1", "B3", "A0", "ZZZ9999999", "", "1", "a1", "C2:D9")
NUMBERS = ("0", "-1", "1", "2", "7", "1048576", "4294967295", "4294967296", "x", "", "1e9")
KINDS = ("s", "str", "inlineStr", "b", "e", "n", "d", "x", "")


class Sheet:
    """How a sheet is written: with or without places of rows and cells, and shared texts."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.shared = rng, list[str]()
        self.rows, self.cells, self.gaps = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.3

    def cell(self, place: str, text: str) -> str:
        at = f' r="{place}"' if self.cells else ""
        kind = self.rng.choice(("s", "str", "inlineStr", "styled"))
        if text == "":
            return f"<c{at}/>" if not self.cells or self.rng.random() < 0.5 else ""
        if kind == "s":
            self.shared.append(f'<si><t xml:space="preserve">{escape(text)}</t></si>')
            return f'<c{at} t="s"><v>{len(self.shared) - 1}</v></c>'
        if kind == "styled":
            runs = "".join(f'<r><t xml:space="preserve">{escape(each)}</t></r>' for each in (text[:1], text[1:]))
            self.shared.append(f"<si>{runs}<rPh><t>x</t></rPh></si>")
            return f'<c{at} t="s"><v>{len(self.shared) - 1}</v></c>'
        if kind == "str":
            return f'<c{at} t="str"><f>A1</f><v xml:space="preserve">{escape(text)}</v></c>'
        return f'<c{at} t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'

    def text(self, rows: list[tuple[str, ...]]) -> str:
        data, number = "", 0
        for row in rows:
            number += 1 + (self.gaps and number > 0 and (self.rows or self.cells) and self.rng.random() < 0.2)
            made = "".join(self.cell(f"{chr(65 + n)}{number}", each) for n, each in enumerate(row))
            data += f'<row r="{number}">{made}</row>' if self.rows or self.gaps else f"<row>{made}</row>"
        size = self.rng.choice(
            ("", "", '<dimension ref="A1:C4"/>', '<dimension ref="A1"/>', '<dimension ref="Z9:A1"/>')
        )
        return f'<worksheet xmlns="{MAIN}">{size}<sheetData>{data}</sheetData></worksheet>'


def parts_of(rng: random.Random, rows: list[tuple[str, ...]]) -> dict[str, str]:
    """Return the files of a workbook of one to three sheets; the first that is not empty has the rows."""
    sheet, names, first = Sheet(rng), [f"Sheet{n}" for n in range(rng.randint(1, 3))], 0
    if len(names) > 1 and rng.random() < 0.3:
        first = 1
    parts = dict[str, str]()
    for n, _ in enumerate(names):
        parts[f"xl/worksheets/sheet{n}.xml"] = sheet.text(rows if n >= first else [])
    hidden = {n: rng.choice(("", "", ' state="hidden"', ' state="veryHidden"')) for n, _ in enumerate(names)}
    listed = "".join(f'<sheet name="{name}" sheetId="{n + 1}"{hidden[n]} r:id="r{n}"/>' for n, name in enumerate(names))
    book = f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>'
    slash = rng.choice(("", "/xl/"))
    links = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="{slash}worksheets/sheet{n}.xml"/>'
        for n, _ in enumerate(names)
    )
    main = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    return {
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}">{main}</Relationships>',
        "xl/workbook.xml": book,
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{links}</Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{"".join(sheet.shared)}</sst>',
        **parts,
    }


def put(path: Path, parts: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def damage(parts: dict[str, str], rng: random.Random) -> None:
    """Change a place, a row number, a kind of a cell, a file, or the list of files."""
    name = rng.choice([*parts, *(each for each in parts if "sheet" in each)])
    attribute, odd = rng.choice(((r' r="[A-Z]+\d+"', PLACES), (r' r="\d+"', NUMBERS), (r' t="\w+"', KINDS)))
    if rng.random() < 0.6:
        found = list(re.finditer(attribute, parts[name]))
        if found:
            place = rng.choice(found)
            new = f'{place[0].partition("=")[0]}="{rng.choice(odd)}"'
            parts[name] = parts[name][: place.start()] + new + parts[name][place.end() :]
            return
    if rng.random() < 0.1:
        del parts[name]
    elif rng.random() < 0.1:
        parts[rng.choice(list(parts))] = parts[name]
    else:
        parts[name] = mutant("a.xml", parts[name].encode(), rng.randrange(10**9)).decode(errors="replace")


def workbook(rng: random.Random, folder: Path) -> File:
    """Make a workbook, and in half of the cases damage it."""
    header = ("task", "worker", "label")
    rows = [("x" + text_of(rng, TEXTS), *(text_of(rng, TEXTS) for _ in "ab")) for _ in range(rng.randint(1, 8))]
    parts, changed = parts_of(rng, [header, *rows]), rng.random() < 0.6
    for _ in range(rng.choice((1, 1, 2)) if changed else 0):
        damage(parts, rng)
    path = put(folder / "answers.xlsx", dict(parts))
    if changed and rng.random() < 0.2:
        path.write_bytes(mutant("a.bin", path.read_bytes(), rng.randrange(10**9)))
    return File(path, None if changed else rows)


def check_workbook(file: File) -> str:
    """A sound workbook is read exactly, except for rows between others that are empty."""
    if file.rows is None:
        return outcome(lambda: read_table(file.path))
    found = cells(read_table(file.path).frame)
    assert [row for row in found if any(row)] == file.rows
    return "answered"


FUZZERS = [Fuzzer("workbooks", workbook, check_workbook, slice=60)]
