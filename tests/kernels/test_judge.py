"""The machine for requirements gives what the definition gives, row for row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.functions import FunctionFault, Judge
from millstream.calculus.judging import Requirement, Shown
from millstream.calculus.terms import NAN, Call, Column, Literal, Term
from millstream.calculus.types import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    QueueType,
    Row,
    Schema,
)
from millstream.compiled import tight
from millstream.environment.judging import outcome, verdict
from millstream.kernels.judge import JudgeKernel
from millstream.kernels.judge_code import why_not
from millstream.kernels.kernel import Round
from millstream.kernels.loops_judge import SKIP
from millstream.kernels.loops_numerals import LONGEST, UNSURE, put_number
from millstream.kernels.rounds import NO_TICKS
from millstream.plan.batch import Array, batch_of

SCHEMA = Schema.of(k=INTEGER, x=NUMBER, y=NUMBER, n=INTEGER, b=BOOLEAN, s=TEXT, t=TEXT, u=TIME,
                   v=TIME)  # fmt: skip
TYPE = QueueType(SCHEMA, is_relation=True)
NUMBERS = st.sampled_from((0.0, 1.0, -1.5, 2.0, NAN, float("inf"), 0.1, 1234567890.5, 3e-14, None))
TEXTS = st.sampled_from(("a", "b", "", None))
TIMES = st.sampled_from((0, 5, -(2**62), 2**62, 2**63 - 1, -(2**63), None))


def column(name: str) -> Column:
    return Column(name, SCHEMA[name])


def numbers() -> st.SearchStrategy[Term]:
    seconds = Call("seconds", (Call("-", (column("u"), column("v")), DURATION),), NUMBER)
    leaf: st.SearchStrategy[Term] = st.sampled_from(
        (column("x"), column("y"), Call("number", (column("n"),), NUMBER), seconds,
         Literal(1.0, NUMBER), Literal(0.0, NUMBER), Literal(None, NUMBER))
    )  # fmt: skip
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(
                lambda f, a, b: Call(f, (a, b), NUMBER), st.sampled_from("+-*/"), inner, inner
            ),
            st.builds(lambda f, a: Call(f, (a,), NUMBER), st.sampled_from(("neg", "abs")), inner),
        ),
        max_leaves=4,
    )


def conditions() -> st.SearchStrategy[Term]:
    relation = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))
    texts: st.SearchStrategy[Term] = st.sampled_from(
        (column("s"), column("t"), Literal("a", TEXT), Literal("", TEXT))
    )
    leaf: st.SearchStrategy[Term] = st.one_of(
        st.builds(lambda f, a, b: Call(f, (a, b), BOOLEAN), relation, numbers(), numbers()),
        st.builds(lambda f, a, b: Call(f, (a, b), BOOLEAN), st.sampled_from(("==", "!=")), texts,
                  texts),
        st.builds(lambda a: Call("is_null", (a,), BOOLEAN), numbers()),
        st.sampled_from((column("b"), Literal(True, BOOLEAN), Literal(None, BOOLEAN))),
    )  # fmt: skip
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(lambda f, a, b: Call(f, (a, b), BOOLEAN), st.sampled_from(("and", "or")),
                      inner, inner),
            st.builds(lambda a: Call("not", (a,), BOOLEAN), inner),
        ),
        max_leaves=4,
    )  # fmt: skip


SUM = Call("+", (column("x"), column("y")), NUMBER)
SMALL = Call("<=", (Call("abs", (SUM,), NUMBER), Literal(0.5, NUMBER)), BOOLEAN)
SHOWN = st.lists(
    st.sampled_from(
        (
            Shown("x", "m", column("x")),
            Shown("s", "", column("s")),
            Shown("sum", "m", SUM),
            Shown("snapped", "m", Call("if", (SMALL, Literal(0.0, NUMBER), SUM), NUMBER)),
            Shown("ratio", "", Call("/", (column("x"), column("y")), NUMBER)),
            Shown("count", "pieces", column("n")),
            Shown("is small", "", SMALL),
            Shown("b", "", column("b")),
            Shown("at", "", column("u")),
            Shown("long", "", Call("||", (column("s"), column("t")), TEXT)),
        )
    ),
    max_size=3,
    unique=True,
).map(tuple)
REQUIREMENTS = st.lists(
    st.builds(
        Requirement, st.just("1"), st.sampled_from(("x", "ein längerer Text")),
        st.none() | conditions(), conditions(), SHOWN, SHOWN,
    ),
    min_size=1, max_size=6,
).map(lambda some: [replace(one, place=str(n)) for n, one in enumerate(some)])  # fmt: skip
ROWS = st.lists(
    st.tuples(st.integers(0, 3), NUMBERS, NUMBERS, st.sampled_from((0, 2, None)),
              st.sampled_from((True, False, None)), TEXTS, TEXTS, TIMES, TIMES),
    min_size=1, max_size=12,
)  # fmt: skip


def defined(judge: Judge, row: Row) -> Row:
    names = dict(zip(SCHEMA.names, row, strict=True))
    outcomes = [outcome(one, names) for one in judge.requirements]
    failed = [n for n, found in enumerate(outcomes) if found is False]
    undecided = [n for n, found in enumerate(outcomes) if found is None]
    return (row[0], *verdict(judge, names, failed, undecided))


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(REQUIREMENTS, ROWS, st.integers(1, 60))
def test_the_machine_gives_what_the_definition_gives(
    requirements: list[Requirement], rows: list[Row], times: int
) -> None:
    judge = Judge(("k",), tuple(requirements))
    assert why_not(judge) is None
    repeated = rows * times  # over the end of a block
    kernel = JudgeKernel(judge, (TYPE,), 1)
    batch = batch_of(TYPE, list(range(len(repeated))), repeated, [1] * len(repeated))
    (made,) = kernel.process((batch,), Round(len(repeated), NO_TICKS))
    assert [defined(judge, row) for row in repeated] == made.rows()


def test_changes_that_do_not_change_a_verdict_are_not_told() -> None:
    small = Call("<", (column("x"), Literal(5.0, NUMBER)), BOOLEAN)
    kernel = JudgeKernel(Judge(("k",), (Requirement("1", "x < 5", None, small),)), (TYPE,), 1)
    old, new, bad = ((7, x, *([None] * 7)) for x in (1.0, 2.0, 9.0))
    batch = batch_of(TYPE, [1, 1, 2, 2], [old, new, new, bad], [-1, 1, -1, 1])
    (made,) = kernel.process((batch,), Round(2, NO_TICKS))
    assert [(2, "allowed"), (2, "restricted")] == [
        (t, row[1]) for t, row in zip(made.time.tolist(), made.rows(), strict=True)
    ]


def test_what_the_machine_cannot_compute_is_said() -> None:
    odd = Call("like", (column("s"), Literal("a%", TEXT)), BOOLEAN)
    assert "like" in (why_not(Judge(("k",), (Requirement("1", "", None, odd),))) or "")


def test_rows_of_many_places_are_judged_as_if_each_were_alone() -> None:
    """With many places rows are taken in another order, and most rules are skipped in a block."""
    places = [f"berth {n}" for n in range(20)]

    def at(place: str) -> Term:
        tests = (Call("==", (column(c), Literal(place, TEXT)), BOOLEAN) for c in ("s", "t"))
        return Call("or", tuple(tests), BOOLEAN)

    deep = Call(">", (column("x"), Literal(1.0, NUMBER)), BOOLEAN)
    shared = Call("+", (column("x"), column("y")), NUMBER)
    shown = (Shown("x", "m", column("x")), Shown("sum", "m", shared))
    requirements = [
        Requirement(
            str(n),
            "a sum",
            Call("and", (at(place), deep), BOOLEAN) if n % 2 else at(place),
            Call(
                "<",
                (Literal(float(n), NUMBER), shared) if n % 3 else (shared, column("y")),
                BOOLEAN,
            ),
            shown,
            (Shown("s", "", column("s")),),
        )
        for n, place in enumerate(places)
    ]
    judge = Judge(("k",), tuple(requirements))
    rows: list[Row] = [
        (n, None if n % 31 == 0 else float(n % 7), float(n % 5), None, None,
         None if n % 97 == 0 else places[n * 7 % 20], places[n % 3] if n % 2 else None, None, None)
        for n in range(2000)
    ]  # fmt: skip
    kernel = JudgeKernel(judge, (TYPE,), 1)
    assert kernel.sorted_by is not None and (kernel.code[0].operation == SKIP).any()
    batch = batch_of(TYPE, list(range(len(rows))), rows, [1] * len(rows))
    (made,) = kernel.process((batch,), Round(len(rows), NO_TICKS))
    assert [defined(judge, row) for row in rows] == made.rows()


@tight
def written(numbers: Array, arena: Array, ends: Array) -> None:
    for i in range(numbers.size):
        ends[i] = put_number(arena, i * LONGEST, numbers[i])


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)
                | st.integers(-(10**12), 10**12).map(lambda n: n / 1000), min_size=1))  # fmt: skip
def test_numbers_are_written_as_python_writes_them(numbers: list[float]) -> None:
    arena, ends = np.zeros(len(numbers) * LONGEST, np.uint8), np.zeros(len(numbers), np.int64)
    written(np.array(numbers), arena, ends)
    for i, (number, end) in enumerate(zip(numbers, ends.tolist(), strict=True)):
        if end != UNSURE:
            expected = f"{number:.10g}" if number else "0"
            assert expected == bytes(arena[i * LONGEST : end]).decode()
        else:
            # Only what is extreme, or so near a half that it might be either, is left to Python.
            digits = f"{number:.20e}".partition("e")[0].replace(".", "").lstrip("-")[10:15]
            is_extreme = not 1e-12 < abs(number) < 1e30
            assert is_extreme or "49999" <= digits <= "50001"


def test_requirements_at_one_place_are_refused() -> None:
    one = Requirement("1", "x", None, Literal(True, BOOLEAN))
    with pytest.raises(FunctionFault, match='2 requirements at "1"'):
        Judge(("k",), (one, one)).output_types((TYPE,), 1)
