"""Which joins are between tables: relations with one row for each key at most."""

from __future__ import annotations

from millstream.calculus.functions import Join
from millstream.calculus.unique import Key


def is_table_join(join: Join, keys: list[Key | None]) -> bool:
    """Whether a join is between tables, on the whole key of the second."""
    left, right = keys
    if left is None or right is None or not join.on:
        return False
    ours = [one for one, _ in join.on]
    theirs = [other for _, other in join.on]
    return sorted(theirs) == sorted(right) and len(set(ours)) == len(ours)
