"""Which generated cases are tried: the same ones always, and some that are new each day.

The seed of the day is its date. What it found is found again, on any day, with
`MILLSTREAM_SEED=20260131 make test`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings

TODAY = int(os.environ.get("MILLSTREAM_SEED") or datetime.now(UTC).strftime("%Y%m%d"))


def in_turn(cases: Sequence[Any], days: int | None = None, day: int = TODAY) -> list[Any]:
    """Long cases, for `parametrize`: a part of them each day, all of them in the campaigns.

    Each has its turn once in so many days; by default one of them is chosen a day.
    """
    days = days or len(cases)
    return [
        case if is_turn(number, days, day) else pytest.param(case, marks=pytest.mark.proof)
        for number, case in enumerate(cases)
    ]


def of_the_day(cases: Sequence[Any], days: int, day: int = TODAY) -> list[Any]:
    """The part of a campaign that is run today, if all of it would take hours; the rest in turn.

    Other days try other cases, all of them once in so many days, so that no day finds less than
    another. Each case should be small: a find is then narrowed down, and a campaign can be stopped.
    """
    return [case for number, case in enumerate(cases) if is_turn(number, days, day)]


def campaign(cases: int, at_once: int) -> list[int]:
    """Seeds of the day for a campaign of so many cases, so many of them at once.

    So it shows how far it is, goes on behind what it has found, and can be run in part;
    `MILLSTREAM_EXAMPLES` asks for another number of cases.
    """
    cases = int(os.environ.get("MILLSTREAM_EXAMPLES") or cases)
    return [10_000 * TODAY + number for number in range(-(-cases // at_once))]


def is_turn(number: int, days: int, day: int = TODAY) -> bool:
    """Whether a case with this number among others is tried today, once in so many days."""
    return number % days == _day_number(day) % days


def _day_number(day: int) -> int:
    """Days are counted, or the 31st and the 1st would leave out all turns between them."""
    try:
        return datetime.strptime(str(day), "%Y%m%d").replace(tzinfo=UTC).toordinal()
    except ValueError:  # a seed that is no date
        return day


def some_of_each(cases: Sequence[Any], kind_of: Callable[[Any], object], days: int) -> set[Any]:
    """Of each kind of cases a part each day, and at least one; each case once in so many days."""
    kinds: dict[object, list[Any]] = {}
    for case in cases:
        kinds.setdefault(kind_of(case), []).append(case)
    return {
        case
        for some in kinds.values()
        for number, case in enumerate(some)
        if is_turn(number, min(days, len(some)))
    }


def seeded(number: int, examples: int, **more: Any) -> Callable[[Any], Any]:
    """So many cases that follow from a number, for a test inside a test.

    Few cases of many seeds have more variety than many cases of one: hypothesis likes to
    vary what it has drawn before.
    """

    def decorated(test: Any) -> Any:
        chosen = settings(
            max_examples=examples, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), **more,
        )  # fmt: skip
        return seed(number)(chosen(test))

    return decorated
