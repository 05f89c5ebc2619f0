"""What stands in the place of the beginning of a log, once nobody needs that any more.

    0000000000001234.base      all that is left of the records up to 1234

It has what was known then (ticks, batches of publishers), the rows of streams that may still change
something, what other brokers have sent, and for each view what these rows alone do not give: rows
that are final. So a view is that of the whole log. A view that comes later knows nothing of the
rows that are gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from millstream.broker.env import Disk
from millstream.broker.evaluate import Changes, net
from millstream.broker.evaluations import Evaluations, blob_of, held_of, rows_of_blob
from millstream.calculus.types import Row
from millstream.engine.storage.codec import DamagedState, decode, encode
from millstream.languages.served import Served

ENDING = ".base"


@dataclass(frozen=True)
class Base:
    """A log up to a record, without the rows that are gone."""

    identity: str
    #: The columns of streams, as the first record of the log had them.
    shapes: Mapping[str, str]
    position: int
    checksum: int
    knowledge: Mapping[str, Any]
    #: The rows of streams that are still needed.
    rows: Mapping[str, bytes]
    #: What each view was, its columns, and its rows that do not follow from these.
    views: Mapping[str, Mapping[str, Any]]
    #: Views that came when rows were gone already.
    later: tuple[str, ...]
    #: The last tick of each stream whose row is gone.
    since: Mapping[str, int]
    #: What other brokers have sent, and the file that it is of.
    held: Mapping[str, bytes] = field(default_factory=dict)
    edition: str = ""

    def is_whole(self, served: Served, view: str) -> bool:
        """Whether nothing is missing in a view."""
        one, known = served.views[view], self.views.get(view)
        if not one.streams & self.since.keys():
            return True
        return (
            known is not None and view not in self.later
            and known["definition"] == one.definition and known["columns"] == list(one.schema.names)
        )  # fmt: skip

    def is_of(self, served: Served) -> bool:
        """Whether what others have sent is of the file as it is now; else it is asked for again."""
        return served.part is None or served.part.edition == self.edition

    def knowledge_for(self, served: Served) -> Mapping[str, Any]:
        """What was known; of another file, what is known of streams that are published here."""
        if self.is_of(served):
            return self.knowledge
        ticks = {
            name: one for name, one in self.knowledge["ticks"].items() if name in served.hosted
        }
        return {**self.knowledge, "ticks": ticks, "held": {}}

    def put_into(self, evaluations: Evaluations) -> dict[str, Changes]:
        """The rows of all views, which these evaluations go on from."""
        served = evaluations.served
        held = held_of(served, self.held) if self.is_of(served) else {}
        knowledge, rows = self.knowledge_for(served), self.stored(served)
        made = evaluations.begin(self.position, self.checksum, knowledge, rows, held)
        for name, view in served.views.items():
            if name in self.views and self.is_whole(served, name):
                final = rows_of_blob(view.schema, self.views[name]["rows"])
                made[name] = net([*made.get(name, {}).items(), *final.items()])
        return {name: made.get(name, {}) for name in served.relations}

    def stored(self, served: Served) -> dict[str, list[Row]]:
        """The rows of streams that are here."""
        schemas = {name: s.input.type.schema for name, s in served.streams.items()}
        return {n: list(rows_of_blob(schemas[n], blob)) for n, blob in self.rows.items()}

    def encoded(self) -> bytes:
        return encode(asdict(self) | {"later": list(self.later)})


def latest_base(disk: Disk) -> Base | None:
    """The last one that is whole; one that was being written when all ended is not."""
    for name in reversed(disk.names(ENDING)):
        with suppress(DamagedState):
            state = decode(disk.read(name))
            return replace(Base(**state), later=tuple(state["later"]))
    return None


def rows_blob(served: Served, stream: str, rows: list[Row]) -> bytes:
    return blob_of(served.streams[stream].input.type.schema, dict.fromkeys(rows, 1))
