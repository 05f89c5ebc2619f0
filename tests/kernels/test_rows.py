"""Row kernels: what happens to rows, columns, times, weights and ranks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from millstream.calculus.graph import Program, in_dependency_order
from millstream.calculus.types import TEXT, Row
from millstream.kernels.loop.rows import RowKernel, why_not
from millstream.kernels.runtime.kernel import Round
from millstream.languages.brook.load import load
from millstream.plan.batch import Batch, Vector, batch_of
from millstream.source import Source

ROUND = Round(10**9, np.zeros(0, np.int64))


def program_of(text: str) -> Program:
    return load(Source("test", text))


def kernel_for(program: Program) -> RowKernel:
    inputs = tuple((i.name, i.type) for i in program.inputs)
    return RowKernel(in_dependency_order(program), inputs, program.outputs, program.variables)


def kernel_of(text: str) -> RowKernel:
    return kernel_for(program_of(text))


def reason_of(text: str) -> str | None:
    program = program_of(text)
    inputs = tuple((i.name, i.type) for i in program.inputs)
    return why_not(in_dependency_order(program), inputs, program.variables)


def batch(
    kernel: RowKernel, items: Sequence[tuple[int, Row]], *, number: int = 0, rank: int = 0
) -> Batch:
    """A batch of an input; ranks count up from `rank`."""
    type_ = kernel.trace.inputs[number]
    weights = [1] * len(items) if type_.is_relation else None
    made = batch_of(type_, [t for t, _ in items], [r for _, r in items], weights)
    return replace(made, rank=np.arange(rank, rank + len(items)))


def rows_of(kernel: RowKernel, *rows: Row) -> list[Row]:
    """The rows of the only output for rows of the only input, all of time 0."""
    (out,) = kernel.process((batch(kernel, [(0, row) for row in rows]),), ROUND)
    return out.rows()


def test_filter_keeps_true_and_drops_false_and_null() -> None:
    kernel = kernel_of("output out; input a(x number); (out) <- Filter[x > 1.0](a);")
    assert [(2.0,), (float("inf"),)] == rows_of(kernel, (1.0,), (2.0,), (None,), (float("inf"),))


def test_items_keep_time_weight_and_rank() -> None:
    kernel = kernel_of("output out; input a relation(x integer); (out) <- Filter[x > 1](a);")
    given = batch(kernel, [(1, (1,)), (2, (2,)), (2, (3,))], rank=7)
    given = replace(given, weight=np.array([1, -1, 2]))
    (out,) = kernel.process((given,), ROUND)
    assert [2, 2] == out.time.tolist()
    assert out.weight is not None
    assert [-1, 2] == out.weight.tolist()
    assert out.rank is not None
    assert [8, 9] == out.rank.tolist()


def test_without_rank_and_weight_there_is_none() -> None:
    kernel = kernel_of("output out; input a(x integer); (out) <- Map[y = x + 1](a);")
    (out,) = kernel.process((replace(batch(kernel, [(1, (1,))]), rank=None),), ROUND)
    assert out.rank is None
    assert out.weight is None


def test_every_term_can_read_the_time() -> None:
    kernel = kernel_of(
        "output out; input a(x integer); (b) <- Map[y = x](a); (out) <- Map[t = _time, y](b);"
    )
    (out,) = kernel.process((batch(kernel, [(5, (1,)), (6, (2,))]),), ROUND)
    assert [(5, 1), (6, 2)] == out.rows()


def test_columns_that_pass_are_not_copied_if_all_rows_do() -> None:
    kernel = kernel_of(
        "output out; input a(s text, x number);"
        "(b) <- Filter[x > 0.0](a); (out) <- Map[s, x, y = x + 1.0](b);"
    )
    given = batch(kernel, [(0, ("a", 1.0)), (1, ("b", 2.0))])
    (out,) = kernel.process((given,), ROUND)
    assert given.columns[0] is out.columns[0]
    assert given.columns[1] is out.columns[1]
    assert given.time is out.time


def test_text_that_is_not_looked_at_is_never_interned() -> None:
    kernel = kernel_of(
        "output out; input a(s text, x number); variable $v(n integer = 0);"
        '(b) <- Filter[x > 0.0 and s != "z"](a);'
        "(out, $v) <- Fold[set $v.n = $v.n + 1; emit s, n = $v.n](b, $v);"
    )
    assert [("a", 1), ("b", 2)] == rows_of(kernel, ("a", 1.0), ("z", 1.0), ("b", 2.0))
    assert 0 == len(kernel.pool)


def test_dictionary_encoded_text_stays_so() -> None:
    kernel = kernel_of(
        "output out; input a(s text);"
        "(b) <- Filter[length(s) > 1](a); (out) <- Map[u = upper(s)](b);"
    )
    encoded = pa.array(["ab", "c", None, "ab", "dé"]).dictionary_encode()
    given = Batch(kernel.trace.inputs[0], np.arange(5), (Vector(TEXT, encoded),))
    (out,) = kernel.process((given,), ROUND)
    assert [("AB",), ("AB",), ("DÉ",)] == out.rows()
    assert pa.types.is_dictionary(out.columns[0].values.type)


def test_a_null_in_a_dictionary_is_a_null() -> None:
    kernel = kernel_of(
        "output out; input a(s text); (out) <- Map[n = is_null(s), u = upper(s)](a);"
    )
    indices = pa.array([0, 1, None], pa.int32())
    encoded = pa.DictionaryArray.from_arrays(indices, pa.array(["a", None]))
    given = Batch(kernel.trace.inputs[0], np.arange(3), (Vector(TEXT, encoded),))
    (out,) = kernel.process((given,), ROUND)
    assert [(False, "A"), (True, None), (True, None)] == out.rows()


def test_arrays_that_are_not_contiguous_are_read_rightly() -> None:
    kernel = kernel_of("output out; input a(x integer); (out) <- Map[y = x + 1](a);")
    values = np.arange(10)[::3]
    type_ = kernel.trace.inputs[0]
    (out,) = kernel.process(
        (Batch(type_, np.arange(4), (Vector(type_.schema["x"], values),)),), ROUND
    )
    assert [(1,), (4,), (7,), (10,)] == out.rows()


def test_flat_map_sends_a_row_per_branch_in_order() -> None:
    kernel = kernel_of(
        "output out; input a(s text, x integer);"
        '(out) <- FlatMap[emit k = s, n = x; when x > 1 emit k = "big", n = x * 10;'
        " when x > 2 emit k = upper(s), n = x](a);"
    )
    expected = [("a", 1), ("b", 2), ("big", 20), ("c", 3), ("big", 30), ("C", 3)]
    assert expected == rows_of(kernel, ("a", 1), ("b", 2), ("c", 3))


def test_duplicate_feeds_branches_that_go_their_own_way() -> None:
    kernel = kernel_of(
        "output small, big; input a(x integer);"
        "(b, c) <- Duplicate(a); (small) <- Filter[x < 2](b); (big) <- Filter[x >= 2](c);"
    )
    small, big = kernel.process((batch(kernel, [(0, (n,)) for n in range(4)]),), ROUND)
    assert [(0,), (1,)] == small.rows()
    assert [(2,), (3,)] == big.rows()


def test_a_column_used_by_many_operators_is_one_value() -> None:
    """Doubling a column sixty times would give a term of 2^60 nodes, were it copied."""
    steps = [f"(q{n + 1}) <- Map[x = x + x](q{n});" for n in range(60)]
    text = "output q60; input q0(x number);" + "".join(steps)
    assert [(2.0**60,), (None,)] == rows_of(kernel_of(text), (1.0,), (None,))


def test_a_hundred_filters_in_a_row_compile() -> None:
    steps = [f"(q{n + 1}) <- Filter[x != {n}](q{n});" for n in range(120)]
    kernel = kernel_of("output q120; input q0(x integer);" + "".join(steps))
    assert [(-1,), (120,)] == rows_of(kernel, (-1,), (0,), (77,), (119,), (120,))


def test_empty_batches_compile_nothing() -> None:
    kernel = kernel_of("output out; input a(s text, x number); (out) <- Map[s, y = x](a);")
    (out,) = kernel.process((batch(kernel, []),), ROUND)
    assert 0 == len(out)
    assert ("s", "y") == out.schema.names


def test_generated_code_holds_nothing_a_user_wrote() -> None:
    kernel = kernel_of(
        "output out; input secret(hidden text, veiled number);"
        '(out) <- Filter[hidden == "covert" and veiled > 12.5](secret);'
    )
    masked = kernel.functions.masked.source
    assert "12.5" in masked
    for word in ("secret", "hidden", "veiled", "covert"):
        assert word not in masked
        assert word not in kernel.source


def test_batches_without_nulls_pay_nothing_for_them() -> None:
    kernel = kernel_of("output out; input a(x number); (out) <- Map[y = x * 2.0 + 1.0](a);")
    assert "boxed" not in kernel.source
    assert "valid" not in kernel.source
    assert "boxed" in kernel.functions.masked.source


def test_what_fails_where_nothing_should_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.kernels.loop.rows._MANY", 1)
    kernel = kernel_of(
        "output out; input a(x integer, y integer);"
        "(b) <- Filter[x + y > 0](a); (out) <- Map[q = x % y, s = x + y](b);"
    )
    assert "out_valid" not in kernel.source
    assert [(1, 10), (0, 4)] == rows_of(kernel, (7, 3), (-9, 1), (3, 1))
    assert [(None, 6), (0, 4)] == rows_of(kernel, (6, 0), (3, 1))
    assert {"division by zero in x % y": 1} == kernel.faults()
    assert [(1, 10), (None, 1)] == rows_of(kernel, (7, 3), (1, 0))
    assert {"division by zero in x % y": 2} == kernel.faults()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("emit u = upper($v.s)", '"upper" is applied to text that depends on a variable'),
        ("emit b = $v.s < s", '"<" is applied to text that depends on a variable'),
        ("emit b = $v.s == s", None),
        ("emit b = coalesce($v.s, upper(s))", None),
    ],
)
def test_what_depends_on_text_and_state_may_not_compile(body: str, reason: str | None) -> None:
    found = reason_of(
        "output out; input a(s text); variable $v(s text = null(text));"
        f"(out, $v) <- Fold[set $v.s = coalesce($v.s, s); {body}](a, $v);"
    )
    assert found is None if reason is None else found is not None and found.startswith(reason)


def test_what_a_fold_has_just_stored_need_not_depend_on_state() -> None:
    kernel = kernel_of(
        "output out; input a(s text); variable $v(s text = null(text));"
        "(out, $v) <- Fold[set $v.s = s; emit u = upper($v.s)](a, $v);"
    )
    assert [("A",), (None,)] == rows_of(kernel, ("a",), (None,))


def test_a_key_that_depends_on_state_does_not_compile() -> None:
    found = reason_of(
        "output out; input a(x integer); variable $v(n integer = 0), $w(n integer = 0);"
        "(b, $v) <- Fold[set $v.n = $v.n + 1; emit k = $v.n](a, $v);"
        "(out, $w) <- Fold[by k; set $w.n = $w.n + 1; emit n = $w.n](b, $w);"
    )
    assert 'the key "k" of Fold->out depends on a variable' == found


_KEEPS_NOTHING = (
    "output out, next; input a(s text, x integer, y integer); (b, c) <- Duplicate(a);"
    "(out) <- Map[s, q = x % y, u = coalesce(div(x, y), -1)](b);"
    "(next) <- FlatMap[when x % y > 1 emit q = x, t = s; emit q = x + y, t = s](c);"
)
_KEEPS = (
    "output sums; input a(s text, x integer, y integer); variable $v(total integer = 0);"
    "(sums, $v) <- Fold[set $v.total = $v.total + coalesce(div(x, y), 0);"
    "emit s, total = $v.total](a, $v);"
)


@pytest.mark.parametrize("text", [_KEEPS_NOTHING, _KEEPS])
@pytest.mark.parametrize("how_many", [0, 1, 5, 400])
@pytest.mark.parametrize("of", ["nulls", "zeros", "both"])
def test_a_null_or_a_fault_makes_its_block_slow_and_changes_nothing(
    text: str, how_many: int, of: str
) -> None:
    """A batch in one piece gives what small ones give, which are never done by blocks."""
    chance = random.Random(how_many)
    rows: list[Row] = [(chance.choice("abc"), chance.randrange(99), 1) for _ in range(5000)]
    for place in chance.sample(range(5000), how_many):
        is_null = of == "nulls" or (of == "both" and chance.random() < 0.5)
        rows[place] = ("z", chance.randrange(99), None if is_null else 0)
    whole, cut = kernel_of(text), kernel_of(text)
    at_once = [b.rows() for b in whole.process((batch(whole, list(enumerate(rows))),), ROUND)]
    pieces: list[list[Row]] = [[] for _ in at_once]
    for begin in range(0, 5000, 97):
        piece = list(enumerate(rows))[begin : begin + 97]
        for so_far, made in zip(pieces, cut.process((batch(cut, piece),), ROUND), strict=True):
            so_far.extend(made.rows())
    assert pieces == at_once
    assert cut.faults() == whole.faults()
    assert repr(cut.snapshot()) == repr(whole.snapshot())


def test_kernels_of_one_program_keep_their_own_state() -> None:
    program = program_of("""
        output out; input a(x integer); variable $v(sum integer = 0);
        (out, $v) <- Fold[set $v.sum = $v.sum + x; emit sum = $v.sum](a, $v);
    """)
    first, second = kernel_for(program), kernel_for(program)
    assert [(1,), (3,)] == rows_of(first, (1,), (2,))
    assert [(5,)] == rows_of(second, (5,))
    assert [(6,)] == rows_of(first, (3,))
