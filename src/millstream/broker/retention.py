"""Letting go of the beginning of a log: once all that follows from it is final, or gone for ever.

A file of the log goes when a base says all that is left of it, and is durable. What a view needs a
row for is said by the language; here it is asked row by row. Whether that was right is looked at
before anything goes: the views of what stays, and those of everything, may differ in rows that
are final, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from millstream.broker.base import ENDING, Base, rows_blob
from millstream.broker.env import Disk
from millstream.broker.evaluate import Changes, difference
from millstream.broker.evaluations import Evaluations, blob_of, schemas_of
from millstream.broker.knowledge import Knowledge
from millstream.broker.log import files_up_to, records_between
from millstream.broker.records import RowsRecord, decoded
from millstream.broker.soft import Frozen
from millstream.calculus.types import START_OF_TIME, Row
from millstream.languages.served import FINAL_COLUMN, Always, Need, WhileIn, WhileOpen

_IsNeeded = Callable[[Row], bool]


class Retention:
    """Mutable: what has been tried, and what became of it."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        #: How many bytes must be to be had before it is tried again.
        self.least = 1
        #: What stands instead may have so much of the bytes that go.
        self.share = 0.5
        #: How many bytes of the log have gone.
        self.gone = 0
        #: Why the log stays as it is, by stream, or because of what.
        self.kept: dict[str, str] = {}

    def retain(
        self, frozen: Frozen, identity: str, shapes: dict[str, str], base: Base | None
    ) -> Base | None:
        """Let files go that are not needed as of a checkpoint; the base that is there instead."""
        names = files_up_to(self.disk, frozen.position)
        size = sum(self.disk.size(name) for name in names)
        if not names or size < self.least:
            return None
        asked = _Asked(frozen)
        self.kept = asked.always
        if asked.always.keys() >= frozen.served.hosted.keys():
            self.least = 2 * size
            return None
        made = self._made(frozen, identity, shapes, base, asked)
        data = made.encoded() if made is not None else b""
        if made is None or len(data) > self.share * size:
            self.least = 2 * size
            return None
        self.least = int(len(data) / max(self.share, 1))
        self._write(made, data)
        for name in names:
            with suppress(OSError):  # it is tried again with the next
                self.disk.remove(name)
        self.gone += size
        return made

    def _made(
        self, frozen: Frozen, identity: str, shapes: dict[str, str], base: Base | None,
        asked: _Asked,
    ) -> Base | None:  # fmt: skip
        served = frozen.served
        kept: dict[str, list[Row]] = {name: [] for name in served.hosted}
        since = dict(base.since) if base is not None else {}
        for stream, row in self._rows(frozen, base):
            if asked.is_needed[stream](row):
                kept[stream].append(row)
            else:
                tick = row[asked.keys[stream]]
                assert isinstance(tick, int)
                since[stream] = max(since.get(stream, START_OF_TIME), tick)
        knowledge = Knowledge.written(frozen.knowledge)
        made = Base(
            identity, shapes, frozen.position, int(frozen.evaluations["checksum"]), knowledge,
            {name: rows_blob(served, name, rows) for name, rows in kept.items()}, {},
            tuple(sorted(served.later)), since, frozen.evaluations["held"],
            served.part.edition if served.part is not None else "",
        )  # fmt: skip
        stored = self._stored(frozen, made)
        if stored is None:
            return None
        views = {
            name: {"definition": view.definition, "columns": list(view.schema.names),
                   "rows": blob_of(view.schema, stored[name])}
            for name, view in served.views.items()
        }  # fmt: skip
        return Base(**{**vars(made), "views": views})

    def _rows(self, frozen: Frozen, base: Base | None) -> Iterator[tuple[str, Row]]:
        """All rows that are still there up to a checkpoint."""
        for name, rows in ({} if base is None else base.stored(frozen.served)).items():
            for row in rows:
                yield name, row
        schemas = schemas_of(frozen.served)
        after = 1 if base is None else base.position
        for record in records_between(self.disk, after, frozen.position):
            content = decoded(record.data, schemas)
            if isinstance(content, RowsRecord):
                for row in content.rows:
                    yield content.stream, row

    def _stored(self, frozen: Frozen, base: Base) -> dict[str, Changes] | None:
        """What the views have beside what follows from the rows that stay: all of it is final."""
        rows = base.put_into(Evaluations(frozen.served, frozen.make))
        made: dict[str, Changes] = {}
        for name, view in frozen.served.views.items():
            made[name] = difference(rows[name], dict(frozen.rows[name]))
            at = view.schema.index(FINAL_COLUMN)
            if not all(row[at] is True for row in made[name]):
                self.kept = {name: "its rows are needed, though nothing seemed to need them"}
                return None
        for name in frozen.served.relations.keys() - made.keys():
            if rows[name] != frozen.rows[name]:
                self.kept = {name: "other brokers have been sent rows that would be gone"}
                return None
        return made

    def _write(self, base: Base, data: bytes) -> None:
        name = f"{base.position:016}{ENDING}"
        self.disk.remove(name)
        self.disk.append(name, data)
        self.disk.sync(name)
        for old in self.disk.names(ENDING):
            if old < name:
                with suppress(OSError):  # the last one counts
                    self.disk.remove(old)


class _Asked:
    """Which rows of which streams are needed as of a checkpoint."""

    def __init__(self, frozen: Frozen) -> None:
        self.frozen = frozen
        served = frozen.served
        self.keys = {n: s.input.type.schema.index(s.key) for n, s in served.hosted.items()}
        ticks = frozen.knowledge["ticks"]
        self.horizons = {name: int(ticks[name]["horizon"]) for name in served.hosted}
        # What others have sent is over when they say so, and that is not asked here.
        is_over = served.part is None and all(
            s.until is not None and self.horizons[n] >= s.until for n, s in served.streams.items()
        )
        self.is_needed: dict[str, _IsNeeded] = {}
        #: The streams whose rows are all needed, and why.
        self.always: dict[str, str] = {}
        for name in served.hosted:
            needs = () if is_over else served.needs.get(name, (Always("nobody says how long"),))
            reasons = [need.reason for need in needs if isinstance(need, Always)]
            if reasons:
                self.always[name] = reasons[0]
            self.is_needed[name] = self._any([self._test(name, need) for need in needs])

    @staticmethod
    def _any(tests: list[_IsNeeded]) -> _IsNeeded:
        return lambda row: any(test(row) for test in tests)

    def _test(self, stream: str, need: Need) -> _IsNeeded:
        match need:
            case Always():
                return lambda _: True
            case WhileOpen(length):
                key, known = self.keys[stream], self.horizons[stream] - length
                return lambda row: row[key] > known  # type: ignore[operator]
            case WhileIn(view, column, by, of):
                at = self.frozen.served.views[view].schema.index(column)
                there = {row[at] for row in self.frozen.rows[view]}
                own = self.frozen.served.streams[stream].input.type.schema.index(by)
                horizon = self.horizons[of]
                return lambda row: row[own] in there or row[own] > horizon  # type: ignore[operator]
