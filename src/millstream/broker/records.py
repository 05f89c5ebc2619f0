"""What stands in the log, as bytes.

    {"kind": "log", "id": ..., "streams": {...}}                      the first record
    {"kind": "rows", "stream": ..., "rows": [...], "fates": [...]}     a batch, as it was decided
    {"kind": "silence", "stream": ..., "through": ...}
    {"kind": "views", "added": {...}}                                 all views beside the file's

Decisions are written and not made again, so that a log means the same whatever the clock says when
it is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from millstream.broker.ticks import Fate, Judged
from millstream.calculus.types import Row, Schema, Value


@dataclass(frozen=True, slots=True)
class Begun:
    """The log of one broker, and the columns of its streams."""

    identity: str
    streams: dict[str, str]


@dataclass(frozen=True, slots=True)
class RowsRecord:
    """A batch: the rows that were accepted, with their ticks, and the fates of all."""

    stream: str
    publisher: str
    sequence: int
    digest: bytes
    rows: tuple[Row, ...]
    judged: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class SilenceRecord:
    stream: str
    through: int
    #: Who said so; None if it was a heartbeat.
    publisher: str | None


@dataclass(frozen=True, slots=True)
class ViewsRecord:
    """The views that are there beside those of the file, by name, from now on."""

    added: dict[str, str]


Content = Begun | RowsRecord | SilenceRecord | ViewsRecord


def encoded(content: Content) -> bytes:
    match content:
        case Begun(identity, streams):
            return orjson.dumps({"kind": "log", "id": identity, "streams": streams})
        case SilenceRecord(stream, through, publisher):
            return orjson.dumps(
                {"kind": "silence", "stream": stream, "through": through, "by": publisher}
            )
        case ViewsRecord(added):
            return orjson.dumps({"kind": "views", "added": added})
        case RowsRecord():
            return orjson.dumps({
                "kind": "rows", "stream": content.stream, "by": content.publisher,
                "sequence": content.sequence, "digest": content.digest.hex(),
                "rows": [[_written(v) for v in row] for row in content.rows],
                "fates": [[j.fate.value, j.tick, j.reason] for j in content.judged],
            })  # fmt: skip


def decoded(data: bytes, schemas: dict[str, Schema]) -> Content:
    record: dict[str, Any] = orjson.loads(data)
    match record["kind"]:
        case "log":
            return Begun(record["id"], record["streams"])
        case "views":
            return ViewsRecord(record["added"])
        case "silence":
            return SilenceRecord(record["stream"], record["through"], record["by"])
        case _:
            schema = schemas[record["stream"]]
            rows = tuple(_read(row, schema) for row in record["rows"])
            judged = tuple(Judged(Fate(f), tick, reason) for f, tick, reason in record["fates"])
            return RowsRecord(record["stream"], record["by"], record["sequence"],
                              bytes.fromhex(record["digest"]), rows, judged)  # fmt: skip


def plain(value: Value) -> Any:
    """A value as JSON has it: what is no finite number is a text."""
    return _written(value)


def _written(value: Value) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return value


def _read(row: Sequence[Any], schema: Schema) -> Row:
    """Numbers that are whole are written without a point, and others may be texts."""
    return tuple(
        float(value) if field.type.kind.value == "number" and value is not None else value
        for value, field in zip(row, schema, strict=True)
    )
