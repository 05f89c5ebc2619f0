"""Conditions taken apart at `and`, and put together again."""

from __future__ import annotations

from collections.abc import Iterable

from millstream.calculus.terms import Call, Term
from millstream.calculus.types import BOOLEAN


def conjuncts(term: Term | None) -> list[Term]:
    match term:
        case None:
            return []
        case Call("and", args):
            return [one for arg in args for one in conjuncts(arg)]
        case _:
            return [term]


def all_of(terms: Iterable[Term]) -> Term | None:
    """One condition for several; None for none."""
    first: Term | None = None
    for one in terms:
        first = one if first is None else Call("and", (first, one), BOOLEAN)
    return first
