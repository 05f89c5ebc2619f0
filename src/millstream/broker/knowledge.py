"""What a broker knows of its streams and publishers: a function of its log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.broker.journal import Journal
from millstream.broker.publishers import Answered, Publisher
from millstream.broker.records import (
    Begun,
    Content,
    KnownRecord,
    RowsRecord,
    SilenceRecord,
    ViewsRecord,
)
from millstream.broker.ticks import Ticks
from millstream.calculus.types import START_OF_TIME
from millstream.languages.served import BrokerPart, ServedStream

#: The publisher of batches that have no number; they are never recognised again.
NOBODY = ""


@dataclass(frozen=True, slots=True)
class HeldRelation:
    """How much is here of a relation of another broker: all up to a number of an incarnation."""

    incarnation: str = ""
    through: int = 0
    progress: Mapping[str, int] = field(default_factory=dict)
    #: How much of each log the relation is made of, by the way that it took.
    stand: Mapping[str, int] = field(default_factory=dict)

    def covers(self, other: HeldRelation | KnownRecord) -> bool:
        """Whether nothing that is in the other is missing here."""
        return all(self.stand.get(way, -1) >= number for way, number in other.stand.items())

    def lost_to(self, other: HeldRelation | KnownRecord) -> tuple[str, ...]:
        """The logs that this is made of, in whose place the other has one that is new.

        A way leads from one broker, so that it has two logs only if that broker lost the first.
        """
        ways = {_way(key) for key in other.stand}
        gone = [key for key in self.stand if key not in other.stand and _way(key) in ways]
        return tuple(sorted({key.partition(" ")[0] for key in gone}))

    def fits(self, known: KnownRecord) -> bool:
        """Whether it goes on exactly here, or is the whole and no step back."""
        if known.incarnation == self.incarnation:
            return known.after in (0, self.through) and known.through > self.through
        return known.after == 0 and HeldRelation(stand=known.stand).covers(self)


NOTHING = HeldRelation()


def _way(key: str) -> str:
    """By which relations a log came here."""
    return key.partition(" ")[2]


class Knowledge:
    """Mutable: all ticks of all streams, which batches have come, and what others have sent."""

    def __init__(self, streams: Mapping[str, ServedStream], part: BrokerPart | None = None) -> None:
        self.part = part
        self.held: dict[str, HeldRelation] = {}
        self.ticks = {name: Ticks(stream) for name, stream in streams.items()}
        self.publishers: dict[str, Publisher] = {}
        self.silences: Counter[str] = Counter()
        #: Views beside those of the file.
        self.added: dict[str, str] = {}

    def take(self, number: int, content: Content, journal: Journal) -> None:
        """Take in a record of the log."""
        match content:
            case RowsRecord(stream, publisher, sequence, digest, rows, judged):
                ticks = self.ticks[stream]
                key = ticks.stream.input.type.schema.index(ticks.stream.key)
                ticks.take([t for row in rows if isinstance(t := row[key], int)], journal)
                ticks.count(Counter(j.fate.value for j in judged), journal)
                if publisher != NOBODY:
                    answer = Answered(digest, number, judged)
                    self.publisher(publisher).add(sequence, answer, journal)
            case SilenceRecord(stream, through, _):
                self.ticks[stream].silence(through, journal)
                self.silences[stream] += 1
                journal.note(lambda: self.silences.subtract([stream]))
            case KnownRecord():
                self._take_known(content, journal)
            case ViewsRecord(added):
                before = self.added
                self.added = added
                journal.note(lambda: setattr(self, "added", before))
            case Begun():
                return

    def is_held(self, known: KnownRecord) -> bool:
        """Whether it is of a relation that is read here, as the file is now."""
        part = self.part
        return part is not None and known.edition == part.edition and known.relation in part.imports

    def _take_known(self, known: KnownRecord, journal: Journal) -> None:
        if not self.is_held(known):
            return
        name, before = known.relation, self.held.get(known.relation, NOTHING)
        journal.note(lambda: self.held.__setitem__(name, before))
        self.held[name] = HeldRelation(
            known.incarnation, known.through, known.progress, known.stand
        )
        if name in self.ticks:
            through = known.progress.get(name, START_OF_TIME)
            self.ticks[name].silence(through, journal)

    def known_through(self, source: str, stream: str) -> int:
        """How far a stream is known in an input: the stream itself, or what another has sent."""
        if source in self.ticks:
            return self.ticks[source].horizon
        return self.held.get(source, NOTHING).progress.get(stream, START_OF_TIME)

    def horizons(self) -> dict[str, int]:
        """How far each stream is known in all that there is here."""
        imports = self.part.imports if self.part else {}
        inputs = [(name, name) for name in self.ticks]
        inputs += [(stream, n) for n, one in imports.items() for stream in sorted(one.streams)]
        made: dict[str, int] = {}
        for stream, source in inputs:
            known = self.known_through(source, stream)
            made[stream] = min(made.get(stream, known), known)
        return made

    def forget(self, content: Content) -> None:
        """Of what was answered to whom, only the last is kept."""
        if isinstance(content, RowsRecord) and content.publisher != NOBODY:
            self.publisher(content.publisher).forget()

    def snapshot(self) -> dict[str, Any]:
        """A copy that does not change any more; `written` makes it ready to be written down."""
        return {
            "ticks": {name: one.snapshot() for name, one in self.ticks.items()},
            "publishers": {name: one.snapshot() for name, one in self.publishers.items()},
            "silences": dict(self.silences), "added": self.added,
            "held": {name: _told(one) for name, one in self.held.items()},
        }  # fmt: skip

    @staticmethod
    def written(snapshot: Mapping[str, Any]) -> dict[str, Any]:
        publishers = {name: one.written() for name, one in snapshot["publishers"].items()}
        return {**snapshot, "publishers": publishers}

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, one in state["ticks"].items():
            self.ticks[name].restore(one)
        self.publishers = {n: Publisher.read(one) for n, one in state["publishers"].items()}
        self.silences = Counter(state["silences"])
        self.added = state["added"]
        self.held = {name: HeldRelation(**one) for name, one in state["held"].items()}

    def publisher(self, name: str) -> Publisher:
        return self.publishers.setdefault(name, Publisher())

    def settled_through(self, names: tuple[str, ...]) -> int | None:
        """Up to where no stream of these has a gap; None if that is not known of one."""
        ticks = [self.ticks[name] for name in names]
        still = [one.horizon for one in ticks if not one.is_over]
        if still:
            return min(still)
        ends = [one.stream.until for one in ticks if one.stream.until is not None]
        return max(ends) + 1 if ends else None


def _told(held: HeldRelation) -> dict[str, Any]:
    return {"incarnation": held.incarnation, "through": held.through,
            "progress": dict(held.progress), "stand": dict(held.stand)}  # fmt: skip
