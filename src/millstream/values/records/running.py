"""What a program on records runs on: its surroundings, and what it finds in the library."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from millstream.values.records.conversions import conversion
from millstream.values.records.intrinsic import RecordSurroundings, Signature
from millstream.values.records.json_rows import read
from millstream.values.records.matching import WITHOUT_END, Rest, Take, pattern_of, sawn
from millstream.values.records.proto import is_present, with_field, without_field
from millstream.values.records.table import INTRINSICS
from millstream.values.records.types import (
    BASICS,
    STRING,
    RecordType,
    TupleOf,
    resolved,
)
from millstream.values.undefined import Undefined

#: A record may go round in loops, and call functions, so often; calls may be nested so deeply,
#: which takes a third of the stack that a thread has.
MOST_ROUNDS = 1_000_000
MOST_CALLS = 2_000
NO_RETURN = "the function ended without a return"
ENDLESS_LOOP = "this loop does not come to an end"
ENDLESS_CALLS = "these calls do not come to an end"

#: The number of a table, indexes, a value and a weight.
Emitted = tuple[int, tuple[Any, ...], Any, Any]


class Rejected(Exception):
    """A record cannot be used: where in the program, and why."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)


@contextlib.contextmanager
def deep_calls() -> Iterator[None]:
    """Calls of a program may be nested deeply, and each may be a dozen calls of Python."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 40 * MOST_CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextlib.contextmanager
def many_values() -> Iterator[None]:
    """While many small values are made, nobody looks for cycles among them: there are none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def without_value(name: str) -> str:
    return f'"{name}" has no value'


class Runtime:
    """Mutable: functions of the library, bound to surroundings and types."""

    def __init__(self, timezone: str, folder: str | None) -> None:
        self.random = random.Random(0)
        root = None if folder is None else Path(folder)
        self.settings = RecordSurroundings(timezone, root, os.environ, self.random)
        self._functions: dict[Any, Callable[..., Any]] = {}

    def seed(self, seed: int) -> None:
        """Chance begins anew with every record."""
        self.random.seed(seed)

    def intrinsic(self, name: str, types: tuple[RecordType, ...]) -> Callable[..., Any]:
        key = (name, types)
        if key not in self._functions:
            self._functions[key] = self._bound(name, types)
        return self._functions[key]

    def _bound(self, name: str, types: tuple[RecordType, ...]) -> Callable[..., Any]:
        if name == "regex":
            return pattern
        signature = INTRINSICS[name].rule(types)
        assert isinstance(signature, Signature), signature
        return INTRINSICS[name].bind(self.settings, signature)

    def conversion(
        self, source: RecordType, target: RecordType, extras: tuple[RecordType, ...]
    ) -> Callable[..., Any]:
        key = (source, target, extras)
        if key not in self._functions:
            chosen = conversion(target, source, extras)
            assert not isinstance(chosen, str), chosen
            self._functions[key] = chosen.bind(self.settings)
        return self._functions[key]

    def row(self, type_: RecordType, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """A row as a tuple, by the names of its columns."""
        fields = resolved(type_).fields  # type: ignore[union-attr]
        return tuple(self.column(row.get(f.name or ""), f.name, f.type) for f in fields)

    def column(self, value: Any, name: str | None, type_: RecordType) -> Any:
        return read(value, type_, f'column "{name}"')

    def cut(
        self, text: str, cuts: Sequence[tuple[str, bool, bool]], count: int | None,
        befores: Sequence[int],
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:  # fmt: skip
        """Pieces of a text, and what is left after so many cuts: all of it if it came to none."""
        steps: list[Take | Rest] = []
        for number, (pattern_, is_skipped, is_submatch) in enumerate(cuts):
            steps += [Rest()] * befores.count(number)
            kept = "skip" if is_skipped else "submatch" if is_submatch else "match"
            steps.append(Take(pattern_, kept))
        steps += [Rest()] * befores.count(len(cuts))
        pieces, rests = sawn(WITHOUT_END if count is None else count, text, steps)
        return pieces, tuple(text if rest is None else rest for rest in rests)

    @staticmethod
    def is_present(value: tuple[Any, ...], position: int) -> bool:
        return is_present(value, position)

    @staticmethod
    def with_part(value: tuple[Any, ...], position: int, part: Any) -> tuple[Any, ...]:
        return with_field(value, position, part)

    def without_part(
        self, value: tuple[Any, ...], positions: Sequence[int], type_: RecordType
    ) -> tuple[Any, ...]:
        """A message without one of its fields, or a field of a field."""
        inside = resolved(type_)
        assert isinstance(inside, TupleOf)
        first, *others = positions
        if not others:
            return without_field(value, first, inside)
        inner = self.without_part(value[first], others, inside.fields[first].type)
        return with_field(value, first, inner)


def pattern(type_name: str, base: int | None = None) -> str:
    """A pattern for texts of a type."""
    written = pattern_of(BASICS.get(type_name, STRING), base)
    if written is None:
        raise Undefined(f"there is no pattern for a {type_name}")
    return written
