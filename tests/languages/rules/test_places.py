"""Distances and areas: beside the geometry of others, and as people write them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
import shapely

import millstream
from millstream.calculus.types import Value
from millstream.errors import CheckError
from millstream.languages.rules.measured import RADIUS

ENGINES = pytest.mark.parametrize("engine", ["reference", "local"])
Point = tuple[float, float]
RING = (
    "POLYGON ((4 51, 5 51, 5.5 51.5, 5 52, 4 52, 4.4 51.5, 4 51), "
    "(4.6 51.4, 4.8 51.4, 4.7 51.7, 4.6 51.4))"
)
DOMAIN = """subject = "ship"
[entity.ship]
input = "ships"
key = "id"
columns = {{ id = "integer", buoy = "text", {columns} }}
[entity.buoy]
input = "buoys"
key = "name"
of = "ship.buoy"
columns = {{ name = "text", {columns} }}
"""
ON_GLOBE = DOMAIN.format(columns='latitude = "degrees", longitude = "degrees"')


def asked(folder: Path, domain: str, rule: str, inputs: dict[str, list[dict[str, Value]]],
          engine: str) -> dict[Value, tuple[str, str]]:  # fmt: skip
    """The status and the reasons of each ship."""
    (folder / "sea.toml").write_text(domain)
    (folder / "sea.rules").write_text(f'domain "sea.toml"\n{rule}\n')
    job = millstream.compile(str(folder / "sea.rules"))
    wanted = {name: rows for name, rows in inputs.items() if name in job.program.input_names}
    rows = job.run(wanted, engine=engine).rows("status")
    return {r["id"]: (str(r["status"]), str(r["reasons"])) for r in rows if r["_weight"] == 1}


def great_circle(one: Point, other: Point) -> float:
    """By the vectors of two points, in metres."""
    a, b = (
        (math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat))
        for lat, lon in (map(math.radians, p) for p in (one, other))
    )
    return 2 * RADIUS * math.atan2(math.dist(a, b), math.dist(a, tuple(-x for x in b)))


@ENGINES
def test_a_distance_is_along_a_great_circle(tmp_path: Path, engine: str) -> None:
    draw = random.Random(3)
    pairs = [tuple((draw.uniform(-90, 90), draw.uniform(-180, 180)) for _ in "ab")
             for _ in range(20)]  # fmt: skip
    pairs += [((51.0, 4.0), (51.0, 4.00001)), ((0.0, 179.99), (0.0, -179.99)),
              ((90.0, 0.0), (-90.0, 0.0)), ((10.0, 20.0), (10.0, 20.0)),
              ((12.0, 30.0), (-12.0, -150.0))]  # fmt: skip
    ships: list[dict[str, Value]] = []
    buoys: list[dict[str, Value]] = []
    for n, ((north, east), (other_north, other_east)) in enumerate(pairs):
        ships.append({"_time": 1, "id": n, "buoy": f"b{n}", "latitude": north, "longitude": east})
        buoys.append({"_time": 0, "name": f"b{n}", "latitude": other_north,
                      "longitude": other_east})  # fmt: skip
    found = asked(tmp_path, ON_GLOBE, "require distance(ship, buoy) <= -1 m",
                  {"ships": ships, "buoys": buoys}, engine)  # fmt: skip
    for n, (one, other) in enumerate(pairs):
        text = found[n][1].rpartition("= ")[2].removesuffix(" m")
        # Across the whole globe a tenth of a metre is what is left of the digits.
        assert float(text) == pytest.approx(great_circle(one, other), rel=1e-9, abs=0.2), n


@ENGINES
def test_an_area_is_what_its_outline_encloses(tmp_path: Path, engine: str) -> None:
    draw = random.Random(4)
    shape = shapely.from_wkt(RING)
    points = [(draw.uniform(50.9, 52.1), draw.uniform(3.9, 5.6)) for _ in range(80)]
    ships: list[dict[str, Value]] = [
        {"_time": 1, "id": n, "buoy": "b", "latitude": north, "longitude": east}
        for n, (north, east) in enumerate(points)
    ]
    ships.append({"_time": 1, "id": 999, "buoy": "b", "latitude": None, "longitude": 4.5})
    domain = f'{ON_GLOBE}[area.roads]\nwkt = "{RING}"\n'
    found = asked(tmp_path, domain, "require inside(ship, roads)", {"ships": ships}, engine)
    assert "undecided" == found[999][0]
    for n, (north, east) in enumerate(points):
        is_inside = shapely.contains_xy(shape, east, north)
        assert ("allowed" if is_inside else "restricted") == found[n][0], points[n]


def test_a_plane_has_the_unit_of_its_columns(tmp_path: Path) -> None:
    domain = DOMAIN.format(columns='x = "km", y = "km"')
    domain += '[place.gate]\nx = 0\ny = 0.0\nunit = "km"\n'
    ship: dict[str, Value] = {"_time": 1, "id": 1, "buoy": "b", "x": 3.0, "y": 4.0}
    found = asked(tmp_path, domain, "require distance(ship, gate) <= 4900 m", {"ships": [ship]},
                  "reference")  # fmt: skip
    told = "line 2: distance(ship, gate) <= 4900 m, but distance(ship, gate) = 5 km"
    assert {1: ("restricted", told)} == found


def test_areas_are_read_from_a_file_by_their_names(tmp_path: Path) -> None:
    def feature(name: str, left: float) -> dict[str, object]:
        square = [[left, 51], [left + 1, 51], [left + 1, 52], [left, 52], [left, 51]]
        return {"type": "Feature", "properties": {"name": name},
                "geometry": {"type": "Polygon", "coordinates": [square]}}  # fmt: skip

    collection = {"type": "FeatureCollection", "features": [feature("A", 4), feature("B", 5)]}
    (tmp_path / "areas.geojson").write_text(json.dumps(collection))
    domain = f'{ON_GLOBE}[area.second]\nfile = "areas.geojson"\nname = "B"\n'
    ships: list[dict[str, Value]] = [
        {"_time": 1, "id": n, "buoy": "b", "latitude": 51.5, "longitude": east}
        for n, east in enumerate((4.5, 5.0, 5.5))
    ]
    found = asked(tmp_path, domain, "require not inside(ship, second)", {"ships": ships},
                  "reference")  # fmt: skip
    assert ["allowed", "restricted", "restricted"] == [found[n][0] for n in range(3)]


@pytest.mark.parametrize(
    ("more", "rule", "message"),
    [
        ("", "require distance(ship, buoi) < 3 m", 'unknown name "buoi"'),
        ("", "require distance(ship, buoy) < 3 s", "cannot compare a length with a time"),
        ("", "require inside(ship, roads)", 'unknown area "roads"'),
        ('[area.roads]\nwkt = "POINT (3 4)"\n', "require inside(ship, roads)", "this is a Point"),
        ('[area.roads]\nwkt = "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"\n',
         "require inside(ship, roads)", "Self-intersection"),
        ('[area.roads]\nwkt = "POLYGON 3"\n', "require inside(ship, roads)", "this is no outline"),
        ('[area.roads]\nfile = "none.geojson"\n', "require inside(ship, roads)",
         "cannot read none.geojson"),
        ("[area.roads]\n", "require inside(ship, roads)", "an area has an outline"),
        ("[place.gate]\nlatitude = 3\n", "require distance(ship, gate) < 3 m", "a place has"),
        (f'[area.roads]\nwkt = "{RING}"\n', "require distance(ship, roads) < 3 m",
         '"roads" is an area, not a point'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_places_is_said(
    tmp_path: Path, more: str, rule: str, message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        asked(tmp_path, ON_GLOBE + more, rule, {}, "reference")
