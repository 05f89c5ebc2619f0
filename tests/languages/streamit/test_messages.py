"""Messages come with the items of the firing that they are for, whoever fires when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from millstream.calculus.procedure_read import work_of_lines
from millstream.calculus.procedure_text import work_lines
from millstream.calculus.work import Hearing, Work
from millstream.engine.reference.feed import Event
from millstream.errors import CheckError, Fault
from millstream.kernels.build import why_not
from millstream.kernels.rounds import StepRunner
from millstream.kernels.runtime.kernel import Round
from millstream.languages.streamit.load import load
from millstream.plan.batch import Batch, Vector
from millstream.plan.steps import make_plan
from millstream.source import Source
from tests.languages.streamit.test_meaning import printed
from tests.laws.runs import on_local, on_reference

#: A counter that is told to grow, between a source that tells it and a printer.
COUNTER = """int->int filter Counter {
    int extra;
    work pop 1 push 1 { push(pop() + extra); }
    handler grow(int by) { extra += by; }
}
int->void filter Lines { work pop 1 { println(pop()); } }
"""


def lines(text: str, iterations: int) -> list[int]:
    return [int(line) for line in printed(text, iterations).splitlines()]


@pytest.mark.parametrize("latency", [0, 1, 3, -2])
def test_downstream_they_come_before_what_the_firing_gives(latency: int) -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p;
        add Source(p); add Counter to p; add Lines;
    }}
    void->int filter Source(portal<Counter> p) {{
        int n;
        work push 1 {{ n++; push(n); if (n % 4 == 0) p.grow(100 * n) [{latency}:{latency}]; }}
    }}"""
    due = {n + latency: 100 * n for n in range(4, 40, 4)}
    expected = [n + sum(by for at, by in due.items() if at <= n) for n in range(1, 13)]
    assert expected == lines(text, 12)


def test_who_fires_on_many_items_at_once_hears_of_all_their_firings() -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p;
        add void->int filter {{
            int n; work push 1 {{ push(++n); if (n % 3 == 0) p.grow(1000); }} }};
        add int->int filter {{ work pop 4 push 4 {{ for (int i = 0; i < 4; i++) push(pop()); }} }};
        add Counter to p; add Lines;
    }}"""
    expected = [n + 1000 * (-(-n // 4) * 4 // 3) for n in range(1, 25)]
    assert expected == lines(text, 6)


def test_branches_hear_each_for_itself_and_several_portals_add_up() -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p, q;
        add Source(p, q);
        add splitjoin {{
            split roundrobin;
            add Counter to p;
            add Counter to p, q;
            join roundrobin;
        }};
        add Lines;
    }}
    void->int filter Source(portal<Counter> p, portal<Counter> q) {{
        work push 2 {{ p.grow(1) [1:1]; q.grow(10) [2:2]; push(0); push(0); }}
    }}"""
    expected = [v for n in range(6) for v in (n, n + 10 * max(0, n - 1))]
    assert expected == lines(text, 6)


def test_upstream_they_come_before_what_the_later_firing_needs() -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p;
        add void->int filter {{ int n; work push 1 {{ push(++n); }} }};
        add Counter to p;
        add Checker(p); add Lines;
    }}
    int->int filter Checker(portal<Counter> p) {{
        int n;
        work pop 2 push 2 {{
            n++;
            if (n == 2) p.grow(1000) [2:2];
            push(pop()); push(pop());
        }}
    }}"""
    # The second firing of the checker asks for its fourth: the seventh item is the first of it.
    expected = [n + 1000 * (n >= 7) for n in range(1, 17)]
    assert expected == lines(text, 8)


def test_handlers_may_take_arrays_and_print() -> None:
    text = """void->void pipeline Main {
        portal<Sum> p;
        add Source(p); add Sum to p;
    }
    void->int filter Source(portal<Sum> p) {
        int[2][2] m; int k;
        work push 1 { m[k % 2][1] = ++k; p.set(m, k) [1:1]; push(k); }
    }
    int->void filter Sum {
        float scale;
        int[2][2] held;
        work pop 1 { println(pop() + ": " + (held[0][1] + held[1][1]) * scale); }
        handler set(int[2][2] m, float by) { held = m; scale = by; print("! "); }
    }"""
    told = ["1: 0.0\n", "! 2: 1.0\n", "! 3: 6.0\n", "! 4: 15.0\n"]
    assert "".join(told) == printed(text, 4)


def test_a_sender_whose_input_changes_is_heard_in_time() -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p;
        add void->int filter {{ int n; work push 1 {{ push(n++); }} }};
        add int->int filter {{ work pop [1, 2] push 1 {{
            int v = pop();
            if (v % 5 == 0) {{ push(pop()); p.grow(100) [1:1]; }} else push(v);
        }} }};
        add Counter to p; add Lines;
    }}"""
    assert [1, 102, 103, 104, 106, 207, 208, 209, 211, 312] == lines(text, 13)


#: A parser that gives as many items as it reads, between tellings of what they are.
PARSER = f"""{COUNTER}
void->void pipeline Main {{
    portal<Counter> p;
    add void->int filter {{ int n; work push 1 {{ push(n++ % 4); }} }};
    add int->int filter {{
        int told; work pop 1 push [0, 3] {{
            int count = pop();
            if (count != 2) p.grow(++told * 100);
            for (int i = 0; i < count; i++) push(i);
        }}
    }};
    add int->int filter {{ work pop 2 push 2 peek 3 {{ push(pop()); push(pop()); }} }};
    add Counter to p; add Lines;
}}"""


