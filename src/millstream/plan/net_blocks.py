"""Filters that keep nothing run in blocks of whole firings, wherever there is room.

    before  (out) <- Work[...](in), or more of them with splits and joins between
    after   (in.rows) <- Fold[n = n + 1](in)                          in one place
            (in.blocks) <- FlatMap[block = n / size, and once more](in.rows)
            (out.blocks) <- PerKey[block; first ...; Work[...]](in.blocks)   by blocks
            (out) <- ... and without the block

Rows are numbered, and so many of them are a block. A block is given the first rows of the next
one as well, for firings that look ahead. What such a row sets free leaves the block before; so
a block leaves out what it would give before it has seen more than them. The order of what leaves
is then that of the rows it has waited for, as it would be without blocks.

A filter that keeps something, a loop, and whoever prints or tells stay in one place. So do numbers
between filters: those of machines have a zero with a sign, those of queues have not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from millstream.calculus.each import PerKey
from millstream.calculus.functions import (
    Assign,
    Branch,
    Duplicate,
    Filter,
    FlatMap,
    Fold,
    Map,
    RoundRobinJoin,
    RoundRobinSplit,
    Update,
)
from millstream.calculus.graph import (
    Input,
    Operator,
    Program,
    Variable,
    in_dependency_order,
    rewritten,
)
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, Field, Schema, Type
from millstream.calculus.work import Work
from millstream.plan.steps import NET_FUNCTIONS, Capability, make_plan
from millstream.source import Span

#: A block has at least so many rows, and so many times those that two blocks share.
LEAST_ROWS, LEAST_SHARES = 8_192, 8
#: More rows are not waited for.
MOST_ROWS = 1 << 20
#: To number a row and send it elsewhere takes about as long, on two cores, as looking at so many
#: items saves there (`millstream bench streamit_blocks`; on eight it is worth while from 60 on).
WORTH_IT = 400


def nets_in_blocks(program: Program, why_not: Capability) -> Program:
    """The program with such filters in blocks; the same if there are none."""
    instead: dict[int, list[Operator]] = {}
    variables: list[Variable] = []
    for region in _regions(program):
        blocks = region.blocks()
        if blocks is None or _is_walked(region, why_not):
            continue
        first, *others = region.operators
        number = Variable(f"{region.entry}.number", (Field("n", INTEGER),), (-1,))
        skipped = Variable(f"{region.exit}.skipped", (Field("n", INTEGER),), (0,))
        instead[id(first)] = list(_in_blocks(region, blocks, number, skipped))
        instead |= {id(op): [] for op in others}
        variables += [number, skipped] if blocks.skipped else [number]
    whole = rewritten(program, instead)
    return replace(whole, variables=whole.variables + tuple(variables)) if instead else program


# --- which filters ----------------------------------------------------------------------


def _regions(program: Program) -> Iterator[_Region]:
    """As many filters as can be together, between one queue and another."""
    types, producers, consumers = program.queue_types(), program.producers(), program.consumers()

    def is_edge(queue: str) -> bool:
        """Whether what is before it, or behind it, sees it as other rows."""
        ends = (producers.get(queue), consumers.get(queue, (None,))[0])
        outside = any(op is None or not isinstance(op.function, NET_FUNCTIONS) for op in ends)
        return outside or all(field.type != NUMBER for field in types[queue].schema)

    order = in_dependency_order(program)
    taken: set[str] = set()
    for number, op in enumerate(order):
        is_start = isinstance(op.function, NET_FUNCTIONS) and op.id not in taken
        if not is_start or not _keeps_nothing(op) or not is_edge(op.inputs[0]):
            continue
        entry, open_ = op.inputs[0], {op.inputs[0]}
        inside: list[Operator] = []
        best: _Region | None = None
        for other in order[number:]:
            if not open_.issuperset(other.inputs) or not _keeps_nothing(other):
                continue
            inside.append(other)
            open_ = open_.difference(other.inputs).union(other.outputs)
            if len(open_) == 1 and is_edge(other.outputs[0]):
                best = _Region(program, entry, other.outputs[0], tuple(inside))
        if best is not None:
            taken.update(o.id for o in best.operators)
            yield best


def _keeps_nothing(op: Operator) -> bool:
    match op.function:
        case Duplicate():
            return True
        case RoundRobinSplit(weights):
            return min(weights, default=0) > 0
        case RoundRobinJoin(weights, enqueued):
            return min(weights, default=0) > 0 and not any(enqueued)
        case Work() as work:
            is_plain = work.first is None and work.pace is None and not work.changes
            is_silent = not (work.prints or work.tells or work.hears)
            return (
                is_plain
                and is_silent
                and work.is_fixed
                and min(work.rates.pop, work.rates.push) > 0
            )
        case _:
            return False


def _is_walked(region: _Region, why_not: Capability) -> bool:
    steps = make_plan(region.inner(), why_not).steps
    return any(step.fallback is not None for step in steps)


# --- how many rows ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Rows of a block, those of the next that it sees, and the items that it gives and skips."""

    size: int
    ahead: int
    given: int
    skipped: int


