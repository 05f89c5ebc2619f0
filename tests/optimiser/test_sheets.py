"""The optimiser sees through sheets: selections go before them, what is not read is left out."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.base import Assign
from millstream.calculus.functions import Filter, Map
from millstream.calculus.graph import Operator, Program
from millstream.calculus.lineage import carried
from millstream.calculus.sheets import Fed, Sheet, address_text
from millstream.calculus.terms import Call, Column, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN, NUMBER, TEXT, Schema, Type, Value
from millstream.calculus.verify import verified
from millstream.engine.reference.feed import Event
from millstream.languages.sheets.bindings import Binding, Bindings, InputBinding, OutputBinding
from millstream.languages.sheets.translate import translate_workbook
from millstream.optimiser.hoist_select import hoist_select, refusals
from millstream.optimiser.narrow_columns import narrow_columns
from millstream.optimiser.optimise import optimise
from millstream.optimiser.split_sheets import refusals as why_together
from millstream.optimiser.split_sheets import split_sheets
from tests.languages.sheets.books import Cells, workbook
from tests.languages.sheets.generate import sheets, sheets_alone, tuples
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


def test_selection_by_a_number_goes_before_a_sheet_which_makes_null_of_an_infinity() -> None:
    condition = Call(">", (Column("p", NUMBER), Literal(1.0, NUMBER)), BOOLEAN)
    program = behind(sheet({"C1": "=B1*2"}, {"p": "B1", "t": "C1"}), Filter(condition))
    after = hoist_select(program)
    assert ["Filter", "Sheet"] == shown(after)
    events = {"Trades": [Event(n, ("IBM", x)) for n, x in enumerate((math.inf, 2.0, None, 0.0))]}
    assert on_reference(program, events)[0] == on_reference(after, events)[0]


def test_selection_by_a_cell_that_shows_a_text_knows_that_an_empty_one_is_zero() -> None:
    program = behind(sheet({"C1": "=A1"}, {"s": "C1"}), Filter(equal("s", TEXT, "0")))
    after = hoist_select(program)
    assert ["Filter", "Sheet"] == shown(after)
    events = {"Trades": [Event(n, (sym, 1.0)) for n, sym in enumerate((None, "IBM", "0"))]}
    assert 2 == len(on_reference(after, events)[0]["Out"])
    assert on_reference(program, events)[0] == on_reference(after, events)[0]


def test_selection_by_a_cell_that_a_formula_computes_stays() -> None:
    program = behind(sheet({"C1": '=A1&"x"'}, {"s": "C1"}), Filter(IS_IBM))
    assert program is hoist_select(program)


QUOTES = Schema.of(name=TEXT, ask=NUMBER)


def two_inputs(cells: Cells, *outputs: dict[str, str]) -> Program:
    """A sheet over trades and quotes by symbol: these come to A2 and B2."""
    bindings = Bindings(
        (
            InputBinding(
                "Trades", (Binding("sym", "A1"), Binding("price", "B1")), "sym", columns=TRADES
            ),
            InputBinding(
                "Quotes", (Binding("name", "A2"), Binding("ask", "B2")), "name", columns=QUOTES
            ),
        ),
        tuple(
            OutputBinding(name, tuple(Binding(n, cell) for n, cell in shown_.items()))
            for name, shown_ in zip(("Out", "More"), outputs, strict=False)
        ),
    )
    return translate_workbook(workbook(cells), bindings)


BOTH = {
    "Trades": [Event(1, ("IBM", 1.0)), Event(4, ("MS", 2.0)), Event(6, ("IBM", 5.0))],
    "Quotes": [Event(2, ("MS", 3.0)), Event(3, ("IBM", 4.0)), Event(5, (None, 4.0))],
}


def test_selection_by_the_key_of_a_sheet_goes_before_all_its_inputs() -> None:
    plain = two_inputs({"C1": "=B1+B2", "D1": "=A2"}, {"s": "D1", "both": "C1"})
    program = behind(plain, Filter(IS_IBM))
    after = hoist_select(program)
    before, others, _, rest = (op.function for op in after.operators)
    assert Filter(Call("not", (Call("is_null", (Column("s", TEXT),), BOOLEAN),), BOOLEAN)) == rest
    assert isinstance(before, Filter)
    assert isinstance(others, Filter)
    assert frozenset({"sym"}) == columns_read(before.condition)
    assert frozenset({"name"}) == columns_read(others.condition)
    assert after is hoist_select(after)
    # The first trade of IBM comes before any quote: then nobody knows the symbol of the quote.
    assert 2 == len(on_reference(after, BOTH)[0]["Out"])
    assert on_reference(program, BOTH)[0] == on_reference(after, BOTH)[0]


def test_selection_that_is_true_of_null_stays_behind_a_sheet_with_two_inputs() -> None:
    condition = Call("is_null", (Column("s", TEXT),), BOOLEAN)
    program = behind(two_inputs({"C1": "=B1+B2"}, {"s": "A2", "b": "C1"}), Filter(condition))
    assert program is hoist_select(program)


def test_outputs_without_common_cells_are_sheets_with_fewer_inputs() -> None:
    cells = {"C1": "=SUM(WINDOWROWS(B1,2))", "C2": "=B2*2"}
    program = two_inputs(cells, {"s": "A1", "sum": "C1"}, {"s": "A2", "double": "C2"})
    after = split_sheets(program)
    assert ["Sheet", "Sheet"] == shown(after)
    assert [("Trades",), ("Quotes",)] == [op.inputs for op in after.operators]
    keeps, free = (op.function for op in after.operators)
    assert isinstance(keeps, Sheet)
    assert isinstance(free, Sheet)
    types = after.queue_types()
    assert free.facts((types["Quotes"],), 0).is_stateless
    assert not keeps.facts((types["Trades"],), 0).is_stateless
    assert on_reference(program, BOTH)[0] == on_reference(after, BOTH)[0]


def test_outputs_that_need_the_same_cells_stay_one_sheet() -> None:
    cells = {"C1": "=SUM(WINDOWROWS(B1,2))", "C2": "=C1+B2"}
    program = two_inputs(cells, {"s": "A1", "sum": "C1"}, {"s": "A2", "more": "C2"})
    assert program is split_sheets(program)
    assert ["what it sends is made of the same cells"] == [why for _, why in why_together(program)]


def test_an_input_that_no_output_needs_is_read_all_the_same_but_none_of_its_columns() -> None:
    cells = {"C1": "=B1*2", "D1": "=PRE(D1,B1,0)+1"}
    program = two_inputs(cells, {"double": "C1"}, {"count": "D1"})
    after = optimise(program)
    assert ["Duplicate", "Sheet", "Sheet"] == shown(after)
    assert ["Quotes"] == [q for op in after.operators for q in op.inputs if q == "Quotes"]
    fed = [
        cell.rule.column
        for op in after.operators
        if isinstance(op.function, Sheet)
        for cell in op.function.cells
        if isinstance(cell.rule, Fed)
    ]
    assert ["price", "price"] == fed
    assert on_reference(program, BOTH)[0] == on_reference(after, BOTH)[0]


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
    assert ["d", "p"] == [c.name for c in sheet_of(narrow_columns(program)).outputs[0]]
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


@settings(max_examples=60, deadline=None)
@given(sheets(outside=True), tuples())
def test_sheets_that_are_taken_apart_give_the_same(
    program: Program, events: dict[str, list[Event]]
) -> None:
    assert on_reference(program, events)[0] == on_reference(split_sheets(program), events)[0]
    assert on_reference(program, events)[0] == on_reference(narrow_columns(program), events)[0]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_a_sheet_hands_on_is_what_its_terms_say(data: st.DataObject) -> None:
    """Also behind sheets with two inputs, of which either may come first."""
    plain = data.draw(sheets(outside=True))
    if len(plain.outputs) > 1:
        return
    program = behind(plain, *data.draw(readers(plain)))
    events = data.draw(tuples())
    assert on_reference(program, events)[0] == on_reference(hoist_select(program), events)[0]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_sheets_give_the_same_whatever_is_left_out(data: st.DataObject) -> None:
    plain = data.draw(sheets_alone())
    program = behind(plain, *data.draw(readers(plain)))
    events = {"L": data.draw(tuples())["L"]}
    assert on_reference(program, events)[0] == on_reference(optimise(program), events)[0]
