"""What is wrong in an expression; `tests/golden/algebra_errors.txt` has what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import millstream
from millstream import algebra
from millstream.algebra import Group, call

vessels = algebra.table(
    "vessels", key="mmsi", mmsi="integer", berth="text", draught="number", arrived="boolean"
)
tides = algebra.table("tides", key="id", id="integer", height="number")
berths = algebra.table("berths", key="name", name="text", depth="number")
xs = algebra.stream("xs", x="integer", name="text")


def vector(combine: Any) -> Group:
    return Group(empty={"x": 0, "y": 0}, combine=combine, inverse=lambda a: {"x": -a.x, "y": -a.y})


FAULTS: dict[str, Callable[[], object]] = {
    "unknown column": lambda: vessels.map(lambda v: {"d": v.draft}),
    "condition that is none": lambda: vessels.filter(lambda v: v.draught + 1),
    "text added to a number": lambda: vessels.map(lambda v: {"d": v.draught + v.berth}),
    "key that is mapped": lambda: vessels.map(lambda v: {"mmsi": v.mmsi, "d": v.draught}),
    "key that is not there": lambda: xs.to_table("nam", deleted=None),
    "deletions that are no boolean": lambda: xs.to_table("name", deleted="x"),
    "keys of other types": lambda: vessels.inner_join(berths),
    "foreign key of another type": lambda: vessels.foreign_join(tides, on="berth"),
    "foreign key that is not there": lambda: vessels.foreign_join(berths, on="birth"),
    "columns of both tables": lambda: vessels.foreign_join(
        berths.map(lambda b: {"draught": b.depth}), on="berth"
    ),
    "streams that differ": lambda: xs.merge(algebra.stream("ys", y="integer")),
    "unknown type": lambda: algebra.stream("zs", z="float"),
    "untraceable without columns": lambda: xs.map(lambda r: {"n": len(r.name)}),
    "state of an unknown field": lambda: vessels.combine_updates(
        {"n": 0}, lambda s, _: {"n": s.m + 1}
    ),
    "row of an unknown field": lambda: vessels.combine_updates(
        {"n": 0.0}, lambda s, r: {"n": s.n + r.draugt}
    ),
    "state that was not there": lambda: vessels.combine_updates(
        {"n": 0}, lambda s, _: {"m": s.n + 1}
    ),
    "state of another type": lambda: vessels.combine_updates(
        {"n": 0}, lambda s, r: {"n": s.n + r.draught}
    ),
    "state without a type": lambda: vessels.combine_updates(
        {"last": None}, lambda _, r: {"last": r.draught}
    ),
    "sum of texts": lambda: vessels.reduce(algebra.total(lambda v: v.berth)),
    "no group": vessels.reduce,
    "half a group": lambda: berths.map(lambda _: {"x": 1, "y": 2}).reduce(
        vector(lambda a, b: {"x": a.x + b.x})
    ),
    "rows of now that differ": lambda: algebra.now({"x": 1}, {"y": 2}),
    "no window": lambda: algebra.window(xs, 0),
    "no duration": lambda: algebra.debounce(xs, "5"),
    "control that is none": lambda: algebra.switch(xs, "nme", a=xs),
    "names of both streams": lambda: algebra.combine_latest(xs, xs),
    "input that is an output": lambda: millstream.compile_flow(xs=xs),
    "two inputs of one name": lambda: millstream.compile_flow(
        out=tides.inner_join(algebra.table("tides", key="id", id="integer", low="number"))
    ),
    "group that fails": lambda: vessels.reduce(
        Group(
            empty={"n": 0},
            combine=lambda a, b: {"n": a.n // (b.n - b.n)},
            inverse=lambda a: a,
            lift=lambda r: {"n": r.mmsi},
        )
    ),
    "group without fields": lambda: vessels.reduce(
        Group(
            empty=[],
            combine=lambda a, b: a + b,
            inverse=lambda a: a[:0],
            lift=lambda r: [r.mmsi],
        )
    ),
    "group without an inverse": lambda: vessels.reduce(
        Group(
            empty={"most": 0},
            combine=lambda a, b: {"most": call("greatest", a.most, b.most)},
            inverse=lambda a: {"most": -a.most},
            lift=lambda r: {"most": r.mmsi},
        )
    ),
    "group that does not commute": lambda: vessels.reduce(
        Group(
            empty={"n": 0},
            combine=lambda a, b: {"n": a.n - b.n},
            inverse=lambda a: {"n": a.n},
            lift=lambda r: {"n": r.mmsi},
        )
    ),
    "no function": lambda: xs.map(3),  # type: ignore[arg-type]
    "list for a row": lambda: xs.map(lambda r: [r.x]),
}
