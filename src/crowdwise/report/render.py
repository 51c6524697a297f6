"""Plain values to HTML: one self-contained file that makes no network request.

All text is escaped by the templates, or is JSON that the page's script puts into text nodes. The policy of the page
allows its own script and styles by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from importlib.resources import files
from typing import Any

from .page import Page
from .text import MAX_NAME_CHARS, short

MAX_NOTEBOOK_ROWS = 20


def page_html(page: Page) -> str:
    """Return the page as HTML."""
    from .. import __version__

    script, style, plot = (_static(name) for name in ("page.js", "page.css", "plot.css"))
    csp = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}' '{_hash(plot)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"style": style, "script": script, "data": inert_json(page.as_dict())}
    safe = {name: _markup()(text) for name, text in parts.items()}
    about = {"csp": csp, "version": __version__, "notices": _static("THIRD_PARTY_NOTICES.txt")}
    return str(_template("page.html").render(page=page, summary=page.summary, **about, **safe))


def notebook_html(summary: Any, workers: list[dict[str, Any]], total: int) -> str:
    """Return tiles, facts and the first workers for a notebook, without a script and with scoped styles."""
    rows = [
        {
            **row,
            "worker": short(row["worker"], MAX_NAME_CHARS),
            "flags": row["flags"].split("; ") if row["flags"] else [],
        }
        for row in workers
    ]
    about = {"summary": summary, "heads": summary.heads, "scope": "crowdwise-report", "total_workers": total}
    return str(_template("notebook.html").render(workers=rows, **about))


def inert_json(values: Any) -> str:
    """Return JSON in which every character that could end its HTML element is escaped."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "backslashreplace").decode()  # lone surrogates cannot be written


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@functools.cache
def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def _markup() -> Any:
    from markupsafe import Markup

    return Markup


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader(str(__package__), "templates")
    return Environment(loader=loader, autoescape=True)


def _template(name: str) -> Any:
    return _environment().get_template(name)
