"""All histories of what is known: an oracle that knows nothing of cells, masks or bounds.

Streams have a few ticks and a few values. At an instant the rows up to it are known, and the
silence of all ticks before it; a history fills every other tick with a row or with nothing. What
a view claims must hold in each of them, and its values are those of a plain function of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import millstream

Row = tuple[Any, ...]
#: Rows of streams, by tick: a history, or what is known of one.
Rows = Mapping[str, Mapping[int, Row]]
#: What a view has: by key, the values of its other columns.
Answer = dict[Row, dict[str, Any]]


def counted(row: Mapping[str, Any], open_ticks: Mapping[str, int]) -> dict[str, Any]:
    """A row with the bounds that open ticks give, where it has no others."""
    made = dict(row)
    for column in row:
        bound, is_per_tick, stream = column.partition("_per_")
        if is_per_tick and row[bound] is None and row[column] is not None:
            value = row[bound.rpartition("_")[0]]
            if value is not None:
                before = value if made[bound] is None else made[bound]
                made[bound] = before + row[column] * open_ticks[stream]
    return made


@dataclass(frozen=True)
class Case:
    """A program whose streams end at a tick, and what its one view is in plain Python."""

    text: str
    #: For every stream the rows that a tick may hold, without the tick.
    domains: Mapping[str, Sequence[Row]]
    until: int
    view: str
    key: tuple[str, ...]
    answer: Callable[[Rows], Answer]

    def given(self, rows: Rows, inputs: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
        return {
            stream: [
                dict(zip(names, (t, *row), strict=True))
                for t, row in sorted(rows.get(stream, {}).items())
            ]
            for stream, names in inputs.items()
        }

    def states(self, rows: Rows, engine: str) -> dict[int, list[dict[str, Any]]]:
        """The rows of the view at every instant from the first tick to beyond the last."""
        compiled = millstream.compile(text=self.text, language="smile")
        inputs = {i.name: i.type.schema.names for i in compiled.program.inputs if i.values is None}
        finished = compiled.run(self.given(rows, inputs), engine=engine)
        changes: list[dict[str, Any]] = finished.rows(self.view)
        names = [n for n in (changes[0] if changes else {}) if n not in ("_time", "_weight")]
        states: dict[int, list[dict[str, Any]]] = {}
        for instant in range(1, self.until + 2):
            bag: dict[Row, int] = {}
            for change in changes:
                if change["_time"] <= instant:
                    row = tuple(change[n] for n in names)
                    bag[row] = bag.get(row, 0) + change["_weight"]
            assert all(count >= 0 for count in bag.values())
            there = [row for row, count in bag.items() for _ in range(count)]
            states[instant] = [dict(zip(names, row, strict=True)) for row in there]
        return states

    def histories(self, rows: Rows, instant: int) -> Iterator[Rows]:
        """All ways in which it may turn out, seen from an instant."""
        slots: list[tuple[str, int]] = []
        known: dict[str, dict[int, Row]] = {}
        for stream in self.domains:
            given = rows.get(stream, {})
            known[stream] = {t: row for t, row in given.items() if t <= instant}
            open_ticks = range(instant, self.until + 1)
            slots += [(stream, t) for t in open_ticks if t not in known[stream]]
        choices = [(None, *self.domains[stream]) for stream, _ in slots]
        for chosen in itertools.product(*choices):
            made = {stream: dict(ticks) for stream, ticks in known.items()}
            for (stream, tick), row in zip(slots, chosen, strict=True):
                if row is not None:
                    made[stream][tick] = row
            yield made

    def check(self, rows: Rows, engine: str = "reference") -> None:
        """Everything that is claimed, at every instant, against every history."""
        states = self.states(rows, engine)
        before: dict[Row, dict[str, Any]] = {}
        for instant, shown in states.items():
            # The silence of a tick is known an instant later.
            open_ticks = dict.fromkeys(self.domains, self.until + 1 - instant)
            by_key = {tuple(row[k] for k in self.key): counted(row, open_ticks) for row in shown}
            assert len(by_key) == len(shown), "a key has one row"
            self._check_now(rows, instant, by_key)
            self._check_order(before, by_key)
            before = {**before, **by_key}
            for history in self.histories(rows, instant):
                self._check_claims(by_key, self.answer(history), history)
        assert all(row["_final"] for row in states[self.until + 1])

    def _check_now(self, rows: Rows, instant: int, shown: Mapping[Row, dict[str, Any]]) -> None:
        known = {
            stream: {t: row for t, row in ticks.items() if t <= instant}
            for stream, ticks in rows.items()
        }
        expected = self.answer({stream: known.get(stream, {}) for stream in self.domains})
        values = {
            key: {name: row[name] for name in expected.get(key, {})} for key, row in shown.items()
        }
        assert values == expected, (instant, rows)

    @staticmethod
    def _check_order(
        before: Mapping[Row, dict[str, Any]], now: Mapping[Row, dict[str, Any]]
    ) -> None:
        """A later row has no fewer steps, no wider range and no other final value."""
        for key, old in before.items():
            new = now.get(key)
            if old["_final"]:
                assert new == old, "what is final stays"
            if new is None:
                continue
            assert new["_steps"] >= old["_steps"]
            for name in old:
                if name.endswith("_low") and old[name] is not None:
                    assert new[name] is not None and new[name] >= old[name]
                if name.endswith("_high") and old[name] is not None:
                    assert new[name] is not None and new[name] <= old[name]

    @staticmethod
    def _check_claims(shown: Mapping[Row, dict[str, Any]], truth: Answer, history: Rows) -> None:
        for key, row in shown.items():
            if row["_final"]:
                assert key in truth, (key, history)
                assert all(row[name] == value for name, value in truth[key].items()), history
            for name, value in truth.get(key, {}).items():
                low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
                if value is not None:
                    assert low is None or low <= value, (key, name, row, history)
                    assert high is None or value <= high, (key, name, row, history)
