"""Generated nets: filters with generated codes, split and joined, some in feedback loops."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from millstream.calculus.each import PerKey
from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Input, Program
from millstream.calculus.procedures import Code, Let, Peek, Pop, Push, Shape, Slot
from millstream.calculus.terms import Literal, Place, Read
from millstream.calculus.types import BOOLEAN, INTEGER, TEXT, Field, QueueType, Row, Schema, Value
from millstream.calculus.wiring import Queue, Wiring
from millstream.calculus.work import (
    PRINTED,
    Interleave,
    Rates,
    Work,
    item_of_row,
    row_of_item,
    schema_of_items,
)
from millstream.engine.reference.feed import Event
from millstream.values.types import INT32, Type
from tests.generate_codes import SHAPES, VALUES, types_in, works

TICKS = QueueType(Schema.of(number=INTEGER))


class NetDraft:
    """Mutable: a net in the making."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.wiring = Wiring()
        self.printed: list[Queue] = []

    def shape(self) -> Shape:
        return self.draw(st.sampled_from(SHAPES))

    def queue(self, shape: Shape) -> Queue:
        return Queue(self.wiring.fresh("q"), QueueType(schema_of_items(shape)))

    def filter(self, source: Queue, taken: Shape | None, given: Shape,
               rates: Rates | None = None) -> Queue:  # fmt: skip
        out = self.queue(given)
        self.connect(self.draw(works(taken, given, rates=rates)), source, out)
        return out

    def connect(self, work: Work, source: Queue, out: Queue) -> None:
        outputs: tuple[Queue, ...] = (out,)
        if work.prints:
            self.printed.append(Queue(self.wiring.fresh("said"), PRINTED))
            outputs += (self.printed[-1],)
        self.wiring.connect(work, (source,), outputs)

    def part(self, source: Queue, shape: Shape, depth: int) -> tuple[Queue, Shape]:
        """Something more behind a queue."""
        kinds = ("filter", "order", "split", "loop") if depth else ("filter", "order")
        match self.draw(st.sampled_from(kinds)):
            case "split":
                return self.split_join(source, shape, depth), shape
            case "loop":
                return self.loop(source, shape), shape
            case "order" if isinstance(shape, Type):
                return self.order(source, shape), shape
            case _:
                given = self.shape()
                return self.filter(source, shape, given), given

    def order(self, source: Queue, type_: Type) -> Queue:
        """A filter that only moves items."""
        pop, more = self.draw(st.integers(1, 4)), self.draw(st.integers(0, 2))
        return self.moving(source, type_, pop, more, self.draw(st.integers(1, 5)))

    def moving(self, source: Queue, type_: Type, pop: int, more: int, count: int) -> Queue:
        """So many of the items that it sees, in any order."""
        seen = st.integers(0, pop + more - 1)
        places = self.draw(st.lists(seen, min_size=count, max_size=count))
        read = Read(Place("x"), type_)
        moved = [(Peek(Literal(place, INT32), Place("x")), Push(read)) for place in places]
        body = (Let(Slot("x", type_)), *(s for pair in moved for s in pair), *[Pop()] * pop)
        code = Code("Order", (), (), type_, type_, (), None, body)
        out = self.queue(type_)
        rates = Rates(pop, pop + more, len(places))
        self.connect(Work(code, (), type_, type_, rates), source, out)
        return out

    def split_join(self, source: Queue, shape: Shape, depth: int) -> Queue:
        count = self.draw(st.integers(2, 3))
        branches = tuple(self.queue(shape) for _ in range(count))
        weights = st.tuples(*[st.integers(1, 3)] * count)
        is_copied = self.draw(st.booleans())
        split = Duplicate() if is_copied else RoundRobinSplit(self.draw(weights))
        self.wiring.connect(split, (source,), branches)
        ends = []
        for branch in branches:
            end, given = branch, shape
            for _ in range(self.draw(st.integers(0, 2))):
                end, given = self.part(end, given, depth - 1)
            ends.append(end if given == shape else self.filter(end, given, shape))
        joined = self.queue(shape)
        self.wiring.connect(RoundRobinJoin(self.draw(weights)), tuple(ends), (joined,))
        return joined

    def loop(self, source: Queue, shape: Shape) -> Queue:
        """As many items go round as come in; what is enqueued lets it begin."""
        joined, out, ahead, back = (self.queue(shape) for _ in range(4))
        rows = tuple(self.row(shape) for _ in range(self.draw(st.integers(0, 4))))
        join = RoundRobinJoin((1, 1), ((), rows))
        self.wiring.connect(join, (source, back), (joined,))
        body = self.filter(joined, shape, shape, Rates(2, 2 + self.draw(st.integers(0, 1)), 2))
        split = RoundRobinSplit((1, 1))
        self.wiring.connect(split, (body,), (out, ahead))
        self.connect(self.draw(works(shape, shape, rates=Rates(1, 1, 1))), ahead, back)
        return out

    def row(self, shape: Shape) -> Row:
        columns = schema_of_items(shape)
        values = [self.draw(VALUES[t]) for t in types_in(shape)]
        assert len(values) == len(columns)
        return row_of_item(shape, item_of_row(shape, tuple(values)))


