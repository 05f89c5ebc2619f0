"""How functions are described: a table per family, from name to `Spec`.

The kinds of a function's parameters are written as words: `n` a number, `t` a text, `b` a
boolean, `d` a date (a number in the 1900 system whatever the workbook uses), `v` any
scalar, `f` any scalar, that of the first cell if it is a reference, `e` a scalar that may be
an error, `r` whatever is given (a reference stays one), `a` an array, evaluated as in an
array formula. `?` ends an optional parameter, `+` one of a group that repeats.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SCALAR_KINDS = frozenset("ntbdvfe")


@dataclass(frozen=True, slots=True)
class Spec:
    """One function: the kinds of its parameters and what it computes.

    `gives_date`: the result is a date in the 1900 system. `wants_context`: the call takes
    the `Context` first. `defaults`: what stands for arguments that are left out between
    others, `SORT(A1:A9,,-1)`; older functions take those for zero, FALSE or no text.
    """

    kinds: tuple[str, ...]
    repeated: tuple[str, ...]
    least: int
    call: Callable[..., Any]
    gives_date: bool = False
    wants_context: bool = False
    defaults: tuple[Any, ...] | None = None

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


#: Stands for an argument that has been left out between others.
LEFT_OUT = object()


def spec(
    kinds: str, call: Callable[..., Any], *, gives_date: bool = False, wants_context: bool = False,
    fills_in: bool = False,
) -> Spec:  # fmt: skip
    """A function; one that `fills_in` has its defaults for arguments that are left out."""
    words = kinds.split()
    repeated = tuple(w[0] for w in words if w.endswith("+"))
    least = sum(1 for w in words if not w.endswith("?"))
    defaults = None
    if fills_in:
        parameters = inspect.signature(call).parameters.values()
        defaults = tuple(None if p.default is p.empty else p.default for p in parameters)
    return Spec(tuple(w[0] for w in words), repeated, least, call, gives_date, wants_context,
                defaults)  # fmt: skip


Family = dict[str, Spec]
