"""Lines that are read in a quick way give what the definition gives, or are left to it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.connectors import json_plain
from millstream.connectors.json_rows import values_of_line
from millstream.connectors.layout import InputColumns, layout_of_objects
from millstream.connectors.values import Unfit
from tests.connectors.inputs import ALL_TYPES
from tests.connectors.test_fast_equals_slow import NUMBERS, TIMES, WORDS

LAYOUT = layout_of_objects(ALL_TYPES)
NAMES = [*LAYOUT.names, "other"]
VALUES = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from([json.dumps(t) for t in TIMES + WORDS]),
    st.integers(-(2**65), 2**65).map(str), st.floats(allow_nan=False).map(repr),
    st.text(max_size=5).map(json.dumps),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(["true", "false", "null", "[]", '{"a": 1}', '["x"]', '""', '"a"b"', "-0.0"]),
)  # fmt: skip
MEMBERS = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=len(NAMES) + 2)
SPACES = st.sampled_from(["", " ", "\t", "\r"])


def outcome(read: Any, layout: InputColumns, line: bytes) -> tuple[str, str]:
    try:
        return "row", repr(read(layout, line, 1000))
    except Unfit as unfit:
        return "unfit", str(unfit)


@given(members=MEMBERS, space=SPACES, end=st.sampled_from(["}", "", "}}", "},"]))
@settings(max_examples=1500, deadline=None)
def test_any_line(members: list[tuple[str, str]], space: str, end: str) -> None:
    text = ",".join(f'{space}"{name}":{space}{value}' for name, value in members)
    line = f"{{{text}{space}{end}".encode("utf-8", "surrogatepass")
    assert outcome(json_plain.values_of, LAYOUT, line) == outcome(values_of_line, LAYOUT, line)


@given(data=st.data())
@settings(max_examples=500, deadline=None)
def test_lines_as_they_are_published(data: st.DataObject) -> None:
    """Most values are of their columns, so that most lines are read in the quick way."""
    kinds = {
        "number": st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers()),
        "integer": st.integers(-(2**63) - 1, 2**63), "text": st.text(max_size=9),
        "boolean": st.booleans(), "time": st.integers(0, 2**62), "duration": st.integers(0, 2**40),
    }  # fmt: skip
    row = {
        field.name: data.draw(st.one_of(st.none(), kinds[field.type.kind.value]))
        for field in LAYOUT.fields
    }
    line = json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert outcome(json_plain.values_of, LAYOUT, line) == outcome(values_of_line, LAYOUT, line)


def test_plain_lines_need_no_definition() -> None:
    row = dict.fromkeys(LAYOUT.names)
    assert json_plain._plain(LAYOUT, json.dumps(row).encode()) is not None
    twice = json.dumps(row)[:-1] + f', "{LAYOUT.names[0]}": null}}'
    assert json_plain._plain(LAYOUT, twice.encode()) is None
    assert outcome(json_plain.values_of, LAYOUT, twice.encode())[1].endswith("stands twice")
