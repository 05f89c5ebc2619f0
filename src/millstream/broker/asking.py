"""What a subscriber wants to see of a view: which rows, and which columns of them."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from millstream.broker.evaluate import Changes
from millstream.broker.records import plain
from millstream.calculus.terms import Call, Column, Literal, Term
from millstream.calculus.types import (
    BOOLEAN,
    INT64_MAX,
    INT64_MIN,
    TIME_COLUMN,
    Kind,
    Row,
    Schema,
    Value,
)
from millstream.errors import CheckError, Fault, UsageError
from millstream.languages.served import FINAL_COLUMN, MASK_COLUMN, CountedBound, ServedView
from millstream.meaning.scalars import evaluate
from millstream.queries.read import QueryReader
from millstream.queries.scope import Names, Seen, Visible
from millstream.queries.terms import asks, term_of
from millstream.queries.tokens import Cursor, Stop, tokens_of
from millstream.source import Source

#: A condition is never longer.
LONGEST = 4096
#: Comparisons, what they are from the other side, and the kinds of values that Python knows.
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PLAIN = frozenset({Kind.INTEGER, Kind.TIME, Kind.TEXT})


@dataclass(frozen=True)
class AskedRows:
    """A selection and a projection of a view."""

    view: ServedView
    where: Term | None = None
    #: The condition as it was written.
    text: str = ""
    final_only: bool = False
    has_ranges: bool = False
    has_mask: bool = False

    def shown(self, changes: Changes) -> Changes:
        """The changes that can be seen of some; what differs elsewhere only is none."""
        made: Changes = {}
        for row, weight in changes.items():
            if self.lets_in(row):
                seen = self.seen(row)
                made[seen] = made.get(seen, 0) + weight
        return {row: weight for row, weight in made.items() if weight}

    def seen(self, row: Row) -> Row:
        """The columns of a row that are asked for."""
        return tuple([row[n] for n in self.columns])

    @cached_property
    def digest(self) -> str:
        """What tells this question from others of the view."""
        said = repr((self.view.name, self.text, self.final_only, self.has_ranges, self.has_mask))
        return hashlib.sha256(said.encode()).hexdigest()[:8]

    @cached_property
    def columns(self) -> list[int]:
        return [n for n, name in enumerate(self.view.schema.names) if self._has(name)]

    @cached_property
    def _names(self) -> list[str]:
        names = self.view.schema.names  # asked once: it is made anew each time
        return [names[n] for n in self.columns]

    @cached_property
    def _tests(self) -> list[Callable[[Row], bool]]:
        """What must hold of a row that is wanted."""
        tests = [_test(term, self.view.schema) for term in _conditions(self.where)]
        if self.final_only:
            at = self.view.schema.index(FINAL_COLUMN)
            tests.append(lambda row: row[at] is True)
        return tests

    @cached_property
    def _pinned(self) -> dict[int, Value]:
        """The columns that must have a certain value, by which those who ask can be found."""
        made: dict[int, Value] = {}
        for term in _conditions(self.where):
            compared = _compared(term, self.view.schema)
            if compared is not None and compared[1] == "==":
                made[compared[0]] = compared[2]
        return dict(sorted(made.items()))

    @property
    def pinned_columns(self) -> tuple[int, ...]:
        return tuple(self._pinned)

    @property
    def pinned_values(self) -> tuple[Value, ...]:
        return tuple(self._pinned.values())

    def _has(self, name: str) -> bool:
        if name in self.view.bounds:
            return self.has_ranges
        return self.has_mask or name != MASK_COLUMN

    def lets_in(self, row: Row) -> bool:
        for test in self._tests:  # noqa: SIM110 - a generator costs more than the tests
            if not test(row):
                return False
        return True

    @cached_property
    def counted(self) -> tuple[CountedBound, ...]:
        """The bounds that open ticks give, if they are asked for."""
        return self.view.counted if self.has_ranges else ()

    def open_ticks(self, known: Mapping[str, int]) -> dict[str, int]:
        """Of all numbers of open ticks those by which bounds are counted."""
        if not self.counted:
            return {}
        streams = {stream for one in self.counted for stream in one.per_tick}
        return {stream: known[stream] for stream in sorted(streams & known.keys())}

    def bounded(self, seen: Changes, open_ticks: Mapping[str, int]) -> Changes:
        """Rows with the bounds that open ticks give, while they have no others."""
        if not any(one.per_tick.keys() <= open_ticks.keys() for one in self.counted):
            return seen
        made: Changes = {}
        for row, weight in seen.items():
            counted = self._bounded(row, open_ticks)
            made[counted] = made.get(counted, 0) + weight
        return made

    def _bounded(self, seen: Row, open_ticks: Mapping[str, int]) -> Row:
        at = {name: n for n, name in enumerate(self._names)}
        values = list(seen)
        for one in self.counted:
            value = values[at[one.value]]
            more = [(values[at[c]], open_ticks.get(s)) for s, c in one.per_tick.items()]
            if values[at[one.bound]] is not None or not isinstance(value, int):
                continue
            gains = [g * n for g, n in more if isinstance(g, int) and n is not None]
            bound = value + sum(gains)
            if len(gains) == len(more) and INT64_MIN < bound <= INT64_MAX:
                values[at[one.bound]] = bound
        return tuple(values)

    def record(self, seen: Row) -> dict[str, Any]:
        """A row for JSON; the mask says whether it is in for ever (T) or for now (t)."""
        made = {n: plain(v) for n, v in zip(self._names, seen, strict=True)}
        if MASK_COLUMN in made:
            made["_mask"] = "T" if made.pop(MASK_COLUMN) else "t"
        return made

    def records(self, rows: Changes) -> list[dict[str, Any]]:
        return [self.record(row) for row, count in rows.items() for _ in range(count)]

    def changes(self, rows: Changes) -> list[dict[str, Any]]:
        """What went comes first, so that a key is never there twice."""
        ordered: Iterable[tuple[Row, int]] = sorted(rows.items(), key=lambda one: one[1])
        return [{"weight": weight, "row": self.record(row)} for row, weight in ordered]


def asked(
    view: ServedView, where: str | None = None, final: str | None = None, *,
    has_ranges: bool = False, has_mask: bool = False,
) -> AskedRows:  # fmt: skip
    """What is asked for in words, or all that is wrong with it."""
    if final not in (None, "all", "only"):
        raise UsageError(f'"{final[:40]}" is neither all nor only', hint="write final=only")
    if final == "only" and not view.can_be_final:
        hint = "a stream with UNTIL, a WINDOW or a key that is a tick can make rows final"
        raise UsageError(f"no row of {view.name} can ever become final", hint=hint)
    term = None if where is None else condition(where, view.schema)
    return AskedRows(view, term, where or "", final == "only", has_ranges, has_mask)


def _conditions(term: Term | None) -> Iterator[Term]:
    """All that must be true; nothing else is asked of a condition than whether it is."""
    if isinstance(term, Call) and term.function == "and":
        for part in term.args:
            yield from _conditions(part)
    elif term is not None:
        yield term


def _compared(term: Term, schema: Schema) -> tuple[int, str, Value] | None:
    """A column, a comparison and a value, where Python compares them as the language does."""
    if not isinstance(term, Call) or term.function not in _COMPARISONS:
        return None
    first, second, comparison = *term.args, term.function
    if isinstance(first, Literal):
        first, second, comparison = second, first, _TURNED[comparison]
    if not (isinstance(first, Column) and isinstance(second, Literal)):
        return None
    is_plain = first.type.kind is second.type.kind and first.type.kind in _PLAIN
    if not is_plain or second.value is None:
        return None
    return schema.index(first.name), comparison, second.value


def _test(term: Term, schema: Schema) -> Callable[[Row], bool]:
    """Whether a condition is true of a row; one that is null is not."""
    compared = _compared(term, schema)
    if compared is not None:
        at, comparison, value = compared
        holds = _COMPARISONS[comparison]
        return lambda row: row[at] is not None and holds(row[at], value)
    names = schema.names
    return lambda row: evaluate(term, dict(zip(names, row, strict=True))) is True


def condition(text: str, schema: Schema) -> Term:
    """A condition as WHERE has it, over the columns of a view."""
    source = Source("where", text[: LONGEST + 1])
    if len(text) > LONGEST:
        raise UsageError(f"a condition has at most {LONGEST:,} characters")
    faults: list[Fault] = []
    try:
        cursor = Cursor(source, tokens_of(source, hashed=True), faults)
        expression = QueryReader(cursor).terms.term()
        if not cursor.is_done:
            cursor.expected("the end of the condition")
        if asks(expression):
            raise UsageError("a condition on rows cannot ask other views")
        seen = tuple(Seen(f.name, f.name, f.type) for f in schema if f.name != TIME_COLUMN)
        return term_of(expression, Names((Visible("view", seen),)), schema, faults, wanted=BOOLEAN)
    except Stop:
        raise CheckError(faults) from None
