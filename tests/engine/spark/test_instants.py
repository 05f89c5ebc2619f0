"""The rows of one instant keep their order wherever they are computed.

Programs whose answers depend on that order, with many rows at each instant, cut into batches
and spread over buckets as on Spark.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.engine.reference.feed import Event
from millstream.languages.brook.load import load
from millstream.source import Source
from tests.engine.test_batches import check
from tests.seeds import in_turn

#: What sets rows free, in the order of their values; `q` is what comes.
FREE = {
    "istream": "(w, $w) <- Range[2 us](in, $w); (q, $q) <- Istream(w, $q);",
    "rstream": "(w, $w) <- Rows[1 by k](in, $w); (q, $q) <- Rstream(w, $q);",
    "dstream": "(w, $w) <- Rows[2 by l](in, $w); (q, $q) <- Dstream(w, $q);",
    "table": """(w, $w) <- Latest[by k](in, $w); (q0, $q) <- Istream(w, $q);
        (q) <- Map[k, l, x](q0);""",
    "merged": "(q, $m, $o) <- Merge(in, other, $m, $o);",
    "joined": "(q, $m, $o, $p) <- RoundRobinJoin[2, 1](in, other, $m, $o, $p);",
    "the log": "(q) <- Filter[true](in);",
    # It takes the tuples of its first input first, which was declared last.
    "a sheet of two": """(s0, $m, $o, $a, $b, $c, $d, $e, $f) <- Sheet["S!A1 <- 1.k",
        "S!B1 <- 1.l", "S!C1 <- 1.x", "S!A2 <- 2.k", "S!B2 <- 2.l", "S!C2 <- 2.x",
        "S!A3 = S!A1+S!A2", "S!B3 = MAX(S!B1,S!B2)", "S!C3 = S!C1+S!C2", "by l, l",
        "output k number = S!A3, l number = S!B3, x number = S!C3"](
        other, in, $m, $o, $a, $b, $c, $d, $e, $f);
        (q) <- Map[k = integer(k), l = integer(l), x = integer(x)](s0);""",
}
#: What hides the order of the values; `r` is what comes.
HIDDEN = {
    "nothing": "(r) <- Filter[true](q);",
    "a map": "(r) <- Map[k = 0 - x, l, x = 0 - k](q);",
    "two maps": """(r0) <- Map[l, x, k](q); (r1) <- Filter[x != 1](r0);
        (r) <- Map[k = 0 - x, l, x](r1);""",
    "branches": "(r) <- FlatMap[when x > 0 emit k, l, x; emit k = 0 - x, l, x = k](q);",
    "a fold": "(r, $v) <- Fold[by k; set $v.n = $v.n + x; emit k, l, x = 5 - $v.n](q, $v);",
    "a fold of another key": """
        (r, $v) <- Fold[by l; set $v.n = $v.n * 3 + x; emit k = $v.n % 7, l = k, x](q, $v);""",
    "a sheet": """(s, $t) <- Sheet["S!A1 <- 1.k", "S!B1 <- 1.l", "S!C1 <- 1.x", "S!D1 = 5-S!A1",
        "output k number = S!C1, l number = S!B1, x number = S!D1"](q, $t);
        (r) <- Map[k = integer(k), l = integer(l), x = integer(x)](s);""",
    "a merge": "(q1, q2) <- Duplicate(q); (r, $m1, $m2) <- Merge(q1, q2, $m1, $m2);",
    "a split": """(r1, r2, $s) <- RoundRobinSplit(q, $s); (r0) <- Map[k = x, l, x = 0 - k](r1);
        (r3) <- Filter[x != 2](r2); (r, $j1, $j2, $j3) <- RoundRobinJoin(r0, r3, $j1, $j2, $j3);""",
}
#: What sees the order.
SEEN = {
    "the output": "(out) <- Map[x, k, l](r);",
    "a fold by key": """
        (out, $u) <- Fold[by l; set $u.n = $u.n * 2 + x; emit l, n = $u.n % 1000](r, $u);""",
    "a fold of all": "(out, $u) <- Fold[set $u.n = $u.n * 2 + x; emit l, n = $u.n % 1000](r, $u);",
    "the last rows": "(out, $z) <- Rows[1 by l](r, $z);",
    "rows and what comes": "(z, $z) <- Rows[2 by l](r, $z); (out, $y) <- Istream(z, $y);",
    "a fold and another": """
        (f, $u) <- Fold[by l; set $u.n = $u.n * 2 + x; emit k, l, n = $u.n % 1000](r, $u);
        (out, $y) <- Latest[by k](f, $y);""",
    "a window": """(z, $z) <- Range[1 us](r, $z);
        (out, $y) <- Aggregate[by l; n = count(), s = sum(x)](z, $y);""",
}

values = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3))
events = st.lists(st.tuples(st.integers(0, 4), values), min_size=2, max_size=16)


def program_text(free: str, hidden: str, seen: str) -> str:
    body = FREE[free] + HIDDEN[hidden] + SEEN[seen]
    needed = [v for v in ("$v", "$u") if f"{v})" in body]
    head = "output out; input in(k integer, l integer, x integer)"
    head += ", other(k integer, l integer, x integer);" if "other" in body else ";"
    if needed:
        head += f"variable {', '.join(f'{v}(n integer = 0)' for v in needed)};"
    return head + body


#: Each kind at least once, and all that have been wrong.
CHOSEN = (
    ("istream", "a map", "a fold by key"),
    ("istream", "a map", "the last rows"),
    ("istream", "a fold", "the output"),
    ("dstream", "two maps", "rows and what comes"),
    ("rstream", "a fold of another key", "a fold and another"),
    ("table", "nothing", "a fold of all"),
    ("merged", "branches", "a fold by key"),
    ("joined", "a merge", "the output"),
    ("the log", "a split", "a window"),
    ("the log", "a sheet", "the output"),
    ("istream", "a sheet", "a fold of all"),
    ("a sheet of two", "nothing", "the output"),
    ("a sheet of two", "a map", "a fold of all"),
)
Rows = list[tuple[int, tuple[int, ...]]]

short = settings(max_examples=12, deadline=None, derandomize=True, database=None,
                 suppress_health_check=list(HealthCheck))  # fmt: skip


def agree(parts: tuple[str, str, str], given_: tuple[Rows, Rows], folder: Path, seed: int) -> None:
    program = load(Source("test.brook", program_text(*parts)))
    sources = {
        name: [Event(time, row) for time, row in sorted(rows, key=lambda e: e[0])]
        for name, rows in zip(("in", "other"), given_, strict=True)
        if name in program.input_names
    }
    check(program, sources, folder, seed)


@pytest.mark.parametrize("parts", in_turn(CHOSEN, days=2), ids=", ".join)
@short
@given(given_=st.tuples(events, events), seed=st.integers(0, 1000))
def test_what_depends_on_the_order_of_an_instant_is_the_same_in_many_places(
    tmp_path_factory: pytest.TempPathFactory,
    parts: tuple[str, str, str],
    given_: tuple[Rows, Rows],
    seed: int,
) -> None:
    agree(parts, given_, tmp_path_factory.mktemp("case"), seed)


@pytest.mark.proof
@pytest.mark.parametrize("parts", list(itertools.product(FREE, HIDDEN, SEEN)), ids=", ".join)
@short
@given(given_=st.tuples(events, events), seed=st.integers(0, 1000))
def test_so_it_is_for_all_of_them(
    tmp_path_factory: pytest.TempPathFactory,
    parts: tuple[str, str, str],
    given_: tuple[Rows, Rows],
    seed: int,
) -> None:
    agree(parts, given_, tmp_path_factory.mktemp("case"), seed)
