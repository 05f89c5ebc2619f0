"""Columns that are computed before the loop, for one batch.

Numba never sees strings, so whatever touches text and depends on the row alone is
computed here, a column at a time. What such columns need of arithmetic is computed by
small generated loops of the same kind as the main one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.types import BOOLEAN, Value
from millstream.kernels.loop.rows_nodes import Apply, Constant, Node, Source
from millstream.kernels.loop.text_columns import (
    Argument,
    Scalar,
    apply,
    constant_vector,
    plain_text,
    with_plain_nulls,
)
from millstream.plan.batch import Array, Batch, Vector

_compute: Any = pc

#: So many texts are chosen among by number.
_FEW = 64


@dataclass(frozen=True, slots=True)
class Lane:
    """A column and, if there are any, the faults of each row, as bits of their term."""

    vector: Vector
    faults: Array | None = None


#: Computes arithmetic nodes: the node that is wanted, and others along with it.
ComputeColumns = Callable[["Lanes", Apply], dict[Node, Lane]]


@dataclass(slots=True)
class Lanes:
    """Mutable: the columns of a batch computed so far."""

    batch: Batch
    compute: ComputeColumns
    known: dict[Node, Lane] = field(default_factory=dict)

    def get(self, node: Node) -> Lane:
        lane = self.known.get(node)
        if lane is None:
            if isinstance(node, Apply) and not node.is_before_loop:
                self.known.update(self.compute(self, node))
            else:
                self.known[node] = self._made(node)
            lane = self.known[node]
        return lane

    def _made(self, node: Node) -> Lane:
        match node:
            case Source(_, column, type_):
                if node.is_time:
                    return Lane(Vector(type_, self.batch.time))
                return Lane(with_plain_nulls(self.batch.columns[column]))
            case Constant(value, type_):
                return Lane(constant_vector(type_, value, len(self.batch)))
            case Apply(function):
                special = _SPECIAL.get(function)
                return special(self, node) if special else self._strict(node)
        raise AssertionError(f"{node} has no column")

    def _strict(self, node: Apply) -> Lane:
        args: list[Argument] = [
            Scalar(a.type, a.value) if isinstance(a, Constant) else self.get(a).vector
            for a in node.args
        ]
        answer = apply(node.function, args, node.type, len(self.batch))
        faults = None if answer.faults is None else answer.faults << node.bit
        return Lane(answer.vector, joined(faults, *map(self.faults, node.args)))

    def faults(self, node: Node) -> Array | None:
        """The faults of evaluating an argument here, not where it was settled."""
        if not isinstance(node, Apply) or node.is_settled or not node.can_fail:
            return None
        return self.get(node).faults

    def few(self, node: Node) -> tuple[Array, list[Value]] | None:
        """Texts as numbers into a short list; None where they are not encoded so."""
        if isinstance(node, Constant):
            is_null = node.value is None
            return np.array(-1 if is_null else 0), [] if is_null else [node.value]
        values = self.get(node).vector.values
        if not pa.types.is_dictionary(values.type) or len(values.dictionary) > _FEW:
            return None
        numbers = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return numbers, values.dictionary.to_pylist()

    def arrow(self, node: Node) -> Any:
        """The texts of an argument as an Arrow array or scalar."""
        if isinstance(node, Constant):
            return pa.scalar(node.value, pa.string())
        return plain_text(self.get(node).vector)


def joined(*faults: Array | None) -> Array | None:
    some = [f for f in faults if f is not None]
    return reduce(np.bitwise_or, some) if some else None


def _where(taken: Array, faults: Array | None) -> Array | None:
    return None if faults is None else np.where(taken, faults, 0)


def _if(lanes: Lanes, node: Apply) -> Lane:
    condition, yes, no = node.args
    held = lanes.get(condition).vector
    taken = held.values if held.valid is None else held.values & held.valid
    chosen = _choice(lanes, taken, yes, no)
    if chosen is None:
        chosen = _compute.if_else(pa.array(taken), lanes.arrow(yes), lanes.arrow(no))
    faults = joined(
        lanes.faults(condition),
        _where(taken, lanes.faults(yes)),
        _where(~taken, lanes.faults(no)),
    )
    return Lane(Vector(node.type, chosen), faults)


def _choice(lanes: Lanes, taken: Array, yes: Node, no: Node) -> Any | None:
    """One of few texts, by their numbers; None where there may be many."""
    sides = [lanes.few(yes), lanes.few(no)]
    texts = [text for side in sides if side is not None for text in side[1]]
    if None in sides or len(texts) > _FEW:
        return None
    (first, known), (second, _) = (side for side in sides if side is not None)
    # What is null has the number -1 on either side.
    numbers = np.where(taken, first, np.where(second < 0, second, second + len(known)))
    distinct = list(dict.fromkeys(texts))
    place = np.array([*map(distinct.index, texts), -1], np.int32)[numbers]
    indices = pa.array(place, mask=place < 0 if (place < 0).any() else None)
    return pa.DictionaryArray.from_arrays(indices, pa.array(distinct, pa.string()))


def _coalesce(lanes: Lanes, node: Apply) -> Lane:
    missing = np.ones(len(lanes.batch), np.bool_)
    faults = None
    for arg in node.args:
        faults = joined(faults, _where(missing, lanes.faults(arg)))
        missing = missing & ~lanes.get(arg).vector.mask()
    first = constant_vector(node.type, None, len(lanes.batch)).values
    chosen = _compute.coalesce(*map(lanes.arrow, node.args), first)
    return Lane(Vector(node.type, chosen), faults)


def _extreme(function: str) -> Callable[[Lanes, Apply], Lane]:
    def choose(lanes: Lanes, node: Apply) -> Lane:
        # An array among the arguments, so that scalars alone give an array too.
        nothing = constant_vector(node.type, None, len(lanes.batch)).values
        places = [*map(lanes.arrow, node.args), nothing]
        chosen = getattr(_compute, function)(*places, skip_nulls=True)
        return Lane(Vector(node.type, chosen), joined(*map(lanes.faults, node.args)))

    return choose


def _is_null(lanes: Lanes, node: Apply) -> Lane:
    (arg,) = node.args
    return Lane(Vector(BOOLEAN, ~lanes.get(arg).vector.mask()), lanes.faults(arg))


#: Functions that see nulls or do not look at all their arguments.
_SPECIAL: dict[str, Callable[[Lanes, Apply], Lane]] = {
    "if": _if,
    "coalesce": _coalesce,
    "least": _extreme("min_element_wise"),
    "greatest": _extreme("max_element_wise"),
    "is_null": _is_null,
}
