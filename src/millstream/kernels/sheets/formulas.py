"""From formulas to statements on plain doubles.

Each method gives an operand for a node. The kind of every value is known here, so nothing is
looked at twice at run time; what would need to be is `NotCompiled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from millstream.calculus.sheets import Address
from millstream.kernels.sheets.aggregates import Aggregates, Surroundings
from millstream.kernels.sheets.operands import (
    EMPTY,
    FIRST_ERROR,
    OK,
    ZERO,
    NotCompiled,
    Operand,
    constant,
    pair,
    refuse_if,
    written_number,
)
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import (
    Binary,
    Call,
    Cell,
    Group,
    Literal,
    Node,
    Range,
    Unary,
    WindowOf,
)

NUMBER, TEXT, BOOLEAN = Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN
_DIV0, _VALUE, _REF, _NA = FIRST_ERROR + 1, FIRST_ERROR + 2, FIRST_ERROR + 3, FIRST_ERROR + 6

_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "^": "power"}
_COMPARISONS = {"=": "== 0", "<>": "!= 0", "<": "< 0", ">": "> 0", "<=": "<= 0", ">=": ">= 0"}
_ONE_NUMBER = {
    "ABS": "absolute", "INT": "integer", "SIGN": "sign", "SQRT": "square_root",
    "EXP": "exponential", "LN": "natural_log", "SIN": "sine", "COS": "cosine",
    "TAN": "tangent", "ATAN": "arc_tangent",
}  # fmt: skip
_TWO_NUMBERS = {
    "POWER": "power", "MOD": "mod", "ROUND": "rounded", "ROUNDUP": "rounded_up",
    "ROUNDDOWN": "rounded_down",
}  # fmt: skip
_ROUNDINGS = {name: f"{_TWO_NUMBERS[name]}_at" for name in ("ROUND", "ROUNDUP", "ROUNDDOWN")}
_MAY_GIVE_REFERENCES = frozenset({"IF", "IFERROR", "IFNA", "INDEX"})
#: Ranges with more cells are not written out.
MAX_RANGE = 2_000


class Formulas:
    """Generates statements for formulas into the lines of its surroundings."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.lines = around.lines
        self.aggregates = Aggregates(around, self.operand)

    def root(self, node: Node) -> Operand:
        """The value of a cell: what is empty is the number zero."""
        result = self.operand(node)
        if isinstance(node, Binary) and node.operator in ("+", "-"):
            left = self._last_left
            self.lines.used.add("or_zero")
            value, _ = self.lines.fresh()
            self.lines.add(f"{value} = or_zero({result.value}, {left.value})")
            return Operand(NUMBER, value, result.status, may_be_empty=False)
        if result.is_sure or not result.may_be_empty:
            return replace(result, is_reference=False, may_be_empty=False)
        value, status = self.lines.fresh()
        shown = OK if result.kind is NUMBER else ZERO
        self.lines.add(f"{value} = {result.value}")
        self.lines.add(
            f"{status} = {shown} if {result.status} == {EMPTY} or {result.status} == 1 "
            f"else {result.status}"
        )
        is_shown = result.kind is not NUMBER
        return Operand(result.kind, value, status, shows_zero=is_shown, may_be_empty=False)

    def operand(self, node: Node) -> Operand:
        match node:
            case Literal(value):
                return constant(value, self.around.texts)
            case Group(inner):
                return self.operand(inner)
            case Cell(sheet, row, column):
                return self._cell((sheet, row, column))
            case Unary(operator, inner):
                return self._unary(operator, inner)
            case Binary(operator, left, right):
                return self._binary(operator, left, right)
            case Call(function, arguments):
                return self._call(function, arguments)
            case WindowOf():
                raise NotCompiled("a window outside an aggregate")
            case _:
                raise NotCompiled(f"{type(node).__name__} in a formula")

    def _cell(self, address: Address) -> Operand:
        operand = self.around.cell(address)
        if operand is not None:
            return replace(operand, is_reference=True)
        fixed = constant(self.around.fixed(address), self.around.texts)
        return replace(fixed, is_reference=True)

    # --- operators ---

    def number(self, operand: Operand) -> Operand:
        """An operand where a number is wanted."""
        refuse_if(operand.kind is TEXT, "a text where a number is wanted")
        return operand

    def _unary(self, operator: str, inner: Node) -> Operand:
        operand = self.operand(inner)
        if operator == "+":
            return operand
        function = "negate" if operator == "-" else "percent"
        return self.lines.call(NUMBER, function, *pair(self.number(operand)))

    def _binary(self, operator: str, left: Node, right: Node) -> Operand:
        a, b = self.operand(left), self.operand(right)
        if operator in _ARITHMETIC:
            result = self.lines.call(
                NUMBER, _ARITHMETIC[operator], *pair(self.number(a)), *pair(self.number(b))
            )
            self._last_left = a
            return result
        if operator in _COMPARISONS:
            return self._comparison(operator, a, b)
        raise NotCompiled(f"the operator {operator}")

    def _comparison(self, operator: str, a: Operand, b: Operand) -> Operand:
        kind = b.kind if a.is_left_out else a.kind
        if not (a.is_left_out or b.is_left_out) and a.kind is not b.kind:
            raise NotCompiled("a comparison of different kinds")
        refuse_if(kind is TEXT and operator not in ("=", "<>"), "an order of texts")
        if kind is not NUMBER:
            self._no_zero(a, b)
        return self.compared(kind, operator, a, b)

    def compared(self, kind: Kind, operator: str, a: Operand, b: Operand) -> Operand:
        function = "compared" if kind is NUMBER else "compared_plainly"
        arguments = [a.value, a.status, b.value, b.status]
        if kind is TEXT:
            arguments = [self._folded(a), a.status, self._folded(b), b.status]
        self.lines.used.add(function)
        order, status = self.lines.fresh()
        self.lines.add(f"{order}, {status} = {function}({', '.join(arguments)})")
        value, _ = self.lines.fresh()
        self.lines.add(f"{value} = 1.0 if {order} {_COMPARISONS[operator]} else 0.0")
        return Operand(BOOLEAN, value, status, may_be_empty=False)

    def _folded(self, operand: Operand) -> str:
        """The number of the text in small letters; texts are compared without case."""
        return "0.0" if operand.is_left_out else f"folded[int({operand.value})]"

    def _no_zero(self, *operands: Operand) -> None:
        """A text or boolean cell that may show zero for an empty one is two kinds."""
        if any(o.shows_zero for o in operands):
            raise NotCompiled("a comparison with what may be an empty cell shown as zero")

    # --- calls ---

    def _call(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        if any(isinstance(n, WindowOf) for n in arguments):
            return self.aggregates.call(function, arguments)
        method = _METHODS.get(function)
        if method is not None:
            return method(self, arguments)
        if function in _ONE_NUMBER and len(arguments) == 1:
            return self.lines.call(
                NUMBER, _ONE_NUMBER[function], *pair(self.number(self.operand(arguments[0])))
            )
        if function in _ROUNDINGS and len(arguments) == 2:
            places = written_number(arguments[1])
            if places is not None:
                return self._rounded(_ROUNDINGS[function], arguments[0], places)
        if function in _TWO_NUMBERS and len(arguments) == 2:
            a, b = (self.number(self.operand(n)) for n in arguments)
            return self.lines.call(NUMBER, _TWO_NUMBERS[function], *pair(a), *pair(b))
        if function in FOLDS:
            return self._fold(function, arguments)
        raise NotCompiled(f"the function {function}")

    def _rounded(self, function: str, number: Node, places: float) -> Operand:
        whole = max(-300, min(300, int(places)))
        scale = 10.0 ** abs(whole)
        return self.lines.call(
            NUMBER, function, *pair(self.number(self.operand(number))), repr(scale), str(whole >= 0)
        )

    def if_(self, arguments: tuple[Node, ...]) -> Operand:
        condition = self.number(self.operand(arguments[0]))
        texts = self.around.texts
        then, other = constant(True, texts), constant(False, texts)
        if len(arguments) > 1:
            then = self.branch(condition, "== 0.0", lambda: self.side(arguments[1]))
        if len(arguments) > 2:
            other = self.branch(condition, "!= 0.0", lambda: self.side(arguments[2]))
        chosen = self.choice(condition, then, other)
        return replace(
            chosen,
            kind=self._common(then, other),
            shows_zero=then.shows_zero or other.shows_zero,
            may_be_empty=then.may_be_empty or other.may_be_empty,
        )

    def side(self, node: Node) -> Operand:
        return self.operand(node)

    def branch(self, condition: Operand, test: str, make: Callable[[], Operand]) -> Operand:
        """One side of IF, which is not taken if the condition meets the test."""
        return make()

    def choice(self, condition: Operand, then: Operand, other: Operand) -> Operand:
        return self.lines.call(then.kind, "choose", *pair(condition), *pair(then), *pair(other))

    def _common(self, a: Operand, b: Operand) -> Kind:
        if a.is_left_out or b.is_left_out:
            return b.kind if a.is_left_out else a.kind
        refuse_if(a.kind is not b.kind, f"a value that is {a.kind.value} or {b.kind.value}")
        return a.kind

    def if_error(self, arguments: tuple[Node, ...]) -> Operand:
        return self._or_else("if_error", arguments)

    def if_na(self, arguments: tuple[Node, ...]) -> Operand:
        return self._or_else("if_na", arguments)

    def _or_else(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        a, b = self.operand(arguments[0]), self.operand(arguments[1])
        chosen = self.lines.call(self._common(a, b), function, *pair(a), *pair(b))
        return replace(
            chosen,
            shows_zero=a.shows_zero or b.shows_zero,
            may_be_empty=a.may_be_empty or b.may_be_empty,
        )

    def not_(self, arguments: tuple[Node, ...]) -> Operand:
        operand = self.number(self.operand(arguments[0]))
        value, status = self.lines.fresh()
        self.lines.add(f"{value} = 1.0 if {operand.value} == 0.0 else 0.0")
        self.lines.add(f"{status} = {operand.status} if {operand.status} >= {FIRST_ERROR} else 0")
        return Operand(BOOLEAN, value, status, may_be_empty=False)

    def length(self, arguments: tuple[Node, ...]) -> Operand:
        """LEN of a text, looked up by its number in the dictionary."""
        operand = self.operand(arguments[0])
        refuse_if(operand.kind is not TEXT, "LEN of what is no text")
        self._no_zero(operand)
        value, status = self.lines.fresh()
        self.lines.add(f"{value} = float(lengths[int({operand.value})])")
        self.lines.add(f"{status} = {operand.status} if {operand.status} >= {FIRST_ERROR} else 0")
        return Operand(NUMBER, value, status, may_be_empty=False)

    def pi_(self, arguments: tuple[Node, ...]) -> Operand:
        return Operand(NUMBER, "3.141592653589793")

    # --- functions of many values ---

    def _values(self, arguments: tuple[Node, ...]) -> Iterator[Operand]:
        for node in arguments:
            inner = node
            while isinstance(inner, Group):
                inner = inner.inner
            if isinstance(inner, Range):
                yield from (self._cell(a) for a in addresses(inner))
                continue
            operand = self.operand(inner)
            if isinstance(inner, Call) and inner.function in _MAY_GIVE_REFERENCES:
                # An empty cell behind IF is passed over like any other; here it is a zero.
                refuse_if(not operand.is_sure, f"{inner.function} inside an aggregate")
            yield operand

    def _fold(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        start, step, finish = FOLDS[function]
        total, status = self.lines.fresh()
        count, _ = self.lines.fresh()
        self.lines.add(f"{total} = {start}")
        self.lines.add(f"{status} = 0")
        self.lines.add(f"{count} = 0")
        for operand in self._values(arguments):
            self._folded_in(function, operand, step.format(t=total, v=operand.value, n=count),
                            count, status)  # fmt: skip
        for line in finish:
            self.lines.add(line.format(t=total, n=count, s=status, div0=_DIV0, value=_VALUE))
        if function not in ("AND", "OR", "COUNT", "COUNTA"):
            return self.lines.call(NUMBER, "checked", total, status)
        kind = BOOLEAN if function in ("AND", "OR") else NUMBER
        return Operand(kind, total, status, may_be_empty=False)

    def _folded_in(
        self, function: str, operand: Operand, step: str, count: str, status: str
    ) -> None:
        """One value of an aggregate: errors matter, and of references what is empty does not."""
        if function == "COUNTA":
            if operand.is_reference:
                self.lines.add(f"if {operand.status} != {EMPTY} and {operand.status} != 1:")
                self.lines.add(f"    {count} += 1")
            else:
                self.lines.add(f"{count} += 1")
            return
        refuse_if(operand.kind is TEXT and not operand.is_reference, f"a text in {function}")
        is_counted = self._is_counted(function, operand)
        if function != "COUNT":
            self.lines.add(f"if {operand.status} >= {FIRST_ERROR}:")
            self.lines.add(f"    {status} = {status} if {status} else {operand.status}")
            self.lines.add(f"elif {is_counted}:")
        else:
            self.lines.add(f"if {is_counted}:")
        self.lines.add(f"    {count} += 1")
        if step:
            self.lines.add(f"    {step}")

    def _is_counted(self, function: str, operand: Operand) -> str:
        if not operand.is_reference:
            if operand.is_left_out and function == "PRODUCT":
                return "False"
            return f"{operand.status} < {FIRST_ERROR}"
        if operand.kind is NUMBER or (operand.kind is BOOLEAN and function in ("AND", "OR")):
            return f"{operand.status} == {OK} or {operand.status} == {ZERO}"
        return f"{operand.status} == {ZERO}"

    def sum_of_products(self, arguments: tuple[Node, ...]) -> Operand:
        columns = [list(self._values((n,))) for n in arguments]
        shapes = {shape_of(n) for n in arguments}
        refuse_if(len(shapes) > 1, "SUMPRODUCT of other shapes")
        if not all(isinstance(n, (Range, Cell)) for n in arguments):
            raise NotCompiled("SUMPRODUCT of formulas")
        total, status = self.lines.fresh()
        self.lines.add(f"{total} = 0.0")
        self.lines.add(f"{status} = 0")
        for values in zip(*columns, strict=True):
            for one in values:
                self.lines.add(f"if {status} == 0 and {one.status} >= {FIRST_ERROR}:")
                self.lines.add(f"    {status} = {one.status}")
            parts = [
                f"({v.value} if {v.status} == {OK} else 0.0)" if v.kind is NUMBER else "0.0"
                for v in values
            ]
            self.lines.add(f"{total} += 1.0 * {' * '.join(parts)}")
        return self.lines.call(NUMBER, "checked", total, status)

    # --- lookups in constant tables ---

    def _numbers_in(self, node: Node) -> list[list[float]]:
        if not isinstance(node, Range):
            raise NotCompiled("a lookup in something else than a range")
        width = node.last.column - node.first.column + 1
        values: list[float] = []
        for address in addresses(node):
            value = None if self.around.cell(address) is not None else self.around.fixed(address)
            if type(value) is not float:
                raise NotCompiled("a lookup in cells that are not constant numbers")
            values.append(value)
        return [values[n : n + width] for n in range(0, len(values), width)]

    def _is_near(self, arguments: tuple[Node, ...], place: int) -> bool:
        if len(arguments) <= place:
            return True
        node = arguments[place]
        if not isinstance(node, Literal) or type(node.value) not in (float, bool, type(None)):
            raise NotCompiled("a lookup whose kind is computed")
        return bool(node.value)

    def vlookup(self, arguments: tuple[Node, ...]) -> Operand:
        wanted = self.operand(arguments[0])
        rows = self._numbers_in(arguments[1])
        index = arguments[2]
        if wanted.kind is not NUMBER or not isinstance(index, Literal):
            raise NotCompiled("VLOOKUP of other kinds")
        if type(index.value) is not float or not 1 <= index.value <= len(rows[0]):
            raise NotCompiled("VLOOKUP of another column")
        keys = tuple(r[0] for r in rows)
        results = self.lines.array(tuple(r[int(index.value) - 1] for r in rows))
        place = self.place(wanted, keys, is_near=self._is_near(arguments, 3))
        return self._taken(wanted, place, f"{results}[max({place}, 0)]")

    def place(self, wanted: Operand, keys: tuple[float, ...], *, is_near: bool) -> str:
        function = "approximate_place" if is_near else "exact_place"
        self.lines.used.add(function)
        place, _ = self.lines.fresh()
        self.lines.add(f"{place} = {function}({wanted.value}, {self.lines.array(keys)})")
        return place

    def _taken(self, wanted: Operand, place: str, result: str) -> Operand:
        value, status = self.lines.fresh()
        self.lines.add(f"{value} = {result}")
        self.lines.add(
            f"{status} = {wanted.status} if {wanted.status} >= {FIRST_ERROR} "
            f"else (0 if {place} >= 0 else {_NA})"
        )
        return Operand(NUMBER, value, status, may_be_empty=False)

    def match(self, arguments: tuple[Node, ...]) -> Operand:
        wanted = self.operand(arguments[0])
        refuse_if(wanted.kind is not NUMBER, "MATCH of texts")
        line = [v for row in self._numbers_in(arguments[1]) for v in row]
        mode = arguments[2] if len(arguments) > 2 else Literal(1.0)
        value = mode.value if isinstance(mode, Literal) else None
        if type(value) is not float or value < 0:
            raise NotCompiled("MATCH with this mode")
        place = self.place(wanted, tuple(line), is_near=value > 0)
        return self._taken(wanted, place, f"float({place} + 1)")

    def index(self, arguments: tuple[Node, ...]) -> Operand:
        rows = self._numbers_in(arguments[0])
        refuse_if(len(arguments) != 2 or min(len(rows), len(rows[0])) > 1, "INDEX of a table")
        line = tuple(v for row in rows for v in row)
        place = self.number(self.operand(arguments[1]))
        value, status = self.lines.fresh()
        array, number = self.lines.array(line), f"int({place.value})"
        self.lines.add(f"{value} = {array}[min(max({number} - 1, 0), {len(line) - 1})]")
        self.lines.add(
            f"{status} = {place.status} if {place.status} >= {FIRST_ERROR} else "
            f"({_VALUE} if {number} < 0 else ({_REF} if {number} > {len(line)} else 0))"
        )
        if len(line) == 1:
            return Operand(NUMBER, value, status, may_be_empty=False)
        self.lines.add(f"if {number} == 0 and {status} == 0:")
        self.lines.add(f"    {status} = {_VALUE}")
        return Operand(NUMBER, value, status, may_be_empty=False)

    def is_kind(self, condition: str, arguments: tuple[Node, ...]) -> Operand:
        operand = self.operand(arguments[0])
        value, _ = self.lines.fresh()
        self.lines.add(f"{value} = 1.0 if {condition.format(s=operand.status)} else 0.0")
        return Operand(BOOLEAN, value)


def addresses(node: Range) -> list[Address]:
    height = node.last.row - node.first.row + 1
    width = node.last.column - node.first.column + 1
    refuse_if(height * width > MAX_RANGE, "a range of more than 2,000 cells")
    return [
        (node.sheet, row, column)
        for row in range(node.first.row, node.last.row + 1)
        for column in range(node.first.column, node.last.column + 1)
    ]


def shape_of(node: Node) -> tuple[int, int]:
    if isinstance(node, Range):
        return (node.last.row - node.first.row, node.last.column - node.first.column)
    return (0, 0)


#: Start, what one value does, and what comes last.
FOLDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "SUM": ("0.0", "{t} += {v}", ()),
    "COUNT": ("0.0", "", ("{t} = float({n})",)),
    "COUNTA": ("0.0", "", ("{t} = float({n})",)),
    "AVERAGE": (
        "0.0", "{t} += {v}",
        ("if {s} == 0 and {n} == 0:", "    {s} = {div0}", "{t} = {t} / max({n}, 1)"),
    ),
    "MAX": ("0.0", "{t} = {v} if {n} == 1 else max({t}, {v})", ()),
    "MIN": ("0.0", "{t} = {v} if {n} == 1 else min({t}, {v})", ()),
    "PRODUCT": ("1.0", "{t} *= {v}", ("{t} = {t} if {n} else 0.0",)),
    "AND": (
        "1.0", "{t} = {t} if {v} != 0.0 else 0.0",
        ("if {s} == 0 and {n} == 0:", "    {s} = {value}"),
    ),
    "OR": (
        "0.0", "{t} = 1.0 if {v} != 0.0 else {t}",
        ("if {s} == 0 and {n} == 0:", "    {s} = {value}"),
    ),
}  # fmt: skip

_METHODS: dict[str, Callable[[Formulas, tuple[Node, ...]], Operand]] = {
    "IF": Formulas.if_,
    "IFERROR": Formulas.if_error,
    "IFNA": Formulas.if_na,
    "INDEX": Formulas.index,
    "ISBLANK": lambda f, a: f.is_kind(f"{{s}} == {EMPTY} or {{s}} == 1", a),
    "ISERROR": lambda f, a: f.is_kind(f"{{s}} >= {FIRST_ERROR}", a),
    "ISNA": lambda f, a: f.is_kind(f"{{s}} == {_NA}", a),
    "LEN": Formulas.length,
    "MATCH": Formulas.match,
    "NOT": Formulas.not_,
    "PI": Formulas.pi_,
    "SUMPRODUCT": Formulas.sum_of_products,
    "VLOOKUP": Formulas.vlookup,
}

#: All functions that have a compiled form, for some kinds of values at least.
COMPILED = frozenset((*_METHODS, *_ONE_NUMBER, *_TWO_NUMBERS, *FOLDS))
