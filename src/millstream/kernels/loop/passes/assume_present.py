"""Leave out whether columns have nulls.

Law: where no column that the loop reads has a null or a fault, both do the same.

    v1 = boxed(column[i], valid[i])   ->   v1 = boxed(column[i], True)

It is the plain code that runs first: who calls it has made sure of what it assumes. `fold` then
sees what can never be null.
"""

from __future__ import annotations

from millstream.kernels.loop.ir import YES, ZERO, Function, Load, Value
from millstream.kernels.loop.passes.rewriting import everywhere

_ASSUMED = {"valid": YES, "faults": ZERO}


def assume_present(function: Function) -> Function:
    return Function(everywhere(function.body, _assumed), function.parents)


def _assumed(value: Value) -> Value:
    return _ASSUMED.get(value.memory.kind, value) if isinstance(value, Load) else value
