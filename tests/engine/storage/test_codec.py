"""State survives being written, and damage is noticed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.storage.codec import DamagedState, decode, encode
from millstream.engine.storage.files import LocalFiles

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_come_back(value: object) -> None:
    assert value == decode(encode(value))


def test_arrays_come_back() -> None:
    state = {
        "numbers": np.array([1.5, math.nan, -0.0]),
        "table": np.arange(6, dtype=np.int64).reshape(2, 3),
        "flags": np.array([True, False]),
        "texts": pa.array(["a", None, "é"]),
        "coded": pa.array(["x", "y", "x"]).dictionary_encode(),
        "empty": np.zeros(0, np.int32),
    }
    back = decode(encode(state))
    for name in ("numbers", "table", "flags", "empty"):
        np.testing.assert_array_equal(state[name], back[name])
        assert state[name].dtype == back[name].dtype
    assert state["texts"].equals(back["texts"])
    assert state["coded"].equals(back["coded"])
    back["numbers"][0] = 2.0  # what comes back can be changed


SAMPLE = encode({"a": np.arange(100), "b": ["x", None, 2.5]})


@settings(max_examples=300)
@given(st.integers(0, len(SAMPLE) * 8 - 1))
def test_a_flipped_bit_is_noticed(bit: int) -> None:
    damaged = bytearray(SAMPLE)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedState):
        decode(bytes(damaged))


@given(st.integers(0, len(SAMPLE) - 1))
def test_a_cut_file_is_noticed(length: int) -> None:
    with pytest.raises(DamagedState):
        decode(SAMPLE[:length])


def test_objects_are_refused() -> None:
    with pytest.raises(TypeError):
        encode({"f": print})
    with pytest.raises(TypeError):
        encode(np.array([object()]))


def test_files_appear_whole_and_can_be_replaced(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    files.write("a/b", b"one")
    files.write("a/b", b"two")
    assert b"two" == files.read("a/b")
    assert ["b"] == files.names("a")
    assert [] == files.names("nothing")
    files.delete("a/b")
    assert [] == files.names("a")
