"""Tables and what is emitted to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.calculus.scripts import (
    UNDEFINED_COUNT,
    UNDEFINED_REASONS,
    Apply,
    Assign,
    Block,
    Const,
    Declare,
    Emit,
    Expression,
    Get,
    If,
    Intrinsic,
    Operate,
    Place,
    Script,
    Statement,
    Table,
    Var,
    nodes_in,
)
from millstream.errors import suggest
from millstream.languages.sawzall.calls import CallReader, is_outside
from millstream.languages.sawzall.library import signature
from millstream.languages.sawzall.read_terms import BAD
from millstream.languages.sawzall.scope import UNKNOWN, TableName, TableType, an, can_be_index
from millstream.languages.sawzall.tokens import Token
from millstream.meaning.script_values import Frame
from millstream.meaning.scripts import Machine
from millstream.source import Span
from millstream.values.records.surroundings import FILE_NAME
from millstream.values.records.types import BOOL, BYTES, INT, STRING, Basic, RecordType, resolved
from millstream.values.tables.kind import Declared
from millstream.values.tables.table import TABLES
from millstream.values.undefined import Undefined

#: A name, if there is one, and a type.
Named = tuple[str | None, RecordType]
#: Files that a table may name outside of the project's folder.
STANDARD = {"/dev/stdout": "stdout", "/dev/stderr": "stderr"}


@dataclass(slots=True)
class TableWriting:
    """Mutable: how what a table is given is written, by the variables of indexes, value, weight."""

    variables: tuple[Var, ...]
    #: What is sent instead of the value, and the file it goes to if emits name one each.
    value: Expression | None = None
    file: Expression | None = None

    def names(self, var: Var) -> int:
        """How often a variable stands in what is written."""
        nodes = nodes_in(tuple(t for t in (self.value, self.file) if t is not None))
        return sum(isinstance(node, Get) and node.var == var for node in nodes)

    def of(self, template: Expression | None, given: tuple[Expression, ...]) -> Expression | None:
        """What is written for one emit."""
        for var, one in zip(self.variables, given, strict=True):
            template = substituted(template, var, one)
        return template


class TableReader(CallReader):
    """Mutable: reads declarations of tables, and what is emitted."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        #: By the number of each table.
        self.written: dict[int, TableWriting] = {}
        #: The tables of the core language of which nothing has said yet what they hold.
        self.open: dict[int, None] = {}
        #: By each type of tables that are passed to functions, how many tables were known where one
        #: was last emitted to.
        self.passed: dict[RecordType, int] = {}

    # --- declarations ---

    def default_of(self, type_: RecordType) -> Any:
        """What a field has when nothing is said of it: a value that is known here."""
        start = self.token.span
        read = self.expression()
        made = self.converted(read, type_, (), self.since(start))
        nothing = Script("default", Var(0, "record", BYTES), (), (), ())
        try:
            return Machine(nothing).value(made, Frame())
        except (Undefined, KeyError):
            self.note(
                "the default of a field must be a value that is known here", self.since(start)
            )
            return None

    def table_declaration(self, name: Token) -> None:
        self.advance()
        kind = self.advance()
        is_known = kind.kind == "name" and kind.text in TABLES
        if not is_known:
            hint = suggest(kind.text, TABLES) or f"there are: {', '.join(TABLES)}"
            complain = self.note if kind.kind == "name" else self.fail
            complain(f'unknown kind of table "{kind.text}"', kind.span, hint)
        parameter = self.parameter() if self.accept("(") else None
        self.names.levels.append({})
        number = len(self.tables)
        indexes = self.index_declarations()
        value, weight = self.elements(name)
        parts = [*indexes, value, *([] if weight is None else [weight])]
        # One of a kind that is not there holds all, so that its emits can be read.
        table = Table(
            name.text, kind.text if is_known else "collection", parameter, tuple(indexes),
            value[1], weight and weight[1], span=self.since(name.span),
        )  # fmt: skip
        self.tables.append(table)
        self.written[number] = TableWriting(tuple(self.part_of_table(*part) for part in parts))
        self.specifiers(number, kind.span)
        self.names.levels.pop()
        self.declare(name, TableName(number))
        if is_known and number not in self.open:
            self.check_table(self.tables[number], kind.span)

    def table_type(self, name: Token) -> None:
        """`type T = table ...`: read here once for its faults, and again where it is used."""
        start = self.position
        self.table_declaration(name)
        self.tables.pop()
        for known in (self.written, self.open):
            known.pop(len(self.tables), None)
        self.names.declare(name.text, TableType(tuple(self.tokens[start : self.position])))

    def is_table(self) -> bool:
        """Whether a table is declared here; the name of a type gives way to what it stands for."""
        if self.token.kind == "name" and self.peek().text in (";", ",", ")"):
            entry = self.names.find(self.token.text)
            if isinstance(entry, TableType):
                self.tokens[self.position : self.position + 1] = entry.tokens
        return self.at("table")

    # --- tables that functions are given ---

    def table_parameter(self) -> RecordType:
        """The type of a table that is passed: by its structure, whatever its format and file."""
        self.names.levels.append({})
        self.table_declaration(replace(self.token, text=""))
        self.names.levels.pop()
        number = len(self.tables) - 1
        if number in self.open:
            self.note("expected `of` and the type of what is emitted", self.previous.span)
        type_ = self.type_of_table(number)
        self.tables.pop()
        for known in (self.written, self.open):
            known.pop(number, None)
        self.passed.setdefault(type_, 0)
        return type_

    def type_of_table(self, number: int) -> RecordType:
        table = self.tables[number]
        parts = [v.type for v in self.written[number].variables]
        indexes = "".join(f"[{type_}]" for type_ in parts[: len(table.indexes)])
        counted = "" if table.parameter is None else f"({table.parameter})"
        value = parts[len(table.indexes)]
        weight = "" if table.weight is None else f" weight {table.weight}"
        return Basic(f"table {table.kind}{counted}{indexes} of {value}{weight}")

    def table_passed(self, number: int, name: Token) -> Expression:
        """A table as a value: what it is called by, for functions that emit to it."""
        if number in self.open:
            self.note(f'nothing says yet what "{name.text}" holds', name.span,
                      "declare it with `of`")  # fmt: skip
            return BAD
        type_ = self.type_of_table(number)
        if number >= self.passed.get(type_, 0) > 0:
            hint = "declare it before the first of these functions"
            self.note(f'"{name.text}" is declared behind a function that emits to tables like it',
                      name.span, hint)  # fmt: skip
        return Const(number, type_, name.span)

    def emitted_to(
        self, var: Expression, indexes: list[Expression], value: Expression,
        weight: Expression | None, span: Span,
    ) -> list[Statement]:  # fmt: skip
        """An emit to whichever table was passed."""
        self.passed[var.type] = len(self.tables)
        made: Block = ()
        for number in reversed(range(len(self.tables))):
            if number in self.open or self.type_of_table(number) != var.type:
                continue
            emit = tuple(self.emitted(number, indexes, value, weight, span))
            is_it = Operate("==", (var, Const(number, var.type)), BOOL, span)
            made = (If(is_it, emit, made, span),)
        return list(made)

    def parameter(self) -> Any:
        start = self.token.span
        value = self.wanted(self.expression(), INT, "the parameter")
        self.expect(")", "after the parameter")
        known = self.known_at_once(value)
        if known is not None:
            return known
        fault = "the parameter of a table must be a plain number above 0, or a static name of one"
        self.note(fault, value.span or start)
        return 1

    def known_at_once(self, value: Expression) -> Any:
        """What an expression is that is a plain value, or a static name of one; else None."""
        made: Expression | None = value
        if isinstance(value, Get) and value.var.level < 0:
            statics = (s for s in self.statics if isinstance(s, Declare))
            made = next((s.value for s in statics if s.var == value.var), None)
        return made.value if isinstance(made, Const) else None

    def index_declarations(self) -> list[tuple[str | None, RecordType]]:
        indexes: list[tuple[str | None, RecordType]] = []
        while self.accept("["):
            token = self.token
            name, type_ = self.component()
            if not can_be_index(type_):
                self.note(f"{an(type_)} cannot be an index", token.span)
            self.expect("]", "after the type of an index")
            indexes.append((name, type_))
        return indexes

    def part_of_table(self, name: str | None, type_: RecordType) -> Var:
        """What stands for an index, a value or a weight behind `format` and `file`."""
        var = self.new_var(name or "", type_)
        if name is not None:
            self.names.declare(name, var)
        return var

    def elements(self, name: Token) -> tuple[Named, Named | None]:
        """The value after `of`, and the weight; a table of the core language leaves them out."""
        if not self.accept("of"):
            if self.at(";"):
                self.open[len(self.tables)] = None
                return (None, UNKNOWN), None
            self.fail(f"expected `of` and the type of what is emitted, got {self.token}")
        value = self.component()
        return value, self.component() if self.accept("weight") else None

    def specifiers(self, number: int, kind: Span) -> None:
        table, written = self.tables[number], self.written[number]
        file: str | None = None
        while self.at("file", "format", "proc"):
            word = self.advance()
            if word.text == "proc":
                hint = "write to a file, and start the program on that"
                self.note("a table cannot start other programs", word.span, hint)
            made = self.formatted(word)
            if word.text == "proc":
                continue
            if word.text == "format":
                written.value = made
            else:
                file = self.file_named(made, word)
                written.file = self.names_of_files(made) if file is not None else None
        is_text = written.value is not None
        if file is not None and table.kind != "collection":
            self.note("only a collection can be written to a file", kind)
        if file is not None and not is_text and resolved(table.value) not in (BYTES, STRING):
            self.note("what goes to a file must be bytes, or have a format", kind)
        if is_text and table.kind in ("sum", "mrcounter"):
            self.note(f"what a {table.kind} adds up cannot have a format", kind)
        sent = STRING if is_text else table.value
        is_each = written.file is not None
        self.tables[number] = replace(table, value=sent, file=file, names_files=is_each)

    def formatted(self, word: Token) -> Expression:
        self.expect("(", f"after `{word.text}`")
        arguments = [self.finished(a) for a in self.separated(self.expression, ")")]
        self.expect(")", "after the arguments")
        return self.intrinsic(replace(word, text="format"), arguments)

    def file_named(self, name: Expression, word: Token) -> str | None:
        """Where a table is written: standard output, standard error, or beside the program."""
        fixed = name.arguments[0] if isinstance(name, Intrinsic) else name
        path = fixed.value if isinstance(fixed, Const) else None
        if not isinstance(path, str):
            hint = 'as in file("out.txt"), or file("out_%s.txt", index)'
            self.note("a file is named by a text that is written here", word.span, hint)
            return None
        if path in STANDARD:
            return STANDARD[path]
        if is_outside(path):
            hint = "name a file beside the program, /dev/stdout or /dev/stderr"
            self.note("this file lies outside of the project's folder", word.span, hint)
            return None
        return path

    def names_of_files(self, made: Expression) -> Expression | None:
        """What names the file of each emit; None if it is one file for all."""
        if not isinstance(made, Intrinsic) or len(made.arguments) < 2:
            return None
        return Intrinsic(FILE_NAME, (made,), STRING, made.span)

    def check_table(self, table: Table, kind: Span) -> None:
        if UNKNOWN in (table.value, table.weight):
            return
        declared = Declared(table.parameter, table.value, table.weight)
        complaint = TABLES[table.kind].complaint(declared)
        if complaint is not None:
            self.note(complaint, kind)
        if table.kind in ("text", "recordio", "mrcounter") and table.indexes:
            self.note(f"a {table.kind} has no indexes", kind)

    # --- emit ---

    def emit_statement(self) -> list[Statement]:
        start = self.advance().span
        name = self.expect_name("a table")
        entry = self.names.find(name.text)
        indexes: list[Expression] = []
        while self.accept("["):
            indexes.append(self.expression())
            self.expect("]", "after an index")
        self.expect("<-", "before what is emitted")
        value = self.expression()
        weight = self.expression() if self.accept("weight") else None
        span = self.since(start)
        self.expect(";", "after a statement")
        if isinstance(entry, Var) and entry.type in self.passed:
            return self.emitted_to(self.variable(entry, name), indexes, value, weight, span)
        if not isinstance(entry, TableName):
            tables = [t.name for t in self.tables]
            near = suggest(name.text, tables)
            if entry is None:
                self.unknown("table", name.text, name.span, near)
            else:
                self.note(f'"{name.text}" is no table', name.span, near)
            return []
        if entry.number in self.open:
            self.close(entry.number, indexes, value, span)
        return self.emitted(entry.number, indexes, value, weight, span)

    def close(self, number: int, indexes: list[Expression], value: Expression, span: Span) -> None:
        """A table of the core language: what is emitted first says what it holds."""
        self.open.pop(number)
        types = tuple((None, self.finished(i).type) for i in indexes)
        table = replace(self.tables[number], indexes=types, value=self.finished(value).type)
        parts = (*types, (None, table.value))
        self.written[number] = TableWriting(tuple(self.part_of_table(*part) for part in parts))
        self.tables[number] = table
        self.check_table(table, span)

    def emitted(
        self, number: int, indexes: list[Expression], value: Expression,
        weight: Expression | None, span: Span,
    ) -> list[Statement]:  # fmt: skip
        table = self.tables[number]
        if len(indexes) != len(table.indexes):
            count = len(table.indexes)
            indexed = table.name + "".join(f"[{type_}]" for _, type_ in table.indexes)
            words = "1 index" if count == 1 else f"{count} indexes"
            self.note(f'"{table.name}" has {words}, got {len(indexes)}', span, f"it is {indexed}")
            return []
        pairs = zip(indexes, table.indexes, strict=True)
        keys = tuple(self.wanted(i, type_, "the index") for i, (_, type_) in pairs)
        written = self.written[number]
        given = self.wanted(value, written.variables[len(keys)].type, "the value")
        if (weight is None) != (table.weight is None):
            wanted = "has no weight" if table.weight is None else f"needs a weight: {table.weight}"
            self.note(f'"{table.name}" {wanted}', span)
            return []
        heavy = None
        if weight is not None and table.weight is not None:
            heavy = weighed(self.wanted(weight, table.weight, "the weight"), table)
        return self.sent(number, keys, given, heavy, span)

    def sent(
        self, number: int, keys: tuple[Expression, ...], value: Expression,
        weight: Expression | None, span: Span,
    ) -> list[Statement]:  # fmt: skip
        """An emit as it is written: with its format, and to its file."""
        written = self.written[number]
        if written.value is None and written.file is None:
            return [Emit(number, keys, value, weight, span)]
        parts = (*keys, value, *(() if weight is None else (weight,)))
        first: list[Statement] = []
        replaced = written.variables[len(keys)] if written.value is not None else None
        given = tuple(
            part if written.names(var) + (var != replaced) == 1 else self.once(part, first, span)
            for var, part in zip(written.variables, parts, strict=True)
        )
        kept = given[: len(keys)], given[len(keys)], None if weight is None else given[-1]
        keys, value, weight = kept
        file = written.of(written.file, given)
        text = written.of(written.value, given)
        named = keys if file is None else (*keys, file)
        return [*first, Emit(number, named, value if text is None else text, weight, span)]

    def once(self, part: Expression, first: list[Statement], span: Span) -> Expression:
        """What calls functions is worked out once, for these may emit something themselves."""
        if not any(isinstance(node, Apply) for node in nodes_in(part)):
            return part
        var = self.new_var("", part.type)
        first.append(Declare(var, None, span))
        first.append(Assign(Place(var, (), part.type, span), part, span))
        return Get(var, part.span)


