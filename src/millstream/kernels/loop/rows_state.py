"""The variables of folds: an array per field, a place in it per key.

Variables that folds use together lie in one *space*, under the same keys. A key gets its
place when it is first met, but counts only once a fold has written its record: then it
is *seen*, and the order in which keys were seen is the order of a snapshot, which is thus
a function of the rows and of how they were cut into batches. A key whose record is again as
that of a key that was never met is forgotten, now and then: so a fold that empties its record
keeps nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.graph import Variable
from millstream.calculus.types import Kind, Type
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.interning_text import TextPool
from millstream.kernels.runtime.kernel import State
from millstream.kernels.runtime.rowstore import restored_vector, stored_vector
from millstream.plan.batch import DTYPES, Array, Vector

_LEAST_UNSEEN = 4096
#: At so many keys it is looked for the first time whether some can be forgotten.
_LEAST_SEEN = 4096


class StateField:
    """Mutable: a field of a variable, for every place; `there` is false where it is null."""

    def __init__(self, type_: Type, initial: Any, pool: TextPool) -> None:
        self.type = type_
        self.is_text = type_.kind is Kind.TEXT
        self.pool = pool
        held = initial
        if self.is_text and initial is not None:
            held = int(pool.codes(pa.array([initial]))[0])
        self.initial = 0 if held is None else held
        self.is_initially_there = initial is not None
        dtype = np.int64 if self.is_text else DTYPES[type_.kind]
        self.values: Array = np.zeros(0, dtype)
        self.there: Array = np.zeros(0, np.bool_)

    def grow(self, capacity: int) -> None:
        old = len(self.values)
        self.values = np.concatenate(
            [self.values, np.full(capacity - old, self.initial, self.values.dtype)]
        )
        self.there = np.concatenate(
            [self.there, np.full(capacity - old, self.is_initially_there, np.bool_)]
        )

    def is_initial(self, places: Array) -> Array:
        """At which places it is as at the beginning."""
        there = self.there[places]
        if not self.is_initially_there:
            return ~there
        same: Array = self.values[places] == self.initial
        return there & same

    def vector(self, places: Array) -> Vector:
        values, there = self.values[places], self.there[places]
        if self.is_text:
            return Vector(self.type, self.pool.array(np.where(there, values, -1)))
        # What lies under a null must not show in what is written down.
        return Vector(self.type, np.where(there, values, 0).astype(values.dtype), there)

    def fill(self, vector: Vector) -> None:
        """Put values into the first places."""
        count = len(vector)
        if self.is_text:
            codes = self.pool.codes(vector.values)
            self.values[:count], self.there[:count] = np.maximum(codes, 0), codes >= 0
        else:
            self.values[:count], self.there[:count] = vector.values, vector.mask()

    def mark(self, marks: Array) -> None:
        """Mark the texts in use."""
        if self.is_text:
            marks[self.values[self.there]] = True
            if self.is_initially_there:
                marks[self.initial] = True


class Space:
    """Mutable: the records of variables that share their keys; without keys, one record."""

    def __init__(self, types: tuple[Type, ...]) -> None:
        self.types = types
        self.interner = Interner(types)
        self.fields: list[StateField] = []
        self.seen: Array = np.zeros(0, np.bool_)
        self.order: Array = np.zeros(0, np.int64)
        self.tally: Array = np.zeros(1, np.int64)
        self._look_at = _LEAST_SEEN

    @property
    def seen_places(self) -> Array:
        if not self.types:
            return np.zeros(1, np.int64)
        return self.order[: self.tally[0]]

    def places(self, vectors: list[Vector], count: int) -> Array:
        """The place of each row's key."""
        return self.interner.ids(vectors, count).view(np.uint64)

    def make_room(self) -> None:
        needed = self.interner.bound if self.types else 1
        if needed <= len(self.seen):
            return
        capacity = max(needed, 2 * len(self.seen), 16 if self.types else 1)
        more = capacity - len(self.seen)
        self.seen = np.concatenate([self.seen, np.zeros(more, np.bool_)])
        self.order = np.concatenate([self.order, np.zeros(more, np.int64)])
        for field in self.fields:
            field.grow(capacity)

    def forget_unseen(self) -> None:
        """Give back the places of keys that a filter has kept away from every fold."""
        seen = int(self.tally[0])
        if self.types and self.interner.size - seen > max(_LEAST_UNSEEN, seen):
            live = self.interner.table.is_live()
            self.interner.release(np.flatnonzero(live & ~self.seen[: len(live)]))

    def forget_empty(self) -> None:
        """Give back the places of keys whose records are as at the beginning."""
        count = int(self.tally[0])
        if not self.types or count < self._look_at:
            return
        places = self.order[:count]
        is_empty = np.logical_and.reduce([f.is_initial(places) for f in self.fields])
        gone, kept = places[is_empty], places[~is_empty]
        self.seen[gone] = False
        self.order[: len(kept)] = kept
        self.tally[0] = len(kept)
        self._look_at = max(2 * len(kept), _LEAST_SEEN)
        self.interner.release(gone)


class Variables:
    """Mutable: all variables of a kernel, by space."""

    def __init__(
        self,
        variables: tuple[Variable, ...],
        space_of: dict[str, int],
        key_types: list[tuple[Type, ...]],
        pool: TextPool,
    ) -> None:
        self.pool = pool
        self.spaces = [Space(types) for types in key_types]
        self.fields: list[list[StateField]] = []
        self.names: list[tuple[int, str, StateField]] = []
        for variable in variables:
            space = space_of[variable.name]
            own = [
                StateField(f.type, initial, pool)
                for f, initial in zip(variable.fields, variable.initial, strict=True)
            ]
            self.fields.append(own)
            self.spaces[space].fields += own
            self.names += [
                (space, f"{variable.name}.{f.name}", one)
                for f, one in zip(variable.fields, own, strict=True)
            ]
        for one in self.spaces:
            one.make_room()

    def tidy(self, texts_in_use: Array) -> None:
        """Give back what is no longer used, now and then."""
        for space in self.spaces:
            space.forget_unseen()
            space.forget_empty()
        if self.pool.wants_sweep():
            marks = self.pool.marks()
            marks[texts_in_use] = True
            for _, _, field in self.names:
                field.mark(marks)
            self.pool.sweep(marks)

    def snapshot(self) -> State:
        state: State = {}
        for number, space in enumerate(self.spaces):
            keys = space.interner.vectors(space.seen_places) if space.types else ()
            for column, vector in enumerate(keys):
                state |= stored_vector(f"key.{number}.{column}.", vector)
        for number, name, field in self.names:
            vector = field.vector(self.spaces[number].seen_places)
            state |= stored_vector(f"field.{name}.", vector)
        return state

    def restore(self, state: State) -> None:
        """Into variables as new: nothing has been seen."""
        for number, space in enumerate(self.spaces):
            if space.types:
                keys = [
                    restored_vector(type_, state, f"key.{number}.{column}.")
                    for column, type_ in enumerate(space.types)
                ]
                count = len(keys[0])
                places = space.places(keys, count)
                assert np.array_equal(places, np.arange(count)), "keys are not distinct"
                space.make_room()
                space.seen[:count] = True
                space.order[:count] = np.arange(count)
                space.tally[0] = count
        for _, name, field in self.names:
            field.fill(restored_vector(field.type, state, f"field.{name}."))
