"""The language: one tree from text and from Python, units, reduction, explanations."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import millstream
from millstream import rules
from millstream.calculus.functions import Judge
from millstream.calculus.graph import Program
from millstream.calculus.text import render, render_term
from millstream.calculus.types import Value
from millstream.cli.main import main
from millstream.engine.warm import SETTING
from millstream.errors import CheckError, UnitError, UsageError
from millstream.languages.brook.load import load as load_brook
from millstream.languages.rules import ast
from millstream.languages.rules.load import Checked, check_text, load
from millstream.languages.rules.read import read_rules
from millstream.languages.rules.units import UnknownUnitError, parse_unit
from millstream.source import Source

PORT = Path(__file__).parents[3] / "examples" / "rules" / "port" / "port.rules"
Given = dict[str, Value]
#: Listings 1 to 11 of the thesis, in our words.
LISTINGS = """
require wind.velocity <= 45 knots
when vessel.length >= 200 meters:
    require wind.velocity <= 35 knots
location wilhelminakade:
    require not (vessel.type == Chemical)
ukc = berth.depth + tide.height - vessel.draught
location "berthA":
    require ukc >= 20 centimeters
location "berthZ":
    require ukc >= 0.5 meters
when vessel.length > 100 meters:
    when vessel.beam < 15 meters:
        require vessel.draught < 12 meters
    require wind.velocity < 35 knots
"""


def checked(text: str) -> Checked:
    return check_text(Source("port.rules", text))


def tree_of(text: str) -> ast.Rules:
    return read_rules(Source("port.rules", text), [], rules.domain("port").domain.names).rules


# --- trees ------------------------------------------------------------------------------


def test_text_and_python_give_the_same_tree() -> None:
    port = rules.domain("port")
    vessel, berth, tide, wind = port.vessel, port.berth, port.tide, port.wind
    meters, knots = rules.unit("meters"), rules.unit("knots")
    ukc = rules.named("ukc", berth.depth + tide.height - vessel.draught)
    book = port.rules(
        rules.require(wind.velocity <= 45 * knots),
        rules.when(vessel.length >= 200 * meters, rules.require(wind.velocity <= 35 * knots)),
        rules.location("wilhelminakade", rules.require(~(vessel.type == port.Chemical))),
        rules.location("berthA", rules.require(ukc >= 20 * rules.unit("centimeters"))),
        rules.location("berthZ", rules.require(ukc >= 0.5 * meters)),
        rules.when(
            vessel.length > 100 * meters,
            rules.when(vessel.beam < 15 * meters, rules.require(vessel.draught < 12 * meters)),
            rules.require(wind.velocity < 35 * knots),
        ),
    )
    assert tree_of(LISTINGS) == book.tree


def test_every_operation_of_table_2_1_gives_the_same_tree_in_python() -> None:
    port = rules.domain("port")
    vessel, wind = port.vessel, port.wind
    m = rules.unit("m")
    text = (
        "require -vessel.draught + 2 * vessel.beam - vessel.length / 4 < 1 m "
        "and abs(vessel.draught) <= 3 m or not wind.velocity > 2 knots\n"
        'require vessel.mmsi == 244660000 and vessel.name != "A"\n'
        "require tide.height >= -1 m and availableTugs >= 2\n"
    )
    sum_ = -vessel.draught + 2 * vessel.beam - vessel.length / 4
    book = port.rules(
        rules.require(
            (sum_ < 1 * m) & (abs(vessel.draught) <= 3 * m)
            | ~(wind.velocity > 2 * rules.unit("knots"))
        ),
        rules.require((vessel.mmsi == 244660000) & (vessel.name != "A")),
        rules.require((port.tide.height >= -1 * m) & (port.availableTugs >= 2)),
    )
    assert tree_of(text) == book.tree


def test_what_is_written_reads_back_to_the_same_tree() -> None:
    for rule in tree_of(PORT.read_text()).statements:
        if isinstance(rule, ast.Require):
            names = "ukc = berth.depth + tide.height - vessel.draught\n"
            again = tree_of(f"{names}require {ast.written(rule.condition)}\n")
            assert (rule,) == again.statements


def test_rules_in_python_run_and_name_their_lines() -> None:
    port = rules.domain("port")
    rule = rules.require(port.vessel.draught <= 10 * rules.unit("m"))
    book = port.rules(rule)
    vessel: Given = {"_time": 1, "mmsi": 7, "name": "A", "draught": 12.0, "departed": False}
    (row,) = book.compile().run({"vessels": [vessel]}, engine="reference").rows("status")
    assert ("restricted", True) == (
        row["status"],
        "but vessel.draught = 12 m" in str(row["reasons"]),
    )
    assert rule.span is not None and "port.vessel.draught" in rule.span.text
    assert str(rule.span.source.line_and_column(rule.span.start)[0]) == row["failed"]


def test_rules_that_a_loop_makes_on_one_line_are_told_apart() -> None:
    """What fails is another rule now, though it stands on the same line: the reason has changed."""
    port = rules.domain("port")
    bounds = {"draught": 10, "beam": 30}
    made = [
        rules.require(getattr(port.vessel, n) <= b * rules.unit("m")) for n, b in bounds.items()
    ]
    given = [(12.0, 20.0), (9.0, 40.0), (7.0, 10.0)]
    vessels: list[Given] = [
        {"_time": time, "mmsi": 7, "name": "A", "draught": draught, "beam": beam, "departed": False}
        for time, (draught, beam) in enumerate(given)
    ]
    finished = port.rules(*made).compile().run({"vessels": vessels}, engine="reference")
    told = finished.rows("warnings")
    assert ["restricted", "reason changed", "lifted"] == [row["warning"] for row in told]
    assert f"{told[0]['failed']} (2)" == told[1]["failed"]


def test_python_errors_point_at_the_line() -> None:
    port = rules.domain("port")
    book = port.rules(rules.require(port.vessel.draught <= port.wind.velocity))
    with pytest.raises(UnitError, match="cannot compare a length with a velocity") as error:
        book.compile()
    assert "test_language.py" in str(error.value)


def test_python_refuses_and_or_not_and_unknown_names() -> None:
    port = rules.domain("port")
    with pytest.raises(UsageError, match="write & for and"):
        bool(port.vessel.draught > port.vessel.beam)
    with pytest.raises(AttributeError, match='Did you mean "draught"'):
        _ = port.vessel.draft
    with pytest.raises(AttributeError, match='Did you mean "vessel"'):
        _ = port.vessels
    with pytest.raises(UsageError, match="unknown unit"):
        rules.unit("knotts")


# --- units ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dimension", "factor"),
    [
        ("m", "length", Fraction(1)), ("nmi", "length", Fraction(1852)),
        ("knots", "length time^-1", Fraction(1852, 3600)), ("tonne", "mass", Fraction(1000)),
        ("kg/m^3", "length^-3 mass", Fraction(1)), ("hPa", "length^-1 mass time^-2", Fraction(100)),
        ("km/h", "length time^-1", Fraction(5, 18)), ("m²", "length^2", Fraction(1)),
        ("degC", "temperature", Fraction(1)), ("%", "", Fraction(1, 100)),
        ("cables", "length", Fraction(1852, 10)), ("fathom", "length", Fraction(18288, 10000)),
        ("m2", "length^2", Fraction(1)), ("t/m3", "length^-3 mass", Fraction(1000)),
        ("kn", "length time^-1", Fraction(1852, 3600)), ("°F", "temperature", Fraction(5, 9)),
    ],
)  # fmt: skip
def test_units_of_the_trade(text: str, dimension: str, factor: Fraction) -> None:
    unit = parse_unit(text)
    assert (dimension, factor) == (str(unit.dimension), unit.factor)


def test_angles_are_a_dimension() -> None:
    assert "angle" == str(parse_unit("degrees").dimension)


@pytest.mark.parametrize(
    "text", ["knotts", "nm", "ton", "m//s", "C", "furlongz", "s2", "mt", "GT", "fm"]
)
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(UnknownUnitError):
        parse_unit(text)


def outcome(rule: str, **vessel: float) -> str:
    """How a rule over a vessel's own columns comes out."""
    row: Given = {"_time": 1, "mmsi": 7, "name": "A", "departed": False, **vessel}
    compiled = millstream.compile(text=rule, language="rules")
    (found,) = compiled.run({"vessels": [row]}, engine="reference").rows("status")
    return str(found["status"])


