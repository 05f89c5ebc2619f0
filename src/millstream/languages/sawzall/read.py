"""Declarations and statements: from a text to a script, or to all that is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, cast

from millstream.calculus.cursor import Stop
from millstream.calculus.scripts import (
    Assign,
    Block,
    Choose,
    Const,
    Declare,
    Do,
    Expression,
    Get,
    If,
    Leave,
    Loop,
    Operate,
    Quantifier,
    Result,
    Return,
    Scope,
    Script,
    Statement,
    Var,
    When,
)
from millstream.errors import Fault, ParseError
from millstream.languages.sawzall.outputs import TableReader, predeclared
from millstream.languages.sawzall.ranges import ranges_of
from millstream.languages.sawzall.read_terms import BAD
from millstream.languages.sawzall.scope import UNKNOWN, VOID, TypeName, an, is_same
from millstream.languages.sawzall.tokens import Token, tokens_of
from millstream.source import Source, Span
from millstream.values.records.types import (
    BYTES,
    FLOAT,
    INT,
    TIME,
    UINT,
    FunctionOf,
    RecordType,
    resolved,
)

#: Assignments that work with what was there, as in `x += 1`.
_CHANGES = ("+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
_ONES: dict[RecordType, Any] = {INT: 1, UINT: 1, FLOAT: 1.0, TIME: 1}


def read(source: Source, included: Callable[[str, Span], Source]) -> Script:
    """The script that a text means, or a `ParseError` with everything that is wrong."""
    faults: list[Fault] = []
    reader = Reader(tokens_of(source, faults), faults, included)
    script = reader.script(source.name)
    if faults:
        unique = dict.fromkeys(faults)
        raise ParseError(sorted(unique, key=lambda f: f.span.start if f.span else 0))
    return script


class Reader(TableReader):
    """Mutable: reads a whole text."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: The names of files that are included; each is, once.
        self.files: set[str] = set()
        self.quantified: set[int] = set()
        self.record = self.new_var("input", BYTES)
        self.record_names.add(self.record.number)
        predeclared(self)
        self.names.levels[0]["input"] = self.record

    def script(self, name: str) -> Script:
        body: list[Statement] = []
        while self.token.kind != "end":
            if self.at("}"):
                self.note("there is nothing that this `}` ends", self.token.span)
                self.advance()
                continue
            body += self.statement_or_rest()
        return Script(name, self.record, tuple(self.statics), tuple(body), tuple(self.tables))

    # --- statements ---

    def statement_or_rest(self) -> list[Statement]:
        """A statement, or nothing if there is a fault in it; reading goes on behind it."""
        depth, names = self.depth, len(self.names.levels)
        stacks = (self.indexes, self.functions, self.results, self.static_from, self.loops)
        lengths = [len(s) for s in stacks]
        level, position = self.level, self.position
        try:
            return self.statement()
        except Stop:
            self.depth, self.level = depth, level
            del self.names.levels[names:]
            for stack, length in zip(stacks, lengths, strict=True):
                del stack[length:]  # type: ignore[attr-defined]
            self.skip_statement(position)
            return []

    def skip_statement(self, start: int) -> None:
        """Behind the `;` or the block that ends what could not be read."""
        braces = sum(
            {"{": 1, "}": -1}.get(t.text, 0)
            for t in self.tokens[start : self.position]
            if t.kind == "symbol"
        )
        braces = max(braces, 0)
        while self.token.kind != "end":
            if braces == 0 and self.at("}"):
                return
            token = self.advance()
            if token.kind == "symbol":
                braces += {"{": 1, "}": -1}.get(token.text, 0)
            if braces <= 0 and token.text in (";", "}") and not self.at(";"):
                return

    def statement(self) -> list[Statement]:
        token = self.token
        if self.accept(";"):
            return []
        if self.at("{"):
            return [Scope(self.block())]
        reader: Callable[[], list[Statement]] | None = getattr(
            self, f"{token.text}_statement", None
        )
        if token.kind == "name" and token.text in _WORDS and reader is not None:
            return reader()
        if token.kind == "name" and token.text == "result" and self.results:
            return self.result_statement()
        if token.text == "result" and self.peek().kind in ("literal", "name"):
            self.fail(
                "`result` stands only in what is made of statements, as in ?{ ... result e; }"
            )
        if token.text in ("var", "let") and self.peek().kind == "name":
            hint = f"leave out `{token.text}`, as in `{self.peek().text}: int;`"
            self.fail("a variable is declared by its name, then its type", token.span, hint)
        is_declared = token.kind == "name" and self.peek().text == ":"
        if is_declared and self.peek().kind == "symbol":
            return self.declaration()
        return self.plain_statement()

    def block(self) -> Block:
        self.expect("{", "before statements")
        self.names.levels.append({})
        statements: list[Statement] = []
        while not self.at("}") and self.token.kind != "end":
            statements += self.statement_or_rest()
        self.names.levels.pop()
        self.expect("}", "after the statements of a block")
        return tuple(statements)

    def body(self) -> Block:
        """One statement, with names of its own."""
        if self.at("{"):
            return self.block()
        self.names.levels.append({})
        read = self.statement()
        self.names.levels.pop()
        return tuple(read)

    def plain_statement(self) -> list[Statement]:
        statement = self.call_statement() or self.assignment()
        self.expect(";", "after a statement")
        return [statement]

    def assignment(self) -> Statement:
        start = self.token.span
        value = self.expression()
        if self.accept("="):
            place = self.place(value, start)
            given = self.expression()
            if place is None:
                return Do(self.finished(given), self.since(start))
            fitted = self.wanted(given, place.type, "what is assigned")
            return Assign(place, fitted, self.since(start))
        if self.at("++", "--"):
            return self.counted(value, start)
        if self.at(*_CHANGES):
            sign = self.advance()
            place = self.place(value, start)
            changed = self.binary(replace(sign, text=sign.text[:-1]), value, self.expression())
            if place is None:
                return Do(value, self.since(start))
            fitted = self.wanted(changed, place.type, "what is assigned")
            return Assign(place, fitted, self.since(start))
        if self.at(":") and self.peek().text == "=":
            hint = "an element is given another value by `=`"
            self.fail("`:=` declares a variable, which needs a name", hint=hint)
        return Do(self.finished(value), self.since(start))

    def counted(self, value: Expression, start: Span) -> Statement:
        """As in `i++`."""
        sign = self.advance()
        place = self.place(value, start)
        one = _ONES.get(resolved(value.type))
        if place is None:
            return Do(value, self.since(start))
        if one is None and value.type != UNKNOWN:
            self.note(f"{an(value.type)} cannot be counted up", self.since(start))
        more = Operate(sign.text[0], (value, Const(one, value.type)), value.type, place.span)
        return Assign(place, more, self.since(start))

    # --- declarations ---

    def declaration(self, *, is_static: bool = False) -> list[Statement]:
        name = self.expect_name("a name")
        self.expect(":", "after the name")
        if self.is_table():
            self.table_declaration(name)
            self.expect(";", "after a declaration")
            return []
        made = self.variable_declared(name, is_static=is_static)
        self.expect(";", "after a declaration")
        return made

    def variable_declared(self, name: Token, *, is_static: bool) -> list[Statement]:
        if self.at("input") and self.peek().text == ";":
            return self.record_declared(name)
        if self.at("="):
            self.advance()
            return self.inferred(name, is_static=is_static)
        if self.at("function"):
            return self.function_declared(name, is_static=is_static)
        type_ = self.type()
        var = self.new_var(name.text, type_, is_static=is_static)
        value = None
        if self.accept("="):
            given = self.expression()
            value = self.initial(given, type_, name.span)
        elif self.at("{") and isinstance(resolved(type_), FunctionOf):
            self.declare(name, var)
            made = TypeName(type_, parameters=self.parameters)
            body = self.function_of_type(made, name, name)
            return [Declare(var, body, self.since(name.span))]
        self.declare(name, var)
        return [Declare(var, value, self.since(name.span))]

    def record_declared(self, name: Token) -> list[Statement]:
        """`q: input;` of the core language: the record under another name."""
        self.advance()
        var = self.new_var(name.text, BYTES)
        self.record_names.add(var.number)
        self.declare(name, var)
        return [Declare(var, Get(self.record, name.span), self.since(name.span))]

    def initial(self, value: Expression, type_: RecordType, start: Span) -> Expression:
        """What a variable of a type begins with: converted if it must be."""
        if value.type == VOID:
            self.note("this gives nothing to begin with", value.span or start)
            return Const(None, type_)
        span = value.span or start
        return self.converted(value, type_, (), span)

    def inferred(self, name: Token, *, is_static: bool) -> list[Statement]:
        if self.at("function"):
            return self.function_declared(name, is_static=is_static)
        value = self.finished(self.expression())
        if isinstance(value, Const) and str(value.type).startswith("table "):
            self.note("a table has one name", value.span, "it can be passed to a function")
            value = BAD
        if value.type == VOID:
            self.note("this gives nothing to begin with", value.span)
        var = self.new_var(name.text, value.type, is_static=is_static)
        if self.is_record(value):
            self.record_names.add(var.number)
        self.declare(name, var)
        return [Declare(var, value, self.since(name.span))]

    def function_declared(self, name: Token, *, is_static: bool) -> list[Statement]:
        """A function that may call itself: its name is known before its body."""
        start = self.expect("function", "").span
        names, type_ = self.function_type()
        var = self.new_var(name.text, type_, is_static=is_static)
        if not self.at("{"):
            value = None
            if self.accept("="):
                value = self.initial(self.expression(), type_, name.span)
            self.declare(name, var)
            return [Declare(var, value, self.since(name.span))]
        self.declare(name, var)
        value = self.selected(self.function_body(names, type_, start, name))
        if not is_same(value.type, type_):  # it was called where it stands
            var = replace(var, type=value.type)
            self.names.declare(name.text, var)
        return [Declare(var, value, self.since(name.span))]

    def static_statement(self) -> list[Statement]:
        self.advance()
        self.static_from.append(self.variables)
        made = self.declaration(is_static=True)
        self.static_from.pop()
        self.statics += made
        return []

    def static_member(self) -> None:
        self.advance()
        self.static_from.append(self.variables)
        name = self.expect_name("a name")
        self.expect(":", "after the name")
        self.statics += self.variable_declared(name, is_static=True)
        self.static_from.pop()

    def type_statement(self) -> list[Statement]:
        self.type_declaration()
        self.expect(";", "after a declaration")
        return []

    def include_statement(self) -> list[Statement]:
        """What stands in another file comes here instead, unless it is there already."""
        start = self.advance().span
        token = self.advance()
        if not isinstance(token.value, str):
            self.fail("expected the name of a file in quotes", token.span)
        text = self.beside(token.value, start.to(token.span))
        self.accept(";")
        if text is None or text.name in self.files:
            return []
        self.files.add(text.name)
        tokens = tokens_of(text, self.faults)[:-1]
        self.tokens[self.position : self.position] = tokens
        return []

    # --- control ---

    def condition(self, what: str) -> Expression:
        self.expect("(", f"after `{what}`")
        condition = self.boolean(self.expression())
        self.expect(")", "after the condition")
        return condition

    def if_statement(self) -> list[Statement]:
        start = self.advance().span
        condition = self.condition("if")
        then = self.body()
        otherwise = self.body() if self.accept("else") else ()
        return [If(condition, then, otherwise, condition.span or start)]

    def looped(self, word: str) -> Block:
        self.loops.append(word)
        body = self.body()
        self.loops.pop()
        return body

    def while_statement(self) -> list[Statement]:
        start = self.advance().span
        condition = self.condition("while")
        return [Loop(condition, self.looped("loop"), span=condition.span or start)]

    def do_statement(self) -> list[Statement]:
        start = self.advance().span
        body = self.looped("loop")
        self.expect("while", "after what is done")
        condition = self.condition("while")
        self.expect(";", "after a statement")
        return [Loop(condition, body, tests_first=False, span=condition.span or start)]

    def for_statement(self) -> list[Statement]:
        start = self.advance().span
        self.expect("(", "after `for`")
        self.names.levels.append({})
        first = self.for_part(";")
        self.expect(";", "in a `for`")
        condition = None if self.at(";") else self.boolean(self.expression())
        self.expect(";", "in a `for`")
        after = self.for_part(")")
        self.expect(")", "after what a `for` does")
        body = self.looped("loop")
        self.names.levels.pop()
        span = start if condition is None else condition.span or start
        return [Scope((*first, Loop(condition, body, after, span=span)))]

    def for_part(self, closing: str) -> Block:
        if self.at(closing):
            return ()
        if self.token.kind == "name" and self.peek().text == ":":
            name = self.expect_name("a name")
            self.advance()
            return tuple(self.variable_declared(name, is_static=False))
        return (self.call_statement() or self.assignment(),)

    def break_statement(self) -> list[Statement]:
        return self.left("break", {"loop", "switch"})

    def continue_statement(self) -> list[Statement]:
        return self.left("continue", {"loop"})

    def left(self, word: Literal["break", "continue"], ends: set[str]) -> list[Statement]:
        start = self.advance().span
        around = []
        for one in reversed(self.loops):
            if one == "when":
                break
            around.append(one)
        if not ends.intersection(around):
            self.note(f"there is nothing here that `{word}` could leave", start)
        self.expect(";", "after a statement")
        return [Leave(word, start)]

    def switch_statement(self) -> list[Statement]:
        start = self.advance().span
        self.expect("(", "after `switch`")
        value = self.finished(self.expression())
        self.expect(")", "after the tag")
        self.expect("{", "before the cases")
        tag = self.new_var("switch", value.type)
        self.loops.append("switch")
        cases: list[tuple[tuple[Expression, ...], Block]] = []
        otherwise: Block | None = None
        while not self.at("}") and self.token.kind != "end":
            if otherwise is not None:
                self.note("`default` comes last", self.token.span)
            if self.accept("default"):
                self.expect(":", "after `default`")
                otherwise = self.case_body()
                continue
            self.expect("case", "before the labels")
            labels = tuple(
                self.wanted(e, value.type, "the label")
                for e in self.separated(self.expression, ":")
            )
            self.expect(":", "after the labels")
            cases.append((labels, self.case_body()))
        self.loops.pop()
        self.expect("}", "after the cases")
        if otherwise is None:
            self.note("a `switch` needs a `default`", start, "add `default: ;`")
        return [Choose(tag, value, tuple(cases), otherwise or (), value.span or start)]

    def case_body(self) -> Block:
        self.names.levels.append({})
        statements: list[Statement] = []
        while not self.at("case", "default", "}") and self.token.kind != "end":
            statements += self.statement_or_rest()
        self.names.levels.pop()
        return tuple(statements)

    def return_statement(self) -> list[Statement]:
        start = self.advance().span
        value = None if self.at(";") else self.expression()
        span = self.since(start)
        self.expect(";", "after a statement")
        if self.results:
            self.note("`return` cannot leave a `?{`: write `result`", span)
        function = self.functions[-1] if self.functions else None
        wanted = None if function is None else function.result
        if value is not None and wanted is None:
            where = "the program" if function is None else "this function"
            self.note(f"{where} returns nothing", span)
        elif value is None and wanted is not None:
            self.note(f"expected a value of type {wanted} to return", span)
        elif value is not None and wanted is not None:
            value = self.wanted(value, wanted, "what is returned")
        return [Return(value, span)]

    def result_statement(self) -> list[Statement]:
        start = self.advance().span
        value = self.finished(self.expression())
        self.expect(";", "after a statement")
        types = self.results[-1]
        if types and not is_same(types[0], value.type):
            self.note(f"this is of type {value.type}, but an earlier result is {types[0]}",
                      self.since(start))  # fmt: skip
        types.append(value.type)
        return [Result(value, self.since(start))]

    # --- when ---

    def when_statement(self) -> list[Statement]:
        start = self.advance().span
        self.expect("(", "after `when`")
        self.names.levels.append({})
        found: list[tuple[str, Var, Span]] = []
        while self.token.kind == "name" and self.peek().text in (":", ","):
            found += self.quantifiers()
        condition = self.boolean(self.expression())
        self.expect(")", "after the condition")
        quantifiers = tuple(
            Quantifier(cast("Any", word), var, self.ranges(condition, var, found, span))
            for word, var, span in found
        )
        self.quantified |= {var.number for _, var, _ in found}
        self.loops.append("when")
        body = self.body()
        self.loops.pop()
        self.names.levels.pop()
        return [When(quantifiers, condition, body, condition.span or start)]

    def quantifiers(self) -> list[tuple[str, Var, Span]]:
        """As in `i, j: each int;`."""
        names = [self.expect_name("a name")]
        while self.accept(","):
            names.append(self.expect_name("a name"))
        self.expect(":", "after the names")
        if not self.at("some", "each", "all"):
            self.note(f"expected some, each or all, got {self.token}", self.token.span)
        is_left_out = self.peek().text == ";" and not self.at("some", "each", "all")
        word = "each" if is_left_out else self.advance().text
        if self.at(";"):
            self.note("expected a type, got `;`", self.token.span, f"as in i: {word} int;")
        type_ = INT if self.at(";") else self.type()
        self.expect(";", "after a quantifier")
        made = []
        for name in names:
            var = self.new_var(name.text, type_)
            self.declare(name, var)
            made.append((word, var, name.span))
        return made

    def ranges(
        self, condition: Expression, var: Var, found: list[tuple[str, Var, Span]], span: Span
    ) -> tuple[Expression, ...]:
        numbers = [v.number for _, v, _ in found]
        later = set(numbers[numbers.index(var.number) :])
        ranges = ranges_of(condition, var, later)
        if not ranges and condition.type != UNKNOWN:
            self.note(
                f'"{var.name}" is no index of an array, a map or a string in the condition', span,
                "it goes through the indexes of what it stands in, as in a[i]",
            )  # fmt: skip
        return ranges


_WORDS = frozenset({
    "if", "while", "do", "for", "break", "continue", "switch", "return", "when", "emit", "static",
    "type", "include", "proto",
})  # fmt: skip
