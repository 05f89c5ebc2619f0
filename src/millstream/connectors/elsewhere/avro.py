"""Messages of Avro, by the schema of a file: each becomes an object of JSON.

A message may have the five bytes before it by which a registry of schemas marks them. Inside of
a record, records, arrays and maps stay as they are, in JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from millstream.errors import UsageError

_MARK = b"\x00"
_MARKED_BYTES = 5
_MICROS = {"timestamp-millis": 1_000, "timestamp-micros": 1, "local-timestamp-millis": 1_000}
_DAY = 86_400_000_000

Reading = Callable[["Bytes"], Any]


class NotAvro(ValueError):
    """A message is not what its schema says."""


class Bytes:
    """Mutable: a message, and how far it has been read."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        if count < 0 or len(taken) < count:
            raise NotAvro("the message ends too early")
        self.at += count
        return taken

    def integer(self) -> int:
        """A number of variable length, in zigzag."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise NotAvro("a number is too long")

    def text(self) -> str:
        try:
            return self.take(self.integer()).decode()
        except UnicodeDecodeError:
            raise NotAvro("a text is not UTF-8") from None


class AvroSchema:
    """How messages of one schema are read."""

    def __init__(self, schema: Any) -> None:
        self._named: dict[str, Reading] = {}
        self._read = self._reading(schema)

    @staticmethod
    def of_file(path: Path, text: str) -> AvroSchema:
        try:
            return AvroSchema(json.loads(path.read_bytes()))
        except OSError as error:
            raise UsageError(f'the schema "{path}" cannot be read: {error.strerror}',
                             place=text) from None  # fmt: skip
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f'"{path}" is no schema of Avro: {error}', place=text) from None

    def line(self, message: bytes) -> bytes:
        """A message as a line of JSON; `NotAvro` if it is none of this schema."""
        return json.dumps(self._whole(message), ensure_ascii=False).encode()

    def _whole(self, message: bytes) -> Any:
        """A mark may as well be the first byte of a message without one; what fits is meant."""
        starts = (_MARKED_BYTES, 0) if message[:1] == _MARK else (0,)
        for start in starts:
            data = Bytes(message, start)
            try:
                value = self._read(data)
            except RecursionError:
                raise NotAvro("the message is too deep") from None
            except NotAvro:
                if start == starts[-1]:
                    raise
                continue
            if data.at == len(message):
                return value
        raise NotAvro("the message is longer than its schema says")

    def _reading(self, schema: Any) -> Reading:
        if isinstance(schema, list):
            choices = [self._reading(one) for one in schema]
            return lambda data: _chosen(choices, data.integer())(data)
        if isinstance(schema, str):
            return self._plain(schema)
        kind, logical = schema["type"], schema.get("logicalType")
        if logical in _MICROS or logical == "local-timestamp-micros":
            scale = _MICROS.get(logical, 1)
            return lambda data: data.integer() * scale
        if logical == "date":
            return lambda data: data.integer() * _DAY
        if logical == "decimal":
            places = schema.get("scale", 0)
            raw = self._reading({"type": kind, **_without_logic(schema)})
            return lambda data: _whole_number(raw(data)) / 10**places
        if isinstance(kind, (dict, list)):
            return self._reading(kind)
        made = self._complex(kind, schema)
        return made if made is not None else self._plain(kind)

    def _plain(self, name: str) -> Reading:
        if name in _PLAIN:
            return _PLAIN[name]
        if name not in self._named:
            raise KeyError(f'unknown type "{name}"')
        return self._named[name]

    def _complex(self, kind: str, schema: Mapping[str, Any]) -> Reading | None:
        if kind == "record":
            fields: list[tuple[str, Reading]] = []

            def record(data: Bytes) -> Any:
                return {name: read(data) for name, read in fields}

            self._name(schema, record)  # before its fields, which may be of its own kind
            fields += [(f["name"], self._reading(f["type"])) for f in schema["fields"]]
            return record
        if kind == "enum":
            symbols = schema["symbols"]
            return self._name(schema, lambda data: _chosen(symbols, data.integer()))
        if kind == "fixed":
            size = schema["size"]
            return self._name(schema, lambda data: data.take(size).decode("latin-1"))
        if kind == "array":
            item = self._reading(schema["items"])
            return lambda data: _blocks(data, item)
        if kind == "map":
            value = self._reading(schema["values"])
            return lambda data: dict(_blocks(data, lambda d: (d.text(), value(d))))
        return None

    def _name(self, schema: Mapping[str, Any], reading: Reading) -> Reading:
        name, space = schema["name"], schema.get("namespace")
        self._named[name] = reading
        if space:
            self._named[f"{space}.{name}"] = reading
        return reading


def _without_logic(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k not in ("logicalType", "type")}


def _chosen(among: list[Any], number: int) -> Any:
    if not 0 <= number < len(among):
        raise NotAvro(f"there is no choice {number}")
    return among[number]


def _blocks(data: Bytes, item: Reading) -> list[Any]:
    items: list[Any] = []
    while count := data.integer():
        if count < 0:
            data.integer()  # how many bytes it has, for who passes over it
        if abs(count) > len(data.data) - data.at + 1:
            raise NotAvro("a list is longer than its message")
        items += [item(data) for _ in range(abs(count))]
    return items


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinities; readers take these words back."""
    if value - value == 0:
        return value
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]


def _whole_number(raw: str) -> int:
    return int.from_bytes(raw.encode("latin-1"), signed=True)


def _truth(data: Bytes) -> bool:
    return data.take(1) != b"\x00"


_PLAIN: dict[str, Reading] = {
    "null": lambda _: None,
    "boolean": _truth,
    "int": Bytes.integer,
    "long": Bytes.integer,
    "float": lambda data: _number(struct.unpack("<f", data.take(4))[0]),
    "double": lambda data: _number(struct.unpack("<d", data.take(8))[0]),
    "bytes": lambda data: data.take(data.integer()).decode("latin-1"),
    "string": Bytes.text,
}
