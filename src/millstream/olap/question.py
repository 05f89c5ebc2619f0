"""A question to a cube, from JSON: read whole, with everything that is wrong with it at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.cube import TIME_OF_CELL, Cubify
from millstream.calculus.grains import GRAINS, Grain
from millstream.calculus.types import Kind, Schema, Type, Value
from millstream.errors import Fault, UsageError, listing, suggest
from millstream.values.instants import parse_time

#: Questions that are longer are refused before they are looked at.
MOST_NAMES, MOST_VALUES, LONGEST_TEXT = 100, 10_000, 10_000
#: The column that says how many members a row of others stands for.
OTHERS = "others"


class QuestionError(UsageError):
    """A question means nothing: each fault says where in it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What the members of an attribute must be: some values, a range, or like a pattern."""

    attribute: str
    values: tuple[Value, ...] | None = None
    low: Value = None
    high: Value = None
    like: str | None = None
    is_not: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    name: str
    is_falling: bool


@dataclass(frozen=True)
class Question:
    """What is asked; `last` and `earlier` count grains of the cube."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    measures: tuple[str, ...]
    grain: Grain | None
    where: tuple[Condition, ...]
    first: int | None = None
    end: int | None = None
    last: int | None = None
    as_of: int | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    has_others: bool = False
    has_totals: bool = False
    share: tuple[str, ...] = ()
    earlier: int | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """All that the answering vertex must have."""
        asked = (*self.rows, *self.columns, *(c.attribute for c in self.where))
        return tuple(dict.fromkeys(asked))

    @property
    def derived(self) -> tuple[str, ...]:
        """The columns of an answer beside attributes, time and measures."""
        made = [f"{n}_{word}" for n in self.measures for word in ("before", "change")]
        shares = [f"{n}_share" for n in self.share]
        others = [OTHERS] if self.has_others else []
        return (*(made if self.earlier is not None else ()), *shares, *others)


def read_question(text: Any, cube: Cubify, schema: Schema) -> Question:
    """The question that a JSON object asks; raises all that is wrong with it."""
    reader = _Reader(cube, schema)
    question = reader.question(text)
    if reader.faults or question is None:
        raise QuestionError(reader.faults)
    return question


KEYS = (
    "rows", "columns", "measures", "grain", "where", "time", "as_of", "order", "limit", "others",
    "totals", "share", "compare",
)  # fmt: skip


