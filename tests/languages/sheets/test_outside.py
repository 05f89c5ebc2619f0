"""Cells that no loop computes, beside a loop that is compiled."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest

from millstream.calculus.graph import Program
from millstream.calculus.sheets import Sheet
from millstream.calculus.types import NUMBER, TEXT, Schema
from millstream.engine.reference.feed import Event
from millstream.kernels.sheets.build import sheet_kernel
from millstream.kernels.sheets.compiled import CompiledSheetKernel
from millstream.kernels.sheets.functions import OF_NUMBERS
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from tests.languages.sheets.books import workbook
from tests.languages.sheets.laws import agree

ORDERS = Schema.of(k=TEXT, part=TEXT, quantity=NUMBER)
CELLS: dict[str, Any] = {
    **{f"T{n}": f"P{n}" for n in range(1, 21)},
    **{f"U{n}": n / 4 for n in range(1, 20)},
    "B3": "=XLOOKUP(B1,T1:T20,U1:U20)", "C3": "=ROUND(B3*C1,2)", "D3": "=WINDOWROWS(C3,5)",
    "E3": "=SUM(D3)", "F3": '=IF(B1<>PRE(B1,A1,""),UPPER(B1),"same")',
    "G3": '=IF(E3>20,"big "&F3,IF(C1>3,"few","none"))', "H3": '=IFERROR(C3&"/"&E3,"no price")',
    "I3": "=CHOOSE(C1,10,20,30)+E3", "J3": '=IF(ISNUMBER(C1),C1,"no number")',
}  # fmt: skip


def orders(shown: dict[str, str], cells: dict[str, Any] = CELLS) -> Program:
    bindings = Bindings(
        (InputBinding("L", (Binding("k", "A1"), Binding("part", "B1"), Binding("quantity", "C1")),
                      "k", columns=ORDERS),),
        (OutputBinding("Out", tuple(Binding(name, cell) for name, cell in shown.items())),),
    )  # fmt: skip
    return translate_workbook(workbook(cells), bindings)


def kernel(program: Program) -> Any:
    (operator,) = program.operators
    assert isinstance(operator.function, Sheet)
    types = program.queue_types()
    return sheet_kernel(operator.function, tuple(types[q] for q in operator.inputs), 1)


def reasons(program: Program) -> list[str]:
    source: str = kernel(program).source
    start = "# outside of the loop: "
    return [line.removeprefix(start) for line in source.splitlines() if line.startswith(start)]


def test_only_what_has_no_compiled_form_is_outside() -> None:
    shown = {"total": "E3", "text": "G3", "both": "H3", "chosen": "I3", "kind": "J3"}
    program = orders(shown)
    assert isinstance(kernel(program), CompiledSheetKernel)
    outside = {line.split()[0] for line in reasons(program)}
    assert outside >= {"S!B3", "S!F3", "S!H3"}
    assert outside.isdisjoint({"S!C3", "S!D3", "S!E3", "S!I3"})


def test_a_sheet_without_such_cells_has_none_outside() -> None:
    assert reasons(orders({"total": "E3"}, {"E3": "=C1*2"})) == []


def test_a_text_that_is_put_together_and_looked_back_to_is_called() -> None:
    cells = {"D1": '=PRE(E1,A1,"")', "E1": "=RIGHT(D1&B1,4)"}
    made = kernel(orders({"e": "E1"}, cells))
    assert isinstance(made, CompiledSheetKernel)
    assert "# outside of the loop: S!E1 called by the loop: the function RIGHT\n" in made.source


@pytest.mark.slow
def test_cells_outside_of_a_compiled_loop_give_what_the_reference_gives() -> None:
    """With so many texts that the loop forgets some of them in between."""
    chance = random.Random(20)
    rows = []
    for n in range(9000):
        part = f"new {n}" if chance.random() < 0.7 else chance.choice(["P1", "p7", "P20", None])
        quantity = chance.choice([None, 0.0, 1.0, 2.0, 3.0, 7.5])
        rows.append(Event(n, (chance.choice("xyz"), part, quantity)))
    shown = {name: f"{name}3" for name in "BCEFGHIJ"}
    agree(orders(shown), {"L": rows}, [10, 3000, 6000, 8999])


def test_a_cell_of_several_kinds_is_shown_and_looked_at_from_outside() -> None:
    """It is shown as a text, and what is made of it after the loop must not take it for one."""
    cells = {"D1": "=IF(C1>1,B1,C1)", "E1": "=C1+D1"}
    program = orders({"d": "D1", "e": "E1"}, cells)
    assert [line for line in reasons(program) if line.startswith("S!E1 after the loop")]
    rows = [("x", "7", 2.0), ("x", "a", 3.0), ("x", "a", -2.0), ("x", None, 5.0), ("x", "b", None)]
    agree(program, {"L": [Event(n, row) for n, row in enumerate(rows)]}, [2])


def test_what_is_called_shows_an_empty_value_of_texts_as_zero() -> None:
    cells = {"D1": "=WINDOWROWS(B1,3)", "E1": '=XLOOKUP(B1,D1,D1,"none",-1)', "F1": "=E1&C1"}
    program = orders({"e": "E1", "f": "F1"}, cells)
    assert "S!E1 called by the loop" in " ".join(reasons(program))
    rows = [("x", text, 1.0) for text in (None, "a", None, "A", "b")]
    agree(program, {"L": [Event(n, row) for n, row in enumerate(rows)]}, [2])


def test_no_variable_of_a_loop_has_the_name_of_a_function() -> None:
    """With every compiled function of numbers in a sheet that is computed by blocks."""
    calls = {
        f"D{n}": f"={name}({','.join(['C1'] * function.count)})"
        for n, (name, function) in enumerate(OF_NUMBERS.items(), 1)
    }
    source = kernel(orders({f"d{n}": cell for n, cell in enumerate(calls)}, calls)).source
    tree = ast.parse(source)
    functions = {alias.asname or alias.name for node in ast.walk(tree)
                 if isinstance(node, ast.ImportFrom) for alias in node.names}  # fmt: skip
    stored = {node.id for node in ast.walk(tree)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
    assert "odd" in functions
    assert not functions & stored


def test_what_is_selected_is_put_together_after_the_loop() -> None:
    """SELECT of a message is the message of what is selected, also of a selection of it."""
    cells = {
        "D1": '=B1&" at "&TEXT(C1,"0.00")&D2', "D2": '=PRE(C1,A1,0)&"!"', "E1": "=C1>2",
        "F1": "=SELECT(D1,E1)", "G1": '=F1&"."', "H1": "=SELECT(F1,I1)", "I1": '=B1="a"',
    }  # fmt: skip
    program = orders({"edge": "F1", "twice": "H1", "more": "G1", "sum": "C1"}, cells)
    told = reasons(program)
    assert told
    assert not [line for line in told if "called" in line]
    chance = random.Random(20)
    rows = [(chance.choice("xy"), chance.choice(["a", "b", None]), chance.choice([None, 1.0, 3.5]))
            for _ in range(60)]  # fmt: skip
    agree(program, {"L": [Event(n, row) for n, row in enumerate(rows)]}, [7, 30])
    alone = orders({"edge": "F1"}, cells)
    agree(alone, {"L": [Event(n, row) for n, row in enumerate(rows)]}, [7, 30])
