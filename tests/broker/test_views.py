"""The rows of a view, and what has changed in it of late."""

from __future__ import annotations

from typing import Any

from millstream.broker.views import ViewRows


def test_what_has_changed_since_is_little_or_much() -> None:
    view: Any = None
    rows = ViewRows(view)
    for position in range(1, 5):
        rows.take(position, {(position, n): 1 for n in range(10)})
    assert rows.is_near(4, 0)
    assert rows.is_near(3, 10)
    assert not rows.is_near(2, 10)
    assert rows.is_near(0, 40)
    rows.begin(4)
    assert not rows.is_near(3, 40), "nobody knows what was before"
