"""Generated queries in two spellings: CQL, and SQL over what the windows hold.

A query is text with holes for its sources. In CQL a hole is a stream with its window; for
the oracle it is a table with the rows that the window holds at one instant, worked out
here in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from millstream.calculus.types import Row
from millstream.engine.reference.feed import Event
from tests.languages.cql.generate_sql import SET_OPERATIONS

DECLARATIONS = """
CREATE STREAM S (a INTEGER, b INTEGER, t TEXT);
CREATE STREAM T (a INTEGER, c INTEGER, t TEXT);
CREATE RELATION R (a INTEGER, d INTEGER);
CREATE RELATION K (a INTEGER, e INTEGER, KEY (a));
"""
COLUMNS: dict[str, tuple[str, ...]] = {
    "S": ("a", "b", "t"), "T": ("a", "c", "t"), "R": ("a", "d"), "K": ("a", "e"),
}  # fmt: skip
Inputs = dict[str, list[Event]]


@dataclass(frozen=True)
class Source:
    """A hole: a declared name and, for a stream, a window."""

    name: str
    kind: str = "relation"
    length: int | None = None
    slide: int | None = None
    rows: int = 0
    by: tuple[str, ...] = ()

    @property
    def cql(self) -> str:
        match self.kind:
            case "now":
                return f"{self.name} [Now]"
            case "range":
                length = "Unbounded" if self.length is None else f"{self.length} microseconds"
                slide = f" Slide {self.slide} us" if self.slide else ""
                return f"{self.name} [Range {length}{slide}]"
            case "rows":
                by = f"Partition By {', '.join(self.by)} " if self.by else ""
                within = f" Range {self.length} us" if self.length is not None else ""
                return f"{self.name} [{by}Rows {self.rows}{within}]"
            case _:
                return self.name

    def contents(self, events: list[Event], now: int) -> list[Row]:
        """The rows that are there at an instant, from the definition of each window."""
        past = [e for e in sorted(events, key=lambda e: e.time) if e.time <= now]
        columns = COLUMNS[self.name]
        match self.kind:
            case "now":
                return [e.row for e in past if e.time == now]
            case "range":
                end = now if self.slide is None else now // self.slide * self.slide
                start = -(10**9) if self.length is None else end - self.length
                return [e.row for e in past if start <= e.time <= end]
            case "rows":
                start = -(10**9) if self.length is None else now - self.length
                keys = [tuple(e.row[columns.index(c)] for c in self.by) for e in past]
                last: list[Row] = []
                for key in dict.fromkeys(keys):
                    own = [e for e, k in zip(past, keys, strict=True) if k == key]
                    last += [e.row for e in own[-self.rows :] if e.time >= start]
                return last
            case "latest":
                return list({e.row[0]: e.row for e in past}.values())
            case _:
                there: list[Row] = []
                for event in past:
                    if event.weight > 0:
                        there.append(event.row)
                    else:
                        there.remove(event.row)
                return there


@dataclass
class Draft:
    """A query in the making: its text with holes `{0}`, `{1}` and what fills them."""

    draw: st.DrawFn
    sources: list[Source] = field(default_factory=list)

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def chance(self, of: int) -> bool:
        return self.draw(st.integers(1, of)) == 1

    def hole(self, name: str | None = None) -> tuple[str, Source]:
        source = self.source(name or self.pick("S", "S", "T", "R", "K"))
        self.sources.append(source)
        return "{" + str(len(self.sources) - 1) + "}", source

    def source(self, name: str) -> Source:
        if name == "R":
            return Source(name)
        if name == "K":
            return Source(name, "latest")
        lengths = st.sampled_from([0, 1, 3, 6])
        match self.pick("now", "range", "range", "unbounded", "slide", "rows", "by", "within"):
            case "now":
                return Source(name, "now")
            case "range":
                return Source(name, "range", self.draw(lengths))
            case "unbounded":
                return Source(name, "range", None)
            case "slide":
                return Source(name, "range", self.draw(lengths), self.draw(st.integers(2, 5)))
            case "rows":
                return Source(name, "rows", rows=self.draw(st.integers(1, 3)))
            case "by":
                by = (self.pick("a", "t"),)
                return Source(name, "rows", rows=self.draw(st.integers(1, 2)), by=by)
            case _:
                return Source(name, "rows", self.draw(lengths), rows=2, by=("a",))

    # --- queries with one integer column `v`, so that they can be combined ---

    def query(self, depth: int = 1) -> str:
        if depth and self.chance(5):
            operator = self.pick(*SET_OPERATIONS)
            return f"({self.query(0)}) {operator} ({self.query(0)})"
        shape = self.pick("plain", "plain", "grouped", "grouped", "global", "top", "nested")
        if shape == "nested" and depth:
            inner = self.query(0)
            return f"SELECT q.v + 1 AS v FROM ({inner}) AS q WHERE q.v {self.comparison()}"
        return self.select(shape, depth)

    def comparison(self) -> str:
        return self.pick("> 0", "<= 1", "= 2", "<> 1", "IS NULL", "IS NOT NULL", "IN (0, 2)",
                         "BETWEEN 0 AND 1")  # fmt: skip

    def select(self, shape: str, depth: int) -> str:
        froms, aliases, conditions = self.froms()
        number = self.number(aliases)
        if depth and self.chance(3):
            conditions.append(self.membership(aliases))
        if self.chance(2):
            conditions.append(self.condition(aliases))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if shape == "grouped":
            key = self.pick(f"{aliases[0][0]}.a", f"{aliases[-1][0]}.a", f"{aliases[0][0]}.a + 1")
            having = f" HAVING {self.aggregate(number)} {self.comparison()}"
            total = self.aggregate(number)
            select = self.pick(f"SELECT {total} AS v", f"SELECT DISTINCT {key} + {total} AS v")
            return f"{select} FROM {froms}{where} GROUP BY {key}{having if self.chance(2) else ''}"
        if shape == "global":
            # A global aggregate of nothing has a row only after the first row has come.
            return f"SELECT COUNT(*) AS v FROM {froms}{where} GROUP BY 1 = 1"
        distinct = "DISTINCT " if self.chance(4) else ""
        limit = ""
        if shape == "top":
            down = self.pick("", " DESC")
            nulls = self.pick("FIRST", "LAST")
            limit = f" ORDER BY v{down} NULLS {nulls} LIMIT {self.pick('1', '2', '3')}"
        return f"SELECT {distinct}{number} AS v FROM {froms}{where}{limit}"

    def froms(self) -> tuple[str, list[tuple[str, Source]], list[str]]:
        """Sources under aliases, and the conditions that tie them."""
        count = self.draw(st.sampled_from([1, 1, 2, 2, 3]))
        text, aliases, conditions = "", list[tuple[str, Source]](), list[str]()
        for number in range(count):
            hole, source = self.hole()
            alias = f"x{number}"
            item = f"{hole} AS {alias}"
            if not number:
                text = item
            else:
                tie = self.pick(f"x{number - 1}.a = {alias}.a", f"{alias}.a = x0.a",
                                f"x0.a < {alias}.a", f"x0.a + 1 = {alias}.a",
                                f"x0.a + 1 = {alias}.a + 1")  # fmt: skip
                kind = self.pick(",", ",", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
                if number == 1 and kind != "," and self.chance(4):
                    text = f"{text} {kind} {item} USING (a)"
                elif kind == ",":
                    text = f"{text}, {item}" if "JOIN" not in text else f"{text} CROSS JOIN {item}"
                    conditions.append(tie)
                else:
                    text = f"{text} {kind} {item} ON {tie}".replace(", ", " CROSS JOIN ")
            aliases.append((alias, source))
        return text, aliases, conditions

    def number(self, aliases: list[tuple[str, Source]]) -> str:
        alias, source = aliases[-1]
        second = COLUMNS[source.name][1]
        first = f"{aliases[0][0]}.a"
        return self.pick(
            f"{alias}.{second}", first, f"{first} + {alias}.{second}",
            f"COALESCE({alias}.{second}, -1)", f"NULLIF({first}, 1)",
            f"CASE WHEN {first} > 0 THEN {alias}.{second} ELSE {first} END",
        )  # fmt: skip

    def condition(self, aliases: list[tuple[str, Source]]) -> str:
        alias, source = aliases[0]
        numeric = f"{alias}.{self.pick('a', COLUMNS[source.name][1])} {self.comparison()}"
        if "t" not in COLUMNS[source.name] or self.chance(2):
            return numeric
        texts = (f"{alias}.t LIKE 'a%'", f"UPPER({alias}.t) = 'A'",
                 f"({alias}.t = 'b' OR {numeric})", f"NOT ({alias}.t = 'a')")  # fmt: skip
        return self.pick(*texts)

    def membership(self, aliases: list[tuple[str, Source]]) -> str:
        hole, source = self.hole()
        second = COLUMNS[source.name][1]
        alias = aliases[0][0]
        tie = self.pick("", f" WHERE y.a = {alias}.a", f" WHERE y.a > {alias}.a",
                        f" WHERE y.{second} > 0")  # fmt: skip
        inner = f"(SELECT y.{second} FROM {hole} AS y{tie})"
        return self.pick(
            f"EXISTS {inner}", f"NOT EXISTS {inner}", f"{alias}.a IN {inner}",
            f"{alias}.a NOT IN {inner}", f"({alias}.a IN {inner} OR {alias}.a = 1)",
        )  # fmt: skip

    # --- subqueries that are values ---

    def inner(self, alias: str) -> tuple[str, str]:
        """A FROM clause with perhaps a condition that reads the outer row, and a number."""
        hole, source = self.hole()
        second = COLUMNS[source.name][1]
        tie = self.pick("", f" WHERE y.a = {alias}.a", f" WHERE y.a = {alias}.a + 1 AND y.a > 0",
                        f" WHERE y.a > {alias}.a", f" WHERE y.a = {alias}.a AND y.{second} <> 1",
                        f" WHERE y.{second} > 0", f" WHERE y.a = {alias}.a OR {alias}.a IS NULL",
                        f" WHERE y.a = (SELECT MAX(z.a) FROM {self.hole()[0]} AS z)")  # fmt: skip
        return f"{hole} AS y{tie}", f"y.{second}"

    def value(self, alias: str) -> str:
        """A subquery with one row of one number, or none."""
        froms, number = self.inner(alias)
        total = self.pick(f"{self.aggregate(number)}", f"{self.aggregate(number)} + COUNT(*)",
                          f"COALESCE({self.aggregate(number)}, {alias}.a)",
                          "COUNT(1)", f"MAX(COALESCE({number}, 5))")  # fmt: skip
        having = self.pick("", "", "", " HAVING COUNT(*) > 1")
        return f"(SELECT {total} AS w FROM {froms}{having})"

    def quantified(self, operand: str, alias: str) -> str:
        """A comparison with all rows of a subquery, or with any."""
        froms, number = self.inner(alias)
        query = f"SELECT {number} FROM {froms}"
        if "WHERE" not in froms and self.chance(2):
            query = f"SELECT {self.aggregate(number)} AS w FROM {froms} GROUP BY y.a"
        operator = self.pick(">=", ">", "<", "<=", "=", "<>")
        asked = f"{operand} {operator} {self.pick('ALL', 'ANY')} ({query})"
        return self.pick(asked, asked, f"NOT ({asked})", f"({asked} OR {operand} = 1)")

    def with_values(self) -> str:
        """A query in whose conditions, groups and select list subqueries stand as values."""
        hole, source = self.hole()
        column = f"x.{COLUMNS[source.name][1]}"
        match self.pick("where", "where", "all", "all", "list", "having", "with", "deep", "deep"):
            case "deep":
                return f"SELECT {column} AS v FROM {hole} AS x WHERE {self.deep(column)}"
            case "where":
                compared = f"{column} {self.pick('>=', '=', '<')} {self.value('x')}"
                return f"SELECT {column} AS v FROM {hole} AS x WHERE {compared}"
            case "all":
                asked = self.quantified(self.pick(column, "x.a"), "x")
                return f"SELECT {column} AS v FROM {hole} AS x WHERE {asked}"
            case "list":
                value = self.pick(self.value("x"), f"{column} + {self.value('x')}")
                return f"SELECT {value} AS v FROM {hole} AS x WHERE x.a {self.comparison()}"
            case "having":
                total = self.aggregate(column)
                asked = self.pick(f"{total} >= {self.value('x')}", self.quantified(total, "x"))
                return f"SELECT {total} AS v FROM {hole} AS x GROUP BY x.a HAVING {asked}"
            case _:
                first = f"p AS (SELECT x.a AS a, {column} AS b FROM {hole} AS x)"
                second = f"q (v) AS (SELECT p.b FROM p WHERE p.b >= {self.value('p')})"
                return f"WITH {first}, {second} SELECT q.v AS v FROM q, p WHERE p.a = q.v"

    def deep(self, column: str) -> str:
        """A condition with subqueries that read the outer row deeper than in their WHERE."""
        (first, source), second = self.hole(), f"{self.hole()[0]} AS z"
        number = f"y.{COLUMNS[source.name][1]}"
        tie = self.pick("z.a = x.a", "z.a > x.a", "z.a = x.a AND z.a = y.a", f"z.a = {column}")
        asked = self.pick(f"EXISTS (SELECT 1 FROM {second} WHERE {tie})",
                          f"y.a NOT IN (SELECT z.a FROM {second} WHERE {tie})",
                          f"{number} >= (SELECT MIN(z.a) FROM {second} WHERE {tie})")  # fmt: skip
        both = self.pick(asked, f"y.a = x.a AND {asked}", f"({asked} OR y.a = x.a)")
        groups = f"SELECT SUM({number}) FROM {first} AS y WHERE {both} GROUP BY y.a"
        return self.pick(
            f"EXISTS (SELECT 1 FROM {first} AS y WHERE {both})",
            f"NOT EXISTS (SELECT 1 FROM {first} AS y WHERE {both})",
            f"x.a IN (SELECT {number} FROM {first} AS y WHERE {both})",
            f"{column} IN ({groups})", f"x.a <= ALL ({groups} HAVING COUNT(*) <= x.a)",
            f"(SELECT SUM({number} + x.a) FROM {first} AS y WHERE {both}) >= 0",
        )  # fmt: skip

    def aggregate(self, number: str) -> str:
        return self.pick("COUNT(*)", f"COUNT(*) FILTER (WHERE {number} > 0)",
                         f"SUM({number}) FILTER (WHERE {number} <> 1)", f"SUM({number})",
                         f"COUNT({number})", f"MIN({number})",
                         f"MAX({number})", f"COUNT(DISTINCT {number})",
                         f"SUM(DISTINCT {number})")  # fmt: skip


@dataclass(frozen=True)
class Query:
    text: str
    sources: tuple[Source, ...]
    #: Istream, Dstream, Rstream, or nothing for what the language makes of it.
    operator: str = ""

    @property
    def cql(self) -> str:
        filled = self.text.format(*(s.cql for s in self.sources))
        around = f"{self.operator}({filled})" if self.operator else filled
        return f"{DECLARATIONS}CREATE OUTPUT out AS {around};"

    @property
    def sql(self) -> str:
        return self.text.format(*(f"w{n}" for n in range(len(self.sources))))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    draft = Draft(draw)
    text = draft.query()
    return Query(text, tuple(draft.sources), draft.pick("", "", "Istream", "Dstream", "Rstream"))


@st.composite
def queries_with_values(draw: st.DrawFn) -> Query:
    """Queries with subqueries as values, ALL, ANY and WITH."""
    draft = Draft(draw)
    text = draft.with_values()
    return Query(text, tuple(draft.sources), draft.pick("", "", "Istream", "Rstream"))


@st.composite
def inputs(draw: st.DrawFn, *, size: int = 6) -> Inputs:
    numbers = st.sampled_from([0, 1, 2, None])
    texts = st.sampled_from(["a", "ab", "b", None])
    times = st.lists(st.integers(0, 9), max_size=size).map(sorted)
    found: Inputs = {}
    for name in ("S", "T"):
        found[name] = [Event(t, (draw(numbers), draw(numbers), draw(texts))) for t in draw(times)]
    found["K"] = [Event(t, (draw(st.integers(0, 2)), draw(numbers))) for t in draw(times)]
    present: list[Row] = []
    changes: list[Event] = []
    for time in draw(times):
        is_removal: bool = draw(st.booleans())
        if present and is_removal:
            changes.append(Event(time, present.pop(), -1))
        else:
            row: Row = (draw(numbers), draw(numbers))
            present.append(row)
            changes.append(Event(time, row, 1))
    found["R"] = changes
    return found
