"""An answer over a WebSocket: the whole of it, then signed changes, each with its position.

Nothing waits for whoever listens: the next message is made when the last one has been taken, and
tells all that has changed since. A position is the number of a version. Who comes back with
one that is still here is told what has changed; else `reset` comes before the whole answer.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson
from starlette.websockets import WebSocketDisconnect, WebSocketState

from millstream.errors import MillstreamError
from millstream.kernels.cube.versions import Version
from millstream.olap.answer import answer
from millstream.olap.changes import Rows, changes, rows_of
from millstream.olap.groups import Limits
from millstream.olap.planning import levels_of
from millstream.olap.question import Question, read_question
from millstream.olap.store import CubeStore
from millstream.server.replies import faults_record
from millstream.server.routes import Refusal

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from millstream.server.serving import Serving

#: How long one may take to say what is asked, and to take a message.
_ASK_SECONDS, _TAKE_SECONDS = 10.0, 30.0
#: What may be said at once.
_LONGEST = 1 << 16
TOO_SLOW, NOT_UNDERSTOOD, AGAIN = 4408, 1008, 1013


async def subscribe(socket: WebSocket, serving: Serving) -> None:
    """Hold a subscription until one side ends it."""
    await socket.accept(_protocol(socket))
    try:
        serving.check_ready()
        store = serving.store(socket.path_params["cube"])
        question, after = await _asked(socket, store)
        store.asked.count(levels_of(store.cube.function, question.attributes))
        await _Subscription(socket, store, question).run(after)
    except Refusal as refusal:
        code = AGAIN if refusal.status == 503 else NOT_UNDERSTOOD
        await _end(socket, code, {"error": refusal.message, "hint": refusal.hint})
    except MillstreamError as error:
        await _end(socket, NOT_UNDERSTOOD, faults_record(error))
    except TimeoutError:
        await _end(socket, TOO_SLOW, {"error": "this takes too long"})
    except (WebSocketDisconnect, RuntimeError):
        return  # they have gone


def _protocol(socket: WebSocket) -> str | None:
    """A protocol that was named is answered, but never the one with the token in it."""
    return "millstream" if "millstream" in socket.scope.get("subprotocols", []) else None


async def _end(socket: WebSocket, code: int, why: dict[str, Any]) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        try:
            await asyncio.wait_for(socket.send_text(orjson.dumps(why).decode()), 1.0)
            await socket.close(code)
        except (TimeoutError, WebSocketDisconnect, RuntimeError):
            return


async def _asked(socket: WebSocket, store: CubeStore) -> tuple[Question, int | None]:
    """The first message: a question, and perhaps where to go on."""
    message = await asyncio.wait_for(socket.receive(), _ASK_SECONDS)
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1000))
    text = message.get("text") or message.get("bytes") or b""
    if len(text) > _LONGEST:
        raise Refusal(413, f"a question has at most {_LONGEST:,} bytes")
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Refusal(400, "this is no JSON", 'write {"query": {...}, "after": 17}') from None
    if not isinstance(body, dict) or not body.keys() <= {"query", "after"}:
        raise Refusal(400, "expected a query", 'write {"query": {...}, "after": 17}')
    after = body.get("after")
    if after is not None and (isinstance(after, bool) or not isinstance(after, int)):
        raise Refusal(400, "expected a position after which to go on", '"after": 17')
    cube = store.cube
    question = read_question(body.get("query", {}), cube.function, cube.schema)
    for name, is_there in (("as_of", question.as_of is not None), ("columns", question.columns),
                           ("totals", question.has_totals)):  # fmt: skip
        if is_there:
            raise Refusal(400, f"{name} cannot be subscribed to", "ask for it with POST .../query")
    return question, after


class _Subscription:
    """Mutable: what one who listens has been told."""

    def __init__(self, socket: WebSocket, store: CubeStore, question: Question) -> None:
        self.socket = socket
        self.store = store
        self.question = question
        self.known: Rows = {}
        self.position: int | None = None
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()

    async def run(self, after: int | None) -> None:
        end = self.store.listen(self._tell)
        leaving = asyncio.ensure_future(self._until_they_leave())
        try:
            await self._begin(after)
            while not leaving.done():
                waiting = asyncio.ensure_future(self.news.wait())
                await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                self.news.clear()
                if not leaving.done():
                    await self._go_on()
        finally:
            leaving.cancel()
            end()

    def _tell(self) -> None:
        """Called by the thread that writes."""
        with suppress(RuntimeError):  # the loop may have ended
            self.loop.call_soon_threadsafe(self.news.set)

    async def _until_they_leave(self) -> None:
        while True:
            message = await self.socket.receive()
            if message["type"] == "websocket.disconnect":
                return

    async def _rows(self, version: Version) -> Rows:
        def asked() -> Rows:
            return rows_of(answer(version, self.question, Limits()).cells)

        return await self.loop.run_in_executor(None, asked)

    async def _begin(self, after: int | None) -> None:
        """What has changed since a position, or the whole answer."""
        version = self.store.version
        before = None if after is None else self.store.version_of(after)
        if before is not None:
            self.known, self.position = await self._rows(before), before.number
            await self._send({"type": "resumed", "position": before.number})
            await self._go_on()
            return
        if after is not None:
            await self._send({"type": "reset", "position": version.number})
        self.known, self.position = await self._rows(version), version.number
        rows = [orjson.loads(key) for key, count in self.known.items() for _ in range(count)]
        await self._send({"type": "snapshot", "position": version.number, "cells": rows})

    async def _go_on(self) -> None:
        version = self.store.version
        if version.number == self.position:
            return
        now = await self._rows(version)
        news = changes(self.known, now)
        since, self.known, self.position = self.position, now, version.number
        await self._send(
            {"type": "changes", "after": since, "position": version.number, "changes": news}
        )

    async def _send(self, message: dict[str, Any]) -> None:
        text = orjson.dumps(message).decode()
        await asyncio.wait_for(self.socket.send_text(text), _TAKE_SECONDS)
