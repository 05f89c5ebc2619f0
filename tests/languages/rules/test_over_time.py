"""What has lasted, was, or was lately: each condition beside its definition, at every instant."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import millstream
from millstream.calculus.types import Value
from millstream.engine.reference.feed import Event
from millstream.errors import CheckError
from millstream.languages.rules import embedded
from millstream.languages.rules.ast import Apply, Expression, Field, Number, written
from millstream.languages.rules.load import check_text, translated
from millstream.languages.rules.read import read_rules
from millstream.optimiser.optimise import optimise
from millstream.source import Source
from tests.laws.runs import Rows, on_local, on_reference

#: The file need not exist: only its folder matters, where the toy domain is.
HERE = str(Path(__file__).parent / "generated.rules")
END = 24
Truth = bool | None
#: What is known of a vessel at each instant; nothing where there is none.
History = list[dict[str, Value] | None]


# --- the definition ---------------------------------------------------------------------


def both(one: Truth, other: Truth) -> Truth:
    return False if False in (one, other) else None if None in (one, other) else True


def either(one: Truth, other: Truth) -> Truth:
    return True if True in (one, other) else None if None in (one, other) else False


def opposite(one: Truth) -> Truth:
    return None if one is None else not one


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def value_at(one: Expression, facts: History, now: int) -> Any:
    """What an expression is at an instant, given what was known at all of them."""
    row = facts[now] if now >= 0 else None
    match one:
        case Number(value):
            return float(value)
        case Field(_, name):
            return None if row is None else row[name]
        case Apply("not", (inside,)):
            return opposite(value_at(inside, facts, now))
        case Apply("and" | "or" as word, (left, right)):
            join = both if word == "and" else either
            return join(value_at(left, facts, now), value_at(right, facts, now))
        case Apply("before", (inside, Number(length))):
            return value_at(inside, facts, now - int(length))
        case Apply("for" | "within" as word, (inside, Number(length))):
            result: Truth = word == "for"
            for instant in range(now - int(length), now + 1):
                is_there = instant >= 0 and facts[instant] is not None
                truth = value_at(inside, facts, instant) if is_there else False
                result = both(result, truth) if word == "for" else either(result, truth)
            return result
        case Apply("since" | "until" as word, (left, right)):
            first = now
            while first > 0 and facts[first - 1] is not None:
                first -= 1
            result = False
            for instant in range(first, now + 1):
                on, off = (value_at(side, facts, instant) for side in (left, right))
                if word == "since":
                    on, off = both(on, off), opposite(on)
                result = either(on, both(result, opposite(off)))
            return result
        case Apply(operator, (left, right)):
            sides = [value_at(side, facts, now) for side in (left, right)]
            return None if None in sides else COMPARED[operator](*sides)
    raise AssertionError(one)


def histories(events: list[Event], names: tuple[str, ...]) -> dict[Value, History]:
    found: dict[Value, History] = {e.row[names.index("id")]: [None] * (END + 1) for e in events}
    for event in events:
        row = dict(zip(names, event.row, strict=True))
        for instant in range(event.time, END + 1):
            found[row["id"]][instant] = None if row.get("gone") else row
    return found


# --- generated conditions ---------------------------------------------------------------


def lengths() -> st.SearchStrategy[str]:
    return st.integers(1, 6).map(lambda n: f"{n} us")


def leaves() -> st.SearchStrategy[str]:
    then = st.builds("before(vessel.draught, {})".format, lengths())
    sides = st.one_of(st.just("vessel.draught"), then)
    relation = st.sampled_from(("<", ">="))
    return st.builds("{} {} {} m".format, sides, relation, st.integers(0, 2))


def conditions() -> st.SearchStrategy[str]:
    def deeper(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        word = st.sampled_from(("for", "within"))
        between = st.sampled_from(("since", "until", "and", "or"))
        return st.one_of(
            st.builds("({}) {} {}".format, inside, word, lengths()),
            st.builds("({}) {} ({})".format, inside, between, inside),
            st.builds("not ({})".format, inside),
        )

    return st.recursive(leaves(), deeper, max_leaves=4)


@st.composite
def events(draw: st.DrawFn, names: tuple[str, ...]) -> list[Event]:
    times = sorted(draw(st.lists(st.integers(0, END - 4), min_size=1, max_size=9)))
    values: dict[str, st.SearchStrategy[Value]] = {
        "id": st.sampled_from((1, 2)),
        "draught": st.sampled_from((0.0, 1.0, 2.0, None)),
        "gone": st.sampled_from((False, False, False, True)),
    }
    rows = [Event(t, tuple(draw(values[n]) for n in names)) for t in times]
    # The end of time is that of the last row: one that says nothing new.
    return [*rows, Event(END, rows[-1].row)]


def agree(data: st.DataObject, text: str, run: Callable[..., tuple[dict[str, Rows], Any]]) -> None:
    source = Source(HERE, f'domain "toy.toml"\nrequire {text}\n')
    try:
        checked = check_text(source)
    except CheckError:  # a contradiction, which is an error of its own
        reject()
    program = translated(checked).program
    (given_input,) = program.inputs
    names = given_input.type.schema.names
    rows = data.draw(events(names))
    (statement,) = read_rules(source, [], checked.domain.names).rules.statements
    found, _ = run(optimise(program), {given_input.name: rows})
    shown: dict[Value, str] = {}
    words = {True: "allowed", False: "restricted", None: "undecided"}
    facts = histories(rows, names)
    for instant in range(END + 1):
        changes = [(weight, row) for time, weight, row in found["status"] if time == instant]
        for weight, row in sorted(changes, key=lambda change: change[0]):
            shown.pop(row[0], None)
            if weight > 0:
                shown[row[0]] = str(row[1])
        expected = {
            key: words[value_at(statement.condition, known, instant)]  # type: ignore[union-attr]
            for key, known in facts.items()
            if known[instant] is not None
        }
        assert expected == shown, (instant, written(statement.condition))  # type: ignore[union-attr]


SETTINGS = settings(
    deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)  # fmt: skip


@settings(SETTINGS, max_examples=20)
@given(st.data(), conditions())
def test_conditions_over_time_mean_what_they_say(data: st.DataObject, text: str) -> None:
    agree(data, text, on_reference)


@settings(SETTINGS, max_examples=5)
@given(st.data(), conditions(), st.lists(st.integers(0, 8), max_size=3))
def test_the_local_engine_looks_back_as_far(
    data: st.DataObject, text: str, cuts: list[int]
) -> None:
    agree(data, text, lambda program, given: on_local(program, given, cuts))


# --- as people write them ---------------------------------------------------------------

MINUTE = 60_000_000
TRUCKS = """subject = "truck"
[entity.truck]
input = "trucks"
key = "plate"
columns = { plate = "text", temperature = "degC", speed = "km/h", door = "boolean" }
"""


def verdicts(folder: Path, text: str, *rows: tuple[int, Value, Value, Value]) -> list[Any]:
    """Minute, status and reasons of a truck; rows are minute, temperature, speed and door."""
    (folder / "trucks.toml").write_text(TRUCKS)
    (folder / "trucks.rules").write_text(f'domain "trucks.toml"\n{text}\n')
    job = millstream.compile(str(folder / "trucks.rules"))
    columns = job.program.inputs[0].type.schema.names
    names = ("temperature", "speed", "door")
    given: list[dict[str, Value]] = []
    for minute, *values in rows:
        told = {n: v for n, v in zip(names, values, strict=True) if n in columns}
        given.append({"_time": minute * MINUTE, "plate": "A", **told})
    changes = job.run({"trucks": given}, engine="local").rows("status")
    said = [(r["_time"], r["status"], r["reasons"]) for r in changes if r["_weight"] == 1]
    # A verdict may be withdrawn and told again at one instant, which says nothing.
    news = [said[0], *(new for old, new in itertools.pairwise(said) if old[1:] != new[1:])]
    return [(int(str(time)) / MINUTE, *verdict) for time, *verdict in news]


def test_what_lasts_is_told_when_it_has_lasted_though_nothing_comes(tmp_path: Path) -> None:
    found = verdicts(
        tmp_path, "require not truck.temperature > 8 degC for 10 min",
        (0, 9.0, 0.0, False), (4, 9.5, 0.0, False), (30, 5.0, 0.0, False),
    )  # fmt: skip
    warm = "line 2: not truck.temperature > 8 degC for 10 min, but truck.temperature = 9.5 degC"
    assert [(0, "allowed", ""), (10, "restricted", warm), (30, "allowed", "")] == found


def test_between_two_bounds_it_stays_as_it_was(tmp_path: Path) -> None:
    text = (
        "when truck.temperature > 15 degC until truck.temperature < 10 degC:\n"
        "    require truck.speed <= 50 km/h"
    )
    temperatures = (12.0, 16.0, 12.0, 9.0, 12.0)
    rows = [(n, t, 60.0, False) for n, t in enumerate(temperatures)]
    assert [(0, "allowed"), (1, "restricted"), (3, "allowed")] == [
        (minute, status) for minute, status, _ in verdicts(tmp_path, text, *rows)
    ]


def test_a_rate_is_told_with_its_unit(tmp_path: Path) -> None:
    found = verdicts(
        tmp_path, "require rate(truck.speed, 2 min) >= -10 km/h/min",
        (0, 0.0, 90.0, False), (1, 0.0, 90.0, False), (2, 0.0, 80.0, False), (3, 0.0, 30.0, False),
    )  # fmt: skip
    unknown = "line 2: rate(truck.speed, 2 min) is not known"
    slower = (
        "line 2: rate(truck.speed, 2 min) >= -10 km/h/min, but rate(truck.speed, 2 min) = "
        "-30 km/h/min, truck.speed = 30 km/h"
    )
    assert [(0, "undecided", unknown), (2, "allowed", ""), (3, "restricted", slower)] == found


def test_who_leaves_and_comes_again_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "trucks.toml").write_text(TRUCKS + 'departed = "truck.door"\n')
    (tmp_path / "a.rules").write_text(
        'domain "trucks.toml"\n'
        "require not (truck.temperature > 15 degC until truck.temperature < 10 degC)\n"
    )
    rows = [(0, 20.0, False), (1, 12.0, True), (2, 12.0, False)]
    given: list[dict[str, Value]] = [
        {"_time": t, "plate": "A", "temperature": c, "door": d} for t, c, d in rows
    ]
    found = millstream.compile(str(tmp_path / "a.rules")).run({"trucks": given}, engine="local")
    assert [(0, 1, "restricted"), (1, -1, "restricted"), (2, 1, "allowed")] == [
        (r["_time"], r["_weight"], r["status"]) for r in found.rows("status")
    ]


def test_python_has_the_same_words() -> None:
    port = embedded.domain("port")
    minutes, m = embedded.unit("min"), embedded.unit("m")
    deep = port.vessel.draught > 10 * m
    conditions = {
        "vessel.draught > 10 m for 5 min": embedded.lasting(deep, 5 * minutes),
        "vessel.draught > 10 m within 5 min": embedded.within(deep, 5 * minutes),
        "vessel.draught > 10 m since vessel.draught > 10 m": embedded.since(deep, deep),
        "vessel.draught > 10 m until vessel.draught > 10 m": embedded.until(deep, deep),
        "before(vessel.draught, 5 min) > 1 m":
            embedded.before(port.vessel.draught, 5 * minutes) > 1 * m,
    }  # fmt: skip
    assert list(conditions) == [written(value.node) for value in conditions.values()]


@pytest.mark.parametrize("where", ["departed", "define"])
def test_what_a_domain_may_look_back_at(tmp_path: Path, where: str) -> None:
    """A name may; who has departed is asked about this moment."""
    long = "truck.speed > 0 km/h for 5 min"
    more = f'departed = "{long}"\n' if where == "departed" else f'[define]\nlong = "{long}"\n'
    (tmp_path / "trucks.toml").write_text(TRUCKS + more)
    text = "require truck.speed < 3 km/h" if where == "departed" else "require not long"
    (tmp_path / "a.rules").write_text(f'domain "trucks.toml"\n{text}\n')
    if where == "define":
        assert ("trucks",) == millstream.compile(str(tmp_path / "a.rules")).program.input_names
    else:
        with pytest.raises(CheckError, match="what was before cannot be asked here"):
            millstream.compile(str(tmp_path / "a.rules"))
