"""Statements of a code as statements of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.calculus.procedures import (
    Assign,
    Body,
    Choose,
    Invoke,
    Leave,
    Let,
    Operand,
    Peek,
    Pop,
    Push,
    Repeat,
    Return,
    Routine,
    Scope,
    Slot,
    Statement,
    statements_in,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term, walk
from millstream.kernels.loop.code_frame import (
    MEMORIES,
    OUT,
)
from millstream.kernels.loop.code_items import ItemWriter
from millstream.kernels.loop.code_layout import NotCompiled, leaves_of, memory_of, zero_of
from millstream.kernels.loop.code_moves import ONCE, Moves, moves_items, moves_of
from millstream.kernels.loop.code_ranges import (
    Range,
    Region,
    assigned_in,
    counted,
    counter_of,
    routine_of,
)
from millstream.kernels.loop.code_terms import put
from millstream.kernels.loop.code_wholes import covers, writer_of
from millstream.kernels.loop.ir import (
    NO,
    TRUTH,
    YES,
    ZERO,
    Count,
    Load,
    Local,
    Loop,
    Rep,
    Set,
    Store,
    Value,
    When,
    integer,
    op,
)
from millstream.kernels.loop.ir import Leave as LeaveLoop
from millstream.kernels.loop.ir import Statement as Line
from millstream.kernels.loop.numbers import (
    ONE,
    SHORTEN,
    divided,
    greater_of,
    minus,
    not_,
    plus,
    times,
    wide,
)
from millstream.kernels.loop.operations import rep_of
from millstream.values.core.scalar import Operation

#: Calculated before it is known whether that is needed.
_CHEAP = frozenset(
    f"{kind}_{name}" for kind in ("int32", "single") for name in ("add", "sub", "mul", "neg")
)
_EITHER = Operation("", "{1} if {0} else {2}")
#: A region, the local that counts in it, and its range.
Counting = tuple[Region, Local, Range]

BREAK, CONTINUE = LeaveLoop("break"), LeaveLoop("continue")


@dataclass
class StatementWriter(ItemWriter):
    """Mutable: the statements of a loop so far."""

    #: What a return does here: the flag that leaves all loops of a routine, and where it gives.
    returns: tuple[Local, Place | None] | None = None
    #: What `continue` does first, for each loop around.
    afters: list[Body] = field(default_factory=list)
    calls: dict[tuple[int, str], tuple[Invoke, str]] = field(default_factory=dict)
    #: The routines that are being written, so that none is written inside of itself.
    calling: tuple[str, ...] = ()

    def body(self, body: Body) -> None:
        before: Statement | None = None
        for number, statement in enumerate(body):
            if isinstance(statement, Repeat):
                self.repeated(statement, before)
            elif isinstance(statement, Let):
                self.let(statement.slot, self.written(statement.slot, body[number + 1 :]))
            else:
                self.statement(statement)
            before = statement

    def block(self, body: Body) -> tuple[Line, ...]:
        with self.gathered() as lines:
            self.body(body)
        return tuple(lines)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Assign(target, value):
                self.assign(target, value)
            case Choose():
                self.choose(statement)
            case Leave("break"):
                self.add(BREAK)
            case Leave():
                self.body(self.afters[-1])
                self.add(CONTINUE)
            case Scope(inner):
                self.body(inner)
            case Pop(target, span):
                self.pop(target, span)
            case Peek(index, target, span):
                self.peek(index, target, span)
            case Push(value, output, span):
                self.push(value, output, span)
            case Invoke():
                self.invoke(statement)
            case Return(value):
                self.give_back(value)
            case Repeat() | Let():
                raise AssertionError("what stands before and behind these is to be known")

    # --- variables ---

    def written(self, slot: Slot, rest: Body) -> Value:
        """When an array is written as a whole by what follows, before anybody reads it."""
        stretch = self.layout.stretches.get((slot.name, ()))
        if not self.regions or stretch is None or len(stretch.leaf.sizes) != 1 or self.calling:
            return NO
        writer = writer_of(slot.name, rest)
        rounds = None if writer is None else self.rounds(writer.loop, writer.before)
        if writer is None or rounds is None or self.changes(writer.counter.bound, writer.loop.body):
            return NO
        changed = {v for name in assigned_in((writer.loop,), self.code)
                   for v in self.layout.locals(self.own(name))}  # fmt: skip
        counts = self.named(writer.counter.place)

        def fixed(place: Place) -> Local | None:
            local = self.named(place)
            return None if local in changed and local != counts else local

        return covers(writer, fixed, rounds, stretch.size(0)) or NO

    def let(self, slot: Slot, written: Value = NO) -> None:
        name = self.own(slot.name)
        if name not in self.layout.shapes:
            self.hold_inside(Slot(name, slot.shape))
        for leaf in leaves_of(slot.shape):
            stretch = self.layout.stretches.get((name, leaf.path))
            if stretch is None:
                local = self.layout.local(name, leaf.path)
                self.add(Set(local, zero_of(local.form.rep)))
                continue
            begin, cell = self.begin_of(stretch), self.fresh("z")
            zero = Store(begin.memory, plus(begin.index, cell), zero_of(begin.memory.rep))
            cleared = Count(cell, stretch.count(), (zero,))
            self.add(cleared if written == NO else When(not_(written), (cleared,)))

    # --- choices and loops ---

    def choose(self, choose: Choose) -> None:
        ways = [_plain_pushes(body) for body in (choose.then, choose.otherwise)]
        if self.moves is not None and ways[0] and len(ways[0]) == len(ways[1]):
            self.push_either(choose.condition, ways)
            return
        condition = self.term(choose.condition)
        before = self.moves
        chosen = self.block(choose.then)
        then, self.moves = self.moves, before
        self.add(When(condition, chosen, self.block(choose.otherwise)))
        if then != self.moves:
            self.settle(then)
            self.settle(self.moves)
            self.moves = None

    def push_either(self, condition: Term, ways: list[list[Term]]) -> None:
        """Where both ways only push plain values, values are chosen: nothing has to be guessed."""
        chosen = self.kept_apart(self.term(condition))
        for one, other in zip(*ways, strict=True):
            value = op(_EITHER, chosen, self.term(one), self.term(other), rep=rep_of(one.type))
            self.add(put(Load(MEMORIES[f"o{memory_of(one.type)}"], OUT), value))
            self.add(Set(OUT, plus(OUT, ONE)))
            assert self.moves is not None
            self.moves = self.moves.plus(Moves(pushed=ONCE))

    def repeated(self, loop: Repeat, before: Statement | None) -> None:
        """A loop that counts is there without checks, if it can be, and else with them."""
        after = self.count_through(loop, before)
        known = self.counting(loop, before)
        if known is None:
            if len(self.regions) != 1 or not self.twice(loop, before):
                self.repeat(loop)
        else:
            region, local, inside = known
            outer = region.ranges.get(local)
            region.ranges[local] = inside
            self.count(loop, before, local)
            del region.ranges[local]
            if outer is not None:
                region.ranges[local] = outer
        self.moves = after

    def counting(self, loop: Repeat, before: Statement | None) -> Counting | None:
        """In which region the range of what a loop counts is known, and that range."""
        counter = counter_of(loop, before)
        if counter is None or counter.place.variable in assigned_in(loop.body, self.code):
            return None
        local = self.named(counter.place)
        for region in self.regions if local is not None else ():
            known = counted(counter, region, self.named)
            if known is not None and local is not None:
                return region, local, known[0]
        return None

    def rounds(self, loop: Repeat, before: Statement | None) -> Value | None:
        counter = counter_of(loop, before)
        if counter is None or counter.place.variable in assigned_in(loop.body, self.code):
            return None
        known = counted(counter, self.regions[0], self.named)
        return None if known is None else known[1]

    def count_through(self, loop: Repeat, before: Statement | None) -> Moves | None:
        """Set what is taken and given at most while a loop runs; tells what is so after it."""
        start = self.moves
        if start is None or not moves_items((loop,), self.code):
            return start
        each = moves_of(loop.body + loop.after, self.code, self.rounds)
        often = self.rounds(loop, before)
        if each is None or often is None:
            self.lose_count()
            return None
        others = each.times(greater_of(ZERO, minus(often, ONE)))
        self.moves = Moves(start.popped.spread(others.popped), start.pushed.spread(others.pushed))
        return start.plus(each.times(often))

    def twice(self, loop: Repeat, before: Statement | None) -> bool:
        """A loop whose checks can be made before it, and the same loop with them."""
        changed = assigned_in((loop,), self.code)
        region = Region({v for name in changed for v in self.layout.locals(self.own(name))})
        self.regions.append(region)
        known = self.counting(loop, before)
        if known is None:
            self.regions.pop()
            return False
        region.ranges[known[1]] = known[2]
        moves = self.moves
        with self.gathered() as plain:
            self.count(loop, before, known[1])
        self.regions.pop()
        self.moves = moves
        with self.gathered() as careful:
            self.repeat(loop)
        self.add(When(region.condition, tuple(plain), tuple(careful)))
        return True

    def count(self, loop: Repeat, before: Statement | None, local: Local) -> None:
        """A loop whose range is known, as one that counts its rounds in 64 bits."""
        counter = counter_of(loop, before)
        if counter is None or _is_left(loop.body) or self.changes(counter.bound, loop.body):
            self.repeat(loop)
            return
        by, way = abs(counter.step), 1 if counter.step > 0 else -1
        is_known = isinstance(counter.start, Literal)
        begin = self.exact(counter.start) if is_known else self.kept_apart(wide(local))
        end = plus(self.exact(counter.bound), integer(way if counter.is_inclusive else 0))
        length = minus(end, begin) if way > 0 else minus(begin, end)
        rounds = self.kept_apart(divided(plus(length, integer(by - 1)), integer(by)))
        round_ = self.fresh("c")
        number = plus(begin, times(integer(counter.step), round_))
        self.widened[local] = number
        self.afters.append(())
        inside = self.block(loop.body)
        self.afters.pop()
        del self.widened[local]
        self.add(Count(round_, rounds, (Set(local, op(SHORTEN, number, rep=Rep.SHORT)), *inside)))
        last = plus(begin, times(integer(counter.step), greater_of(ZERO, rounds)))
        self.add(Set(local, op(SHORTEN, last, rep=Rep.SHORT)))

    def changes(self, term: Term, body: Body) -> bool:
        """Whether statements may change the value of a term."""
        read = {node.place.variable for node in walk(term) if isinstance(node, Read)}
        return not read.isdisjoint(assigned_in(body, self.code))

    def repeat(self, loop: Repeat) -> None:
        self.afters.append(loop.after)
        flag = self.fresh("again", TRUTH)
        if not loop.tests_first:
            self.add(Set(flag, NO))
        with self.gathered() as testing:
            test = None if loop.condition is None else self.term(loop.condition)
        inside = self.block((*loop.body, *loop.after))
        if loop.tests_first and not testing:
            self.add(Loop(test, inside))
        else:
            tested = () if test is None else (*testing, When(not_(test), (BREAK,)))
            if not loop.tests_first:
                tested = (When(flag, tested), Set(flag, YES))
            self.add(Loop(None, (*tested, *inside)))
        self.afters.pop()
        if self.returns is not None and _returns(loop.body):
            self.add(When(self.returns[0], (BREAK,)))

    # --- routines ---

    def invoke(self, statement: Invoke) -> None:
        """The body of the routine stands where it is called, with names of its own."""
        routine = routine_of(self.code, statement.routine)
        if routine.name in self.calling:
            raise NotCompiled("a function that calls itself")
        # The statement is kept with its name: another would get its number if it were gone.
        _, suffix = self.calls.setdefault(
            (id(statement), ",".join(self.calling)), (statement, f"@{len(self.calls)}")
        )
        names = {name: name + suffix for name in _names_of(routine)}
        for slot, argument in zip(routine.parameters, statement.arguments, strict=True):
            self.hold_inside(Slot(names[slot.name], slot.shape))
            self.assign(Place(names[slot.name]), argument)
        result = None
        if routine.result is not None:
            result = Place(f"result{suffix}")
            self.hold_inside(Slot(result.variable, routine.result))
            self.let(Slot(result.variable, routine.result))
        self.inside(routine, names, result)
        if statement.target is not None and result is not None:
            self.copy(statement.target, result)

    def hold_inside(self, slot: Slot) -> None:
        self.of_routines.add(slot.name)
        if slot.name not in self.layout.shapes:
            self.layout.hold(slot)

    def inside(self, routine: Routine, names: dict[str, str], result: Place | None) -> None:
        body = routine.body
        ends = body[-1:] if body and isinstance(body[-1], Return) else ()
        if any(isinstance(s, Return) for s in statements_in(body[: len(body) - len(ends)])):
            if moves_items(body, self.code):
                self.lose_count()
        kept = (self.renamed, self.returns, self.afters, self.calling)
        self.renamed = {**self.renamed, **names}
        self.of_routines.update(names.values())
        self.calling = (*self.calling, routine.name)
        self.returnable(body, result)
        self.renamed, self.returns, self.afters, self.calling = kept

    def returnable(self, body: Body, result: Place | None) -> None:
        """Statements that may return from anywhere."""
        flag = self.fresh("done", TRUTH)
        self.returns, self.afters = (flag, result), []
        self.add(Set(flag, NO), Loop(None, (*self.block(body), BREAK)))

    def give_back(self, value: Operand | None) -> None:
        assert self.returns is not None
        flag, target = self.returns
        if value is not None and target is not None:
            self.assign(target, value)
        self.add(Set(flag, YES), BREAK)


def _plain_pushes(body: Body) -> list[Term]:
    """What statements push, if that is all they do and no value has to be looked up."""
    values = [s.value for s in body if isinstance(s, Push) and s.output == 0]
    terms: list[Term] = [value for value in values if not isinstance(value, Place)]
    is_plain = all(
        isinstance(node, Literal)
        or (isinstance(node, Read) and not node.place.path)
        or (isinstance(node, Call) and node.function in _CHEAP)
        for term in terms
        for node in walk(term)
    )
    return terms if is_plain and len(terms) == len(body) else []


def _is_left(body: Body) -> bool:
    """Whether a loop may end before its time."""
    return any(
        isinstance(s, Return) or (isinstance(s, Leave) and s.word == "break")
        for s in statements_in(body)
    )


def _returns(body: Body) -> bool:
    return any(isinstance(s, Return) for s in statements_in(body))


def _names_of(routine: Routine) -> Iterator[str]:
    for slot in routine.parameters:
        yield slot.name
    for statement in statements_in(routine.body):
        if isinstance(statement, Let):
            yield statement.slot.name
