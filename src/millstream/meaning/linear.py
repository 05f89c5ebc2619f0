"""Filters that are linear: what they give is a matrix times the items they see, plus an offset.

It is found by firing them once on items that remember which of them they are. What multiplies two
such items, or decides by one, is not linear; neither is what keeps something from firing to firing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.procedures import Assign, Invoke, Peek, Pop, statements_in
from millstream.calculus.terms import Call
from millstream.calculus.work import Work
from millstream.errors import RunError
from millstream.meaning.procedures import Frame, Machine, Trap, Value
from millstream.meaning.work import Starved, started
from millstream.values.types import SINGLE

#: What would take longer than anybody waits for an explanation.
_MOST_CELLS = 1 << 14
_MOST_STEPS = 1 << 18


@dataclass(frozen=True, slots=True)
class Linear:
    """Rows of the matrix, one for each item given, with a number for each item seen."""

    matrix: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]


class _NotLinear(Exception):
    pass


@dataclass(frozen=True)
class _Sum:
    """Items seen, each so often, and a number."""

    parts: Mapping[int, float]
    offset: float = 0.0

    def plus(self, other: Value, sign: float = 1.0) -> _Sum:
        more = other if isinstance(other, _Sum) else _Sum({}, float(other))
        parts = dict(self.parts)
        for item, count in more.parts.items():
            parts[item] = parts.get(item, 0.0) + sign * count
        return _Sum(parts, self.offset + sign * more.offset)

    def times(self, factor: float) -> _Sum:
        return _Sum({i: count * factor for i, count in self.parts.items()}, self.offset * factor)


def _product(left: Value, right: Value) -> _Sum:
    if isinstance(left, _Sum) and isinstance(right, _Sum):
        raise _NotLinear
    return left.times(float(right)) if isinstance(left, _Sum) else right.times(float(left))


def _quotient(left: Value, right: Value) -> _Sum:
    if isinstance(right, _Sum) or right == 0:
        raise _NotLinear
    return _Sum({i: count / right for i, count in left.parts.items()}, left.offset / right)


def _whole(value: Value) -> _Sum:
    return value if isinstance(value, _Sum) else _Sum({}, float(value))


_MEANINGS: Mapping[str, Callable[..., _Sum]] = {
    "single_add": lambda a, b: _whole(a).plus(b),
    "single_sub": lambda a, b: _whole(a).plus(b, -1.0),
    "single_neg": lambda a: a.times(-1.0),
    "single_mul": _product,
    "single_div": _quotient,
}


class _LinearFrame(Frame):
    """Mutable: calculates with sums of items where there are such."""

    def called(self, call: Call, values: list[Value]) -> Value:
        if not any(isinstance(value, _Sum) for value in values):
            return super().called(call, values)
        if call.function not in _MEANINGS:
            raise _NotLinear
        return _MEANINGS[call.function](*values)


@dataclass
class _Seen:
    """Mutable: a host whose items are themselves."""

    work: Work
    popped: int = 0
    given: list[Any] = field(default_factory=list)

    def pop(self) -> Any:
        item = self.peek(0)
        self.popped += 1
        return item

    def peek(self, index: int) -> Any:
        place = self.popped + index
        if not 0 <= place < self.work.rates.peek:
            raise _NotLinear
        return _Sum({place: 1.0})

    def push(self, output: int, value: Any) -> None:
        if output:
            raise _NotLinear
        self.given.append(value)


def linear_of(work: Work) -> Linear | None:
    """The matrix and the offset of a filter of single numbers, if it has them."""
    rates = work.rates
    is_plain = SINGLE == work.taken == work.given and work.pace is None and not work.first
    if not is_plain or work.changes or work.shared_count or _keeps(work):
        return None
    if not 0 < rates.peek * rates.push <= _MOST_CELLS:
        return None
    seen = _Seen(work)
    try:
        begun = started(work)
        machine = Machine(work.code, begun.variables, _MOST_STEPS)
        _LinearFrame(machine, seen, {}).run(work.code.body)
    except (_NotLinear, Trap, Starved, RunError):
        return None
    if len(seen.given) != rates.push or seen.popped != rates.pop:
        return None
    sums = [_whole(value) for value in seen.given]
    rows = tuple(tuple(s.parts.get(n, 0.0) for n in range(rates.peek)) for s in sums)
    return Linear(rows, tuple(s.offset for s in sums))


def _keeps(work: Work) -> bool:
    """Whether a firing can leave something for the next one."""
    fields = {slot.name for slot in work.code.fields}
    bodies = (work.code.body, *(routine.body for routine in work.code.routines))
    for statement in (s for body in bodies for s in statements_in(body)):
        target = statement.target if isinstance(statement, Assign | Pop | Peek | Invoke) else None
        if target is not None and target.variable in fields:
            return True
    return False
