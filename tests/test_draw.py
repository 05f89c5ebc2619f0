"""Pictures of graphs: nothing lies on anything else, and everything is there."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest

from millstream.draw import Box, draw
from tests.examples.folders import example_folders, name_of, program_of

SVG = "{http://www.w3.org/2000/svg}"
FOLDERS = [f for f in example_folders() if f.parent.name in ("cql", "brook", "streamit")]


def rectangles(picture: str) -> list[tuple[float, float, float, float]]:
    rects = ET.fromstring(picture).iter(f"{SVG}rect")  # noqa: S314 - our own
    return [
        (x, y, x + width, y + height)
        for x, y, width, height in (
            tuple(float(r.attrib[k]) for k in ("x", "y", "width", "height")) for r in rects
        )
    ]


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_boxes_do_not_touch_and_lie_in_the_picture(folder: object) -> None:
    picture = program_of(folder).explain(format="svg")  # type: ignore[arg-type]
    boxes = rectangles(picture)
    width, height = map(float, re.findall(r'(?:width|height)="(\d+)" ', picture)[:2])
    assert len(boxes) >= 3
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    for (l1, t1, r1, b1), (l2, t2, r2, b2) in combinations(boxes, 2):
        assert r1 < l2 or r2 < l1 or b1 < t2 or b2 < t1


def test_a_chain_goes_straight_down_with_the_names_of_its_queues() -> None:
    boxes = [
        Box("in", "in", "(n integer)", (), "input"),
        Box("a", "Filter", "Filter[n > 1]", ("in",), queues=("in",)),
        Box("b", "Range", "Range[5 min]", ("a",), "state", queues=("large",)),
        Box("output out", "out", "output", ("b",), "output"),
    ]
    picture = draw(boxes)
    assert [y1 > y0 for (_, _, _, y0), (_, y1, _, _) in pairwise(rectangles(picture))] == [True] * 3
    assert len({x for x, _, _, _ in rectangles(picture)}) == 1
    assert picture.count(">large<") == 1
    assert picture.count(">in<") == 1  # it stands in its box


def test_cycles_shared_variables_and_long_texts_are_drawn() -> None:
    boxes = [
        Box("join", "RoundRobinJoin", "", ("back",)),
        Box(
            "back", "Map", "Map[" + "a very long text & <so on> " * 30, ("join",), beside=("join",)
        ),
    ]
    picture = draw(boxes)
    assert picture.count('stroke-dasharray="4 3"') == 2
    assert "…" in picture
    assert len(rectangles(picture)) == 2


def test_nothing_can_be_drawn() -> None:
    assert rectangles(draw([])) == []


def test_groups_lie_in_frames_below_each_other_and_arrows_say_what_they_carry() -> None:
    boxes = [
        Box("in", "in", "(n integer)", (), "input"),
        Box("a", "Filter", "", ("in",), group="stage 1"),
        Box("b", "Map", "", ("a",), queues=("some",), types=("(n integer)",), group="stage 1"),
        Box("moved", "exchange", "", ("a",)),
        Box("c", "Range", "", ("moved",), "state", group="stage 2"),
        Box("output out", "out", "output", ("b",), "output"),
    ]
    picture = draw(boxes)
    frames = [
        tuple(map(float, frame))
        for frame in re.findall(r'class="frame" d="M(\d+),(\d+) H(\d+) V(\d+)', picture)
    ]
    assert frames[0][3] < frames[1][1]
    places = rectangles(picture)
    within = [
        [left <= l1 and top <= t1 and r1 <= right and b1 <= bottom for l1, t1, r1, b1 in places]
        for left, top, right, bottom in frames
    ]
    assert within == [[n in (1, 2) for n in range(6)], [n == 4 for n in range(6)]]
    assert "<title>some: (n integer)</title>" in picture


def test_an_arrow_that_passes_a_layer_goes_straight_down_beside_its_boxes() -> None:
    boxes = [Box(n, n, "a detail of several words", ("a",) * (n != "a")) for n in "abc"]
    picture = draw([*boxes, Box("d", "d", "", ("b", "a"))])
    (way,) = re.findall(r'class="arrow" d="(M[^"]*L[^"]*L[^"]*)"', picture)
    down = re.search(r" (\d+),(\d+) L(\d+),(\d+)", way)
    assert down is not None
    x, y, below_x, below = map(float, down.groups())
    assert (x, y < below) == (below_x, True)
    places = rectangles(picture)
    assert not any(l1 <= x <= r1 and t1 < below and y < b1 for l1, t1, r1, b1 in places)
