"""Formulas that look at all values of windows, in the loop: against the reference, row for row."""

from __future__ import annotations

import random

from millstream.calculus.graph import Program
from millstream.calculus.types import NUMBER, TEXT, Schema, Value
from millstream.engine.reference.feed import Event
from millstream.kernels.sheets.generated import cells_apart
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import workbook
from tests.languages.sheets.laws import agree

WINDOWS = {"D1": "=WINDOWROWS(C1,7)", "E1": "=WINDOWROWS(B1,7)", "F1": "=WINDOWROWS(C1*2-3,7)"}
SAMPLES = (
    "SUMPRODUCT(--(ABS(D1-C1)>2))", "SUM(IF(D1>C1,D1-C1,0))", "MAX(ABS(D1-AVERAGE(D1)))",
    "SUMPRODUCT((D1>C1)*F1,F1)", "COUNT(1/(D1-C1))", "AND(D1<C1+90)", "MIN(IF(E1=B1,D1))",
    "LET(w,D1,m,AVERAGE(w),SUMPRODUCT((w-m)^2))",
    "SKEW(D1)", "SKEW.P(D1)", "KURT(D1)", "AVEDEV(D1)",
    "DEVSQ(D1-C1)", "GEOMEAN(D1)", "HARMEAN(D1)", "TRIMMEAN(D1,0.4)", "PERCENTRANK(D1,C1)",
    "PERCENTRANK(D1,C1,1)", "PERCENTRANK(D1,C1,1E+19)", "MEDIAN(D1*C1)",
    "LARGE(ABS(D1-C1),2)", "SMALL(D1+C1,C1)",
    "PERCENTILE.EXC(D1,0.3)", "QUARTILE.EXC(D1-C1,2)", "STDEV(D1/C1)", "VARP(D1-C1)",
    "STEYX(D1,F1)", "FORECAST(C1,F1,D1)", "SUMPRODUCT((E1=B1)*(D1>1))", 'AVERAGE(IF(E1=B1,D1,""))',
)  # fmt: skip
REDUCED = (
    "REDUCE(0,D1,LAMBDA(a,x,a*0.9+x))",
    "REDUCE(B1,D1,LAMBDA(a,x,a+x))",
    "REDUCE(C1+0,D1/(C1-1),LAMBDA(Sum,x,IF(X>2,sum,IF(ISERROR(x),sum+1,Sum-x))))",
    "REDUCE(0,1/D1,LAMBDA(a,x,IF(x>1,a+1,a)))",
    "REDUCE(1,D1,LAMBDA(a,x,MAX(a,x)))",
    "REDUCE(1,E1,LAMBDA(a,x,IF(x=B1,a+1,a)))",
    "REDUCE(0,D1,LAMBDA(a,x,x))",
    'REDUCE(0,D1,LAMBDA(a,x,IF(x="",a+100,a/x)))',
)
CRITERIA = (
    "COUNTIF(E1,B1)", "SUMIF(E1,B1,D1)", 'COUNTIFS(E1,B1,D1,">1")', 'COUNTIFS(E1,B1,D1,">"&C1)',
    'AVERAGEIF(E1,"<>"&B1,D1)', 'MAXIFS(D1,E1,"="&B1)', 'COUNTIF(E1,"a*")',
    'SUMIFS(D1,E1,"*b",D1,">1")', 'MINIFS(D1,E1,"?")', 'AVERAGEIF(E1,"a~*",D1)',
    "ROWS(UNIQUE(E1))", "ROWS(UNIQUE(D1))", "COUNTA(UNIQUE(E1))", "SUMPRODUCT(1/COUNTIF(E1,E1))",
    "SUMPRODUCT(1/COUNTIF(D1,D1))", 'IF(COUNTIF(E1,B1)>2,"often","seldom")',
)  # fmt: skip
LEFT = (
    "SUM(TAKE(SORT(D1,,-1),3))", "AVERAGE(TAKE(D1,-3))", "MAX(DROP(D1,2))", "MIN(DROP(D1,-1))",
    "COUNT(TAKE(SORT(D1),2))", "INDEX(SORT(D1),2)", "INDEX(SORT(D1,1,-1),C1)",
    "INDEX(TAKE(D1,3),3)",
    "MEDIAN(TAKE(D1,4))", "STDEV(DROP(SORT(D1),1))", "SUM(TAKE(DROP(SORT(D1),1),-2))",
    "LARGE(TAKE(D1,-5),2)", "SUM(TAKE(SORT(ABS(D1-C1)),2))", "PERCENTILE(DROP(D1*2,1),0.4)",
    "IFERROR(SUM(DROP(D1,6)),-1)", "SUM(TAKE(SORT(F1),(2)))",
)  # fmt: skip
LOOKED_UP = (
    "XLOOKUP(B1,E1,D1)", "XLOOKUP(C1,D1,F1,-1)", 'XLOOKUP(C1-1,D1,E1,"none",0,-1)',
    'XLOOKUP("A",E1,D1,C1+1,0,1)', "XLOOKUP(C1,D1,D1,1/0)", 'XLOOKUP("b",E1,E1,B1,,-1)',
    'IFERROR(XLOOKUP(1/(C1-1),D1,E1),"?")', "XLOOKUP(MAX(D1),D1,F1)",
    "LOOKUP(2,1/(E1=B1),D1)", 'LOOKUP(2,1/((E1="a")*(D1>1)),E1)', "LOOKUP(1,1/(D1>C1),F1)+1",
    "IFERROR(LOOKUP(9,1/(D1>=17),D1),C1)",
    "SUM(LARGE(D1,{1,2}))", "AVERAGE(SMALL(D1-C1,{1;2;3}))", "SUMPRODUCT(LARGE(D1,{2,1}))",
)  # fmt: skip
TEXTS = ("a", "A", "ab", "b", "5", ">5", "a*", "", "TRUE", "<>", "=a", "a~*", None)
NUMBERS: tuple[Value, ...] = (0.0, 1.0, 2.0, 2.5, 0.1 + 0.2, 0.3, -4.0, 17.0, None)


