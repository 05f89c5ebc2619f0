"""A cube as text: the lines of the configuration that makes it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from millstream.calculus.aggregation import Aggregation
from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.sketches import WHOLE
from millstream.calculus.terms import Column

_PLAIN = re.compile(r"""[^\s"`,|():#=]+""")


def cube_lines(function: Cubify) -> list[str]:
    """The configuration of a cube, a line each."""
    lines = [
        f"Dimensions = {' | '.join(map(_names, function.dimensions))}",
        f"TimeGrain = {function.grain}",
        f"CWindow = {function.window}",
        f"Measures = {', '.join(map(_measure, function.measures))}",
        f"OutputVertices = {_vertices(function.outputs)}",
    ]
    if function.kept[1:]:
        lines.append(f"MVertices = {_vertices(function.kept[1:])}")
    if function.history:
        lines.append(f"History = {function.history}")
    if function.memory:
        lines.append(f"MaxMemory = {function.memory}")
    output = "live" if function.is_live else "parts" if function.is_in_parts else None
    return lines if output is None else [*lines, f"Output = {output}"]


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f'"{name}"'


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(_name, names))


def _vertices(vertices: tuple[Vertex, ...]) -> str:
    """Vertices with their grains, so that no attribute at an end is taken for one."""
    return " | ".join(_names(v.attributes or ("all",)) + f", {v.grain}" for v in vertices) or "none"


def _measure(aggregation: Aggregation) -> str:
    column = _name(aggregation.term.name) if isinstance(aggregation.term, Column) else ""
    at = "" if aggregation.at is None else f", {aggregation.at / WHOLE:.6f}"
    return f"{_name(aggregation.name)}: {aggregation.function}({column}{at})"
