"""Views that are made beside those that are there, and then put in their place.

They are made from a soft checkpoint that fits, or from the log as a whole; where that has lost its
beginning, from what stands there instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.broker.base import Base
from millstream.broker.env import Disk
from millstream.broker.evaluate import Changes
from millstream.broker.evaluations import Evaluations, Maker
from millstream.broker.log import Record, records_between
from millstream.broker.soft import Soft
from millstream.languages.served import Served

#: So many records, of so many bytes, are taken in at once: what is out again stays no longer.
_AT_ONCE, _BYTES_AT_ONCE = 5_000, 16 << 20


class CatchUp:
    """Mutable: evaluations that come up to a position of the log."""

    def __init__(
        self, served: Served, disk: Disk, make: Maker, soft: Soft | None = None,
        base: Base | None = None,
    ) -> None:  # fmt: skip
        self.served = served
        self.evaluations = Evaluations(served, make)
        self.disk = disk
        self.rows: dict[str, Changes] = {name: {} for name in served.relations}
        if soft is not None and soft.fits(served, make):
            self.rows = soft.put_into(self.evaluations)
        elif base is not None:
            self.rows = base.put_into(self.evaluations)

    def up_to(self, position: int) -> None:
        records = records_between(self.disk, self.evaluations.position, position)
        while some := _next_few(records):
            for name, changes in self.evaluations.advance(some).items():
                rows = self.rows[name]
                for row, weight in changes.items():
                    rows[row] = rows.get(row, 0) + weight
                    if not rows[row]:
                        del rows[row]

    def differs(self, rows: dict[str, Changes]) -> list[str]:
        """The views whose rows are not these; of others nothing is said."""
        return [n for n, some in self.rows.items() if n in rows and some != rows[n]]


def _next_few(records: Iterator[Record]) -> list[Record]:
    some: list[Record] = []
    size = 0
    for record in records:
        some.append(record)
        size += len(record.data)
        if len(some) == _AT_ONCE or size >= _BYTES_AT_ONCE:
            break
    return some
