"""Names that look alike and are different: in case, blanks, invisible characters, accents or letters of other scripts.

Two keys are compared. The first is the name in lower case, without the differences of encoding that Unicode itself
undoes (NFKC: composed accents, full-width letters) and without what cannot be seen. The second also has every Cyrillic
or Greek letter that looks like a Latin one replaced by it, before the case is: so B is like the Cyrillic capital Ve,
and b is not like the small one. The letters are those that Unicode's table of confusables (UTS 39) gives for names.
"""

from __future__ import annotations

import unicodedata

import polars as pl

NOT_ASCII = r"[^\x20-\x7e]"
VARIATIONS = [chr(n) for n in range(0xFE00, 0xFE10)]  # of the letter before, as text or in colour
MAX_CHARS = 1000  # compared
MAX_SHOWN = 3  # groups in a warning, and names of a group
CYRILLIC = "АВЕЅІЈКМНОРСТУХѴԚԜҮаеѕіјкорсухһѵԁԛԝ", "ABESIJKMHOPCTYXVQWYaesijkopcyxhvdqw"
GREEK = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοναικρυϲ", "ABEZHIKMNOPTYXovaikpuc"
LATIN = "ıɡ", "ig"
LETTERS = {
    ord(odd): usual for odds, usuals in (CYRILLIC, GREEK, LATIN) for odd, usual in zip(odds, usuals, strict=True)
}


def look_alikes(ids: pl.Series, role: str) -> list[str]:
    """Return a warning about texts that look alike, such as "cat" and "Cat ", if there are any.

    >>> look_alikes(pl.Series(["ann", "Ann ", "bob", "b\\u043eb"]), "worker")
    ["2 worker name(s) look alike but are kept as different names: 'ann' and 'Ann '; 'bob' and 'b\\\\u043eb'"]
    """
    if ids.dtype != pl.String:
        return []
    groups = dict.fromkeys(_groups(ids, _folded(ids)), repr)
    if ids.str.contains(NOT_ASCII).any():
        seen = {name for names in groups for name in names}
        groups |= {names: ascii for names in _groups(ids, _folded(ids, LETTERS)) if not seen.issuperset(names)}
    if not groups:
        return []
    shown = "; ".join(
        " and ".join(written(name[:40]) for name in names[:MAX_SHOWN])
        for names, written in list(groups.items())[:MAX_SHOWN]
    )
    return [f"{len(groups)} {role} name(s) look alike but are kept as different names: {shown}"]


def _folded(ids: pl.Series, letters: dict[int, str] | None = None) -> pl.Series:
    """Return a key of each text. Those in ASCII, most as a rule, are folded together."""
    text = ids.str.slice(0, MAX_CHARS)
    key = text.str.to_lowercase().str.strip_chars().str.replace_all(r"\s+", " ")
    other = text.str.contains(NOT_ASCII).fill_null(value=False)
    if not other.any():
        return key
    odd = pl.Series([_key(each, letters) for each in text.filter(other).to_list()], dtype=pl.String)
    return key.scatter(other.arg_true(), odd)


def _key(text: str, letters: dict[int, str] | None) -> str:
    text = unicodedata.normalize("NFKC", text)
    text = (text if letters is None else text.translate(letters)).casefold()
    seen = "".join(letter for letter in text if not _is_hidden(letter))
    return " ".join(unicodedata.normalize("NFKC", seen).split())


def _is_hidden(letter: str) -> bool:
    """Return whether a letter cannot be seen: it has no glyph, or chooses that of the letter before it."""
    return (unicodedata.category(letter) in ("Cf", "Cc") and not letter.isspace()) or letter in VARIATIONS


def _groups(ids: pl.Series, keys: pl.Series) -> list[tuple[str, ...]]:
    """Return the texts that share a key, in the order of the texts."""
    alike = keys.is_duplicated()
    if not alike.any():
        return []
    table = pl.DataFrame({"key": keys.filter(alike), "id": ids.filter(alike)})
    return [tuple(names) for names in table.group_by("key", maintain_order=True).agg("id")["id"].to_list()]
