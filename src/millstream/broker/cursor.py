"""A subscriber's place in a view: what it has been told, as a token, and what comes next.

A token names the log, the text of the program, the question and a position. What follows on it
is the change since then, all of it taken together, so that nobody who is slow holds up anything:
it gets fewer and larger changes. If that is no longer known, `reset` comes and the whole state.

One of several brokers may lose its log and begin anew. What it knew of the logs of others is in
the token too: until it knows no less again, whoever comes back is told nothing, for nobody goes
back. But if the log of a stream is lost, what was told of it will never be known again: where
its rows still are, `lost` comes and that is all; where they are not, `reset` says so.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import orjson

from millstream.broker.asking import AskedRows
from millstream.broker.core import Broker
from millstream.broker.evaluate import Changes
from millstream.broker.knowledge import NOTHING, HeldRelation
from millstream.broker.views import ViewRows

#: So many rows of a state come in one message.
PIECE = 2_000
#: So many changes are told in less time than another thread needs to begin.
_FEW = 64
#: The place of one who has been told a part of the state.
_PART = "part"
#: What the last message is called if a view cannot go on.
LOST = "lost"
_LOST_WHY = {
    "error": "a broker has lost the log of a stream that this view is made of",
    "hint": "put its folder back, or start this broker with another folder as well",
}


@dataclass(frozen=True, slots=True)
class ToldMessage:
    """What is told: a kind, the token that goes on behind it, and what there is to say."""

    kind: str
    token: str
    data: dict[str, Any]


class ViewGone(Exception):
    """The view is there no more, or is another one by now."""


class Subscriber:
    """Mutable: how far one who listens has been told."""

    def __init__(self, broker: Broker, asked: AskedRows, after: str | None = None) -> None:
        self.broker = broker
        self.asked = asked
        self.position = position_in(broker, asked, after)
        self.is_reset = after is not None and self.position is None
        #: What the one who comes back has heard of; nothing is said before that is here.
        stand = _stand_in(asked, after) if self.is_reset else {}
        self.heard = HeldRelation(stand=stand) if stand else NOTHING
        self.is_live = False
        self.told_known: dict[str, dict[str, int]] = {"horizons": {}}
        with broker.showing:
            #: The view that is listened to, if it is still there, and what changes in it for this.
            self._heard_in = broker.views.get(asked.view.name)
            if self._heard_in is not None:
                self.selection = self._heard_in.audience.join(self, self._heard_in.position)

    def leave(self) -> None:
        """Nobody listens any more."""
        with self.broker.showing:
            if self._heard_in is not None:
                self._heard_in.audience.leave(self)

    @property
    def view(self) -> ViewRows:
        return self.broker.views[self.asked.view.name]

    def has_little(self) -> bool:
        """Whether so few rows have changed since that telling them takes no time to speak of."""
        view = self.broker.views.get(self.asked.view.name)
        if view is None or not self._is_mine(view):
            return True  # that is told
        if self.position is None:
            return False
        return self.selection.is_near(self.position) or view.is_near(self.position, _FEW)

    def _is_mine(self, view: ViewRows) -> bool:
        """Whether it is the view that was asked for, and not another with its name."""
        return view is self._heard_in and view.view.edition == self.asked.view.edition

    def next(self) -> list[ToldMessage]:
        """All that there is to say now; nothing if nothing has changed."""
        with self.broker.showing:
            view = self.broker.views.get(self.asked.view.name)
            if view is None or not self._is_mine(view):
                raise ViewGone
            return self._next()

    def _next(self) -> list[ToldMessage]:
        gone: tuple[str, ...] = ()
        if self.broker.served.part is not None or self.heard is not NOTHING:
            needs = _needs(self.broker, self.asked)
            if any(need in self.broker.lost for need in needs):
                return [ToldMessage(LOST, self._token(self.position), _LOST_WHY)]
            here = HeldRelation(stand=_stand(self.broker, self.asked))
            gone = self.heard.lost_to(here)
            if not gone and not here.covers(self.heard):
                return []
        if self.position is not None and self._is_ahead(self.position):
            return []
        self.heard = NOTHING
        changes = None if self.position is None else self._since(self.position)
        messages: list[ToldMessage] = []
        if changes is None:
            if self.position is not None or self.is_reset:
                why = {"lost": gone} if gone else {}
                messages.append(ToldMessage("reset", self._token(None), why))
            messages += self._state()
            self.is_live = False
        elif changes:
            data: dict[str, Any] = {"changes": self.asked.changes(changes), **self._open()}
            messages.append(ToldMessage("changes", self._token(self.view.position), data))
        self.is_reset = False
        self.position = self.view.position
        self.selection.heard(self, self.position)
        if not self.is_live:
            self.is_live = True
            since = self.broker.complete_since(self.asked.view.name)
            data = {**({"complete_since": since} if since else {}), **self._open()}
            messages.append(ToldMessage("live", self._token(self.position), data))
        elif not messages:
            messages += self._progress()
        return messages

    def _is_ahead(self, position: int) -> bool:
        """Whether a view that begins again is on its way to what this one has heard of."""
        return self.view.position < position <= self.broker.log.number

    def _since(self, position: int) -> Changes | None:
        """What has changed for this question since a position; None if nobody knows."""
        known = self.selection.since(position) if position <= self.view.position else None
        if known is not None:
            return known
        changed = self.view.since(position)
        return None if changed is None else self.asked.shown(changed)

    def _state(self) -> list[ToldMessage]:
        records = self.asked.records(self.asked.shown(self.view.rows))
        pieces = [records[n : n + PIECE] for n in range(0, len(records), PIECE)] or [[]]
        last = len(pieces) - 1
        return [
            ToldMessage(
                "state", self._token(self.view.position if n == last else None), {"rows": p}
            )
            for n, p in enumerate(pieces)
        ]

    def _progress(self) -> list[ToldMessage]:
        """How far time is known, if that has moved on since it was last told."""
        known = {"horizons": self.broker.horizons, **self._open()}
        if known == self.told_known:
            return []
        self.told_known = known
        return [ToldMessage("progress", self._token(self.position), known)]

    def _open(self) -> dict[str, dict[str, int]]:
        """By how many open ticks bounds are to be counted; silence alone touches no row."""
        ticks = self.asked.open_ticks(self.broker.open_ticks)
        return {"open": ticks} if ticks else {}

    def _token(self, position: int | None) -> str:
        return token_of(self.broker, self.asked, position)


def token_of(broker: Broker, asked: AskedRows, position: int | None) -> str:
    place = _PART if position is None else str(position)
    token = f"{broker.identity}.{asked.view.edition}.{asked.digest}.{place}"
    stand = _stand(broker, asked)
    if not stand:
        return token
    return f"{token}.{base64.urlsafe_b64encode(orjson.dumps(stand)).decode().rstrip('=')}"


def position_in(broker: Broker, asked: AskedRows, token: str | None) -> int | None:
    """The position that a token names; None if it is not one of this log, program and question."""
    prefix = f"{broker.identity}.{asked.view.edition}.{asked.digest}."
    if token is None or not token.startswith(prefix):
        return None
    place = token.removeprefix(prefix).partition(".")[0]
    is_number = place.isascii() and place.isdecimal() and len(place) < 19
    return int(place) if is_number else None


def _stand(broker: Broker, asked: AskedRows) -> dict[str, int]:
    """How much of the logs of other brokers a view is made of now, by the way that it took."""
    if broker.evaluations is None:
        return {}
    held = broker.evaluations.knowledge.held
    if not held:
        return {}
    needs = sorted(_needs(broker, asked) & held.keys())
    return {f"{way} {need}": number for need in needs for way, number in held[need].stand.items()}


def _needs(broker: Broker, asked: AskedRows) -> frozenset[str]:
    """The relations of other brokers, and the streams, that a view is made of."""
    part = broker.served.part
    return frozenset() if part is None else part.needs.get(asked.view.name, frozenset())


def _stand_in(asked: AskedRows, token: str | None) -> dict[str, int]:
    """What a token of the same view and question says of other logs; nothing if it is damaged."""
    parts = (token or "").split(".")
    if len(parts) != 5 or parts[1:3] != [asked.view.edition, asked.digest]:
        return {}
    try:
        stand = orjson.loads(base64.urlsafe_b64decode(parts[4] + "=" * (-len(parts[4]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    is_stand = isinstance(stand, dict) and all(isinstance(n, int) for n in stand.values())
    return stand if is_stand else {}
