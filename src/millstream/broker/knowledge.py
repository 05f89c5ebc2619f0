"""What a broker knows of its streams and publishers: a function of its log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from millstream.broker.journal import Journal
from millstream.broker.publishers import Answered, Publisher
from millstream.broker.records import Begun, Content, RowsRecord, SilenceRecord, ViewsRecord
from millstream.broker.ticks import Ticks
from millstream.languages.served import ServedStream

#: The publisher of batches that have no number; they are never recognised again.
NOBODY = ""


class Knowledge:
    """Mutable: all ticks of all streams, and which batches have come."""

    def __init__(self, streams: Mapping[str, ServedStream]) -> None:
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
            case ViewsRecord(added):
                before = self.added
                self.added = added
                journal.note(lambda: setattr(self, "added", before))
            case Begun():
                return

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
