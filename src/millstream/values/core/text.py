"""Scalar functions of texts: what they mean, straight from their definition.

Kernels compute them on whole columns by code of their own.
"""

from __future__ import annotations

import operator

from millstream.values.core import plain_text, rules
from millstream.values.core.scalar import Scalar, ScalarFault
from millstream.values.types import BOOLEAN, INTEGER, TEXT


def _substring(text: str, start: int, length: int | None = None) -> str:
    if length is not None and length < 0:
        raise ScalarFault("negative length")
    return plain_text.substring(text, start, length)


_ONE = rules.fixed(TEXT, result=TEXT)
_ASKED = rules.fixed(TEXT, TEXT, result=BOOLEAN)

TEXTS: tuple[Scalar, ...] = (
    Scalar("||", rules.concatenation, "a || b", operator.add),
    Scalar("length", rules.fixed(TEXT, result=INTEGER), "length(text): in characters", len),
    Scalar("upper", _ONE, "upper(text)", str.upper),
    Scalar("lower", _ONE, "lower(text)", str.lower),
    Scalar("trim", _ONE, "trim(text)", plain_text.trim),
    Scalar("substring", rules.substring, "substring(text, start [, length])", _substring),
    Scalar("starts_with", _ASKED, "starts_with(text, prefix)", plain_text.starts_with),
    Scalar("ends_with", _ASKED, "ends_with(text, suffix)", plain_text.ends_with),
    Scalar("contains", _ASKED, "contains(text, part)",
           lambda text, part: plain_text.position(text, part) > 0),
    Scalar("position", rules.fixed(TEXT, TEXT, result=INTEGER),
           "position(text, part): from 1, 0 if it is not there",
           plain_text.position),
    Scalar("replace", rules.fixed(TEXT, TEXT, TEXT, result=TEXT), "replace(text, old, new)",
           plain_text.replace),
    Scalar("like", rules.like, "like(text, pattern [, escape]): % and _", plain_text.like),
)  # fmt: skip
