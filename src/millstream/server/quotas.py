"""How much a token may do: so many requests, and so many published rows, a second."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from millstream.server.routes import Refusal


@dataclass(frozen=True, slots=True)
class Quota:
    """What a second allows; None is without end. What was not used is there for one second more."""

    requests: int | None = None
    rows: int | None = None


class Allowance:
    """Mutable: what is left of a quota."""

    def __init__(self, quota: Quota, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._rates = {"requests": quota.requests, "rows": quota.rows}
        self._left = {name: float(rate or 0) for name, rate in self._rates.items()}
        self._at = dict.fromkeys(self._rates, now())

    def take(self, what: str, count: int = 1) -> None:
        """Refuse what is too much."""
        rate = self._rates[what]
        if rate is None:
            return
        with self._lock:
            now = self._now()
            # A larger batch is let in when nothing is owed, and is paid for afterwards.
            self._left[what] = min(self._left[what] + rate * (now - self._at[what]), float(rate))
            self._at[what] = now
            missing = min(count, rate) - self._left[what]
            if missing <= 0:
                self._left[what] -= count
                return
        message = f"this token may have {rate:,} {what} a second"
        seconds = str(max(math.ceil(missing / rate), 1))
        raise Refusal(429, message, "send this again in a moment", {"Retry-After": seconds})


UNBOUNDED = Allowance(Quota())
