"""Expressions of the algebra give on Spark what they give on the reference."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import millstream
from millstream import algebra
from millstream.algebra import program_of
from millstream.api import Compiled
from millstream.backends.reference.feed import Event
from millstream.engine.layout import layout_for
from millstream.optimiser.optimise import optimise
from tests.algebra import generate
from tests.engine.written import written
from tests.laws.runs import Collector, on_reference

pytestmark = pytest.mark.spark

PORT = Path(__file__).parents[2] / "examples" / "rules" / "port" / "port.rules"


@settings(
    max_examples=4, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(st.data(), st.integers(0, 1000))
def test_generated_expressions_give_what_the_reference_gives(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, seed: int
) -> None:
    table = data.draw(generate.tables())
    program = program_of(table=table, reduced=generate.reductions(table), log=table.changelog())
    drawn = data.draw(generate.events())
    events = {
        one.name: [Event(time, row) for time, row in drawn[one.name]] for one in program.inputs
    }
    expected, _ = on_reference(program, events)
    locations = written(program, events, tmp_path_factory.mktemp("case"), random.Random(seed))
    collectors = {q: Collector() for q in program.outputs}
    Compiled(program).run(
        locations, collectors, engine="spark", session=spark, partitions=4, buckets=4,
        batch_bytes=300,
    )  # fmt: skip
    assert expected == {q: c.rows for q, c in collectors.items()}


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
    """Its key changes some thirty times, and every stage costs every batch its time."""
    job = millstream.compile(PORT)
    assert layout_for(optimise(job.program), 64, None).is_together
    finished = job.run(engine="spark", session=spark, partitions=2, buckets=4, batch_bytes=300)
    expected = job.run(engine="reference")
    for output in ("status", "warnings"):
        assert expected.rows(output) and expected.rows(output) == finished.rows(output)
