"""Messages of Avro, by the examples of its specification and by an encoder of our own."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest

from millstream.connectors.elsewhere.avro import AvroSchema, NotAvro
from millstream.connectors.elsewhere.kafka import _line
from millstream.errors import UsageError

PAIR = {"type": "record", "name": "pair", "fields": [
    {"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}  # fmt: skip
#: As the specification encodes them.
EXAMPLES: list[tuple[Any, str, Any]] = [
    (PAIR, "36 06 66 6f 6f", {"a": 27, "b": "foo"}),
    ({"type": "array", "items": "long"}, "04 06 36 00", [3, 27]),
    ({"type": "array", "items": "long"}, "03 04 06 36 00", [3, 27]),
    (["null", "string"], "02 02 61", "a"),
    (["null", "string"], "00", None),
    ({"type": "enum", "name": "e", "symbols": ["A", "B", "C", "D"]}, "06", "D"),
    ("long", "01", -1), ("long", "7f", -64), ("long", "80 01", 64), ("boolean", "01", True),
    ({"type": "map", "values": "int"}, "02 02 61 04 00", {"a": 2}),
    ({"type": "long", "logicalType": "timestamp-millis"}, "04", 2_000),
    ({"type": "int", "logicalType": "date"}, "02", 86_400_000_000),
    ({"type": "bytes", "logicalType": "decimal", "scale": 2}, "04 ff 38", -2.0),
    ({"type": "fixed", "name": "f", "size": 2}, "61 62", "ab"),
    ("double", "00 00 00 00 00 00 f8 7f", "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "message", "value"), EXAMPLES)
def test_examples(schema: Any, message: str, value: Any) -> None:
    assert value == json.loads(AvroSchema(schema).line(bytes.fromhex(message)))


def integer(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    made = bytearray()
    while rest >= 0x80:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes((*made, rest))


def text(value: str) -> bytes:
    return integer(len(value.encode())) + value.encode()


ROW = {"type": "record", "name": "row", "fields": [
    {"name": "n", "type": "long"}, {"name": "x", "type": ["null", "double"]},
    {"name": "s", "type": "string"}, {"name": "next", "type": ["null", "row"]}]}  # fmt: skip


def encoded(row: dict[str, Any]) -> bytes:
    x = b"\x00" if row["x"] is None else b"\x02" + struct.pack("<d", row["x"])
    after = b"\x00" if row["next"] is None else b"\x02" + encoded(row["next"])
    return integer(row["n"]) + x + text(row["s"]) + after


def drawn(random: Random) -> dict[str, Any]:
    return {
        "n": random.choice([1, -1, 2**63 - 1, -(2**63), random.randint(1, 500)]),
        "x": random.choice([None, 0.5, random.random()]), "s": random.choice(["", "é\n", "abc"]),
        "next": drawn(random) if random.random() < 0.3 else None,
    }  # fmt: skip


def test_rows_come_back_with_and_without_the_mark_of_a_registry() -> None:
    schema, random = AvroSchema(ROW), Random(1)
    for _ in range(300):
        row = drawn(random)
        for mark in (b"", b"\x00\x00\x00\x00\x07"):
            assert row == json.loads(schema.line(mark + encoded(row)))


def test_what_is_no_message_of_the_schema_is_rejected_and_never_fails() -> None:
    schema, random = AvroSchema(ROW), Random(2)
    for _ in range(2_000):
        message = random.randbytes(random.randint(0, 20))
        try:
            json.loads(schema.line(message))
        except NotAvro:
            assert b"not Avro: " in _line(message, schema)
    assert b"null\n" == _line(None, schema)


@pytest.mark.parametrize("written", ["{", '{"type": "record"}', '"nothing"', '{"type": 3}'])
def test_wrong_schemas_are_told(written: str, tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(written)
    with pytest.raises(UsageError, match="is no schema of Avro"):
        AvroSchema.of_file(tmp_path / "a.avsc", "kafka://b/t")
