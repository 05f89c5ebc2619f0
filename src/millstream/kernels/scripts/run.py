"""RunScript: a script as a function that is called for every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.calculus.scripts import Script, Var, nodes_in
from millstream.calculus.tables import Emits, RunScript
from millstream.calculus.types import QueueType
from millstream.kernels.runtime.kernel import Round, State, Termless
from millstream.kernels.scripts.generate import NotGenerated, generated
from millstream.kernels.scripts.runtime import Running
from millstream.meaning.scripts import Machine
from millstream.plan.batch import Batch, batch_of
from millstream.values.records.running import Emitted, Rejected, deep_calls
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
    found: dict[str, str] = {}
    for node in nodes_in((script.statics, script.body)):
        for name in ("var", "tag"):
            var = getattr(node, name, None)
            if isinstance(var, Var):
                found[f"{'s' if var.level < 0 else 'v'}{var.number}"] = var.name
    return found


class RunScriptKernel(Termless):
    """Mutable: counts the records that the script has rejected."""

    def __init__(
        self, function: RunScript, input_types: tuple[QueueType, ...], output_count: int
    ) -> None:
        self.function = function
        self.types = function.output_types(input_types, output_count)
        names = input_types[0].schema.names
        self.emits = Emits(function, names)
        self.run = runner(function, names)
        self.rejected: Counter[str] = Counter()

    def process(self, inputs: tuple[Batch, ...], round_: Round) -> tuple[Batch, ...]:
        with deep_calls():
            return self._emitted(inputs[0])

    def _emitted(self, batch: Batch) -> tuple[Batch, ...]:
        emits, run, makers = self.emits, self.run, self.emits.makers
        has_columns, has_chance = emits.has_columns, emits.has_chance
        sent: list[tuple[list[int], list[Any], list[int]]] = [([], [], []) for _ in self.types]
        ways = {n: (*sent[place], makers[n]) for n, place in emits.outputs.items()}
        times = batch.time.tolist()
        ranks = range(len(times)) if batch.rank is None else batch.rank.tolist()
        needs_bytes = emits.reads_bytes
        for time, row, rank in zip(times, batch.rows(), ranks, strict=True):
            if has_columns:
                record = emits.record(row)[0] if needs_bytes else b""
            else:
                record = str(row[0] or "").encode("latin-1")
            seed = emits.seed(time, row) if has_chance else 0
            try:
                made = run(record, row, seed)
            except Rejected as rejected:
                whole = record if record or not has_columns else emits.record(row)[0]
                count_rejected(self.rejected, self.function.input_name, str(rejected), whole)
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
