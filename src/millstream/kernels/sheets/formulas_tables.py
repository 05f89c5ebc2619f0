"""Lookups in tables of constant numbers, as statements."""

from __future__ import annotations

import math
from collections.abc import Iterator

from millstream.calculus.sheets import Address
from millstream.kernels.sheets.formulas_base import NUMBER, FormulasBase
from millstream.kernels.sheets.functions import WORKING_DAYS
from millstream.kernels.sheets.operands import FIRST_ERROR, NotCompiled, Operand, pair, refuse_if
from millstream.values.excel.syntax import Cell, Literal, Node, Range

_VALUE, _REF, _NA = FIRST_ERROR + 2, FIRST_ERROR + 3, FIRST_ERROR + 6
#: Ranges with more cells are not written out.
MAX_RANGE = 2_000


def addresses(node: Range) -> list[Address]:
    height = node.last.row - node.first.row + 1
    width = node.last.column - node.first.column + 1
    refuse_if(height * width > MAX_RANGE, "a range of more than 2,000 cells")
    return [
        (node.sheet, row, column)
        for row in range(node.first.row, node.last.row + 1)
        for column in range(node.first.column, node.last.column + 1)
    ]


class Tables(FormulasBase):
    """The functions that look something up."""

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

    def working_days(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """NETWORKDAYS and WORKDAY."""
        refuse_if(self.around.uses_1904, f"{function} in the 1904 system")
        refuse_if(not 2 <= len(arguments) <= 3, f"{function} of so many values")
        dates = [self.number(self.operand(node)) for node in arguments[:2]]
        free = {math.floor(day) for node in arguments[2:] for day in self._days_in(node)}
        # Saturday is 6, and Sunday 0.
        holidays = tuple(float(day) for day in sorted(free) if 0 < (day - 1) % 7 < 6)
        parts = [part for date in dates for part in pair(date)]
        return self.lines.call(NUMBER, WORKING_DAYS[function], *parts, self.lines.array(holidays))

    def _days_in(self, node: Node) -> Iterator[float]:
        """The days in cells that never change; some may be empty."""
        places = addresses(node) if isinstance(node, Range) else []
        if isinstance(node, Cell):
            places = [(node.sheet, node.row, node.column)]
        refuse_if(not places, "holidays in something else than cells")
        for address in places:
            value = self.around.fixed(address)
            is_changing = self.around.cell(address) is not None
            refuse_if(is_changing or type(value) not in (float, type(None)), "holidays that change")
            if type(value) is float:
                yield value

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
        """Where a number stands in a table, looked for once."""
        function = self.search(keys) if is_near else "exact_place"
        self.lines.used.add(function)
        return self.lines.once(f"{function}({wanted.value}, {self.lines.array(keys)})")

    def search(self, keys: tuple[float, ...]) -> str:
        """What finds the last that is not greater."""
        return "approximate_place"

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
