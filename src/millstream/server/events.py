"""Changes of a view, as server-sent events or as Arrow, to one who is never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson
from fastapi import Response

from millstream.broker.cursor import LOST, Subscriber, ToldMessage, ViewGone
from millstream.server.arrow_events import ArrowEvents
from millstream.server.routes import Form

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from millstream.server.broker_run import BrokerRun

#: How long a message may take to be taken, and how long silence lasts before a sign of life.
TAKE_SECONDS, QUIET_SECONDS = 30.0, 10.0
#: Changes that come so soon after each other are told together.
PAUSE_SECONDS = 0.005


async def messages(run: BrokerRun, subscriber: Subscriber) -> AsyncIterator[ToldMessage | None]:
    """What there is to say, as it comes; None now and then if there is nothing."""
    news = run.waking.add(subscriber)
    news.set()
    try:
        while True:
            if not news.is_set():
                try:
                    async with asyncio.timeout(QUIET_SECONDS):
                        await news.wait()
                except TimeoutError:
                    yield None
                    continue
            news.clear()
            said = run.said_at_once(subscriber)
            if said is None:
                await asyncio.sleep(PAUSE_SECONDS)  # views are just being changed
                said = run.said_at_once(subscriber)
            if said is None:
                said = await asyncio.to_thread(subscriber.next)
            for message in said:
                yield message
                if message.kind == LOST:
                    return
            await asyncio.sleep(PAUSE_SECONDS)
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", self.kind.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        telling = asyncio.ensure_future(self._tell(send))
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

    async def _tell(self, send: Send) -> None:
        async for message in messages(self.run, self.subscriber):
            body = self.written(message)
            async with asyncio.timeout(TAKE_SECONDS):
                await send({"type": "http.response.body", "body": body, "more_body": True})


async def _until_they_leave(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue


def _event(message: ToldMessage | None) -> bytes:
    """Without a message it is a sign of life."""
    if message is None:
        return b":\n\n"
    head = f"event: {message.kind}\nid: {message.token}\ndata: "
    return head.encode() + orjson.dumps(message.data) + b"\n\n"
