"""What the loops of a join tell, as columns at once: a row with rows that lie side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import inlined
from millstream.kernels.relational.keyed_blocks import InOrder, KeyBlocks
from millstream.kernels.runtime.hashing import FAR, NEAR, natural, prefetch
from millstream.plan.batch import Array

#: Where the loop of a join stands: the next change of each side, the instant, and what is to be
#: done of it next; how many rows of the leading side it changes, and of the other; which of them
#: (those first) is looked at, and how many of its partners have been; whether the instant is told
#: in order, how much has been told, and whether that is net and in order, as far as rows are.
AT_LEFT, AT_RIGHT, NOW, STAGE, TOUCHED_LEAD, TOUCHED_OTHER, TURN, PARTNER = range(8)
IS_IN_ORDER, SIZE, IS_NET = range(8, 11)
CURSOR = 11


class SideChanges(NamedTuple):
    """The changes of one side; `touched` and `places` are room for the rows one instant changes.

    `records` has the rows by number, the number of their key first; `extra` is where in a record
    the words of the loop begin. Its `words` go to those `columns` of what is told. What is
    known of all rows is in `notes`.
    """

    number: int
    time: Array
    rows: Array
    weight: Array
    touched: Array
    places: Array
    records: Array
    extra: int
    order: InOrder
    notes: Array
    words: Array
    columns: Array


class KeyWords(NamedTuple):
    """Which words of a key go to which columns of what is told."""

    words: Array
    columns: Array


class Pairs(NamedTuple):
    """Room for what is told: instants, weights, and columns of words."""

    time: Array
    weight: Array
    words: Array


@inlined
def _put(record: Array, words: Array, columns: Array, at: Any, out: Pairs) -> None:
    """The words of a record, once."""
    for j in range(words.size):
        out.words[columns[j], at] = record[words[j]]


@inlined
def _repeat(record: Array, words: Array, columns: Array, start: Any, end: Any, out: Pairs) -> None:
    """The words of a record, as often as there is room from one place to another."""
    for j in range(words.size):
        word, column = record[words[j]], out.words[columns[j], start:end]
        for i in range(column.size):
            column[i] = word


@inlined
def _gather(side: SideChanges, rows: Array, start: Any, out: Pairs) -> None:
    """The words of rows whose numbers lie side by side."""
    for j in range(side.words.size):
        word, column = side.words[j], out.words[side.columns[j], start : start + rows.size]
        for i in range(rows.size):
            column[i] = side.records[natural(rows[i]), word]


@inlined
def tell_run(
    row: Any, side: SideChanges, partners: Array, other: SideChanges, size: Any, out: Pairs
) -> Any:
    """Tell a row with rows of the other side, but for what is common to more."""
    if partners.size == 1:
        _put(side.records[row], side.words, side.columns, size, out)
        _put(other.records[natural(partners[0])], other.words, other.columns, size, out)
    else:
        _repeat(side.records[row], side.words, side.columns, size, size + partners.size, out)
        _gather(other, partners, size, out)
    return size + partners.size


@inlined
def tell_common(
    key: Any, keys: KeyBlocks, common: KeyWords, change: Any, start: Any, end: Any, out: Pairs
) -> None:
    """What all pairs of a key from one place to another have in common."""
    now, weight = change
    if end - start == 1:
        out.time[start], out.weight[start] = now, weight
        _put(keys.records[key], common.words, common.columns, start, out)
        return
    times, weights = out.time[start:end], out.weight[start:end]
    for i in range(times.size):
        times[i] = now
    for i in range(weights.size):
        weights[i] = weight
    _repeat(keys.records[key], common.words, common.columns, start, end, out)


@inlined
def prefetch_change(side: SideChanges, at: Any, keys: KeyBlocks) -> None:
    """Ask for what a later change of a side will need."""
    if at + FAR < side.rows.size:
        prefetch(side.records, side.rows[at + FAR])
        prefetch(keys.records, side.records[natural(side.rows[at + NEAR]), 0])
