"""Aggregates over areas are computed in the loop: formulas, FILTER, criteria, gathered numbers."""

from __future__ import annotations

import random

import pytest

from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.types import NUMBER, TEXT, Schema, Value
from millstream.engine.reference.feed import Event
from millstream.kernels.sheets.generated import cells_apart
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import Cells, workbook
from tests.languages.sheets.laws import agree

WORDS = ("alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "theta", "iota", "kappa")
TABLES: Cells = (
    {f"J{n}": float(n * 3 % 17 + n) for n in range(1, 11)}
    | {f"K{n}": float(n * n) for n in range(1, 11)}
    | {f"L{n}": word for n, word in enumerate(WORDS, 1)}
    | {"M1": 3.0, "M3": "x", "M4": True, "M5": 7.5, "M7": ""}
)
FORMULAS = (
    "=SUMPRODUCT((J1:J10>A1/5)*K1:K10)", "=SUMPRODUCT((L1:L10=S1)*(J1:J10<B1)*K1:K10)",
    "=SUMPRODUCT(--(A1:D1>10))", "=SUMPRODUCT((A1:D1>J1:M1)*A1:D1)", "=STDEV(A1,B1,C1)",
    "=MEDIAN(A1:D1)", "=LARGE(A1:D1,2)", "=PERCENTRANK(J1:J10,A1/10)", "=DEVSQ(A1:D1)",
    "=STDEV(M1:M10,A1)", "=SUMPRODUCT(ISNUMBER(M1:M10)*K1:K10)+A1",
    "{=SUM(IF(J1:J10>A1/5,K1:K10))}", "{=AVERAGE(IF(L1:L10=S1,K1:K10))}",
    "{=MAX(IF(A1:D1<50,A1:D1))}", "{=COUNT(1/(J1:J10>B1))}", "{=SUM((A1:D1>10)*1)+1}",
    "{=IFERROR(SUM(J1:J10/(B1-3)),-1)}", '{=MIN(IF(L1:L10<>"beta",K1:K10))+A1}',
    '{=IF(A1>10,SUM(IF(A1:D1>20,1,0)),"few")}', "{=SUM(A1:D1)-A1}",
    "{=SUM(IF(ISNUMBER(M1:M10),M1:M10,0))+A1}",
    '=SUMIF(J1:J10,">"&A1/5,K1:K10)', '=COUNTIFS(J1:J10,">"&A1/5,K1:K10,"<"&B1*4)',
    '=SUMIFS(K1:K10,J1:J10,">"&A1/5,L1:L10,"<>beta")', '=AVERAGEIF(J1:J10,"<"&B1,K1:K10)',
    "=COUNTIF(L1:L10,S1)", "=SUMIF(L1:L10,S1,K1:K10)", '=COUNTIF(A1:D1,">10")',
    '=AVERAGEIFS(A1:D1,A1:D1,">0")', "=COUNTIF(J1:J10,B1)", '=COUNTIF(J1:J10,"")+A1',
    '=MAXIFS(K1:K10,J1:J10,"<"&A1)',
    "=SUM(FILTER(J1:J10,J1:J10>A1/5))", "=MAX(FILTER(A1:D1,A1:D1<B1*3,-1))",
    "=ROWS(FILTER(J1:J10,J1:J10>A1/5))", "=MEDIAN(FILTER(K1:K10,L1:L10=S1))",
    "=SUM(FILTER(J1:J10,1/(J1:J10-B1)>0))", "=SUM(FILTER(M1:M10,J1:J10>B1))",
    "=NPV(A1/1000,A1:D1)", "=NPV(A1/1000,B1,C1,D1)", "=IRR(A1:D1)",
    "=IFERROR(IRR(A1:D1,0.2),-9)", "=IRR(M1:M10)+A1",
)  # fmt: skip


OF_WINDOWS = (
    "=AVERAGE(FILTER(WINDOW(A1,9),WINDOW(S1,9)=S1))",
    "=SUM(FILTER(WINDOW(A1,9),WINDOW(B1,9)>B1,-1))",
    "=ROWS(FILTER(WINDOW(A1,9),WINDOW(B1,9)>B1))", "=NPV(B1/100,WINDOW(A1,5))",
    "=MEDIAN(FILTER(WINDOW(A1,9),(WINDOW(S1,9)=S1)*(WINDOW(B1,9)>C1)))", "=IRR(WINDOW(C1,5))",
    "=MAX(SCAN(0,WINDOW(A1,9),LAMBDA(a,x,a+x)))",
    "=AVERAGE(SCAN(0,WINDOW(C1,9),LAMBDA(a,x,MAX(0,a+x/B1))))",
)  # fmt: skip


def program(formulas: tuple[str, ...]) -> Program:
    cells = TABLES | {f"Z{n}": formula for n, formula in enumerate(formulas, 1)}
    names = [(column, f"{column.upper()}1") for column in "abcds"]
    kinds = dict.fromkeys("abcd", NUMBER) | {"s": TEXT}
    inputs = InputBinding("In", tuple(Binding(*pair) for pair in names),
                          columns=Schema.of(**kinds))  # fmt: skip
    shown = tuple(Binding(f"z{n}", f"Z{n}") for n in range(1, len(formulas) + 1))
    return translate_workbook(workbook(cells), Bindings((inputs,), (OutputBinding("Out", shown),)))


def rows(count: int) -> list[tuple[Value, ...]]:
    chance = random.Random(20)

    def odd(value: float) -> Value:
        return chance.choice((0.0, -1.0, None, 1e300, 1.0)) if chance.random() < 0.06 else value

    words = (*WORDS[:4], "", "Alpha", ">5", "a*", None)
    return [
        (odd(chance.uniform(1, 100)), odd(float(chance.randint(1, 30))),
         odd(chance.uniform(-50, 50)), odd(chance.uniform(-900, 900)), chance.choice(words))
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "formulas", [FORMULAS[::3], FORMULAS[1::3], FORMULAS[2::3], OF_WINDOWS], ids=range(4)
)
def test_aggregates_in_loops_give_what_the_reference_gives(formulas: tuple[str, ...]) -> None:
    made = program(formulas)
    (operator,) = made.operators
    assert isinstance(operator.function, Sheet)
    types = made.queue_types()
    assert cells_apart(operator.function, tuple(types[q] for q in operator.inputs)) == []
    agree(made, {"In": [Event(n, row) for n, row in enumerate(rows(200))]}, [60, 61])


@pytest.mark.slow
def test_a_filled_column_takes_the_areas_of_its_own_rows() -> None:
    cells: Cells = {}
    for n in range(1, 61):
        cells |= {
            f"F{n}": f"=A$1*{n}+B$1",
            f"G{n}": f"=F{n}-C$1",
            f"H{n}": f"=MEDIAN(F{n}:G{n},D$1)",
        }
        cells |= {f"I{n}": f"=SUMPRODUCT((F{n}:G{n}>D$1)*F{n}:G{n})", f"Z{n}": f"=H{n}+I{n}"}
    names = [(column, f"{column.upper()}1") for column in "abcd"]
    inputs = InputBinding("In", tuple(Binding(*pair) for pair in names),
                          columns=Schema.of(**dict.fromkeys("abcd", NUMBER)))  # fmt: skip
    shown = tuple(Binding(f"z{n}", f"Z{n}") for n in (1, 2, 30, 60))
    made = translate_workbook(workbook(cells), Bindings((inputs,), (OutputBinding("Out", shown),)))
    agree(made, {"In": [Event(n, row[:4]) for n, row in enumerate(rows(30))]}, [])
