"""What questions mean, in plain Python over the rows themselves: slow, and easy to follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from millstream.calculus.cube import Cubify
from millstream.calculus.terms import Column
from millstream.olap.question import Condition, Question
from millstream.values.instants import render_time
from millstream.wildcards import like_pattern

Row = dict[str, Any]
Cell = dict[str, Any]


@dataclass(frozen=True)
class Plain:
    """The rows of a cube, each with its time under `_time`, and the time that it is now."""

    cube: Cubify
    rows: list[Row]
    mark: int

    def answer(self, question: Question) -> list[Cell]:
        """The cells in order, without columns."""
        span = self._span(question)
        cells = self._cells(question, span, 0)
        if question.earlier is not None:
            cells = self._beside(question, cells, span)
        made = [self._shown(question, key, *both) for key, both in cells.items()]
        self._add_shares(question, cells, made)
        pairs = list(zip(cells, made, strict=True))
        if question.limit is None:
            pairs.sort(key=lambda pair: self._order(question, pair[0], cells[pair[0]][0]))
            return [shown for _, shown in pairs]
        return self._limited(question, pairs, cells)

    def totals(self, question: Question) -> list[Cell]:
        """For each number of rows but all, from none on."""
        made: list[Cell] = []
        for count in range(len(question.rows)):
            fewer = _with_rows(question, question.rows[:count])
            made += Plain(self.cube, self.rows, self.mark).answer(fewer)
        return made

    # --- cells ---

    def _span(self, question: Question) -> tuple[int, int]:
        grain, window = self.cube.grain, self.cube.window
        now = int(grain.index(self.mark))
        step = now if question.as_of is None else int(grain.index(question.as_of))
        last = step if question.as_of is None else step - 1
        first = step - window
        if question.last is not None:
            first = max(first, last - question.last + 1)
        if question.first is not None:
            first = question.first
        if question.end is not None:
            last = min(last, question.end - 1)
        return first, last

    def _cells(
        self, question: Question, span: tuple[int, int], shifted: int
    ) -> dict[tuple[Any, ...], tuple[list[Row], list[Row]]]:
        made: dict[tuple[Any, ...], tuple[list[Row], list[Row]]] = {}
        for row in self.rows:
            index = int(self.cube.grain.index(row["_time"]))
            if not span[0] <= index <= span[1] or row["_time"] > self.mark:
                continue
            if not all(_holds(c, row[c.attribute]) for c in question.where):
                continue
            part = 0
            if question.grain is not None:
                part = int(question.grain.index(int(self.cube.grain.start(index + shifted))))
            key = (*(row[n] for n in (*question.rows, *question.columns)), part)
            made.setdefault(key, ([], []))[0].append(row)
        return made

    def _beside(
        self, question: Question, cells: dict[Any, tuple[list[Row], list[Row]]],
        span: tuple[int, int],
    ) -> dict[Any, tuple[list[Row], list[Row]]]:  # fmt: skip
        earlier = question.earlier or 0
        before = self._cells(question, (span[0] - earlier, span[1] - earlier), earlier)
        keys = [*cells, *(k for k in before if k not in cells)]
        return {k: (cells.get(k, ([], []))[0], before.get(k, ([], []))[0]) for k in keys}

    def _shown(
        self, question: Question, key: tuple[Any, ...], rows: list[Row], before: list[Row]
    ) -> Cell:
        names = (*question.rows, *question.columns)
        made = dict(zip(names, key, strict=False))
        if question.grain is not None:
            made["time"] = render_time(int(question.grain.start(key[-1])))
        now = self._measured(question, rows)
        if question.earlier is None:
            return made | now
        old = self._measured(question, before)
        for name in question.measures:
            given, was = now[name], old[name]
            both = given is not None and was is not None
            made |= {name: given, f"{name}_before": was}
            made[f"{name}_change"] = given - was if both else None
        return {**{k: v for k, v in made.items() if k not in now}, **now, **made}

    def _measured(self, question: Question, rows: list[Row]) -> Cell:
        return {name: self._measure(name, rows) for name in question.measures}

    def _measure(self, name: str, rows: list[Row]) -> Any:
        """Null of no rows at all, as for a period in which a group is not there."""
        measure = next(m for m in self.cube.measures if m.name == name)
        if not rows:
            return None
        if measure.term is None:
            return len(rows)
        assert isinstance(measure.term, Column)
        column = measure.term.name
        values = [row[column] for row in rows if row[column] is not None]
        return _MEASURES[measure.function](values)

    # --- shares, order and limits ---

    def _add_shares(self, question: Question, cells: dict[Any, Any], made: list[Cell]) -> None:
        for name in question.share:
            for key, shown in zip(cells, made, strict=True):
                parent = _parent(question, key)
                family = [r for k, (rows, _) in cells.items() if _parent(question, k) == parent
                          for r in rows]  # fmt: skip
                shown[f"{name}_share"] = _share(
                    self._measure(name, cells[key][0]), self._measure(name, family)
                )

    def _order(self, question: Question, key: tuple[Any, ...], rows: list[Row]) -> list[Any]:
        names = [*question.rows, *question.columns, "time"]
        asked: list[Any] = []
        for one in question.order:
            is_member = one.name in names
            value = key[names.index(one.name)] if is_member else self._measure(one.name, rows)
            asked.append(_Key(value, is_falling=one.is_falling))
        return [*asked, *(_Key(value) for value in key)]

    def _order_inside(
        self, question: Question, key: tuple[Any, ...], cells: dict[Any, Any]
    ) -> list[Any]:
        """As asked, then by the member that differs in a family."""
        order, asked = self._order(question, key, cells[key][0]), len(question.order)
        return [*order[:asked], order[asked + len(question.rows) - 1]]

    def _limited(
        self, question: Question, pairs: list[tuple[Any, Cell]], cells: dict[Any, Any]
    ) -> list[Cell]:
        families: dict[Any, list[tuple[Any, Cell]]] = {}
        for key, shown in pairs:
            families.setdefault(_parent(question, key), []).append((key, shown))
        made: list[Cell] = []
        for parent in sorted(families, key=lambda p: [_Key(v) for v in p]):
            family = families[parent]
            family.sort(key=lambda pair: self._order_inside(question, pair[0], cells))
            limit = question.limit or 0
            first, rest = family[:limit], family[limit:]
            extra = {"others": None} if question.has_others else {}
            made += [shown | extra for _, shown in first]
            if rest and question.has_others:
                made.append(self._others(question, family, [k for k, _ in rest], cells))
        return made

    def _others(
        self, question: Question, family: list[tuple[Any, Cell]], rest: list[Any],
        cells: dict[Any, Any],
    ) -> Cell:  # fmt: skip
        rows, before = ([r for k in rest for r in cells[k][n]] for n in (0, 1))
        shown = self._shown(question, rest[0], rows, before) | {question.rows[-1]: None}
        whole = [r for k, _ in family for r in cells[k][0]]
        for name in question.share:
            shown[f"{name}_share"] = _share(self._measure(name, rows), self._measure(name, whole))
        return shown | {"others": len(rest)}


def _with_rows(question: Question, rows: tuple[str, ...]) -> Question:
    return replace(question, rows=rows, order=(), limit=None, has_others=False, share=())


def _parent(question: Question, key: tuple[Any, ...]) -> tuple[Any, ...]:
    last = len(question.rows) - 1
    return tuple(v for n, v in enumerate(key) if n != last) if last >= 0 else key


def _share(part: Any, of: Any) -> float | None:
    return None if part is None or not of else part / of


class _Key:
    """A value that is compared; null is the last, falling or not."""

    def __init__(self, value: Any, *, is_falling: bool = False) -> None:
        self.value = value
        self.is_falling = is_falling

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: _Key) -> bool:
        one, two = self.value, other.value
        if one is None or two is None:
            return two is None and one is not None
        return bool(two < one if self.is_falling else one < two)


def _holds(condition: Condition, value: Any) -> bool:
    if condition.values is not None:
        return (value in condition.values) != condition.is_not
    if value is None:
        return False
    if condition.like is not None:
        return like_pattern(condition.like).matches(value)
    is_low = condition.low is None or value >= condition.low
    return bool(is_low and (condition.high is None or value <= condition.high))


def _sum(values: list[Any]) -> Any:
    if not values:
        return None
    exact = sum(map(Fraction, values))
    return int(exact) if isinstance(values[0], int) else float(exact)


def _mean(values: list[Any]) -> float | None:
    """The sum, rounded once, by the count."""
    return float(sum(map(Fraction, values))) / len(values) if values else None


def _variance(values: list[Any]) -> float | None:
    if len(values) < 2:
        return None
    mean = sum(map(Fraction, values)) / len(values)
    return float(sum((Fraction(v) - mean) ** 2 for v in values) / (len(values) - 1))


_MEASURES: dict[str, Callable[[list[Any]], Any]] = {
    "sum": _sum, "count": len, "avg": _mean, "variance": _variance,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "distinct": lambda values: len(set(values)),
}  # fmt: skip


def is_near(one: Any, other: Any) -> bool:
    """Equal, or numbers that differ in the last digits, as variances may."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other) and (one is None) == (other is None)
