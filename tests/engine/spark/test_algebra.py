"""Expressions of the algebra give on Spark what they give on the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream import algebra
from millstream.engine.layout import layout_for
from millstream.engine.sizes import measured
from millstream.optimiser.optimise import optimise

pytestmark = pytest.mark.spark

PORT = Path(__file__).parents[3] / "examples" / "rules" / "port" / "port.rules"


def test_constants_are_there_from_the_beginning_on_spark_too(spark: Any, tmp_path: Path) -> None:
    xs = algebra.stream("xs", x="integer")
    names = algebra.key_by(algebra.now({"x": 1, "name": "one"}, {"x": 3, "name": "three"}), "x")
    job = millstream.compile_flow(
        started=algebra.start_with(xs, {"x": 7}, {"x": None}),
        same=algebra.never(x="integer").merge(xs),
        named=algebra.key_by(xs.map(lambda r: {"k": r.x % 2, "x": r.x}), "k").foreign_join(
            names, on="x"
        ),
    )
    (tmp_path / "xs.csv").write_text("_time,x\n" + "".join(f"{n},{n % 4}\n" for n in range(1, 9)))
    given = {"xs": tmp_path / "xs.csv"}
    finished = job.run(given, engine="spark", session=spark, partitions=2, buckets=4)
    expected = job.run(given, engine="reference")
    for output in ("started", "same", "named"):
        assert expected.rows(output) and expected.rows(output) == finished.rows(output)


def test_a_port_is_one_stage_on_spark(spark: Any) -> None:
    """Cut by keys it would change its places some thirty times; its tables are copied instead."""
    job = millstream.compile(PORT)
    program = optimise(job.program)
    layout = layout_for(program, measured(program.inputs, job.locations({})))
    assert 1 == len(layout.stages) and not layout.has_one_bucket(0)
    finished = job.run(engine="spark", session=spark, partitions=2, buckets=4, batch_bytes=300)
    expected = job.run(engine="reference")
    for output in ("status", "warnings"):
        assert expected.rows(output) and expected.rows(output) == finished.rows(output)
