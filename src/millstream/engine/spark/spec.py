"""What a task that reads must know, as text: options of a Spark source are texts."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millstream.calculus.graph import Input
from millstream.calculus.types import TYPES_BY_NAME, Field, QueueType, Schema
from millstream.connectors.location import Location, parse_location
from millstream.connectors.settings import settings_of


@dataclass(frozen=True)
class InputSpec:
    """An input and where its rows go."""

    input: Input
    location: Location
    declaration: int
    queue: int
    target: int
    key: tuple[str, ...] | None

    @property
    def name(self) -> str:
        return self.input.name

    @property
    def idle(self) -> int | None:
        return self.location.idle

    @property
    def is_native(self) -> bool:
        return self.location.native is not None


@dataclass(frozen=True)
class SourceSpec:
    """All inputs that we read ourselves."""

    inputs: tuple[InputSpec, ...]
    checkpoint: Path
    partitions: int
    buckets: int
    stages: int
    batch_bytes: int
    has_ticks: bool
    is_following: bool
    #: A batch of more bytes than this is read by several tasks, in pieces of this size.
    piece_bytes: int = 4 << 20


def spec_to_json(spec: SourceSpec) -> str:
    return json.dumps(
        {
            "inputs": [input_to_json(i) for i in spec.inputs], "checkpoint": str(spec.checkpoint),
            "partitions": spec.partitions, "buckets": spec.buckets, "stages": spec.stages,
            "batch_bytes": spec.batch_bytes, "has_ticks": spec.has_ticks,
            "is_following": spec.is_following, "piece_bytes": spec.piece_bytes,
        }
    )  # fmt: skip


def spec_from_json(text: str) -> SourceSpec:
    given = json.loads(text)
    return SourceSpec(
        tuple(_input_spec(i) for i in given["inputs"]), Path(given["checkpoint"]),
        given["partitions"], given["buckets"], given["stages"], given["batch_bytes"],
        given["has_ticks"], given["is_following"], given["piece_bytes"],
    )  # fmt: skip


def input_to_json(one: InputSpec) -> dict[str, Any]:
    settings = one.location.generator
    return {
        "name": one.name, "is_relation": one.input.type.is_relation,
        "columns": [[f.name, str(f.type)] for f in one.input.type.schema],
        "time": one.input.time, "slack": one.input.slack, "once": one.input.is_read_once,
        "unit": one.input.unit, "keys": list(one.input.keys),
        "location": one.location.text, "base": str(one.location.base.resolve()),
        "generator": None if settings is None else {
            "rows": settings.rows, "seed": settings.seed, "start": settings.start,
            "interval": settings.interval, "columns": dict(settings.columns),
            **({} if settings.rate is None else {"rate": settings.rate}),
        },
        "declaration": one.declaration, "queue": one.queue, "target": one.target,
        "key": one.key, "idle": one.idle,
    }  # fmt: skip


def _input_spec(given: dict[str, Any]) -> InputSpec:
    # A dimension is for the checker; a source reads plain numbers.
    fields = tuple(Field(n, TYPES_BY_NAME[t.partition("<")[0]]) for n, t in given["columns"])
    type_ = QueueType(Schema(fields), given["is_relation"])
    location = parse_location(given["location"], Path(given["base"]))
    location = replace(location, idle=given["idle"])
    if given["generator"] is not None:
        options = given["generator"]
        micros = {**options, "interval": f"{options['interval']} us"}
        location = replace(location, generator=settings_of(micros))
    key = None if given["key"] is None else tuple(given["key"])
    return InputSpec(
        Input(given["name"], type_, given["time"], given["slack"], None, given["once"],
              unit=given["unit"], keys=tuple(given["keys"])), location,
        given["declaration"], given["queue"], given["target"], key,
    )  # fmt: skip
