"""Replies as bytes: JSON, an Arrow stream or CSV, and refusals in one shape."""

from __future__ import annotations

import re
from typing import Any

import orjson

from millstream.errors import Fault, MillstreamError
from millstream.olap.groups import TooLong, TooMuch
from millstream.olap.question import QuestionError
from millstream.server.routes import Form, Refusal, Reply

#: Which status an error has; what is none of these is a fault of ours.
STATUSES: tuple[tuple[type[MillstreamError], int], ...] = (
    (QuestionError, 400), (TooLong, 408), (TooMuch, 413),
)  # fmt: skip

#: A form that is not wanted, as HTTP writes it.
_NEVER = re.compile(r"q\s*=\s*0(\.0{0,3})?")


def form_of(accept: str | None, forms: tuple[Form, ...]) -> Form:
    """The form that is asked for, by the order in which they are named."""
    if not accept:
        return forms[0]
    for word in accept.split(","):
        kind, *more = (part.strip().lower() for part in word.split(";"))
        if any(_NEVER.fullmatch(part) for part in more):
            continue
        if kind == "*/*":
            return forms[0]
        for form in forms:
            if kind in (form.value, f"{form.value.split('/', maxsplit=1)[0]}/*"):
                return form
    raise Refusal(
        406, "this cannot be had in that form", f"it is: {', '.join(f.value for f in forms)}"
    )


def written(reply: Reply, form: Form) -> bytes:
    if reply.text is not None:
        return reply.text.encode()
    if form is Form.JSON or reply.table is None:
        return orjson.dumps(reply.record, option=orjson.OPT_NON_STR_KEYS)
    if form is Form.ARROW:
        return reply.table.arrow(dict(reply.headers))
    return reply.table.csv().encode()


def faults_record(error: MillstreamError) -> dict[str, Any]:
    """Everything that is wrong, each with its place."""
    faults = [
        {k: v for k, v in (("message", f.message), ("at", f.place), ("shown", shown_at(f)),
                           ("hint", f.hint)) if v}
        for f in error.faults
    ]  # fmt: skip
    return {"error": error.faults[0].message if error.faults else "wrong", "faults": faults}


def shown_at(fault: Fault) -> str | None:
    """The text that is wrong, with carets below it."""
    return None if fault.span is None else fault.span.excerpt().strip("\n")


def refusal_record(refusal: Refusal) -> dict[str, Any]:
    made: dict[str, Any] = {"error": refusal.message}
    return made | {"hint": refusal.hint} if refusal.hint else made
