"""What a route is. All routes stand in tables of these; what is common to all is done once.

A handler is a plain function from a call to a reply, run beside the event loop; a talk is a
coroutine that holds a WebSocket.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from millstream.errors import listing, suggest
from millstream.olap.tables import AnswerTable

if TYPE_CHECKING:
    from fastapi import Request, Response
    from starlette.websockets import WebSocket

    from millstream.kernels.cube.versions import Version


class TokenScope(Enum):
    """What a token may do."""

    OPEN = "open"  # needs no token
    READ = "read"
    PUBLISH = "publish"
    ADMIN = "admin"
    LINK = "link"  # other brokers


class Form(Enum):
    """How an answer is written."""

    JSON = "application/json"
    ARROW = "application/vnd.apache.arrow.stream"
    CSV = "text/csv"
    HTML = "text/html"
    EVENTS = "text/event-stream"
    TEXT = "text/plain; version=0.0.4"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a route takes: bytes of a body, and seconds until it is answered."""

    body: int = 1 << 16
    seconds: float = 10.0


class Run(Protocol):
    """Mutable: what is served, at work in threads of its own."""

    status: str
    fault: BaseException | None

    def start(self, at_end: Callable[[], object]) -> None:
        """Begin; `at_end` is called if it fails."""

    def stop(self) -> None:
        """End in an orderly way, and wait until that is so."""

    def check_ready(self) -> None:
        """Refuse if there is nothing to be asked yet."""


@dataclass(frozen=True)
class RouteCall:
    """What is asked of a route; `serving` is the run that its table of routes is for."""

    serving: Any
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    form: Form
    seconds: float
    #: The version of a cube that is asked, if it is not the newest.
    version: Version | None = None


@dataclass(frozen=True)
class Reply:
    """What a route answers: a record for JSON, and a table if it can be had as such."""

    record: Any
    table: AnswerTable | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    #: What is done when it is given once more to somebody who asks the same.
    again: Callable[[], None] = lambda: None


class Refusal(Exception):
    """An answer that is none: a status and why."""

    def __init__(
        self, status: int, message: str, hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.headers = dict(headers or {})


Handler = Callable[[RouteCall], Reply]
Talk = Callable[["WebSocket", Any], Coroutine[Any, Any, None]]
#: Answers on the event loop, with the body as it came.
Acts = Callable[[RouteCall, "Request"], Coroutine[Any, Any, "Response"]]


@dataclass(frozen=True)
class Route:
    """One line of the table."""

    method: str
    path: str
    scope: TokenScope
    summary: str
    handler: Handler | None = None
    talk: Talk | None = None
    acts: Acts | None = None
    bounds: Bounds = Bounds()
    forms: tuple[Form, ...] = (Form.JSON,)
    #: Whether it can be answered before the state of the last run is there again.
    is_early: bool = False
    #: Whether it is the same for all who ask the same of a version of a cube.
    is_kept: bool = False
    #: An example of a body, for the page.
    example: Any = None
    #: What can stand behind the question mark, with what it means.
    parameters: Mapping[str, str] = field(default_factory=dict)


def check_words(known: Mapping[str, str], words: Iterable[str]) -> None:
    """Refuse what nobody would look at: without its condition, a question has another answer."""
    for word, count in Counter(words).items():
        if word not in known:
            there = f"there can be: {listing(known)}. " if known else ""
            hint = f"{there}{suggest(word, known) or ''}".strip()
            raise Refusal(400, f'nobody knows "{word[:40]}" behind the question mark', hint or None)
        if count > 1:
            raise Refusal(400, f"{word} stands twice behind the question mark")
