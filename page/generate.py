"""Write src/generated.ts: TypeScript types of the data of every section, and the table of the functions that draw them.

python generate.py [FILE]

A dataclass becomes an interface, a NamedTuple a labelled tuple.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from crowdwise.report.page import Shared
from crowdwise.report.registry import Section, kinds, sections_of
from crowdwise.report.tables import Table

FILE = Path(__file__).parent / "src" / "generated.ts"
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", NoneType: "null"}


class Types:
    """The TypeScript of Python types; those with a name are declared."""

    def __init__(self) -> None:
        self.declared: dict[str, tuple[type, str]] = {}

    def of(self, kind: Any) -> str:
        """Return the TypeScript of a type."""
        origin, inside = get_origin(kind), get_args(kind)
        if kind in PLAIN:
            return PLAIN[kind]
        if origin is Literal:
            return " | ".join(f'"{value}"' for value in inside)
        if origin in (Union, UnionType):
            return " | ".join(self.of(each) for each in inside)
        if origin is list:
            each = self.of(inside[0])
            return f"({each})[]" if " | " in each else f"{each}[]"
        if origin is tuple and Ellipsis not in inside:
            return f"[{', '.join(map(self.of, inside))}]"
        if origin is dict and inside[0] is str:
            return f"Record<string, {self.of(inside[1])}>"
        if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
            return self._declare(kind)
        raise TypeError(f"no TypeScript for {kind}")

    def _declare(self, kind: type) -> str:
        name = kind.__name__
        if name not in self.declared:
            self.declared[name] = kind, ""  # before its fields, so that declarations keep the order of use
            hints = get_type_hints(kind)
            if is_dataclass(kind):
                lines = [f"  {field.name}: {self.of(hints[field.name])};\n" for field in fields(kind)]
                text = f"export interface {name} {{\n{''.join(lines)}}}\n"
            else:
                text = f"export type {name} = [{', '.join(f'{n}: {self.of(t)}' for n, t in hints.items())}];\n"
            self.declared[name] = kind, text
        if self.declared[name][0] is not kind:
            raise TypeError(f"two types are named {name}: {kind} and {self.declared[name][0]}")
        return name


def scripted() -> Iterator[tuple[Section, Any]]:
    """Yield the sections that a script draws, with the type of their data."""
    for kind in kinds():
        for section in sections_of(kind):
            returned = get_type_hints(section.build)["return"]
            kinds_of_data = get_args(returned) if isinstance(returned, UnionType) else [returned]
            data = next(each for each in kinds_of_data if each is not NoneType)
            if section.kind == kind and data not in (Table, list[Table]):
                yield section, data


def generated() -> str:
    """Return the text of generated.ts."""
    types = Types()
    shared = types.of(Shared)
    found = [(f"{each.kind}/{each.id}", f"{each.kind}_{each.id}", types.of(data)) for each, data in scripted()]
    parts = [
        "// Written by page/generate.py from the dataclasses of crowdwise.report. Do not edit: run `make page`.\n",
        *(f'import {{ draw as {name} }} from "./sections/{path}";\n' for path, name, _ in found),
        *(f"\n{text}" for _, text in types.declared.values()),
        "\n/** The data of every section that a script draws. */\nexport interface Sections {\n",
        *(f'  "{path}": {kind};\n' for path, _, kind in found),
        "}\n\n/** The function that draws each of them. */\n",
        f"type Draw<Data> = (data: Data, shared: {shared}) => HTMLElement[];\n",
        "export const SECTIONS: { [Path in keyof Sections]: Draw<Sections[Path]> } = {\n",
        *(f'  "{path}": {name},\n' for path, name, _ in found),
        "};\n",
    ]
    return "".join(parts)


if __name__ == "__main__":
    (Path(sys.argv[1]) if len(sys.argv) > 1 else FILE).write_text(generated(), "utf-8")
