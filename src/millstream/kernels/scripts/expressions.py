"""Expressions of a script as expressions of Python."""

from __future__ import annotations

from typing import Any

from millstream.calculus.scripts import (
    Apply,
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
    Present,
    Saw,
    Script,
    Slice,
    Step,
    Var,
)
from millstream.kernels.scripts.bounds import bounds_of, exact_bounds, fits
from millstream.kernels.scripts.runtime import Library
from millstream.values.records import operators
from millstream.values.records import types as records
from millstream.values.records.types import (
    ArrayOf,
    Basic,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
)

_LEAST, _MOST, _MASK = -(2**63), 2**63 - 1, 2**64 - 1
_SIGNED = (records.INT, records.TIME)
_UNSIGNED = (records.UINT, records.FINGERPRINT)
_SORTED_AS_THEY_ARE = (*_SIGNED, *_UNSIGNED, records.STRING, records.BYTES)
_COMPARED = ("==", "!=", "<", "<=", ">", ">=")
#: What Python's comparisons mean for values is what they mean for ours.
_BITS = ("&", "|", "^")


class NotGenerated(Exception):
    """A script cannot become a function; the message says why."""


class ExpressionWriter:
    """Mutable: constants so far, and numbers of temporaries."""

    held: frozenset[int]

    def __init__(self, script: Script, columns: tuple[str, ...]) -> None:
        self.script = script
        self.columns = columns
        self.library = Library(script)
        self.names: dict[str, Any] = {}
        self.temporaries = 0
        self.inlines = 0
        #: Variables that are not negative here.
        self.naturals: frozenset[int] = frozenset()

    # --- names ---

    def temporary(self) -> str:
        self.temporaries += 1
        return f"t{self.temporaries}"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def var(self, var: Var) -> str:
        return f"{'s' if var.level < 0 else 'v'}{var.number}"

    def kept(self, var: Var, value: str) -> str:
        """A value as a variable holds it."""
        if var.number not in self.held:
            return value
        return f"dict({value})" if isinstance(resolved(var.type), MapOf) else f"list({value})"

    def raw(self, node: Expression) -> str:
        """A value to look into, but not to keep: nothing is copied."""
        return self.var(node.var) if isinstance(node, Get) else self.value(node)

    def is_natural(self, node: Expression) -> bool:
        """Whether an integer is not negative."""
        return bounds_of(node, self.naturals)[0] >= 0

    # --- what is sure to have a value ---

    def is_sure(self, node: Expression) -> bool:
        match node:
            case Const() | Lambda() | Length():
                return True
            case Get(var):
                return var.number in self.sure
            case Operate(operator, arguments):
                divides = operator in ("/", "%") and not _is_above_zero(arguments[1])
                may_fail = divides or resolved(node.type) in _JOINED
                return not may_fail and all(map(self.is_sure, arguments))
            case Logic(_, left, right):
                return self.is_sure(left) and self.is_sure(right)
            case Make(items, type_):
                is_plain = isinstance(resolved(type_), Basic)
                return not is_plain and all(map(self.is_sure, items))
            case Part(base):
                return self.is_sure(base)
            case Slice(base, low, high):
                return all(map(self.is_sure, (base, low, high)))
            case Intrinsic("len", (value,)):
                return self.is_sure(value)
            case Defined() | Present():
                return True
            case _:
                return False

    @property
    def sure(self) -> frozenset[int]:
        return self.library.sure(self.is_sure)

    # --- expressions ---

    def value(self, node: Expression) -> str:
        written: str = getattr(self, f"of_{type(node).__name__.lower()}")(node)
        return written

    def of_const(self, node: Const) -> str:
        if isinstance(node.value, bool) or (isinstance(node.value, int) and node.value >= 0):
            return repr(node.value)
        return self.constant(node.value)

    def of_get(self, node: Get) -> str:
        name = self.var(node.var)
        if node.var.number not in self.held:
            return name
        return f"dict({name})" if isinstance(resolved(node.type), MapOf) else f"tuple({name})"

    def of_length(self, node: Length) -> str:
        return f"len(d{node.number})"

    def of_operate(self, node: Operate) -> str:
        operator = node.operator
        arguments = [self.value(a) for a in node.arguments]
        types = tuple(resolved(a.type) for a in node.arguments)
        if operator in _COMPARED:
            return f"({arguments[0]} {operator} {arguments[1]})"
        if operator == "!":
            return f"(not {arguments[0]})"
        if operator in ("and", "or"):
            return f"({arguments[0]} {'&' if operator == 'and' else '|'} {arguments[1]})"
        if operator == "pos":
            return arguments[0]
        kind = resolved(node.type)
        if operator in _BITS:
            return f"({arguments[0]} {operator} {arguments[1]})"
        if kind == records.FLOAT and operator in ("+", "-", "*"):
            return f"({arguments[0]} {operator} {arguments[1]})"
        if kind == records.FLOAT and operator == "neg":
            return f"(-{arguments[0]})"
        if operator in ("+", "-", "*") and kind in _SIGNED:
            made = f"{arguments[0]} {operator} {arguments[1]}"
            if kind == records.INT and fits(exact_bounds(node, self.naturals)):
                return f"({made})"
            t = self.temporary()
            return f"({t} if {_LEAST} <= ({t} := {made}) <= {_MOST} else wrapped({t}))"
        if operator in ("+", "-", "*") and kind == records.UINT:
            return f"(({arguments[0]} {operator} {arguments[1]}) & {_MASK})"
        if operator in ("/", "%") and _is_above_zero(node.arguments[1]) and kind == records.INT:
            rest = f"{'//' if operator == '/' else '%'} {arguments[1]}"
            if self.is_natural(node.arguments[0]):
                return f"({arguments[0]} {rest})"
            t = self.temporary()
            return f"({t} {rest} if ({t} := {arguments[0]}) >= 0 else -(-{t} {rest}))"
        if operator == "+" and isinstance(kind, ArrayOf):
            t = self.temporary()
            made = f"({t} := {arguments[0]} + {arguments[1]})"
            return f"({t} if len({made}) <= {operators.MOST_ITEMS} else too_many())"
        function = operators.operation(operator, types)
        return f"{self.constant(function)}({', '.join(arguments)})"

    def of_logic(self, node: Logic) -> str:
        word = "and" if node.operator == "&&" else "or"
        return f"({self.value(node.left)} {word} {self.value(node.right)})"

    def of_intrinsic(self, node: Intrinsic) -> str:
        first = node.arguments[0] if node.arguments else None
        match node.name:
            case "row":
                return self.row(node)
            case "lowercase" | "uppercase" if first is not None:
                return self.recased(node.name, self.value(first))
            case "len" if first is not None:
                return f"len({self.raw(first)})"
            case "sort" if first is not None and len(node.arguments) == 1:
                kind = resolved(first.type)
                if isinstance(kind, ArrayOf) and resolved(kind.element) in _SORTED_AS_THEY_ARE:
                    return f"tuple(sorted({self.raw(first)}))"
            case "haskey" if first is not None:
                return f"({self.value(node.arguments[1])} in {self.raw(first)})"
            case "lookup" if first is not None:
                key, otherwise = (self.value(a) for a in node.arguments[1:])
                return f"{self.raw(first)}.get({key}, {otherwise})"
            case "match" | "matchstrs" if isinstance(first, Const):
                matcher = self.library.matcher(node.name, first.value)
                if matcher is not None:
                    return f"{self.constant(matcher)}({self.value(node.arguments[1])})"
        function = self.library.intrinsic(node)
        is_map = first is not None and isinstance(resolved(first.type), MapOf)
        arguments = [self.value(a) for a in node.arguments]
        if first is not None and is_map:
            arguments[0] = self.raw(first)
        return f"{self.constant(function)}({', '.join(arguments)})"

    def recased(self, name: str, text: str) -> str:
        """Of ASCII at once, of other texts by the library."""
        t = self.temporary()
        slow = self.constant(self.library.runtime.intrinsic(name, (records.STRING,)))
        quick = f"{t}.{name.removesuffix('case')}()"
        return f"({quick} if ({t} := {text}).isascii() else {slow}({t}))"

    def row(self, node: Intrinsic) -> str:
        """The record as a tuple, from the columns of its row."""
        type_ = resolved(node.type)
        assert isinstance(type_, TupleOf)
        parts = []
        for f in type_.fields:
            place = self.columns.index(f.name or "")
            missing = self.constant(f.name)
            kind = resolved(f.type)
            cell = f"row[{place}]"
            if kind in _UNSIGNED:
                read = f"({cell} & {_MASK})"
                parts.append(f"({read} if {cell} is not None else no_column({missing}))")
                continue
            read = f"{cell}.encode()" if kind == records.BYTES else cell
            parts.append(f"({read} if {cell} is not None else no_column({missing}))")
        return f"({', '.join(parts)},)"

    def of_convert(self, node: Convert) -> str:
        function = self.constant(self.library.conversion(node))
        return f"{function}({', '.join(map(self.value, (node.value, *node.parameters)))})"

    def of_new(self, node: New) -> str:
        type_ = self.constant(resolved(node.type))
        count, item = self.value(node.count), self.value(node.item)
        if not isinstance(resolved(node.type), ArrayOf) or not isinstance(node.item, Const):
            return f"repeated({type_}, {count}, {item})"
        t = self.temporary()
        careful = f"repeated({type_}, {t}, {item})"
        return (
            f"(({item},) * {t} if 0 <= ({t} := {count}) <= {operators.MOST_ITEMS} else {careful})"
        )

    def of_index(self, node: Index) -> str:
        base = self.based(node.base, node.number)
        type_ = resolved(node.base.type)
        if isinstance(type_, MapOf):
            return f"{base}[{self.value(node.index)}]"
        element = f"{base}[{self.at(node.index)}]"
        return f"ord({element})" if type_ == records.STRING else element

    def based(self, base: Expression, number: int | None) -> str:
        """What is looked into, under a name of its own if its length is asked for."""
        text = self.raw(base)
        return text if number is None else f"(d{number} := {text})"

    def at(self, index: Expression) -> str:
        text = self.value(index)
        if isinstance(index, Const):
            return text if index.value >= 0 else "OUT"
        if self.is_natural(index):
            return text
        if isinstance(index, Get):
            return f"{text} if {text} >= 0 else OUT"
        t = self.temporary()
        return f"{t} if ({t} := {text}) >= 0 else OUT"

    def of_slice(self, node: Slice) -> str:
        base = self.based(node.base, node.number)
        low, high = self.value(node.low), self.value(node.high)
        is_held = isinstance(node.base, Get) and node.base.var.number in self.held
        made = f"sliced({base}, {low}, {high})"
        return f"tuple({made})" if is_held else made

    def of_part(self, node: Part) -> str:
        return f"{self.raw(node.base)}[{node.position}]"

    def of_make(self, node: Make) -> str:
        items = list(map(self.value, node.items))
        match resolved(node.type):
            case MapOf():
                pairs = zip(items[::2], items[1::2], strict=True)
                return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
            case ArrayOf() | TupleOf():
                return "(" + "".join(f"{i}, " for i in items) + ")"
            case type_:
                whole = "".join(f"{i}, " for i in items)
                return f"made({self.constant(type_)}, ({whole}))"

    def of_lambda(self, node: Lambda) -> str:
        return self.function(node.function)

    def of_apply(self, node: Apply) -> str:
        called = f"{self.raw(node.function)}({', '.join(map(self.value, node.arguments))})"
        if node.type == _VOID:
            return called
        t = self.temporary()
        return f"({t} if ({t} := {called}).__class__ is not Nothing else absent({t}))"

    def of_inline(self, node: Inline) -> str:
        return self.inline(node)

    def of_defined(self, node: Defined) -> str:
        if self.is_sure(node.value):
            return "True"
        match node.value:
            case Index(base, index, number=None) if self.is_sure(base) and self.is_sure(index):
                if isinstance(resolved(base.type), MapOf):
                    return f"({self.value(index)} in {self.raw(base)})"
                return f"(0 <= {self.value(index)} < len({self.raw(base)}))"
        return f"defined(lambda: {self.value(node.value)})"

    def of_present(self, node: Present) -> str:
        return f"is_present({self.raw(node.base)}, {node.position})"

    def of_saw(self, node: Saw) -> str:
        text = self.value(node.text)
        count = "None" if node.count is None else self.value(node.count)
        if not node.rests and all(isinstance(c.pattern, Const) for c in node.cuts):
            return f"{self.constant(self.library.saw(node))}({count}, {text})"
        cuts = "".join(
            f"({self.value(c.pattern)}, {c.is_skipped}, {c.is_submatch}), " for c in node.cuts
        )
        befores = "".join(f"{before}, " for _, before in node.rests)
        made = f"cut({text}, ({cuts}), {count}, ({befores}))"
        if not node.rests:
            return f"{made}[0]"
        t = self.temporary()
        kept = []
        for number, (place, _) in enumerate(node.rests):
            if place.path or place.var.number in self.held or place.var.level < 0:
                raise NotGenerated("the rest of a text goes to a part of a variable")
            kept.append(f"({self.var(place.var)} := {t}[1][{number}])")
        return f"(({t} := {made}), {', '.join(kept)})[0][0]"

    # --- parts of variables ---

    def step(self, step: Step, base: str) -> str:
        """The index of a step, worked out once."""
        if step.position is not None:
            return str(step.position)
        assert step.index is not None
        if step.number is not None:
            self.line(f"d{step.number} = {base}")
        name = self.temporary()
        self.line(f"{name} = {self.value(step.index)}")
        if step.high is None:
            return name
        high = self.temporary()
        self.line(f"{high} = {self.value(step.high)}")
        return f"{name}, {high}"

    def part_of(self, step: Step, base: str, index: str) -> str:
        if step.position is not None:
            return f"{base}[{index}]"
        return f"item({self.constant(resolved(step.inside))}, {base}, {index})"

    def changed(self, step: Step, base: str, index: str, new: str) -> str:
        if step.position is not None:
            return f"with_part({base}, {index}, {new})"
        type_ = self.constant(resolved(step.inside))
        if step.high is not None:
            return f"with_slice({type_}, {base}, {index}, {new})"
        return f"with_item({type_}, {base}, {index}, {new})"

    # --- what the writer of statements gives ---

    def line(self, text: str) -> None:
        raise NotImplementedError

    def function(self, function: Function) -> str:
        raise NotImplementedError

    def inline(self, inline: Inline) -> str:
        raise NotImplementedError


_JOINED: tuple[RecordType, ...] = (records.STRING, records.BYTES)
_VOID = Basic("void")


def _is_above_zero(node: Expression) -> bool:
    return isinstance(node, Const) and isinstance(node.value, int) and node.value > 0
