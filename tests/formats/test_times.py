"""Dates with slashes: a column is read in one order of day and month, or not at all, however its dates are written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from golden_exports import rows_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

import crowdwise as cw
from crowdwise.answers.times import instants

EARLIEST, LATEST = datetime(1990, 1, 1), datetime(2040, 12, 31)
TIMES = st.datetimes(EARLIEST, LATEST).map(lambda time: time.replace(microsecond=0, tzinfo=UTC))
FORMS = (
    "{0:02d}/{1:02d}/{2} {3:02d}:{4:02d}:{5:02d}",
    "{0}/{1}/{2} {3}:{4:02d}:{5:02d}",
    " {0}/{1}/{2} {3}:{4:02d}:{5:02d} ",
)
WRITTEN = st.lists(st.tuples(TIMES, st.sampled_from(FORMS)), min_size=1, max_size=8)
OTHERS = st.lists(st.sampled_from(["2026-01-02T03:04:05Z", "soon", "", None, "Fri Jan 02 2026 IST", "1/2"]), max_size=3)


def written(time: datetime, form: str, day_first: bool) -> str:
    """Return a time as text with slashes."""
    first, second = (time.day, time.month) if day_first else (time.month, time.day)
    return form.format(first, second, time.year, time.hour, time.minute, time.second)


def swapped(time: datetime) -> datetime | None:
    """Return the time that is read if day and month are confused; None if there is none."""
    return time.replace(day=time.month, month=time.day) if time.day <= 12 else None


def read(texts: list[str | None]) -> list[datetime | None]:
    return instants(pl.Series(texts, dtype=pl.String)).to_list()


@given(column=WRITTEN, day_first=st.booleans(), others=OTHERS)
@example([(datetime(2026, 2, 1, tzinfo=UTC), FORMS[0]), (datetime(2026, 2, 13, tzinfo=UTC), FORMS[1])], True, [])
def test_a_column_in_one_order_is_read_in_one_order(
    column: list[tuple[datetime, str]], day_first: bool, others: list[str | None]
) -> None:
    """A day after the 12th tells the order. Without any, all dates are read with the month first."""
    texts = [written(time, form, day_first) for time, form in column]
    found = read([*texts, *others])[: len(texts)]
    known = any(time.day > 12 for time, _ in column)
    right = known or not day_first
    assert found == [time if right else swapped(time) for time, _ in column]


@given(one=TIMES, other=TIMES, column=WRITTEN)
def test_a_column_with_both_orders_is_not_read(
    one: datetime, other: datetime, column: list[tuple[datetime, str]]
) -> None:
    """Dates in ISO 8601 are, beside them."""
    telling = [written(time.replace(day=20), FORMS[0], order) for time, order in ((one, True), (other, False))]
    texts = [written(time, form, n % 2 == 0) for n, (time, form) in enumerate(column)]
    iso = one.isoformat()
    assert read([*texts, *telling, iso]) == [None] * (len(texts) + 2) + [one]


@given(column=WRITTEN, day_first=st.booleans())
def test_a_date_without_any_order_makes_the_column_unreadable(
    column: list[tuple[datetime, str]], day_first: bool
) -> None:
    texts = [written(time, form, day_first) for time, form in column]
    assert read([*texts, "31/31/2026"]) == [None] * (len(texts) + 1)


@pytest.mark.parametrize(
    "texts",
    [
        ["02/13/2026", "01/02/2026T00:00:00"],
        ["02-13-2026", "01-02-2026"],
        ["02.13.2026", "01/02/2026"],
        ["02/13/2026", "01/02/2026 00:00:00 PM"],
        ["02/13/2026", "1/2/26"],
    ],
)
def test_dates_in_other_forms_have_the_order_of_the_column_or_are_not_read(texts: list[str | None]) -> None:
    told, other = read(texts)
    assert told in (None, datetime(2026, 2, 13, tzinfo=UTC))
    assert other in (None, datetime(2026, 1, 2, tzinfo=UTC))


@settings(max_examples=15)
@given(column=WRITTEN, day_first=st.booleans())
def test_the_last_answer_by_a_date_with_slashes_counts(
    column: list[tuple[datetime, str]], day_first: bool, tmp_path: Path
) -> None:
    """A worker answers one task again and again, and another one on a day that tells the order."""
    telling = datetime(2026, 1, 31, tzinfo=UTC)
    times = sorted(dict(column).items())
    labels = {f"label {n}": written(time, form, day_first) for n, (time, form) in enumerate(times)}
    rows = {
        "task": ["1"] * len(labels) + ["2"], "worker": ["ann"] * (len(labels) + 1), "label": [*labels, "other"],
        "timestamp": [*labels.values(), written(telling, FORMS[0], day_first)],
    }  # fmt: skip
    backwards = pl.DataFrame(rows).reverse()
    for table in (pl.DataFrame(rows), backwards):
        assert rows_of(cw.read(table)) == [("1", "ann", f"label {len(labels) - 1}"), ("2", "ann", "other")]
    place = tmp_path / "times.csv"
    again = cw.read(cw.convert(backwards, place).path)
    assert rows_of(again) == rows_of(cw.read(backwards))
    assert again.frame()["timestamp"].max() == max([telling, times[-1][0]])


@settings(max_examples=15)
@given(column=WRITTEN, day_first=st.booleans())
def test_dates_of_an_export_have_the_order_of_the_whole_file(
    column: list[tuple[datetime, str]], day_first: bool, tmp_path: Path
) -> None:
    """In whatever parts the file is read; the month is first if no date tells the order."""
    rows = [f"{n},ann,Approved,a,{written(time, form, day_first)}\n" for n, (time, form) in enumerate(column, 1)]
    place = tmp_path / "batch.csv"
    place.write_text("HITId,WorkerId,AssignmentStatus,Answer.x,SubmitTime\n" + "".join(rows))
    told = not day_first or any(time.day > 12 for time, _ in column)
    wanted = [time if told else swapped(time) for time, _ in column]
    for size in (30, 1 << 24):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("crowdwise.io.parts.PART_BYTES", size)
            answers = cw.read(place)
        times = answers.extras["timestamp"] if "timestamp" in answers.extras.columns else [None] * len(column)
        assert list(times) == wanted
        assert not any("cannot be read" in each for each in answers.intake.warnings)
