"""The arguments of a call of a generated function, by what its parameters stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from millstream.kernels.loop.ir import Given, Memory, Param, Rep
from millstream.kernels.loop.rows_lanes import Lanes
from millstream.kernels.loop.rows_nodes import Apply, Node, Source
from millstream.kernels.loop.rows_outputs import Outputs
from millstream.kernels.loop.rows_trace import Key
from millstream.kernels.loop.rows_values import Leaves
from millstream.plan.batch import Array
from millstream.plan.ranks import without_positions

DTYPES: dict[Rep, Any] = {
    Rep.NUMBER: np.dtype(np.float64),
    Rep.INTEGER: np.dtype(np.int64),
    Rep.TRUTH: np.dtype(np.bool_),
    Rep.PLACE: np.dtype(np.uint64),
}
_ONE: Array = np.ones(1)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column as a loop reads it."""

    values: Array
    valid: Array | None
    faults: Array | None


@dataclass(slots=True)
class Arguments:
    """Mutable: the arrays of one call, made when they are asked for.

    `pool` and `variables` are those of the kernel; `made` is filled by `generate_columns`.
    """

    leaves: Leaves
    keys: list[Key]
    lanes: list[Lanes]
    pool: Any
    texts: Array
    variables: Any
    counters: Array
    outputs: Outputs | None = None
    made: dict[tuple[str, int], Array] = field(default_factory=dict)
    known: dict[int, Leaf] = field(default_factory=dict)
    places: dict[int, Array] | None = None
    #: How far a function has come that hopes for the best.
    reached: Array = field(default_factory=lambda: np.zeros(1, np.int64))
    #: What a running function has the addresses of.
    alive: list[Array] = field(default_factory=list)

    @property
    def row_count(self) -> int:
        return sum(len(lanes.batch) for lanes in self.lanes)

    def with_nulls(self, columns: Iterable[Memory]) -> list[Leaf]:
        """Those of these columns that have a null, or a fault."""
        leaves = [self._leaf(number) for number in {column.first for column in columns}]
        return [leaf for leaf in leaves if leaf.valid is not None or leaf.faults is not None]

    def find_places(self) -> dict[int, Array]:
        """The places of the keys of every row; makes room for new ones."""
        places = {}
        for number, key in enumerate(self.keys):
            if key.nodes:
                lanes = self.lanes[key.input]
                vectors = [lanes.get(n).vector for n in key.nodes]
                places[number] = self.variables.spaces[key.space].places(vectors, len(lanes.batch))
        for space in self.variables.spaces:
            space.make_room()
        return places

    def frame(self, params: Iterable[Param]) -> Array:
        """Numbers and the addresses of arrays, in the order in which a loop takes them."""
        if self.places is None:
            self.places = self.find_places()
        cells: list[int] = []
        for param in params:
            if isinstance(param, Memory):
                array = steady(self.array(param, self.places), DTYPES[param.rep])
                self.alive.append(array)
                cells.append(array.__array_interface__["data"][0])
            else:
                cells.append(self.number(param))
        return np.array(cells, np.int64)

    def number(self, given: Given) -> int:
        if given.kind == "rows":
            return len(self.lanes[given.first].batch)
        return 0 if given.kind == "begin" else int(self.texts[given.first])

    def array(self, param: Memory, places: dict[int, Array]) -> Array:
        match param.kind:
            case "column" | "valid" | "faults":
                return self._column(param)
            case "time" | "rank":
                return self._order(param)
            case "key":
                return places[param.first]
            case "state" | "there" | "seen" | "order" | "tally":
                return self._state(param)
            case "one":
                return _ONE
            case "reached":
                return self.reached
            case "counters":
                return self.counters
            case _:
                return self._written(param)

    def _column(self, param: Memory) -> Array:
        leaf = self._leaf(param.first)
        if param.kind == "column":
            return leaf.values
        count = len(leaf.values)
        if param.kind == "valid":
            return np.ones(count, np.bool_) if leaf.valid is None else leaf.valid
        return np.zeros(count, np.int64) if leaf.faults is None else leaf.faults

    def _leaf(self, number: int) -> Leaf:
        if number not in self.known:
            self.known[number] = self._made(self.leaves.columns[number])
        return self.known[number]

    def _made(self, node: Node) -> Leaf:
        assert isinstance(node, (Source, Apply))
        lane = self.lanes[node.input].get(node)
        if not lane.vector.is_text:
            return Leaf(lane.vector.values, lane.vector.valid, lane.faults)
        codes = self.pool.codes(lane.vector.values)
        present = codes >= 0
        return Leaf(codes, None if present.all() else present, lane.faults)

    def _order(self, param: Memory) -> Array:
        batch = self.lanes[param.first].batch
        if param.kind == "time":
            return batch.time
        if batch.rank is None:
            return np.zeros(len(batch), np.int64)
        return without_positions(batch.rank)

    def _state(self, param: Memory) -> Array:
        if param.kind in ("state", "there"):
            field_ = self.variables.fields[param.first][param.second]
            array: Array = field_.values if param.kind == "state" else field_.there
        else:
            array = getattr(self.variables.spaces[param.first], param.kind)
        return array

    def _written(self, param: Memory) -> Array:
        if param.kind.startswith("made_"):
            count = len(self.lanes[0].batch)
            made = np.empty(count, DTYPES[param.rep])
            self.made[param.kind, param.first] = made
            return made
        assert self.outputs is not None
        if param.kind == "counts":
            return self.outputs.counts
        return self.outputs.array(param.kind, param.first, param.second)


def steady(array: Array, dtype: Any) -> Array:
    """The array as loops want it; almost always it is so already.

    What a loop writes always is, for it was made for it.
    """
    if array.flags.c_contiguous and array.flags.aligned and array.dtype == dtype:
        return array
    return np.require(array, dtype, ["C", "A"])
