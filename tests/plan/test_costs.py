"""What a change can cost is told before anything runs."""

from __future__ import annotations

import pytest

from millstream.languages.cql.load import load
from millstream.optimiser.optimise import optimise
from millstream.plan.costs import costs
from millstream.source import Source

INPUTS = "CREATE STREAM S (k INTEGER, v INTEGER); CREATE STREAM T (k INTEGER, w INTEGER);"
SECOND = "the rows of the last 1 s of S"


def told(query: str) -> list[str]:
    program = load(Source("test.cql", f"{INPUTS} {query};")).program
    return [f"{c.operator.function.name}: {c.words}" for c in costs(optimise(program))]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT k, SUM(v) AS s FROM S [Range 1 second] GROUP BY k", []),
        (
            ("SELECT k, v FROM S [Range 1 second]"
            " WHERE v > (SELECT AVG(v) FROM S [Range 1 second])"),
            [(f"Lookup: of {SECOND}, those between the old value and the new one, "
             f"at each change of the avg of {SECOND}")],
        ),
        (
            ("SELECT k, v, a FROM S [Range 1 second],"
            " (SELECT AVG(v) AS a FROM S [Range 1 second]) AS m"),
            [f"Join: up to all of {SECOND} at each change of the avg of {SECOND}"],
        ),
        (
            ("SELECT S.k, v, w FROM S [Range 1 second], T [Partition By k Rows 1]"
            " WHERE S.k = T.k"),
            [(f"Join: up to all of {SECOND} with the same k at each change of the last row of T "
             "for each k")],
        ),
        (
            "SELECT S.k, v, w FROM S [Range 1 second], T [Range 1 minute] WHERE S.k = T.k",
            [(f"Join: all partners of a row that changes: {SECOND} with the rows of the last 1 min "
             "of T with the same k")],
        ),
        (
            "SELECT Rstream(k, v) FROM S [Range 1 second]",
            [f"Rstream: all of {SECOND} whenever something comes"],
        ),
        (
            "SELECT k, v FROM S [Range 1 second] WHERE EXISTS (SELECT k FROM T [Range 1 second])",
            [(f"Lookup: up to all of {SECOND} when the first of the rows of the last 1 s of T "
             "comes or the last one goes")],
        ),
        ("SELECT S.k, v, w FROM S [Now], T [Partition By k Rows 1] WHERE S.k = T.k", []),
    ],
)  # fmt: skip
def test_costs_are_told_in_words(query: str, words: list[str]) -> None:
    assert words == told(query)
