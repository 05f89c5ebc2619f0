"""Rows out of nothing: seeded, so that the same settings always give the same rows.

Every column has random numbers of its own, drawn one per row, so rows depend neither on
the size of the chunks nor on which other columns there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from millstream.calculus.graph import Input
from millstream.calculus.types import INT64_MAX, Field, Kind
from millstream.connectors.chunks import Chunk
from millstream.connectors.layout import InputColumns, batch_of_vectors, layout_of
from millstream.connectors.settings import PLAIN_SIZE, GeneratorSettings
from millstream.connectors.values import Unfit, duration_of, integer_of, number_of
from millstream.errors import UsageError, listing, suggest
from millstream.plan.batch import Array, Vector

N = TypeVar("N", int, float)

#: The values of a column for the next uniform random numbers in [0, 1).
Maker = Callable[[Array], Vector]

_FITTING: dict[Kind, tuple[str, ...]] = {
    Kind.NUMBER: ("min", "max", "walk", "start"),
    Kind.INTEGER: ("min", "max"),
    Kind.TEXT: ("values", "weights"),
    Kind.BOOLEAN: (),
    Kind.TIME: (),
    Kind.DURATION: ("min", "max"),
}
_SKIPPED_ROWS = 65_536
_DEFAULT_TEXTS = tuple("ABCDEFGH")


class GeneratorReader:
    """Mutable: the state of the random numbers. Gives all rows, or the `rows` [a, b)."""

    def __init__(
        self,
        settings: GeneratorSettings,
        input_: Input,
        chunk_rows: int,
        rows: tuple[int, int] | None = None,
    ) -> None:
        if settings.start + settings.rows * settings.interval > INT64_MAX:
            raise UsageError("the generator's times do not fit 64-bit microseconds")
        _check_names(settings, input_)
        self._settings = settings
        self._first, self._last = rows or (0, settings.rows)
        self._skipped = self._first
        self._layout: InputColumns = layout_of(input_, has_weight=False)
        # Rows that each make much work come a few at a time, so that something is seen soon.
        self._chunk_rows = max(1, chunk_rows * PLAIN_SIZE // max(settings.size, PLAIN_SIZE))
        self._columns = [
            (field, _random(settings.seed, field.name), self._maker(i, field))
            for i, field in enumerate(self._layout.fields)
        ]

    def _maker(self, index: int, field: Field) -> Maker | None:
        """None for times, which all are the event time."""
        table = self._settings.columns.get(field.name, {})
        if index == self._layout.time or field.type.kind is Kind.TIME:
            fitting: tuple[str, ...] = ()
            maker = None
        else:
            fitting = _FITTING[field.type.kind]
            maker = _MAKERS[field.type.kind]
        for name in table:
            if name not in fitting:
                hint = f"it takes: {listing(fitting)}"
                raise UsageError(f'column "{field.name}" does not take "{name}"', hint=hint)
        return maker(field, table) if maker else None

    def chunks(self) -> Iterator[Chunk]:
        while self.left:
            yield self.take(min(self._chunk_rows, self.left))

    @property
    def left(self) -> int:
        """How many rows have not been given."""
        return self._last - self._first

    def take(self, count: int) -> Chunk:
        """The next rows; there must be as many."""
        if self._skipped:
            self._skip(self._skipped)
            self._skipped = 0
        times = np.arange(self._first, self._first + count, dtype=np.int64)
        times = times * self._settings.interval + self._settings.start
        vectors = [
            maker(random.random(count)) if maker else Vector(field.type, times)
            for field, random, maker in self._columns
        ]
        self._first += count
        return Chunk(batch_of_vectors(self._layout, vectors))

    def _skip(self, rows: int) -> None:
        """Go on to a later row; only a walk must be walked to get there."""
        for field, random, maker in self._columns:
            if maker is None or "walk" not in self._settings.columns.get(field.name, {}):
                random.bit_generator.advance(rows)  # type: ignore[attr-defined]
                continue
            for first in range(0, rows, _SKIPPED_ROWS):
                maker(random.random(min(_SKIPPED_ROWS, rows - first)))

    def close(self) -> None:
        """There is nothing to close."""


def _random(seed: int, name: str) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, *name.encode()]))


def _check_names(settings: GeneratorSettings, input_: Input) -> None:
    names = input_.type.schema.names
    for name in settings.columns:
        if name not in names:
            hint = f"it has: {listing(names)}. {suggest(name, names) or ''}".strip()
            raise UsageError(f'input "{input_.name}" has no column "{name}"', hint=hint)


def _numbers(field: Field, table: Mapping[str, object]) -> Maker:
    if "walk" in table:
        return _walk(field, table)
    low, high = _bounds(field, table, number_of, (0.0, 100.0))
    return lambda random: Vector(field.type, low + random * (high - low))


def _walk(field: Field, table: Mapping[str, object]) -> Maker:
    """Steps of at most `walk` from `start`, reflected at `min` and `max`.

    A walk that starts above zero is a price: unless told otherwise it stays above zero.
    """
    step = _setting(field, table, "walk", number_of, 1.0)
    place = _setting(field, table, "start", number_of, 100.0)
    low = _setting(field, table, "min", number_of, 0.0 if place >= 0 else -np.inf)
    high = _setting(field, table, "max", number_of, np.inf)
    if not low <= place <= high or low == high:
        raise UsageError(f'column "{field.name}": the walk starts outside its bounds')

    def make(random: Array) -> Vector:
        nonlocal place
        steps = (2 * random - 1) * step
        steps[:1] += place
        path = np.cumsum(steps)
        place = float(path[-1])
        return Vector(field.type, _reflected(path, low, high))

    return make


def _reflected(path: Array, low: float, high: float) -> Array:
    if np.isinf(low):
        return path if np.isinf(high) else high - np.abs(high - path)
    if np.isinf(high):
        return low + np.abs(path - low)
    span = high - low
    return low + np.abs((path - low + span) % (2 * span) - span)


def _integers(field: Field, table: Mapping[str, object]) -> Maker:
    is_duration = field.type.kind is Kind.DURATION
    parse, default = (duration_of, (0, 1_000_000)) if is_duration else (integer_of, (0, 999))
    low, high = _bounds(field, table, parse, default)
    span = float(high - low + 1)

    def make(random: Array) -> Vector:
        return Vector(field.type, low + np.floor(random * span).astype(np.int64))

    return make


def _booleans(field: Field, _: Mapping[str, object]) -> Maker:
    return lambda random: Vector(field.type, random < 0.5)


def _texts(field: Field, table: Mapping[str, object]) -> Maker:
    values = table.get("values", _DEFAULT_TEXTS)
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise UsageError(f'column "{field.name}": expected a list of values')
    texts = pa.array([str(value) for value in values], pa.string())
    shares = _shares(field, table, len(values))

    def make(random: Array) -> Vector:
        which = np.searchsorted(shares, random, "right").astype(np.int32)
        return Vector(field.type, pa.DictionaryArray.from_arrays(pa.array(which), texts))

    return make


def _shares(field: Field, table: Mapping[str, object], count: int) -> Array:
    """Up to which random number each value goes; the last takes what is left."""
    weights = table.get("weights", [1] * count)
    if not isinstance(weights, Sequence) or len(weights) != count:
        raise UsageError(f'column "{field.name}": expected a weight for each of {count} values')
    parsed = [_parse(field, "weights", number_of, weight) for weight in weights]
    if min(parsed) < 0 or not 0 < sum(parsed) < np.inf:
        raise UsageError(f'column "{field.name}": expected positive weights')
    return np.cumsum(parsed)[:-1] / sum(parsed)


_MAKERS: dict[Kind, Callable[[Field, Mapping[str, object]], Maker]] = {
    Kind.NUMBER: _numbers,
    Kind.INTEGER: _integers,
    Kind.BOOLEAN: _booleans,
    Kind.TEXT: _texts,
    Kind.DURATION: _integers,
}


def _bounds(
    field: Field, table: Mapping[str, object], parse: Callable[[str], N], default: tuple[N, N]
) -> tuple[N, N]:
    low = _setting(field, table, "min", parse, default[0])
    high = _setting(field, table, "max", parse, max(low, default[1]))
    if not low <= high or high - low == np.inf:
        raise UsageError(f'column "{field.name}": expected min <= max, got {low} and {high}')
    return low, high


def _setting(
    field: Field, table: Mapping[str, object], name: str, parse: Callable[[str], N], default: N
) -> N:
    return _parse(field, name, parse, table[name]) if name in table else default


def _parse(field: Field, name: str, parse: Callable[[str], N], value: object) -> N:
    try:
        return parse(str(value))
    except Unfit as unfit:
        raise UsageError(f'column "{field.name}": "{name}": {unfit}') from None
