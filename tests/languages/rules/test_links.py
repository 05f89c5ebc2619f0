"""How things find each other: the nearest on the globe, predictions, the end of what lasts."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream import engines
from millstream.calculus.types import Value
from millstream.cli.main import main
from millstream.engine import warm
from millstream.languages.rules.situation import explain_situation

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])
HOUR = 3_600_000_000
Rows = list[dict[str, Value]]


def vessel(mmsi: int, **values: Value) -> dict[str, Value]:
    given: dict[str, Value] = {
        "_time": 1, "mmsi": mmsi, "name": "N", "departed": False, "draught": 5.0,
        "destination": "A", "eta": 5 * HOUR,
    }  # fmt: skip
    return given | values


def tides_read(vessels: Rows, berths: Rows, sensors: Rows, tides: Rows, engine: str) -> list[Value]:
    """The height of the tide that is read for each vessel, as its reason tells it."""
    job = millstream.compile(text="require tide.height <= -1 m\n", language="rules")
    given = {"vessels": vessels, "berths": berths, "sensors": sensors, "tides": tides}
    rows = sorted(job.run(given, engine=engine).rows("status"), key=lambda r: str(r["mmsi"]))
    return [str(row["reasons"]).rpartition("= ")[2] or None for row in rows]


@ENGINES
def test_a_prediction_is_valid_up_to_the_end_of_what_it_lasts(engine: str) -> None:
    there: dict[str, Value] = {"_time": 0, "latitude": 51.0, "longitude": 4.0}
    ends = [vessel(1, eta=5 * HOUR), vessel(2, eta=6 * HOUR), vessel(3, eta=6 * HOUR + 1)]
    found = tides_read(
        ends, [{**there, "name": "A", "depth": 9.0}], [{**there, "sensor": "s", "kind": "Tide"}],
        [{"_time": 0, "sensor": "s", "valid": 5 * HOUR, "height": 2.0}], engine,
    )  # fmt: skip
    assert ["2 m", "2 m"] == found[:2]
    assert "not known" in str(found[2])


def distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The angle between two points on the globe, by their vectors."""
    a, b = (
        (math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat))
        for lat, lon in (map(math.radians, p) for p in (one, other))
    )
    return math.atan2(math.dist(a, b), math.dist(a, tuple(-x for x in b)))


def points(generator: random.Random, count: int) -> list[tuple[float, float]]:
    return [(generator.uniform(-89, 89), generator.uniform(-180, 180)) for _ in range(count)]


@ENGINES
def test_nearest_is_nearest_on_the_globe(engine: str) -> None:
    generator = random.Random(7)
    berths, sensors = points(generator, 40), points(generator, 12)
    berths += [(80.0, 179.9), (-85.0, -179.9), (60.0, 10.0)]
    sensors += [(80.5, -179.0), (60.0, 13.0), (62.0, 10.0)]
    found = tides_read(
        [vessel(1000 + n, destination=f"b{n}") for n in range(len(berths))],
        [{"_time": 0, "name": f"b{n}", "latitude": p[0], "longitude": p[1], "depth": 9.0}
         for n, p in enumerate(berths)],
        [{"_time": 0, "sensor": f"s{n}", "kind": "Tide", "latitude": p[0], "longitude": p[1]}
         for n, p in enumerate(sensors)],
        [{"_time": 0, "sensor": f"s{n}", "valid": 5 * HOUR, "height": float(n)}
         for n in range(len(sensors))], engine,
    )  # fmt: skip
    nearest = [min(range(len(sensors)), key=lambda n: distance(b, sensors[n])) for b in berths]
    assert [f"{n} m" for n in nearest] == found


def test_files_beside_the_rules_count_when_an_engine_is_chosen_to_explain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    engine = engines.engine_named

    def noted(name: str) -> Any:
        names.append(name)
        return engine(name)

    monkeypatch.setattr(engines, "engine_named", noted)
    monkeypatch.setattr(warm, "cache_directory", lambda: tmp_path / "cache")
    monkeypatch.setenv(warm.SETTING, "inf")
    (tmp_path / "port.rules").write_text("require vessel.draught < 9 m\n")
    rows = [f"{n},{n % 50},N,{n % 12},false\n" for n in range(4000)]
    head = "_time,mmsi,name,draught,departed\n"
    started = []
    for count in (50, 4000):
        (tmp_path / "vessels.csv").write_text(head + "".join(rows[:count]))
        assert "allowed" == explain_situation(tmp_path / "port.rules", "1").status
        started.append(list(names))
    assert [[], ["local"]] == started


def test_explaining_a_vessel_heeds_the_unit_of_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "port.rules").write_text(
        "require vessel.draught < 9 m\nrequire vessel.beam < 9 m\n"
    )
    head = "_time,mmsi,name,draught,beam,departed\n"
    (tmp_path / "vessels.csv").write_text(f"{head}1735689600,7,N,5,5,false\n")
    asked = ["explain", str(tmp_path / "port.rules"), "--vessel", "7"]
    assert 2 == main(asked)
    assert "--unit vessels=s" in capsys.readouterr().err
    for unit in ("s", "vessels=s"):
        assert 0 == main([*asked, "--unit", unit])
        assert "vessel 7: allowed" in capsys.readouterr().out
