"""Events for examples on Spark: one Parquet file per input and batch, kept between runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_data import kept

SECOND = 1_000_000
START = 1_772_323_200 * SECOND
#: Cars report every half minute, vessels come and change; prices are of auctions that are open.
CARS, BIDDERS, VESSELS, BERTHS = 20_000, 5_000, 50_000, 200
KINDS = np.array(["Barge", "Bulk", "Chemical", "Container", "Cruise", "Tanker"])
Columns = dict[str, Any]


@dataclass(frozen=True)
class Events:
    """The inputs of an example: a folder for each of its inputs."""

    example: str
    rows: int
    rows_per_file: int

    @property
    def files(self) -> int:
        return self.rows // self.rows_per_file

    @property
    def folder(self) -> Path:
        name = f"cores-{self.example}-{self.rows}-{self.rows_per_file}"
        return kept(name, (self.tables(number) for number in range(self.files)))

    def tables(self, number: int) -> dict[str, Any]:
        make = {"linear_road": road, "auction_site": auctions, "port": port}[self.example]
        numbers = np.random.default_rng([len(self.example), number])
        found = make(numbers, number * self.rows_per_file, self.rows_per_file)
        return {name: pa.table(columns) for name, columns in found.items()}


def _at(first: int, count: int, step: int) -> Any:
    return pa.array(START + (first + np.arange(count)) * step, pa.timestamp("us", tz="UTC"))


def road(numbers: Any, first: int, count: int) -> dict[str, Columns]:
    """Cars on ten roads, each with a pace of its own; some stand still."""
    turn = first + np.arange(count)
    car, report = turn % CARS, turn // CARS
    is_still = car % 97 == 0
    pace = np.where(is_still, 0, 20 + car % 60)
    place = (car * 7919 + report * pace * 44) % (100 * 5280)
    place = np.where(is_still, (car % 500) // 97 * 5280, place)
    return {"reports": {
        "_time": _at(first, count, 30 * SECOND // CARS), "car": car,
        "speed": np.where(is_still, 0, np.maximum(0, pace + numbers.integers(-5, 6, count))),
        "xway": car % 10, "lane": car % 4, "dir": car // 10 % 2, "pos": place,
    }}  # fmt: skip


def auctions(numbers: Any, first: int, count: int) -> dict[str, Columns]:
    """Of fifty events one is a person and three are auctions, as in NEXMark."""
    persons, opened = count // 50, 3 * count // 50
    bids = count - persons - opened
    step = 2_000
    ids = first // 50 + np.arange(persons)
    of = 3 * first // 50 + np.arange(opened)
    chosen = np.sort(numbers.integers(0, count, bids))
    # Bids are on the auctions of the last four minutes.
    newest = 3 * (first + chosen) // 50
    bid_on = np.maximum(0, newest - numbers.integers(1, 4 * 60 * SECOND // step * 3 // 50, bids))
    states = np.array(["OR", "ID", "CA", "NY", "WA", "TX"])
    return {
        "persons": {
            "_time": _at(first // 50, persons, 50 * step), "id": ids,
            "name": [f"person {n}" for n in ids], "city": [f"city {n % 300}" for n in ids],
            "state": states[ids % 6],
        },
        "auctions": {
            "_time": pa.array(START + of * (50 * step // 3), pa.timestamp("us", tz="UTC")),
            "id": of, "item": [f"item {n % 900}" for n in of],
            "seller": np.maximum(0, of // 3 - numbers.integers(0, 500, opened)),
            "category": of % 20, "reserve": numbers.integers(10, 900, opened),
        },
        "bids": {
            "_time": pa.array(START + (first + chosen) * step, pa.timestamp("us", tz="UTC")),
            "auction": bid_on, "bidder": numbers.integers(0, BIDDERS, bids),
            "price": numbers.integers(1, 1_000_000, bids),
        },
    }  # fmt: skip


def port(numbers: Any, first: int, count: int) -> dict[str, Columns]:
    """Vessels that tell again and again where they go; now and then wind, tide and stream."""
    step = 20_000
    at = START + (first + np.arange(count)) * step
    mmsi = numbers.integers(0, VESSELS, count)
    found: dict[str, Columns] = {"vessels": {
        "_time": pa.array(at, pa.timestamp("us", tz="UTC")), "mmsi": 244_000_000 + mmsi,
        "name": [f"vessel {n}" for n in mmsi], "type": KINDS[mmsi % len(KINDS)],
        "draught": 4.0 + mmsi % 13, "length": 60.0 + mmsi % 340, "beam": 10.0 + mmsi % 50,
        "destination": [f"berth {n}" for n in mmsi % BERTHS],
        "eta": pa.array(at + 3600 * SECOND, pa.timestamp("us", tz="UTC")),
        "departed": numbers.random(count) < 0.02,
    }}  # fmt: skip
    told = START + (first + np.arange(0, count, max(1, count // 2))) * step
    when = pa.array(told, pa.timestamp("us", tz="UTC"))
    valid = pa.array(told + 7200 * SECOND, pa.timestamp("us", tz="UTC"))
    few = len(told)
    for name, columns in {
        "winds": {"velocity": numbers.integers(5, 40, few) * 1.0,
                  "direction": numbers.integers(0, 360, few) * 1.0},
        "tides": {"height": numbers.integers(-10, 20, few) / 10},
        "streams": {"velocity": numbers.integers(1, 20, few) / 10},
    }.items():  # fmt: skip
        kind = name[:-1].title()
        sensor = [f"{kind} {n % 10}" for n in range(few)]
        found[name] = {"_time": when, "sensor": sensor, "valid": valid, **columns}
    found["tugs"] = {"_time": when, "available": numbers.integers(1, 9, few)}
    return found if first else found | _places()


def _places() -> dict[str, Columns]:
    """What stands in the port: berths, and ten sensors of each kind."""
    kinds = ("Wind", "Tide", "Stream")
    berth, sensor = np.arange(BERTHS), np.arange(10 * len(kinds))
    berths_since, sensors_since = (
        pa.array([START] * n, pa.timestamp("us", tz="UTC")) for n in (BERTHS, len(sensor))
    )
    return {
        "berths": {
            "_time": berths_since, "name": [f"berth {n}" for n in berth],
            "basin": [f"basin {n % 20}" for n in berth], "depth": 8.0 + berth % 12,
            "latitude": 51.90 + berth % 14 / 100, "longitude": 4.0 + berth % 50 / 100,
        },
        "sensors": {
            "_time": sensors_since, "sensor": [f"{kinds[n // 10]} {n % 10}" for n in sensor],
            "kind": [kinds[n // 10] for n in sensor],
            "latitude": 51.90 + sensor % 10 / 70, "longitude": 4.0 + sensor % 10 / 20,
        },
    }  # fmt: skip
