"""The kernel of a compiled sheet."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.calculus.sheets import OutputColumn, Previous, Sheet, address_text
from millstream.calculus.types import Kind as ColumnKind
from millstream.calculus.types import QueueType
from millstream.kernels.loop.cache import compiled
from millstream.kernels.loop.rows_arguments import steady
from millstream.kernels.runtime.hashing import FREE, TOP, frozen, padded
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Composed, Round, State
from millstream.kernels.sheets.blocks import block_size
from millstream.kernels.sheets.calls import Calls
from millstream.kernels.sheets.columns import (
    KeyIds,
    Zeros,
    encoded,
    in_order,
    merged,
    number_column,
    rising,
    shown_column,
)
from millstream.kernels.sheets.generated import generated
from millstream.kernels.sheets.operands import (
    ABSENT,
    BOOLEAN_HELD,
    ERROR_VALUES,
    FIRST_ERROR,
    OK,
    TEXT_HELD,
    ZERO,
    constant,
    held_constant,
)
from millstream.kernels.sheets.outside import ColumnBefore, columns_after, scalar_of
from millstream.kernels.sheets.source import (
    DONE,
    WANTS_CALLS,
    WANTS_KEYS,
    group_places,
    places,
)
from millstream.kernels.sheets.texts import TextNumbers
from millstream.kernels.sheets.tuples import firings, mark_texts
from millstream.kernels.windows.ring import CAPACITY, compact
from millstream.kernels.windows.sums import LIMBS
from millstream.meaning.sheet_values import from_cell
from millstream.plan.batch import Array, Batch, Vector, vector_of
from millstream.values.excel.kinds import Kind

#: Texts are swept when there are so many more than twice what was left of them before.
_SWEPT = 4096
_NOTHING = np.zeros(0, np.int64)
_DTYPES: dict[Kind, Any] = {
    Kind.NUMBER: np.float64, Kind.TEXT: np.int32, Kind.BOOLEAN: np.bool_, Kind.MIXED: np.float64,
}  # fmt: skip
#: What lies where a loop is given an address.
_GIVEN: dict[str, Any] = {
    "pointer_f": np.float64, "pointer_i": np.int64, "pointer_i32": np.int32, "pointer_s": np.int8,
    "pointer_b": np.bool_,
}  # fmt: skip
_NUMBERS = frozenset((ColumnKind.NUMBER, ColumnKind.INTEGER, ColumnKind.TIME, ColumnKind.DURATION))
#: The types of columns that what a cell holds can be as it is.
_TYPES: dict[Kind, frozenset[ColumnKind]] = {
    Kind.NUMBER: _NUMBERS, Kind.TEXT: frozenset((ColumnKind.TEXT,)), Kind.MIXED: frozenset(),
    Kind.BOOLEAN: frozenset((ColumnKind.BOOLEAN,)),
}  # fmt: skip
#: What the status of a value would be if there were other kinds beside it.
_HELD = {Kind.TEXT: TEXT_HELD, Kind.BOOLEAN: BOOLEAN_HELD}
#: The status of a text where there are texts.
_TEXTS = {Kind.TEXT: OK, Kind.MIXED: TEXT_HELD}


class CompiledSheetKernel(Composed):
    """Mutable: the cells, windows and texts of all keys as arrays."""

    def __init__(
        self, function: Sheet, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.function = function
        self.output_types = function.output_types(input_types, output_count)
        made = generated(function, input_types)
        split = made.split
        self.sent = split.sheet.outputs
        self.before = [
            [ColumnBefore(function, before, input_types[n]) for before in befores]
            for n, befores in enumerate(split.before)
        ]
        self.after = columns_after(function, split, made.kinds)
        self.input_types = split.input_types
        self.whole, self.kinds, self.columns = made.whole, made.kinds, made.columns
        self.loop, self.source, self.are_whole = made.loop, made.source, made.are_whole
        self.texts = TextNumbers(made.texts)
        self.zero = self.texts.texts.number("0")
        key_types = [input_types[0].schema[function.keys[0]]] if function.keys else []
        self.keys = Interner(key_types)
        self.key_ids = KeyIds(self.keys)
        self.parts = {"keys": self.keys, "texts": self.texts}
        self.zeros = Zeros()
        #: The statuses of what leaves, for each column; zero, except while a batch is made.
        self.statuses = [[Zeros() for _ in kinds] for kinds in self.kinds]
        self.counted: Counter[str] = Counter()
        self.calls: Calls | None = None
        if made.whole.called:
            self.calls = Calls(function, made.whole, self.texts, lambda: self.pool)
        self._reset()
        self.firsts = self._firsts()
        #: Texts that the sheet itself names; and how many there were after the last sweep.
        self.fixed_texts = self.kept_texts = self.texts.name_all(self.loop.source)

    def _reset(self) -> None:
        self.K = np.zeros((0, max(1, places(self.whole)[1])), np.int64)
        self.groups = np.array(group_places(self.whole), np.int64).reshape(-1, 2)
        self.wides = (
            np.zeros((1, LIMBS), np.int64), np.zeros(1, np.int64), np.array([1, 0, 0], np.int64)
        )  # fmt: skip
        self.pool = np.zeros(1024, np.int64)
        self.scratch = np.empty(0)
        self.used = np.zeros(1, np.int64)
        self.memory = self._memory()
        self.block = np.empty(block_size(self.whole))

    def _memory(self) -> tuple[Array, Array]:
        """The cells of a large sheet while a tuple is computed; constants stay."""
        if self.whole.memory is None:
            return np.zeros(0), np.zeros(0, np.int64)
        values, statuses = self.whole.memory.arrays()
        for address, value in self.whole.constants.items():
            operand = constant(value, self.texts.texts)
            place = self.whole.memory.place(address)
            values[place], statuses[place] = float(operand.value), int(operand.status)
        return values, statuses

    # --- a round ---

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        if len(inputs) > 1:
            inputs = tuple(rising(b) for b in inputs)
        self.more_statuses: dict[tuple[int, int], Array] = {}
        inputs = tuple(self._widened(n, b) for n, b in enumerate(inputs))
        is_ranked = all(b.rank is not None for b in inputs)
        columns, count = self._arriving(inputs, is_ranked=is_ranked)
        self._make_room(self.keys.bound if self.function.keys else 1)
        made = [self._empty(n, count, is_ranked=is_ranked) for n in range(len(self.kinds))]
        sent = np.zeros((2, len(self.kinds)), np.int64)
        self._run(sent.ravel(), columns, [a for arrays in made for a in arrays])
        batches = tuple(
            self._batch(n, inputs[0], int(count), made[n], is_odd=bool(statuses))
            for n, (count, statuses) in enumerate(sent.T.tolist())
        )
        if len(self.texts) > 2 * self.kept_texts + _SWEPT:
            self._sweep()
        return batches

    def _arriving(self, inputs: tuple[Batch, ...], *, is_ranked: bool) -> tuple[list[Array], int]:
        """What the loop reads of its inputs, and how many tuples or instants there are."""
        columns: list[Array] = []
        inputs = tuple(self._encoded(n, b) for n, b in enumerate(inputs))
        count = sum(len(b) for b in inputs)
        is_instant = self.function.fires_per_instant
        if is_instant:
            columns = self._instants(inputs, is_ranked=is_ranked)
            count = len(columns[1])
        for number, batch in enumerate(inputs):
            if not is_instant:
                columns += [batch.time, _NOTHING if batch.rank is None else batch.rank]
                if self.function.keys:
                    key = batch.column(self.function.keys[number])
                    columns += self.key_ids.at_first(number, key)
            for index in self.columns[number]:
                columns += self._column((number, index), batch.columns[index])
        return columns, count

    def _widened(self, number: int, batch: Batch) -> Batch:
        """With the columns that are made of others, and what their statuses are."""
        columns = list(batch.columns)
        for before in self.before[number]:
            vector, statuses = before.of(batch)
            self.more_statuses[number, len(columns)] = statuses
            columns.append(vector)
        return replace(batch, type=self.input_types[number], columns=tuple(columns))

    def _encoded(self, number: int, batch: Batch) -> Batch:
        """With codes for texts that are read: a column may be both the key and a cell."""
        wanted = {batch.schema.names[n] for n in self.columns[number]}
        wanted |= {self.function.keys[number]} if self.function.keys else set()
        columns = tuple(
            Vector(column.type, encoded(column)) if column.is_text and name in wanted else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        )
        return replace(batch, columns=columns)

    def _empty(self, number: int, count: int, *, is_ranked: bool) -> list[Array]:
        """The columns of an output, as the loop writes them."""
        arrays: list[Array] = []
        if not self.are_whole[number]:
            ranks = count if is_ranked else 0
            arrays = [np.empty(count, np.int64), np.empty(ranks, np.int64)]
        for kind, zeros in zip(self.kinds[number], self.statuses[number], strict=True):
            arrays += [np.empty(count, _DTYPES[kind]), zeros.first(count)]
        return arrays

    def _run(self, sent: Array, columns: list[Array], outputs: list[Array]) -> None:
        """Run the loop, making room wherever it asks for it."""
        run = compiled(self.loop.source)
        at = np.zeros(len(self.input_types), np.int64)
        read = list(columns)
        frame, alive = self._frame([*read, *outputs])
        calls = self.calls
        if calls is not None:
            calls.make_room()
        while (why := run(*self._arrays(frame, at, sent))) != DONE:
            if why == WANTS_CALLS:
                assert calls is not None
                calls.make_room()
            elif why == WANTS_KEYS:
                self._learn_keys(columns, read)
                frame, alive = self._frame([*read, *outputs])
            else:
                self._grow()
        del alive
        if calls is not None:
            calls.raise_failure()

    def _arrays(self, frame: Array, at: Array, sent: Array) -> list[Array]:
        """What the loop takes as arrays; all of them may be others when it is called again."""
        limbs, free, counters = self.wides
        memory, statuses = self.memory
        arrays = {
            "frame": frame, "at": at, "sent": sent,
            "folded": frozen(self.texts.folded), "lengths": frozen(self.texts.lengths),
            "plain": frozen(self.texts.plain),
            "K": self.K, "KF": self.K.view(np.float64),
            "limbs": limbs, "free": free, "counters": counters,
            "pool": self.pool, "numbers": self.pool.view(np.float64), "used": self.used,
            "T": memory, "U": statuses, "B": self.block, "scratch": self._scratch(),
        }  # fmt: skip
        if self.calls is not None:
            arrays |= zip(("memo", "sites", "asked"), self.calls.arrays, strict=True)
        return [arrays[name] for name in self.loop.parameters]

    def _scratch(self) -> Array:
        """Room for the numbers of any window: there are fewer than words in the pool."""
        if len(self.scratch) < len(self.pool):
            self.scratch = np.empty(len(self.pool))
        return self.scratch

    def _frame(self, columns: list[Array]) -> tuple[Array, list[Array]]:
        """The addresses of columns and their lengths; they must stay alive while it is used."""
        arrays = [steady(c, _GIVEN[g]) for c, g in zip(columns, self.loop.given, strict=True)]
        cells = [*(a.__array_interface__["data"][0] for a in arrays), *map(len, arrays)]
        return np.array(cells, np.int64), arrays

    def _learn_keys(self, columns: list[Array], read: list[Array]) -> None:
        """The loop has met an integer that is no key yet: all of the round become keys.

        The numbers of those that are known are known to stay.
        """
        lazy = [n + 1 for n, c in enumerate(columns[1:]) if c is self.key_ids.integers]
        learnt = [self.key_ids.learnt(columns[n - 1]) for n in lazy]
        for n, (codes, numbers) in zip(lazy, learnt, strict=True):
            # The table may have moved to a larger one since.
            table = numbers if numbers is self.key_ids.themselves else self.key_ids.integers
            read[n - 1], read[n] = codes, table
        self._make_room(self.keys.bound)

    def _instants(self, inputs: tuple[Batch, ...], *, is_ranked: bool) -> list[Array]:
        """Tuples of one instant and key together: places by input, keys, times and ranks."""
        which, place, time = in_order(inputs)
        keys = np.zeros(len(time), np.int64)
        if self.function.keys:
            keys_of = [b.column(k) for b, k in zip(inputs, self.function.keys, strict=True)]
            ids = [self.key_ids.of(n, key) for n, key in enumerate(keys_of)]
            keys = merged([numbers.take(codes) for codes, numbers in ids], which, place)
        ranks = merged([b.rank for b in inputs], which, place) if is_ranked else _NOTHING
        latest = np.full(self.keys.bound if self.function.keys else 1, -1, np.int64)
        places, first = np.empty(len(time) * len(inputs), np.int64), np.empty(len(time), np.int64)
        ordered = (frozen(which), frozen(place), frozen(keys), frozen(time))
        made = firings(*ordered, latest, len(inputs), places, first)
        first = first[:made]
        ranks = ranks.take(first) if is_ranked else ranks
        return [places[: made * len(inputs)], keys.take(first), time.take(first), ranks]

    def _column(self, place: tuple[int, int], vector: Vector) -> list[Array]:
        """A column as doubles and statuses, or as codes of texts."""
        if vector.is_text:
            arrays = self.texts.column(place, vector, self.zeros)
        else:
            arrays = number_column(vector, self.zeros, uses_1904=self.function.uses_1904)
        return [*arrays[:-1], self.more_statuses.get(place, arrays[-1])]

    # --- room ---

    def _make_room(self, keys: int) -> None:
        before = len(self.K)
        if keys <= before:
            return
        self.K = padded(self.K, max(keys, 2 * before))
        self.K[before:, 1 : 2 * self.whole.slots.count : 2] = ABSENT
        for slot, (value, status) in self.firsts.items():
            self.K.view(np.float64)[before:, 2 * slot] = value
            self.K[before:, 2 * slot + 1] = status

    def _firsts(self) -> dict[int, tuple[float, int]]:
        """What PRE gives at first is there from the start."""
        firsts = {}
        for address, slot in self.whole.slots.previous.items():
            rule = self.whole.by_address[address].rule
            assert isinstance(rule, Previous)
            kind = self.whole.kinds[address].kind
            first = held_constant(rule.initial, kind, self.texts.texts)
            if int(first.status) in (OK, TEXT_HELD, BOOLEAN_HELD):
                firsts[slot] = float(first.value), int(first.status)
        return firsts

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

    # --- texts that are no longer needed ---

    def _sweep(self) -> None:
        """Forget the texts that no cell and no window holds."""
        live = self.texts.pool.marks()
        live[: self.fixed_texts] = True
        slots, columns = self._text_places()
        floats = self.K.view(np.float64)
        for slot, status in slots:
            held = self.K[:, 2 * slot + 1] == status
            live[floats[held, 2 * slot].astype(np.int64)] = True
        for place, stride, column, status in columns:
            mark_texts(
                self.K, self.pool, self.pool.view(np.float64), place, stride, column, status, live
            )
        self.texts.sweep(live)
        self.kept_texts = len(self.texts)
        self._forget_after()

    def _forget_after(self) -> None:
        """Numbers of texts mean others from now on."""
        if self.calls is not None:
            self.calls.forget()
        for columns in self.after:
            for column in columns:
                column.forget()

    def _text_places(self) -> tuple[list[tuple[int, int]], list[tuple[int, int, int, int]]]:
        """Where texts are kept, and by which status: slots of cells, columns of windows."""
        whole = self.whole
        kept = {**whole.slots.cells, **whole.slots.previous}
        held = {a: _TEXTS[k.kind] for a, k in whole.kinds.items() if k.kind in _TEXTS}
        slots = [(slot, held[a]) for a, slot in kept.items() if a in held]
        columns = [
            (int(self.groups[group.number, 0]), group.stride, number, held[source])
            for group in whole.groups
            for number, source in enumerate(group.columns)
            if source in held
        ]
        return slots, columns

    # --- what leaves ---

    def _batch(
        self, number: int, first: Batch, count: int, made: list[Array], *, is_odd: bool
    ) -> Batch:
        """What leaves by an output, as the loop has written it; most often all of it is there."""
        if self.are_whole[number]:
            time, rank = first.time, first.rank
        else:
            time, rank = made[0][:count], made[1][:count] if made[1].size else None
            made = made[2:]
        values, statuses = ([a[:count] for a in some] for some in (made[::2], made[1::2]))
        vectors = {
            after.column: after.of(values, statuses, self.texts, self.counted)
            for after in self.after[number]
        }
        places = {c.address: n for n, c in enumerate(self.sent[number])}
        worst = [int(s.max(initial=OK)) if is_odd else OK for s in statuses]
        for column in self.function.outputs[number]:
            if column in vectors:
                continue
            n = places[column.address]
            kind = self.kinds[number][n]
            if column.type.kind not in _TYPES[kind]:
                vectors[column] = self._shown(column, kind, values[n], statuses[n])
                continue
            vectors[column] = self._vector(column, values[n], statuses[n] if worst[n] else None)
            if worst[n] >= ZERO:
                self._count_faults(column, kind, statuses[n])
        for codes, most in zip(statuses, worst, strict=True):
            if most:
                codes.fill(OK)
        shown = tuple(vectors[c] for c in self.function.outputs[number])
        return Batch(self.output_types[number], time, shown, None, rank)

    def _vector(self, column: OutputColumn, values: Array, statuses: Array | None) -> Vector:
        """A column of what was written; all of it is there if there are no statuses."""
        type_ = column.type
        if type_.kind is ColumnKind.TEXT:
            codes = values.astype(np.int32, copy=False)
            missing = None
            if statuses is not None:
                codes[statuses == ZERO] = self.zero
                missing = (statuses != OK) & (statuses != ZERO)
            return self.texts.vector(type_, codes, missing)
        valid = None if statuses is None else statuses == OK
        if type_.kind is ColumnKind.BOOLEAN:
            return Vector(type_, values.astype(np.bool_, copy=False), valid)
        vector = shown_column(type_, values, uses_1904=self.function.uses_1904)
        if vector.valid is None:
            return replace(vector, valid=valid)
        fits = vector.valid if valid is None else vector.valid | ~valid
        if not fits.all():
            unfit = len(fits) - int(np.count_nonzero(fits))
            self.counted[f"no {type_} in {address_text(column.address)}"] += unfit
        return replace(vector, valid=vector.valid if valid is None else vector.valid & valid)

    def _shown(self, column: OutputColumn, kind: Kind, values: Array, statuses: Array) -> Vector:
        """What may be of several kinds, or is shown as another than it is."""
        held = np.where(statuses == OK, np.int8(_HELD.get(kind, OK)), statuses)
        values = values.astype(np.float64)
        pairs = np.stack((values.view(np.int64), held.astype(np.int64)), axis=1)
        different, places = np.unique(pairs, axis=0, return_inverse=True)
        places = places.reshape(-1)
        counts = np.bincount(places, minlength=len(different)).tolist()
        cells = zip(different[:, 0].copy().view(np.float64).tolist(), different[:, 1].tolist(),
                    strict=True)  # fmt: skip
        shown = []
        for (value, status), count in zip(cells, counts, strict=True):
            faults: Counter[str] = Counter()
            scalar = scalar_of(value, status, self.texts)
            shown.append(from_cell(scalar, column, faults, uses_1904=self.function.uses_1904))
            for fault in faults:
                self.counted[fault] += count
        return vector_of(column.type, shown).take(places)

    def _count_faults(self, column: Any, kind: Kind, statuses: Array) -> None:
        place = address_text(column.address)
        for status, count in enumerate(np.bincount(statuses, minlength=1).tolist()):
            if count and status >= FIRST_ERROR:
                self.counted[f"{ERROR_VALUES[status - FIRST_ERROR]} in {place}"] += count
            elif count and status == ZERO and kind is Kind.BOOLEAN:
                self.counted[f"no {column.type} in {place}"] += count

    # --- state ---

    def snapshot(self) -> State:
        size = self.keys.bound if self.function.keys else len(self.K)
        rows = self.K[:size].copy()
        pool, used = self._compacted(rows, self._live())
        limbs, free, counters = self.wides
        return super().snapshot() | {
            "rows": rows, "limbs": limbs.copy(), "free": free.copy(),
            "counters": counters.copy(), "pool": pool, "used": used,
            "counted": dict(self.counted),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        self._reset()
        self.K = np.array(state["rows"], np.int64).reshape(-1, self.K.shape[1])
        self.wides = tuple(np.array(state[n], np.int64) for n in ("limbs", "free", "counters"))  # type: ignore[assignment]
        self.pool, self.used = (np.array(state[n], np.int64) for n in ("pool", "used"))
        super().restore(state)
        self._forget_after()
        self.kept_texts = len(self.texts)
        self.key_ids.forget()
        self.counted = Counter(state["counted"])

    def faults(self) -> dict[str, int]:
        return dict(self.counted)
