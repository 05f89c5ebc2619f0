"""Every case of a campaign has its turn."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.seeds import in_turn, of_the_day

#: Across the ends of months and of a year.
DAYS = [int(f"{date(2026, 11, 18) + timedelta(days):%Y%m%d}") for days in range(60)]


@pytest.mark.parametrize("days", [2, 3, 10, 50])
def test_each_case_is_tried_once_in_so_many_days(days: int) -> None:
    for start in range(len(DAYS) - days + 1):
        tried = [case for day in DAYS[start:][:days] for case in of_the_day(range(120), days, day)]
        assert sorted(tried) == list(range(120))


def test_what_has_no_turn_today_is_left_to_the_campaigns() -> None:
    today = [case for case in in_turn(range(7), 3, 20260131) if isinstance(case, int)]
    assert today == of_the_day(range(7), 3, 20260131)
    assert len(in_turn(range(7), 3, 20260131)) == 7


def test_a_seed_that_is_no_date_chooses_too() -> None:
    assert of_the_day(range(6), 3, 4) == [1, 4]
