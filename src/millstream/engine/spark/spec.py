"""What a task that reads must know, as text: options of a Spark source are texts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from millstream.calculus.graph import Input
from millstream.calculus.types import TYPES_BY_NAME, Field, QueueType, Schema
from millstream.connectors.dialect import Dialect
from millstream.connectors.location import Format, Location
from millstream.connectors.settings import settings_of
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.plan.keys import Copies


def spec_to_json(spec: SourceSpec) -> str:
    return json.dumps(
        {
            "inputs": [input_to_json(i) for i in spec.inputs], "checkpoint": str(spec.checkpoint),
            "partitions": spec.partitions, "buckets": spec.buckets, "stages": spec.stages,
            "batch_bytes": spec.batch_bytes, "instants": [sorted(one) for one in spec.instants],
            "is_following": spec.is_following, "piece_bytes": spec.piece_bytes,
        }
    )  # fmt: skip


def spec_from_json(text: str) -> SourceSpec:
    given = json.loads(text)
    return SourceSpec(
        tuple(_input_spec(i) for i in given["inputs"]), Path(given["checkpoint"]),
        given["partitions"], given["buckets"], given["stages"], given["batch_bytes"],
        tuple(map(frozenset, given["instants"])), given["is_following"], given["piece_bytes"],
    )  # fmt: skip


def input_to_json(one: InputSpec) -> dict[str, Any]:
    settings = one.location.generator
    return {
        "name": one.name, "is_relation": one.input.type.is_relation,
        "columns": [[f.name, str(f.type)] for f in one.input.type.schema],
        "time": one.input.time, "slack": one.input.slack, "early": one.input.is_early,
        "once": one.input.is_read_once,
        "numbered": one.input.is_numbered, "ends": one.input.ends,
        "closes": one.input.closes,
        "unit": one.input.unit, "zone": one.input.zone, "time_format": one.input.time_format,
        "dialect": asdict(one.location.dialect), "brought": one.location.brought_from,
        "keys": list(one.input.keys),
        "within": [list(bounds) for bounds in one.input.within],
        "location": one.location.text, "base": str(one.location.base),
        "format": one.location.format.value,
        "path": None if one.location.path is None else str(one.location.path),
        "generator": None if settings is None else {
            "rows": settings.rows, "seed": settings.seed, "start": settings.start,
            "interval": settings.interval, "columns": dict(settings.columns),
            "size": settings.size,
            **({} if settings.rate is None else {"rate": settings.rate}),
        },
        "declaration": one.declaration, "queue": one.queue, "target": one.target,
        "key": one.key.value if isinstance(one.key, Copies) else one.key,
        "idle": one.idle, "rows": one.location.rows,
    }  # fmt: skip


def _input_spec(given: dict[str, Any]) -> InputSpec:
    # A dimension is for the checker; a source reads plain numbers.
    fields = tuple(Field(n, TYPES_BY_NAME[t.partition("<")[0]]) for n, t in given["columns"])
    type_ = QueueType(Schema(fields), given["is_relation"])
    # Not read from its text: what a folder holds by now is not what it was when this was said.
    location = Location(
        Format(given["format"]), None if given["path"] is None else Path(given["path"]),
        given["location"], Path(given["base"]), idle=given["idle"], rows=given["rows"],
        dialect=Dialect(**given["dialect"]), brought_from=given["brought"],
    )  # fmt: skip
    if given["generator"] is not None:
        options = given["generator"]
        micros = {**options, "interval": f"{options['interval']} us"}
        location = replace(location, generator=settings_of(micros))
    told = given["key"]
    key = Copies(told) if isinstance(told, str) else None if told is None else tuple(told)
    return InputSpec(
        Input(given["name"], type_, given["time"], given["slack"], None, given["once"],
              unit=given["unit"], zone=given["zone"], time_format=given["time_format"],
              keys=tuple(given["keys"]),
              within=tuple((name, low, high) for name, low, high in given["within"]),
              is_numbered=given["numbered"], ends=given["ends"], closes=given["closes"],
              is_early=given["early"]), location,
        given["declaration"], given["queue"], given["target"], key,
    )  # fmt: skip
