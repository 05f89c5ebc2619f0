"""How generated functions get their arrays: by address.

The caller answers for it that arrays are contiguous, aligned, of the right type and alive.
Booleans are read as bytes.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numba
import numpy as np
from numba.core.typing import templates
from numba.extending import intrinsic

from millstream.calculus.types import INT64_MIN

# What numba declares about its own types does not say how to call them.
types: Any = numba.types
typing: Any = templates
extending: Any = numba.extending

INF = math.inf
NAN = math.nan
LEAST = np.int64(INT64_MIN)

void = types.void
#: Numbers and the addresses of arrays.
FRAME = types.int64[::1]


def _pointer(type_: Any) -> Any:
    @intrinsic
    def pointer(_: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

        return types.CPointer(type_)(address), generate

    return pointer


pointer_f = _pointer(types.float64)
pointer_i = _pointer(types.int64)
pointer_b = _pointer(types.uint8)
pointer_s = _pointer(types.int8)
pointer_u = _pointer(types.uint64)
pointer_f32 = _pointer(types.float32)
pointer_i32 = _pointer(types.int32)


@intrinsic
def beyond(_: Any, pointer: Any, count: Any) -> Any:
    """Where an array goes on after so many of its cells."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.gep(values[0], [values[1]])

    return pointer(pointer, types.int64), generate


# --- arrays of which no two lie in one place --------------------------------------------


class Cells(types.Type):  # type: ignore[misc]
    """A pointer to an array of a kind; arrays of other kinds lie elsewhere."""

    def __init__(self, dtype: Any, kind: str) -> None:
        self.dtype, self.kind = dtype, kind
        super().__init__(name=f"Cells({dtype}, {kind})")


extending.register_model(Cells)(extending.models.PointerModel)


@typing.infer_global(operator.getitem)
class _GetCell(typing.AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Cells):
            return typing.signature(args[0].dtype, args[0], types.intp)
        return None


@typing.infer_global(operator.setitem)
class _SetCell(typing.AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], Cells):
            return typing.signature(types.none, args[0], types.intp, args[0].dtype)
        return None


def _told_apart(builder: Any, instruction: Any, kind: str) -> None:
    """Tell LLVM that what is done here concerns no array of another kind."""
    module = builder.module
    domain = module.add_metadata(["millstream arrays"])
    scopes = {k: module.add_metadata([k, domain]) for k in _KINDS}
    others = [scope for k, scope in scopes.items() if k != kind]
    instruction.set_metadata("alias.scope", module.add_metadata([scopes[kind]]))
    instruction.set_metadata("noalias", module.add_metadata(others))


@extending.lower_builtin(operator.getitem, Cells, types.intp)
def _get_cell(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = builder.load(builder.gep(args[0], [args[1]]))
    _told_apart(builder, value, sig.args[0].kind)
    return value


@extending.lower_builtin(operator.setitem, Cells, types.intp, types.Any)
def _set_cell(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    stored = builder.store(args[2], builder.gep(args[0], [args[1]]))
    _told_apart(builder, stored, sig.args[0].kind)
    return context.get_dummy_value()


#: The memories of a code (`code_frame`).
_KINDS = ("F", "I", "O", "iF", "iI", "oF", "oI", "S", "K", "SF", "SI")


def _apart(type_: Any) -> Any:
    @intrinsic(prefer_literal=True)
    def pointer(_: Any, address: Any, kind: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

        return Cells(type_, kind.literal_value)(address, kind), generate

    return pointer


apart_i = _apart(types.int64)
apart_f32 = _apart(types.float32)
apart_i32 = _apart(types.int32)
