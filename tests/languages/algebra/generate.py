"""Expressions of the algebra and events for them, drawn at random.

Every table that is drawn has the key `k` and the integer values `v` and `w`, so that any two
can be joined. No two events have one time, so that no order of messages is left to chance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from millstream import algebra
from millstream.algebra import Group, Stream, Table, call, if_
from millstream.calculus.types import Row
from millstream.languages.algebra.derived import updates
from millstream.languages.algebra.translate import is_exact

Events = dict[str, list[tuple[int, Row]]]

SOURCES = ("ones", "twos")
DELETED_IN = "gone"


def source(name: str) -> Table:
    return algebra.table(
        name, key="k", deleted=DELETED_IN, k="integer", v="integer", w="integer", gone="boolean"
    )


MAPS: tuple[Callable[[Any], dict[str, Any]], ...] = (
    lambda r: {"v": r.v + r.w, "w": r.w},
    lambda r: {"v": r.w, "w": r.v - 1},
    lambda r: {"v": if_(r.v > r.k, r.k, r.v), "w": call("coalesce", r.w, 2)},
)
CONDITIONS: tuple[Callable[[Any], Any], ...] = (
    lambda r: r.v > 1,
    lambda r: (r.w != 2) | (r.k == 0),
    lambda r: ~call("is_null", r.v),
)
STEPS: tuple[Callable[[Any, Any], dict[str, Any]], ...] = (
    lambda state, row: {"v": state.v + call("coalesce", row.v, 1), "w": row.w},
    lambda state, row: {"v": state.v + 1, "w": call("coalesce", row.w, state.v)},
)


def joined(one: Table, other: Table, kind: str) -> Table:
    second = other.map(lambda r: {"v2": r.v, "w2": r.w})
    if kind == "inner":
        return one.inner_join(second).map(lambda r: {"v": r.v + r.w2, "w": r.v2})
    if kind == "outer":
        both = one.outer_join(second)
        return both.map(
            lambda r: {"v": if_(r.has_left, r.v, r.v2), "w": if_(r.has_right, r.w2, r.w)}
        )
    if kind == "foreign":
        return one.foreign_join(second, on="w").map(lambda r: {"v": r.v2, "w": r.w})
    found = one.foreign_join(second, on="v", found="found")
    return found.map(lambda r: {"v": if_(r.found, r.w2, 3), "w": r.w})


@st.composite
def tables(draw: st.DrawFn, depth: int = 3) -> Table:
    kinds = ["source", "map", "filter", "combine", "stream",
             "inner", "outer", "foreign", "foreign or nothing"]  # fmt: skip
    kind = draw(st.sampled_from(kinds)) if depth else "source"
    if kind == "source":
        return source(draw(st.sampled_from(SOURCES)))
    one = draw(tables(depth - 1))
    if kind == "map":
        return one.map(draw(st.sampled_from(MAPS)))
    if kind == "filter":
        return one.filter(draw(st.sampled_from(CONDITIONS)))
    if kind == "combine":
        # A computed table speaks only of changes, an actor of all it hears.
        exact = one if is_exact(one.node) else source("ones")
        return exact.combine_updates({"v": 0, "w": 0}, draw(st.sampled_from(STEPS)))
    if kind == "stream":
        return algebra.key_by(draw(streams()), "k")
    return joined(one, draw(tables(depth - 1)), kind)


@st.composite
def streams(draw: st.DrawFn, depth: int = 2) -> Stream:
    """Streams with the columns k, v and w."""
    kind = draw(st.sampled_from(["source", "map", "filter", "merge", "concat"]))
    if depth == 0 or kind == "source":
        return updates(source(draw(st.sampled_from(SOURCES))))
    one = draw(streams(depth - 1))
    if kind == "map":
        return one.map(lambda r: {"k": r.k, "v": r.v + 1, "w": r.k})
    if kind == "filter":
        return one.filter(draw(st.sampled_from(CONDITIONS)))
    if kind == "concat":
        return one.map_concat(
            lambda r: [
                {"k": r.k, "v": r.v, "w": r.w},
                algebra.when(r.v == 1, {"k": r.k + 1, "v": r.w, "w": r.w}),
            ]
        )
    return one.filter(lambda r: r.k < 2).merge(updates(source("twos")).filter(lambda r: r.k > 2))


def no_nulls(table: Table) -> Table:
    """The table with zeros for nulls: groups of one's own do not expect any."""
    return table.map(lambda r: {"v": call("coalesce", r.v, 0), "w": call("coalesce", r.w, 0)})


VECTORS = Group(
    empty={"v": 0, "w": 0},
    combine=lambda a, b: {"v": a.v + b.v, "w": a.w + b.w},
    inverse=lambda a: {"v": -a.v, "w": -a.w},
)


def reductions(table: Table) -> Stream:
    return table.reduce(
        n=algebra.count(),
        total=algebra.total(lambda r: r.v),
        mean=algebra.average(lambda r: r.v),
        least=algebra.minimum(lambda r: r.w),
        most=algebra.maximum(lambda r: r.w),
    )


@st.composite
def events(draw: st.DrawFn) -> Events:
    values = st.one_of(st.integers(0, 3), st.none())
    rows = st.tuples(st.integers(0, 3), values, values, st.booleans())
    found: Events = {name: [] for name in SOURCES}
    time = 0
    for name, row, step in draw(
        st.lists(st.tuples(st.sampled_from(SOURCES), rows, st.integers(1, 3)), max_size=14)
    ):
        time += step
        found[name].append((time, row))
    return found
