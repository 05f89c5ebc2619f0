"""What a program can cost, in words: how much a single change can make it tell anew.

A relation that changes by a row may change what is made of it by as many rows as there are on
the other side of a join. State does not show that; see `state_kept` for what is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.calculus.functions import (
    Aggregate,
    Duplicate,
    Filter,
    Join,
    Lookup,
    Map,
    Now,
    Range,
    Rstream,
)
from millstream.calculus.graph import Operator, Program, in_dependency_order
from millstream.calculus.text import render_duration
from millstream.calculus.unique import is_within, unique_keys
from millstream.plan.sizes import sizes


@dataclass(frozen=True, slots=True)
class Cost:
    """What a change can cost at one operator."""

    operator: Operator
    words: str


def costs(program: Program) -> tuple[Cost, ...]:
    """The operators that can tell much more than they are told, producers before consumers."""
    known = _Known(program)
    all_costs: list[Cost] = []
    for op in in_dependency_order(program):
        match op.function:
            case Join() | Lookup():
                all_costs += [Cost(op, text) for text in _of_pairs(op.function, known.sides(op))]
            case Rstream(every):
                when = "".join(f", and every {render_duration(e)}" for e in every)
                whole = known.words[op.inputs[0]]
                all_costs.append(Cost(op, f"all of {whole} whenever something comes{when}"))
    return tuple(all_costs)


@dataclass(frozen=True, slots=True)
class _Side:
    """An input of a join: may many of its rows meet one row of the other?"""

    words: str
    is_many: bool


class _Known:
    """What is known of the queues of a program."""

    def __init__(self, program: Program) -> None:
        self.unique = unique_keys(program)
        self.words = {queue: size.words for queue, size in sizes(program).items()}
        self.is_brief: set[str] = set()
        values: dict[str, str] = {}
        for op in in_dependency_order(program):
            match op.function:
                case Now() | Range(0):
                    self.is_brief.update(op.outputs)
                case Aggregate(by=(), aggregations=aggregations):
                    # One row has no size to speak of; what it is made of says more.
                    names = ", ".join(dict.fromkeys(a.function for a in aggregations))
                    values[op.outputs[0]] = f"the {names} of {self.words[op.inputs[0]]}"
                case Map() | Filter() | Duplicate() if op.inputs[0] in values:
                    values.update(dict.fromkeys(op.outputs, values[op.inputs[0]]))
        self.words |= values

    def sides(self, op: Operator) -> list[_Side]:
        assert isinstance(op.function, (Join, Lookup))
        keys = zip(*op.function.on, strict=True) if op.function.on else ((), ())
        return [
            _Side(
                self.words[queue],
                queue not in self.is_brief and not is_within(self.unique.get(queue), list(key)),
            )
            for queue, key in zip(op.inputs, keys, strict=True)
        ]


def _of_pairs(function: Join | Lookup, sides: list[_Side]) -> Iterator[str]:
    left, right = sides
    keys = ", ".join(ours for ours, _ in function.on)
    same = f" with the same {keys}" if keys else ""
    if isinstance(function, Lookup):
        if function.where is not None:
            between = "those between the old value and the new one"
            yield f"of {left.words}{same}, {between}, at each change of {right.words}"
        elif left.is_many:
            turns = f"the first of {right.words} comes or the last one goes"
            yield f"up to all of {left.words}{same} when {turns}"
    elif left.is_many and right.is_many:
        yield f"all partners of a row that changes: {left.words} with {right.words}{same}"
    elif left.is_many:
        yield f"up to all of {left.words}{same} at each change of {right.words}"
    elif right.is_many:
        yield f"up to all of {right.words}{same} at each change of {left.words}"
