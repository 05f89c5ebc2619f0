"""The words of a judge, remembered: what changes is mostly one value of many.

A requirement that fails is put into words once for the values that it shows, however often
they come back: as a deletion of what was inserted, for another row, or beside others that
have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.calculus.base import columns_read_by
from millstream.calculus.judging import Judge, Shown
from millstream.calculus.terms import Column
from millstream.calculus.types import Schema, Value
from millstream.meaning.judging import doubts, failure_of, places_of, shown_value

_MOST_REMEMBERED = 1 << 18

#: The columns of `read`, each with its values for some rows.
Columns = Sequence[Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """What fails together: which columns it shows, and the places."""

    number: int
    columns: tuple[int, ...]
    places: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A value that is shown, with the place of its column if it is just that."""

    number: int
    shown: Shown
    column: int | None


class Speech:
    """Mutable: what has been said before, by what it depends on."""

    def __init__(self, judge: Judge, schema: Schema) -> None:
        self.requirements = judge.requirements
        shown = [columns_read_by(s.term for s in one.shown) for one in judge.requirements]
        asked = [columns_read_by(s.term for s in one.asked) for one in judge.requirements]
        wanted = frozenset[str]().union(*shown, *asked)
        self.read = tuple(n for n in schema.names if n in wanted)
        place = {name: n for n, name in enumerate(self.read)}
        self.shown = [tuple(sorted(place[name] for name in names)) for names in shown]
        self.shown_columns = frozenset(c for columns in self.shown for c in columns)
        different = {
            s: n for n, s in enumerate({s for one in judge.requirements for s in one.shown})
        }
        self.spoken = [
            [Spoken(different[s], s, place[s.term.name] if isinstance(s.term, Column) else None)
             for s in one.shown]
            for one in judge.requirements
        ]  # fmt: skip
        #: A column has few values that fail, and most of them stay.
        self.values: dict[tuple[int, Value], str] = {}
        self.patterns: dict[tuple[int, ...], Pattern] = {}
        self.whole: dict[tuple[Value, ...], str] = {}
        self.said: dict[tuple[Value, ...], str] = {}
        self.doubted: dict[tuple[tuple[int, ...], tuple[bool, ...]], str] = {}

    def failures(self, failed: list[int], columns: Columns, row: int) -> tuple[str, str]:
        """The places of what fails in a row, and the reasons."""
        pattern = self._pattern(tuple(failed))
        key = (pattern.number, *[columns[c][row] for c in pattern.columns])
        found = self.whole.get(key)
        if found is None:
            found = "; ".join([self._failure(n, columns, row) for n in failed])
            if len(self.whole) >= _MOST_REMEMBERED:
                self.whole.clear()
            self.whole[key] = found
        return pattern.places, found

    def _pattern(self, failed: tuple[int, ...]) -> Pattern:
        found = self.patterns.get(failed)
        if found is None:
            columns = sorted({c for n in failed for c in self.shown[n]})
            places = places_of([self.requirements[n] for n in failed])
            if len(self.patterns) >= _MOST_REMEMBERED:
                self.patterns.clear()
                self.whole.clear()  # its keys are numbers of patterns
            found = Pattern(len(self.patterns), tuple(columns), places)
            self.patterns[failed] = found
        return found

    def _failure(self, number: int, columns: Columns, row: int) -> str:
        values = tuple([columns[c][row] for c in self.shown[number]])
        key = (number, *values)
        found = self.said.get(key)
        if found is None:
            words = [self._value(one, number, values, columns, row) for one in self.spoken[number]]
            found = failure_of(self.requirements[number], words)
            if len(self.said) >= _MOST_REMEMBERED:
                self.said.clear()
            self.said[key] = found
        return found

    def _value(
        self, one: Spoken, number: int, values: tuple[Value, ...], columns: Columns, row: int
    ) -> str:
        if one.column is None:
            names = dict(zip((self.read[c] for c in self.shown[number]), values, strict=True))
            return f"{one.shown.label} = {shown_value(one.shown, names)}"
        value = columns[one.column][row]
        key = (one.number, value)
        found = self.values.get(key)
        if found is None:
            names = {self.read[one.column]: value}
            found = f"{one.shown.label} = {shown_value(one.shown, names)}"
            if len(self.values) >= _MOST_REMEMBERED:
                self.values.clear()
            self.values[key] = found
        return found

    def doubts(self, undecided: list[int], columns: Columns, row: int) -> tuple[str, str]:
        """What is not known in a row; it depends on nothing else."""
        key = (tuple(undecided), tuple([column[row] is None for column in columns]))
        found = self.doubted.get(key)
        if found is None:
            names = {name: column[row] for name, column in zip(self.read, columns, strict=True)}
            found = doubts([self.requirements[n] for n in undecided], names)
            if len(self.doubted) >= _MOST_REMEMBERED:
                self.doubted.clear()
            self.doubted[key] = found
        return "", found
