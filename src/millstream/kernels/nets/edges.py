"""Where a net meets the outside: columns of batches, in and out, and the times of what leaves."""

from __future__ import annotations

from millstream.compiled import tight
from millstream.plan.batch import Array


@tight
def narrow(values: Array, cells: Array, begin: int, step: int) -> None:
    """A column of numbers as cells of single precision; outside of nets there is no minus zero."""
    for n in range(values.shape[0]):
        cells[begin + n * step] = values[n] + 0.0


@tight
def widen(cells: Array, begin: int, step: int, values: Array) -> None:
    """Cells of single precision as a column of numbers."""
    if step == 1:
        for n in range(values.shape[0]):
            values[n] = cells[begin + n] + 0.0
        return
    for n in range(values.shape[0]):
        values[n] = cells[begin + n * step] + 0.0


@tight
def stamp(begins: Array, repeats: Array, run: int, step: int, first: int, came: int, times: Array,
          stamps: Array) -> None:  # fmt: skip
    """The times of items from a number on, by the moments of their queue.

    So many of those that repeat are always the same one after the other.
    """
    count, early, size = stamps.shape[0], begins.shape[0], repeats.shape[0]
    done = 0
    while done < count and first + done < early:
        stamps[done] = times[begins[first + done] - came]
        done += 1
    while done < count:
        place = first + done - early
        begin, base = place % size, place // size * step - came
        if run >= 16:
            rest = min(run - begin % run, count - done)
            stamps[done : done + rest] = times[repeats[begin] + base]
        else:
            rest = min(size - begin, count - done)
            for n in range(rest):
                stamps[done + n] = times[repeats[begin + n] + base]
        done += rest
