"""A port with many rules and many vessels: how long until one tide update is answered."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream.backends.local.run import plan_for
from millstream.calculus.graph import Input, Program
from millstream.kernels.rounds import StepRunner
from millstream.languages.rules.load import load
from millstream.optimiser.optimise import optimise
from millstream.plan.batch import batch_of, empty_batch
from millstream.source import Source

BERTHS = 200
UPDATES = 40
KINDS = ("Barge", "Bulk", "Chemical", "Container", "Tanker")

#: The tide as measured, so that every vessel that is near a sensor hears of each update.
DOMAIN = """
extends = "port"

[entity.gauge]
input = "gauges"
key = "sensor"
nearest = { to = "berth", among = "sensor", where = "sensor.kind == Tide" }
columns = { sensor = "text", height = "m" }
"""


def rules_tide(scale: float) -> list[dict[str, Any]]:
    """500 rules over 5,000 vessels; one tide update, from its arrival to all changed verdicts.

    None of the 500 rules is implied by another. First the worst that can be: all vessels are
    near the one sensor. Then ten sensors. About one vessel in twelve is restricted. Times are
    medians by the clock and by what the processor gave us, and the longest of 40 updates.
    """
    vessels, rules = max(int(5000 * scale), 10), max(int(500 * scale), 5)
    return [_measured(vessels, rules, sensors) for sensors in (1, 10)]


BENCHMARKS: dict[str, Callable[[float], list[dict[str, Any]]]] = {"rules_tide": rules_tide}


def _measured(vessels: int, rules: int, sensors: int) -> dict[str, Any]:
    port = Port(random.Random(3), sensors)
    start = time.perf_counter()
    program = port.program(rules)
    engine = StepRunner(plan_for(program))
    ready = time.perf_counter() - start
    filled = {
        one.name: batch_of(one.type, [1] * len(rows), rows)
        for one in program.inputs
        for rows in [[_row(one, found) for found in port.rows(one.name, vessels)]]
    }
    parts = [queues["status"] for queues in engine.round(filled, 1, {})]
    restricted = sum(row[2] == "restricted" for status in parts for row in status.rows())
    port.update(engine, program, 2)  # what is said for the first time
    walls, cpus, changes = [], [], []
    for number in range(UPDATES):
        wall, cpu = time.perf_counter(), time.process_time()
        changes.append(port.update(engine, program, 3 + number))
        walls.append(1000 * (time.perf_counter() - wall))
        cpus.append(1000 * (time.process_time() - cpu))
    return {
        "vessels": vessels, "rules": rules, "sensors": sensors, "restricted": restricted,
        "verdicts_changed": round(statistics.median(changes)),
        "ms": round(statistics.median(walls), 1), "ms_cpu": round(statistics.median(cpus), 1),
        "ms_longest": round(max(walls), 1), "ready_s": round(ready, 1),
    }  # fmt: skip


class Port:
    """Mutable: its random numbers."""

    def __init__(self, numbers: random.Random, sensors: int) -> None:
        self.numbers = numbers
        self.sensors = sensors
        self.berths = [f"berth {n}" for n in range(BERTHS)]

    def program(self, rules: int) -> Program:
        text = 'domain "bench.toml"\n' + "\n".join(self.rule(n) for n in range(rules)) + "\n"
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bench.toml").write_text(DOMAIN)
            found = load(Source(f"{folder}/bench.rules", text))
        dropped = [n for n in found.notes if n.startswith("dropped")]
        assert not dropped, dropped[0]
        return optimise(found.program)

    def rule(self, n: int) -> str:
        """Each with a factor of its own, so that none implies another."""
        some, factor, berth = self.numbers.uniform, f"{1 + n / 1000:.3f}", self.berths[n % BERTHS]
        match n % 5:
            case 0 | 1:
                return (
                    f'location "{berth}":\n    when vessel.draught >= {some(8, 17):.2f} m:\n'
                    f"        require berth.depth + {factor} * gauge.height - vessel.draught "
                    f">= {some(0, 6):.2f} m"
                )
            case 2:
                return (
                    f'location "{berth}":\n    require {factor} * gauge.height * vessel.beam '
                    f">= {some(0, 1):.2f} m^2"
                )
            case 3:
                return (
                    f'location "{berth}":\n    when vessel.type == Tanker and vessel.length > '
                    f"{some(100, 200):.1f} m:\n"
                    f"        require {factor} * gauge.height + 0.01 * vessel.beam "
                    f">= {some(0, 1):.2f} m"
                )
            case _:
                return (
                    f"when vessel.length >= {some(350, 380):.2f} m and vessel.beam >= "
                    f"{some(40, 48):.2f} m:\n    require {factor} * gauge.height + berth.depth "
                    f">= {some(12, 15):.2f} m"
                )

    def rows(self, name: str, vessels: int) -> list[dict[str, Any]]:
        some, choose = self.numbers.uniform, self.numbers.choice
        match name:
            case "vessels":
                return [
                    {"mmsi": 200_000_000 + n, "name": f"vessel {n}", "type": choose(KINDS),
                     "draught": some(5, 17), "length": some(50, 380), "beam": some(8, 48),
                     "destination": choose(self.berths), "departed": False}
                    for n in range(vessels)
                ]  # fmt: skip
            case "berths":
                return [
                    {"name": b, "basin": f"basin {b[6]}", "depth": some(14, 20),
                     "latitude": some(51.8, 52), "longitude": some(4, 4.5)}
                    for b in self.berths
                ]  # fmt: skip
            case "sensors":
                return [
                    {"sensor": f"tide {n}", "kind": "Tide", "latitude": some(51.8, 52),
                     "longitude": some(4, 4.5)}
                    for n in range(self.sensors)
                ]  # fmt: skip
            case _:
                return [{"sensor": f"tide {n}", "height": 1.0} for n in range(self.sensors)]

    def update(self, engine: StepRunner, program: Program, at: int) -> int:
        """One gauge reports; returns how many verdicts have changed."""
        arrivals = {one.name: empty_batch(one.type) for one in program.inputs}
        gauge = next(one for one in program.inputs if one.name == "gauges")
        report = {"sensor": f"tide {at % self.sensors}", "height": self.numbers.uniform(0.2, 2)}
        arrivals["gauges"] = batch_of(gauge.type, [at], [_row(gauge, report)])
        return sum(len(queues["status"]) for queues in engine.round(arrivals, at, {})) // 2


def _row(one: Input, values: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(values[f.name] for f in one.type.schema)
