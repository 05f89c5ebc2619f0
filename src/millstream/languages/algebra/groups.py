"""Groups: what a table can be reduced by, one change at a time.

A group has an `empty` value, a way to `combine` two values and an `inverse`, so that an
old value can be taken out again:

    combine(combine(total, inverse(old)), new)

Sum and count are groups, and an average is made of the two. Minimum and maximum are not:
nothing undoes a minimum. Their group is that of *bags* of values, where combining adds and
inverting negates how often a value is there; the minimum is then read off the bag. So a
minimum costs the memory of all different values, and a sum does not.

What the engines compute for the ready-made groups are the aggregates of the calculus: exact
sums that leave no trace of what has left. A group of one's own on floats adds up as floats do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from millstream.calculus.types import Value
from millstream.errors import MillstreamError, UsageError
from millstream.tracing.lambdas import VALUE, Record, RowFunction

#: How often each value is there; a mapping without zeros.
Bag = Mapping[Value, int]

_TRIED = 50
#: So few lifted rows say nothing about a group.
_ENOUGH = 10


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate of the calculus that gives one column of a group's result."""

    column: str
    function: str
    of: RowFunction | None
    #: What the result is while there is nothing to aggregate.
    nothing: Value = None


@dataclass(frozen=True, eq=False)
class Group:
    """A way to combine values that can be undone.

        Group(
            empty={"x": 0.0, "y": 0.0},
            combine=lambda a, b: {"x": a.x + b.x, "y": a.y + b.y},
            inverse=lambda a: {"x": -a.x, "y": -a.y},
        )

    Values are records of named fields, or plain: `Group(0, lambda a, b: a + b, lambda a: -a)`
    gives a column `value`. `lift` makes one of a row of the table; without it the row has
    columns of these names. `finish` makes a row of the combined value; without it the value
    is the row. Ready-made groups have `measures`, which say how engines compute
    them; a product has `parts`.
    """

    empty: Any
    combine: Callable[[Any, Any], Any]
    inverse: Callable[[Any], Any]
    lift: RowFunction | None = None
    finish: RowFunction | None = None
    measures: tuple[Measure, ...] = ()
    parts: Mapping[str, Group] | None = None

    def lifted(self, row: Any) -> Any:
        if self.lift is not None:
            return self.lift(row)
        return {name: row[name] for name in self.empty}

    def finished(self, value: Any) -> Any:
        return value if self.finish is None else self.finish(_record(value))

    def combined(self, one: Any, other: Any) -> Any:
        return self.combine(_record(one), _record(other))

    def inverted(self, value: Any) -> Any:
        return self.inverse(_record(value))

    def check_laws(self, row: Mapping[str, Value] | None = None, seed: int = 0) -> None:
        """Try the laws on generated values; a `UsageError` shows values that break one.

        With a row of the table to go by they are what is lifted of such rows, and sums of it:
        a group need only be one on values that can come.
        """
        generators = [random.Random(seed + n) for n in range(_TRIED)]
        values = [] if row is None else list(self._reached(row, generators))
        if len(values) < _ENOUGH:
            values = [_generated(self.empty, generator) for generator in generators]
        for one, other, third in zip(values, values[1:], values[2:], strict=False):
            for law, left, right in self._tried(one, other, third):
                if not _is_same(left, right):
                    raise UsageError(
                        f"this is not a group: {law} does not hold: {_shown(left)} is not "
                        f"{_shown(right)}",
                        hint=f"with x = {_shown(one)}, y = {_shown(other)}, z = {_shown(third)}",
                    )

    def _reached(self, row: Mapping[str, Value], generators: list[random.Random]) -> Iterator[Any]:
        """What generated rows are lifted to, each other one combined with those before it."""
        if self.lift is None:
            return
        total = self.empty
        for number, generator in enumerate(generators):
            try:
                value = self.lifted(Record(_generated(dict(row), generator)))
            except Exception:  # noqa: BLE001, S112 - it may be no function of all rows
                continue
            total = self.combined(total, value)
            yield value if number % 2 else total

    def _tried(self, x: Any, y: Any, z: Any) -> Iterator[tuple[str, Any, Any]]:
        try:
            yield from self._laws(x, y, z)
        except MillstreamError:
            raise
        except Exception as error:
            raise UsageError(
                f"this is not a group: it fails with {type(error).__name__}: {error}",
                hint=f"with x = {_shown(x)}, y = {_shown(y)}, z = {_shown(z)}",
            ) from error

    def _laws(self, x: Any, y: Any, z: Any) -> Iterator[tuple[str, Any, Any]]:
        combine, inverse = self.combined, self.inverted
        yield "combine(x, inverse(x)) == empty", combine(x, inverse(x)), self.empty
        yield "combine(x, empty) == x", combine(x, self.empty), x
        yield "combine(empty, x) == x", combine(self.empty, x), x
        yield (
            "combine(combine(x, y), z) == combine(x, combine(y, z))",
            combine(combine(x, y), z),
            combine(x, combine(y, z)),
        )
        # Rows of a table have no order, so neither may what is made of them.
        yield "combine(x, y) == combine(y, x)", combine(x, y), combine(y, x)


def recorded(group: Group) -> Group:
    """The group with its values as records; plain ones get a field `value`."""
    if not isinstance(group.empty, (bool, int, float, str)):
        return group
    lift, finish = group.lift, group.finish
    return replace(
        group,
        empty={VALUE: group.empty},
        combine=lambda a, b: {VALUE: group.combine(a[VALUE], b[VALUE])},
        inverse=lambda a: {VALUE: group.inverse(a[VALUE])},
        lift=None if lift is None else lambda row: {VALUE: lift(row)},
        finish=None if finish is None else lambda a: _row_or_value(finish(a[VALUE])),
    )


