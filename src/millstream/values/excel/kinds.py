"""Which kinds of values a formula can give: number, text, boolean, error, empty."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable

from millstream.values.excel import syntax
from millstream.values.excel.functions_date import DATES
from millstream.values.excel.table import FAMILIES
from millstream.values.excel.values import ErrorValue, Scalar


class Kind(enum.Enum):
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    ERROR = "error"
    EMPTY = "empty"
    #: Where one kind is wanted for what may be any: a status tells which.
    MIXED = "of several kinds"


Kinds = frozenset[Kind]
ANY: Kinds = frozenset((Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN, Kind.ERROR))
NUMBER_OR_ERROR: Kinds = frozenset((Kind.NUMBER, Kind.ERROR))
TEXT_OR_ERROR: Kinds = frozenset((Kind.TEXT, Kind.ERROR))
BOOLEAN_OR_ERROR: Kinds = frozenset((Kind.BOOLEAN, Kind.ERROR))
ONLY_ERROR: Kinds = frozenset((Kind.ERROR,))

Reference = syntax.Cell | syntax.Range | syntax.WindowOf | syntax.Name
#: Kinds of the cells that a reference names.
Lookup = Callable[[Reference], Kinds]

_COMPARISONS = ("=", "<>", "<", ">", "<=", ">=")
_NUMBERS_OF_TEXT = frozenset({
    "CODE", "FIND", "FINDB", "LEN", "LENB", "N", "NUMBERVALUE", "SEARCH", "SEARCHB", "UNICODE",
    "VALUE",
})  # fmt: skip
_TEXTS_OF_NUMBERS = frozenset({
    "BASE", "BIN2HEX", "BIN2OCT", "DEC2BIN", "DEC2HEX", "DEC2OCT", "HEX2BIN", "HEX2OCT",
    "OCT2BIN", "OCT2HEX", "ROMAN", "ADDRESS",
})  # fmt: skip
_NUMBERS_OF_LOOKUPS = frozenset({
    "MATCH", "XMATCH", "MDETERM", "MINVERSE", "MMULT", "MUNIT", "SEQUENCE",
})  # fmt: skip
_OF_TEXT = ("text", "complex numbers")
#: What they give are values of their first argument.
_PARTS_OF_THE_FIRST = frozenset({
    "CHOOSECOLS", "CHOOSEROWS", "DROP", "INDEX", "SINGLE", "SORT", "SORTBY", "TAKE", "TOCOL",
    "TOROW", "TRANSPOSE", "UNIQUE",
})  # fmt: skip
_NUMBERS_OF_REFERENCES = frozenset({"ROW", "COLUMN", "ROWS", "COLUMNS", "AREAS", "SHEET", "SHEETS"})


def kind_of(value: Scalar) -> Kind:
    if value is None:
        return Kind.EMPTY
    if type(value) is float:
        return Kind.NUMBER
    if type(value) is bool:
        return Kind.BOOLEAN
    return Kind.ERROR if type(value) is ErrorValue else Kind.TEXT


def kinds_of(node: syntax.Node, lookup: Lookup) -> Kinds:
    """All kinds a formula can give, generously."""
    match node:
        case syntax.Literal(value):
            return frozenset((kind_of(value),))
        case syntax.Constants(rows):
            return frozenset(kind_of(v) for row in rows for v in row)
        case syntax.Cell() | syntax.Range() | syntax.WindowOf() | syntax.Name():
            return lookup(node)
        case syntax.Group(inner):
            return kinds_of(inner, lookup)
        case syntax.Unary("+", operand):
            return kinds_of(operand, lookup)
        case syntax.Unary():
            return NUMBER_OR_ERROR
        case syntax.Binary(operator, _, _):
            return _operator_kinds(operator, node, lookup)
        case syntax.Call(function, arguments):
            return _call_kinds(function, arguments, lookup)


def _operator_kinds(operator: str, node: syntax.Binary, lookup: Lookup) -> Kinds:
    if operator in _COMPARISONS:
        return BOOLEAN_OR_ERROR
    if operator == "&":
        return TEXT_OR_ERROR
    if operator in (":", " ", ","):
        return ANY | {Kind.EMPTY}
    return NUMBER_OR_ERROR


def _union(nodes: Iterable[syntax.Node], lookup: Lookup) -> Kinds:
    return frozenset().union(*(kinds_of(n, lookup) for n in nodes))


def _call_kinds(function: str, arguments: tuple[syntax.Node, ...], lookup: Lookup) -> Kinds:
    match function:
        case "IF":
            rest = _union(arguments[1:], lookup)
            missing = frozenset((Kind.BOOLEAN,)) if len(arguments) < 3 else frozenset()
            return rest | missing | ONLY_ERROR
        case "IFERROR" | "IFNA":
            first, second = (kinds_of(a, lookup) for a in arguments)
            kept = first - {Kind.ERROR} if function == "IFERROR" else first
            return kept | second
        case "CHOOSE":
            return _union(arguments[1:], lookup) | ONLY_ERROR
        case "IFS":
            return _union(arguments[1::2], lookup) | ONLY_ERROR
        case "SWITCH":
            otherwise = arguments[-1:] if len(arguments) % 2 == 0 else ()
            return _union((*arguments[2::2], *otherwise), lookup) | ONLY_ERROR
        case "FILTER":
            return _union(arguments[::2], lookup) | ONLY_ERROR
        case "HSTACK" | "VSTACK":
            return _union(arguments, lookup) | ONLY_ERROR
        case "VLOOKUP" | "HLOOKUP":
            return kinds_of(_looked_up(function, arguments), lookup) | ONLY_ERROR
        case "LOOKUP":
            return kinds_of(arguments[-1], lookup) | ONLY_ERROR
        case "XLOOKUP":
            return _union(arguments[2:4], lookup) | ONLY_ERROR
        case _ if function in _PARTS_OF_THE_FIRST:
            return kinds_of(arguments[0], lookup) | ONLY_ERROR
        case "LET" if len(arguments) % 2 and len(arguments) >= 3:
            return kinds_of(arguments[-1], _with_names(arguments[:-1], lookup)) | ONLY_ERROR
        case "LAMBDA" if arguments:
            return kinds_of(arguments[-1], lookup) | ONLY_ERROR
        case "BYCOL" | "BYROW" | "MAKEARRAY" | "MAP":
            return kinds_of(arguments[-1], lookup) | ONLY_ERROR
        case "REDUCE" | "SCAN":
            return _union((arguments[0], arguments[-1]), lookup) | ONLY_ERROR
        case "LAMBDA.CALL":
            return kinds_of(arguments[0], lookup) | ONLY_ERROR
    return _table_kinds(function)


def _looked_up(function: str, arguments: tuple[syntax.Node, ...]) -> syntax.Node:
    """The column or row of a table that a lookup takes its values from, if that is written."""
    match arguments[1:3]:
        case (syntax.Range(first, last), syntax.Literal(float(number))):
            step = int(number) - 1
            if function == "VLOOKUP" and 0 <= step <= last.column - first.column:
                column = first.column + step
                return syntax.Range(
                    syntax.Cell(first.sheet, first.row, column),
                    syntax.Cell(first.sheet, last.row, column),
                )
            if function == "HLOOKUP" and 0 <= step <= last.row - first.row:
                row = first.row + step
                return syntax.Range(
                    syntax.Cell(first.sheet, row, first.column),
                    syntax.Cell(first.sheet, row, last.column),
                )
    return arguments[1]


def _with_names(bound: tuple[syntax.Node, ...], lookup: Lookup) -> Lookup:
    """As `lookup`, and what LET has given names to."""
    known: dict[str, Kinds] = {}

    def with_names(node: Reference) -> Kinds:
        if not isinstance(node, syntax.Name):
            return lookup(node)
        kinds = known.get(node.name.casefold())
        return lookup(node) if kinds is None else kinds

    for name, value in zip(bound[::2], bound[1::2], strict=True):
        if isinstance(name, syntax.Name):
            known[name.name.casefold()] = kinds_of(value, with_names)
    return with_names


def _table_kinds(function: str) -> Kinds:
    if function in ("AND", "OR", "NOT", "XOR", "TRUE", "FALSE", "EXACT", "ISREF", "ISFORMULA"):
        return BOOLEAN_OR_ERROR
    if function in _NUMBERS_OF_TEXT | _NUMBERS_OF_LOOKUPS | _NUMBERS_OF_REFERENCES:
        return NUMBER_OR_ERROR
    if function in ("IMABS", "IMAGINARY", "IMARGUMENT", "IMREAL"):
        return NUMBER_OR_ERROR
    if function in _TEXTS_OF_NUMBERS or any(function in FAMILIES[f] for f in _OF_TEXT):
        return TEXT_OR_ERROR
    if function in FAMILIES["information"]:
        return BOOLEAN_OR_ERROR if function.startswith("IS") else NUMBER_OR_ERROR
    families = ("mathematics", "statistics", "financial", "distributions", "regression",
                "conversions", "significance", "securities")  # fmt: skip
    if function in DATES or any(function in FAMILIES[f] for f in families):
        return NUMBER_OR_ERROR
    if function in FAMILIES["conditions"] and function != "DGET":
        return NUMBER_OR_ERROR
    return ANY | {Kind.EMPTY}
