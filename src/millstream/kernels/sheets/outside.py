"""Cells that are computed outside of the loop of a sheet, once for each combination of values.

Streams repeat themselves: a symbol, a tariff, a state come with many tuples. So what formulas
give is kept by the number of the combination that it was made of, and most tuples only look
their number up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.calculus.sheets import Address, Computed, Fed, OutputColumn, Sheet, SheetCell
from millstream.calculus.types import BOOLEAN, INTEGER, NUMBER, TEXT, QueueType, Value
from millstream.calculus.types import Kind as ColumnKind
from millstream.kernels.sheets.columns import Zeros, number_column
from millstream.kernels.sheets.combinations import NOT_THERE, Combinations
from millstream.kernels.sheets.operands import (
    ABSENT,
    BOOLEAN_HELD,
    EMPTY,
    ERROR_VALUES,
    FIRST_ERROR,
    OK,
    TEXT_HELD,
    ZERO,
)
from millstream.kernels.sheets.split import TYPES, Before, Split
from millstream.kernels.sheets.texts import TextNumbers
from millstream.kernels.sheets.texts_made import (
    Column,
    Maker,
    Rows,
    TextsMade,
    as_column,
    made_texts,
)
from millstream.meaning.sheet_values import from_cell, to_cell
from millstream.plan.batch import Array, Batch, Vector, concat_vectors, vector_of
from millstream.values.excel.kinds import Kind
from millstream.values.excel.syntax import Call, Cell, Node, Range, children
from millstream.values.excel.values import ErrorValue, Scalar

#: Where more combinations are known, all are forgotten before the next batch.
_MOST = 1 << 17
#: A text is looked up, and not made anew, if it comes in as many rows as this.
_ROWS_OF_ONE = 16


class OutsideColumn(ABC):
    """Mutable: what a cell holds, with a row for each combination."""

    def __init__(self, column: OutputColumn, combinations: Combinations) -> None:
        self.column = column
        self.combinations = combinations
        self.forget()

    def forget(self) -> None:
        """Forget all combinations: they will be met again as new ones."""
        self.combinations.forget()
        self.vector = vector_of(self.column.type, [])

    def forget_many(self) -> None:
        if len(self.combinations.results) > _MOST:
            self.forget()

    def learn(self, combinations: Iterable[Sequence[Scalar]]) -> None:
        before = len(self.combinations.results)
        self.combinations.learn(combinations)
        results = self.combinations.results[before:]
        new = [self.plain(number, value) for number, value in enumerate(results, before)]
        if new:
            self.vector = concat_vectors([self.vector, vector_of(self.column.type, new)])

    @abstractmethod
    def plain(self, number: int, value: Scalar) -> Value:
        """A value as it stands in a column; null if it does not."""

    def spread(self, ids: Array) -> Vector:
        """A row for each number of a combination."""
        if not self.vector.is_text:
            return self.vector.take(ids)
        indices = pa.array(ids.astype(np.int32))
        words = pa.DictionaryArray.from_arrays(indices, self.vector.values)
        return Vector(self.vector.type, words)


class ColumnBefore(OutsideColumn):
    """Mutable: a column that an input gets, made of those that it has."""

    def __init__(self, sheet: Sheet, before: Before, type_: QueueType) -> None:
        self.is_1904 = sheet.uses_1904
        self.zeros = Zeros()
        self.fed = [(c.address, c.rule.column) for c in before.cells if isinstance(c.rule, Fed)]
        types = [type_.schema[column] for _, column in self.fed]
        made = before.made
        kinds = {a: _KINDS.get(type_.schema[c].kind, Kind.NUMBER) for a, c in self.fed}
        #: Texts that are made by columns.
        self.maker = TextsMade(before.cells, kinds, dict(sheet.constants)).maker(made.address)
        leaves = [address for address, _ in self.fed]
        super().__init__(made, Combinations(sheet, before.cells, made.address, leaves, types))

    def forget(self) -> None:
        super().forget()
        #: The status of each combination.
        self.statuses = bytearray()

    def of(self, batch: Batch) -> tuple[Vector, Array]:
        """The column, and the statuses of its values."""
        self.forget_many()
        vectors = [batch.column(name) for _, name in self.fed]
        if self.maker is not None and not _repeats(vectors):
            return self._made(self.maker, vectors)
        return self._kept(vectors, len(batch))

    def _made(self, maker: Maker, vectors: Sequence[Vector]) -> tuple[Vector, Array]:
        columns: dict[Address, Column] = {}
        count = len(vectors[0])
        left_out = np.zeros(count, np.bool_)
        for (address, _), vector in zip(self.fed, vectors, strict=True):
            if vector.is_text:
                columns[address] = as_column(pc.fill_null(vector.values.cast(pa.string()), ""))
                left_out |= ~vector.mask()
            else:
                numbers, odd = number_column(vector, self.zeros, uses_1904=self.is_1904)
                columns[address] = as_column(np.asarray(numbers, np.float64))
                left_out |= odd != OK
        statuses = np.zeros(count, np.int8)

        def rest(places: Array) -> Vector:
            column, statuses[places] = self._kept([v.take(places) for v in vectors], len(places))
            return column

        return made_column(maker, Rows(columns, left_out), rest), statuses

    def _kept(self, vectors: Sequence[Vector], count: int) -> tuple[Vector, Array]:
        ids, new = self.combinations.numbers(vectors, count)
        self.learn(self._given(vectors, new))
        if self.statuses.count(OK) == len(self.statuses):  # as nearly always
            return self.spread(ids), self.zeros.first(count)
        return self.spread(ids), np.array(self.statuses, np.int8).take(ids)

    def _given(self, vectors: Sequence[Vector], rows: Array) -> Iterable[Sequence[Scalar]]:
        columns = [_cells_of(vector.take(rows), uses_1904=self.is_1904) for vector in vectors]
        return zip(*columns, strict=True)

    def plain(self, number: int, value: Scalar) -> Value:
        status = _status(value)
        self.statuses.append(status)
        return _SHOWN[self.column.type.kind] if status else value


def _repeats(vectors: Sequence[Vector]) -> bool:
    """Is there one column of a few texts, each in many rows? Then each is worked out once."""
    if len(vectors) != 1 or not isinstance(vectors[0].values, pa.DictionaryArray):
        return False
    values: Any = vectors[0].values
    return _ROWS_OF_ONE * len(values.dictionary) < len(values)


class ColumnAfter(OutsideColumn):
    """Mutable: a column of an output, made of what the loop has sent."""

    def __init__(
        self, sheet: Sheet, cells: Sequence[SheetCell], column: OutputColumn,
        sent: Mapping[int, OutputColumn],
    ) -> None:  # fmt: skip
        self.is_1904 = sheet.uses_1904
        #: The places of what it is made of, among all that is sent.
        self.places = tuple(sent)
        self.sent = tuple(sent.values())
        self.guards = _guards(cells, column, self.sent)
        leaves = tuple(SheetCell(c.address, Fed(0, c.name)) for c in self.sent)
        kinds = {c.address: _KINDS.get(c.type.kind, Kind.NUMBER) for c in self.sent}
        #: Texts that are made by columns.
        self.maker = TextsMade(cells, kinds, dict(sheet.constants)).maker(column.address)
        types = [t for c in self.sent for t in (_KEPT_AS[c.type.kind], INTEGER)]
        addresses = [c.address for c in self.sent]
        super().__init__(
            column, Combinations(sheet, (*leaves, *cells), column.address, addresses, types)
        )

    def forget(self) -> None:
        super().forget()
        #: What went wrong with each combination, if something did.
        self.faults: dict[int, str] = {}

    def of(
        self, all_values: Sequence[Array], all_statuses: Sequence[Array], texts: TextNumbers,
        counted: Counter[str],
    ) -> Vector:  # fmt: skip
        """The column for what was sent; texts are their numbers."""
        self.forget_many()
        values = [all_values[n] for n in self.places]
        given = [all_statuses[n] for n in self.places]
        statuses = self._looked_at(values, given)
        if self.maker is None:
            return self._kept(values, statuses, texts, counted)
        columns: dict[Address, Column] = {}
        left_out = np.zeros(len(values[0]), np.bool_)
        for column, some, raw, codes in zip(self.sent, values, given, statuses, strict=True):
            is_passed = (codes == ABSENT) & (raw != ABSENT)
            left_out |= (raw != OK) & ~is_passed
            plain = np.where(raw == OK, some, some.dtype.type(0)) if raw.any() else some
            is_text = column.type == TEXT
            columns[column.address] = texts.gathered(plain) if is_text else as_column(plain)

        def rest(places: Array) -> Vector:
            some, codes = ([a.take(places) for a in arrays] for arrays in (values, statuses))
            return self._kept(some, codes, texts, counted)

        return made_column(self.maker, Rows(columns, left_out), rest)

    def _kept(
        self, values: Sequence[Array], statuses: Sequence[Array], texts: TextNumbers,
        counted: Counter[str],
    ) -> Vector:  # fmt: skip
        """By combinations."""
        vectors = []
        for column, some, codes in zip(self.sent, values, statuses, strict=True):
            kept = _KEPT_AS[column.type.kind]
            # Under a status there may be anything.
            is_held = (codes == OK) | (codes == TEXT_HELD) | (codes == BOOLEAN_HELD)
            plain = np.where(is_held, some, some.dtype.type(0)) if codes.any() else some
            vectors += [
                Vector(kept, plain.astype(np.int64) if kept is INTEGER else plain),
                Vector(INTEGER, codes.astype(np.int64)),
            ]
        ids, new = self.combinations.numbers(vectors, len(values[0]))
        self.learn(self._given(values, statuses, new, texts))
        if self.faults:
            counts = np.bincount(ids, minlength=len(self.combinations.results))
            for number, fault in self.faults.items():
                if counts[number]:
                    counted[fault] += int(counts[number])
        return self.spread(ids)

    def _looked_at(self, values: Sequence[Array], statuses: Sequence[Array]) -> list[Array]:
        """Statuses, which say that there is nothing where nothing is looked at.

        So rows that differ only in what a condition makes them pass over are alike.
        """
        looked_at = list(statuses)
        for number, conditions in self.guards.items():
            for condition, wanted in conditions:
                passed = (statuses[condition] == OK) & (values[condition] != wanted)
                looked_at[number] = np.where(passed, np.int8(ABSENT), looked_at[number])
        return looked_at

    def _given(
        self, values: Sequence[Array], statuses: Sequence[Array], rows: Array, texts: TextNumbers
    ) -> Iterable[Sequence[Scalar]]:
        columns = []
        for column, some, codes in zip(self.sent, values, statuses, strict=True):
            plain: list[Any] = some.take(rows).tolist()
            if column.type == TEXT:
                plain = texts.pool.gathered(some.take(rows).astype(np.int64)).to_pylist()
            if codes.any():
                plain = [
                    NOT_THERE if status == ABSENT else scalar_of(value, status, texts)
                    for value, status in zip(plain, codes.take(rows).tolist(), strict=True)
                ]
            columns.append(plain)
        return zip(*columns, strict=True)

    def plain(self, number: int, value: Scalar) -> Value:
        faults: Counter[str] = Counter()
        shown = from_cell(value, self.column, faults, uses_1904=self.is_1904)
        for fault in faults:
            self.faults[number] = fault
        return shown


def made_column(maker: Maker, rows: Rows, rest: Callable[[Array], Vector]) -> Vector:
    """Texts that are made by columns; what is left out is computed by `rest`."""
    texts = made_texts(maker, rows)
    places = np.flatnonzero(rows.left_out)
    if not len(places):
        return Vector(TEXT, texts)
    others = rest(places).values
    if pa.types.is_dictionary(others.type):
        others = others.cast(pa.string())
    order = np.arange(len(texts))
    order[places] = len(texts) + np.arange(len(places))
    return Vector(TEXT, pa.concat_arrays([texts, others]).take(pa.array(order)))


#: A boolean by its place among what is sent, and what it must be.
Condition = tuple[int, bool]


def _guards(
    cells: Sequence[SheetCell], column: OutputColumn, sent: Sequence[OutputColumn]
) -> dict[int, frozenset[Condition]]:
    """For what is sent, the conditions under which alone it is looked at, where it has some."""
    formulas = {c.address: c.rule.formula for c in cells
                if isinstance(c.rule, Computed) and not c.rule.is_array}  # fmt: skip
    places = {c.address: n for n, c in enumerate(sent)}
    guards: dict[int, frozenset[Condition]] = {}
    seen: set[tuple[Address, frozenset[Condition]]] = set()

    def see(address: Address, under: frozenset[Condition]) -> None:
        if (address, under) in seen:
            return
        seen.add((address, under))
        if address in places:
            place = places[address]
            guards[place] = guards.get(place, under) & under
        elif address in formulas:
            walk(formulas[address], under)

    def walk(node: Node, under: frozenset[Condition]) -> None:
        match node:
            case Call("IF", (Cell(sheet, row, column), *branches)) if (
                place := places.get((sheet, row, column))
            ) is not None and sent[place].type == BOOLEAN:
                see((sheet, row, column), under)
                for branch, wanted in zip(branches, (True, False), strict=False):
                    walk(branch, under | {(place, wanted)})
                return
            case Cell(sheet, row, column):
                see((sheet, row, column), under)
            case Range(first, last):
                for address in (*places, *formulas):
                    sheet, row, column = address
                    if (sheet == first.sheet and first.row <= row <= last.row
                            and first.column <= column <= last.column):  # fmt: skip
                        see(address, under)
        for child in children(node):
            walk(child, under)

    see(column.address, frozenset())
    if len(formulas) < len(cells):
        return {}
    return {place: conditions for place, conditions in guards.items() if conditions}


def columns_after(
    sheet: Sheet, split: Split, kinds: Sequence[Sequence[Kind]]
) -> list[list[ColumnAfter]]:
    """For each output, its columns that are made after the loop.

    `kinds` says what the loop holds of what it sends, whatever an output shows it as.
    """
    after = {c.address: c for c in split.after}
    sent = [
        tuple(
            replace(c, type=TYPES.get(kind, c.type)) for c, kind in zip(columns, held, strict=True)
        )
        for columns, held in zip(split.sheet.outputs, kinds, strict=True)
    ]
    return [
        [_column_after(sheet, split, c, there) for c in columns if c.address in after]
        for columns, there in zip(sheet.outputs, sent, strict=True)
    ]


def _column_after(
    sheet: Sheet, split: Split, column: OutputColumn, sent: tuple[OutputColumn, ...]
) -> ColumnAfter:
    wanted = {column.address}
    for cell in reversed(split.after):
        if cell.address in wanted:
            wanted.update(cell.refers_to)
    cells = [c for c in split.after if c.address in wanted]
    leaves = {n: c for n, c in enumerate(sent) if c.address in wanted}
    return ColumnAfter(sheet, cells, column, leaves)


_KINDS = {ColumnKind.TEXT: Kind.TEXT, ColumnKind.BOOLEAN: Kind.BOOLEAN}
#: What stands in a column where a status says that there is something else.
_SHOWN: dict[ColumnKind, Value] = {
    ColumnKind.NUMBER: 0.0, ColumnKind.BOOLEAN: False, ColumnKind.TEXT: "",
}  # fmt: skip
_KEPT_AS = {
    ColumnKind.NUMBER: NUMBER, ColumnKind.BOOLEAN: BOOLEAN, ColumnKind.TEXT: INTEGER,
}  # fmt: skip


def _cells_of(vector: Vector, *, uses_1904: bool) -> list[Scalar]:
    """The values of a column as cells hold them."""
    values = vector.to_list()
    kind = vector.type.kind
    if kind is ColumnKind.TEXT or (kind is ColumnKind.NUMBER and np.isfinite(vector.values).all()):
        return values
    return [to_cell(value, vector.type, uses_1904=uses_1904) for value in values]


def _status(value: Scalar) -> int:
    if value is None:
        return EMPTY
    return FIRST_ERROR + ERROR_VALUES.index(value) if type(value) is ErrorValue else OK


def scalar_of(value: Any, status: int, texts: TextNumbers) -> Scalar:
    """A value of the loop, as a cell holds it."""
    if status == TEXT_HELD:
        return texts.text(int(value))
    if status == BOOLEAN_HELD:
        return bool(value)
    if status >= FIRST_ERROR:
        return ERROR_VALUES[status - FIRST_ERROR]
    if status in (ABSENT, EMPTY):
        return None
    held: Scalar = 0.0 if status == ZERO else value
    return held