def _row_or_value(made: Any) -> Any:
    return made if isinstance(made, Mapping) else {VALUE: made}


def _record(value: Any) -> Any:
    return Record(value) if type(value) is dict else value


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(_is_same(one[n], other[n]) for n in one)
    return bool(one == other)


def _shown(value: Any) -> str:
    return repr(dict(value) if isinstance(value, Mapping) else value)


def _generated(empty: Any, generator: random.Random) -> Any:
    """A value like the empty one: integers, and fractions that floats add without error."""
    match empty:
        case _Bag():
            return _Bag({v: n for v in range(3) if (n := generator.randint(-2, 2))})
        case dict():
            return type(empty)({n: _generated(one, generator) for n, one in empty.items()})
        case bool():
            return generator.random() < 0.5
        case int():
            return generator.randint(-1000, 1000)
        case float():
            return generator.randint(-4000, 4000) / 4
        case str():
            return "".join(generator.choices("ab", k=generator.randint(0, 3)))
        case _:
            raise UsageError(
                f"the empty value of a group must be a dictionary of values, got {empty!r}",
                hint='write Group(empty={"total": 0}, ...)',
            )


# --- ready-made groups --------------------------------------------------------------------


def total(of: RowFunction) -> Group:
    """The sum of something over all rows; nulls are passed over, and of nothing it is 0."""
    return Group(
        empty={"total": 0},
        combine=lambda x, y: {"total": x.total + y.total},
        inverse=lambda x: {"total": -x.total},
        lift=lambda row: {"total": _or_nothing(of(row), 0)},
        measures=(Measure("total", "sum", of, nothing=0),),
    )


def count() -> Group:
    """How many rows there are."""
    return Group(
        empty={"count": 0},
        combine=lambda x, y: {"count": x.count + y.count},
        inverse=lambda x: {"count": -x.count},
        lift=lambda _: {"count": 1},
        measures=(Measure("count", "count", None),),
    )


def average(of: RowFunction) -> Group:
    """The sum by the count of what is not null: a product of two groups; of nothing null."""

    def finish(value: Any) -> dict[str, Value]:
        return {"average": value.total / value.count if value.count else None}

    return Group(
        empty={"total": 0, "count": 0},
        combine=lambda x, y: {"total": x.total + y.total, "count": x.count + y.count},
        inverse=lambda x: {"total": -x.total, "count": -x.count},
        lift=lambda row: {
            "total": _or_nothing(of(row), 0),
            "count": 0 if of(row) is None else 1,
        },
        finish=finish,
        measures=(Measure("average", "avg", of),),
    )


def minimum(of: RowFunction) -> Group:
    """The least of something: read off the bag of all values, which is a group."""
    return _of_bags(of, "minimum", "min", min)


def maximum(of: RowFunction) -> Group:
    """The greatest of something: read off the bag of all values, which is a group."""
    return _of_bags(of, "maximum", "max", max)


def _of_bags(of: RowFunction, name: str, function: str, pick: Callable[[Any], Any]) -> Group:
    def combine(x: Bag, y: Bag) -> Bag:
        counts = {v: x.get(v, 0) + y.get(v, 0) for v in (*x, *y)}
        return {v: n for v, n in counts.items() if n}

    def lift(row: Any) -> Bag:
        value = of(row)
        return _Bag({} if value is None else {value: 1})

    return Group(
        empty=_Bag({}),
        combine=lambda x, y: _Bag(combine(x, y)),
        inverse=lambda x: _Bag({v: -n for v, n in x.items()}),
        lift=lift,
        finish=lambda bag: {name: pick(bag) if bag else None},
        measures=(Measure(name, function, of),),
    )


class _Bag(dict[Any, int]):
    """A bag is not a record, though both are dictionaries."""


def product(**groups: Group) -> Group:
    """Several groups side by side.

    A group of one column gives one of the name it has here; of another the columns are
    named by both, as in `wind_x`.
    """
    if not groups:
        raise UsageError("a product needs at least one group", hint="write product(n=count())")
    groups = {name: recorded(one) for name, one in groups.items()}
    return Group(
        empty=_Product({n: g.empty for n, g in groups.items()}),
        combine=lambda x, y: _Product({n: g.combined(x[n], y[n]) for n, g in groups.items()}),
        inverse=lambda x: _Product({n: g.inverted(x[n]) for n, g in groups.items()}),
        lift=lambda row: _Product({n: g.lifted(row) for n, g in groups.items()}),
        finish=lambda value: {
            column: result
            for n, g in groups.items()
            for column, result in _columns(n, g.finished(value[n])).items()
        },
        parts=groups,
    )


class _Product(dict[str, Any]):
    """The values of some groups by name; not a record, its parts are values themselves."""


def _columns(name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    columns = part_columns(name, tuple(result))
    return {columns[column]: value for column, value in result.items()}


def part_columns(name: str, columns: tuple[str, ...]) -> dict[str, str]:
    """What the columns of a part are called in the result of a product."""
    if len(columns) == 1:
        return {columns[0]: name}
    return {column: f"{name}_{column}" for column in columns}


def _or_nothing(value: Any, nothing: Value) -> Any:
    return nothing if value is None else value
