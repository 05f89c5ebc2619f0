"""COUNTIF, SUMIFS, MAXIFS and their kin over windows.

Where criteria do not change it is known of each element when it enters whether it meets all of
them; what is counted, added up or the greatest is then kept as for a window of its own. Where
one is computed, `">"&B2`, the whole window is looked at, but to count by one criterion a tree of
the numbers suffices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from millstream.kernels.sheets.operands import (
    FIRST_ERROR,
    NotCompiled,
    Operand,
    pair,
    refuse_if,
    written_number,
)
from millstream.kernels.sheets.windows import Condition, Conditions, Scan
from millstream.kernels.windows.criteria import (
    AT_LEAST,
    AT_MOST,
    EQUAL,
    GREATER,
    ITSELF,
    LESS,
    UNEQUAL,
)
from millstream.kernels.windows.sums import CELL
from millstream.values.excel.gather import has_wildcards, typed
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Binary, Call, Cell, Literal, Node, WindowOf
from millstream.values.excel.syntax import Group as Parenthesis
from millstream.values.excel.values import ERRORS, ErrorValue, Scalar, to_text

if TYPE_CHECKING:
    from millstream.kernels.sheets.aggregates import Aggregates, Seen

NUMBER, TEXT, BOOLEAN = Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN
FUNCTIONS = frozenset({
    "COUNTIF", "SUMIF", "AVERAGEIF", "COUNTIFS", "SUMIFS", "AVERAGEIFS", "MAXIFS", "MINIFS",
})  # fmt: skip
_CRITERION = re.compile(r"(<>|<=|>=|=|<|>)?(.*)", re.DOTALL)
_ORDERS = {
    "<": "{v} < {c} and not same({v}, {c})", ">": "{v} > {c} and not same({v}, {c})",
    "<=": "({v} <= {c} or same({v}, {c}))", ">=": "({v} >= {c} or same({v}, {c}))",
}  # fmt: skip
_KINDS = {
    "": EQUAL, "=": EQUAL, "<>": UNEQUAL, "<": LESS, ">": GREATER, "<=": AT_MOST, ">=": AT_LEAST,
}  # fmt: skip
_IS_EMPTY = "({s} == 1 or {s} == 2)"
_NOT_PLAIN = "only texts that say more as criteria, such as >5 or a*"
#: Names to be filled in when a condition is written out.
_NAMES = {"v": "{v}", "s": "{s}"}


class HasSource(Protocol):
    """A window or an area of which it is known what its values are."""

    @property
    def source(self) -> Operand: ...


def summed_and_tested(
    function: str, arguments: tuple[Node, ...]
) -> tuple[Node, list[tuple[Node, Node]]]:
    """What is summed, and what must meet which criterion; all forms as the one of SUMIFS."""
    summed, rest = arguments[0], arguments[1:]
    if function in ("COUNTIF", "COUNTIFS"):
        rest = arguments
    elif function in ("SUMIF", "AVERAGEIF"):
        summed, rest = (arguments[2] if len(arguments) > 2 else summed), arguments[:2]
    refuse_if(len(rest) % 2 or not rest, f"{function} of so many values")
    return summed, list(zip(rest[::2], rest[1::2], strict=True))


class Criteria:
    """Generates statements for aggregates of what meets criteria."""

    def __init__(self, aggregates: Aggregates) -> None:
        self.aggregates = aggregates
        self.around = aggregates.around
        self.lines = aggregates.lines

    def call(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """All forms as the one of SUMIFS: what is summed, then windows and their criteria."""
        first, tested = summed_and_tested(function, arguments)
        if not all(isinstance(n, WindowOf) for n in (first, *(node for node, _ in tested))):
            raise NotCompiled(f"{function} of a window and something else")
        summed, *windows = (self.aggregates.seen(n) for n in (first, *(n for n, _ in tested)))
        if any(w.group is not summed.group for w in windows):
            raise NotCompiled(f"{function} of windows of different ticks")
        criteria = [(window, node) for window, (_, node) in zip(windows, tested, strict=True)]
        self.whole = Call(function, arguments)
        name = function.removesuffix("S").removesuffix("IF")
        if all(self.is_constant(node) for _, node in criteria):
            conditions = (Condition(w.column, self._test(w, self._fixed(n))) for w, n in criteria)
            return self._constant(name, summed, tuple(dict.fromkeys(conditions)))
        return self._computed(name, summed, criteria)

    def of_source(self, tested: HasSource, node: Node) -> tuple[str, str]:
        """A criterion as an expression of a value and its status, and when it may be used."""
        if self.is_constant(node):
            return self._test(tested, self._fixed(node)), ""
        text = self._text_wanted(tested, node)
        if text is None:
            return f"is_met({{s}}, {{v}}, {self._bounds(tested, node)})", ""
        wanted, is_other = text
        test = f"{{s}} == 0 and folded[np.int64({{v}})] == folded[np.int64({wanted.value})]"
        plain = f"({wanted.status} == 0 and plain[np.int64({wanted.value})] != 0)"
        return f"({test}) != {is_other}", plain

    # --- criteria that do not change ---

    def is_constant(self, node: Node) -> bool:
        match node:
            case Literal():
                return True
            case Parenthesis(inner):
                return self.is_constant(inner)
            case Cell(sheet, row, column):
                return self.around.cell((sheet, row, column)) is None
            case Binary("&", left, right):
                return self.is_constant(left) and self.is_constant(right)
            case _:
                return written_number(node) is not None

    def constant_number(self, node: Node) -> float | None:
        """A number that never changes, written there or in a cell."""
        value = self._fixed(node) if self.is_constant(node) else None
        return value if type(value) is float else None

    def _fixed(self, node: Node) -> Scalar:
        """The value of a constant, as it is."""
        match node:
            case Literal(value):
                return value
            case Parenthesis(inner):
                return self._fixed(inner)
            case Cell(sheet, row, column):
                return self.around.fixed((sheet, row, column))
            case Binary("&", left, right):
                sides = self._fixed(left), self._fixed(right)
                error = next((s for s in sides if type(s) is ErrorValue), None)
                return "".join(map(to_text, sides)) if error is None else error
            case _:
                return written_number(node)

    def _constant(self, name: str, summed: Seen, conditions: Conditions) -> Operand:
        group = summed.group
        if name == "COUNT":
            place = group.matching(conditions, -1)
            return self.aggregates.made(f"float(row[{place} + {CELL + 1}]), 0")
        if summed.source.kind is not NUMBER:
            raise NotCompiled(f"{name}IF of a window that does not hold numbers")
        place = group.matching(conditions, summed.column)
        error, _ = self.lines.fresh()
        self.lines.add(f"{error} = 0")
        if not any(c.column == summed.column and c.needs_value for c in conditions):
            # The error is that of the first value that meets the conditions.
            number = group.matching_number(conditions, summed.column)
            self.lines.add(f"if row[{place} + {CELL + 2}] != 0:")
            self.lines.add(
                f"    {error} = error_{group.number}_{number}(row, pool, numbers, folded)"
            )
        if name == "SUM":
            return self.aggregates.made(f"window_sum(row, floats, {place}, {error}, wides)")
        if name == "AVERAGE":
            count = f"row[{place} + {CELL}]"
            return self.aggregates.made(
                f"window_average(row, floats, {place}, {error}, {count}, wides)"
            )
        queue, word = group.queue(summed.column, 1 if name == "MIN" else -1, conditions)
        return self.aggregates.made(
            f"window_extreme(row, pool, numbers, {summed.place}, {queue}, {word}, "
            f"VALUES + {summed.column}, {error})"
        )

    def _test(self, window: HasSource, value: Scalar) -> str:
        """A criterion as an expression of a value and its status: see `gather.criterion`."""
        if type(value) is not str:
            return self._equals(window, 0.0 if value is None else value)
        match = _CRITERION.fullmatch(value)
        assert match is not None
        operator, rest = match[1] or "", match[2]
        if operator in ("", "=", "<>"):
            test = self._meets(window, operator, rest)
            return f"not ({test})" if operator == "<>" else test
        wanted = typed(rest)
        if type(wanted) is float and window.source.kind is NUMBER:
            return "{s} == 0 and " + _ORDERS[operator].format(c=repr(wanted), **_NAMES)
        refuse_if(rest and window.source.kind is not NUMBER, f"the criterion {value!r}")
        return "False"

    def _meets(self, window: HasSource, operator: str, text: str) -> str:
        if text == "":
            is_text = window.source.kind is TEXT and operator == ""
            return f"({_IS_EMPTY} or ({{s}} == 0 and {{v}} == 0.0))" if is_text else _IS_EMPTY
        wanted = typed(text)
        if type(wanted) is not str:
            return self._equals(window, wanted)
        if window.source.kind is not TEXT:
            return "False"
        refuse_if(has_wildcards(text), f"the criterion {text!r}")
        code = self.around.texts.number(text)
        return f"{{s}} == 0 and folded[np.int64({{v}})] == folded[{code}]"

    def _equals(self, window: HasSource, wanted: Scalar) -> str:
        """A number, a boolean or an error."""
        if type(wanted) is ErrorValue:
            refuse_if(wanted not in ERRORS, f"the error {wanted}")
            return f"{{s}} == {FIRST_ERROR + ERRORS.index(wanted)}"
        if type(wanted) is bool:
            is_one = window.source.kind is BOOLEAN
            return f"{{s}} == 0 and {{v}} == {float(wanted)}" if is_one else "False"
        if window.source.kind is TEXT or window.source.shows_zero:
            raise NotCompiled("a criterion that is a number, for texts")
        assert type(wanted) is float
        return (
            f"{{s}} == 0 and same({{v}}, {wanted!r})" if window.source.kind is NUMBER else "False"
        )

    # --- criteria that are computed ---

    def _computed(self, name: str, summed: Seen, criteria: list[tuple[Seen, Node]]) -> Operand:
        """One that counts asks the tree of numbers; all others look at the whole window."""
        if name != "COUNT" and summed.source.kind is not NUMBER:
            raise NotCompiled(f"{name}IF of a window that does not hold numbers")
        conditions: list[Condition] = []
        given: list[str] = []
        plain: list[str] = []
        for window, node in criteria:
            if self.is_constant(node):
                conditions.append(Condition(window.column, self._test(window, self._fixed(node))))
                continue
            text = self._text_wanted(window, node)
            if text is not None:
                wanted, is_other = text
                plain.append(f"{wanted.status} == 0 and plain[np.int64({wanted.value})] != 0")
                n = len(given)
                given.append(f"0, float(folded[np.int64({wanted.value})]), 0.0, {is_other}")
                test = f"({{s}} == 0 and folded[np.int64({{v}})] == l{n}) != n{n}"
                conditions.append(Condition(window.column, test))
                continue
            bounds = self._bounds(window, node)
            if len(criteria) == 1 and name == "COUNT":
                return self.aggregates.made(
                    f"window_count_met({window.tree}, {window.counts}, {window.column}, "
                    f"{bounds}), 0"
                )
            names = ", ".join(f"{part}{len(given)}" for part in ("e", "l", "h", "n"))
            given.append(bounds)
            conditions.append(Condition(window.column, f"is_met({{s}}, {{v}}, {names})"))
        scan = summed.group.scan(Scan(name, tuple(conditions), summed.column, len(given)))
        head = "row, floats, pool, numbers, wides, folded"
        call = f"{scan}({', '.join([head, *given])})"
        if not plain:
            return self.aggregates.made(call)
        return self.aggregates.made_or_called(" and ".join(plain), call, self.whole, _NOT_PLAIN)

    def _text_wanted(self, window: HasSource, node: Node) -> tuple[Operand, bool] | None:
        """A text that is looked for, and whether all others are; None if it is no text."""
        operator, wanted = self._parts(node)
        operand = self.aggregates.operand(wanted)
        if operand.kind is not TEXT or operand.shows_zero or window.source.kind is not TEXT:
            return None
        return (operand, operator == "<>") if operator in (None, "", "=", "<>") else None

    def _parts(self, node: Node) -> tuple[Scalar, Node]:
        """The operator that is written before what is compared with; nothing if there is none."""
        while isinstance(node, Parenthesis):
            node = node.inner
        if isinstance(node, Binary) and node.operator == "&" and self.is_constant(node.left):
            return self._fixed(node.left), node.right
        return None, node

    def _bounds(self, window: HasSource, node: Node) -> str:
        """The names of what is known of a criterion before any value is seen."""
        joined, wanted = self._parts(node)
        operator = "" if joined is None else joined
        operand = self.aggregates.operand(wanted)
        is_number = operand.kind is NUMBER and window.source.kind is NUMBER
        if not is_number or type(operator) is not str or operator not in _KINDS:
            raise NotCompiled("a criterion of this kind that is computed")
        names = ", ".join(f"{part}{self.lines.fresh()[0]}" for part in ("e", "l", "h", "n"))
        kind = ITSELF if joined is None else _KINDS[operator]
        self.lines.add(f"{names} = criterion_bounds({kind}, {', '.join(pair(operand))})")
        return names
