"""Functions that look at boxes: those that see nulls, and how values enter and leave.

See `scalar_lift` for what a box is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import intrinsic

from millstream.kernels.loop.scalar_lift import (
    BIT,
    WORD,
    LiftedValue,
    box,
    call_inside,
    on_boxes,
    types,
)

Made = tuple[Any, Any, Any]


@intrinsic
def boxed(_: Any, value: Any, valid: Any) -> Any:
    """A value and whether it is there."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        made = (values[0], builder.not_(values[1]), WORD(0))
        return context.make_tuple(builder, signature.return_type, made)

    return box(value)(value, valid), generate


@intrinsic
def boxed_with_faults(_: Any, value: Any, valid: Any, faults: Any) -> Any:
    """A value computed before the loop, with the faults that arose there."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        made = (values[0], builder.not_(values[1]), values[2])
        return context.make_tuple(builder, signature.return_type, made)

    return box(value)(value, valid, faults), generate


@intrinsic
def settled(_: Any, value: Any) -> Any:
    """The same box after its faults have been counted."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        del context, signature
        return builder.insert_value(values[0], WORD(0), 2)

    return value(value), generate


def _holds(_: Any, builder: Any, parts: list[LiftedValue]) -> Made:
    (one,) = parts
    return builder.and_(one.value, builder.not_(one.null)), BIT(0), one.faults


def _is_null(_: Any, builder: Any, parts: list[LiftedValue]) -> Made:
    del builder
    (one,) = parts
    return one.null, BIT(0), one.faults


def _choose(_: Any, builder: Any, parts: list[LiftedValue]) -> Made:
    """`if`: the faults of the branch not taken are forgotten."""
    condition, yes, no = parts
    taken = builder.and_(condition.value, builder.not_(condition.null))
    return (
        builder.select(taken, yes.value, no.value),
        builder.select(taken, yes.null, no.null),
        builder.or_(condition.faults, builder.select(taken, yes.faults, no.faults)),
    )


def _first(_: Any, builder: Any, parts: list[LiftedValue]) -> Made:
    """`coalesce` of two."""
    one, other = parts
    return (
        builder.select(one.null, other.value, one.value),
        builder.and_(one.null, other.null),
        builder.or_(one.faults, builder.select(one.null, other.faults, WORD(0))),
    )


def _both(_: Any, builder: Any, parts: list[LiftedValue]) -> Made:
    """`and`: if the left is false the right is not looked at."""
    left, right = parts
    looks = builder.or_(left.null, left.value)
    unknown = builder.or_(right.null, builder.and_(left.null, right.value))
    return (
        builder.and_(looks, right.value),
        builder.and_(looks, unknown),
        builder.or_(left.faults, builder.select(looks, right.faults, WORD(0))),
    )


def _either(_: Any, builder: Any, parts: list[LiftedValue]) -> Made:
    """`or`: if the left is true the right is not looked at."""
    left, right = parts
    looks = builder.or_(left.null, builder.not_(left.value))
    unknown = builder.or_(right.null, builder.and_(left.null, builder.not_(right.value)))
    return (
        builder.or_(builder.not_(looks), right.value),
        builder.and_(looks, unknown),
        builder.or_(left.faults, builder.select(looks, right.faults, WORD(0))),
    )


def better_of_two(is_better: Callable[[Any, Any], bool]) -> Any:
    """`least` or `greatest` of two: nulls are passed over, the first of equals is kept."""

    def generate(context: Any, builder: Any, parts: list[LiftedValue]) -> Made:
        one, other = parts
        better = call_inside(context, builder, is_better, types.boolean, [other, one])
        taken = builder.and_(builder.not_(other.null), builder.or_(one.null, better))
        return (
            builder.select(taken, other.value, one.value),
            builder.and_(one.null, other.null),
            builder.or_(one.faults, other.faults),
        )

    return on_boxes(generate, lambda one, _: one)


holds = on_boxes(_holds, lambda _: types.boolean)
is_null = on_boxes(_is_null, lambda _: types.boolean)
choose = on_boxes(_choose, lambda _condition, yes, _no: yes)
first = on_boxes(_first, lambda one, _: one)
both = on_boxes(_both, lambda *_: types.boolean)
either = on_boxes(_either, lambda *_: types.boolean)


@njit(error_model="numpy")
def count_faults(counters: Any, base: int, faults: int) -> None:
    """Add one to the counter of every bit that is set."""
    while faults:
        if faults & 1:
            counters[base] += 1
        base += 1
        faults >>= 1
