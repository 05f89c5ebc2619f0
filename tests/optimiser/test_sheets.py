"""The optimiser sees through sheets: selections go before them, what is not read is left out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.base import Assign
from millstream.calculus.functions import Filter, Map
from millstream.calculus.graph import Operator, Program
from millstream.calculus.lineage import carried
from millstream.calculus.sheets import Sheet, address_text
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, NUMBER, TEXT, Schema, Type, Value
from millstream.calculus.verify import verified
from millstream.engine.reference.feed import Event
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from millstream.optimiser.hoist_select import hoist_select, refusals
from millstream.optimiser.narrow_columns import narrow_columns
from millstream.optimiser.optimise import optimise
from tests.languages.sheets.books import Cells, workbook
from tests.languages.sheets.generate import sheets_alone, tuples
from tests.laws.runs import on_reference

TRADES = Schema.of(sym=TEXT, price=NUMBER)


def equal(name: str, type_: Type, value: Value) -> Term:
    return Call("==", (Column(name, type_), Literal(value, type_)), BOOLEAN)


IS_IBM = equal("s", TEXT, "IBM")


def sheet(cells: Cells, shown: dict[str, str], *, key: str | None = "sym") -> Program:
    """A sheet over trades: symbols come to A1, prices to B1."""
    fed = (Binding("sym", "A1"), Binding("price", "B1"))
    read = tuple(Binding(name, cell) for name, cell in shown.items())
    bindings = Bindings(
        (InputBinding("Trades", fed, key, columns=TRADES),), (OutputBinding("Out", read),)
    )
    return translate_workbook(workbook(cells), bindings)


def behind(program: Program, *functions: Filter | Map) -> Program:
    """The program with operators behind its output."""
    operators = list(program.operators)
    for number, function in enumerate(functions):
        last, name = operators[-1], f"q{number}"
        operators[-1] = replace(last, outputs=(name,))
        operators.append(Operator(function, (name,), ("Out",)))
    return verified(replace(program, operators=tuple(operators)))


def shown(program: Program) -> list[str]:
    return [op.function.name for op in program.operators]


def sheet_of(program: Program) -> Sheet:
    (found,) = (op.function for op in program.operators if isinstance(op.function, Sheet))
    return found


TOTAL = {"C1": "=PRE(C1,B1,0)+B1", "D1": "=AVERAGE(WINDOWROWS(B1,3))", "E1": "=UPPER(A1)"}


def test_selection_by_the_key_of_a_sheet_goes_before_it_under_its_old_name() -> None:
    after = hoist_select(behind(sheet(TOTAL, {"s": "A1", "t": "C1"}), Filter(IS_IBM)))
    assert ["Filter", "Sheet"] == shown(after)
    assert Filter(equal("sym", TEXT, "IBM")) == after.operators[0].function


def test_selection_stays_behind_a_sheet_that_keeps_something_for_all_symbols() -> None:
    program = behind(sheet(TOTAL, {"s": "A1", "t": "C1"}, key=None), Filter(IS_IBM))
    assert program is hoist_select(program)
    ((_, why),) = refusals(program)
    assert "keeps in one state" in why


def test_selection_by_a_number_stays_behind_a_sheet_which_makes_an_error_of_an_infinity() -> None:
    condition = equal("p", NUMBER, 1.0)
    program = behind(sheet({"C1": "=B1*2"}, {"p": "B1", "t": "C1"}), Filter(condition))
    assert program is hoist_select(program)


def test_selection_by_a_cell_that_a_formula_fills_stays() -> None:
    program = behind(sheet({"C1": "=A1"}, {"s": "C1"}), Filter(IS_IBM))
    assert program is hoist_select(program)


def test_cells_that_only_unread_columns_need_are_left_out_with_their_variables() -> None:
    wide = sheet(TOTAL, {"s": "A1", "t": "C1", "a": "D1", "u": "E1"})
    program = behind(wide, Map((Assign("u", Column("u", TEXT)),)))
    after = narrow_columns(program)
    assert ["u"] == [c.name for c in sheet_of(after).outputs[0]]
    assert ["S!A1", "S!E1"] == [address_text(c.address) for c in sheet_of(after).cells]
    assert 1 == len(after.operators[0].reads)
    assert sheet_of(program).state_count(1) == len(program.operators[0].reads)


def test_a_column_that_decides_when_an_output_is_sent_stays() -> None:
    cells = {"C1": "=SELECT(B1,B1>2)", "D1": "=C1+1"}
    program = behind(sheet(cells, {"d": "D1", "p": "B1"}), Map((Assign("d", Column("d", NUMBER)),)))
    assert program is narrow_columns(program)
    events = {"Trades": [Event(n, ("IBM", float(n))) for n in range(5)]}
    assert 5 == len(on_reference(optimise(program), events)[0]["Out"])


def test_the_key_of_a_sheet_is_known_behind_it() -> None:
    program = sheet(TOTAL, {"s": "A1", "t": "C1"})
    (one,) = program.operators
    assert {"s": "sym"} == carried(one, tuple(i.type for i in program.inputs), 0)


@st.composite
def readers(draw: st.DrawFn, program: Program) -> list[Filter | Map]:
    """A selection by one column of a sheet, and some of its columns."""
    schema = program.queue_types()["Out"].schema
    kept = draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True))
    one = draw(st.sampled_from(schema.fields))
    wanted: dict[Type, Value] = {TEXT: "p", NUMBER: 1.0, BOOLEAN: True}
    condition = equal(one.name, one.type, wanted[one.type])
    columns = Map(tuple(Assign(n, Column(n, schema[n])) for n in kept))
    return [Filter(condition), columns] if draw(st.booleans()) else [columns]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_sheets_give_the_same_whatever_is_left_out(data: st.DataObject) -> None:
    plain = data.draw(sheets_alone())
    program = behind(plain, *data.draw(readers(plain)))
    events = {"L": data.draw(tuples())["L"]}
    assert on_reference(program, events)[0] == on_reference(optimise(program), events)[0]
