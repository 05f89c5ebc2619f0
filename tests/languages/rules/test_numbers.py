"""What is known, what is alike, and what may be left out: the cases that went wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream
from millstream.calculus.terms import Column
from millstream.calculus.types import NUMBER, Value
from millstream.errors import CheckError
from millstream.languages.rules.load import check_text
from millstream.languages.rules.logic import Bound, Leaf, Linear, compared, limits
from millstream.source import Source

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])
HOUR = 3_600_000_000
Row = dict[str, Value]


def judged(text: str, engine: str = "reference", **given: Value) -> tuple[Any, Any]:
    """The status of a vessel and the reasons, given what is known of all that it needs."""
    rows: dict[str, Row] = {
        "vessels": {"_time": 2, "mmsi": 7, "name": "N", "departed": False, "destination": "A",
                    "eta": HOUR},
        "berths": {"_time": 1, "name": "A", "basin": "B", "latitude": 51.9, "longitude": 4.1},
        "sensors": {"_time": 1, "sensor": "t", "kind": "Tide", "latitude": 51.9, "longitude": 4.1},
        "tides": {"_time": 1, "sensor": "t", "valid": HOUR},
    }  # fmt: skip
    entities = {"vessel": "vessels", "berth": "berths", "tide": "tides"}
    for name, value in given.items():
        entity, _, column = name.partition("_")
        rows[entities[entity]][column] = value
    job = millstream.compile(text=text, language="rules")
    found = job.run({n: [rows[n]] for n in job.program.input_names}, engine=engine)
    (row,) = found.rows("status")
    return row["status"], row["reasons"]


# --- reduction ---------------------------------------------------------------------------


@ENGINES
def test_what_cancels_must_be_known_all_the_same(engine: str) -> None:
    text = (
        "require berth.depth >= 10 m\n"
        "require berth.depth + tide.height >= 10 m + tide.height\n"
    )  # fmt: skip
    assert "undecided" == judged(text, engine, berth_depth=12.0)[0]
    assert "allowed" == judged(text, engine, berth_depth=12.0, tide_height=1.0)[0]


@ENGINES
def test_a_condition_in_which_something_cancels_does_not_stand_for_another(engine: str) -> None:
    text = (
        "when berth.depth + tide.height > tide.height + 10 m: require vessel.draught <= 8 m\n"
        "when berth.depth > 10 m: require vessel.draught <= 9 m\n"
    )
    assert "restricted" == judged(text, engine, berth_depth=12.0, vessel_draught=10.0)[0]


def test_the_same_sum_in_another_order_or_unit_says_the_same() -> None:
    text = (
        "require berth.depth + tide.height - vessel.draught >= 50 cm\n"
        "require 0.5 m <= tide.height - vessel.draught + berth.depth\n"
        "require 2 * (berth.depth + tide.height - vessel.draught) >= 0.001 km\n"
    )
    found = check_text(Source("port.rules", text)).reduced
    assert ["1"] == [r.place for r in found.requirements]


def test_sums_that_contradict_each_other_are_a_mistake_whatever_cancels() -> None:
    text = (
        "require berth.depth - vessel.draught <= 3 m\n"
        "require berth.depth - vessel.draught + tide.height >= 5 m + tide.height\n"
    )
    with pytest.raises(CheckError, match="contradicts line 1"):
        check_text(Source("port.rules", text))


# --- alike ---------------------------------------------------------------------------------


UKC = "ukc = berth.depth + tide.height - vessel.draught\n"


@ENGINES
def test_numbers_are_compared_as_they_are_shown(engine: str) -> None:
    given: dict[str, Value] = {"berth_depth": 18.2, "tide_height": 0.4, "vessel_draught": 18.3}
    for bound in ("0.3 m", "30 cm", "0.0003 km"):
        assert ("allowed", "") == judged(f"{UKC}require ukc >= {bound}\n", engine, **given)
        assert ("allowed", "") == judged(f"{UKC}require ukc == {bound}\n", engine, **given)
        status, reasons = judged(f"{UKC}require ukc > {bound}\n", engine, **given)
        assert "restricted" == status and "but ukc = 0.3 m" in reasons


@ENGINES
def test_what_should_be_nothing_is_nothing(engine: str) -> None:
    given: dict[str, Value] = {"berth_depth": 18.2, "tide_height": 0.4, "vessel_draught": 18.6}
    assert ("allowed", "") == judged(f"{UKC}require ukc >= 0 m\n", engine, **given)
    assert ("allowed", "") == judged(f"{UKC}require abs(ukc) <= 0 m\n", engine, **given)
    assert ("allowed", "") == judged(f"{UKC}require 3 m * ukc >= 0 m^2\n", engine, **given)
    _, reasons = judged(f"{UKC}require ukc > 0 m\n", engine, **given)
    assert "but ukc = 0 m" in reasons


def test_what_differs_more_is_told_apart_and_shown() -> None:
    rule = "require vessel.draught <= 12.3 m\n"
    assert "allowed" == judged(rule, vessel_draught=12.3 * (1 + 1e-9))[0]
    status, reasons = judged(rule, vessel_draught=12.3 * (1 + 3e-9))
    assert "restricted" == status and "but vessel.draught = 12.30000004 m" in reasons


def test_whole_numbers_are_compared_exactly() -> None:
    rule = "require vessel.mmsi == {}\n"
    for mmsi in (244660000, 24466000012345):
        assert "allowed" == judged(rule.format(mmsi), vessel_mmsi=mmsi)[0]
        status, reasons = judged(rule.format(mmsi), vessel_mmsi=mmsi + 1)
        assert "restricted" == status and f"but vessel.mmsi = {mmsi + 1}" in reasons


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    st.sampled_from((0, 1, -1, 3, Fraction(1, 3), Fraction(-7, 10))),
    st.lists(st.integers(-6, 6), min_size=2, max_size=6),
)
def test_thresholds_are_monotonous(bound: Fraction, steps: list[int]) -> None:
    """What meets a bound meets every lower one, and a greater value meets it as well."""
    x = Linear.of(Leaf(Column("x", NUMBER)), Fraction(1), Fraction(0))
    cuts = []
    for step in sorted(steps):
        value = bound + Fraction(step, 10**9)
        made = compared(x, ">=", Linear((), value, abs(value)))
        assert isinstance(made, Bound)
        cuts.append(limits(made))
    assert cuts == sorted(cuts)
    assert all(low <= high for low, high in cuts)


@ENGINES
def test_a_point_in_time_that_is_moved_is_shown_where_it_is(engine: str) -> None:
    text = "later = vessel.eta + 90 min\nrequire later < vessel.eta\n"
    _, reasons = judged(text, engine)
    assert "but later = 1970-01-01T02:30:00.000000Z, vessel.eta = 1970-01-01T01:" in reasons


# --- temperatures --------------------------------------------------------------------------


DOMAIN = """
subject = "box"
[entity.box]
key = "id"
columns = { id = "integer", inside = "degC", outside = "K", limit = "delta_degC", old = "degF" }
"""


@pytest.mark.parametrize(
    ("rule", "is_met"),
    [
        ("295 K - box.inside <= 5 K", True),
        ("295 K - box.inside >= 0.1 K", False),
        ("box.outside - box.inside <= 5 K", True),
        ("box.outside - box.inside > 7.9 delta_degF", True),
        ("box.inside - box.outside >= -5 K", True),
        ("box.inside - 5 K <= 17 degC", True),
        ("box.inside - 5 K <= 16 degC", False),
        ("box.inside + box.limit >= 24.85 degC", True),
        ("box.old == 21.85 degC", True),
        ("box.old - box.inside == 0 K", True),
        ("box.outside == 299.4 K", True),
        ("box.outside >= 26.25 degC", True),
        ("box.outside > 26.25 degC", False),
    ],
)
def test_temperatures_and_their_differences(tmp_path: Any, rule: str, is_met: bool) -> None:
    (tmp_path / "box.toml").write_text(DOMAIN)
    path = tmp_path / "box.rules"
    path.write_text(f'domain "box.toml"\nrequire {rule}\n')
    box: Row = {
        "_time": 1, "id": 1, "inside": 21.85, "outside": 299.4, "limit": 3.0, "old": 71.33,
    }  # fmt: skip
    (row,) = millstream.compile(path).run({"box": [box]}, engine="reference").rows("status")
    assert ("allowed" if is_met else "restricted") == row["status"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("295 K - box.inside <= 5 degC", "cannot compare a difference of temperatures"),
        ("abs(-5 degC) > 1 K", "abs needs a difference"),
        ("-(-5 degC) > 1 K", "a minus sign needs a difference"),
        ("box.limit - box.inside > 1 K", "cannot subtract a temperature from a difference"),
        ("box.inside + 3 degC > 1 K", "cannot add two temperatures"),
    ],
)
def test_points_are_no_differences(tmp_path: Any, rule: str, message: str) -> None:
    (tmp_path / "box.toml").write_text(DOMAIN)
    with pytest.raises(CheckError, match=message):
        check_text(Source(str(tmp_path / "box.rules"), f'domain "box.toml"\nrequire {rule}\n'))
