"""Results that are posted to an address: `https://hooks.example.org/port`, a webhook.

Each row is a request of its own, whose body is one object of JSON; with `?format=jsonl` rows go
together, a line for each. Whoever is posted to cannot be asked what it has, so after a crash the
last batch is sent again; every request carries a key (`Idempotency-Key`) by which it is known.
"""

from __future__ import annotations

import base64
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar
from urllib.parse import unquote, urlencode

from millstream.connectors.elsewhere.address import Elsewhere, shown
from millstream.connectors.elsewhere.staged import Staged
from millstream.connectors.location import Location
from millstream.connectors.shelf import new_job
from millstream.connectors.write import Shape
from millstream.errors import RunError, UsageError
from millstream.plan.batch import Batch

_SECONDS = 30
#: How long is waited before it is tried again; then it is given up.
_WAITS = (0.2, 1.0, 3.0, 10.0)
#: With `format=jsonl`, so many rows go together.
_TOGETHER = 1_000
#: What may be otherwise when asked again.
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class PostWriter:
    """Mutable: see `BatchWriter`; as a plain writer everything is sent at the end."""

    is_told_again: ClassVar[bool] = True

    def __init__(self, location: Location, output: str, shape: Shape) -> None:
        place = location.elsewhere
        assert place is not None
        self._text = location.text
        self._output = output
        self._format = place.settings.get("format", "json")
        if self._format not in ("json", "jsonl"):
            hint = "format=json sends each row alone, format=jsonl many together"
            message = f'rows cannot be posted as "{self._format}"'
            raise UsageError(message, place=self._text, hint=hint)
        self._address, self._headers = _request_to(place)
        self._job = new_job()
        self._rows = Staged(location, shape)
        self._next = 0

    def open(self, job: str, *, fresh: bool) -> int | None:
        self._job = job
        return None

    def write_batch(self, number: int, batch: Batch, more: Iterable[Batch] = ()) -> None:
        self._next = number + 1
        self._send(number, self._rows.lines(batch if len(batch) else None, more))

    def write(self, batch: Batch) -> None:
        if len(batch):
            self._rows.write(batch)

    def close(self) -> None:
        if self._rows.is_open:
            self._send(self._next, self._rows.lines())
        self.abort()

    def abort(self) -> None:
        self._rows.close()

    def _send(self, number: int, lines: Iterator[bytes]) -> None:
        size = 1 if self._format == "json" else _TOGETHER
        part = 0
        while some := list(islice(lines, size)):
            self._post(b"\n".join(some), f"{self._job}-{self._output}-{number}-{part}")
            part += 1

    def _post(self, body: bytes, key: str) -> None:
        kind = "application/json" if self._format == "json" else "application/x-ndjson"
        headers = {"Content-Type": kind, "Idempotency-Key": key, **self._headers}
        for wait in (*_WAITS, None):
            request = urllib.request.Request(self._address, body, headers)  # noqa: S310 - http(s) only
            reason, may_pass = _sent(request)
            if reason is None:
                return
            if wait is None or not may_pass:
                raise RunError(f"it could not be posted: {reason}", place=self._text)
            time.sleep(wait)


def _sent(request: Any) -> tuple[str | None, bool]:
    """What went wrong, if something did, and whether it may be otherwise soon."""
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310 - http(s) only
            return None, False
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(200).decode("utf-8", "replace").strip().partition("\n")[0]
        return f"{error.code} {error.reason}{': ' + shown(said) if said else ''}", (
            error.code in _PASSING
        )
    except urllib.error.URLError as error:
        return str(getattr(error.reason, "strerror", None) or error.reason), True
    except OSError as error:
        return error.strerror or str(error) or "nobody answers", True


def _request_to(place: Elsewhere) -> tuple[str, dict[str, str]]:
    """The address as it is asked for, and what tells who we are."""
    settings = {k: v for k, v in place.settings.items() if k != "format"}
    query = f"?{urlencode(settings)}" if settings else ""
    headers = {"User-Agent": "millstream"}
    if place.user:
        pair = ":".join(unquote(part) for part in place.user.split(":", 1))
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return f"{place.scheme}://{place.host}/{place.path}{query}", headers
