"""Compiling the programs of a file in another process, which leaves its loops in the cache."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
from typing import Any

from millstream.calculus.graph import Input, Program
from millstream.calculus.types import BOOLEAN, TIME, Kind, Row, Type
from millstream.languages.language import function_named
from millstream.languages.served import Served
from millstream.source import Source

_ROUNDS, _ROWS = 12, 8


def compiled_aside(served: Served, stop: threading.Event) -> bool:
    """Compile, and return when that is done; False if it was given up or has failed."""
    process = multiprocessing.get_context("spawn").Process(
        target=compile_all,
        args=(served.loader, served.text, dict(served.added), served.later, os.getpid()),
        daemon=True,
    )
    process.start()
    while process.is_alive() and not stop.is_set():
        process.join(0.2)
    if process.is_alive():
        process.terminate()
    process.join()
    return process.exitcode == 0


def compile_all(
    loader: str, text: str, added: dict[str, str], later: frozenset[str], parent: int
) -> None:  # fmt: skip
    """Run all programs on made-up rows, so that all their loops are compiled."""
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    os.nice(5)
    load, source = function_named(loader), Source("served", text)
    served: Served = load(source, added, later) if later else load(source, added)
    for program in served.programs:
        run_made_up(program)


def _leave_with(parent: int) -> None:
    """Nobody wants what is made for a process that has been killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def run_made_up(program: Program) -> None:
    from millstream.broker.compiled import Compiled

    chance = random.Random(1)
    evaluation = Compiled(program)
    kept: dict[str, Row] = {}
    for turn in range(1, _ROUNDS + 1):
        arrivals: dict[str, list[Any]] = {}
        for one in program.inputs:
            if one.values is not None:
                continue
            if one.type.is_relation and one.type.schema.names == ("known",):
                # a horizon: one row, which moves on
                gone = [(turn, kept[one.name], -1)] if one.name in kept else []
                kept[one.name] = (turn * _ROWS,)
                arrivals[one.name] = [*gone, (turn, kept[one.name], 1)]
                continue
            rows = [_row(one, turn * _ROWS + n, chance) for n in range(_ROWS)]
            if one.type.is_relation:  # what another broker sends: some of it goes again
                gone = [(turn, kept[one.name], -1)] if one.name in kept else []
                kept[one.name] = rows[0]
                arrivals[one.name] = [*gone, *((turn, row, 1) for row in rows)]
                continue
            key = None if one.time is None else one.type.schema.index(one.time)
            arrivals[one.name] = [(turn if key is None else row[key], row, 1) for row in rows]
        evaluation.advance(turn if _is_live(program) else (turn + 1) * _ROWS - 1, arrivals)


def _is_live(program: Program) -> bool:
    """Whether its time is that of arrivals."""
    return all(one.time is None for one in program.inputs)


def _row(one: Input, tick: int, chance: random.Random) -> Row:
    """A row at a tick, of values that meet others."""
    bounds = {name: (low, high) for name, low, high in one.within}
    first = one.type.schema.fields[0]
    tick_name = first.name if first.type == TIME else ""
    return tuple(
        tick if f.name == tick_name else _value(f.type, *bounds.get(f.name, (None, None)), chance)
        for f in one.type.schema
    )


def _value(type_: Type, low: float | None, high: float | None, chance: random.Random) -> Any:
    if type_ == BOOLEAN:
        return chance.random() < 0.5
    if type_.kind is Kind.TEXT:
        return chance.choice(("a", "b", "c"))
    least = 0 if low is None else low
    most = least + 20 if high is None else high
    if type_.kind is Kind.NUMBER:
        return float(chance.uniform(least, min(most, least + 20)))
    return chance.randint(int(least), int(min(most, least + 20)))
