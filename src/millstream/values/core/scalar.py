"""What a scalar function is: one record with all that is known of it.

A *scalar fault* (integer overflow, division by zero, a cast of what cannot be cast, a
root of a negative number) gives null and is counted; it never stops a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.values.types import Type


class ScalarFault(Exception):
    """The value cannot be computed; it becomes null and is counted."""


@dataclass(frozen=True, slots=True)
class Signature:
    params: tuple[Type, ...]
    result: Type


#: From the types of the arguments to a signature, or to a sentence on what was wanted.
Rule = Callable[[tuple[Type, ...]], Signature | str]


@dataclass(frozen=True, slots=True)
class Operation:
    """A compiled function that a loop calls, by name.

    `plain` is the same as an expression for plain values; shorter code compiles sooner.
    `faults` are messages; `{}` stands for the type of the result.
    `sound` is what a division is by a constant that is neither zero nor -1: it cannot fail, and
    asks for nothing.
    """

    name: str
    plain: str | None = None
    faults: tuple[str, ...] = ()
    sound: Operation | None = None


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar function; `usage` is shown when it is called wrongly.

    `meaning` is on Python values of which none is null. One that `sees_nulls` is given
    functions instead that compute the arguments, and may leave some of them alone. One that
    `sees_kinds` is given the kinds of the arguments first.

    `loop` has the compiled function for each combination of shapes: how arguments are held
    in a loop, `f` a float, `i` a 64-bit integer (times and durations too), `b` a boolean, `s`
    the code of a text. `f*` is for any number of arguments, two at a time from the left. What
    touches texts and is not `on_codes` is computed on columns before the loop.
    """

    name: str
    rule: Rule
    usage: str
    meaning: Callable[..., Any]
    loop: Mapping[str, Operation] = field(default_factory=dict)
    sees_nulls: bool = False
    sees_kinds: bool = False
    on_codes: bool = False


OVERFLOW = "{} overflow"
DIVISION_BY_ZERO = "division by zero"
