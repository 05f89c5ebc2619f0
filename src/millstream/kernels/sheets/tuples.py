"""Compiled loops around the loop of a sheet: the order of tuples, and numbers of texts."""

from __future__ import annotations

from millstream.compiled import tight
from millstream.kernels.windows.ring import END, FIRST, STATUSES, VALUES, place_of
from millstream.plan.batch import Array


@tight
def firings(
    which: Array, place: Array, keys: Array, time: Array, latest: Array, inputs: int,
    places: Array, first: Array,
) -> int:  # fmt: skip
    """Tuples of one instant and key as one firing, in the order of the first of each.

    `places` gets for each firing and input the place of the last tuple, -1 for none; `first`
    the number of its first tuple. `latest` is -1 for every key.
    """
    count = 0
    for r in range(which.size):
        k = keys[r]
        firing = latest[k]
        if firing < 0 or time[first[firing]] != time[r]:
            firing = latest[k] = count
            first[firing] = r
            for n in range(inputs):
                places[firing * inputs + n] = -1
            count += 1
        places[firing * inputs + which[r]] = place[r]
    return count


@tight
def missing_codes(codes: Array, known: Array, missing: Array) -> int:
    """The codes of which nothing is known (-1), each once; they are marked by -2."""
    count = 0
    for n in range(codes.size):
        code = codes[n]
        if known[code] == -1:
            known[code] = -2
            missing[count] = code
            count += 1
    return count


@tight
def missing_integers(values: Array, known: Array, missing: Array) -> int:
    """The integers of which nothing is known (-1), each once; they are marked by -2.

    Returns how many these are, or -1 if an integer has no place in `known`.
    """
    count = 0
    for n in range(values.size):
        value = values[n]
        if value < 0 or value >= known.size:
            for k in range(count):
                known[missing[k]] = -1
            return -1
        if known[value] == -1:
            known[value] = -2
            missing[count] = value
            count += 1
    return count


@tight
def used_codes(codes: Array, numbers: Array, used: Array) -> int:
    """Number the codes anew in order of their first use; `numbers` is -1 everywhere."""
    count = 0
    for n in range(codes.size):
        code = codes[n]
        if numbers[code] < 0:
            numbers[code] = count
            used[count] = code
            count += 1
        codes[n] = numbers[code]
    return count


@tight
def mark_texts(
    rows: Array,
    pool: Array,
    numbers: Array,
    group: int,
    stride: int,
    column: int,
    held: int,
    live: Array,
) -> None:
    """Mark the texts, by their status, that stand in a column of a group of windows."""
    for k in range(rows.shape[0]):
        row = rows[k]
        for position in range(row[group + FIRST], row[group + END]):
            at = place_of(row, group, stride, position)
            if (pool[at + STATUSES] >> (8 * column)) & 0xFF == held:
                live[int(numbers[at + VALUES + column])] = 1
