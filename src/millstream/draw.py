"""A picture of a graph as SVG: boxes in layers from top to bottom, arrows with names and types.

Layers are the longest ways from an input; groups of boxes lie one below the other, each in a frame.
Arrows that pass layers go straight down between their boxes, which are ordered so that few arrows
cross, and each lies near those it is tied to. A browser shows all of it, moves it by dragging or
the wheel, and makes it larger by the wheel with Ctrl.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

_WIDTH, _GAP_X, _GAP_Y, _MARGIN, _BEND = 250, 30, 56, 24, 26
_LINE, _PADDING = 15, 9
_TITLE_CHARACTERS, _DETAIL_CHARACTERS, _TYPE_CHARACTERS = 30, 38, 28
_FRAME = 12
_MOST_LINES = 4
_SWEEPS = 12
_FILL = {"input": "#e3effb", "output": "#e2f4e5", "step": "#ffffff", "state": "#fff6e0"}
_EDGE = {"input": "#4a7fb5", "output": "#4c9a5b", "step": "#777777", "state": "#c08a1e"}
_HEAD = (
    '<style>text{font:12px "Segoe UI",Helvetica,Arial,sans-serif;fill:#222}'
    ".detail{fill:#555;font-size:11px}.queue{fill:#777;font-size:10px}.title{font-weight:bold}"
    ".arrow{fill:none;stroke:#888;stroke-width:1.2}.type{fill:#999;font-size:9px}"
    ".frame{fill:#f4f7f9;stroke:#b9c7cf;stroke-dasharray:6 4}.group{fill:#557;font-weight:bold}"
    "</style>"
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>'
)
_MOVED = """<script><![CDATA[
const svg = document.documentElement, box = svg.viewBox && svg.viewBox.baseVal;
if (box) {
  const whole = {width: box.width, height: box.height};
  let held = null;
  const scale = () => box.width / svg.clientWidth;
  const fit = () => {
    svg.setAttribute("width", "100%"); svg.setAttribute("height", "100%");
    const shown = Math.max(0.7, Math.min(1, svg.clientWidth / whole.width));
    box.width = svg.clientWidth / shown; box.height = svg.clientHeight / shown;
    box.x = Math.min(0, (whole.width - box.width) / 2); box.y = 0;
  };
  fit();
  addEventListener("resize", fit);
  svg.addEventListener("dblclick", fit);
  svg.addEventListener("wheel", e => {
    e.preventDefault();
    if (!e.ctrlKey) { box.x += e.deltaX * scale(); box.y += e.deltaY * scale(); return; }
    const by = e.deltaY > 0 ? 1.15 : 1 / 1.15, x = box.x + e.clientX * scale(), y = box.y + e.clientY * scale();
    box.x = x - (x - box.x) * by; box.y = y - (y - box.y) * by; box.width *= by; box.height *= by;
  }, {passive: false});
  svg.addEventListener("mousedown", e => { held = [e.clientX, e.clientY]; });
  svg.addEventListener("mouseup", () => { held = null; });
  svg.addEventListener("mousemove", e => {
    if (!held) return;
    box.x -= (e.clientX - held[0]) * scale(); box.y -= (e.clientY - held[1]) * scale();
    held = [e.clientX, e.clientY];
  });
}
]]></script>"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class Box:
    """A node: `name` is what others refer to in `after` and `beside`."""

    name: str
    title: str
    detail: str
    after: tuple[str, ...]
    #: `input`, `output`, `step`, or `state` for a step that remembers something.
    kind: str = "step"
    #: Boxes that this one hears from other than by a queue: through a shared variable.
    beside: tuple[str, ...] = ()
    #: What the arrows from `after` are called, if anything, and of which types they are.
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    #: The frame in which it lies with others that stand beside it in the list.
    group: str = ""


@dataclass(frozen=True, slots=True)
class _Way:
    """An arrow: the nodes that it passes, its name and its type."""

    nodes: list[_Node]
    queue: str
    type: str


@dataclass(slots=True)
class _Node:
    """Mutable: a box, or a place where an arrow passes a layer, and where it lies."""

    layer: int
    width: int
    box: Box | None = None
    above: list[_Node] = field(default_factory=list)
    below: list[_Node] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    height: int = 0
    #: How far its layer reaches down.
    floor: float = 0.0


def draw(boxes: list[Box]) -> str:
    """The boxes and the arrows between them."""
    nodes, ways = _nodes(boxes)
    layers = _ordered(nodes, ways)
    _place(layers)
    everything = [node for layer in layers for node in layer]
    width = max((n.x + n.width / 2 for n in everything), default=0.0) + _MARGIN
    height = max((n.y + n.height for n in everything), default=0.0) + _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size}>', _HEAD]
    groups = dict.fromkeys(box.group for box in boxes if box.group)
    parts += [_frame(g, [nodes[box.name] for box in boxes if box.group == g]) for g in groups]
    parts += [_arrow(way) for way in ways]
    for box in boxes:
        end = nodes[box.name]
        parts += [_link(nodes[a], end, "#b55") for a in box.beside if a in nodes]
        # An arrow back to an earlier layer closes a cycle.
        back = [a for a in box.after if a in nodes and nodes[a].layer >= end.layer]
        parts += [_link(nodes[a], end, "#888") for a in back]
    parts += [_rectangle(nodes[box.name], box) for box in boxes]
    return "\n".join([*parts, _MOVED, "</svg>"]) + "\n"


