"""Distances, and whether a point lies in an area, as columns beside the facts of a subject.

On the globe a distance is along a great circle of a ball of the earth's mean radius, which is
right to half a percent. An area is what its outline encloses, with straight edges between
coordinates, as GeoJSON has it; of two areas that share an edge a point on it is in one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

from millstream.calculus.functions import Assign, Map
from millstream.calculus.terms import Call, Column, Literal, Term, columns_read
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER
from millstream.calculus.wiring import Queue
from millstream.languages.rules.wiring import RulesWiring

#: The mean radius of the earth, in metres.
RADIUS = 6_371_008.8
GLOBE, PLANE, INSIDE = "globe", "plane", "inside"

#: From one corner to the next: x, y, x, y.
Edge = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """What is computed of the coordinates of one point or two.

    Points of the globe are latitude and longitude in degrees, and those of a plane have one
    unit. `edges` are the outline that a point may lie inside of.
    """

    column: str
    kind: str
    terms: tuple[Term, ...]
    edges: tuple[Edge, ...] = ()

    def made(self) -> frozenset[str]:
        return frozenset({self.column})

    def reads(self) -> frozenset[str]:
        return frozenset[str]().union(*map(columns_read, self.terms))


def add_measure(
    wiring: RulesWiring, facts: Queue, measured: Measured, keep: frozenset[str]
) -> Queue:
    """The facts with one more column; of the others those in `keep` stay.

    A step at a time, so that nothing is computed twice.
    """
    name = measured.column.replace(" ", "_")
    others = [n for n in facts.schema.names if n in keep]
    steps = list(_steps(measured))
    for number, step in enumerate(steps):
        later = frozenset[str]().union(
            *(columns_read(t) for other in steps[number + 1 :] for t in other.values())
        )
        stay = [n for n in facts.schema.names if n in later and n not in (*others, *step)]
        kept = [Assign(n, facts.column(n)) for n in (*others, *stay)]
        made = [Assign(n, t) for n, t in step.items()]
        facts = wiring.add(Map((*kept, *made)), facts, name=name)
    return facts


def _steps(measured: Measured) -> Iterator[dict[str, Term]]:
    match measured.kind:
        case "globe":
            yield from _great_circle(measured)
        case "plane":
            x, y, other_x, other_y = measured.terms
            squares = [_times(d, d) for d in (_minus(x, other_x), _minus(y, other_y))]
            yield {measured.column: Call("sqrt", (_plus(*squares),), NUMBER)}
        case _:
            yield {measured.column: _enclosed(measured)}


def _great_circle(measured: Measured) -> Iterator[dict[str, Term]]:
    """The haversine; all angles are at most a quarter turn, where the series are exact."""
    north, east, other_north, other_east = measured.terms

    def column(word: str) -> Column:
        return Column(f"{measured.column} {word}", NUMBER)

    def named(**terms: Term) -> dict[str, Term]:
        return {f"{measured.column} {word}": term for word, term in terms.items()}

    turned = Call("%", (_plus(_minus(east, other_east), _literal(900.0)), _literal(360.0)), NUMBER)
    # A longitude is turned to within half a turn, however often it goes around.
    halves = {"up": _minus(north, other_north), "along": _minus(turned, _literal(180.0))}
    yield named(
        **{word: _times(term, _literal(math.pi / 360)) for word, term in halves.items()},
        here=_times(north, _literal(math.pi / 180)),
        there=_times(other_north, _literal(math.pi / 180)),
    )
    yield named(**{f"{w}2": _times(column(w), column(w)) for w in ("up", "along", "here", "there")})
    yield named(
        up=_times(column("up"), _series(column("up2"), 1)),
        along=_times(column("along"), _series(column("along2"), 1)),
        flat=_times(_series(column("here2"), 0), _series(column("there2"), 0)),
    )
    along = _times(column("along"), column("along"))
    part = _plus(_times(column("up"), column("up")), _times(column("flat"), along))
    yield named(part=part)
    root = Call("sqrt", (_least(column("part"), 1.0),), NUMBER)
    yield named(root=root)
    # Beyond a sixth of a turn the angle that is left to a quarter is taken, and doubled.
    is_near = Call("<=", (column("root"), _literal(0.5)), BOOLEAN)
    rest = _times(_minus(_literal(1.0), column("root")), _literal(0.5))
    square = Call("if", (is_near, _times(column("root"), column("root")), rest), NUMBER)
    yield named(near=is_near, square=square)
    angle = _times(Call("sqrt", (column("square"),), NUMBER), _arc(column("square")))
    yield named(angle=angle)
    far = _minus(_literal(math.pi / 2), _times(_literal(2.0), column("angle")))
    chosen = Call("if", (Column(f"{measured.column} near", BOOLEAN), column("angle"), far), NUMBER)
    yield {measured.column: _times(chosen, _literal(2 * RADIUS))}


def _series(square: Term, first: int) -> Term:
    """The cosine of an angle, or its sine by the angle, from its square; alike on all engines."""
    total: Term = _literal(0.0)
    for n in range(13, -1, -1):
        coefficient = (-1) ** n / math.factorial(2 * n + first)
        total = _plus(_times(total, square), _literal(coefficient))
    return total


def _arc(square: Term) -> Term:
    """The angle by its sine, from the square of the sine, which is at most a quarter."""
    total: Term = _literal(0.0)
    for n in range(24, -1, -1):
        coefficient = math.comb(2 * n, n) / (4**n * (2 * n + 1))
        total = _plus(_times(total, square), _literal(coefficient))
    return total


def _enclosed(measured: Measured) -> Term:
    """Whether a line to the right crosses the outline an odd number of times.

    Outside of the box around it nothing is counted.
    """
    x, y = measured.terms
    crossings = reduce(
        lambda a, b: Call("+", (a, b), INTEGER), (_crossed(x, y, edge) for edge in measured.edges)
    )
    is_odd = Call("==", (Call("%", (crossings, Literal(2, INTEGER)), INTEGER),
                         Literal(1, INTEGER)), BOOLEAN)  # fmt: skip
    xs = [x for edge in measured.edges for x in edge[::2]]
    ys = [y for edge in measured.edges for y in edge[1::2]]
    bounds = (("<", x, min(xs)), (">", x, max(xs)), ("<", y, min(ys)), (">", y, max(ys)))
    tests = [Call(relation, (side, _literal(bound)), BOOLEAN) for relation, side, bound in bounds]
    is_outside = reduce(lambda a, b: Call("or", (a, b), BOOLEAN), tests)
    inside = Call("if", (is_outside, Literal(False, BOOLEAN), is_odd), BOOLEAN)
    is_unknown = Call("is_null", (_plus(x, y),), BOOLEAN)
    return Call("if", (is_unknown, Literal(None, BOOLEAN), inside), BOOLEAN)


def _crossed(x: Term, y: Term, edge: Edge) -> Term:
    """1 where a line to the right from a point crosses an edge, whose lower end is part of it."""
    (low_x, low_y), (high_x, high_y) = sorted((edge[:2], edge[2:]), key=lambda end: end[1])
    slope = (high_x - low_x) / (high_y - low_y)
    at = _plus(_times(_minus(y, _literal(low_y)), _literal(slope)), _literal(low_x))
    tests = (Call(">=", (y, _literal(low_y)), BOOLEAN), Call("<", (y, _literal(high_y)), BOOLEAN),
             Call("<", (x, at), BOOLEAN))  # fmt: skip
    is_crossed = reduce(lambda a, b: Call("and", (a, b), BOOLEAN), tests)
    return Call("if", (is_crossed, Literal(1, INTEGER), Literal(0, INTEGER)), INTEGER)


def _least(one: Term, most: float) -> Term:
    is_less = Call("<=", (one, _literal(most)), BOOLEAN)
    return Call("if", (is_less, one, _literal(most)), NUMBER)


def _literal(value: float) -> Literal:
    return Literal(value, NUMBER)


def _plus(one: Term, other: Term) -> Term:
    return Call("+", (one, other), NUMBER)


def _minus(one: Term, other: Term) -> Term:
    return Call("-", (one, other), NUMBER)


def _times(one: Term, other: Term) -> Term:
    return Call("*", (one, other), NUMBER)
