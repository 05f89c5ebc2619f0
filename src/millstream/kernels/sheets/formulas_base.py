"""What the parts of the compiler of formulas share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from millstream.calculus.sheets import Address
from millstream.kernels.sheets.aggregates import Aggregates, Surroundings
from millstream.kernels.sheets.called import Site
from millstream.kernels.sheets.operands import (
    BOOLEAN_HELD,
    OK,
    TEXT_HELD,
    ZERO,
    Operand,
    constant,
    refuse_if,
)
from millstream.kernels.sheets.operands import as_mixed as mixed_constant
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Node

NUMBER, TEXT, BOOLEAN, MIXED = Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN, Kind.MIXED


class FormulasBase(ABC):
    """Generates statements for formulas into the lines of its surroundings."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.lines = around.lines
        self.aggregates = Aggregates(around, self.operand, self.called_operand)
        #: Is it an array formula, in which areas are taken value by value?
        self.is_array = False
        #: How many parts were called so far.
        self.called = 0

    @abstractmethod
    def operand(self, node: Node) -> Operand:
        """The value of a part of a formula."""

    @abstractmethod
    def called_operand(self, site: Site) -> Operand:
        """What a part gives that the loop calls out for."""

    def cell(self, address: Address) -> Operand:
        operand = self.around.cell(address)
        if operand is None:
            operand = constant(self.around.fixed(address), self.around.texts)
        return replace(operand, is_reference=True)

    def number(self, operand: Operand) -> Operand:
        """An operand where a number is wanted: a text may be one."""
        if operand.kind not in (TEXT, MIXED):
            return operand
        site = self.around.sites.number_in(self.around.place, operand.kind)
        held = TEXT_HELD if operand.kind is MIXED else OK
        zero = BOOLEAN_HELD if operand.kind is MIXED else ZERO
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {operand.value}, np.int64({operand.status})")
        self.lines.add(f"if {status} == {held}:")
        self.lines.add(f"    {value}, {status} = {self.recalled(site, [operand])}")
        self.lines.add(f"elif {status} == {zero}:")
        self.lines.add(f"    {status} = {OK}")
        return replace(operand, kind=NUMBER, value=value, status=status, shows_zero=False)

    def recalled(self, site: Site, leaves: Sequence[Operand]) -> str:
        """A value and a status that the loop calls out for."""
        assert tuple(o.kind for o in leaves) == site.kinds
        self.called += 1
        values = ", ".join(o.value for o in leaves)
        statuses = ", ".join(f"np.int64({o.status})" for o in leaves)
        made_of = f"(0.0, {values}), (NOTHING, {statuses})"
        if site.windows:
            groups = [self.around.window(address)[0] for address in site.windows]
            where = "".join(f"G{group.number}, " for group in groups)
            return f"called(asked, {site.number}, {made_of}, row, ({where}))"
        return f"recalled(memo, sites, asked, {site.number}, {made_of})"

    def truth(self, operand: Operand) -> Operand:
        """An operand where a condition is wanted: a text may say TRUE."""
        refuse_if(operand.kind in (TEXT, MIXED), "a text where a condition is wanted")
        return operand

    def as_mixed(self, operand: Operand) -> Operand:
        """An operand among others of other kinds: its status says what it is."""
        if operand.kind is MIXED:
            return operand
        if operand.status.isdigit():
            return mixed_constant(operand)
        if operand.kind is NUMBER:
            return replace(operand, kind=MIXED)
        held = TEXT_HELD if operand.kind is TEXT else BOOLEAN_HELD
        value, status = self.lines.fresh()
        self.lines.add(f"{value} = 0.0 if {operand.status} == {ZERO} else {operand.value}")
        self.lines.add(
            f"{status} = {held} if {operand.status} == {OK} else "
            f"({OK} if {operand.status} == {ZERO} else {operand.status})"
        )
        return replace(operand, kind=MIXED, value=value, status=status, shows_zero=False)