@dataclass
class _Reader:
    """Mutable: collects faults, each with its place in the question."""

    cube: Cubify
    schema: Schema
    faults: list[Fault] = field(default_factory=list)

    def fail(self, message: str, place: str, hint: str | None = None) -> None:
        self.faults.append(Fault(message, None, hint, place))

    def unknown(self, what: str, name: str, known: Sequence[str], place: str) -> None:
        hint = f"there are: {listing(known, 20)}. {suggest(name, known) or ''}".strip()
        self.fail(f'unknown {what} "{name[:80]}"', place, hint)

    def question(self, text: Any) -> Question | None:
        if not isinstance(text, dict):
            self.fail("expected an object", "question", 'write {"rows": ["..."]}')
            return None
        for key in text:
            if key not in KEYS:
                self.unknown("key", key, KEYS, "question")
        rows = self.names(text, "rows", self.cube.attributes, "attribute")
        columns = self.names(text, "columns", self.cube.attributes, "attribute")
        for name in columns:
            if name in rows:
                self.fail(f'"{name}" is in the rows and in the columns', "columns")
        measures = [m.name for m in self.cube.measures]
        chosen = self.names(text, "measures", measures, "measure")
        grain = self.grain(text.get("grain"))
        first, end, last = self.time(text.get("time"))
        limit = self.limit(text, rows)
        made = Question(
            rows, columns, chosen if "measures" in text else tuple(measures), grain,
            self.where(text.get("where")), first, end, last, self.as_of(text.get("as_of")),
            self.order(text, rows, columns, grain), limit, self.flag(text, "others"),
            self.flag(text, "totals"), self.share(text, rows), self.compare(text, grain),
        )  # fmt: skip
        for name in made.derived:
            if name in (*rows, *columns, *made.measures):
                hint = "ask for fewer of them at once"
                self.fail(f'the answer would have two columns "{name}"', "question", hint)
        return made

    # --- names ---

    def names(
        self, text: Mapping[str, Any], key: str, known: Sequence[str], what: str
    ) -> tuple[str, ...]:
        names: list[str] = []
        for number, name in enumerate(self.texts(text, key, known[0] if known else "...")):
            if name not in known:
                self.unknown(what, name, known, f"{key}[{number}]")
            elif name in names:
                self.fail(f'"{name}" is there twice', f"{key}[{number}]")
            else:
                names.append(name)
        return tuple(names)

    def texts(self, text: Mapping[str, Any], key: str, example: str) -> list[str]:
        """A list of texts as it was written; nothing of it if anything else stands there."""
        given, hint = text.get(key, []), f'write "{key}": ["{example}"]'
        if not isinstance(given, list):
            self.fail("expected a list of names", key, hint)
            return []
        if len(given) > MOST_NAMES:
            self.fail(f"more than {MOST_NAMES} names", key)
            return []
        strange = [n for n, name in enumerate(given) if not isinstance(name, str)]
        for number in strange:
            self.fail("expected a name", f"{key}[{number}]", hint)
        return [] if strange else given

    def flag(self, text: Mapping[str, Any], key: str) -> bool:
        value = text.get(key, False)
        if not isinstance(value, bool):
            self.fail("expected true or false", key)
        return value is True

    def limit(self, text: Mapping[str, Any], rows: tuple[str, ...]) -> int | None:
        limit = text.get("limit")
        if limit is None:
            if text.get("others") is True:
                self.fail("others are those that a limit leaves out", "others", 'add "limit": 10')
            return None
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            self.fail("expected a whole number above 0", "limit")
            return None
        if not rows:
            self.fail("a limit is of the members in the rows, and there are none", "limit")
        return limit

    def share(self, text: Mapping[str, Any], rows: tuple[str, ...]) -> tuple[str, ...]:
        adding = [m.name for m in self.cube.measures if m.function in ("sum", "count")]
        given = text.get("share", [])
        if isinstance(given, bool):
            names = tuple(adding) if given else ()
        else:
            names = self.names(text, "share", adding, "sum or count")
        if names and not rows:
            self.fail("a share is of the parent of a row, and there are no rows", "share")
        return names

    def order(
        self, text: Mapping[str, Any], rows: tuple[str, ...], columns: tuple[str, ...],
        grain: Grain | None,
    ) -> tuple[Order, ...]:  # fmt: skip
        known = [*rows, *columns, *([TIME_OF_CELL] if grain else [])]
        known += [m.name for m in self.cube.measures]
        made: list[Order] = []
        for number, name in enumerate(self.texts(text, "order", "-total")):
            is_falling = name not in known and name.startswith("-")
            chosen = name.removeprefix("-") if is_falling else name
            if chosen in known:
                made.append(Order(chosen, is_falling))
            else:
                self.unknown("name to order by", chosen, known, f"order[{number}]")
        return tuple(made)

    # --- members ---

    def where(self, given: Any) -> tuple[Condition, ...]:
        if given is None:
            return ()
        if not isinstance(given, dict) or len(given) > MOST_NAMES:
            self.fail("expected an object", "where", 'write "where": {"attribute": "member"}')
            return ()
        made = []
        for name, wanted in given.items():
            place = f"where.{name[:80]}"
            if name not in self.cube.attributes:
                self.unknown("attribute", name, self.cube.attributes, place)
                continue
            condition = self.condition(name, wanted, place)
            if condition is not None:
                made.append(condition)
        return tuple(made)

    def condition(self, name: str, wanted: Any, place: str) -> Condition | None:
        if not isinstance(wanted, dict):
            values = self.values(name, wanted, place)
            return None if values is None else Condition(name, values)
        known = ("from", "to", "like", "not")
        strange = [key for key in wanted if key not in known]
        for key in strange:
            self.unknown("key", key, known, place)
        if strange or not wanted:
            if not wanted:
                self.fail("this says nothing", place, f"it can have: {listing(known)}")
            return None
        if len(wanted) > 1 and not wanted.keys() <= {"from", "to"}:
            self.fail("like and not stand alone", place)
            return None
        if "not" in wanted:
            values = self.values(name, wanted["not"], f"{place}.not")
            return None if values is None else Condition(name, values, is_not=True)
        if "like" in wanted:
            return self.like(name, wanted["like"], f"{place}.like")
        low, high = (self.value(name, wanted.get(k), f"{place}.{k}") for k in ("from", "to"))
        return Condition(name, low=low, high=high)

    def like(self, name: str, pattern: Any, place: str) -> Condition | None:
        if self.schema[name].kind is not Kind.TEXT:
            self.fail(f'"{name}" is no text', place, "write from and to, or a list")
        elif not isinstance(pattern, str) or len(pattern) > LONGEST_TEXT:
            self.fail("expected a pattern", place, "% stands for any text, _ for a character")
        else:
            return Condition(name, like=pattern)
        return None

    def values(self, name: str, wanted: Any, place: str) -> tuple[Value, ...] | None:
        several = wanted if isinstance(wanted, list) else [wanted]
        if len(several) > MOST_VALUES:
            self.fail(f"more than {MOST_VALUES:,} members", place)
            return None
        before = len(self.faults)
        values = tuple(self.value(name, one, place) for one in several)
        return None if len(self.faults) > before else values

    def value(self, name: str, value: Any, place: str) -> Value:
        """A member as the type of its attribute has it."""
        type_ = self.schema[name]
        if value is None:
            return None
        fits, made = _fitted(value, type_)
        if not fits:
            self.fail(f'expected "{name}" to be {_A[type_.kind]}', place)
        return made

    # --- time ---

    def grain(self, given: Any) -> Grain | None:
        if given is None:
            return None
        if not isinstance(given, str):
            self.fail("expected a grain", "grain", 'write "grain": "Minute", or "5 Minutes"')
            return None
        grain = grain_named(given)
        finest, window = self.cube.grain, self.cube.window
        if grain is None:
            self.unknown("grain", given, GRAINS, "grain")
        elif not finest.is_within(grain):
            message = f"a grain of {grain} is finer than TimeGrain, or not a multiple of it"
            self.fail(message, "grain", f"TimeGrain is {finest}")
        elif grain.longest > (window + 1) * finest.longest:
            message = f"a grain of {grain} is longer than the c-window"
            self.fail(message, "grain", f"CWindow is {window} times {finest}")
        else:
            return grain
        return None

    def instant(self, given: Any, place: str) -> int | None:
        if isinstance(given, str) and len(given) < 100:
            given = parse_time(given)
        if isinstance(given, bool) or not isinstance(given, int) or abs(given) > 2**62:
            hint = "write 2026-01-31T12:00:00Z, or microseconds"
            self.fail("expected a time", place, hint)
            return None
        return given

    def as_of(self, given: Any) -> int | None:
        return None if given is None else self.instant(given, "as_of")

    def time(self, given: Any) -> tuple[int | None, int | None, int | None]:
        """The first partition, the one after the last, and how many are asked from the end."""
        if given is None:
            return None, None, None
        known = ("from", "to", "last")
        if not isinstance(given, dict):
            self.fail("expected an object", "time", 'write "time": {"last": "5 Minutes"}')
            return None, None, None
        for key in given:
            if key not in known:
                self.unknown("key", key, known, "time")
        last = self.count(given["last"], "time.last") if "last" in given else None
        if last is not None and ("from" in given or "to" in given):
            self.fail("last stands without from and to", "time")
        return self.edge(given, "from"), self.edge(given, "to"), last

    def edge(self, given: Mapping[str, Any], key: str) -> int | None:
        """The partition that begins at a time; of others a cube cannot tell parts apart."""
        if given.get(key) is None:
            return None
        time = self.instant(given[key], f"time.{key}")
        if time is None:
            return None
        index = int(self.cube.grain.index(time))
        if int(self.cube.grain.start(index)) != time:
            hint = f"TimeGrain is {self.cube.grain}: give a time at which one begins"
            self.fail("this time lies within a partition", f"time.{key}", hint)
        return index

    def count(self, given: Any, place: str) -> int | None:
        """So many partitions, as a number or as grains: `5 Minutes`."""
        finest = self.cube.grain
        if isinstance(given, str):
            grain = grain_named(given)
            if grain is None or not finest.is_within(grain):
                self.fail(f"expected a multiple of {finest}", place, "write 10, or 5 Minutes")
                return None
            if grain.months and not finest.months:
                hint = f"write so many {finest}"
                self.fail("months have no fixed length", place, hint)
                return None
            return grain.months // finest.months if finest.months else grain.length // finest.length
        if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 2**40:
            self.fail("expected a number of partitions", place, "write 10, or 5 Minutes")
            return None
        return given

    def compare(self, text: Mapping[str, Any], grain: Grain | None) -> int | None:
        given = text.get("compare")
        if given is None:
            return None
        if not isinstance(given, dict) or set(given) != {"earlier"}:
            hint = 'write "compare": {"earlier": "1 Hour"}'
            self.fail("expected how much earlier the other period is", "compare", hint)
            return None
        earlier = self.count(given["earlier"], "compare.earlier")
        finest = self.cube.grain
        if earlier is not None and grain is not None and grain != finest:
            if grain.months or finest.months:
                self.fail("months cannot be compared by parts", "compare", "ask without grain")
            elif earlier * finest.length % grain.length:
                self.fail(f"expected a multiple of {grain}", "compare.earlier")
        return earlier


