"""Rules on Spark: what is not known there is what is not known elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream

pytestmark = pytest.mark.spark

VESSELS = """_time,mmsi,name,type,departed,draught,beam
1,7,N,chemical,false,5,5
2,,nobody,Tanker,false,5,5
3,8,N,Tanker,false,NaN,5
4,9,N,Tanker,false,1e308,1e308
5,10,N,Tanker,false,5,5
"""


def test_what_says_nothing_is_not_known_on_spark_too(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "vessels.csv").write_text(VESSELS)
    text = (
        "require vessel.draught <= 20 m or vessel.draught * vessel.beam >= 1 m^2\n"
        "when vessel.type == Chemical: require vessel.draught <= 3 m\n"
    )
    job = millstream.compile(text=text, language="rules")
    given = {"vessels": tmp_path / "vessels.csv"}
    finished = job.run(given, engine="spark", session=spark, partitions=2, buckets=4)
    expected = job.run(given, engine="reference")
    assert expected.rows("status") == finished.rows("status")
    assert {7: "undecided", 8: "undecided", 9: "undecided", 10: "allowed"} == {
        row["mmsi"]: row["status"] for row in finished.rows("status")
    }
    assert 1 == finished.report.inputs["vessels"].rejected
    assert expected.report.first_rejections == finished.report.first_rejections
