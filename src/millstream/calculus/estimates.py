"""What is known of the data a program will be given: how much there is, and what conditions keep.

Nothing need be known: then all is guessed, always in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.calculus.costs import kept_by
from millstream.calculus.functions import (
    Aggregate,
    Distinct,
    Duplicate,
    Filter,
    Join,
    Latest,
    Map,
    Now,
    Range,
    Rows,
    Top,
)
from millstream.calculus.graph import Input, Operator, Program, in_dependency_order
from millstream.calculus.terms import Term
from millstream.calculus.unique import is_within, unique_keys

#: Rows of a table that is read once, of a relation, of a stream, where nobody has counted them.
_TABLE, _RELATION, _STREAM = 32_000.0, 500_000.0, 2_000_000.0
#: The rows of a group grow with the rows there are, but keys grow faster.
_GROUP = 0.25


@dataclass(frozen=True)
class Measures:
    """Rows of inputs by their names, which part of the rows conditions have kept, and groups."""

    rows: Mapping[str, float] = field(default_factory=dict)
    kept: Mapping[Term, float] = field(default_factory=dict)
    #: How many groups there were of what is summed up by keys.
    groups: Mapping[Aggregate, int] = field(default_factory=dict)


NOTHING = Measures()


class Estimates:
    """How many rows each queue has, and how many of them a row of another meets."""

    def __init__(self, program: Program, measures: Measures = NOTHING) -> None:
        self._measures = measures
        self._unique = unique_keys(program)
        self.rows = {input_.name: self._of_input(input_) for input_ in program.inputs}
        #: Which part of the rows that there once were has not been dropped.
        self.left = dict.fromkeys(self.rows, 1.0)
        for op in in_dependency_order(program):
            rows, left = self._of(op)
            self.rows.update(dict.fromkeys(op.outputs, rows))
            self.left.update(dict.fromkeys(op.outputs, left))

    def _of_input(self, input_: Input) -> float:
        if input_.values is not None:
            return float(len(input_.values))
        guess = _TABLE if input_.is_read_once else _RELATION if input_.type.is_relation else _STREAM
        return max(1.0, self._measures.rows.get(input_.name, guess))

    def _of(self, op: Operator) -> tuple[float, float]:
        given = [(self.rows.get(q, _STREAM), self.left.get(q, 1.0)) for q in op.inputs]
        rows, left = max(given, default=(1.0, 1.0))
        match op.function:
            case Filter(condition):
                kept = kept_by(condition, self._measures.kept)
                return rows * kept, left * kept
            case Map() | Duplicate() | Range() | Distinct():
                return rows, left
            case Now():
                return 1.0, 1.0
            case Aggregate(by=()) | Top():
                return 1.0, 1.0
            case Aggregate() | Latest() | Rows():
                return max(1.0, rows / _alike(rows)), left
            case Join(on):
                (first, _), (_, second_left) = given
                right = [other for _, other in on]
                return first * self.met(op.inputs[1], right), left * second_left
            case _:
                return rows, 1.0

    def met(self, queue: str, key: list[str]) -> float:
        """How many rows of a relation a row of another meets by a key."""
        if is_within(self._unique.get(queue), key):
            return self.left[queue]
        left = self.left[queue]
        return left * _alike(self.rows[queue] / left) if key and left else self.rows[queue]


def _alike(rows: float) -> float:
    """How many of so many rows have the same key, if nothing is known of it."""
    return float(max(1.0, (rows / _TABLE) ** _GROUP))
