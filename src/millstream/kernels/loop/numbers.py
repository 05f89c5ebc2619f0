"""Integers and truths of loops, worked out at once where they are known.

Sums keep what is known at their end, so that counting on makes no longer sums.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.kernels.loop.ir import NO, YES, ZERO, Const, Op, Rep, Value, integer, op
from millstream.values.core.scalar import Operation

ADD = Operation("", "{0} + {1}")
SUBTRACT = Operation("", "{0} - {1}")
MULTIPLY = Operation("", "{0} * {1}")
DIVIDE = Operation("", "{0} // {1}")
GREATER_OF = Operation("", "max({0}, {1})")
LESS_OF = Operation("", "min({0}, {1})")
LESS = Operation("", "{0} < {1}")
AT_LEAST = Operation("", "{0} >= {1}")
EQUAL = Operation("", "{0} == {1}")
DIFFER = Operation("", "{0} != {1}")
NOT = Operation("", "not {0}")
#: Both sides are looked at, which is quicker than a jump.
BOTH = Operation("", "{0} & {1}")
EITHER = Operation("", "{0} | {1}")
#: The right side is looked at only if it counts.
AND = Operation("", "{0} and {1}")
OR = Operation("", "{0} or {1}")
WIDEN = Operation("", "int64({0})")
SHORTEN = Operation("", "int32({0})")

ONE = integer(1)


def known(value: Value) -> int | None:
    """The integer that a value is known to be."""
    if isinstance(value, Const) and value.form.rep in (Rep.INTEGER, Rep.SHORT):
        return int(value.value)
    return None


def wide(value: Value) -> Value:
    """With 64 bits."""
    if value.form.rep is Rep.INTEGER:
        return value
    number = known(value)
    return op(WIDEN, value, rep=Rep.INTEGER) if number is None else integer(number)


def plus(a: Value, b: Value) -> Value:
    (a, first), (b, second) = _split(a), _split(b)
    rest = b if a == ZERO else (a if b == ZERO else op(ADD, a, b, rep=Rep.INTEGER))
    if first + second == 0:
        return rest
    more = integer(first + second)
    return more if rest == ZERO else op(ADD, rest, more, rep=Rep.INTEGER)


def _split(value: Value) -> tuple[Value, int]:
    """A value as something, and so much more."""
    number = known(value)
    if number is not None:
        return ZERO, number
    if isinstance(value, Op) and value.operation == ADD:
        more = known(value.args[1])
        if more is not None:
            return value.args[0], more
    return value, 0


def minus(a: Value, b: Value) -> Value:
    number = known(b)
    if number is not None:
        return plus(a, integer(-number))
    return ZERO if a == b else op(SUBTRACT, a, b, rep=Rep.INTEGER)


def times(a: Value, b: Value) -> Value:
    first, second = known(a), known(b)
    if first is not None and second is not None:
        return integer(first * second)
    if 0 in (first, second):
        return ZERO
    if 1 in (first, second):
        return b if first == 1 else a
    return op(MULTIPLY, a, b, rep=Rep.INTEGER)


def divided(a: Value, b: Value) -> Value:
    """Rounded down; the divisor is not zero."""
    first, second = known(a), known(b)
    if first is not None and second is not None:
        return integer(first // second)
    return a if second == 1 else op(DIVIDE, a, b, rep=Rep.INTEGER)


def greater_of(a: Value, b: Value) -> Value:
    first, second = known(a), known(b)
    if first is not None and second is not None:
        return integer(max(first, second))
    return op(GREATER_OF, a, b, rep=Rep.INTEGER)


# --- truths -----------------------------------------------------------------------------


def _compared(
    operation: Operation, compare: Callable[[int, int], bool]
) -> Callable[[Value, Value], Value]:
    def made(a: Value, b: Value) -> Value:
        first, second = known(a), known(b)
        if first is None or second is None:
            return op(operation, a, b, rep=Rep.TRUTH)
        return YES if compare(first, second) else NO

    return made


less = _compared(LESS, lambda a, b: a < b)
at_least = _compared(AT_LEAST, lambda a, b: a >= b)
equal = _compared(EQUAL, lambda a, b: a == b)
differ = _compared(DIFFER, lambda a, b: a != b)


def not_(value: Value) -> Value:
    if value in (YES, NO):
        return NO if value == YES else YES
    return op(NOT, value, rep=Rep.TRUTH)


def _joined(
    operation: Operation, neutral: Const, certain: Const
) -> Callable[[Value, Value], Value]:
    def made(a: Value, b: Value) -> Value:
        if certain in (a, b):
            return certain
        if neutral in (a, b):
            return b if a == neutral else a
        return op(operation, a, b, rep=Rep.TRUTH)

    return made


both = _joined(BOTH, YES, NO)
either = _joined(EITHER, NO, YES)
and_ = _joined(AND, YES, NO)
or_ = _joined(OR, NO, YES)


def all_of(truths: list[Value]) -> Value:
    """Whether all hold; put together by halves, for there may be hundreds."""
    if len(truths) < 2:
        return truths[0] if truths else YES
    half = len(truths) // 2
    return and_(all_of(truths[:half]), all_of(truths[half:]))


#: How operations of this file are made, so that they are worked out when more is known.
MADE: dict[Operation, Callable[..., Value]] = {
    ADD: plus, SUBTRACT: minus, MULTIPLY: times, DIVIDE: divided, GREATER_OF: greater_of,
    LESS: less, AT_LEAST: at_least, EQUAL: equal, DIFFER: differ, NOT: not_,
    BOTH: both, EITHER: either, AND: and_, OR: or_, WIDEN: wide,
}  # fmt: skip
