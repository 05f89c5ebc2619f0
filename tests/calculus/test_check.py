"""Typing: what is accepted, what is promoted, and that all faults are told at once."""

from __future__ import annotations

import pytest

from millstream.calculus.check import Scope, check
from millstream.calculus.expressions import parse_expression
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.text import render_term
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Dimension,
    Kind,
    Schema,
    Type,
)
from millstream.errors import CheckError
from millstream.source import Source

LENGTH = Type(Kind.NUMBER, Dimension((("length", 1),)))
SPAN = Type(Kind.NUMBER, Dimension((("time", 1),)))
SCOPE = Scope(
    Schema.of(x=NUMBER, i=INTEGER, t=TEXT, b=BOOLEAN, at=TIME, d=DURATION, m=LENGTH, s=SPAN)
)


def checked(text: str) -> Term:
    return check(parse_expression(Source("test", text)), SCOPE)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("x + 1", NUMBER), ("i + 1", INTEGER), ("i / 2", NUMBER), ("at - at", DURATION),
        ("at + 5 min", TIME), ("d * 2", DURATION), ("d / d", NUMBER), ("x < i", BOOLEAN),
        ("if(b, 1, x)", NUMBER), ("coalesce(null, t)", TEXT), ('t || "!"', TEXT),
        ('integer("7")', INTEGER), ("m + m", LENGTH), ("m / s", None), ("not b or b", BOOLEAN),
        ("null", None), ("least(i, 2)", INTEGER), ("m * 2", LENGTH), ("sqrt(m * m)", LENGTH),
    ],
)  # fmt: skip
def test_types(text: str, type_: Type | None) -> None:
    if text == "null":
        with pytest.raises(CheckError, match="the type of this null is not known"):
            checked(text)
        return
    if type_ is not None:
        assert type_ == checked(text).type
    else:
        assert "length time^-1" == str(checked(text).type.dimension)


def test_an_integer_is_promoted_by_an_explicit_cast() -> None:
    assert Call(
        "+", (Column("x", NUMBER), Call("number", (Column("i", INTEGER),), NUMBER)), NUMBER
    ) == checked("x + i")
    assert Call("+", (Column("x", NUMBER), Literal(1.0, NUMBER)), NUMBER) == checked("x + 1")


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("y + z", ['unknown column "y"', 'unknown column "z"']),
        ("x + t > 1 and upper(i)", ["cannot add a number and a text",
                                   "expected a text, got an integer"]),
        ("m < s", ["cannot compare a length with a time"]),
        ("m + 1", ["cannot combine a length with a plain number"]),
        ("9223372036854775808", ["9223372036854775808 does not fit a 64-bit integer"]),
        ("foo(y)", ['unknown function "foo"', 'unknown column "y"']),
    ],
)  # fmt: skip
def test_all_faults_are_told_at_once(text: str, messages: list[str]) -> None:
    with pytest.raises(CheckError) as caught:
        checked(text)
    assert messages == [fault.message for fault in caught.value.faults]


@pytest.mark.parametrize(
    "text",
    ["a or b and c", "(a or b) and c", "not a == b", "-(x) - -3", "a - (b - c)", "(a < b) == c"],
)
def test_printed_terms_mean_the_same(text: str) -> None:
    names = dict.fromkeys("abcx")
    kinds = NUMBER if "-" in text else BOOLEAN
    scope = Scope(Schema.of(**dict.fromkeys(names, kinds)))
    term = check(parse_expression(Source("test", text)), scope)
    assert term == check(parse_expression(Source("test", render_term(term))), scope)


def test_the_smallest_integer_can_be_written() -> None:
    assert Literal(-(2**63), INTEGER) == checked("-9223372036854775808")


def test_two_hundred_levels_and_a_thousand_summands_are_fine() -> None:
    checked("(" * 200 + "x" + ")" * 200)
    checked(" + ".join(["x"] * 900))