@st.composite
def nets(draw: st.DrawFn, depth: int = 1) -> Program:
    """A net with an input of items or of ticks."""
    draft = NetDraft(draw)
    shape = draft.shape()
    if draw(st.integers(0, 2)) == 0:
        queue = draft.filter(draft.wiring.input(Input("ticks", TICKS)), None, shape)
    else:
        queue = draft.wiring.input(Input("items", QueueType(schema_of_items(shape))))
        given = draft.shape()
        queue, shape = draft.filter(queue, shape, given), given
    for _ in range(draw(st.integers(0, 2))):
        queue, shape = draft.part(queue, shape, depth)
    outputs = {"out": queue}
    if len(draft.printed) > 1 and draw(st.booleans()):
        turns = st.lists(st.integers(0, len(draft.printed) - 1), max_size=4)
        order = Interleave(tuple(draw(turns)), tuple(draw(turns)))
        outputs["printed"] = draft.wiring.add(order, *draft.printed, name="all")
    else:
        outputs |= {f"printed{n}": said for n, said in enumerate(draft.printed)}
    return draft.wiring.program(outputs)


@st.composite
def net_inputs(draw: st.DrawFn, program: Program, *, max_rows: int = 24) -> dict[str, list[Event]]:
    (one,) = program.inputs
    work = next(op.function for op in program.operators if one.name in op.inputs)
    assert isinstance(work, Work)
    times = sorted(draw(st.lists(st.integers(0, 30), max_size=max_rows)))
    if work.taken is None:
        return {one.name: [Event(t, (n,)) for n, t in enumerate(times)]}
    types = types_in(work.taken)
    rows = [tuple(draw(VALUES[t]) for t in types) for _ in times]
    return {one.name: [Event(t, row) for t, row in zip(times, rows, strict=True)]}


@st.composite
def nets_by_key(draw: st.DrawFn) -> Program:
    """A net of items for every key."""
    net = draw(nets().filter(lambda p: p.input_names == ("items",) and p.outputs == ("out",)))
    key = Field("key", draw(st.sampled_from([TEXT, INTEGER, BOOLEAN])))
    wiring = Wiring(reserved=("out",))
    schema = Schema((key, *net.inputs[0].type.schema))
    rows = wiring.input(Input("items", QueueType(schema)))
    first = draw(st.none() | st.integers(1, 6))
    return wiring.program({"out": wiring.add(PerKey(("key",), net, first), rows, name="of_all")})


@st.composite
def inputs_by_key(draw: st.DrawFn, program: Program) -> dict[str, list[Event]]:
    (operator,) = program.operators
    assert isinstance(operator.function, PerKey)
    items = draw(net_inputs(operator.function.program, max_rows=40))["items"]
    key = program.inputs[0].type.schema.fields[0].type
    values: dict[Type, list[Value]] = {
        TEXT: ["a", "b", "", None], INTEGER: [1, -7], BOOLEAN: [True, None],
    }  # fmt: skip
    chosen = st.sampled_from(values[key])
    return {"items": [replace(event, row=(draw(chosen), *event.row)) for event in items]}
