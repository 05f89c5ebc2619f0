"""Formulas over all values of a window, and what is said where a window cannot stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.workbook.defined_name import DefinedName

import millstream
from millstream.calculus.sheets import Sheet, Windows
from millstream.errors import ProgramError
from millstream.values.excel.values import ErrorValue
from tests.languages.sheets.books import save, value
from tests.seeds import in_turn

ROWS = [
    ("EU", 1.0, 2.0), ("US", 2.0, 3.0), ("eu", 4.0, 5.0), ("EU", None, 7.0), ("US", 8.0, 11.0),
]  # fmt: skip
HEADS = ("stream", "direction", "attribute", "cell", "type", "role")
INPUT = [
    ("S", "input", "zone", "A2", "text", None),
    ("S", "input", "x", "B2", "number", None),
    ("S", "input", "y", "C2", "number", None),
    ("S", "input", "ts", None, None, "time"),
]
ZONES, XS, YS = "WINDOW(A2,3)", "WINDOW(B2,3)", "WINDOW(C2,3)"


def bound(rows: list[tuple[Any, ...]], cells: dict[str, Any]) -> dict[str, Any]:
    """The cells of a workbook with a worksheet `streams` of these rows."""
    found = dict(cells)
    for number, row in enumerate([HEADS, *rows], 1):
        found |= {
            f"streams!{letter}{number}": value
            for letter, value in zip("ABCDEF", row, strict=False)
            if value is not None
        }
    return found


def compiled(folder: Path, cells: dict[str, Any], outputs: int = 1) -> Any:
    """A job whose outputs are read from E1, E2, ..."""
    rows = [*INPUT, *(("O", "output", f"v{n}", f"E{n}") for n in range(1, outputs + 1))]
    return millstream.compile(save(folder / "book.xlsx", bound(rows, cells)))


def values(folder: Path, formulas: list[str], engine: str, **cells: Any) -> list[list[Any]]:
    """What each formula gives for each of the rows; one workbook, as compiling takes long."""
    given = {f"E{n}": formula for n, formula in enumerate(formulas, 1)}
    job = compiled(folder, {**given, **cells}, len(formulas))
    rows = [
        {"ts": n * 1_000_000, "zone": zone, "x": x, "y": y} for n, (zone, x, y) in enumerate(ROWS)
    ]
    found = job.run({"S": rows}, engine=engine).rows("O")
    return [[row[f"v{n}"] for row in found] for n in range(1, len(formulas) + 1)]


KEPT = {
    f'=SUMPRODUCT(({ZONES}="EU")*{YS})': [2.0, 2.0, 7.0, 12.0, 12.0],
    f"=SUMPRODUCT(--({XS}>1),{YS})": [0.0, 3.0, 8.0, 8.0, 16.0],
    f"=SUMPRODUCT({XS},{YS})": [2.0, 8.0, 28.0, 26.0, 108.0],
    f"=SUM(IF({XS}>1,{YS},0))": [0.0, 3.0, 8.0, 8.0, 16.0],
    f"=MAX(ABS({XS}-5))": [4.0, 4.0, 4.0, 5.0, 5.0],
}
#: With values that are no numbers, or with what else changes.
WALKED = {
    f"=AVERAGE(IF({XS}>$G$1,{YS}))": [None, 3.0, 4.0, 4.0, 8.0],
    f"=SUMPRODUCT(({ZONES}=A2)*{YS})": [2.0, 3.0, 7.0, 12.0, 11.0],
    f"=SUM(IF({XS}>AVERAGE({XS}),{YS}))": [0.0, 3.0, 5.0, 5.0, 11.0],
}


#: Aggregates of what functions make of windows; Z, X and Y stand for these.
MADE_OF_WINDOWS = [
    "=SUM(FILTER(X,X>1))", "=SUM(FILTER(X,X>1,0))", "=COUNT(FILTER(X,Y>2))",
    "=COUNT(FILTER(X,X>9))",
    '=AVERAGE(FILTER(Y,Z="EU"))', '=MAX(FILTER(Y,(Z="us")*(X>1),-1))', "=ROWS(FILTER(X,Y>2))",
    '=ROWS(FILTER(Z,Z="x","none"))', "=MEDIAN(FILTER(Y,X<>2))", "=LARGE(FILTER(X,Y>2),2)",
    "=STDEV(FILTER(Y,ISNUMBER(X),0))", "=MIN(FILTER(1/X,Y<6))", "=SUM(FILTER(Y,1/X>0.2))",
    "=COUNT(FILTER(Y,1/X>0.2))", '=SUM(FILTER(X,X>4,"x"))', "=COUNT(FILTER(Z,Y>2))",
    "=AVERAGE(FILTER(X,Y>6,0))", "=SUM(MAP(X,LAMBDA(v,IF(v>1,v,0))))",
    "=MIN(MAP(X,Y,LAMBDA(a,b,a*2-b)))", "=COUNT(MAP(X,LAMBDA(v,1/v)))",
    "=SUM(MAP(X,LAMBDA(v,LET(u,v+1,u*u))))", "=REDUCE(1,X,LAMBDA(a,v,a*2+v))",
    '=REDUCE("",Z,LAMBDA(a,v,IF(v="US",a,a&v)))', "=ROWS(UNIQUE(Z))", "=ROWS(UNIQUE(X))",
    "=SUM(TAKE(SORT(X,,-1),2))", "=INDEX(SORT(UNIQUE(Z)),1)", "=SUM(SORTBY(X,Y,-1)*{1})",
]  # fmt: skip


def test_what_functions_make_of_a_window_is_what_they_make_of_cells(tmp_path: Path) -> None:
    compare_with_cells(tmp_path, MADE_OF_WINDOWS, "reference")


@pytest.mark.slow
@pytest.mark.parametrize("number", in_turn(range(3)))
def test_loops_make_of_a_window_what_functions_make_of_cells(tmp_path: Path, number: int) -> None:
    compare_with_cells(tmp_path, MADE_OF_WINDOWS[number::3], "local")


def compare_with_cells(folder: Path, formulas: list[str], engine: str) -> None:
    found = values(folder, [named(f, ZONES, XS, YS) for f in formulas], engine)
    for formula, given in zip(formulas, found, strict=True):
        for last, one in enumerate(given, 1):
            rows = ROWS[max(0, last - 3) : last]
            cells = {
                f"{column}{n}": value
                for n, row in enumerate(rows, 1)
                for column, value in zip("ABC", row, strict=True)
                if value is not None
            }
            areas = (f"{column}1:{column}{len(rows)}" for column in "ABC")
            wanted = value("{" + named(formula, *areas) + "}", cells)
            shown: Any = None if isinstance(wanted, ErrorValue) else wanted
            shown = pytest.approx(shown, rel=1e-15) if isinstance(shown, float) else shown
            assert one == shown, (formula, last)


def named(formula: str, zones: str, xs: str, ys: str) -> str:
    """A formula with windows or areas for the names in it."""
    return re.sub(r"\b[XYZ]\b", lambda found: {"X": xs, "Y": ys, "Z": zones}[found[0]], formula)


@pytest.mark.parametrize(
    ("cases", "engine"),
    [
        (KEPT, "reference"),
        pytest.param(KEPT, "local", marks=pytest.mark.slow),
        (WALKED, "reference"),
        (WALKED, "local"),
    ],
)
def test_a_formula_of_all_values(tmp_path: Path, cases: dict[str, list[Any]], engine: str) -> None:
    assert list(cases.values()) == values(tmp_path, list(cases), engine, G1=1)


def test_the_formula_of_windows_is_kept_as_a_window_of_the_formula(tmp_path: Path) -> None:
    job = compiled(tmp_path, {"E1": f'=SUMPRODUCT(({ZONES}="EU")*{YS})', "F1": "=1"})
    sheet = job.program.operators[0].function
    assert isinstance(sheet, Sheet)
    read = {a for c in sheet.cells if c.address == ("S", 1, 5) for a in c.refers_to}
    assert [True] == [isinstance(c.rule, Windows) for c in sheet.cells if c.address in read]


def faults(folder: Path, formula: str, **cells: Any) -> str:
    with pytest.raises(ProgramError) as caught:
        compiled(folder, {"E1": formula, **cells})
    return "\n".join(fault.render() for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (f"={XS}*2", "S!E1: the window WINDOW(S!B2,3): windows flow only into aggregations"),
        (f'=COUNTIF({XS}*2,">1")', "S!E1: COUNTIF takes the window WINDOW(S!B2,3) as it is"),
        (f"=PRE({XS},B2,0)", "S!E1: the window WINDOW(S!B2,3) cannot be kept or selected"),
        ("=SUM(WINDOW(A2:C2,3))", "S!E1: WINDOW takes one cell, not a range"),
        ("=SUM(WINDOW(B2,F1))",
         "S!E1: the second argument of WINDOW must be constant, but S!F1 changes"),
        ("=SUM(WINDOW(B2,0))", "the number of seconds, must be positive; it is 0"),
        ("=SUM(WINDOWROWS(B2,0.5))", "S!E1: WINDOWROWS must keep at least one value"),
        ("=PRE(B2,C2,F1)+1", "S!E1: the initial value of PRE must be constant, but S!F1 changes"),
        ("=SUMPRODUCT(WINDOW(B2,3),WINDOW(C2,3,SELECT(C2,C2>1)))",
         "S!E1: SUMPRODUCT needs windows that change at the same ticks"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_the_cell(tmp_path: Path, formula: str, message: str) -> None:
    assert message in faults(tmp_path, formula, F1="=C2*2")


def test_capitals_and_spaces_do_not_matter_in_bindings(tmp_path: Path) -> None:
    rows = [
        (" Trades ", "Input", "price", " b2 ", " Number", ""),
        ("trades", "INPUT", "ts", None, None, "TIME"),
        ("Out", "Output", "v", "C2"),
        ("OUT ", "output", "w", "$B$2"),
    ]
    job = millstream.compile(save(tmp_path / "b.xlsx", bound(rows, {"C2": "=B2*2"})))
    found = job.run({"Trades": [{"ts": 1, "price": 3.0}]}).rows("Out")
    assert [(6.0, 3.0)] == [(r["v"], r["w"]) for r in found]


def test_bindings_may_come_first_use_names_and_other_words(tmp_path: Path) -> None:
    rows = [
        ("T", "in", "price", "Price", "float", ""),
        ("T", "in", "who", "A2", "String", "key"),
        ("T", "in", "ts", None, "timestamp", "time"),
        ("O", "out", "v", "C2"),
    ]
    path = save(tmp_path / "b.xlsx", bound(rows, {"C2": "=Price*2"}))
    book = openpyxl.load_workbook(path)
    book.defined_names["Price"] = DefinedName("Price", attr_text="S!$B$2")
    book.move_sheet("streams", -1)
    book.save(path)
    found = millstream.compile(path).run({"T": [{"ts": 1, "price": 3.0, "who": "a"}]}).rows("O")
    assert [6.0] == [r["v"] for r in found]
    sheet = millstream.sheets.load(path)
    sheet.set("B2", 4)
    sheet.compute(1)
    assert (8.0, True) == sheet.get("C2")


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_let_sees_defined_names_and_hides_them(tmp_path: Path, engine: str) -> None:
    rows = [*INPUT, ("O", "output", "v", "E1")]
    cells = {"E1": "=LET(x,B2*Tax,y,Free,IF(x>y,x,y))"}
    path = save(tmp_path / "book.xlsx", bound(rows, cells))
    book = openpyxl.load_workbook(path)
    book.defined_names["Tax"] = DefinedName("Tax", attr_text="2")
    book.defined_names["x"] = DefinedName("x", attr_text="1000")
    book.defined_names["Free"] = DefinedName("Free", attr_text="5")
    book.save(path)
    given = [{"ts": n, "zone": "a", "x": float(n), "y": 0.0} for n in (1, 4)]
    found = millstream.compile(path).run({"S": given}, engine=engine).rows("O")
    assert [5.0, 8.0] == [r["v"] for r in found]


def test_the_kind_of_an_output_is_that_of_the_results(tmp_path: Path) -> None:
    formulas = ['=SWITCH(A2,"EU",1,"US",2,0)', '=IFS(A2="EU",1,TRUE,2)', "=LET(x,B2,x*2)",
                "=INDEX(SORT(B2:C2),1)", '=XLOOKUP("b",F1:F3,F4:F6,0)+B2']  # fmt: skip
    found = values(tmp_path, formulas, "reference", F1="b", F4=1)
    assert [[float] * len(formulas)] == [[type(v[0]) for v in found]]
