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

from millstream.calculus.types import BOOLEAN
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
        found = self.known.get(node)
        if found is None:
            if isinstance(node, Apply) and not node.is_before_loop:
                self.known.update(self.compute(self, node))
            else:
                self.known[node] = self._made(node)
            found = self.known[node]
        return found

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
    chosen = _compute.if_else(pa.array(taken), lanes.arrow(yes), lanes.arrow(no))
    faults = joined(
        lanes.faults(condition),
        _where(taken, lanes.faults(yes)),
        _where(~taken, lanes.faults(no)),
    )
    return Lane(Vector(node.type, chosen), faults)


def _coalesce(lanes: Lanes, node: Apply) -> Lane:
    missing = np.ones(len(lanes.batch), np.bool_)
    faults = None
    for arg in node.args:
        faults = joined(faults, _where(missing, lanes.faults(arg)))
        missing = missing & ~lanes.get(arg).vector.mask()
    first = constant_vector(node.type, None, len(lanes.batch)).values
    found = _compute.coalesce(*map(lanes.arrow, node.args), first)
    return Lane(Vector(node.type, found), faults)


def _extreme(function: str) -> Callable[[Lanes, Apply], Lane]:
    def choose(lanes: Lanes, node: Apply) -> Lane:
        # An array among the arguments, so that scalars alone give an array too.
        nothing = constant_vector(node.type, None, len(lanes.batch)).values
        places = [*map(lanes.arrow, node.args), nothing]
        found = getattr(_compute, function)(*places, skip_nulls=True)
        return Lane(Vector(node.type, found), joined(*map(lanes.faults, node.args)))

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
