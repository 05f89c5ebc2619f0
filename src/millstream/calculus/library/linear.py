"""A matrix as a filter: what it gives is the matrix times the items it sees, plus an offset.

    for each row:
        sum = offset[row]
        for each item:  sum = sum + item * weights[row, item]
        push sum
    then the items of a firing are taken off

Its sizes are parameters, so that all matrices share what is compiled of one code.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Code,
    Let,
    Peek,
    Pop,
    Push,
    Repeat,
    Slot,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term
from millstream.calculus.work import Rates, Work
from millstream.values.core.machine import single
from millstream.values.types import BOOLEAN, INT32, SINGLE

Matrix = Sequence[Sequence[float]]


def linear_work(matrix: Matrix, offset: Sequence[float], pop: int, path: str) -> Work:
    """The filter of a matrix, which takes so many items off at a firing."""
    rows, seen = len(matrix), len(matrix[0])
    weights = tuple(single(number) for row in matrix for number in row)
    arguments = (rows, seen, pop, weights, tuple(map(single, offset)))
    return Work(_code(), arguments, SINGLE, SINGLE, Rates(pop, seen, rows), path=path)


def _whole(name: str) -> Term:
    return Read(Place(name), INT32)


def _number(name: str, *path: Term) -> Term:
    return Read(Place(name, path), SINGLE)


def _counted(name: str, upto: str, body: Body) -> Body:
    """A body for every number from 0 on."""
    goes_on = Call("int32_lt", (_whole(name), _whole(upto)), BOOLEAN)
    more = Call("int32_add", (_whole(name), Literal(1, INT32)), INT32)
    return (
        Let(Slot(name, INT32)),
        Repeat(goes_on, body, (Assign(Place(name), more),)),
    )


@functools.cache
def _code() -> Code:
    cells = Call("int32_mul", (_whole("rows"), _whole("seen")), INT32)
    parameters = (
        Slot("rows", INT32), Slot("seen", INT32), Slot("taken", INT32),
        Slot("weights", ArrayOf(SINGLE, cells)), Slot("offset", ArrayOf(SINGLE, _whole("rows"))),
    )  # fmt: skip
    begin = Call("int32_mul", (_whole("row"), _whole("seen")), INT32)
    cell = Call("int32_add", (begin, _whole("item")), INT32)
    product = Call("single_mul", (_number("value"), _number("weights", cell)), SINGLE)
    added: Body = (
        Let(Slot("value", SINGLE)),
        Peek(_whole("item"), Place("value")),
        Assign(Place("sum"), Call("single_add", (_number("sum"), product), SINGLE)),
    )
    row: Body = (
        Let(Slot("sum", SINGLE)),
        Assign(Place("sum"), _number("offset", _whole("row"))),
        *_counted("item", "seen", added),
        Push(_number("sum")),
    )
    body = (*_counted("row", "rows", row), *_counted("passed", "taken", (Pop(),)))
    return Code("Linear", parameters, (), SINGLE, SINGLE, (), None, body)
