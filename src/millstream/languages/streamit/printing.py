"""In which order filters print: of those that can fire, the furthest downstream does.

Rates are fixed, so that this order is known before anything runs: some firings at the
beginning, then always the same. It is found by counting items.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millstream.languages.streamit.balance import Balance
from millstream.languages.streamit.flat import Actor, Flat
from millstream.languages.streamit.messages import Link

#: More firings than anybody would wait for.
MOST_FIRINGS = 20_000_000


@dataclass(frozen=True, slots=True)
class PrintingOrder:
    """Which of the printing filters fire, by number: first these, then those again and again."""

    begins: tuple[int, ...]
    repeats: tuple[int, ...]


class TooLong(Exception):
    """The order does not come round within reason."""


@dataclass
class _Counting:
    """Mutable: how many items every channel holds, and what has fired."""

    flat: Flat
    printing: dict[int, int]
    links: list[Link]
    held: list[int] = field(init=False)
    fired: list[int] = field(init=False)
    cursors: list[int] = field(init=False)
    printed: list[int] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.held = [len(channel.enqueued) for channel in self.flat.channels]
        self.fired = [0] * len(self.flat.actors)
        self.cursors = [0] * len(self.flat.actors)

    @property
    def state(self) -> tuple[object, ...]:
        has_fired = tuple(min(n, 1) for n in self.fired)
        # Who hears another is as far behind it as it was, and as it will be.
        behind = tuple(
            self.fired[link.sender] - link.hearing.awaited(self.fired[link.receiver] + 1)
            for link in self.links
        )
        return tuple(self.held), has_fired, tuple(self.cursors), behind

    def settle(self) -> None:
        """Fire until nobody but sources can."""
        number = len(self.flat.actors) - 1
        while number >= 0:
            actor = self.flat.actors[number]
            if not actor.is_source and self.can_fire(actor, number):
                self.fire(number)
                number = len(self.flat.actors)
            number -= 1

    def can_fire(self, actor: Actor, number: int) -> bool:
        if not actor.is_filter:
            return self.can_deal(actor, number)
        if any(
            self.fired[link.sender] < link.hearing.awaited(self.fired[number] + 1)
            for link in self.links
            if link.receiver == number
        ):
            return False
        is_first = self.fired[number] == 0
        return all(
            self.held[c.number] >= max(actor.peek(c, is_first=is_first), 1) for c in actor.inputs
        )

    def can_deal(self, actor: Actor, number: int) -> bool:
        if len(actor.inputs) == 1:
            return self.held[actor.inputs[0].number] > 0
        return self.held[actor.inputs[self.turn(actor.pops, number)].number] > 0

    def turn(self, weights: list[int], number: int) -> int:
        place = self.cursors[number]
        for turn, weight in enumerate(weights):
            if place < weight:
                return turn
            place -= weight
        raise AssertionError("a cursor is within its turn")

    def fire(self, number: int) -> None:
        self.count += 1
        if self.count > MOST_FIRINGS:
            raise TooLong
        actor = self.flat.actors[number]
        if not actor.is_filter:
            self.deal(actor, number)
            return
        is_first = self.fired[number] == 0
        for channel in actor.inputs:
            self.held[channel.number] -= actor.pop(channel, is_first=is_first)
        for channel in actor.outputs:
            self.held[channel.number] += actor.push(channel, is_first=is_first)
        self.fired[number] += 1
        if number in self.printing:
            self.printed.append(self.printing[number])

    def deal(self, actor: Actor, number: int) -> None:
        """One item through a split or a join."""
        assert not actor.is_filter
        if len(actor.inputs) > 1:
            weights, source = actor.pops, actor.inputs[self.turn(actor.pops, number)]
            targets = actor.outputs
        elif getattr(actor.work, "kind", "") == "duplicate":
            weights, source, targets = [1], actor.inputs[0], actor.outputs
        else:
            weights, source = actor.pushes, actor.inputs[0]
            targets = [actor.outputs[self.turn(actor.pushes, number)]]
        self.held[source.number] -= 1
        for target in targets:
            if target is not self.flat.exit:
                self.held[target.number] += 1
        self.cursors[number] = (self.cursors[number] + 1) % sum(weights)


def order_of(
    flat: Flat, balance: Balance, printing: list[Actor], links: list[Link]
) -> PrintingOrder:
    """The order of the firings of some filters."""
    places = {id(actor): n for n, actor in enumerate(flat.actors)}
    counting = _Counting(flat, {places[id(actor)]: n for n, actor in enumerate(printing)}, links)
    sources = [n for n, actor in enumerate(flat.actors) if actor.is_source]
    counting.settle()
    if sources:
        _pull(counting, sources, balance.initially)
    seen: dict[tuple[object, ...], int] = {}
    while counting.state not in seen:
        seen[counting.state] = len(counting.printed)
        if sources:
            _pull(counting, sources, balance.repeats)
        elif flat.entry is not None:
            counting.held[flat.entry.number] += 1
            counting.settle()
    begin = seen[counting.state]
    return PrintingOrder(tuple(counting.printed[:begin]), tuple(counting.printed[begin:]))


def _pull(counting: _Counting, sources: list[int], firings: tuple[int, ...]) -> None:
    """Let sources fire so often, the furthest downstream first, and all else after each."""
    due = {n: firings[n] for n in sources}
    while any(due.values()):
        number = max(n for n, count in due.items() if count)
        due[number] -= 1
        counting.fire(number)
        counting.settle()
