"""What says nothing is not known, and what is not known is never taken for true."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.calculus.types import Value
from millstream.languages.rules.situation import explain_situation

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])
NO_NUMBERS = pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
HOUR = 3_600_000_000
RULES = (
    "require berth.depth + tide.height - vessel.draught >= 0.5 m\n"
    "when vessel.type == Chemical: require tide.height >= 1 m\n"
)
HEADER = "_time,mmsi,name,type,departed,destination,draught,eta\n"


def port(height: Value = 20.0, **vessel: Value) -> dict[str, list[dict[str, Value]]]:
    """A vessel of 25 m at a berth of 12 m: it needs a tide of 13.5 m."""
    row: dict[str, Value] = {
        "_time": 1, "mmsi": 7, "name": "N", "type": "Tanker", "departed": False,
        "destination": "A", "draught": 25.0, "eta": 5 * HOUR,
    }  # fmt: skip
    there: dict[str, Value] = {"_time": 0, "latitude": 51.0, "longitude": 4.0}
    return {
        "vessels": [row | vessel],
        "berths": [{**there, "name": "A", "depth": 12.0}],
        "sensors": [{**there, "sensor": "s", "kind": "Tide"}],
        "tides": [{"_time": 0, "sensor": "s", "valid": 5 * HOUR, "height": height}],
    }


def verdict(text: str, engine: str, inputs: dict[str, Any]) -> list[tuple[Value, Value]]:
    job = millstream.compile(text=text, language="rules")
    given = {name: inputs[name] for name in job.program.input_names}
    return [(r["status"], r["reasons"]) for r in job.run(given, engine=engine).rows("status")]


@ENGINES
def test_a_tide_that_is_known_decides(engine: str) -> None:
    assert [("allowed", "")] == verdict(RULES, engine, port())


@ENGINES
@NO_NUMBERS
def test_what_is_no_number_is_not_known(engine: str, value: float) -> None:
    expected = [("undecided", "line 1: tide.height is not known")]
    assert expected == verdict(RULES, engine, port(value))


@ENGINES
def test_what_is_none_of_the_members_is_not_known(engine: str) -> None:
    expected = [("undecided", "line 2: vessel.type is not known")]
    assert expected == verdict(RULES, engine, port(0.9, type="chemical", draught=1.0))


@ENGINES
@NO_NUMBERS
def test_a_place_that_is_no_place_is_near_to_nothing(engine: str, value: float) -> None:
    given = port()
    given["berths"][0]["latitude"] = value
    expected = [("undecided", "line 1: tide.height is not known")]
    assert expected == verdict(RULES, engine, given)


@ENGINES
@pytest.mark.parametrize(
    "text",
    [
        "require vessel.length * vessel.beam - vessel.length * vessel.length >= 5 m^2\n",
        "area = vessel.length * vessel.beam\nrequire area >= 5 m^2\n",
        "require vessel.length + vessel.beam >= 5 m\n",
        "require abs(vessel.length * vessel.beam) >= 5 m^2\n",
    ],
)
def test_what_is_too_large_to_be_computed_is_not_known(engine: str, text: str) -> None:
    given = port(length=1.7e308, beam=1.7e308)
    ((status, reasons),) = verdict(text, engine, given)
    assert "undecided" == status
    assert "not known" in str(reasons)


@ENGINES
@pytest.mark.parametrize(
    ("name", "place", "missing"),
    [("vessels", "mmsi", "mmsi"), ("berths", "name", "name"), ("tides", "valid", "valid")],
)
def test_a_row_without_its_key_is_rejected(
    engine: str, name: str, place: str, missing: str
) -> None:
    given = port()
    given[name].append(given[name][0] | {place: None})
    job = millstream.compile(text=RULES, language="rules")
    done = job.run(given, engine=engine)
    assert [f"{name}:2: {missing}: the key is missing"] == done.report.first_rejections
    assert (2, 1, 1) == (
        (counts := done.report.inputs[name]).read, counts.processed, counts.rejected,
    )  # fmt: skip
    assert [7] == [row["mmsi"] for row in done.rows("status")]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_row_without_its_key_is_rejected_in_every_kind_of_file(
    tmp_path: Path, ending: str
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / f"vessels.{ending}"
    match ending:
        case "csv":
            path.write_text("_time,mmsi,name,departed,draught\n1,7,N,false,1\n2,,N,false,1\n")
        case "jsonl":
            row = '{"_time": 1, "mmsi": 7, "name": "N", "departed": false, "draught": 1}\n'
            path.write_text(row + row.replace('"mmsi": 7, ', ""))
        case _:
            columns = {"_time": [1, 2], "mmsi": [7, None], "name": ["N", "N"],
                       "departed": [False, False], "draught": [1.0, 1.0]}  # fmt: skip
            pq.write_table(pa.table(columns), path)
    job = millstream.compile(text="require vessel.draught <= 9 m\n", language="rules")
    done = job.run({"vessels": path}, engine="local")
    assert [7] == [row["mmsi"] for row in done.rows("status")]
    assert [True] == ["mmsi: the key is missing" in why for why in done.report.first_rejections]


def test_a_key_is_missed_by_rules_and_not_by_others_who_read_the_input(tmp_path: Path) -> None:
    (tmp_path / "port.rules").write_text("require vessel.draught <= 9 m\n")
    (tmp_path / "all.brook").write_text(
        "output seen; input vessels(mmsi integer, draught number);\n"
        "(seen) <- Filter[draught > 0.0](vessels);\n"
    )
    (tmp_path / "vessels.csv").write_text(
        "_time,mmsi,name,draught,departed\n1,7,N,1,false\n2,,N,2,false\n"
    )
    (tmp_path / "millstream.toml").write_text(
        '[stream.vessels]\nsource = "vessels.csv"\n'
        '[node.rules]\nrules = "port.rules"\n[node.all]\nbrook = "all.brook"\n'
    )
    done = millstream.compile(tmp_path).run(engine="local")
    assert [1.0, 2.0] == [row["draught"] for row in done.rows("seen")]
    assert [7] == [row["mmsi"] for row in done.rows("status")]


def test_explaining_a_vessel_says_what_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "port.rules").write_text(RULES)
    given = port(math.nan, type="chemical")
    situation = explain_situation(tmp_path / "port.rules", "7", given)
    assert "undecided" == situation.status
    values = {name: value for line in situation.lines for name, value in line.values}
    assert ("not known", "not known") == (values["tide.height"], values["vessel.type"])
