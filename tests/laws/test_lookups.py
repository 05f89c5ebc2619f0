"""Rows compared with values that change: what the optimiser makes of it means the same.

Generated conditions on pairs of a row and a value (of all rows, of each key, the latest row, or
several), read behind in several ways: the reference on the program as written, the reference
and the local engine on the optimised one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.functions import (
    Aggregate,
    Aggregation,
    Assign,
    Columns,
    Distinct,
    Filter,
    Function,
    Join,
    Map,
    Range,
    Rows,
)
from millstream.calculus.graph import Input, Operator, Program
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, QueueType, Schema, Type
from millstream.calculus.verify import verified
from millstream.kernels.relational.pieces import Piecewise
from millstream.optimiser.look_up_joins import look_up_joins
from millstream.optimiser.optimise import optimise
from tests.generate import inputs_for
from tests.laws.runs import on_local, on_reference
from tests.seeds import TODAY, campaign, seeded

ROW = Schema.of(k=INTEGER, v=INTEGER, x=NUMBER, t=TEXT)
OTHER = Schema.of(j=INTEGER, w=INTEGER, y=NUMBER, u=TEXT)
BOTH = Schema(ROW.fields + OTHER.fields)

#: What the other side is: one row of all, one for each key, or several.
VALUES: dict[str, Function] = {
    "all": Aggregate(
        (),
        (
            Aggregation("j", "count"),
            Aggregation("w", "max", Column("w", INTEGER)),
            Aggregation("y", "avg", Column("y", NUMBER)),
            Aggregation("u", "min", Column("u", TEXT)),
        ),
    ),
    "key": Aggregate(
        ("j",),
        (
            Aggregation("w", "min", Column("w", INTEGER)),
            Aggregation("y", "max", Column("y", NUMBER)),
            Aggregation("u", "max", Column("u", TEXT)),
        ),
    ),
    "latest": Rows(1, ("j",)),
    "last": Rows(1),
    "several": Rows(2),
}

#: How what is joined is read.
KEPT: dict[str, tuple[Columns | None, Function | None]] = {
    "rows": (tuple(Assign(n, Column(n, ROW[n])) for n in ("k", "v", "t")), None),
    "different rows": ((Assign("v", Column("v", INTEGER)),), Distinct()),
    "a sum": (None, Aggregate(("k",), (Aggregation("n", "count"),))),
    "all": (None, None),
}

COMPARED: list[tuple[str, str, Type]] = [
    ("k", "j", INTEGER), ("v", "w", INTEGER), ("x", "y", NUMBER), ("t", "u", TEXT)
]  # fmt: skip


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Term:
    if depth and draw(st.booleans()):
        tie = draw(st.sampled_from(["and", "and", "or"]))
        return Call(tie, (draw(conditions(depth - 1)), draw(conditions(depth - 1))), BOOLEAN)
    ours, theirs, type_ = draw(st.sampled_from(COMPARED))
    one, other = Column(ours, type_), Column(theirs, type_)
    order = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
    shape = draw(
        st.sampled_from(["pair", "pair", "pair", "turned", "own", "theirs", "cast", "sum"])
    )
    if shape == "cast" and type_ == INTEGER:
        sides: list[Term] = [Call("number", (c,), NUMBER) for c in (one, other)]
    elif shape == "sum" and type_ == INTEGER:
        sides = [Call("+", (one, other), INTEGER), Literal(2, INTEGER)]
    elif shape in ("own", "theirs") and type_ != TEXT:
        value: Term = Literal(1 if type_ == INTEGER else 1.0, type_)
        sides = [one if shape == "own" else other, value]
    else:
        sides = [other, one] if shape == "turned" else [one, other]
    return Call(order, tuple(sides), BOOLEAN)


@st.composite
def questions(draw: st.DrawFn) -> Program:
    value = VALUES[draw(st.sampled_from(sorted(VALUES)))]
    columns, reader = KEPT[draw(st.sampled_from(sorted(KEPT)))]
    is_stream = isinstance(value, Rows)
    operators = [Operator(Range(3), ("s",), ("rows",), ("$1",), ("$1",))]
    if not is_stream:
        operators.append(Operator(Range(4), ("o",), ("o.range",), ("$2",), ("$2",)))
    source = "o" if is_stream else "o.range"
    operators.append(Operator(value, (source,), ("values",), ("$3",), ("$3",)))
    on = draw(st.sampled_from([(), (), (("k", "j"),)]))
    where = draw(st.one_of(st.none(), conditions()))
    is_turned = draw(st.booleans())
    inputs = ("values", "rows") if is_turned else ("rows", "values")
    pairs = tuple((b, a) for a, b in on) if is_turned else on
    join = Join(pairs, where, nulls_match=draw(st.booleans()))
    operators.append(Operator(join, inputs, ("pairs",), ("$4", "$5"), ("$4", "$5")))
    queue = "pairs"

    def then(function: Function | None) -> None:
        nonlocal queue
        if function is not None:
            state = tuple(f"{queue}${n}" for n in range(function.state_count(1)))
            operators.append(Operator(function, (queue,), (f"{queue}.",), state, state))
            queue += "."

    then(draw(st.one_of(st.none(), conditions().map(Filter))))
    then(Map(columns) if columns else None)
    then(reader)
    streams = (Input("s", QueueType(ROW)), Input("o", QueueType(OTHER)))
    return verified(Program(streams, (queue,), tuple(operators)))


def agree(data: st.DataObject) -> None:
    program = data.draw(questions())
    events = data.draw(inputs_for(program, max_rows=10))
    expected, _ = on_reference(program, events)
    assert expected == on_reference(optimise(program, (look_up_joins,)), events)[0]
    optimised = optimise(program)
    assert expected == on_reference(optimised, events)[0]
    assert expected == on_local(optimised, events, data.draw(st.lists(st.integers(0, 9))))[0]


@contextmanager
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Piecewise, "room", lambda *_: 1)
        patch.setattr("millstream.kernels.runtime.gathered._MOST", 1)
        yield


def agree_on(number: int, count: int) -> None:
    @seeded(number, count)
    @given(st.data())
    def law(data: st.DataObject) -> None:
        agree(data)

    law()


@pytest.mark.parametrize("number", [0, TODAY])
def test_what_is_asked_of_values_that_change_is_answered_the_same(number: int) -> None:
    agree_on(number, 20)


def test_what_is_asked_in_small_pieces_is_answered_the_same() -> None:
    """The same questions, whose loops are there by now."""
    with small_pieces():
        agree_on(0, 20)


@pytest.mark.proof
@pytest.mark.parametrize("number", campaign(400, 20))
def test_more_of_what_is_asked_in_small_pieces(number: int) -> None:
    with small_pieces():
        agree_on(number, 20)


def test_a_join_with_one_value_becomes_a_lookup() -> None:
    """The generated questions must be such as the pass answers."""
    found = 0

    @settings(max_examples=100, deadline=None, database=None)
    @given(questions())
    def count(program: Program) -> None:
        nonlocal found
        found += optimise(program, (look_up_joins,)) is not program

    count()
    assert found > 15
