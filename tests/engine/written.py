"""Events of generated programs as files, for engines that read files."""

from __future__ import annotations

import random
from pathlib import Path

from millstream.calculus.graph import Program
from millstream.connectors.location import Location, parse_location
from millstream.connectors.write import open_writer
from millstream.engine.reference.feed import Event
from millstream.plan.batch import batch_of


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