def test_a_length_times_a_length_is_an_area() -> None:
    rule = "require vessel.length * vessel.beam <= 1 hectare"
    assert "allowed" == outcome(rule, length=100.0, beam=100.0)
    assert "restricted" == outcome(rule, length=100.0, beam=100.5)


def test_bounds_are_met_exactly_whatever_their_unit() -> None:
    for limit in ("12.3 m", "1230 cm", "12300 mm", "0.0123 km"):
        assert "allowed" == outcome(f"require vessel.draught <= {limit}", draught=12.3)
        assert "restricted" == outcome(f"require vessel.draught < {limit}", draught=12.3)


def test_a_division_by_zero_is_undecided() -> None:
    assert "undecided" == outcome("require vessel.length / vessel.beam < 9", length=1.0, beam=0.0)


def test_a_time_between_two_moments_has_a_unit() -> None:
    text = "require vessel.eta - tide.valid <= 30 min"
    assert "seconds(`vessel.eta` - `tide.valid`) <= 1800.0000036" in render(load_text(text))


def load_text(text: str) -> Program:
    return load(Source("port.rules", text)).program


def test_the_program_of_rules_prints_and_parses() -> None:
    program = load_text(PORT.read_text())
    assert program == load_brook(Source("printed.brook", render(program)))
    assert any(isinstance(op.function, Judge) for op in program.operators)


# --- reduction --------------------------------------------------------------------------


