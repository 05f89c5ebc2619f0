"""How functions are described: a table per family, from name to `Spec`.

The kinds of a function's parameters are written as words: `n` a number, `t` a text, `b` a
boolean, `d` a date (a number in the 1900 system whatever the workbook uses), `v` any
scalar, `e` a scalar that may be an error, `r` whatever is given (a reference stays one),
`a` an array, evaluated as in an array formula. `?` ends an optional parameter, `+` one of
a group that repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SCALAR_KINDS = frozenset("ntbdve")


@dataclass(frozen=True, slots=True)
class Spec:
    """One function: the kinds of its parameters and what it computes.

    `gives_date`: the result is a date in the 1900 system. `wants_context`: the call takes
    the `Context` first.
    """

    kinds: tuple[str, ...]
    repeated: tuple[str, ...]
    least: int
    call: Callable[..., Any]
    gives_date: bool = False
    wants_context: bool = False

    def accepts(self, count: int) -> bool:
        if count < self.least:
            return False
        if not self.repeated:
            return count <= len(self.kinds)
        extra = count - len(self.kinds)
        return extra <= 0 or extra % len(self.repeated) == 0

    def kinds_for(self, count: int) -> Iterator[str]:
        yield from self.kinds[:count]
        for number in range(count - len(self.kinds)):
            yield self.repeated[number % len(self.repeated)]


def spec(
    kinds: str, call: Callable[..., Any], *, gives_date: bool = False, wants_context: bool = False
) -> Spec:
    words = kinds.split()
    repeated = tuple(w[0] for w in words if w.endswith("+"))
    least = sum(1 for w in words if not w.endswith("?"))
    return Spec(tuple(w[0] for w in words), repeated, least, call, gives_date, wants_context)


Family = dict[str, Spec]
