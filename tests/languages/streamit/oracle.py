"""An interpreter of StreamIt that knows nothing of the calculus, made to compare with.

It walks the tree of a text. A stream is a generator that asks the one before it for items, so
that whatever is wanted first is worked out first; numbers are those of numpy, 32 bits wide.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from millstream.languages.streamit import ast
from millstream.languages.streamit.read import read
from millstream.source import Source

Value = Any
Items = Iterator[Value]
#: Not typed: what numpy gives for two of them is one of them, which its types do not say.
_FLOAT: Any = np.float32
_INT: Any = np.int32


@dataclass
class Bit:
    """Mutable as little as a number is."""

    value: int


@dataclass
class Complex:
    real: Any = field(default_factory=lambda: _FLOAT(0))
    imag: Any = field(default_factory=lambda: _FLOAT(0))


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


class _Dry(Exception):
    """A firing needs more items than will ever come."""


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


def whole(value: Value) -> Any:
    """A number as 32 bits."""
    if isinstance(value, Bit):
        return _INT(value.value)
    if isinstance(value, _FLOAT):
        number = float(value)
        clipped = 0 if number != number else int(max(-(2.0**31), min(2.0**31 - 1, number)))
        return _INT(clipped)
    return _INT((int(value) + 2**31) % 2**32 - 2**31)


def single(value: Value) -> Any:
    return _FLOAT(value.value if isinstance(value, Bit) else value)


def shown(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Bit(bit):
            return str(bit)
        case Complex(real, imag):
            return f"{shown(real)} + {shown(imag)}i"
        case _ if isinstance(value, _FLOAT) and math.isfinite(value):
            return repr(float(np.format_float_scientific(value, unique=True)))
        case _ if isinstance(value, _FLOAT):
            return str(float(value))
        case _:
            return str(value)


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: bool(a < b), "<=": lambda a, b: bool(a <= b), ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b), "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
}  # fmt: skip


def _of_whole(operator: str, a: int, b: int) -> int:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b))
        case "%":
            return int(math.copysign(1, a)) * (abs(a) % abs(b))
        case "&":
            return a & b
        case "|":
            return a | b
        case "^":
            return a ^ b
        case "<<":
            return a << (b & 31)
        case ">>":
            return a >> (b & 31)
    raise AssertionError(operator)


def _of_single(operator: str, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        match operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return a / b
            case "%":
                return _FLOAT(np.fmod(a, b))
    raise AssertionError(operator)


def _of_complex(operator: str, a: Complex, b: Complex) -> Value:
    match operator:
        case "+":
            return Complex(a.real + b.real, a.imag + b.imag)
        case "-":
            return Complex(a.real - b.real, a.imag - b.imag)
        case "*":
            return Complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
        case "/":
            size = b.real * b.real + b.imag * b.imag
            return Complex(
                (a.real * b.real + a.imag * b.imag) / size,
                (a.imag * b.real - a.real * b.imag) / size,
            )
        case "==":
            return bool(a.real == b.real and a.imag == b.imag)
        case "!=":
            return not (a.real == b.real and a.imag == b.imag)
    raise AssertionError(operator)


def operate(operator: str, a: Value, b: Value) -> Value:
    if isinstance(a, str) or isinstance(b, str):
        return (a if isinstance(a, str) else shown(a)) + (b if isinstance(b, str) else shown(b))
    if isinstance(a, bool) and isinstance(b, bool) and operator in ("==", "!=", "&", "|", "^"):
        return {"==": a == b, "!=": a != b, "&": a and b, "|": a or b, "^": a != b}[operator]
    if isinstance(a, Complex) or isinstance(b, Complex):
        sides = [v if isinstance(v, Complex) else Complex(single(v)) for v in (a, b)]
        return _of_complex(operator, *sides)
    if operator in ("<<", ">>"):
        return whole(_of_whole(operator, int(whole(a)), int(whole(b))))
    if isinstance(a, _FLOAT) or isinstance(b, _FLOAT):
        a, b = single(a), single(b)
        return _COMPARED[operator](a, b) if operator in _COMPARED else _of_single(operator, a, b)
    if operator in _COMPARED:
        return _COMPARED[operator](whole(a), whole(b))
    if isinstance(a, Bit) and isinstance(b, Bit) and operator in ("&", "|", "^"):
        return Bit(_of_whole(operator, a.value, b.value))
    return whole(_of_whole(operator, int(whole(a)), int(whole(b))))


def _mathematics(name: str, arguments: list[Value]) -> Value:
    first = arguments[0]
    if isinstance(first, Complex):
        return _of_complex_functions(name, first)
    if name in ("abs", "fabs") and not isinstance(first, _FLOAT):
        return whole(abs(int(first))) if name == "abs" else abs(single(first))
    if name in ("min", "max"):
        if not any(isinstance(a, _FLOAT) for a in arguments):
            return whole((min if name == "min" else max)(int(a) for a in arguments))
        return (min if name == "min" else max)(single(a) for a in arguments)
    numbers = [float(single(a)) for a in arguments]
    if name == "round":
        return _FLOAT(math.copysign(math.floor(abs(numbers[0]) + 0.5), numbers[0]))
    other: dict[str, Any] = {"abs": abs, "fabs": abs, "ceiling": math.ceil}
    called = other.get(name) or getattr(math, name)
    return _FLOAT(called(*numbers))


def _of_complex_functions(name: str, value: Complex) -> Value:
    match name:
        case "abs":
            return _FLOAT(math.sqrt(value.real * value.real + value.imag * value.imag))
        case "arg":
            return _FLOAT(math.atan2(value.imag, value.real))
        case "exp":
            size = _FLOAT(math.exp(value.real))
            return Complex(size * _FLOAT(math.cos(value.imag)), size * _FLOAT(math.sin(value.imag)))
    raise AssertionError(name)


class Oracle:
    """A text, and what its streams give for some items."""

    def __init__(self, text: str) -> None:
        self.text = read(Source("oracle.str", text))
        self.streams = {s.name: s for s in self.text.streams}
        self.structs = {s.name: s for s in self.text.structs}
        self.printed: list[str] = []
        self.globals: dict[str, Value] = {}
        self.routines = {f"{h.name}.{r.name}": r for h in self.text.helpers for r in h.routines}
        for helper in self.text.helpers:
            self.routines |= {r.name: r for r in helper.routines}
        for static in self.text.statics:
            scope = _Scope(self, [self.globals], {})
            for declared in static.fields:
                scope.do(declared)
            if static.init is not None:
                scope.do(static.init)

    def run(self, items: Sequence[Value] = ()) -> Items:
        """What the program gives; a sink gives a None for every firing."""
        streams = self.text.streams
        main = [s for s in streams if _void(s.input) and _void(s.output)] or list(streams[-1:])
        return self.stream(main[0], [], [{}], iter(items))

    def stream(
        self, stream: ast.Stream, arguments: list[Value], around: list[dict[str, Value]],
        items: Items,
    ) -> Items:  # fmt: skip
        own: dict[str, Value] = {}
        scope = _Scope(self, [self.globals, *around, own], {})
        for parameter, value in zip(stream.parameters, arguments, strict=True):
            own[parameter.name] = scope.fit(value, parameter.type)
        if isinstance(stream.body, ast.Filter):
            return self.filter(stream, stream.body, scope, items)
        built = _Built()
        scope.built = built
        scope.do(stream.body.body)
        kind = stream.body.kind
        if kind == "pipeline":
            for child in built.children:
                items = child(items)
            return items
        return built.split_join(items) if kind == "splitjoin" else built.feedback(items)

    def filter(self, stream: ast.Stream, body: ast.Filter, scope: _Scope, items: Items) -> Items:
        scope.routines = {**self.routines, **{r.name: r for r in body.routines}}
        scope.given = stream.output
        for declared in body.fields:
            scope.do(declared)
        if body.init is not None:
            scope.do(body.init)
        assert body.work is not None
        work = body.prework or body.work
        seen = _Pulled(items)
        while True:
            rates = {name: _ends(scope, rate) for name, rate in work.rates.items()}
            try:
                seen.want(max(rates.get(name, (0, 0))[0] for name in ("peek", "pop")))
                scope.seen, scope.sent = seen, []
                before = seen.popped
                with contextlib.suppress(_Return):
                    scope.do(work.body)
            except _Dry:
                return
            scope.firings += 1
            for name, count in (("pop", seen.popped - before), ("push", len(scope.sent))):
                least, most = rates.get(name, (0, 0))
                assert least <= count <= most
            yield from scope.sent if stream.output is None or not _void(stream.output) else [None]
            work = body.work

    def instance(self, instance: ast.Instance, arguments: list[Value], items: Items) -> Items:
        if instance.name == "Identity":
            return items
        return self.stream(self.streams[instance.name], arguments, [], items)


class _Pulled:
    """Mutable: items that are asked for when a firing looks at them."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self.held: deque[Value] = deque()
        self.popped = 0

    def want(self, count: int) -> None:
        while len(self.held) < count:
            try:
                self.held.append(next(self.items))
            except StopIteration:
                raise _Dry from None

    def popleft(self) -> Value:
        self.want(1)
        self.popped += 1
        return self.held.popleft()

    def __getitem__(self, place: int) -> Value:
        self.want(int(place) + 1)
        return self.held[place]


