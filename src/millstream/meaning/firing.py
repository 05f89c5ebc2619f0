"""What a function does with one item: `fire`, and the state it starts with.

As in rule E-FireQueue, a firing takes the item, the number of the input it came from and
the values of the variables, and returns lists of items for the outputs and new values for
the variables. It is pure: values are never changed in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from millstream.calculus.functions import Function
from millstream.calculus.graph import Operator
from millstream.calculus.types import TIME_COLUMN, QueueType, Row, Value
from millstream.meaning.items import Entry, Item
from millstream.meaning.waiting import Side


@dataclass(frozen=True, slots=True)
class Context:
    """What is known about an operator before it fires."""

    operator: Operator
    input_types: tuple[QueueType, ...]
    #: Initial values of the program's variables, by name and field.
    initial: Mapping[str, Mapping[str, Value]]
    faults: Counter[str] = field(default_factory=Counter)

    def names(self, index: int, item: Item) -> dict[str, Value]:
        """The columns of an item by name, its time included."""
        names = dict(zip(self.input_types[index].schema.names, item.row, strict=True))
        return {TIME_COLUMN: item.time} | names


@dataclass(frozen=True, slots=True)
class Result:
    """Items for each output queue, and new values of the variables that are written."""

    outputs: tuple[tuple[Entry, ...], ...]
    state: tuple[Any, ...] = ()


State = tuple[Any, ...]


@singledispatch
def fire(function: Function, entry: Entry, index: int, state: State, context: Context) -> Result:
    raise NotImplementedError(f"no meaning for {function.name}")


@singledispatch
def initial_state(function: Function, inputs: int) -> State:
    """What the private variables of an operator hold before anything has happened."""
    return () if function.acts_at_once else (Side(),) * inputs


def row_of(names: Mapping[str, Value], columns: tuple[str, ...]) -> Row:
    return tuple(names[c] for c in columns)
