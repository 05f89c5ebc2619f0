"""RunScript: a script as a function that is called for every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from millstream.calculus.scripts import Script, Var, nodes_in
from millstream.calculus.tables import Emits, RunScript
from millstream.calculus.types import QueueType, Row
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.kernels.scripts.generate import NotGenerated, generated
from millstream.kernels.scripts.runtime import UNDEFINED, Running
from millstream.kernels.scripts.sending import Lists, can_send_by_table
from millstream.meaning.scripts import Machine
from millstream.plan.batch import Batch, batch_of
from millstream.values.records.running import (
    Emitted,
    Rejected,
    deep_calls,
    many_values,
)
from millstream.values.rejection import count_rejected

#: What a record emits: of the record as bytes, its row, and what chance begins with.
Run = Callable[[bytes, Any, int], list[Emitted]]


def why_walked(function: RunScript, columns: tuple[str, ...]) -> str | None:
    """Why a script is walked statement by statement, or None if it is one function."""
    try:
        compile(generated(function.script, columns).text, "<script>", "exec")
    except NotGenerated as reason:
        return str(reason)
    except (SyntaxError, RecursionError, MemoryError):
        return "it is too much for one function"
    return None


def runner(function: RunScript, columns: tuple[str, ...]) -> Run:
    """What runs a script: a function made of it, or else the machine of its meaning."""
    if why_walked(function, columns) is not None:
        machine = Machine(function.script)
        return lambda record, row, seed: machine.run(
            record, dict(zip(columns, row, strict=True)) if function.has_columns else {}, seed
        )
    made = generated(function.script, columns)
    running = Running(made.text, made.places, made.names, variables_of(function.script))
    runtime = made.runtime

    def run(record: bytes, row: Any, seed: int) -> list[Emitted]:
        runtime.seed(seed)
        return running.run(record, row)

    has_chance = Emits(function, columns).has_chance
    return run if has_chance else lambda record, row, _seed: running.run(record, row)


def variables_of(script: Script) -> dict[str, str]:
    """The names of variables in a script, by those in the function made of it."""
    names: dict[str, str] = {}
    for node in nodes_in((script.statics, script.body)):
        for name in ("var", "tag"):
            var = getattr(node, name, None)
            if isinstance(var, Var):
                names[f"{'s' if var.level < 0 else 'v'}{var.number}"] = var.name
    return names


class _ByTable:
    """Mutable: a script as one function that gathers what is emitted to each table."""

    def __init__(self, function: RunScript, columns: tuple[str, ...]) -> None:
        self.lists = Lists(function.script, function.told)
        made = generated(function.script, columns, by_table=True)
        names = made.names | self.lists.names()
        self.running = Running(made.text, made.places, names, variables_of(function.script))


class RunScriptKernel(Termless):
    """Mutable: counts the records that the script has rejected."""

    def __init__(
        self, function: RunScript, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.function = function
        self.types = function.output_types(input_types, output_count)
        names = input_types[0].schema.names
        self.emits = Emits(function, names)
        self.columns = names
        #: Why it is walked statement by statement, if it is.
        self.walked = why_walked(function, names)
        self.rejected: Counter[str] = Counter()

    @cached_property
    def by_table(self) -> _ByTable | None:
        """Made when the first record comes: columns may answer for all of them."""
        can_be = can_send_by_table(self.function) and self.walked is None
        return _ByTable(self.function, self.columns) if can_be else None

    @cached_property
    def run(self) -> Run:
        return runner(self.function, self.columns)

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        with deep_calls(), many_values():
            return self._gathered(inputs[0]) if self.by_table else self._emitted(inputs[0])

    def _records(self, batch: Batch) -> Iterator[tuple[bytes, Row]]:
        """Each row as the bytes of its record, if anybody looks at them, and by its columns."""
        emits = self.emits
        if emits.has_columns:
            for row in batch.rows():
                yield emits.record(row)[0] if emits.reads_bytes else b"", row
            return
        for row in batch.rows():
            yield str(row[0] or "").encode("latin-1") if row else b"", row

    def _reject(self, rejected: Rejected, record: bytes, row: Row) -> None:
        whole = record if record or not self.emits.has_columns else self.emits.record(row)[0]
        count_rejected(self.rejected, self.function.input_name, str(rejected), whole)

    def _gathered(self, batch: Batch) -> tuple[Batch, ...]:
        """What is emitted, gathered by table; what a rejected record has emitted is left out."""
        assert self.by_table is not None
        running, lists = self.by_table.running, self.by_table.lists
        run = running.function
        refused: list[int] = []
        for number, (record, row) in enumerate(self._records(batch)):
            running.begin()
            try:
                run(number, record, row)
            except Rejected as rejected:
                self._reject(rejected, record, row)
                refused.append(number)
            except UNDEFINED as error:
                self._reject(running.rejection(error), record, row)
                refused.append(number)
        counts = np.ones(len(batch), np.bool_)
        counts[refused] = False
        made = []
        for number, type_ in zip(self.function.told, self.types, strict=True):
            rows, vectors = lists.taken(number)
            rank = None if batch.rank is None else batch.rank[rows]
            whole = Batch(type_, batch.time[rows], vectors, rank=rank)
            made.append(whole.take(np.flatnonzero(counts[rows])) if refused else whole)
        return tuple(made)

    def _emitted(self, batch: Batch) -> tuple[Batch, ...]:
        emits, run, makers = self.emits, self.run, self.emits.makers
        has_chance = emits.has_chance
        sent: list[tuple[list[int], list[Any], list[int]]] = [([], [], []) for _ in self.types]
        ways = {n: (*sent[place], makers[n]) for n, place in emits.outputs.items()}
        times = batch.time.tolist()
        ranks = range(len(times)) if batch.rank is None else batch.rank.tolist()
        for time, (record, row), rank in zip(times, self._records(batch), ranks, strict=True):
            seed = emits.seed(time, row) if has_chance else 0
            try:
                made = run(record, row, seed)
            except Rejected as rejected:
                self._reject(rejected, record, row)
                continue
            for number, (table, indexes, value, weight) in enumerate(made):
                at, rows, order, maker = ways[table]
                chance = emits.chance(seed, number) if has_chance else 0
                rows.append(maker(indexes, value, weight, chance))
                at.append(time)
                order.append(rank)
        return tuple(
            self._batch(type_, *columns, is_ranked=batch.rank is not None)
            for type_, columns in zip(self.types, sent, strict=True)
        )

    @staticmethod
    def _batch(
        type_: QueueType, times: list[int], rows: list[Any], ranks: list[int], *, is_ranked: bool
    ) -> Batch:
        made = batch_of(type_, times, rows)
        return replace(made, rank=np.array(ranks, np.int64)) if is_ranked else made

    def faults(self) -> dict[str, int]:
        return dict(self.rejected)

    def snapshot(self) -> State:
        """The records it has rejected: a run that is taken up counts on."""
        return {"rejected": tuple(sorted(self.rejected.items()))}

    def restore(self, state: State) -> None:
        self.rejected = Counter(dict(state["rejected"]))
