"""The parser of the textual form: the paper's syntax, with bodies and schemas.

    output result;
    input bids(symbol text, price number);
    (result) <- Filter[symbol == "IBM"](bids);

A syntax error is noted, the parser goes on after the next semicolon, and all errors are
reported together.
"""

from __future__ import annotations

from typing import NoReturn

from millstream.calculus.cursor import Stop
from millstream.calculus.expressions import (
    CLAUSE_WORDS,
    COUNT_WORD,
    FLAG_WORDS,
    ExpressionParser,
)
from millstream.calculus.lexer import tokens_of
from millstream.calculus.syntax import Expression, Word
from millstream.calculus.types import (
    QueueType,
    Schema,
)
from millstream.errors import Fault, ParseError, suggest
from millstream.languages.brook.written import (
    Clause,
    Item,
    WrittenField,
    WrittenInput,
    WrittenOperator,
    WrittenProgram,
    WrittenVariable,
)
from millstream.source import Source


def parse(source: Source) -> WrittenProgram:
    """The program as written, or a `ParseError` with every syntax error."""
    faults: list[Fault] = []
    tokens = tokens_of(source, faults)
    if faults:
        raise ParseError(faults)  # what follows a stray character is not to be trusted
    program = Parser(tokens, faults).program()
    if faults:
        ordered = sorted(faults, key=lambda f: f.span.start if f.span else 0)
        raise ParseError(ordered)
    return program


class Parser(ExpressionParser):
    """Mutable: a place in the tokens of a program, and the faults so far."""

    def program(self) -> WrittenProgram:
        inputs: list[WrittenInput] = []
        outputs: list[Word] = []
        variables: list[WrittenVariable] = []
        operators: list[WrittenOperator] = []
        while self.token.kind != "end":
            try:
                if self.accept("output"):
                    outputs += self.separated(lambda: self.expect_name("a queue"), ";")
                elif self.accept("input"):
                    inputs += self.separated(self.input_, ";")
                elif self.accept("variable"):
                    variables += self.separated(self.variable, ";")
                elif self.at("("):
                    operators.append(self.operator())
                else:
                    self.fail_clause()
                self.expect(";", "at the end of the clause")
            except Stop:
                self.depth = 0
                self.skip_clause()
        return WrittenProgram(
            tuple(inputs), tuple(outputs), tuple(variables), tuple(operators), self.token.span
        )

    def fail_clause(self) -> NoReturn:
        hint = suggest(self.token.value, ("output", "input", "variable"))
        self.fail(
            "expected `output`, `input`, `variable` or an operator `(queue) <- ...`, "
            f"got {self.token}",
            hint=hint,
        )

    def skip_clause(self) -> None:
        while self.token.kind != "end" and not self.at(";"):
            self.advance()
        self.accept(";")

    def input_(self) -> WrittenInput:
        name = self.expect_name("the name of an input")
        is_relation = self.accept("relation")
        self.expect("(", "and the columns of the input")
        columns = self.separated(self.field, ")")
        self.expect(")", "after the columns")
        time = slack = None
        if self.accept("time"):
            time = self.expect_name("the column that is the event time")
        if self.accept("slack"):
            slack = self.duration("a slack such as `2 s`")
        is_early = self.accept("early")
        is_read_once = self.accept("once")
        values = tuple(self.values()) if self.accept("values") else None
        schema = Schema(tuple(field for _, field in columns))
        words = tuple(word for word, _ in columns)
        return WrittenInput(name, words, QueueType(schema, is_relation), time, slack,
                            is_read_once, values, is_early)  # fmt: skip

    def values(self) -> list[tuple[Expression, ...]]:
        """`((1, "a"), (2, "b"))`: the rows of a relation that is not given from outside."""
        self.expect("(", "and the rows of the input")
        rows = self.separated(self.row, ")")
        self.expect(")", "after the rows")
        return rows

    def row(self) -> tuple[Expression, ...]:
        self.expect("(", "and the values of a row")
        row = self.separated(self.expression, ")")
        self.expect(")", "after the values of a row")
        return tuple(row)

    def variable(self) -> WrittenVariable:
        self.expect("$", "before the name of a variable")
        name = self.expect_name("the name of a variable")
        self.expect("(", "and the fields of the variable")
        fields = self.separated(self.variable_field, ")")
        self.expect(")", "after the fields")
        return WrittenVariable(name, tuple(fields))

    def variable_field(self) -> WrittenField:
        name = self.expect_name("a field")
        type_ = self.type_()
        return WrittenField(name, type_, self.expression() if self.accept("=") else None)

    def operator(self) -> WrittenOperator:
        start = self.expect("(", "to open the outputs").span
        outputs, writes = self.queues_and_variables()
        self.expect("<-", "after the outputs")
        function = self.expect_name("a function")
        clauses: list[Clause] = []
        if self.accept("["):
            clauses = self.clauses()
            self.expect("]", "after the body of the function")
        self.expect("(", "and the inputs of the operator")
        inputs, reads = self.queues_and_variables()
        span = start.to(self.previous.span)
        return WrittenOperator(function, tuple(clauses), inputs, reads, outputs, writes, span)

    def queues_and_variables(self) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
        queues: list[Word] = []
        variables: list[Word] = []

        def one() -> None:
            start = self.token.span
            if self.accept("$"):
                word = self.expect_name("the name of a variable")
                variables.append(Word(word.name, start.to(word.span)))
            else:
                queues.append(self.expect_name("a queue or a variable"))

        self.separated(one, ")")
        self.expect(")", "after the queues and variables")
        return tuple(queues), tuple(variables)

    # --- bodies of functions ---

    def clauses(self) -> list[Clause]:
        clauses: list[Clause] = []
        while not self.at("]"):
            start = self.token.span
            keyword = self.advance().value if self.at_clause() else None
            items = [] if keyword in FLAG_WORDS else self.items()
            clauses.append(Clause(keyword, tuple(items), start.to(self.previous.span)))
            if not self.accept(";") and not self.at(*CLAUSE_WORDS):
                break
        return clauses

    def at_clause(self) -> bool:
        """Whether a clause begins with a word; columns may be called as a count is."""
        is_count = self.at(COUNT_WORD) and self.tokens[self.position + 1].kind == "number"
        return is_count or self.at(*CLAUSE_WORDS)

    def items(self) -> list[Item]:
        items = [self.item()]
        while self.accept(","):
            items.append(self.item())
        return items

    def item(self) -> Item:
        value = self.expression()
        target = None
        if self.accept("="):
            target, value = value, self.expression()
        first = (target or value).span
        assert first is not None
        return Item(target, value, first.to(self.previous.span))

    # --- expressions ---
