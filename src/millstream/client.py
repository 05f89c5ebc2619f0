"""A client of a broker that does not give up; it needs nothing but Python.

Batches are sent until they are acknowledged, and subscriptions go on behind the last token.

>>> client = Client("http://127.0.0.1:8000", token)  # doctest: +SKIP
>>> bids = client.publisher("desk 4")  # doctest: +SKIP
>>> bids.publish("BuyBids", [{"issue": "IBM", "price": 12, "#bid": 50}])  # doctest: +SKIP
[{'fate': 'accepted', 'tick': 1794923969481974}]
>>> for event in client.subscribe("Matchable", where="price > 10"):  # doctest: +SKIP
...     print(event.kind, event.data)
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from millstream.errors import UsageError

#: Answers after which the same is asked again.
_AGAIN = (408, 429, 503, 507)
#: How long is waited before that, at first and at most, in seconds.
_FIRST, _LONGEST = 0.1, 5.0
#: A broker says at least so often that it is there.
_SILENT_SECONDS = 30.0

Fate = dict[str, Any]


class Refused(UsageError):
    """A broker says no, for good: a status and why."""

    def __init__(self, status: int, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Event:
    """What a subscriber is told: state, live, changes, progress or reset."""

    kind: str
    token: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Client:
    """A broker by its address, and a token for it."""

    url: str
    token: str
    #: How to wait; whoever tests has no time.
    wait: Callable[[float], None] = time.sleep
    timeout: float = 30.0

    # --- publishing ---

    def publisher(self, name: str, first: int = 1) -> Publisher:
        """One who numbers batches, from `first` on, and sends them until they are acknowledged."""
        return Publisher(self, name, first)

    def publish(
        self, stream: str, rows: Iterable[Mapping[str, Any]], publisher: str | None = None,
        sequence: int | None = None,
    ) -> list[Fate]:  # fmt: skip
        """Send a batch once; what became of each row."""
        fates: list[Fate] = self.published(stream, rows, publisher, sequence)["rows"]
        return fates

    def published(
        self, stream: str, rows: Iterable[Mapping[str, Any]], publisher: str | None = None,
        sequence: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The same, with the position in the log, as of which a view can be asked for."""
        numbered = {} if publisher is None else {"publisher": publisher, "sequence": sequence}
        body = "\n".join(json.dumps(dict(row), ensure_ascii=False) for row in rows)
        path = f"/streams/{quote(stream, safe='')}?{urlencode(numbered)}"
        answer: dict[str, Any] = self.ask("POST", path, body.encode())
        return answer

    def silence(self, stream: str, through: int | str) -> None:
        """Say that nothing comes any more up to a tick."""
        body = json.dumps({"through": through}).encode()
        self.ask("POST", f"/streams/{quote(stream, safe='')}/silence", body)

    # --- views ---

    def rows(self, view: str, **asked: Any) -> list[dict[str, Any]]:
        """The rows of a view now; `where`, `final`, `position` and so on as in addresses."""
        rows: list[dict[str, Any]] = self.ask("GET", _address(view, "", asked))["rows"]
        return rows

    def subscribe(self, view: str, after: str | None = None, **asked: Any) -> Iterator[Event]:
        """Events for ever; a connection that breaks is taken up again behind the last token."""
        pause = _FIRST
        while True:
            try:
                for event in self._events(_address(view, "/changes", asked), after):
                    if event.kind == "lost":
                        raise Refused(410, event.data["error"], event.data["hint"])
                    after, pause = event.token, _FIRST
                    yield event
            except (OSError, http.client.HTTPException):
                pass  # it is gone, or was silent for too long
            except Refused as refused:
                if refused.status not in _AGAIN:
                    raise
            self.wait(pause)
            pause = min(2 * pause, _LONGEST)

    def _events(self, path: str, after: str | None) -> Iterator[Event]:
        headers = {} if after is None else {"Last-Event-ID": after}
        connection, reply = self._asked("GET", path, None, headers, _SILENT_SECONDS)
        try:
            fields: dict[str, str] = {}
            while line := reply.readline():
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name and value:
                    fields[name] = value
                elif fields:
                    yield Event(fields["event"], fields["id"], json.loads(fields["data"]))
                    fields = {}
        finally:
            connection.close()

    # --- HTTP ---

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        """The JSON of an answer, or `Refused`."""
        connection, reply = self._asked(method, path, body, {}, self.timeout)
        try:
            return json.loads(reply.read())
        finally:
            connection.close()

    def _asked(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        parts = urlsplit(self.url)
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        if parts.scheme not in kinds or parts.hostname is None:
            raise UsageError(f'"{self.url}" is no address', hint="such as http://127.0.0.1:8000")
        connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=timeout)
        headers = {**headers, "Authorization": f"Bearer {self.token}"}
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            if reply.status != 200:
                raise _refused(reply)
        except BaseException:
            connection.close()
            raise
        return connection, reply


@dataclass
class Publisher:
    """Mutable: the number of the next batch of one publisher."""

    client: Client
    name: str
    sequence: int = field(default=1)
    #: Where the last batch stands in the log.
    position: int = 0

    def publish(self, stream: str, rows: Iterable[Mapping[str, Any]]) -> list[Fate]:
        """Send a batch until it is acknowledged; it is counted once however often it is sent."""
        batch = list(rows)
        pause = _FIRST
        while True:
            try:
                answer = self.client.published(stream, batch, self.name, self.sequence)
            except (OSError, http.client.HTTPException):
                pass  # nobody knows whether it is there
            except Refused as refused:
                if refused.status not in _AGAIN:
                    raise
            else:
                self.sequence += 1
                self.position = max(self.position, answer["position"])
                fates: list[Fate] = answer["rows"]
                return fates
            self.client.wait(pause)
            pause = min(2 * pause, _LONGEST)


def _address(view: str, what: str, asked: Mapping[str, Any]) -> str:
    words = {k: int(v) if isinstance(v, bool) else v for k, v in asked.items() if v is not None}
    return f"/views/{quote(view, safe='')}{what}?{urlencode(words)}"


def _refused(reply: http.client.HTTPResponse) -> Refused:
    try:
        said = json.loads(reply.read(1 << 16))
        return Refused(reply.status, str(said["error"]), said.get("hint"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Refused(reply.status, f"the broker answers {reply.status}")
