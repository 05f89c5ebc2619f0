"""What people write: closed places, times that are moved, names like units, odd requirements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.calculus.types import Value
from millstream.cli.main import main
from millstream.errors import CheckError
from millstream.languages.rules.units import UnknownUnitError, parse_unit

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])
HOUR = 3_600_000_000
Rows = list[dict[str, Value]]


def vessel(mmsi: int, **values: Value) -> dict[str, Value]:
    given: dict[str, Value] = {
        "_time": 1, "mmsi": mmsi, "name": "N", "departed": False,
        "destination": "A", "draught": 5.0, "eta": 5 * HOUR,
    }  # fmt: skip
    return given | values


def statuses(text: str, engine: str, **inputs: Rows) -> dict[Any, Any]:
    job = millstream.compile(text=text, language="rules")
    found = job.run({n: inputs[n] for n in job.program.input_names}, engine=engine)
    rows = [row for row in found.rows("status") if row["_weight"] == 1]
    return {row["mmsi"]: row["status"] for row in rows}


@ENGINES
def test_a_place_is_closed_by_requiring_what_is_false(engine: str) -> None:
    text = (
        'location "A": require false\nlocation "B":\n    when vessel.draught > 9 m: require false\n'
    )
    vessels = [vessel(1), vessel(2, destination="B"), vessel(3, destination="B", draught=10.0)]
    berths: Rows = [{"_time": 0, "name": name, "basin": "C", "depth": 9.0} for name in ("A", "B")]
    expected = {1: "restricted", 2: "allowed", 3: "restricted"}
    assert expected == statuses(text, engine, vessels=vessels, berths=berths)


@ENGINES
def test_points_in_time_can_be_moved(engine: str) -> None:
    text = (
        "slack = 90 minutes\n"
        "require vessel.eta + slack >= vessel.due and vessel.due > vessel.eta - 1 h\n"
        "require 1 h + vessel.eta - vessel.due <= 3 h\n"
    )
    domain = 'extends = "port"\n[entity.vessel.columns]\ndue = "time"\n'
    vessels = [
        vessel(n, due=due * HOUR // 2) for n, due in ((1, 10), (2, 13), (3, 14), (4, 8), (5, 5))
    ]
    expected = {1: "allowed", 2: "allowed", 3: "restricted", 4: "restricted", 5: "restricted"}
    assert expected == _in_domain(domain, text, engine, vessels)


def _in_domain(domain: str, text: str, engine: str, vessels: Rows) -> dict[Any, Any]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "own.toml").write_text(domain)
        path = Path(folder) / "own.rules"
        path.write_text(f'domain "own.toml"\n{text}')
        rows = millstream.compile(path).run({"vessels": vessels}, engine=engine).rows("status")
    return {row["mmsi"]: row["status"] for row in rows}


def test_a_word_after_a_number_is_a_unit_whatever_else_it_is() -> None:
    text = "m = vessel.draught\nrequire m < 20 m\nrequire 3 m < m * 2\n"
    vessels = [vessel(1), vessel(2, draught=21.0), vessel(3, draught=1.0)]
    expected = {1: "allowed", 2: "restricted", 3: "restricted"}
    assert expected == statuses(text, "reference", vessels=vessels)


@pytest.mark.parametrize("name", ["dwt", "gallon", "barrel", "M", "ton", "nm"])
def test_units_that_mislead_are_refused(name: str) -> None:
    with pytest.raises(UnknownUnitError, match="ambiguous"):
        parse_unit(name)


@pytest.mark.parametrize("name", ["dB", "dBm", "Np", "octave"])
def test_logarithmic_units_are_refused(name: str) -> None:
    with pytest.raises(UnknownUnitError, match="logarithmic"):
        parse_unit(name)


@pytest.mark.parametrize(("one", "other"), [("Celsius", "degC"), ("Fahrenheit", "degF")])
def test_temperatures_may_have_the_names_of_their_inventors(one: str, other: str) -> None:
    first, second = parse_unit(one), parse_unit(other)
    assert (first.factor, first.offset) == (second.factor, second.offset)


def test_what_can_never_fail_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "port.rules"
    path.write_text("require true\nrequire vessel.draught < 9 m\n")
    assert 0 == main(["check", str(path)])
    assert "port.rules:1:1: this requirement can never fail" in capsys.readouterr().err


def test_a_location_that_no_berth_has_is_told_before_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "port.rules"
    path.write_text('location "Kade", "Basin 1", "Kadde":\n    require vessel.draught < 9 m\n')
    (tmp_path / "vessels.csv").write_text(
        "_time,mmsi,name,draught,destination,departed\n1,7,N,10,Kade,false\n"
    )
    assert 0 == main(["check", str(path)])  # no berths yet, so nothing is missed
    assert "" == capsys.readouterr().err
    (tmp_path / "berths.csv").write_text("_time,name,basin\n0,Kade,Basin 1\n0,Quay,\n")
    out = ["--out", "status=-", "--out", f"warnings={tmp_path}/warnings.csv"]
    assert 0 == main(["run", str(path), "--engine", "reference", *out])
    told = capsys.readouterr()
    assert "warning: " in told.err and ':1:29: no berth is at "Kadde"' in told.err
    assert 'there are: Basin 1, Kade, Quay. Did you mean "Kade"?' in told.err
    assert 1 == told.err.count("warning:")
    assert "restricted" in told.out


@ENGINES
def test_a_berth_without_a_basin_is_in_none_and_an_unknown_one_may_be_in_any(engine: str) -> None:
    rule = 'location "Basin 1":\n    require vessel.draught < 9 m\n'
    given: dict[str, Rows] = {
        "vessels": [vessel(n, destination=to, draught=12.0)
                    for n, to in enumerate(("Kade", "Quay", "Pier", None))],
        "berths": [{"_time": 1, "name": "Kade", "basin": None},
                   {"_time": 1, "name": "Quay", "basin": "Basin 1"}],
    }  # fmt: skip
    found = statuses(rule, engine, **given)
    assert ["allowed", "restricted", "undecided", "undecided"] == [found[n] for n in range(4)]
    # The column itself is not known, so what asks for it is not the same, and not dropped.
    rule += 'when berth.basin == "Basin 1":\n    require vessel.draught < 9 m\n'
    assert "undecided" == statuses(rule, engine, **given)[0]


def test_a_location_that_no_berth_has_is_told_in_projects_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "port.rules").write_text(
        'location "Kadde":\n    require vessel.draught < 9 m\nrequire true\n'
        "require vessel.draught < 30 m\nrequire vessel.draught < 40 m\n"
    )
    (tmp_path / "ships.csv").write_text(
        "_time,mmsi,name,draught,destination,departed\n1,7,N,10,Kade,false\n"
    )
    (tmp_path / "quays.csv").write_text("_time,name,basin\n0,Kade,Basin 1\n")
    project = tmp_path / "millstream.toml"
    project.write_text(
        '[stream.Ships]\nsource = "ships.csv"\n[stream.Quays]\nsource = "quays.csv"\n'
        '[node.entry]\nrules = "port.rules"\ninputs.vessels = "Ships"\ninputs.berths = "Quays"\n'
    )
    assert 0 == main(["check", str(tmp_path)])
    told = capsys.readouterr().err
    assert ':1:10: no berth is at "Kadde"' in told and 'Did you mean "Kade"?' in told
    assert ":3:1: this requirement can never fail" in told
    assert 2 == told.count("warning:")
    assert 0 == main(["explain", str(tmp_path)])
    assert "# entry: dropped line 5" in capsys.readouterr().out
    # What another program gives is not known before it runs.
    (tmp_path / "quays.brook").write_text(
        "output berths;\ninput Quays(name text, basin text);\n"
        '(berths) <- Filter[name != ""](Quays);\n'
    )
    project.write_text(
        project.read_text().replace('inputs.berths = "Quays"\n', "")
        + '[node.quays]\nbrook = "quays.brook"\n'
    )
    assert 0 == main(["check", str(tmp_path)])
    assert "no berth" not in capsys.readouterr().err


def test_nothing_is_kept_of_those_who_have_departed() -> None:
    from millstream.calculus.functions import Latest

    job = millstream.compile(text="require vessel.draught < 9 m\n", language="rules")
    latest = [op.function for op in job.program.operators if isinstance(op.function, Latest)]
    assert [Latest(("vessel.mmsi",), "departed")] == latest


OWN_WORDS = """subject = "pump"
[words]
restricted = "alarm"
lifted = "clear"
[entity.pump]
input = "pumps"
key = "id"
columns = { id = "integer", pressure = "bar" }
"""


@ENGINES
def test_a_domain_has_its_own_words_and_a_rule_its_own_message(engine: str, tmp_path: Path) -> None:
    (tmp_path / "pumps.toml").write_text(OWN_WORDS)
    (tmp_path / "pumps.rules").write_text(
        'domain "pumps.toml"\nrequire pump.pressure <= 6 bar else "open the valve"\n'
    )
    given: Rows = [{"_time": t, "id": 1, "pressure": p} for t, p in ((1, 5.0), (2, 7.0), (3, 4.0))]
    found = millstream.compile(str(tmp_path / "pumps.rules")).run({"pumps": given}, engine=engine)
    reason = "line 2: open the valve: pump.pressure <= 6 bar, but pump.pressure = 7 bar"
    assert [(2, "alarm", "alarm", reason), (3, "clear", "allowed", "")] == [
        (r["_time"], r["warning"], r["status"], r["reasons"]) for r in found.rows("warnings")
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ('restrict = "alarm"', 'unknown "restrict"'),
        ("lifted = 3", "expected a word"),
        ('lifted = "allowed"', "two things cannot be called the same"),
    ],
)
def test_words_that_a_domain_cannot_have(tmp_path: Path, words: str, message: str) -> None:
    (tmp_path / "pumps.toml").write_text(OWN_WORDS.replace('lifted = "clear"', words))
    (tmp_path / "pumps.rules").write_text('domain "pumps.toml"\nrequire pump.pressure <= 6 bar\n')
    with pytest.raises(CheckError, match=message):
        millstream.compile(str(tmp_path / "pumps.rules"))


def test_what_fails_worst_is_told() -> None:
    job = millstream.compile(
        text="require vessel.draught < 9 m as advice\n"
        'require vessel.beam < 9 m else "too wide" as critical\n'
        "require vessel.length < 99 m as warning else 'too long'\n",
        language="rules",
    )
    sizes = [(1, 5.0, 5.0, 5.0), (2, 10.0, 5.0, 5.0), (3, 10.0, 5.0, 100.0), (4, 10.0, 10.0, 100.0)]
    rows: list[dict[str, Value]] = [
        {"_time": n, "mmsi": n, "name": "N", "departed": False, "draught": draught, "beam": beam,
         "length": length}
        for n, draught, beam, length in sizes
    ]  # fmt: skip
    for engine in ("reference", "local"):
        result = job.run({"vessels": rows}, engine=engine)
        assert ["", "advice", "warning", "critical"] == [
            r["severity"] for r in result.rows("status")
        ]
        told = [(r["mmsi"], r["failed"], r["severity"]) for r in result.rows("warnings")]
        assert [(2, "1", "advice"), (3, "1, 3", "warning"), (4, "1, 2, 3", "critical")] == told


def test_a_milder_requirement_does_not_stand_for_a_more_severe_one() -> None:
    text = "require vessel.draught < {} m as {}\nrequire vessel.draught < 10 m as critical\n"
    notes = {
        severity: millstream.compile(text=text.format(5, severity), language="rules").notes
        for severity in ("advice", "critical")
    }
    assert not any("dropped" in note for note in notes["advice"])
    assert any("dropped line 2" in note for note in notes["critical"])


def test_a_severity_that_is_not_known_is_said() -> None:
    with pytest.raises(CheckError, match='unknown severity "advise"'):
        millstream.compile(text="require vessel.draught < 9 m as advise\n", language="rules")