@dataclass(frozen=True)
class _Region:
    """Operators between two queues, producers before consumers."""

    program: Program
    entry: str
    exit: str
    operators: tuple[Operator, ...]

    def inner(self) -> Program:
        type_ = self.program.queue_types()[self.entry]
        return Program((Input(self.entry, type_),), (self.exit,), self.operators)

    def blocks(self) -> _Blocks | None:
        """How rows are cut, if that is worth while."""
        steady, cost = self.steady()
        if cost is None or cost < WORTH_IT or steady > MOST_ROWS:
            return None
        size = steady * -(-LEAST_ROWS // steady)
        given = int(self.per_row()[self.exit] * size)
        ahead = max(0, self.needed(given) - size)
        while size < LEAST_SHARES * ahead:
            size, given = 2 * size, 2 * given
            ahead = max(0, self.needed(given) - size)
            if size > MOST_ROWS:
                return None
        skipped = self.made(ahead)
        return _Blocks(size, ahead, given + skipped, skipped)

    def per_row(self) -> dict[str, Fraction]:
        """How many items a queue has for each row, in the end."""
        items = {self.entry: Fraction(1)}
        for op in self.operators:
            match op.function:
                case Work(rates=rates):
                    items[op.outputs[0]] = items[op.inputs[0]] / rates.pop * rates.push
                case RoundRobinSplit(weights):
                    turns = items[op.inputs[0]] / sum(weights)
                    items |= {q: turns * w for q, w in zip(op.outputs, weights, strict=True)}
                case RoundRobinJoin(weights):
                    turns = min(items[q] / w for q, w in zip(op.inputs, weights, strict=True))
                    items[op.outputs[0]] = turns * sum(weights)
                case _:
                    items |= dict.fromkeys(op.outputs, items[op.inputs[0]])
        return items

    def steady(self) -> tuple[int, Fraction | None]:
        """After how many rows everything is as it was, and how many items are looked at a row."""
        items, rows, cost = self.per_row(), 1, Fraction(0)
        for op in self.operators:
            match op.function:
                case Work(rates=rates):
                    turns = items[op.inputs[0]] / rates.pop
                    cost += turns * (rates.peek + rates.push)
                case RoundRobinSplit(weights):
                    turns = items[op.inputs[0]] / sum(weights)
                case RoundRobinJoin(weights):
                    each = {items[q] / w for q, w in zip(op.inputs, weights, strict=True)}
                    turns, *others = each
                    if others:
                        return rows, None  # one of the ways gets longer and longer
                case _:
                    continue
            rows = math.lcm(rows, turns.denominator)
        return rows, cost

    def made(self, rows: int) -> int:
        """How many items have left when so many rows have come."""
        items = {self.entry: rows}
        for op in self.operators:
            came = items[op.inputs[0]]
            match op.function:
                case Work(rates=rates):
                    fired = 0 if came < rates.peek else (came - rates.peek) // rates.pop + 1
                    items[op.outputs[0]] = fired * rates.push
                case RoundRobinSplit(weights):
                    for number, queue in enumerate(op.outputs):
                        items[queue] = _of_turn(came, weights, number)
                case RoundRobinJoin(weights):
                    items[op.outputs[0]] = min(
                        _place(items[queue], weights, number)
                        for number, queue in enumerate(op.inputs)
                    )
                case _:
                    items |= dict.fromkeys(op.outputs, came)
        return items[self.exit]

    def needed(self, count: int) -> int:
        """How many rows must have come before so many items leave."""
        wanted = {self.exit: count}
        for op in reversed(self.operators):
            left = [wanted[q] for q in op.outputs]
            match op.function:
                case Work(rates=rates):
                    fired = -(-left[0] // rates.push)
                    wanted[op.inputs[0]] = (fired - 1) * rates.pop + rates.peek if fired else 0
                case RoundRobinSplit(weights):
                    wanted[op.inputs[0]] = max(
                        _place(some - 1, weights, n) + 1 if some else 0
                        for n, some in enumerate(left)
                    )
                case RoundRobinJoin(weights):
                    for number, queue in enumerate(op.inputs):
                        wanted[queue] = _of_turn(left[0], weights, number)
                case _:
                    wanted[op.inputs[0]] = max(left)
        return wanted[self.entry]


def _of_turn(items: int, weights: tuple[int, ...], number: int) -> int:
    """How many of the first items are those of one way."""
    turns, rest = divmod(items, sum(weights))
    before = sum(weights[:number])
    return turns * weights[number] + min(max(rest - before, 0), weights[number])


def _place(item: int, weights: tuple[int, ...], number: int) -> int:
    """How many items of all ways come before an item of one, counted from 0."""
    turns, rest = divmod(item, weights[number])
    return turns * sum(weights) + sum(weights[:number]) + rest


# --- the same in blocks -----------------------------------------------------------------


def _in_blocks(
    region: _Region, blocks: _Blocks, number: Variable, skipped: Variable
) -> Iterator[Operator]:
    types = region.program.queue_types()
    came, given = types[region.entry].schema, types[region.exit].schema
    row, block = _new_name("row", came, given), _new_name("block", came, given)
    origin = region.operators[0].origin
    yield _counted(region.entry, f"{region.entry}.rows", number, came, row, (), origin)
    yield Operator(
        FlatMap(tuple(_copies(blocks, came, row, block))),
        (f"{region.entry}.rows",), (f"{region.entry}.blocks",), origin=origin,
    )  # fmt: skip
    given_blocks = f"{region.exit}.blocks"
    state = (f"{region.exit}.of_blocks",)
    per_block = PerKey((block,), region.inner(), blocks.given)
    yield Operator(
        per_block, (f"{region.entry}.blocks",), (given_blocks,), state, state, origin
    )  # fmt: skip
    if blocks.skipped:
        with_block = Schema((Field(block, INTEGER), *given))
        counted, kept = f"{region.exit}.counted", f"{region.exit}.kept"
        yield _counted(given_blocks, counted, skipped, with_block, row, (block,), origin)
        is_first = _call("==", Column(block, INTEGER), Literal(0, INTEGER), BOOLEAN)
        is_later = _call(">", Column(row, INTEGER), Literal(blocks.skipped, INTEGER), BOOLEAN)
        wanted = _call("or", is_first, is_later, BOOLEAN)
        yield Operator(Filter(wanted), (counted,), (kept,), origin=origin)
        given_blocks = kept
    yield Operator(Map(_all_of(given)), (given_blocks,), (region.exit,), origin=origin)


def _counted(
    queue: str, output: str, variable: Variable, schema: Schema, name: str, by: tuple[str, ...],
    origin: Span | None,
) -> Operator:  # fmt: skip
    """Every row with its number, by key."""
    now = VariableField(variable.name, "n", INTEGER)
    step = Update(variable.name, "n", _call("+", now, Literal(1, INTEGER), INTEGER))
    fold = Fold(by, None, (step,), (*_all_of(schema), Assign(name, now)))
    both = (variable.name,)
    return Operator(fold, (queue,), (output,), both, both, origin)


def _copies(blocks: _Blocks, schema: Schema, row: str, block: str) -> Iterator[Branch]:
    """A row in its own block, and before it in the one that looks ahead to it."""
    number, size = Column(row, INTEGER), Literal(blocks.size, INTEGER)
    own = _call("div", number, size, INTEGER)
    if blocks.ahead:
        place = _call("%", number, size, INTEGER)
        is_seen = _call("<", place, Literal(blocks.ahead, INTEGER), BOOLEAN)
        has_one = _call(">=", number, size, BOOLEAN)
        before = _call("-", own, Literal(1, INTEGER), INTEGER)
        yield Branch(_call("and", is_seen, has_one, BOOLEAN),
                     (Assign(block, before), *_all_of(schema)))  # fmt: skip
    yield Branch(None, (Assign(block, own), *_all_of(schema)))


def _all_of(schema: Schema) -> tuple[Assign, ...]:
    return tuple(Assign(field.name, Column(field.name, field.type)) for field in schema)


def _call(function: str, left: Term, right: Term, type_: Type) -> Term:
    return Call(function, (left, right), type_)


def _new_name(name: str, *schemas: Schema) -> str:
    taken = {field.name for schema in schemas for field in schema}
    while name in taken:
        name += "_"
    return name
