"""What a row kernel computes, as a graph of values.

Terms name columns; nodes *are* values. A column that several operators pass on is one
node, so that fused operators share what they compute, and no term is copied into another.
Nodes are compared by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.calculus.terms import Call, Column, Literal, Read, Term, VariableField
from millstream.calculus.text import render_term
from millstream.calculus.types import TIME_COLUMN, Kind, Type, Value
from millstream.kernels.loop.operations import fault_messages
from millstream.kernels.loop.text_functions import FAULTS
from millstream.values.core.table import SCALARS


class UnsupportedError(Exception):
    """The operators cannot be compiled together; the message says why."""


TIME_NUMBER = -1


@dataclass(eq=False, slots=True)
class Source:
    """A column of the rows that enter, by number, or their time."""

    input: int
    column: int
    type: Type

    @property
    def is_time(self) -> bool:
        return self.column == TIME_NUMBER


@dataclass(eq=False, slots=True)
class Constant:
    value: Value
    type: Type


@dataclass(eq=False, slots=True)
class StateRead:
    """A field of a variable as a fold has found it."""

    variable: str
    field: str
    type: Type


@dataclass(eq=False, slots=True)
class Apply:
    """A call on rows of an input. `bit` is where its first fault stands in its term.

    `is_settled`: it is a whole term that an operator has evaluated, so that its faults
    are counted there and nowhere else.
    """

    function: str
    args: tuple[Node, ...]
    type: Type
    input: int
    bit: int
    can_fail: bool
    is_row_only: bool
    is_settled: bool = False

    @property
    def touches_text(self) -> bool:
        return any(n.type.kind is Kind.TEXT for n in (self, *self.args))

    @property
    def is_before_loop(self) -> bool:
        """Numba never sees strings: this is computed on whole columns."""
        return self.is_row_only and self.touches_text


Node = Source | Constant | StateRead | Apply


def is_row_only(node: Node) -> bool:
    """Can it be computed without looking at state?"""
    return node.is_row_only if isinstance(node, Apply) else not isinstance(node, StateRead)


_PLACES = 61  # bits 61 and 62 are for what has no place of its own; 63 is the sign


@dataclass(eq=False, slots=True)
class Root:
    """A whole term: the faults that may arise in it, one per bit.

    A term with more places than bits has the last two for all the others.
    """

    term: Term
    base: int
    places: list[tuple[str, Term]] = field(default_factory=list)

    def bit_for(self, messages: tuple[str, ...], term: Term) -> int:
        if not messages:
            return 0
        if len(self.places) + len(messages) > _PLACES:
            self.places += [("a fault", self.term)] * (_PLACES + 2 - len(self.places))
            return _PLACES
        self.places += [(m, term) for m in messages]
        return len(self.places) - len(messages)

    def label(self, bit: int) -> str:
        message, term = self.places[bit]
        return f"{message} in {render_term(term)}"


def messages_of(call: Call) -> tuple[str, ...]:
    """What can go wrong in a call."""
    types = tuple(a.type for a in call.args)
    on_text = FAULTS.get((call.function, types[0].kind)) if types else None
    if on_text is not None:
        return () if call.function == "substring" and len(types) == 2 else on_text
    return fault_messages(call.function, types, call.type)


@dataclass(frozen=True, slots=True)
class Names:
    """What the names in a term stand for."""

    time: Source
    columns: dict[str, Node]
    fields: dict[tuple[str, str], Node] = field(default_factory=dict)

    def column(self, name: str) -> Node:
        return self.time if name == TIME_COLUMN else self.columns[name]


def node_of(term: Term, names: Names, root: Root) -> Node:
    """The node of a term, with a bit for every fault that may arise in it."""
    match term:
        case Literal(value, type_):
            return Constant(value, type_)
        case Column(name):
            return names.column(name)
        case VariableField(variable, name):
            if (variable, name) not in names.fields:
                raise UnsupportedError(f"${variable}.{name} is read outside a Fold")
            return names.fields[variable, name]
        case Read():
            raise UnsupportedError("only procedures read places")
        case Call(function, (arg,)) if function == term.type.kind.value == arg.type.kind.value:
            return node_of(arg, names, root)  # a cast to what it is
        case Call():
            return _apply(term, names, root)


def _apply(call: Call, names: Names, root: Root) -> Apply:
    args = tuple(node_of(a, names, root) for a in call.args)
    messages = messages_of(call)
    node = Apply(
        call.function,
        args,
        call.type,
        names.time.input,
        bit=root.bit_for(messages, call),
        can_fail=bool(messages) or any(fails(a) for a in args),
        is_row_only=all(map(is_row_only, args)),
    )
    if node.touches_text and not node.is_row_only and not SCALARS[call.function].on_codes:
        raise UnsupportedError(
            f'"{call.function}" is applied to text that depends on a variable: {render_term(call)}'
        )
    return node


def fails(node: Node) -> bool:
    """Can evaluating it here give faults that were not counted elsewhere?"""
    return isinstance(node, Apply) and node.can_fail and not node.is_settled
