"""From formulas to statements on plain doubles.

Each method gives an operand for a node. The kind of every value is known here, so nothing is
looked at twice at run time; what would need to be is `NotCompiled`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from millstream.kernels.sheets.areas import Areas, is_of_areas
from millstream.kernels.sheets.called import Site
from millstream.kernels.sheets.criteria import FUNCTIONS as CRITERIA
from millstream.kernels.sheets.distinct import count_different, different
from millstream.kernels.sheets.formulas_areas import (
    FLOWS,
    OfAreas,
    is_filtered,
    is_of_steps,
    names_only_areas,
)
from millstream.kernels.sheets.formulas_base import BOOLEAN, MIXED, NUMBER, TEXT
from millstream.kernels.sheets.formulas_choices import COMPARISONS, Choices
from millstream.kernels.sheets.formulas_defined import DEFINED, defined_form
from millstream.kernels.sheets.formulas_folds import FOLDS
from millstream.kernels.sheets.formulas_tables import Tables
from millstream.kernels.sheets.functions import OF_NUMBERS, ROUNDINGS, OfNumbers
from millstream.kernels.sheets.operands import (
    BOOLEAN_HELD,
    EMPTY,
    FIRST_ERROR,
    OK,
    TEXT_HELD,
    ZERO,
    NotCompiled,
    Operand,
    constant,
    pair,
    refuse_if,
    written_number,
)
from millstream.kernels.sheets.scanned import (
    SAMPLES,
    Scans,
    is_reduced,
    is_scan,
)
from millstream.kernels.sheets.taken import aggregate_left, left_of
from millstream.kernels.sheets.window_lookups import asks_for_last, lookup_last
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

_DIV0, _VALUE, _NA = FIRST_ERROR + 1, FIRST_ERROR + 2, FIRST_ERROR + 6

_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "^": "power"}


class Formulas(Choices, OfAreas, Tables):
    """Generates statements for formulas into the lines of its surroundings."""

    def root(self, node: Node) -> Operand:
        """The value of a cell: what is empty is the number zero."""
        result = self.operand(node)
        is_called = self.around.site(node) is not None
        if isinstance(node, Binary) and node.operator in ("+", "-") and not is_called:
            left = self._last_left
            self.lines.used.add("or_zero")
            value, _ = self.lines.fresh()
            self.lines.add(f"{value} = or_zero({result.value}, {left.value})")
            return Operand(NUMBER, value, result.status, may_be_empty=False)
        return self.shown(result)

    def shown(self, result: Operand) -> Operand:
        """What is empty as the number zero."""
        if result.is_sure or not result.may_be_empty:
            return replace(result, is_reference=False, may_be_empty=False)
        value, status = self.lines.fresh()
        is_shown = result.kind in (TEXT, BOOLEAN)
        shown = ZERO if is_shown else OK
        self.lines.add(f"{value} = {result.value}")
        self.lines.add(
            f"{status} = {shown} if {result.status} == {EMPTY} or {result.status} == 1 "
            f"else {result.status}"
        )
        return Operand(result.kind, value, status, shows_zero=is_shown, may_be_empty=False)

    def operand(self, node: Node) -> Operand:
        """The value of a part, which is called if it has no compiled form."""
        if self.is_array:
            return self._operand(node)
        site = self.around.site(node)
        if site is None and self.around.is_scratch:
            called = self.called
            try:
                operand = self._operand(node)
            except NotCompiled as reason:
                site = self.around.called_from_now_on(node, str(reason))
            else:
                if self.called == called:
                    self.around.is_compiled(node, operand)
                return operand
        return self._operand(node) if site is None else self.called_operand(site)

    def called_operand(self, site: Site) -> Operand:
        """What a part gives that the loop calls out for."""
        leaves = [self._operand(leaf) for leaf in site.leaves]
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {self.recalled(site, leaves)}")
        return Operand(
            site.kind, value, status, shows_zero=site.shows_zero, may_be_empty=site.may_be_empty
        )

    def _operand(self, node: Node) -> Operand:
        match node:
            case Literal(value):
                return constant(value, self.around.texts)
            case Group(inner):
                return self.operand(inner)
            case Cell(sheet, row, column):
                return self.cell((sheet, row, column))
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

    # --- operators ---

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
        if operator in COMPARISONS:
            return self.comparison(operator, a, b)
        raise NotCompiled(f"the operator {operator}")

    # --- calls ---

    def _call(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        counted = different(function, arguments)
        if counted is not None:
            return count_different(self.aggregates, counted, Call(function, arguments))
        left = left_of(function, arguments)
        if left is not None:
            return aggregate_left(self.aggregates, self.scans(), left, Call(function, arguments))
        if asks_for_last(self.aggregates, function, arguments):
            return lookup_last(self.scans(), arguments)
        if is_filtered(function, arguments):
            return self.of_filtered(function, arguments)
        if is_of_steps(function, arguments):
            return self.of_steps(function, arguments)
        if function in FLOWS:
            return self.flows(function, arguments)
        if is_scan(function, arguments) or is_reduced(function, arguments):
            return self.scan(function, arguments)
        if is_of_areas(function, arguments, is_array=self.is_array):
            return self.of_areas(function, arguments)
        if names_only_areas(function, arguments):
            return self.of_matching(function, arguments)
        if any(isinstance(n, WindowOf) for n in arguments):
            return self.aggregates.call(function, arguments)
        return self._of_values(function, arguments)

    def _of_values(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        method = _METHODS.get(function)
        if method is not None:
            return method(self, arguments)
        if function in ROUNDINGS and len(arguments) == 2:
            places = written_number(arguments[1])
            if places is not None:
                return self._rounded(ROUNDINGS[function], arguments[0], places)
        compiled = OF_NUMBERS.get(function)
        if compiled is not None:
            return self._of_numbers(function, compiled, arguments)
        if function in SAMPLES:
            return self.sample_of_cells(function, arguments)
        definition = defined_form(function)
        if definition is not None:
            return self.defined(function, definition, arguments)
        if function in FOLDS:
            return self._fold(function, arguments)
        raise NotCompiled(f"the function {function}")

    def _of_numbers(
        self, function: str, compiled: OfNumbers, arguments: tuple[Node, ...]
    ) -> Operand:
        """A function of so many numbers; the last ones may be left out."""
        refuse_if(compiled.is_date and self.around.uses_1904, f"{function} in the 1904 system")
        left_out = compiled.count - len(arguments)
        refuse_if(not 0 <= left_out <= len(compiled.defaults), f"{function} of so many values")
        numbers = [pair(self.number(self.operand(n))) for n in arguments]
        numbers += [(repr(x), "0") for x in compiled.defaults[len(compiled.defaults) - left_out :]]
        return self.lines.call(NUMBER, compiled.name, *(part for n in numbers for part in n))

    def _rounded(self, function: str, number: Node, places: float) -> Operand:
        whole = max(-300, min(300, int(places)))
        scale = 10.0 ** abs(whole)
        return self.lines.call(
            NUMBER, function, *pair(self.number(self.operand(number))), repr(scale), str(whole >= 0)
        )

    def length(self, arguments: tuple[Node, ...]) -> Operand:
        """LEN of a text, looked up by its number in the dictionary."""
        operand = self.operand(arguments[0])
        refuse_if(operand.kind is not TEXT, "LEN of what is no text")
        refuse_if(operand.shows_zero, "LEN of what may be an empty cell shown as zero")
        value, status = self.lines.fresh()
        self.lines.add(f"{value} = float(lengths[int({operand.value})])")
        self.lines.add(f"{status} = {operand.status} if {operand.status} >= {FIRST_ERROR} else 0")
        return Operand(NUMBER, value, status, may_be_empty=False)

    def pi_(self, arguments: tuple[Node, ...]) -> Operand:
        return Operand(NUMBER, "3.141592653589793")

    def scans(self) -> Scans:
        return Scans(self.around, self.operand, lambda known: ValueFormulas(self, known))

    def areas(self) -> Areas:
        return Areas(self.around, self.operand, lambda known: ValueFormulas(self, known))

    def in_array(self, node: Node) -> Operand:
        """The value of a cell with an array formula that gives one value."""
        before, self.is_array = self.is_array, True
        try:
            return self.root(node)
        finally:
            self.is_array = before

    def scan(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """An aggregate of a formula over all values of windows."""
        scans = self.scans()
        if function == "SUMPRODUCT":
            return scans.products(arguments)
        if function in SAMPLES:
            return scans.sample(function, arguments)
        if function == "REDUCE":
            first, values, made_by = arguments
            assert isinstance(made_by, Call)
            return scans.reduced(first, values, made_by)
        each = scans.each(scans.elements(arguments))
        return self._folded_over(function, arguments[0], each)

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

    def is_kind(self, condition: str, arguments: tuple[Node, ...]) -> Operand:
        operand = self.operand(arguments[0])
        return self._whether(condition.format(s=operand.status))

    def _whether(self, condition: str) -> Operand:
        value, _ = self.lines.fresh()
        self.lines.add(f"{value} = ({condition}) * 1.0")
        return Operand(BOOLEAN, value, may_be_empty=False)

    def is_of(self, kind: Kind, arguments: tuple[Node, ...]) -> Operand:
        """Is it there, and of this kind?"""
        operand = self.operand(arguments[0])
        if operand.kind is MIXED:
            held = {NUMBER: OK, TEXT: TEXT_HELD, BOOLEAN: BOOLEAN_HELD}[kind]
            return self._whether(f"{operand.status} == {held}")
        if kind is NUMBER and operand.kind is not NUMBER:
            return self._whether(f"{operand.status} == {ZERO}")
        return self._whether(f"{operand.status} == {OK}" if operand.kind is kind else "False")

    def not_of(self, operand: Operand) -> Operand:
        return self._whether(f"{operand.value} == 0.0")

    def as_number(self, arguments: tuple[Node, ...]) -> Operand:
        """N: a text is zero."""
        operand = self.operand(arguments[0])
        refuse_if(operand.kind is MIXED, "N of what may be of several kinds")
        value, status = self.lines.fresh()
        is_there = "False" if operand.kind is TEXT else f"{operand.status} == {OK}"
        self.lines.add(f"{value} = {operand.value} if {is_there} else 0.0")
        self.lines.add(f"{status} = {operand.status} if {operand.status} >= {FIRST_ERROR} else 0")
        return Operand(NUMBER, value, status, may_be_empty=False)

    def exact(self, arguments: tuple[Node, ...]) -> Operand:
        """EXACT: equal texts have one number."""
        a, b = (self.operand(n) for n in arguments)
        is_plain = all(o.kind is TEXT and not o.shows_zero for o in (a, b))
        refuse_if(not is_plain, "EXACT of what is no text")
        value, status = self.lines.fresh()
        self.lines.used.add("first_error")
        self.lines.add(f"{value} = ({a.value} == {b.value}) * 1.0")
        self.lines.add(f"{status} = first_error({a.status}, {b.status})")
        return Operand(BOOLEAN, value, status, may_be_empty=False)


class ValueFormulas(Formulas):
    """Generates statements for one of the values of windows, with what is known of others."""

    def __init__(self, whole: Formulas, known: dict[Node, Operand]) -> None:
        super().__init__(whole.around)
        self.whole = whole
        self.known = known

    def operand(self, node: Node) -> Operand:
        known = self.known.get(node)
        return self._operand(node) if known is None else known

    def value(self, node: Node) -> Operand:
        """What an array of such values holds; only a window itself may hold something empty."""
        while isinstance(node, Group):
            node = node.inner
        operand = self.operand(node)
        return operand if isinstance(node, (WindowOf, Range)) else self.shown(operand)

    def of_names(self, node: Node, names: dict[Node, Operand]) -> Operand:
        return ValueFormulas(self.whole, {**self.known, **names}).operand(node)

    def is_number(self, operand: Operand) -> str:
        return self._is_counted("SUM", replace(operand, is_reference=True))

    def _call(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        return self.shown(self._of_values(function, arguments))

    def told(self, made: Operand, function: str, arguments: tuple[Node, ...]) -> Operand:
        raise NotCompiled(f"{function} of each of many values")

    def recalled(self, site: Site, leaves: Sequence[Operand]) -> str:
        self.whole.called += 1
        return super().recalled(site, leaves)


def shape_of(node: Node) -> tuple[int, int]:
    if isinstance(node, Range):
        return (node.last.row - node.first.row, node.last.column - node.first.column)
    return (0, 0)


_METHODS: dict[str, Callable[[Formulas, tuple[Node, ...]], Operand]] = {
    "CHOOSE": Formulas.choose,
    "IF": Formulas.if_,
    "IFERROR": Formulas.if_error,
    "IFNA": Formulas.if_na,
    "IFS": Formulas.ifs,
    "INDEX": Formulas.index,
    "EXACT": Formulas.exact,
    "ISBLANK": lambda f, a: f.is_kind(f"{{s}} == {EMPTY} or {{s}} == 1", a),
    "ISERROR": lambda f, a: f.is_kind(f"{{s}} >= {FIRST_ERROR}", a),
    "ISNA": lambda f, a: f.is_kind(f"{{s}} == {_NA}", a),
    "ISERR": lambda f, a: f.is_kind(f"{{s}} >= {FIRST_ERROR} and {{s}} != {_NA}", a),
    "ISLOGICAL": lambda f, a: f.is_of(BOOLEAN, a),
    "ISNONTEXT": lambda f, a: f.not_of(f.is_of(TEXT, a)),
    "ISNUMBER": lambda f, a: f.is_of(NUMBER, a),
    "ISTEXT": lambda f, a: f.is_of(TEXT, a),
    "LEN": Formulas.length,
    "N": Formulas.as_number,
    "MATCH": Formulas.match,
    "NOT": Formulas.not_,
    "PI": Formulas.pi_,
    "SUMPRODUCT": Formulas.sum_of_products,
    "SWITCH": Formulas.switch,
    "VLOOKUP": Formulas.vlookup,
    "NETWORKDAYS": lambda f, a: f.working_days("NETWORKDAYS", a),
    "WORKDAY": lambda f, a: f.working_days("WORKDAY", a),
}

#: All functions that have a compiled form, for some kinds of values at least.
COMPILED = frozenset((*_METHODS, *OF_NUMBERS, *FOLDS, *SAMPLES, *DEFINED, *CRITERIA))
