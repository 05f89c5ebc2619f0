"""Generated SQL of many kinds, typed, over two small tables with nulls everywhere.

Everything here is drawn from a `Random`, so that Hypothesis can shrink it and a campaign can
run through seeds. What comes out is text that both DuckDB and CQL can read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

INTEGER, NUMBER, TEXT = "integer", "number", "text"
BOOLEAN, TIME, DURATION = "boolean", "time", "duration"
TABLES: dict[str, dict[str, str]] = {
    "S": {"k": INTEGER, "v": INTEGER, "t": TEXT, "x": NUMBER, "b": BOOLEAN, "m": TIME},
    "R": {"k": INTEGER, "w": INTEGER, "t": TEXT, "x": NUMBER},
}
VALUES: dict[str, tuple[Any, ...]] = {
    INTEGER: (None, 0, 1, 2, -3, 7),
    NUMBER: (None, 0.0, 0.5, -1.25, 2.0, 3.75),
    TEXT: (None, "", "a", "ab", "B", " ba", "%a_"),
    BOOLEAN: (None, True, False),
    TIME: (None, "2025-02-03T04:05:06.5", "2024-12-31T23:59:59", "1969-12-28T00:00:00"),
}
LITERALS: dict[str, tuple[str, ...]] = {
    INTEGER: ("0", "1", "2", "-1", "7", "NULL"),
    NUMBER: ("0.5", "2.0", "-1.25", "1e1", "NULL"),
    TEXT: ("''", "'a'", "'ab'", "'B%'", "'it''s'", "NULL"),
    BOOLEAN: ("TRUE", "FALSE", "NULL"),
    TIME: ("TIMESTAMP '2025-01-01 00:00:00'", "DATE '2024-12-31'", "CAST(NULL AS TIMESTAMP)"),
    DURATION: ("INTERVAL '90' MINUTES", "INTERVAL 2 DAYS", "INTERVAL '-1' SECOND"),
}
SET_OPERATIONS = (
    "UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL",
)  # fmt: skip
SHOWN = (INTEGER, INTEGER, NUMBER, TEXT, BOOLEAN, TIME)
#: Sources under their names, each with its columns.
Scope = list[tuple[str, dict[str, str]]]


def rows(rng: Random) -> dict[str, list[tuple[Any, ...]]]:
    """A few rows of every table, some of them equal."""
    given: dict[str, list[tuple[Any, ...]]] = {}
    for name, columns in TABLES.items():
        some = [tuple(rng.choice(VALUES[t]) for t in columns.values()) for _ in range(4)]
        given[name] = [rng.choice(some) for _ in range(rng.randint(1, 5))]
    return given


@dataclass
class Writer:
    """Mutable: writes queries. `depth` is how deep subqueries may still be."""

    rng: Random
    depth: int = 2
    names: int = 0
    outer: list[Scope] = field(default_factory=list)

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def chance(self, of: int) -> bool:
        return self.rng.randrange(of) == of - 1  # so that what is simple is drawn by zeros

    def name(self, letter: str = "q") -> str:
        self.names += 1
        return f"{letter}{self.names}"

    # --- expressions ---

    def column(self, type_: str, scope: Scope) -> str | None:
        """A column of that type in any of its spellings, now and then one of the query around."""
        if self.outer and self.chance(3):
            scope = self.rng.choice(self.outer)
        found = [(o, c) for o, columns in scope for c, t in columns.items() if t == type_]
        if not found:
            return None
        owner, column = self.rng.choice(found)
        return f"{owner}." + self.pick(column, column, column.upper(), f'"{column}"')

    def term(self, type_: str, scope: Scope, size: int = 2) -> str:
        if size <= 0 or self.chance(4):
            written = self.column(type_, scope)
            return written if written and not self.chance(4) else self.pick(*LITERALS[type_])
        if self.chance(8):
            return self.choice(type_, scope, size - 1)
        if self.depth and self.chance(12) and type_ in (INTEGER, NUMBER, TEXT):
            return self.value(type_, scope)
        return str(getattr(self, type_)(scope, size - 1))

    def choice(self, type_: str, scope: Scope, size: int) -> str:
        one, other = (self.term(type_, scope, size) for _ in range(2))
        condition = self.term(BOOLEAN, scope, size)
        subject, number = self.term(INTEGER, scope, size), self.term(INTEGER, scope, 0)
        return self.pick(
            f"CASE WHEN {condition} THEN {one} ELSE {other} END",
            f"CASE WHEN {condition} THEN {one} WHEN {subject} > 0 THEN {other} END",
            f"CASE {subject} WHEN 1 THEN {one} WHEN {number} THEN {other} END",
            f"COALESCE({one}, {other})",
            f"NULLIF({one}, {other})",
        )

    def integer(self, scope: Scope, size: int) -> str:
        one, other = (self.term(INTEGER, scope, size) for _ in range(2))
        text, time = self.term(TEXT, scope, size), self.term(TIME, scope, size)
        return self.pick(
            f"{one} + {other}", f"({one} - {other})", f"({one}) * ({other})", f"-({one})",
            f"({one}) % NULLIF({other}, 0)", f"({one}) DIV NULLIF({other}, 0)", f"ABS({one})",
            f"LENGTH({text})", f"POSITION({self.term(TEXT, scope, 0)} IN {text})",
            f"EXTRACT({self.pick('YEAR', 'MONTH', 'DAY', 'HOUR')} FROM {time})",
            f"LEAST({one}, {other})", f"GREATEST({one}, {other}, 1)",
            f"CAST({self.term(BOOLEAN, scope, size)} AS INTEGER)", f"SIGN({one})",
        )  # fmt: skip

    def number(self, scope: Scope, size: int) -> str:
        one, other = (self.term(NUMBER, scope, size) for _ in range(2))
        integer = self.term(INTEGER, scope, size)
        return self.pick(
            f"{one} + {other}", f"({one} - {integer})", f"({one}) * ({other})", f"-({one})",
            f"({one}) / NULLIF({other}, 0)", f"({integer}) / NULLIF({other}, 0)",
            f"FLOOR({one})", f"CEIL({one})", f"ABS({one})", f"({integer}) / 4",
            f"CAST({integer} AS DOUBLE)", f"LEAST({one}, {integer})",
        )  # fmt: skip

    def text(self, scope: Scope, size: int) -> str:
        one, other = (self.term(TEXT, scope, size) for _ in range(2))
        number = self.pick("0", "1", "2", "3")
        return self.pick(
            f"({one} || {other})", f"UPPER({one})", f"LOWER({one})", f"TRIM({one})",
            f"SUBSTRING({one}, {self.pick('1', '2', '5')}, {number})", f"LEFT({one}, {number})",
            f"RIGHT({one}, {number})", f"REPLACE({one}, 'a', {other})",
            f"CAST({self.term(INTEGER, scope, size)} AS TEXT)", f"LEFT({one}, -1)",
            f"CAST({self.term(BOOLEAN, scope, size)} AS TEXT)",
        )  # fmt: skip

    def boolean(self, scope: Scope, size: int) -> str:
        one, other = (self.term(BOOLEAN, scope, size) for _ in range(2))
        if self.depth and self.chance(5):
            return self.question(scope)
        return self.pick(
            self.compared(scope, size), self.compared(scope, size), f"({one} AND {other})",
            f"({one} OR {other})", f"(NOT {one})", f"NOT ({one} OR {other})",
            f"({one}) IS {self.pick('NOT ', '')}{self.pick('NULL', 'TRUE', 'FALSE')}",
        )  # fmt: skip

    def compared(self, scope: Scope, size: int) -> str:
        type_ = self.pick(INTEGER, INTEGER, NUMBER, TEXT, TIME, DURATION)
        one, other, third = (self.term(type_, scope, size) for _ in range(3))
        if type_ == NUMBER and self.chance(2):
            other = self.term(INTEGER, scope, size)
        operator = self.pick("=", "<>", "<", "<=", ">", ">=")
        no = self.pick("", "NOT ")
        written = [
            f"({one} {operator} {other})", f"(({one}) {no}BETWEEN {other} AND {third})",
            f"(({one}) {no}IN ({other}, {third}))", f"(({one}) {no}IN ({third}, NULL))",
            f"(({one}) IS {no}DISTINCT FROM {other})", f"({one}) IS {no}NULL",
        ]  # fmt: skip
        if type_ == TEXT:
            pattern = self.pick("'a%'", "'%b%'", "'_'", "'%'", f"({other})")
            escaped = self.pick("'a!%'", "'!_%'", "'%!!'", "'!a_'")
            written += [f"(({one}) {no}LIKE {pattern})", f"(({one}) {no}ILIKE {pattern})",
                        f"(({one}) {no}LIKE {escaped} ESCAPE '!')"]  # fmt: skip
        return self.pick(*written)

    def time(self, scope: Scope, size: int) -> str:
        one, step = self.term(TIME, scope, size), self.term(DURATION, scope, size)
        unit = self.pick("second", "minute", "hour", "day", "week", "month", "year")
        return self.pick(
            f"({one} + {step})", f"({one} - {step})", f"DATE_TRUNC('{unit}', {one})",
            f"COALESCE({one}, {LITERALS[TIME][0]})",
        )  # fmt: skip

    def duration(self, scope: Scope, size: int) -> str:
        one = self.term(DURATION, scope, size)
        return self.pick(
            f"({self.term(TIME, scope, size)} - {self.term(TIME, scope, size)})",
            f"({one} + {self.term(DURATION, scope, size)})", f"-({one})",
        )  # fmt: skip

    # --- subqueries ---

    def inside(self, scope: Scope) -> Writer:
        """What writes a subquery of a query with these sources."""
        inner = Writer(self.rng, self.depth - 1, self.names + 10, [*self.outer, scope])
        self.names += 100
        return inner

    def value(self, type_: str, scope: Scope) -> str:
        """A subquery with one value: an aggregate, or the first of its rows."""
        inner = self.inside(scope)
        if self.chance(4):
            inner.outer = []
            select = inner.select([type_], orderable=True)
            return f"({select} ORDER BY 1 {self.pick('', 'DESC')} LIMIT 1)"
        froms, own = inner.froms()
        total = inner.aggregate(type_, own)
        having = f" HAVING {inner.total_condition(own)}" if self.chance(6) else ""
        return f"(SELECT {total} FROM {froms}{inner.where(own)}{having})"

    def question(self, scope: Scope) -> str:
        inner = self.inside(scope)
        type_ = self.pick(INTEGER, INTEGER, NUMBER, TEXT)
        asked = self.term(type_, scope, 1)
        no = self.pick("", "NOT ")
        if self.chance(5):
            inner.outer = []
            query = inner.query([type_])
        else:
            query = inner.select([type_])
        operator = self.pick("=", "<>", "<", "<=", ">", ">=")
        return self.pick(
            f"({no}EXISTS ({query}))", f"(({asked}) {no}IN ({query}))",
            f"(({asked}) {operator} {self.pick('ALL', 'ANY')} ({query}))",
        )  # fmt: skip

    # --- aggregates ---

    def aggregate(self, type_: str, scope: Scope) -> str:
        once = self.pick("", "", "DISTINCT ")
        where = f" FILTER (WHERE {self.term(BOOLEAN, scope, 1)})" if self.chance(4) else ""
        if type_ == INTEGER:
            one = self.term(INTEGER, scope, 1)
            anything = self.term(self.pick(TEXT, BOOLEAN, INTEGER, TIME), scope, 1)
            return self.pick(
                f"COUNT(*){where}", f"COUNT({once}{anything}){where}", f"SUM({once}{one}){where}",
                f"MIN({one}){where}", f"MAX({one}){where}", f"COALESCE(SUM({one}){where}, -1)",
            )  # fmt: skip
        if type_ == NUMBER:
            one, number = (
                self.term(self.pick(INTEGER, NUMBER), scope, 1),
                self.term(NUMBER, scope, 1),
            )
            return self.pick(f"AVG({once}{one}){where}", f"VAR_POP({once}{one}){where}",
                             f"SUM({number}){where}")  # fmt: skip
        if type_ == BOOLEAN:
            return self.total_condition(scope)
        return f"{self.pick('MIN', 'MAX')}({self.term(type_, scope, 1)}){where}"

    def total_condition(self, scope: Scope) -> str:
        one, other = self.aggregate(INTEGER, scope), self.aggregate(INTEGER, scope)
        return self.pick(f"({one} > 0)", f"({one} <= {other})", f"({one} IS NOT NULL)",
                         f"({one} > 1 OR {other} = 0)", f"NOT ({one} = {other})")  # fmt: skip

    # --- queries ---

    def where(self, scope: Scope) -> str:
        return f" WHERE {self.term(BOOLEAN, scope, 2)}" if self.chance(2) else ""

    def query(self, types: list[str]) -> str:
        """A query with columns of these types; its columns are called c1, c2..."""
        if self.chance(8):
            table = self.name("w")
            inner = Writer(self.rng, 0, self.names + 1000)
            view = inner.query([INTEGER, TEXT])
            self.names += 200
            own: Scope = [(table, {"a": INTEGER, "b": TEXT})]
            shown = ", ".join(self.shown(types, own))
            return f"WITH {table} (a, b) AS ({view}) SELECT {shown} FROM {table}{self.where(own)}"
        if self.chance(5):
            operator = self.pick(*SET_OPERATIONS)
            return f"({self.query(types)}) {operator} ({self.select(types)})"
        if self.chance(8):
            operators = [self.pick(*SET_OPERATIONS) for _ in range(2)]
            parts = [self.select(types) for _ in range(3)]
            return f"{parts[0]} {operators[0]} {parts[1]} {operators[1]} {parts[2]}"
        return self.select(types)

    def shown(self, types: list[str], scope: Scope) -> list[str]:
        return [f"{self.term(t, scope)} AS c{n}" for n, t in enumerate(types, 1)]

    def select(self, types: list[str], *, orderable: bool = False) -> str:
        froms, scope = self.froms()
        where = self.where(scope)
        if self.chance(3) and not orderable:
            return self.grouped(types, froms, scope, where)
        distinct = self.pick("", "", "", "DISTINCT ")
        return f"SELECT {distinct}{', '.join(self.shown(types, scope))} FROM {froms}{where}"

    def grouped(self, types: list[str], froms: str, scope: Scope, where: str) -> str:
        keys = [self.term(t, scope, 1) for t in types[:1]]
        keys = [k if "NULL" not in k and any(f"{o}." in k for o, _ in scope) else "" for k in keys]
        named = [k for k in keys if k] or [f"({self.term(BOOLEAN, scope, 0)}) IS NULL"]
        items = [
            f"{key or self.aggregate(t, scope)} AS c{n}"
            for n, (t, key) in enumerate(zip(types, [*keys, *[""] * len(types)], strict=False), 1)
        ]
        having = f" HAVING {self.total_condition(scope)}" if self.chance(2) else ""
        return f"SELECT {', '.join(items)} FROM {froms}{where} GROUP BY {', '.join(named)}{having}"

    def froms(self) -> tuple[str, Scope]:
        text, scope = self.source()
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            other, more = self.source()
            both = [*scope, *more]
            kind = self.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")
            outer, depth = self.outer, self.depth
            self.outer, self.depth = [], min(depth, 1)  # not the query around in ON
            one, two = self.column(INTEGER, scope), self.column(INTEGER, more)
            tie = self.pick(f"{one} = {two}", f"{one} = {two}", f"{one} + 1 = {two}",
                            self.term(BOOLEAN, both, 1),
                            f"{one} = {two} AND {self.term(BOOLEAN, both, 1)}")  # fmt: skip
            self.outer, self.depth = outer, depth
            shared = [
                c for c, t in scope[-1][1].items() if more[0][1].get(c) == t and len(scope) == 1
            ]
            if kind == "CROSS JOIN":
                text = f"{text} {kind} {other}"
            elif shared and self.chance(4):
                text = f"{text} {kind} {other} USING ({self.pick(*shared)})"
            else:
                text = f"{text} {kind} {other} ON {tie}"
            scope = both
        return text, scope

    def source(self) -> tuple[str, Scope]:
        alias = self.name()
        if self.depth and self.chance(6):
            inner = Writer(self.rng, self.depth - 1, self.names + 300)
            self.names += 200
            types = [INTEGER, TEXT, self.pick(*SHOWN)]
            query = inner.query(types)
            if self.chance(3):
                query = f"({query}) ORDER BY 1, 2, 3 LIMIT {self.pick('1', '2', '3')}"
            named = dict(zip(("k", "u", "z"), types, strict=True))
            return f"({query}) AS {alias} (k, u, z)", [(alias, named)]
        table = self.pick(*TABLES)
        columns = dict(TABLES[table])
        if not self.chance(5):
            return f"{table} {self.pick('AS ', '')}{alias}", [(alias, columns)]
        first, *others = columns.items()
        renamed = {"a": first[1], **dict(others)}
        return f"{table} AS {alias} (a)", [(alias, renamed)]


@dataclass(frozen=True)
class Case:
    """A query, and the rows it is asked of."""

    text: str
    rows: dict[str, list[tuple[Any, ...]]]


def case(rng: Random) -> Case:
    given = rows(rng)
    return Case(query(rng), given)


def query(rng: Random) -> str:
    """A whole query, perhaps with its first rows only."""
    writer = Writer(rng)
    types = [rng.choice(SHOWN) for _ in range(rng.randint(1, 3))]
    text = writer.query(types)
    if writer.chance(5):
        order = ", ".join(
            f"{n}{writer.pick('', ' DESC')}{writer.pick('', ' NULLS FIRST', ' NULLS LAST')}"
            for n in range(1, len(types) + 1)
        )
        return f"({text}) ORDER BY {order} LIMIT {writer.pick('1', '2', '4')}"
    return text
