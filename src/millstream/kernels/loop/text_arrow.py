"""The functions of text that Arrow computes exactly as Python does, many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import Kind
from millstream.plan.batch import text_array

_compute: Any = pc
_LONGEST = 2**31  # no text of an Arrow array has more characters
_ASCII_SPACE = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"  # what str.strip() strips from ASCII

Places = Sequence[Any]


def by_arrow(function: str, first: Kind, args: Places) -> Any | None:
    """The result as an Arrow array; None where Python must do it.

    Arguments are Arrow arrays or single values, and at least one is an array.
    """
    if function in _COMPARISONS:
        return _compute.call_function(_COMPARISONS[function], [_scalar(a) for a in args])
    if function == "||":
        return _compute.binary_join_element_wise(*map(_scalar, args), "")
    if not isinstance(args[0], pa.Array) or any(isinstance(a, pa.Array) for a in args[1:]):
        return None
    known = _CASTS.get((function, first)) or _FUNCTIONS.get(function)
    return None if known is None else known(*args)


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return text_array([value])[0]
    return value if isinstance(value, pa.Array) else pa.scalar(value)


_COMPARISONS = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def _is_ascii(array: Any) -> bool:
    return _compute.all(_compute.string_is_ascii(array)).as_py() is not False


def _upper(array: Any) -> Any | None:
    return _compute.ascii_upper(array) if _is_ascii(array) else None


def _lower(array: Any) -> Any | None:
    return _compute.ascii_lower(array) if _is_ascii(array) else None


def _trim(array: Any) -> Any | None:
    if not _is_ascii(array):
        return None
    return _compute.ascii_trim(array, characters=_ASCII_SPACE)


def _substring(array: Any, start: int, length: int | None = None) -> Any | None:
    if length is not None and length < 0:
        return None
    first = min(max(start - 1, 0), _LONGEST)
    last = _LONGEST if length is None else min(start - 1 + length, _LONGEST)
    return _compute.utf8_slice_codeunits(array, start=first, stop=max(first, last))


def _replace(array: Any, old: str, new: str) -> Any:
    if not old:
        return array
    return _compute.replace_substring(array, pattern=old, replacement=new)


def _number(array: Any) -> Any | None:
    """Arrow knows fewer spellings than Python, but for `nan(...)`, which Python refuses."""
    if _compute.any(_compute.match_substring(array, pattern="(")).as_py():
        return None
    try:
        return array.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "length": lambda array: _compute.utf8_length(array),  # noqa: PLW0108  made at run time
    "upper": _upper,
    "lower": _lower,
    "trim": _trim,
    "substring": _substring,
    "starts_with": lambda array, part: _compute.starts_with(array, pattern=part),
    "ends_with": lambda array, part: _compute.ends_with(array, pattern=part),
    "contains": lambda array, part: _compute.match_substring(array, pattern=part),
    "replace": _replace,
}

_CASTS: dict[tuple[str, Kind], Callable[[Any], Any]] = {
    ("number", Kind.TEXT): _number,
    ("text", Kind.INTEGER): lambda array: array.cast(pa.string()),
    ("text", Kind.BOOLEAN): lambda array: array.cast(pa.string()),
    ("text", Kind.DURATION): lambda array: _compute.binary_join_element_wise(
        array.cast(pa.string()), pa.scalar("us"), ""
    ),
}
