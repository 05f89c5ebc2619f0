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


def located(
    wiring: RulesWiring, rows: Queue, key: str, entity: str, nearest: Nearest, name: str
) -> Queue:
    """The keys of an entity with its coordinates, such as `berth.x` and `berth.y`."""
    columns = {f"{entity}.{c}": f"{entity}.{c}" for c in nearest.by}
    flow = wiring.columns(rows, {key: key, **columns}, name)
    return _on_globe(wiring, flow, entity, nearest, name) if nearest.is_on_globe else flow


def distance(pairs: Queue, nearest: Nearest) -> Term:
    """The square of how far the points of a pair lie apart, in a straight line."""
    axes = ("x", "y", "z") if nearest.is_on_globe else nearest.by
    differences = [
        Call("-", (pairs.column(f"{nearest.to}.{a}"), pairs.column(f"{nearest.among}.{a}")), NUMBER)
        for a in axes
    ]
    return reduce(_plus, (_times(d, d) for d in differences))


def _on_globe(wiring: RulesWiring, flow: Queue, entity: str, nearest: Nearest, name: str) -> Queue:
    """Points on a ball of radius one: what is nearer on the globe is nearer in space.

    A step at a time, so that nothing is computed twice, and sines once for each point rather
    than for each pair. Longitudes are halved, because the series are good to a quarter turn.
    """
    latitude, longitude = (f"{entity}.{c}" for c in nearest.by)
    turned = Call("%", (_plus(_number(longitude), _literal(540.0)), _literal(360.0)), NUMBER)
    north, half = _number("north"), _number("half")
    cos, sin = _number("half_cos"), _number("half_sin")
    steps: tuple[dict[str, Term], ...] = (
        {"north": _times(_number(latitude), _literal(math.pi / 180)),
         "half": _times(_plus(turned, _literal(-180.0)), _literal(math.pi / 360))},
        {"north": north, "north2": _times(north, north), "half": half, "half2": _times(half, half)},
        {"flat": _series("north2", 0), f"{entity}.z": _times(north, _series("north2", 1)),
         "half_cos": _series("half2", 0), "half_sin": _times(half, _series("half2", 1))},
        {f"{entity}.x": _times(_number("flat"), _plus(
            _literal(1.0), _times(_literal(-2.0), _times(sin, sin)))),
         f"{entity}.y": _times(_number("flat"), _times(_literal(2.0), _times(sin, cos))),
         f"{entity}.z": _number(f"{entity}.z")},
    )  # fmt: skip
    key = Assign(flow.schema.names[0], flow.column(flow.schema.names[0]))
    for step in steps:
        columns = (Assign(column, term) for column, term in step.items())
        flow = wiring.add(Map((key, *columns)), flow, name=name)
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
