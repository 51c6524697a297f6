"""Words of charts: numbers, and names that strangers chose, made fit to be drawn."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable

from ..report.text import count, many, percent

LONGEST_NAME = 28  # characters of a name that are drawn
FONT = "DejaVu Sans"  # comes with matplotlib
FALLBACK_FONTS = (  # used where they are installed, for characters that FONT lacks
    "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC", "Hiragino Sans",
    "Yu Gothic", "Malgun Gothic", "Apple SD Gothic Neo", "Noto Sans", "Noto Sans Devanagari", "Noto Sans Thai",
)  # fmt: skip
UNKNOWN = "\ufffd"  # drawn for a character that no font has
NO_NAME = "(no name)"
NARROW_BLANK = "\u202f"


def shown(name: object, longest: int = LONGEST_NAME) -> str:
    """A name as it is drawn: the middle of a long one is left out, control characters are not drawn.

    >>> shown("https://example.org/pictures/2024/cat-0001.png")
    'https://example.o…t-0001.png'
    >>> shown("two\\nlines")
    'two lines'
    """
    text = str(name)
    if len(text) > longest:
        tail = (longest - 1) * 3 // 8
        text = f"{text[: longest - 1 - tail]}…{text[-tail:]}"
    return "".join(map(_drawn, text)).strip() or NO_NAME


def _drawn(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    if category == "Cf":  # marks of direction and joiners: they would reorder what stands around them
        return ""
    return character if any(has(ord(character)) for has in _fonts()) else UNKNOWN


@functools.cache
def families() -> list[str]:
    """The fonts of a chart, in the order in which a character is looked up."""
    from matplotlib.font_manager import fontManager

    installed = set(fontManager.get_font_names())
    return [FONT, *(name for name in FALLBACK_FONTS if name in installed)]


@functools.cache
def _fonts() -> list[Callable[[int], bool]]:
    """Of each font, which characters it has."""
    from matplotlib.font_manager import findfont, get_font

    return [get_font(findfont(name)).get_charmap().__contains__ for name in families()]


__all__ = ["NARROW_BLANK", "count", "families", "many", "percent", "shown"]
