"""Compiled loops for pairing heaps, of which there is one per group and extreme.

A node is one distinct value of one heap, with the number of rows that have it; any node
can be taken out, so deletions leave nothing behind. Nodes of all heaps live in one array.
A link is the number of a node plus one, zero for none, so that zeroed memory is empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from millstream.compiled import apart, inlined
from millstream.kernels.runtime.utf8 import Texts, compare_texts
from millstream.plan.batch import Array

#: The words of a node: its heap and its value, by which it is found, and the rest.
#: PREVIOUS of a first child is its parent.
HEAP, VALUE, ROWS, CHILD, NEXT, PREVIOUS, IS_IN, IS_TOUCHED = range(8)
KEY, NODE = 2, 8


class Heaps(NamedTuple):
    """All heaps. Heap h is of kind h % len(signs).

    The sign of a kind is 1 if the least value is wanted, -1 if the greatest.
    """

    nodes: Array
    roots: Array
    signs: Array
    is_text: Array
    texts: Texts


@inlined
def _is_before(one: Any, other: Any, heaps: Heaps) -> Any:
    """Is node `one` nearer to the root than `other`? They are of one heap."""
    nodes = heaps.nodes
    kind = nodes[one, HEAP] % heaps.signs.size
    a, b = nodes[one, VALUE], nodes[other, VALUE]
    if heaps.is_text[kind]:
        return compare_texts(a, b, heaps.texts) * heaps.signs[kind] < 0
    return a < b if heaps.signs[kind] > 0 else b < a


@inlined
def _linked(one: Any, other: Any, heaps: Heaps) -> Any:
    """Two heaps, given by the links to their roots, as one."""
    nodes = heaps.nodes
    if _is_before(other - 1, one - 1, heaps):
        one, other = other, one
    child = nodes[one - 1, CHILD]
    nodes[other - 1, NEXT] = child
    nodes[other - 1, PREVIOUS] = one
    if child != 0:
        nodes[child - 1, PREVIOUS] = other
    nodes[one - 1, CHILD] = other
    nodes[one - 1, NEXT] = 0
    nodes[one - 1, PREVIOUS] = 0
    return one


@apart
def _paired(first: Any, heaps: Heaps) -> Any:
    """A list of siblings as one heap: pairs from left to right, then all into one."""
    nodes = heaps.nodes
    done = 0  # pairs so far, the last one first, chained by PREVIOUS
    while first != 0:
        one, other = first, nodes[first - 1, NEXT]
        first = 0
        if other != 0:
            first = nodes[other - 1, NEXT]
            one = _linked(one, other, heaps)
        nodes[one - 1, PREVIOUS] = done
        done = one
    heap = 0
    while done != 0:
        following = nodes[done - 1, PREVIOUS]
        nodes[done - 1, NEXT] = nodes[done - 1, PREVIOUS] = 0
        heap = done if heap == 0 else _linked(heap, done, heaps)
        done = following
    return heap


@apart
def _insert(node: Any, heap: Any, heaps: Heaps) -> None:
    roots = heaps.roots
    roots[heap] = node + 1 if roots[heap] == 0 else _linked(roots[heap], node + 1, heaps)


@apart
def _remove(node: Any, heap: Any, heaps: Heaps) -> None:
    nodes, roots = heaps.nodes, heaps.roots
    link, child = node + 1, nodes[node, CHILD]
    rest = _paired(child, heaps) if child != 0 else 0
    if roots[heap] == link:
        roots[heap] = rest
    else:
        previous, following = nodes[node, PREVIOUS], nodes[node, NEXT]
        if nodes[previous - 1, CHILD] == link:
            nodes[previous - 1, CHILD] = following
        else:
            nodes[previous - 1, NEXT] = following
        if following != 0:
            nodes[following - 1, PREVIOUS] = previous
        if rest != 0:
            roots[heap] = _linked(roots[heap], rest, heaps)
    nodes[node, CHILD] = nodes[node, NEXT] = nodes[node, PREVIOUS] = 0


@inlined
def settle(node: Any, heaps: Heaps) -> None:
    """Put a node into its heap if it has rows and take it out if it has none."""
    nodes = heaps.nodes
    nodes[node, IS_TOUCHED] = 0
    if nodes[node, ROWS] > 0 and not nodes[node, IS_IN]:
        nodes[node, IS_IN] = 1
        _insert(node, nodes[node, HEAP], heaps)
    elif nodes[node, ROWS] == 0 and nodes[node, IS_IN]:
        nodes[node, IS_IN] = 0
        _remove(node, nodes[node, HEAP], heaps)
