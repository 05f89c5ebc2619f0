"""Reading ahead and writing behind change nothing but who waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millstream.calculus.types import NUMBER, Field, QueueType, Schema
from millstream.connectors.chunks import Chunk
from millstream.engine.local.beside import ReadAhead, WriteBehind
from millstream.plan.batch import Batch, batch_of

TYPE = QueueType(Schema((Field("x", NUMBER),)))


def batch(number: int) -> Batch:
    return batch_of(TYPE, [number], [(float(number),)])


def chunks(count: int, *, then: Exception | None = None) -> Iterator[Chunk]:
    for number in range(count):
        yield Chunk(batch(number))
    if then is not None:
        raise then


class Kept:
    """A writer that keeps times, and fails at one of them."""

    def __init__(self, bad: int = -1) -> None:
        self.times: list[int] = []
        self.bad = bad

    def write(self, one: Batch) -> None:
        if one.time[0] == self.bad:
            raise OSError("the disk is full")
        self.times += one.time.tolist()

    def close(self) -> None:
        """Nothing is open."""

    def abort(self) -> None:
        """Nothing is open."""


def test_chunks_come_in_their_order() -> None:
    ahead = ReadAhead(chunks(20))
    assert list(range(20)) == [int(chunk.batch.time[0]) for chunk in ahead]
    ahead.stop()


def test_a_fault_of_the_reader_comes_after_the_chunks_before_it() -> None:
    ahead = iter(ReadAhead(chunks(5, then=ValueError("no such row"))))
    assert list(range(5)) == [int(next(ahead).batch.time[0]) for _ in range(5)]
    with pytest.raises(ValueError, match="no such row"):
        next(ahead)


def test_reading_can_be_stopped_before_the_end() -> None:
    taken: list[int] = []

    def endless() -> Iterator[Chunk]:
        number = 0
        while True:
            taken.append(number)
            yield Chunk(batch(number))
            number += 1

    ahead = ReadAhead(endless())
    next(iter(ahead))
    ahead.stop()
    count = len(taken)
    assert 1 <= count <= 5
    assert count == len(taken)


def test_batches_are_written_in_their_order() -> None:
    one, other, behind = Kept(), Kept(), WriteBehind()
    for number in range(20):
        behind.write(one if number % 2 else other, batch(number))
    behind.finish()
    assert list(range(1, 20, 2)) == one.times
    assert list(range(0, 20, 2)) == other.times


def test_a_fault_of_a_writer_is_raised_and_nothing_is_written_after_it() -> None:
    writer, behind = Kept(bad=3), WriteBehind()

    def write_all() -> None:
        for number in range(200):
            behind.write(writer, batch(number))
        behind.finish()

    with pytest.raises(OSError, match="the disk is full"):
        write_all()
    behind.stop()
    assert [0, 1, 2] == writer.times
