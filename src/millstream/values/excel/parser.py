"""From the text of a formula to its tree, by operator precedence.

Unary minus binds tighter than `^`, which is left-associative: -2^2 is 4 and 2^3^2 is 64.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from millstream.errors import ParseError
from millstream.source import Source, Span
from millstream.values.excel.lexer import LexerFault, Token, tokens_of
from millstream.values.excel.syntax import (
    MAX_COLUMN,
    MAX_ROW,
    Binary,
    Call,
    Cell,
    Constants,
    Group,
    Literal,
    Name,
    Node,
    Range,
    Unary,
    column_number,
)
from millstream.values.excel.values import ERRORS_BY_NAME, VALUE, ErrorValue, Scalar

#: Excel's own limit.
MAX_LENGTH = 8192
#: Excel allows 64 levels of functions; parentheses and chains may be deeper.
MAX_DEPTH = 1000

_BINARY = {
    "=": 1, "<>": 1, "<": 1, ">": 1, "<=": 1, ">=": 1, "&": 2, "+": 3, "-": 3, "*": 4, "/": 4,
    "^": 5,
}  # fmt: skip
_CELL = re.compile(r"(\$?)([A-Za-z]+)(\$?)(\d+)")
_UNARY = 6
_PERCENT = 7
_INTERSECTION = 8
_RANGE = 9


class Sheets(Protocol):
    """What the parser must know about the workbook."""

    def sheet_name(self, name: str) -> str | None:
        """The name of a worksheet as the workbook spells it."""
        ...

    def sheets_between(self, first: str, last: str) -> Sequence[str]: ...

    def table(self, text: str, sheet: str, row: int) -> Node | None:
        """The cells that a structured reference such as `Sales[Price]` names."""
        ...


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a formula stands: file, worksheet and cell, for messages and `[#This Row]`."""

    file: str
    sheet: str
    address: str
    row: int = 1

    @property
    def place(self) -> str:
        return f"{self.file} {self.sheet}!{self.address}"


def parse_formula(text: str, origin: Origin, sheets: Sheets) -> Node:
    """The tree of a formula without its `=`; a `ParseError` that points at what is wrong."""
    if len(text) > MAX_LENGTH:
        raise ParseError(
            f"this formula has {len(text):,} characters; Excel allows {MAX_LENGTH:,}",
            place=origin.place,
        )
    try:
        tokens = tokens_of(text)
    except LexerFault as fault:
        raise _error(str(fault), text, origin, fault.start, fault.start + 1) from None
    parser = _Parser(text, tokens, origin, sheets)
    node = parser.expression(0)
    if parser.token.kind != "end":
        parser.fail(f'expected an operator, got "{parser.token.text}"')
    return node


def _error(
    message: str, text: str, origin: Origin, start: int, end: int, hint: str | None = None
) -> ParseError:
    return ParseError(message, span=Span(Source(origin.place, f"={text}"), start + 1, end + 1),
                      hint=hint)  # fmt: skip


