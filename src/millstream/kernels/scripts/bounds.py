"""Between which numbers integers lie, as far as one sees it from how they are made.

What cannot leave 64 bits need not be asked whether it has, and what is not negative is divided and
looked up as Python does it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from millstream.calculus.scripts import Const, Expression, Get, Index, Intrinsic, Length, Operate
from millstream.values.records.types import BYTES, INT, STRING, resolved

Bounds = tuple[int, int]
#: Of all integers, of lengths (with room to spare), and of what texts consist of.
ALL, _LENGTHS, _CHARACTERS = (-(2**63), 2**63 - 1), (0, 2**40), (0, 0x10FFFF)


def bounds_of(node: Expression, naturals: AbstractSet[int]) -> Bounds:
    """The least and the most that an integer may be; `naturals` are variables not below zero."""
    exact = exact_bounds(node, naturals)
    return exact if fits(exact) else ALL


def fits(bounds: Bounds) -> bool:
    return ALL[0] <= bounds[0] and bounds[1] <= ALL[1]


def exact_bounds(node: Expression, naturals: AbstractSet[int]) -> Bounds:
    """As `bounds_of`, before anything wraps."""
    match node:
        case Const(int() as value, _):
            return (value, value)
        case Length() | Intrinsic("len"):
            return _LENGTHS
        case Get(var) if var.number in naturals:
            return (0, ALL[1])
        case Index(base) if resolved(base.type) in (STRING, BYTES):
            return _CHARACTERS
        case Operate(operator, (left, right)) if resolved(node.type) == INT:
            one, other = bounds_of(left, naturals), bounds_of(right, naturals)
            return _of_operation(operator, one, other)
    return ALL


def _of_operation(operator: str, one: Bounds, other: Bounds) -> Bounds:
    match operator:
        case "+":
            return (one[0] + other[0], one[1] + other[1])
        case "-":
            return (one[0] - other[1], one[1] - other[0])
        case "*":
            products = [a * b for a in one for b in other]
            return (min(products), max(products))
        case "/" if one[0] >= 0 and other[0] > 0:
            return (0, one[1] // other[0])
        case "%" if one[0] >= 0 and other[0] > 0:
            return (0, min(one[1], other[1] - 1))
        case "&" if one[0] >= 0 and other[0] >= 0:
            return (0, min(one[1], other[1]))
    return ALL
