from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.types import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Row,
    Schema,
)
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_text import TextPool
from millstream.plan.batch import Vector, vector_of
from tests.kernels.relational_cases import quick, rows, same

SCHEMA = Schema.of(a=TEXT, b=NUMBER, c=INTEGER, d=BOOLEAN, e=TIME, f=TEXT)
TYPES = tuple(f.type for f in SCHEMA)


def ids_of(interner: Interner, some: list[Row]) -> list[int]:
    vectors = [vector_of(t, [r[i] for r in some]) for i, t in enumerate(interner.codec.types)]
    return [int(i) for i in interner.ids(vectors, len(some))]


def rows_of(interner: Interner, ids: list[int]) -> list[Row]:
    vectors = interner.vectors(np.array(ids, np.int64))
    return list(zip(*(v.to_list() for v in vectors), strict=True))


@given(st.lists(st.lists(rows(SCHEMA), max_size=8), max_size=6))
@quick
def test_ids_are_those_of_a_dictionary_of_rows(batches: list[list[Row]]) -> None:
    interner = Interner(TYPES)
    known: dict[Row, int] = {}
    for some in batches:
        for row, number in zip(some, ids_of(interner, some), strict=True):
            assert known.setdefault(same(row), number) == number
    assert len(known) == interner.size == interner.bound == len(set(known.values()))
    assert list(known) == rows_of(interner, list(known.values()))


@given(
    st.lists(
        st.tuples(st.lists(rows(SCHEMA), max_size=8), st.sets(st.integers(0, 20))),
        max_size=8,
    )
)
@quick
def test_released_ids_are_given_again_and_others_stay(
    steps: list[tuple[list[Row], set[int]]],
) -> None:
    interner = Interner(TYPES)
    known: dict[Row, int] = {}
    most = 0
    for some, dead in steps:
        for row, number in zip(some, ids_of(interner, some), strict=True):
            assert known.setdefault(same(row), number) == number
        most = max(most, len(known))
        gone = [r for r, number in known.items() if number in dead]
        interner.release(np.array([known.pop(r) for r in gone], np.int64))
        interner.codec.sweep(interner.table.records[: interner.bound])
        copy = Interner(TYPES)
        copy.restore(interner.snapshot())
        interner = copy
    assert interner.size == len(known) == len(set(known.values()))
    assert interner.bound <= most
    assert list(known) == rows_of(interner, list(known.values()))


def test_no_columns_are_one_row() -> None:
    interner = Interner(())
    assert interner.ids((), 3).tolist() == [0, 0, 0]
    assert (1, ()) == (interner.size, interner.vectors(np.zeros(2, np.int64)))


def test_many_columns_have_more_than_one_null_word() -> None:
    interner = Interner((INTEGER,) * 130)
    one: Row = tuple(None if i in (0, 63, 64, 129) else i for i in range(130))
    other: Row = tuple(None if i in (0, 64, 129) else i for i in range(130))
    assert ids_of(interner, [one, other, one]) == [0, 1, 0]
    assert rows_of(interner, [1, 0]) == [other, one]


def text(values: pa.Array) -> Vector:
    return Vector(TEXT, values)


def test_text_encodings_agree() -> None:
    plain = pa.array(["b", None, "a", "b", "", "longer than eight"])
    nulls_in_dictionary = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 0, 3, 4], pa.int8()), pa.array(["b", None, "a", "", "longer than eight"])
    )
    encodings = [
        plain,
        plain.dictionary_encode(),
        plain.cast(pa.large_string()),
        nulls_in_dictionary,
        pa.concat_arrays([pa.array(["x", None]), plain]).slice(2),
        pa.concat_arrays([pa.array(["x", None]), plain]).dictionary_encode().slice(2),
    ]
    interner = Interner((TEXT,))
    found = [interner.ids([text(e)], len(e)).tolist() for e in encodings]
    assert [[0, 1, 2, 0, 3, 4]] * len(encodings) == found
    assert interner.vectors(np.arange(5))[0].to_list() == ["b", None, "a", "", "longer than eight"]


