"""What running a script and keeping a table mean.

A table is worked out anew, from all that was ever emitted to it, whenever it is told.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any

from millstream.calculus.scripts import Script
from millstream.calculus.tables import Contents, Emits, RunScript, Tally
from millstream.calculus.types import Row
from millstream.meaning.firing import Context, Result, State, fire
from millstream.meaning.instants import advanced
from millstream.meaning.items import Bag, Entry, Mark, changes
from millstream.meaning.scripts import Machine
from millstream.meaning.waiting import Side, heard, known_until, marks_due
from millstream.values.records.running import Rejected
from millstream.values.rejection import count_rejected


@lru_cache(16)
def _machine(script: Script) -> Machine:
    """One machine for all records: nothing is left in it of those before."""
    return Machine(script)


@fire.register
def _run(function: RunScript, entry: Entry, index: int, state: State, context: Context) -> Result:
    if isinstance(entry, Mark):
        return Result(((entry,),) * len(function.sent))
    emits = Emits(function, context.input_types[0].schema.names)
    record, row = emits.record(entry.row)
    seed = emits.seed(entry.time, entry.row)
    sent: list[list[Entry]] = [[] for _ in function.sent]
    machine = _machine(function.script)
    try:
        for output, made in emits.rows(machine.run(record, row, seed), seed):
            sent[output].append(replace(entry, row=made))
    except Rejected as rejected:
        count_rejected(context.faults, function.input_name, str(rejected), record)
        return Result(((),) * len(function.sent))
    return Result(tuple(map(tuple, sent)))


@fire.register
def _tally(function: Tally, entry: Entry, index: int, state: State, context: Context) -> Result:
    before = [state[0]]
    sides = heard(before, index, entry)
    now = known_until(sides)
    sent: list[Entry] = []
    if now is not None and now != known_until(before):
        side = advanced(sides[0], now)
        told_before = before[0].bag  # of a table, what has been told of it
        times = sorted({function.told_at(i.time) for i in side.history})
        was = before[0].known_until
        for instant in [t for t in times if (was is None or t > was) and t <= now]:
            contents = _contents(function, side, instant)
            sent += changes(instant, told_before, contents)
            told_before = contents
        side = replace(side, bag=told_before)
        sides = [side]
    mark, sides = marks_due(before, sides, entry)
    return Result(((*sent, *mark),), tuple(sides))


def _contents(function: Tally, side: Side, instant: int) -> Bag:
    """What the table has told up to an instant."""
    contents = Contents(function)
    gathered: dict[tuple[int | None, Row], Any] = {}
    for item in side.history:
        if function.told_at(item.time) > instant:
            continue
        window = None
        if function.window is not None:
            window = item.time // function.window * function.window
        key = (window, item.row[: contents.at])
        acc = gathered.get(key) if key in gathered else contents.table.empty()
        gathered[key] = contents.add(acc, item.row)
    rows: Counter[Row] = Counter()
    for (window, indexes), acc in gathered.items():
        rows.update(contents.rows(indexes, acc, window))
    return dict(rows)