# --- the layout ---


def _nodes(boxes: list[Box]) -> tuple[dict[str, _Node], list[_Way]]:
    """A node for each box, and each arrow as the nodes that it passes."""
    layers = _layers(boxes)
    nodes = {box.name: _Node(layers[box.name], _WIDTH, box, height=_height(box)) for box in boxes}
    ways: list[_Way] = []
    for box in boxes:
        end = nodes[box.name]
        nothing = ("",) * len(box.after)
        arrows = zip(box.after, box.queues or nothing, box.types or nothing, strict=True)
        for name, queue, type_ in arrows:
            if name not in nodes or nodes[name].layer >= end.layer:
                continue
            passed = [_Node(n, _GAP_X) for n in range(nodes[name].layer + 1, end.layer)]
            way = [nodes[name], *passed, end]
            for one, other in pairwise(way):
                one.below.append(other)
                other.above.append(one)
            ways.append(_Way(way, queue, type_))
    return nodes, ways


def _layers(boxes: list[Box]) -> dict[str, int]:
    """The longest way from an input; an arrow back to an earlier box does not count.

    An input lies just above what reads it first.
    """
    layers: dict[str, int] = {}
    #: The last layer of each group, and where what comes now may lie at the earliest.
    ends: dict[str, int] = {}
    least, group = 0, ""
    for box in boxes:
        if box.group not in ("", group):
            group = box.group
            least = max([n + 1 for n in layers.values()], default=0) if ends else least
        after = [layers[a] + 1 for a in box.after if a in layers]
        if box.kind != "output":
            after.append(least if box.group else max(ends.values(), default=-1) + 1)
        layers[box.name] = max(after, default=0) if box.kind != "input" else 0
        if box.group:
            ends[box.group] = max(layers[box.name], ends.get(box.group, 0))
    if ends:
        return _with_outputs_below(boxes, layers, ends)
    readers: dict[str, int] = {}
    for box in boxes:
        for name in box.after:
            readers[name] = min(readers.get(name, layers[box.name]), layers[box.name])
    for box in boxes:
        if not box.after and readers.get(box.name, 0) > 0:
            layers[box.name] = readers[box.name] - 1
    return layers


def _with_outputs_below(
    boxes: list[Box], layers: dict[str, int], ends: dict[str, int]
) -> dict[str, int]:
    """An output lies below the group that makes it."""
    groups = {box.name: box.group for box in boxes}
    for box in boxes:
        if box.kind == "output":
            below = [ends.get(groups.get(a, ""), layers.get(a, 0)) + 1 for a in box.after]
            layers[box.name] = max(below, default=0)
    return layers


def _ordered(nodes: dict[str, _Node], ways: list[_Way]) -> list[list[_Node]]:
    """The nodes of each layer, ordered by where their neighbours are, to and fro."""
    count = max((n.layer for n in nodes.values()), default=-1) + 1
    layers: list[list[_Node]] = [[] for _ in range(count)]
    for node in [*nodes.values(), *(n for way in ways for n in way.nodes[1:-1])]:
        layers[node.layer].append(node)
    for layer in layers:
        _number(layer)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            wanted = {id(n): _mean(n.above if down else n.below, n.x) for n in layer}
            layer.sort(key=lambda node: wanted[id(node)])
            _number(layer)
    return layers


def _number(layer: list[_Node]) -> None:
    for number, node in enumerate(layer):
        node.x = number / max(1, len(layer) - 1) if len(layer) > 1 else 0.5


def _mean(nodes: list[_Node], default: float) -> float:
    return sum(n.x for n in nodes) / len(nodes) if nodes else default


def _place(layers: list[list[_Node]]) -> None:
    """Where everything lies: beside each other without touching, near its neighbours."""
    y = float(_MARGIN)
    for layer in layers:
        x = 0.0
        for node in layer:
            node.x, node.y = x + node.width / 2, y
            x += node.width + _GAP_X
        height = max(node.height for node in layer)
        for node in layer:
            node.floor = y + height
        y += height + _GAP_Y
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            _pull(layer, [_mean(n.above if down else n.below, n.x) for n in layer])
    left = min((n.x - n.width / 2 for layer in layers for n in layer), default=0.0)
    for layer in layers:
        for node in layer:
            node.x += _MARGIN - left


