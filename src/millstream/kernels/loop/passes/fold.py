"""Work out what is known: constants, copies, and values that cannot be null.

Law: the loop does the same; what is never null is held plain, and no local is a mere copy.

    v1 = boxed(column[i], True)       ->   v1 = column[i]
    v2 = add_numbers(v1, v3)          ->   v2 = v1 + v3          if v3 is plain too
    if not v4[1]: ...                 ->   ...                   if v4 is plain

Only locals that are set once are replaced: they are what their statement says wherever they are
read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from millstream.kernels.loop.ir import (
    BOX,
    BOX_WITH_FAULTS,
    NO,
    YES,
    ZERO,
    Body,
    Const,
    Function,
    Given,
    Guarded,
    Local,
    Op,
    Set,
    Statement,
    TallyFaults,
    Value,
    When,
    op,
    set_once,
)
from millstream.kernels.loop.numbers import MADE
from millstream.kernels.loop.passes.rewriting import changed, with_bodies, with_values
from millstream.values.core.scalar import Operation


def fold(function: Function) -> Function:
    return Function(_Folding(set_once(function.body)).body(function.body), function.parents)


@dataclass(slots=True)
class _Folding:
    """Mutable: what locals are known to be."""

    once: frozenset[str]
    known: dict[str, Value] = field(default_factory=dict)

    def body(self, body: Body) -> Body:
        return tuple(made for statement in body for made in self.statement(statement))

    def statement(self, statement: Statement) -> Iterator[Statement]:
        match statement:
            case Set(local, value):
                yield from self.set(local, changed(value, self.value))
            case Guarded(lines):
                yield Guarded(tuple((g, s) for g, line in lines for s in self.statement(line)))
            case When(condition, then, otherwise):
                yield from self.when(changed(condition, self.value), then, otherwise)
            case TallyFaults(_, _, faults) if changed(faults, self.value) == ZERO:
                return
            case _:
                yield with_bodies(with_values(statement, self.value), self.body)

    def set(self, local: Local, value: Value) -> Iterator[Statement]:
        if local.name not in self.once:
            yield Set(local, value)
        elif isinstance(value, (Const, Given)) or self.is_once(value):
            self.known[local.name] = value
        else:
            self.known[local.name] = Local(local.name, value.form)
            yield Set(Local(local.name, value.form), value)

    def is_once(self, value: Value) -> bool:
        return isinstance(value, Local) and value.name in self.once

    def when(self, condition: Value, then: Body, otherwise: Body) -> Iterator[Statement]:
        if condition in (YES, NO):
            yield from self.body(then if condition == YES else otherwise)
            return
        made = When(condition, self.body(then), self.body(otherwise))
        if made.then or made.otherwise:
            yield made

    def value(self, value: Value) -> Value:
        if isinstance(value, Local):
            return self.known.get(value.name, value)
        if isinstance(value, Op) and value.operation in _RULES:
            return _RULES[value.operation](*value.args)
        return value


# --- the rules --------------------------------------------------------------------------


def _boxed(value: Value, valid: Value) -> Value:
    return value if valid == YES else op(BOX, value, valid)


def _boxed_with_faults(value: Value, valid: Value, faults: Value) -> Value:
    if faults == ZERO:
        return _boxed(value, valid)
    return op(BOX_WITH_FAULTS, value, valid, faults)


#: What operations are on the arguments they turn out to have.
_RULES: dict[Operation, Callable[..., Value]] = {
    BOX: _boxed,
    BOX_WITH_FAULTS: _boxed_with_faults,
    **MADE,
}
