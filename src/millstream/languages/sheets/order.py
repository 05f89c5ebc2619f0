"""The order of computation: PRE first, then each cell after those it needs; and circles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from millstream.calculus.sheets import Address, Previous, SheetCell, address_text
from millstream.errors import Fault


def ordered(
    cells: Sequence[SheetCell], shown: Callable[[Address], str]
) -> tuple[list[SheetCell], list[tuple[Address, Fault]]]:
    """The cells in order, and a fault for each circle that PRE does not close.

    Cells of a circle, and those that need them, are left out.
    """
    by_address = {c.address: c for c in cells}
    missing = {c.address: sum(1 for n in set(c.needs) if n in by_address) for c in cells}
    users: dict[Address, list[Address]] = {}
    for cell in cells:
        for need in set(cell.needs):
            users.setdefault(need, []).append(cell.address)
    ready = [c.address for c in reversed(cells) if missing[c.address] == 0]
    done: list[SheetCell] = []
    while ready:
        address = ready.pop()
        done.append(by_address[address])
        for user in users.get(address, ()):
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    left = {a for a, n in missing.items() if n > 0}
    faults = [_told(circle, shown) for circle in _circles(by_address, left)]
    return _previous_early(done), faults


def _previous_early(done: list[SheetCell]) -> list[SheetCell]:
    """PRE first, where its trigger is up to date already; the order otherwise stays."""
    place = {c.address: n for n, c in enumerate(done)}

    def rank(cell: SheetCell) -> tuple[int, int]:
        if isinstance(cell.rule, Previous):
            return place.get(cell.rule.trigger, -1), 2
        return place[cell.address], 1

    return sorted(done, key=rank)


def _circles(by_address: dict[Address, SheetCell], left: set[Address]) -> Iterator[list[Address]]:
    """One circle for every knot of cells that wait for each other."""
    seen: set[Address] = set()
    for start in by_address:
        if start not in left or start in seen:
            continue
        path: list[Address] = []
        place: dict[Address, int] = {}
        current = start
        while current not in place and current not in seen:
            place[current] = len(path)
            path.append(current)
            current = next(n for n in by_address[current].needs if n in left)
        seen.update(path)
        if current in place:
            yield path[place[current] :]


def _told(circle: list[Address], shown: Callable[[Address], str]) -> tuple[Address, Fault]:
    first = min(circle, key=lambda a: (a[0] == ":", a))
    start = circle.index(first)
    turned = circle[start:] + circle[:start]
    names = [address_text(a) for a in (*turned, first) if a[0] != ":" or a == first]
    fault = Fault(
        f"these cells depend on each other: {' -> '.join(names)}",
        hint="only PRE may close a circle of references",
        place=shown(first),
    )
    return first, fault
