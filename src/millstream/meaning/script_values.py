"""What the expressions of scripts mean, with a frame for every call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.scripts import (
    Apply,
    Block,
    Const,
    Convert,
    Defined,
    Expression,
    Function,
    Get,
    Index,
    Inline,
    Intrinsic,
    Lambda,
    Length,
    Logic,
    Make,
    New,
    Operate,
    Part,
    Place,
    Present,
    Saw,
    Slice,
    Var,
)
from millstream.values.records import operators
from millstream.values.records.running import (
    MOST_CALLS,
    NO_RETURN,
    Runtime,
)
from millstream.values.records.types import resolved
from millstream.values.undefined import Undefined


@dataclass
class Frame:
    """Mutable: the variables of one call, and the frame around it."""

    values: dict[int, Any] = field(default_factory=dict)
    outer: Frame | None = None
    level: int = 0


class Left(Exception):
    """A loop, a function or a `?{` is left."""

    def __init__(self, word: str, value: Any = None) -> None:
        self.word = word
        self.value = value


class Endless(Exception):
    """Calls are nested too deeply, or there are too many."""


class Values(ABC):
    """Mutable: gives expressions their values; what runs statements says what variables hold."""

    runtime: Runtime
    row: Mapping[str, Any]
    calls: int
    calls_left: int

    def __init__(self) -> None:
        self.lengths: dict[int, int] = {}
        self.operations: dict[int, Callable[..., Any]] = {}

    @abstractmethod
    def get(self, var: Var, frame: Frame) -> Any:
        """What a variable holds, seen from a frame."""

    @abstractmethod
    def assign(self, place: Place, value: Any, frame: Frame) -> None:
        """Let a place hold a value."""

    @abstractmethod
    def body(self, block: Block, frame: Frame) -> None:
        """Run statements."""

    def value(self, node: Expression, frame: Frame) -> Any:
        evaluate = _VALUES[type(node)]
        return evaluate(self, node, frame)

    def operate(self, node: Operate, frame: Frame) -> Any:
        operation = self.operations.get(id(node))
        if operation is None:
            types = tuple(a.type for a in node.arguments)
            operation = self.operations[id(node)] = operators.operation(node.operator, types)
        return operation(*[self.value(a, frame) for a in node.arguments])

    def logic(self, node: Logic, frame: Frame) -> Any:
        left = self.value(node.left, frame)
        if left == (node.operator == "||"):
            return left
        return self.value(node.right, frame)

    def intrinsic(self, node: Intrinsic, frame: Frame) -> Any:
        if node.name == "row":
            return self.runtime.row(node.type, self.row)
        arguments = [self.value(a, frame) for a in node.arguments]
        function = self.runtime.intrinsic(node.name, tuple(a.type for a in node.arguments))
        return function(*arguments)

    def convert(self, node: Convert, frame: Frame) -> Any:
        value = self.value(node.value, frame)
        parameters = [self.value(p, frame) for p in node.parameters]
        types = tuple(p.type for p in node.parameters)
        return self.runtime.conversion(node.value.type, node.type, types)(value, *parameters)

    def new(self, node: New, frame: Frame) -> Any:
        count = self.value(node.count, frame)
        return operators.repeated(resolved(node.type), count, self.value(node.item, frame))

    def index(self, node: Index, frame: Frame) -> Any:
        held = self.value(node.base, frame)
        if node.number is not None:
            self.lengths[node.number] = len(held)
        return operators.item(resolved(node.base.type), held, self.value(node.index, frame))

    def slice(self, node: Slice, frame: Frame) -> Any:
        held = self.value(node.base, frame)
        if node.number is not None:
            self.lengths[node.number] = len(held)
        return operators.sliced(held, self.value(node.low, frame), self.value(node.high, frame))

    def part(self, node: Part, frame: Frame) -> Any:
        return self.value(node.base, frame)[node.position]

    def make(self, node: Make, frame: Frame) -> Any:
        items = tuple(self.value(i, frame) for i in node.items)
        return operators.made(resolved(node.type), items)

    def closure(self, node: Lambda, frame: Frame) -> Any:
        return Closure(self, node.function, frame)

    def apply(self, node: Apply, frame: Frame) -> Any:
        function = self.value(node.function, frame)
        return function(*[self.value(a, frame) for a in node.arguments])

    def inline(self, node: Inline, frame: Frame) -> Any:
        try:
            self.body(node.body, frame)
        except Left as left:
            if left.word != "result":
                raise
            return left.value
        raise Undefined("this came to no result")

    def defined(self, node: Defined, frame: Frame) -> bool:
        try:
            self.value(node.value, frame)
        except Undefined:
            return False
        return True

    def present(self, node: Present, frame: Frame) -> bool:
        return self.runtime.is_present(self.value(node.base, frame), node.position)

    def saw(self, node: Saw, frame: Frame) -> Any:
        text = self.value(node.text, frame)
        count = None if node.count is None else self.value(node.count, frame)
        cuts = tuple((self.value(c.pattern, frame), c.is_skipped, c.is_submatch) for c in node.cuts)
        befores = tuple(before for _, before in node.rests)
        pieces, rests = self.runtime.cut(text, cuts, count, befores)
        for (place, _), rest in zip(node.rests, rests, strict=True):
            self.assign(place, rest, frame)
        return pieces


@dataclass(frozen=True, eq=False)
class Closure:
    """A function and the frame around it."""

    machine: Values
    function: Function
    frame: Frame

    @property
    def __name__(self) -> str:
        return self.function.name or ""

    def __call__(self, *arguments: Any) -> Any:
        machine, function = self.machine, self.function
        if machine.calls >= MOST_CALLS or machine.calls_left <= 0:
            raise Endless
        machine.calls += 1
        machine.calls_left -= 1
        pairs = zip(function.parameters, arguments, strict=True)
        frame = Frame({p.number: a for p, a in pairs}, self.frame, function.level)
        returned: Any = None
        try:
            machine.body(function.body, frame)
            if function.type.result is not None:  # type: ignore[union-attr]
                returned = Undefined(NO_RETURN)
        except Left as left:
            returned = left.value
        finally:
            machine.calls -= 1
        if isinstance(returned, Undefined):
            raise returned
        return returned


def _get(machine: Values, node: Get, frame: Frame) -> Any:
    return machine.get(node.var, frame)


def _const(machine: Values, node: Const, frame: Frame) -> Any:
    return node.value


def _length(machine: Values, node: Length, frame: Frame) -> Any:
    return machine.lengths[node.number]


_VALUES: dict[type, Callable[[Values, Any, Frame], Any]] = {
    Const: _const, Get: _get, Length: _length, Operate: Values.operate, Logic: Values.logic,
    Intrinsic: Values.intrinsic, Convert: Values.convert, New: Values.new, Index: Values.index,
    Slice: Values.slice, Part: Values.part, Make: Values.make, Lambda: Values.closure,
    Apply: Values.apply, Inline: Values.inline, Defined: Values.defined,
    Present: Values.present, Saw: Values.saw,
}  # fmt: skip
