"""Patterns in bounded time, and texts sawn into pieces."""

from __future__ import annotations

import time

import pytest

from millstream.values.records.matching import WITHOUT_END, Rest, Take, pattern_of, sawn
from millstream.values.records.patterns import BadPattern, compiled
from millstream.values.records.types import FLOAT, INT, STRING, ArrayOf
from millstream.values.undefined import Undefined


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(a*)*b", r"^(([a-z])+.)+[A-Z]$"])
def test_catastrophic_patterns_have_an_answer_soon(pattern: str) -> None:
    begun = time.process_time()
    assert not compiled(pattern).matches("a" * 5000 + "!")
    assert time.process_time() - begun < 2


def test_a_pattern_that_must_try_gives_up() -> None:
    with pytest.raises(Undefined, match="gives up"):
        compiled(r"(a+)+\1$").matches("a" * 60 + "b")


def test_what_only_pcre_reads_is_read() -> None:
    assert compiled(r"(?<=a)b(?!c)").matches("abd")
    assert compiled(r"(\w)\1").matches("hello")
    assert not compiled(r"(?>a+)a").matches("aaa")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a", "position 2; missing closing parenthesis"),
        ("*a", "position 1; quantifier does not follow a repeatable item"),
        ("[b-a]", "position 4; range out of order in character class"),
    ],
)
def test_bad_patterns_say_why(pattern: str, reason: str) -> None:
    with pytest.raises(BadPattern) as raised:
        compiled(pattern)
    assert reason == str(raised.value)


def pieces(times: int, text: str, *steps: Take | Rest) -> tuple[str, ...]:
    return sawn(times, text, steps)[0]


def test_every_pattern_searches_on_from_the_last_match() -> None:
    assert pieces(1, "key = value", Take(r"\w+"), Take(r"\w+")) == ("key", "value")
    assert pieces(1, "key = value", Take(r"\w+"), Take("=", "skip"), Take(r"\w+")) == (
        "key", "value",
    )  # fmt: skip
    assert pieces(1, "a1", Take("[a-z]"), Take("[a-z]")) == ("a",)


def test_the_rest_is_a_text_of_its_own() -> None:
    """What begins a text begins the rest."""
    assert pieces(1, "ab", Take("^a"), Take("^b")) == ("a", "b")


def test_submatches_are_pieces() -> None:
    assert pieces(1, "x=1", Take(r"(\w)=(\d)", "submatch")) == ("x", "1")
    assert pieces(1, "x=1", Take(r"\w=", "submatch")) == ("x=",)


def test_the_rest_is_told_where_it_is_asked_for() -> None:
    steps = (Take(r"\w+"), Rest(), Take(r"\d+"), Rest())
    assert sawn(1, "ab 12 cd", steps) == (("ab", "12"), (" 12 cd", " cd"))
    assert sawn(1, "ab", steps) == (("ab",), ("", None))


def test_steps_are_repeated() -> None:
    assert pieces(2, "a b c", Take(r"\w")) == ("a", "b")
    assert pieces(WITHOUT_END, "a b c", Take(r"\w")) == ("a", "b", "c")
    assert pieces(WITHOUT_END, "a1b2c", Take("[a-z]"), Take("[0-9]")) == ("a", "1", "b", "2", "c")


def test_empty_matches_get_on() -> None:
    assert pieces(WITHOUT_END, "aab", Take("a*")) == ("aa", "")
    assert pieces(WITHOUT_END, "ab", Take("x*"), Take("y*")) == ()
    assert pieces(WITHOUT_END, "ab", Rest()) == ()


def test_patterns_of_types() -> None:
    assert compiled(f"^{pattern_of(INT)}$").matches("-0x1F")
    assert compiled(f"^{pattern_of(INT, 8)}$").matches("17")
    assert not compiled(f"^{pattern_of(INT, 8)}$").matches("18")
    assert compiled(f"^{pattern_of(INT, 16)}$").matches("ff")
    assert all(compiled(f"^{pattern_of(FLOAT)}$").matches(t) for t in ("1", "-.5", "1.e3"))
    assert pattern_of(ArrayOf(STRING)) is None
