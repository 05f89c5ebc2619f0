"""Numbers and dates that are written by columns read as those that are written one by one."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from millstream.kernels.sheets.written import Format, GeneralFormat, format_of
from millstream.values.excel.formats import formatted
from millstream.values.excel.values import general

_CHANCE = random.Random(20)
NUMBERS = [
    0.0, 1.0, -1.0, 0.5, 2.675, 1e14, 1e15, -0.001, 0.005, 0.015, 99.995, 0.1 + 0.2, 1e-5, 1e-12,
    1234567.891, 999999.9999, *(_CHANCE.uniform(-1e6, 1e6) for _ in range(300)),
    *(round(_CHANCE.uniform(0, 300), 2) for _ in range(300)),
    *(_CHANCE.uniform(-1, 1) * 10 ** _CHANCE.randint(-8, 14) for _ in range(300)),
]  # fmt: skip
DAYS = [0.0, 0.5, 59.9, 60.0, 60.5, 61.0, 45000.999999, -1.0, 3e6,
        *(_CHANCE.uniform(0, 70000) for _ in range(300))]  # fmt: skip


def differing(format_: Format, numbers: list[float], expected: Callable[[float], str]) -> list[str]:
    """What is written in another way; little may be left out."""
    numbers = [x for x in numbers for _ in range(2)]  # what is there twice is copied
    left_out = np.zeros(len(numbers), np.bool_)
    texts = format_.write(np.array(numbers), left_out).to_pylist()
    assert left_out.sum() < len(numbers) / 20
    pairs = zip(numbers, texts, left_out.tolist(), strict=True)
    return [f"{x!r}: {text}" for x, text, is_out in pairs if not is_out and text != expected(x)]


@pytest.mark.parametrize(
    "pattern",
    [
        "0", "0.00", "#,##0", "#,##0.00", "0%", "0.0%", "00", "000.0", "$#,##0.00", "+0.0;-0.0;0.0",
        "0;-0", "#,##0.00;(#,##0.00)", '0.0" kg"', "+0.0%;-0.0%", "0.00_);[Red](0.00)", "-0;+0;(0)",
        "[$€-407] 0.00;-[$€-407] 0.00", '"a;b"0;\\x0',
    ],
)  # fmt: skip
def test_numbers(pattern: str) -> None:
    format_ = format_of(pattern)
    assert format_ is not None
    assert differing(format_, NUMBERS, lambda x: formatted(x, pattern)) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "yyyy-mm-dd",
        "yyyy-mm-dd hh:mm:ss",
        "d/m/yy h:mm",
        "dd.mm.yyyy",
        "hh:mm",
        "mm:ss",
        "ddd, d mmm yy hh:mm",
        "dddd",
        "mmmm yyyy",
        "mmm",
    ],
)
def test_dates(pattern: str) -> None:
    format_ = format_of(pattern)
    assert format_ is not None
    assert differing(format_, DAYS, lambda x: formatted(x, pattern)) == []


def test_numbers_that_are_joined() -> None:
    assert differing(GeneralFormat(), NUMBERS, general) == []


@pytest.mark.parametrize(
    "pattern",
    ["", "0;-0;;@", "mmmmm d", "h:mm AM/PM", "0.0E+00", "# ?/?", "@", "0;", "[>5]0;-0", "0 m"],
)
def test_other_formats_are_not_written_by_columns(pattern: str) -> None:
    assert format_of(pattern) is None
