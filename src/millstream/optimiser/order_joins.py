"""Of joins in a row, the one that leaves fewer rows is made first.

Law: a pair of pairs is made of the same three rows whichever two of them meet first, and it has
the latest of their times. So a join by columns of one input only can be made with that input.

    before  (pairs) <- Join[on k](orders, events); (out) <- Join[on c](pairs, few);
    after   (out.first) <- Join[on c](orders, few); (out.joined) <- Join[on k](out.first, events);
            (out) <- Map[...](out.joined);

The map puts columns into the order they had, where somebody behind looks at that.

How many rows of each input a row meets is told by its size, by its conditions and by whether its
key is its own; where one meets not twice as many as the other, the order stays. Both conditions
must be such that cannot fail: they are asked about other pairs then, and faults are counted. What
others read too is not taken apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from millstream.calculus.costs import never_fails
from millstream.calculus.estimates import NOTHING, Estimates, Measures
from millstream.calculus.functions import Aggregate, Assign, Join, Map
from millstream.calculus.graph import Operator, Program, rewritten
from millstream.calculus.terms import Column, columns_read
from millstream.calculus.types import Schema
from millstream.optimiser.narrow_columns import mixes_ways

#: What is met must be so many times less; guesses that are nearly alike say nothing.
_FEWER = 2.0
#: To order more of them takes longer than they are worth.
MOST = 100
#: What reads columns by their names, and hands on none as it came.
_BY_NAME = (Map, Aggregate)


def order_joins(program: Program, measures: Measures = NOTHING) -> Program:
    """Change the order of joins wherever that pays; the same program if it does nowhere."""
    pairs = list(_pairs(program))
    if not pairs or len(pairs) > MOST or mixes_ways(program):
        return program
    # What is met does not depend on when it is.
    estimates = Estimates(program, measures)
    for _ in range(2 * len(pairs)):
        after = _in_one_go(program, estimates)
        if after is program:
            break
        program = after
    return program


def _in_one_go(program: Program, estimates: Estimates) -> Program:
    """Change the order of pairs that have no join in common."""
    names, readers = set(program.queue_types()), program.consumers()
    instead: dict[int, list[Operator]] = {}
    for pair in _pairs(program):
        is_new = instead.keys().isdisjoint(map(id, pair.operators))
        if is_new and pair.pays(estimates) and pair.refusal() is None:
            reader = readers.get(pair.second.outputs[0])
            is_seen = reader is None or not isinstance(reader[0].function, _BY_NAME)
            instead |= pair.the_other_way_round(names, is_order_seen=is_seen)
    return rewritten(program, instead)


def refusals(program: Program, measures: Measures = NOTHING) -> Iterator[tuple[Operator, str]]:
    """The joins that had better come first and cannot, and the guard of each."""
    pairs = list(_pairs(program))
    if not pairs:
        return
    estimates = Estimates(program, measures)
    of_all = None
    if len(pairs) > MOST:
        of_all = f"there are {len(pairs)} joins of joins, and only {MOST} are looked at"
    elif mixes_ways(program):
        of_all = "rows come round to where they were, or must look alike by several ways"
    for pair in pairs:
        if pair.pays(estimates):
            why = pair.refusal() or of_all
            if why is not None:
                yield pair.second, why


def _pairs(program: Program) -> Iterator[_Pair]:
    """Joins whose first input is a join, or columns of one as they are."""
    producers = program.producers()
    types = program.queue_types()
    for second in program.operators:
        if not isinstance(second.function, Join):
            continue
        between = producers.get(second.inputs[0])
        first = between
        if between is not None and isinstance(between.function, Map):
            plain = (Assign(c.name, Column(c.name, c.term.type)) for c in between.function.columns)
            first = producers.get(between.inputs[0]) if _is_plain(between.function, plain) else None
        if first is None or not isinstance(first.function, Join):
            continue
        if set(first.variables) & set(second.variables) & program.shared_variables():
            continue
        one, two = (types[q].schema for q in first.inputs)
        three, met = types[second.inputs[1]].schema, types[second.inputs[0]].schema
        yield _Pair(first, second, None if between is first else between,
                    (one, two, three), met)  # fmt: skip


def _is_plain(function: Map, plain: Iterator[Assign]) -> bool:
    return all(a == b for a, b in zip(function.columns, plain, strict=True))


@dataclass(frozen=True)
class _Pair:
    """A join of a first and a second input, what it makes with a third, and what lies between."""

    first: Operator
    second: Operator
    between: Operator | None
    #: Of the three inputs.
    schemas: tuple[Schema, Schema, Schema]
    #: What the third input meets.
    met: Schema

    @property
    def operators(self) -> list[Operator]:
        return [op for op in (self.first, self.between, self.second) if op is not None]

    @property
    def joins(self) -> tuple[Join, Join]:
        first, second = self.first.function, self.second.function
        assert isinstance(first, Join)
        assert isinstance(second, Join)
        return first, second

    def pays(self, estimates: Estimates) -> bool:
        first, second = self.joins
        now = estimates.met(self.first.inputs[1], [theirs for _, theirs in first.on])
        then = estimates.met(self.second.inputs[1], [theirs for _, theirs in second.on])
        return _FEWER * then <= now

    def refusal(self) -> str | None:
        """Why the order must stay; None if it need not."""
        first, second = self.joins
        one, _, three = self.schemas
        keys = {ours for ours, _ in second.on}
        if not second.on:
            return "nothing is equal in the rows that would meet first"
        if not keys <= set(one.names):
            return f"{min(keys - set(one.names))} is a column of {self.first.inputs[1]}"
        for join in (first, second):
            if join.where is not None and not never_fails(join.where):
                return "a condition can fail, and would be asked about other pairs"
        if second.where is not None:
            others = columns_read(second.where) - set(one.names) - set(three.names)
            if others:
                return f"its condition reads {min(others)} of {self.first.inputs[1]}"
        kept = set(second.right_kept(three))
        left_out = set(one.names) | set(self.schemas[1].names)
        clash = kept & left_out
        return f"two of the inputs have a column {min(clash)}" if clash else None

    def the_other_way_round(
        self, names: set[str], *, is_order_seen: bool
    ) -> dict[int, list[Operator]]:
        """The third input meets the first one before the second does."""
        first, second = self.joins
        three = self.schemas[2]
        (out,) = self.second.outputs
        inner = _fresh(f"{out}.first", names)
        joined = _fresh(f"{out}.joined", names) if is_order_seen else out
        columns = (*self.met.fields, *(f for f in three.fields if f.name in
                                       second.right_kept(three)))  # fmt: skip
        restored = Map(tuple(Assign(f.name, Column(f.name, f.type)) for f in columns))
        made = [
            replace(self.first, function=second, outputs=(inner,),
                    inputs=(self.first.inputs[0], self.second.inputs[1])),
            replace(self.second, function=first, outputs=(joined,),
                    inputs=(inner, self.first.inputs[1])),
            Operator(restored, (joined,), (out,), origin=self.second.origin),
        ]  # fmt: skip
        made = made if is_order_seen else made[:2]
        gone: dict[int, list[Operator]] = {id(op): [] for op in self.operators}
        return gone | {id(self.second): made}


def _fresh(wanted: str, names: set[str]) -> str:
    """A name that no queue has, which it then has."""
    name = next(f"{wanted}{n or ''}" for n in range(len(names) + 1)
                if f"{wanted}{n or ''}" not in names)  # fmt: skip
    names.add(name)
    return name