def parsed(count: int) -> list[int]:
    """What the counter gives: it hears of a firing when it is given its first item, or the next."""
    items: list[tuple[int, int]] = []
    extra = told = 0
    for firing in range(count):
        if firing % 4 != 2:
            told += 1
            extra += 100 * told
        items += [(i, extra) for i in range(firing % 4)]
    # Two items are passed on when a third one is there: both are there for the first of them.
    firsts = range(0, len(items) - 2, 2)
    return [items[n][0] + items[n + 2 - n % 2][1] for first in firsts for n in (first, first + 1)]


def test_a_sender_that_gives_now_more_and_now_fewer_is_heard_with_its_items() -> None:
    expected = parsed(24)
    assert len(expected) > 30
    assert expected == lines(PARSER, 24)


def test_such_a_sender_is_heard_alike_by_all_engines_and_can_be_written() -> None:
    program = load(Source("test.str", PARSER)).program
    ticks = {name: [Event(n, (n,)) for n in range(25)] for name in program.input_names}
    assert on_reference(program, ticks)[0] == on_local(program, ticks, (3, 7))[0]
    for op in program.operators:
        if isinstance(op.function, Work):
            work, faults = op.function, list[Fault]()
            assert work == work_of_lines(list(work_lines(work)), faults), faults


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("p.grow(++told * 100);", "p.grow(1) [1:1];", "gives changes, so that its messages come"),
        ("work pop 1 push 1 {", "work pop [1, 2] push 1 {", "rates change between"),
    ],
)
def test_where_rates_change_what_cannot_be_counted_is_refused(
    old: str, new: str, message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        load(Source("test.str", PARSER.replace(old, new)))


@pytest.mark.parametrize(
    ("send", "message"),
    [
        ("p.grow(1) [0:0]", "this message comes too late"),
        ("p.shrink(1)", 'Counter has no handler "shrink"'),
        ("p.grow()", "grow takes 1 argument, got 0"),
        ("q.grow(1) [1:1]", 'there is no portal "q"'),
    ],
)
def test_what_cannot_be_heard_is_told_beforehand(send: str, message: str) -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p;
        add void->int filter {{ work push 1 {{ push(0); }} }};
        add Counter to p;
        add int->void filter {{ work pop 1 {{ println(pop()); {send}; }} }};
    }}"""
    with pytest.raises(CheckError, match=message):
        load(Source("test.str", text))


def test_messages_between_parallel_branches_are_refused() -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p;
        add void->int filter {{ work push 1 {{ push(0); }} }};
        add splitjoin {{
            split duplicate;
            add Counter to p;
            add int->int filter {{ work pop 1 push 1 {{ p.grow(1); push(pop()); }} }};
            join roundrobin;
        }};
        add Lines;
    }}"""
    with pytest.raises(CheckError, match="no items pass between"):
        load(Source("test.str", text))


def test_they_can_be_written_and_read_again() -> None:
    text = f"""{COUNTER}
    void->void pipeline Main {{
        portal<Counter> p;
        add void->int filter {{ int n; work push 1 {{ push(++n); p.grow(n) [-1:-1]; }} }};
        add Counter to p; add Lines;
    }}"""
    program = load(Source("test.str", text)).program
    works = [op.function for op in program.operators if isinstance(op.function, Work)]
    assert (Hearing((1, 2, 3, 4), 1, 1, -1),) == works[1].hears
    for work in works:
        faults: list[Fault] = []
        assert work == work_of_lines(list(work_lines(work)), faults), faults


#: Fields of all kinds are changed by firings, by handlers, and by the firings that send.
TALKING = """struct Held { float[2] v; int n; }
int->int filter Sender(portal<Hearer> p) {
    int n; int[3] last; Held held;
    work pop 1 push 1 {
        int x = pop();
        last[n % 3] = x; held.v[n % 2] += x * 0.5; held.n++; n++;
        if (x % 5 == 0) p.set(last, held.v[0]) [1:1];
        push(x + last[(n + 1) % 3]);
    }
}
int->int filter Hearer {
    int[3] known; float scale = 1; boolean odd;
    work pop 2 push 1 peek 3 {
        odd = !odd;
        push(pop() + known[0] * 100 + (int)(scale * peek(1)) + (odd ? 1 : 0));
        known[1] = pop();
    }
    handler set(int[3] k, float s) { k[2] = known[1]; known = k; scale = s; }
}
int->int pipeline Main { portal<Hearer> p; add Sender(p); add Hearer to p; }
"""


def test_firings_without_messages_are_compiled_and_give_the_same() -> None:
    program = load(Source("test.str", TALKING)).program
    items = {"items": [Event(n // 3, ((n * 7) % 23,)) for n in range(60)]}
    expected = on_reference(program, items)[0]
    for cuts in ((), (4, 11)):
        assert expected == on_local(program, items, cuts)[0]


def test_what_they_hold_can_be_kept_and_taken_up() -> None:
    program = load(Source("test.str", TALKING)).program
    (one,) = program.inputs
    values = np.arange(60) * 7 % 23

    def kernel() -> Any:
        (made,) = StepRunner(make_plan(program, why_not)).kernels
        return made

    def given(made: Any, first: int, last: int) -> list[int]:
        cells = (Vector(one.type.schema.fields[0].type, values[first:last]),)
        batch = Batch(one.type, np.arange(first, last), cells)
        (sent,) = made.process((batch,), Round(last, np.zeros(0, np.int64)))
        return [int(value) for value in sent.columns[0].values]

    whole, before, after = kernel(), kernel(), kernel()
    expected = given(whole, 0, 60)
    first = given(before, 0, 31)
    after.restore(before.snapshot())
    assert expected == first + given(after, 31, 60)
    assert "only firings that do" in whole.source
