"""Codes compiled: a procedure as a loop over firings, on flat memory.

What a code holds is laid out in two arrays, one of single precision and one of 32-bit integers
(bits and booleans too). A variable of one value is a variable of the loop; an array is a
stretch of memory whose place and sizes are data, so that the same loop serves all arguments.
Every index is looked at before it is used; the first that is wrong ends the loop with what is
wrong and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Choose,
    Code,
    Invoke,
    Leave,
    Let,
    Operand,
    Peek,
    Pop,
    Push,
    RecordOf,
    Repeat,
    Return,
    Routine,
    Scope,
    Shape,
    Slot,
    Statement,
    statements_in,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term, walk
from millstream.source import Span
from millstream.values.core.table import SCALARS
from millstream.values.types import BOOLEAN, INT32, SINGLE, TEXT, Type


class NotCompiled(Exception):
    """The code has something that is not compiled yet; the message says what."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One plain value of a variable, or an array of such: where it stands in the variable."""

    path: tuple[str, ...]
    sizes: tuple[Term, ...]
    type: Type


def leaves_of(shape: Shape) -> tuple[Leaf, ...]:
    """A shape as plain values; an array of records is a record of arrays."""
    match shape:
        case ArrayOf(element, size):
            inner = leaves_of(element)
            return tuple(Leaf(leaf.path, (size, *leaf.sizes), leaf.type) for leaf in inner)
        case RecordOf(parts):
            return tuple(
                Leaf((name, *leaf.path), leaf.sizes, leaf.type)
                for name, part in parts
                for leaf in leaves_of(part)
            )
        case _:
            return (Leaf((), (), shape),)


@dataclass(frozen=True, slots=True)
class Stretch:
    """An array in memory: its leaf, and the number of its place among all stretches."""

    name: str
    leaf: Leaf
    number: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """The text of a loop, and how memory is laid out for it.

    `scalars` are plain values of parameters and fields, in the order in which they stand at
    the beginning of their memory; `stretches` are arrays. `sites` tell a fault by its number.
    """

    text: str
    scalars: tuple[tuple[str, Leaf], ...]
    stretches: tuple[Stretch, ...]
    sites: tuple[tuple[str, Span | None], ...]
    is_first: bool


def _memory(type_: Type) -> str:
    return "F" if type_ == SINGLE else "I"


def _at(where: str, index: str) -> str:
    """A variable, or a cell of memory; of a number without a sign numba asks nothing."""
    return f"{where}[uint64({index})]" if index else where


def variable_of(name: str, path: tuple[str, ...]) -> str:
    """The name of a plain value in the loop."""
    return "_".join(("v", name.replace("$", "S"), *path))


@dataclass
class _Fast:
    """Mutable: a loop whose checks are made once, before it."""

    changed: set[str]
    moves_input: bool
    ranges: dict[str, tuple[str, str]] = field(default_factory=dict)
    conditions: dict[str, None] = field(default_factory=dict)

    def require(self, condition: str) -> None:
        self.conditions[condition] = None


