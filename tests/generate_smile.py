"""Programs of SMILE made of each other at random, with the same views in SQL.

Every view is made of streams and of views before it: selections, groups with HAVING, joins of
views that have conditions of their own, absence, first rows, and what is answered as of the
horizon. What SQL has no word for (QUIET) is compared between engines only.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

STREAMS = {"A": ("t", "k", "x"), "B": ("u", "k", "y"), "C": ("t", "k", "x")}
LAST_TICK = 60


@dataclass(frozen=True)
class Made:
    """A stream or a view: which of its columns are numbers that never change, and that may.

    `ticks` never change either, and can only be compared with each other. `keys` are those of
    groups that are total, so that JOIN keeps rows without one.
    """

    name: str
    exact: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    ticks: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    #: Whether what an empty group has is 0, and not null.
    has_zero: bool = True
    #: Whether no two rows have the same ticks and numbers that never change.
    has_key: bool = True
    has_sql: bool = True
    is_stream: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Numbers, whether they change or not."""
        return (*self.exact, *self.numbers)

    @property
    def kept(self) -> tuple[str, ...]:
        return (*self.ticks, *self.exact)


@dataclass
class Drawn:
    """Mutable: a program so far, in both languages."""

    chance: random.Random
    smile: list[str] = field(default_factory=list)
    sql: list[str] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)

    @property
    def views(self) -> list[Made]:
        return [one for one in self.made if not one.is_stream]

    def text(self) -> str:
        names = ", ".join(f"{one.name} WITH RANGES" for one in self.views)
        return "\n".join([*self.smile, f"subscriptions {names};"])

    # --- parts of queries ---

    def condition(self, of: Made, owner: str = "") -> str:
        column = self.chance.choice(of.columns)
        order = self.chance.choice(("<", "<=", ">", ">=", "=", "<>"))
        return f"{owner}{column} {order} {self.chance.choice((0, 1, 2, 5, 20, 40))}"

    def where(self, of: Made, owner: str = "") -> str:
        if self.chance.random() < 0.5:
            return ""
        return f" WHERE {self.condition(of, owner)}"

    def source(self, *, is_grouped: bool | None = None) -> Made:
        """What has rows that others can be made of."""
        found = [m for m in self.made if m.exact and is_grouped in (None, bool(m.keys))]
        return self.chance.choice(found)

    def stream(self) -> Made:
        return self.chance.choice([m for m in self.made if m.is_stream])

    def pair(self, left: Made, right: Made) -> tuple[str, str]:
        """A column of each that can be compared."""
        if left.ticks and right.ticks and self.chance.random() < 0.3:
            return self.chance.choice(left.ticks), self.chance.choice(right.ticks)
        return self.chance.choice(left.exact), self.chance.choice(right.exact)

    def add(self, made: Made, smile: str, sql: str | None = None) -> None:
        self.smile.append(f"CREATE VIEW {made.name} ({smile});")
        self.sql.append(f"CREATE VIEW {made.name} AS {smile if sql is None else sql};")
        self.made.append(made)

    # --- queries ---

    def selection(self, name: str) -> None:
        of = self.source()
        number = self.chance.choice(of.columns)
        shown = [*of.kept, f"{number} * 2 + 1 AS {name}_v"]
        is_exact = number in of.exact
        made = Made(name, (*of.exact, f"{name}_v") if is_exact else of.exact,
                    () if is_exact else (f"{name}_v",), of.ticks, has_key=of.has_key,
                    has_sql=of.has_sql)  # fmt: skip
        # Without a condition it would be total as the groups are, with another value for no group.
        where = f" WHERE {self.condition(of)}" if of.keys else self.where(of)
        self.add(made, f"SELECT {', '.join(shown)} FROM {of.name}{where}")

    def group(self, name: str) -> None:
        of = self.source()
        key, number = self.chance.choice(of.kept), self.chance.choice(of.columns)
        told = self.chance.choice(("SUM({})", "MIN({})", "MAX({})", "COUNT(*)")).format(number)
        having = ""
        if self.chance.random() < 0.4:
            having = f" HAVING COUNT(*) {self.chance.choice(('>', '<', '='))} 2"
        shown = f"SELECT {key}, {{}} AS {name}_n FROM {of.name}{self.where(of)} GROUP BY {key}"
        ticks, exact = ((key,), ()) if key in of.ticks else ((), (key,))
        keys = () if having else (key,)
        has_zero = told.startswith(("SUM", "COUNT"))
        made = Made(name, exact, (f"{name}_n",), ticks, keys, has_zero, has_sql=of.has_sql)
        sql = f"{told}::BIGINT" if told.startswith("SUM") else told
        self.add(made, shown.format(told) + having, shown.format(sql) + having)

    def join(self, name: str) -> None:
        """Views with conditions are joined as SQL does; groups are there for every key."""
        left, right = self.source(is_grouped=False), self.source()
        a, b = self.pair(left, right)
        others = [c for c in right.columns if c != b] or [b]
        c = self.chance.choice(others)
        is_total = right.keys == (b,)
        how = "JOIN" if is_total else self.chance.choice(("JOIN", "INNER JOIN"))
        ticks, exact = ([f"{name}_{c}" for c in some] for some in (left.ticks, left.exact))
        shown = ", ".join(f"l.{c} AS {name}_{c}" for c in left.kept)
        numbers = [] if c in right.exact else [f"{name}_r"]
        exact += [f"{name}_r"] if c in right.exact else []
        made = Made(name, tuple(exact), tuple(numbers), tuple(ticks),
                    has_key=left.has_key and right.has_key and right.kept == (b,),
                    has_sql=left.has_sql and right.has_sql)  # fmt: skip
        query = f"SELECT {shown}, {{}} AS {name}_r FROM {left.name} l {{}} {right.name} r"
        query += f" ON l.{a} = r.{b}{self.where(left, 'l.')}"
        is_zero = is_total and right.has_zero and c != b
        sql = f"coalesce(r.{c}, 0)" if is_zero else f"l.{a}" if c == b else f"r.{c}"
        self.add(made, query.format(f"r.{c}", how),
                 query.format(sql, "LEFT JOIN" if is_total else "JOIN"))  # fmt: skip

    def absence(self, name: str) -> None:
        of, other = self.source(), self.source()
        a, b = self.pair(of, other)
        word = self.chance.choice(("NOT EXISTS", "EXISTS"))
        asked = f"{word} (SELECT * FROM {other.name} r WHERE r.{b} = l.{a})"
        shown = ", ".join(f"l.{c} AS {c}" for c in (*of.kept, *of.numbers))
        made = Made(name, of.exact, of.numbers, of.ticks, has_key=of.has_key,
                    has_sql=of.has_sql and other.has_sql)  # fmt: skip
        self.add(made, f"SELECT {shown} FROM {of.name} l WHERE {asked}")

    def left_join(self, name: str) -> None:
        """A row that has lost its partner is another row than the pair was."""
        left, right = self.source(is_grouped=False), self.source(is_grouped=False)
        a, b = self.chance.choice(left.exact), self.chance.choice(right.exact)
        shown = ", ".join(f"l.{c} AS {c}" for c in left.kept)
        query = (f"SELECT {shown}, r.{b} AS {name}_b FROM {left.name} l "
                 f"LEFT JOIN {right.name} r ON l.{a} = r.{b}")  # fmt: skip
        made = Made(name, left.exact, (f"{name}_b",), left.ticks,
                    has_key=False,
                    has_sql=left.has_sql and right.has_sql)  # fmt: skip
        self.add(made, query)

    def first(self, name: str) -> None:
        """Of rows that do not change; ordered by all columns, so that SQL has one answer."""
        of = self.stream()
        by = [*of.kept] if self.chance.random() < 0.5 else [*reversed(of.exact), *of.ticks]
        order = ", ".join(f"{c}{self.chance.choice(('', ' DESC'))}" for c in by)
        limit = self.chance.randint(1, 4)
        made = Made(name, of.exact, ticks=of.ticks)
        self.add(made, f"SELECT {', '.join(of.kept)} FROM {of.name}"
                 f" ORDER BY {order} LIMIT {limit}")  # fmt: skip

    def merge(self, name: str) -> None:
        query = f"SELECT k, COUNT(*) AS {name}_n FROM {{}} m GROUP BY k"
        both = "(SELECT k FROM A UNION ALL SELECT k FROM C)"
        self.add(Made(name, ("k",), (f"{name}_n",), keys=("k",)),
                 query.format("MERGE(A, C)").replace(" m ", " "), query.format(both))  # fmt: skip

    def as_of(self, name: str) -> None:
        of = self.source()
        key = self.chance.choice(of.columns)
        counted = f"SELECT {key}, COUNT(DISTINCT {of.exact[0]}) AS {name}_d"
        query = self.chance.choice(
            (f"SELECT DISTINCT {key} FROM {of.name}", f"{counted} FROM {of.name} GROUP BY {key}")
        )
        columns = (key, f"{name}_d") if "AS" in query else (key,)
        self.add(Made(name, (), columns, has_key=False, has_sql=of.has_sql), query)

    def window(self, name: str) -> None:
        of = self.stream()
        (tick,) = of.ticks
        query = f"SELECT {{0}} AS {name}_w, COUNT(*) AS {name}_n FROM {of.name} GROUP BY {{0}}"
        self.add(Made(name, (), (f"{name}_w", f"{name}_n"), has_key=False),
                 query.format(f"WINDOW({tick}, 10 MICROSECONDS)"),
                 query.format(f"{tick} // 10 * 10"))  # fmt: skip

    def latest(self, name: str) -> None:
        of = self.stream()
        (tick,), (key, value) = of.ticks, of.exact
        self.add(Made(name, (), (key, f"{name}_v", f"{name}_v_at"), has_key=False),
                 f"SELECT {key}, LATEST({value}) AS {name}_v FROM {of.name} GROUP BY {key}",
                 f"SELECT {key}, arg_max({value}, {tick}) AS {name}_v, max({tick}) AS {name}_v_at "
                 f"FROM {of.name} GROUP BY {key}")  # fmt: skip

    def quiet(self, name: str) -> None:
        of = self.stream()
        query = f"SELECT k, since FROM QUIET({of.name} BY k, 7 MICROSECONDS)"
        self.add(Made(name, (), ("k", "since"), has_key=False, has_sql=False), query, "SELECT 1")


