"""Numbered files while following."""

from __future__ import annotations

from pathlib import Path

from millstream.calculus.types import INTEGER, QueueType, Schema
from millstream.connectors.location import parse_location
from millstream.connectors.parts import PartsWriter
from millstream.plan.batch import batch_of, empty_batch

TYPE = QueueType(Schema.of(x=INTEGER))


def test_each_batch_is_a_complete_file_and_numbers_go_on(tmp_path: Path) -> None:
    location = parse_location("out.csv", tmp_path)
    for value in (1, 2):
        writer = PartsWriter(location, TYPE)
        writer.write(empty_batch(TYPE))
        writer.write(batch_of(TYPE, [value], [(value,)]))
        writer.close()
    assert ["out-000001.csv", "out-000002.csv"] == sorted(p.name for p in tmp_path.iterdir())
    assert "_time,x\n2,2\n" == (tmp_path / "out-000002.csv").read_text()
