"""Linear filters that are combined: the same numbers but for rounding, at the same times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.calculus.work import Work
from millstream.engine.reference.feed import Event
from millstream.languages.streamit.load import load
from millstream.optimiser.combine_linear import combine_linear
from millstream.optimiser.optimise import passes_named
from millstream.source import Source
from tests.laws.runs import on_local, on_reference

_FILTER = """float->float filter {{
    work pop {pop} peek {peek} push {push} {{
        for (int r = 0; r < {push}; r++) {{
            float sum = {offset} * r;
            for (int i = 0; i < {peek}; i++) sum += peek(i) * (0.25 * i - {factor} * r + 1);
            push(sum);
        }}
        for (int i = 0; i < {pop}; i++) pop();
    }}
}}"""


@st.composite
def filters(draw: st.DrawFn, pops: tuple[int, ...] = (1, 2, 3, 4), push: int | None = None) -> str:
    pop = draw(st.sampled_from(pops))
    return _FILTER.format(
        pop=pop,
        peek=pop + draw(st.integers(0, 3)),
        push=draw(st.integers(1, 3)) if push is None else push,
        offset=draw(st.sampled_from(["0", "0.5", "3"])),
        factor=draw(st.sampled_from(["0", "0.125", "2"])),
    )


@st.composite
def split_joins(draw: st.DrawFn) -> str:
    pops = (draw(st.integers(1, 2)),)
    parts = draw(st.lists(filters(pops, push=1), min_size=2, max_size=3))
    same = draw(st.booleans())
    added = " ".join(f"add {parts[0] if same else part};" for part in parts)
    return f"splitjoin {{ split duplicate; {added} join roundrobin; }}"


@st.composite
def linear_programs(draw: st.DrawFn) -> Program:
    parts = draw(st.lists(st.one_of(filters(), split_joins()), min_size=2, max_size=4))
    added = " ".join(f"add {part};" for part in parts)
    return load(Source("test.str", f"float->float pipeline Main {{ {added} }}")).program


def _numbers(count: int) -> dict[str, list[Event]]:
    return {"items": [Event(n * n, (float((n * 37) % 19 - 9) / 4,)) for n in range(count)]}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_is_combined_gives_as_much_at_the_same_times(data: st.DataObject) -> None:
    program = data.draw(linear_programs())
    combined = combine_linear(program)
    events = _numbers(data.draw(st.integers(0, 40)))
    expected = on_reference(program, events)[0]["out"]
    actual = on_reference(combined, events)[0]["out"]
    assert [one[0] for one in expected] == [one[0] for one in actual]
    values = [np.array([row[2][0] for row in rows]) for rows in (expected, actual)]
    assert values[0] == pytest.approx(values[1], rel=1e-4, abs=1e-3)


def test_decimation_and_banks_become_one_filter_on_every_engine() -> None:
    text = """
    float->float filter Low(float g) { work pop 1 peek 4 push 1 {
        push(g * (peek(0) + peek(1) + peek(2) + peek(3))); pop(); } }
    float->float filter Every(int n) { work pop n push 1 {
        push(pop()); for (int i = 1; i < n; i++) pop(); } }
    float->float filter Add(int n) { work pop n push 1 {
        float s = 0; for (int i = 0; i < n; i++) s += pop(); push(s); } }
    float->float splitjoin Bank(int n) {
        split duplicate; for (int i = 0; i < n; i++) add Low(i - 0.5); join roundrobin; }
    float->float pipeline Main { add Low(0.5); add Every(3); add Bank(3); add Add(3); }"""
    program = load(Source("test.str", text)).program
    combined = combine_linear(program)
    works = [op.function for op in combined.operators if isinstance(op.function, Work)]
    assert len(works) == len(combined.operators)
    rates = [(work.rates.pop, work.rates.peek, work.rates.push) for work in works]
    assert [(3, 6, 1), (1, 4, 1)] == rates  # both as one would take more products
    events = _numbers(60)
    expected = on_reference(program, events)[0]
    assert expected == on_reference(combined, events)[0]  # all of these are sums of halves
    assert expected == on_local(combined, events, (7,))[0]


def test_what_keeps_something_or_is_not_linear_stays() -> None:
    text = """
    float->float filter Twice { work pop 1 push 1 { push(2 * pop()); } }
    float->float filter Kept { float s; work pop 1 push 1 { s = s + pop(); push(s); } }
    float->float filter Square { work pop 1 push 1 { push(peek(0) * pop()); } }
    float->float pipeline Main { add Twice; add Kept; add Twice; add Square; add Twice; }"""
    program = load(Source("test.str", text)).program
    assert combine_linear(program) is program


def test_rounding_changes_only_where_it_is_allowed() -> None:
    assert combine_linear not in passes_named()
    assert combine_linear in passes_named(relaxed=True)
    assert passes_named(["combine_linear"]) == (combine_linear,)
