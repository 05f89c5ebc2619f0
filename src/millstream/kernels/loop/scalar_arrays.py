"""How generated functions get their arrays: by address.

The caller answers for it that arrays are contiguous, aligned, of the right type and alive.
Booleans are read as bytes.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic

from millstream.calculus.types import INT64_MIN

# What numba declares about its own types does not say how to call them.
types: Any = numba.types

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
pointer_u = _pointer(types.uint64)
pointer_f32 = _pointer(types.float32)
pointer_i32 = _pointer(types.int32)
