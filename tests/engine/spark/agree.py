"""Spark against the reference, on one program and its files."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millstream.api import Compiled
from millstream.calculus.graph import Program
from millstream.connectors.location import Location
from millstream.engine.job import InputCounts
from millstream.errors import AllRejected
from tests.laws.runs import Collector, Rows
from tests.laws.test_checkpoints import in_one_go


def agree_on_spark(
    session: Any, program: Program, locations: dict[str, Location], seed: int, *,
    optimise: bool = True,
) -> None:  # fmt: skip
    """Row for row, and what is told of every input, on one, two or four partitions."""
    chance = random.Random(seed)

    def on_spark() -> tuple[dict[str, Rows], dict[str, InputCounts]]:
        collectors = {name: Collector() for name in program.outputs}
        finished = Compiled(program).run(
            locations, collectors, engine="spark", session=session,
            partitions=chance.choice((1, 2, 4)), buckets=4, batch_bytes=300, optimise=optimise,
        )  # fmt: skip
        return {name: c.rows for name, c in collectors.items()}, finished.report.inputs

    try:
        expected = in_one_go(program, locations)
    except AllRejected:
        with pytest.raises(AllRejected):
            on_spark()
        return
    assert expected == on_spark()