def test_empty_columns_of_text_have_no_ids() -> None:
    interner = Interner((TEXT,))
    nothing = pa.array([], pa.string())
    for values in (nothing, nothing.dictionary_encode(), pa.array([None], pa.string())[:0]):
        assert [] == interner.ids([text(values)], 0).tolist()
    all_null = pa.array([None, None], pa.string())
    for values in (all_null, all_null.dictionary_encode()):
        assert [0, 0] == interner.ids([text(values)], 2).tolist()


def many(start: int, count: int) -> Any:
    return pa.array([f"text number {i}" for i in range(start, start + count)])


def test_texts_of_released_rows_are_reclaimed() -> None:
    interner = Interner((TEXT, INTEGER))
    count = 2000
    for turn in range(30):
        new = [text(many(turn * count, count)), Vector(INTEGER, np.arange(count))]
        ids = interner.ids(new, count)
        assert interner.vectors(ids)[0].to_list() == new[0].to_list()
        interner.release(ids[1:])
    assert 30 == interner.size
    assert interner.bound < 2 * count
    assert len(interner.pool) < 5 * count
    assert len(interner.pool.texts.arena) < 1_000_000
    kept = interner.vectors(np.flatnonzero(interner.table.is_live()))[0].to_list()
    assert sorted(f"text number {turn * count}" for turn in range(30)) == sorted(map(str, kept))


def test_a_dictionary_that_comes_again_after_a_sweep_is_read_again() -> None:
    pool = TextPool()
    values = pa.array(["a", "b", "a"]).dictionary_encode()
    assert [0, 1, 0] == pool.codes(values).tolist()
    pool.sweep(np.array([False, True]))
    codes = pool.codes(values)
    assert ["a", "b", "a"] == pool.array(codes).to_pylist()
    assert 2 == len(pool)


def test_many_rows_make_the_table_grow() -> None:
    interner = Interner((INTEGER,))
    values = np.arange(100_000) * 2**40
    ids = interner.ids([Vector(INTEGER, values)], len(values))
    assert ids.tolist() == list(range(100_000))
    interner.release(ids[::2])
    again = interner.ids([Vector(INTEGER, values[1::2])], 50_000)
    assert ids[1::2].tolist() == again.tolist()
    assert sorted(ids[::2]) == sorted(interner.ids([Vector(INTEGER, values[::2])], 50_000))


def test_a_code_that_is_given_again_has_its_new_text() -> None:
    pool = TextPool()
    codes = pool.codes(pa.array(["a", "b", "c"]))
    pool.sweep(np.array([True, False, True]))
    assert ["a", "c"] * 2 == pool.array(codes[[0, 2, 0, 2]]).to_pylist()
    again = pool.codes(pa.array(["d"]))
    assert [1] == again.tolist()
    assert ["d"] * 3 == pool.array(np.repeat(again, 3)).to_pylist()


def test_only_the_entries_of_a_dictionary_that_are_used_are_kept() -> None:
    pool = TextPool()
    values = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 2]), pa.array(["a", "b", "c"]))
    assert [0, -1, 1, 0] == pool.codes(values).tolist()
    assert [1, 2, -1] == pool.codes(
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), values.dictionary)
    ).tolist()
    assert 3 == len(pool)


def test_many_texts() -> None:
    interner = Interner((TEXT,))
    texts = [None if i % 1000 == 7 else f"{i:x}" * (i % 5) for i in range(40_000)]
    for some in (texts, texts[::-1]):
        ids = interner.ids([text(pa.array(some))], len(some))
        assert some == interner.vectors(ids)[0].to_list()
    assert interner.size == len(set(texts))
    first = interner.ids([text(pa.array(texts))], len(texts))
    dead = np.unique(first)[::3]
    interner.release(dead)
    interner.codec.sweep(interner.table.records[: interner.bound])
    again = interner.ids([text(pa.array(texts))], len(texts))
    assert texts == interner.vectors(again)[0].to_list()
    kept = ~np.isin(first, dead)
    assert np.array_equal(first[kept], again[kept])
