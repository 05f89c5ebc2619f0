"""What a run gives back to a Python program: rows, tables of Arrow, pandas and Polars, the state.

>>> import millstream
>>> trades = millstream.stream("trades", symbol="text", volume="integer")
>>> totals = trades.unbounded().aggregate(by="symbol", volume=("sum", lambda r: r.volume))
>>> job = millstream.compile_flow(totals=totals)
>>> result = job.run(
...     {
...         "trades": [
...             {"_time": 1, "symbol": "A", "volume": 3},
...             {"_time": 2, "symbol": "A", "volume": 4},
...         ]
...     }
... )
>>> result.state("totals")
[{'symbol': 'A', 'volume': 7}]
>>> result.to_arrow("totals").num_rows
3
"""

from __future__ import annotations

import html
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from millstream.calculus.types import TIME_COLUMN, WEIGHT_COLUMN, QueueType, Value
from millstream.engine.job import Report
from millstream.errors import UsageError, listing, suggest
from millstream.plan.batch import Batch
from millstream.values.instants import micros_of, parse_time

#: How many rows of an output a notebook shows.
SHOWN_ROWS = 20

#: What is called with each row of an output, or change of a table, as a dictionary.
OnChange = Callable[[dict[str, Value]], object]


@dataclass(frozen=True)
class Finished:
    """A run that has come to its end. In a notebook it shows its outputs as tables.

    Where a method takes the name of an output, the name may be left out if there is only one.
    """

    report: Report
    writers: Mapping[str, Any]
    types: Mapping[str, QueueType] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The outputs that were kept in memory."""
        return [name for name, writer in self.writers.items() if hasattr(writer, "batches")]

    def rows(self, output: str | None = None) -> list[dict[str, Value]]:
        """The rows of an output that was kept in memory, as dictionaries.

        A row has its `_time` in microseconds; a change of a table has a `_weight` too, +1 where a
        row comes and -1 where it goes.
        """
        return [row for batch in self._batches(output) for row in as_dictionaries(batch)]

    def state(
        self, output: str | None = None, as_of: int | datetime | str | None = None
    ) -> list[dict[str, Value]]:
        """The rows of a table as it stands at the end, or stood at a time."""
        rows: list[dict[str, Value]] = self._standing(output, as_of).to_pylist()
        return rows

    def to_arrow(
        self,
        output: str | None = None,
        *,
        state: bool = False,
        as_of: int | datetime | str | None = None,
    ) -> Any:
        """An output as a table of Arrow: its rows or changes, or with `state` what stands.

        Times are timestamps in UTC.
        """
        from millstream.connectors.arrow_out import arrow_table

        if state or as_of is not None:
            return self._standing(output, as_of, is_plain=False)
        name = self._name(output)
        return arrow_table(self._batches(name), self.types[name])

    def to_pandas(
        self,
        output: str | None = None,
        *,
        state: bool = False,
        as_of: int | datetime | str | None = None,
    ) -> Any:
        """The same as a data frame of pandas."""
        needed("pandas", "to_pandas()")
        return self.to_arrow(output, state=state, as_of=as_of).to_pandas()

    def to_polars(
        self,
        output: str | None = None,
        *,
        state: bool = False,
        as_of: int | datetime | str | None = None,
    ) -> Any:
        """The same as a data frame of Polars."""
        polars = needed("polars", "to_polars()")
        return polars.from_arrow(self.to_arrow(output, state=state, as_of=as_of))

    def __repr__(self) -> str:
        counts = (f"{name} {count:,} rows" for name, count in self.report.outputs.items())
        return f"<{', '.join(counts) or 'no outputs'}>"

    def _repr_html_(self) -> str:
        return "".join(self._shown(name) for name in self.names) or html.escape(repr(self))

    def _shown(self, name: str) -> str:
        is_relation = self.types[name].is_relation
        table = self.to_arrow(name, state=is_relation)
        word = "rows now" if is_relation else "rows"
        return html_table(f"{name}: {table.num_rows:,} {word}", table)

    def _standing(
        self, output: str | None, as_of: int | datetime | str | None, *, is_plain: bool = True
    ) -> Any:
        from millstream.connectors.arrow_out import arrow_table, standing_table

        name = self._name(output)
        if not self.types[name].is_relation:
            raise UsageError(f'"{name}" is a stream, which has no state', hint="use rows()")
        changes = arrow_table(self._batches(name), self.types[name], is_plain=is_plain)
        return standing_table(changes, None if as_of is None else _instant(as_of))

    def _name(self, output: str | None) -> str:
        names = self.names
        if output is None:
            if len(names) != 1:
                hint = f"outputs in memory are: {listing(names)}"
                raise UsageError("say which output is meant", hint=hint)
            return names[0]
        if output not in self.writers:
            hint = f"outputs are: {listing(self.writers)}. {suggest(output, self.writers) or ''}"
            raise UsageError(f'there is no output "{output}"', hint=hint.strip())
        if output not in names:
            raise UsageError(f'the output "{output}" was not kept in memory')
        return output

    def _batches(self, output: str | None) -> list[Batch]:
        batches: list[Batch] = self.writers[self._name(output)].batches
        return batches


def _instant(moment: int | datetime | str) -> int:
    """A moment as it may be given: also as text in ISO 8601."""
    micros = parse_time(moment) if isinstance(moment, str) else micros_of(moment)
    if micros is None:
        raise UsageError(f'"{moment}" is not a time', hint="such as 2026-01-05T09:30:00Z")
    return micros


def as_dictionaries(batch: Batch) -> Iterator[dict[str, Value]]:
    """The rows of a batch with their times, and with their weights if they are changes."""
    weights: Sequence[int | None] = [None] * len(batch)
    if batch.weight is not None:
        weights = batch.weight.tolist()
    names = batch.schema.names
    for time, weight, row in zip(batch.time.tolist(), weights, batch.rows(), strict=True):
        head: dict[str, Value] = {TIME_COLUMN: time}
        if weight is not None:
            head[WEIGHT_COLUMN] = weight
        yield head | dict(zip(names, row, strict=True))


class CallingWriter:
    """Mutable: calls a function with each row, and hands rows on to another writer."""

    def __init__(self, on_change: OnChange, other: Any) -> None:
        self._on_change = on_change
        self._other = other

    def __getattr__(self, name: str) -> Any:
        # Engines ask writers what they can do, and it is the other who does it.
        return getattr(self._other, name)

    def write(self, batch: Batch) -> None:
        self._other.write(batch)
        for row in as_dictionaries(batch):
            self._on_change(row)

    def close(self) -> None:
        self._other.close()

    def abort(self) -> None:
        self._other.abort()


def html_table(title: str, table: Any) -> str:
    """A table of Arrow for a notebook: the last rows, and how many there are."""
    shown = table.slice(max(0, table.num_rows - SHOWN_ROWS)).to_pylist()
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in shown
    )
    more = "" if table.num_rows <= SHOWN_ROWS else f" (the last {SHOWN_ROWS})"
    caption = f"<caption>{html.escape(title + more)}</caption>"
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def needed(module: str, what: str) -> Any:
    """A library that only some calls need."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise UsageError(f"{what} needs {module}", hint=f"pip install {module}") from None


def _cell(value: object) -> str:
    return "" if value is None else html.escape(str(value))
