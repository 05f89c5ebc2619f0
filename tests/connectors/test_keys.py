"""Misspelt keys of JSON Lines are told; missing ones are null."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.calculus.graph import Input
from millstream.calculus.types import NUMBER, TEXT, QueueType, Schema
from millstream.connectors.location import parse_location
from millstream.connectors.read import open_reader
from millstream.errors import CheckError

INPUT = Input("trades", QueueType(Schema.of(price=NUMBER, note=TEXT)))


def test_a_misspelt_key_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"_time": 1, "prise": 2}\n{"_time": 2, "prise": 2}\n')
    with pytest.raises(CheckError) as caught:
        open_reader(parse_location("t.jsonl", tmp_path), INPUT)
    assert (
        't.jsonl: no "price", which input "trades" declares\n'
        '    its first rows have: _time, prise. Did you mean "prise"?'
    ) == str(caught.value)


def test_a_key_that_is_missing_is_null(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"_time": 1, "price": 2}\n')
    (chunk,) = open_reader(parse_location("t.jsonl", tmp_path), INPUT).chunks()
    assert [(2.0, None)] == chunk.batch.rows()
