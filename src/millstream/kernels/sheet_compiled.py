"""The kernel of a compiled sheet."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.sheets import Sheet, address_text
from millstream.calculus.types import Kind as ColumnKind
from millstream.calculus.types import QueueType, Type
from millstream.formulas.dates import OFFSET_1904
from millstream.formulas.kinds import Kind
from millstream.formulas.values import ERRORS, folded
from millstream.kernels.cache import compiled
from millstream.kernels.interning import Interner, named, part
from millstream.kernels.kernel import Round, State
from millstream.kernels.loops import FREE, TOP, frozen, padded
from millstream.kernels.loops_sums import LIMBS
from millstream.kernels.loops_window import CAPACITY, compact
from millstream.kernels.sheet import merged_order
from millstream.kernels.sheet_operands import (
    ABSENT,
    EMPTY,
    FIRST_ERROR,
    OK,
    ZERO,
    NotCompiled,
    Texts,
)
from millstream.kernels.sheet_paths import Compilation
from millstream.kernels.sheet_report import commented, phases, storage
from millstream.kernels.sheet_source import (
    fed_columns,
    group_places,
    output_kinds,
    places,
    source_of,
)
from millstream.plan.batch import Array, Batch, Vector

_NUM = FIRST_ERROR + 5
_MICROS_PER_DAY = 86_400_000_000
_DAYS_TO_1970 = 25_569
_COLUMN_TYPES = {
    Kind.NUMBER: ColumnKind.NUMBER, Kind.TEXT: ColumnKind.TEXT, Kind.BOOLEAN: ColumnKind.BOOLEAN,
}  # fmt: skip


class CompiledSheetKernel:
    """Mutable: the cells, windows and texts of all keys as arrays."""

    def __init__(
        self, function: Sheet, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.function = function
        self.input_types = input_types
        self.output_types = function.output_types(input_types, output_count)
        self.texts = Texts()
        self.zero = self.texts.number("0")
        self.whole = Compilation(function, input_types, self.texts)
        self.kinds = output_kinds(self.whole)
        self._check_outputs()
        self.loop = source_of(self.whole)
        self.source = commented(phases(function) + storage(self.whole)) + self.loop
        self.columns = [fed_columns(self.whole, n) for n in range(len(input_types))]
        self.folded = np.zeros(0, np.int64)
        self.lengths = np.zeros(0, np.int64)
        key_types = [input_types[0].schema[function.keys[0]]] if function.keys else []
        self.keys = Interner(key_types)
        self.counted: Counter[str] = Counter()
        self._reset()

    def _check_outputs(self) -> None:
        for columns, kinds in zip(self.function.outputs, self.kinds, strict=True):
            for column, kind in zip(columns, kinds, strict=True):
                fixed = column.address not in self.whole.by_address
                is_nothing = fixed and self.whole.fixed(column.address) is None
                if _COLUMN_TYPES[kind] is not column.type.kind and not is_nothing:
                    raise NotCompiled(f"{address_text(column.address)} holds several kinds")

    def _reset(self) -> None:
        self.K = np.zeros((0, max(1, places(self.whole)[1])), np.int64)
        self.groups = np.array(group_places(self.whole), np.int64).reshape(-1, 2)
        self.wides = (
            np.zeros((1, LIMBS), np.int64), np.zeros(1, np.int64), np.array([1, 0, 0], np.int64)
        )  # fmt: skip
        self.pool = np.zeros(1024, np.int64)
        self.used = np.zeros(1, np.int64)

    # --- a round ---

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        which, place = _in_order(inputs)
        count = len(which)
        keys = self._keys(inputs, which, place)
        self._make_room(self.keys.bound if self.function.keys else 1)
        time = _merged([b.time for b in inputs], which, place)
        columns: list[Array] = []
        for number, batch in enumerate(inputs):
            for index in self.columns[number]:
                columns += self._column(batch.columns[index])
        self._fold_texts()
        outputs: list[Array] = []
        for kinds in self.kinds:
            outputs.append(np.empty(count, np.int64))
            for _ in kinds:
                outputs += [np.empty(count, np.float64), np.empty(count, np.int8)]
        sent = np.zeros(len(self.kinds), np.int64)
        ordered = tuple(frozen(a) for a in (which, place, keys, time))
        self._run(ordered, sent, columns, outputs)
        return self._batches(inputs, time, which, place, sent, outputs)

    def _run(
        self, ordered: tuple[Array, ...], sent: Array, columns: list[Array], outputs: list[Array]
    ) -> None:
        """Run the loop, making room wherever it asks for it."""
        run = compiled(self.loop)
        start, count = 0, len(ordered[0])
        while start < count:
            reached = run(
                start, *ordered, frozen(self.folded), frozen(self.lengths),
                self.K, self.K.view(np.float64), *self.wides,
                self.pool, self.pool.view(np.float64), self.used,
                sent, *map(frozen, columns), *outputs,
            )  # fmt: skip
            if reached < count:
                self._grow()
            start = reached

    def _keys(self, inputs: tuple[Batch, ...], which: Array, place: Array) -> Array:
        if not self.function.keys:
            return np.zeros(len(which), np.int64)
        ids = [
            self.keys.ids([batch.column(name)], len(batch))
            for batch, name in zip(inputs, self.function.keys, strict=True)
        ]
        return _merged(ids, which, place)

    def _column(self, vector: Vector) -> list[Array]:
        """A column as doubles and statuses."""
        if vector.is_text:
            return self._text_column(vector)
        statuses = np.zeros(len(vector), np.int8)
        values = vector.values.astype(np.float64)
        match vector.type.kind:
            case ColumnKind.TIME:
                values = vector.values / _MICROS_PER_DAY + _DAYS_TO_1970
                if self.function.uses_1904:
                    values -= OFFSET_1904
            case ColumnKind.DURATION:
                values = vector.values / _MICROS_PER_DAY
            case ColumnKind.NUMBER:
                strange = ~np.isfinite(values)
                if strange.any():
                    statuses[strange] = _NUM
                    values[strange] = 0.0
            case _:
                pass
        if vector.valid is not None:
            statuses[~vector.valid] = EMPTY
            values[~vector.valid] = 0.0
        return [values, statuses]

    def _text_column(self, vector: Vector) -> list[Array]:
        array = vector.values
        if not pa.types.is_dictionary(array.type):
            array = pc.dictionary_encode(array)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        numbers = np.array(
            [0 if t is None else self.texts.number(t) for t in array.dictionary.to_pylist()] or [0],
            np.float64,
        )
        indices = array.indices
        statuses = np.zeros(len(array), np.int8)
        if indices.null_count:
            missing = np.asarray(pc.is_null(indices).to_numpy(zero_copy_only=False))
            statuses[missing] = EMPTY
            places = np.asarray(indices.fill_null(0).to_numpy(zero_copy_only=False))
            values = numbers[places]
            values[missing] = 0.0
            return [values, statuses]
        return [numbers[np.asarray(indices.to_numpy(zero_copy_only=False))], statuses]

    def _fold_texts(self) -> None:
        """For every text the number of the first one that differs only in case."""
        known = len(self.folded)
        if known == len(self.texts.texts):
            return
        if known == 0:
            self.by_fold: dict[str, int] = {}
        new = [
            self.by_fold.setdefault(folded(text), known + n)
            for n, text in enumerate(self.texts.texts[known:])
        ]
        self.folded = np.concatenate([self.folded, np.array(new, np.int64)])
        lengths = [len(text.encode("utf-16-le")) // 2 for text in self.texts.texts[known:]]
        self.lengths = np.concatenate([self.lengths, np.array(lengths, np.int64)])

    # --- room ---

    def _make_room(self, keys: int) -> None:
        before = len(self.K)
        if keys <= before:
            return
        self.K = padded(self.K, max(keys, 2 * before))
        self.K[before:, 1 : 2 * self.whole.slots.count : 2] = ABSENT

    def _grow(self) -> None:
        """The loop has stopped for want of room: for windows, or for wide sums."""
        limbs, free, counters = self.wides
        sums = sum(g.sum_count for g in self.whole.groups)
        if len(free) - counters[TOP] + counters[FREE] < sums:
            size = 2 * len(free) + sums
            self.wides = (padded(limbs, size), padded(free, size), counters)
            return
        self.pool, self.used = self._compacted(self.K, 2 * self._live() + self._largest() + 1024)

    def _sizes(self) -> Array:
        """How many words each group of each key has in the pool."""
        return self.K[:, self.groups[:, 0] + CAPACITY] * self.groups[:, 1]

    def _live(self) -> int:
        return int(self._sizes().sum())

    def _largest(self) -> int:
        """All groups of a key may move to larger blocks at once."""
        return 2 * int(self._sizes().sum(axis=1).max(initial=0)) + 64 * int(self.groups[:, 1].sum())

    def _compacted(self, rows: Array, size: int) -> tuple[Array, Array]:
        pool, used = np.zeros(max(1, size), np.int64), np.zeros(1, np.int64)
        compact(rows, self.pool, pool, used, self.groups)
        return pool, used

    # --- what leaves ---

    def _batches(
        self,
        inputs: tuple[Batch, ...],
        time: Array,
        which: Array,
        place: Array,
        sent: Array,
        outputs: list[Array],
    ) -> tuple[Batch, ...]:
        is_ranked = all(b.rank is not None for b in inputs)
        ranks = _merged([b.rank for b in inputs], which, place) if is_ranked else None
        batches = []
        position = 0
        for number, type_ in enumerate(self.output_types):
            count = int(sent[number])
            rows = outputs[position][:count]
            position += 1
            vectors = []
            for column, kind in zip(self.function.outputs[number], self.kinds[number], strict=True):
                values, statuses = (a[:count] for a in outputs[position : position + 2])
                position += 2
                self._count_faults(column, kind, statuses)
                vectors.append(self._vector(column.type, kind, values, statuses))
            rank = None if ranks is None else ranks.take(rows)
            batches.append(Batch(type_, time.take(rows), tuple(vectors), None, rank))
        return tuple(batches)

    def _vector(self, type_: Type, kind: Kind, values: Array, statuses: Array) -> Vector:
        if type_.kind is ColumnKind.TEXT:
            codes = np.where(statuses == ZERO, self.zero, values).astype(np.int32)
            missing = (statuses != OK) & (statuses != ZERO)
            indices = pa.array(codes, mask=missing if missing.any() else None)
            return Vector(type_, pa.DictionaryArray.from_arrays(indices, self._dictionary()))
        valid = statuses == OK
        mask = None if valid.all() else valid
        if type_.kind is ColumnKind.BOOLEAN:
            return Vector(type_, values != 0.0, mask)
        return Vector(type_, values, mask)

    def _dictionary(self) -> Any:
        known = getattr(self, "_texts_array", None)
        if known is None or len(known) != len(self.texts.texts):
            known = self._texts_array = pa.array(self.texts.texts, pa.string())
        return known

    def _count_faults(self, column: Any, kind: Kind, statuses: Array) -> None:
        if not len(statuses) or int(statuses.max()) < ZERO:
            return
        place = address_text(column.address)
        for status, count in enumerate(np.bincount(statuses, minlength=1).tolist()):
            if count and status >= FIRST_ERROR:
                self.counted[f"{ERRORS[status - FIRST_ERROR]} in {place}"] += count
            elif count and status == ZERO and kind is Kind.BOOLEAN:
                self.counted[f"no {column.type} in {place}"] += count

    # --- state ---

    def snapshot(self) -> State:
        size = self.keys.bound if self.function.keys else len(self.K)
        rows = self.K[:size].copy()
        pool, used = self._compacted(rows, self._live())
        limbs, free, counters = self.wides
        return {
            "rows": rows, "limbs": limbs.copy(), "free": free.copy(),
            "counters": counters.copy(), "pool": pool, "used": used,
            "texts": list(self.texts.texts),
            "counted": dict(self.counted), **named("keys.", self.keys.snapshot()),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        self._reset()
        self.K = np.array(state["rows"], np.int64).reshape(-1, self.K.shape[1])
        self.wides = tuple(np.array(state[n], np.int64) for n in ("limbs", "free", "counters"))  # type: ignore[assignment]
        self.pool, self.used = (np.array(state[n], np.int64) for n in ("pool", "used"))
        self.texts.texts = list(state["texts"])
        self.texts.numbers = {t: n for n, t in enumerate(self.texts.texts)}
        self.folded = np.zeros(0, np.int64)
        self.lengths = np.zeros(0, np.int64)
        self.counted = Counter(state["counted"])
        self.keys.restore(part(state, "keys."))

    def faults(self) -> dict[str, int]:
        return dict(self.counted)


def _in_order(inputs: tuple[Batch, ...]) -> tuple[Array, Array]:
    if len(inputs) == 1:
        count = len(inputs[0])
        return np.zeros(count, np.int64), np.arange(count, dtype=np.int64)
    return merged_order(inputs)


def _merged(arrays: list[Any], which: Array, place: Array) -> Array:
    """Values of several inputs in their common order."""
    if len(arrays) == 1:
        return np.asarray(arrays[0])
    starts = np.cumsum([0, *(len(a) for a in arrays[:-1])])
    return np.concatenate(arrays).take(starts.take(which) + place)
