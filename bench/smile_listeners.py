"""Those who listen to a broker, thousands of them, as a process of its own for benchmarks.

    MILLSTREAM_TOKEN=... python smile_listeners.py PORT COUNT

Each asks for the bids of one issue at one price, above a number of its own. Says `live` when all of
them are, and after a line of input what each has heard: bids, and how long each took since its
tick, which is when it was to be published.
"""

from __future__ import annotations

import json
import os
import re
import resource
import selectors
import socket
import sys
import time
from array import array
from dataclasses import dataclass, field
from urllib.parse import quote

ISSUES, PRICES = 50, 20
#: So many are on their way to the broker at once, and so long is waited before one tries again.
_AT_ONCE, _PAUSE = 200, 0.1
_EVENT = re.compile(rb"event: (\w+)\nid: ([^\n]*)\ndata: ([^\n]*)\n\n")
_BID = re.compile(rb'"weight":1,"row":\{"buyid":(\d+)')
_ROW = re.compile(rb'\{"buyid":(\d+)')


def wanted(number: int) -> tuple[str, int, int]:
    """What one listens to: an issue, a price, and the number that bids must be above."""
    return f"I{number % ISSUES}", number // ISSUES % PRICES, number // (ISSUES * PRICES)


@dataclass
class Listener:
    """Mutable: one of them, and what it has heard."""

    number: int
    socket: socket.socket | None = None
    token: str = ""
    left: bytes = b""
    is_live: bool = False
    bids: array[int] = field(default_factory=lambda: array("q"))
    waits: array[float] = field(default_factory=lambda: array("f"))
    resets: int = 0
    #: All bids that it was ever shown; a state after `reset` may show some for the first time.
    seen: set[int] = field(default_factory=set)
    again_at: float = 0.0


class Crowd:
    """Mutable: all of them in one thread."""

    def __init__(self, port: int, token: str, count: int) -> None:
        self.port, self.token = port, token
        self.all = [Listener(n) for n in range(count)]
        self.idle = list(reversed(self.all))
        self.begun = 0
        self.live = 0
        self.ready = selectors.DefaultSelector()
        self.refused: dict[str, int] = {}

    def run(self) -> None:
        self.ready.register(sys.stdin.fileno(), selectors.EVENT_READ, None)
        is_said = False
        while True:
            self._begin_some()
            for key, _ in self.ready.select(0.02):
                if key.data is None:
                    self._report()
                    return
                self._read(key.data)
            if self.live == len(self.all) and not is_said:
                print("live", flush=True)
                is_said = True

    def _begin_some(self) -> None:
        now = time.time()
        while self.idle and self.begun < _AT_ONCE and self.idle[-1].again_at <= now:
            self._connect(self.idle.pop())

    def _connect(self, one: Listener) -> None:
        issue, price, above = wanted(one.number)
        where = quote(f"issue = '{issue}' AND price = {price} AND buyremaining > {above}")
        after = f"Last-Event-ID: {one.token}\r\n" if one.token else ""
        request = (
            f"GET /views/RemainingBuy/changes?where={where} HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {self.token}\r\n{after}\r\n"
        )
        try:
            one.socket = socket.create_connection(("127.0.0.1", self.port), 5)
            one.socket.sendall(request.encode())
        except OSError:
            self._lose(one, "not there")
            return
        one.socket.setblocking(False)
        one.left, one.is_live = b"", False
        self.begun += 1
        self.ready.register(one.socket, selectors.EVENT_READ, one)

    def _lose(self, one: Listener, why: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1
        if one.socket is not None:
            if one.socket.fileno() in self.ready.get_map():
                self.ready.unregister(one.socket)
                self.begun -= not one.is_live
                self.live -= one.is_live
            one.socket.close()
            one.socket = None
        one.is_live, one.again_at = False, time.time() + _PAUSE
        self.idle.insert(0, one)

    def _read(self, one: Listener) -> None:
        assert one.socket is not None
        try:
            data = one.socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(one, "gone")
            return
        if not one.is_live and b"HTTP/1.1 200" not in data[:12] and data.startswith(b"HTTP/1.1"):
            self._lose(one, data[9:12].decode())
            return
        text, end = one.left + data, 0
        for event in _EVENT.finditer(text):
            end = event.end()
            kind, token, said = event.groups()
            one.token = token.decode()
            if kind == b"live" and not one.is_live:
                one.is_live = True
                self.live += 1
                self.begun -= 1
            elif kind == b"reset":
                one.resets += 1
            elif kind == b"state" and not one.resets:
                one.seen.update(int(bid) for bid in _ROW.findall(said))
            elif kind == b"state":
                self._hear(
                    one, [b for bid in _ROW.findall(said) if (b := int(bid)) not in one.seen]
                )
            elif kind == b"changes":
                self._hear(one, [int(bid) for bid in _BID.findall(said)])
        one.left = text[end:]

    @staticmethod
    def _hear(one: Listener, bids: list[int]) -> None:
        now = time.time()
        one.seen.update(bids)
        one.bids.extend(bids)
        one.waits.extend(now - bid / 1e6 for bid in bids)

    def _report(self) -> None:
        print(json.dumps({
            "bids": [one.bids.tolist() for one in self.all],
            "waits": [round(w, 5) for one in self.all for w in one.waits],
            "resets": sum(one.resets for one in self.all), "live": self.live,
            "lost": self.refused, "processor": time.process_time(),
        }), flush=True)  # fmt: skip


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    Crowd(int(sys.argv[1]), os.environ["MILLSTREAM_TOKEN"], int(sys.argv[2])).run()
