"""Totals over related things: each beside its definition, at every instant."""

from __future__ import annotations

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
from millstream.errors import CheckError, MillstreamError, ParseError
from millstream.languages.rules.ast import Field, Require, Total, written
from millstream.languages.rules.load import check_text, translated
from millstream.languages.rules.read import read_rules
from millstream.optimiser.optimise import optimise
from millstream.source import Source
from tests.laws.runs import Rows, on_local, on_reference

HERE = str(Path(__file__).parent / "generated.rules")
END = 12
Row = dict[str, Any]


# --- the definition ---------------------------------------------------------------------


def total_of(one: Total, ship: Row, rows: list[Row]) -> Any:
    """A total for a ship, from all rows that there are."""
    is_own = one.entity == "ship" or (isinstance(one.value, Field) and one.value.entity == "ship")
    links = [("quay", "quay")] if one.by else []
    where = "" if one.where is None else written(one.where)
    if not is_own and "crane.quay == ship.quay" in where:
        links.append(("quay", "quay"))
    if any(ship[fact] is None for _, fact in links):
        return None
    related = [row for row in rows if all(row[column] == ship[fact] for column, fact in links)]
    answers: list[tuple[bool | None, Row]] = []
    for row in related:
        holds: list[bool | None] = [True]
        if "ship.kind == Tank" in where:
            holds.append(None if row["kind"] is None else row["kind"] == "Tank")
        if "ship.load > 1 t" in where:
            holds.append(None if row["load"] is None else row["load"] > 1)
        if "crane.works" in where:
            holds.append(row["works"])
        answers.append((False if False in holds else None if None in holds else True, row))
    if any(holds is None for holds, _ in answers):
        return None
    chosen = [row for holds, row in answers if holds]
    if one.function == "count":
        return len(chosen)
    assert isinstance(one.value, Field)
    values = [row[one.value.name] for row in chosen]
    if None in values:
        return None
    if one.function == "sum":
        return sum(values)
    made: dict[str, Callable[[list[float]], float]] = {
        "min": min, "max": max, "mean": lambda all_: sum(all_) / len(all_)
    }  # fmt: skip
    return made[one.function](values) if values else None


def latest(events: list[Event], names: tuple[str, ...], time: int) -> dict[Value, Row]:
    """The last row of each key, of all that has come up to a time."""
    found: dict[Value, Row] = {}
    for event in events:
        if event.time <= time:
            row = dict.fromkeys(("kind", "load", "quay", "works", "reach"), None)
            found[event.row[0]] = row | dict(zip(names, event.row, strict=True))
    return found


# --- generated ones ---------------------------------------------------------------------


@st.composite
def totals(draw: st.DrawFn) -> str:
    function = draw(st.sampled_from(("count", "sum", "min", "max", "mean")))
    entity = draw(st.sampled_from(("ship", "crane")))
    value = {"ship": "ship.load", "crane": "crane.reach"}[entity]
    by = " by ship.quay" if entity == "ship" and draw(st.booleans()) else ""
    known = {"ship": ("ship.kind == Tank", "ship.load > 1 t"),
             "crane": ("crane.quay == ship.quay", "crane.works")}[entity]  # fmt: skip
    where = " and ".join(draw(st.lists(st.sampled_from(known), unique=True, max_size=2)))
    asked = entity if function == "count" else value
    return f"{function}({asked}{by}{' where ' + where if where else ''})"


VALUES: dict[str, st.SearchStrategy[Value]] = {
    "id": st.sampled_from((1, 2, 3)),
    "crane": st.sampled_from(("x", "y", "z")),
    "quay": st.sampled_from(("a", "b", None)),
    "kind": st.sampled_from(("Tank", "Tank", "Dry", None)),
    "load": st.sampled_from((0.0, 1.0, 2.0, 2.0, None)),
    "reach": st.sampled_from((0.0, 1.0, 2.0, None)),
    "works": st.sampled_from((True, True, False, None)),
    "gone": st.sampled_from((False, False, True)),
}


@st.composite
def events(draw: st.DrawFn, names: tuple[str, ...]) -> list[Event]:
    times = sorted(draw(st.lists(st.integers(0, END - 1), min_size=1, max_size=7)))
    rows = [Event(t, tuple(draw(VALUES[n]) for n in names)) for t in times]
    # The end of time is that of the last row: one that says nothing new.
    return [*rows, Event(END, rows[-1].row)]


def agree(data: st.DataObject, text: str, run: Callable[..., tuple[dict[str, Rows], Any]]) -> None:
    unit = " t" if "load" in text.partition(" ")[0] else ""
    unit = " m" if "reach" in text else unit
    source = Source(HERE, f'domain "quay.toml"\nrequire {text} <= 2{unit}\n')
    checked = check_text(source)
    program = optimise(translated(checked).program)
    given_rows = {i.name: data.draw(events(i.type.schema.names)) for i in program.inputs}
    names = {i.name: i.type.schema.names for i in program.inputs}
    (statement,) = read_rules(source, [], checked.domain.names).rules.statements
    assert isinstance(statement, Require)
    total = statement.condition.args[0]  # type: ignore[union-attr]
    assert isinstance(total, Total)
    found, _ = run(program, given_rows)
    shown: dict[Value, str] = {}
    for instant in range(END + 1):
        changes = [(weight, row) for time, weight, row in found["status"] if time == instant]
        for weight, row in sorted(changes, key=lambda change: change[0]):
            shown.pop(row[0], None)
            if weight > 0:
                shown[row[0]] = str(row[1])
        ships = {k: s for k, s in latest(given_rows["ships"], names["ships"], instant).items()
                 if not s["gone"]}  # fmt: skip
        cranes = list(
            latest(given_rows.get("cranes", []), names.get("cranes", ()), instant).values()
        )
        rows = cranes if "crane" in text else list(ships.values())
        expected: dict[Value, str] = {}
        for key, ship in ships.items():
            value = total_of(total, ship, rows)
            met = "undecided" if value is None else "allowed" if value <= 2 else "restricted"
            expected[key] = met
        assert expected == shown, (instant, text)


