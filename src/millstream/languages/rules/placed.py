"""The types of distances and of being in an area."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.calculus.terms import Column, Literal, Term
from millstream.calculus.types import BOOLEAN, NUMBER
from millstream.errors import listing, suggest
from millstream.languages.rules import logic
from millstream.languages.rules.ast import Apply, Expression, Field, Word
from millstream.languages.rules.measured import GLOBE, INSIDE, PLANE, Measured
from millstream.languages.rules.pairs import OTHER
from millstream.languages.rules.typed import Quantity, Truthful, Typed, finite
from millstream.languages.rules.typed import quantity as quantity_of
from millstream.languages.rules.units import PLAIN, Unit, parse_unit

if TYPE_CHECKING:
    from millstream.languages.rules.check import Checker

#: What is asked of places, and what its second name may be.
PLACED = {"distance": "berth", "inside": "anchorage"}


@dataclass(frozen=True, slots=True)
class _Point:
    """Where something is: latitude and longitude in degrees, or two lengths of one unit."""

    is_on_globe: bool
    terms: tuple[Term, Term]
    unit: Unit


def placed(checker: Checker, apply: Apply) -> Typed | None:
    if checker.memory is None:
        checker.fail(f"{apply.operator} cannot be asked for here", apply.span,
                     "conditions of a domain are about one row")  # fmt: skip
        return None
    first, second = apply.args
    if apply.operator == "inside":
        return _inside(checker, first, second)
    if first == second:
        subject = checker.domain.subject
        checker.fail("there is no distance between a thing and itself", apply.span,
                     f"another {subject} is called other, inside a total: "
                     f"count(other where distance({subject}, other) <= 500 m)")  # fmt: skip
        return None
    points = [_point(checker, name) for name in (first, second)]
    here, there = points
    if here is None or there is None:
        return None
    if here.is_on_globe != there.is_on_globe or here.unit.factor != there.unit.factor:
        checker.fail(
            "one lies on the globe and the other on a plane, or in other units", apply.span
        )
        return None
    kind = GLOBE if here.is_on_globe else PLANE
    made = checker.memory.add(Measured("", kind, (*here.terms, *there.terms)), apply.operator)
    unit = parse_unit("m") if here.is_on_globe else here.unit
    return quantity_of(Column(made.column, NUMBER), unit)


def _inside(checker: Checker, name: Expression, area_name: Expression) -> Typed | None:
    assert checker.memory is not None and isinstance(area_name, Word)
    areas = checker.domain.areas
    if area_name.name not in areas:
        near = suggest(area_name.name, areas) or ""
        hint = f"there are: {listing(areas)}. {near}".strip() if areas else (
            f'say in the domain where it is: [area.{area_name.name}] wkt = "POLYGON ((...))"'
        )  # fmt: skip
        checker.fail(f'unknown area "{area_name.name}"', area_name.span, hint)
        return None
    point = _point(checker, name)
    if point is None:
        return None
    area = areas[area_name.name]
    # Areas are written x first, which on the globe is the longitude.
    terms = point.terms[::-1] if point.is_on_globe else point.terms
    made = checker.memory.add(Measured("", INSIDE, terms, area.edges), "inside")
    return Truthful(Column(made.column, BOOLEAN), logic.Fact(made.column))


def _point(checker: Checker, name: Expression) -> _Point | None:
    assert isinstance(name, Word)
    domain = checker.domain
    if name.name in domain.places:
        place = domain.places[name.name]
        one, other = (Literal(c, NUMBER) for c in place.coordinates)
        return _Point(place.is_on_globe, (one, other), place.unit)
    entity = name.name
    if checker.row is not None and entity == checker.row.word:
        entity = checker.row.entity
    if entity not in domain.entities:
        known = [*domain.entities, *domain.places]
        what = "an area" if name.name in domain.areas else "unknown"
        hint = f"there are: {listing(known, 20)}. {suggest(name.name, known) or ''}".strip()
        message = f'unknown name "{name.name}"'
        if what == "an area":
            message = f'"{name.name}" is an area, not a point'
            hint = f"ask whether it is there: inside(..., {name.name})"
        elif name.name == OTHER:
            hint = f"another {domain.subject} is called so inside a total: count(other where ...)"
        checker.fail(message, name.span, hint)
        return None
    columns = domain.entities[entity].columns
    for pair in (("latitude", "longitude"), ("x", "y")):
        if all(c in columns for c in pair):
            return _of_columns(checker, name, pair)
    checker.fail(f"it is not told where a {name.name} is", name.span,
                 "the domain must give it latitude and longitude, or x and y")  # fmt: skip
    return None


def _of_columns(checker: Checker, name: Word, pair: tuple[str, str]) -> _Point | None:
    fields = [checker.typed(Field(name.name, c, name.span)) for c in pair]
    is_on_globe = pair[0] == "latitude"
    terms: list[Term] = []
    unit = parse_unit("degrees") if is_on_globe else PLAIN
    for column, typed in zip(pair, fields, strict=True):
        if typed is None:
            return None
        wanted = "an angle in degrees" if is_on_globe else "a length or a plain number"
        if not isinstance(typed, Quantity):
            checker.fail(f"{name.name}.{column} must be {wanted}", name.span)
            return None
        if not is_on_globe and not terms:
            unit = typed.unit
        is_bare = is_on_globe and not typed.unit.dimension.powers
        if not is_bare and typed.unit.dimension != unit.dimension:
            checker.fail(f"{name.name}.{column} must be {wanted}, and is {typed.spoken}", name.span)
            return None
        terms.append(finite(typed.term if is_bare else typed.in_unit(unit).term))
    return _Point(is_on_globe, (terms[0], terms[1]), unit)
