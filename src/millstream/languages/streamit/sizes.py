"""Whole arrays that are assigned to each other must be of one size."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Code,
    Let,
    RecordOf,
    Shape,
    statements_in,
)
from millstream.calculus.terms import Place, Read, Term, walk
from millstream.source import Span

#: Two sizes that must be the same, and where.
Pair = tuple[Term, Term, Span | None]


def pairs_in(code: Code) -> tuple[Pair, ...]:
    """Sizes that only parameters can tell, of arrays that are assigned to each other."""
    parameters = {slot.name for slot in code.parameters}
    slots = [*code.parameters, *code.fields, *(s for r in code.routines for s in r.parameters)]
    statements = [s for body in code.bodies() for s in statements_in(body)]
    shapes = {slot.name: slot.shape for slot in slots}
    shapes |= {s.slot.name: s.slot.shape for s in statements if isinstance(s, Let)}
    made: list[Pair] = []
    for statement in statements:
        if isinstance(statement, Assign) and isinstance(statement.value, Place):
            sides = [_shape_at(place, shapes) for place in (statement.target, statement.value)]
            made += [
                (left, right, statement.span)
                for left, right in _sizes(*sides)
                if left != right and _read(left) | _read(right) <= parameters
            ]
    return tuple(made)


def _shape_at(place: Place, shapes: dict[str, Shape]) -> Shape | None:
    shape: Shape | None = shapes.get(place.variable)
    for step in place.path:
        match shape:
            case ArrayOf(element):
                shape = element
            case RecordOf() if isinstance(step, str):
                shape = shape.part(step)
            case _:
                return None
    return shape


def _sizes(left: Shape | None, right: Shape | None) -> Iterator[tuple[Term, Term]]:
    while isinstance(left, ArrayOf) and isinstance(right, ArrayOf):
        yield left.size, right.size
        left, right = left.element, right.element


def _read(term: Term) -> set[str]:
    return {node.place.variable for node in walk(term) if isinstance(node, Read)}
