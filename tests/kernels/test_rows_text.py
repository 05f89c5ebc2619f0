"""Row kernels: what touches text, on plain and on dictionary-encoded columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from millstream.calculus.types import Value
from millstream.kernels.loop.rows import RowKernel
from millstream.plan.batch import Batch, Vector
from tests.kernels.test_rows import ROUND, batch, kernel_of, rows_of

COLUMNS = "s text, r text, x number, i integer, p boolean, t time, d duration"
DEFAULTS: dict[str, Value] = {
    "s": "Ab c", "r": "b", "x": 0.1, "i": -12, "p": True, "t": 0, "d": 1500,
}  # fmt: skip
FAULT = "a fault"

CASES: list[tuple[str, dict[str, Value], Value]] = [
    ('s || "-" || r', {}, "Ab c-b"),
    ('s || "-" || r', {"r": None}, None),
    ("length(s)", {"s": "😀é"}, 2),
    ("length(s)", {"s": None}, None),
    ("upper(s)", {"s": "straße"}, "STRASSE"),
    ("upper(s)", {}, "AB C"),
    ("lower(s)", {"s": "ÀB"}, "àb"),
    ("trim(s)", {"s": "\u00a0 a \x1f"}, "a"),
    ("trim(s)", {"s": "\x1c\t a \x1f"}, "a"),
    ("substring(s, 2)", {}, "b c"),
    ("substring(s, -1)", {}, "Ab c"),
    ("substring(s, 0, 2)", {}, "A"),
    ("substring(s, 2, 2)", {"s": "a😀éb"}, "😀é"),
    ("substring(s, -5, 3)", {}, ""),
    ("substring(s, 1, i)", {}, FAULT),
    ("substring(s, 1, -1)", {}, FAULT),
    ("substring(s, 2, 9223372036854775807)", {}, "b c"),
    ("substring(s, 1, length(s) - 1)", {}, "Ab "),
    ("starts_with(s, r)", {"r": "Ab"}, True),
    ('ends_with(s, " c")', {}, True),
    ("contains(s, r)", {"r": ""}, True),
    ('contains("xbx", r)', {}, True),
    ('replace(s, "b", r || r)', {}, "Abb c"),
    ('replace(s, "", "x")', {}, "Ab c"),
    ('like(s, "A%c")', {}, True),
    ('like(s, "A_%\\n%")', {"s": "Ab\n"}, True),
    ('like(s, "A_")', {}, False),
    ('like(s, "%b%b%")', {"s": "abb"}, True),
    ('like(s, "%ab%ab")', {"s": "ab"}, False),
    ("like(s, r)", {"s": "a.c", "r": "a_c"}, True),
    ("like(s, r)", {"s": "abc", "r": "a.c"}, False),
    ('like(s, r, "!")', {"s": "a%c", "r": "a!%_"}, True),
    ('like(s, r, "!")', {"s": "abc", "r": "a!%_"}, False),
    ('like(s, r, "!")', {"s": "a!", "r": "a!!"}, True),
    ('like(s, r, "!")', {"s": "a", "r": "a!"}, True),
    ('like(s, r, "")', {"s": "a!b", "r": "a!_"}, True),
    ('like(s, r, "!!")', {"s": "a!b", "r": "a!_"}, True),
    ('like(s, r, "_")', {"s": "a_", "r": "a__"}, True),
    ("s < r", {"s": "\uffff", "r": "😀"}, True),
    ('s >= "Ab c"', {}, True),
    ("s == r", {"s": None}, None),
    ("least(s, r)", {"s": None}, "b"),
    ('greatest(s, r, "a")', {}, "b"),
    ("coalesce(s, r)", {"s": None}, "b"),
    ("if(x > 1.0, s, r)", {}, "b"),
    ("is_null(s)", {"s": None}, True),
    ("text(x)", {"x": -0.0}, "0.0"),
    ("text(x)", {"x": 1e16}, "1e+16"),
    ("text(x * 3.0)", {}, "0.30000000000000004"),
    ("text(i)", {}, "-12"),
    ("text(p)", {"p": None}, None),
    ("text(p)", {}, "true"),
    ("text(t)", {"t": 1_767_225_600_000_000}, "2026-01-01T00:00:00.000000Z"),
    ("text(t)", {"t": 2**62}, FAULT),
    ("text(d)", {}, "1500us"),
    ("number(s)", {"s": " 1e3 "}, 1000.0),
    ("number(s)", {"s": "1_0"}, FAULT),
    ("number(s)", {"s": "nan(1)"}, FAULT),
    ("number(s)", {"s": "-inf"}, float("-inf")),
    ("integer(s)", {"s": " +0012"}, 12),
    ("integer(s)", {"s": "0x1"}, FAULT),
    ("integer(s)", {"s": "9223372036854775808"}, FAULT),
    ("boolean(s)", {"s": " TRUE"}, True),
    ("boolean(s)", {"s": "yes"}, FAULT),
    ("integer(time(s))", {"s": "1970-01-01T00:00:01+00:00"}, 1_000_000),
    ("integer(time(s))", {"s": "1970-01-02"}, 86_400_000_000),
    ("integer(time(s))", {"s": "77"}, 77),
    ("integer(time(s))", {"s": "noon"}, FAULT),
    ("length(text(i)) + length(trim(r))", {}, 4),
    ('upper("constant") || text(1)', {}, "CONSTANT1"),
]
TERMS = list(dict.fromkeys(term for term, _, _ in CASES))


@pytest.fixture(scope="module")
def all_terms() -> RowKernel:
    columns = ", ".join(f"c{n} = {term}" for n, term in enumerate(TERMS))
    return kernel_of(f"output out; input a({COLUMNS}); (out) <- Map[{columns}](a);")


def encoded(given: Batch) -> Batch:
    columns = tuple(
        Vector(c.type, c.values.dictionary_encode()) if c.is_text else c for c in given.columns
    )
    return Batch(given.type, given.time, columns)


@pytest.mark.parametrize("is_encoded", [False, True])
@pytest.mark.parametrize("is_masked", [False, True])
def test_text_functions_compute_what_they_should(
    all_terms: RowKernel, is_encoded: bool, is_masked: bool
) -> None:
    for term, values, expected in CASES:
        row = tuple((DEFAULTS | values).values())
        rows = [row, row, (None,) * len(row)] if is_masked else [row, row]
        given = batch(all_terms, [(0, r) for r in rows])
        before = sum(all_terms.faults().values())
        (out,) = all_terms.process((encoded(given) if is_encoded else given,), ROUND)
        found = out.rows()[1][TERMS.index(term)]
        assert (None if expected == FAULT else expected) == found, term
        if expected == FAULT:
            assert before < sum(all_terms.faults().values()), term


def kernel_for(terms: Sequence[str]) -> RowKernel:
    columns = ", ".join(f"c{n} = {term}" for n, term in enumerate(terms))
    return kernel_of(f"output out; input a({COLUMNS}); (out) <- Map[{columns}](a);")


def test_guarded_faults_in_text_are_not_counted() -> None:
    kernel = kernel_for(
        [
            "upper(if(i > 0, substring(s, 1, i), s))",
            "length(coalesce(s, text(number(r))))",
            "if(i > 0, number(s), 1.5)",
        ]
    )
    assert [("AB C", 4, 1.5)] == rows_of(kernel, tuple(DEFAULTS.values()))
    assert {} == kernel.faults()


def test_faults_below_text_are_counted_once_per_row() -> None:
    kernel = kernel_for(["text(1.0 / (x - 0.1)) || text(number(s))", "length(text(number(r)))"])
    row = tuple(DEFAULTS.values())
    assert [(None, None), (None, None)] == rows_of(kernel, row, row)
    assert {"division by zero in 1.0 / (x - 0.1)": 2, "not a number in number(s)": 2,
            "not a number in number(r)": 2} == kernel.faults()  # fmt: skip


def test_many_distinct_texts_and_long_ones() -> None:
    kernel = kernel_for(["upper(s)", "length(s)", "number(r)", 'like(s, "%a%a%a%a%a%a%a%b")'])
    count = 2000
    texts = [f"{n}" + "a" * (n % 60) for n in range(count)]
    columns = [pa.array(texts), pa.array([str(n / 8) for n in range(count)])]
    given = batch(kernel, [(0, tuple(DEFAULTS.values()))] * count)
    vectors = tuple(
        Vector(old.type, new) for old, new in zip(given.columns[:2], columns, strict=True)
    )
    (out,) = kernel.process(
        (Batch(given.type, np.arange(count), vectors + given.columns[2:]),), ROUND
    )
    assert [(t.upper(), len(t), n / 8, False) for n, t in enumerate(texts)] == out.rows()


def test_two_hundred_nested_choices_between_texts_compile() -> None:
    term = '"none"'
    for n in range(200):
        term = f'if(i == {n}, "text {n}", {term})'
    kernel = kernel_for([term])
    rows = [tuple((DEFAULTS | {"i": n}).values()) for n in (0, 199, 200, None)]
    assert [("text 0",), ("text 199",), ("none",), ("none",)] == rows_of(kernel, *rows)
