"""Where the cells of a sheet are kept between tuples."""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.calculus.sheets import Address


@dataclass
class Slots:
    """Mutable: where cells are kept between tuples: two words each, value and status.

    Without keys they are variables, which are read before the loop and written after it.
    """

    are_variables: bool = False
    cells: dict[Address, int] = field(default_factory=dict)
    previous: dict[Address, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.cells) + len(self.previous)

    def cell(self, address: Address) -> int:
        if address not in self.cells:
            self.cells[address] = self.count
        return self.cells[address]

    def words(self, slot: int) -> tuple[str, str]:
        return (f"f{slot}", f"g{slot}") if self.are_variables else self.in_row(slot)

    def in_row(self, slot: int) -> tuple[str, str]:
        return f"floats[{2 * slot}]", f"row[{2 * slot + 1}]"
