"""Parsing, moving and printing formulas."""

from __future__ import annotations

import pytest

from millstream.errors import ParseError
from millstream.values.excel.parser import Origin, parse_formula
from millstream.values.excel.render import render_formula
from millstream.values.excel.syntax import Node, shifted
from tests.languages.sheets.books import workbook

BOOK = workbook({"A1": 1, "Other!A1": 2, "My Sheet!A1": 3})


def parsed(text: str) -> Node:
    return parse_formula(text, Origin("t.xlsx", "S", "A1"), BOOK)


@pytest.mark.parametrize(
    "text",
    [
        "S!A1+S!$B$2*Other!C$3", "SUM('My Sheet'!A1:B2,S!A:A,S!$1:$3)", "-2^2%", "{1,2;3,-4}",
        'IF(S!A1="a""b",TRUE,#N/A)', "(S!A1,S!B2)", "INDEX(S!A1:B2,1):S!C3", "IF(S!A1,,2)",
        "S!A1:B3 S!B1:C2", "1.5E-07+0.1", "LOG10(100)",
    ],
)  # fmt: skip
def test_a_printed_formula_parses_back(text: str) -> None:
    assert parsed(text) == parsed(render_formula(parsed(text)))


def test_a_shared_formula_moves_its_relative_references() -> None:
    assert "S!B3+S!$A$1+S!B$1+S!$A3" == render_formula(shifted(parsed("A2+$A$1+A$1+$A2"), 1, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1+", "expected a value"),
        ("SUM(1,2", 'expected "\\)"'),
        ('"abc', "an unfinished text"),
        ("1 2", "expected an operator"),
        ("{1,2;3}", "not equally long"),
        ("[2]Sheet1!A1", "links to other workbooks"),
        ("Nope!A1", "unknown worksheet"),
    ],
)
def test_what_is_wrong_with_a_formula_is_told(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parsed(text)
