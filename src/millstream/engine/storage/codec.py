"""State as bytes and back: plain values, NumPy and Arrow arrays, with a checksum.

Only data is written, never code: what is read back can at worst be refused. A file is

    magic, length of the header, header (JSON: the shape of the state), buffers, checksum

so that reading copies nothing it need not.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import pyarrow as pa

MAGIC = b"MSTATE01"
_ALIGNMENT = 64


class DamagedState(Exception):
    """The bytes are not what was written."""


def encode(state: Any) -> bytes:
    """The bytes of a state made of dictionaries, sequences, plain values and arrays."""
    buffers: list[bytes | memoryview] = []
    shape = _described(state, buffers)
    header = json.dumps({"shape": shape, "sizes": [len(b) for b in buffers]}).encode()
    parts: list[bytes | memoryview] = [MAGIC, len(header).to_bytes(8, "little"), header]
    position = sum(len(p) for p in parts)
    for buffer in buffers:
        padding = -position % _ALIGNMENT
        parts += [bytes(padding), buffer]
        position += padding + len(buffer)
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return b"".join([*parts, checksum.to_bytes(4, "little")])


def decode(data: bytes | memoryview) -> Any:
    """The state of some bytes; `DamagedState` if they are not what was written."""
    view = memoryview(data)
    if len(view) < len(MAGIC) + 12 or bytes(view[: len(MAGIC)]) != MAGIC:
        raise DamagedState("this is no state, or only its beginning")
    if zlib.crc32(view[:-4]) != int.from_bytes(view[-4:], "little"):
        raise DamagedState("the checksum does not fit")
    start = len(MAGIC) + 8
    length = int.from_bytes(view[len(MAGIC) : start], "little")
    header = json.loads(bytes(view[start : start + length]))
    position = start + length
    buffers: list[memoryview] = []
    for size in header["sizes"]:
        position += -position % _ALIGNMENT
        buffers.append(view[position : position + size])
        position += size
    return _rebuilt(header["shape"], buffers)


def _described(value: Any, buffers: list[bytes | memoryview]) -> Any:
    match value:
        case None | bool() | int() | str():
            return ["value", value]
        case float():
            return ["float", value.hex()]
        case bytes():
            buffers.append(value)
            return ["bytes", len(buffers) - 1]
        case dict():
            pairs = [[_described(k, buffers), _described(v, buffers)] for k, v in value.items()]
            return ["dict", pairs]
        case tuple() | list():
            kind = "tuple" if isinstance(value, tuple) else "list"
            return [kind, [_described(v, buffers) for v in value]]
        case np.ndarray():
            if value.dtype.hasobject:
                raise TypeError("arrays of objects cannot be written")
            plain = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            buffers.append(memoryview(plain))  # type: ignore[arg-type]
            return ["numpy", value.dtype.str, list(value.shape), len(buffers) - 1]
        case np.generic():
            return _described(value.item(), buffers)
        case pa.Array():
            sink = pa.BufferOutputStream()
            batch = pa.record_batch([value], names=["values"])
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            buffers.append(memoryview(sink.getvalue()))
            return ["arrow", len(buffers) - 1]
        case _:
            raise TypeError(f"{type(value).__name__} cannot be written as state")


def _rebuilt(shape: Any, buffers: list[memoryview]) -> Any:
    kind, *rest = shape
    match kind:
        case "value":
            return rest[0]
        case "float":
            return float.fromhex(rest[0])
        case "bytes":
            return bytes(buffers[rest[0]])
        case "dict":
            return {_rebuilt(k, buffers): _rebuilt(v, buffers) for k, v in rest[0]}
        case "list":
            return [_rebuilt(v, buffers) for v in rest[0]]
        case "tuple":
            return tuple(_rebuilt(v, buffers) for v in rest[0])
        case "numpy":
            dtype, dimensions, number = rest
            return np.frombuffer(buffers[number], dtype).reshape(dimensions).copy()
        case "arrow":
            with pa.ipc.open_stream(buffers[rest[0]]) as reader:
                return reader.read_all().column(0).combine_chunks()
        case _:
            raise DamagedState(f"unknown kind {kind!r}")
