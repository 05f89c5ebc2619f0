"""What `check` tells of a workbook: all of it at once, and what would never give an answer."""

from __future__ import annotations

import pytest

from millstream.backends.reference.feed import Event
from millstream.calculus.graph import Program
from millstream.calculus.types import NUMBER, TEXT, TIME, Schema, Type
from millstream.errors import CheckError
from millstream.formulas.recalculate import Recalculation
from millstream.formulas.structured import Table
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import Cells, workbook
from tests.languages.sheets.laws import agree

COLUMNS = Schema.of(x=NUMBER, y=NUMBER)


def translated(cells: Cells, *outputs: str, columns: Schema = COLUMNS, time: str | None = None
               ) -> Program:  # fmt: skip
    """A sheet fed by x in A1 and y in A2, with outputs from some cells, or from C1."""
    fed = (Binding("x", "A1"), Binding("y", "A2"))
    read = tuple(Binding(f"o{n}", cell) for n, cell in enumerate(outputs or ("C1",)))
    bindings = Bindings(
        (InputBinding("In", fed, columns=columns, time=time),), (OutputBinding("Out", read),)
    )
    return translate_workbook(workbook(cells), bindings)


def faults(cells: Cells, *outputs: str, columns: Schema = COLUMNS, time: str | None = None
           ) -> list[str]:  # fmt: skip
    with pytest.raises(CheckError) as caught:
        translated(cells, *outputs, columns=columns, time=time)
    return [f"{f.place}: {f.message}" for f in caught.value.faults]


def test_all_faults_of_one_formula_are_told() -> None:
    found = faults({"C1": "=FOO(A1)+RAND()+LEFT(A1,1,2)+SUM(WINDOW(A1,-5))+SUM(WINDOW(A1,0))+Nme"})
    places = {one.partition(": ")[0] for one in found}
    assert {"t.xlsx S!C1"} == places
    told = "\n".join(found)
    for part in ("FOO is not", "RAND is", "LEFT does not take 3", "is -5", "is 0", '"Nme"'):
        assert part in told
    assert 6 == len(found)


def test_faults_of_cells_that_a_faulty_one_reads_are_told() -> None:
    found = faults({"B1": "=FOO(A1)", "C1": "=B1+RAND()+D1", "D1": "=PRE(A1,E1,0)", "E1": 3})
    assert ["S!C1: RAND", "S!B1: the function FOO", "S!D1: the trigger of PRE, S!E1, never"] == [
        next(p for p in ("S!C1: RAND", "S!B1: the function FOO",
                         "S!D1: the trigger of PRE, S!E1, never") if p in one)
        for one in found
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"C1": "=WINDOW(A1,5)"}, "Out.o0 is read from S!C1, which holds a window"),
        ({"B1": 5, "C1": "=SUM(WINDOW(A1,5,B1))"}, "the trigger of WINDOW, S!B1, never changes"),
        ({"B1": 5, "C1": "=SUM(WINDOW(B1,5,A1))"}, "the source of WINDOW, S!B1, never changes"),
        ({"B1": 5, "C1": "=SUM(WINDOWROWS(B1,5))"}, "the source of WINDOWROWS, S!B1, never"),
        ({"B1": 5, "C1": "=SELECT(A1,B1>3)"}, "the condition of SELECT, a constant, never changes"),
        ({"B1": 5, "C1": "=B1+1"}, "the output Out would have no rows: none of its cells changes"),
        ({"C1": "=LET(f,LAMBDA(x,f(x)),f(A1))"}, "f is called where it has no meaning yet"),
        ({"C1": "=LET(a,1,b)"}, 'the name "b" is not defined'),
        ({"C1": "=LET(a,a+1,a)"}, 'the name "a" is not defined'),
        ({"C1": "=IFS(A1)"}, "IFS does not take 1 argument"),
        ({"C1": "=IFS(A1,1,A2)"}, "IFS takes pairs"),
        ({"C1": "=LAMBDA(1,A1)(2)"}, "LAMBDA takes names"),
    ],
)
def test_what_would_never_give_an_answer_is_told(cells: Cells, expected: str) -> None:
    assert [expected] == [expected for one in faults(cells) if expected in one]


