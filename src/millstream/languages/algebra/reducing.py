"""Reductions and combined updates, as far as they are known before any program is made."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from millstream.calculus.check import Scope, check
from millstream.calculus.functions import Aggregation, Assign, Columns, FunctionFault
from millstream.calculus.terms import Term
from millstream.calculus.types import BOOLEAN, Field, Kind, Schema, Value
from millstream.errors import UsageError, listing, suggest
from millstream.languages.algebra.groups import Group, Measure, part_columns
from millstream.languages.algebra.nodes import DELETED, CombineUpdates, TableNode, can_delete
from millstream.tracing.lambdas import (
    VALUE,
    Record,
    RowFunction,
    Untraceable,
    called_with,
    expression_of,
    if_,
    trace_term,
    traced_columns,
    traced_variable,
)
from millstream.tracing.rows import schema_of_values

#: A value of each kind, for others to be made like it.
_LIKE: dict[Kind, Value] = {
    Kind.BOOLEAN: False, Kind.INTEGER: 0, Kind.NUMBER: 0.0, Kind.TEXT: "", Kind.TIME: 0,
    Kind.DURATION: 0,
}  # fmt: skip

#: What is kept and combined: fields by name, or one value.
State = Mapping[str, Value] | Value


@dataclass(frozen=True, slots=True)
class ProductPart:
    """A group of a product, with what its columns are called in the result."""

    group: Group
    #: From the columns of the group to those of the result.
    columns: Mapping[str, str]


def parts_of(group: Group, table: TableNode) -> tuple[ProductPart, ...]:
    if group.parts is None:
        return (ProductPart(group, {n: n for n in _result(group, table).names}),)
    return tuple(_parts(group, table))


def _parts(group: Group, table: TableNode) -> Iterator[ProductPart]:
    """The parts of a product; those of a product in it are named by both."""
    assert group.parts is not None
    for name, one in group.parts.items():
        inner = parts_of(one, table)
        columns = part_columns(name, tuple(c for part in inner for c in part.columns.values()))
        for part in inner:
            yield ProductPart(part.group, {old: columns[new] for old, new in part.columns.items()})


def result_schema(group: Group, table: TableNode) -> Schema:
    """The columns of a reduction."""
    fields = []
    for part in parts_of(group, table):
        if not part.group.measures:
            part.group.check_laws({f.name: _LIKE[f.type.kind] for f in table.schema})
        schema = _result(part.group, table)
        fields += [Field(new, schema[old]) for old, new in part.columns.items()]
    return Schema(tuple(fields))


def _result(group: Group, table: TableNode) -> Schema:
    if group.measures:
        aggregations = [(m.column, aggregation(m, table)) for m in group.measures]
        return Schema(tuple(Field(name, a.result_type()) for name, a in aggregations))
    fields = group_fields(group)
    if group.finish is None:
        return fields
    columns = finish_columns(group, "state", fields)
    return Schema(tuple(Field(c.name, c.term.type) for c in columns))


def aggregation(measure: Measure, table: TableNode) -> Aggregation:
    """The aggregate of the calculus that a measure of a table is."""
    term = None
    if measure.of is not None:
        try:
            term = trace_term(measure.of, table.schema)
        except Untraceable as reason:
            raise UsageError(
                f"what is to be aggregated cannot be traced: {reason}",
                hint="compute it as a column first, with map",
            ) from None
    aggregate = Aggregation(measure.column, measure.function, term)
    try:
        aggregate.result_type()
    except FunctionFault as fault:
        raise UsageError(str(fault)) from None
    return aggregate


# --- groups of one's own --------------------------------------------------------------------


def group_fields(group: Group) -> Schema:
    if not isinstance(group.empty, Mapping):
        raise UsageError(
            f"the empty value of a group must be a dictionary of fields, got {group.empty!r}",
            hint='write Group(empty={"total": 0}, ...)',
        )
    return schema_of_values(group.empty, {})


def finish_columns(group: Group, variable: str, fields: Schema) -> Columns:
    """The columns that are sent of the combined value in a variable."""
    assert group.finish is not None
    try:
        made = called_with(group.finish, traced_variable(variable, fields))
    except Untraceable as reason:
        raise UsageError(
            f"what a group gives at the end cannot be traced: {reason}",
            hint="send the value itself, and compute the rest with map",
        ) from None
    return tuple(_checked(_mapping(made, "finish"), Scope(Schema(), variables={variable: fields})))


def group_updates(
    group: Group, variable: str, fields: Schema, row: Schema, gone: str
) -> dict[str, Term]:
    """New values of a group's fields when a row comes, or goes if the column `gone` is true.

    Raises `Untraceable` where a callable of the group cannot be traced.
    """
    state, columns = traced_variable(variable, fields), traced_columns(row)
    lift: RowFunction = group.lift or (lambda r: {n: r[n] for n in fields.names})
    value = Record(_mapping(called_with(lift, columns), "lift"))
    inverse = Record(_mapping(called_with(group.inverse, value), "inverse"))
    added = _mapping(called_with(group.combine, state, value), "combine")
    removed = _mapping(called_with(group.combine, state, inverse), "combine")
    scope = Scope(row, variables={variable: fields})
    return {
        f.name: check(
            expression_of(if_(columns[gone], _field(removed, f), _field(added, f))),
            scope,
            wanted=f.type,
        )
        for f in fields
    }


def _field(values: Mapping[str, Any], field: Field) -> Any:
    if field.name not in values:
        raise UsageError(
            f'the value of a group has the field "{field.name}", but combine does not give it',
            hint=f"it gives: {listing(values)}",
        )
    return values[field.name]


def _mapping(made: object, what: str) -> Mapping[str, Any]:
    if not isinstance(made, Mapping):
        raise UsageError(f"{what} must give a dictionary of fields, got {made!r}")
    return made


def _checked(values: Mapping[str, Any], scope: Scope) -> Iterator[Assign]:
    for name, value in values.items():
        yield Assign(name, check(expression_of(value), scope))


# --- combined updates -----------------------------------------------------------------------


def combine_node(
    table: TableNode, initial: State, combine: RowFunction, columns: Mapping[str, str]
) -> CombineUpdates:
    """The table of what updates add up to, checked."""
    if not isinstance(initial, Mapping):
        initial, combine = {VALUE: initial}, _on_value(combine)
    fields = schema_of_values(initial, columns)
    for name in fields.names:
        if name in table.key or (name == DELETED and can_delete(table)):
            raise UsageError(
                f'the state cannot have a field "{name}": '
                + ("it is the key of the table" if name in table.key else "changelogs have it")
            )
    is_opaque = False
    try:
        combine_terms(combine, "state", fields, table.schema)
    except Untraceable:
        is_opaque = True
    keys = tuple(Field(n, table.schema[n]) for n in table.key)
    schema = Schema(keys + fields.fields)
    first = tuple(
        float(v) if f.type.kind.value == "number" and type(v) is int else v
        for f, v in zip(fields, initial.values(), strict=True)
    )
    return CombineUpdates(schema, table.key, table, fields, first, combine, is_opaque)


def _on_value(combine: RowFunction) -> RowFunction:
    """A function of a plain state as one of a state with a field."""

    @functools.wraps(combine)
    def call(state: Any, row: Any) -> dict[str, object]:
        return {VALUE: combine(state[VALUE], row)}

    return call


def combine_terms(
    combine: RowFunction, variable: str, fields: Schema, row: Schema
) -> dict[str, Term]:
    """New values of the fields that the callable names; `Untraceable` if it cannot be."""
    made = called_with(combine, traced_variable(variable, fields), traced_columns(row))
    values = _mapping(made, "combine")
    for name in values:
        if name not in fields:
            near = suggest(name, fields.names) or ""
            raise UsageError(
                f'combine gives a field "{name}" that is not in the initial state',
                hint=f"there are: {listing(fields.names)}. {near}".strip(),
            )
    scope = Scope(row, variables={variable: fields})
    return {
        str(n): check(expression_of(v), scope, wanted=fields[str(n)]) for n, v in values.items()
    }


__all__ = [
    "BOOLEAN", "ProductPart", "State", "aggregation", "combine_node", "combine_terms",
    "finish_columns", "group_fields", "group_updates", "parts_of", "result_schema",
]  # fmt: skip
