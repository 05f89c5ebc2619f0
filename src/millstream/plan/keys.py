"""How the rows of a queue are spread over buckets where they enter a stage."""

from __future__ import annotations

import enum


class Copies(enum.Enum):
    """Every bucket has all rows."""

    EVERYWHERE = "everywhere"


EVERYWHERE = Copies.EVERYWHERE

#: The columns by which rows must be together; () is all rows in one place, None is as they come,
#: EVERYWHERE a copy of all of them in each bucket.
Key = tuple[str, ...] | None | Copies
