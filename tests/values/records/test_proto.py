"""Proto tuples against Google's own library, which knows nothing of ours."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from millstream.values.records.proto import (
    ProtoTuple,
    is_present,
    proto_bytes,
    proto_tuple,
    with_field,
    without_field,
)
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    STRING,
    UINT,
    ArrayOf,
    Field,
    TupleOf,
)
from millstream.values.undefined import Undefined

_F = descriptor_pb2.FieldDescriptorProto
#: name, number, kind in Google's library, our type, its encoding if it is not the usual one
_FIELDS: list[tuple[str, int, Any, Any, str | None]] = [
    ("a", 1, _F.TYPE_INT64, INT, None),
    ("b", 2, _F.TYPE_UINT64, UINT, None),
    ("c", 3, _F.TYPE_SINT64, INT, "zigzag"),
    ("d", 4, _F.TYPE_DOUBLE, FLOAT, None),
    ("e", 5, _F.TYPE_STRING, STRING, None),
    ("f", 6, _F.TYPE_BYTES, BYTES, None),
    ("g", 7, _F.TYPE_BOOL, BOOL, None),
    ("h", 8, _F.TYPE_SFIXED64, INT, "fixed64"),
    ("i", 90, _F.TYPE_FIXED32, UINT, "fixed32"),
]
INNER = TupleOf((Field("x", INT, 1),), is_proto=True)
TYPE = TupleOf(
    (
        *(Field(name, type_, tag, wire=wire) for name, tag, _, type_, wire in _FIELDS),
        Field("many", ArrayOf(INT), 10),
        Field("inner", ArrayOf(INNER), 11),
    ),
    is_proto=True,
)


def _message() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", syntax="proto2")
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=_F.TYPE_INT64, label=_F.LABEL_OPTIONAL)
    outer = file.message_type.add(name="Outer")
    for name, number, kind, _, _ in _FIELDS:
        outer.field.add(name=name, number=number, type=kind, label=_F.LABEL_OPTIONAL)
    outer.field.add(name="many", number=10, type=_F.TYPE_INT64, label=_F.LABEL_REPEATED)
    outer.field.add(name="inner", number=11, type=_F.TYPE_MESSAGE, label=_F.LABEL_REPEATED,
                    type_name=".Inner")  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName("Outer"))
    return found


OUTER = _message()
SIGNED = st.integers(-(2**63), 2**63 - 1)
VALUES = st.tuples(
    SIGNED, st.integers(0, 2**64 - 1), SIGNED, st.floats(allow_nan=False), st.text(),
    st.binary(), st.booleans(), SIGNED, st.integers(0, 2**32 - 1),
    st.lists(SIGNED, max_size=3).map(tuple),
    st.lists(st.tuples(SIGNED), max_size=2).map(tuple),
)  # fmt: skip


@given(VALUES)
def test_buffers_are_those_of_protocol_buffers(values: tuple[Any, ...]) -> None:
    raw = proto_bytes(values, TYPE)
    message: Any = OUTER.FromString(raw)
    assert [getattr(message, f.name or "") for f in TYPE.fields[:10]] == [
        *values[:9], list(values[9]),
    ]  # fmt: skip
    assert tuple((i.x,) for i in message.inner) == values[10]
    assert proto_tuple(message.SerializeToString(), TYPE) == values
    assert proto_tuple(raw, TYPE) == values


def test_what_is_not_there_has_its_default() -> None:
    type_ = TupleOf((Field("a", INT, 1, default=7), Field("b", STRING, 2)), is_proto=True)
    value = proto_tuple(b"\x12\x01x\x18\x05", type_)
    assert value == (7, "x")
    assert (is_present(value, 0), is_present(value, 1)) == (False, True)
    assert proto_bytes(value, type_) == b"\x12\x01x"
    set_ = with_field(value, 0, 3)
    assert (set_, is_present(set_, 0)) == ((3, "x"), True)
    assert proto_bytes(without_field(set_, 1, type_), type_) == b"\x08\x03"


def test_packed_numbers_and_unknown_groups() -> None:
    type_ = TupleOf((Field("a", ArrayOf(INT), 1),), is_proto=True)
    assert proto_tuple(b"\x0a\x03\x01\x02\x03\x08\x04\x13\x18\x01\x14", type_) == ((1, 2, 3, 4),)


@pytest.mark.parametrize(
    "raw", [b"\x08", b"\x0a\x05a", b"\x00\x01", b"\x0f", b"\x0b\x08\x01", b"\x08\xff" + b"\xff" * 9]
)
def test_broken_buffers_are_undefined(raw: bytes) -> None:
    with pytest.raises(Undefined):
        proto_tuple(raw, TupleOf((Field("a", INT, 1),), is_proto=True))


def test_a_proto_tuple_is_a_tuple() -> None:
    assert ProtoTuple((1,), ()) == (1,)
