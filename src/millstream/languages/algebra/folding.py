"""Reductions and combined updates as aggregates and folds."""

from __future__ import annotations

from typing import Any

from millstream.calculus.functions import (
    Aggregate,
    Assign,
    Columns,
    Dstream,
    Fold,
    Istream,
    Join,
    Map,
    Merge,
    OpaqueFold,
    Rows,
    Update,
)
from millstream.calculus.graph import Variable
from millstream.calculus.library.columns import flag, is_true, kept
from millstream.calculus.terms import Call, Column, Literal, Term, VariableField
from millstream.calculus.types import BOOLEAN, Field, Row, Schema, Type, Value
from millstream.calculus.wiring import Queue, Wiring
from millstream.languages.algebra.nodes import DELETED, CombineUpdates, Reduce
from millstream.languages.algebra.reducing import (
    ProductPart,
    aggregation,
    combine_terms,
    finish_columns,
    group_fields,
    group_updates,
    parts_of,
)
from millstream.tracing.lambdas import Record, Untraceable
from millstream.tracing.rows import given_row

GONE = "gone."


# --- reductions -----------------------------------------------------------------------------


def reduced(wiring: Wiring, node: Reduce, table: Queue) -> Queue:
    """The relation of one row that holds the result."""
    parts = parts_of(node.group, node.table)
    measured = [p for p in parts if p.group.measures]
    results = [_measured(wiring, node, measured, table)] if measured else []
    results += [_folded(wiring, node, p, table) for p in parts if not p.group.measures]
    result = results[0]
    for other in results[1:]:
        result = wiring.add(Join(), result, other, name="results")
    if result.schema == node.schema:
        return result
    return wiring.add(Map(kept(node.schema)), result, name="result")


def _measured(wiring: Wiring, node: Reduce, parts: list[ProductPart], table: Queue) -> Queue:
    """Ready-made groups are aggregates, all in one."""
    measures = [(p.columns[m.column], m) for p in parts for m in p.group.measures]
    aggregations = tuple(aggregation(m, node.table) for _, m in measures)
    named = tuple(_renamed(a, name) for a, (name, _) in zip(aggregations, measures, strict=True))
    sums = wiring.add(Aggregate((), named), table, name="sums")
    columns = tuple(Assign(name, _or(name, sums.schema[name], m.nothing)) for name, m in measures)
    return wiring.add(Map(columns), sums, name="measured")


def _renamed(one: Any, name: str) -> Any:
    return type(one)(name, one.function, one.term)


def _or(name: str, type_: Type, nothing: Value) -> Term:
    column = Column(name, type_)
    if nothing is None:
        return column
    return Call("coalesce", (column, Literal(nothing, type_)), type_)


def _folded(wiring: Wiring, node: Reduce, part: ProductPart, table: Queue) -> Queue:
    """Other groups fold what goes and what comes; of an instant only the last value counts."""
    gone = wiring.add(Dstream(), table, name="went")
    come = wiring.add(Istream(), table, name="came")
    columns = kept(table.schema)
    changes = wiring.add(
        Merge(),
        wiring.add(Map((*columns, flag(GONE, value=True))), gone, name="went"),
        wiring.add(Map((*columns, flag(GONE, value=False))), come, name="came"),
        name="changes",
    )
    totals = _totals(wiring, part, changes)
    return wiring.add(Rows(1), totals, name="total")


def _totals(wiring: Wiring, part: ProductPart, changes: Queue) -> Queue:
    group, fields = part.group, group_fields(part.group)
    name = wiring.fresh_variable("total")
    sent = _sent(part, name, fields)
    try:
        terms = group_updates(group, name, fields, changes.schema, GONE)
    except Untraceable:
        return _opaque_totals(wiring, part, changes, fields)
    updates = tuple(Update(name, field, term) for field, term in terms.items())
    first = tuple(group.empty[n] for n in fields.names)
    variable = Variable(name, fields.fields, first)
    return wiring.fold(Fold((), None, updates, sent), changes, variable, name="totals")


def _sent(part: ProductPart, variable: str, fields: Schema) -> Columns:
    if part.group.finish is None:
        return tuple(
            Assign(part.columns[f.name], VariableField(variable, f.name, f.type)) for f in fields
        )
    columns = finish_columns(part.group, variable, fields)
    return tuple(Assign(part.columns[c.name], c.term) for c in columns)


