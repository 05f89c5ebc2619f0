"""What a script on columns emits, as batches, and the kernel that runs it.

Rows that columns cannot answer for are run one by one, and so is everything where a script has
something that columns cannot be asked; `explain` says what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.scripts import (
    Assign,
    Declare,
    Function,
    Get,
    Lambda,
    Script,
    nodes_in,
)
from millstream.calculus.tables import (
    RunScript,
    chances,
    emitted_schema,
    from_queue,
    queued_type,
    to_queue,
)
from millstream.calculus.types import QueueType
from millstream.kernels.records.column import Column, NotOnColumns, Parts
from millstream.kernels.records.columns import Columns
from millstream.kernels.records.slices import Held, Slices, in_order_of_rows, slices_of
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.scripts.column_run import ColumnsRun, Emitted
from millstream.kernels.scripts.run import RunScriptKernel, why_walked
from millstream.meaning.scripts import Machine
from millstream.plan.batch import Array, Batch, Vector, concat_batches, empty_batch
from millstream.values.records import types as records
from millstream.values.records.types import RecordType, TupleOf, resolved


def why_not(function: RunScript, inputs: tuple[QueueType, ...]) -> str | None:
    """What of a script columns cannot be asked, or None; it is found out on no rows at all."""
    try:
        if chances(function) or function.as_source:
            raise NotOnColumns("chance" if chances(function) else "telling emits as source")
        if any(t.file is not None and t.indexes for t in function.tables):
            raise NotOnColumns("a file with an index")
        if any(t.names_files for t in function.tables):
            raise NotOnColumns("a file for every emit")
        if len(function.sent) < len(function.told):
            raise NotOnColumns("printing from several tables")
        for table in function.tables:
            for type_ in (*(t for _, t in table.indexes), table.value, table.weight):
                if type_ is not None and not _can_be_sent(type_):
                    raise NotOnColumns(f"an emit of {type_}")
        _on_columns(_Known.of(function), empty_batch(inputs[0]))
    except NotOnColumns as reason:
        return f"{reason} needs single records"
    return None


_SENT = (records.INT, records.FLOAT, records.BOOL, records.TIME, records.STRING, records.BYTES)


def _can_be_sent(type_: RecordType) -> bool:
    kind = resolved(type_)
    if isinstance(kind, TupleOf):
        return not kind.is_proto and all(resolved(f.type) in _SENT for f in kind.fields)
    return kind in _SENT


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a script before its first record: functions, and what is static."""

    function: RunScript
    statics: Mapping[int, Any]
    functions: Mapping[int, Function]
    reads_record: bool

    @staticmethod
    def of(function: RunScript) -> _Known:
        script = function.script
        statics = Machine(script).statics
        return _Known(function, statics, _functions(script), reads_record(script))


def _on_columns(known: _Known, batch: Batch) -> ColumnsRun:
    function = known.function
    script = function.script
    count = len(batch)
    odd = np.zeros(count, np.bool_)
    if function.has_columns or not batch.columns:
        texts = Slices(np.zeros(1, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64))
        if known.reads_record:
            raise NotOnColumns("a row as a whole")
    else:
        texts, odd = slices_of(batch.columns[0].values)
    rows = _Rows(batch, odd)
    run = ColumnsRun(known.functions)
    run.columns = Columns(
        count,
        texts,
        rows.column,
        known.statics,
        script.record.number,
        odd,
        ~odd,
        run.call,
        script.timezone,
    )
    run.body(script.body)
    return run


def _functions(script: Script) -> dict[int, Function]:
    """Functions by their variables, of those that are never given another one."""
    nodes = list(nodes_in((script.statics, script.body)))
    assigned = {n.target.var.number for n in nodes if isinstance(n, Assign)}
    return {
        n.var.number: n.value.function
        for n in nodes
        if isinstance(n, Declare) and isinstance(n.value, Lambda) and n.var.number not in assigned
    }


def reads_record(script: Script) -> bool:
    """Whether a script looks at its record other than by the names of columns."""
    nodes = nodes_in((script.statics, script.body))
    return any(isinstance(n, Get) and n.var == script.record for n in nodes)


class _Rows:
    """Rows as tuples, by the names of their columns."""

    def __init__(self, batch: Batch, odd: Array) -> None:
        self.batch = batch
        self.odd = odd

    def column(self, type_: RecordType) -> Column:
        wanted = resolved(type_)
        assert isinstance(wanted, TupleOf)
        return Column(Parts(tuple(self._one(f.name or "", f.type) for f in wanted.fields)))

    def _one(self, name: str, type_: RecordType) -> Column:
        if name not in self.batch.schema.names:
            raise NotOnColumns(f"the column {name}, which is not there")
        vector = self.batch.column(name)
        kind = resolved(type_)
        if vector.type != queued_type(kind) or kind == records.BYTES:
            raise NotOnColumns(f"the column {name} as {kind}")
        if vector.is_text:
            if vector.values.null_count:
                self.odd |= ~vector.mask()
            return Column(Held(vector, self.odd))
        if vector.valid is not None:
            self.odd |= ~vector.valid
        return Column(vector.values)


