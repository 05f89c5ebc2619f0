"""Scalar functions that compare, choose and see nulls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from millstream.values.core import rules
from millstream.values.core.scalar import Operation, Scalar
from millstream.values.types import BOOLEAN, Value

#: Computes an argument.
Given = Callable[[], Value]


def _and(left: Given, right: Given) -> Value:
    a = left()
    if a is False:
        return False
    b = right()
    return False if b is False else (None if a is None or b is None else True)


def _or(left: Given, right: Given) -> Value:
    a = left()
    if a is True:
        return True
    b = right()
    return True if b is True else (None if a is None or b is None else False)


def _if(condition: Given, then: Given, otherwise: Given) -> Value:
    return then() if condition() is True else otherwise()


def _coalesce(*given: Given) -> Value:
    values = (compute() for compute in given)
    return next((value for value in values if value is not None), None)


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[..., Value]:
    def choose(*given: Given) -> Value:
        best: Value = None
        for value in [compute() for compute in given]:
            if value is not None and (best is None or is_better(value, best)):
                best = value
        return best

    return choose


def less(a: Any, b: Any) -> bool:
    """Numbers in order, NaN equal to itself and greater than all else."""
    if a != a:
        return False
    return b != b or bool(a < b)


def equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)


def _more(a: Any, b: Any) -> bool:
    return less(b, a)


def _compared(symbol: str, name: str, meaning: Callable[[Any, Any], bool]) -> Scalar:
    loop = {
        "ff": Operation(f"{name}_numbers"),
        "ii": Operation(f"{name}_integers", f"{{0}} {symbol} {{1}}"),
        "bb": Operation(f"{name}_booleans"),
    }
    # Texts are held as codes: equal texts have equal codes, but their order is lost.
    on_codes = symbol in ("==", "!=")
    if on_codes:
        loop["ss"] = loop["ii"]
    usage = f"a {symbol} b"
    return Scalar(symbol, rules.comparison, usage, meaning, loop, on_codes=on_codes)


def _chosen(name: str, meaning: Callable[..., Value]) -> Scalar:
    loop = {
        "f*": Operation(f"{name}_number"),
        "i*": Operation(f"{name}_integer"),
        "b*": Operation(f"{name}_boolean"),
    }
    usage = f"{name}(a, b, ...): nulls are passed over"
    return Scalar(name, rules.same_type(1), usage, meaning, loop, sees_nulls=True)


_BOTH = rules.fixed(BOOLEAN, BOOLEAN, result=BOOLEAN)

LOGIC: tuple[Scalar, ...] = (
    _chosen("least", _extreme(less)),
    _chosen("greatest", _extreme(_more)),
    _compared("==", "equal", equal),
    _compared("!=", "differ", lambda a, b: not equal(a, b)),
    _compared("<", "less", less),
    _compared("<=", "at_most", lambda a, b: not less(b, a)),
    _compared(">", "more", _more),
    _compared(">=", "at_least", lambda a, b: not less(a, b)),
    Scalar("and", _BOTH, "a and b", _and, {"bb": Operation("both", "{0} & {1}")},
           sees_nulls=True),
    Scalar("or", _BOTH, "a or b", _or, {"bb": Operation("either", "{0} | {1}")},
           sees_nulls=True),
    Scalar("not", rules.fixed(BOOLEAN, result=BOOLEAN), "not a", operator.not_,
           {"b": Operation("negation", "not {0}")}),
    Scalar("is_null", rules.any_type(BOOLEAN), "is_null(a)", lambda given: given() is None,
           sees_nulls=True, on_codes=True),
    Scalar("coalesce", rules.same_type(1), "coalesce(a, b, ...): the first that is not null",
           _coalesce, {f"{shape}*": Operation("first") for shape in "fibs"},
           sees_nulls=True, on_codes=True),
    Scalar("if", rules.conditional, "if(condition, a, b)", _if, sees_nulls=True, on_codes=True),
)  # fmt: skip
