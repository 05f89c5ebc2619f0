"""Compiled loops for the numbers of a window in order: a tree in the elements of the window.

Each element has three words for it: the nodes below with smaller and with greater numbers, and
how many of the smaller ones there are. A node is the position of its element plus one, zero for
none. Nodes are ordered by number, equal ones by position; what stands higher has the greater
mixed position (a treap), so that equal histories give equal trees, whose height is that of a
random tree: some two logarithms of the size. Everything here goes down once, and looks at no
node beside its way: in a long window hardly any of them is in the caches of the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from millstream.compiled import apart, inlined
from millstream.kernels.windows.ring import place_of
from millstream.plan.batch import Array

LEFT, RIGHT, SMALLER = range(3)
NODE = 3
#: The words in the row of a key: the node on top, and how many there are.
TOP, COUNT = range(2)
TREE_ROW = 2
_MIX = np.int64(0x1E3779B97F4A7C15)
_NUM, _NA = 15, 16


@inlined
def _height(node: Any) -> Any:
    mixed = node * _MIX
    mixed ^= (mixed >> 31) & 0x1FFFFFFFF
    mixed *= _MIX
    return mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)


@inlined
def _at(row: Array, tree: Any, node: Any) -> Any:
    """Where the words of a node's element begin; `tree` says which tree is meant."""
    group, stride = tree[0], tree[1]
    return place_of(row, group, stride, node - 1)


@inlined
def _is_before(row: Array, floats: Array, tree: Any, node: Any, value: Any, other: Any) -> Any:
    """Does a node stand before the node `other`, whose number is `value`?"""
    mine = floats[_at(row, tree, node) + tree[4]]
    return mine < value or (mine == value and node < other)


@apart
def tree_enter(row: Array, pool: Array, floats: Array, tree: Any, position: Any) -> None:
    """A tree is (group, stride, top, words, value word): places in rows and in elements."""
    top, words = tree[2], tree[3]
    new = position + 1
    here = _at(row, tree, new)
    value, height = floats[here + tree[4]], _height(new)
    row[top + COUNT] += 1
    # Down to where the new node belongs.
    parent, side, node = np.int64(0), LEFT, row[top + TOP]
    while node != 0 and _height(node) >= height:
        at = _at(row, tree, node) + words
        parent = node
        if _is_before(row, floats, tree, node, value, new):
            side = RIGHT
        else:
            side = LEFT
            pool[at + SMALLER] += 1
        node = pool[at + side]
    before = _rank(row, pool, floats, tree, node, value, new)
    if parent == 0:
        row[top + TOP] = new
    else:
        pool[_at(row, tree, parent) + words + side] = new
    pool[here + words + SMALLER] = before
    # What was there is split into smaller and greater ones, which hang below the new node.
    left, right = here + words + LEFT, here + words + RIGHT
    pool[left] = pool[right] = 0
    while node != 0:
        at = _at(row, tree, node) + words
        if _is_before(row, floats, tree, node, value, new):
            following = pool[at + RIGHT]
            pool[left] = node
            left = at + RIGHT
            before -= pool[at + SMALLER] + 1
        else:
            following = pool[at + LEFT]
            pool[right] = node
            pool[at + SMALLER] -= before
            right = at + LEFT
        node = following
    pool[left] = pool[right] = 0


@inlined
def _rank(
    row: Array, pool: Array, floats: Array, tree: Any, node: Any, value: Any, other: Any
) -> Any:
    """How many of the nodes from one down stand before `other`."""
    count = np.int64(0)
    while node != 0:
        at = _at(row, tree, node) + tree[3]
        if _is_before(row, floats, tree, node, value, other):
            count += 1 + pool[at + SMALLER]
            node = pool[at + RIGHT]
        else:
            node = pool[at + LEFT]
    return count


@apart
def tree_leave(row: Array, pool: Array, floats: Array, tree: Any, position: Any) -> None:
    top, words = tree[2], tree[3]
    gone = position + 1
    here = _at(row, tree, gone)
    value = floats[here + tree[4]]
    row[top + COUNT] -= 1
    parent, side, node = np.int64(0), LEFT, row[top + TOP]
    while node != gone:
        at = _at(row, tree, node) + words
        parent = node
        if _is_before(row, floats, tree, node, value, gone):
            side = RIGHT
        else:
            side = LEFT
            pool[at + SMALLER] -= 1
        node = pool[at + side]
    one, other = pool[here + words + LEFT], pool[here + words + RIGHT]
    smaller = pool[here + words + SMALLER]
    # The two sides become one: of their topmost nodes the higher one is above. `smaller` is how
    # many there are from `one` down.
    while True:
        if one == 0 or other == 0:
            higher = one + other
        else:
            higher = one if _height(one) >= _height(other) else other
        if parent == 0:
            row[top + TOP] = higher
        else:
            pool[_at(row, tree, parent) + words + side] = higher
        if one == 0 or other == 0:
            return
        at = _at(row, tree, higher) + words
        parent = higher
        if higher == one:
            smaller -= pool[at + SMALLER] + 1
            side, one = RIGHT, pool[at + RIGHT]
        else:
            pool[at + SMALLER] += smaller
            side, other = LEFT, pool[at + LEFT]


@apart
def tree_count(row: Array, pool: Array, floats: Array, tree: Any, value: Any) -> Any:
    """How many numbers are less."""
    return _rank(row, pool, floats, tree, row[tree[2] + TOP], value, np.int64(0))


@apart
def tree_number(row: Array, pool: Array, floats: Array, tree: Any, index: Any) -> Any:
    """The number at a place, from zero, in rising order; there is one."""
    node = row[tree[2] + TOP]
    while True:
        at = _at(row, tree, node)
        smaller = pool[at + tree[3] + SMALLER]
        if index == smaller:
            return floats[at + tree[4]]
        if index < smaller:
            node = pool[at + tree[3] + LEFT]
        else:
            index -= smaller + 1
            node = pool[at + tree[3] + RIGHT]


