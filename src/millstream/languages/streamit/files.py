"""Files that a program reads and writes, and how many steady states they allow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millstream.calculus.work import schema_of_items
from millstream.errors import CheckError, Fault
from millstream.languages.streamit.balance import Balance
from millstream.languages.streamit.flat import Actor, Channel, Flat
from millstream.languages.streamit.graph import Filter
from millstream.source import Span

#: A firing makes as much work as rows of so many bytes.
_FIRING_BYTES = 256
#: As many ticks as nobody waits for.
_UNTIL_STOPPED = 1 << 53


@dataclass(frozen=True, slots=True)
class File:
    """A file by the name of its queue; `initially` and `each` are the items that are taken."""

    name: str
    path: str
    channel: Channel
    span: Span
    items: int = 0
    initially: int = 0
    each: int = 0

    @property
    def rounds(self) -> int:
        return max(0, self.items - self.initially) // self.each

    def taken(self, rounds: int) -> int:
        return min(self.items, self.initially + rounds * self.each)


@dataclass(frozen=True, slots=True)
class Entry:
    """The input of a program that takes items from outside."""

    name: str
    initially: int
    each: int
    span: Span

    def leftovers(self, counts: Mapping[str, int]) -> tuple[Fault, ...]:
        items = counts.get(self.name, 0)
        after = max(0, items - self.initially)
        left = after % self.each if self.each and items >= self.initially else items
        if not left:
            return ()
        message = (f"{left:,} of the {items:,} items of {self.name} are left over: a steady state "
                   f"takes {self.each:,}, after {self.initially:,} at the beginning")  # fmt: skip
        return (Fault(message, self.span),)


@dataclass(frozen=True, slots=True)
class Files:
    read: tuple[File, ...]
    written: tuple[File, ...]

    def read_into(self, channel: Channel) -> File | None:
        return next((file for file in self.read if file.channel is channel), None)

    @property
    def rounds(self) -> int | None:
        """As many as every file allows; None if there is no file."""
        return min((file.rounds for file in self.read), default=None)

    def leftovers(self) -> tuple[Fault, ...]:
        rounds = self.rounds or 0
        return tuple(
            Fault(
                f"{file.items - file.taken(rounds):,} of the {file.items:,} items of {file.path} "
                f"are left over: {rounds:,} steady states take {file.each:,} each, after "
                f"{file.initially:,} at the beginning",
                file.span,
            )
            for file in self.read
            if file.taken(rounds) < file.items
        )


@dataclass(frozen=True, slots=True)
class Rounds:
    """Where a program takes its items from, for so many steady states."""

    files: Files
    ticks: str | None
    #: How many firings a steady state has.
    firings: int
    #: How often sources fire at the first tick and at each other.
    initially: int
    each: int

    def sources(self, rounds: int | None) -> Mapping[str, str]:
        known = [n for n in (rounds, self.files.rounds) if n is not None]
        count = min(known) if known else _UNTIL_STOPPED // self.each
        sources = {f.name: f"raw:{f.path}?rows={f.taken(count)}" for f in self.files.read}
        if self.ticks is not None:
            # A source's n-th firing is at time n: so much time has passed at its ticks.
            times = f"start={self.initially},interval={self.each}us"
            size = _FIRING_BYTES * self.firings
            sources[self.ticks] = f"generator:rows={count + 1},{times},size={size}"
        return sources


def files_of(flat: Flat, balance: Balance, folder: Path) -> Files:
    """The files of a program; those that do not fit are told together."""
    faults: list[Fault] = []
    read: list[File] = []
    written: list[File] = []
    names: set[str] = set()
    for number, actor in enumerate(flat.actors):
        if not isinstance(actor.work, Filter) or actor.work.file is None:
            continue
        name = _name_of(actor.work.file, names)
        if actor.inputs:
            written.append(File(name, actor.work.file, actor.inputs[0], actor.span))
            continue
        items = _items_in(actor, actor.work, folder, faults)
        read.append(File(name, actor.work.file, actor.outputs[0], actor.span, items,
                         balance.initially[number], balance.repeats[number] or 1))  # fmt: skip
    if faults:
        raise CheckError(faults)
    return Files(tuple(read), tuple(written))


def _name_of(path: str, names: set[str]) -> str:
    """A name for the queue: that of the file, with nothing that a name cannot have."""
    plain = re.sub(r"\W", "_", Path(path).name)
    name = plain if re.match(r"[^\W\d]", plain) else f"file_{plain}"
    number = 2
    while name in names:
        name, number = f"{plain}_{number}", number + 1
    names.add(name)
    return name


def _items_in(actor: Actor, work: Filter, folder: Path, faults: list[Fault]) -> int:
    assert work.file is not None and work.given is not None
    path = folder / work.file
    width = 4 * len(schema_of_items(work.given).names)
    size = path.stat().st_size
    if size % width:
        faults.append(Fault(f"{work.file} has {size:,} bytes, which are no whole items of {width}",
                            actor.span))  # fmt: skip
    return size // width
