"""Small programs give what plain lists give."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from millstream.calculus.graph import Program
from millstream.calculus.work import Work
from millstream.engine.reference.feed import Event
from millstream.errors import CheckError, RunError
from millstream.languages.streamit.load import load
from millstream.optimiser.share_common import share_common
from millstream.source import Source
from tests.laws.runs import Rows, on_local, on_reference

IDENTITY = "float->float filter F { work push 1 pop 1 { push(pop()); } }"


def single(value: float) -> float:
    unpacked: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return unpacked


def agreed(program: Program, events: dict[str, list[Event]]) -> dict[str, Rows]:
    """What the reference gives; the local engine gives the same, however it is cut."""
    expected, _ = on_reference(program, events)
    for cuts in ((), (2, 5)):
        assert expected == on_local(program, events, cuts)[0]
    return expected


def outputs(text: str, items: list[Any] | int) -> dict[str, list[Any]]:
    """What comes out for some items, or for so many steady states."""
    program = load(Source("test.str", text)).program
    (name,) = program.input_names
    rows = range(items + 1) if isinstance(items, int) else items
    events = [
        Event(time, row if isinstance(row, tuple) else (row,)) for time, row in enumerate(rows)
    ]
    sent_by_queue = agreed(program, {name: events})
    return {
        queue: [row[0] if len(row) == 1 else row for _, _, row in sent]
        for queue, sent in sent_by_queue.items()
    }


def out(text: str, items: list[Any] | int) -> list[Any]:
    return outputs(text, items)["out"]


def printed(text: str, iterations: int) -> str:
    return "".join(outputs(text, iterations)["printed"])


NUMBERS = [float(n) for n in range(1, 9)]


def test_a_filter_peeks_pops_and_pushes() -> None:
    text = """float->float filter Average(int n) {
        work push 1 pop 1 peek n {
            float sum = 0;
            for (int i = 0; i < n; i++) sum += peek(i);
            push(sum / n);
            pop();
        }
    }
    float->float pipeline P { add Average(4); }"""
    assert [sum(NUMBERS[i : i + 4]) / 4 for i in range(5)] == out(text, NUMBERS)


def test_a_zero_may_have_a_sign() -> None:
    """As C has it: a literal keeps the sign that is written before it."""
    work = "float->float filter F { work push 2 pop 1 { push(1.0 / -0.0); push(1.0 / -pop()); } }"
    assert [-math.inf, -math.inf, -math.inf, -0.5] == out(work, [0.0, 2.0])


def test_filters_that_differ_in_the_sign_of_a_zero_are_not_made_one() -> None:
    text = """
        float->float filter By(float z) { work push 1 pop 1 { pop(); push(1.0 / z); } }
        float->float splitjoin Main {
            split duplicate; add By(0.0); add By(-0.0); add By(0.0); join roundrobin;
        }
    """
    program = load(Source("test.str", text)).program
    shared = share_common(program)
    assert 2 == sum(isinstance(op.function, Work) for op in shared.operators)
    (name,) = shared.input_names
    sent = agreed(shared, {name: [Event(0, (1.0,))]})["out"]
    assert [math.inf, -math.inf, math.inf] == [row[0] for _, _, row in sent]


def test_fields_are_kept_and_rates_may_be_of_fields() -> None:
    text = """int->int filter Sums { int total; int n; init { n = 2; total = 100; }
        work pop n push 1 { total += pop() + 10 * pop(); push(total); } }"""
    assert [121, 164, 229] == out(text, [1, 2, 3, 4, 5, 6, 7])


def test_prework_is_done_instead_of_the_first_work() -> None:
    text = """int->int filter Delay { prework push 2 { push(-1); push(-2); }
        work push 1 pop 1 { push(pop()); } }"""
    assert [-1, -2, 1, 2, 3] == out(text, [1, 2, 3])


def test_split_and_join_in_turns_and_in_copies() -> None:
    text = """int->int filter Times(int k) { work push 1 pop 1 { push(pop() * k); } }
    int->int splitjoin S { split roundrobin(2, 1); add Times(10); add Times(100);
        join roundrobin(2, 1); }"""
    # 1 2 | 3 | 4 5 | 6: the first has 10 20 40 50, the second 300 600.
    assert [10, 20, 300, 40, 50, 600] == out(text, [1, 2, 3, 4, 5, 6])
    copies = """int->int splitjoin S { split duplicate;
        for (int i = 1; i <= 3; i++) add filter { work push 1 pop 1 { push(pop() * i); } };
        join roundrobin; }"""
    assert [5, 10, 15, 7, 14, 21] == out(copies, [5, 7])


def test_a_feedback_loop_begins_with_what_is_enqueued() -> None:
    text = """void->int filter Zero { work push 1 { push(0); } }
    void->int pipeline P { add Zero; add feedbackloop {
        join roundrobin(1, 1);
        body filter { int old; work push 1 pop 2 { pop(); int x = pop();
            int y = x + old; old = x; push(y); } };
        split duplicate; enqueue 1; } }"""
    assert [1, 2, 3, 5, 8, 13, 21] == out(text, 7)


def test_weights_of_nothing_leave_a_side_out() -> None:
    text = """void->int filter N { int n; work push 1 { push(n++); } }
    int->int splitjoin S { split roundrobin(1, 0);
        add filter { work push 1 pop 1 { push(pop()); } }; add N; join roundrobin(1, 2); }"""
    program = load(Source("test.str", text)).program
    events = {"items": [Event(n, (10 * n,)) for n in range(3)],
              "iterations": [Event(n, (n,)) for n in range(5)]}  # fmt: skip
    sent = agreed(program, events)["out"]
    assert [0, 0, 1, 10, 2, 3, 20, 4, 5] == [row[0] for _, _, row in sent]


def test_evaluation_is_from_left_to_right() -> None:
    text = """int->int filter F { work push 3 pop 3 { push(peek(1) + 10 * pop());
        int i = 1; push(i + i++ + 100 * i); push(pop() - pop()); } }"""
    assert [5 + 40, 1 + 1 + 200, 5 - 6] == out(text, [4, 5, 6])


def test_an_index_is_what_it_was_when_it_stood_there() -> None:
    text = """int->int filter F { int[3] a; int k; int next() { k++; return 7; }
        work push 2 pop 1 { int i = 0; a[i] = i++ + pop(); push(a[0]);
            k = 1; a[k] = next(); push(a[1]); } }"""
    assert [5, 7] == out(text, [5])


def test_integers_wrap_and_divide_towards_zero() -> None:
    text = """int->int filter F { work push 7 pop 1 { int x = pop(); push(x * x); push(-x / 2);
        push(-x % 3); push(x << 28 >> 2); push(~x); push(1 | 2 == 2 & 5); push(0xFFFFFFFF); } }"""
    wrapped = (100_001 * 100_001 + 2**31) % 2**32 - 2**31
    shifted = ((100_001 << 28) + 2**31) % 2**32 - 2**31 >> 2
    assert [wrapped, -50_000, -2, shifted, -100_002, (1 | 1) & 5, -1] == out(text, [100_001])


def test_floats_are_of_single_precision() -> None:
    text = """float->float filter F { work push 3 pop 1 {
        float x = pop(); push(x + 0.1); push(sin(x)); push(x / 3); } }"""
    x = single(0.7)
    assert [single(x + single(0.1)), single(math.sin(x)), single(x / 3)] == out(text, [x])


def test_complex_numbers_structs_and_arrays_are_held_by_value() -> None:
    text = """struct Pair { int a; float[2] b; }
    int->float filter F { Pair kept;
        Pair made(int n) { Pair p; p.a = n; p.b[1] = n * 0.5; return p; }
        work push 4 pop 1 {
            complex c = 2 + 3i; complex d = c * c; push(d.real); push(d.imag);
            Pair p = made(pop()); Pair q = p; q.b[1] = 7; kept = p; kept.a++;
            push(p.b[1] + kept.a); float[2][3] m; m[1][2] = 4; float[3] row = m[1]; m[1][2] = 5;
            push(row[2]); } }"""
    assert [-5.0, 12.0, 1.5 + 4, 4.0] == out(text, [3])


def test_structs_travel_as_columns() -> None:
    text = """struct P { int a; float b; }
    P->P filter F { work push 1 pop 1 { P p = pop(); p.a = p.a + 1; p.b = p.b * 2; push(p); } }"""
    assert [(2, 3.0), (3, 5.0)] == out(text, [(1, 1.5), (2, 2.5)])


def test_streams_may_add_themselves_and_programs_may_print() -> None:
    text = """int->int pipeline Sort(int n) {
        if (n > 1) {
            add splitjoin { split roundrobin(n / 2); add Sort(n / 2); add Sort(n / 2);
                join roundrobin(n / 2); };
            add Merge(n);
        } else add Identity<int>;
    }
    int->int filter Merge(int n) { work push n pop n {
        int a = 0; int b = n / 2;
        for (int i = 0; i < n; i++) {
            if (b >= n || (a < n / 2 && peek(a) <= peek(b))) push(peek(a++));
            else push(peek(b++));
        }
        for (int i = 0; i < n; i++) pop();
    } }
    void->int filter Numbers { int x = 7; work push 1 { push(x); x = (x * 5 + 3) % 16; } }
    int->void filter Show { work pop 8 {
        for (int i = 0; i < 8; i++) print(pop() + " "); println(); } }
    void->void pipeline Main { add Numbers; add Sort(8); add Show; }"""
    numbers, x = [], 7
    for _ in range(16):
        numbers.append(x)
        x = (x * 5 + 3) % 16
    lines = [" ".join(map(str, sorted(numbers[i : i + 8]))) + " \n" for i in (0, 8)]
    assert "".join(lines) == printed(text, 2)


def test_the_fewest_digits_that_read_back_are_printed() -> None:
    text = """void->void filter F { work {
        println(0.1); println(1.0 / 3); println("x: " + 3 + true); println(2 + 1.5i); } }"""
    assert "0.1\n0.33333334\nx: 3true\n2.0 + 1.5i\n" == printed(text, 1)


def test_of_filters_that_can_fire_the_furthest_downstream_does() -> None:
    text = """void->int filter A { int n; work push 2 { println("A" + n); push(n++); push(n++); } }
    int->int filter B { work pop 1 push 1 peek 2 { println("B" + peek(0)); push(pop()); } }
    int->void filter C { work pop 2 { println("C" + pop() + pop()); } }
    void->void pipeline P { add A; add B; add C; }"""
    # After the first firing of A, B sees two items and fires once; then A must fire again.
    lines = ["A0", "B0", "A2", "B1", "C01", "B2", "A4", "B3", "C23", "B4"]
    assert lines == printed(text, 2).split()


def test_what_breaks_its_word_ends_the_run_with_its_place() -> None:
    for work, message in (
        ("push(pop()); push(1);", "pushes more items than the 1 it declares"),
        ("int[2] a; push(a[pop()]);", "index 5 is outside of an array of 2"),
        ("push(3 / (pop() - 5));", "division by zero"),
        ("push(peek(1)); pop();", "looks at item 1, but may see 1"),
    ):
        with pytest.raises(RunError, match=message):
            out(f"int->int filter F {{ work push 1 pop 1 {{ {work} }} }}", [5])


def test_a_loop_that_looks_ahead_goes_on_with_just_enough() -> None:
    text = """int->int feedbackloop L { join roundrobin; body filter { work push 1 pop 2 {
        push(pop() + pop()); } };
        loop filter { work push 1 pop 1 peek 3 { push(peek(2)); pop(); } };
        split duplicate; enqueue 1; enqueue 2; enqueue 3; }"""
    given, loop = [], [1, 2, 3]
    for n in range(20):
        given.append(n + loop[n])
        if n >= 2:
            loop.append(given[n])
    assert given == out(text, list(range(20)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float->float pipeline P { add F; add G; } int->int filter G { work pop 1 push 1 "
         "{ push(pop()); } }" + IDENTITY, "P.1..G takes int, but is given float"),
        ("float->float splitjoin S { split roundrobin(1, 2, 3); add F; add F; join roundrobin; }"
         + IDENTITY, "3 weights for 2 streams"),
        ("float->float splitjoin S { split duplicate; add F; add filter { work push 2 pop 1 "
         "{ push(1); push(pop()); } }; join roundrobin; }" + IDENTITY, "the rates do not fit"),
        (("int->int feedbackloop L { join roundrobin(1, 1); body filter { work push 1 pop 2 "
         "{ push(pop() + pop()); } }; split duplicate; }"), "1 more item must be enqueued"),
        (("int->int feedbackloop L { join roundrobin; body filter { work push 1 pop 2 peek 4 "
         "{ push(peek(3)); pop(); pop(); } }; split duplicate; enqueue 1; }"),
         "1 more item must be enqueued"),
        (("int->int feedbackloop L { join roundrobin; body filter { work push 1 pop 2 "
         "{ push(pop() + pop()); } }; loop filter { work push 1 pop 1 peek 3 { push(peek(2)); "
         "pop(); } }; split duplicate; enqueue 1; }"), "2 more items must be enqueued"),
        (("int->int filter F(int n) { int[4] a; work pop 1 push 1 { int[n] b; a = b; "
         "push(pop()); } } int->int pipeline P { add F(6); }"), "an array of 6 does not fit"),
        ("int->int pipeline P { add P; }", "levels deep"),
        ("void->void pipeline A { add B; } void->void pipeline B { add A; }", "two programs"),
        (("void->void filter A { work { println(1); } } void->void filter B { work { "
         "println(x); } }"), r"two programs(.|\n)*unknown name"),
        ("int->int filter F { work push 1 pop 1 { push(pop() + y); z = 1; } }", "unknown name"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_before_anything_runs(text: str, message: str) -> None:
    with pytest.raises(CheckError, match=message):
        load(Source("test.str", text))


def test_streams_without_types_take_them_from_where_they_stand() -> None:
    text = """void->void pipeline Main {
        add void->float filter { work push 1 { push(iter()); } };
        add splitjoin { split duplicate;
            add filter { work push 1 pop 1 { if (peek(0) > 1) push(1); else push(0); pop(); } };
            add pipeline { add filter { work push 2 pop 1 { push(1); push(pop() / 2); } };
                add filter { work push 1 pop 2 { push(pop() - pop()); } } };
            join roundrobin; };
        add float->void filter { work pop 2 { println(pop() + ":" + pop()); } };
    }"""
    assert "0.0:1.0\n0.0:0.5\n1.0:0.0\n" == printed(text, 3)


def test_the_program_is_the_one_that_no_other_adds() -> None:
    text = """void->void filter Inner { work { println("x"); } }
    void->void pipeline Outer { add Inner; }"""
    assert "x\nx\n" == printed(text, 2)