#: How often each is drawn.
_QUERIES = (
    *("selection", "group", "join") * 3, *("absence", "left_join") * 2,
    "first", "merge", "as_of", "window", "latest", "quiet",
)  # fmt: skip


def drawn_program(seed: int, views: int) -> Drawn:
    chance = random.Random(seed)
    drawn = Drawn(chance)
    drawn.smile.append("CREATE TYPE lot AS INTEGER BETWEEN 0 AND 50;")
    type_ = chance.choice(("lot", "integer"))
    ends = f" UNTIL {LAST_TICK}" if chance.random() < 0.6 else ""
    for name, (tick, key, value) in STREAMS.items():
        drawn.smile.append(
            f"CREATE STREAM {name} ({tick}: time -> {key}: integer, {value}: {type_}){ends};"
        )
        drawn.made.append(Made(name, (key, value), ticks=(tick,), is_stream=True))
    while len(drawn.views) < views:
        getattr(drawn, chance.choice(_QUERIES))(f"V{len(drawn.views)}")
    return drawn


def drawn_rows(seed: int, count: int = 40) -> dict[str, list[tuple[int, int, int]]]:
    """Rows of streams in the order of their ticks; some ticks are taken."""
    chance = random.Random(seed)
    made: dict[str, list[tuple[int, int, int]]] = {name: [] for name in STREAMS}
    for _ in range(count):
        row = (chance.randint(1, LAST_TICK), chance.randrange(4), chance.randrange(51))
        made[chance.choice("ABC")].append(row)
    return {name: sorted(rows, key=lambda r: r[0]) for name, rows in made.items()}
