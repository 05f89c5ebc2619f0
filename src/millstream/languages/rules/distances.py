"""How far things lie apart: on a plane, or on the globe."""

from __future__ import annotations

import math
from functools import reduce

from millstream.calculus.functions import Assign, Map
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import NUMBER
from millstream.calculus.wiring import Queue
from millstream.languages.rules.domain import Nearest
from millstream.languages.rules.wiring import RulesWiring

#: The axes of space.
AXES = ("x", "y", "z")


def located(
    wiring: RulesWiring, rows: Queue, key: str, entity: str, nearest: Nearest, name: str
) -> Queue:
    """The keys of an entity with its coordinates, such as `berth.x` and `berth.y`."""
    columns = {f"{entity}.{c}": f"{entity}.{c}" for c in nearest.by}
    flow = wiring.columns(rows, {key: key, **columns}, name)
    if not nearest.is_on_globe:
        return flow
    north, east = (_number(column) for column in columns)
    return on_globe(wiring, flow, north, east, f"{entity}.", name, (key,))


def distance(pairs: Queue, nearest: Nearest) -> Term:
    """The square of how far the points of a pair lie apart, in a straight line."""
    axes = AXES if nearest.is_on_globe else nearest.by
    differences = [
        Call("-", (pairs.column(f"{nearest.to}.{a}"), pairs.column(f"{nearest.among}.{a}")), NUMBER)
        for a in axes
    ]
    return reduce(_plus, (_times(d, d) for d in differences))


def on_globe(
    wiring: RulesWiring,
    flow: Queue,
    latitude: Term,
    longitude: Term,
    prefix: str,
    name: str,
    kept: tuple[str, ...],
) -> Queue:
    """Points on a ball of radius one: what is nearer on the globe is nearer in space.

    A step at a time, so that nothing is computed twice, and sines once for each point rather
    than for each pair. Longitudes are halved, because the series are good to a quarter turn.
    Beside the axes those columns stay that are `kept`.
    """
    turned = Call("%", (_plus(longitude, _literal(540.0)), _literal(360.0)), NUMBER)
    north, half = _number("north"), _number("half")
    cos, sin = _number("half_cos"), _number("half_sin")
    x, y, z = (prefix + axis for axis in AXES)
    steps: tuple[dict[str, Term], ...] = (
        {"north": _times(latitude, _literal(math.pi / 180)),
         "half": _times(_plus(turned, _literal(-180.0)), _literal(math.pi / 360))},
        {"north": north, "north2": _times(north, north), "half": half, "half2": _times(half, half)},
        {"flat": _series("north2", 0), z: _times(north, _series("north2", 1)),
         "half_cos": _series("half2", 0), "half_sin": _times(half, _series("half2", 1))},
        {x: _times(_number("flat"), _plus(
            _literal(1.0), _times(_literal(-2.0), _times(sin, sin)))),
         y: _times(_number("flat"), _times(_literal(2.0), _times(sin, cos))),
         z: _number(z)},
    )  # fmt: skip
    others = tuple(Assign(n, flow.column(n)) for n in kept)
    for step in steps:
        columns = (Assign(column, term) for column, term in step.items())
        flow = wiring.add(Map((*others, *columns)), flow, name=name)
    return flow


def _series(square: str, first: int) -> Term:
    """The cosine of an angle, or its sine by the angle, from its square; alike on all engines.

    Up to a quarter turn the error is less than a hundred-millionth: centimetres on the globe.
    """
    total: Term = _literal(1 / math.factorial(12 + first))
    for n in range(5, -1, -1):
        coefficient = (-1) ** n / math.factorial(2 * n + first)
        total = _plus(_times(total, _number(square)), _literal(coefficient))
    return total


def _number(name: str) -> Column:
    return Column(name, NUMBER)


def _literal(value: float) -> Literal:
    return Literal(value, NUMBER)


def _plus(one: Term, other: Term) -> Term:
    return Call("+", (one, other), NUMBER)


def _times(one: Term, other: Term) -> Term:
    return Call("*", (one, other), NUMBER)
