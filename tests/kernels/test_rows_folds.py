"""Row kernels: folds, keys, shared variables, snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from millstream.calculus.terms import NAN
from millstream.calculus.types import Row
from millstream.kernels.loop.rows import RowKernel
from tests.kernels.test_rows import ROUND, batch, kernel_of, rows_of

RUNNING_SUM = """
output out; input a(k text, x number); variable $v(total number = 0.0, n integer = 0);
(out, $v) <- Fold[by k; set $v.total = $v.total + x, $v.n = $v.n + 1;
                  emit k, total = $v.total, n = $v.n](a, $v);
"""

MARKET_MAKER = """
output hits; input bids(sym text, price number), asks(sym text, price number);
variable $last(price number = null(number), seller text = "nobody");
($last) <- Fold[by sym; set $last.price = price, $last.seller = sym](asks, $last);
(hits) <- Fold[by sym; when price >= $last.price;
               emit sym, bid = price, ask = $last.price, seller = $last.seller](bids, $last);
"""


def test_a_fold_keeps_a_record_per_key() -> None:
    found = rows_of(kernel_of(RUNNING_SUM), ("a", 1.0), ("b", 2.0), ("a", 3.0), (None, 4.0),
                    (None, 5.0))  # fmt: skip
    expected = [("a", 1.0, 1), ("b", 2.0, 1), ("a", 4.0, 2), (None, 4.0, 1), (None, 9.0, 2)]
    assert expected == found


def test_when_sees_the_state_before_and_emit_the_state_after() -> None:
    kernel = kernel_of(
        "output out; input a(x integer); variable $v(a integer = 1, b integer = 2);"
        "(out, $v) <- Fold[when $v.a < 3; set $v.a = $v.b, $v.b = $v.a + x;"
        " emit a = $v.a, b = $v.b](a, $v);"
    )
    assert [(2, 2), (2, 3), (3, 3)] == rows_of(kernel, (1,), (1,), (1,), (1,), (1,))


def test_a_condition_that_is_null_changes_nothing() -> None:
    kernel = kernel_of(
        "output out; input a(x integer); variable $v(n integer = 0);"
        "(out, $v) <- Fold[when x > 0; set $v.n = $v.n + 1; emit n = $v.n](a, $v);"
    )
    assert [(1,), (2,)] == rows_of(kernel, (1,), (None,), (0,), (5,))


def test_overflowing_state_becomes_null_and_stays_so() -> None:
    kernel = kernel_of(
        "output out; input a(x integer); variable $v(n integer = 9223372036854775806);"
        "(out, $v) <- Fold[set $v.n = $v.n + x; emit n = $v.n](a, $v);"
    )
    assert [(2**63 - 1,), (None,), (None,)] == rows_of(kernel, (1,), (1,), (1,))
    assert {"integer overflow in $v.n + x": 1} == kernel.faults()


@pytest.mark.parametrize(
    ("type_", "keys"),
    [
        ("integer", [5, -(2**63), 5, None]),
        ("number", [0.0, NAN, -0.0, 1.5]),
        ("boolean", [True, False, True, None]),
        ("duration", [1, 2, 1, None]),
        ("text", ["a", "", "a", None]),
    ],
)
def test_keys_of_every_type_find_their_record(type_: str, keys: list[Any]) -> None:
    kernel = kernel_of(
        f"output out; input a(k {type_}); variable $v(n integer = 0);"
        "(out, $v) <- Fold[by k; set $v.n = $v.n + 1; emit n = $v.n](a, $v);"
    )
    assert [(1,), (1,), (2,), (1,)] == rows_of(kernel, *((key,) for key in keys))


def test_computed_columns_can_be_keys() -> None:
    kernel = kernel_of(
        "output out; input a(s text, x integer); variable $v(n integer = 0);"
        "(b) <- Map[k = upper(s), r = x % 2](a);"
        "(out, $v) <- Fold[by k, r; set $v.n = $v.n + 1; emit k, r, n = $v.n](b, $v);"
    )
    found = rows_of(kernel, ("a", 1), ("A", 3), ("a", 2), ("b", 1))
    assert [("A", 1, 1), ("A", 1, 2), ("A", 0, 1), ("B", 1, 1)] == found


def test_folds_on_different_queues_share_a_variable_by_time_and_rank() -> None:
    kernel = kernel_of(MARKET_MAKER)
    bids = batch(kernel, [(1, ("a", 9.0)), (3, ("a", 9.0)), (5, ("a", 9.0)), (5, ("b", 9.0))])
    asks = batch(kernel, [(2, ("a", 8.0)), (5, ("a", 10.0)), (5, ("b", 1.0))], number=1)
    bids = replace(bids, rank=np.array([0, 0, 0, 5]))
    asks = replace(asks, rank=np.array([0, 1, 2]))
    (hits,) = kernel.process((bids, asks), ROUND)
    assert [
        (3, ("a", 9.0, 8.0, "a")),
        (5, ("a", 9.0, 8.0, "a")),
        (5, ("b", 9.0, 1.0, "b")),
    ] == list(zip(hits.time.tolist(), hits.rows(), strict=True))
    assert hits.rank is not None
    assert [0, 0, 5] == hits.rank.tolist()


def test_of_equal_time_and_rank_the_first_input_goes_first() -> None:
    kernel = kernel_of(MARKET_MAKER)
    bids = batch(kernel, [(1, ("a", 9.0)), (2, ("a", 9.0))])
    asks = batch(kernel, [(1, ("a", 8.0))], number=1)
    (hits,) = kernel.process((bids, asks), ROUND)
    assert [2] == hits.time.tolist()


def test_each_slot_of_a_flat_map_is_folded_in_turn() -> None:
    """An operator handles all items of a row before the next operator runs."""
    kernel = kernel_of(
        "output out; input a(x integer); variable $v(n integer = 0), $w(n integer = 0);"
        "(b) <- FlatMap[emit k = x, y = 1; when x > 1 emit k = x + 1, y = 10](a);"
        "(c, $v) <- Fold[set $v.n = $v.n + y; emit k, v = $v.n](b, $v);"
        "(out, $w) <- Fold[by k; set $w.n = $w.n + 1; emit k, v, w = $w.n](c, $w);"
    )
    expected = [(1, 1, 1), (2, 2, 1), (3, 12, 1), (3, 13, 2), (4, 23, 1)]
    assert expected == rows_of(kernel, (1,), (2,), (3,))


def test_texts_go_through_state() -> None:
    kernel = kernel_of(
        'output out; input a(s text); variable $v(last text = "none", same integer = 0);'
        "(out, $v) <- Fold[set $v.last = s, $v.same = $v.same + if($v.last == s, 1, 0);"
        ' emit s, same = $v.same, first = if($v.last == "x", upper(s), s)](a, $v);'
    )
    found = rows_of(kernel, ("x",), ("x",), (None,), (None,), ("none",), ("none",))
    expected = [("x", 0, "X"), ("x", 1, "X"), (None, 1, None), (None, 1, None), ("none", 1, "none"),
                ("none", 2, "none")]  # fmt: skip
    assert expected == found


def test_texts_no_longer_in_state_are_forgotten() -> None:
    kernel = kernel_of(
        'output out; input a(s text); variable $v(last text = "start");'
        "(out, $v) <- Fold[set $v.last = s; emit old = coalesce($v.last, s)](a, $v);"
    )
    for start in range(0, 60_000, 3_000):
        rows_of(kernel, *((f"text number {n}",) for n in range(start, start + 3_000)))
    assert 15_000 > len(kernel.pool)
    assert [("again",)] == rows_of(kernel, ("again",))


def test_keys_kept_away_by_a_filter_are_forgotten() -> None:
    kernel = kernel_of(
        "output out; input a(k integer, x integer); variable $v(n integer = 0);"
        "(b) <- Filter[x > 0](a);"
        "(out, $v) <- Fold[by k; set $v.n = $v.n + x; emit k, n = $v.n](b, $v);"
    )
    rows_of(kernel, (-1, 5))
    for start in range(0, 50_000, 5_000):
        rows_of(kernel, *((n, 0) for n in range(start, start + 5_000)))
    (space,) = kernel.variables.spaces
    assert 10_000 > space.interner.size
    assert [(-1, 7), (7, 1)] == rows_of(kernel, (-1, 2), (7, 1))


# --- batches and snapshots --------------------------------------------------------------

ITEMS: list[tuple[int, Row]] = [(n // 3, (f"key {n % 7}", n / 4)) for n in range(60)]


def run_in_parts(kernel: RowKernel, cuts: list[int]) -> list[Row]:
    found: list[Row] = []
    for start, end in zip([0, *cuts], [*cuts, len(ITEMS)], strict=True):
        (out,) = kernel.process((batch(kernel, ITEMS[start:end]),), ROUND)
        found += out.rows()
    return found


@pytest.mark.parametrize("cuts", [[], [30], [0, 1, 2, 3], list(range(60))])
def test_no_answer_depends_on_where_a_batch_ends(cuts: list[int]) -> None:
    expected = rows_of(kernel_of(RUNNING_SUM), *(row for _, row in ITEMS))
    assert expected == run_in_parts(kernel_of(RUNNING_SUM), cuts)


def test_a_restored_kernel_goes_on_as_if_never_interrupted() -> None:
    kernel, twin = kernel_of(RUNNING_SUM), kernel_of(RUNNING_SUM)
    kernel.process((batch(kernel, ITEMS[:25]),), ROUND)
    state = kernel.snapshot()
    rest = batch(kernel, ITEMS[25:])
    (expected,) = kernel.process((rest,), ROUND)
    rows_of(twin, ("something else", 1.0))
    twin.restore(state)
    (found,) = twin.process((rest,), ROUND)
    assert expected.rows() == found.rows()


def test_a_snapshot_is_plain_arrays_that_do_not_change_later() -> None:
    kernel = kernel_of(MARKET_MAKER)
    nothing = batch(kernel, [])
    kernel.process((nothing, batch(kernel, [(1, ("a", 8.0)), (1, (None, None))], number=1)), ROUND)
    state = kernel.snapshot()
    before = {name: array.copy() for name, array in state.items()}
    kernel.process((nothing, batch(kernel, [(2, ("a", 9.0)), (2, ("é", 1.0))], number=1)), ROUND)
    assert all(isinstance(array, np.ndarray) for array in state.values())
    assert all(np.array_equal(before[name], array) for name, array in state.items())
    kernel.restore(state)
    (hits,) = kernel.process((batch(kernel, [(3, ("a", 8.5)), (3, ("é", 9.0))]), nothing), ROUND)
    assert [("a", 8.5, 8.0, "a")] == hits.rows()


def test_a_snapshot_depends_on_the_rows_only() -> None:
    """Not on batches, nor on whether the state has been restored in between."""
    one, other = kernel_of(RUNNING_SUM), kernel_of(RUNNING_SUM)
    run_in_parts(one, [])
    other.process((batch(other, ITEMS[:20]),), ROUND)
    other.restore(other.snapshot())
    other.process((batch(other, ITEMS[20:]),), ROUND)
    expected, found = one.snapshot(), other.snapshot()
    assert expected.keys() == found.keys()
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


def test_faults_are_part_of_a_snapshot() -> None:
    kernel = kernel_of("output out; input a(x number); (out) <- Map[y = 1.0 / x](a);")
    rows_of(kernel, (0.0,))
    state = kernel.snapshot()
    rows_of(kernel, (0.0,))
    kernel.restore(state)
    assert {"division by zero in 1.0 / x": 1} == kernel.faults()
