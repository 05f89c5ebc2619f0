"""The types of the parameters of generated functions, by their short names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types

from millstream.calculus.types import INT64_MIN

INF = math.inf
NAN = math.nan
LEAST = np.int64(INT64_MIN)

void = types.void

_SHAPES = {
    "f": types.float64,
    "i": types.int64,
    "b": types.boolean,
    "u": types.uint64,
}

#: Arrow's arrays are read-only; numba passes a writable array where a read-only is declared.
TYPES: dict[str, Any] = {
    **{f"R{s}": types.Array(t, 1, "C", readonly=True) for s, t in _SHAPES.items()},
    **{f"W{s}": types.Array(t, 1, "C") for s, t in _SHAPES.items()},
    **{f"S{s}": t for s, t in _SHAPES.items()},
}
