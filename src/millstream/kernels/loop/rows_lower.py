"""What happens to rows, as a loop: from the actions of a trace to the IR.

It is written for columns that may have nulls; the passes make the code for those without of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.kernels.loop.ir import (
    FAULTS_OF,
    HOLDS,
    INTEGER,
    NUMBER,
    VALID_OF,
    VALUE_OF,
    YES,
    ZERO,
    Body,
    Count,
    Decide,
    Function,
    Given,
    Guarded,
    Load,
    Local,
    Memory,
    Rep,
    Set,
    Statement,
    Store,
    Value,
    When,
    integer,
    op,
)
from millstream.kernels.loop.numbers import ONE, both, either, equal, less, not_, plus
from millstream.kernels.loop.operations import rep_of
from millstream.kernels.loop.rows_layout import ComputedColumn, LoopLayout
from millstream.kernels.loop.rows_nodes import Apply
from millstream.kernels.loop.rows_trace import Action, Evaluate, Key, Send, Trace
from millstream.kernels.loop.rows_trace import Decide as DecideAction
from millstream.kernels.loop.rows_trace import Load as LoadAction
from millstream.kernels.loop.rows_trace import Store as StoreAction
from millstream.kernels.loop.rows_values import Leaves, Lines, RowValues, one
from millstream.values.core.scalar import Operation

#: There is no minus zero.
_UNSIGNED_ZERO = Operation("", "{0} + 0.0")


def lower_rows(trace: Trace, layout: LoopLayout, leaves: Leaves) -> Function:
    """All operators on all rows."""
    rows = [Local(f"i{number}", INTEGER) for number in range(len(trace.inputs))]
    lines = Lines()
    bodies = [
        _Row(RowValues(lines.anew(), leaves, row), trace, layout).run(actions)
        for row, actions in zip(rows, trace.actions, strict=True)
    ]
    loop = _one_input(rows[0], bodies[0]) if len(rows) == 1 else _merged(rows, bodies)
    counted = [n for n, output in enumerate(layout.outputs) if not output.is_every_row]
    counts = Memory("counts", Rep.INTEGER)
    before = (Set(one(), Load(Memory("one", Rep.NUMBER), ZERO)),
              *(Set(_counter(n), Load(counts, integer(n))) for n in counted))  # fmt: skip
    after = (Store(counts, integer(n), _counter(n)) for n in counted)
    return Function((*before, *loop, *after), tuple(trace.parents))


def lower_columns(nodes: list[Apply], leaves: Leaves) -> Function:
    """Columns that are needed before the loop: values, whether they are there, and faults."""
    row = Local("i0", INTEGER)
    values = RowValues(Lines(), leaves, row)
    for number, node in enumerate(nodes):
        held = values.get(node, 0)
        for kind, rep, value in (
            ("column", rep_of(node.type), op(VALUE_OF, held)),
            ("valid", Rep.TRUTH, op(VALID_OF, held)),
            ("faults", Rep.INTEGER, op(FAULTS_OF, held)),
        ):
            values.lines.add(0, Store(Memory(f"made_{kind}", rep, number), row, value))
    before = Set(one(), Load(Memory("one", Rep.NUMBER), ZERO))
    return Function((before, *_one_input(row, values.lines.guarded())))


# --- loops ------------------------------------------------------------------------------


def _counter(output: int) -> Local:
    """How many rows have left by an output."""
    return Local(f"c{output}", INTEGER)


def _one_input(row: Local, body: Guarded) -> Body:
    """A part of the rows may be done in one form, the next in another."""
    return (Count(row, Given("rows"), (body,), Given("begin")),)


def _merged(rows: list[Local], bodies: list[Guarded]) -> Body:
    """The next row is the one with the least (time, rank, number of its input)."""
    limits = [Given("rows", n) for n in range(len(rows))]
    nexts = [Local(f"p{n}", INTEGER) for n in range(len(rows))]
    source, at, place = (Local(name, INTEGER) for name in ("source", "at", "place"))
    inside: list[Statement] = [Set(source, integer(-1)), Set(at, ZERO), Set(place, ZERO)]
    for n, (next_, limit) in enumerate(zip(nexts, limits, strict=True)):
        time, rank = Local(f"t{n}", INTEGER), Local(f"r{n}", INTEGER)
        is_before = both(equal(time, at), less(rank, place))
        is_next = either(either(less(source, ZERO), less(time, at)), is_before)
        inside.append(
            When(less(next_, limit), (
                Set(time, Load(Memory("time", Rep.INTEGER, n), next_)),
                Set(rank, Load(Memory("rank", Rep.INTEGER, n), next_)),
                When(is_next, (
                    Set(source, integer(n)), Set(at, time), Set(place, rank),
                )),
            ))
        )  # fmt: skip
    for n, (row, next_, body) in enumerate(zip(rows, nexts, bodies, strict=True)):
        taken = (Set(row, next_), Set(next_, plus(next_, ONE)), body)
        inside.append(When(equal(source, integer(n)), taken))
    total: Value = limits[0]
    for limit in limits[1:]:
        total = plus(total, limit)
    starts = (Set(next_, ZERO) for next_ in nexts)
    return (*starts, Count(Local("_", INTEGER), total, tuple(inside)))


# --- a row ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Row:
    """Mutable: the statements for a row of one input."""

    values: RowValues
    trace: Trace
    layout: LoopLayout
    lines: Lines = field(init=False)

    def __post_init__(self) -> None:
        self.lines = self.values.lines

    def run(self, actions: list[Action]) -> Guarded:
        for action in actions:
            match action:
                case Evaluate(guard, node, root):
                    self.values.settle(node, guard, root.base)
                case DecideAction(guard, node, opens):
                    held = self.values.get(node, guard)
                    self.lines.add(guard, Decide(opens, op(HOLDS, held)))
                case LoadAction():
                    self._load(action)
                case StoreAction():
                    self._store(action)
                case Send():
                    self._send(action)
        return self.lines.guarded()

    # --- state ---

    def _record(self, guard: int, key: Key) -> Value:
        """The place of the record of this row's key."""
        if not key.nodes:
            return ZERO
        places = Memory("key", Rep.PLACE, self.trace.keys.index(key))
        return self.lines.set(guard, Load(places, self.values.row))

    def _field(self, variable: str, name: str) -> tuple[Memory, Memory]:
        """Where the values of a field lie, and whether they are there."""
        place = self.layout.field(variable, name)
        numbers = (place.variable, place.field)
        return Memory("state", place.rep, *numbers), Memory("there", Rep.TRUTH, *numbers)

    def _load(self, action: LoadAction) -> None:
        record = self._record(action.guard, action.key)
        for read in action.reads:
            state, there = self._field(read.variable, read.field)
            self.values.load(read, action.guard, Load(state, record), Load(there, record))

    def _store(self, action: StoreAction) -> None:
        guard, record = action.guard, self._record(action.guard, action.key)
        for variable, name, node in action.updates:
            held = self.values.get(node, guard)
            state, there = self._field(variable, name)
            self.lines.add(guard, Store(state, record, op(VALUE_OF, held)))
            self.lines.add(guard, Store(there, record, op(VALID_OF, held)))
        if action.key.nodes:
            self.lines.add(guard, _note(action.key.space, record))

    # --- output ---

    def _send(self, action: Send) -> None:
        output = self.layout.outputs[action.output]
        guard, number = action.guard, action.output
        place = self.values.row if output.is_every_row else _counter(number)
        if not output.is_every_row:
            index = Memory("index", Rep.INTEGER, number)
            self.lines.add(guard, Store(index, place, self.values.row))
        if output.wants_slots:
            slots = Memory("slot", Rep.INTEGER, number)
            self.lines.add(guard, Store(slots, place, integer(action.slot)))
        for column, made in enumerate(output.columns):
            if isinstance(made, ComputedColumn):
                for statement in self._written(action, (number, column), made, place):
                    self.lines.add(guard, statement)
        if not output.is_every_row:
            self.lines.add(guard, Set(place, plus(place, ONE)))

    def _written(
        self, action: Send, at: tuple[int, int], made: ComputedColumn, place: Local
    ) -> Iterator[Statement]:
        node = made.nodes[action.slot]
        held = self.values.get(node, action.guard)
        value = op(VALUE_OF, held)
        if value.form == NUMBER:
            value = op(_UNSIGNED_ZERO, value)
        yield Store(Memory("out", rep_of(node.type), *at), place, value)
        yield Store(Memory("out_valid", Rep.TRUTH, *at), place, op(VALID_OF, held))


def _note(space: int, record: Value) -> Statement:
    """Remember the keys that have a record, in the order in which they got it."""
    seen = Memory("seen", Rep.TRUTH, space)
    order, tally = Memory("order", Rep.INTEGER, space), Memory("tally", Rep.INTEGER, space)
    so_far = Load(tally, ZERO)
    return When(not_(Load(seen, record)), (
        Store(seen, record, YES),
        Store(order, so_far, record),
        Store(tally, ZERO, plus(so_far, ONE)),
    ))  # fmt: skip
