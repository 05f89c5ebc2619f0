"""Ranks: the order of items of one instant across queues, packed into an integer.

The reference orders items by (time, phase, declaration, position). A rank holds the last
three, so that comparing (time, rank) is comparing origins. What a mark has set free has no
position in the reference; if it could not be put back into order otherwise, it is given one,
which is not looked at where items of several queues are compared.
"""

from __future__ import annotations

import numpy as np

from millstream.plan.batch import Array

_DECLARATION_BITS = 48
_PHASE_BITS = 62
#: No log has as many rows, and no operator as many inputs as are left.
_TURN_BITS = 42
_POSITIONS = 1 << _DECLARATION_BITS
_DECLARATIONS = 1 << (_PHASE_BITS - _DECLARATION_BITS)

Origin = tuple[int, int, int, int]


def first_rank(declaration: int) -> int:
    """The rank of the first item of an input; the others follow."""
    return declaration << _DECLARATION_BITS


def rank_of_mark(declaration: int) -> int:
    """The rank of whatever is set free when an instant of an input has passed."""
    return (1 << _PHASE_BITS) | (declaration << _DECLARATION_BITS)


def is_free(ranks: Array) -> Array:
    """Which items a mark has set free."""
    return ranks >= 1 << _PHASE_BITS


def has_position(ranks: Array) -> Array:
    # A remainder of a power of two, without dividing.
    return (ranks & (_POSITIONS - 1)) > 0


def with_positions(ranks: Array) -> Array:
    """The ranks of items in order: of those that a mark has set free each is now its own."""
    positions = np.arange(1, len(ranks) + 1)
    return np.where(is_free(ranks), without_positions(ranks) + positions, ranks)


def freed(ranks: Array, declaration: int, number: int) -> Array:
    """The ranks that items of one of several inputs have when a mark sets them free in turn.

    Those of an earlier input come first; items of one input keep their order.
    """
    turn = (number << _TURN_BITS) + 1  # a position of nothing is none
    return rank_of_mark(declaration) + turn + ranks % (1 << _TURN_BITS)


def without_positions(ranks: Array) -> Array:
    """The ranks as the reference has them."""
    return np.where(is_free(ranks), ranks // _POSITIONS * _POSITIONS, ranks)


def origin_of_rank(time: int, rank: int) -> Origin:
    phase, declaration = rank >> _PHASE_BITS, (rank >> _DECLARATION_BITS) % _DECLARATIONS
    return time, phase, declaration, 0 if phase else rank % _POSITIONS


def rank_of_origin(origin: Origin) -> int:
    _, phase, declaration, position = origin
    return (phase << _PHASE_BITS) | (declaration << _DECLARATION_BITS) | position
