"""Formulas that look at all of a window, as arrays: right answers, and without a walk."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import pytest

from millstream.errors import CheckError
from tests.languages.sheets.handed_windows import events, sheet
from tests.languages.sheets.laws import agree
from tests.languages.sheets.test_laws import by_python
from tests.laws.runs import on_reference

Numbers = list[float]


def _slope(w: Numbers, v: Numbers) -> float:
    return statistics.linear_regression(v, w).slope


#: What formulas give, in plain Python: None where that has no answer.
ORACLE: dict[str, Callable[[Numbers, Numbers], Any]] = {
    "=ROWS(UNIQUE(W1))": lambda w, _: len(set(w)),
    "=COUNT(UNIQUE(W1))": lambda w, _: len(set(w)),
    "=SUMPRODUCT(1/COUNTIF(W1,W1))": lambda w, _: len(set(w)),
    "=SUM(FILTER(W1,W1>3,0))": lambda w, _: sum(x for x in w if x > 3),
    '=COUNT(FILTER(W1,V1>3,""))': lambda _, v: sum(1 for y in v if y > 3),
    "=INDEX(SORT(W1),1)": lambda w, _: min(w),
    "=SUM(TAKE(SORT(W1,,-1),3))": lambda w, _: sum(sorted(w)[-3:]),
    "=SUM(TAKE(W1,-3))": lambda w, _: sum(w[-3:]),
    "=REDUCE(0,W1,LAMBDA(a,x,a*2+x))": lambda w, _: sum(x * 2**n for n, x in enumerate(w[::-1])),
    "=INDEX(FREQUENCY(W1,{2,4}),2)": lambda w, _: sum(1 for x in w if 2 < x <= 4),
    "=INDEX(FREQUENCY(W1,K8:K9),2)": lambda w, _: sum(1 for x in w if 2 < x <= 4),
    "=SUMPRODUCT(COUNTIF(W1,K8:K9))": lambda w, _: w.count(2) + w.count(4),
    "=SUMPRODUCT(LARGE(W1,K8:K9))": lambda w, _: (
        sorted(w)[-2] + sorted(w)[-4] if len(w) > 3 else None
    ),
    "=COUNT(W1,1/0)": lambda w, _: len(w),
    "=MAX(FREQUENCY(W1,W1))": lambda w, _: max(w.count(x) for x in w),
    "=LET(w,W1,SUM(w)/COUNT(w))": lambda w, _: sum(w) / len(w),
    "=SLOPE(W1,V1)": lambda w, v: _slope(w, v) if len(set(v)) > 1 else None,
    "=INDEX(LINEST(W1,V1),1)": lambda w, v: _slope(w, v) if len(set(v)) > 1 else None,
    "=CORREL(W1,V1)": lambda w, v: (
        statistics.correlation(w, v) if len(set(v)) > 1 and len(set(w)) > 1 else None
    ),
    "=SUM(W1,V1)": lambda w, v: sum(w) + sum(v),
    "=INDEX(SORT(W1,,-1),2)": lambda w, _: sorted(w)[-2] if len(w) > 1 else None,
    "=AVERAGE(DROP(W1,-1))": lambda w, _: sum(w[:-1]) / len(w[:-1]) if len(w) > 1 else None,
    "=XLOOKUP(B1,W1,V1,A1,0,-1)": lambda w, v: (
        next((y for x, y in zip(w[::-1], v[::-1], strict=True) if x == v[-1]), w[-1])
    ),
    "=SUM(LARGE(W1,{1,2}))": lambda w, _: sum(sorted(w)[-2:]) if len(w) > 1 else None,
    "=SUM(IF(W1>AVERAGE(W1),1,0))": lambda w, _: sum(1 for x in w if x > sum(w) / len(w)),
}  # fmt: skip


@pytest.mark.parametrize("formula", ORACLE)
def test_answers_are_those_of_plain_python(formula: str) -> None:
    given = events(2)
    rows: list[Any] = [event.row for event in given["In"]]
    found, _ = on_reference(sheet(formula), given)
    (made,) = found.values()
    for n, (_, _, (value,)) in enumerate(made):
        w, v = ([row[c] for row in rows[max(0, n - 4) : n + 1]] for c in (0, 1))
        expected = ORACLE[formula](w, v)
        if formula.startswith("=INDEX(LINEST") and expected is None:
            continue  # LINEST leaves out what does not help
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-9)), (w, v)


def test_the_loop_hands_windows_over_and_gives_what_the_reference_gives() -> None:
    """All of them, by loops as Python runs them, in small sheets and in large ones."""
    by_python(2, 1, "handed")


def test_a_compiled_loop_hands_windows_over() -> None:
    program = sheet("=SUM(W1)", "=ROWS(UNIQUE(W1))", '=TEXTJOIN(",",TRUE,W1)&A1', "=MAX(W1,V1)")
    agree(program, events(3, 300), [100, 101])


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("=UNIQUE(W1)", "UNIQUE of the window S!W1: windows flow only into aggregations"),
        ("=W1+1", "the window S!W1: windows flow only into aggregations"),
        ("=COUNTIF(W1,W1)", "COUNTIF of the window S!W1: windows flow only into aggregations"),
        ("=LET(w,W1,w)", "the window S!W1: windows flow only into aggregations"),
    ],
)
def test_many_values_where_one_is_wanted_are_told(formula: str, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        sheet(formula)
