"""Formulas that look at all of a window: the loop hands its content over."""

from __future__ import annotations

import random

from millstream.calculus.graph import Program
from millstream.calculus.types import NUMBER, Field, Schema
from millstream.engine.reference.feed import Event
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import Cells, workbook

#: W and V are windows of five values of A1 and B1; K8 and K9 hold 2 and 4.
FORMULAS = (
    "=ROWS(UNIQUE(W1))", "=COUNT(UNIQUE(W1))", "=SUMPRODUCT(1/COUNTIF(W1,W1))",
    "=SUM(FILTER(W1,W1>3))", "=AVERAGE(FILTER(W1,W1>3,0))", "=COUNT(FILTER(W1,V1>3))",
    "=INDEX(SORT(W1),2)", "=SUM(TAKE(SORT(W1,,-1),3))", "=SUM(TAKE(W1,-3))",
    "=AVERAGE(DROP(W1,1))", "=REDUCE(0,W1,LAMBDA(a,x,a*0.5+x))", "=SUM(MAP(W1,LAMBDA(x,x*x)))",
    "=SUM(SCAN(0,W1,LAMBDA(a,x,a+x)))", "=INDEX(FREQUENCY(W1,{2,4}),2)", "=MAX(FREQUENCY(W1,W1))",
    "=LET(w,W1,SUM(w)/COUNT(w))", "=LET(m,AVERAGE(W1),SUMPRODUCT((W1-m)^2))",
    "=LET(w,W1,d,W1-3,SUM(d)+COUNT(w))", "=LET(w,W1,REDUCE(0,w,LAMBDA(a,x,a+x*x)))",
    "=SLOPE(W1,V1)", "=CORREL(W1,V1)", "=INDEX(LINEST(W1,V1),1)", "=2*INDEX(LINEST(W1),1)+1",
    "=SUM(W1,V1)", "=AVERAGE(W1,V1)", "=MAX(W1,V1)", "=COUNT(W1,V1)", "=SUM(W1,3)", "=MAX(W1,A1)",
    '=TEXTJOIN(",",TRUE,W1)', '=TEXTJOIN("-",TRUE,SORT(UNIQUE(W1)))', "=XLOOKUP(3,W1,V1,-1)",
    "=LOOKUP(2,1/(W1=3),V1)", "=AVEDEV(W1)", "=DEVSQ(W1)", "=GEOMEAN(W1)", "=TRIMMEAN(W1,0.4)",
    "=AND(W1>0)", "=OR(W1>5)", "=SUM(LARGE(W1,{1,2,3}))", "=SUM(LARGE(W1,{1;2}))/2+A1",
    "=SUM(IF(W1>AVERAGE(W1),1,0))", "=ROWS(W1)", "=SUM(W1*A1)", "=NPV(0.1,W1)",
    "=IF(COUNT(W1)>2,ROWS(UNIQUE(W1))/ROWS(W1),0)", "=INDEX(SORT(W1,,-1),1)-MAX(W1)",
    "=IFERROR(AVERAGE(FILTER(W1,(W1>1)*(V1<4))),-1)", "=SUM(TAKE(W1,-2))-SUM(DROP(W1,-2))",
    "=SUM(A1*{1,2,3})", "=MATCH(A1,{1,2,3},0)", "=INDEX(FREQUENCY(W1,K8:K9),2)",
    "=SUMPRODUCT(COUNTIF(W1,K8:K9))", "=SUMPRODUCT(LARGE(W1,K8:K9))", "=COUNT(W1,1/0)",
)  # fmt: skip
COLUMNS = Schema((Field("x", NUMBER), Field("y", NUMBER)))


def sheet(*formulas: str) -> Program:
    """A sheet with an output of each formula."""
    cells: Cells = {"W1": "=WINDOWROWS(A1,5)", "V1": "=WINDOWROWS(B1,5)", "K8": 2, "K9": 4}
    cells |= {f"C{n}": formula for n, formula in enumerate(formulas, 1)}
    inputs = InputBinding("In", (Binding("x", "A1"), Binding("y", "B1")), columns=COLUMNS)
    shown = tuple(Binding(f"z{n}", f"C{n}") for n in range(1, len(formulas) + 1))
    return translate_workbook(workbook(cells), Bindings((inputs,), (OutputBinding("Out", shown),)))


def events(number: int, count: int = 40) -> dict[str, list[Event]]:
    """Small numbers, of which many are equal; with odd numbers some are missing."""
    chance = random.Random(number)

    def drawn() -> float | None:
        return None if number % 2 and chance.random() < 0.15 else float(chance.randint(0, 6))

    return {"In": [Event(n, (drawn(), drawn())) for n in range(count)]}
