"""Rules straight from their definition: whole tables at each instant, exact numbers.

Written for the toy domain only, and sharing nothing with the translation but the tree.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from millstream.engine.reference.feed import Event
from millstream.languages.rules.ast import (
    Apply,
    Expression,
    Field,
    Location,
    Named,
    Number,
    Require,
    Rules,
    Statement,
    Text,
    Truth,
    When,
    Word,
)

Row = dict[str, Any]
Tables = dict[str, list[Row]]
#: How many base units there are in a unit.
FACTORS = {"": Fraction(1), "m": Fraction(1), "km": Fraction(1000), "knots": Fraction(1852, 3600)}
UNITS = {"draught": "m", "length": "km", "depth": "m", "x": "m", "y": "m", "height": "m",
         "velocity": "knots"}  # fmt: skip
KEYS = {"vessels": ("id",), "berths": ("name",), "sensors": ("sensor",), "tugs": (),
        "winds": ("sensor",), "tides": ("sensor", "valid")}  # fmt: skip
LASTS = 8
MEMBERS = ("Barge", "Tanker", "Air", "Water")
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "+": operator.add, "-": operator.sub,
    "*": operator.mul,
}  # fmt: skip

Verdict = tuple[str, str]


def tables_at(events: Mapping[str, list[Event]], names: Mapping[str, Any], time: int) -> Tables:
    """The latest row of each key, of all that has come up to a time."""
    found: Tables = {}
    for input_, columns in names.items():
        latest: dict[tuple[Any, ...], Row] = {}
        for event in events[input_]:
            if event.time <= time:
                row = {c: known(c, v) for c, v in zip(columns, event.row, strict=True)}
                key = tuple(row[k] for k in KEYS[input_])
                if None not in key:
                    latest[key] = row
        found[input_] = list(latest.values())
    return found


def known(column: str, value: Any) -> Any:
    """A value, or None if it says nothing: no number, or none of the members."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if column == "kind" and value not in MEMBERS else value


def facts_of(vessel: Row, tables: Tables) -> dict[str, Row | None]:
    """Everything that a rule may ask about a vessel; None where there is no row."""
    berth = _one(tables.get("berths", []), name=vessel.get("destination"))
    tugs = next(iter(tables.get("tugs", [])), None)
    wind = _one(tables.get("winds", []), sensor=_nearest(berth, tables, "Air"))
    sensor = _nearest(berth, tables, "Water")
    valid = [
        row
        for row in tables.get("tides", [])
        if sensor is not None and row["sensor"] == sensor
        and None not in (vessel.get("eta"), row["valid"])
        and row["valid"] <= vessel["eta"] <= row["valid"] + LASTS
    ]  # fmt: skip
    tide = max(valid, key=lambda row: row["valid"], default=None)
    return {"vessel": vessel, "berth": berth, "tugs": tugs, "wind": wind, "tide": tide}


def _one(rows: Iterable[Row], **wanted: Any) -> Row | None:
    ((column, value),) = wanted.items()
    if value is None:
        return None
    return next((row for row in rows if row[column] == value), None)


def _nearest(berth: Row | None, tables: Tables, kind: str) -> str | None:
    if berth is None or None in (berth.get("x"), berth.get("y")):
        return None
    near = [
        ((berth["x"] - s["x"]) ** 2 + (berth["y"] - s["y"]) ** 2, s["sensor"])
        for s in tables.get("sensors", [])
        if s["kind"] == kind and None not in (s["x"], s["y"], s["sensor"])
    ]
    return min(near)[1] if near else None


def value(expression: Expression, facts: Mapping[str, Row | None]) -> Any:
    """A number in base units, a text, a truth, or None if it is not known."""
    match expression:
        case Number(number, unit):
            return number * FACTORS[unit]
        case Text(plain) | Truth(plain) | Word(plain):
            return plain
        case Named(_, inner):
            return value(inner, facts)
        case Field(entity, name):
            row = facts[entity]
            # A column that only dropped requirements read is not there, and decides nothing.
            found = None if row is None else row.get(name)
            if found is None or isinstance(found, (str, bool)):
                return found
            return Fraction(found) * FACTORS[UNITS.get(name, "")]
        case Apply("not", (inner,)):
            found = value(inner, facts)
            return None if found is None else not found
        case Apply("neg", (inner,)):
            found = value(inner, facts)
            return None if found is None else -found
        case Apply("abs", (inner,)):
            found = value(inner, facts)
            return None if found is None else abs(found)
        case Apply("and", (left, right)):
            both = [value(left, facts), value(right, facts)]
            return False if False in both else None if None in both else True
        case Apply("or", (left, right)):
            both = [value(left, facts), value(right, facts)]
            return True if True in both else None if None in both else False
        case Apply(name, (left, right)):
            one, other = value(left, facts), value(right, facts)
            return None if None in (one, other) else COMPARE[name](one, other)
        case _:
            raise AssertionError(expression)


def outcomes(
    statements: tuple[Statement, ...], facts: Mapping[str, Row | None], applies: Any = True
) -> Iterable[tuple[str, Any]]:
    """The line of each requirement, and whether it is met: table 2.2's implications."""
    for one in statements:
        match one:
            case Require(condition, _, span):
                assert span is not None
                line = str(span.source.line_and_column(span.start)[0])
                holds = value(condition, facts)
                # applies => holds
                met = True if applies is False or holds is True else None
                yield line, holds if applies is True else met
            case When(condition, body):
                yield from outcomes(body, facts, _both(applies, value(condition, facts)))
            case Location(names, body):
                berth = facts["berth"]
                basin = value(Field("berth", "basin"), facts)
                if basin is None and berth is not None and berth.get("name") is not None:
                    basin = "none"  # a berth that names no basin is in none
                here = [value(Field("vessel", "destination"), facts), basin]
                is_here = [None if h is None else h == n.value for n in names for h in here]
                found = True if True in is_here else None if None in is_here else False
                yield from outcomes(body, facts, _both(applies, found))


def _both(one: Any, other: Any) -> Any:
    return False if False in (one, other) else None if None in (one, other) else True


def verdicts(rules: Rules, tables: Tables, kept: frozenset[str]) -> dict[Any, Verdict]:
    """Each vessel that is there: its status, and the lines that fail of those that are kept."""
    found: dict[Any, Verdict] = {}
    for vessel in tables.get("vessels", []):
        if vessel.get("gone") is True:
            continue
        all_ = list(outcomes(rules.statements, facts_of(vessel, tables)))
        failed = [line for line, met in all_ if met is False]
        status = "restricted" if failed else "allowed"
        if not failed and any(met is None for _, met in all_):
            status = "undecided"
        told = ", ".join(dict.fromkeys(line for line in failed if line in kept))
        found[vessel["id"]] = (status, told)
    return found


def warnings(
    before: Mapping[Any, Verdict], after: Mapping[Any, Verdict]
) -> set[tuple[Any, str, str]]:
    """What is to be said when one set of verdicts follows another."""
    said: set[tuple[Any, str, str]] = set()
    for key, (status, failed) in after.items():
        was, had = before.get(key, (None, None))
        if status == "restricted":
            word = "restricted" if was != "restricted" else "reason changed"
            if was != "restricted" or had != failed:
                said.add((key, word, failed))
        elif status != was:
            is_lifted = status == "allowed" and was is not None
            said.add((key, "lifted" if is_lifted else status, failed))
    return said
