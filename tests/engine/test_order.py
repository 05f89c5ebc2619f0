"""Items from several places in one order."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.calculus.types import INTEGER, Field, QueueType, Schema
from millstream.engine.order import in_order
from millstream.plan.batch import Batch, Vector

TYPE = QueueType(Schema((Field("n", INTEGER),)), is_relation=False)


def batch_of(items: list[tuple[int, int]]) -> Batch:
    """Items given as time and rank, whose only column says which they are."""
    time, rank = (np.array(column, np.int64) for column in zip(*items, strict=True))
    return Batch(TYPE, time, (Vector(INTEGER, 1_000 * time + rank),), None, rank)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(1, 3), (2, 6), (9, 8)], [(1, 4), (5, 7)]),  # in the order of the log
        ([(1, 6), (2, 3)], [(1, 7), (3, 4)]),  # time goes back in the log
        ([(1, 3), (2, 4)], [(1, 3), (2, 4)]),  # two items of one row
        ([(1, 3), (2, 4)], [(1, 1_000), (2, 2)]),  # ranks far apart
        ([(1, 3), (5, 3)], [(2, 3), (7, 3)]),  # one rank
    ],
)
def test_items_are_ordered_by_time_and_rank(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    found = in_order([batch_of(one), batch_of(other)], TYPE)
    assert found.rank is not None
    expected = sorted(one + other)
    assert expected == list(zip(found.time.tolist(), found.rank.tolist(), strict=True))
    assert [1_000 * time + rank for time, rank in expected] == found.columns[0].values.tolist()
