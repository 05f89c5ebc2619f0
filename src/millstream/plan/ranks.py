"""Ranks: the order of items of one instant across queues, packed into an integer.

The reference orders items by (time, phase, declaration, position). A rank holds the last
three, so that comparing (time, rank) is comparing origins.
"""

from __future__ import annotations

_DECLARATION_BITS = 48
_PHASE_BITS = 62
_POSITIONS = 1 << _DECLARATION_BITS
_DECLARATIONS = 1 << (_PHASE_BITS - _DECLARATION_BITS)

Origin = tuple[int, int, int, int]


def first_rank(declaration: int) -> int:
    """The rank of the first item of an input; the others follow."""
    return declaration << _DECLARATION_BITS


def rank_of_mark(declaration: int) -> int:
    """The rank of whatever is set free when an instant of an input has passed."""
    return (1 << _PHASE_BITS) | (declaration << _DECLARATION_BITS)


def origin_of_rank(time: int, rank: int) -> Origin:
    declaration = (rank >> _DECLARATION_BITS) % _DECLARATIONS
    return time, rank >> _PHASE_BITS, declaration, rank % _POSITIONS


def rank_of_origin(origin: Origin) -> int:
    _, phase, declaration, position = origin
    return (phase << _PHASE_BITS) | (declaration << _DECLARATION_BITS) | position
