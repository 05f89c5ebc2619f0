"""Changes of a view, as server-sent events or as Arrow, to one who is never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson
from fastapi import Response

from millstream.broker.cursor import LOST, Subscriber, ToldMessage, ViewGone
from millstream.server.arrow_events import ArrowEvents
from millstream.server.begun import begun
from millstream.server.gate import BARE_SEND
from millstream.server.patience import Taking
from millstream.server.routes import Form
from millstream.server.waking import PAUSE_SECONDS, QUIET_SECONDS

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from millstream.server.broker_run import BrokerRun


async def messages(run: BrokerRun, subscriber: Subscriber,
                   tell_at_once: Callable[[], bool] | None = None,
) -> AsyncIterator[ToldMessage | None]:  # fmt: skip
    """What there is to say, as it comes, but for what is told at once; None in long silence."""
    waiting = run.waking.add(subscriber, tell_at_once)
    waiting.news.set()
    try:
        while True:
            await waiting.wait()
            said = run.said_at_once(subscriber)
            if said is None:
                await asyncio.sleep(PAUSE_SECONDS)  # views are just being changed
                said = run.said_at_once(subscriber)
            if said is None:
                said = await asyncio.to_thread(subscriber.next)
            for message in said or (None,):
                yield message
                if message is not None and message.kind == LOST:
                    return
    finally:
        run.waking.remove(subscriber)


class EventStream(Response):
    """Mutable: an answer that goes on until the other side leaves or takes too long."""

    def __init__(self, run: BrokerRun, subscriber: Subscriber, form: Form = Form.EVENTS) -> None:
        super().__init__()
        self.run = run
        self.subscriber = subscriber
        is_arrow = form is Form.ARROW
        self.kind = form.value if is_arrow else f"{form.value}; charset=utf-8"
        self.written = ArrowEvents(subscriber.asked) if is_arrow else _event
        #: When something was last told.
        self._told = 0.0
        #: Sends bytes without anything on the way that is only of use to what comes before them.
        self._send: Send
        #: What was begun to be sent at once and has to wait for the other side.
        self._begun: Awaitable[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", self.kind.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        self._send = scope.get(BARE_SEND, send)
        telling = asyncio.ensure_future(self._tell())
        leaving = asyncio.ensure_future(_until_they_leave(receive))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if telling.done():
                with suppress(TimeoutError, OSError):  # they may come back
                    with suppress(ViewGone):
                        telling.result()
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            telling.cancel()
            leaving.cancel()
            self.subscriber.leave()

    async def _tell(self) -> None:
        taking = Taking(self.run.patience)
        clock = asyncio.get_running_loop().time
        async for message in messages(self.run, self.subscriber, self._tell_at_once):
            with taking:
                if self._begun is not None:
                    begun, self._begun = self._begun, None
                    await begun
                if message is not None or clock() - self._told > QUIET_SECONDS / 2:
                    self._told = clock()
                    await self._sent(self.written(message))

    def _tell_at_once(self) -> bool:
        """Tell what is new, which most take at once; whether nothing is left to be done."""
        try:
            said = self.run.said_at_once(self.subscriber)
        except ViewGone:
            return False
        if said is None or (said and said[-1].kind == LOST):
            return False
        now = asyncio.get_running_loop().time()
        if not said:
            return now - self._told <= QUIET_SECONDS / 2
        self._told = now
        self._begun = begun(self._sent(b"".join(map(self.written, said))))
        return self._begun is None

    async def _sent(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


async def _until_they_leave(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def _event(message: ToldMessage | None) -> bytes:
    """Without a message it is a sign of life."""
    if message is None:
        return b":\n\n"
    head = f"event: {message.kind}\nid: {message.token}\ndata: "
    return head.encode() + orjson.dumps(message.data) + b"\n\n"