def test_equal_and_implied_requirements_are_dropped_with_the_reason() -> None:
    found = checked(
        "require wind.velocity <= 35 knots\n"
        "require wind.velocity <= 45 knots\n"
        "when vessel.draught >= 15 m:\n"
        "    require tide.height >= 50 cm\n"
        "    require 0.5 m <= tide.height\n"
        "when vessel.draught >= 18 m:\n"
        "    require tide.height > 0.2 m\n"
        "    require vessel.type != Tanker or wind.velocity <= 40 knots\n"
    ).reduced
    assert ["1", "4"] == [r.place for r in found.requirements]
    told = "\n".join(found.notes)
    assert "dropped line 2, require wind.velocity <= 45 knots: line 1" in told
    assert "dropped line 5" in told and "says the same" in told
    assert "dropped line 7" in told and "is at least as strict" in told
    assert "dropped line 8" in told


def test_what_is_stricter_elsewhere_only_is_kept() -> None:
    found = checked(
        "require wind.velocity <= 45 knots\n"
        "when vessel.draught >= 15 m:\n"
        "    require wind.velocity <= 35 knots\n"
        'location "A":\n'
        "    require tide.height >= 1 m\n"
        'location "B":\n'
        "    require tide.height >= 2 m\n"
    ).reduced
    assert ["1", "3", "5", "7"] == [r.place for r in found.requirements]


def test_a_condition_that_another_implies_is_not_asked() -> None:
    found = checked(
        "when vessel.draught >= 15 m:\n"
        "    when vessel.draught >= 10 m:\n"
        "        require tide.height >= 1 m\n"
    ).reduced
    assert "line 3 is not asked for line 2" in "\n".join(found.notes)
    asked = found.requirements[0].when
    assert asked is not None and "`vessel.draught` >= 14.99999997" == render_term(asked)


def test_explain_says_what_was_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["explain", str(PORT)])
    shown = capsys.readouterr().out
    assert "# dropped line 21, require ukc >= 0.2 m: line 7, require ukc >= 20 cm" in shown
    assert "# when vessel.length >= 200 m is evaluated once for lines 16, 17, 19, 20" in shown


# --- situations -------------------------------------------------------------------------


def test_explain_shows_how_each_line_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 == main(["explain", str(PORT), "--vessel", "244660001"])
    lines = capsys.readouterr().out.splitlines()
    assert "vessel 244660001: restricted" == lines[0]
    by_line = {line.split()[0]: line for line in lines[1:]}
    assert "false" in by_line["7"] and "ukc = -0.1 m" in by_line["7"]
    assert "not applicable" in by_line["10"] and "vessel.type = Container" in by_line["10"]
    assert "true" in by_line["18"] and "area = 23600 m^2" in by_line["18"]


def test_a_vessel_without_destination_is_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["explain", str(PORT), "--vessel", "244660003"])
    lines = capsys.readouterr().out.splitlines()
    assert "vessel 244660003: undecided" == lines[0]
    assert "undecided" in lines[1] and "wind.velocity = not known" in lines[1]
    assert any("vessel.destination = not known" in line for line in lines)


def test_an_unknown_vessel_is_told_with_near_misses(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["explain", str(PORT), "--vessel", "24466001"])
    assert 'Did you mean "244660001"?' in capsys.readouterr().err


def test_of_a_vessel_that_has_departed_that_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["explain", str(PORT), "--vessel", "244660002"])
    assert "error: vessel 244660002 has departed" in capsys.readouterr().err


def test_another_name_of_a_field_is_shown_once_and_lines_are_counted() -> None:
    found = checked("require availableTugs >= 2\nrequire tugs.available <= 9\n")
    assert ["availableTugs"] == [s.label for s in found.reduced.requirements[0].shown]
    vessel: Given = {"_time": 1, "mmsi": 7, "name": "A", "departed": False}
    text = "require vessel.draught < 9 m\nrequire vessel.draught > 1 m\n"
    run = millstream.compile(text=text, language="rules").run({"vessels": [vessel]})
    assert "lines 1, 2: vessel.draught is not known" == run.rows("status")[0]["reasons"]


def test_a_sensor_that_never_reported_leaves_rules_undecided() -> None:
    rule = "require tugs.available >= 1\n"
    vessel: Given = {"_time": 1, "mmsi": 7, "name": "A", "departed": False}
    found = millstream.compile(text=rule, language="rules").run({"vessels": [vessel], "tugs": []})
    (row,) = found.rows("status")
    assert ("undecided", "line 1: tugs.available is not known") == (row["status"], row["reasons"])
    assert ["undecided"] == [w["warning"] for w in found.rows("warnings")]


def test_all_faults_come_at_once_with_their_class() -> None:
    with pytest.raises(UnitError) as units:
        checked("require vessel.draught <= 3 knots\nrequire vessel.beam <= 3 s\n")
    assert 2 == len(units.value.faults)
    with pytest.raises(CheckError) as mixed:
        checked("require vessel.draught <= 3 knots\nrequire vessel.bea <= 3 m\n")
    assert 2 == len(mixed.value.faults) and not isinstance(mixed.value, UnitError)


def test_a_question_about_few_rows_is_answered_without_compiling(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "millstream", "explain", str(PORT), "--vessel", "244660000"]
    environment = os.environ | {"MILLSTREAM_CACHE": str(tmp_path / "cache"), SETTING: "inf"}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("vessel 244660000: allowed")
    assert [] == list((tmp_path / "cache").rglob("*"))
