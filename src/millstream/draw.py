"""A small picture of a graph: boxes in layers from left to right, as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 260, 46, 60, 22, 20
_FONT = 'font-family="sans-serif" font-size="12"'
_ARROW_HEAD = (
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>'
)
_FILL = {"input": "#e7f0fa", "output": "#e9f6ea", "step": "#ffffff"}


@dataclass(frozen=True, slots=True)
class Box:
    """A node: `name` is what others refer to in `after` and `beside`."""

    name: str
    title: str
    detail: str
    after: tuple[str, ...]
    kind: str = "step"
    #: Boxes that this one hears from other than by a queue: through a shared variable.
    beside: tuple[str, ...] = ()


def draw(boxes: list[Box]) -> str:
    """The boxes and the arrows between them."""
    layers = _layers(boxes)
    rows: dict[int, int] = {}
    place: dict[str, tuple[int, int]] = {}
    for box in boxes:
        layer = layers[box.name]
        row = rows.get(layer, 0)
        rows[layer] = row + 1
        place[box.name] = (
            _MARGIN + layer * (_WIDTH + _GAP_X),
            _MARGIN + row * (_HEIGHT + _GAP_Y),
        )
    width = max((x for x, _ in place.values()), default=0) + _WIDTH + _MARGIN
    height = max((y for _, y in place.values()), default=0) + _HEIGHT + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {_FONT}>',
        _ARROW_HEAD,
    ]
    for box in boxes:
        parts += [_arrow(place[a], place[box.name]) for a in box.after if a in place]
        parts += [_link(place[a], place[box.name]) for a in box.beside if a in place]
    parts += [_rectangle(box, *place[box.name]) for box in boxes]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _layers(boxes: list[Box]) -> dict[str, int]:
    """The longest way from an input; an arrow back to an earlier box does not count."""
    layers: dict[str, int] = {}
    for box in boxes:
        layers[box.name] = max((layers[a] + 1 for a in box.after if a in layers), default=0)
    return layers


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + _WIDTH, start[1] + _HEIGHT // 2
    x2, y2 = end[0], end[1] + _HEIGHT // 2
    bend = max(30, (x2 - x1) // 2)
    return (
        f'<path d="M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}" fill="none" '
        'stroke="#555" marker-end="url(#tip)"/>'
    )


def _link(start: tuple[int, int], end: tuple[int, int]) -> str:
    """A dashed line from the bottom of one box to the top, or bottom, of another."""
    x1, y1 = start[0] + _WIDTH // 2, start[1] + (_HEIGHT if end[1] >= start[1] else 0)
    x2, y2 = end[0] + _WIDTH // 2, end[1] + (0 if end[1] > start[1] else _HEIGHT)
    return (
        f'<path d="M{x1},{y1} L{x2},{y2}" fill="none" stroke="#b55" '
        'stroke-dasharray="4 3" marker-end="url(#tip)"/>'
    )


def _rectangle(box: Box, x: int, y: int) -> str:
    def cut(text: str, length: int) -> str:
        return escape(text if len(text) <= length else text[: length - 1] + "…")

    return (
        f'<g><title>{escape(box.detail)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" rx="6" fill="{_FILL[box.kind]}" stroke="#555"/>'
        f'<text x="{x + 10}" y="{y + 18}" font-weight="bold">{cut(box.title, 30)}</text>'
        f'<text x="{x + 10}" y="{y + 35}" fill="#555">{cut(box.detail, 34)}</text></g>'
    )
