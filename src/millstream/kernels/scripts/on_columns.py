"""Running scripts on columns of records, statement by statement.

A statement is done for all rows at once that come to it. Rows in which something is not plain are
run again from the beginning, by the meaning of the script, and so is everything where a script has
something that columns cannot be asked; `explain` says what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.calculus.scripts import (
    Apply,
    Assert,
    Assign,
    Block,
    Choose,
    Declare,
    Do,
    Emit,
    Function,
    Get,
    If,
    Lambda,
    Leave,
    Loop,
    Quantifier,
    Return,
    Scope,
    Script,
    Statement,
    When,
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
from millstream.kernels.records.columns import Column, Columns, NotOnColumns, Parts, Pieces, either
from millstream.kernels.records.slices import Slices, slices_of
from millstream.kernels.runtime.interning import Interner
from millstream.kernels.runtime.kernel import Round
from millstream.kernels.scripts.run import RunScriptKernel, why_walked
from millstream.meaning.scripts import Machine
from millstream.plan.batch import Array, Batch, Vector, concat_batches, empty_batch
from millstream.values.records import types as records
from millstream.values.records.types import MapOf, RecordType, TupleOf, resolved

#: The rows that emit to a table, and the columns of what they emit.
_Emitted = tuple[Array, tuple[Column, ...]]
#: After so many rounds of a loop the rows that are still in it are run one by one; after fewer
#: already, if they are less than one in so many.
_MOST_ROUNDS, _FEW_ROUNDS, _FEW = 512, 32, 32


@dataclass(slots=True)
class _Around:
    """Mutable: a loop that is under way, and the rows that have left it or this round of it."""

    ended: Array
    skipped: Array


class _Run:
    """Mutable: one batch on its way through a script."""

    def __init__(self, functions: Mapping[int, Function]) -> None:
        self.columns: Columns
        self.functions = functions
        self.emits: dict[int, list[_Emitted]] = {}
        #: Of each call that is under way: the function, and what was returned in which rows.
        self.calls: list[tuple[int, list[tuple[Array, Column]]]] = []
        self.around: list[_Around] = []

    def body(self, block: Block) -> None:
        for statement in block:
            self.do(statement)

    def do(self, statement: Statement) -> None:
        columns = self.columns
        match statement:
            case Declare(_, Lambda()):
                pass  # it is called by the number of its variable
            case Declare(var, value):
                if value is None:
                    columns.variables.pop(var.number, None)
                else:
                    self.assign(var.number, columns.value(value))
            case Assign(target, value) if not target.path:
                self.assign(target.var.number, self.certain(columns.value(value)))
            case Assert(condition, _):
                holds = self.certain(columns.value(condition)).values
                assert isinstance(holds, np.ndarray)
                columns.look_closer(~holds)
            case Do(value):
                self.certain(columns.value(value))
            case If(condition, then, otherwise):
                self.branch(columns.value(condition), then, otherwise)
            case Choose(_, value, cases, otherwise):
                self.choose(columns.value(value), cases, otherwise)
            case Emit():
                self.emit(statement)
            case Loop():
                self.loop(statement)
            case When((Quantifier(word) as quantifier,)) if word != "all":
                self.when(statement, quantifier)
            case Leave(word):
                if not self.around:
                    raise NotOnColumns(f"`{word}` here")
                around = self.around[-1]
                left = around.ended if word == "break" else around.skipped
                left |= columns.active
                columns.active = np.zeros(columns.count, np.bool_)
            case Scope(inner):
                self.body(inner)
            case Return(value):
                if value is not None:
                    self.calls[-1][1].append((columns.active, columns.value(value)))
                columns.active = np.zeros(columns.count, np.bool_)
            case _:
                raise NotOnColumns(f"`{type(statement).__name__.lower()}`")

    def call(self, node: Apply) -> Column:
        """A function is done for all rows at once, as if it stood there."""
        columns = self.columns
        target = node.function.var.number if isinstance(node.function, Get) else -1
        function = self.functions.get(target)
        if function is None or any(number == target for number, _ in self.calls):
            raise NotOnColumns("recursion" if function else "a function that is chosen")
        given = [columns.value(argument) for argument in node.arguments]
        bad, before = either(*(g.bad for g in given)), columns.active
        if bad is not None:
            columns.active = before & ~bad
        for parameter, column in zip(function.parameters, given, strict=True):
            columns.variables[parameter.number] = column
        self.calls.append((target, []))
        around, self.around = self.around, []
        self.body(function.body)
        self.around = around
        _, returned = self.calls.pop()
        # Rows that come to the end without a return have no value.
        bad = either(bad, columns.active if columns.active.any() else None)
        columns.active = before
        if not returned:
            raise NotOnColumns("a function that returns nothing")
        _, result = returned[0]
        for rows, column in returned[1:]:
            result = _mixed(rows, column, result)
        return Column(result.values, either(result.bad, bad))

    def certain(self, column: Column) -> Column:
        """Where there is no value, the record has to be rejected, with a reason."""
        if column.bad is not None:
            self.columns.look_closer(column.bad)
        return column

    def assign(self, number: int, column: Column) -> None:
        columns = self.columns
        old = columns.variables.get(number)
        if old is None or columns.active.all():
            bad = column.bad
            if not columns.active.all():
                bad = either(bad, ~columns.active)
            columns.variables[number] = Column(column.values, bad)
        else:
            columns.variables[number] = _mixed(columns.active, column, old)

    def branch(self, condition: Column, then: Block, otherwise: Block) -> None:
        columns = self.columns
        holds = self.certain(condition).values
        assert isinstance(holds, np.ndarray)
        before = columns.active
        left = np.zeros(columns.count, np.bool_)
        for block, chosen in ((then, holds), (otherwise, ~holds)):
            columns.active = before & chosen & ~columns.careful
            if block and self.is_worth_it():
                self.body(block)
            left |= columns.active
        columns.active = left

    def is_worth_it(self) -> bool:
        """Whether any rows are left; on none at all everything is tried."""
        return not self.columns.count or bool(self.columns.active.any())

    def loop(self, loop: Loop) -> None:
        """Round by round, each for all rows that are still in the loop."""
        columns = self.columns
        nothing = np.zeros(columns.count, np.bool_)
        around = _Around(nothing.copy(), nothing)
        self.around.append(around)
        rounds = 0
        while True:
            around.skipped = nothing.copy()
            if loop.tests_first:
                self.test(loop, around)
            columns.active = columns.active & ~columns.careful
            if not self.is_worth_it() or self.is_endless(rounds):
                break
            self.body(loop.body)
            columns.active = columns.active | around.skipped
            self.body(loop.after)
            if not loop.tests_first:
                self.test(loop, around)
            rounds += 1
            if not columns.count:
                break
        self.around.pop()
        columns.active = around.ended

    def test(self, loop: Loop, around: _Around) -> None:
        columns = self.columns
        if loop.condition is None or not self.is_worth_it():
            return
        holds = self.certain(columns.value(loop.condition)).values
        assert isinstance(holds, np.ndarray)
        around.ended |= columns.active & ~holds
        columns.active = columns.active & holds

    def is_endless(self, rounds: int) -> bool:
        """Whether the rows that are left are too few, or have gone round too often."""
        columns = self.columns
        if rounds < _FEW_ROUNDS:
            return False
        few = np.count_nonzero(columns.active) * _FEW < columns.count
        if few or rounds >= _MOST_ROUNDS:
            columns.look_closer(columns.active)
            return True
        return False

    def when(self, when: When, quantifier: Quantifier) -> None:
        """For each index in turn, in all rows that have so many."""
        columns = self.columns
        most = np.zeros(columns.count, np.int64)
        for node in quantifier.ranges:
            if isinstance(resolved(node.type), MapOf):
                raise NotOnColumns("the keys of a map")
            base = columns.value(node)
            lengths = columns.length_of(base)
            most = np.maximum(most, lengths if base.bad is None else lengths * ~base.bad)
        going, left = columns.active, np.zeros(columns.count, np.bool_)
        rounds = 0
        while True:
            left |= going & (most <= rounds)
            going = going & (most > rounds) & ~columns.careful
            columns.active = going
            if not self.is_worth_it() or self.is_endless(rounds):
                break
            place = Column(np.full(columns.count, rounds))
            columns.variables[quantifier.var.number] = place
            condition = columns.value(when.condition)
            assert isinstance(condition.values, np.ndarray)
            holds = condition.values if condition.bad is None else condition.values & ~condition.bad
            columns.active = going & holds
            if self.is_worth_it():
                self.body(when.body)
            if quantifier.word == "some":
                left |= columns.active
                going = going & ~holds
            else:
                going = columns.active | (going & ~holds)
            rounds += 1
            if not columns.count:
                break
        columns.variables.pop(quantifier.var.number, None)
        columns.active = left

    def choose(self, tag: Column, cases: Any, otherwise: Block) -> None:
        raise NotOnColumns("`switch`")

    def emit(self, emit: Emit) -> None:
        columns = self.columns
        nodes = [*emit.indexes, emit.value, *([] if emit.weight is None else [emit.weight])]
        sent = tuple(self.certain(columns.value(node)) for node in nodes)
        if any(isinstance(c.values, Pieces) for c in sent):
            raise NotOnColumns("an emit of an array")
        rows = np.flatnonzero(columns.active & ~columns.careful)
        self.emits.setdefault(emit.table, []).append((rows, sent))


def _mixed(chosen: Array, new: Column, old: Column) -> Column:
    """New values in some rows, and the old ones in all others."""
    bad: Array | None = None
    if new.bad is not None or old.bad is not None:
        none = np.zeros(len(chosen), np.bool_)
        bad = np.where(chosen, none if new.bad is None else new.bad,
                       none if old.bad is None else old.bad)  # fmt: skip
    match new.values, old.values:
        case np.ndarray() as a, np.ndarray() as b:
            return Column(np.where(chosen, a, b), bad)
        case Slices() as a, Slices() as b:
            return Column(_joined(chosen, a, b), bad)
        case Parts(a), Parts(b):
            pairs = zip(a, b, strict=True)
            return Column(Parts(tuple(_mixed(chosen, x, y) for x, y in pairs)), bad)
    raise NotOnColumns("an array that is assigned in some records only")


def _joined(chosen: Array, a: Slices, b: Slices) -> Slices:
    """Slices of two arrays of bytes, as slices of both of them together."""
    shift = 0 if a.data is b.data else len(a.data)
    data = a.data if a.data is b.data else np.concatenate([a.data, b.data])
    return Slices(
        data, np.where(chosen, a.starts, b.starts + shift), np.where(chosen, a.ends, b.ends + shift)
    )


def why_not(function: RunScript, inputs: tuple[QueueType, ...]) -> str | None:
    """What of a script columns cannot be asked, or None; it is found out on no rows at all."""
    try:
        if chances(function) or function.as_source:
            raise NotOnColumns("chance" if chances(function) else "telling emits as source")
        if any(t.file is not None and t.indexes for t in function.tables):
            raise NotOnColumns("a file with an index")
        if len(function.sent) < len(function.told):
            raise NotOnColumns("printing from several tables")
        for table in function.tables:
            for type_ in (*(t for _, t in table.indexes), table.value, table.weight):
                if type_ is not None and not _can_be_sent(type_):
                    raise NotOnColumns(f"an emit of {type_}")
        _on_columns(function, Machine(function.script).statics, empty_batch(inputs[0]))
    except NotOnColumns as reason:
        return f"{reason} needs single records"
    return None


_SENT = (records.INT, records.FLOAT, records.BOOL, records.TIME, records.STRING, records.BYTES)


def _can_be_sent(type_: RecordType) -> bool:
    kind = resolved(type_)
    if isinstance(kind, TupleOf):
        return not kind.is_proto and all(resolved(f.type) in _SENT for f in kind.fields)
    return kind in _SENT


def _on_columns(function: RunScript, statics: Mapping[int, Any], batch: Batch) -> _Run:
    script = function.script
    count = len(batch)
    odd = np.zeros(count, np.bool_)
    if function.has_columns or not batch.columns:
        texts = Slices(np.zeros(1, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64))
        if reads_record(script):
            raise NotOnColumns("a row as a whole")
    else:
        texts, odd = slices_of(batch.columns[0].values)
    rows = _Rows(batch, odd)
    run = _Run(_functions(script))
    run.columns = Columns(
        count, texts, rows.column, statics, script.record.number, odd, ~odd, run.call
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
            texts, odd = slices_of(vector.to_arrow())
            self.odd |= odd
            return Column(texts)
        if vector.valid is not None:
            self.odd |= ~vector.valid
        return Column(vector.values)


class ColumnsKernel(RunScriptKernel):
    """Mutable: as what it stands on, which gets the rows that columns cannot answer for."""

    def __init__(
        self, function: RunScript, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        super().__init__(function, input_types, output_count)
        self.statics: Mapping[int, Any] | None = None
        reason = why_not(function, input_types)
        walked = why_walked(function, input_types[0].schema.names)
        #: What `explain` shows.
        self.source = "# on whole columns; records that are not plain one by one"
        if reason is None:
            self.statics = Machine(function.script).statics
        else:
            self.source = f"# record by record, because {reason}"
        if walked is not None:
            self.source += f"; each statement by statement, because {walked}"

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        (batch,) = inputs
        if self.statics is None or not len(batch):
            return super().process(inputs, round_)
        try:
            run = _on_columns(self.function, self.statics, batch)
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
        self, run: _Run, number: int, batch: Batch, careful: Array
    ) -> list[tuple[Batch, Array]]:
        """What was emitted to a table, with the rows of the input it comes of."""
        table = self.function.script.tables[number]
        type_ = QueueType(emitted_schema(table))
        types = [*(t for _, t in table.indexes), table.value, table.weight or records.INT]
        sent = []
        for rows, columns in run.emits.get(number, ()):
            kept = rows[~careful[rows]]
            vectors = tuple(_vector(t, c, kept) for t, c in zip(types, columns, strict=False))
            made = Batch(type_, batch.time[kept], vectors)
            sent.append((_ranked(made, batch, kept), kept))
        return sent


def _ranked(made: Batch, batch: Batch, rows: Array) -> Batch:
    """What some rows of a batch have made, with the ranks of these rows."""
    return replace(made, rank=None if batch.rank is None else batch.rank[rows])


def _vector(type_: RecordType, column: Column, rows: Array) -> Vector:
    values = column.values
    if isinstance(values, Slices):
        return Vector(queued_type(type_), values.arrow(rows))
    if isinstance(values, Parts):
        return _tuples(type_, values, rows)
    assert isinstance(values, np.ndarray)
    return Vector(queued_type(type_), values[rows])


def _tuples(type_: RecordType, parts: Parts, rows: Array) -> Vector:
    """Tuples travel as texts; each different one is made into a text once."""
    kind = resolved(type_)
    assert isinstance(kind, TupleOf)
    pairs = zip(kind.fields, parts.columns, strict=True)
    vectors = [_vector(f.type, c, rows) for f, c in pairs]
    interner = Interner([v.type for v in vectors])
    ids = interner.ids(vectors, len(rows))
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
