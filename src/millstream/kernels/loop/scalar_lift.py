"""From functions of plain values to functions of values that may be null or faulty.

A generated loop holds a value either *plain* (it can be neither null nor faulty) or
*boxed*: a tuple of the value, whether it is null, and a set of faults that arose while
it was computed, one bit per place in the term. Faults travel with the values, so that
`if`, `coalesce`, `and` and `or` simply pass on those of the argument that counts: terms
need no branches, and a guarded division is not counted.

Everything here is code that generates code: an `@intrinsic` says what to do with the
boxes, and the function inside it is compiled by numba and inlined by LLVM. Generated
kernels import this module; nothing else should, for it loads numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import compiler
from numba.extending import intrinsic

# What numba declares about its own types does not say how to call them.
types: Any = numba.types
_Flags: Any = compiler.Flags

BIT = ir.IntType(1)
WORD = ir.IntType(64)

RESULTS = {"f": types.float64, "i": types.int64, "b": types.boolean}


def box(type_: Any) -> Any:
    return types.Tuple((type_, types.boolean, types.int64))


def is_box(type_: Any) -> bool:
    return isinstance(type_, types.BaseTuple)


def content(type_: Any) -> Any:
    """The type of the value itself."""
    return type_[0] if is_box(type_) else type_


class LiftedValue:
    """A value in LLVM: itself, whether it is null, and its faults."""

    def __init__(self, builder: Any, type_: Any, value: Any) -> None:
        self.type = content(type_)
        self.is_boxed = is_box(type_)
        if self.is_boxed:
            self.value, self.null, self.faults = (builder.extract_value(value, n) for n in range(3))
        else:
            self.value, self.null, self.faults = value, BIT(0), WORD(0)


def call_inside(
    context: Any, builder: Any, function: Callable[..., Any], result: Any, parts: list[LiftedValue]
) -> Any:
    """Call a Python function that LLVM is to inline, on plain values; it must not raise."""
    flags = _Flags()
    flags.error_model = "numpy"
    signature = result(*(p.type for p in parts))
    compiled = context.compile_subroutine(builder, function, signature, flags=flags)
    values = [p.value for p in parts]
    _, made = context.call_internal_no_propagate(builder, compiled.fndesc, signature, values)
    return made


Generate = Callable[[Any, Any, list[LiftedValue]], tuple[Any, Any, Any]]


def on_boxes(generate: Generate, result: Callable[..., Any]) -> Any:
    """An intrinsic that works on the parts of its arguments.

    `result` gives the type of the value from the types of the arguments' values. The
    result is boxed if any argument is.
    """

    @intrinsic
    def function(_: Any, *args: Any) -> Any:
        plain = result(*map(content, args))
        boxed = any(map(is_box, args))

        def generate_all(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            parts = _unpacked(builder, signature.args[0], values[0])
            made = generate(context, builder, parts)
            return context.make_tuple(builder, signature.return_type, made) if boxed else made[0]

        return _packed(box(plain) if boxed else plain, args), generate_all

    return function


Compute = Callable[[Any, Any, list[LiftedValue]], Any]


def by_python(function: Callable[..., Any], result: Any) -> Compute:
    """The meaning of a function on plain values, as Python that LLVM is to inline."""
    return lambda context, builder, parts: call_inside(context, builder, function, result, parts)


def lift_instructions(compute: Callable[..., Any], result: str) -> Any:
    """As `lift`, for what is a single instruction: it compiles much faster."""
    return _lift(lambda _, builder, parts: compute(builder, *(p.value for p in parts)), result)


def lift(function: Callable[..., Any], result: str) -> Any:
    """A function of plain values that cannot fail, lifted to boxes: null in, null out."""
    return _lift(by_python(function, RESULTS[result]), result)


def _lift(compute: Compute, result: str) -> Any:
    def generate(context: Any, builder: Any, parts: list[LiftedValue]) -> tuple[Any, Any, Any]:
        return (compute(context, builder, parts), *joined(builder, parts))

    return on_boxes(generate, lambda *_: RESULTS[result])


def lift_faulty(function: Callable[..., Any], result: str) -> Any:
    """A function that gives a value and a fault, lifted to boxes.

    A fault is 0 for none, else 1 or 2. The first argument of the lifted function says
    which bit stands for a fault 1 at this place of the term.
    """
    both = types.Tuple((RESULTS[result], types.int64))
    call = by_python(function, both)

    def compute(context: Any, builder: Any, parts: list[LiftedValue]) -> Any:
        pair = call(context, builder, parts)
        return builder.extract_value(pair, 0), builder.extract_value(pair, 1)

    return _lift_faulty(compute, result)


def lift_checked(instruction: str) -> Any:
    """An instruction on integers that says whether it overflowed."""

    def compute(_: Any, builder: Any, parts: list[LiftedValue]) -> Any:
        pair = getattr(builder, instruction)(*(p.value for p in parts))
        fault = builder.zext(builder.extract_value(pair, 1), WORD)
        return builder.extract_value(pair, 0), fault

    return _lift_faulty(compute, "i")


def _lift_faulty(compute: Compute, result: str) -> Any:
    plain = RESULTS[result]

    @intrinsic
    def function(_: Any, place: Any, *args: Any) -> Any:
        del place

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            parts = _unpacked(builder, signature.args[1], values[1])
            value, fault = compute(context, builder, parts)
            null, faults = joined(builder, parts)
            fault = builder.select(null, WORD(0), fault)
            made = (
                value,
                builder.or_(null, builder.icmp_signed("!=", fault, WORD(0))),
                builder.or_(faults, builder.shl(fault, values[0])),
            )
            return context.make_tuple(builder, signature.return_type, made)

        return box(plain)(types.int64, types.StarArgTuple(args)), generate

    return function


def joined(builder: Any, parts: list[LiftedValue]) -> tuple[Any, Any]:
    """Whether any is null, and the faults of all."""
    null, faults = BIT(0), WORD(0)
    for part in parts:
        if part.is_boxed:  # LLVM would see it too, but later
            null = builder.or_(null, part.null)
            faults = builder.or_(faults, part.faults)
    return null, faults


def _packed(result: Any, args: tuple[Any, ...]) -> Any:
    """A signature; numba hands variable arguments to an intrinsic as one tuple."""
    return result(types.StarArgTuple(args))


def _unpacked(builder: Any, type_: Any, packed: Any) -> list[LiftedValue]:
    return [LiftedValue(builder, t, builder.extract_value(packed, n)) for n, t in enumerate(type_)]
