"""A loop written down for numba: the last step, and the only one that makes text.

Written text holds only names made here and numbers, never anything a user has written. Arrays
are passed as addresses: numba would take seconds to compile a function of a hundred arrays, and a
millisecond to call it. All of them, and all numbers that are given, stand in one array, the frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from millstream.calculus.types import INT64_MIN
from millstream.kernels.loop.ir import (
    ZERO,
    Body,
    Const,
    Count,
    Function,
    Given,
    Leave,
    Load,
    Local,
    Loop,
    Memory,
    Op,
    Param,
    Rep,
    Set,
    Statement,
    Stop,
    Store,
    TallyFaults,
    Value,
    When,
    params_of,
)

_INDENT = "    "

_HEADER = """import math
from numba import float32, float64, int32, int64
from millstream.kernels.loop.machine import *
from millstream.kernels.loop.scalar_arrays import *
from millstream.kernels.loop.scalar_calendar import *
from millstream.kernels.loop.scalar_nulls import *
from millstream.kernels.loop.scalar_numbers import *
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a function is called, and where in its frame it finds what.

    The frame is the last parameter. Without places, it is what the function asks for, in that
    order. What has no place is a parameter of the function itself.
    """

    signature: str
    parameters: tuple[str, ...]
    places: Mapping[Param, int] | None = None
    #: Whether no two memories lie in one place, so that nothing has to be read again because
    #: something else was written.
    are_apart: bool = False


#: A loop over rows is given all that it asks for, and answers nothing.
ROWS = Entry("void(FRAME)", ("frame",))


@dataclass(frozen=True, slots=True)
class LoopSource:
    """A function `run`, and what it asks for."""

    source: str
    params: tuple[Param, ...]


def emit(function: Function, entry: Entry = ROWS) -> LoopSource:
    params = params_of(function.body)
    head = [
        _HEADER,
        "MAKES_ARRAYS = False",
        f"SIGNATURE = {entry.signature}",
        "",
        "",
        f"def run({', '.join(entry.parameters)}):",
    ]
    lines = [*_taken(params, entry), *_lines(function.body)]
    text = "\n".join([*head, *(_INDENT + line for line in lines or ["pass"]), ""])
    return LoopSource(text, params)


def _taken(params: tuple[Param, ...], entry: Entry) -> Iterator[str]:
    places = entry.places
    if places is None:
        places = {param: number for number, param in enumerate(params)}
    for param in params:
        if param not in places:
            continue
        cell = f"{entry.parameters[-1]}[{places[param]}]"
        if isinstance(param, Memory):
            rep = param.rep.value
            cell = f"apart_{rep}({cell}, '{param.kind}')" if entry.are_apart \
                else f"pointer_{rep}({cell})"  # fmt: skip
        yield f"{param.name} = {cell}"


# --- statements -------------------------------------------------------------------------


def _lines(body: Body) -> Iterator[str]:
    for statement in body:
        yield from _statement(statement)


def _inside(body: Body) -> Iterator[str]:
    for line in _lines(body) if body else ("pass",):
        yield _INDENT + line


def _statement(statement: Statement) -> Iterator[str]:
    match statement:
        case Set(local, value):
            yield f"{local.name} = {_text(value)}"
        case Store(memory, index, value):
            yield f"{memory.name}[{_text(index)}] = {_text(value)}"
        case TallyFaults(counters, base, faults):
            yield f"if {_part(faults)} != 0:"
            yield f"{_INDENT}count_faults({counters.name}, {base}, {_text(faults)})"
        case When(condition, then, otherwise):
            yield f"if {_text(condition)}:"
            yield from _inside(then)
            if otherwise:
                yield "else:"
                yield from _inside(otherwise)
        case Count(local, limit, body, begin):
            bounds = _text(limit) if begin == ZERO else f"{_text(begin)}, {_text(limit)}"
            yield f"for {local.name} in range({bounds}):"
            yield from _inside(body)
        case Loop(condition, body):
            yield f"while {'True' if condition is None else _text(condition)}:"
            yield from _inside(body)
        case Leave(word):
            yield word
        case Stop(answer):
            yield f"return {_text(answer)}"
        case _:
            raise AssertionError(f"guards are made choices before this is written: {statement}")


# --- values -----------------------------------------------------------------------------


def _text(value: Value) -> str:
    match value:
        case Const():
            return _constant(value)
        case Local(name):
            return name
        case Given():
            return value.name
        case Load(memory, index):
            cell = f"{memory.name}[{_text(index)}]"
            return f"{cell} != 0" if memory.rep is Rep.TRUTH else cell  # truths lie there as bytes
        case Op():
            return _operation(value)


def _part(value: Value) -> str:
    """A value as a part of a larger one."""
    is_one_word = isinstance(value, (Local, Given, Const)) or (
        isinstance(value, Load) and value.memory.rep is not Rep.TRUTH
    )
    return _text(value) if is_one_word else f"({_text(value)})"


def _operation(value: Op) -> str:
    """As an expression if there is one for plain values, which compiles sooner, or as a call."""
    name, plain = value.operation.name, value.operation.plain
    is_plain = not name or not any(arg.form.is_boxed for arg in value.args)
    if plain is not None and is_plain:
        return plain.format(*map(_part, value.args))
    place = () if value.place is None else (str(value.place),)
    return f"{name}({', '.join((*place, *map(_text, value.args)))})"


def _constant(constant: Const) -> str:
    """A number as Python writes it, where numba reads it so.

    It takes the least integer for an unsigned one.
    """
    value, rep = constant.value, constant.form.rep
    text = constant.spelled
    if isinstance(value, float) and not math.isfinite(value):
        text = "NAN" if math.isnan(value) else ("INF" if value > 0 else "-INF")
    elif type(value) is int and value == INT64_MIN:
        text = "LEAST"
    return {Rep.SINGLE: f"float32({text})", Rep.SHORT: f"int32({text})"}.get(rep, text)