@pytest.mark.parametrize("type_", [NUMBER, TEXT])
def test_an_event_time_that_is_no_time_is_told(type_: Type) -> None:
    columns = Schema.of(x=NUMBER, y=NUMBER, t=type_)
    found = faults({"C1": "=A1"}, columns=columns, time="t")
    assert [f"t.xlsx: the event time In.t is a {type_}, expected a time"] == found
    translated({"C1": "=A1"}, columns=Schema.of(x=NUMBER, y=NUMBER, t=TIME), time="t")


def events(*rows: tuple[float | None, float | None]) -> dict[str, list[Event]]:
    return {"In": [Event(n * 1_000_000, row, 1) for n, row in enumerate(rows)]}


@pytest.mark.parametrize(
    "cells",
    [
        {"C1": "=SUMPRODUCT(WINDOW(SELECT(A1,A2>1),5),WINDOW(SELECT(A1,A2>1),5))"},
        {"B1": "=SELECT(A1,A2>1)", "B2": "=SELECT(A1*2,A2>1)",
         "C1": "=SUMPRODUCT(WINDOW(B1,5),WINDOW(B2,5))"},
        {"C1": "=LET(f,LAMBDA(g,g(g)),IFERROR(f(f),A1))"},
        {"C1": "=LET(f,3,IFERROR(f(A1),A1))"},
        {"C1": "=LET(f,LAMBDA(g,n,IF(n<1,1,n*g(g,n-1))),f(f,A1))"},
        {"C1": "=SHEET()+SHEETS()*10+ISFORMULA(C1)*100+ISFORMULA(A1)+A1", "Other!A1": 3},
        {"C1": "=A1+ROW()", "D7": "=1"},
    ],
)  # fmt: skip
def test_what_is_not_refused_gives_the_same_everywhere(cells: Cells) -> None:
    agree(translated(cells), events((1.0, 2.0), (2.0, 1.0), (3.0, 2.0), (4.0, None)), [2])


def test_a_reference_on_several_worksheets_must_be_to_cells() -> None:
    found = faults({"C1": "=SUM(S:Other!foo)+A1", "Other!A1": 3})
    assert ["expected a reference after the worksheet"] == [one.partition(": ")[2] for one in found]


# --- tables and names -------------------------------------------------------------------

NAMES = ("a", "p[q]", "x ", "#n", "o'k", "two\nlines")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("SUM(T[p'[q']])", 20.0), ("SUM(T[x ])", 200.0), ("SUM(T[[x ]])", 200.0),
        ("SUM(T[ a ])", 2.0), ("SUM(T['#n])", 2_000.0), ("SUM(T[o''k])", 20_000.0),
        ("SUM(T[two\nlines])", 200_000.0), ("SUM(T[[a]:[p'[q']]])", 22.0), ("SUM(T)", 222_222.0),
        ("SUM(T[[#Data],[p'[q']]])", 20.0), ("SUM([0]!T[a])", 2.0), ("[0]!Rate+1", 8.0),
        ("[0]S!A2+1", 2.0), ("'[0]S'!A2+1", 2.0),
    ],
)  # fmt: skip
def test_references_into_tables_and_names_of_the_workbook(reference: str, expected: float) -> None:
    cells: Cells = {f"{'ABCDEF'[n]}{row}": float(10**n) for n in range(6) for row in (2, 3)}
    book = workbook({**cells, "H1": f"={reference}"}, Rate="7")
    book.tables["t"] = Table("S", 1, 1, 3, 6, NAMES)
    assert expected == Recalculation(book).read("S", 1, 8)
