"""The gate before all routes: the host that is asked for, where a page comes from, the token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from millstream.server.quotas import UNBOUNDED
from millstream.server.routes import Refusal, TokenScope
from millstream.server.tokens import Tokens

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

#: Where the gate puts what a caller may do, and how much of it.
SCOPES, ALLOWANCE = "millstream.scopes", "millstream.allowance"
#: Where it puts what sends an answer with nothing on the way, for what goes on for hours.
BARE_SEND = "millstream.send"
#: A WebSocket of a browser has no header for a token, so it may be named as a protocol.
PROTOCOL = "bearer."

_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]


class Gate:
    """Lets through who may enter, and says no to all others in one way."""

    def __init__(
        self, app: App, tokens: Tokens, hosts: frozenset[str], open_paths: frozenset[str]
    ) -> None:
        self.app = app
        self.tokens = tokens
        self.hosts = hosts
        #: The pages that may ask, by how they have come here: with a certificate, or without.
        self.origins = {
            kind: frozenset(f"{kind}://{host}" for host in hosts) for kind in ("http", "https")
        }
        self.open_paths = open_paths

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        try:
            refused = self._refused(scope)
        except Refusal as much:
            refused = much.status, much.message
        if refused is not None:
            await _refuse(scope, send, *refused)
            return
        scope[BARE_SEND] = send
        await self.app(scope, receive, _safely(send))

    def _refused(self, scope: Message) -> tuple[int, str] | None:
        """Why somebody may not enter, or None; then it is known what they may do."""
        headers = _headers(scope)
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return 403, "this server is not known by that host"
        kind = "https" if scope["scheme"] in ("https", "wss") else "http"
        if len(origins) > 1 or not self.origins[kind].issuperset(origins):
            return 403, "pages from elsewhere may not ask this server"
        if scope["path"] in self.open_paths:
            scope[SCOPES], scope[ALLOWANCE] = frozenset({TokenScope.OPEN}), UNBOUNDED
            return None
        token = _token(headers)
        scopes = None if token is None else self.tokens.scopes(token)
        if scopes is None:
            return 401, "a token is needed: Authorization: Bearer TOKEN"
        assert token is not None
        scope[SCOPES], scope[ALLOWANCE] = scopes | {TokenScope.OPEN}, self.tokens.allowance(token)
        scope[ALLOWANCE].take("requests")
        return None


def _headers(scope: Message) -> dict[bytes, list[str]]:
    made: dict[bytes, list[str]] = {}
    for name, value in scope["headers"]:
        made.setdefault(name.lower(), []).append(value.decode("latin-1"))
    return made


def _token(headers: dict[bytes, list[str]]) -> str | None:
    given = headers.get(b"authorization", [])
    if len(given) == 1 and given[0][:7].lower() == "bearer ":
        return given[0][7:].strip()
    for line in headers.get(b"sec-websocket-protocol", []):
        for word in line.split(","):
            if word.strip().startswith(PROTOCOL):
                return word.strip().removeprefix(PROTOCOL)
    return None


async def _refuse(scope: Message, send: Send, status: int, message: str) -> None:
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    body = orjson.dumps({"error": message})
    headers = [(b"content-type", b"application/json"), *_SAFE]
    if status == 429:
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def _safely(send: Send) -> Send:
    """Answers with headers that keep pages from doing more than they should."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *_SAFE]}
        await send(message)

    return sending
