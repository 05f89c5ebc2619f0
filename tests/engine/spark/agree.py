"""Spark against the reference, on one program and its events, in files that are cut anywhere."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from millstream.api import Compiled
from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from tests.engine.written import written
from tests.laws.runs import Collector, on_reference


def agree_on_spark(
    session: Any, program: Program, events: dict[str, list[Event]], folder: Path, seed: int,
    *, optimise: bool = True,
) -> None:  # fmt: skip
    """Row for row, and what is told of every input, on one, two or four partitions."""
    # A run that ends takes its files in time order, so that nothing is late.
    in_order = {name: sorted(given, key=lambda e: e.time) for name, given in events.items()}
    expected, expected_report = on_reference(program, in_order)
    chance = random.Random(seed)
    collectors = {q: Collector() for q in program.outputs}
    finished = Compiled(program).run(
        written(program, events, folder, chance), collectors, engine="spark", session=session,
        partitions=chance.choice((1, 2, 4)), buckets=4, batch_bytes=300, optimise=optimise,
    )  # fmt: skip
    assert expected == {q: c.rows for q, c in collectors.items()}
    for one in program.inputs:
        # Readers of files reject rows without a key; what is given as a list is all read.
        if not one.keys:
            assert expected_report.inputs[one.name] == finished.report.inputs[one.name]
