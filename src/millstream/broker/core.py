"""A broker: decides what becomes of rows, writes that to its log, and keeps views of it.

One thread calls it, and all that it has of the world is its `Env`. Nothing is answered, and nothing
is shown in a view, before it is durable.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from types import MappingProxyType

from millstream.broker.base import Base, latest_base
from millstream.broker.catching_up import CatchUp
from millstream.broker.env import Env
from millstream.broker.evaluate import Changes, Interpreted, difference
from millstream.broker.evaluations import Evaluations, Maker, schemas_of
from millstream.broker.journal import Journal
from millstream.broker.knowledge import NOBODY, NOTHING, Knowledge
from millstream.broker.log import SEGMENT, Log, LogFailed, Record
from millstream.broker.records import (
    Begun,
    Content,
    KnownRecord,
    RowsRecord,
    SilenceRecord,
    ViewsRecord,
    decoded,
    encoded,
)
from millstream.broker.retention import Retention
from millstream.broker.soft import LEAST, Frozen, Soft, SoftLog
from millstream.broker.ticks import Fate, Judged, TakenTicks
from millstream.broker.views import KEPT, ViewRows
from millstream.calculus.types import START_OF_TIME, Row, Value
from millstream.errors import PlanError, UsageError, listing
from millstream.languages.language import function_named
from millstream.languages.served import Served
from millstream.source import Source

#: After a start, the last records are taken in one by one, so that those who come back go on; but
#: no more than so many bytes: what is large takes long, and all at once much less.
ONE_BY_ONE, _BYTES_ONE_BY_ONE = 64, 1 << 17


@dataclass(frozen=True, slots=True)
class Given:
    """A row as it was published: its values, the first of which may be missing; or why not."""

    values: Row | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Publish:
    """A batch, which is taken as a whole; without a publisher it is not known again."""

    stream: str
    rows: tuple[Given, ...]
    digest: bytes
    publisher: str = NOBODY
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class Silence:
    """A publisher says that nothing comes up to a tick."""

    stream: str
    through: int
    publisher: str = NOBODY


@dataclass(frozen=True, slots=True)
class ChangeViews:
    """From now on there are these views beside those of the file."""

    added: dict[str, str]


@dataclass(frozen=True, slots=True)
class Take:
    """Another broker has sent what has changed in one of its relations."""

    known: KnownRecord


Request = Publish | Silence | ChangeViews | Take


@dataclass(frozen=True, slots=True)
class Accepted:
    """It is durable: under which number of the log, and what became of each row."""

    position: int
    judged: tuple[Judged, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing of it is in the log."""

    status: int
    reason: str


Answer = Accepted | Refused


def digest_of(stream: str, body: bytes) -> bytes:
    """What tells one batch from another."""
    return hashlib.sha256(stream.encode() + b"\0" + body).digest()[:16]


