"""Changes of a view over a WebSocket; what is asked stands in the address."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson
from starlette.websockets import WebSocketDisconnect

from millstream.broker.cursor import Subscriber, ViewGone
from millstream.server.events import messages
from millstream.server.patience import Taking
from millstream.server.questions import LISTENED, question
from millstream.server.routes import Refusal, check_words

if TYPE_CHECKING:
    from starlette.websockets import WebSocket

    from millstream.server.broker_run import BrokerRun

TOO_SLOW, LOG_LOST, NOT_UNDERSTOOD, AGAIN = 4408, 4410, 1008, 1013


async def talk(socket: WebSocket, run: BrokerRun) -> None:
    """Tell changes until one side ends it."""
    protocols = socket.scope.get("subprotocols", [])
    await socket.accept("millstream" if "millstream" in protocols else None)
    query = socket.query_params
    try:
        check_words(LISTENED, [word for word, _ in query.multi_items()])
        wanted = question(run, socket.path_params["view"], query)
        run.check_views()
    except Refusal as refusal:
        why = {"error": refusal.message, "hint": refusal.hint}
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.send_text(orjson.dumps(why).decode())
            await socket.close(AGAIN if refusal.status == 503 else NOT_UNDERSTOOD)
        return
    subscriber = Subscriber(run.broker, wanted, query.get("after"))
    telling = asyncio.ensure_future(_tell(socket, run, subscriber))
    leaving = asyncio.ensure_future(_until_they_leave(socket))
    try:
        await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if telling.done():
            telling.result()
    except (TimeoutError, ViewGone) as end:
        code = TOO_SLOW if isinstance(end, TimeoutError) else NOT_UNDERSTOOD
        with suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            await asyncio.wait_for(socket.close(code), 1.0)
    except (WebSocketDisconnect, RuntimeError):
        return  # they have gone
    finally:
        telling.cancel()
        leaving.cancel()
        subscriber.leave()


async def _tell(socket: WebSocket, run: BrokerRun, subscriber: Subscriber) -> None:
    taking = Taking(run.patience)
    async for message in messages(run, subscriber):
        if message is None:
            continue  # pings are a sign of life already
        record = {"type": message.kind, "token": message.token, **message.data}
        with taking:
            await socket.send_text(orjson.dumps(record).decode())
    await socket.close(LOG_LOST)  # there is no other end


async def _until_they_leave(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        continue
