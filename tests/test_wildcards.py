"""Patterns with wildcards: what they match, and that it takes no longer than it must."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.terms import Call, Literal
from millstream.calculus.types import BOOLEAN, TEXT, Kind
from millstream.environment.scalars import evaluate
from millstream.kernels.text_functions import text_function
from millstream.wildcards import excel_pattern, like_pattern
from tests.languages.sheets.books import value

TEXTS = st.text("ab\n%", max_size=8)


def is_like(text: str, pattern: str) -> bool:
    """The definition, one character at a time."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(is_like(text[n:], pattern[1:]) for n in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and is_like(text[1:], pattern[1:])


def place_of(text: str, pattern: str) -> int:
    """Where the first part of a text begins that is like a pattern, or -1."""
    parts = (
        start
        for start in range(len(text) + 1)
        if any(is_like(text[start:end], pattern) for end in range(start, len(text) + 1))
    )
    return next(parts, -1)


@given(TEXTS, st.text("ab_%", max_size=6))
def test_a_text_is_like_a_pattern_if_it_is_so_by_definition(text: str, pattern: str) -> None:
    assert is_like(text, pattern) == like_pattern(pattern).matches(text)


@given(st.text("abA\n", max_size=8), st.text("abB?*", max_size=6))
def test_patterns_of_excel_are_those_of_like_without_case(text: str, pattern: str) -> None:
    same = pattern.replace("*", "%").replace("?", "_").lower()
    assert is_like(text.lower(), same) == excel_pattern(pattern).matches(text)
    assert place_of(text.lower(), same) == excel_pattern(pattern).find(text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [("~*", "*", True), ("~*", "a", False), ("~~", "~", True), ("~", "~", True), ("a~", "a~", True),
     ("~a", "~a", True), ("~?*", "?x", True), ("~?*", "xx", False), ("~~*", "~x", True)],
)  # fmt: skip
def test_a_tilde_takes_the_meaning_from_the_next_character(
    pattern: str, text: str, expected: bool
) -> None:
    assert expected == excel_pattern(pattern).matches(text)


BOMB = "*a" * 11 + "*b"
FORMULAS = [
    f'=SEARCH("{BOMB}",REPT("a",5000))', f'=COUNTIF(A1:A9,"{BOMB}")', f'=MATCH("{BOMB}",A1:A9,0)',
    f'=SUMIF(A1:A9,"<>{BOMB}",B1:B9)', f'=VLOOKUP("{BOMB}",A1:B9,2,FALSE)',
    f'=XLOOKUP("{BOMB}",A1:A9,B1:B9,"none",2)', f'=XMATCH("{BOMB}",A1:A9,2)',
    '=DCOUNT(C1:D9,"n",E1:E2)', f'=MAXIFS(B1:B9,A1:A9,"{BOMB}")',
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_many_stars_take_no_time_in_a_formula(formula: str) -> None:
    long = "a" * 5000
    cells = {f"A{n}": long for n in range(1, 10)} | {f"B{n}": n for n in range(1, 10)}
    cells |= {"C1": "t", "D1": "n", "E1": "t", "E2": BOMB, "C2": long, "D2": 1}
    start = time.process_time()
    value(formula, cells)
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "text", ["jan" + " " * 30_000 + "x", "jan" + ", " * 15_000 + "x", "1 1/" + "1" * 5_000,
             "9" * 500 + " 1/9", "1 " * 16_000, "1:" * 16_000],
)  # fmt: skip
def test_a_long_text_is_no_number_and_that_is_soon_known(text: str) -> None:
    start = time.process_time()
    assert "#VALUE!" == value("=A1+0", {"A1": text})
    assert time.process_time() - start < 1


def test_many_percent_signs_take_no_time() -> None:
    text, pattern = "a" * 100_000, "%a" * 20 + "%b"
    start = time.process_time()
    assert not like_pattern(pattern).matches(text)
    term = Call("like", (Literal(text, TEXT), Literal(pattern, TEXT)), BOOLEAN)
    assert evaluate(term, {}) is False
    assert text_function("like", Kind.TEXT)(text, pattern) is False
    assert time.process_time() - start < 1
