"""The small actor language: `create`, `send` and `become`.

A behaviour is a pure function from a message to actions; what an actor knows is in its
behaviour, and changes only by becoming another. Messages take their time: which of those
on their way arrives next is drawn by lot, except that messages from one actor to another
keep their order (the thesis takes that for granted).

One thing is added to the language of the thesis: an actor may ask to be woken at a later
instant. Whoever feeds the system says when instants come (`wake`).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from millstream.meaning.items import Item

Address = int


@dataclass(frozen=True, slots=True)
class Awake:
    """The instant has come that an actor has asked for."""

    at: int


#: Messages are rows of streams; updates of tables are rows too, so that `changelog` and
#: `to_table` are nothing at all. A message may be tagged as coming from one side of a join.
Message = Item | tuple[str, Item] | Awake
OUTSIDE: Address = -1


@dataclass(frozen=True, slots=True)
class Send:
    to: Address
    message: Message


@dataclass(frozen=True, slots=True)
class Become:
    behaviour: Behaviour


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask for a message to oneself at a later instant."""

    at: int


Action = Send | Become | Wake
Behaviour = Callable[[Message], tuple[Action, ...]]


class System:
    """Mutable: the actors, and the messages on their way."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.behaviours: list[Behaviour] = []
        self.channels: dict[tuple[Address, Address], deque[Message]] = {}
        self.sleepers: dict[int, set[Address]] = {}

    def create(self, behaviour: Behaviour) -> Address:
        self.behaviours.append(behaviour)
        return len(self.behaviours) - 1

    def send(self, to: Address, message: Message, sender: Address = OUTSIDE) -> None:
        self.channels.setdefault((sender, to), deque()).append(message)

    def next_waking(self) -> int | None:
        """The next instant at which an actor wants to be woken."""
        return min(self.sleepers, default=None)

    def wake(self, instant: int) -> None:
        """Tell those who have asked for it that an instant has come."""
        for receiver in sorted(self.sleepers.pop(instant, ())):
            self.send(receiver, Awake(instant))

    def run(self) -> None:
        """Deliver messages until none is on its way."""
        while waiting := [channel for channel, some in self.channels.items() if some]:
            sender_and_receiver = self.generator.choice(waiting)
            message = self.channels[sender_and_receiver].popleft()
            self._deliver(sender_and_receiver[1], message)

    def _deliver(self, receiver: Address, message: Message) -> None:
        for action in self.behaviours[receiver](message):
            match action:
                case Send(to, sent):
                    self.send(to, sent, receiver)
                case Become(behaviour):
                    self.behaviours[receiver] = behaviour
                case Wake(at):
                    self.sleepers.setdefault(at, set()).add(receiver)
