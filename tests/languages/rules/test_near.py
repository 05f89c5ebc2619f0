"""Totals over what is compared with a subject: others within a distance, and tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream
from millstream import rules
from millstream.calculus.types import Value
from millstream.engine.reference.feed import Event
from millstream.errors import CheckError, UsageError
from millstream.languages.rules.ast import written
from millstream.languages.rules.load import check_text, translated
from millstream.optimiser.optimise import optimise
from millstream.source import Source
from tests.languages.rules.test_totals import latest, port_statuses, vessel
from tests.laws.runs import Rows, on_local, on_reference

HERE = str(Path(__file__).parent / "generated.rules")
END = 8
Row = dict[str, Any]


def apart(one: Row, other: Row) -> Any:
    places = [one["x"], one["y"], other["x"], other["y"]]
    return None if None in places else math.hypot(places[0] - places[2], places[1] - places[3])


def between(one: float | None, two: float | None, tell: Callable[[Any, Any], Any]) -> Any:
    return None if one is None or two is None else tell(one, two)


def is_more(one: Row, other: Row) -> Any:
    return between(other["load"], one["load"], lambda a, b: a > b)


def is_reached(one: Row, crane: Row) -> Any:
    return between(apart(one, crane), crane["reach"], lambda a, b: a <= b)


Test = Callable[[Row, Row], Any]
#: As written; of which rows; by which column too; whether it is placed; what must hold; what.
ASKED: dict[str, tuple[str, str | None, bool, Test, Test | None]] = {
    "count(other where distance(ship, other) <= 500 m)":
        ("ships", None, True, lambda a, b: apart(a, b) <= 500, None),
    "count(other where 0.5 km > distance(other, ship))":
        ("ships", None, True, lambda a, b: apart(a, b) < 500, None),
    "count(other by ship.quay where distance(ship, other) <= 500 m)":
        ("ships", "quay", True, lambda a, b: apart(a, b) <= 500, None),
    "count(other where other.quay == ship.quay and other.load > ship.load)":
        ("ships", "quay", False, is_more, None),
    "count(crane where distance(crane, ship) <= crane.reach)":
        ("cranes", None, True, is_reached, None),
    "count(crane where distance(crane, ship) < 1 m)":
        ("cranes", None, True, lambda a, b: apart(a, b) < 1, None),
    "min(distance(ship, other))": ("ships", None, True, lambda _a, _b: True, apart),
    "max(distance(ship, crane) where distance(ship, crane) <= 1200 m)":
        ("cranes", None, True, lambda a, b: apart(a, b) <= 1200, apart),
    "sum(other.load where distance(ship, other) <= 800 m)":
        ("ships", None, True, lambda a, b: apart(a, b) <= 800, lambda _a, b: b["load"]),
}  # fmt: skip


def told(text: str, ship: Row, rows: list[Row]) -> float | None:
    """The total by its definition."""
    _, by, is_placed, holds, value = ASKED[text]
    if (is_placed and None in (ship["x"], ship["y"])) or (by and ship[by] is None):
        return None
    near = [r for r in rows if r is not ship and not (is_placed and None in (r["x"], r["y"]))]
    near = [r for r in near if by is None or r[by] == ship[by]]
    met = [(holds(ship, r), r) for r in near]
    if any(m is None for m, _ in met):
        return None
    chosen = [r for m, r in met if m]
    if value is None:
        return len(chosen)
    values = [value(ship, r) for r in chosen]
    if None in values:
        return None
    functions: dict[str, Callable[..., float]] = {"sum": sum, "min": min, "max": max}
    function = functions[text[:3]]
    return function(values) if values or function is sum else None


PLACES = (0.0, 300.0, 400.0, 500.0, 1000.0, 1500.0, -200.0, 1e17, None)
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "id": st.sampled_from((1, 2, 3)),
    "crane": st.sampled_from(("a", "b")),
    "x": st.sampled_from(PLACES),
    "y": st.sampled_from((0.0, 0.0, 300.0, 400.0, None)),
    "quay": st.sampled_from(("n", "n", "s", None)),
    "load": st.sampled_from((1.0, 2.0, 2.0, None)),
    "reach": st.sampled_from((0.0, 500.0, 1000.0, None)),
    "gone": st.sampled_from((False, False, False, True)),
}


@st.composite
def events(draw: st.DrawFn, names: tuple[str, ...]) -> list[Event]:
    times = sorted(draw(st.lists(st.integers(0, END - 1), min_size=1, max_size=7)))
    rows = [Event(t, tuple(draw(VALUES[n]) for n in names)) for t in times]
    return [*rows, Event(END, rows[-1].row)]


def agree(data: st.DataObject, text: str, run: Callable[..., tuple[dict[str, Rows], Any]]) -> None:
    of, _, _, _, value = ASKED[text]
    bound = "1" if value is None else "2 t" if text.startswith("sum") else "450 m"
    checked = check_text(Source(HERE, f'domain "harbour.toml"\nrequire {text} <= {bound}\n'))
    program = optimise(translated(checked).program)
    names = {i.name: i.type.schema.names for i in program.inputs}
    inputs = {name: data.draw(events(columns)) for name, columns in names.items()}
    found, _ = run(program, inputs)
    shown: dict[Value, str] = {}
    nothing = dict.fromkeys(VALUES)
    for instant in range(END + 1):
        changes = [(weight, row) for time, weight, row in found["status"] if time == instant]
        for weight, row in sorted(changes, key=lambda change: change[0]):
            shown.pop(row[0], None)
            if weight > 0:
                shown[row[0]] = str(row[1])
        rows = {
            name: {k: nothing | row for k, row in latest(given, names[name], instant).items()}
            for name, given in inputs.items()
        }
        ships = {key: ship for key, ship in rows["ships"].items() if not ship["gone"]}
        others = list((ships if of == "ships" else rows[of]).values())
        expected: dict[Value, str] = {}
        for key, ship in ships.items():
            total = told(text, ship, others)
            most = float(bound.partition(" ")[0])
            expected[key] = (
                "undecided" if total is None else "allowed" if total <= most else "restricted"
            )
        assert expected == shown, (instant, text)


SETTINGS = settings(deadline=None, derandomize=True, database=None)


@settings(SETTINGS, max_examples=6)
@given(st.data())
@pytest.mark.parametrize("text", ASKED)
def test_what_is_near_means_what_it_says(text: str, data: st.DataObject) -> None:
    agree(data, text, on_reference)


@settings(SETTINGS, max_examples=2)
@given(st.data(), st.lists(st.integers(0, 8), max_size=3))
@pytest.mark.parametrize("text", [*ASKED][::3])
def test_the_local_engine_finds_the_same(text: str, data: st.DataObject, cuts: list[int]) -> None:
    agree(data, text, lambda program, given: on_local(program, given, cuts))


# --- on the globe -----------------------------------------------------------------------


def great_circle(one: Row, other: Row) -> float:
    a, b = (math.radians(r["latitude"]) for r in (one, other))
    half = math.radians(one["longitude"] - other["longitude"]) / 2
    part = math.sin((a - b) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(half) ** 2
    return 2 * 6_371_008.8 * math.asin(math.sqrt(min(part, 1.0)))


def test_what_is_near_on_the_globe_has_no_edge() -> None:
    places = [(51.95, 4.1), (51.953, 4.1), (51.95, 4.105), (0.0, 179.999), (0.001, -179.999),
              (0.0, 180.0), (89.999, 10.0), (89.999, -170.0), (-89.9, 0.0), (-60.0, 120.0),
              ]  # fmt: skip
    ships = [vessel(n, latitude=a, longitude=b) for n, (a, b) in enumerate(places)]
    reaches = {"400 m": 400, "30 nmi": 30 * 1852, "9000 km": 9_000_000}
    asked = {reach: f"count(other where distance(vessel, other) <= {reach})" for reach in reaches}
    text = "".join(f"require {near} == 99\n" for near in asked.values())
    found = port_statuses(text, vessels=ships)
    for ship in ships:
        for reach, near in asked.items():
            others = [o for o in ships if great_circle(ship, o) <= reaches[reach]]
            assert f"{near} = {len(others) - 1}" in found[ship["mmsi"]][1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("require count(vessel where distance(vessel, other) < 1 km) < 3", "asks about others"),
        ("require count(vessel where distance(vessel, vessel) < 1 km) < 3", "a thing and itself"),
        ("require distance(vessel, other) < 1 km", 'unknown name "other"'),
        ("require other.length < 3 m", 'unknown entity "other"'),
        ("require count(other where other.lenght < 3 m) < 3", 'vessel has no "lenght"'),
        ("require count(other where distance(vessel, other) < 3) < 3", "a length with a plain"),
        ("require count(other where distance(vessel, other) < 1 km for 1 min) < 3",
         "inside a total only this moment"),
        ("require count(other where count(vessel) > 2) < 3", "cannot stand inside another"),
        ("require count(sensor where distance(sensor, other) < 1 km) < 3", 'unknown name "other"'),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_others_is_said(text: str, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        millstream.compile(text=text + "\n", language="rules")


def test_no_entity_is_called_other(tmp_path: Path) -> None:
    (tmp_path / "d.toml").write_text(
        'extends = "port"\n[entity.other]\ninput = "o"\nkey = "id"\ncolumns = { id = "text" }\n'
    )
    with pytest.raises((CheckError, UsageError), match='no entity can be called "other"'):
        rules.domain(tmp_path / "d.toml")


def test_python_asks_for_others_too() -> None:
    port = rules.domain("port")
    m = rules.unit("m")
    is_near = rules.distance(port.vessel, port.other) <= 500 * m
    near = rules.count(port.other, where=is_near & (port.other.length > 90 * m))
    text = "count(other where distance(vessel, other) <= 500 m and other.length > 90 m)"
    assert text == written(near.node)
    assert port.rules(rules.require(near == 0)).compile() is not None