def _ends(scope: _Scope, rate: ast.Rate) -> tuple[int, float]:
    """The fewest and the most items."""
    least = 0 if rate.least is None else int(scope.value(rate.least))
    return least, math.inf if rate.most is None else int(scope.value(rate.most))


def _void(type_: ast.TypeName | None) -> bool:
    return type_ is not None and type_.name == "void"


@dataclass
class _Built:
    """Mutable: what the body of a composite has added."""

    children: list[Callable[[Items], Items]] = field(default_factory=list)
    roles: dict[str, Callable[[Items], Items]] = field(default_factory=dict)
    weights: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    enqueued: list[Value] = field(default_factory=list)

    def counts(self, role: str, count: int) -> list[int] | None:
        kind, weights = self.weights.get(role, ("roundrobin", []))
        if kind == "duplicate":
            return None
        return weights if len(weights) == count else (weights or [1]) * count

    def split_join(self, items: Items) -> Items:
        ways = _dealt(items, self.counts("split", len(self.children)), len(self.children))
        ends = [child(way) for child, way in zip(self.children, ways, strict=True)]
        return _joined(ends, self.counts("join", len(ends)) or [])

    def feedback(self, items: Items) -> Items:
        back: deque[Items] = deque()

        def looped() -> Items:
            yield from self.enqueued
            yield from back[0]

        joined = _joined([items, looped()], self.counts("join", 2) or [])
        body = self.roles.get("body", _same)(joined)
        out, again = _dealt(body, self.counts("split", 2), 2)
        back.append(self.roles.get("loop", _same)(again))
        return out


