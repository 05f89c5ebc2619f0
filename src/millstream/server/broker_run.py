"""A broker at work: one thread makes batches durable, another brings the views up to them.

Views are interpreted at first, so that they are there at once; meanwhile their loops are compiled.
Should so much come before that is done that interpreting takes too long, views stay where they
are (what they say remains true) until the compiled ones have caught up.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.broker.core import ONE_BY_ONE, Answer, Broker, Publish, Request
from millstream.broker.env import Env, FolderDisk, MachineClock
from millstream.broker.evaluate import Interpreted
from millstream.broker.evaluations import Evaluations
from millstream.broker.log import LogFailed
from millstream.broker.warming import compiled_aside
from millstream.calculus.graph import Program
from millstream.engine.warm import is_warm, note_warm
from millstream.errors import MillstreamError
from millstream.languages.served import Served
from millstream.server.routes import Refusal
from millstream.server.serving import FAILED, RECOVERING, RUNNING

if TYPE_CHECKING:
    from millstream.broker.catching_up import CatchUp

#: So many rows may wait to be made durable; who brings more comes again.
MOST_WAITING = 200_000
#: So many records are interpreted at most before compiled views are there.
_MOST_INTERPRETED = 400
#: How often heartbeats are looked after, in seconds.
_BEAT = 0.1


@dataclass(frozen=True)
class _Asked:
    request: Request
    answer: Future[Answer]

    @property
    def size(self) -> int:
        return len(self.request.rows) if isinstance(self.request, Publish) else 1


class BrokerRun:
    """Mutable: a broker with its threads."""

    def __init__(self, served: Served, folder: Path, *, compiles: bool = True) -> None:
        self.served = served
        self.status = RECOVERING
        self.fault: BaseException | None = None
        self.env = Env(FolderDisk(folder), MachineClock())
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
        self._listeners: dict[int, Callable[[], None]] = {}
        self._threads: list[threading.Thread] = []
        self._at_end: Callable[[], object] = lambda: None
        self._caught_up: CatchUp | None = None

    # --- threads ---

    def start(self, at_end: Callable[[], object]) -> None:
        """Take up the log, and then begin to work."""
        self._at_end = at_end
        self.broker.open(is_evaluating=False)
        self.status = RUNNING
        work = [self._commit, self._evaluate] + ([self._compile] if self.compiles else [])
        for one in work:
            thread = threading.Thread(target=self._guarded, args=(one,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Make durable what has been asked for, and end."""
        self._stop.set()
        self._asked.put(None)
        self._news.set()
        for thread in self._threads[:2]:  # compiling need not come to its end
            thread.join()
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

    def _commit(self) -> None:
        while not self._stop.is_set():
            group = self._group()
            answers = self.broker.commit([one.request for one in group])
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
        if (
            not (self.compiles and self._are_warm())
            and len(self.broker.unseen) <= _MOST_INTERPRETED
        ):
            self.broker.put_in(Evaluations(self.served, Interpreted))
            self._tell()
        while not self._stop.is_set():
            self._news.wait()
            self._news.clear()
            if self._caught_up is not None:
                self._put_in(self._caught_up)
                self._caught_up = None
            if self._may_evaluate() and self.broker.evaluate():
                self._tell()

    def _may_evaluate(self) -> bool:
        evaluations = self.broker.evaluations
        if evaluations is None:
            return False
        is_few = evaluations.position + len(self.broker.unseen) <= _MOST_INTERPRETED
        return self.is_compiled or is_few or not self.compiles

    def _compile(self) -> None:
        # Compiling leaves others no turn, so it is done by a process of its own.
        if not self._are_warm() and not compiled_aside(self.served, self._stop):
            return
        from millstream.broker.catching_up import CatchUp

        catch_up = CatchUp(self.served, self.env.disk)
        catch_up.up_to(max(self.broker.log.durable - ONE_BY_ONE, 1))
        for program in self._programs():
            note_warm(program)
        self._caught_up = catch_up
        self._news.set()

    def _put_in(self, catch_up: CatchUp) -> None:
        """Compiled views take the place of interpreted ones, which must be the same."""
        broker = self.broker
        if broker.evaluations is None:
            broker.put_in(catch_up.evaluations, catch_up.rows)
        else:
            catch_up.up_to(broker.evaluations.position)
            is_even = catch_up.evaluations.position == broker.evaluations.position
            rows = {name: view.rows for name, view in broker.views.items()}
            if is_even and (differing := catch_up.differs(rows)):
                names = ", ".join(differing)
                raise MillstreamError(f"compiled views differ from interpreted ones: {names}")
            broker.swap(catch_up.evaluations, catch_up.rows)
        self.is_compiled = True
        self._tell()

    def _are_warm(self) -> bool:
        return all(is_warm(program) for program in self._programs())

    def _programs(self) -> list[Program]:
        return [p for p in (self.served.live, self.served.settled) if p is not None]

    # --- those who listen ---

    def listen(self, told: Callable[[], None]) -> Callable[[], None]:
        """Be told that views have changed; returns what ends that."""
        with self.lock:
            self._listeners[id(told)] = told

        def end() -> None:
            with self.lock:
                self._listeners.pop(id(told), None)

        return end

    @property
    def listening(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def _tell(self) -> None:
        with self.lock:
            listeners = list(self._listeners.values())
        for told in listeners:
            told()

    def check_ready(self) -> None:
        if self.status == FAILED:
            raise Refusal(503, "this broker has failed", "it says why where it was started")

    def check_views(self) -> None:
        """Views are there once the log has been taken up."""
        if self.broker.evaluations is None:
            message = "the views are being made from the log"
            raise Refusal(503, message, "ask again in a moment", {"Retry-After": "1"})
