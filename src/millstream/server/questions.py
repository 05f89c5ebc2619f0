"""What the words behind a question mark ask of a view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.broker.asking import AskedRows, asked
from millstream.errors import MillstreamError, listing, suggest
from millstream.languages.served import ServedView
from millstream.server.replies import shown_at
from millstream.server.routes import Refusal

if TYPE_CHECKING:
    from millstream.server.broker_run import BrokerRun

#: What can be asked of a view, and by those who listen to it.
ASKED = {
    "where": "a condition, such as price > 10 AND issue = 'IBM'",
    "final": "only: rows that never change any more",
    "ranges": "1: with the bounds of columns that can still change",
    "mask": "1: whether a row is in for ever (T) or for now (t)",
}
LISTENED = ASKED | {"after": "a token behind which to go on"}
_TRUTHS = {"": False, "0": False, "false": False, "1": True, "true": True}


def _view(run: BrokerRun, name: str) -> ServedView:
    views = run.served.views
    coming, part = run.coming.views, run.coming.part
    place = None if part is None or name in coming else part.place_of(name)
    if place is not None:
        raise Refusal(404, f"{name} is at the broker {place}")
    if name in coming and (name not in views or views[name].edition != coming[name].edition):
        message = f"{name} is being made"
        raise Refusal(503, message, "ask again in a moment", {"Retry-After": "1"})
    if name not in coming:  # it may still be there until what comes is made
        near = suggest(name, coming) or ""
        hint = f"views are: {listing(coming)}. {near}".strip()
        raise Refusal(404, f'there is no view "{name[:80]}"', hint)
    run.want(name)
    return views[name]


def question(run: BrokerRun, name: str, query: Mapping[str, str]) -> AskedRows:
    """What the words behind the question mark ask of a view."""
    view = _view(run, name)
    try:
        return asked(
            view, query.get("where"), query.get("final"), has_ranges=_truth(query, "ranges"),
            has_mask=_truth(query, "mask"),
        )  # fmt: skip
    except MillstreamError as error:
        first = error.faults[0]
        hint = "\n".join(part for part in (shown_at(first), first.hint) if part)
        raise Refusal(400, first.message, hint or None) from None


def _truth(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name, "")
    if text not in _TRUTHS:
        raise Refusal(400, f"{name} is 1 or 0")
    return _TRUTHS[text]
