"""Scalar functions of texts: what they mean, straight from their definition.

Kernels compute them on whole columns by code of their own.
"""

from __future__ import annotations

import operator

from millstream.values.core import rules
from millstream.values.core.scalar import Scalar, ScalarFault
from millstream.values.types import BOOLEAN, INTEGER, TEXT


def _substring(text: str, start: int, length: int | None = None) -> str:
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        raise ScalarFault("negative length")
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def _like(text: str, pattern: str) -> bool:
    """After each mark of the pattern, the places in the text that can have been reached."""
    reached = {0}
    for mark in pattern:
        if mark == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else reached
        else:
            reached = {n + 1 for n in reached if n < len(text) and mark in ("_", text[n])}
    return len(text) in reached


_ONE = rules.fixed(TEXT, result=TEXT)
_ASKED = rules.fixed(TEXT, TEXT, result=BOOLEAN)

TEXTS: tuple[Scalar, ...] = (
    Scalar("||", rules.concatenation, "a || b", operator.add),
    Scalar("length", rules.fixed(TEXT, result=INTEGER), "length(text): in characters", len),
    Scalar("upper", _ONE, "upper(text)", str.upper),
    Scalar("lower", _ONE, "lower(text)", str.lower),
    Scalar("trim", _ONE, "trim(text)", str.strip),
    Scalar("substring", rules.substring, "substring(text, start [, length])", _substring),
    Scalar("starts_with", _ASKED, "starts_with(text, prefix)", str.startswith),
    Scalar("ends_with", _ASKED, "ends_with(text, suffix)", str.endswith),
    Scalar("contains", _ASKED, "contains(text, part)", operator.contains),
    Scalar("position", rules.fixed(TEXT, TEXT, result=INTEGER),
           "position(text, part): from 1, 0 if it is not there",
           lambda text, part: text.find(part) + 1),
    Scalar("replace", rules.fixed(TEXT, TEXT, TEXT, result=TEXT), "replace(text, old, new)",
           lambda text, old, new: text.replace(old, new) if old else text),
    Scalar("like", _ASKED, "like(text, pattern): % and _", _like),
)  # fmt: skip
