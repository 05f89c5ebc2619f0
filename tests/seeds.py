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
        case if number % days == day % days else pytest.param(case, marks=pytest.mark.proof)
        for number, case in enumerate(cases)
    ]


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