def _same(items: Items) -> Items:
    return items


def _dealt(items: Items, weights: list[int] | None, count: int) -> list[Items]:
    waiting: list[deque[Value]] = [deque() for _ in range(count)]
    turns = [n for n, weight in enumerate(weights or ()) for _ in range(weight)]
    place = 0

    def deal() -> None:
        nonlocal place
        item = next(items)
        for number in range(count) if weights is None else [turns[place]]:
            waiting[number].append(copy.deepcopy(item))
        place = (place + 1) % max(len(turns), 1)

    def way(number: int) -> Items:
        while True:
            try:
                while not waiting[number]:
                    deal()
            except StopIteration:
                return
            yield waiting[number].popleft()

    return [way(number) for number in range(count)]


def _joined(ends: list[Items], weights: list[int]) -> Items:
    # Where nothing is joined, all are sinks, and fire in turn.
    weights = weights if any(weights) else [1] * len(ends)
    while True:
        for end, weight in zip(ends, weights, strict=True):
            for _ in range(weight):
                try:
                    yield next(end)
                except StopIteration:
                    return


class _Scope:
    """Mutable: variables, from the outermost on, and what a filter sees and has sent."""

    def __init__(
        self, oracle: Oracle, levels: list[dict[str, Value]], routines: dict[str, ast.Routine]
    ) -> None:
        self.oracle = oracle
        self.levels = levels
        #: Functions see the fields of their filter, and nothing of where they are called.
        self.base = len(levels)
        self.routines = routines
        self.given: ast.TypeName | None = None
        self.seen = _Pulled(iter(()))
        self.sent: list[Value] = []
        self.firings = 0
        self.built: _Built | None = None
        self.result: ast.TypeName | None = None

    # --- values of types ---

    def zero(self, type_: ast.TypeName) -> Value:
        if type_.sizes:
            inner = ast.TypeName(type_.name, type_.sizes[1:])
            return [self.zero(inner) for _ in range(int(self.value(type_.sizes[0])))]
        plain: dict[str, Value] = {
            "int": _INT(0), "float": _FLOAT(0), "bit": Bit(0), "boolean": False,
        }  # fmt: skip
        if type_.name == "complex":
            return Complex()
        if type_.name in plain:
            return plain[type_.name]
        struct = self.oracle.structs[type_.name]
        return {f.name: self.zero(f.type) for f in struct.fields}

    def fit(self, value: Value, type_: ast.TypeName) -> Value:
        return fitted(value, self.zero(type_))

    # --- places ---

    def level(self, name: str) -> dict[str, Value]:
        return next(level for level in reversed(self.levels) if name in level)

    def holder(self, target: ast.Expression) -> tuple[Any, Any]:
        """Where something is held, and under which name or number."""
        match target:
            case ast.Name(name):
                return self.level(name), name
            case ast.Item(of, index):
                held = self.value(of, copies=False)
                number = int(whole(self.value(index)))
                assert number >= 0
                return held, number
            case ast.Member(of, name):
                return self.value(of, copies=False), name
        raise AssertionError(target)

    def get(self, target: ast.Expression) -> Value:
        held, at = self.holder(target)
        return getattr(held, at) if isinstance(held, Complex) else held[at]

    def put(self, where: tuple[Any, Any], value: Value) -> None:
        held, at = where
        if isinstance(held, Complex):
            setattr(held, at, single(value))
        else:
            held[at] = fitted(value, held[at])

    # --- expressions ---

    def value(self, expression: Any, *, copies: bool = True) -> Value:
        match expression:
            case ast.Number(value, is_imaginary):
                if is_imaginary:
                    return Complex(_FLOAT(0), _FLOAT(value))
                return whole(value) if isinstance(value, int) else _FLOAT(value)
            case ast.Truth(value) | ast.Quoted(value):
                return value
            case ast.Name("pi") if all("pi" not in level for level in self.levels):
                return _FLOAT(math.pi)
            case ast.Name() | ast.Item() | ast.Member():
                value = self.get(expression)
                return copy.deepcopy(value) if copies else value
            case ast.Unary(operator, operand):
                return self.unary(operator, self.value(operand))
            case ast.Binary("&&", left, right):
                return truth(self.value(left)) and truth(self.value(right))
            case ast.Binary("||", left, right):
                return truth(self.value(left)) or truth(self.value(right))
            case ast.Binary(operator, left, right):
                before = self.value(left)
                return operate(operator, before, self.value(right))
            case ast.Choice(condition, then, otherwise):
                return self.value(then if truth(self.value(condition)) else otherwise)
            case ast.Cast(type_, operand):
                return self.fit(self.value(operand), type_)
            case ast.Listed(elements):
                return [self.value(e) for e in elements]
            case ast.Step(target, operator, is_before):
                where = self.holder(target)
                old = self.get(target)
                new = operate(operator[0], old, _INT(1))
                self.put(where, new)
                return new if is_before else old
            case ast.Set():
                return self.assigned(expression)
            case ast.Invoke(function, arguments):
                return self.call(function, arguments)
        raise AssertionError(expression)

    def assigned(self, assign: ast.Set) -> Value:
        where = self.holder(assign.target)
        if assign.operator:
            before = copy.deepcopy(self.get(assign.target))
            self.put(where, operate(assign.operator, before, self.value(assign.value)))
        else:
            self.put(where, self.value(assign.value))
        held, at = where
        return copy.deepcopy(getattr(held, at) if isinstance(held, Complex) else held[at])

    def unary(self, operator: str, value: Value) -> Value:
        match operator, value:
            case "!", Bit(bit):
                return Bit(1 - bit)
            case "!", _:
                return not truth(value)
            case "~", Bit(bit):
                return Bit(1 - bit)
            case "~", _:
                return whole(~int(whole(value)))
            case "-", Complex(real, imag):
                return Complex(-real, -imag)
            case _ if isinstance(value, _FLOAT):
                return -value
        return whole(-int(whole(value)))

    def call(self, function: str, arguments: Sequence[ast.Expression]) -> Value:
        if function == "pop":
            return self.seen.popleft()
        values = [self.value(a) for a in arguments]
        if function == "peek":
            return copy.deepcopy(self.seen[int(whole(values[0]))])
        if function == "iter":
            return _INT(self.firings)
        if function not in self.routines:
            return _mathematics(function, values)
        routine = self.routines[function]
        own: dict[str, Value] = {}
        levels, result = self.levels, self.result
        self.levels, self.result = [*levels[: self.base], own], routine.type
        for parameter, value in zip(routine.parameters, values, strict=True):
            own[parameter.name] = self.fit(value, parameter.type)
        try:
            self.do(routine.body)
        except _Return as returned:
            return returned.value
        finally:
            self.levels, self.result = levels, result
        return None

    # --- statements ---

    def block(self, statements: Sequence[ast.Statement]) -> None:
        self.levels.append({})
        try:
            for statement in statements:
                self.do(statement)
        finally:
            self.levels.pop()

    def do(self, statement: ast.Statement) -> None:
        match statement:
            case ast.Declare(type_, name, value):
                zero = self.zero(type_)
                held = zero if value is None else fitted(self.value(value), zero)
                self.levels[-1][name] = held
            case ast.Set():
                self.assigned(statement)
            case ast.Do(expression):
                self.value(expression)
            case ast.Push(value):
                item = self.value(value)
                self.sent.append(item if self.given is None else self.fit(item, self.given))
            case ast.Print(value, ends_line):
                text = "" if value is None else self.value(value)
                text = text if isinstance(text, str) else shown(text)
                self.oracle.printed.append(text + "\n" * ends_line)
            case ast.Block(statements):
                self.block(statements)
            case ast.If(condition, then, otherwise):
                chosen = then if truth(self.value(condition)) else otherwise
                if chosen is not None:
                    self.block([chosen])
            case ast.Loop():
                self.loop(statement)
            case ast.Leave(word):
                raise _Break if word == "break" else _Continue
            case ast.Return(value):
                given = None if value is None else self.value(value)
                if self.result is not None and value is not None:
                    given = self.fit(given, self.result)
                raise _Return(given)
            case _:
                self.add(statement)

    def loop(self, loop: ast.Loop) -> None:
        self.levels.append({})
        try:
            for statement in loop.before:
                self.do(statement)
            tests = loop.tests_first
            while not tests or loop.condition is None or truth(self.value(loop.condition)):
                tests = True
                try:
                    self.block([loop.body])
                except _Break:
                    return
                except _Continue:
                    pass
                for statement in loop.after:
                    self.do(statement)
        finally:
            self.levels.pop()

    def add(self, statement: Any) -> None:
        assert self.built is not None
        match statement:
            case ast.AddStream(role, stream):
                made = self.made(stream)
                if role == "add":
                    self.built.children.append(made)
                else:
                    self.built.roles[role] = made
            case ast.Split(role, kind, weights):
                self.built.weights[role] = (kind, [int(self.value(w)) for w in weights])
            case ast.Enqueue(value):
                self.built.enqueued.append(self.value(value))
            case _:
                raise AssertionError(statement)

    def made(self, stream: ast.Instance | ast.Stream) -> Callable[[Items], Items]:
        if isinstance(stream, ast.Stream):
            around = copy.deepcopy(self.levels[1:])
            anonymous = stream
            return lambda items: self.oracle.stream(
                anonymous, [], [{k: v for level in around for k, v in level.items()}], items
            )
        values = [self.value(a) for a in stream.arguments]
        named = stream
        return lambda items: self.oracle.instance(named, values, items)


def truth(value: Value) -> bool:
    return bool(value.value if isinstance(value, Bit) else value)


def fitted(value: Value, like: Value) -> Value:
    """A value as the type that another one is of."""
    match like:
        case bool():
            return truth(value)
        case Bit():
            return Bit(int(whole(value)) & 1)
        case _ if isinstance(like, _INT):
            return whole(value)
        case _ if isinstance(like, _FLOAT):
            return single(value)
        case Complex():
            return copy.copy(value) if isinstance(value, Complex) else Complex(single(value))
        case list():
            return [fitted(v, part) for v, part in zip(value, like, strict=False)] + like[
                len(value) :
            ]
        case dict():
            return {name: fitted(value[name], part) for name, part in like.items()}
    raise AssertionError(like)
