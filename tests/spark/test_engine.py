"""The Spark engine gives what the reference gives, however the input is cut."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from millstream.api import Compiled
from millstream.backends.reference.feed import Event
from millstream.calculus.graph import Program
from millstream.connectors.location import Location, parse_location
from millstream.connectors.write import open_writer
from millstream.plan.batch import batch_of
from tests.examples.test_examples import example_folders, program_of, table
from tests.generate import inputs_for, programs
from tests.laws.runs import Collector, on_reference

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("folder", example_folders(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_example_gives_the_expected_output(folder: Path, spark: Any, tmp_path: Path) -> None:
    compiled = program_of(folder)
    outputs = {q: tmp_path / f"{q}.csv" for q in compiled.program.outputs}
    compiled.run(outputs=outputs, engine="spark", session=spark, partitions=2)
    expected = {p.stem: table(p) for p in (folder / "expected").glob("*.csv")}
    assert expected == {q: table(path) for q, path in outputs.items()}


def written(
    program: Program, events: dict[str, list[Event]], folder: Path, cuts: random.Random
) -> dict[str, Location]:
    """The events as several Parquet files per input, cut anywhere."""
    locations = {}
    for one in program.inputs:
        mine = events[one.name]
        places = sorted({0, len(mine), *(cuts.randint(0, len(mine)) for _ in range(2))})
        (folder / one.name).mkdir(parents=True)
        for number, (a, b) in enumerate(zip(places, places[1:] or places, strict=False)):
            part = mine[a:b]
            weights = [e.weight for e in part] if one.type.is_relation else None
            location = parse_location(f"{one.name}/{number}.parquet", folder)
            writer = open_writer(location, one.type)
            writer.write(batch_of(one.type, [e.time for e in part], [e.row for e in part], weights))
            writer.close()
        locations[one.name] = parse_location(f"{one.name}/*.parquet", folder)
    return locations


@settings(
    max_examples=12, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(st.data(), st.integers(0, 1000))
def test_generated_programs_give_what_the_reference_gives(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, seed: int
) -> None:
    program = data.draw(programs())
    events = data.draw(inputs_for(program))
    expected, expected_report = on_reference(program, events)
    folder = tmp_path_factory.mktemp("case")
    locations = written(program, events, folder, random.Random(seed))
    collectors = {q: Collector() for q in program.outputs}
    finished = Compiled(program).run(
        locations, collectors, engine="spark", session=spark, partitions=2, buckets=4,
        batch_bytes=300, optimise=False,
    )  # fmt: skip
    assert expected == {q: c.rows for q, c in collectors.items()}
    assert expected_report.inputs == finished.report.inputs
