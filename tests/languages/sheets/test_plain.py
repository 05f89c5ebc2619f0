"""What is computed without statuses is what the careful functions give."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from millstream.formulas import rounding
from millstream.kernels import scalar_sheet
from millstream.kernels.sheet_plain import BESIDE, least_left

NUMBERS = [
    0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1.005, 1e15, 1e16, -1e300, 1e-300, 4.35, 60.0,
    math.nextafter(60.0, 0.0), 60.0 * (1 + 2**-51), 0.1 + 0.2, 0.3, 2.0**47, 2.0**52,
]  # fmt: skip
SAID: dict[str, Callable[[float, float], bool]] = {
    "=": rounding.same_number,
    "<>": lambda a, b: not rounding.same_number(a, b),
    "<": lambda a, b: a < b and not rounding.same_number(a, b),
    ">": lambda a, b: a > b and not rounding.same_number(a, b),
    "<=": lambda a, b: a < b or rounding.same_number(a, b),
    ">=": lambda a, b: a > b or rounding.same_number(a, b),
}


def test_where_it_is_clear_how_numbers_compare_their_digits_need_not_be_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scalar_sheet, "pick", lambda is_first, a, b: a if is_first else b)
    is_clear: Any = scalar_sheet.is_clear
    near = [math.nextafter(x, 1e308) for x in NUMBERS]
    for a in NUMBERS:
        for b in NUMBERS + near:
            if is_clear.py_func(a, b):
                assert rounding.same_number(a, b) == (a == b), (a, b)
    assert not is_clear.py_func(0.3, 0.1 + 0.2)


@pytest.mark.parametrize("operator", SAID)
def test_beside_a_constant_it_is_known_which_numbers_are_taken_for_it(operator: str) -> None:
    for constant in [c for c in NUMBERS if c]:
        low, high = rounding.last_same(constant, -1.0), rounding.last_same(constant, 1.0)
        test = BESIDE[operator].format(a="a", low="low", high="high")
        near = [
            low,
            high,
            *(math.nextafter(b, way) for b in (low, high) for way in (-1e308, 1e308)),
        ]
        for a in [*NUMBERS, *near]:
            found = eval(test, {"a": a, "low": low, "high": high})  # noqa: S307  ours
            assert SAID[operator](a, constant) == found, (a, constant)


@pytest.mark.parametrize("constant", [1.0, -1.0, 0.01, -0.25, 0.1, 3.0, 1e15, 7e-9, 0.0, 1e-300])
def test_beside_a_constant_it_is_known_how_much_must_be_left_of_a_sum(constant: float) -> None:
    least = least_left(constant)
    # Of a number with few digits it is not the same on both sides.
    assert (least is None) == (constant in (1.0, -1.0, -0.25, 3.0, 1e-300))
    near = [-constant * (1 + n * 2.0**-54) for n in range(-200, 200)]
    if least is None:
        return
    for x in [*NUMBERS, *near]:
        left = x + constant
        expected = 0.0 if abs(left) < 2.0**-50 * abs(x) else left
        assert expected == (0.0 if abs(left) < least else left), x


@pytest.mark.parametrize("places", [-3, 0, 2, 6])
def test_plain_rounding_is_rounding(places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalar_sheet, "pick", lambda is_first, a, b: a if is_first else b)
    rounded: Any = scalar_sheet.plain_rounded
    scale = 10.0 ** abs(places)
    for x in [*NUMBERS, *np.random.default_rng(1).normal(0, 1000, 1000).tolist()]:
        expected = rounding.round_scaled(x, scale, places >= 0)
        assert expected == rounded.py_func(x, scale, places >= 0)


@pytest.mark.parametrize("size", [1, 7, 16, 17, 100])
def test_a_place_among_keys_is_that_of_the_last_key_that_is_not_larger(size: int) -> None:
    random = np.random.default_rng(size)
    keys = np.sort(random.integers(-50, 50, size) / 4)
    among: Any = scalar_sheet.place_among
    near = [math.nextafter(k, way) for k in keys.tolist() for way in (-1e9, 1e9)]
    for x in [*keys.tolist(), *near, *random.uniform(-20, 20, 200).tolist()]:
        below = [n for n, k in enumerate(keys.tolist()) if k <= x]
        assert max(below, default=-1) == among.py_func(x, keys)
