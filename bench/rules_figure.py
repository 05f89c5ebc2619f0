"""The figure of the rules benchmark: throughput over the size of tables, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 640, 400, 60
COLOURS = {"A": "#1b6ca8", "B": "#c1440e", "C": "#3a7d44", "D": "#7b4b94"}


def drawn(records: list[dict[str, Any]]) -> str:
    """An SVG with one line per program."""
    sizes = [r["rows"] for r in records]
    speeds = [r["events_per_s"] for r in records]
    low, high = math.floor(math.log10(min(speeds))), math.ceil(math.log10(max(speeds)))
    x = _scale(math.log10(min(sizes)), math.log10(max(sizes)), MARGIN, WIDTH - MARGIN)
    y = _scale(low, high, HEIGHT - MARGIN, MARGIN)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 24, "Events per second, by rows per table", "middle"),
        *_axes(sorted(set(sizes)), range(low, high + 1), x, y),
    ]
    for name in dict.fromkeys(r["program"] for r in records):
        parts += _line(name, [r for r in records if r["program"] == name], x, y)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - low) / ((high - low) or 1) * (end - start)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _axes(
    sizes: list[int], powers: range, x: Callable[[float], float], y: Callable[[float], float]
) -> Iterator[str]:
    for size in sizes:
        yield _text(x(math.log10(size)), HEIGHT - MARGIN + 20, f"{size:,}", "middle")
    for power in powers:
        at = y(power)
        yield (
            f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
        )
        yield _text(MARGIN - 8, at + 4, f"{10**power:,}", "end")


def _line(
    name: str,
    records: list[dict[str, Any]],
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> Iterator[str]:
    points = [(x(math.log10(r["rows"])), y(math.log10(r["events_per_s"]))) for r in records]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    colour = COLOURS.get(name, "#444")
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    yield from (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points)
    yield _text(points[-1][0] + 8, points[-1][1] + 4, name)