def _pull(layer: list[_Node], wanted: list[float]) -> None:
    """Nodes as near as possible to where they are wanted, in their order."""
    places: list[float] = []
    for number, (node, want) in enumerate(zip(layer, wanted, strict=True)):
        room = (layer[number - 1].width + node.width) / 2 + _GAP_X
        places.append(max(want, places[-1] + room) if places else want)
    # Pushing to the right alone would lean that way.
    lean = sum(p - w for p, w in zip(places, wanted, strict=True)) / max(1, len(places))
    for node, place in zip(layer, places, strict=True):
        node.x = place - lean


# --- what is drawn ---


def _arrow(way: _Way) -> str:
    start, *passed, end = way.nodes
    x, y = start.x, start.y + start.height
    path = [f"M{x:.0f},{y:.0f} L{x:.0f},{start.floor:.0f}"]
    y = start.floor
    for node in (*passed, end):
        path.append(f"C{x:.0f},{y + _BEND:.0f} {node.x:.0f},{node.y - _BEND:.0f} "
                    f"{node.x:.0f},{node.y:.0f}")  # fmt: skip
        x, y = node.x, node.y
        if node is not end:
            y = node.floor
            path.append(f"L{x:.0f},{y:.0f}")
    line = f'<path class="arrow" d="{" ".join(path)}" marker-end="url(#tip)"/>'
    if not way.queue or (start.box is not None and start.box.title == way.queue):
        return line
    # Where arrows part they would lie on each other, the more so beside an arrow that goes on.
    x, y, type_ = start.x + 6, start.floor + 16, way.type
    if len(start.below) > 1:
        type_ = way.type if way.nodes[1].box is not None else ""
        x, y = way.nodes[1].x + 6, way.nodes[1].y - (22 if type_ else 12)
    name = f'<text class="queue" x="{x:.0f}" y="{y:.0f}">{escape(_cut(way.queue, 24))}</text>'
    if not way.type:
        return line + name
    if type_:
        shown = escape(_cut(type_, _TYPE_CHARACTERS))
        name += f'<text class="queue type" x="{x:.0f}" y="{y + 11:.0f}">{shown}</text>'
    return f"{line}<g><title>{escape(f'{way.queue}: {way.type}')}</title>{name}</g>"


def _frame(name: str, nodes: list[_Node]) -> str:
    left = min(n.x - n.width / 2 for n in nodes) - _FRAME
    right = max(n.x + n.width / 2 for n in nodes) + _FRAME
    top, bottom = min(n.y for n in nodes) - 26, max(n.floor for n in nodes) + _FRAME
    return (
        f'<path class="frame" d="M{left:.0f},{top:.0f} H{right:.0f} V{bottom:.0f} '
        f'H{left:.0f} Z"/><text class="group" x="{left + 8:.0f}" y="{top + 16:.0f}">'
        f"{escape(name)}</text>"
    )


def _link(start: _Node, end: _Node, colour: str) -> str:
    """A dashed line between the sides of two boxes that face each other, or the right ones."""
    y1, y2 = start.y + start.height / 2, end.y + end.height / 2
    aside = 1 if end.x - start.x > start.width else -1 if start.x - end.x > start.width else 0
    x1 = start.x + start.width / 2 * (aside or 1)
    x2 = end.x + end.width / 2 * (-aside or 1)
    bend1, bend2 = (x1 + aside * _BEND, x2 - aside * _BEND) if aside else (max(x1, x2) + _BEND,) * 2
    return (
        f'<path d="M{x1:.0f},{y1:.0f} C{bend1:.0f},{y1:.0f} {bend2:.0f},{y2:.0f} '
        f'{x2:.0f},{y2:.0f}" fill="none" stroke="{colour}" stroke-dasharray="4 3" '
        'marker-end="url(#tip)"/>'
    )


def _rectangle(node: _Node, box: Box) -> str:
    x, y = node.x - node.width / 2, node.y
    titles, details = _lines(box)
    texts = []
    for number, line in enumerate((*titles, *details)):
        kind = "title" if number < len(titles) else "detail"
        height = y + _PADDING + _LINE * number + 11
        texts.append(
            f'<text x="{x + 10:.0f}" y="{height:.0f}" class="{kind}">{escape(line)}</text>'
        )
    return (
        f"<g><title>{escape(f'{box.title}: {box.detail}')}</title>"
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{node.width}" height="{node.height}" rx="7" '
        f'fill="{_FILL[box.kind]}" stroke="{_EDGE[box.kind]}"/>{"".join(texts)}</g>'
    )


def _height(box: Box) -> int:
    return 2 * _PADDING + _LINE * sum(map(len, _lines(box)))


def _lines(box: Box) -> tuple[list[str], list[str]]:
    """What is written in a box; the rest shows when the mouse rests on it."""
    titles = _wrapped(box.title, _TITLE_CHARACTERS, 2)
    details = [] if box.detail == box.title else _wrapped(box.detail, _DETAIL_CHARACTERS)
    return titles, details


def _wrapped(text: str, characters: int, most: int = _MOST_LINES) -> list[str]:
    lines = textwrap.wrap(text, characters)
    return (
        lines
        if len(lines) <= most
        else [*lines[: most - 1], _cut(lines[most - 1] + " …", characters)]
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
