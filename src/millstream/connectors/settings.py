"""The settings of the generator: `rows=1000,seed=7`, or a table of the project file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.connectors.values import Unfit, duration_of, integer_of, number_of, time_of
from millstream.errors import UsageError, listing, suggest

#: What can be said about a column; which of them fit depends on its type.
COLUMN_SETTINGS = ("min", "max", "values", "weights", "walk", "start")


#: Bytes that a row stands for if nothing is said.
PLAIN_SIZE = 64


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """`start` and `interval` are in microseconds: row i has the time start + i * interval.

    `rate` is how many rows come in a second of the clock when a run follows its inputs;
    without it they come as fast as they can. `size` is how many bytes a row stands for when
    batches are cut: more for rows that each make much work.
    """

    rows: int = 1_000
    seed: int = 0
    start: int = 0
    interval: int = 1_000
    columns: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    rate: float | None = None
    size: int = PLAIN_SIZE


_PARSERS = {
    "rows": integer_of, "seed": integer_of, "start": time_of, "interval": duration_of,
    "size": integer_of,
}  # fmt: skip


def settings_in(text: str) -> GeneratorSettings:
    """The settings written on a command line: `rows=1000,seed=7`."""
    options: dict[str, object] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f'expected a setting such as rows=1000, got "{part}"')
        options[name.strip()] = value.strip()
    return settings_of(options)


def settings_of(options: Mapping[str, object]) -> GeneratorSettings:
    """The settings of a table of the project file, or of texts."""
    known = [*_PARSERS, "rate", "columns"]
    for name in options:
        if name not in known:
            hint = f"settings are: {listing(known)}. {suggest(name, known) or ''}".strip()
            raise UsageError(f'unknown setting "{name}" of the generator', hint=hint)
    columns = options.get("columns", {})
    if not isinstance(columns, Mapping):
        raise UsageError("expected a table of columns in the generator's settings")
    numbers = {name: _parsed(name, value) for name, value in options.items() if name in _PARSERS}
    for name in ("rows", "seed", "interval", "size"):
        if numbers.get(name, 0) < 0:
            raise UsageError(f'the generator\'s "{name}" must not be negative')
    rate = _rate(options["rate"]) if "rate" in options else None
    return GeneratorSettings(columns=_column_settings(columns), rate=rate, **numbers)


def _rate(value: object) -> float:
    try:
        rate = number_of(str(value))
    except Unfit as unfit:
        raise UsageError(f'the generator\'s "rate": {unfit}') from None
    if not 0 < rate < math.inf:
        raise UsageError('the generator\'s "rate" must be a positive number of rows per second')
    return rate


def _parsed(name: str, value: object) -> int:
    try:
        return _PARSERS[name](str(value).replace("_", "") if name == "rows" else str(value))
    except Unfit as unfit:
        raise UsageError(f'the generator\'s "{name}": {unfit}') from None


def _column_settings(columns: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    checked: dict[str, Mapping[str, object]] = {}
    for column, table in columns.items():
        if not isinstance(table, Mapping):
            raise UsageError(f'expected a table for the generated column "{column}"')
        for name in table:
            if name not in COLUMN_SETTINGS:
                near = suggest(name, COLUMN_SETTINGS) or ""
                hint = f"settings are: {listing(COLUMN_SETTINGS)}. {near}".strip()
                raise UsageError(f'unknown setting "{name}" of column "{column}"', hint=hint)
        checked[column] = table
    return checked
