"""Times as annotation platforms write them: ISO 8601, "Thu Oct 09 07:30:20 PDT 2025", "9/1/2015 12:00:00", seconds."""

from __future__ import annotations

from functools import partial

import polars as pl

INSTANT = pl.Datetime("us", "UTC")
# Hours from UTC of the names of zones that exports have. Any other name makes a time unreadable.
ZONES = {
    "Z": 0, "UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "AKST": -9, "AKDT": -8, "HST": -10, "BST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9,
}  # fmt: skip
_CLOCK = r"(\d{1,2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?"
_HALF = r"(?:[ \u00a0\u202f]?([AaPp])\.?[Mm]\.?)?"  # of the day; browsers write a narrow space before it
_ISO = rf"^(\d{{4}}-\d{{2}}-\d{{2}})(?:[T ]{_CLOCK}{_HALF})? ?([A-Z]{{1,4}}|[+-]\d{{2}}:?\d{{2}})?$"
_NAMED = rf"^[A-Z][a-z]{{2}} ([A-Z][a-z]{{2}} \d{{1,2}}) {_CLOCK}{_HALF} ([A-Z]{{1,4}}) (\d{{4}})$"
UNORDERED = r"^\s*\d{1,2}[/.-]\d{1,2}[/.-]"  # dates that do not say which number is the day
_NUMBERS = r"^(\d{1,2})([/.-])(\d{1,2})[/.-]"  # the beginning of a date whose order of day and month is not said
_SLASHED = rf"{_NUMBERS}(\d{{4}})(?:(?:T|,? ){_CLOCK}{_HALF})?$"
MIN_MILLISECONDS = 1e11  # numbers from here on are milliseconds since 1970, smaller ones seconds


def instants(column: pl.Series, day_first: bool | None = None) -> pl.Series:
    """Return times as instants in UTC; null where a time cannot be read. A time without a zone is taken as UTC.

    `day_first` says whether 1/2/2026, 1-2-2026 and 1.2.2026 have the day first. By default, dates of the column with a
    number above 12 decide it; if they contradict each other, no such date can be read. Without any, the month is first
    in dates with slashes, and the day in those with dots and hyphens.

    >>> times = ["2026-01-02T03:04:05.5Z", "Thu Jan 01 19:04:05 PST 2026", "1/2/2026 3:04:05", "1767323045", "soon"]
    >>> instants(pl.Series(times)).dt.strftime("%m-%d %H:%M:%S").to_list()
    ['01-02 03:04:05', '01-02 03:04:05', '01-02 03:04:05', '01-02 03:04:05', None]
    """
    kind = column.dtype
    if kind == pl.Datetime:
        aware = column if kind.time_zone else column.dt.replace_time_zone("UTC")  # type: ignore[attr-defined]
        return aware.cast(INSTANT)
    if kind == pl.Date:
        return column.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    if kind.is_numeric():
        return _seconds(column.cast(pl.Float64))
    if kind != pl.String:
        return pl.Series(column.name, [None], INSTANT).new_from_index(0, len(column))
    text = column.str.strip_chars()
    found = _seconds(text.cast(pl.Float64, strict=False))
    for read in (_iso, _named, partial(_slashed, day_first=day_first), _inferred):
        if found.null_count() == column.null_count():
            break
        found = found.zip_with(found.is_not_null(), read(text))
    return found.alias(column.name)


def slash_orders(column: pl.Series) -> set[bool]:
    """Return whether dates such as 1/2/2026 have the day first, of those dates that tell.

    >>> slash_orders(pl.Series(["1/2/2026", "13/2/2026 9:00"])), slash_orders(pl.Series(["2/13/2026"]))
    ({True}, {False})
    """
    if column.dtype != pl.String:
        return set()
    part = column.to_frame("text").select(pl.col("text").str.strip_chars().str.extract_groups(_NUMBERS))
    numbers = part.unnest("text").select(pl.col("1", "3").cast(pl.Int32))
    return {first for first, name in ((True, "1"), (False, "3")) if (numbers[name] > 12).any()}


def _seconds(number: pl.Series) -> pl.Series:
    """Convert seconds or milliseconds since 1970."""
    exact = number.set(~(number.is_finite() & (number.abs() < 1e14)).fill_null(value=False), None)
    micros = (exact * 1e6).set((exact >= MIN_MILLISECONDS).fill_null(value=False), None)
    micros = micros.fill_null(exact * 1e3) if micros.null_count() > exact.null_count() else micros
    return micros.cast(pl.Int64).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def _iso(text: pl.Series) -> pl.Series:
    part = text.to_frame("text").select(pl.col("text").str.extract_groups(_ISO).struct.rename_fields([*"dmshz"]))
    return _joined(part.unnest("text"), "%Y-%m-%d")


def _named(text: pl.Series) -> pl.Series:
    part = text.to_frame("text").select(pl.col("text").str.extract_groups(_NAMED).struct.rename_fields([*"dmshzy"]))
    day = part.unnest("text").with_columns(pl.col("d") + " " + pl.col("y"))
    return _joined(day, "%b %d %Y")


def _slashed(text: pl.Series, day_first: bool | None) -> pl.Series:
    orders = slash_orders(text) if day_first is None else {day_first}
    if len(orders) > 1:
        return pl.Series(text.name, [None], INSTANT).new_from_index(0, len(text))
    part = text.to_frame("text").select(pl.col("text").str.extract_groups(_SLASHED).struct.rename_fields([*"a-bymsh"]))
    first = pl.lit(True in orders) if orders else pl.col("-") != "/"  # whether the first number is the day
    day, month = pl.when(first).then("a").otherwise("b"), pl.when(first).then("b").otherwise("a")
    dated = part.unnest("text").with_columns(d=pl.concat_str(day, month, "y", separator="/"), z=pl.lit(None, pl.String))
    return _joined(dated, "%d/%m/%Y")


def _inferred(text: pl.Series) -> pl.Series:
    """Read times in any other format that the table library recognises."""
    others = text.set(text.str.contains(_NUMBERS).fill_null(value=False), None)
    return others.str.to_datetime(strict=False, time_unit="us", time_zone="UTC")


def _joined(part: pl.DataFrame, day: str) -> pl.Series:
    """Return instants from columns d (the day), m (hours and minutes), s (seconds), h (A or P, for AM and PM, if the
    hours are 1 to 12) and z (the zone)."""
    clock = pl.col("m").fill_null("0:00").str.zfill(5) + pl.col("s").fill_null(":00")
    text, half = pl.col("d") + " " + clock, pl.col("h").str.to_uppercase()
    in_24 = text.str.to_datetime(f"{day} %H:%M:%S%.f", strict=False, time_unit="us")
    in_12 = (text + half + "M").str.to_datetime(f"{day} %I:%M:%S%.f%p", strict=False, time_unit="us")
    when = pl.when(half.is_null()).then(in_24).otherwise(in_12)
    zone = pl.col("z").fill_null("Z")
    number = zone.str.extract(r"^[+-](\d{2})").cast(pl.Int64) * 60 + zone.str.extract(r"(\d{2})$").cast(pl.Int64)
    sign = pl.when(zone.str.starts_with("-")).then(-1).otherwise(1)
    named = zone.replace_strict(ZONES, default=None, return_dtype=pl.Int64) * 60
    away = pl.when(zone.str.contains(r"^[+-]")).then(sign * number).otherwise(named)
    return part.select((when - pl.duration(minutes=away)).dt.replace_time_zone("UTC").alias("time")).to_series()
