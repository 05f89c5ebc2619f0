"""How functions with several inputs wait: the paper's R2R-WAIT and R2R-READY.

Each input has a `Side`: what has come but whose time has not, how far the input is known,
and the bag as of the last instant that was dealt with. An operator may speak of an
instant once all its inputs are known up to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from millstream.meaning.items import Bag, Entry, Item, Mark


@dataclass(frozen=True, slots=True)
class Side:
    """The private variable of one input of a waiting operator."""

    pending: tuple[Item, ...] = ()
    known_until: int | None = None
    ticks: tuple[int, ...] = ()
    bag: Bag = field(default_factory=dict)
    history: tuple[Item, ...] = ()
    has_changed: bool = False
    first_tick: int | None = None


def heard(sides: list[Side], index: int, entry: Entry) -> list[Side]:
    """The sides after input `index` has brought an item or a mark."""
    side = sides[index]
    if isinstance(entry, Mark):
        first = side.first_tick if side.first_tick is not None else min(entry.ticks, default=None)
        side = replace(
            side, known_until=entry.time, ticks=side.ticks + entry.ticks, first_tick=first
        )
    else:
        side = replace(side, pending=(*side.pending, entry))
    return [side if number == index else s for number, s in enumerate(sides)]


def known_until(sides: list[Side]) -> int | None:
    """The time up to which all inputs are known."""
    times = [s.known_until for s in sides]
    return None if any(t is None for t in times) else min(t for t in times if t is not None)


def marks_due(
    before: list[Side], after: list[Side], cause: Entry
) -> tuple[tuple[Mark, ...], list[Side]]:
    """The mark to send on, if time has passed on all inputs; its ticks are used up."""
    now = known_until(after)
    if now is None or now == known_until(before):
        return (), after
    ticks = tuple(sorted({t for s in after for t in s.ticks if t <= now}))
    left = [replace(s, ticks=tuple(t for t in s.ticks if t > now)) for s in after]
    return (Mark(now, ticks, cause.origin),), left
