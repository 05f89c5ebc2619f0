"""Every kernel of the table against the reference environment, a round at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus import functions as fn
from millstream.calculus.cube import Vertex
from millstream.calculus.functions import Function
from millstream.calculus.grains import Grain
from millstream.calculus.graph import Operator
from millstream.calculus.judging import Requirement, Shown
from millstream.calculus.tables import RunScript, Tally
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, TIME, QueueType, Schema
from millstream.kernels.fallback import FallbackKernel
from millstream.kernels.runtime.kernel import Kernel
from millstream.kernels.table import KERNELS, kernel_for
from tests.kernels.relational_cases import bags, cuts, marks, relations, run, same, streams

SCHEMA = Schema.of(k=TEXT, x=NUMBER, n=INTEGER)
STREAM = QueueType(SCHEMA)
RELATION = QueueType(SCHEMA, is_relation=True)
OTHER = QueueType(Schema.of(k=TEXT, y=NUMBER), is_relation=True)
WAITING = QueueType(Schema.of(k=TEXT, n=INTEGER, t=TIME))
END = 45

AGGREGATIONS = tuple(
    fn.Aggregation(f"{function}_{name}", function, Column(name, SCHEMA[name]))
    for name in SCHEMA.names
    for function, kinds in fn.AGGREGATIONS.items()
    # Variances of any floats are right to nearly all digits only: see test_variance.
    if SCHEMA[name].kind in kinds and not function.startswith("var")
)


def judge() -> fn.Judge:
    x, n = Column("x", NUMBER), Column("n", INTEGER)
    deep = Call(">=", (x, Literal(0.5, NUMBER)), BOOLEAN)
    few = Call("<=", (Call("number", (n,), NUMBER), Literal(1.0, NUMBER)), BOOLEAN)
    shown = (Shown("x", "m", x),)
    one = Requirement("line 1", "x >= 0.5 m", None, deep, shown)
    other = Requirement("line 2", "n <= 1", deep, few, (Shown("n", "", n),), shown)
    return fn.Judge(("k", "n"), (one, other))


def ordered() -> fn.Ordered:
    columns = (
        fn.Placed("place", "row_number"),
        fn.Placed("before", "lag", "x", 1),
        fn.Placed("sum", "sum", "x", frame=fn.Frame("range", None, 0)),
        fn.Placed("least", "min", "n", frame=fn.Frame("rows", -1, 1)),
    )
    return fn.Ordered(("k",), ("n", "x"), ("x",), columns)


def framed(
    *columns: fn.Placed, on: str = "n", down: bool = False, count: int | None = None
) -> fn.Ordered:
    return fn.Ordered(("k",), (on,), (on,) if down else (), columns, count)


NEIGHBOURS = (
    fn.Placed("before", "lag", "x", 2), fn.Placed("after", "lead", "k", 1),
    fn.Placed("mean", "avg", "x", frame=fn.Frame("rows", -2, -1)),
    fn.Placed("largest", "max", "x", frame=fn.Frame("rows", 1, 2)),
    fn.Placed("rows", "count", frame=fn.Frame("rows", -1, 1)),
)  # fmt: skip
BY_DISTANCE = (
    fn.Placed("sum", "sum", "n", frame=fn.Frame("range", -1, 1)),
    fn.Placed("rest", "sum", "x", frame=fn.Frame("range", 1, None)),
    fn.Placed("least", "min", "k", frame=fn.Frame("range", -2, 0)),
    fn.Placed("last", "last", "x", frame=fn.Frame("range", None, -1)),
)
OF_ALL = (
    fn.Placed("values", "count", "x"), fn.Placed("mean", "avg", "n"),
    fn.Placed("first", "first", "x", frame=fn.Frame("rows", 0, None)),
    fn.Placed("kind", "dense_rank"), fn.Placed("after", "lead", "n", 1),
)  # fmt: skip


def places(by: tuple[str, ...], count: int | None) -> fn.Ordered:
    asked = ("dense_rank", "row_number", "rank")
    columns = tuple(fn.Placed(f"the_{function}", function) for function in asked)
    return fn.Ordered(by, ("x",), ("x",), columns, count)


def cube() -> fn.Cubify:
    total = fn.Aggregation("total", "sum", Column("n", INTEGER))
    finest, all_of_it = Vertex(("k",), Grain(2)), Vertex((), Grain(4))
    return fn.Cubify((("k",),), (total,), Grain(2), 3, (finest,), (finest, all_of_it))


CASES: list[tuple[Function, tuple[QueueType, ...]]] = [
    (judge(), (STREAM,)),
    (judge(), (RELATION,)),
    (fn.Now(), (STREAM,)),
    (fn.Range(3), (STREAM,)),
    (fn.Range(3, 2), (STREAM,)),
    (fn.Range(1, 4), (STREAM,)),
    (fn.Range(None, 5), (STREAM,)),
    (fn.Rows(2, ("k",)), (STREAM,)),
    (fn.Rows(2, ("k",), 3), (STREAM,)),
    (fn.Rows(3, (), 1), (STREAM,)),
    (fn.Latest(("k",)), (STREAM,)),
    (fn.Until("t"), (WAITING,)),
    (fn.Held("t", ("k",)), (WAITING,)),
    (fn.Held("t"), (WAITING,)),
    (fn.Held("t", is_alone=True), (WAITING,)),
    (fn.Join((("k", "k"),)), (RELATION, OTHER)),
    (fn.Join((("k", "k"),), None, nulls_match=True), (RELATION, OTHER)),
    (fn.Lookup("found", (("k", "k"),)), (RELATION, OTHER)),
    (fn.Lookup("found", (("x", "y"), ("k", "k")), nulls_match=True), (RELATION, OTHER)),
    (fn.Lookup("found"), (RELATION, OTHER)),
    (fn.Lookup("found", (("k", "k"),), where=fn.Comparison("x", "<", "y")), (RELATION, OTHER)),
    (fn.Lookup("found", where=fn.Comparison("x", ">=", "y")), (RELATION, OTHER)),
    (fn.Lookup("found", (("x", "y"),), True, fn.Comparison("k", "<=", "k")), (RELATION, OTHER)),
    (fn.Lookup("found", (("k", "k"),), where=fn.Comparison("k", ">", "k")), (RELATION, OTHER)),
    (fn.Aggregate(("k",), AGGREGATIONS), (RELATION,)),
    (fn.Aggregate((), AGGREGATIONS), (RELATION,)),
    (fn.Distinct(), (RELATION,)),
    (fn.Except(), (RELATION, RELATION)),
    (fn.Top(2, ("x", "k"), ("x",)), (RELATION,)),
    (fn.Top(3, ("n",)), (RELATION,)),
    (fn.Top(50, ("k",), ("k",)), (RELATION,)),
    (ordered(), (RELATION,)),
    (fn.Ordered((), ("x",), ("x",), (fn.Placed("p", "rank"),), 3), (RELATION,)),
    (framed(*NEIGHBOURS), (RELATION,)),
    (framed(*NEIGHBOURS, down=True), (RELATION,)),
    (framed(*NEIGHBOURS, count=2), (RELATION,)),
    (framed(*BY_DISTANCE), (RELATION,)),
    (framed(*BY_DISTANCE, on="x", down=True), (RELATION,)),
    (framed(*OF_ALL), (RELATION,)),
    (framed(*OF_ALL, count=3), (RELATION,)),
    (framed(fn.Placed("before", "lag", "x", 0), on="x"), (RELATION,)),
    (places(("k",), 2), (RELATION,)),
    (places(("k",), None), (RELATION,)),
    (places((), None), (RELATION,)),
    (fn.Ordered(("k",), ("n",), ("n",), (), 2), (RELATION,)),
    (fn.Ordered(("k",), ("n",), (), (fn.Placed("d", "dense_rank"),)), (RELATION,)),
    (fn.Ordered(("n",), ("k", "x"), ("k",), (fn.Placed("n1", "row_number"),), 1), (RELATION,)),
    (fn.Istream(), (RELATION,)),
    (fn.Dstream(), (RELATION,)),
    (fn.Rstream(), (RELATION,)),
    (fn.Rstream((2, 7)), (RELATION,)),
    (fn.Merge(), (STREAM, STREAM)),
    (fn.Merge(), (RELATION, RELATION)),
    (fn.Changes(("k",), (fn.Assign("before", Column("x", NUMBER)),)), (RELATION,)),
    (fn.RoundRobinJoin((2, 1)), (STREAM, STREAM)),
    (fn.RoundRobinSplit((2, 1)), (STREAM,)),
    (fn.Interleave((1, 0), (0, 1, 1)), (STREAM, STREAM)),
    (cube(), (STREAM,)),
]


def reference(function: Function, types: tuple[QueueType, ...], outputs: int) -> FallbackKernel:
    state = tuple(f"v{i}" for i in range(function.state_count(len(types))))
    inputs = tuple(f"in{i}" for i in range(len(types)))
    names = tuple(f"out{i}" for i in range(outputs))
    operator = Operator(function, inputs, names, state, state)
    named = tuple(zip(inputs, types, strict=True))
    return FallbackKernel((operator,), named, names, (), [0] * len(types), is_ranked=False)


def outputs_of(function: Function) -> int:
    return 1 if function.output_count == 1 else 2


#: Scripts and their tables have columns of their own, and comparisons of their own.
OF_SCRIPTS = {RunScript, Tally}


def test_every_kernel_is_compared() -> None:
    assert set(KERNELS) - OF_SCRIPTS == {type(function) for function, _ in CASES}


@pytest.mark.parametrize(("function", "types"), CASES)
@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_kernel_gives_what_the_reference_gives(
    function: Function, types: tuple[QueueType, ...], data: st.DataObject
) -> None:
    histories = [
        data.draw((relations if t.is_relation else streams)(t.schema, small=True, size=12))
        for t in types
    ]
    ends = marks(data.draw(cuts), END)
    ticks = sorted({time for h in histories for time, _, _ in h})
    outputs = outputs_of(function)
    kernel = kernel_for(type(function))(function, types, outputs)
    expected = run(reference(function, types, outputs), types, histories, ends, ticks=ticks)
    actual = run(kernel, types, histories, ends, ticks=ticks)
    queues = function.output_types(types, outputs)
    for type_, wanted, given_ in zip(queues, expected, actual, strict=True):
        if type_.is_relation:
            assert bags(wanted, range(-5, END)) == bags(given_, range(-5, END))
        else:
            assert [(t, same(r)) for t, r, _ in wanted] == [(t, same(r)) for t, r, _ in given_]


KEPT = (fn.Lookup, fn.Top, fn.Range, fn.Rows, fn.Rstream)


@pytest.mark.parametrize(("function", "types"), [c for c in CASES if isinstance(c[0], KEPT)])
@given(data=st.data())
@settings(max_examples=4, deadline=None)
def test_a_kernel_that_is_stored_after_every_round_goes_on_as_before(
    function: Function, types: tuple[QueueType, ...], data: st.DataObject
) -> None:
    def make() -> Kernel:
        made: Kernel = kernel_for(type(function))(function, types, 1)
        return made

    histories = [
        data.draw((relations if t.is_relation else streams)(t.schema, small=True, size=12))
        for t in types
    ]
    ends = marks(data.draw(cuts), END)
    ticks = sorted({time for h in histories for time, _, _ in h})
    expected = run(make(), types, histories, ends, ticks=ticks)
    assert expected == run(make(), types, histories, ends, ticks=ticks, remake=make)