def program(formulas: tuple[str, ...]) -> Program:
    cells = {**WINDOWS, **{f"G{n}": f"={f}" for n, f in enumerate(formulas, 1)}}
    bindings = Bindings(
        (InputBinding("L", (Binding("k", "A1"), Binding("s", "B1"), Binding("x", "C1")), "k",
                      columns=Schema.of(k=TEXT, s=TEXT, x=NUMBER)),),
        (OutputBinding("Out", tuple(Binding(f"g{n}", f"G{n}")
                                    for n in range(1, len(formulas) + 1))),),
    )  # fmt: skip
    return translate_workbook(workbook(dict(cells)), bindings)


def told(given: Program) -> list[str]:
    (operator,) = given.operators
    types = given.queue_types()
    return cells_apart(operator.function, tuple(types[q] for q in operator.inputs))  # type: ignore[arg-type]


def rows(
    first: int, count: int, texts: tuple[Value, ...], numbers: tuple[Value, ...]
) -> list[Event]:
    chance = random.Random(20)
    return [
        Event(first + n, (chance.choice("xy"), chance.choice(texts), chance.choice(numbers)))
        for n in range(count)
    ]


def test_formulas_over_all_values_of_windows_are_compiled() -> None:
    made = program(SAMPLES)
    assert told(made) == []
    positive = tuple(x for x in NUMBERS if x is not None and x > 0)  # type: ignore[operator]
    agree(
        made, {"L": [*rows(0, 40, TEXTS, NUMBERS), *rows(40, 60, ("a", "b"), positive)]}, [13, 50]
    )


def test_what_is_reduced_value_by_value() -> None:
    made = program(REDUCED)
    assert {line.split()[0] for line in told(made)} == {"S!G2", "S!G7"}
    agree(made, {"L": rows(0, 90, TEXTS, NUMBERS)}, [13, 50])


def test_texts_as_criteria_are_compiled_but_for_those_that_say_more() -> None:
    made = program(CRITERIA)
    assert not [line for line in told(made) if "called" in line and " only " not in line]
    agree(
        made,
        {"L": [*rows(0, 80, TEXTS, NUMBERS), *rows(80, 40, ("a", "A", "b"), (1.0, 2.0))]},
        [13, 50],
    )


def test_what_sort_and_take_leave_is_compiled_where_there_are_only_numbers() -> None:
    made = program(LEFT)
    assert not [line for line in told(made) if " only " not in line]
    numbers = tuple(x for x in NUMBERS if x is not None)
    agree(
        made,
        {"L": [*rows(0, 60, TEXTS, NUMBERS), *rows(60, 60, ("a",), (*numbers, 3.0))]},
        [13, 70],
    )


def test_what_stands_beside_a_value_in_windows_is_compiled() -> None:
    made = program(LOOKED_UP)
    assert told(made) == []
    agree(
        made,
        {"L": [*rows(0, 80, TEXTS, NUMBERS), *rows(80, 40, ("a", "A", "b"), (1.0, 2.0))]},
        [13, 50],
    )


def test_texts_that_are_swept_are_looked_for_again() -> None:
    """Numbers of texts are given anew: what is known of them as criteria goes with them."""
    made = program(("COUNTIF(E1,B1)", "ROWS(UNIQUE(E1))"))
    chance = random.Random(20)
    texts = [f"t{n - chance.choice((0, 0, 0, 0, 0, 0, 3))}" for n in range(5500)]
    texts[::50] = [chance.choice(("A", "a", ">1")) for _ in texts[::50]]
    events = [Event(n, ("x", text, 1.0)) for n, text in enumerate(texts)]
    agree(made, {"L": events}, [5200, 5400])
