"""Grains cut time into parts, by length or by the calendar in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.grains import GRAINS, Grain

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


moments = st.datetimes(timezones=st.just(UTC), min_value=datetime(2, 1, 1))  # noqa: DTZ001  hypothesis adds it


@given(moments)
def test_months_and_years_begin_as_in_the_calendar(moment: datetime) -> None:
    midnight = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    month, year = Grain(months=1), Grain(months=12)
    assert micros(midnight) == month.start(month.index(micros(moment)))
    assert micros(midnight.replace(month=1)) == year.start(year.index(micros(moment)))


@given(st.lists(st.integers(-(2**61), 2**61), min_size=1), st.sampled_from(GRAINS))
def test_a_column_of_times_is_cut_as_its_times_are(times: list[int], name: str) -> None:
    grain = Grain.named(name)
    assert grain is not None
    column = grain.start(grain.index(np.array(times, np.int64)))
    assert [grain.start(grain.index(t)) for t in times] == column.tolist()


def test_grains_have_names() -> None:
    assert Grain(300_000_000) == Grain.named("Minutes", 5)
    assert "5 Minute" == str(Grain(300_000_000)) and "Year" == str(Grain(months=12))
    assert [str(Grain.named(name)) for name in GRAINS] == list(GRAINS)
    assert Grain.named("Fortnight") is None


def test_finer_grains_lie_in_coarser_ones() -> None:
    minute, day, month = Grain.named("minute"), Grain.named("day"), Grain.named("month")
    assert minute and day and month
    assert minute.is_within(day) and day.is_within(month) and month.is_within(Grain(months=12))
    assert not month.is_within(day) and not Grain(7_000_000).is_within(minute)
