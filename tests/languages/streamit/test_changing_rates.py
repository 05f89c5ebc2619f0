"""Filters whose rates change fire when their work can come to its end."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream
from millstream.calculus.procedure_read import work_of_lines
from millstream.calculus.procedure_text import work_lines
from millstream.calculus.work import Work
from millstream.errors import Fault, RunError
from millstream.languages.streamit.load import load
from millstream.source import Source
from tests.languages.streamit.test_meaning import out, printed

PACK = """int->int filter Pack {
    work pop * peek * push 2 {
        int value = pop(), count = 1;
        while (peek(0) == value) { pop(); count++; }
        push(count); push(value);
    }
}"""
UNPACK = """int->int filter Unpack {
    int left, value;
    work pop [0, 2] push [0, 1] {
        if (left == 0) { left = pop(); value = pop(); }
        if (left > 0) { push(value); left--; }
    }
}"""
BOTH = f"{PACK} {UNPACK} int->int pipeline Main {{ add Pack; add Unpack; }}"


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=25))
def test_runs_are_counted_and_written_out_again(items: list[int]) -> None:
    runs = [(len(list(same)), value) for value, same in itertools.groupby(items)]
    ended = runs[:-1]  # the last one may go on
    assert [n for run in ended for n in run] == out(PACK, items)
    assert [value for count, value in ended for _ in range(count)] == out(BOTH, items)
    pairs = [n for run in runs for n in run]
    assert items == out(UNPACK, pairs)


def test_a_source_may_give_as_much_as_it_likes() -> None:
    text = """void->void pipeline Main {
        add void->int filter { int n; work push * { for (int i = 0; i < n; i++) push(n); n++; } };
        add int->int filter { work pop 1 peek 2 push 1 { push(peek(1) - pop()); } };
        add int->void filter { work pop 1 { print(pop()); } };
    }"""
    numbers = [n for n in range(5) for _ in range(n)]
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    assert "".join(map(str, steps)) == printed(text, 5)


def test_static_parts_on_both_sides_keep_their_own_pace() -> None:
    text = """void->void pipeline Main {
        add void->int filter { int i; work push 3 { for (int k = 0; k < 3; k++) push(i++ % 4); } };
        add int->int filter { work pop [1, 4] push 1 {
            int n = pop(), sum = 0;
            for (int k = 0; k < n; k++) sum += pop();
            push(sum);
        } };
        add splitjoin { split roundrobin; add Identity<int>; add int->int filter {
            work pop 1 push 1 { push(-pop()); } }; join roundrobin; };
        add int->void filter { work pop 2 { println(pop() + " " + pop()); } };
    }"""
    items = iter([n % 4 for n in range(60)])
    sums: list[int] = []
    while True:
        taken = [next(items, None)]
        taken += [next(items, None) for _ in range(taken[0] or 0)]
        if None in taken:
            break
        sums.append(sum(n for n in taken[1:] if n is not None))
    lines = [f"{a} {-b}\n" for a, b in zip(sums[::2], sums[1::2], strict=False)]
    assert "".join(lines) == printed(text, 20)


def test_what_is_printed_by_several_is_in_the_order_of_time() -> None:
    text = """void->void pipeline Main {
        add void->int filter { int i; work push 1 { print("<" + i + ">"); push(i++ % 3); } };
        add int->int filter { work pop 1 push [0, 2] {
            int n = pop(); for (int k = 0; k < n; k++) push(n); } };
        add int->void filter { work pop 1 { print(pop()); } };
    }"""
    assert "<0>1<1>22<2><3>1<4>" == printed(text, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("work pop [1, 2] push 1 { pop(); if (pop() > 1) pop(); push(1); }", "it looks at item 2"),
        (
            "work pop [1, 2] push [0, 1] { pop(); push(1); push(2); }",
            "pushes more items than the 1",
        ),
        ("work pop [2, 4] push 1 { pop(); push(1); }", "it pops 1 items, but declares 2 to 4"),
        ("int d; work pop * push 1 { if (d++ == 0) pop(); push(1); }", "100,000 times and takes"),
    ],
)
def test_a_broken_word_ends_the_run(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.str"
    path.write_text(f"int->int filter Bad {{ {text} }}")
    items = [{"_time": n, "value": n} for n in range(6)]
    with pytest.raises(RunError, match=message):
        millstream.compile(path).run({"items": items}, engine="local")


def test_they_are_explained_and_can_be_read_again() -> None:
    program = load(Source("both.str", BOTH)).program
    for operator in program.operators:
        work = operator.function
        assert isinstance(work, Work)
        faults: list[Fault] = []
        assert work == work_of_lines(list(work_lines(work)), faults), faults
    lines = list(work_lines(program.operators[0].function))  # type: ignore[arg-type]
    assert "rates pop 0 to all peek 0 to all push 2 to 2" in lines


def test_explain_says_that_they_are_not_compiled(tmp_path: Path) -> None:
    path = tmp_path / "both.str"
    path.write_text(BOTH)
    text = millstream.compile(path).explain(stage="kernels")
    assert "# Main[0].Pack: one statement at a time, because its rates change" in text
