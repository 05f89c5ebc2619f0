"""COUNTIF, SUMIFS and their kin over areas that never change, as functions of their criteria.

The values stand side by side in lists. What criteria of equality ask for is found by an index; a
criterion that empty cells meet goes the general way, for an area has as many as one likes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from millstream.values.excel.arrays import MAX_ARRAY, FixedArea
from millstream.values.excel.functions_math import sum_of
from millstream.values.excel.gather import criterion
from millstream.values.excel.indexes import SEARCHED
from millstream.values.excel.values import DIV0, ErrorValue, Raised, Scalar, fail, finite

Part = Callable[[Sequence[Scalar]], Any]


def met(function: str, known: Sequence[Any], parts: Sequence[Part], general: Part) -> Part | None:
    """A call of such a function; None if it is not plain."""
    finish = _FINISH[function.removesuffix("S")]
    if function in ("COUNTIF", "COUNTIFS"):
        places = list(range(0, len(parts), 2))
        summed = known[0]
    elif function in ("SUMIF", "AVERAGEIF"):
        places = [0]
        summed = known[2] if len(known) > 2 else known[0]
    else:
        places = list(range(1, len(parts), 2))
        summed = known[0]
    areas = [known[place] for place in places]
    if not _are_alike([summed, *areas]):
        return None
    criteria = [parts[place + 1] for place in places]
    return _chosen(areas, criteria, [*_values(summed)], finish, general)


def _chosen(
    areas: Sequence[FixedArea], criteria: Sequence[Part], summed: list[Scalar],
    finish: Callable[[list[Scalar]], Scalar], general: Part,
) -> Part:  # fmt: skip
    lines = [[*_values(area)] for area in areas]
    indexes = [area.index() if len(summed) > SEARCHED else None for area in areas]
    if len(lines) == 1 and indexes[0] is None:
        (line,), (wanted,) = lines, criteria
        pairs = list(zip(line, summed, strict=True))

        def by_one(values: Sequence[Scalar]) -> Any:
            asked = wanted(values)
            matches = criterion(asked)
            if matches(None):
                return general(values)
            return finish([value for key, value in pairs if matches(key)])

        return by_one
    width = areas[0].width

    def by_all(values: Sequence[Scalar]) -> Any:
        asked = [part(values) for part in criteria]
        matchers = [criterion(value) for value in asked]
        if any(matches(None) for matches in matchers):
            return general(values)
        places: Sequence[int] = range(len(summed))
        for index, value in zip(indexes, asked, strict=True):
            near = None if index is None else index.candidates(value)
            if near is not None and len(near) < len(places):
                places = [i * width + j for i, j, _ in near]
        for matches, line in zip(matchers, lines, strict=True):
            places = [place for place in places if matches(line[place])]
        return finish([summed[place] for place in places])

    return by_all


def _are_alike(areas: Sequence[Any]) -> bool:
    """Are all of them areas that never change, of one shape, and small enough to be kept?"""
    return (
        all(isinstance(area, FixedArea) for area in areas)
        and len({(area.height, area.width) for area in areas}) == 1
        and areas[0].height * areas[0].width <= MAX_ARRAY
    )


def _values(area: FixedArea) -> chain[Scalar]:
    """All values, row by row; beyond the end of the worksheet there are none."""
    rows = area.to_array().rows
    missing = area.height - len(rows)
    short = area.width - len(rows[0])
    return chain(
        *((*row, *(None,) * short) for row in rows), (None for _ in range(missing * area.width))
    )


# --- what is made of those that are met -------------------------------------------------


def _numbers(values: list[Scalar]) -> list[float]:
    for value in values:
        if type(value) is ErrorValue:
            raise Raised(value)
    return [value for value in values if type(value) is float]


def _averaged(values: list[Scalar]) -> float:
    numbers = _numbers(values)
    return sum_of(numbers, is_exact=False) / len(numbers) if numbers else fail(DIV0)


_FINISH: dict[str, Callable[[list[Scalar]], Scalar]] = {
    "AVERAGEIF": _averaged,
    "COUNTIF": lambda values: float(len(values)),
    "MAXIF": lambda values: max(_numbers(values), default=0.0),
    "MINIF": lambda values: min(_numbers(values), default=0.0),
    "SUMIF": lambda values: finite(sum_of(_numbers(values), is_exact=False)),
}
CRITERIA = frozenset({
    "AVERAGEIF", "AVERAGEIFS", "COUNTIF", "COUNTIFS", "MAXIFS", "MINIFS", "SUMIF", "SUMIFS",
})  # fmt: skip