@apart
def tree_first(row: Array, pool: Array, floats: Array, tree: Any, value: Any) -> Any:
    """The first position at which a number stands, or -1."""
    candidate, node = np.int64(0), row[tree[2] + TOP]
    while node != 0:
        at = _at(row, tree, node)
        if floats[at + tree[4]] < value:
            node = pool[at + tree[3] + RIGHT]
        else:
            candidate = node
            node = pool[at + tree[3] + LEFT]
    if candidate == 0 or floats[_at(row, tree, candidate) + tree[4]] != value:
        return np.int64(-1)
    return candidate - 1


# --- aggregates -------------------------------------------------------------------------


@apart
def window_kth(
    row: Array, pool: Array, floats: Array, tree: Any, error: Any, k: Any, status: Any,
    is_largest: int,
) -> Any:  # fmt: skip
    if status >= 10 or error != 0:
        return 0.0, (status if status >= 10 else error)
    count = row[tree[2] + COUNT]
    if not 1.0 <= k <= count:
        return 0.0, _NUM
    place = np.ceil(k)
    index = count - np.int64(place) if is_largest else np.int64(place) - 1
    return tree_number(row, pool, floats, tree, index), 0


@apart
def window_median(row: Array, pool: Array, floats: Array, tree: Any, error: Any) -> Any:
    if error != 0:
        return 0.0, error
    count = row[tree[2] + COUNT]
    if count == 0:
        return 0.0, _NUM
    upper = tree_number(row, pool, floats, tree, count // 2)
    if count % 2:
        return upper, 0
    return (tree_number(row, pool, floats, tree, count // 2 - 1) + upper) / 2.0, 0


@apart
def window_percentile(
    row: Array, pool: Array, floats: Array, tree: Any, error: Any, share: Any, status: Any
) -> Any:
    if status >= 10 or error != 0:
        return 0.0, (status if status >= 10 else error)
    count = row[tree[2] + COUNT]
    if count == 0 or not 0.0 <= share <= 1.0:
        return 0.0, _NUM
    place = share * (count - 1)
    low = np.int64(place)
    value = tree_number(row, pool, floats, tree, low)
    if place == low:
        return value, 0
    following = tree_number(row, pool, floats, tree, min(low + 1, count - 1))
    return value + (place - low) * (following - value), 0


@apart
def window_quartile(
    row: Array, pool: Array, floats: Array, tree: Any, error: Any, which: Any, status: Any
) -> Any:
    if status < 10 and not 0.0 <= which < 5.0:
        return 0.0, _NUM
    share = np.floor(which) / 4.0
    return window_percentile(row, pool, floats, tree, error, share, status)


@apart
def window_rank(
    row: Array, pool: Array, floats: Array, tree: Any, error: Any, x: Any, status: Any,
    is_rising: Any,
) -> Any:  # fmt: skip
    if status >= 10 or error != 0:
        return 0.0, (status if status >= 10 else error)
    if tree_first(row, pool, floats, tree, x) < 0:
        return 0.0, _NA
    below = tree_count(row, pool, floats, tree, x)
    if is_rising:
        return 1.0 + below, 0
    above = tree_count(row, pool, floats, tree, np.nextafter(x, np.inf))
    return 1.0 + row[tree[2] + COUNT] - above, 0


@apart
def window_match(
    row: Array, pool: Array, floats: Array, tree: Any, first: Any, x: Any, status: Any
) -> Any:
    """MATCH with mode 0; `first` is the position of the oldest value."""
    if status >= 10:
        return 0.0, status
    position = tree_first(row, pool, floats, tree, x)
    if position < 0:
        return 0.0, _NA
    return float(position - first + 1), 0


@apart
def mode_enter(
    row: Array, pool: Array, floats: Array, tree: Any, modes: Any, position: Any
) -> None:
    """A number has entered the tree of all numbers.

    For each different number its first element stands in a second tree, `modes`, ordered by
    how often the number is there, less than zero: the least of them, and of equal ones the
    first, is the mode.
    """
    value = floats[_at(row, tree, position + 1) + tree[4]]
    first = tree_first(row, pool, floats, tree, value)
    count = _at(row, modes, first + 1) + modes[4]
    if first == position:
        floats[count] = -1.0
    else:
        tree_leave(row, pool, floats, modes, first)
        floats[count] -= 1.0
    tree_enter(row, pool, floats, modes, first)


@apart
def mode_leave(
    row: Array, pool: Array, floats: Array, tree: Any, modes: Any, position: Any
) -> None:
    """The oldest element has left the tree of all numbers: its number has another first one."""
    here = _at(row, tree, position + 1)
    tree_leave(row, pool, floats, modes, position)
    count = floats[here + modes[4]]
    if count < -1.0:
        following = tree_first(row, pool, floats, tree, floats[here + tree[4]])
        floats[_at(row, modes, following + 1) + modes[4]] = count + 1.0
        tree_enter(row, pool, floats, modes, following)


@apart
def window_mode(row: Array, pool: Array, floats: Array, tree: Any, modes: Any, error: Any) -> Any:
    """The number that stands there most often, of several the one that came first."""
    if error != 0:
        return 0.0, error
    leftmost, node = np.int64(0), row[modes[2] + TOP]
    while node != 0:
        leftmost = node
        node = pool[_at(row, modes, node) + modes[3] + LEFT]
    if leftmost == 0 or floats[_at(row, modes, leftmost) + modes[4]] > -2.0:
        return 0.0, _NA
    return floats[_at(row, modes, leftmost) + tree[4]], 0
