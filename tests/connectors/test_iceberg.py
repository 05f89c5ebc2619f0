"""Tables of Iceberg as inputs and outputs, with a catalog of pyiceberg's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import millstream
from millstream.connectors.location import parse_location, seen_from
from millstream.errors import MillstreamError
from tests.connectors.test_elsewhere import PROGRAM, START
from tests.connectors.test_sent import folder_of, rows

pytest.importorskip("pyiceberg")
#: pyiceberg warns of its own code.
pytestmark = pytest.mark.filterwarnings("ignore")


def catalog(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(exist_ok=True)
    return SqlCatalog("default", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())


def trades(*numbers: int) -> pa.Table:
    columns = {"at": [START + n for n in numbers], "n": list(numbers)}
    return pa.table(columns, schema=pa.schema([("at", pa.int64()), ("n", pa.int64())]))


def table(folder: Path, *numbers: int) -> Any:
    made = catalog(folder)
    made.create_namespace("shop")
    found = made.create_table("shop.trades", schema=trades().schema)
    if numbers:
        found.append(trades(*numbers))
    return found


def run(given: Any, place: str | None = None, **options: Any) -> list[Any]:
    outputs = {} if place is None else {"out": place}
    job = millstream.compile(text=PROGRAM)
    found = job.run({"trades": given}, outputs, engine="local", **options)
    return [] if place else [row["n"] for row in found.rows("out")]


def kept(folder: Path) -> list[int]:
    found = catalog(folder).load_table("shop.results").scan().to_arrow()
    return sorted(found["n"].to_pylist())


def test_a_table_is_read_and_what_is_added_is_read_on(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    there = table(lake)
    place = f"iceberg:{lake}/shop.trades"
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    assert run(place, **options) == []
    there.append(trades(1, 2))
    there.append(trades(3))
    assert run(place, **options) == [1, 2, 3]
    assert run(place, **options) == [1, 2, 3]
    assert run(place) == [1, 2, 3]
    there.delete("n = 2")
    with pytest.raises(MillstreamError, match="takes rows away or changes them"):
        run(place, **options)


def test_a_batch_is_a_snapshot_that_is_there_once(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    place = f"iceberg:{lake}/shop.results"
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    for first in (0, 3, 3):
        run(folder_of(tmp_path / "in", first, first + 3), place, **options)
    assert kept(lake) == list(range(6))
    # A run that starts from nothing replaces what an earlier one has written.
    run(rows(7, 9), place)
    assert kept(lake) == [7, 8]


def test_a_delivered_batch_is_not_delivered_again(tmp_path: Path) -> None:
    from millstream.calculus.types import INTEGER, QueueType, Schema
    from millstream.connectors.elsewhere.iceberg import IcebergWriter
    from millstream.plan.batch import batch_of, empty_batch

    type_ = QueueType(Schema.of(n=INTEGER), is_relation=False)
    location = parse_location(f"iceberg:{tmp_path}/lake/shop.results", Path())
    for expected in (0, 2, 2):
        writer = IcebergWriter(location, "out", type_)
        assert expected == writer.open("job", fresh=expected == 0)
        writer.write_batch(1, batch_of(type_, [1], [(5,)]))
        writer.write_batch(2, empty_batch(type_))
        assert 2 == writer.wanted_from  # a batch without rows makes no snapshot
        writer.close()
    assert kept(tmp_path / "lake") == [5]


def test_a_table_has_what_stands_after_each_batch(tmp_path: Path) -> None:
    from tests.connectors.test_delta import TOTALS

    lake = tmp_path / "lake"
    job = millstream.compile(text=TOTALS)
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck"}
    for first, expected in ((0, [(1, 1), (2, 1), (None, 1)]), (3, [(1, 2), (2, 2), (None, 2)])):
        given = folder_of(tmp_path / "in", first, first + 3)
        for _ in range(2):  # the second time nothing has come
            job.run({"trades": given}, {"out": f"iceberg:{lake}/shop.results?state"}, **options)
            found = catalog(lake).load_table("shop.results").scan().to_arrow()
            rows_found = zip(found["kind"].to_pylist(), found["c"].to_pylist(), strict=True)
            assert expected == sorted(rows_found, key=lambda row: (row[0] is None, row))


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    table(tmp_path / "lake", 1)
    for place, message in (
        (f"iceberg:{tmp_path}/none/shop.trades", "there is no catalog of Iceberg here"),
        (f"iceberg:{tmp_path}/lake/shop.tradez", 'there is no table "shop.tradez"'),
        (f"iceberg:{tmp_path}/lake/trades", "has a namespace, and a folder or a catalog"),
        ("iceberg:shop.trades", "has a namespace, and a folder or a catalog"),
        ("iceberg:shop.trades?catalogue=x", 'unknown setting "catalogue"'),
        ("iceberg:shop.trades?catalog=nobody", "the catalog says|the table says"),
    ):
        with pytest.raises(MillstreamError, match=message):
            run(place)
    with pytest.raises(MillstreamError, match="not results of Millstream"):
        run(rows(0, 1), f"iceberg:{tmp_path}/lake/shop.trades")
    assert not (tmp_path / "none").exists()


def test_an_address_is_meant_from_a_folder() -> None:
    assert "iceberg:p/lake/shop.t" == seen_from("iceberg:lake/shop.t", Path("p"))
    assert "iceberg:shop.t?catalog=x" == seen_from("iceberg:shop.t?catalog=x", Path("p"))
