"""Filters in blocks of whole firings give what they give in one place, in the same order."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from millstream.calculus.each import PerKey
from millstream.calculus.functions import Duplicate, RoundRobinJoin, RoundRobinSplit
from millstream.calculus.graph import Input, Program
from millstream.calculus.types import QueueType
from millstream.calculus.verify import verify
from millstream.calculus.wiring import Queue
from millstream.calculus.work import schema_of_items
from millstream.engine.layout import Choice, layout_as
from millstream.engine.reference.feed import Event
from millstream.errors import RunError
from millstream.kernels.build import why_not
from millstream.languages.streamit.load import load
from millstream.plan import net_blocks
from millstream.plan.net_blocks import nets_in_blocks
from millstream.source import Source
from millstream.values.types import INT32
from tests.generate_nets import NetDraft
from tests.laws.runs import on_local, on_reference


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_blocks, "LEAST_ROWS", 8)
    monkeypatch.setattr(net_blocks, "LEAST_SHARES", 1)
    monkeypatch.setattr(net_blocks, "WORTH_IT", 0)


def branches(draft: NetDraft, source: Queue) -> Queue:
    """Ways that give as much as they take, so that they fit together."""
    weights = tuple(draft.draw(st.lists(st.integers(1, 3), min_size=2, max_size=3)))
    queues = tuple(draft.queue(INT32) for _ in weights)
    is_copied = draft.draw(st.booleans())
    split = Duplicate() if is_copied else RoundRobinSplit(weights)
    draft.wiring.connect(split, (source,), queues)
    joined = draft.queue(INT32)
    ends = tuple(moved(draft, q, keeps_count=True) for q in queues)
    join = RoundRobinJoin((1,) * len(weights) if is_copied else weights)
    draft.wiring.connect(join, ends, (joined,))
    return joined


def moved(draft: NetDraft, source: Queue, *, keeps_count: bool) -> Queue:
    pop, more = draft.draw(st.integers(1, 4)), draft.draw(st.integers(0, 5))
    count = pop if keeps_count else draft.draw(st.integers(1, 6))
    return draft.moving(source, INT32, pop, more, count)


@st.composite
def movers(draw: st.DrawFn) -> Program:
    draft = NetDraft(draw)
    queue = draft.wiring.input(Input("items", QueueType(schema_of_items(INT32))))
    for _ in range(draw(st.integers(1, 4))):
        is_split = draw(st.booleans())
        queue = branches(draft, queue) if is_split else moved(draft, queue, keeps_count=False)
    return draft.wiring.program({"out": queue})


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=60, deadline=None, phases=[Phase.generate], derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(movers(), st.lists(st.integers(0, 5), max_size=90))
def test_in_blocks_everything_leaves_as_it_would_without(program: Program, gaps: list[int]) -> None:
    blocks = nets_in_blocks(program, why_not)
    assume(blocks is not program)
    verify(blocks)
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    events = {"items": [Event(time, (n,)) for n, time in enumerate(times)]}
    assert on_reference(program, events)[0] == on_reference(blocks, events)[0]


SMOOTH = """float->float pipeline Main {
    add float->float filter { work pop 1 push 3 { push(peek(0)); push(0); push(-pop()); } };
    add Fir(5);
}
float->float filter Fir(int n) {
    float[n] h;
    init { for (int i = 0; i < n; i++) h[i] = 1.0 / (i + 1); }
    work push 1 pop 1 peek n {
        float sum = 0;
        for (int i = 0; i < n; i++) sum += h[i] * peek(i);
        push(sum);
        pop();
    }
}"""


@pytest.mark.usefixtures("small_blocks")
def test_kernels_run_blocks_and_forget_them() -> None:
    program = load(Source("smooth.str", SMOOTH)).program
    blocks = nets_in_blocks(program, why_not)
    events = {"items": [Event(n // 3, (n * 0.25 - 4,)) for n in range(60)]}
    expected = on_reference(program, events)[0]
    for cuts in ((), (7, 8, 9, 31)):
        assert expected == on_local(blocks, events, cuts)[0]


def test_blocks_are_on_many_buckets_and_rows_are_numbered_in_one_place() -> None:
    text = SMOOTH.replace("Fir(5)", "Fir(160)")
    layout = layout_as(load(Source("smooth.str", text)).program, Choice())
    assert [[("items", ())], [("items.blocks", ("block",))]] == [
        list(s.keys) for s in layout.stages
    ]
    (each,) = [op.function for op in layout.stages[1].steps[0].operators]
    assert isinstance(each, PerKey)
    assert each.first is not None


@pytest.mark.parametrize(
    "filter_",
    [
        "float kept; work pop 1 push 1 peek 800 { kept += pop(); push(kept); }",
        "work pop 1 push 1 peek 800 { push(iter()); pop(); }",
        "prework push 1 { push(0); } work pop 1 push 1 peek 800 { push(pop()); }",
        "float kept; void keep() { kept++; } work pop 1 push 1 peek 800 { keep(); push(pop()); }",
        "work pop 1 push [0, 1] peek 800 { if (pop() > 0) push(1); }",
        "work pop 1 push 1 peek 800 { println(peek(0)); push(pop()); }",
        "work pop 1 push 1 peek 2 { push(pop()); }",
    ],
)
def test_what_keeps_something_or_does_little_stays_in_one_place(filter_: str) -> None:
    program = load(Source("one.str", f"float->float filter One {{ {filter_} }}")).program
    assert program is nets_in_blocks(program, why_not)


@pytest.mark.usefixtures("small_blocks")
def test_a_fault_says_in_which_block_it_was() -> None:
    text = "int->int filter F { work pop 1 push 1 { push(10 / (pop() - 11)); } }"
    blocks = nets_in_blocks(load(Source("faulty.str", text)).program, why_not)
    events = {"items": [Event(n, (n,)) for n in range(30)]}
    for run in (on_reference, on_local):
        with pytest.raises(RunError, match="division by zero, at firing 4, for block 1"):
            run(blocks, events)
