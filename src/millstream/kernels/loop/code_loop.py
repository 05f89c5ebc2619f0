"""A code as one compiled function that fires it so many times, on memory that it is given.

Its three parts are three loops of the function: what is done once, what is done the first time,
and what is done at every firing. The last is there without checks too, for when all that they
would ask can be known before the first firing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from millstream.calculus.procedures import (
    Body,
    Code,
    Invoke,
    Let,
    Push,
    Return,
    Slot,
    statements_in,
)
from millstream.calculus.terms import Read, Term, walk
from millstream.kernels.loop.cache import compiled
from millstream.kernels.loop.code_frame import (
    BEGIN,
    END,
    FIRED,
    FIRING,
    FIRINGS,
    FIRST_IN,
    FIRST_OUT,
    FRAME,
    IN,
    MEMORIES,
    MODE,
    OUT,
    PEEK,
    PLACES,
    POP,
    PUSH,
    ROOM,
    SAID,
)
from millstream.kernels.loop.code_layout import CodeLayout, NotCompiled, memory_of
from millstream.kernels.loop.code_moves import Moves
from millstream.kernels.loop.code_prints import Template
from millstream.kernels.loop.code_ranges import Region, assigned_in
from millstream.kernels.loop.code_statements import StatementWriter
from millstream.kernels.loop.code_terms import got, put
from millstream.kernels.loop.code_wholes import pushed_whole
from millstream.kernels.loop.emit import emit
from millstream.kernels.loop.ir import (
    ZERO,
    Count,
    Function,
    Load,
    Local,
    Set,
    Statement,
    Stop,
    Store,
    When,
    integer,
)
from millstream.kernels.loop.numbers import differ, equal, minus, plus
from millstream.kernels.loop.passes import STEPS, through
from millstream.source import Span

INIT, FIRST, BODY = 0, 1, 2


@dataclass(frozen=True)
class CodeLoop:
    """A function, how memory is laid out for it, and what it may have to tell."""

    function: Function
    layout: CodeLayout
    templates: tuple[Template, ...]
    sites: tuple[tuple[str, Span | None], ...]
    #: Whether what is done once is compiled too.
    has_init: bool

    @functools.cached_property
    def text(self) -> str:
        return emit(through(STEPS, self.function), FIRED).source

    def compiled(self) -> Any:
        return compiled(self.text)


@functools.lru_cache(maxsize=4096)
def loop_of(code: Code) -> CodeLoop:
    """The function of a code; codes that differ only in their places share it."""
    return lowered(code)


def lowered(code: Code) -> CodeLoop:
    _check_sizes(code)
    writer = StatementWriter(code)
    for slot in (*code.parameters, *code.fields):
        writer.layout.hold(slot, is_kept=True)
    for slot in _declared(code):
        writer.layout.hold(slot)
    has_init = not _sizes_read_fields(code) and not any(
        isinstance(s, Push) for s in statements_in(code.init)
    )
    _write_mode(writer, BODY, code.body)
    if code.first is not None:
        _write_mode(writer, FIRST, code.first)
    if has_init:
        _write_mode(writer, INIT, code.init)
    function = Function((*_head(writer), *writer.lines, *_tail(writer), Stop(ZERO)))
    sites, templates = tuple(writer.sites), tuple(writer.templates)
    return CodeLoop(function, writer.layout, templates, sites, has_init)


def _declared(code: Code) -> Iterator[Slot]:
    for body in (code.init, code.first or (), code.body):
        for statement in statements_in(body):
            if isinstance(statement, Let):
                yield statement.slot


# --- sizes ------------------------------------------------------------------------------


def _sizes(code: Code, slots: Iterator[Slot] | tuple[Slot, ...]) -> Iterator[Term]:
    layout = CodeLayout()
    for slot in slots:
        layout.hold(Slot(slot.name, slot.shape))
    for stretch in layout.stretches.values():
        yield from stretch.leaf.sizes


def _read_by(terms: Iterator[Term]) -> set[str]:
    return {n.place.variable for t in terms for n in walk(t) if isinstance(n, Read)}


def _all_declared(code: Code) -> Iterator[Slot]:
    yield from _declared(code)
    for routine in code.routines:
        yield from routine.parameters
        yield from (s.slot for s in statements_in(routine.body) if isinstance(s, Let))
        if routine.result is not None:
            yield Slot("result", routine.result)


def _sizes_read_fields(code: Code) -> bool:
    fields = {slot.name for slot in code.fields}
    return bool(fields & _read_by(_sizes(code, _all_declared(code))))


def _check_sizes(code: Code) -> None:
    """Memory is laid out once: sizes must never change afterwards."""
    parameters = {slot.name for slot in code.parameters}
    statements = (s for body in code.bodies() for s in statements_in(body))
    called = {s.routine for s in statements if isinstance(s, Invoke)}
    # What nobody calls is called from outside, between two firings.
    others = tuple(s for r in code.routines if r.name not in called for s in r.body)
    changed = assigned_in((*(code.first or ()), *code.body, *others), code)
    if not _read_by(_sizes(code, (*code.parameters, *code.fields))) <= parameters - assigned_in(
        code.init, code
    ):
        raise NotCompiled("a field whose size changes")
    fixed = (parameters - assigned_in(code.init, code)) | {slot.name for slot in code.fields}
    if not _read_by(_sizes(code, _all_declared(code))) <= fixed - changed:
        raise NotCompiled("an array whose size changes")


# --- the function -----------------------------------------------------------------------


def _write_mode(writer: StatementWriter, mode: int, body: Body) -> None:
    done = [_firings(writer, body, is_init=mode == INIT)]
    if mode == BODY:
        changed = assigned_in(body, writer.code)
        region = Region({v for name in changed for v in writer.layout.locals(name)})
        writer.regions, writer.moves = [region], Moves()
        writer.sent = pushed_whole(writer.code)
        if writer.sent is not None:
            region.require(equal(writer.layout.stretches[writer.sent, ()].size(0), PUSH))
        plain = _firings(writer, body)
        writer.regions, writer.moves, writer.sent = [], None, None
        done = [When(region.condition, (plain,), tuple(done))]
    writer.add(When(equal(MODE, integer(mode)), tuple(done)))


def _firings(writer: StatementWriter, body: Body, *, is_init: bool = False) -> Statement:
    """A loop over firings, as the writer is set up."""
    with writer.gathered() as lines:
        writer.add(Set(BEGIN, IN), Set(END, plus(IN, PEEK)), Set(ROOM, plus(OUT, PUSH)))
        if any(isinstance(s, Return) for s in statements_in(body)):
            writer.lose_count()
            writer.returnable(body, None)
            writer.returns = None
        else:
            writer.body(body)
        if not is_init:
            _check_rates(writer)
    return Count(FIRING, FIRINGS, tuple(lines))


def _check_rates(writer: StatementWriter) -> None:
    moves = writer.moves
    if moves is not None:
        for count, rate in ((moves.popped, POP), (moves.pushed, PUSH)):
            writer.regions[0].require(equal(count.least, rate), equal(count.most, rate))
        return
    message = "it pops {} items, but declares {}"
    popped = minus(IN, BEGIN)
    writer.stop_if(differ(popped, POP), message, None, popped, POP)
    message = "it pushes {} items, but declares {}"
    writer.stop_if(differ(OUT, ROOM), message, None, plus(minus(OUT, ROOM), PUSH), PUSH)


def _head(writer: StatementWriter) -> Iterator[Statement]:
    yield Set(IN, FIRST_IN)
    yield Set(OUT, FIRST_OUT)
    if writer.templates:
        yield from (Set(local, given) for given, local, _ in SAID.values())
    for stretch in writer.layout.stretches.values():
        yield Set(stretch.begin, Load(PLACES, integer(stretch.told_at)))
        for number in range(len(stretch.leaf.sizes)):
            place = integer(stretch.told_at + 1 + number)
            yield Set(stretch.size(number), Load(PLACES, place))
    for local, where, _ in _kept(writer):
        yield Set(local, got(where, local.form.rep))


def _tail(writer: StatementWriter) -> Iterator[Statement]:
    fields = {slot.name for slot in writer.code.fields}
    parameters = assigned_in(sum(writer.code.bodies(), ()), writer.code)
    for local, where, name in _kept(writer):
        if name in fields or name in parameters:
            yield put(where, local)
    if writer.templates:
        yield from (Store(FRAME, integer(place), local) for _, local, place in SAID.values())


def _kept(writer: StatementWriter) -> Iterator[tuple[Local, Load, str]]:
    counts = {"F": 0, "I": 0}
    for name, leaf in writer.layout.kept:
        letter = memory_of(leaf.type)
        local = writer.layout.local(name, leaf.path)
        yield local, Load(MEMORIES[letter], integer(counts[letter])), name
        counts[letter] += 1
