"""Buckets are written into checkpoints, so a key must fall into the same one for ever."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from millstream.calculus.types import TEXT, QueueType, Schema
from millstream.engine.buckets import buckets_of
from millstream.plan.batch import Batch, Vector, distinct_times

TEXTS = ["", "a", "S000001", "Wilhelminakade", "a text of more than sixteen bytes", "ß€", None]


def of_texts(values: object) -> Batch:
    time = np.zeros(len(values), np.int64)  # type: ignore[arg-type]
    return Batch(QueueType(Schema.of(k=TEXT)), time, (Vector(TEXT, values),))


def test_the_bucket_of_a_text_stays_what_it_is() -> None:
    batch = of_texts(pa.array(TEXTS))
    assert buckets_of(batch, ("k",), 1024, 0).tolist() == [178, 332, 749, 491, 808, 934, 431]


def test_a_text_has_one_bucket_however_it_is_encoded() -> None:
    plain = pa.array(TEXTS * 3)
    expected = buckets_of(of_texts(plain), ("k",), 16, 0).tolist()
    coded = plain.dictionary_encode()
    assert buckets_of(of_texts(coded), ("k",), 16, 0).tolist() == expected
    assert buckets_of(of_texts(coded.slice(7)), ("k",), 16, 0).tolist() == expected[7:]
    assert buckets_of(of_texts(plain.slice(3)), ("k",), 16, 0).tolist() == expected[3:]


def test_texts_that_are_alike_fall_evenly() -> None:
    names = pa.array([f"S{n:06}" for n in range(16_000)])
    counts = Counter(buckets_of(of_texts(names), ("k",), 16, 0).tolist())
    assert len(counts) == 16
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_times_that_are_not_in_order() -> None:
    assert distinct_times(np.array([3, 1, 3, 2, 1])).tolist() == [1, 2, 3]
    assert distinct_times(np.array([1, 1, 2])).tolist() == [1, 2]
    assert distinct_times(np.array([], np.int64)).tolist() == []
