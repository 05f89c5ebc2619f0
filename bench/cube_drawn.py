"""A figure as SVG: lines over numbers, from zero on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, MARGIN = 640, 400, 80, 50
COLOURS = ("#1b6ca8", "#c1440e", "#3a7d44", "#7b4b94", "#8a6d1f")


@dataclass(frozen=True)
class Line:
    name: str
    points: list[tuple[float, float]]


def drawn(title: str, lines: list[Line]) -> str:
    """All lines in one frame, each with its name beside it."""
    xs = sorted({x for line in lines for x, _ in line.points})
    top = max(y for line in lines for _, y in line.points) or 1.0
    across = (WIDTH - LEFT - MARGIN) / ((xs[-1] - xs[0]) or 1)

    def place(x: float, y: float) -> tuple[float, float]:
        return LEFT + (x - xs[0]) * across, HEIGHT - MARGIN - y / top * (HEIGHT - 3 * MARGIN)

    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 24, title, "middle"),
        *(_text(place(x, 0)[0], HEIGHT - MARGIN + 20, f"{x:g}", "middle") for x in xs),
    ]
    for part in range(5):
        value = top * part / 4
        at = place(xs[0], value)[1]
        ends = f'x1="{LEFT}" x2="{WIDTH - MARGIN}" y1="{at:.1f}" y2="{at:.1f}"'
        parts += [f'<line {ends} stroke="#ddd"/>', _text(LEFT - 8, at + 4, _shown(value), "end")]
    for number, line in enumerate(lines):
        points = [place(x, y) for x, y in line.points]
        parts += _line(line.name, points, COLOURS[number % len(COLOURS)], number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(name: str, points: list[tuple[float, float]], colour: str, number: int) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    at = LEFT + number * (WIDTH - LEFT - MARGIN) / len(COLOURS)
    yield f'<rect x="{at:.1f}" y="38" width="10" height="10" fill="{colour}"/>'
    yield _text(at + 14, 47, name)


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
