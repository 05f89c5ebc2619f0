"""Expressions of the algebra give on Spark what they give on the reference."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from millstream.algebra import program_of
from millstream.api import Compiled
from millstream.backends.reference.feed import Event
from tests.algebra import generate
from tests.laws.runs import Collector, on_reference
from tests.spark.written import written

pytestmark = pytest.mark.spark


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
        locations, collectors, engine="spark", session=spark, partitions=2, buckets=4,
        batch_bytes=300,
    )  # fmt: skip
    assert expected == {q: c.rows for q, c in collectors.items()}
