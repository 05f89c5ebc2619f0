"""What a script on columns emits, as batches, and the kernel that runs it.

Rows that columns cannot answer for are run one by one, and so is everything where a script has
something that columns cannot be asked; `explain` says what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.scripts import (
    Assign,
    Declare,
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
from millstream.kernels.records.between import DTYPES, TEXTS
from millstream.kernels.records.column import Column, NotOnColumns, TupleColumn
from millstream.kernels.records.columns import Columns
from millstream.kernels.records.slices import HeldTexts, Slices, in_order_of_rows, slices_of
from millstream.kernels.runtime.hashing import frozen
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.scripts.by_record import RecordFunction, parts_of
from millstream.kernels.scripts.column_run import ColumnsRun, Emitted, Recorded
from millstream.kernels.scripts.counting_loops import Counting
from millstream.kernels.scripts.generate import NotGenerated
from millstream.kernels.scripts.run import RunScriptKernel
from millstream.meaning.scripts import Machine
from millstream.plan.batch import Array, Batch, Vector, concat_batches, empty_batch
from millstream.values.records import types as records
from millstream.values.records.running import Runtime
from millstream.values.records.types import RecordType, TupleOf, resolved


def why_not(function: RunScript, inputs: tuple[QueueType, ...]) -> str | None:
    """Why all of a script is run record by record, or None; it is found out on no rows at all."""
    try:
        known(function, inputs)
    except NotOnColumns as reason:
        return f"{reason} needs single records"
    return None


def known(function: RunScript, inputs: tuple[QueueType, ...]) -> KnownBeforehand:
    """What is known of a script before its first record, or `NotOnColumns`."""
    if chances(function) or function.as_source:
        raise NotOnColumns("chance" if chances(function) else "telling emits as source")
    if any(t.file is not None and t.indexes for t in function.tables):
        raise NotOnColumns("a file with an index")
    if any(t.names_files for t in function.tables):
        raise NotOnColumns("a file for every emit")
    if len(function.sent) < len(function.told):
        raise NotOnColumns("printing from several tables")
    script = function.script
    functions = _functions(script)
    runtime = Runtime(script.timezone, script.folder)
    first = KnownBeforehand(
        function, Machine(script).statics, functions, reads_record(script), runtime, None,
        Counting(script),
    )  # fmt: skip
    run = _on_columns(first, empty_batch(inputs[0]))
    if not run.refused:
        return replace(first, parts={})
    if len(run.refused) == len(script.body):
        raise next(iter(run.refused.values()))
    try:
        parts = parts_of(script, function.told, run.refused, functions)
    except NotGenerated as reason:
        raise NotOnColumns(str(reason)) from None
    except (SyntaxError, RecursionError, MemoryError):
        raise NotOnColumns("so much") from None
    reasons = {number: _reason(part, run.refused) for number, part in parts.items()}
    return replace(first, parts=parts, reasons=reasons)


_SENT = (*DTYPES, *TEXTS)


def _can_be_sent(type_: RecordType) -> bool:
    kind = resolved(type_)
    if isinstance(kind, TupleOf):
        return not kind.is_proto and all(resolved(f.type) in _SENT for f in kind.fields)
    return kind in _SENT


@dataclass(frozen=True, slots=True)
class KnownBeforehand:
    """What is known of a script before its first record: functions, and what is static.

    `parts` are done record by record, for `reasons`; None while that is found out.
    """

    function: RunScript
    statics: Mapping[int, Any]
    functions: Mapping[int, Declare]
    reads_record: bool
    runtime: Runtime
    parts: Mapping[int, RecordFunction] | None
    counting: Counting
    reasons: Mapping[int, str] = field(default_factory=dict)

    def can_be_sent(self, number: int) -> bool:
        table = self.function.script.tables[number]
        types = (*(t for _, t in table.indexes), table.value, table.weight)
        return all(t is None or _can_be_sent(t) for t in types)


def _on_columns(known: KnownBeforehand, batch: Batch) -> ColumnsRun:
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
    run = ColumnsRun(known.functions, known.parts, known.can_be_sent, known.counting)
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
        known.runtime,
    )
    run.run(script.body, can_leave_out=not function.has_columns)
    return run


def _functions(script: Script) -> dict[int, Declare]:
    """Declarations of functions by their variables, of those that are never given another one."""
    nodes = list(nodes_in((script.statics, script.body)))
    assigned = {n.target.var.number for n in nodes if isinstance(n, Assign)}
    return {
        n.var.number: n
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
        return Column(TupleColumn(tuple(self._one(f.name or "", f.type) for f in wanted.fields)))

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
            return Column(HeldTexts(vector, self.odd))
        if vector.valid is not None:
            self.odd |= ~vector.valid
        unsigned = kind in (records.UINT, records.FINGERPRINT)
        return Column(vector.values.view(np.uint64) if unsigned else vector.values)


class ColumnsKernel(RunScriptKernel):
    """Mutable: as what it stands on, which gets the rows that columns cannot answer for."""

    def __init__(
        self, function: RunScript, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        super().__init__(function, input_types, output_count)
        self.known: KnownBeforehand | None = None
        try:
            self.known = known(function, input_types)
        except NotOnColumns as reason:
            #: What `explain` shows.
            self.source = f"# record by record, because {reason} needs single records"
        else:
            self.source = "# on whole columns; records that are not plain one by one"
            self.source += _told(self.known)
        if self.walked is not None:
            self.source += f"; each statement by statement, because {self.walked}"

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if self.known is None or not len(batch):
            return super().process(inputs, round_)
        try:
            run = _on_columns(self.known, batch)
        except NotOnColumns:
            return super().process(inputs, round_)
        careful = run.careful()
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
        for emitted in _runs(run.emits.get(number, [])):
            if isinstance(emitted, Recorded):
                sent.append(_recorded(emitted, type_, batch, careful))
                continue
            rows, places, columns = _together(emitted, len(batch))
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


def _runs(emits: list[Emitted | Recorded]) -> Iterator[list[Emitted] | Recorded]:
    """What was emitted, in order; what lies in columns alike is one."""
    waiting: list[Emitted] = []
    for emitted in emits:
        if isinstance(emitted, Emitted) and (not waiting or _are_alike(waiting[0], emitted)):
            waiting.append(emitted)
            continue
        if waiting:
            yield waiting
        waiting = [emitted] if isinstance(emitted, Emitted) else []
        if isinstance(emitted, Recorded):
            yield emitted
    if waiting:
        yield waiting


def _are_alike(one: Emitted, other: Emitted) -> bool:
    pairs = zip(one.columns, other.columns, strict=True)
    return all(
        type(a.values) is type(b.values) and isinstance(a.values, (Slices, np.ndarray))
        for a, b in pairs
    )


def _together(emits: list[Emitted], count: int) -> tuple[Array, Array, tuple[Column, ...]]:
    """Rows that emit, where in the columns their values lie, and the columns.

    What several statements or rounds of a loop have emitted is one, in the order of rows.
    """
    if len(emits) == 1:
        return emits[0].rows, emits[0].places, emits[0].columns
    every = [e.places for e in emits]
    columns = (_joined(every, c) for c in zip(*(e.columns for e in emits), strict=True))
    rows = np.concatenate([e.rows for e in emits])
    order = in_order_of_rows(rows, count)
    return rows[order], order, tuple(columns)


def _joined(every: list[Array], columns: tuple[Column, ...]) -> Column:
    """Some rows of several columns, one part after the other."""
    chosen = [(rows, c.values) for rows, c in zip(every, columns, strict=True)]
    texts = [(rows, v) for rows, v in chosen if isinstance(v, Slices)]
    if not texts:
        plain = [v[rows] for rows, v in chosen if isinstance(v, np.ndarray)]
        return Column(np.concatenate(plain))
    shifts: dict[int, int] = {}
    data: list[Array] = []
    size = 0
    for _, text in texts:
        if id(text.data) not in shifts:
            shifts[id(text.data)] = size
            data.append(text.data)
            size += len(text.data)
    starts = [text.starts[rows] + shifts[id(text.data)] for rows, text in texts]
    ends = [text.ends[rows] + shifts[id(text.data)] for rows, text in texts]
    whole = data[0] if len(data) == 1 else frozen(np.concatenate(data))
    return Column(Slices(whole, np.concatenate(starts), np.concatenate(ends)))


def _recorded(
    emitted: Recorded, type_: QueueType, batch: Batch, careful: Array
) -> tuple[Batch, Array]:
    """What was emitted record by record, of the rows that need no care."""
    made = Batch(type_, batch.time[emitted.rows], emitted.vectors)
    rows, good = emitted.rows, ~careful[emitted.rows]
    if not good.all():
        made, rows = made.take(np.flatnonzero(good)), rows[good]
    return _ranked(made, batch, rows), rows


def _reason(part: RecordFunction, refused: Mapping[int, NotOnColumns]) -> str:
    """The first reason for which statements are done record by record."""
    return next(str(refused[id(n)]) for n in nodes_in(part.statements) if id(n) in refused)


def _told(known: KnownBeforehand) -> str:
    """Which statements are done record by record, and why, for `explain`."""
    notes = []
    for number, part in (known.parts or {}).items():
        spans = (getattr(node, "span", None) for node in nodes_in(part.statements))
        where = next(span.place for span in spans if span is not None)
        notes.append(f"from {where} on record by record, because of {known.reasons[number]}")
    return "".join(f"; {note}" for note in notes)


def _ranked(made: Batch, batch: Batch, rows: Array) -> Batch:
    """What some rows of a batch have made, with the ranks of these rows."""
    return replace(made, rank=None if batch.rank is None else batch.rank[rows])


def _vector(type_: RecordType, column: Column, rows: Array | None) -> Vector:
    """What some rows send, or all of them."""
    values = column.values
    if isinstance(values, HeldTexts):
        vector: Vector = values.column
        return vector if rows is None else vector.take(rows)
    if isinstance(values, Slices):
        return Vector(queued_type(type_), values.arrow(rows))
    if isinstance(values, TupleColumn):
        return _tuples(type_, values, rows)
    assert isinstance(values, np.ndarray)
    chosen = values if rows is None else values[rows]
    if chosen.dtype == np.uint64:  # these travel by their bits
        chosen = chosen.view(np.int64)
    if chosen.dtype == np.float64:  # every zero, and whatever is no number, is one index
        chosen = np.where(np.isnan(chosen), np.nan, chosen + 0.0)
    return Vector(queued_type(type_), chosen)


def _tuples(type_: RecordType, parts: TupleColumn, rows: Array | None) -> Vector:
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
