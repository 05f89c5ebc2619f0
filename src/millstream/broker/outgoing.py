"""What goes to other brokers: relations, numbered by positions of the log they are made of.

Who has asked is told what changes for as long as it goes on asking. All answers come from what is
here now: the changes between two numbers if these are still known, else the whole relation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from millstream.broker.core import Broker
from millstream.broker.messages import Curiosity, Numbers, Wish
from millstream.broker.records import KnownRecord
from millstream.broker.views import ViewRows
from millstream.languages.served import BrokerPart, Exported

#: Who has not asked for so long is not told any more, in microseconds.
LEASE = 5_000_000
#: At least so often it is said up to where there is something: the last message may be lost.
ANNOUNCE = 500_000
#: So many moments of a relation are remembered.
_MOST_MARKS = 10_000

Send = Callable[[str, "KnownRecord | Numbers"], None]


@dataclass(frozen=True, slots=True)
class Mark:
    """A number at which something changed, and how far streams and logs were known then."""

    number: int
    progress: dict[str, int]
    stand: dict[str, int]


@dataclass
class Reader:
    """Mutable: one who is told of a relation."""

    wish: Wish
    until: int
    #: Up to where it was told, and when.
    sent: int = 0
    told_at: int = 0


class Outgoing:
    """Mutable: one relation that others are sent."""

    def __init__(self, one: Exported, part: BrokerPart) -> None:
        self.one = one
        self.part = part
        self.marks: deque[Mark] = deque(maxlen=_MOST_MARKS)
        self.readers: dict[str, Reader] = {}

    def mark(self, broker: Broker) -> Mark:
        """The last number of it; a new one if something has changed."""
        view = self.view(broker)
        progress, stand = self._known(broker), self._stand(broker)
        last = self.marks[-1] if self.marks else None
        if last is None or view.changed > last.number or progress != last.progress:
            last = Mark(view.position, progress, stand)
            self.marks.append(last)
        return last

    def view(self, broker: Broker) -> ViewRows:
        return broker.views[self.one.output]

    def _known(self, broker: Broker) -> dict[str, int]:
        """How far each stream is known in all that the relation is made of."""
        assert broker.evaluations is not None
        knowledge = broker.evaluations.knowledge
        return {
            stream: min(knowledge.known_through(source, stream) for source in sources)
            for stream, sources in self.one.known.items()
        }

    def _stand(self, broker: Broker) -> dict[str, int]:
        """How much of each log it is made of, by every way that leads here."""
        assert broker.evaluations is not None
        made: dict[str, int] = {}
        for need in sorted(self.one.needs):
            if need in self.part.hosted:
                made[broker.identity] = broker.evaluations.position
            elif need in broker.evaluations.knowledge.held:
                stand = broker.evaluations.knowledge.held[need].stand
                made |= {f"{way} {need}": number for way, number in stand.items()}
        return made

    # --- telling ---

    def push(self, broker: Broker, now: int, send: Send) -> None:
        """Tell all readers what is new, and at times that nothing is."""
        mark = self.mark(broker)
        for name in [n for n, r in self.readers.items() if r.until < now]:
            del self.readers[name]
        for name, reader in self.readers.items():
            if reader.wish is Wish.ROWS and reader.sent < mark.number:
                send(name, self.between(broker, reader.sent, mark))
                reader.sent, reader.told_at = mark.number, now
            elif reader.sent < mark.number or now - reader.told_at >= ANNOUNCE:
                send(name, self._numbers(broker, mark))
                reader.told_at = now
                if reader.wish is Wish.NUMBERS:
                    reader.sent = mark.number

    def answer(self, broker: Broker, asker: str, question: Curiosity, now: int, send: Send) -> None:
        if question.wish is Wish.NOTHING:
            self.readers.pop(asker, None)
            return
        mark = self.mark(broker)
        self.readers[asker] = Reader(question.wish, now + LEASE, mark.number, now)
        if question.wish is Wish.NUMBERS:
            send(asker, self._numbers(broker, mark))
        elif question.incarnation != broker.identity or question.heard > mark.number:
            send(asker, self.between(broker, 0, mark))
        else:
            for after, through in question.gaps:
                end = next((m for m in self.marks if m.number == through), mark)
                send(asker, self.between(broker, after, end))
            if question.heard < mark.number:
                send(asker, self.between(broker, question.heard, mark))

    def between(self, broker: Broker, after: int, mark: Mark) -> KnownRecord:
        """The changes between two numbers, or all that there is now."""
        view = self.view(broker)
        changes = view.since(after, mark.number) if after else None
        if changes is None:
            after, changes, mark = 0, view.rows, self.marks[-1]
        return KnownRecord(self.one.name, self.part.edition, broker.identity, after, mark.number,
                           tuple(changes.items()), mark.progress, mark.stand)  # fmt: skip

    def _numbers(self, broker: Broker, mark: Mark) -> Numbers:
        lost = {log for need in self.one.needs for log in broker.lost.get(need, ())}
        return Numbers(self.one.name, self.part.edition, broker.identity, mark.number,
                       tuple(sorted(lost)))  # fmt: skip
