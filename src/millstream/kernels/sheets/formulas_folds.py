"""Functions of many values: sums and their kin, and those that want all numbers at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millstream.kernels.sheets.formulas_base import BOOLEAN, MIXED, NUMBER, TEXT, FormulasBase
from millstream.kernels.sheets.formulas_tables import addresses
from millstream.kernels.sheets.operands import (
    BOOLEAN_HELD,
    EMPTY,
    FIRST_ERROR,
    OK,
    ZERO,
    Operand,
    refuse_if,
)
from millstream.kernels.sheets.scanned import SAMPLES, OfValues, beside
from millstream.values.excel.syntax import Call, Group, Node, Range

_DIV0, _VALUE = FIRST_ERROR + 1, FIRST_ERROR + 2
_MAY_GIVE_REFERENCES = frozenset({"CHOOSE", "IF", "IFERROR", "IFNA", "IFS", "INDEX", "SWITCH"})
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


class Folds(FormulasBase):
    """Generates statements for functions of the values of cells and formulas."""

    def _values(self, arguments: tuple[Node, ...]) -> Iterator[Operand]:
        for node in arguments:
            inner = node
            while isinstance(inner, Group):
                inner = inner.inner
            if isinstance(inner, Range):
                yield from (self.cell(a) for a in addresses(inner))
                continue
            operand = self.operand(inner)
            if isinstance(inner, Call) and inner.function in _MAY_GIVE_REFERENCES:
                # An empty cell behind IF is passed over like any other; here it is a zero.
                refuse_if(not operand.is_sure, f"{inner.function} inside an aggregate")
            yield operand

    def _fold(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        total, status, count = self._fold_begins(function)
        step = FOLDS[function][1]
        for operand in self._values(arguments):
            self._folded_in(function, operand, step.format(t=total, v=operand.value, n=count),
                            count, status)  # fmt: skip
        return self._fold_ends(function, total, status, count)

    def _fold_begins(self, function: str) -> tuple[str, str, str]:
        total, status = self.lines.fresh()
        count, _ = self.lines.fresh()
        self.lines.add(f"{total} = {FOLDS[function][0]}")
        self.lines.add(f"{status} = 0")
        self.lines.add(f"{count} = 0")
        return total, status, count

    def _fold_ends(self, function: str, total: str, status: str, count: str) -> Operand:
        for line in FOLDS[function][2]:
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
        is_text = operand.kind in (TEXT, MIXED)
        refuse_if(is_text and not operand.is_reference, f"a text in {function}")
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
        if operand.kind is MIXED:
            held = f" or {operand.status} == {BOOLEAN_HELD}" if function in ("AND", "OR") else ""
            return f"{operand.status} == {OK}{held}"
        return f"{operand.status} == {ZERO}"

    def _folded_over(self, function: str, node: Node, each: Iterator[OfValues]) -> Operand:
        total, status, count = self._fold_begins(function)
        for formulas in each:
            value = replace(formulas.value(node), is_reference=True)
            step = FOLDS[function][1].format(t=total, v=value.value, n=count)
            self._folded_in(function, value, step, count, status)
        return self._fold_ends(function, total, status, count)

    def sample_of_cells(self, function: str, arguments: tuple[Node, ...]) -> Operand:
        """A function of all numbers in some cells, and of others that are written there."""
        takes = SAMPLES[function][1]
        numbers = beside(function, arguments[1:] if takes else (), self.operand)
        count, error = self.numbers_gathered(arguments[:1] if takes else arguments)
        return self.lines.call(NUMBER, SAMPLES[function][0], "scratch", count, error, *numbers)

    def numbers_gathered(self, nodes: tuple[Node, ...]) -> tuple[str, str]:
        """The numbers of cells and of formulas: how many there are, and an error among them."""
        error, count = self.lines.fresh()[0], self.lines.fresh()[0]
        self.lines.add(f"{error}, {count} = 0, 0")
        for operand in self._values(nodes):
            is_text = operand.kind in (TEXT, MIXED) and not operand.is_reference
            refuse_if(is_text, "a text where a number is wanted")
            self.lines.add(f"if {operand.status} >= {FIRST_ERROR}:")
            self.lines.add(f"    {error} = {error} if {error} else {operand.status}")
            self.lines.add(f"elif {self._is_counted('SUM', operand)}:")
            self.lines.add(f"    scratch[{count}] = {operand.value}")
            self.lines.add(f"    {count} += 1")
        return count, error
