"""Messages between brokers, over HTTP: put on their way, or lost.

Each broker that is written to has a thread and a queue of its own. What cannot be sent, or is too
much, is dropped: whoever misses it asks again.
"""

from __future__ import annotations

import contextlib
import http.client
import queue
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
from fastapi import Response

from millstream.broker.messages import Message, read_message, written
from millstream.server.routes import Bounds, Form, Refusal, Route, RouteCall, TokenScope

if TYPE_CHECKING:
    from fastapi import Request as HttpRequest

    from millstream.server.broker_run import BrokerRun

#: So many messages wait for a broker, and so many go together.
_MOST_WAITING, _AT_ONCE = 1_000, 200
#: How long a broker may take to answer, and how long is waited after it could not be reached.
_SECONDS, _PAUSE = 10.0, 0.2
#: A relation as a whole is one message.
_LARGEST = 256 << 20


class Peers:
    """Mutable: the brokers that are written to."""

    def __init__(self, broker: str, addresses: Mapping[str, str], token: str) -> None:
        self.broker = broker
        self.token = token
        self._stop = threading.Event()
        self._queues: dict[str, queue.Queue[Message]] = {}
        self._threads: list[threading.Thread] = []
        #: When each was last reached, by `time.monotonic`.
        self.reached: dict[str, float] = {}
        for name, address in addresses.items():
            if name != broker:
                self._queues[name] = queue.Queue(_MOST_WAITING)
                thread = threading.Thread(target=self._send_all, args=(name, address), daemon=True)
                self._threads.append(thread)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_SECONDS)

    def send(self, name: str, message: Message) -> None:
        with contextlib.suppress(queue.Full):  # it is lost
            self._queues[name].put_nowait(message)

    def status(self) -> dict[str, Any]:
        now = time.monotonic()
        return {name: round(now - at, 1) for name, at in self.reached.items()}

    # --- a thread for each ---

    def _send_all(self, name: str, address: str) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._stop.is_set():
            group = self._group(name)
            if not group:
                continue
            connection = connection or _connection(address)
            body = orjson.dumps([written(message) for message in group])
            if self._post(connection, body):
                self.reached[name] = time.monotonic()
            else:
                connection.close()
                connection = None
                self._stop.wait(_PAUSE)
        if connection is not None:
            connection.close()

    def _group(self, name: str) -> list[Message]:
        group: list[Message] = []
        with contextlib.suppress(queue.Empty):
            group.append(self._queues[name].get(timeout=0.2))
            while len(group) < _AT_ONCE:
                group.append(self._queues[name].get_nowait())
        return group

    def _post(self, connection: http.client.HTTPConnection, body: bytes) -> bool:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", f"/links/{self.broker}", body, headers)
            reply = connection.getresponse()
            reply.read()
        except (OSError, http.client.HTTPException):
            return False
        return reply.status < 300


def _connection(address: str) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=_SECONDS)


async def _hear(call: RouteCall, request: HttpRequest) -> Response:
    """Messages of another broker; they are looked at later."""
    run: BrokerRun = call.serving
    part = run.served.part
    if run.node is None or part is None:
        raise Refusal(404, "this broker is alone")
    sender = call.path["broker"]
    try:
        messages = [read_message(one, part) for one in orjson.loads(call.body)]
    except (KeyError, TypeError, ValueError):
        raise Refusal(400, "these are no messages of a broker") from None
    run.hear(sender, messages)
    return Response(b"{}", media_type=Form.JSON.value)


LINK_ROUTE = Route(
    "POST", "/links/{broker}", TokenScope.LINK, "What another broker has to say", acts=_hear,
    bounds=Bounds(_LARGEST, 30.0),
)  # fmt: skip
