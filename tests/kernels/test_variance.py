"""Variances: of numbers that two floats can sum exactly, and of those that differ little."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

import millstream
from millstream.calculus.functions import SQUARABLE

TEXT = """
CREATE STREAM s (k TEXT, x NUMBER);
SELECT Istream(k, COUNT(x) AS n, VARIANCE(x) AS v, VAR_POP(x) AS p, STDDEV(x) AS d,
               STDDEV_POP(x) AS q)
FROM s [Range 9 us] GROUP BY k;
"""


def answers(values: Sequence[float | None], engine: str) -> list[dict[str, Any]]:
    """What is said at each instant, one value coming at each of them."""
    rows = [{"_time": n, "k": "a", "x": x} for n, x in enumerate(values)]
    job = millstream.compile(text=TEXT, language="cql")
    return list(job.run({"s": rows}, engine=engine).rows("query1"))


def window(values: Sequence[float | None], now: int) -> list[float]:
    return [v for v in values[max(0, now - 9) : now + 1] if v is not None]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize(("mean", "spread"), [(1e9, 1e-3), (-3e12, 1e-2), (0.0, 1e-9)])
def test_digits_are_kept_where_values_are_large_and_differ_little(
    engine: str, mean: float, spread: float
) -> None:
    generator = random.Random(7)
    values = [mean + generator.gauss(0, spread) for _ in range(40)]
    # A value of another size that comes and goes must leave nothing behind.
    values[20] = 1e-300
    values[31] = 1e100
    for row in answers(values, engine):
        inside = window(values, row["_time"])
        assert len(inside) == row["n"]
        if len(inside) < 2:
            assert (row["v"], row["d"], row["p"]) == (None, None, 0.0)
            continue
        expected = float(statistics.variance(map(Fraction, inside)))
        assert row["v"] == pytest.approx(expected, rel=1e-7)
        assert row["d"] == pytest.approx(math.sqrt(expected), rel=1e-7)
        share = (len(inside) - 1) / len(inside)
        assert row["p"] == pytest.approx(expected * share, rel=1e-7)
        assert row["q"] == pytest.approx(math.sqrt(expected * share), rel=1e-7)


def test_engines_agree_to_the_last_digit() -> None:
    generator = random.Random(3)
    choices = [None, 0.25, -1.5, 1e6 + 0.125, 3.0, 100.1, 99.7, 0.1, -0.3]
    values = [generator.choice(choices) for _ in range(300)]
    assert answers(values, "reference") == answers(values, "local")


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_what_cannot_be_squared_has_no_variance_while_it_is_there(engine: str) -> None:
    values = [1.0, 2.0, math.inf, *[3.0] * 12, SQUARABLE, *[4.0] * 12, math.nan, *[5.0, 7.0] * 6]
    found = {row["_time"]: row["v"] for row in answers(values, engine)}
    assert found[1] == 0.5
    assert all(math.isnan(found[t]) for t in (2, 15, 28))
    # The last word, which is not said again while nothing changes.
    assert found[max(found)] == pytest.approx(statistics.variance([5.0, 7.0] * 5))