@dataclass
class _Parser:
    """Mutable: a position in the tokens."""

    text: str
    tokens: list[Token]
    origin: Origin
    sheets: Sheets
    position: int = 0
    depth: int = 0
    stops: list[str] = field(default_factory=list)

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def advance(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        if self.token.kind == "operator" and self.token.text == text:
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            got = f'"{self.token.text}"' if self.token.text else "the end"
            self.fail(f'expected "{text}", got {got}')

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        at = token or self.token
        end = max(at.start + len(at.text), at.start + 1)
        raise _error(message, self.text, self.origin, at.start, end, hint)

    # --- expressions ---

    def expression(self, floor: int) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"this formula is nested deeper than {MAX_DEPTH} levels")
        left = self.prefix()
        while True:
            token = self.token
            if token.kind == "operator" and token.text in _BINARY:
                strength = _BINARY[token.text]
                if strength <= floor:
                    break
                self.advance()
                left = Binary(token.text, left, self.expression(strength))
            elif token.kind == "operator" and token.text == "%" and floor < _PERCENT:
                self.advance()
                left = Unary("%", left)
            elif token.kind == "operator" and token.text == ":" and floor < _RANGE:
                self.advance()
                left = _range(left, self.expression(_RANGE))
            elif isinstance(left, Cell) and self.accept("#"):
                left = Call("ANCHORARRAY", (left,))
            elif self.is_intersection(left) and floor < _INTERSECTION:
                left = Binary(" ", left, self.expression(_INTERSECTION))
            else:
                break
        self.depth -= 1
        return left

    def is_intersection(self, left: Node) -> bool:
        """Do blanks stand between two references?"""
        token = self.token
        starts = token.kind in ("cell", "sheet", "columns", "rows", "name", "table") or (
            token.kind == "operator" and token.text == "("
        )
        return token.has_space and starts and not isinstance(left, (Literal, Constants, Unary))

    def prefix(self) -> Node:
        token = self.token
        if token.kind == "operator" and token.text in ("-", "+"):
            self.advance()
            return Unary(token.text, self.expression(_UNARY))
        if self.accept("@"):
            return Call("SINGLE", (self.expression(_UNARY),))
        return self.atom()

    def atom(self) -> Node:
        token = self.advance()
        match token.kind:
            case "number":
                return Literal(float(token.text))
            case "text":
                return Literal(token.text[1:-1].replace('""', '"'))
            case "error":
                return Literal(ERRORS_BY_NAME.get(token.text, ErrorValue(token.text)))
            case "sheet":
                return self.on_sheet(token)
            case "cell" | "columns" | "rows":
                return self.reference(token, self.origin.sheet)
            case "table":
                return self.structured(token)
            case "name":
                return self.applied(self.word(token, self.origin.sheet))
        if token.text == "(":
            return self.applied(self.group())
        if token.text == "{":
            return self.constants()
        self.position -= 1
        self.fail(f'expected a value, got "{token.text}"' if token.text else "expected a value")

    def applied(self, node: Node) -> Node:
        """`LAMBDA(x,x+1)(2)`: a function that is applied where it is made."""
        while self.token.kind == "operator" and self.token.text == "(" and not self.token.has_space:
            node = Call("LAMBDA.CALL", (node, *self.arguments()))
        return node

    def group(self) -> Node:
        inner = self.expression(0)
        while self.accept(","):
            inner = Binary(",", inner, self.expression(0))
        self.expect(")")
        return Group(inner)

    def word(self, token: Token, sheet: str) -> Node:
        if self.token.kind == "operator" and self.token.text == "(" and not self.token.has_space:
            return self.call(token)
        upper = token.text.upper()
        if upper in ("TRUE", "FALSE"):
            return Literal(upper == "TRUE")
        return Name(token.text, sheet)

    def call(self, token: Token) -> Node:
        name = token.text.upper()
        for prefix in ("_XLFN.", "_XLWS.", "_XLUDF."):
            name = name.removeprefix(prefix)
        return Call(name, self.arguments())

    def arguments(self) -> tuple[Node, ...]:
        """What stands in the parentheses of a call."""
        self.expect("(")
        arguments: list[Node] = []
        if self.accept(")"):
            return ()
        while True:
            is_left_out = self.token.kind == "operator" and self.token.text in (",", ")")
            arguments.append(Literal(None) if is_left_out else self.expression(0))
            if not self.accept(","):
                break
        self.expect(")")
        return tuple(arguments)

    def constants(self) -> Node:
        rows: list[tuple[Scalar, ...]] = []
        row: list[Scalar] = [self.constant()]
        while not self.accept("}"):
            if self.accept(","):
                row.append(self.constant())
            elif self.accept(";"):
                rows.append(tuple(row))
                row = [self.constant()]
            else:
                self.fail('expected ",", ";" or "}" in an array')
        rows.append(tuple(row))
        if any(len(r) != len(rows[0]) for r in rows):
            self.fail("the rows of this array are not equally long")
        return Constants(tuple(rows))

    def constant(self) -> Scalar:
        is_negative = self.accept("-")
        self.accept("+")
        node = self.atom()
        if not isinstance(node, Literal):
            self.fail("expected a constant in an array")
        value = node.value
        return 0.0 - value if is_negative and isinstance(value, float) else value

    # --- references ---

    def on_sheet(self, token: Token) -> Node:
        name = token.text[:-1]
        if name.startswith("'"):
            name = name[1:-1].replace("''", "'")
        name = name.removeprefix("[0]")  # this workbook itself
        if "[" in name:
            self.fail("links to other workbooks are not supported", token,
                      "copy the cells into this workbook")  # fmt: skip
        after = self.advance()
        if after.kind == "error":
            return Literal(ERRORS_BY_NAME.get(after.text, VALUE))
        sheet = self.sheets.sheet_name(name) if name else self.origin.sheet
        if sheet is None and ":" in name:
            return self.on_sheets(name, token, after)
        if sheet is None:
            self.fail(f'unknown worksheet "{name}"', token)
        if after.kind == "name":
            return self.word(after, sheet)
        return self.structured(after) if after.kind == "table" else self.reference(after, sheet)

    def on_sheets(self, name: str, token: Token, after: Token) -> Node:
        """`Jan:Mar!A1`: the same cells on several worksheets, as a union."""
        first, _, last = name.partition(":")
        sheets = self.sheets.sheets_between(first, last)
        if not sheets:
            self.fail(f'unknown worksheets "{name}"', token)
        start = self.reference(after, sheets[0])
        if self.accept(":"):
            start = _range(start, self.reference(self.advance(), sheets[0]))
        union = _moved(start, sheets[0])
        for sheet in sheets[1:]:
            union = Binary(",", union, _moved(start, sheet))
        return Group(union)

    def reference(self, token: Token, sheet: str) -> Node:
        if token.kind not in ("cell", "columns", "rows"):
            self.fail("expected a reference after the worksheet", token)
        if token.kind == "cell":
            return self.cell(token, sheet)
        left, _, right = token.text.partition(":")
        fixed = (left.startswith("$"), right.startswith("$"))
        first, last = left.lstrip("$"), right.lstrip("$")
        if token.kind == "columns":
            low, high = column_number(first), column_number(last)
            if max(low, high) > MAX_COLUMN:
                return Name(token.text, sheet)
            return Range(
                Cell(sheet, 1, min(low, high), True, fixed[0]),
                Cell(sheet, MAX_ROW, max(low, high), True, fixed[1]),
            )
        top, bottom = sorted((int(first), int(last)))
        return Range(
            Cell(sheet, top, 1, fixed[0], True),
            Cell(sheet, min(bottom, MAX_ROW), MAX_COLUMN, fixed[1], True),
        )

    def cell(self, token: Token, sheet: str) -> Node:
        match = _CELL.fullmatch(token.text)
        assert match is not None
        column_fixed, letters, row_fixed, digits = match.groups()
        row, column = int(digits), column_number(letters)
        if column > MAX_COLUMN or row > MAX_ROW:
            return Name(token.text, sheet)
        return Cell(sheet, row, column, bool(row_fixed), bool(column_fixed))

    def structured(self, token: Token) -> Node:
        node = self.sheets.table(token.text, self.origin.sheet, self.origin.row)
        if node is None:
            self.fail(f'unknown table or column "{token.text}"', token)
        return node


def _range(left: Node, right: Node) -> Node:
    """`A1:B2`, with its corners in order; anything else is a range to be computed."""
    if not (isinstance(left, (Cell, Range)) and isinstance(right, (Cell, Range))):
        return Binary(":", left, right)
    a, b = _corners(left), _corners(right)
    cells = (*a, *b)
    sheet = a[0].sheet
    top = min(cells, key=lambda c: c.row)
    bottom = max(cells, key=lambda c: c.row)
    near = min(cells, key=lambda c: c.column)
    far = max(cells, key=lambda c: c.column)
    return Range(
        Cell(sheet, top.row, near.column, top.row_fixed, near.column_fixed),
        Cell(sheet, bottom.row, far.column, bottom.row_fixed, far.column_fixed),
    )


def _corners(node: Cell | Range) -> tuple[Cell, Cell]:
    return (node.first, node.last) if isinstance(node, Range) else (node, node)


def _moved(node: Node, sheet: str) -> Node:
    def moved(cell: Cell) -> Cell:
        return Cell(sheet, cell.row, cell.column, cell.row_fixed, cell.column_fixed)

    if isinstance(node, Range):
        return Range(moved(node.first), moved(node.last))
    return moved(node) if isinstance(node, Cell) else node
