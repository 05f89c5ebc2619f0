"""Theorem 2: a translated program gives what StreamIt's own semantics gives.

That of stateless programs without loops is the transform algebra: every item of the output is a
function of items of the input whose numbers are calculated, and nothing is ever queued. For
state and for feedback loops there are plain lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import Phase, given
from hypothesis import strategies as st

from millstream.calculus.graph import Program
from millstream.calculus.types import Value
from millstream.engine.reference.explore import explore
from millstream.engine.reference.feed import Event
from millstream.languages.streamit.load import load
from millstream.source import Source
from millstream.values.core.machine import wrapped
from tests.laws.runs import on_local, on_reference
from tests.seeds import seeded

LIN = """
int->int filter Lin(int pops, int peeks, int pushes, int c) {
    work push pushes pop pops peek peeks {
        for (int k = 0; k < pushes; k++) {
            int sum = c;
            for (int j = 0; j < peeks; j++) sum += (c + j + 2 * k) * peek(j);
            push(sum);
        }
        for (int k = 0; k < pops; k++) pop();
    }
}
"""
ACC = """
int->int filter Acc(int c) {
    int total;
    work push 1 pop 1 { total = total * 3 + pop() + c; push(total); }
}
"""


@dataclass(frozen=True)
class Lin:
    pops: int
    peeks: int
    pushes: int
    c: int

    def at(self, seen: Callable[[int], int], k: int) -> int:
        """What is pushed as number k of a firing."""
        return wrapped(self.c + sum((self.c + j + 2 * k) * seen(j) for j in range(self.peeks)))

    def text(self) -> str:
        return f"Lin({self.pops}, {self.peeks}, {self.pushes}, {self.c})"


@dataclass(frozen=True)
class Acc:
    c: int

    def text(self) -> str:
        return f"Acc({self.c})"


@dataclass(frozen=True)
class Pipe:
    parts: tuple[Stream, ...]

    def text(self) -> str:
        return "pipeline { " + " ".join(f"add {p.text()};" for p in self.parts) + " }"


@dataclass(frozen=True)
class Split:
    weights: tuple[int, ...]  # none for copies
    parts: tuple[Stream, ...]
    joined: tuple[int, ...]

    def text(self) -> str:
        split = f"roundrobin({', '.join(map(str, self.weights))})" if self.weights else "duplicate"
        parts = " ".join(f"add {p.text()};" for p in self.parts)
        return f"splitjoin {{ split {split}; {parts} join roundrobin{self.joined}; }}"


@dataclass(frozen=True)
class Loop:
    """As many items go round as come in."""

    body: Lin
    back: Acc
    enqueued: tuple[int, ...]

    def text(self) -> str:
        return (f"feedbackloop {{ join roundrobin(1, 1); body {self.body.text()}; "
                f"loop {self.back.text()}; split roundrobin(1, 1); "
                + " ".join(f"enqueue {v};" for v in self.enqueued) + " }")  # fmt: skip


Stream = Lin | Acc | Pipe | Split | Loop
Tape = Callable[[int], int]


# --- the transform algebra --------------------------------------------------------------


def transformed(stream: Stream, tape: Tape) -> Tape:
    """Item i of the output, as a function of the tape that comes in."""
    match stream:
        case Lin(pops, _, pushes):
            return lambda i: stream.at(lambda j: tape(i // pushes * pops + j), i % pushes)
        case Pipe(parts):
            for part in parts:
                tape = transformed(part, tape)
            return tape
        case Split(weights, parts, joined):
            return joined_tape([
                transformed(part, split_tape(tape, weights, k)) for k, part in enumerate(parts)
            ], joined)  # fmt: skip
        case _:
            raise AssertionError("the algebra has neither state nor loops")


def split_tape(tape: Tape, weights: tuple[int, ...], k: int) -> Tape:
    if not weights:
        return tape
    own, before, total = weights[k], sum(weights[:k]), sum(weights)
    return lambda i: tape(i // own * total + before + i % own)


def joined_tape(tapes: list[Tape], weights: tuple[int, ...]) -> Tape:
    total = sum(weights)

    def item(i: int) -> int:
        rest, k = i % total, 0
        while rest >= weights[k]:
            rest, k = rest - weights[k], k + 1
        return tapes[k](i // total * weights[k] + rest)

    return item


# --- plain lists ------------------------------------------------------------------------


def listed(stream: Stream, items: list[int]) -> list[int]:
    match stream:
        case Lin(pops, peeks, pushes):
            out, at = [], 0
            while at + peeks <= len(items):
                seen = items[at : at + peeks]
                out += [stream.at(seen.__getitem__, k) for k in range(pushes)]
                at += pops
            return out
        case Acc(c):
            total, out = 0, []
            for item in items:
                total = wrapped(total * 3 + item + c)
                out.append(total)
            return out
        case Pipe(parts):
            for part in parts:
                items = listed(part, items)
            return items
        case Split(weights, parts, joined):
            return interleaved([
                listed(part, dealt(items, weights, k)) for k, part in enumerate(parts)
            ], joined)  # fmt: skip
        case Loop(body, back, enqueued):
            return looped(body, back, list(enqueued), items)


def dealt(items: list[int], weights: tuple[int, ...], k: int) -> list[int]:
    if not weights:
        return items
    begin = sum(weights[:k])
    places = range(begin, begin + weights[k])
    return [item for n, item in enumerate(items) if n % sum(weights) in places]


def interleaved(lists: list[list[int]], weights: tuple[int, ...]) -> list[int]:
    out: list[int] = []
    rests = [list(some) for some in lists]
    while True:
        for rest, weight in zip(rests, weights, strict=True):
            for _ in range(weight):
                if not rest:
                    return out
                out.append(rest.pop(0))


def looped(body: Lin, back: Acc, waiting: list[int], items: list[int]) -> list[int]:
    joined: list[int] = []
    out: list[int] = []
    returned = 0
    for item in items:
        if not waiting:
            break
        joined += [item, waiting.pop(0)]
        made = listed(body, joined)
        out, ahead = made[::2], made[1::2]
        come = listed(back, ahead)
        waiting += come[returned:]
        returned = len(come)
    return out


# --- programs ---------------------------------------------------------------------------


@st.composite
def streams(draw: st.DrawFn, depth: int = 2, is_plain: bool = True) -> Stream:
    kinds = (
        ["lin"] * 2 + (["pipe", "split"] if depth else []) + ([] if is_plain else ["acc", "loop"])
    )
    match draw(st.sampled_from(kinds)):
        case "pipe":
            return Pipe(tuple(draw(st.lists(streams(depth - 1, is_plain), min_size=1, max_size=3))))
        case "split":
            return draw(splits(depth - 1, is_plain))
        case "acc":
            return Acc(draw(st.integers(-3, 3)))
        case "loop":
            body = Lin(2, draw(st.integers(2, 3)), 2, draw(st.integers(-3, 3)))
            enqueued = tuple(draw(st.lists(st.integers(-9, 9), min_size=2, max_size=4)))
            return Loop(body, Acc(draw(st.integers(-3, 3))), enqueued)
        case _:
            pops, pushes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
            return Lin(pops, pops + draw(st.integers(0, 2)), pushes, draw(st.integers(-3, 3)))


@st.composite
def splits(draw: st.DrawFn, depth: int, is_plain: bool) -> Split:
    """Branches of equal rates, so that what is split comes together again."""
    count = draw(st.integers(2, 3))
    parts = []
    for _ in range(count):
        same = Lin(1, draw(st.integers(1, 3)), 1, draw(st.integers(-3, 3)))
        parts.append(same if is_plain or draw(st.booleans()) else Acc(draw(st.integers(-3, 3))))
    weights = tuple(draw(st.lists(st.integers(1, 3), min_size=count, max_size=count)))
    if draw(st.booleans()):
        return Split((), tuple(parts), (1,) * count)
    return Split(weights, tuple(parts), weights)


def program_of(stream: Stream) -> Program:
    used = "".join(text for name, text in (("Lin(", LIN), ("Acc(", ACC)) if name in stream.text())
    text = f"{used}int->int pipeline Main {{ add {stream.text()}; }}"
    return load(Source("test.str", text)).program


def outputs(stream: Stream, items: list[int]) -> list[list[Value]]:
    """What a program gives on the reference and on the local engine."""
    program = program_of(stream)
    events = {"items": [Event(n, (item,)) for n, item in enumerate(items)]}
    runs = on_reference(program, events)[0], on_local(program, events, (3, 7))[0]
    return [[row[0] for _, _, row in run["out"]] for run in runs]


ITEMS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=24)


@seeded(0, 25, phases=[Phase.generate])
@given(streams(), ITEMS)
def test_stateless_programs_give_what_the_transform_algebra_gives(
    stream: Stream, items: list[int]
) -> None:
    expected = listed(stream, items)
    tape = transformed(stream, items.__getitem__)
    assert expected == [tape(i) for i in range(len(expected))]
    assert [expected] * 2 == outputs(stream, items)


@seeded(1, 25, phases=[Phase.generate])
@given(streams(is_plain=False), ITEMS)
def test_programs_with_state_and_loops_give_what_plain_lists_give(
    stream: Stream, items: list[int]
) -> None:
    assert [listed(stream, items)] * 2 == outputs(stream, items)


@seeded(2, 8, phases=[Phase.generate])
@given(streams(depth=1, is_plain=False), st.lists(st.integers(-9, 9), max_size=3))
def test_small_programs_have_one_result_however_they_are_interleaved(
    stream: Stream, items: list[int]
) -> None:
    explored = explore(program_of(stream), {"items": [Event(n, (i,)) for n, i in enumerate(items)]})
    assert explored.is_unique
