"""Merging runs of items that are each in order: one walk along all of them."""

from __future__ import annotations

from millstream.compiled import tight
from millstream.plan.batch import Array

#: Of more runs, all heads would have to be looked at too often.
MOST_RUNS = 16


@tight
def merge_runs(time: Array, rank: Array, heads: Array, ends: Array, order: Array) -> bool:
    """The order by (time, rank) of runs that lie one behind the other, earlier runs first.

    `heads` are where the runs begin, and are moved. False if a run is not in order itself.
    """
    runs = ends.size
    for k in range(order.size):
        best = -1
        for run in range(runs):
            i = heads[run]
            if i < ends[run] and (
                best < 0
                or time[i] < time[heads[best]]
                or (time[i] == time[heads[best]] and rank[i] < rank[heads[best]])
            ):
                best = run
        i = heads[best]
        if k > 0:
            before = order[k - 1]
            if time[i] < time[before] or (time[i] == time[before] and rank[i] < rank[before]):
                return False
        order[k] = i
        heads[best] = i + 1
    return True