def _opaque_totals(wiring: Wiring, part: ProductPart, changes: Queue, fields: Schema) -> Queue:
    group, names = part.group, changes.schema
    sent = _sent(part, "state", fields)
    made = Schema.of(**{c.name: c.term.type for c in sent})

    def call(state: Row, row: Row) -> tuple[Row, Row]:
        given = given_row(names, row)
        value = group.lifted(given)
        if given[GONE]:
            value = group.inverted(value)
        new = group.combined(dict(zip(fields.names, state, strict=True)), value)
        result = group.finished(new)
        return tuple(new[n] for n in fields.names), tuple(result[n] for n in part.columns)

    label = getattr(group.combine, "__qualname__", repr(group.combine))
    first = tuple(group.empty[n] for n in fields.names)
    return wiring.add(OpaqueFold(label, (), made, first, call), changes, name="totals")


# --- combined updates -----------------------------------------------------------------------


def combined_updates(
    wiring: Wiring, node: CombineUpdates, updates: Queue, *, can_delete: bool
) -> Queue:
    """The stream of updates in which every value is what came before it, combined."""
    if node.is_opaque:
        return _opaque_combined(wiring, node, updates, can_delete=can_delete)
    name = wiring.fresh_variable("state")
    terms = combine_terms(node.combine, name, node.fields, node.parent.schema)
    there = "there." if can_delete else None
    first = dict(zip(node.fields.names, node.initial, strict=True))
    changes = {n: _unless(t, first[n], is_reset=can_delete) for n, t in terms.items()}
    sets = [Update(name, n, t) for n, t in changes.items()]
    fields, initial = node.fields, node.initial
    condition: Term | None = None
    if there is not None:
        is_there = VariableField(name, there, BOOLEAN)
        live = Call("not", (is_true(DELETED),), BOOLEAN)
        # Deleting what is not there is nothing.
        condition = Call("or", (live, is_there), BOOLEAN)
        sets.append(Update(name, there, live))
        fields = Schema((*fields.fields, Field(there, BOOLEAN)))
        initial = (*initial, False)
    emit = _emitted(node, name, can_delete=can_delete)
    variable = Variable(name, fields.fields, initial)
    fold = Fold(node.key, condition, tuple(sets), emit)
    return wiring.fold(fold, updates, variable, name="combined")


def _unless(term: Term, initial: Value, *, is_reset: bool) -> Term:
    if not is_reset:
        return term
    return Call("if", (is_true(DELETED), Literal(initial, term.type), term), term.type)


def _emitted(node: CombineUpdates, variable: str, *, can_delete: bool) -> Columns:
    keys = kept(Schema(tuple(f for f in node.schema if f.name in node.key)))
    values = [Assign(f.name, VariableField(variable, f.name, f.type)) for f in node.fields]
    if not can_delete:
        return (*keys, *values)
    values = [
        Assign(v.name, Call("if", (is_true(DELETED), Literal(None, v.term.type), v.term),
                            v.term.type))
        for v in values
    ]  # fmt: skip
    return (*keys, *values, Assign(DELETED, is_true(DELETED)))


def _opaque_combined(
    wiring: Wiring, node: CombineUpdates, updates: Queue, *, can_delete: bool
) -> Queue:
    given, fields = updates.schema, node.fields
    made = node.update_schema if can_delete else node.schema
    keys = [given.index(n) for n in node.key]

    def call(state: Row, row: Row) -> tuple[Row | None, Row | None]:
        key = tuple(row[k] for k in keys)
        record = given_row(given, row)
        if can_delete and record[DELETED]:
            was_there = state is not node.initial
            return None, ((*key, *(None,) * len(fields), True) if was_there else None)
        before = dict(zip(fields.names, state, strict=True))
        result: Any = node.combine(Record(before), record)
        after = before | dict(result)
        new = tuple(after[n] for n in fields.names)
        return new, (*key, *new, *((False,) if can_delete else ()))

    label = getattr(node.combine, "__qualname__", repr(node.combine))
    function = OpaqueFold(label, node.key, made, node.initial, call)
    return wiring.add(function, updates, name="combined")