def grain_named(text: str) -> Grain | None:
    """`Minute`, `5 Minutes`; None if it is no grain."""
    match = re.fullmatch(r"(?:(\d{1,9})\s+)?([A-Za-z]{1,12})", text.strip())
    if match is None or (match[1] and int(match[1]) < 1):
        return None
    return Grain.named(match[2], int(match[1] or 1))


_A = {
    Kind.NUMBER: "a number", Kind.INTEGER: "an integer", Kind.TEXT: "a text",
    Kind.BOOLEAN: "true or false", Kind.TIME: "a time", Kind.DURATION: "microseconds",
}  # fmt: skip


def _integer(value: Any) -> Value:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and -(2**63) <= value < 2**63 else None


def _number(value: Any) -> Value:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 2**1023 else None


def _time(value: Any) -> Value:
    return parse_time(value[:100]) if isinstance(value, str) else _integer(value)


_FITTING: dict[Kind, Callable[[Any], Value]] = {
    Kind.TEXT: lambda value: value if isinstance(value, str) else None,
    Kind.BOOLEAN: lambda value: value if isinstance(value, bool) else None,
    Kind.NUMBER: _number,
    Kind.INTEGER: _integer,
    Kind.TIME: _time,
    Kind.DURATION: _integer,
}


def _fitted(value: Any, type_: Type) -> tuple[bool, Value]:
    made = _FITTING[type_.kind](value)
    return made is not None, made