class Broker:
    """Mutable: a log and what is known of it."""

    def __init__(
        self, env: Env, served: Served, make: Maker = Interpreted, *, kept: int = KEPT,
        segment: int = SEGMENT, least: int = LEAST,
    ) -> None:  # fmt: skip
        self.env = env
        self.served = served
        self.make = make
        self.log = Log(env.disk, segment)
        self.knowledge = Knowledge(served.streams, served.part)
        self.journal = Journal()
        self.identity = ""
        #: Records that wait to become durable, and those that are and not yet in the views.
        self.written: list[Record] = []
        self.unseen: deque[Record] = deque()
        #: Held while views change, by whoever has threads.
        self.showing: AbstractContextManager[object] = nullcontext()
        #: Up to where each stream is known in the views.
        self.horizons: dict[str, int] = {}
        #: How many ticks are not known there, of the streams here that end.
        self.open_ticks: dict[str, int] = {}
        self.kept = kept
        self.views = {name: ViewRows(view, kept) for name, view in served.relations.items()}
        self.evaluations: Evaluations | None = None
        self.soft_log = SoftLog(env.disk, least)
        #: The checkpoint that the log was taken up from, until views have been made of it.
        self.soft: Soft | None = None
        #: What stands in the place of the beginning of the log, if that has gone.
        self.base: Base | None = None
        self.retention = Retention(env.disk)
        #: Logs of other brokers that are gone, by what is made of them here.
        self.lost: dict[str, tuple[str, ...]] = {}

    # --- the beginning ---

    def open(self, *, is_evaluating: bool = True) -> None:
        """Take up a log, or begin one; views follow at once unless they are put in later."""
        schemas, shapes = schemas_of(self.served), self.shapes
        after, base = self._begin(shapes)
        for record in self.log.open(after, base):
            content = decoded(record.data, schemas if record.number > 1 else {})
            if record.number == 1:
                self._take_up(content, shapes)
            if record.number > after:
                self.knowledge.take(record.number, content, self.journal)
                self.journal.commit()
                self.knowledge.forget(content)
                self.unseen.append(record)
        if self.soft is not None:
            self.soft_log.begin(self.log.size)
        if self.knowledge.added or self.base is not None:
            self._adopt(self.load(self.knowledge.added))
        if not self.identity:
            self.identity = self.env.new_identity()
            self._write(Begun(self.identity, shapes))
            try:
                self._sync()
            except LogFailed as failed:
                raise PlanError(str(failed)) from None
        if is_evaluating:
            made = CatchUp(self.served, self.env.disk, self.make, self.soft, self.base)
            made.up_to(after)
            self.soft = None
            self.put_in(made.evaluations, made.rows if after else {})

    @property
    def shapes(self) -> dict[str, str]:
        """The columns of the streams that are published here."""
        schemas = schemas_of(self.served)
        return {name: str(schemas[name]) for name in self.served.hosted}

    def _begin(self, shapes: dict[str, str]) -> tuple[int, tuple[int, int] | None]:
        """Take up what need not be read from the log: up to where, and what has gone of it."""
        self.base, self.soft = latest_base(self.env.disk), self.soft_log.latest(self.served)
        after = 0
        if self.base is not None:
            after = self.base.position
            self._take_up(Begun(self.base.identity, dict(self.base.shapes)), shapes)
            self.knowledge.restore(self.base.knowledge_for(self.served))
        if self.soft is not None and self.soft.position < after:
            self.soft = None
        if self.soft is not None:
            after = self.soft.position
            self.knowledge.restore(self.soft.knowledge)
        base = self.base
        return after, None if base is None else (base.position, base.checksum)

    @property
    def log_bytes(self) -> int:
        return self.log.size - self.retention.gone

    def retain(self, frozen: Frozen) -> None:
        """Let go of what nobody needs of the log, as of a checkpoint; if the disk permits."""
        with suppress(OSError):
            made = self.retention.retain(frozen, self.identity, self.shapes, self.base)
            self.base = made or self.base

    def load(self, added: Mapping[str, str]) -> Served:
        """The file with some views added, or all that is wrong with it."""
        load, source = function_named(self.served.loader), Source("view", self.served.text)
        made: Served = load(source, added)
        if self.base is None:
            return made
        later = frozenset(name for name in made.views if not self.base.is_whole(made, name))
        if later and made.part is not None:
            raise UsageError(
                f"{listing(sorted(later))} would need rows that have gone from the log",
                hint="take another folder with --checkpoint, or begin with --keep-log",
            )
        again: Served = load(source, added, later) if later else made
        return again

    def complete_since(self, view: str) -> dict[str, int]:
        """From where on a view has all rows of its streams, where it does not have all."""
        if self.base is None or view not in self.served.later:
            return {}
        streams = self.served.views[view].streams
        return {name: tick for name, tick in self.base.since.items() if name in streams}

    def _adopt(self, served: Served) -> list[ViewRows]:
        """Serve other views; those that stay as they are keep what they know. Returns the new."""
        old, views = self.views, {}
        for name, view in served.relations.items():
            is_same = name in old and old[name].view.edition == view.edition
            views[name] = old[name] if is_same else ViewRows(view, self.kept)
        self.served, self.views = served, views
        return [view for name, view in views.items() if old.get(name) is not view]

    def change(self, served: Served, evaluations: Evaluations, rows: Mapping[str, Changes]) -> None:
        """Views have come or gone, and are worked out by these from now on."""
        with self.showing:
            new = self._adopt(served)
            self.swap(evaluations, rows)
            for view in new:
                view.begin(evaluations.position)

    def _take_up(self, content: Content, shapes: dict[str, str]) -> None:
        if not isinstance(content, Begun):
            raise PlanError("this log has no beginning", hint="put a copy in its place")
        self.identity = content.identity
        changed = [n for n, shape in content.streams.items() if shapes.get(n) != shape]
        if changed:
            raise UsageError(
                f"the log has rows of {changed[0]}{content.streams[changed[0]]}",
                hint="streams keep their columns; take another folder with --checkpoint",
            )

    def put_in(
        self, evaluations: Evaluations, rows: Mapping[str, Changes] = MappingProxyType({})
    ) -> None:
        """Views are worked out by these from now on, and come up to now; `rows` are theirs."""
        self.evaluations = evaluations
        if rows:
            self._show({name: dict(some) for name, some in rows.items()}, is_first=True)
        records = [r for r in self._taken() if r.number > evaluations.position]
        count = _last_few(records)
        early, late = records[: len(records) - count], records[len(records) - count :]
        if early:
            self._show(evaluations.advance(early), is_first=True)
        for record in late:
            self._show(evaluations.advance([record]))

    # --- publishing ---

    def commit(self, requests: Sequence[Request]) -> list[Answer]:
        """Decide all requests in turn, and make what was decided durable, or nothing of it."""
        durable = self.log.number
        answers = [self._decided(request) for request in requests]
        try:
            self._sync()
        except LogFailed as failed:
            refused = Refused(507 if failed.is_full else 503, str(failed))
            return [
                refused if isinstance(a, Accepted) and a.position > durable else a for a in answers
            ]
        for name in {r.publisher for r in requests if isinstance(r, Publish)} - {NOBODY}:
            self.knowledge.publisher(name).forget()
        return answers

    def _decided(self, request: Request) -> Answer:
        try:
            match request:
                case ChangeViews(added):
                    return Accepted(self._write(ViewsRecord(added)))
                case Take(known):
                    return self._taken_over(known)
                case _ if request.stream not in self.served.hosted:
                    return self._not_here(request.stream)
                case Publish():
                    return self._published(request)
                case Silence(stream, through, publisher):
                    return self._silenced(stream, through, publisher)
        except LogFailed as failed:
            return Refused(503, str(failed))

    def _taken_over(self, known: KnownRecord) -> Answer:
        """What goes on exactly behind what is here is taken, and nothing else."""
        held = self.knowledge.held.get(known.relation, NOTHING)
        if not self.knowledge.is_held(known) or not held.fits(known):
            return Refused(409, "this does not go on behind what is here")
        return Accepted(self._write(known))

    def _not_here(self, stream: str) -> Answer:
        part = self.served.part
        place = None if part is None else part.place_of(stream)
        if place is not None:
            return Refused(404, f"{stream} is published at the broker {place}")
        return Refused(404, f'there is no stream "{stream[:80]}"')

    def _published(self, batch: Publish) -> Answer:
        known = self._known(batch)
        if known is not None:
            return known
        ticks = self.knowledge.ticks[batch.stream]
        key = ticks.stream.input.type.schema.index(ticks.stream.key)
        now = self.env.clock.now()
        promised = TakenTicks()
        judged: list[Judged] = []
        rows: list[Row] = []
        for given in batch.rows:
            if given.values is None:
                judged.append(Judged(Fate.REJECTED, None, given.reason))
                continue
            tick = given.values[key]
            assert tick is None or isinstance(tick, int)
            fate = ticks.judge(tick, now, promised)
            judged.append(fate)
            if fate.fate is Fate.ACCEPTED and fate.tick is not None:
                promised.add(fate.tick)
                rows.append(_with(given.values, key, fate.tick))
        record = RowsRecord(
            batch.stream, batch.publisher, batch.sequence, batch.digest, tuple(rows), tuple(judged)
        )
        return Accepted(self._write(record), tuple(judged))

    def _known(self, batch: Publish) -> Answer | None:
        """What is answered to a batch that has come before."""
        if batch.publisher == NOBODY:
            return None
        publisher = self.knowledge.publisher(batch.publisher)
        if batch.sequence not in publisher.seen:
            return None
        before = publisher.answered.get(batch.sequence)
        if before is not None and before.digest != batch.digest:
            reason = f"batch {batch.sequence} of {batch.publisher} had other content"
            return Refused(409, reason)
        self.knowledge.ticks[batch.stream].counts[Fate.DUPLICATE.value] += len(batch.rows)
        if before is None:
            return Accepted(0, (Judged(Fate.DUPLICATE),) * len(batch.rows))
        if before.judged is None:
            return Accepted(before.position, (Judged(Fate.DUPLICATE),) * len(batch.rows))
        again = tuple(
            Judged(Fate.DUPLICATE, j.tick) if j.fate is Fate.ACCEPTED else j for j in before.judged
        )
        return Accepted(before.position, again)

    def _silenced(self, stream: str, through: int, publisher: str) -> Answer:
        if through > self.env.clock.now():
            return Refused(400, "silence can be declared up to now")
        if through <= self.knowledge.ticks[stream].horizon:
            return Accepted(self.log.number)
        return Accepted(self._write(SilenceRecord(stream, through, publisher or None)))

    def beat(self) -> None:
        """Declare the silences that heartbeats ask for."""
        now = self.env.clock.now()
        for name in self.served.hosted:
            through = self.knowledge.ticks[name].overdue(now)
            if through is not None:
                self._write(SilenceRecord(name, through, None))
        self._sync()

    # --- the log ---

    def _write(self, content: Content) -> int:
        data = encoded(content)
        record = self.log.append(data)
        self.knowledge.take(record.number, content, self.journal)
        self.written.append(record)
        return record.number

    def _sync(self) -> None:
        try:
            self.log.sync()
        except LogFailed:
            self.journal.roll_back()
            self.written.clear()
            raise
        self.journal.commit()
        self.unseen.extend(self.written)
        self.written.clear()

    # --- views ---

    def evaluate(self) -> bool:
        """Bring the views up to what is durable; tells whether there was anything to do."""
        if self.evaluations is None or not self.unseen:
            return False
        self._show(self.evaluations.advance(self._taken()))
        return True

    def frozen(self) -> Frozen | None:
        """What a soft checkpoint would say now, if one is due; whoever asks writes it."""
        if self.evaluations is None or not self.soft_log.is_due(self.log.size):
            return None
        rows = {name: dict(view.rows) for name, view in self.views.items()}
        knowledge = self.evaluations.knowledge.snapshot()
        make = self.evaluations.make
        return Frozen(self.served, make, knowledge, self.evaluations.snapshot(), rows)

    def swap(self, evaluations: Evaluations, rows: Mapping[str, Changes]) -> None:
        """The same views are worked out in another way from now on, and are further if that is."""
        self.evaluations = evaluations
        while self.unseen and self.unseen[0].number <= evaluations.position:
            self.unseen.popleft()
        self._show({n: difference(v.rows, rows[n]) for n, v in self.views.items()})

    def _taken(self) -> list[Record]:
        return [self.unseen.popleft() for _ in range(len(self.unseen))]

    def _show(self, changes: dict[str, Changes], *, is_first: bool = False) -> None:
        assert self.evaluations is not None
        position = self.evaluations.position
        known = self.evaluations.knowledge.horizons()
        ticks = self.evaluations.knowledge.ticks
        open_ = {name: ticks[name].open for name in self.served.hosted}
        with self.showing:
            self.horizons = {n: horizon for n, horizon in known.items() if horizon > START_OF_TIME}
            self.open_ticks = {n: count for n, count in open_.items() if count is not None}
            for name, view in self.views.items():
                view.take(position, changes.get(name, {}))
                if is_first:
                    view.begin(position)


def _last_few(records: Sequence[Record]) -> int:
    """How many of the last records are few enough, and short enough, to be taken one by one."""
    count, size = 0, 0
    for record in reversed(records[-ONE_BY_ONE:]):
        size += len(record.data)
        if size > _BYTES_ONE_BY_ONE:
            break
        count += 1
    return count


def _with(values: Row, at: int, value: Value) -> Row:
    return (*values[:at], value, *values[at + 1 :])
