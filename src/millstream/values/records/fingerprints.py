"""A fingerprint of 64 bits of any value.

It is BLAKE2b with 8 bytes, read with the highest byte first. Of bytes it is taken as they are, of a
string in UTF-8; of all else, of the packed key (see `packing` and `keys`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from millstream.values.records.intrinsic import Intrinsic, RecordSurroundings, Signature
from millstream.values.records.keys import hash64, keys_of
from millstream.values.records.types import (
    BYTES,
    FINGERPRINT,
    STRING,
    FunctionOf,
    RecordType,
    resolved,
)


def fingerprint_of_bytes(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "big")


def fingerprinter(type_: RecordType) -> Callable[[Any], int]:
    if type_ == BYTES:
        return fingerprint_of_bytes
    if type_ == STRING:
        return lambda text: fingerprint_of_bytes(text.encode("utf-8", "surrogatepass"))
    key = keys_of(type_).key
    return lambda value: hash64(key(value))


def _rule(args: tuple[RecordType, ...]) -> Signature | str:
    if len(args) == 1 and not isinstance(resolved(args[0]), FunctionOf):
        return Signature(args, FINGERPRINT)
    return "expected one value, not a function"


def _bind(settings: RecordSurroundings, signature: Signature) -> Callable[[Any], int]:
    return fingerprinter(signature.params[0])


FINGERPRINTS: tuple[Intrinsic, ...] = (
    Intrinsic("fingerprintof", "fingerprintof(value)", _rule, _bind),
)