def weighed(weight: Expression, table: Table) -> Expression:
    """A weight that has no value if the table could do nothing with it."""
    name = TABLES[table.kind].weighed
    is_plain = isinstance(weight, Const) and weight.type == INT and (weight.value or 0) >= 0
    if name is None or is_plain or UNKNOWN in (weight.type, table.weight):
        return weight
    return Intrinsic(name, (weight,), weight.type, weight.span)


def substituted(template: Any, var: Var, value: Expression) -> Any:
    """An expression with another one in the place of a variable."""
    if isinstance(template, Get) and template.var == var:
        return value
    if isinstance(template, tuple):
        return tuple(substituted(t, var, value) for t in template)
    fields = getattr(template, "__dataclass_fields__", {})
    changed = {
        name: substituted(getattr(template, name), var, value)
        for name in fields
        if name in ("arguments", "base", "index", "value", "items", "left", "right", "parameters")
    }
    return replace(template, **changed) if changed else template


def predeclared(reader: TableReader) -> None:
    """`stdout`, `stderr` and `output`, and what counts values that are not there."""
    text = Var(-1, "s", STRING)
    arguments = (Const("%s\n", STRING), Get(text))
    for name in ("stdout", "stderr"):
        number = len(reader.tables)
        reader.tables.append(Table(name, "collection", None, (), STRING, file=name))
        assert not isinstance(signature("format", (STRING, STRING)), str)
        reader.written[number] = TableWriting((text,), Intrinsic("format", arguments, STRING))
        reader.names.levels[0][name] = TableName(number)
    for table in (
        Table("output", "collection", None, (), BYTES, file="stdout"),
        Table(UNDEFINED_COUNT, "sum", None, (), INT),
        Table(UNDEFINED_REASONS, "sum", None, (("reason", STRING),), INT),
    ):
        variables = tuple(Var(-1, n or "", t) for n, t in (*table.indexes, ("", table.value)))
        reader.written[len(reader.tables)] = TableWriting(variables)
        reader.names.levels[0][table.name] = TableName(len(reader.tables))
        reader.tables.append(table)
