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


def is_turn(number: int, days: int, day: int = TODAY) -> bool:
    """Whether a case with this number among others is tried today, once in so many days."""
    return number % days == day % days


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
