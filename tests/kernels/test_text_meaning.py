"""Functions of text on columns give what their definition gives, character by character."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.calculus.terms import Call, Literal, canonical
from millstream.calculus.types import BOOLEAN, DURATION, INTEGER, NUMBER, TEXT, TIME, Type, Value
from millstream.kernels.loop.text_columns import Scalar, apply
from millstream.kernels.loop.text_functions import FAULTS
from millstream.meaning.scalars import evaluate
from millstream.plan.batch import vector_of
from millstream.values.core import plain_text as defined
from millstream.values.core.scalar import Signature
from millstream.values.core.table import OF_ROWS

WORDS = st.text("ab%_ßİς \t\u2003\x1c\u0301", max_size=6)
NUMERALS = st.sampled_from(
    ["1", " -2.5 ", "1e3", ".5", "5.", "1_0", "inf", "-Infinity", "NaN", "nan(1)", "0x1", "", "٣",
     "1e400", "+7", "--1", "9223372036854775807", "9223372036854775808", "0" * 30 + "1", "1.5e",
     "true", " FALSE ", "yes"]
)  # fmt: skip
MOMENTS = st.sampled_from(
    ["2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31 12:00:00.5+02:00", "0001-01-01", "x",
     "9999-12-31T23:59:59.999999-12:00", "20260131", "2026-W05-6", "12", "-99999999999999999999"]
)  # fmt: skip
VALUES: dict[Type, st.SearchStrategy[Value]] = {
    TEXT: WORDS | WORDS | NUMERALS | MOMENTS,
    INTEGER: st.integers(-3, 8) | st.sampled_from([2**63 - 1, -(2**63)]),
    NUMBER: st.floats(allow_subnormal=True).map(lambda n: float(canonical(n) or 0.0)),
    BOOLEAN: st.booleans(),
    TIME: st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 253402300799999999]),
    DURATION: st.integers(-(2**63), 2**63 - 1),
}


def signatures() -> list[tuple[str, tuple[Type, ...], Type]]:
    """All scalars that take a text or give one, with any types that fit."""
    types = list(VALUES)
    made: list[tuple[str, tuple[Type, ...], Type]] = []
    for scalar in OF_ROWS.values():
        pools: list[tuple[Type, ...]] = [(a,) for a in types]
        pools += [(a, b) for a in types for b in types]
        pools += [(TEXT, b, c) for b in (TEXT, INTEGER) for c in (TEXT, INTEGER)]
        for params in pools:
            answer = scalar.rule(params)
            fits = isinstance(answer, Signature) and answer.params == params
            if fits and isinstance(answer, Signature) and scalar.name not in LAZY:
                if TEXT in params or answer.result == TEXT:
                    made.append((scalar.name, params, answer.result))
    return made


LAZY = ("coalesce", "least", "greatest", "is_null", "if")


def _name(part: str | Type | tuple[Type, ...]) -> str:
    return "+".join(map(str, part)) if isinstance(part, tuple) else str(part)


@pytest.mark.parametrize(("function", "params", "result"), signatures(), ids=_name)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_column_of_texts_is_computed_as_each_text_is(
    function: str, params: tuple[Type, ...], result: Type, data: st.DataObject
) -> None:
    rows: list[Any] = data.draw(st.lists(st.tuples(*(VALUES[p] for p in params)), min_size=1))
    # Any but the first argument may be the same in all rows, which has a way of its own.
    same = [n > 0 and data.draw(st.booleans()) for n in range(len(params))]
    rows = [tuple(rows[0][n] if same[n] else v for n, v in enumerate(row)) for row in rows]
    expected, faults = [], []
    for row in rows:
        counted: Counter[str] = Counter()
        args = tuple(Literal(v, t) for v, t in zip(row, params, strict=True))
        expected.append(evaluate(Call(function, args, result), {}, None, counted))
        faults.append([fault.partition(" in ")[0] for fault in counted])
    arguments = [
        Scalar(t, rows[0][n]) if same[n] else vector_of(t, [row[n] for row in rows])
        for n, t in enumerate(params)
    ]
    answer = apply(function, arguments, result, len(rows))
    # As text, which tells True from 1 and has NaN equal to itself.
    assert repr(expected) == repr(answer.vector.to_list())
    messages = FAULTS.get((function, params[0].kind), ())
    bits = [0] * len(rows) if answer.faults is None else answer.faults.tolist()
    assert faults == [[m for n, m in enumerate(messages) if bit >> n & 1] for bit in bits]


@settings(max_examples=300, deadline=None)
@given(WORDS, WORDS, WORDS)
@example("aaa", "aa", "b")
def test_the_definition_is_what_python_says_too(text: str, part: str, new: str) -> None:
    assert text.strip() == defined.trim(text)
    assert text.startswith(part) == defined.starts_with(text, part)
    assert text.endswith(part) == defined.ends_with(text, part)
    assert text.find(part) + 1 == defined.position(text, part)
    if part:
        assert text.replace(part, new) == defined.replace(text, part, new)


@pytest.mark.parametrize("text", ["a" * 3000 + "b", "a" * 3000])
def test_many_marks_for_any_text_take_no_longer(text: str) -> None:
    pattern = "%a" * 12 + "%b"
    assert text.endswith("b") == defined.like(text, pattern)
