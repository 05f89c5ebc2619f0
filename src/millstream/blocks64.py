"""Sixty-four bytes at any address at once, for compiled loops that look for something in texts.

What is asked of each byte comes back as a bit, that of the first byte lowest.
"""

from __future__ import annotations

from typing import Any

from millstream import compiled  # noqa: F401  where compiled code is kept must be known first

from llvmlite import ir  # isort: skip
from numba import types  # isort: skip
from numba.extending import intrinsic  # isort: skip

_BYTES = 64
_BLOCK = ir.VectorType(ir.IntType(8), _BYTES)


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _BLOCK.as_pointer())


def _loaded(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    block = builder.load(_place(context, builder, kind, array, index))
    block.align = 1
    return block


def _everywhere(builder: Any, byte: Any) -> Any:
    nothing = ir.Constant(_BLOCK, ir.Undefined)
    first = builder.insert_element(nothing, byte, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), _BYTES), [0] * _BYTES)
    return builder.shuffle_vector(first, nothing, places)


def _define_within64(typing_context: Any, data: Any, index: Any, low: Any, span: Any) -> Any:
    """Which of the bytes from an index on lie from `low` up to `low + span`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _loaded(context, builder, signature.args[0], args[0], args[1])
        above = builder.sub(block, _everywhere(builder, args[2]))
        inside = builder.icmp_unsigned("<=", above, _everywhere(builder, args[3]))
        return builder.bitcast(inside, ir.IntType(_BYTES))

    del typing_context, index, low, span
    return types.uint64(data, types.int64, types.uint8, types.uint8), generate


within64: Any = intrinsic(_define_within64)


def _define_between64(typing_context: Any, data: Any, index: Any, bounds: Any, place: Any) -> Any:
    """As `within64`, with 64 times `low` at a place among bounds, and 64 times `span` behind."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _loaded(context, builder, signature.args[0], args[0], args[1])
        low = _loaded(context, builder, signature.args[2], args[2], args[3])
        behind = builder.add(args[3], ir.Constant(ir.IntType(64), _BYTES))
        span = _loaded(context, builder, signature.args[2], args[2], behind)
        inside = builder.icmp_unsigned("<=", builder.sub(block, low), span)
        return builder.bitcast(inside, ir.IntType(_BYTES))

    del typing_context, index, place
    return types.uint64(data, types.int64, bounds, types.int64), generate


between64: Any = intrinsic(_define_between64)


def _define_copy_block(typing_context: Any, to: Any, place: Any, data: Any, index: Any) -> Any:
    """Copy the bytes from an index on to any other place."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        block = _loaded(context, builder, signature.args[2], args[2], args[3])
        target = _place(context, builder, signature.args[0], args[0], args[1])
        builder.store(block, target).align = 1
        return context.get_dummy_value()

    del typing_context, place, index
    return types.void(to, types.int64, data, types.int64), generate


copy_block: Any = intrinsic(_define_copy_block)


def _define_first_bit(typing_context: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set; there must be one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    del typing_context, bits
    return types.int64(types.uint64), generate


first_bit: Any = intrinsic(_define_first_bit)