SETTINGS = settings(deadline=None, derandomize=True, database=None)


@settings(SETTINGS, max_examples=30)
@given(st.data(), totals())
def test_totals_mean_what_they_say(data: st.DataObject, text: str) -> None:
    agree(data, text, on_reference)


@settings(SETTINGS, max_examples=4)
@given(st.data(), totals(), st.lists(st.integers(0, 8), max_size=3))
def test_the_local_engine_totals_alike(data: st.DataObject, text: str, cuts: list[int]) -> None:
    agree(data, text, lambda program, given: on_local(program, given, cuts))


# --- as people write them ---------------------------------------------------------------


def port_statuses(text: str, **inputs: list[dict[str, Value]]) -> dict[Value, tuple[str, str]]:
    """The last status and reasons of each vessel."""
    job = millstream.compile(text=text, language="rules")
    wanted = set(job.program.input_names)
    given = {name: rows for name, rows in inputs.items() if name in wanted}
    found: dict[Value, tuple[str, str]] = {}
    for row in job.run(given, engine="local").rows("status"):
        if row["_weight"] == 1:
            found[row["mmsi"]] = (str(row["status"]), str(row["reasons"]))
    return found


def vessel(mmsi: int, **values: Value) -> dict[str, Value]:
    row: dict[str, Value] = {"_time": mmsi, "mmsi": mmsi, "name": "N", "departed": False,
                             "destination": "A"}  # fmt: skip
    return row | values


BERTHS: list[dict[str, Value]] = [
    {"_time": 0, "name": "A", "basin": "north"}, {"_time": 0, "name": "B", "basin": "north"},
    {"_time": 0, "name": "C", "basin": "south"},
]  # fmt: skip


def test_vessels_in_the_basin_are_counted_and_told() -> None:
    found = port_statuses(
        "tankers = count(vessel by berth.basin where vessel.type == Chemical)\n"
        'require tankers <= 1 else "one chemical tanker in a basin"\n',
        vessels=[vessel(1, type="Chemical"), vessel(2, type="Chemical", destination="B"),
                 vessel(3, type="Chemical", destination="C")],
        berths=BERTHS,
    )  # fmt: skip
    told = "line 2: one chemical tanker in a basin: tankers <= 1, but tankers = 2"
    assert ["restricted", "restricted", "allowed"] == [found[n][0] for n in (1, 2, 3)]
    assert found[1][1].startswith(told)


def test_a_sum_has_the_unit_of_what_is_summed() -> None:
    found = port_statuses(
        "require sum(vessel.length by vessel.destination) <= 0.3 km\n",
        vessels=[vessel(1, length=200.0), vessel(2, length=150.0)],
    )
    told = (
        "line 1: sum(vessel.length by vessel.destination) <= 0.3 km, but "
        "sum(vessel.length by vessel.destination) = 350 m, vessel.destination = A"
    )
    assert ("restricted", told) == found[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("require count(vesel) < 3", 'unknown entity "vesel"'),
        ("require count(vessel by vessel.draught) < 3", "vessel.draught is measured"),
        ("require sum(vessel.name) < 3", "sum needs numbers, but this is a text"),
        ("require sum(vessel.length) < 3", "cannot compare a length with a plain number"),
        ("require count(berth by vessel.destination) < 3", "is no column of a berth"),
        ("require count(sensor by sensor.kind) < 3", "a vessel has no sensor of its own"),
        ("require count(sensor where sensor.sensor == vessel.mmsi) < 3", "cannot compare a text"),
        ("require sensor.latitude < 3 degrees", "a vessel has no sensor of its own"),
    ],
)  # fmt: skip
def test_what_cannot_be_related_is_said(text: str, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        millstream.compile(text=text + "\n", language="rules")


@pytest.mark.parametrize(
    "text",
    ["count(", "count(vessel", "count(vessel.length) < 3", "sum(vessel.length by 3) < 3 m",
     "sum(by berth.basin)"],
)  # fmt: skip
def test_what_is_no_total_is_said(text: str) -> None:
    with pytest.raises(ParseError) as error:
        millstream.compile(text=f"require {text}\n", language="rules")
    assert isinstance(error.value, MillstreamError)


def test_python_has_the_same_totals() -> None:
    port = rules.domain("port")
    made = {
        "count(vessel by berth.basin where vessel.type == Chemical)":
            rules.count(port.vessel, by=port.berth.basin, where=port.vessel.type == port.Chemical),
        "max(sensor.latitude)": rules.total("max", port.sensor.latitude),
        "distance(vessel, berth)": rules.distance(port.vessel, port.berth),
        "inside(vessel, roads)": rules.inside(port.vessel, "roads"),
    }  # fmt: skip
    assert list(made) == [written(value.node) for value in made.values()]
