"""Which vessels may come in: each is bound for a berth, and each berth has a tide gauge.

Vessels leave the table when they have departed. Whatever changes, a vessel's new draught, its
berth, or the tide, the answer of every vessel that it concerns changes with it, and the
warnings say so once.
"""

from __future__ import annotations

from pathlib import Path

import millstream
from millstream import algebra

vessels = algebra.table(
    "vessels", key="mmsi", deleted="has_departed",
    mmsi="integer", name="text", berth="text", draught="number", has_departed="boolean",
)  # fmt: skip
berths = algebra.table("berths", key="id", id="text", depth="number", gauge="text")
tides = algebra.table("tides", key="gauge_id", gauge_id="text", height="number")

at_berth = vessels.foreign_join(berths, on="berth")
with_tide = at_berth.foreign_join(tides, on="gauge", found="is_measured")
clearance = with_tide.map(
    lambda v: {
        "name": v.name,
        "clearance": v.depth + v.height - v.draught,
        "answer": algebra.if_(
            ~v.is_measured,
            "undecided",
            algebra.if_(v.depth + v.height - v.draught >= 0.5, "allowed", "restricted"),
        ),
    }
)
warnings = clearance.map(lambda v: {"name": v.name, "answer": v.answer}).changelog()


def program() -> millstream.Compiled:
    return millstream.compile_flow(clearance=clearance, warnings=warnings)


if __name__ == "__main__":
    job = program().at(Path(__file__).parent)
    finished = job.run()
    for name in job.program.outputs:
        print(name, *finished.rows(name), sep="\n    ")
