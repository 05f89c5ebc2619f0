"""The wind over a port: what all sensors say together, and what one of them says over time.

The mean direction of the wind is that of the sum of vectors, which is a group of one's own;
speeds are averaged, and the greatest is read off the bag of all speeds.
"""

from __future__ import annotations

from pathlib import Path

import millstream
from millstream import algebra

measured = algebra.stream("measured", sensor="text", speed="number", east="number", north="number")
sensors = algebra.key_by(measured, "sensor")

drift = algebra.Group(
    empty={"east": 0.0, "north": 0.0},
    combine=lambda a, b: {"east": a.east + b.east, "north": a.north + b.north},
    inverse=lambda a: {"east": -a.east, "north": -a.north},
)
port = sensors.reduce(
    sensors=algebra.count(),
    mean=algebra.average(lambda s: s.speed),
    gust=algebra.maximum(lambda s: s.speed),
    drift=drift,
)
pier = measured.filter(lambda s: s.sensor == "pier").map(lambda s: {"speed": s.speed})
turns = algebra.pairwise(algebra.distinct_until_changed(pier)).map(
    lambda s: {"from": s.speed_1, "to": s.speed_2}
)
calm = algebra.debounce(measured.filter(lambda s: s.speed < 5), "2 min", by="sensor")


def program() -> millstream.Compiled:
    return millstream.compile_flow(port=port, turns=turns, calm=calm)


if __name__ == "__main__":
    job = program().at(Path(__file__).parent)
    finished = job.run()
    for name in job.program.outputs:
        print(name, *finished.rows(name), sep="\n    ")
