"""Eight bytes at any address at once, for compiled loops over texts."""

from __future__ import annotations

from typing import Any

from millstream import compiled  # noqa: F401  where compiled code is kept must be known first

from llvmlite import ir  # isort: skip
from numba import types  # isort: skip
from numba.extending import intrinsic  # isort: skip


def _define_load64(typing_context: Any, data: Any, index: Any) -> Any:
    """Eight bytes at any address as a little-endian uint64: comparing bytes is too slow."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        address = builder.gep(array.data, [args[1]])
        pointer = builder.bitcast(address, ir.IntType(64).as_pointer())
        load = builder.load(pointer)
        load.align = 1
        return load

    del typing_context, index
    return types.uint64(data, types.int64), generate


load64: Any = intrinsic(_define_load64)


def _define_copy64(typing_context: Any, to: Any, place: Any, data: Any, index: Any) -> Any:
    """Copy eight bytes, from any address to any other."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.IntType(64).as_pointer()
        target, source = (
            builder.bitcast(builder.gep(array.data, [at]), pointer)
            for array, at in (
                (context.make_array(signature.args[n])(context, builder, args[n]), args[n + 1])
                for n in (0, 2)
            )
        )
        load = builder.load(source)
        load.align = 1
        builder.store(load, target).align = 1
        return context.get_dummy_value()

    del typing_context, place, index
    return types.void(to, types.int64, data, types.int64), generate


copy64: Any = intrinsic(_define_copy64)
