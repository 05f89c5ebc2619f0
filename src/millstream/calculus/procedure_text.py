"""The textual form of `Work`: quoted lines, of which those of its code are statements.

Work["code Average(n int32)", "takes single", "gives single", "work {",
     "  let sum single;", "  ...", "}", "with 4", "rates pop 1 peek 4 push 1"]

Literals of 32 bits are plain, singles end in `f`, bits in `b`. `all x` is all that a place
holds, where else its value is meant.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from millstream.calculus.procedures import (
    ArrayOf,
    Assign,
    Body,
    Choose,
    Code,
    Invoke,
    Leave,
    Let,
    Operand,
    Peek,
    Pop,
    Push,
    RecordOf,
    Repeat,
    Return,
    Scope,
    Shape,
    Slot,
    Statement,
)
from millstream.calculus.terms import Call, Literal, Place, Read, Term
from millstream.calculus.work import Rates, Work
from millstream.values.types import BIT, BOOLEAN, SINGLE, TEXT, Type

#: Words that begin statements or operands, so that no variable goes by them unquoted.
WORDS = frozenset((
    "all", "and", "break", "call", "code", "continue", "else", "false", "field", "first",
    "function", "gives", "if", "inf", "init", "item", "let", "loop", "nan", "not", "or", "pace",
    "hears", "peek", "pop", "prints", "push", "rates", "return", "takes", "tells", "then", "to",
    "true", "turns", "until", "while", "with", "work",
))  # fmt: skip
_PLAIN = re.compile(r"[^\W\d]\w*")


def work_lines(work: Work) -> Iterator[str]:
    """A function, line by line."""
    yield from code_lines(work.code)
    if work.arguments:
        pairs = zip(work.code.parameters, work.arguments, strict=True)
        yield f"with {', '.join(_value(slot.shape, value) for slot, value in pairs)}"
    for word, shape in (("takes", work.taken), ("gives", work.given)):
        if shape is not None:
            yield f"item {word} {_shape(shape)}"
    yield f"rates {_rates(work.rates)}"
    if work.first is not None:
        yield f"first rates {_rates(work.first)}"
    if work.pace is not None:
        yield f"pace {work.pace.initially}, {work.pace.each}"
    if work.prints:
        yield "prints"
    for telling in work.tells:
        yield (f"tells {telling.output} to {telling.box} call {_name(telling.routine)} "
               f"with {telling.latency}{' by items' if telling.by_items else ''}")  # fmt: skip
    for hearing in work.hears:
        begins = ", ".join(map(str, hearing.begins))
        yield f"hears {begins} then {hearing.period} to {hearing.step} with {hearing.least}"
    if work.turns_taken or work.turns_given:
        yield f"turns {work.turns_taken} to {work.turns_given}"


@functools.lru_cache(maxsize=1024)
def code_lines(code: Code) -> tuple[str, ...]:
    """What a code does; a program may have thousands of operators of one code."""
    return tuple(_code_lines(code))


def _code_lines(code: Code) -> Iterator[str]:
    yield f"code {_name(code.name)}({_slots(code.parameters)})"
    for word, shape in (("takes", code.taken), ("gives", code.given)):
        if shape is not None:
            yield f"{word} {_shape(shape)}"
    yield from (f"field {_slot(slot)}" for slot in code.fields)
    for routine in code.routines:
        result = "" if routine.result is None else f" {_shape(routine.result)}"
        head = f"function {_name(routine.name)}({_slots(routine.parameters)}){result}"
        yield from _block(head, routine.body, 0)
    if code.init:
        yield from _block("init", code.init, 0)
    if code.first is not None:
        yield from _block("first", code.first, 0)
    yield from _block("work", code.body, 0)


def _rates(rates: Rates) -> str:
    least = (("pop", rates.pop), ("peek", rates.peek), ("push", rates.push))
    if rates.most is None:
        return " ".join(f"{word} {count}" for word, count in least)
    both = zip(least, rates.most, strict=True)
    return " ".join(
        f"{word} {count} to {'all' if most is None else most}" for (word, count), most in both
    )


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in WORDS else f"`{name}`"


def _slots(slots: tuple[Slot, ...]) -> str:
    return ", ".join(map(_slot, slots))


def _slot(slot: Slot) -> str:
    return f"{_name(slot.name)} {_shape(slot.shape)}"


def _shape(shape: Shape) -> str:
    match shape:
        case ArrayOf(element, size):
            return f"[{term_text(size)}] {_shape(element)}"
        case RecordOf(parts):
            return "{" + ", ".join(f"{_name(n)} {_shape(part)}" for n, part in parts) + "}"
        case _:
            return str(shape)


def _value(shape: Shape, value: Any) -> str:
    match shape:
        case ArrayOf(element):
            return f"({', '.join(_value(element, part) for part in value)})"
        case RecordOf(parts):
            pairs = zip(parts, value, strict=True)
            return f"({', '.join(_value(part, v) for (_, part), v in pairs)})"
        case _:
            return _literal(value, shape)


# --- statements -------------------------------------------------------------------------


def _block(head: str, body: Body, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield f"{indent}{head} {{" if head else f"{indent}{{"
    for statement in body:
        yield from _lines(statement, depth + 1)
    yield f"{indent}}}"


def _lines(statement: Statement, depth: int) -> Iterator[str]:
    match statement:
        case Choose(condition, then, otherwise):
            yield from _block(f"if {term_text(condition)}", then, depth)
            if otherwise:
                yield from _block("else", otherwise, depth)
        case Repeat(condition, body, after, tests_first):
            word = "until" if not tests_first else "loop" if condition is None else "while"
            test = "" if condition is None else f" {term_text(condition)}"
            yield from _block(word + test, body, depth)
            if after:
                yield from _block("then", after, depth)
        case Scope(body):
            yield from _block("", body, depth)
        case _:
            yield "  " * depth + f"{_simple(statement)};"


def _simple(statement: Statement) -> str:
    match statement:
        case Let(slot):
            return f"let {_slot(slot)}"
        case Assign(target, value):
            return f"{_place(target)} = {_operand(value)}"
        case Leave(word):
            return word
        case Pop(target):
            return "pop" if target is None else f"{_place(target)} = pop"
        case Peek(index, target):
            return f"{_place(target)} = peek {term_text(index)}"
        case Push(value, output):
            return f"push {_operand(value)}" + (f" to {output}" if output else "")
        case Invoke(routine, arguments, target):
            given = ", ".join(map(_operand, arguments))
            to = "" if target is None else f"{_place(target)} = "
            return f"{to}call {_name(routine)}({given})"
        case Return(value):
            return "return" if value is None else f"return {_operand(value)}"
        case _:
            raise AssertionError(f"no simple statement: {statement!r}")


def _operand(operand: Operand) -> str:
    return f"all {_place(operand)}" if isinstance(operand, Place) else term_text(operand)


def _place(place: Place) -> str:
    steps = (f".{_name(s)}" if isinstance(s, str) else f"[{term_text(s)}]" for s in place.path)
    return _name(place.variable) + "".join(steps)


def term_text(term: Term) -> str:
    """A term of a procedure; every call is written out, whatever it is written as elsewhere."""
    match term:
        case Literal(value, type_):
            return _literal(value, type_)
        case Read(place):
            return _place(place)
        case Call(function, args):
            return f"{_name(function)}({', '.join(map(term_text, args))})"
        case _:
            raise AssertionError(f"no term of a procedure: {term!r}")


def _literal(value: Any, type_: Type) -> str:
    if type_ == TEXT:
        return json.dumps(value, ensure_ascii=False)
    if type_ == BOOLEAN:
        return "true" if value else "false"
    if type_ == SINGLE and not math.isfinite(value):
        return ("-" if value < 0 else "") + ("nan" if value != value else "inf")
    return f"{value!r}{'f' if type_ == SINGLE else 'b' if type_ == BIT else ''}"
