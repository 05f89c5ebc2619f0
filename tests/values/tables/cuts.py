"""Emits to a table, cut and ordered in many ways; all of them must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from millstream.values.tables.kind import Result, Table

Emits = Sequence[tuple[Any, Any]]


def gathered(table: Table, emits: Emits, keys: Sequence[int] = ()) -> list[Result]:
    return table.results(_added(table, emits, keys))


def _added(table: Table, emits: Emits, keys: Sequence[int]) -> Any:
    acc = table.empty()
    for n, (value, weight) in enumerate(emits):
        acc = table.add(acc, value, weight, keys[n] if keys else 0)
    return acc


def _added_together(table: Table, emits: Emits, keys: Sequence[int]) -> Any:
    """The same, with those that agree in everything added at once."""
    acc = table.empty()
    keyed = [(e, keys[n] if keys else 0) for n, e in enumerate(emits)]
    for n, ((value, weight), key) in enumerate(keyed):
        if keyed[n] not in keyed[:n]:
            acc = table.add_times(acc, value, weight, key, keyed.count(keyed[n]))
    return acc


def in_any_cut(
    table: Table, emits: Emits, data: st.DataObject, keys: Sequence[int] = ()
) -> list[Result]:
    """The results, after some order, some cut, some order of merging and a checkpoint between."""
    rows = gathered(table, emits, keys)
    order = data.draw(st.permutations(range(len(emits))))
    parts = data.draw(st.integers(1, 4))
    accs = []
    for part in range(parts):
        chosen = order[part::parts]
        add = _added_together if part % 2 else _added
        acc = add(table, [emits[n] for n in chosen], [keys[n] for n in chosen] if keys else ())
        accs.append(table.decode(table.encode(acc)))
    while len(accs) > 1:
        first = accs.pop(data.draw(st.integers(0, len(accs) - 1)))
        second = accs.pop(data.draw(st.integers(0, len(accs) - 1)))
        accs.append(table.merge(first, second))
    # NaN is not equal to itself, but it is shown alike.
    assert repr(rows) == repr(table.results(accs[0]))
    return rows
