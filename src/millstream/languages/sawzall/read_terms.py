"""Expressions, typed as they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millstream.calculus.scripts import (
    Apply,
    Block,
    Const,
    Convert,
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
    Operate,
    Part,
    Slice,
    Var,
)
from millstream.errors import suggest
from millstream.languages.sawzall import operators
from millstream.languages.sawzall.composites import Pairs, are_alike, count_fault, item_types
from millstream.languages.sawzall.library import conversion_fault, literal_time
from millstream.languages.sawzall.read_types import TypeReader
from millstream.languages.sawzall.scope import (
    COMPOSITE,
    UNKNOWN,
    VOID,
    Constant,
    Entry,
    TableName,
    TableType,
    TypeName,
    an,
    can_be_key,
    is_same,
)
from millstream.languages.sawzall.tokens import RESERVED, Token
from millstream.source import Span
from millstream.values.records.types import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    STRING,
    TIME,
    ArrayOf,
    Field,
    FunctionOf,
    MapOf,
    RecordType,
    TupleOf,
    resolved,
)

#: An expression of which nothing is known, so that nothing more is said about it.
BAD = Const(None, UNKNOWN)
_NEGATED = {"-": "neg", "+": "pos", "~": "~", "!": "!", "not": "!"}


class TermReader(TypeReader):
    """Mutable: reads expressions."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: The indexes that are being read, for `$`: a number for each, and whether it is used.
        self.indexes: list[list[Any]] = []
        self.functions: list[FunctionOf | None] = []
        self.results: list[list[RecordType]] = []
        self.function_count = 0
        self.record_names: set[int] = set()
        #: What `break` and `continue` could leave, innermost last.
        self.loops: list[str] = []

    # --- levels of precedence ---

    def expression(self) -> Expression:
        self.nested()
        left = self.conjunction()
        while self.at("||", "or"):
            left = self.joined(self.advance(), left, self.conjunction())
        self.depth -= 1
        return left

    def conjunction(self) -> Expression:
        left = self.comparison()
        while self.at("&&", "and"):
            left = self.joined(self.advance(), left, self.comparison())
        return left

    def joined(self, operator: Token, left: Expression, right: Expression) -> Expression:
        left, right = self.boolean(left), self.boolean(right)
        span = self.span_of(left, operator).to(self.previous.span)
        if operator.text in ("and", "or"):
            return Operate(operator.text, (left, right), BOOL, span)
        return Logic(operator.text, left, right, span)

    def comparison(self) -> Expression:
        left = self.sum()
        while self.at(*operators.COMPARISONS):
            left = self.binary(self.advance(), left, self.sum())
        return left

    def sum(self) -> Expression:
        left = self.product()
        while self.at(*operators.ADDITIONS):
            left = self.binary(self.advance(), left, self.product())
        return left

    def product(self) -> Expression:
        left = self.factor()
        while self.at(*operators.MULTIPLICATIONS):
            left = self.binary(self.advance(), left, self.factor())
        return left

    def binary(self, operator: Token, left: Expression, right: Expression) -> Expression:
        if left.type == COMPOSITE and right.type != COMPOSITE:
            left = self.fitted(left, right.type) or left
        elif right.type == COMPOSITE:
            left = self.finished(left)
            right = self.fitted(right, left.type) or self.finished(right)
        span = self.span_of(left, operator).to(self.previous.span)
        same = is_same(left.type, right.type)
        type_ = operators.binary(operator.text, left.type, right.type, same=same)
        if isinstance(type_, str):
            self.note(type_, span, self.mixing_hint(left.type, right.type))
            type_ = BOOL if operator.text in operators.COMPARISONS else UNKNOWN
        return Operate(operator.text, (left, right), type_, span)

    def mixing_hint(self, left: RecordType, right: RecordType) -> str | None:
        if {left, right} == {INT, FLOAT}:
            return "convert one of them, such as float(...)"
        if conversion_fault(right, left, ()) is None and left not in (right, VOID):
            return f"convert one of them, such as {left}(...)"
        return None

    def factor(self) -> Expression:
        if self.at(*_NEGATED):
            self.nested()
            operator = self.advance()
            folded = self.negative_literal(operator)
            if folded is not None:
                self.depth -= 1
                return folded
            inner = self.finished(self.factor())
            self.depth -= 1
            type_ = operators.unary(operator.text, inner.type)
            span = operator.span.to(self.previous.span)
            if isinstance(type_, str):
                self.note(type_, span)
                type_ = UNKNOWN
            return Operate(_NEGATED[operator.text], (inner,), type_, span)
        return self.selected(self.operand())

    def negative_literal(self, operator: Token) -> Expression | None:
        token = self.token
        is_number = token.kind == "literal" and token.type == INT and token.text[0] != "'"
        if operator.text != "-" or not is_number or token.value <= 2**63 - 1:
            return None
        self.advance()
        if token.value > 2**63:
            self.note("this number does not fit into 64 bits", token.span)
        return Const(-(2**63), INT, operator.span.to(token.span))

    # --- operands ---

    def operand(self) -> Expression:
        token = self.token
        if token.kind == "literal":
            return self.literal(self.advance())
        if self.accept("("):
            inner = self.expression()
            self.expect(")", "after the expression")
            return inner
        if self.at("{"):
            return self.composite()
        if self.accept("?"):
            return self.inline(token.span)
        if self.accept("$"):
            return self.length(token.span)
        if self.at("function"):
            return self.function_literal(None)
        if self.at("array", "map", "proto", "parsedmessage"):
            return self.conversion(self.type(), token.span)
        if token.kind == "name" and (token.text not in RESERVED):
            return self.named(self.advance())
        if token.text == "else":
            self.fail("there is no `if` that this `else` belongs to")
        is_comment = token.text == "/" and self.peek().text in ("/", "*")
        hint = "a comment begins with #" if is_comment else None
        if token.text == "[":
            hint = "an array is written in braces, as in {1, 2}"
        self.fail(f"expected an expression, got {token}", hint=hint)

    def literal(self, token: Token) -> Expression:
        value, type_ = token.value, token.type
        assert type_ is not None
        if type_ == INT and value > 2**63 - 1:
            # As a pattern of bits, as C's programs write it.
            is_bits = token.text[:2].lower() in ("0x", "0b")
            if not is_bits:
                self.note("this number does not fit into 64 bits", token.span)
            value -= 2**64
        if type_ == TIME and isinstance(value, str):
            read = literal_time(value)
            if isinstance(read, str):
                self.note(read, token.span)
                return BAD
            value = read
        return Const(value, type_, token.span)

    def composite(self) -> Expression:
        start = self.advance().span
        if self.accept(":"):
            self.expect("}", "after `{:`")
            return Make((), COMPOSITE, self.since(start))
        items: list[Expression] = []
        is_map = False
        while not self.at("}"):
            items.append(self.expression())
            if self.at(":") and len(items) > 1 and not is_map:
                self.fail("the items before this one have no keys")
            if self.accept(":"):
                is_map = True
                items.append(self.expression())
            elif is_map:
                self.fail(f"expected `:` and a value, got {self.token}")
            if not self.accept(","):
                break
        self.expect("}", "after the items")
        span = self.since(start)
        made = Make(tuple(items), COMPOSITE, span)
        if not is_map:
            return made
        keys, values = [self.finished(e) for e in items[::2]], items[1::2]
        self.check_pairs(keys, values)
        type_ = MapOf(keys[0].type, self.finished(values[0]).type)
        # The values may still become something else, where a type is wanted.
        return replace(made, type=Pairs(type_.key, type_.value))

    def check_pairs(self, keys: list[Expression], values: list[Expression]) -> None:
        """All keys are of one type, and all values whose types are known are."""
        for what, items in (("keys", keys), ("values", values)):
            known = [i for i in items if i.type not in (COMPOSITE, UNKNOWN)]
            for item in known[1:]:
                if not is_same(item.type, known[0].type):
                    types = f"{known[0].type} and {item.type}"
                    span = self.span_of(item, self.previous)
                    self.note(f"the {what} of a map are of one type, got {types}", span)
                    break

    def inline(self, start: Span) -> Expression:
        """As in `?{ ... result e; }`."""
        self.results.append([])
        body = self.block()
        types = self.results.pop()
        span = self.since(start)
        if not types:
            self.note("nothing here comes to a `result`", span)
        return Inline(body, types[0] if types else UNKNOWN, span)

    def length(self, span: Span) -> Expression:
        if not self.indexes:
            self.note("`$` is a length, and stands inside of an index", span)
            return Const(0, INT, span)
        self.indexes[-1][1] = True
        return Length(self.indexes[-1][0], span)

    def named(self, name: Token) -> Expression:
        entry = self.names.find(name.text)
        match entry:
            case Var():
                return self.variable(entry, name)
            case Constant(value, type_):
                return Const(value, type_, name.span)
            case TypeName():
                return self.type_as_operand(entry, name)
            case TableName(number):
                return self.table_passed(number, name)
            case TableType():
                self.note(f'"{name.text}" is a type of tables', name.span)
                return BAD
        if self.at("("):
            return self.call_by_name(name)
        hint = suggest(name.text, self.names.all())
        if hint is None and self.at("="):
            hint = f"a name is declared first: {name.text} := ..."
        self.unknown("name", name.text, name.span, hint)
        return BAD

    def variable(self, var: Var, name: Token) -> Expression:
        if self.static_from and var.level >= 0 and var.number <= self.static_from[-1]:
            self.note(
                f'"{var.name}" is not static, and what is static cannot look at it', name.span,
                "declare it as static too",
            )  # fmt: skip
        return Get(var, name.span)

    def type_as_operand(self, entry: TypeName, name: Token) -> Expression:
        """A type before what it makes of a value, or before a member of it."""
        member: Entry = entry
        while isinstance(member, TypeName) and self.at("."):
            self.advance()
            part = self.expect_name("a member")
            inner = member.members.get(part.text)
            if inner is None:
                self.note(f'the type has no member "{part.text}"', part.span,
                          suggest(part.text, member.members))  # fmt: skip
                return BAD
            member = inner
        if isinstance(member, Var):
            return self.variable(member, name)
        if isinstance(member, Constant):
            return Const(member.value, member.type, self.since(name.span))
        assert isinstance(member, TypeName)
        if self.at("{") and isinstance(resolved(member.type), FunctionOf):
            return self.function_of_type(member, name, None)
        return self.conversion(member.type, name.span)

    def conversion(self, type_: RecordType, start: Span) -> Expression:
        if self.token.kind == "name":
            hint = f"write {self.token.text}: {type_} = ..."
            self.fail("a variable is declared by its name, then its type", hint=hint)
        self.expect("(", "after a type, around what is converted")
        arguments = self.separated(self.expression, ")")
        self.expect(")", "after what is converted")
        if not arguments:
            self.note(f"expected a value to make {an(type_)} of", self.since(start))
            return BAD
        return self.converted(arguments[0], type_, tuple(arguments[1:]), self.since(start))

    def converted(
        self, value: Expression, type_: RecordType, parameters: tuple[Expression, ...], span: Span
    ) -> Expression:
        if value.type == COMPOSITE or isinstance(value.type, Pairs):
            made = self.fitted(value, type_)
            if made is not None:
                return made
            types = item_types(value, type_)
            is_mixed = isinstance(resolved(type_), ArrayOf) and not are_alike(value)
            if isinstance(value, Make) and types is not None and not (parameters or is_mixed):
                pairs = zip(value.items, types, strict=True)
                items = tuple(self.converted(i, t, (), i.span or span) for i, t in pairs)
                return replace(value, items=items, type=type_)
            wrong = count_fault(value, type_)
            if wrong is not None:
                self.note(wrong, span, f"it is {type_}")
                return Const(None, type_, span)
            value = self.finished(value)
        if UNKNOWN in (value.type, type_):
            return Const(None, type_, span)
        if self.is_record(value) and isinstance(resolved(type_), TupleOf):
            if not resolved(type_).is_proto:  # type: ignore[union-attr]
                return self.row(type_, span)
        parameters = tuple(self.finished(p) for p in parameters)
        if not parameters and is_same(value.type, type_):
            return value
        fault = conversion_fault(value.type, type_, tuple(p.type for p in parameters))
        if fault is not None:
            self.note(fault, span)
            return Const(None, type_, span)
        return Convert(value, parameters, type_, span)

    def is_record(self, value: Expression) -> bool:
        return isinstance(value, Get) and value.var.number in self.record_names

    def row(self, type_: RecordType, span: Span) -> Expression:
        """The record as a tuple, by the names of its columns."""
        fields = resolved(type_).fields  # type: ignore[union-attr]
        if any(f.name is None for f in fields):
            self.note("a record becomes a tuple by names: every field needs one", span)
        return Intrinsic("row", (), type_, span)

    # --- what follows an operand ---

    def selected(self, base: Expression) -> Expression:
        while self.at(".", "[", "("):
            base = self.finished(base)
            if self.accept("."):
                base = self.part(base)
            elif self.at("["):
                base = self.indexed(base)
            else:
                base = self.applied(base)
        return base

    def part(self, base: Expression) -> Expression:
        name = self.advance()
        type_ = resolved(base.type)
        if type_ == UNKNOWN:
            return BAD
        if not isinstance(type_, TupleOf):
            hint = None
            if type_ == BYTES:
                hint = f"a row becomes a tuple by its type: r: {{{name.text}: string}} = input;"
            self.note(f"{an(base.type)} has no fields", self.span_of(base, name), hint)
            return BAD
        names = [f.name for f in type_.fields]
        if name.text not in names:
            known = [n for n in names if n is not None]
            hint = suggest(name.text, known) or f"there are: {', '.join(known) or 'none'}"
            self.note(f'there is no field "{name.text}"', name.span, hint)
            return BAD
        position = names.index(name.text)
        span = self.span_of(base, name).to(name.span)
        return Part(base, position, type_.fields[position].type, span)

    def indexed(self, base: Expression) -> Expression:
        self.advance()
        self.variables += 1
        self.indexes.append([self.variables, False])
        low = self.expression()
        high = self.expression() if self.accept(":") else None
        self.expect("]", "after an index")
        number, is_used = self.indexes.pop()
        span = self.since(self.span_of(base, self.previous))
        length = number if is_used else None
        type_ = resolved(base.type)
        if type_ == UNKNOWN:
            return BAD
        if high is not None:
            if not isinstance(type_, ArrayOf) and type_ not in (STRING, BYTES):
                self.note(f"{an(base.type)} has no slices", span)
                return BAD
            return Slice(base, self.integer(low), self.integer(high), length, span)
        if isinstance(type_, MapOf):
            return Index(base, self.wanted(low, type_.key, "the key"), type_.value, length, span)
        if isinstance(type_, ArrayOf):
            return Index(base, self.integer(low), type_.element, length, span)
        if type_ in (STRING, BYTES):
            return Index(base, self.integer(low), INT, length, span)
        hint = "a field is taken by its name, as in t.a" if isinstance(type_, TupleOf) else None
        self.note(f"{an(base.type)} cannot be indexed", span, hint)
        return BAD

    def applied(self, function: Expression) -> Expression:
        start = self.span_of(function, self.token)
        self.advance()
        arguments = self.separated(self.expression, ")")
        self.expect(")", "after the arguments")
        span = self.since(start)
        type_ = resolved(function.type)
        if type_ == UNKNOWN:
            return BAD
        if not isinstance(type_, FunctionOf):
            self.note(f"{an(function.type)} cannot be called", span)
            return BAD
        if len(arguments) != len(type_.params):
            wanted = f"{len(type_.params)} argument{'s' * (len(type_.params) != 1)}"
            self.note(f"expected {wanted}, got {len(arguments)}", span, f"it is {an(type_)}")
            return Const(None, type_.result or VOID, span)
        pairs = zip(arguments, type_.params, strict=True)
        given = tuple(self.argument(a, t) for a, t in pairs)
        return Apply(function, given, type_.result or VOID, span)

    def argument(self, value: Expression, type_: RecordType) -> Expression:
        """The record may be handed over as it is wanted."""
        if self.is_record(value) and not is_same(value.type, type_):
            return self.converted(value, type_, (), self.span_of(value, self.previous))
        return self.wanted(value, type_, "the argument")

    # --- functions ---

    def function_literal(self, name: Token | None, var: Var | None = None) -> Expression:
        start = self.expect("function", "").span
        names, type_ = self.function_type()
        if not self.at("{"):
            self.fail(f"expected the body of the function, got {self.token}")
        return self.function_body(names, type_, start, name)

    def function_of_type(self, of: TypeName, start: Token, name: Token | None) -> Expression:
        """A function whose parameters have the names that its type gives them."""
        type_ = resolved(of.type)
        assert isinstance(type_, FunctionOf)
        if len(of.parameters) != len(type_.params):
            self.fail("name the parameters: write function(...) { ... }", start.span)
        return self.function_body(list(of.parameters), type_, start.span, name)

    def function_body(
        self, names: list[Token], type_: FunctionOf, start: Span, name: Token | None
    ) -> Expression:
        self.level += 1
        self.names.levels.append({})
        indexes, self.indexes = self.indexes, []
        results, self.results = self.results, []
        loops, self.loops = self.loops, []
        parameters = tuple(
            self.new_var(n.text, t) for n, t in zip(names, type_.params, strict=True)
        )
        for token, var in zip(names, parameters, strict=True):
            self.declare(token, var)
        self.functions.append(type_)
        body = self.block()
        self.functions.pop()
        self.names.levels.pop()
        self.indexes, self.results, self.loops = indexes, results, loops
        level = self.level
        self.level -= 1
        self.function_count += 1
        shown = None if name is None else name.text
        function = Function(self.function_count, shown, parameters, type_, level, body)
        return Lambda(function, self.since(start))

    # --- types of expressions ---

    def finished(self, value: Expression) -> Expression:
        """A composite whose type nothing around it tells: an array if it can be, else a tuple."""
        if not isinstance(value, Make):
            return value
        if isinstance(value.type, Pairs):
            return self.fitted(value, MapOf(value.type.key, value.type.value)) or value
        if value.type != COMPOSITE:
            return value
        items = tuple(self.finished(i) for i in value.items)
        if items and all(is_same(i.type, items[0].type) for i in items):
            return replace(value, items=items, type=ArrayOf(items[0].type))
        return replace(value, items=items, type=TupleOf(tuple(Field(None, i.type) for i in items)))

    def fitted(self, value: Expression, type_: RecordType) -> Expression | None:
        """The expression as one of a type, without any conversion; None if it is none."""
        wanted = resolved(type_)
        is_pairs = isinstance(value.type, Pairs)
        if not isinstance(value, Make) or not (is_pairs or value.type == COMPOSITE):
            return value if is_same(value.type, type_) else None
        types = item_types(value, type_)
        if types is None and isinstance(wanted, TupleOf) and wanted.is_proto and not value.items:
            # A message with nothing in it: all fields have their defaults.
            return Convert(Const(b"", BYTES), (), type_, value.span)
        if types is None and wanted in (STRING, BYTES) and not is_pairs:
            types = [INT] * len(value.items)
        if types is None:
            return None
        items: list[Expression] = []
        for item, wanted_type in zip(value.items, types, strict=True):
            fits = self.fitted(item, wanted_type)
            if fits is None:
                return None
            items.append(fits)
        return replace(value, items=tuple(items), type=type_)

    def wanted(self, value: Expression, type_: RecordType, what: str) -> Expression:
        """The expression as one of a type, or a fault."""
        fits = self.fitted(value, type_)
        if fits is not None:
            return fits
        value = self.finished(value)
        got = "nothing" if value.type == VOID else str(value.type)
        hint = None
        if conversion_fault(value.type, type_, ()) is None and value.type != VOID:
            hint = f"convert it: {type_}(...)"
        span = self.span_of(value, self.previous)
        self.note(f"expected {what} to be of type {type_}, got {got}", span, hint)
        return Const(None, type_, span)

    def boolean(self, value: Expression) -> Expression:
        return self.wanted(value, BOOL, "the condition")

    def integer(self, value: Expression) -> Expression:
        return self.wanted(value, INT, "the index")

    def span_of(self, value: Expression, otherwise: Token) -> Span:
        return value.span or otherwise.span

    # --- what other parts give ---

    def block(self) -> Block:
        raise NotImplementedError

    def call_by_name(self, name: Token) -> Expression:
        raise NotImplementedError

    def table_passed(self, number: int, name: Token) -> Expression:
        raise NotImplementedError


__all__ = ["BAD", "TermReader", "can_be_key"]
