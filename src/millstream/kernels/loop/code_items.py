"""Items that codes take, look at, give and print, as statements of a loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.calculus.procedures import (
    Operand,
    Shape,
)
from millstream.calculus.terms import Place, Read, Term
from millstream.calculus.work import FIRST_MESSAGE
from millstream.kernels.loop.code_frame import (
    BEGIN,
    END,
    FIRING,
    FIRING_BASE,
    IN,
    MEMORIES,
    OUT,
    PEEK,
    PUSH,
    ROOM,
    ROOMS,
    SAID,
    SAID_ROOM,
    SAID_WHAT,
    SAID_WHEN,
    WIDTHS,
)
from millstream.kernels.loop.code_layout import Leaf, NotCompiled, leaves_of, memory_of
from millstream.kernels.loop.code_moves import ONCE, Moves
from millstream.kernels.loop.code_prints import Template, template_of
from millstream.kernels.loop.code_terms import TermWriter, Where, got, put
from millstream.kernels.loop.ir import (
    YES,
    ZERO,
    Count,
    Load,
    Local,
    Set,
    Store,
    Value,
    When,
    integer,
)
from millstream.kernels.loop.ir import Statement as Line
from millstream.kernels.loop.numbers import (
    ONE,
    and_,
    at_least,
    less,
    minus,
    or_,
    plus,
    times,
)
from millstream.kernels.loop.operations import rep_of
from millstream.source import Span


@dataclass
class ItemWriter(TermWriter):
    """Mutable: what codes print, and how far they are in their items."""

    templates: list[Template] = field(default_factory=list)
    #: What was taken and given so far; None where that must be looked at.
    moves: Moves | None = None

    def settle(self, moves: Moves | None) -> None:
        """Ask that what was taken and given so far was there, before losing count."""
        if moves is not None and moves != Moves():
            self.regions[0].require(
                at_least(PEEK, moves.popped.most), at_least(PUSH, moves.pushed.most)
            )

    def lose_count(self) -> None:
        self.settle(self.moves)
        self.moves = None

    def pop(self, target: Place | None, span: Span | None) -> None:
        if self.moves is None:
            self.see(ZERO, span)
        else:
            self.moves = self.moves.plus(Moves(popped=ONCE))
        if target is not None:
            self.take(target, IN)
        self.add(Set(IN, plus(IN, ONE)))

    def peek(self, index: Term, target: Place, span: Span | None) -> None:
        known = self.regions[0].range_of(index, self.named) if self.moves is not None else None
        if known is not None and self.moves is not None:
            popped = self.moves.popped
            self.regions[0].require(
                at_least(plus(known[0], popped.least), ZERO),
                less(plus(known[1], popped.most), PEEK),
            )
            value = self.exact(index)
        else:
            value = self.kept_apart(self.term(index))
            self.see(value, span)
        self.take(target, plus(IN, value))

    def see(self, index: Value, span: Span | None) -> None:
        is_bad = at_least(plus(IN, index), END)
        if index != ZERO:
            is_bad = or_(less(plus(IN, index), BEGIN), is_bad)
        message = "it looks at item {}, but may see {}"
        self.stop_if(is_bad, message, span, plus(minus(IN, BEGIN), index), PEEK)

    def take(self, target: Place, number: Value) -> None:
        assert self.code.taken is not None
        self.carry(target, "i", number, self.code.taken, is_in=True)

    def push(self, value: Operand, output: int, span: Span | None) -> None:
        if output >= FIRST_MESSAGE:
            self.stop_if(YES, "it sends a message", span)  # whoever calls this knows what to do
            return
        if output:
            self.print(value)
            return
        assert self.code.given is not None
        if self.moves is None:
            message = "it pushes more items than the {} it declares"
            self.stop_if(at_least(OUT, ROOM), message, span, PUSH)
        else:
            self.moves = self.moves.plus(Moves(pushed=ONCE))
        is_there = isinstance(value, Read) and value.place.variable == self.sent is not None
        if is_there:
            pass  # its elements are pushed in their order
        elif isinstance(value, Place):
            self.carry(value, "o", OUT, self.code.given, is_in=False)
        else:
            self.add(put(Load(MEMORIES[f"o{memory_of(value.type)}"], OUT), self.term(value)))
        self.add(Set(OUT, plus(OUT, ONE)))

    def carry(self, place: Place, side: str, number: Value, shape: Shape, *, is_in: bool) -> None:
        """An item between a buffer and a place; its parts stand one behind the other."""
        leaves = leaves_of(shape)
        starts: dict[str, Value] = {"F": ZERO, "I": ZERO}
        for leaf in leaves:
            letter = memory_of(leaf.type)
            here, count = self.located(place, leaf)
            index = plus(times(number, WIDTHS[side + letter]), starts[letter])
            is_single = len(leaves) == 1 and count == ONE
            buffer = Load(MEMORIES[side + letter], number if is_single else index)
            to, from_ = (here, buffer) if is_in else (buffer, here)
            self.move(to, from_, leaf, count)
            starts[letter] = plus(starts[letter], count)

    def print(self, value: Operand) -> None:
        """What is printed is kept as values; texts are made of them outside of the loop."""
        if isinstance(value, Place):
            raise NotCompiled("a printed variable")
        template = template_of(value)
        self.templates.append(template)
        values = [(memory_of(t.type), self.term(t)) for t in template.terms]
        _, said, _ = SAID[""]
        has_room = less(said, SAID_ROOM)
        kept: list[Line] = [Store(SAID_WHAT, said, integer(len(self.templates) - 1)),
                Store(SAID_WHEN, said, plus(FIRING_BASE, FIRING))]  # fmt: skip
        after = [Set(said, plus(said, ONE))]
        for letter in "FI":
            _, so_far, _ = SAID[letter]
            own = [made for memory, made in values if memory == letter]
            end = plus(so_far, integer(len(own)))
            has_room = and_(has_room, at_least(ROOMS[letter], end))
            for place, made in enumerate(own):
                where = Load(MEMORIES[f"S{letter}"], plus(so_far, integer(place)))
                kept.append(put(where, made))
            after.append(Set(so_far, end))
        self.add(When(has_room, tuple(kept)), *after)

    def assign(self, target: Place, value: Operand) -> None:
        if isinstance(value, Place):
            self.copy(target, value)
            return
        made = self.term(value)
        where, _ = self.located(target, Leaf((), (), value.type))
        self.add(put(where, made))

    def copy(self, target: Place, source: Place) -> None:
        for leaf in leaves_of(self.shape_at(target)):
            from_, _ = self.located(source, leaf)
            to, count = self.located(target, leaf)
            self.move(to, from_, leaf, count)

    def move(self, to: Where, from_: Where, leaf: Leaf, count: Value) -> None:
        if isinstance(to, Local) or isinstance(from_, Local):
            self.add(put(to, got(from_, rep_of(leaf.type))))
        elif count == ONE:
            self.add(Store(to.memory, to.index, from_))
        else:
            cell = self.fresh("z")
            value = Load(from_.memory, plus(from_.index, cell))
            self.add(Count(cell, count, (Store(to.memory, plus(to.index, cell), value),)))
