"""Expressions and types: from tokens to our tree.

They are C's, but for two levels: `<<` and `>>` bind like `*`, and `&`, `|`, `^` share one
level, looser than `==`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from millstream.calculus.cursor import Cursor
from millstream.languages.streamit.ast import (
    Binary,
    Cast,
    Choice,
    Expression,
    Invoke,
    Item,
    Listed,
    Member,
    Name,
    Number,
    Quoted,
    Set,
    Step,
    Truth,
    TypeName,
    Unary,
)
from millstream.languages.streamit.tokens import PLAIN_TYPES, REFUSED, REMARKS, RESERVED
from millstream.source import Span

#: From the loosest level to the tightest.
_LEVELS: tuple[frozenset[str], ...] = (
    frozenset({"||"}),
    frozenset({"&&"}),
    frozenset({"|", "&", "^"}),
    frozenset({"==", "!="}),
    frozenset({"<", "<=", ">", ">="}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%", "<<", ">>"}),
)
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
#: Functions that are named by words of the language.
_CALLED_WORDS = ("pop", "peek")
#: Deep enough for written programs, shallow enough for every recursive walk.
_DEEPEST = 200


@dataclass
class TermReader(Cursor):
    """Mutable: reads expressions and types."""

    depth: int = field(default=0, init=False)

    def since(self, start: Span) -> Span:
        return start.to(self.previous.span)

    def new_name(self, what: str) -> str:
        """A name that somebody chooses."""
        if self.token.value in RESERVED and self.token.kind == "name":
            self.refuse()
            self.fail(f"expected {what}, got the word {self.token} of the language")
        return self.expect_name(what).name

    def refuse(self) -> None:
        """What other dialects have here is told by its name."""
        if self.at(*REFUSED):
            self.fail(REFUSED[self.token.value])

    # --- types ---

    def at_type(self) -> bool:
        """Whether a declaration begins here: a type, then a name."""
        if self.at(*PLAIN_TYPES, "portal") or self.at_remark():
            return True
        if self.token.kind != "name" or self.at(*RESERVED):
            return False
        after = self.after_sizes(self.position + 1)
        return self.tokens[after].kind == "name"

    def at_remark(self) -> bool:
        return self.at(*REMARKS) and self.tokens[self.position + 1].kind == "name"

    def after_sizes(self, position: int) -> int:
        """The place behind `[...][...]`, which may stand at a place."""
        while self.tokens[position].value == "[" and self.tokens[position].kind == "symbol":
            open_ = 1
            while open_ and self.tokens[position].kind != "end":
                position += 1
                open_ += {"[": 1, "]": -1}.get(self.tokens[position].value, 0)
            position += self.tokens[position].kind != "end"
        return position

    def type_name(self) -> TypeName:
        """A type with its sizes; those after a name, as in C, are added by `with_sizes`."""
        while self.at_remark():
            self.advance()
        start = self.token.span
        if self.accept("portal"):
            self.expect("<", "and the filter that listens")
            listener = self.new_name("the filter that listens")
            self.expect(">", "after the name of the filter")
            return TypeName("portal", (), self.since(start), listener)
        name = self.advance().value if self.at(*PLAIN_TYPES) else self.new_name("a type")
        if self.at("*") and self.tokens[self.position + 1].kind == "name":
            self.fail("there are no pointers: arrays and structs are held by value")
        sizes = self.sizes()
        return TypeName(name, sizes, self.since(start))

    def sizes(self) -> tuple[Expression, ...]:
        sizes: list[Expression] = []
        while self.accept("["):
            sizes.append(self.expression())
            self.expect("]", "after the size of an array")
        return tuple(sizes)

    # --- expressions ---

    def expression(self) -> Expression:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail("this expression is nested too deeply", hint="give its parts names")
        start = self.token.span
        expression = self.level(0)
        if self.accept("?"):
            then = self.expression()
            self.expect(":", "and what it is otherwise")
            otherwise = self.expression()
            expression = Choice(expression, then, otherwise, self.since(start))
        elif self.at(*_ASSIGNMENTS):
            operator = self.advance().value.removesuffix("=")
            expression = Set(expression, operator, self.expression(), self.since(start))
        self.depth -= 1
        return expression

    def level(self, number: int) -> Expression:
        """Operators of a level, from left to right."""
        if number == len(_LEVELS):
            return self.unary()
        start = self.token.span
        left = self.level(number + 1)
        while self.at(*_LEVELS[number]):
            operator = self.advance().value
            right = self.level(number + 1)
            left = Binary(operator, left, right, self.since(start))
        return left

    def unary(self) -> Expression:
        start = self.token.span
        if self.at("-", "!", "~", "+"):
            operator = self.advance().value
            operand = self.unary()
            return operand if operator == "+" else Unary(operator, operand, self.since(start))
        if self.at("++", "--"):
            operator = self.advance().value
            return self.step(self.postfix(), operator, start, is_before=True)
        if self.at("(") and self.is_cast():
            self.advance()
            type_ = self.type_name()
            self.expect(")", "after the type")
            return Cast(type_, self.unary(), self.since(start))
        operand = self.postfix()
        if self.at("++", "--"):
            return self.step(operand, self.advance().value, start, is_before=False)
        return operand

    def step(self, target: Expression, operator: str, start: Span, *, is_before: bool) -> Step:
        kind = cast("Literal['++', '--']", operator)
        return Step(target, kind, is_before, self.since(start))

    def is_cast(self) -> bool:
        inside = self.tokens[self.position + 1]
        return inside.kind == "name" and inside.value in PLAIN_TYPES

    def postfix(self) -> Expression:
        """A value, then any number of `[index]` and `.part`."""
        start = self.token.span
        value = self.primary()
        while self.at("[", ".") and not (isinstance(value, Invoke) and self.at_latency()):
            if self.accept("["):
                index = self.expression()
                self.expect("]", "after an index")
                value = Item(value, index, self.since(start))
            else:
                self.advance()
                part = self.expect_name("a part of a struct or a function of a helper").name
                if isinstance(value, Name) and self.at("("):
                    value = self.invoked(f"{value.name}.{part}", start)
                else:
                    value = Member(value, part, self.since(start))
        return value

    def at_latency(self) -> bool:
        """Whether `[1:2]` or `[*]` stands here, which belongs to a message."""
        if not self.at("["):
            return False
        inside = self.tokens[self.position + 1 : self.after_sizes(self.position) - 1]
        return any(token.value == ":" for token in inside) or [t.value for t in inside] == ["*"]

    def primary(self) -> Expression:
        token = self.token
        if token.kind == "number":
            return self.number()
        if token.kind == "text":
            return Quoted(self.advance().value, token.span)
        if self.at("true", "false"):
            return Truth(self.advance().value == "true", token.span)
        if self.accept("("):
            inner = self.expression()
            self.expect(")", "after the expression")
            return inner
        if self.accept("{"):
            elements = self.separated(self.expression, "}")
            self.expect("}", "after the elements")
            return Listed(tuple(elements), self.since(token.span))
        if token.kind == "name" and (token.value not in RESERVED or self.at(*_CALLED_WORDS)):
            self.advance()
            if self.at("("):
                return self.invoked(token.value, token.span)
            return Name(token.value, token.span)
        self.fail(f"expected an expression, got {token}")

    def invoked(self, function: str, start: Span) -> Invoke:
        return Invoke(function, self.arguments(), self.since(start))

    def arguments(self) -> tuple[Expression, ...]:
        self.expect("(", "and the arguments")
        arguments = self.separated(self.expression, ")")
        self.expect(")", "after the arguments")
        return tuple(arguments)

    def number(self) -> Number:
        token = self.advance()
        text = token.value
        if text[:2] in ("0x", "0X"):
            return Number(int(text, 16), False, token.span)
        digits = text.rstrip("fFi")
        is_whole = digits.isdigit() and not text.endswith(("f", "F"))
        value = int(digits) if is_whole else float(digits)
        return Number(value, text.endswith("i"), token.span)