class ColumnsKernel(RunScriptKernel):
    """Mutable: as what it stands on, which gets the rows that columns cannot answer for."""

    def __init__(
        self, function: RunScript, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        super().__init__(function, input_types, output_count)
        self.known: _Known | None = None
        reason = why_not(function, input_types)
        walked = why_walked(function, input_types[0].schema.names)
        #: What `explain` shows.
        self.source = "# on whole columns; records that are not plain one by one"
        if reason is None:
            self.known = _Known.of(function)
        else:
            self.source = f"# record by record, because {reason}"
        if walked is not None:
            self.source += f"; each statement by statement, because {walked}"

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if self.known is None or not len(batch):
            return super().process(inputs, round_)
        try:
            run = _on_columns(self.known, batch)
        except NotOnColumns:
            return super().process(inputs, round_)
        careful = run.columns.careful
        parts = [self._sent(run, number, batch, careful) for number in self.function.told]
        if careful.any():
            rows = np.flatnonzero(careful)
            # Each row by its number, which tells where what it emits belongs.
            odd = replace(batch.take(rows), rank=rows)
            for part, made in zip(parts, super().process((odd,), round_), strict=True):
                assert made.rank is not None
                part.append((_ranked(made, batch, made.rank), made.rank))
        return tuple(_in_order(p, t) for p, t in zip(parts, self.types, strict=True))

    def _sent(
        self, run: ColumnsRun, number: int, batch: Batch, careful: Array
    ) -> list[tuple[Batch, Array]]:
        """What was emitted to a table, with the rows of the input it comes of."""
        table = self.function.script.tables[number]
        type_ = QueueType(emitted_schema(table))
        types = [*(t for _, t in table.indexes), table.value, table.weight or records.INT]
        sent = []
        is_careful = bool(careful.any())
        for rows, places, columns in _together(run.emits.get(number, []), len(batch)):
            kept, at = rows, places
            if is_careful:
                good = ~careful[rows]
                kept, at = rows[good], places[good]
            # Mostly all rows emit: then their columns are sent as they are.
            is_all = len(kept) == len(batch) and places is rows
            chosen = None if is_all else at
            vectors = tuple(_vector(t, c, chosen) for t, c in zip(types, columns, strict=False))
            made = Batch(type_, batch.time if is_all else batch.time[kept], vectors)
            sent.append((_ranked(made, batch, kept), kept))
        return sent


def _together(
    emits: list[Emitted], count: int
) -> Iterator[tuple[Array, Array, tuple[Column, ...]]]:
    """Rows that emit, where in the columns their values lie, and the columns.

    What several statements or rounds of a loop have emitted is one, in the order of rows, where
    its columns are alike.
    """
    columns = _alike(emits) if len(emits) > 1 else None
    if columns is None:
        for rows, sent in emits:
            yield rows, rows, sent
        return
    rows = np.concatenate([rows for rows, _ in emits])
    order = in_order_of_rows(rows, count)
    yield rows[order], order, columns


def _alike(emits: list[Emitted]) -> tuple[Column, ...] | None:
    """Columns of what was emitted, one part after the other; None if texts lie apart."""
    joined: list[Column] = []
    for parts in zip(*(sent for _, sent in emits), strict=True):
        chosen = [(rows, c.values) for (rows, _), c in zip(emits, parts, strict=True)]
        texts = [(rows, v) for rows, v in chosen if isinstance(v, Slices)]
        plain = [v[rows] for rows, v in chosen if isinstance(v, np.ndarray)]
        if len(plain) == len(chosen):
            joined.append(Column(np.concatenate(plain)))
        elif len(texts) == len(chosen) and all(v.data is texts[0][1].data for _, v in texts):
            starts = np.concatenate([v.starts[rows] for rows, v in texts])
            ends = np.concatenate([v.ends[rows] for rows, v in texts])
            joined.append(Column(Slices(texts[0][1].data, starts, ends)))
        else:
            return None
    return tuple(joined)


def _ranked(made: Batch, batch: Batch, rows: Array) -> Batch:
    """What some rows of a batch have made, with the ranks of these rows."""
    return replace(made, rank=None if batch.rank is None else batch.rank[rows])


def _vector(type_: RecordType, column: Column, rows: Array | None) -> Vector:
    """What some rows send, or all of them."""
    values = column.values
    if isinstance(values, Held):
        vector: Vector = values.column
        return vector if rows is None else vector.take(rows)
    if isinstance(values, Slices):
        return Vector(queued_type(type_), values.arrow(rows))
    if isinstance(values, Parts):
        return _tuples(type_, values, rows)
    assert isinstance(values, np.ndarray)
    chosen = values if rows is None else values[rows]
    if chosen.dtype == np.float64:  # every zero, and whatever is no number, is one index
        chosen = np.where(np.isnan(chosen), np.nan, chosen + 0.0)
    return Vector(queued_type(type_), chosen)


def _tuples(type_: RecordType, parts: Parts, rows: Array | None) -> Vector:
    """Tuples travel as texts; each different one is made into a text once."""
    kind = resolved(type_)
    assert isinstance(kind, TupleOf)
    pairs = zip(kind.fields, parts.columns, strict=True)
    vectors = [_vector(f.type, c, rows) for f, c in pairs]
    interner = Interner([v.type for v in vectors])
    ids = interner.ids(vectors, len(vectors[0]))
    distinct = interner.vectors(np.arange(interner.bound))
    back = [from_queue(f.type) for f in kind.fields]
    send = to_queue(type_)
    texts = [
        send(tuple(of(v) for of, v in zip(back, row, strict=True)))
        for row in zip(*(v.to_list() for v in distinct), strict=True)
    ]
    encoded = pa.DictionaryArray.from_arrays(
        pa.array(ids, pa.int32()), pa.array(texts, pa.string())
    )
    return Vector(queued_type(type_), encoded)


def _in_order(parts: list[tuple[Batch, Array]], type_: QueueType) -> Batch:
    """All that was emitted to a table, in the order of the rows that emitted it."""
    known = [(b, rows) for b, rows in parts if len(rows)]
    if not known:
        return empty_batch(type_)
    if len(known) == 1:
        return known[0][0]
    together = concat_batches([b for b, _ in known], type_)
    return together.take(np.argsort(np.concatenate([rows for _, rows in known]), kind="stable"))
