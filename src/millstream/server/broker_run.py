"""A broker at work: one thread makes batches durable, another brings the views up to them.

Views are interpreted at first, so that they are there at once; meanwhile their loops are compiled.
Should so much come before that is done that interpreting takes too long, views stay where they
are (what they say remains true) until the compiled ones have caught up.
"""

from __future__ import annotations

import contextlib
import gc
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from millstream.broker.catching_up import CatchUp
from millstream.broker.core import (
    ONE_BY_ONE,
    Accepted,
    Answer,
    Broker,
    ChangeViews,
    Publish,
    Request,
)
from millstream.broker.cursor import Subscriber, ToldMessage
from millstream.broker.env import Disk, Env, FolderDisk, MachineClock
from millstream.broker.evaluate import Interpreted
from millstream.broker.evaluations import Maker
from millstream.broker.log import LogFailed
from millstream.broker.messages import Message
from millstream.broker.node import Node
from millstream.broker.soft import Frozen
from millstream.broker.ticks import Fate
from millstream.broker.warming import compiled_aside
from millstream.engine.warm import is_warm, note_warm
from millstream.errors import MillstreamError
from millstream.languages.served import Served
from millstream.server.linking import Peers
from millstream.server.patience import Patience
from millstream.server.routes import Refusal
from millstream.server.serving import FAILED, RECOVERING, RUNNING
from millstream.server.waking import Waking

#: So many rows may wait to be made durable; who brings more comes again.
MOST_WAITING = 200_000
#: So many rows are interpreted at most before compiled views are there.
_MOST_INTERPRETED = 400
#: Between two looks at what has come the views rest as long as the first took, but no longer.
_LONGEST_REST = 0.01
#: How often heartbeats are looked after, in seconds.
_BEAT = 0.1
#: So long the event loop waits for views that are just being changed: all who listen would have to
#: be told by threads otherwise, one after the other.
_MOMENT = 0.005


@dataclass(frozen=True)
class _Asked:
    request: Request
    answer: Future[Answer]

    @property
    def size(self) -> int:
        return len(self.request.rows) if isinstance(self.request, Publish) else 1


