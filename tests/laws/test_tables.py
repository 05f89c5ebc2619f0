"""Tables that refer to each other, with rows of nulls where nobody is: what is claimed of keys.

A join of tables keeps one row of each key and is wrong where there are two: so the claims of
`unique_keys` are held against what the reference says of the same queues at every instant.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from millstream.calculus.functions import Distinct, Filter, Join, Latest, Merge
from millstream.calculus.graph import Input, Program
from millstream.calculus.library.outer_joins import padded, without_partner
from millstream.calculus.terms import Call, Column, Literal
from millstream.calculus.types import BOOLEAN, INTEGER, QueueType, Row, Schema
from millstream.calculus.unique import unique_keys
from millstream.calculus.wiring import Queue, Wiring
from millstream.engine.reference.feed import Event
from millstream.languages.rules.wiring import RulesWiring
from millstream.plan.unique import is_table_join
from tests.laws.runs import Rows, on_local, on_reference

TABLES = ("a", "b", "c")
#: Whether time goes on, the table, the key, whom its row refers to, and whether it is gone.
Change = tuple[int, str, int | None, int | None, bool]
KEYS = st.one_of(st.none(), st.integers(0, 2))
CHANGES = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(TABLES), KEYS, KEYS, st.booleans()), max_size=24
)


def table(wiring: Wiring, name: str) -> Queue:
    """The latest row of each key, and to whom it refers."""
    schema = Schema.of(**{f"{name}_id": INTEGER, f"{name}_to": INTEGER, f"{name}_gone": BOOLEAN})
    stream = wiring.input(Input(name, QueueType(schema)))
    return wiring.add(Latest((f"{name}_id",), f"{name}_gone"), stream, name=f"{name}_table")


def chain() -> Program:
    """Rows of the first, with those they refer to and those that these refer to."""
    wiring = RulesWiring()
    a, b, c = (table(wiring, name) for name in TABLES)
    kept = frozenset({*a.schema.names, *b.schema.names, *c.schema.names})
    once = wiring.left_join(a, b, (("a_to", "b_id"),), "once", kept)
    twice = wiring.left_join(once, c, (("b_to", "c_id"),), "twice", kept)
    return wiring.program({"found": twice})


def there_or_asked_for(*, nulls_match: bool, overlooks: bool, hides: bool) -> Program:
    """The rows of a table, and one of nulls for each key that is asked for in vain.

    Some rows may be overlooked when they are asked for, or not be among those that are there.
    """
    wiring = Wiring()
    asked = wiring.columns(table(wiring, "a"), {"b_id": "a_to"}, "keys")
    asked = wiring.add(Distinct(), asked, name="asked")
    there = table(wiring, "b")
    is_small = Call("<", (Column("b_id", INTEGER), Literal(1, INTEGER)), BOOLEAN)
    small = wiring.add(Filter(is_small), there, name="small")
    seen = small if overlooks else there
    missing = without_partner(
        wiring, asked, seen, (("b_id", "b_id"),), padded(there.schema, asked.schema),
        name="missing", nulls_match=nulls_match,
    )  # fmt: skip
    total = wiring.add(Merge(), small if hides else there, missing, name="total")
    return wiring.program({"total": total})


def events_of(
    changes: list[Change],
) -> dict[str, list[Event]]:
    """Changes, many of them of one instant."""
    events: dict[str, list[Event]] = {name: [] for name in TABLES}
    now = 0
    for later, name, key, refers, is_gone in changes:
        now += later
        events[name].append(Event(now, (key, refers, is_gone)))
    return events


def net(rows: Rows) -> Counter[tuple[int, Row]]:
    sums: Counter[tuple[int, Row]] = Counter()
    for time, weight, row in rows:
        sums[time, row] += weight
    return Counter({change: count for change, count in sums.items() if count})


def run_both(program: Program, changes: list[Change], cut: int) -> None:
    events = {n: e for n, e in events_of(changes).items() if n in program.input_names}
    meant, _ = on_reference(program, events)
    told, _ = on_local(program, events, (cut,))
    assert {q: net(rows) for q, rows in meant.items()} == {q: net(rows) for q, rows in told.items()}
    for queue, key in unique_keys(program).items():
        if queue in meant:
            check_unique(
                meant[queue], [program.queue_types()[queue].schema.names.index(n) for n in key]
            )


def check_unique(rows: Rows, places: list[int]) -> None:
    """Of each key there is one row at most, after every instant."""
    held: Counter[Row] = Counter()
    times = [time for time, _, _ in rows]
    for number, (time, weight, row) in enumerate(rows):
        held[tuple(row[n] for n in places)] += weight
        if number + 1 == len(rows) or times[number + 1] != time:
            assert all(0 <= count <= 1 for count in held.values())


@given(CHANGES, st.integers(0, 12))
def test_rows_that_refer_to_rows_are_found_whether_these_are_there_or_not(
    changes: list[Change], cut: int
) -> None:
    program = chain()
    keys = unique_keys(program)
    joins = [(op.function, op.inputs) for op in program.operators
             if isinstance(op.function, Join)]  # fmt: skip
    assert keys["found"] == ("a_id",) and len(joins) == 2
    assert all(is_table_join(join, [keys.get(q) for q in queues]) for join, queues in joins)
    run_both(program, changes, cut)


@given(CHANGES, st.integers(0, 12), st.booleans(), st.booleans(), st.booleans())
def test_what_is_there_and_what_was_not_found_have_one_key_where_no_row_can_be_both(
    changes: list[Change], cut: int, nulls_match: bool, overlooks: bool, hides: bool
) -> None:
    program = there_or_asked_for(nulls_match=nulls_match, overlooks=overlooks, hides=hides)
    has_key = "total" in unique_keys(program)
    assert has_key == (nulls_match and (hides or not overlooks))
    run_both(program, changes, cut)
