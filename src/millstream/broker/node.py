"""A broker among others: it takes on what they send, and tells them what it makes of it.

Whoever runs it calls, again and again: `hear` with what has come, `requests` and then `settle`
around the broker's `commit`, and `tell` after its views have been brought up to that. Nothing is
waited for: what gets lost on the way is asked for again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from millstream.broker.core import Broker, Take
from millstream.broker.incoming import Imports
from millstream.broker.knowledge import NOTHING
from millstream.broker.messages import Curiosity, Message, Numbers, Wish
from millstream.broker.outgoing import Outgoing
from millstream.broker.records import KnownRecord
from millstream.languages.served import BrokerPart

#: Puts a message on its way to a broker, or loses it.
Send = Callable[[str, Message], None]


class Node:
    """Mutable: the links of a broker."""

    def __init__(self, broker: Broker, send: Send) -> None:
        part = broker.served.part
        assert part is not None
        self.broker = broker
        self.send = send
        self.imports = Imports(part)
        self.exports = {name: Outgoing(one, part) for name, one in part.exports.items()}
        self._known: deque[tuple[str, KnownRecord | Numbers]] = deque()
        self._questions: deque[tuple[str, Curiosity]] = deque()
        self._lock = threading.RLock()

    @property
    def part(self) -> BrokerPart:
        """Views may be added, which are made of what comes here anyway."""
        assert self.broker.served.part is not None
        return self.broker.served.part

    @property
    def now(self) -> int:
        return self.broker.env.clock.now()

    def hear(self, sender: str, message: Message) -> None:
        """Something has come; it is looked at later."""
        if isinstance(message, Curiosity):
            self._questions.append((sender, message))
        else:
            self._known.append((sender, message))

    def requests(self) -> list[Take]:
        """What is to be written down of what has come, in this order."""
        with self._lock:
            known = [self._known.popleft() for _ in range(len(self._known))]
            ready = self.imports.hear(self.broker.knowledge, known, self.now)
            lost = {n: one.lost for n, one in self.imports.incoming.items() if one.lost}
            self.broker.lost = lost
        return [Take(one) for one in ready]

    def settle(self, requests: Sequence[Take]) -> None:
        """These have been written down, or could not be; ask for what is missing."""
        with self._lock:
            moved = [one.known.relation for one in requests]
            self.imports.settle(self.broker.knowledge, moved, self.now)
            self.imports.ask(self.broker.knowledge, self.now, self.send)

    def tell(self) -> None:
        """Answer what was asked, and tell who listens what has changed."""
        if self.broker.evaluations is None:
            return
        with self.broker.showing, self._lock:
            for _ in range(len(self._questions)):
                asker, question = self._questions.popleft()
                self._answer(asker, question)
            for one in self.exports.values():
                one.push(self.broker, self.now, self.send)

    def _answer(self, asker: str, question: Curiosity) -> None:
        one = self.exports.get(question.relation)
        if one is None or question.edition != self.part.edition:
            self.imports.others.add(asker)
            return
        if asker not in one.one.receivers:
            return
        if question.wish is Wish.ROWS:
            for need in one.one.needs:
                self._want(need)
        one.answer(self.broker, asker, question, self.now, self.send)

    def want(self, view: str) -> None:
        """Somebody reads a view: what it is made of is wanted, on lazy links too."""
        with self._lock:
            for need in self.part.needs.get(view, ()):
                self._want(need)

    def _want(self, need: str) -> None:
        if need in self.imports.incoming:
            self.imports.incoming[need].want(self.now)

    def status(self) -> dict[str, Any]:
        """How much is here of what others make, what is missing, and who listens."""
        with self._lock:
            held = self.broker.knowledge.held
            imports = {}
            for name, one in self.imports.incoming.items():
                here = held.get(name, NOTHING)
                imports[name] = {
                    "from": one.one.sender, "number": here.through, "heard": one.heard,
                    "gaps": one.gaps(here), "is_lazy": one.one.is_lazy, "is_final": one.is_final,
                    "lost_logs": one.lost,
                }  # fmt: skip
            exports = {n: sorted(one.readers) for n, one in self.exports.items()}
        return {"broker": self.part.broker, "imports": imports, "exports": exports,
                "of_another_file": sorted(self.imports.others)}  # fmt: skip
