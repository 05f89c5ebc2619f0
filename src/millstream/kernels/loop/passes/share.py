"""Compute what occurs several times once.

Law: the loop does the same. A value is known wherever the guard holds under which it was
computed, and in the block that it was computed in; memory that the loop itself writes is read
anew every time.

    v1 = column[i]; v2 = column[i]; v3 = v1 + v2   ->   v1 = column[i]; v3 = v1 + v1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.kernels.loop.ir import (
    Body,
    Const,
    Function,
    Given,
    Guarded,
    Load,
    Local,
    Memory,
    Set,
    Statement,
    Store,
    Value,
    set_once,
    statements_in,
    values_in,
)
from millstream.kernels.loop.passes.rewriting import changed, with_bodies, with_values


def share(function: Function) -> Function:
    written = {s.memory for s in statements_in(function.body) if isinstance(s, Store)}
    sharing = _Sharing(function, set_once(function.body), frozenset(written))
    return Function(sharing.body(function.body, 0), function.parents)


@dataclass(slots=True)
class _Sharing:
    """Mutable: which local holds a value, and under which guard."""

    function: Function
    once: frozenset[str]
    written: frozenset[Memory]
    known: dict[Value, tuple[tuple[int, Local], ...]] = field(default_factory=dict)
    replaced: dict[str, Local] = field(default_factory=dict)

    def body(self, body: Body, guard: int) -> Body:
        outside = dict(self.known)
        made = tuple(made for statement in body for made in self.statement(statement, guard))
        self.known = outside
        return made

    def statement(self, statement: Statement, guard: int) -> Iterator[Statement]:
        match statement:
            case Set(local, value):
                value = changed(value, self.value)
                if local.name in self.once and self.is_steady(value):
                    holder = self.holder(value, guard)
                    if holder is not None:
                        self.replaced[local.name] = holder
                        return
                    self.known[value] = (*self.known.get(value, ()), (guard, local))
                yield Set(local, value)
            case Guarded(lines):
                outside = dict(self.known)
                yield Guarded(tuple((g, s) for g, line in lines for s in self.statement(line, g)))
                self.known = outside
            case _:
                own = with_values(statement, self.value)
                yield with_bodies(own, lambda inside: self.body(inside, guard))

    def value(self, value: Value) -> Value:
        return self.replaced.get(value.name, value) if isinstance(value, Local) else value

    def holder(self, value: Value, guard: int) -> Local | None:
        for under, local in reversed(self.known.get(value, ())):
            if self.function.is_within(guard, under):
                return local
        return None

    def is_steady(self, value: Value) -> bool:
        """Is it the same wherever it is computed?"""
        if isinstance(value, (Const, Given, Local)):
            return False  # nothing to be gained
        return all(
            part.memory not in self.written if isinstance(part, Load)
            else not isinstance(part, Local) or part.name in self.once
            for part in values_in(value)
        )  # fmt: skip
