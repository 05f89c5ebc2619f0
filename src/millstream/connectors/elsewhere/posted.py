"""Rows that others post: JSON Lines to `http://127.0.0.1:PORT/NAME`.

A post is answered when its rows are on disk: with a checkpoint they will be taken, whatever
happens. One with an `Idempotency-Key` that was there before is answered again and changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from millstream.connectors.elsewhere.address import Elsewhere, refuse_settings
from millstream.connectors.elsewhere.spool import Spool
from millstream.errors import UsageError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LARGEST_POST = 64 << 20
_SECONDS = 30


class PostedBringer:
    """Mutable: a server in threads of its own, which fills the spool."""

    def __init__(self, place: Elsewhere, spool: Spool, text: str, *, is_following: bool) -> None:
        if not is_following:
            raise UsageError("posts come only to a run that follows its inputs", place=text,
                             hint="add --follow")  # fmt: skip
        refuse_settings(place, (), text)
        host, _, port = place.host.rpartition(":")
        if host not in LOOPBACK or not port.isdigit() or int(port) > 65_535:
            raise UsageError(
                "rows can be posted to this machine only, on a port", place=text,
                hint="such as http://127.0.0.1:8080/trades",
            )  # fmt: skip
        self._spool = spool
        self._path = f"/{place.path}"
        self._marks = spool.marks
        self._turn = threading.Lock()
        try:
            self._server = _Server((host.strip("[]"), int(port)), _handler_of(self))
        except OSError as error:
            raise UsageError(f"cannot listen: {error.strerror}", place=text) from None
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def fetch(self) -> bool:
        return False

    def taken(self, path: str, lines: bytes, key: str | None) -> tuple[int, dict[str, Any]]:
        """The status and the answer of a post."""
        if path != self._path:
            return 404, {"error": f"rows are posted to {self._path}"}
        if not lines.endswith(b"\n"):
            lines += b"\n"
        rows = sum(1 for line in lines.split(b"\n") if line.strip())
        mark = "" if key is None else hashlib.sha256(key.encode()).hexdigest()[:32]
        with self._turn:
            if mark and mark in self._marks:
                return 200, {"rows": rows, "was_there": True}
            if rows:
                try:
                    self._spool.add_lines(lines, mark=mark)
                except OSError as error:
                    return 507, {"error": f"cannot be kept: {error.strerror}"}
            self._marks.add(mark)
        return 200, {"rows": rows}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    address_family = 2  # AF_INET, also for localhost


def _handler_of(bringer: PostedBringer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _SECONDS

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdigit():
                self._answer(411, {"error": "say Content-Length"})
                return
            if int(length) > _LARGEST_POST:
                self._answer(413, {"error": f"a post has at most {_LARGEST_POST:,} bytes"})
                return
            body = self.rfile.read(int(length))
            if len(body) < int(length):
                self.close_connection = True  # it was cut off: nothing of it is taken
                return
            self._answer(*bringer.taken(self.path, body, self.headers.get("Idempotency-Key")))

        def do_GET(self) -> None:
            self._answer(405, {"error": "post rows here, as JSON Lines"})

        def _answer(self, status: int, answer: dict[str, Any]) -> None:
            body = json.dumps(answer).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if status in (411, 413):
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as its base has it
            """Not on standard error, which is the run's."""

    return Handler
