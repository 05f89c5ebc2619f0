"""What stands in the log, as bytes.

    {"kind": "log", "id": ..., "streams": {...}}                      the first record
    {"kind": "rows", "stream": ..., "rows": [...], "fates": [...]}     a batch, as it was decided
    {"kind": "silence", "stream": ..., "through": ...}
    {"kind": "views", "added": {...}}                                 all views beside the file's
    {"kind": "known", "relation": ..., "changes": [...]}              what another broker has sent

Decisions are written and not made again, so that a log means the same whatever the clock says when
it is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """What has changed in a relation of another broker, behind one of its numbers up to another.

    Behind number 0 that is the whole relation. `incarnation` is the log that the numbers are of,
    and `edition` the file that the relation is of. With it comes how far streams are known in the
    relation, and how much of the logs it is made of.
    """

    relation: str
    edition: str
    incarnation: str
    after: int
    through: int
    changes: tuple[tuple[Row, int], ...]
    progress: Mapping[str, int]
    stand: Mapping[str, int]


Content = Begun | RowsRecord | SilenceRecord | ViewsRecord | KnownRecord


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
        case KnownRecord():
            return orjson.dumps({"kind": "known", **known_record(content)})
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
        case "known":
            return read_known(record, schemas.get(record["relation"]))
        case _:
            schema = schemas[record["stream"]]
            rows = tuple(_read(row, schema) for row in record["rows"])
            judged = tuple(Judged(Fate(f), tick, reason) for f, tick, reason in record["fates"])
            return RowsRecord(record["stream"], record["by"], record["sequence"],
                              bytes.fromhex(record["digest"]), rows, judged)  # fmt: skip


def known_record(known: KnownRecord) -> dict[str, Any]:
    """For JSON, in a log or on its way from one broker to another."""
    return {
        "relation": known.relation, "edition": known.edition, "incarnation": known.incarnation,
        "after": known.after, "through": known.through,
        "changes": [[[_written(v) for v in row], weight] for row, weight in known.changes],
        "progress": dict(known.progress), "stand": dict(known.stand),
    }  # fmt: skip


def read_known(record: Mapping[str, Any], schema: Schema | None) -> KnownRecord:
    """What was written so; of a relation that is not read any more the changes are left out."""
    changes = () if schema is None else record["changes"]
    return KnownRecord(
        record["relation"], record["edition"], record["incarnation"], record["after"],
        record["through"], tuple((_read(r, schema), w) for r, w in changes if schema is not None),
        record["progress"], record["stand"],
    )  # fmt: skip


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