@dataclass
class _Emitter:
    """Mutable: the lines of a loop so far."""

    code: Code
    lines: list[str] = field(default_factory=list)
    indent: int = 1
    shapes: dict[str, Shape] = field(default_factory=dict)
    stretches: dict[tuple[str, tuple[str, ...]], Stretch] = field(default_factory=dict)
    sites: list[tuple[str, Span | None]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    #: What a return does here: the name of the flag that leaves all loops of a routine.
    returns: tuple[str, Operand | None] | None = None
    loops: int = 0
    afters: list[Body] = field(default_factory=list)
    #: In a loop that runs without checks: the ranges of what counts in it, what does not change
    #: in it, and what must hold before it.
    fast: _Fast | None = None

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    # --- memory ---

    def hold(self, slot: Slot) -> None:
        self.shapes[slot.name] = slot.shape
        for leaf in leaves_of(slot.shape):
            if leaf.type == TEXT:
                raise NotCompiled("texts")
            if leaf.sizes:
                key = (slot.name, leaf.path)
                self.stretches[key] = Stretch(slot.name, leaf, len(self.stretches))

    def own(self, name: str) -> str:
        return self.renamed.get(name, name)

    def shape_at(self, place: Place) -> Shape:
        shape = self.shapes[self.own(place.variable)]
        for step in place.path:
            if isinstance(step, str):
                assert isinstance(shape, RecordOf)
                part = shape.part(step)
                assert part is not None
                shape = part
            else:
                assert isinstance(shape, ArrayOf)
                shape = shape.element
        return shape

    def located(self, place: Place, leaf: Leaf) -> tuple[str, str]:
        """A leaf below a place: its variable, or its memory and the index of its first value."""
        name = self.own(place.variable)
        path = tuple(step for step in place.path if isinstance(step, str)) + leaf.path
        indexes = [step for step in place.path if not isinstance(step, str)]
        stretch = self.stretches.get((name, path))
        if stretch is None:
            return variable_of(name, path), ""
        index = "0"
        for number, term in enumerate(indexes):
            text = self.checked(term, f"d{stretch.number}_{number}", place.span)
            index = text if number == 0 else f"({index}) * d{stretch.number}_{number} + {text}"
        for number in range(len(indexes), len(stretch.leaf.sizes)):
            index = f"({index}) * d{stretch.number}_{number}" if index != "0" else "0"
        return _memory(leaf.type), f"o{stretch.number} + {index}"

    def checked(self, term: Term, size: str, span: Span | None) -> str:
        """An index that has been looked at, or needs not be."""
        index = self.term(term)
        known = None if self.fast is None else self.range_of(term, self.fast)
        if self.fast is not None and known is not None:
            self.fast.require(f"{known[0]} >= 0 and {known[1]} < {size}")
            return index
        self.calls += 1
        name = f"x{self.calls}"
        site = self.site("index {} is outside of an array of {}", span)
        self.line(f"{name} = {index}")
        self.line(f"if {name} < 0 or {name} >= {size}:")
        self.stop(site, name, size)
        return name

    def site(self, message: str, span: Span | None) -> int:
        self.sites.append((message, span))
        return len(self.sites)

    def stop(self, site: int, first: str = "0", second: str = "0") -> None:
        self.indent += 1
        self.line(f"C[0] = {site}; C[1] = firing; C[2] = {first}; C[3] = {second}")
        self.line("return ip, op")
        self.indent -= 1

    def count(self, leaf: Leaf, stretch: Stretch, done: int) -> str:
        """How many values lie below a place that has so many indexes."""
        sizes = [f"d{stretch.number}_{n}" for n in range(done, len(leaf.sizes))]
        return " * ".join(sizes) or "1"

    # --- terms ---

    def term(self, term: Term) -> str:
        match term:
            case Literal(value, type_):
                if type_ == SINGLE:
                    return f"float32({float(value or 0)!r})" if value == value else "float32(nan)"
                return repr(bool(value)) if type_ == BOOLEAN else f"int32({value})"
            case Read(place, type_):
                where, index = self.located(place, Leaf((), (), type_))
                if not index:
                    return where
                value = _at(where, index)
                return f"{value} != 0" if type_ == BOOLEAN else value
            case Call(function, args):
                return self.call(term, function, [self.term(a) for a in args])
            case _:
                raise NotCompiled(f"the term {term!r}")

    def call(self, call: Call, function: str, args: list[str]) -> str:
        match function:
            case "and" | "or" | "==" | "!=":
                return f"(({args[0]}) {function} ({args[1]}))"
            case "not":
                return f"(not ({args[0]}))"
        (operation,) = SCALARS[function].loop.values() or [None]
        if operation is None or operation.plain is None:
            raise NotCompiled(function)
        if operation.faults:
            self.calls += 1
            divisor = f"x{self.calls}"
            self.line(f"{divisor} = {args[1]}")
            self.line(f"if {divisor} == 0:")
            self.stop(self.site("division by zero", call.span))
            args[1] = divisor
        return "(" + operation.plain.format(*(f"({a})" for a in args)) + ")"

    # --- statements ---

    def body(self, body: Body) -> None:
        if not body:
            self.line("pass")
        before: Statement | None = None
        for statement in body:
            if isinstance(statement, Repeat):
                self.repeated(statement, before)
            else:
                self.statement(statement)
            before = statement

    def block(self, body: Body) -> None:
        self.indent += 1
        self.body(body)
        self.indent -= 1

    def statement(self, statement: Statement) -> None:
        match statement:
            case Let(slot):
                self.let(slot)
            case Assign(target, value):
                self.assign(target, value)
            case Choose(condition, then, otherwise):
                self.line(f"if {self.term(condition)}:")
                self.block(then)
                if otherwise:
                    self.line("else:")
                    self.block(otherwise)
            case Repeat():
                self.repeated(statement, None)
            case Leave("break"):
                self.line("break")
            case Leave():
                self.body(self.afters[-1])
                self.line("continue")
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

    def let(self, slot: Slot) -> None:
        name = self.own(slot.name)
        if name not in self.shapes:
            self.hold(Slot(name, slot.shape))
        for leaf in leaves_of(slot.shape):
            stretch = self.stretches.get((name, leaf.path))
            if stretch is None:
                self.line(f"{variable_of(name, leaf.path)} = {_zero(leaf.type)}")
                continue
            count = self.count(leaf, stretch, 0)
            memory = _memory(leaf.type)
            self.line(f"for z in range({count}):")
            cell = _at(memory, f"o{stretch.number} + z")
            self.line(f"    {cell} = {_zero(leaf.type, memory)}")

    def assign(self, target: Place, value: Operand) -> None:
        if isinstance(value, Place):
            self.copy(target, value)
            return
        text = self.term(value)
        where, index = self.located(target, Leaf((), (), value.type))
        self.line(f"{_at(where, index)} = {text}")

    def copy(self, target: Place, source: Place) -> None:
        for leaf in leaves_of(self.shape_at(target)):
            to, from_ = self.located(target, leaf), self.located(source, leaf)
            self.move(to, from_, leaf, self.count_below(target, leaf))

    def count_below(self, place: Place, leaf: Leaf) -> str:
        name = self.own(place.variable)
        path = tuple(step for step in place.path if isinstance(step, str)) + leaf.path
        stretch = self.stretches.get((name, path))
        if stretch is None:
            return "1"
        done = sum(not isinstance(step, str) for step in place.path)
        return self.count(stretch.leaf, stretch, done)

    def move(self, to: tuple[str, str], from_: tuple[str, str], leaf: Leaf, count: str) -> None:
        (where, index), (source, place) = to, from_
        if count == "1":
            value = _at(source, place)
            if leaf.type == BOOLEAN and place and not index:
                value = f"{value} != 0"
            self.line(f"{_at(where, index)} = {value}")
            return
        self.line(f"for z in range({count}):")
        self.line(f"    {_at(where, f'{index} + z')} = {_at(source, f'{place} + z')}")

    # --- loops without checks ---

    def repeated(self, loop: Repeat, before: Statement | None) -> None:
        """A loop that counts is there twice: without checks, if what they ask for holds before
        it, and with them."""
        counter = self.counter(loop, before)
        if counter is None:
            self.repeat(loop)
            return
        name, low, high = counter
        if self.fast is not None:
            outer = self.fast.ranges.get(name)
            self.fast.ranges[name] = low, high
            self.repeat(loop)
            self.fast.ranges.pop(name)
            if outer is not None:
                self.fast.ranges[name] = outer
            return
        lines, self.lines = self.lines, []
        indent, sites = self.indent, len(self.sites)
        pops = any(isinstance(s, Pop) for s in statements_in((loop,)))
        self.fast = _Fast(_assigned(loop, self), pops, {name: (low, high)})
        self.indent += 1
        self.repeat(loop)
        conditions, plain = tuple(self.fast.conditions), self.lines
        self.fast, self.lines, self.indent = None, lines, indent
        if not conditions:
            del self.sites[sites:]
            self.repeat(loop)
            return
        self.line(f"if {' and '.join(conditions)}:")
        self.lines += plain
        self.line("else:")
        self.indent += 1
        self.repeat(loop)
        self.indent -= 1

    def counter(self, loop: Repeat, before: Statement | None) -> tuple[str, str, str] | None:
        """The variable that a loop counts up by, and its range inside, as texts."""
        match loop.condition, before, loop.after:
            case (
                Call("int32_lt" | "int32_le" as test, (Read(Place(name, ())), bound)),
                Assign(Place(begun, ()), Call() | Literal() | Read() as start),
                (
                    Assign(
                        Place(stepped, ()), Call("int32_add", (Read(Place(own, ())), Literal(by)))
                    ),
                ),
            ) if name == begun == stepped == own and isinstance(by, int) and by > 0:
                pass
            case _:
                return None
        if not loop.tests_first or name in _assigned_in(loop.body, self):
            return None
        known = self.fast or _Fast(_assigned(loop, self), False)
        first, last = self.range_of(start, known, is_start=True), self.range_of(bound, known)
        if first is None or last is None:
            return None
        high = last[1] if test == "int32_le" else f"({last[1]} - 1)"
        return self.own(name), first[0], high

    def range_of(
        self, term: Term, fast: _Fast, *, is_start: bool = False
    ) -> tuple[str, str] | None:
        """The least and the largest value of an index while a loop runs, known before it."""
        match term:
            case Literal(int(value)):
                return str(value), str(value)
            case Read(Place(name, path), type_) if type_ == INT32 and all(
                isinstance(s, str) for s in path
            ):
                variable = variable_of(self.own(name), tuple(map(str, path)))
                if self.own(name) in fast.ranges and not path:
                    return fast.ranges[self.own(name)]
                if variable in fast.changed:
                    return None
                return f"int64({variable})", f"int64({variable})"
            case Call("int32_add", (left, right)):
                a, b = self.range_of(left, fast), self.range_of(right, fast)
                return a and b and (f"({a[0]} + {b[0]})", f"({a[1]} + {b[1]})")
            case Call("int32_sub", (left, right)):
                a, b = self.range_of(left, fast), self.range_of(right, fast)
                return a and b and (f"({a[0]} - {b[1]})", f"({a[1]} - {b[0]})")
            case Call("int32_mul", (left, right)):
                a, b = self.range_of(left, fast), self.range_of(right, fast)
                if a is None or b is None:
                    return None
                fast.require(f"{a[0]} >= 0 and {b[0]} >= 0")
                return f"({a[0]} * {b[0]})", f"({a[1]} * {b[1]})"
            case Call("int32_and", (_, Literal(int(mask)))) if mask >= 0:
                return "0", str(mask)
            case _:
                return None

    def repeat(self, loop: Repeat) -> None:
        is_plain = loop.condition is not None and not _has_effects(loop.condition)
        self.loops += 1
        self.afters.append(loop.after)
        flag = f"r{self.loops}"
        if loop.tests_first and is_plain:
            assert loop.condition is not None
            self.line(f"while {self.term(loop.condition)}:")
            self.indent += 1
        else:
            if not loop.tests_first:
                self.line(f"{flag} = False")
            self.line("while True:")
            self.indent += 1
            if loop.condition is not None:
                if not loop.tests_first:
                    self.line(f"if {flag}:")
                    self.indent += 1
                self.line(f"if not ({self.term(loop.condition)}):")
                self.line("    break")
                if not loop.tests_first:
                    self.indent -= 1
                    self.line(f"{flag} = True")
        self.body(loop.body)
        self.body(loop.after)
        self.indent -= 1
        self.afters.pop()
        if self.returns is not None and _returns(loop.body):
            self.line(f"if {self.returns[0]}:")
            self.line("    break")

    # --- items ---

    def pop(self, target: Place | None, span: Span | None) -> None:
        self.seen("0", span)
        if target is not None:
            self.take(target, "0")
        self.line("ip += 1")

    def peek(self, index: Term, target: Place, span: Span | None) -> None:
        fast = self.fast
        known = None if fast is None or fast.moves_input else self.range_of(index, fast)
        self.calls += 1
        name = f"x{self.calls}"
        self.line(f"{name} = {self.term(index)}")
        if fast is not None and known is not None:
            fast.require(f"{known[0]} >= 0 and ip + {known[1]} < end")
        else:
            self.seen(name, span)
        self.take(target, name)

    def seen(self, index: str, span: Span | None) -> None:
        site = self.site("it looks at item {}, but may see {}", span)
        bad = f"ip + {index} >= end" if index == "0" else f"{index} < 0 or ip + {index} >= end"
        self.line(f"if {bad}:")
        self.stop(site, f"ip - begin + {index}", "end - begin")

    def take(self, target: Place, index: str) -> None:
        assert self.code.taken is not None
        self.carry(target, "i", f"(ip + {index})", self.code.taken, is_in=True)

    def push(self, value: Operand, output: int, span: Span | None) -> None:
        if output:
            raise NotCompiled("print")
        assert self.code.given is not None
        site = self.site("it pushes more items than the {} it declares", span)
        self.line("if op >= room:")
        self.stop(site, "push")
        if isinstance(value, Place):
            self.carry(value, "o", "op", self.code.given, is_in=False)
        else:
            memory = _memory(value.type)
            self.line(f"{_at(f'o{memory}', 'op')} = {self.term(value)}")
        self.line("op += 1")

    def carry(self, place: Place, side: str, number: str, shape: Shape, *, is_in: bool) -> None:
        """An item between a buffer and a place; its parts stand one behind the other."""
        leaves = leaves_of(shape)
        starts = {"F": "0", "I": "0"}
        for leaf in leaves:
            memory = _memory(leaf.type)
            count = self.count_below(place, leaf)
            width = f"w{side}{memory}"
            buffer = (f"{side}{memory}", f"{number} * {width} + {starts[memory]}")
            if len(leaves) == 1 and count == "1":
                buffer = (f"{side}{memory}", number)
            here = self.located(place, leaf)
            if is_in:
                self.move(here, buffer, leaf, count)
            else:
                self.move(buffer, here, leaf, count)
            starts[memory] = f"{starts[memory]} + {count}"

    # --- routines ---

    def invoke(self, statement: Invoke) -> None:
        """The body of the routine stands where it is called, with names of its own."""
        routine = next(r for r in self.code.routines if r.name == statement.routine)
        self.calls += 1
        number = self.calls
        names = {n: f"{n}_c{number}" for n in _names_of(routine)}
        for slot, argument in zip(routine.parameters, statement.arguments, strict=True):
            inner = names[slot.name]
            if inner not in self.shapes:
                self.hold(Slot(inner, slot.shape))
            before, self.renamed = self.renamed, {**self.renamed}
            self.assign_new(inner, argument)
            self.renamed = before
        kept = (self.renamed, self.returns, self.afters)
        flag = f"done{number}"
        self.renamed = {**self.renamed, **names}
        target = None
        if statement.target is not None and routine.result is not None:
            inner = f"result_c{number}"
            self.hold(Slot(inner, routine.result))
            self.let(Slot(inner, routine.result))
            target = Place(inner)
        self.returns, self.afters = (flag, target), []
        self.line(f"{flag} = False")
        self.line("while True:")
        self.indent += 1
        self.body(routine.body)
        self.line("break")
        self.indent -= 1
        self.renamed, self.returns, self.afters = kept
        if statement.target is not None and target is not None:
            self.copy(statement.target, target)

    def assign_new(self, name: str, argument: Operand) -> None:
        self.assign(Place(name), argument)

    def give_back(self, value: Operand | None) -> None:
        if self.returns is None:
            raise NotCompiled("a return outside of a function")
        flag, target = self.returns
        if value is not None and isinstance(target, Place):
            self.assign(target, value)
        self.line(f"{flag} = True")
        self.line("break")


def _zero(type_: Type, memory: str = "") -> str:
    if type_ == SINGLE:
        return "float32(0.0)"
    return "False" if type_ == BOOLEAN and not memory else "int32(0)"


def _assigned_in(body: Body, emitter: _Emitter) -> set[str]:
    """The variables that statements may change, as the loop names them."""
    names: set[str] = set()
    for statement in statements_in(body):
        match statement:
            case Let(slot):
                names.add(slot.name)
            case Assign(target) | Pop(Place() as target) | Peek(_, target):
                names.add(target.variable)
            case Invoke(routine, _, target):
                if target is not None:
                    names.add(target.variable)
                called = next(r for r in emitter.code.routines if r.name == routine)
                names |= _assigned_in(called.body, emitter)
            case _:
                continue
    return names


def _assigned(loop: Repeat, emitter: _Emitter) -> set[str]:
    """As names of plain values in the loop; a part of a record counts for all of it."""
    names = {emitter.own(name) for name in _assigned_in((loop,), emitter)}
    changed: set[str] = set()
    for name in names:
        shape = emitter.shapes.get(name)
        leaves = () if shape is None else leaves_of(shape)
        changed |= {variable_of(name, leaf.path) for leaf in leaves} | {variable_of(name, ())}
    return changed


def _has_effects(term: Term) -> bool:
    """Whether a term needs lines of its own: those of its checks."""
    for node in walk(term):
        if isinstance(node, Read) and any(not isinstance(s, str) for s in node.place.path):
            return True
        if isinstance(node, Call) and node.function in ("int32_div", "int32_rem"):
            return True
    return False


def _returns(body: Body) -> bool:
    return any(isinstance(s, Return) for s in statements_in(body))


def _names_of(routine: Routine) -> Iterator[str]:
    for slot in routine.parameters:
        yield slot.name
    for statement in statements_in(routine.body):
        if isinstance(statement, Let):
            yield statement.slot.name


def emitted(code: Code, body: Body, *, is_init: bool = False) -> Compiled:
    """The loop that fires a body so many times."""
    emitter = _Emitter(code)
    for slot in (*code.parameters, *code.fields):
        emitter.hold(slot)
    scalars = [
        (slot.name, leaf)
        for slot in (*code.parameters, *code.fields)
        for leaf in leaves_of(slot.shape)
        if not leaf.sizes
    ]
    emitter.indent = 2
    emitter.line("begin = ip; end = ip + peek; room = op + push")
    emitter.body(body)
    if not is_init:
        emitter.line("if ip - begin != pop:")
        emitter.stop(emitter.site("it pops {} items, but declares {}", None), "ip - begin", "pop")
        emitter.line("if op != room:")
        emitter.stop(
            emitter.site("it pushes {} items, but declares {}", None), "op - room + push", "push"
        )
    head = ["def fire(n, pop, peek, push, iF, iI, ip, oF, oI, op, F, I, O, W, C):"]
    head += ["    wiF = W[0]; wiI = W[1]; woF = W[2]; woI = W[3]"]
    place = 0
    for stretch in emitter.stretches.values():
        head.append(f"    o{stretch.number} = O[{place}]")
        place += 1
        for number in range(len(stretch.leaf.sizes)):
            head.append(f"    d{stretch.number}_{number} = O[{place}]")
            place += 1
    counts = {"F": 0, "I": 0}
    tail = []
    fields = {slot.name for slot in code.fields}
    for name, leaf in scalars:
        memory = _memory(leaf.type)
        here = f"{memory}[{counts[memory]}]"
        counts[memory] += 1
        test = " != 0" if leaf.type == BOOLEAN else ""
        head.append(f"    {variable_of(name, leaf.path)} = {here}{test}")
        if name in fields:
            tail.append(f"    {here} = {variable_of(name, leaf.path)}")
    head.append("    for firing in range(n):")
    text = "\n".join([*head, *emitter.lines, *tail, "    return ip, op", ""])
    stretches = tuple(emitter.stretches.values())
    return Compiled(text, tuple(scalars), stretches, tuple(emitter.sites), False)
