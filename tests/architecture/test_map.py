"""docs/architecture.md is the map of the house: every room is on it."""

from __future__ import annotations

import re

from tests.architecture.modules import FILES, ROOT

MAP = ROOT.parents[1] / "docs" / "architecture.md"


def test_every_room_is_on_the_map() -> None:
    """Folders with modules, and modules that stand alone."""
    folders = {path.parent.name for path in FILES if path.parent != ROOT}
    alone = {path.stem for path in FILES if path.parent == ROOT and not path.stem.startswith("__")}
    words = set(re.findall(r"\w+", MAP.read_text(encoding="utf-8")))
    assert not (folders | alone) - words
