"""Whether loops are being compiled by another process, so that one does without them meanwhile.

Mutable: knows the jobs that wait. What is decided by it is how something is computed, never what.
"""

from __future__ import annotations

#: So many rows are read at once without compiled loops, and so many bytes in all.
FEW_ROWS = 1_000
FEW_BYTES = 4 << 20

_waiting: set[Start] = set()


class Start:
    """A job that has begun before its loops are compiled, until that is over."""

    def __init__(self) -> None:
        _waiting.add(self)

    def over(self) -> None:
        _waiting.discard(self)


def is_cold() -> bool:
    return bool(_waiting)


def rows_at_once(usual: int) -> int:
    return min(usual, FEW_ROWS) if is_cold() else usual