class BrokerRun:
    """Mutable: a broker with its threads."""

    def __init__(
        self, served: Served, folder: Path, *, compiles: bool = True, peers: Peers | None = None,
        log: str | None = None, keeps_log: bool = False,
    ) -> None:  # fmt: skip
        self.status = RECOVERING
        self.fault: BaseException | None = None
        self.env = Env(_disk(folder, log), MachineClock())
        self.broker = Broker(self.env, served)
        self.lock = threading.RLock()
        self.broker.showing = self.lock
        self.compiles = compiles
        self.is_compiled = False
        self.started = time.monotonic()
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._waiting = 0
        self._news = threading.Event()
        self._stop = threading.Event()
        #: Those who listen to views, and those who wait until one has come to a position.
        self.waking = Waking()
        self.patience = Patience()
        self._listeners: dict[int, Callable[[], None]] = {}
        self._threads: list[threading.Thread] = []
        self._at_end: Callable[[], object] = lambda: None
        #: Views that are to be made, those that are made, and whether these are in place.
        self._wanted: queue.SimpleQueue[Served | None] = queue.SimpleQueue()
        self._made: tuple[CatchUp, bool] | None = None
        self._is_put_in = threading.Event()
        #: Views as a soft checkpoint says them, and whether the last has been written.
        self._frozen: queue.SimpleQueue[Frozen | None] = queue.SimpleQueue()
        self._is_kept = threading.Event()
        self._is_kept.set()
        self._changing = threading.Lock()
        #: Why all of the log is kept, if it is; nothing goes while views are made from it.
        self.keeps_because = (
            "it was asked for" if keeps_log
            else "it is in NATS" if log is not None
            else None
        )  # fmt: skip
        self._reading = threading.Lock()
        #: What will be served soon.
        self.coming = served
        #: The other brokers, if there are any.
        self.peers = peers
        self.node = None if peers is None else Node(self.broker, peers.send)

    # --- threads ---

    def start(self, at_end: Callable[[], object]) -> None:
        """Take up the log, and then begin to work."""
        self._at_end = at_end
        self.broker.open(is_evaluating=False)
        self.status = RUNNING
        self.coming = self.broker.served
        self._wanted.put(self.broker.served)
        if self.peers is not None:
            self.peers.start()
        for one in (self._commit, self._evaluate, self._keep, self._make):
            thread = threading.Thread(target=self._guarded, args=(one,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Make durable what has been asked for, and end."""
        self._stop.set()
        self._asked.put(None)
        self._news.set()
        self._wanted.put(None)
        self._frozen.put(None)
        for thread in self._threads[:3]:  # compiling need not come to its end
            thread.join()
        if self.peers is not None:
            self.peers.stop()
        self.env.disk.close()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 - told by whoever waits for the end
            self.fault = fault
            self.status = FAILED
            self._at_end()

    # --- publishing ---

    def ask(self, request: Request) -> Future[Answer]:
        """A request that is answered when it is durable."""
        asked = _Asked(request, Future())
        if self.status == FAILED or self._stop.is_set():
            raise Refusal(503, "this broker has ended", None, {"Retry-After": "1"})
        if self._waiting + asked.size > MOST_WAITING:
            message = f"more than {MOST_WAITING:,} rows are waiting"
            raise Refusal(429, message, "send them again in a moment", {"Retry-After": "1"})
        with self.lock:
            self._waiting += asked.size
        self._asked.put(asked)
        return asked.answer

    def hear(self, sender: str, messages: Sequence[Message]) -> None:
        """Another broker has said something."""
        assert self.node is not None
        for message in messages:
            self.node.hear(sender, message)
        self._asked.put(None)  # so that it is looked at now

    def want(self, view: str) -> None:
        """Somebody reads a view."""
        if self.node is not None:
            self.node.want(view)

    def _commit(self) -> None:
        lost = self.broker.lost
        while not self._stop.is_set():
            group = self._group()
            sent = [] if self.node is None else self.node.requests()
            if self.broker.lost != lost:  # nothing changes any more, so nobody else would tell
                lost = self.broker.lost
                self._tell(is_all=True)
            answers = self.broker.commit([*(one.request for one in group), *sent])[: len(group)]
            if self.node is not None:
                self.node.settle(sent)
            with contextlib.suppress(LogFailed):  # whoever publishes is told
                self.broker.beat()
            with self.lock:
                self._waiting -= sum(one.size for one in group)
            for one, answer in zip(group, answers, strict=True):
                one.answer.set_result(answer)
            self._news.set()

    def _group(self) -> list[_Asked]:
        """All that has been asked for; it becomes durable together."""
        group: list[_Asked | None] = []
        with contextlib.suppress(queue.Empty):
            group.append(self._asked.get(timeout=_BEAT))
            while True:
                group.append(self._asked.get_nowait())
        return [one for one in group if one is not None]

    # --- views ---

    def _evaluate(self) -> None:
        while not self._stop.is_set():
            self._news.wait()
            self._news.clear()
            if self._made is not None:
                self._put_in(*self._made)
                self._made = None
                self._is_put_in.set()
            begun = time.perf_counter()
            is_new = self._may_evaluate() and self.broker.evaluate()
            if is_new:
                self._tell()
                self._freeze()
            if self.node is not None:
                self.node.tell()
            if is_new:
                # Small batches cost about as much as one of all that has come meanwhile, and
                # whoever publishes needs Python's lock, too.
                self._stop.wait(min(time.perf_counter() - begun, _LONGEST_REST))

    def _freeze(self) -> None:
        """Have a soft checkpoint written if one is due, unless the last is still being written."""
        if self.is_compiled and self._is_kept.is_set():
            frozen = self.broker.frozen()
            if frozen is not None:
                self._is_kept.clear()
                self._frozen.put(frozen)

    def _keep(self) -> None:
        while (frozen := self._frozen.get()) is not None:
            self.broker.soft_log.write(frozen, self.broker.log.size)
            if self.keeps_because is None and self._reading.acquire(blocking=False):
                try:
                    self.broker.retain(frozen)
                finally:
                    self._reading.release()
            self._is_kept.set()

    def _may_evaluate(self) -> bool:
        evaluations = self.broker.evaluations
        if evaluations is None:
            return False
        return self.is_compiled or self._has_few_rows() or not self.compiles

    def _has_few_rows(self) -> bool:
        ticks = list(self.broker.knowledge.ticks.values())
        return sum(one.counts[Fate.ACCEPTED.value] for one in ticks) <= _MOST_INTERPRETED

    def _make(self) -> None:
        """Make views that are wanted: interpreted if that is quick, and then compiled."""
        while (served := self._wanted.get()) is not None:
            if not self.compiles or (self._has_few_rows() and not _is_warm(served)):
                self._hand_over(served, Interpreted)
            if not self.compiles:
                continue
            # Compiling leaves others no turn, so it is done by a process of its own.
            if not _is_warm(served) and not compiled_aside(served, self._stop):
                if self._stop.is_set():
                    return
                self.compiles = False  # what is interpreted goes on, however long it takes
                self._wanted.put(served)
                continue
            from millstream.broker.compiled import Compiled

            self._hand_over(served, Compiled)
            self.broker.soft = None
            for program in served.programs:
                note_warm(program)

    def _hand_over(self, served: Served, make: Maker) -> None:
        """Bring views up to the last records, and wait until they are in place."""
        with self._reading:
            made = CatchUp(served, self.env.disk, make, self.broker.soft, self.broker.base)
            made.up_to(max(self.broker.log.durable - ONE_BY_ONE, 1))
            self._is_put_in.clear()
            self._made = made, make is not Interpreted
            self._news.set()
            while not self._is_put_in.wait(0.2) and not self._stop.is_set():
                continue

    def _put_in(self, made: CatchUp, is_compiled: bool) -> None:  # noqa: FBT001
        """Views take the place of others; those that stay must be the same."""
        broker = self.broker
        if broker.evaluations is None:
            broker.put_in(made.evaluations, made.rows)
        else:
            made.up_to(broker.evaluations.position)
            is_even = made.evaluations.position == broker.evaluations.position
            rows = {n: v.rows for n, v in broker.views.items() if self._stays(n, made.served)}
            if is_even and (differing := made.differs(rows)):
                names = ", ".join(differing)
                raise MillstreamError(f"compiled views differ from interpreted ones: {names}")
            broker.change(made.served, made.evaluations, made.rows)
        self.is_compiled = is_compiled
        if is_compiled:
            # What is there by now stays, and all wait while Python looks through it for garbage.
            gc.collect()
            gc.freeze()
        self._tell(is_all=True)

    def _stays(self, name: str, served: Served) -> bool:
        view = served.views.get(name)
        return view is not None and view.edition == self.broker.views[name].view.edition

    def change_views(self, change: Callable[[dict[str, str]], None]) -> Answer:
        """Add or drop views; answered when that is durable, and then they are made."""
        with self._changing:
            added = dict(self.broker.knowledge.added)
            change(added)
            served = self.broker.load(added)
            answer = self.ask(ChangeViews(added)).result()
            if isinstance(answer, Accepted):
                self.coming = served
                self._wanted.put(served)
            return answer

    @property
    def served(self) -> Served:
        """What is served now."""
        return self.broker.served

    # --- those who listen ---

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Be told whenever views have come further; returns what ends that."""
        with self.lock:
            self._listeners[id(listener)] = listener

        def end() -> None:
            with self.lock:
                self._listeners.pop(id(listener), None)

        return end

    def said_at_once(self, subscriber: Subscriber) -> list[ToldMessage] | None:
        """What there is to say to one who listens; None if that would hold up others."""
        if not self.lock.acquire(blocking=False):
            return None
        try:
            return subscriber.next() if subscriber.has_little() else None
        finally:
            self.lock.release()

    def _tell(self, *, is_all: bool = False) -> None:
        """Views have moved on: wake those for whom a row has changed at once, or all."""
        with self.lock:
            listeners = list(self._listeners.values())
            woken = [s for view in self.broker.views.values() for s in view.audience.woken()]
        for listener in listeners:
            listener()
        if is_all:
            self.waking.wake_all()
        else:
            self.waking.wake(woken)

    def check_ready(self) -> None:
        if self.status == FAILED:
            raise Refusal(503, "this broker has failed", "it says why where it was started")

    def check_views(self) -> None:
        """Views are there once the log has been taken up."""
        if self.broker.evaluations is None:
            message = "the views are being made from the log"
            raise Refusal(503, message, "ask again in a moment", {"Retry-After": "1"})


def _disk(folder: Path, log: str | None) -> Disk:
    """Where the log is: in a folder, or elsewhere with a copy in that folder."""
    if log is None:
        return FolderDisk(folder)
    from millstream.broker.jetstream_log import JetStreamDisk

    return JetStreamDisk(folder, log)


def _is_warm(served: Served) -> bool:
    """Whether its loops lie in the cache."""
    return all(is_warm(program) for program in served.programs)
