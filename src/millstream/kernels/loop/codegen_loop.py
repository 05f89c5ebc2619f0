"""The loop over rows that a set of operators becomes, as Python source for numba."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.kernels.loop.codegen_function import INDENT, Body, Function, Held, Param
from millstream.kernels.loop.codegen_values import Leaves, Values, element, held_shape
from millstream.kernels.loop.rows_layout import LoopLayout, Written
from millstream.kernels.loop.rows_nodes import Apply
from millstream.kernels.loop.rows_trace import (
    Action,
    Decide,
    Evaluate,
    Key,
    Load,
    Send,
    Store,
    Trace,
)


@dataclass(frozen=True, slots=True)
class Generated:
    """A function `run` and what its parameters are."""

    source: str
    params: tuple[Param, ...]


def generate_loop(
    trace: Trace, layout: LoopLayout, leaves: Leaves, *, is_masked: bool
) -> Generated:
    """All operators on all rows; `is_masked` if columns may hold nulls or faults."""
    function = Function()
    rows = [f"i{number}" for number in range(len(trace.inputs))]
    bodies = [
        _Row(Values(Body(function, trace.parents, row), leaves, is_masked), trace, layout).run(acts)
        for row, acts in zip(rows, trace.actions, strict=True)
    ]
    loop = _one_input(function, bodies[0]) if len(rows) == 1 else _merged(function, bodies)
    return Generated(function.source(loop), tuple(function.params))


def generate_columns(nodes: list[Apply], leaves: Leaves) -> Generated:
    """Columns that are needed before the loop: values, whether they are there, and faults."""
    function = Function()
    values = Values(Body(function, [0], "i0"), leaves, is_masked=True)
    for number, node in enumerate(nodes):
        held = values.get(node, 0)
        for kind, type_, text in (
            ("column", "A" + held_shape(node), held.value),
            ("valid", "Ab", held.valid),
            ("faults", "Ai", f"{held.name}[2]" if held.has_faults else "0"),
        ):
            values.body.add(0, f"{function.param(f'made_{kind}', type_, number)}[i0] = {text}")
    return Generated(function.source(_one_input(function, values.body)), tuple(function.params))


def _one_input(function: Function, body: Body) -> list[str]:
    head = f"for i0 in range({function.param('rows', 'Si')}):"
    return [head, *(INDENT + line for line in body.render() or ["pass"])]


def _merged(function: Function, bodies: list[Body]) -> list[str]:
    """The next row is the one with the least (time, rank, number of its input)."""
    count = len(bodies)
    rows = [function.param("rows", "Si", n) for n in range(count)]
    time = [function.param("time", "Ai", n) for n in range(count)]
    rank = [function.param("rank", "Ai", n) for n in range(count)]
    lines = [*(f"p{n} = 0" for n in range(count)), f"for _ in range({' + '.join(rows)}):"]
    inside = ["source = -1", "at = 0", "place = 0"]
    for n in range(count):
        inside += [
            f"if p{n} < {rows[n]}:",
            f"    t{n} = {time[n]}[p{n}]",
            f"    r{n} = {rank[n]}[p{n}]",
            f"    if (source < 0) | (t{n} < at) | ((t{n} == at) & (r{n} < place)):",
            f"        source = {n}",
            f"        at = t{n}",
            f"        place = r{n}",
        ]
    for n, body in enumerate(bodies):
        inside += [f"if source == {n}:", f"    i{n} = p{n}", f"    p{n} += 1"]
        inside += [INDENT + line for line in body.render()]
    return lines + [INDENT + line for line in inside]


class _Row:
    """The statements for a row of one input."""

    def __init__(self, values: Values, trace: Trace, layout: LoopLayout) -> None:
        self.values = values
        self.body = values.body
        self.function = values.body.function
        self.trace = trace
        self.layout = layout

    def run(self, actions: list[Action]) -> Body:
        for action in actions:
            match action:
                case Evaluate(guard, node, root):
                    self.values.settle(node, guard, root.base)
                case Decide():
                    self._decide(action)
                case Load():
                    self._load(action)
                case Store():
                    self._store(action)
                case Send():
                    self._send(action)
        return self.body

    def _decide(self, action: Decide) -> None:
        held = self.values.get(action.node, action.guard)
        condition = f"{held.name}[0] & (not {held.name}[1])" if held.is_boxed else held.name
        # Numba leaves out blocks that never run, and then misses what they define.
        row = self.body.row
        condition = {"False": f"{row} < 0", "True": f"{row} >= 0"}.get(condition, condition)
        self.body.add(action.guard, f"g{action.opens} = {condition}")

    # --- state ---

    def _record(self, key: Key) -> str:
        """The place of the record of this row's key."""
        if not key.nodes:
            return "0"
        number = self.trace.keys.index(key)
        return f"{self.function.param('key', 'Au', number)}[{self.body.row}]"

    def _field(self, kind: str, variable: str, name: str) -> str:
        place = self.layout.field(variable, name)
        shape = "b" if kind == "there" else place.shape
        return self.function.param(kind, "A" + shape, place.variable, place.field)

    def _load(self, action: Load) -> None:
        record = self.body.assign(action.guard, self._record(action.key))
        for read in action.reads:
            state = self._field("state", read.variable, read.field)
            value = element(state, record, held_shape(read))
            there = element(self._field("there", read.variable, read.field), record, "b")
            call = f"{self.function.use('boxed')}({value}, {there})"
            held = Held(self.body.assign(action.guard, call), is_boxed=True)
            self.values.keep(read, action.guard, held)

    def _store(self, action: Store) -> None:
        guard, record = action.guard, self.body.assign(action.guard, self._record(action.key))
        for variable, name, node in action.updates:
            held = self.values.get(node, guard)
            state = self._field("state", variable, name)
            there = self._field("there", variable, name)
            self.body.add(guard, f"{state}[{record}] = {held.value}")
            self.body.add(guard, f"{there}[{record}] = {held.valid}")
        if action.key.nodes:
            self._note(guard, action.key.space, record)

    def _note(self, guard: int, space: int, record: str) -> None:
        """Remember the keys that have a record, in the order in which they got it."""
        seen = self.function.param("seen", "Ab", space)
        order = self.function.param("order", "Ai", space)
        tally = self.function.param("tally", "Ai", space)
        self.body.add(
            guard,
            f"if {seen}[{record}] == 0:\n"
            f"    {seen}[{record}] = True\n"
            f"    {order}[{tally}[0]] = {record}\n"
            f"    {tally}[0] += 1",
        )

    # --- output ---

    def _send(self, action: Send) -> None:
        output = self.layout.outputs[action.output]
        guard, number = action.guard, action.output
        place = self.body.row
        if not output.is_every_row:
            place = f"c{number}"
            index = self.function.param("index", "Ai", number)
            self.body.add(guard, f"{index}[{place}] = {self.body.row}")
        if output.wants_slots:
            slots = self.function.param("slot", "Ai", number)
            self.body.add(guard, f"{slots}[{place}] = {action.slot}")
        for column, made in enumerate(output.columns):
            if isinstance(made, Written):
                self._write(action, (number, column), made, place)
        if not output.is_every_row:
            self.body.add(guard, f"{place} += 1")
            self._counter(place, number)

    def _write(self, action: Send, at: tuple[int, int], made: Written, place: str) -> None:
        node = made.nodes[action.slot]
        held = self.values.get(node, action.guard)
        values = self.function.param("out", "A" + held_shape(node), *at)
        zero = " + 0.0" if held_shape(node) == "f" else ""  # there is no minus zero
        self.body.add(action.guard, f"{values}[{place}] = {held.value}{zero}")
        if held.is_boxed or len(made.nodes) > 1:  # what one slot writes, all must
            valid = self.function.param("out_valid", "Ab", *at)
            self.body.add(action.guard, f"{valid}[{place}] = {held.valid}")

    def _counter(self, name: str, number: int) -> None:
        start, end = f"{name} = 0", f"{self.function.param('counts', 'Ai')}[{number}] = {name}"
        if start not in self.function.before:
            self.function.before.append(start)
            self.function.after.append(end)
