"""How the definitions of Excel's functions say in compiled loops that there is no value.

Which error it is is not told there: the loop asks the definition itself (`formulas_defined`).
"""

from __future__ import annotations

import math
from typing import Any

from millstream.compiled import apart, raising


@apart
def _fail(error: Any) -> Any:
    if error != 0:
        raise ValueError
    return math.nan


@apart
def _fail_if(is_bad: Any, error: Any = 1) -> Any:
    if is_bad:
        raise ValueError


@apart
def _finite(value: Any) -> Any:
    if value - value != 0.0:
        raise ValueError
    return value + 0.0


@apart
def _raised(base: Any, exponent: Any) -> Any:
    value = base**exponent
    return value if value - value == 0.0 else math.nan


#: What stands for names in definitions; errors are all alike.
_INSTEAD: dict[str, Any] = {
    "fail": _fail, "fail_if": _fail_if, "finite": _finite, "raised": _raised,
    **dict.fromkeys(("DIV0", "NA", "NUM", "VALUE"), 1),
}  # fmt: skip


def defined(definition: Any) -> Any:
    """A definition as loops call it, where exceptions are caught."""
    return raising(definition, _INSTEAD)
