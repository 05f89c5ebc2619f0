"""Loops of the compiler run by Python, and what every loop must obey.

A written loop is Python. Here it runs as such, with stand-ins for what numba would compile: an
operation with an expression is that expression, any other is some function of its arguments, for
passes know nothing of what operations mean.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from millstream.kernels.loop import machine
from millstream.kernels.loop.emit import ROWS, Entry, emit
from millstream.kernels.loop.ir import (
    Body,
    Count,
    Decide,
    Function,
    Given,
    Guarded,
    Local,
    Loop,
    Memory,
    Op,
    Rep,
    Set,
    Statement,
    When,
    params_of,
    statements_in,
    values_in,
    values_of,
)
from millstream.kernels.loop.passes.choices import choices

COUNT = 7

# --- running ------------------------------------------------------------------------------


@dataclass
class Cells:
    """Mutable: memory that holds anything at all until it is written."""

    memory: Memory
    has_nulls: bool
    written: dict[int, Any] = field(default_factory=dict)

    def __getitem__(self, index: int) -> Any:
        if index in self.written:
            return self.written[index]
        if not self.has_nulls and self.memory.kind in ("valid", "faults"):
            return int(self.memory.kind == "valid")
        return some(self.memory.name, index) % (2 if self.memory.rep.value == "b" else 5)

    def __setitem__(self, index: int, value: Any) -> None:
        self.written[index] = value


def some(*what: object) -> int:
    """A number that looks like chance, and is always the same of the same things."""
    return zlib.crc32(repr(what).encode())


#: Which of their arguments these give.
CHOOSING = {"choose": 1, "first": 0} | {
    f"{which}_{rep}": 0
    for which in ("least", "greatest")
    for rep in ("number", "integer", "boolean")
}


def lifted(name: str, plain: str | None, rep: Rep) -> Callable[..., Any]:
    """A function of values that may be in boxes."""
    expression = None if plain is None else compile(plain.format("a", "b", "c"), name, "eval")

    def call(*args: Any) -> Any:
        values = [arg[0] if isinstance(arg, tuple) else arg for arg in args]
        boxes = [arg for arg in args if isinstance(arg, tuple)]
        if expression is not None:
            names = dict(zip("abc", values, strict=False))
            value = eval(expression, {"math": math}, names)  # noqa: S307
        elif name in CHOOSING:
            value = values[CHOOSING[name]]
        else:
            value = some(name, [float(v) for v in values]) % 7
            value = value > 3 if rep is Rep.TRUTH else value
        if not boxes:
            return value
        faults = 0
        for box in boxes:
            faults |= box[2]
        return value, any(box[1] for box in boxes), faults

    return call


def faulty(name: str, rep: Rep, *, is_sound: bool) -> Callable[..., Any]:
    whole = lifted(name, None, rep)

    def call(place: int, *args: Any) -> Any:
        made = whole(*args)
        value, null, faults = made if isinstance(made, tuple) else (made, False, 0)
        if not null and value == 0 and not is_sound:
            return 0, True, faults | 1 << place
        return value, null, faults

    return call


def count_faults(counters: Cells, base: int, faults: int) -> None:
    for bit in range(64):
        if faults >> bit & 1:
            counters[base + bit] += 1


BOXES: dict[str, Any] = {
    "boxed": lambda value, valid: (value, not valid, 0),
    "boxed_with_faults": lambda value, valid, faults: (value, not valid, faults),
    "settled": lambda box: (box[0], box[1], 0),
    "is_null": lambda box: (box[1], False, box[2]),
    "count_faults": count_faults,
    "LEAST": -(2**63),
    "INF": math.inf,
    "NAN": math.nan,
    "float": float,
    "abs": abs,
    "min": min,
    "range": range,
    "math": math,
    "int64": int,
    "float32": float,
    "float64": float,
}


def run(
    function: Function,
    *,
    has_nulls: bool = False,
    is_sound: bool = False,
    entry: Entry = ROWS,
    begin: int = 0,
    before: dict[Memory, dict[int, Any]] | None = None,
) -> dict[Memory, dict[int, Any]]:
    """What a loop has written, by memory; it goes on from a row and from what was written there."""
    written = emit(choices(function), entry)
    names = _names(function, is_sound=is_sound)
    frame: dict[int, Any] = {}
    places = entry.places or {param: place for place, param in enumerate(written.params)}
    for param, place in places.items():
        frame[place] = (
            _given(param, begin)
            if isinstance(param, Given)
            else Cells(param, has_nulls, dict((before or {}).get(param, {})))
        )
    exec(written.source[written.source.index("def run") :], names)  # noqa: S102
    if entry is ROWS:
        names["run"](frame)
    else:
        for mode in (0, 1, 2):
            names["run"](mode, 2, frame)
    cells = [cell for cell in frame.values() if isinstance(cell, Cells)]
    told = {place: value for place, value in frame.items() if not isinstance(value, Cells)}
    return {
        Memory("frame", Rep.INTEGER): told if entry.places else {},
        **{cell.memory: cell.written for cell in cells if cell.written},
    }


def _given(given: Given, begin: int) -> int:
    """Numbers that let loops go on for a while, and no longer."""
    known = {"code": 3, "rows": COUNT, "begin": begin}
    return known.get(given.kind, some(given.name) % 5)


def _names(function: Function, *, is_sound: bool) -> dict[str, Any]:
    """What a written loop calls."""
    names = {**BOXES, "int32": wrapping()}
    for name in ("int32_quotient", "int32_remainder", "whole_of", "least", "most", "rest_of",
                 "floor_of", "ceiling_of", "round_half_away"):  # fmt: skip
        names[name] = _plain(getattr(machine, name))
    for statement in statements_in(function.body):
        for whole in values_of(statement):
            for value in values_in(whole):
                if isinstance(value, Op) and value.operation.name not in BOXES:
                    name, rep = value.operation.name, value.form.rep
                    names[name] = (
                        lifted(name, value.operation.plain, rep)
                        if value.place is None
                        else faulty(name, rep, is_sound=is_sound)
                    )
    pointers = [f"{word}_{rep.value}" for rep in Rep for word in ("pointer", "apart")]
    return names | {pointer: lambda cells, *_: cells for pointer in pointers}


def _plain(function: Any) -> Any:
    """A function as it was before numba took it, with those it calls."""
    python = function.py_func
    known = {n: f for n, f in python.__globals__.items() if not hasattr(f, "py_func")}
    known["int32_quotient"] = machine.int32_quotient.py_func  # type: ignore[attr-defined]
    return FunctionType(python.__code__, known, python.__name__)


class EndlessError(Exception):
    """A loop has gone on for very long."""


def wrapping() -> Callable[[Any], int]:
    """How an integer is held with 32 bits; so many of them are enough."""
    rest = itertools.count(-20_000)

    def wrapped(value: Any) -> int:
        if next(rest) > 0:
            raise EndlessError
        return (int(value) + 2**31) % 2**32 - 2**31

    return wrapped


# --- checking -----------------------------------------------------------------------------


def check(function: Function) -> None:
    """Every local is set before it is read, wherever it is read, and held as it was set."""
    _Check(function).body(function.body, {}, 0)
    assert len(set(params_of(function.body))) == len(params_of(function.body))


@dataclass
class _Check:
    function: Function

    def body(self, body: Body, known: dict[str, list[tuple[int, Local]]], guard: int) -> None:
        for statement in body:
            self.statement(statement, known, guard)

    def statement(
        self, statement: Statement, known: dict[str, list[tuple[int, Local]]], guard: int
    ) -> None:
        for whole in values_of(statement):
            for value in values_in(whole):
                if isinstance(value, Local):
                    self.read(value, known, guard)
        match statement:
            case Set(local, value):
                assert local.form == value.form, f"{local} is set to {value}"
                known.setdefault(local.name, []).append((guard, local))
            case When(_, then, otherwise):
                self.body(then, {k: list(v) for k, v in known.items()}, guard)
                self.body(otherwise, {k: list(v) for k, v in known.items()}, guard)
            case Count(local, _, inside):
                self.body(inside, {**known, local.name: [(guard, local)]}, guard)
            case Loop(_, inside):
                self.body(inside, {k: list(v) for k, v in known.items()}, guard)
            case Guarded(lines):
                opened = {0}
                for under, line in lines:
                    assert under in opened, f"guard {under} is not decided before {line}"
                    if isinstance(line, Decide):
                        assert self.function.is_within(line.opens, under)
                        opened.add(line.opens)
                    self.statement(line, known, under)
            case _:
                return

    def read(self, local: Local, known: dict[str, list[tuple[int, Local]]], guard: int) -> None:
        setters = [
            setter for under, setter in known.get(local.name, ())
            if self.function.is_within(guard, under)
        ]  # fmt: skip
        assert setters, f"{local} is read before it is set"
        assert all(setter.form == local.form for setter in setters), local
